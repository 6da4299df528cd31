"""Pairs of models in cells of equal hyperparameters, and the information that measures give there.

A cell holds the pairs whose two models have given values of some hyperparameters: with depth and width, the pairs of a
(2, 64) model with a (4, 32) one. In it, the sign of the difference of a measure is compared with the sign of the
difference of the gap.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from curvewise.stats.correlation import average_ranks
from curvewise.types.results import FloatArray

Codes = NDArray[np.int64]
Single = NDArray[np.float32]
Counts = NDArray[np.signedinteger[Any]]


def value_codes(column: NDArray[Any]) -> Codes:
    """Number the different values of a column in order of first appearance.

    >>> value_codes(np.array([None, "a", 2, 2.0, None, float("nan")], dtype=object)).tolist()
    [0, 1, 2, 2, 0, 3]
    """
    known: dict[Any, int] = {}

    def key(value: Any) -> Any:
        # 2 and 2.0 are one value, True and 1 are two; NaN equals itself here, which == denies.
        if isinstance(value, int | float) and not isinstance(value, bool):
            return "nan" if value != value else float(value)
        return type(value).__name__, str(value)

    return np.array([known.setdefault(key(value), len(known)) for value in column.tolist()], dtype=np.int64)


class VariedHyperparameters(NamedTuple):
    """Hyperparameters that differ between models as codes, and the names of the unusual ones.

    ``constant`` have a single value; ``continuous`` nearly as many values as there are models.
    """

    codes: dict[str, Codes]
    constant: list[str]
    continuous: list[str]

    @classmethod
    def of(cls, columns: Mapping[str, NDArray[Any]]) -> VariedHyperparameters:
        """Number the values of hyperparameters and leave out those with one value only."""
        codes = {name: value_codes(column) for name, column in columns.items()}
        levels = {name: int(column.max(initial=0)) + 1 for name, column in codes.items()}
        constant = [name for name, count in levels.items() if count == 1]
        # Five values are few whatever the corpus; above that, with fewer than three models a value, few pairs share
        # one.
        many = [name for name, count in levels.items() if count > 5 and len(codes[name]) < 3 * count]
        return cls({k: v for k, v in codes.items() if k not in constant}, constant, many)

    def notes(self) -> list[str]:
        """Return remarks that need no action."""
        return [f"{_listed(self.constant)} has one value only and is left out."] if self.constant else []

    def alarms(self) -> list[str]:
        """Return warnings about likely mistakes."""
        if not self.continuous:
            return []
        return [
            f"{_listed(self.continuous)} has nearly as many values as there are models, so few pairs of models share "
            "them: leave it out, or put its values into a few bins."
        ]


def _listed(names: list[str]) -> str:
    return "hyperparameter " + ", ".join(map(repr, names[:5])) + (" …" if len(names) > 5 else "")


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
        In so many cells, which come first, both models are of one group. Such a pair counts in both orders.
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
    many = int(groups.max(initial=0)) + 1
    # Cells of one group get the lowest numbers, so that a slice separates them from the others.
    cell = groups[first] * many + groups[second] + many**2 * (groups[first] != groups[second])
    order = np.argsort(cell, kind="stable")
    first, second, cell = first[order], second[order], cell[order]
    starts = np.flatnonzero(np.concatenate([[len(cell) > 0], np.diff(cell) > 0]))
    inside = int((cell[starts] < many**2).sum())
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
    higher, differ = (one > two).astype(np.float32), (one != two).astype(np.float32)
    if differ.all():
        differ = differ[:1]
    # All counts of a cell in one product of matrices: single precision is exact for whole numbers below 2**24.
    left = np.concatenate([higher, differ, np.ones((1, higher.shape[1]), dtype=np.float32)])
    right = np.concatenate([order.larger, order.differ], axis=1)
    ends = np.append(cells.starts[1:], left.shape[1])
    sums = np.empty((len(left), len(cells.starts), right.shape[1]), dtype=np.float32)
    for cell, (start, end) in enumerate(zip(cells.starts, ends, strict=True)):
        sums[:, cell] = left[:, start:end] @ right[start:end]
    largest = int((ends - cells.starts).max(initial=0))
    counts: Counts = sums.astype(np.int32 if largest < 2**15 else np.int64)  # products of two counts must fit
    m, v = len(higher), order.larger.shape[1]
    table = _PairCounts(
        both=counts[:m, :, :v],
        higher=counts[:m, :, v:],
        larger=counts[m:-1, :, :v],
        untied=counts[m:-1, :, v:],
        all_larger=counts[-1:, :, :v],
        pairs=counts[-1:, :, v:],
    )
    logs = _XLogX(int(table.pairs.max(initial=0)))
    top = bottom = 0.0
    for part, measured in ((slice(cells.inside), _inside), (slice(cells.inside, None), _between)):
        told, known, sign = measured(table.part(part), logs)
        np.maximum(told, 0.0, out=told)  # rounding may leave it a little below
        if directed.all():
            told *= sign
        elif directed.any():
            told = np.where(directed[:, None, None], told * sign, told)
        by_pair = cells.weight[part][:, None] / np.maximum(table.pairs[0, part], 1)
        top = top + (told * by_pair).sum(axis=1)
        bottom = bottom + (known * by_pair).sum(axis=1)
    # Means over cells, not over pairs: a large cell counts as much as a small one.
    share: FloatArray = top / np.where(bottom > 1e-9, bottom, np.nan)
    return share


@dataclass(frozen=True, eq=False)
class _PairCounts:
    """Counts of shape (measures, cells, versions), any of which may be 1 for all."""

    both: Counts
    higher: Counts
    larger: Counts
    untied: Counts
    all_larger: Counts
    pairs: Counts

    def part(self, cells: slice) -> _PairCounts:
        """Select some of the cells."""
        return _PairCounts(*(getattr(self, f.name)[:, cells] for f in fields(self)))


def _inside(t: _PairCounts, logs: _XLogX) -> tuple[FloatArray, FloatArray, Counts]:
    """Information and entropy in bits times pairs, and the sign of the association.

    A pair of one group counts in both orders, so each sign of the gap is as likely as the other and only agreement
    matters. Pairs with tied gaps are left out; those with a tied measure give no information, but their gap's sign
    belongs to the entropy.
    """
    agree = t.untied - t.higher - t.larger + 2 * t.both
    told = logs(agree) + logs(t.untied - agree) + (t.untied - logs(t.untied))
    return told, t.pairs.astype(np.float64), np.sign(2 * agree - t.untied)


def _between(t: _PairCounts, logs: _XLogX) -> tuple[FloatArray, FloatArray, Counts]:
    """Return the same as :func:`_inside` for pairs of different groups."""
    a, b, c = t.both, t.higher - t.both, t.larger - t.both
    d = (t.untied - t.higher) - c
    # n times the mutual information of a 2×2 table: Σ n_ij log n_ij + n log n − Σ n_i· log n_i· − Σ n_·j log n_·j.
    told = logs(a)
    for count in (b, c, d):
        told += logs(count)
    told += logs(t.untied) - logs(t.higher) - logs(t.untied - t.higher)
    told -= logs(t.larger) + logs(t.untied - t.larger)
    known = logs(t.pairs) - logs(t.all_larger) - logs(t.pairs - t.all_larger)
    return told, known, np.sign(a * d - b * c)


class _XLogX:
    """x · log2 x of whole numbers up to a largest one, looked up, which is faster than computing it."""

    def __init__(self, largest: int) -> None:
        x = np.arange(largest + 1, dtype=np.float64)
        x[1:] *= np.log2(x[1:])
        self.values = x

    def __call__(self, counts: Counts) -> FloatArray:
        found: FloatArray = self.values.take(counts, mode="clip")
        return found
