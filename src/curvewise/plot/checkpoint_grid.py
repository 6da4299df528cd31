"""NLEEP's agreement with fine-tuning over its two settings (figure 2 of the paper)."""

from __future__ import annotations

from matplotlib.axes import Axes

from curvewise.errors import InputError
from curvewise.plot.checkpoint_heat import draw_cells
from curvewise.plot.style import new_axes, style
from curvewise.plot.text import clean, shorten
from curvewise.plot.variance_parts import finish, warned
from curvewise.ranking.grid import NleepGrid


def plot_nleep_grid(
    result: NleepGrid,
    ax: Axes | None = None,
    *,
    task: str | None = None,
    caption: bool | None = None,
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
        raise InputError(f"task={task!r} is not in the grid: use {there}.")
    values = result.mean if task is None else result.kendall[result.tasks.index(task)]
    rows = [f"{energy:.0%}" for energy in reversed(result.energies)]
    columns = [f"{count}×" for count in result.components]
    with style():
        own = ax is None
        ax = ax or new_axes(max(4.2, 1.5 + 0.6 * len(columns)), 1.7 + 0.36 * len(rows))
        draw_cells(ax, values[::-1], rows, columns, bold="all")
        ax.set_xlabel("Gaussians, times the number of classes")
        ax.set_ylabel("PCA energy")
        finish(ax, own, [], _caption(result, task), caption=caption, indent=0.6)
    return ax


def _caption(result: NleepGrid, task: str | None) -> list[str]:
    count = len(result.tasks)
    where = f"mean over {count} tasks" if count > 1 else shorten(clean(result.tasks[0]), 40)
    if task is not None:
        where = shorten(clean(task), 40)
    return [f"Kendall's τ-b of NLEEP with accuracy, {where}. Bold: the best.", *warned(result)]
