"""Intervals and units of measured values; the base of every table that goes in and of every result that comes out."""

from __future__ import annotations

import html
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from importlib import import_module
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import InputError, MissingDependencyError, arg, brief
from curvewise.text import format_interval, format_level, format_number, format_table, is_number, readable_columns

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


FloatArray: TypeAlias = NDArray[np.float64]

UNITS = ("fraction", "percent", "loss", "score")


@dataclass(frozen=True)
class Interval:
    """An estimate with its interval.

    Attributes
    ----------
    estimate, low, high : float
        In the unit of the fit. ``low`` or ``high`` may be infinite; NaN means unknown.
    level : float
        Nominal coverage, 0.95 unless asked otherwise.
    kind : str
        Its meaning: "confidence", "prediction" or "conditional"; "confidence and prediction" where the interval of a
        comparison rests on one of each.
    outside : bool
        True when the estimate lies outside its own interval, which is a sign that the point
        estimate is pulled by a prior or a constraint.
    """

    estimate: float
    low: float
    high: float
    level: float = 0.95
    kind: str = "confidence"

    @property
    def outside(self) -> bool:
        """True when the estimate lies outside its own interval."""
        # An end that was computed by another route than the estimate may miss it by rounding.
        slack = 1e-9 * (1.0 + abs(self.estimate))
        return bool(self.estimate < self.low - slack or self.estimate > self.high + slack)

    @property
    def width(self) -> float:
        """High minus low."""
        return self.high - self.low

    def __iter__(self) -> Iterator[float]:
        """Unpack as ``estimate, low, high``."""
        return iter((self.estimate, self.low, self.high))

    def __contains__(self, value: float) -> bool:
        return bool(self.low <= value <= self.high)

    def __str__(self) -> str:
        return format_interval(self)


@dataclass(frozen=True)
class Unit:
    """Meaning of a measured value.

    Parameters
    ----------
    name : {"fraction", "percent", "loss", "score"}
        Fractions and percentages are classification errors (or accuracies, with
        ``higher_is_better``); losses and scores have no natural bound.
    higher_is_better : bool
        Accuracies are turned into errors when they are read. Scores stay scores.
    """

    name: str = "fraction"
    higher_is_better: bool = False

    def __post_init__(self) -> None:
        if self.name not in UNITS:
            raise InputError(f"{arg('unit', self.name)} is not known: use one of {', '.join(map(repr, UNITS))}.")
        if self.name == "loss" and self.higher_is_better:
            raise InputError(
                f"{arg('unit', 'loss')} with {arg('higher_is_better', True)} contradicts itself: use "
                f"{arg('unit', 'score')}."
            )
        if self.name == "score" and not self.higher_is_better:
            raise InputError(
                f"{arg('unit', 'score')} needs {arg('higher_is_better', True)}; for a value that should fall, use "
                f"{arg('unit', 'loss')}."
            )

    @property
    def top(self) -> float:
        """The largest possible value: 1 for fractions, 100 for percentages, else infinity."""
        return {"fraction": 1.0, "percent": 100.0}.get(self.name, math.inf)

    @property
    def bounded(self) -> bool:
        """True where values lie between 0 and :attr:`top`."""
        return math.isfinite(self.top)

    @property
    def suffix(self) -> str:
        """Text after a number: ``"%"`` for percentages."""
        return "%" if self.name == "percent" else ""

    @property
    def quantity(self) -> str:
        """Name of what is measured: the loss, the score, or else the error."""
        return self.name if self.name in ("loss", "score") else "error"

    @property
    def once_read(self) -> Unit:
        """The unit of what :meth:`errors` returns: accuracies have become errors."""
        return Unit(self.name) if self.bounded else self

    def errors(self, values: ArrayLike, argument: str = "error") -> FloatArray:
        """Check values against the unit; accuracies come back as errors.

        Raises
        ------
        InputError
            If a value is not finite or cannot be in this unit; the message names the right one.
        """
        array = as_floats(values, argument)
        bad = ~np.isfinite(array)
        if bad.any():
            raise InputError(
                f"{argument} holds {int(bad.sum())} value(s) that are NaN or infinite. Leave failed runs out on "
                f"purpose and say so ({arg('drop_failed', True)} when they are read), or give them the value "
                "of a blind guess.",
                argument=argument,
            )
        # Percentages read as fractions would be off by a factor of 100 without any other sign.
        if not self.bounded or not array.size:
            return array
        slack = 1e-12 * self.top  # 1 − 0.9 − 0.1 is −3e-17
        if array.min() < -slack or array.max() > self.top + slack:
            worst = array.min() if array.min() < 0 else array.max()
            raise InputError(
                f"{argument} holds {worst:g}, which is no {self.name} (0 to {self.top:g}).",
                argument=argument,
                value=float(worst),
                remedy=self._remedy(array),
            )
        inside = np.clip(array, 0.0, self.top)
        return self.top - inside if self.higher_is_better else inside

    def _remedy(self, array: FloatArray) -> str:
        if array.min() >= 0 and array.max() <= 100 and self.name == "fraction":
            return f"Pass {arg('unit', 'percent')} if these are percentages, or {arg('unit', 'loss')} for a loss."
        return f"Pass {arg('unit', 'loss')}, or {arg('unit', 'score')} with {arg('higher_is_better', True)}."


SHOWN_ROWS = 10
"""Rows of a table that a notebook shows."""


class RowTable(ABC):
    """Base of the tables that analyses take: frozen dataclasses of arrays with an entry for each row.

    A subclass names the fields that have one in ``by_row``, and gives :meth:`columns`.
    """

    by_row: ClassVar[tuple[str, ...]]
    noun: ClassVar[str] = "rows"

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def columns(self) -> Mapping[str, Any]:
        """Return columns of equal length."""

    def frame(self) -> pd.DataFrame:
        """Return the rows as a pandas DataFrame."""
        return data_frame(self.columns())

    def _repr_html_(self) -> str:
        """The first rows as a table, for notebooks."""
        shown = min(len(self), SHOWN_ROWS)
        unit = getattr(self, "unit", "")
        columns = self.select(np.arange(shown)).columns() if shown else self.columns()
        cells = format_table(readable_columns(columns, getattr(unit, "name", "")), "html")
        left = f"<p>{len(self) - shown:,} further {self.noun} are not shown.</p>" if len(self) > shown else ""
        return f"<div><p>{html.escape(repr(self))}</p>{cells}{left}</div>"

    def select(self, mask: ArrayLike) -> Self:
        """Select some of the rows: a mask with an entry for each, or their positions."""
        chosen = np.asarray(mask)
        if chosen.dtype == np.bool_ and chosen.shape != (len(self),):
            raise InputError(f"mask has shape {chosen.shape}: give one entry for each of {len(self)} {self.noun}.")
        where = np.arange(len(self))[chosen]
        if where.ndim != 1 or not len(where):
            raise InputError(f"mask selects none of the {self.noun}: at least one must be left.")

        def take(value: Any) -> Any:
            if isinstance(value, Mapping):
                return {key: take(column) for key, column in value.items()}
            if isinstance(value, tuple):
                return tuple(value[i] for i in where)
            return None if value is None else value[where]

        return replace(self, **{name: take(getattr(self, name)) for name in self.by_row})  # type: ignore[type-var]


def distinct(names: NDArray[Any]) -> tuple[Any, ...]:
    """Return names in order of first appearance, each once.

    >>> distinct(np.array(["b", "a", "b"]))
    ('b', 'a')
    """
    return tuple(dict.fromkeys(names.tolist()))


_HEADLINE = 5
"""Fields in the repr of a result: as many as fit on a line."""
_SHORT = 3
"""Numbers in a tuple that the repr shows; of a longer one it says how many there are."""


class Result(ABC):
    """Base of every result: estimates, intervals, settings, warnings in plain words.

    Subclasses are frozen dataclasses. A subclass gives :meth:`sentences` and :meth:`columns`; the rest follows.
    """

    warnings: tuple[str, ...]
    row_names: ClassVar[Mapping[str, str]] = {}
    """Quantities as people read them, where that is not their identifier with blanks."""
    unlisted: ClassVar[tuple[str, ...]] = ()
    """Fields beside the private ones that :meth:`to_dict` and the repr leave out: arrays with an entry for each run."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Give subclasses the one-line repr."""
        super().__init_subclass__(**options)
        # Set on the class itself: a dataclass writes a repr with all arrays into a class that has none of its own.
        if "__repr__" not in vars(cls):
            cls.__repr__ = cls.__repr__  # type: ignore[method-assign]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._headline()})"

    def _headline(self) -> str:
        """Return the first few numbers, names, intervals and counts among the fields, for the one-line repr."""
        words = []
        for f in fields(self):  # type: ignore[arg-type]
            value = getattr(self, f.name)
            if f.name.startswith("_") or f.name in ("warnings", "notes", *self.unlisted):
                continue
            if isinstance(value, Interval):
                words.append(f"{f.name}={value}")
            elif isinstance(value, float | np.floating):
                words.append(f"{f.name}={format_number(float(value))}")
            elif isinstance(value, bool | int | str | np.integer):
                words.append(f"{f.name}={brief(value, 40)}")
            elif isinstance(value, tuple) and 0 < len(value) <= _SHORT and all(map(is_number, value)):
                words.append(f"{f.name}=({', '.join(format_number(float(v)) for v in value)})")
            elif isinstance(value, Mapping | list | tuple) and value and f.name.endswith("s"):  # not "3 learner"
                words.append(f"{len(value)} {f.name}")
        return ", ".join(words[:_HEADLINE])

    @property
    def all_warnings(self) -> tuple[str, ...]:
        """The warnings, with those that are only found when intervals are computed."""
        return self.warnings

    def summary(self) -> str:
        """Return a few sentences that can be pasted into a paper, the warnings at the end."""
        text = self.sentences()
        return " ".join([*([text] if text else []), *(f"Warning: {w}" for w in self.all_warnings)])

    @abstractmethod
    def sentences(self) -> str:
        """Return the summary without its warnings, for places that show them apart."""

    @abstractmethod
    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """Return the main table as columns of equal length."""

    def display_columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """Return :meth:`columns` with the names and signs that people read, where these differ."""
        return self.columns()

    def frame(self) -> pd.DataFrame:
        """Return the main table as a pandas DataFrame."""
        return data_frame(self.columns())

    def to_dict(self) -> dict[str, Any]:
        """Return all of the result as plain Python values, ready for ``json.dumps``."""
        return {
            "type": type(self).__name__,
            **_plain_fields(self),
            "warnings": list(self.all_warnings),
            "summary": self.summary(),
        }

    def plot(self, ax: Axes | None = None, **options: Any) -> Axes:
        """Draw on ``ax`` (a new figure's if None) and return the Axes.

        Options are those of the function that draws this result; one that it does not know is refused with their names.
        """
        # The one upward import: a result finds its picture only when it is asked for.
        return import_module("curvewise.drawing").draw(self, ax=ax, **options)  # type: ignore[no-any-return]

    def readable(self) -> Mapping[str, Sequence[Any]]:
        """Return the main table as people read it: intervals beside estimates, errors as percentages, few digits."""
        unit = getattr(self, "unit", "")
        columns = self.display_columns()
        table = readable_columns(columns, getattr(unit, "name", unit), self.best_rows())
        if "quantity" in table:
            sides = {side: getattr(self, side, side) for side in ("a", "b")}
            names = zip(columns["quantity"], table["quantity"], strict=True)
            table["quantity"] = [
                self.row_names[key].format(**sides) if key in self.row_names else name for key, name in names
            ]
        return table

    def best_rows(self) -> tuple[str, Sequence[int]] | None:
        """Return the column whose best entries are written bold, and their rows; None where nothing is ranked."""
        return None

    def table(self, format: str = "markdown", digits: int | None = None) -> str:
        """Return the main table as text, the same as ``--table`` on the command line.

        Parameters
        ----------
        format : {"markdown", "latex", "text"}
            Markup of the table.
        digits : int, optional
            Decimals of all numbers; by default those that their intervals support.
        """
        columns = self.readable() if digits is None else self.display_columns()
        return format_table(columns, format, digits, note=self.table_note())

    def table_note(self) -> str:
        """Return the line below :meth:`table`: what it shows, and the kind and the level of its intervals, if any."""
        level = getattr(self, "level", None)
        has_limits = any(name == "low" or name.endswith("_low") for name in self.display_columns())
        # Of plans, the level is that of a test, such as 0.05, and their intervals say theirs in words.
        if has_limits and isinstance(level, float) and level > 0.5:
            return f"Estimates with {format_level(level)} intervals"
        return ""

    def to_latex(self, **options: Any) -> str:
        r"""Return the main table for LaTeX, in the style of booktabs (``\usepackage{booktabs}``), the best in bold.

        The same as ``--table latex`` on the command line. Its note stands in a paragraph below the table.
        """
        return self.table("latex", **options)

    def __str__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        try:  # the pieces of a report need jinja2
            page: str = import_module("curvewise.report.page").html_of(self)
        except ImportError:
            notes = "".join(f"<li>{html.escape(w)}</li>" for w in self.all_warnings)
            notes = f"<ul>{notes}</ul>" if notes else ""
            cells, note = format_table(self.readable(), "html"), html.escape(self.table_note())
            page = f"<div><p>{html.escape(self.sentences())}</p>{notes}<p>{note}</p>{cells}</div>"
        return page


def interval_columns(rows: Mapping[str, Interval]) -> dict[str, list[Any]]:
    """Make columns of a table with a row for each quantity: its estimate, low and high.

    >>> interval_columns({"error": Interval(0.2, 0.1, 0.3)})
    {'quantity': ['error'], 'estimate': [0.2], 'low': [0.1], 'high': [0.3]}
    """
    return {"quantity": list(rows), **interval_lists("estimate", rows.values())}


def interval_lists(name: str, intervals: Iterable[Interval], prefix: str = "") -> dict[str, list[float]]:
    """Return three columns of a table: the estimates, their low and their high limits.

    >>> interval_lists("gain", [Interval(0.2, 0.1, 0.3)], "gain_")
    {'gain': [0.2], 'gain_low': [0.1], 'gain_high': [0.3]}
    """
    rows = list(intervals)
    ends = {f"{prefix}low": [i.low for i in rows], f"{prefix}high": [i.high for i in rows]}
    return {name: [i.estimate for i in rows], **ends}


def check_level(level: float) -> float:
    """Raise unless a level of coverage lies strictly between 0 and 1."""
    if not isinstance(level, int | float | np.number) or not 0 < level < 1:
        raise InputError(f"{arg('level', level)} must lie between 0 and 1, such as 0.95.")
    return float(level)


def check_whole(value: Any, argument: str, least: int) -> int:
    """Return a whole number of at least ``least``; raise for anything else, NaN and True included.

    >>> check_whole(100.0, "draws", 1)
    100
    """
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not (number and math.isfinite(value) and value == int(value) >= least):
        raise InputError(f"must be a whole number, {least} or more.", argument=argument, value=value)
    return int(value)


def as_number(value: Any) -> float:
    """Return a number as a float, and NaN for anything else, which lies in no range that an argument must lie in.

    >>> as_number(0.03), as_number("0.03")
    (0.03, nan)
    """
    value = value.item() if isinstance(value, np.ndarray) and not value.ndim else value
    return float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan


def as_generator(rng: Any) -> np.random.Generator:
    """Return the generator of random numbers that an argument ``rng`` gives: a seed, several, or a generator."""
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError):
        raise InputError(
            "must be a whole number, 0 or more, or a Generator of numpy.", argument="rng", value=rng
        ) from None


def data_frame(columns: Mapping[str, Sequence[Any] | NDArray[Any]]) -> pd.DataFrame:
    """Make a pandas DataFrame, importing pandas only now."""
    try:
        import pandas as pd
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            "A table is a pandas DataFrame, and pandas is not installed: pip install pandas."
        ) from error
    return pd.DataFrame(dict(columns))


def plain(value: Any) -> Any:
    """Turn a value into what JSON knows: NaN becomes None, infinities become strings.

    >>> plain({"a": np.float64(1.5), "b": np.array([1, 2]), "c": float("inf")})
    {'a': 1.5, 'b': [1, 2], 'c': 'Infinity'}
    """
    if isinstance(value, np.ndarray):
        return [plain(v) for v in value.tolist()]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        # JSON has no NaN and no infinity; a parser that is strict would refuse the whole document.
        if math.isnan(value):
            return None
        return value if math.isfinite(value) else ("Infinity" if value > 0 else "-Infinity")
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(v) for v in value]
    if isinstance(value, Result):
        return value.to_dict()
    if is_dataclass(value) and not isinstance(value, type):
        return _plain_fields(value)
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def _plain_fields(value: Any) -> dict[str, Any]:
    unlisted = getattr(value, "unlisted", ())
    names = [f.name for f in fields(value) if not f.name.startswith("_") and f.name not in unlisted]
    return {name: plain(getattr(value, name)) for name in names}


# Numbers, labels and names out of what users pass.


def as_floats(values: ArrayLike, argument: str) -> FloatArray:
    """Make a float array of numbers, or raise an error that names the argument."""
    as_unmasked(values, argument)
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{argument} must hold numbers: {error}.", argument=argument) from None


def as_unmasked(values: Any, argument: str) -> Any:
    """Return an array; refuse one that is masked in part."""
    # numpy would hand out the numbers below the mask, as if nothing had been left out.
    if np.ma.isMaskedArray(values) and np.ma.getmaskarray(values).any():
        raise InputError(
            f"{argument} is a masked array: pass only the entries that count, such as {argument}[~mask].",
            argument=argument,
        )
    try:
        return values if hasattr(values, "dtype") else np.asarray(values)
    except ValueError:
        raise InputError(
            f"{argument} is no array: its rows have unequal lengths, or arrays of several kinds are put together.",
            argument=argument,
        ) from None


def as_column(values: NDArray[Any], argument: str, count: int, noun: str) -> NDArray[Any]:
    """Return an array with one entry for each of ``count`` rows, or raise an error that names the argument."""
    if values.shape != (count,):
        raise InputError(
            f"{argument} has shape {values.shape} for {count} {noun}: give one for each.", argument=argument
        )
    return values


UNLABELLED = (-1, -100)
"""Marks of an example without a label, in scikit-learn and data sets, and in PyTorch."""


def check_labelled(labels: NDArray[Any], argument: str, remedy: str = "") -> None:
    """Refuse marks of examples without a label; −1 beside 1 alone is one of two classes.

    >>> check_labelled(np.array([-1, 1, 1]), "labels")
    """
    if labels.dtype.kind not in "if" or not np.isin(labels, UNLABELLED).any():
        return
    # Support-vector machines call their two classes -1 and 1.
    if set(np.unique(labels).tolist()) == {-1, 1}:
        return
    mark = next(mark for mark in UNLABELLED if (labels == mark).any())
    raise InputError(
        f"{argument} holds {mark}, which usually marks an example without a label: "
        f"{remedy or 'leave these examples out'}, or number the classes from 0.",
        argument=argument,
    )


def count_missing(values: Sequence[Any]) -> int:
    """Count None, NaN and what pandas writes for nothing.

    >>> count_missing(["a", None, float("nan")])
    2
    """
    # The name of its type comes first: NA is neither equal to itself nor unequal.
    return sum(v is None or type(v).__name__ == "NAType" or v in ("<NA>", "NaT") or v != v for v in values)


def same_names(words: Sequence[str], where: str) -> list[str]:
    """Strip names of blanks around them, refusing ``"a"`` beside ``"a "``.

    >>> same_names(["a ", "b"], "column 'learner'")
    ['a', 'b']
    """
    # A trailing blank in a spreadsheet would make two learners of one, each with half of the runs.
    stripped = {word: word.strip() for word in dict.fromkeys(words)}
    first: dict[str, str] = {}
    for word, name in stripped.items():
        if first.setdefault(name, word) != word:
            raise InputError(
                f"{where} has {first[name]!r:.60} and {word!r:.60}, which differ only in blanks: write the name in one "
                "way if they are one, or in two ways if they are not."
            )
    return [stripped[word] for word in words]


def distinct_names(words: Sequence[str], where: str) -> list[str]:
    """As :func:`same_names`, for names of which no two may be the same.

    >>> distinct_names(["a ", "b"], "names")
    ['a', 'b']
    """
    names = same_names(words, where)
    if twice := [name for i, name in enumerate(names) if name in names[:i]]:
        raise InputError(f"{where} has {twice[0]!r:.60} twice: give each a name of its own.")
    return names
