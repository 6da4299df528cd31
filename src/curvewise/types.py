"""What goes in and what comes out: units, measurements, intervals and the base of every result."""

from __future__ import annotations

import html
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import InputError, MissingDependencyError
from curvewise.tables import format_table, number

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

FloatArray: TypeAlias = NDArray[np.float64]

UNITS = ("fraction", "percent", "loss", "score")


@dataclass(frozen=True)
class Unit:
    """What a measured value means.

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
            raise InputError(
                f"unit={self.name!r} is not known: use one of {', '.join(map(repr, UNITS))}."
            )
        if self.name == "loss" and self.higher_is_better:
            raise InputError(
                "unit='loss' with higher_is_better=True contradicts itself: use unit='score'."
            )
        if self.name == "score" and not self.higher_is_better:
            raise InputError(
                "unit='score' needs higher_is_better=True; for a value that should fall, "
                "use unit='loss'."
            )

    @property
    def top(self) -> float:
        """The largest possible value: 1 for fractions, 100 for percentages, else infinity."""
        return {"fraction": 1.0, "percent": 100.0}.get(self.name, math.inf)

    @property
    def bounded(self) -> bool:
        """Whether values lie between 0 and :attr:`top`."""
        return math.isfinite(self.top)

    @property
    def suffix(self) -> str:
        """What to write after a number: ``"%"`` for percentages."""
        return "%" if self.name == "percent" else ""

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
                f"{argument} holds {int(bad.sum())} value(s) that are NaN or infinite. Drop failed "
                "runs on purpose and say so, or give them the value of a blind guess."
            )
        if self.bounded and array.size and (array.min() < 0 or array.max() > self.top):
            worst = array.min() if array.min() < 0 else array.max()
            raise InputError(
                f"{argument} holds {worst:g}, which cannot be a {self.name} (0 to {self.top:g}). "
                + self._remedy(array)
            )
        return self.top - array if self.bounded and self.higher_is_better else array

    def _remedy(self, array: FloatArray) -> str:
        if array.min() >= 0 and array.max() <= 100 and self.name == "fraction":
            return "Pass unit='percent' if these are percentages, or unit='loss' for a loss."
        return "Pass unit='loss', or unit='score' with higher_is_better=True."


def as_floats(values: ArrayLike, argument: str) -> FloatArray:
    """Numbers as a float array, or an error that names the argument."""
    if np.ma.isMaskedArray(values) and np.ma.getmaskarray(values).any():
        raise InputError(
            f"{argument} is a masked array with masked entries: pass only the runs you mean, such"
            f" as {argument}[~mask]."
        )
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{argument} must hold numbers: {error}.") from None


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
        How it was made: "confidence", "prediction" or "conditional".
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
        """Whether the estimate lies outside its own interval."""
        slack = 1e-9 * (1.0 + abs(self.estimate))
        return bool(self.estimate < self.low - slack or self.estimate > self.high + slack)

    @property
    def width(self) -> float:
        """High minus low."""
        return self.high - self.low

    def __iter__(self) -> Iterator[float]:
        """Unpack as ``low, high``."""
        return iter((self.low, self.high))

    def __contains__(self, value: float) -> bool:
        return bool(self.low <= value <= self.high)

    def __str__(self) -> str:
        return f"{number(self.estimate)} [{number(self.low)}, {number(self.high)}]"


class Result(ABC):
    """What every analysis returns: estimates, intervals, settings, warnings in plain words.

    Subclasses are frozen dataclasses. A subclass gives :meth:`summary` and :meth:`columns`; the
    rest follows from them.
    """

    warnings: tuple[str, ...]

    @property
    def all_warnings(self) -> tuple[str, ...]:
        """The warnings, with those that are only found when intervals are computed."""
        return self.warnings

    @abstractmethod
    def summary(self) -> str:
        """A few sentences that can be pasted into a paper."""

    @abstractmethod
    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """The main table as columns of equal length."""

    def frame(self) -> pd.DataFrame:
        """The main table as a pandas DataFrame."""
        return data_frame(self.columns())

    def to_dict(self) -> dict[str, Any]:
        """All of the result as plain Python values, ready for ``json.dumps``."""
        return {
            "type": type(self).__name__,
            **_plain_fields(self),
            "warnings": list(self.all_warnings),
            "summary": self.summary(),
        }

    def plot(self, ax: Axes | None = None, **options: Any) -> Axes:
        """Draw on ``ax`` (a new figure's if None) and return the Axes."""
        return import_module("curvewise.plot").draw(self, ax=ax, **options)  # type: ignore[no-any-return]

    def table(self, format: str = "markdown", digits: int = 2) -> str:
        """The main table as text.

        Parameters
        ----------
        format : {"markdown", "latex", "text"}
            Markup of the table.
        digits : int
            Decimals of the numbers.
        """
        return format_table(self.columns(), format, digits)

    def __str__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        notes = "".join(f"<li>{html.escape(w)}</li>" for w in self.all_warnings)
        notes = f"<ul>{notes}</ul>" if notes else ""
        cells = format_table(self.columns(), "html", 4)
        return f"<div><p>{html.escape(self.summary())}</p>{notes}{cells}</div>"


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
    return {
        f.name: plain(getattr(value, f.name)) for f in fields(value) if not f.name.startswith("_")
    }


@dataclass(frozen=True, eq=False, repr=False)
class Measurements:
    """Values measured on trained models, one row per run: what :func:`load_measurements` makes.

    Attributes
    ----------
    learner : ndarray of str, shape (rows,)
        Which learner the value belongs to.
    n : ndarray of float, shape (rows,)
        Training-set size.
    error : ndarray of float, shape (rows,)
        Errors, losses or scores in ``unit``; accuracies were turned into errors when read.
    unit : Unit
        What the values mean.
    runs, variance : ndarray of float, shape (rows,), optional
        When a row is already a mean: over how many runs, and their variance (ddof 1).
    labels : dict of str to ndarray
        Further coordinates as they came: fold, seed, split, metric, …
    notes : tuple of str
        What was taken for what.
    """

    learner: NDArray[np.str_]
    n: FloatArray
    error: FloatArray
    unit: Unit = field(default_factory=Unit)
    runs: FloatArray | None = None
    variance: FloatArray | None = None
    labels: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def learners(self) -> tuple[str, ...]:
        """The learners in order of first appearance."""
        return tuple(dict.fromkeys(self.learner.tolist()))

    def __len__(self) -> int:
        return len(self.n)

    def __repr__(self) -> str:
        names = ", ".join(map(repr, self.learners[:4])) + (" …" if len(self.learners) > 4 else "")
        sizes = np.unique(self.n)
        span = f"{number(sizes[0])} to {number(sizes[-1])}" if len(sizes) else "none"
        return (
            f"Measurements({len(self)} rows in {self.unit.name}, {len(sizes)} sizes ({span}),"
            f" {len(self.learners)} learner(s): {names})"
        )

    def of(self, learner: str) -> Measurements:
        """The rows of one learner."""
        keep = self.learner == learner
        if not keep.any():
            raise InputError(
                f"learner={learner!r} is not among the measurements; there are: "
                + ", ".join(map(repr, self.learners[:20]))
            )
        return Measurements(
            learner=self.learner[keep],
            n=self.n[keep],
            error=self.error[keep],
            unit=self.unit,
            runs=None if self.runs is None else self.runs[keep],
            variance=None if self.variance is None else self.variance[keep],
            labels={k: v[keep] for k, v in self.labels.items()},
            notes=self.notes,
        )

    def frame(self) -> pd.DataFrame:
        """The rows as a pandas DataFrame."""
        whole = bool((self.n == np.round(self.n)).all() and (self.n < 2**53).all())
        sizes = self.n.astype(np.int64) if whole else self.n
        columns: dict[str, Any] = {"learner": self.learner, "n": sizes, **self.labels}
        columns["score" if self.unit.name == "score" else "error"] = self.error
        if self.runs is not None:
            columns["runs"] = self.runs
        if self.variance is not None:
            columns["variance"] = self.variance
        return data_frame(columns)
