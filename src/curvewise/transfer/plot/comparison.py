"""Pictures of methods against each other: differences of CCI, ranks by training size, and win rates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba
from matplotlib.lines import Line2D

from curvewise.drawing.axes import is_narrow, rows_of, rows_that_fit, view
from curvewise.drawing.labels import safe_names
from curvewise.drawing.marks import bars, ends_of, finish, note, zero_line
from curvewise.drawing.style import NEUTRAL, colour, new_axes, style
from curvewise.errors import InputError
from curvewise.transfer.plot.panels import (
    BAND,
    X_LABEL,
    CurveEnd,
    DrawnMethods,
    MethodLook,
    choose_methods,
    compact,
    end_at,
    has_room,
    interval_bars,
    name_ends,
    name_tasks,
    panels_of,
    paths_of,
    settle,
    several_of,
    size_axis,
    size_limits,
    warned,
    write_names,
    write_words,
)
from curvewise.transfer.result import ComparedMethods, MethodRank, TransferComparison, TransferRanks, TransferResult
from curvewise.transfer.wins import WinRate, WinRates
from curvewise.types.units import FloatArray

CLEAREST = 30  # differences shown of many
MISSING = 0.2  # share of the methods that a size may lack, besides a single one: ranks of a few say little

DIFFERENCE = "curvewise-difference"
PLACE = "curvewise-place"
STEP = "curvewise-step"
OTHER = "curvewise-other"
RATE = "curvewise-rate"
RUN = "curvewise-run"
HALF = "curvewise-half"
WON = "examples won against scratch (%)"


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
        _difference_rows(ax, shown)
        names = _difference_names(shown, len(tasks) > 1, is_narrow(ax))
        rows_of(ax, names)
        ax.set_xlabel("difference of CCI")
        labels = ((colour(0), "differ"), (NEUTRAL, "no significant difference"))
        key = [(Line2D([], [], color=shade, marker="o", ms=5), label) for shade, label in labels]
        options: dict[str, Any] = {"legend": legend, "caption": caption, "columns": 2}
        options["indent"] = max(map(len, names)) / 14
        finish(ax, own, key if own else [], _difference_caption(result, rows, shown), **options)
    return ax


def _clearest(rows: Sequence[ComparedMethods], most: int) -> list[ComparedMethods]:
    """Choose the smallest p-values, ordered by the difference, the better method first."""
    known = sorted(rows, key=lambda r: 2.0 if np.isnan(r.pvalue) else r.pvalue)[:most]
    turned = []
    for row in known:
        d = row.difference
        if d.estimate < 0:
            away = replace(d, estimate=-d.estimate, low=-d.high, high=-d.low)
            row = replace(row, one=row.two, two=row.one, difference=away)
        turned.append(row)
    value = [r.difference.estimate for r in turned]
    order = np.argsort([np.inf if np.isnan(v) else -v for v in value], kind="stable")
    return [turned[i] for i in order]


def _difference_rows(ax: Axes, rows: Sequence[ComparedMethods]) -> None:
    """Draw differences with their intervals, significant ones in blue."""
    middle, low, high = ends_of(r.difference for r in rows)
    limits, place = view(middle, low, high, 0.0), np.arange(float(len(rows)))
    found = np.array([bool(r.adjusted <= 1 - r.difference.level) for r in rows])
    zero_line(ax)
    for part, shade in ((found, colour(0)), (~found, NEUTRAL)):
        bars(ax, place[part], low[part], high[part], shade, limits=limits, horizontal=True)
        look: dict[str, Any] = {"color": shade, "label": "_difference", "mew": 0.0}
        ax.plot(middle[part], place[part], "o", ms=5.5, gid=DIFFERENCE, **look)
    ax.set_xlim(*limits)


def _difference_names(rows: Sequence[ComparedMethods], several: bool, narrow: bool) -> list[str]:
    every = list(dict.fromkeys(name for row in rows for name in (row.one, row.two)))
    short = dict(zip(every, safe_names(every, 11 if narrow else 18), strict=True))
    tasks = list(dict.fromkeys(row.task for row in rows))
    where = dict(zip(tasks, safe_names(tasks, 10 if narrow else 16), strict=True))
    tails = [f", {where[row.task]}" if several else "" for row in rows]
    return [f"{short[r.one]} − {short[r.two]}{t}" for r, t in zip(rows, tails, strict=True)]


def _difference_caption(
    result: TransferComparison, rows: Sequence[ComparedMethods], shown: Sequence[ComparedMethods]
) -> list[str]:
    level = shown[0].difference.level
    lines = [
        f"Bars: {100 * level:.4g}% intervals. Those differ that have p ≤ {1 - level:.2g} for all comparisons together."
    ]
    if len(shown) < len(rows):
        lines.append(f"The {len(shown)} clearest of {len(rows)} differences.")
    return [*lines, *warned(result)]


# Ranks of methods by training size.


def plot_transfer_ranks(
    ranks: TransferRanks,
    ax: Axes | None = None,
    *,
    task: str | Sequence[str] | None = None,
    methods: str | Sequence[str] | None = None,
    highlight: str | Sequence[str] | None = None,
    scratch: str | None = None,
    legend: bool = True,
    caption: bool | None = None,
) -> Axes:
    """Draw the place of each method at each training size, the best on top.

    Parameters
    ----------
    ranks : TransferRanks
        What to draw.
    ax : Axes, optional
        Where, for one task; a new figure with a panel for each by default.
    task, methods : str or sequence of str, optional
        Only these. Places are those among all methods; the others are faint and without names.
    highlight : str or sequence of str, optional
        Methods in colour; the others are grey.
    scratch : str, optional
        The method that is black; by default the one that starts from nothing.
    legend : bool
        Name the methods at both ends.
    caption : bool, optional
        Say what is shown under the picture; by default where there is room.

    Returns
    -------
    Axes
        The Axes given, or those of the first panel.

    Examples
    --------
    >>> from curvewise.transfer.measure import measure_transfer
    >>> runs = {
    ...     "method": ["scratch"] * 4 + ["swav"] * 4 + ["color"] * 4,
    ...     "n": [100, 100, 1000, 1000] * 3,
    ...     "risk": [0.8, 0.82, 0.5, 0.49, 0.6, 0.61, 0.45, 0.44, 0.7, 0.71, 0.48, 0.5],
    ... }
    >>> measured = measure_transfer(runs, blind=0.9, maximal=0.1)
    >>> ax = plot_transfer_ranks(measured.ranks())
    >>> [size.get_text() for size in ax.get_xticklabels()]
    ['100', '1K']
    """
    scratch = scratch or ranks.scratch
    with style():
        tasks = several_of("task", task, tuple(dict.fromkeys(r.task for r in ranks.rows)))
        every = tuple(dict.fromkeys(r.method for r in ranks.rows))
        mean = {m: np.mean([r.rank / r.among for r in ranks.rows if r.method == m]) for m in every}
        known = tuple(m for m in every if m != scratch)
        order = sorted(known, key=lambda m: float(mean[m]))
        chosen = choose_methods(known, scratch, tasks, methods, highlight, order)
        return _draw_ranks(ranks, ax, chosen, scratch, legend, caption)


def draw_ranks(
    result: TransferResult, ax: Axes | None, chosen: DrawnMethods, legend: bool, caption: bool | None
) -> Axes:
    """Draw the ranks of a measured transfer."""
    return _draw_ranks(result.ranks(), ax, chosen, result.scratch, legend, caption)


def _draw_ranks(
    ranks: TransferRanks, ax: Axes | None, chosen: DrawnMethods, scratch: str, legend: bool, caption: bool | None
) -> Axes:
    own = ax is None
    drawn = {*chosen.methods, scratch}
    groups = [[r for r in ranks.rows if r.task == t] for t in chosen.tasks]
    sizes = []
    for rows in groups:  # sizes at which enough methods were measured
        most = max((r.among for r in rows), default=0)
        sizes.append(sorted({r.n for r in rows if r.among >= most - max(1.0, MISSING * most)}))
    most = max((r.among for rows in groups for r in rows), default=1)
    longest = max((len(chosen.looks[m].name) for m in drawn), default=0)
    height, width = 1.3 + 0.23 * most, 3.6 + 0.15 * longest
    axes = panels_of(ax, chosen.tasks, (max(7.0, width + 1.0), height + 0.3), (width, height), columns=2)
    ends: list[tuple[list[CurveEnd], list[CurveEnd]]] = []
    for panel, rows, n in zip(axes, groups, sizes, strict=True):
        kept = [r for r in rows if r.n in n]
        # Methods that were not chosen have their places all the same.
        for method in dict.fromkeys(r.method for r in kept if r.method not in drawn):
            path = sorted((r for r in kept if r.method == method), key=lambda r: r.n)
            faint: dict[str, Any] = {"color": "#E4E4E4", "lw": 1.0, "marker": "o", "ms": 3.0, "zorder": 1.0}
            panel.plot([n.index(r.n) for r in path], [r.rank for r in path], gid=OTHER, label="_other", **faint)
        paths = paths_of([r for r in kept if r.method in drawn], chosen, scratch)
        for method, path in paths.items():
            _rank_path(panel, path, n, chosen.looks[method], method == scratch)
        _rank_axes(panel, n, max((r.among for r in rows), default=1))
        ends.append(_rank_ends(paths, n, chosen, scratch))
    name_tasks(axes, chosen.tasks)
    write_words(axes, own, _rank_caption(ranks, chosen, groups, sizes), caption)
    if legend:
        settle(axes[0])
        for panel, (first, last) in zip(axes, ends, strict=True):
            if has_room(panel, own):
                name_ends(panel, first, "left")
                panel.tick_params(axis="y", labelleft=False)
            name_ends(panel, last)
    return axes[0]


def _rank_path(ax: Axes, path: Sequence[MethodRank], sizes: Sequence[float], look: MethodLook, scratch: bool) -> None:
    """Draw one method from size to size, fainter where more places are possible."""
    x = [sizes.index(r.n) for r in path]
    y = [r.rank for r in path]
    # From 0.35, any place is possible, to 1, only this one.
    clear = [1.0 - 0.65 * min(1.0, (r.high - r.low) / max(r.among - 1, 1)) for r in path]
    z = 2.6 if scratch else (1.4 if look.back else 2.0)
    width = 2.8 if scratch else (1.4 if look.back else 2.2)
    fade = [to_rgba(look.shade, alpha) for alpha in clear]
    between = [to_rgba(look.shade, 0.5 * (a + b)) for a, b in pairwise(clear)]
    points = np.column_stack([x, y])
    pairs = np.stack([points[:-1], points[1:]], axis=1)
    lines = LineCollection(list(pairs), colors=between, linewidths=width, zorder=z)
    lines.set_gid(STEP)
    ax.add_collection(lines)
    # White under a faint dot, so that lines do not shine through.
    ax.scatter(x, y, s=49.0, color="white", linewidths=0.0, zorder=z + 0.05)
    dots: dict[str, Any] = {"linewidths": 0.0, "zorder": z + 0.1, "gid": PLACE}
    ax.scatter(x, y, s=49.0, facecolors=fade, **dots)


def _rank_axes(ax: Axes, sizes: Sequence[float], most: int) -> None:
    """Show places from the top, sizes side by side."""
    ax.set_ylim(most + 0.6, 0.4)
    step = 1 if most <= 12 else 2 if most <= 24 else 5
    ax.set_yticks([1, *range(1 + step, most + 1, step)])
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.set_xlim(-0.12, max(len(sizes) - 1, 0) + 0.12)
    ax.set_xticks(range(len(sizes)), labels=[compact(n) for n in sizes])
    ax.set_xlabel(X_LABEL)


def _rank_ends(
    paths: dict[str, list[MethodRank]], sizes: Sequence[float], chosen: DrawnMethods, scratch: str
) -> tuple[list[CurveEnd], list[CurveEnd]]:
    """Return names at the left for methods that start there, at the right for all."""
    first, last = [], []
    for method, path in paths.items():
        if not chosen.named(method):
            continue
        look = chosen.looks[method]
        rest = (look.ink, look.back, method == scratch)
        if path[0].n == sizes[0]:
            text = f"{look.name}  {path[0].rank:g}"
            first.append(CurveEnd(0.0, path[0].rank, text, *rest))
        text = f"{path[-1].rank:g}  {look.name}"
        last.append(CurveEnd(float(sizes.index(path[-1].n)), path[-1].rank, text, *rest))
    return first, last


def _rank_caption(
    ranks: TransferRanks, chosen: DrawnMethods, groups: Sequence[Sequence[MethodRank]], sizes: Sequence[Sequence[float]]
) -> list[str]:
    said = "Place by mean risk, 1 is the best. The fainter, the more places are possible at "
    said += f"{100 * ranks.level:.4g}%."
    lost = [n for rows, kept in zip(groups, sizes, strict=True) for n in sorted({r.n for r in rows} - set(kept))]
    if lost:
        many = sorted(set(lost))
        few = ", ".join(map(compact, many[:6])) + (" …" if len(many) > 6 else "")
        said += f" Left out: sizes that many methods lack ({few})."
    return [said, chosen.note, *warned(ranks)]


# Shares of test examples on which a method beats scratch.


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
            _win_curve(ax, one, colour(i), bands=len(rows) <= 3, dots=len(rows) == 1)
        sizes = np.unique(np.concatenate([one.n for one in rows]))
        size_axis(ax, sizes, size_limits([sizes])[0])
        ax.set_ylim(*_win_limits(rows))
        ax.set_xlabel(X_LABEL)
        ax.set_ylabel(WON)
        write_words([ax], own, _win_caption(rows), caption)
        if legend and isinstance(result, Mapping):
            ends = [end_at(one.n, _percent(one)[0], MethodLook(colour(i), names[i])) for i, one in enumerate(rows)]
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
        ax.set_xlabel(WON)
        text = f"{result.examples:,} test examples, ties half"
        text += f"; bar: {100 * result.level:.4g}% interval" if np.isfinite(rate.width) else ""
        text += "; small dots: single runs." if result.runs > 1 else "."
        write_words([ax], own, [text, *warned(result)], caption)
    return ax


def _half(ax: Axes, horizontal: bool) -> None:
    """Draw the line at which a method is no better than scratch."""
    draw = ax.axhline if horizontal else ax.axvline
    draw(50.0, color="black", lw=1.4, zorder=0.9, gid=HALF, label="_half")
    if horizontal:
        place: dict[str, Any] = {"xycoords": ax.get_yaxis_transform(), "ha": "left"}
        place |= {"xytext": (0, 3), "textcoords": "offset points", "va": "bottom", "gid": HALF}
        note(ax, "as often as scratch", (0.015, 50.0), color="#6E6E6E", **place)


def _win_curve(ax: Axes, result: WinRates, shade: str, bands: bool, dots: bool) -> None:
    """Draw rates with intervals; hollow where ½ is not excluded."""
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


def _win_limits(rows: Sequence[WinRates]) -> tuple[float, float]:
    """Return limits with all rates and their intervals, and one half."""
    values = np.concatenate([np.concatenate(_percent(one)) for one in rows])
    known = [50.0, *values[np.isfinite(values)].tolist()]
    low, high = min(known), max(known)
    pad = max(0.06 * (high - low), 1.0)
    return max(low - pad, -2.0), min(high + pad, 102.0)


def _win_caption(rows: Sequence[WinRates]) -> list[str]:
    one = rows[0]
    said = "Share of test examples with a lower loss than from scratch, ties half."
    if any(np.isfinite(r.rate.width) for row in rows for r in row.rates):
        said += f" {100 * one.level:.4g}% intervals; hollow: ½ is not excluded."
    if len(rows) == 1 and any(r.runs > 1 for r in one.rates):
        said += " Small dots: single runs."
    alone = [one.end.text, *warned(one)] if len(rows) == 1 else []
    return [said, *alone]
