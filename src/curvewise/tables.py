"""Numbers and tables as text: Markdown, LaTeX, HTML and plain."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from curvewise.errors import InputError
from curvewise.text import one_line

if TYPE_CHECKING:
    from numpy.typing import NDArray


_LATEX = str.maketrans(
    {c: "\\" + c for c in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
)


def format_table(columns: Mapping[str, Sequence[Any] | NDArray[Any]], format: str = "markdown", digits: int = 2) -> str:
    r"""Write columns as a Markdown, LaTeX, HTML or plain-text table.

    >>> print(format_table({"learner": ["a|b"], "e_N": [18.861]}))
    | learner | e_N   |
    |:--------|------:|
    | a\|b    | 18.86 |
    """
    writers: dict[str, Callable[[list[str], list[list[str]], list[bool]], str]] = {
        "markdown": _markdown,
        "latex": _latex,
        "html": _html,
        "text": _text,
    }
    if format not in writers:
        raise InputError(f"format={format!r} is not known: use one of {', '.join(writers)}.")
    names = [str(name) for name in columns]
    cells = [[_cell(v, digits) for v in column] for column in columns.values()]
    right = [all(_is_number(v) for v in column) and len(column) > 0 for column in columns.values()]
    return writers[format](names, [list(row) for row in zip(*cells, strict=True)], right)


_FORMULA = ("=", "+", "-", "@")
_LINK = re.compile(r"\](?=[(\[:])")
_TAG = re.compile(r"(?<!\\)<")
_WWW = re.compile(r"\b(www)\.", re.IGNORECASE)
_HEADING = re.compile(r"^\s*#")


def csv_cell(value: Any) -> Any:
    """A cell for a CSV file: a text that a spreadsheet would compute gets an apostrophe.

    >>> csv_cell("=1+1"), csv_cell("-0.5"), csv_cell(-0.5), csv_cell("resnet"), csv_cell(" =1")
    ("'=1+1", '-0.5', -0.5, 'resnet', "' =1")
    """
    if not isinstance(value, str) or not is_formula(value):
        return value
    try:
        float(value)
    except ValueError:
        return f"'{value}"
    return value


def is_formula(text: str) -> bool:
    """Whether a text begins like one that a spreadsheet would compute, blanks aside."""
    return text.startswith(("\t", "\r", "\n")) or text.lstrip().startswith(_FORMULA)


def markdown_text(text: str) -> str:
    r"""One line that Markdown shows as it is: no links, images, headings or tags of HTML.

    >>> print(markdown_text("![x](http://a.b) in [0.1, 0.2]"), markdown_text("<img src=x>"))
    ![x]\(http:\//a.b) in [0.1, 0.2] &lt;img src=x>
    >>> print(markdown_text("a\n# head"), markdown_text("# head"), markdown_text("www.a.b"))
    a # head \# head www\.a.b
    """
    line = _HEADING.sub(r"\\#", one_line(text))
    unlinked = _WWW.sub(r"\1\.", _LINK.sub(r"]\\", line)).replace("://", r":\//")
    return _TAG.sub("&lt;", unlinked)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _cell(value: Any, digits: int) -> str:
    if value is None or (isinstance(value, Real) and math.isnan(value)):
        return ""
    # numpy registers its scalars with the abstract numbers, so that it need not be imported here.
    if not isinstance(value, Real) or isinstance(value, Integral):
        return str(value)
    x = float(value)
    if math.isinf(x):
        return "∞" if x > 0 else "−∞"
    whole = x.is_integer() and abs(x) >= 10
    return f"{x:,.0f}" if whole or abs(x) >= 1e6 else f"{x:.{digits}f}"


def _text(names: list[str], rows: list[list[str]], right: list[bool]) -> str:
    width = [max(len(r[i]) for r in [names, *rows]) for i in range(len(names))]
    lines = [
        "  ".join(c.rjust(w) if r else c.ljust(w) for c, w, r in zip(row, width, right, strict=True))
        for row in [names, *rows]
    ]
    return "\n".join(line.rstrip() for line in lines)


def _markdown(names: list[str], rows: list[list[str]], right: list[bool]) -> str:
    rows = [[markdown_text(c).replace("|", r"\|") for c in row] for row in [names, *rows]]
    width = [max([3, *(len(r[i]) for r in rows)]) for i in range(len(names))]

    def line(row: list[str]) -> str:
        return "| " + " | ".join(c.ljust(w) for c, w in zip(row, width, strict=True)) + " |"

    rule = "|".join("-" * (w + 1) + ":" if r else ":" + "-" * (w + 1) for w, r in zip(width, right, strict=True))
    return "\n".join([line(rows[0]), f"|{rule}|", *map(line, rows[1:])])


_SYMBOLS = {"e_N": "$e_N$", "beta_N": r"$\beta_N$", "gamma": r"$\gamma$", "R2": "$R^2$"}


def _latex_cell(text: str) -> str:
    """Escape text; a symbol that leads it, infinities and minus signs become mathematics."""
    first, *rest = text.split(" ", 1)
    if first in _SYMBOLS:
        return " ".join([_SYMBOLS[first], *(r.translate(_LATEX) for r in rest)])
    if text.startswith("-") and text[1:].replace(",", "").replace(".", "").isdigit():
        return f"${text}$"
    return text.translate(_LATEX).replace("−∞", r"$-\infty$").replace("∞", r"$\infty$")


def _latex(names: list[str], rows: list[list[str]], right: list[bool]) -> str:
    spec = "".join("r" if r else "l" for r in right)
    lines = [" & ".join(map(_latex_cell, row)) + r" \\" for row in [names, *rows]]
    head = [rf"\begin{{tabular}}{{{spec}}}", r"\hline", lines[0], r"\hline"]
    return "\n".join([*head, *lines[1:], r"\hline", r"\end{tabular}"])


def _html(names: list[str], rows: list[list[str]], right: list[bool]) -> str:
    head = "".join(f"<th>{html.escape(n)}</th>" for n in names)
    body = "".join(
        "<tr>"
        + "".join(
            f'<td style="text-align:{"right" if r else "left"}">{html.escape(c)}</td>'
            for c, r in zip(row, right, strict=True)
        )
        + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
