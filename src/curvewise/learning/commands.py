"""``curvewise learning``: fit, compare, plan, rank, validate, stability, check."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter
from cyclopts.validators import Number

from curvewise.cli.console import (
    FITTING,
    READING,
    SHOWING,
    VERDICTS,
    AtLeast0,
    AtLeast1,
    Drawing,
    Files,
    Flag,
    Form,
    Higher,
    Level,
    Numbers,
    Page,
    Size,
    TableReading,
    Texts,
    Unit4,
    UsageError,
    choose,
    choose_pair,
    console,
    gate_status,
    named_files,
    note,
    note_reading,
    options,
    read_where,
    readable_file,
    rich_table,
    save_plot,
    shown_as,
    split_name,
    warn,
    warn_each,
    width_of,
)
from curvewise.errors import InputError, prefix, quietly
from curvewise.text import (
    Cell,
    as_count,
    format_chance,
    format_count,
    format_level,
    format_size,
    format_target,
    interval_cell,
    readable_columns,
)

if TYPE_CHECKING:
    from curvewise.learning.fit import LearningCurves
    from curvewise.reading.roles import ColumnMap
    from curvewise.types.measurements import Measurements


learning = App(
    name="learning",
    help="How does error fall with data? Fit, compare, rank and plan learning curves.\n\n"
    "FILE is a CSV, TSV, JSON or Parquet table with a column for the training size, one for the "
    "error (or accuracy, loss, score) and one for the learner, one row per run. `-` reads CSV "
    "from stdin.",
)

Gate = Literal["worse", "better", "undecided"]


def _check_sizes(_: Any, sizes: Sequence[float]) -> None:
    for n in sizes:
        if not 0 < n < math.inf:
            raise ValueError(f"{n:g} is no training size: give positive numbers, such as 800,1600.")


Sizes = Annotated[Numbers, Parameter(validator=_check_sizes)]


@options(READING)
class ReadingOptions(TableReading):
    """Options for reading measurements.

    Parameters
    ----------
    unit
        What the values are; by default percent if the column's name says so, else fractions.
    higher_is_better
        The values are accuracies or scores. By default the column's name says so.
    n_column
        Column of training sizes. Columns with usual names are found by themselves.
    value_column
        Column of errors, accuracies, losses or scores.
    learner_column
        Column that names the learner; repeat it to join several columns.
    runs_column
        Over how many runs a row is the mean.
    variance_column
        Variance of those runs.
    column
        Any other role, as ROLE=COLUMN: fold, seed, split, metric, std; ignore=COLUMN does not
        read it. ROLE= leaves a role out.
    wide
        Each column of numbers is a run, a learner or a size.
    per_class
        Number of classes, if sizes count examples of each class.
    metric
        Which rows to take where a column names metrics.
    split
        Which rows to take where a column names splits, such as test.
    drop_failed
        Leave out rows without a finite value, and say which.
    same_name
        A learner that is in several files: pool its runs, or keep the files separate.
    """

    unit: Unit4 | None = None
    higher_is_better: Higher = None
    n_column: str | None = None
    value_column: str | None = None
    learner_column: Texts = field(default_factory=list)
    runs_column: str | None = None
    variance_column: str | None = None
    wide: Literal["runs", "learners", "sizes"] | None = None
    per_class: AtLeast1 | None = None
    metric: str | None = None
    split: str | None = None
    drop_failed: Flag = False
    same_name: Literal["pool", "separate"] | None = None
    own_options = ("n", "value", "learner", "runs", "variance")

    def load(self, file: str) -> Measurements:
        """Read the measurements of a file; ``-`` is stdin."""
        from curvewise.learning.load import load_measurements

        same = ("columns", "unit", "higher_is_better", "wide", "per_class", "metric", "drop_failed", "allow_large")
        chosen: dict[str, Any] = {name: getattr(self, name) for name in same}
        chosen["where"] = (read_where(self.where) or {}) | ({} if self.split is None else {"split": self.split})
        with readable_file(file) as path:
            return load_measurements(path, **chosen)


@options(FITTING)
class Fitting:
    """Options for fitting curves.

    Parameters
    ----------
    form
        power (α + η n^γ), the default: its intervals are the narrowest, and suppose that the law holds.
        auto averages several forms and supposes none: it predicts best beyond the sizes measured, and
        is the more careful one for comparisons at a measured size. Decide on one before you look.
        sqrt fixes γ at −½, and is the default with --largest.
    weights
        Weigh sizes alike, runs alike by their variance, or not at all.
    largest
        Fit only this many of the largest sizes, with γ held at −½ unless --form is given. 3 is
        the light design of the paper.
    chance
        Error of a blind guess, in the unit of the table: intervals of curves still near it allow
        them to fall.
    at
        Training size N at which to judge; by default the largest measured, and of several learners
        that are compared or ranked the smallest of their largest sizes.
    level
        Coverage of the intervals.
    """

    form: Form | None = None
    weights: Literal["size", "run", "none"] = "size"
    largest: Annotated[int | None, Parameter(validator=Number(gte=2))] = None
    chance: float | None = None
    at: Size = None
    level: Level = 0.95


@options(SHOWING)
class LearningDrawing(Drawing):
    """Options for drawing curves.

    Parameters
    ----------
    plot
        Draw the curves into this .png, .svg or .pdf file.
    x
        Horizontal axis, with more data to the right: logarithmic by default; linear; log-log for errors on a log
        scale, too; or sqrt for n^−½, on which most curves are straight.
    """

    x: Literal["log", "linear", "log-log", "sqrt"] | None = None

    @property
    def choices(self) -> dict[str, Any]:
        """Keyword arguments for a function that draws."""
        return {} if self.x is None else {"x": self.x}


@learning.command
def fit(
    files: Files,
    /,
    *,
    predict: Annotated[Sizes, Parameter(group=SHOWING)] = [],
    reach: Annotated[Numbers, Parameter(group=SHOWING, show_default=False)] = [],
    cost_per_sample: Annotated[float | None, Parameter(group=SHOWING, validator=Number(gte=0, lt=math.inf))] = None,
    interval: Annotated[Literal["confidence", "prediction", "conditional"] | None, Parameter(group=FITTING)] = None,
    learner: Texts = [],
    reading: ReadingOptions = ReadingOptions(),
    fitting: Fitting = Fitting(),
    drawing: LearningDrawing = LearningDrawing(),
) -> int:
    """Fit a learning curve to each learner.

    Shows the error e_N, the data-reliance β_N (to first order, how much the error would rise with
    a quarter of the data) and the exponent γ, with intervals.

    Example: `curvewise learning fit errors.csv --plot curves.png`; to extrapolate, `curvewise learning fit errors.csv
    --form auto --predict 3000,6000 --reach 0.05`

    Parameters
    ----------
    files
        Tables of measurements.
    predict
        Training sizes at which to predict, such as 800,1600.
    reach
        How many samples does it take to reach this error, or each of several such as 0.05,0.02? An
        error in the unit of the file, also if the file has accuracies: in percent, 5 for an
        accuracy of 95 percent. A picture shows the first.
    cost_per_sample
        Price of a sample: shows what more data would cost and bring, at the sizes of --predict,
        or at 2 and 4 times the data.
    interval
        Of the curve itself, of what a new run would measure, or the paper's (too narrow).
    learner
        Only the learner of this name; may be repeated. By default all.
    """
    page = drawing.page()
    measurements = average_seeds(_only(read_files(files, reading), learner))
    unit = measurements.unit
    # An error that no learner can have is refused before anything is fitted.
    for target in reach:
        if not (0 < target <= unit.top if unit.bounded else math.isfinite(target)):
            what = f"an error above 0 and up to {unit.top:g}" if unit.bounded else f"a finite {unit.name}"
            raise UsageError(f"--reach {target:g} must be {what}, in the unit of the file.")
    curves = fit_files(measurements, fitting, files, fitting.at)
    # Before anything is printed, so that --json has what later steps add to.
    page.document = {**curves.to_dict(), "notes": measurements.notes}
    show_curves(page, curves, fitting, interval)
    if predict:
        _show_predictions(page, curves, fitting.level, interval, predict)
    if asked := [n for n in (fitting.at, *predict) if n is not None]:
        import numpy as np

        from curvewise.learning.curve import far_sizes

        warn_each([*far_sizes(np.array(asked), list(curves))])
    page.document |= {"samples_to_reach": []} if reach else {}
    for target in reach:
        _show_reach(page, curves, fitting.level, target)
    if cost_per_sample is not None:
        _show_budget(page, curves, fitting.level, predict, cost_per_sample)
    chosen: dict[str, Any] = {"at": fitting.at, "interval": interval, "level": fitting.level, "predict": predict}
    chosen["reach"] = reach[0] if reach else None
    save_plot(page.plot, lambda: curves.plot(**chosen, **drawing.choices))
    return page.close()


@learning.command
def compare(
    files: Files,
    /,
    *,
    a: str | None = None,
    b: str | None = None,
    learner: Texts = [],
    fail_if: Annotated[list[Gate], Parameter(negative="", show_default=False)] = [],
    reading: ReadingOptions = ReadingOptions(),
    fitting: Fitting = Fitting(),
    drawing: LearningDrawing = LearningDrawing(),
) -> int:
    """Test which learner is better, and how much data that is worth.

    Two learners are compared in detail; of more, all pairs, or --a with each of the others. They are compared at the
    largest size that all have, by their fitted curves; beyond it (--at), choose --form auto. Where the predictions of
    the runs at that size are stored, `curvewise variance compare` compares them without any curve.

    Example: `curvewise learning compare errors.csv --a new --b old --fail-if worse`

    Parameters
    ----------
    files
        Tables with two or more learners, or one file for each.
    a
        Name of the learner to judge, as in the file, or of its file if each has one.
    b
        Name of the learner to judge it against; by default all others.
    learner
        Compare only the learners of these names; of two, the first is a and the second b.
    fail_if
        Exit with status 3 if a is significantly worse than b (than any other, without --b),
        significantly better, or not significantly different. May be repeated.
    """
    page = drawing.page()
    # Two files with one learner each often give it the same name.
    measurements = _only(read_files(files, reading, same_name="separate"), learner)
    names = measurements.learners
    if a is None and b is None and len(learner) == 2:
        a, b = learner
    elif b is None and len(names) > 2:
        return _compare_all(page, fit_files(measurements, fitting, files), a, fitting, fail_if, drawing)
    one, two = choose_pair(a, b, names)
    curves = fit_files(measurements, fitting, files)

    from curvewise.learning.comparison import compare_learning_curves

    # The curves know only of learners, not of the options that name them here.
    for option, name in (("a", one), ("b", two)):
        if name in curves.failures:
            raise InputError(prefix("could not be fitted: ", curves.failures[name]), argument=option, value=name)
    result = compare_learning_curves(curves[one], curves[two], at=fitting.at, level=fitting.level)
    # The gate is decided by the interval of the difference at N, not by its sign.
    met = VERDICTS.get(result.verdict, "undecided")
    status = page.answer(
        result,
        result.table_note(),
        style="bold",
        draw=partial(result.plot, **drawing.choices),
        status=gate_status(fail_if, [met], f" at n = {as_count(result.at):,}"),
    )
    page.say(INTERVAL_TERMS[result.error_difference.kind].strip(), style="dim")
    return status


def _only(measurements: Measurements, learners: Sequence[str]) -> Measurements:
    """Keep the runs of the learners named; all if none is."""
    names = [choose("--learner", name, measurements.learners) for name in learners]
    if not names:
        return measurements
    return measurements.select([name in names for name in measurements.learner.tolist()])


def _compare_all(
    page: Page, curves: LearningCurves, a: str | None, fitting: Fitting, gates: Sequence[Gate], drawing: LearningDrawing
) -> int:
    """Compare all pairs of learners, or one with each of the others."""
    from curvewise.learning.comparison import compare_learners

    if gates and a is None:
        raise UsageError(f"--fail-if judges one of {len(curves)} learners: name it with --a.")
    chosen = None if a is None else choose("--a", a, list(curves.curves))
    result = compare_learners(curves, baseline=chosen, at=fitting.at, level=fitting.level)
    shown = result.readable()
    count = len(result.pairs)
    if count > MOST_PAIRS and not page.verbose and page.markup is None:
        shown = {name: column[:MOST_PAIRS] for name, column in shown.items()}
    which = f"{count} pairs" if len(shown["a"]) == count else f"The {MOST_PAIRS} clearest of {count} pairs"
    title = result.table_note().replace(f"{count} pairs", which, 1)
    met = [VERDICTS.get(verdict, "undecided") for verdict in result.verdicts]
    status = gate_status(gates, met, f" for {chosen} at n = {as_count(result.at):,}")
    draw = partial(result.plot, **drawing.choices)
    return page.answer(result, title, columns=shown, style="bold", draw=draw, status=status)


@learning.command
def plan(
    files: Files,
    /,
    *,
    learner: str | None = None,
    factor: Annotated[float, Parameter(validator=Number(gt=0, lt=1))] = 0.5,
    sizes: Sizes = [],
    reading: ReadingOptions = ReadingOptions(),
    fitting: Fitting = Fitting(),
    drawing: Drawing = Drawing(),
) -> int:
    """Plan which sizes to train next, and how often.

    Chooses the runs that narrow the interval of the error at N with the fewest training samples.

    Example: `curvewise learning plan errors.csv --learner resnet --at 5000 --factor 0.5`

    Parameters
    ----------
    files
        Tables of measurements.
    learner
        Whose curve; not needed if there is only one.
    factor
        Wanted width of the interval, relative to the present one.
    sizes
        Sizes that could be trained, such as 1000,2000,4000; by default those measured.
    """
    page = drawing.page()
    measurements = read_files(files, reading)
    curve = fit_files(measurements, fitting, files)[choose("--learner", learner, measurements.learners)]

    from curvewise.learning.design import plan_sizes

    result = plan_sizes(
        curve,  # type: ignore[arg-type]  # refuses other forms in words
        at=fitting.at,
        factor=factor,
        sizes=sizes or None,
        level=fitting.level,
    )
    title = f"Runs to add for {result.learner}"
    return page.answer(result, title, columns=result.columns(), warnings=curve.warnings)


@learning.command
def rank(
    files: Files,
    /,
    *,
    learner: Texts = [],
    reading: ReadingOptions = ReadingOptions(),
    fitting: Fitting = Fitting(),
    drawing: Drawing = Drawing(),
) -> int:
    """Choose the learner that will be best at N samples, with the chance that it is.

    Beyond the sizes measured choose --form auto, which predicts better there.

    Example: `curvewise learning rank errors.csv --at 10000 --form auto`

    Parameters
    ----------
    files
        Tables of measurements.
    learner
        Only the learner of this name; may be repeated. By default all.
    """
    page = drawing.page()
    curves = fit_files(_only(read_files(files, reading), learner), fitting, files)

    from curvewise.learning.comparison import rank_learners

    result = rank_learners(curves, at=fitting.at, level=fitting.level)
    what = f"{format_level(result.level)} {result.kind} intervals, form {next(iter(curves)).form}"
    title = f"Predicted {next(iter(curves)).unit.quantity} at n = {as_count(result.at):,} ({what})"
    return page.answer(result, title, columns=result.readable())


@learning.command
def validate(
    files: Files,
    /,
    *,
    form: Annotated[list[Form], Parameter(negative="", show_default=False)] = [],
    reading: ReadingOptions = ReadingOptions(),
    drawing: Drawing = Drawing(),
) -> int:
    """Test how well the forms predict a size they have not seen.

    Leaves out each size in turn, fits the others and compares the prediction with what was
    measured; the last row carries the nearest size over.

    Example: `curvewise learning validate errors.csv`

    Parameters
    ----------
    files
        Tables of measurements; all learners must share the sizes.
    form
        Forms to try; repeat for several. By default those of the paper's table.
    """
    page = drawing.page()
    measurements = _finite(read_files(files, reading), files)

    from curvewise.learning.validation import leave_one_size_out

    asked = {"learner": measurements.learner, "forms": list(form) or None, **_rows_of(measurements)}
    result = leave_one_size_out(measurements.n, measurements.error, **asked)
    # The title says RMSE: the columns need only the sizes.
    columns = {k.removeprefix("rmse "): v for k, v in result.readable().items()}
    if page.markup is None and width_of(rich_table(columns))[1] > console().width:
        columns = {k: columns[k] for k in ("form", "weights", "average", "R²", "p")}
    return page.answer(result, "RMSE of the prediction at each size left out", columns=columns)


@options(SHOWING)
class StabilityDrawing(LearningDrawing):
    """Options for drawing what moves.

    Parameters
    ----------
    plot
        Draw the result into this .png, .svg or .pdf file.
    x
        Horizontal axis of --kind curves, see `curvewise learning fit`.
    kind
        Bars of standard deviations, or all sampled curves.
    """

    x: Literal["log", "linear", "log-log", "sqrt"] | None = "log"
    kind: Literal["bars", "curves"] = "bars"

    @property
    def choices(self) -> dict[str, Any]:
        """Keyword arguments for the function that draws."""
        return {"kind": self.kind, **super().choices}


@learning.command
def stability(
    files: Files,
    /,
    *,
    learner: str | None = None,
    sizes: Sizes = [],
    form: Annotated[list[Literal["power", "sqrt", "power2", "sqrt2"]], Parameter(negative="", show_default=False)] = [],
    draws: Annotated[int, Parameter(validator=Number(gte=2))] = 100,
    at: Size = None,
    seed: AtLeast0 = 0,
    reading: ReadingOptions = ReadingOptions(),
    drawing: StabilityDrawing = StabilityDrawing(),
) -> int:
    """Measure how far estimates from one run at each of a few sizes can be trusted.

    Draws one run per size from the measured means and spreads, fits each draw, and shows the
    standard deviations of what comes out: would fewer runs have done?

    Example: `curvewise learning stability errors.csv --learner resnet --plot draws.png --kind curves`

    Parameters
    ----------
    files
        Tables of measurements.
    learner
        Whose curve; not needed if there is only one.
    sizes
        Sizes of the small design, of those measured; by default the four largest.
    form
        Forms to compare; repeat for several. By default the four power laws.
    draws
        How many small designs to simulate.
    at
        Training size N at which to judge; by default the largest of the sizes.
    seed
        Of the draws.
    """
    page = drawing.page()
    measurements = _finite(read_files(files, reading), files)
    measurements = measurements.of(choose("--learner", learner, measurements.learners))

    from curvewise.learning.validation import measure_stability

    chosen: dict[str, Any] = {"sizes": sizes or None, "forms": list(form) or None, "draws": draws, "at": at}
    result = measure_stability(measurements.n, measurements.error, rng=seed, **_rows_of(measurements), **chosen)
    names = {"beta N std": "β_N", "gamma std": "γ", "alpha std": "α", "e N std": "e_N"}
    columns = {names.get(k, k.replace("rmse ", "RMSE at ")): v for k, v in result.readable().items()}
    title = f"Standard deviations over {result.draws} draws of one run per size"
    return page.answer(result, title, columns=columns, draw=partial(result.plot, **drawing.choices))


@learning.command
def check(
    files: Files,
    /,
    *,
    draws: AtLeast1 = 999,
    seed: AtLeast0 = 0,
    reading: ReadingOptions = ReadingOptions(),
    drawing: Drawing = Drawing(),
) -> int:
    """Test whether the spread of the runs falls with size as the fit assumes.

    Shows, size by size and over all learners, the variance that was measured and that of the
    model (a constant plus a term that falls as 1/n), from which the fit takes its weights.

    Example: `curvewise learning check errors.csv --plot variance.png`

    Parameters
    ----------
    files
        Tables of measurements, with several runs at some sizes.
    draws
        Simulations of the test.
    seed
        Of the simulations.
    """
    page = drawing.page()
    curves = fit_files(read_files(files, reading), Fitting(), files)
    warn_each([prefix(f"{name} could not be fitted: ", why) for name, why in curves.failures.items()])

    from curvewise.learning.validation import check_variance_model

    result = check_variance_model(list(curves), draws=draws, rng=seed)
    return page.answer(result, result.table_note())


def _rows_of(measurements: Measurements) -> dict[str, Any]:
    """Unit, direction, runs and variance of measurements, as the functions that take arrays want them."""
    unit, means = measurements.unit, measurements.runs is not None
    found = {"unit": unit.name, "higher_is_better": unit.higher_is_better, "runs": measurements.runs}
    return {**found, "variance": measurements.variance if means else None}


MOST_PAIRS = 15
"""Pairs of learners that are shown without --verbose; --json has all of them."""
LEGEND = (
    "e_N: {word} at N training examples. β_N, the data-reliance: to first order, how much it would {rise} with a"
    " quarter of the data."
)
INTERVAL_TERMS = {
    "confidence": " Confidence interval: for the curve, if errors follow its form.",
    "prediction": " Prediction interval: for the mean of many new runs, whatever the form, calibrated on real curves.",
    "conditional": " Conditional interval: as in the paper, with γ taken as known; too narrow.",
}
"""The kinds of intervals, each with its purpose; see `Curve.predict`."""
GAMMA = " γ: exponent of the fitted power law, -0.5 being usual; where it is lower, the {rise} is larger than β_N."


def show_curves(page: Page, curves: LearningCurves, fitting: Fitting, interval: str | None) -> None:
    """Print e_N, β_N and γ of each learner, sentences or a legend, and what to beware of."""
    from curvewise.learning.curve import note_on_estimates, readable_estimates

    every = list(curves)
    rows = [c.interval_at(fitting.at, level=fitting.level, interval=interval) for c in every]
    gammas = [c.gamma_interval(fitting.level) if hasattr(c, "gamma_interval") else None for c in every]
    page.document["table"] = [
        {"learner": c.learner, "values": r, "gamma": g} for c, r, g in zip(every, rows, gammas, strict=True)
    ]
    word = every[0].unit.quantity
    title = note_on_estimates(every, fitting.level, interval)
    page.table(title, readable_estimates(every, fitting.at, fitting.level, interval))
    terms = "".join(INTERVAL_TERMS[kind] for kind in dict.fromkeys(r.error.kind for r in rows))
    if len(every) == 1:
        page.say(every[0].sentences())
        page.say(terms.strip(), style="dim")
    else:
        legend = LEGEND + (GAMMA if any(g is not None for g in gammas) else "")
        page.say(legend.format(word=word, rise="fall" if word == "score" else "rise") + terms, style="dim")
    for curve in every if page.verbose and len(every) > 1 else ():
        page.say(curve.sentences())
    warn_each(curves.curve_warnings)


def _show_predictions(
    page: Page, curves: LearningCurves, level: float, interval: str | None, sizes: Sequence[float]
) -> None:
    unit = next(iter(curves)).unit
    word, kind = unit.quantity, interval or next(iter(curves)).default_interval
    # The mean of many runs, as in the table of e_N and in pictures, and a single run, which varies more.
    shown = {f"{word} (mean of runs)": ("mean_", math.inf), f"{word} (one new run)": ("", 1)}
    shown = shown if kind == "prediction" else {word: ("", 1)}
    records: list[dict[str, Any]] = [{"learner": c.learner, "n": as_count(n)} for c in curves for n in sizes]
    columns = {key: [record[key] for record in records] for key in ("learner", "n")}
    for name, (head, runs) in shown.items():
        bands = [c.band(sizes, interval, level=level, runs=runs).values() for c in curves]
        rows = [row for band in bands for row in zip(*band, strict=True)]
        columns[name] = [interval_cell(row, unit.name) for row in rows]
        for record, (error, low, high) in zip(records, rows, strict=True):
            record |= {word: error, f"{head}low": low, f"{head}high": high}
    page.document["predictions"] = records
    page.table(f"Predicted {word} ({format_level(level)} {kind} intervals)", columns)


def _show_reach(page: Page, curves: LearningCurves, level: float, error: float) -> None:
    answers = [c.samples_to_reach(error, level=level) for c in curves]
    page.document["samples_to_reach"] += answers
    columns: dict[str, Sequence[Any]] = {
        "learner": [a.learner for a in answers],
        "n": [Cell(format_size(a.estimate), after=f" [{format_size(a.low)}, {format_size(a.high)}]") for a in answers],
        "chance of never": [
            "already reached" if a.reached_at is not None else format_chance(a.probability_never) for a in answers
        ],
    }
    target = format_target(answers[0].error, answers[0].unit.name)
    title = f"Training examples needed for {target} ({format_level(level)} intervals)"
    page.table(title, columns)
    warn_each([prefix(f"{a.learner}: ", w) for a in answers for w in a.warnings])


def _show_budget(page: Page, curves: LearningCurves, level: float, sizes: Sequence[float], price: float) -> None:
    records = []
    for curve in curves:
        n = [s for s in sizes if s > curve.largest_n] or [2 * curve.largest_n, 4 * curve.largest_n]
        frame = curve.budget(n, cost_per_sample=price, level=level)
        for row in frame.to_dict("records"):
            named = {str(k): v for k, v in row.items()}
            counts = {k: as_count(named[k]) for k in ("n", "added")}
            records.append({"learner": curve.learner, **named, **counts})
    page.document["budget"] = records
    shown = [{k: r[k] for k in r if k not in ("low", "high")} for r in records]
    columns = readable_columns({k: [r[k] for r in shown] for k in shown[0]}, next(iter(curves)).unit.name)
    columns = {next(iter(curves)).unit.quantity if k == "error" else k: v for k, v in columns.items()}
    columns["cost"] = [shown_as(r["cost"], ",.2f") for r in records]
    columns["gain per cost"] = [shown_as(r["gain_per_cost"], ".3g") for r in records]
    page.table(f"Cost and gain of more data, at {price:g} per training example", columns)


def read_files(files: Sequence[str], reading: ReadingOptions, same_name: str | None = None) -> Measurements:
    """Read measurements from all files, and note on stderr how columns were interpreted.

    Parameters
    ----------
    files : sequence of str
        Paths, or NAME=FILE.
    reading : ReadingOptions
        The options.
    same_name : {"pool", "separate"}, optional
        What to do with a learner that is in several files if the options do not say.
    """
    parts = {}
    for name, file in named_files(files).items():
        parts[name] = reading.load(file)
        note_reading(parts[name].notes, file if len(files) > 1 else "")
    named = any(split_name(file)[0] for file in files)
    if len(parts) == 1 and not named:
        return next(iter(parts.values()))
    # NAME=FILE says that the files are to be told apart, and how.
    return _joined(parts, reading.same_name or ("separate" if named else same_name), reading.columns)


def _joined(parts: dict[str, Measurements], same_name: str | None, columns: ColumnMap | None) -> Measurements:
    from curvewise.reading.repeats import join_measurements

    seen: dict[str, list[str]] = {}
    for name, part in parts.items():
        for learner in part.learners:
            seen.setdefault(learner, []).append(name)
    if same_name is None and (twice := next((k for k, f in seen.items() if len(f) > 1), None)):
        raise UsageError(
            f"The learner {twice!r} is in {' and in '.join(seen[twice][:3])}. Pass --same-name "
            "pool to take its runs together, or --same-name separate to tell the files apart."
        )
    return join_measurements(parts, {name: name for name in parts} if same_name == "separate" else None, columns)


def fit_files(
    measurements: Measurements, fitting: Fitting, files: Sequence[str], at: float | None = None
) -> LearningCurves:
    """Fit every learner, and warn of what concerns all; warnings of one stay on its curve.

    ``at`` is N of a table of estimates; commands that judge at N say themselves how far out that is.
    """
    from curvewise.learning.fit import fit_learning_curves

    measurements = average_seeds(measurements)
    try:
        with quietly():
            same = ("form", "weights", "largest", "chance")
            curves = fit_learning_curves(measurements, at=at, **{name: getattr(fitting, name) for name in same})
    except InputError as error:
        if error.argument is not None:
            raise
        raise InputError(prefix(f"{' and '.join(files)}: ", error.message)) from None
    warn_each(curves.general_warnings)
    return curves


def average_seeds(measurements: Measurements) -> Measurements:
    """Average the runs that share a training subset, as the report of a study does, and note it."""
    subsets = measurements.shared_subsets
    means = measurements.subset_means() if subsets else measurements
    if means is measurements:
        return measurements
    text = f"{format_count(subsets, 'training subset')} with several runs (seeds) each: their mean counts as one run,"
    text += " because runs on one subset are not independent"
    lost = means.notes[len(measurements.notes) :]
    note("; ".join([text, *lost]))
    return replace(means, notes=(*measurements.notes, text, *lost))


def _finite(measurements: Measurements, files: Sequence[str]) -> Measurements:
    """Leave out failed runs, which are NaN, and warn how many they are."""
    import numpy as np

    from curvewise.learning.fit import left_out

    done = np.isfinite(measurements.error)
    if done.all():
        return measurements
    if not done.any():
        raise InputError(f"{' and '.join(files)}: all {len(done)} runs failed.")
    warn(left_out(Counter(measurements.learner[~done].tolist()), len(done)))
    return measurements.select(done)
