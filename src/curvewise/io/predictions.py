"""Load what many runs predicted for each test example, from files, folders and frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import InputError
from curvewise.io._arrays import ARRAY_FILES, array_file, from_named
from curvewise.io._files import (
    as_path,
    json_table,
    kind_of,
    large_files,
    parse_json,
    read_file,
    read_text,
)
from curvewise.io._folders import read_folder
from curvewise.io._found import Found, finish
from curvewise.io._long import read_long
from curvewise.io._parts import PartMap
from curvewise.io._records import read_store
from curvewise.io._stored import is_store
from curvewise.io._table import (
    Table,
    brief,
    shown,
    table_from_dict,
    table_from_frame,
    table_from_records,
)
from curvewise.io._vectors import nested, read_vector
from curvewise.io._wide import read_wide, wide_csv
from curvewise.types import KINDS, Predictions, as_predictions

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
    dictionary is ``curvewise.io._parts``.

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
            return _find_nested(data, shown(path), choice)
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
