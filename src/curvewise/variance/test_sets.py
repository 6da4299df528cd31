"""The same runs on several test sets: variance on each, and whether good runs are good on all."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.stats import holm
from curvewise.types import (
    FloatArray,
    Interval,
    Predictions,
    Result,
    as_predictions,
    asked_of,
    check_level,
)
from curvewise.variance._estimates import correlate, same_runs
from curvewise.variance._true_correlation import true_correlation
from curvewise.variance.decompose import decompose_variance
from curvewise.variance.decomposition import VarianceDecomposition
from curvewise.variance.wording import said, said_pvalue


@dataclass(frozen=True)
class TestSetPair:
    """How the errors of the same runs on two test sets go together.

    Attributes
    ----------
    first, second : str
        The two test sets.
    correlation : Interval
        Of the runs' test errors (Fisher's interval).
    r_squared : float
        Its square.
    pvalue, adjusted : float
        Of no correlation, by itself and with Holm's correction for all pairs.
    true_correlation : Interval
        Of the runs' true errors: covariance over the product of the standard deviations of true
        error, cut off at −1 and 1. It is NaN where a variance is not
        positive. The limits are −1 and 1 where the variance of either set is not told from 0.
    stable : bool
        Whether both variances are told from 0; the true correlation is not known otherwise.
    """

    __test__ = False  # pytest: this is no test

    first: str
    second: str
    correlation: Interval
    r_squared: float
    pvalue: float
    adjusted: float
    true_correlation: Interval
    stable: bool


@dataclass(frozen=True, eq=False)
class TestSetComparison(Result):
    """The same runs on several test sets.

    Attributes
    ----------
    runs : int
        Number of runs.
    names : tuple of str
        The test sets, in the order given.
    decompositions : dict of str to VarianceDecomposition
        The variance between runs on each.
    pairs : tuple of TestSetPair
        Each pair of test sets.
    level : float
        Coverage of the intervals; tests reject below 1 − level.
    """

    __test__ = False

    runs: int
    names: tuple[str, ...]
    decompositions: Mapping[str, VarianceDecomposition]
    pairs: tuple[TestSetPair, ...]
    level: float
    warnings: tuple[str, ...]
    _run_errors: Mapping[str, FloatArray]

    @property
    def run_errors(self) -> Mapping[str, FloatArray]:
        """Error of each run on each test set; runs in the order of the first."""
        return self._run_errors

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per test set: its decomposition."""
        sets = [self.decompositions[name] for name in self.names]
        return {
            "test set": list(self.names),
            "examples": [d.examples for d in sets],
            "error": [d.error.estimate for d in sets],
            "test-set std": [d.test_set_std for d in sets],
            "independent std": [d.independent_std for d in sets],
            "distribution std": [d.distribution_std for d in sets],
            "low": [d.distribution_interval.low for d in sets],
            "high": [d.distribution_interval.high for d in sets],
            "share": [d.distribution_share for d in sets],
            "pvalue": [d.independence_pvalue for d in sets],
        }

    def pair_columns(self) -> Mapping[str, Sequence[Any]]:
        """One row per pair of test sets: its correlations."""
        return {
            "first": [p.first for p in self.pairs],
            "second": [p.second for p in self.pairs],
            "correlation": [p.correlation.estimate for p in self.pairs],
            "low": [p.correlation.low for p in self.pairs],
            "high": [p.correlation.high for p in self.pairs],
            "R2": [p.r_squared for p in self.pairs],
            "pvalue": [p.pvalue for p in self.pairs],
            "adjusted": [p.adjusted for p in self.pairs],
            "true correlation": [p.true_correlation.estimate for p in self.pairs],
            "true low": [p.true_correlation.low for p in self.pairs],
            "true high": [p.true_correlation.high for p in self.pairs],
            "stable": [p.stable for p in self.pairs],
        }

    def summary(self) -> str:
        """Variances and correlations in a few sentences."""
        sets = [(name, self.decompositions[name]) for name in self.names]
        stds = [
            f"{said(d.distribution_std, d.unit)} of {said(d.test_set_std, d.unit)} on {name}"
            for name, d in sets
        ]
        found = [p for p in self.pairs if p.adjusted < 1 - self.level]
        best = max(self.pairs, key=lambda p: -1.0 if math.isnan(p.r_squared) else p.r_squared)
        sentences = [
            f"Between {self.runs:,} runs the standard deviation of true error, of that on the test"
            f" set, is {', '.join(stds)}.",
            f"{len(found)} of {len(self.pairs)} pairs of test sets have a correlation between run"
            " errors (Holm's correction).",
        ]
        if not math.isnan(best.r_squared):
            sentences.append(
                f"The strongest is that of {best.first} and {best.second}:"
                f" R² = {best.r_squared:.3f} ({said_pvalue(best.pvalue)}); that of true errors is"
                f" {_true(best)}."
            )
        return " ".join([*sentences, *(f"Beware: {w}" for w in self.warnings)])


def compare_test_sets(
    test_sets: Mapping[str, Any],
    *,
    kind: str | None = None,
    axes: Sequence[str] | None = None,
    interval: str = "auto",
    level: float = 0.95,
    resamples: int | None = None,
    rng: int | np.random.Generator = 0,
) -> TestSetComparison:
    """Compare the variance of the same runs on several test sets, and what they share.

    Test sets of different examples have no noise in common, so the covariance of run errors is
    without bias that of true errors. Divided by the standard deviations of true error it gives
    the correlation of true errors, which is worth little where one of these is near 0.

    Parameters
    ----------
    test_sets : mapping of str to Predictions, array_like or (predictions, labels)
        By name. Runs are matched by ``run_ids`` where two sets have them, else by place.
    kind, axes
        As in :func:`decompose_variance`, for every set that is no :class:`Predictions`.
    interval, resamples, rng
        As in :func:`decompose_variance`.
    level : float
        Coverage of the intervals.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> skill = rng.standard_normal((60, 1)) * 0.03
    >>> sets = {name: rng.random((60, 2000)) < 0.2 + skill for name in ("plain", "shifted")}
    >>> c = compare_test_sets(sets)
    >>> c.pairs[0].stable, 1.0 in c.pairs[0].true_correlation
    (True, True)
    """
    check_level(level)
    given = _given(test_sets, kind, axes)
    names = tuple(given)
    order = {n: same_runs(given[names[0]], p, (names[0], n)) for n, p in given.items()}
    splits, notes = {}, _shared_examples(given)
    for name, p in given.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CurvewiseWarning)
            splits[name] = decompose_variance(
                p, interval=interval, level=level, resamples=resamples, rng=rng
            )
        notes += [f"{name}: {text}" for text in splits[name].warnings]
    errors = {name: splits[name].run_errors[order[name]] for name in names}
    pairs = _pairs(splits, errors, level)
    shaky = sum(not p.stable for p in pairs)
    if shaky:
        notes.append(
            f"the correlation of true errors is unknown for {shaky} of {len(pairs)} pairs: the true"
            " variance on one of their sets is not told from 0."
        )
    for text in notes:
        warnings.warn(text, CurvewiseWarning, stacklevel=2)
    runs = given[names[0]].runs
    return TestSetComparison(runs, names, splits, pairs, level, tuple(notes), errors)


def _given(
    test_sets: Mapping[str, Any], kind: str | None, axes: Sequence[str] | None
) -> dict[str, Predictions]:
    if not isinstance(test_sets, Mapping) or len(test_sets) < 2:
        raise InputError("test_sets must map the names of two test sets or more to predictions.")
    given = {}
    for name, value in test_sets.items():
        values, labels = value if isinstance(value, tuple) and len(value) == 2 else (value, None)
        asked = asked_of(values, {"kind": kind, "axes": axes})
        given[str(name)] = as_predictions(values, labels, argument=f"test_sets[{name!r}]", **asked)
    runs = min(p.runs for p in given.values())
    if runs < 4:
        raise InputError(f"test_sets hold {runs} run(s): a correlation needs at least 4.")
    return given


def _shared_examples(given: Mapping[str, Predictions]) -> list[str]:
    notes = []
    for (a, p), (b, q) in combinations(given.items(), 2):
        if p.example_ids is not None and q.example_ids is not None:
            shared = len(np.intersect1d(p.example_ids, q.example_ids))
            if shared:
                notes.append(
                    f"{a} and {b} share {shared:,} example ids: if these are the same examples,"
                    " their noise is in the correlations."
                )
    return notes


def _pairs(
    splits: Mapping[str, VarianceDecomposition], errors: Mapping[str, FloatArray], level: float
) -> tuple[TestSetPair, ...]:
    names = list(combinations(splits, 2))
    found = [correlate(errors[a], errors[b], level) for a, b in names]
    pvalues = np.array([p for _, p in found])
    adjusted = np.full(len(names), math.nan)
    known = ~np.isnan(pvalues)
    adjusted[known] = holm(pvalues[known])
    pairs = []
    for (a, b), (r, p), q in zip(names, found, adjusted, strict=True):
        stable = min(splits[s].distribution_interval.low for s in (a, b)) > 0
        noise = [s.test_set_std**2 - s.distribution_variance for s in (splits[a], splits[b])]
        true = true_correlation(errors[a], errors[b], noise, stable, level)
        pairs.append(TestSetPair(a, b, r, r.estimate**2, p, float(q), true, stable))
    return tuple(pairs)


def _true(pair: TestSetPair) -> str:
    r = pair.true_correlation
    if not pair.stable or math.isnan(r.estimate):
        return "not known"
    return f"{r.estimate:.2f} [{r.low:.2f}, {r.high:.2f}]"
