"""What curvewise raises and warns with."""

from __future__ import annotations

import errno

_REMEDIES = {
    errno.ENOSPC: "make room there",
    errno.EDQUOT: "make room there",
    errno.EROFS: "name a folder that can be written to",
    errno.EACCES: "name a folder that you may use, or change its permissions",
    errno.EPERM: "name a folder that you may use, or change its permissions",
}


class CurvewiseError(Exception):
    """Base of every error that curvewise raises on purpose."""


class InputError(CurvewiseError, ValueError):
    """An argument cannot be used.

    The message names the argument, the value seen, what is allowed and what to do.
    """


class UntrustedCodeError(InputError):
    """An answer needs code that a study file names, and nobody said that it may be imported."""


class MissingDependencyError(CurvewiseError, ImportError):
    """A feature needs a package that is not installed; the message names the extra to install."""


class StoreError(CurvewiseError, OSError):
    """A stored run is damaged, or belongs to another study than the one asked for."""


class Terminated(KeyboardInterrupt):
    """The process was asked to end by SIGTERM, which is handled like Ctrl-C."""


def os_reason(error: OSError, *, place: bool = True) -> str:
    """Say what the system refused, where, and what to do, as the end of a sentence.

    Without ``place`` where a sentence has named the folder: the file in it is nobody's concern.

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
