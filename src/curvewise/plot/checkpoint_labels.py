"""Names beside dots, each where it covers the fewest dots and names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from curvewise.plot.variance_parts import note
from curvewise.types import FloatArray

NAME = "curvewise-name"

_SIDES = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1))
_ALIGN: dict[int, tuple[str, str]] = {
    1: ("left", "bottom"),
    0: ("center", "center"),
    -1: ("right", "top"),
}


def place_names(
    ax: Axes,
    x: FloatArray,
    y: FloatArray,
    names: Sequence[tuple[int, str]],
    *,
    size: float = 8.0,
) -> None:
    """Write names beside some of the dots; those that come first choose first.

    Parameters
    ----------
    ax : Axes
        With final limits.
    x, y : ndarray
        All dots, which names should not cover.
    names : sequence of (int, str)
        The number of a dot and its name, in safe text.
    size : float
        Of type, in points.
    """
    figure = ax.get_figure(root=True)
    assert figure is not None
    scale = 72.0 / figure.dpi
    dots = ax.transData.transform(np.column_stack([x, y])) * scale
    frame = np.array([ax.bbox.x0, ax.bbox.y0, ax.bbox.x1, ax.bbox.y1]) * scale
    taken: list[FloatArray] = []
    for dot, text in names:
        if not np.isfinite(dots[dot]).all():
            continue
        wide, tall = 0.62 * size * len(text.replace(r"\$", "$")), 1.35 * size
        tries = [
            (reach, side, _box(dots[dot], side, reach, wide, tall))
            for reach in (6.0, 15.0)
            for side in _SIDES
        ]
        reach, side, box = min(tries, key=lambda t: _cost(t[2], t[0], dots, taken, frame))
        taken.append(box)
        _write(ax, text, (float(x[dot]), float(y[dot])), side, reach, size)


def _box(dot: FloatArray, side: tuple[int, int], reach: float, wide: float, tall: float) -> Any:
    """Left, bottom, right and top of a name, in points."""
    along = 0.75 if all(side) else 1.0
    left = dot[0] + along * reach * side[0] + wide * {1: 0.0, 0: -0.5, -1: -1.0}[side[0]]
    low = dot[1] + along * reach * side[1] + tall * {1: 0.0, 0: -0.5, -1: -1.0}[side[1]]
    return np.array([left, low, left + wide, low + tall])


def _cost(
    box: FloatArray, reach: float, dots: FloatArray, taken: Sequence[FloatArray], frame: FloatArray
) -> float:
    inside = (dots >= box[:2] - 3.0).all(axis=1) & (dots <= box[2:] + 3.0).all(axis=1)
    hidden = sum(_shared(box, other) for other in taken)
    outside = np.maximum(frame[:2] - box[:2], 0).sum() + np.maximum(box[2:] - frame[2:], 0).sum()
    return float(inside.sum() + hidden / 20.0 + outside / 5.0 + reach / 40.0)


def _shared(a: FloatArray, b: FloatArray) -> float:
    """Area that two boxes have in common."""
    sides = np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2])
    return float(np.prod(np.maximum(sides, 0.0)))


def _write(
    ax: Axes,
    text: str,
    at: tuple[float, float],
    side: tuple[int, int],
    reach: float,
    size: float,
) -> None:
    along = 0.75 if all(side) else 1.0
    line = {"arrowstyle": "-", "lw": 0.5, "color": "#6E6E6E", "shrinkB": 3.0, "shrinkA": 0.0}
    note(
        ax,
        text.replace(r"\$", "$"),
        at,
        xytext=(along * reach * side[0], along * reach * side[1]),
        textcoords="offset points",
        ha=_ALIGN[side[0]][0],
        va=_ALIGN[side[1]][1],
        fontsize=size,
        gid=NAME,
        arrowprops=line if reach > 10 else None,
    )
