"""Pictures of plans: questions against samples, power against questions, and looks at the questions so far."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from curvewise.drawing.axes import is_narrow, log_sizes, raise_top, short_number, view
from curvewise.drawing.labels import clean, safe_names, safe_text, shorten
from curvewise.drawing.marks import MARK, bars, choose, finish, mark_value, note, warned, zero_line
from curvewise.drawing.style import INK, NEUTRAL, as_percent, colour
from curvewise.errors import InputError, arg
from curvewise.evals.plan import EvalPlan, LookCheck, LookPlan
from curvewise.evals.plot.canvas import FRACTION, eval_canvas
from curvewise.evals.score import in_points
from curvewise.text import format_interval, format_number, format_size

FRONTIER = "curvewise-frontier"
POINT = "curvewise-point"
POWER = "curvewise-power"
RANGE = "curvewise-range"
PATH = "curvewise-path"
"""Group ids of the artists."""

_STATES = (("go on", colour(0), "o"), ("stop", colour(1), "D"), ("later", NEUTRAL, "o"))


def plot_eval_plan(
    result: EvalPlan,
    ax: Axes | None = None,
    *,
    what: str | None = None,
    legend: bool = True,
    caption: bool | None = None,
) -> Axes:
    """Draw the questions needed with each number of samples, or the power against the number of questions.

    Parameters
    ----------
    result : EvalPlan
        The result to draw.
    ax : Axes, optional
        Axes to draw on; a new figure by default.
    what : {"frontier", "power"}, optional
        Questions against samples of each (with a budget: the difference that they find); or the power, where the plan
        has a difference, else the difference that is found. By default the frontier where there is one.
    legend : bool
        Say what is what.
    caption : bool, optional
        Say what was found under the picture; by default where there is room.
    """
    many = bool(result.frontier) and len(result.frontier["samples"]) > 1
    choose("what", what or "power", ("frontier", "power"))
    if what == "frontier" and not many:
        raise InputError(f"the plan has no frontier: pass {arg('difference')} or {arg('budget')}, and a plain mean.")
    if many and what != "power":
        draw = _frontier if result.budget is None else _budget
    else:
        draw = _power if result.difference is not None else _detectable
    with eval_canvas(ax, 4.3) as (ax, own):
        key = draw(ax, result)
        ax.grid(axis="y", alpha=0.25, linewidth=0.6)
        # The plan in words, without the sequential one, which has a picture of its own.
        said = result.sentences() if result.looks is None else result.sentences().replace(result.looks.sentences(), "")
        finish(ax, own, key, [said, *warned(result)], legend=legend, caption=caption, columns=3 if own else 1)
    return ax


def _points(value: float, unit: str) -> str:
    return in_points(f"{short_number(100 * value)}%") if unit == "fraction" else short_number(value)


def _log_counts(ax: Axes) -> None:
    """Make a log y axis of counts in plain numbers."""
    ax.set_yscale("log")
    low, high = ax.get_ylim()
    ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high / low < 1000 else (1.0,)))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(FuncFormatter(lambda y, _: safe_text(format_size(y))))


def _frontier(ax: Axes, result: EvalPlan) -> list[tuple[Any, str]]:
    """Draw questions against samples for the difference of the plan, half and twice it; mark plan and cheapest."""
    samples, questions = (np.asarray(result.frontier[name], dtype=np.float64) for name in ("samples", "questions"))
    key: list[tuple[Any, str]] = []
    effect = result.difference or 0.0
    for times, shade, ls in ((0.5, NEUTRAL, "-."), (1.0, INK, "-"), (2.0, NEUTRAL, "--")):
        needed = [result._known.needed(times * effect, k) for k in result.frontier["samples"].tolist()]
        (line,) = ax.plot(samples, needed, color=shade, ls=ls, lw=1.8 if times == 1 else 1.2)
        line.set_gid(FRONTIER)
        key.append((line, f"{_points(times * effect, result.unit)}"))
    # With more and more samples of each, only the questions vary.
    endless = questions[-1] * result._known.variance(10**9) / result._known.variance(int(samples[-1]))
    if endless >= 2:
        ax.axhline(endless, color=NEUTRAL, ls=":", lw=1.0, zorder=0.6, gid=MARK)
        place = {"xycoords": ax.get_yaxis_transform(), "ha": "right", "va": "top", "xytext": (0, -2)}
        note(
            ax,
            f"at least {format_size(endless)}",
            (0.99, endless),
            textcoords="offset points",
            color="#6E6E6E",
            **place,
        )
    ax.set_xlim(samples[0] / 1.15, samples[-1] * 1.15)
    log_sizes(ax, samples.tolist())
    low, high = max(2.0, questions[-1] / 8), questions[0] * 5
    ax.set_ylim(low, high)
    _log_counts(ax)
    n, k = result.cheapest
    marks = [(k, n, "D", colour(1), "cheapest")]
    if result.questions is not None and result.samples[0] == result.samples[1]:
        marks.append((result.samples[0], result.questions, "o", colour(0), "planned"))
    same = len(marks) == 2 and marks[0][:2] == marks[1][:2]
    for x, y, marker, shade, text in marks[1:] if same else marks:
        (dot,) = ax.plot([x], [y], marker, color=shade, ms=7, gid=POINT, label="_point", zorder=4, ls="none")
        key.append((dot, f"{'planned, cheapest' if same else text}: {y:,} × {x}"))
    ax.set(xlabel="samples of each question, by each model", ylabel="questions")
    return key


def _budget(ax: Axes, result: EvalPlan) -> list[tuple[Any, str]]:
    """Draw the difference that a budget finds against the samples of each question."""
    table = {name: np.asarray(values, dtype=np.float64) for name, values in result.frontier.items()}
    (line,) = ax.plot(table["samples"], table["detectable"], "o-", color=INK, ms=4, gid=FRONTIER, label="_budget")
    n, k = result.cheapest
    place = int(np.flatnonzero(table["samples"] == k)[0])
    (dot,) = ax.plot([k], [table["detectable"][place]], "D", color=colour(1), ms=7, gid=POINT, zorder=4, ls="none")
    ax.set_xlim(table["samples"][0] / 1.15, table["samples"][-1] * 1.15)
    log_sizes(ax, table["samples"].tolist())
    ax.set_ylim(0.0, 1.1 * float(table["detectable"].max()))
    label = "difference found"
    if result.unit == "fraction":
        as_percent(ax.yaxis, FRACTION)
        label += " (points)"
    ax.set(xlabel="samples of each question, by each model", ylabel=label)
    return [(line, f"within a cost of {format_number(result.budget or 0.0)}"), (dot, f"best: {n:,} × {k}")]


def _power(ax: Axes, result: EvalPlan) -> list[tuple[Any, str]]:
    """Draw the power against the number of questions."""
    effect, needed = result.difference or 1.0, result.questions or 2
    most = max(10, 4 * needed, result.available or 0)
    grid = np.unique(np.rint(np.geomspace(2, most, 100)).astype(int))
    key: list[tuple[Any, str]] = []
    for times, shade, ls in ((2.0, NEUTRAL, "--"), (1.0, INK, "-"), (0.5, NEUTRAL, "-.")):
        chance = [100 * result.power_at(int(n), times * effect) for n in grid]
        (line,) = ax.plot(grid, chance, color=shade, ls=ls, lw=2.0 if times == 1 else 1.3, gid=POWER, label="_power")
        key.append((line, _points(times * effect, result.unit)))
    ax.set(ylim=(0.0, 104.0), xlim=(grid[0] / 1.1, 1.1 * grid[-1]))
    log_sizes(ax)
    ax.axhline(100 * result.power, color=NEUTRAL, ls=":", lw=1.0, zorder=0.6, gid=MARK)
    mark_value(ax, float(needed), f"{needed:,} questions", "-", bottom=True)
    inner = result.questions_interval
    if inner is not None:  # what the pilot leaves open, shaded
        ax.axvspan(inner.low, min(inner.high, 1.1 * grid[-1]), color=NEUTRAL, alpha=0.15, lw=0.0, zorder=0.2, gid=RANGE)
    ax.set(xlabel="questions", ylabel="power (%)")
    return key


def _detectable(ax: Axes, result: EvalPlan) -> list[tuple[Any, str]]:
    """Draw the difference that is found against the number of questions."""
    here = result.available or 2
    grid = np.unique(np.rint(np.geomspace(max(2, here / 10), 10 * here, 100)).astype(int))
    (line,) = ax.plot(grid, [result.detectable_at(int(n)) for n in grid], color=INK, lw=2.0, gid=FRONTIER)
    ax.set_xlim(grid[0] / 1.1, 1.1 * grid[-1])
    log_sizes(ax)
    ax.set_ylim(bottom=0.0)
    ax.plot([here], [result.detectable_at(here)], "o", color=colour(0), ms=7, gid=POINT, label="_here", zorder=4)
    mark_value(ax, float(here), f"{here:,} questions", "-", bottom=True)
    label = "difference found"
    if result.unit == "fraction":
        as_percent(ax.yaxis, FRACTION)
        label += " (points)"
    ax.set(xlabel="questions", ylabel=label)
    return [(line, f"found with {result.power:.0%} power")]


def plot_look_plan(
    result: LookPlan, ax: Axes | None = None, *, what: str = "chance", legend: bool = True, caption: bool | None = None
) -> Axes:
    """Draw what a plan with several looks finds beside a single look, or how many questions it takes.

    Parameters
    ----------
    result : LookPlan
        The result to draw.
    ax : Axes, optional
        Axes to draw on; a new figure by default.
    what : {"chance", "questions"}
        The chance of finding a difference, or the questions until the plan stops.
    legend : bool
        Say what is what.
    caption : bool, optional
        Say what was found under the picture; by default where there is room.
    """
    choose("what", what, ("chance", "questions"))
    with eval_canvas(ax, 4.2) as (ax, own):
        chance, last = what == "chance", float(result.looks[-1])
        plan, fixed = (
            (result.chance_found, result.fixed_chance)
            if chance
            else (result.expected_questions, [last] * len(result.effects))
        )
        key: list[tuple[Any, str]] = []
        for values, shade, ls, marker, text in (
            (plan, colour(0), "-", "o", f"plan of {len(result.looks)} looks"),
            (fixed, colour(1), "--", "s", f"one look at {result.looks[-1]:,} questions"),
        ):
            look: dict[str, Any] = {"color": shade, "ls": ls, "marker": marker, "ms": 5, "gid": POWER}
            (line,) = ax.plot(result.effects, (100.0 if chance else 1.0) * np.array(values), label="_chance", **look)
            key.append((line, text))
        ax.set(ylim=(0.0, 104.0 if chance else 1.12 * last))
        ax.set_xlabel("true difference (standard deviations of a question's difference)")
        ax.set_ylabel("chance of finding it (%)" if chance else "questions asked, on average")
        finish(ax, own, key, [result.sentences()], legend=legend, caption=caption, columns=2 if own else 1)
    return ax


def plot_look_check(
    result: LookCheck, ax: Axes | None = None, *, legend: bool = True, caption: bool | None = None
) -> Axes:
    """Draw the difference at each look so far, with intervals that hold at all looks together.

    Parameters
    ----------
    result : LookCheck
        The result to draw.
    ax : Axes, optional
        Axes to draw on; a new figure by default.
    legend : bool
        Say what is what.
    caption : bool, optional
        Say what was found under the picture; by default where there is room.
    """
    with eval_canvas(ax, 4.2) as (ax, own):
        estimate, low, high = np.array([tuple(d) for d in result.differences], dtype=np.float64).T
        # Of each look: go on, stop, or after the stop, when nothing more is decided.
        stops = [d.startswith("stop") for d in result.decisions]
        first = stops.index(True) if True in stops else len(stops)
        states = np.array(["go on"] * first + ["stop"] * any(stops) + ["later"] * (len(stops) - first - 1))
        margin = result.margin or 0.0
        limits = view(estimate, low, high, 0.0, margin, -margin)
        key: list[tuple[Any, str]] = []
        if margin:
            ax.axhspan(-margin, margin, color=NEUTRAL, alpha=0.18, lw=0.0, zorder=0.2, gid=RANGE)
            key.append((Patch(color=NEUTRAL, alpha=0.25), "margin"))
        zero_line(ax, horizontal=True)
        looked = np.array(result.looked, dtype=np.float64)
        for state, shade, marker in _STATES:
            part = states == state
            if part.any():
                bars(ax, looked[part], low[part], high[part], shade, limits=limits, width=1.8)
                ax.plot(looked[part], estimate[part], marker, color=shade, ms=6, gid=PATH, label="_look")
                key.append((Line2D([], [], color=shade, marker=marker, ms=5), state))
        if result.next_look is not None:
            for n in (n for n in result.plan.looks if n > looked[-1]):
                ax.axvline(n, color=NEUTRAL, ls=":", lw=1.0, zorder=0.5, gid=MARK, label="_ahead")
            key.append((Line2D([], [], color=NEUTRAL, ls=":", lw=1.0), "looks ahead"))
        ax.set_ylim(*limits)
        log_sizes(ax, [float(n) for n in result.plan.looks])
        ax.set_xlim(0.85 * result.plan.looks[0], 1.15 * result.plan.looks[-1])
        if result.unit == "fraction":
            as_percent(ax.yaxis, FRACTION)
        a, b = safe_names((result.a, result.b), 8 if is_narrow(ax) else 16)
        ax.set(xlabel="questions", ylabel=f"{a} − {b}{' (points)' if result.unit == 'fraction' else ''}")
        if legend and not own:
            raise_top(ax, 2)
        one, two = (shorten(clean(n), 40) for n in (result.a, result.b))
        gap = in_points(format_interval(result.difference, result.unit))
        then = "" if result.next_look is None else f" Look again at {result.next_look:,} questions."
        text = (
            f"After {result.questions:,} questions {one} minus {two} is {gap}; the intervals hold at all looks together"
            f" ({result.plan.level:.0%}). Decision: {result.decision}.{then}"
        )
        finish(ax, own, key, [text, *warned(result)], legend=legend, caption=caption, columns=4 if own else 2)
    return ax
