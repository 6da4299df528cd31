"""Pictures of comparisons: two models question by question, differences of pairs, questions that tell models apart."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from curvewise.drawing.axes import is_narrow, rows_of, rows_that_fit, view
from curvewise.drawing.labels import clean, shorten
from curvewise.drawing.marks import bars, choose, diagonal, finish, note, warned, zero_line
from curvewise.drawing.style import INK, NEUTRAL, as_percent, colour, colours_of
from curvewise.evals.compare import EvalComparison
from curvewise.evals.plot.canvas import FRACTION, eval_canvas, metric_label, model_names, score_axis
from curvewise.evals.rank import ModelRanking
from curvewise.evals.score import in_points
from curvewise.text import format_pvalue
from curvewise.types.results import FloatArray

CELL = "curvewise-cell"
COUNT = "curvewise-count"
QUESTION = "curvewise-question"
DIFFERENCE = "curvewise-difference"
MARGIN = "curvewise-margin"
"""Group ids of the artists."""

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
    with eval_canvas(ax, 5.4, 5.8) as (ax, own):
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
            for shade, name, count in zip(shades, (one, two), _ahead(result), strict=True)
        ]
        key.append((Patch(color=NEUTRAL, alpha=TINT, lw=0.0), f"equal: {result.questions - sum(result.wins):,}"))
        finish(ax, own, key if own else [], [_said(result), *warned(result)], legend=legend, caption=caption)
    return ax


def _ahead(result: EvalComparison) -> tuple[int, int]:
    """Questions on which a is better, and on which b is."""
    return result.wins if result.higher_is_better else (result.wins[1], result.wins[0])


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
    with eval_canvas(ax, 2.6) as (ax, own):
        gap, also = result.difference, [0.0]
        key: list[tuple[Any, str]] = []
        if result.margin:
            also += [-result.margin, result.margin]
            ax.axvspan(-result.margin, result.margin, color=NEUTRAL, alpha=0.18, lw=0.0, zorder=0.2, gid=MARGIN)
            key.append((Patch(color=NEUTRAL, alpha=0.25), "margin"))
        limits = view([gap.estimate], [gap.low], [gap.high], *also)
        zero_line(ax)
        shade = NEUTRAL if result.verdict == "undecided" else INK
        bars(ax, [0.0], [gap.low], [gap.high], shade, limits=limits, horizontal=True, width=2.0)
        ax.plot([gap.estimate], [0.0], "o", color=shade, ms=7, gid=DIFFERENCE, label="_difference")
        a, b = model_names((result.a, result.b), 12 if is_narrow(ax) else 24)
        rows_of(ax, [f"{a}\n− {b}"])
        ax.set_xlim(*limits)
        score_axis(ax, result.unit, f"difference of {metric_label(result.metric, result.average)}", "points")
        indent = max(len(a), len(b) + 2) / 14
        finish(ax, own, key, [_said(result), *warned(result)], legend=legend, caption=caption, indent=indent)
    return ax


def draw_pairs(result: ModelRanking, ax: Axes | None, most: int | None, legend: bool, caption: bool | None) -> Axes:
    """Draw the differences between models as a forest plot, the clearest of many."""
    table = result.pair_columns()
    most = max(1, most or (CLEAREST if ax is None else min(CLEAREST, rows_that_fit(ax))))
    clear = np.lexsort((table["pvalue"], table["pvalue_holm"]))[:most]
    shown = clear[np.argsort(-np.abs(table["difference"][clear]), kind="stable")]
    with eval_canvas(ax, 2.0 + 0.24 * len(shown)) as (ax, own):
        estimate, low, high = (table[name][shown] for name in ("difference", "low", "high"))
        limits = view(estimate, low, high, 0.0)
        sure = table["pvalue_holm"][shown] < 1 - result.level
        zero_line(ax)
        for part, shade in ((sure, INK), (~sure, NEUTRAL)):
            rows = np.flatnonzero(part)
            bars(ax, rows, low[rows], high[rows], shade, limits=limits, horizontal=True)
            ax.plot(estimate[rows], rows, "o", color=shade, ms=5, gid=DIFFERENCE, label="_difference")
        short = dict(zip(result.models, model_names(result.models, 11 if is_narrow(ax) else 22), strict=True))
        names = [f"{short[str(table['a'][i])]} − {short[str(table['b'][i])]}" for i in shown]
        rows_of(ax, names)
        ax.set_xlim(*limits)
        score_axis(ax, result.unit, f"difference of {metric_label(result.metric, result.average)}", "points")
        key = [
            (Line2D([], [], color=s, marker="o", ms=5), text)
            for s, text in ((INK, "significant after Holm"), (NEUTRAL, "not significant"))
        ]
        total = len(table["a"])
        few = f" The {len(shown)} clearest of {total:,} differences." if len(shown) < total else ""
        lines = [f"{result.level:.0%} intervals, each of its own, on {result.questions:,} questions.{few}"]
        indent = max(map(len, names)) / 14
        finish(
            ax,
            own,
            key if own else [],
            [*lines, *warned(result)],
            legend=legend,
            caption=caption,
            columns=2,
            indent=indent,
        )
    return ax


def draw_questions(result: ModelRanking, ax: Axes | None, caption: bool | None) -> Axes:
    """Draw the questions by their mean score and how well they tell good models from bad ones."""
    with eval_canvas(ax, 4.2) as (ax, own):
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
