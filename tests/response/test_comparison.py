"""Two curves against each other: by hand, by simulation, and where they cannot be paired."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from curvewise.errors import InputError
from curvewise.response.comparison import compare_responses, find_contrasting_pairs
from curvewise.response.curve import ResponseCurve
from curvewise.types import Interval

GRID = np.linspace(0, 0.5, 6)


def twins(
    rng: np.random.Generator, examples: int, better: float, pairs: bool = True
) -> tuple[ResponseCurve, ResponseCurve]:
    """Two models that find the same examples and partners hard; the first one less so."""
    own, other = rng.normal(size=(2, examples))
    order = [rng.permutation(examples) for _ in GRID]
    partners = np.stack([np.roll(o, 1)[np.argsort(o)] for o in order]) if pairs else None
    margin = 1.5 + own - 3 * GRID[:, None]
    if partners is not None:
        margin = margin + 3 * GRID[:, None] * other[partners]
    curves = []
    for name, shift in (("a", better), ("b", 0.0)):
        hits = margin + shift + 0.7 * rng.normal(size=margin.shape) > 0
        curves.append(
            ResponseCurve(
                GRID,
                hits.sum(axis=1),
                np.full(len(GRID), examples),
                model=name,
                hits=hits,
                partners=partners,
                settings={"sample": "s"},
            )
        )
    return curves[0], curves[1]


def test_without_partners_it_is_the_paired_test_on_examples() -> None:
    a, b = twins(np.random.default_rng(0), 300, 0.2, pairs=False)
    assert a.hits is not None
    assert b.hits is not None
    found = compare_responses(a, b)
    each = a.hits.mean(axis=0) - b.hits.mean(axis=0)
    error = stats.sem(each)
    interval = found.differences["mean_accuracy"]
    assert found.paired
    assert interval.estimate == pytest.approx(each.mean())
    assert interval.width == pytest.approx(2 * stats.t.ppf(0.975, 299) * error)
    oracle = stats.ttest_rel(a.hits.mean(axis=0), b.hits.mean(axis=0))
    assert found.pvalues["mean_accuracy"] == pytest.approx(oracle.pvalue)


@pytest.mark.slow
def test_coverage_of_the_true_difference_and_uniform_p_values() -> None:
    runs = [compare_responses(*twins(np.random.default_rng([5, i]), 150, 0.0)) for i in range(500)]
    covered = {
        score: np.mean([0.0 in run.differences[score] for run in runs]) for score in ("gi", "pal", "mean_accuracy")
    }
    assert all(0.915 < share < 0.985 for share in covered.values()), covered
    found = [run.pvalues["gi"] for run in runs]
    assert stats.kstest(found, "uniform").pvalue > 1e-3


def test_pairs_are_sharper_than_two_intervals() -> None:
    a, b = twins(np.random.default_rng(1), 2000, 0.1)
    paired, unpaired = compare_responses(a, b), compare_responses(a, b, paired=False)
    assert paired.paired
    assert not unpaired.paired
    assert paired.differences["gi"].estimate == pytest.approx(a.gi - b.gi)
    assert paired.differences["pal"].estimate == pytest.approx(a.pal - b.pal)
    assert paired.differences["gi"].width < 0.8 * unpaired.differences["gi"].width
    assert 0.3 < paired.correlation < 1
    assert unpaired.correlation == 0
    # Two independent errors add up.
    alone = [curve.gi_interval().width for curve in (a, b)]
    assert unpaired.differences["gi"].width == pytest.approx(np.hypot(*alone), rel=0.01)


def test_verdict_and_words() -> None:
    pytest.importorskip("pandas")
    a, b = twins(np.random.default_rng(2), 4000, 0.4)
    found = compare_responses(a, b)
    assert found.verdict == "a better"
    assert compare_responses(b, a).verdict == "b better"
    assert found.pvalues["gi"] < 0.001
    assert found.summary().startswith("a is significantly more robust to the perturbation than b (Gi-score).")
    assert compare_responses(b, a).summary().startswith("a is significantly more robust to the perturbation than b (Gi")
    assert "different winners" not in found.summary()
    pal = found.differences["pal"]
    turned = replace(found, differences={**found.differences, "pal": Interval(-pal.estimate, -pal.high, -pal.low)})
    assert "winners, significantly: Gi-score a, Pal-score b, mean accuracy a." in turned.summary()
    assert list(found.frame()["quantity"]) == ["gi", "pal", "mean_accuracy"]
    same = compare_responses(a, a)
    assert same.verdict == "undecided"
    assert same.pvalues["gi"] == 1
    assert same.differences["gi"].estimate == 0
    assert same.a != same.b


def test_what_cannot_be_paired() -> None:
    a, b = twins(np.random.default_rng(3), 50, 0.1)
    other, _ = twins(np.random.default_rng(4), 50, 0.1)
    elsewhere = replace(b, settings={"sample": "t"})
    counts = ResponseCurve.from_counts(GRID, b.correct, 50)
    fewer, _ = twins(np.random.default_rng(3), 40, 0.1)
    for curve, said in (
        (other, "their partners"),
        (elsewhere, "their examples"),
        (counts, "no single answers"),
        (fewer, "number of examples"),
    ):
        assert not compare_responses(a, curve).paired
        with pytest.raises(InputError, match=said):
            compare_responses(a, curve, paired=True)


def test_curves_that_do_not_tell_their_examples_are_paired_on_request() -> None:
    a, b = (replace(c, settings={}) for c in twins(np.random.default_rng(6), 50, 0.1))
    assert not compare_responses(a, b).paired
    assert compare_responses(a, b, paired=True).paired


def test_what_is_hard_to_compare_is_said() -> None:
    a = ResponseCurve.from_counts([0, 1], [9, 5], 10, layer="conv1", model="a")
    b = ResponseCurve.from_counts([0, 1], [9, 5], 10, layer="conv2", model="b")
    (warning,) = compare_responses(a, b).warnings
    assert "conv1 and conv2" in warning
    never = ResponseCurve.from_counts([0, 1], [0, 0], 10)
    assert np.isnan(compare_responses(a, never).pvalues["pal"])
    with pytest.raises(InputError, match="level=2"):
        compare_responses(a, b, level=2)


@pytest.mark.parametrize("examples", [4, 8, 1])
def test_equal_differences_are_as_certain_as_the_sign_test(examples: int) -> None:
    grid = np.array([0, 0.25, 0.5])
    right = np.ones((3, examples), dtype=bool)
    lost = right.copy()
    lost[2] = False
    a, b = (ResponseCurve(grid, h.sum(axis=1), np.full(3, examples), hits=h) for h in (right, lost))
    found = compare_responses(a, b, paired=True)
    expected = stats.binomtest(examples, examples).pvalue
    assert found.pvalues["gi"] == pytest.approx(expected)
    # The interval leaves 0 out if and only if the test does.
    assert (found.verdict == "a better") == (expected < 0.05)
    interval = found.differences["gi"]
    assert np.isnan(interval.low) if examples == 1 else interval.low < interval.estimate


def test_equal_answers_do_not_make_models_the_same() -> None:
    hits = np.ones((2, 50), dtype=bool)
    curve = ResponseCurve(np.array([0.0, 1.0]), hits.sum(axis=1), np.full(2, 50), hits=hits)
    found = compare_responses(curve, curve, paired=True)
    # Clopper and Pearson's upper end of 0 in 50.
    exact = stats.binomtest(0, 50).proportion_ci().high
    assert found.differences["gi"].high == pytest.approx(exact, rel=0.05)
    assert found.pvalues["gi"] == 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"perturbation": "noise"}, "differ in perturbation"),
        ({"signs": "keep"}, "differ in signs"),
        ({"magnitude": np.array([0.0, 0.2, 0.4])}, "different ranges"),
    ],
)
def test_curves_that_do_not_measure_the_same_are_refused(change, said):
    a = ResponseCurve.from_counts([0, 0.25, 0.5], [99, 90, 80], 100, perturbation="rotation")
    with pytest.raises(InputError, match=said):
        compare_responses(a, replace(a, **change))


def test_other_magnitudes_of_one_range_are_compared_unpaired():
    a = ResponseCurve.from_counts([0, 0.25, 0.5], [99, 90, 80], 100)
    b = ResponseCurve.from_counts([0, 0.1, 0.5], [99, 97, 80], 100)
    found = compare_responses(a, b)
    assert not found.paired
    assert any("different magnitudes" in w for w in found.warnings)


@pytest.mark.parametrize("seed", range(40))
def test_few_answers_give_possible_numbers(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size, total = int(rng.integers(2, 5)), int(rng.choice([1, 2, 5, 30]))
    magnitude = np.sort(rng.choice(6, size, replace=False)) / 10
    a, b = (ResponseCurve.from_counts(magnitude, rng.integers(0, total + 1, size), total) for _ in range(2))
    found = compare_responses(a, b)
    for score, interval in found.differences.items():
        p = found.pvalues[score]
        assert math.isnan(p) == math.isnan(interval.estimate)
        assert not p < 0
        assert not p > 1
        assert not interval.low > interval.estimate
        assert not interval.high < interval.estimate
        if score != "pal":
            assert -1 <= interval.low <= interval.high <= 1
    assert "nan" not in found.summary()
    assert "nan" not in a.summary()


def test_pairs_that_share_examples_count_half_where_all_differ_alike() -> None:
    """A sign test over 20 answers in pairs has 10 that share no example."""
    ring = np.roll(np.arange(20), 1)
    curves = [
        ResponseCurve(
            np.array([0.1, 0.5]),
            np.full(2, 20 * right),
            np.full(2, 20),
            hits=np.full((2, 20), bool(right)),
            partners=np.stack([ring, ring]),
            settings={"sample": "one"},
        )
        for right in (1, 0)
    ]
    found = compare_responses(*curves)
    assert found.paired
    assert found.pvalues["mean_accuracy"] == 2.0**-9


def random_curves(count: int = 12) -> tuple[dict[str, ResponseCurve], np.ndarray]:
    rng = np.random.default_rng(3)
    curves = {}
    for i in range(count):
        last = int(rng.integers(60, 66)) * 10
        between = np.sort(rng.integers(last, 1000, size=len(GRID) - 2))[::-1]
        curves[f"net {i}"] = ResponseCurve.from_counts(GRID, [1000, *between, last], 1000)
    return curves, rng.random(count) / 3


def test_contrasting_pairs_are_those_of_a_loop_over_all() -> None:
    curves, gap = random_curves()
    found = find_contrasting_pairs(curves, gap, tolerance=0.1, least=0.3)
    names, ends = list(curves), [c.correct[-1] / 1000 for c in curves.values()]
    wanted = {}
    for i, a in enumerate(names):
        for j, b in enumerate(names):
            alike = abs(ends[i] - ends[j]) <= 0.1 * (max(ends) - min(ends)) + 1e-9
            if gap[i] - gap[j] >= 0.3 * (gap.max() - gap.min()) and alike:
                wanted[a, b] = gap[i] - gap[j]
    assert len(wanted) > 2
    assert list(found.pairs) == sorted(wanted, key=lambda pair: -wanted[pair])
    agree = found.columns()["gi_agrees"]
    assert agree == [curves[a].gi > curves[b].gi for a, b in found.pairs]
    assert {*agree} == {True, False}
    assert min(s["gap"] for s in found.scores.values()) == 0
    assert max(s["gi"] for s in found.scores.values()) == 1
    by_name = find_contrasting_pairs(curves, dict(zip(names, gap, strict=True)), tolerance=0.1, least=0.3)
    assert by_name.pairs == found.pairs
    assert f"{len(wanted)} of 66 pairs" in found.sentences()
    assert "curves" not in found.to_dict()


def test_contrasting_pairs_say_what_is_wrong() -> None:
    curves, gap = random_curves(4)
    same = find_contrasting_pairs(curves, np.full(4, 0.1))
    assert same.pairs == ()
    assert same.sentences().startswith("0 of 6 pairs")
    for given, message in (
        ((curves, gap[:3]), r"gap has shape \(3,\) for 4 curves"),
        ((curves, [0.1, np.nan, 0.2, 0.3]), "gap is not a finite number for 'net 1': leave that model out"),
        ((curves, {"net 0": 1.0}), "'net 1' has a gap or a curve only"),
        ((dict(list(curves.items())[:1]), gap), "at least two curves"),
    ):
        with pytest.raises(InputError, match=message):
            find_contrasting_pairs(*given)
    with pytest.raises(InputError, match="tolerance=2"):
        find_contrasting_pairs(curves, gap, tolerance=2)
    other = {**curves, "net 3": replace(curves["net 3"], perturbation="noise")}
    with pytest.raises(InputError, match="differ in perturbation"):
        find_contrasting_pairs(other, gap)


def test_only_curves_are_compared() -> None:
    curve = ResponseCurve.from_counts([0, 1], [9, 8], 10)
    with pytest.raises(InputError, match="a dict is no response curve"):
        compare_responses(curve, {})
    with pytest.raises(InputError, match="a int is no response curve"):
        find_contrasting_pairs({"a": curve, "b": 3}, [0.1, 0.2])
