"""A study through every lens that applies: Markdown and figures in a folder."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from curvewise.cli._console import Page, note, sentences, warn_each
from curvewise.cli._files import quietly, save_plot
from curvewise.errors import CurvewiseError, CurvewiseWarning, InputError
from curvewise.tables import format_table

if TYPE_CHECKING:
    from curvewise.study import Study
    from curvewise.types import Measurements, Predictions, Result

FEWEST_SIZES, FEWEST_RUNS = 3, 5
MOST_TRAININGS = 12
"""Trainings whose variance is shown one by one."""


class Report:
    """Text that grows section by section, on the page and in a file, with figures beside it."""

    def __init__(self, page: Page, folder: Path) -> None:
        self.page, self.folder = page, folder
        self.lines: list[str] = []
        self.files: list[str] = []
        self.warnings: list[str] = []

    def section(self, title: str) -> None:
        """Begin a section."""
        self.lines += ["", f"## {title}", ""]
        self.page.say(title, style="bold")

    def say(self, text: str) -> None:
        """Add a paragraph."""
        self.lines += [text, ""]
        self.page.say(text, close=True)

    def table(self, title: str, columns: Mapping[str, Any], digits: int = 4) -> None:
        """Add a table."""
        self.lines += [format_table(columns, "markdown", digits), ""]
        self.page.table(title, columns, digits)

    def result(self, result: Result) -> None:
        """Add the sentences of a result and keep its warnings."""
        self.say(sentences(result))
        self.lines += [f"- Beware: {w}" for w in result.all_warnings]
        self.lines += [""] if result.all_warnings else []
        self.warnings += result.all_warnings

    def figure(self, name: str, draw: Callable[[], Any]) -> None:
        """Add a figure."""
        taken = {Path(file).stem for file in self.files}
        name = next(n for n in chain([name], (f"{name}-{i}" for i in count(2))) if n not in taken)
        path = self.folder / f"{name}.png"
        with quietly():
            save_plot(path, draw, quiet=True)
        self.files.append(str(path))
        self.lines += [f"![{name}]({path.name})", ""]


def write_report(page: Page, study: Study, folder: Path) -> None:
    """Write ``report.md`` and figures into a folder, and show the text."""
    status = study.status()
    if not status.done:
        raise InputError(f"No run of {study.name} is done: `curvewise study run` makes them.")
    folder.mkdir(parents=True, exist_ok=True)
    report = Report(page, folder)
    report.lines += [f"# {study.name}", ""]
    page.document = {"type": "StudyReport", "status": status}
    report.section("Runs")
    report.result(status)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CurvewiseWarning)  # the status has said what is missing
        measurements = study.measurements()
    _errors(report, measurements)
    _learning(report, measurements)
    _variance(report, study)
    _sources(report, study)
    path = folder / "report.md"
    path.write_text("\n".join(report.lines).strip() + "\n", encoding="utf-8")
    page.document["files"] = [str(path), *report.files]
    warn_each(report.warnings)
    note(f"written to {path}, with {len(report.files)} figure(s) beside it")


def _errors(report: Report, m: Measurements) -> None:
    report.section("Errors")
    cells = list(dict.fromkeys(zip(m.learner.tolist(), m.n.tolist(), strict=True)))
    columns: dict[str, list[Any]] = {
        k: [] for k in ("learner", "n", "runs", "error", "std", "failed")
    }
    for learner, n in cells:
        values = m.error[(m.learner == learner) & (m.n == n)]
        good = values[np.isfinite(values)]
        columns["learner"].append(learner)
        columns["n"].append(int(n))
        columns["runs"].append(len(good))
        columns["error"].append(float(good.mean()) if len(good) else None)
        columns["std"].append(float(good.std(ddof=1)) if len(good) > 1 else None)
        columns["failed"].append(len(values) - len(good))
    report.table("Test error, its mean and standard deviation between runs", columns)
    report.page.document["errors"] = columns


def _learning(report: Report, runs: Measurements) -> None:
    """Learning curves of the learners with enough sizes; failed runs are left out."""
    m = runs.subset_means()
    good = np.isfinite(m.error)
    kept = replace(
        m,
        learner=m.learner[good],
        n=m.n[good],
        error=m.error[good],
        labels={k: v[good] for k, v in m.labels.items()},
    )
    curved = [k for k in kept.learners if len(np.unique(kept.of(k).n)) >= FEWEST_SIZES]
    if not curved:
        return
    from curvewise.learning import compare_learning_curves, fit_learning_curves
    from curvewise.plot import plot_learning_curves

    here = np.isin(kept.learner, curved)
    rows = replace(
        kept,
        learner=kept.learner[here],
        n=kept.n[here],
        error=kept.error[here],
        labels={k: v[here] for k, v in kept.labels.items()},
    )
    report.section("How does the error fall with data?")
    with quietly():
        curves = fit_learning_curves(rows)
    if lost := int((~np.isfinite(runs.error)).sum()):
        report.say(f"{lost} failed run(s) are left out of the curves.")
    if runs.shared_subsets:
        report.say("The seeds of each training subset are averaged.")
    for curve in curves:
        report.result(curve)
    for name, why in curves.failures.items():
        report.say(f"{name} could not be fitted: {why}")
    report.page.document["curves"] = curves
    fitted = list(curves)
    if fitted:
        report.figure("curves", lambda: plot_learning_curves(curves))
    if len(fitted) == 2:
        comparison = compare_learning_curves(*fitted)
        report.result(comparison)
        report.page.document["comparison"] = comparison
        report.figure("comparison", comparison.plot)


def _variance(report: Report, study: Study) -> None:
    """What of the spread between runs is real, for each training with enough runs."""
    from curvewise.variance import decompose_variance

    found = _trainings(study)
    if not found:
        return
    report.section("How much do runs differ?")
    results = {}
    for label, predictions in list(found.items())[:MOST_TRAININGS]:
        try:
            with quietly():
                result = decompose_variance(predictions)
        except CurvewiseError as error:
            report.say(f"{label}: {error}")
            continue
        results[label] = result
        report.say(f"{label}:")
        report.result(result)
        report.figure(f"variance-{_file(label)}", result.plot)
    if len(found) > MOST_TRAININGS:
        report.say(f"{len(found) - MOST_TRAININGS} further trainings are not shown.")
    report.page.document["variance"] = results


def _trainings(study: Study) -> dict[str, Predictions]:
    """Runs that differ by chance alone: each training at its largest size and on one subset."""
    from curvewise.study.reading import choose_runs, label_of

    cells: dict[str, dict[tuple[int, int], list[Any]]] = {}
    for run in choose_runs(study):
        if run.state == "done":
            at = cells.setdefault(label_of(study, run.job), {})
            at.setdefault((run.job.n, -run.job.fold), []).append(run.job)
    found = {}
    for label, at in cells.items():
        enough = [key for key, jobs in at.items() if len(jobs) >= FEWEST_RUNS]
        if enough:
            (n, fold), job = max(enough), at[max(enough)][0]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", CurvewiseWarning)
                found[f"{label}, n={n:,}"] = study.predictions(
                    job.name, n=n, fold=-fold, vary=job.varies, **job.settings
                )
    return found


def _sources(report: Report, study: Study) -> None:
    """What each source of randomness does alone, where the design varies them one by one."""
    if len(study.design.variations) < 2:
        return
    from curvewise.variance import measure_sources

    groups: dict[str, dict[str, Any]] = {}
    widest = max(study.design.variations, key=len)
    for label, predictions in _trainings(study).items():
        varied = re.search(r", vary=([a-z+]+)", label)
        if varied is not None:
            name = "all" if varied[1] == "+".join(widest) else varied[1]
            groups.setdefault(label.replace(varied[0], ""), {})[name] = predictions
    for label, parts in groups.items():
        if "all" not in parts or len(parts) < 2:
            continue
        try:
            with quietly():
                result = measure_sources(parts)
        except CurvewiseError as error:
            report.say(f"{label}: {error}")
            continue
        report.section(f"What makes runs differ? {label}")
        report.result(result)
        report.figure(f"sources-{_file(label)}", result.plot)
        report.page.document.setdefault("sources", {})[label] = result


def _file(label: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.]+", "-", label).strip("-")[:80]
