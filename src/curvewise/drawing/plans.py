"""Curves of plans: power by the number of runs or questions, plans with several looks, and the looks so far."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import ArrayLike

from curvewise.drawing.axes import is_narrow, log_sizes, raise_top, view
from curvewise.drawing.marks import MARK, draw_estimates, key_dot, mark_value, zero_line
from curvewise.drawing.style import INK, NEUTRAL, OWN, colour
from curvewise.types.results import FloatArray, Interval

POWER = "curvewise-power"
RANGE = "curvewise-range"
PATH = "curvewise-path"
MARGIN = "curvewise-margin"
AHEAD = "curvewise-ahead"
"""Group ids of the artists."""

Key = list[tuple[Any, str]]
"""Handles of a legend with their texts."""

STATES = {"go on": (colour(0), "o"), "stop": (colour(1), "D"), "later": (NEUTRAL, "o")}
"""Colour and marker of a look by its decision; after the one that stops, nothing more is decided."""

WHOLE = 10
"""Counts up to which each has a point: between them the line means nothing."""


def draw_power(
    ax: Axes,
    most: int,
    power_at: Callable[[int, float], float],
    effect: float,
    write: Callable[[float], str],
    *,
    goal: float,
    needed: int | None,
    interval: Interval | None,
    noun: str,
) -> Key:
    """Draw the power against a number of runs or questions, for an effect, half and twice it; return the key.

    Parameters
    ----------
    ax : Axes
        Where.
    most : int
        The largest number.
    power_at : callable
        The power, from 0 to 1, of a number and an effect.
    effect : float
        The effect of the plan.
    write : callable
        Writes an effect for the key.
    goal : float
        The power that is wanted.
    needed : int, optional
        The number that reaches it, which is marked.
    interval : Interval, optional
        Its interval, which is shaded.
    noun : str
        "runs" or "questions".
    """
    grid = np.unique(np.rint(np.geomspace(2, max(3, most), 100)).astype(int))
    key: Key = []
    for times, shade, ls in ((2.0, NEUTRAL, "--"), (1.0, INK, "-"), (0.5, NEUTRAL, "-.")):
        power = [100 * power_at(int(n), times * effect) for n in grid]
        look: dict[str, Any] = {"marker": ".", "markevery": np.flatnonzero(grid <= WHOLE).tolist(), "gid": POWER}
        (line,) = ax.plot(grid, power, color=shade, ls=ls, lw=2.0 if times == 1.0 else 1.3, label="_power", **look)
        key.append((line, write(times * effect)))
    ax.set(ylim=(0.0, 104.0), xlim=(2 / 1.1, 1.1 * float(grid[-1])), ylabel="power (%)")
    log_sizes(ax)
    ax.axhline(100 * goal, color=NEUTRAL, ls=":", lw=1.0, zorder=0.6, gid=MARK)
    if needed is not None:
        mark_value(ax, float(needed), f"{needed:,} {noun}", "-", bottom=True)
    if interval is not None:
        low, high = np.clip([interval.low, interval.high], *ax.get_xlim()).tolist()
        if low < high:
            ax.axvspan(low, high, color=NEUTRAL, alpha=0.15, lw=0.0, zorder=0.2, gid=RANGE)
    return key


def draw_look_plan(ax: Axes, plan: Any, expected: ArrayLike | None, noun: str) -> Key:
    """Draw the chance of finding a difference, or the number expected until the plan stops; return the key."""
    last = plan.looks[-1]
    ours, fixed = (plan.chance_found, plan.fixed_chance) if expected is None else (expected, [last] * len(plan.effects))
    key: Key = []
    for values, shade, ls, marker, text in (
        (ours, colour(0), "-", "o", f"plan of {len(plan.looks)} looks"),
        (fixed, colour(1), "--", "s", f"one look at {last:,} {noun}"),
    ):
        y = (100.0 if expected is None else 1.0) * np.asarray(values, dtype=np.float64)
        look: dict[str, Any] = {"color": shade, "ls": ls, "marker": marker, "ms": 5, "gid": POWER, "label": "_plan"}
        key.append((ax.plot(plan.effects, y, **look)[0], text))
    ax.set_ylim(0.0, 104.0 if expected is None else 1.12 * last)
    return key


def draw_looks(
    ax: Axes,
    looked: Sequence[int],
    ends: Sequence[FloatArray],
    decisions: Sequence[str],
    looks: Sequence[int],
    *,
    ahead: bool,
    margin: float | None,
    legend: bool,
) -> tuple[Key, int]:
    """Draw the difference at each look so far and the looks ahead; return the key and its number of columns.

    Parameters
    ----------
    ax : Axes
        Where.
    looked, ends, decisions
        The looks so far, their estimates, lows and highs, and what each decided.
    looks : sequence of int
        All looks of the plan.
    ahead : bool
        Mark the looks to come.
    margin : float, optional
        Differences below it count as none: shaded.
    legend : bool
        Leave room for a legend in Axes of someone else.
    """
    stops = [d.startswith("stop") for d in decisions]
    first = stops.index(True) if True in stops else len(stops)
    states = ["go on"] * first + ["stop"] * any(stops) + ["later"] * (len(stops) - first - 1)
    key: Key = []
    estimate, low, high = ends
    limits = view(estimate, low, high, 0.0, *((-margin, margin) if margin else ()))
    zero_line(ax, horizontal=True)
    for state, (shade, marker) in STATES.items():
        part = np.flatnonzero([s == state for s in states])
        if len(part):
            look: dict[str, Any] = {"horizontal": False, "marker": marker, "size": 6, "width": 1.8, "gid": PATH}
            place = np.asarray(looked, dtype=np.float64)[part]
            draw_estimates(ax, place, [v[part] for v in ends], shade, limits=limits, **look)
            key.append((key_dot(shade, marker, line="-"), state))
    if ahead:
        for n in looks:
            if n > looked[-1]:
                ax.axvline(n, color=NEUTRAL, ls=":", lw=1.0, zorder=0.5, gid=AHEAD, label="_ahead")
        key.append((Line2D([], [], color=NEUTRAL, ls=":", lw=1.0), "looks ahead"))
    if margin:
        ax.axhspan(-margin, margin, color=NEUTRAL, alpha=0.18, lw=0.0, zorder=0.2, gid=MARGIN)
        key.append((Patch(color=NEUTRAL, alpha=0.25), "margin"))
    ax.set_ylim(*limits)
    log_sizes(ax, [float(n) for n in looks])
    ax.set_xlim(0.85 * looks[0], 1.15 * looks[-1])
    columns = 2 if is_narrow(ax) else 4
    if legend and ax.get_gid() != OWN:
        raise_top(ax, 4 // columns)
    return key, columns
