"""Tables in colours, with a number in each cell."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from curvewise.plot.panels import signed
from curvewise.plot.variance_axes import is_narrow
from curvewise.types import FloatArray

CELL = "curvewise-cell"
CROWD = 9
"""Columns from which numbers are set smaller."""


def draw_cells(
    ax: Axes,
    values: FloatArray,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    apart: bool = False,
    bold: str = "column",
    unknown: str = "?",
) -> None:
    """Draw a cell for each value, from dark to bright.

    Parameters
    ----------
    ax : Axes
        Where.
    values : ndarray, shape (rows, columns)
        What to draw.
    rows, columns : sequence of str
        Names, in safe text.
    apart : bool
        Set the last column, an average, apart.
    bold : {"column", "all", "none"}
        Set the best of each column in bold, the best of all, or none.
    unknown : str
        What stands in the place of NaN.
    """
    known = values[np.isfinite(values)]
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
    masked = np.ma.masked_invalid(values)
    ax.imshow(masked, cmap="cividis", vmin=low, vmax=high, aspect="auto", gid=CELL)
    best = _best(values, bold)
    decimals = 2 if max(abs(low), abs(high)) <= 1.5 else 1
    small = is_narrow(ax) or values.shape[1] >= CROWD
    for i, j in np.ndindex(*values.shape):
        value = float(values[i, j])
        share = (value - low) / max(high - low, 1e-12)
        ax.text(
            j,
            i,
            unknown if math.isnan(value) else signed(value, decimals),
            ha="center",
            va="center",
            color="black" if math.isnan(share) or share > 0.55 else "white",
            fontsize=7.0 if small else 8.5,
            fontweight="bold" if best[i, j] else "normal",
            gid=CELL,
        )
    if apart:
        ax.axvline(len(columns) - 1.5, color="white", linewidth=3.0, label="_line")
    ax.set_yticks(np.arange(len(rows)), labels=list(rows))
    slanted = max(map(len, columns)) > 4
    ax.set_xticks(
        np.arange(len(columns)),
        labels=list(columns),
        rotation=40 if slanted else 0,
        ha="right" if slanted else "center",
        rotation_mode="anchor",
    )
    ax.tick_params(length=0, labelsize=7.5 if is_narrow(ax) else 9.0)
    ax.spines[:].set_visible(False)


def _best(values: FloatArray, bold: str) -> NDArray[np.bool_]:
    """Which cells hold the highest value."""
    if bold == "none":
        return np.zeros(values.shape, dtype=bool)
    filled = np.where(np.isnan(values), -np.inf, values)
    top = filled.max(axis=0 if bold == "column" else None, keepdims=True)
    mask: NDArray[np.bool_] = np.isfinite(filled) & (filled >= top - 1e-9)
    return mask
