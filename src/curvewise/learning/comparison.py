"""Comparison of two fitted curves, and ranking of many."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import InputError, Message, arg, prefix
from curvewise.learning.curve import (
    EXTRAPOLATION_LIMIT,
    Curve,
    check_curves,
    check_size,
    check_sizes_to_predict,
    rising_below,
)
from curvewise.learning.fit import fitted_curves
from curvewise.stats.intervals import (
    crossing_interval,
    difference_interval,
    excluded_level,
    first_crossing,
    probability_lowest,
)
from curvewise.text import (
    Cell,
    format_chance,
    format_count,
    format_interval,
    format_level,
    format_number,
    format_pvalue,
    format_size,
    name_better,
    readable_columns,
)
from curvewise.types.results import FloatArray, Interval, Result, Unit, check_level, data_frame, interval_columns

if TYPE_CHECKING:
    import pandas as pd

SEARCH = 1e3
"""Crossings and equal errors are looked for up to this multiple of the largest size."""
SEEN = 10.0
"""Up to this multiple of it, which pictures show, a crossing that the data do not show is mentioned."""
TOO_FEW = "too few runs to say"


@dataclass(frozen=True)
class CurveComparison(Result):
    """A comparison of learner a with learner b.

    Attributes
    ----------
    a, b : str
        Their names.
    at : float
        The training size N of the comparison.
    error_difference : Interval
        e_N of a minus e_N of b; below 0, a is better (above 0 for scores).
    data_reliance_difference : Interval
        β_N of a minus β_N of b; above 0, a gains more from more data.
    crossing : Interval
        Training size at which the better of the two changes. The estimate is NaN where the curves do not cross, and
        where the data do not show it: one is significantly better on one side only, or the crossing lies where a
        fitted law is not followed (:attr:`LearningCurve.beyond`).
    data_equivalence : Interval
        The factor k for which b needs k·N samples to match a at N; above 1, a is worth more data.
    data_equivalence_of_a : Interval
        The factor k for which a needs k·N samples to match b at N.
    pvalue : float
        Two-sided, of the error difference.
    verdict : str
        "a better", "b better" or "undecided", at N and at ``level``.
    """

    a: str
    b: str
    at: float
    error_difference: Interval
    data_reliance_difference: Interval
    crossing: Interval
    data_equivalence: Interval
    data_equivalence_of_a: Interval
    pvalue: float
    verdict: str
    level: float
    unit: Unit
    warnings: tuple[str, ...]
    _curves: tuple[Curve, Curve]
    _meets: float
    """Training size at which the fitted curves cross, shown by the data or not; NaN where they do not."""

    @property
    def _seen_up_to(self) -> float:
        return SEEN * max(curve.largest_n for curve in self._curves)

    @property
    def worse_first(self) -> tuple[str, str, Interval]:
        """The learner with the higher error at N, the other one, and how many times N the first needs to match it."""
        a_worse = (self.error_difference.estimate > 0) != (self.unit.name == "score")
        if a_worse:
            return self.a, self.b, self.data_equivalence_of_a
        return self.b, self.a, self.data_equivalence

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per quantity: estimate, low, high."""
        rows = {
            f"e_N difference at n = {format_number(self.at)}": self.error_difference,
            "beta_N difference": self.data_reliance_difference,
            "crossing n": self.crossing,
            "data-equivalence factor": self.data_equivalence,
            "data-equivalence factor of a": self.data_equivalence_of_a,
        }
        return interval_columns(rows)

    def readable(self) -> Mapping[str, Sequence[Any]]:
        """Return one row per quantity, with its interval; the factor is that of the learner that needs more data."""
        table = readable_columns(self.columns(), self.unit.name)
        cross = self.crossing
        if np.isnan(cross.estimate):
            ends = "" if np.isnan(cross.low) else f" [{format_size(cross.low)}, {format_size(cross.high)}]"
            near = self._meets <= self._seen_up_to
            found = f"near {format_size(self._meets)}" if near else f"none up to {format_size(self._seen_up_to)}"
            table["estimate"][2] = Cell(found, after=f"{ends}, not shown" if near else "")
        beta = self.data_reliance_difference
        if self.unit.bounded and beta.width >= self.unit.top:  # as wide as all that is possible
            table["estimate"][1] = Cell(TOO_FEW)
        names = [str(q).replace("beta_N", "β_N") for q in table["quantity"][:-2]]
        if self.error_difference.kind == "prediction":  # the interval of β_N is by the power law, whatever the form
            names[1] += " (confidence)"
        worse, better, needed = self.worse_first
        factor, space, ends = (_times(needed) or "–").partition(" ") if _is_bounded(needed) else (TOO_FEW, "", "")
        cells = [*table["estimate"][:-2], Cell(factor, after=space + ends)]
        return {"quantity": [*names, f"data that {worse} needs to match {better}"], "estimate": cells}

    def equivalence_at(self, n: ArrayLike) -> pd.DataFrame:
        """Tabulate the data-equivalence factor at several sizes, to see whether it is the same everywhere.

        Returns
        -------
        DataFrame
            Columns n, factor, low, high: b needs factor · n samples to match a at n.
        """
        sizes = check_sizes_to_predict(n)
        found = [tuple(_equivalence(*self._curves, float(size), self.level)) for size in sizes]
        return data_frame({"n": sizes, **dict(zip(("factor", "low", "high"), np.array(found).T, strict=True))})

    def table_note(self) -> str:
        """Name what is compared, and the kind and level of the intervals."""
        forms = " and ".join(dict.fromkeys(c.form for c in self._curves))
        return (
            f"{self.a} minus {self.b} ({format_level(self.level)} {self.error_difference.kind} intervals, form {forms})"
        )

    def sentences(self) -> str:
        """The verdict in a few sentences."""
        a, b, d, c = self.a, self.b, self.error_difference, self.crossing
        where = f"at n = {format_number(self.at)}"
        word = self.unit.quantity
        found = f"the {word} of {a} minus that of {b} is {format_interval(d, self.unit.name)}"
        found += f" ({format_pvalue(self.pvalue)})"
        if self.verdict == "undecided":
            lines = [f"{a} and {b} are not significantly different {where}: {found}."]
            if self.unit.name != "score" and d.width > 2 * max(float(k.mean.max()) for k in self._curves):
                lines.append(f"There are {TOO_FEW} more: the interval is wider than the {word} itself.")
        else:
            better, worse = (a, b) if self.verdict == "a better" else (b, a)
            lines = [f"{better} is significantly better than {worse} {where}: {found}."]
        worse, better, k = self.worse_first
        if np.isfinite(k.estimate):
            known = _times(k) if _is_bounded(k) else ""
            lines += [f"{worse} would need {known} the data to match {better} there."] if known else []
        elif np.isinf(k.estimate) and self.verdict != "undecided":
            text = (
                f"The fitted curve of {worse} does not get to the {word} of {better} with {SEARCH:,.0f} times the data"
            )
            known = f"; it takes more than {_factor(k.low)} times with {format_level(self.level)} confidence."
            lines.append(text + (known if 0 < k.low < np.inf else "."))
        if np.isfinite(c.estimate):
            lines.append(f"The curves cross near n = {format_interval(c)}.")
        elif self._meets <= self._seen_up_to:
            text = f"The fitted curves cross near n = {format_size(self._meets)}, but the data do not show it: "
            followed = all(k.is_supported_at(self._meets) for k in self._curves)
            why = "each learner would have to be significantly better on its side."
            lines.append(text + (why if followed else "so far out they do not follow the fitted laws."))
        measured = self.at <= min(k.largest_n for k in self._curves)
        if d.kind == "prediction" and measured and self.verdict == "undecided":
            lines.append(
                "These intervals suppose no law of the curves. Those of form power suppose a power law and are usually"
                " narrower: a difference that only they show rests on that law."
            )
        return " ".join(lines)


def _is_bounded(factor: Interval) -> bool:
    """Return False for the interval of a factor that holds every factor there is."""
    return not (factor.low <= 1 / SEARCH and factor.high >= SEARCH)


def _times(factor: Interval) -> str:
    """Write a factor with its interval, as 2.2× [0.54, ∞] or "less than 0.002×"; empty where nothing is known of it."""
    estimate, low, high = factor
    if np.isnan(estimate) or (estimate == low == 0 and np.isinf(high)):
        return ""
    if estimate == 0:
        return f"less than {_factor(high)}×"
    if np.isinf(estimate) and 1 < low < np.inf:
        return f"more than {_factor(low)}×"
    return f"{_factor(estimate)}× [{_factor(low)}, {_factor(high)}]"


def _factor(x: float) -> str:
    return f"{x:.2g}" if 0.001 <= abs(x) < 99.5 else format_size(x)


def compare_learning_curves(a: Curve, b: Curve, *, at: float | None = None, level: float = 0.95) -> CurveComparison:
    """Compare two fitted curves at a training size.

    Parameters
    ----------
    a, b : LearningCurve or EnsembleCurve
        Fitted to the same metric, in the same unit. Their runs are taken as independent; where
        both were trained on the same subsets, the intervals are wider than they need be.
    at : float, optional
        Training size N; by default the smaller of the two largest sizes.
    level : float
        Coverage of the intervals.

    Examples
    --------
    >>> from curvewise import fit_learning_curve
    >>> n = [100, 100, 200, 200, 400, 400, 800]
    >>> a = fit_learning_curve(n, [.32, .30, .24, .25, .19, .18, .15], learner="plain")
    >>> b = fit_learning_curve(n, [.22, .21, .18, .19, .16, .17, .15], learner="pretrained")
    >>> c = compare_learning_curves(b, a, at=100)
    >>> c.verdict, round(c.error_difference.estimate, 3)
    ('a better', -0.099)
    """
    check_level(level)
    for name, curve in {"a": a, "b": b}.items():
        if not isinstance(curve, Curve):
            raise InputError("must be a fitted curve; see fit_learning_curves.", argument=name, value=curve)
    if a.unit != b.unit:
        raise InputError(f"a is in unit {a.unit.name!r} and b in {b.unit.name!r}: fit both in the same unit.")
    if a.learner == b.learner:  # such as two that nobody named: sentences must tell them apart
        a, b = replace(a, learner=f"{a.learner} (a)"), replace(b, learner=f"{b.learner} (b)")
    size = min(a.largest_n, b.largest_n) if at is None else check_size(at, "at")
    difference, pvalue, verdict = _judge(a, b, size, level)
    one, two = (c.interval_at(size, level=level).data_reliance for c in (a, b))
    low, high = difference_interval(one.estimate, (one.low, one.high), two.estimate, (two.low, two.high))
    crossing, meets = _crossing(a, b, level)
    needed, needed_of_a = _equivalence(a, b, size, level), _equivalence(b, a, size, level)
    # How far out each curve is used: the worse one up to where it matches the other.
    sizes_used = [size * max(1.0, k.estimate) if np.isfinite(k.estimate) else size for k in (needed_of_a, needed)]
    return CurveComparison(
        a=a.learner,
        b=b.learner,
        at=size,
        error_difference=difference,
        data_reliance_difference=Interval(one.estimate - two.estimate, float(low), float(high), level),
        crossing=crossing,
        data_equivalence=needed,
        data_equivalence_of_a=needed_of_a,
        pvalue=pvalue,
        verdict=verdict,
        level=level,
        unit=a.unit,
        warnings=(*_warnings_at([a, b], size, "comparison", sizes_used), *_far_crossing(a, b, crossing)),
        _curves=(a, b),
        _meets=meets,
    )


@dataclass(frozen=True, eq=False)
class LearnerComparison(Result):
    """Several learners compared in pairs at one training size.

    Attributes
    ----------
    learners : tuple of str
        Lowest error at N first (highest score).
    at : float
        The training size N.
    pairs : tuple of tuple of str
        The compared pairs: a and b.
    differences : tuple of Interval
        e_N of a minus e_N of b. The intervals hold together: all of them cover with probability ``level`` or more
        (Bonferroni).
    pvalues, adjusted : ndarray
        Two-sided, before and after multiplication by the number of pairs (Bonferroni).
    verdicts : tuple of str
        "a better", "b better" or "undecided": the side of 0 on which the interval lies, if it does not contain it.
    baseline : str or None
        The learner that was compared with each of the others, a of every pair; None for all pairs.
    """

    learners: tuple[str, ...]
    at: float
    pairs: tuple[tuple[str, str], ...]
    differences: tuple[Interval, ...]
    pvalues: FloatArray
    adjusted: FloatArray
    verdicts: tuple[str, ...]
    baseline: str | None
    level: float
    unit: Unit
    warnings: tuple[str, ...]
    _curves: tuple[Curve, ...]

    def __iter__(self) -> Iterator[Curve]:
        """Yield the curves, best first, so that they can be drawn and compared further."""
        return iter(self._curves)

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per pair, the smallest p-value first."""
        order = np.argsort(self.adjusted, kind="stable").tolist()
        differences = [self.differences[i] for i in order]
        return {
            "a": [self.pairs[i][0] for i in order],
            "b": [self.pairs[i][1] for i in order],
            "difference": [d.estimate for d in differences],
            "low": [d.low for d in differences],
            "high": [d.high for d in differences],
            "pvalue": self.pvalues[order],
            "adjusted_pvalue": self.adjusted[order],
            "verdict": [self.verdicts[i] for i in order],
        }

    def readable(self) -> Mapping[str, Sequence[Any]]:
        """Return one row per pair, the verdict with the name of the better learner."""
        return name_better(super().readable())

    def table_note(self) -> str:
        """Name what is compared, and the kind and level of the intervals."""
        several = len(self.pairs) > 1
        kind = f"{'simultaneous ' if several else ''}{format_level(self.level)} {self.differences[0].kind}"
        what = f"a minus b, {kind} intervals"
        what += f", p-values × {len(self.pairs)}" if several else ""
        return f"{format_count(len(self.pairs), 'pair')} at n = {format_number(self.at)} ({what})"

    def sentences(self) -> str:
        """State how many differences are significant, and which learners remain candidates for the best."""
        found = sum(v != "undecided" for v in self.verdicts)
        judged = list(zip(self.pairs, self.verdicts, strict=True))
        beaten = {pair[verdict == "a better"] for pair, verdict in judged if verdict != "undecided"}
        left = [name for name in self.learners if name not in beaten]
        pairs = len(self.pairs)
        text = f"At n = {format_number(self.at)}, {found} of {format_count(pairs, 'difference')}"
        text += f" {'is' if found == 1 else 'are'} significant at {1 - self.level:.2g}"
        text += f", corrected for {pairs} comparisons (Bonferroni)." if pairs > 1 else "."
        if self.baseline is not None:
            order = {"significantly better than": "a better", "significantly worse than": "b better"}
            order["not significantly different from"] = "undecided"
            others = {how: [b for (_, b), v in judged if v == verdict] for how, verdict in order.items()}
            phrases = [f"{how} {', '.join(names)}" for how, names in others.items() if names]
            return f"{text} {self.baseline} is {'; '.join(phrases)}."
        if len(left) == 1:
            return f"{text} {left[0]} is significantly better than all others."
        shown = ", ".join(left[:5]) + (f" and {len(left) - 5} more" if len(left) > 5 else "")
        return f"{text} Not significantly worse than any other: {shown}."


def compare_learners(
    curves: Any, *, baseline: str | None = None, at: float | None = None, level: float = 0.95, **fitting: Any
) -> LearnerComparison:
    """Compare several fitted curves at a training size, all pairs or each with a baseline.

    Parameters
    ----------
    curves : LearningCurves, iterable of curves, Measurements or DataFrame
        Two learners or more, in one unit, taken as independent; measurements are fitted first.
    baseline : str, optional
        Compare this learner with each of the others only; it is a of every pair.
    at : float, optional
        Training size N; by default the smallest of the largest sizes.
    level : float
        All intervals hold together at this level, by Bonferroni's correction; a difference whose interval does not
        contain 0 is significant.
    **fitting
        For measurements: form, unit and the like, see :func:`fit_learning_curves`.

    Examples
    --------
    >>> from curvewise import fit_learning_curve
    >>> n = [100, 100, 200, 200, 400, 400, 800]
    >>> errors = {"plain": [.32, .30, .24, .25, .19, .18, .15], "new": [.22, .21, .18, .19, .16, .17, .15]}
    >>> curves = [fit_learning_curve(n, e, learner=name) for name, e in errors.items()]
    >>> compare_learners(curves, at=100).verdicts
    ('b better',)
    """
    chosen, size, warnings = _judged(curves, at, level, "comparison", "compared", fitting)
    names = [c.learner for c in chosen]
    if len(chosen) < 2 or len(set(names)) < len(names):
        raise InputError("holds fewer than two learners of different names.", argument="curves")
    if baseline is not None and baseline not in names:
        raise InputError(f"is not among {', '.join(map(repr, names))}.", argument="baseline", value=baseline)
    point = np.array([size])
    ranked = sorted(chosen, key=lambda c: float(cost(c, point)[0]))
    by_name = {c.learner: c for c in chosen}
    pairs = [p for p in combinations(names, 2) if baseline is None]
    pairs += [(baseline, name) for name in names if baseline is not None and name != baseline]
    # Bonferroni: the intervals of all pairs hold together, and each decides on its pair. Holm's step-down tests would
    # find more, but have no intervals that say how large a difference is.
    each = 1 - (1 - level) / len(pairs)
    differences, pvalues, verdicts = zip(*(_judge(by_name[a], by_name[b], size, each) for a, b in pairs), strict=True)
    return LearnerComparison(
        learners=tuple(c.learner for c in ranked),
        at=size,
        pairs=tuple(pairs),
        differences=differences,
        pvalues=np.array(pvalues),
        adjusted=np.minimum(len(pairs) * np.array(pvalues), 1.0),
        verdicts=verdicts,
        baseline=baseline,
        level=level,
        unit=chosen[0].unit,
        warnings=warnings,
        _curves=tuple(ranked),
    )


def cost(curve: Curve, n: FloatArray) -> FloatArray:
    """The curve in the user's unit, turned so that lower is better."""
    return np.asarray(curve._error_points(n) / curve._scale.factor)


def likely(curve: Curve, n: FloatArray, level: float) -> tuple[FloatArray, tuple[FloatArray, FloatArray]]:
    """Intervals by the likelihood alone and a centre inside them, as costs."""
    low, high = curve._clip(*curve._band_points(n, level, curve.default_interval, np.inf))
    factor = curve._scale.factor
    return np.clip(curve._likely_points(n), low, high) / factor, (low / factor, high / factor)


def _judge(a: Curve, b: Curve, n: float, level: float) -> tuple[Interval, float, str]:
    """Return the difference of the errors at n, its p-value and the verdict."""
    point = np.array([n])

    def interval(confidence: float) -> tuple[float, float]:
        _, low, high = _difference(a, point, b, point, confidence)
        return float(low[0]), float(high[0])

    estimate, below, above = (float(v[0]) for v in _difference(a, point, b, point, level))
    verdict = "a better" if above < 0 else "b better" if below > 0 else "undecided"
    if a._scale.sign < 0:  # costs are turned scores
        estimate, below, above = -estimate, -above, -below
    difference = Interval(estimate, below, above, level, _kind(a, b))
    return difference, 1.0 - excluded_level(interval, 0.0), verdict


def _difference(
    a: Curve, n_a: FloatArray, b: Curve, n_b: FloatArray, level: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """e_a(n_a) − e_b(n_b) as a cost: the difference of the curves, low, high."""
    low, high = difference_interval(*likely(a, n_a, level), *likely(b, n_b, level))
    # The prior on γ may have moved the curves out of what the likelihood alone allows: the interval is extended.
    gap = cost(a, n_a) - cost(b, n_b)
    return gap, np.minimum(low, gap), np.maximum(high, gap)


def _crossing(a: Curve, b: Curve, level: float) -> tuple[Interval, float]:
    """Find where the better of the two changes; its interval is where neither is ruled out.

    The second number is where the fitted curves cross, whether the data show it or not; NaN where they do not.
    """
    # From the smallest size measured: below it both curves are only their form.
    kind, start = _kind(a, b), np.log(min(a.n[0], b.n[0]))
    stop = np.log(max(a.largest_n, b.largest_n) * SEARCH)
    grid = np.exp(np.linspace(start, stop, 400))
    gap = cost(a, grid) - cost(b, grid)
    if np.sign(gap[0]) == np.sign(gap).min() == np.sign(gap).max():
        return Interval(np.nan, np.nan, np.nan, level, kind), np.nan
    worse, better = (a, b) if gap[0] > 0 else (b, a)
    low, high = crossing_interval(lambda n: _difference(worse, n, better, n, level), grid)
    estimate = first_crossing(grid, np.abs(gap) * np.sign(gap * gap[0]))
    if low <= 0 and np.isinf(high):
        return Interval(np.nan, np.nan, np.nan, level, kind), estimate
    # With an open end one of the two is significantly better on one side only, which shows no crossing.
    shown = low > 0 and np.isfinite(high) and a.is_supported_at(estimate) and b.is_supported_at(estimate)
    return Interval(float(np.clip(estimate, low, high)) if shown else np.nan, low, high, level, kind), estimate


def _kind(*curves: Curve) -> str:
    """Name the kind of an interval made of those of several curves, in whatever order these come."""
    return " and ".join(sorted({c.default_interval for c in curves}))


def _far_crossing(a: Curve, b: Curve, crossing: Interval) -> Iterator[str]:
    """Warn of a crossing beyond the sizes up to which the data support both curves."""
    limit = EXTRAPOLATION_LIMIT * min(a.largest_n, b.largest_n)
    if crossing.estimate > limit:
        place = format_interval(crossing).partition(" [")[0]  # in the digits of the table
        yield (
            f"The crossing near n = {place} is an extrapolation: it lies beyond four times the largest"
            f" size measured ({format_size(limit)}), where the data do not support the form of the curves."
        )


def _equivalence(a: Curve, b: Curve, n: float, level: float) -> Interval:
    """The factor k with e_b(kN) = e_a(N); its interval holds the k at which they may be equal."""
    # Symmetric in log k, as either learner may be the one that is worth more data.
    factors = np.exp(np.linspace(-np.log(SEARCH), np.log(SEARCH), 601))
    factors = factors[rising_below(b, factors * n) :]
    point = np.array([n])
    estimate = first_crossing(factors, cost(b, factors * n) - cost(a, point))
    low, high = crossing_interval(lambda k: _difference(b, k * n, a, point, level), factors)
    return Interval(float(np.clip(estimate, low, high)), low, high, level, _kind(a, b))  # a root by two routes


@dataclass(frozen=True, eq=False)
class LearnerRanking(Result):
    """Learners ordered by predicted error at one training size.

    Attributes
    ----------
    at : float
        The training size N.
    learners : tuple of str
        Lowest predicted error first (highest score).
    error, low, high : ndarray, shape (K,)
        Predicted error and its interval, in the unit of the fits.
    probability_best : ndarray, shape (K,)
        Chance that each is the best at N, taking the learners as independent. It goes by the whole intervals, so that
        the best prediction need not have the highest chance: a wide interval reaches further down.
    kind : str
        Of the intervals: "confidence" for power laws, "prediction" for form="auto".
    """

    at: float
    learners: tuple[str, ...]
    error: FloatArray
    low: FloatArray
    high: FloatArray
    probability_best: FloatArray
    level: float
    kind: str
    unit: Unit
    warnings: tuple[str, ...] = ()
    _places: tuple[int | None, ...] = ()

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per learner, the best prediction first."""
        columns = {"error": self.error, "low": self.low, "high": self.high, "probability_best": self.probability_best}
        return {"learner": list(self.learners), **columns}

    def sentences(self) -> str:
        """Name the one to choose, and how certain that is."""
        first, chance = self.learners[0], [format_chance(float(p)) for p in self.probability_best]
        if len(self.learners) == 1:
            return f"At n = {format_number(self.at)}, the predicted {self.unit.quantity} of {first} is {self._said(0)}."
        text = f"At n = {format_number(self.at)}, {first} is predicted to be the best of {len(self.learners)}:"
        text += f" {self._said(0)}, with a chance of {chance[0]} to be the best."
        likely, further = int(np.argmax(self.probability_best)), "up" if self.unit.name == "score" else "down"
        if likely != 0:
            text += f" {self.learners[likely]} has a higher chance, {chance[likely]}, because its interval reaches"
            text += f" further {further}: {self._said(likely)}."
        if self.probability_best[0] < 0.8:
            second = likely or int(np.argsort(-self.probability_best, kind="stable")[1])
            other = f"{self.learners[second]} has {chance[second]}: " if likely == 0 else ""
            text += f" {other}{'train' if other else 'Train'} both further before choosing."
        if len(self.learners) > 2 and (np.diff(self.probability_best) > 0.005).any():
            text += " The order is that of the predictions; chances go by the whole intervals, and wide ones reach"
            text += f" further {further}."
        return text

    def table_note(self) -> str:
        """Name the quantity, and the kind and level of the intervals."""
        where = f"{self.unit.quantity} at n = {format_number(self.at)}"
        return f"Predicted {where} ({format_level(self.level)} {self.kind} intervals)"

    def _said(self, i: int) -> str:
        """A prediction with its interval."""
        return format_interval((float(self.error[i]), float(self.low[i]), float(self.high[i])), self.unit.name)

    def best_rows(self) -> tuple[str, Sequence[int]]:
        """Return the best prediction, which is the first."""
        return self.unit.quantity, [0]

    def display_columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per learner; losses and scores by their name."""
        return {self.unit.quantity if name == "error" else name: column for name, column in self.columns().items()}

    def readable(self) -> Mapping[str, Sequence[Any]]:
        """Return one row per learner, the best prediction first."""
        table = dict(super().readable())
        table["chance of being best"] = [
            format_chance(float(p)) for p in self.probability_best[: len(table.pop("probability best"))]
        ]
        return table


def rank_learners(curves: Any, at: float | None = None, *, level: float = 0.95, **fitting: Any) -> LearnerRanking:
    """Order learners by predicted error at N, with the chance that each is best.

    Parameters
    ----------
    curves : LearningCurves, iterable of curves, Measurements or DataFrame
        In one unit; measurements are fitted first. The intervals of the curves are used as they are: confidence for
        power laws, calibrated prediction for form="auto", which is the one to choose by when N is beyond the data.
    at : float, optional
        N; by default the smallest of the largest sizes.
    level : float
        Coverage of the intervals shown.
    **fitting
        For measurements: form, unit and the like, see :func:`fit_learning_curves`.

    Examples
    --------
    >>> n = [100, 100, 200, 200, 400, 400, 800]
    >>> errors = {"plain": [.32, .30, .24, .25, .19, .18, .15], "new": [.22, .21, .18, .19, .16, .17, .15]}
    >>> rank_learners({name: (n, e) for name, e in errors.items()}, 100).learners
    ('new', 'plain')
    """
    all_curves, size, warnings = _judged(curves, at, level, "ranking", "ranked", fitting)
    names = [c.learner for c in all_curves]
    if twice := [name for i, name in enumerate(names) if name in names[:i]]:
        raise InputError(
            f"hold {twice[0]!r} twice: a ranking names each learner once.",
            argument="curves",
            remedy="Name each with fit_learning_curve(…, learner=…).",
        )
    point = np.array([size])
    # Chances come from the quantiles of each curve, which need not be normal or symmetric.
    probabilities, quantiles = _quantiles(all_curves, point)
    chance = probability_lowest(quantiles, probabilities)
    bands = [c.band(point, level=level, runs=np.inf) for c in all_curves]
    order = np.argsort([float(cost(c, point)[0]) for c in all_curves], kind="stable")
    pick = {k: np.array([b[k][0] for b in bands])[order] for k in ("error", "low", "high")}
    return LearnerRanking(
        at=size,
        learners=tuple(all_curves[i].learner for i in order),
        **pick,
        probability_best=chance[order],
        level=level,
        kind=_kind(*all_curves),
        unit=all_curves[0].unit,
        warnings=warnings,
        _places=tuple(all_curves[i]._place for i in order),
    )


def _judged(
    curves: Any, at: float | None, level: float, what: str, judged: str, fitting: Mapping[str, Any]
) -> tuple[list[Curve], float, tuple[str, ...]]:
    """Return the fitted curves, the size to judge them at, and what to beware of."""
    check_level(level)
    fitted = fitted_curves(curves, **fitting)
    chosen = check_curves(fitted)
    size = min(c.largest_n for c in chosen) if at is None else check_size(at, "at")
    failures: Mapping[str, str] = getattr(fitted, "failures", {})
    lost = [prefix(f"{name} could not be fitted and is not {judged}: ", why) for name, why in failures.items()]
    return chosen, size, (*getattr(fitted, "general_warnings", ()), *lost, *_warnings_at(chosen, size, what))


def _warnings_at(curves: Sequence[Curve], at: float, what: str, sizes_used: Sequence[float] = ()) -> tuple[str, ...]:
    """Warn where N lies outside the sizes measured, then of what matters to each curve at N or as far as it is used."""
    found: list[str] = []
    smallest, largest, place = max(c.n[0] for c in curves), min(c.largest_n for c in curves), ""
    if at > largest:
        place = f"{at / largest:.1f}".removesuffix(".0") + " times the largest size measured"
    elif at < smallest:
        place = f"below the smallest size measured ({format_number(smallest)})"
    if place:
        text = f"n = {format_number(at)} is {place}: the {what} rests on the form of the curves."
        if any(c.default_interval == "confidence" for c in curves):
            text += f" {arg('form', 'auto')} predicts better there, with intervals calibrated on real curves."
        found.append(Message(text))
    for curve, n in zip(curves, sizes_used or [at] * len(curves), strict=True):
        found += [prefix(f"{curve.learner}: ", w) for w in curve.warnings_at(n)]
    return tuple(found)


# Levels of the nested intervals from which quantiles are read; denser in the tails, where the best is decided.
_LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.998)


def _quantiles(curves: Sequence[Curve], n: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Quantiles of each curve at n, as costs, read off its nested intervals."""
    rows = []
    for curve in curves:
        # The prediction is the median, which gave better chances in simulations than the most likely value.
        ends = [curve._answer_points(n, level, curve.default_interval, np.inf) for level in _LEVELS]
        low = [float(e[1][0]) for e in reversed(ends)]
        high = [float(e[2][0]) for e in ends]
        finite = np.nan_to_num([*low, float(ends[0][0][0]), *high], posinf=1e12, neginf=-1e12)
        rows.append(np.maximum.accumulate(finite) / curve._scale.factor)
    below = [0.5 - level / 2 for level in reversed(_LEVELS)]
    above = [0.5 + level / 2 for level in _LEVELS]
    return np.array([*below, 0.5, *above]), np.array(rows)
