"""Rank checkpoints by what measures say of their features."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import InputError
from curvewise.progress import progress_bar
from curvewise.ranking._ranking_work import Work
from curvewise.ranking._resampling import LEAST, split_rows
from curvewise.ranking._scoring import Candidate, Named, Scorer, find_measures
from curvewise.ranking._targets import KINDS, Targets, as_targets
from curvewise.ranking.certainty import Reliability
from curvewise.ranking.measure import RankingMeasure
from curvewise.ranking.ranking_result import CheckpointRanking
from curvewise.types import check_level
from curvewise.types.features import CheckpointFeatures

DEFAULT_MEASURES = ("nleep", "logme")


def rank_features(
    checkpoints: Mapping[str, ArrayLike | CheckpointFeatures] | Sequence[CheckpointFeatures],
    labels: ArrayLike,
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
    known: Mapping[str, RankingMeasure] | None = None,
) -> CheckpointRanking:
    """Rank checkpoints for a task, from their features of the same labelled examples.

    Parameters
    ----------
    checkpoints : dict of str to array_like or CheckpointFeatures, or sequence of the latter
        Features by name, a row for each example.
    labels : array_like
        A class for each example; a matrix of 0 and 1 for several; or numbers.
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
    known : dict of str to RankingMeasure, optional
        What names stand for; all measures of this lens by default.

    Returns
    -------
    CheckpointRanking
        Ranks with intervals, every measure's scores, their agreement and cost, the first k and how
        sure it is that the best is among them.

    Raises
    ------
    InputError
        If rows and labels do not match, a measure is unknown, or the one that ranks fails for all.

    Warns
    -----
    CurvewiseWarning
        If a measure fails for a checkpoint or is where it is known to fail, or no reference says
        how far the one that ranks can be relied on.

    Notes
    -----
    Scores are estimates of what they would be on average over samples of this size, with as many
    examples of each class, from the same population: that is what their intervals cover, and by
    which true ranks are meant. (What a measure would be with no end of examples can differ for all
    checkpoints by as much as it overfits; it is a matter of how far a measure can be relied on.)

    The spread comes from random parts of the examples of each class, the same for every
    checkpoint: half of them, or four fifths for a measure that is fitted and scored on the same
    examples. A part without replacement has around the whole a known fraction of the spread that
    the whole has around the population, where errors fall with √n. (In a bootstrap sample examples
    occur twice, which makes in-sample fits too good: in simulations with more dimensions than
    examples its intervals of the H-score held the truth 77 times in 100, these 97 times.)
    Where the H-score is 0 because the covariance cannot be told from a sphere, parts of the
    examples go on below 0, without which they would seem not to vary.
    With few examples for a fit, parts vary more than they should and intervals are too wide: those
    of NLEEP twice at 10 examples a component, by a third at 40 and a fifth at 100. A measure that
    is the mean of hits of something trained is not trained anew: test examples are drawn, and the
    interval is for this one training.

    Ranks are bounded by the differences that are sure, all of one checkpoint tested together;
    their coverage is at least the level, and more where few are tied.

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
    if known is None:
        from curvewise.ranking.catalogue import MEASURES

        known = MEASURES
    candidates = [Candidate.of(found) for found in _as_features(checkpoints)]
    return rank_candidates(
        candidates,
        labels,
        find_measures(measures, known),
        test=test,
        by=by,
        resamples=resamples,
        level=level,
        k=k,
        reliability=reliability,
        rng=rng,
        progress=progress,
    )


def _as_features(
    checkpoints: Mapping[str, ArrayLike | CheckpointFeatures] | Sequence[CheckpointFeatures],
) -> list[CheckpointFeatures]:
    if isinstance(checkpoints, Mapping):
        found = [
            _renamed(name, value)
            if isinstance(value, CheckpointFeatures)
            else CheckpointFeatures(str(name), np.asanyarray(value))
            for name, value in checkpoints.items()
        ]
    else:
        found = list(checkpoints)
        for item in found:
            if not isinstance(item, CheckpointFeatures):
                raise InputError(
                    f"checkpoints holds a {type(item).__name__}: give a dict of features by name, "
                    "or CheckpointFeatures."
                )
    if not found:
        raise InputError("checkpoints is empty: give at least one.")
    return found


def _renamed(name: str, found: CheckpointFeatures) -> CheckpointFeatures:
    return found if found.name == name else replace(found, name=str(name))


def rank_candidates(
    candidates: Sequence[Candidate],
    labels: ArrayLike,
    measures: Sequence[RankingMeasure],
    *,
    test: float | ArrayLike | None = 0.2,
    by: str | None = None,
    resamples: int = 50,
    level: float = 0.95,
    k: int = 3,
    reliability: Reliability | float | str | None = None,
    rng: int | np.random.Generator = 0,
    progress: bool | None = None,
    failures: Mapping[str, str] | None = None,
    hits: Mapping[str, Callable[..., NDArray[Any]]] | None = None,
) -> CheckpointRanking:
    """Rank checkpoints as :func:`rank_features` does, with what trained measures need.

    Parameters
    ----------
    candidates : sequence of Candidate
        Checkpoints with what measures take.
    failures : dict of str to str, optional
        Checkpoints that could not be read, and why.
    hits : dict of str to callable, optional
        By measure, a function that gives its parts, one for each test example.
    labels, measures, test, by, resamples, level, k, reliability, rng, progress
        As there.
    """
    check_level(level)
    targets = _checked(candidates, labels, resamples, k)
    leader = _leader(measures, by)
    generator = np.random.default_rng(rng)
    train, held = split_rows(targets, test, generator)
    scorer = Scorer(np.asarray(labels), targets, hits or {})
    work = Work(scorer, measures, leader, train, held, resamples, generator)
    with progress_bar("ranking", work.total(candidates), progress) as advance:
        for candidate in candidates:
            work.score(candidate, advance)
    return work.result(candidates, level, k, reliability, dict(failures or {}))


def _checked(candidates: Sequence[Candidate], labels: ArrayLike, resamples: int, k: int) -> Targets:
    names = [candidate.name for candidate in candidates]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"checkpoints holds {name!r} {names.count(name)} times: rename one.")
    for argument, value, least in (("resamples", resamples, 0), ("k", k, 1)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
            raise InputError(f"{argument}={value!r}: give a whole number of at least {least}.")
    if 0 < resamples < LEAST:
        raise InputError(f"resamples={resamples}: give at least {LEAST}, or 0 for no intervals.")
    counts = {candidate.name: len(candidate.about) for candidate in candidates}
    count = len(np.asarray(labels)) if np.ndim(labels) else 0
    for name, rows in counts.items():
        if rows != count:
            raise InputError(
                f"features of {name!r} have {rows:,} rows and labels {count:,}: give those of the "
                "same examples."
            )
    return as_targets(labels, count, allowed=KINDS)


def _leader(measures: Sequence[RankingMeasure], by: str | None) -> RankingMeasure:
    for measure in measures:
        if by is None or measure.name == by:
            return measure
    raise InputError(
        f"by={by!r} is none of the measures {', '.join(m.name for m in measures)}: add it to them."
    )
