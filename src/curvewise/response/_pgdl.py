"""Conditional mutual information as the program of the PGDL competition (2020) computes it."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvewise.types import FloatArray

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


def _ratio(
    larger: NDArray[np.bool_], higher: NDArray[np.bool_], one: list[str], two: list[str]
) -> FloatArray:
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
