"""A study through every lens that applies: sections, and the results behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from curvewise.errors import CurvewiseError
from curvewise.report.content import Section, Table
from curvewise.report.lens_curves import look_at_curves
from curvewise.report.lens_spread import compare_best, look_at_sources, look_at_spread
from curvewise.report.looking import Looking, drawn, file_name, quietly
from curvewise.report.results import section_of
from curvewise.report.words import QUESTIONS

if TYPE_CHECKING:
    from curvewise.study.standings import Planned
    from curvewise.study.study import Study
    from curvewise.types import Measurements


def look(study: Study, planned: list[Planned], form: str) -> Looking:
    """Look at the runs of a study through every lens that applies."""
    looking = Looking(study, planned, form)
    try:
        with quietly():  # the notes have said what is missing
            looking.runs = study.measurements()
    except CurvewiseError:  # there is none yet, which the status tells
        return looking
    for lens in LENSES:
        lens(looking)
    return looking


def look_at_errors(looking: Looking) -> None:
    """Means and spread by learner and size, on every evaluation set."""
    assert looking.runs is not None
    columns = error_columns(looking.runs)
    spread = "its mean and standard deviation between runs"
    tables = [Table("errors", f"Test {looking.word}, {spread}", columns)]
    looking.found["errors"], evaluations, text = columns, {}, []
    for name in looking.study.evaluate:
        try:
            with quietly():
                measured = looking.study.measurements(evaluation=name)
        except CurvewiseError as error:
            text.append(f"{name}: {error}")
            continue
        evaluations[name] = error_columns(measured)
        title = f"{looking.word.capitalize()} on {name}, {spread}"
        tables.append(Table(f"errors-{file_name(name)}", title, evaluations[name]))
    looking.found["evaluations"] = evaluations
    title = "Losses" if looking.word == "loss" else "Errors"
    looking.sections.append(Section(title, tuple(text), tables=tuple(tables)))


def error_columns(m: Measurements) -> dict[str, list[Any]]:
    """A row for each learner and size: runs, mean, standard deviation, how many failed."""
    cells: dict[tuple[str, float], list[float]] = {}
    for key, value in zip(
        zip(m.learner.tolist(), m.n.tolist(), strict=True), m.error.tolist(), strict=True
    ):
        cells.setdefault(key, []).append(value)
    word = "loss" if m.unit.name == "loss" else "error"
    columns: dict[str, list[Any]] = {k: [] for k in ("learner", "n", "runs", word, "std", "failed")}
    for (learner, n), every in cells.items():
        values = np.array(every)
        good = values[np.isfinite(values)]
        row = (
            *(learner, int(n), len(good)),
            float(good.mean()) if len(good) else None,
            float(good.std(ddof=1)) if len(good) > 1 else None,
            len(values) - len(good),
        )
        for column, value in zip(columns.values(), row, strict=True):
            column.append(value)
    return columns


def look_at_rates(looking: Looking) -> None:
    """Learning rates that were searched for, of each learner and its settings."""
    from curvewise.io._records import said

    searches = [run for run in looking.planned if run.job.is_search]
    if not searches:
        return
    looking.found["rates"], text = {}, []
    for run in searches:
        job, rate = run.job, run.standing.metrics.get("rate")
        label = ", ".join([job.name, *(f"{k}={said(v)}" for k, v in job.settings.items())])
        tried = ", ".join(f"{r:g}" for r in job.learner.training.rates)  # type: ignore[union-attr]
        if run.state == "done" and rate is not None:
            looking.found["rates"][label] = rate
            text.append(f"{label}: {rate:g}, of {tried}, searched for at n={job.n:,}.")
        else:
            text.append(f"{label}: none yet of {tried}; the search is {run.state}.")
    looking.sections.append(Section("Which learning rates were chosen?", tuple(text)))


def look_at_transfer(looking: Looking) -> None:
    """What pretraining is worth, where some learners start from weights and one from nothing."""
    from curvewise.study.transfer import transfer_risks
    from curvewise.transfer import measure_transfer

    learners = looking.study.learners.values()
    starts = [k.training is not None and k.training.weights is not None for k in learners]
    if all(starts) or not any(starts):
        return
    title = QUESTIONS["transfer"]
    try:
        with quietly():
            result = measure_transfer(transfer_risks(looking.study, metric=looking.word))
    except CurvewiseError as error:
        looking.sections.append(Section(title, (f"Transfer is not measured: {error}",)))
        return
    looking.found["transfer"] = result
    looking.sections.append(
        drawn(section_of(result, title), "transfer", "Gains with their intervals")
    )


LENSES = (
    look_at_errors,
    look_at_rates,
    look_at_curves,
    compare_best,
    look_at_spread,
    look_at_sources,
    look_at_transfer,
)
"""In the order of the report."""
