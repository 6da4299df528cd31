"""How much the runs of a study differ, what of it is real, and what makes it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from curvewise.errors import CurvewiseError
from curvewise.report.content import Section
from curvewise.report.looking import Looking, drawn, joined, part_of, quietly
from curvewise.report.results import section_of

if TYPE_CHECKING:
    from curvewise.study.jobs import Job
    from curvewise.study.standings import Planned
    from curvewise.study.study import Study
    from curvewise.types import Predictions

FEWEST_RUNS, MOST_TRAININGS = 5, 12
"""Runs that say something of their spread, and trainings that are shown one by one."""


def compare_best(looking: Looking) -> None:
    """Where no curves tell, compare the two best learners by their runs at one size."""
    from curvewise.variance import compare_runs

    found = _trainings(looking)
    several = len(looking.study.design.variations) > 1
    if "curves" in looking.found or several or len({t.n for t in found}) != 1 or len(found) < 2:
        return
    a, b = sorted(found, key=lambda t: t.error)[:2]
    title = f"Which learner is better at n = {a.n:,}?"
    picked = (
        f"{a.label} and {b.label} are the two best of {len(found)} by the same runs, which "
        "flatters them a little."
    )
    try:
        with quietly():
            result = compare_runs(a.read(), b.read(), names=(a.label, b.label), paired=False)
    except CurvewiseError as error:
        looking.sections.append(Section(title, (f"There is no comparison of runs: {error}",)))
        return
    looking.found["better"] = result
    section = drawn(section_of(result, title), "better", "Differences with their intervals")
    more = (picked,) if len(found) > 2 else ()
    looking.sections.append(replace(section, text=(*section.text, *more)))


def look_at_spread(looking: Looking) -> None:
    """What of the spread between runs is real, for each training with enough runs."""
    from curvewise.variance import decompose_variance

    found = _trainings(looking)
    if not found:
        return
    results, parts, text = {}, [], []
    for training in found[:MOST_TRAININGS]:
        try:
            with quietly():
                result = decompose_variance(training.read())
        except CurvewiseError as error:
            text.append(f"{training.title}: {error}")
            continue
        results[training.title] = result
        parts.append(part_of(result, training.title, "variance"))
    if len(found) > MOST_TRAININGS:
        text.append(f"{len(found) - MOST_TRAININGS} further trainings are not shown.")
    looking.found["variance"] = results
    section = joined("How much do runs differ?", parts)
    looking.sections.append(replace(section, text=(*section.text, *text)))


def look_at_sources(looking: Looking) -> None:
    """What each source of randomness does alone, where the design varies them one by one."""
    from curvewise.variance import measure_sources

    variations = looking.study.design.variations
    if len(variations) < 2:
        return
    groups: dict[str, dict[str, Any]] = {}
    widest = max(variations, key=len)
    for training in _trainings(looking):
        varied = re.search(r", vary=([a-z+]+)", training.title)
        if varied is not None:
            name = "all" if varied[1] == "+".join(widest) else varied[1]
            groups.setdefault(training.title.replace(varied[0], ""), {})[name] = training
    for label, parts in groups.items():
        if "all" not in parts or len(parts) < 2:
            continue
        title = f"What makes runs differ? {label}"
        try:
            with quietly():
                result = measure_sources({k: t.read() for k, t in parts.items()})
        except CurvewiseError as error:
            looking.sections.append(Section(title, (f"{label}: {error}",)))
            continue
        looking.found.setdefault("sources", {})[label] = result
        section = part_of(result, label, "sources")
        looking.sections.append(replace(section, title=title))


@dataclass(frozen=True)
class _Training:
    """Runs that differ by chance alone: one learner at its largest size on one subset."""

    label: str
    n: int
    read: Callable[[], Predictions]
    error: float

    @property
    def title(self) -> str:
        return f"{self.label}, n={self.n:,}"


def _trainings(looking: Looking) -> list[_Training]:
    from curvewise.study.reading import label_of

    study = looking.study
    cells: dict[str, dict[tuple[int, int], list[Planned]]] = {}
    for run in looking.planned:
        if run.state == "done" and not run.job.is_search:
            at = cells.setdefault(label_of(study, run.job), {})
            at.setdefault((run.job.n, -run.job.fold), []).append(run)
    found = []
    for label, at in cells.items():
        enough = [key for key, runs in at.items() if len(runs) >= FEWEST_RUNS]
        if enough:
            runs = at[max(enough)]
            values = [run.standing.metrics.get(looking.word) for run in runs]
            mean = float(np.mean([np.nan if v is None else v for v in values]))
            found.append(_Training(label, max(enough)[0], _reader(study, runs[0].job), mean))
    return found


def _reader(study: Study, job: Job) -> Callable[[], Predictions]:
    def read() -> Predictions:
        with quietly():
            return study.predictions(
                job.name, n=job.n, fold=job.fold, vary=job.varies, **job.settings
            )

    return read
