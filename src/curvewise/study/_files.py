"""Directories and files of a store that appear whole or not at all; no link is ever followed."""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO

from curvewise.errors import StoreError, os_reason
from curvewise.io._stored import (
    ASIDE,
    LABELS,
    OPENS_IN_FOLDERS,
    REPLACED,
    is_folder,
    open_folder,
    replaced_id,
)

LEFTOVER_SECONDS = 3600.0
# What a rename onto a directory, or onto a file or link with its name, answers; Windows says that
# access is denied.
_IN_THE_WAY = {errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR} | (
    {errno.EACCES} if os.name == "nt" else set()
)
_is_leftover = re.compile(
    r"([0-9a-f]{20}|[0-9a-f]{64}(\.npy)?|(made-)?[0-9a-f]{32}(\.npz)?)-[0-9a-f]{12}"
).fullmatch
"""Names that are made here for runs, labels and data; nothing else in the folder is touched."""


def write_aside(store: Path, name: str, files: Mapping[str, bytes]) -> Path:
    """Write and sync files in a fresh directory that no reader looks at; all of them or none."""
    folder = own_folder(store, ASIDE) / _fresh(name)
    try:
        folder.mkdir()
        # Its age is nothing by the clock of the file system, which may be another machine's.
        remove_leftovers(store, now=folder.lstat().st_mtime)
        for file, data in files.items():
            _write(folder / file, data)
        _sync_directory(folder)
    except BaseException:
        remove(folder.parent, folder.name)
        raise
    return folder


def publish(
    aside: Path, final: Path, keep: Callable[[], bool], check: Callable[[], object]
) -> Path:
    """Rename ``aside`` to ``final``; where that exists, replace it unless ``keep()`` says no.

    What is replaced is moved aside under a name that says so, and only deleted once its successor
    is in place and ``check()`` has not raised: after a crash in between, :func:`put_back` finds it.
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
                try:
                    check()
                except BaseException:
                    discard(aside.parent, final)
                    raise
                return final
            if keep():
                return final
            with suppress(FileNotFoundError):  # another process may have taken it away
                old = aside.with_name(f"{final.name}{REPLACED}{uuid.uuid4().hex[:12]}")
                os.rename(final, old)
                replaced.append(old)
    finally:
        remove(aside.parent, aside.name)
        for old in replaced:
            _put_back_or_discard(old, final)


def write_file(
    store: Path, folder: str, name: str, data: bytes | Callable[[IO[bytes]], object]
) -> None:
    """Write a file aside, sync it and rename it into a folder of the store, over one there.

    ``data`` is what it holds, or what writes that to an open file.
    """
    aside = own_folder(store, ASIDE) / _fresh(name)
    try:
        final = own_folder(store, folder) / name
        _write(aside, data)
        os.replace(aside, final)
        _sync_directory(final.parent)
    finally:
        remove(aside.parent, aside.name)


def own_folder(store: Path, name: str) -> Path:
    """Make a folder that a store has for itself, such as ``.partial``; refuse a link to elsewhere.

    Raises
    ------
    StoreError
        If a link or a file has its name.
    """
    folder = store / name
    if not is_folder(folder):
        if os.path.lexists(folder):
            raise StoreError(
                f"{folder} is a link or a file, where the store has a folder of its own: remove it."
            )
        make_folder(folder)
    return folder


def check_writable(store: Path) -> None:
    """Write a small file to the store and remove it, so that a full disk or a link is found now.

    Raises
    ------
    OSError
        If the next run could not be written either.
    """
    own_folder(store, LABELS)
    aside = own_folder(store, ASIDE) / _fresh("0" * 20)
    try:
        _write(aside, bytes(1 << 16))
    finally:
        remove(aside.parent, aside.name)


def cannot_write(store: Path, error: OSError) -> StoreError:
    """Say in one sentence that a store cannot be written: read-only, say, or full."""
    if isinstance(error, StoreError):
        return error
    reason = os_reason(error, place=False)
    return StoreError(f"The store {store} cannot be written: {reason}. What is stored stays.")


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
    for name in names_in(store / ASIDE):
        path = store / ASIDE / name
        with suppress(OSError):
            if _is_leftover(name) and now - _last_written(path) > LEFTOVER_SECONDS:
                discard(path.parent, path)


def remove_partial(store: Path, identity: str) -> None:
    """Remove what was half-written of a run; only for who holds its claim."""
    for name in names_in(store / ASIDE):
        if _is_leftover(name) and name.startswith(f"{identity}-"):
            discard(store / ASIDE, store / ASIDE / name)


def put_back(store: Path) -> None:
    """Put runs back that were about to be replaced when their writer was interrupted.

    Their writer may be alive, between its two renames: it then finds them in the way once more.
    """
    for name in names_in(store / ASIDE):
        identity = replaced_id(name)
        if identity is not None:
            _put_back_or_discard(store / ASIDE / name, store / identity)


def _put_back_or_discard(old: Path, final: Path) -> None:
    if is_folder(old) and not os.path.lexists(final):
        with suppress(OSError):  # another was put there in this moment, or has done the same
            os.rename(old, final)
            _sync_directory(final.parent)
            return
    discard(old.parent, old)


def discard(aside: Path, path: Path) -> None:
    """Delete a run or what was written of one, under another name.

    Whoever is about to rename it, to publish it or to put it back, then finds nothing, rather than
    what is half deleted.
    """
    stem = path.name.removeprefix("made-").partition(".")[0].partition("-")[0]
    doomed = aside / _fresh(stem)
    with suppress(OSError):
        os.rename(path, doomed)
        remove(aside, doomed.name)


def remove(folder: Path, name: str, *, directories: bool = True) -> None:
    """Delete a file, link or directory in a folder of the store, if it is there and can be.

    Neither the folder nor anything in the directory may be a link to elsewhere: these are not
    followed, even if they are put there while this runs.
    """
    with suppress(OSError):
        if not OPENS_IN_FOLDERS:
            if is_folder(folder):
                path = folder / name
                if not is_folder(path):
                    path.unlink()
                elif directories:
                    shutil.rmtree(path)
            return
        at = open_folder(folder)
        try:
            if stat.S_ISDIR(os.stat(name, dir_fd=at, follow_symlinks=False).st_mode):
                if directories:
                    shutil.rmtree(name, ignore_errors=True, dir_fd=at)
            else:
                os.unlink(name, dir_fd=at)
        finally:
            os.close(at)


def names_in(folder: Path) -> list[str]:
    """Names of what is in a folder of the store; none where there is no folder."""
    if is_folder(folder):
        with suppress(OSError):
            return sorted(os.listdir(folder))
    return []


def _last_written(path: Path) -> float:
    """When something was last written to a file, or to a directory or a file in it."""
    times = [path.lstat().st_mtime]
    for name in names_in(path):
        with suppress(FileNotFoundError):
            times.append((path / name).lstat().st_mtime)
    return max(times)


def _write(path: Path, data: bytes | Callable[[IO[bytes]], object]) -> None:
    with open(path, "xb") as out:
        data(out) if callable(data) else out.write(data)
        out.flush()
        os.fsync(out.fileno())


def _fresh(name: str) -> str:
    return f"{name}-{uuid.uuid4().hex[:12]}"


def _sync_directory(folder: Path) -> None:
    if os.name == "nt":  # directories cannot be opened there
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
