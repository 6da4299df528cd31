"""Two learners side by side: where they cross, and how much data one is worth to the other."""

from __future__ import annotations

import math

import numpy as np
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke

from curvewise.learning import CurveComparison
from curvewise.learning.base import EXTRAPOLATION_LIMIT
from curvewise.plot import layers
from curvewise.plot.layers import Look, Picture
from curvewise.plot.scene import curve_legend, finish_axes
from curvewise.plot.sizes import SizeAxis
from curvewise.plot.style import NEUTRAL, colour, new_axes, style, write_caption
from curvewise.plot.text import safe_text
from curvewise.plot.wording import caption_of, labels_of, warning_lines, warnings_of
from curvewise.tables import number
from curvewise.types import Interval

CROSSING = "curvewise-crossing"
EQUIVALENCE = "curvewise-equivalence"
AT = "curvewise-at"


def plot_comparison(
    result: CurveComparison, ax: Axes | None = None, *, x: str = "log", legend: bool = True
) -> Axes:
    """Draw both curves, N, where they cross, and the data-equivalence factor as an arrow.

    Parameters
    ----------
    result : CurveComparison
        What to draw.
    ax : Axes, optional
        Where; a new figure by default.
    x : {"log", "linear", "sqrt"}
        Scale of the training size; errors keep a linear scale.
    legend : bool
        Name the curves.
    """
    curves = result._curves
    axis = SizeAxis(x)
    with style():
        found = warnings_of(curves)
        warned = warning_lines(curves, found, {})
        own = ax is None
        ax = ax or new_axes(height=5.2 + 0.28 * len(warned))
        picture = _picture(ax, axis, result)
        labels = labels_of(curves, result.at, found)
        for i, (curve, label) in enumerate(zip(curves, labels, strict=True)):
            look = Look(colour(i), bool(found[i]))
            low = float(curve.n[0])
            layers.draw_band(picture, curve, look, None, result.level, low)
            layers.draw_line(picture, curve, look, label, low)
            layers.draw_measurements(picture, curve, look)
        layers.draw_limits(picture, curves)
        layers.mark_size(picture, result.at, f"N = {number(result.at)}", gid=AT, ls=":")
        _mark_crossing(picture, result.crossing)
        finish_axes(picture, curves, log_values=False)
        _mark_equivalence(picture, result)
        box = curve_legend(ax, own, 2) if legend else None
        key = caption_of(curves, None, result.level, dotted=any(found))
        write_caption(ax, [*_findings(result), key, *warned], under=box if own else None)
    return ax


def _picture(ax: Axes, axis: SizeAxis, result: CurveComparison) -> Picture:
    """A range that holds both curves, and the crossing and the arrow unless they are far out."""
    curves = result._curves
    farthest = EXTRAPOLATION_LIMIT**2 * max(c.largest_n for c in curves)
    others = [result.at, result.crossing.estimate, result.at * result.data_equivalence.estimate]
    near = [n for n in others if math.isfinite(n) and 0 < n <= farthest]
    low = min(float(c.n[0]) for c in curves)
    high = axis.reach([EXTRAPOLATION_LIMIT * c.largest_n for c in curves], near)
    return Picture(ax, axis, min(low, *(max(n, 0.25 * low) for n in near)), high)


def _mark_crossing(at: Picture, crossing: Interval) -> None:
    if not at.low <= crossing.estimate <= at.high:
        return
    layers.mark_size(
        at, crossing.estimate, f"curves cross ({number(crossing.estimate)})", gid=CROSSING, ls="--"
    )
    if math.isfinite(crossing.high) and crossing.low > 0:
        ends = at.axis.place([crossing.low, crossing.high])
        strip = at.ax.axvspan(
            float(ends.min()), float(ends.max()), color=NEUTRAL, alpha=0.15, lw=0.0, zorder=0.3
        )
        strip.set_gid(CROSSING)


def _mark_equivalence(at: Picture, result: CurveComparison) -> None:
    """An arrow from a's error at N to the size at which b's curve gets there."""
    factor = result.data_equivalence.estimate
    if math.isnan(factor) or abs(factor - 1.0) < 0.02:
        return
    edges = np.sort(at.axis.size(at.ax.get_xlim()))
    target = float(np.clip(factor * result.at, edges[0], edges[1]))
    height = result._curves[0].error_at(result.at)
    start, stop = at.axis.place([result.at, target]).tolist()
    arrow = at.ax.annotate(
        "",
        xy=(stop, height),
        xytext=(start, height),
        arrowprops={"arrowstyle": "-|>", "color": rcParams["text.color"], "shrinkA": 0.0}
        | {"shrinkB": 0.0, "linewidth": 1.3},
        zorder=4.5,
    )
    arrow.set_gid(EQUIVALENCE)
    # Towards the head of the arrow and away from b's curve there is nothing to cover.
    near_head = at.axis.place(result.at**0.3 * max(target, 1e-9) ** 0.7)
    below = result._curves[1].error_at(result.at) > height
    text = "never" if math.isinf(factor) else f"{number(factor, 2 if factor < 10 else 3)}×"
    at.ax.annotate(
        safe_text(text),
        xy=(float(near_head), height),
        xytext=(0.0, -4.0 if below else 3.0),
        textcoords="offset points",
        ha="center",
        va="top" if below else "bottom",
        fontsize=9.5,
        zorder=4.6,
        gid=EQUIVALENCE,
        path_effects=[withStroke(linewidth=3.0, foreground=rcParams["axes.facecolor"])],
    )


def _findings(result: CurveComparison) -> list[str]:
    """The numbers behind the marks, each with its interval."""
    a, b = result.a[:40], result.b[:40]
    d, k, c = result.error_difference, result.data_equivalence, result.crossing
    unit = result.unit.suffix
    better = {"a better": f"{a} is better", "b better": f"{b} is better"}
    said = [
        f"At N = {number(result.at)}, {a} minus {b}: {number(d.estimate, 3)}{unit}"
        f" [{number(d.low, 3)}, {number(d.high, 3)}]; {better.get(result.verdict, 'undecided')}."
    ]
    if math.isinf(k.estimate):
        said.append(
            f"Arrow: no amount of data brings {b} to {a}'s level there; the factor is above"
            f" {number(k.low, 3)} with {100 * result.level:.4g}% confidence."
            if math.isfinite(k.low) and k.low > 0
            else f"Arrow: no amount of data brings {b} to {a}'s level there."
        )
    elif not math.isnan(k.estimate):
        said.append(
            f"Arrow: {b} needs {number(k.estimate, 3)}× the data [{number(k.low, 3)},"
            f" {number(k.high, 3)}] to match {a} there."
        )
    if math.isfinite(c.estimate):
        said.append(f"Crossing: n = {number(c.estimate)} [{number(c.low)}, {number(c.high)}].")
    return said
