"""What pictures of curves share: who gets which colour, the scales, the legend."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.legend import Legend
from matplotlib.lines import Line2D

from curvewise.learning.base import Curve
from curvewise.plot import layers
from curvewise.plot.layers import Look, Picture
from curvewise.plot.sizes import finish_values
from curvewise.plot.style import NEUTRAL, PALETTE, colour, make_legend, value_label

CROWD = 10
"""With more curves than this only the best and the worst are named and coloured."""

NAMED_IN_CROWD = 3
"""How many of the best and of the worst."""


def looks_of(
    curves: Sequence[Curve], at: float | None, start: int, flagged: Sequence[bool]
) -> list[Look]:
    """Colours in order; in a crowd only for the best and the worst at N."""
    if len(curves) <= CROWD:
        return [Look(colour(start + i), flag) for i, flag in enumerate(flagged)]
    sign = -1.0 if curves[0].unit.name == "score" else 1.0
    order = np.argsort([sign * c.error_at(at) for c in curves], kind="stable")
    named = [*order[:NAMED_IN_CROWD].tolist(), *order[-NAMED_IN_CROWD:].tolist()]
    place = {i: colour(k) for k, i in enumerate(named)}
    return [
        Look(place.get(i, NEUTRAL), flag and i in place, True, i in place)
        for i, flag in enumerate(flagged)
    ]


def finish_axes(picture: Picture, curves: Sequence[Curve], log_values: bool = True) -> None:
    """Scales, limits and ticks, by all that is on the Axes.

    With ``log_values``, the log scale of sizes brings a log scale of errors, where all are above 0.
    """
    ax, unit = picture.ax, curves[0].unit
    points = layers.points_of(ax, layers.MEASURED, layers.HELD_OUT)
    targets = layers.heights_of(layers.lines_of(ax, layers.REACH))
    measured = np.concatenate([points[:, 1], targets])
    lines = layers.lines_of(ax, layers.NAMED, layers.UNNAMED, layers.BEYOND)
    log = log_values and picture.axis.name == "log" and unit.name != "score"
    log = log and bool((measured > 0).all())
    floor = 0.0 if unit.name != "score" and bool((measured >= 0).all()) else -math.inf
    ends = np.clip(layers.bar_ends(ax), floor, unit.top)
    measured = np.concatenate([measured, ends[ends > 0.5 * measured.min()] if log else ends])
    finish_values(ax, measured, layers.heights_of(lines), unit.top, floor, log)
    ax.set_ylabel(value_label(unit))
    sizes = picture.axis.size(points[:, 0])
    marks = picture.axis.size(
        [float(np.asarray(m.get_xdata())[0]) for m in layers.lines_of(ax, layers.LIMIT)]
    )
    picture.axis.finish(ax, np.concatenate([sizes, marks]), picture.low, picture.high)


def curve_legend(ax: Axes, own: bool, curves: int) -> Legend:
    """A legend of the named curves on the Axes; in a crowd, how many more there are."""
    named = layers.lines_of(ax, layers.NAMED)
    if curves > CROWD:
        named.sort(key=lambda line: PALETTE.index(str(line.get_color())))  # best first
    handles = [
        Line2D(
            [],
            [],
            color=line.get_color(),
            linestyle=line.get_linestyle(),
            linewidth=line.get_linewidth(),
            marker="o",
            markersize=4.5,
        )
        for line in named
    ]
    labels = [str(line.get_label()) for line in named]
    if curves > CROWD:
        handles.append(Line2D([], [], color=NEUTRAL, linewidth=0.8))
        labels.append(f"{curves - len(named)} more; the {NAMED_IN_CROWD} best and worst are named")
    return make_legend(ax, handles, labels, outside=own)
