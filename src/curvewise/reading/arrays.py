"""Arrays in files: numpy's and safetensors', mapped or read a few rows at a time; vectors of text; stacks of files."""

from __future__ import annotations

import math
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError, MissingDependencyError, brief, format_path, list_names
from curvewise.reading.roles import LEARNER, SEED, Role, normal, synonyms
from curvewise.reading.table import (
    LARGEST_ARRAYS,
    Column,
    as_path,
    check_file,
    check_unpacked,
    ending,
    kind_of,
    label_array,
    parse,
    parse_json,
    read_text,
    split_rows,
)
from curvewise.types.results import distinct_names

Opener: TypeAlias = "Callable[[Path], IO[bytes]]"
ARRAY_FILES = (".npy", ".npz", ".safetensors")
_WHOLE = "it was cut short, or is something else with that ending"
_UNREADABLE = (
    *(ValueError, TypeError, EOFError, OSError, RuntimeError, MemoryError, OverflowError),
    *(NotImplementedError, zipfile.BadZipFile, zlib.error),
)
"""Raised by numpy and zipfile for damaged, encrypted and far too large arrays."""
_OBJECTS = (
    "holds Python objects, which only a pickle can, and pickles are never read: they can run code. Save numbers, or "
    "strings with dtype=str"
)


def map_npy(path: Path) -> np.memmap[Any, Any]:
    """Map a ``.npy`` file into memory, read-only: only what is looked at is loaded."""
    check_file(path)
    try:
        with open(path, "rb") as stream:
            _check_header(stream, path.stat().st_size, format_path(path))
        return np.lib.format.open_memmap(path, mode="r")
    except InputError:
        raise
    except _UNREADABLE as error:
        raise InputError(f"{format_path(path)} is not a whole .npy file ({error}): {_WHOLE}.") from error


def named_arrays(path: Path, kind: str = "") -> tuple[list[str], Callable[[str], Any]]:
    """Return the names of the arrays in a file and a function that reads one; ``kind`` overrules the ending."""
    if (kind or path.suffix.lower().removeprefix(".")) == "npz":
        return npz_arrays(path, open_file)
    with _safe_open(path) as file:
        return list(file.keys()), partial(_tensor, path)


def npz_arrays(path: Path, opened: Opener) -> tuple[list[str], Callable[[str], NDArray[Any]]]:
    """Return the names of the arrays in an ``.npz`` file that ``opened`` opens, and a function that reads one."""
    members = _members(path, opened)
    names = [name.removesuffix(".npy") for name in members]
    return names, lambda name: next(_unpack(path, opened, members, [name]))[1]


def read_npz(path: Path) -> dict[str, NDArray[Any]]:
    """Read all arrays of an ``.npz`` file by name."""
    members = _members(path, open_file)
    return dict(_unpack(path, open_file, members, [name.removesuffix(".npy") for name in members]))


def open_file(path: Path) -> IO[bytes]:
    """Open a file of bytes that must be there and not empty."""
    check_file(path)
    return open(path, "rb")


def _check_header(stream: IO[bytes], size: int, where: str) -> None:
    """Refuse an array that cannot be in a file of this size, before memory is allocated for it."""
    # A header of a few bytes may claim terabytes, which numpy would try to allocate.
    form = np.lib.format
    try:
        first = form.read_magic(stream) == (1, 0)
        read = form.read_array_header_1_0 if first else form.read_array_header_2_0
        shape, _, dtype = read(stream)
    except Exception as error:  # a damaged header may hold anything that Python can parse
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f"{where} has no whole header of an array ({reason:.200}): {_WHOLE}.") from error
    if dtype.hasobject:
        raise InputError(f"{where} {_OBJECTS}.")
    count: int = math.prod(map(int, shape))
    there = size - stream.tell()
    odd = any(k < 0 or k >= 1 << 62 for k in shape) or (not dtype.itemsize and count)
    if odd or count * dtype.itemsize > there:
        extent = brief(shape) if len(shape) < 9 else f"{len(shape)} axes"
        raise InputError(
            f"{where} says that it holds {dtype} of shape {extent}, and has {there:,} bytes: the file is damaged."
        )


def _members(path: Path, opened: Opener) -> dict[str, zipfile.ZipInfo]:
    """List the members of an ``.npz`` file by name."""
    with opened(path) as stream:
        if stream.read(4) not in (b"PK\x03\x04", b"PK\x05\x06"):
            before = " (something stands before it)" if zipfile.is_zipfile(stream) else ""
            raise InputError(f"{format_path(path)} is not a whole .npz file{before}: {_WHOLE}.")
        try:
            with zipfile.ZipFile(stream) as archive:
                found = archive.infolist()
        except _UNREADABLE as error:
            raise InputError(f"{format_path(path)} is not a whole .npz file ({error}): {_WHOLE}.") from error
    distinct_names([about.filename for about in found], format_path(path))
    return {about.filename: about for about in found}


def _unpack(
    path: Path, opened: Opener, members: Mapping[str, zipfile.ZipInfo], names: Sequence[str]
) -> Iterator[tuple[str, NDArray[Any]]]:
    """Read arrays one after the other from an archive that is opened once: its directory may be long."""
    places = [f"{brief(name)} in {format_path(path)}" for name in names]
    where = next(iter(places), format_path(path))
    try:
        with opened(path) as file, zipfile.ZipFile(file) as archive:
            for name, where in zip(names, places, strict=True):
                about = members.get(f"{name}.npy", members.get(name))
                if about is None:
                    raise InputError(f"{where} is not there.")
                if about.compress_type != zipfile.ZIP_STORED:
                    check_unpacked(path, about.file_size, LARGEST_ARRAYS)
                with archive.open(about) as stream:
                    if not stream.read(6).startswith(b"\x93NUMPY"):
                        raise InputError(f"{where} is no array: it was not saved by numpy.")
                with archive.open(about) as stream:
                    _check_header(stream, about.file_size, where)
                with archive.open(about) as stream:
                    array: NDArray[Any] = np.lib.format.read_array(stream, allow_pickle=False)
                    stream.read()  # to the end, where the checksum is looked at
                yield name, array
    except InputError:
        raise
    except _UNREADABLE as error:
        raise InputError(f"{where} cannot be read ({error}): the file is damaged.") from error


def _tensor(path: Path, name: str) -> Any:
    with _safe_open(path) as file:
        part = _guarded(path, name, lambda: file.get_slice(name))
        if len(part.get_shape()) < 2:
            return _guarded(path, name, lambda: file.get_tensor(name))
    return Tensor(path, name)


class Tensor:
    """A tensor of a safetensors file, read a few rows at a time."""

    def __init__(self, path: Path, name: str) -> None:
        self.path, self.name = path, name
        with _safe_open(path) as file:
            part = _guarded(path, name, lambda: file.get_slice(name))
            self.shape = tuple(int(k) for k in part.get_shape())
            self.dtype = np.dtype(_guarded(path, name, lambda: part[: min(1, self.shape[0])]).dtype)

    def __getitem__(self, rows: slice) -> NDArray[Any]:
        """Read some of the rows."""
        start, stop, step = rows.indices(self.shape[0])
        with _safe_open(self.path) as file:
            part: NDArray[Any] = file.get_slice(self.name)[start : max(start, stop)]
        return part if step == 1 else part[::step]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Read all rows."""
        return np.asarray(self[:], dtype=dtype)


def _safe_open(path: Path) -> Any:
    try:
        from safetensors import SafetensorError, safe_open
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            f"Reading {format_path(path)} needs safetensors, which is not installed: pip install "
            'safetensors, or "curvewise[torch]".'
        ) from error
    check_file(path)
    try:
        return safe_open(path, framework="numpy")
    except (SafetensorError, OSError) as error:
        raise InputError(f"{format_path(path)} is not a whole safetensors file ({error}): {_WHOLE}.") from error


def _guarded(path: Path, name: str, read: Callable[[], Any]) -> Any:
    try:
        return read()
    except Exception as error:  # numpy has no bfloat16 and no float8; the error depends on versions
        raise InputError(
            f"{brief(name)} in {format_path(path)} cannot be read as a numpy array ({error}): save it as float32 or as "
            "whole numbers."
        ) from error


class RunFiles:
    """A stack of files, runs × examples (× repeats or classes), each read only when its run is asked for."""

    def __init__(self, paths: Sequence[Path], read: Callable[[Path], NDArray[Any]], shape: Any, dtype: Any) -> None:
        self.paths, self._read = tuple(paths), read
        self.shape: tuple[int, ...] = (len(self.paths), *shape)
        self.dtype: np.dtype[Any] = np.dtype(dtype)

    def __getitem__(self, rows: slice) -> NDArray[Any]:
        """Read some of the runs."""
        paths = self.paths[rows]
        block = np.empty((len(paths), *self.shape[1:]), dtype=self.dtype)
        for run, path in zip(block, paths, strict=True):
            values = self._read(path)
            # A training that still writes its files would mix epochs within one matrix.
            if values.shape != run.shape or not np.can_cast(values.dtype, self.dtype):
                raise InputError(f"{format_path(path)} has changed since it was first looked at.")
            run[...] = values
        return block

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Read all runs."""
        return np.asarray(self[:], dtype=dtype)


# One value per example out of a file: the predictions of a single run, labels, groups, names of examples.

VECTOR_FILES = (".npy", ".npz", ".safetensors", ".csv", ".tsv", ".tab", ".txt", ".json")
_FLAGS = {"true": 1, "false": 0}

PREDICTION_ROLES = {
    name: Role(name, tuple(map(synonyms, names.split("|"))))
    for name, names in {
        "prediction": """
            prediction predictions pred preds y_pred ypred y_preds y_hat yhat predicted predicted_label predicted_labels
            pred_label pred_labels label_pred labels_pred labels_predicted label_predicted predicted_class
            predicted_classes pred_class pred_classes""",
        "error": "error errors err errs is_error is_wrong wrong mistake mistakes incorrect",
        "correct": "correct is_correct correctness hit hits right",
        "loss": "loss losses nll log_loss cross_entropy example_loss example_losses",
        "score": "pass1 pass_1 pass_at_1 pass_rate",
        "probability": "probability probabilities prob probs proba probas logit logits y_prob y_probs y_proba softmax",
        "label": """
            label labels target targets y_true ytrue true_label true_labels label_true labels_true true_class
            true_classes truth ground_truth gold gold_label gold_labels y_test test_label test_labels | y""",
        "group": """
            group groups group_id group_ids passage passage_id passage_ids video video_id video_ids cluster cluster_id
            cluster_ids document document_id doc_id""",
        "run": f"""
            run runs run_id run_ids run_name run_names run_index run_number |
            {" ".join(SEED)} seeds trial trial_id replicate""",
        "example": """
            example example_id example_ids example_index example_idx example_name examples item item_id item_ids
            question question_id question_ids qid instance instance_id instance_ids test_index |
            id ids index idx uid""",
        "repeat": """
            repeat repeat_id repetition sample sample_id sample_index sample_idx draw generation completion attempt""",
        "learner": f"{' '.join(LEARNER)} training training_name recipe config",
        "packed": "packed packed_examples n_examples num_examples",
    }.items()
}
"""Roles of arrays and columns that speak of single examples; names behind a bar are of a second choice."""


def role_of(name: str) -> str | None:
    """Return what a name is known as; names of a second choice, such as y, only if nothing else is called so.

    >>> role_of("Y_true"), role_of("logits"), role_of("Run ID"), role_of("epoch")
    ('label', 'probability', 'run', None)
    """
    plain = normal(name)
    for choice in (0, 1):
        for role in PREDICTION_ROLES.values():
            if plain in next(iter(role.known[choice:]), ()):
                return role.name
    return None


def read_vector(source: str | PathLike[str], part: str) -> NDArray[Any]:
    """Read labels, groups or names of examples: the only array in a file, or the one so called."""
    path = as_path(source)
    there, get = read_named(path)
    known = [name for name in there if role_of(name) == part]
    chosen = list(there) if len(there) == 1 else known
    if len(chosen) != 1:
        raise InputError(
            f"{format_path(path)} holds {list_names(there)}, and {len(known)} of them could be the {part}s: pass the "
            f"{part}s as an array."
        )
    array = np.asarray(get(chosen[0]))
    if array.ndim != 1:
        raise InputError(f"The {part}s in {format_path(path)} have shape {array.shape}: pass a list.")
    _check_sorted(there, get, path, part)
    return array


def read_named(path: Path) -> tuple[Sequence[str], Callable[[str], Any]]:
    """Return the names of the arrays in any file of :data:`VECTOR_FILES`, ``""`` for one without, and their reader."""
    suffix, _ = ending(path)
    if suffix not in VECTOR_FILES:
        kind_of(path)  # for its message on what is no file, or has another ending
        raise InputError(f"{format_path(path)} must be one of {', '.join(VECTOR_FILES)}.")
    if suffix == ".npy":
        return [""], lambda _: map_npy(path)
    if suffix in (".npz", ".safetensors"):
        return named_arrays(path)
    text = read_text(path)
    if suffix == ".json":
        arrays = _json_arrays(parse_json(text, path), path)
    else:
        arrays = _lines(text, path) if suffix == ".txt" else _cells(text, path)
    return list(arrays), arrays.__getitem__


def _check_sorted(there: Sequence[str], get: Callable[[str], Any], path: Path, part: str) -> None:
    """Refuse numbered examples in another order than that of their numbers."""
    numbers = [name for name in there if role_of(name) == "example"]
    if part == "example" or len(there) == 1 or len(numbers) != 1:
        return
    # Labels go by position: a file sorted in another way than the predictions would shuffle them unnoticed.
    ids = np.asarray(get(numbers[0]))
    if ids.ndim == 1 and counts_up(np.sort(ids)) and not counts_up(ids):
        raise InputError(
            f"{format_path(path)} lists examples in another order than {brief(numbers[0])} numbers them: sort it, "
            "since labels and groups go by position."
        )


def counts_up(ids: NDArray[Any]) -> bool:
    """Return whether names count up by one from 0 or from 1."""
    if ids.dtype.kind not in "iu" or not ids.size or int(ids[0]) not in (0, 1):
        return False
    return bool((ids == np.arange(len(ids)) + int(ids[0])).all())


def _json_arrays(data: Any, path: Path) -> Mapping[str, NDArray[Any]]:
    arrays = data if isinstance(data, dict) else {"": data}
    for name, cells in arrays.items():
        where = f"{brief(name)} in {format_path(path)}" if name else format_path(path)
        scalar = isinstance(cells, int) and not isinstance(cells, bool) and bool(name)
        if not scalar and (not isinstance(cells, list) or not cells):
            raise InputError(f"{where} is {brief(cells)}: a list with one value per example is read.")
    return {name: nested(cells, f"{format_path(path)}") for name, cells in arrays.items()}


def nested(cells: Any, where: str) -> NDArray[Any]:
    """Make an array of lists in lists; entries must be alike, and lists of one length."""
    try:
        array = np.asarray(cells)
    except ValueError as error:
        raise InputError(f"{where} holds lists of different lengths: each must be as long.") from error
    if array.dtype.kind not in "biufU" or _mixed(cells):
        raise InputError(
            f"{where} holds something that is neither a number nor a text, or both: null, perhaps? Every example needs "
            "a value."
        )
    return array if array.dtype.kind in "bfU" else compact(array.ravel()).reshape(array.shape)


def _mixed(cells: Any) -> bool:
    """Return whether numbers stand among texts, which numpy would write as texts."""
    if not isinstance(cells, list | tuple):
        return False
    if cells and isinstance(cells[0], list | tuple):
        return any(map(_mixed, cells)) or len({isinstance(c[0], str) for c in cells if c}) > 1
    return len({isinstance(cell, str) for cell in cells}) > 1


def _lines(text: str, path: Path) -> dict[str, NDArray[Any]]:
    cells = [line.strip() for line in text.strip().split("\n")]
    values = re.split(r"[\s,;]+", cells[0])
    if len(values) > 1 and all(parse(value) is not None for value in values if value):
        raise InputError(
            f"{format_path(path)} has several values in its first line, {brief(cells[0])}: write one per line, or name "
            "it .csv."
        )
    return _column(cells, path)


def _cells(text: str, path: Path) -> dict[str, NDArray[Any]]:
    if not text.strip():
        raise InputError(f"{format_path(path)} is empty.")
    rows, _ = split_rows(text, path)
    if len(rows[0]) == 1:
        return _column([row[0].strip() for row in rows], path)
    header = [name.strip() for name in rows[0]]
    if len(set(header)) < len(header) or all(parse(name) is not None for name in header):
        raise InputError(
            f"{format_path(path)} has {len(header)} columns and no line with their names: one run needs one column, or "
            "names that say which is which."
        )
    if len(rows) < 2:
        raise InputError(f"{format_path(path)} has a header ({list_names(header)}) but no rows.")
    columns = zip(header, zip(*rows[1:], strict=True), strict=True)
    return {name: compact(list(cells)) for name, cells in columns}


def _column(cells: list[str], path: Path) -> dict[str, NDArray[Any]]:
    """Read one column, with or without a name above it."""
    first = cells[0]
    word = parse(first) is None and len(cells) > 1
    # A first line is a name if it is a known one, or the only line that is no number: "cat" above "dog" is a class, and
    # so is "y" or "correct" where it comes again.
    known = role_of(first) is not None and first not in cells[1:]
    named = word and (known or all(parse(c) is not None for c in cells[1:]))
    values = cells[1:] if named else cells
    blank = [i for i, cell in enumerate(values) if cell == ""]
    if blank:
        raise InputError(
            f"{format_path(path)} has no value in row {blank[0] + 1} ({len(blank)} such row(s)): every example needs "
            "one."
        )
    return {first if named else "": compact(values)}


def compact(cells: Column) -> NDArray[Any]:
    """Make an array of whole numbers, numbers or text; whole numbers in as few bytes as hold them."""
    is_text = isinstance(cells, np.ndarray) and cells.dtype.kind == "U"
    array = np.asarray(cells) if is_text else label_array(cells)
    if array.dtype.kind not in "iu" or not array.size:
        return array
    # Predicted classes of thousands of runs as int64 take eight times the memory of bytes.
    low, high = int(array.min()), int(array.max())
    return array.astype(np.result_type(np.min_scalar_type(low), np.min_scalar_type(high)))


def flags(values: NDArray[Any]) -> NDArray[Any]:
    """Read the words true and false as 1 and 0, if there are no others.

    >>> flags(np.array(["True", "False"])).tolist(), flags(np.array([0, 1])).tolist()
    ([1, 0], [0, 1])
    """
    if values.dtype.kind != "U":
        return values
    words, codes = np.unique(values, return_inverse=True)
    read = [_FLAGS.get(word.strip().lower()) for word in words.tolist()]
    return values if None in read else np.array(read, dtype=np.uint8)[codes].reshape(values.shape)


def no_value(cells: Column) -> NDArray[np.bool_]:
    """Find the cells that hold nothing; among texts "none" and "NA" may be names of classes."""
    array = compact(cells)
    if array.dtype.kind == "U":
        return np.array([not word.strip() for word in array.tolist()], dtype=np.bool_)
    return np.isnan(array) if array.dtype.kind == "f" else np.zeros(len(array), dtype=np.bool_)
