"""Rows of names: estimates with their intervals (a forest plot), differences of pairs, and tables in colours."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike, NDArray

from curvewise.drawing.axes import is_narrow, view
from curvewise.drawing.labels import safe_names
from curvewise.drawing.marks import draw_estimates, finish, key_dot, note, zero_line
from curvewise.drawing.panels import figure_size, signed
from curvewise.drawing.style import INK, NEUTRAL, OWN, as_percent, canvas
from curvewise.types.results import FloatArray, Unit

CELL = "curvewise-cell"
DIFFERENCE = "curvewise-difference"
FEW = "curvewise-few"
"""Group ids of the artists."""

CLEAREST = 30
"""Differences shown of many."""

CROWD = 9
"""Columns of a table from which numbers are set smaller."""


def rows_of(ax: Axes, names: Sequence[str], room: bool = False) -> float:
    """Write names of rows at the left, the first on top, with room for a legend below; return their width in inches."""
    ax.set_yticks(np.arange(len(names)), labels=list(names))
    ax.set_ylim(len(names) - 0.4 + (0.18 * len(names) if room else 0.0), -0.6)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x", alpha=0.25, linewidth=0.6)
    if len(names) > 15 and ax.get_gid() != OWN:
        ax.tick_params(axis="y", labelsize=7.0)
    elif is_narrow(ax):
        ax.tick_params(axis="y", labelsize=8.0)
    return max(map(len, names), default=0) / 14


def rows_shown(ax: Axes | None, most: int | None, usual: int) -> int:
    """Return the number of rows to draw: as many as asked for, else the usual number, or as fit on the Axes given."""
    if most:
        return max(1, most)
    return usual if ax is None else min(usual, max(3, int(ax.get_position().height * figure_size(ax)[1] / 0.15)))


def draw_rows(
    ax: Axes,
    names: Sequence[str],
    ends: Sequence[ArrayLike],
    shades: str | Sequence[str] = INK,
    *,
    gid: str,
    zero: float | None = None,
    limits: tuple[float, float] | None = None,
    room: bool = False,
    size: float | None = None,
    width: float = 1.5,
) -> float:
    """Draw a row for each estimate with its interval, the first on top.

    Parameters
    ----------
    ax : Axes
        Where.
    names : sequence of str
        Names of the rows in safe text.
    ends : (estimate, low, high)
        Each with a value per row; NaN is not drawn.
    shades : str or sequence of str
        The colour of all rows, or of each.
    gid : str
        Group id of the dots.
    zero : float, optional
        Where nothing differs: a line is drawn there.
    limits : (float, float), optional
        Of the x axis; all estimates, and intervals as far as they leave room for these, by default.
    room : bool
        Leave room for a legend below.
    size, width : float
        Of dots and of bars, in points.

    Returns
    -------
    float
        The width of the names in inches, by which a caption begins further left.
    """
    if zero is not None:
        zero_line(ax, zero)
    estimate, low, high = ends
    limits = limits or view(estimate, low, high, *(() if zero is None else (zero,)))
    size = size or (5.5 if len(names) <= 20 else 4.5)
    draw_estimates(ax, np.arange(len(names)), ends, shades, limits=limits, gid=gid, size=size, width=width)
    ax.set_xlim(*limits)
    return rows_of(ax, names, room)


def clearest(ax: Axes | None, most: int | None, *pvalues: FloatArray, order: FloatArray) -> NDArray[np.int64]:
    """Return the rows of the smallest p-values, as many as there is room for, sorted by ``order``.

    Where the first p-values are tied, as adjusted ones often are at 1, the next ones decide.
    """
    known = [np.where(np.isnan(p), 2.0, p) for p in pvalues]
    kept = np.lexsort(known[::-1])[: rows_shown(ax, most, CLEAREST)]
    chosen: NDArray[np.int64] = kept[np.argsort(order[kept], kind="stable")]
    return chosen


def pair_names(
    ax: Axes | None,
    pairs: Sequence[tuple[str, str]],
    tails: Sequence[str] = (),
    shorten: Callable[[Sequence[str], int], list[str]] = safe_names,
) -> list[str]:
    """Write "a − b" for each pair, and what distinguishes it from other pairs of the same names."""
    narrow = ax is not None and is_narrow(ax)
    every = list(dict.fromkeys(name for pair in pairs for name in pair))
    short = dict(zip(every, shorten(every, 11 if narrow else 20), strict=True))
    kinds = list(dict.fromkeys(tails))
    where = dict(zip(kinds, safe_names(kinds, 10 if narrow else 16), strict=True))
    ends = [f", {where[tail]}" for tail in tails] if len(kinds) > 1 else [""] * len(pairs)
    return [f"{short[a]} − {short[b]}{end}" for (a, b), end in zip(pairs, ends, strict=True)]


def draw_differences(
    ax: Axes | None,
    names: Sequence[str],
    ends: Sequence[ArrayLike],
    significant: Sequence[bool] | NDArray[np.bool_],
    *,
    total: int,
    label: str,
    lines: Sequence[str],
    unit: Unit | None = None,
    legend: bool = True,
    caption: bool | None = None,
) -> Axes:
    """Draw differences with their intervals, those that are not significant in grey.

    Parameters
    ----------
    ax : Axes, optional
        Where; a new figure by default.
    names, ends
        As :func:`draw_rows` takes them.
    significant : sequence of bool
        One for each row.
    total : int
        Number of differences, of which the clearest are drawn.
    label : str
        Of the x axis.
    lines : sequence of str
        Of the caption.
    unit : Unit, optional
        Fractions are written in percent.
    legend, caption : bool
        As every picture takes them.
    """
    with canvas(ax, 2.0 + 0.24 * len(names)) as (ax, own):
        shades = [INK if known else NEUTRAL for known in significant]
        indent = draw_rows(ax, names, ends, shades, zero=0.0, gid=DIFFERENCE)
        ax.set_xlabel(label)
        if unit is not None:
            as_percent(ax.xaxis, unit)
        if len(names) < total:
            few = f"he {len(names)} clearest of {total:,}"
            lines = [f"{lines[0]} T{few} differences.", *lines[1:]]
            if not own:  # a remark above the Axes, as there may be no caption
                place: dict[str, Any] = {"xycoords": "axes fraction", "ha": "right", "va": "bottom", "fontsize": 7.0}
                note(ax, f"t{few}", (1.0, 1.01), gid=FEW, annotation_clip=False, **place)
        key = [(key_dot(INK, line="-"), "significant"), (key_dot(NEUTRAL, line="-"), "not significant")]
        finish(ax, own, key if own else [], lines, legend=legend, caption=caption, columns=2, indent=indent)
    return ax


def draw_cells(
    ax: Axes,
    values: FloatArray,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    best: NDArray[np.bool_] | None = None,
    apart: bool = False,
    unknown: str = "?",
    decimals: int | None = None,
) -> None:
    """Draw a table in colours, a cell for each value, from dark to bright.

    Parameters
    ----------
    ax : Axes
        Where.
    values : ndarray, shape (rows, columns)
        What to draw.
    rows, columns : sequence of str
        Names, in safe text.
    best : ndarray of bool, shape (rows, columns), optional
        Cells whose numbers are bold; by default those with the highest value of their column.
    apart : bool
        Set the last column, an average, apart.
    unknown : str
        Text in the place of NaN.
    decimals : int, optional
        Of the numbers; by default two, of large values one.
    """
    known = values[np.isfinite(values)]
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
    ax.imshow(np.ma.masked_invalid(values), cmap="cividis", vmin=low, vmax=high, aspect="auto", gid=CELL)
    best = highest(values, axis=0) if best is None else best
    if decimals is None:
        decimals = 2 if max(abs(low), abs(high)) <= 1.5 else 1
    small = is_narrow(ax) or values.shape[1] >= CROWD
    for i, j in np.ndindex(*values.shape):
        value = float(values[i, j])
        # Dark text on bright cells, bright text on dark ones.
        share = (value - low) / max(high - low, 1e-12)
        look: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 7.0 if small else 8.5, "gid": CELL}
        look["color"] = "black" if math.isnan(share) or share > 0.55 else "white"
        look["fontweight"] = "bold" if best[i, j] else "normal"
        ax.text(j, i, unknown if math.isnan(value) else signed(value, decimals), **look)
    if apart:
        ax.axvline(len(columns) - 1.5, color="white", linewidth=3.0, label="_line")
    ax.set_yticks(np.arange(len(rows)), labels=list(rows))
    slant: dict[str, Any] = (
        {"rotation": 40, "ha": "right", "rotation_mode": "anchor"} if max(map(len, columns)) > 4 else {}
    )
    ax.set_xticks(np.arange(len(columns)), labels=list(columns), **slant)
    ax.tick_params(length=0, labelsize=7.5 if is_narrow(ax) else 9.0)
    ax.spines[:].set_visible(False)


def highest(values: FloatArray, axis: int | None = None) -> NDArray[np.bool_]:
    """Return a mask of the highest values along an axis, or of all; none where all are unknown."""
    filled = np.where(np.isnan(values), -np.inf, values)
    mask: NDArray[np.bool_] = np.isfinite(filled) & (filled >= filled.max(axis=axis, keepdims=True) - 1e-9)
    return mask
