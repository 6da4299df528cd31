"""Test-set variance predicted from calibration, and whether the votes are calibrated at all."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import InputError
from curvewise.types import FloatArray, Interval, Predictions, Result, as_predictions, check_level
from curvewise.variance._calibration_checks import (
    GAP,
    IDENTITY,
    CalibrationCheck,
    VoteMoments,
    measure_moments,
    reliability,
)
from curvewise.variance._estimates import chance, example_interval, interval_of, run_std
from curvewise.variance._votes import Votes, count_votes
from curvewise.variance.anova import Split, split_variance
from curvewise.variance.estimate import mean_interval
from curvewise.variance.totals import measure_totals
from curvewise.variance.wording import said, said_interval, said_pvalue

BINS = 10
VERDICTS = {
    "holds": "The runs agree with class-wise calibration, and its formulas may be used here",
    "close": (
        "The votes are not quite calibrated, but so nearly that the formulas of class-wise"
        " calibration may be used here"
    ),
    "fails": (
        "The votes are not class-wise calibrated, and its formulas must not be used here: no"
        " variance can be had from the error alone"
    ),
    "undecided": (
        "These runs and examples are too few to tell whether the formulas of class-wise"
        " calibration may be used here"
    ),
}


@dataclass(frozen=True, eq=False)
class Calibration(Result):
    """Test-set variance that class-wise calibration predicts, and whether it may be believed.

    Attributes
    ----------
    runs, examples, classes : int
        The size of the experiment; classes that occur.
    groups : int or None
        Number of groups of examples that belong together.
    error, disagreement : Interval
        How often a run errs, and how often two runs disagree.
    measured : Interval
        Standard deviation between runs of the error on this test set.
    independent_std : float
        What it would be if examples (or groups) erred independently.
    distribution_variance : float
        Variance of the true error between runs, signed.
    predicted : dict of str to Interval
        By formula, the standard deviation that the finite test set gives: "binomial"
        err(1 − err)/n, and "two classes" err/2n or, for k > 2 classes, "calibrated" (the mean of
        Σ q²(1 − q), over n) and "lower bound" err/(nk). With two classes Σ q²(1 − q) is what
        the votes show whether calibrated or not: it predicts nothing.
    total : dict of str to Interval
        The same with (1 − 1/n) times the variance of true error added.
    checks : tuple of CalibrationCheck
        What calibration makes 0: error minus disagreement, and (with three classes or more) the
        mean variance of an example minus the formula for it.
    class_checks : tuple of CalibrationCheck
        What each class contributes to error minus disagreement.
    ratios : dict of str to Interval
        By check: the predicted standard deviation over the one there is.
    tolerance : float
        How far a ratio may be from 1 for the formulas to be of use.
    verdict : {"holds", "close", "fails", "undecided"}
        See :func:`measure_calibration`.
    """

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
        """Whether the formulas of class-wise calibration may be used here."""
        return self.verdict in ("holds", "close")

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per formula: standard deviations, without and with true variance."""
        nothing = Interval(self.independent_std, math.nan, math.nan)
        rows = {"independent errors": nothing, **self.predicted}
        totals = [math.nan, *(i.estimate for i in self.total.values())]
        return {
            "formula": ["measured", *rows],
            "std": [self.measured.estimate, *(i.estimate for i in rows.values())],
            "low": [self.measured.low, *(i.low for i in rows.values())],
            "high": [self.measured.high, *(i.high for i in rows.values())],
            "with true variance": [math.nan, *totals],
        }

    def check_columns(self) -> Mapping[str, Sequence[Any]]:
        """One row per check, then one per class."""
        rows = [*self.checks, *self.class_checks]
        return {
            "check": [c.name for c in self.checks] + [f"class {c.name}" for c in self.class_checks],
            "difference": [c.difference.estimate for c in rows],
            "low": [c.difference.low for c in rows],
            "high": [c.difference.high for c in rows],
            "statistic": [c.statistic for c in rows],
            "pvalue": [c.pvalue for c in rows],
            "adjusted": [c.adjusted for c in rows],
        }

    def reliability_columns(self) -> Mapping[str, FloatArray]:
        """Cells (example × class) by share of votes: confidence, frequency and its limits."""
        return self._reliability

    def summary(self) -> str:
        """Predictions, measurement and verdict in a few sentences."""
        design = f" in {self.groups:,} groups" if self.groups else ""
        formulas = ", ".join(f"{said(i.estimate, 'fraction')} ({n})" for n, i in self.total.items())
        off = [c.name for c in self.class_checks if c.adjusted < 1 - self.level]
        classes = f" {len(off)} of {self.classes} classes are off by themselves." if off else ""
        return " ".join(
            [
                f"Over {self.runs:,} runs and {self.examples:,} examples{design} of"
                f" {self.classes} classes the test error has a standard deviation of"
                f" {said_interval(self.measured, 'fraction')}; predicted are {formulas}, true"
                " differences between runs included.",
                f"A run errs on {said_interval(self.error, 'fraction')} and two runs disagree on"
                f" {said_interval(self.disagreement, 'fraction')} of the examples, which"
                f" calibration would make equal ({said_pvalue(self.checks[0].pvalue)}).{classes}",
                f"{VERDICTS[self.verdict]} ({self._sizes()}).",
                *(f"Beware: {w}" for w in self.warnings),
            ]
        )

    def _sizes(self) -> str:
        words = {
            name: f"{r.estimate:.2f} [{r.low:.2f}, {r.high:.2f}]" for name, r in self.ratios.items()
        }
        said_so = f"√(error/disagreement) is {words[GAP]}"
        if IDENTITY in words:
            said_so += (
                f", the formula's standard deviation over that of the votes {words[IDENTITY]}"
            )
        return said_so


def measure_calibration(
    predictions: Predictions | ArrayLike,
    labels: ArrayLike | None = None,
    *,
    kind: str | None = None,
    axes: Sequence[str] | None = None,
    groups: ArrayLike | None = None,
    level: float = 0.95,
    tolerance: float = 0.1,
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
        Which examples belong together: they are sampled together.
    level : float
        Coverage of the intervals; tests reject below 1 − ``level``.
    tolerance : float
        How far off a predicted standard deviation may be to be of use: 0.1 for a tenth.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> q = rng.beta(0.2, 0.8, 3000)
    >>> calibrated = measure_calibration(rng.random((40, 3000)) < q, rng.random(3000) < q)
    >>> calibrated.usable, round(calibrated.ratios["error − disagreement"].estimate, 2)
    (True, 1.01)
    """
    check_level(level)
    if not tolerance > 0:
        raise InputError(f"tolerance={tolerance} must be above 0, such as 0.1 for a tenth.")
    given = as_predictions(predictions, labels, kind=kind, axes=axes, groups=groups)
    votes = count_votes(given, least=4)
    if votes.classes < 2:
        raise InputError("labels and predictions hold one class only: two are needed.")
    totals = measure_totals(given)
    split = split_variance(totals)
    moments = measure_moments(given, votes, level)
    error = chance(mean_interval(totals, split, level))
    predicted = _predicted(votes, error, moments)
    total = {name: _with_true(i, split, votes.examples) for name, i in predicted.items()}
    verdict = _verdict(moments, tolerance, level)
    return Calibration(
        runs=votes.runs,
        examples=votes.examples,
        classes=votes.classes,
        groups=None if votes.groups is None else int(votes.groups.max()) + 1,
        error=error,
        disagreement=chance(example_interval(votes.disagreement, votes.groups, level)),
        measured=run_std(totals.run, level),
        independent_std=math.sqrt(split.independent),
        distribution_variance=split.distribution,
        predicted=predicted,
        total=total,
        checks=moments.checks,
        class_checks=moments.class_checks,
        ratios=moments.ratios,
        tolerance=tolerance,
        verdict=verdict,
        level=level,
        warnings=_warnings(votes, moments, verdict),
        _reliability=reliability(votes, BINS, level),
    )


def _predicted(votes: Votes, error: Interval, moments: VoteMoments) -> dict[str, Interval]:
    n, k = votes.examples, votes.classes
    ends = np.array([error.estimate, error.low, error.high])
    binomial = ends * (1 - ends)
    binomial[1:].sort()
    if error.low < 0.5 < error.high:
        binomial[2] = 0.25
    spread = moments.spread
    variances = {"binomial": binomial / n}
    if k == 2:
        variances["two classes"] = ends / (2 * n)
    else:
        calibrated = np.array([spread.estimate, max(0.0, spread.low), spread.high])
        variances |= {"calibrated": calibrated / n, "lower bound": ends / (n * k)}
    return {name: interval_of(np.sqrt(v), error.level) for name, v in variances.items()}


def _with_true(predicted: Interval, split: Split, n: int) -> Interval:
    """Add the variance of true error as estimated: its own interval is not in this one's."""
    added = (1 - 1 / n) * max(0.0, split.distribution)
    ends = [math.sqrt(v**2 + added) for v in (predicted.estimate, predicted.low, predicted.high)]
    return Interval(ends[0], ends[1], ends[2], predicted.level)


def _verdict(moments: VoteMoments, tolerance: float, level: float) -> str:
    rejected = min(check.adjusted for check in moments.checks) < 1 - level
    within = all(
        1 / (1 + tolerance) <= r.low and r.high <= 1 + tolerance for r in moments.ratios.values()
    )
    if rejected:
        return "close" if within else "fails"
    return "holds" if within else "undecided"


def _warnings(votes: Votes, moments: VoteMoments, verdict: str) -> tuple[str, ...]:
    notes = []
    if any(math.isnan(r.estimate) for r in moments.ratios.values()):
        notes.append("no run errs, or no two runs disagree: there is nothing to test.")
    if votes.runs < 10 and verdict != "fails":
        notes.append(f"{votes.runs} runs say little of how all runs would vote: train 10 or more.")
    return tuple(notes)
