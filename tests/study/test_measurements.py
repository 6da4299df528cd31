"""What a study gives and what its store gives are the same measurements."""

from __future__ import annotations

import numpy as np
import pytest

import curvewise as cw
from curvewise.errors import CurvewiseWarning, InputError
from curvewise.study import Design, Learner, Study

pytest.importorskip("sklearn")


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """A grid of settings for one learner, and a learner that fails at the smallest size."""
    grid = {"tree": {"min_samples_leaf": [1, 5], "max_depth": [1, 3]}}
    neighbours = {"n_neighbors": 30}
    made = Study(
        data="iris",
        learners={
            "tree": Learner(estimator="sklearn.tree:DecisionTreeClassifier"),
            "knn": Learner(estimator="sklearn.neighbors:KNeighborsClassifier", options=neighbours),
        },
        design=Design(sizes=[20, 40], folds=2, grid=grid),
        folder=tmp_path_factory.mktemp("study"),
    )
    made.run(workers=0, progress=False)
    return made


def by_run(m: cw.Measurements) -> dict[tuple[str, float, int, int], float]:
    seeds = (m.labels["fold"].tolist(), m.labels["init_seed"].tolist())
    keys = zip(m.learner.tolist(), m.n.tolist(), *seeds, strict=True)
    return dict(zip(keys, m.error.tolist(), strict=True))


@pytest.mark.parametrize("metric", [None, "error", "loss", "train_error", "gap"])
def test_a_study_and_its_store_agree(study, metric):
    with pytest.warns(CurvewiseWarning, match="runs failed"):
        ours = study.measurements(metric)
    theirs = cw.load_measurements(study.runs_folder, metric=metric)
    assert len(ours) == len(theirs) == 20
    np.testing.assert_equal(by_run(theirs), by_run(ours))
    assert theirs.labels["status"].tolist().count("failed") == 2
    assert sorted(theirs.labels["run"].tolist()) == sorted(ours.labels["run"].tolist())
    assert ours.unit == theirs.unit
    assert "tree, max_depth=1, min_samples_leaf=5" in theirs.learners
    assert "2 of 20 runs failed (knn): " in " ".join(theirs.notes)


def test_a_metric_that_no_run_has_is_an_error(study):
    for ask in (study.measurements, lambda m: cw.load_measurements(study.runs_folder, metric=m)):
        with pytest.raises(InputError, match=r"'eror'.*'error'"):
            ask("eror")
    with pytest.warns(CurvewiseWarning, match="2 of 2 runs failed"):
        failed = study.measurements(learner="knn", n=20)
    assert failed.labels["status"].tolist() == ["failed"] * 2
