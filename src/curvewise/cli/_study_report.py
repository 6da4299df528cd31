"""A study through every lens that applies: Markdown and figures in a folder."""

from __future__ import annotations

import html
import re
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from curvewise.cli._console import Page, UsageError, digits_of, note, sentences, warn_each
from curvewise.cli._files import quietly, save_plot
from curvewise.errors import CurvewiseError, CurvewiseWarning, InputError
from curvewise.tables import format_table

if TYPE_CHECKING:
    from curvewise.learning.base import Curve
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
        self.lines += ["", f"## {_safe(title)}", ""]
        self.page.say(title, style="bold")

    def say(self, text: str) -> None:
        """Add a paragraph."""
        self.lines += [_safe(text), ""]
        self.page.say(text, close=True)

    def table(self, title: str, columns: Mapping[str, Any], digits: int | None = 4) -> None:
        """Add a table."""
        safe = {
            _safe(k): [_safe(v) if isinstance(v, str) else v for v in c] for k, c in columns.items()
        }
        table = format_table(safe, "markdown", 4 if digits is None else digits)
        self.lines += [f"{_safe(title)}:", "", table, ""]
        self.page.table(title, columns, digits)

    def beware(self, messages: Sequence[str], name: str = "") -> None:
        """Add warnings with the name of what they are of, each once."""
        head = f"{name}: " if name else ""
        named = [w if w.startswith(head) else f"{head}{w}" for w in messages]
        new = [w for w in dict.fromkeys(named) if w not in self.warnings]
        self.lines += [*(f"- Beware: {_safe(w)}" for w in new), ""] if new else []
        self.warnings += new

    def result(self, result: Result, name: str = "") -> None:
        """Add the sentences of a result and keep its warnings."""
        self.say(sentences(result))
        self.beware(result.all_warnings, name)

    def figure(self, name: str, draw: Callable[[], Any]) -> None:
        """Add a figure."""
        taken = {Path(file).stem for file in self.files}
        name = next(n for n in chain([name], (f"{name}-{i}" for i in count(2))) if n not in taken)
        path = self.folder / f"{name}.png"
        with quietly():
            save_plot(path, draw, quiet=True)
        self.files.append(str(path))
        self.lines += [f"![{name}]({path.name})", ""]


def write_report(page: Page, study: Study, folder: Path, *, form: str = "power") -> None:
    """Write ``report.md`` and figures into a folder, and show the text."""
    from curvewise.study.reading import mixed_losses

    status = study.status()
    if not status.done:
        raise InputError(f"No run of {study.name} is done: `curvewise study run` makes them.")
    _make_folder(folder)
    report = Report(page, folder)
    report.lines += [f"# {_safe(study.name)}", ""]
    page.document = {"type": "StudyReport", "status": status}
    report.section("Runs")
    report.result(status)
    report.beware(study.partition.warnings)
    with quietly():  # the status has said what is missing
        measurements = study.measurements()
    word = _word(measurements)
    report.section("Losses" if word == "loss" else "Errors")
    page.document["errors"] = _errors(report, measurements, f"Test {word}")
    mixed = mixed_losses(study)
    report.beware(mixed)
    _evaluations(report, study)
    _rates(report, study)
    _learning(report, measurements, form, comparable=not mixed)
    _variance(report, study)
    _sources(report, study)
    path = folder / "report.md"
    path.write_text("\n".join(report.lines).strip() + "\n", encoding="utf-8")
    page.document |= {"files": [str(path), *report.files], "warnings": report.warnings}
    warn_each(report.warnings)
    note(f"written to {path}, with {len(report.files)} figure(s) beside it")


def _make_folder(folder: Path) -> None:
    """Make the folder, and see that it can be written to before any work is done."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UsageError(
            f"The report cannot be written to {folder} ({error.strerror}): name another folder "
            "with --out."
        ) from error


def _word(m: Measurements) -> str:
    """What the values are: errors of classes, or losses of numbers."""
    return "loss" if m.unit.name == "loss" else "error"


def _errors(report: Report, m: Measurements, what: str) -> dict[str, list[Any]]:
    cells = list(dict.fromkeys(zip(m.learner.tolist(), m.n.tolist(), strict=True)))
    word = _word(m)
    columns: dict[str, list[Any]] = {k: [] for k in ("learner", "n", "runs", word, "std", "failed")}
    for learner, n in cells:
        values = m.error[(m.learner == learner) & (m.n == n)]
        good = values[np.isfinite(values)]
        columns["learner"].append(learner)
        columns["n"].append(int(n))
        columns["runs"].append(len(good))
        columns[word].append(float(good.mean()) if len(good) else None)
        columns["std"].append(float(good.std(ddof=1)) if len(good) > 1 else None)
        columns["failed"].append(len(values) - len(good))
    report.table(f"{what}, its mean and standard deviation between runs", columns)
    return columns


def _evaluations(report: Report, study: Study) -> None:
    """Errors, or losses, on the evaluation sets beside the test set."""
    found = report.page.document.setdefault("evaluations", {})
    for name in study.evaluate:
        try:
            with quietly():
                measurements = study.measurements(evaluation=name)
        except CurvewiseError as error:
            report.say(f"{name}: {error}")
            continue
        word = _word(measurements).capitalize()
        found[name] = _errors(report, measurements, f"{word} on {name}")


def _rates(report: Report, study: Study) -> None:
    """Learning rates that were searched for, of each learner and its settings."""
    from curvewise.study.reading import said
    from curvewise.study.standings import planned_runs

    searches = [run for run in planned_runs(study) if run.job.is_search]
    if not searches:
        return
    report.section("Which learning rates were chosen?")
    found = report.page.document.setdefault("rates", {})
    for run in searches:
        job, rate = run.job, run.standing.metrics.get("rate")
        label = ", ".join([job.name, *(f"{k}={said(v)}" for k, v in job.settings.items())])
        tried = ", ".join(f"{r:g}" for r in job.learner.training.rates)  # type: ignore[union-attr]
        if run.state == "done" and rate is not None:
            found[label] = rate
            report.say(f"{label}: {rate:g}, of {tried}, searched for at n={job.n:,}.")
        else:
            report.say(f"{label}: none yet of {tried}; the search is {run.state}.")


def _learning(report: Report, runs: Measurements, form: str, *, comparable: bool) -> None:
    """Learning curves of the learners with enough sizes; failed runs are left out."""
    m = runs.subset_means()
    kept = _chosen(m, np.isfinite(m.error))
    curved = [k for k in kept.learners if len(np.unique(kept.of(k).n)) >= FEWEST_SIZES]
    if not curved:
        return
    from curvewise.learning import fit_learning_curves
    from curvewise.plot import plot_learning_curves

    report.section(f"How does the {_word(runs)} fall with data?")
    try:
        with quietly():
            curves = fit_learning_curves(_chosen(kept, np.isin(kept.learner, curved)), form=form)
    except CurvewiseError as error:
        report.say(f"No curves of form {form}: {error}")
        return
    if lost := int((~np.isfinite(runs.error)).sum()):
        report.say(f"{lost} failed run(s) are left out of the curves.")
    if runs.shared_subsets:
        report.say(
            "What the fits count as a run is the mean over the seeds of one training subset, "
            "because runs on the same examples are not independent: they count fewer than the "
            f"table of {'losses' if _word(runs) == 'loss' else 'errors'}."
        )
    for curve in curves:
        report.result(curve, curve.learner)
    for name, why in curves.failures.items():
        report.say(f"{name} could not be fitted: {why}")
    report.page.document["curves"] = curves
    fitted = list(curves)
    if fitted:
        _attempt(
            report,
            f"picture of curves of form {form}",
            lambda: report.figure("curves", lambda: plot_learning_curves(curves)),
        )
    if not comparable:
        report.say("The curves are not compared: the learners are judged by different losses.")
    elif len(fitted) == 2:
        _attempt(report, f"comparison of curves of form {form}", lambda: _compare(report, fitted))
    elif len(fitted) > 2:
        _attempt(report, f"ranking by curves of form {form}", lambda: _rank(report, fitted))


def _chosen(m: Measurements, rows: Any) -> Measurements:
    return replace(
        m,
        learner=m.learner[rows],
        n=m.n[rows],
        error=m.error[rows],
        labels={k: v[rows] for k, v in m.labels.items()},
    )


def _attempt(report: Report, what: str, act: Callable[[], None]) -> None:
    """Do what not every form of curve allows, or say that it is left out."""
    try:
        act()
    except CurvewiseError as error:
        report.say(f"There is no {what}: {error}")


def _compare(report: Report, curves: Sequence[Curve]) -> None:
    from curvewise.learning import compare_learning_curves

    comparison = compare_learning_curves(*curves)
    report.result(comparison)
    report.page.document["comparison"] = comparison
    report.figure("comparison", comparison.plot)


def _rank(report: Report, curves: Sequence[Curve]) -> None:
    """Order the learners at the largest size that all of them have."""
    from curvewise.learning import rank_learners

    ranking = rank_learners(curves)
    report.result(ranking)
    columns = dict(ranking.columns())
    columns["chance best"] = [f"{p:.0%}" for p in columns.pop("probability_best")]
    what = f"{ranking.level:.0%} {ranking.kind} intervals"
    report.table(f"Ranking at n = {ranking.at:,.0f} ({what})", columns, digits_of(ranking.unit))
    report.page.document["ranking"] = ranking
    report.figure("ranking", ranking.plot)


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
        report.result(result, label)
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
        report.result(result, label)
        report.figure(f"sources-{_file(label)}", result.plot)
        report.page.document.setdefault("sources", {})[label] = result


def _file(label: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.]+", "-", label).strip("-")[:80]


def _safe(text: str) -> str:
    """Text that Markdown does not take for tags."""
    return html.escape(text, quote=False)
