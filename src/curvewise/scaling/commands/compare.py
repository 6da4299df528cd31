"""``curvewise scaling compare``, ``downstream`` and ``tuned``: two families, accuracy on a task, two searches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from curvewise.cli.console import (
    GATE,
    STDIN,
    Drawing,
    Files,
    Level,
    Showing,
    Texts,
    UsageError,
    Words,
    named_files,
    note_reading,
    read_where,
    split_name,
    warn,
)
from curvewise.errors import InputError, list_names, prefix, quietly, suggest
from curvewise.scaling.commands.options import Amount, Counts, File, ScalingReading, Sizes, answer, scaling
from curvewise.text import format_count

if TYPE_CHECKING:
    from curvewise.scaling.runs import ScalingRuns
    from curvewise.types.results import Result

MOST_NAMES = 8
"""Names that a message lists."""

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
    fail_if: Annotated[list[Gate], Parameter(negative="", show_default=False)] = [],  # noqa: B006
    level: Level = 0.95,
    reading: ScalingReading | None = None,
    drawing: Drawing | None = None,
    showing: Showing | None = None,
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
    page = (showing or Showing()).page()
    from curvewise.scaling.compare import compare_scaling_laws

    one, two = _two_families(files, reading or ScalingReading(), a, b)
    with quietly():
        result = compare_scaling_laws(
            one, two, form=form, loss=loss, share=share, at=at, names=(one.name, two.name), level=level
        )
    held = {"worse": "b better", "better": "a better", "undecided": "not significant"}
    met = [gate for gate in fail_if if result.verdict == held[gate]]
    if met:
        warn(f"--fail-if {met[0]} holds: exit status {GATE}.")
    title = f"{result.a} (a) and {result.b} (b) ({level:.0%} intervals)"
    return answer(page, result, title, drawing, status=GATE if met else 0, style="bold")


def _two_families(
    files: Sequence[str], reading: ScalingReading, a: str | None, b: str | None
) -> tuple[ScalingRuns, ScalingRuns]:
    if len(files) > 2:
        raise UsageError(f"A comparison needs two families, and {len(files)} files were given.")
    if len(files) == 2:
        if a is not None or b is not None:
            raise UsageError("--a and --b name sources in one file; the names of two files are NAME=FILE.")
        one, two = (reading.load(file, name, said=file) for name, file in named_files(files).items())
        return one, two
    runs = reading.load(files[0])
    if runs.source is None:
        raise UsageError(
            f"Compare {files[0]} with what? Give a second file, or name the column that tells two families apart with "
            "--column source=COLUMN."
        )
    from curvewise.types.results import distinct

    names = list(distinct(runs.source))
    wanted = pair_of(names, a, b, "sources")
    one, two = (replace(runs.select(runs.source == name), name=name) for name in wanted)
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
    reading: ScalingReading | None = None,
    drawing: Drawing | None = None,
    showing: Showing | None = None,
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
    page = (showing or Showing()).page()
    from curvewise.progress import waiting
    from curvewise.scaling.downstream import predict_downstream

    if len(task) > 2:
        raise UsageError("--task takes the name of one task, or the columns of its loss and its accuracy.")
    runs = (reading or ScalingReading()).load(file)
    which = task[0] if len(task) == 1 else (task[0], task[1])
    with quietly(), waiting("fitting both steps"):
        result = predict_downstream(runs, which, at if len(at) > 1 else at[0], chance=chance, level=level)
    title = f"{result.task}: {format_count(result.count, 'run')} ({level:.0%} prediction intervals)"
    return answer(page, result, title, drawing)


@scaling.command
def tuned(
    files: Files,
    /,
    *,
    budget: Counts = [],  # noqa: B006
    by: str | None = None,
    a: str | None = None,
    b: str | None = None,
    metric: str | None = None,
    higher_is_better: Annotated[bool | None, Parameter(negative="--lower-is-better")] = None,
    best_possible: float | None = None,
    where: Texts = [],  # noqa: B006
    tracker: Literal["mlflow", "wandb", "optuna"] | None = None,
    seed: int = 0,
    level: Level = 0.95,
    drawing: Drawing | None = None,
    showing: Showing | None = None,
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
    page = (showing or Showing()).page()
    from curvewise.progress import waiting
    from curvewise.scaling.tuned import compare_tuned, expected_best

    chosen = _searches(files, by, a, b, read_where(where) or {})
    options = {"metric": metric, "higher_is_better": higher_is_better, "tracker": tracker}
    given = [_trials(file, name, rows, options) for name, file, rows in chosen]
    how: dict[str, Any] = {"best_possible": best_possible, "level": level, "rng": seed}
    result: Result
    with quietly(), waiting("drawing ranks"):
        if len(given) == 1:
            result = expected_best(given[0], budget or None, **how)
        else:
            result = compare_tuned(given[0], given[1], budget or None, names=(given[0].name, given[1].name), **how)
    title = " and ".join(f"{t.name}: {format_count(len(t), 'trial')}" for t in given) + f" ({level:.0%} intervals)"
    columns = dict(result.readable())
    if len(given) == 2 and page.markup is None:
        # In the terminal names stand for the letters.
        sides = {f"expected {side}": t.name for side, t in zip("ab", given, strict=True)}
        columns = {sides.get(k, k): v for k, v in columns.items()}
        columns["verdict"] = [_named(str(v), given) for v in columns["verdict"]]
    return answer(page, result, title, drawing, columns=columns if page.markup is None else None)


def _named(verdict: str, given: Sequence[Any]) -> str:
    side, _, rest = verdict.partition(" ")
    return f"{given['ab'.index(side)].name} {rest}" if side in ("a", "b") else verdict


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
        return [(name, file, where) for name, file in named_files(files).items()]
    name, file = split_name(files[0])
    learners = _learners(file, by, where)
    if by is None or (len(learners) == 1 and a is None and b is None):
        return [(name or None, file, where)]
    pair = pair_of(learners, a, b, f"values of {by!r}")
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
        there = list(dict.fromkeys(str(cell) for cell in cells))
        if normal(column) in _LEARNER and column not in where and 1 < len(there) < len(cells) / 2:
            raise UsageError(
                f"{file} has {len(there)} values of {column!r} ({list_names(there, MOST_NAMES)}): compare two of them "
                f"with --by {column}, or take one with --where {column}={there[0]}."
            )
    return []


def _trials(file: str, name: str | None, where: dict[str, Any], options: dict[str, Any]) -> Any:
    from curvewise.scaling.load import load_trials

    try:
        with quietly():
            found = load_trials(file, where=where or None, name=name, **options)
    except InputError as error:
        raise InputError(prefix(f"{file}: ", error.message) if file not in error.message else error.message) from None
    note_reading(found.notes, file)
    return found


def pair_of(names: Sequence[str], a: str | None, b: str | None, noun: str) -> tuple[str, str]:
    """Find the two names to compare: those given, or the only two."""
    for option, name in (("--a", a), ("--b", b)):
        if name is not None and name not in names:
            raise UsageError(
                f"{option} {name!r} is not among the {noun}.{suggest(name, names)} There are "
                f"{list_names(names, MOST_NAMES)}."
            )
    if len(names) == 2 and (a is None or b is None):
        a = a or next(name for name in names if name != b)
        b = b or next(name for name in names if name != a)
    if a is None or b is None:
        there = f"There are {len(names)} {noun}" if len(names) > 1 else f"There is one of the {noun} only"
        raise UsageError(f"{there}: name two with --a and --b, of {list_names(names, MOST_NAMES)}.")
    if a == b:
        raise UsageError(f"Both are {a!r}: a comparison needs two.")
    return a, b
