"""What part of the variance between runs is real, and what is the finite test set."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.types import (
    FloatArray,
    Interval,
    Predictions,
    Unit,
    as_floats,
    as_predictions,
    check_level,
)
from curvewise.variance._estimates import run_std
from curvewise.variance.anova import (
    Split,
    f_interval,
    share_interval,
    split_variance,
    std_interval,
)
from curvewise.variance.bootstrap import bca_limits, bootstrap_variances, default_resamples
from curvewise.variance.decomposition import VarianceDecomposition
from curvewise.variance.estimate import mean_interval
from curvewise.variance.robust import UNEVEN, measure_influence, robust_interval
from curvewise.variance.tails import Tails, judge_tails
from curvewise.variance.totals import Totals, measure_totals, totals_of_counts
from curvewise.variance.wording import few_groups, mostly_wrong

INTERVALS = ("auto", "F", "bootstrap", "robust")

_ONE_RUN = (
    "there is one run, and its {} repeats are taken as the runs: the variances are those between"
    " repeats of one network, and say nothing about other trainings."
)


def decompose_variance(
    predictions: Predictions | ArrayLike,
    labels: ArrayLike | None = None,
    *,
    kind: str | None = None,
    axes: Sequence[str] | None = None,
    groups: ArrayLike | None = None,
    interval: str = "auto",
    level: float = 0.95,
    resamples: int | None = None,
    rng: int | np.random.Generator = 0,
) -> VarianceDecomposition:
    """Split the variance between runs into what is real and what is the finite test set.

    Parameters
    ----------
    predictions : Predictions or array_like, shape (runs, examples)
        Predicted labels, 0/1 errors or hits, losses or scores; (runs, examples, repeats) with
        ``axes``. The repeats of a single run are taken as runs, with a warning.
    labels : array_like, shape (examples,), optional
        True classes; needed for predicted labels.
    kind : {"labels", "errors", "correct", "losses", "scores", "probabilities"}, optional
        What the values are, where they do not say it. 0 and 1 without labels are read as errors,
        and the summary says so: the variances are the same for hits, the mean error is not.
    axes : sequence of str, optional
        What the axes are, where the shape does not say it: ("examples", "runs"), say.
    groups : array_like, shape (examples,), optional
        Which examples belong together. They are taken as one unit of sampling: only different
        groups are supposed to err independently.
    interval : {"auto", "F", "bootstrap", "robust"}
        Of the distribution-wise standard deviation. "auto" takes the F interval unless run errors
        have heavy tails: an excess kurtosis above two of its standard errors, or a run more than
        about four robust standard deviations from the median. Then it takes the two-way
        bootstrap, or with fewer than 30 runs the robust closed form; the latter also where the
        runs differ in few of the examples, so that which examples were drawn matters more than
        the number of runs.
    level : float
        Coverage of the intervals.
    resamples : int, optional
        Of the bootstrap: 2,000 by default, fewer for very large data.
    rng : int or Generator
        Determines the bootstrap.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> errors = rng.random((50, 2000)) < rng.random(2000) ** 4
    >>> v = decompose_variance(errors, kind="errors")
    >>> round(v.test_set_std, 4), round(v.independent_std, 4), v.distribution_std
    (0.0063, 0.0066, 0.0)
    """
    given = as_predictions(predictions, labels, kind=kind, axes=axes, groups=groups)
    repeated = given.runs == 1 and given.repeats > 1
    if repeated:
        given = replace(given, values=np.asarray(given.values)[0].T, run_ids=None)
    if interval not in INTERVALS:
        raise InputError(f"interval={interval!r} is not known: use one of {', '.join(INTERVALS)}.")
    check_level(level)
    totals = replace(measure_totals(given), assumed=given.assumed and given.kind == "errors")
    split = split_variance(totals)
    tails = judge_tails(totals.run)
    influence = measure_influence(given)
    uneven = influence.share > UNEVEN * 2 / (given.runs - 1)
    method = interval if interval != "auto" else tails.method
    if interval == "auto" and method == "F" and uneven:
        method = "robust"
    robust = robust_interval(split, tails, influence.share, level)
    if method == "bootstrap":
        count = resamples or default_resamples(given.runs, totals.units)
        drawn = bootstrap_variances(given, count, np.random.default_rng(rng))
        limits = bca_limits(drawn, split, totals.run, influence.units, level)
    else:
        limits = f_interval(split, level) if method == "F" else robust
    notes = [_ONE_RUN.format(given.runs)] if repeated else []
    notes += mostly_wrong(float(totals.run.mean()), totals.unit, given)
    return _result(totals, split, tails, method, (limits, robust), level, notes)


def decompose_totals(
    run_errors: ArrayLike,
    example_counts: ArrayLike,
    *,
    unit: str = "fraction",
    higher_is_better: bool = False,
    level: float = 0.95,
) -> VarianceDecomposition:
    """Decompose the variance from totals alone: one error per run, one count per example.

    Parameters
    ----------
    run_errors : array_like, shape (runs,)
        Test error of each run (its accuracy, with ``higher_is_better``).
    example_counts : array_like, shape (examples,)
        In how many of the runs each example was wrong (right, with ``higher_is_better``).
    unit : {"fraction", "percent"}
        Of ``run_errors``. The result is in fractions.
    higher_is_better : bool
        Whether accuracies and counts of right answers are given.
    level : float
        Coverage of the intervals.

    Examples
    --------
    >>> v = decompose_totals([0.5, 0.25, 0.75, 0.5, 0.5], [0, 5, 3, 2])
    >>> v.runs, v.examples, round(v.test_set_std, 3)
    (5, 4, 0.177)
    """
    check_level(level)
    scale = Unit(unit, higher_is_better)
    if not scale.bounded:
        raise InputError(f"unit={unit!r}: totals are of 0/1 errors, in fraction or percent.")
    errors = scale.errors(run_errors, "run_errors").ravel() / scale.top
    counts = as_floats(example_counts, "example_counts").ravel()
    _check_totals(errors, counts)
    wrong = len(errors) - counts if higher_is_better else counts
    _check_agreement(errors, wrong)
    totals = totals_of_counts(errors, wrong)
    split = split_variance(totals)
    tails = judge_tails(totals.run)
    robust = robust_interval(split, tails, 0.0, level)
    method = "robust" if tails.heavy else "F"
    limits = robust if tails.heavy else f_interval(split, level)
    notes = mostly_wrong(float(totals.run.mean()), totals.unit)
    return _result(totals, split, tails, method, (limits, robust), level, notes)


def _check_totals(errors: FloatArray, counts: FloatArray) -> None:
    if len(errors) < 2 or len(counts) < 2:
        raise InputError(
            f"run_errors has {len(errors)} run(s) and example_counts {len(counts)} example(s): at"
            " least two of each are needed."
        )
    if not np.isfinite(counts).all() or (counts != np.round(counts)).any():
        raise InputError("example_counts must hold whole numbers: in how many runs it was wrong.")
    if counts.min() < 0 or counts.max() > len(errors):
        raise InputError(
            f"example_counts runs from {counts.min():g} to {counts.max():g}; with"
            f" {len(errors)} runs it must lie between 0 and {len(errors)}."
        )


def _check_agreement(errors: FloatArray, wrong: FloatArray) -> None:
    by_run, by_example = float(errors.mean()), float(wrong.mean()) / len(errors)
    if abs(by_run - by_example) > 1e-3:
        raise InputError(
            f"run_errors has a mean of {by_run:.4f} and example_counts one of {by_example:.4f}:"
            " they are not of the same runs and examples, or one counts right answers"
            " (higher_is_better=True is for both)."
        )


def _result(
    totals: Totals,
    split: Split,
    tails: Tails,
    method: str,
    limits: tuple[tuple[float, float], tuple[float, float]],
    level: float,
    notes: Sequence[str],
) -> VarianceDecomposition:
    std = math.sqrt(max(0.0, split.distribution))
    if split.test_set == 0 and split.independent == 0:
        limits = (_unseen(totals, level), _unseen(totals, level))
    elif split.test_set == 0 and totals.unit == "fraction":
        # A tie: the test errors may differ by up to half an example.
        tied = f_interval(replace(split, test_set=1 / (4 * totals.examples**2)), level)
        limits = (tied, tied)
    notes = [*notes, *_warnings(totals, split, tails, method)]
    for text in notes:
        warnings.warn(text, CurvewiseWarning, stacklevel=3)
    share = share_interval(split, level, None if method == "F" else limits[0])
    parts = {"run": split.distribution, "example": split.example}
    parts["run × example"] = split.interaction
    if totals.repeats > 1:
        parts["repeat"] = split.repeat
    return VarianceDecomposition(
        runs=totals.runs,
        examples=totals.examples,
        repeats=totals.repeats,
        groups=None if totals.groups is None else totals.units,
        error=mean_interval(totals, split, level),
        test_set_std=math.sqrt(split.test_set),
        test_set_interval=run_std(totals.run, level, totals.unit),
        independent_std=math.sqrt(split.independent),
        distribution_variance=split.distribution,
        distribution_std=std,
        distribution_interval=_roots(std, limits[0], level, totals.unit),
        robust_interval=_roots(std, limits[1], level, totals.unit),
        distribution_share=share.estimate,
        share_interval=share,
        independence_pvalue=split.independence_pvalue,
        components=parts,
        excess_kurtosis=tails.excess_kurtosis,
        method=method,
        unit=totals.unit,
        level=level,
        warnings=tuple(notes),
        _totals=totals,
        _split=split,
    )


def _roots(std: float, limits: tuple[float, float], level: float, unit: str) -> Interval:
    return std_interval(std, math.sqrt(limits[0]), math.sqrt(limits[1]), level, unit)


def _unseen(totals: Totals, level: float) -> tuple[float, float]:
    """Runs that agree on every example seen may differ on others, of which few can be so.

    If they differ on a share q of all examples, the variance of true error is at most q²/4.
    """
    share = 1 - ((1 - level) / 2) ** (1 / totals.units)
    return 0.0, share**2 / 4 if totals.unit == "fraction" else 0.0


def _warnings(totals: Totals, split: Split, tails: Tails, method: str) -> list[str]:
    said_so = tails.warnings(method)
    said_so += few_groups(None if totals.groups is None else split.units)
    if totals.twins and not _by_chance(totals):
        said_so.append(
            f"{totals.twins} run(s) repeat another run on every example. If that is the same run"
            " given twice, leave it out: the intervals count it as new."
        )
    return said_so


def _by_chance(totals: Totals) -> bool:
    """Whether two of so many runs may well agree on every example though they differ."""
    if not totals.binary:
        return False
    p = (totals.example * totals.runs + 0.5) / (totals.runs + 1)
    same = float(np.log1p(-2 * p * (1 - p)).sum())
    return math.log(totals.runs * (totals.runs - 1) / 2) + same > math.log(0.01)
