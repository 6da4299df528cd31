"""Is one training better than another, on this test set and on the distribution."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.stats.tests import benjamini_hochberg, holm, permutation_pvalue, probability_below, sign_flip_pvalue
from curvewise.text import format_interval, format_pvalue, format_value
from curvewise.types.coercion import as_predictions
from curvewise.types.units import distinct_names
from curvewise.types.predictions import Predictions
from curvewise.types.results import Interval, Result, check_level, interval_columns
from curvewise.types.units import FloatArray, Unit
from curvewise.variance.anova import FEWEST, Estimate, Totals, few_groups, measure_totals, mostly_wrong
from curvewise.variance.difference import (
    Difference,
    align_examples,
    check_same_examples,
    check_scores,
    is_scores,
    predictions_difference,
    refuse_hits,
    score_difference,
    score_unit,
    top_of,
    unpaired_difference,
)

DRAWS = 20_000
"""Draws for the interval of the chance that a run of a beats one of b on the distribution."""


def compare_runs(
    a: Predictions | ArrayLike,
    b: Predictions | ArrayLike,
    labels: ArrayLike | None = None,
    *,
    kind: str | None = None,
    axes: Sequence[str] | None = None,
    groups: ArrayLike | None = None,
    paired: bool | None = None,
    margin: float | None = None,
    names: tuple[str, str] = ("a", "b"),
    unit: str | None = None,
    higher_is_better: bool | None = None,
    distribution_std: float | None = None,
    level: float = 0.95,
    permutations: int = 9999,
    rng: int | np.random.Generator = 0,
) -> RunComparison:
    """Compare two trainings by their runs on one test set.

    Parameters
    ----------
    a, b : Predictions or array_like
        Runs × examples of predicted labels, 0/1 errors or hits, losses or scores, on the same
        examples; or one score per run, which says less. Examples are matched by ``example_ids``
        where both have them, else by place.
    labels : array_like, shape (examples,), optional
        True classes; needed for predicted labels. In the order of the examples of a, as groups.
    kind : {"labels", "errors", "correct", "losses", "scores", "probabilities"}, optional
        What the values are. Needed unless there are labels or a is a :class:`Predictions`: a 1 may
        mean wrong or right, and a number may be better low or high. Booleans beside labels that
        are none need it as well.
    axes, groups
        As in :func:`decompose_variance`.
    paired : bool, optional
        Whether run r of a and run r of b share what is random in them (a seed, a fold). By
        default only if both name their runs, and alike.
    margin : float, optional
        The largest difference of errors that does not matter: asks for equivalence.
    names : tuple of str
        What to call them: two different names.
    unit : {"fraction", "percent", "loss", "score"}, optional
        Of scores per run: "fraction" by default. Predictions bring their own.
    higher_is_better : bool, optional
        Whether scores per run are accuracies; needed for fractions and percentages.
    distribution_std : float, optional
        With one run of a training: the standard deviation of true error between runs, where it
        is known from elsewhere; 0 if runs do not differ in truth. Without it there is no verdict.
    level : float
        Coverage of the intervals; a verdict is reached at ``1 - level``.
    permutations : int
        Arrangements drawn for ``test_set_pvalue`` where they are too many to try all.
    rng : int or Generator
        Determines what is drawn.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> hard = rng.random(2000) ** 4
    >>> a = rng.random((10, 2000)) < hard
    >>> b = rng.random((10, 2000)) < hard * 0.8
    >>> c = compare_runs(a, b, kind="errors")
    >>> c.verdict, round(c.difference.estimate, 3)
    ('b better', 0.037)
    """
    check_level(level)
    if margin is not None and not margin > 0:
        raise InputError(f"margin={margin} must be above 0, such as 0.005.")
    if distribution_std is not None and not 0 <= distribution_std < math.inf:
        raise InputError(f"distribution_std={distribution_std} must be 0 or more.")
    first, second = distinct_names(names, "names")
    names = first, second
    question = _Question(names, margin, level, permutations, np.random.default_rng(rng))
    if is_scores(a) or is_scores(b):
        if labels is not None or kind is not None or axes is not None or groups is not None:
            raise InputError(
                "a and b are one score per run, for which labels=, kind=, axes= and groups= mean"
                " nothing. For one run of each training pass arrays of one row: a[None, :]."
            )
        for values, name in ((a, "a"), (b, "b")):
            refuse_hits(values, unit, name)
        measure = score_unit(unit, higher_is_better)
        _check_margin(margin, measure.top)
        scores = check_scores(a, measure, "a"), check_scores(b, measure, "b")
        return _answer(score_difference(*scores, bool(paired)), question, measure.name)
    if unit is not None or higher_is_better is not None:
        raise InputError("unit= and higher_is_better= are for one score per run; kind= says what predictions are.")
    if isinstance(a, Predictions) and isinstance(b, Predictions):
        b = align_examples(a, b, names)  # before labels and groups, which are in the order of a
    one, two = (
        as_predictions(p, labels, kind=kind, axes=axes, groups=groups, argument=name, directed=True)
        for p, name in zip((a, b), names, strict=True)
    )
    _check_margin(margin, top_of(one.unit))
    parts = predictions_difference(one, two, paired, distribution_std, names)
    return _answer(parts, question, one.unit, one)


def _check_margin(margin: float | None, top: float) -> None:
    if margin is not None and margin >= top:
        raise InputError(
            f"margin={margin} allows any difference of errors there can be. It is in the unit of"
            " the errors: as a fraction, 0.005 is half a percentage point."
        )


@dataclass(frozen=True)
class _Question:
    names: tuple[str, str]
    margin: float | None
    level: float
    permutations: int
    rng: np.random.Generator


def _answer(parts: Difference, asked: _Question, unit: str, given: Predictions | None = None) -> RunComparison:
    level, most = asked.level, top_of(unit)
    same = _equivalence(parts.decisive, asked.margin)
    here = parts.test_set.interval(level, most)
    by_runs = _permuted(parts, asked)
    sign_here = sign_of(here) if by_runs < 1 - level else "undecided"
    verdict = _verdict(parts, same, level)
    if parts.scope == "test set" and verdict != "equivalent":
        verdict = sign_here
    notes = _warnings(parts, unit, asked.names, given)
    for text in notes:
        warnings.warn(text, CurvewiseWarning, stacklevel=3)
    return RunComparison(
        a=asked.names[0],
        b=asked.names[1],
        runs=(len(parts.a), len(parts.b)),
        examples=None if given is None else given.examples,
        paired=parts.paired,
        difference=parts.distribution.interval(level, most),
        pvalue=parts.distribution.pvalue,
        test_set_difference=here,
        test_set_pvalue=by_runs,
        probability_better=probability_below(parts.a, parts.b, level, paired=parts.paired),
        distribution_probability_better=_true_chance(parts, level, asked.rng),
        margin=asked.margin,
        equivalence_pvalue=same,
        verdict=verdict,
        test_set_verdict=sign_here,
        scope=parts.scope,
        method=parts.method,
        unit=unit,
        level=level,
        warnings=tuple(notes),
        _parts=parts,
    )


def _verdict(parts: Difference, same: float, level: float) -> str:
    """What is shown, where equivalence was asked for and where it was not."""
    if not parts.conclusive:
        return "undecided"
    return "equivalent" if same < 1 - level else sign_of(parts.decisive.interval(level))


def sign_of(interval: Interval) -> str:
    """Which is better, by an interval of the error of a minus that of b."""
    if interval.high < 0:
        return "a better"
    return "b better" if interval.low > 0 else "undecided"


def _equivalence(estimate: Estimate, margin: float | None) -> float:
    if margin is None:
        return math.nan
    return max(estimate.tail(-margin), estimate.tail(margin, above=False))


def _permuted(parts: Difference, asked: _Question) -> float:
    if min(len(parts.a), len(parts.b)) < 2:
        return parts.test_set.pvalue
    runs = len(parts.a), len(parts.b)
    fewest = 2 / (2 ** runs[0] if parts.paired else math.comb(sum(runs), runs[0]))
    if fewest >= 1 - asked.level:
        return parts.test_set.pvalue  # too few arrangements to reject by any of them
    if parts.paired:
        gaps = parts.a - parts.b
        p = sign_flip_pvalue(gaps, draws=asked.permutations, rng=asked.rng)
    else:
        p = permutation_pvalue(parts.a, parts.b, draws=asked.permutations, rng=asked.rng)
    # Dealing runs at random is too sure where numbers and spreads are unequal; and a p-value
    # should not contradict its interval.
    return p if math.isnan(parts.test_set.pvalue) else max(p, parts.test_set.pvalue)


def _true_chance(parts: Difference, level: float, generator: np.random.Generator) -> Interval:
    """P(true error of a run of a < that of b), its parts drawn from what the data leave open."""
    if parts.splits is None:
        return Interval(math.nan, 0.0, 1.0, level)
    d = parts.distribution
    spread = sum(max(0.0, s.distribution) for s in parts.splits)
    value = _chance(np.array([d.value]), np.array([spread]))[0]
    if not any(s.test_set for s in parts.splits):  # how much runs vary was not seen
        return Interval(float(value), 0.0, 1.0, level)
    gaps = d.draw(DRAWS, generator)
    spreads = np.zeros(DRAWS)
    for s in parts.splits:
        drawn = s.test_set * (s.runs - 1) / generator.chisquare(s.runs - 1, DRAWS)
        spreads += np.maximum(0.0, drawn - s.noise)
    tail = (1 - level) / 2
    low, high = np.quantile(_chance(gaps, spreads), [tail, 1 - tail])
    if np.mean(spreads == 0) > tail:  # runs may not differ at all, and then the better always wins
        low, high = (0.0 if d.value > 0 else low), (1.0 if d.value < 0 else high)
    return Interval(float(value), float(low), float(high), level)


def _chance(gaps: NDArray[Any], variances: NDArray[Any]) -> NDArray[Any]:
    with np.errstate(divide="ignore", invalid="ignore"):
        z = -gaps / np.sqrt(variances)
    chance: NDArray[Any] = ndtr(np.where(gaps == 0, 0.0, z))
    return chance


SCORES_ONLY = (
    "from scores alone only this test set can be judged: how much its examples add to the"
    " difference, and how much of the spread between runs is real, needs the predictions."
)


def few_runs(fewest: int) -> str:
    """What to say of a handful of runs."""
    return f"{fewest} runs of a training: the intervals lean on run effects being normal."


def no_spread(names: Sequence[str]) -> str:
    """What to say of trainings whose runs are all the same."""
    said = ", ".join(names[:5]) + (" …" if len(names) > 5 else "")
    return (
        f"the runs of {said} do not differ at all. If one run is given more than once, leave the"
        " copies out: the intervals count them as new runs."
    )


UNKNOWN_HERE = (
    "no variation of the error between runs is seen: what other runs would give on this test set"
    " is unknown, and so are the interval and the p-value there."
)


def _warnings(parts: Difference, unit: str, names: tuple[str, str], given: Predictions | None) -> list[str]:
    both = dict(zip(names, (parts.a, parts.b), strict=True))
    notes = []
    if still := [name for name in both if parts.identical[names.index(name)]]:
        notes.append(no_spread(still))
    if math.isnan(parts.test_set.variance):
        notes.append(UNKNOWN_HERE)
    notes += mostly_wrong(max(float(np.mean(runs)) for runs in both.values()), unit, given)
    return notes + few_groups(parts.groups) + thin_evidence(parts, unit)


def thin_evidence(parts: Difference, unit: str) -> list[str]:
    """Say what the comparison rests on where there are few runs, or none but their scores."""
    fewest = min(len(parts.a), len(parts.b))
    if parts.method == "scores":
        return [SCORES_ONLY, *([few_runs(fewest)] if fewest < FEWEST else [])]
    if parts.method == "one run":
        assumed = (
            "taken as err/2n, which holds if an ensemble of such runs is class-wise calibrated, or"
            " as what the disagreement of the two allows, if less"
            if unit == "fraction"
            else "only bounded, by how the two differ between examples"
        )
        if parts.repeats:
            assumed = "taken as that between its repeats, which other runs may exceed"
        said = (
            "a training has one run only, which is weak evidence: train more. On this test set its"
            f" variance between runs is {assumed}."
        )
        if parts.conclusive:
            return [said]
        return [
            f"{said} On the distribution its true error is taken not to vary between runs, unless"
            " distribution_std says how much it does; without that the comparison is of these"
            " networks, and no verdict on the trainings."
        ]
    if fewest < FEWEST:
        return [few_runs(fewest)]
    return []


# What a comparison of two trainings says.


@dataclass(frozen=True, eq=False)
class RunComparison(Result):
    """How training a compares with training b.

    Attributes
    ----------
    a, b : str
        Their names.
    runs : tuple of int
        Runs of a and of b.
    examples : int or None
        Size of the test set; None where only scores are known.
    paired : bool
        Whether run r of a goes with run r of b.
    difference : Interval
        Error of a minus error of b on the distribution, runs and examples both sampled. Below 0,
        a is better, whatever the unit. Limits are NaN where only scores are known.
    pvalue : float
        Of ``difference``, two-sided, by t.
    test_set_difference : Interval
        The same for this test set: only runs are sampled.
    test_set_pvalue : float
        Two-sided, by permutation of runs (by flips of signs where they are paired), and not less
        than by t; by t alone where there are too few runs to permute.
    probability_better : Interval
        The chance that a random run of a has a lower test error than a random run of b.
    distribution_probability_better : Interval
        The same for true error, for normal run effects.
    margin : float or None
        Differences up to this size do not matter.
    equivalence_pvalue : float
        Against the hypothesis that the difference is ``margin`` or more (two one-sided tests).
    verdict : {"a better", "b better", "equivalent", "undecided"}
        On the distribution, or on the test set where nothing else is known.
    test_set_verdict : {"a better", "b better", "undecided"}
        On this test set.
    scope : {"distribution", "test set"}
        What ``verdict`` is about.
    method : {"both sampled", "one run", "scores"}
        What was known.
    """

    a: str
    b: str
    runs: tuple[int, int]
    examples: int | None
    paired: bool
    difference: Interval
    pvalue: float
    test_set_difference: Interval
    test_set_pvalue: float
    probability_better: Interval
    distribution_probability_better: Interval
    margin: float | None
    equivalence_pvalue: float
    verdict: str
    test_set_verdict: str
    scope: str
    method: str
    unit: str
    level: float
    warnings: tuple[str, ...]
    _parts: Difference

    @property
    def worse(self) -> bool:
        """Whether a is shown to be worse than b by more than the margin."""
        return self._shown and self._decisive.low > (self.margin or 0.0)

    @property
    def better(self) -> bool:
        """Whether a is shown to be better than b by more than the margin."""
        return self._shown and self._decisive.high < -(self.margin or 0.0)

    @property
    def maybe_worse(self) -> bool:
        """Whether it is not excluded that a is worse than b by more than the margin."""
        excluded = self._decisive.high <= (self.margin or 0.0) or self.verdict == "equivalent"
        return not (self._parts.conclusive and excluded)

    @property
    def _shown(self) -> bool:
        permuted = self.scope == "distribution" or self.test_set_pvalue < 1 - self.level
        return self._parts.conclusive and permuted

    @property
    def _decisive(self) -> Interval:
        return self.difference if self.scope == "distribution" else self.test_set_difference

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per quantity: estimate, low, high, p-value."""
        rows = {
            "difference on the distribution": (self.difference, self.pvalue),
            "difference on this test set": (self.test_set_difference, self.test_set_pvalue),
            f"chance that {self.a} beats {self.b}, test set": (self.probability_better, math.nan),
            f"chance that {self.a} beats {self.b}, distribution": (self.distribution_probability_better, math.nan),
        }
        intervals = {name: interval for name, (interval, _) in rows.items()}
        return {**interval_columns(intervals), "p": [p for _, p in rows.values()]}

    def summary(self) -> str:
        """The verdict in a few sentences."""
        return " ".join([self._verdict(), *self._evidence(), *(f"Beware: {w}" for w in self.warnings)])

    def _verdict(self) -> str:
        if not self._parts.conclusive:
            return self._of_networks()
        text = {"equivalent": self._equal, "undecided": self._open}.get(self.verdict, self._clear)()
        only_here = self.verdict not in ("a better", "b better") and not (
            self.verdict == "equivalent" and self._better_of(self._decisive)
        )
        if self.scope == "test set" or self.test_set_verdict == "undecided" or not only_here:
            return text
        return f"{text} On this test set {_order(self, self.test_set_verdict)}, no more."

    def _clear(self) -> str:
        return f"{_order(self, self.verdict)} on the {self.scope}."

    def _open(self) -> str:
        return f"{self.a} and {self.b} cannot be told apart on the {self.scope}."

    def _equal(self) -> str:
        text = (
            f"{self.a} and {self.b} are equivalent on the {self.scope}: they differ by less than"
            f" {format_value(self.margin or 0.0, self.unit)} ({format_pvalue(self.equivalence_pvalue)})."
        )
        shown = self._better_of(self._decisive)
        return f"{text} Within that, {shown}." if shown else text

    def _better_of(self, interval: Interval) -> str:
        """Which is better by an interval, or nothing."""
        if interval.low <= 0 <= interval.high:
            return ""
        return _order(self, "a better" if interval.high < 0 else "b better")

    def _of_networks(self) -> str:
        better = self._better_of(self.difference)
        told = f"of these networks, {better}" if better else "these networks cannot be told apart"
        return f"One run does not show which training is better, {self.a} or {self.b}; {told} on the distribution."

    def _evidence(self) -> list[str]:
        unit = self.unit
        here = f"{format_interval(self.test_set_difference, unit)} on this test set"
        known = self.runs != (1, 1) and not math.isnan(self.test_set_pvalue)
        here += f" ({format_pvalue(self.test_set_pvalue)})" if known else ""
        there = (
            f"{format_interval(self.difference, unit)} on the distribution ({format_pvalue(self.pvalue)}) and "
            if self.scope == "distribution"
            else ""
        )
        what = unit if unit in ("loss", "score") else "error"
        # Errors of a minus errors of b: of scores, which are better high, the other way round.
        one, two = (self.b, self.a) if unit == "score" else (self.a, self.b)
        pairs = "Runs are paired. " if self.paired else ""
        said_so = [f"{pairs}The {what} of {one} minus that of {two} is {there}{here}."]
        chance = self.probability_better
        if min(self.runs) > 1:
            said_so.append(
                f"A random run of {self.a} beats one of {self.b} on this test set with"
                f" probability {chance.estimate:.2f} [{chance.low:.2f}, {chance.high:.2f}]."
            )
        if self.margin is not None and self.verdict != "equivalent" and self._parts.conclusive:
            said_so.append(
                f"That they differ by less than {format_value(self.margin, unit)} is not shown"
                f" ({format_pvalue(self.equivalence_pvalue)})."
            )
        return said_so


def _order(c: RunComparison, verdict: str) -> str:
    better, worse = (c.a, c.b) if verdict == "a better" else (c.b, c.a)
    return f"{better} is better than {worse}"


# Many trainings at once: which differences are left when they are looked at together.

ADJUSTMENTS = {"holm": holm, "bh": benjamini_hochberg}


@dataclass(frozen=True, eq=False)
class TrainingComparison(Result):
    """Every pair of several trainings, or each against a baseline.

    Attributes
    ----------
    names : tuple of str
        The trainings, best mean error first.
    errors : ndarray
        Their mean errors, in the order of ``names``; negative scores for unit "score".
    runs : tuple of int
        Their runs.
    pairs : tuple of tuple of str
        Which were compared: a and b.
    differences : tuple of Interval
        Error of a minus error of b. The intervals hold together: all of them cover with
        probability ``level`` or more.
    pvalues, adjusted : ndarray
        By t, before and after the adjustment for their number.
    verdicts : tuple of str
        "a better", "b better" or "undecided", by the adjusted p-values.
    scope : {"distribution", "test set"}
        What the differences are about; the test set where only scores are known.
    baseline : str or None
        Against which all were compared.
    multiplicity : {"holm", "bh"}
        The adjustment.
    """

    names: tuple[str, ...]
    errors: FloatArray
    runs: tuple[int, ...]
    pairs: tuple[tuple[str, str], ...]
    differences: tuple[Interval, ...]
    pvalues: FloatArray
    adjusted: FloatArray
    verdicts: tuple[str, ...]
    scope: str
    baseline: str | None
    multiplicity: str
    unit: str
    level: float
    warnings: tuple[str, ...]

    @property
    def contenders(self) -> tuple[str, ...]:
        """Trainings that are not shown to be worse than any other they were compared with."""
        beaten = {
            pair[verdict == "a better"]
            for pair, verdict in zip(self.pairs, self.verdicts, strict=True)
            if verdict != "undecided"
        }
        return tuple(name for name in self.names if name not in beaten)

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per pair."""
        return {
            "a": [a for a, _ in self.pairs],
            "b": [b for _, b in self.pairs],
            "difference": [d.estimate for d in self.differences],
            "low": [d.low for d in self.differences],
            "high": [d.high for d in self.differences],
            "p": self.pvalues,
            "adjusted p": self.adjusted,
            "verdict": list(self.verdicts),
        }

    def summary(self) -> str:
        """How many differences are real, and who is left."""
        found = sum(v != "undecided" for v in self.verdicts)
        best = self.contenders
        shown = ", ".join(best[:5]) + (f" and {len(best) - 5} more" if len(best) > 5 else "")
        count = f"{len(self.pairs):,} differences" if len(self.pairs) > 1 else "1 difference"
        clear = int(np.argmin(self.adjusted))
        a, b = self.pairs[clear]
        return " ".join(
            [
                f"Of {count} between {len(self.names)} trainings"
                f" {found:,} {'is' if found == 1 else 'are'} shown on the {self.scope} at"
                f" {self.level:.0%} after"
                f" {'Holm' if self.multiplicity == 'holm' else 'Benjamini and Hochberg'}.",
                f"{self.names[0]} has the best mean, {format_value(abs(self.errors[0]), self.unit)};"
                f" not shown to be worse than another: {shown}.",
                f"The clearest difference is {a} minus {b}: {format_interval(self.differences[clear], self.unit)}.",
                *(f"Beware: {w}" for w in self.warnings),
            ]
        )


def compare_trainings(
    trainings: Mapping[str, Predictions | ArrayLike],
    labels: ArrayLike | None = None,
    *,
    kind: str | None = None,
    axes: Sequence[str] | None = None,
    groups: ArrayLike | None = None,
    baseline: str | None = None,
    paired: bool | None = None,
    multiplicity: str = "holm",
    unit: str | None = None,
    higher_is_better: bool | None = None,
    distribution_std: float | None = None,
    level: float = 0.95,
) -> TrainingComparison:
    """Compare several trainings, all pairs or each with a baseline.

    Parameters
    ----------
    trainings : dict of str to Predictions or array_like
        Runs × examples of each, on one test set; or one score per run of each. Of a training with
        one run only these networks are compared: its pairs are undecided.
    labels, kind, axes, groups, paired, unit, higher_is_better, distribution_std
        As in :func:`compare_runs`.
    baseline : str, optional
        Compare each training with this one only.
    multiplicity : {"holm", "bh"}
        Keep the chance of any false finding (Holm), or the share of false ones among the findings
        (Benjamini and Hochberg).
    level : float
        The intervals hold together at this level; a verdict is reached at ``1 - level``.

    Examples
    --------
    >>> losses = {"plain": [3.28, 3.29, 3.27, 3.28, 3.28], "new": [3.21, 3.22, 3.20, 3.2, 3.21]}
    >>> c = compare_trainings(losses, unit="loss")
    >>> c.names[0], c.contenders
    ('new', ('new',))
    """
    check_level(level)
    if not isinstance(trainings, Mapping):
        raise InputError("trainings must be a dict: the name of each training and its runs.")
    named = distinct_names(list(map(str, trainings)), "trainings")
    trainings = dict(zip(named, trainings.values(), strict=True))
    baseline = None if baseline is None else str(baseline).strip()
    if len(trainings) < 2:
        raise InputError("trainings holds fewer than two trainings: there is nothing to compare.")
    if multiplicity not in ADJUSTMENTS:
        raise InputError(f"multiplicity={multiplicity!r} is not known: use 'holm' or 'bh'.")
    if baseline is not None and baseline not in trainings:
        raise InputError(f"baseline={baseline!r} is not among {', '.join(map(repr, trainings))}.")
    if single := [name for name, values in trainings.items() if np.isscalar(values)]:
        raise InputError(
            f"trainings[{single[0]!r}] is one number: each training needs a list of scores, one per"
            " run, two or more of them."
        )
    if any(map(is_scores, trainings.values())):
        for name, values in trainings.items():
            refuse_hits(values, unit, f"trainings[{name!r}]")
        measure = score_unit(unit, higher_is_better)
        read = {name: _scored(name, values, measure) for name, values in trainings.items()}
    else:
        if unit is not None or higher_is_better is not None:
            raise InputError("unit= and higher_is_better= are for one score per run; kind= says what predictions are.")
        options = {"labels": labels, "kind": kind, "axes": axes, "groups": groups}
        read = _with_groups(_read(_aligned(trainings), options))
    pairs = _pairs(list(read), baseline)
    parts = [_difference(read[a], read[b], paired, distribution_std, (a, b)) for a, b in pairs]
    most = top_of(next(iter(read.values())).unit)
    pvalues = np.array([p.decisive.pvalue for p in parts])
    adjusted = ADJUSTMENTS[multiplicity](pvalues)
    means = {name: float(t.errors.mean()) for name, t in read.items()}
    order = sorted(means, key=means.__getitem__)
    return TrainingComparison(
        names=tuple(order),
        errors=np.array([means[name] for name in order]),
        runs=tuple(len(read[name].errors) for name in order),
        pairs=tuple(pairs),
        differences=tuple(p.decisive.interval(1 - (1 - level) / len(pairs), most) for p in parts),
        pvalues=pvalues,
        adjusted=adjusted,
        verdicts=tuple(map(_verdict_many, parts, adjusted < 1 - level)),
        scope=parts[0].scope,
        baseline=baseline,
        multiplicity=multiplicity,
        unit=read[order[0]].unit,
        level=level,
        warnings=_warnings_many(parts, read),
    )


@dataclass(frozen=True, eq=False)
class _Training:
    """A training as it was given: errors of its runs, and its predictions where they are known."""

    errors: FloatArray
    unit: str
    predictions: Predictions | None = None
    totals: Totals | None = None


def _scored(name: str, values: Any, unit: Unit) -> _Training:
    if not is_scores(values):
        raise InputError("trainings mixes predictions and scores: pass the same for all.")
    return _Training(check_scores(values, unit, f"trainings[{name!r}]"), unit.name)


def _aligned(trainings: Mapping[str, Any]) -> dict[str, Any]:
    """Examples of all trainings in the order of the first that names them."""
    named = {n: p for n, p in trainings.items() if isinstance(p, Predictions)}
    first = next((n for n, p in named.items() if p.example_ids is not None), None)
    if first is None:
        return dict(trainings)
    return {n: align_examples(named[first], p, (first, n)) if n in named else p for n, p in trainings.items()}


def _read(trainings: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, _Training]:
    read = {}
    for name, values in trainings.items():
        given = as_predictions(values, argument=f"trainings[{name!r}]", directed=True, **options)
        read[name] = _training(given)
    return read


def _training(given: Predictions) -> _Training:
    if given.runs == 1:
        return _Training(given.errors().mean(axis=1), given.unit, given)
    totals = measure_totals(given)
    return _Training(totals.run, given.unit, given, totals)


def _with_groups(read: dict[str, _Training]) -> dict[str, _Training]:
    """Groups that one training brings hold for all: the examples are the same."""
    known = (t.predictions.groups for t in read.values() if t.predictions is not None)
    groups = next((g for g in known if g is not None), None)
    if groups is None:
        return read
    found = {}
    for name, t in read.items():
        if t.predictions is None or t.predictions.groups is not None:
            found[name] = t
        elif t.predictions.examples == len(groups):
            found[name] = _training(replace(t.predictions, groups=groups))
        else:
            found[name] = t  # of another test set, which will be refused
    return found


def _pairs(names: list[str], baseline: str | None) -> list[tuple[str, str]]:
    if baseline is None:
        return list(combinations(names, 2))
    return [(name, baseline) for name in names if name != baseline]


def _difference(
    a: _Training, b: _Training, paired: bool | None, distribution_std: float | None, names: tuple[str, str]
) -> Difference:
    if a.predictions is None or b.predictions is None:
        return score_difference(a.errors, b.errors, bool(paired))
    one, two = a.predictions, b.predictions
    unnamed = one.run_ids is None or two.run_ids is None
    if a.totals is not None and b.totals is not None:
        alike = (a.totals.groups is None) == (b.totals.groups is None)
        if (paired is False or (paired is None and unnamed)) and alike:
            check_same_examples(one, two, names)
            return unpaired_difference(a.totals, b.totals)  # which need not be read again
    return predictions_difference(one, two, paired, distribution_std, names)


def _verdict_many(parts: Difference, shown: bool) -> str:
    if not (shown and parts.conclusive):
        return "undecided"
    return "a better" if parts.decisive.value < 0 else "b better"


def _warnings_many(parts: list[Difference], read: Mapping[str, _Training]) -> tuple[str, ...]:
    notes = []
    still = [name for name, t in read.items() if len(t.errors) > 1 and np.ptp(t.errors) == 0]
    if still:
        notes.append(no_spread(still))
    worst = max(read.values(), key=lambda t: float(t.errors.mean()))
    notes += mostly_wrong(float(worst.errors.mean()), worst.unit, worst.predictions)
    notes += few_groups(parts[0].groups)
    if parts[0].method == "scores":
        notes.append(SCORES_ONLY)
    unit = next(iter(read.values())).unit
    single = [name for name, t in read.items() if len(t.errors) == 1]
    if single:
        said = ", ".join(single[:5]) + (" …" if len(single) > 5 else "")
        of_one = next(p for p in parts if p.method == "one run")
        notes += [f"{said}: {text}" for text in thin_evidence(of_one, unit)]
    several = [len(t.errors) for t in read.values() if len(t.errors) > 1]
    if several and min(several) < FEWEST:
        notes.append(few_runs(min(several)))
    return tuple(notes)
