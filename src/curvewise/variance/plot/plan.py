"""Pictures of plans: power against runs, looks at the data, and what they decided."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from curvewise.drawing.axes import is_narrow, log_sizes, raise_top, view
from curvewise.drawing.labels import clean, safe_names, shorten
from curvewise.drawing.marks import MARK, bars, choose, finish, mark_value, warned, zero_line
from curvewise.drawing.style import INK, NEUTRAL, colour
from curvewise.stats.intervals import FEW
from curvewise.text import format_number, format_size
from curvewise.variance.plan import RunPlan, StoppingCheck, StoppingPlan
from curvewise.variance.plot.runs import DrawnUnit, canvas

POWER = "curvewise-power"
RANGE = "curvewise-range"
PATH = "curvewise-path"
AHEAD = "curvewise-ahead"
MARGIN = "curvewise-margin"

_LOOKS = (("go on", colour(0), "o"), ("stop", colour(1), "D"), ("later", NEUTRAL, "o"))


def plot_run_plan(result: RunPlan, ax: Axes | None = None, *, legend: bool = True, caption: bool | None = None) -> Axes:
    """Draw the power against the number of runs, for the effect asked about, half and twice it.

    Parameters
    ----------
    result : RunPlan
        The result to draw.
    ax : Axes, optional
        Axes to draw on; a new figure by default.
    legend : bool
        Say what is what.
    caption : bool, optional
        Say what was found under the picture; by default where there is room.
    """
    measure = DrawnUnit(result.unit)
    with canvas(ax, 4.3) as (ax, own):
        most = min(result.runs_max, int(result.table_runs[-1]))
        runs = np.unique(np.rint(np.geomspace(2, max(3, most), 80)).astype(int))
        key: list[tuple[Any, str]] = []
        word = "" if is_narrow(ax) else f"{'std' if result.question == 'variance' else 'difference'} "
        looks = ((2.0, NEUTRAL, "--"), (1.0, INK, "-"), (0.5, NEUTRAL, "-."))
        for times, shade, ls in looks:
            power = [100 * result.power_at(int(r), times * result.effect) for r in runs]
            width = 2.0 if times == 1.0 else 1.3
            # Points where whole numbers are far apart: between them the line means nothing.
            points: dict[str, Any] = {"marker": ".", "markevery": np.flatnonzero(runs <= 10).tolist()}
            (line,) = ax.plot(runs, power, color=shade, ls=ls, lw=width, gid=POWER, label="_power", **points)
            key.append((line, f"{word}{measure.said(times * result.effect)}"))
        ax.set(ylim=(0.0, 104.0), xlim=(2 / 1.1, 1.1 * float(runs[-1])))
        log_sizes(ax)
        ax.axhline(100 * result.power, color=NEUTRAL, ls=":", lw=1.0, zorder=0.6, gid=MARK)
        if result.runs is not None:
            mark_value(ax, float(result.runs), f"{result.runs:,} runs", "-", bottom=True)
        if result.runs_interval is not None:  # what the pilot leaves open, shaded
            left, right = ax.get_xlim()
            low, high = np.clip([result.runs_interval.low, result.runs_interval.high], left, right).tolist()
            if low < high:
                ax.axvspan(low, high, color=NEUTRAL, alpha=0.15, lw=0.0, zorder=0.2, gid=RANGE)
        ax.set(xlabel="runs of each training" if result.question == "difference" else "runs", ylabel="power (%)")
        finish(ax, own, key, _plan_caption(result), legend=legend, caption=caption, columns=3 if own else 1)
    return ax


def _plan_caption(result: RunPlan) -> list[str]:
    measure, inner = DrawnUnit(result.unit), result.runs_interval
    what = f"a standard deviation on new data of {measure.said(result.effect)}"
    if result.question == "difference":
        where = "on new data" if result.target == "distribution" else "on this test set"
        what = f"a difference of {measure.said(result.effect)} {where}"
    if result.runs is not None:
        limits = "" if inner is None else f" [{format_size(inner.low)}, {format_size(inner.high)}]"
        said = f"{result.runs:,} runs{limits} show {what} with {result.power:.0%} power."
        if inner is not None:
            said += " Shaded: the runs needed with the pilot's standard deviations at the ends of their intervals."
    else:
        said = f"Not even {result.runs_max:,} runs show {what} with {result.power:.0%} power."
    if result.runs is None and result.examples_needed is not None and result.examples:
        needed = format_size(result.examples_needed)
        said += f" The test set of {result.examples:,} examples is too small: about {needed} are needed."
    if result.question == "difference" and result.table_runs[0] < FEW:
        said += f" Below {FEW} runs the test is more careful, because variances are poorly known: hence the bend."
    return [said, *warned(result)]


def plot_stopping_plan(
    result: StoppingPlan,
    ax: Axes | None = None,
    *,
    what: str = "chance",
    legend: bool = True,
    caption: bool | None = None,
) -> Axes:
    """Draw what a plan with several looks finds, beside a single look, or how many runs it takes.

    Parameters
    ----------
    result : StoppingPlan
        The result to draw.
    ax : Axes, optional
        Axes to draw on; a new figure by default.
    what : {"chance", "runs"}
        The chance of finding a difference, or the runs of each training until the plan stops.
    legend : bool
        Say what is what.
    caption : bool, optional
        Say what was found under the picture; by default where there is room.
    """
    choose("what", what, ("chance", "runs"))
    with canvas(ax, 4.2) as (ax, own):
        chance = what == "chance"
        last = [float(result.looks[-1])] * len(result.effects)
        plan, fixed = (result.chance_found, result.fixed_chance) if chance else (result.expected_runs, last)
        times, key = (100.0 if chance else 1.0), []
        for values, shade, ls, marker, text in (
            (plan, colour(0), "-", "o", f"plan of {len(result.looks)} looks"),
            (fixed, colour(1), "--", "s", f"one look at {result.looks[-1]:,} runs"),
        ):
            look: dict[str, Any] = {"color": shade, "ls": ls, "marker": marker, "ms": 5}
            (line,) = ax.plot(result.effects, times * np.array(values), gid=POWER, label="_chance", **look)
            key.append((line, text))
        ax.set(ylim=(0.0, 104.0 if chance else 1.12 * result.looks[-1]), xlabel="true difference (std between runs)")
        ax.set_ylabel("chance of finding it (%)" if chance else "runs of each training")
        shown, naive = [f"{n:,}" for n in result.looks], 1 - result.level
        looks = ", ".join(shown if len(shown) <= 8 else [*shown[:4], "…", shown[-1]])
        said = (
            f"Looks at {looks} runs; each stops at p < {format_number(result.nominal_level, 3)}, so that together they"
            f" err with a chance of {naive:.2g}. Stopping at p < {naive:.2g} would err with {result.naive_error:.2g}."
        )
        finish(ax, own, key, [said], legend=legend, caption=caption, columns=2 if own else 1)
    return ax


def plot_stopping_check(
    result: StoppingCheck, ax: Axes | None = None, *, legend: bool = True, caption: bool | None = None
) -> Axes:
    """Draw the difference at each look so far, with intervals that hold at all looks together.

    Parameters
    ----------
    result : StoppingCheck
        The result to draw.
    ax : Axes, optional
        Axes to draw on; a new figure by default.
    legend : bool
        Say what is what.
    caption : bool, optional
        Say what was found under the picture; by default where there is room.
    """
    measure = DrawnUnit(result.unit)
    with canvas(ax, 4.2) as (ax, own):
        states = _path(ax, result, measure)
        log_sizes(ax, [float(n) for n in result.plan.looks])
        ax.set(xlim=(0.85 * result.plan.looks[0], 1.15 * result.plan.looks[-1]), xlabel="runs of each training")
        a, b = safe_names(result.names, 6 if is_narrow(ax) else 10)
        ax.set_ylabel(f"{a} − {b}{' (%)' if measure.bounded else ''}")
        key: list[tuple[Any, str]] = [
            (Line2D([], [], color=shade, marker=marker, ms=5), state)
            for state, shade, marker in _LOOKS
            if state in states
        ]
        if result.next_look is not None:
            key.append((Line2D([], [], color=NEUTRAL, ls=":", lw=1.0), "looks ahead"))
        if result.margin:
            key.append((Patch(color=NEUTRAL, alpha=0.25), "margin"))
        columns = 2 if is_narrow(ax) else 4
        if legend and not own:
            raise_top(ax, 4 // columns)
        one, two = (shorten(clean(n), 40) for n in result.names)
        difference = measure.told(measure.interval(result.difference))
        text = (
            f"After {result.runs:,} runs of each, {one} minus {two} is {difference}; the intervals"
            f" hold at all looks together ({100 * result.plan.level:.4g}%). Decision: {result.decision}."
            f"{'' if result.next_look is None else f' Look again at {result.next_look:,} runs.'}"
        )
        place: dict[str, Any] = {"columns": columns, "loc": "upper left"}
        finish(ax, own, key, [text, *warned(result)], legend=legend, caption=caption, **place)
    return ax


def _path(ax: Axes, result: StoppingCheck, measure: DrawnUnit) -> Any:
    """The looks so far, those ahead, and the margin; what each look decided."""
    estimate, low, high = measure.ends(result.differences)
    # Of each look: go on, stop, or after the stop, when nothing more is decided.
    stops = [d.startswith("stop") for d in result.decisions]
    first = stops.index(True) if True in stops else len(stops)
    states = np.array(["go on"] * first + ["stop"] * any(stops) + ["later"] * (len(stops) - first - 1))
    looked, also = np.array(result.looked, dtype=np.float64), [0.0]
    if result.margin:
        margin = float(measure.of(result.margin))
        also += [-margin, margin]
        ax.axhspan(-margin, margin, color=NEUTRAL, alpha=0.18, lw=0.0, zorder=0.2, gid=MARGIN)
    limits = view(estimate, low, high, *also)
    zero_line(ax, horizontal=True)
    for state, shade, marker in _LOOKS:
        part = states == state
        bars(ax, looked[part], low[part], high[part], shade, limits=limits, width=1.8)
        ax.plot(looked[part], estimate[part], marker, color=shade, ms=6, gid=PATH, label="_look")
    for n in result.plan.looks if result.next_look is not None else ():
        if n > looked[-1]:
            ax.axvline(n, color=NEUTRAL, ls=":", lw=1.0, zorder=0.5, gid=AHEAD, label="_ahead")
    ax.set_ylim(*limits)
    return states
