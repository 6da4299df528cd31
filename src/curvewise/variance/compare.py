"""Comparison of trainings by their runs: on this test set, and on new data from the same distribution."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from os import PathLike
from pathlib import PurePath
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from curvewise.errors import InputError, Message, arg, prefix, warn_all
from curvewise.stats.tests import (
    EXACT_UP_TO,
    benjamini_hochberg,
    holm,
    permutation_pvalue,
    probability_below,
    sign_flip_pvalue,
)
from curvewise.text import (
    SMALL_PVALUE,
    Cell,
    format_interval,
    format_level,
    format_pvalue,
    format_target,
    format_value,
    name_better,
)
from curvewise.types.predictions import Predictions
from curvewise.types.results import (
    FloatArray,
    Interval,
    Result,
    as_generator,
    as_number,
    check_level,
    check_whole,
    distinct_names,
    interval_columns,
    interval_lists,
)
from curvewise.variance.anova import FEWEST, QUANTITIES, DisplayUnit, few_groups, measure_totals, mostly_wrong
from curvewise.variance.difference import (
    Difference,
    RunFormat,
    are_copies,
    check_same_examples,
    measure_difference,
    read_pair,
    read_trainings,
    top_of,
    unpaired_difference,
)

SCORES_ONLY = (
    "from scores alone only this test set can be judged: how much its examples add to the difference, and how much of"
    " the spread between runs is real, needs the predictions."
)
FEW_RUNS = "{} runs of a training: the intervals assume normal run effects (too few runs to check)."
ADJUSTMENTS = {"holm": holm, "bh": benjamini_hochberg}
TOO_FEW = "too few runs to say"
DRAWS = 20_000
"""Draws for the interval of the chance that a run of a beats one of b on new data."""
FEWEST_PERMUTATIONS = 19
"""With fewer arrangements drawn no p-value is below 0.05."""
SENTENCES = 3
"""Sentences of the summary of a comparison."""


def compare_runs(
    a: Predictions | ArrayLike | PathLike[str],
    b: Predictions | ArrayLike | PathLike[str],
    labels: ArrayLike | PathLike[str] | None = None,
    *,
    paired: bool = False,
    margin: float | None = None,
    names: tuple[str, str] | None = None,
    distribution_std: float | None = None,
    level: float = 0.95,
    permutations: int = 9999,
    rng: int | np.random.Generator = 0,
    **reading: Unpack[RunFormat],
) -> RunComparison:
    """Compare two trainings by their runs on one test set.

    Parameters
    ----------
    a, b : Predictions or array_like
        Runs × examples of predicted labels, 0/1 errors or hits, losses or scores, on the same
        examples, or the path of a file that :func:`load_predictions` reads; or one score per run,
        which says less. Examples are matched by ``example_ids``
        where both have them, else by place.
    labels : array_like, shape (examples,), or path, optional
        True classes; needed for predicted labels. In the order of the examples of a, as groups.
    kind : {"labels", "errors", "correct", "losses", "scores", "probabilities"}, optional
        Kind of the values. Needed unless there are labels or a is a :class:`Predictions`: a 1 may
        mean wrong or right, and a number may be better low or high. Booleans beside labels that
        are none need it as well.
    axes, groups
        As in :func:`decompose_variance`.
    paired : bool
        True if runs of a and of b come in pairs that share their randomness, such as a fold. Partners are found by the
        seeds and folds of a store, else by ``run_ids`` where both have some, else by place. Equal names, such as seeds
        0 to 4 of two architectures, are no reason to pair: these runs have nothing in common.
    margin : float, optional
        The largest difference of errors that does not matter: asks for equivalence.
    names : tuple of str, optional
        Names of the trainings: two different ones. By default those of the files, the learners of
        predictions from a store, or "a" and "b".
    unit : {"fraction", "percent", "loss", "score"}, optional
        Unit of scores per run: "fraction" by default. Predictions bring their own.
    higher_is_better : bool, optional
        True if scores per run are accuracies; needed for fractions and percentages.
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
    if margin is not None and not as_number(margin) > 0:
        raise InputError("must be a number above 0, such as 0.005.", argument="margin", value=margin)
    if distribution_std is not None and not 0 <= distribution_std < math.inf:
        raise InputError("must be 0 or more.", argument="distribution_std", value=distribution_std)
    permutations = check_whole(permutations, "permutations", FEWEST_PERMUTATIONS)
    one, two, unit, names = read_pair(a, b, labels, _known_names(a, b) if names is None else names, reading)
    given, generator = one if isinstance(one, Predictions) else None, as_generator(rng)
    parts, most = measure_difference(one, two, paired, distribution_std, names), top_of(unit)
    same = math.nan
    if margin is not None:
        if margin >= most:
            remedy = "It is in the unit of the errors: as a fraction, 0.005 is half a percentage point."
            raise InputError(
                "allows any possible difference of errors.", argument="margin", value=margin, remedy=remedy
            )
        # Two one-sided tests (TOST): equivalent if both that it is below −margin and above margin are rejected.
        same = max(parts.decisive.tail(-margin), parts.decisive.tail(margin, above=False))
    by_runs = _permuted(parts, level, permutations, generator)
    parts = _no_surer_than(parts, by_runs, level)
    here = parts.test_set.interval(level, most)
    sign_here = _sign(here) if by_runs < 1 - level else "undecided"
    if not parts.conclusive:
        verdict = "undecided"
    elif same < 1 - level:
        verdict = "equivalent"
    else:
        verdict = sign_here if parts.scope == "test set" else _sign(parts.decisive.interval(level))
    notes = _no_spread({names[0]: (parts.a, one), names[1]: (parts.b, two)})
    if math.isnan(parts.test_set.variance):
        problem = "the error does not vary between runs: the results of other runs on this test set are unknown"
        notes.append(f"{problem}, and so are the interval and the p-value for it.")
    largest = max(float(np.mean(runs)) for runs in (parts.a, parts.b))
    if margin is not None and unit == "fraction" and margin >= largest:
        of = f"the error of {format_value(largest, unit)}: half a percentage point is {arg('margin', 0.005)}"
        notes.append(f"the margin of {format_target(margin, unit)} is as large as {of}.")
    notes += mostly_wrong(largest, unit, given)
    notes += few_groups(parts.groups) + _thin_evidence(parts, unit)
    if given is not None:
        notes += _shared_subsets(dict(zip(names, (given, two), strict=True)))
    warn_all(notes)
    return RunComparison(
        a=names[0],
        b=names[1],
        runs=(len(parts.a), len(parts.b)),
        examples=None if given is None else given.examples,
        paired=parts.paired,
        difference=parts.distribution.interval(level, most),
        pvalue=parts.distribution.pvalue,
        test_set_difference=here,
        test_set_pvalue=by_runs,
        probability_better=probability_below(parts.a, parts.b, level, paired=parts.paired),
        distribution_probability_better=_true_chance(parts, level, generator),
        margin=margin,
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


@dataclass(frozen=True, eq=False)
class RunComparison(Result):
    """Comparison of training a with training b.

    Attributes
    ----------
    a, b : str
        Their names.
    runs : tuple of int
        Runs of a and of b.
    examples : int or None
        Size of the test set; None where only scores are known.
    paired : bool
        True if run r of a goes with run r of b.
    difference : Interval
        Error of a minus error of b on new data, runs and examples both sampled. Below 0,
        a is better, whatever the unit: of scores it is the score of b minus that of a. Texts,
        tables and pictures show the score of a minus that of b. Limits are NaN where only scores
        are known. With several runs each it is never narrower than ``test_set_difference``.
    pvalue : float
        P-value of ``difference``, two-sided, by t.
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
        On new data, or on the test set where nothing else is known.
    test_set_verdict : {"a better", "b better", "undecided"}
        On this test set.
    scope : {"distribution", "test set"}
        Target of ``verdict``.
    method : {"both sampled", "one run", "scores"}
        Data that the comparison rests on.
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
        """True if a is shown to be worse than b by more than the margin."""
        return self._shown and self._decisive.low > (self.margin or 0.0)

    @property
    def better(self) -> bool:
        """True if a is shown to be better than b by more than the margin."""
        return self._shown and self._decisive.high < -(self.margin or 0.0)

    @property
    def maybe_worse(self) -> bool:
        """True if it is not excluded that a is worse than b by more than the margin."""
        excluded = self._decisive.high <= (self.margin or 0.0) or self.verdict == "equivalent"
        return not (self._parts.conclusive and excluded)

    @property
    def _shown(self) -> bool:
        return self._parts.conclusive and (self.scope == "distribution" or self.test_set_pvalue < 1 - self.level)

    @property
    def _decisive(self) -> Interval:
        return self.difference if self.scope == "distribution" else self.test_set_difference

    def _headline(self) -> str:
        difference = DisplayUnit(self.unit).interval(self.difference)
        return f"{self.a!r} minus {self.b!r}: difference={difference}, verdict={self.verdict!r}"

    def to_dict(self) -> dict[str, Any]:
        """Add ``direction``, the meaning of the sign of differences, which for scores is not that in texts."""
        return super().to_dict() | {"direction": DisplayUnit(self.unit).direction}

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per quantity: estimate, low, high, p-value. Differences as in :attr:`difference`."""
        rows = {
            "difference": self.difference,
            "test_set_difference": self.test_set_difference,
            "probability_better": self.probability_better,
            "distribution_probability": self.distribution_probability_better,
        }
        return {**interval_columns(rows), "pvalue": [self.pvalue, self.test_set_pvalue, math.nan, math.nan]}

    def display_columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per quantity that is known; differences of scores are those of the scores themselves."""
        table = DisplayUnit(self.unit).columns(self.columns(), rows=("difference", "test_set_difference"))
        known = [i for i, estimate in enumerate(table["estimate"]) if not math.isnan(estimate)]
        return {name: [column[i] for i in known] for name, column in table.items()}

    row_names = QUANTITIES

    def table_note(self) -> str:
        """Name what is compared, and the level of the intervals."""
        return f"{self.a} minus {self.b} ({format_level(self.level)} intervals)"

    def readable(self) -> Mapping[str, Sequence[Any]]:
        """Return one row per quantity with its interval; a chance that may be anything is not shown as a number."""
        table = dict(super().readable())
        shown = self.display_columns()
        rows = zip(shown["quantity"], shown["low"], shown["high"], table["estimate"], strict=True)
        table["estimate"] = [
            Cell(TOO_FEW) if "probability" in name and _is_void(Interval(math.nan, low, high)) else cell
            for name, low, high, cell in rows
        ]
        return table

    def sentences(self) -> str:
        """The verdict in a few sentences."""
        verdict = self._verdict()
        return " ".join([*verdict, *self._evidence()[: SENTENCES - len(verdict)]])

    def _verdict(self) -> list[str]:
        a, b, shown = self.a, self.b, self._order(_sign(self._decisive))
        where = {"distribution": "on new data from the same distribution", "test set": "on this test set"}[self.scope]
        if not self._parts.conclusive:
            better = self._order(_sign(self.difference))
            found = f"of these two networks, {better} on new data" if better else "these two networks do not differ"
            found += "" if better else " significantly on new data"
            return [f"One run does not show which training is better, {a} or {b}; {found}."]
        if self.verdict in ("a better", "b better"):
            return [f"{self._order(self.verdict)} {where}."]
        if self.verdict == "equivalent":
            margin, p = format_target(self.margin or 0.0, self.unit), format_pvalue(self.equivalence_pvalue)
            text = f"{a} and {b} are equivalent {where}: they differ by less than {margin} ({p})."
            if shown:
                return [f"{text} Within that margin, {shown}."]
        else:
            text = f"{a} and {b} are not significantly different {where}."
        if self.scope == "test set" or self.test_set_verdict == "undecided":
            return [text]
        better = a if self.test_set_verdict == "a better" else b
        return [text, f"The advantage of {better} is significant on this test set only."]

    def _order(self, verdict: str) -> str:
        """Say which is better, or nothing."""
        better, worse = (self.a, self.b) if verdict == "a better" else (self.b, self.a)
        return "" if verdict == "undecided" else f"{better} is significantly better than {worse}"

    def _evidence(self) -> list[str]:
        unit, display = self.unit, DisplayUnit(self.unit)
        new, seen = (format_interval(display.interval(d), unit) for d in (self.difference, self.test_set_difference))
        here = f"{seen} on this test set"
        known = self.runs != (1, 1) and not math.isnan(self.test_set_pvalue)
        # The p-value on new data is by t; say why this one is above it, if it is.
        above = self.test_set_pvalue > self.pvalue and self.test_set_pvalue >= SMALL_PVALUE
        by = self._floor() or (" by permutation of the runs" if above else "")
        here += f" ({format_pvalue(self.test_set_pvalue)}{by})" if known else ""
        there = f"{new} on new data ({format_pvalue(self.pvalue)}) and "
        there = there if self.scope == "distribution" else ""
        pairs = f"Runs are paired by {self._parts.paired_by}, as asked. " if self.paired else ""
        text = [f"{pairs}The {display.word} of {self.a} minus that of {self.b} is {there}{here}."]
        if self.margin is not None and self.verdict != "equivalent" and self._parts.conclusive:
            margin, p = format_target(self.margin, unit), format_pvalue(self.equivalence_pvalue)
            text.append(f"That they differ by less than {margin} is not shown ({p}).")
        if min(self.runs) > 1:
            text += self._chances()
        return text

    def _chances(self) -> list[str]:
        """Say how often a run of a beats one of b; of an interval from 0 to 1, that nothing is known."""
        # Two methods, of which the one with the wider claim may have the narrower interval: each says its own.
        cases = [(self.probability_better, "on this test set, whatever the distribution of runs")]
        if self.scope == "distribution":
            cases.append((self.distribution_probability_better, "on new data if runs are normally distributed"))
        said = [f"{format_interval(p)} {where}" for p, where in cases if not _is_void(p)]
        pair = f"a random run of {self.a} beats one of {self.b}"
        text = f"A{pair[1:]} with probability {', and '.join(said)}" if said else ""
        if unknown := [where.partition(",")[0].partition(" if")[0] for p, where in cases if _is_void(p)]:
            text += f"; there are {TOO_FEW}" if said else f"There are {TOO_FEW} how often {pair}"
            text += f" {' or '.join(unknown)}"
        return [f"{text}."]

    def _floor(self) -> str:
        """Say that no smaller p-value is possible on this test set, if that is so."""
        one, two = self.runs
        if min(one, two) < 2:
            return ""
        arrangements = 2**one if self.paired else math.comb(one + two, one)
        # The observed arrangement, and its mirror image where there is one.
        smallest = (2 if self.paired or one == two else 1) / arrangements
        if arrangements > EXACT_UP_TO or not math.isclose(self.test_set_pvalue, smallest, rel_tol=1e-6):
            return ""
        if smallest < SMALL_PVALUE:  # which is not written out
            return ""
        return f", the smallest possible with {f'{one} pairs' if self.paired else f'{one} + {two} runs'}"


def _is_void(chance: Interval) -> bool:
    """Return True for the interval of a chance that reads as everything from 0 to 1."""
    return chance.low < 0.005 and chance.high > 0.995


def _sign(interval: Interval) -> str:
    """Return the better one by an interval of the error of a minus that of b."""
    if interval.high < 0:
        return "a better"
    return "b better" if interval.low > 0 else "undecided"


def _permuted(parts: Difference, level: float, draws: int, rng: np.random.Generator) -> float:
    """Return the p-value on this test set by permutation of runs, and not less than by t."""
    runs = len(parts.a), len(parts.b)
    fewest = 2 / (2 ** runs[0] if parts.paired else math.comb(sum(runs), runs[0]))
    if min(runs) < 2 or fewest >= 1 - level:  # too few arrangements to reject by any of them
        return parts.test_set.pvalue
    if parts.paired:
        p = sign_flip_pvalue(parts.a - parts.b, draws=draws, rng=rng)
    else:
        p = permutation_pvalue(parts.a, parts.b, draws=draws, rng=rng)
    # Permutation is anticonservative if numbers and spreads are unequal; and a p-value should not contradict
    # its interval.
    return p if math.isnan(parts.test_set.pvalue) else max(p, parts.test_set.pvalue)


def _no_surer_than(parts: Difference, pvalue: float, level: float) -> Difference:
    """Widen intervals by t that leave out 0, where permutation of the runs does not reject it.

    With five runs each no permutation has p < 0.016, so that an interval of 99% beside it must hold 0. The standard
    error becomes the one with which t has the p-value of the permutation; new data are never surer than this test set.
    """
    here = parts.test_set
    if not here.pvalue < 1 - level <= pvalue:
        return parts
    # A p-value of 1, as among tied runs at a low level, would take an infinite standard error.
    matched = min(pvalue, 1 - level / 2)
    more = (here.value / (math.sqrt(here.variance) * here.quantile(1 - matched / 2))) ** 2
    wide = replace(here, variance=more * here.variance, parts=tuple((more * v, df) for v, df in here.parts))
    return replace(parts, test_set=wide, distribution=replace(parts.distribution, within=wide))


def _true_chance(parts: Difference, level: float, generator: np.random.Generator) -> Interval:
    """Return P(true error of a run of a < that of b), its parts drawn from the uncertainty that the data leave."""
    if parts.totals is None:
        return Interval(math.nan, 0.0, 1.0, level)
    d = parts.distribution
    spread = sum(max(0.0, s.distribution) for s in parts.splits)
    value = _chance(np.array([d.value]), np.array([spread]))[0]
    if not any(s.test_set for s in parts.splits):  # how much runs vary was not seen
        return Interval(float(value), 0.0, 1.0, level)
    # A generalised interval: the difference and both variances are drawn from their own sampling distributions.
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


def _known_names(a: Any, b: Any) -> tuple[str, str]:
    """Return the names that two trainings bring along, or "a" and "b" where these do not tell them apart."""
    one, two = (
        p.name if isinstance(p, Predictions) else PurePath(p).stem if isinstance(p, str | PathLike) else ""
        for p in (a, b)
    )
    return (one, two) if one and two and one != two else ("a", "b")


def _no_spread(trainings: Mapping[str, tuple[FloatArray, Any]]) -> list[str]:
    """Warn of trainings whose runs are all the same, by the error of each run and by predictions if there are some."""
    alike = [name for name, (errors, _) in trainings.items() if len(errors) > 1 and np.ptp(errors) == 0]
    given = {name: runs for name, (_, runs) in trainings.items() if isinstance(runs, Predictions)}
    names = [name for name in alike if name not in given or are_copies(given[name])]
    remedy = "If one run is given more than once, leave the copies out: the intervals count them as new runs."
    return [f"the runs of {_some(names)} do not differ at all. {remedy}"] if names else []


def _shared_subsets(trainings: Mapping[str, Predictions | None]) -> list[str]:
    """Warn where runs of a store were trained on fewer subsets than there are runs, but not all on one."""
    found = {}
    for name, p in trainings.items():
        if p is None or p.seeds is None:
            continue
        subsets = [m[1] for seeds in p.seeds.tolist() if (m := re.search(r"(?:^|, )fold=([^,]*)", seeds))]
        if 1 < len(set(subsets)) < len(subsets) == p.runs:
            found[name] = f"the {p.runs} runs of {name} on {len(set(subsets))}"
    if not found:
        return []
    text = f"there are fewer training subsets than runs ({' and '.join(found.values())}): runs on one subset are not"
    text += " independent of each other, and intervals that take them so are too narrow. Compare those of one subset"
    return [Message(f"{text} ({arg('where', {'fold': 0})}), or learning curves, in which a subset counts as one run.")]


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (" …" if len(names) > 5 else "")


def _thin_evidence(parts: Difference, unit: str) -> list[str]:
    """Warn of a comparison that rests on few runs, or on nothing but their scores."""
    if parts.method != "one run":
        fewest = min(len(parts.a), len(parts.b))
        few = [FEW_RUNS.format(fewest)] if fewest < FEWEST else []
        return [SCORES_ONLY, *few] if parts.method == "scores" else few
    assumed = "only bounded, by how the two differ between examples"
    if parts.repeats:
        assumed = "taken as that between its repeats, which other runs may exceed"
    elif unit == "fraction":
        assumed = "taken as err/2n, which holds if an ensemble of such runs is class-wise calibrated, or as what the"
        assumed += " disagreement of the two allows, if less"
    text = "a training has one run only, which is weak evidence: train more. On this test set its variance between"
    text += f" runs is {assumed}."
    if not parts.conclusive:
        text += (
            f" On new data its true error is assumed not to vary between runs, unless {arg('distribution_std')}"
            " says how much it does; without that the comparison is of these networks, and no verdict on the trainings."
        )
    return [Message(text)]


def compare_trainings(
    trainings: Mapping[str, Predictions | ArrayLike | PathLike[str]],
    labels: ArrayLike | PathLike[str] | None = None,
    *,
    baseline: str | None = None,
    paired: bool = False,
    multiplicity: str = "holm",
    distribution_std: float | None = None,
    level: float = 0.95,
    **reading: Unpack[RunFormat],
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
        raise InputError("must be a dict: the name of each training and its runs.", argument="trainings")
    named = distinct_names(list(map(str, trainings)), "trainings")
    trainings = dict(zip(named, trainings.values(), strict=True))
    baseline = None if baseline is None else str(baseline).strip()
    if len(trainings) < 2:
        raise InputError("holds fewer than two trainings: there is nothing to compare.", argument="trainings")
    if multiplicity not in ADJUSTMENTS:
        raise InputError("is not known: use 'holm' or 'bh'.", argument="multiplicity", value=multiplicity)
    if baseline is not None and baseline not in trainings:
        raise InputError(f"is not among {', '.join(map(repr, trainings))}.", argument="baseline", value=baseline)
    if lone := [k for k, values in trainings.items() if np.isscalar(values) and not isinstance(values, str)]:
        raise InputError(
            f"trainings[{lone[0]!r}] is one number: each training needs a list of scores, one per"
            " run, two or more of them."
        )
    given, unit = read_trainings(trainings, [f"trainings[{name!r}]" for name in trainings], labels, reading)
    by_name = dict(zip(trainings, given, strict=True))
    # Every training is read once, however many pairs it is in.
    totals = {name: measure_totals(p) for name, p in by_name.items() if isinstance(p, Predictions) and p.runs > 1}
    single = {name: p for name, p in by_name.items() if isinstance(p, Predictions) and p.runs == 1}
    errors = by_name | {name: p.errors().mean(axis=1) for name, p in single.items()}  # scores are errors already
    errors |= {name: total.run for name, total in totals.items()}
    pairs = [pair for pair in combinations(by_name, 2) if baseline is None]
    pairs += [(name, baseline) for name in by_name if baseline is not None and name != baseline]
    parts = []
    for a, b in pairs:
        if a in totals and b in totals and not paired:  # no need to read again
            check_same_examples(by_name[a], by_name[b], (a, b))
            parts.append(unpaired_difference(totals[a], totals[b]))
        else:
            parts.append(measure_difference(by_name[a], by_name[b], paired, distribution_std, (a, b)))
    pvalues = np.array([p.decisive.pvalue for p in parts])
    # Verdicts go by the adjusted p-values, not by the intervals, which are wider (Bonferroni).
    adjusted = ADJUSTMENTS[multiplicity](pvalues)
    signs = ["a better" if p.decisive.value < 0 else "b better" for p in parts]
    shown = [p.conclusive and q < 1 - level for p, q in zip(parts, adjusted, strict=True)]
    means = {name: float(runs.mean()) for name, runs in errors.items()}
    order = sorted(means, key=means.__getitem__)
    # Each interval at the level that Bonferroni leaves to one of so many: together they hold at ``level``.
    each, most = 1 - (1 - level) / len(pairs), top_of(unit)
    return TrainingComparison(
        names=tuple(order),
        errors=np.array([means[name] for name in order]),
        runs=tuple(len(errors[name]) for name in order),
        pairs=tuple(pairs),
        differences=tuple(p.decisive.interval(each, most) for p in parts),
        pvalues=pvalues,
        adjusted=adjusted,
        verdicts=tuple(sign if seen else "undecided" for sign, seen in zip(signs, shown, strict=True)),
        scope=parts[0].scope,
        baseline=baseline,
        multiplicity=multiplicity,
        unit=unit,
        level=level,
        warnings=_many_warnings(parts, errors, by_name, unit),
    )


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
        The compared pairs: a and b.
    differences : tuple of Interval
        Error of a minus error of b; of scores, the score of b minus that of a. The intervals hold
        together: all of them cover with probability ``level`` or more.
    pvalues, adjusted : ndarray
        By t, before and after the adjustment for their number.
    verdicts : tuple of str
        "a better", "b better" or "undecided", by the adjusted p-values.
    scope : {"distribution", "test set"}
        Target of the differences; the test set if only scores are known.
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
        judged = zip(self.pairs, self.verdicts, strict=True)
        beaten = {pair[verdict == "a better"] for pair, verdict in judged if verdict != "undecided"}
        return tuple(name for name in self.names if name not in beaten)

    def _headline(self) -> str:
        return f"{len(self.names)} trainings, {len(self.pairs)} pairs, best={self.names[0]!r}, scope={self.scope!r}"

    def to_dict(self) -> dict[str, Any]:
        """Add ``direction``, the meaning of the sign of differences, which for scores is not that in texts."""
        return super().to_dict() | {"direction": DisplayUnit(self.unit).direction}

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per pair. Differences as in :attr:`differences`."""
        return {
            "a": [a for a, _ in self.pairs],
            "b": [b for _, b in self.pairs],
            **interval_lists("difference", self.differences),
            "pvalue": self.pvalues,
            "adjusted_pvalue": self.adjusted,
            "verdict": list(self.verdicts),
        }

    def sentences(self) -> str:
        """Say how many differences are real, and which trainings remain."""
        found = sum(v != "undecided" for v in self.verdicts)
        best = [name for name in self.contenders if name != self.baseline]
        shown = ", ".join(best[:5] or ["none"]) + (f" and {len(best) - 5} more" if len(best) > 5 else "")
        count = f"{len(self.pairs):,} differences are" if len(self.pairs) > 1 else "1 difference is"
        where = "on new data" if self.scope == "distribution" else "on this test set"
        best_mean = float(DisplayUnit(self.unit).signed(self.errors[0]))
        # With a baseline the others were not compared with each other.
        rival = "any other" if self.baseline is None else self.baseline
        return (
            f"{found:,} of {count} significant {where} at {1 - self.level:.2g} after the correction of"
            f" {'Holm' if self.multiplicity == 'holm' else 'Benjamini and Hochberg'}. {self.names[0]} has the best"
            f" mean, {format_value(best_mean, self.unit)}. Not significantly worse than {rival}: {shown}."
        )

    def display_columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per pair; differences of scores are those of the scores themselves."""
        return DisplayUnit(self.unit).columns(self.columns(), ("difference", "low", "high"))

    def readable(self) -> Mapping[str, Sequence[Any]]:
        """Return one row per pair, the verdict with the name of the better training."""
        return name_better(super().readable())


def _many_warnings(
    parts: list[Difference], errors: Mapping[str, FloatArray], given: Mapping[str, Any], unit: str
) -> tuple[str, ...]:
    known = {name: p if isinstance(p, Predictions) else None for name, p in given.items()}
    notes = _no_spread({name: (runs, known[name]) for name, runs in errors.items()})
    worst = max(errors, key=lambda name: float(errors[name].mean()))
    notes += mostly_wrong(float(errors[worst].mean()), unit, known[worst])
    notes += few_groups(parts[0].groups) + _shared_subsets(known)
    if parts[0].method == "scores":
        notes.append(SCORES_ONLY)
    if single := [name for name, runs in errors.items() if len(runs) == 1]:
        of_one = next(p for p in parts if p.method == "one run")
        notes += [prefix(f"{_some(single)}: ", text) for text in _thin_evidence(of_one, unit)]
    several = [len(runs) for runs in errors.values() if len(runs) > 1]
    if several and min(several) < FEWEST:
        notes.append(FEW_RUNS.format(min(several)))
    return tuple(notes)
