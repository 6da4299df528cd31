"""Comparison of two response curves, in pairs of answers where both answered the same perturbed examples."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri, stdtr

from curvewise.errors import InputError
from curvewise.response.curve import SCORES, ResponseCurve, answers_variance, linear_variance, quantile, score_slope
from curvewise.text import arg
from curvewise.types.results import Interval, Result, check_level, interval_columns
from curvewise.types.units import FloatArray

# The largest difference there can be.
REACH = {"gi": 1.0, "mean_accuracy": 1.0}
_CALLED = {"gi": "Gi-score", "pal": "Pal-score", "mean_accuracy": "mean accuracy"}


@dataclass(frozen=True, eq=False)
class ResponseComparison(Result):
    """Differences between the scores of two response curves.

    Attributes
    ----------
    a, b : str
        Their names.
    paired : bool
        Both answered the same perturbed examples, so that what is hard for both cancels.
    differences : dict of str to Interval
        Score of a minus score of b, for ``"gi"``, ``"pal"`` and ``"mean_accuracy"``; NaN where a
        score has no value.
    pvalues : dict of str to float
        Two-sided, of no difference.
    correlation : float
        Of the two models' Gi-scores over samples of examples; 0 where they are not paired.
    """

    a: str
    b: str
    paired: bool
    differences: dict[str, Interval]
    pvalues: dict[str, float]
    correlation: float
    level: float = 0.95
    warnings: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """``"a better"``, ``"b better"`` or ``"undecided"``, by the Gi-score."""
        gi = self.differences["gi"]
        if gi.high < 0:
            return "a better"
        return "b better" if gi.low > 0 else "undecided"

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """Return a row for each score: difference, low, high, p-value."""
        return {**interval_columns(self.differences), "pvalue": list(self.pvalues.values())}

    def sentences(self) -> str:
        """Describe the result in a few sentences."""
        order = {
            "a better": f"{self.a} withstands the perturbation better than {self.b}",
            "b better": f"{self.b} withstands the perturbation better than {self.a}",
            "undecided": f"{self.a} and {self.b} cannot be told apart",
        }[self.verdict]
        how = "the same perturbed examples" if self.paired else "examples of their own"
        said = "; ".join(
            f"{_CALLED[score]} {interval} (p = {self.pvalues[score]:.2g})"
            for score, interval in self.differences.items()
            if not math.isnan(self.pvalues[score])
        )
        return f"{order}. Differences {self.a} − {self.b} on {how}: {said}."


def compare_responses(
    a: ResponseCurve, b: ResponseCurve, *, paired: bool | None = None, level: float = 0.95
) -> ResponseComparison:
    """Compare two response curves: Gi-score, Pal-score and mean accuracy.

    Curves that were measured with the same data and ``rng`` hold answers to the same perturbed examples. Their
    difference is then computed in pairs, which is much more precise than comparing two intervals. Otherwise the curves
    are taken as independent.

    Parameters
    ----------
    a, b : ResponseCurve
        Of two models.
    paired : bool, optional
        By default where magnitudes, examples and partners are known to be the same. True declares that the examples are
        the same where the curves do not record it.
    level : float
        Coverage of the intervals.

    Returns
    -------
    ResponseComparison

    Raises
    ------
    InputError
        If the curves are of different perturbations or ranges, or ``paired=True`` and they cannot be paired.

    Examples
    --------
    >>> a = ResponseCurve.from_counts([0, 0.25, 0.5], [999, 990, 960], 1000, model="wide")
    >>> b = ResponseCurve.from_counts([0, 0.25, 0.5], [999, 960, 880], 1000, model="narrow")
    >>> comparison = compare_responses(a, b)
    >>> comparison.verdict, comparison.paired
    ('a better', False)
    """
    check_level(level)
    _check_comparable(a, b)
    why = _unlike(a, b)
    if paired and why is not None:
        raise InputError(f"{arg('paired', True)}, but the two curves differ in {why}: leave paired out.")
    recorded = "sample" in a.settings and a.settings["sample"] == b.settings.get("sample")
    together = why is None and (recorded if paired is None else paired)
    # The variance of counts alone is known; that of single answers is estimated from so many examples.
    degrees = math.inf
    if a.hits is not None and b.hits is not None:
        degrees = float(max(min(a.hits.shape[1], b.hits.shape[1]) - 1, 1))
    # Answers at one magnitude that share no example.
    apart = int(a.total.min()) // (1 if a.partners is None else 2)
    slopes = {score: (score_slope(a, score), score_slope(b, score)) for score in SCORES}
    differences, pvalues = {}, {}
    for score, (left, right) in slopes.items():
        found = getattr(a, score) - getattr(b, score)
        spread = math.sqrt(difference_variance(a, b, left, right, together))
        # No spread at all, up to rounding: a t test would divide by 0.
        if together and spread <= 1e-12 * (1 + abs(found)):
            reach = max(float(left[left > 0].sum()), float(-left[left < 0].sum()))
            half, pvalues[score] = _alike(found, apart, reach, level)
        else:
            half, pvalues[score] = _tested(found, spread, degrees, level)
        # An interval ends where differences do.
        most = REACH.get(score, math.inf)
        low, high = (float(np.clip(end, -most, most)) for end in (found - half, found + half))
        differences[score] = Interval(found, low, high, level)
    correlation = 0.0
    if together:
        one, other = linear_variance(slopes["gi"][0], a), linear_variance(slopes["gi"][1], b)
        both = difference_variance(a, b, *slopes["gi"], together=True)
        correlation = (one + other - both) / (2 * math.sqrt(one * other)) if one * other > 0 else math.nan
    names = (a.model, b.model) if a.model != b.model else (f"{a.model} (a)", f"{b.model} (b)")
    return ResponseComparison(*names, together, differences, pvalues, correlation, level, tuple(_doubts(a, b)))


def difference_variance(
    a: ResponseCurve, b: ResponseCurve, left: FloatArray, right: FloatArray, together: bool
) -> float:
    """Variance of left · accuracy of a minus right · accuracy of b; ``together`` if the answers are paired."""
    if not together or a.hits is None or b.hits is None:
        return linear_variance(left, a) + linear_variance(right, b)
    answers = left[:, None] * a.hits - right[:, None] * b.hits
    return answers_variance(np.ones(len(left)), answers, a.partners)


def _tested(difference: float, spread: float, degrees: float, level: float) -> tuple[float, float]:
    """Return half of the interval and the p-value of a t test."""
    half = quantile(level, degrees) * spread
    if math.isnan(difference) or math.isnan(spread):
        return half, math.nan
    if spread == 0:  # a score that no answer changes, as Pal of two magnitudes
        return half, 1.0 if abs(difference) < 1e-9 else 0.0
    statistic = -abs(difference) / spread
    return half, float(2 * (ndtr(statistic) if math.isinf(degrees) else stdtr(degrees, statistic)))


def _alike(difference: float, count: int, reach: float, level: float) -> tuple[float, float]:
    """Return half of the interval and the p-value where each of so many examples makes the same difference.

    The p-value is that of the sign test, the interval that of a t test with the same p-value. For no difference at all
    the interval reaches the largest share of examples that a sample of this size may miss; ``reach`` is the change of
    the score if all examples change.
    """
    times = quantile(level, math.inf)
    if abs(difference) < 1e-12:
        return reach * times**2 / (count + times**2), 1.0
    p = min(1.0, 2.0 ** (1 - count))
    if p == 1:  # one example tells nothing
        return math.nan, p
    at_p = float(-ndtri(p / 2)) if p > 0 else math.inf
    return abs(difference) * times / at_p, p


def _unlike(a: ResponseCurve, b: ResponseCurve) -> str | None:
    """Return what prevents the answers of two curves from being paired; None if nothing does."""
    if a.hits is None or b.hits is None:
        return "what is known: one of them has no single answers"
    if not np.array_equal(a.magnitude, b.magnitude):
        return "their magnitudes"
    if a.hits.shape != b.hits.shape:
        return f"their number of examples, {a.hits.shape[1]} and {b.hits.shape[1]}"
    if a.settings.get("sample") != b.settings.get("sample"):
        return "their examples"
    if a.partners is None or b.partners is None:
        return None if a.partners is b.partners else "their partners"
    return None if np.array_equal(a.partners, b.partners) else "their partners"


def _check_comparable(a: ResponseCurve, b: ResponseCurve) -> None:
    """Refuse curves whose scores do not measure the same."""
    for what in ("perturbation", "signs"):
        one, two = getattr(a, what), getattr(b, what)
        if one != two:
            raise InputError(f"a and b differ in {what} ({one} and {two}): measure both in the same way.")
    ends = [(c.magnitude[0], c.magnitude[-1]) for c in (a, b)]
    if ends[0] != ends[1]:
        raise InputError(
            f"a goes from magnitude {ends[0][0]:g} to {ends[0][1]:g} and b from {ends[1][0]:g} to "
            f"{ends[1][1]:g}: scores over different ranges do not compare. Measure both over one."
        )


def _doubts(a: ResponseCurve, b: ResponseCurve) -> list[str]:
    """Return warnings about scores that are hard to compare."""
    found = []
    if a.layer != b.layer:
        found.append(
            f"The curves are of different layers ({a.layer} and {b.layer}): their scores measure "
            "the same only if these play the same part."
        )
    if not np.array_equal(a.magnitude, b.magnitude):
        found.append("The curves were measured at different magnitudes, and are not paired.")
    return found
