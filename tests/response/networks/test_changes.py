"""Mixup, scaling, feature noise and feature swap against plain numpy and their definitions."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from curvewise.errors import InputError
from curvewise.response.networks.perturbations import PERTURBATIONS, find_perturbation, perturb

RNG = np.random.default_rng(8)
ROWS = (RNG.normal(size=(400, 6)) * [1, 10, 0.1, 3, 0, 1]).astype(np.float32)


@pytest.mark.parametrize("name", ["mixup-intra", "mixup-inter"])
def test_mixup_is_on_the_line_between_two(name: str) -> None:
    x, partner = RNG.normal(size=(2, 4, 3, 5)).astype(np.float32)
    shares = np.array([0, 0.1, 0.25, 0.49])
    wanted = [(1 - a) * one + a * other for a, one, other in zip(shares, x, partner, strict=True)]
    found = perturb(x, name, shares, partner=partner)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
    assert PERTURBATIONS[name].pairs == name[6:]


def test_mixup_of_bytes_is_rounded() -> None:
    x, partner = RNG.integers(0, 256, (2, 3, 1, 4, 4), dtype=np.uint8)
    found = perturb(x, "mixup-intra", 0.3, partner=partner)
    assert np.abs(found - (0.7 * x + 0.3 * partner)).max() <= 0.501


def test_mixup_keeps_its_classes_apart_and_needs_a_partner() -> None:
    x = torch.zeros(2, 3)
    with pytest.raises(InputError, match=r"less than 0\.5"):
        PERTURBATIONS["mixup-inter"].apply(x, 0.5, partner=x)
    assert torch.equal(PERTURBATIONS["mixup-intra"].apply(x, 1.0, partner=x + 1), x + 1)
    with pytest.raises(InputError, match="mixes pairs: give partner="):
        PERTURBATIONS["mixup-intra"].apply(x, 0.2)
    with pytest.raises(InputError, match=r"partner has shape \(1, 3\)"):
        PERTURBATIONS["mixup-intra"].apply(x, 0.2, partner=x[:1])


def test_feature_noise_is_normal_in_units_of_each_spread() -> None:
    found = perturb(ROWS, "feature-noise", 0.5, 3)
    assert np.array_equal(found[:, 4], ROWS[:, 4])  # what never varies stays
    varied = [0, 1, 2, 3, 5]
    noise = ((found - ROWS)[:, varied] / (0.5 * ROWS[:, varied].std(axis=0))).ravel()
    assert stats.kstest(noise, "norm").pvalue > 0.001
    flipped = perturb(ROWS, "feature-noise", -0.5, 3)
    np.testing.assert_allclose(flipped - ROWS, ROWS - found, atol=1e-4)


def test_feature_noise_is_for_layers_of_any_shape() -> None:
    x = torch.randn(300, 4, 3, 3, generator=torch.Generator().manual_seed(0)) * 5
    moved = (find_perturbation("feature-noise").fitted(x).apply(x, 0.2) - x) / 0.2
    ratio = moved.std(dim=0) / x.std(dim=0)
    assert 0.8 < float(ratio.min()) < float(ratio.max()) < 1.2


@pytest.mark.parametrize("name", ["feature-noise", "feature-swap"])
def test_a_fitted_one_does_not_depend_on_batches(name: str) -> None:
    x = torch.from_numpy(ROWS)
    p = PERTURBATIONS[name].fitted(x)
    whole = p.apply(x, 0.4, 2)
    for rows in (torch.arange(100, 130), torch.tensor([7, 399, 0])):
        part = p.apply(x[rows], 0.4, 2, positions=rows)
        torch.testing.assert_close(part, whole[rows])
    assert p.fitted(x[:5]) is p
    assert not torch.equal(PERTURBATIONS[name].apply(x[:5], 0.4, 2), whole[:5])  # its own sample
    with pytest.raises(InputError, match=r"fitted to examples of shape \(6,\)"):
        p.apply(x[:, :3], 0.4)


def test_feature_swap_takes_a_share_of_features_from_one_other_example() -> None:
    marked = np.arange(500 * 10, dtype=np.float32).reshape(500, 10)  # a value tells row and column
    found = perturb(marked, "feature-swap", 0.25, 1)
    changed = found != marked
    assert (found % 10 == np.arange(10)).all()
    counts = changed.sum(axis=1)
    assert set(counts) == {2, 3}  # 2.5 on average
    assert abs(counts.mean() - 2.5) < 4 * 0.5 / np.sqrt(500)
    assert stats.chisquare(changed.sum(axis=0)).pvalue > 0.001
    givers = [np.unique(found[i, changed[i]] // 10) for i in range(500)]
    assert all(len(g) == 1 and g[0] != i for i, g in enumerate(givers))
    assert len(np.unique(np.concatenate(givers))) > 250
    more = perturb(marked, "feature-swap", 0.6, 1)
    assert (more[changed] == found[changed]).all()  # more of it changes further places
    assert (perturb(marked, "feature-swap", 1.0, 1) != marked).all()


def test_feature_swap_is_for_tables_with_others() -> None:
    with pytest.raises(InputError, match=r"float32 of shape \(3, 1, 2, 2\).*is for features"):
        perturb(np.zeros((3, 1, 2, 2), np.float32), "feature-swap", 0.2)
    with pytest.raises(InputError, match="at least 2"):
        perturb(ROWS[:1], "feature-swap", 0.2)


def test_intensity_scales_whatever_it_is_given() -> None:
    np.testing.assert_allclose(perturb(ROWS, "intensity", -0.3), ROWS * 0.7, rtol=1e-5)
    pixels = RNG.integers(0, 256, (3, 1, 4, 4), dtype=np.uint8)
    assert np.array_equal(perturb(pixels, "intensity", 0.5), perturb(pixels, "brightness", 0.5))


PAD, BEGIN, END, MASK = 0, 1, 2, 3
TEXTS_RNG = np.random.default_rng(12)


def texts(count: int = 600, longest: int = 20) -> np.ndarray:
    """Texts of 1 to so many words (tokens 10 to 29) between two marks, then padding."""
    x = np.full((count, longest + 2), PAD)
    for row in x:
        length = TEXTS_RNG.integers(1, longest + 1)
        row[: length + 2] = [BEGIN, *TEXTS_RNG.integers(10, 30, length), END]
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
