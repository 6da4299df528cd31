"""Methods against each other: differences of their CCI with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from curvewise.drawing.axes import is_narrow, rows_of, rows_that_fit, view
from curvewise.drawing.labels import safe_names
from curvewise.drawing.marks import bars, ends_of, finish, note, zero_line
from curvewise.drawing.style import NEUTRAL, colour, new_axes, style
from curvewise.errors import InputError
from curvewise.transfer.plot.panels import End, interval_bars, several_of, size_axis, size_limits, warned, write_words
from curvewise.transfer.plot.result import X_LABEL, write_names
from curvewise.transfer.result import ComparedMethods, TransferComparison
from curvewise.transfer.wins import WinRate, WinRates
from curvewise.types.units import FloatArray

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
        f"Bars: {100 * level:.4g}% intervals. Those differ that have p ≤ {1 - level:.2g} for all comparisons together."
    ]
    if len(shown) < len(rows):
        lines.append(f"The {len(shown)} clearest of {len(rows)} differences.")
    return [*lines, *warned(result)]


# On how many test examples a method beats scratch: one share, or shares by training size.

RATE = "curvewise-rate"
RUN = "curvewise-run"
HALF = "curvewise-half"
BAND = "curvewise-band"
Y_LABEL = "examples won against scratch (%)"


def plot_win_rates(
    result: WinRates | Mapping[str, WinRates],
    ax: Axes | None = None,
    *,
    legend: bool = True,
    caption: bool | None = None,
) -> Axes:
    """Draw the share of test examples on which a method beats scratch, by training size.

    Parameters
    ----------
    result : WinRates, or mapping of str to WinRates
        What to draw; several methods by their names.
    ax : Axes, optional
        Where; a new figure by default.
    legend : bool
        Name the methods, where there are several.
    caption : bool, optional
        Say what is shown under the picture; by default where there is room.

    Returns
    -------
    Axes
        The Axes given, or the new ones.

    Examples
    --------
    >>> from curvewise.transfer.wins import win_rates
    >>> rng = np.random.default_rng(0)
    >>> def losses(mean):
    ...     return rng.normal(mean, 1.0, (3, 200))
    >>> found = win_rates({100: (losses(0.0), losses(0.8)), 1000: (losses(0.0), losses(0.1))})
    >>> ax = plot_win_rates(found)
    >>> ax.get_ylabel()
    'examples won against scratch (%)'
    """
    given = dict(result) if isinstance(result, Mapping) else {"": result}
    if not given:
        raise InputError("result is empty: give at least one WinRates.")
    with style():
        own = ax is None
        ax = ax or new_axes()
        _half(ax, horizontal=True)
        names = safe_names(list(given), 24)
        rows = list(given.values())
        for i, one in enumerate(rows):
            _curve(ax, one, colour(i), bands=len(rows) <= 3, dots=len(rows) == 1)
        sizes = np.unique(np.concatenate([one.n for one in rows]))
        size_axis(ax, sizes, size_limits([sizes])[0])
        ax.set_ylim(*_limits(rows))
        ax.set_xlabel(X_LABEL)
        ax.set_ylabel(Y_LABEL)
        write_words([ax], own, _caption_transfer_wins(rows), caption)
        if legend and isinstance(result, Mapping):
            ends = [_end(one, names[i], colour(i)) for i, one in enumerate(rows)]
            write_names([ax], [ends])
    return ax


def plot_win_rate(result: WinRate, ax: Axes | None = None, *, caption: bool | None = None) -> Axes:
    """Draw one win rate with its interval, among those of single runs.

    Parameters
    ----------
    result : WinRate
        What to draw.
    ax : Axes, optional
        Where; a new figure by default.
    caption : bool, optional
        Say what is shown under the picture; by default where there is room.

    Returns
    -------
    Axes
        The Axes given, or the new ones.

    Examples
    --------
    >>> from curvewise.transfer.wins import win_rate
    >>> losses = np.random.default_rng(0).normal(size=(2, 6, 300))
    >>> plot_win_rate(win_rate(losses[0] - 1.0, losses[1])).get_xlabel()
    'examples won against scratch (%)'
    """
    rate = result.rate
    with style():
        own = ax is None
        ax = ax or new_axes(7.0, 1.9)
        _half(ax, horizontal=False)
        single = 100 * result.by_run if result.runs > 1 else np.array([])
        ends = 100 * np.array([[rate.estimate], [rate.low], [rate.high]])
        known = single[np.isfinite(single)].tolist()
        limits = view(*ends, 50.0, *known)
        look: dict[str, Any] = {"ls": "none", "marker": "o", "mew": 0.0, "label": "_rate"}
        ax.plot(single, np.full(len(single), 0.35), color=NEUTRAL, ms=4.0, gid=RUN, **look)
        bars(ax, [0.0], ends[1], ends[2], colour(0), limits=limits, horizontal=True, width=2.2)
        ax.plot(ends[0], [0.0], color=colour(0), ms=8.0, gid=RATE, **look)
        ax.set_xlim(*limits)
        ax.set_ylim(-0.5, 0.7)
        ax.set_yticks([])
        ax.spines["left"].set_visible(False)
        ax.set_xlabel(Y_LABEL)
        write_words([ax], own, _said(result), caption)
    return ax


def _half(ax: Axes, horizontal: bool) -> None:
    """Where a method is no better than scratch."""
    draw = ax.axhline if horizontal else ax.axvline
    draw(50.0, color="black", lw=1.4, zorder=0.9, gid=HALF, label="_half")
    if horizontal:
        place: dict[str, Any] = {"xycoords": ax.get_yaxis_transform(), "ha": "left"}
        place |= {"xytext": (0, 3), "textcoords": "offset points", "va": "bottom", "gid": HALF}
        note(ax, "as often as scratch", (0.015, 50.0), color="#6E6E6E", **place)


def _curve(ax: Axes, result: WinRates, shade: str, bands: bool, dots: bool) -> None:
    """Rates with intervals; hollow where ½ is not excluded."""
    rate, low, high = _percent(result)
    known = np.isfinite(low + high)
    if bands and known.all() and len(rate) > 1:
        band: dict[str, Any] = {"color": shade, "alpha": 0.18, "linewidth": 0.0, "zorder": 1.2}
        ax.fill_between(result.n, low, high, gid=BAND, **band)
    else:
        interval_bars(ax, result.n, low, high, shade, 0.0, 1.9)
    look: dict[str, Any] = {"color": shade, "zorder": 2.2, "label": "_rate"}
    for n, one in zip(result.n.tolist(), result.rates, strict=True) if dots else ():
        if one.runs > 1:
            small: dict[str, Any] = {"ls": "none", "marker": "o", "ms": 2.8, "mew": 0.0}
            single = 100 * one.by_run
            ax.plot(np.full(len(single), n), single, color=NEUTRAL, gid=RUN, label="_run", **small)
    ax.plot(result.n, rate, lw=1.8, gid=RATE, **look)
    sure = (low > 50) | (high < 50)
    for part, face in ((sure, shade), (~sure, "white")):
        mark: dict[str, Any] = {"ls": "none", "marker": "o", "ms": 6.0, "mfc": face, "mec": shade}
        ax.plot(result.n[part], rate[part], gid=RATE + "-dot", **(look | mark))


def _percent(result: WinRates) -> tuple[FloatArray, FloatArray, FloatArray]:
    rate, low, high = ends_of(one.rate for one in result.rates)
    return 100 * rate, 100 * low, 100 * high


def _limits(rows: Sequence[WinRates]) -> tuple[float, float]:
    """All rates and their intervals, and one half."""
    values = np.concatenate([np.concatenate(_percent(one)) for one in rows])
    known = [50.0, *values[np.isfinite(values)].tolist()]
    low, high = min(known), max(known)
    pad = max(0.06 * (high - low), 1.0)
    return max(low - pad, -2.0), min(high + pad, 102.0)


def _end(result: WinRates, text: str, shade: str) -> End:
    rate = _percent(result)[0]
    known = np.flatnonzero(np.isfinite(rate))
    at = int(known[-1]) if len(known) else 0
    return End(float(result.n[at]), float(rate[at]), text, shade)


def _caption_transfer_wins(rows: Sequence[WinRates]) -> list[str]:
    one = rows[0]
    said = "Share of test examples with a lower loss than from scratch, ties half."
    if any(np.isfinite(r.rate.width) for row in rows for r in row.rates):
        said += f" {100 * one.level:.4g}% intervals; hollow: ½ is not excluded."
    if len(rows) == 1 and any(r.runs > 1 for r in one.rates):
        said += " Small dots: single runs."
    alone = [one.end.text, *warned(one)] if len(rows) == 1 else []
    return [said, *alone]


def _said(result: WinRate) -> list[str]:
    said = f"{result.examples:,} test examples, ties half"
    said += f"; bar: {100 * result.level:.4g}% interval" if np.isfinite(result.rate.width) else ""
    said += "; small dots: single runs." if result.runs > 1 else "."
    return [said, *warned(result)]
