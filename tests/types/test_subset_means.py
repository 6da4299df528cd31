"""Means over the seeds trained on one subset."""

from __future__ import annotations

import numpy as np
import pytest

from curvewise.errors import CurvewiseWarning
from curvewise.learning import fit_learning_curve, fit_learning_curves
from curvewise.types import Measurements


def measured(seeds: int, rng: np.random.Generator) -> Measurements:
    """Four sizes, folds with an effect of their own, seeds with a smaller one."""
    rows = []
    for n, folds in ((100, 8), (200, 8), (400, 6), (800, 4)):
        for fold in range(folds):
            subset = 0.05 + 1.5 * n**-0.5 + rng.normal(0, 0.2 * n**-0.5)
            rows += [(n, fold, subset + rng.normal(0, 0.002)) for _ in range(seeds)]
    n, fold, error = (np.array(column) for column in zip(*rows, strict=True))
    learner = np.full(len(n), "a")
    return Measurements(learner, n.astype(float), error, labels={"fold": fold})


def test_each_subset_counts_once() -> None:
    runs = measured(3, np.random.default_rng(0))
    means = runs.subset_means()
    assert (len(runs), len(means)) == (78, 26)
    assert (runs.shared_subsets, means.shared_subsets) == (26, 0)
    first = (runs.n == 100) & (runs.labels["fold"] == 2)
    there = (means.n == 100) & (means.labels["fold"] == 2)
    assert means.error[there] == pytest.approx([runs.error[first].mean()])


def test_curves_warn_of_seeds_and_their_means_give_wider_intervals() -> None:
    runs = measured(6, np.random.default_rng(1))
    with pytest.warns(CurvewiseWarning, match="subset_means"):
        narrow = fit_learning_curves(runs)["a"].interval_at(400).error
    wide = fit_learning_curves(runs.subset_means())["a"].interval_at(400).error
    assert wide.high - wide.low > 1.5 * (narrow.high - narrow.low)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::curvewise.errors.CurvewiseWarning")
def test_means_cover_and_single_seeds_do_not() -> None:
    truth, hits, naive = 0.05 + 1.5 * 400**-0.5, 0, 0
    for seed in range(60):
        runs = measured(6, np.random.default_rng(seed))
        means = runs.subset_means()
        for m, good in ((means, True), (runs, False)):
            at = fit_learning_curve(m.n, m.error).interval_at(400).error
            inside = at.low <= truth <= at.high
            hits, naive = hits + (good and inside), naive + (not good and inside)
    assert hits >= 51  # 85% of 60: far below 95%, far above what single seeds give
    assert naive <= 45


def test_failed_runs_are_left_out_and_told() -> None:
    error = np.array([0.2, np.nan, 0.4, np.nan])
    status = np.where(np.isnan(error), "failed", "done")
    labels = {"fold": np.array([0, 0, 1, 2]), "status": status}
    runs = Measurements(np.full(4, "a"), np.full(4, 10.0), error, labels=labels)
    means = runs.subset_means()
    assert means.error[:2].tolist() == [0.2, 0.4]
    assert np.isnan(means.error[2])
    assert means.labels["status"].tolist() == ["done", "done", "failed"]
    assert "2 failed run(s)" in means.notes[-1]


def test_without_folds_nothing_is_averaged() -> None:
    runs = Measurements(np.array(["a", "a"]), np.array([1.0, 1.0]), np.array([0.1, 0.2]))
    assert runs.subset_means() is runs
    assert runs.shared_subsets == 0
