"""Directories and files that appear whole or not at all."""

from __future__ import annotations

import errno
import os
import shutil
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

ASIDE = ".partial"  # inside the store, so that a rename never crosses file systems
LEFTOVER_SECONDS = 3600.0
_REPLACED = ".replaced-"
"""Marks a directory that was moved out of the way, and goes back should its successor not come."""
# What a rename onto a directory, or onto a file or link with its name, answers; Windows says that
# access is denied.
_IN_THE_WAY = {errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR} | (
    {errno.EACCES} if os.name == "nt" else set()
)


def write_aside(store: Path, name: str, files: Mapping[str, bytes]) -> Path:
    """Write and sync files in a fresh directory that no reader looks at; all of them or none."""
    remove_leftovers(store, now=time.time())
    folder = _aside(store, name)
    try:
        folder.mkdir(parents=True)
        for file, data in files.items():
            _write(folder / file, data)
        _sync_directory(folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return folder


def publish(aside: Path, final: Path, keep: Callable[[], bool]) -> Path:
    """Rename ``aside`` to ``final``; where that exists, replace it unless ``keep()`` says no.

    What is replaced is moved aside under a name that says so, and only deleted once its successor
    is in place: after a crash in between, :func:`put_back` finds it.
    """
    replaced: list[Path] = []
    try:
        while True:
            try:
                os.rename(aside, final)
            except OSError as error:
                if error.errno not in _IN_THE_WAY:
                    raise
            else:
                _sync_directory(final.parent)
                return final
            if keep():
                return final
            with suppress(FileNotFoundError):  # another process may have taken it away
                old = final.parent / ASIDE / f"{final.name}{_REPLACED}{uuid.uuid4().hex[:12]}"
                os.rename(final, old)
                replaced.append(old)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
        for old in replaced:
            _put_back_or_discard(old, final)


def write_file(store: Path, final: Path, data: bytes) -> None:
    """Write a file aside, sync it and rename it into place, over one that may be there."""
    aside = _aside(store, final.name)
    try:
        aside.parent.mkdir(parents=True, exist_ok=True)
        make_folder(final.parent)
        _write(aside, data)
        os.replace(aside, final)
        _sync_directory(final.parent)
    finally:
        with suppress(OSError):
            aside.unlink(missing_ok=True)


def make_folder(folder: Path) -> None:
    """Make a folder with its parents, so that it outlives a power cut."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    with suppress(OSError):  # a parent that may be entered but not read
        _sync_directory(folder.parent)


def remove_leftovers(store: Path, now: float) -> None:
    """Remove what interrupted writes left, an hour after they were interrupted."""
    put_back(store)
    with suppress(OSError), os.scandir(store / ASIDE) as entries:
        for entry in entries:
            with suppress(OSError):
                young = now - entry.stat().st_mtime <= LEFTOVER_SECONDS
                if not young and _REPLACED not in entry.name:
                    _delete(Path(entry.path))


def put_back(store: Path) -> None:
    """Put runs back that were about to be replaced when their writer was interrupted.

    Their writer may be alive, between its two renames: it then finds them in the way once more.
    """
    with suppress(OSError):
        for name in os.listdir(store / ASIDE):
            identity, mark, _ = name.partition(_REPLACED)
            if mark:
                _put_back_or_discard(store / ASIDE / name, store / identity)


def _put_back_or_discard(old: Path, final: Path) -> None:
    if not final.exists():
        with suppress(OSError):  # another was put there in this moment, or has done the same
            os.rename(old, final)
            _sync_directory(final.parent)
            return
    # Under another name, since what is half deleted must not be put back.
    doomed = old.with_name(f"{final.name}-{uuid.uuid4().hex[:12]}")
    with suppress(OSError):
        os.rename(old, doomed)
        _delete(doomed)


def _delete(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _write(path: Path, data: bytes) -> None:
    with open(path, "wb") as out:
        out.write(data)
        out.flush()
        os.fsync(out.fileno())


def _aside(store: Path, name: str) -> Path:
    return store / ASIDE / f"{name}-{uuid.uuid4().hex[:12]}"


def _sync_directory(folder: Path) -> None:
    if os.name == "nt":  # directories cannot be opened there
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
