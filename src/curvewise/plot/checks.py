"""Pictures of plans and checks: runs to add, sizes left out, spread of estimates, the variance."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator
from scipy.special import chdtri

from curvewise.learning import LeaveOneSizeOut, SizePlan, Stability, VarianceCheck
from curvewise.plot.sizes import SizeAxis, tick_log_values
from curvewise.plot.style import (
    NEUTRAL,
    colour,
    make_legend,
    new_axes,
    style,
    unit_text,
    write_caption,
)
from curvewise.plot.text import safe_text
from curvewise.tables import number
from curvewise.types import FloatArray

_MARKERS = "osD^v<>PX*"


def plot_plan(result: SizePlan, ax: Axes | None = None) -> Axes:
    """Draw the runs there are and the runs to add, size by size."""
    place = np.arange(len(result.n))
    with style():
        own = ax is None
        ax = ax or new_axes(height=4.2)
        have = ax.bar(place, result.runs, width=0.65, color=NEUTRAL, label="_runs there are")
        extra = ax.bar(
            place, result.add, width=0.65, bottom=result.runs, color=colour(0), label="_to add"
        )
        for x, top, add in zip(place, result.runs + result.add, result.add, strict=True):
            if add > 0:
                ax.annotate(
                    f"+{int(add)}", (x, top), (0, 2), textcoords="offset points", ha="center"
                )
        ax.set_xticks(place, labels=[number(float(n)) for n in result.n])
        if len(place) > 12:
            ax.tick_params(axis="x", labelrotation=90)
        ax.yaxis.set_major_locator(MaxNLocator(integer=True))
        ax.set_ylim(0.0, max(1.0, 1.1 * float((result.runs + result.add).max())))
        ax.set_xlabel("training size $n$")
        ax.set_ylabel("runs")
        box = make_legend(
            ax, [have, extra], ["runs there are", "runs to add"], outside=own, columns=2
        )
        write_caption(ax, _plan_caption(result), under=box if own else None)
    return ax


def _plan_caption(result: SizePlan) -> list[str]:
    unit = result.unit.suffix
    return [
        f"{result.learner[:60]}: the expected width of the interval of e_N at N ="
        f" {number(result.at)} goes from {number(result.width_now, 3)}{unit} to"
        f" {number(result.width_then, 3)}{unit}, for {number(result.samples)} training samples.",
        *(f"⚠ {w}" for w in result.warnings[:2]),
    ]


def plot_left_out(result: LeaveOneSizeOut, ax: Axes | None = None) -> Axes:
    """Draw the error of predicting each size left out, one line per form and weighting."""
    axis = SizeAxis("log")
    with style():
        own = ax is None
        ax = ax or new_axes(height=4.2 + 0.2 * len(result.forms))
        for i, row in enumerate(result.rmse):
            ax.plot(
                result.sizes,
                row,
                color=colour(i),
                marker=_MARKERS[i % len(_MARKERS)],
                markersize=5.0,
                linewidth=1.4,
                linestyle="--" if result.forms[i] == "last" else "-",
                label=f"{result.forms[i]}, {result.weights[i]}",
            )
        lines = list(ax.lines[-len(result.forms) :])
        known = result.rmse[np.isfinite(result.rmse)]
        _scale_rmse(ax, known)
        axis.finish(ax, result.sizes, float(result.sizes[0]), 1.1 * float(result.sizes[-1]))
        ax.set_xlabel("training size $n$ left out")
        ax.set_ylabel(f"RMSE {unit_text(result.unit)}")
        labels = [
            safe_text(f"{_row_name(result, i)}: average {number(float(a), 3)}", 80)
            for i, a in enumerate(result.average)
        ]
        box = make_legend(ax, lines, labels, outside=own)
        said = f"Root mean square over {result.curves} curve(s) of predicted minus measured mean."
        write_caption(ax, [said, *(f"⚠ {w}" for w in result.warnings[:2])], box if own else None)
    return ax


def _scale_rmse(ax: Axes, known: FloatArray) -> None:
    """A log scale where rows differ by much, so that the good ones can be told apart."""
    top = float(known.max(initial=1e-9))
    if len(known) and known.min() > 0 and top > 5.0 * float(known.min()):
        ax.set_yscale("log")
        ax.set_ylim(float(known.min()) / 1.15, 1.15 * top)
        tick_log_values(ax)
    else:
        ax.set_ylim(0.0, 1.08 * top)


def _row_name(result: LeaveOneSizeOut, i: int) -> str:
    form = result.forms[i]
    return "nearest size carried over" if form == "last" else f"{form}, weights {result.weights[i]}"


def plot_stability(result: Stability, ax: Axes | None = None) -> Axes:
    """Draw the standard deviations of e_N, β_N and α by form; that of γ stands under its name."""
    groups = {"e_N": result.error_std, "β_N": result.data_reliance_std, "α": result.alpha_std}
    place = np.arange(len(result.forms))
    with style():
        own = ax is None
        ax = ax or new_axes(height=4.4)
        bars = []
        for i, std in enumerate(groups.values()):
            x = place + 0.27 * (i - 1)
            height = np.where(np.isfinite(std), std, 0.0)
            bars.append(ax.bar(x, height, width=0.25, color=colour(i), label="_std"))
            for left, value, top in zip(x, std, height, strict=True):
                text = safe_text(number(float(value), 2))
                ax.annotate(
                    text, (left, top), (0, 2), textcoords="offset points", ha="center", fontsize=8
                )
        gamma = [number(float(g), 2) for g in result.gamma_std]
        names = [f"{safe_text(f)}\n(γ: {g})" for f, g in zip(result.forms, gamma, strict=True)]
        ax.set_xticks(place, labels=names)
        ax.set_ylabel(f"standard deviation {unit_text(result.unit)}")
        ax.set_xlabel("form (in brackets the standard deviation of γ)")
        box = make_legend(ax, bars, list(groups), outside=own, columns=3)
        said = (
            f"Spread over {result.draws} draws of one run at each of a few sizes;"
            f" N = {number(result.at)}."
        )
        write_caption(ax, [said, *(f"⚠ {w}" for w in result.warnings[:2])], box if own else None)
    return ax


def plot_variance_check(result: VarianceCheck, ax: Axes | None = None) -> Axes:
    """Draw the measured variance of runs against the model's, over training size, on log scales.

    Bars are 95% χ² intervals of a variance with the degrees of freedom at each size.
    """
    positive = result.measured > 0
    n, measured, free = (v[positive] for v in (result.n, result.measured, result.freedom))
    with style():
        own = ax is None
        ax = ax or new_axes(height=4.6)
        low, high = free * measured / chdtri(free, 0.025), free * measured / chdtri(free, 0.975)
        ax.vlines(n, low, high, color=colour(0), linewidth=1.1)
        ax.plot(n, measured, linestyle="none", marker="o", color=colour(0), label="_measured")
        ax.plot(result.n, result.modelled, color=colour(1), marker=".", label="_modelled")
        _log_log(ax, result.n, np.concatenate([measured, result.modelled]))
        square = {"percent": "(%²)", "fraction": "(fraction²)"}.get(result.unit.name, "")
        ax.set_ylabel(safe_text(f"variance of one run {square}"))
        handles = [
            Line2D([], [], linestyle="none", marker="o", color=colour(0)),
            Line2D([], [], color=colour(1), marker="."),
        ]
        labels = ["measured, with 95% χ² interval", "model σ0² + σ̂²/n"]
        box = make_legend(ax, handles, [safe_text(t) for t in labels], outside=own)
        said = f"{result.curves} curve(s); χ² test of the model: p = {result.p_value:.2g}."
        write_caption(ax, [said, *(f"⚠ {w}" for w in result.warnings[:2])], box if own else None)
    return ax


def _log_log(ax: Axes, n: FloatArray, values: FloatArray) -> None:
    ax.set_yscale("log")
    low, high = float(values.min()), float(values.max())
    ax.set_ylim(low / 4.0, high * 4.0)
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(FuncFormatter(lambda y, _: number(y)))
    axis = SizeAxis("log")
    axis.finish(ax, n, float(n[0]) / 1.2, 1.3 * float(n[-1]))
