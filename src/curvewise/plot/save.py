"""Pictures into files."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def save_picture(draw: Callable[[], Axes], path: Path) -> None:
    """Let ``draw`` make Axes, save their figure and close it.

    Switches matplotlib to a backend that needs no display, so it is for commands, not notebooks.
    """
    use_no_display()
    save_figure(draw, path)


def use_no_display() -> None:
    """Switch matplotlib to a backend that needs no display: for commands, not notebooks.

    A ``matplotlibrc`` in the current folder is not followed: it may have come with a study of
    someone else's, and can have LaTeX run on text of its own.
    """
    import matplotlib

    if Path(matplotlib.matplotlib_fname()).resolve() == Path("matplotlibrc").resolve():
        matplotlib.rcdefaults()
    matplotlib.use("Agg")


def save_figure(draw: Callable[[], Axes], path: Path) -> None:
    """Let ``draw`` make Axes, save their figure and close it.

    Texts stay texts, so that they can be found and changed in SVG and PDF.
    """
    _save(draw, path, dpi=200)


def svg_text(draw: Callable[[], Axes]) -> str:
    """Let ``draw`` make Axes, and give their figure as the text of an SVG file."""
    stream = io.StringIO()
    _save(draw, stream, format="svg", metadata={"Date": None, "Creator": None})
    return stream.getvalue()


def _save(draw: Callable[[], Axes], place: Any, **options: Any) -> None:
    from matplotlib import pyplot, rc_context

    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "curvewise", "pdf.fonttype": 42}):
        ax = draw()
        figure = ax.get_figure(root=True)
        if figure is not None:
            figure.savefig(place, bbox_inches="tight", **options)
            pyplot.close(figure)
