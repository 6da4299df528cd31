"""Pictures of tasks by their scratch curves, the spread over runs, the blind guess, win rates, predicted images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike, NDArray

from curvewise.drawing.axes import is_narrow, view
from curvewise.drawing.labels import clean, safe_names, safe_text, shorten
from curvewise.drawing.marks import beside, choose_some, draw_estimates, ends_of, finish, warned
from curvewise.drawing.panels import signed
from curvewise.drawing.rows import rows_of
from curvewise.drawing.style import NEUTRAL, canvas, colour, dashes, style
from curvewise.errors import InputError
from curvewise.text import format_interval, format_level, format_number, format_size
from curvewise.transfer.blind import BlindGuess
from curvewise.transfer.images import PredictedImages, compare_images
from curvewise.transfer.plot.panels import (
    BAND,
    CROWD,
    GREY,
    QUIET,
    RISK,
    X_LABEL,
    Y_LABEL,
    CurveEnd,
    MethodLook,
    choose_methods,
    compact,
    control_lines,
    draw_curve,
    end_at,
    finish_panels,
    interval_bars,
    panels_of,
    paths_of,
    risk_limits,
    room_for_controls,
    shifts,
    size_axis,
    size_limits,
    write_words,
)
from curvewise.transfer.result import RunSpread
from curvewise.transfer.tasks import TaskRanking
from curvewise.transfer.wins import WinRate, WinRates
from curvewise.types.results import FloatArray

MOST_CLASSES = 30  # of the blind guess
INPUT, TARGET = "input", "target"  # columns of predicted images
MOST_ROWS = 40  # of predicted images
GAP, ROOM = 0.06, 0.24  # between columns, and under a row for its losses, in widths of an image
CELL = 1.15  # inches

RATE = "curvewise-rate"
IMAGE = "curvewise-image"
RUN = "curvewise-run"
HALF = "curvewise-half"
WON = "examples won against scratch (%)"
HALF_WON = 50.0  # a method that wins half of the examples is no better than scratch
HALF_LINE: dict[str, Any] = {"color": "black", "lw": 1.4, "zorder": 0.9, "label": "_half"}


def plot_tasks(
    result: TaskRanking,
    ax: Axes | None = None,
    *,
    at: float | None = None,
    task: str | Sequence[str] | None = None,
    legend: bool = True,
    caption: bool | None = None,
) -> Axes:
    """Draw the calibrated risk of scratch for each task, and the size at which it has fallen.

    Parameters
    ----------
    result : TaskRanking
        What to draw.
    ax : Axes, optional
        Where; a new figure by default.
    at : float, optional
        The calibrated risk whose training size is marked, one of the levels of the result; the
        one that orders the tasks by default.
    task : str or sequence of str, optional
        Only these.
    legend : bool
        Name the tasks, with the size in brackets.
    caption : bool, optional
        Say what is shown under the picture; by default where there is room.

    Returns
    -------
    Axes
        The Axes given, or the new ones.

    Examples
    --------
    >>> from curvewise.transfer.measure import measure_transfer
    >>> runs = {
    ...     "method": ["scratch"] * 4 + ["swav"] * 4 + ["color"] * 4,
    ...     "n": [100, 100, 1000, 1000] * 3,
    ...     "risk": [0.8, 0.82, 0.5, 0.49, 0.6, 0.61, 0.45, 0.44, 0.7, 0.71, 0.48, 0.5],
    ... }
    >>> measured = measure_transfer(runs, blind=0.9, maximal=0.1)
    >>> from curvewise.transfer.tasks import rank_tasks
    >>> plot_tasks(rank_tasks(measured)).get_ylabel()
    'calibrated risk of scratch'
    """
    level = result.ordered_by if at is None else at
    if not any(np.isclose(level, known) for known in result.levels):
        there = ", ".join(f"{v:g}" for v in result.levels)
        raise InputError(f"is not among the levels of the result: use one of {there}.", argument="at", value=at)
    wanted = choose_some("task", task, result.order)
    kept = [k for k, name in enumerate(result.order) if name in wanted]
    names = safe_names(result.order, 24)
    with canvas(ax) as (ax, own):
        curves = [result.curves[k] for k in kept]
        sizes = np.unique(np.concatenate([c.n for c in curves]))
        control_lines(ax)
        ax.axhline(level, color=NEUTRAL, lw=0.9, ls=":", zorder=0.8, gid="curvewise-level", label="_level")
        ends = []
        for k, curve in zip(kept, curves, strict=True):
            shade = colour(k) if len(result.order) <= CROWD or task is not None else GREY
            draw_curve(ax, curve, MethodLook(shade, names[k]), None, scratch=False)
            found = result.rows[k].at(level)
            n, low, high = found.n
            # A diamond where the level is reached, with its interval along the level.
            bar = np.clip([low, high], found.smallest, found.largest)
            if np.isfinite(bar).all() and bar[1] > bar[0]:
                ax.hlines(level, *bar, color=shade, lw=3.2, alpha=0.45, zorder=2.2, gid="curvewise-span")
            size = "unknown"
            if found.smallest <= n <= found.largest:
                mark: dict[str, Any] = {"color": shade, "ms": 7.0, "mec": "white", "mew": 0.8, "zorder": 2.8}
                ax.plot([n], [level], "D", gid="curvewise-needed", label="_needed", **mark)
                size = format_size(n)
            elif not np.isnan(n):
                size = f"≤ {compact(found.smallest)}" if n < found.smallest else f"> {compact(found.largest)}"
            look = MethodLook(QUIET if shade == GREY else shade, f"{names[k]} ({size})")
            ends.append(end_at(curve.n, curve.calibrated, look))
        size_axis(ax, sizes, size_limits([sizes])[0])
        bounds = [v for c in curves for v in (*c.low, *c.high) if np.isfinite(v)]
        ax.set_ylim(*room_for_controls(*risk_limits(curves, bounds)))
        said = f"Diamonds, and numbers beside the names: the size at which calibrated risk is {level:g}"
        share = f"{format_level(result.level)} intervals"
        said += f"; bands, and thick bars along the dotted line: {share}." if bounds else "."
        labels = (X_LABEL, f"{Y_LABEL} of {safe_text(curves[0].method, 24)}")
        return finish_panels([ax], own, [""], labels, [said, *warned(result)], caption, [ends] if legend else None)


# Means over runs with their standard deviation (figure 3 of the paper).


def plot_spread(
    result: RunSpread,
    ax: Axes | None = None,
    *,
    task: str | Sequence[str] | None = None,
    methods: str | Sequence[str] | None = None,
    highlight: str | Sequence[str] | None = None,
    scratch: str | None = None,
    legend: bool = True,
    caption: bool | None = None,
) -> Axes:
    """Draw the mean over runs with the standard deviation, a panel for each task.

    Parameters
    ----------
    result : RunSpread
        What to draw.
    ax : Axes, optional
        Where, for one task; a new figure with a panel for each by default.
    task : str or sequence of str, optional
        Only these.
    methods : str or sequence of str, optional
        Only these; by default all that were run twice at some size.
    highlight : str or sequence of str, optional
        Methods in colour; the others are grey.
    scratch : str, optional
        The method that is black; by default the one that starts from nothing.
    legend : bool
        Name the methods.
    caption : bool, optional
        Say what is shown under the picture; by default where there is room.

    Returns
    -------
    Axes
        The Axes given, or those of the first panel.

    Examples
    --------
    >>> from curvewise.transfer.measure import measure_transfer
    >>> runs = {
    ...     "method": ["scratch"] * 4 + ["swav"] * 4 + ["color"] * 4,
    ...     "n": [100, 100, 1000, 1000] * 3,
    ...     "risk": [0.8, 0.82, 0.5, 0.49, 0.6, 0.61, 0.45, 0.44, 0.7, 0.71, 0.48, 0.5],
    ... }
    >>> measured = measure_transfer(runs, blind=0.9, maximal=0.1)
    >>> from curvewise.transfer.result import measure_spread
    >>> plot_spread(measure_spread(measured)).get_ylabel()
    'calibrated risk'
    """
    scratch = scratch or result.scratch
    every = tuple(dict.fromkeys(r.method for r in result.rows))
    again = tuple(dict.fromkeys(r.method for r in result.rows if r.runs > 1))
    if methods is None and not again:
        raise InputError("result has no spread to draw: no method was run twice at one size of a task.")
    wanted = choose_some("methods", again if methods is None else methods, every)
    drawn = [r for r in result.rows if r.method in wanted]
    tasks = choose_some("task", task, tuple(dict.fromkeys(r.task for r in drawn)))
    known = tuple(m for m in every if m != scratch)
    order = [m for m in wanted if m != scratch]
    with style():
        chosen = choose_methods(known, scratch, tasks, wanted, highlight, order)
        own = ax is None
        axes = panels_of(ax, tasks)
        groups = [paths_of([r for r in drawn if r.task == name], chosen, scratch) for name in tasks]
        sizes = [np.array([r.n for path in group.values() for r in path]) for group in groups]
        ends: list[list[CurveEnd]] = []
        for panel, group, sizes_here, span in zip(axes, groups, sizes, size_limits(sizes), strict=True):
            if result.calibrated:
                control_lines(panel)
            aside = shifts(chosen, list(group))
            ends.append([])
            for method, path in group.items():
                look, black = chosen.looks[method], method == scratch
                n, mean, std = np.array([(r.n, r.mean, r.std.estimate) for r in path]).T
                z, width = (2.6, 2.0) if black else (1.5, 0.9) if look.back else (2.0, 1.3)
                # A bar of one standard deviation to both sides of each mean.
                interval_bars(panel, n, mean - std, mean + std, look.shade, aside.get(method, 0.0), z - 0.1, width=2.2)
                dots: dict[str, Any] = {"marker": "o", "ms": 3.4, "mew": 0.0, "label": "_mean", "gid": "curvewise-mean"}
                panel.plot(n, mean, color=look.shade, lw=width, zorder=z, **dots)
                if chosen.named(method):
                    ends[-1].append(end_at(n, mean, look, black))
            size_axis(panel, sizes_here, span)
        # Limits with all means and their spread, and the controls of calibrated risks.
        reach = [r.mean + sign * np.nan_to_num(r.std.estimate) for r in drawn for sign in (-1.0, 1.0)]
        reach += [0.0, 1.0] if result.calibrated else []
        low, high = min(reach), max(reach)
        pad = 0.04 * (high - low) or 0.1
        limits = room_for_controls(low, high) if result.calibrated else (low - pad, high + pad)
        for panel in axes:
            panel.set_ylim(*limits)
        said = "Dots: means over runs; bars: one standard deviation over runs to both sides."
        if left := len(every) - len(wanted):
            why = "not chosen" if methods is not None else "run once at every size"
            said += f" {left} method{' is' if left == 1 else 's are'} left out: {why}."
        if pairs := [p for p in result.pairs if p.task in tasks and {p.one, p.two} <= {*wanted}]:
            said += f" In {sum(p.outside for p in pairs)} of {len(pairs)} pairs of methods at a size each mean lies "
            said += "outside the other's bar."
        labels = (X_LABEL, Y_LABEL if result.calibrated else safe_text(result.unit, 30))
        lines = [said, chosen.note, *warned(result)]
        return finish_panels(axes, own, tasks, labels, lines, caption, ends if legend else None)


# The blind guess: its constant for each class, or its losses.


def plot_blind_guess(result: BlindGuess, ax: Axes | None = None, *, caption: bool | None = None) -> Axes:
    """Draw the frequencies that are guessed; where there are none, the losses of the examples.

    Parameters
    ----------
    result : BlindGuess
        What to draw.
    ax : Axes, optional
        Where; a new figure by default.
    caption : bool, optional
        Say what is shown under the picture; by default where there is room.

    Returns
    -------
    Axes
        The Axes given, or the new ones.

    Examples
    --------
    >>> from curvewise.transfer.blind import blind_guess
    >>> ax = plot_blind_guess(blind_guess(["cat", "dog", "dog", "dog"] * 20, "cross-entropy"))
    >>> [name.get_text() for name in ax.get_yticklabels()]
    ['dog', 'cat']
    """
    # Frequencies of the classes, if these are the constant.
    value, risk, indent = np.asarray(result.prediction), result.risk, 0.0
    shares = value.dtype.kind == "f" and value.shape == (len(result.classes),) and len(value) > 1
    said = f"The best constant for {shorten(clean(result.loss), 30)} has a risk of "
    said += format_interval(risk)
    lines = [f"{said} ({format_level(risk.level)} interval, {result.examples:,} examples)."]
    with canvas(ax, 1.7 + 0.24 * min(len(value), MOST_CLASSES) if shares else 3.6) as (ax, own):
        if shares:  # bars from the most frequent class on
            order = np.argsort(-value, kind="stable")[:MOST_CLASSES]
            names = safe_names([str(result.classes[i]) for i in order], 14 if is_narrow(ax) else 28)
            ax.barh(np.arange(len(order)), 100 * value[order], height=0.72, color=colour(0), gid="curvewise-frequency")
            indent = rows_of(ax, names)
            ax.set_xlabel("guessed frequency (%)")
            if len(value) > MOST_CLASSES:
                lines.append(f"The {MOST_CLASSES} most frequent of {len(value)} classes.")
        else:
            _draw_losses(ax, result)
        finish(ax, own, [], [*lines, *warned(result)], caption=caption, indent=indent)
    return ax


def _draw_losses(ax: Axes, result: BlindGuess) -> None:
    """Draw the distribution of the losses of examples around the risk."""
    known = result.losses[np.isfinite(result.losses)]
    if len(known):
        bins = int(np.clip(np.sqrt(len(known)), 8, 60))
        ax.hist(known, bins=bins, color=NEUTRAL, alpha=0.55, gid="curvewise-losses")
    risk, shade = result.risk, colour(0)
    if np.isfinite(risk.width):
        ax.axvspan(risk.low, risk.high, color=shade, alpha=0.25, linewidth=0.0, gid=RISK)
    ax.axvline(risk.estimate, color=shade, lw=1.8, gid=RISK, label="_risk")
    text, top = f"risk {format_number(risk.estimate, 3)}", (risk.estimate, 0.98)
    beside(ax, text, top, (4, 0), xycoords=ax.get_xaxis_transform(), va="top", color=shade)
    ax.set(xlabel=safe_text(f"loss of an example ({result.unit})", 60), ylabel="examples")
    ax.yaxis.set_major_locator(MaxNLocator(5, integer=True))


# Shares of test examples on which a method beats scratch.


def plot_win_rates(
    result: WinRates | Mapping[str, WinRates],
    ax: Axes | None = None,
    *,
    legend: bool = True,
    caption: bool | None = None,
) -> Axes:
    """Draw the share of test examples on which a method beats scratch, by training size.

    Parameters
    ----------
    result : WinRates, or mapping of str to WinRates
        What to draw; several methods by their names.
    ax : Axes, optional
        Where; a new figure by default.
    legend : bool
        Name the methods, where there are several.
    caption : bool, optional
        Say what is shown under the picture; by default where there is room.

    Returns
    -------
    Axes
        The Axes given, or the new ones.

    Examples
    --------
    >>> from curvewise.transfer.wins import win_rates
    >>> rng = np.random.default_rng(0)
    >>> def losses(mean):
    ...     return rng.normal(mean, 1.0, (3, 200))
    >>> found = win_rates({100: (losses(0.0), losses(0.8)), 1000: (losses(0.0), losses(0.1))})
    >>> ax = plot_win_rates(found)
    >>> ax.get_ylabel()
    'examples won against scratch (%)'
    """
    given = dict(result) if isinstance(result, Mapping) else {"": result}
    if not given:
        raise InputError("is empty: give at least one WinRates.", argument="result")
    rows = list(given.values())
    drawn = [
        tuple(100 * v for v in ends_of(r.rate for r in one.rates)) for one in rows
    ]  # rate, low and high in percent
    with canvas(ax) as (ax, own):
        ax.axhline(HALF_WON, gid=HALF, **HALF_LINE)
        at: dict[str, Any] = {"xycoords": ax.get_yaxis_transform(), "ha": "left", "va": "bottom", "gid": HALF}
        beside(ax, "as often as scratch", (0.015, HALF_WON), (0, 3), **at)
        for i, one in enumerate(rows):
            _win_curve(ax, one, drawn[i], i, bands=len(rows) <= 3, dots=len(rows) == 1)
        sizes = np.unique(np.concatenate([one.n for one in rows]))
        size_axis(ax, sizes, size_limits([sizes])[0])
        # Limits with all rates and their intervals, and one half.
        values = np.concatenate([[HALF_WON], *(v for three in drawn for v in three)])
        low, high = float(np.min(values[np.isfinite(values)])), float(np.max(values[np.isfinite(values)]))
        pad = max(0.06 * (high - low), 1.0)
        ax.set_ylim(max(low - pad, -2.0), min(high + pad, 102.0))
        said = "Share of test examples with a lower loss than from scratch, ties half."
        if any(np.isfinite(r.rate.width) for one in rows for r in one.rates):
            said += f" {format_level(rows[0].level)} intervals; hollow: ½ is not excluded."
        if len(rows) == 1 and any(r.runs > 1 for r in rows[0].rates):
            said += " Small dots: single runs."
        alone = [rows[0].end.text, *warned(rows[0])] if len(rows) == 1 else []
        names = safe_names(list(given), 24)
        ends = [end_at(one.n, drawn[i][0], MethodLook(colour(i), names[i])) for i, one in enumerate(rows)]
        named = [ends] if legend and isinstance(result, Mapping) else None
        return finish_panels([ax], own, [""], (X_LABEL, WON), [said, *alone], caption, named)


def _win_curve(ax: Axes, result: WinRates, drawn: Sequence[FloatArray], place: int, bands: bool, dots: bool) -> None:
    """Draw rates with intervals, all in percent; hollow where ½ is not excluded."""
    rate, low, high = drawn
    shade = colour(place)
    if bands and np.isfinite(low + high).all() and len(rate) > 1:
        ax.fill_between(result.n, low, high, color=shade, alpha=0.18, linewidth=0.0, zorder=1.2, gid=BAND)
    else:
        interval_bars(ax, result.n, low, high, shade, 0.0, 1.9)
    for n, one in zip(result.n.tolist(), result.rates, strict=True) if dots else ():
        if one.runs > 1:
            small: dict[str, Any] = {"ls": "none", "marker": "o", "ms": 2.8, "mew": 0.0, "color": NEUTRAL}
            ax.plot(np.full(one.runs, n), 100 * one.by_run, gid=RUN, label="_run", **small)
    look: dict[str, Any] = {"color": shade, "zorder": 2.2, "label": "_rate"}
    ax.plot(result.n, rate, lw=1.8, gid=RATE, ls=dashes(place), **look)
    sure = (low > HALF_WON) | (high < HALF_WON)
    look |= {"ls": "none", "marker": "o", "ms": 6.0, "mec": shade}
    for part, face in ((sure, shade), (~sure, "white")):
        ax.plot(result.n[part], rate[part], mfc=face, gid=RATE + "-dot", **look)


def plot_win_rate(result: WinRate, ax: Axes | None = None, *, caption: bool | None = None) -> Axes:
    """Draw one win rate with its interval, among those of single runs.

    Parameters
    ----------
    result : WinRate
        What to draw.
    ax : Axes, optional
        Where; a new figure by default.
    caption : bool, optional
        Say what is shown under the picture; by default where there is room.

    Returns
    -------
    Axes
        The Axes given, or the new ones.

    Examples
    --------
    >>> from curvewise.transfer.wins import win_rate
    >>> losses = np.random.default_rng(0).normal(size=(2, 6, 300))
    >>> plot_win_rate(win_rate(losses[0] - 1.0, losses[1])).get_xlabel()
    'examples won against scratch (%)'
    """
    rate = result.rate
    with canvas(ax, 1.9) as (ax, own):
        ax.axvline(HALF_WON, gid=HALF, **HALF_LINE)
        single = 100 * result.by_run if result.runs > 1 else np.array([])
        ends = 100 * np.array([[rate.estimate], [rate.low], [rate.high]])
        known = single[np.isfinite(single)].tolist()
        limits = view(*ends, HALF_WON, *known)
        look: dict[str, Any] = {"ls": "none", "marker": "o", "mew": 0.0, "label": "_rate"}
        ax.plot(single, np.full(len(single), 0.35), color=NEUTRAL, ms=4.0, gid=RUN, **look)
        draw_estimates(ax, [0.0], [*ends], colour(0), limits=limits, gid=RATE, size=7.0, width=2.2)
        won = WON.replace("scratch", safe_text(result.names[1], 24))
        ax.set(xlim=limits, ylim=(-0.5, 0.7), yticks=[], xlabel=won)
        ax.spines["left"].set_visible(False)
        text = f"{result.examples:,} test examples, ties half"
        text += f"; bar: {format_level(result.level)} interval" if np.isfinite(rate.width) else ""
        text += "; small dots: single runs." if result.runs > 1 else "."
        write_words([ax], own, [text, *warned(result)], caption)
    return ax


# The grid of predicted images: inputs, predictions of each method, and the targets (figure 1 of the paper).


def plot_predictions(
    predictions: PredictedImages | Mapping[str, ArrayLike | Mapping[int, ArrayLike]],
    ax: Axes | None = None,
    *,
    targets: ArrayLike | None = None,
    inputs: ArrayLike | None = None,
    examples: Sequence[int] | None = None,
    channel: int | None = None,
    losses: bool = True,
    caption: bool | None = None,
) -> Axes:
    """Draw predicted images in a grid: a row for each example and training size, a column for each method.

    Parameters
    ----------
    predictions : PredictedImages, or dict of str to array
        What to draw: from a study :func:`curvewise.study.predicted_images`; or the images of each
        method, with ``targets`` and perhaps ``inputs``, as :func:`compare_images` takes them.
    ax : Axes, optional
        Where; a new figure by default.
    targets, inputs, examples
        With arrays: what was to be predicted, from what, and which of them to draw.
    channel : int, optional
        The channel of predictions and targets to draw. By default one is drawn in colours from
        low to high, three as red, green and blue, and of others the first.
    losses : bool
        Write its loss under each predicted image.
    caption : bool, optional
        Say what is shown under the picture; by default where there is room.

    Returns
    -------
    Axes
        The Axes given, or the new ones.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> depth = rng.random((2, 1, 8, 8))
    >>> noisy = {"scratch": depth + rng.normal(0, 0.2, depth.shape), "pretrained": depth}
    >>> ax = plot_predictions(noisy, targets=depth)
    >>> [label.get_text() for label in ax.get_xticklabels()]
    ['scratch', 'pretrained', 'target']
    """
    if isinstance(predictions, PredictedImages):
        if any(given is not None for given in (targets, inputs, examples)):
            raise InputError("has its targets, inputs and examples already: leave them out.", argument="predictions")
        found = predictions
    elif targets is None:
        raise InputError("are missing: give the images that were to be predicted.", argument="targets")
    else:
        found = compare_images(predictions, targets, inputs, examples=examples)
    wanted = found.targets
    channels, height, width = wanted.shape[1:]
    if channel is not None and not 0 <= channel < channels:
        raise InputError(f"the images have channels 0 to {channels - 1}.", argument="channel", value=channel)
    count = len(found.positions) * len(found.sizes)
    if count > MOST_ROWS:
        problem = f"make {count} rows of images: at most {MOST_ROWS} are drawn."
        raise InputError(f"{len(found.positions)} examples {problem}", argument="examples", remedy="Choose fewer.")
    one = channel if channel is not None else None if channels == 3 else 0
    low, high = (float(end(wanted if one is None else wanted[:, one])) for end in (np.min, np.max))
    names = [*([INPUT] if found.inputs is not None else []), *found.methods, TARGET]
    tall = height / width
    with canvas(ax, CELL * (tall + ROOM) * count + 0.9, CELL * len(names) + 0.9) as (ax, own):
        middles, top = [], 0.0
        for i, example in enumerate(found.positions):
            top += 0.15 if i and len(found.sizes) > 1 else 0.0
            for n in found.sizes:
                for column, name in enumerate(names):
                    left = column * (1 + GAP)
                    place = (left, left + 1, top + tall, top)
                    if name == INPUT and column == 0 and found.inputs is not None:
                        _draw_image(ax, found.inputs[i], place, None)
                        continue
                    images = wanted if column == len(names) - 1 else found.images_of(name, n)
                    if images is None:  # of a size that the method was not trained on
                        continue
                    _draw_image(ax, images[i], place, (low, high), one)
                    if losses and column < len(names) - 1:
                        loss = found.loss_of(name, example, n)
                        text = f"{loss:.3g}" if np.isfinite(loss) else "unknown"
                        at = (left + 0.5, top + tall + 0.02)
                        ax.text(*at, text, ha="center", va="top", fontsize=7.5)
                label = [f"image {example}"] if len(found.positions) > 1 or not n else []
                middles.append((top + tall / 2, "\n".join([*label, *([f"n = {compact(n)}"] if n else [])])))
                top += tall + ROOM
        ax.set_aspect("equal")
        ax.set(xlim=(0, len(names) * (1 + GAP) - GAP), ylim=(top, 0))
        shown = safe_names(names, 14)
        ax.set_xticks([k * (1 + GAP) + 0.5 for k in range(len(names))], labels=shown)
        ax.set_yticks([at for at, _ in middles], labels=[text for _, text in middles])
        ax.tick_params(length=0, top=False, labeltop=True, bottom=False, labelbottom=False)
        ax.spines[:].set_visible(False)
        said = f"Under each image its {found.loss.upper()} loss." if losses else ""
        range_of = f"from {signed(low)} to {signed(high)}, the range of the targets."
        part = f"Channel {one} of {channels}. " if one is not None and channels > 1 else ""
        finish(ax, own, [], [f"{part}Colours run {range_of} {said}", *warned(found)], caption=caption)
    return ax


def _draw_image(
    ax: Axes,
    image: NDArray[Any],
    place: tuple[float, ...],
    ends: tuple[float, float] | None,
    channel: int | None = None,
) -> None:
    """Draw an image in its place: within the range of the targets, or an input within its own."""
    look: dict[str, Any] = {"extent": place, "aspect": "equal", "interpolation": "nearest", "gid": IMAGE}
    if ends is None:
        ends = (0.0, 255.0) if image.dtype == np.uint8 else (float(image.min()), float(image.max()))
        if len(image) != 3:  # grey; of two channels, or more than three, their mean
            ax.imshow(image.mean(axis=0), cmap="gray", vmin=ends[0], vmax=ends[1], **look)
            return
    elif channel is not None:
        ax.imshow(image[channel], cmap="viridis", vmin=ends[0], vmax=ends[1], **look)
        return
    span = ends[1] - ends[0] or 1.0
    ax.imshow(np.clip((np.moveaxis(image, 0, 2) - ends[0]) / span, 0, 1), **look)
