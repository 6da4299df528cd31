"""Arrays in files: numpy's and safetensors', mapped or read a few runs at a time."""

from __future__ import annotations

import math
import zipfile
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError, MissingDependencyError
from curvewise.io._files import LARGEST_ARRAYS, check_unpacked
from curvewise.io._found import Found
from curvewise.io._parts import KIND_OF, PartMap, find_parts, part_of
from curvewise.io._table import brief, check_names, listed, shown

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
            raise InputError(f"key={brief(key)}: {shown(path)} holds one array without a name.")
        part = part_of(path.stem)
        known = kind or KIND_OF.get(part or "")
        said = f"{known} by the name of the file" if known != kind else ""
        return Found(
            map_npy(path), shown(path), known, predicted=part == "prediction", notes=(said,)
        )
    names, get = named_arrays(path)
    return from_named(names, get, shown(path), key=key, kind=kind, columns=columns)


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
    notes += [f"not read: {listed(parts.unread)}"] if parts.unread else []
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
            _check_header(stream, path.stat().st_size, shown(path))
        return np.lib.format.open_memmap(path, mode="r")
    except InputError:
        raise
    except _UNREADABLE as error:
        raise InputError(f"{shown(path)} is not a whole .npy file ({error}): {_WHOLE}.") from error


def _check_header(stream: IO[bytes], size: int, where: str) -> None:
    """Refuse an array that cannot be in a file of this size, before memory is taken for it."""
    form = np.lib.format
    try:
        first = form.read_magic(stream) == (1, 0)
        read = form.read_array_header_1_0 if first else form.read_array_header_2_0
        shape, _, dtype = read(stream)
    except Exception as error:  # a damaged header may hold anything that Python can parse
        said = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(
            f"{where} has no whole header of an array ({said:.200}): {_WHOLE}."
        ) from error
    if dtype.hasobject:
        raise InputError(f"{where} {_OBJECTS}.")
    count: int = math.prod(map(int, shape))
    there = size - stream.tell()
    odd = any(k < 0 or k >= 1 << 62 for k in shape) or (not dtype.itemsize and count)
    if odd or count * dtype.itemsize > there:
        held = brief(shape) if len(shape) < 9 else f"{len(shape)} axes"
        raise InputError(
            f"{where} says that it holds {dtype} of shape {held}, and has {there:,} bytes: the "
            "file is damaged."
        )


def check_file(path: Path) -> None:
    """Refuse what is not there, not a file or empty."""
    try:
        if not path.exists():
            raise InputError(f"source={brief(str(path), 200)}: there is no such file.")
        if not path.is_file():
            raise InputError(f"{shown(path)} is not a plain file.")
        if path.stat().st_size == 0:
            raise InputError(f"{shown(path)} is empty.")
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
            raise InputError(f"{shown(path)} is not a whole .npz file{before}: {_WHOLE}.")
        try:
            with zipfile.ZipFile(stream) as archive:
                found = archive.infolist()
        except _UNREADABLE as error:
            raise InputError(
                f"{shown(path)} is not a whole .npz file ({error}): {_WHOLE}."
            ) from error
    check_names([about.filename for about in found], shown(path))
    return {about.filename: about for about in found}


def _npz_array(path: Path, opened: Opener, name: str) -> NDArray[Any]:
    members, where = _members(path, opened), f"{brief(name)} in {shown(path)}"
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
            f"Reading {shown(path)} needs safetensors, which is not installed: pip install "
            'safetensors, or "curvewise[torch]".'
        ) from error
    check_file(path)
    try:
        return safe_open(path, framework="numpy")
    except (SafetensorError, OSError) as error:
        raise InputError(
            f"{shown(path)} is not a whole safetensors file ({error}): {_WHOLE}."
        ) from error


def _guarded(path: Path, name: str, read: Callable[[], Any]) -> Any:
    try:
        return read()
    except Exception as error:  # numpy has no bfloat16 and no float8; the error depends on versions
        raise InputError(
            f"{brief(name)} in {shown(path)} cannot be read as a numpy array ({error}): save it as"
            " float32 or as whole numbers."
        ) from error
