"""Answers as intervals on a line: learners ranked, and the size that reaches a target."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from curvewise.learning import LearnerRanking, SamplesToReach
from curvewise.plot.style import colour, new_axes, style, value_label, write_caption
from curvewise.plot.text import clean, safe_names, safe_text, shorten
from curvewise.plot.wording import reach_line
from curvewise.tables import number
from curvewise.types import FloatArray

SHOWN = 40
"""Learners shown of a longer ranking."""

INTERVAL = "curvewise-interval"
CUT = "curvewise-cut"
CHANCE = "curvewise-chance"


def plot_ranking(result: LearnerRanking, ax: Axes | None = None, *, most: int = SHOWN) -> Axes:
    """Draw the ranking as a forest plot, best prediction on top, with the chance of being best.

    Parameters
    ----------
    result : LearnerRanking
        What to draw.
    ax : Axes, optional
        Where; a new figure by default.
    most : int
        Show only this many of the best.
    """
    shown = max(1, min(most, len(result.learners)))
    row = np.arange(float(shown))
    low, error, high = result.low[:shown], result.error[:shown], result.high[:shown]
    with style():
        ax = ax or new_axes(height=1.7 + 0.26 * shown)
        left, right = _limits(low, error, high)
        _intervals(ax, row, low, high, left, right)
        ax.plot(error, row, linestyle="none", marker="o", ms=5.5, color=colour(0), label="_error")
        ax.set_xlim(left, right)
        ax.set_ylim(shown - 0.4, -0.6)
        names = safe_names(result.learners[:shown])
        ax.set_yticks(row, labels=names)
        ax.tick_params(axis="y", length=0)
        ax.grid(axis="x", alpha=0.25, linewidth=0.6)
        ax.set_xlabel(f"{value_label(result.unit)} at n = {number(result.at)}")
        _chances(ax, result.probability_best[:shown])
        write_caption(ax, _ranking_caption(result, shown), indent=max(map(len, names)) / 14)
    return ax


def _limits(low: FloatArray, error: FloatArray, high: FloatArray) -> tuple[float, float]:
    """By the estimates, and by interval ends where those stay within a few spreads of them."""
    known = error[np.isfinite(error)]
    if len(known) == 0:
        return 0.0, 1.0
    ends = np.concatenate([low, high])
    ends = ends[np.isfinite(ends)]
    widths = np.abs(np.concatenate([high - error, error - low]))
    usual = float(np.median(widths[np.isfinite(widths)])) if np.isfinite(widths).any() else 0.0
    span = max(float(np.ptp(known)), 3.0 * usual, 1e-9 + 0.02 * float(np.abs(known).max()))
    ends = np.clip(ends, known.min() - span, known.max() + span)
    left, right = (
        min(known.min(), ends.min(initial=np.inf)),
        max(known.max(), ends.max(initial=-np.inf)),
    )
    pad = 0.05 * max(right - left, 0.1 * span)
    return float(left - pad), float(right + pad)


def _intervals(
    ax: Axes, row: FloatArray, low: FloatArray, high: FloatArray, left: float, right: float
) -> None:
    """Horizontal bars; an arrowhead at the edge where an end lies outside the picture."""
    known = ~(np.isnan(low) | np.isnan(high))
    start, stop = np.maximum(low[known], left), np.minimum(high[known], right)
    at = row[known]
    ax.hlines(at, start, stop, color=colour(0), linewidth=1.6, alpha=0.7, gid=INTERVAL)
    for cut, edge, marker in ((low[known] < left, left, "<"), (high[known] > right, right, ">")):
        if cut.any():
            ax.plot(
                np.full(int(cut.sum()), edge),
                at[cut],
                linestyle="none",
                marker=marker,
                markersize=5.0,
                color=colour(0),
                clip_on=False,
                gid=CUT,
                label="_cut",
            )


def _chances(ax: Axes, chance: FloatArray) -> None:
    """Probability of being best, as a column of text at the right."""
    column = ax.get_yaxis_transform()
    ax.text(1.03, -0.75, "P(best)", transform=column, fontsize=8.5, va="bottom", gid=CHANCE)
    for i, p in enumerate(chance):
        text = "?" if np.isnan(p) else f"{p:.0%}" if p >= 0.005 or p == 0 else "<1%"
        ax.text(1.03, i, text, transform=column, fontsize=9.0, va="center", gid=CHANCE)


def _ranking_caption(result: LearnerRanking, shown: int) -> list[str]:
    lines = [f"Bars: {100 * result.level:.4g}% {result.kind} intervals of the fitted curves."]
    if shown < len(result.learners):
        lines.append(f"The best {shown} of {len(result.learners)} learners are shown.")
    if result.warnings:
        first = shorten(clean(result.warnings[0]), 200)
        more = f" ({len(result.warnings) - 1} more)" if len(result.warnings) > 1 else ""
        lines.append(f"⚠ {first}{more}")
    return lines


def plot_reach(result: SamplesToReach, ax: Axes | None = None) -> Axes:
    """Draw the size that reaches a target, with its interval, on a log scale.

    Parameters
    ----------
    result : SamplesToReach
        What to draw.
    ax : Axes, optional
        Where; a new figure by default. To see it on the curve, use
        ``plot_learning_curves(curve, reach=target)``.
    """
    row = np.zeros(1)
    low, high = np.array([result.low]), np.array([result.high])
    with style():
        ax = ax or new_axes(height=2.3)
        left, right = _size_limits(result)
        ax.set_xscale("log")
        ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        ax.xaxis.set_major_formatter(FuncFormatter(lambda n, _: number(n)))
        ax.xaxis.set_minor_formatter(NullFormatter())
        _intervals(ax, row, low, high, left, right)
        ax.plot([result.estimate], row, linestyle="none", marker="D", color=colour(0), label="_n")
        ax.set_xlim(left, right)
        ax.set_ylim(-1.0, 1.0)
        ax.set_yticks(row, labels=[safe_text(result.learner)])
        ax.tick_params(axis="y", length=0)
        target = f"{number(result.error)}{result.unit.suffix}"
        ax.set_xlabel(safe_text(f"training size n that reaches {target}", 80))
        write_caption(ax, _reach_caption(result), indent=len(safe_text(result.learner)) / 14)
    return ax


def _size_limits(result: SamplesToReach) -> tuple[float, float]:
    known = [n for n in (result.low, result.estimate, result.high) if np.isfinite(n) and n > 0]
    if not known:
        return 1.0, 10.0
    room = 1.5 if max(known) > min(known) else 3.0
    return min(known) / room, max(known) * (room if np.isfinite(result.high) else 4.0)


def _reach_caption(result: SamplesToReach) -> list[str]:
    lines = [f"{reach_line(result)} Bar: {100 * result.level:.4g}% {result.kind} interval."]
    if np.isfinite(result.probability_never):
        lines.append(f"The chance that it is never reached is {result.probability_never:.0%}.")
    return [*lines, *(f"⚠ {w}" for w in result.warnings[:2])]
