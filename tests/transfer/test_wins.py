"""On how many examples a method beats scratch."""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit, ndtri, stdtrit

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.transfer.wins import WinRate, win_rate, win_rates
from curvewise.types import Predictions


def draw(
    rng: np.random.Generator, runs: tuple[int, int], examples: int, truth: float = 0.7, spread: float = 0.2
) -> tuple[np.ndarray, np.ndarray]:
    """Difficulty, effects of runs and noise, with a known chance that the method wins."""
    uneven = 0.5
    shift = ndtri(truth) * math.sqrt(uneven**2 + 2 * spread**2 + 2)
    hard = rng.standard_normal(examples)
    own, other = (spread * rng.standard_normal((count, 1)) + rng.standard_normal((count, examples)) for count in runs)
    return hard + uneven * rng.standard_normal(examples) - shift + own, hard + other


def quiet(*args: Any, **options: Any) -> WinRate:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CurvewiseWarning)
        return win_rate(*args, **options)


def brute(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Wins of each pair of runs on each example: runs × runs × examples."""
    one, two = a[:, None], b[None]
    wins: np.ndarray = (one < two) + 0.5 * (one == two)
    return wins


def test_rate_by_brute_force() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 4, (3, 40)), rng.integers(0, 5, (4, 40))
    wins = brute(a, b)
    found = win_rate(a, b)
    assert found.rate.estimate == pytest.approx(wins.mean())
    assert found.by_run == pytest.approx(wins.mean(axis=(1, 2)))
    assert found.ties == pytest.approx((a[:, None] == b[None]).mean())
    assert (found.runs, found.scratch_runs, found.examples, found.groups) == (3, 4, 40, None)


def test_pairs_by_brute_force() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 4, (3, 40)), rng.integers(0, 5, (3, 40))
    wins = np.diagonal(brute(a, b)).T
    found = win_rate(a, b, paired=True)
    assert found.rate.estimate == pytest.approx(wins.mean())
    assert found.by_run == pytest.approx(wins.mean(axis=1))


@pytest.mark.parametrize("runs", [3, 6])
def test_pairs_by_analysis_of_variance(runs: int) -> None:
    """Standard errors and interval by the textbook's sums of squares."""
    n = 80
    a, b = draw(np.random.default_rng(2), (runs, runs), n)
    wins = np.diagonal(brute(a, b)).T  # runs × examples
    p = wins.mean()
    rest = wins - wins.mean(axis=1)[:, None] - wins.mean(axis=0) + p
    noise = (rest**2).sum() / ((runs - 1) * (n - 1)) / (runs * n)
    parts = np.array([np.var(wins.mean(axis=i), ddof=1) / wins.shape[1 - i] for i in (0, 1)])
    free = np.array([n - 1, runs - 1])
    found = win_rate(a, b, paired=True)
    assert found.examples_std**2 == pytest.approx(parts[0])
    assert found.runs_std**2 == pytest.approx(max(0, parts[1] - noise))
    total = max(parts.sum() - noise, *parts)
    quantile = math.sqrt(parts @ stdtrit(free, 0.975) ** 2 / parts.sum())
    if runs >= 5:
        quantile = stdtrit(total**2 / (parts**2 / free).sum(), 0.975)
    half = quantile * math.sqrt(total) * np.array([-1, 1])
    ends = np.sin(np.arcsin(np.sqrt(p)) + half / np.sqrt(4 * p * (1 - p))) ** 2
    if runs >= 5:
        ends = expit(logit(p) + half / (p * (1 - p)))
    assert list(found.rate)[1:] == pytest.approx(list(ends))


@pytest.mark.slow
def test_the_variance_is_right_on_average() -> None:
    rng = np.random.default_rng(3)
    rates, variances = [], []
    for _ in range(400):
        found = win_rate(*draw(rng, (6, 8), 60))
        rates.append(found.rate.estimate)
        variances.append(found.examples_std**2 + found.runs_std**2)
    assert np.mean(variances) == pytest.approx(np.var(rates), rel=0.2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("runs", "spread", "truth", "paired"),
    [
        ((2, 2), 0.3, 0.5, False),
        ((3, 3), 0.0, 0.95, False),
        ((3, 3), 0.3, 0.8, False),
        ((3, 8), 0.3, 0.5, False),
        ((5, 5), 0.1, 0.8, False),
        ((5, 5), 0.3, 0.8, True),
        ((1, 5), 0.3, 0.8, False),
    ],
    ids=["two", "sure", "three", "unequal", "five", "paired", "one"],
)
def test_coverage(runs: tuple[int, int], spread: float, truth: float, paired: bool) -> None:
    """For other runs and other examples; the whole grid is in benchmarks/transfer_wins.py."""
    rng = np.random.default_rng(4)
    held, rejected = [], []
    for _ in range(250):
        a, b = draw(rng, runs, 150, truth, spread)
        if paired:
            both = rng.standard_normal((len(a), 1))
            a, b = a + both, b + both
        found = quiet(a, b, paired=paired)
        held.append(truth in found.rate)
        rejected.append(found.pvalue < 0.05)
    assert np.mean(held) >= 0.91
    if truth == 0.5:
        assert np.mean(rejected) <= 0.09


def test_without_an_effect_of_runs_intervals_are_not_much_too_wide() -> None:
    rng = np.random.default_rng(5)
    found = [win_rate(*draw(rng, (10, 10), 300, spread=0.0)).rate for _ in range(60)]
    exact = np.std([i.estimate for i in found])
    assert np.mean([i.width for i in found]) < 1.25 * 2 * 1.96 * exact


def test_one_run_of_each_is_for_these_networks() -> None:
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(6)
    b = rng.standard_normal(400)
    a = b + np.where(rng.random(400) < 0.56, -1, 1)
    with pytest.warns(CurvewiseWarning, match="these two networks"):
        found = win_rate(a, b)
    wins = int((a < b).sum())
    exact = stats.binomtest(wins, 400)
    assert found.rate.estimate == wins / 400
    assert found.pvalue == pytest.approx(exact.pvalue, rel=0.15)
    assert list(found.rate)[1:] == pytest.approx(list(exact.proportion_ci(method="wilson")), abs=0.002)
    assert math.isnan(found.runs_std)


@pytest.mark.parametrize("shape", [(50,), (3, 50)], ids=["one", "three"])
def test_all_wins_and_all_ties_have_a_width(shape: tuple[int, ...]) -> None:
    zeros = np.zeros(shape) + np.arange(3)[:, None] * 0.1 if len(shape) == 2 else np.zeros(shape)
    won, lost = quiet(zeros, zeros + 1), quiet(zeros + 1, zeros)
    tied = quiet(np.zeros(shape), np.zeros(shape))
    edge = 0.025 ** (1 / 50)  # a rate at which 50 wins of 50 are seen one time in 40
    assert tuple(won.rate) == pytest.approx((1, edge, 1))
    assert tuple(lost.rate) == pytest.approx((0, 0, 1 - edge))
    assert tied.rate.estimate == 0.5
    assert tied.rate.low < 0.48 < 0.52 < tied.rate.high
    assert (won.verdict, lost.verdict, tied.verdict) == ("better", "worse", "undecided")


def test_few_runs_that_agree_leave_out_most_rates() -> None:
    """Two of each, all four pairs near 0.99: one half is ruled out, exchanged or not."""
    b = np.zeros((2, 1000))
    a = np.full((2, 1000), -1.0)
    a[0, :6], a[1, :14] = 1.0, 1.0
    found, other = quiet(a, b), quiet(b, a)
    assert found.rate.estimate == pytest.approx(0.99)
    assert (found.verdict, other.verdict) == ("better", "worse")
    assert found.rate.low > 0.8
    assert list(other.rate)[1:] == pytest.approx([1 - v for v in reversed(list(found.rate)[1:])])


@pytest.mark.parametrize("paired", [False, True], ids=["all", "paired"])
def test_failed_runs_are_left_out_and_reported(paired: bool) -> None:
    a, b = draw(np.random.default_rng(15), (4, 4), 50)
    a[1], b[3] = math.nan, math.nan
    with pytest.warns(CurvewiseWarning, match="since failed"):
        found = win_rate(a, b, paired=paired)
    rows = ([0, 2], [0, 2]) if paired else ([0, 2, 3], [0, 1, 2])
    whole = quiet(a[rows[0]], b[rows[1]], paired=paired)
    assert [*found.rate] == [*whole.rate]
    assert (found.runs, found.scratch_runs) == (len(rows[0]), len(rows[1]))
    for name in ("the method", "scratch"):
        assert f"1 of 4 runs of {name}" in " ".join(found.warnings)


def test_one_loss_is_no_surer_than_none() -> None:
    zeros = np.zeros((3, 100)) + np.arange(3)[:, None] * 0.1
    one = zeros.copy()
    one[0, 0] = 2
    assert win_rate(one, zeros + 1).rate.low <= win_rate(zeros, zeros + 1).rate.low


def test_exchanging_the_two_mirrors_all() -> None:
    a, b = draw(np.random.default_rng(7), (4, 6), 90)
    one, two = win_rate(a, b), win_rate(b, a)
    assert [*one.rate] == pytest.approx([1 - v for v in (two.rate.estimate, two.rate.high, two.rate.low)])
    assert one.pvalue == pytest.approx(two.pvalue)


@settings(deadline=None, max_examples=40)
@given(
    st.integers(0, 10_000),
    st.integers(1, 6),
    st.integers(1, 6),
    st.sampled_from([0.3, 0.5, 0.6, 0.8]),
    st.sampled_from([0.5, 0.8, 0.9, 0.95, 0.99]),
)
def test_pvalue_and_interval_agree(seed: int, runs: int, rivals: int, truth: float, level: float) -> None:
    a, b = draw(np.random.default_rng(seed), (runs, rivals), 60, truth)
    found = quiet(a, b, level=level)
    left_out = not found.rate.low <= 0.5 <= found.rate.high
    if abs(found.pvalue - (1 - level)) > 1e-3 * (1 - level):
        assert left_out == (found.pvalue < 1 - level)
    assert 0 <= found.rate.low <= found.rate.estimate <= found.rate.high <= 1


def test_examples_repeated_in_groups_add_nothing() -> None:
    a, b = draw(np.random.default_rng(8), (4, 4), 60)
    once = win_rate(a, b)
    grouped = win_rate(np.repeat(a, 5, axis=1), np.repeat(b, 5, axis=1), groups=np.repeat(np.arange(60), 5))
    naive = win_rate(np.repeat(a, 5, axis=1), np.repeat(b, 5, axis=1))
    assert list(grouped.rate) == pytest.approx(list(once.rate))
    assert grouped.groups == 60
    assert naive.examples_std == pytest.approx(once.examples_std / math.sqrt(5), rel=0.02)
    shuffled = np.random.default_rng(0).permutation(300)
    names = np.array([f"video {i}" for i in np.repeat(np.arange(60), 5)])
    again = win_rate(np.repeat(a, 5, axis=1)[:, shuffled], np.repeat(b, 5, axis=1)[:, shuffled], groups=names[shuffled])
    assert list(again.rate) == pytest.approx(list(once.rate))


def test_errors_win_by_half_the_difference_in_error() -> None:
    rng = np.random.default_rng(9)
    a, b = rng.random((3, 200)) < 0.2, rng.random((3, 200)) < 0.4
    found = win_rate(a, b)
    assert found.rate.estimate == pytest.approx(0.5 + (b.mean() - a.mean()) / 2)
    assert "ties" in found.summary()


class Slices:
    """Losses that can only be read a slice of runs at a time, and know how many were."""

    def __init__(self, values: np.ndarray) -> None:
        self.values, self.shape, self.dtype, self.most = values, values.shape, values.dtype, 0

    def __getitem__(self, rows: slice) -> np.ndarray:
        found = self.values[rows]
        self.most = max(self.most, len(found))
        return found


def test_predictions_are_read_in_blocks(tmp_path: Path) -> None:
    rng = np.random.default_rng(10)
    a, b = rng.normal(-0.1, 1, (7, 100_000)), rng.normal(0, 1, (5, 100_000))
    whole = win_rate(a, b)
    sources = Slices(a), Slices(b)
    blocks = win_rate(*(Predictions(s, "losses") for s in sources))
    assert [s.most for s in sources] == [2, 2]  # 0.8 MB a run, blocks of 2 MiB
    np.save(tmp_path / "a.npy", a)
    mapped = win_rate(Predictions(np.load(tmp_path / "a.npy", mmap_mode="r"), "losses"), b)
    for found in (blocks, mapped):
        assert [*found.rate] == pytest.approx([*whole.rate], abs=1e-12)
    five = [Predictions(Slices(values), "losses") for values in (a[:5], b)]
    pairs = win_rate(*five, paired=True)
    assert pairs.rate.estimate == pytest.approx((a[:5] < b).mean())


def test_predictions_of_labels_count_as_errors_and_know_their_groups() -> None:
    rng = np.random.default_rng(11)
    truth, groups = rng.integers(0, 3, 60), np.repeat(np.arange(20), 3)
    said = [rng.integers(0, 3, (3, 60)) for _ in range(2)]
    found = win_rate(*(Predictions(s, "labels", labels=truth, groups=groups) for s in said))
    right = win_rate(*(s != truth for s in said), groups=groups)
    assert list(found.rate) == pytest.approx(list(right.rate))
    assert found.groups == 20


def test_infinite_losses_are_compared() -> None:
    a = np.array([[0.0, math.inf, 1.0, math.inf], [0.5, 1.0, 1.0, 0.0], [0.2, 0.1, 0.1, 0.1]])
    b = np.ones((3, 4)) * [1.0, math.inf, math.inf, 0.5] + np.arange(3)[:, None]
    assert quiet(a, b).rate.estimate == pytest.approx(brute(a, b).mean())


def test_warnings_are_given_and_kept() -> None:
    a, b = draw(np.random.default_rng(12), (3, 3), 40)
    with pytest.warns(CurvewiseWarning, match="one run of scratch"):
        assert "one run of scratch" in win_rate(a, b[0]).warnings[0]
    with pytest.warns(CurvewiseWarning, match="Two runs of the method have the same losses"):
        win_rate(a[[0, 0, 1]], b)
    with pytest.warns(CurvewiseWarning, match="only 4 groups"):
        win_rate(a, b, groups=np.arange(40) % 4)


def test_a_curve_of_win_rates() -> None:
    rng = np.random.default_rng(13)
    given = {
        1000: draw(rng, (5, 5), 300, 0.5, 0.0),
        10: draw(rng, (3, 5), 300, 0.9, 0.0),
        100: draw(rng, (5, 4), 300, 0.75, 0.0),
    }
    found = win_rates(given)
    assert found.n.tolist() == [10, 100, 1000]
    assert (found.end.n_last_significant, found.end.n_from) == (100, 1000)
    assert found.at(100).rate.estimate == win_rate(*given[100]).rate.estimate
    table = found.columns()
    assert table["low"].tolist() == [r.rate.low for r in found.rates]
    assert table["runs"].tolist() == [3, 5, 5]
    assert (found.adjusted >= table["pvalue"]).all()
    assert "significant up to n = 100" in found.summary()
    assert "win rate" in found.table()
    with pytest.raises(InputError, match="n=7: is none of the sizes"):
        found.at(7)


def test_warnings_of_a_curve_are_given_once() -> None:
    a, b = draw(np.random.default_rng(14), (1, 1), 40)
    with pytest.warns(CurvewiseWarning) as caught:
        found = win_rates({10: (a, b), 100: (a, b)})
    assert len(caught) == len(found.warnings) == 1


GOOD = np.arange(12.0).reshape(2, 6)
LEFT = np.where([[True], [False]], GOOD, np.nan)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"losses": GOOD[:, :5]}, r"losses has 5 examples and scratch_losses has 6: .* order\.$"),
        ({"losses": GOOD.T, "scratch_losses": GOOD.T[:, :1]}, "They look transposed"),
        ({"losses": [[1.0, math.nan] * 3] * 2}, r"NaN on some examples of run\(s\) 0, 1"),
        ({"losses": [[math.nan] * 6] * 2}, "losses holds nothing but NaN"),
        ({"losses": LEFT, "scratch_losses": LEFT[::-1], "paired": True}, "in every pair of runs"),
        ({"losses": GOOD[None]}, "losses has shape"),
        ({"losses": [[1.0, 2.0], [1.0]]}, "runs of unequal numbers of examples"),
        ({"losses": ["a"] * 6}, "losses must hold numbers"),
        ({"losses": 3.0}, "losses has shape"),
        ({"losses": [1.0], "scratch_losses": [2.0]}, "one example"),
        ({"losses": GOOD[:1], "paired": True}, "paired=True: losses has 1 runs"),
        ({"groups": [1, 2]}, "groups has shape"),
        ({"groups": [1] * 6}, "groups has one group of all examples"),
        ({"groups": [1, 2, 3, 4, 5, math.nan]}, "groups has no value .* for 1 of 6"),
        ({"groups": ["a", "b", None, "a", "b", None]}, "groups has no value .* for 2 of 6"),
        ({"level": 1.5}, "level=1.5"),
    ],
    ids=[
        *("examples", "transposed", "nan", "all-nan", "no-pairs"),
        *("axes", "ragged", "words", "number", "single"),
        *("pairs", "groups", "one-group", "nan-group", "none-group", "level"),
    ],
)
def test_bad_input(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        win_rate(**{"losses": GOOD, "scratch_losses": GOOD, **given})


def test_predictions_of_different_tests() -> None:
    losses, errors = Predictions(GOOD, "losses"), Predictions(GOOD > 5, "errors")
    with pytest.raises(InputError, match="of kind 'losses' and scratch_losses of 'errors'"):
        win_rate(losses, errors)
    ids = [Predictions(GOOD, "losses", example_ids=np.arange(6) + i) for i in (0, 1)]
    with pytest.raises(InputError, match="different example_ids"):
        win_rate(*ids)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "by_n must be a dict"),
        ([1, 2], "by_n must be a dict"),
        ({-1: (GOOD, GOOD)}, "by_n has the key -1"),
        ({10: GOOD[:1]}, r"by_n\[10\] must be a pair"),
        ({10: (GOOD, GOOD[:, :3])}, "At n = 10: losses has 6 examples"),
    ],
    ids=["empty", "list", "negative", "single", "inner"],
)
def test_bad_curves(given: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        win_rates(given)


def test_a_p_value_at_its_floor_is_an_upper_bound() -> None:
    rng = np.random.default_rng(1)
    found = win_rate(rng.random((3, 4000)), 1 + rng.random((3, 4000)))
    assert "p < 0.001 against one half" in found.sentences()
    assert found.readable()["p"][0].text == "< 0.001"


def test_with_ties_a_verdict_is_about_wins_and_losses() -> None:
    """The method loses on 8% and ties on the rest: scratch does not beat it "more often than not"."""
    a, b = np.zeros((1, 500)), np.zeros((1, 500))
    a[0, :40] = 1.0
    found = quiet(a, b)
    assert found.verdict == "worse"
    assert "it loses significantly more often than it wins" in found.summary()
    assert "92.0% are ties" in found.summary()
    assert "it wins significantly more often than it loses" in quiet(b, a).summary()


def test_scores_are_not_compared_with_errors() -> None:
    """The negative of a score is below every error, so that the method would win everywhere."""
    scores, errors = Predictions(GOOD / 10, "scores"), Predictions(GOOD > 5, "errors")
    with pytest.raises(InputError, match="of kind 'scores' and scratch_losses of 'errors'"):
        win_rate(scores, errors)


def test_groups_with_a_missing_value_of_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    with pytest.raises(InputError, match=r"groups has no value .* for 1 of 6"):
        win_rate(GOOD, GOOD, groups=pandas.array(["a", "b", None, "a", "b", "c"], dtype="string"))


def test_a_level_is_written_as_it_is() -> None:
    losses = np.random.default_rng(0).normal(size=(2, 3, 20))
    found = win_rate(*losses, level=0.995)
    assert "(99.5% interval;" in found.sentences()
