"""The answer as the fitting window moves: which runs are fitted often matters more than their noise."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError
from curvewise.scaling.optimum import short
from curvewise.scaling.runs import ScalingRuns
from curvewise.text import Message, format_count, format_interval
from curvewise.types.results import Interval, Result
from curvewise.types.units import FloatArray

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
        return {
            "window": self.window,
            "rows": self.rows,
            "tokens_per_param": self.tokens_per_param,
            "params": self.params,
            "tokens": self.tokens,
            "exponent": self.exponent,
            "loss": self.loss,
            "inside": [name not in self.outside for name in self.window],
        }

    def sentences(self) -> str:
        """The range of answers in a sentence."""
        low, high = int(np.nanargmin(self.tokens_per_param)), int(np.nanargmax(self.tokens_per_param))
        ends = [f"{self.tokens_per_param[k]:.3g} ({self.window[k]})" for k in (low, high)]
        return (
            f"At {self.budget:.3g} FLOP the optimum is {format_interval(self.interval)} tokens per parameter by all "
            f"rows, and from {ends[0]} to {ends[1]} as the fitting window moves."
        )


Answer = Callable[[ScalingRuns], tuple[float, float, float]]
"""From runs to log N*, the exponent a and the expected loss at the budget."""


def measure_sensitivity(
    runs: ScalingRuns, answer: Answer, budget: float, interval: Interval, drop: Sequence[int] | None
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
    """
    count = len(runs)
    if drop is None:
        counts = [k for k in (round(share * count) for share in SHARES) if k <= count - 6]
    else:
        counts = [int(k) for k in drop]
    if any(k < 0 or k > count - 6 for k in counts):
        raise InputError(f"must lie between 0 and {count - 6}, so that six runs remain.", argument="drop", value=drop)
    order = np.argsort(-runs.loss, kind="stable")
    windows: list[tuple[str, NDArray[np.bool_]]] = [("all rows", np.ones(count, dtype=np.bool_))]
    for k in sorted({k for k in counts if k > 0}):
        keep = np.ones(count, dtype=np.bool_)
        keep[order[:k]] = False
        windows.append((f"without the {k} highest losses" if k > 1 else "without the highest loss", keep))
    if runs.flagged is not None and runs.flagged.any() and (~runs.flagged).sum() >= 6:
        flagged = format_count(int(runs.flagged.sum()), "flagged row")
        windows.append((f"without the {flagged}", ~runs.flagged))
    names, rows, found = [], [], []
    for name, keep in windows:
        try:
            found.append(answer(runs.select(keep)))
        except InputError:  # what is left identifies no law
            found.append((np.nan, np.nan, np.nan))
        names.append(name)
        rows.append(int(keep.sum()))
    log_n, exponent, loss = (np.array(v) for v in zip(*found, strict=True))
    params = np.exp(log_n)
    tokens = budget / 6.0 / params
    ratio = tokens / params
    outside = [name for name, r in zip(names, ratio, strict=True) if np.isfinite(r) and r not in interval]
    notes = []
    if outside:
        said = ", ".join(f"{r:.3g} {name}" for name, r in zip(names, ratio, strict=True) if name in outside)
        notes.append(
            Message(
                f"The answer depends on which runs are fitted: at {budget:.3g} FLOP {ratio[0]:.3g} tokens per "
                f"parameter [{short(interval.low)}, {short(interval.high)}] by all rows, but {said}. The interval does "
                "not cover the choice of the window."
            )
        )
    return Sensitivity(
        budget=budget,
        window=tuple(names),
        rows=tuple(rows),
        params=params,
        tokens=tokens,
        tokens_per_param=ratio,
        exponent=exponent,
        loss=loss,
        interval=interval,
        outside=tuple(outside),
        warnings=tuple(notes),
    )
