"""Scores of every checkpoint and replicates of the one that ranks, and the result out of both."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.progress import Advance
from curvewise.ranking._limits import rank_limits, score_limits
from curvewise.ranking._ranking_words import alarms, blind, listed, missing, ties
from curvewise.ranking._resampling import (
    Replicates,
    Rows,
    draw_parts,
    hit_replicates,
    share_for,
)
from curvewise.ranking._reuse import reused
from curvewise.ranking._scoring import Candidate, Scored, Scorer
from curvewise.ranking.certainty import (
    UNKNOWN,
    Reliability,
    best_certainty,
    find_reliability,
    likely_scores,
    top_certainty,
)
from curvewise.ranking.measure import RankingMeasure
from curvewise.ranking.ranking_result import CheckpointRanking
from curvewise.stats.correlation import average_ranks, kendall
from curvewise.types import FloatArray

HIT_RESAMPLES = 1000  # means of stored hits cost nothing


class Work:
    """Scores one checkpoint after the other, and puts the result together.

    Parameters
    ----------
    scorer : Scorer
    measures : sequence of RankingMeasure
    leader : RankingMeasure
        The one that ranks.
    train, test : ndarray of int
        Rows.
    resamples : int
        Parts of the examples to draw; the same for every checkpoint.
    rng : Generator
    """

    def __init__(
        self,
        scorer: Scorer,
        measures: Sequence[RankingMeasure],
        leader: RankingMeasure,
        train: Rows,
        test: Rows | None,
        resamples: int,
        rng: np.random.Generator,
    ) -> None:
        self.scorer, self.measures, self.leader = scorer, measures, leader
        self.train, self.test, self.rng = train, test, rng
        self.seed = int(rng.integers(2**31))
        self.by_hits = leader.name in scorer.hits and test is not None
        self.resamples = resamples
        drawn = 0 if self.by_hits else resamples
        self.share = 0.5 if self.by_hits else share_for(leader)
        self.parts = [
            (*draw_parts(train, test, scorer.targets, self.share, rng), int(rng.integers(2**31)))
            for _ in range(drawn)
        ]
        self.found: dict[str, list[Scored]] = {measure.name: [] for measure in measures}
        self.drawn: list[FloatArray] = []
        self.interval_seconds = 0.0

    def total(self, candidates: Sequence[Candidate]) -> float:
        """Amount of work."""
        return math.fsum(
            sum(self._weight(m, c) for m in self.measures)
            + len(self.parts) * self._weight(self.leader, c) * self.share
            for c in candidates
        )

    def _weight(self, measure: RankingMeasure, candidate: Candidate) -> float:
        flops = self.scorer.flops(measure, candidate, len(self.scorer.targets))
        return flops if math.isfinite(flops) else float(candidate.about.features.size)

    def score(self, candidate: Candidate, advance: Advance) -> None:
        """All measures of a checkpoint, and replicates of the one that ranks."""
        for measure in self.measures:
            advance(0, f"{candidate.name}: {measure.name}")
            found = self.scorer.score(measure, candidate, self.train, self.test, self.seed)
            self.found[measure.name].append(found)
            advance(self._weight(measure, candidate))
        start = time.perf_counter()
        self.drawn.append(self._again(candidate, advance))
        self.interval_seconds += time.perf_counter() - start

    def _again(self, candidate: Candidate, advance: Advance) -> FloatArray:
        """The score that ranks, on parts of the examples."""
        values = np.full(len(self.parts), np.nan)
        each = self._weight(self.leader, candidate) * self.share
        if not len(values) or not math.isfinite(self.found[self.leader.name][-1].value):
            advance(each * len(values))
            return values
        measure, prepared = reused(self.leader, candidate, self.train, self.test)
        for i, (train, test, seed) in enumerate(self.parts):
            advance(0, f"{candidate.name}: interval of {measure.name}")
            values[i] = self.scorer.score(measure, prepared, train, test, seed).value
            advance(each)
        return values

    def result(
        self,
        candidates: Sequence[Candidate],
        level: float,
        k: int,
        reliability: Reliability | float | str | None,
        failures: dict[str, str],
    ) -> CheckpointRanking:
        """Put it together, best first."""
        names = [candidate.name for candidate in candidates]
        values = {name: np.array([s.value for s in own]) for name, own in self.found.items()}
        scores = values[self.leader.name]
        order, ranked = self._order(names, scores)
        found, said = find_reliability(self.leader.name, reliability)
        judged = self._judge(scores[ranked], ranked, level, found)
        wrong = alarms(self.found, names, failures, self.leader.name)
        wrong += [said] if found is UNKNOWN else []
        rows = len(self.train) if self.test is None else len(self.test)
        wrong += blind(self.leader, scores, self.scorer.targets, rows)
        notes = [said] if said and found is not UNKNOWN else []
        notes += ties(self.leader.name, names, scores)
        notes += self._notes([names[i] for i in ranked], judged)
        for text in wrong:
            warnings.warn(text, CurvewiseWarning, stacklevel=4)
        return CheckpointRanking(
            checkpoints=tuple(names[i] for i in order),
            by=self.leader.name,
            scores={name: own[order] for name, own in values.items()},
            measure_ranks={name: ranks_of(own)[order] for name, own in values.items()},
            ranks=ranks_of(scores)[order],
            agreement=agreement(list(values.values())),
            seconds=self._costs("seconds", order),
            gflops=self._costs("gflops", order),
            forward_seconds=_known([c.about.seconds for c in candidates])[order],
            forward_gflops=_known([c.about.gflops for c in candidates])[order],
            interval_seconds=self.interval_seconds,
            failures=failures,
            missing=missing(self.found, names),
            k=k,
            top_certainty=judged.certainty("chance_top", k),
            best_certainty=judged.certainty("chance_best", k),
            reliability=found,
            level=level,
            examples=len(self.scorer.targets),
            test_examples=0 if self.test is None else len(self.test),
            resamples=self.resamples,
            warnings=tuple(dict.fromkeys([*wrong, *notes])),
            **judged.padded(len(names)),
        )

    def _order(self, names: list[str], scores: FloatArray) -> tuple[Rows, Rows]:
        """Checkpoints best first, those without a score last; and those that have one."""
        known = np.isfinite(scores)
        if not known.any():
            raise InputError(
                f"{self.leader.name}, which should rank, gave no checkpoint a score. For "
                f"{names[0]!r}: {self.found[self.leader.name][0].reason}. Rank by another measure."
            )
        order = np.argsort(np.where(known, -scores, np.inf), kind="stable")
        return order, order[known[order]]

    def _judge(
        self, scores: FloatArray, ranked: Rows, level: float, reliability: Reliability
    ) -> Chances:
        """Intervals and chances of the checkpoints that have a score, best first."""
        judged = Chances(len(scores))
        likely = None
        if self.resamples:
            replicates = Replicates(self._replicates(ranked), self.share)
            judged.rank_low, judged.rank_high = rank_limits(scores, replicates, level, self.rng)
            judged.score_low, judged.score_high = score_limits(
                scores, replicates, level, self.leader.bounds
            )
            judged.unknown = ~replicates.known
            if replicates.known.all():
                likely = likely_scores(scores, replicates, self.rng)
                judged.chance_top = top_certainty(likely, self.rng)
        judged.chance_best = best_certainty(
            scores, reliability=reliability, likely=likely, rng=self.rng
        )
        return judged

    def _replicates(self, ranked: Rows) -> FloatArray:
        if self.by_hits:
            rows = [self.found[self.leader.name][i].hits for i in ranked]
            return hit_replicates(np.array(rows), HIT_RESAMPLES, self.rng)
        return np.array([self.drawn[i] for i in ranked]).T

    def _costs(self, what: str, order: Rows) -> dict[str, FloatArray]:
        return {
            name: np.array([getattr(s, what) for s in own])[order]
            for name, own in self.found.items()
        }

    def _notes(self, names: list[str], judged: Chances) -> list[str]:
        """What is worth knowing about intervals and scores."""
        notes = []
        if self.by_hits and self.resamples:
            notes.append(
                f"Intervals are for these trainings of {self.leader.name}: test examples were "
                "drawn anew, networks not trained anew."
            )
        if judged.unknown.any():
            lost = [name for name, u in zip(names, judged.unknown, strict=True) if u]
            notes.append(
                f"{self.leader.name} failed on too many parts of the examples for "
                f"{listed(lost, names)}: no interval. Give more examples."
            )
        if self.test is None and any(measure.splits for measure in self.measures):
            notes.append("Without test examples, measures score those that they were fitted on.")
        return notes


@dataclass(eq=False)
class Chances:
    """Intervals and chances; unknown until they are put in."""

    count: int
    rank_low: FloatArray = field(init=False)
    rank_high: FloatArray = field(init=False)
    score_low: FloatArray = field(init=False)
    score_high: FloatArray = field(init=False)
    chance_top: FloatArray = field(init=False)
    chance_best: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        self.unknown = np.zeros(self.count, dtype=np.bool_)
        for name in self.names:
            setattr(self, name, np.full(self.count, np.nan))

    names = ("rank_low", "rank_high", "score_low", "score_high", "chance_top", "chance_best")

    def padded(self, count: int) -> dict[str, FloatArray]:
        """The same for all checkpoints: unknown for those without a rank, which come last."""
        left = np.full(count - self.count, np.nan)
        return {name: np.concatenate([getattr(self, name), left]) for name in self.names}

    def certainty(self, name: str, k: int) -> float:
        """Chance of the first k together."""
        return float(np.minimum(getattr(self, name)[:k].sum(), 1.0))


def ranks_of(scores: FloatArray) -> FloatArray:
    """Ranks from 1 for the highest; equal ones share their mean; NaN for no score.

    >>> ranks_of(np.array([0.5, np.nan, 0.9, 0.5]))
    array([2.5, nan, 1. , 2.5])
    """
    found = np.full(len(scores), np.nan)
    known = np.isfinite(scores)
    found[known] = average_ranks(-scores[known])
    return found


def agreement(scores: Sequence[FloatArray]) -> FloatArray:
    """Kendall's τ-b of each pair of measures over the checkpoints that have both."""
    found = np.eye(len(scores))
    for i, one in enumerate(scores):
        for j, two in enumerate(scores[:i]):
            both = np.isfinite(one) & np.isfinite(two)
            tau = kendall(one[both][None], two[both])[0] if both.sum() > 1 else np.nan
            found[i, j] = found[j, i] = tau
    return found


def _known(values: Sequence[float | None]) -> FloatArray:
    return np.array([math.nan if value is None else value for value in values])
