"""Conditional mutual information: what a measure tells about the gap beyond hyperparameters."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.response.cells import (
    Codes,
    Outcomes,
    PairCells,
    as_columns,
    cells_of_sets,
    dense_ranks,
    gap_outcomes,
    information,
    left_out_outcomes,
    pair_cells,
    shuffled_gaps,
    value_codes,
    varied,
)
from curvewise.text import format_number
from curvewise.types.results import Interval, Result, check_level
from curvewise.types.units import FloatArray, as_floats

MODES = ("corrected", "pgdl")


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

    How much of what there is to know about "which of two models has the larger gap" the measure
    tells, where the values of hyperparameters are known (Jiang et al. 2020). Two hyperparameters
    are held at a time; the score is the smallest over all such sets, so that a measure that only
    mirrors one of them scores low.

    Parameters
    ----------
    measure, gap : array_like, shape (models,)
        A number for each model. Only their order matters.
    hyperparameters : dict of str to array_like
        Columns with a value for each model, of any kind. There may be none.
    mode : {"corrected", "pgdl"}
        ``"pgdl"`` gives what the program of the PGDL competition (2020) gives, less its factor of
        100; a set whose value is not a number is skipped. ``"corrected"`` drops pairs of a model
        with itself and pairs with tied gaps; a tied measure tells nothing.
    orientation : {1, -1}, optional
        Whether more of the measure should mean a larger gap or a smaller one. If given, what
        is told in the other direction counts as negative, and the score goes from -1 to 1.
        Otherwise either direction is as good. In ``"pgdl"``, -1 negates the measure.
    given : int
        How many hyperparameters are held at a time, in ``"corrected"``.

    Returns
    -------
    float
        NaN where hyperparameters leave nothing to tell, for example because all gaps are equal.

    Raises
    ------
    InputError
        If lengths differ, values are missing, or there are fewer than two models.

    See Also
    --------
    measure_cmi : The same with every set, interval and null.

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
    if mode == "pgdl":
        sets = pgdl_scores(values[None] * (orientation or 1), gaps, columns)
        return float(lowest(sets, 1)[0])
    settings = varied(columns)
    prepared = prepare(gaps, settings.codes, given)
    warn([*settings.alarms(), *prepared.alarms()])
    signs = np.array([orientation is not None])
    oriented = values[None] * (orientation or 1)
    return float(min((_value(s, oriented, signs, gaps) for s in prepared.sets), default=math.nan))


@dataclass(frozen=True, eq=False)
class ConditionalInformation(Result):
    """What a measure tells about the gap given each set of hyperparameters.

    Attributes
    ----------
    value : Interval
        The score with its interval, which is for the value that a very large corpus with these
        hyperparameters would give. NaN for what is not known.
    null_mean : float
        Mean score when the part of the gap that hyperparameters do not explain is dealt anew
        among the models.
    pvalue : float
        How often that gives a score as high.
    null : str
        What was held to be explained by the hyperparameters.
    sets : tuple of tuple of str
        The sets of hyperparameters that were held; in mode ``"pgdl"`` in both orders.
    values : ndarray
        The share told given each; NaN where a set is skipped.
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
        """A row for each set."""
        return {
            "given": [" & ".join(s) or "nothing" for s in self.sets],
            "information": self.values,
            "cells": self.cells,
            "empty": self.empty,
        }

    def summary(self) -> str:
        """A few sentences."""
        text = f"CMI {self.value} over {self.models} models"
        if self.sets and not np.isnan(self.values).all():
            least = self.sets[int(np.nanargmin(self.values))]
            text += f", the smallest of {len(self.sets)} sets, given {' and '.join(least) or '-'}"
        if not math.isnan(self.pvalue):
            text += (
                f". With the gap dealt anew beyond the {self.null} of the hyperparameters it is "
                f"{format_number(self.null_mean)} on average, and as high with p = {self.pvalue:.2g}"
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
    """Score a measure as :func:`cmi_score` does, with all that lies behind the number.

    Parameters
    ----------
    measure, gap, hyperparameters, mode, orientation, given
        As of :func:`cmi_score`.
    permutations : int
        Draws of the null, which tests whether the measure tells anything beyond all the
        hyperparameters together: what a least-squares fit by them leaves of the gap is dealt anew.
        0 for none.
    level : float
        Coverage of the interval.
    rng : int or Generator
        Decides the draws.

    Returns
    -------
    ConditionalInformation
        Without interval and null in mode ``"pgdl"``.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> depth, width = np.repeat([1, 2], 12), np.tile([1, 2, 3], 8)
    >>> gap = depth + rng.normal(size=24)
    >>> measure = gap + rng.normal(size=24)
    >>> found = measure_cmi(measure, gap, {"depth": depth, "width": width}, orientation=1)
    >>> print(found.value)
    0.2584 [-0.1127, 0.6295]
    """
    values, gaps, columns = _check(measure, gap, hyperparameters, mode, orientation)
    check_level(level)
    oriented = values[None] * (orientation or 1)
    if mode == "pgdl":
        return _pgdl_details(oriented, gaps, columns, orientation, level)
    settings = varied(columns)
    prepared = prepare(gaps, settings.codes, given)
    generator = np.random.default_rng(rng)
    dealt, null = shuffled_gaps(gaps, settings.codes, permutations, generator)
    signs = np.array([orientation is not None])
    found = score_measures(prepared, oriented, signs, dealt, generator)
    alarms = [*settings.alarms(), *prepared.alarms()]
    warn(alarms)
    sets = [*prepared.sets, *prepared.skipped]
    return ConditionalInformation(
        value=found.interval(0, level),
        null_mean=found.null_mean(0),
        pvalue=found.pvalue(0),
        null=null,
        sets=tuple(s.names for s in sets),
        values=np.append(found.values[:, 0], [math.nan] * len(prepared.skipped)),
        cells=np.array([s.possible for s in sets], dtype=np.int64),
        empty=np.array([s.empty for s in sets], dtype=np.int64),
        models=len(gaps),
        mode=mode,
        orientation=orientation,
        warnings=(*alarms, *settings.notes(), *prepared.notes()),
    )


def _value(cells: PairCells, measure: FloatArray, directed: NDArray[np.bool_], gap: FloatArray) -> float:
    return float(information(cells, measure, directed, gap_outcomes(cells, gap[:, None]))[0, 0])


def _pgdl_details(
    oriented: FloatArray, gaps: FloatArray, columns: Mapping[str, NDArray[Any]], orientation: int | None, level: float
) -> ConditionalInformation:
    sets = pgdl_scores(oriented, gaps, columns)
    values = np.array([v[0] for v in sets.values()])
    score = float(lowest(sets, 1)[0])
    levels = {k: len(np.unique(value_codes(column))) for k, column in columns.items()}
    skipped = [" & ".join(s) for s, v in sets.items() if math.isnan(v[0])]
    notes = skipped_note(skipped)
    warn(notes)
    pairs = [pair_cells({k: value_codes(columns[k]) for k in s}, len(gaps)) for s in sets]
    there = [len(np.unique(p.groups)) ** 2 for p in pairs]
    cells = np.array([(levels[a] * levels[b]) ** 2 for a, b in sets], dtype=np.int64)
    return ConditionalInformation(
        value=Interval(score, math.nan, math.nan, level),
        null_mean=math.nan,
        pvalue=math.nan,
        null="nothing",
        sets=tuple(sets),
        values=values,
        cells=cells,
        empty=cells - np.array(there, dtype=np.int64),
        models=len(gaps),
        mode="pgdl",
        orientation=orientation,
        warnings=tuple(notes),
    )


def _check(
    measure: ArrayLike, gap: ArrayLike, hyperparameters: Mapping[str, Any], mode: str, orientation: int | None
) -> tuple[FloatArray, FloatArray, dict[str, NDArray[Any]]]:
    if mode not in MODES:
        raise InputError(f"mode={mode!r}: use one of {', '.join(map(repr, MODES))}.")
    if orientation not in (None, 1, -1) or isinstance(orientation, bool):
        raise InputError(
            f"orientation={orientation!r}: use 1 if more should mean a larger gap, -1 if a smaller "
            "one, None if neither is claimed."
        )
    values, gaps = as_floats(measure, "measure"), as_floats(gap, "gap")
    if values.ndim != 1 or values.shape != gaps.shape:
        raise InputError(
            f"measure has shape {values.shape} and gap {gaps.shape}: give a number for each model in both."
        )
    for name, array in (("measure", values), ("gap", gaps)):
        if not np.isfinite(array).all():
            raise InputError(
                f"{name} holds {int((~np.isfinite(array)).sum())} value(s) that are NaN or "
                "infinite: leave those models out of all columns, and say so."
            )
    if len(values) < 2:
        raise InputError(f"measure has {len(values)} value(s): it takes two models to compare.")
    columns = as_columns(hyperparameters, len(values))
    if mode == "pgdl" and len(columns) < 2:
        raise InputError(
            f"mode='pgdl' holds two hyperparameters at a time, and there are {len(columns)}: add a "
            "constant one, as the competition did, or use mode='corrected'."
        )
    return values, gaps, columns


def warn(notes: Sequence[str]) -> None:
    """Tell the user, who called what calls this."""
    for text in notes:
        warnings.warn(text, CurvewiseWarning, stacklevel=3)


# Conditional mutual information of several measures on one corpus: value, chance and spread.

HELD = 2**19  # pairs of models times versions of the corpus that are held at once
CHANCE_DRAWS = 99
FEWEST = 4  # models for an interval
_UNDIRECTED = np.zeros(1, dtype=np.bool_)


@dataclass(frozen=True, eq=False)
class Prepared:
    """What does not depend on the measures.

    Attributes
    ----------
    gap : ndarray, shape (models,)
    sets : list of PairCells
        The sets of hyperparameters that leave something to tell about the gap.
    skipped : list of PairCells
        Those that leave nothing.
    wanted : int
        How many hyperparameters should be held at a time.
    """

    gap: FloatArray
    sets: list[PairCells]
    skipped: list[PairCells]
    wanted: int

    def notes(self) -> list[str]:
        """What may be worth knowing of the sets."""
        empty, cells = sum(s.empty for s in self.sets), sum(s.possible for s in self.sets)
        found = []
        if self.sets and len(self.sets[0].names) == self.wanted and self.skipped:
            found.append(f"{len(self.skipped)} set(s) of hyperparameters leave nothing to tell.")
        if empty:
            found.append(f"{empty} of {cells} cells hold no pair of models and are left out.")
        return found

    def alarms(self) -> list[str]:
        """What the user should know of the sets."""
        if not self.sets:
            return ["All gaps are equal: there is nothing to tell about them."]
        size = len(self.sets[0].names)
        if size == self.wanted:
            return []
        return [
            f"With {self.wanted} hyperparameters held at a time no cell has pairs whose gaps "
            f"differ in sign: {size or 'none'} is held instead."
        ]


def prepare(gap: FloatArray, codes: dict[str, Codes], given: int) -> Prepared:
    """Sort pairs into cells for each set of ``given`` hyperparameters.

    Where no such set leaves anything to tell (every cell has a single pair, say), smaller ones
    are taken.
    """
    if not isinstance(given, int) or isinstance(given, bool) or given < 0:
        raise InputError(f"given={given!r}: give a number of hyperparameters, such as 2.")
    skipped: list[PairCells] = []
    wanted = min(given, len(codes))
    for size in range(wanted, -1, -1):
        useful: list[PairCells] = []
        for cells in cells_of_sets(codes, size, len(gap)):
            told = information(cells, gap[None], _UNDIRECTED, gap_outcomes(cells, gap[:, None]))
            (useful if np.isfinite(told).all() else skipped).append(cells)
        if useful:
            return Prepared(gap, useful, skipped, wanted)
    return Prepared(gap, [], skipped, wanted)


@dataclass(frozen=True, eq=False)
class Scored:
    """Scores of several measures.

    Attributes
    ----------
    values : ndarray, shape (sets, measures)
        The share that each measure tells given each set.
    left_out : ndarray, shape (measures, models), optional
        The score with each of the models left out.
    dealt : ndarray, shape (measures, draws), optional
        The score with gaps that hang together with nothing but the hyperparameters.
    chance : ndarray, shape (measures,)
        How much of the score of a measure without a direction is chance; 0 with a direction.
    directed : ndarray of bool, shape (measures,)
    """

    values: FloatArray
    left_out: FloatArray | None
    dealt: FloatArray | None
    chance: FloatArray
    directed: NDArray[np.bool_]

    @property
    def score(self) -> FloatArray:
        """The smallest value over the sets."""
        least: FloatArray = self.values.min(axis=0, initial=np.inf)
        return np.where(np.isinf(least), np.nan, least)

    def centre(self, which: int) -> float:
        """The score of one measure less what is chance; NaN where chance alone tells all."""
        chance = float(self.chance[which])
        return (float(self.score[which]) - chance) / (1 - chance) if chance < 1 else math.nan

    def error(self, which: int) -> float:
        """Standard error of the score of one measure."""
        return math.nan if self.left_out is None else jackknife_error(self.left_out[which])

    def interval(self, which: int, level: float) -> Interval:
        """Interval of the score of one measure in a corpus without end."""
        free = math.nan if self.left_out is None else self.left_out.shape[1] - 1
        half = float(stdtrit(free, 0.5 + level / 2)) * self.error(which)
        score, floor = float(self.score[which]), -1.0 if self.directed[which] else 0.0
        return clipped(score, self.centre(which) - half, score + half, level, floor)

    def null_mean(self, which: int) -> float:
        """Mean score by hyperparameters alone."""
        if self.dealt is None:
            return math.nan
        known = self.dealt[which][~np.isnan(self.dealt[which])]
        return float(known.mean()) if len(known) else math.nan

    def pvalue(self, which: int) -> float:
        """How often hyperparameters alone give a score as high."""
        return math.nan if self.dealt is None else tail(self.dealt[which], self.score[which])


def score_measures(
    prepared: Prepared,
    measures: FloatArray,
    directed: NDArray[np.bool_],
    gaps: FloatArray | None,
    rng: np.random.Generator,
) -> Scored:
    """Score oriented measures of shape (measures, models), ``gaps`` of (models, draws) dealt."""
    sets, gap = prepared.sets, prepared.gap
    if not sets:
        return Scored(np.empty((0, len(measures))), None, None, np.zeros(len(measures)), directed)
    whole = [information(s, measures, directed, gap_outcomes(s, gap[:, None])) for s in sets]
    values = np.concatenate(whole, axis=1).T
    left_out = dealt = None
    if len(gap) >= FEWEST:
        models = np.arange(len(gap))
        left_out = _lowest(
            prepared, (measures, directed), lambda cells, some: left_out_outcomes(cells, gap, models[some]), len(gap)
        )
    if gaps is not None and gaps.shape[1]:
        other = dense_ranks(gaps)
        dealt = _lowest(
            prepared, (measures, directed), lambda cells, some: gap_outcomes(cells, other[:, some]), gaps.shape[1]
        )
    chance = np.zeros(len(measures))
    for m in np.flatnonzero(~directed):
        chance[m] = _chance(sets[int(values[:, m].argmin())], measures[m], gap, rng)
    return Scored(values, left_out, dealt, chance, directed)


def clipped(score: float, low: float, high: float, level: float, floor: float) -> Interval:
    """An interval within what a score can be; down to the floor where chance alone tells all."""
    if math.isnan(low) and not math.isnan(high):
        low = floor
    return Interval(score, float(np.clip(low, floor, 1.0)), float(np.clip(high, floor, 1.0)), level)


def tail(draws: FloatArray, seen: float) -> float:
    """Share of draws as high as what was seen, which is counted among them.

    Draws without a score do not count; NaN where none has one, or nothing was seen.
    """
    known = draws[~np.isnan(draws)]
    if math.isnan(seen) or not len(known):
        return math.nan
    return (1 + int((known >= seen - 1e-9).sum())) / (1 + len(known))


def jackknife_error(left_out: FloatArray) -> float:
    """Standard error from values with each model left out in turn."""
    n = len(left_out)
    return math.sqrt((n - 1) / n * float(((left_out - left_out.mean()) ** 2).sum()))


def _lowest(
    prepared: Prepared,
    of: tuple[FloatArray, NDArray[np.bool_]],
    outcomes: Callable[[PairCells, slice], Outcomes],
    versions: int,
) -> FloatArray:
    """The smallest share over the sets, in versions of the corpus, some at a time."""
    chunk = max(1, HELD // len(prepared.sets[0].first))
    scores = []
    for start in range(0, versions, chunk):
        some = slice(start, start + chunk)
        scores.append(reduce(np.fmin, (information(s, *of, outcomes(s, some)) for s in prepared.sets)))
    return np.concatenate(scores, axis=1)


def _chance(cells: PairCells, measure: FloatArray, gap: FloatArray, rng: np.random.Generator) -> float:
    """What a measure without a direction gets by chance: gaps dealt anew within the groups."""
    order = np.argsort(cells.groups, kind="stable")
    gaps = np.empty((len(gap), CHANCE_DRAWS))
    for draw in range(CHANCE_DRAWS):
        gaps[order, draw] = gap[np.lexsort((rng.random(len(gap)), cells.groups))]
    return float(information(cells, measure[None], _UNDIRECTED, gap_outcomes(cells, gaps)).mean())


# Conditional mutual information as the program of the PGDL competition (2020) computes it.

TINY = 1e-12  # what the program adds to probabilities before it takes their logarithm
LARGEST = 2**23  # pairs of models times measures that are held at once


def pgdl_scores(
    measures: FloatArray, gap: FloatArray, hyperparameters: Mapping[str, NDArray[Any]]
) -> dict[tuple[str, str], FloatArray]:
    """The value of every ordered pair of hyperparameters, for several measures at once.

    All ordered pairs of models count, each with itself included; a difference is positive or it is
    not, so that ties fall to one side. A cell is named by the text of its four values, written one
    after the other without anything between; where two cells get one name, or a cell holds no
    pair, the program divides nothing by nothing, and the value is NaN.

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
    if len(measures) > 1 and measures.size * len(gap) > LARGEST:
        half = len(measures) // 2
        parts = [pgdl_scores(m, gap, hyperparameters) for m in (measures[:half], measures[half:])]
        return {k: np.concatenate([part[k] for part in parts]) for k in parts[0]}
    larger = gap[:, None] > gap[None, :]
    higher = measures[:, :, None] > measures[:, None, :]
    words = {k: [str(v) for v in column.tolist()] for k, column in hyperparameters.items()}
    found: dict[tuple[str, str], FloatArray] = {}
    for one, two in permutations(words, 2):
        if _collide(words[one], words[two]):
            found[one, two] = np.full(len(measures), np.nan)
        elif (two, one) in found and not np.isnan(found[two, one]).all():
            found[one, two] = found[two, one]
        else:
            found[one, two] = _ratio(larger, higher, words[one], words[two])
    return found


def lowest(values: Mapping[tuple[str, str], FloatArray], measures: int) -> FloatArray:
    """The smallest value of each measure over the pairs whose value is a number; NaN if none is."""
    if not values:
        return np.full(measures, np.nan)
    stacked = np.stack(list(values.values()))
    known = ~np.isnan(stacked)
    least = np.where(known, stacked, np.inf).min(axis=0)
    return np.where(known.any(axis=0), least, np.nan)


def skipped_note(skipped: list[str]) -> list[str]:
    """What to say of pairs of hyperparameters without a value."""
    if not skipped:
        return []
    more = " …" if len(skipped) > 4 else ""
    return [
        f"{len(skipped)} pair(s) of hyperparameters have no value, because a cell holds no pair of "
        f"models or two cells have one name, and are skipped: {', '.join(skipped[:4])}{more}."
    ]


def _collide(one: list[str], two: list[str]) -> bool:
    """Whether two cells get one name."""
    a, b = ([v + w for v in set(words) for w in set(words)] for words in (one, two))
    return len({x + y for x in a for y in b}) < len(a) * len(b)


def _ratio(larger: NDArray[np.bool_], higher: NDArray[np.bool_], one: list[str], two: list[str]) -> FloatArray:
    """Mean information over the cells by their mean entropy."""
    values = [np.unique(words, return_inverse=True)[1] for words in (one, two)]
    sizes = [int(v.max()) + 1 for v in values]
    group = values[0] * sizes[1] + values[1]
    groups = sizes[0] * sizes[1]
    belongs = np.eye(groups)[group].T

    def count(pairs: NDArray[np.bool_]) -> FloatArray:
        counts: FloatArray = belongs @ pairs.astype(np.float64) @ belongs.T
        return counts

    all_pairs = count(np.ones_like(larger))
    if (all_pairs == 0).any():
        return np.full(len(higher), np.nan)
    p = count(larger) / all_pairs
    entropy = -(p * np.log2(p + TINY) + (1 - p) * np.log2(1 - p + TINY))
    told = np.zeros((len(higher), groups, groups))
    for up in (larger, ~larger):
        for more in (higher, ~higher):
            told += _term(count(up & more), count(up), count(more), all_pairs)
    ratio: FloatArray = told.mean(axis=(-2, -1)) / entropy.mean()
    return ratio


def _term(both: FloatArray, one: FloatArray, two: FloatArray, total: FloatArray) -> FloatArray:
    """What one of the four outcomes adds to the information, in bits."""
    there = both > 0
    lift = np.where(there, both * total, 1.0) / np.where(there, one * two, 1.0)
    term: FloatArray = both / total * np.log2(lift)
    return term
