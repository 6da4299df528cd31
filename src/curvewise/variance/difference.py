"""Difference of two trainings, with its variance on this test set and on new data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import InputError, arg
from curvewise.stats.intervals import KNOWN, SampledMean, both_sampled
from curvewise.types.predictions import Predictions, asked_of
from curvewise.types.results import FloatArray, Unit, distinct_names, plain
from curvewise.variance.anova import (
    PredictionFormat,
    Totals,
    VarianceSplit,
    check_keywords,
    group_codes,
    measure_totals,
    read_predictions,
    sampled_variance,
    split_variance,
)

ROUNDING = 1e-12
"""Scores that differ by less than this part of the largest are equal but for rounding."""


def measure_difference(
    a: Predictions | FloatArray,
    b: Predictions | FloatArray,
    paired: bool,
    distribution_std: float | None = None,
    names: tuple[str, str] = ("a", "b"),
) -> Difference:
    """Measure the difference by the data at hand: scores, paired runs, unpaired runs, one run.

    Examples are in one order, and groups known to both, as :func:`read_trainings` leaves them.
    """
    if not (isinstance(a, Predictions) and isinstance(b, Predictions)):
        return score_difference(np.asarray(a), np.asarray(b), paired)
    check_same_examples(a, b, names)
    b, by = pair_runs(a, b, names) if paired else (b, "")
    # One run shows no variance between runs: a weaker comparison, which says so.
    if min(a.runs, b.runs) == 1:
        return single_run_difference(a, b, distribution_std)
    if by:
        return replace(paired_difference(a, b), paired_by=by)
    return unpaired_difference(measure_totals(a), measure_totals(b))


@dataclass(frozen=True, eq=False)
class Difference:
    """Error of a minus error of b.

    Attributes
    ----------
    test_set : SampledMean
        The examples taken as given: only the runs are sampled.
    distribution : SampledMean
        Runs and examples both sampled, and never surer than ``test_set``.
    a, b : ndarray
        Error of each run on the test set.
    totals : tuple of Totals, optional
        Totals of a and of b, where both have several runs with predictions.
    paired_by : str
        What pairs run r of a with run r of b: "seeds", "names", "place", or nothing.
    method : {"both sampled", "one run", "scores"}
        Data that the comparison rests on.
    conclusive : bool
        True if it tells trainings apart, and not only these networks.
    repeats : bool
        True if a training with one run has repeats of it, which show how much that run varies.
    groups : float, optional
        Groups of equal size that would weigh as much as the groups of examples.
    """

    test_set: SampledMean
    distribution: SampledMean
    a: FloatArray
    b: FloatArray
    totals: tuple[Totals, Totals] | None = None
    paired_by: str = ""
    method: str = "both sampled"
    conclusive: bool = True
    repeats: bool = False
    groups: float | None = None

    @property
    def splits(self) -> list[VarianceSplit]:
        """The variance decompositions of a and b, where :attr:`totals` are known."""
        return list(map(split_variance, self.totals or ()))

    @property
    def paired(self) -> bool:
        """True if run r of a goes with run r of b."""
        return bool(self.paired_by)

    @property
    def scope(self) -> str:
        """Target of the judgement: the distribution, or this test set if only scores are known."""
        return "test set" if self.method == "scores" else "distribution"

    @property
    def decisive(self) -> SampledMean:
        """The estimate for :attr:`scope`."""
        return self.test_set if self.method == "scores" else self.distribution


def align_examples(a: Predictions, b: Predictions, names: tuple[str, str] = ("a", "b")) -> Predictions:
    """Bring the examples of b into the order of those of a, where both name them."""
    if a.example_ids is None or b.example_ids is None or a.examples != b.examples:
        return b
    if np.array_equal(a.example_ids, b.example_ids):
        return b
    for ids, name in zip((a.example_ids, b.example_ids), names, strict=True):
        if len(set(ids.tolist())) < len(ids):
            raise InputError(
                f"example_ids of {name} names an example twice, and {names[0]} and {names[1]} list"
                " their examples in different orders: give each example a name of its own."
            )
    # By name: files of two trainings may list one test set in different orders.
    order = places_of(a.example_ids, b.example_ids)
    if missing := order.count(-1):
        raise InputError(
            f"{names[0]} and {names[1]} have different example_ids: {missing:,} examples of {names[0]} are not in"
            f" {names[1]}, such as {a.example_ids.tolist()[order.index(-1)]!r}. Compare them on the same test set."
        )
    return b.subset(examples=order)


def check_same_examples(a: Predictions, b: Predictions, names: tuple[str, str] = ("a", "b")) -> None:
    """Raise unless a and b are of one test set and kind."""
    one_name, two_name = names
    if a.examples != b.examples:
        raise InputError(
            f"{one_name} has {a.examples:,} examples and {two_name} has {b.examples:,}: compare"
            " them on the same test set."
        )
    if a.unit != b.unit:
        raise InputError(f"{one_name} is of kind {a.kind!r} and {two_name} of kind {b.kind!r}: pass the same.")
    words = {"true_classes": "labels", "example_ids": "example_ids", "groups": "groups"}
    for name, word in words.items():
        one, two = getattr(a, name), getattr(b, name)
        if one is not None and two is not None and not np.array_equal(one, two):
            raise InputError(f"{one_name} and {two_name} have different {word}: they are not of one test set.")


def pair_runs(
    a: Predictions, b: Predictions, names: tuple[str, str] = ("a", "b"), *, strict: bool = True
) -> tuple[Predictions, str]:
    """Bring the runs of b into the order of their partners in a, and say what makes them partners.

    By the seeds and folds that a store records, else by the names of the runs where both have some, else by place.
    Runs that have no partner by these are refused; they go by place where that is not ``strict``.
    """
    for field, by in (("seeds", "seeds"), ("run_ids", "names")):
        one, two = getattr(a, field), getattr(b, field)
        if one is None or two is None:
            continue
        if np.array_equal(one, two):
            return b, by
        order = places_of(one, two)
        if a.runs == b.runs and sorted(order) == list(range(b.runs)):
            return b.subset(runs=order), by
        if not strict:
            break
        lone = next((str(k) for k, i in zip(one.tolist(), order, strict=True) if i < 0), "")
        what = f"run {lone!r} of {names[0]} has no partner in {names[1]}" if lone else f"their {by} are not one to one"
        raise InputError(f"{names[0]} and {names[1]} do not have the same runs: {what}.", argument="paired", value=True)
    return b, "place"


def places_of(names: NDArray[Any], there: NDArray[Any]) -> list[int]:
    """Return the place of each name among others; −1 where it is not among them."""
    place = {name: i for i, name in enumerate(there.tolist())}
    return [place.get(name, -1) for name in names.tolist()]


def single_run_difference(a: Predictions, b: Predictions, distribution_std: float | None) -> Difference:
    """Measure the difference with one run of a or of b: the rest is taken from calibration, or on trust.

    A training with several runs brings its own variance between runs. Of one run with repeats, its
    part of the test-set variance is that between repeats; of one without, err/2n, but not more
    than what the examples' differences leave room for.
    """
    one, two = (np.sum([errors.sum(axis=0) for _, errors in p.error_blocks()], axis=0) / p.runs for p in (a, b))
    value = float(one.mean() - two.mean())
    codes = group_codes(a.groups)
    by_example, degrees = sampled_variance(one - two, codes, a.unit == "fraction")
    known = (distribution_std or 0.0) ** 2
    here: list[tuple[float, float]] = []
    real: list[tuple[float, float]] = []
    for p in (a, b):
        if p.runs > 1:
            split = split_variance(measure_totals(p))
            here.append((split.test_set / p.runs, p.runs - 1))
            real.append((max(0.0, split.distribution) / p.runs, p.runs - 1))
        elif p.repeats > 1:
            _, errors = next(p.error_blocks(repeats=True))  # the one run is one block
            between = float(errors.var(axis=2, ddof=1).sum()) / p.repeats / p.examples**2
            here.append((between + known, p.examples * (p.repeats - 1)))
            real.append((known, KNOWN))
        else:
            # Theorem 3: err/2n if calibrated; never more than the examples' own differences leave room for.
            assumed = float(p.errors().mean()) / (2 * p.examples) if p.binary else math.inf
            here.append((min(assumed, by_example) + known, degrees))
            real.append((known, KNOWN))
    return Difference(
        _between_runs(value, here),
        SampledMean(value, by_example + sum(v for v, _ in real), (*real, (by_example, degrees))),
        a.errors().mean(axis=1),
        b.errors().mean(axis=1),
        method="one run",
        conclusive=distribution_std is not None,
        repeats=any(p.runs == 1 and p.repeats > 1 for p in (a, b)),
        groups=None if codes is None else 1 / float(((np.bincount(codes) / len(codes)) ** 2).sum()),
    )


def are_copies(given: Predictions) -> bool:
    """Return whether all runs are right and wrong on the same examples."""
    blocks = given.error_blocks()
    _, first = next(blocks)
    return bool((first == first[0]).all()) and all(bool((e == first[0]).all()) for _, e in blocks)


def paired_difference(a: Predictions, b: Predictions) -> Difference:
    """Measure the difference of paired runs: the decomposition of their differences."""
    if a.runs != b.runs:
        raise InputError(f"a has {a.runs} runs and b has {b.runs}.", argument="paired", value=True)
    # The difference of two errors is −1, 0 or 1, so that it is decomposed like a loss.
    totals = measure_totals(Predictions(_Differences(a, b), "losses", groups=a.groups))
    split = split_variance(totals)
    value, runs = float(totals.run.mean()), totals.runs
    by_run = split.test_set / runs
    by_example = sampled_variance(totals.example, totals.groups, a.unit == "fraction")
    both = measure_totals(a), measure_totals(b)
    here = _between_runs(value, [(by_run, runs - 1)])
    return Difference(
        here,
        replace(both_sampled(value, here.parts, by_example, split.noise / runs), within=here),
        both[0].run,
        both[1].run,
        both,
        paired_by="place",
        groups=None if a.groups is None else split.units,
    )


class _Differences:
    """Errors of a minus errors of b, run by run, read a slice at a time."""

    dtype = np.dtype(np.float64)

    def __init__(self, a: Predictions, b: Predictions) -> None:
        self.a, self.b = a, b
        self.shape = a.shape

    def __getitem__(self, rows: slice) -> FloatArray:
        one = self.a.errors_of(rows).astype(np.float64)
        return one - self.b.errors_of(rows)


def unpaired_difference(a: Totals, b: Totals) -> Difference:
    """Measure the difference of independent runs on the same examples."""
    splits = split_variance(a), split_variance(b)
    value = float(a.run.mean() - b.run.mean())
    runs = [(s.test_set / s.runs, s.runs - 1) for s in splits]
    groups = a.groups if a.groups is not None else b.groups
    by_example = sampled_variance(a.example - b.example, groups, a.unit == "fraction")
    # Variation with the run in each cell is in both parts: count it once.
    twice = sum(s.noise / s.runs for s in splits)
    here = _between_runs(value, runs)
    return Difference(
        here,
        replace(both_sampled(value, runs, by_example, twice), within=here),
        a.run,
        b.run,
        (a, b),
        groups=None if groups is None else splits[0].units,
    )


def score_difference(a: FloatArray, b: FloatArray, paired: bool) -> Difference:
    """Measure the difference of one score per run: the variance from examples is not known."""
    if paired:
        if len(a) != len(b):
            raise InputError(f"a has {len(a)} runs and b has {len(b)}.", argument="paired", value=True)
        value, samples = float((a - b).mean()), [a - b]
    else:
        value, samples = float(a.mean() - b.mean()), [a, b]
    # Values that differ by rounding only do not vary: 0.3 − 0.1 and 0.4 − 0.2 are no two different differences.
    rounding = ROUNDING * max(float(np.abs(x).max()) for x in (a, b))
    parts = [(float(x.var(ddof=1)) / len(x) if np.ptp(x) > rounding else 0.0, len(x) - 1) for x in samples]
    unknown = SampledMean(value, math.nan)
    by = "place" if paired else ""
    return Difference(_between_runs(value, parts), unknown, a, b, paired_by=by, method="scores")


def _between_runs(value: float, parts: Sequence[tuple[float, float]]) -> SampledMean:
    """Take the examples as given: the variance is that between runs, and unknown without any spread."""
    # Runs without any spread say nothing about other runs: unknown, not 0.
    variance = sum(v for v, _ in parts)
    return SampledMean(value, variance if variance > 0 else math.nan, tuple(parts))


class RunFormat(PredictionFormat, total=False):
    """Keywords that say what runs mean: predictions, or one score per run, as in :func:`compare_runs`."""

    unit: str | None
    higher_is_better: bool | None


def two_names(names: Sequence[Any]) -> tuple[str, str]:
    """Return two different names of trainings, or raise."""
    if len(names) != 2:
        raise InputError("must be two names, of a and of b.", argument="names", value=plain(names))
    first, second = distinct_names(list(map(str, names)), "names")
    return first, second


def read_pair(
    a: Any, b: Any, labels: ArrayLike | PathLike[str] | None, names: Sequence[Any], reading: RunFormat
) -> tuple[Any, Any, str, tuple[str, str]]:
    """Read two trainings: one error per run of each, or the predictions of each; with their unit and names."""
    first, second = two_names(names)
    (one, two), unit = read_trainings({first: a, second: b}, ("a", "b"), labels, reading)
    return one, two, unit, (first, second)


def read_trainings(
    given: Mapping[str, Any], arguments: Sequence[str], labels: ArrayLike | PathLike[str] | None, reading: RunFormat
) -> tuple[list[Any], str]:
    """Read several trainings by name: one error per run of each, or the predictions of each; with their unit.

    Examples of predictions come in the order of the first training that names them, with groups that any of them knows.
    """
    scores = read_scores(dict(zip(arguments, given.values(), strict=True)), reading, labels)
    if scores is not None:
        return scores
    options = array_format(reading)
    opened = dict(given)
    for name, p in given.items():
        if isinstance(p, str | PathLike):
            opened[name] = read_predictions(p, labels, argument=name, directed=True, **options)
    # Before labels and groups are given to arrays: these are in the order of the first.
    named = {name: p for name, p in opened.items() if isinstance(p, Predictions)}
    first = next((name for name, p in named.items() if p.example_ids is not None), None)
    if first is not None:
        opened |= {name: align_examples(named[first], p, (first, name)) for name, p in named.items()}
    # What is said of an array beside Predictions is not about these, which know their axes and kind.
    plain = all(isinstance(p, Predictions) for p in given.values())
    read = [
        read_predictions(p, labels, argument=argument, directed=True, **(options if plain else asked_of(p, options)))
        for argument, p in zip(arguments, opened.values(), strict=True)
    ]
    return share_groups(read), read[0].unit


def array_format(reading: RunFormat) -> PredictionFormat:
    """Return the options that concern predictions; the others concern scores."""
    return {"kind": reading.get("kind"), "axes": reading.get("axes"), "groups": reading.get("groups")}


def read_scores(
    given: Mapping[str, Any], reading: RunFormat, labels: ArrayLike | PathLike[str] | None = None
) -> tuple[list[FloatArray], str] | None:
    """Read one score per run of each training, or return None for predictions.

    ``given`` maps the name of each argument to its values. Errors, losses and negative scores are returned: lower is
    better throughout.
    """
    check_keywords(reading, RunFormat)
    unit, higher_is_better = reading.get("unit"), reading.get("higher_is_better")
    if not any(map(is_vector, given.values())):
        if unit is not None or higher_is_better is not None:
            raise InputError(
                f"{arg('unit')} and {arg('higher_is_better')} are for one score per run; {arg('kind')} says what"
                " predictions are."
            )
        return None
    if labels is not None or any(value is not None for value in array_format(reading).values()):
        raise InputError(
            f"{' and '.join(list(given)[:2])} are one score per run, for which {arg('labels')}, {arg('kind')},"
            f" {arg('axes')} and {arg('groups')} mean nothing. For one run of each training pass arrays of one row:"
            " a[None, :]."
        )
    for argument, values in given.items():
        # Before the unit is asked for: flags in the place of scores are the likelier mistake.
        array = np.asarray(values) if is_vector(values) else np.zeros(0)
        flags = array.dtype == bool
        if array.dtype.kind in "iuf" and unit in (None, "fraction"):
            flags = set(np.unique(array).tolist()) == {0, 1}
        if flags:  # the right and wrong answers of one run, in the place of one score per run
            raise InputError(
                f"{argument} holds {len(array):,} values that are 0 or 1, and is read as one score per run. If these"
                f" are the answers of one run to {len(array):,} examples, pass an array of one row, a[None, :], and"
                f" {arg('kind', 'correct')} or {arg('kind', 'errors')}.",
                argument=argument,
            )
    name = unit or "fraction"
    if higher_is_better is None and name in ("fraction", "percent"):
        raise InputError(
            "one score per run may be an error or an accuracy.",
            argument="higher_is_better",
            remedy=f"Pass {arg('higher_is_better', False)} for errors, {arg('higher_is_better', True)} for accuracies,"
            f" or {arg('unit', 'loss')}.",
        )
    measure = Unit(name, name == "score" if higher_is_better is None else higher_is_better)
    scores = []
    for argument, values in given.items():
        if not is_vector(values):
            raise InputError(
                f"{argument} is not one score per run, and another is: pass the same for all.", argument=argument
            )
        if len(values) < 2:
            raise InputError(
                f"{argument} holds {len(values)} score(s): the spread between runs needs two or more.",
                argument=argument,
            )
        errors = measure.errors(values, argument)
        scores.append(-errors if name == "score" else errors)
    return scores, name


def is_vector(values: Any) -> bool:
    """Return whether values have one dimension, as one score per run has."""
    try:
        return not isinstance(values, Predictions) and np.ndim(values) == 1
    except ValueError:  # rows of unequal lengths, which are refused later
        return False


def share_groups(given: Sequence[Any]) -> list[Any]:
    """Give groups that one of several predictions brings along to all of as many examples without."""
    known: dict[int, Any] = {}
    for p in given:
        groups = p.groups if isinstance(p, Predictions) else p._totals.groups
        if groups is not None:
            known.setdefault(len(groups), groups)
    return [
        replace(p, groups=known.get(p.examples)) if isinstance(p, Predictions) and p.groups is None else p
        for p in given
    ]


def top_of(unit: str) -> float:
    """Return the largest possible difference."""
    return Unit(unit, unit == "score").top
