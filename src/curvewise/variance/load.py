"""Load what many runs predicted for each test example, from files, folders and frames."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.learning.load import read_source, tells_runs
from curvewise.reading.arrays import (
    ARRAY_FILES,
    IF_WIDE,
    KIND_OF,
    Found,
    PartMap,
    Parts,
    array_file,
    check_map,
    compact,
    counts_up,
    find_others,
    find_parts,
    finish,
    flags,
    from_named,
    nested,
    no_value,
    read_folder,
    read_vector,
)
from curvewise.reading.files import (
    as_path,
    json_table,
    kind_of,
    large_files,
    parse_json,
    read_file,
    read_text,
    split_rows,
)
from curvewise.reading.roles import FINISHED, decide_unit, direction, is_status, normal, plays, status_word
from curvewise.reading.table import (
    Column,
    Table,
    check_names,
    first_row,
    is_missing,
    make_table,
    names_in,
    numbers,
    parse,
    table_from_dict,
    table_from_frame,
    table_from_records,
    take_cells,
    texts,
    unfold,
)
from curvewise.store.read import is_store
from curvewise.store.tables import read_store
from curvewise.text import brief, format_path, list_names, suggest
from curvewise.types.coercion import as_predictions, same_names
from curvewise.types.predictions import KINDS, Predictions
from curvewise.types.units import FloatArray

_PICKLES = (".pkl", ".pickle", ".pt", ".pth", ".joblib", ".bin", ".ckpt")


def load_predictions(
    source: Any,
    *,
    labels: ArrayLike | str | PathLike[str] | None = None,
    kind: str | None = None,
    axes: Sequence[str] | None = None,
    groups: ArrayLike | str | PathLike[str] | None = None,
    key: str | None = None,
    columns: PartMap | None = None,
    learner: str | None = None,
    where: Mapping[str, Any] | None = None,
    header: bool | None = None,
    allow_large: bool = False,
) -> Predictions:
    """Read predicted classes, 0/1 errors or hits, losses, scores or probabilities of many runs.

    What was taken for what is said in ``notes`` of the result; where two readings are possible it
    is an error that says how to choose. Nothing pickled is ever read.

    Parameters
    ----------
    source : path, DataFrame, dict, list or array
        One of

        - ``.npy``, mapped into memory and never loaded whole; ``.npz`` and ``.safetensors`` with
          arrays that are known by their names, see Notes;
        - a folder with one file per run (``.npy``, ``.npz``, ``.csv``, ``.txt`` with one value per
          line, ``.json`` with a list), whose names are those of the runs, and possibly
          ``labels.*``, ``groups.*`` and ``example_ids.*`` beside them. Files are read when their
          runs are asked for;
        - a folder of runs stored by :func:`curvewise.write_run`, with the labels stored there;
        - a CSV, TSV, JSON, JSON lines or Parquet file (text also with ``.gz``), a frame of pandas,
          polars or pyarrow, a dict of columns or a list of records, with one row for each run and
          example; with ``axes`` also one row, or one column, for each run;
        - an array, a dict of arrays, or :class:`Predictions`.
    labels : array_like or path, optional
        The true class of each example, in order; a file with one value per line, or an array.
    kind : {"labels", "errors", "correct", "losses", "scores", "probabilities"}, optional
        What the values are, where names do not say it. 0 and 1 of which nothing says whether 1
        means wrong or right are read as errors, other numbers as losses, with a note; a comparison
        refuses them.
    axes : sequence of str, optional
        What each axis is: ("runs", "examples"), ("examples", "runs"), with a third for "repeats"
        or "classes". A table is read as a wide one if it is given.
    groups : array_like or path, optional
        Which examples belong together, in order.
    key : str, optional
        The array or column that holds the values; of stored runs ``"probabilities"``, say, or
        ``"predictions.shifted"`` for an evaluation set called "shifted".
    columns : dict, optional
        Which array or column plays a part: ``{"run": "job", "prediction": "answer"}``. Parts are
        prediction, error, correct, loss, score, probability, label, group, run, example, repeat,
        learner and packed; None leaves one out.
    learner : str, optional
        Whose runs to take where a table or a store holds those of several.
    where : dict, optional
        Coordinates of the runs to take out of a store: ``{"n": 400}``.
    header : bool, optional
        Whether the first line of a wide text file holds names, where that is in doubt.
    allow_large : bool
        Read a compressed file even if it unpacks to more than 256 MiB of text or 1 GiB of arrays.

    Returns
    -------
    Predictions
        With the names of runs and examples, where the source has some.

    Raises
    ------
    InputError
        If something cannot be read, or could be read in two ways.
    MissingDependencyError
        For safetensors or Parquet without the package that reads it.

    Notes
    -----
    Names are compared in lower case, with spaces and punctuation as underscores. Values are called
    preds, predictions, y_pred, …; errors, wrong, …; correct, hits, …; losses, nll, …;
    pass1, pass_rate, …; probabilities, probs, logits, …. Beside them there may be labels, targets,
    y_true, …; groups, passage, video, …; run, run_id, seed, …; example, example_id, id, index, …;
    repeat, sample, …; learner, model, training, …. Errors or hits may be bits,
    ``np.packbits(errors, axis=1)``, with the number of examples in ``packed``. The whole
    dictionary is ``curvewise.reading.arrays``.

    Examples of a long table that are numbered from 0 or 1 are put in that order; others stay in
    the order in which they first appear.

    Examples
    --------
    >>> rows = {"seed": [1, 1, 2, 2], "id": [0, 1, 0, 1], "pred": [3, 5, 3, 3]}
    >>> p = load_predictions({**rows, "label": [3, 5, 3, 5]})
    >>> p
    Predictions(2 runs × 2 examples of labels, 2 classes)
    >>> p.errors().tolist(), p.run_ids.tolist()
    ([[0, 0], [0, 1]], [1, 2])
    >>> print(p.notes[0])
    values from column 'pred'; label from 'label'; run from 'seed'; example from 'id'
    """
    if kind is not None and kind not in KINDS:
        raise InputError(f"kind={kind!r} is not known: use one of {', '.join(map(repr, KINDS))}.")
    with large_files(allow_large):
        truth, members = _by_position(labels, "label"), _by_position(groups, "group")
        if isinstance(source, Predictions):
            return as_predictions(source, truth, kind=kind, axes=axes, groups=members)
        choice = _Choice(axes, key, kind, columns, learner, where, header)
        found = _find_path(as_path(source), choice) if _is_path(source) else _find(source, choice)
    return finish(found, labels=truth, kind=kind, axes=axes, groups=members)


class _Choice(NamedTuple):
    """What the user said about how to read."""

    axes: Sequence[str] | None
    key: str | None
    kind: str | None
    columns: PartMap | None
    learner: str | None
    where: Mapping[str, Any] | None
    header: bool | None

    def only(self, form: str, *names: str) -> None:
        """Refuse a choice that means nothing for this form."""
        for name in ("key", "columns", "learner", "where", "header"):
            if getattr(self, name) is not None and name not in names:
                raise InputError(f"{name}= says nothing about {form}: leave it out.")


def _find_path(path: Path, choice: _Choice) -> Found:
    path = path.resolve() if path.is_dir() else path  # "." and ".." have no names of their own
    if path.is_dir() and is_store(path):
        choice.only("a store of runs", "learner", "where", "key")
        return read_store(path, choice.learner, choice.where, choice.key)
    if path.is_dir():
        choice.only("a folder of runs", "key", "columns")
        return read_folder(path, choice.key, choice.kind, choice.columns)
    if path.suffix.lower() in ARRAY_FILES:
        choice.only("a file of arrays", "key", "columns")
        return array_file(path, choice.key, choice.kind, choice.columns)
    if path.suffix.lower() in _PICKLES and path.exists():
        raise InputError(
            f"source={brief(str(path), 200)} is a pickle or may be one, which can run code and is "
            f"never read: save arrays as {', '.join(ARRAY_FILES)}."
        )
    format_, _ = kind_of(path)
    if format_ == "csv" and choice.axes is not None:
        table = wide_csv(path, choice.axes, choice.header)
        return _find_in_table(table, choice._replace(header=None))
    if format_ == "json":
        data = parse_json(read_text(path), path)
        if _is_nested(data):
            return _find_nested(data, format_path(path), choice)
        return _find_in_table(json_table(data, path), choice)
    return _find_in_table(read_file(path), choice)


def _find(source: Any, choice: _Choice) -> Found:
    if hasattr(source, "dtype") and hasattr(source, "shape"):
        choice.only("an array")
        return Found(source, "source", choice.kind)
    if isinstance(source, Mapping | list | tuple) and _is_nested(source):
        return _find_nested(source, "source", choice)
    if isinstance(source, Mapping):
        return _find_in_table(table_from_dict(source, "the dict"), choice)
    if isinstance(source, list | tuple):
        return _find_in_table(table_from_records(source, "the list of records"), choice)
    return _find_in_table(table_from_frame(source, "the DataFrame"), choice)


def _find_nested(data: Any, source: str, choice: _Choice) -> Found:
    """Arrays of more than one dimension: alone, or by name."""
    if not isinstance(data, Mapping):
        choice.only("an array")
        return Found(nested(data, source), source, choice.kind)
    choice.only("a dict of arrays", "key", "columns")
    arrays = {str(name): value for name, value in data.items()}

    def get(name: str) -> Any:
        value = arrays[name]
        return value if hasattr(value, "dtype") else nested(value, f"{brief(name)} in {source}")

    kind, columns = choice.kind, choice.columns
    return from_named(list(arrays), get, source, key=choice.key, kind=kind, columns=columns)


def _find_in_table(table: Table, choice: _Choice) -> Found:
    if choice.axes is None:
        choice.only("a table with a row for each run and example", "key", "columns", "learner")
        return read_long(table, choice.key, choice.kind, choice.columns, choice.learner)
    choice.only("a wide table", "columns", "learner")
    return read_wide(table, choice.axes, choice.kind, choice.columns, choice.learner)


def _is_path(source: Any) -> bool:
    return isinstance(source, str | PathLike)


def _is_nested(data: Any) -> bool:
    """Whether arrays of two dimensions or more are meant, not columns or records."""
    if isinstance(data, Mapping):
        return any(map(_is_nested, data.values()))
    if isinstance(data, list | tuple):
        return bool(data) and isinstance(data[0], list | tuple | np.ndarray)
    return getattr(data, "ndim", 1) > 1


def _by_position(values: Any, part: str) -> NDArray[Any] | None:
    if values is None:
        return None
    return read_vector(values, part) if _is_path(values) else np.asarray(values)


# Long tables into predictions: one row for each run and example.


def read_long(
    table: Table,
    key: str | None = None,
    kind: str | None = None,
    columns: PartMap | None = None,
    learner: str | None = None,
) -> Found:
    """Arrange the rows of a long table as runs × examples, or × repeats."""
    names = list(table.columns)
    parts = find_parts(names, table.source, noun="column", key=key, kind=kind, columns=columns)
    for part in ("run", "example"):
        if part not in parts.others:
            raise InputError(
                f"No column of {table.source} is known as the {part}: it has "
                f"{list_names(table.columns)}. Say which with columns={{{part!r}: …}}. {IF_WIDE}"
            )
    used = [parts.value, *parts.others.values()]
    table = unfold(table, used)
    cells = {name: compact(table.columns[name]) for name in used}
    if cells[run := parts.others["run"]].dtype.kind == "U":
        cells[run] = np.array(same_names(cells[run].tolist(), table.where(run)))
    table = replace(table, columns=cells)
    table = _without_empty(table, parts)
    table = keep_learner(table, parts.others.get("learner"), learner)
    _check_filled(table, parts)
    return _arranged(table, parts)


def _arranged(table: Table, parts: Parts) -> Found:
    runs, run = _coded(table, parts.others["run"])
    examples, example = _coded(table, parts.others["example"])
    ordered = _same_order(run, example)
    if counts_up(np.sort(examples)) and not counts_up(examples):
        order = np.argsort(examples)
        examples, example, ordered = examples[order], np.argsort(order)[example], True
    repeats, repeat = np.zeros(1), np.zeros(len(table), dtype=np.int64)
    if "repeat" in parts.others:
        repeats, repeat = _coded(table, parts.others["repeat"])
    names = {"run": runs, "example": examples, "repeat": repeats}
    place = _places(table, names, (run, example, repeat))
    values, labels = _values(table, parts)
    whole = np.empty(len(place), dtype=values.dtype)
    whole[place] = values
    several = len(repeats) > 1
    shape = (len(runs), len(examples), len(repeats)) if several else (len(runs), len(examples))
    groups = compact(table.columns[parts.others["group"]]) if "group" in parts.others else None
    return Found(
        whole.reshape(shape),
        table.source,
        parts.kind,
        axes=("runs", "examples", "repeats")[: len(shape)],
        labels=None if labels is None else _of_examples(table, "label", labels, example, examples),
        groups=None if groups is None else _of_examples(table, "group", groups, example, examples),
        run_ids=runs,
        example_ids=examples,
        predicted=parts.predicted,
        ordered=ordered,
        notes=(_taken(parts), *table.notes),
    )


def keep_learner(table: Table, name: str | None, learner: str | None) -> Table:
    """Keep the rows of one learner; where there are several the user must say which."""
    if name is None:
        if learner is not None:
            raise InputError(
                f"learner={brief(learner)}: {table.source} has no column of learners. Say which "
                f"with columns={{'learner': …}}; it has {list_names(table.columns)}."
            )
        return table
    words = np.array(names_in(table, name), dtype=np.str_)
    there = list(dict.fromkeys(words.tolist()))
    if learner is None and len(there) > 1:
        raise InputError(
            f"{table.where(name)} names {len(there)} learners: {list_names(there)}. Choose one with "
            f"learner={brief(there[0])}, or pass columns={{'learner': None}} if they are one."
        )
    chosen = there[0] if learner is None else str(learner)
    if chosen not in there:
        raise InputError(
            f"learner={brief(learner)} is not in {table.where(name)}.{suggest(chosen, there)} "
            f"There are {list_names(there)}."
        )
    keep = words == chosen
    if keep.all():
        return table
    note = f"{int(keep.sum()):,} of {len(table):,} rows taken: learner is {brief(chosen)}"
    return replace(table.take(np.flatnonzero(keep)), notes=(*table.notes, note))


def drop_rows(table: Table, empty: NDArray[np.bool_], what: str) -> Table:
    """Leave rows out, and have it noted."""
    if not empty.any():
        return table
    if empty.all():
        raise InputError(f"All rows of {table.source} are {what}: there is nothing to read.")
    note = f"{int(empty.sum())} row(s) left out as {what} ({first_row(table.rows, empty)})"
    return replace(table.take(np.flatnonzero(~empty)), notes=(*table.notes, note))


def _without_empty(table: Table, parts: Parts) -> Table:
    names = [parts.value, parts.others["run"], parts.others["example"]]
    empty = np.logical_and.reduce([no_value(table.columns[name]) for name in names])
    return drop_rows(table, empty, "empty")


def _check_filled(table: Table, parts: Parts) -> None:
    said = {part: name for part, name in parts.others.items() if part != "learner"}
    for part, name in {**said, "value": parts.value}.items():
        bad = no_value(table.columns[name])
        if not bad.any():
            continue
        remedy = "Fill it in, or leave the row out on purpose."
        if part == "value":
            rows = np.flatnonzero(bad)
            of = dict.fromkeys(texts(take_cells(table.columns[parts.others["run"]], rows)))
            remedy = (
                f"It is in run(s) {list_names(of, 5)}: one that diverged? Count it as wrong on every "
                "example, or leave the run out on purpose and say so."
            )
        raise InputError(f"{table.where(name)} is empty or NaN in {first_row(table.rows, bad)}. {remedy}")


def _coded(table: Table, name: str) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Names in order of appearance, and for each row which it is."""
    found, first, codes = np.unique(compact(table.columns[name]), return_index=True, return_inverse=True)
    order = np.argsort(first)
    return found[order], np.argsort(order)[codes.ravel()].astype(np.int64)


def _same_order(run: NDArray[np.int64], example: NDArray[np.int64]) -> bool:
    """Whether all runs list the examples in one order."""
    rows = np.argsort(run, kind="stable")
    steps = np.diff(example[rows])
    return bool((steps[np.diff(run[rows]) == 0] >= 0).all())


def _places(table: Table, names: Mapping[str, NDArray[Any]], codes: tuple[NDArray[np.int64], ...]) -> NDArray[np.int64]:
    """Where each row goes; each place must be taken once."""
    sizes = [len(there) for there in names.values()]
    if np.prod(sizes, dtype=float) > 2.0**62:
        raise InputError(
            f"{table.source} has {sizes[0]:,} runs and {sizes[1]:,} examples in {len(table):,} "
            "rows: are these the right columns? Say which with columns=."
        )
    place = (codes[0] * sizes[1] + codes[1]) * sizes[2] + codes[2]
    taken, counts = np.unique(place, return_counts=True)
    if (counts > 1).any():
        raise _twice(table, names, place, int(taken[np.argmax(counts > 1)]), counts)
    total = sizes[0] * sizes[1] * sizes[2]
    if len(taken) < total:
        raise _missing(table, names, taken, total)
    return place


def _called(names: Mapping[str, NDArray[Any]], place: int) -> str:
    runs, examples, repeats = names.values()
    rest, repeat = divmod(place, len(repeats))
    run, example = divmod(rest, len(examples))
    said = f"run {brief(runs[run].item())}, example {brief(examples[example].item())}"
    return said + (f", repeat {brief(repeats[repeat].item())}" if len(repeats) > 1 else "")


def _twice(table: Table, names: Mapping[str, NDArray[Any]], place: Any, first: int, counts: Any) -> InputError:
    rows = table.rows[np.flatnonzero(place == first)[:2]]
    return InputError(
        f"{table.source} has {int((counts > 1).sum())} cell(s) more than once: "
        f"{_called(names, first)} is in rows {rows[0]} and {rows[1]}. Remove the copies; samples of"
        " one run need a column that numbers them, columns={'repeat': …}; runs of several trainings"
        " one that names them, columns={'learner': …}."
    )


def _missing(table: Table, names: Mapping[str, NDArray[Any]], taken: NDArray[np.int64], total: int) -> InputError:
    gaps: list[int] = []
    for here, after in zip((-1, *taken.tolist()), (*taken.tolist(), total), strict=True):
        gaps += range(here + 1, min(after, here + 6))
        if len(gaps) >= 5:
            break
    said = "; ".join(_called(names, gap) for gap in gaps[:5])
    count = total - len(taken)
    return InputError(
        f"{table.source} lacks {count:,} of {total:,} cells: {said}{' …' if count > 5 else ''}. "
        "Every run needs every example: add the rows, or leave out the runs or examples that are "
        "not whole, on purpose."
    )


def _values(table: Table, parts: Parts) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Read values and labels; where one of them is text, both are."""
    cells = table.columns[parts.value]
    values = numbers(table, parts.value) if parts.kind in ("losses", "scores") else compact(cells)
    if parts.kind in ("errors", "correct"):
        values = flags(values)
        if values.dtype.kind == "U":
            raise InputError(
                f"{table.where(parts.value)} should hold {parts.kind} and holds text: use 0 and 1, "
                "or columns={'prediction': …} if it names predicted classes."
            )
    if "label" not in parts.others:
        return values, None
    truth = table.columns[parts.others["label"]]
    labels = compact(truth)
    if parts.kind in (None, "labels") and (values.dtype.kind == "U") != (labels.dtype.kind == "U"):
        values, labels = np.array(texts(cells)), np.array(texts(truth))
    return values, labels


def _of_examples(
    table: Table, part: str, values: NDArray[Any], example: NDArray[np.int64], examples: NDArray[Any]
) -> NDArray[Any]:
    """One value for each example, which all of its rows must agree on."""
    held = np.empty(len(examples), dtype=values.dtype)
    held[example] = values
    bad = held[example] != values
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise InputError(
            f"The {part} of example {brief(examples[example[row]].item())} in {table.source} is not"
            f" the same in all rows: {brief(values[row].item())} in row {table.rows[row]}, "
            f"{brief(held[example[row]].item())} in another. Are these the same examples?"
        )
    return held


def _taken(parts: Parts) -> str:
    what = parts.kind if parts.kind and parts.kind not in KIND_OF else "values"
    said = [f"{what} from column {brief(parts.value)}"]
    said += [f"{part} from {brief(name)}" for part, name in parts.others.items()]
    said += [f"not read: {list_names(parts.unread)}"] if parts.unread else []
    return "; ".join(said)


# Wide tables into predictions: a row for each run, or a column for each run.

_ROWS: dict[tuple[str, ...], str] = {("runs", "examples"): "run", ("examples", "runs"): "example"}
# What a row can bring along beside the cells, where rows are runs and where they are examples.
_ALONG = {"run": ("run", "learner"), "example": ("example", "label", "group")}


def read_wide(
    table: Table,
    axes: Sequence[str],
    kind: str | None = None,
    columns: PartMap | None = None,
    learner: str | None = None,
) -> Found:
    """Read a table whose rows are runs or whose columns are, as ``axes`` says."""
    row = _row_is(axes, table.source)
    names = list(table.columns)
    others = find_others(names, table.source, check_map(columns, names, table.source, "column"), "column")
    for part in others:
        if part not in _ALONG[row]:
            raise InputError(
                f"{table.where(others[part])} is known as the {part}, which a table with a row for "
                f"each {row} cannot carry. If it is one of the values, pass columns={{{part!r}: "
                "None}; if the table has a row for each run and example, leave axes= out."
            )
    table = keep_learner(table, others.get("learner"), learner)
    values = [name for name in names if name not in others.values()]
    cells = _matrix(table, values, kind)
    headings = np.array(values, dtype=np.str_) if not _counted(values) else None
    held = {part: compact(table.columns[name]) for part, name in others.items()}
    said = [f"{part} from {brief(name)}" for part, name in others.items()]
    return Found(
        cells if row == "run" else cells.T,
        table.source,
        kind,
        axes=("runs", "examples"),
        arranged=True,
        labels=held.get("label"),
        groups=held.get("group"),
        run_ids=held.get("run") if row == "run" else headings,
        example_ids=held.get("example") if row == "example" else headings,
        notes=(f"each row is one {row}", *said, *table.notes),
    )


def wide_csv(path: Path, axes: Sequence[str], header: bool | None) -> Table:
    """Read separated text whose first line may or may not hold names."""
    row = _row_is(axes, format_path(path))
    rows, _ = split_rows(read_text(path), path)
    first = [name.strip() for name in rows[0]]
    if header is None:
        header = _has_names(first, path)
    if not header:
        names = [f"{_UNNAMED}{i}" for i in range(len(first))]
    else:
        names = [row if i == 0 and name in ("", "Unnamed: 0") else name for i, name in enumerate(first)]
        check_names(names, format_path(path))
    body = rows[1:] if header else rows
    if not body:
        raise InputError(f"{format_path(path)} has a header ({list_names(first, 5)}) but no rows.")
    cells: list[Column] = [list(column) for column in zip(*body, strict=True)]
    return make_table(format_path(path), dict(zip(names, cells, strict=True)))


_UNNAMED = "column "


def _counted(names: Sequence[str]) -> bool:
    return all(name == f"{_UNNAMED}{i}" for i, name in enumerate(names))


def _row_is(axes: Sequence[str], source: str) -> str:
    if tuple(axes) not in _ROWS:
        raise InputError(
            f"axes={tuple(axes)!r}: {source} is a table, which has two axes: pass ('runs', "
            "'examples') where rows are runs or ('examples', 'runs') where columns are."
        )
    return _ROWS[tuple(axes)]


def _has_names(first: Sequence[str], path: Path) -> bool:
    """Whether a first line holds names; numbers that could be either are asked about."""
    values = [parse(cell) for cell in first]
    if any(value is None or is_missing(cell) for value, cell in zip(values, first, strict=True)):
        return True
    whole = all(value == int(value) for value in values if value is not None and np.isfinite(value))
    if whole and len(set(values)) == len(values) > 1:
        raise InputError(
            f"The first line of {format_path(path)} is {list_names(first, 4)}: numbers that could be names of"
            " columns or values. Pass header=True or header=False."
        )
    return False


def _matrix(table: Table, names: Sequence[str], kind: str | None) -> NDArray[Any]:
    if not names:
        raise InputError(f"{table.source} has no columns of values: it has {list_names(table.columns)}.")
    columns = []
    for name in names:
        bad = no_value(table.columns[name])
        if bad.any():
            raise InputError(
                f"{table.where(name)} is empty or NaN in {first_row(table.rows, bad)}: every run "
                "needs a value for every example."
            )
        columns.append(numbers(table, name) if kind in ("losses", "scores") else compact(table.columns[name]))
    words = [column.dtype.kind == "U" for column in columns]
    if any(words) and not all(words):
        name = names[words.index(True)]
        raise InputError(
            f"{table.where(name)} holds text and others hold numbers. If it names runs or examples "
            f"pass columns={{'run': {brief(name)}}} or columns={{'example': {brief(name)}}}; if it "
            "is something else, leave it out."
        )
    cells = np.column_stack(columns)
    return flags(cells) if kind in ("errors", "correct") else cells


# Load one score per run, where neither training-set sizes nor single examples are known.

# Rows so called at the end of a sheet are no runs.
_SUMMARY = re.compile(
    "min(imum)?|max(imum)?|mean|average|avg|median|std|sd|stdev|std_dev|std_deviation|standard_deviation|var|"
    "variance|total|sum|count|stderr|std_err|standard_error"
)


def load_scores(
    source: Any,
    *,
    value: str | None = None,
    by: str | Sequence[str] | None = None,
    unit: str | None = None,
    higher_is_better: bool | None = None,
    allow_large: bool = False,
) -> dict[str, FloatArray]:
    """Read one error, accuracy, loss or score per run, by training.

    Parameters
    ----------
    source : path, DataFrame, dict or list
        A table as :func:`load_measurements` reads it, with one row for each run.
    value : str, optional
        The column with the scores; needed where several could be it.
    by : str or sequence of str, optional
        The column that says which training a run is of; several are joined with ``" / "``.
    unit : {"fraction", "percent", "loss", "score"}, optional
        What the values mean, and what is returned. By default fractions; of a column whose name
        says percent, such as ``acc (%)``, fractions are made.
    higher_is_better : bool, optional
        By default the name of the column says so; needed for fractions and percentages where it
        does not. Accuracies are turned into errors.
    allow_large : bool
        Read a compressed file even if it unpacks to more than 256 MiB of text or 1 GiB of arrays.

    Returns
    -------
    dict of str to ndarray
        Errors, losses or scores of the runs of each training, in the order of the rows. Without
        ``by`` there is one, called by the name of the file.

    Warns
    -----
    CurvewiseWarning
        If rows are left out: those without a value, summaries, such as one called "Mean", and runs
        of which a column status or state says that they failed or still go on.

    Examples
    --------
    >>> rows = {"model": ["a", "a", "b"], "val_loss": [3.2, 3.3, 3.1]}
    >>> load_scores(rows, by="model", unit="loss")
    {'a': array([3.2, 3.3]), 'b': array([3.1])}
    """
    with large_files(allow_large):
        table = read_source(source, single=True)
    name = _value_column(table, value)
    if higher_is_better is None and unit not in ("loss", "score") and direction(name) is None:
        raise InputError(
            f"The name of {table.where(name)} does not say whether higher is better: pass "
            "higher_is_better=True for accuracies or higher_is_better=False for errors."
        )
    members = [by] if isinstance(by, str) else list(by or ())
    for column in members:
        _check_there(table, "by", column)
    table = _runs_only(unfold(table, [name, *members]), name, members)
    _check_copies(table)
    chosen = decide_unit(unit, higher_is_better, [name], None)
    errors = chosen.errors(numbers(table, name), table.where(name))
    if unit is None and chosen.name == "percent":
        errors = errors / 100
    parts = [names_in(table, column) for column in members]
    names = [" / ".join(words) for words in zip(*parts, strict=True)] or [table.label] * len(table)
    which = np.array(names, dtype=np.str_)
    return {key: errors[which == key] for key in dict.fromkeys(names)}


def _value_column(table: Table, value: str | None) -> str:
    if value is not None:
        _check_there(table, "value", value)
        return value
    found = [k for k in table.columns if plays(k, "value") or direction(k) is not None]
    found = found or (list(table.columns) if len(table.columns) == 1 else [])
    if len(found) == 1:
        return found[0]
    several = f"{len(found)} columns" if found else "No column"
    raise InputError(
        f"{several} of {table.source} could be the value: say which with value=…. It has "
        f"{list_names(found or table.columns)}."
    )


def _check_there(table: Table, argument: str, name: str) -> None:
    if name not in table.columns:
        raise InputError(
            f"{argument}={brief(name)}: {table.source} has no such column."
            f"{suggest(name, table.columns)} It has {list_names(table.columns)}."
        )


def _runs_only(table: Table, value: str, members: Sequence[str]) -> Table:
    """Leave out rows without a value, unfinished runs and summaries, and warn of it."""
    blank = np.array([_is_blank(cell) for cell in table.columns[value]])
    summary = np.zeros(len(table), dtype=np.bool_)
    going = np.zeros(len(table), dtype=np.bool_)
    for name in (k for k in table.columns if k != value and k not in members):
        cells = table.columns[name]
        if not (isinstance(cells, np.ndarray) and cells.dtype.kind in "biuf"):
            summary |= np.array([_is_summary(c) for c in cells])
            if is_status(name, cells):
                going |= np.array([status_word(c) not in FINISHED for c in cells])
    _warn(table, blank, "hold no value")
    _warn(table, summary & ~blank, "are summaries by their names, not runs,")
    _warn(table, going & ~(blank | summary), "are of runs that are not finished")
    out = blank | summary | going
    if out.all():
        raise InputError(f"No row of {table.source} has a value in column {brief(value)}.")
    return table.take(np.flatnonzero(~out))


def _check_copies(table: Table) -> None:
    """Refuse a run that is there twice: rows alike in every column, one of which tells runs."""
    columns = {k: list(map(str, cells)) for k, cells in table.columns.items()}
    ids = [k for k, cells in columns.items() if tells_runs(k) and len(set(cells)) > 1]
    seen: dict[tuple[str, ...], int] = {}
    for row, cells in enumerate(zip(*columns.values(), strict=True) if ids else ()):
        first = seen.setdefault(cells, row)
        if first != row:
            which = ", ".join(f"{k} {brief(columns[k][row])}" for k in ids)
            raise InputError(
                f"Rows {table.rows[first]} and {table.rows[row]} of {table.source} are the same run"
                f" ({which}) with the same values: remove one of them."
            )


def _is_blank(cell: Any) -> bool:
    """Nothing measured; the text "nan" is a run that failed, and is for the unit to refuse."""
    return is_missing(cell) and not (isinstance(cell, str) and cell.strip().lower() == "nan")


def _is_summary(cell: Any) -> bool:
    return isinstance(cell, str) and _SUMMARY.fullmatch(normal(cell)) is not None


def _warn(table: Table, rows: NDArray[np.bool_], why: str) -> None:
    if rows.any():
        which = table.rows[rows]
        said = ", ".join(map(str, which[:10])) + (" …" if len(which) > 10 else "")
        warnings.warn(
            f"{len(which)} row(s) of {table.source} {why} and are left out: {said}", CurvewiseWarning, stacklevel=4
        )
