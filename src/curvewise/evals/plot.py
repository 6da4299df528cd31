"""Pictures of evaluations: scores and leaderboards, comparisons of models, pass^k, judges, plans and looks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from curvewise.drawing.axes import is_narrow, log_sizes, short_number, view, width_of
from curvewise.drawing.labels import clean, safe_names, safe_text, shorten
from curvewise.drawing.marks import (
    MARK,
    bars,
    choose,
    diagonal,
    ends_of,
    finish,
    key_dot,
    mark_value,
    note,
    warned,
    zero_line,
)
from curvewise.drawing.panels import name_ends
from curvewise.drawing.plans import Key, draw_look_plan, draw_looks, draw_power
from curvewise.drawing.rows import CELL, DIFFERENCE, clearest, draw_differences, draw_rows, pair_names, rows_shown
from curvewise.drawing.style import INK, NEUTRAL, as_percent, canvas, colour, colours_of, dashes
from curvewise.errors import InputError, arg
from curvewise.evals.compare import EvalComparison
from curvewise.evals.judge import JudgeCorrection
from curvewise.evals.plan import EvalPlan, LookCheck, LookPlan
from curvewise.evals.rank import ModelRanking
from curvewise.evals.score import PASS_KINDS, ModelScores, PassCurve, error_cells, in_points
from curvewise.text import (
    format_count,
    format_interval,
    format_level,
    format_number,
    format_pvalue,
    format_size,
    name_decision,
)
from curvewise.types.results import FloatArray, Unit

SCORE = "curvewise-score"
TIE = "curvewise-tie"
VALUE = "curvewise-value"
CURVE = "curvewise-passes"
OTHER = "curvewise-other"
COUNT = "curvewise-count"
QUESTION = "curvewise-question"
MARGIN = "curvewise-margin"
FRONTIER = "curvewise-frontier"
POINT = "curvewise-point"
"""Group ids of the artists."""

FRACTION = Unit("fraction")
LEAST_LEFT = 7
"""Letters of the longest name that are kept where names are shortened by what they share."""
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
    order = order[: rows_shown(ax, most, SHOWN)]
    with canvas(ax, 1.5 + 0.26 * len(order)) as (ax, own):
        table = result.scores[order], result.low[order], result.high[order]
        indent = _forest(ax, own, [result.models[m] for m in order], table, INK, result.unit)
        score_axis(ax, result.unit, metric_label(result.metric, result.average))
        word = "interval" if len(order) == 1 else "intervals"
        design = format_count(result.questions, "question")
        said = f"{format_level(result.level)} {word} for new questions of the same kind, from {design}."
        if len(order) > 1:
            said += " Whether two models differ is a paired comparison, not an overlap of intervals."
        lines = [said, *_left_out(len(order), len(result.models))]
        finish(ax, own, [], [*lines, *warned(result)], caption=caption, indent=indent)
    return ax


def _left_out(shown: int, count: int) -> list[str]:
    return [] if shown == count else [f"The best {shown} of {count:,} models."]


def _forest(
    ax: Axes,
    own: bool,
    names: Sequence[str],
    table: tuple[FloatArray, FloatArray, FloatArray],
    shades: str | Sequence[str],
    unit: str,
    values: bool = True,
) -> float:
    """Draw rows of scores with intervals, their numbers at the right; return the inches that names take."""
    limits = view(*table)
    if unit == "fraction":
        limits = max(limits[0], -0.01), min(limits[1], 1.01)
    narrow = is_narrow(ax)
    indent = draw_rows(ax, model_names(names, 14 if narrow else 32), table, shades, limits=limits, gid=SCORE)
    if values and own and not narrow:
        for i, row in enumerate(zip(*table, strict=True)):
            look: dict[str, Any] = {"xycoords": ax.get_yaxis_transform(), "va": "center", "ha": "left"}
            note(ax, format_interval(row, unit), (1.015, i), annotation_clip=False, gid=VALUE, **look)
    return indent


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
        return _pairs(result, ax, most, legend, caption)
    if what == "questions":
        return _questions(result, ax, caption)
    count = min(len(result.models), rows_shown(ax, most, SHOWN))
    with canvas(ax, 1.7 + 0.26 * count) as (ax, own):
        best = {*result.contenders}
        shades = [colour(0) if name in best else INK for name in result.models[:count]]
        table = result.scores[:count], result.low[:count], result.high[:count]
        indent = _forest(ax, own, result.models[:count], table, shades, result.unit, values=False)
        score_axis(ax, result.unit, metric_label(result.metric, result.average))
        right = _tie_bars(ax, result, count)
        _ranks(ax, result, count, right)
        key: Key = [(key_dot(colour(0), line="-"), "may be the best")]
        if not best.issuperset(result.models[:count]):
            key.append((key_dot(INK, line="-"), "significantly worse than another"))
        lines = [
            f"{format_level(result.level)} intervals of scores (each) and of ranks (together, after Holm), from"
            f" {result.questions:,} questions."
        ]
        if right > 1.0:
            key.append((key_dot(NEUTRAL, "", line="-", lw=3.0), "not significantly different"))
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
    with canvas(ax, 4.2) as (ax, own):
        k = np.array(result.k, dtype=np.float64)
        for m in others:
            ax.plot(k, result.scores[m], color=NEUTRAL, lw=0.8, alpha=0.6, gid=OTHER, label="_other", zorder=1)
        shades = colours_of([result.models[m] for m in named])
        # Intervals of several models side by side at each k, so that they can be distinguished.
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
            f" {format_level(result.level)} intervals for new questions of the same kind."
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
    order = order[: rows_shown(ax, None, SHOWN)]
    with canvas(ax, 1.7 + 0.3 * len(order)) as (ax, own):
        table = result.scores[order], result.low[order], result.high[order]
        indent = _forest(ax, own, [result.models[m] for m in order], table, INK, result.unit)
        rows, key = np.arange(len(order)), [(key_dot(INK, line="-"), "corrected")]
        for values, shade, marker, text in (
            (result.judge_scores, colour(1), "D", "judge alone"),
            (result.human_scores, colour(0), "|", "labels alone"),
        ):
            look: dict[str, Any] = {"color": shade, "marker": marker, "ms": 6 if marker == "D" else 9, "ls": "none"}
            ax.plot(values[order], rows, mfc="none", gid=OTHER, label="_other", **look)
            key.append((key_dot(shade, marker, look["ms"], mfc="none"), text))
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


FEW_VALUES = 12
"""Different scores of a question up to which questions are counted in cells; more are drawn as dots."""
CLEAREST = 30
"""Pairs of models that are shown of many."""
TINT = 0.5
"""Depth of colour, from 0 to 1, of the key, and of cells where each question has one answer."""
MANY = 2000
"""Dots from which they are drawn as pixels, so that a vector file stays small."""


def plot_eval_comparison(
    result: EvalComparison,
    ax: Axes | None = None,
    *,
    what: str = "questions",
    legend: bool = True,
    caption: bool | None = None,
) -> Axes:
    """Draw the scores of two models on each question, or their difference with its interval.

    Parameters
    ----------
    result : EvalComparison
        The result to draw.
    ax : Axes, optional
        Axes to draw on; a new figure by default.
    what : {"questions", "difference"}
        Questions by the score of a and of b: counted in cells where scores have few values, else a dot for each; or
        the difference of the two models.
    legend : bool
        Say what is what.
    caption : bool, optional
        Say what was found under the picture; by default where there is room.
    """
    choose("what", what, ("questions", "difference"))
    shades = colours_of((result.a, result.b))
    names = (result.a, result.b)
    if what == "difference":
        return _difference(result, ax, legend, caption)
    scores_b, scores_a = result._questions[1], result._questions[0]
    levels = np.unique(np.round(result._questions, 9))
    with canvas(ax, 5.4, 5.8) as (ax, own):
        if len(levels) <= FEW_VALUES:
            _cells(ax, scores_a, scores_b, levels, shades, result)
        else:
            _dots(ax, scores_a, scores_b, shades, result)
        ax.set_aspect("equal")
        a, b = model_names(names, 16 if is_narrow(ax) else 36)
        end = " (%)" if result.unit == "fraction" and not _single(result) else ""
        ax.set(xlabel=f"{b}{end}", ylabel=f"{a}{end}")
        one, two = model_names(names, 24)
        better = "higher" if result.higher_is_better else "lower"
        key = [
            (Patch(color=shade, alpha=TINT, lw=0.0), f"{name} {better}: {count:,}")
            for shade, name, count in zip(shades, (one, two), result._ahead, strict=True)
        ]
        key.append((Patch(color=NEUTRAL, alpha=TINT, lw=0.0), f"equal: {result.questions - sum(result.wins):,}"))
        finish(ax, own, key if own else [], [_said(result), *warned(result)], legend=legend, caption=caption)
    return ax


def _single(result: EvalComparison) -> bool:
    """Return True where each question has one answer, right or wrong."""
    values = result._questions
    return result.unit == "fraction" and result.samples == (1.0, 1.0) and bool(((values == 0) | (values == 1)).all())


def _said(result: EvalComparison) -> str:
    a, b = (shorten(clean(n), 40) for n in (result.a, result.b))
    gap = in_points(result.written_difference())
    verdict = {"a": f"{a} is better", "b": f"{b} is better", "equivalent": "they are equivalent"}
    said = verdict.get(result.verdict, "they are not significantly different")
    what = "" if result.metric == "mean" else f" in {result.metric}"
    return (
        f"{result.questions:,} questions. {a} minus {b}{what}: {gap}"
        f" ({format_pvalue(result.pvalue)}, {result.method}); {said}."
    )


def _cells(
    ax: Axes, a: FloatArray, b: FloatArray, levels: FloatArray, shades: list[str], result: EvalComparison
) -> None:
    """Count the questions with each pair of scores, darker where there are more; one tint a side for single answers."""
    places = [np.searchsorted(levels, np.round(values, 9)) for values in (a, b)]
    size = len(levels)
    counts = np.bincount(places[0] * size + places[1], minlength=size**2).reshape(size, size)
    # A square root, so that cells with few questions are seen beside the corners, which have most.
    depth = TINT * (counts > 0) if _single(result) else 0.85 * np.sqrt(counts / counts.max())
    sides = np.sign(np.subtract.outer(np.arange(size), np.arange(size))) * (1 if result.higher_is_better else -1)
    tones = {1: shades[0], -1: shades[1], 0: NEUTRAL}
    picture = np.ones((size, size, 3))
    for side, shade in tones.items():
        part = sides == side
        picture[part] = 1 - depth[part][:, None] * (1 - np.array(to_rgb(shade)))
    image = ax.imshow(picture, origin="lower", interpolation="nearest", zorder=0.5)
    image.set_gid(CELL)
    fits = 8.5 if size <= 6 else 6.5
    for (i, j), count in np.ndenumerate(counts):
        if count and size <= FEW_VALUES:
            ink = "white" if float(picture[i, j].mean()) < 0.55 else INK
            ax.text(j, i, f"{count:,}", ha="center", va="center", fontsize=fits, color=ink, gid=COUNT)
    times = 100 if result.unit == "fraction" else 1
    labels = [f"{times * level:.3g}" for level in levels]
    if _single(result):
        labels = ["right" if bool(level) == result.higher_is_better else "wrong" for level in levels]
    ax.set_xticks(range(size), labels=labels)
    ax.set_yticks(range(size), labels=labels, rotation=90 if _single(result) else 0, va="center")
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)


def _dots(ax: Axes, a: FloatArray, b: FloatArray, shades: list[str], result: EvalComparison) -> None:
    """Draw a dot for each question, by the scores of both models."""
    low, high = float(min(a.min(), b.min())), float(max(a.max(), b.max()))
    pad = 0.04 * (high - low or 1.0)
    diagonal(ax, low - pad, high + pad)
    sides = np.sign(a - b) * (1 if result.higher_is_better else -1)
    size = float(np.clip(4000 / len(a), 4.0, 22.0))
    for side, shade in ((0, NEUTRAL), (1, shades[0]), (-1, shades[1])):
        part = sides == side
        look: dict[str, Any] = {"alpha": 0.5, "linewidths": 0.0, "rasterized": len(a) > MANY, "zorder": 2.0}
        ax.scatter(b[part], a[part], s=size, color=shade, gid=QUESTION, **look)
    ax.set(xlim=(low - pad, high + pad), ylim=(low - pad, high + pad))
    if result.unit == "fraction":
        as_percent(ax.xaxis, FRACTION)
        as_percent(ax.yaxis, FRACTION)


def _difference(result: EvalComparison, ax: Axes | None, legend: bool, caption: bool | None) -> Axes:
    """Draw the difference with its interval, the margin shaded."""
    with canvas(ax, 2.6) as (ax, own):
        gap, margin = result.difference, result.margin or 0.0
        key: Key = []
        if margin:
            ax.axvspan(-margin, margin, color=NEUTRAL, alpha=0.18, lw=0.0, zorder=0.2, gid=MARGIN)
            key.append((Patch(color=NEUTRAL, alpha=0.25), "margin"))
        ends = ends_of([gap])
        limits = view(*ends, 0.0, -margin, margin)
        shade = NEUTRAL if result.verdict == "undecided" else INK
        a, b = model_names((result.a, result.b), 12 if is_narrow(ax) else 24)
        draw_rows(ax, [f"{a}\n− {b}"], ends, shade, zero=0.0, limits=limits, gid=DIFFERENCE, size=7, width=2.0)
        score_axis(ax, result.unit, f"difference of {metric_label(result.metric, result.average)}", "points")
        indent = max(len(a), len(b) + 2) / 14
        finish(ax, own, key, [_said(result), *warned(result)], legend=legend, caption=caption, indent=indent)
    return ax


def _pairs(result: ModelRanking, ax: Axes | None, most: int | None, legend: bool, caption: bool | None) -> Axes:
    """Draw the differences between models as a forest plot, the clearest of many."""
    table = result.pair_columns()
    estimate = table["difference"]
    shown = clearest(ax, most, table["pvalue_holm"], table["pvalue"], order=-np.abs(estimate))
    pairs = [(str(table["a"][i]), str(table["b"][i])) for i in shown]
    what = f"difference of {metric_label(result.metric, result.average)}"
    fraction = result.unit == "fraction"
    said = f"{format_level(result.level)} intervals, each of its own, on {result.questions:,} questions."
    return draw_differences(
        ax,
        pair_names(ax, pairs, shorten=model_names),
        [table[name][shown] for name in ("difference", "low", "high")],
        table["pvalue_holm"][shown] < 1 - result.level,
        total=len(estimate),
        label=f"{what} (points)" if fraction else what,
        lines=[said, *warned(result)],
        unit=FRACTION if fraction else None,
        legend=legend,
        caption=caption,
    )


def _questions(result: ModelRanking, ax: Axes | None, caption: bool | None) -> Axes:
    """Draw the questions by their mean score and how well they tell good models from bad ones."""
    with canvas(ax, 4.2) as (ax, own):
        known = np.isfinite(result.discrimination)
        x, y = result.question_means, result.discrimination
        size = float(np.clip(4000 / len(x), 4.0, 22.0))
        look: dict[str, Any] = {"alpha": 0.5, "linewidths": 0.0, "rasterized": len(x) > MANY}
        ax.scatter(x[known], y[known], s=size, color=colour(0), gid=QUESTION, **look)
        zero_line(ax, horizontal=True)
        pad = 0.03 * (float(np.ptp(x)) or 1.0)
        ax.set_xlim(float(x.min()) - pad, float(x.max()) + pad)
        ax.set_ylim(-1.05, 1.05)
        score_axis(ax, result.unit, "mean score of the models on a question")
        ax.set_ylabel("correlation with the other questions")
        flat = int((~known).sum())
        low = int((y[known] <= 0).sum())
        if not known.any():
            note(ax, "no question tells these models apart", (0.5, 0.5), xycoords="axes fraction", ha="center")
        said = (
            f"{len(x):,} questions: {low:,} at or below 0 do not tell good models from bad ones;"
            f" {flat:,} with the same score of all models are not drawn."
        )
        if len(result.models) < 3:
            said = "Discrimination needs three models or more."
        finish(ax, own, [], [said], caption=caption)
    return ax


def plot_eval_plan(
    result: EvalPlan,
    ax: Axes | None = None,
    *,
    what: str | None = None,
    legend: bool = True,
    caption: bool | None = None,
) -> Axes:
    """Draw the questions needed with each number of samples, or the power against the number of questions.

    Parameters
    ----------
    result : EvalPlan
        The result to draw.
    ax : Axes, optional
        Axes to draw on; a new figure by default.
    what : {"frontier", "power"}, optional
        Questions against samples of each (with a budget: the difference that they find); or the power, where the plan
        has a difference, else the difference that is found. By default the frontier where there is one.
    legend : bool
        Say what is what.
    caption : bool, optional
        Say what was found under the picture; by default where there is room.
    """
    many = bool(result.frontier) and len(result.frontier["samples"]) > 1
    choose("what", what or "power", ("frontier", "power"))
    if what == "frontier" and not many:
        raise InputError(f"the plan has no frontier: pass {arg('difference')} or {arg('budget')}, and a plain mean.")
    if many and what != "power":
        draw = _frontier if result.budget is None else _budget
    else:
        draw = _power if result.difference is not None else _detectable
    with canvas(ax, 4.3) as (ax, own):
        key = draw(ax, result)
        ax.grid(axis="y", alpha=0.25, linewidth=0.6)
        # The plan in words, without the sequential one, which has a picture of its own.
        said = result.sentences() if result.looks is None else result.sentences().replace(result.looks.sentences(), "")
        finish(ax, own, key, [said, *warned(result)], legend=legend, caption=caption, columns=3 if own else 1)
    return ax


def _points(value: float, unit: str) -> str:
    return in_points(f"{short_number(100 * value)}%") if unit == "fraction" else short_number(value)


def _frontier(ax: Axes, result: EvalPlan) -> Key:
    """Draw questions against samples for the difference of the plan, half and twice it; mark plan and cheapest."""
    samples, questions = (np.asarray(result.frontier[name], dtype=np.float64) for name in ("samples", "questions"))
    key: Key = []
    effect = result.difference or 0.0
    for times, shade, ls in ((0.5, NEUTRAL, "-."), (1.0, INK, "-"), (2.0, NEUTRAL, "--")):
        needed = [result._known.needed(times * effect, k) for k in result.frontier["samples"].tolist()]
        (line,) = ax.plot(samples, needed, color=shade, ls=ls, lw=1.8 if times == 1 else 1.2)
        line.set_gid(FRONTIER)
        key.append((line, f"{_points(times * effect, result.unit)}"))
    # With more and more samples of each, only the questions vary.
    endless = questions[-1] * result._known.variance(10**9) / result._known.variance(int(samples[-1]))
    if endless >= 2:
        ax.axhline(endless, color=NEUTRAL, ls=":", lw=1.0, zorder=0.6, gid=MARK)
        place = {"xycoords": ax.get_yaxis_transform(), "ha": "right", "va": "top", "xytext": (0, -2)}
        place |= {"textcoords": "offset points", "color": "#6E6E6E"}
        note(ax, f"at least {format_size(endless)}", (0.99, endless), **place)
    ax.set_xlim(samples[0] / 1.15, samples[-1] * 1.15)
    log_sizes(ax, samples.tolist())
    low, high = max(2.0, questions[-1] / 8), questions[0] * 5
    ax.set(yscale="log", ylim=(low, high))
    ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high / low < 1000 else (1.0,)))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(FuncFormatter(lambda y, _: safe_text(format_size(y))))
    n, k = result.cheapest
    marks = [(k, n, "D", colour(1), "cheapest")]
    if result.questions is not None and result.samples[0] == result.samples[1]:
        marks.append((result.samples[0], result.questions, "o", colour(0), "planned"))
    same = len(marks) == 2 and marks[0][:2] == marks[1][:2]
    for x, y, marker, shade, text in marks[1:] if same else marks:
        (dot,) = ax.plot([x], [y], marker, color=shade, ms=7, gid=POINT, label="_point", zorder=4, ls="none")
        key.append((dot, f"{'planned, cheapest' if same else text}: {y:,} × {x}"))
    ax.set(xlabel="samples of each question, by each model", ylabel="questions")
    return key


def _budget(ax: Axes, result: EvalPlan) -> Key:
    """Draw the difference that a budget finds against the samples of each question."""
    table = {name: np.asarray(values, dtype=np.float64) for name, values in result.frontier.items()}
    (line,) = ax.plot(table["samples"], table["detectable"], "o-", color=INK, ms=4, gid=FRONTIER, label="_budget")
    n, k = result.cheapest
    place = int(np.flatnonzero(table["samples"] == k)[0])
    (dot,) = ax.plot([k], [table["detectable"][place]], "D", color=colour(1), ms=7, gid=POINT, zorder=4, ls="none")
    ax.set_xlim(table["samples"][0] / 1.15, table["samples"][-1] * 1.15)
    log_sizes(ax, table["samples"].tolist())
    ax.set_ylim(0.0, 1.1 * float(table["detectable"].max()))
    _difference_axis(ax, result)
    ax.set_xlabel("samples of each question, by each model")
    return [(line, f"within a cost of {format_number(result.budget or 0.0)}"), (dot, f"best: {n:,} × {k}")]


def _power(ax: Axes, result: EvalPlan) -> Key:
    """Draw the power against the number of questions."""
    needed = result.questions or 2
    most = max(10, 4 * needed, result.available or 0)
    spread = result.questions_interval
    ax.set_xlabel("questions")
    options: dict[str, Any] = {"goal": result.power, "needed": needed, "interval": spread, "noun": "questions"}
    effect = result.difference or 1.0
    return draw_power(ax, most, result.power_at, effect, lambda v: _points(v, result.unit), **options)


def _difference_axis(ax: Axes, result: EvalPlan) -> None:
    """Label the y axis of differences that are found."""
    fraction = result.unit == "fraction"
    ax.set_ylabel(f"difference found{' (points)' if fraction else ''}")
    if fraction:
        as_percent(ax.yaxis, FRACTION)


def _detectable(ax: Axes, result: EvalPlan) -> Key:
    """Draw the difference that is found against the number of questions."""
    here = result.available or 2
    grid = np.unique(np.rint(np.geomspace(max(2, here / 10), 10 * here, 100)).astype(int))
    (line,) = ax.plot(grid, [result.detectable_at(int(n)) for n in grid], color=INK, lw=2.0, gid=FRONTIER)
    ax.set_xlim(grid[0] / 1.1, 1.1 * grid[-1])
    log_sizes(ax)
    ax.set_ylim(bottom=0.0)
    ax.plot([here], [result.detectable_at(here)], "o", color=colour(0), ms=7, gid=POINT, label="_here", zorder=4)
    mark_value(ax, float(here), f"{here:,} questions", "-", bottom=True)
    _difference_axis(ax, result)
    ax.set_xlabel("questions")
    return [(line, f"found with {result.power:.0%} power")]


def plot_look_plan(
    result: LookPlan, ax: Axes | None = None, *, what: str = "chance", legend: bool = True, caption: bool | None = None
) -> Axes:
    """Draw what a plan with several looks finds beside a single look, or how many questions it takes.

    Parameters
    ----------
    result : LookPlan
        The result to draw.
    ax : Axes, optional
        Axes to draw on; a new figure by default.
    what : {"chance", "questions"}
        The chance of finding a difference, or the questions until the plan stops.
    legend : bool
        Say what is what.
    caption : bool, optional
        Say what was found under the picture; by default where there is room.
    """
    choose("what", what, ("chance", "questions"))
    with canvas(ax, 4.2) as (ax, own):
        key = draw_look_plan(ax, result, None if what == "chance" else result.expected_questions, "questions")
        ax.set_xlabel("true difference (standard deviations of a question's difference)")
        ax.set_ylabel("chance of finding it (%)" if what == "chance" else "questions asked, on average")
        finish(ax, own, key, [result.sentences()], legend=legend, caption=caption, columns=2 if own else 1)
    return ax


def plot_look_check(
    result: LookCheck, ax: Axes | None = None, *, legend: bool = True, caption: bool | None = None
) -> Axes:
    """Draw the difference at each look so far, with intervals that hold at all looks together.

    Parameters
    ----------
    result : LookCheck
        The result to draw.
    ax : Axes, optional
        Axes to draw on; a new figure by default.
    legend : bool
        Say what is what.
    caption : bool, optional
        Say what was found under the picture; by default where there is room.
    """
    with canvas(ax, 4.2) as (ax, own):
        key, columns = draw_looks(
            ax,
            result.looked,
            ends_of(result.differences),
            result.decisions,
            result.plan.looks,
            ahead=result.next_look is not None,
            margin=result.margin,
            legend=legend,
        )
        if result.unit == "fraction":
            as_percent(ax.yaxis, FRACTION)
        a, b = safe_names((result.a, result.b), 8 if is_narrow(ax) else 16)
        ax.set(xlabel="questions", ylabel=f"{a} − {b}{' (points)' if result.unit == 'fraction' else ''}")
        one, two = (shorten(clean(n), 40) for n in (result.a, result.b))
        gap = in_points(format_interval(result.difference, result.unit))
        then = "" if result.next_look is None else f" Look again at {result.next_look:,} questions."
        text = (
            f"After {result.questions:,} questions {one} minus {two} is {gap}; the intervals hold at all looks together"
            f" ({format_level(result.plan.level)}). Decision:"
            f" {name_decision(result.decision, one, two)}.{then}"
        )
        finish(ax, own, key, [text, *warned(result)], legend=legend, caption=caption, columns=columns, loc="upper left")
    return ax


def score_axis(ax: Axes, unit: str, label: str, sign: str = "%") -> None:
    """Label the x axis of scores, fractions as percentages; differences of them are points."""
    ax.set_xlabel(f"{label} ({sign})" if unit == "fraction" else label)
    if unit == "fraction":
        as_percent(ax.xaxis, FRACTION)


def metric_label(metric: str, average: str) -> str:
    """Name the score on an axis."""
    name = "mean score" if metric == "mean" else metric
    return name if average == "questions" else f"{name}, averaged over tasks"


def model_names(names: Sequence[str], longest: int) -> list[str]:
    """Make names of models safe to draw, without what all of them end or begin with where they are long.

    >>> model_names(["org/phi-1.5_temp0.8_output", "org/phi-2_temp0.8_output"], 16)
    ['org/phi-1.5…', 'org/phi-2…']
    >>> model_names(["org/phi-1.5", "org/phi-2"], 16)
    ['org/phi-1.5', 'org/phi-2']
    """
    if len(names) > 1 and max(map(len, names)) > longest:
        tail = len(_common([name[::-1] for name in names]))
        head = len(_common(names))
        short = []
        for start, end in ((0, tail), (head, 0), (head, tail)):
            cut = [name[start : len(name) - end] for name in names]
            # What is left must say something: a number alone does not.
            if start + end and max(map(len, cut)) >= LEAST_LEFT:
                short.append([f"{'…' * bool(start)}{name}{'…' * bool(end)}" for name in cut])
        # The first that fits, else the shortest.
        fits = [cut for cut in short if max(map(len, cut)) <= longest]
        names = [*fits, *sorted(short, key=lambda cut: max(map(len, cut))), names][0]
    return safe_names(names, longest)


def _common(names: Sequence[str]) -> str:
    """Return what all names begin with, up to the last sign between two words, leaving something of each."""
    first, last = min(names), max(names)  # what these two share, all in between do
    length = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    shared = first[: min(length, min(map(len, names)) - 1)]
    return shared[: max((i + 1 for i, c in enumerate(shared) if c in "/_-:. "), default=0)]
