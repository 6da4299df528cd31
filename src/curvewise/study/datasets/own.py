"""Data that a function of the user's makes."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from curvewise.errors import CurvewiseError, InputError
from curvewise.io._table import brief
from curvewise.nn._own_code import find_function, importable
from curvewise.study.dataset import Dataset
from curvewise.study.datasets._request import Request


def make_own(request: Request) -> Dataset:
    """Call ``function``, as ``"module:function"``, with all other options by name.

    A file in the study's folder comes before what is installed. The function must give the same
    :class:`~curvewise.study.Dataset` every time, in every process: runs are named by what is in
    it, and each worker calls it for itself.
    """
    name = request.text("function")
    assert name is not None
    asked = f"data.function={brief(name)}"
    module, _, function = name.partition(":")
    if not module or not function:
        raise InputError(f"{asked}: give 'module:function'.")
    if module.endswith(".py"):
        raise InputError(f"{asked}: give '{module.removesuffix('.py')}:{function}', without '.py'.")
    options = request.rest()
    try:
        called = find_function("data.function", name, request.folder)
        _check_options(asked, called, options)
    except CurvewiseError:
        raise
    except (Exception, SystemExit) as error:
        raise InputError(f"{asked} {_failure(error, request.folder)}") from error
    try:
        with importable(request.folder):  # files beside it, which it may import only now
            found = called(**options)
    except InputError as error:  # of a Dataset that cannot be, say
        raise InputError(f"{asked}: {error}") from error
    except CurvewiseError:
        raise
    except (Exception, SystemExit) as error:
        raise InputError(f"{asked} {_failure(error, request.folder)}") from error
    if not isinstance(found, Dataset):
        raise InputError(
            f"{asked} gives {type(found).__name__}: let it return cw.Dataset(x, y), with "
            "test_x and test_y if there are any, and targets='numbers' for numbers."
        )
    return found


def _check_options(asked: str, function: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Refuse options that the function does not take, and name those that it does."""
    try:
        takes = inspect.signature(function)
    except (TypeError, ValueError):  # some that are written in C do not say
        return
    try:
        takes.bind(**options)
    except TypeError as error:
        names = ", ".join(takes.parameters) or "no options"
        raise InputError(f"{asked}: {error}; it takes {names}.") from error


def _failure(error: BaseException, folder: Path) -> str:
    """What happened, and on which line of a file in the study's folder."""
    inside = folder.resolve()
    lines = [
        f" in {Path(frame.filename).name}, line {frame.lineno}"
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).is_absolute()  # unlike "<frozen importlib._bootstrap>"
        and Path(frame.filename).resolve().is_relative_to(inside)
    ]
    return f"fails{lines[-1] if lines else ''} with {type(error).__name__}: {error}."
