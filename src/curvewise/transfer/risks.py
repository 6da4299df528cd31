"""Risks of methods by training size, the controls that they are measured against, and calibrated risks."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any, TypeAlias, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import InputError, arg
from curvewise.text import format_count, format_number
from curvewise.types.results import FloatArray, RowTable, as_column, as_floats, distinct

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
    n_runs, mean = len(values), float(values.mean())
    if n_runs < 2:
        return Control(mean, math.nan, source)
    std = float(values.std(ddof=1)) / math.sqrt(n_runs)
    return Control(mean, std, source, degrees=n_runs - 1.0)


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
        size have been trained on the same examples; those whose fold is "" on others than all others.
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


# Calibrated risk, the cumulative improvement over scratch, and their derivatives.

Weight: TypeAlias = str | Callable[[FloatArray], FloatArray]

WEIGHTS = ("scratch", "uniform", "log")


@overload
def calibrated_risk(risk: float, *, blind: float, maximal: float) -> float: ...
@overload
def calibrated_risk(risk: ArrayLike, *, blind: ArrayLike, maximal: ArrayLike) -> FloatArray: ...
def calibrated_risk(risk: ArrayLike, *, blind: ArrayLike, maximal: ArrayLike) -> float | FloatArray:
    """Scale a risk so that maximal supervision is at 0 and the blind guess at 1.

    Atanov et al. 2022: (R − R_maximal) / (R_blind − R_maximal). 1 is no better than a blind guess, 0 as good as with
    all the data there is; above 1 is worse than a guess, below 0 better than what was taken for maximal.

    Parameters
    ----------
    risk : array_like
        Losses or errors; NaN stays NaN.
    blind, maximal : array_like
        Risks of the two controls, in the same unit.

    Raises
    ------
    InputError
        If the blind guess is not worse than maximal supervision.

    Examples
    --------
    >>> calibrated_risk(0.5, blind=0.9, maximal=0.1)
    0.5
    """
    r, b, m = (as_floats(v, k) for v, k in ((risk, "risk"), (blind, "blind"), (maximal, "maximal")))
    if not (np.isfinite(b).all() and np.isfinite(m).all()):
        raise InputError("blind and maximal must be finite: a scale needs both of its ends.")
    try:
        np.broadcast_shapes(r.shape, b.shape, m.shape)
    except ValueError:
        raise InputError(
            f"risk, blind and maximal have shapes {r.shape}, {b.shape} and {m.shape}: give one control for all risks, "
            "or one for each."
        ) from None
    if not (b > m).all():
        raise InputError(
            f"must be above {arg('maximal', maximal)}: risks are lower-is-better.",
            argument="blind",
            value=blind,
            remedy="Turn accuracies into errors, or check which control is which.",
        )
    found = (r - m) / (b - m)
    return float(found) if found.ndim == 0 else found


def cci(n: ArrayLike, method: ArrayLike, scratch: ArrayLike, *, weight: Weight = "scratch") -> float:
    """Compute the calibrated cumulative improvement of a method over training from scratch.

    Atanov et al. 2022: the area between the two calibrated risk curves over that below the one of scratch, by
    trapezoids. 1 is maximal supervision at every size, 0 no better than scratch, negative worse.

    Parameters
    ----------
    n : array_like, shape (sizes,)
        Training sizes, from small to large. A size may be there twice.
    method, scratch : array_like, shape (sizes,)
        Calibrated risks at them.
    weight : {"scratch", "uniform", "log"} or callable
        Scale on which the area is integrated: the calibrated risk of scratch, so that each step counts by what scratch
        learns in it (the paper's); the size (weight 1); or its logarithm (weight 1/n). A callable gives a positive
        weight for each size.

    Returns
    -------
    float
        NaN where scratch encloses no area: with one size, or if its risk does not change.

    Examples
    --------
    >>> cci([100, 1000], method=[0.4, 0.2], scratch=[0.8, 0.4])
    0.5
    """
    sizes, m, s = (as_floats(v, k) for v, k in ((n, "n"), (method, "method"), (scratch, "scratch")))
    if sizes.ndim != 1 or m.shape != sizes.shape or s.shape != sizes.shape:
        raise InputError(
            f"n, method and scratch have shapes {sizes.shape}, {m.shape} and {s.shape}: give one calibrated risk of "
            "each for every size."
        )
    if not (np.isfinite(sizes) & (sizes > 0)).all() or (np.diff(sizes) < 0).any():
        raise InputError("n must hold positive sizes, from small to large.")
    if not (np.isfinite(m).all() and np.isfinite(s).all()):
        raise InputError("method or scratch holds NaN: leave out sizes at which either is missing.")
    return cci_slopes(sizes, m, s, 0.0, weight).value


def step_widths(n: FloatArray, scratch: FloatArray, weight: Weight) -> FloatArray:
    """Return the width of each step from one size to the next, on the scale of a weight."""
    if callable(weight):
        w = as_floats(weight(n), "weight(n)")
        if w.shape != n.shape or not (np.isfinite(w) & (w > 0)).all():
            raise InputError("weight must give a positive number for each size.")
        return 0.5 * (w[1:] + w[:-1]) * np.diff(n)
    if weight not in WEIGHTS:
        raise InputError(
            f"is not known: use one of {', '.join(map(repr, WEIGHTS))}, or a function of the sizes.",
            argument="weight",
            value=weight,
        )
    scale = {"scratch": scratch, "uniform": n, "log": np.log(n)}[weight]
    return np.diff(scale)


@dataclass(frozen=True)
class CciSlopes:
    """A cumulative improvement and its derivatives, in the unit of the losses.

    Attributes
    ----------
    value : float
        NaN where scratch encloses no area.
    method, scratch : ndarray, shape (points,)
        By the risk of each at every point.
    maximal : float
        By maximal supervision. The blind guess only sets the scale of both areas, so that it falls out.
    """

    value: float
    method: FloatArray
    scratch: FloatArray
    maximal: float


def cci_slopes(n: FloatArray, method: FloatArray, scratch: FloatArray, maximal: float, weight: Weight) -> CciSlopes:
    """Return the cumulative improvement, 1 − A/B, with its derivatives.

    A = Σ Δ (F + F′ − 2M) and B = Σ Δ (S + S′ − 2M) over the steps Δ from one size to the next, where F, S and M are
    the risks of the method, of scratch and of maximal supervision.
    """
    width = step_widths(n, scratch, weight)
    both = [values[1:] + values[:-1] for values in (method - maximal, scratch - maximal)]
    a, b = (float(width @ pair) for pair in both)
    if b == 0:
        gone = np.full(len(n), np.nan)
        return CciSlopes(math.nan, gone, gone, math.nan)
    held = _to_points(width, width)
    of_a, of_b = np.zeros(len(n)), held.copy()
    if not callable(weight) and weight == "scratch":  # the steps themselves are differences of scratch
        of_a = of_a + _to_points(-both[0], both[0])
        of_b = of_b + _to_points(-both[1], both[1])
    ratio = a / b
    # A − B by itself keeps the digits that 1 − A/B would lose where a method is nearly scratch.
    value = float(width @ (both[1] - both[0])) / b
    return CciSlopes(value, -held / b, (ratio * of_b - of_a) / b, 2 * float(width.sum()) * (1 - ratio) / b)


def _to_points(left: FloatArray, right: FloatArray) -> FloatArray:
    """Add what each step gives to the points at its left and right ends."""
    found = np.zeros(len(left) + 1)
    found[:-1] += left
    found[1:] += right
    return found
