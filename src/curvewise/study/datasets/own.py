"""Data that a function of the user's makes, and the copy of it that a store keeps.

A study that is not trusted does not call the function. It reads the copy that ``run`` left.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from curvewise.errors import CurvewiseError, InputError, StoreError, os_reason
from curvewise.io._arrays import npz_arrays
from curvewise.io._stored import DATA, open_file
from curvewise.io._table import brief
from curvewise.nn._own_code import failure, find_function, importable
from curvewise.study._files import write_file
from curvewise.study.dataset import Dataset
from curvewise.study.datasets._request import Request


def make_own(request: Request) -> Dataset:
    """Call ``function``, as ``"module:function"``, with all other options by name.

    The module is one that is installed, or a file in the study's folder. The function must give
    the same :class:`~curvewise.study.Dataset` every time, in every process: runs are named by what
    is in it, and each worker calls it for itself.
    """
    name = request.text("function")
    assert name is not None
    asked = f"data.function={brief(name)}"
    if not all(name.partition(":")[::2]):
        raise InputError(f"{asked}: give 'module:function'.")
    options = request.rest()
    called = find_function("data.function", name, request.folder)
    _check_options(asked, called, options)
    try:
        with importable(request.folder):  # files beside it, which it may import only now
            found = called(**options)
    except InputError as error:  # of a Dataset that cannot be, say
        raise InputError(f"{asked}: {error}") from error
    except CurvewiseError:
        raise
    except (Exception, SystemExit) as error:
        raise InputError(f"{asked} {failure(error, request.folder)}") from error
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


@dataclass(frozen=True, eq=False)
class MadeCopy:
    """A copy, in a store, of the data that a function made.

    Attributes
    ----------
    path : Path
        An ``.npz`` file: the arrays of a Dataset, and ``about``, the rest of it as JSON.
    options : dict
        The function and its options; another function or other options have another file.
    folder : Path
        Of the study.
    """

    path: Path
    options: Mapping[str, Any]
    folder: Path

    @property
    def is_there(self) -> bool:
        """Whether something has its name, be it a copy or not."""
        return os.path.lexists(self.path)

    def write(self, data: Dataset) -> None:
        """Write the copy, unless it is there and the same."""
        about = {
            "function": self.options["function"],
            "module": self._module_hash(),
            "digest": data.digest,
            "made": time.strftime("%Y-%m-%d %H:%M"),
            **{name: getattr(data, name) for name in _PLAIN},
        }
        with suppress(StoreError):  # one that is missing or damaged is written anew
            known = _read_about(self.path)
            if all(known.get(k) == about[k] for k in ("module", "digest")):
                return
        arrays = {name: getattr(data, name) for name in _ARRAYS}
        arrays = {name: value for name, value in arrays.items() if value is not None}
        arrays["about"] = np.array(json.dumps(about))
        store, folder = self.path.parent.parent, self.path.parent.name
        try:
            write_file(store, folder, self.path.name, lambda file: np.savez(file, **arrays))
        except StoreError:
            raise
        except OSError as error:
            raise StoreError(
                f"The data that {self.options['function']} made cannot be kept in "
                f"{self.path.parent}: {os_reason(error, place=False)}. Mend that, and run the "
                "study again."
            ) from error

    def read(self) -> Dataset:
        """Read the copy as the Dataset that the function gave."""
        return read_made(self.path, self._what)

    def assumption(self) -> str:
        """Say what a reader of the copy takes for granted."""
        about, name = _read_about(self.path, self._what), self.options["function"]
        text = (
            f"{name} was not called, and is assumed to give the same data as for the run of "
            f"{about.get('made')}: pass --trust (in Python trust=True) to call it."
        )
        if about.get("module") != self._module_hash():
            text += " Its file has changed since: if the data did too, run makes all runs anew."
        return text

    @property
    def _what(self) -> str:
        return f"the data that {self.options['function']} made"

    def _module_hash(self) -> str | None:
        """Hash of the file that the function is in, where it lies in the study's folder."""
        module = str(self.options["function"]).partition(":")[0]
        path = self.folder / (module.replace(".", "/") + ".py")
        return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None


_ANY = "a study's data"


def read_made(path: Path, what: str = _ANY) -> Dataset:
    """Read a copy of data that a function made, and check it against its recorded digest."""
    about = _read_about(path, what)
    with unreadable_data(path, what):
        names, get = npz_arrays(path, open_file)
        arrays: dict[str, Any] = {name: get(name) for name in _ARRAYS if name in names}
        plain = {name: about[name] for name in _PLAIN}
        lists = {name: tuple(plain[name]) for name in ("classes", "notes")}
        found = Dataset(**arrays, **plain | lists)
        if found.digest != about.get("digest"):
            raise ValueError("its examples are not those recorded")
    return found


def _read_about(path: Path, what: str = _ANY) -> dict[str, Any]:
    """Read what a copy says of the data beside the arrays."""
    with unreadable_data(path, what):
        _, get = npz_arrays(path, open_file)
        found = json.loads(str(get("about")))
        if not isinstance(found, dict):
            raise ValueError("it does not say what it holds")
    return found


@contextmanager
def unreadable_data(path: Path, what: str = _ANY) -> Iterator[None]:
    """Say of whatever goes wrong within that a copy of data is damaged, and what to do."""
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        reason = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        if isinstance(error, OSError):
            reason = os_reason(error, place=False)
        # What the store writes is not compressed, so that allowing more is no remedy here.
        reason = reason.partition(": pass allow_large")[0].removesuffix(".")
        raise StoreError(
            f"{path} cannot be read: {reason}. It is a copy of {what}: remove it, and run the "
            "study again."
        ) from error


_ARRAYS = ("x", "y", "test_x", "test_y")
_PLAIN = ("classes", "name", "padding", "notes", "targets", "standardise")


def made_copy(options: Mapping[str, Any], store: Path, folder: Path) -> MadeCopy:
    """Name the copy, in a store, of what a function makes with these options."""
    key = json.dumps(dict(options), sort_keys=True, default=str)
    digest = hashlib.sha256(key.encode()).hexdigest()[:32]
    return MadeCopy(store / DATA / f"made-{digest}.npz", options, folder)
