"""Pictures of a measured transfer: one entrance, several kinds."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from matplotlib.axes import Axes

from curvewise.errors import InputError
from curvewise.plot.style import style
from curvewise.plot.transfer_area import draw_area
from curvewise.plot.transfer_cci import draw_cci
from curvewise.plot.transfer_curves import draw_curves
from curvewise.plot.transfer_equivalence import draw_equivalence
from curvewise.plot.transfer_parts import choose_drawn, one_of
from curvewise.plot.transfer_ranks import draw_ranks
from curvewise.transfer.transfer_result import TransferResult

KINDS: dict[str, Callable[..., Axes]] = {
    "curves": draw_curves,
    "area": draw_area,
    "cci": draw_cci,
    "ranks": draw_ranks,
    "equivalence": draw_equivalence,
}
"""What can be drawn of a measured transfer."""


def plot_transfer(
    result: TransferResult,
    ax: Axes | None = None,
    *,
    kind: str = "curves",
    task: str | Sequence[str] | None = None,
    methods: str | Sequence[str] | None = None,
    highlight: str | Sequence[str] | None = None,
    legend: bool = True,
    caption: bool | None = None,
) -> Axes:
    """Draw methods against training from scratch, a panel for each task.

    Parameters
    ----------
    result : TransferResult
        What to draw.
    ax : Axes, optional
        Where, for one task; a new figure by default.
    kind : {"curves", "area", "cci", "ranks", "equivalence"}
        Calibrated risk against training size, between the controls; calibrated risk against that
        of scratch, with the area that the CCI counts (of the best method, unless ``methods`` or
        ``highlight`` names some); the CCI of each method with its interval; how the ranking
        changes with the size; or how many samples scratch needs to match a method.
    task : str or sequence of str, optional
        Only these.
    methods : str or sequence of str, optional
        Only these; scratch is always there.
    highlight : str or sequence of str, optional
        Methods in colour; the others are grey. By default all are in colour, of more than ten the
        five of highest CCI.
    legend : bool
        Name the methods.
    caption : bool, optional
        Say what is shown under the picture; by default where there is room.

    Returns
    -------
    Axes
        The Axes given, or those of the first panel.

    Examples
    --------
    >>> from curvewise.transfer.measure import measure_transfer
    >>> runs = {
    ...     "method": ["scratch"] * 4 + ["swav"] * 4,
    ...     "n": [100, 100, 1000, 1000] * 2,
    ...     "risk": [0.8, 0.82, 0.5, 0.49, 0.6, 0.61, 0.45, 0.44],
    ... }
    >>> ax = plot_transfer(measure_transfer(runs, blind=0.9, maximal=0.1))
    >>> ax.get_ylabel()
    'calibrated risk'
    """
    one_of("kind", kind, tuple(KINDS))
    with style():
        chosen = choose_drawn(result, task, methods, highlight)
        if not chosen.methods and kind != "curves":
            raise InputError(
                f"kind={kind!r} has nothing to draw: there is no method beside {result.scratch!r}, "
                "which kind='curves' shows."
            )
        return KINDS[kind](result, ax, chosen, legend, caption)
