"""Names at the ends of curves, moved apart where they would touch, or a legend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from curvewise.plot.panels import spread_out
from curvewise.plot.style import make_legend
from curvewise.plot.variance_axes import is_narrow

END = "curvewise-end"
SIZES = (8.5, 7.5, 6.5)
"""Of type in points: the first that fits."""


@dataclass(frozen=True)
class End:
    """The end of a curve, and what is written beside it in safe text."""

    x: float
    y: float
    text: str
    shade: str
    back: bool = False
    bold: bool = False


def settle(ax: Axes, own: bool) -> None:
    """Lay out a figure of ours, so that heights are known."""
    figure = ax.get_figure(root=True)
    if own and figure is not None:
        figure.draw_without_rendering()


def name_ends(ax: Axes, ends: Sequence[End], side: str = "right") -> None:
    """Write names beside the Axes at the heights where curves end.

    Where not all fit, those that stand back have none. The limits of the Axes must be final.
    """
    kept = [end for end in ends if np.isfinite(end.y)]
    if not kept:
        return
    tall = ax.get_window_extent().height * 72 / _dpi(ax)
    row = 1.28 * max(end.text.count("\n") + 1 for end in kept)
    size = next((s for s in SIZES if len(kept) * row * s <= tall), SIZES[-1])
    most = max(1, int(tall / (row * size)))
    if len(kept) > most:
        kept = sorted(kept, key=lambda end: (not end.bold, end.back))[:most]
    wanted = ax.transAxes.inverted().transform(
        ax.transData.transform([(end.x, end.y) for end in kept])
    )[:, 1]
    places = spread_out(np.clip(wanted, 0.0, 1.0), min(row * size / tall, 1.0))
    for end, place in zip(kept, places, strict=True):
        _write(ax, end, float(place), size, side)


def _write(ax: Axes, end: End, place: float, size: float, side: str) -> None:
    """One name, with a thin line to the end of its curve."""
    right = side == "right"
    line: dict[str, Any] = {"arrowstyle": "-", "color": end.shade, "linewidth": 0.6}
    line["alpha"] = 0.4 if end.back else 0.7
    ax.annotate(
        end.text,
        xy=(end.x, end.y),
        xytext=(1.03 if right else -0.03, place),
        textcoords="axes fraction",
        va="center",
        ha="left" if right else "right",
        fontsize=size,
        fontweight="bold" if end.bold else "normal",
        color=end.shade,
        annotation_clip=False,
        gid=END,
        arrowprops=line
        | {"shrinkA": 1.0, "shrinkB": 2.0, "relpos": (0.0 if right else 1.0, 0.5), "zorder": 1.0},
    )


def _dpi(ax: Axes) -> float:
    figure = ax.get_figure(root=True)
    return 100.0 if figure is None else float(figure.dpi)


def names_fit(ax: Axes, own: bool) -> bool:
    """Whether names may stand beside the Axes: a layout makes room, and there is some."""
    figure = ax.get_figure(root=True)
    moved = figure is not None and figure.get_layout_engine() is not None
    return own or (moved and not is_narrow(ax))


def legend_inside(ax: Axes, ends: Sequence[End], most: int = 10) -> None:
    """A legend among the data, of those that do not stand back."""
    kept = [end for end in ends if not end.back][:most]
    if not kept:
        return
    handles = [Line2D([], [], color=e.shade, lw=2.2 if e.bold else 1.6) for e in kept]
    box = make_legend(ax, handles, [e.text for e in kept], outside=False)
    small = is_narrow(ax)
    for text in box.get_texts():
        text.set_fontsize(7.0 if small else 8.0)
    box.get_frame().set(alpha=0.85, linewidth=0.0)
