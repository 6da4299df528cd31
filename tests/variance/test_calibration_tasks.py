"""Two-class tasks against relabelled predictions, calibrated truth and real runs."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest

from curvewise.errors import InputError
from curvewise.types import Predictions
from curvewise.variance.calibration import measure_bipartitions
from curvewise.variance.decompose import decompose_variance
from curvewise.variance.votes import measure_disagreement


@pytest.fixture(scope="module")
def fashion(data_dir):
    """Predictions of 512 networks for Fashion-MNIST, and the labels."""
    with np.load(data_dir / "variance" / "fashion_mnist_mlp_512runs.npz") as file:
        return file["preds"], file["labels"]


def calibrated(rng, runs, n, k, shape=0.2):
    cut = rng.dirichlet(np.full(k, shape), n).cumsum(axis=1)[:, :-1]
    return (rng.random((runs, n, 1)) > cut).sum(axis=2), (rng.random((n, 1)) > cut).sum(axis=1)


@pytest.mark.filterwarnings("ignore::curvewise.errors.CurvewiseWarning")
def test_every_task_is_that_of_relabelled_predictions():
    votes, labels = calibrated(np.random.default_rng(0), 12, 80, 5)
    b = measure_bipartitions(votes, labels)
    assert b.tasks == b.possible == 15
    assert len({frozenset(np.flatnonzero(s)) for s in b.sides}) == 15
    assert not b.sides[:, 0].any()
    adjusted = []
    for t, side in enumerate(b.sides):
        two, truth = side[votes].astype(int), side[labels].astype(int)
        v = decompose_variance(two, truth)
        d = measure_disagreement(two, truth)
        assert b.errors[t] == pytest.approx(v.error.estimate)
        assert b.measured[t] == pytest.approx(v.test_set_std)
        assert b.distribution[t] == pytest.approx(v.distribution_std, abs=1e-9)
        assert b.disagreement[t] == pytest.approx(d.disagreement.estimate)
        assert b.calibrated[t] == pytest.approx(np.sqrt(b.errors[t] / 160))
        adjusted.append(d.pvalue)
    least = int(np.argmin(adjusted))
    assert b.pvalues[least] == pytest.approx(min(1.0, 15 * adjusted[least]))


def fits(b):
    sse = ((b.calibrated - b.measured) ** 2).sum()
    sst = ((b.measured - b.measured.mean()) ** 2).sum()
    binomial = ((b.binomial**2 - b.measured**2) ** 2).mean()
    ours = ((b.calibrated**2 - b.measured**2) ** 2).mean()
    return 1 - sse / sst, np.corrcoef(b.calibrated, b.measured)[0, 1] ** 2, binomial / ours


def test_fits_and_their_jackknife():
    votes, labels = calibrated(np.random.default_rng(1), 14, 200, 5)
    b = measure_bipartitions(votes, labels)
    got = b.r_squared.estimate, b.correlation_squared.estimate, b.error_ratio.estimate
    assert got == pytest.approx(fits(b))
    without = [fits(measure_bipartitions(np.delete(votes, r, 0), labels)) for r in range(14)]
    r_squared, _, ratio = np.array(without).T
    spread = np.sqrt(13 * np.var(np.log(1 - r_squared)))
    wide = np.log((1 - b.r_squared.low) / (1 - b.r_squared.high)) / 2
    assert wide == pytest.approx(2.160369 * spread, rel=1e-4)  # t with 13 degrees of freedom
    spread = np.sqrt(13 * np.var(np.log(ratio)))
    assert np.log(b.error_ratio.high / b.error_ratio.low) / 2 == pytest.approx(2.160369 * spread)


def test_calibrated_votes_follow_the_formula():
    rng = np.random.default_rng(2)
    votes, labels = calibrated(rng, 1200, 1500, 5)
    b = measure_bipartitions(votes.astype(np.uint8), labels)
    assert b.r_squared.low > 0.5
    assert b.error_ratio.low > 10
    assert b.assumption_holds
    assert b.disagreement_ratio == pytest.approx(1, abs=0.05)
    assert "as the formula needs" in b.summary()


def test_tasks_are_drawn_where_there_are_many():
    rng = np.random.default_rng(3)
    votes, labels = calibrated(rng, 6, 120, 14)
    b = measure_bipartitions(votes, labels, rng=5)
    assert b.tasks == 511
    assert b.possible == 2 ** (b.classes - 1) - 1
    assert len({row.tobytes() for row in b.sides}) == 511
    assert "511 random ones of" in b.summary()
    some = measure_bipartitions(votes, labels, tasks=20, rng=5)
    again = measure_bipartitions(votes, labels, tasks=20, rng=np.random.default_rng(5))
    assert (some.sides == again.sides).all()
    assert some.tasks == 20
    two, truth = some.sides[7][votes], some.sides[7][labels]
    assert some.errors[7] == pytest.approx((two != truth).mean())


def test_permutations_groups_and_plain_values():
    rng = np.random.default_rng(4)
    votes, labels = calibrated(rng, 10, 90, 4)
    order = rng.permutation(90)
    a = measure_bipartitions(votes, labels)
    b = measure_bipartitions(votes[rng.permutation(10)][:, order], labels[order])
    assert a.measured == pytest.approx(b.measured)
    assert tuple(a.r_squared) == pytest.approx(tuple(b.r_squared))
    assert a.pvalues == pytest.approx(b.pvalues)
    json.dumps(a.to_dict())
    copies = np.repeat(np.arange(90), 4)
    p = Predictions(votes[:, copies], "labels", labels=labels[copies], groups=copies)
    grouped = measure_bipartitions(p)
    assert grouped.pvalues == pytest.approx(a.pvalues)
    assert any("groups" in w for w in grouped.warnings)


def test_two_classes_are_one_task_and_bad_input():
    rng = np.random.default_rng(5)
    votes, labels = calibrated(rng, 8, 60, 2)
    b = measure_bipartitions(votes, labels)
    assert b.tasks == 1
    assert np.isnan(b.r_squared.low)
    assert "too few" in b.warnings[0]
    with pytest.raises(InputError, match="tasks"):
        measure_bipartitions(votes, labels, tasks=0)
    with pytest.raises(InputError, match="4 are needed"):
        measure_bipartitions(votes[:3], labels)
    with pytest.raises(InputError, match="one class"):
        measure_bipartitions(votes * 0, labels * 0)


def test_golden(fashion):
    b = measure_bipartitions(*fashion)
    assert b.tasks == 511
    assert b.rejected == 511
    assert b.r_squared.estimate == pytest.approx(-0.368, abs=0.002)
    assert b.correlation_squared.estimate == pytest.approx(0.865, abs=0.002)
    assert b.error_ratio.estimate == pytest.approx(12.1, abs=0.05)
    assert "not calibrated" in b.summary()
    sides = itertools.islice(itertools.product([False, True], repeat=9), 1, None)
    assert [tuple(s[1:]) for s in b.sides.tolist()] == list(sides)


@pytest.mark.filterwarnings("ignore::curvewise.errors.CurvewiseWarning")
def test_tasks_that_were_trained_are_judged_like_collapsed_votes():
    """Trainings whose answers are the collapsed votes must give the same numbers as these."""
    votes, labels = calibrated(np.random.default_rng(1), 10, 300, 4)
    collapsed = measure_bipartitions(votes, labels)
    tasks = {
        str(t): Predictions(side[votes].astype(int), "labels", labels=side[labels].astype(int))
        for t, side in enumerate(collapsed.sides)
    }
    trained = measure_bipartitions(tasks)
    assert trained.trained
    assert (trained.tasks, trained.runs, trained.examples) == (7, 10, 300)
    for name in ("r_squared", "correlation_squared", "binomial_r_squared", "error_ratio", "rejected"):
        assert getattr(trained, name) == getattr(collapsed, name), name
    for name in ("errors", "measured", "calibrated", "binomial", "distribution", "disagreement", "pvalues"):
        np.testing.assert_allclose(getattr(trained, name), getattr(collapsed, name), err_msg=name)
    assert list(trained.columns()["task"]) == list(tasks)
    assert "7 trainings for two classes, 10 runs of each" in trained.summary()
    for wrong, message in (
        ({}, "is empty"),
        ({"a": Predictions(votes, "labels", labels=labels)}, r"predictions\['a'\].*4 classes"),
        (tasks | {"8": tasks["0"].subset(runs=slice(0, 6))}, "as many runs of each"),
    ):
        with pytest.raises(InputError, match=message):
            measure_bipartitions(wrong)
    with pytest.raises(InputError, match="tasks is for predictions of all classes"):
        measure_bipartitions(tasks, tasks=3)


def test_tasks_that_were_trained_are_drawn():
    pytest.importorskip("matplotlib")
    votes, labels = calibrated(np.random.default_rng(1), 10, 300, 4)
    sides = {"a": np.array([0, 1, 1, 1]), "b": np.array([0, 0, 1, 1])}
    tasks = {name: Predictions(side[votes], "labels", labels=side[labels]) for name, side in sides.items()}
    axes = measure_bipartitions(tasks).plot()
    assert axes.get_figure().findobj(lambda artist: "trainings" in str(getattr(artist, "get_text", str)()))
