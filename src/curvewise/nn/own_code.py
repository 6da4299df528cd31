"""Code of the user's own, such as factories of networks: names that need it, and its import.

Nothing here decides whether code may be imported: a study does (``Study.trust``), which asks
:func:`names_own_code` first.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import importlib.util
import os
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from curvewise.errors import InputError
from curvewise.nn.training import misfit

KNOWN = ("sklearn.",)
"""Installed packages whose public modules a study file may have imported before it is trusted."""

FETCHING = ("pretrained", "checkpoint_path", "weights")
"""Beginnings of timm's and torchvision's options that fetch weights, or open files in formats of their own."""


def names_own_code(name: str, options: Mapping[str, Any] | None = None) -> bool:
    """Tell whether making what a name stands for imports code that a file chose.

    Parameters
    ----------
    name : str
        Of an architecture, an estimator or a function.
    options : dict, optional
        Arguments that it is called with.

    Examples
    --------
    >>> [names_own_code(n) for n in ("mlp", "hf:folder", "sklearn.svm:SVC", "nets:make", "this:x")]
    [False, False, False, True, True]

    Modules of scikit-learn that are not public may import what is not installed with it:

    >>> names_own_code("sklearn.utils._testing:MinimalClassifier")
    True
    """
    kind, colon, _ = name.partition(":")
    if kind in ("timm", "torchvision"):
        return any(key.startswith(FETCHING) for key in options or ())
    return bool(colon) and kind != "hf" and not _is_known(name)


def _is_known(name: str) -> bool:
    parts = name.replace(":", ".").split(".")
    public = not any(part.startswith("_") or part in ("tests", "conftest") for part in parts)
    return name.startswith(KNOWN) and public


def find_function(asked: str, name: str, folder: Path | None) -> Callable[..., Any]:
    """Import a function or class of an installed module, or of a file in the study's folder.

    What is installed is never shadowed by a file in the folder: where both have a module of one
    name, that is an error. What needs no trust is imported only from outside the folder.

    Parameters
    ----------
    asked : str
        Argument that names it, for messages, such as ``"architecture"``.
    name : str
        ``"module:function"``.
    folder : Path, optional
        The study's.

    Raises
    ------
    InputError
        If it cannot be imported; the message names the module, the line and the remedy.
    """
    module, _, function = name.partition(":")
    if module.endswith(".py"):
        raise misfit(asked, name, f"Give '{module.removesuffix('.py')}:{function}', without '.py'.")
    known = _is_known(name)
    try:
        found = _imported(module, folder, known=known)
    except InputError as error:  # two modules of one name
        raise misfit(asked, name, error.message) from error
    except ModuleNotFoundError as error:
        # Commands without a study look in the current folder.
        here = folder is None or folder.resolve() == Path.cwd()
        place = "the current folder" if here else "the folder of the study"
        remedy = f"put {module}.py in {place} or install what it needs"
        if known:
            remedy = "install it, or correct the name"
        elif error.name != module:
            remedy = f"{module} needs it: install it, or put it beside {module}.py"
        raise misfit(asked, name, f"cannot import {error.name!r}: {remedy}.") from error
    except (Exception, SystemExit) as error:
        remedy = f"Correct the module {module!r}: it must be possible to import it."
        raise misfit(asked, name, failure(error, folder), remedy) from error
    except KeyboardInterrupt as stop:
        stop.add_note(f"{asked}={name!r}: stopped while {module!r} was imported.")
        raise
    result: Callable[..., Any] | None = getattr(found, function, None)
    if not callable(result):
        names = [n for n, v in vars(found).items() if callable(v) and not n.startswith("_")]
        raise misfit(asked, name, f"the module has no {function!r}; it has {', '.join(names[:10])}.")
    return result


def failure(error: BaseException, folder: Path | None) -> str:
    """Describe an exception, and the line of a file in the study's folder where it was raised."""
    inside = None if folder is None else folder.resolve()
    lines = [
        f" in {Path(frame.filename).name}, line {frame.lineno}"
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).is_absolute()  # unlike "<frozen importlib._bootstrap>"
        and inside is not None
        and Path(frame.filename).resolve().is_relative_to(inside)
    ]
    return f"fails{lines[-1] if lines else ''} with {type(error).__name__}: {error}."


def _imported(module: str, folder: Path | None, *, known: bool) -> ModuleType:
    if folder is None:
        with installed(folder) if known else contextlib.nullcontext():
            return importlib.import_module(module)
    path = folder.resolve() / (module.replace(".", "/") + ".py")
    top = module.partition(".")[0]
    beside = _beside(top, folder.resolve()) or (path if path.is_file() else None)
    if beside is not None:
        _refuse_clash(top, beside, folder.resolve())
        if not known:
            _check_imports(beside, folder.resolve(), {beside})
    if known:
        with installed(folder):
            return importlib.import_module(module)
    if path.is_file():
        return _loaded(module, path, path.stat().st_mtime_ns, folder)
    with importable(folder):
        return importlib.import_module(module)


def _beside(top: str, folder: Path) -> Path | None:
    """Return the file in a folder that ``import top`` would execute, if any."""
    places = (folder / f"{top}.py", folder / top / "__init__.py")
    return next((path for path in places if path.is_file()), None)


def _check_imports(path: Path, folder: Path, seen: set[Path]) -> None:
    """Refuse files beside the study that import a name which a file there and a package have."""
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):  # importing it reports that better
        return
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.add(node.module)
    for top in sorted({name.partition(".")[0] for name in names}):
        beside = _beside(top, folder)
        if beside is not None and beside not in seen:
            seen.add(beside)
            _refuse_clash(top, beside, folder)
            _check_imports(beside, folder, seen)


def _refuse_clash(top: str, beside: Path, folder: Path) -> None:
    other = _elsewhere(top, beside, folder)
    if other is not None:
        mine = beside.parent if beside.name == "__init__.py" else beside
        raise InputError(
            f"there are two modules {top!r}: {mine} beside the study, and {other}. Files beside a "
            f"study never take the place of other modules: rename {mine.name}."
        )


def _elsewhere(top: str, beside: Path, folder: Path) -> str | None:
    """Find a top-level module other than the one beside the study; None if there is none.

    Compared file by file, since a virtual environment may lie in the study's folder.
    """
    if top in sys.stdlib_module_names:
        return "that of Python's standard library"
    loaded = getattr(sys.modules.get(top), "__file__", None)
    if loaded is not None and Path(loaded).resolve() != beside:
        return f"{loaded}, which is imported already"
    # Without the folder itself, or the file beside the study would be found as its own rival.
    path = [entry for entry in sys.path if Path(entry or ".").resolve() != folder]
    for finder in sys.meta_path:
        if finder is PathFinder:
            spec = PathFinder.find_spec(top, path)
        else:
            spec = finder.find_spec(top, None) if hasattr(finder, "find_spec") else None
        if spec is not None and spec.origin and Path(spec.origin).resolve() != beside:
            return str(spec.origin)
    return None


@lru_cache(maxsize=32)
def _loaded(name: str, path: Path, changed: int, folder: Path | None) -> ModuleType:
    """Execute a file once per version: two studies may both have a ``models.py``."""
    # Named by path and time of change: a file that was edited is executed again, also within one session.
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
    """Put the folder at the end of Python's path inside the block."""
    if folder is None:
        yield
        return
    entry = str(folder.resolve())
    sys.path.append(entry)
    try:
        yield
    finally:
        # The last one is ours: the same folder may be there for other reasons.
        for i in reversed(range(len(sys.path))):
            if sys.path[i] == entry:
                del sys.path[i]
                break


@contextlib.contextmanager
def installed(folder: Path | None) -> Iterator[None]:
    """Remove the folder and the current one from Python's path inside the block."""
    kept = installed_only(sys.path, *([] if folder is None else [folder]))
    hidden = [(i, entry) for i, entry in enumerate(sys.path) if entry not in kept]
    sys.path[:] = kept
    try:
        yield
    finally:
        for i, entry in hidden:
            sys.path.insert(i, entry)


def installed_only(path: Sequence[str], *folders: Path) -> list[str]:
    """Return Python's path without some folders, and without the current one.

    Such a folder stays where packages, curvewise among them, are installed in it, or where
    PYTHONPATH names it in full.

    >>> installed_only(["", "/usr/lib/python"])
    ['/usr/lib/python']
    """
    places = [sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib", "purelib", "platlib")]
    places += filter(os.path.isabs, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    stay = {Path(__file__).resolve().parents[2], *(Path(place).resolve() for place in places)}
    gone = {Path().resolve(), *(folder.resolve() for folder in folders)} - stay
    return [entry for entry in path if Path(entry or ".").resolve() not in gone]
