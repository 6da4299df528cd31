"""Calibrated risk against training size, between the controls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from curvewise.plot.style import OWN
from curvewise.plot.transfer_axes import (
    control_lines,
    interval_bars,
    outer_labels,
    share_limits,
    size_axis,
    size_limits,
)
from curvewise.plot.transfer_labels import End, legend_inside, name_ends, names_fit, settle
from curvewise.plot.transfer_parts import (
    Chosen,
    Look,
    name_tasks,
    panels_of,
    shifts,
    warned,
    write_words,
)
from curvewise.transfer.transfer_result import RiskCurve, TransferResult
from curvewise.types import FloatArray

RISK = "curvewise-risk"
BAND = "curvewise-band"
MOST_BANDS = 4
"""Coloured curves whose intervals are bands; those of more are bars."""

Y_LABEL = "calibrated risk"
X_LABEL = "training size $n$"


def draw_curves(
    result: TransferResult, ax: Axes | None, chosen: Chosen, legend: bool, caption: bool | None
) -> Axes:
    """A panel for each task: all methods between a blind guess and maximal supervision."""
    own = ax is None
    axes = panels_of(ax, chosen.tasks)
    groups = [curves_of(result, task, chosen) for task in chosen.tasks]
    few = sum(not chosen.looks[m].back for m in chosen.methods) <= MOST_BANDS
    limits = size_limits([_sizes(curves) for curves in groups])
    for panel, task, curves, span in zip(axes, chosen.tasks, groups, limits, strict=True):
        maximal = result.maximal.get(task)
        assumed = maximal is not None and maximal.assumed
        control_lines(panel, maximal="maximal supervision" + " (assumed)" * assumed)
        aside = shifts(chosen, [c.method for c in curves])
        for curve in curves:
            look, scratch = chosen.looks[curve.method], curve.method == result.scratch
            draw_risk(panel, curve, look, None if few else aside.get(curve.method), scratch)
        size_axis(panel, _sizes(curves), span)
    low, high = _limits([curve for curves in groups for curve in curves], chosen)
    share_limits(axes, low, high)
    name_tasks(axes, chosen.tasks)
    outer_labels(axes, X_LABEL, Y_LABEL)
    write_words(axes, own, _caption(result, chosen, groups, few, (low, high)), caption)
    if legend:
        named = [[c for c in curves if chosen.named(c.method)] for curves in groups]
        ends = [[end_of(c, chosen.looks[c.method], result) for c in curves] for curves in named]
        write_names(axes, ends)
    return axes[0]


def curves_of(result: TransferResult, task: str, chosen: Chosen) -> list[RiskCurve]:
    """The curves of a task in the order of drawing, scratch on top."""
    found = {c.method: c for c in result.curves if c.task == task}
    order = [*chosen.back_first, result.scratch]
    return [found[m] for m in order if m in found]


def draw_risk(ax: Axes, curve: RiskCurve, look: Look, shift: float | None, scratch: bool) -> None:
    """One curve with dots at its sizes, and the intervals of its means.

    They are a band, or bars shifted by so many points. A method that stands back has none.
    """
    known = np.isfinite(curve.calibrated)
    n, risk, low, high = (v[known] for v in (curve.n, curve.calibrated, curve.low, curve.high))
    z = 2.6 if scratch else (1.5 if look.back else 2.0)
    if not look.back:
        if shift is None and np.isfinite(low + high).all() and len(n) > 1:
            band: dict[str, Any] = {"color": look.shade, "alpha": 0.16, "linewidth": 0.0}
            ax.fill_between(n, low, high, zorder=z - 0.5, gid=BAND, **band)
        else:
            interval_bars(ax, n, low, high, look.shade, shift or 0.0, z - 0.1)
    width = 2.4 if scratch else (1.0 if look.back else 1.6)
    dots: dict[str, Any] = {"marker": "o", "ms": 4.5 if scratch else 3.4, "mew": 0.0}
    ax.plot(n, risk, color=look.shade, lw=width, zorder=z, gid=RISK, label="_risk", **dots)


def end_of(curve: RiskCurve, look: Look, result: TransferResult) -> End:
    """Where the name of a curve belongs: at its largest size."""
    known = np.flatnonzero(np.isfinite(curve.calibrated))
    x, y = (curve.n[known[-1]], curve.calibrated[known[-1]]) if len(known) else (1.0, np.nan)
    scratch = curve.method == result.scratch
    return End(float(x), float(y), look.name, look.ink, look.back, scratch)


def write_names(axes: Sequence[Axes], ends: Sequence[Sequence[End]]) -> None:
    """Names beside the panels, or a legend where there is no room."""
    own = axes[0].get_gid() == OWN
    settle(axes[0], own)
    for ax, named in zip(axes, ends, strict=True):
        if names_fit(ax, own):
            name_ends(ax, named)
        else:
            legend_inside(ax, named[::-1])


def _sizes(curves: Sequence[RiskCurve]) -> FloatArray:
    return np.unique(np.concatenate([c.n for c in curves])) if curves else np.array([])


def _limits(curves: Sequence[RiskCurve], chosen: Chosen) -> tuple[float, float]:
    """Of calibrated risk: all means and both controls, and a little more for intervals."""
    front = [c for c in curves if not chosen.looks[c.method].back]
    means = [0.0, 1.0, *(v for c in curves for v in c.calibrated.tolist() if np.isfinite(v))]
    ends = np.array([v for c in front for v in (*c.low, *c.high) if np.isfinite(v)])
    low, high = min(means), max(means)
    room = 0.15 * (high - low)
    ends = np.clip(ends, low - room, high + room)
    low, high = min([low, *ends.tolist()]), max([high, *ends.tolist()])
    pad = 0.03 * (high - low)
    # The name of the blind guess stands above its line.
    return low - pad, max(high + pad, 1.0 + 0.07 * (high - low))


def _caption(
    result: TransferResult,
    chosen: Chosen,
    groups: Sequence[Sequence[RiskCurve]],
    bands: bool,
    limits: tuple[float, float],
) -> list[str]:
    said = "Calibrated risk: 1 is a blind guess, 0 maximal supervision."
    front = [c for curves in groups for c in curves if not chosen.looks[c.method].back]
    ends = [v for c in front for v in (*c.low, *c.high) if np.isfinite(v)]
    if ends:
        said += f" {'Bands' if bands else 'Bars'}: {100 * result.level:.4g}% intervals of the mean"
        cut = min(ends) < limits[0] or max(ends) > limits[1]
        said += "; some run out of the picture." if cut else "."
    return [said, chosen.note, *warned(result)]
