"""A folder with one file per run, read a few runs at a time."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError
from curvewise.io._arrays import ARRAY_FILES, array_file, from_named
from curvewise.io._found import Found, agreed
from curvewise.io._parts import KIND_OF, PartMap, part_of
from curvewise.io._table import brief, listed, shown
from curvewise.io._vectors import VECTOR_FILES, flags, read_named, read_vector

_BESIDE = {"label": "labels", "group": "groups", "example": "example_ids"}
_PAPERS = (".md", ".rst", ".log", ".yaml", ".yml", ".toml", ".pdf", ".png", ".svg")


class RunFiles:
    """Runs × examples (× repeats or classes), each run in a file that is read when asked for."""

    def __init__(
        self, paths: Sequence[Path], read: Callable[[Path], NDArray[Any]], shape: Any, dtype: Any
    ) -> None:
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
                raise InputError(f"{shown(path)} has changed since it was first looked at.")
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
        source=shown(folder),
        axes=("runs", "examples"),
        run_ids=np.array([_stem(path) for path in paths], dtype=np.str_),
        notes=(f"{len(paths):,} runs from the files in {shown(folder)}", *first.notes),
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
    held: Any = {
        name: agreed(name, getattr(found, name), v, found.source) for name, v in extra.items()
    }
    said = [f"{name} from a file beside" for name in extra]
    return replace(found, notes=(*found.notes, *said, *notes), **held)


def _one_run(path: Path, key: str | None, kind: str | None, columns: PartMap | None) -> Found:
    names, get = read_named(path)
    found = from_named(names, get, shown(path), key=key, kind=kind, columns=columns)
    if len(found.values.shape) not in (1, 2) or 0 in found.values.shape:
        raise InputError(
            f"{shown(path)} has shape {tuple(found.values.shape)}: a file is one run, with a value "
            "for each example."
        )
    if found.values.dtype.kind not in "biufU":
        raise InputError(
            f"{shown(path)} has dtype {found.values.dtype}, which holds no predictions: save "
            "numbers or text."
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
                f"{shown(path)} in {shown(folder)} has an ending that is not known, and might be a "
                f"run: known are {', '.join(VECTOR_FILES)}. Move it out of the folder, or save it "
                "as one of these."
            )
        elif part in _BESIDE:
            _once(beside, part, path)
        else:
            _once(runs, _stem(path), path)
    if not runs:
        inside = f": only {listed(unread)}" if unread else ""
        raise InputError(f"{shown(folder)} holds no files of runs{inside}.")
    notes = [f"not read: {listed(unread)}"] if unread else []
    return list(runs.values()), beside, notes


def _once(found: dict[str, Path], name: str, path: Path) -> None:
    if name in found:
        raise InputError(
            f"{shown(found[name])} and {shown(path)} are both {brief(name)}: keep one of them."
        )
    found[name] = path


def _is_known(path: Path) -> bool:
    last = path.with_suffix("") if path.suffix.lower() == ".gz" else path
    packed_binary = last is not path and last.suffix.lower() in ARRAY_FILES
    return last.suffix.lower() in VECTOR_FILES and not packed_binary


def _stem(path: Path) -> str:
    name = path.name[:-3] if path.name.lower().endswith(".gz") else path.name
    return name.rpartition(".")[0] or name
