"""Several panels in one figure, names moved apart, and numbers in labels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib import rcParams
from matplotlib.axes import Axes
from scipy.optimize import isotonic_regression

from curvewise.drawing.labels import clean, safe_text, wrap_lines
from curvewise.drawing.marks import digits
from curvewise.drawing.style import CAPTION, OWN, unsaid, word_shade
from curvewise.text import format_interval
from curvewise.types.results import FloatArray, Interval

END = "curvewise-end"
"""Group id of a name at the end of a line."""


def interval_text(interval: Interval) -> str:
    """Write an estimate with its limits in brackets, in the digits that they support."""
    return format_interval(interval) if math.isfinite(interval.width) else digits(interval.estimate)


def signed(value: float, kept: int = 3) -> str:
    """Write a number with a true minus sign."""
    return "unknown" if math.isnan(value) else f"{value:.{kept}f}".replace("-", "−")


def spread_out(wanted: FloatArray, gap: float) -> FloatArray:
    """Places at least ``gap`` apart, in the same order and as near as can be, above 0.

    >>> spread_out(np.array([0.5, 0.5, 0.9]), 0.1).round(2).tolist()
    [0.45, 0.55, 0.9]
    """
    order = np.argsort(wanted, kind="stable")
    step = gap * np.arange(len(wanted))
    level = isotonic_regression(wanted[order] - step).x
    places = np.empty_like(wanted)
    places[order] = np.clip(level, 0.0, max(1.0 - step[-1], 0.0)) + step
    return places


def end_places(
    ax: Axes, heights: Sequence[float], rows: int = 1, tall: float | None = None
) -> tuple[FloatArray, float]:
    """Return places of names of so many lines at these heights, as shares of the Axes, and the largest move.

    ``tall`` is the height in inches that a layout will leave to the Axes; by default most of a figure of ours, and
    what Axes of someone else have now.
    """
    tall = tall or (0.8 if ax.get_gid() == OWN else ax.get_position().height) * figure_size(ax)[1]
    at = np.column_stack([np.full(len(heights), ax.get_xlim()[0]), heights])
    wanted = (ax.transScale + ax.transLimits).transform(at)[:, 1]
    places = spread_out(wanted, 0.158 * rows / tall)
    return places, float(np.abs(places - wanted).max())


def name_ends(
    ax: Axes,
    ends: Sequence[tuple[float, float]],
    names: Sequence[str],
    shades: Sequence[str],
    tall: float | None = None,
) -> None:
    """Write names right of the Axes at the height where curves end, moved apart where they would touch.

    Parameters
    ----------
    ax : Axes
        With final limits.
    ends : sequence of (float, float)
        The last point of each curve.
    names, shades : sequence of str
        Safe text and colour of each.
    tall : float, optional
        Height in inches that a layout will leave to the Axes; most of the figure's by default.
    """
    rows = max((name.count("\n") + 1 for name in names), default=1)
    places, _ = end_places(ax, [y for _, y in ends], rows, tall)
    for end, name, shade, height in zip(ends, names, shades, places, strict=True):
        write_end(ax, end, name, (1.035, height), shade, fontsize=9.0)


def write_end(
    ax: Axes,
    end: tuple[float, float],
    name: str,
    place: tuple[float, float],
    shade: str,
    line: Mapping[str, Any] | None = None,
    **look: Any,
) -> None:
    """Write a name beside the Axes, at a place in shares of them, with a thin line to the end of its curve."""
    side = place[0] < 0.5
    arrow = {"arrowstyle": "-", "color": shade, "linewidth": 0.6, "alpha": 0.7, "shrinkA": 1.0, "shrinkB": 2.0}
    arrow |= {"relpos": (float(side), 0.5), **(line or {})}
    look |= {"va": "center", "ha": "right" if side else "left", "color": word_shade(shade), "gid": END}
    ax.annotate(name, end, place, textcoords="axes fraction", annotation_clip=False, arrowprops=arrow, **look)


def figure_size(ax: Axes) -> tuple[float, float]:
    """Width and height of the figure in inches; the usual ones for Axes that were taken out of theirs."""
    figure = ax.get_figure(root=True)
    width, height = (6.4, 4.8) if figure is None else figure.get_size_inches()
    return float(width), float(height)


def new_panels(count: int, columns: int, width: float, height: float | Sequence[float], **options: Any) -> list[Axes]:
    """Axes of a new pyplot figure side by side, each of this size in inches; the rest is blank.

    ``height`` may be one for each row of panels.
    """
    import matplotlib.pyplot as plt

    rows = math.ceil(count / columns)
    heights = [height] * rows if isinstance(height, int | float) else list(height)
    figure, grid = plt.subplots(
        rows,
        columns,
        figsize=(width * columns, sum(heights)),
        layout="constrained",
        squeeze=False,
        height_ratios=heights,
        **options,
    )
    axes = list(grid.ravel())
    for ax in axes[count:]:
        figure.delaxes(ax)
    for ax in axes[:count]:
        ax.set_gid(OWN)
    return axes[:count]


def legend_above(ax: Axes, key: Sequence[tuple[Any, str]], title: str | None = None) -> None:
    """One legend over all panels of a figure of ours, in as many columns as fit."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    if not key:
        return
    handles, texts = zip(*key, strict=True)
    room = float(figure.get_size_inches()[0]) / (0.075 * max(map(len, texts)) + 0.55)
    # A label with a leading underscore would be left out, hence numbers first and texts after.
    numbers, columns = [str(i) for i in range(len(key))], max(1, min(len(key), int(room)))
    look: dict[str, Any] = {"loc": "outside upper left", "alignment": "left", "frameon": False, "fontsize": 8.5}
    box = figure.legend(list(handles), numbers, ncols=columns, handlelength=1.2, title=title, **look)
    for artist, text in zip(box.get_texts(), texts, strict=True):
        artist.set_text(safe_text(text, 30))


def write_below(ax: Axes, lines: Iterable[str]) -> None:
    """A caption under all panels of a figure of ours."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    width = int(0.97 * float(figure.get_size_inches()[0]) * 72 / 4.6)
    text = wrap_lines([clean(line) for line in unsaid(lines)], width, 400)
    note = figure.supxlabel(text, x=0.012, ha="left", fontsize=8.5, color=rcParams["text.color"], alpha=0.8)
    note.set_gid(CAPTION)
    note.set_linespacing(1.25)
