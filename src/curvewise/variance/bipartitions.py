"""Every two-class task that k classes hold, and whether the error predicts its variance."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtr, stdtrit

from curvewise.errors import InputError
from curvewise.stats import holm
from curvewise.types import FloatArray, Interval, Predictions, Result, as_predictions, check_level
from curvewise.variance._estimates import chance, interval_of, run_std
from curvewise.variance._task_errors import FitOfTasks, fit_tasks, task_calibration, task_errors
from curvewise.variance._votes import Votes, count_votes

MOST_CLASSES = 12
"""Up to here every task is measured: 2,047 of them."""

SAMPLED = 511
"""Tasks drawn where there are more classes."""


@dataclass(frozen=True, eq=False)
class Bipartitions(Result):
    """Two-class tasks made of k classes, with measured and predicted variance between runs.

    Attributes
    ----------
    runs, examples, classes : int
        The size of the experiment; classes that occur.
    tasks, possible : int
        How many tasks were measured, and how many there are.
    r_squared : Interval
        1 − SSE/SST of the standard deviations that √(err/2n) predicts for the measured ones.
    correlation_squared : Interval
        Squared correlation of the same, which forgives a wrong scale.
    binomial_r_squared : Interval
        1 − SSE/SST of √(err(1 − err)/n).
    error_ratio : Interval
        Mean squared error of the binomial variance over that of err/2n.
    disagreement_ratio : float
        Disagreement of two runs over error, tasks together: 1 if votes are calibrated.
    rejected : int
        Tasks on which error and disagreement differ (Holm's correction for all tasks).
    errors, measured, measured_low, measured_high : ndarray, shape (tasks,)
        Mean error of each task; standard deviation between runs with its limits.
    calibrated, binomial, distribution : ndarray, shape (tasks,)
        √(err/2n), √(err(1 − err)/n), and the standard deviation of true error (0 if its
        estimated variance is negative).
    disagreement, pvalues : ndarray, shape (tasks,)
        Of two runs, and adjusted p-values of error = disagreement.
    sides : ndarray of bool, shape (tasks, classes)
        Which classes are on the second side.
    names : tuple
        What the classes are called.
    level : float
        Coverage of the intervals, for which runs are sampled (jackknife).
    """

    runs: int
    examples: int
    classes: int
    tasks: int
    possible: int
    r_squared: Interval
    correlation_squared: Interval
    binomial_r_squared: Interval
    error_ratio: Interval
    disagreement_ratio: float
    rejected: int
    errors: FloatArray
    measured: FloatArray
    measured_low: FloatArray
    measured_high: FloatArray
    calibrated: FloatArray
    binomial: FloatArray
    distribution: FloatArray
    disagreement: FloatArray
    pvalues: FloatArray
    sides: NDArray[np.bool_]
    names: tuple[Any, ...]
    level: float
    warnings: tuple[str, ...]

    @property
    def assumption_holds(self) -> bool:
        """Whether no task contradicts calibration, which err/2n needs."""
        return self.rejected == 0

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per task."""
        sides = [
            " ".join(str(n) for n, s in zip(self.names, row, strict=True) if s)
            for row in self.sides
        ]
        return {
            "second side": sides,
            "error": self.errors,
            "measured std": self.measured,
            "low": self.measured_low,
            "high": self.measured_high,
            "err/2n std": self.calibrated,
            "binomial std": self.binomial,
            "distribution std": self.distribution,
            "disagreement": self.disagreement,
            "pvalue": self.pvalues,
        }

    def summary(self) -> str:
        """How well the error predicts the variance, in a few sentences."""
        many = self.possible > 10**6
        possible = f"2^{self.classes - 1} − 1" if many else f"{self.possible:,}"
        which = "All" if self.tasks == self.possible else f"{self.tasks:,} random ones of"
        ratio = self.error_ratio
        verdict = (
            "error and disagreement agree on every task, as the formula needs"
            if self.assumption_holds
            else f"error and disagreement differ on {self.rejected:,} tasks, so the votes are not"
            " calibrated as the formula needs"
        )
        return " ".join(
            [
                f"{which} {possible} two-class tasks from {self.classes} classes, over"
                f" {self.runs:,} runs and {self.examples:,} examples: err/2n predicts the standard"
                f" deviation between runs with R² = {_plain(self.r_squared)} (squared correlation"
                f" {_plain(self.correlation_squared)}).",
                "Its variances are"
                f" {ratio.estimate:.3g} [{ratio.low:.3g}, {ratio.high:.3g}] times as accurate, in"
                " squared error, as those of the binomial.",
                f"Two runs disagree {self.disagreement_ratio:.2f} times as often as one errs:"
                f" {verdict}.",
                *(f"Beware: {w}" for w in self.warnings),
            ]
        )


def measure_bipartitions(
    predictions: Predictions | ArrayLike,
    labels: ArrayLike | None = None,
    *,
    kind: str | None = None,
    axes: Sequence[str] | None = None,
    tasks: int | None = None,
    level: float = 0.95,
    rng: int | np.random.Generator = 0,
) -> Bipartitions:
    """Compare predicted with measured variance on all two-class tasks that the classes hold.

    Each way to put k classes on two sides makes a task with the predictions at hand: 2^(k−1) − 1
    of them. A run errs if it predicts a class of the other side.

    Parameters
    ----------
    predictions : Predictions or array_like, shape (runs, examples)
        Predicted labels, or probabilities with an axis for the classes; four runs or more.
    labels : array_like, shape (examples,), optional
        True classes.
    kind, axes
        As in :func:`decompose_variance`.
    tasks : int, optional
        Tasks to draw at random. By default all of them up to 12 classes, 511 beyond.
    level : float
        Coverage of the intervals.
    rng : int or Generator
        Determines the tasks drawn.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> q = rng.dirichlet(np.full(4, 0.3), 2000).cumsum(axis=1)
    >>> says = lambda *runs: (rng.random((*runs, 2000, 1)) > q).sum(axis=-1)
    >>> b = measure_bipartitions(says(100), says())
    >>> b.tasks, b.error_ratio.low > 1
    (7, True)
    """
    check_level(level)
    if tasks is not None and tasks < 1:
        raise InputError(f"tasks={tasks} must be at least 1; leave it out for all of them.")
    given = as_predictions(predictions, labels, kind=kind, axes=axes)
    votes = count_votes(given, least=4)
    if votes.classes < 2:
        raise InputError("labels and predictions hold one class only: two are needed.")
    sides = _sides(votes.classes, tasks, np.random.default_rng(rng))
    wrong = task_errors(given, votes, sides)
    return _result(votes, sides, wrong, fit_tasks(wrong, votes.examples), level)


def _sides(k: int, tasks: int | None, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Tasks × classes; the first class is on the first side."""
    possible = 2 ** (k - 1) - 1
    wanted = tasks if tasks is not None else possible if k <= MOST_CLASSES else SAMPLED
    if wanted >= possible:
        codes = np.arange(1, possible + 1)
        every: NDArray[np.bool_] = (codes[:, None] >> np.arange(k - 1, -1, -1)) % 2 == 1
        return every
    drawn: dict[bytes, NDArray[np.bool_]] = {}
    while len(drawn) < wanted:
        side = rng.random(k) < 0.5
        side = side ^ side[0]
        if side.any():
            drawn[side.tobytes()] = side
    return np.stack(list(drawn.values()))


def _result(
    votes: Votes,
    sides: NDArray[np.bool_],
    wrong: NDArray[np.float32],
    fit: FitOfTasks,
    level: float,
) -> Bipartitions:
    n, k = votes.counts.shape
    error = wrong.mean(axis=0, dtype=np.float64) / n
    stds = [run_std(column / n, level) for column in wrong.T.astype(np.float64)]
    disagreement, statistic, degrees = task_calibration(votes, sides)
    pvalues = holm(2 * stdtr(degrees, -np.abs(statistic)))
    measured = np.array([s.estimate for s in stds])
    true = (measured**2 - disagreement / (2 * n)) * n / (n - 1)
    return Bipartitions(
        runs=votes.runs,
        examples=n,
        classes=k,
        tasks=len(sides),
        possible=2 ** (k - 1) - 1,
        r_squared=_below_one(fit.unexplained, votes.runs, level),
        correlation_squared=chance(_below_one(fit.uncorrelated, votes.runs, level)),
        binomial_r_squared=_below_one(fit.binomial_unexplained, votes.runs, level),
        error_ratio=_from_logarithm(fit.error_ratio, votes.runs, level),
        disagreement_ratio=_over(float(disagreement.mean()), float(error.mean())),
        rejected=int(np.count_nonzero(pvalues < 1 - level)),
        errors=error,
        measured=measured,
        measured_low=np.array([s.low for s in stds]),
        measured_high=np.array([s.high for s in stds]),
        calibrated=np.sqrt(error / (2 * n)),
        binomial=np.sqrt(error * (1 - error) / n),
        distribution=np.sqrt(np.maximum(0.0, true)),
        disagreement=disagreement,
        pvalues=pvalues,
        sides=sides,
        names=votes.names,
        level=level,
        warnings=_warnings(votes, len(sides)),
    )


def _over(above: float, below: float) -> float:
    return above / below if below > 0 else math.nan


def _below_one(values: FloatArray, runs: int, level: float) -> Interval:
    """1 − x, from x with all runs and without each of them."""
    x = _from_logarithm(values, runs, level)
    return Interval(1 - x.estimate, 1 - x.high, 1 - x.low, level)


def _from_logarithm(values: FloatArray, runs: int, level: float) -> Interval:
    """A positive quantity with all runs (first) and without each: jackknife of its logarithm."""
    if not (np.isfinite(values) & (values > 0)).all():
        return Interval(float(values[0]), math.nan, math.nan, level)
    logs = np.log(values)
    error = math.sqrt(float(np.var(logs[1:])) * (runs - 1))
    half = float(stdtrit(runs - 1, (1 + level) / 2)) * error
    return interval_of(np.exp([logs[0], logs[0] - half, logs[0] + half]), level)


def _warnings(votes: Votes, tasks: int) -> tuple[str, ...]:
    notes = []
    if tasks < 3:
        notes.append(f"{tasks} task(s) are too few for an R².")
    if votes.groups is not None:
        notes.append(
            "groups count for the test of calibration only: the standard deviations of true error"
            " take examples as independent."
        )
    return tuple(notes)


def _plain(interval: Interval) -> str:
    return f"{interval.estimate:.3f} [{interval.low:.3f}, {interval.high:.3f}]"
