"""Read predictions of many runs: from arrays, tables, folders and stores."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import CurvewiseWarning, InputError, arg, brief, either, format_path, list_names
from curvewise.reading.arrays import (
    ARRAY_FILES,
    PREDICTION_ROLES,
    VECTOR_FILES,
    RunFiles,
    compact,
    counts_up,
    flags,
    map_npy,
    named_arrays,
    nested,
    no_value,
    read_named,
    read_vector,
    role_of,
)
from curvewise.reading.roles import (
    FINISHED,
    HIGHER_IS_BETTER,
    ColumnMap,
    Role,
    ask,
    check_column,
    find_roles,
    has_usual_name,
    is_status,
    normal,
    select_one,
    status_word,
    synonyms,
    words_of,
)
from curvewise.reading.table import (
    Column,
    Table,
    check_names,
    expand_files,
    first_row,
    is_missing,
    json_table,
    kind_of,
    large_files,
    make_table,
    names_in,
    natural,
    numbers,
    parse,
    parse_json,
    read_file,
    read_table,
    read_text,
    split_rows,
    take_cells,
    texts,
    unfold,
)
from curvewise.store.tables import read_store, store_folder
from curvewise.types.predictions import KINDS, Predictions, RawPredictions, agreed, as_predictions
from curvewise.types.results import same_names

# What people save networks and arrays in that may hold code.
_PICKLES = (".pkl", ".pickle", ".pt", ".pth", ".joblib", ".bin", ".ckpt")
KIND_OF: dict[str, str | None] = {
    "prediction": None,
    "error": "errors",
    "correct": "correct",
    "loss": "losses",
    "score": "scores",
    "probability": "probabilities",
}
"""ColumnRoles that can be the values, and the kind that each is; predictions may be of two kinds."""
# ColumnRoles beside the values that are looked for among arrays and among columns. The values themselves are not: two
# columns that could be the predictions may have different roles.
_BESIDE_VALUES = {
    "array": ("label", "group", "run", "example", "packed"),
    "column": ("label", "group", "run", "example", "repeat", "learner"),
}
_IF_WIDE = (
    f"If the table is wide, pass {arg('axes', ('examples', 'runs'))} where it has a column for each run, or "
    f"{arg('axes', ('runs', 'examples'))} where it has a row for each run."
)


def load_predictions(
    source: Any,
    labels: ArrayLike | PathLike[str] | None = None,
    *,
    kind: str | None = None,
    axes: Sequence[str] | None = None,
    groups: ArrayLike | PathLike[str] | None = None,
    key: str | None = None,
    columns: ColumnMap | None = None,
    learner: str | None = None,
    where: Mapping[str, Any] | None = None,
    header: bool | None = None,
    allow_large: bool = False,
) -> Predictions:
    """Read predicted classes, 0/1 errors or hits, losses, scores or probabilities of many runs.

    ``notes`` of the result record how names were interpreted; where two readings are possible it is an error that says
    how to choose. Pickles are never read.

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
          example; or with one column for each run, if they are called seed0, seed1, … or run_0,
          run_1, …; with ``axes`` also one row, or one column of any name, for each run;
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
        Which array or column has a role: ``{"run": "job", "prediction": "answer"}``. Roles are
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
    ``np.packbits(errors, axis=1)``, with the number of examples in ``packed``. All names are in
    ``curvewise.reading.arrays.PREDICTION_ROLES``.

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
        raise InputError(f"is not known: use one of {', '.join(map(repr, KINDS))}.", argument="kind", value=kind)
    with large_files(allow_large):
        truth, members = read_labels(labels), read_labels(groups, "group")
        if isinstance(source, Predictions):
            return as_predictions(source, truth, kind=kind, axes=axes, groups=members)
        options = PredictionOptions(axes, key, kind, columns, learner, where, header)
        if isinstance(source, str | PathLike):
            paths = expand_files(source)
            if len(paths) == 1:
                raw = _read_path(paths[0], options)
            else:  # of several files each is a run
                options.only("files of one run each", "key", "columns")
                raw = _read_folder(paths[0].resolve().parent, options, [path.resolve() for path in paths])
        elif hasattr(source, "dtype") and hasattr(source, "shape"):
            options.only("an array")
            raw = RawPredictions(source, "source", kind)
        elif isinstance(source, Mapping | list | tuple) and _is_nested(source):
            raw = _read_nested(source, "source", options)
        else:
            raw = _in_table(read_table(source), options)
    return raw.checked(labels=truth, kind=kind, axes=axes, groups=members)


def read_labels(given: ArrayLike | PathLike[str] | None, part: str = "label") -> NDArray[Any] | None:
    """Return labels or groups as an array: given as one, or by the name of a file; None for none."""
    if given is None:
        return None
    return read_vector(given, part) if isinstance(given, str | PathLike) else np.asarray(given)


@dataclass(frozen=True)
class PredictionOptions:
    """Options of :func:`load_predictions`."""

    axes: Sequence[str] | None = None
    key: str | None = None
    kind: str | None = None
    columns: ColumnMap | None = None
    learner: str | None = None
    where: Mapping[str, Any] | None = None
    header: bool | None = None

    def only(self, form: str, *allowed: str) -> None:
        """Refuse an option that means nothing for this form."""
        for name in ("key", "columns", "learner", "where", "header"):
            value = getattr(self, name)
            if value is not None and name not in allowed:
                raise InputError(f"says nothing about {form}: leave it out.", argument=name, value=value)


def _read_path(path: Path, options: PredictionOptions) -> RawPredictions:
    if path.is_dir() and (folder := store_folder(path)):
        options.only("a store of runs", "learner", "where", "key")
        return read_store(folder, options.learner, options.where, options.key)
    if path.is_dir():
        options.only("a folder of runs", "key", "columns")
        return _read_folder(path.resolve(), options)  # "." and ".." have no names of their own
    if path.suffix.lower() in ARRAY_FILES:
        options.only("a file of arrays", "key", "columns")
        return _read_arrays(path, options)
    if path.suffix.lower() in _PICKLES and path.exists():
        problem = "is a pickle or may be one, which can run code and is never read: save arrays as"
        raise InputError(f"{problem} {', '.join(ARRAY_FILES)}.", argument="source", value=str(path))
    format_, _ = kind_of(path)
    if format_ == "csv" and options.axes is not None:
        return _in_table(_wide_csv(path, options.axes, options.header), replace(options, header=None))
    if format_ == "json":
        data = parse_json(read_text(path), path)
        if _is_nested(data):
            return _read_nested(data, format_path(path), options)
        return _in_table(json_table(data, path), options)
    return _in_table(read_file(path), options)


def _is_nested(data: Any) -> bool:
    """Return whether arrays of two dimensions or more are meant, not columns or records."""
    if isinstance(data, Mapping):
        return any(map(_is_nested, data.values()))
    if isinstance(data, list | tuple):
        return bool(data) and isinstance(data[0], list | tuple | np.ndarray)
    return getattr(data, "ndim", 1) > 1


def _read_nested(data: Any, source: str, options: PredictionOptions) -> RawPredictions:
    """Read arrays of more than one dimension: alone, or by name."""
    if not isinstance(data, Mapping):
        options.only("an array")
        return RawPredictions(nested(data, source), source, options.kind)
    options.only("a dict of arrays", "key", "columns")
    arrays = {str(name): value for name, value in data.items()}

    def get(name: str) -> Any:
        value = arrays[name]
        return value if hasattr(value, "dtype") else nested(value, f"{brief(name)} in {source}")

    return _from_named(list(arrays), get, source, options)


def _in_table(table: Table, options: PredictionOptions) -> RawPredictions:
    if options.axes is None and options.key is None and not options.columns and _has_run_columns(table.columns):
        return _read_wide(table, replace(options, axes=("examples", "runs")))
    if options.axes is None:
        options.only("a table with a row for each run and example", "key", "columns", "learner")
        return _read_long(table, options)
    options.only("a wide table", "columns", "learner")
    return _read_wide(table, options)


_NUMBERED_RUN = re.compile(r"(run|seed|trial|replicate)s?_?\d+")


def _has_run_columns(names: Iterable[str]) -> bool:
    """Return whether columns are numbered runs, such as seed0, seed1, …, beside labels and the like of each row."""
    numbered = [name for name in names if _NUMBERED_RUN.fullmatch(normal(name))]
    others = [role_of(name) for name in names if name not in numbered]
    return len(numbered) > 1 and all(role in _ALONG["example"] for role in others)


# Named arrays: .npz, .safetensors, dicts.


def _read_arrays(path: Path, options: PredictionOptions) -> RawPredictions:
    """Read predictions, and what lies beside them, from a file of arrays."""
    if path.suffix.lower() == ".npy":
        if options.key is not None:
            problem = f"{format_path(path)} holds one array without a name."
            raise InputError(problem, argument="key", value=options.key)
        role = role_of(path.stem)
        kind = options.kind or KIND_OF.get(role or "")
        note = f"{kind} by the name of the file" if kind != options.kind else ""
        return RawPredictions(map_npy(path), format_path(path), kind, predicted=role == "prediction", notes=(note,))
    there, get = named_arrays(path)
    return _from_named(there, get, format_path(path), options)


def _from_named(
    there: Sequence[str], get: Callable[[str], Any], source: str, options: PredictionOptions
) -> RawPredictions:
    """Read the values among named arrays, and the labels, groups and ids with them."""
    if not there:
        raise InputError(f"{source} holds no arrays: there is nothing to read.")
    roles = _find_values(there, source, "array", options)
    values = get(roles.value)
    others = {role: get(name) for role, name in roles.others.items()}
    count = others.get("packed")
    if "example" in others and np.ndim(others["example"]) == 0:  # n_examples beside bits, not names of examples
        count = others.pop("example")
    fields = {"label": "labels", "group": "groups", "run": "run_ids", "example": "example_ids"}
    extra: Any = {fields[role]: np.asarray(v) for role, v in others.items() if role in fields}
    packed = None  # how many examples lie in bits; None where each has an entry of its own
    if count is not None:
        if np.ndim(count) != 0 or np.asarray(count).dtype.kind not in "iu":
            raise InputError(f"The number of packed examples in {source} must be one whole number.")
        packed = None if len(values.shape) > 1 and values.shape[1] == int(count) else int(count)
    return RawPredictions(
        values,
        source,
        roles.kind,
        packed=packed,
        predicted=roles.predicted,
        notes=("; ".join(roles.notes("values from" if roles.value else "", fields)),),
        **extra,
    )


@dataclass(frozen=True)
class PredictionRoles:
    """Name of the values, their kind where known, and names of other roles.

    ``predicted`` says that the name speaks of predictions, which mean nothing without labels.
    """

    value: str
    kind: str | None
    others: Mapping[str, str] = field(default_factory=dict)
    unread: tuple[str, ...] = ()
    predicted: bool = False

    def notes(self, values: str, roles: Iterable[str]) -> list[str]:
        """Say what was read from where, and what was not read."""
        notes = [f"{values} {brief(self.value)}"] if values else []
        notes += [f"{role} from {brief(self.others[role])}" for role in self.others if role in roles]
        return [*notes, f"not read: {list_names(self.unread)}"] if self.unread else notes


def _beside_values(
    columns: Mapping[str, Column], source: str, noun: str, chosen: ColumnMap | None
) -> tuple[dict[str, str], dict[str, str]]:
    """Find labels, groups, runs and so on; and the values, where the user names them."""
    roles = [role if role.name in _BESIDE_VALUES[noun] else Role(role.name) for role in PREDICTION_ROLES.values()]
    found = find_roles(columns, source, roles, chosen, noun=noun)
    columns_by_role = {role: found[role] for role in found.held if role in found}
    # A role that the user leaves out with None is not looked for among the values, either.
    return {r: c for r, c in columns_by_role.items() if r not in KIND_OF}, {
        r: c for r, c in columns_by_role.items() if r in KIND_OF
    }


def _find_values(there: Sequence[str], source: str, noun: str, options: PredictionOptions) -> PredictionRoles:
    """Find the values and whatever comes with them among named arrays or columns."""
    key, kind = options.key, options.kind
    no_cells: Column = []  # only names count here
    others, named = _beside_values(dict.fromkeys(there, no_cells), source, noun, options.columns)
    chosen = list(named.items())
    if key is not None:
        check_column(there, source, arg("key", key), key, noun)
        chosen = [(role_of(key) or "", key)]
    elif len(there) == 1 and not chosen:
        chosen, others = [(role_of(there[0]) or _called_right(there[0]), there[0])], {}
    elif not chosen:
        left = [(role_of(name) or "", name) for name in there if name not in others.values()]
        chosen = [(r, name) for r, name in left if r in KIND_OF and r not in (options.columns or {})]
        if kind is not None:  # those that can be of the kind that the user says
            exact = [(r, name) for r, name in chosen if KIND_OF[r] == kind]
            chosen = exact or [(r, name) for r, name in chosen if r == "prediction"]
    if len(chosen) != 1:
        raise _not_one(chosen, there, source, noun, kind)
    role, value = chosen[0]
    others = {r: name for r, name in others.items() if name != value}
    unread = tuple(name for name in there if name != value and name not in others.values())
    return PredictionRoles(value, kind or KIND_OF.get(role), others, unread, role in ("prediction", "label"))


def _called_right(name: str) -> str:
    """Return the role of values that are called accuracy or acc, which are 1 where a run is right; else none."""
    return "correct" if has_usual_name(name) and words_of(name) & HIGHER_IS_BETTER else ""


def _not_one(
    chosen: Sequence[tuple[str, str]], there: Sequence[str], source: str, noun: str, kind: str | None
) -> InputError:
    def way(name: str) -> str:
        role = role_of(name)
        return arg("key", name) if noun == "array" else ask(role if role in KIND_OF else "prediction", name)

    if chosen:
        found = [name for _, name in chosen]
        more = "" if kind else f", or say which {arg('kind')} is meant"
        return InputError(
            f"{len(found)} {noun}s of {source} could be the predictions: {list_names(found)}. Choose with "
            f"{way(found[0])}{more}."
        )
    wanted = f" of {arg('kind', kind)}" if kind else ""
    choices = [name for name in there if role_of(name) is None] or list(there)
    which = f"say which with {way(choices[0])}, or name it preds, errors, correct, losses or probabilities."
    problem = f"No {noun} of {source} is known as predictions{wanted}. It has {list_names(there)}"
    if noun == "column" and len(choices) > 1:  # most likely a wide table: that remedy first
        return InputError(f"{problem}. {_IF_WIDE} If one column holds the predictions, {which}")
    return InputError(f"{problem}: {which}{f' {_IF_WIDE}' if noun == 'column' else ''}")


# A folder with one file per run.

_FILES_BESIDE = {"label": "labels", "group": "groups", "example": "example_ids"}
_NOT_READ = (".md", ".rst", ".log", ".yaml", ".yml", ".toml", ".pdf", ".png", ".svg")


def _read_folder(folder: Path, options: PredictionOptions, files: Sequence[Path] | None = None) -> RawPredictions:
    """Look at every file, or at those chosen, once: runs must be alike, and only their shapes are kept."""
    paths, beside, notes = _sort_files(folder, files)
    extra = {_FILES_BESIDE[role]: read_vector(path, role) for role, path in beside.items()}
    if len(paths) == 1 and paths[0].suffix.lower() in ARRAY_FILES and role_of(_stem(paths[0])) in KIND_OF:
        raw = _read_arrays(paths[0], options)  # one matrix with labels beside it, not one run
    else:
        first = _one_run(paths[0], options)
        shape, dtype = tuple(first.values.shape), first.values.dtype
        for path in paths[1:]:
            run = _one_run(path, options)
            _check_like(first, run)
            dtype = np.result_type(dtype, run.values.dtype)
        raw = replace(
            first,
            values=RunFiles(paths, partial(_values_of, options=options), shape, dtype),
            source=format_path(folder),
            axes=("runs", "examples"),
            run_ids=np.array([_stem(path) for path in paths], dtype=np.str_),
            notes=(f"{len(paths):,} runs from the files in {format_path(folder)}", *first.notes),
        )
    fields: Any = {name: agreed(name, getattr(raw, name), v, raw.source) for name, v in extra.items()}
    return replace(raw, notes=(*raw.notes, *(f"{name} from a file beside" for name in extra), *notes), **fields)


def _sort_files(folder: Path, files: Sequence[Path] | None) -> tuple[list[Path], dict[str, Path], list[str]]:
    """Return the files that are runs, in natural order, those of labels and the like, and a note on the others."""
    runs: dict[str, Path] = {}
    beside: dict[str, Path] = {}
    unread = []
    for path in sorted(folder.iterdir() if files is None else files, key=lambda p: natural(p.name)):
        part = role_of(_stem(path))
        zipped = path.suffix.lower() == ".gz"
        ending = (path.with_suffix("") if zipped else path).suffix.lower()
        if path.name.startswith("."):
            continue
        if path.is_dir() or path.suffix.lower() in _NOT_READ:
            unread.append(path.name)
        elif ending not in VECTOR_FILES or (zipped and ending in ARRAY_FILES):
            raise InputError(
                f"{format_path(path)} in {format_path(folder)} has an ending that is not known, and might be a run: "
                f"known are {', '.join(VECTOR_FILES)}. Move it out of the folder, or save it as one of these."
            )
        elif part in _FILES_BESIDE:
            _once(beside, part, path)
        else:
            _once(runs, _stem(path), path)
    if not runs:
        inside = f": only {list_names(unread)}" if unread else ""
        raise InputError(f"{format_path(folder)} holds no files of runs{inside}.")
    notes = [f"not read: {list_names(unread)}"] if unread else []
    return list(runs.values()), beside, notes


def _once(found: dict[str, Path], name: str, path: Path) -> None:
    if name in found:
        both = f"{format_path(found[name])} and {format_path(path)}"
        raise InputError(f"{both} are both {brief(name)}: keep one of them.")
    found[name] = path


def _stem(path: Path) -> str:
    name = path.name[:-3] if path.name.lower().endswith(".gz") else path.name
    return name.rpartition(".")[0] or name


def _one_run(path: Path, options: PredictionOptions) -> RawPredictions:
    there, get = read_named(path)
    found = _from_named(there, get, format_path(path), options)
    name, shape, dtype = format_path(path), tuple(found.values.shape), found.values.dtype
    if len(shape) not in (1, 2) or 0 in shape:
        raise InputError(f"{name} has shape {shape}: a file is one run, a value for each example.")
    if dtype.kind not in "biufU":
        raise InputError(f"{name} has dtype {dtype}, which holds no predictions: save numbers or text.")
    return replace(found, values=flags(found.values)) if found.kind in ("errors", "correct") else found


def _values_of(path: Path, options: PredictionOptions) -> NDArray[Any]:
    # Not a closure: predictions are pickled when they are sent to another process.
    return np.asarray(_one_run(path, options).values)


def _check_like(first: RawPredictions, run: RawPredictions) -> None:
    def size(run: RawPredictions) -> str:
        return " × ".join(f"{k:,}" for k in run.values.shape) + " values"

    if run.values.shape != first.values.shape:
        raise InputError(
            f"{run.source} holds {size(run)}, {first.source} {size(first)}: every run needs the same examples. Was one "
            "cut short, or is it no run? Then move it out of the folder."
        )
    if (run.values.dtype.kind == "U") != (first.values.dtype.kind == "U"):
        raise InputError(f"One of {first.source} and {run.source} holds text, the other numbers.")
    if run.kind != first.kind:
        kinds = f"{run.source} holds {run.kind or 'predictions'}, {first.source} {first.kind or 'predictions'}"
        raise InputError(f"{kinds}: all runs must be of one kind.")
    for name in ("labels", "groups", "example_ids"):
        here, there = getattr(run, name), getattr(first, name)
        if (here is None) != (there is None) or (here is not None and not np.array_equal(here, there)):
            remedy = "all runs must be on the same examples, in the same order."
            raise InputError(f"{run.source} has other {name} than {first.source}: {remedy}")


# Long tables: one row for each run and example.


def _read_long(table: Table, options: PredictionOptions) -> RawPredictions:
    """Arrange the rows of a long table as runs × examples, or × repeats."""
    roles = _find_values(list(table.columns), table.source, "column", options)
    for role in ("run", "example"):
        if role not in roles.others:
            raise InputError(
                f"No column of {table.source} is known as the {role}: it has {list_names(table.columns)}. Say which "
                f"with {ask(role)}. {_IF_WIDE}"
            )
    used = [roles.value, *roles.others.values()]
    table = _finished(unfold(table, used), roles.unread)
    check_one_kind(table, used, SPLIT)
    cells = {name: compact(table.columns[name]) for name in used}
    if cells[run := roles.others["run"]].dtype.kind == "U":
        cells[run] = np.array(same_names(cells[run].tolist(), table.where(run)))
    table = replace(table, columns=cells)
    needed = [roles.value, roles.others["run"], roles.others["example"]]
    empty = np.logical_and.reduce([no_value(table.columns[name]) for name in needed])
    if empty.all():
        raise InputError(f"All rows of {table.source} are empty: there is nothing to read.")
    if empty.any():
        table = table.keep(~empty, f"{int(empty.sum())} row(s) left out as empty ({first_row(table.rows, empty)})")
    table = select_one(table, "learner", roles.others.get("learner"), options.learner, _IF_ONE)[0]
    _check_filled(table, roles)
    return _arranged(table, roles)


def _finished(table: Table, unread: Iterable[str]) -> Table:
    """Leave out the rows of runs that failed or still go on, and warn of it."""
    for name in unread:
        if is_status(name, table.columns[name]):
            out = np.array([status_word(cell) not in FINISHED for cell in table.columns[name]])
            if out.all():
                raise InputError(f"No row of {table.source} is of a finished run, by column {brief(name)}.")
            if out.any():
                text = f"{int(out.sum()):,} row(s) of {table.source} are of runs that are not finished by column "
                text += f"{brief(name)}, and are left out"
                warnings.warn(text, CurvewiseWarning, stacklevel=3)
                table = table.keep(~out, text)
    return table


METRIC = synonyms("metric measure metric_name eval_metric scorer scoring score_name")
SPLIT = synonyms("split subset partition phase")
SPLITS = synonyms("train training test testing val valid validation dev eval")


def check_one_kind(table: Table, taken: Sequence[str], kinds: Set[str], apart: str = "") -> str | None:
    """Refuse rows of several metrics or splits, which are no runs of one training, and return the metric.

    ``apart`` is the argument that tells trainings apart by such a column, if there is one.
    """
    metric = None
    for name in (k for k in table.columns if k not in taken and normal(k) in kinds):
        there = list(dict.fromkeys(names_in(table, name)))
        noun = "metric" if normal(name) in METRIC else "split"
        if len(there) > 1 and (noun == "metric" or set(map(normal, there)) & SPLITS):
            remedy = f", or tell trainings apart by it with {arg(apart, name)}" if apart else ""
            raise InputError(
                f"{table.where(name)} names {len(there)} {noun}s: {list_names(there)}. Keep the rows of one{remedy}."
            )
        metric = there[0] if noun == "metric" else metric
    return metric


_IF_ONE = f", or pass {ask('learner', None)} if they are one"


def _check_filled(table: Table, roles: PredictionRoles) -> None:
    for part, name in {**roles.others, "value": roles.value}.items():
        bad = no_value(table.columns[name])
        if part == "learner" or not bad.any():
            continue
        remedy = "Fill it in, or leave the row out on purpose."
        if part == "value":
            rows = np.flatnonzero(bad)
            of = dict.fromkeys(texts(take_cells(table.columns[roles.others["run"]], rows)))
            remedy = (
                f"It is in run(s) {list_names(of, 5)}: one that diverged? Count it as wrong on every example, or leave "
                "the run out on purpose and say so."
            )
        raise InputError(f"{table.where(name)} is empty or NaN in {first_row(table.rows, bad)}. {remedy}")


def _arranged(table: Table, roles: PredictionRoles) -> RawPredictions:
    runs, run = _coded(table, roles.others["run"])
    examples, example = _coded(table, roles.others["example"])
    # True if all runs list the examples in one order.
    rows = np.argsort(run, kind="stable")
    ordered = bool((np.diff(example[rows])[np.diff(run[rows]) == 0] >= 0).all())
    # Numbered examples go by their numbers, so that labels by position fit a shuffled evaluation as well.
    if counts_up(np.sort(examples)) and not counts_up(examples):
        order = np.argsort(examples)
        examples, example, ordered = examples[order], np.argsort(order)[example], True
    repeats, repeat = np.zeros(1), np.zeros(len(table), dtype=np.int64)
    if "repeat" in roles.others:
        repeats, repeat = _coded(table, roles.others["repeat"])
    names = {"run": runs, "example": examples, "repeat": repeats}
    place = _places(table, names, (run, example, repeat))
    values, labels = _values(table, roles)
    whole = np.empty(len(place), dtype=values.dtype)
    whole[place] = values
    several = len(repeats) > 1
    shape = (len(runs), len(examples), len(repeats)) if several else (len(runs), len(examples))
    groups = compact(table.columns[roles.others["group"]]) if "group" in roles.others else None
    what = roles.kind if roles.kind and roles.kind not in KIND_OF else "values"  # not "correct from column …"
    return RawPredictions(
        whole.reshape(shape),
        table.source,
        roles.kind,
        axes=("runs", "examples", "repeats")[: len(shape)],
        labels=None if labels is None else _of_examples(table, "label", labels, example, examples),
        groups=None if groups is None else _of_examples(table, "group", groups, example, examples),
        run_ids=runs,
        example_ids=examples,
        predicted=roles.predicted,
        ordered=ordered,
        notes=("; ".join(roles.notes(f"{what} from column", roles.others)), *table.notes),
    )


def _coded(table: Table, name: str) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return names in order of appearance, and for each row the position of its name."""
    found, first, codes = np.unique(compact(table.columns[name]), return_index=True, return_inverse=True)
    order = np.argsort(first)
    return found[order], np.argsort(order)[codes.ravel()].astype(np.int64)


def _places(table: Table, names: Mapping[str, NDArray[Any]], codes: tuple[NDArray[np.int64], ...]) -> NDArray[np.int64]:
    """Return where each row goes; each place must be taken once."""
    sizes = [len(there) for there in names.values()]
    if np.prod(sizes, dtype=float) > 2.0**62:
        raise InputError(
            f"{table.source} has {sizes[0]:,} runs and {sizes[1]:,} examples in {len(table):,} rows: are these the "
            f"right columns? Say which with {arg('columns')}."
        )
    # Row-major position in runs × examples × repeats.
    place = (codes[0] * sizes[1] + codes[1]) * sizes[2] + codes[2]
    taken, counts = np.unique(place, return_counts=True)
    if (counts > 1).any():
        first = int(taken[np.argmax(counts > 1)])
        rows = table.rows[np.flatnonzero(place == first)[:2]]
        raise InputError(
            f"{table.source} has {int((counts > 1).sum())} cell(s) more than once: {_called(names, first)} is in rows "
            f"{rows[0]} and {rows[1]}. Remove the copies; samples of one run need a column that numbers them, "
            f"{arg('columns', {'repeat': 'COLUMN'})}; runs of several trainings one that names them, "
            f"{arg('columns', {'learner': 'COLUMN'})}."
        )
    total = sizes[0] * sizes[1] * sizes[2]
    if (count := total - len(taken)) > 0:
        # Among so many places from the first on at least five are missing, if that many are.
        gaps = np.setdiff1d(np.arange(min(total, len(taken) + 5)), taken)[:5].tolist()
        shown = "; ".join(_called(names, gap) for gap in gaps) + (" …" if count > 5 else "")
        raise InputError(
            f"{table.source} lacks {count:,} of {total:,} cells: {shown}. Every run needs every example: add the rows, "
            "or leave out the runs or examples that are not whole, on purpose."
        )
    return place


def _called(names: Mapping[str, NDArray[Any]], place: int) -> str:
    runs, examples, repeats = names.values()
    rest, repeat = divmod(place, len(repeats))
    run, example = divmod(rest, len(examples))
    text = f"run {brief(runs[run].item())}, example {brief(examples[example].item())}"
    return text + (f", repeat {brief(repeats[repeat].item())}" if len(repeats) > 1 else "")


def _values(table: Table, roles: PredictionRoles) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Read values and labels; where one of them is text, both are."""
    cells = table.columns[roles.value]
    values = numbers(table, roles.value) if roles.kind in ("losses", "scores") else compact(cells)
    if roles.kind in ("errors", "correct"):
        values = flags(values)
        if values.dtype.kind == "U":
            raise InputError(
                f"{table.where(roles.value)} should hold {roles.kind} and holds text: use 0 and 1, or "
                f"{arg('columns', {'prediction': 'COLUMN'})} if it names predicted classes."
            )
    if "label" not in roles.others:
        return values, None
    truth = table.columns[roles.others["label"]]
    labels = compact(truth)
    if roles.kind in (None, "labels") and (values.dtype.kind == "U") != (labels.dtype.kind == "U"):
        values, labels = np.array(texts(cells)), np.array(texts(truth))
    return values, labels


def _of_examples(
    table: Table, part: str, values: NDArray[Any], example: NDArray[np.int64], examples: NDArray[Any]
) -> NDArray[Any]:
    """Return one value for each example, on which all of its rows must agree."""
    first = np.empty(len(examples), dtype=values.dtype)
    first[example] = values
    bad = first[example] != values
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise InputError(
            f"The {part} of example {brief(examples[example[row]].item())} in {table.source} is not the same in all "
            f"rows: {brief(values[row].item())} in row {table.rows[row]}, {brief(first[example[row]].item())} in "
            "another. Are these the same examples?"
        )
    return first


# Wide tables: a row for each run, or a column for each run.

_ROWS: dict[tuple[str, ...], str] = {("runs", "examples"): "run", ("examples", "runs"): "example"}
# What a row can bring along beside the cells, where rows are runs and where they are examples.
_ALONG = {"run": ("run", "learner"), "example": ("example", "label", "group")}
_UNNAMED = "column "


def _read_wide(table: Table, options: PredictionOptions) -> RawPredictions:
    """Read a table whose rows are runs or whose columns are, as ``axes`` says."""
    assert options.axes is not None
    kind, row = options.kind, _row_is(options.axes, table.source)
    others, _ = _beside_values(table.columns, table.source, "column", options.columns)
    for role in others:
        if role not in _ALONG[row]:
            raise InputError(
                f"{table.where(others[role])} is known as the {role}, which a table with a row for each {row} cannot "
                f"carry. If it is one of the values, pass {ask(role, None)}; if the table has a row for each run and "
                f"example, leave {arg('axes')} out."
            )
    table = select_one(table, "learner", others.get("learner"), options.learner, _IF_ONE)[0]
    values = [name for name in table.columns if name not in others.values()]
    if row == "example":
        kind = kind or _check_run_columns(table, values)
    cells = _matrix(table, values, kind)
    unnamed = all(name == f"{_UNNAMED}{i}" for i, name in enumerate(values))
    headings = None if unnamed else np.array(values, dtype=np.str_)
    columns = {role: compact(table.columns[name]) for role, name in others.items()}
    return RawPredictions(
        cells if row == "run" else cells.T,
        table.source,
        kind,
        axes=("runs", "examples"),
        arranged=True,
        labels=columns.get("label"),
        groups=columns.get("group"),
        run_ids=columns.get("run") if row == "run" else headings,
        example_ids=columns.get("example") if row == "example" else headings,
        notes=(
            f"each row is one {row}, each column one {'example' if row == 'run' else 'run'}",
            *(f"{r} from {brief(name)}" for r, name in others.items()),
            *table.notes,
        ),
    )


_NUMBERED = re.compile(r"(.*?)_?[0-9]+")


def _check_run_columns(table: Table, names: Sequence[str]) -> str | None:
    """Refuse a column that is called otherwise than the numbered runs beside it; return the kind by their name."""
    stems = [m[1] if (m := _NUMBERED.fullmatch(normal(name))) else None for name in names]
    common, count = Counter(stems).most_common(1)[0]
    odd = [name for name, stem in zip(names, stems, strict=True) if stem != common]
    if common and count > 1 and count > len(odd) > 0 and all(stem is None for stem in stems if stem != common):
        raise InputError(
            f"{table.source} has {count} columns called {common} and a number, and {list_names(odd, 3)}: is that a "
            "run? Give it such a name; if not, remove it."
        )
    role = None if odd or not common else role_of(common) or _called_right(common)
    return None if role == "prediction" else KIND_OF.get(role or "")


def _row_is(axes: Sequence[str], source: str) -> str:
    if tuple(axes) not in _ROWS:
        ways = "pass ('runs', 'examples') where rows are runs or ('examples', 'runs') where columns are."
        raise InputError(f"{source} is a table, which has two axes: {ways}", argument="axes", value=tuple(axes))
    return _ROWS[tuple(axes)]


def _wide_csv(path: Path, axes: Sequence[str], header: bool | None) -> Table:
    """Read separated text whose first line may or may not hold names."""
    row = _row_is(axes, format_path(path))
    rows, _ = split_rows(read_text(path), path)
    first = [name.strip() for name in rows[0]]
    if header is None:
        header = _has_names(first, path)
    names, body = [f"{_UNNAMED}{i}" for i in range(len(first))], rows
    if header:
        names = [row if i == 0 and name in ("", "Unnamed: 0") else name for i, name in enumerate(first)]
        check_names(names, format_path(path))
        body = rows[1:]
    if not body:
        raise InputError(f"{format_path(path)} has a header ({list_names(first, 5)}) but no rows.")
    cells: list[Column] = [list(column) for column in zip(*body, strict=True)]
    return make_table(format_path(path), dict(zip(names, cells, strict=True)))


def _has_names(first: Sequence[str], path: Path) -> bool:
    """Return whether a first line holds names; numbers that could be either are asked about."""
    values = [parse(cell) for cell in first]
    if any(value is None or is_missing(cell) for value, cell in zip(values, first, strict=True)):
        return True
    # 0, 1, 2, … may be numbered columns or the first run: both are common.
    whole = all(value == int(value) for value in values if value is not None and np.isfinite(value))
    if whole and len(set(values)) == len(values) > 1:
        remedy = either(
            "Pass header=True or header=False",
            "If they are names, remove that line; if they are values, add a line of names above it",
        )
        raise InputError(
            f"The first line of {format_path(path)} is {list_names(first, 4)}: numbers that could be names of columns "
            f"or values. {remedy}."
        )
    return False


def _matrix(table: Table, names: Sequence[str], kind: str | None) -> NDArray[Any]:
    if not names:
        raise InputError(f"{table.source} has no columns of values: it has {list_names(table.columns)}.")
    columns = []
    for name in names:
        if (bad := no_value(table.columns[name])).any():
            where = f"{table.where(name)} is empty or NaN in {first_row(table.rows, bad)}"
            raise InputError(f"{where}: every run needs a value for every example.")
        columns.append(numbers(table, name) if kind in ("losses", "scores") else compact(table.columns[name]))
    words = [column.dtype.kind == "U" for column in columns]
    if any(words) and not all(words):
        name = names[words.index(True)]
        raise InputError(
            f"{table.where(name)} holds text and others hold numbers. If it names runs or examples pass "
            f"{ask('run', name)} or {ask('example', name)}; if it is something else, leave it out."
        )
    cells = np.column_stack(columns)
    return flags(cells) if kind in ("errors", "correct") else cells
