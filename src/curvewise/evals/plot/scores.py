"""Pictures of scores: forests, leaderboards with bars over models that do not differ, pass^k, corrected judges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from curvewise.drawing.axes import is_narrow, rows_of, rows_that_fit, view, width_of
from curvewise.drawing.marks import bars, choose, finish, note, warned
from curvewise.drawing.panels import name_ends
from curvewise.drawing.style import INK, NEUTRAL, as_percent, colour, colours_of, dashes
from curvewise.evals.judge import JudgeCorrection
from curvewise.evals.plot.canvas import FRACTION, eval_canvas, metric_label, model_names, score_axis
from curvewise.evals.plot.compare import draw_pairs, draw_questions
from curvewise.evals.rank import ModelRanking
from curvewise.evals.score import PASS_KINDS, ModelScores, PassCurve, error_cells
from curvewise.text import format_count, format_interval
from curvewise.types.results import FloatArray

SCORE = "curvewise-score"
TIE = "curvewise-tie"
VALUE = "curvewise-value"
CURVE = "curvewise-passes"
OTHER = "curvewise-other"
"""Group ids of the artists."""

SHOWN = 60
"""Models of a longer table that are drawn."""
NAMED = 8
"""Curves that have a colour and a name; the others are grey."""


def plot_model_scores(
    result: ModelScores, ax: Axes | None = None, *, most: int | None = None, caption: bool | None = None
) -> Axes:
    """Draw the score of each model with its interval, the best on top.

    Parameters
    ----------
    result : ModelScores
        The result to draw.
    ax : Axes, optional
        Axes to draw on; a new figure by default.
    most : int, optional
        Only so many of the best models: 60 by default, as many as fit on ``ax``.
    caption : bool, optional
        Say what is shown under the picture; by default where there is room.
    """
    order = np.argsort(-result.scores if result.higher_is_better else result.scores, kind="stable")
    order = order[: _rows(ax, most)]
    with eval_canvas(ax, 1.5 + 0.26 * len(order)) as (ax, own):
        table = result.scores[order], result.low[order], result.high[order]
        indent = _forest(ax, own, [result.models[m] for m in order], table, [INK] * len(order), result.unit)
        score_axis(ax, result.unit, metric_label(result.metric, result.average))
        word = "interval" if len(order) == 1 else "intervals"
        design = format_count(result.questions, "question")
        said = f"{result.level:.0%} {word} for new questions of the same kind, from {design}."
        if len(order) > 1:
            said += " Whether two models differ is a paired comparison, not an overlap of intervals."
        lines = [said, *_left_out(len(order), len(result.models))]
        finish(ax, own, [], [*lines, *warned(result)], caption=caption, indent=indent)
    return ax


def _rows(ax: Axes | None, most: int | None) -> int:
    return max(1, most or (SHOWN if ax is None else min(SHOWN, rows_that_fit(ax))))


def _left_out(shown: int, count: int) -> list[str]:
    return [] if shown == count else [f"The best {shown} of {count:,} models."]


def _forest(
    ax: Axes,
    own: bool,
    names: Sequence[str],
    table: tuple[FloatArray, FloatArray, FloatArray],
    shades: Sequence[str],
    unit: str,
    values: bool = True,
) -> float:
    """Draw rows of estimates with intervals, their numbers at the right; return the inches that names take."""
    limits = view(*table)
    if unit == "fraction":
        limits = max(limits[0], -0.01), min(limits[1], 1.01)
    estimate, low, high = table
    size = 6.0 if len(names) <= 20 else 4.5
    for shade in dict.fromkeys(shades):
        rows = np.flatnonzero([s == shade for s in shades])
        bars(ax, rows, low[rows], high[rows], shade, limits=limits, horizontal=True)
        ax.plot(estimate[rows], rows, "o", color=shade, ms=size, gid=SCORE, label="_score", zorder=3)
    narrow = is_narrow(ax)
    short = model_names(names, 14 if narrow else 32)
    rows_of(ax, short)
    if len(names) > 15 and not own:
        ax.tick_params(axis="y", labelsize=7.0)
    ax.set_xlim(*limits)
    if values and own and not narrow:
        for i, row in enumerate(zip(*table, strict=True)):
            look: dict[str, Any] = {"xycoords": ax.get_yaxis_transform(), "va": "center", "ha": "left"}
            note(ax, format_interval(row, unit), (1.015, i), annotation_clip=False, gid=VALUE, **look)
    return max(map(len, short), default=0) / 14


def plot_leaderboard(
    result: ModelRanking,
    ax: Axes | None = None,
    *,
    what: str = "leaderboard",
    most: int | None = None,
    legend: bool = True,
    caption: bool | None = None,
) -> Axes:
    """Draw a leaderboard with intervals of scores and ranks, and bars over models that do not differ significantly.

    Parameters
    ----------
    result : ModelRanking
        The result to draw.
    ax : Axes, optional
        Axes to draw on; a new figure by default.
    what : {"leaderboard", "pairs", "questions"}
        The models; the differences of pairs; or the questions, their mean score and discrimination.
    most : int, optional
        Only so many models, or pairs: 60 or 30 by default, as many as fit on ``ax``.
    legend : bool
        Say what is what.
    caption : bool, optional
        Say what was found under the picture; by default where there is room.
    """
    choose("what", what, ("leaderboard", "pairs", "questions"))
    if what == "pairs":
        return draw_pairs(result, ax, most, legend, caption)
    if what == "questions":
        return draw_questions(result, ax, caption)
    count = min(len(result.models), _rows(ax, most))
    with eval_canvas(ax, 1.7 + 0.26 * count) as (ax, own):
        best = {*result.contenders}
        shades = [colour(0) if name in best else INK for name in result.models[:count]]
        table = result.scores[:count], result.low[:count], result.high[:count]
        indent = _forest(ax, own, result.models[:count], table, shades, result.unit, values=False)
        score_axis(ax, result.unit, metric_label(result.metric, result.average))
        right = _tie_bars(ax, result, count)
        _ranks(ax, result, count, right)
        key: list[tuple[Any, str]] = [(Line2D([], [], color=colour(0), marker="o", ms=5), "may be the best")]
        if not best.issuperset(result.models[:count]):
            key.append((Line2D([], [], color=INK, marker="o", ms=5), "significantly worse than another"))
        lines = [
            f"{result.level:.0%} intervals of scores (each) and of ranks (together, after Holm), from"
            f" {result.questions:,} questions."
        ]
        if right > 1.0:
            key.append((Line2D([], [], color=NEUTRAL, lw=3.0), "not significantly different"))
            lines[0] += " Models beside one bar do not differ significantly."
        lines += _left_out(count, len(result.models))
        columns = 3 if indent < 1.3 else 2
        key = key if own else []
        finish(ax, own, key, [*lines, *warned(result)], legend=legend, caption=caption, columns=columns, indent=indent)
    return ax


def _tie_bars(ax: Axes, result: ModelRanking, count: int) -> float:
    """Draw a bar beside each group of two or more models; return the share of the width where bars end."""
    places = {name: i for i, name in enumerate(result.models)}
    spans = [(places[g[0]], min(places[g[-1]], count - 1)) for g in result.groups if places[g[0]] < count]
    spans = [(top, bottom) for top, bottom in spans if bottom > top]
    step = 0.11 / width_of(ax)
    columns: list[int] = []  # the last row of each column of bars
    for top, bottom in spans:
        # The first column that is free again: bars that share a model stand side by side.
        place = next((i for i, last in enumerate(columns) if last < top), len(columns))
        columns[place : place + 1] = [bottom]
        x = 1.0 + step * (place + 1)
        look: dict[str, Any] = {"color": NEUTRAL, "lw": 3.0, "solid_capstyle": "butt", "clip_on": False}
        ends = [top - 0.3, bottom + 0.3]
        ax.plot([x, x], ends, transform=ax.get_yaxis_transform(), gid=TIE, label="_tie", **look)
    return 1.0 + step * (len(columns) + 1) if columns else 1.0


def _ranks(ax: Axes, result: ModelRanking, count: int, x: float) -> None:
    """Write the interval of each model's rank at the right."""
    x = max(x, 1.015)
    look: dict[str, Any] = {"xycoords": ax.get_yaxis_transform(), "va": "center", "ha": "left"}
    look |= {"annotation_clip": False, "gid": VALUE, "fontsize": 7.0 if is_narrow(ax) else 8.0}
    for i in range(count):
        low, high = int(result.rank_low[i]), int(result.rank_high[i])
        note(ax, f"{low}" if low == high else f"{low}–{high}", (x, i), **look)
    above = {"xycoords": "axes fraction", "va": "bottom", "color": rcParams["text.color"]}
    note(ax, "rank", (x, 1.0), **look | above)


def plot_pass_curve(
    result: PassCurve, ax: Axes | None = None, *, most: int = NAMED, caption: bool | None = None
) -> Axes:
    """Draw pass@k or pass^k of each model against k, with intervals.

    Parameters
    ----------
    result : PassCurve
        The result to draw.
    ax : Axes, optional
        Axes to draw on; a new figure by default.
    most : int
        Models with a name and a colour, the best ones; the others are grey, without intervals.
    caption : bool, optional
        Say what is shown under the picture; by default where there is room.
    """
    order = np.argsort(-result.scores[:, -1], kind="stable")
    named, others = order[:most], order[most:]
    with eval_canvas(ax, 4.2) as (ax, own):
        k = np.array(result.k, dtype=np.float64)
        for m in others:
            ax.plot(k, result.scores[m], color=NEUTRAL, lw=0.8, alpha=0.6, gid=OTHER, label="_other", zorder=1)
        shades = colours_of([result.models[m] for m in named])
        # Intervals of several models side by side at each k, so that they can be told apart.
        step = 0.1 * float(np.diff(k).min()) if len(k) > 1 else 0.1
        aside = step * (np.arange(len(named)) - (len(named) - 1) / 2) / max(1, len(named) / 3)
        for i, (m, shade) in enumerate(zip(named, shades, strict=True)):
            x = k + aside[i]
            bars(ax, x, result.low[m], result.high[m], shade, limits=(0.0, 1.0), width=1.2)
            look: dict[str, Any] = {"color": shade, "marker": "o", "ms": 5, "ls": dashes(i), "lw": 1.6}
            ax.plot(x, result.scores[m], gid=CURVE, label="_model", zorder=3, **look)
        top = float(max(result.high[named].max(), result.scores.max()))
        ax.set_ylim(0.0, min(1.02, 1.05 * top))
        ax.set_xlim(k[0] - 0.3, k[-1] + 0.3)
        ax.xaxis.set_major_locator(MaxNLocator(min(10, len(k)), integer=True))
        ax.set(xlabel="samples k", ylabel=f"{result.kind}k (%)")
        as_percent(ax.yaxis, FRACTION)
        ax.grid(axis="y", alpha=0.25, linewidth=0.6)
        if len(result.models) > 1:
            names = model_names([result.models[m] for m in named], 14 if is_narrow(ax) else 26)
            name_ends(ax, [(k[-1] + aside[i], result.scores[m, -1]) for i, m in enumerate(named)], names, shades)
        who = "" if len(result.models) > 1 else f" of {result.models[0]}"
        lines = [
            f"{result.kind}k{who}: the chance that {PASS_KINDS[result.kind]}, on {result.questions:,} questions;"
            f" {result.level:.0%} intervals for new questions of the same kind."
        ]
        if len(others):
            lines.append(f"Grey: {len(others)} further models.")
        finish(ax, own, [], [*lines, *warned(result)], caption=caption)
    return ax


def plot_judge_correction(
    result: JudgeCorrection, ax: Axes | None = None, *, legend: bool = True, caption: bool | None = None
) -> Axes:
    """Draw the corrected score of each model, with the judge's own and the mean of the human labels.

    Parameters
    ----------
    result : JudgeCorrection
        The result to draw.
    ax : Axes, optional
        Axes to draw on; a new figure by default.
    legend : bool
        Say what is what.
    caption : bool, optional
        Say what is shown under the picture; by default where there is room.
    """
    order = np.argsort(-result.scores if result.higher_is_better else result.scores, kind="stable")
    order = order[: _rows(ax, None)]
    with eval_canvas(ax, 1.7 + 0.3 * len(order)) as (ax, own):
        table = result.scores[order], result.low[order], result.high[order]
        indent = _forest(ax, own, [result.models[m] for m in order], table, [INK] * len(order), result.unit)
        rows, key = np.arange(len(order)), [(Line2D([], [], color=INK, marker="o", ms=5), "corrected")]
        for values, shade, marker, text in (
            (result.judge_scores, colour(1), "D", "judge alone"),
            (result.human_scores, colour(0), "|", "labels alone"),
        ):
            look: dict[str, Any] = {"color": shade, "marker": marker, "ms": 6 if marker == "D" else 9, "ls": "none"}
            ax.plot(values[order], rows, mfc="none", gid=OTHER, label="_other", **look)
            key.append((Line2D([], [], mfc="none", **look), text))
        ends = [*ax.get_xlim(), *result.judge_scores[order], *result.human_scores[order]]
        ax.set_xlim(min(ends) - 0.01 * np.ptp(ends), max(ends) + 0.01 * np.ptp(ends))
        score_axis(ax, result.unit, "score")
        bias = float(result.judge_bias.mean())
        size = error_cells(np.array([abs(bias)]), result.unit)[0].text.replace("%", " points")
        lines = [
            f"Scores by a judge on {result.questions:,} questions, corrected by {result.labels:,} human labels; the"
            f" judge gives {size} {'more' if bias >= 0 else 'less'} than humans on average."
        ]
        finish(ax, own, key, [*lines, *warned(result)], legend=legend, caption=caption, columns=3, indent=indent)
    return ax
