"""Scores of checkpoints by measures, on all examples and on random parts of them."""

from __future__ import annotations

import inspect
import math
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import CurvewiseWarning, InputError, either, suggest
from curvewise.progress import Advance
from curvewise.ranking import distances, moments, prediction
from curvewise.ranking.measure import CheckpointFeatures, RankingMeasure, Targets, from_one_hot
from curvewise.ranking.moments import h_score, signed_h_score
from curvewise.ranking.prediction import nleep, nleep_reduced, reduce_features
from curvewise.stats.intervals import wilson_interval
from curvewise.types.results import FloatArray

# All measures that need features and labels alone, by name; those that train something are in networks/rank.py.
MEASURES: Mapping[str, RankingMeasure] = {
    measure.name: measure for measure in (*prediction.MEASURES, *moments.MEASURES, *distances.MEASURES)
}
# Share of the variance that nleep keeps by default.
ENERGY = 0.8
# Share of replicates that may fail before a checkpoint's spread is called unknown.
FAILED_SHARE = 0.2
# Replicates for a spread to be known.
LEAST = 10
# Values of the spread τ over which its posterior is computed.
GRID = 200
DRAWS = 4000
Rows = NDArray[np.int64]
Named = str | RankingMeasure | Callable[..., float]
MISSING = {
    "probabilities": "has no classes of its own (no probabilities)",
    "network": "is not given as a network that can be trained",
}


@dataclass(frozen=True, eq=False)
class Candidate:
    """A checkpoint with the inputs that measures are computed from.

    Attributes
    ----------
    name : str
    inputs : dict of str to object
        "features", "probabilities" and "network", as far as there are any; each gives those of some
        examples when indexed by their rows.
    about : CheckpointFeatures
        Its features, with the cost of the forward pass.
    """

    name: str
    inputs: Mapping[str, Any]
    about: CheckpointFeatures

    @classmethod
    def of(cls, found: CheckpointFeatures, **more: Any) -> Candidate:
        """Make a candidate from features, with probabilities if there are any, and ``more`` inputs."""
        inputs = {"features": found.features, "probabilities": found.probabilities, **more}
        return cls(found.name, {k: v for k, v in inputs.items() if v is not None}, found)


@dataclass(eq=False)
class Score:
    """Score of a checkpoint by a measure.

    Attributes
    ----------
    value : float
        NaN where it failed or does not apply.
    seconds, gflops : float
        Cost, without the forward pass.
    reason : str
        Why there is no value.
    warnings : tuple of str
        Warnings of the measure.
    hits : ndarray, optional
        Of a measure that is a mean over test examples, the value of each.
    """

    value: float = math.nan
    seconds: float = math.nan
    gflops: float = math.nan
    reason: str = ""
    warnings: tuple[str, ...] = ()
    hits: NDArray[Any] | None = field(default=None, repr=False)


def find_measures(
    measures: Sequence[Named] | Named, known: Mapping[str, RankingMeasure], more: str = ""
) -> tuple[RankingMeasure, ...]:
    """Return measures by name, as they are given, or made from a function; ``more`` is said of an unknown one."""
    if isinstance(measures, str | RankingMeasure) or callable(measures):
        measures = [measures]
    found = [_measure(item, known, more) for item in measures]
    if not found:
        raise InputError("give at least one.", argument="measures", value=[])
    names = [measure.name for measure in found]
    for name in names:
        if names.count(name) > 1:
            raise InputError(
                f"{name!r} occurs {names.count(name)} times: give it once.", argument="measures", value=names
            )
    return tuple(found)


def _measure(item: Named, known: Mapping[str, RankingMeasure], more: str) -> RankingMeasure:
    if isinstance(item, RankingMeasure):
        return item
    if callable(item):
        return _from_function(item)
    if item in known:
        return known[item]
    hint = suggest(item, known) + (f" ({more})" if more else "")
    function = either(" A function of features and labels will do, too.", "")
    raise InputError(f"not among {', '.join(known)}.{hint}{function}", argument="measures", value=item)


def _from_function(function: Callable[..., float]) -> RankingMeasure:
    """Make a measure from a function, whose arguments say what it takes and whether it splits."""
    arguments = inspect.signature(function).parameters
    own = "probabilities" if "test_probabilities" in arguments else "features"
    return RankingMeasure(
        name=getattr(function, "__name__", type(function).__name__),
        function=function,
        about="A function of your own.",
        cost="Unknown.",
        fails="Unknown.",
        flops=lambda n, d, classes: math.nan,
        takes=own,
        splits=f"test_{own}" in arguments,
        seeded="rng" in arguments,
        targets=("classes", "multilabel", "numbers"),
    )


@dataclass(frozen=True, eq=False)
class Scorer:
    """Compute measures of candidates on some rows of the same examples.

    Attributes
    ----------
    labels : ndarray
        For each example.
    targets : Targets
        The same, read.
    """

    labels: NDArray[Any]
    targets: Targets

    def score(self, measure: RankingMeasure, candidate: Candidate, train: Rows, test: Rows | None, seed: int) -> Score:
        """Compute a measure on some rows, with its cost; a failure is recorded, not raised."""
        if self.targets.kind not in measure.targets:
            return Score(reason=f"takes {' or '.join(measure.targets)}, not {self.targets.kind}")
        if measure.takes not in candidate.inputs:
            return Score(reason=MISSING.get(measure.takes, f"has no {measure.takes}"))
        found = Score()
        start = time.perf_counter()
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            try:
                self._compute(found, measure, candidate, train, test, seed)
            except Exception as error:  # one that fails must not stop the others
                # In Python's terms: options of the command line are not those of a measure.
                found.reason = str(error) if isinstance(error, InputError) else repr(error)
        found.seconds = time.perf_counter() - start
        own = []
        for one in heard:
            if issubclass(one.category, CurvewiseWarning):
                own.append(one.message.args[0] if isinstance(one.message, Warning) else one.message)
            else:  # of numpy, or of a user's function: passed on
                warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
        found.warnings = tuple(dict.fromkeys(own))
        if not found.reason and not math.isfinite(found.value):
            found.value, found.reason = math.nan, f"gave {found.value}"
        rows = len(train) + (0 if test is None else len(test))
        found.gflops = self.flops(measure, candidate, rows) / 1e9
        return found

    def flops(self, measure: RankingMeasure, candidate: Candidate, rows: int) -> float:
        """Return the number of operations of a measure; NaN where it is not known."""
        count, width = candidate.about.features.shape
        if measure.takes == "network":  # counted in operations of the forward pass of one example
            forward = candidate.about.gflops
            width = 0 if forward is None else round(1e9 * forward / count)
        elif measure.takes == "probabilities" and "probabilities" in candidate.inputs:
            width = candidate.inputs["probabilities"].shape[1]
        return measure.flops(rows, width, max(len(self.targets.classes), 1)) or math.nan

    def _compute(
        self, found: Score, measure: RankingMeasure, candidate: Candidate, train: Rows, test: Rows | None, seed: int
    ) -> None:
        inputs = candidate.inputs[measure.takes]
        # A measure of one class each gets classes, also of a matrix with one 1 in each row.
        labels = self.labels if "multilabel" in measure.targets else from_one_hot(self.labels)[0]
        options: dict[str, Any] = {"rng": seed} if measure.seeded else {}
        if test is not None and measure.splits:
            name = "test_probabilities" if measure.takes == "probabilities" else "test_features"
            options |= {name: inputs[test], "test_labels": labels[test]}
        elif test is not None:  # a measure that does not split gets all examples, in their order
            train = np.sort(np.concatenate([train, test]))
        if measure.hits is not None and test is not None:
            found.hits = np.asarray(measure.hits(inputs[train], labels[train], **options), dtype=float)
            found.value = float(found.hits.mean())
        else:
            found.value = float(measure.function(inputs[train], labels[train], **options))


class Scoring:
    """Scores of one checkpoint after the other, with replicates of the measure that ranks.

    Parameters
    ----------
    scorer : Scorer
    measures : sequence of RankingMeasure
    leader : RankingMeasure
        The one that ranks.
    test : float, array_like of bool or None
        Which examples measures that split are scored on.
    resamples : int
        Parts of the examples that are drawn.
    rng : Generator
        Decides the split, the parts and what is random in measures.
    """

    def __init__(
        self,
        scorer: Scorer,
        measures: Sequence[RankingMeasure],
        leader: RankingMeasure,
        test: float | ArrayLike | None,
        resamples: int,
        rng: np.random.Generator,
    ) -> None:
        self.scorer, self.measures, self.leader, self.rng = scorer, measures, leader, rng
        self.train, self.test = split_rows(scorer.targets, test, rng)
        # One seed for all checkpoints, so that chance in a measure favours none of them.
        self.seed = int(self.rng.integers(2**31))
        self.by_hits = leader.hits is not None and self.test is not None
        self.share = 0.5 if self.by_hits else share_for(leader)
        # The same parts for every checkpoint: differences between checkpoints vary far less than scores.
        rows = self.train, self.test, scorer.targets, self.share, self.rng
        drawn = 0 if self.by_hits else resamples
        self.parts = [(*draw_parts(*rows), int(self.rng.integers(2**31))) for _ in range(drawn)]
        self.found: dict[str, list[Score]] = {measure.name: [] for measure in measures}
        self.drawn: list[FloatArray] = []
        self.interval_seconds = 0.0

    def total(self, candidates: Sequence[Candidate]) -> float:
        """Return the amount of work in operations, for the progress bar."""
        return math.fsum(
            sum(self._weight(m, c) for m in self.measures) + len(self.parts) * self._weight(self.leader, c) * self.share
            for c in candidates
        )

    def _weight(self, measure: RankingMeasure, candidate: Candidate) -> float:
        flops = self.scorer.flops(measure, candidate, len(self.scorer.targets))
        return flops if math.isfinite(flops) else float(candidate.about.features.size)

    def score(self, candidate: Candidate, advance: Advance) -> None:
        """Compute all measures of a checkpoint, and replicates of the one that ranks."""
        for measure in self.measures:
            advance(0, f"{candidate.name}: {measure.name}")
            found = self.scorer.score(measure, candidate, self.train, self.test, self.seed)
            self.found[measure.name].append(found)
            advance(self._weight(measure, candidate))
        start = time.perf_counter()
        values = np.full(len(self.parts), np.nan)
        each = self._weight(self.leader, candidate) * self.share
        if not len(values) or not math.isfinite(self.found[self.leader.name][-1].value):
            advance(each * len(values))
        else:
            measure, prepared = reused(self.leader, candidate, self.train, self.test)
            for i, (train, test, seed) in enumerate(self.parts):
                advance(0, f"{candidate.name}: interval of {measure.name}")
                values[i] = self.scorer.score(measure, prepared, train, test, seed).value
                advance(each)
        self.drawn.append(values)
        self.interval_seconds += time.perf_counter() - start


def split_rows(targets: Targets, test: float | ArrayLike | None, rng: np.random.Generator) -> tuple[Rows, Rows | None]:
    """Return training and test rows: a share of each class, a mask of the test rows, or no test rows."""
    if test is None:
        return np.arange(len(targets)), None
    if isinstance(test, int | float | np.number) and not isinstance(test, bool | np.bool_):
        if not 0 < test < 1:
            raise InputError("give a share between 0 and 1, a mask, or None.", argument="test", value=test)
        is_test = np.zeros(len(targets), dtype=np.bool_)
        # Within each class; several labels or numbers are split as one.
        classes = np.unique(targets.codes) if targets.kind == "classes" else np.zeros(0)
        for rows in [np.flatnonzero(targets.codes == c) for c in classes] or [np.arange(len(targets))]:
            is_test[rng.permutation(rows)[: round(float(test) * len(rows))]] = True
            if is_test[rows].all():  # a class keeps a training row, or its test rows would be of an unknown class
                is_test[rows[0]] = False
    else:
        is_test = np.asarray(test)
        if is_test.dtype != np.bool_ or is_test.shape != (len(targets),):
            raise InputError(
                f"has shape {is_test.shape} of {is_test.dtype}: give a mask with True for each "
                f"test example among {len(targets)}, a share, or None.",
                argument="test",
            )
    if not is_test.any() or is_test.all():
        raise InputError(
            f"test leaves {int((~is_test).sum())} training and {int(is_test.sum())} test examples: "
            f"both are needed. Give more examples, another share, or {either('test=None', '--test 0')}."
        )
    return np.flatnonzero(~is_test), np.flatnonzero(is_test)


def share_for(measure: RankingMeasure) -> float:
    """Return the share of the examples that a replicate keeps.

    Half of them where a measure is scored on examples it was not fitted on, or is random itself:
    the scaling of the spread would multiply that randomness. In-sample fits depend on the ratio of
    examples to dimensions, so that as little as is practical is left out: a fifth.
    """
    return 0.5 if measure.splits or measure.seeded else 0.8


def draw_part(rows: Rows, codes: NDArray[np.int64] | None, share: float, rng: np.random.Generator) -> Rows:
    """Draw a share of the rows within each class; fractions of a row are rounded at random.

    A class with one row keeps it: without it, the class would be unknown.
    """
    dealt = rng.permutation(rows)
    if codes is None:
        return np.sort(dealt[: max(1, round(share * len(rows)))])
    dealt = dealt[np.argsort(codes[dealt], kind="stable")]
    _, first, count = np.unique(codes[dealt], return_index=True, return_counts=True)
    place = np.arange(len(dealt)) - np.repeat(first, count)
    kept = np.maximum(np.floor(share * count + rng.random(len(count))), 1)
    return np.sort(dealt[place < np.repeat(kept, count)])


def draw_parts(
    train: Rows, test: Rows | None, targets: Targets, share: float, rng: np.random.Generator
) -> tuple[Rows, Rows | None]:
    """Draw a share of the training rows, and of the test rows."""
    codes = targets.codes if targets.kind == "classes" else None
    test_part = None if test is None else draw_part(test, codes, share, rng)
    return draw_part(train, codes, share, rng), test_part


def hit_replicates(hits: FloatArray, resamples: int, rng: np.random.Generator) -> FloatArray:
    """Resample the mean of hits over test examples, with the same draws for every checkpoint.

    Parameters
    ----------
    hits : ndarray, shape (checkpoints, test examples)

    Returns
    -------
    ndarray, shape (resamples, checkpoints)
    """
    count = hits.shape[1]
    weights = rng.multinomial(count, np.full(count, 1 / count), size=resamples)
    found: FloatArray = weights @ hits.T / count
    return found


class ScoreReplicates:
    """Joint spread of the scores of all checkpoints, from replicates.

    A share f of the examples without replacement has, around the whole, √((1 − f) / f) of the
    spread that the whole has around the population. ScoreReplicates are centred on their own mean,
    because fewer examples shift scores. Those that fail for a checkpoint are dropped; a checkpoint
    for which many fail has an unknown spread.

    Parameters
    ----------
    replicates : ndarray, shape (replicates, checkpoints)
    share : float
        Of the examples in each; the default is right for a bootstrap sample, too.

    Attributes
    ----------
    deviations : ndarray, shape (replicates, checkpoints)
        Mean 0; NaN throughout for a checkpoint of unknown spread.
    """

    def __init__(self, replicates: FloatArray, share: float = 0.5) -> None:
        lost = ~np.isfinite(replicates)
        unknown = lost.mean(axis=0) > FAILED_SHARE if len(replicates) else lost.any(axis=0)
        whole = ~lost[:, ~unknown].any(axis=1)
        kept = np.where(unknown, np.nan, replicates)[whole]
        if len(kept) < LEAST:
            kept = np.full((LEAST, replicates.shape[1]), np.nan)
        scale = np.sqrt(share / (1 - share))
        self.deviations: FloatArray = scale * (kept - kept.mean(axis=0))
        self.deviations[:, (kept == kept[0]).all(axis=0)] = 0.0  # not the rounding of the mean

    @property
    def freedom(self) -> int:
        """Degrees of freedom of the spread."""
        return len(self.deviations) - 1

    @property
    def known(self) -> NDArray[np.bool_]:
        """Mask of the checkpoints with a known spread."""
        return np.asarray(np.isfinite(self.deviations).all(axis=0), dtype=np.bool_)

    def errors(self) -> FloatArray:
        """Return the standard error of each score."""
        found: FloatArray = np.sqrt((self.deviations**2).sum(axis=0) / self.freedom)
        return found


def likely_scores(
    scores: FloatArray, replicates: ScoreReplicates, rng: np.random.Generator, draws: int = DRAWS
) -> FloatArray:
    """Draw the scores in the population, given those of the sample.

    Scores of a pool are taken as drawn from a normal distribution of unknown mean (flat prior) and
    spread τ, and observed with a sampling error of size s (τ has density ∝ 1/(s + τ)²; DuMouchel
    1994). The highest of many is too high in part by luck, and is shrunk accordingly. Only
    differences matter, so that the error that all scores share is removed first.

    Returns
    -------
    ndarray, shape (draws, checkpoints)
        Differences from the mean over checkpoints.
    """
    count = len(scores)
    if count == 1:
        return np.zeros((draws, 1))
    covariance = _covariance(replicates)
    if not covariance.any():  # known without an error: rotated and back, equal scores would differ by rounding
        return np.tile(scores - scores[0], (draws, 1))
    # An orthonormal basis of all differences between checkpoints, in which the sampling error is then diagonal.
    contrasts = np.linalg.qr(np.column_stack([np.ones(count), np.eye(count)[:, 1:]]))[0][:, 1:]
    noise, vectors = np.linalg.eigh(contrasts.T @ covariance @ contrasts)
    noise = np.clip(noise, 0.0, None)
    rotated = vectors.T @ contrasts.T @ scores
    # Posterior of τ on a grid, marginal over the scores; three times the observed spread is beyond all its mass.
    top = 3 * math.sqrt(float(np.mean(rotated**2 + noise))) or 1.0
    grid = top * (np.arange(GRID) + 0.5) / GRID
    total = grid[:, None] ** 2 + noise
    log = -0.5 * (np.log(total) + rotated**2 / total).sum(axis=1)
    log -= 2 * np.log(math.sqrt(float(noise.mean())) + grid)
    weight = np.exp(log - log.max())
    tau2 = rng.choice(grid, draws, p=weight / weight.sum())[:, None] ** 2
    kept = tau2 / (tau2 + noise)
    drawn = kept * rotated + np.sqrt(kept * noise) * rng.standard_normal((draws, count - 1))
    found: FloatArray = drawn @ (contrasts @ vectors).T
    return found


def _covariance(replicates: ScoreReplicates) -> FloatArray:
    """Return the covariance of scores without their shared error, shrunk towards its diagonal as replicates are few.

    The weight of the diagonal is that of the oracle-approximating shrinkage (Chen et al. 2010),
    applied to the correlations.
    """
    centred = replicates.deviations - replicates.deviations.mean(axis=1, keepdims=True)
    found = centred.T @ centred / replicates.freedom
    size = np.sqrt(np.diag(found))
    scale = np.outer(size, size)
    r = np.divide(found, scale, out=np.eye(len(found)), where=scale > 0)
    p, n = len(r), replicates.freedom
    square = float((r**2).sum())
    weight = ((1 - 2 / p) * square + p * p) / ((n + 1 - 2 / p) * (square - p) + 1e-300)
    weight = min(1.0, weight)
    shrunk: FloatArray = (1 - weight) * found + weight * np.diag(np.diag(found))
    return shrunk


def highest_shares(values: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return how often each column holds the largest value of a row, ties at random; sums to 1."""
    largest = values == values.max(axis=1, keepdims=True)
    lot = np.where(largest, rng.random(values.shape), -1.0)
    found: FloatArray = np.bincount(lot.argmax(axis=1), minlength=values.shape[1]) / len(values)
    return found


def score_limits(
    scores: FloatArray,
    replicates: ScoreReplicates,
    level: float,
    bounds: tuple[float, float] = (-np.inf, np.inf),
    examples: int = 0,
) -> tuple[FloatArray, FloatArray]:
    """Return the interval of each score, Student's t times the standard error to either side, within the bounds.

    A share of so many examples that is 0 or 1 in every replicate has Wilson's interval: others may be missed or hit.
    """
    from scipy.special import stdtrit

    errors = replicates.errors()
    half = float(stdtrit(replicates.freedom, 0.5 + level / 2)) * errors
    low, high = (np.clip(end, *bounds) for end in (scores - half, scores + half))
    if examples:
        least, most = wilson_interval(np.clip(scores, 0.0, 1.0), examples, level)
        low, high = np.where(errors == 0, least, low), np.where(errors == 0, most, high)
    return np.minimum(low, scores), np.maximum(high, scores)


def rank_limits(
    scores: FloatArray, replicates: ScoreReplicates, level: float, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Return the interval of each rank, from the significant differences between checkpoints.

    A checkpoint's rank is at least one more than the number that score significantly more, and at
    most the number of all less those that score significantly less. All differences of one
    checkpoint from the others are tested together, so that the probability of any wrong verdict is
    1 − level (the largest of the studentised differences, stepping down; Mogstad, Romano, Shaikh
    and Wilhelm 2024). Quantiles of resampled ranks would not do: noise on top of noise keeps
    checkpoints that are practically equal in the order of the sample.

    Returns
    -------
    low, high : ndarray
        The best rank and the worst; 1 is the highest score.
    """
    count = len(scores)
    low, high = np.ones(count), np.full(count, float(count))
    if count == 1:
        return low, high
    # Multivariate t with the covariance of the replicates, as random combinations of their deviations.
    weights = rng.standard_normal((DRAWS, len(replicates.deviations))) / np.sqrt(replicates.freedom)
    weights /= np.sqrt(rng.chisquare(replicates.freedom, (DRAWS, 1)) / replicates.freedom)
    noise = weights @ np.nan_to_num(replicates.deviations)
    for j in range(count):
        significant = _different(j, scores, replicates, noise, level)
        low[j] += np.sum(significant & (scores > scores[j]))
        high[j] -= np.sum(significant & (scores < scores[j]))
    return low, high


def _different(
    j: int, scores: FloatArray, replicates: ScoreReplicates, noise: FloatArray, level: float
) -> NDArray[np.bool_]:
    """Return a mask of the checkpoints that differ significantly from checkpoint j."""
    differences = replicates.deviations - replicates.deviations[:, [j]]
    error = np.sqrt((differences**2).sum(axis=0) / replicates.freedom)
    difference = np.abs(scores - scores[j])
    significant: NDArray[np.bool_] = (error == 0) & (difference > 0)
    open_ = (error > 0) & np.isfinite(error)
    # One verdict on each difference is wrong, and which is unknown. Differences from one checkpoint are positively
    # correlated, so that signs that alternate give a larger limit than equal ones.
    signs = np.where(np.argsort(np.argsort(scores)) % 2, 1, -1)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = difference / error
        drawn = (noise - noise[:, [j]]) * signs / error
    while open_.any():
        limit = np.quantile(drawn[:, open_].max(axis=1), level)
        found = open_ & (t > limit)
        if not found.any():
            break
        significant |= found
        open_ &= ~found
    return significant


def reused(
    measure: RankingMeasure, candidate: Candidate, train: Rows, test: Rows | None
) -> tuple[RankingMeasure, Candidate]:
    """Return the measure to compute on parts of the examples, and the candidate with its inputs.

    NLEEP keeps the principal components of the whole sample. They are by far the largest part of
    its cost and vary little from half to half compared with the mixture; the coverage of intervals
    is that with components of each half (``benchmarks/ranking_coverage.py``). The H-score
    continues below 0: parts of the examples that all score 0 would seem not to vary.
    """

    def again(x: Any, y: ArrayLike, *, test_features: Any = None, test_labels: Any = None, rng: int = 0) -> float:
        return nleep_reduced(x, y, test_features, test_labels, rng=rng)

    if measure.function is h_score:
        return replace(measure, function=signed_h_score), candidate
    if measure.function is not nleep:
        return measure, candidate
    features = candidate.inputs["features"]
    tested = None if test is None else features[test]
    reduced, test_reduced = reduce_features(features[train], tested, ENERGY)
    rows = train if test is None else np.concatenate([train, test])
    found: NDArray[Any] = np.empty((len(features), reduced.shape[1]), dtype=reduced.dtype)
    found[rows] = reduced if test_reduced is None else np.concatenate([reduced, test_reduced])
    inputs = {**candidate.inputs, "features": found}
    return replace(measure, function=again), replace(candidate, inputs=inputs)
