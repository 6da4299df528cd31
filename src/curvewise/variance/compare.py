"""Is one training better than another, on this test set and on the distribution."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.stats import permutation_pvalue, probability_below, sign_flip_pvalue
from curvewise.types import Interval, Predictions, as_predictions, check_level
from curvewise.types.coercion import distinct_names
from curvewise.variance.comparison import RunComparison
from curvewise.variance.difference import (
    Difference,
    align_examples,
    check_scores,
    is_scores,
    predictions_difference,
    refuse_hits,
    score_difference,
    score_unit,
    top_of,
)
from curvewise.variance.estimate import Estimate
from curvewise.variance.tails import FEWEST
from curvewise.variance.wording import few_groups, mostly_wrong

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
        raise InputError(
            "unit= and higher_is_better= are for one score per run; kind= says what predictions"
            " are."
        )
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


def _answer(
    parts: Difference, asked: _Question, unit: str, given: Predictions | None = None
) -> RunComparison:
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


def _warnings(
    parts: Difference, unit: str, names: tuple[str, str], given: Predictions | None
) -> list[str]:
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
