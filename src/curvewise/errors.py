"""Errors and warnings of curvewise, and the messages in them, which mention arguments.

A message that says ``unit='percent'`` to someone who writes Python says ``--unit percent`` on the command line. It is
written once, with :func:`arg` in the place of the argument, and becomes a :class:`Message`.
"""

from __future__ import annotations

import ast
import difflib
import errno
import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import PurePath
from typing import Any, Self

UNSET: Any = object()
"""No value: the argument is only named."""

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
        need not name it again, and one that begins with the bare name, as of a column, stays as it is.
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
        if argument is not None and text.startswith(f"{argument} "):
            pass  # a name that is no option on the command line, such as that of a column
        elif argument is not None and value is not UNSET:
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


@contextmanager
def importing(sentence: str, extra: str) -> Iterator[None]:
    """Turn an import that fails inside the block into an error that names what needs the package, and the extra.

    ``{}`` in the sentence stands for the name of the package.
    """
    try:
        yield
    except MissingDependencyError:
        raise
    except ImportError as error:
        missing = isinstance(error, ModuleNotFoundError)
        state = "is not installed" if missing else f"cannot be imported ({error})"
        needs = sentence.replace("{}", str(error.name))
        raise MissingDependencyError(f'{needs}, which {state}: pip install "curvewise[{extra}]".') from error


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


# Messages and the names in them.

# Marks around an argument inside a text, from the private area of Unicode so that no user's text holds them.
_ARGUMENT, _EITHER, _THEN, _END = "\ue000", "\ue001", "\ue002", "\ue003"
_MARKED = re.compile("([\ue000\ue001])([^\ue000-\ue003]*)\ue002([^\ue000-\ue003]*)\ue003")
_MARKS = re.compile("[\ue000-\ue003]")


def arg(name: str, value: Any = UNSET) -> str:
    """Mention an argument, and perhaps a value for it, inside the text of a :class:`Message`.

    >>> Message(f"Pass {arg('unit', 'percent')}, or {arg('labels')} for classes.")
    "Pass unit='percent', or labels=… for classes."
    """
    text = "…" if value is UNSET else _MARKS.sub("", brief(value, 200))
    return f"{_ARGUMENT}{name}{_THEN}{text}{_END}"


def arg_name(name: str) -> str:
    """Mention an argument by its bare name, as the subject of a sentence.

    >>> Message(f"{arg_name('n')} holds -50.")
    'n holds -50.'
    """
    return f"{_ARGUMENT}{name}{_THEN}{_END}"


def either(python: str, command: str) -> str:
    """Mention something that Python and the command line call by different names.

    >>> Message(f"Make one with {either('cw.blind_guess(…)', '`curvewise transfer blind`')}.")
    'Make one with cw.blind_guess(…).'
    """
    return f"{_EITHER}{python}{_THEN}{command}{_END}"


class Message(str):
    """A text in the terms of Python that can also be worded in those of the command line.

    Parameters
    ----------
    text : str
        With arguments written by :func:`arg` and :func:`either`.
    """

    __slots__ = ("marked",)
    marked: str

    def __new__(cls, text: str) -> Self:
        """Keep the marks aside and show the terms of Python."""
        marked = text.marked if isinstance(text, Message) else text
        plain = _MARKED.sub(lambda m: f"{m[2]}={m[3]}" if m[1] == _ARGUMENT and m[3] else m[2], marked)
        message = super().__new__(cls, plain)
        message.marked = marked
        return message

    def __reduce__(self) -> tuple[type[Message], tuple[str]]:
        """Copy and pickle with the marks, as messages of workers are."""
        return type(self), (self.marked,)

    def worded(self, option: Callable[[str, Any], str]) -> str:
        """Return the message with each argument as ``option(name, value)`` writes it.

        >>> Message(f"Pass {arg('unit', 'percent')}.").worded(lambda name, value: f"--{name} {value}")
        'Pass --unit percent.'
        """

        def write(found: re.Match[str]) -> str:
            return found[3] if found[1] == _EITHER else option(found[2], _value(found[3]))

        return _MARKED.sub(write, self.marked)


def neutral(text: str, **ways: str) -> str:
    """Word a message for a picture or a page, which both those who write Python and those who type commands read.

    ``ways`` say how an argument is given there, with ``{0}`` for its value.

    >>> neutral(Message(f"Use {arg('form', 'auto')}, or pass {arg('chance')}."))
    'Use form auto, or pass chance.'
    >>> neutral(Message(f"Use {arg('form', 'auto')}."), form="`study report --form {0}`")
    'Use `study report --form auto`.'
    """
    if not isinstance(text, Message):
        return text

    def write(name: str, value: Any) -> str:
        if name in ways and value is not UNSET:
            return ways[name].format(value)
        return name if value is UNSET or value is True else f"{name} {value}"

    return text.worded(write)


def mentioned(text: str) -> tuple[str | None, Any]:
    """Return the argument that a text begins with and its value; None where it begins with something else.

    >>> mentioned(f"{arg('unit', 'metres')} is not known."), mentioned("Pass a unit.")[0]
    (('unit', 'metres'), None)
    """
    found = _MARKED.match(text)
    return (found[2], _value(found[3])) if found and found[1] == _ARGUMENT else (None, UNSET)


def _value(text: str) -> Any:
    try:
        return UNSET if text in ("…", "") else ast.literal_eval(text)
    except (ValueError, SyntaxError):  # a value that was cut, or that only Python can write
        return text


def prefix(head: str, text: str) -> str:
    """Put a head before a text, which remains a :class:`Message` if it is one.

    >>> prefix("resnet: ", "the fit is poor")
    'resnet: the fit is poor'
    """
    return Message(head + text.marked) if isinstance(text, Message) else head + text


def brief(value: Any, width: int = 60) -> str:
    """Return ``repr`` cut to a width, so that a hostile cell cannot flood a message; scalars of numpy as plain values.

    >>> import numpy as np
    >>> brief("a"), brief(np.int64(10)), brief({np.str_("a"): (np.float64(0.5), 1)})
    ("'a'", '10', "{'a': (0.5, 1)}")
    """
    try:
        text = repr(_plain(value))
    except (ValueError, RecursionError):  # an integer of thousands of digits, lists in lists
        text = f"<{type(value).__name__} too long to show>"
    return text if len(text) <= width else text[: width - 1] + "…"


def _plain(value: Any) -> Any:
    """Return scalars of numpy as values of Python, also inside lists, tuples, sets and dicts."""
    if hasattr(value, "dtype") and not getattr(value, "ndim", 1):
        return value.item()
    if type(value) is dict:
        return {_plain(key): _plain(inner) for key, inner in value.items()}
    return type(value)(map(_plain, value)) if type(value) in (list, tuple, set) else value


def format_path(path: PurePath | str) -> str:
    r"""Name a file in a message: quoted if the name could do something to a terminal.

    >>> print(format_path("runs.npy"), format_path("a\x1b[2J.npy"))
    runs.npy 'a\x1b[2J.npy'
    """
    name = path if isinstance(path, str) else path.name
    return name if name.isprintable() and len(name) <= 120 else brief(name, 120)


def list_names(names: Iterable[Any], most: int = 20, *, quoted: bool = True) -> str:
    """Write names, in quotes unless they are part of a sentence about results, the first few of many.

    >>> list_names(["a", "b"]), list_names("abc", 2, quoted=False)
    ("'a', 'b'", 'a, b and 1 more')
    """
    names = list(names)
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(brief(name) if quoted else str(name) for name in names[:most]) + more


def suggest(name: Any, options: Iterable[str]) -> str:
    """Write a sentence with the closest names, empty if none is close."""
    options = list(options)
    lower = {option.strip().lower(): option for option in options}
    close = difflib.get_close_matches(str(name).strip().lower(), lower, n=3, cutoff=0.6)
    return f" Did you mean {' or '.join(brief(lower[c]) for c in close)}?" if close else ""
