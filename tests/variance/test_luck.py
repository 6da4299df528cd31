"""Luck of seeds against scipy, theory, simulation and real runs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from curvewise.errors import InputError
from curvewise.types import Predictions
from curvewise.variance.decompose import decompose_variance
from curvewise.variance.luck import best_of, expected_correlation, measure_seed_luck


@pytest.fixture(scope="module")
def fashion(data_dir):
    """Predictions of 512 networks for Fashion-MNIST, and the labels."""
    with np.load(data_dir / "variance" / "fashion_mnist_mlp_512runs.npz") as file:
        return file["preds"], file["labels"]


def runs_with_skill(rng, runs=60, n=500, spread=0.5):
    logit = -1 + rng.standard_normal(n) + spread * rng.standard_normal((runs, 1))
    return rng.random((runs, n)) < 1 / (1 + np.exp(-logit))


def test_correlation_is_scipys():
    errors = runs_with_skill(np.random.default_rng(0))
    luck = measure_seed_luck(errors, splits=0, kind="errors")
    x, y = errors[:, ::2].mean(axis=1), errors[:, 1::2].mean(axis=1)
    theirs = stats.pearsonr(x, y)
    assert luck.correlation.estimate == pytest.approx(theirs.statistic)
    assert luck.pvalue == pytest.approx(theirs.pvalue)
    assert tuple(luck.correlation)[1:] == pytest.approx(tuple(theirs.confidence_interval(0.95)))
    assert luck.first_errors == pytest.approx(x)
    assert luck.second_errors == pytest.approx(y)
    assert luck.random is None


def test_expected_correlation_is_the_mean_over_splits():
    rng = np.random.default_rng(1)
    errors = runs_with_skill(rng, 80, 400)
    alpha = decompose_variance(errors).distribution_share
    luck = measure_seed_luck(errors, splits=400, kind="errors")
    assert luck.expected.estimate == pytest.approx(alpha / (2 - alpha))
    assert luck.random.estimate == pytest.approx(luck.expected.estimate, abs=0.02)
    mask = np.arange(400) < 100
    uneven = measure_seed_luck(errors, split=mask, splits=0, kind="errors")
    drawn = []
    for _ in range(300):
        part = np.zeros(400, dtype=bool)
        part[rng.permutation(400)[:100]] = True
        drawn.append(np.corrcoef(errors[:, part].mean(1), errors[:, ~part].mean(1))[0, 1])
    assert uneven.expected.estimate == pytest.approx(np.mean(drawn), abs=0.02)
    assert uneven.examples == (100, 300)
    assert expected_correlation(1.0, (3, 9)) == 1


def test_gain_is_that_of_the_best_quarter():
    errors = runs_with_skill(np.random.default_rng(2), 40, 301)
    luck = measure_seed_luck(errors, splits=0, top=0.25, kind="errors")
    x, y = errors[:, ::2].mean(axis=1), errors[:, 1::2].mean(axis=1)
    cut = np.sort(x)[9]
    sure, tied = x < cut, x == cut
    share = (10 - sure.sum()) / tied.sum()
    for value, gain in ((x, luck.gain_first), (y, luck.gain_second)):
        best = (value[sure].sum() + share * value[tied].sum()) / 10
        assert gain.estimate == pytest.approx(value.mean() - best)


@pytest.mark.parametrize(("runs", "rho", "top"), [(30, 0.0, 0.25), (100, 0.6, 0.25)])
def test_intervals_of_gains_hold(runs, rho, top):
    rng = np.random.default_rng(3)

    def draw(count):
        z = rng.standard_normal((3, count, runs))
        return np.sqrt(rho) * z[0] + np.sqrt(1 - rho) * z[1:]

    x, y = draw(3000)
    picked = np.argsort(x, axis=1)[:, : int(np.ceil(top * runs))]
    truth = [-np.take_along_axis(v, picked, axis=1).mean() for v in (x, y)]
    held = np.array(
        [
            [t in best_of(a, v, top, 0.95) for t, v in zip(truth, (a, b), strict=True)]
            for a, b in zip(*draw(800), strict=True)
        ]
    ).mean(axis=0)
    assert (held > 0.915).all()
    assert (held < 0.98).all()


def test_independent_errors_carry_nothing_over():
    rng = np.random.default_rng(4)
    found = [measure_seed_luck(runs_with_skill(rng, 50, 300, 0.0), splits=0, kind="errors") for _ in range(200)]
    assert 0.01 <= np.mean([f.pvalue < 0.05 for f in found]) <= 0.1
    assert np.mean([0 in f.gain_second for f in found]) > 0.9
    assert min(f.gain_first.low for f in found) > 0


def test_no_real_variance_is_not_read_as_none():
    """A negative variance gives 0 inside an interval that holds what independent errors leave."""
    rng = np.random.default_rng(9)
    found = [measure_seed_luck(runs_with_skill(rng, 20, 300, 0.0), splits=0, kind="errors") for _ in range(40)]
    assert all(f.expected.low <= f.expected.estimate <= f.expected.high for f in found)
    below = next(f for f in found if f.expected.estimate == 0 < f.expected.high)
    assert "which does not exclude some" in below.summary()
    assert f"up to {below.expected.high:.3f}" in below.summary()
    alike = np.tile(np.arange(40) % 4 == 0, (20, 1))
    same = measure_seed_luck(alike, splits=0, kind="errors")
    assert "The correlation to expect is unknown" in same.summary()
    for one in (runs_with_skill(rng, 20, 300, 0.0), alike):
        two = runs_with_skill(rng, 20, 400, 0.8)
        shares = [decompose_variance(errors, kind="errors", interval="F").share_interval for errors in (one, two)]
        pair = measure_seed_luck(one, two, kind="errors").expected
        wanted = [np.sqrt(a * b) for a, b in zip(*shares, strict=True)]
        assert tuple(pair) == pytest.approx(wanted, nan_ok=True)


@pytest.mark.parametrize("runs", [4, 9, 10])
def test_few_runs_are_said_to_be_few(runs):
    luck = measure_seed_luck(runs_with_skill(np.random.default_rng(10), runs, 300), splits=0, kind="errors")
    assert any(f"{runs} runs are few" in w for w in luck.warnings) == (runs < 10)


def test_groups_stay_together():
    rng = np.random.default_rng(5)
    groups = rng.permutation(np.repeat(np.arange(60), 5))
    errors = runs_with_skill(rng, 40, 60, 0.0)[:, groups]
    luck = measure_seed_luck(errors, groups=groups, splits=50, kind="errors")
    naive = measure_seed_luck(errors, splits=50, kind="errors")
    assert naive.random.estimate > 0.5
    assert abs(luck.random.estimate) < 0.2
    assert luck.examples == (150, 150)


def test_a_pair_is_matched_by_run_ids():
    rng = np.random.default_rng(6)
    errors = runs_with_skill(rng, 50, 800, 0.8)
    ids = np.array([f"run {i}" for i in range(50)])
    order = rng.permutation(50)
    first = Predictions(errors[:, :300], "errors", run_ids=ids)
    second = Predictions(errors[order][:, 300:], "errors", run_ids=ids[order])
    luck = measure_seed_luck(first, second)
    direct = measure_seed_luck(errors[:, :300], errors[:, 300:], kind="errors")
    assert luck.correlation.estimate == pytest.approx(direct.correlation.estimate)
    assert luck.split == "pair"
    assert luck.expected.low < luck.correlation.estimate < luck.expected.high
    assert "two test sets" in luck.summary()
    with pytest.raises(InputError, match="lack the run"):
        measure_seed_luck(first, Predictions(errors, "errors", run_ids=np.arange(50)))
    with pytest.raises(InputError, match="49"):
        measure_seed_luck(errors, errors[:49], kind="errors")
    with pytest.raises(InputError, match="split"):
        measure_seed_luck(first, second, split="random")


def test_a_second_test_set_brings_its_own_labels():
    rng = np.random.default_rng(12)
    labels, others = rng.integers(0, 3, 80), rng.integers(0, 3, 50)
    first, second = (np.where(rng.random((12, len(y))) < 0.3, (y + 1) % 3, y) for y in (labels, others))
    luck = measure_seed_luck(first, (second, others), labels)
    direct = measure_seed_luck(first != labels, second != others, kind="errors")
    assert luck.second_errors == pytest.approx(direct.second_errors)
    assert tuple(luck.correlation) == pytest.approx(tuple(direct.correlation))


def test_losses_and_what_must_not_change():
    rng = np.random.default_rng(7)
    losses = rng.random((20, 90)) + rng.standard_normal((20, 1))
    luck = measure_seed_luck(losses, kind="losses", split="random", rng=3)
    assert luck.unit == "loss"
    assert "%" not in luck.summary().split("runs on the first")[1]
    again = measure_seed_luck(losses[rng.permutation(20)], kind="losses", split="random", rng=3)
    assert again.correlation.estimate == pytest.approx(luck.correlation.estimate)
    assert again.gain_second.estimate == pytest.approx(luck.gain_second.estimate)
    assert again.gain_second.low == pytest.approx(luck.gain_second.low)


def test_runs_that_do_not_differ():
    luck = measure_seed_luck(np.tile(np.arange(40) % 4 == 0, (8, 1)), splits=0, kind="errors")
    assert np.isnan(luck.correlation.estimate)
    assert tuple(luck.correlation)[1:] == (-1, 1)
    assert any("do not differ" in w for w in luck.warnings)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"top": 1.0}, "top"),
        ({"splits": -1}, "splits"),
        ({"split": "thirds"}, "thirds"),
        ({"split": np.ones(30, dtype=bool)}, "one part"),
        ({"split": np.arange(30)}, "True or False"),
        ({"level": 1.0}, "level"),
    ],
)
def test_bad_input(options, match):
    errors = runs_with_skill(np.random.default_rng(8), 10, 30)
    with pytest.raises(InputError, match=match):
        measure_seed_luck(errors, **options, kind="errors")


def test_few_runs():
    with pytest.raises(InputError, match="at least 4"):
        measure_seed_luck(runs_with_skill(np.random.default_rng(8), 3, 30), kind="errors")


def test_golden(fashion):
    luck = measure_seed_luck(fashion[0], None, fashion[1], splits=100)
    assert luck.correlation.estimate == pytest.approx(0.217, abs=5e-4)
    assert luck.random.estimate == pytest.approx(0.262, abs=0.012)
    assert 0.217 in luck.expected
    assert luck.gain_first.estimate == pytest.approx(0.0033, abs=5e-5)
    assert luck.gain_second.low > 0
    assert luck.gain_second.high < luck.gain_first.low


def test_rows_of_unequal_length_are_refused():
    with pytest.raises(InputError, match="second"):
        measure_seed_luck(np.eye(6, 9, dtype=int), [[0, 1], [1]], kind="errors")
