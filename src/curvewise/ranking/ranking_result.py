"""What ranking checkpoints gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from curvewise.errors import InputError
from curvewise.ranking.certainty import Reliability
from curvewise.tables import number
from curvewise.types import FloatArray, Interval, Result

SEVERAL = 3  # checkpoints that a summary names


@dataclass(frozen=True, eq=False)
class CheckpointRanking(Result):
    """Checkpoints, the most promising first.

    Attributes
    ----------
    checkpoints : tuple of str
        Best first by the measure that ranks; at the end those for which it failed. Every array
        below is in this order.
    by : str
        The measure that ranks.
    scores : dict of str to ndarray
        By measure; higher predicts better. NaN where it failed or does not apply.
    ranks : ndarray
        1 is the highest score; equal scores share the mean of their places; NaN for no score.
    rank_low, rank_high : ndarray
        Best and worst rank that the examples leave open, see Notes of :func:`rank_features`.
    score_low, score_high : ndarray
        Interval of the score that ranks.
    measure_ranks : dict of str to ndarray
        Ranks by each measure.
    agreement : ndarray, shape (measures, measures)
        Kendall's τ-b of each pair of measures, in the order of scores; see
        :meth:`agreement_interval`.
    seconds, gflops : dict of str to ndarray
        Cost of each measure, apart from the forward pass and from intervals; 10⁹ operations.
    forward_seconds, forward_gflops : ndarray
        Cost of the forward pass; NaN where it is not known.
    interval_seconds : float
        What the intervals took.
    failures : dict of str to str
        Checkpoints without features, and why.
    missing : dict of str to dict
        By measure: checkpoints that it gave no score, and why.
    k : int
        How many to try.
    chance_top : ndarray
        Chance of each checkpoint to have the highest score on average over samples like this.
    chance_best : ndarray
        Chance of each to fine-tune best, as far as the measure can be relied on.
    top_certainty, best_certainty : float
        The same for the first k together.
    reliability : Reliability
        How scores of this measure correlate with accuracies, and where that comes from.
    level : float
        Coverage of the intervals.
    examples, test_examples : int
        How many scores rest on, and how many of them measures that split are scored on.
    resamples : int
        How often examples were drawn anew for the intervals.
    """

    checkpoints: tuple[str, ...]
    by: str
    scores: Mapping[str, FloatArray]
    ranks: FloatArray
    rank_low: FloatArray
    rank_high: FloatArray
    score_low: FloatArray
    score_high: FloatArray
    measure_ranks: Mapping[str, FloatArray]
    agreement: FloatArray
    seconds: Mapping[str, FloatArray]
    gflops: Mapping[str, FloatArray]
    forward_seconds: FloatArray
    forward_gflops: FloatArray
    interval_seconds: float
    failures: Mapping[str, str]
    missing: Mapping[str, Mapping[str, str]]
    k: int
    chance_top: FloatArray
    chance_best: FloatArray
    top_certainty: float
    best_certainty: float
    reliability: Reliability
    level: float
    examples: int
    test_examples: int
    resamples: int
    warnings: tuple[str, ...] = ()

    @property
    def measures(self) -> tuple[str, ...]:
        """Names of the measures."""
        return tuple(self.scores)

    @property
    def top(self) -> tuple[str, ...]:
        """The first k: those to try."""
        return self.checkpoints[: min(self.k, self.ranked)]

    @property
    def ranked(self) -> int:
        """How many checkpoints have a rank."""
        return int(np.isfinite(self.ranks).sum())

    def enough(self, certainty: float = 0.9) -> int:
        """How many of the first must be tried for the best to be among them with this certainty."""
        if not 0 < certainty < 1:
            raise InputError(f"certainty={certainty!r}: give a number between 0 and 1.")
        reached = np.cumsum(self.chance_best[: self.ranked]) >= certainty - 1e-9
        return int(reached.argmax()) + 1 if reached.any() else self.ranked

    def agreement_interval(self, one: str, two: str) -> Interval:
        """Kendall's τ-b of two measures with its interval over checkpoints."""
        from curvewise.ranking.agreement import ranking_agreement

        for name in (one, two):
            if name not in self.scores:
                raise InputError(f"{name!r} is none of {', '.join(self.measures)}.")
        both = np.isfinite(self.scores[one]) & np.isfinite(self.scores[two])
        found = ranking_agreement(
            self.scores[one][both], self.scores[two][both], k=(1,), level=self.level
        )
        return found.intervals["kendall"]

    def columns(self) -> dict[str, Any]:
        """A row for each checkpoint, best first."""
        others = {name: values for name, values in self.scores.items() if name != self.by}
        return {
            "checkpoint": list(self.checkpoints),
            "rank": self.ranks,
            "rank_low": self.rank_low,
            "rank_high": self.rank_high,
            self.by: self.scores[self.by],
            f"{self.by}_low": self.score_low,
            f"{self.by}_high": self.score_high,
            "chance_top": self.chance_top,
            "chance_best": self.chance_best,
            **others,
        }

    def costs(self) -> dict[str, list[Any]]:
        """A row for the forward pass and each measure: seconds and GFLOPs over all checkpoints."""
        parts = {"forward pass": (self.forward_seconds, self.forward_gflops)}
        parts |= {name: (self.seconds[name], self.gflops[name]) for name in self.measures}
        return {
            "part": list(parts),
            "seconds": [_total(seconds) for seconds, _ in parts.values()],
            "gflops": [_total(gflops) for _, gflops in parts.values()],
        }

    def summary(self) -> str:
        """A few sentences."""
        count = self.ranked
        text = f"{count} checkpoint{'' if count == 1 else 's'} ranked by {self.by} "
        text += f"on {self.examples:,} examples: {self._named(0)}"
        text += "".join(f", {self._named(i)}" for i in range(1, min(count, SEVERAL)))
        text += "." if count <= SEVERAL else " …"
        tried = len(self.top)
        if tried < count:
            best = f"The one that fine-tunes best is among the first {tried} with "
            best += f"{self.best_certainty:.0%} certainty"
            if np.isfinite(self.top_certainty):
                best += f" ({self.top_certainty:.0%} for the one whose {self.by} is truly highest)"
            text += f" {best}."
        lost = len(self.checkpoints) - count + len(self.failures)
        if lost:
            text += f" {lost} without a rank."
        return text

    def _named(self, i: int) -> str:
        said = f"{self.checkpoints[i]} ({number(self.scores[self.by][i])}"
        low, high = self.rank_low[i], self.rank_high[i]
        if np.isfinite(low) and self.ranked > 1:
            said += f", rank {low:.0f}" if low == high else f", rank {low:.0f} to {high:.0f}"
        return said + ")"


def _total(values: FloatArray) -> float:
    known = values[np.isfinite(values)]
    return float(known.sum()) if len(known) else float("nan")
