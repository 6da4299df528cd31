"""Pictures of comparisons and predictions: two laws, two searches, accuracy on a task."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from curvewise.drawing.axes import is_narrow, log_sizes, view
from curvewise.drawing.labels import safe_names
from curvewise.drawing.marks import bars, finish, mark_value, note, warned
from curvewise.drawing.panels import name_ends
from curvewise.drawing.style import INK, NEUTRAL, as_percent, colour, colours_of, pale
from curvewise.errors import quietly
from curvewise.scaling.compare import ScalingComparison
from curvewise.scaling.downstream import DownstreamPrediction
from curvewise.scaling.optimum import short
from curvewise.scaling.plot.axes import log_axis, scaling_canvas, span_of
from curvewise.scaling.tuned import ExpectedBest, TunedComparison, expected_best
from curvewise.text import format_interval
from curvewise.types.results import FloatArray, Unit

RUN = "curvewise-run"
PATH = "curvewise-optimal-path"
RATIO = "curvewise-ratio"
BEST = "curvewise-expected-best"
CROSSING = "curvewise-crossing"
SIGMOID = "curvewise-sigmoid"
PREDICTED = "curvewise-predicted"
"""Group ids of the artists."""

GRID = 120
"""Points of a curve."""


def plot_scaling_comparison(
    result: ScalingComparison, ax: Axes | None = None, *, legend: bool = True, caption: bool | None = None
) -> Axes:
    """Draw the losses of two families by compute, with the best loss that each reaches with a budget.

    Parameters
    ----------
    result : ScalingComparison
        The result to draw.
    ax : Axes, optional
        Axes to draw on; a new figure by default.
    legend : bool
        Say what is what.
    caption : bool, optional
        Say what was found under the picture; by default where there is room.
    """
    shades = colours_of((result.a, result.b))
    names = safe_names((result.a, result.b), 40)
    with scaling_canvas(ax, 4.6) as (ax, own):
        span = span_of(*(runs.compute for runs in result._runs))
        log_axis(ax.xaxis, *span, flops=True)
        c = np.geomspace(*span, GRID)
        key: list[tuple[Any, str]] = []
        best = []
        for k, (runs, shade) in enumerate(zip(result._runs, shades, strict=True)):
            look: dict[str, Any] = {"ls": "none", "marker": "os"[k], "ms": 4.0, "alpha": 0.7, "mew": 0}
            ax.plot(runs.compute, runs.loss, color=shade, gid=RUN, label="_runs", **look)
            best.append(_best_loss({name: pair[k] for name, pair in result._joint.items()}, c))
            (line,) = ax.plot(c, best[-1], color=shade, lw=2, gid=PATH, label="_path")
            key.append((line, f"{names[k]}: runs, and the best loss of a budget"))
        every = np.concatenate([runs.loss for runs in result._runs])
        low, high = min(every.min(), *map(np.min, best)), float(np.quantile(every, 0.98))
        ax.set_ylim(low - 0.04 * (high - low), high + 0.04 * (high - low))
        _ratio_arrow(ax, result, c, best)
        ax.set(xlabel="compute (FLOP)", ylabel="loss")
        finish(ax, own, key, [result.sentences(), *warned(result)], legend=legend, caption=caption)
    return ax


def _best_loss(law: dict[str, float], c: FloatArray) -> FloatArray:
    """Return the loss of the compute-optimal model of each budget: where α A/N^α = β B/D^β."""
    alpha, beta = law["alpha"], law["beta"]
    total = c / 6
    n = (alpha * law["A"] / (beta * law["B"])) ** (1 / (alpha + beta)) * total ** (beta / (alpha + beta))
    return np.asarray(law["E"] + law["A"] / n**alpha + law["B"] / (total / n) ** beta)


def _ratio_arrow(ax: Axes, result: ScalingComparison, c: FloatArray, best: list[FloatArray]) -> None:
    """Draw an arrow from the compute of a to that of b at one loss, with the ratio."""
    ratio = result.efficiency
    at = result.at or float(np.exp(np.log(c).mean()))
    loss = float(np.interp(at, c, best[0]))
    if not 0.02 < ratio.estimate < 50 or abs(np.log(ratio.estimate)) < 0.05:
        return
    arrow = {"arrowstyle": "-|>", "color": INK, "lw": 1.4, "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", (at * ratio.estimate, loss), (at, loss), arrowprops=arrow, gid=RATIO, zorder=4)
    estimate, _, rest = format_interval(ratio).partition(" ")
    text = f"{estimate}× {rest} the compute".replace("  ", " ")
    # Left of both curves there are no runs.
    place = {"xytext": (-6, 0), "textcoords": "offset points", "ha": "right", "va": "center"}
    note(ax, text, (at * min(ratio.estimate, 1.0), loss), color=INK, **place)


def plot_expected_best(
    result: ExpectedBest, ax: Axes | None = None, *, legend: bool = True, caption: bool | None = None
) -> Axes:
    """Draw the expected best score by the number of trials, with its interval.

    Parameters
    ----------
    result : ExpectedBest
        The result to draw.
    ax : Axes, optional
        Axes to draw on; a new figure by default.
    legend : bool
        Say what is what.
    caption : bool, optional
        Say what was found under the picture; by default where there is room.
    """
    with scaling_canvas(ax, 4.2) as (ax, own):
        line = _best_curve(ax, result, colour(0))
        _trial_axis(ax, max(result.budget))
        ax.set_ylabel(_score_label(result))
        key = [(line, f"{safe_names([result.name], 40)[0]}, {result.level:.0%} intervals")]
        finish(ax, own, key, [result.sentences(), *warned(result)], legend=legend, caption=caption)
    return ax


def _best_curve(ax: Axes, found: ExpectedBest, shade: str) -> Line2D:
    k = np.array(found.budget)
    few = len(k) < 12
    if few:
        limits = view(found.expected, found.low, found.high)
        bars(ax, k, found.low, found.high, shade, limits=limits)
    else:
        ax.fill_between(k, found.low, found.high, color=pale(shade), alpha=0.55, lw=0)
    (line,) = ax.plot(k, found.expected, "o-" if few else "-", color=shade, lw=2, ms=5, gid=BEST, label="_best")
    return line


def _trial_axis(ax: Axes, most: int) -> None:
    ax.set_xlim(0.9, 1.1 * most)
    usual = [m * 10**e for e in range(7) for m in (1, 2, 5)]
    log_sizes(ax, [k for k in usual if k <= 1.1 * most])
    ax.set_xlabel("trials of random search")


def _score_label(found: ExpectedBest) -> str:
    (name,) = safe_names([found.metric or "score"], 30)
    return f"expected {'highest' if found.higher_is_better else 'lowest'} {name}"


def plot_tuned(
    result: TunedComparison, ax: Axes | None = None, *, legend: bool = True, caption: bool | None = None
) -> Axes:
    """Draw the expected best of two learners by the number of trials, with their crossing.

    Parameters
    ----------
    result : TunedComparison
        The result to draw.
    ax : Axes, optional
        Axes to draw on; a new figure by default.
    legend : bool
        Say what is what.
    caption : bool, optional
        Say what was found under the picture; by default where there is room.
    """
    shades, names = colours_of((result.a, result.b)), safe_names((result.a, result.b), 40)
    with scaling_canvas(ax, 4.6) as (ax, own):
        key: list[tuple[Any, str]] = []
        for trials, shade, name in zip(result._trials, shades, names, strict=True):
            most = len(trials)
            grid = np.unique(np.geomspace(1, most, 40).round().astype(int))
            with quietly():
                found = expected_best(trials, grid, best_possible=result._best_possible, level=result.level)
            key.append((_best_curve(ax, found, shade), f"{name} ({most} trials)"))
        _trial_axis(ax, max(result.counts))
        ax.set_ylabel(_score_label(found))
        if np.isfinite(result.crossing.estimate):
            low, high = result.crossing.low, min(result.crossing.high, ax.get_xlim()[1])
            ax.axvspan(low, high, color=NEUTRAL, alpha=0.14, lw=0, zorder=0.2, gid=CROSSING)
            where = format_interval(result.crossing, write=lambda v: "∞" if np.isinf(v) else f"{v:.0f}")
            mark_value(ax, result.crossing.estimate, f"crossing: k = {where}", bottom=True, gid=CROSSING)
        lines = [result.sentences(), f"Bands: {result.level:.0%} intervals, each budget for itself.", *warned(result)]
        finish(ax, own, key, lines, legend=legend, caption=caption, columns=2)
    return ax


def plot_downstream(
    result: DownstreamPrediction, ax: Axes | None = None, *, legend: bool = True, caption: bool | None = None
) -> Axes:
    """Draw accuracy by the loss of the task: the runs, the fitted curve, and the predicted models.

    Parameters
    ----------
    result : DownstreamPrediction
        The result to draw.
    ax : Axes, optional
        Axes to draw on; a new figure by default.
    legend : bool
        Say what is what.
    caption : bool, optional
        Say what was found under the picture; by default where there is room.
    """
    rows = {k: np.asarray(v) for k, v in result.columns().items()}
    loss, accuracy = result._measured.T
    with scaling_canvas(ax, 4.4) as (ax, own):
        s = result.sigmoid
        every = np.concatenate([loss, rows["loss"], rows["loss_low"], rows["loss_high"]])
        ends = view(every, every, every)
        x = np.linspace(*ends, GRID)
        curve = s["low"] + (s["top"] - s["low"]) / (1 + np.exp(s["slope"] * (x - s["middle"])))
        (line,) = ax.plot(x, curve, color=NEUTRAL, lw=1.6, gid=SIGMOID, label="_curve", zorder=1.5)
        look: dict[str, Any] = {"ls": "none", "marker": "o", "ms": 5, "color": colour(0), "mew": 0}
        (dots,) = ax.plot(loss, accuracy, gid=RUN, label="_runs", **look)
        inside = np.concatenate([accuracy, rows["accuracy"]])
        low, high = view(inside, np.full_like(inside, rows["low"].min()), np.full_like(inside, rows["high"].max()))
        low, high = max(low, -0.02), min(high, 1.02)
        bars(ax, rows["loss"], rows["low"], rows["high"], colour(1), limits=(low, high), width=2)
        bars(ax, rows["accuracy"], rows["loss_low"], rows["loss_high"], colour(1), limits=ends, horizontal=True)
        (new,) = ax.plot(rows["loss"], rows["accuracy"], "D", color=colour(1), ms=7, gid=PREDICTED, label="_new")
        if result.chance is not None:
            ax.axhline(result.chance, color=NEUTRAL, lw=0.9, ls=":", label="_chance")
        # A lower loss is a better model: it stands at the right, as more compute does elsewhere.
        ax.set(xlim=ends[::-1], ylim=(low, high), xlabel="loss of the task", ylabel="accuracy (%)")
        ax.yaxis.set_major_locator(MaxNLocator(6))
        as_percent(ax.yaxis, Unit("fraction"))
        if not is_narrow(ax):
            names = [f"{short(n)} on {short(d)}" for n, d in zip(rows["params"], rows["tokens"], strict=True)]
            name_ends(ax, list(zip(rows["loss"], rows["accuracy"], strict=True)), names, [colour(1)] * len(names))
        key: list[tuple[Any, str]] = [
            (dots, f"runs ({result.count})"),
            (line, "fitted curve"),
            (new, f"predicted, {result.level:.0%} prediction intervals"),
        ]
        finish(ax, own, key, [result.sentences(), *warned(result)], legend=legend, caption=caption, columns=3)
    return ax
