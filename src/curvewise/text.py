"""Numbers and names as people read them, and messages that mention arguments.

A message that says ``unit='percent'`` to someone who writes Python says ``--unit percent`` on the command line. It is
written once, with :func:`arg` in the place of the argument, and becomes a :class:`Message`.
"""

from __future__ import annotations

import ast
import difflib
import math
import re
import unicodedata
from collections.abc import Callable, Iterable
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from curvewise.types.results import Interval


# Marks around an argument inside a text, from the private area of Unicode so that no user's text holds them.
_ARGUMENT, _EITHER, _THEN, _END = "\ue000", "\ue001", "\ue002", "\ue003"
_MARKED = re.compile("([\ue000\ue001])([^\ue000-\ue003]*)\ue002([^\ue000-\ue003]*)\ue003")
_MARKS = re.compile("[\ue000-\ue003]")
UNSET: Any = object()
"""No value: the argument is only named."""


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
    """Return ``repr`` cut to a width, so that a hostile cell cannot flood a message.

    >>> import numpy as np
    >>> brief("a"), brief(np.int64(10))
    ("'a'", '10')
    """
    if hasattr(value, "dtype") and not getattr(value, "ndim", 1):  # a scalar of numpy
        value = value.item()
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # an integer of thousands of digits, lists in lists
        text = f"<{type(value).__name__} too long to show>"
    return text if len(text) <= width else text[: width - 1] + "…"


def format_path(path: PurePath | str) -> str:
    r"""Name a file in a message: quoted if the name could do something to a terminal.

    >>> print(format_path("runs.npy"), format_path("a\x1b[2J.npy"))
    runs.npy 'a\x1b[2J.npy'
    """
    name = path if isinstance(path, str) else path.name
    return name if name.isprintable() and len(name) <= 120 else brief(name, 120)


def list_names(names: Iterable[Any], most: int = 20) -> str:
    """Write names in quotes, the first few of many."""
    names = list(names)
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(brief(name) for name in names[:most]) + more


def suggest(name: Any, options: Iterable[str]) -> str:
    """Write a sentence with the closest names, empty if none is close."""
    options = list(options)
    lower = {option.strip().lower(): option for option in options}
    close = difflib.get_close_matches(str(name).strip().lower(), lower, n=3, cutoff=0.6)
    return f" Did you mean {' or '.join(brief(lower[c]) for c in close)}?" if close else ""


def format_value(value: float, unit: str) -> str:
    """Write an error as a percentage, a loss as it is: three digits, for numbers without an interval.

    >>> format_value(0.00163, "fraction"), format_value(18.861, "percent"), format_value(3.2763, "loss")
    ('0.163%', '18.9%', '3.28')
    >>> format_value(3e-9, "fraction"), format_value(0.99996, "fraction")
    ('3e-07%', '100.0%')
    >>> format_value(float("nan"), "fraction")
    'unknown'
    """
    if unit not in _SCALE or not math.isfinite(value):
        return format_number(value, 3)
    percent = _SCALE[unit] * value
    if abs(percent) < _DUST or percent == 100:
        return f"{_fixed(percent, 0)}%"
    return f"{_fixed(percent, max(2 - math.floor(math.log10(abs(percent))), 1))}%"


def format_target(value: float, unit: str) -> str:
    """Write a number that someone chose, with the digits it was given in.

    >>> format_target(0.05, "fraction"), format_target(2.5, "percent"), format_target(3.28, "loss")
    ('5%', '2.5%', '3.28')
    """
    if not math.isfinite(value):
        return format_number(value)
    return f"{_SCALE[unit] * value:.10g}%" if unit in _SCALE else f"{value:.10g}"


_SCALE = {"fraction": 100.0, "percent": 1.0}
"""Units that people read as percentages, and the factor to them."""
_SIGN_DIGITS = 2
"""Decimals more than the width supports that a limit may have so that it does not read as zero."""
_TINY = 0.1
"""Share of the estimate from which a limit on its side of 0 has two digits."""
_ASYMMETRIC = 2.0
"""From this ratio of the distances of the two limits on, the limits have digits of their own."""
_DUST = 1e-12
"""Percentages below this are rounding errors, and written as 0."""


def supported_decimals(estimate: float, low: float, high: float) -> tuple[int, int, int]:
    """Return the decimals of an estimate and of its limits that the interval supports, negative for hundreds.

    Two digits of half the width where it begins with 1 to 4, one where it begins with 5 to 9. A limit that is not
    zero gets a digit or two more where it would read as zero, because its sign is the verdict. Where one limit is
    much closer to the estimate than the other, the two have digits of their own: of their distance, or two significant
    ones where the limit lies between 0 and the estimate.

    >>> supported_decimals(3.186, 2.705, 3.953), supported_decimals(48_000, 41_000, 52_000)
    ((1, 1, 1), (-3, -3, -3))
    >>> supported_decimals(0.6, 0.004, 1.2), supported_decimals(1.2, 0.3, 1500)
    ((3, 3, 3), (1, 2, -2))
    >>> supported_decimals(1.2, 0.038, 4.4), supported_decimals(0.00098, 9e-21, 0.26)
    ((1, 2, 1), (5, 2, 2))
    """
    ends = [x for x in (low, high) if math.isfinite(x)]
    half = (high - low) / 2 if len(ends) == 2 else abs(estimate - ends[0]) if ends else math.nan
    if not math.isfinite(half) or half <= 0:
        known = abs(estimate) if math.isfinite(estimate) else max(map(abs, ends), default=0.0)
        common = 2 - math.floor(math.log10(known)) if known else 0  # no width: three digits of the number
        return common, common, common
    wide = _first_decimals(half)
    below, above = estimate - low, high - estimate
    near, far = min(below, above), max(below, above)
    if len(ends) == 1 or not estimate or not 0 < near < far / _ASYMMETRIC:
        common = max(_sign_decimals(x, wide) for x in ends)
        return common, common, common
    close, other = (low, high) if below <= above else (high, low)
    digits = _two_digits(estimate)
    fine = max(wide, digits if 0 <= close / estimate < 1 else min(_first_decimals(near), digits))
    at_close, at_other = _sign_decimals(close, fine), _sign_decimals(other, wide)
    if _TINY < close / estimate < 1:  # as of a ratio or a size: two digits of the limit, too
        at_close = max(at_close, min(_two_digits(close), fine + _SIGN_DIGITS))
    elif close and not round(close, at_close):  # as good as 0, and written so
        at_close = at_other
    return (fine, at_close, at_other) if close == low else (fine, at_other, at_close)


def _two_digits(value: float) -> int:
    return 1 - math.floor(math.log10(abs(value)))


def _first_decimals(half: float) -> int:
    """Return the decimals of the first two digits of a number that begins with 1 to 4, else of the first."""
    size = math.floor(math.log10(half))
    return -size + (half / 10.0**size < 5)


def _sign_decimals(end: float, decimals: int) -> int:
    """Return the decimals, or one or two more where a limit would otherwise read as zero."""
    zeros = [d for d in range(_SIGN_DIGITS + 1) if end and not round(end, decimals + d)]
    return decimals + (len(zeros) if len(zeros) <= _SIGN_DIGITS else 0)


def format_interval(
    interval: Interval | Iterable[float], unit: str = "", write: Callable[[float], str] | None = None
) -> str:
    """Write an estimate with its limits, in the digits that the interval supports; errors as percentages.

    Parameters
    ----------
    interval : Interval or tuple
        Estimate, low and high. Where the limits are not known, only the estimate is written.
    unit : str
        "fraction" and "percent" are written as percentages, all else as plain numbers.
    write : callable, optional
        Writes each of the three numbers instead.

    Examples
    --------
    >>> from curvewise.types import Interval
    >>> format_interval(Interval(0.03186, 0.02705, 0.03953), "fraction")
    '3.2% [2.7, 4.0]'
    >>> format_interval((18.861, 18.1, 19.71), "percent"), format_interval((0.00163, 0.00117, 0.00219), "fraction")
    ('18.9% [18.1, 19.7]', '0.16% [0.12, 0.22]')
    >>> format_interval((48_213, 41_000, float("inf"))), format_interval((2.31, 2.2004, 2.4))
    ('48,000 [41,000, ∞]', '2.31 [2.20, 2.40]')
    >>> format_interval((48_213, 41_000, 5e9)), format_interval((0.00457, 0, 0.0953), "fraction")
    ('48,000 [41,000, 5,000,000,000]', '0.46% [0.00, 9.5]')
    >>> format_interval(Interval(1, 0.5, 2), write="{:.1f}".format)
    '1.0 [0.5, 2.0]'
    """
    estimate, low, high = interval
    if write is not None:
        return f"{write(estimate)} [{write(low)}, {write(high)}]"
    if math.isnan(low) or math.isnan(high):
        return format_value(estimate, unit)
    scale, sign = _SCALE.get(unit, 1.0), "%" if unit in _SCALE else ""
    dust = _DUST if sign else 1e-100
    numbers = [scale * x if not abs(scale * x) < dust else 0.0 for x in (estimate, low, high)]
    center, *limits = map(_fixed, numbers, supported_decimals(*numbers))
    return f"{center}{sign if math.isfinite(estimate) else ''} [{', '.join(limits)}]"


def _fixed(value: float, decimals: int) -> str:
    """Write a number with so many decimals, rounded to tens or hundreds where they are negative; never "-0.0"."""
    if not math.isfinite(value):
        return format_number(value)
    if decimals > 6 or abs(value) >= 1e15:
        return format_number(value, 3)
    rounded = round(value, decimals) + 0.0  # -0.0 becomes 0.0
    return f"{rounded:,.{max(decimals, 0)}f}"


SMALL_PVALUE = 0.001
"""P-values below this are written as that: no tail is known so far out, and no decision turns on it."""


def format_pvalue(p: float, smallest: float = 0.0) -> str:
    """Write a p-value with two digits; a small one, or the smallest that its method tells, as an upper bound.

    >>> format_pvalue(9.1e-7), format_pvalue(0.034), format_pvalue(0.0), format_pvalue(0.01, 0.01)
    ('p < 0.001', 'p = 0.034', 'p < 0.001', 'p < 0.01')
    """
    if p < SMALL_PVALUE or is_smallest(p, smallest):
        return f"p < {max(smallest, SMALL_PVALUE):.1g}"
    return f"p = {p:.2g}"


def pvalue_text(p: float) -> str:
    """Write a p-value for a cell of a table, without its letter.

    >>> pvalue_text(0.0342), pvalue_text(1e-30), pvalue_text(float("nan"))
    ('0.034', '< 0.001', '–')
    """
    return "–" if math.isnan(p) else format_pvalue(p).removeprefix("p ").removeprefix("= ")


def is_smallest(p: float, smallest: float) -> bool:
    """Return True for a p-value that is known to be no larger than the smallest that its method tells."""
    return p <= smallest * (1 + 1e-6)  # one minus a level differs from it by rounding


def format_chance(p: float) -> str:
    """Write a probability in whole percent; "<1%" and ">99%" near the ends, which only certainty reaches.

    >>> format_chance(0.127), format_chance(9.4e-16), format_chance(0.9967), format_chance(1.0)
    ('13%', '<1%', '>99%', '100%')
    """
    if math.isnan(p):
        return "–"
    if 0 < p < 1 and f"{p:.0%}" in ("0%", "100%"):
        return "<1%" if p < 0.5 else ">99%"
    return f"{p:.0%}"


def format_number(value: float, digits: int = 4) -> str:
    """Write a number for people: about four significant digits, ``∞`` for infinity.

    >>> format_number(1234567.8), format_number(0.12345), format_number(400.0), format_number(18.861)
    ('1,235,000', '0.1235', '400', '18.86')
    >>> format_number(float("inf")), format_number(float("nan"))
    ('∞', 'unknown')
    """
    if math.isnan(value):
        return "unknown"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value == int(value) and abs(value) < 1e9:
        return f"{int(value):,}"
    if abs(value) < 1e-4:
        return f"{value:.{digits - 1}g}"
    if abs(value) >= 1e15:
        return f"{value:.{digits - 1}g}"
    if abs(value) >= 10**digits:
        keep = len(str(int(abs(value)))) - digits
        return f"{round(value, -keep):,.0f}"
    whole = max(1, len(str(int(abs(value)))) if abs(value) >= 1 else 0)
    return f"{value:,.{max(0, digits - whole)}f}" if abs(value) >= 1 else f"{value:.{digits}g}"


def format_size(n: float) -> str:
    """Write an estimated training size: three digits, and from 10 on whole.

    >>> format_size(299_825.2), format_size(50.84), format_size(float("inf"))
    ('300,000', '51', '∞')
    """
    if not math.isfinite(n):
        return format_number(n)
    rounded = float(f"{n:.3g}")
    return format_number(float(round(rounded)) if rounded >= 10 else rounded)


def as_count(n: float) -> int | float:
    """Return a training size as an int if it is one.

    >>> as_count(400.0), as_count(0.5)
    (400, 0.5)
    """
    return int(n) if float(n).is_integer() else float(n)


def format_count(count: int, noun: str) -> str:
    """Write a number of things.

    >>> format_count(1, "task"), format_count(1200, "run")
    ('1 task', '1,200 runs')
    """
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


_BREAKS = re.compile(r"[\r\n\t\v\f\x1c-\x1e\x85\u2028\u2029]+")
_BIDI = set("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def one_line(text: object) -> str:
    r"""Return one line without control characters and switches of writing direction.

    >>> one_line("a\x1b[31mred\nb")
    'a[31mred b'
    """
    found = str(text)
    if found.isprintable():
        return found
    spaced = _BREAKS.sub(" ", found)
    return "".join(c for c in spaced if unicodedata.category(c) not in ("Cc", "Cs") and c not in _BIDI)
