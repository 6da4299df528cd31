"""Numbers and tables as text: Markdown, LaTeX, HTML and plain."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, NamedTuple

from curvewise.errors import InputError
from curvewise.text import (
    SMALL_PVALUE,
    format_chance,
    format_interval,
    format_number,
    format_value,
    is_smallest,
    one_line,
    pvalue_text,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from curvewise.types.results import Interval


_MATHEMATICS = r"""
    α \alpha β \beta γ \gamma δ \delta ε \varepsilon ζ \zeta η \eta θ \theta ι \iota κ \kappa λ \lambda μ \mu ν \nu
    ξ \xi π \pi ρ \rho σ \sigma τ \tau υ \upsilon φ \varphi χ \chi ψ \psi ω \omega Γ \Gamma Δ \Delta Θ \Theta Λ \Lambda
    Ξ \Xi Π \Pi Σ \Sigma Φ \Phi Ψ \Psi Ω \Omega µ \mu − - × \times ∞ \infty ± \pm · \cdot √ \surd ≤ \leq ≥ \geq ≠ \neq
    ≈ \approx ∼ \sim → \rightarrow ¹ ^1 ² ^2 ³ ^3 ½ \frac{1}{2} ¼ \frac{1}{4} ° ^\circ † ^\dagger ‡ ^\ddagger"""
"""Symbols that pdflatex does not know as text, each before what it is in mathematics."""
_PAIRS = _MATHEMATICS.split()
_LATEX = str.maketrans(
    {c: "\\" + c for c in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    | {"<": "$<$", ">": "$>$", "|": r"\textbar{}", '"': "''", "\xa0": "~", "\u202f": "~"}
    | {"–": "--", "—": "---", "…": r"\ldots{}", "‘": "`", "’": "'", "“": "``", "”": "''", "\ufffd": "?"}
    | {symbol: f"${command}$" for symbol, command in zip(_PAIRS[::2], _PAIRS[1::2], strict=True)}
)


NUMBER = re.compile(r"([<>] ?)?[-−]?[\d.,]+(e[-+]\d+)?%?|−?∞|–")
"""A text that reads as a number, and stands to the right in a table."""


class Cell(NamedTuple):
    """A cell that stands out.

    Attributes
    ----------
    text : str
        A number, or "–" for none.
    bold, underlined : bool
        In plain text an asterisk or a plus sign follows instead.
    signs : str
        Any of "*", "†" and "‡", which refer to notes below the table.
    after : str
        Plain text between the number and the signs, such as an interval in brackets.
    """

    text: str
    bold: bool = False
    underlined: bool = False
    signs: str = ""
    after: str = ""


def interval_cell(interval: Interval | Iterable[float], unit: str = "", *, bold: bool = False) -> Cell:
    """Write an estimate with its interval behind it, in the digits that the interval supports.

    >>> interval_cell((0.03186, 0.02705, 0.03953), "fraction", bold=True)
    Cell(text='3.2%', bold=True, underlined=False, signs='', after=' [2.7, 4.0]')
    """
    estimate, low, high = interval
    if math.isnan(estimate) and (math.isnan(low) or math.isnan(high)):
        return Cell("–")
    if not unit and all(isinstance(v, Integral) for v in (estimate, low, high)):  # ranks and counts have no decimals
        return Cell(f"{estimate:,}", bold=bold, after=f" [{low:,}, {high:,}]")
    text, bracket, ends = format_interval((estimate, low, high), unit).partition(" [")
    return Cell("–" if math.isnan(estimate) else text, bold=bold, after=bracket + ends)


WITHOUT_UNIT = (
    "probability|share|correlation|ratio|distance|gamma|factor|crossing|chance|power|one_more|r_squared|fraction|rank|"
    "random|magnitude|discrimination|(^|_)n(_|$)|runs|sizes?|draws|weights?|agreement|kendall|value"
)
"""Words in the names of columns and of quantities that are in no unit, whatever the unit of the result."""
HEADINGS = {
    "adjusted": "adjusted p",
    "adjusted_pvalue": "adjusted p",
    "pvalue": "p",
    "pvalue_holm": "adjusted p",
    "r_squared": "R²",
    "standard_error": "std error",
    "half_width": "half-width",
}


def readable_columns(
    columns: Mapping[str, Sequence[Any] | NDArray[Any]],
    unit: str = "",
    best: tuple[str, Sequence[int]] | None = None,
    smallest_pvalue: float = 0.0,
) -> dict[str, list[Any]]:
    """Write columns as people read them: an interval beside its estimate, errors as percentages, few digits.

    ``X, low, high`` and ``X, X_low, X_high`` become one column. ``best`` names a column and the rows to write bold.
    A row whose p-value is the smallest that its method tells has an upper bound of it and of its adjusted one.

    >>> readable_columns({"learner": ["a"], "error": [0.032], "low": [0.027], "high": [0.039]}, "fraction")
    {'learner': ['a'], 'error': [Cell(text='3.2%', bold=False, underlined=False, signs='', after=' [2.7, 3.9]')]}
    """
    ends = _limits_of(columns)
    limits = {name for pair in ends.values() for name in pair}
    rows = [str(name) for name in columns.get("quantity", columns.get("formula", []))]
    found: dict[str, list[Any]] = {}
    for name in columns:
        if name in limits:
            continue
        values = list(columns[name])
        units = [_unit_of(name, row, unit) for row in rows or [""] * len(values)]
        bold = best[1] if best and best[0] == name else ()
        if name in ends:
            parts = (values, columns[ends[name][0]], columns[ends[name][1]])
            triples = zip(*([math.nan if v is None else v for v in part] for part in parts), strict=True)
            cells: list[Any] = [
                interval_cell(t, u, bold=k in bold) for k, (t, u) in enumerate(zip(triples, units, strict=True))
            ]
        else:
            cells = [_readable(v, name, u, k in bold) for k, (v, u) in enumerate(zip(values, units, strict=True))]
            if _is_pvalue(name):
                # An adjusted p-value is a multiple of the plain one, and an upper bound where that is.
                plain = columns.get("pvalue", values) if "adjusted" in name else values
                for k, (p, value) in enumerate(zip(plain, values, strict=True)):
                    if isinstance(p, Real) and is_smallest(float(p), smallest_pvalue):
                        cells[k] = Cell(f"< {max(float(value), smallest_pvalue, SMALL_PVALUE):.1g}", k in bold)
            if {*units} == {unit} and unit in ("fraction", "percent"):
                cells = _alike(cells)
        found[HEADINGS.get(name, name.replace("_", " ") if name not in _SYMBOLS else name)] = cells
    return found


def _unit_of(name: str, row: str, unit: str) -> str:
    """Return the unit of a cell: shares of a variance are percentages, whatever the unit of the result."""
    if row == "distribution_share":
        return "fraction"
    return "" if re.search(WITHOUT_UNIT, f"{name} {row}".strip()) else unit


def _limits_of(columns: Mapping[str, Sequence[Any] | NDArray[Any]]) -> dict[str, tuple[str, str]]:
    """Return the columns that have an interval, with the names of its limits: their own, or right behind."""
    names = list(columns)
    found = {}
    for i, name in enumerate(names):
        own = (f"{name}_low", f"{name}_high")
        pair = own if {*own} <= {*names} else ("low", "high")
        known = pair == own or names[i + 1 : i + 3] == ["low", "high"]
        if known and all(v is None or _is_number(v) for k in (name, *pair) for v in columns[k]):
            found[name] = pair
    return found


def name_better(table: Mapping[str, Sequence[Any]]) -> dict[str, Sequence[Any]]:
    """Replace the verdict on each pair by the name of the better one, and keep only the p-value that decides.

    >>> name_better({"a": ["x"], "b": ["y"], "p": [0.01], "adjusted p": [0.02], "verdict": ["b better"]})
    {'a': ['x'], 'b': ['y'], 'adjusted p': [0.02], 'better': ['y']}
    """
    sides = zip(table["a"], table["b"], table["verdict"], strict=True)
    better = [{"a better": a, "b better": b}.get(verdict, "not significant") for a, b, verdict in sides]
    return {k: v for k, v in table.items() if k not in ("p", "verdict")} | {"better": better}


def _readable(value: Any, name: str, unit: str, bold: bool) -> Any:
    if not isinstance(value, Real) or isinstance(value, bool | Integral):
        if isinstance(value, str) and name in ("quantity", "formula") and " " not in value and value not in _SYMBOLS:
            return value.replace("_", " ")
        return value
    x = float(value)
    if math.isnan(x):
        return Cell("–")
    if _is_pvalue(name):
        return Cell(pvalue_text(x), bold)
    if name.startswith("probability_"):
        return Cell(format_chance(x), bold)
    return Cell(format_value(x, unit) if unit else format_number(x, 3), bold)


def _is_pvalue(name: str) -> bool:
    return "pvalue" in name or name == "adjusted"


def _alike(cells: list[Any]) -> list[Any]:
    """Give percentages of a column the decimals of the one that has fewest, of those at least 0.1%."""
    numbers = [c.text[:-1] for c in cells if isinstance(c, Cell) and c.text.endswith("%")]
    large = [text for text in numbers if abs(float(text.replace(",", ""))) >= 0.1]
    fewest = min((len(text.partition(".")[2]) for text in large or numbers), default=0)
    return [
        c._replace(text=f"{float(c.text[:-1].replace(',', '')):,.{fewest}f}%")
        if isinstance(c, Cell) and c.text.endswith("%") and (not large or c.text[:-1] in large)
        else c
        for c in cells
    ]


def mark_best(values: Sequence[float], digits: int, *, second: bool = False) -> list[Cell]:
    """Write numbers, those that read like the highest in bold and, with ``second``, the next underlined.

    Nothing is marked where all read alike.

    >>> [cell.bold for cell in mark_best([0.512, 0.511, 0.3], 2)]
    [True, True, False]
    """
    # Rounded before compared: two cells that read alike must be marked alike. Adding 0 turns -0.0 into 0.0.
    texts = ["–" if math.isnan(v) else f"{round(v, digits) + 0.0:.{digits}f}" for v in values]
    order = sorted({t for t in texts if t != "–"}, key=float, reverse=True)
    best = order[0] if len(order) > 1 else None
    runner_up = order[1] if second and len(order) > 1 else None
    return [Cell(t, bold=t == best, underlined=t == runner_up) for t in texts]


def format_table(
    columns: Mapping[str, Sequence[Any] | NDArray[Any]],
    format: str = "markdown",
    digits: int | None = 2,
    *,
    names: int = 0,
    note: str = "",
) -> str:
    r"""Write columns as a Markdown, LaTeX, HTML or plain-text table.

    Parameters
    ----------
    columns : mapping
        Values or :class:`Cell` of each column.
    format : {"markdown", "latex", "html", "text"}
        Markup.
    digits : int, optional
        Decimals of numbers that are not whole; four significant digits if None.
    names : int
        If given, so many columns hold names from anywhere, shown letter by letter, and all others stand to the right.
    note : str
        A line below the table, such as the kind of its intervals; none in HTML, where tables have captions.

    Examples
    --------
    >>> print(format_table({"learner": ["a|b"], "e_N": [18.861]}))
    | learner | e_N   |
    |:--------|------:|
    | a\|b    | 18.86 |
    >>> print(format_table({"method": ["a_b", "c"], "gain": mark_best([0.2, 0.1], 1)}, names=1))
    | method | gain    |
    |:-------|--------:|
    | a\_b   | **0.2** |
    | c      | 0.1     |
    """
    writers: dict[str, Callable[[list[str], list[list[str]], list[bool]], str]] = {
        "markdown": _markdown,
        "latex": _latex,
        "html": _html,
        "text": _text,
    }
    if format not in writers:
        raise InputError(f"format={format!r} is not known: use one of {', '.join(writers)}.")
    cells = [[_cell(v, digits, format) for v in column] for column in columns.values()]
    right = [all(_reads_as_number(v) for v in column) and len(column) > 0 for column in columns.values()]
    titles = [one_line(str(name)) for name in columns]
    if names:
        titles = [_letters(title, format) for title in titles]
        cells[:names] = [[_letters(text, format) for text in column] for column in cells[:names]]
        right = [i >= names for i in range(len(cells))]
    text = writers[format](titles, [list(row) for row in zip(*cells, strict=True)], right)
    if not note or format == "html":
        return text
    if format == "latex":
        parts = re.split("([eβ]_N)", note)
        return text + latex_note("".join(_SYMBOLS.get(part) or _escape_latex(part) for part in parts))
    return f"{text}\n\n{markdown_text(note) if format == 'markdown' else one_line(note)}"


def latex_note(written: str) -> str:
    """Return a paragraph below a table: a row of the table would make it as wide as the longest note."""
    return f"\n\\par{{\\footnotesize {written}\\par}}"


class _Markup(str):
    """Text of a cell that is already in the markup of the table."""


_MARKDOWN_SIGNS = re.compile(r"([\\`*_<>\[\]|])")
_SIGNS = {"markdown": {"*": r"\*"}, "latex": {"†": r"$^\dagger$", "‡": r"$^\ddagger$"}}


def format_sign(sign: str, format: str) -> str:
    """Write a sign that refers to a note in the markup of a table."""
    return _SIGNS.get(format, {}).get(sign, sign)


def _marked(cell: Cell, format: str) -> str:
    text, signs = cell.text, "".join(format_sign(sign, format) for sign in cell.signs)
    signs = (_latex_number(cell.after) if format == "latex" else cell.after) + signs
    if format == "markdown":
        text = f"**{text}**" if cell.bold else f"<u>{text}</u>" if cell.underlined else text
    elif format == "latex":
        text = "--" if text == "–" else _latex_number(text)
        text = rf"\textbf{{{text}}}" if cell.bold else rf"\underline{{{text}}}" if cell.underlined else text
    elif format == "html":
        text = html.escape(text)
        text = f"<b>{text}</b>" if cell.bold else f"<u>{text}</u>" if cell.underlined else text
    else:
        text += "*" if cell.bold else "+" if cell.underlined else ""
    return _Markup(text + signs)


_MINUS = re.compile(r"(?<!\w)-(?=[\d.])")


def _latex_number(text: str) -> str:
    """Write numbers, their unit and intervals of them for LaTeX: minus signs and infinities as mathematics."""
    return _MINUS.sub("$-$", _escape_latex(text))


def _escape_latex(text: str) -> str:
    """Write text for LaTeX on one line; usual symbols that pdflatex does not know become mathematics."""
    return one_line(text).translate(_LATEX).replace(r"$-$$\infty$", r"$-\infty$")


def _letters(text: str, format: str) -> str:
    """Show a name letter by letter, whatever it would do to a page or a terminal."""
    plain = "".join(c if c.isprintable() else "\ufffd" for c in text)
    return _Markup(_MARKDOWN_SIGNS.sub(r"\\\1", plain)) if format == "markdown" else plain


_FORMULA = ("=", "+", "-", "@")
_LINK = re.compile(r"\](?=[(\[:])")
_TAG = re.compile(r"(?<!\\)<")
_WWW = re.compile(r"\b(www)\.", re.IGNORECASE)
_HEADING = re.compile(r"^\s*#")


def csv_cell(value: Any) -> Any:
    """Return a cell for a CSV file: a text that a spreadsheet would compute gets an apostrophe.

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
    """Tell if a text begins like one that a spreadsheet would compute, blanks aside."""
    return text.startswith(("\t", "\r", "\n")) or text.lstrip().startswith(_FORMULA)


def markdown_text(text: str) -> str:
    r"""Return one line that Markdown shows as it is: no links, images, headings or tags of HTML.

    >>> print(markdown_text("![x](http://a.b) in [0.1, 0.2]"), markdown_text("<img src=x>"))
    ![x]\(http:\//a.b) in [0.1, 0.2] &lt;img src=x>
    >>> print(markdown_text("a\n# head"), markdown_text("# head"), markdown_text("www.a.b"))
    a # head \# head www\.a.b
    """
    line = _HEADING.sub(r"\\#", one_line(text))
    unlinked = _WWW.sub(r"\1\.", _LINK.sub(r"]\\", line)).replace("://", r":\//")
    return _TAG.sub("&lt;", unlinked)


def _reads_as_number(value: Any) -> bool:
    """Return whether a value is a number, or a text that is written like one, such as "< 0.001", "80%" or "–"."""
    return _is_number(value) or (isinstance(value, str) and NUMBER.fullmatch(value) is not None)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real | Cell) and not isinstance(value, bool)


def _cell(value: Any, digits: int | None, format: str) -> str:
    if isinstance(value, Cell):
        return _marked(value, format)
    if value is None or (isinstance(value, Real) and math.isnan(value)):
        return ""
    # numpy registers its scalars with the abstract numbers, so that it need not be imported here.
    if not isinstance(value, Real) or isinstance(value, bool):
        return one_line(str(value))
    if isinstance(value, Integral):
        return f"{value:,}"
    x = float(value)
    if math.isinf(x):
        return "∞" if x > 0 else "−∞"
    if digits is None:
        return format_number(x)
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
    rows = [
        [c if isinstance(c, _Markup) else markdown_text(c).replace("|", r"\|") for c in row] for row in [names, *rows]
    ]
    width = [max([3, *(len(r[i]) for r in rows)]) for i in range(len(names))]

    def line(row: list[str]) -> str:
        return "| " + " | ".join(c.ljust(w) for c, w in zip(row, width, strict=True)) + " |"

    rule = "|".join("-" * (w + 1) + ":" if r else ":" + "-" * (w + 1) for w, r in zip(width, right, strict=True))
    return "\n".join([line(rows[0]), f"|{rule}|", *map(line, rows[1:])])


_SYMBOLS = {"e_N": "$e_N$", "beta_N": r"$\beta_N$", "gamma": r"$\gamma$", "R2": "$R^2$"}
_SYMBOLS |= {"β_N": r"$\beta_N$", "γ": r"$\gamma$", "α": r"$\alpha$", "R²": "$R^2$"}


def _latex_cell(text: str) -> str:
    """Escape text that is no markup; symbols and minus signs become mathematics."""
    if isinstance(text, _Markup):
        return text
    first, *rest = text.split(" ", 1)
    if first in _SYMBOLS:
        return " ".join([_SYMBOLS[first], *map(_escape_latex, rest)])
    if text.startswith("-") and text[1:].replace(",", "").replace(".", "").isdigit():
        return f"${text}$"
    return _escape_latex(text)


def _latex(names: list[str], rows: list[list[str]], right: list[bool]) -> str:
    spec = "".join("r" if r else "l" for r in right)
    lines = [" & ".join(map(_latex_cell, row)) + r" \\" for row in [names, *rows]]
    # A bracket or asterisk behind a rule or the end of a row would be an argument of it.
    lines = ["{}" + line if line.lstrip().startswith(("[", "*")) else line for line in lines]
    head = [r"% needs \usepackage{booktabs}", rf"\begin{{tabular}}{{{spec}}}", r"\toprule", lines[0], r"\midrule"]
    return "\n".join([*head, *lines[1:], r"\bottomrule", r"\end{tabular}"])


def _html(names: list[str], rows: list[list[str]], right: list[bool]) -> str:
    sides = ["right" if r else "left" for r in right]
    head = "".join(f'<th style="text-align:{s}">{html.escape(n)}</th>' for n, s in zip(names, sides, strict=True))
    body = "".join(
        "<tr>"
        + "".join(
            f'<td style="text-align:{s}">{c if isinstance(c, _Markup) else html.escape(c)}</td>'
            for c, s in zip(row, sides, strict=True)
        )
        + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
