"""Pictures of the errors of runs: their distribution, their standard deviations, and their luck elsewhere."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import ArrayLike

from curvewise.drawing.axes import is_narrow, raise_top, short_number
from curvewise.drawing.labels import clean, safe_names, shorten
from curvewise.drawing.marks import MARK, choose, ends_of, finish, key_dot, note, warned
from curvewise.drawing.panels import signed
from curvewise.drawing.rows import CELL
from curvewise.drawing.style import INK, NEUTRAL, canvas, colour, subject_colour
from curvewise.errors import InputError
from curvewise.text import format_count, format_interval, format_number, format_pvalue
from curvewise.types.results import FloatArray, Interval
from curvewise.variance.accuracy import AccuracyDistribution, poisson_binomial_pmf, shrunk_rates
from curvewise.variance.anova import DisplayUnit, decimals
from curvewise.variance.decompose import VarianceDecomposition
from curvewise.variance.luck import SeedLuck, TestSetComparison

SPREAD = "curvewise-spread"
HISTOGRAM = "curvewise-histogram"
PREDICTED = "curvewise-predicted"
RUNS = "curvewise-runs"
PICKED = "curvewise-picked"
"""Group ids of the artists."""


def series_colour(name: str) -> str:
    """Return the colour of a standard deviation, the same in every picture: what was measured has the learner's."""
    return {"test set": subject_colour(), "independent": "#6e6e6e", "distribution": INK}[name]


LIKELY = 3e-4
"""Share of the highest probability below which a curve is not drawn."""

FEW_POINTS = 25
"""Points up to which each number of errors is marked on the curve."""

TALLEST = 2.0
"""Curves more than so many times as high as the highest bar are cut off, to keep bars readable."""

MANY = 2000
"""Dots from which they are drawn as pixels, so that a vector file stays small."""

PALE = 0.55
"""Correlation from which numbers are white."""


@dataclass(frozen=True)
class DrawnUnit(DisplayUnit):
    """Unit in which pictures of the variance draw: errors as percentages, losses and scores as they are."""

    @property
    def bounded(self) -> bool:
        """True if values are errors."""
        return self.unit in ("fraction", "percent")

    def of(self, values: ArrayLike) -> FloatArray:
        """Return sizes, such as standard deviations and margins, as they are drawn."""
        return np.asarray(values, dtype=np.float64) * (100.0 if self.unit == "fraction" else 1.0)

    def errors(self, values: ArrayLike) -> FloatArray:
        """Return errors, or differences of them, as they are drawn: scores with their own sign."""
        return self.of(self.signed(values))

    def ends(self, intervals: Iterable[Interval]) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return estimates, lower and upper limits of errors or differences as they are drawn."""
        estimate, low, high = map(self.of, ends_of([self.interval(i) for i in intervals]))
        return estimate, low, high

    def label(self, text: str) -> str:
        """Return an axis label: "test error" becomes "test error (%)", "test loss" or "test score"."""
        return f"{text} (%)" if self.bounded else text.replace("error", self.word)

    def text(self, value: float) -> str:
        """Write a size with its unit, in three digits."""
        return f"{short_number(float(self.of(value)))}{'%' if self.bounded else ''}"

    def range(self, interval: Interval) -> str:
        """Write an estimate with its limits in brackets, in the digits that they support."""
        return format_interval(interval, self.unit)


def plot_decomposition(
    result: VarianceDecomposition,
    ax: Axes | None = None,
    *,
    what: str = "runs",
    legend: bool = True,
    caption: bool | None = None,
) -> Axes:
    """Draw run errors with what independent errors would give, and the standard deviations.

    Parameters
    ----------
    result : VarianceDecomposition
        The result to draw.
    ax : Axes, optional
        Axes to draw on; a new figure by default.
    what : {"runs", "examples"}
        The errors of runs; or those of examples over runs, counted on a log scale.
    legend : bool
        Say what is what.
    caption : bool, optional
        Say what was found under the picture; by default where there is room.
    """
    choose("what", what, ("runs", "examples"))
    with canvas(ax, 4.2 if what == "runs" else 3.8) as (ax, own):
        measure = DrawnUnit(result.unit)
        if what == "examples":
            finish(ax, own, [], [_examples(ax, result, measure)], caption=caption)
            return ax
        key = _runs(ax, result, measure)
        cut = count_axis(ax, 0.22, result.runs)
        _spreads(ax, result, measure)
        share = result.distribution_share
        written = format_interval(result.share_interval, "fraction").split(" [")[0]  # the digits of the sentence
        real = "" if math.isnan(share) else f" {written} of the variance is real."
        text = (
            f"Bars on top: one standard deviation to each side, upper limits paler.{real} As much"
            f" variance by independent errors: {format_pvalue(result.independence_pvalue)}."
        )
        lines = [text, *cut, *warned(result)]
        # The bars on top say what the colours are; in someone's Axes there is no room to repeat it.
        finish(ax, own, key if own else [], lines, legend=legend, caption=caption, columns=2)
    return ax


def _runs(ax: Axes, result: VarianceDecomposition, measure: DrawnUnit) -> list[tuple[Any, str]]:
    _, edges, x, y = run_shape(result, measure)
    counted = histogram(ax, measure.errors(result.run_errors), edges, subject_colour(), 0.35)
    line = curve(ax, x, y, series_colour("independent"), "-")
    ax.set_xlabel(measure.label("test error of a run"))
    how = "independent errors" if result.groups is None else "independent groups"
    how = how if _is_exact(result) else f"{how} (normal)"
    return [(counted[0], f"{result.runs:,} runs"), (line, how)]


def _is_exact(result: VarianceDecomposition) -> bool:
    """Return whether the number of independent errors has a known distribution, that of single answers."""
    return result._totals.binary and result.repeats == 1 and result.groups is None


def run_shape(result: VarianceDecomposition, measure: DrawnUnit) -> tuple[float, FloatArray, FloatArray, FloatArray]:
    """Return mean error and bins of the runs; and as x and y the runs per bin that independent errors would give."""
    errors, exact = measure.errors(result.run_errors), _is_exact(result)
    step = float(measure.of(1 / result.examples)) if exact else 0.0
    edges, mean = edges_of(errors, step), float(errors.mean())
    scale = result.runs * (edges[1] - edges[0])
    if exact:
        pmf = poisson_binomial_pmf(shrunk_rates(result.example_errors, result.runs))
        likely = np.flatnonzero(pmf > LIKELY * pmf.max())
        return mean, edges, step * likely.astype(np.float64), pmf[likely] * scale / step
    # A normal density, four standard deviations to each side.
    std = float(measure.of(result.independent_std))
    z = np.linspace(-4, 4, 161) if std else np.zeros(1)
    return mean, edges, mean + std * z, scale * np.exp(-(z**2) / 2) / (std * math.sqrt(2 * math.pi) if std else 1.0)


def _spreads(ax: Axes, result: VarianceDecomposition, measure: DrawnUnit) -> None:
    """One standard deviation to each side, as bars above the histogram; the interval paler."""
    nothing = Interval(result.independent_std, math.nan, math.nan)
    rows = {"test set": result.test_set_interval, "independent": nothing, "distribution": result.distribution_interval}
    words = {"test set": "on this test set", "independent": "if independent", "distribution": "on new data"}
    mean, narrow = float(measure.errors(result.run_errors).mean()), is_narrow(ax)
    widest = 0.0
    for i, (name, std) in enumerate(rows.items()):
        value, _, high = measure.of(tuple(std)).tolist()
        height = 0.96 - 0.065 * i
        for reach, width, alpha in ((high, 5.0, 0.3), (value, 3.0, 1.0)):
            if math.isfinite(reach):
                widest = max(widest, reach)
                look: dict[str, Any] = {"color": series_colour(name), "lw": width, "alpha": alpha}
                look |= {"solid_capstyle": "butt"}
                look |= {"marker": "|" if reach == 0 else "", "transform": ax.get_xaxis_transform()}
                ax.plot([mean - reach, mean + reach], [height, height], gid=SPREAD, label="_std", **look)
        shown = measure.text(std.estimate) if narrow or math.isnan(high) else measure.range(std)
        for x, text, side in ((0.012, words[name], "left"), (0.988, shown, "right")):
            text = text if narrow or side == "right" else f"std {text}"
            place = {"xycoords": "axes fraction", "ha": side, "va": "center", "fontsize": 7.0 if narrow else 8.0}
            note(ax, text, (x, height), color=series_colour(name), gid=SPREAD, **place)
    left, right = ax.get_xlim()
    # Bars and histogram share the axis, centred on the mean, so that their lengths compare.
    half = max(right - mean, mean - left, (3.0 if narrow else 2.5) * widest)
    low, high = mean - half, mean + half
    if measure.bounded:  # with few runs a standard deviation may be anything: no room is left for errors that cannot be
        low, high = max(low, min(left, 0.0)), min(high, max(right, 100.0))
    ax.set_xlim(low, high)


def _examples(ax: Axes, result: VarianceDecomposition, measure: DrawnUnit) -> str:
    """Draw the errors of examples over runs; return the caption."""
    errors = measure.errors(result.example_errors)
    many = min(50, result.runs * result.repeats)
    edges = np.linspace(0, 100, many + 1) if measure.bounded else np.histogram_bin_edges(errors, 50)
    histogram(ax, errors, edges, subject_colour(), 0.75)
    ax.set_yscale("log")
    ax.yaxis.set_major_formatter(FuncFormatter(lambda y, _: format_number(y)))
    ax.set_ylim(bottom=0.7)
    if measure.bounded:
        ax.set_xlim(-1.5, 101.5)
    ax.set(xlabel=measure.label("error of an example, over runs"), ylabel="examples")
    if not measure.bounded:
        return f"{result.examples:,} examples, mean {measure.word} over {result.runs:,} runs."
    rates = result.example_errors
    never, always = int((rates == 0).sum()), int((rates == 1).sum())
    return (
        f"Of {result.examples:,} examples, {never:,} are right in all {result.runs:,} runs,"
        f" {always:,} wrong in all, {result.examples - never - always:,} in between."
    )


def plot_accuracy_distribution(
    result: AccuracyDistribution,
    ax: Axes | None = None,
    *,
    binomial: bool = True,
    legend: bool = True,
    caption: bool | None = None,
) -> Axes:
    """Draw the accuracy of runs beside independent errors and coins of the mean error.

    Parameters
    ----------
    result : AccuracyDistribution
        The result to draw.
    ax : Axes, optional
        Axes to draw on; a new figure by default.
    binomial : bool
        Draw the binomial distribution, too.
    legend : bool
        Say what is what.
    caption : bool, optional
        Say what was found under the picture; by default where there is room.
    """
    with canvas(ax, 4.6) as (ax, own):
        key = _distributions(ax, result, binomial)
        ax.set_xlabel("test accuracy of a run (%)")
        room = len(key) * (0.11 if is_narrow(ax) else 0.07) if legend and not own else 0.0
        cut = count_axis(ax, 0.05 + room, result.runs)
        measure, ratio = DrawnUnit("fraction"), format_interval(result.variance_ratio, write=decimals(2))
        text = (
            f"The luckiest run is {measure.text(result.run_range)} above the unluckiest; so many with independent"
            f" errors would span {measure.range(result.independent_range)}. Their variance is {ratio} times that of"
            f" independent errors (distance of the distributions: {format_pvalue(result.distance_pvalue)})."
        )
        finish(ax, own, key, [text, *cut, *warned(result)], legend=legend, caption=caption, loc="upper left")
    return ax


def _distributions(ax: Axes, result: AccuracyDistribution, binomial: bool) -> list[tuple[Any, str]]:
    """Draw the histogram and the curves; return their key, short if narrow."""
    step, measure, std = 100 / result.examples, DrawnUnit("fraction"), result.measured_std
    accuracy = measure.of(1 - result.run_errors)
    edges = edges_of(accuracy, step)
    counted, narrow = histogram(ax, accuracy, edges, subject_colour(), 0.35), is_narrow(ax)
    spread = measure.text(std.estimate) if narrow else measure.range(std)
    key: list[tuple[Any, str]] = [(counted[0], f"{result.runs:,} runs, std {spread}")]
    first = "independent" if narrow else "independent errors"
    shown = [(first, result.independent_pmf, result.independent_std, series_colour("independent"), "-")]
    if binomial:
        shown.append(("binomial", result.binomial_pmf, result.binomial_std, INK, "--"))
    for name, pmf, value, shade, ls in shown:
        likely = pmf > LIKELY * pmf.max()
        heights = pmf[likely] * result.runs * (edges[1] - edges[0]) / step
        line = curve(ax, 100 - result.errors[likely] * step, heights, shade, ls)
        key.append((line, f"{name}, std {measure.text(value)}"))
    return key


def edges_of(values: FloatArray, step: float) -> FloatArray:
    """Return edges of bins, by Freedman and Diaconis; whole numbers of errors if values come in steps.

    At least eight bins over the spread of the runs, where the steps allow it.
    """
    low, high = float(values.min()), float(values.max())
    if high - low < 1e-12:
        half = 5 * step or 0.05 * (abs(low) or 1.0)
        return np.linspace(low - half, low + half, 12)
    # Freedman and Diaconis; bins of whole steps, or the histogram shows a comb.
    quarter = np.subtract(*np.percentile(values, [75, 25]))
    width = 2 * quarter / len(values) ** (1 / 3) or (high - low) / 10
    width = float(np.clip(width, (high - low) / 60, (high - low) / 8))
    if step:
        width = step * max(1, round(width / step))
    start = low - (step / 2 if step else 0.0)
    bins = math.floor((high - start) / width) + 1
    return np.asarray(start + width * np.arange(bins + 1), dtype=np.float64)


def curve(ax: Axes, x: FloatArray, y: FloatArray, shade: str, ls: str) -> Any:
    """Draw a predicted distribution, in runs per bin."""
    marker = "o" if len(x) <= FEW_POINTS else ""
    (line,) = ax.plot(x, y, color=shade, lw=1.8, ls=ls, marker=marker, ms=3.5, gid=PREDICTED, label="_predicted")
    return line


def histogram(ax: Axes, values: FloatArray, edges: FloatArray, shade: str = NEUTRAL, alpha: float = 0.45) -> Any:
    """Count values between edges."""
    patches = ax.hist(values, bins=edges.tolist(), color=shade, alpha=alpha, label="_values")[2]
    for patch in cast("Any", patches):
        patch.set_gid(HISTOGRAM)
    return patches


def count_axis(ax: Axes, room: float, runs: int) -> list[str]:
    """Label counts of runs, with a share of the axis left free on top; return a remark if a curve is cut off."""
    curves = [line for line in ax.lines if line.get_gid() == PREDICTED]
    peak = max(float(np.max(np.asarray(line.get_ydata()))) for line in curves)
    tallest = max(float(b.get_height()) for b in ax.patches if isinstance(b, Rectangle))
    # Few runs spread wider than their prediction: a high narrow curve would press the bars flat.
    top = max(tallest, min(peak, TALLEST * tallest), 1.0)
    ax.set(ylim=(0.0, top / (1 - room)), ylabel=f"runs (of {runs:,})")
    ax.yaxis.set_major_locator(MaxNLocator(6, integer=True))
    if peak <= top:
        return []
    for line in curves:
        line.set_clip_path(Rectangle((0.0, 0.0), 1.0, 1 - room, transform=ax.transAxes))
    return ["A curve that is too high for the picture is cut off."]


def plot_seed_luck(
    result: SeedLuck, ax: Axes | None = None, *, legend: bool = True, caption: bool | None = None
) -> Axes:
    """Draw each run's errors on the two sets, the best on the first marked, with what they gain.

    Parameters
    ----------
    result : SeedLuck
        The result to draw.
    ax : Axes, optional
        Axes to draw on; a new figure by default.
    legend : bool
        Say what is what.
    caption : bool, optional
        Say what was found under the picture; by default where there is room.
    """
    measure = DrawnUnit(result.unit)
    first, second = measure.errors(result.first_errors), measure.errors(result.second_errors)
    limit = np.sort(result.first_errors)[max(1, math.ceil(result.top * len(first) - 1e-9)) - 1]
    picked = result.first_errors <= limit
    pair = result.split == "pair"
    names = ("the first test set", "the second test set") if pair else ("part 1", "part 2")
    with canvas(ax, 5.0) as (ax, own):
        _cloud(ax, first[~picked], second[~picked], NEUTRAL, RUNS, len(first))
        _cloud(ax, first[picked], second[picked], colour(0), PICKED, len(first))
        gains = [result.gain_first, result.gain_second]
        look: dict[str, Any] = {"linewidth": 1.4, "zorder": 3.5, "gid": MARK, "label": "_mean"}
        for values, gain, draw in zip((first, second), gains, (ax.axvline, ax.axhline), strict=True):
            mean = float(values.mean())
            draw(mean, color="#4D4D4D", linestyle="--", **look)
            draw(mean - float(measure.errors(gain.estimate)), color=colour(0), **look)
        ax.set(xlabel=measure.label(f"error on {names[0]}"), ylabel=measure.label(f"error on {names[1]}"))
        key = [
            (key_dot(colour(0), size=4.5), f"best {result.top:.0%}"),
            (Line2D([], [], color=colour(0), linewidth=1.4), "their mean"),
            (key_dot(NEUTRAL, size=4.5), "the others"),
            (Line2D([], [], color="#4D4D4D", linewidth=1.4, linestyle="--"), "mean of all runs"),
        ][:: 2 if is_narrow(ax) else 1]
        correlation, expected = format_interval(result.correlation, write=decimals(2)), result.expected.estimate
        lines = [
            f"{result.runs:,} runs; correlation {correlation}, where {signed(expected, 2)} would follow from"
            " the variance that is real.",
            f"The best {result.top:.0%} on the first are better than the mean by {measure.range(result.gain_first)}"
            f" there, and by {measure.range(result.gain_second)} on the second.",
            *warned(result),
        ]
        if legend and not own:
            raise_top(ax, 1 if is_narrow(ax) else 2)
        finish(ax, own, key, lines, legend=legend, caption=caption, columns=2, loc="upper left")
    return ax


def _cloud(ax: Axes, x: FloatArray, y: FloatArray, shade: str, gid: str, many: int) -> None:
    """Draw a dot per run, smaller and paler if there are many; pixels if there are very many."""
    size, alpha = float(np.clip(5000 / many, 3.0, 16.0)), float(np.clip(150 / many**0.8, 0.1, 0.75))
    look: dict[str, Any] = {"linewidths": 0.0, "zorder": 2.5, "rasterized": many > MANY, "gid": gid}
    ax.scatter(x, y, s=size, color=shade, alpha=alpha, label="_runs", **look)


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
        The result to draw.
    ax : Axes, optional
        Axes to draw on; a new figure by default.
    pair : tuple of str, optional
        Draw the runs on these two test sets instead of the matrix.
    true : bool
        Correlations of true errors instead of test errors.
    caption : bool, optional
        Say what was found under the picture; by default where there is room.
    """
    size = len(result.names)
    with canvas(ax, *((4.6, 7.0) if pair else (2.4 + 0.5 * size, 3.4 + 0.6 * size))) as (ax, own):
        if pair is not None:
            finish(ax, own, [], [_pair(ax, result, pair)], caption=caption)
            return ax
        _matrix(ax, result, true)
        ticks = safe_names(result.names, 18 if not is_narrow(ax) else 11)
        ax.set_yticks(np.arange(size), labels=ticks)
        ax.set_xticks(np.arange(size), labels=ticks, rotation=40, ha="right", rotation_mode="anchor")
        ax.tick_params(length=0)
        if is_narrow(ax):
            ax.tick_params(labelsize=8.0)
        ax.set(xlim=(-0.5, size - 0.5), ylim=(size - 0.5, -0.5))
        ax.spines[:].set_visible(False)
        ax.set_xlabel(f"correlation of the {'true' if true else 'test'} {DisplayUnit(result.unit).word} of runs")
        star = f"Star: not 0 (Holm over {format_count(len(result.pairs), 'pair')})"
        star = "Brackets, question mark: a true variance does not differ significantly from 0" if true else star
        lines = [f"{star}. {result.runs:,} runs, the same on each test set.", *warned(result)]
        finish(ax, own, [], lines, caption=caption, indent=1.2)
    return ax


def _matrix(ax: Axes, result: TestSetComparison, true: bool) -> None:
    place = {name: i for i, name in enumerate(result.names)}
    values = np.full((len(place), len(place)), np.nan)
    shown = [["" for _ in place] for _ in place]
    for p in result.pairs:
        i, j = place[p.first], place[p.second]
        r = p.true_correlation if true else p.correlation
        values[i, j] = values[j, i] = r.estimate
        text = "?" if math.isnan(r.estimate) else signed(r.estimate, 2)
        if true and not p.stable and text != "?":
            text = f"({text})"
        star = "*" if not true and p.adjusted < 1 - result.level else ""
        shown[i][j] = shown[j][i] = text + star
    ax.imshow(values, cmap="RdBu_r", vmin=-1.0, vmax=1.0, aspect="auto", gid=CELL)
    size = 7.0 if len(place) > 8 else 8.0 if is_narrow(ax) else 9.0
    for i, row in enumerate(shown):
        for j, text in enumerate(row):
            shade = "white" if abs(values[i, j]) > PALE else "black"
            ax.text(j, i, text, ha="center", va="center", color=shade, fontsize=size, gid=CELL)


def _pair(ax: Axes, result: TestSetComparison, names: tuple[str, str]) -> str:
    """Draw the runs on two test sets; return the caption."""
    found = [p for p in result.pairs if {p.first, p.second} == set(names)]
    if not found:
        sets = ", ".join(map(repr, result.names))
        raise InputError(f"is not a pair of test sets: use two of {sets}.", argument="pair", value=names)
    pair, units = found[0], [DrawnUnit(result.decompositions[name].unit) for name in names]
    x, y = (m.errors(result.run_errors[name]) for m, name in zip(units, names, strict=True))
    _cloud(ax, x, y, colour(0), RUNS, len(x))
    short = safe_names(names, 30)
    ax.set(xlabel=units[0].label(f"error on {short[0]}"), ylabel=units[1].label(f"error on {short[1]}"))
    correlation, true = (format_interval(r, write=decimals(2)) for r in (pair.correlation, pair.true_correlation))
    return (
        f"{result.runs:,} runs on {shorten(clean(pair.first), 40)} and {shorten(clean(pair.second), 40)}: correlation"
        f" {correlation}, R² = {pair.r_squared:.3f} ({format_pvalue(pair.adjusted)} after Holm)"
        f"{f'; of true errors {true}' if pair.stable else ''}."
    )
