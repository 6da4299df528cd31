"""Pictures of comparisons: two trainings run by run, many as a forest plot, the ratio of two variances."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Patch
from matplotlib.ticker import AutoLocator

from curvewise.drawing.axes import is_narrow, log_sizes, raise_top, width_of
from curvewise.drawing.labels import clean, safe_names, safe_text, shorten
from curvewise.drawing.marks import bars, ends_of, finish, key_dot, warned
from curvewise.drawing.rows import DIFFERENCE, clearest, draw_differences, draw_rows, pair_names
from curvewise.drawing.style import INK, NEUTRAL, canvas, colours_of
from curvewise.text import format_interval, format_level, format_pvalue
from curvewise.types.results import FloatArray
from curvewise.variance.anova import decimals
from curvewise.variance.compare import RunComparison, TrainingComparison
from curvewise.variance.plot.runs import RUNS, DrawnUnit, series_colour
from curvewise.variance.variances import VarianceComparison

MEAN = "curvewise-mean"
PAIR = "curvewise-pair"
MARGIN = "curvewise-margin"
"""Group ids of the artists."""

SCOPES = {"test set": "on this test set", "distribution": "on new data"}

DIFFERENCE_AT = 2.0
"""Place of the difference on the x axis, on which the two trainings stand at 0 and 1."""

JOINED = 60
"""Pairs of runs up to which they are joined by lines."""


def plot_run_comparison(
    result: RunComparison, ax: Axes | None = None, *, legend: bool = True, caption: bool | None = None
) -> Axes:
    """Draw the runs of both trainings, and their difference with its intervals at the right.

    The difference stands above the mean of b, so that it is read on the left scale as the mean of
    a, and on the right scale by itself.

    Parameters
    ----------
    result : RunComparison
        The result to draw.
    ax : Axes, optional
        Axes to draw on; a new figure by default.
    legend : bool
        Say what is what.
    caption : bool, optional
        Say what was found under the picture; by default where there is room.
    """
    measure = DrawnUnit(result.unit)
    a, b = measure.errors(result._parts.a), measure.errors(result._parts.b)
    with canvas(ax, 4.6) as (ax, own):
        ends = [float(end) for side in measure.ends([result.difference, result.test_set_difference]) for end in side]
        ends += [float(measure.of(result.margin)) * s for s in (-1, 1)] if result.margin else []
        base = float(b.mean())
        known = [base + e for e in ends if math.isfinite(e)]
        low, high = min(*a, *b, *known), max(*a, *b, *known)
        pad = 0.06 * (high - low) or 0.05 * (abs(high) or 1.0)
        limits = low - pad, high + pad
        _strips(ax, a, b, result.paired, colours_of((result.a, result.b)))
        key = _differences(ax, result, measure, base, limits)
        narrow = is_narrow(ax)
        names = safe_names((result.a, result.b), max(6, int(2.9 * width_of(ax))))
        ax.set_xticks([0.0, 1.0, DIFFERENCE_AT], labels=[*names, "diff." if narrow else "difference"])
        ax.tick_params(axis="x", length=0, labelsize=8.0 if narrow else 9.0)
        ax.set(xlim=(-0.5, 2.55), ylim=limits, ylabel=measure.label("test error of a run"))
        if legend and not own:
            raise_top(ax, 1 if not narrow else 2)
        if measure.bounded and limits[0] < 0:
            # Only the difference, which is read at the right, reaches below an error of 0.
            ax.set_yticks([tick for tick in ax.get_yticks() if 0 <= tick <= ax.get_ylim()[1]])
            ax.spines["left"].set_bounds(0.0, ax.get_ylim()[1])
        # The scale of differences, at the right: part of the Axes, not another one of the figure.
        scale = ax.secondary_yaxis("right", functions=(lambda y: np.asarray(y) - base, lambda d: np.asarray(d) + base))
        scale.yaxis.set_major_locator(AutoLocator())
        scale.set_ylabel(f"difference{' (%)' if measure.bounded else ''}")
        scale.spines["right"].set_visible(True)
        lines = [_comparison_caption(result), *warned(result)]
        finish(ax, own, key, lines, legend=legend, caption=caption, columns=2 if narrow else 3, loc="upper left")
    return ax


def _strips(ax: Axes, a: FloatArray, b: FloatArray, paired: bool, shades: Sequence[str]) -> None:
    """Draw a dot per run, moved aside at random; lines between paired runs, if they are not many."""
    # A fixed seed: the same result is drawn the same way each time.
    rng = np.random.default_rng(0)
    joined = paired and len(a) <= JOINED
    if joined:
        ax.plot([0.0, 1.0], np.stack([a, b]), color=NEUTRAL, lw=0.6, alpha=0.6, gid=PAIR, label="_pair")
    for place, values, shade in ((0.0, a, shades[0]), (1.0, b, shades[1])):
        aside = np.zeros(len(values)) if joined else rng.uniform(-0.16, 0.16, len(values))
        size = float(np.clip(1200 / len(values), 3.0, 18.0))
        look: dict[str, Any] = {"alpha": 0.6, "linewidths": 0.0, "rasterized": len(values) > 2000, "zorder": 2.4}
        ax.scatter(place + aside, values, s=size, color=shade, gid=RUNS, **look)
        ends = [place - 0.26, place + 0.26]
        ax.plot(ends, [values.mean()] * 2, color=INK, lw=2.0, zorder=3.0, gid=MEAN, label="_mean")


def _differences(
    ax: Axes, result: RunComparison, measure: DrawnUnit, base: float, limits: tuple[float, float]
) -> list[tuple[Any, str]]:
    rows = [("test set", result.test_set_difference, "o", -0.13)]
    if result.scope == "distribution":
        rows.append(("distribution", result.difference, "D", 0.13))
    key: list[tuple[Any, str]] = []
    for text, difference, marker, aside in rows:
        value, low, high = (base + float(end[0]) for end in measure.ends([difference]))
        at, shade = DIFFERENCE_AT + aside * (len(rows) - 1), {"test set": "#6e6e6e", "distribution": INK}[text]
        bars(ax, [at], [low], [high], shade, limits=limits, width=2.0)
        ax.plot([at], [value], marker, color=shade, ms=6.5, gid=DIFFERENCE, label="_difference")
        key.append((key_dot(shade, marker, 5.5, "-"), SCOPES[text]))
    look: dict[str, Any] = {"color": NEUTRAL, "lw": 1.0, "ls": "--", "zorder": 0.9}
    ax.plot([1.26, 2.55], [base, base], gid="curvewise-zero", label="_zero", **look)
    if result.margin:
        margin = float(measure.of(result.margin))
        shaded: dict[str, Any] = {"color": NEUTRAL, "alpha": 0.18, "lw": 0.0, "zorder": 0.3, "gid": MARGIN}
        ax.fill_between([1.5, 2.55], base - margin, base + margin, **shaded)
        key.append((Patch(color=NEUTRAL, alpha=0.25), "margin"))
    return key


def _comparison_caption(result: RunComparison) -> str:
    measure = DrawnUnit(result.unit)
    a, b = (shorten(clean(n), 30) for n in (result.a, result.b))
    words = {"a better": f"{a} is better", "b better": f"{b} is better", "equivalent": "they are equivalent"}
    verdict = words.get(result.verdict, "they are not significantly different")
    found = f"{measure.range(measure.interval(result.test_set_difference))} on this test set"
    if result.scope == "distribution":
        true = f"{measure.range(measure.interval(result.difference))} on new data ({format_pvalue(result.pvalue)})"
        found = f"{true}, {found}"
    runs = " and ".join(f"{n:,}" for n in result.runs) + (" paired" if result.paired else "")
    return f"{a} minus {b}, {runs} runs: {found}. {SCOPES[result.scope].capitalize()} {verdict}."


def plot_trainings(
    result: TrainingComparison,
    ax: Axes | None = None,
    *,
    most: int | None = None,
    legend: bool = True,
    caption: bool | None = None,
) -> Axes:
    """Draw the differences between trainings as a forest plot.

    Parameters
    ----------
    result : TrainingComparison
        The result to draw.
    ax : Axes, optional
        Axes to draw on; a new figure by default.
    most : int, optional
        Show only this many of the clearest differences: 30 by default, fewer in small Axes.
    legend : bool
        Say what is what.
    caption : bool, optional
        Say what was found under the picture; by default where there is room.
    """
    measure = DrawnUnit(result.unit)
    estimate, low, high = measure.ends(result.differences)
    # Adjusted p-values are often tied at 1; the plain ones then decide.
    shown = clearest(ax, most, result.adjusted, result.pvalues, order=estimate)
    pairs, narrow = [result.pairs[i] for i in shown], ax is not None and is_narrow(ax)
    names, label = pair_names(ax, pairs), "difference of error"
    if result.baseline is not None:
        names = safe_names((a for a, _ in pairs), 14 if narrow else 32)
        label = label if narrow else f"error minus that of {safe_text(result.baseline, 20)}"
    how = "Holm" if result.multiplicity == "holm" else "Benjamini and Hochberg"
    side = "above" if result.unit == "score" else "below"
    said = (
        f"Significant {SCOPES[result.scope]}, after {how}; {side} 0 the first is better. The intervals hold"
        f" together at {format_level(result.level)}."
    )
    return draw_differences(
        ax,
        names,
        (estimate[shown], low[shown], high[shown]),
        [result.verdicts[i] != "undecided" for i in shown],
        total=len(result.pairs),
        label=measure.label(label),
        lines=[said, *warned(result)],
        legend=legend,
        caption=caption,
    )


def plot_variance_comparison(
    result: VarianceComparison, ax: Axes | None = None, *, caption: bool | None = None
) -> Axes:
    """Draw the ratio of two trainings' standard deviations, on a log scale.

    Parameters
    ----------
    result : VarianceComparison
        The result to draw.
    ax : Axes, optional
        Axes to draw on; a new figure by default.
    caption : bool, optional
        Say what was found under the picture; by default where there is room.
    """
    rows = {"on this test set": result.test_set_ratio, "on new data": result.distribution_ratio}
    with canvas(ax, 2.4) as (ax, own):
        # Around 1 and all that is known, up to a factor of 30; more room where a limit is open.
        ends = [v for r in rows.values() for v in r if math.isfinite(v) and v > 0]
        low, high = min([*ends, 0.8]), max([*ends, 1.25])
        below = 2.0 if any(r.low == 0 for r in rows.values()) else 1.1
        above = 2.0 if any(math.isinf(r.high) for r in rows.values()) else 1.1
        limits = max(low / below, 1 / 30), min(high * above, 30.0)
        ax.set_xlim(*limits)
        log_sizes(ax)
        shades = series_colour("test set"), series_colour("distribution")
        draw_rows(ax, list(rows), ends_of(rows.values()), shades, zero=1.0, limits=limits, gid=DIFFERENCE)
        a, b = safe_names(result.names, 9 if is_narrow(ax) else 20)
        ax.set_xlabel(f"std between runs, {a} / {b}")
        test, true = (format_interval(r, write=decimals(2)) for r in (result.test_set_ratio, result.distribution_ratio))
        said = (
            f"Ratio {test} ({format_pvalue(result.test_set_pvalue)}) on this test set, {true}"
            f" ({format_pvalue(result.distribution_pvalue)}) on new data: {result.verdict}."
        )
        finish(ax, own, [], [said, *warned(result)], caption=caption, indent=1.1)
    return ax
