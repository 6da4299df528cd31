"""What pictures of response curves share: lines with bands, labels at their ends, panels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from curvewise.errors import InputError
from curvewise.plot.panels import spread_out
from curvewise.plot.style import NEUTRAL
from curvewise.plot.text import clean, escape, safe_names, safe_text
from curvewise.plot.variance_axes import is_narrow, width_of
from curvewise.response import ResponseCurve
from curvewise.types import FloatArray

RESPONSE = "curvewise-response"
BAND = "curvewise-band"
END = "curvewise-end"
"""Group ids of curves, of their intervals, and of the names at their ends."""

POINTS = 40
"""Magnitudes up to which each gets a dot."""


def check_curves(curves: Any) -> list[ResponseCurve]:
    """Curves as a list: from one, several, or a dict of them."""
    if isinstance(curves, Mapping):
        curves = list(curves.values())
    found = [curves] if isinstance(curves, ResponseCurve) else list(curves)
    for curve in found:
        if not isinstance(curve, ResponseCurve):
            raise InputError(
                f"curves holds a {type(curve).__name__}: give response curves, as made by "
                "cw.measure_response or ResponseCurve.from_counts."
            )
    if not found:
        raise InputError("curves is empty: give at least one response curve.")
    return found


def names_of(curves: Any, found: Sequence[ResponseCurve], longest: int = 32) -> list[str]:
    """The keys of a dict; else what tells the curves apart: model, perturbation or layer."""
    if isinstance(curves, Mapping):
        return safe_names(map(str, curves), longest)
    parts = [(c.model, c.perturbation, c.layer) for c in found]
    kept = [k for k in range(3) if len({p[k] for p in parts}) > 1] or [0]
    return safe_names([", ".join(p[k] for k in kept) for p in parts], longest)


def share_unit(curves: Sequence[ResponseCurve]) -> bool:
    """Whether the magnitudes of all curves mean the same."""
    return len({(c.perturbation, c.unit) for c in curves}) == 1


def magnitude_label(curve: ResponseCurve, ax: Axes, room: float | None = None) -> str:
    """Label of the axis of magnitudes: which perturbation, of what, in which unit.

    ``room`` is the width of the Axes in inches, where a layout will change it.
    """
    most = int(13 * (room or width_of(ax)))
    where = "" if curve.layer == "input" else f" at {curve.where}"
    name = safe_text(f"{curve.perturbation}{where}", min(most, 40))
    unit = f" ({clean(curve.unit)})" if curve.unit else ""
    return f"{name}{escape(unit)}" if len(name) + len(unit) <= most else name


def draw_response(
    ax: Axes,
    curve: ResponseCurve,
    shade: str,
    *,
    level: float | None = 0.95,
    ls: Any = "-",
    width: float = 1.8,
    alpha: float = 0.18,
    dots: bool = True,
    scaled: bool = False,
) -> Line2D:
    """Accuracy in percent at each magnitude, with its interval unless the level is None.

    ``scaled`` brings magnitudes to their share of the range.
    """
    x = scale(curve.magnitude) if scaled else curve.magnitude
    if level is not None:
        low, high = curve.accuracy_interval(level)
        ax.fill_between(x, 100 * low, 100 * high, color=shade, alpha=alpha, linewidth=0.0, gid=BAND)
    (line,) = ax.plot(
        x,
        100 * curve.accuracy,
        color=shade,
        linestyle=ls,
        linewidth=width,
        marker="o" if dots and len(x) <= POINTS else "",
        markersize=3.2,
        gid=RESPONSE,
        label="_response",
    )
    return line


def scale(magnitude: FloatArray) -> FloatArray:
    """Magnitudes by the largest distance from 0: signs stay."""
    share: FloatArray = magnitude / np.abs(magnitude).max()
    return share


def accuracy_axis(ax: Axes, whole: bool = False) -> None:
    """Accuracies from 0 to 100%, or those that occur where all are high."""
    drawn = [np.asarray(line.get_ydata()) for line in ax.lines if line.get_gid() == RESPONSE]
    lowest = float(np.nanmin(np.concatenate(drawn)))
    bottom = 0.0 if whole or lowest < 60 else max(0.0, lowest - 0.12 * (100 - lowest) - 0.5)
    ax.set_ylim(bottom, 100 + 0.03 * (100 - bottom))
    ax.set_ylabel("accuracy (%)")
    ax.grid(alpha=0.25, linewidth=0.6)


def magnitude_axis(ax: Axes, magnitude: FloatArray) -> None:
    """The range measured, with a little room; degrees in steps that people know."""
    low, high = float(magnitude.min()), float(magnitude.max())
    pad = 0.02 * (high - low)
    ax.set_xlim(low - pad, high + pad)
    if high - low >= 180 and high <= 360:
        step = 90 if is_narrow(ax) or high - low > 240 else 45
        ax.set_xticks(np.arange(math.ceil(low / step), math.floor(high / step) + 1) * step)


def percent(value: float) -> str:
    """A share in percent, to one decimal."""
    return "unknown" if math.isnan(value) else f"{100 * value:.1f}%"


def end_places(ax: Axes, heights: Sequence[float]) -> tuple[FloatArray, float]:
    """Where names stand that belong to these heights, as shares of the Axes; the largest move."""
    figure = ax.get_figure(root=True)
    tall = 4.4 if figure is None else float(figure.get_size_inches()[1])
    low, high = ax.get_ylim()
    wanted = (np.asarray(heights, dtype=np.float64) - low) / (high - low)
    places = spread_out(wanted, 0.158 / (0.8 * tall))
    return places, float(np.abs(places - wanted).max())


def name_ends(
    ax: Axes, ends: Sequence[tuple[float, float]], names: Sequence[str], shades: Sequence[str]
) -> None:
    """Names right of the Axes at the height where curves end, moved apart where they would touch.

    Parameters
    ----------
    ax : Axes
        With final limits.
    ends : sequence of (float, float)
        The last point of each curve.
    names, shades : sequence of str
        Safe text and colour of each.
    """
    places, _ = end_places(ax, [y for _, y in ends])
    for end, name, shade, place in zip(ends, names, shades, places, strict=True):
        ax.annotate(
            name,
            xy=end,
            xytext=(1.035, place),
            textcoords="axes fraction",
            va="center",
            ha="left",
            fontsize=8.5,
            color=shade,
            annotation_clip=False,
            gid=END,
            arrowprops={"arrowstyle": "-", "color": shade, "linewidth": 0.6, "alpha": 0.7}
            | {"shrinkA": 1.0, "shrinkB": 2.0, "relpos": (0.0, 0.5)},
        )


def make_room(ax: Axes, rows: int) -> None:
    """Room for a legend of so many small rows above 100%, without ticks there."""
    figure = ax.get_figure(root=True)
    tall = 4.8 if figure is None else float(figure.get_size_inches()[1])
    share = min(0.6, (0.15 * rows + 0.1) / (ax.get_position().height * tall))
    low, high = ax.get_ylim()
    ticks = [t for t in ax.get_yticks() if low <= t <= high]
    ax.set_ylim(low, low + (high - low) / (1 - share))
    ax.set_yticks(ticks)


def reference(ax: Axes, value: float, **look: Any) -> Line2D:
    """A thin horizontal line at a value in percent."""
    given: dict[str, Any] = {"color": NEUTRAL, "linewidth": 0.9, "zorder": 0.8} | look
    return ax.axhline(value, label="_reference", **given)
