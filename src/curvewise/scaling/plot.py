"""Pictures of scaling: contours and sizes of a law, isoFLOPs, backtests, plans, two families, two searches, tasks."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import LinearSegmentedColormap, to_hex
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from curvewise.drawing.axes import is_narrow, log_sizes, view, width_of
from curvewise.drawing.labels import safe_names, safe_text
from curvewise.drawing.marks import bars, choose, diagonal, finish, key_dot, mark_value, note, warned, zero_line
from curvewise.drawing.panels import figure_size, name_ends
from curvewise.drawing.rows import rows_of
from curvewise.drawing.style import INK, NEUTRAL, as_percent, canvas, colour, colours_of, pale
from curvewise.errors import InputError, arg, quietly
from curvewise.scaling.compare import ScalingComparison
from curvewise.scaling.downstream import DownstreamPrediction
from curvewise.scaling.forms import FORMS
from curvewise.scaling.isoflops import IsoflopFit, budget_groups
from curvewise.scaling.law import Backtest, ScalingLaw, write_fitted
from curvewise.scaling.optimum import ComputeOptimal, Sensitivity, short
from curvewise.scaling.plan import ScalingPlan
from curvewise.scaling.tuned import ExpectedBest, TunedComparison, expected_best
from curvewise.text import format_count, format_interval, format_level, format_number
from curvewise.types.results import FloatArray, Unit

Key = list[tuple[Any, str]]

RUN = "curvewise-run"
CONTOUR = "curvewise-contour"
PATH = "curvewise-optimal-path"
BAND = "curvewise-optimal-band"
BUDGET = "curvewise-budget"
PARABOLA = "curvewise-parabola"
MINIMUM = "curvewise-minimum"
HELD_OUT = "curvewise-held-out"
RESIDUAL = "curvewise-residual"
WINDOW = "curvewise-window"
PLANNED = "curvewise-planned"
RATIO = "curvewise-ratio"
BEST = "curvewise-expected-best"
CROSSING = "curvewise-crossing"
SIGMOID = "curvewise-sigmoid"
PREDICTED = "curvewise-predicted"
"""Group ids of the artists."""

AHEAD = 10.0
"""Factor of compute beyond the largest run up to which contours are drawn, unless budgets reach further."""
GREY = "#737373"
"""Of lines of equal loss."""
GRID = 80
"""Points of a curve, and of a grid along each axis."""
FEW = 4
"""Budgets that are drawn one by one."""


def plot_scaling_law(
    law: ScalingLaw,
    ax: Axes | None = None,
    *,
    what: str = "contours",
    budget: Any = None,
    level: float = 0.95,
    legend: bool = True,
    caption: bool | None = None,
) -> Axes:
    """Draw a scaling law.

    Parameters
    ----------
    law : ScalingLaw
        The law to draw.
    ax : Axes, optional
        Axes to draw on; a new figure by default.
    what : {"contours", "residuals", "sizes"}
        Contours of equal loss by compute and parameters with the runs and the compute-optimal path; residuals of the
        runs by compute; or the loss by model size at each budget, with the sizes within 0.1% of the best.
    budget : float or list of float, optional
        Budgets in FLOP to mark; needed for "sizes".
    level : float
        Coverage of intervals.
    legend : bool
        Say what is what.
    caption : bool, optional
        Say what was found under the picture; by default where there is room.
    """
    choose("what", what, ("contours", "residuals", "sizes"))
    budgets = np.array([]) if budget is None else np.sort(np.atleast_1d(np.asarray(budget, dtype=np.float64)))
    if what == "residuals":
        return _residuals(law, ax, legend, caption)
    if what == "sizes":
        if not len(budgets):
            raise InputError(f"{arg('budget')} is needed: at which compute?", argument="")
        with quietly():
            best_sizes = law.compute_optimal(budgets, level=level)
        return plot_optimum(best_sizes, ax, what=what, legend=legend, caption=caption)
    runs = law.runs
    low, high = span_of(runs.compute)
    reach = max(high * AHEAD / 1.25, *(1.6 * budgets), 0.0)
    c = np.geomspace(low, reach, GRID)
    with quietly():
        best = law.compute_optimal(c, level=level).columns()
    ends = span_of(runs.params, best["params"], room=1.6)
    with canvas(ax, 4.8) as (ax, own):
        log_axis(ax.xaxis, low, reach, flops=True)
        log_axis(ax.yaxis, *ends)
        n = np.geomspace(*ends, GRID)
        grid = law.loss_at(np.repeat(n, GRID), np.tile(c, GRID) / 6 / np.repeat(n, GRID)).reshape(GRID, GRID)
        _contours(ax, c, n, grid, np.asarray(best["loss"]))
        dots = _runs(ax, runs.compute, runs.params, runs.flagged)
        ax.fill_between(c, best["params_low"], best["params_high"], color=pale(colour(1)), alpha=0.55, lw=0, gid=BAND)
        (line,) = ax.plot(c, best["params"], color=colour(1), lw=2.0, zorder=2.6, gid=PATH, label="_path")
        ax.axvline(float(runs.compute.max()), color=NEUTRAL, lw=0.9, ls=":", zorder=1, label="_largest")
        key: Key = [(dots, f"runs ({len(runs)})"), (line, f"compute-optimal, {format_level(level)} band")]
        # In the key, since a text at its place would hide runs.
        key += [_mark_budget(ax, law, float(b), level) for b in budgets]
        key.append((Line2D([], [], color=GREY, lw=1.0), "equal loss"))
        ax.set(xlabel="compute (FLOP)", ylabel="parameters")
        exponent = write_fitted(law.interval("exponent", level=level))
        said = (
            f"N* ∝ C^{exponent}; the loss along the path falls from {best['loss'][0]:.2f} to "
            f"{best['loss'][-1]:.2f}. Dotted: the largest run; right of it the law extrapolates."
        )
        lines = _with_powers([said, *warned(law)])
        finish(ax, own, key, lines, legend=legend, caption=caption, columns=3 if own else 1)
    return ax


def _contours(ax: Axes, c: FloatArray, n: FloatArray, grid: FloatArray, best: FloatArray) -> None:
    """Draw lines of equal loss, even in what the best model of a budget reaches, and write the loss on them."""
    levels = np.unique(np.interp(np.linspace(0, 1, 11)[1:-1], np.linspace(0, 1, len(best)), best).round(3))
    levels = levels[(levels > grid.min()) & (levels < grid.max())]
    if not len(levels):
        return
    lines = ax.contour(c, n, grid, levels=levels, colors=GREY, linewidths=0.8, alpha=0.75, zorder=1.4)
    lines.set_gid(CONTOUR)
    digits = 2 if len({f"{v:.2f}" for v in levels}) == len(levels) else 3
    ax.clabel(lines, fmt=lambda v: f"{v:.{digits}f}", fontsize=8.0, inline_spacing=2)


def _runs(ax: Axes, x: FloatArray, y: FloatArray, flagged: Any, shade: str | None = None) -> Line2D:
    """Draw a dot for each run, hollow where it is flagged as an outlier."""
    kept = np.ones(len(x), dtype=np.bool_) if flagged is None else ~flagged
    size, shade = 4.5 if len(x) <= 60 else 3.0, shade or colour(0)
    look: dict[str, Any] = {"ls": "none", "marker": "o", "ms": size, "gid": RUN, "label": "_runs", "zorder": 2.2}
    (dots,) = ax.plot(x[kept], y[kept], color=shade, alpha=0.75, mew=0, **look)
    if not kept.all():
        ax.plot(x[~kept], y[~kept], color=shade, mfc="none", mew=0.8, **look)
    return dots


def _mark_budget(ax: Axes, law: ScalingLaw, budget: float, level: float) -> tuple[Line2D, str]:
    """Draw the optimum of a budget; return it with the size for the key."""
    with quietly():
        best = law.compute_optimal(budget, level=level)
    bars(ax, [budget], [best.params.low], [best.params.high], INK, limits=ax.get_ylim(), width=1.8)
    look: dict[str, Any] = {"color": INK, "ms": 6, "zorder": 3.2, "gid": BUDGET, "label": "_budget"}
    (mark,) = ax.plot([budget], [best.params.estimate], "D", **look)
    return mark, f"{write_flops(budget)}: {short(best.params.estimate)} on {short(best.tokens.estimate)} tokens"


def _residuals(law: ScalingLaw, ax: Axes | None, legend: bool, caption: bool | None) -> Axes:
    runs = law.runs
    off = 100 * (runs.loss / law.loss_at(runs.params, runs.tokens, runs.unique_tokens) - 1)
    with canvas(ax, 4.0) as (ax, own):
        zero_line(ax, horizontal=True)
        sizes, key = np.unique(runs.params), []
        parts = np.array_split(sizes, min(len(sizes), 5))
        for part, shade in zip(parts, graded(len(parts)), strict=True):
            rows = (runs.params >= part[0]) & (runs.params <= part[-1])
            look: dict[str, Any] = {"color": shade, "ls": "none", "marker": "o", "alpha": 0.8, "mew": 0}
            ax.plot(runs.compute[rows], off[rows], ms=4.0, gid=RESIDUAL, label="_runs", **look)
            name = short(part[0]) if len(part) == 1 else f"{short(part[0])} to {short(part[-1])}"
            key.append((key_dot(shade, size=6.0), name))
        # One diverged run must not flatten all others: it is shown at the edge, with its number.
        reach = 1.3 * float(np.quantile(np.abs(off), 0.98)) + 1e-6
        ax.set_ylim(max(-reach, 1.08 * off.min()) if off.min() < 0 else -reach, min(reach, 1.08 * max(off.max(), 1e-6)))
        _edge(ax, runs.compute, off)
        log_axis(ax.xaxis, *span_of(runs.compute), flops=True)
        ax.set(xlabel="compute (FLOP)", ylabel="measured over fitted loss (%)")
        ax.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:+.3g}".replace("-", "−") if v else "0"))
        spread = 1.4826 * float(np.median(np.abs(off)))
        said = f"Robust standard deviation {spread:.2g}%. Colours: number of parameters."
        lines = _with_powers([said, *warned(law)])
        finish(ax, own, key, lines, legend=legend, caption=caption, columns=3 if own else 1)
    return ax


def _edge(ax: Axes, x: FloatArray, y: FloatArray) -> None:
    """Show points beyond the limits as arrowheads at the edge."""
    low, high = ax.get_ylim()
    for rows, edge, marker in ((y > high, high, "^"), (y < low, low, "v")):
        if rows.any():
            ax.plot(x[rows], np.full(int(rows.sum()), edge), marker, color=INK, ms=5, clip_on=False, label="_beyond")


def plot_optimum(
    result: ComputeOptimal,
    ax: Axes | None = None,
    *,
    what: str | None = None,
    legend: bool = True,
    caption: bool | None = None,
) -> Axes:
    """Draw the compute-optimal model of one or more budgets.

    Parameters
    ----------
    result : ComputeOptimal
        The result to draw.
    ax : Axes, optional
        Axes to draw on; a new figure by default.
    what : {"sizes", "path"}, optional
        The loss by model size at each budget; or parameters and tokens by budget, with their intervals. By default
        sizes for up to four budgets of a law.
    legend : bool
        Say what is what.
    caption : bool, optional
        Say what was found under the picture; by default where there is room.
    """
    few = len(np.atleast_1d(result.budget)) <= FEW and result._forecast is not None
    what = choose("what", what or ("sizes" if few else "path"), ("sizes", "path"))
    if what == "sizes" and result._forecast is None:
        raise InputError(f"{arg('what', what)} needs a law: isoFLOP fits predict no losses.")
    with canvas(ax, 4.2) as (ax, own):
        key = _sizes(ax, result) if what == "sizes" else _path(ax, result)
        said = (
            f"Bars: {format_level(result.level)} intervals of the best size. Thick: sizes within 0.1% of the best loss."
        )
        lines = [said if what == "sizes" else f"{format_level(result.level)} intervals.", *warned(result)]
        finish(ax, own, key, _with_powers(lines), legend=legend, caption=caption, columns=1 if what == "sizes" else 2)
    return ax


def _sizes(ax: Axes, result: ComputeOptimal) -> Key:
    """Draw loss by model size at each budget; return the key."""
    rows = {k: np.asarray(v) for k, v in result.columns().items()}
    key: Key = []
    limits = span_of(rows["params_range_low"], rows["params_range_high"], rows["params"], room=2.5)
    shades = graded(len(rows["budget"])) if len(rows["budget"]) > 1 else [colour(0)]
    for k in np.argsort(rows["budget"]):
        shade, c, best, loss = shades[len(key)], *(float(rows[name][k]) for name in ("budget", "params", "loss"))
        left, right = (float(rows[f"params_range_{side}"][k]) for side in ("low", "high"))
        n = np.geomspace(left / 2.2, right * 2.2, GRID)
        (line,) = ax.plot(n, result.loss_by_size(c, n), color=shade, lw=2, gid=PARABOLA, label="_sizes")
        near = np.geomspace(left, right, GRID)
        wide: dict[str, Any] = {"color": pale(shade), "lw": 8, "solid_capstyle": "butt", "zorder": 1.5}
        ax.plot(near, result.loss_by_size(c, near), gid=BAND, label="_near", **wide)
        ax.plot([best], [loss], "D", color=shade, ms=6, gid=MINIMUM, label="_best", zorder=3)
        low, high = (float(rows[f"params_{side}"][k]) for side in ("low", "high"))
        bars(ax, [loss], [low], [high], shade, limits=limits, horizontal=True)
        tokens = short(float(rows["tokens"][k]))
        key.append((line, f"{write_flops(c)} FLOP: {short(best)} parameters on {tokens} tokens"))
    log_axis(ax.xaxis, *limits)
    ax.set(xlabel="parameters", ylabel="expected loss")
    return key


def _path(ax: Axes, result: ComputeOptimal) -> Key:
    """Draw parameters and tokens by budget; return the key."""
    rows = {k: np.asarray(v) for k, v in result.columns().items()}
    order = np.argsort(rows["budget"])
    c = rows["budget"][order]
    key: Key = []
    ends = [rows[f"{name}{side}"] for name in ("params", "tokens") for side in ("", "_low", "_high")]
    limits = span_of(*ends, room=1.5)
    log_axis(ax.xaxis, *span_of(c, room=1.6), flops=True)
    log_axis(ax.yaxis, *limits)
    for shade, name in zip((colour(0), colour(1)), ("params", "tokens"), strict=True):
        low, high = (np.clip(rows[f"{name}_{side}"][order], *limits) for side in ("low", "high"))
        if len(c) > FEW:
            ax.fill_between(c, low, high, color=pale(shade), lw=0, alpha=0.7, gid=BAND)
        else:
            bars(ax, c, low, high, shade, limits=limits)
        mark = "-" if len(c) > FEW else "o-"
        (line,) = ax.plot(c, rows[name][order], mark, color=shade, lw=1.8, gid=PATH, label=f"_{name}")
        key.append((line, "parameters" if name == "params" else "tokens"))
    ax.set(xlabel="compute (FLOP)", ylabel="compute-optimal parameters and tokens")
    return key


def plot_isoflops(
    result: IsoflopFit, ax: Axes | None = None, *, legend: bool = True, caption: bool | None = None
) -> Axes:
    """Draw loss by model size at each budget, the parabolas and their minima.

    Parameters
    ----------
    result : IsoflopFit
        The result to draw.
    ax : Axes, optional
        Axes to draw on; a new figure by default.
    legend : bool
        Say what is what.
    caption : bool, optional
        Say what was found under the picture; by default where there is room.
    """
    runs = result.runs
    groups = budget_groups(runs, result._budgets)
    place = {float(c): k for k, c in enumerate(result.budget)}
    shades = graded(len(result.budget))
    with canvas(ax, 5.0) as (ax, own):
        span = span_of(runs.params)
        ends = []
        for c, rows in groups:
            k = place.get(c)
            shade = NEUTRAL if k is None else shades[k]
            n, loss = runs.params[rows], runs.loss[rows]
            _runs(ax, n, loss, None if runs.flagged is None else runs.flagged[rows], shade)
            if k is None:
                continue
            x = np.geomspace(n.min(), n.max(), GRID)
            y = result.optimum_loss[k] + result.curvature[k] * np.log(x / result.optimum[k]) ** 2
            ax.plot(x, y, color=shade, lw=1.4, gid=PARABOLA, label="_parabola")
            ends.append(((float(x[-1]), float(y[-1])), write_flops(float(f"{c:.2g}")), shade))
        wide = np.exp(np.nan_to_num(result.optimum_std))
        ax.hlines(result.optimum_loss, result.optimum / wide, result.optimum * wide, colors=shades, lw=1.5, zorder=3)
        for at, loss, shade in zip(result.optimum, result.optimum_loss, shades, strict=True):
            ax.plot([at], [loss], "D", color=shade, mec="white", mew=0.7, ms=7, zorder=3.5, gid=MINIMUM, label="_best")
        ax.plot(result.optimum, result.optimum_loss, color=NEUTRAL, lw=1.0, ls="--", zorder=1.5, label="_path")
        log_axis(ax.xaxis, *span)
        # Nearly all losses are shown; those far above the others would flatten the rest.
        low, high = float(runs.loss.min()), float(np.quantile(runs.loss, 0.97))
        high = float(runs.loss.max()) if runs.loss.max() - low < 1.6 * (high - low) else high
        pad = 0.05 * (high - low)
        ax.set(xlabel="parameters", ylabel="loss", ylim=(low - pad, high + pad))
        if not is_narrow(ax):
            name_ends(ax, [end for end, _, _ in ends], [name for _, name, _ in ends], [tone for _, _, tone in ends])
        key = [(key_dot(INK, "D", 6.0), "minimum of a budget (bars: standard error)")]
        if runs.flagged is not None and runs.flagged.any():
            key.append((key_dot(INK, size=6.0, mfc="none"), "flagged as outlier"))
        if result.dropped:
            key.append((key_dot(NEUTRAL, size=6.0), "budget without a minimum"))
        lines = _with_powers([result.sentences(), *warned(result)])
        finish(ax, own, key, lines, legend=legend, caption=caption, columns=2 if own else 1)
    return ax


def plot_backtest(
    result: Backtest, ax: Axes | None = None, *, legend: bool = True, caption: bool | None = None
) -> Axes:
    """Draw the predicted losses of the runs that were held out against the measured ones, with prediction bands.

    Parameters
    ----------
    result : Backtest
        The result to draw.
    ax : Axes, optional
        Axes to draw on; a new figure by default.
    legend : bool
        Say what is what.
    caption : bool, optional
        Say what was found under the picture; by default where there is room.
    """
    inside = (result.loss >= result.low) & (result.loss <= result.high)
    with canvas(ax, 5.4, 6.2) as (ax, own):
        every = np.stack([result.loss, result.predicted, result.published])
        low, high = view(every, np.tile(result.low, (3, 1)), np.tile(result.high, (3, 1)))
        diagonal(ax, low, high)
        width = 1.4 if len(inside) <= 40 else 0.8
        for rows, shade in ((inside, colour(0)), (~inside, colour(1))):
            x = result.loss[rows]
            bars(ax, x, result.low[rows], result.high[rows], pale(shade), limits=(low, high), width=width)
            look: dict[str, Any] = {"ls": "none", "marker": "o", "ms": 4.5, "color": shade, "zorder": 3, "mew": 0}
            ax.plot(x, result.predicted[rows], gid=HELD_OUT, label="_held", **look)
        same = np.allclose(result.predicted, result.published, rtol=1e-9)
        if not same:
            ax.plot(result.loss, result.published, "x", color=NEUTRAL, ms=4, mew=0.9, zorder=2.5, label="_published")
        ax.set(xlim=(low, high), ylim=(low, high), xlabel="measured loss", ylabel="predicted loss")
        ax.set_aspect("equal")
        key = [
            (key_dot(colour(0), size=6.0), f"in the {format_level(result.level)} band ({inside.sum()})"),
            (key_dot(colour(1), size=6.0), f"outside ({(~inside).sum()})"),
        ]
        if not same:
            key.append((key_dot(NEUTRAL, "x", 6.0), "published method"))
        lines = [result.sentences(), *warned(result)]
        finish(ax, own, key, lines, legend=legend, caption=caption, columns=3 if own else 1)
    return ax


def plot_scaling_sensitivity(result: Sensitivity, ax: Axes | None = None, *, caption: bool | None = None) -> Axes:
    """Draw the optimal tokens per parameter of each fitting window, beside the interval of the fit to all rows.

    Parameters
    ----------
    result : Sensitivity
        The result to draw.
    ax : Axes, optional
        Axes to draw on; a new figure by default.
    caption : bool, optional
        Say what was found under the picture; by default where there is room.
    """
    ratio = np.asarray(result.tokens_per_param)
    with canvas(ax, 1.9 + 0.34 * len(ratio)) as (ax, own):
        known = [v for v in (result.interval.low, result.interval.high) if np.isfinite(v) and v > 0]
        limits = span_of(ratio, known, room=1.35)
        log_axis(ax.xaxis, *limits)
        if len(known) == 2:
            ax.axvspan(*known, color=pale(colour(0)), alpha=0.5, lw=0, zorder=0.5, gid=BAND)
        for i, (name, value) in enumerate(zip(result.window, ratio, strict=True)):
            if not np.isfinite(value):
                continue
            shade = colour(1) if name in result.outside else colour(0)
            ax.plot([value], [i], "o", color=shade, ms=7, gid=WINDOW, label="_window", zorder=3)
            note(ax, f"{value:.3g}", (value, i), xytext=(8, 0), textcoords="offset points", va="center", color=shade)
        rows_of(ax, [safe_text(f"{w} ({n})", 60) for w, n in zip(result.window, result.rows, strict=True)])
        ax.set_xlabel(f"tokens per parameter at {write_flops(result.budget)} FLOP")
        band = format_interval(result.interval, write=short)
        said = f"Band: {format_level(result.interval.level)} interval by all rows, {band}. Rows fitted in brackets."
        if result.outside:
            said += f" {format_count(len(result.outside), 'window')} outside it (orange)."
        finish(ax, own, [], _with_powers([said, *warned(result)]), caption=caption, indent=2.3)
    return ax


def plot_scaling_plan(
    result: ScalingPlan,
    ax: Axes | None = None,
    *,
    law: ScalingLaw | None = None,
    legend: bool = True,
    caption: bool | None = None,
) -> Axes:
    """Draw the runs to train next by compute and parameters, beside those at hand.

    Parameters
    ----------
    result : ScalingPlan
        The result to draw.
    ax : Axes, optional
        Axes to draw on; a new figure by default.
    law : ScalingLaw, optional
        The law that the plan is for: its runs and its compute-optimal path are drawn, too.
    legend : bool
        Say what is what.
    caption : bool, optional
        Say what was found under the picture; by default where there is room.
    """
    n, d = np.array(result.params), np.array(result.tokens)
    with canvas(ax, 4.4) as (ax, own):
        key: Key = []
        old = (np.array([]), np.array([])) if law is None else (law.runs.compute, law.runs.params)
        span, ends = span_of(6 * n * d, old[0], room=1.8), span_of(n, old[1], room=1.8)
        log_axis(ax.xaxis, *span, flops=True)
        log_axis(ax.yaxis, *ends)
        if law is not None:
            c = np.geomspace(*span, GRID)
            with quietly():
                best = law.compute_optimal(c, level=result.level).columns()
            (line,) = ax.plot(c, best["params"], color=NEUTRAL, lw=1.4, gid=PATH, label="_path", zorder=1.5)
            key = [(_runs(ax, old[0], old[1], law.runs.flagged), "runs at hand"), (line, "compute-optimal")]
        (new,) = ax.plot(6 * n * d, n, "D", color=colour(1), mec="white", ms=8, gid=PLANNED, label="_new", zorder=3)
        for (size, tokens), count in result.repeats().items():
            if count > 1:
                right = 6 * size * tokens > np.sqrt(np.prod(ax.get_xlim()))
                place = {"xytext": (-8 if right else 8, 0), "ha": "right" if right else "left", "va": "center"}
                at = (6 * size * tokens, size)
                note(ax, f"{count} times", at, textcoords="offset points", color=colour(1), **place)
        key.append((new, f"to train ({len(n)})"))
        ax.set(xlabel="compute (FLOP)", ylabel="parameters")
        lines = _with_powers([result.sentences(), *warned(result)])
        finish(ax, own, key, lines, legend=legend, caption=caption, columns=3)
    return ax


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
    with canvas(ax, 4.6) as (ax, own):
        span = span_of(*(runs.compute for runs in result._runs))
        log_axis(ax.xaxis, *span, flops=True)
        c, law = np.geomspace(*span, GRID), FORMS[result.form](0.0, 0.0)
        key: Key = []
        best: list[FloatArray] = []
        for k, (runs, shade) in enumerate(zip(result._runs, shades, strict=True)):
            look: dict[str, Any] = {"ls": "none", "marker": "os"[k], "ms": 4.0, "alpha": 0.7, "mew": 0}
            ax.plot(runs.compute, runs.loss, color=shade, gid=RUN, label="_runs", **look)
            theta = law.private({name: pair[k] for name, pair in result._joint.items()})
            best.append(law.lowest(np.tile(theta, (len(c), 1)), np.log(c))[1])
            (line,) = ax.plot(c, best[-1], color=shade, lw=2, gid=PATH, label="_path")
            key.append((line, f"{names[k]}: runs, and the best loss of a budget"))
        every = np.concatenate([runs.loss for runs in result._runs])
        low, high = min(every.min(), *map(np.min, best)), float(np.quantile(every, 0.98))
        ax.set_ylim(low - 0.04 * (high - low), high + 0.04 * (high - low))
        _ratio_arrow(ax, result, c, best)
        ax.set(xlabel="compute (FLOP)", ylabel="loss")
        finish(ax, own, key, _with_powers([result.sentences(), *warned(result)]), legend=legend, caption=caption)
    return ax


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
    # Left of both curves there are no runs; on two lines, as there is not much room either.
    left = (at * min(ratio.estimate, 1.0), loss)
    for text, down, va in ((f"{estimate}× the compute", 1.0, "bottom"), (rest, -2.0, "top")):
        note(ax, text, left, color=INK, xytext=(-6.0, down), textcoords="offset points", ha="right", va=va)


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
    with canvas(ax, 4.2) as (ax, own):
        line = _best_curve(ax, result, colour(0))
        _trial_axis(ax, max(result.budget))
        ax.set_ylabel(_score_label(result))
        key = [(line, f"{safe_names([result.name], 40)[0]}, {format_level(result.level)} intervals")]
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
    usual = range(1, 11) if most <= 10 else [m * 10**e for e in range(7) for m in (1, 2, 5)]
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
    with canvas(ax, 4.6) as (ax, own):
        key: Key = []
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
        bands = f"Bands: {format_level(result.level)} intervals, each budget for itself."
        if np.isfinite(result.crossing.estimate):
            bands += " Grey: that of the crossing."
        lines = [result.sentences(), bands, *warned(result)]
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
    with canvas(ax, 4.4) as (ax, own):
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
        key: Key = [
            (dots, f"runs ({result.count})"),
            (line, "fitted curve"),
            (new, f"predicted, {format_level(result.level)} prediction intervals"),
        ]
        finish(ax, own, key, [result.sentences(), *warned(result)], legend=legend, caption=caption, columns=3)
    return ax


_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def write_flops(value: float) -> str:
    """Write compute as a power of ten.

    >>> write_flops(1e21), write_flops(5.76e23), write_flops(2e18), write_flops(9.998e20)
    ('10²¹', '5.76×10²³', '2×10¹⁸', '10²¹')
    """
    if not 0 < value < math.inf:
        return format_number(value)
    factor, power = f"{value:.2e}".split("e")  # rounded first: 9.998e20 is 10²¹, not 10×10²⁰
    raised = f"10{str(int(power)).translate(_RAISED)}"
    return raised if float(factor) == 1 else f"{float(factor):g}×{raised}"


_EXPONENT = re.compile(r"\b\d(\.\d+)?e\+\d+\b")


def _with_powers(lines: Iterable[str]) -> list[str]:
    """Write compute in a caption as on the axes.

    >>> _with_powers(["At 5.76e+23 FLOP."])
    ['At 5.76×10²³ FLOP.']
    """
    return [_EXPONENT.sub(lambda found: write_flops(float(found[0])), line) for line in lines]


def write_count(value: float) -> str:
    """Write a number of parameters or tokens on an axis.

    >>> write_count(1e9), write_count(3e11), write_count(5e4), write_count(20)
    ('1B', '300B', '50K', '20')
    """
    if value >= 0.9995e6:
        return short(value)
    return f"{value / 1e3:.3g}K" if value >= 999.5 else f"{value:.3g}"


def log_axis(axis: Axis, low: float, high: float, *, flops: bool = False) -> None:
    """Make a log axis of compute or of counts between limits, with ticks that leave room for their labels."""
    ax = axis.axes
    if axis is ax.xaxis:
        ax.set(xscale="log", xlim=(low, high))
        most = width_of(ax) / (0.62 if flops else 0.5)
    else:
        ax.set(yscale="log", ylim=(low, high))
        most = 0.75 * figure_size(ax)[1] / 0.38
    axis.set_minor_locator(NullLocator())
    axis.set_major_locator(FixedLocator(_ticks(low, high, max(2, int(most)))))
    axis.set_major_formatter(FuncFormatter(lambda v, _: (write_flops if flops else write_count)(v)))


_USUAL = (((1, 2, 5), 1), ((1, 3), 1), ((1,), 1), ((1,), 2), ((1,), 3), ((1,), 5))
_FINER = ((1, 1.5, 2, 3, 5, 7), range(1, 10), np.arange(2, 20) / 2, np.arange(5, 50) / 5)
"""Factors of ticks, and in every how many decades; the finer ones are for axes of less than a decade."""


def _ticks(low: float, high: float, most: int) -> list[float]:
    """Return round numbers between limits: 1, 2, 5 of each decade, then 1, 3, then decades, then some of these."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)

    def between(factors: Iterable[float], step: int) -> list[float]:
        every = (float(f * 10.0**d) for d in decades if d % step == 0 for f in factors)
        return [tick for tick in every if low <= tick <= high]

    found = next((t for usual in _USUAL if len(t := between(*usual)) <= most), [])
    if len(found) < 3:  # an axis with one tick has no scale
        return next((t for factors in _FINER if 3 <= len(t := between(factors, 1)) <= most), found)
    return found


def span_of(*values: Sequence[float] | np.ndarray, room: float = 1.25) -> tuple[float, float]:
    """Return limits of a log axis around positive numbers, with a factor of room at both ends."""
    every = np.concatenate([np.ravel(np.asarray(v, dtype=np.float64)) for v in values])
    every = every[np.isfinite(every) & (every > 0)]
    return float(every.min()) / room, float(every.max()) * room


_RAMP = ("#6a4fc4", "#2f6fd0", "#12879a", "#2f8f4a", "#86800f", "#c26c14")
"""Colours from violet by blue and green to orange: each has a contrast of 3 with white paper, and with black."""


def graded(count: int) -> list[str]:
    """Return colours in an order, such as those of growing budgets.

    >>> graded(2)
    ['#6a4fc4', '#c26c14']
    """
    ramp = LinearSegmentedColormap.from_list("", _RAMP, 1000)
    return [to_hex(shade) for shade in ramp(np.linspace(0.0, 1.0, max(count, 1)))]
