"""``curvewise scaling``: fit, optimal, isoflops, backtest, plan, compare, downstream, tuned."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter, Token
from cyclopts.validators import Number

from curvewise.cli.console import (
    FITTING,
    MOST_CHOICES,
    READING,
    STDIN,
    VERDICTS,
    AtLeast0,
    AtLeast1,
    Counts,
    Drawing,
    File,
    Files,
    Flag,
    Level,
    TableReading,
    Texts,
    UsageError,
    Words,
    choose_pair,
    gate_status,
    in_options,
    named_files,
    note_reading,
    note_table,
    options,
    read_where,
    readable_file,
    split_name,
)
from curvewise.errors import InputError, list_names, prefix, quietly, suggest
from curvewise.text import format_count, format_level

if TYPE_CHECKING:
    from curvewise.scaling.law import ScalingLaw
    from curvewise.scaling.runs import ScalingRuns
    from curvewise.types.results import Result

scaling = App(
    name="scaling",
    help="How large a model on how much data for this compute, and what loss will it reach?\n\n"
    "FILE is a CSV, TSV, JSON, JSON lines or Parquet table with a row for each training run (or checkpoint): "
    "parameters, tokens or FLOP, and loss. Columns with usual names are found by themselves. `-` reads CSV from "
    "stdin.",
)

OPTIONS = {"runs": "", "law": "", "budgets": "nominal", "params": "", "tokens": "", "flops": "", "loss": ""}
"""Arguments of Python that have an option of another name; files and their columns are given without one."""


def _number(text: str) -> float:
    """Read 5.76e23, 70B, 1.4T or 190M."""
    from curvewise.scaling.load import read_amount

    try:
        value = float(read_amount(text.replace("_", "")))
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise ValueError(f"{text!r} is no number above 0, such as 5.76e23 or 70B.")
    return value


def _numbers(_: Any, tokens: Sequence[Token]) -> list[float]:
    return [_number(part) for token in tokens for part in token.value.split(",") if part.strip()]


def _sizes(_: Any, tokens: Sequence[Token]) -> list[tuple[float, float]]:
    """Read PARAMS,TOKENS such as 7B,4T, once or more."""
    sizes = []
    for token in tokens:
        parts = token.value.split(",")
        if len(parts) != 2:
            raise ValueError(f"{token.value!r} must be parameters and tokens, such as 7B,4T.")
        sizes.append((_number(parts[0]), _number(parts[1])))
    return sizes


Amount = Annotated[float | None, Parameter(converter=lambda _, tokens: _number(tokens[0].value))]
Amounts = Annotated[list[float], Parameter(converter=_numbers, n_tokens=1, negative="", show_default=False)]
Sizes = Annotated[list[tuple[float, float]], Parameter(converter=_sizes, n_tokens=1, negative="", show_default=False)]


@options(READING)
class ScalingReading(TableReading):
    """Options for reading runs.

    Parameters
    ----------
    column
        Which column has a role, as ROLE=COLUMN: params, tokens, flops, loss, run, unique_tokens,
        step, source, flagged, status; ROLE= leaves a role out. May be repeated.
    unit
        What the values are; by default a loss, unless the column is called perplexity.
    tracker
        The tracker that exported the table.
    """

    unit: Literal["loss", "perplexity"] | None = None
    tracker: Literal["mlflow", "wandb", "optuna"] | None = None
    example = "params=n_params"

    def load(self, file: str, name: str | None = None, *, label: str = "") -> ScalingRuns:
        """Read runs, noting on stderr how columns were interpreted and what deserves a look."""
        from curvewise.scaling.load import load_scaling_runs

        same = {key: getattr(self, key) for key in ("columns", "unit", "tracker", "allow_large")}
        name = name or ("stdin" if file == STDIN else None)
        with readable_file(file) as path, quietly():
            runs = load_scaling_runs(path, where=read_where(self.where), name=name, **same)
        note_table(runs, label)
        return runs


@options(FITTING)
class LawFitting:
    """Options for fitting a law.

    Parameters
    ----------
    form
        additive is E + A/N^α + B/D^β; tied has one exponent; coupled joins the two terms; repeated
        counts repeated tokens for less; auto weighs forms by how well they predict the largest runs
        from the smaller ones, and is meant for extrapolation.
    loss
        Huber's function of log residuals, which outliers hardly move; squares of log residuals; or
        linear, squares of the loss itself.
    """

    form: Literal["additive", "tied", "coupled", "repeated", "auto"] = "additive"
    loss: Literal["huber", "squares", "linear"] = "huber"

    def fit(self, runs: ScalingRuns) -> ScalingLaw:
        """Fit a law to runs."""
        from curvewise.progress import waiting
        from curvewise.scaling.law import fit_scaling_law

        with quietly(), waiting("fitting"):
            return fit_scaling_law(runs, form=self.form, loss=self.loss)


# One law.

SYMBOLS = {
    "E": "E, irreducible loss",
    "A": "A",
    "B": "B",
    "alpha": "α, of parameters",
    "beta": "β, of tokens",
    "exponent": "a: N* grows as C^a",
    "g": "g, coupling",
    "R_D": "R_D, of repeated tokens",
    "R_N": "R_N, of excess parameters",
}
"""Parameters with what they mean; the last three are those of some forms."""


@scaling.command
def fit(
    file: File,
    /,
    *,
    at: Sizes = [],
    what: Literal["contours", "residuals"] = "contours",
    level: Level = 0.95,
    fitting: LawFitting = LawFitting(),
    reading: ScalingReading = ScalingReading(),
    drawing: Drawing = Drawing(),
) -> int:
    """Fit loss as a function of parameters and tokens.

    Example: `curvewise scaling fit runs.csv --plot law.png`

    Example: `curvewise scaling fit runs.csv --form auto --at 70B,1.4T`

    Parameters
    ----------
    file
        Table of runs.
    at
        Predict the loss of a model, as PARAMS,TOKENS such as 70B,1.4T; may be repeated.
    what
        Picture that --plot draws: contours of equal loss with the runs and the compute-optimal
        path, or residuals.
    level
        Coverage of the intervals.
    """
    page = drawing.page()
    from curvewise.progress import waiting
    from curvewise.scaling.optimum import short
    from curvewise.types.results import Interval, plain

    law = fitting.fit(reading.load(file))
    further: dict[str, Mapping[str, Any]] = {}
    document: dict[str, Any] = {}
    unlike: list[str] = []
    if at:
        params, tokens = zip(*at, strict=True)
        kinds = {"confidence": "expected loss", "prediction": "loss of one new run"}
        with quietly():
            bands = {kind: law.prediction(params, tokens, interval=kind, level=level) for kind in kinds}
        unlike = law.extrapolation(params, tokens)
        rows = {
            kind: [dict(zip(table, map(float, row), strict=True)) for row in zip(*table.values(), strict=True)]
            for kind, table in bands.items()
        }
        document["predictions"] = rows
        further["Predicted losses"] = {
            **{k: [short(row[k]) for row in rows["prediction"]] for k in ("params", "tokens")},
            **{name: [Interval(r["loss"], r["low"], r["high"]) for r in rows[kind]] for kind, name in kinds.items()},
        }
    with quietly(), waiting("computing intervals"):
        names = [name for name in SYMBOLS if name in law.further or hasattr(law, name)]
        intervals = {name: law.interval(name, level=level) for name in names}
        text, warnings = law.sentences(level), law.all_warnings
    document["intervals"] = {name: plain(interval) for name, interval in intervals.items()}
    document["summary"] = " ".join([text, *(f"Warning: {in_options(warning)}" for warning in warnings)])
    title = f"{law.name}: {format_count(law.count, 'run')} ({format_level(level)} intervals)"
    table: dict[str, list[Any]] = {
        "parameter": [SYMBOLS[name] for name in intervals],
        "estimate": list(intervals.values()),
    }
    draw = partial(law.plot, what=what, level=level)
    how: dict[str, Any] = {"columns": table, "further": further, "document": document, "text": text, "draw": draw}
    return page.answer(law, title, warnings=unlike, **how)


@scaling.command
def optimal(
    file: File,
    /,
    *,
    budget: Annotated[Amounts, Parameter(required=True)],
    unique_tokens: Amount = None,
    sensitivity: Flag = False,
    drop: Counts = [],
    what: Literal["contours", "sizes", "sensitivity"] = "contours",
    level: Level = 0.95,
    fitting: LawFitting = LawFitting(),
    reading: ScalingReading = ScalingReading(),
    drawing: Drawing = Drawing(),
) -> int:
    """Find the model size and the number of tokens that make the best of a compute budget.

    Example: `curvewise scaling optimal runs.csv --budget 5.76e23 --sensitivity`

    Example: `curvewise scaling optimal runs.csv --budget 1e22,1e23,1e24 --plot optimum.png`

    Parameters
    ----------
    file
        Table of runs.
    budget
        Compute in FLOP, C = 6 N D; several with commas.
    unique_tokens
        Distinct tokens at hand, for --form repeated.
    sensitivity
        Print, too, how the answer for the largest budget moves as the highest losses are dropped.
    drop
        How many of the highest losses to drop, such as 5,20,40, in place of about 2, 8 and 16% of
        the rows.
    what
        Picture that --plot draws: contours of equal loss with the budgets; the loss by model size
        at each budget; or tokens per parameter as the fitting window moves.
    level
        Coverage of the intervals.
    """
    page = drawing.page()
    from curvewise.progress import waiting

    law = fitting.fit(reading.load(file))
    with quietly(), waiting("computing intervals"):
        result = law.compute_optimal(budget if len(budget) > 1 else budget[0], level=level, unique_tokens=unique_tokens)
        wanted = sensitivity or drop or what == "sensitivity"
        windows: Any = law._sensitivity(max(budget), drop or None, level, unique_tokens) if wanted else None
    title = f"{law.name}: {law.form} law ({format_level(level)} intervals)"
    draw: Any = partial(law.plot, what=what, budget=budget, level=level)
    if windows is None:
        return page.answer(result, title, draw=draw)
    # The windows that were asked for, in place of the usual ones.
    result = replace(result, _windows=lambda: windows)
    further, document = {windows.table_note(): windows.readable()}, {"sensitivity": windows.to_dict()}
    draw = windows.plot if what == "sensitivity" else draw
    return page.answer(result, title, further=further, document=document, draw=draw)


@scaling.command
def isoflops(
    file: File,
    /,
    *,
    budget: Amounts = [],
    nominal: Amounts = [],
    weighted: Flag = False,
    sensitivity: Flag = False,
    drop: Counts = [],
    what: Literal["parabolas", "sensitivity"] = "parabolas",
    level: Level = 0.95,
    reading: ScalingReading = ScalingReading(),
    drawing: Drawing = Drawing(),
) -> int:
    """Fit a parabola of loss in model size at each compute budget, then power laws of the minima.

    Example: `curvewise scaling isoflops runs.csv --budget 3.8e25 --plot parabolas.png`

    Parameters
    ----------
    file
        Table of runs at a few budgets, with several model sizes at each.
    budget
        Compute in FLOP for which to give the optimal size; several with commas.
    nominal
        Budgets that the runs were meant for; each run belongs to the nearest. By default runs are
        grouped where their compute has gaps.
    weighted
        Weigh minima by the inverse square of their standard errors.
    sensitivity
        Print, too, how the answer moves as the highest losses, or the flagged rows, are dropped.
    drop
        How many of the highest losses to drop, such as 5,20,40, in place of about 2, 8 and 16% of
        the rows.
    what
        Picture that --plot draws: the parabolas, or tokens per parameter as the fitting window
        moves.
    level
        Coverage of the intervals.
    """
    page = drawing.page()
    from curvewise.scaling.isoflops import fit_isoflops

    runs = reading.load(file)
    with quietly():
        result = fit_isoflops(runs, budgets=nominal or None, weighted=weighted, level=level)
        further: dict[str, Mapping[str, Any]] = {}
        document: dict[str, Any] = {}
        warnings: tuple[str, ...] = ()
        draw = result.plot
        wanted = sensitivity or drop or what == "sensitivity"
        windows: Any = result.sensitivity(max(budget, default=None), drop=drop or None, level=level) if wanted else None
        if budget:
            optimum = result.compute_optimal(budget if len(budget) > 1 else budget[0], level=level)
            if wanted:
                optimum = replace(optimum, _windows=lambda: windows)
            warnings = optimum.all_warnings
            document["optimal"] = optimum.to_dict()
            table = {k: v for k, v in optimum.readable().items() if k != "loss"}
            further[f"Compute-optimal size ({format_level(level)} intervals)"] = table
        if wanted:
            warnings = (*warnings, *windows.warnings)
            document["sensitivity"] = windows.to_dict()
            further[windows.table_note()] = windows.readable()
            draw = windows.plot if what == "sensitivity" else draw
        # What was asked for says how it depends on the runs; the usual budget is for nobody then.
        usual = [w for w in result.all_warnings if w not in (*result.warnings, *warnings)] if budget or wanted else []
    title = f"{result.name}: minima of {format_count(len(result.budget), 'budget')}"
    more: dict[str, Any] = {"further": further, "document": document, "draw": draw}
    return page.answer(result, title, warnings=warnings, known=usual, **more)


@scaling.command
def backtest(
    file: File,
    /,
    *,
    hold_out: Amounts = [16.0],
    level: Level = 0.95,
    fitting: LawFitting = LawFitting(),
    reading: ScalingReading = ScalingReading(),
    drawing: Drawing = Drawing(),
) -> int:
    """Hold out the largest runs, predict them from the rest, and compare with what was measured.

    Example: `curvewise scaling backtest runs.csv --form auto --hold-out 4,16,64 --plot backtest.png`

    Parameters
    ----------
    file
        Table of runs.
    hold_out
        Hold out the runs within this factor of the largest compute; several with commas. The
        picture is that of the last.
    level
        Coverage of the prediction bands.
    """
    page = drawing.page()
    from curvewise.progress import waiting

    law = fitting.fit(reading.load(file))
    with quietly(), waiting("fitting without the largest runs"):
        tests = [law.backtest(factor, level=level) for factor in hold_out]
    columns: dict[str, list[Any]] = {
        "held out": [f"top {b.hold_out:g}×" for b in tests],
        "runs fitted": [b.fitted for b in tests],
        "rows held out": [len(b.loss) for b in tests],
        "error": [f"{b.error:.2%}" for b in tests],
        "published method": [f"{b.published_error:.2%}" for b in tests],
        f"in {format_level(level)} band": [f"{b.coverage:.0%}" for b in tests],
    }
    return page.answer(
        tests[-1],
        f"{law.name}: {law.form} law, geometric mean of |Δ log loss|",
        columns=columns,
        further={f"Rows of the top {b.hold_out:g}×": b.readable() for b in tests} if page.verbose else {},
        document={"backtests": [b.to_dict() for b in tests]} if len(tests) > 1 else {},
        warnings=[w for b in tests for w in b.warnings],
    )


@scaling.command
def plan(
    file: File,
    /,
    *,
    budget: Annotated[Amount, Parameter(required=True)],
    quantity: Literal["params", "loss", "exponent", "alpha", "beta", "E"] = "params",
    factor: Level = 0.5,
    largest: Amount = None,
    most: AtLeast1 = 16,
    seed: AtLeast0 = 0,
    level: Level = 0.95,
    fitting: LawFitting = LawFitting(),
    reading: ScalingReading = ScalingReading(),
    drawing: Drawing = Drawing(),
) -> int:
    """Plan which runs to train next to narrow an interval of a law, and what they cost.

    Example: `curvewise scaling plan runs.csv --budget 1e24 --plot plan.png`

    Example: `curvewise scaling plan runs.csv --budget 1e24 --quantity loss --largest 1e22`

    Parameters
    ----------
    file
        Table of the runs at hand.
    budget
        Compute in FLOP of the model that the law is for.
    quantity
        Interval to narrow: of the optimal size, of the loss there, or of a parameter of the law.
    factor
        Width to reach over the present one.
    largest
        Most compute of a single new run; by default that of the largest run so far.
    most
        Most runs to plan.
    seed
        Determines the simulated outcomes.
    level
        Coverage of the interval.
    """
    page = drawing.page()
    from curvewise.progress import waiting
    from curvewise.scaling.plan import plan_scaling_runs

    assert budget is not None  # required: for the type checker
    law = fitting.fit(reading.load(file))
    with quietly(), waiting("simulating further runs"):
        result = plan_scaling_runs(
            law, budget, quantity=quantity, factor=factor, largest=largest, most=most, level=level, rng=seed
        )
    title = f"{format_count(len(result.params), 'further run')} of {result.cost:.2g} FLOP"
    return page.answer(result, title, draw=partial(result.plot, law=law))


# Two families of models, accuracy on a task, two searches.

Gate = Literal["worse", "better", "undecided"]


@scaling.command
def compare(
    files: Files,
    /,
    *,
    a: str | None = None,
    b: str | None = None,
    form: Literal["additive", "tied"] | None = None,
    loss: Literal["huber", "squares"] | None = None,
    share: Literal["all", "exponents"] = "all",
    at: Amount = None,
    fail_if: Annotated[list[Gate], Parameter(negative="", show_default=False)] = [],
    level: Level = 0.95,
    reading: ScalingReading = ScalingReading(),
    drawing: Drawing = Drawing(),
) -> int:
    """Compare two families of models: the compute that b needs over what a needs for the same loss.

    Example: `curvewise scaling compare base.csv new.csv --plot compare.png`

    Example: `curvewise scaling compare runs.csv --a base --b new`

    Parameters
    ----------
    files
        Two tables, a first, as FILE or NAME=FILE; or one with a column of sources that --a and --b
        name.
    a
        Source of one family, in a table with several.
    b
        Source of the other.
    form
        Form of both laws; additive by default.
    loss
        How residuals count; huber by default.
    share
        Share the irreducible loss and the exponents, or the exponents only.
    at
        Compute of a in FLOP at which the ratio holds, with --share exponents.
    fail_if
        Exit with status 3 if a is shown to be worse than b (it needs more compute), better, or if
        nothing is shown. May be repeated.
    level
        Coverage of the interval.
    """
    page = drawing.page()
    from curvewise.scaling.compare import compare_scaling_laws

    one, two = _two_families(files, reading, a, b)
    with quietly():
        result = compare_scaling_laws(
            one, two, form=form, loss=loss, share=share, at=at, names=(one.name, two.name), level=level
        )
    title = f"{result.a} (a) and {result.b} (b) ({format_level(level)} intervals)"
    status = gate_status(fail_if, [VERDICTS[result.verdict]])
    return page.answer(result, title, style="bold", status=status)


def _two_families(
    files: Sequence[str], reading: ScalingReading, a: str | None, b: str | None
) -> tuple[ScalingRuns, ScalingRuns]:
    if len(files) > 2:
        raise UsageError(f"A comparison needs two families, and {len(files)} files were given.")
    if len(files) == 2:
        if a is not None or b is not None:
            raise UsageError("--a and --b name sources in one file; the names of two files are NAME=FILE.")
        one, two = (reading.load(file, name, label=file) for name, file in named_files(files).items())
        return one, two
    runs = reading.load(files[0])
    if runs.source is None:
        raise UsageError(
            f"Compare {files[0]} with what? Give a second file, or name the column that tells two families apart with "
            "--column source=COLUMN."
        )
    pair = choose_pair(a, b, list(dict.fromkeys(runs.source.tolist())), "source")
    one, two = (replace(runs.select(runs.source == name), name=name) for name in pair)
    return one, two


@scaling.command
def downstream(
    file: File,
    /,
    *,
    task: Annotated[Words, Parameter(required=True)],
    at: Annotated[Sizes, Parameter(required=True)],
    chance: Annotated[float | None, Parameter(validator=Number(gte=0, lt=1))] = None,
    level: Level = 0.95,
    reading: ScalingReading = ScalingReading(),
    drawing: Drawing = Drawing(),
) -> int:
    """Predict the accuracy of a larger model on a task, by way of the task's loss.

    Example: `curvewise scaling downstream runs.csv --task arc_easy --at 7B,4T --chance 0.25`

    Parameters
    ----------
    file
        Table of runs, or of their checkpoints, with columns for the loss of the task and its
        accuracy.
    task
        Name of the task, as in the names of its two columns; or the columns, LOSS,ACCURACY.
    at
        Model to predict, as PARAMS,TOKENS such as 7B,4T; may be repeated.
    chance
        Accuracy of guessing, such as 0.25 with four answers; fitted by default.
    level
        Coverage of the prediction intervals.
    """
    page = drawing.page()
    from curvewise.progress import waiting
    from curvewise.scaling.downstream import predict_downstream

    if len(task) > 2 or len(set(task)) < len(task):
        raise UsageError("--task takes the name of one task, or the columns of its loss and its accuracy.")
    runs = reading.load(file)
    which = task[0] if len(task) == 1 else (task[0], task[1])
    with quietly(), waiting("fitting both steps"):
        result = predict_downstream(runs, which, at if len(at) > 1 else at[0], chance=chance, level=level)
    title = f"{result.task}: {format_count(result.count, 'run')} ({format_level(level)} prediction intervals)"
    return page.answer(result, title)


@scaling.command
def tuned(
    files: Files,
    /,
    *,
    budget: Counts = [],
    by: str | None = None,
    a: str | None = None,
    b: str | None = None,
    metric: str | None = None,
    higher_is_better: Annotated[bool | None, Parameter(negative="--lower-is-better")] = None,
    best_possible: Annotated[float | None, Parameter(validator=Number(gt=-math.inf, lt=math.inf))] = None,
    where: Texts = [],
    tracker: Literal["mlflow", "wandb", "optuna"] | None = None,
    seed: AtLeast0 = 0,
    level: Level = 0.95,
    drawing: Drawing = Drawing(),
) -> int:
    """Compare two learners by the number of trials that each was tuned with.

    With the trials of one learner, the expected best score of k trials is shown.

    Example: `curvewise scaling tuned baseline.csv ours.csv --plot tuned.png`

    Example: `curvewise scaling tuned trials.csv --by model --a mlp --b lstm --metric f1`

    Parameters
    ----------
    files
        Tables with a row for each trial of a random search, exports of Optuna, MLflow and W&B
        among them: two, a first, as FILE or NAME=FILE; or one.
    budget
        Numbers of trials, such as 1,5,20; by default 1, 2, 5, 10, … up to the smaller search.
    by
        Column that names the learner, in one table of several.
    a
        One learner of that column.
    b
        The other.
    metric
        Column of the score; by default the only one that is called so.
    higher_is_better
        High scores are good; by default the name of the metric says so.
    best_possible
        A score that cannot be exceeded, such as 1: it bounds the upper limits.
    where
        Only rows with this, as COLUMN=VALUE; may be repeated.
    tracker
        The tracker that made the table; by default known by its columns.
    seed
        Determines the intervals.
    level
        Coverage of each interval.
    """
    page = drawing.page()
    from curvewise.progress import waiting
    from curvewise.scaling.tuned import compare_tuned, expected_best

    searches = _searches(files, by, a, b, read_where(where) or {})
    how: dict[str, Any] = {"metric": metric, "higher_is_better": higher_is_better, "tracker": tracker}
    trials = [_trials(file, name, rows, how) for name, file, rows in searches]
    how = {"best_possible": best_possible, "level": level, "rng": seed}
    result: Result
    with quietly(), waiting("drawing ranks"):
        if len(trials) == 1:
            result = expected_best(trials[0], budget or None, **how)
        else:
            a_trials, b_trials = trials
            names = (a_trials.name, b_trials.name)
            result = compare_tuned(a_trials, b_trials, budget or None, names=names, **how)
    title = (
        " and ".join(f"{t.name}: {format_count(len(t), 'trial')}" for t in trials)
        + f" ({format_level(level)} intervals)"
    )
    columns = dict(result.readable()) if page.markup is None else None
    if columns and len(trials) == 2:
        # In the terminal names stand for the letters.
        sides = {side: t.name for side, t in zip("ab", trials, strict=True)}
        columns = {sides.get(k.removeprefix("expected "), k): v for k, v in columns.items()}
        parts = [str(verdict).partition(" ") for verdict in columns["verdict"]]
        columns["verdict"] = [f"{sides.get(side, side)} {rest}" for side, _, rest in parts]
    return page.answer(result, title, columns=columns)


def _searches(
    files: Sequence[str], by: str | None, a: str | None, b: str | None, where: dict[str, Any]
) -> list[tuple[str | None, str, dict[str, Any]]]:
    """Return the name, the file and the rows of each search."""
    if STDIN in files:
        raise UsageError("Trials are read from files, not from stdin.")
    if len(files) > 2:
        raise UsageError(f"A comparison needs two searches, and {len(files)} files were given.")
    if by is None and (a is not None or b is not None):
        raise UsageError("--a and --b are learners that a column names: say which with --by COLUMN.")
    if len(files) == 2:
        if by is not None:
            raise UsageError("--by is for one table that holds several learners.")
        for file in files:
            _learners(split_name(file)[1], None, where)
        return [(name, file, where) for name, file in named_files(files).items()]
    name, file = split_name(files[0])
    learners = _learners(file, by, where)
    if by is None or (len(learners) == 1 and a is None and b is None):
        return [(name or None, file, where)]
    pair = choose_pair(a, b, learners)
    return [(one, file, {**where, by: one}) for one in pair]


_LEARNER = ("learner", "model", "model_name", "method", "algorithm", "classifier", "architecture")
"""Columns that usually tell learners apart; trials of two learners together mean nothing."""


def _learners(file: str, by: str | None, where: dict[str, Any]) -> list[str]:
    """Return the learners that a column names; raise where a table holds several and nobody says how to tell them."""
    from curvewise.reading.roles import normal, select_rows
    from curvewise.reading.table import read_table

    table = select_rows(read_table(file, single=True), where or None)
    if by is not None:
        if by not in table.columns:
            raise UsageError(f"--by {by}: {file} has no such column.{suggest(by, list(table.columns))}")
        return list(dict.fromkeys(str(cell) for cell in table.columns[by]))
    for column, cells in table.columns.items():
        values = list(dict.fromkeys(str(cell) for cell in cells))
        if normal(column) in _LEARNER and column not in where and 1 < len(values) < len(cells) / 2:
            raise UsageError(
                f"{file} has {len(values)} values of {column!r} ({list_names(values, MOST_CHOICES)}): of one table,"
                f" compare two of them with --by {column}, or take one with --where {column}={values[0]}."
            )
    return []


def _trials(file: str, name: str | None, where: dict[str, Any], how: dict[str, Any]) -> Any:
    from curvewise.scaling.load import load_trials

    try:
        with quietly():
            trials = load_trials(file, where=where or None, name=name, **how)
    except InputError as error:
        raise InputError(prefix(f"{file}: ", error.message) if file not in error.message else error.message) from None
    note_reading(trials.notes, file)
    return trials
