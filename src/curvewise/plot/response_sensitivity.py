"""How scores and time depend on the number of batches (figure 3 of the paper)."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from curvewise.errors import InputError
from curvewise.plot.panels import new_panels, write_below
from curvewise.plot.style import NEUTRAL, colour, new_axes, style
from curvewise.plot.text import clean, shorten
from curvewise.plot.variance_axes import log_sizes, spans_decades, thinned
from curvewise.plot.variance_parts import choose, finish, mark_value, warned
from curvewise.response.sensitivity import ResponseSensitivity
from curvewise.types import FloatArray

LINE = "curvewise-line"
BAND = "curvewise-band"
REPEAT = "curvewise-repeat"
EXPECTED = "curvewise-expected"

LABELS = {"gi": "Gi-score", "pal": "Pal-score", "mean_accuracy": "mean accuracy"}
KINDS = ("score", "time", "both")
PAPER = 180
"""Batches that the paper uses."""


def plot_sensitivity(
    result: ResponseSensitivity,
    ax: Axes | None = None,
    *,
    kind: str | None = None,
    score: str = "gi",
    caption: bool | None = None,
) -> Axes:
    """Draw a score with its spread over repeats, and the time, against the number of batches.

    Parameters
    ----------
    result : ResponseSensitivity
        What to draw.
    ax : Axes, optional
        Where; a new figure by default.
    kind : {"both", "score", "time"}, optional
        Both side by side by default; on ``ax`` the score.
    score : {"gi", "pal", "mean_accuracy"}
        Which.
    caption : bool, optional
        Say what is shown under the picture; by default where there is room.

    Returns
    -------
    Axes
        The Axes given, or those of the first panel.
    """
    choose("score", score, tuple(LABELS))
    kind = choose("kind", kind or ("both" if ax is None else "score"), KINDS)
    if kind == "both" and ax is not None:
        raise InputError("kind='both' needs two Axes: leave ax out, or draw one kind on each.")
    timed = bool(np.isfinite(result.seconds).any())
    if kind == "time" and not timed:
        raise InputError("kind='time': the curves do not say how long they took.")
    with style():
        if kind == "both" and timed:
            axes = new_panels(2, 2, 4.3, 3.9)
            _score(axes[0], result, score)
            _time(axes[1], result)
            if caption is not False:
                write_below(axes[0], _caption(result, True))
            return axes[0]
        own = ax is None
        ax = ax or new_axes()
        if kind == "time":
            _time(ax, result)
        else:
            _score(ax, result, score)
        finish(ax, own, [], _caption(result, kind != "time"), caption=caption)
    return ax


def _score(ax: Axes, result: ResponseSensitivity, score: str) -> None:
    """Mean ± standard deviation, the repeats, and what one curve alone expects of the spread."""
    _series(ax, result, result.values[score], colour(0))
    mean = result.mean(score)
    spread = np.sqrt((result.expected[score] ** 2).mean(axis=1))
    for sign in (-1, 1):
        look: dict[str, Any] = {"color": colour(1), "ls": "--", "lw": 1.3, "label": "_expected"}
        ax.plot(result.batches, mean + sign * spread, gid=EXPECTED, **look)
    ax.set_ylabel(LABELS[score])
    ax.set_title(f"{LABELS[score]} ± standard deviation", loc="left")


def _time(ax: Axes, result: ResponseSensitivity) -> None:
    _series(ax, result, result.seconds, colour(2))
    ax.set_ylim(bottom=0.0)
    ax.set_ylabel("seconds")
    ax.set_title("time of a curve", loc="left")


def _series(ax: Axes, result: ResponseSensitivity, values: FloatArray, shade: str) -> None:
    x, mean, spread = result.batches, values.mean(axis=1), values.std(axis=1, ddof=1)
    low, high = mean - spread, mean + spread
    ax.fill_between(x, low, high, color=shade, alpha=0.18, linewidth=0.0, gid=BAND)
    repeated = np.repeat(x, values.shape[1])
    look: dict[str, Any] = {"color": NEUTRAL, "alpha": 0.6, "mew": 0.0, "label": "_repeat"}
    ax.plot(repeated, values.ravel(), "o", ms=2.6, gid=REPEAT, **look)
    ax.plot(x, mean, color=shade, lw=1.8, marker="o", ms=4.5, gid=LINE, label="_mean")
    ax.grid(alpha=0.25, linewidth=0.6)
    ax.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
    if spans_decades(x, 12.0):
        log_sizes(ax, x.tolist())
    else:
        ax.set_xticks(thinned(ax, x.tolist()))
    if x[0] < PAPER <= x[-1]:
        mark_value(ax, PAPER, "as in the paper", bottom=True)
    ax.set_xlabel(f"batches of {result.batch}")


def _caption(result: ResponseSensitivity, scored: bool) -> list[str]:
    who, how = shorten(clean(result.model), 40), shorten(clean(result.perturbation), 30)
    where = "input" if result.layer == "input" else shorten(clean(result.layer), 30)
    said = (
        f"{who} under {how} at the {where}, {result.seconds.shape[1]} repeats on fresh examples "
        "(dots); shaded: ± their standard deviation."
    )
    dashes = ["Dashed: ± the standard error that a single curve tells of itself."]
    return [said, *(dashes if scored else []), *warned(result)]
