"""Pairs of models sorted into cells, and the information that measures give there.

A cell holds the pairs whose two models have given values of some hyperparameters: with depth and
width, the pairs of a (2, 64) model with a (4, 32) one. In it, the sign of the difference of a
measure is compared with the sign of the difference of the gap.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from curvewise.errors import InputError
from curvewise.response.load import mixed_array
from curvewise.stats.correlation import average_ranks
from curvewise.types.units import FloatArray

Codes = NDArray[np.int64]
Single = NDArray[np.float32]
Counts = NDArray[np.signedinteger[Any]]


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
        In so many cells, which come first, both models are of one group. Such a pair counts in
        both orders.
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
        """A pair of different groups makes two cells, one the mirror image of the other."""
        return np.where(np.arange(len(self.starts)) < self.inside, 1.0, 2.0)

    @property
    def empty(self) -> int:
        """How many of the possible cells hold no pair."""
        return self.possible - int(self.weight.sum())


def cells_of_sets(codes: dict[str, Codes], size: int, count: int) -> list[PairCells]:
    """Cells of each set of so many hyperparameters, given as whole numbers from 0."""
    return [pair_cells({k: codes[k] for k in names}, count) for names in combinations(codes, size)]


def pair_cells(codes: dict[str, Codes], count: int) -> PairCells:
    """Sort all pairs of ``count`` models into cells."""
    combined = np.zeros(count, dtype=np.int64)
    levels = 1
    for column in codes.values():
        size = int(column.max()) + 1
        combined = combined * size + column
        levels *= size
    groups = np.unique(combined, return_inverse=True)[1].reshape(-1)
    first, second = np.triu_indices(count, 1)
    swap = groups[first] > groups[second]
    first, second = np.where(swap, second, first), np.where(swap, first, second)
    many = int(groups.max(initial=0)) + 1
    cell = groups[first] * many + groups[second] + many**2 * (groups[first] != groups[second])
    order = np.argsort(cell, kind="stable")
    first, second, cell = first[order], second[order], cell[order]
    starts = np.flatnonzero(np.concatenate([[len(cell) > 0], np.diff(cell) > 0]))
    inside = int((cell[starts] < many**2).sum())
    return PairCells(tuple(codes), groups, first, second, starts, inside, levels**2)


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Which of two models has the larger gap, in many versions of a corpus.

    Attributes
    ----------
    larger, differ : ndarray, shape (pairs, versions)
        Weight of a pair where the first model's gap is larger, and where the two differ at all.
        ``differ`` may have one column that stands for all versions.
    """

    larger: Single
    differ: Single


def gap_outcomes(cells: PairCells, gaps: NDArray[Any]) -> Outcomes:
    """Outcomes of gaps, or of their ranks, of shape (models, versions)."""
    one, two = gaps[cells.first], gaps[cells.second]
    differ = one != two
    if differ.all():
        differ = differ[:, :1]
    return Outcomes((one > two).astype(np.float32), differ.astype(np.float32))


def left_out_outcomes(cells: PairCells, gap: FloatArray, models: Codes) -> Outcomes:
    """Outcomes with each of some models left out in turn."""
    there = (cells.first[:, None] != models) & (cells.second[:, None] != models)
    whole = gap_outcomes(cells, gap[:, None])
    kept = there.astype(np.float32)
    return Outcomes(whole.larger * kept, whole.differ * kept)


def information(cells: PairCells, measures: FloatArray, directed: NDArray[np.bool_], outcomes: Outcomes) -> FloatArray:
    """Share of what there is to know about the gap's sign that each measure tells.

    Parameters
    ----------
    measures : ndarray, shape (measures, models)
        Oriented: higher should mean a larger gap.
    directed : ndarray of bool, shape (measures,)
        Whether the information of a cell counts as negative where it runs against that.

    Returns
    -------
    ndarray, shape (measures, versions)
        Mean information over the cells by mean entropy; NaN where there is no entropy.
    """
    one, two = measures[:, cells.first], measures[:, cells.second]
    higher, differ = (one > two).astype(np.float32), (one != two).astype(np.float32)
    if differ.all():
        differ = differ[:1]
    left = np.concatenate([higher, differ, np.ones((1, higher.shape[1]), dtype=np.float32)])
    right = np.concatenate([outcomes.larger, outcomes.differ], axis=1)
    sums = _cell_sums(left, right, cells.starts)
    m, v = len(higher), outcomes.larger.shape[1]
    table = _Table(
        both=sums[:m, :, :v],
        higher=sums[:m, :, v:],
        larger=sums[m:-1, :, :v],
        untied=sums[m:-1, :, v:],
        all_larger=sums[-1:, :, :v],
        pairs=sums[-1:, :, v:],
    )
    return _share(table, cells, directed)


@dataclass(frozen=True, eq=False)
class _Table:
    """Counts of shape (measures, cells, versions), any of which may be 1 for all."""

    both: Counts
    higher: Counts
    larger: Counts
    untied: Counts
    all_larger: Counts
    pairs: Counts

    def part(self, cells: slice) -> _Table:
        """Some of the cells."""
        return _Table(*(getattr(self, f.name)[:, cells] for f in fields(self)))


def _cell_sums(left: Single, right: Single, starts: Codes) -> Counts:
    """Products of two sets of pair weights, added up in each cell."""
    ends = np.append(starts[1:], left.shape[1])
    sums = np.empty((len(left), len(starts), right.shape[1]), dtype=np.float32)
    for cell, (start, end) in enumerate(zip(starts, ends, strict=True)):
        sums[:, cell] = left[:, start:end] @ right[start:end]
    largest = int((ends - starts).max(initial=0))
    return sums.astype(np.int32 if largest < 2**15 else np.int64)  # products of two must fit


def _share(table: _Table, cells: PairCells, directed: NDArray[np.bool_]) -> FloatArray:
    weight = cells.weight
    logs = _XLogX(int(table.pairs.max(initial=0)))
    top = bottom = 0.0
    for part, tell in ((slice(cells.inside), _inside), (slice(cells.inside, None), _between)):
        told, known, sign = tell(table.part(part), logs)
        np.maximum(told, 0.0, out=told)
        if directed.all():
            told *= sign
        elif directed.any():
            told = np.where(directed[:, None, None], told * sign, told)
        by_pair = weight[part][:, None] / np.maximum(table.pairs[0, part], 1)
        top = top + (told * by_pair).sum(axis=1)
        bottom = bottom + (known * by_pair).sum(axis=1)
    share: FloatArray = top / np.where(bottom > 1e-9, bottom, np.nan)
    return share


def _inside(t: _Table, logs: _XLogX) -> tuple[FloatArray, FloatArray, Counts]:
    """Information and entropy in bits times pairs, and the sign of the association.

    A pair of one group counts in both orders, so that each sign of the gap is as likely as the
    other and only agreement matters. Pairs with tied gaps are nowhere; those with a tied measure
    tell nothing, but their gap's sign was there to be told.
    """
    agree = t.untied - t.higher - t.larger + 2 * t.both
    told = logs(agree) + logs(t.untied - agree) + (t.untied - logs(t.untied))
    return told, t.pairs.astype(np.float64), np.sign(2 * agree - t.untied)


def _between(t: _Table, logs: _XLogX) -> tuple[FloatArray, FloatArray, Counts]:
    """The same for pairs of different groups."""
    a, b, c = t.both, t.higher - t.both, t.larger - t.both
    d = (t.untied - t.higher) - c
    told = logs(a)
    told += logs(b)
    told += logs(c)
    told += logs(d)
    told += logs(t.untied) - logs(t.higher) - logs(t.untied - t.higher)
    told -= logs(t.larger) + logs(t.untied - t.larger)
    known = logs(t.pairs) - logs(t.all_larger) - logs(t.pairs - t.all_larger)
    return told, known, np.sign(a * d - b * c)


class _XLogX:
    """x · log2 x of whole numbers up to a largest one, looked up."""

    def __init__(self, largest: int) -> None:
        x = np.arange(largest + 1, dtype=np.float64)
        x[1:] *= np.log2(x[1:])
        self.values = x

    def __call__(self, counts: Counts) -> FloatArray:
        found: FloatArray = self.values.take(counts, mode="clip")
        return found


# Hyperparameters of any kind as whole numbers, and gaps without what they explain.


def as_columns(hyperparameters: Mapping[str, Any], count: int) -> dict[str, NDArray[Any]]:
    """Check that each hyperparameter has a value for each model."""
    if not isinstance(hyperparameters, Mapping):
        raise InputError(
            f"hyperparameters is a {type(hyperparameters).__name__}: give a dict of columns, such "
            "as {'depth': [2, 2, 4], 'rate': [0.1, 0.01, 0.1]}."
        )
    found = {}
    for name, values in hyperparameters.items():
        column = values if isinstance(values, np.ndarray) else mixed_array(values)
        if column.shape != (count,):
            raise InputError(
                f"hyperparameters[{name!r}] has shape {column.shape} for {count} models: give one value for each."
            )
        found[str(name)] = column
    return found


def value_codes(column: NDArray[Any]) -> Codes:
    """Number the different values of a column in order of first appearance.

    >>> value_codes(np.array([None, "a", 2, 2.0, None, float("nan")], dtype=object)).tolist()
    [0, 1, 2, 2, 0, 3]
    """
    known: dict[Any, int] = {}
    codes = [known.setdefault(_key(value), len(known)) for value in column.tolist()]
    return np.array(codes, dtype=np.int64)


def _key(value: Any) -> Any:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "nan" if value != value else float(value)
    return type(value).__name__, str(value)


class Varied(NamedTuple):
    """Hyperparameters as numbers: those that differ between models, and what is odd about them."""

    codes: dict[str, Codes]
    constant: list[str]
    continuous: list[str]

    def notes(self) -> list[str]:
        """What may be worth knowing."""
        if not self.constant:
            return []
        return [f"{_listed(self.constant)} has one value only and is left out."]

    def alarms(self) -> list[str]:
        """What is likely a mistake."""
        if not self.continuous:
            return []
        return [
            f"{_listed(self.continuous)} has nearly as many values as there are models, so that "
            "few pairs of models share them: leave it out, or put its values into a few bins."
        ]


def varied(columns: Mapping[str, NDArray[Any]]) -> Varied:
    """Number the values of hyperparameters, leaving out those with one value only."""
    codes = {name: value_codes(column) for name, column in columns.items()}
    constant = [name for name, column in codes.items() if column.max(initial=0) == 0]
    many = [name for name, column in codes.items() if _like_continuous(column)]
    return Varied({k: v for k, v in codes.items() if k not in constant}, constant, many)


def _like_continuous(codes: Codes) -> bool:
    values = int(codes.max(initial=0)) + 1
    return values > 5 and len(codes) < 3 * values


def _listed(names: list[str]) -> str:
    return "hyperparameter " + ", ".join(map(repr, names[:5])) + (" …" if len(names) > 5 else "")


def shuffled_gaps(
    gap: FloatArray, codes: Mapping[str, Codes], draws: int, rng: np.random.Generator
) -> tuple[FloatArray | None, str]:
    """Gaps that hang together with the hyperparameters as they do, and with nothing else.

    Gaps are brought to normal scores, since only their order counts. A least-squares fit of these
    by all hyperparameters stays, with two-way interactions where that leaves half of the freedom;
    what it leaves over is dealt anew.

    Returns
    -------
    gaps : ndarray, shape (models, draws), optional
        None where the hyperparameters leave nothing over.
    what : str
        Which effects stay.
    """
    scores = normal_scores(gap)
    for interactions in (True, False):
        design = _design(codes, len(gap), interactions)
        basis, sizes, _ = np.linalg.svd(design, full_matrices=False)
        basis = basis[:, sizes > 1e-10 * sizes[0]]
        free = len(gap) - basis.shape[1]
        if free >= (len(gap) / 2 if interactions else 1):
            fitted = basis @ (basis.T @ scores)
            rest = np.tile(scores - fitted, (draws, 1))
            dealt: FloatArray = fitted[:, None] + rng.permuted(rest, axis=1).T
            return dealt, "effects and two-way interactions" if interactions else "effects"
    return None, "nothing"


def _design(codes: Mapping[str, Codes], count: int, interactions: bool) -> FloatArray:
    each = [np.eye(int(c.max(initial=0)) + 1)[c][:, 1:] for c in codes.values()]
    columns = [np.ones((count, 1)), *each]
    if interactions:
        for one, two in combinations(each, 2):
            columns.append((one[:, :, None] * two[:, None, :]).reshape(count, -1))
    return np.concatenate(columns, axis=1)


# Ranks of numbers.


def normal_scores(values: FloatArray) -> FloatArray:
    """Quantiles of the normal distribution in the order of the values.

    >>> normal_scores(np.array([1.0, 2.0, 900.0])).round(3)
    array([-0.967,  0.   ,  0.967])
    """
    scores: FloatArray = ndtri((average_ranks(values) - 0.5) / len(values))
    return scores


def dense_ranks(columns: FloatArray) -> NDArray[np.int16 | np.int32]:
    """The order of the numbers in each column, in small whole numbers that are quick to compare.

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
