"""Arrays in files: numpy's and safetensors', mapped or read a few runs at a time."""

from __future__ import annotations

import math
import re
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError, MissingDependencyError
from curvewise.reading.files import LARGEST_ARRAYS, as_path, check_unpacked, kind_of, parse_json, read_text, split_rows
from curvewise.reading.roles import SYNONYMS, normal
from curvewise.reading.table import Column, check_names, label_array, parse
from curvewise.text import brief, format_path, list_names, suggest
from curvewise.types.coercion import as_predictions
from curvewise.types.predictions import AnyArray, Predictions

Opener: TypeAlias = "Callable[[Path], IO[bytes]]"
ARRAY_FILES = (".npy", ".npz", ".safetensors")
_WHOLE = "it was cut short, or is something else with that ending"
_UNREADABLE = (
    *(ValueError, TypeError, EOFError, OSError, RuntimeError, MemoryError, OverflowError),
    *(NotImplementedError, zipfile.BadZipFile, zlib.error),
)
"""What numpy and zipfile raise for damaged, encrypted and far too large arrays."""
_OBJECTS = (
    "holds Python objects, which only a pickle can, and pickles are never read: they can run code."
    " Save numbers, or strings with dtype=str"
)


class Tensor:
    """One tensor of a safetensors file, read a few rows at a time."""

    def __init__(self, path: Path, name: str) -> None:
        self.path, self.name = path, name
        with _safe_open(path) as file:
            part = _guarded(path, name, lambda: file.get_slice(name))
            self.shape = tuple(int(k) for k in part.get_shape())
            self.dtype = np.dtype(_guarded(path, name, lambda: part[: min(1, self.shape[0])]).dtype)

    def __getitem__(self, rows: slice) -> NDArray[Any]:
        """Some of the rows, read now."""
        start, stop, step = rows.indices(self.shape[0])
        with _safe_open(self.path) as file:
            part: NDArray[Any] = file.get_slice(self.name)[start : max(start, stop)]
        return part if step == 1 else part[::step]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """All of it."""
        return np.asarray(self[:], dtype=dtype)


def array_file(path: Path, key: str | None, kind: str | None, columns: PartMap | None) -> Found:
    """Read predictions, and what lies beside them, from a file of arrays."""
    if path.suffix.lower() == ".npy":
        if key is not None:
            raise InputError(f"key={brief(key)}: {format_path(path)} holds one array without a name.")
        part = part_of(path.stem)
        known = kind or KIND_OF.get(part or "")
        said = f"{known} by the name of the file" if known != kind else ""
        return Found(map_npy(path), format_path(path), known, predicted=part == "prediction", notes=(said,))
    names, get = named_arrays(path)
    return from_named(names, get, format_path(path), key=key, kind=kind, columns=columns)


def named_arrays(path: Path, kind: str = "") -> tuple[list[str], Callable[[str], Any]]:
    """Names of the arrays in a file, and what reads one of them; ``kind`` as the ending says."""
    if (kind or path.suffix.lower().removeprefix(".")) == "npz":
        return npz_arrays(path, _open_checked)
    with _safe_open(path) as file:
        names = list(file.keys())
    return names, partial(_tensor, path)


def npz_arrays(path: Path, opened: Opener) -> tuple[list[str], Callable[[str], NDArray[Any]]]:
    """Names of the arrays in an ``.npz`` file that ``opened`` opens, and what reads one of them."""
    names = [name.removesuffix(".npy") for name in _members(path, opened)]
    return names, partial(_npz_array, path, opened)


def from_named(
    names: Sequence[str],
    get: Callable[[str], Any],
    source: str,
    *,
    key: str | None = None,
    kind: str | None = None,
    columns: PartMap | None = None,
) -> Found:
    """Read the values among named arrays, and the labels, groups and ids with them."""
    if not names:
        raise InputError(f"{source} holds no arrays: there is nothing to read.")
    parts = find_parts(names, source, key=key, kind=kind, columns=columns)
    values = get(parts.value)
    others = {part: get(name) for part, name in parts.others.items()}
    count = others.get("packed")
    if "example" in others and np.ndim(others["example"]) == 0:
        count = others.pop("example")
    known = {"label": "labels", "group": "groups", "run": "run_ids", "example": "example_ids"}
    notes = [f"values from {brief(parts.value)}" if parts.value else ""]
    notes += [f"{part} from {brief(name)}" for part, name in parts.others.items() if part in known]
    notes += [f"not read: {list_names(parts.unread)}"] if parts.unread else []
    held: Any = {known[part]: np.asarray(v) for part, v in others.items() if part in known}
    return Found(
        values,
        source,
        parts.kind,
        packed=_packed(values, count, source),
        predicted=parts.predicted,
        notes=("; ".join(note for note in notes if note),),
        **held,
    )


def _packed(values: Any, count: Any, source: str) -> int | None:
    """How many examples lie in bits; None where each has an entry of its own."""
    if count is None:
        return None
    if np.ndim(count) != 0 or np.asarray(count).dtype.kind not in "iu":
        raise InputError(f"The number of packed examples in {source} must be one whole number.")
    told = len(values.shape) > 1 and values.shape[1] == int(count)
    return None if told else int(count)


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


def _check_header(stream: IO[bytes], size: int, where: str) -> None:
    """Refuse an array that cannot be in a file of this size, before memory is taken for it."""
    form = np.lib.format
    try:
        first = form.read_magic(stream) == (1, 0)
        read = form.read_array_header_1_0 if first else form.read_array_header_2_0
        shape, _, dtype = read(stream)
    except Exception as error:  # a damaged header may hold anything that Python can parse
        said = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f"{where} has no whole header of an array ({said:.200}): {_WHOLE}.") from error
    if dtype.hasobject:
        raise InputError(f"{where} {_OBJECTS}.")
    count: int = math.prod(map(int, shape))
    there = size - stream.tell()
    odd = any(k < 0 or k >= 1 << 62 for k in shape) or (not dtype.itemsize and count)
    if odd or count * dtype.itemsize > there:
        held = brief(shape) if len(shape) < 9 else f"{len(shape)} axes"
        raise InputError(
            f"{where} says that it holds {dtype} of shape {held}, and has {there:,} bytes: the file is damaged."
        )


def check_file(path: Path) -> None:
    """Refuse what is not there, not a file or empty."""
    try:
        if not path.exists():
            raise InputError(f"source={brief(str(path), 200)}: there is no such file.")
        if not path.is_file():
            raise InputError(f"{format_path(path)} is not a plain file.")
        if path.stat().st_size == 0:
            raise InputError(f"{format_path(path)} is empty.")
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"source={brief(str(path), 200)} cannot be read: {error}.") from error


def _open_checked(path: Path) -> IO[bytes]:
    check_file(path)
    return open(path, "rb")


def _members(path: Path, opened: Opener) -> dict[str, zipfile.ZipInfo]:
    """What is in an ``.npz`` file, by name."""
    with opened(path) as stream:
        if stream.read(4) not in (b"PK\x03\x04", b"PK\x05\x06"):
            before = " (something stands before it)" if zipfile.is_zipfile(stream) else ""
            raise InputError(f"{format_path(path)} is not a whole .npz file{before}: {_WHOLE}.")
        try:
            with zipfile.ZipFile(stream) as archive:
                found = archive.infolist()
        except _UNREADABLE as error:
            raise InputError(f"{format_path(path)} is not a whole .npz file ({error}): {_WHOLE}.") from error
    check_names([about.filename for about in found], format_path(path))
    return {about.filename: about for about in found}


def _npz_array(path: Path, opened: Opener, name: str) -> NDArray[Any]:
    members, where = _members(path, opened), f"{brief(name)} in {format_path(path)}"
    about = members.get(f"{name}.npy", members.get(name))
    if about is None:
        raise InputError(f"{where} is not there.")
    if about.compress_type != zipfile.ZIP_STORED:
        check_unpacked(path, about.file_size, LARGEST_ARRAYS)
    try:
        with opened(path) as file, zipfile.ZipFile(file) as archive:
            with archive.open(about) as stream:
                if not stream.read(6).startswith(b"\x93NUMPY"):
                    raise InputError(f"{where} is no array: it was not saved by numpy.")
            with archive.open(about) as stream:
                _check_header(stream, about.file_size, where)
            with archive.open(about) as stream:
                array: NDArray[Any] = np.lib.format.read_array(stream, allow_pickle=False)
                stream.read()  # to the end, where the checksum is looked at
    except InputError:
        raise
    except _UNREADABLE as error:
        raise InputError(f"{where} cannot be read ({error}): the file is damaged.") from error
    return array


def _tensor(path: Path, name: str) -> Any:
    with _safe_open(path) as file:
        part = _guarded(path, name, lambda: file.get_slice(name))
        if len(part.get_shape()) < 2:
            return _guarded(path, name, lambda: file.get_tensor(name))
    return Tensor(path, name)


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
            f"{brief(name)} in {format_path(path)} cannot be read as a numpy array ({error}): save it as"
            " float32 or as whole numbers."
        ) from error


# One value per example out of a file: what a single run predicted, labels, groups, names.

VECTOR_FILES = (".npy", ".npz", ".safetensors", ".csv", ".tsv", ".tab", ".txt", ".json")
_FLAGS = {"true": 1, "false": 0}


def read_vector(source: str | PathLike[str], part: str) -> NDArray[Any]:
    """Read labels, groups or names of examples: the only array in a file, or the one so called."""
    path = as_path(source)
    names, get = read_named(path)
    known = [name for name in names if part_of(name) == part]
    chosen = list(names) if len(names) == 1 else known
    if len(chosen) != 1:
        raise InputError(
            f"{format_path(path)} holds {list_names(names)}, and {len(known)} of them could be the {part}s:"
            f" pass the {part}s as an array."
        )
    array = np.asarray(get(chosen[0]))
    if array.ndim != 1:
        raise InputError(f"The {part}s in {format_path(path)} have shape {array.shape}: pass a list.")
    _check_sorted(names, get, path, part)
    return array


def read_named(path: Path) -> tuple[Sequence[str], Callable[[str], Any]]:
    """Names of the arrays in any file of :data:`VECTOR_FILES`; one without a name is ``""``."""
    suffix = path.with_suffix("").suffix if path.suffix.lower() == ".gz" else path.suffix
    suffix = suffix.lower()
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


def compact(cells: Column) -> NDArray[Any]:
    """Cells as whole numbers, numbers or text; whole numbers in as few bytes as hold them."""
    is_text = isinstance(cells, np.ndarray) and cells.dtype.kind == "U"
    array = np.asarray(cells) if is_text else label_array(cells)
    if array.dtype.kind not in "iu" or not array.size:
        return array
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


def _json_arrays(data: Any, path: Path) -> Mapping[str, NDArray[Any]]:
    arrays = data if isinstance(data, dict) else {"": data}
    for name, cells in arrays.items():
        where = f"{brief(name)} in {format_path(path)}" if name else format_path(path)
        scalar = isinstance(cells, int) and not isinstance(cells, bool) and bool(name)
        if not scalar and (not isinstance(cells, list) or not cells):
            raise InputError(f"{where} is {brief(cells)}: a list with one value per example is read.")
    return {name: nested(cells, f"{format_path(path)}") for name, cells in arrays.items()}


def nested(cells: Any, where: str) -> NDArray[Any]:
    """Lists in lists as an array; entries must be alike, and lists of one length."""
    try:
        array = np.asarray(cells)
    except ValueError as error:
        raise InputError(f"{where} holds lists of different lengths: each must be as long.") from (error)
    if array.dtype.kind not in "biufU" or _mixed(cells):
        raise InputError(
            f"{where} holds something that is neither a number nor a text, or both: null, perhaps?"
            " Every example needs a value."
        )
    return array if array.dtype.kind in "bfU" else compact(array.ravel()).reshape(array.shape)


def _mixed(cells: Any) -> bool:
    """Whether numbers stand among texts, which numpy would write as texts."""
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
            f"{format_path(path)} has several values in its first line, {brief(cells[0])}: write one per"
            " line, or name it .csv."
        )
    return _column(cells, path)


def _cells(text: str, path: Path) -> dict[str, NDArray[Any]]:
    if not text.strip():
        raise InputError(f"{format_path(path)} is empty.")
    rows, _ = split_rows(text.strip("\r\n") + "\n", path)
    if len(rows[0]) == 1:
        return _column([row[0].strip() for row in rows], path)
    header = [name.strip() for name in rows[0]]
    if len(set(header)) < len(header) or all(parse(name) is not None for name in header):
        raise InputError(
            f"{format_path(path)} has {len(header)} columns and no line with their names: one run needs "
            "one column, or names that say which is which."
        )
    if len(rows) < 2:
        raise InputError(f"{format_path(path)} has a header ({list_names(header)}) but no rows.")
    columns = zip(header, zip(*rows[1:], strict=True), strict=True)
    return {name: compact(list(cells)) for name, cells in columns}


def _column(cells: list[str], path: Path) -> dict[str, NDArray[Any]]:
    """One column, with or without a name above it."""
    first = cells[0]
    word = parse(first) is None and len(cells) > 1
    named = word and (part_of(first) is not None or all(parse(c) is not None for c in cells[1:]))
    values = cells[1:] if named else cells
    blank = [i for i, cell in enumerate(values) if cell == ""]
    if blank:
        raise InputError(
            f"{format_path(path)} has no value in row {blank[0] + 1} ({len(blank)} such row(s)): every "
            "example needs one."
        )
    return {first if named else "": compact(values)}


def _check_sorted(names: Sequence[str], get: Callable[[str], Any], path: Path, part: str) -> None:
    """Refuse numbered examples in another order than that of their numbers."""
    numbers = [name for name in names if part_of(name) == "example"]
    if part == "example" or len(names) == 1 or len(numbers) != 1:
        return
    ids = np.asarray(get(numbers[0]))
    if ids.ndim == 1 and counts_up(np.sort(ids)) and not counts_up(ids):
        raise InputError(
            f"{format_path(path)} lists examples in another order than {brief(numbers[0])} numbers them:"
            " sort it, since labels and groups go by position."
        )


def counts_up(ids: NDArray[Any]) -> bool:
    """Whether names count up by one from 0 or from 1."""
    if ids.dtype.kind not in "iu" or not ids.size or int(ids[0]) not in (0, 1):
        return False
    return bool((ids == np.arange(len(ids)) + int(ids[0])).all())


def no_value(cells: Column) -> NDArray[np.bool_]:
    """Which cells hold nothing; among texts "none" and "NA" may be names of classes."""
    array = compact(cells)
    if array.dtype.kind == "U":
        return np.array([not word.strip() for word in array.tolist()], dtype=np.bool_)
    return np.isnan(array) if array.dtype.kind == "f" else np.zeros(len(array), dtype=np.bool_)


# A folder with one file per run, read a few runs at a time.

_BESIDE = {"label": "labels", "group": "groups", "example": "example_ids"}
_PAPERS = (".md", ".rst", ".log", ".yaml", ".yml", ".toml", ".pdf", ".png", ".svg")


class RunFiles:
    """Runs × examples (× repeats or classes), each run in a file that is read when asked for."""

    def __init__(self, paths: Sequence[Path], read: Callable[[Path], NDArray[Any]], shape: Any, dtype: Any) -> None:
        self.paths, self._read = tuple(paths), read
        self.shape: tuple[int, ...] = (len(self.paths), *shape)
        self.dtype: np.dtype[Any] = np.dtype(dtype)

    def __getitem__(self, rows: slice) -> NDArray[Any]:
        """Some of the runs, read now."""
        paths = self.paths[rows]
        block = np.empty((len(paths), *self.shape[1:]), dtype=self.dtype)
        for run, path in zip(block, paths, strict=True):
            values = self._read(path)
            if values.shape != run.shape or not np.can_cast(values.dtype, self.dtype):
                raise InputError(f"{format_path(path)} has changed since it was first looked at.")
            run[...] = values
        return block

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """All runs at once."""
        return np.asarray(self[:], dtype=dtype)


def read_folder(folder: Path, key: str | None, kind: str | None, columns: PartMap | None) -> Found:
    """Look at every file once: runs must be alike, and only their shapes are kept."""
    paths, beside, notes = _sorted_out(folder)
    extra = {_BESIDE[part]: read_vector(path, part) for part, path in beside.items()}
    if len(paths) == 1 and _is_matrix(paths[0]):
        return _with(array_file(paths[0], key, kind, columns), extra, notes)
    read = partial(_one_run, key=key, kind=kind, columns=columns)
    first = read(paths[0])
    shape, dtype = tuple(first.values.shape), first.values.dtype
    for path in paths[1:]:
        run = read(path)
        _check_like(first, run)
        dtype = np.result_type(dtype, run.values.dtype)
    values = RunFiles(paths, partial(_values, key=key, kind=kind, columns=columns), shape, dtype)
    whole = replace(
        first,
        values=values,
        source=format_path(folder),
        axes=("runs", "examples"),
        run_ids=np.array([_stem(path) for path in paths], dtype=np.str_),
        notes=(f"{len(paths):,} runs from the files in {format_path(folder)}", *first.notes),
    )
    return _with(whole, extra, notes)


def natural(name: str) -> tuple[Any, ...]:
    """Key that sorts run_2 before run_10.

    >>> sorted(["run_10", "run_2", "run_1"], key=natural)
    ['run_1', 'run_2', 'run_10']
    """
    pieces = re.split(r"([0-9]+)", name)
    return (*((p.lower(), 0) if i % 2 == 0 else ("", int(p)) for i, p in enumerate(pieces)), name)


def _with(found: Found, extra: dict[str, NDArray[Any]], notes: Sequence[str]) -> Found:
    """Add what lay in files beside; it must not contradict what the runs bring along."""
    held: Any = {name: agreed(name, getattr(found, name), v, found.source) for name, v in extra.items()}
    said = [f"{name} from a file beside" for name in extra]
    return replace(found, notes=(*found.notes, *said, *notes), **held)


def _one_run(path: Path, key: str | None, kind: str | None, columns: PartMap | None) -> Found:
    names, get = read_named(path)
    found = from_named(names, get, format_path(path), key=key, kind=kind, columns=columns)
    if len(found.values.shape) not in (1, 2) or 0 in found.values.shape:
        raise InputError(
            f"{format_path(path)} has shape {tuple(found.values.shape)}: a file is one run, with a value "
            "for each example."
        )
    if found.values.dtype.kind not in "biufU":
        raise InputError(
            f"{format_path(path)} has dtype {found.values.dtype}, which holds no predictions: save numbers or text."
        )
    bits = found.kind in ("errors", "correct")
    return replace(found, values=flags(found.values) if bits else found.values)


def _values(path: Path, **options: Any) -> NDArray[Any]:
    return np.asarray(_one_run(path, **options).values)


def _check_like(first: Found, run: Found) -> None:
    if run.values.shape != first.values.shape:
        raise InputError(
            f"{run.source} holds {_size(run)}, {first.source} {_size(first)}: every run needs the "
            "same examples. Was one cut short, or is it no run? Then move it out of the folder."
        )
    if (run.values.dtype.kind == "U") != (first.values.dtype.kind == "U"):
        raise InputError(f"One of {first.source} and {run.source} holds text, the other numbers.")
    if run.kind != first.kind:
        raise InputError(
            f"{run.source} holds {run.kind or 'predictions'}, {first.source} "
            f"{first.kind or 'predictions'}: all runs must be of one kind."
        )
    for name in ("labels", "groups", "example_ids"):
        here, there = getattr(run, name), getattr(first, name)
        same = here is there or (here is not None and there is not None)
        if not same or (here is not None and not np.array_equal(here, there)):
            raise InputError(
                f"{run.source} has other {name} than {first.source}: all runs must be on the same "
                "examples, in the same order."
            )


def _size(run: Found) -> str:
    return " × ".join(f"{k:,}" for k in run.values.shape) + " values"


def _is_matrix(path: Path) -> bool:
    return path.suffix.lower() in ARRAY_FILES and part_of(_stem(path)) in KIND_OF


def _sorted_out(folder: Path) -> tuple[list[Path], dict[str, Path], list[str]]:
    """Files that are runs, in natural order; files of labels and the like; what was not read."""
    runs: dict[str, Path] = {}
    beside: dict[str, Path] = {}
    unread = []
    for path in sorted(folder.iterdir(), key=lambda p: natural(p.name)):
        part = part_of(_stem(path))
        if path.name.startswith("."):
            continue
        if path.is_dir() or path.suffix.lower() in _PAPERS:
            unread.append(path.name)
        elif not _is_known(path):
            raise InputError(
                f"{format_path(path)} in {format_path(folder)} has an ending that is not known, and might be a "
                f"run: known are {', '.join(VECTOR_FILES)}. Move it out of the folder, or save it "
                "as one of these."
            )
        elif part in _BESIDE:
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
        raise InputError(
            f"{format_path(found[name])} and {format_path(path)} are both {brief(name)}: keep one of them."
        )
    found[name] = path


def _is_known(path: Path) -> bool:
    last = path.with_suffix("") if path.suffix.lower() == ".gz" else path
    packed_binary = last is not path and last.suffix.lower() in ARRAY_FILES
    return last.suffix.lower() in VECTOR_FILES and not packed_binary


def _stem(path: Path) -> str:
    name = path.name[:-3] if path.name.lower().endswith(".gz") else path.name
    return name.rpartition(".")[0] or name


# What a reader found, and how it becomes predictions with the user's word beside it.

_ASSUMED = {
    "errors": "0 and 1 taken as errors: pass kind='correct' if 1 means right",
    "losses": "numbers taken as losses: pass kind='scores' if high ones are good",
}


@dataclass(frozen=True, eq=False)
class Found:
    """Values and what came with them, not yet checked against each other.

    ``axes`` says what the axes are where the form of the source says it; ``predicted`` that the
    values were called predictions, which mean nothing without labels; ``arranged`` that what the
    user said of axes was used in reading; ``ordered`` that the examples have one order, so that
    labels may be given by position.
    """

    values: Any
    source: str
    kind: str | None = None
    axes: tuple[str, ...] | None = None
    labels: AnyArray | None = None
    groups: AnyArray | None = None
    run_ids: AnyArray | None = None
    example_ids: AnyArray | None = None
    packed: int | None = None
    predicted: bool = False
    arranged: bool = False
    ordered: bool = True
    notes: tuple[str, ...] = ()


def finish(
    found: Found,
    *,
    labels: AnyArray | None = None,
    kind: str | None = None,
    axes: Sequence[str] | None = None,
    groups: AnyArray | None = None,
) -> Predictions:
    """Make predictions of what was found; what the user gives must not contradict it."""
    for name, given in (("labels", labels), ("groups", groups)):
        if given is not None and not found.ordered:
            raise InputError(
                f"{name}= is in the order of the examples, and runs in {found.source} list them in "
                f"different orders: put {name} in a column of it."
            )
    truth = agreed("labels", found.labels, labels, found.source)
    members = agreed("groups", found.groups, groups, found.source)
    kind = kind or found.kind
    if kind is None and found.predicted and truth is None:
        raise InputError(
            f"{found.source} holds predictions and no labels: pass labels=, an array or a file with"
            " the true class of each example; or, if these are no classes, kind='errors' or"
            " kind='correct' for 0 and 1, kind='losses' or kind='scores' for numbers."
        )
    if found.packed is not None:
        made = _unpackable(found, kind, truth, members)
    else:
        made = as_predictions(
            found.values, truth, kind=kind, axes=_axes(found, axes, kind), groups=members, argument=found.source
        )
    notes = list(found.notes)
    if made.assumed:
        notes.append(_ASSUMED[made.kind])
    ids: Any = {"run_ids": _safe(found.run_ids), "example_ids": _safe(found.example_ids)}
    return replace(made, notes=tuple(note for note in notes if note), **ids)


def _axes(found: Found, axes: Sequence[str] | None, kind: str | None) -> tuple[str, ...] | None:
    known = found.axes
    if known is not None and axes is None and len(known) < len(found.values.shape):
        return (*known, "classes") if kind == "probabilities" else None
    if found.arranged:
        return known
    if known is None or axes is None or tuple(axes[: len(known)]) == known:
        return known if axes is None else tuple(axes)
    raise InputError(
        f"axes={tuple(axes)!r}: {found.source} has {' × '.join(known)} by its form; leave axes="
        " out, or begin with these."
    )


def agreed(name: str, there: AnyArray | None, given: AnyArray | None, source: str) -> AnyArray | None:
    """What two places say of the examples, which must be the same if both speak."""
    if there is None or given is None:
        return there if given is None else given
    if np.shape(there) == np.shape(given) and bool(np.all(np.asarray(there) == np.asarray(given))):
        return there
    raise InputError(
        f"{name}= differs from the {name} that {source} brings along: leave {name}= out, or leave "
        f"those out with columns={{{name[:-1]!r}: None}}."
    )


def _unpackable(found: Found, kind: str | None, labels: AnyArray | None, groups: AnyArray | None) -> Predictions:
    """Errors or hits as bits; labels and groups are coded as for any others."""

    def codes(values: AnyArray | None, whole: bool) -> Any:
        if values is None or (whole and np.asarray(values).dtype.kind in "iu"):
            return None if values is None else np.asarray(values).astype(np.int64)
        return np.unique(np.asarray(values), return_inverse=True)[1].astype(np.int64)

    return Predictions(
        found.values,
        kind or "errors",
        labels=codes(labels, True),
        groups=codes(groups, False),
        packed=found.packed,
        assumed=kind is None,
    )


def _safe(ids: AnyArray | None) -> AnyArray | None:
    """Names that can be printed: what could move a cursor is written out."""
    if ids is None or ids.dtype.kind not in "US":
        return ids
    words = [str(word) for word in ids.tolist()]
    if all(word.isprintable() and len(word) <= 120 for word in words):
        return np.array(words, dtype=np.str_)
    return np.array([format_path(word) for word in words], dtype=np.str_)


# Which array or column is predictions, labels, runs: by its name, or by the user's word.

PartMap: TypeAlias = Mapping[str, str | None]


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


KIND_OF: dict[str, str | None] = {
    "prediction": None,
    "error": "errors",
    "correct": "correct",
    "loss": "losses",
    "score": "scores",
    "probability": "probabilities",
}
"""Parts that can be the values, and the kind that each is; predictions may be of two kinds."""

# Compared as names of measurements are: in lower case, with underscores for all other characters.
_KNOWN: dict[str, frozenset[str]] = {
    "prediction": _names("""
        prediction predictions pred preds y_pred ypred y_preds y_hat yhat predicted predicted_label
        predicted_labels pred_label pred_labels label_pred labels_pred labels_predicted
        label_predicted predicted_class predicted_classes pred_class pred_classes"""),
    "error": _names("error errors err errs is_error is_wrong wrong mistake mistakes incorrect"),
    "correct": _names("correct is_correct correctness hit hits right"),
    "loss": _names("loss losses nll log_loss cross_entropy example_loss example_losses"),
    "score": _names("pass1 pass_1 pass_at_1 pass_rate"),
    "probability": _names("""
        probability probabilities prob probs proba probas logit logits y_prob y_probs y_proba
        softmax"""),
    "label": _names("""
        label labels target targets y_true ytrue true_label true_labels label_true labels_true
        true_class true_classes truth ground_truth gold gold_label gold_labels y_test test_label
        test_labels"""),
    "group": _names("""
        group groups group_id group_ids passage passage_id passage_ids video video_id video_ids
        cluster cluster_id cluster_ids document document_id doc_id"""),
    "run": _names("run runs run_id run_ids run_name run_names run_index run_number"),
    "example": _names("""
        example example_id example_ids example_index example_idx example_name examples item item_id
        item_ids question question_id question_ids qid instance instance_id instance_ids
        test_index"""),
    "repeat": _names("""
        repeat repeat_id repetition sample sample_id sample_index sample_idx draw generation
        completion attempt"""),
    "learner": SYNONYMS["learner"] | _names("training training_name recipe config"),
    "packed": _names("packed packed_examples n_examples num_examples"),
}
# These are taken only where no better name is there.
_ELSE: dict[str, frozenset[str]] = {
    "label": _names("y"),
    "run": SYNONYMS["seed"] | _names("seeds trial trial_id replicate"),
    "example": _names("id ids index idx uid"),
}
PARTS = tuple(_KNOWN)
IF_WIDE = (
    "If the table is wide, with a row or a column for each run, pass axes=('runs', 'examples') "
    "where rows are runs or axes=('examples', 'runs') where columns are."
)
_OTHERS = {
    "array": ("label", "group", "run", "example", "packed"),
    "column": ("label", "group", "run", "example", "repeat", "learner"),
}


@dataclass(frozen=True)
class Parts:
    """The name of what holds the values, its kind where known, and the names of other parts.

    ``predicted`` says that the name speaks of predictions, which mean nothing without labels.
    """

    value: str
    kind: str | None
    others: Mapping[str, str] = field(default_factory=dict)
    unread: tuple[str, ...] = ()
    predicted: bool = False


def part_of(name: str) -> str | None:
    """What a name is known as.

    >>> part_of("Y_true"), part_of("logits"), part_of("Run ID"), part_of("epoch")
    ('label', 'probability', 'run', None)
    """
    plain = normal(name)
    every = [*_KNOWN.items(), *_ELSE.items()]
    return next((part for part, known in every if plain in known), None)


def find_parts(
    names: Sequence[str],
    source: str,
    *,
    noun: str = "array",
    key: str | None = None,
    kind: str | None = None,
    columns: PartMap | None = None,
) -> Parts:
    """Find the values and whatever comes with them among named arrays or columns."""
    said = check_map(columns, names, source, noun)
    others = find_others(names, source, said, noun)
    chosen = [(part, name) for part in KIND_OF if (name := said.get(part)) is not None]
    if key is not None:
        _check_there(key, names, source, f"key={brief(key)}", noun)
        chosen = [(part_of(key) or "", key)]
    elif len(names) == 1 and not chosen:
        chosen = [(part_of(names[0]) or "", names[0])]
        others = {}
    elif not chosen:
        left = [name for name in names if name not in others.values()]
        chosen = _candidates(left, said, kind)
    if len(chosen) != 1:
        raise _which(chosen, names, source, noun, kind)
    part, value = chosen[0]
    known = kind or KIND_OF.get(part)
    others = {part: name for part, name in others.items() if name != value}
    unread = tuple(name for name in names if name != value and name not in others.values())
    return Parts(value, known, others, unread, part in ("prediction", "label"))


def find_others(names: Sequence[str], source: str, said: PartMap, noun: str) -> dict[str, str]:
    """Find the parts that are not the values: labels, groups, runs and so on."""
    taken = set(said.values())
    found: dict[str, str] = {}
    for part in _OTHERS[noun]:
        if part in said:
            there = [name for name in (said[part],) if name is not None]
        else:
            free = [name for name in names if name not in taken]
            there = [name for name in free if normal(name) in _KNOWN[part]]
            there = there or [n for n in free if normal(n) in _ELSE.get(part, ())]
        if len(there) > 1:
            raise InputError(
                f"{len(there)} {noun}s of {source} could be the {part}: {list_names(there)}. Choose "
                f"with columns={{{part!r}: {brief(there[0])}}}, or leave it out with None."
            )
        if there:
            found[part] = there[0]
    return found


def check_map(columns: PartMap | None, names: Sequence[str], source: str, noun: str) -> dict[str, str | None]:
    """Check that the user's map speaks of known parts and of names that are there."""
    said = dict(columns or {})
    for part, name in said.items():
        if part not in PARTS:
            raise InputError(
                f"columns has the key {brief(part)}, which is no part of predictions."
                f"{suggest(part, PARTS)} Parts are {', '.join(PARTS)}."
            )
        if name is not None:
            _check_there(name, names, source, f"columns={{{part!r}: {brief(name)}}}", noun)
    given = [name for name in said.values() if name is not None]
    if len(set(given)) < len(given):
        twice = next(name for name in given if given.count(name) > 1)
        raise InputError(f"columns gives {brief(twice)} two parts to play: it can play one.")
    return said


def _check_there(name: str, names: Sequence[str], source: str, setting: str, noun: str) -> None:
    if name not in names:
        raise InputError(f"{setting}: {source} has no such {noun}.{suggest(name, names)} It has {list_names(names)}.")


def _candidates(names: Sequence[str], said: PartMap, kind: str | None) -> list[tuple[str, str]]:
    """Values by name; where the user says the kind, those that can be of it."""
    found = [(part, name) for name in names if (part := part_of(name)) in KIND_OF]
    found = [(part, name) for part, name in found if part is not None and part not in said]
    if kind is None:
        return found
    exact = [(part, name) for part, name in found if KIND_OF[part] == kind]
    return exact or [(part, name) for part, name in found if part == "prediction"]


def _which(
    chosen: Sequence[tuple[str, str]], names: Sequence[str], source: str, noun: str, kind: str | None
) -> InputError:
    def way(name: str) -> str:
        if noun == "array":
            return f"key={brief(name)}"
        part = part_of(name) if part_of(name) in KIND_OF else "prediction"
        return f"columns={{{part!r}: {brief(name)}}}"

    if chosen:
        there = [name for _, name in chosen]
        more = "" if kind else ", or say which kind= is meant"
        return InputError(
            f"{len(there)} {noun}s of {source} could be the predictions: {list_names(there)}. Choose "
            f"with {way(there[0])}{more}."
        )
    wanted = f" of kind={kind!r}" if kind else ""
    choices = [name for name in names if part_of(name) is None] or list(names)
    wide = f" {IF_WIDE}" if noun == "column" else ""
    return InputError(
        f"No {noun} of {source} is known as predictions{wanted}. It has {list_names(names)}: say which "
        f"with {way(choices[0])}, or name it preds, errors, correct, losses or probabilities.{wide}"
    )
