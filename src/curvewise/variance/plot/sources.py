"""Pictures of the origin of differences between runs: sources of randomness, twins, hyperparameters."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from curvewise.drawing.axes import is_narrow, spans_decades, tick_log_values, value_axis, view, width_of
from curvewise.drawing.labels import clean, safe_names, safe_text, shorten
from curvewise.drawing.marks import (
    CUT,
    bars,
    beside,
    choose,
    draw_estimates,
    ends_of,
    finish,
    key_dot,
    mark_value,
    warned,
)
from curvewise.drawing.rows import rows_of
from curvewise.drawing.style import NEUTRAL, canvas, colour
from curvewise.errors import InputError
from curvewise.text import format_interval, format_level, format_number, format_setting
from curvewise.types.results import FloatArray, Interval
from curvewise.variance.plot.runs import DrawnUnit, run_shape, series_colour
from curvewise.variance.sources import SourceShares, TwinDisagreement
from curvewise.variance.variances import VarianceSweep

LINE = "curvewise-line"
LEVEL = "curvewise-level"
EXCESS = "curvewise-excess"
BARS = "curvewise-bars"
"""Group ids of the artists."""

_VERDICTS = {"suffices": "suffices", "less": "gives less", "more": "gives more", "unclear": "remains unclear"}


def plot_sources(
    result: SourceShares, ax: Axes | None = None, *, legend: bool = True, caption: bool | None = None
) -> Axes:
    """Draw the standard deviations of each source of randomness beside those of all together.

    Parameters
    ----------
    result : SourceShares
        The result to draw.
    ax : Axes, optional
        Axes to draw on; a new figure by default.
    legend : bool
        Say what is what.
    caption : bool, optional
        Say what was found under the picture; by default where there is room.
    """
    names = [result.baseline, *result.sources]
    with canvas(ax, 2.2 + 0.5 * len(names)) as (ax, own):
        key = _deviations(ax, result)
        texts = safe_names(names, 14 if is_narrow(ax) else 28)
        indent = rows_of(ax, texts, room=legend and not own)
        ax.axhspan(-0.6, 0.5, color=NEUTRAL, alpha=0.12, lw=0.0, zorder=0.2)
        ax.set_xlabel(DrawnUnit(result.unit).label("std between runs"))
        place: dict[str, Any] = {"loc": "lower left", "indent": indent}
        words = [
            f"{shorten(clean(name), 30)} {_VERDICTS[verdict]}"
            for name, verdict in zip(result.sources, result.verdicts, strict=True)
        ]
        text = (
            f"Bars: {format_level(result.level)} intervals; dotted: {shorten(clean(result.baseline), 30)}."
            f" Alone, on this test set: {'; '.join(words)}."
        )
        finish(ax, own, key, [text, *warned(result)], legend=legend, caption=caption, columns=2, **place)
    return ax


def _deviations(ax: Axes, result: SourceShares) -> list[tuple[Any, str]]:
    """Draw two rows of points, the baseline's continued as dotted lines; return their key."""
    measure = DrawnUnit(result.unit)
    seen = [result.baseline_test_set_std, *result.test_set_std]
    true = [result.baseline_distribution_std, *result.distribution_std]
    estimate, low, high = map(measure.of, ends_of([*seen, *true]))
    limits = view(estimate, low, high, 0.0, floor=0.0)
    key: list[tuple[Any, str]] = []
    for series, name, text, marker, aside in (
        (seen, "test set", "on this test set", "o", -0.13),
        (true, "distribution", "on new data", "D", 0.13),
    ):
        estimate, low, high = map(measure.of, ends_of(series))
        row, shade = np.arange(len(series)) + aside, series_colour(name)
        draw_estimates(ax, row, (estimate, low, high), shade, limits=limits, marker=marker, gid=LINE)
        ax.axvline(estimate[0], color=shade, ls=":", lw=1.1, zorder=0.7, gid=LEVEL, label="_all")
        key.append((key_dot(shade, marker, line="-"), text))
    ax.set_xlim(*limits)
    return key


def plot_twins(result: TwinDisagreement, ax: Axes | None = None, *, caption: bool | None = None) -> Axes:
    """Draw how often runs and their twins disagree, by when the twins were poked.

    Parameters
    ----------
    result : TwinDisagreement
        The result to draw.
    ax : Axes, optional
        Axes to draw on; a new figure by default.
    caption : bool, optional
        Say what was found under the picture; by default where there is room.
    """
    measure = DrawnUnit("fraction")
    numbers = all(isinstance(w, Real) and math.isfinite(w) for w in result.when)
    with canvas(ax, 4.2) as (ax, own):
        x = np.array(result.when if numbers else range(len(result.when)), dtype=np.float64)
        order = np.argsort(x)
        estimate, low, high = (measure.of(v)[order] for v in ends_of(result.disagreement))
        level, below, above = measure.of(tuple(result.seeds)).tolist()
        # From 0, as the fraction of the disagreement of seeds is read off by eye.
        limits = 0.0, 1.15 * max(float(high.max()), above)
        bars(ax, x[order], low, high, colour(0), limits=limits)
        joined = "-" if numbers else "none"
        ax.plot(x[order], estimate, color=colour(0), marker="o", ls=joined, gid=LINE, label="_twins")
        ax.axhspan(below, above, color=NEUTRAL, alpha=0.3, lw=0.0, zorder=0.4, gid=LEVEL)
        ax.axhline(level, color="#4D4D4D", ls="--", lw=1.1, zorder=0.5, gid=LEVEL, label="_seeds")
        look: dict[str, Any] = {"xycoords": ax.get_yaxis_transform(), "ha": "right", "color": "#4D4D4D"}
        beside(ax, "different seeds", (0.99, above), (0, 2), **look)
        ax.set_ylim(*limits)
        if numbers:
            ax.set_xlabel("when the twin was poked")
        else:
            texts, room = list(map(str, result.when)), int(width_of(ax) / len(x) / 0.085)
            if room >= 14 or max(map(len, texts)) <= room:
                ax.set_xticks(range(len(x)), labels=safe_names(texts, room))
            else:  # aslant, as they would touch
                slant: dict[str, Any] = {"rotation": 25, "ha": "right", "rotation_mode": "anchor"}
                ax.set_xticks(range(len(x)), labels=safe_names(texts, 22), **slant)
            ax.set(xlim=(-0.6, len(x) - 0.4), xlabel="what was done to the twin")
        ax.set_ylabel("disagreement (%)" if result.measured == "predictions" else "one right, one wrong (%)")
        most, what = max(zip(result.fraction, result.when, strict=True), key=lambda pair: pair[0].estimate)
        text = (
            f"Bars: {format_level(result.level)} intervals. {result.runs:,} runs with their twins on"
            f" {result.examples:,} examples; those that differ most ({shorten(clean(str(what)), 40)}) show"
            f" {format_interval(most, write='{:.0%}'.format)} of the disagreement of different seeds."
        )
        finish(ax, own, [], [text, *warned(result)], caption=caption)
    return ax


def plot_lengths(
    results: Mapping[float, SourceShares] | Mapping[float, TwinDisagreement],
    ax: Axes | None = None,
    *,
    name: str = "epochs of training",
    legend: bool = True,
    caption: bool | None = None,
) -> Axes:
    """Draw sources of randomness, or twins, along the length of training.

    Parameters
    ----------
    results : mapping of float to SourceShares or TwinDisagreement
        By the length of training: for each source the standard deviation between runs of test error;
        or how often runs disagree with their twins, and with runs of other seeds.
    ax : Axes, optional
        Axes to draw on; a new figure by default.
    name : str
        Name of the lengths.
    legend : bool
        Say what is what.
    caption : bool, optional
        Say what was found under the picture; by default where there is room.
    """
    if not isinstance(results, Mapping) or not results:
        raise InputError("must map lengths of training to results: {4: …, 64: …}.", argument="results")
    lengths = sorted(results)
    series: dict[str, list[tuple[float, Interval]]] = {}
    for length in lengths:
        one = results[length]
        if isinstance(one, SourceShares):
            found = {one.baseline: one.baseline_test_set_std, **dict(zip(one.sources, one.test_set_std, strict=True))}
        else:
            found = {"different seeds": one.seeds}
            for when, rate in zip(one.when, one.disagreement, strict=True):
                found[f"twins, poked at {when:g}" if isinstance(when, Real) else f"twins, {when}"] = rate
        for label, interval in found.items():
            series.setdefault(label, []).append((length, interval))
    first = results[lengths[0]]
    shares = isinstance(first, SourceShares)
    measure = DrawnUnit(first.unit if isinstance(first, SourceShares) else "fraction")
    with canvas(ax, 4.4) as (ax, own):
        estimate, low, high = map(measure.of, ends_of([i for rows in series.values() for _, i in rows]))
        limits = view(estimate, low, high, 0.0, floor=0.0)
        key: list[tuple[Any, str]] = []
        for k, (label, rows) in enumerate(series.items()):
            shade = "#4D4D4D" if k == 0 else colour(k - 1)
            x, marker = np.array([length for length, _ in rows]), "osD^v<>P"[k % 8]
            _series(ax, x, [i for _, i in rows], measure, shade, marker, limits)
            key.append((key_dot(shade, marker, 4.5, "-"), safe_text(label, 30)))
        ax.set_ylim(*limits)
        value_axis(ax, lengths)
        ax.set_xlabel(safe_text(name, 40))
        ax.set_ylabel(measure.label("std between runs") if shares else "disagreement (%)")
        last = results[lengths[-1]]
        runs = last.baseline_runs if isinstance(last, SourceShares) else last.runs
        text = f"Bars: {format_level(last.level)} intervals. {runs:,} runs at length {format_number(lengths[-1])}."
        notes = list(dict.fromkeys(w for r in results.values() for w in warned(r)))
        finish(ax, own, key, [text, *notes[:2]], legend=legend, caption=caption, columns=2)
    return ax


def plot_sweep(
    result: VarianceSweep,
    ax: Axes | None = None,
    *,
    what: str = "std",
    legend: bool = True,
    caption: bool | None = None,
) -> Axes:
    """Draw the standard deviations between runs along a hyperparameter, or the errors.

    Parameters
    ----------
    result : VarianceSweep
        The result to draw.
    ax : Axes, optional
        Axes to draw on; a new figure by default.
    what : {"std", "error", "runs"}
        Standard deviations, with the excess over independent errors shaded; the mean error; or the
        errors of the runs at each value, around their mean, with what independent errors would give.
    legend : bool
        Say what is what.
    caption : bool, optional
        Say what was found under the picture; by default where there is room.
    """
    choose("what", what, ("std", "error", "runs"))
    measure, x = DrawnUnit(result.unit), np.array(result.values)
    if what == "runs":
        return _sweep_runs(result, ax, measure, legend, caption)
    with canvas(ax, 4.6) as (ax, own):
        if what == "std":
            key = _sweep_deviations(ax, result, measure, x)
            ax.set_ylabel(measure.label("std between runs"))
        else:
            means = [measure.interval(error) for error in result.error]
            estimate, low, high = measure.ends(result.error)
            limits = view(estimate, low, high)
            _series(ax, x, means, measure, colour(0), "o", limits)
            ax.set(ylim=limits, ylabel=measure.label("mean error"))
            key = []
        value_axis(ax, x.tolist())
        ax.set_xlabel(safe_text(result.name, 24 if is_narrow(ax) else 50))
        narrow, largest = is_narrow(ax), result.largest_without_excess
        best, calm = ("best", "no excess") if narrow else (f"{measure.best} {measure.word}", "largest without excess")
        mark_value(ax, result.best, f"{best}, {calm}" if largest == result.best else best)
        if largest is not None and largest != result.best:
            mark_value(ax, largest, calm, "-.")
        found = [format_setting(v) for v, has in zip(result.values, result.has_excess, strict=True) if has]
        others = [format_setting(v) for v in result.tied if v != result.best]
        tied = (
            f" Its {measure.word} does not differ significantly from that at {', '.join(others[:8])}." if others else ""
        )
        text = (
            f"Bars: {format_level(result.level)} intervals. Excess over independent errors is shown at"
            f" {', '.join(found) or 'no value'} (Holm over the values). The mean {measure.word} is"
            f" {measure.best} at {format_setting(result.best)}.{tied}"
        )
        key, columns = (key[:3], 1) if narrow else (key, 2)
        finish(ax, own, key, [text, *warned(result)], legend=legend, caption=caption, columns=columns)
    return ax


def _sweep_runs(result: VarianceSweep, ax: Axes | None, measure: DrawnUnit, legend: bool, caption: bool | None) -> Axes:
    """Draw a row for each value: the histogram of run errors around their mean, and independent errors as a line."""
    count = len(result.values)
    with canvas(ax, 2.0 + 0.75 * count) as (ax, own):
        widest, labels, key, cut = 0.0, [], [], False
        for row, value in enumerate(result.values):
            part = result[value]
            errors = measure.errors(part.run_errors)
            mean, edges, x, y = run_shape(part, measure)
            heights = np.histogram(errors, edges)[0].astype(np.float64)
            # A row is as high as its highest bar, or up to twice that for its curve; what is higher is cut off.
            tallest = max(float(heights.max()), 1.0)
            scale = 0.88 / max(tallest, min(float(y.max()), 2 * tallest))
            cut = cut or float(y.max()) * scale > 0.9
            bottom = float(count - 1 - row)
            drawn = ax.stairs(bottom + heights * scale, edges - mean, baseline=bottom, fill=True, gid=BARS)
            drawn.set(facecolor=NEUTRAL, alpha=0.45)
            line = np.where(y * scale > 0.9, np.nan, y * scale)
            ax.plot(x - mean, bottom + line, color=series_colour("independent"), lw=1.4, gid=LINE, label="_independent")
            widest = max(widest, float(np.abs(errors - mean).max()), float(np.abs(x - mean).max()))
            spread = f"std {measure.text(part.test_set_std)}, independent {measure.text(part.independent_std)}"
            if not is_narrow(ax):
                look: dict[str, Any] = {"xycoords": ax.get_yaxis_transform(), "ha": "right", "color": "#4D4D4D"}
                beside(ax, spread, (0.995, bottom + 0.55), (0, 0), **look)
            labels.append(f"{format_setting(value)}\n{measure.text(float(measure.signed(part.run_errors).mean()))}")
            key = [(drawn, "runs"), (Line2D([], [], color=series_colour("independent"), lw=1.4), "independent errors")]
        ax.set_yticks(np.arange(count)[::-1], labels=labels, va="bottom")
        top = count if own or not legend else count * (1.12 if count > 1 else 1.3)
        ax.set(xlim=(-widest * 1.05, widest * 1.05), ylim=(-0.06, top), xlabel=measure.label("test error minus mean"))
        ax.set_ylabel(f"{safe_text(result.name, 24)}, mean {measure.word}")
        ax.tick_params(axis="y", length=0)
        runs = (
            f"{min(result.runs):,}" if len(set(result.runs)) == 1 else f"{min(result.runs):,} to {max(result.runs):,}"
        )
        found = [format_setting(v) for v, has in zip(result.values, result.has_excess, strict=True) if has]
        text = (
            f"{runs} runs in each row, around their mean. They vary more than independent errors would at"
            f" {', '.join(found) or 'no value'} (Cochran's Q, Holm over the values)."
            f"{' Curves that are too high are cut off.' if cut else ''}"
        )
        finish(ax, own, key, [text, *warned(result)], legend=legend, caption=caption, columns=2)
    return ax


def _sweep_deviations(ax: Axes, result: VarianceSweep, measure: DrawnUnit, x: FloatArray) -> list[tuple[Any, str]]:
    seen = measure.of([i.estimate for i in result.test_set_std])
    alone = measure.of(result.independent_std)
    true = measure.of([i.estimate for i in result.distribution_std])
    both, high = np.concatenate([seen, alone]), measure.of([i.high for i in result.test_set_std])
    if spans_decades(both, 12.0):
        ax.set_yscale("log")
        limits = float(both.min()) / 6, 1.3 * float(seen.max())
        ax.set_ylim(*limits)
        tick_log_values(ax)
    else:  # an interval far above the others must not press them down
        limits = 0.0, 1.06 * float(np.clip(high, None, 1.6 * seen.max()).max())
    shaded: dict[str, Any] = {"color": series_colour("test set"), "alpha": 0.15, "linewidth": 0.0, "gid": EXCESS}
    ax.fill_between(x, alone, seen, where=(seen > alone).tolist(), interpolate=True, **shaded)
    _series(ax, x, result.test_set_std, measure, series_colour("test set"), "o", limits)
    ax.plot(x, alone, color=series_colour("independent"), ls="--", marker="s", ms=4, gid=LINE, label="_alone")
    _series(ax, x, result.distribution_std, measure, series_colour("distribution"), "D", limits)
    below = true < limits[0]
    if below.any():
        edge = np.full(int(below.sum()), limits[0])
        ax.plot(x[below], edge, "v", color=series_colour("distribution"), clip_on=False, gid=CUT)
    ax.set_ylim(*limits)
    handles = [
        key_dot(series_colour(name), m, 4.5, ls)
        for name, m, ls in (("test set", "o", "-"), ("independent", "s", "--"), ("distribution", "D", "-"))
    ]
    labels = ["on this test set", "independent errors", "on new data", "excess"]
    return list(zip([*handles, Patch(color=series_colour("test set"), alpha=0.15)], labels, strict=True))


def _series(
    ax: Axes,
    x: FloatArray,
    intervals: Sequence[Any],
    measure: DrawnUnit,
    shade: str,
    marker: str,
    limits: tuple[float, float],
) -> None:
    estimate, low, high = map(measure.of, ends_of(intervals))
    bars(ax, x, low, high, shade, limits=limits, width=1.1)
    estimate = np.where(estimate < limits[0], np.nan, estimate)
    ax.plot(x, estimate, color=shade, linewidth=1.5, marker=marker, ms=4.5, gid=LINE, label="_std")
