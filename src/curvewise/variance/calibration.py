"""Calibration of the votes of the runs, and the test-set variance that follows from it.

With q the share of all runs that would say class c, class-wise calibration (Jordan 2023, definition 2)
makes E[g(q)(1{y = c} − q)] = 0 for every g. Two choices matter here, summed over classes:

- g = 1 − q: error equals disagreement (theorem 5);
- g = q(1 − q): the mean of q_y(1 − q_y) equals that of Σ q²(1 − q), from which theorems 3 and 4 follow.

Powers of q are replaced by products over different runs, so that R runs give them without bias.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, ClassVar, TypeAlias, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtr, stdtrit

from curvewise.errors import InputError, brief
from curvewise.stats.clusters import cluster_degrees, cluster_variance
from curvewise.stats.intervals import wilson_interval
from curvewise.stats.tests import holm
from curvewise.text import format_interval, format_pvalue, format_value
from curvewise.types.predictions import Predictions
from curvewise.types.results import FloatArray, Interval, Result, as_generator, check_level, check_whole, interval_lists
from curvewise.variance.anova import (
    MeanTest,
    PredictionFormat,
    SamplingUnits,
    clipped,
    decimals,
    example_variance,
    interval_of,
    mean_interval,
    mean_test,
    measure_totals,
    rate_interval,
    read_predictions,
    run_std,
    split_variance,
    tied_variance,
)
from curvewise.variance.votes import Votes, count_votes

BINS = 10
GAP = "error_minus_disagreement"
IDENTITY = "variance_minus_formula"
CELLS_UP_TO = 10**8
"""Runs × examples up to which runs are left out one by one; with more, their share is negligible."""
MOST_CLASSES = 12
"""Classes up to which every two-class task is measured: 2,047 of them."""
SAMPLED = 511
"""Tasks drawn if there are more classes."""
CHUNK = 2**19
"""Entries of the tables that are held at once."""
Statistic: TypeAlias = Callable[[NDArray[Any], int, NDArray[np.bool_]], FloatArray]
VERDICTS = {
    "holds": "The runs agree with class-wise calibration, and its formulas may be used here",
    "close": (
        "The votes are not quite calibrated, but so nearly that the formulas of class-wise calibration may be used here"
    ),
    "fails": (
        "The votes are not class-wise calibrated, and its formulas must not be used here: the"
        " error alone does not give a variance"
    ),
    "undecided": (
        "These runs and examples are too few to tell whether the formulas of class-wise calibration may be used here"
    ),
}


def measure_calibration(
    predictions: Predictions | ArrayLike | PathLike[str],
    labels: ArrayLike | PathLike[str] | None = None,
    *,
    level: float = 0.95,
    tolerance: float = 0.1,
    **reading: Unpack[PredictionFormat],
) -> Calibration:
    """Predict the test-set variance from calibration, and test whether that is allowed.

    An ensemble is class-wise calibrated if, among examples that a share q of all runs gives a
    class, a share q is of that class. Then two runs disagree as often as one errs, and the
    variance between runs follows from their votes; for two classes from the error alone. Both
    are tested, Holm's correction for the two, without bias from the number of runs; examples (or
    groups) and runs both count as sampled (beyond 10⁸ predictions only examples do).

    The verdict is "holds" if no test rejects and the formulas are shown to be within
    ``tolerance``; "close" if a test rejects, but the formulas are within it all the same; "fails"
    if a test rejects and they may be further off; else "undecided".

    Parameters
    ----------
    predictions : Predictions or array_like, shape (runs, examples)
        Predicted labels, or probabilities with an axis for the classes; four runs or more.
    labels : array_like, shape (examples,), optional
        True classes.
    kind, axes
        As in :func:`decompose_variance`.
    groups : array_like, shape (examples,), optional
        Group of each example: groups are sampled together.
    level : float
        Coverage of the intervals; tests reject below 1 − ``level``.
    tolerance : float
        How far off a predicted standard deviation may be to be of use: 0.1 for a tenth.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> q = rng.beta(0.2, 0.8, 3000)
    >>> calibrated = measure_calibration(rng.random((40, 3000)) < q, rng.random(3000) < q)
    >>> calibrated.usable, round(calibrated.ratios["error_minus_disagreement"].estimate, 2)
    (True, 1.01)
    """
    check_level(level)
    if not tolerance > 0:
        raise InputError("must be above 0, such as 0.1 for a tenth.", argument="tolerance", value=tolerance)
    given = read_predictions(predictions, labels, **reading)
    # Four runs: the moments of third order leave one out of products over three.
    votes = count_votes(given, least=4, classes=2)
    totals = measure_totals(given)
    split = split_variance(totals)
    moments, ratios = measure_moments(given, votes, level)
    checks = _checks(list(ratios), [moments[name][0] for name in ratios])
    error = clipped(mean_interval(totals, split, level))
    predicted = _predicted(votes, error, moments["spread"][0].estimate)
    # The variance of true error is added as estimated: its own interval is not in that of the total.
    added = (1 - 1 / votes.examples) * max(0.0, split.distribution)
    total = {name: interval_of(np.sqrt(np.array([*i]) ** 2 + added), level) for name, i in predicted.items()}
    rejected = min(check.adjusted for check in checks) < 1 - level
    within = all(1 / (1 + tolerance) <= r.low and r.high <= 1 + tolerance for r in ratios.values())
    verdict = ("close" if within else "fails") if rejected else "holds" if within else "undecided"
    notes = []
    if any(math.isnan(r.estimate) for r in ratios.values()):
        notes.append("no run errs, or no two runs disagree: there is nothing to test.")
    if votes.runs < 10 and verdict != "fails":
        notes.append(f"{votes.runs} runs say little about how all runs would vote: train 10 or more.")
    return Calibration(
        runs=votes.runs,
        examples=votes.examples,
        classes=votes.classes,
        groups=votes.group_number,
        error=error,
        disagreement=rate_interval(votes.disagreement, votes.groups, level),
        measured=run_std(totals.run, level, tied=split.tied),
        independent_std=math.sqrt(split.independent),
        distribution_variance=split.distribution,
        predicted=predicted,
        total=total,
        checks=checks,
        class_checks=_checks(list(map(str, votes.names)), moments[GAP][1:]),
        ratios=ratios,
        tolerance=tolerance,
        verdict=verdict,
        level=level,
        warnings=tuple(notes),
        _reliability=reliability(votes, BINS, level),
    )


@dataclass(frozen=True, eq=False)
class Calibration(Result):
    """Test-set variance that class-wise calibration predicts, and whether it may be believed.

    Attributes
    ----------
    runs, examples, classes : int
        Size of the experiment; classes that occur.
    groups : int or None
        Number of groups of examples that belong together.
    error, disagreement : Interval
        Chance that a run errs, and that two runs disagree.
    measured : Interval
        Standard deviation between runs of the error on this test set.
    independent_std : float
        Standard deviation if examples (or groups) erred independently.
    distribution_variance : float
        Variance of the true error between runs, signed.
    predicted : dict of str to Interval
        By formula, the standard deviation that the finite test set gives: "binomial" err(1 − err)/n, and
        "two_classes" err/2n or, for k > 2 classes, "calibrated" (the mean of Σ q²(1 − q), over n) and
        "lower_bound" err/(nk). With two classes Σ q²(1 − q) holds for any votes, calibrated or not: it
        predicts nothing.
    total : dict of str to Interval
        The same with (1 − 1/n) times the variance of true error added.
    checks : tuple of CalibrationCheck
        Differences that calibration makes 0: error minus disagreement, and (with three classes or more) the
        mean variance of an example minus the formula for it.
    class_checks : tuple of CalibrationCheck
        Contribution of each class to error minus disagreement.
    ratios : dict of str to Interval
        By check: the predicted standard deviation over the actual one.
    tolerance : float
        How far a ratio may be from 1 for the formulas to be of use.
    verdict : {"holds", "close", "fails", "undecided"}
        See :func:`measure_calibration`.
    """

    unit: ClassVar[str] = "fraction"

    runs: int
    examples: int
    classes: int
    groups: int | None
    error: Interval
    disagreement: Interval
    measured: Interval
    independent_std: float
    distribution_variance: float
    predicted: Mapping[str, Interval]
    total: Mapping[str, Interval]
    checks: tuple[CalibrationCheck, ...]
    class_checks: tuple[CalibrationCheck, ...]
    ratios: Mapping[str, Interval]
    tolerance: float
    verdict: str
    level: float
    warnings: tuple[str, ...]
    _reliability: Mapping[str, FloatArray]

    @property
    def usable(self) -> bool:
        """True if the formulas of class-wise calibration may be used here."""
        return self.verdict in ("holds", "close")

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per formula: standard deviations, without and with true variance."""
        nothing = Interval(self.independent_std, math.nan, math.nan)
        rows = {"measured": self.measured, "independent": nothing, **self.predicted}
        totals = [math.nan, math.nan, *(i.estimate for i in self.total.values())]
        return {"formula": list(rows), **interval_lists("std", rows.values()), "total_std": totals}

    def check_columns(self) -> Mapping[str, Sequence[Any]]:
        """One row per check, then one per class."""
        rows = [*self.checks, *self.class_checks]
        return {
            "check": [c.name for c in self.checks] + [f"class {c.name}" for c in self.class_checks],
            **interval_lists("difference", (c.difference for c in rows)),
            "statistic": [c.statistic for c in rows],
            "pvalue": [c.pvalue for c in rows],
            "adjusted": [c.adjusted for c in rows],
        }

    def reliability_columns(self) -> Mapping[str, FloatArray]:
        """Cells (example × class) by share of votes: confidence, frequency and its limits."""
        return self._reliability

    def sentences(self) -> str:
        """Predictions, measurement and verdict in a few sentences."""
        design = f" in {self.groups:,} groups" if self.groups else ""
        formulas = ", ".join(
            f"{format_value(i.estimate, 'fraction')} ({n.replace('_', ' ')})" for n, i in self.total.items()
        )
        off = [c.name for c in self.class_checks if c.adjusted < 1 - self.level]
        classes = f" {len(off)} of {self.classes} classes are off by themselves." if off else ""
        sizes = f"√(error/disagreement) is {format_interval(self.ratios[GAP], write=decimals(2))}"
        if IDENTITY in self.ratios:
            ratio = format_interval(self.ratios[IDENTITY], write=decimals(2))
            sizes += f", the formula's standard deviation over that of the votes {ratio}"
        return (
            f"Over {self.runs:,} runs and {self.examples:,} examples{design} of {self.classes} classes the test error"
            f" has a standard deviation of {format_interval(self.measured, 'fraction')}; predicted are {formulas}, true"
            f" differences between runs included. A run errs on {format_interval(self.error, 'fraction')} and two runs"
            f" disagree on {format_interval(self.disagreement, 'fraction')} of the examples, which calibration would"
            f" make equal ({format_pvalue(self.checks[0].pvalue)}).{classes} {VERDICTS[self.verdict]} ({sizes})."
        )


@dataclass(frozen=True)
class CalibrationCheck:
    """One consequence of class-wise calibration, tested.

    Attributes
    ----------
    name : str
        Name of the difference that should be 0, or of the class that contributes to it.
    difference : Interval
        Its estimate.
    statistic : float
        Over its standard error, for which examples and runs both are sampled.
    pvalue, adjusted : float
        Two-sided, by itself and with Holm's correction for its family.
    """

    name: str
    difference: Interval
    statistic: float
    pvalue: float
    adjusted: float


def _predicted(votes: Votes, error: Interval, spread: Interval) -> dict[str, Interval]:
    """Return the standard deviation that the finite test set gives, by formula."""
    n, k = votes.examples, votes.classes
    ends = np.array([error.estimate, error.low, error.high])
    binomial = ends * (1 - ends)
    binomial[1:].sort()
    if error.low < 0.5 < error.high:  # err(1 − err) has its maximum between the limits
        binomial[2] = 0.25
    variances = {"binomial": binomial / n}
    if k == 2:  # theorem 3
        variances["two_classes"] = ends / (2 * n)
    else:  # theorem 4, and the exact mean of which it is the lower bound
        calibrated = np.array([spread.estimate, max(0.0, spread.low), spread.high])
        variances |= {"calibrated": calibrated / n, "lower_bound": ends / (n * k)}
    return {name: interval_of(np.sqrt(v), error.level) for name, v in variances.items()}


def measure_moments(
    predictions: Predictions, votes: Votes, level: float
) -> tuple[dict[str, list[MeanTest]], dict[str, Interval]]:
    """Test the moments that calibration makes 0, of all classes and of each, with the runs and the examples sampled.

    Beside them, for the moments of all classes, the predicted standard deviation over the actual one.
    """
    r, right = votes.runs, votes.right
    true = np.arange(votes.classes) == votes.truth[:, None]
    error, disagreement = float(votes.error.mean()), float(votes.disagreement.mean())
    variance = float((right * (r - right)).mean()) / (r * (r - 1))
    spread = float(_spread(votes.counts, r, true).sum(axis=1).mean())
    # The moment that vanishes at the ratio found has the interval of that ratio.
    statistics: dict[str, Statistic] = {GAP: _gap(1.0), "spread": _spread}
    if error > 0 and disagreement > 0:
        statistics["gap ratio"] = _gap(disagreement / error)
    if votes.classes > 2:  # with two classes the second moment is 0 whatever the votes
        statistics[IDENTITY] = _identity(1.0)
        if variance > 0 and spread > 0:
            statistics["identity ratio"] = _identity(spread / variance)
    means = mean_statistics(predictions, votes, statistics, level)
    half = {key: tests[0].estimate.width / 2 for key, tests in means.items()}
    ratios = {GAP: _root_ratio(error, disagreement, disagreement, half.get("gap ratio"), level)}
    if votes.classes > 2:
        ratios[IDENTITY] = _root_ratio(spread, variance, spread, half.get("identity ratio"), level)
    return means, ratios


def _spread(count: NDArray[Any], runs: int, true: NDArray[np.bool_]) -> FloatArray:
    """Return q²(1 − q): two runs say the class and a third does not."""
    c = count.astype(np.float64)
    values: FloatArray = c * (c - 1) * (runs - c) / (runs * (runs - 1) * (runs - 2))
    return values


def _gap(ratio: float) -> Statistic:
    """Return the part of error and disagreement: ratio × 1{y = c}(1 − q) − q(1 − q)."""

    def table(count: NDArray[Any], runs: int, true: NDArray[np.bool_]) -> FloatArray:
        c = count.astype(np.float64)
        values: FloatArray = np.where(true, ratio * (1 - c / runs), 0.0)
        return values - c * (runs - c) / (runs * (runs - 1))

    return table


def _identity(ratio: float) -> Statistic:
    """Return the part of variance and formula: ratio × 1{y = c} q(1 − q) − q²(1 − q)."""

    def table(count: NDArray[Any], runs: int, true: NDArray[np.bool_]) -> FloatArray:
        c = count.astype(np.float64)
        own = np.where(true, ratio * c * (runs - c) / (runs * (runs - 1)), 0.0)
        values: FloatArray = own - _spread(count, runs, true)
        return values

    return table


def _root_ratio(above: float, below: float, scale: float, half: float | None, level: float) -> Interval:
    """Return √(above/below), from the half-width of the moment that vanishes at this ratio.

    Both terms of that moment are as large as ``scale``, so that half/scale is the ratio's relative error.
    """
    if half is None:
        return Interval(math.nan, 0.0, math.inf, level)
    root, factor = math.sqrt(above / below), math.exp(half / scale / 2)
    return Interval(root, root / factor, root * factor, level)


def _checks(names: Sequence[str], tests: Sequence[MeanTest]) -> tuple[CalibrationCheck, ...]:
    # Holm: the checks of one family stand or fall together in the verdict.
    adjusted = holm([test.pvalue for test in tests])
    return tuple(
        CalibrationCheck(name, test.estimate, test.statistic, test.pvalue, float(p))
        for name, test, p in zip(names, tests, adjusted, strict=True)
    )


def mean_statistics(
    predictions: Predictions, votes: Votes, statistics: Mapping[str, Statistic], level: float
) -> dict[str, list[MeanTest]]:
    """Test means over examples, both examples and runs sampled: of all classes together, then of each class.

    A statistic is a table f(count, runs, true) of examples × classes that is a U-statistic in the runs. Its
    mean varies with the examples sampled and with the runs trained. The first is read off the examples; the
    second by leaving out one run at a time, which changes one count of each example.
    """
    true = np.arange(votes.classes) == votes.truth[:, None]
    removed: dict[str, tuple[FloatArray, FloatArray]] = {}
    if predictions.runs * predictions.examples <= CELLS_UP_TO and predictions.runs > 3:
        fewer = votes.runs - 1
        for name, f in statistics.items():
            # Each cell without a run that did not say this class, and the change if it did.
            without = f(np.minimum(votes.counts, fewer), fewer, true)
            removed[name] = without, f(np.maximum(votes.counts - 1, 0), fewer, true) - without
    left_out = _leave_one_out(predictions, votes, removed) if removed else {}
    means = {}
    for name, f in statistics.items():
        by_run = (removed[name][1], left_out[name]) if removed else None
        means[name] = _vote_means(f(votes.counts, votes.runs, true), votes, by_run, level)
    return means


def _leave_one_out(
    predictions: Predictions, votes: Votes, removed: Mapping[str, tuple[FloatArray, FloatArray]]
) -> dict[str, FloatArray]:
    """Return means of each class (runs × classes) without one run."""
    n, k = votes.counts.shape
    sums = {name: np.empty((votes.runs, k)) for name in removed}
    for start, answers in predictions.label_blocks():
        # Leaving a run out changes one count of each example, that of the class it said.
        place = votes.column[answers.astype(np.intp, copy=False)]
        cells = place + np.arange(n) * k
        bins = (place + np.arange(len(answers))[:, None] * k).ravel()
        for name, (without, change) in removed.items():
            moved = change.ravel()[cells].ravel()
            added = np.bincount(bins, weights=moved, minlength=len(answers) * k)
            sums[name][start : start + len(answers)] = without.sum(axis=0) + added.reshape(-1, k)
    return {name: total / n for name, total in sums.items()}


def _vote_means(
    table: FloatArray, votes: Votes, without: tuple[FloatArray, FloatArray] | None, level: float
) -> list[MeanTest]:
    """Test the means of a table; ``without`` holds its change and its means if a run is left out."""
    runs, values, tests = votes.runs, table.sum(axis=1), []
    for c in range(-1, votes.classes):  # −1: all classes together
        column = values if c < 0 else table[:, c]
        parts, twice = [example_variance(column, votes.groups)], 0.0
        if without is not None:
            change, left_out = without
            by_run = left_out.sum(axis=1) if c < 0 else left_out[:, c]
            parts.append((float(np.var(by_run)) * (runs - 1), runs - 1))  # jackknife
            twice = _vote_noise(change, votes, c)
        tests.append(mean_test(float(column.mean()), parts, twice, level))
    return tests


def _vote_noise(change: FloatArray, votes: Votes, c: int) -> float:
    """Return the variance that runs add by their votes on single examples: it is in both parts."""
    runs, counts = votes.runs, votes.counts
    if c < 0:
        mean = (counts * change).sum(axis=1) / runs
        spread = (counts * change**2).sum(axis=1) / runs - mean**2
    else:
        share = counts[:, c] / runs
        spread = share * (1 - share) * change[:, c] ** 2
    return float(spread.sum()) * (runs - 1) / votes.examples**2


def reliability(votes: Votes, bins: int, level: float) -> dict[str, FloatArray]:
    """Count how often a class is true among cells that a like share of runs gave it.

    A cell is an example and a class. Its share is taken over all runs but one, and its confidence is the vote
    of the run left out, averaged over the choice of that run: so confidence and frequency have the same mean
    if the votes are calibrated, however few the runs. The limits are Wilson's.
    """
    runs = votes.runs
    every = np.bincount(votes.counts.ravel(), minlength=runs + 1).astype(np.float64)
    right = np.bincount(votes.right, minlength=runs + 1).astype(np.float64)
    share = np.arange(runs + 1) / runs
    place = np.minimum(np.arange(runs) * bins // max(1, runs - 1), bins - 1)
    yes, no = slice(1, None), slice(0, -1)  # the run left out said the class, or did not
    total: FloatArray = np.bincount(place, (every * share)[yes] + (every * (1 - share))[no], bins).astype(np.float64)
    sure = np.bincount(place, (every * share)[yes], bins)
    true = np.bincount(place, (right * share)[yes] + (right * (1 - share))[no], bins)
    with np.errstate(invalid="ignore", divide="ignore"):
        confidence, frequency = sure / total, true / total
        low, high = wilson_interval(frequency, total, level)
    edges = np.arange(bins + 1) / bins
    return {
        "from": edges[:-1],
        "to": edges[1:],
        "cells": total,
        "confidence": confidence,
        "frequency": frequency,
        "low": low,
        "high": high,
    }


def measure_bipartitions(
    predictions: Predictions | Mapping[Any, Predictions] | ArrayLike,
    labels: ArrayLike | PathLike[str] | None = None,
    *,
    kind: str | None = None,
    axes: Sequence[str] | None = None,
    tasks: int | None = None,
    level: float = 0.95,
    rng: int | np.random.Generator = 0,
) -> Bipartitions:
    """Compare predicted with measured variance on all two-class tasks that the classes hold.

    Each way to put k classes on two sides makes a task with the predictions at hand: 2^(k−1) − 1
    of them. A run errs if it predicts a class of the other side. Or the tasks were trained one by
    one, as recipe ``variance-binary`` does.

    Parameters
    ----------
    predictions : Predictions or array_like, shape (runs, examples); or mapping of task to Predictions
        Predicted labels, or probabilities with an axis for the classes; four runs or more. A mapping
        holds trainings for two classes each, on one test set: ``study.predictions_by("classes")``.
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
    tasks = None if tasks is None else check_whole(tasks, "tasks", 1)
    trained = isinstance(predictions, Mapping)
    if isinstance(predictions, Mapping):
        if tasks is not None or labels is not None:
            problem = "is for predictions of all classes; tasks that were trained bring their own."
            raise InputError(problem, argument="tasks" if tasks is not None else "labels")
        votes, wrong, calibration = _trained_tasks(predictions)
        n, k, names = votes.examples, 2, tuple(map(str, predictions))
        sides = np.eye(len(names), dtype=bool)
    else:
        given = read_predictions(predictions, labels, kind=kind, axes=axes)
        votes = count_votes(given, least=4, classes=2)
        (n, k), names = votes.counts.shape, votes.names
        sides = _sides(k, tasks, as_generator(rng))
        # The same test as of the whole problem, error against disagreement, for each task.
        wrong, calibration = task_errors(given, votes, sides), task_calibration(votes, sides)
    disagreement, statistic, degrees = calibration
    fit = fit_tasks(wrong, n)
    error = wrong.mean(axis=0, dtype=np.float64) / n
    stds = [run_std(column / n, level, tied=tied_variance(n)) for column in wrong.T.astype(np.float64)]
    pvalues = holm(2 * stdtr(degrees, -np.abs(statistic)))
    measured = np.array([s.estimate for s in stds])
    # Equation 3 with Σ v/n² from the votes: with two classes two runs disagree with chance 2q(1 − q).
    true = (measured**2 - disagreement / (2 * n)) * n / (n - 1)
    notes = [f"{len(sides)} task(s) are too few for an R²."] if len(sides) < 3 else []
    if votes.groups is not None:
        notes.append(
            "groups count for the test of calibration only: the standard deviations of true error take examples as"
            " independent."
        )
    return Bipartitions(
        runs=votes.runs,
        examples=n,
        classes=k,
        tasks=len(sides),
        possible=len(sides) if trained else 2 ** (k - 1) - 1,
        r_squared=_below_one(fit["unexplained"], level),
        correlation_squared=clipped(_below_one(fit["uncorrelated"], level)),
        binomial_r_squared=_below_one(fit["binomial_unexplained"], level),
        error_ratio=_jackknifed_log(fit["error_ratio"], level),
        disagreement_ratio=float(disagreement.mean() / error.mean()) if error.any() else math.nan,
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
        names=names,
        level=level,
        warnings=tuple(notes),
        trained=trained,
    )


def _trained_tasks(
    predictions: Mapping[Any, Predictions],
) -> tuple[Votes, NDArray[np.float32], tuple[FloatArray, FloatArray, float]]:
    """Count errors (runs × tasks) of trainings for two classes each, and test the calibration of each."""
    if not predictions:
        raise InputError("is empty: give the runs of at least one task.", argument="predictions")
    sides = np.array([[False, True]])
    names = {task: f"predictions[{brief(task)}]" for task in predictions}
    every = {task: read_predictions(given, argument=names[task]) for task, given in predictions.items()}
    if len({given.shape for given in every.values()}) > 1:
        shapes = ", ".join(f"{r:,} × {n:,}" for r, n in sorted({given.shape for given in every.values()})[:4])
        problem = f"holds tasks of {shapes} runs × examples: give as many runs of each, on one test set."
        raise InputError(problem, argument="predictions")
    wrong, calibrations = [], []
    for task, given in every.items():
        votes = count_votes(given, least=4, classes=2)
        if votes.classes != 2:
            problem = f"has {votes.classes} classes: give trainings for two."
            raise InputError(problem, argument=names[task])
        wrong.append(task_errors(given, votes, sides)[:, 0])
        calibrations.append(task_calibration(votes, sides))
    disagreement, statistic = (np.concatenate([each[i] for each in calibrations]) for i in (0, 1))
    return votes, np.stack(wrong, axis=1), (disagreement, statistic, calibrations[0][2])


@dataclass(frozen=True, eq=False)
class Bipartitions(Result):
    """Two-class tasks made of k classes, with measured and predicted variance between runs.

    Attributes
    ----------
    runs, examples, classes : int
        Size of the experiment; classes that occur.
    tasks, possible : int
        Number of tasks that were measured, and that are possible.
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
        Disagreement of two runs, and adjusted p-values of error = disagreement.
    sides : ndarray of bool, shape (tasks, classes)
        True for the classes on the second side; (tasks, tasks) where tasks were trained.
    names : tuple
        Names of the classes, or of the tasks that were trained.
    level : float
        Coverage of the intervals, for which runs are sampled (jackknife).
    trained : bool
        True if each task was trained by itself.
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
    trained: bool = False

    @property
    def assumption_holds(self) -> bool:
        """True if no task contradicts calibration, which err/2n needs."""
        return self.rejected == 0

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per task."""
        sides = [" ".join(str(n) for n, s in zip(self.names, row, strict=True) if s) for row in self.sides]
        return {
            "task" if self.trained else "second_side": sides,
            "error": self.errors,
            "measured_std": self.measured,
            "low": self.measured_low,
            "high": self.measured_high,
            "calibrated_std": self.calibrated,
            "binomial_std": self.binomial,
            "distribution_std": self.distribution,
            "disagreement": self.disagreement,
            "pvalue": self.pvalues,
        }

    def sentences(self) -> str:
        """Say how well the error predicts the variance, in a few sentences."""
        possible = f"2^{self.classes - 1} − 1" if self.possible > 10**6 else f"{self.possible:,}"
        which = "All" if self.tasks == self.possible else f"{self.tasks:,} random ones of"
        differ = f"differ on {self.rejected:,} tasks, so the votes are not calibrated as the formula needs"
        verdict = "agree on every task, as the formula needs" if self.assumption_holds else differ
        tasks = f"{which} {possible} two-class tasks from {self.classes} classes, over {self.runs:,} runs"
        if self.trained:
            tasks = f"{self.tasks:,} trainings for two classes, {self.runs:,} runs of each"
        return (
            f"{tasks} and {self.examples:,} examples: err/2n predicts the standard deviation between runs with R² ="
            f" {format_interval(self.r_squared, write=decimals(3))} (squared correlation"
            f" {format_interval(self.correlation_squared, write=decimals(3))}). Its variances are"
            f" {format_interval(self.error_ratio, write='{:.3g}'.format)} times as accurate, in squared error, as those"
            f" of the binomial. Two runs disagree {self.disagreement_ratio:.2f} times as often as one errs: error and"
            f" disagreement {verdict}."
        )


def _sides(k: int, tasks: int | None, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Choose tasks: tasks × classes, True on the second side; the first class is on the first."""
    possible = 2 ** (k - 1) - 1
    wanted = tasks if tasks is not None else possible if k <= MOST_CLASSES else SAMPLED
    if wanted >= possible:
        codes = np.arange(1, possible + 1)
        every: NDArray[np.bool_] = (codes[:, None] >> np.arange(k - 1, -1, -1)) % 2 == 1
        return every
    drawn: dict[bytes, NDArray[np.bool_]] = {}
    while len(drawn) < wanted:
        side = rng.random(k) < 0.5
        # The two sides have no order, so that the first class is put on the first.
        side = side ^ side[0]
        if side.any():
            drawn[side.tobytes()] = side
    return np.stack(list(drawn.values()))


def _below_one(values: FloatArray, level: float) -> Interval:
    """Return 1 − x, from x with all runs and without each of them."""
    x = _jackknifed_log(values, level)
    return Interval(1 - x.estimate, 1 - x.high, 1 - x.low, level)


def _jackknifed_log(values: FloatArray, level: float) -> Interval:
    """Return a positive quantity with all runs (first) and without each: jackknife of its logarithm."""
    if not (np.isfinite(values) & (values > 0)).all():
        return Interval(float(values[0]), math.nan, math.nan, level)
    logs, degrees = np.log(values), len(values) - 2
    half = float(stdtrit(degrees, (1 + level) / 2)) * math.sqrt(float(np.var(logs[1:])) * degrees)
    return interval_of(np.exp([logs[0], logs[0] - half, logs[0] + half]), level)


def task_errors(predictions: Predictions, votes: Votes, sides: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Count errors (runs × tasks): confusions of each run times the sides of the two classes.

    Only confusions that occur are counted, so that many classes cost no more than their errors.
    """
    k = votes.classes
    wrong = []
    for _, answers in predictions.label_blocks():
        place = votes.column[answers.astype(np.intp, copy=False)]
        run, example = np.nonzero(place != votes.truth)
        pair = votes.truth[example] * k + place[run, example]
        # Of k² confusions few occur: only those are multiplied with the sides.
        found = np.flatnonzero(np.bincount(pair, minlength=k * k))
        number = np.searchsorted(found, pair)
        cells = np.bincount(run * len(found) + number, minlength=len(answers) * len(found))
        apart = sides[:, found // k] != sides[:, found % k]
        counts = cells.reshape(len(answers), len(found)).astype(np.float32)
        wrong.append(counts @ apart.T.astype(np.float32))
    return np.concatenate(wrong)


def task_calibration(votes: Votes, sides: NDArray[np.bool_]) -> tuple[FloatArray, FloatArray, float]:
    """Return the disagreement on each task, t of error minus disagreement, and its degrees of freedom."""
    runs, n = votes.runs, votes.examples
    units = SamplingUnits(n, votes.groups)
    disagreement, statistic = np.empty(len(sides)), np.empty(len(sides))
    for part in _chunks(len(sides), n):
        second = votes.counts @ sides[part].T.astype(np.int64)
        wrong = np.where(sides[part][:, votes.truth].T, runs - second, second) / runs
        apart = 2 * second * (runs - second) / (runs * (runs - 1))
        gap = wrong - apart
        variance = cluster_variance(units.totals((gap - gap.mean(axis=0)).T).T, units.sizes)
        disagreement[part] = apart.mean(axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            statistic[part] = np.nan_to_num(gap.mean(axis=0) / np.sqrt(variance), posinf=np.inf)
    return disagreement, statistic, cluster_degrees(units.sizes)


def fit_tasks(wrong: NDArray[np.float32], n: int) -> dict[str, FloatArray]:
    """Fit predicted to measured variances over tasks: for all runs (first), and with each run left out.

    Returns
    -------
    dict of str to ndarray, shape (1 + runs,)
        "unexplained" and "binomial_unexplained": SSE/SST of standard deviations, by err/2n and by the binomial;
        "uncorrelated": one minus the squared correlation; "error_ratio": squared errors of binomial variances over
        those of err/2n.
    """
    runs, tasks = wrong.shape
    sums = np.zeros((9, runs + 1))
    for part in _chunks(tasks, runs):
        error, variance = _left_out(wrong[:, part].astype(np.float64) / n)
        calibrated, binomial = error / (2 * n), error * (1 - error) / n
        x, y, z = np.sqrt(calibrated), np.sqrt(variance), np.sqrt(binomial)
        terms = [x, y, x * x, y * y, x * y, (x - y) ** 2, (z - y) ** 2]
        terms += [(calibrated - variance) ** 2, (binomial - variance) ** 2]
        sums += np.stack([term.sum(axis=1) for term in terms])
    sx, sy, sxx, syy, sxy, off, binomial_off, squared, binomial_squared = sums
    # Sums over tasks are kept for all leave-one-out samples at once: no second pass over the runs.
    total = syy - sy**2 / tasks
    shared = (sxy - sx * sy / tasks) ** 2
    with np.errstate(invalid="ignore", divide="ignore"):
        return {
            "unexplained": off / total,
            "binomial_unexplained": binomial_off / total,
            "uncorrelated": 1 - shared / (total * (sxx - sx**2 / tasks)),
            "error_ratio": binomial_squared / squared,
        }


def _left_out(errors: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return mean and variance of each column: with all rows first, then without each."""
    rows = len(errors)
    mean = errors.mean(axis=0)
    deviation = errors - mean
    squares = (deviation**2).sum(axis=0)
    # Leaving out a value with deviation d lowers the sum of squares by d²R/(R − 1).
    without = np.maximum(0.0, squares - deviation**2 * rows / (rows - 1)) / (rows - 2)
    means = np.concatenate([mean[None], mean - deviation / (rows - 1)])
    return means, np.concatenate([squares[None] / (rows - 1), without])


def _chunks(tasks: int, rows: int) -> Iterator[slice]:
    step = max(1, CHUNK // rows)
    yield from (slice(start, min(start + step, tasks)) for start in range(0, tasks, step))
