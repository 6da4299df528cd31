"""NLEEP's agreement with fine-tuning over its two settings (figure 2 of the paper)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from curvewise.drawing.axes import is_narrow
from curvewise.drawing.labels import clean, shorten
from curvewise.drawing.marks import finish, warned
from curvewise.drawing.panels import signed
from curvewise.drawing.style import new_axes, style
from curvewise.errors import InputError
from curvewise.ranking.grid import NleepGrid
from curvewise.types.units import FloatArray


def plot_nleep_grid(
    result: NleepGrid, ax: Axes | None = None, *, task: str | None = None, caption: bool | None = None
) -> Axes:
    """Draw Kendall's τ-b by PCA energy and number of components as a table in colours.

    Parameters
    ----------
    result : NleepGrid
        What to draw.
    ax : Axes, optional
        Where; a new figure by default.
    task : str, optional
        One of them; their mean by default.
    caption : bool, optional
        Say what is shown under the picture; by default where there is room.

    Returns
    -------
    Axes
        The Axes given, or the new ones.

    Examples
    --------
    >>> import numpy as np
    >>> kendall = np.array([[[0.5, 0.6], [0.7, 0.4]]])
    >>> found = NleepGrid((0.7, 0.8), (1, 5), ("pets",), kendall, {})
    >>> [name.get_text() for name in plot_nleep_grid(found).get_yticklabels()]
    ['80%', '70%']
    """
    if task is not None and task not in result.tasks:
        there = ", ".join(map(repr, result.tasks))
        raise InputError(f"not in the grid: use {there}.", argument="task", value=task)
    values = result.mean if task is None else result.kendall[result.tasks.index(task)]
    rows = [f"{energy:.0%}" for energy in reversed(result.energies)]
    columns = [f"{count}×" for count in result.components]
    with style():
        own = ax is None
        ax = ax or new_axes(max(4.2, 1.5 + 0.6 * len(columns)), 1.7 + 0.36 * len(rows))
        draw_cells(ax, values[::-1], rows, columns, bold="all")
        ax.set_xlabel("Gaussians, times the number of classes")
        ax.set_ylabel("PCA energy")
        where = f"mean over {len(result.tasks)} tasks"
        if task is not None or len(result.tasks) == 1:
            where = shorten(clean(task or result.tasks[0]), 40)
        line = f"Kendall's τ-b of NLEEP with accuracy, {where}. Bold: the best."
        finish(ax, own, [], [line, *warned(result)], caption=caption, indent=0.6)
    return ax


CELL = "curvewise-cell"
# Columns from which numbers are set smaller.
CROWD = 9


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
    """Return a mask of the cells that hold the highest value."""
    if bold == "none":
        return np.zeros(values.shape, dtype=bool)
    filled = np.where(np.isnan(values), -np.inf, values)
    top = filled.max(axis=0 if bold == "column" else None, keepdims=True)
    mask: NDArray[np.bool_] = np.isfinite(filled) & (filled >= top - 1e-9)
    return mask
