"""Checkpoints ranked before they are fine-tuned: ranks and scores with their intervals."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from curvewise.drawing.axes import is_narrow
from curvewise.drawing.labels import clean, safe_names, safe_text, shorten
from curvewise.drawing.marks import bars, choose, finish, key_dot, plain, warned
from curvewise.drawing.rows import draw_cells, draw_rows, rows_of, rows_shown
from curvewise.drawing.style import INK, NEUTRAL, OWN, canvas, pale
from curvewise.ranking.plot.judgement import points
from curvewise.ranking.rank import BEST, CheckpointRanking, rank_text
from curvewise.text import format_level, interval_cell
from curvewise.types.results import FloatArray

RANK = "curvewise-rank"
SCORE = "curvewise-score"
OTHER = "curvewise-other"
VALUE = "curvewise-value"
CHANCE = "curvewise-chance"
TOP = "curvewise-top"
KINDS = ("ranks", "scores", "agreement")
# Sizes of the dots of the measure that ranks, and of the others, which must fit on them.
LARGE, SMALL = 7.5, 4.4
# Half the length of a bar of one rank, and the thickness of bars in points.
HALF, BAR = 0.3, 6.0
# Checkpoints shown of a longer ranking.
SHOWN = 60


def plot_checkpoint_ranking(
    result: CheckpointRanking,
    ax: Axes | None = None,
    *,
    kind: str = "ranks",
    most: int | None = None,
    legend: bool = True,
    caption: bool | None = None,
) -> Axes:
    """Draw the ranking, best on top, with intervals.

    Parameters
    ----------
    result : CheckpointRanking
        What to draw.
    ax : Axes, optional
        Where; a new figure by default.
    kind : {"ranks", "scores", "agreement"}
        Ranks by the measure that ranks, and small dots for the other measures; its scores; or how
        the measures agree among themselves, as Kendall's τ-b in a table in colours. Beside ranks
        stand the scores with their intervals and the chance to be best after fine-tuning; beside
        scores, the ranks.
    most : int, optional
        Only so many of the best checkpoints: 60 by default, as many as fit on ``ax``.
    legend : bool
        Say what is what.
    caption : bool, optional
        Say what is shown under the picture; by default where there is room.

    Returns
    -------
    Axes
        The Axes given, or the new ones.

    Examples
    --------
    >>> from curvewise.ranking.rank import rank_features
    >>> labels = np.arange(60) % 2
    >>> pool = {"noise": np.sin(np.arange(60.0))[:, None], "sees": labels[:, None] + 0.1}
    >>> ranking = rank_features(pool, labels, "knn", resamples=0, reliability=0.8)
    >>> [name.get_text() for name in plot_checkpoint_ranking(ranking).get_yticklabels()]
    ['sees', 'noise']
    """
    choose("kind", kind, KINDS)
    shown = min(rows_shown(ax, most, SHOWN), len(result.checkpoints))
    options: dict[str, Any] = {"legend": legend, "caption": caption}
    if kind == "agreement":
        size = len(result.scores)
        with canvas(ax, 2.0 + 0.34 * size, 3.0 + 0.6 * size) as (ax, own):
            texts = safe_names(result.measures, 10 if is_narrow(ax) else 18)
            values = np.array(result.agreement, dtype=np.float64)
            np.fill_diagonal(values, np.nan)
            draw_cells(ax, values, texts, texts, best=np.zeros((size, size), dtype=bool), unknown="")
            ax.set_xlabel("Kendall's τ-b between measures")
            finish(ax, own, [], [f"{len(result.checkpoints)} checkpoints.", *warned(result)], indent=1.0, **options)
        return ax
    with canvas(ax, 2.1 + 0.23 * shown) as (ax, own):
        names = safe_names(result.checkpoints[:shown], 16 if is_narrow(ax) else 32)
        if kind == "ranks":
            key = _ranks(ax, result, shown)
            indent = rows_of(ax, names, room=not own and bool(key))
        else:
            ends = (score[:shown] for score in (result.scores[result.by], result.score_low, result.score_high))
            key, indent = [], draw_rows(ax, names, [*ends], gid=SCORE)
            ax.set_xlabel(safe_text(result.by, 40))
        if result.k < result.ranked and result.k <= shown:  # a line under the checkpoints to try
            ax.axhline(result.k - 0.5, color=INK, lw=0.9, ls="--", gid=TOP, label="_top")
        _values(ax, result, shown, kind)
        if not own:
            options["loc"] = "lower left"
        lines = _caption(result, shown, kind)
        finish(ax, own, key, lines, columns=2, indent=indent, **options)
    return ax


def _ranks(ax: Axes, result: CheckpointRanking, shown: int) -> list[tuple[Any, str]]:
    """Draw ranks with intervals, among the ranks by other measures; return a legend."""
    place: FloatArray = np.arange(float(shown))
    ranks = {k: v[:shown] for k, v in result.measure_ranks.items() if k != result.by}
    others = [name for name, found in ranks.items() if np.isfinite(found).any()]
    low, high = result.rank_low[:shown], result.rank_high[:shown]
    seen = [high, *(ranks[:shown] for ranks in result.measure_ranks.values())]
    top = float(np.nanmax([1.0, *np.concatenate(seen)]))
    limits = (0.4, top + 0.6)
    # A rank is a whole number: a bar covers each that is possible, and is seen around the dot where only one is.
    bars(ax, place, low - HALF, high + HALF, pale(NEUTRAL), limits=limits, horizontal=True, width=BAR)
    points(ax, result.ranks[:shown], place, INK, LARGE, RANK)
    for name in others:  # on top, where equal ranks would hide them
        points(ax, ranks[name], place, NEUTRAL, SMALL, OTHER, rim=0.7)
    ax.set_xlim(*limits)
    step = next(s for s in (1, 2, 5, 10, 20, 50, 100, 1000) if top / s <= (6 if is_narrow(ax) else 10))
    ax.set_xticks(sorted({1, *range(step, int(top) + 1, step)}))
    ax.set_xlabel("rank")
    if not others:
        return []
    mine, theirs = key_dot(INK, size=LARGE), key_dot(NEUTRAL, size=SMALL, mec="white")
    what = shorten(clean(others[0]), 24) if len(others) == 1 else "another measure"
    return [(mine, f"by {shorten(clean(result.by), 24)}"), (theirs, f"by {what}")]


def _values(ax: Axes, result: CheckpointRanking, shown: int, kind: str) -> None:
    """Write columns of numbers at the right: scores or ranks, and the chance to be best."""
    if ax.get_gid() != OWN:
        return
    if kind == "ranks":
        head = safe_text(result.by, 20)
        found = zip(result.scores[result.by], result.score_low, result.score_high, strict=True)
        cells = map(interval_cell, found)
        values = [cell.text.replace("–", "failed") + cell.after for cell in cells]
    else:
        head = "rank"
        found = zip(result.ranks, result.rank_low, result.rank_high, strict=True)
        values = [rank_text(*place).replace("–", "failed") for place in found]
    columns = [(VALUE, head, values[:shown])]
    if np.isfinite(result.chance_best[:shown]).any():
        chances = [f"{p:.0%}" if np.isfinite(p) else "–" for p in result.chance_best[:shown]]
        columns.append((CHANCE, BEST.replace(" to ", "\nto "), chances))
    left = 8.0
    for gid, title, texts in columns:
        shift: dict[str, Any] = {"xytext": (left, 0.0), "textcoords": "offset points", "fontsize": 8.5, "gid": gid}
        for y, text, va in [(-0.75, title, "bottom"), *((i, text, "center") for i, text in enumerate(texts))]:
            text = plain(text.replace("-", "−")) if va == "center" else text
            ax.annotate(text, (1.0, y), xycoords=ax.get_yaxis_transform(), va=va, annotation_clip=False, **shift)
        left += 5.4 * max(map(len, [*title.splitlines(), *texts])) + 10.0


def _caption(result: CheckpointRanking, shown: int, kind: str) -> list[str]:
    """Return the lines under the picture."""
    total = len(result.checkpoints)
    what = "ranks" if kind == "ranks" else "scores"
    lines = [f"{result.examples:,} examples."]
    if result.resamples:
        lines[0] += f" Bars: {format_level(result.level)} intervals of {what}."
    if result.k < result.ranked:
        text = f"Above the dashed line: the {result.k} to try. The one that fine-tunes best is among them with "
        text += f"{result.best_certainty:.0%} certainty"
        if np.isfinite(result.top_certainty):
            text += f", the one of the highest score with {result.top_certainty:.0%}"
        lines.append(f"{text}.")
    if np.isfinite(result.chance_best[:shown]).any():
        basis = f"takes {shorten(clean(result.by), 24)} to correlate with fine-tuned accuracy by"
        lines.append(f"The chance to be best after fine-tuning {basis} {result.reliability.describe()}.")
    if shown < total:
        lines.append(f"The best {shown} of {total} checkpoints.")
    if names := [*result.checkpoints[result.ranked :], *result.failures]:
        few = ", ".join(shorten(clean(name), 24) for name in names[:4])
        lines.append(f"⚠ {len(names)} without a rank: {few}{' …' if len(names) > 4 else ''}.")
    return [*lines, *warned(result)]
