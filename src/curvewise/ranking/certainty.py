"""Intervals of scores and ranks, and the probability that the best checkpoint is among the first few."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import InputError
from curvewise.ranking.scoring import Replicates
from curvewise.text import Message, arg
from curvewise.types.units import FloatArray, as_floats

GRID = 200  # values of the spread τ over which its posterior is computed
DRAWS = 4000


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
# image sets (Agostinelli et al. 2022); its H-score is the plain one. "examples/checkpoints": 16
# networks, fine-tuned there on 3. "NeuCRaB": the mean correlations that tables 1 to 3 of Li et al.
# 2021 print. Where there are not a dozen tasks, the spread between tasks is that of the others.
HERE = "examples/checkpoints"
BOTH, PRINTED = f"stable_transfer, {HERE}", f"NeuCRaB, {HERE}"
RELIABILITY = {
    "gbc": Reliability(0.689, 0.278, 12, BOTH),
    "h-score": Reliability(0.338, 0.469, 12, BOTH),
    "leep": Reliability(0.134, 0.282, 12, BOTH),
    "logme": Reliability(0.738, 0.259, 12, BOTH),
    "nleep": Reliability(1.034, 0.565, 12, BOTH),
    "finetune-1": Reliability(0.23, 0.391, 4, "NeuCRaB"),
    "finetune-5": Reliability(0.542, 0.391, 4, "NeuCRaB"),
    "linear": Reliability(0.616, 0.391, 7, PRINTED),
    "linear-1": Reliability(0.311, 0.391, 7, PRINTED),
    "linear-5": Reliability(0.412, 0.391, 7, PRINTED),
    "mi-0.01": Reliability(0.143, 0.391, 7, PRINTED),
    "mi-0.5": Reliability(0.128, 0.391, 7, PRINTED),
    "mi-pca-0.01": Reliability(0.411, 0.391, 7, PRINTED),
    "mi-pca-0.5": Reliability(0.226, 0.391, 7, PRINTED),
    "knn": Reliability(0.312, 0.391, 3, HERE),
    "nce": Reliability(-0.019, 0.391, 3, HERE),
    "parc": Reliability(0.217, 0.391, 3, HERE),
    "transrate": Reliability(0.881, 0.391, 3, HERE),
}
# Of a measure without a reference: the lower quartile of those that have one.
UNKNOWN = Reliability(0.219, 0.391, 4, "no reference")
# Correlation below which a measure says next to nothing.
LOW = 0.3


def find_reliability(measure: str, given: Reliability | float | str | None) -> tuple[Reliability, str]:
    """Return the reliability of a measure, and a remark on it where one is due.

    >>> found, said = find_reliability("nleep", None)
    >>> round(found.correlation, 2), said
    (0.78, '')
    """
    if given is not None:
        return as_reliability(given), ""
    found = RELIABILITY.get(measure, UNKNOWN)
    if measure not in RELIABILITY:
        return found, Message(
            f"No reference says how scores of {measure} correlate with accuracies: a cautious "
            f"correlation of about {found.correlation:.2f} is assumed. If you know it, pass "
            f"{arg('reliability', 0.8)}, say; for a variant of a measure that has a reference, its name, "
            f"such as {arg('reliability', 'nleep')}."
        )
    if found.correlation < LOW:
        return found, (
            f"Scores of {measure} correlated with accuracies by {found.correlation:.2f} only in "
            f"the reference ({found.source}): the probabilities are hardly better than those of a "
            "random choice, and may be worse."
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
    1 over the pool and r the measure's reliability, which varies from task to task.

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
    array([0. , 0.1, 0.9])
    """
    values = as_floats(scores, "scores")
    if values.ndim != 1 or not len(values) or not np.isfinite(values).all():
        raise InputError(f"scores has shape {values.shape}: give a finite score per checkpoint.")
    generator = np.random.default_rng(rng)
    drawn = np.tile(values, (DRAWS, 1)) if likely is None else likely
    z = drawn - drawn.mean(axis=1, keepdims=True)
    size = z.std(axis=1, keepdims=True)
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
    return Reliability(math.atanh(min(max(float(value), -bound), bound)), 0.0, 1, "given")


def likely_scores(
    scores: FloatArray, replicates: Replicates, rng: np.random.Generator, draws: int = DRAWS
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
    contrasts = np.linalg.qr(np.column_stack([np.ones(count), np.eye(count)[:, 1:]]))[0][:, 1:]
    noise, vectors = np.linalg.eigh(contrasts.T @ covariance @ contrasts)
    noise = np.clip(noise, 0.0, None)
    turned = vectors.T @ contrasts.T @ scores
    top = 3 * math.sqrt(float(np.mean(turned**2 + noise))) or 1.0
    grid = top * (np.arange(GRID) + 0.5) / GRID
    total = grid[:, None] ** 2 + noise
    log = -0.5 * (np.log(total) + turned**2 / total).sum(axis=1)
    log -= 2 * np.log(math.sqrt(float(noise.mean())) + grid)
    weight = np.exp(log - log.max())
    tau2 = rng.choice(grid, draws, p=weight / weight.sum())[:, None] ** 2
    kept = tau2 / (tau2 + noise)
    drawn = kept * turned + np.sqrt(kept * noise) * rng.standard_normal((draws, count - 1))
    found: FloatArray = drawn @ (contrasts @ vectors).T
    return found


def _covariance(replicates: Replicates) -> FloatArray:
    """Return the covariance of scores without their shared error, shrunk towards its diagonal as replicates are few.

    The weight of the diagonal is that of the oracle-approximating shrinkage (Chen et al. 2010),
    applied to the correlations.
    """
    apart = replicates.deviations - replicates.deviations.mean(axis=1, keepdims=True)
    found = apart.T @ apart / replicates.freedom
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
    scores: FloatArray, replicates: Replicates, level: float, bounds: tuple[float, float] = (-np.inf, np.inf)
) -> tuple[FloatArray, FloatArray]:
    """Return the interval of each score, Student's t times the standard error to either side, within the bounds."""
    from scipy.special import stdtrit

    half = float(stdtrit(replicates.freedom, 0.5 + level / 2)) * replicates.errors()
    low, high = (np.clip(end, *bounds) for end in (scores - half, scores + half))
    return np.minimum(low, scores), np.maximum(high, scores)


def rank_limits(
    scores: FloatArray, replicates: Replicates, level: float, rng: np.random.Generator
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
        sure = _different(j, scores, replicates, noise, level)
        low[j] += np.sum(sure & (scores > scores[j]))
        high[j] -= np.sum(sure & (scores < scores[j]))
    return low, high


def _different(
    j: int, scores: FloatArray, replicates: Replicates, noise: FloatArray, level: float
) -> NDArray[np.bool_]:
    """Return a mask of the checkpoints that differ significantly from checkpoint j."""
    apart = replicates.deviations - replicates.deviations[:, [j]]
    error = np.sqrt((apart**2).sum(axis=0) / replicates.freedom)
    difference = np.abs(scores - scores[j])
    sure: NDArray[np.bool_] = (error == 0) & (difference > 0)
    open_ = (error > 0) & np.isfinite(error)
    signs = np.where(np.argsort(np.argsort(scores)) % 2, 1, -1)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = difference / error
        drawn = (noise - noise[:, [j]]) * signs / error
    while open_.any():
        limit = np.quantile(drawn[:, open_].max(axis=1), level)
        found = open_ & (t > limit)
        if not found.any():
            break
        sure |= found
        open_ &= ~found
    return sure
