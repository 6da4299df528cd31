"""Ranking checkpoints: order, intervals that cover, failures, cost."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau, norm

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.ranking.measure import CheckpointFeatures, RankingMeasure, as_targets
from curvewise.ranking.prediction import nleep
from curvewise.ranking.rank import RELIABILITY, UNKNOWN, RankSettings, rank_candidates, rank_features
from curvewise.ranking.scoring import (
    MEASURES,
    Candidate,
    Scorer,
    ScoreReplicates,
    draw_part,
    draw_parts,
    find_measures,
    hit_replicates,
    rank_limits,
    reused,
    score_limits,
    share_for,
    split_rows,
)


def separation(features, labels):
    centres = np.stack([features[labels == c].mean(axis=0) for c in np.unique(labels)])
    return float(centres.var() / features.var())


def right(features, labels, *, test_features, test_labels):
    """Share of test examples whose nearest centre is that of their class."""
    names = np.unique(labels)
    centres = np.stack([features[labels == c].mean(axis=0) for c in names])
    near = test_features @ centres.T - 0.5 * (centres**2).sum(axis=1)
    return float(np.mean(names[near.argmax(axis=1)] == test_labels))


def lucky(features, labels, *, rng):
    return float(np.random.default_rng(rng).random() + features.mean())


def measure(name, function, **options):
    return RankingMeasure(name, function, "", "", "", lambda n, d, c: 10.0 * n * d * c, **options)


KNOWN = {
    "separation": measure("separation", separation),
    "right": measure("right", right, splits=True),
    "lucky": measure("lucky", lucky, seeded=True),
    "sure": measure("sure", lambda p, labels: float(p.max(axis=1).mean()), takes="probabilities"),
}


def make_pool(shifts, n=240, classes=3, seed=0):
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % classes
    shared = rng.normal(size=(n, 4))
    pool = {
        f"net {i}": labels[:, None] * shift + shared + 0.5 * rng.normal(size=(n, 4)) for i, shift in enumerate(shifts)
    }
    return pool, labels


def rank(pool, labels, measures=("separation",), **options):
    named = [measures] if isinstance(measures, str) or callable(measures) else measures
    given = [KNOWN.get(m, m) if isinstance(m, str) else m for m in named]
    return rank_features(pool, labels, given, **{"reliability": 0.8, **options})


def test_a_ranking_says_what_it_should():
    pool, labels = make_pool([0.2, 1.5, 0.7])
    found = rank(pool, labels, ("separation", "right"), k=2)
    assert found.checkpoints == ("net 1", "net 2", "net 0")
    assert found.by == "separation"
    np.testing.assert_array_equal(found.ranks, [1, 2, 3])
    expected = [separation(pool[name], labels) for name in found.checkpoints]
    np.testing.assert_allclose(found.scores["separation"], expected)
    assert (found.score_low < expected).all()
    assert (found.score_high > expected).all()
    assert found.top == ("net 1", "net 2")
    assert found.chance_top.sum() == pytest.approx(1)
    assert found.chance_best.sum() == pytest.approx(1)
    assert found.best_certainty == pytest.approx(found.chance_best[:2].sum())
    assert found.examples == 240
    assert found.test_examples == 48
    tau = kendalltau(found.scores["separation"], found.scores["right"]).statistic
    assert found.agreement[0, 1] == pytest.approx(tau)
    np.testing.assert_array_equal(np.diag(found.agreement), 1)
    json.dumps(found.to_dict(), allow_nan=False)
    assert list(found.columns())[:4] == ["checkpoint", "rank", "rank_low", "rank_high"]
    assert "net 1" in found.summary()
    assert "among the first 2" in found.summary()


def test_cost_is_counted_with_the_forward_pass_apart():
    pool, labels = make_pool([0.2, 1.5])
    given = [CheckpointFeatures("a", pool["net 0"], seconds=2.0, gflops=7.0), CheckpointFeatures("b", pool["net 1"])]
    found = rank(given, labels, resamples=0)
    assert found.checkpoints == ("b", "a")
    np.testing.assert_allclose(found.gflops["separation"], 10.0 * 240 * 4 * 3 / 1e9)
    assert (found.seconds["separation"] > 0).all()
    np.testing.assert_array_equal(found.forward_seconds, [np.nan, 2.0])
    np.testing.assert_array_equal(found.forward_gflops, [np.nan, 7.0])
    assert found.costs()["part"] == ["forward pass", "separation"]
    assert found.costs()["gflops"] == [7.0, pytest.approx(2 * 10.0 * 240 * 4 * 3 / 1e9)]


def test_no_resamples_no_intervals():
    pool, labels = make_pool([0.2, 1.5])
    found = rank(pool, labels, resamples=0)
    assert np.isnan(found.rank_low).all()
    assert np.isnan(found.top_certainty)
    assert found.best_certainty == pytest.approx(1.0)


def test_one_checkpoint_is_the_best():
    pool, labels = make_pool([0.5])
    found = rank(pool, labels)
    np.testing.assert_array_equal([found.ranks, found.rank_low, found.rank_high], [[1], [1], [1]])
    assert found.top_certainty == found.best_certainty == 1.0
    assert np.isfinite(found.score_low).all()
    found.summary()


def test_equal_checkpoints_share_a_rank():
    pool, labels = make_pool([0.5, 1.5])
    pool["copy"] = pool["net 1"].copy()
    found = rank(pool, labels, k=1)
    np.testing.assert_array_equal(found.ranks, [1.5, 1.5, 3])
    np.testing.assert_array_equal(found.rank_low, [1, 1, 3])
    np.testing.assert_array_equal(found.rank_high, [2, 2, 3])
    np.testing.assert_allclose(found.chance_top, [0.5, 0.5, 0], atol=0.05)
    assert any("same separation" in text for text in found.warnings)


def test_a_measure_that_fails_for_one_leaves_it_last():
    pool, labels = make_pool([0.2, 1.5, 0.7])
    marked = pool["net 1"]

    def fussy(features, labels):
        if np.isin(features[0, 0], marked[:, 0]):
            raise ValueError("no")
        return separation(features, labels)

    with pytest.warns(CurvewiseWarning, match=r"No fussy for 'net 1', ranked last.*no"):
        found = rank(pool, labels, (fussy, "separation"))
    assert found.checkpoints == ("net 2", "net 0", "net 1")
    np.testing.assert_array_equal(found.ranks, [1, 2, np.nan])
    np.testing.assert_array_equal(found.measure_ranks["separation"], [2, 3, 1])
    assert np.isnan(found.rank_low[2])
    assert "no" in found.missing["fussy"]["net 1"]
    assert found.ranked == 2
    assert "1 could not be ranked" in found.summary()


def test_a_measure_that_does_not_apply_says_so():
    pool, labels = make_pool([0.2, 1.5])
    with pytest.warns(CurvewiseWarning, match="No sure for all 2 checkpoints: has no classes"):
        found = rank(pool, labels, ("separation", "sure"), resamples=0)
    assert np.isnan(found.scores["sure"]).all()
    numbers = np.random.default_rng(0).normal(size=240)
    free = measure("free", lambda x, y: float(x[:, 0] @ y), targets=("numbers",))
    with pytest.warns(CurvewiseWarning, match="takes classes, not numbers"):
        found = rank(pool, numbers, (free, "separation"), resamples=0)
    assert np.isfinite(found.scores["free"]).all()
    several = np.eye(3)[labels] + np.eye(3)[(labels + 1) % 3]
    with pytest.raises(InputError, match="gave no checkpoint a score"):
        rank(pool, several)


def test_probabilities_are_taken_where_there_are_any():
    pool, labels = make_pool([0.2, 1.5])
    own = np.random.default_rng(0).dirichlet(np.ones(7), size=240)
    given = [
        CheckpointFeatures(name, x, probabilities=p)
        for (name, x), p in zip(pool.items(), (own, own[:, ::-1] ** 2), strict=True)
    ]
    found = rank(given, labels, "sure", resamples=0)
    assert found.scores["sure"].max() == pytest.approx(own.max(axis=1).mean())
    np.testing.assert_allclose(found.gflops["sure"], 10.0 * 240 * 7 * 3 / 1e9)


def test_what_measures_warn_of_is_kept_once():
    pool, labels = make_pool([0.2, 1.5])

    def worried(features, labels):
        warnings.warn("few examples", CurvewiseWarning, stacklevel=2)
        return separation(features, labels)

    with pytest.warns(CurvewiseWarning, match="worried of all 2 checkpoints: few") as heard:
        found = rank(pool, labels, worried)
    assert len(heard) == 1
    assert sum("few examples" in text for text in found.warnings) == 1


def test_the_seed_decides_everything():
    pool, labels = make_pool([0.2, 1.5, 0.7])
    one, two = (rank(pool, labels, ("right", "lucky"), rng=3) for _ in range(2))
    other = rank(pool, labels, ("right", "lucky"), rng=4)
    for name in ("score_low", "rank_low", "chance_best", "chance_top"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    np.testing.assert_array_equal(one.scores["lucky"], two.scores["lucky"])
    assert (one.score_low != other.score_low).any()


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(st.permutations(range(4)))
def test_the_order_of_checkpoints_does_not_matter(order):
    pool, labels = make_pool([0.2, 1.5, 0.7, 0.4])
    names = list(pool)
    one = rank(pool, labels, "right")
    two = rank({names[i]: pool[names[i]] for i in order}, labels, "right")
    assert one.checkpoints == two.checkpoints
    np.testing.assert_array_equal(one.scores["right"], two.scores["right"])
    np.testing.assert_allclose(one.score_low, two.score_low)
    np.testing.assert_array_equal(one.rank_high, two.rank_high)


def test_every_checkpoint_sees_the_same_parts():
    n = 60
    labels = np.arange(n) % 3
    place = np.arange(n, dtype=float)[:, None]
    seen: dict[float, list[tuple[float, ...]]] = {}

    def watching(features, labels, *, test_features, test_labels):
        who = features[0, 0] // 1000
        rows = tuple(np.concatenate([features, test_features])[:, 0] - 1000 * who)
        seen.setdefault(who, []).append(rows)
        return float(features.mean())

    rank({"a": place, "b": place + 1000}, labels, watching, resamples=10)
    assert len(seen[0.0]) == 11
    assert seen[0.0] == seen[1.0]
    assert all(len(rows) == len(set(rows)) for rows in seen[0.0])
    assert {len(rows) for rows in seen[0.0][1:]} <= set(range(27, 34))


def test_a_half_has_half_of_each_class_and_all_classes():
    codes = np.repeat([0, 1, 2], [40, 7, 1])
    rng = np.random.default_rng(0)
    drawn = [draw_part(np.arange(48), codes, 0.5, rng) for _ in range(200)]
    for rows in drawn:
        counts = np.bincount(codes[rows], minlength=3)
        assert counts[0] == 20
        assert counts[1] in (3, 4)
        assert counts[2] == 1
    often = np.bincount(np.concatenate(drawn), minlength=48) / 200
    assert abs(often[:47].mean() - 0.5) < 0.03
    assert often[:47].min() > 0.3


@pytest.mark.parametrize("share", [0.5, 0.8])
def test_parts_have_the_spread_of_the_whole(share):
    """Of a mean, s/√n exactly; and means of two checkpoints vary together as they should."""
    rng = np.random.default_rng(0)
    rows = np.arange(100)
    x = rng.normal(size=(100, 2)) + 2 * rng.normal(size=(100, 1))
    drawn = np.array([x[draw_part(rows, None, share, rng)].mean(axis=0) for _ in range(5000)])
    replicates = ScoreReplicates(drawn, share)
    np.testing.assert_allclose(replicates.errors(), x.std(axis=0, ddof=1) / 10, rtol=0.04)
    found = np.corrcoef(drawn.T)[0, 1]
    assert found == pytest.approx(np.corrcoef(x.T)[0, 1], abs=0.03)


def test_in_sample_fits_keep_more_examples():
    """With more dimensions than examples, the spread of halves is far from that of the whole."""
    assert share_for(KNOWN["separation"]) == 0.8
    assert share_for(KNOWN["right"]) == share_for(KNOWN["lucky"]) == 0.5
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 2

    def fit(x, y):  # a regularised projection of the labels, in-sample
        return float(y @ x @ np.linalg.solve(x.T @ x + 20 * np.eye(x.shape[1]), x.T @ y)) / len(y)

    def sample():
        return rng.normal(size=(60, 80)) + 0.3 * labels[:, None]

    truth = np.std([fit(sample(), labels - 0.5) for _ in range(400)], ddof=1)
    ratio = {}
    for share in (0.5, 0.8):
        errors = []
        for _ in range(20):
            x = sample()
            parts = [draw_part(np.arange(60), labels, share, rng) for _ in range(40)]
            drawn = np.array([[fit(x[rows], labels[rows] - 0.5)] for rows in parts])
            errors.append(ScoreReplicates(drawn, share).errors()[0])
        ratio[share] = np.mean(errors) / truth
    assert abs(np.log(ratio[0.8])) < abs(np.log(ratio[0.5]))


def test_splits():
    targets = as_targets(np.repeat([0, 1, 2], [50, 10, 1]), 61)
    train, test = split_rows(targets, 0.2, np.random.default_rng(0))
    assert np.bincount(targets.codes[test], minlength=3).tolist() == [10, 2, 0]
    assert sorted([*train, *test]) == list(range(61))
    mask = np.arange(61) < 5
    assert split_rows(targets, mask, np.random.default_rng(0))[1].tolist() == [0, 1, 2, 3, 4]
    assert split_rows(targets, None, np.random.default_rng(0))[1] is None
    for wrong in (0, 1.5, np.ones(61, dtype=bool), np.ones(3, dtype=bool), np.arange(61)):
        with pytest.raises(InputError, match="test"):
            split_rows(targets, wrong, np.random.default_rng(0))
    half = draw_parts(train, test, targets, 0.5, np.random.default_rng(0))
    assert set(half[0]) < set(train)
    assert set(half[1]) < set(test)


def simulate(means, draws, count, resamples=40, seed=0):
    """Coverage of ranks by us and by quantiles of resampled ranks, and of scores."""
    rng = np.random.default_rng(seed)
    means = np.asarray(means)
    places = 1 + (means[None] > means[:, None]).sum(axis=1)
    ours, plain, scores = [], [], []
    for _ in range(draws):
        x = means + rng.normal(size=(count, 1)) + 0.5 * rng.normal(size=(count, len(means)))
        s = x.mean(axis=0)
        parts = [draw_part(np.arange(count), None, 0.5, rng) for _ in range(resamples)]
        replicates = ScoreReplicates(np.array([x[rows].mean(axis=0) for rows in parts]))
        low, high = rank_limits(s, replicates, 0.95, rng)
        ours.append((low <= places) & (places <= high))
        again = s + replicates.deviations
        ranks = 1 + (again[:, None, :] > again[:, :, None]).sum(axis=2)
        low, high = np.quantile(ranks, [0.025, 0.975], axis=0, method="nearest")
        plain.append((low <= places) & (places <= high))
        low, high = score_limits(s, replicates, 0.95)
        scores.append((low <= means) & (means <= high))
    return np.mean(ours, axis=0), np.mean(plain), np.mean(scores)


@pytest.mark.slow
def test_rank_intervals_cover_where_quantiles_of_ranks_do_not():
    """A small version of benchmarks/ranking_coverage.py: twelve checkpoints as good as tied."""
    ours, plain, scores = simulate(np.arange(12) * 1e-4, 100, 100)
    assert ours.min() > 0.93
    assert plain < 0.88
    assert scores == pytest.approx(0.95, abs=0.05)


@pytest.mark.slow
def test_rank_intervals_of_two_have_their_level():
    ours, _, _ = simulate([0.0, 1e-6], 300, 100)
    assert ours.mean() == pytest.approx(0.95, abs=0.03)


def test_rank_intervals_tell_apart_what_is_apart():
    ours, _, _ = simulate([0.0, 1.0, 2.0, 3.0], 20, 100)
    assert (ours == 1).all()
    pool, labels = make_pool([0.2, 2.0, 0.9])
    found = rank(pool, labels)
    np.testing.assert_array_equal(found.rank_low, [1, 2, 3])
    np.testing.assert_array_equal(found.rank_high, [1, 2, 3])


@pytest.mark.slow
def test_rank_limits_against_all_pairs_by_hand():
    """Independent scores of equal error: the limit is the quantile of a maximum, had by force."""
    rng = np.random.default_rng(0)
    scores = np.array([0.0, 2.2, 2.7, 6.0])
    replicates = ScoreReplicates(rng.normal(size=(5000, 4)))
    draws = rng.normal(size=(200_000, 4))
    first = (draws - draws[:, [0]])[:, 1:] / np.sqrt(2) * [1, -1, 1]
    limit = np.quantile(first.max(axis=1), 0.95)
    assert 2.7 / np.sqrt(2) < limit < 6.0 / np.sqrt(2)
    _, high = rank_limits(scores, replicates, 0.95, rng)
    low, _ = rank_limits(scores, replicates, 0.95, rng)
    assert low[0] == 2
    assert high[0] == 4
    assert low[3] == high[3] == 1


def test_replicates_that_fail_are_dropped_or_leave_ranks_open():
    rng = np.random.default_rng(0)
    drawn = 0.01 * rng.normal(size=(50, 3))
    drawn[3, 0] = np.nan
    scores = np.array([1.0, 2.0, 3.0])
    assert ScoreReplicates(drawn).freedom == 48
    low, high = rank_limits(scores, ScoreReplicates(drawn), 0.95, rng)
    np.testing.assert_array_equal([low, high], [[3, 2, 1], [3, 2, 1]])
    drawn[:30, 1] = np.nan
    replicates = ScoreReplicates(drawn)
    np.testing.assert_array_equal(replicates.known, [True, False, True])
    low, high = rank_limits(scores, replicates, 0.95, rng)
    np.testing.assert_array_equal([low, high], [[2, 1, 1], [3, 3, 2]])


def test_a_measure_that_fails_on_parts_has_no_interval():
    pool, labels = make_pool([0.2, 1.5])

    def hungry(features, labels):
        if len(features) < 200:
            raise ValueError("too few")
        return separation(features, labels)

    found = rank(pool, labels, hungry)
    assert np.isfinite(found.scores["hungry"]).all()
    assert np.isnan(found.score_low).all()
    np.testing.assert_array_equal(found.rank_high, [2, 2])
    assert any("failed on too many parts" in text for text in found.warnings)


def test_hits_give_intervals_without_training_anew():
    pool, labels = make_pool([0.2, 1.5], n=2000)
    calls = []

    def hits(features, labels, *, test_features, test_labels):
        calls.append(len(features))
        shift = features.std()
        return np.random.default_rng(0).random(len(test_labels)) < 1 / (1 + np.exp(1 - shift))

    candidates = [Candidate.of(CheckpointFeatures(name, x)) for name, x in pool.items()]
    measure = replace(KNOWN["right"], hits=hits)
    found = rank_candidates(candidates, labels, (measure,), RankSettings(reliability=0.5))
    assert len(calls) == 2
    share, n = found.scores["right"], found.test_examples
    half = norm.ppf(0.975) * np.sqrt(share * (1 - share) / n)
    np.testing.assert_allclose(found.score_high - share, half, rtol=0.1)
    assert any("not retrained" in text for text in found.warnings)
    drawn = hit_replicates(np.array([[1.0, 0, 1, 0], [0.0, 1, 0, 1]]), 50, np.random.default_rng(0))
    np.testing.assert_allclose(drawn.sum(axis=1), 1)  # the same examples for both


def test_nleep_on_all_rows_is_the_same_with_components_kept():
    pool, labels = make_pool([0.7], n=150)
    candidate = Candidate.of(CheckpointFeatures("a", pool["net 0"]))
    scorer = Scorer(labels, as_targets(labels, 150))
    train, test = split_rows(scorer.targets, 0.2, np.random.default_rng(0))
    again = scorer.score(*reused(MEASURES["nleep"], candidate, train, test), train, test, 5).value
    x = pool["net 0"]
    shown = {"test_features": x[test], "test_labels": labels[test]}
    assert again == pytest.approx(nleep(x[train], labels[train], **shown, rng=5), rel=1e-6)
    found = rank_features(pool, labels, MEASURES["nleep"], resamples=10)
    assert found.score_low[0] < found.scores["nleep"][0] < found.score_high[0]
    whole = rank_features(pool, labels, MEASURES["nleep"], resamples=10, test=None)
    assert whole.test_examples == 0
    assert any("Without test examples" in text for text in whole.warnings)


def test_failures_are_told_and_kept():
    pool, labels = make_pool([0.2, 1.5])
    candidates = [Candidate.of(CheckpointFeatures(name, x)) for name, x in pool.items()]
    failures, how = {"broken": "no such file"}, RankSettings(reliability=0.5)
    with pytest.warns(CurvewiseWarning, match="broken is not ranked: no such file"):
        found = rank_candidates(candidates, labels, (KNOWN["separation"],), how, failures)
    assert found.failures == {"broken": "no such file"}
    assert "broken" not in found.checkpoints
    assert "1 could not be ranked" in found.summary()


def test_how_many_to_try():
    pool, labels = make_pool([0.2, 1.5, 0.7, 0.4])
    found = rank(pool, labels, reliability=0.9)
    reached = np.cumsum(found.chance_best)
    count = found.enough(0.9)
    assert reached[count - 1] >= 0.9
    assert count == 1 or reached[count - 2] < 0.9
    with pytest.raises(InputError, match="certainty"):
        found.enough(1.5)


def test_agreement_has_an_interval():
    pool, labels = make_pool(np.linspace(0.1, 1, 8))
    found = rank(pool, labels, ("separation", "right"), resamples=0)
    interval = found.agreement_interval("separation", "right")
    assert interval.estimate == pytest.approx(found.agreement[0, 1])
    assert interval.low < interval.estimate
    with pytest.raises(InputError, match="none of"):
        found.agreement_interval("separation", "rigth")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"measures": ("nlep",)}, "Did you mean 'nleep'"),
        ({"measures": ()}, "give at least one"),
        ({"measures": ("right", "right")}, "2 times"),
        ({"by": "right"}, "by='right': none of"),
        ({"resamples": -1}, "resamples=-1"),
        ({"resamples": 3}, "at least 10, or 0"),
        ({"k": 0}, "k=0"),
        ({"level": 95}, "level"),
        ({"reliability": 2.0}, "reliability=2.0"),
        ({"test": 1.0}, "test=1.0"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else None,
)
def test_bad_options_are_named(change, message):
    pool, labels = make_pool([0.2, 1.5])
    with pytest.raises(InputError, match=message):
        rank(pool, labels, **change)


def test_bad_checkpoints_are_named():
    pool, labels = make_pool([0.2, 1.5])
    with pytest.raises(InputError, match="240 rows and labels 200"):
        rank(pool, labels[:200])
    with pytest.raises(InputError, match="checkpoints is empty"):
        rank({}, labels)
    with pytest.raises(InputError, match="holds a ndarray"):
        rank(list(pool.values()), labels)
    twice = CheckpointFeatures("a", pool["net 0"])
    with pytest.raises(InputError, match="'a' 2 times"):
        rank([twice, twice], labels)


def test_functions_say_what_they_take():
    def own(probabilities, labels, *, test_probabilities=None, test_labels=None, rng=0):
        return 0.0

    taken, plain, split = find_measures((own, separation, right), KNOWN)
    assert (taken.takes, taken.splits, taken.seeded) == ("probabilities", True, True)
    assert (plain.takes, plain.splits, plain.seeded) == ("features", False, False)
    assert split.splits
    assert find_measures("right", KNOWN) == (KNOWN["right"],)
    assert find_measures(KNOWN["right"], KNOWN) == (KNOWN["right"],)


@pytest.mark.filterwarnings("ignore:nleep of:curvewise.errors.CurvewiseWarning")
@pytest.mark.parametrize("measure", ["nleep", "knn"])
def test_labels_that_no_checkpoint_tells_are_said(measure: str) -> None:
    random = np.random.default_rng(0)
    labels = random.permutation(np.arange(300) % 6)
    noise = {name: random.normal(size=(300, 6)) for name in "ab"}
    told = noise["a"] + 3 * np.eye(6)[labels]
    with pytest.warns(CurvewiseWarning, match="none predicts these labels"):
        rank_features(noise, labels, measure, resamples=0, reliability=0.5)
    known = rank_features(noise | {"told": told}, labels, measure, resamples=0, reliability=0.5)
    assert not any("none tells" in text for text in known.warnings)


def test_a_measure_without_a_reference_warns_and_takes_that_of_another() -> None:
    random = np.random.default_rng(0)
    labels = np.arange(120) % 2
    pool = {n: random.normal(size=(120, 3)) + s * labels[:, None] for n, s in (("a", 1), ("b", 2))}

    def wrapped(features, labels, *, test_features, test_labels, rng):
        return nleep(features, labels, test_features=test_features, test_labels=test_labels, rng=rng)

    def rank_by(measure, **options):
        return rank_features(pool, labels, measure, resamples=0, **options)

    with pytest.warns(CurvewiseWarning) as heard:
        alone = rank_by(wrapped)
    said = [str(one.message) for one in heard]
    assert len(said) == 1
    assert "No reference says how scores of wrapped correlate" in said[0]
    assert "reliability='nleep'" in said[0]
    assert tuple(said) == alone.warnings
    lent, own = rank_by(wrapped, reliability="nleep"), rank_by("nleep")
    assert lent.reliability is own.reliability
    assert lent.best_certainty == own.best_certainty
    np.testing.assert_array_equal(lent.chance_best, own.chance_best)
    assert alone.chance_best[0] < own.chance_best[0]
    with pytest.raises(InputError, match=r"reliability='mine': it has no reference. .* nleep"):
        rank_by(wrapped, reliability="mine")


@pytest.mark.slow
def test_intervals_end_where_scores_do() -> None:
    random = np.random.default_rng(0)
    labels = np.arange(240) % 3
    near = np.eye(3)[labels] * 4 + random.normal(size=(240, 3))
    far = np.eye(3)[labels] * 2 + random.normal(size=(240, 3))
    found = rank_features({"near": near, "far": far}, labels, "nleep", resamples=20)
    assert found.checkpoints == ("near", "far")
    open_ = replace(MEASURES["nleep"], bounds=(-np.inf, np.inf))
    free = rank_features({"near": near, "far": far}, labels, open_, resamples=20)
    assert free.score_high[0] > 0  # no mean logarithm of a probability is
    assert found.score_high[0] == 0
    np.testing.assert_array_equal(found.score_low, free.score_low)
    assert found.score_high[1] == free.score_high[1] < 0


@pytest.mark.parametrize("name", sorted(MEASURES))
def test_scores_are_within_their_bounds(name: str) -> None:
    random = np.random.default_rng(1)
    labels = np.arange(150) % 3
    low, high = MEASURES[name].bounds
    for shift in (0.0, 1.0, 50.0):
        x = random.normal(size=(150, 4)) + shift * np.eye(3, 4)[labels]
        if MEASURES[name].takes == "probabilities":
            x = np.exp(x - x.max(axis=1, keepdims=True))
            x /= x.sum(axis=1, keepdims=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CurvewiseWarning)
            assert low <= MEASURES[name].function(x, labels) <= high


def test_different_winners_are_named_and_ranks_are_whole():
    rng = np.random.default_rng(4)
    labels = np.repeat([0, 1], 60)
    found = {name: rng.normal(size=(120, 3)) + shift * labels[:, None] for name, shift in (("a", 0.5), ("b", 3.0))}
    agreed = rank_features(found, labels, ["h-score", "logme"], resamples=0)
    assert agreed.checkpoints == ("b", "a")
    assert "different winners" not in agreed.summary()
    turned = replace(agreed, scores={**agreed.scores, "logme": agreed.scores["logme"][::-1]})
    assert "The measures name different winners: h-score b, logme a." in turned.summary()
    assert agreed.columns()["rank"].tolist() == [1, 2]
    assert agreed.columns()["rank"].dtype.kind == "i"
    latex = turned.to_latex()
    assert latex.count(r"\textbf{") == 2  # the best by either measure
    assert r"\toprule" in latex


def test_measures_that_agree_on_the_first_alone_are_said_to_disagree():
    pool, labels = make_pool([1.5, 0.7, 0.2])
    found = rank(dict(zip("abc", pool.values(), strict=True)), labels, ("separation",), k=3)
    assert found.checkpoints == ("a", "b", "c")
    first = replace(found, scores={**found.scores, "knn": np.array([3.0, 1.0, 2.0])})
    assert first.winners == {"separation": "a", "knn": "a"}
    text = first.sentences()
    assert (
        "The measures agree on the first and not on the others: b is number 2 by separation and number 3 by knn."
        in text
    )
    # All three are to be fine-tuned: the chance of the first is given all the same.
    assert f"a is the best after fine-tuning with probability {first.chance_best[0]:.0%}." in text
    # What the chance rests on is no property of these data, and is said.
    basis = "This takes {} to correlate with fine-tuned accuracy by {}."
    assert basis.format("separation", "0.80, as given") in text
    known = replace(first, by="nleep", reliability=RELIABILITY["nleep"], scores={"nleep": first.scores["separation"]})
    assert basis.format("nleep", "0.78, as on 12 benchmark tasks") in known.sentences()
    unknown = replace(first, reliability=UNKNOWN).sentences()
    assert basis.format("separation", "0.22, a cautious assumption") in unknown
    alike = replace(first, scores={**found.scores, "knn": np.array([9.0, 8.0, 7.0])})
    assert "The measures" not in alike.sentences()
    assert "chance to be best" in first.readable()


def test_files_of_features_and_their_labels(tmp_path, call) -> None:
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], 40)
    pool = {
        name: labels[:, None] * shift + rng.normal(size=(120, 4)) for name, shift in {"weak": 0.2, "fine": 2}.items()
    }
    np.savez(tmp_path / "weak.npz", features=pool["weak"], labels=labels)
    np.savez(tmp_path / "fine.npz", embeddings=pool["fine"], y=labels)
    np.save(tmp_path / "labels.npy", labels)
    options = {"measures": "logme", "resamples": 0, "reliability": 0.8}
    wanted = rank_features(pool, labels, **options)
    files = {name: tmp_path / f"{name}.npz" for name in pool}
    for found in (
        rank_features(files, **options),
        rank_features(files, tmp_path / "labels.npy", **options),
        rank_features(list(map(str, files.values())), **options),
    ):
        assert found.best == found.checkpoints[0] == "fine"
        assert found.scores["logme"].tolist() == wanted.scores["logme"].tolist()
    seen = call("ranking", "rank", *files.values(), "--measures", "logme", "--resamples", "0", "--json")
    assert seen.code == 0, seen.err
    assert seen.document["checkpoints"] == ["fine", "weak"]
    assert "labels from 'weak', 'fine'" in seen.err
    np.savez(tmp_path / "other.npz", features=pool["fine"], labels=labels[::-1])
    with pytest.raises(InputError, match="weak and other hold different labels"):
        rank_features({"weak": files["weak"], "other": tmp_path / "other.npz"}, **options)
    np.savez(tmp_path / "two.npz", a=pool["fine"], b=pool["weak"])
    with pytest.raises(InputError, match="holds a, b: call the matrix of features 'features'"):
        rank_features({"two": tmp_path / "two.npz"}, labels, **options)
    with pytest.raises(InputError, match="labels is missing: give the label of each example"):
        rank_features(pool, **options)


def test_labels_in_a_file_are_read_as_on_the_command_line(tmp_path):
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 3
    pool = {"a": rng.normal(size=(60, 4)), "b": rng.normal(size=(60, 4)) + labels[:, None]}
    options = {"measures": "logme", "resamples": 0}
    several = np.eye(3, dtype=int)[labels]
    np.save(tmp_path / "several.npy", several)
    np.testing.assert_array_equal(
        rank_features(pool, tmp_path / "several.npy", **options).scores["logme"],
        rank_features(pool, several, **options).scores["logme"],
    )
    # 1.0 may be a class or a number, in a file as in an array.
    (tmp_path / "whole.txt").write_text("".join(f"{y}.0\n" for y in labels))
    with pytest.raises(InputError, match="whole numbers in floating point"):
        rank_features(pool, tmp_path / "whole.txt", **options)
    (tmp_path / "gap.txt").write_text("0\n\n" + "1\n" * 59)
    with pytest.raises(InputError, match="one label in each line"):
        rank_features(pool, tmp_path / "gap.txt", **options)
    (tmp_path / "table.csv").write_text("id,label\n" + "".join(f"{i},{y}\n" for i, y in enumerate(labels)))
    np.testing.assert_array_equal(
        rank_features(pool, tmp_path / "table.csv", **options).scores["logme"],
        rank_features(pool, labels, **options).scores["logme"],
    )


def test_labels_with_one_1_in_each_row_are_classes():
    """They were read as several labels: classes were not kept together in the split, and kNN gave no scores."""
    pool, labels = make_pool([0.2, 1.5])
    seen = []

    def own(features, labels):
        seen.append(labels)
        return float(features.mean())

    options = {"resamples": 10, "reliability": 0.5, "by": "nleep"}
    classes = rank_features(pool, labels, ("nleep", "knn"), **options)
    marks = rank_features(pool, np.eye(3)[labels], ("nleep", "knn", own), **options)
    for name in ("nleep", "knn"):
        np.testing.assert_array_equal(marks.scores[name], classes.scores[name])
    np.testing.assert_array_equal(marks.score_low, classes.score_low)
    assert all(given.ndim == 2 for given in seen)  # a function of one's own gets what was given


@pytest.mark.parametrize("test", [0.2, None])
def test_a_share_of_1_has_an_interval_with_width(test):
    """All of 40 test examples were hit, and the interval was [1, 1]: it held a true 0.98 in 43 of 100 samples."""
    rng, labels = np.random.default_rng(0), np.arange(200) % 2
    pool = {name: rng.normal(size=(200, 2)) + 20 * labels[:, None] for name in "ab"}
    found = rank_features(pool, labels, "knn", test=test, resamples=10, reliability=0.5)
    count = 40 if test else 200
    z = norm.ppf(0.975)
    np.testing.assert_allclose(found.score_low, count / (count + z * z))  # where Wilson's interval ends
    assert found.score_high.tolist() == found.scores["knn"].tolist() == [1.0, 1.0]


def test_lists_of_several_lengths_are_no_labels():
    pool, _ = make_pool([1.0], n=40)
    with pytest.raises(InputError, match="labels holds lists of several lengths"):
        rank_features(pool, [[0], [0, 1]] * 20)


def test_frames_with_the_same_index_in_another_order_are_refused():
    pandas = pytest.importorskip("pandas")
    pool, labels = make_pool([3.0, 1.5], n=60)
    names = [f"photo {i}" for i in range(60)]
    frames = {name: pandas.DataFrame(x, index=names) for name, x in pool.items()}
    truth = pandas.Series(labels, index=names)
    options = {"measures": "knn", "resamples": 0}
    assert rank_features(frames, truth, **options).scores["knn"].max() > 0.5
    with pytest.raises(InputError, match="labels has the index of features of 'net 0' in another order"):
        rank_features(frames, truth[::-1], **options)
    with pytest.raises(InputError, match="features of 'net 1' has the index of features of 'net 0' in another order"):
        rank_features({**frames, "net 1": frames["net 1"][::-1]}, truth, **options)
    assert rank_features(pool, truth[::-1].to_numpy()[::-1], **options).ranked == 2
