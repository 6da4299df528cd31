"""A report of results: nothing that they warn of is left out."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

import curvewise as cw
from curvewise.errors import neutral
from curvewise.report.content import WAYS, Report, ReportTable
from curvewise.report.results import results_report

EXAMPLES = Path(__file__).parents[2] / "examples"


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
            assert f"{curve.learner}: {neutral(warning, **WAYS)}" in found.warnings
    assert sum("Error rises with more data" in w for w in found.warnings) == 4
    assert len(set(found.warnings)) == len(found.warnings)
    assert found.sections[0].warnings == found.warnings


def test_each_learner_that_could_not_be_fitted_is_named(curves: cw.learning.LearningCurves, found: Report) -> None:
    assert list(curves.failures) == ["lost", "gone"]
    for name, why in curves.failures.items():
        assert [w for w in found.warnings if name in w] == [f"{name} could not be fitted: {neutral(why)}"]


def test_each_result_of_a_list_has_the_question_that_it_answers() -> None:
    runs = [cw.load_predictions(EXAMPLES / f"units{units}.npz") for units in (16, 64)]
    found = results_report([cw.decompose_variance(runs[0]), cw.compare_runs(*runs)])
    assert found.question == "How much do runs differ, and how much of it is real?"
    assert [s.title for s in found.sections] == [found.question, "Which training is better?"]


def test_transfer_begins_with_yes_or_no() -> None:
    def measured(gains: dict[str, float]) -> Report:
        rng = np.random.default_rng(0)
        rows = [
            ("a", name, n, risk - gain + 0.01 * rng.standard_normal())
            for name, gain in {"scratch": 0.0, **gains}.items()
            for n, risk in ((100, 0.8), (1000, 0.5), (10000, 0.3))
            for _ in range(4)
        ]
        table = dict(zip(("task", "method", "n", "risk"), map(list, zip(*rows, strict=True)), strict=True))
        return results_report(cw.measure_transfer(table, blind=1.0, maximal=0.1))

    assert measured({"one": 0.1, "two": -0.1}).answer[0] == "Yes: significantly better than scratch: one."
    assert measured({"two": -0.1}).answer[0] == "No method is significantly better than scratch."


def test_scaling_laws_have_sections_with_pictures_and_warnings() -> None:
    runs = cw.load_scaling_runs(EXAMPLES / "scaling" / "runs.csv", where={"family": "base"}, name="base")
    new = cw.load_scaling_runs(EXAMPLES / "scaling" / "runs.csv", where={"family": "new"}, name="new")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cw.CurvewiseWarning)
        law = cw.fit_scaling_law(runs)
        results = [law.compute_optimal(1e23), law, law.backtest(), law.sensitivity(), cw.fit_isoflops(runs)]
        results.append(cw.compare_scaling_laws(runs, new))
    made = results_report(results)
    assert made.question == "How large a model on how much data for this compute?"
    assert made.answer[0].startswith("For 1e+23 FLOP: ")
    assert made.figure is not None
    assert any("beyond 64 times" in warning for warning in made.warnings)
    assert [len(section.figures) for section in made.sections] == [1] * len(results)
    assert all("Hoffmann" in section.method[0] for section in made.sections)
    titles = [section.title for section in made.sections]
    assert titles[2:4] == ["Does the law predict the largest runs?", "Does the answer depend on which runs are fitted?"]
    assert "additive" in made.sections[1].settings["form"]
    tuned = results_report(cw.scaling.expected_best([0.71, 0.64, 0.80, 0.58, 0.77]))
    assert "random search" in tuned.sections[0].method[0]


def test_a_table_is_as_long_as_what_it_shows() -> None:
    """A comparison writes one row for two factors."""
    assert len(ReportTable("t", "", {"quantity": [1, 2, 3]}, written={"quantity": ["a", "b"]})) == 2
    assert len(ReportTable("t", "", {"quantity": [1, 2, 3]})) == 3
