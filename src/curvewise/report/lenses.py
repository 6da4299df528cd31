"""A study through every lens that applies: sections, and the results behind them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from curvewise.errors import CurvewiseError, quietly
from curvewise.report.content import Section, Table
from curvewise.report.results import QUESTIONS, section_of, sentences
from curvewise.text import format_number

if TYPE_CHECKING:
    from curvewise.learning.curve import Curve
    from curvewise.study.spec.study import Job
    from curvewise.study.status import Planned
    from curvewise.study.study import Study
    from curvewise.types.measurements import Measurements
    from curvewise.types.predictions import Predictions
    from curvewise.types.results import Result


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
    for key, value in zip(zip(m.learner.tolist(), m.n.tolist(), strict=True), m.error.tolist(), strict=True):
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
    from curvewise.store.tables import setting_text

    searches = [run for run in looking.planned if run.job.is_search]
    if not searches:
        return
    looking.found["rates"], text = {}, []
    for run in searches:
        job, rate = run.job, run.standing.metrics.get("rate")
        label = ", ".join([job.name, *(f"{k}={setting_text(v)}" for k, v in job.settings.items())])
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
    from curvewise.transfer.measure import measure_transfer

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
    looking.sections.append(drawn(section_of(result, title), "transfer", "Gains with their intervals"))


def look_at_curves(looking: Looking) -> None:
    """Learning curves of the learners with enough sizes, and which learner is best."""
    from curvewise.learning.fit import fit_learning_curves

    assert looking.runs is not None
    means = looking.runs.subset_means()
    kept = _chosen(means, np.isfinite(means.error))
    sizes: dict[str, set[float]] = {}
    for learner, n in zip(kept.learner.tolist(), kept.n.tolist(), strict=True):
        sizes.setdefault(learner, set()).add(n)
    curved = [k for k, found in sizes.items() if len(found) >= FEWEST_SIZES]
    if not curved:
        return
    left = {k: len(sizes.get(k, ())) for k in looking.runs.learners if k not in curved}
    looking.left_out += [*_without_curve(left), *_ahead(looking, left)]
    title = f"How does the {looking.word} fall with data?"
    try:
        with quietly():
            curves = fit_learning_curves(_chosen(kept, np.isin(kept.learner, curved)), form=looking.form)
    except CurvewiseError as error:
        looking.sections.append(Section(title, (f"No curves of form {looking.form}: {error}",)))
        return
    looking.found["curves"] = curves
    points, table = _points(looking.runs), f"{looking.word.capitalize()} e_N and data-reliance β_N"
    found, notes = attempted(
        lambda: drawn(section_of(curves, title, runs=points), "curves", table),
        f"picture of curves of form {looking.form}",
    )
    every = list(curves)
    told = [sentences(c) for c in every[:MOST_TOLD]]
    if len(every) > MOST_TOLD:
        told.append(f"The table has the other {len(every) - MOST_TOLD} learners.")
    looking.sections.append(
        replace(
            found or Section(title),
            text=(*_before_curves(looking), *told, *_unfitted(curves.failures), *notes),
            warnings=tuple(w for c in every for w in named(c.all_warnings, c.learner)),
        )
    )
    _best(looking, every)


def compare_best(looking: Looking) -> None:
    """Where no curves tell, compare the two best learners by their runs at one size."""
    from curvewise.variance.compare import compare_runs

    found = _trainings(looking)
    several = len(looking.study.design.variations) > 1
    if "curves" in looking.found or several or len({t.n for t in found}) != 1 or len(found) < 2:
        return
    a, b = sorted(found, key=lambda t: t.error)[:2]
    title = f"Which learner is better at n = {a.n:,}?"
    picked = f"{a.label} and {b.label} are the two best of {len(found)} by the same runs, which flatters them a little."
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
    from curvewise.variance.decompose import decompose_variance

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
    from curvewise.variance.sources import measure_sources

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


# Learning curves of a study, and which learner is best by them.

FEWEST_SIZES = 3
MOST_TOLD = 12
"""Curves that are told one by one; the table has all."""


def _before_curves(looking: Looking) -> list[str]:
    """What the curves leave out and what they count as a run."""
    runs = looking.runs
    assert runs is not None
    text = list(looking.left_out)
    if lost := int((~np.isfinite(runs.error)).sum()):
        text.append(f"{_counted(lost, 'failed run')} left out of the curves.")
    if runs.shared_subsets:
        text.append(
            "What the fits count as a run is the mean over the seeds of one training subset, "
            "because runs on the same examples are not independent: they count fewer than the "
            f"table of {'losses' if looking.word == 'loss' else 'errors'}."
        )
    return text


def _without_curve(sizes: Mapping[str, int]) -> list[str]:
    """Name the learners without a curve, and why they have none.

    >>> _without_curve({"net": 2, "tree": 1})
    ['There is no curve of net (runs at 2 sizes) or tree (runs at 1 size): one takes 3 sizes.']
    """
    if not sizes:
        return []
    why = {0: "no run that ended well", 1: "runs at 1 size"}
    every = [f"{k} ({why.get(many, f'runs at {many} sizes')})" for k, many in sizes.items()]
    named_ones = every[:MOST_TOLD]
    if len(every) > MOST_TOLD:
        named_ones.append(f"{len(every) - MOST_TOLD} more, which the table of errors has")
    said = " or ".join(filter(None, [", ".join(named_ones[:-1]), named_ones[-1]]))
    return [f"There is no curve of {said}: one takes {FEWEST_SIZES} sizes."]


def _ahead(looking: Looking, left: Iterable[str]) -> list[str]:
    """Say so if a learner without a curve has the lowest mean at the largest size."""
    columns = looking.found["errors"]
    rows = zip(columns["n"], columns[looking.word], columns["learner"], strict=True)
    known = [row for row in rows if row[1] is not None]
    n, value, learner = min(known, key=lambda row: (-row[0], row[1]))
    if learner not in left:
        return []
    return [f"Yet {learner} has the lowest mean {looking.word} at n = {n:,}: {format_number(value)}."]


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what} is" if count == 1 else f"{count:,} {what}s are"


def _unfitted(failures: Mapping[str, str]) -> list[str]:
    return [f"{name} could not be fitted: {why}" for name, why in failures.items()]


def _best(looking: Looking, curves: Sequence[Curve]) -> None:
    """Compare two learners by their curves, or order more of them."""
    from curvewise.learning.comparison import compare_learning_curves, rank_learners
    from curvewise.study.results import mixed_losses

    if len(curves) < 2:
        return
    title = "Which learner is better?" if len(curves) == 2 else "Which learner is best?"
    if mixed_losses(looking.study):
        text = "The curves are not compared: the learners are judged by different losses."
        looking.sections.append(Section(title, (text,)))
        return
    two = len(curves) == 2
    name, what = ("comparison", "comparison of") if two else ("ranking", "ranking by")

    def compared() -> Section:
        result = compare_learning_curves(*curves) if two else rank_learners(curves)
        section = drawn(section_of(result, title), name, "Differences with their intervals")
        looking.found[name] = result
        return section if two else replace(section, tables=(_ranking_table(result),))

    found, notes = attempted(compared, f"{what} curves of form {looking.form}")
    looking.sections.append(found or Section(title, tuple(notes)))


def _ranking_table(ranking: Any) -> Table:
    columns = {k: list(v) for k, v in ranking.columns().items()}
    columns["chance best"] = [f"{p:.0%}" for p in columns.pop("probability_best")]
    what = f"{ranking.level:.0%} {ranking.kind} intervals"
    return Table("ranking", f"Ranking at n = {ranking.at:,.0f} ({what})", columns)


def _points(runs: Measurements) -> Measurements:
    """The runs as points of a picture, with what tells them apart."""
    labels = {"fold": runs.labels["fold"], "seed": runs.labels["init_seed"]}
    return replace(runs, labels=labels)


def _chosen(m: Measurements, rows: Any) -> Measurements:
    return replace(
        m, learner=m.learner[rows], n=m.n[rows], error=m.error[rows], labels={k: v[rows] for k, v in m.labels.items()}
    )


# How much the runs of a study differ, what of it is real, and what makes it.

FEWEST_RUNS, MOST_TRAININGS = 5, 12
"""Runs that say something of their spread, and trainings that are shown one by one."""


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
    from curvewise.study.results import label_of

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
            return study.predictions(job.name, n=job.n, fold=job.fold, vary=job.varies, **job.settings)

    return read


# What is common to all lenses on a study: what was found so far, and how it is said.


@dataclass
class Looking:
    """A study while it is looked at.

    Attributes
    ----------
    study : Study
        Whose runs.
    planned : list of Planned
        Every run that it asks for, with what is stored of it.
    form : str
        Of the learning curves.
    runs : Measurements, optional
        What the runs measured; None while there are none.
    sections : list of Section
        What was said so far.
    found : dict
        The results behind it.
    left_out : list of str
        Sentences on learners that the answer cannot be about.
    """

    study: Study
    planned: list[Planned]
    form: str
    runs: Measurements | None = None
    sections: list[Section] = field(default_factory=list)
    found: dict[str, Any] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)

    @property
    def word(self) -> str:
        """What the values are: errors of classes, or losses of numbers."""
        return "loss" if self.runs is not None and self.runs.unit.name == "loss" else "error"

    def figure(self, name: str) -> Any:
        """A picture that was made, by its name."""
        every = (f for s in self.sections for f in s.figures)
        return next((f for f in every if f.name == name), None)


def drawn(section: Section, name: str, table: str = "Numbers") -> Section:
    """A section whose pictures and tables have a short name, for files, and tables a title."""
    return replace(
        section,
        figures=tuple(replace(f, name=name) for f in section.figures),
        tables=tuple(replace(t, name=name, title=table) for t in section.tables),
    )


def part_of(result: Result, label: str, kind: str) -> Section:
    """The section of one of several results of a kind, whose warnings have its name."""
    table = f"{label}: estimates with their intervals"
    section = drawn(section_of(result, label), f"{kind}-{file_name(label)}", table)
    return replace(section, warnings=tuple(named(result.all_warnings, label)))


def joined(title: str, parts: Sequence[Section]) -> Section:
    """Sections of several trainings as one."""
    return Section(
        title,
        text=tuple(f"{p.title}: {text}" for p in parts for text in p.text),
        warnings=tuple(w for p in parts for w in p.warnings),
        figures=tuple(f for p in parts for f in p.figures),
        tables=tuple(t for p in parts for t in p.tables),
        method=parts[0].method if parts else (),
        settings=parts[0].settings if parts else {},
    )


def attempted(act: Callable[[], Section], what: str) -> tuple[Section | None, list[str]]:
    """Do what not every form of curve allows, or say that it is left out."""
    try:
        with quietly():
            return act(), []
    except CurvewiseError as error:
        return None, [f"There is no {what}: {error}"]


def named(messages: Sequence[str], name: str) -> list[str]:
    """Warnings with the name of what they are of.

    >>> named(["few runs.", "net: few sizes."], "net")
    ['net: few runs.', 'net: few sizes.']
    """
    head = f"{name}: "
    return [w if w.startswith(head) else f"{head}{w}" for w in messages]


def file_name(label: str) -> str:
    """Part of the name of a file.

    >>> file_name("net, rate=0.1/2")
    'net-rate-0.1-2'
    """
    return re.sub(r"[^A-Za-z0-9_.]+", "-", label).strip("-")[:80]
