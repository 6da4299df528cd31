"""Pictures of plans: power against runs, looks at the data, and what they decided."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes

from curvewise.drawing.axes import is_narrow
from curvewise.drawing.labels import clean, safe_names, shorten
from curvewise.drawing.marks import choose, finish, warned
from curvewise.drawing.plans import draw_look_plan, draw_looks, draw_power
from curvewise.drawing.style import canvas
from curvewise.stats.intervals import FEW
from curvewise.text import format_level, format_number, format_size, name_decision
from curvewise.variance.plan import RunPlan, StoppingCheck, StoppingPlan
from curvewise.variance.plot.runs import DrawnUnit


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
        word = "" if is_narrow(ax) else f"{'std' if result.question == 'variance' else 'difference'} "
        options: dict[str, Any] = {"goal": result.power, "needed": result.runs, "interval": result.runs_interval}
        options["write"] = lambda effect: f"{word}{measure.text(effect)}"
        key = draw_power(ax, most, result.power_at, result.effect, noun="runs", **options)
        ax.set(xlabel="runs of each training" if result.question == "difference" else "runs")
        finish(ax, own, key, _plan_caption(result), legend=legend, caption=caption, columns=3 if own else 1)
    return ax


def _plan_caption(result: RunPlan) -> list[str]:
    measure, inner = DrawnUnit(result.unit), result.runs_interval
    what = f"a standard deviation on new data of {measure.text(result.effect)}"
    if result.question == "difference":
        where = "on new data" if result.target == "distribution" else "on this test set"
        what = f"a difference of {measure.text(result.effect)} {where}"
    if result.runs is not None:
        limits = "" if inner is None else f" [{format_size(inner.low)}, {format_size(inner.high)}]"
        said = f"{result.runs:,} runs{limits} show {what} with {result.power:.0%} power."
        if inner is not None:
            said += " Shaded: the runs needed with the pilot's standard deviations at the ends of their intervals."
    else:
        said = f"Not even {result.runs_max:,} runs show {what} with {result.power:.0%} power."
    if result.runs is None and result.examples_needed is not None and result.examples:
        needed = format_size(result.examples_needed)
        design = f" in {result.groups:,} groups" if result.groups else ""
        said += f" The test set of {result.examples:,} examples{design} is too small: about {needed} are needed."
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
        key = draw_look_plan(ax, result, None if what == "chance" else result.expected_runs, "runs")
        ax.set_xlabel("true difference (std between runs)")
        ax.set_ylabel("chance of finding it (%)" if what == "chance" else "runs of each training")
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
        key, columns = draw_looks(
            ax,
            result.looked,
            measure.ends(result.differences),
            result.decisions,
            result.plan.looks,
            ahead=result.next_look is not None,
            margin=None if result.margin is None else float(measure.of(result.margin)),
            legend=legend,
        )
        a, b = safe_names(result.names, 6 if is_narrow(ax) else 10)
        ax.set(xlabel="runs of each training", ylabel=f"{a} − {b}{' (%)' if measure.bounded else ''}")
        one, two = (shorten(clean(n), 40) for n in result.names)
        difference = measure.range(measure.interval(result.difference))
        text = (
            f"After {result.runs:,} runs of each, {one} minus {two} is {difference}; the intervals"
            f" hold at all looks together ({format_level(result.plan.level)}). Decision:"
            f" {name_decision(result.decision, one, two)}."
            f"{'' if result.next_look is None else f' Look again at {result.next_look:,} runs.'}"
        )
        place: dict[str, Any] = {"columns": columns, "loc": "upper left"}
        finish(ax, own, key, [text, *warned(result)], legend=legend, caption=caption, **place)
    return ax
