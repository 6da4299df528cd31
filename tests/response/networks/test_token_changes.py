"""Dropped and replaced tokens: how many, which, and which never."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from curvewise.errors import InputError
from curvewise.response.networks.perturbations import PERTURBATIONS, find_perturbation, perturb

PAD, BEGIN, END, MASK = 0, 1, 2, 3
RNG = np.random.default_rng(12)


def texts(count: int = 600, longest: int = 20) -> np.ndarray:
    """Texts of 1 to so many words (tokens 10 to 29) between two marks, then padding."""
    x = np.full((count, longest + 2), PAD)
    for row in x:
        length = RNG.integers(1, longest + 1)
        row[: length + 2] = [BEGIN, *RNG.integers(10, 30, length), END]
    return x


X = texts()
WORDS = X >= 10


def test_dropout_puts_padding_for_a_share_of_the_words_of_each_text() -> None:
    found = perturb(X, find_perturbation("token-dropout", padding=PAD, special=(BEGIN, END)), 0.3)
    gone = found != X
    assert (found[gone] == PAD).all()
    assert not gone[~WORDS].any()
    exact = 0.3 * WORDS.sum(axis=1)
    assert (np.abs(gone.sum(axis=1) - exact) < 1).all()
    off = gone.sum(axis=1) - exact  # rounded up or down by chance: right on average
    assert abs(off.mean()) < 4 * off.std() / np.sqrt(len(off))
    places = gone[WORDS.sum(axis=1) == 20][:, 1:21].sum(axis=0)
    assert stats.chisquare(places).pvalue > 0.001
    everything = perturb(X, find_perturbation("token-dropout", padding=PAD, special=(BEGIN, END)), 1.0)
    assert np.array_equal(everything, np.where(WORDS, PAD, X))


def test_marks_of_beginning_and_end_are_found_where_there_are_enough_texts() -> None:
    whole = torch.from_numpy(X)
    p = PERTURBATIONS["token-dropout"].fitted(whole, padding=PAD)
    assert p.known.fixed.tolist() == [PAD, BEGIN, END]
    assert p.known.words.tolist() == list(range(10, 30))
    few = PERTURBATIONS["token-dropout"].fitted(whole[:5], padding=PAD)
    assert few.known.fixed.tolist() == [PAD]


def test_dropped_tokens_may_become_a_mask() -> None:
    x = torch.from_numpy(X)
    p = find_perturbation("token-dropout", padding=PAD, mask=MASK).fitted(x)
    assert torch.equal(p.apply(x, 1.0), torch.where(torch.from_numpy(WORDS), MASK, x))
    with pytest.raises(InputError, match="what a dropped token becomes"):
        PERTURBATIONS["token-dropout"].apply(x, 0.5)


def test_replacement_draws_other_words_of_the_sample() -> None:
    found = perturb(X, find_perturbation("token-replacement", padding=PAD), 0.4, 5)
    new = found != X
    assert not new[~WORDS].any()
    assert (np.abs(new.sum(axis=1) - 0.4 * WORDS.sum(axis=1)) < 1).all()
    counts = np.bincount(found[new], minlength=30)
    assert counts[:10].sum() == 0
    assert stats.chisquare(counts[10:]).pvalue > 0.001
    steps = np.bincount((found[new] - X[new]) % 20, minlength=20)  # whatever it stands for
    assert steps[0] == 0
    assert stats.chisquare(steps[1:]).pvalue > 0.001
    whole = perturb(X, find_perturbation("token-replacement", padding=PAD), 1.0, 5)
    assert ((whole != X) == WORDS).all()
    assert np.array_equal(whole[new], found[new])  # more of it changes further places


@pytest.mark.parametrize("name", ["token-dropout", "token-replacement"])
@pytest.mark.parametrize("kind", ["int32", "int64"])
def test_each_text_has_its_magnitude_whoever_is_beside_it(name: str, kind: str) -> None:
    x = torch.from_numpy(X.astype(kind))
    p = PERTURBATIONS[name].fitted(x, padding=PAD)
    magnitudes = torch.rand(len(x), generator=torch.Generator().manual_seed(1))
    magnitudes[:3] = 0
    whole = p.apply(x, magnitudes, 7)
    assert whole.dtype == x.dtype
    assert torch.equal(whole[:3], x[:3])
    rows = torch.tensor([50, 2, 599])
    assert torch.equal(p.apply(x[rows], magnitudes[rows], 7, positions=rows), whole[rows])
    assert not torch.equal(p.apply(x, magnitudes, 8), whole)


def test_what_are_no_tokens_is_refused() -> None:
    with pytest.raises(InputError, match=r"float64 of shape \(600, 22\).*is for tokens"):
        perturb(X.astype(float), find_perturbation("token-dropout", padding=PAD), 0.2)
    with pytest.raises(InputError, match="the sample has 1 that is neither"):
        perturb(np.full((3, 4), 7), "token-replacement", 0.2)
