"""Pictures into files, for programs without a display."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def save_picture(draw: Callable[[], Axes], path: Path) -> None:
    """Let ``draw`` make Axes, save their figure and close it.

    Switches matplotlib to a backend that needs no display, so it is for commands, not notebooks.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    ax = draw()
    figure = ax.get_figure(root=True)
    if figure is not None:
        figure.savefig(path, dpi=200, bbox_inches="tight")
        pyplot.close(figure)
