"""A score of ranking measures by task, ready to be drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from curvewise.plot.style import NEUTRAL, colour
from curvewise.ranking.judgement import RankingJudgement
from curvewise.types import FloatArray

SCORE = "curvewise-score"

CORRELATIONS = {
    "kendall": "Kendall's τ-b",
    "weighted_kendall": "weighted Kendall's τ",
    "pearson": "Pearson's r",
}
"""Scores from −1 to 1, in words; the others are shares."""


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """A score by measure (rows, the best first) and task (columns), and its mean over tasks."""

    measures: list[str]
    baseline: list[bool]
    tasks: list[str]
    each: FloatArray
    mean: FloatArray
    low: FloatArray
    high: FloatArray
    gflops: FloatArray

    @property
    def shades(self) -> list[str]:
        """Blue, and grey for a baseline."""
        return [NEUTRAL if b else colour(0) for b in self.baseline]


def score_label(score: str) -> str:
    """What a score is called on an axis."""
    if score in CORRELATIONS:
        return CORRELATIONS[score]
    return f"{score.capitalize()} (%)" if "@" in score else score


def score_scale(score: str) -> float:
    """100 for shares, 1 for correlations."""
    return 1.0 if score in CORRELATIONS else 100.0


def score_table(
    result: RankingJudgement, score: str, group: str | None, most: int | None
) -> ScoreTable:
    """The numbers of a judgement, the best measures first."""
    scale = score_scale(score)
    averages = [result.row(name, group=group) for name in result.measures]
    tasks = [
        t
        for t in result.tasks
        if any(r.task == t and r.group == averages[0].group for r in result.rows)
    ]
    found = {(r.measure, r.task): r for r in result.rows if r.group == averages[0].group}
    each = np.array(
        [
            [found[m, t].value(score) if (m, t) in found else np.nan for t in tasks]
            for m in result.measures
        ]
    )
    spans = [r.intervals[score] for r in averages]
    mean, low, high = (
        scale * np.array([getattr(i, end) for i in spans], dtype=np.float64)
        for end in ("estimate", "low", "high")
    )
    low, high = (np.where(np.isnan(mean), np.nan, end) for end in (low, high))
    order = np.argsort(np.where(np.isnan(mean), np.inf, -mean), kind="stable")[:most]
    return ScoreTable(
        [result.measures[i] for i in order],
        [averages[i].baseline for i in order],
        tasks,
        scale * each.reshape(len(mean), len(tasks))[order],
        mean[order],
        low[order],
        high[order],
        np.array([averages[i].gflops for i in order]),
    )


def points(
    ax: Axes,
    x: FloatArray,
    y: FloatArray,
    shade: str,
    size: float,
    gid: str,
    alpha: float = 1.0,
) -> None:
    """Dots without a line."""
    look: dict[str, Any] = {"linestyle": "none", "mew": 0.0, "label": "_score", "alpha": alpha}
    ax.plot(x, y, marker="o", color=shade, ms=size, gid=gid, **look)
