"""The result of a measurement: scores, intervals, words, tables."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy import stats

from curvewise.errors import InputError
from curvewise.response.curve import (
    ResponseCurve,
    ResponseCurves,
    ResponseSensitivity,
    answers_variance,
    score_error,
    score_slope,
)
from curvewise.response.scores import gi_score, pal_score

GRID = np.array([0.0, 0.1, 0.2, 0.3, 0.4, 0.5])
RIGHT = np.array([995, 980, 950, 900, 850, 700])


@pytest.fixture
def curve() -> ResponseCurve:
    return ResponseCurve.from_counts(GRID, RIGHT, 1000, clean_correct=995, clean_total=1000, model="net")


def test_scores_are_those_of_the_plain_functions(curve: ResponseCurve) -> None:
    assert curve.gi == pytest.approx(gi_score(GRID, RIGHT / 1000))
    assert curve.pal == pytest.approx(pal_score(GRID, RIGHT / 1000))
    assert curve.mean_accuracy == pytest.approx(np.mean(RIGHT / 1000))
    assert curve.clean_accuracy == 0.995
    assert curve.gi_relative == pytest.approx(gi_score(GRID, RIGHT / 1000, relative_to=0.995))


def test_signs_are_those_of_the_curve() -> None:
    both = {"magnitude": [-1, 0, 2], "correct": [50, 100, 80], "total": 100}
    assert ResponseCurve.from_counts(**both).gi == pytest.approx(gi_score([-1, 0, 2], [0.5, 1, 0.8]))
    kept = ResponseCurve.from_counts(**both, signs="keep")
    assert kept.gi == pytest.approx(gi_score([-1, 0, 2], [0.5, 1, 0.8], signs="keep"))
    assert kept.gi != pytest.approx(ResponseCurve.from_counts(**both).gi)


def test_intervals_of_accuracy_are_wilsons(curve: ResponseCurve) -> None:
    oracle = pytest.importorskip("statsmodels.stats.proportion")
    low, high = curve.accuracy_interval(0.9)
    for i, count in enumerate(RIGHT):
        expected = oracle.proportion_confint(count, 1000, alpha=0.1, method="wilson")
        assert (low[i], high[i]) == pytest.approx(expected)


def test_intervals_of_scores_hold_them_and_shrink_with_examples(curve: ResponseCurve) -> None:
    many = ResponseCurve.from_counts(GRID, RIGHT * 100, 100_000)
    for score, interval in curve.scores().items():
        assert interval.estimate == pytest.approx(getattr(curve, score))
    for small, large in (
        (curve.gi_interval(), many.gi_interval()),
        (curve.pal_interval(), many.pal_interval()),
        (curve.mean_interval(), many.mean_interval()),
    ):
        assert small.estimate in small
        assert large.width == pytest.approx(small.width / 10, rel=0.1)


def test_order_does_not_matter() -> None:
    mixed = [3, 0, 5, 1, 4, 2]
    curve = ResponseCurve.from_counts(GRID[mixed], RIGHT[mixed], 1000)
    assert curve.magnitude.tolist() == GRID.tolist()
    assert curve.correct.tolist() == RIGHT.tolist()


def test_a_network_that_is_never_right() -> None:
    never = ResponseCurve.from_counts([0, 1], [0, 0], 10, clean_total=10)
    assert never.gi == 1
    assert math.isnan(never.pal)
    assert math.isnan(never.pal_interval().low)
    assert math.isnan(never.gi_relative)
    assert "Gi-score 1" in never.summary()


def test_clean_accuracy_is_that_of_magnitude_0_or_unknown() -> None:
    assert ResponseCurve.from_counts([0, 1], [9, 5], 10).clean_accuracy == 0.9
    assert math.isnan(ResponseCurve.from_counts([1, 2], [9, 5], 10).clean_accuracy)


def test_a_clean_accuracy_counted_apart_adds_its_own_uncertainty() -> None:
    counts = ([0, 0.25, 0.5], [9900, 9500, 9000], 10_000)
    same = ResponseCurve.from_counts(*counts, clean_correct=9900, clean_total=10_000)
    assert same.gi_relative_interval() == ResponseCurve.from_counts(*counts).gi_relative_interval()
    apart = ResponseCurve.from_counts(*counts, clean_correct=45, clean_total=50)
    found = apart.gi_relative_interval()
    # Its clean accuracy is 0.90 ± 0.08, and the relative score 1 − 0.96 / 0.90.
    assert found.high - found.low == pytest.approx(2 * 1.96 * 0.958 / 0.9**2 * (0.9 * 0.1 / 50) ** 0.5, rel=0.02)


def test_words_table_and_json(curve: ResponseCurve) -> None:
    pytest.importorskip("pandas")
    assert "net" in curve.summary()
    assert "99.5% clean and 70.0%" in curve.summary()
    assert list(curve.frame().columns) == ["magnitude", "correct", "total", "accuracy", "low", "high"]
    assert "| 0.5 " in curve.table()
    kept = json.loads(json.dumps(curve.to_dict()))
    assert kept["scores"]["gi"]["estimate"] == pytest.approx(curve.gi)
    assert "hits" not in kept


@pytest.mark.parametrize(
    ("correct", "total", "said"),
    [
        ([5, 11], 10, "between 0 and total"),
        ([0.5, 1], 10, "whole numbers"),
        ([1, 2], 0, "at least 1"),
        ([1, np.nan], 10, "finite"),
        ([1, 2, 3], 10, "same length"),
    ],
    ids=["too many", "shares", "none", "nan", "lengths"],
)
def test_counts_that_are_none(correct: list[float], total: int, said: str) -> None:
    with pytest.raises(InputError, match=said):
        ResponseCurve.from_counts([0, 1], correct, total)


@pytest.mark.slow
def test_accuracies_of_pairs_hold_the_truth() -> None:
    """A pair fails with either; 95% nominal, 800 samples leave a standard error of 0.8%."""
    rng, examples, held = np.random.default_rng(1), 200, []
    for _ in range(800):
        good = rng.random(examples) < 0.9
        order = rng.permutation(examples)
        partners = np.tile(np.roll(order, 1)[np.argsort(order)], (2, 1))
        hits = np.stack([good & good[partners[0]]] * 2)
        total = np.full(2, examples)
        curve = ResponseCurve(np.array([0.1, 0.2]), hits.sum(axis=1), total, hits=hits, partners=partners)
        low, high = curve.accuracy_interval()
        held.append(low[0] <= 0.81 <= high[0])
    assert 0.925 < np.mean(held) < 0.985


PLACES = np.linspace(0, 0.5, 6)


def rings(labels: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """A partner of the same class for each example, for each magnitude."""
    partners = np.empty((count, len(labels)), dtype=np.int64)
    for row in partners:
        for label in np.unique(labels):
            members = rng.permutation(np.flatnonzero(labels == label))
            row[members] = np.roll(members, 1)
    return partners


def measured(rng: np.random.Generator, examples: int, pairs: bool, easier: float = 0.0) -> ResponseCurve:
    """Answers that depend on the example, on its partner, and on chance."""
    labels = np.arange(examples) % 4
    own, other = rng.normal(size=(2, examples))
    partners = rings(labels, len(PLACES), rng) if pairs else None
    margin = 2 + easier + own - 4 * PLACES[:, None]
    if partners is not None:
        margin = margin + 4 * PLACES[:, None] * other[partners]
    hits = margin + 0.5 * rng.normal(size=margin.shape) > 0
    total = np.full(len(PLACES), examples)
    return ResponseCurve(PLACES, hits.sum(axis=1), total, hits=hits, partners=partners)


def test_every_pair_of_answers_that_share_an_example_counts_once() -> None:
    rng = np.random.default_rng(1)
    labels = np.array([0, 0, 0, 0, 1, 1, 2, 2, 2, 2, 2, 2])
    partners = rings(labels, 3, rng)
    answers = rng.random((3, 12))
    weights = np.array([0.5, 0.3, 0.2])
    parts = weights[:, None] * (answers - answers.mean(axis=1, keepdims=True))
    members = [(part, {i, int(partners[m, i])}) for (m, i), part in np.ndenumerate(parts)]
    shared = sum(a * b for a, own in members for b, other in members if own & other)
    alone = np.sum(parts.sum(axis=0) ** 2) / (12 * 11)
    found = answers_variance(weights, answers, partners)
    assert found == pytest.approx(max(shared / (12 * 8), alone))


def test_without_partners_it_is_the_cluster_variance_of_statsmodels() -> None:
    rng = np.random.default_rng(2)
    answers = (rng.random((4, 30)) < 0.7).astype(float)
    weights = np.array([0.4, 0.3, 0.2, 0.1])
    # A mean over examples of what each brings in all magnitudes.
    oracle = pytest.importorskip("statsmodels.api")
    fit = oracle.OLS(weights @ answers, np.ones(30)).fit()
    assert answers_variance(weights, answers, None) == pytest.approx(fit.bse[0] ** 2)


@pytest.mark.slow
@pytest.mark.parametrize("pairs", [False, True], ids=["single", "pairs"])
def test_intervals_cover_the_truth(pairs: bool) -> None:
    """95% nominal; 600 samples leave a standard error of 0.9%."""
    truth = np.mean([measured(np.random.default_rng([9, i]), 20_000, pairs).gi for i in range(20)])
    found = [measured(np.random.default_rng([7, i]), 120, pairs) for i in range(600)]
    covered = np.mean([truth in curve.gi_interval() for curve in found])
    assert 0.915 < covered < 0.975
    scores = np.array([curve.gi for curve in found])
    errors = np.array([score_error(curve, "gi") for curve in found])
    assert scores.std() / np.sqrt((errors**2).mean()) == pytest.approx(1, abs=0.12)


def test_partners_matter() -> None:
    """What partners do to answers makes scores vary more than examples alone would."""
    curve = measured(np.random.default_rng(3), 4000, True)
    assert curve.hits is not None
    weights = score_slope(curve, "gi")
    hits = curve.hits.astype(float)
    alone = answers_variance(weights, hits, None)
    assert answers_variance(weights, hits, curve.partners) > 1.1 * alone


def test_slopes_are_derivatives() -> None:
    rng = np.random.default_rng(4)
    counts = np.array([990, 950, 900, 800, 700, 500])
    curve = ResponseCurve.from_counts(PLACES, counts, 1000)
    for score in ("gi", "pal", "mean_accuracy"):
        step = rng.choice([-1, 1], size=6)
        moved = ResponseCurve.from_counts(PLACES, counts + step, 1000)
        change = getattr(moved, score) - getattr(curve, score)
        assert change == pytest.approx(score_slope(curve, score) @ step / 1000, rel=1e-2, abs=1e-6)


def test_counts_alone_are_binomial() -> None:
    curve = ResponseCurve.from_counts([0, 1], [80, 60], 100)
    p = np.array([80.5, 60.5]) / 101
    expected = np.sqrt((0.25 * p * (1 - p) / 100).sum())
    assert score_error(curve, "mean_accuracy") == pytest.approx(expected)


def test_all_right_is_not_known_to_be_without_error() -> None:
    hits = np.ones((3, 50), dtype=bool)
    curve = ResponseCurve(np.arange(3.0), hits.sum(axis=1), np.full(3, 50), hits=hits)
    interval = curve.gi_interval()
    assert interval.estimate == pytest.approx(0, abs=1e-12)
    exact = stats.binomtest(0, 50).proportion_ci().high
    for found in (interval.high, curve.gi_relative_interval().high, 1 - curve.mean_interval().low):
        assert found == pytest.approx(exact, rel=0.12)
    assert 1 - curve.pal_interval().low / curve.pal == pytest.approx(exact, rel=0.12)


@pytest.mark.parametrize("failures", [2, 3, 4])
def test_few_failures_are_covered_as_wilsons_interval_does(failures: int) -> None:
    """Examples that fail at every magnitude: exact, a sum over how many a sample has."""
    share, covered = failures / 1000, {"gi": 0.0, "mean": 0.0, "gi_relative": 0.0, "pal": 0.0}
    for count in range(25):
        hits = np.tile(np.arange(1000) >= count, (6, 1))
        curve = ResponseCurve(PLACES, hits.sum(axis=1), np.full(6, 1000), hits=hits)
        chance = stats.binom.pmf(count, 1000, share)
        covered["gi"] += chance * (share in curve.gi_interval())
        covered["mean"] += chance * (1 - share in curve.mean_interval())
        covered["gi_relative"] += chance * (0 in curve.gi_relative_interval())
        covered["pal"] += chance * (84 in curve.pal_interval())
    assert min(covered.values()) > 0.92, covered
    assert max(covered["gi"], covered["mean"]) < 0.98


@pytest.mark.slow
@pytest.mark.parametrize("pairs", [False, True], ids=["single", "pairs"])
def test_intervals_cover_the_truth_with_few_examples(pairs: bool) -> None:
    """95% nominal; with few failures rather more than that, and never much less."""
    rngs = [np.random.default_rng([9, i]) for i in range(20)]
    truth = np.mean([measured(rng, 20_000, pairs, easier=1.0).gi for rng in rngs])
    found = [measured(np.random.default_rng([8, i]), 24, pairs, easier=1.0) for i in range(600)]
    assert 0.925 < np.mean([truth in curve.gi_interval() for curve in found]) < 0.995


def test_unknown_score() -> None:
    with pytest.raises(InputError, match="score='gini'"):
        score_error(ResponseCurve.from_counts([0, 1], [1, 1], 1), "gini")


LEVELS = np.array([0.0, 0.25, 0.5])


def repeated(examples: int, rng: np.random.Generator, repeats: int = 200) -> list[ResponseCurve]:
    found = []
    for _ in range(repeats):
        hits = rng.random((3, examples)) < np.array([0.95, 0.9, 0.7])[:, None]
        total = np.full(3, examples)
        found.append(ResponseCurve(LEVELS, hits.sum(axis=1), total, hits=hits, settings={"seconds": examples}))
    return found


@pytest.mark.slow
def test_spread_falls_with_the_root_of_the_batches_and_is_what_curves_expect() -> None:
    rng = np.random.default_rng(0)
    curves = {count: repeated(count * 64, rng) for count in (1, 4, 16)}
    found = ResponseSensitivity.from_curves(64, curves)
    table = found.columns()
    assert table["examples"].tolist() == [64, 256, 1024]
    for score in ("gi", "pal", "mean_accuracy"):
        values = np.array([[getattr(c, score) for c in curves[count]] for count in (1, 4, 16)])
        assert table[score] == pytest.approx(values.mean(axis=1))
        assert table[f"{score}_sd"] == pytest.approx(values.std(axis=1, ddof=1))
    assert found.spread() / found.spread()[0] == pytest.approx([1, 1 / 2, 1 / 4], rel=0.25)
    assert table["gi_expected_sd"] == pytest.approx(table["gi_sd"], rel=0.2)
    assert table["seconds"].tolist() == [64, 256, 1024]
    assert "over 200 repeats" in found.summary()


def test_bad_repeats() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match="same number of repeats"):
        ResponseSensitivity.from_curves(8, {1: repeated(8, rng, 2), 2: repeated(16, rng, 3)})
    found = ResponseSensitivity.from_curves(8, {1: repeated(8, rng, 2)})
    with pytest.raises(InputError, match="score='gini'"):
        found.spread("gini")


def test_curves_of_several_models_and_perturbations_are_read_as_one_table():
    made = {
        kind: ResponseCurves(
            (name, ResponseCurve.from_counts([0, 1], [90, low], 100, model=name, perturbation=kind))
            for name, low in (("net", 80), ("svm", 70))
        )
        for kind in ("noise", "rotation")
    }
    curves = ResponseCurves(made)
    assert isinstance(curves, dict)
    assert [(c.perturbation, c.model) for c in curves.curves] == [(k, m) for k in made for m in ("net", "svm")]
    assert curves.columns()["gi"] == [c.gi for c in curves.curves]
    assert len(str(curves).splitlines()) == 4
    assert curves.summary() == str(curves)
    assert str(curves).splitlines()[1].startswith("Response of svm to noise")
    shown = curves._repr_html_()
    assert shown.count("<tr>") == 5
    assert "85.0%" in shown  # the mean accuracy of net
    assert "net & noise" in curves.to_latex()


def test_all_texts_of_a_curve_take_the_level() -> None:
    curve = ResponseCurve.from_counts([0, 0.25, 0.5], [99, 95, 80], 100)
    half = curve.gi_interval(0.5)
    assert str(half) in curve.sentences(0.5)
    found = curve.to_dict(0.5)
    assert found["scores"]["gi"]["low"] == half.low
    assert str(half) in found["summary"]
    np.testing.assert_array_equal(curve.columns(0.5)["low"], curve.accuracy_interval(0.5)[0])
    assert str(curve.gi_interval()) in curve.to_dict()["summary"]


@pytest.mark.parametrize(
    ("total", "clean", "said"),
    [
        ([10, 10, 10], {}, "total has shape"),
        (10, {"clean_correct": 20, "clean_total": 10}, "clean_correct"),
        (10, {"clean_correct": 5}, "clean_correct"),
    ],
)
def test_counts_that_cannot_be(total, clean, said):
    with pytest.raises(InputError, match=said):
        ResponseCurve.from_counts([0, 1], [9, 8], total, **clean)
