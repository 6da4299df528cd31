"""A report of results: nothing that they warn of is left out."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import curvewise as cw
from curvewise.report.content import Report
from curvewise.report.results import results_report
from curvewise.text import neutral


@pytest.fixture(scope="module")
def curves() -> cw.learning.LearningCurves:
    """Twelve curves, every third of which rises, and two that cannot be fitted."""
    n = np.repeat([50.0, 100.0, 200.0], 2)
    wobble = 0.01 * np.array([1, -1, 1, -1, 1, -1])
    given = {}
    for i in range(12):
        given[f"net {i}"] = (n, 0.1 + (n / 1e3 if i % 3 == 0 else n**-0.5) + wobble)
    for name in ("lost", "gone"):
        given[name] = (n, np.full(6, np.nan))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cw.CurvewiseWarning)
        return cw.fit_learning_curves(given)


@pytest.fixture(scope="module")
def found(curves: cw.learning.LearningCurves) -> Report:
    return results_report(curves)


def test_each_of_many_curves_warns(curves: cw.learning.LearningCurves, found: Report) -> None:
    for curve in curves:
        for warning in curve.all_warnings:
            assert f"{curve.learner}: {neutral(warning)}" in found.warnings
    assert sum("rises with more data" in w for w in found.warnings) == 4
    assert len(set(found.warnings)) == len(found.warnings)
    assert found.sections[0].warnings == found.warnings


def test_each_learner_that_could_not_be_fitted_is_named(curves: cw.learning.LearningCurves, found: Report) -> None:
    assert list(curves.failures) == ["lost", "gone"]
    for name, why in curves.failures.items():
        assert [w for w in found.warnings if name in w] == [f"{name} could not be fitted: {neutral(why)}"]
