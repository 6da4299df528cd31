"""IsoFLOP fits: a parabola of loss in log N at each budget of compute, then power laws of the minima in C."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

from curvewise.errors import InputError, Message, quietly, warn_all
from curvewise.scaling.load import as_scaling_runs
from curvewise.scaling.optimum import (
    NEAR,
    ComputeOptimal,
    Refittable,
    Sensitivity,
    extrapolation_notes,
    make_optimum,
    measure_sensitivity,
    read_budgets,
    short,
)
from curvewise.scaling.runs import ScalingRuns, input_warnings
from curvewise.text import format_count, format_interval, format_number
from curvewise.types.results import FloatArray, Interval, as_floats, check_level

GAP = 0.1
"""Gap in log C from which runs belong to different budgets: budgets of a study differ by factors."""
SPAN = 2.0
"""Ratio of the largest compute at a budget to the smallest from which losses there differ by more than model size."""
FEWEST_SIZES = 4
"""Sizes at a budget that show a parabola and how well it fits."""


class PowerLaw(NamedTuple):
    """A line in logarithms: y = coefficient · x^exponent.

    Attributes
    ----------
    exponent, coefficient : Interval
        With intervals by Student's t.
    covariance : ndarray, shape (2, 2)
        Of slope and intercept.
    intercept : float
        At log x = ``centre``.
    centre : float
        Weighted mean of log x.
    degrees : float
        Degrees of freedom: points less two.
    """

    exponent: Interval
    coefficient: Interval
    covariance: FloatArray
    intercept: float
    centre: float
    degrees: float

    def at(self, x: FloatArray, level: float = 0.95) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return log y with its limits."""
        distance = np.log(x) - self.centre
        centre = self.intercept + self.exponent.estimate * distance
        var = self.covariance[1, 1] + distance**2 * self.covariance[0, 0]
        half = stdtrit(self.degrees, 0.5 + level / 2) * np.sqrt(var)  # NaN without degrees of freedom
        return centre, centre - half, centre + half


def fit_power_law(x: ArrayLike, y: ArrayLike, *, std: ArrayLike | None = None, level: float = 0.95) -> PowerLaw:
    """Fit a power law to a few points by least squares of logarithms.

    Parameters
    ----------
    x, y : array_like, shape (n,)
        Positive; points whose y is NaN are left out.
    std : array_like, shape (n,), optional
        Standard errors of log y, by whose inverse squares points count.
    level : float
        Coverage of the intervals.

    Returns
    -------
    PowerLaw
        With two points there are no intervals.

    Examples
    --------
    >>> law = fit_power_law([1e18, 1e19, 1e20], [1e8, 3.2e8, 1e9])
    >>> round(law.exponent.estimate, 3)
    0.5
    """
    check_level(level)
    given_x, given_y = as_floats(x, "x"), as_floats(y, "y")
    spreads = np.ones(given_x.shape) if std is None else as_floats(std, "std")
    if given_x.ndim != 1 or not given_x.shape == given_y.shape == spreads.shape:
        shapes = f"{given_x.shape}, {given_y.shape}" + ("" if std is None else f" and {spreads.shape}")
        raise InputError(f"x, y and std must be lists of one length; their shapes are {shapes}.")
    for name, values in (("x", given_x), ("y", given_y), ("std", spreads)):
        if not (((values > 0) & np.isfinite(values)) | (np.isnan(values) & (name != "x"))).all():
            raise InputError("must hold finite numbers above 0.", argument=name)
    known = ~np.isnan(given_y) & ~np.isnan(spreads)
    log_x, log_y, w = np.log(given_x[known]), np.log(given_y[known]), 1.0 / spreads[known] ** 2
    if len(log_x) < 2 or np.ptp(log_x) == 0:
        raise InputError(f"holds {format_count(len(log_x), 'point')}: a power law needs two at least.", argument="x")
    centre = float(w @ log_x / w.sum())
    spread = float(w @ (log_x - centre) ** 2)
    slope, middle = float(w @ ((log_x - centre) * log_y)) / spread, float(w @ log_y / w.sum())
    degrees = float(len(log_x) - 2)
    rest = log_y - middle - slope * (log_x - centre)
    scale = float(w @ rest**2) / degrees if degrees > 0 else np.nan
    covariance = np.diag([scale / spread, scale / float(w.sum())])
    half = float(stdtrit(degrees, 0.5 + level / 2) * np.sqrt(covariance[0, 0]))
    exponent = Interval(slope, slope - half, slope + half, level)
    law = PowerLaw(exponent, exponent, covariance, middle, centre, degrees)
    with np.errstate(over="ignore"):
        start, low, high = np.exp(law.at(np.ones(1), level)).ravel().tolist()
    return law._replace(coefficient=Interval(start, low, high, level))


def fit_isoflops(
    runs: Any, *, budgets: ArrayLike | None = None, weighted: bool = False, level: float = 0.95
) -> IsoflopFit:
    """Fit a parabola of loss in log N at each budget, then power laws of the minima in C.

    Parameters
    ----------
    runs : ScalingRuns, path, dict or DataFrame
        As for :func:`fit_scaling_law`. Runs with one compute, by ``flops`` or else 6 N D, belong together.
    budgets : list of float, optional
        Nominal budgets; each run belongs to the nearest. By default runs are grouped where log C has gaps.
    weighted : bool
        Weigh minima by the inverse square of their standard errors.
    level : float
        Coverage of the intervals.

    Returns
    -------
    IsoflopFit
        Budgets without a minimum between their smallest and largest model, and those whose runs differ in compute by
        more than two times, are left out, and warnings say so.

    Notes
    -----
    A parabola is an approximation: where sizes reach further to one side of the minimum than to the other, it is
    biased, and intervals, which come from the scatter of the minima around the power law, do not show it.

    Examples
    --------
    >>> c, off = np.repeat([1e18, 1e19, 1e20, 1e21], 5), np.tile([0.3, 0.6, 1.0, 1.8, 3.0], 4)
    >>> n = np.sqrt(c / 120) * off
    >>> loss = 1.8 + 480 / n**0.35 + 2000 / (c / 6 / n) ** 0.37
    >>> fit = fit_isoflops({"params": n, "flops": c, "loss": loss})
    >>> round(fit.params_exponent.estimate, 2)
    0.51
    """
    check_level(level)
    given = as_scaling_runs(runs)
    minima, dropped = _minima(given, budgets)
    if len(minima) < 2:
        reasons = "; ".join(f"{c:.3g} FLOP: {why}" for c, why in dropped) or "there is one budget"
        raise InputError(
            f"has {format_count(len(minima), 'budget')} with a minimum of loss between its smallest and largest model "
            f"({reasons}): a power law needs two at least.",
            argument="runs",
        )
    c, log_n, loss, bend, error, rows = (np.array(v) for v in zip(*minima, strict=True))
    law = fit_power_law(c, np.exp(log_n), std=error if weighted else None, level=level)
    a, k = law.exponent, law.coefficient
    unclear = "the minima of several budgets can rest on one training, which makes intervals too narrow"
    notes = [*given.warnings, *input_warnings(given, unclear)]
    notes += [Message(f"{budget:.3g} FLOP: left out ({why}).") for budget, why in dropped]
    if len(minima) == 2:
        notes.append("Two budgets fix a power law exactly: there are no intervals.")
    warn_all(notes)
    return IsoflopFit(
        name=given.name,
        params_exponent=a,
        params_coefficient=k,
        tokens_exponent=Interval(1 - a.estimate, 1 - a.high, 1 - a.low, level),
        tokens_coefficient=Interval(1 / (6 * k.estimate), 1 / (6 * k.high), 1 / (6 * k.low), level),
        budget=c,
        optimum=np.exp(log_n),
        optimum_std=error,
        optimum_loss=loss,
        curvature=bend,
        rows=rows.astype(np.int64),
        dropped=tuple(dropped),
        weighted=weighted,
        warnings=tuple(notes),
        runs=given,
        _law=law,
        _budgets=None if budgets is None else as_floats(budgets, "budgets"),
    )


def budget_groups(runs: ScalingRuns, budgets: ArrayLike | None = None) -> list[tuple[float, NDArray[np.intp]]]:
    """Return the budgets with the rows of each."""
    logs = np.log(runs.compute if runs.flops is None else runs.flops)
    if budgets is not None:
        named = np.sort(np.atleast_1d(as_floats(budgets, "budgets")))
        if not named.size or not (np.isfinite(named) & (named > 0)).all():
            raise InputError("must be numbers above 0.", argument="budgets")
        nearest = np.abs(logs[:, None] - np.log(named)).argmin(axis=1)
        return [(float(named[k]), np.flatnonzero(nearest == k)) for k in range(len(named)) if (nearest == k).any()]
    order = np.argsort(logs)
    parts = np.split(order, np.flatnonzero(np.diff(logs[order]) > GAP) + 1)
    return [(float(np.exp(np.median(logs[rows]))), np.sort(rows)) for rows in parts]


def _minima(
    runs: ScalingRuns, budgets: ArrayLike | None
) -> tuple[list[tuple[float, float, float, float, float, int]], list[tuple[float, str]]]:
    """Return C, log N*, loss, curvature, standard error of log N* and rows of each budget, and those left out."""
    minima, dropped = [], []
    for c, rows in budget_groups(runs, budgets):
        x, y = np.log(runs.params[rows]), runs.loss[rows]
        spent = (runs.compute if runs.flops is None else runs.flops)[rows]
        if spent.max() > SPAN * spent.min():
            dropped.append((c, f"its runs differ in compute by {format_number(spent.max() / spent.min(), 2)} times"))
            continue
        if len(np.unique(x)) < FEWEST_SIZES:
            dropped.append((c, f"{format_count(len(np.unique(x)), 'size')} only"))
            continue
        centre = x.mean()
        basis = np.vander(x - centre, 3)
        (bend, slope, level), *_ = np.linalg.lstsq(basis, y, rcond=None)
        if not bend > 0:
            dropped.append((c, "loss has no minimum in model size"))
            continue
        best = -slope / (2 * bend)
        if not x.min() < centre + best < x.max():
            dropped.append((c, "no interior minimum: the best size lies beyond the smallest or largest model"))
            continue
        degrees = len(x) - 3
        noise = float(((y - basis @ [bend, slope, level]) ** 2).sum()) / degrees if degrees > 0 else np.nan
        # d(−b/2a) in a and b
        pull = np.array([slope / (2 * bend**2), -1 / (2 * bend), 0.0])
        error = float(np.sqrt(noise * pull @ np.linalg.inv(basis.T @ basis) @ pull))
        minima.append((c, float(centre + best), float(level - slope**2 / (4 * bend)), float(bend), error, len(x)))
    return minima, dropped


@dataclass(frozen=True, eq=False)
class IsoflopFit(Refittable):
    """Power laws of the compute-optimal size: N* = k C^a and D* = C/6N*.

    Attributes
    ----------
    name : str
        Name of the runs.
    params_exponent, params_coefficient, tokens_exponent, tokens_coefficient : Interval
        N* = coefficient · C^exponent, and the same of D*.
    budget, optimum, optimum_std, optimum_loss : ndarray
        Budgets with N*, the standard error of log N*, and the loss there.
    curvature : ndarray
        Of the parabolas in log N.
    rows : ndarray of int
        Runs at each budget.
    dropped : tuple of (float, str)
        Budgets that were left out, and why.
    weighted : bool
        Whether minima count by their standard errors.
    runs : ScalingRuns
        What was fitted.
    """

    name: str
    params_exponent: Interval
    params_coefficient: Interval
    tokens_exponent: Interval
    tokens_coefficient: Interval
    budget: FloatArray
    optimum: FloatArray
    optimum_std: FloatArray
    optimum_loss: FloatArray
    curvature: FloatArray
    rows: NDArray[np.int64]
    dropped: tuple[tuple[float, str], ...]
    weighted: bool
    warnings: tuple[str, ...]
    runs: ScalingRuns
    _law: PowerLaw
    _budgets: FloatArray | None

    def compute_optimal(self, budget: ArrayLike, *, level: float = 0.95) -> ComputeOptimal:
        """Return the compute-optimal size for a budget, or a list of them.

        IsoFLOP fits predict sizes; ``loss`` is NaN beyond what was measured.
        """
        check_level(level)
        budgets = read_budgets(budget)
        size = self._law.at(budgets, level)
        # Half the width of the parabola at 0.1% above the loss of the largest budget.
        near = float(np.sqrt(NEAR * self.optimum_loss[-1] / self.curvature[-1]))
        ranges = [(float(np.exp(v - near)), float(np.exp(v + near))) for v in size[0]]
        unknown = np.full(len(budgets), np.nan)
        found = make_optimum(budget, size, (unknown,) * 3, ranges, level, extrapolation_notes(self.runs, budgets))
        warn_all(found.warnings)
        windows = partial(self._sensitivity, float(budgets.max()), None, level)
        return replace(found, warnings=(*found.warnings, *self.warnings), _windows=windows)

    def _sensitivity(self, budget: float | None, drop: Sequence[int] | None, level: float) -> Sensitivity:
        at = budget or 100 * float(self.budget.max())
        whence = "" if budget else "a hundred times the largest budget fitted"

        def answer(part: ScalingRuns) -> tuple[float, float, float]:
            minima, _ = _minima(part, self._budgets)
            if len(minima) < 2:
                raise InputError("too few budgets have a minimum.")
            c, log_n, _, _, error, _ = (np.array(v) for v in zip(*minima, strict=True))
            law = fit_power_law(c, np.exp(log_n), std=error if self.weighted else None)
            return float(law.at(np.array([at]))[0][0]), law.exponent.estimate, float("nan")

        with quietly():
            interval = self.compute_optimal(at, level=level).tokens_per_param
        return measure_sensitivity(self.runs, answer, at, interval, drop, whence=whence)

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """Return a row for each budget: its minimum."""
        return {
            "budget": self.budget,
            "params": self.optimum,
            "tokens": self.budget / 6 / self.optimum,
            "loss": self.optimum_loss,
            "log_params_std": self.optimum_std,
            "rows": self.rows,
        }

    def readable(self) -> Mapping[str, Sequence[Any]]:
        """Return a row for each budget with counts as people write them."""
        n, d = self.optimum, self.budget / 6 / self.optimum
        sizes = {"best params": n, "tokens": d, "tokens per param": d / n}
        return {
            "compute": [f"{c:.3g}" for c in self.budget],
            **{name: [short(float(v)) for v in values] for name, values in sizes.items()},
            "loss": [f"{v:.4g}" for v in self.optimum_loss],
            "runs": [int(v) for v in self.rows],
        }

    def sentences(self) -> str:
        """The power laws in two sentences."""
        return (
            f"Parabolas at {format_count(len(self.budget), 'budget')} from {self.budget.min():.3g} to "
            f"{self.budget.max():.3g} FLOP: the compute-optimal number of parameters grows as "
            f"C^{format_interval(self.params_exponent)}, that of tokens as {self.tokens_coefficient.estimate:.3g} · "
            f"C^{format_interval(self.tokens_exponent)}."
        )
