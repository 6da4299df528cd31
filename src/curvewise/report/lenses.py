"""A study through every lens that applies: sections, and the results behind them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from curvewise.errors import prefix, quietly
from curvewise.report.charts import join_names
from curvewise.report.content import ReportTable, Section
from curvewise.report.results import QUESTIONS, attempt, file_name, method_of, section_of
from curvewise.text import Cell, format_count, format_level, format_number, format_value, readable_columns

if TYPE_CHECKING:
    from curvewise.learning.curve import Curve
    from curvewise.study.response import KeptInvariance
    from curvewise.study.spec.study import Job
    from curvewise.study.status import Planned
    from curvewise.study.study import Study
    from curvewise.types.measurements import Measurements
    from curvewise.types.predictions import Predictions
    from curvewise.types.results import Result


Found = TypeVar("Found")


def find_all(study: Study, planned: list[Planned], form: str) -> StudyFindings:
    """Ask of the runs of a study every question that its design can answer."""
    # There are no measurements before the first run; the status says so.
    findings = StudyFindings(study, planned, form, attempt(study.measurements)[0])
    if findings.runs is not None:
        findings.found["errors"] = error_columns(findings.runs)
        for lens in LENSES:
            lens(findings)
    return findings


def show_errors(findings: StudyFindings) -> None:
    """Means and spread by learner and size, on every evaluation set."""
    word = findings.word
    measured, text = {"": findings.found["errors"]}, []
    for name in findings.study.evaluate:
        found, problem = attempt(partial(findings.study.measurements, evaluation=name))
        if found is None:
            text.append(f"{name}: {problem}")
        else:
            measured[name] = error_columns(found)
    findings.found["evaluations"] = {name: columns for name, columns in measured.items() if name}
    tables = []
    for name, columns in measured.items():
        title = f"{word.capitalize()} on {name or 'the test set'}: mean and standard deviation between runs"
        kept = columns if any(columns["failed"]) else {k: v for k, v in columns.items() if k != "failed"}
        tables.append(ReportTable(f"errors-{file_name(name)}" if name else "errors", title, kept, findings.unit))
    findings.sections.append(Section(f"Which {findings.plural} were measured?", tuple(text), tables=tuple(tables)))


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


def show_rates(findings: StudyFindings) -> None:
    """Learning rates that were searched for, of each learner and its settings."""
    from curvewise.store.tables import setting_text

    searches = [run for run in findings.planned if run.job.is_search]
    if not searches:
        return
    findings.found["rates"], text = {}, []
    for run in searches:
        job, rate = run.job, run.standing.metrics.get("rate")
        label = ", ".join([job.name, *(f"{k}={setting_text(v)}" for k, v in job.settings.items())])
        tried = ", ".join(f"{r:g}" for r in job.learner.training.rates)  # type: ignore[union-attr]
        if run.state == "done" and rate is not None:
            findings.found["rates"][label] = rate
            text.append(f"{label}: {rate:g}, chosen from {tried} at n = {job.n:,}.")
        else:
            text.append(f"{label}: not chosen yet from {tried}; the search is {run.state}.")
    findings.sections.append(Section("Which learning rates were chosen?", tuple(text)))


def show_transfer(findings: StudyFindings) -> None:
    """Measure what pretraining is worth, where some learners start from weights and one from nothing."""
    from curvewise.study.lenses import transfer_risks
    from curvewise.transfer.measure import measure_transfer

    # Transfer is a question only where weights stand beside training from scratch.
    learners = findings.study.learners.values()
    starts = [k.training is not None and k.training.weights is not None for k in learners]
    if all(starts) or not any(starts):
        return
    title = QUESTIONS["transfer"]
    risks = partial(transfer_risks, findings.study, metric=findings.word)
    result = findings.ask(title, lambda: measure_transfer(risks()), "Transfer is not measured: ")
    if result is None:
        return
    findings.found["transfer"] = result
    findings.sections.append(name_parts(section_of(result, title), "transfer", "Gains with 95% intervals"))


def show_images(findings: StudyFindings) -> None:
    """Show predicted images beside their targets, where the study kept them."""
    from curvewise.study.lenses import predicted_images

    if not findings.study.keep.predictions or findings.study.dataset.y.ndim != 4:
        return
    title = "What do the methods predict?"
    result = findings.ask(title, partial(predicted_images, findings.study), "Predicted images are not shown: ")
    if result is not None:
        findings.sections.append(name_parts(section_of(result, title), "images", "Losses of these images"))


_FORM = re.compile(r" Form: [^:]*, a weighted mean of \d+ forms, [^:]*$")


def show_curves(findings: StudyFindings) -> None:
    """Learning curves of the learners with enough sizes, and which learner is best."""
    from curvewise.learning.curve import note_on_estimates
    from curvewise.learning.fit import fit_learning_curves

    assert findings.runs is not None
    # Runs on one training subset are not independent: their mean counts as one run.
    means = findings.runs.subset_means()
    if not np.isfinite(means.error).any():
        return
    kept = means.select(np.isfinite(means.error))
    sizes: dict[str, set[float]] = {}
    for learner, n in zip(kept.learner.tolist(), kept.n.tolist(), strict=True):
        sizes.setdefault(learner, set()).add(n)
    curved = [k for k, found in sizes.items() if len(found) >= FEWEST_SIZES]
    if not curved:
        return
    left = {k: len(sizes.get(k, ())) for k in findings.runs.learners if k not in curved}
    findings.left_out += [*_without_curve(left), *_ahead(findings, left)]
    title = f"How does the {findings.word} fall with data?"
    chosen = kept.select(np.isin(kept.learner, curved))
    fit = partial(fit_learning_curves, chosen, form=findings.form)
    curves = findings.ask(title, fit, f"No curves of form {findings.form}: ")
    if curves is None:
        return
    findings.found["curves"] = curves
    labels = findings.runs.labels
    points = replace(findings.runs, labels={"fold": labels["fold"], "seed": labels["init_seed"]})
    table = note_on_estimates(list(curves)).replace(" (", " at the largest size N (", 1)
    # Not every form of curve can be drawn.
    found, problem = attempt(lambda: name_parts(section_of(curves, title, runs=points), "curves", table))
    notes = [f"There is no picture of curves of form {findings.form}: {problem}"] if found is None else []
    every = list(curves)
    # The form is named once for all of them.
    described = [_FORM.sub("", c.sentences()) for c in every[:MOST_TOLD]]
    if described != [c.sentences() for c in every[:MOST_TOLD]]:
        notes.append(f"Form {findings.form}: a mean of several laws, which are named under Methods and settings.")
    if len(every) > MOST_TOLD:
        described.append(f"The table lists the other {len(every) - MOST_TOLD} learners.")
    unfitted = [f"{name} could not be fitted: {why}" for name, why in curves.failures.items()]
    findings.sections.append(
        replace(
            found or Section(title),
            text=(*_before_curves(findings), *described, *unfitted, *notes),
            warnings=tuple(w for c in every for w in prefix_each(c.all_warnings, c.learner)),
        )
    )
    _best(findings, every)


def show_checks(findings: StudyFindings) -> None:
    """Test what the curves rest on: the variance model, and how far one run at each of a few sizes would do."""
    from curvewise.learning.validation import check_variance_model, measure_stability

    curves = [c for c in findings.found.get("curves", ()) if c._data.replicated][:MOST_TOLD]
    check, _ = attempt(lambda: check_variance_model(curves))
    # With one replicated size there is nothing to test.
    if check is None or len(check.n) < 2:
        return

    def drawn(c: Curve) -> dict[str, Any]:
        given: dict[str, Any] = {"unit": c.unit.name, "runs": c.runs, "variance": c.variance, "forms": ["power"]}
        return {"learner": [c.learner], **measure_stability(c.n, c.mean, **given).columns()}

    rows = [{k: v[0] for k, v in drawn(c).items() if not k.startswith("rmse_")} for c in curves]
    few = {key: [row[key] for row in rows] for key in rows[0] if key != "form"}
    title = "Standard deviation of the estimates if each of the largest sizes (at most four) had one run"
    findings.found |= {"variance_check": check, "stability": few}
    section = name_parts(section_of(check, "Can the curves be trusted?"), "variance-check")
    # As standard deviations, which have the unit of the errors.
    spread: dict[str, Any] = {
        "n": check.n.astype(int),
        "measured": np.sqrt(check.measured),
        "modelled": np.sqrt(check.modelled),
    }
    # α is left out: a few runs do not determine it.
    named = {"e_N": "e_N_std", "β_N": "beta_N_std"}
    shown = {"learner": few["learner"], **readable_columns({k: few[v] for k, v in named.items()}, findings.unit)}
    shown["γ"] = [Cell(format_number(v, 2)) for v in few["gamma_std"]]
    of = "Standard deviation between runs, measured and as the fits assume"
    tables = (
        ReportTable("variance-check", of, spread, findings.unit),
        ReportTable("stability", title, few, written=shown),
    )
    findings.sections.append(replace(section, tables=tables, method=method_of(curves[0])))


def compare_best(findings: StudyFindings) -> None:
    """Compare the two best learners by their runs at one size, where there are no curves."""
    from curvewise.variance.compare import compare_runs

    found = _trainings(findings)
    several = len(findings.study.design.variations) > 1
    if "curves" in findings.found or several or len({t.n for t in found}) != 1 or len(found) < 2:
        return
    # The two best by their mean: a comparison of all pairs would need a correction that few runs cannot pay.
    a, b = sorted(found, key=lambda t: t.error)[:2]
    title = f"Which learner is better at n = {a.n:,}?"
    picked = (
        f"{a.label} and {b.label} are the two best of {len(found)} learners by the same runs, so the comparison is "
        "slightly optimistic."
    )
    compare = partial(compare_runs, names=(a.label, b.label), paired=False)
    result = findings.ask(title, lambda: compare(a.read(), b.read()), "There is no comparison of runs: ")
    if result is None:
        return
    findings.found["better"] = result
    section = name_parts(section_of(result, title), "better", "Differences with 95% intervals")
    more = (picked,) if len(found) > 2 else ()
    findings.sections.append(replace(section, text=(*a.one_subset, *section.text, *more)))


def show_spread(findings: StudyFindings) -> None:
    """Split the spread between runs, for each training with enough of them."""
    from curvewise.variance.decompose import decompose_variance

    found = _trainings(findings)
    if not found:
        return
    results, problems = {}, []
    title = "How much do runs differ?"
    for training in found[:MOST_TRAININGS]:
        result, problem = attempt(partial(lambda one: decompose_variance(one.read()), training))
        if result is None:
            problems.append(f"{training.title}: {problem}")
            continue
        results[training.title] = result
        section = part_of(result, title, training.title, "variance")
        findings.sections.append(replace(section, text=(*training.one_subset, *section.text)))
    if len(found) > MOST_TRAININGS:
        problems.append(f"{len(found) - MOST_TRAININGS} further trainings are not shown.")
    findings.found["variance"] = results
    if problems:
        findings.sections.append(Section(title, tuple(problems)))


def show_sources(findings: StudyFindings) -> None:
    """Measure each source of randomness alone, where the design varies them one by one."""
    from curvewise.variance.sources import measure_sources

    design = findings.study.design
    if len(design.sources) < 2:
        return
    groups: dict[str, dict[str, Any]] = {}
    names = {"+".join(variation): name for name, variation in design.sources.items()}
    for training in _trainings(findings):
        job = training.job
        if job.varies in names and (job.poke is None or job.poke.epoch == design.poke_epochs[0]):
            groups.setdefault(training.without_chance, {})[names[job.varies]] = training
    for label, parts in groups.items():
        if "all" in parts and len(parts) > 1:
            act = partial(_measured, measure_sources, parts)
            _show_each(findings, "sources", "What makes runs differ?", label, act)


def show_twins(findings: StudyFindings) -> None:
    """Measure how far poked runs and their twins grow apart, where the design pokes and leaves alone."""
    study = findings.study
    poked = [study.design.is_poked(variation) for variation in study.design.variations]
    if all(poked) or not any(poked):
        return
    seen: dict[str, _StudyTraining] = {}
    for training in _trainings(findings):
        if training.job.poke is not None and len(training.job.varies.split("+")) > 1:
            seen.setdefault(training.without_chance, training)
    for label, training in seen.items():
        job = training.job
        act = partial(study.twins, job.name, n=job.n, fold=job.fold, **job.settings)
        _show_each(findings, "twins", "How far do twins grow apart?", label, act)


def show_sweeps(findings: StudyFindings) -> None:
    """Follow the variance along every setting of the grid that is a number."""
    from curvewise.variance.variances import measure_sweep

    design = findings.study.design
    everything = "+".join(design.sources["all"])
    found = [t for t in _trainings(findings) if t.job.varies == everything and t.job.poke is None]
    for setting in design.settings:
        groups: dict[str, dict[float, Any]] = {}
        for training in found:
            value = training.job.settings.get(setting)
            if isinstance(value, int | float) and not isinstance(value, bool):
                groups.setdefault(training.without(setting), {})[value] = training
        for label, parts in groups.items():
            if len(parts) > 1:
                title = f"How does the variance depend on {setting}?"
                act = partial(_measured, partial(measure_sweep, name=setting), parts)
                _show_each(findings, "sweeps", title, label, act, key=f"{setting}: {label}")


def show_test_sets(findings: StudyFindings) -> None:
    """Compare the variance of the same runs on the test set and on further sets with examples of their own."""
    from curvewise.variance.luck import compare_test_sets

    sets = ["test", *(name for name, e in findings.study.evaluate.items() if e.data is not None)]
    for training in _trainings(findings)[:MOST_TRAININGS] if len(sets) > 1 else ():
        act = partial(lambda one: compare_test_sets({name: one.read(name) for name in sets}), training)
        _show_each(findings, "test_sets", "Do runs differ more on other data?", training.title, act)


def _measured(measure: Callable[[Mapping[Any, Any]], Found], trainings: Mapping[Any, _StudyTraining]) -> Found:
    return measure({key: training.read() for key, training in trainings.items()})


def _show_each(
    findings: StudyFindings, kind: str, title: str, label: str, act: Callable[[], Result], key: str = ""
) -> None:
    """Add the section of one of several results of a kind, or the reason why there is none."""
    result = findings.ask(title, act, label=label)
    if result is not None:
        findings.found.setdefault(kind, {})[key or label] = result
        findings.sections.append(part_of(result, title, label, kind))


# Numbers that networks take, over all answers, up to which a report measures invariance itself: about a minute.
INVARIANCE_LIMIT = 5e7


def show_invariance(findings: StudyFindings) -> None:
    """Judge measures of invariance, where networks were trained with a perturbation and evaluated over its range."""
    from curvewise.study.response import PLACES, kept_invariance, list_invariances

    study = findings.study
    names = list_invariances(study) if study.keep.checkpoints == "end" else []
    unmade = any(run.state == "missing" for run in findings.planned)
    answers = PLACES * sum(run.job.n for run in findings.planned)
    small = answers * float(np.prod(study.examples.shape)) <= INVARIANCE_LIMIT if names else False
    for name in names:
        title = f"Which measure on training data predicts the error under {name}?"

        kept, problem = attempt(partial(kept_invariance, study, name))
        if problem or (kept is None and (unmade or not small)):
            why = problem or "`curvewise response invariance` measures the networks when all runs are there."
            findings.sections.append(Section(title, (f"Not measured yet: {why}",)))
            continue
        found = findings.ask(title, partial(_judge_invariance, study, name, kept), "Invariance is not judged: ")
        if found is None:
            continue
        result, settings = found
        findings.found.setdefault("invariance", {})[name] = result
        section = name_parts(section_of(result, title), f"invariance-{file_name(name)}", "Measures with 95% intervals")
        findings.sections.append(replace(section, text=(*section.text, settings)))


def _judge_invariance(study: Study, name: str, kept: KeptInvariance | None) -> tuple[Result, str]:
    """Judge measures that were kept, or measure the networks; and state the settings of the measurement."""
    from curvewise.response.judgement import judge_measures
    from curvewise.study.response import PLACES, KeptInvariance, measure_invariance

    if kept is None:
        corpus = measure_invariance(study, name, device="cpu", progress=False)
        kept = KeptInvariance(corpus, {"magnitudes": PLACES, "examples": None, "rng": 0})
    return judge_measures(kept.corpus, least_train_accuracy=0.8), kept.sentence


LENSES = (
    *(show_curves, show_checks, compare_best, show_spread, show_sweeps, show_sources, show_twins),
    *(show_test_sets, show_transfer, show_images, show_invariance, show_rates, show_errors),
)
"""In the order of the report."""


FEWEST_SIZES = 3
MOST_TOLD = 12
"""Curves that are described one by one; the table has all."""


def _before_curves(findings: StudyFindings) -> list[str]:
    """State what the curves leave out and what they count as a run."""
    runs = findings.runs
    assert runs is not None
    text = []
    if lost := int((~np.isfinite(runs.error)).sum()):
        text.append(f"The curves leave out {format_count(lost, 'failed run')}.")
    if runs.shared_subsets:
        text.append(
            "The fits use the mean over the seeds of each training subset, because runs on the same examples are not "
            "independent."
        )
    return text


def _without_curve(sizes: Mapping[str, int]) -> list[str]:
    """Name the learners without a curve, and why they have none.

    >>> _without_curve({"net": 2, "tree": 1})
    ['There is no curve for net (runs at 2 sizes) and tree (runs at 1 size): a curve needs 3 sizes.']
    """
    if not sizes:
        return []
    why = {0: "no finished run", 1: "runs at 1 size"}
    every = [f"{k} ({why.get(many, f'runs at {many} sizes')})" for k, many in sizes.items()]
    return [f"There is no curve for {join_names(every, MOST_TOLD)}: a curve needs {FEWEST_SIZES} sizes."]


def _ahead(findings: StudyFindings, left: Iterable[str]) -> list[str]:
    """Point out a learner without a curve that has the lowest mean at the largest size."""
    columns = findings.found["errors"]
    rows = zip(columns["n"], columns[findings.word], columns["learner"], strict=True)
    known = [row for row in rows if row[1] is not None]
    # The largest size first, then the lowest mean.
    n, value, learner = min(known, key=lambda row: (-row[0], row[1]))
    if learner not in left:
        return []
    lowest = format_value(value, findings.unit)
    return [f"However, {learner} has the lowest mean {findings.word} at n = {n:,}: {lowest}."]


def _best(findings: StudyFindings, curves: Sequence[Curve]) -> None:
    """Compare two learners by their curves, or order more of them."""
    from curvewise.learning.comparison import CurveComparison, compare_learning_curves, rank_learners
    from curvewise.study.study import mixed_losses

    if len(curves) < 2:
        return
    question = "Which learner is better?" if len(curves) == 2 else "Which learner is best?"
    # A cross-entropy beside a squared error: neither is lower than the other.
    if mixed_losses(findings.study):
        text = "The curves are not compared: the learners are measured by different losses."
        findings.sections.append(Section(question, (text,)))
        return
    two = len(curves) == 2
    name, what = ("comparison", "comparison of") if two else ("ranking", "ranking by")

    def compared() -> Section:
        result = compare_learning_curves(*curves) if two else rank_learners(curves)
        section = name_parts(section_of(result, question), name, "Differences with 95% intervals")
        section = replace(section, method=method_of(curves[0]))
        findings.found[name] = result
        if isinstance(result, CurveComparison):
            return section
        intervals = f"{format_level(result.level)} {result.kind} intervals"
        title = f"{findings.word.capitalize()} at n = {result.at:,.0f} with {intervals}"
        return replace(section, tables=tuple(replace(t, title=title) for t in section.tables))

    found = findings.ask(question, compared, f"There is no {what} curves of form {findings.form}: ")
    findings.sections += [] if found is None else [found]


FEWEST_RUNS, MOST_TRAININGS = 5, 12
"""Runs from which a spread can be estimated, and trainings that are shown one by one."""


@dataclass(frozen=True)
class _StudyTraining:
    """Runs that differ by chance alone: one learner at its largest size on one subset."""

    label: str
    n: int
    error: float
    study: Study
    job: Job

    @property
    def title(self) -> str:
        return f"{self.label}, n={self.n:,}"

    @property
    def one_subset(self) -> tuple[str, ...]:
        """State which of several training subsets the runs were trained on, and why not on all of them."""
        subsets = len(self.study.partition.at(self.n))
        if subsets < 2:
            return ()
        which = "the first" if self.job.fold == 0 else f"number {self.job.fold + 1}"
        return (
            f"Seeds are compared on one training set: this section uses only the runs of {self.label} on {which} of "
            f"the {subsets} training subsets of {self.n:,} examples, so its mean differs from the mean over all subsets"
            f"{self._all_subsets()}.",
        )

    def _all_subsets(self) -> str:
        """Write the mean over all training subsets of this size, in brackets; empty where none is known."""
        unit = "loss" if self.study.dataset.is_numbers else "fraction"
        runs = self.study.measurements()
        same = (runs.learner == self.label) & (runs.n == self.n) & np.isfinite(runs.error)
        if not same.any():
            return ""
        mean = float(runs.error[same].mean())
        return f" ({f'{mean:.1%}' if unit == 'fraction' else format_value(mean, unit)})"

    @property
    def without_chance(self) -> str:
        """The title of all runs of this training, whatever varies between them."""
        return self.without("")

    def without(self, setting: str) -> str:
        """The title without what varies and without a setting."""
        from curvewise.store.tables import curve_name

        settings = {k: v for k, v in sorted(self.job.settings.items()) if k != setting}
        return f"{curve_name(self.job.name, settings)}, n={self.n:,}"

    def read(self, evaluation: str = "test") -> Predictions:
        """Read the predictions of the runs."""
        job = self.job
        selected: dict[str, Any] = {"n": job.n, "fold": job.fold, "vary": job.varies, **job.settings}
        selected |= {} if job.poke is None else {"poke": job.poke.epoch}
        with quietly():
            return self.study.predictions(job.name, evaluation=evaluation, **selected)


def _trainings(findings: StudyFindings) -> list[_StudyTraining]:
    from curvewise.study.study import label_of

    study = findings.study
    cells: dict[str, dict[tuple[int, int], list[Planned]]] = {}
    for run in findings.planned:
        if run.state == "done" and not run.job.is_search:
            at = cells.setdefault(label_of(study, run.job), {})
            at.setdefault((run.job.n, -run.job.fold), []).append(run)
    found = []
    for label, at in cells.items():
        enough = [key for key, runs in at.items() if len(runs) >= FEWEST_RUNS]
        if enough:
            # The largest size with enough runs; of its folds the first, as the key holds the negative fold.
            runs = at[max(enough)]
            values = [run.standing.metrics.get(findings.word) for run in runs]
            mean = float(np.mean([np.nan if v is None else v for v in values]))
            found.append(_StudyTraining(label, max(enough)[0], mean, study, runs[0].job))
    return found


@dataclass
class StudyFindings:
    """Sections and results that the lenses have found in a study so far.

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

    def ask(self, title: str, act: Callable[[], Found], lost: str = "", *, label: str = "") -> Found | None:
        """Do what not every study allows; where it fails, return None, and add a section that says why."""
        result, problem = attempt(act)
        if result is None:
            self.sections.append(Section(title, (f"{lost}{problem}",), label=label))
        return result

    @property
    def word(self) -> str:
        """Name of the values: errors of classes, or losses of numbers."""
        return "loss" if self.runs is not None and self.runs.unit.name == "loss" else "error"

    @property
    def unit(self) -> str:
        """Unit of the values: errors are fractions, and read as percentages."""
        return "loss" if self.word == "loss" else "fraction"

    @property
    def plural(self) -> str:
        """The same of several."""
        return "losses" if self.word == "loss" else "errors"

    def figure(self, name: str) -> Any:
        """A picture that was made, by its name."""
        every = (f for s in self.sections for f in s.figures)
        return next((f for f in every if f.name == name), None)


def name_parts(section: Section, name: str, table: str = "") -> Section:
    """A section whose pictures and tables have a short name, for files, and perhaps tables another title."""
    return replace(
        section,
        figures=tuple(replace(f, name=name) for f in section.figures),
        tables=tuple(replace(t, name=name, title=table or t.title) for t in section.tables),
    )


def part_of(result: Result, title: str, label: str, kind: str) -> Section:
    """The section of one of several results of a kind, whose warnings have its name."""
    section = name_parts(section_of(result, label), f"{kind}-{file_name(label)}")
    figures = tuple(replace(f, learner=label) for f in section.figures)
    warnings = tuple(prefix_each(result.all_warnings, label))
    return replace(section, title=title, label=label, figures=figures, warnings=warnings)


def prefix_each(messages: Sequence[str], name: str) -> list[str]:
    """Warnings with the name of what they are of.

    >>> prefix_each(["few runs.", "net: few sizes."], "net")
    ['net: few runs.', 'net: few sizes.']
    """
    head = f"{name}: "
    return [w if w.startswith(head) else prefix(head, w) for w in messages]
