"""Conditional mutual information of several measures on one corpus: value, chance and spread."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from curvewise.errors import InputError
from curvewise.response._cells import (
    Codes,
    Outcomes,
    PairCells,
    cells_of_sets,
    gap_outcomes,
    information,
    left_out_outcomes,
)
from curvewise.response._ranks import dense_ranks
from curvewise.types import FloatArray, Interval

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
            prepared,
            (measures, directed),
            lambda cells, some: left_out_outcomes(cells, gap, models[some]),
            len(gap),
        )
    if gaps is not None and gaps.shape[1]:
        other = dense_ranks(gaps)
        dealt = _lowest(
            prepared,
            (measures, directed),
            lambda cells, some: gap_outcomes(cells, other[:, some]),
            gaps.shape[1],
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
        scores.append(
            reduce(np.fmin, (information(s, *of, outcomes(s, some)) for s in prepared.sets))
        )
    return np.concatenate(scores, axis=1)


def _chance(
    cells: PairCells, measure: FloatArray, gap: FloatArray, rng: np.random.Generator
) -> float:
    """What a measure without a direction gets by chance: gaps dealt anew within the groups."""
    order = np.argsort(cells.groups, kind="stable")
    gaps = np.empty((len(gap), CHANCE_DRAWS))
    for draw in range(CHANCE_DRAWS):
        gaps[order, draw] = gap[np.lexsort((rng.random(len(gap)), cells.groups))]
    return float(information(cells, measure[None], _UNDIRECTED, gap_outcomes(cells, gaps)).mean())
