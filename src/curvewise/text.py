"""Numbers and names as people read them."""

from __future__ import annotations

import difflib
import math
import re
import unicodedata
from collections.abc import Iterable
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from curvewise.types.results import Interval


def brief(value: Any, width: int = 60) -> str:
    """``repr`` cut to a width, so that a hostile cell cannot flood a message.

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

    >>> print(shown("runs.npy"), shown("a\x1b[2J.npy"))
    runs.npy 'a\x1b[2J.npy'
    """
    name = path if isinstance(path, str) else path.name
    return name if name.isprintable() and len(name) <= 120 else brief(name, 120)


def list_names(names: Iterable[Any], most: int = 20) -> str:
    """Names in quotes, the first few of many."""
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
    """Errors as percentages, losses as they are.

    >>> said(0.00163, "fraction"), said(3.2763, "loss"), said(float("nan"), "fraction")
    ('0.163%', '3.276', 'unknown')
    """
    if unit != "fraction" or not math.isfinite(value):
        return format_number(value)
    percent = 100 * value
    return f"{percent:.2f}%" if abs(percent) >= 1 else f"{percent:.3f}%"


def format_interval(interval: Interval, unit: str) -> str:
    """An estimate with its limits in brackets.

    >>> said_interval(Interval(0.00163, 0.00115, 0.00217), "fraction")
    '0.163% [0.115%, 0.217%]'
    """
    low, high = format_value(interval.low, unit), format_value(interval.high, unit)
    return f"{format_value(interval.estimate, unit)} [{low}, {high}]"


def format_pvalue(p: float) -> str:
    """A p-value in two digits.

    >>> said_pvalue(9.1e-7), said_pvalue(0.034), said_pvalue(0.0)
    ('p = 9e-07', 'p = 0.034', 'p < 1e-300')
    """
    if p < 1e-300:
        return "p < 1e-300"
    return f"p = {p:.1g}" if p < 0.001 else f"p = {p:.2g}"


def format_number(value: float, digits: int = 4) -> str:
    """Write a number for people: about four significant digits, ``∞`` for infinity.

    >>> number(1234567.8), number(0.12345), number(400.0), number(18.861)
    ('1,235,000', '0.1235', '400', '18.86')
    >>> number(float("inf")), number(float("nan"))
    ('∞', 'unknown')
    """
    if math.isnan(value):
        return "unknown"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value == int(value) and abs(value) < 1e9:
        return f"{int(value):,}" if abs(value) >= 1e4 else str(int(value))
    if abs(value) < 1e-4:
        return f"{value:.{digits - 1}g}"
    if abs(value) >= 1e15:
        return f"{value:.{digits - 1}g}"
    if abs(value) >= 10**digits:
        keep = len(str(int(abs(value)))) - digits
        return f"{round(value, -keep):,.0f}"
    whole = max(1, len(str(int(abs(value)))) if abs(value) >= 1 else 0)
    return f"{value:.{max(0, digits - whole)}f}" if abs(value) >= 1 else f"{value:.{digits}g}"


def format_size(n: float) -> str:
    """A training size that was estimated: three digits, and from 10 on whole.

    >>> about(299_825.2), about(50.84), about(float("inf"))
    ('300,000', '51', '∞')
    """
    if not math.isfinite(n):
        return format_number(n)
    rounded = float(f"{n:.3g}")
    return format_number(float(round(rounded)) if rounded >= 10 else rounded)


def as_count(n: float) -> int | float:
    """A training size as an int if it is one.

    >>> whole(400.0), whole(0.5)
    (400, 0.5)
    """
    return int(n) if float(n).is_integer() else float(n)


_BREAKS = re.compile(r"[\r\n\t\v\f\x1c-\x1e\x85\u2028\u2029]+")


_BIDI = set("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def one_line(text: object) -> str:
    r"""One line without control characters and switches of writing direction.

    >>> clean("a\x1b[31mred\nb")
    'a[31mred b'
    """
    found = str(text)
    if found.isprintable():
        return found
    spaced = _BREAKS.sub(" ", found)
    return "".join(c for c in spaced if unicodedata.category(c) not in ("Cc", "Cs") and c not in _BIDI)
