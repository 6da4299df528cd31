"""How well measures rank checkpoints against what they cost."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from curvewise.plot.checkpoint_labels import place_names
from curvewise.plot.checkpoint_table import SCORE, ScoreTable, points, score_label
from curvewise.plot.style import NEUTRAL, OWN
from curvewise.plot.text import clean, shorten
from curvewise.plot.variance_axes import is_narrow, log_sizes, view
from curvewise.plot.variance_parts import bars, note

BASELINE = "curvewise-baseline"
NAMED = 8
"""Measures that have their names in a small picture."""


def draw_costs(ax: Axes, table: ScoreTable, names: list[str], score: str) -> list[tuple[Any, str]]:
    """The mean against the cost; what costs nothing or nobody knows is a line."""
    on = np.isfinite(table.gflops) & (table.gflops > 0) & np.isfinite(table.mean)
    known = np.isfinite(table.mean)
    limits = view(table.mean[known], table.low[known], table.high[known])
    x, y = table.gflops[on], table.mean[on]
    ax.set_ylim(*limits)
    if len(x):
        room = max(1.2, (x.max() / x.min()) ** 0.15) if x.max() > x.min() else 3.0
        ax.set_xlim(x.min() / room, x.max() * room)
        log_sizes(ax)
    shades = np.array(table.shades)[on]
    for i in range(len(x)):
        bars(ax, x[[i]], table.low[on][[i]], table.high[on][[i]], shades[i], limits=limits)
        points(ax, x[[i]], y[[i]], shades[i], 6.5, SCORE)
    free = np.flatnonzero(~on & known & np.array(table.baseline))
    for i in free.tolist():
        look: dict[str, Any] = {"color": NEUTRAL, "ls": "--", "lw": 1.0, "label": "_baseline"}
        ax.axhline(table.mean[i], gid=BASELINE, **look)
        _name_line(ax, names[i], float(table.mean[i]))
    shown = list(enumerate(names[i] for i in np.flatnonzero(on)))
    small = is_narrow(ax)
    place_names(ax, x, y, shown[:NAMED] if small else shown, size=7.0 if small else 8.0)
    ax.grid(alpha=0.25, linewidth=0.6)
    ax.set_xlabel("GFLOPs apart from the forward pass")
    ax.set_ylabel(score_label(score))
    return []


def _name_line(ax: Axes, name: str, height: float) -> None:
    """Beside our own Axes, or over the line in those of someone else."""
    own = ax.get_gid() == OWN
    look: dict[str, Any] = (
        {"ha": "left", "va": "center"} if own else {"ha": "right", "va": "bottom"}
    )
    look |= {"xycoords": ax.get_yaxis_transform(), "annotation_clip": False}
    at = (1.01 if own else 0.995, height)
    note(ax, name.replace(r"\$", "$"), at, color="#6E6E6E", fontsize=7.5, **look)


def costless(table: ScoreTable) -> list[str]:
    """Which measures have no place on the axis of costs."""
    lost = ~(np.isfinite(table.gflops) & (table.gflops > 0))
    among = [
        name
        for name, gone, plain_one in zip(table.measures, lost, table.baseline, strict=True)
        if gone and not plain_one
    ]
    names = ", ".join(shorten(clean(name), 24) for name in among[:6])
    lines = [f"Cost unknown, not drawn: {names}{' …' if len(among) > 6 else ''}."] if among else []
    if any(gone and b for gone, b in zip(lost, table.baseline, strict=True)):
        lines.append("Dashed: plain baselines, which cost nothing.")
    return lines
