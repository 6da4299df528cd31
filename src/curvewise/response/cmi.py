"""Conditional mutual information: what a measure says about the gap beyond the hyperparameters.

:func:`cmi_score` is the number, :func:`measure_cmi` the number with its interval and its null distribution. Two
computations exist: ours (``"corrected"``), and that of the PGDL competition's program (``"pgdl"``), flaws included, so
that published scores can be compared.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations, permutations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

from curvewise.errors import CurvewiseWarning, InputError, arg
from curvewise.response.cells import (
    Codes,
    GapOrder,
    PairCells,
    VariedHyperparameters,
    information,
    pair_cells,
    shuffled_gaps,
    value_codes,
)
from curvewise.response.load import as_columns
from curvewise.text import format_count, format_number, format_pvalue
from curvewise.types.results import FloatArray, Interval, Result, as_floats, check_level

MODES = ("corrected", "pgdl")
# Pairs of models times versions of the corpus in memory at once: about 4 MB of single precision.
HELD = 2**19
# The mean of 99 draws has a tenth of the spread of one, which is small beside the jackknife's error.
CHANCE_DRAWS = 99
# Models below which a jackknife over models says nothing.
FEWEST = 4
# The PGDL program adds this to probabilities before taking logarithms.
TINY = 1e-12
# Pairs of models times measures in memory at once in the PGDL computation.
LARGEST = 2**23
_UNDIRECTED = np.zeros(1, dtype=np.bool_)


def cmi_score(
    measure: ArrayLike,
    gap: ArrayLike,
    hyperparameters: Mapping[str, Any],
    mode: str = "corrected",
    *,
    orientation: int | None = None,
    given: int = 2,
) -> float:
    """Conditional mutual information of a measure and the generalization gap, from 0 to 1.

    The question is which of two models has the larger gap. The score is the share of this information that the measure
    provides when the values of some hyperparameters are known (Jiang et al. 2020). Two hyperparameters are held fixed
    at a time; the score is the smallest over all such sets, so that a measure that only mirrors one of them scores low.

    Parameters
    ----------
    measure, gap : array_like, shape (models,)
        A number for each model. Only their order matters.
    hyperparameters : dict of str to array_like
        Columns with a value for each model, of any kind. There may be none.
    mode : {"corrected", "pgdl"}
        ``"pgdl"`` gives what the program of the PGDL competition (2020) gives, without its factor of 100; a set whose
        value is not a number is skipped. ``"corrected"`` drops pairs of a model with itself and pairs with tied gaps;
        a tied measure gives no information.
    orientation : {1, -1}, optional
        1 if more of the measure should mean a larger gap, -1 if a smaller one. If given, information in the other
        direction counts as negative, and the score goes from -1 to 1. Otherwise either direction is as good. In
        ``"pgdl"``, -1 negates the measure.
    given : int
        Number of hyperparameters held fixed at a time, in ``"corrected"``.

    Returns
    -------
    float
        NaN where nothing remains to be explained, for example because all gaps are equal.

    Raises
    ------
    InputError
        If lengths differ, values are missing, or there are fewer than two models.

    See Also
    --------
    measure_cmi : The same with every set, interval and null distribution.

    Examples
    --------
    >>> depth, width = [1, 1, 1, 1, 2, 2, 2, 2], [1, 1, 2, 2, 1, 1, 2, 2]
    >>> gap = [0.10, 0.12, 0.14, 0.11, 0.30, 0.31, 0.28, 0.29]
    >>> cmi_score(gap, gap, {"depth": depth, "width": width})
    1.0
    >>> cmi_score(gap, gap, {"depth": depth, "width": width}, orientation=-1)
    -1.0
    """
    values, gaps, columns = _check(measure, gap, hyperparameters, mode, orientation)
    # As a matrix of one measure: all computations take many measures at once.
    oriented = values[None] * (orientation or 1)
    if mode == "pgdl":
        return float(lowest_pgdl(pgdl_scores(oriented, gaps, columns), 1)[0])
    varied = VariedHyperparameters.of(columns)
    conditioning = ConditioningSets.choose(gaps, varied.codes, given)
    _warn([*varied.alarms(), *conditioning.alarms()])
    directed = np.array([orientation is not None])
    values_of_sets = (
        information(s, oriented, directed, GapOrder.of(s, gaps[:, None]))[0, 0] for s in conditioning.sets
    )
    return float(min(values_of_sets, default=math.nan))


@dataclass(frozen=True, eq=False)
class ConditionalInformation(Result):
    """Information of a measure about the gap given each set of hyperparameters.

    Attributes
    ----------
    value : Interval
        The score with its interval, which is for the value that a very large corpus with these hyperparameters would
        give. NaN for what is not known.
    null_mean : float
        Mean score when the part of the gap that hyperparameters do not explain is permuted among the models.
    pvalue : float
        Share of permutations with a score as high.
    null : str
        The effects of the hyperparameters that the null distribution keeps.
    sets : tuple of tuple of str
        The sets of hyperparameters that were held fixed; in mode ``"pgdl"`` in both orders.
    values : ndarray
        The information given each set; NaN where a set is skipped.
    cells, empty : ndarray of int
        Cells of each set, and how many of them hold no pair.
    models : int
    mode : str
    orientation : int, optional
        As declared.
    """

    value: Interval
    null_mean: float
    pvalue: float
    null: str
    sets: tuple[tuple[str, ...], ...]
    values: FloatArray
    cells: NDArray[np.int64]
    empty: NDArray[np.int64]
    models: int
    mode: str
    orientation: int | None
    warnings: tuple[str, ...] = ()

    @property
    def score(self) -> float:
        """The smallest value over the sets."""
        return self.value.estimate

    @property
    def skipped(self) -> tuple[tuple[str, ...], ...]:
        """The sets without a value."""
        return tuple(s for s, v in zip(self.sets, self.values, strict=True) if math.isnan(v))

    def columns(self) -> dict[str, Any]:
        """Return a row for each set."""
        return {
            "given": [" & ".join(s) or "nothing" for s in self.sets],
            "information": self.values,
            "cells": self.cells,
            "empty": self.empty,
        }

    def sentences(self) -> str:
        """Describe the result in a few sentences."""
        text = f"CMI {self.value} over {self.models} models"
        if self.sets and not np.isnan(self.values).all():
            least = self.sets[int(np.nanargmin(self.values))]
            text += f", the smallest of {len(self.sets)} sets, given {' and '.join(least) or '-'}"
        if not math.isnan(self.pvalue):
            text += (
                f". With the gap dealt anew beyond the {self.null} of the hyperparameters it is "
                f"{format_number(self.null_mean)} on average, and as high with {format_pvalue(self.pvalue)}"
            )
        return text + "."


def measure_cmi(
    measure: ArrayLike,
    gap: ArrayLike,
    hyperparameters: Mapping[str, Any],
    mode: str = "corrected",
    *,
    orientation: int | None = None,
    given: int = 2,
    permutations: int = 999,
    level: float = 0.95,
    rng: int | np.random.Generator = 0,
) -> ConditionalInformation:
    """Score a measure as :func:`cmi_score` does, with interval, null distribution and the value of every set.

    Parameters
    ----------
    measure, gap, hyperparameters, mode, orientation, given
        As of :func:`cmi_score`.
    permutations : int
        Draws of the null distribution, which tests whether the measure says anything beyond all the hyperparameters
        together: the residuals of a least-squares fit of the gap by them are permuted. 0 for none.
    level : float
        Coverage of the interval.
    rng : int or Generator
        Decides the draws.

    Returns
    -------
    ConditionalInformation
        Without interval and null distribution in mode ``"pgdl"``.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> depth, width = np.repeat([1, 2], 12), np.tile([1, 2, 3], 8)
    >>> gap = depth + rng.normal(size=24)
    >>> measure = gap + rng.normal(size=24)
    >>> found = measure_cmi(measure, gap, {"depth": depth, "width": width}, orientation=1)
    >>> print(found.value)
    0.26 [-0.11, 0.63]
    """
    values, gaps, columns = _check(measure, gap, hyperparameters, mode, orientation)
    check_level(level)
    oriented = values[None] * (orientation or 1)
    if mode == "pgdl":
        return _measure_pgdl(oriented, gaps, columns, orientation, level)
    varied = VariedHyperparameters.of(columns)
    conditioning = ConditioningSets.choose(gaps, varied.codes, given)
    generator = np.random.default_rng(rng)
    shuffled, null = shuffled_gaps(gaps, varied.codes, permutations, generator)
    scores = InformationScores.of(conditioning, oriented, np.array([orientation is not None]), shuffled, generator)
    alarms = [*varied.alarms(), *conditioning.alarms()]
    _warn(alarms)
    sets = [*conditioning.sets, *conditioning.skipped]
    return ConditionalInformation(
        value=scores.interval(0, level),
        null_mean=scores.null_mean(0),
        pvalue=scores.pvalue(0),
        null=null,
        sets=tuple(s.names for s in sets),
        values=np.append(scores.values[:, 0], [math.nan] * len(conditioning.skipped)),
        cells=np.array([s.possible for s in sets], dtype=np.int64),
        empty=np.array([s.empty for s in sets], dtype=np.int64),
        models=len(gaps),
        mode=mode,
        orientation=orientation,
        warnings=(*alarms, *varied.notes(), *conditioning.notes()),
    )


def _check(
    measure: ArrayLike, gap: ArrayLike, hyperparameters: Mapping[str, Any], mode: str, orientation: int | None
) -> tuple[FloatArray, FloatArray, dict[str, NDArray[Any]]]:
    if mode not in MODES:
        raise InputError(f"use one of {', '.join(map(repr, MODES))}.", argument="mode", value=mode)
    if orientation not in (None, 1, -1) or isinstance(orientation, bool):
        raise InputError("use 1 (more means a larger gap), -1 or None.", argument="orientation", value=orientation)
    values, gaps = as_floats(measure, "measure"), as_floats(gap, "gap")
    if values.ndim != 1 or values.shape != gaps.shape:
        raise InputError(f"measure has shape {values.shape} and gap {gaps.shape}: give a number for each model.")
    for name, array in (("measure", values), ("gap", gaps)):
        if not np.isfinite(array).all():
            lost = f"holds {int((~np.isfinite(array)).sum())} value(s) that are NaN or infinite: "
            raise InputError(f"{lost}leave those models out of all columns, and say so.", argument=name)
    if len(values) < 2:
        raise InputError(f"has {len(values)} value(s): it takes two models to compare.", argument="measure")
    columns = as_columns(hyperparameters, len(values))
    if mode == "pgdl" and len(columns) < 2:
        raise InputError(
            f"{arg('mode', 'pgdl')} holds two hyperparameters at a time, and there are {len(columns)}: add a constant "
            f"one, as the competition did, or use {arg('mode', 'corrected')}."
        )
    return values, gaps, columns


def _warn(notes: Sequence[str]) -> None:
    # Level 3 is the caller of the public function that calls this.
    for text in notes:
        warnings.warn(text, CurvewiseWarning, stacklevel=3)


@dataclass(frozen=True, eq=False)
class ConditioningSets:
    """The sets of hyperparameters that are held fixed; they do not depend on the measures.

    Attributes
    ----------
    gap : ndarray, shape (models,)
    sets : list of PairCells
        Sets within which gaps still differ.
    skipped : list of PairCells
        Sets that determine the gap's sign in every cell.
    wanted : int
        Number of hyperparameters to hold fixed at a time.
    """

    gap: FloatArray
    sets: list[PairCells]
    skipped: list[PairCells]
    wanted: int

    @classmethod
    def choose(cls, gap: FloatArray, codes: dict[str, Codes], given: int) -> ConditioningSets:
        """Sort pairs into cells for each set of ``given`` hyperparameters.

        Where no such set leaves any entropy (every cell has a single pair, say), smaller sets are taken.
        """
        if not isinstance(given, int) or isinstance(given, bool) or given < 0:
            raise InputError("give a number of hyperparameters, such as 2.", argument="given", value=given)
        skipped: list[PairCells] = []
        wanted = min(given, len(codes))
        for size in range(wanted, -1, -1):
            # The gap as a measure of itself has information 1, or NaN where a set leaves no entropy.
            useful: list[PairCells] = []
            for names in combinations(codes, size):
                cells = pair_cells({k: codes[k] for k in names}, len(gap))
                own = information(cells, gap[None], _UNDIRECTED, GapOrder.of(cells, gap[:, None]))
                (useful if np.isfinite(own).all() else skipped).append(cells)
            if useful:
                return cls(gap, useful, skipped, wanted)
        return cls(gap, [], skipped, wanted)

    def notes(self) -> list[str]:
        """Return remarks that need no action."""
        empty, cells = sum(s.empty for s in self.sets), sum(s.possible for s in self.sets)
        notes = []
        if self.sets and len(self.sets[0].names) == self.wanted and self.skipped:
            notes.append(f"{len(self.skipped)} set(s) of hyperparameters determine the sign of every gap.")
        if empty:
            notes.append(f"{empty} of {cells} cells hold no pair of models and are left out.")
        return notes

    def alarms(self) -> list[str]:
        """Return warnings that change what the score means."""
        if not self.sets:
            return ["All gaps are equal: there is nothing to predict."]
        size = len(self.sets[0].names)
        if size == self.wanted:
            return []
        return [
            f"With {format_count(self.wanted, 'hyperparameter')} held at a time no cell has pairs whose gaps differ in "
            f"sign: {size or 'none'} is held instead."
        ]


@dataclass(frozen=True, eq=False)
class InformationScores:
    """Scores of several measures on one corpus: value, chance and spread.

    Attributes
    ----------
    values : ndarray, shape (sets, measures)
        The information of each measure given each set.
    left_out : ndarray, shape (measures, models), optional
        The score with each of the models left out.
    shuffled : ndarray, shape (measures, draws), optional
        The score with gaps that depend on nothing but the hyperparameters.
    chance : ndarray, shape (measures,)
        The part of the score of a measure without a direction that is chance; 0 with a direction.
    directed : ndarray of bool, shape (measures,)
    """

    values: FloatArray
    left_out: FloatArray | None
    shuffled: FloatArray | None
    chance: FloatArray
    directed: NDArray[np.bool_]

    @classmethod
    def of(
        cls,
        conditioning: ConditioningSets,
        measures: FloatArray,
        directed: NDArray[np.bool_],
        gaps: FloatArray | None,
        rng: np.random.Generator,
    ) -> InformationScores:
        """Score oriented measures of shape (measures, models); ``gaps``, (models, draws), are the shuffled ones."""
        sets, gap = conditioning.sets, conditioning.gap
        if not sets:
            return cls(np.empty((0, len(measures))), None, None, np.zeros(len(measures)), directed)

        def lowest(orders: Callable[[PairCells, slice], GapOrder], versions: int) -> FloatArray:
            """Smallest information over the sets in each version of the corpus, some versions at a time."""
            chunk = max(1, HELD // len(sets[0].first))
            parts = [slice(start, start + chunk) for start in range(0, versions, chunk)]
            scores = [
                reduce(np.fmin, (information(s, measures, directed, orders(s, part)) for s in sets)) for part in parts
            ]
            return np.concatenate(scores, axis=1)

        whole = [information(s, measures, directed, GapOrder.of(s, gap[:, None])) for s in sets]
        values = np.concatenate(whole, axis=1).T
        # The jackknife reuses the cells of the whole corpus: pairs of the model left out get weight 0.
        left_out = shuffled = None
        if len(gap) >= FEWEST:
            models = np.arange(len(gap))
            left_out = lowest(lambda cells, part: GapOrder.without(cells, gap, models[part]), len(gap))
        if gaps is not None and gaps.shape[1]:
            ranks = dense_ranks(gaps)
            shuffled = lowest(lambda cells, part: GapOrder.of(cells, ranks[:, part]), gaps.shape[1])
        chance = np.zeros(len(measures))
        for m in np.flatnonzero(~directed):
            chance[m] = _chance(sets[int(values[:, m].argmin())], measures[m], gap, rng)
        return cls(values, left_out, shuffled, chance, directed)

    @property
    def score(self) -> FloatArray:
        """The smallest value over the sets."""
        least: FloatArray = self.values.min(axis=0, initial=np.inf)
        return np.where(np.isinf(least), np.nan, least)

    def centre(self, which: int) -> float:
        """Score of one measure without the part that is chance; NaN where chance explains everything."""
        chance = float(self.chance[which])
        return (float(self.score[which]) - chance) / (1 - chance) if chance < 1 else math.nan

    def error(self, which: int) -> float:
        """Standard error of the score of one measure."""
        return math.nan if self.left_out is None else jackknife_error(self.left_out[which])

    def interval(self, which: int, level: float) -> Interval:
        """Interval of the score of one measure in an infinitely large corpus."""
        free = math.nan if self.left_out is None else self.left_out.shape[1] - 1
        half = float(stdtrit(free, 0.5 + level / 2)) * self.error(which)
        # The lower end starts from the score without its part of chance, which biases it upwards; the upper end from
        # the score itself, so that the interval always holds it.
        score, floor = float(self.score[which]), -1.0 if self.directed[which] else 0.0
        return clipped_interval(score, self.centre(which) - half, score + half, level, floor)

    def null_mean(self, which: int) -> float:
        """Mean score by hyperparameters alone."""
        if self.shuffled is None:
            return math.nan
        known = self.shuffled[which][~np.isnan(self.shuffled[which])]
        return float(known.mean()) if len(known) else math.nan

    def pvalue(self, which: int) -> float:
        """Share of shuffled corpora with a score as high."""
        return math.nan if self.shuffled is None else upper_tail(self.shuffled[which], self.score[which])


def _chance(cells: PairCells, measure: FloatArray, gap: FloatArray, rng: np.random.Generator) -> float:
    """Expected score of a measure without a direction if gaps are permuted within the groups.

    Without a direction the information is never negative, so noise alone gives a positive score.
    """
    order = np.argsort(cells.groups, kind="stable")
    gaps = np.empty((len(gap), CHANCE_DRAWS))
    for draw in range(CHANCE_DRAWS):
        gaps[order, draw] = gap[np.lexsort((rng.random(len(gap)), cells.groups))]
    return float(information(cells, measure[None], _UNDIRECTED, GapOrder.of(cells, gaps)).mean())


def dense_ranks(columns: FloatArray) -> NDArray[np.int16 | np.int32]:
    """Ranks of the numbers in each column as small integers, which compare faster than floats.

    >>> dense_ranks(np.array([[0.5], [0.1], [0.5], [0.9]])).ravel()
    array([1, 0, 1, 2], dtype=int16)
    """
    order = np.argsort(columns, axis=0)
    rising = np.take_along_axis(columns, order, axis=0)
    step = np.zeros(columns.shape, dtype=np.int16 if len(columns) < 2**15 else np.int32)
    np.cumsum(rising[1:] > rising[:-1], axis=0, out=step[1:])
    ranks = np.empty_like(step)
    np.put_along_axis(ranks, order, step, axis=0)
    return ranks


def clipped_interval(score: float, low: float, high: float, level: float, floor: float) -> Interval:
    """Interval within the range of a score; from the floor on where chance explains everything."""
    if math.isnan(low) and not math.isnan(high):
        low = floor
    return Interval(score, float(np.clip(low, floor, 1.0)), float(np.clip(high, floor, 1.0)), level)


def upper_tail(draws: FloatArray, seen: float) -> float:
    """Share of draws as high as the observed value, which is counted among them.

    Draws without a score do not count; NaN where none has one, or nothing was observed.
    """
    known = draws[~np.isnan(draws)]
    if math.isnan(seen) or not len(known):
        return math.nan
    # Ties count as high as the observed value, up to rounding: the test is conservative.
    return (1 + int((known >= seen - 1e-9).sum())) / (1 + len(known))


def jackknife_error(left_out: FloatArray) -> float:
    """Standard error from values with each model left out in turn."""
    n = len(left_out)
    return math.sqrt((n - 1) / n * float(((left_out - left_out.mean()) ** 2).sum()))


def _measure_pgdl(
    oriented: FloatArray, gaps: FloatArray, columns: Mapping[str, NDArray[Any]], orientation: int | None, level: float
) -> ConditionalInformation:
    sets = pgdl_scores(oriented, gaps, columns)
    score = float(lowest_pgdl(sets, 1)[0])
    codes = {k: value_codes(column) for k, column in columns.items()}
    levels = {k: int(c.max()) + 1 for k, c in codes.items()}
    notes = []
    skipped = [" & ".join(s) for s, v in sets.items() if math.isnan(v[0])]
    if skipped:
        notes = [
            f"{len(skipped)} pair(s) of hyperparameters have no value, because a cell holds no pair of models or two "
            f"cells have one name, and are skipped: {', '.join(skipped[:4])}{' …' if len(skipped) > 4 else ''}."
        ]
    for text in notes:
        warnings.warn(text, CurvewiseWarning, stacklevel=3)
    groups = [pair_cells({k: codes[k] for k in s}, len(gaps)).groups for s in sets]
    cells = np.array([(levels[a] * levels[b]) ** 2 for a, b in sets], dtype=np.int64)
    return ConditionalInformation(
        value=Interval(score, math.nan, math.nan, level),
        null_mean=math.nan,
        pvalue=math.nan,
        null="nothing",
        sets=tuple(sets),
        values=np.array([v[0] for v in sets.values()]),
        cells=cells,
        empty=cells - np.array([len(np.unique(g)) ** 2 for g in groups], dtype=np.int64),
        models=len(gaps),
        mode="pgdl",
        orientation=orientation,
        warnings=tuple(notes),
    )


def pgdl_scores(
    measures: FloatArray, gap: FloatArray, hyperparameters: Mapping[str, NDArray[Any]]
) -> dict[tuple[str, str], FloatArray]:
    """Compute the competition's value of every ordered pair of hyperparameters, for several measures at once.

    As in its program, all ordered pairs of models count, each with itself included; a difference is positive or it is
    not, so that ties fall to one side. A cell is named by the text of its four values, written one after the other
    without a separator; where two cells get one name, or a cell holds no pair, the program divides 0 by 0, and the
    value is NaN.

    Parameters
    ----------
    measures : ndarray, shape (measures, models)
    gap : ndarray, shape (models,)
    hyperparameters : dict of str to ndarray

    Returns
    -------
    dict of tuple to ndarray
        An array with a value for each measure.
    """
    # Halved until the differences of all pairs of models fit into memory.
    if len(measures) > 1 and measures.size * len(gap) > LARGEST:
        half = len(measures) // 2
        parts = [pgdl_scores(m, gap, hyperparameters) for m in (measures[:half], measures[half:])]
        return {k: np.concatenate([part[k] for part in parts]) for k in parts[0]}
    larger = gap[:, None] > gap[None, :]
    higher = measures[:, :, None] > measures[:, None, :]
    words = {k: [str(v) for v in column.tolist()] for k, column in hyperparameters.items()}
    found: dict[tuple[str, str], FloatArray] = {}
    for one, two in permutations(words, 2):
        a, b = ([v + w for v in set(words[k]) for w in set(words[k])] for k in (one, two))
        if len({x + y for x in a for y in b}) < len(a) * len(b):  # two cells get one name
            found[one, two] = np.full(len(measures), np.nan)
        # The order of two hyperparameters changes nothing but the names of cells.
        elif (two, one) in found and not np.isnan(found[two, one]).all():
            found[one, two] = found[two, one]
        else:
            found[one, two] = _pgdl_ratio(larger, higher, words[one], words[two])
    return found


def lowest_pgdl(values: Mapping[tuple[str, str], FloatArray], measures: int) -> FloatArray:
    """Smallest value of each measure over the pairs whose value is a number; NaN if none is."""
    if not values:
        return np.full(measures, np.nan)
    stacked = np.stack(list(values.values()))
    known = ~np.isnan(stacked)
    least = np.where(known, stacked, np.inf).min(axis=0)
    return np.where(known.any(axis=0), least, np.nan)


def _pgdl_ratio(larger: NDArray[np.bool_], higher: NDArray[np.bool_], one: list[str], two: list[str]) -> FloatArray:
    """Mean information over the cells by their mean entropy."""
    values = [np.unique(words, return_inverse=True)[1] for words in (one, two)]
    sizes = [int(v.max()) + 1 for v in values]
    groups = sizes[0] * sizes[1]
    belongs = np.eye(groups)[values[0] * sizes[1] + values[1]].T

    def count(pairs: NDArray[np.bool_]) -> FloatArray:
        counts: FloatArray = belongs @ pairs.astype(np.float64) @ belongs.T
        return counts

    pairs = count(np.ones_like(larger))
    if (pairs == 0).any():
        return np.full(len(higher), np.nan)
    p = count(larger) / pairs
    entropy = -(p * np.log2(p + TINY) + (1 - p) * np.log2(1 - p + TINY))
    told = np.zeros((len(higher), groups, groups))
    for up in (larger, ~larger):
        for more in (higher, ~higher):
            both, product = count(up & more), count(up) * count(more)
            there = both > 0
            lift = np.where(there, both * pairs, 1.0) / np.where(there, product, 1.0)
            told += both / pairs * np.log2(lift)
    ratio: FloatArray = told.mean(axis=(-2, -1)) / entropy.mean()
    return ratio
