"""Conditional mutual information: what a measure says about the gap beyond the hyperparameters.

:func:`cmi_score` is the number, :func:`measure_cmi` the number with its interval and its null distribution. Two
computations exist: ours (``"corrected"``), and that of the PGDL competition's program (``"pgdl"``), flaws included, so
that published scores can be compared.

Both compare pairs of models in cells. A cell holds the pairs whose two models have given values of some
hyperparameters: with depth and width, the pairs of a (2, 64) model with a (4, 32) one. In it, the sign of the
difference of a measure is compared with the sign of the difference of the gap.
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
from scipy.special import ndtri, stdtrit

from curvewise.errors import CurvewiseWarning, InputError, arg
from curvewise.response.load import as_columns
from curvewise.stats.correlation import average_ranks
from curvewise.text import format_count, format_number, format_pvalue
from curvewise.types.results import FloatArray, Interval, Result, as_floats, as_generator, check_level, check_whole

Codes = NDArray[np.int64]
Single = NDArray[np.float32]
Counts = NDArray[np.signedinteger[Any]]

MODES = ("corrected", "pgdl")
# Pairs of models times versions of the corpus in memory at once: about 4 MB of single precision.
PAIRS_AT_ONCE = 2**19
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
    values, gaps, columns = check_corpus(measure, gap, hyperparameters, mode, orientation)
    # As a matrix of one measure: all computations take many measures at once.
    oriented = values[None] * (orientation or 1)
    if mode == "pgdl":
        return float(lowest_pgdl(pgdl_scores(oriented, gaps, columns), 1)[0])
    conditioning = ConditioningSets.choose(gaps, columns, given)
    _warn(conditioning.alarms)
    directed = np.array([orientation is not None])
    return float(
        min((conditioning.information(s, oriented, directed)[0, 0] for s in conditioning.sets), default=math.nan)
    )


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
        if known := len(self.sets) - len(self.skipped):
            least = self.sets[int(np.nanargmin(self.values))]
            smallest = f", the smallest of {known} sets" if known > 1 else ""
            text += f"{smallest}, given {' and '.join(least) or 'nothing'}"
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
    values, gaps, columns = check_corpus(measure, gap, hyperparameters, mode, orientation)
    check_level(level)
    oriented = values[None] * (orientation or 1)
    if mode == "pgdl":
        return _measure_pgdl(oriented, gaps, columns, orientation, level)
    conditioning = ConditioningSets.choose(gaps, columns, given)
    generator = as_generator(rng)
    shuffled, null = shuffled_gaps(gaps, conditioning.codes, permutations, generator)
    noise = chance_noise(gaps, generator)
    scores = InformationScores.of(conditioning, oriented, np.array([orientation is not None]), shuffled, noise)
    _warn(conditioning.alarms)
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
        warnings=(*conditioning.alarms, *conditioning.notes),
    )


def check_corpus(
    measure: ArrayLike, gap: ArrayLike, hyperparameters: Mapping[str, Any], mode: str, orientation: int | None
) -> tuple[FloatArray, FloatArray, dict[str, NDArray[Any]]]:
    """Return measure, gap and hyperparameters as arrays, or raise an error that says what is wrong."""
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
    codes : dict of str to ndarray
        Hyperparameters that differ between models, their values numbered.
    sets : list of PairCells
        Sets within which gaps still differ.
    skipped : list of PairCells
        Sets that determine the gap's sign in every cell.
    alarms, notes : tuple of str
        Warnings of likely mistakes and of changes to what the score means, and remarks that need no action.
    """

    gap: FloatArray
    codes: dict[str, Codes]
    sets: list[PairCells]
    skipped: list[PairCells]
    alarms: tuple[str, ...]
    notes: tuple[str, ...]

    @classmethod
    def choose(cls, gap: FloatArray, columns: Mapping[str, NDArray[Any]], given: int) -> ConditioningSets:
        """Sort pairs into cells for each set of ``given`` hyperparameters.

        Where no such set leaves any entropy (every cell has a single pair, say), smaller sets are taken.
        """
        given = check_whole(given, "given", 0)
        alarms, notes = [], []
        codes = {name: value_codes(column) for name, column in columns.items()}
        levels = {name: int(column.max(initial=0)) + 1 for name, column in codes.items()}
        # Five values are few whatever the corpus; above that, with fewer than three models a value, few pairs share
        # one.
        if continuous := [name for name, count in levels.items() if count > 5 and len(gap) < 3 * count]:
            alarms.append(
                f"{_listed(continuous)} {'has' if len(continuous) == 1 else 'each have'} nearly as many values as "
                "there are models, so few pairs of models share them: leave it out, or put its values into a few bins."
            )
        if constant := [name for name, count in levels.items() if count == 1]:
            one = "has one value only and is" if len(constant) == 1 else "have one value only and are"
            notes.append(f"{_listed(constant)} {one} left out.")
        codes = {name: column for name, column in codes.items() if levels[name] > 1}
        useful: list[PairCells] = []
        skipped: list[PairCells] = []
        wanted = min(given, len(codes))
        for size in range(wanted, -1, -1):
            for names in combinations(codes, size):
                cells = pair_cells({k: codes[k] for k in names}, len(gap))
                # The gap as a measure of itself has information 1, or NaN where a set leaves no entropy.
                own = information(cells, gap[None], _UNDIRECTED, GapOrder.of(cells, gap[:, None]))
                (useful if np.isfinite(own).all() else skipped).append(cells)
            if useful:
                break
        if not useful:
            alarms.append("All gaps are equal: there is nothing to predict.")
        elif size < wanted:
            alarms.append(
                f"With {format_count(wanted, 'hyperparameter')} held at a time no cell has pairs whose gaps differ in "
                f"sign: {size or 'none'} is held instead."
            )
        elif skipped:
            notes.append(
                f"{format_count(len(skipped), 'set')} of hyperparameters determine{'s' if len(skipped) == 1 else ''}"
                " the sign of every gap."
            )
        if empty := sum(s.empty for s in useful):
            notes.append(f"{empty} of {sum(s.possible for s in useful)} cells hold no pair of models and are left out.")
        return cls(gap, codes, useful, skipped, tuple(alarms), tuple(notes))

    def information(self, cells: PairCells, measures: FloatArray, directed: NDArray[np.bool_]) -> FloatArray:
        """Information of measures about the gaps within one of the sets, shape (measures, 1)."""
        return information(cells, measures, directed, GapOrder.of(cells, self.gap[:, None]))


def _listed(names: list[str]) -> str:
    return (
        ("hyperparameter " if len(names) == 1 else "hyperparameters ")
        + ", ".join(map(repr, names[:5]))
        + (" …" if len(names) > 5 else "")
    )


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
        noise: FloatArray,
    ) -> InformationScores:
        """Score oriented measures of shape (measures, models); ``gaps``, (models, draws), are the shuffled ones.

        ``noise``, (draws, models), orders the models for the part that is chance.
        """
        sets, gap = conditioning.sets, conditioning.gap
        if not sets:
            return cls(np.empty((0, len(measures))), None, None, np.zeros(len(measures)), directed)

        def lowest(orders: Callable[[PairCells, slice], GapOrder], versions: int) -> FloatArray:
            """Smallest information over the sets in each version of the corpus, some versions at a time."""
            chunk = max(1, PAIRS_AT_ONCE // len(sets[0].first))
            parts = [slice(start, start + chunk) for start in range(0, versions, chunk)]
            scores = [
                reduce(np.fmin, (information(s, measures, directed, orders(s, part)) for s in sets)) for part in parts
            ]
            return np.concatenate(scores, axis=1)

        values = np.concatenate([conditioning.information(s, measures, directed) for s in sets], axis=1).T
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
            chance[m] = _chance(sets[int(values[:, m].argmin())], measures[m], gap, noise)
        return cls(values, left_out, shuffled, chance, directed)

    @property
    def score(self) -> FloatArray:
        """The smallest value over the sets."""
        return reduce(np.fmin, self.values, np.full(len(self.directed), np.nan))

    def centre(self, which: int) -> float:
        """Score of one measure without the part that is chance; NaN where chance explains everything."""
        chance = float(self.chance[which])
        return (float(self.score[which]) - chance) / (1 - chance) if chance < 1 else math.nan

    def error(self, which: int) -> float:
        """Standard error of the score of one measure; NaN where nothing is known of it."""
        return math.nan if self.left_out is None else jackknife_error(self.left_out[which], float(self.score[which]))

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


def chance_noise(gap: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Draw numbers that order the models, the same for all measures: none depends on which others there are."""
    return rng.random((CHANCE_DRAWS, len(gap)))


def _chance(cells: PairCells, measure: FloatArray, gap: FloatArray, noise: FloatArray) -> float:
    """Expected score of a measure without a direction if gaps are permuted within the groups.

    Without a direction the information is never negative, so noise alone gives a positive score.
    """
    order = np.argsort(cells.groups, kind="stable")
    gaps = np.empty((len(gap), CHANCE_DRAWS))
    for draw in range(CHANCE_DRAWS):
        gaps[order, draw] = gap[np.lexsort((noise[draw], cells.groups))]
    return float(information(cells, measure[None], _UNDIRECTED, GapOrder.of(cells, gaps)).mean())


def dense_ranks(columns: FloatArray) -> NDArray[np.int16 | np.int32]:
    """Ranks of the numbers in each column as small integers, which compare faster than floats.

    >>> dense_ranks(np.array([[0.5], [0.1], [0.5], [0.9]])).ravel()
    array([1, 0, 1, 2], dtype=int16)
    """
    kind = np.int16 if len(columns) < 2**15 else np.int32
    return np.stack([np.unique(column, return_inverse=True)[1] for column in columns.T], axis=1).astype(kind)


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


def jackknife_error(left_out: FloatArray, whole: float) -> float:
    """Standard error of the value of the whole corpus from those with each model left out in turn."""
    n = len(left_out)
    error = math.sqrt((n - 1) / n * float(((left_out - left_out.mean()) ** 2).sum()))
    # A measure that is right on every pair stays so whichever model is left out: the jackknife cannot tell how often it
    # would be wrong. One that says nothing, as it is constant, says nothing in any corpus; and two measures that rank
    # every pair of models alike do not differ in any.
    return math.nan if error < 1e-9 < abs(whole) else error


def _measure_pgdl(
    oriented: FloatArray, gaps: FloatArray, columns: Mapping[str, NDArray[Any]], orientation: int | None, level: float
) -> ConditionalInformation:
    sets = pgdl_scores(oriented, gaps, columns)
    score = float(lowest_pgdl(sets, 1)[0])
    codes = {k: value_codes(column) for k, column in columns.items()}
    both = [pair_cells({k: codes[k] for k in s}, len(gaps)) for s in sets]
    notes = []
    skipped = [" & ".join(s) for s, v in sets.items() if math.isnan(v[0])]
    if skipped:
        notes = [
            f"{len(skipped)} pair(s) of hyperparameters have no value, because a cell holds no pair of models or two "
            f"cells have one name, and are skipped: {', '.join(skipped[:4])}{' …' if len(skipped) > 4 else ''}."
        ]
        warnings.warn(notes[0], CurvewiseWarning, stacklevel=3)
    return ConditionalInformation(
        value=Interval(score, math.nan, math.nan, level),
        null_mean=math.nan,
        pvalue=math.nan,
        null="nothing",
        sets=tuple(sets),
        values=np.array([v[0] for v in sets.values()]),
        cells=np.array([cells.possible for cells in both], dtype=np.int64),
        # With each model's pair with itself no cell of two groups that exist is empty.
        empty=np.array([cells.possible - len(np.unique(cells.groups)) ** 2 for cells in both], dtype=np.int64),
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
    return reduce(np.fmin, values.values(), np.full(measures, np.nan))


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
    bits = np.zeros((len(higher), groups, groups))
    for up in (larger, ~larger):
        for more in (higher, ~higher):
            both, product = count(up & more), count(up) * count(more)
            there = both > 0
            lift = np.where(there, both * pairs, 1.0) / np.where(there, product, 1.0)
            bits += both / pairs * np.log2(lift)
    ratio: FloatArray = bits.mean(axis=(-2, -1)) / entropy.mean()
    return ratio


def value_codes(column: NDArray[Any]) -> Codes:
    """Number the different values of a column in order of first appearance.

    >>> value_codes(np.array([None, "a", 2, 2.0, None, float("nan")], dtype=object)).tolist()
    [0, 1, 2, 2, 0, 3]
    """
    known: dict[Any, int] = {}

    def key(value: Any) -> Any:
        # 2 and 2.0 are one value, True and 1 are two; NaN equals itself here, which == denies.
        if isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool):
            return "nan" if value != value else value
        return type(value).__name__, str(value)

    return np.array([known.setdefault(key(value), len(known)) for value in column.tolist()], dtype=np.int64)


def shuffled_gaps(
    gap: FloatArray, codes: Mapping[str, Codes], draws: int, rng: np.random.Generator
) -> tuple[FloatArray | None, str]:
    """Permute the part of the gaps that hyperparameters do not explain.

    The gaps are replaced by their normal scores, since only their order counts. A least-squares fit of these by all
    hyperparameters stays, with two-way interactions where that leaves half of the degrees of freedom; its residuals
    are permuted.

    Returns
    -------
    gaps : ndarray, shape (models, draws), optional
        None where the hyperparameters leave no residuals.
    effects : str
        The effects that stay.
    """
    draws = check_whole(draws, "permutations", 0)
    scores: FloatArray = ndtri((average_ranks(gap) - 0.5) / len(gap))
    for interactions in (True, False):
        each = [np.eye(int(c.max(initial=0)) + 1)[c][:, 1:] for c in codes.values()]
        columns = [np.ones((len(gap), 1)), *each]
        if interactions:
            for one, two in combinations(each, 2):
                columns.append((one[:, :, None] * two[:, None, :]).reshape(len(gap), -1))
        # An orthonormal basis of the design: its columns may be linearly dependent where combinations are missing.
        basis, sizes, _ = np.linalg.svd(np.concatenate(columns, axis=1), full_matrices=False)
        basis = basis[:, sizes > 1e-10 * sizes[0]]
        free = len(gap) - basis.shape[1]
        if free >= (len(gap) / 2 if interactions else 1):
            fitted = basis @ (basis.T @ scores)
            rest = np.tile(scores - fitted, (draws, 1))
            permuted: FloatArray = fitted[:, None] + rng.permuted(rest, axis=1).T
            return permuted, "effects and two-way interactions" if interactions else "effects"
    return None, "nothing"


@dataclass(frozen=True, eq=False)
class PairCells:
    """All pairs of two models in the cells of one set of hyperparameters.

    Attributes
    ----------
    names : tuple of str
        The hyperparameters that are held fixed.
    groups : ndarray of int, shape (models,)
        Number of the combination of their values that a model has.
    first, second : ndarray of int, shape (pairs,)
        Models, in the order of the cells; the one of the lower group comes first.
    starts : ndarray of int, shape (cells,)
        Where each cell begins.
    inside : int
        In so many cells, which come first, both models are of one group. Such a pair is there in both orders.
    possible : int
        Cells that there would be if all combinations of values occurred in pairs.
    """

    names: tuple[str, ...]
    groups: Codes
    first: Codes
    second: Codes
    starts: Codes
    inside: int
    possible: int

    @property
    def weight(self) -> FloatArray:
        """Number of cells that each stands for: one of different groups has a mirror image."""
        return np.where(np.arange(len(self.starts)) < self.inside, 1.0, 2.0)

    @property
    def empty(self) -> int:
        """Number of possible cells that hold no pair."""
        return self.possible - int(self.weight.sum())


def pair_cells(codes: Mapping[str, Codes], count: int) -> PairCells:
    """Sort all pairs of ``count`` models into cells."""
    combined = np.zeros(count, dtype=np.int64)
    levels = 1
    for column in codes.values():
        size = int(column.max()) + 1
        combined = combined * size + column
        levels *= size
    groups = np.unique(combined, return_inverse=True)[1].reshape(-1)
    # Each unordered pair once, the model of the lower group first: the mirrored cell holds the same information.
    first, second = np.triu_indices(count, 1)
    swap = groups[first] > groups[second]
    first, second = np.where(swap, second, first), np.where(swap, first, second)
    n_groups = int(groups.max(initial=0)) + 1
    # Two models of one group stand there in both orders: either sign of their gap is as likely.
    same = groups[first] == groups[second]
    first, second = np.concatenate([first, second[same]]), np.concatenate([second, first[same]])
    # Cells of one group get the lowest numbers, so that a slice separates them from the others.
    cell = groups[first] * n_groups + groups[second] + n_groups**2 * (groups[first] != groups[second])
    order = np.argsort(cell, kind="stable")
    first, second, cell = first[order], second[order], cell[order]
    starts = np.flatnonzero(np.concatenate([[len(cell) > 0], np.diff(cell) > 0]))
    inside = int((cell[starts] < n_groups**2).sum())
    return PairCells(tuple(codes), groups, first, second, starts, inside, levels**2)


@dataclass(frozen=True, eq=False)
class GapOrder:
    """The model of each pair with the larger gap, in many versions of a corpus.

    Attributes
    ----------
    larger, differ : ndarray, shape (pairs, versions)
        Weight of a pair where the first model's gap is larger, and where the two differ at all. ``differ`` may have
        one column that stands for all versions.
    """

    larger: Single
    differ: Single

    @classmethod
    def of(cls, cells: PairCells, gaps: NDArray[Any]) -> GapOrder:
        """Compare gaps, or their ranks, of shape (models, versions)."""
        one, two = gaps[cells.first], gaps[cells.second]
        differ = one != two
        if differ.all():
            differ = differ[:, :1]
        return cls((one > two).astype(np.float32), differ.astype(np.float32))

    @classmethod
    def without(cls, cells: PairCells, gap: FloatArray, models: Codes) -> GapOrder:
        """Compare gaps with each of some models left out in turn."""
        kept = ((cells.first[:, None] != models) & (cells.second[:, None] != models)).astype(np.float32)
        whole = cls.of(cells, gap[:, None])
        return cls(whole.larger * kept, whole.differ * kept)


def information(cells: PairCells, measures: FloatArray, directed: NDArray[np.bool_], order: GapOrder) -> FloatArray:
    """Share of the entropy of the gap's sign that each measure explains.

    Parameters
    ----------
    cells : PairCells
        The pairs.
    measures : ndarray, shape (measures, models)
        Oriented: higher should mean a larger gap.
    directed : ndarray of bool, shape (measures,)
        Count the information of a cell as negative where it runs against that.
    order : GapOrder
        The sign of the gap in each version.

    Returns
    -------
    ndarray, shape (measures, versions)
        Mean information over the cells by mean entropy; NaN where there is no entropy.
    """
    one, two = measures[:, cells.first], measures[:, cells.second]
    rising, differ = (one > two).astype(np.float32), (one != two).astype(np.float32)
    if differ.all():
        differ = differ[:1]
    # All counts of a cell in one product of matrices: single precision is exact for whole numbers below 2**24.
    left = np.concatenate([rising, differ, np.ones((1, rising.shape[1]), dtype=np.float32)])
    right = np.concatenate([order.larger, order.differ], axis=1)
    ends = np.append(cells.starts[1:], left.shape[1])
    sums = np.empty((len(left), len(cells.starts), right.shape[1]), dtype=np.float32)
    for cell, (start, end) in enumerate(zip(cells.starts, ends, strict=True)):
        sums[:, cell] = left[:, start:end] @ right[start:end]
    largest = int((ends - cells.starts).max(initial=0))
    counts: Counts = sums.astype(np.int32 if largest < 2**15 else np.int64)  # products of two counts must fit
    xlogx = np.arange(int(counts[-1].max(initial=0)) + 1, dtype=np.float64)
    xlogx[1:] *= np.log2(xlogx[1:])  # looked up, which is faster than computing it for every count

    def logs(numbers: Counts) -> FloatArray:
        found: FloatArray = xlogx.take(numbers, mode="clip")
        return found

    m, v = len(rising), order.larger.shape[1]
    both, higher, larger, untied = counts[:m, :, :v], counts[:m, :, v:], counts[m:-1, :, :v], counts[m:-1, :, v:]
    all_larger, pairs = counts[-1:, :, :v], counts[-1:, :, v:]
    # n times the mutual information of a 2×2 table: Σ n_ij log n_ij + n log n − Σ n_i· log n_i· − Σ n_·j log n_·j.
    # Pairs with a tied measure give no information, but the sign of their gap belongs to the entropy.
    a, b, c = both, higher - both, larger - both
    d = (untied - higher) - c
    bits = logs(a) + logs(b) + logs(c) + logs(d) + logs(untied)
    bits -= logs(higher) + logs(untied - higher) + logs(larger) + logs(untied - larger)
    np.maximum(bits, 0.0, out=bits)  # rounding may leave it a little below
    if directed.any():
        bits = np.where(directed[:, None, None], bits * np.sign(a * d - b * c), bits)
    entropy = logs(pairs) - logs(all_larger) - logs(pairs - all_larger)
    # Means over cells, not over pairs: a large cell counts as much as a small one.
    by_pair = cells.weight[:, None] / np.maximum(pairs[0], 1)
    top, bottom = (bits * by_pair).sum(axis=1), (entropy * by_pair).sum(axis=1)
    share: FloatArray = top / np.where(bottom > 1e-9, bottom, np.nan)
    return np.clip(share, -1.0, 1.0)  # beyond by rounding only
