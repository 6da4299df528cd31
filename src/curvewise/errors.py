"""Errors and warnings of curvewise."""

from __future__ import annotations

import errno
import re
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from curvewise.text import UNSET, Message, arg, arg_name, mentioned

_REMEDIES = {
    errno.ENOSPC: "make room there",
    errno.EDQUOT: "make room there",
    errno.EROFS: "name a folder that can be written to",
    errno.EACCES: "name a folder that you may use, or change its permissions",
    errno.EPERM: "name a folder that you may use, or change its permissions",
}


_PREDICATE = re.compile(
    r"(is|are|was|has|have|holds?|must|may|can|cannot|needs?|does|do|allows|names|gives?|differs?) "
)


class CurvewiseError(Exception):
    """Base of every error that curvewise raises on purpose."""

    def __init__(self, *parts: Any, **options: Any) -> None:
        # A text may mention arguments, which Python and the command line word each in their own terms.
        super().__init__(*(Message(p) if isinstance(p, str) else p for p in parts), **options)


class InputError(CurvewiseError, ValueError):
    """An argument cannot be used.

    Parameters
    ----------
    problem : str
        What is wrong, and what is allowed.
    argument : str, optional
        The argument that cannot be used; the message begins with it. A problem whose text begins with ``arg(…)``
        need not name it again.
    value : optional
        The value seen; only the argument is named without one.
    remedy : str
        What to do, as a sentence.

    Attributes
    ----------
    argument, value, remedy
        As above; None or empty where not given.
    message : Message
        All of it, which the command line words with its options.

    Examples
    --------
    >>> error = InputError("must be above 0.", argument="margin", value=-1, remedy="Pass a margin such as 0.005.")
    >>> str(error), error.argument, error.value
    ('margin=-1: must be above 0. Pass a margin such as 0.005.', 'margin', -1)
    """

    def __init__(self, problem: str, *, argument: str | None = None, value: Any = UNSET, remedy: str = "") -> None:
        text = problem.marked if isinstance(problem, Message) else problem
        subject = (argument, value) if argument is not None else mentioned(text)
        self.argument, self.value = subject[0], None if subject[1] is UNSET else subject[1]
        self.remedy = Message(remedy)
        if argument is not None and value is not UNSET:
            text = f"{arg(argument, value)}: {text}"
        elif argument is not None:  # the name is the subject of a sentence such as "n holds -50."
            text = f"{arg_name(argument)}{' ' if _PREDICATE.match(text) else ': '}{text}"
        self.message = Message(f"{text} {self.remedy.marked}" if remedy else text)
        super().__init__(self.message)

    def __reduce__(self) -> tuple[type[InputError], tuple[Message], dict[str, Any]]:
        """Cross the border of a process with the message, the fields and the notes."""
        return type(self), (self.message,), self.__dict__


class UntrustedCodeError(InputError):
    """A study file names code that has not been trusted, so that it is not imported."""


class MissingDependencyError(CurvewiseError, ImportError):
    """A feature needs a package that is not installed; the message names the extra to install."""


class StoreError(CurvewiseError, OSError):
    """A stored run is damaged, or belongs to another study than the one asked for."""


class Terminated(KeyboardInterrupt):
    """The process was asked to end by SIGTERM, which is handled like Ctrl-C."""


def os_reason(error: OSError, *, place: bool = True) -> str:
    """Say what the system refused, where, and what to do, as the end of a sentence.

    Without ``place`` where the sentence has already named the folder, whose files mean nothing to the reader.

    >>> os_reason(OSError(28, "No space left on device", "runs/.partial"))
    'No space left on device (runs/.partial): make room there'
    """
    if error.errno is None or error.strerror is None:  # one of ours, or none of the system's
        return str(error).removesuffix(".")
    where = f" ({error.filename})" if error.filename and place else ""
    remedy = _REMEDIES.get(error.errno)
    return f"{error.strerror}{where}" + (f": {remedy}" if remedy else "")


def parse_reason(error: Exception) -> str:
    """Say why a text cannot be parsed, without advice for programmers of Python.

    >>> parse_reason(ValueError("Exceeds the limit (4300 digits) for integer string conversion: "
    ...                         "value has 5000 digits; use sys.set_int_max_str_digits()"))
    'it holds a whole number of thousands of digits'
    """
    if "set_int_max_str_digits" in str(error):
        return "it holds a whole number of thousands of digits"
    return str(error)


class CurvewiseWarning(UserWarning):
    """Something in the data or the fit deserves a look; also kept on the result."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*(Message(p) if isinstance(p, str) else p for p in parts))


def warn_all(notes: Iterable[str], stacklevel: int = 3) -> None:
    """Issue warnings that point at the caller of the function that calls this one."""
    for text in notes:
        warnings.warn(text, CurvewiseWarning, stacklevel=stacklevel)


@contextmanager
def quietly() -> Iterator[None]:
    """Keep back warnings that are on the result, where they will be shown."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CurvewiseWarning)
        yield
