"""Comparison of two response curves, and pairs of models that only the whole curve distinguishes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri, stdtr

from curvewise.errors import InputError, arg
from curvewise.response.curve import SCORES, ResponseCurve, answers_variance, linear_variance, quantile, score_slope
from curvewise.text import format_interval, format_pvalue, interval_cell, pvalue_text
from curvewise.types.results import FloatArray, Interval, Result, as_floats, check_level, interval_columns

_UNITS = {"gi": "", "pal": "", "mean_accuracy": "fraction"}


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
            "a better": f"{self.a} is significantly more robust to the perturbation than {self.b}",
            "b better": f"{self.b} is significantly more robust to the perturbation than {self.a}",
            "undecided": f"{self.a} and {self.b} are not significantly different",
        }[self.verdict]
        how = "the same perturbed examples" if self.paired else "different examples"
        differences = "; ".join(
            f"{SCORES[score]} {format_interval(interval, _UNITS[score])} ({format_pvalue(self.pvalues[score])})"
            for score, interval in self.differences.items()
            if not math.isnan(self.pvalues[score])
        )
        text = f"{order} (Gi-score). {self.a} minus {self.b} on {how}: {differences}."
        winners = self._winners()
        if len(set(winners.values())) > 1:
            named = ", ".join(f"{SCORES[score]} {model}" for score, model in winners.items())
            text += f" The scores name different winners, significantly: {named}."
        return text

    def _winners(self) -> dict[str, str]:
        """Return the better model by each score whose difference is significant; a low Gi-score is good."""
        signs = {s: -1 if s == "gi" else 1 for s in self.differences}
        sure = {s: signs[s] * d.estimate for s, d in self.differences.items() if d.low > 0 or d.high < 0}
        return {score: self.a if gain > 0 else self.b for score, gain in sure.items()}

    def readable(self) -> Mapping[str, Sequence[Any]]:
        """Return a row for each score, with its difference and p-value."""
        return {
            "score": [SCORES[score] for score in self.differences],
            "difference": [interval_cell(d, _UNITS[score]) for score, d in self.differences.items()],
            "p": [pvalue_text(p) for p in self.pvalues.values()],
        }


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
        # An interval ends where differences do: a Pal-score, as a ratio, has no largest one.
        most = math.inf if score == "pal" else 1.0
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
    for curve in (a, b):
        if not isinstance(curve, ResponseCurve):
            raise InputError(f"a {type(curve).__name__} is no response curve: give objects of ResponseCurve.")
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


@dataclass(frozen=True, eq=False)
class ContrastingPairs(Result):
    """Pairs of models that are equally accurate at the largest magnitude and have different generalization gaps.

    Attributes
    ----------
    pairs : tuple of (str, str)
        Names, the model with the larger gap first; the largest difference of gaps first.
    curves : dict of str to ResponseCurve
        Of every model, by name.
    gap : dict of str to float
        Generalization gap of every model.
    scores : dict of str to dict of str to float
        For each model ``"accuracy"`` at the largest magnitude (Mixup), ``"gi"`` and ``"gap"``, each brought to 0 for
        the lowest and 1 for the highest of all models, as in figure 2 of Schiff et al. 2021.
    tolerance, least : float
        Largest difference of accuracies, and smallest of gaps, on that scale.
    """

    unlisted = ("curves",)

    pairs: tuple[tuple[str, str], ...]
    curves: dict[str, ResponseCurve] = field(repr=False)
    gap: dict[str, float] = field(repr=False)
    scores: dict[str, dict[str, float]] = field(repr=False)
    tolerance: float = 0.05
    least: float = 0.2
    warnings: tuple[str, ...] = ()

    def _headline(self) -> str:
        return f"{len(self.pairs)} pairs of {len(self.curves)} models"

    def columns(self) -> dict[str, list[Any]]:
        """Return a row for each pair: names, scores from 0 to 1, and whether Gi orders them as the gap does."""
        found: dict[str, list[Any]] = {"a": [a for a, _ in self.pairs], "b": [b for _, b in self.pairs]}
        for score in ("accuracy", "gi", "gap"):
            for side, name in enumerate("ab"):
                found[f"{score}_{name}"] = [self.scores[pair[side]][score] for pair in self.pairs]
        found["gi_agrees"] = [x > y for x, y in zip(found["gi_a"], found["gi_b"], strict=True)]
        return found

    def sentences(self) -> str:
        """Describe the result in a few sentences."""
        at = next(iter(self.curves.values())).magnitude[-1]
        whole = len(self.curves) * (len(self.curves) - 1) // 2
        text = (
            f"{len(self.pairs)} of {whole} pairs of models have accuracies at magnitude {at:g} within "
            f"{self.tolerance:.0%} of their range, and gaps that differ by {self.least:.0%} of theirs or more."
        )
        if not self.pairs:
            return text
        agree = sum(self.columns()["gi_agrees"])
        (a, b), (one, two) = self.pairs[0], (self.scores[name] for name in self.pairs[0])
        return (
            f"{text} The Gi-score is higher for the model with the larger gap in {agree} of them. The clearest: {a} "
            f"(gap {one['gap']:.2f}, Gi {one['gi']:.2f}) and {b} (gap {two['gap']:.2f}, Gi {two['gi']:.2f}), "
            "from 0 to 1 over all models."
        )


def find_contrasting_pairs(
    curves: Mapping[str, ResponseCurve],
    gap: Mapping[str, float] | ArrayLike,
    *,
    tolerance: float = 0.05,
    least: float = 0.2,
) -> ContrastingPairs:
    """Find models with the same accuracy at the largest magnitude whose generalization gaps differ.

    Of intra-class mixup, the accuracy at magnitude 0.5 is the Mixup score. Where it is the same for two models, only
    the rest of the curve can tell them apart (figure 2 of Schiff et al. 2021).

    Parameters
    ----------
    curves : dict of str to ResponseCurve
        By model, of one perturbation over one range: as :func:`measure_responses` returns them.
    gap : dict of str to float, or array_like
        Training accuracy less test accuracy of each model, by name or in the order of the curves.
    tolerance, least : float
        Accuracies at the largest magnitude may differ by this share of their range over all models, and gaps must
        differ by this share of theirs.

    Returns
    -------
    ContrastingPairs
        ``plot()`` draws the clearest pairs.

    Raises
    ------
    InputError
        If the curves do not compare, or gaps and curves do not fit together.

    Examples
    --------
    >>> counts = {"slow": [100, 99, 97, 80], "fast": [100, 90, 84, 80], "best": [100, 100, 99, 95]}
    >>> curves = {k: ResponseCurve.from_counts([0, 0.2, 0.4, 0.5], v, 100) for k, v in counts.items()}
    >>> found = find_contrasting_pairs(curves, {"slow": 0.1, "fast": 0.3, "best": 0.05})
    >>> found.pairs, found.columns()["gi_agrees"]
    ((('fast', 'slow'),), [True])
    """
    if not isinstance(curves, Mapping) or len(curves) < 2:
        raise InputError("give a dict of at least two curves by the names of their models.", argument="curves")
    names = list(curves)
    if isinstance(gap, Mapping):
        if set(gap) != set(names):
            odd = sorted(set(gap) ^ set(names))[0]
            raise InputError(f"{odd!r} has a gap or a curve only: give both for each model.", argument="gap")
        gap = [gap[name] for name in names]
    gaps = as_floats(gap, "gap")
    if gaps.shape != (len(names),):
        raise InputError(f"has shape {gaps.shape} for {len(names)} curves: one number for each.", argument="gap")
    if lost := [name for name, value in zip(names, gaps, strict=True) if not np.isfinite(value)]:
        raise InputError(f"is not a finite number for {lost[0]!r}: leave that model out.", argument="gap")
    for name, share in (("tolerance", tolerance), ("least", least)):
        if not 0 <= share <= 1:
            raise InputError("give a share from 0 to 1.", argument=name, value=share)
    for curve in curves.values():
        _check_comparable(curves[names[0]], curve)
    last = np.array([curve.accuracy[-1] for curve in curves.values()])
    gi = np.array([curve.gi for curve in curves.values()])
    table = {"accuracy": _spread_out(last), "gi": _spread_out(gi), "gap": _spread_out(gaps)}
    first, second = np.triu_indices(len(names), 1)
    apart = np.abs(table["gap"][first] - table["gap"][second])
    # A little more than the tolerance: shares that are equal on paper must count as equal.
    close = np.abs(table["accuracy"][first] - table["accuracy"][second]) <= tolerance + 1e-12
    chosen = [k for k in np.argsort(-apart, kind="stable") if close[k] and apart[k] >= max(least, 1e-12)]
    ends = [(first[k], second[k]) for k in chosen]
    return ContrastingPairs(
        pairs=tuple((names[i], names[j]) if gaps[i] > gaps[j] else (names[j], names[i]) for i, j in ends),
        curves=dict(curves),
        gap={name: float(value) for name, value in zip(names, gaps, strict=True)},
        scores={name: {key: float(row[i]) for key, row in table.items()} for i, name in enumerate(names)},
        tolerance=tolerance,
        least=least,
    )


def _spread_out(values: FloatArray) -> FloatArray:
    """Bring the lowest to 0 and the highest to 1; all to 0 where they are the same."""
    reach = float(np.ptp(values))
    scaled: FloatArray = (values - values.min()) / (reach or 1.0)
    return scaled
