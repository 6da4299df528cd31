"""The bound I_α against its definition and against mutual information that is known."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.ranking.mixture import project
from curvewise.ranking.networks import information
from curvewise.ranking.networks.information import (
    MEASURES,
    BoundSettings,
    Critic,
    LabelledPairs,
    information_score,
    interpolated_bound,
)

CENTRES = np.array([-1.5, 0.0, 2.5])
SHARES = np.array([0.5, 0.2, 0.3])


def drawn(n: int, seed: int, d: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Classes in overlapping Gaussians along the first of d dimensions."""
    rng = np.random.default_rng(seed)
    y = rng.choice(3, size=n, p=SHARES)
    x = rng.standard_normal((n, d))
    x[:, 0] += CENTRES[y]
    return x, y


def known_information() -> float:
    """Entropy of the mixture less that of a Gaussian, by quadrature."""

    def density(x: float) -> float:
        return float(SHARES @ stats.norm.pdf(x - CENTRES))

    mixed = integrate.quad(lambda x: -density(x) * math.log(density(x)), -12, 12, limit=200)[0]
    return float(mixed - stats.norm.entropy())


def scored(n: int = 4000, d: int = 1, **how: Any) -> float:
    x, y = drawn(n, 1, d)
    shown, truth = drawn(4000, 2, d)
    return information_score(x, y, test_features=shown, test_labels=truth, **how)


def test_the_known_information_is_the_mean_log_ratio_of_draws() -> None:
    x, y = drawn(200_000, 0)
    each = stats.norm.logpdf(x - CENTRES)
    ratio = each[np.arange(len(y)), y] - np.log(np.exp(each) @ SHARES)
    assert ratio.mean() == pytest.approx(known_information(), abs=4 * ratio.std() / len(y) ** 0.5)


@pytest.mark.parametrize("alpha", [0.01, 1.0])  # the two ends
def test_it_is_the_information_of_a_mixture(alpha: float) -> None:
    """Of which 4,000 examples tell with a standard error of .01."""
    truth = known_information()
    assert truth - 0.04 < scored(alpha=alpha) < truth + 0.03


def test_it_stays_below_the_truth_where_it_is_hard() -> None:
    found = scored(n=600, d=40)
    assert 0.25 < found < known_information()


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**31), st.sampled_from([0.01, 0.5, 0.99]))
def test_the_bound_is_what_its_definition_says(seed: int, alpha: float) -> None:
    rng = np.random.default_rng(seed)
    k, classes = int(rng.integers(2, 6)), int(rng.integers(2, 5))
    f, y = 3 * rng.standard_normal((k, classes)), rng.integers(classes, size=k)
    p, q = rng.dirichlet(np.ones(classes)), np.exp(rng.standard_normal(classes))

    def a(label: int) -> float:
        mean = sum(math.exp(f[j, label]) for j in range(k)) / k
        return alpha * mean + (1 - alpha) * float(q[label])

    joint = sum(math.log(math.exp(f[i, y[i]]) / a(y[i])) for i in range(k)) / k
    apart = sum(p[label] * math.exp(f[i, label]) / a(label) / k for i in range(k) for label in range(classes))
    given_ = [torch.from_numpy(v) for v in (f, y, p, np.log(q))]
    assert float(interpolated_bound(*given_, alpha)) == pytest.approx(1 + joint - apart)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**31))
def test_with_alpha_1_it_is_infonce(seed: int) -> None:
    """Which is the log-odds of finding the partner among K, plus log K, and never above it."""
    rng = np.random.default_rng(seed)
    f = torch.from_numpy(10 * rng.standard_normal((7, 3)))
    y = torch.from_numpy(rng.integers(3, size=7))
    third = torch.full((3,), 1 / 3, dtype=torch.float64)
    found = float(interpolated_bound(f, y, third, torch.zeros(3), 1.0))
    finding = -torch.nn.functional.cross_entropy(f[:, y].T, torch.arange(7))
    assert found == pytest.approx(float(finding) + math.log(7))
    assert found <= math.log(7) + 1e-9


@settings(max_examples=6, deadline=None)
@given(st.integers(0, 2**31), st.booleans())
def test_its_expectation_is_below_the_information(seed: int, best: bool) -> None:
    """Whatever the critic: exactly, over all samples of three pairs of two values and two labels.

    Shares of labels are those of the sample, and a batch is all of it or two of its pairs.
    """
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(4, 0.5)).reshape(2, 2) * 0.96 + 0.01
    ratio = np.log(p / np.outer(p.sum(axis=1), p.sum(axis=0)))
    f, log_q = (ratio, np.zeros(2)) if best else (rng.normal(0, 2, (2, 2)), rng.normal(0, 1, 2))
    truth, f, log_q = float((p * ratio).sum()), torch.from_numpy(f), torch.from_numpy(log_q)
    samples = torch.cartesian_prod(*[torch.arange(4)] * 3)
    chances = p.ravel()[samples.numpy()].prod(axis=1)
    assert chances.sum() == pytest.approx(1)
    for alpha, k in itertools.product((0.01, 0.5, 1.0), (2, 3)):
        values = [
            float(interpolated_bound(f[s[:k] // 2], s[:k] % 2, torch.bincount(s % 2, minlength=2) / 3, log_q, alpha))
            for s in samples
        ]
        assert chances @ values <= truth + 1e-9


def test_labels_that_are_certain_and_labels_that_mean_nothing() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=1200)
    x = rng.standard_normal((1200, 3))
    sure = x + 20 * np.eye(4)[y][:, :3]
    half = {"test_features": sure[600:], "test_labels": y[600:], "steps": 500}
    assert information_score(sure[:600], y[:600], **half) == pytest.approx(math.log(4), abs=0.02)
    half["test_features"] = x[600:]
    with pytest.warns(CurvewiseWarning, match="found nothing"):
        found = information_score(x[:600], y[:600], **half, rng=1)
    assert -0.05 < found <= 0


def test_a_critic_begins_with_nothing() -> None:
    """With a bound of 0, to which training goes back where it finds nothing better."""
    rng = np.random.default_rng(0)
    x, y = torch.from_numpy(rng.standard_normal((90, 4))).float(), torch.arange(90) % 3
    pairs = LabelledPairs(x, y, torch.full((3,), 1 / 3))
    critic = Critic(4, 3, rng, torch.device("cpu"))
    for alpha in (0.01, 1.0):
        assert critic.bound(pairs, BoundSettings(alpha, None, 32, 10), rng) == pytest.approx(0, abs=1e-6)
    with pytest.warns(CurvewiseWarning, match="found nothing"):
        assert information_score(np.ones((60, 3)), np.arange(60) % 2, steps=50) == 0


def test_what_is_learnt_by_heart_does_not_count() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((400, 60)), rng.integers(3, size=400)
    x[:, 0] += y
    half = {"test_features": x[200:], "test_labels": y[200:]}
    with pytest.warns(CurvewiseWarning) as heard:
        held_out = information_score(x[:200], y[:200], **half)
    assert ["200 examples in 60" in str(w.message) for w in heard] == [True]
    with pytest.warns(CurvewiseWarning, match="200 examples in 60 dimensions"):
        in_sample = information_score(x[:200], y[:200])
    assert held_out < in_sample - 0.03


def test_energy_keeps_what_varies() -> None:
    """One direction holds nearly all variance: the bound is that of the scores on it."""
    rng = np.random.default_rng(0)
    x, y = drawn(3000, 1)
    wide = np.column_stack([x, 0.01 * rng.standard_normal((3000, 30))])
    scores, projection = project(wide[:1500], 0.8)
    assert scores.shape == (1500, 1)
    test = {"test_features": projection.apply(wide[1500:]), "test_labels": y[1500:], "steps": 75}
    alone = information_score(scores, y[:1500], **test)
    test["test_features"] = wide[1500:]
    assert information_score(wide[:1500], y[:1500], **test, energy=0.8) == pytest.approx(alone, abs=1e-6)


def test_principal_axes_of_many_examples_come_from_some_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """One direction holds nearly all variance, which a fifth of the examples shows as well."""
    rng = np.random.default_rng(0)
    x, y = drawn(2000, 1)
    wide = np.column_stack([x, 0.01 * rng.standard_normal((2000, 30))])
    test = {"test_features": wide[1000:], "test_labels": y[1000:], "steps": 75, "energy": 0.8}
    all_rows = information_score(wide[:1000], y[:1000], **test)
    seen = []
    monkeypatch.setattr(information, "project", lambda some, energy: seen.append(len(some)) or project(some, energy))
    monkeypatch.setattr(information, "AXES_FROM", 200)
    assert information_score(wide[:1000], y[:1000], **test) == pytest.approx(all_rows, abs=0.1)
    assert seen == [200]


@pytest.mark.parametrize("d", [512, 1280, 2048])
@pytest.mark.parametrize("n", [2040, 3060, 76_128, 262_144])
def test_after_pca_it_never_costs_more(n: int, d: int) -> None:
    """On the paper's four tasks, as its tables have it (5.58e4 and 1.62e5 GFLOPS on average)."""
    cost = {measure.name: measure.flops(n, d, 102) for measure in MEASURES}
    assert cost["mi-pca-0.01"] < cost["mi-0.01"]


def test_components_keep_their_weight(monkeypatch: pytest.MonkeyPatch) -> None:
    """All are in one unit, in which their mean square is 1; features on their own are each in theirs."""
    x = np.random.default_rng(0).standard_normal((500, 3)) * [9, 3, 1]
    seen = []

    def stop(train: LabelledPairs, *_: object) -> None:
        seen.append(train.x.numpy())
        raise InputError("seen")

    monkeypatch.setattr("curvewise.ranking.networks.information.train_critic", stop)
    for energy in (1.0, None):
        with pytest.raises(InputError, match="seen"):
            information_score(x, np.arange(500) % 2, energy=energy)
    components, features = (part.std(axis=0) for part in seen)
    assert np.mean(components**2) == pytest.approx(1, abs=0.1)
    np.testing.assert_allclose(components / components[2], [9, 3, 1], rtol=0.15)
    np.testing.assert_allclose(features, 1, rtol=0.1)


def test_two_labels_make_two_pairs() -> None:
    """Every example has two of four labels: one of its half, one of noise. H(y) − H(y|x) = ½ log 2.

    A pair's label is of the half with chance ½ and then certain.
    """
    rng = np.random.default_rng(0)
    half, noise = rng.integers(2, size=4000), rng.integers(2, size=4000)
    labels = np.zeros((4000, 4), dtype=int)
    labels[np.arange(4000), half] = labels[np.arange(4000), 2 + noise] = 1
    x = rng.standard_normal((4000, 1)) + 20 * half[:, None]
    test = {"test_features": x[2000:], "test_labels": labels[2000:]}
    found = information_score(x[:2000], labels[:2000], **test, steps=500)
    assert found == pytest.approx(math.log(2) / 2, abs=0.03)


def test_the_seed_decides_and_the_chance_of_others_is_left_alone() -> None:
    state = torch.get_rng_state()
    first = scored(n=500, steps=50, rng=1)
    assert scored(n=500, steps=50, rng=1) == first
    assert scored(n=500, steps=50, rng=2) != first
    assert torch.equal(torch.get_rng_state(), state)


def test_units_and_names_play_no_part() -> None:
    x, y = drawn(1000, 1, 3)
    test = {"test_features": x[500:], "test_labels": y[500:], "steps": 100}
    found = information_score(x[:500], y[:500], **test)
    test["test_features"] = 1e5 * x[500:] + 7
    assert information_score(1e5 * x[:500] + 7, y[:500], **test) == pytest.approx(found, abs=1e-3)
    names = np.array(["c", "a", "b"])
    test |= {"test_features": x[500:], "test_labels": names[y[500:]]}
    assert information_score(x[:500], names[y[:500]], **test) == pytest.approx(found, abs=1e-3)


@pytest.mark.parametrize("unit", [1e-30, 1e25, 1e37])
def test_squares_that_overflow_or_vanish_do_no_harm(unit: float) -> None:
    x, y = drawn(400, 1)
    x = x.astype(np.float32)
    found = information_score(x, y, steps=50)
    assert found > 0.3
    assert information_score(x * np.float32(unit), y, steps=50) == pytest.approx(found, abs=1e-3)


def test_a_batch_that_cannot_show_the_entropy_is_said() -> None:
    y = np.arange(400) % 10
    x = np.random.default_rng(0).standard_normal((400, 1)) + y[:, None]
    with pytest.warns(CurvewiseWarning, match=r"log\(batch/alpha\) = 1.39"):
        assert information_score(x, y, alpha=1.0, batch=4, steps=25) < math.log(7)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"alpha": 0.0}, "alpha=0.0"),
        ({"alpha": 1.5}, "alpha=1.5"),
        ({"energy": 0.0}, "energy=0.0"),
        ({"batch": 1}, "batch=1"),
        ({"steps": 0}, "steps=0"),
        ({"test_labels": [0, 1]}, "test_labels is given without test_features"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_errors(how: dict[str, Any], said: str) -> None:
    x, y = drawn(100, 0)
    with pytest.raises(InputError, match=said):
        information_score(x, y, **how)


def test_too_few_examples_are_refused() -> None:
    with pytest.raises(InputError, match="at least 5"):
        information_score([[0.0], [1.0], [2.0]], [0, 1, 1])


def test_measures_are_called_as_the_lens_does() -> None:
    x, y = drawn(400, 1)
    test = {"test_features": x[200:], "test_labels": y[200:], "rng": 3, "steps": 50}
    found = {m.name: m.function(x[:200], y[:200], **test) for m in MEASURES}
    assert list(found) == ["mi-0.01", "mi-0.5", "mi-pca-0.01", "mi-pca-0.5"]
    for alpha in (0.01, 0.5):
        assert found[f"mi-{alpha:g}"] == information_score(x[:200], y[:200], **test, alpha=alpha)
    assert all(m.flops(10_000, 2048, 100) > 0 for m in MEASURES)
