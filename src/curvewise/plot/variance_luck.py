"""Pictures of the same runs on two test sets or more: is a lucky run lucky elsewhere, too."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from curvewise.errors import InputError
from curvewise.plot.style import NEUTRAL, colour, new_axes, style
from curvewise.plot.text import clean, safe_names, shorten
from curvewise.plot.variance_axes import is_narrow, raise_top
from curvewise.plot.variance_measure import Measure
from curvewise.plot.variance_parts import MARK, finish, warned
from curvewise.types import FloatArray
from curvewise.variance.luck import SeedLuck
from curvewise.variance.test_sets import TestSetComparison, TestSetPair
from curvewise.variance.wording import said_pvalue

RUNS = "curvewise-runs"
PICKED = "curvewise-picked"
CELL = "curvewise-cell"

_MANY = 2000
_PALE = 0.55
"""Correlation from which numbers are white."""


def plot_seed_luck(
    result: SeedLuck, ax: Axes | None = None, *, legend: bool = True, caption: bool | None = None
) -> Axes:
    """Draw each run's errors on the two sets, the best on the first marked, with what they gain.

    Parameters
    ----------
    result : SeedLuck
        What to draw.
    ax : Axes, optional
        Where; a new figure by default.
    legend : bool
        Say what is what.
    caption : bool, optional
        Say what was found under the picture; by default where there is room.
    """
    measure = Measure(result.unit)
    first, second = measure.of(result.first_errors), measure.of(result.second_errors)
    picked = first <= np.sort(first)[max(1, math.ceil(result.top * len(first) - 1e-9)) - 1]
    pair = result.split == "pair"
    names = ("the first test set", "the second test set") if pair else ("part 1", "part 2")
    with style():
        own = ax is None
        ax = ax or new_axes(height=5.0)
        _cloud(ax, first[~picked], second[~picked], NEUTRAL, RUNS, len(first))
        _cloud(ax, first[picked], second[picked], colour(0), PICKED, len(first))
        gains = [result.gain_first, result.gain_second]
        for i, (values, gain) in enumerate(zip((first, second), gains, strict=True)):
            mean = float(values.mean())
            draw = ax.axhline if i else ax.axvline
            look: dict[str, Any] = {"linewidth": 1.4, "zorder": 3.5, "gid": MARK, "label": "_mean"}
            draw(mean, color="#4D4D4D", linestyle="--", **look)
            draw(mean - float(measure.of(gain.estimate)), color=colour(0), **look)
        ax.set_xlabel(measure.label(f"error on {names[0]}"))
        ax.set_ylabel(measure.label(f"error on {names[1]}"))
        key = _luck_key(result)[:: 2 if is_narrow(ax) else 1]
        if legend and not own:
            raise_top(ax, 1 if is_narrow(ax) else 2)
        finish(
            ax,
            own,
            key,
            _luck_caption(result),
            legend=legend,
            caption=caption,
            columns=2,
            loc="upper left",
        )
    return ax


def _cloud(ax: Axes, x: FloatArray, y: FloatArray, shade: str, gid: str, many: int) -> None:
    """A dot per run, smaller and paler where there are many; pixels where there are very many."""
    dots = ax.scatter(
        x,
        y,
        s=float(np.clip(5000 / many, 3.0, 16.0)),
        color=shade,
        alpha=float(np.clip(150 / many**0.8, 0.1, 0.75)),
        linewidths=0.0,
        zorder=2.5,
        rasterized=many > _MANY,
        label="_runs",
    )
    dots.set_gid(gid)


def _luck_key(result: SeedLuck) -> list[tuple[Any, str]]:
    dot: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 4.5}
    return [
        (Line2D([], [], color=colour(0), **dot), f"best {result.top:.0%}"),
        (Line2D([], [], color=colour(0), linewidth=1.4), "their mean"),
        (Line2D([], [], color=NEUTRAL, **dot), "the others"),
        (Line2D([], [], color="#4D4D4D", linewidth=1.4, linestyle="--"), "mean of all runs"),
    ]


def _luck_caption(result: SeedLuck) -> list[str]:
    measure, r, e = Measure(result.unit), result.correlation, result.expected
    return [
        f"{result.runs:,} runs; correlation {r.estimate:.2f} [{r.low:.2f}, {r.high:.2f}], where"
        f" {e.estimate:.2f} would follow from the variance that is real.",
        f"The best {result.top:.0%} on the first are better than the mean by"
        f" {measure.told(result.gain_first)} there, and by {measure.told(result.gain_second)} on"
        " the second.",
        *warned(result),
    ]


def plot_test_sets(
    result: TestSetComparison,
    ax: Axes | None = None,
    *,
    pair: tuple[str, str] | None = None,
    true: bool = False,
    caption: bool | None = None,
) -> Axes:
    """Draw how run errors on several test sets correlate, as a matrix; or one pair of sets.

    Parameters
    ----------
    result : TestSetComparison
        What to draw.
    ax : Axes, optional
        Where; a new figure by default.
    pair : tuple of str, optional
        Draw the runs on these two test sets instead of the matrix.
    true : bool
        Correlations of true errors instead of test errors.
    caption : bool, optional
        Say what was found under the picture; by default where there is room.
    """
    with style():
        own = ax is None
        if pair is not None:
            ax = ax or new_axes(height=4.6)
            found = _pair(result, pair)
            _scatter(ax, result, pair)
            finish(ax, own, [], _pair_caption(result, found), caption=caption)
            return ax
        size = len(result.names)
        ax = ax or new_axes(width=3.4 + 0.6 * size, height=2.4 + 0.5 * size)
        _matrix(ax, result, true)
        ticks = safe_names(result.names, 18 if not is_narrow(ax) else 11)
        ax.set_yticks(np.arange(size), labels=ticks)
        ax.set_xticks(
            np.arange(size), labels=ticks, rotation=40, ha="right", rotation_mode="anchor"
        )
        ax.tick_params(length=0)
        if is_narrow(ax):
            ax.tick_params(labelsize=8.0)
        ax.set_xlim(-0.5, size - 0.5)
        ax.set_ylim(size - 0.5, -0.5)
        ax.spines[:].set_visible(False)
        what = "true error" if true else "test error"
        ax.set_xlabel(f"correlation of the {what} of runs")
        finish(ax, own, [], _matrix_caption(result, true), caption=caption, indent=1.2)
    return ax


def _matrix(ax: Axes, result: TestSetComparison, true: bool) -> None:
    place = {name: i for i, name in enumerate(result.names)}
    values = np.full((len(place), len(place)), np.nan)
    told = [["" for _ in place] for _ in place]
    for p in result.pairs:
        i, j = place[p.first], place[p.second]
        r = p.true_correlation if true else p.correlation
        values[i, j] = values[j, i] = r.estimate
        text = "?" if math.isnan(r.estimate) else f"{r.estimate:.2f}"
        if true and not p.stable and text != "?":
            text = f"({text})"
        star = "*" if not true and p.adjusted < 1 - result.level else ""
        told[i][j] = told[j][i] = text + star
    image = ax.imshow(values, cmap="RdBu_r", vmin=-1.0, vmax=1.0, aspect="auto")
    image.set_gid(CELL)
    small = is_narrow(ax) or len(place) > 8
    for i, row in enumerate(told):
        for j, text in enumerate(row):
            dark = abs(values[i, j]) > _PALE
            ax.text(
                j,
                i,
                text,
                ha="center",
                va="center",
                color="white" if dark else "black",
                fontsize=7.0 if small else 9.0,
                gid=CELL,
            )


def _matrix_caption(result: TestSetComparison, true: bool) -> list[str]:
    star = (
        "Brackets, question mark: a true variance is not told from 0"
        if true
        else f"Star: not 0 (Holm over the {len(result.pairs)} pairs)"
    )
    return [f"{star}. {result.runs:,} runs, the same on each test set.", *warned(result)]


def _pair(result: TestSetComparison, names: tuple[str, str]) -> TestSetPair:
    for p in result.pairs:
        if {p.first, p.second} == set(names):
            return p
    raise InputError(
        f"pair={names!r} is not a pair of test sets: use two of"
        f" {', '.join(map(repr, result.names))}."
    )


def _scatter(ax: Axes, result: TestSetComparison, names: tuple[str, str]) -> None:
    units = [Measure(result.decompositions[name].unit) for name in names]
    x, y = (m.of(result.run_errors[name]) for m, name in zip(units, names, strict=True))
    _cloud(ax, x, y, colour(0), RUNS, len(x))
    short = safe_names(names, 30)
    ax.set_xlabel(units[0].label(f"error on {short[0]}"))
    ax.set_ylabel(units[1].label(f"error on {short[1]}"))


def _pair_caption(result: TestSetComparison, pair: TestSetPair) -> list[str]:
    r, t = pair.correlation, pair.true_correlation
    real = f"; of true errors {t.estimate:.2f} [{t.low:.2f}, {t.high:.2f}]" if pair.stable else ""
    names = f"{shorten(clean(pair.first), 40)} and {shorten(clean(pair.second), 40)}"
    return [
        f"{result.runs:,} runs on {names}: correlation {r.estimate:.2f} [{r.low:.2f},"
        f" {r.high:.2f}], R² = {pair.r_squared:.3f} ({said_pvalue(pair.adjusted)} after"
        f" Holm){real}."
    ]
