"""Dependent pairs: scipy's exact test, brute force, and independent data with rare errors."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from scipy.stats import fisher_exact, t

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.stats import benjamini_hochberg, holm
from curvewise.types import Predictions
from curvewise.variance import pairs
from curvewise.variance.pairs import FisherTest, measure_dependent_pairs, smallest_pvalue

AXES = ("runs", "examples")


def scipy_pvalue(a: int, b: int, both: int, runs: int) -> float:
    return fisher_exact([[both, a - both], [b - both, runs - a - b + both]])[1]


@pytest.mark.slow
@pytest.mark.parametrize("runs", [2, 7, 40, 300, 5000])
def test_pvalues_are_scipys(runs):
    rng = np.random.default_rng(runs)
    a, b = rng.integers(0, runs + 1, (2, 200))
    anything = [rng.integers(max(0, x + y - runs), min(x, y) + 1) for x, y in zip(a, b, strict=True)]
    likely = [rng.hypergeometric(x, runs - x, y) if y else 0 for x, y in zip(a, b, strict=True)]
    both = np.where(rng.random(200) < 0.5, anything, likely)
    expected = [scipy_pvalue(*row, runs) for row in zip(a, b, both, strict=True)]
    np.testing.assert_allclose(FisherTest(runs).pvalues(a, b, both), expected, rtol=1e-8)


def test_smallest_pvalue_is_that_of_perfect_agreement():
    assert smallest_pvalue(10) == pytest.approx(scipy_pvalue(5, 5, 5, 10))


def tangled(runs=300, n=24, seed=0):
    """Independent errors, but for 3 with 7 and 11 with 12."""
    rng = np.random.default_rng(seed)
    errors = rng.random((runs, n)) < rng.uniform(0.01, 0.6, n)
    errors[:, 3] = rng.random(runs) < 0.4
    errors[:, 7] = errors[:, 3] ^ (rng.random(runs) < 0.15)
    errors[:, 11] = rng.random(runs) < 0.5
    errors[:, 12] = ~errors[:, 11] & (rng.random(runs) < 0.7)
    return errors


@pytest.mark.parametrize("multiplicity", ["holm", "bh"])
def test_against_all_pairs_by_hand(multiplicity):
    errors = tangled()
    found = measure_dependent_pairs(errors, axes=AXES, multiplicity=multiplicity, min_effect=0.03)
    runs, n = errors.shape
    rows = {}
    for i, j in itertools.combinations(range(n), 2):
        right_i, right_j = ~errors[:, i], ~errors[:, j]
        gap = (right_i & right_j).mean() - right_i.mean() * right_j.mean()
        p = scipy_pvalue(right_i.sum(), right_j.sum(), (right_i & right_j).sum(), runs)
        rows[i, j] = (gap, p if abs(gap) >= 0.03 else 1.0)
    adjust = {"holm": holm, "bh": benjamini_hochberg}[multiplicity]
    adjusted = dict(zip(rows, adjust([p for _, p in rows.values()]), strict=True))
    expected = {k for k, p in adjusted.items() if p <= 0.05}
    assert set(zip(found.first.tolist(), found.second.tolist(), strict=True)) == expected
    assert {(3, 7), (11, 12)} <= expected
    assert found.dependent == len(expected)
    assert found.pairs == n * (n - 1) // 2
    assert found.deviating == sum(abs(gap) >= 0.03 for gap, _ in rows.values())
    for k, pair in enumerate(zip(found.first.tolist(), found.second.tolist(), strict=True)):
        assert found.differences[k].estimate == pytest.approx(rows[pair][0])
        assert found.pvalues[k] == pytest.approx(rows[pair][1], rel=1e-8)
        assert found.adjusted_pvalues[k] == pytest.approx(adjusted[pair], rel=1e-8)
        both = (~errors[:, pair[0]] & ~errors[:, pair[1]]).mean()
        assert found.both_correct[k] == pytest.approx(both)
    sizes = [abs(d.estimate) for d in found.differences]
    assert sizes == sorted(sizes, reverse=True)


def pairs_by_z(errors, limit):
    runs, counts = len(errors), errors.sum(axis=0).astype(float)
    both = errors.T.astype(np.float32) @ errors.astype(np.float32)
    spread = np.sqrt(np.outer(counts * (runs - counts), counts * (runs - counts)) / (runs - 1))
    with np.errstate(invalid="ignore", divide="ignore"):
        z = (both * runs - np.outer(counts, counts)) / spread
    return int((np.abs(np.triu(z, k=1)) > limit).sum())


@pytest.mark.slow
def test_z_rule_flags_independent_pairs_and_the_exact_test_does_not():
    """With rare errors a common error or two is many standard errors, and means nothing."""
    rng = np.random.default_rng(1)
    by_z, exact = [], []
    for _ in range(12):
        errors = rng.random((1000, 800)) < rng.beta(0.1, 10, 800)
        by_z.append(pairs_by_z(errors, 6))
        exact.append(measure_dependent_pairs(errors, axes=AXES, min_effect=0.0005).dependent)
    assert min(by_z) > 50  # of 319,600 independent pairs: a normal variable gives none
    assert sum(n > 0 for n in exact) <= 3  # 5% of searches


def test_error_rate_over_all_pairs():
    """Any false pair in at most 5% of searches (fewer: the test is discrete)."""
    rng = np.random.default_rng(0)
    false = 0
    for _ in range(100):
        errors = rng.random((150, 30)) < rng.uniform(0.02, 0.5, 30)
        false += measure_dependent_pairs(errors, axes=AXES, min_effect=0.01).dependent > 0
    assert false <= 11


def test_intervals_hold_the_true_deviation():
    """Right together in .4·.85 of the runs and more: covariance of a copy that is noisy."""
    truth = 0.4 * 0.85 - 0.4 * (0.4 * 0.85 + 0.6 * 0.15)
    hits = 0
    for seed in range(60):
        found = measure_dependent_pairs(tangled(seed=seed), axes=AXES)
        spot = np.flatnonzero((found.first == 3) & (found.second == 7))[0]
        hits += truth in found.differences[spot]
        assert 0 not in found.differences[spot]
    assert hits >= 58  # the level allows for 276 pairs


def test_order_of_runs_and_examples_does_not_matter():
    errors = tangled()
    rng = np.random.default_rng(5)
    runs, examples = rng.permutation(errors.shape[0]), rng.permutation(errors.shape[1])
    one = measure_dependent_pairs(errors, axes=AXES)
    shuffled = Predictions(errors[runs][:, examples], "errors", example_ids=examples)
    two = measure_dependent_pairs(shuffled)
    expected = [set(p) for p in zip(one.first_ids, one.second_ids, strict=True)]
    assert [set(p) for p in zip(two.first_ids, two.second_ids, strict=True)] == expected
    np.testing.assert_allclose(two.adjusted_pvalues, one.adjusted_pvalues)


def test_packed_labels_and_hits_give_the_same():
    errors = tangled()
    n = errors.shape[1]
    plain = measure_dependent_pairs(errors, axes=AXES).to_dict()
    packed = Predictions(np.packbits(~errors, axis=1), "correct", packed=n)
    assert measure_dependent_pairs(packed).to_dict() == plain
    labels = np.arange(n) % 5
    said = np.where(errors, (labels + 1) % 5, labels)
    assert measure_dependent_pairs(said, labels).to_dict() == plain


@pytest.mark.slow
def test_many_pairs_are_counted_in_bounded_memory(monkeypatch):
    rng = np.random.default_rng(0)
    errors = rng.random((300, 40)) < 0.3
    errors[:60] = True  # runs that failed: every pair is dependent
    full = measure_dependent_pairs(errors, axes=AXES, limit=50)
    assert full.dependent > 700
    monkeypatch.setattr(pairs, "MOST", 100)
    monkeypatch.setattr(pairs, "iter_pair_counts", lambda c: _tiles(errors, 8))
    with pytest.warns(CurvewiseWarning, match="Bonferroni"):
        few = measure_dependent_pairs(errors, axes=AXES, limit=50)
    bonferroni = 0
    for i, j in itertools.combinations(range(40), 2):
        a, b, both = errors[:, i], errors[:, j], errors[:, i] & errors[:, j]
        gap = abs(both.mean() - a.mean() * b.mean())
        p = scipy_pvalue(a.sum(), b.sum(), both.sum(), 300)
        bonferroni += gap >= 0.02 and p * 780 <= 0.05
    assert few.dependent == bonferroni <= full.dependent
    assert few.first.tolist() == full.first.tolist()
    assert few.deviating == full.deviating


def _tiles(errors, side):
    columns = errors.T.astype(np.int32)
    for i in range(0, len(columns), side):
        for j in range(i, len(columns), side):
            yield i, j, columns[i : i + side] @ columns[j : j + side].T


def test_examples_that_cannot_deviate_are_left_out_without_loss():
    errors = tangled(n=24)
    rare = np.zeros((errors.shape[0], 60), dtype=bool)
    rare[0] = True
    found = measure_dependent_pairs(np.hstack([errors, rare]), axes=AXES)
    assert found.pairs == 84 * 83 // 2
    assert {(3, 7), (11, 12)} <= set(zip(found.first.tolist(), found.second.tolist(), strict=True))


def test_says_how_long_it_takes_and_when_runs_are_too_few(monkeypatch):
    rng = np.random.default_rng(0)
    for speed in ("SPEED", "PLAIN_SPEED"):
        monkeypatch.setattr(pairs, speed, 40**2 / 2 * 2 / 600)
    with pytest.warns(CurvewiseWarning, match="about 10 minutes"):
        measure_dependent_pairs(rng.random((100, 40)) < 0.3, axes=AXES)
    monkeypatch.undo()
    with pytest.warns(CurvewiseWarning, match="10 runs are too few"):
        found = measure_dependent_pairs(rng.random((10, 400)) < 0.3)
    assert found.dependent == 0
    assert "no pair violates" in found.summary()


def test_progress_goes_to_one():
    seen: list[float] = []
    errors = np.random.default_rng(0).random((200, 600)) < 0.4
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CurvewiseWarning)
        measure_dependent_pairs(errors, progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 1.0


def test_nothing_to_find():
    errors = np.zeros((50, 60), dtype=bool)
    found = measure_dependent_pairs(errors)
    assert (found.dependent, found.deviating, len(found.first)) == (0, 0, 0)
    assert all(len(column) == 0 for column in found.columns().values())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_effect": 0.0}, "min_effect=0.0"),
        ({"min_effect": 0.5}, "min_effect=0.5"),
        ({"multiplicity": "none"}, "multiplicity='none'"),
        ({"limit": 0}, "limit=0"),
        ({"level": 1.0}, "level=1.0"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(InputError, match=message):
        measure_dependent_pairs(np.zeros((4, 9), dtype=int), **options)


def test_losses_have_no_pairs():
    with pytest.raises(InputError, match="0/1 error"):
        measure_dependent_pairs(np.random.default_rng(0).random((4, 9)), kind="losses")


def counted(first: int, second: int, both: int, runs: int) -> np.ndarray:
    """Errors of two examples that are right so often, and both at once."""
    right = np.zeros((runs, 2), dtype=bool)
    right[:first, 0] = True
    right[first - both : first - both + second, 1] = True
    return ~right


def test_a_pair_named_by_its_indices_is_the_papers():
    """Figure 4 of Jordan 2023: images 776 and 796, right in 21,736 and 36,392 of 60,000 runs, both in 13,103."""
    errors = np.zeros((60_000, 800), dtype=bool)
    errors[:, [776, 796]] = counted(21_736, 36_392, 13_103, 60_000)
    found = measure_dependent_pairs(errors, axes=("runs", "examples"), pairs=[(776, 796)])
    assert (found.pairs, found.dependent, found.deviating) == (1, 0, 0)
    assert (found.first[0], found.second[0]) == (776, 796)
    assert found.both_correct[0] == pytest.approx(13_103 / 60_000)
    assert round(found.expected_correct[0], 4) == 0.2197
    table = [[13_103, 21_736 - 13_103], [36_392 - 13_103, 60_000 - 21_736 - 36_392 + 13_103]]
    assert found.pvalues[0] == pytest.approx(fisher_exact(table)[1], rel=1e-6)
    assert found.pvalues[0] > 0.05
    assert found.differences[0].low < 0 < found.differences[0].high
    told = found.summary()
    assert "Examples 776 and 796 are right in 36.2% and 60.7% of 60,000 runs, both in 21.8%" in told
    assert "do not significantly deviate" in told


def test_pairs_that_are_named_are_all_listed():
    rng = np.random.default_rng(3)
    errors = rng.random((300, 40)) < 0.3
    errors[:, 7] = errors[:, 3] ^ (rng.random(300) < 0.1)
    names = np.array([f"image {i}" for i in range(40)])
    given = Predictions(errors, "errors", example_ids=names)
    asked = [("image 9", "image 1"), ("image 3", "image 7")]
    found = measure_dependent_pairs(given, pairs=asked)
    assert list(zip(found.first_ids, found.second_ids, strict=True)) == asked
    assert found.dependent == 1
    searched = measure_dependent_pairs(given)
    assert found.pvalues[1] == searched.pvalues[0]
    assert found.adjusted_pvalues[1] == pytest.approx(2 * found.pvalues[1])
    # The interval of the search over all pairs is wider than that of two.
    assert found.differences[1].width < searched.differences[0].width
    for wrong, message in (([("image 9", "x")], "no example is called so"), ([], "is empty"), ([(1,)], "two examples")):
        with pytest.raises(InputError, match=message):
            measure_dependent_pairs(given, pairs=wrong)


def test_pairs_that_are_no_pairs_are_refused():
    errors = np.random.default_rng(0).random((20, 30)) < 0.2
    with pytest.raises(InputError, match="give two examples for each"):
        measure_dependent_pairs(errors, pairs=[7, 9], axes=("runs", "examples"))


def test_intervals_of_the_pairs_found_have_the_level_that_the_search_leaves():
    rng = np.random.default_rng(6)
    errors = rng.random((300, 20)) < 0.3
    errors[:, 1:10:2] = errors[:, :10:2] ^ (rng.random((300, 5)) < 0.1)
    strict, bh = (
        measure_dependent_pairs(errors, axes=("runs", "examples"), multiplicity=how) for how in ("holm", "bh")
    )
    assert strict.dependent == bh.dependent == 5
    # Benjamini and Yekutieli (2005): 5 of 190 pairs were found.
    expected = t.ppf(1 - 0.05 * 5 / 190 / 2, 299) / t.ppf(1 - 0.05 / 190 / 2, 299)
    for one, other in zip(strict.differences, bh.differences, strict=True):
        assert other.width / one.width == pytest.approx(expected)
