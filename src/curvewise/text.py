"""Numbers and tables as people read them: plain, and in Markdown, LaTeX and HTML."""

from __future__ import annotations

import html
import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, NamedTuple

from curvewise.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from curvewise.types.results import Interval


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
    if abs(percent) < _DUST or percent == 100 or math.isinf(percent):
        return f"{_fixed(percent, 0)}%"
    return f"{_fixed(percent, max(2 - math.floor(math.log10(abs(percent))), 1))}%"


def format_target(value: float, unit: str) -> str:
    """Write a number that someone chose, with the digits it was given in.

    >>> format_target(0.05, "fraction"), format_target(2.5, "percent"), format_target(3.28, "loss")
    ('5%', '2.5%', '3.28')
    """
    if not math.isfinite(value):
        return format_number(value)
    value += 0.0  # -0.0 becomes 0.0
    return f"{_SCALE[unit] * value:.10g}%" if unit in _SCALE else f"{value:.10g}"


_SCALE = {"fraction": 100.0, "percent": 1.0}
"""Units that people read as percentages, and the factor to them."""
_SIGN_DIGITS = 2
"""Decimals more than the width supports that a limit may have so that it does not read as zero."""
_TINY = 0.1
"""Share of the estimate from which a limit on its side of 0 has two digits."""
_ASYMMETRIC = 2.0
"""From this ratio of the distances of the two limits on, the limits have digits of their own."""
_NO_WIDTH = 1e-12
"""Share of the estimate up to which half the width of an interval is a rounding error."""
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
    if not math.isfinite(half) or half <= _NO_WIDTH * abs(estimate):
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


def _leading_place(value: float) -> int:
    """Return the power of ten of the first digit."""
    return math.floor(math.log10(abs(value)))


def _two_digits(value: float) -> int:
    return 1 - _leading_place(value)


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
    if abs(value) >= 1e15:
        return format_number(value, 3)
    if decimals > 6 and abs(value) < 1e-3:  # so many zeros are better read as a power of ten
        digits = decimals + _leading_place(value) + 1 if value else 1
        return f"{value:.{max(1, min(digits, 15))}g}"
    decimals = min(decimals, 15)
    rounded = round(value, decimals) + 0.0  # -0.0 becomes 0.0
    return f"{rounded:,.{max(decimals, 0)}f}"


USUAL_LEVEL = 0.05
"""Level of a test that verdicts and readers go by."""
SMALL_PVALUE = 0.001
"""P-values below this are written as that: no tail is known so far out, and no decision turns on it."""


def format_pvalue(p: float) -> str:
    """Write a p-value with two digits; a small one as an upper bound.

    >>> format_pvalue(9.1e-7), format_pvalue(0.034), format_pvalue(0.0)
    ('p < 0.001', 'p = 0.034', 'p < 0.001')
    >>> format_pvalue(0.0496), format_pvalue(0.0504)  # two digits would not show on which side of 0.05
    ('p = 0.0496', 'p = 0.0504')
    """
    if math.isnan(p):
        return "p unknown"
    if p < SMALL_PVALUE:
        return f"p < {SMALL_PVALUE}"
    written = [f"{p:.{digits}g}" for digits in range(2, 7)]
    return f"p = {next((text for text in written if float(text) != USUAL_LEVEL), written[0])}"


def pvalue_text(p: float) -> str:
    """Write a p-value for a cell of a table, without its letter.

    >>> pvalue_text(0.0342), pvalue_text(1e-30), pvalue_text(float("nan"))
    ('0.034', '< 0.001', '–')
    """
    return "–" if math.isnan(p) else format_pvalue(p).removeprefix("p ").removeprefix("= ")


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


def format_level(level: float) -> str:
    """Write the level of an interval, or its distance from 1, in percent: all digits that people choose.

    >>> format_level(0.95), format_level(0.975), format_level(0.999), format_level(1 - 0.975), format_level(0.99999)
    ('95%', '97.5%', '99.9%', '2.5%', '99.999%')
    """
    nearest = 100 * min(level, 1 - level)
    # Two digits of the distance from 0 or 1, so that no level reads as certainty.
    decimals = max(2, _two_digits(nearest)) if nearest > 0 else 2
    return f"{round(100 * level, decimals):.15g}%"


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
    if abs(value) < 1e-4 or abs(value) >= 1e15:
        return f"{value:.{digits - 1}g}"
    if abs(value) >= 10**digits:
        keep = len(str(int(abs(value)))) - digits
        return f"{round(value, -keep):,.0f}"
    whole = max(1, len(str(int(abs(value)))) if abs(value) >= 1 else 0)
    return f"{value:,.{max(0, digits - whole)}f}" if abs(value) >= 1 else f"{value:.{digits}g}"


def format_setting(value: float) -> str:
    """Write the value of a hyperparameter, without zeros at the end.

    >>> format_setting(1.6), format_setting(0.05), format_setting(1200.0), format_setting(3e-5)
    ('1.6', '0.05', '1,200', '3e-05')
    """
    text = format_number(value)
    return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text


def format_size(n: float) -> str:
    """Write an estimated training size: three digits, and from 10 on whole.

    >>> format_size(299_825.2), format_size(50.84), format_size(5.5555), format_size(float("inf"))
    ('300,000', '51', '5.56', '∞')
    """
    if not math.isfinite(n):
        return format_number(n)
    rounded = float(f"{n:.3g}")
    return format_number(float(round(rounded))) if rounded >= 10 else format_number(rounded, 3)


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


# Tables.

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
    "random|magnitude|discrimination|(^|_)n(_|$)|runs|sizes?|draws|weights?|(?<!dis)agreement|kendall|value"
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
    columns: Mapping[str, Sequence[Any] | NDArray[Any]], unit: str = "", best: tuple[str, Sequence[int]] | None = None
) -> dict[str, list[Any]]:
    """Write columns as people read them: an interval beside its estimate, errors as percentages, few digits.

    ``X, low, high`` and ``X, X_low, X_high`` become one column. ``best`` names a column and the rows to write bold.

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
        if known and all(v is None or is_number(v) for k in (name, *pair) for v in columns[k]):
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


def name_decision(decision: str, a: str, b: str) -> str:
    """Write the decision of a plan with the name of the better one.

    >>> name_decision("stop: a", "gpt", "bert"), name_decision("go on", "gpt", "bert")
    ('stop: gpt is better', 'go on')
    """
    side = decision.removeprefix("stop: ").removesuffix(" better")
    return f"stop: {a if side == 'a' else b} is better" if side in ("a", "b") else decision


def _readable(value: Any, name: str, unit: str, bold: bool) -> Any:
    if not isinstance(value, Real) or isinstance(value, bool | Integral):
        if isinstance(value, str) and name in ("quantity", "formula") and " " not in value and value not in _SYMBOLS:
            return value.replace("_", " ")
        return value
    x = float(value)
    if math.isnan(x):
        return Cell("–")
    if "pvalue" in name or name == "adjusted":
        return Cell(pvalue_text(x), bold)
    if name.startswith("probability_"):
        return Cell(format_chance(x), bold)
    return Cell(format_value(x, unit) if unit else format_number(x, 3), bold)


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
    cells = [[write_cell(v, digits, format) for v in column] for column in columns.values()]
    # Numbers, and texts that are written like one, such as "< 0.001", "80%" or "–".
    right = [
        len(column) > 0 and all(is_number(v) or (isinstance(v, str) and NUMBER.fullmatch(v)) for v in column)
        for column in columns.values()
    ]
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


def is_number(value: Any) -> bool:
    """Return whether a cell is a number, plain or marked; True and False are none."""
    return isinstance(value, Real | Cell) and not isinstance(value, bool)


def write_cell(value: Any, digits: int | None = None, format: str = "text") -> str:
    """Write a cell in the markup of a table; nothing for None and NaN."""
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
