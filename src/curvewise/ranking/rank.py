"""Rank checkpoints by measures of their features, with intervals for scores and ranks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import PurePath
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import InputError, Message, arg, list_names, prefix
from curvewise.progress import progress_bar
from curvewise.ranking.agreement import ranking_agreement
from curvewise.ranking.load import common_labels, read_features, read_target
from curvewise.ranking.measure import (
    KINDS,
    CheckpointFeatures,
    RankingMeasure,
    Targets,
    as_targets,
    check_order,
    from_one_hot,
    grouped,
    label_array,
    named_axes,
    warn,
)
from curvewise.ranking.scoring import (
    DRAWS,
    LEAST,
    MEASURES,
    Candidate,
    Named,
    Rows,
    Score,
    Scorer,
    ScoreReplicates,
    Scoring,
    find_measures,
    highest_shares,
    hit_replicates,
    likely_scores,
    rank_limits,
    score_limits,
)
from curvewise.stats.correlation import average_ranks, kendall
from curvewise.text import Cell, format_count, format_level, format_number, interval_cell
from curvewise.types.results import FloatArray, Interval, Result, check_level, check_whole

DEFAULT_MEASURES = ("nleep", "logme")
# Checkpoints that a summary or a message names.
BEST = "chance to be best"
"""Heading of the chance that a checkpoint is the best after fine-tuning."""
NAMED = 3
# More resamples than of parts of the examples: means of stored hits cost next to nothing.
HIT_RESAMPLES = 1000


def rank_features(
    checkpoints: Mapping[str, ArrayLike | CheckpointFeatures | PathLike[str]] | Sequence[Any],
    labels: ArrayLike | PathLike[str] | None = None,
    measures: Sequence[Named] | Named = DEFAULT_MEASURES,
    *,
    test: float | ArrayLike | None = 0.2,
    by: str | None = None,
    resamples: int = 50,
    level: float = 0.95,
    k: int = 3,
    reliability: Reliability | float | str | None = None,
    rng: int | np.random.Generator = 0,
    progress: bool | None = None,
) -> CheckpointRanking:
    """Rank checkpoints for a task, from their features of the same labelled examples.

    Parameters
    ----------
    checkpoints : dict of str to array_like, CheckpointFeatures or path, or sequence of the latter two
        Features by name, a row for each example. Files are .npy or .npz, with an array called
        features; a sequence of files is called by their names.
    labels : array_like or path, optional
        A class for each example; a matrix of 0 and 1 for several, if not every row has exactly one 1; or numbers. Not
        needed where .npz files of features hold them, as an array called labels.
    measures : sequence of str, RankingMeasure or callable
        What to compute. A callable is given features and labels, and ``test_features``,
        ``test_labels`` and ``rng`` where it has such arguments.
    test : float, array_like of bool or None
        Which examples measures that split are scored on: a share of each class, a mask, or None to
        score those that they were fitted on. Measures that do not split use all examples.
    by : str, optional
        The measure that ranks; the first by default.
    resamples : int
        Parts of the examples drawn for intervals; 0 for none. Each costs half a score or more.
    level : float
        Coverage of the intervals.
    k : int
        How many checkpoints can be tried.
    reliability : Reliability, float or str, optional
        Correlation of the measure's scores with fine-tuned accuracies; from published benchmarks
        by default. For a function of your own that is a variant of a measure with a reference,
        the name of that measure, such as "nleep".
    rng : int or Generator
        Decides the split, the parts and what is random in measures.
    progress : bool, optional
        Show a bar; by default where stderr is a terminal.

    Returns
    -------
    CheckpointRanking
        Ranks with intervals, every measure's scores, their agreement and cost, and the probability
        that the best checkpoint is among the first k.

    Raises
    ------
    InputError
        If rows and labels do not match, a measure is unknown, or the one that ranks fails for all.

    Warns
    -----
    CurvewiseWarning
        If a measure fails for a checkpoint or is used where it is known to fail, or no reference
        says how reliable the one that ranks is.

    Notes
    -----
    Scores estimate their mean over samples of this size, with as many examples of each class, from
    the same population: that is what their intervals cover, and what true ranks refer to. (The
    limit for infinitely many examples differs for all checkpoints by as much as the measure
    overfits; that belongs to the reliability of a measure.)

    The spread comes from random parts of the examples of each class, the same for every
    checkpoint: half of them, or four fifths for a measure that is fitted and scored on the same
    examples. A part without replacement has around the whole a known fraction of the spread that
    the whole has around the population, where errors fall with √n. (In a bootstrap sample examples
    occur twice, which makes in-sample fits too good: in simulations with more dimensions than
    examples its intervals of the H-score held the truth 77 times in 100, these 97 times.)
    Where the H-score is 0 because the covariance is not distinguishable from a sphere, parts of the
    examples continue below 0; otherwise they would seem not to vary.
    With few examples for a fit, parts vary more than they should and intervals are too wide: those
    of NLEEP twice at 10 examples per component, by a third at 40 and a fifth at 100. A measure that
    is the mean of hits of a trained classifier is not retrained: test examples are resampled, and
    the interval is for this one training.

    Ranks are bounded by the significant differences, all of one checkpoint tested together; their
    coverage is at least the level, and more where few are tied.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> labels = np.repeat([0, 1, 2], 60)
    >>> pool = {
    ...     name: labels[:, None] * shift + rng.normal(size=(180, 4))
    ...     for name, shift in {"weak": 0.2, "strong": 2.0, "middling": 1.0}.items()
    ... }
    >>> def separation(features, labels):
    ...     centres = np.stack([features[labels == c].mean(axis=0) for c in np.unique(labels)])
    ...     return centres.var() / features.var()
    >>> ranking = rank_features(pool, labels, separation, k=1, reliability=0.8)
    >>> ranking.checkpoints, ranking.rank_low, ranking.rank_high
    (('strong', 'middling', 'weak'), array([1., 2., 3.]), array([1., 2., 3.]))
    """
    if isinstance(checkpoints, str | PathLike):
        checkpoints = [checkpoints]
    if isinstance(checkpoints, Mapping):
        given = [(str(name), value) for name, value in checkpoints.items()]
    else:
        given = [(PurePath(one).stem if isinstance(one, str | PathLike) else "", one) for one in checkpoints]
    found: list[CheckpointFeatures] = []
    inside: dict[str, NDArray[Any] | None] = {}
    for name, value in given:
        if isinstance(value, str | PathLike):
            one, inside[name] = read_features(value, name)
        elif isinstance(value, CheckpointFeatures):
            one = replace(value, name=name) if name and name != value.name else value
        elif name:
            one = CheckpointFeatures(name, np.asanyarray(value))
        else:
            raise InputError(
                f"holds a {type(value).__name__}: give a dict of features by name, files, or CheckpointFeatures.",
                argument="checkpoints",
            )
        found.append(one)
    if not found:
        raise InputError("is empty: give at least one.", argument="checkpoints")
    if labels is None:
        labels = common_labels(inside)
    elif isinstance(labels, str | PathLike):
        labels = read_target(labels)
    every = [*((f"features of {name!r}", value) for name, value in given), ("labels", labels)]
    named = [(what, axis) for what, value in every for name, axis in named_axes(value) if name == "index"]
    for what, axis in named[1:]:
        remedy = "align them, or give arrays if the rows are of the same examples in one order"
        check_order(axis, named[0][1], f"the index of {named[0][0]}", remedy, what)
    how = RankSettings(test, by, resamples, level, k, reliability, rng, progress)
    return rank_candidates([Candidate.of(one) for one in found], labels, find_measures(measures, MEASURES), how)


@dataclass(frozen=True, eq=False)
class RankSettings:
    """Settings for scoring and ranking checkpoints; see :func:`rank_features`."""

    test: float | ArrayLike | None = 0.2
    by: str | None = None
    resamples: int = 50
    level: float = 0.95
    k: int = 3
    reliability: Reliability | float | str | None = None
    rng: int | np.random.Generator = 0
    progress: bool | None = None

    def __post_init__(self) -> None:
        check_level(self.level)
        for argument, least in (("resamples", 0), ("k", 1)):
            object.__setattr__(self, argument, check_whole(getattr(self, argument), argument, least))
        if 0 < self.resamples < LEAST:
            problem = f"give at least {LEAST}, or 0 for no intervals."
            raise InputError(problem, argument="resamples", value=self.resamples)


def rank_candidates(
    candidates: Sequence[Candidate],
    labels: ArrayLike,
    measures: Sequence[RankingMeasure],
    how: RankSettings = RankSettings(),
    failures: Mapping[str, str] | None = None,
) -> CheckpointRanking:
    """Rank checkpoints as :func:`rank_features` does, with the inputs of trained measures.

    Parameters
    ----------
    candidates : sequence of Candidate
        Checkpoints with what measures take.
    labels, measures
        As there.
    how : RankSettings
        The other arguments, as there.
    failures : dict of str to str, optional
        Checkpoints that could not be read, and why.
    """
    names = [candidate.name for candidate in candidates]
    given = label_array(labels)
    count = len(given) if given.ndim else 0
    for candidate in candidates:
        name, rows = candidate.name, len(candidate.about)
        if names.count(name) > 1:
            raise InputError(f"holds {name!r} {names.count(name)} times: rename one.", argument="checkpoints")
        if rows != count:
            raise InputError(
                f"features of {name!r} have {rows:,} rows and labels {count:,}: give those of the same examples."
            )
    (codes,) = from_one_hot(labels)
    targets = as_targets(codes, count, allowed=KINDS)
    leader = next((measure for measure in measures if how.by is None or measure.name == how.by), None)
    if leader is None:
        known = ", ".join(m.name for m in measures)
        raise InputError(f"none of the measures {known}: add it to them.", argument="by", value=how.by)
    rng = np.random.default_rng(how.rng)
    scoring = Scoring(Scorer(given, targets), measures, leader, how.test, how.resamples, rng)
    with progress_bar("ranking", scoring.total(candidates), how.progress) as advance:
        for candidate in candidates:
            scoring.score(candidate, advance)
    return _result(scoring, candidates, how, dict(failures or {}))


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
        Cost of each measure, without the forward pass and intervals; 10⁹ operations.
    forward_seconds, forward_gflops : ndarray
        Cost of the forward pass; NaN where it is not known.
    interval_seconds : float
        Time that the intervals took.
    failures : dict of str to str
        Checkpoints without features, and why.
    missing : dict of str to dict
        By measure: checkpoints that it gave no score, and why.
    k : int
        Number of checkpoints to try.
    chance_top : ndarray
        Probability of each checkpoint to have the highest mean score over samples like this.
    chance_best : ndarray
        Probability of each to fine-tune best, given the reliability of the measure.
    top_certainty, best_certainty : float
        The same for the first k together.
    reliability : Reliability
        Correlation of this measure's scores with accuracies, and its source.
    level : float
        Coverage of the intervals.
    examples, test_examples : int
        Number of examples, and of test examples for measures that split.
    resamples : int
        Number of random parts of the examples behind the intervals.
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
    def best(self) -> str:
        """The checkpoint with the highest score of the measure that ranks."""
        return self.checkpoints[0]

    @property
    def ranked(self) -> int:
        """Number of checkpoints with a rank."""
        return int(np.isfinite(self.ranks).sum())

    @property
    def winners(self) -> dict[str, str]:
        """The checkpoint that each measure puts first; of several with the same score the first."""
        found = {self.by: self.checkpoints[0]}
        for name, values in self.scores.items():
            if name != self.by and np.isfinite(values).any():
                best = values == np.nanmax(values)
                found[name] = self.checkpoints[0 if best[0] else int(np.flatnonzero(best)[0])]
        return found

    def enough(self, certainty: float = 0.9) -> int:
        """Return how many of the first to try so that the best is among them with this probability."""
        if not 0 < certainty < 1:
            raise InputError("give a number between 0 and 1.", argument="certainty", value=certainty)
        reached = np.cumsum(self.chance_best[: self.ranked]) >= certainty - 1e-9
        return int(reached.argmax()) + 1 if reached.any() else self.ranked

    def agreement_interval(self, one: str, two: str) -> Interval:
        """Return Kendall's τ-b of two measures with its interval over checkpoints."""
        for name in (one, two):
            if name not in self.scores:
                raise InputError(f"{name!r} is none of {', '.join(self.measures)}.")
        both = np.isfinite(self.scores[one]) & np.isfinite(self.scores[two])
        found = ranking_agreement(self.scores[one][both], self.scores[two][both], k=(1,), level=self.level)
        return found.intervals["kendall"]

    def columns(self) -> dict[str, Any]:
        """Return a row for each checkpoint, best first."""
        others = {name: values for name, values in self.scores.items() if name != self.by}
        return {
            "checkpoint": list(self.checkpoints),
            "rank": _whole(self.ranks),
            "rank_low": _whole(self.rank_low),
            "rank_high": _whole(self.rank_high),
            self.by: self.scores[self.by],
            f"{self.by}_low": self.score_low,
            f"{self.by}_high": self.score_high,
            "chance_top": self.chance_top,
            "chance_best": self.chance_best,
            **others,
        }

    def costs(self) -> dict[str, list[Any]]:
        """Return a row for the forward pass and each measure: seconds and GFLOPs over all checkpoints."""
        parts = {"forward pass": (self.forward_seconds, self.forward_gflops)}
        parts |= {name: (self.seconds[name], self.gflops[name]) for name in self.measures}
        return {
            "part": list(parts),
            "seconds": [_total(seconds) for seconds, _ in parts.values()],
            "gflops": [_total(gflops) for _, gflops in parts.values()],
        }

    def sentences(self) -> str:
        """Return a few sentences on the ranking."""
        count = self.ranked
        text = f"{format_count(count, 'checkpoint')} ranked by {self.by} on {self.examples:,} examples: "
        text += ", ".join(map(self._named, range(max(1, min(count, NAMED)))))
        text += "." if count <= NAMED else " …"
        tried = len(self.top)
        if tried < count:
            place = "ranked first" if tried == 1 else f"among the first {tried}"
            best = f"The best checkpoint after fine-tuning is {place} with probability {self.best_certainty:.0%}"
            if np.isfinite(self.top_certainty):
                best += f" (the one whose {self.by} is truly highest: {self.top_certainty:.0%})"
            text += f" {best}."
        elif count > 1 and np.isfinite(self.chance_best[0]):
            text += f" {self.checkpoints[0]} is the best after fine-tuning with probability {self.chance_best[0]:.0%}."
        text += f" {self.basis()}" if count > 1 and np.isfinite(self.chance_best[0]) else ""
        text += self._disagreement()
        lost = len(self.checkpoints) - count + len(self.failures)
        if lost:
            text += f" {lost} could not be ranked."
        return text

    def basis(self) -> str:
        """Return a sentence on what the probabilities of the best after fine-tuning rest on."""
        return f"This takes {self.by} to correlate with fine-tuned accuracy by {self.reliability.describe()}."

    def _disagreement(self) -> str:
        """Say that other measures put another checkpoint first, or order the others differently."""
        by_winner: dict[str, list[str]] = {}
        for name, winner in self.winners.items():
            by_winner.setdefault(winner, []).append(name)
        if len(by_winner) > 1:
            named = ", ".join(f"{' and '.join(names)} {winner}" for winner, names in by_winner.items())
            return f" The measures name different winners: {named}."
        found: list[tuple[float, str]] = []
        for name, values in self.scores.items():
            known = np.isfinite(values) & np.isfinite(self.ranks)
            if name == self.by or known.sum() < 2:
                continue
            here, there = (average_ranks(-v[known]) for v in (self.scores[self.by], values))
            i = int(np.argmax(np.abs(here - there)))
            who = np.array(self.checkpoints)[known][i]
            remark = f"{who} is number {here[i]:g} by {self.by} and number {there[i]:g} by {name}"
            found.append((float(abs(here - there)[i]), remark))
        # Half a rank is a tie with one measure, and no disagreement.
        gap, remark = max(found, default=(0.0, ""), key=lambda one: one[0])
        return f" The measures agree on the first and not on the others: {remark}." if gap >= 1 else ""

    def readable(self) -> Mapping[str, Sequence[Any]]:
        """Return a row for each checkpoint: rank and score with their intervals, the best of each measure in bold."""
        places = zip(self.ranks, self.rank_low, self.rank_high, strict=True)
        scores = zip(self.scores[self.by], self.score_low, self.score_high, strict=True)
        table: dict[str, Sequence[Any]] = {
            "checkpoint": list(self.checkpoints),
            "rank": [rank_text(*place) for place in places],
            self.by: [interval_cell(score, bold=score[0] == np.nanmax(self.scores[self.by])) for score in scores],
            BEST: [f"{p:.0%}" if np.isfinite(p) else "–" for p in self.chance_best],
        }
        for name, values in self.scores.items():
            if name != self.by:
                best = np.nanmax(values) if np.isfinite(values).any() else None
                table[name] = [Cell("–" if np.isnan(v) else format_number(float(v), 4), bold=v == best) for v in values]
        return table

    def table_note(self) -> str:
        """Name the measure that ranks, and the level of the intervals."""
        note = f"Checkpoints by {self.by}, {format_count(self.examples, 'example')}"
        return f"{note} ({format_level(self.level)} intervals)" if self.resamples else note

    def _named(self, i: int) -> str:
        score = self.scores[self.by][i], self.score_low[i], self.score_high[i]
        text = f"{self.checkpoints[i]} ({interval_cell(score).text}"  # in the digits of the table
        low, high = self.rank_low[i], self.rank_high[i]
        if np.isfinite(low) and self.ranked > 1:
            text += f", rank {low:.0f}" if low == high else f", rank {low:.0f} to {high:.0f}"
        return text + ")"


def rank_text(rank: float, low: float, high: float) -> str:
    """Write a rank and the ranks that are possible.

    >>> rank_text(1.0, 1.0, 3.0), rank_text(2.0, 2.0, 2.0), rank_text(1.5, float("nan"), float("nan"))
    ('1 [1, 3]', '2 [2, 2]', '1.5')
    """
    if np.isnan(rank):
        return "–"
    return f"{rank:g}" + (f" [{low:.0f}, {high:.0f}]" if np.isfinite(low) else "")


def _whole(ranks: FloatArray) -> NDArray[Any]:
    """Return ranks as integers where all of them are known and whole."""
    known = bool((np.isfinite(ranks) & (ranks == np.round(ranks))).all())
    return ranks.astype(np.int64) if known else ranks


def _total(values: FloatArray) -> float:
    """Sum what is known; NaN if nothing is."""
    known = values[np.isfinite(values)]
    return float(known.sum()) if len(known) else float("nan")


def _result(
    scoring: Scoring, candidates: Sequence[Candidate], how: RankSettings, failures: dict[str, str]
) -> CheckpointRanking:
    """Put the ranking together, best first."""
    names = [candidate.name for candidate in candidates]
    values = {name: np.array([s.value for s in own]) for name, own in scoring.found.items()}
    scores = values[scoring.leader.name]
    known = np.isfinite(scores)
    if not known.any():
        reason = scoring.found[scoring.leader.name][0].reason.removesuffix(".")
        raise InputError(
            f"{scoring.leader.name}, which should rank, gave no checkpoint a score. For {names[0]!r}: {reason}. Rank "
            "by another measure."
        )
    order = np.argsort(np.where(known, -scores, np.inf), kind="stable")  # those without a score come last
    ranked = order[known[order]]
    found, remark = find_reliability(scoring.leader.name, how.reliability)
    limits, unknown = _limits(scoring, scores[ranked], ranked, found, how)
    wrong = alarms(scoring.found, names, failures, scoring.leader.name)
    wrong += [remark] if found is UNKNOWN else []
    rows = len(scoring.train) if scoring.test is None else len(scoring.test)
    wrong += blind(scoring.leader, scores, scoring.scorer.targets, rows)
    notes = [remark] if remark and found is not UNKNOWN else []
    notes += ties(scoring.leader.name, names, scores)
    notes += _notes(scoring, [names[i] for i in ranked], unknown, how)
    costs = {
        part: {name: np.array([getattr(s, part) for s in own])[order] for name, own in scoring.found.items()}
        for part in ("seconds", "gflops")
    }
    warn(*wrong)
    return CheckpointRanking(
        checkpoints=tuple(names[i] for i in order),
        by=scoring.leader.name,
        scores={name: own[order] for name, own in values.items()},
        measure_ranks={name: ranks_of(own)[order] for name, own in values.items()},
        ranks=ranks_of(scores)[order],
        agreement=_agreement(list(values.values())),
        seconds=costs["seconds"],
        gflops=costs["gflops"],
        forward_seconds=np.array([c.about.seconds for c in candidates], dtype=np.float64)[order],
        forward_gflops=np.array([c.about.gflops for c in candidates], dtype=np.float64)[order],
        interval_seconds=scoring.interval_seconds,
        failures=failures,
        missing=missing(scoring.found, names),
        k=how.k,
        top_certainty=float(np.minimum(limits["chance_top"][: how.k].sum(), 1.0)),
        best_certainty=float(np.minimum(limits["chance_best"][: how.k].sum(), 1.0)),
        reliability=found,
        level=how.level,
        examples=len(scoring.scorer.targets),
        test_examples=0 if scoring.test is None else len(scoring.test),
        resamples=how.resamples,
        warnings=tuple(dict.fromkeys([*wrong, *notes])),
        **{n: np.append(v, np.full(len(names) - len(v), np.nan)) for n, v in limits.items()},
    )


def _limits(
    scoring: Scoring, scores: FloatArray, ranked: Rows, reliability: Reliability, how: RankSettings
) -> tuple[dict[str, FloatArray], NDArray[np.bool_]]:
    """Return intervals and probabilities of the ranked checkpoints, and a mask of those without an interval."""
    names = ("rank_low", "rank_high", "score_low", "score_high", "chance_top")
    found = {name: np.full(len(scores), np.nan) for name in names}
    unknown, likely = np.zeros(len(scores), dtype=np.bool_), None
    level = how.level
    if how.resamples:
        if scoring.by_hits:
            hits = np.array([scoring.found[scoring.leader.name][i].hits for i in ranked])
            drawn = hit_replicates(hits, HIT_RESAMPLES, scoring.rng)
        else:
            drawn = np.array([scoring.drawn[i] for i in ranked]).T
        replicates = ScoreReplicates(drawn, scoring.share)
        found["rank_low"], found["rank_high"] = rank_limits(scores, replicates, level, scoring.rng)
        rows = scoring.train if scoring.test is None else scoring.test
        share = len(rows) if scoring.leader.guess == "share" else 0
        found["score_low"], found["score_high"] = score_limits(scores, replicates, level, scoring.leader.bounds, share)
        unknown = ~replicates.known
        if not unknown.any():
            likely = likely_scores(scores, replicates, scoring.rng)
            found["chance_top"] = highest_shares(likely, scoring.rng)
    found["chance_best"] = best_certainty(scores, reliability=reliability, likely=likely, rng=scoring.rng)
    return found, unknown


def _notes(scoring: Scoring, names: list[str], unknown: NDArray[np.bool_], how: RankSettings) -> list[str]:
    """Return remarks on intervals and scores that need no warning."""
    notes = []
    if scoring.by_hits and how.resamples:
        notes.append(
            f"Intervals are for these trainings of {scoring.leader.name}: test examples were "
            "resampled, networks not retrained."
        )
    if unknown.any():
        lost = [name for name, u in zip(names, unknown, strict=True) if u]
        notes.append(
            f"{scoring.leader.name} failed on too many parts of the examples for "
            f"{listed(lost, names)}: no interval. Give more examples."
        )
    if scoring.test is None and any(measure.splits for measure in scoring.measures):
        notes.append("Without test examples, measures score those that they were fitted on.")
    return notes


@dataclass(frozen=True)
class Reliability:
    """Correlation of a measure's scores with fine-tuned accuracies, and its spread between tasks.

    Attributes
    ----------
    fisher : float
        Mean of Fisher's z = artanh(r) over tasks, where r is Pearson's correlation over the
        checkpoints of a pool.
    spread : float
        Standard deviation of z between tasks.
    tasks : int
        Number of tasks behind both.
    source : str
        Table that they come from.
    """

    fisher: float
    spread: float
    tasks: int
    source: str

    @property
    def correlation(self) -> float:
        """The correlation on a typical task."""
        return math.tanh(self.fisher)

    def describe(self) -> str:
        """Return the correlation and what it rests on, as they stand in a sentence.

        >>> RELIABILITY["nleep"].describe(), as_reliability(0.8).describe()
        ('0.78, as on 12 benchmark tasks', '0.80, as given')
        """
        if self.source == GIVEN:
            return f"{self.correlation:.2f}, as given"
        if self.source == UNKNOWN.source:
            return f"{self.correlation:.2f}, a cautious assumption"
        return f"{self.correlation:.2f}, as on {format_count(self.tasks, 'benchmark task')}"

    def draw(self, draws: int, rng: np.random.Generator) -> FloatArray:
        """Draw correlations for a further task.

        Student's t with one degree of freedom less than tasks, widened by the error of the mean:
        the predictive distribution of a further value of a normal sample.
        """
        if not self.spread:
            return np.full(draws, self.correlation)
        noise = rng.standard_t(max(self.tasks - 1, 1), draws)
        error = self.spread * math.sqrt(1 + 1 / self.tasks)
        found: FloatArray = np.tanh(self.fisher + error * noise)
        return found


# Printed by benchmarks/ranking_certainty.py. "stable_transfer": 19 architectures, fine-tuned on 9
# image sets (Agostinelli et al. 2022), without its H-score, which no formula gives, and for LogME
# without the two sets on which its program differs from ours. "examples/checkpoints": 16 networks,
# fine-tuned there on 3. "NeuCRaB": the mean correlations that tables 1 to 3 of Li et al.
# 2021 print. Where there are not a dozen tasks, the spread between tasks is that of the others.
HERE, GIVEN = "examples/checkpoints", "given"
BOTH, PRINTED = f"stable_transfer, {HERE}", f"NeuCRaB, {HERE}"
RELIABILITY = {
    "gbc": Reliability(0.689, 0.278, 12, BOTH),
    "leep": Reliability(0.134, 0.282, 12, BOTH),
    "logme": Reliability(0.708, 0.265, 10, BOTH),
    "nleep": Reliability(1.034, 0.565, 12, BOTH),
    "finetune-1": Reliability(0.23, 0.37, 4, "NeuCRaB"),
    "finetune-5": Reliability(0.542, 0.37, 4, "NeuCRaB"),
    "linear": Reliability(0.616, 0.37, 7, PRINTED),
    "linear-1": Reliability(0.311, 0.37, 7, PRINTED),
    "linear-5": Reliability(0.412, 0.37, 7, PRINTED),
    "mi-0.01": Reliability(0.143, 0.37, 7, PRINTED),
    "mi-0.5": Reliability(0.128, 0.37, 7, PRINTED),
    "mi-pca-0.01": Reliability(0.411, 0.37, 7, PRINTED),
    "mi-pca-0.5": Reliability(0.226, 0.37, 7, PRINTED),
    "h-score": Reliability(0.877, 0.37, 3, HERE),
    "knn": Reliability(0.312, 0.37, 3, HERE),
    "nce": Reliability(-0.019, 0.37, 3, HERE),
    "parc": Reliability(0.316, 0.37, 3, HERE),
    "transrate": Reliability(0.881, 0.37, 3, HERE),
}
# Of a measure without a reference: the lower quartile of those that have one.
UNKNOWN = Reliability(0.227, 0.37, 4, "no reference")
# Correlation below which a measure says next to nothing.
LOW = 0.3


def find_reliability(measure: str, given: Reliability | float | str | None) -> tuple[Reliability, str]:
    """Return the reliability of a measure, and a remark on it where one is due.

    >>> found, remark = find_reliability("nleep", None)
    >>> round(found.correlation, 2), remark
    (0.78, '')
    """
    if given is not None:
        return as_reliability(given), ""
    found = RELIABILITY.get(measure, UNKNOWN)
    if measure not in RELIABILITY:
        return found, Message(
            f"No reference says how scores of {measure} correlate with accuracies: a cautious correlation of about "
            f"{found.correlation:.2f} is assumed. If you know it, pass {arg('reliability', 0.8)}, say; for a variant "
            f"of a measure that has a reference, its name, such as {arg('reliability', 'nleep')}."
        )
    if found.correlation < LOW:
        return found, (
            f"Scores of {measure} correlated with accuracies by {found.correlation:.2f} only in the reference "
            f"({found.source}): the probabilities are hardly better than those of a random choice, and may be worse."
        )
    return found, ""


def best_certainty(
    scores: ArrayLike,
    *,
    reliability: Reliability | float | str,
    likely: FloatArray | None = None,
    rng: int | np.random.Generator = 0,
) -> FloatArray:
    """Return the probability of each checkpoint to be the one that fine-tunes best.

    Accuracies are modelled as r·z + √(1 − r²)·noise, with z the scores brought to mean 0 and variance
    1 over checkpoints like these and r the measure's reliability, which varies from task to task.

    Parameters
    ----------
    scores : array_like
        A score for each checkpoint; higher predicts better.
    reliability : Reliability, float or str
        Correlation of scores with accuracies; a number is taken as exact, the name of a measure
        stands for its reference.
    likely : ndarray, shape (draws, checkpoints), optional
        Draws of the scores in the population; the scores themselves by default.
    rng : int or Generator
        Decides the draws.

    Returns
    -------
    ndarray
        Sums to 1.

    Examples
    --------
    >>> best_certainty([1.0, 2.0, 4.0], reliability=0.8).round(1)
    array([0.1, 0.1, 0.8])
    """
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 1 or not len(values) or not np.isfinite(values).all():
        raise InputError(f"has shape {values.shape}: give a finite score per checkpoint.", argument="scores")
    generator = np.random.default_rng(rng)
    drawn = np.tile(values, (DRAWS, 1)) if likely is None else likely
    z = drawn - drawn.mean(axis=1, keepdims=True)
    # The correlation is over all checkpoints like these, whose spread a few do not tell: it is drawn, too, from its
    # posterior given normal scores. Two checkpoints are always one standard deviation of theirs from their mean.
    size = np.sqrt((z * z).sum(axis=1, keepdims=True) / generator.chisquare(max(len(values) - 1, 1), (len(z), 1)))
    z = np.divide(z, size, out=np.zeros_like(z), where=size > 0)
    r = as_reliability(reliability).draw(len(z), generator)[:, None]
    accuracy = r * z + np.sqrt(1 - r * r) * generator.standard_normal(z.shape)
    return highest_shares(accuracy, generator)


def as_reliability(value: Reliability | float | str) -> Reliability:
    """Return a reliability: as it is given, from a correlation, or of a measure by name.

    >>> as_reliability("nleep").tasks, as_reliability(0.5).source
    (12, 'given')
    """
    if isinstance(value, Reliability):
        return value
    if isinstance(value, str):
        if value not in RELIABILITY:
            raise InputError(
                f"it has no reference. Give a correlation between -1 and 1, or one of {', '.join(RELIABILITY)}.",
                argument="reliability",
                value=value,
            )
        return RELIABILITY[value]
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise InputError("give a correlation between -1 and 1.", argument="reliability", value=value)
    if not -1 <= value <= 1:
        raise InputError("a correlation lies between -1 and 1.", argument="reliability", value=value)
    bound = 1 - 1e-12  # artanh(1) is infinite
    return Reliability(math.atanh(min(max(float(value), -bound), bound)), 0.0, 1, GIVEN)


def ranks_of(scores: FloatArray) -> FloatArray:
    """Return ranks from 1 for the highest; equal ones share their mean; NaN for no score.

    >>> ranks_of(np.array([0.5, np.nan, 0.9, 0.5]))
    array([2.5, nan, 1. , 2.5])
    """
    found = np.full(len(scores), np.nan)
    known = np.isfinite(scores)
    found[known] = average_ranks(-scores[known])
    return found


def _agreement(scores: Sequence[FloatArray]) -> FloatArray:
    """Return Kendall's τ-b of each pair of measures over the checkpoints that have both."""
    found = np.eye(len(scores))
    for i, one in enumerate(scores):
        for j, two in enumerate(scores[:i]):
            both = np.isfinite(one) & np.isfinite(two)
            tau = kendall(one[both][None], two[both])[0] if both.sum() > 1 else np.nan
            found[i, j] = found[j, i] = tau
    return found


def missing(found: Mapping[str, Sequence[Score]], names: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return by measure the checkpoints without a score, and the reason for each."""
    reasons = {
        measure: {n: s.reason for n, s in zip(names, own, strict=True) if s.reason} for measure, own in found.items()
    }
    return {measure: own for measure, own in reasons.items() if own}


def alarms(
    found: Mapping[str, Sequence[Score]], names: Sequence[str], failures: Mapping[str, str], leader: str
) -> list[str]:
    """Return warnings: one sentence for all checkpoints that share a problem."""
    texts = [prefix(f"{name} is not ranked: ", reason) for name, reason in failures.items()]
    for measure, reasons in missing(found, names).items():
        last = ", ranked last without a rank" if measure == leader else ""
        for reason, own in grouped((reason, name) for name, reason in reasons.items()).items():
            texts.append(prefix(f"No {measure} for {listed(own, names)}{last}: ", reason))
    for measure, scored in found.items():
        pairs = ((text, n) for n, one in zip(names, scored, strict=True) for text in one.warnings)
        texts += [prefix(f"{measure} of {listed(own, names)}: ", text) for text, own in grouped(pairs).items()]
    return texts


def ties(leader: str, names: Sequence[str], scores: FloatArray) -> list[str]:
    """Return remarks on checkpoints of equal score."""
    groups = (
        [name for name, score in zip(names, scores, strict=True) if score == value]
        for value in np.unique(scores[np.isfinite(scores)])
    )
    return [f"{listed(own, [])} have the same {leader} and share a rank." for own in groups if len(own) > 1]


def blind(measure: RankingMeasure, scores: FloatArray, targets: Targets, scored: int) -> list[str]:
    """Return a warning if no checkpoint scores above a guess by class frequencies."""
    if not measure.guess or targets.kind != "classes" or not np.isfinite(scores).any():
        return []
    share = np.bincount(targets.codes) / len(targets)
    share = share[share > 0]
    guess = float(share @ np.log(share)) if measure.guess == "log" else float(share.max())
    # The best of several shares of hits may be three standard errors above the guess by chance.
    slack = 3 * np.sqrt(guess * (1 - guess) / scored) if measure.guess == "share" else 0.0
    if np.nanmax(scores) > guess + slack:
        return []
    above = "significantly above" if slack else "above"
    return [
        f"No checkpoint has a score by {measure.name} {above} {guess:.3g}, that of a guess by class "
        "frequencies: none predicts these labels. Check that labels and examples belong together."
    ]


def listed(some: Sequence[str], every: Sequence[str]) -> str:
    """Return names as they stand in a sentence.

    >>> listed(["a", "b"], ["a", "b", "c"]), listed(["a", "b"], ["a", "b"])
    ("'a', 'b'", 'all 2 checkpoints')
    """
    if len(some) == len(every) and len(every) > 1:
        return f"all {len(some)} checkpoints"
    return list_names(some, NAMED)
