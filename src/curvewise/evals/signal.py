"""Signal and noise of a benchmark: how far it spreads models apart, beside how much a score moves during training."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import chdtri, stdtrit

from curvewise.errors import InputError, brief, warn_all
from curvewise.stats.intervals import KNOWN, variance_degrees
from curvewise.text import format_interval
from curvewise.types.results import FloatArray, Interval, Result, as_floats, check_level, interval_columns

FEW_CHECKPOINTS = 5
"""With fewer checkpoints of all runs together, the noise is hardly known."""

ROUNDING = 1e-12
"""Relative deviations smaller than this are those of rounding: the mean of three times 0.1 is not 0.1."""


def measure_signal(
    final: ArrayLike | Mapping[str, float], checkpoints: ArrayLike | Mapping[str, ArrayLike], *, level: float = 0.95
) -> BenchmarkSignal:
    """Measure the signal-to-noise ratio of a benchmark (Heineman et al. 2025).

    The signal is the relative dispersion of models: the largest difference of their final scores over the mean of them.
    The noise is the relative standard deviation of the scores of the last checkpoints of a training run. A benchmark
    with a high ratio ranks small models as it ranks large ones.

    Parameters
    ----------
    final : array_like or mapping
        Final score of each model.
    checkpoints : array_like or mapping
        Scores of the last checkpoints of a run; of several runs, a row (or an entry) for each.
    level : float
        Coverage of the intervals. They take the models as given, and deviations of checkpoints as independent and
        normal; the noise of a final score is that of a checkpoint.

    Examples
    --------
    >>> s = measure_signal([0.41, 0.52, 0.47, 0.60], [0.50, 0.51, 0.49, 0.50, 0.52, 0.50])
    >>> print(s.signal, "|", s.noise, "|", s.ratio)
    0.38 [0.24, 0.52] | 0.021 [0.012, 0.059] | 19 [1, 37]
    """
    check_level(level)
    scores = as_floats(list(final.values()) if isinstance(final, Mapping) else final, "final").ravel()
    runs = _checkpoint_runs(checkpoints)
    for name, values in (("final", scores), *(("checkpoints", run) for run in runs)):
        if len(values) < 2:
            raise InputError("holds one score: at least two are needed.", argument=name)
        if not np.isfinite(values).all():
            raise InputError("holds values that are NaN or infinite.", argument=name)
        if values.mean() <= 0:
            raise InputError(
                "has a mean that is not above 0, to which signal and noise are relative.",
                argument=name,
                remedy="Pass scores that are positive, such as accuracies or bits per byte.",
            )
    freedom = sum(len(run) - 1 for run in runs)
    # Relative to its own mean first, so that runs at different levels can be pooled.
    relative = math.sqrt(sum(float(((run / run.mean() - 1) ** 2).sum()) for run in runs) / freedom)
    if relative < ROUNDING:
        raise InputError("do not differ at all: there is no noise to measure.", argument="checkpoints")
    degrees = _degrees(runs)
    mean, width = float(scores.mean()), float(np.ptp(scores))
    sigma = relative * mean
    notes = []
    if freedom + 1 < FEW_CHECKPOINTS:
        notes.append(f"{freedom + len(runs)} checkpoints: too few to know the noise well.")
    slope = _dependence(runs)
    if slope > 2 / math.sqrt(freedom):
        notes.append(
            f"scores of successive checkpoints are correlated ({slope:.2f}): the scores still rise or move slowly, and"
            " the noise is known less well than its interval says."
        )
    warn_all(notes)
    reach = _pair_reach(level, len(scores), degrees) * sigma
    ends = [relative * math.sqrt(degrees / float(chdtri(degrees, p))) for p in ((1 - level) / 2, (1 + level) / 2)]
    # Two statements, each at half of the error: the noise, and the spread in units of the true noise.
    tail = (1 - level) / 4
    far = _pair_reach(1 - (1 - level) / 2, len(scores), KNOWN)
    low, high = (relative * math.sqrt(degrees / float(chdtri(degrees, p))) for p in (tail, 1 - tail))
    signal = width / mean
    return BenchmarkSignal(
        signal=Interval(signal, max(0.0, width - reach) / mean, (width + reach) / mean, level),
        noise=Interval(relative, ends[0], ends[1], level),
        ratio=Interval(signal / relative, max(0.0, signal / high - far), signal / low + far, level),
        models=len(scores),
        runs=len(runs),
        checkpoints=sum(map(len, runs)),
        level=level,
        warnings=tuple(notes),
    )


def _checkpoint_runs(checkpoints: ArrayLike | Mapping[str, ArrayLike]) -> list[FloatArray]:
    """Return the scores of each run, which may be of unequal lengths."""
    if isinstance(checkpoints, Mapping):
        return [as_floats(run, f"checkpoints[{brief(name)}]").ravel() for name, run in checkpoints.items()]
    if isinstance(checkpoints, Sequence) and checkpoints and np.ndim(checkpoints[0]) == 1:
        return [as_floats(run, "checkpoints").ravel() for run in checkpoints]
    array = as_floats(checkpoints, "checkpoints")
    if array.ndim not in (1, 2) or array.size == 0:
        raise InputError(f"has shape {array.shape}: give a row of scores for each run.", argument="checkpoints")
    return list(np.atleast_2d(array))


def _dependence(runs: Sequence[FloatArray]) -> float:
    """Correlation of successive checkpoints, pooled over runs, corrected for the bias of short ones."""
    around = [run - run.mean() for run in runs]
    squares = sum(float((x**2).sum()) for x in around)
    steps = sum(len(x) - 1 for x in around)
    # The mean of a run is fitted: independent values correlate by −1/T.
    bias = sum((len(x) - 1) / len(x) for x in around) / steps
    return sum(float((x[1:] * x[:-1]).sum()) for x in around) / squares + bias if squares else 0.0


def _pair_reach(level: float, count: int, degrees: float) -> float:
    """Standard deviations by which a difference of so many scores may be off, any of them (Bonferroni)."""
    return math.sqrt(2) * float(stdtrit(degrees, 1 - (1 - level) / (count * (count - 1))))


def _degrees(runs: Sequence[FloatArray]) -> float:
    """Degrees of freedom of the noise, fewer where deviations have heavy tails."""
    around = [(run / run.mean() - 1) * math.sqrt(len(run) / (len(run) - 1)) for run in runs]
    return variance_degrees(np.concatenate(around), sum(len(run) - 1 for run in runs))


@dataclass(frozen=True, eq=False)
class BenchmarkSignal(Result):
    """Signal and noise of a benchmark.

    Attributes
    ----------
    signal : Interval
        Largest difference of final scores, relative to their mean.
    noise : Interval
        Standard deviation of the last checkpoints of a run, relative to their mean (ddof 1).
    ratio : Interval
        Signal over noise; the interval is conservative.
    models, runs, checkpoints : int
        Models with a final score; runs with checkpoints, and these in all.
    """

    signal: Interval
    noise: Interval
    ratio: Interval
    models: int
    runs: int
    checkpoints: int
    level: float
    warnings: tuple[str, ...]

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per quantity: signal, noise and their ratio."""
        return interval_columns({"signal": self.signal, "noise": self.noise, "ratio": self.ratio})

    def sentences(self) -> str:
        """The ratio in a sentence or two."""
        signal, noise = (format_interval(i, "fraction") for i in (self.signal, self.noise))
        return (
            f"The benchmark spreads {self.models} models over {signal} of their mean score, and the score of a run"
            f" moves by {noise} between its last checkpoints: a signal-to-noise ratio of"
            f" {format_interval(self.ratio)}."
        )
