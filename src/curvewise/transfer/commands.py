"""``curvewise transfer``: measure, tasks, blind, wins, images."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter
from cyclopts.validators import Number

from curvewise.cli.console import (
    DONE,
    READING,
    SHOWING,
    STDIN,
    AtLeast1,
    Drawing,
    Flag,
    Higher,
    Level,
    Numbers,
    Page,
    TableReading,
    Texts,
    Unit4,
    UsageError,
    Words,
    choose,
    console,
    gate_status,
    note,
    note_table,
    options,
    read_where,
    readable_file,
    rich_table,
    save_plot,
    split_name,
    table_in_parts,
    warn_each,
    width_of,
)
from curvewise.errors import InputError, Message, arg, list_names, quietly, suggest
from curvewise.text import format_interval, format_level, format_number, interval_cell, pvalue_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from curvewise.transfer.gains import Equivalence
    from curvewise.transfer.result import ComparedMethods, Improvement, TransferComparison, TransferResult
    from curvewise.transfer.risks import TransferRisks
    from curvewise.transfer.tasks import TaskRanking
    from curvewise.types.results import Interval, Result


# Arguments of Python that have an option of another name.
OPTIONS = {
    **{f"columns.{role}": f"{role}-column" for role in ("task", "method", "n", "risk", "seed", "fold")},
    "methods": "method",
    "tasks": "task",
    "test_targets": "test",
    "metric": "risk-column",
}

transfer = App(
    name="transfer",
    help="Does pretraining beat simple controls?\n\n"
    "TABLE (CSV, TSV, JSON, Parquet, a folder of stored runs, or the .toml file of a study that "
    "was run) has a row for each run: method, "
    "training size and test loss, and task, seed and fold where there are several. The controls "
    "are methods of it, training from scratch, a blind guess and maximal supervision, or numbers.",
)

Table = Annotated[str, Parameter(name="TABLE")]


@options(READING)
class RiskReading(TableReading):
    """Options that say how to read risks and their controls.

    Parameters
    ----------
    task_column
        Column that names the task. Columns with usual names are found by themselves; an empty
        name means none.
    method_column
        Column that names the method, such as the pretraining.
    n_column
        Column of training sizes.
    risk_column
        Column of test losses, errors or accuracies; of a study, loss or error.
    seed_column
        Column of seeds.
    fold_column
        Column that names the training subset.
    column
        The same for any role, as ROLE=COLUMN; ROLE= leaves a role out. May be repeated.
    scratch
        The method that starts from nothing; by default the one called so.
    blind
        The blind guess: a method of the table, or a number as the table has them, so an accuracy
        among accuracies; for one task, TASK=NAME or TASK=NUMBER, which may be repeated.
    maximal
        Maximal supervision, as --blind. Without any, the best observed risk stands for it.
    unit
        What the values are. By default accuracies above 1 are percentages.
    higher_is_better
        The values are accuracies or scores. By default the column's name says so.
    drop_failed
        Leave out failed runs, and say how many.
    trust
        Of a study, call the function that makes the data, if one does; otherwise the copy that
        `curvewise study run` kept is read.
    """

    task_column: str | None = None
    method_column: str | None = None
    n_column: str | None = None
    risk_column: str | None = None
    seed_column: str | None = None
    fold_column: str | None = None
    scratch: str | None = None
    blind: Texts = field(default_factory=list)
    maximal: Texts = field(default_factory=list)
    unit: Unit4 | None = None
    higher_is_better: Higher = None
    drop_failed: Flag = False
    trust: Flag = False
    own_options = ("task", "method", "n", "risk", "seed", "fold")

    def load(self, source: str) -> TransferRisks:
        """Read the table or the study, and say on stderr how it was understood."""
        if Path(source).suffix.lower() == ".toml":
            risks = self._study(Path(source))
        else:
            with readable_file(source) as path:
                risks = self._load(Path(path))
        note_table(risks)
        return risks

    def _study(self, path: Path) -> TransferRisks:
        """Read the runs of a study; --risk-column names the metric."""
        others = ["column", "where", "unit", "drop_failed"]
        others += [f"{role}_column" for role in self.own_options if role != "risk"]
        if odd := [name.replace("_", "-") for name in others if getattr(self, name)]:
            raise UsageError(f"--{odd[0]} is for tables, and {path.name} is a study.")
        from curvewise.study.lenses import transfer_risks
        from curvewise.study.study import load_study

        with quietly():
            return transfer_risks(load_study(path, trust=self.trust), metric=self.risk_column, **self._controls())

    def _controls(self) -> dict[str, Any]:
        given = {option: _control(f"--{option}", getattr(self, option)) for option in ("blind", "maximal")}
        return {"scratch": self.scratch, **given}

    def _load(self, path: Path) -> TransferRisks:
        from curvewise.transfer.load import load_risks

        columns = self.columns or {}
        for role in ("method", "n", "risk"):
            if columns.get(role, role) is None:
                raise UsageError(f"--{role}-column must name a column.")
        same = {name: getattr(self, name) for name in ("unit", "higher_is_better", "drop_failed", "allow_large")}
        return load_risks(path, columns=columns, where=read_where(self.where), **self._controls(), **same)


Gate = Literal["worse", "undecided"]
Gates = Annotated[list[Gate], Parameter(negative="", show_default=False)]
Kind = Literal["curves", "area", "cci", "ranks", "equivalence", "tasks", "spread"]


@options(SHOWING)
class TransferShowing(Drawing):
    """Options for showing results.

    Parameters
    ----------
    all_warnings
        Show every warning; by default the first few.
    """

    all_warnings: Flag = False

    def page(self) -> Page:
        """Start the output."""
        page = super().page()
        page.all_warnings = self.all_warnings
        return page


@options(SHOWING)
class CurveDrawing(TransferShowing):
    """Options for drawing curves.

    Parameters
    ----------
    kind
        What --plot draws: calibrated risks by size (the default), the area that the CCI counts,
        CCIs with their intervals, how ranks change with the size, what a size is worth in data of
        scratch, tasks by their scratch curves, or the spread over runs.
    highlight
        Methods that --plot draws in colour, such as new,old; the others are grey.
    """

    kind: Kind | None = None
    highlight: Words = field(default_factory=list)

    def __post_init__(self) -> None:
        """Refuse options of a picture without one before anything is read."""
        super().__post_init__()
        if self.plot is None and (self.kind or self.highlight):
            option = f"--kind {self.kind}" if self.kind else "--highlight"
            raise UsageError(f"{option} is about what --plot draws: add --plot FILE, or leave it out.")

    def draw(self, result: TransferResult) -> Any:
        """Draw the picture that was chosen."""
        if self.kind == "tasks":
            from curvewise.transfer.tasks import rank_tasks

            return rank_tasks(result).plot()
        if self.kind == "spread":
            from curvewise.transfer.result import measure_spread

            return measure_spread(result).plot()
        return result.plot(kind=self.kind or "curves", highlight=self.highlight or None)


@transfer.command
def measure(
    table: Table,
    /,
    *,
    method: Texts = [],
    task: Texts = [],
    sizes: Texts = [],
    weight: Literal["scratch", "uniform", "log"] = "scratch",
    seeds: Literal["mean", "pooled"] = "mean",
    compare: Words = [],
    pairs: Flag = False,
    fail_if: Gates = [],
    level: Level = 0.95,
    reading: RiskReading = RiskReading(),
    drawing: CurveDrawing = CurveDrawing(),
) -> int:
    """Measure how much each method improves on training from scratch.

    For each task and method the calibrated cumulative improvement (CCI): 0 is no better than
    scratch, 1 maximal supervision at every size; with its interval, the gain at the least and the
    most data, up to which size it is significant, and how many times the data scratch needs to match.

    Example: `curvewise transfer measure losses.csv --plot curves.png`

    Example: `curvewise transfer measure losses.csv --seeds pooled --table latex`

    Example: `curvewise transfer measure llm.csv --scratch few-shot --blind zero-shot
    --maximal 0.12`

    Example: `curvewise transfer measure losses.csv --compare new,old --fail-if worse`

    Parameters
    ----------
    table
        Risks by method and training size.
    method
        Only this one, or several such as new,old; may be repeated. How much runs vary is taken from all.
    task
        Only this one, or several such as a,b; may be repeated.
    sizes
        Only these training sizes, such as 100,1000,10000; of one task TASK=100,1000, which may be
        repeated.
    weight
        What the area between curves is integrated over: the risk of scratch as in the paper, the
        size, or its logarithm.
    seeds
        Average the runs of each size, or take each as a point as the paper's authors do.
    compare
        Two methods, such as new,old: the CCI of the first less that of the second.
    pairs
        Compare all pairs of methods on each task.
    fail_if
        Exit with status 3 if a method is shown to be worse than scratch (or, with --compare, the
        first than the second), or if neither better nor worse is shown, each by its own interval,
        without a correction for their number. May be repeated.
    level
        Coverage of the intervals.
    """
    page = drawing.page()
    if compare and (len(compare) != 2 or compare[0] == compare[1]):
        raise UsageError(f"--compare {','.join(compare)}: name two methods, such as new,old.")
    risks = reading.load(table)
    method, task = split_names(method, risks.method_names), split_names(task, risks.task_names)
    methods = list(dict.fromkeys((*method, *(compare if method else ()))))
    there = [*methods, risks.scratch] if methods else risks.method_names
    drawing = replace(drawing, highlight=[choose("--highlight", k, there, "method") for k in drawing.highlight])
    from curvewise.transfer.measure import measure_transfer

    with quietly():
        try:
            result = measure_transfer(
                risks,
                weight=weight,
                seeds=seeds,
                sizes=read_sizes(sizes),
                methods=methods or None,
                tasks=list(task) or None,
                level=level,
            )
        except InputError as error:
            if error.argument != "sizes" or len(risks.task_names) < 2 or any("=" in word for word in sizes):
                raise
            # Sizes that one of several tasks lacks are the usual reason.
            remedy = f"For one task, such as {risks.task_names[0]!r}: --sizes TASK=100,1000."
            raise InputError(error.message, remedy=remedy) from error
        compared = compared_methods(result, compare, pairs)
    if fail_if and compared is None and not result.methods:
        raise UsageError("--fail-if needs a method beside scratch: there is none.")

    show_transfer(page, result)
    if compared is not None:
        show_comparison(page, result, compared)
    save_plot(page.plot, lambda: drawing.draw(result))
    judged: dict[str, Interval | None] = {
        f"{c.method} on {c.task}": None for c in result.curves if c.method != result.scratch
    }
    judged |= {f"{r.method} on {r.task}": None if r.reversed else r.cci for r in result.improvements}
    if compare and compared is not None:
        judged = {_pair_name(r): r.difference for r in compared.rows} or {" − ".join(compare): None}
    status = DONE
    for gate in fail_if:
        if met := [name for name, interval in judged.items() if _holds(interval, gate)]:
            more = f" and {len(met) - 3} more" if len(met) > 3 else ""
            status = gate_status([gate], [gate], f" for {', '.join(met[:3])}{more}")
    return page.close(status)


@transfer.command
def tasks(
    table: Table,
    /,
    *,
    task: Texts = [],
    levels: Numbers = [],
    level: Level = 0.95,
    reading: RiskReading = RiskReading(),
    drawing: TransferShowing = TransferShowing(),
) -> int:
    """Characterise tasks by how much data training from scratch needs.

    Tasks are ordered by the training size at which the calibrated risk of scratch has come down
    to each level: 1 is a blind guess, 0 maximal supervision.

    Example: `curvewise transfer tasks losses.csv --levels 0.5,0.25 --plot tasks.png`

    Parameters
    ----------
    table
        Risks by method and training size; only those of scratch are looked at.
    task
        Only this one, or several such as a,b; may be repeated.
    levels
        Calibrated risks to reach; 0.75,0.5,0.25,0.1 by default.
    level
        Coverage of the intervals.
    """
    page = drawing.page()
    risks = reading.load(table)
    task = split_names(task, risks.task_names)
    from curvewise.transfer.measure import measure_transfer
    from curvewise.transfer.tasks import rank_tasks

    with quietly():
        measured = measure_transfer(risks, tasks=list(task) or None, level=level)
        chosen = {"levels": tuple(levels)} if levels else {}
        result = rank_tasks(measured, **chosen, level=level)
    return show_tasks(page, result, measured)


@transfer.command
def blind(
    targets: Annotated[str, Parameter(name="TARGETS")],
    /,
    *,
    loss: str,
    test: Path | None = None,
    key: Words = [],
    per: Literal["output", "pixel", "all"] = "output",
    axis: int | None = None,
    ignore: str | None = None,
    average: Literal["example", "pixel"] = "example",
    groups: Path | None = None,
    classes: AtLeast1 | None = None,
    smoothing: Annotated[float, Parameter(validator=Number(gte=0))] = 0.0,
    level: Level = 0.95,
    drawing: Drawing = Drawing(),
) -> int:
    """Find the blind guess: the best constant prediction for a loss, and its risk.

    Example: `curvewise transfer blind depth.npy --loss l1 --per pixel --test test_depth.npy`

    Example: `curvewise transfer blind labels.csv --key label --loss cross-entropy`

    Parameters
    ----------
    targets
        What is to be predicted, a row for each training example: .npy, .npz, .csv, .txt, .json.
    loss
        error, cross-entropy, l1, l2, binary, binary-error, angular or cosine.
    test
        File with the targets that the risk is measured on; without it, those of training.
    key
        The array or column; several, such as x,y, are the outputs of each example.
    per
        What has a constant of its own: an output, each element of an example, or nothing.
    axis
        Which axis holds channels, or the components of vectors.
    ignore
        The value that marks an element without target, such as 255 or nan.
    average
        What counts the same in the risk.
    groups
        File that says which measured examples belong together.
    classes
        How many classes, numbered from 0.
    smoothing
        Examples added to each class before frequencies are taken.
    level
        Coverage of the interval.
    """
    page = drawing.page()
    from curvewise.transfer.blind import blind_guess

    mark = None if ignore is None else _number(ignore)  # of an element without target: a number, NaN, or a text
    with quietly():
        result = blind_guess(
            read_array(targets, key),
            loss,
            test_targets=None if test is None else read_array(test, key),
            per=per,
            axis=axis,
            ignore=int(mark) if isinstance(mark, float) and mark.is_integer() else mark,
            average=average,
            groups=None if groups is None else read_array(groups),
            classes=classes,
            smoothing=smoothing,
            level=level,
        )
    title = f"Blind guess for {result.loss} ({format_level(level)} interval)"
    status = page.answer(result, title, columns=plain_columns(result))
    # The option that takes the guess to `transfer measure`, whatever the unit of its table.
    risk = result.risk.estimate
    text = f"For curvewise transfer measure: --blind {risk:.6g}"
    if result.loss in ("error", "binary-error"):
        text += f" for a table of errors, {100 * risk:.6g} if they are percentages; for one of accuracies "
        text += f"--blind {1 - risk:.6g} or {100 * (1 - risk):.6g}."
    else:
        text += f", for a table of {result.unit}."
    page.say(text, style="dim")
    return status


@transfer.command
def wins(
    method: Annotated[str, Parameter(name="METHOD")],
    scratch: Annotated[str, Parameter(name="SCRATCH")],
    /,
    *,
    key: Words = [],
    groups: Path | None = None,
    paired: Flag = False,
    fail_if: Gates = [],
    level: Level = 0.95,
    drawing: Drawing = Drawing(),
) -> int:
    """Count the test examples on which a method has a lower loss than scratch.

    Each file holds the losses of the same test examples: one for each, or runs × examples. Ties
    count half.

    Example: `curvewise transfer wins pretrained.npy scratch.npy --groups patients.npy`

    Parameters
    ----------
    method
        Losses of the method: .npy, .npz, .csv, .txt, .json; NAME=FILE names it.
    scratch
        Losses of training from scratch, or of any other to compare with.
    key
        The array or column, where a file has several; several, such as seed1,seed2, are runs.
    groups
        File that says which examples belong together.
    paired
        Run r of both belong together: they share a seed or a training subset.
    fail_if
        Exit with status 3 if the method is shown to win on fewer than half of the examples, or if
        neither more nor fewer is shown. May be repeated.
    level
        Coverage of the interval.
    """
    page = drawing.page()
    names = names_of_files(method, scratch)
    method, scratch = split_name(method)[1], split_name(scratch)[1]
    files = (Path(method).name, Path(scratch).name)
    from curvewise.transfer.wins import win_rate

    with quietly():
        result = win_rate(
            read_array(method, key, "runs"),
            read_array(scratch, key, "runs"),
            groups=None if groups is None else read_array(groups),
            paired=paired,
            names=files if files[0] != files[1] else (method, scratch),  # errors name files with their endings
            level=level,
        )
    result = replace(result, names=names)
    title = f"Examples on which {names[0]} beats {names[1]} ({format_level(level)} interval)"
    status = gate_status(fail_if, [gate for gate in fail_if if _holds(result.rate, gate, null=0.5)])
    return page.answer(result, title, columns=plain_columns(result), status=status)


@transfer.command
def images(
    study: Annotated[Path, Parameter(name="STUDY")],
    /,
    *,
    method: Texts = [],
    n: Numbers = [],
    examples: AtLeast1 = 3,
    evaluation: str = "test",
    trust: Flag = False,
    drawing: Drawing = Drawing(),
) -> int:
    """Show the images that the learners of a study predicted, with the loss of each.

    The study predicts images and has kept them: [keep] predictions = true.

    Example: `curvewise transfer images depth.toml --n 100,1000 --plot grid.png`

    Parameters
    ----------
    study
        The .toml file of a study that was run.
    method
        Only these learners; may be repeated.
    n
        Only these training sizes.
    examples
        How many examples, evenly spaced over the set.
    evaluation
        On which evaluation set.
    trust
        Call the function that makes the data, if one does; otherwise the copy that
        `curvewise study run` kept is read.
    """
    page = drawing.page()
    from curvewise.study.lenses import predicted_images
    from curvewise.study.study import load_study

    if not study.exists():
        raise UsageError(f"{study}: there is no such file.")
    asked: dict[str, Any] = {"methods": method or None, "n": [int(size) for size in n] or None}
    with quietly():
        loaded = load_study(study, trust=trust)
        result = predicted_images(loaded, **asked, examples=examples, evaluation=evaluation)
    return page.answer(result, f"{result.loss.upper()} losses of the images", columns=plain_columns(result))


def _control(option: str, words: Sequence[str]) -> Any:
    """Read a number or a name, or a dict of these by task."""
    if len(words) == 1 and "=" not in words[0]:
        return _number(words[0])
    found = {}
    for word in words:
        task, equals, value = word.rpartition("=")
        if not equals or not task.strip():
            raise UsageError(f"{option} {word!r}: give one name or number, or TASK=NAME or TASK=NUMBER for each task.")
        found[task.strip()] = _number(value)
    return found or None


def _number(word: str) -> float | str:
    try:
        return float(word)
    except ValueError:
        return word


def read_sizes(words: Sequence[str]) -> Any:
    """Read training sizes, or a dict of them by task; None for all.

    >>> read_sizes(["100,1k"]), read_sizes(["depth=100", "normal=10,20"])
    ([100, 1000], {'depth': [100], 'normal': [10, 20]})
    """
    from curvewise.text import as_count
    from curvewise.transfer.load import header_size

    found: dict[str, list[float]] = {}
    for word in words:
        task, _, listed = word.rpartition("=")
        sizes = [header_size(part) for part in listed.split(",") if part.strip()]
        if not sizes or None in sizes:
            raise UsageError(f"--sizes {word!r}: give numbers, such as 100,1000 or TASK=100,1000.")
        found.setdefault(task.strip(), []).extend(as_count(n) for n in sizes if n is not None)
    if "" in found and len(found) > 1:
        raise UsageError("--sizes: give sizes for all tasks, or TASK=… for each.")
    return found.get("", found) or None


def split_names(words: Sequence[str], known: Sequence[str]) -> list[str]:
    """Read names that were given one by one or with commas between them.

    >>> split_names(["a,b", "c,d"], ["a", "b", "c,d"])
    ['a', 'b', 'c,d']
    """
    found = [
        part for word in words for part in ([word] if word in known else [p.strip() for p in word.split(",")]) if part
    ]
    return list(dict.fromkeys(found))


def read_array(
    file: str | Path, keys: Sequence[str] = (), several: Literal["outputs", "runs"] = "outputs"
) -> NDArray[Any]:
    """Read the array of a file; of several the one that ``keys`` names, or several together.

    Parameters
    ----------
    file : path
        ``.npy``, ``.npz``, ``.safetensors``, ``.csv``, ``.txt`` or ``.json``.
    keys : sequence of str
        Arrays or columns.
    several : {"outputs", "runs"}
        What more than one are: outputs of each example, or runs on the same examples.
    """
    import numpy as np

    from curvewise.reading.arrays import read_named
    from curvewise.reading.roles import direction
    from curvewise.reading.table import as_path

    if str(file) == STDIN:
        raise UsageError("Arrays are read from a file, not from stdin.")
    path = as_path(file)
    names, get = read_named(path)
    for key in keys:
        if key not in names:
            raise UsageError(f"--key {key!r} is not in {path.name}.{suggest(key, names)} It has {list_names(names)}.")
    chosen = list(keys) or list(names)
    what = "runs" if several == "runs" else "the outputs of each example"
    if len(chosen) > 1 and not keys:
        raise UsageError(
            f"{path.name} holds {list_names(names)}: choose with --key; several, such as --key "
            f"{','.join(names[:2])}, are {what}."
        )
    if several == "runs" and (high := [name for name in chosen if direction(name)]):
        raise UsageError(
            f"--key {high[0]!r} of {path.name} is better when higher, by its name: a win is a lower loss. Give losses "
            "or errors, such as 1 − accuracy or the negative of a score."
        )
    arrays = [get(name) for name in chosen]
    for name, array in zip(chosen, arrays, strict=True):
        if several == "runs" and array.dtype.kind in "US":
            raise UsageError(f"--key {name!r} of {path.name} holds text: losses are numbers.")
    if any(array.shape != arrays[0].shape for array in arrays):
        raise UsageError(f"--key {','.join(keys)}: these differ in shape.")
    found: NDArray[Any] = arrays[0] if len(arrays) == 1 else np.stack(arrays, axis=several == "outputs")
    name = f" ({', '.join(chosen)})" if any(chosen) else ""
    note(f"{path.name}{name}: {' × '.join(map(str, found.shape))} {found.dtype.name}")
    return found


def names_of_files(method: str, scratch: str) -> tuple[str, str]:
    """Name the two sides as NAME=FILE says, or by their files without endings, with folders if these are alike.

    >>> names_of_files("runs/swav.npy", "scratch.npy"), names_of_files("a/loss.npy", "b/loss.npy")
    (('swav', 'scratch'), ('a/loss', 'b/loss'))
    """
    paths = [Path(name or file).with_suffix("") for name, file in map(split_name, (method, scratch))]
    # The shortest names that differ.
    tried = [tuple(p.name for p in paths), tuple(p.as_posix() for p in paths), (method, scratch)]
    return next(((a, b) for a, b in tried if a != b), ("the first", "the second"))


LEGEND = (
    "CCI: 0 no better than {scratch}, 1 as good as maximal supervision at every size. gain: GAIN, at the smallest … "
    "largest n, and the n where it is significant. data ×: times the data {scratch} needs to match the method at the "
    "smallest n."
)
CALIBRATED = "calibrated risk of {scratch} (1 blind guess, 0 maximal supervision) minus that of the method"
UNSCALED = "risk of {scratch} minus that of the method"
NARROW = " A wider terminal adds p, sizes and runs; --json has them."
MOST_PAIRS = 20
"""Comparisons that are shown in a terminal; the title says where all of them are."""
MOST_ANSWERS = 3
"""Tasks that have sentences without --verbose."""


def show_transfer(page: Page, result: TransferResult) -> None:
    """Print CCI, gains and what they are worth for each task."""
    page.document = result.to_dict()
    if page.markup is not None and not page.as_json:
        sys.stdout.write(result.table(page.markup) + "\n")
    elif not page.as_json:
        narrow = False
        for task in result.tasks:
            if rows := [r for r in result.improvements if r.task == task]:
                columns = details(result, rows)
                narrow = narrow or "p" not in columns
                table_in_parts(page, _title(result, rows), columns)
        if result.improvements:
            plain = [task for task in result.tasks if result.blind[task].assumed]
            gain = UNSCALED if len(plain) == len(result.tasks) else CALIBRATED
            if 0 < len(plain) < len(result.tasks):
                gain += f" (no blind guess for {list_names(plain)}: {UNSCALED} there)"
            page.say(LEGEND.replace("GAIN", gain).replace("{scratch}", result.scratch) + NARROW * narrow, style="dim")
    for i, text in enumerate(() if page.as_json else answers(result, page.verbose)):
        page.say(text, close=i > 0)
    warn_each(result.all_warnings, every=page.all_warnings)


def _title(result: TransferResult, rows: Sequence[Improvement]) -> str:
    """The task, its controls, and the sizes where all methods have the same."""
    task = rows[0].task
    controls = (result.blind[task], result.maximal[task])
    blind, maximal = (f"{c.risk:.3g}" + " (assumed)" * c.assumed for c in controls)
    spans = {tuple(r.n.tolist()) for r in rows}
    n = max(spans, key=len)
    alike = f", {len(n)} sizes from {format_number(n[0])} to {format_number(n[-1])}"
    lead = led(result, task) or "Controls: "
    text = f"{lead}blind guess {blind}, maximal supervision {maximal}"
    return text + (alike if len(spans) == 1 and len(n) > 1 else "")


def compared_methods(result: TransferResult, compare: list[str], pairs: bool) -> TransferComparison | None:
    """Compare two methods, or all pairs; None if neither was asked for."""
    if result.scratch in compare:
        raise InputError(
            f"--compare {','.join(compare)}: the CCI of a method is what it gains on "
            f"{result.scratch}, so that there is nothing to compare. Name two other methods."
        )
    for name in compare:
        if name not in result.methods:
            there = f"{suggest(name, result.methods)} There are {list_names(result.methods)}."
            raise InputError(f"--compare {','.join(compare)}: {name!r} is no method.{there}")
    if compare:
        return result.compare(*compare)
    if pairs and len(result.methods) < 2:
        there = f"there is {list_names(result.methods) or 'none'}"
        raise UsageError(f"--pairs needs two methods beside {result.scratch}: {there}.")
    return result.comparisons() if pairs else None


def show_comparison(page: Page, result: TransferResult, compared: TransferComparison) -> None:
    """Print differences of CCI, those that are clearest."""
    page.document["comparison"] = compared.to_dict()
    # The clearest first; unknown p-values (NaN) after all others.
    rows = sorted(compared.rows, key=lambda r: r.pvalue if r.pvalue == r.pvalue else 2.0)
    kept = rows if page.markup is not None else rows[:MOST_PAIRS]
    what = "Differences" if len(kept) == len(rows) else f"The {len(kept)} clearest differences"
    title = f"{what} of CCI ({format_level(result.level)} intervals; p adjusted by Holm)"
    if len(kept) < len(rows):
        title += f"; --table text prints all {len(rows)}"
    by, low, high = (decimals(getattr(r.difference, end) for r in kept) for end in ("estimate", "low", "high"))
    p, adjusted = ([pvalue_text(getattr(r, name)) for r in kept] for name in ("pvalue", "adjusted"))
    numbers: dict[str, list[Any]] = {"low": low, "high": high, "p": p, "adjusted": adjusted}
    columns: dict[str, list[Any]] = {
        "task": [r.task for r in kept],
        "CCI of": [r.one for r in kept],
        "less that of": [r.two for r in kept],
        "difference": by,
        **numbers,
    }
    # Three columns of names are too wide for most terminals: put them into one.
    if page.markup is None and width_of(rich_table(columns))[1] > console().width:
        columns = {"difference": [_pair_name(r) for r in kept], "CCI": by, **numbers}
    if kept:
        table_in_parts(page, title, columns)
    warn_each(compared.all_warnings, every=page.all_warnings)


def show_tasks(page: Page, result: TaskRanking, measured: TransferResult) -> int:
    """Print which size reaches each level of calibrated risk."""
    more = [
        Message(
            f"{task}: maximal supervision was not measured: {format_number(control.risk)} stands for it "
            f"({control.source}), and calibrated risks are too low if more can be reached. Pass {arg('maximal')} with "
            "the risk that all the data gives."
        )
        for task, control in measured.maximal.items()
        if control.assumed
    ]
    title = (
        f"Training size at which {measured.scratch} reaches a calibrated risk ({format_level(result.level)} intervals)"
    )
    return page.answer(result, title, document={"warnings": [*more, *result.all_warnings]}, warnings=more)


_HEADINGS = {"std": "standard error", "scratch runs": "runs of the other"}


def plain_columns(result: Result) -> dict[str, list[Any]]:
    """Return the table of a result with headings in words."""
    return {_HEADINGS.get(name, name): list(values) for name, values in result.readable().items()}


def _pair_name(row: ComparedMethods) -> str:
    return f"{row.one} − {row.two} on {row.task}"


def _holds(interval: Interval | None, gate: Gate, null: float = 0.0) -> bool:
    """Tell whether a number is significantly below that of no difference, or neither below nor above, as if unknown."""
    if interval is None:
        return gate == "undecided"
    worse = interval.high < null
    return worse if gate == "worse" else not (worse or interval.low > null)


def answers(result: TransferResult, every: bool = False) -> list[str]:
    """Return two sentences for each of the first few tasks, or all that is known of all tasks."""
    shown = result.tasks if every else result.tasks[:MOST_ANSWERS]
    left = len(result.tasks) - len(shown)
    return [*(_answer(result, task, every) for task in shown), *([f"{left} more tasks: --verbose."] if left else [])]


def led(result: TransferResult, task: str) -> str:
    """Return the task as the beginning of a sentence, or nothing where the table has no tasks."""
    from curvewise.transfer.risks import ONE_TASK  # brings numpy, which --help does without

    return "" if result.tasks == (ONE_TASK,) else f"{short(task)}: "


def short(name: str) -> str:
    """Shorten a very long name in its middle.

    >>> short("swav"), len(short("x" * 500))
    ('swav', 49)
    """
    return name if len(name) <= 49 else f"{name[:32]}…{name[-16:]}"


def _by_cci(rows: Iterable[Improvement]) -> list[Improvement]:
    """Sort methods from the highest CCI down; those without one at the end."""
    return sorted(rows, key=lambda r: -r.cci.estimate if not math.isnan(r.cci.estimate) else 9e9)


def _answer(result: TransferResult, task: str, every: bool) -> str:
    from curvewise.transfer.result import on_different_sizes, worse_than_scratch

    rows = _by_cci(r for r in result.improvements if r.task == task)
    lead = led(result, task)
    known = [r for r in rows if not math.isnan(r.cci.estimate)]
    if not known:
        why = f"there is no method beside {result.scratch}, which transfer tasks looks at"
        if rows:
            why = "it needs two sizes" if all(len(r.n) < 2 for r in rows) else "see the warnings"
        return f"{lead}{'no' if lead else 'No'} CCI; {why}."
    best = known[0]
    tested = [r for r in known if not math.isnan(r.pvalue)]
    cci = f"{decimals([best.cci.estimate])[0]} (no interval)"
    if not math.isnan(best.cci.low):
        cci = format_interval(best.cci)
        if best.reversed:
            cci += ", of the other sign over log n"
        elif not best.significant:
            how = f" (Holm's correction for {len(tested)} tests)" if len(tested) > 1 else ""
            cci += f", not significantly different from 0{how}"
    if on_different_sizes(known):
        cci += "; CCIs rest on different sizes, and methods are not ranked"
    elif len(known) > 1:  # the next, and whether the best is better than it
        cci += f", the highest; next is {short(known[1].method)}, {decimals([known[1].cci.estimate])[0]}"
        cci += _lead(result, best, known[1:])
    sentences = [f"{short(best.method)} has CCI {cci}."]
    worse = worse_than_scratch([replace(r, method=short(r.method)) for r in known], result.scratch)
    if worse:
        sentences.insert(0, worse if lead else f"N{worse[1:]}")
    else:
        sentences.insert(0, _verdict(result, best))
    sentences[0] = lead + sentences[0]
    if best.data_equivalence:
        sentences.append(_worth_sentence(best.data_equivalence[0], result.scratch, _reach(result, task), result.level))
    if every and len(tested) > 1 and not worse:
        up, down = (sum(r.significant and sign * r.cci.estimate > 0 for r in tested) for sign in (1, -1))
        text = f"{up} of {len(tested)} methods are significantly better than {result.scratch}"
        text += f", {down} significantly worse" if down else ""
        sentences.append(
            f"{text} at {format_level(1 - result.level)}, after Holm's correction for {len(tested)} tests."
        )
    if (control := result.maximal[task]).assumed:
        sentences.append(f"Maximal supervision is assumed: {control.source}.")
    return " ".join(filter(None, sentences))


def _verdict(result: TransferResult, best: Improvement) -> str:
    """Say whether the best method pays off, up to which size, and the gain in risk at the largest."""
    runs, n = result.runs_of([best.task])[0], float(best.n[-1])
    gain = runs.risk_gain(best.method, n)
    interval = gain.error.interval(gain.value, result.level)
    scratch, own = (format_number(float(runs.runs.mean[runs.cells[m, n]]), 3) for m in (result.scratch, best.method))
    risk = result.unit if result.unit.isidentifier() else "risk"
    name, known = short(best.method), not math.isnan(best.cci.low)
    pays = (
        f"{name} pays off" if best.significant and best.cci.estimate > 0 else f"It is not certain that {name} pays off"
    )
    if not known:
        pays = f"{name} {'is ahead' if best.cci.estimate > 0 else 'is behind'} (one run each: no test)"
    text = f"{pays}: at n = {format_number(n)}, the largest size of both, its {risk} is {own} and that of "
    # The table's gain is calibrated; this one is in the unit of the risks.
    text += f"{result.scratch} {scratch}, a gain of {format_interval(interval)} in {risk}"
    if known and not math.isnan(interval.low) and interval.low <= 0 <= interval.high:
        text += ", which is not significant"
    elif known and interval.high < 0:
        text += ", a loss"
    end = "" if best.gain_ends is None else best.gain_ends.text
    same = f"The gain is significant at the largest size, n = {format_number(n)}."
    return f"{text}. {end}".rstrip() if end != same else f"{text}."


def _lead(result: TransferResult, best: Improvement, others: Sequence[Improvement]) -> str:
    """Say whether the next method is significantly lower than the best, which was chosen among all of them."""
    from curvewise.transfer.result import compare_methods

    pairs = [(best.method, r.method) for r in others]
    rows = compare_methods(result.runs_of([best.task]), pairs, result._settings, average=False).rows
    nearest = [r for r in rows if r.two == others[0].method and not math.isnan(r.adjusted)]
    if not nearest:
        return ""
    # The best is compared with every other method: without a correction, one of many is easily found lower.
    tests = sum(not math.isnan(r.adjusted) for r in rows)
    lower = nearest[0].adjusted <= 1 - result.level and nearest[0].difference.estimate > 0
    how = f" (Holm's correction for {tests} comparisons)" if tests > 1 else ""
    return f", {'' if lower else 'not '}significantly lower{how}"


def _reach(result: TransferResult, task: str) -> tuple[float, float]:
    """Return the smallest and the largest size of scratch, beyond which no worth is known."""
    n = result.curve(task, result.scratch).n
    return float(n[0]), float(n[-1])


def _worth_sentence(first: Equivalence, scratch: str, reach: tuple[float, float], level: float) -> str:
    """Say how much data scratch needs to be as good as the method at its smallest size."""
    low, high, estimate = first.factor.low, first.factor.high, first.factor.estimate
    if math.isnan(estimate) or first.beyond == "below":
        return ""
    needs = f"To match its n = {format_number(first.n)}, {scratch} needs"
    if first.beyond == "above":
        most = reach[1] / first.n
        least = f" ({format_level(level)} confidence: more than {times(low)})" if 1 < low < 0.95 * most else ""
        return f"{needs} more than the {times(most)} times as much data that it was given{least}."
    bounds = ""
    if low == low and high == high:
        lowest = times(low) if low > 0 else "0"
        bounds = f" [{lowest}, {times(high) if high < math.inf else '∞'}]"
    return f"{needs} {times(estimate)} times as much data{bounds}."


def details(result: TransferResult, rows: Sequence[Improvement]) -> dict[str, list[Any]]:
    """Return a row for each method, the best first; p, sizes and runs if the terminal has room for all."""
    order = _by_cci(rows)
    table = result.columns()
    runs = dict(zip(zip(table["task"], table["method"], strict=True), table["runs"], strict=True))
    found: dict[str, list[Any]] = {
        "method": [short(r.method) for r in order],
        "CCI": [interval_cell(r.cci) for r in order],
        "gain": [" … ".join(decimals(_gains(result, r)[[0, -1] if len(r.gain) > 1 else [0]], 2)) for r in order],
        "significant at": [_significant(r) for r in order],
        "data ×": [_worth(r, _reach(result, r.task)) for r in order],
    }
    more: dict[str, list[Any]] = {
        "p": [pvalue_text(r.pvalue) for r in order],
        "n": [f"{len(r.n)}: " + "–".join(format_number(n) for n in sorted({r.n[0], r.n[-1]})) for r in order],
        "runs": [str(runs[r.task, r.method]) for r in order],
    }
    both = {**found, **more}
    return both if width_of(rich_table(both))[1] <= console().width else found


def _gains(result: TransferResult, row: Improvement) -> Any:
    """Return the gain at each size: calibrated, or in the unit of the risk where no blind guess sets a scale."""
    blind, maximal = result.blind[row.task], result.maximal[row.task]
    return row.gain * (blind.risk - maximal.risk if blind.assumed else 1.0)


def _significant(row: Improvement) -> str:
    """List the sizes at which the interval of the gain is above 0."""
    end = row.gain_ends
    if end is None or not end.significant_at:
        return "–"
    return "all n" if len(end.significant_at) == len(row.n) else spans(row.n.tolist(), end.significant_at)


def spans(sizes: Sequence[float], chosen: Sequence[float]) -> str:
    """List some of the sizes, those that follow one another as the first and the last.

    >>> spans([10, 20, 50, 100, 1000], [20, 50, 100]), spans([10, 20, 50, 100], [10, 20, 100])
    ('20–100', '10, 20, 100')
    """
    runs = [list(run) for held, run in groupby(sizes, key=lambda n: n in chosen) if held]
    parts = [
        f"{format_number(run[0])}–{format_number(run[-1])}" if len(run) > 2 else ", ".join(map(format_number, run))
        for run in runs
    ]
    return ", ".join(parts)


def _worth(row: Improvement, reach: tuple[float, float]) -> str:
    """Write how many times the data scratch needs at the smallest size; a bound where it is beyond."""
    if not row.data_equivalence or math.isnan((first := row.data_equivalence[0]).factor.estimate):
        return "–"
    if first.beyond is None:
        return times(first.factor.estimate)
    above = first.beyond == "above"
    return f"{'>' if above else '<'} {times(reach[above] / first.n)}"


def times(factor: float) -> str:
    """Write a factor in two digits.

    >>> times(3.92), times(1234.0), times(0.034)
    ('3.9', '1,234', '0.034')
    """
    return f"{factor:.2g}" if factor < 0.1 else f"{factor:.1f}" if factor < 10 else f"{factor:,.0f}"


def decimals(values: Iterable[float], digits: int = 3) -> list[str]:
    """Write numbers with so many decimals.

    >>> decimals([0.5, -0.0001, float("nan")])
    ['0.500', '0.000', '–']
    """
    return ["–" if v != v else f"{v:z.{digits}f}" for v in values]
