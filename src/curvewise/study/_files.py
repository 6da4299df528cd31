"""Directories that appear whole or not at all."""

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
# What a rename onto a directory answers; Windows says that access is denied.
_IN_THE_WAY = {errno.ENOTEMPTY, errno.EEXIST} | ({errno.EACCES} if os.name == "nt" else set())


def write_aside(store: Path, name: str, files: Mapping[str, bytes]) -> Path:
    """Write and sync files in a fresh directory that no reader looks at."""
    remove_leftovers(store, now=time.time())
    folder = _aside(store, name)
    folder.mkdir(parents=True)
    for file, data in files.items():
        with open(folder / file, "wb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
    _sync_directory(folder)
    return folder


def publish(aside: Path, final: Path, keep: Callable[[], bool]) -> Path:
    """Rename ``aside`` to ``final``; where that exists, replace it unless ``keep()`` says no."""
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
            _remove(final)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def remove_leftovers(store: Path, now: float) -> None:
    """Remove what interrupted writes left, an hour after they were interrupted."""
    with suppress(OSError):
        for folder in (store / ASIDE).iterdir():
            with suppress(OSError):
                if now - folder.stat().st_mtime > LEFTOVER_SECONDS:
                    shutil.rmtree(folder, ignore_errors=True)


def _remove(final: Path) -> None:
    """Take a directory away in one step, then delete it; another process may have done so."""
    old = _aside(final.parent, final.name)
    with suppress(FileNotFoundError):
        os.rename(final, old)
        shutil.rmtree(old, ignore_errors=True)


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
