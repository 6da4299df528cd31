"""Pictures of tasks by their scratch curves, of the spread over runs, and of the blind guess."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from curvewise.drawing.axes import is_narrow, rows_of
from curvewise.drawing.labels import clean, safe_names, safe_text, shorten
from curvewise.drawing.marks import finish, note
from curvewise.drawing.style import NEUTRAL, colour, new_axes, style
from curvewise.errors import InputError
from curvewise.text import format_interval, format_number
from curvewise.transfer.blind import BlindGuess
from curvewise.transfer.plot.panels import (
    CROWD,
    GREY,
    QUIET,
    RISK,
    X_LABEL,
    Y_LABEL,
    CurveEnd,
    DrawnMethods,
    MethodLook,
    choose_methods,
    compact,
    control_lines,
    draw_curve,
    end_at,
    interval_bars,
    name_tasks,
    outer_labels,
    panels_of,
    paths_of,
    several_of,
    shifts,
    size_axis,
    size_limits,
    warned,
    write_names,
    write_words,
)
from curvewise.transfer.result import RiskCurve
from curvewise.transfer.spread import MethodSpread, RunSpread
from curvewise.transfer.tasks import TaskRanking
from curvewise.types.results import Interval
from curvewise.types.units import FloatArray

MOST_CLASSES = 30  # of the blind guess

NEEDED = "curvewise-needed"
LEVEL = "curvewise-level"
SPAN = "curvewise-span"
MEAN = "curvewise-mean"
FREQUENCY = "curvewise-frequency"
LOSSES = "curvewise-losses"


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
    wanted = several_of("task", task, result.order)
    kept = [k for k, name in enumerate(result.order) if name in wanted]
    names = safe_names(result.order, 24)
    with style():
        own = ax is None
        ax = ax or new_axes()
        curves = [result.curves[k] for k in kept]
        sizes = np.unique(np.concatenate([c.n for c in curves]))
        control_lines(ax)
        ax.axhline(level, color=NEUTRAL, lw=0.9, ls=":", zorder=0.8, gid=LEVEL, label="_level")
        ends = []
        for k, curve in zip(kept, curves, strict=True):
            shade = colour(k) if len(result.order) <= CROWD or task is not None else GREY
            draw_curve(ax, curve, MethodLook(shade, names[k]), None, scratch=False)
            found = result.rows[k].at(level)
            _needed(ax, found.n, level, shade, (found.smallest, found.largest))
            n = found.n.estimate
            size = compact(n) if found.smallest <= n <= found.largest else "unknown"
            size = f"≤ {compact(found.smallest)}" if n < found.smallest else size
            size = f"> {compact(found.largest)}" if n > found.largest else size
            look = MethodLook(QUIET if shade == GREY else shade, f"{names[k]} ({size})")
            ends.append(end_at(curve.n, curve.calibrated, look))
        size_axis(ax, sizes, size_limits([sizes])[0])
        ax.set_ylim(*_task_limits(curves))
        ax.set_xlabel(X_LABEL)
        ax.set_ylabel(f"{Y_LABEL} of {safe_text(curves[0].method, 24)}")
        write_words([ax], own, _task_caption(result, level, curves), caption)
        if legend:
            write_names([ax], [ends])
    return ax


def _needed(ax: Axes, n: Interval, level: float, shade: str, span: tuple[float, float]) -> None:
    """Draw a diamond where the level is reached, with its interval along the level."""
    ends = np.clip([n.low, n.high], *span)
    if np.isfinite(ends).all() and ends[1] > ends[0]:
        ax.hlines(level, *ends, color=shade, lw=3.2, alpha=0.45, zorder=2.2, gid=SPAN)
    if span[0] <= n.estimate <= span[1]:
        look: dict[str, Any] = {"color": shade, "ms": 7.0, "mec": "white", "mew": 0.8}
        ax.plot([n.estimate], [level], "D", zorder=2.8, gid=NEEDED, label="_needed", **look)


def _task_limits(curves: Sequence[RiskCurve]) -> tuple[float, float]:
    means = np.concatenate([[0.0, 1.0], *(c.calibrated for c in curves)])
    ends = np.concatenate([e for c in curves for e in (c.low, c.high)])
    low, high = float(np.nanmin(means)), float(np.nanmax(means))
    ends = np.clip(ends[np.isfinite(ends)], low - 0.15, high + 0.15)
    low, high = min([low, *ends.tolist()]), max([high, *ends.tolist()])
    return low - 0.04, max(high + 0.03, 1.08)


def _task_caption(result: TaskRanking, level: float, curves: Sequence[RiskCurve]) -> list[str]:
    said = f"Diamonds, and numbers behind names: the size at which calibrated risk is {level:g}"
    known = any(np.isfinite(c.low).any() for c in curves)
    share = f"{100 * result.level:.4g}% intervals"
    said += f"; bands, and thick bars along the dotted line: {share}." if known else "."
    return [said, *warned(result)]


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
    >>> from curvewise.transfer.spread import measure_spread
    >>> plot_spread(measure_spread(measured)).get_ylabel()
    'calibrated risk'
    """
    scratch = scratch or result.scratch
    every = tuple(dict.fromkeys(r.method for r in result.rows))
    again = tuple(dict.fromkeys(r.method for r in result.rows if r.runs > 1))
    if methods is None and not again:
        raise InputError("result has no spread to draw: no method was run twice at one size of a task.")
    wanted = several_of("methods", again if methods is None else methods, every)
    drawn = [r for r in result.rows if r.method in wanted]
    tasks = several_of("task", task, tuple(dict.fromkeys(r.task for r in drawn)))
    known = tuple(m for m in every if m != scratch)
    order = [m for m in wanted if m != scratch]
    with style():
        chosen = choose_methods(known, scratch, tasks, wanted, highlight, order)
        own = ax is None
        axes = panels_of(ax, tasks)
        known_rows = [r for r in drawn if np.isfinite(r.mean)]
        groups = [paths_of([r for r in known_rows if r.task == name], chosen, scratch) for name in tasks]
        ends = _spread_panels(axes, groups, chosen, scratch, result)
        name_tasks(axes, tasks)
        what = Y_LABEL if result.calibrated else safe_text(result.unit, 30)
        outer_labels(axes, X_LABEL, what)
        left = len(every) - len(wanted)
        why = "not chosen" if methods is not None else "run once at every size"
        said = f"{left} method{' is' if left == 1 else 's are'} left out: {why}." if left else ""
        write_words(axes, own, _spread_caption(result, said, chosen), caption)
        if legend:
            write_names(axes, ends)
    return axes[0]


def _spread_panels(
    axes: Sequence[Axes],
    groups: Sequence[dict[str, list[MethodSpread]]],
    chosen: DrawnMethods,
    scratch: str,
    result: RunSpread,
) -> list[list[CurveEnd]]:
    """Draw all panels, and return the ends of curves for their names."""
    sizes = [_column([r for path in group.values() for r in path], "n") for group in groups]
    ends: list[list[CurveEnd]] = []
    for panel, group, n, span in zip(axes, groups, sizes, size_limits(sizes), strict=True):
        if result.calibrated:
            control_lines(panel)
        aside = shifts(chosen, list(group))
        for method, path in group.items():
            _spread_path(panel, path, chosen, aside.get(method, 0.0), method == scratch)
        size_axis(panel, n, span)
        named = [path for method, path in group.items() if chosen.named(method)]
        ends.append([])
        for path in named:
            method = path[0].method
            mean = _column(path, "mean")
            ends[-1].append(end_at(_column(path, "n"), mean, chosen.looks[method], method == scratch))
    low, high = _spread_limits(groups, result.calibrated)
    for panel in axes:
        panel.set_ylim(low, high)
    return ends


def _spread_path(ax: Axes, path: Sequence[MethodSpread], chosen: DrawnMethods, shift: float, scratch: bool) -> None:
    """Draw means of a method, with a bar of one standard deviation to both sides."""
    look = chosen.looks[path[0].method]
    n, mean = _column(path, "n"), _column(path, "mean")
    std = np.array([r.std.estimate for r in path])
    z = 2.6 if scratch else (1.5 if look.back else 2.0)
    interval_bars(ax, n, mean - std, mean + std, look.shade, shift, z - 0.1, width=2.2)
    width = 2.0 if scratch else (0.9 if look.back else 1.3)
    dots: dict[str, Any] = {"marker": "o", "ms": 3.4, "mew": 0.0, "label": "_mean"}
    ax.plot(n, mean, color=look.shade, lw=width, zorder=z, gid=MEAN, **dots)


def _column(rows: Sequence[MethodSpread], name: str) -> FloatArray:
    return np.array([getattr(r, name) for r in rows], dtype=np.float64)


def _spread_limits(groups: Sequence[dict[str, list[MethodSpread]]], calibrated: bool) -> tuple[float, float]:
    """Return limits with all means and their spread, and the controls of calibrated risks."""
    rows = [r for group in groups for path in group.values() for r in path]
    mean, std = _column(rows, "mean"), np.nan_to_num([r.std.estimate for r in rows])
    values = [*(mean - std).tolist(), *(mean + std).tolist(), *([0.0, 1.0] if calibrated else [])]
    low, high = min(values), max(values)
    pad = 0.04 * (high - low) or 0.1
    return low - pad, max(high + pad, 1.0 + 0.07 * (high - low) if calibrated else high + pad)


def _spread_caption(result: RunSpread, left_out: str, chosen: DrawnMethods) -> list[str]:
    said = "Dots: means over runs; bars: one standard deviation over runs to both sides."
    said += f" {left_out}" if left_out else ""
    apart = [p for p in result.pairs if p.outside]
    if result.pairs:
        said += (
            f" In {len(apart)} of {len(result.pairs)} pairs of methods at a size each mean lies "
            "outside the other's bar."
        )
    return [said, chosen.note, *warned(result)]


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
    value = np.asarray(result.prediction)
    fits = value.dtype.kind == "f" and value.shape == (len(result.classes),) and len(value) > 1
    shares = value if fits else None
    with style():
        own = ax is None
        if shares is not None:
            ax = ax or new_axes(height=1.7 + 0.24 * min(len(shares), MOST_CLASSES))
            indent = _draw_frequencies(ax, result, shares) / 14
        else:
            ax = ax or new_axes(height=3.6)
            indent = 0.0
            _draw_losses(ax, result)
        finish(ax, own, [], _blind_caption(result, shares), caption=caption, indent=indent)
    return ax


def _draw_frequencies(ax: Axes, result: BlindGuess, shares: Any) -> int:
    """Draw bars from the most frequent class on, and return the length of the longest name."""
    order = np.argsort(-shares, kind="stable")[:MOST_CLASSES]
    names = safe_names([str(result.classes[i]) for i in order], 14 if is_narrow(ax) else 28)
    ax.barh(np.arange(len(order)), 100 * shares[order], height=0.72, color=colour(0), gid=FREQUENCY)
    rows_of(ax, names)
    ax.set_xlabel("guessed frequency (%)")
    return max(map(len, names))


def _draw_losses(ax: Axes, result: BlindGuess) -> None:
    """Draw the distribution of the losses of examples around the risk."""
    known = result.losses[np.isfinite(result.losses)]
    if len(known):
        bins = int(np.clip(np.sqrt(len(known)), 8, 60))
        ax.hist(known, bins=bins, color=NEUTRAL, alpha=0.55, gid=LOSSES)
    risk = result.risk
    if np.isfinite(risk.width):
        ax.axvspan(risk.low, risk.high, color=colour(0), alpha=0.25, linewidth=0.0, gid=RISK)
    ax.axvline(risk.estimate, color=colour(0), lw=1.8, gid=RISK, label="_risk")
    at: dict[str, Any] = {"xycoords": ax.get_xaxis_transform(), "va": "top", "color": colour(0)}
    text = f"risk {format_number(risk.estimate, 3)}"
    note(ax, text, (risk.estimate, 0.98), xytext=(4, 0), textcoords="offset points", **at)
    ax.set_xlabel(safe_text(f"loss of an example ({result.unit})", 60))
    ax.set_ylabel("examples")
    ax.yaxis.set_major_locator(MaxNLocator(5, integer=True))


def _blind_caption(result: BlindGuess, shares: Any) -> list[str]:
    r = result.risk
    said = f"The best constant for {shorten(clean(result.loss), 30)} has a risk of "
    said += format_interval(r, write=format_number)
    said += f" ({100 * r.level:.4g}% interval, {result.examples:,} examples)."
    lines = [said]
    if shares is not None and len(shares) > MOST_CLASSES:
        lines.append(f"The {MOST_CLASSES} most frequent of {len(shares)} classes.")
    return [*lines, *warned(result)]
