"""Risks of methods by training size, with the controls that they are measured against."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import InputError
from curvewise.text import arg, format_count, format_number
from curvewise.types.results import RowTable, distinct
from curvewise.types.units import FloatArray, as_column, as_floats

ONE_TASK = "task"
_SHARES = frozenset(["error", "errors", "err", "errs"])
_BESIDE = {"test", "val", "valid", "validation", "eval", "rate", "mean", "avg", "average"}
_BESIDE |= {"top", "1", "5", "top1", "top5", "final", "01"}


@dataclass(frozen=True)
class Control:
    """A risk that others are measured against: a blind guess, or maximal supervision.

    Attributes
    ----------
    risk : float
        In the unit of the losses.
    std : float
        Its standard error: 0 where the risk is known, NaN where the error is not. Either way
        intervals take the risk as exact.
    source : str
        Where it is from, in words: "measured", "given", "best observed risk", "asymptote", ….
    assumed : bool
        Whether it stands in for something that was not measured.
    degrees : float
        Degrees of freedom of the standard error: of three runs 2, infinite where it is known.
    """

    risk: float
    std: float = 0.0
    source: str = "given"
    assumed: bool = False
    degrees: float = math.inf

    def __post_init__(self) -> None:
        for name in ("risk", "std", "degrees"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float | np.number):
                raise InputError(f"{name}={value!r} of a control must be a number.")
            object.__setattr__(self, name, float(value))
        if not np.isfinite(self.risk):
            raise InputError(f"risk={self.risk!r} of a control must be a finite number.")
        if self.std < 0 or np.isinf(self.std):
            raise InputError(f"std={self.std!r} of a control must be 0 or above, NaN if unknown.")
        if not self.degrees > 0:
            raise InputError(f"degrees={self.degrees!r} of a control must be above 0.")


def measured_control(n: ArrayLike, risk: ArrayLike) -> Control | None:
    """Average the runs without a size or, if all have one, of those at the largest.

    Parameters
    ----------
    n : array_like, shape (runs,)
        Training sizes; NaN or not positive where a run has none.
    risk : array_like, shape (runs,)
        NaN where a run failed.

    Returns
    -------
    Control, optional
        None if every run failed. The error of a single run is not known.

    Examples
    --------
    >>> measured_control([-1, -1, -1], [0.1, 0.2, 0.3]).degrees
    2.0
    >>> measured_control([1000, 1e6], [0.3, 0.2]).source
    'measured at n = 1,000,000'
    """
    sizes, risks = as_floats(n, "n"), as_floats(risk, "risk")
    here = ~np.isnan(risks)
    if not here.any():
        return None
    # Published tables write -1 or nothing for the size of a control.
    chosen, source = here & ~(sizes > 0), "measured"
    if not chosen.any():
        largest = float(sizes[here].max())
        chosen, source = here & (sizes == largest), f"measured at n = {format_number(largest)}"
    values = risks[chosen]
    many, mean = len(values), float(values.mean())
    if many < 2:
        return Control(mean, math.nan, source)
    std = float(values.std(ddof=1)) / math.sqrt(many)
    return Control(mean, std, source, degrees=many - 1.0)


def as_control(value: Any, argument: str, turned: Callable[[float], float] = float) -> Control:
    """Make a control of a number, an interval, or an object that is, has or makes one.

    Parameters
    ----------
    value : float, Interval, Control, or object with a method ``control``
        As a user gives it.
    argument : str
        What it is called in an error.
    turned : callable
        Makes a risk of a plain number, where tables hold something else.

    Examples
    --------
    >>> from curvewise.types import Interval
    >>> as_control(Interval(0.1, 0.08, 0.12), "maximal").risk
    0.1
    """
    if isinstance(value, Control):
        return value
    if callable(getattr(value, "control", None)):  # as BlindGuess has it
        made = value.control()
        if isinstance(made, Control):
            return made
    if all(hasattr(value, k) for k in ("estimate", "low", "high")):
        # The width of a normal interval of this level, in standard errors.
        wide = 2 * NormalDist().inv_cdf(0.5 + float(getattr(value, "level", 0.95)) / 2)
        std = (float(value.high) - float(value.low)) / wide
        return Control(float(value.estimate), std if math.isfinite(std) else math.nan, "interval")
    single = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not single or not math.isfinite(value):
        raise InputError(
            f"{arg(argument, value)} is no control: give a finite number, an interval, a Control, the name of a "
            "method, or a dictionary of these by task."
        )
    return Control(turned(float(value)))


def names_share(name: str) -> bool:
    """Return whether a risk is a share of the examples by its name, in percent or not.

    >>> names_share("Top-1 error"), names_share("reconstruction error"), names_share("loss")
    (True, False, False)
    """
    words = set(re.findall(r"[a-z0-9]+", name.lower()))
    return bool(words & _SHARES) and words <= _SHARES | _BESIDE


@dataclass(frozen=True, eq=False, repr=False)
class TransferRisks(RowTable):
    """Risks of methods on tasks by training size: what :func:`load_risks` makes.

    Attributes
    ----------
    tasks, methods : ndarray of str, shape (rows,)
        What was learned, and from which start.
    n : ndarray of float, shape (rows,)
        Training-set size.
    risk : ndarray of float, shape (rows,)
        Loss or error on test data, lower is better; NaN where the run failed. Rows keep the order
        of their source.
    seeds, folds : ndarray of str, optional
        Which run it is: of which seed, and on which training subset. Runs with the same fold and
        size have been trained on the same examples.
    scratch : str
        Name of the method that starts from nothing.
    blind, maximal : dict of str to Control
        By task; a task that has none is not there. A number is a control without an error.
    unit : str
        What a risk is called on an axis, such as "test error" or "L1 loss".
    turned : bool
        Whether the source holds accuracies or scores, which were turned into risks.
    notes : tuple of str
        How each column was interpreted.

    Examples
    --------
    >>> TransferRisks(
    ...     tasks=["a"] * 4,
    ...     methods=["scratch", "scratch", "swav", "swav"],
    ...     n=[100, 1000, 100, 1000],
    ...     risk=[0.8, 0.4, 0.5, 0.3],
    ...     blind={"a": Control(0.9)},
    ... )
    TransferRisks(4 runs, 1 task, 2 methods, 2 sizes from 100 to 1,000)
    """

    by_row = ("tasks", "methods", "n", "risk", "seeds", "folds")

    tasks: NDArray[np.str_]
    methods: NDArray[np.str_]
    n: FloatArray
    risk: FloatArray
    seeds: NDArray[np.str_] | None = None
    folds: NDArray[np.str_] | None = None
    scratch: str = "scratch"
    blind: Mapping[str, Control] = field(default_factory=dict)
    maximal: Mapping[str, Control] = field(default_factory=dict)
    unit: str = "loss"
    notes: tuple[str, ...] = ()
    turned: bool = False

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "risk", as_floats(self.risk, "risk"))
        if self.risk.ndim != 1 or not len(self.risk):
            raise InputError("is empty: give at least one measured risk.", argument="risk")
        put(self, "n", as_column(as_floats(self.n, "n"), "n", len(self), "risks"))
        for name in ("tasks", "methods", "seeds", "folds"):
            given = getattr(self, name)
            if given is not None:
                put(self, name, as_column(np.asarray(given, dtype=np.str_), name, len(self), "risks"))
        for name in ("blind", "maximal"):
            given = getattr(self, name)
            if not isinstance(given, Mapping):
                raise InputError("must be a dictionary of controls by task.", argument=name, value=given)
            put(self, name, {str(t): c if isinstance(c, Control) else Control(c) for t, c in given.items()})
        if not (np.isfinite(self.n) & (self.n > 0)).all():
            bad = self.n[~(np.isfinite(self.n) & (self.n > 0))][0]
            raise InputError(f"holds {bad:g}: training sizes must be positive numbers.", argument="n")
        if np.isinf(self.risk).any():
            raise InputError("holds an infinite value: use NaN where a run failed.", argument="risk")

    def __len__(self) -> int:
        return len(self.risk)

    def __repr__(self) -> str:
        sizes, counts = np.unique(self.n), {"run": len(self), "task": len(self.task_names)}
        counts |= {"method": len(self.method_names), "size": len(sizes)}
        ends = [format_number(n) for n in (sizes[0], sizes[-1])]
        span = f" from {ends[0]} to {ends[1]}" if len(sizes) > 1 else f": {ends[0]}"
        return f"TransferRisks({', '.join(format_count(k, noun) for noun, k in counts.items())}{span})"

    @property
    def task_names(self) -> tuple[str, ...]:
        """The tasks in order of first appearance."""
        return distinct(self.tasks)

    @property
    def method_names(self) -> tuple[str, ...]:
        """The methods, scratch among them, in order of first appearance."""
        return distinct(self.methods)

    def of(self, *, task: str | None = None, method: str | None = None) -> TransferRisks:
        """Select the rows of one task, of one method, or of both."""
        keep = np.ones(len(self), dtype=np.bool_)
        for name, wanted, column in (("task", task, self.tasks), ("method", method, self.methods)):
            if wanted is None:
                continue
            if wanted not in column:
                there = ", ".join(map(repr, dict.fromkeys(column.tolist())))
                raise InputError(f"{arg(name, wanted)} is not among the risks; there are {there}.")
            keep &= column == wanted
        if not keep.any():
            raise InputError(f"{arg('method', method)} was not measured on {arg('task', task)}.")
        return self.select(keep)

    def columns(self) -> dict[str, Any]:
        """Return columns with a row for each run."""
        found: dict[str, Any] = {"task": self.tasks, "method": self.methods, "n": self.n}
        for name, column in (("seed", self.seeds), ("fold", self.folds)):
            if column is not None:
                found[name] = column
        return {**found, "risk": self.risk}
