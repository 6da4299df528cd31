"""Functions of the user's own: in a file beside the study, or installed."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

from curvewise.errors import InputError


def find_function(asked: str, name: str, folder: Path | None) -> Callable[..., Any]:
    """A function of a module; a file in the study's folder comes before what is installed.

    Parameters
    ----------
    asked : str
        What it is for, in messages, such as ``"architecture"``.
    name : str
        ``"module:function"``.
    folder : Path, optional
        The study's.
    """
    asked = f"{asked}={name!r}"
    module, _, function = name.partition(":")
    path = None if folder is None else folder / (module.replace(".", "/") + ".py")
    try:
        if path is not None and path.is_file():
            resolved = path.resolve()
            found = _loaded(module, resolved, resolved.stat().st_mtime_ns, folder)
        else:
            with importable(folder):
                found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise InputError(
            f"{asked}: cannot import {error.name!r}: put {module}.py in the folder of the study "
            "or install what it needs."
        ) from error
    result: Callable[..., Any] | None = getattr(found, function, None)
    if not callable(result):
        names = [n for n, v in vars(found).items() if callable(v) and not n.startswith("_")]
        raise InputError(
            f"{asked}: the module has no {function!r}; it has {', '.join(names[:10])}."
        )
    return result


@lru_cache(maxsize=32)
def _loaded(name: str, path: Path, changed: int, folder: Path | None) -> ModuleType:
    """Execute a file once per version: two studies may both have a ``models.py``."""
    unique = f"_curvewise_{abs(hash(path))}_{changed}_{name}"
    spec = importlib.util.spec_from_file_location(unique, path)
    if spec is None or spec.loader is None:
        raise InputError(f"{path} cannot be imported as a Python module.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[unique] = module
    try:
        with importable(folder):
            spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[unique]
        raise
    return module


@contextlib.contextmanager
def importable(folder: Path | None) -> Iterator[None]:
    """The folder on Python's path, for as long as something is imported from it."""
    if folder is None:
        yield
        return
    entry = str(folder.resolve())
    sys.path.insert(0, entry)
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove(entry)
