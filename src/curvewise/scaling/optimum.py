"""The size of a model that makes the best of a budget of compute, and how it depends on the runs that are fitted."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError, Message, arg, warn_all
from curvewise.scaling.fit import Forecast
from curvewise.scaling.forms import LOG6, Form, Repeated, on_budget
from curvewise.scaling.runs import ScalingRuns
from curvewise.text import format_count, format_interval, format_number
from curvewise.types.results import FloatArray, Interval, Result, as_floats, check_level

NEAR = 1e-3
"""Relative excess over the best loss that counts as equally good: about the noise of a run."""
FAR = np.log(64.0)
"""Beyond this factor of compute the benchmark has no data on how well laws extrapolate."""


OFF = np.log(10.0)
"""Distance of the optimal tokens per parameter from those of all runs at which the law is not to be relied on."""


@dataclass(frozen=True, eq=False)
class ComputeOptimal(Result):
    """Compute-optimal model for one or more budgets.

    Attributes
    ----------
    budget : float or tuple of float
        Compute C in FLOP, C = 6 N D.
    params, tokens, loss, tokens_per_param : Interval, or tuple of Interval for several budgets
        N*, D*, the expected loss and D*/N*.
    params_range : tuple of float, or tuple of these
        Smallest and largest N whose loss at that budget is within 0.1% of the best.
    level : float
        Coverage of the intervals.
    unique_tokens : float or None
        Distinct tokens, where data is repeated.
    warnings : tuple of str
        What deserves a look in the answer, and in the fit that it comes from.
    """

    budget: Any
    params: Any
    tokens: Any
    loss: Any
    tokens_per_param: Any
    params_range: Any
    level: float
    unique_tokens: float | None = None
    warnings: tuple[str, ...] = ()
    _forecast: Forecast | None = None
    _windows: Callable[[], Sensitivity] | None = None

    @cached_property
    def _window_warnings(self) -> tuple[str, ...]:
        return () if self._windows is None else self._windows().warnings

    @property
    def all_warnings(self) -> tuple[str, ...]:
        """The warnings, with that of an answer, for the largest budget, that depends on which runs are fitted."""
        return (*self.warnings, *self._window_warnings)

    def loss_by_size(self, budget: float, params: FloatArray) -> FloatArray:
        """Return the expected losses of models of these sizes on a budget; NaN for isoFLOP fits, which have none."""
        if self._forecast is None:
            return np.full(len(params), np.nan)
        unique = None if self.unique_tokens is None else float(np.log(self.unique_tokens))
        at = on_budget(np.full(len(params), np.log(budget)), np.log(params), unique)
        return np.exp(self._forecast.log_loss(at))

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """Return one row per budget: params, tokens, loss and tokens per parameter, each with low and high."""
        each = ("budget", "params", "tokens", "loss", "tokens_per_param", "params_range")
        found = {k: getattr(self, k) if isinstance(self.budget, tuple) else [getattr(self, k)] for k in each}
        table: dict[str, list[Any]] = {"budget": list(found.pop("budget"))}
        for name, values in found.items():
            sides = ("_low", "_high") if name == "params_range" else ("", "_low", "_high")
            table |= {name + side: list(ends) for side, ends in zip(sides, zip(*values, strict=True), strict=True)}
        return table

    def readable(self) -> Mapping[str, Sequence[Any]]:
        """Return one row per budget with counts as people write them."""
        rows = self.columns()
        table: dict[str, list[str]] = {"compute": [f"{c:.3g}" for c in rows["budget"]]}
        for name in ("params", "tokens", "tokens_per_param"):
            ends = zip(rows[name], rows[f"{name}_low"], rows[f"{name}_high"], strict=True)
            table[name.replace("_", " ")] = [_with_limits(*e) for e in ends]
        table["loss"] = [str(Interval(*e)) for e in zip(rows["loss"], rows["loss_low"], rows["loss_high"], strict=True)]
        ranges = zip(rows["params_range_low"], rows["params_range_high"], strict=True)
        table["params within 0.1% of the best loss"] = [f"{short(a)} to {short(b)}" for a, b in ranges]
        return table

    def sentences(self) -> str:
        """The optimum in a few sentences."""
        lines = [
            f"For {budget} FLOP: {n} parameters on {d} tokens ({ratio} tokens per parameter), loss {loss}. Any size "
            f"from {near} is within 0.1% of the best loss."
            for budget, n, d, ratio, loss, near in zip(*self.readable().values(), strict=True)
        ]
        return " ".join(lines[:5] + ([f"{len(lines) - 5} further budgets are in the table."] if len(lines) > 5 else []))


def short(count: float) -> str:
    """Write a number of parameters or tokens.

    >>> short(7.03e10), short(1.4e12), short(1.9e8), short(float("inf")), short(20.1), short(9.997e8)
    ('70.3B', '1.4T', '190M', '∞', '20.1', '1B')
    """
    if not np.isfinite(count):
        return format_number(count)
    for size, letter in ((1e12, "T"), (1e9, "B"), (1e6, "M")):
        if count >= 0.9995 * size:  # three digits of 999.6M are those of 1B
            return f"{count / size:.4g}{letter}" if count >= 1000 * size else f"{count / size:.3g}{letter}"
    return f"{count:.3g}" if count < 1e4 else f"{count:,.0f}"


def _with_limits(estimate: float, low: float, high: float) -> str:
    if np.isnan(low) or np.isnan(high):
        return short(estimate)
    return f"{short(estimate)} [{short(low)}, {short(high)}]"


def positive(value: Any, name: str, noun: str = "floating-point operations") -> float:
    """Return one number above 0, or raise an error that names the argument."""
    number = as_floats(value, name)
    if number.ndim or not np.isfinite(number) or number <= 0:
        raise InputError(f"{arg(name, value)} must be a number of {noun} above 0.")
    return float(number)


def read_budgets(budget: Any) -> FloatArray:
    """Return one budget of compute or a list of them as an array, shape (M,)."""
    given = np.atleast_1d(as_floats(budget, "budget"))
    if given.ndim != 1 or not len(given) or not (np.isfinite(given) & (given > 0)).all():
        raise InputError(f"{arg('budget', budget)} must be a number of floating-point operations above 0, or a list.")
    return given


def find_optimum(forecast: Forecast, budget: Any, level: float, unique_tokens: float | None) -> ComputeOptimal:
    """Find the compute-optimal model for a budget, or a list of them."""
    logs = np.log(read_budgets(budget))
    check_repeats_known(forecast, unique_tokens)
    unique = None if unique_tokens is None else float(np.log(positive(unique_tokens, "unique_tokens", "tokens")))

    def best(form: Form, theta: FloatArray, at: FloatArray) -> tuple[FloatArray, FloatArray]:
        where, loss = form.lowest(theta, at)
        if unique is not None:  # where tokens repeat it is near the one of new tokens
            where, loss = _lowest(lambda n: form.own_loss(theta, on_budget(at, n, unique)), where - 4.0, where + 4.0)
        return where, np.log(loss)

    heavy = [m for m in forecast.members if m.weight > 0.001 or len(forecast.members) == 1]
    each = [best(m.data.form, np.tile(m.theta, (len(logs), 1)), logs) for m in heavy]
    log_n, log_loss = each[0]
    if len(forecast.members) > 1:
        sizes = np.stack([size for size, _ in each])
        log_n, log_loss = _lowest(
            lambda n: forecast.log_loss(on_budget(logs, n, unique)), sizes.min(axis=0) - 0.5, sizes.max(axis=0) + 0.5
        )
    (n_low, n_high), (l_low, l_high) = forecast.optima(best, logs, level, sampled=unique is not None)
    notes = extrapolation_notes(forecast.runs, np.exp(logs))
    measured = np.log(forecast.runs.tokens / forecast.runs.params)
    ratio = logs - LOG6 - 2 * log_n
    if unique is None and (ratio.min() < measured.min() - OFF or ratio.max() > measured.max() + OFF):
        ends = " to ".join(dict.fromkeys(f"{np.exp(v):.3g}" for v in (ratio.min(), ratio.max())))
        notes.append(
            f"The optimum has {ends} tokens per parameter, far from the {np.exp(measured.min()):.3g} to "
            f"{np.exp(measured.max()):.3g} of the runs: train some such models before relying on it."
        )
    return make_optimum(
        budget,
        (log_n, n_low, n_high),
        (log_loss, l_low, l_high),
        _ranges(forecast, logs, log_n, log_loss, unique),
        level,
        notes,
        unique_tokens=unique_tokens,
        _forecast=forecast,
    )


def make_optimum(
    budget: Any,
    log_n: Sequence[FloatArray],
    log_loss: Sequence[FloatArray],
    ranges: Sequence[tuple[float, float]],
    level: float,
    notes: Sequence[str],
    **further: Any,
) -> ComputeOptimal:
    """Make the result of log N* and log loss, each as estimate, low and high of the budgets, shape (M,)."""
    budgets, single = read_budgets(budget), np.ndim(budget) == 0
    total = np.log(budgets) - LOG6
    size, low, high = log_n

    def intervals(*ends: FloatArray) -> Any:
        with np.errstate(over="ignore"):
            made = tuple(Interval(e, a, b, level) for e, a, b in np.exp(np.stack(ends)).T.tolist())
        return made[0] if single else made

    return ComputeOptimal(
        budget=float(budgets[0]) if single else tuple(budgets.tolist()),
        params=intervals(size, low, high),
        tokens=intervals(total - size, total - high, total - low),
        loss=intervals(*log_loss),
        tokens_per_param=intervals(total - 2 * size, total - 2 * high, total - 2 * low),
        params_range=ranges[0] if single else tuple(ranges),
        level=level,
        warnings=tuple(map(Message, notes)),
        **further,
    )


def check_repeats_known(forecast: Forecast, unique_tokens: Any) -> None:
    """Refuse a number of distinct tokens for a law that does not know of repetition."""
    if unique_tokens is not None and not isinstance(forecast.leading.data.form, Repeated):
        given, form = arg("unique_tokens", unique_tokens), arg("form", "repeated")
        raise InputError(f"{given} needs a law of repeated data: fit one with {form}.")


def extrapolation_notes(runs: ScalingRuns, compute: FloatArray) -> list[str]:
    """Return a warning where the compute of a question is further from the runs than any backtest."""
    largest = float(compute.max())
    ratio = largest / float(runs.compute.max())
    if np.log(ratio) <= FAR:
        return []
    return [
        f"{largest:.3g} FLOP is {format_number(ratio, 3)} times the largest run: beyond 64 times no backtest shows how "
        "well scaling laws extrapolate."
    ]


def _lowest(
    loss: Callable[[FloatArray], FloatArray], low: FloatArray, high: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the places and values of the minima of K functions: on a grid that is narrowed, then of a parabola."""
    shares = np.linspace(0.0, 1.0, 21)
    for _ in range(6):
        grid = low + shares[:, None] * (high - low)
        best = np.array([loss(points) for points in grid]).argmin(axis=0)
        low, high = (grid[np.clip(best + step, 0, 20), np.arange(len(low))] for step in (-1, 1))
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    a, b, c = loss(low), loss(middle), loss(high)
    bend = a - 2 * b + c
    shift = np.divide(0.5 * (a - c), bend, out=np.zeros_like(bend), where=bend > 0)
    place = middle + np.clip(shift, -1, 1) * half
    return place, loss(place)


def _ranges(
    forecast: Forecast, logs: FloatArray, best: FloatArray, log_loss: FloatArray, unique: float | None
) -> list[tuple[float, float]]:
    """Return the smallest and the largest N within 0.1% of the best loss at each budget."""
    goal = log_loss + np.log1p(NEAR)
    ends = []
    for side in (-1.0, 1.0):

        def below(distance: FloatArray, side: float = side) -> NDArray[np.bool_]:
            return np.asarray(forecast.log_loss(on_budget(logs, best + side * distance, unique)) < goal)

        inner, outer = np.zeros(len(logs)), np.full(len(logs), 0.1)
        for _ in range(9):
            within = below(outer)
            inner, outer = np.where(within, outer, inner), np.where(within, 2 * outer, outer)
        for _ in range(40):
            middle = 0.5 * (inner + outer)
            within = below(middle)
            inner, outer = np.where(within, middle, inner), np.where(within, outer, middle)
        ends.append(np.exp(best + side * outer))
    return [(float(a), float(b)) for a, b in zip(*ends, strict=True)]


SHARES = (1 / 49, 4 / 49, 8 / 49)
"""Shares of the rows with the highest losses that are dropped: 5, 20 and 40 of Chinchilla's 245."""


@dataclass(frozen=True, eq=False)
class Sensitivity(Result):
    """Compute-optimal size as the fitting window moves.

    Attributes
    ----------
    budget : float
        Compute for which sizes are given.
    window : tuple of str
        What was fitted, in words; the first is all rows.
    rows : tuple of int
        Rows fitted.
    params, tokens, tokens_per_param, exponent, loss : ndarray
        Optimum, exponent a of N* ∝ C^a and expected loss of each window.
    interval : Interval
        Tokens per parameter by the fit to all rows.
    outside : tuple of str
        Windows whose answer leaves that interval.
    """

    budget: float
    window: tuple[str, ...]
    rows: tuple[int, ...]
    params: FloatArray
    tokens: FloatArray
    tokens_per_param: FloatArray
    exponent: FloatArray
    loss: FloatArray
    interval: Interval
    outside: tuple[str, ...]
    warnings: tuple[str, ...]

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """Return a row for each window."""
        names = ("window", "rows", "tokens_per_param", "params", "tokens", "exponent", "loss")
        inside = [name not in self.outside for name in self.window]
        return {name: getattr(self, name) for name in names} | {"inside": inside}

    def readable(self) -> Mapping[str, Sequence[Any]]:
        """Return a row for each window with counts as people write them."""
        return {
            "fitted": list(self.window),
            "rows": list(self.rows),
            "tokens per param": [f"{v:.3g}" for v in self.tokens_per_param],
            "params": [short(float(v)) for v in self.params],
            "inside": ["no" if name in self.outside else "yes" for name in self.window],
        }

    def table_note(self) -> str:
        """Return what the answers are inside of."""
        low, high = short(self.interval.low), short(self.interval.high)
        return f"Answers at {self.budget:.3g} FLOP, inside [{low}, {high}] or not"

    def sentences(self) -> str:
        """The range of answers in a sentence."""
        low, high = int(np.nanargmin(self.tokens_per_param)), int(np.nanargmax(self.tokens_per_param))
        ends = [f"{self.tokens_per_param[k]:.3g} ({self.window[k]})" for k in (low, high)]
        return (
            f"At {self.budget:.3g} FLOP the optimum is {format_interval(self.interval, write=short)} tokens per "
            f"parameter by all rows, and from {ends[0]} to {ends[1]} as the fitting window moves."
        )


class Refittable(Result):
    """A fit to runs of which :class:`Sensitivity` shows how it depends on them."""

    def sensitivity(
        self, budget: float | None = None, *, drop: Sequence[int] | None = None, level: float = 0.95
    ) -> Sensitivity:
        """Show the compute-optimal size as the fitting window moves: without the highest losses, and flagged rows.

        Parameters
        ----------
        budget : float, optional
            Compute in FLOP; by default a hundred times the largest that was fitted.
        drop : sequence of int, optional
            How many of the highest losses to drop; by default about 2, 8 and 16% of the rows.
        level : float
            Coverage of the interval that answers are compared with.
        """
        check_level(level)
        found = self._sensitivity(None if budget is None else positive(budget, "budget"), drop, level)
        warn_all(found.warnings)
        return found

    @abstractmethod
    def _sensitivity(self, budget: float | None, drop: Sequence[int] | None, level: float) -> Sensitivity:
        """Return the sensitivity without Python warnings."""

    @cached_property
    def _window_warnings(self) -> tuple[str, ...]:
        return self._sensitivity(None, None, 0.95).warnings

    @property
    def all_warnings(self) -> tuple[str, ...]:
        """The warnings, with that of answers that depend on which runs are fitted."""
        return (*self.warnings, *self._window_warnings)


Answer = Callable[[ScalingRuns], tuple[float, float, float]]
"""From runs to log N*, the exponent a and the expected loss at the budget."""


def measure_sensitivity(
    runs: ScalingRuns,
    answer: Answer,
    budget: float,
    interval: Interval,
    drop: Sequence[int] | None,
    *,
    whence: str = "",
) -> Sensitivity:
    """Fit again without the highest losses, and without the rows that are flagged.

    Parameters
    ----------
    runs : ScalingRuns
        All rows.
    answer : callable
        Refits a selection.
    budget : float
        Compute.
    interval : Interval
        Tokens per parameter by the fit to all rows.
    drop : sequence of int, optional
        How many of the highest losses to drop; by default about 2, 8 and 16% of the rows.
    whence : str
        Where the budget comes from, if nobody asked for it.
    """
    count = len(runs)
    if drop is None:
        counts = [k for k in (round(share * count) for share in SHARES) if k <= count - 6]
    else:
        dropped = np.atleast_1d(as_floats(drop, "drop"))
        if not (np.isfinite(dropped) & (dropped == np.round(dropped))).all():
            raise InputError("must hold whole numbers of rows.", argument="drop", value=drop)
        counts = [int(k) for k in dropped]
    if any(k < 0 or k > count - 6 for k in counts):
        raise InputError(f"must lie between 0 and {count - 6}, so that six runs remain.", argument="drop", value=drop)
    place = np.argsort(np.argsort(-runs.loss, kind="stable"))
    names = {k: f"without the {k} highest losses" if k > 1 else "without the highest loss" for k in counts}
    windows = {"all rows": place >= 0} | {names[k]: place >= k for k in sorted(names) if k > 0}
    if runs.flagged is not None and runs.flagged.any() and (~runs.flagged).sum() >= 6:
        windows[f"without the {format_count(int(runs.flagged.sum()), 'flagged row')}"] = ~runs.flagged
    found = []
    for kept in windows.values():
        try:
            found.append(answer(runs.select(kept)))
        except InputError:  # what is left identifies no law
            found.append((np.nan, np.nan, np.nan))
    log_n, exponent, loss = (np.array(v) for v in zip(*found, strict=True))
    params = np.exp(log_n)
    tokens = budget / 6.0 / params
    ratio = tokens / params
    # Without an interval (too few budgets, unclear checkpoints) there is nothing to leave.
    known = not np.isnan([interval.low, interval.high]).any()
    # Of exact losses the interval has no width: an answer that is the same in all digits shown does not leave it.
    moved = np.abs(np.log(ratio / ratio[0])) > NEAR
    outside = {name: r for name, r, m in zip(windows, ratio, moved, strict=True) if known and m and r not in interval}
    answers = ", ".join(f"{r:.3g} {name}" for name, r in outside.items())
    at = f"{budget:.3g} FLOP" + (f", {whence}," if whence else "")
    note = Message(
        f"The answer depends on which runs are fitted: at {at} {ratio[0]:.3g} tokens per parameter "
        f"[{short(interval.low)}, {short(interval.high)}] by all rows, but {answers}. The interval does not cover the "
        "choice of the window."
    )
    return Sensitivity(
        budget=budget,
        window=tuple(windows),
        rows=tuple(int(kept.sum()) for kept in windows.values()),
        params=params,
        tokens=tokens,
        tokens_per_param=ratio,
        exponent=exponent,
        loss=loss,
        interval=interval,
        outside=tuple(outside),
        warnings=(note,) if outside else (),
    )
