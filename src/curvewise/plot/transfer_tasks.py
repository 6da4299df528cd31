"""Tasks by their scratch curves (figure 4 of the paper), with the data that each asks for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from curvewise.errors import InputError
from curvewise.plot.style import NEUTRAL, colour, new_axes, style
from curvewise.plot.text import safe_names, safe_text
from curvewise.plot.transfer_axes import (
    compact,
    control_lines,
    interval_bars,
    size_axis,
    size_limits,
)
from curvewise.plot.transfer_curves import X_LABEL, Y_LABEL, write_names
from curvewise.plot.transfer_labels import End
from curvewise.plot.transfer_parts import (
    CROWD,
    GREY,
    several_of,
    warned,
    write_words,
)
from curvewise.transfer.tasks import TaskRanking
from curvewise.transfer.transfer_result import RiskCurve
from curvewise.types import Interval

RISK = "curvewise-risk"
NEEDED = "curvewise-needed"
LEVEL = "curvewise-level"
SPAN = "curvewise-span"


def plot_tasks(
    result: TaskRanking,
    ax: Axes | None = None,
    *,
    at: float | None = None,
    task: str | Sequence[str] | None = None,
    legend: bool = True,
    caption: bool | None = None,
) -> Axes:
    """Draw the calibrated risk of scratch for each task, and the size at which it has fallen.

    Parameters
    ----------
    result : TaskRanking
        What to draw.
    ax : Axes, optional
        Where; a new figure by default.
    at : float, optional
        The calibrated risk whose training size is marked, one of the levels of the result; the
        one that orders the tasks by default.
    task : str or sequence of str, optional
        Only these.
    legend : bool
        Name the tasks, with the size in brackets.
    caption : bool, optional
        Say what is shown under the picture; by default where there is room.

    Returns
    -------
    Axes
        The Axes given, or the new ones.

    Examples
    --------
    >>> from curvewise.transfer.measure import measure_transfer
    >>> runs = {
    ...     "method": ["scratch"] * 4 + ["swav"] * 4 + ["color"] * 4,
    ...     "n": [100, 100, 1000, 1000] * 3,
    ...     "risk": [0.8, 0.82, 0.5, 0.49, 0.6, 0.61, 0.45, 0.44, 0.7, 0.71, 0.48, 0.5],
    ... }
    >>> measured = measure_transfer(runs, blind=0.9, maximal=0.1)
    >>> from curvewise.transfer.tasks import rank_tasks
    >>> plot_tasks(rank_tasks(measured)).get_ylabel()
    'calibrated risk of scratch'
    """
    level = result.ordered_by if at is None else at
    if not any(np.isclose(level, known) for known in result.levels):
        there = ", ".join(f"{v:g}" for v in result.levels)
        raise InputError(f"at={at!r} is not among the levels of the result: use one of {there}.")
    wanted = several_of("task", task, result.order)
    kept = [k for k, name in enumerate(result.order) if name in wanted]
    names = safe_names(result.order, 24)
    with style():
        own = ax is None
        ax = ax or new_axes()
        curves = [result.curves[k] for k in kept]
        sizes = np.unique(np.concatenate([c.n for c in curves]))
        control_lines(ax)
        ax.axhline(level, color=NEUTRAL, lw=0.9, ls=":", zorder=0.8, gid=LEVEL, label="_level")
        ends = []
        for k, curve in zip(kept, curves, strict=True):
            shade = colour(k) if len(result.order) <= CROWD or task is not None else GREY
            _curve(ax, curve, shade)
            found = result.rows[k].at(level)
            _needed(ax, found.n, level, shade, (found.smallest, found.largest))
            told = _said(found.n.estimate, found.smallest, found.largest)
            ends.append(_end(curve, f"{names[k]} ({told})", shade))
        size_axis(ax, sizes, size_limits([sizes])[0])
        ax.set_ylim(*_limits(curves))
        ax.set_xlabel(X_LABEL)
        ax.set_ylabel(f"{Y_LABEL} of {safe_text(curves[0].method, 24)}")
        write_words([ax], own, _caption(result, level, curves), caption)
        if legend:
            write_names([ax], [ends])
    return ax


def _curve(ax: Axes, curve: RiskCurve, shade: str) -> None:
    known = np.isfinite(curve.calibrated)
    n, risk, low, high = (v[known] for v in (curve.n, curve.calibrated, curve.low, curve.high))
    if np.isfinite(low + high).all() and len(n) > 1:
        band: dict[str, Any] = {"color": shade, "alpha": 0.13, "linewidth": 0.0, "zorder": 1.2}
        ax.fill_between(n, low, high, gid="curvewise-band", **band)
    else:
        interval_bars(ax, n, low, high, shade, 0.0, 1.9)
    look: dict[str, Any] = {"color": shade, "lw": 1.8, "marker": "o", "ms": 3.6, "mew": 0.0}
    ax.plot(n, risk, zorder=2.0, gid=RISK, label="_risk", **look)


def _needed(ax: Axes, n: Interval, level: float, shade: str, span: tuple[float, float]) -> None:
    """A diamond where the level is reached, with its interval along the level."""
    ends = np.clip([n.low, n.high], *span)
    if np.isfinite(ends).all() and ends[1] > ends[0]:
        ax.hlines(level, *ends, color=shade, lw=3.2, alpha=0.45, zorder=2.2, gid=SPAN)
    if span[0] <= n.estimate <= span[1]:
        look: dict[str, Any] = {"color": shade, "ms": 7.0, "mec": "white", "mew": 0.8}
        ax.plot([n.estimate], [level], "D", zorder=2.8, gid=NEEDED, label="_needed", **look)


def _said(n: float, smallest: float, largest: float) -> str:
    """The size in words: below the smallest, above the largest, or this."""
    if np.isnan(n):
        return "unknown"
    if n < smallest:
        return f"≤ {compact(smallest)}"
    return f"> {compact(largest)}" if n > largest else compact(n)


def _end(curve: RiskCurve, text: str, shade: str) -> End:
    known = np.flatnonzero(np.isfinite(curve.calibrated))
    if not len(known):
        return End(1.0, np.nan, text, shade)
    ink = "#7A7A7A" if shade == GREY else shade
    return End(float(curve.n[known[-1]]), float(curve.calibrated[known[-1]]), text, ink)


def _limits(curves: Sequence[RiskCurve]) -> tuple[float, float]:
    means = np.concatenate([[0.0, 1.0], *(c.calibrated for c in curves)])
    ends = np.concatenate([e for c in curves for e in (c.low, c.high)])
    low, high = float(np.nanmin(means)), float(np.nanmax(means))
    ends = np.clip(ends[np.isfinite(ends)], low - 0.15, high + 0.15)
    low, high = min([low, *ends.tolist()]), max([high, *ends.tolist()])
    return low - 0.04, max(high + 0.03, 1.08)


def _caption(result: TaskRanking, level: float, curves: Sequence[RiskCurve]) -> list[str]:
    said = f"Diamonds, and numbers behind names: the size at which calibrated risk is {level:g}"
    known = any(np.isfinite(c.low).any() for c in curves)
    share = f"{100 * result.level:.4g}% intervals"
    said += f"; bands, and thick bars along the dotted line: {share}." if known else "."
    return [said, *warned(result)]
