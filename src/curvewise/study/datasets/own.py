"""Data that a function of the user's makes."""

from __future__ import annotations

from curvewise.errors import CurvewiseError, InputError
from curvewise.io._table import brief
from curvewise.nn._own_code import find_function
from curvewise.study.dataset import Dataset
from curvewise.study.datasets._request import Request


def make_own(request: Request) -> Dataset:
    """Call ``function``, as ``"module:function"``, with all other options by name.

    A file in the study's folder comes before what is installed. The function must give the same
    :class:`~curvewise.study.Dataset` every time: runs are named by what is in it.
    """
    name = request.text("function")
    assert name is not None
    asked = f"data.function={brief(name)}"
    if not all(name.partition(":")):
        raise InputError(f"{asked}: give 'module:function'.")
    try:
        function = find_function("data.function", name, request.folder)
        found = function(**request.rest())
    except CurvewiseError:
        raise
    except (Exception, SystemExit) as error:
        raise InputError(f"{asked} fails with {type(error).__name__}: {error}.") from error
    if not isinstance(found, Dataset):
        raise InputError(
            f"{asked} gives {type(found).__name__}: let it return cw.study.Dataset(x, y), with "
            "test_x and test_y if there are any, and targets='numbers' for numbers."
        )
    return found
