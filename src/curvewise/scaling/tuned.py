"""Performance as a curve of the tuning budget: the best score that a random search of k trials finds.

The expected best of k trials has an unbiased estimate from any n ≥ k: the mean over all subsets of k (a U-statistic).
Its interval cannot come from resampling the scores, because no resample exceeds the best that was seen. The ranks are
resampled instead: the true quantiles of n sorted scores are distributed as n sorted uniform numbers, whatever the
distribution of the scores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import exp1, gammaln, ndtr

from curvewise.errors import InputError, Message, arg, list_names, prefix, warn_all
from curvewise.scaling.load import Trials, load_trials
from curvewise.scaling.runs import pair_names
from curvewise.stats.correlation import spearman
from curvewise.text import format_count, format_interval, format_level
from curvewise.types.results import FloatArray, Interval, Result, as_floats, check_level

DRAWS = 2000
"""Draws of the ranks behind an interval."""
BLOCK = 2_000_000
"""Numbers in an array of draws × trials."""
CANDIDATES = 120
"""Budgets at which a crossing is first looked for."""
TREND = 0.005
"""P-value of a rise of the scores with their order below which a search is taken for adaptive."""
APART = 4.0
"""Ratio of two ranges of a hyperparameter from which spaces count as unequal."""


def expected_best(
    scores: Any,
    budget: ArrayLike | None = None,
    *,
    metric: str | None = None,
    higher_is_better: bool | None = None,
    where: Mapping[str, Any] | None = None,
    tracker: str | None = None,
    best_possible: float | None = None,
    level: float = 0.95,
    rng: int | np.random.Generator = 0,
    name: str | None = None,
) -> ExpectedBest:
    """Estimate the best score that a random search of k trials is expected to find.

    Parameters
    ----------
    scores : array_like, path, DataFrame, dict, optuna.Study or Trials
        Scores of n independent trials, in the order they were tried, or a table of them: see :func:`load_trials`.
    budget : int or list of int, optional
        Numbers k of trials; by default 1, 2, 5, 10, 20, … up to n.
    metric, higher_is_better, where, tracker
        How a table is read, as in :func:`load_trials`.
    best_possible : float, optional
        A score that cannot be exceeded, such as 1 for an accuracy: it bounds the upper limits.
    level : float
        Coverage of each interval.
    rng : int or Generator
        Seed of the interval.
    name : str, optional
        Name of the learner for sentences.

    Returns
    -------
    ExpectedBest
        Its table has the columns budget, expected, low and high. For k > n there is no unbiased estimate: it is NaN,
        with the interval that the trials allow.

    Notes
    -----
    The estimate is the mean of the best over all subsets of k trials. For the interval, the unknown quantiles of the
    sorted scores are drawn as sorted uniform numbers; between neighbours the quantile function is interpolated. The
    lower limit takes the best score seen for the best there is; the upper continues the tail as an exponential one,
    scaled by the √n best scores. In simulations (``benchmarks/scaling_tuned.py``) 95% intervals cover about 95% for
    k up to n of normal, skewed and bounded scores, 91 to 92% for k from n/2 on where the better scores have an
    exponential tail, and less where it is heavier.

    Examples
    --------
    >>> found = expected_best([0.71, 0.64, 0.80, 0.58, 0.77, 0.69, 0.74, 0.61], budget=[1, 4])
    >>> [round(float(v), 4) for v in found.expected]
    [0.6925, 0.7761]
    >>> found.at(4).low < 0.7761 < found.at(4).high
    True
    """
    check_level(level)
    trials = load_trials(
        scores, metric=metric, higher_is_better=higher_is_better, where=where, tracker=tracker, name=name
    )
    budgets = _budgets(budget, len(trials))
    values, top = _sorted_up(trials, best_possible)
    low, high = _limits(*_curves(values, budgets, top, np.random.default_rng(rng)), level)
    sign = 1.0 if trials.higher_is_better else -1.0
    ends = (low, high) if sign > 0 else (-high, -low)
    notes = [*trials.warnings, *_search_warnings(trials)]
    if max(budgets) > len(trials):
        notes.append(
            f"Budgets above {len(trials)}, the number of trials, have no unbiased estimate: expected is NaN there, "
            "and the upper limit rests on how the tail is continued."
        )
    warn_all(map(Message, notes))
    return ExpectedBest(
        name=trials.name,
        count=len(trials),
        higher_is_better=trials.higher_is_better,
        budget=tuple(budgets),
        expected=sign * _expected(values, budgets),
        low=ends[0],
        high=ends[1],
        level=level,
        metric=trials.metric,
        notes=trials.notes,
        warnings=tuple(map(Message, notes)),
    )


@dataclass(frozen=True, eq=False)
class ExpectedBest(Result):
    """Expected best score by the number of trials.

    Attributes
    ----------
    name : str
        Name of the learner.
    count : int
        Number n of trials.
    higher_is_better : bool
        Direction of the score.
    budget : tuple of int
        Numbers k of trials.
    expected, low, high : ndarray, shape (budgets,)
        Estimate, NaN for k > n, and limits.
    level : float
        Coverage of each interval.
    metric : str
        What was scored.
    notes, warnings : tuple of str
        How the input was read, and what deserves a look.
    """

    name: str
    count: int
    higher_is_better: bool
    budget: tuple[int, ...]
    expected: FloatArray
    low: FloatArray
    high: FloatArray
    level: float
    metric: str
    notes: tuple[str, ...]
    warnings: tuple[str, ...]

    def at(self, budget: int) -> Interval:
        """Return the expected best of one of the budgets."""
        if budget not in self.budget:
            problem = f"is not among the budgets {list_names(self.budget)}: ask for it in expected_best."
            raise InputError(problem, argument="budget", value=budget)
        k = self.budget.index(budget)
        return Interval(float(self.expected[k]), float(self.low[k]), float(self.high[k]), self.level)

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """Return a row for each budget: budget, expected, low and high."""
        return {"budget": list(self.budget), "expected": self.expected, "low": self.low, "high": self.high}

    def sentences(self) -> str:
        """The curve in a sentence or two."""
        every, count = self.budget, len(self.budget)
        shown = every if count <= 4 else (every[0], every[count // 2], every[-1])
        parts = [f"{format_interval(self.at(k))} with {format_count(k, 'trial')}" for k in shown]
        better = "highest" if self.higher_is_better else "lowest"
        return (
            f"Expected {better} {self.metric or 'score'} of {self.name} by random search: {', '.join(parts)} "
            f"({format_level(self.level)} intervals, from {format_count(self.count, 'trial')})."
        )

    def table_note(self) -> str:
        """Return the kind of the intervals."""
        return f"{format_level(self.level)} confidence intervals of the expected best of so many trials."


def compare_tuned(
    a: Any,
    b: Any,
    budget: ArrayLike | None = None,
    *,
    metric: str | None = None,
    higher_is_better: bool | None = None,
    tracker: str | None = None,
    names: tuple[str, str] | None = None,
    best_possible: float | None = None,
    level: float = 0.95,
    rng: int | np.random.Generator = 0,
) -> TunedComparison:
    """Compare two learners that were tuned with the same budget of random trials, at every budget.

    Parameters
    ----------
    a, b : array_like, path, DataFrame, dict, optuna.Study or Trials
        Trials of the two searches, which may differ in number: see :func:`load_trials`.
    budget : int or list of int, optional
        Numbers k of trials; by default 1, 2, 5, 10, 20, … up to the smaller search.
    metric, higher_is_better, tracker
        How tables are read, as in :func:`load_trials`.
    names : tuple of str, optional
        Names of the two for sentences.
    best_possible : float, optional
        A score that cannot be exceeded.
    level : float
        Coverage of each interval; a verdict is reached at ``1 - level``, at each budget for itself.
    rng : int or Generator
        Seed of the intervals.

    Returns
    -------
    TunedComparison
        ``crossing`` is the smallest budget at which the learner that trails with one trial leads. Budgets at which
        the difference is significant bound its interval.

    Examples
    --------
    >>> r = np.random.default_rng(0)
    >>> steady, varied = 0.80 + 0.01 * r.standard_normal(60), r.beta(4, 2, 60)
    >>> found = compare_tuned(steady, varied, budget=[1, 40], names=("steady", "varied"))
    >>> list(found.verdicts), found.crossing.estimate
    (['a better', 'b better'], 4.0)
    """
    check_level(level)
    given = [load_trials(v, metric=metric, higher_is_better=higher_is_better, tracker=tracker) for v in (a, b)]
    if given[0].higher_is_better != given[1].higher_is_better:
        raise InputError(
            f"Higher is better in one of a and b and lower in the other: pass {arg('higher_is_better')}.", argument="b"
        )
    labels = pair_names(names, given[0].name, given[1].name)
    least = min(map(len, given))
    budgets = _budgets(budget, least)
    if max(budgets) > least:
        raise InputError(
            f"{arg('budget', max(budgets))} is more than the {least} trials of the smaller search: without an unbiased "
            "estimate of both there is no comparison. Ask for less, or add trials."
        )
    pair = _Pair(given[0], given[1], best_possible, level, int(np.random.default_rng(rng).integers(2**31)))
    difference, low, high = pair.differences(budgets)
    verdicts = [
        "b better" if x > 0 else "a better" if y < 0 else "not significant" for x, y in zip(low, high, strict=True)
    ]
    crossing, times = _find_crossing(pair, least)
    notes = [
        prefix(f"{label}: ", text)
        for label, trials in zip(labels, given, strict=True)
        for text in (*trials.warnings, *_search_warnings(trials))
    ]
    notes += _space_warnings(given[0], given[1], labels)
    if times > 1:
        notes.append(f"The two estimated curves cross {times} times: the first crossing is reported.")
    warn_all(map(Message, notes))
    sign = 1.0 if given[0].higher_is_better else -1.0
    ends = (low, high) if sign > 0 else (-high, -low)
    trailing = int(pair.estimates([1])[0] > 0)  # 1 where b leads with one trial, so that a may overtake it
    return TunedComparison(
        a=labels[0],
        b=labels[1],
        crossing=crossing,
        overtakes=labels[1 - trailing],
        counts=(len(given[0]), len(given[1])),
        higher_is_better=given[0].higher_is_better,
        budget=tuple(budgets),
        expected_a=sign * _expected(pair.values[0], budgets),
        expected_b=sign * _expected(pair.values[1], budgets),
        difference=sign * difference,
        low=ends[0],
        high=ends[1],
        verdicts=tuple(verdicts),
        level=level,
        warnings=tuple(map(Message, notes)),
        _trials=(given[0], given[1]),
        _best_possible=best_possible,
    )


@dataclass(frozen=True, eq=False)
class TunedComparison(Result):
    """Two learners by the number of trials that each is tuned with.

    Attributes
    ----------
    a, b : str
        Names.
    crossing : Interval
        Smallest number of trials with which ``overtakes`` is expected to lead. Infinite where it does not with any
        number of trials that both searches have.
    overtakes : str
        The learner that trails with one trial.
    counts : tuple of int
        Numbers of trials.
    higher_is_better : bool
        Direction of the score.
    budget : tuple of int
        Numbers k of trials.
    expected_a, expected_b : ndarray, shape (budgets,)
        Expected best of each.
    difference, low, high : ndarray, shape (budgets,)
        b minus a, with its interval.
    verdicts : tuple of str
        "a better", "b better" or "not significant" at each budget.
    level : float
        Coverage of each interval.
    """

    a: str
    b: str
    crossing: Interval
    overtakes: str
    counts: tuple[int, int]
    higher_is_better: bool
    budget: tuple[int, ...]
    expected_a: FloatArray
    expected_b: FloatArray
    difference: FloatArray
    low: FloatArray
    high: FloatArray
    verdicts: tuple[str, ...]
    level: float
    warnings: tuple[str, ...]
    _trials: tuple[Trials, Trials]
    _best_possible: float | None

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """Return a row for each budget: the expected best of each, b minus a with its limits, and the verdict."""
        names = ("budget", "expected_a", "expected_b", "difference", "low", "high")
        return {name: getattr(self, name) for name in names} | {"verdict": list(self.verdicts)}

    def sentences(self) -> str:
        """The comparison in a few sentences."""
        ahead = {
            side: [k for k, v in zip(self.budget, self.verdicts, strict=True) if v == f"{side} better"] for side in "ab"
        }
        lines = [
            f"{label} is significantly better with {', '.join(map(str, budgets))} trial{'s' * (budgets != [1])}."
            for label, budgets in zip((self.a, self.b), ahead.values(), strict=True)
            if budgets
        ] or ["The difference is significant at none of these budgets."]
        behind = self.a if self.overtakes == self.b else self.b
        if np.isfinite(self.crossing.estimate):
            write = format_interval(self.crossing, write=lambda v: "∞" if np.isinf(v) else f"{v:.0f}")
            lines.append(f"{self.overtakes} overtakes {behind} from k = {write} trials on.")
        else:
            lines.append(f"{self.overtakes} does not overtake {behind} within {min(self.counts)} trials.")
        return " ".join(lines)

    def table_note(self) -> str:
        """Return the kind of the intervals."""
        return f"{self.b} minus {self.a}, with {format_level(self.level)} confidence intervals, each budget for itself."


def _budgets(budget: ArrayLike | None, count: int) -> list[int]:
    if budget is None:
        usual = [m * 10**e for e in range(7) for m in (1, 2, 5)]
        return [k for k in usual if k <= count]
    given = np.atleast_1d(as_floats(budget, "budget"))
    if given.ndim != 1 or not len(given) or not (np.isfinite(given) & (given >= 1) & (given == np.round(given))).all():
        raise InputError(f"{arg('budget', budget)} must be a whole number of trials from 1 on, or a list of them.")
    return [int(k) for k in given]


def _sorted_up(trials: Trials, best_possible: float | None) -> tuple[FloatArray, float]:
    """Return scores from the worst to the best and the best there can be, with the sign by which higher is better."""
    sign = 1.0 if trials.higher_is_better else -1.0
    values = np.sort(sign * trials.scores)
    top = np.inf if best_possible is None else sign * float(as_floats(best_possible, "best_possible"))
    if np.isnan(top):
        raise InputError("must be a number.", argument="best_possible", value=best_possible)
    if values[-1] > top:
        raise InputError(f"{arg('best_possible', best_possible)} is exceeded by a score of {sign * values[-1]:g}.")
    return np.asarray(values), top


def _expected(values: FloatArray, budgets: Sequence[int]) -> FloatArray:
    """Return the mean of the best over all subsets of k scores, which are sorted; NaN for more than there are."""
    n = len(values)
    return np.array([values[k - 1 :] @ _weights(n, k) if k <= n else np.nan for k in budgets])


def _weights(count: int, budget: int) -> FloatArray:
    """Return the probability of the k-th of n sorted scores and those above to be the best of k of them."""
    rank = np.arange(budget, count + 1)
    logs = gammaln(rank) - gammaln(budget) - gammaln(rank - budget + 1)
    return np.asarray(np.exp(logs - gammaln(count + 1) + gammaln(budget + 1) + gammaln(count - budget + 1)))


def _curves(
    values: FloatArray, budgets: Sequence[int], top: float, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Draw the expected best of k trials, shape (draws, budgets): with nothing above the best score, and with a tail.

    The best of k uniform numbers has the distribution function u^k, so that the expected best is the integral of the
    quantile function over d(u^k). Drawn are the places u of the scores; between them the quantile function is linear.
    """
    n = len(values)
    # Beyond the extremes it is exponential: the excesses over the next score have the mean s, itself uncertain.
    m = min(max(3, round(np.sqrt(n))), n - 1)
    over, under = values[-m:] - values[-m - 1], values[m] - values[:m]
    low, high = np.empty((DRAWS, len(budgets))), np.empty((DRAWS, len(budgets)))
    step = max(1, BLOCK // (n + 1))
    for first in range(0, DRAWS, step):
        rows = slice(first, min(first + step, DRAWS))
        count = rows.stop - rows.start
        gaps = np.cumsum(rng.exponential(size=(count, n + 1)), axis=1)
        log_u = np.log(gaps[:, :-1] / gaps[:, -1:])
        up, down = over.sum() / rng.gamma(m, size=count), under.sum() / rng.gamma(m, size=count)
        for j, k in enumerate(budgets):
            mass = np.exp(k * log_u)
            inner = np.diff(mass, axis=1) @ (0.5 * (values[1:] + values[:-1]))
            # ∫ s log(u₁/u) d(u^k) below the first and ∫ s log((1 − u_n)/(1 − u)) d(u^k) above the last score.
            bottom = (values[0] - down / k) * mass[:, 0]
            t = -k * log_u[:, -1]
            rise = np.where(t < 1e-6, t, exp1(t) + np.log(t) + np.euler_gamma)
            above = 1.0 - mass[:, -1]
            low[rows, j] = inner + bottom + values[-1] * above
            high[rows, j] = low[rows, j] + np.minimum(up * rise, (top - values[-1]) * above)
    return low, high


def _limits(low: FloatArray, high: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    return np.quantile(low, 0.5 - level / 2, axis=0), np.quantile(high, 0.5 + level / 2, axis=0)


class _Pair:
    """Differences of the expected best of two searches, b minus a, with higher the better."""

    def __init__(self, a: Trials, b: Trials, best_possible: float | None, level: float, seed: int) -> None:
        (first, self.top), (second, _) = (_sorted_up(trials, best_possible) for trials in (a, b))
        self.values = [first, second]
        self.level = level
        self.seed = seed

    def estimates(self, budgets: Sequence[int]) -> FloatArray:
        """Return unbiased differences, shape (budgets,)."""
        a, b = (_expected(v, budgets) for v in self.values)
        return b - a

    def differences(self, budgets: Sequence[int]) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return differences and their limits, shape (budgets,) each."""
        # The same draws whichever budgets are asked for, so that a search over budgets meets one curve.
        generators = (np.random.default_rng([self.seed, i]) for i in (0, 1))
        draws = (_curves(v, budgets, self.top, rng) for v, rng in zip(self.values, generators, strict=True))
        (low_a, high_a), (low_b, high_b) = draws
        return self.estimates(budgets), *_limits(low_b - high_a, high_b - low_a, self.level)


def _find_crossing(pair: _Pair, most: int) -> tuple[Interval, int]:
    """Return the smallest budget with which the learner that trails with one trial leads, and the number of changes."""
    every = np.arange(1, most + 1)
    estimate = pair.estimates(every.tolist())
    side = -1.0 if estimate[0] > 0 else 1.0  # of the difference once the lead has changed
    lead = side * estimate > 0
    times = int((lead[1:] != lead[:-1]).sum())
    crossing = float(every[lead.argmax()]) if lead.any() else np.inf

    def ends(budgets: NDArray[np.intp]) -> tuple[float, float]:
        """Return the first budget after those significantly behind, and the first one significantly ahead."""
        _, low, high = pair.differences(budgets.tolist())
        behind, ahead = (high < 0, low > 0) if side > 0 else (low > 0, high < 0)
        before, after = budgets[behind & (budgets < crossing)], budgets[ahead & (budgets >= crossing)]
        return float(before.max(initial=0)) + 1, float(after.min()) if len(after) else np.inf

    coarse = np.unique(np.geomspace(1, most, CANDIDATES).round().astype(np.intp))
    low, high = ends(coarse)
    # The coarse budgets skip some: look at those next to the two limits.
    wide = [np.arange(a, b + 1) for a, b in pairwise(coarse.tolist()) if a == low - 1 or b == high]
    if wide:
        low, high = ends(np.concatenate(wide))
    return Interval(crossing, low, high, pair.level), times


def _search_warnings(trials: Trials) -> list[str]:
    """Return a warning where scores improve with their order, as they do in an adaptive search."""
    n, scores = len(trials), trials.scores
    steps = np.diff(scores)
    # Scores that were sorted before say nothing about the search.
    if not trials.ordered or n < 10 or (steps >= 0).all() or (steps <= 0).all():
        return []
    rank = float(spearman(scores[None], np.arange(n, dtype=np.float64))[0])
    rank = rank if trials.higher_is_better else -rank
    if float(ndtr(-rank * np.sqrt(n - 1))) >= TREND:
        return []
    return [
        f"Scores improve along the search (rank correlation {rank:.2f}), as in an adaptive one: its trials are not "
        "independent draws, and the expected best of k of them is not what a search of k trials finds. Use trials of a "
        "random search."
    ]


def _space_warnings(a: Trials, b: Trials, labels: Sequence[str]) -> list[str]:
    """Return warnings where the two searches did not search alike."""
    if not a.settings or not b.settings:
        return []
    notes = []
    only = [[k for k in x.settings if k not in y.settings] for x, y in ((a, b), (b, a))]
    unshared = [f"{label} {list_names(names)}" for label, names in zip(labels, only, strict=True) if names]
    if unshared:
        notes.append(
            f"The searches tune different hyperparameters (only {'; only '.join(unshared)}): the same number of trials "
            "covers a larger space less densely. Say so, or tune the same ones."
        )
    for name in (k for k in a.settings if k in b.settings):
        x, y = a.settings[name], b.settings[name]
        if _unequal(x, y):
            spans = [" to ".join(f"{v:g}" for v in s) if _numeric(s) else list_names(s, 4) for s in (x, y)]
            notes.append(
                f"The searches tune {name!r} over unequal ranges: {labels[0]} {spans[0]}, {labels[1]} {spans[1]}."
            )
    return notes


def _numeric(span: tuple[Any, ...]) -> bool:
    return len(span) == 2 and all(isinstance(v, float) for v in span)


def _unequal(x: tuple[Any, ...], y: tuple[Any, ...]) -> bool:
    if not _numeric(x) or not _numeric(y):
        return set(x) != set(y)
    if min(*x, *y) > 0:  # as rates are: by factors
        return any(abs(np.log(p / q)) > np.log(APART) for p, q in zip(x, y, strict=True))
    widths = [b - a for a, b in (x, y)]
    return bool(max(widths) > APART * min(widths) or x[1] < y[0] or y[1] < x[0])
