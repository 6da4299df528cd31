"""Methods against each other: differences of their CCI with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from curvewise.errors import InputError
from curvewise.plot.style import NEUTRAL, colour, new_axes, style
from curvewise.plot.text import safe_names
from curvewise.plot.transfer_parts import (
    several_of,
    warned,
)
from curvewise.plot.variance_axes import is_narrow, rows_of, rows_that_fit, view
from curvewise.plot.variance_parts import bars, ends_of, finish, zero_line
from curvewise.transfer.comparison import ComparedMethods, TransferComparison

DIFFERENCE = "curvewise-difference"
CLEAREST = 30
"""Differences shown of many."""


def plot_transfer_comparison(
    result: TransferComparison,
    ax: Axes | None = None,
    *,
    task: str | Sequence[str] | None = None,
    most: int | None = None,
    legend: bool = True,
    caption: bool | None = None,
) -> Axes:
    """Draw how much more methods improve on scratch than others, with intervals.

    Parameters
    ----------
    result : TransferComparison
        What to draw.
    ax : Axes, optional
        Where; a new figure by default.
    task : str or sequence of str, optional
        Only these.
    most : int, optional
        Show only this many of the clearest differences: 30 by default, fewer in small Axes.
    legend : bool
        Say what the colours are.
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
    >>> ax = plot_transfer_comparison(measured.comparisons())
    >>> [name.get_text() for name in ax.get_yticklabels()]
    ['swav − color']
    """
    tasks = several_of("task", task, tuple(dict.fromkeys(r.task for r in result.rows)))
    rows = [row for row in result.rows if row.task in tasks]
    if not rows:
        raise InputError("result has no comparison to draw: no two methods share a task.")
    most = max(1, most or (CLEAREST if ax is None else min(CLEAREST, rows_that_fit(ax))))
    shown = _clearest(rows, most)
    with style():
        own = ax is None
        ax = ax or new_axes(height=2.0 + 0.24 * len(shown))
        _rows(ax, shown)
        names = _names(shown, len(tasks) > 1, is_narrow(ax))
        rows_of(ax, names)
        ax.set_xlabel("difference of CCI")
        key = [(_handle(colour(0)), "differ"), (_handle(NEUTRAL), "cannot be told apart")]
        options: dict[str, Any] = {"legend": legend, "caption": caption, "columns": 2}
        options["indent"] = max(map(len, names)) / 14
        finish(ax, own, key if own else [], _caption(result, rows, shown), **options)
    return ax


def _clearest(rows: Sequence[ComparedMethods], most: int) -> list[ComparedMethods]:
    """The smallest p-values, ordered by the difference."""
    known = sorted(rows, key=lambda r: 2.0 if np.isnan(r.pvalue) else r.pvalue)[:most]
    turned = [_turned(r) for r in known]
    value = [r.difference.estimate for r in turned]
    order = np.argsort([np.inf if np.isnan(v) else -v for v in value], kind="stable")
    return [turned[i] for i in order]


def _turned(row: ComparedMethods) -> ComparedMethods:
    """The better method first."""
    d = row.difference
    if not d.estimate < 0:
        return row
    away = replace(d, estimate=-d.estimate, low=-d.high, high=-d.low)
    return replace(row, one=row.two, two=row.one, difference=away)


def _rows(ax: Axes, rows: Sequence[ComparedMethods]) -> None:
    """Differences with their intervals, sure ones in blue."""
    middle, low, high = ends_of(r.difference for r in rows)
    limits, place = view(middle, low, high, 0.0), np.arange(float(len(rows)))
    found = np.array([_is_sure(r) for r in rows])
    zero_line(ax)
    for part, shade in ((found, colour(0)), (~found, NEUTRAL)):
        bars(ax, place[part], low[part], high[part], shade, limits=limits, horizontal=True)
        look: dict[str, Any] = {"color": shade, "label": "_difference", "mew": 0.0}
        ax.plot(middle[part], place[part], "o", ms=5.5, gid=DIFFERENCE, **look)
    ax.set_xlim(*limits)


def _is_sure(row: ComparedMethods) -> bool:
    """Whether the two surely differ, all comparisons together."""
    return bool(row.adjusted <= 1 - row.difference.level)


def _names(rows: Sequence[ComparedMethods], several: bool, narrow: bool) -> list[str]:
    every = list(dict.fromkeys(name for row in rows for name in (row.one, row.two)))
    short = dict(zip(every, safe_names(every, 11 if narrow else 18), strict=True))
    tasks = list(dict.fromkeys(row.task for row in rows))
    where = dict(zip(tasks, safe_names(tasks, 10 if narrow else 16), strict=True))
    tails = [f", {where[row.task]}" if several else "" for row in rows]
    return [f"{short[r.one]} − {short[r.two]}{t}" for r, t in zip(rows, tails, strict=True)]


def _handle(shade: str) -> Line2D:
    return Line2D([], [], color=shade, marker="o", ms=5)


def _caption(
    result: TransferComparison, rows: Sequence[ComparedMethods], shown: Sequence[ComparedMethods]
) -> list[str]:
    level = shown[0].difference.level
    lines = [
        f"Bars: {100 * level:.4g}% intervals. Those differ that have p ≤ {1 - level:.2g} for all "
        "comparisons together."
    ]
    if len(shown) < len(rows):
        lines.append(f"The {len(shown)} clearest of {len(rows)} differences.")
    return [*lines, *warned(result)]
