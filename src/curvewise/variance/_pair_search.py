"""The search through counts of common errors, tile by tile, in bounded memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from curvewise.stats import benjamini_hochberg, holm
from curvewise.types import FloatArray, Interval
from curvewise.variance._bits import IntArray
from curvewise.variance._hypergeometric import FisherTest
from curvewise.variance._pair_counts import CountTile

MOST = 2_000_000
"""Candidates held at once; beyond them pairs are judged one by one, by Bonferroni's rule."""

SCREEN = 3.0
"""Deviations of fewer standard errors count as p = 1, which keeps every adjustment valid."""


@dataclass(frozen=True, eq=False)
class Found:
    """Dependent pairs, the largest deviation first.

    ``i`` and ``j`` are places among the examples searched, ``counts`` runs in which both fail,
    ``dependent`` how many there are in all, ``threshold`` the p-value up to which a pair counts,
    ``coarse`` whether Bonferroni's rule had to do.
    """

    i: IntArray
    j: IntArray
    counts: IntArray
    pvalues: FloatArray
    adjusted: FloatArray
    dependent: int
    threshold: float
    coarse: bool


class PairSearch:
    """Collects pairs that deviate from independence.

    Parameters
    ----------
    wrong : ndarray of int64
        Runs in which each example that is searched fails.
    runs, examples : int
        All runs and all examples, searched or not: adjustments are for all pairs of them.
    min_effect, level, multiplicity
        As in ``measure_dependent_pairs``.
    """

    def __init__(
        self,
        wrong: IntArray,
        runs: int,
        examples: int,
        min_effect: float,
        level: float,
        multiplicity: str,
    ) -> None:
        self.wrong, self.runs = wrong, runs
        self.min_effect, self.multiplicity = min_effect, multiplicity
        self.tests = examples * (examples - 1) // 2
        self.deviating = 0
        self._alpha = 1 - level
        self._fisher = FisherTest(runs)
        self._held: list[tuple[IntArray, IntArray, IntArray]] = []
        self._size = 0
        self._settled = 0
        self._coarse = False

    def add(self, i0: int, j0: int, counts: CountTile, limit: int) -> None:
        """Take in the counts of a tile: examples from i0 on with examples from j0 on."""
        rows = self.wrong[i0 : i0 + counts.shape[0]]
        columns = self.wrong[j0 : j0 + counts.shape[1]]
        gap = counts * float(self.runs)  # exact: whole numbers below 2^53
        gap -= rows[:, None] * columns.astype(np.float64)
        np.abs(gap, out=gap)
        off = gap >= self.min_effect * self.runs**2 * (1 - 1e-12)
        if i0 == j0:
            off = np.triu(off, k=1)
        i, j = np.nonzero(off)
        if not len(i):
            return
        self.deviating += len(i)
        a, b = rows[i].astype(np.float64), columns[j].astype(np.float64)
        spread = a * (self.runs - a) * b * (self.runs - b) / (self.runs - 1)
        far = gap[i, j] ** 2 >= SCREEN**2 * spread
        i, j = i[far], j[far]
        self._held.append((i + i0, j + j0, counts[i, j].astype(np.int64)))
        self._size += len(i)
        if self._size > MOST:
            self._settle(limit)

    def finish(self, limit: int) -> Found:
        """Adjust the p-values and keep the pairs that count."""
        if self._coarse:
            self._settle(limit)
        i, j, counts = self._joined()
        p = self._pvalues(i, j, counts)
        if self._coarse:
            adjusted = np.minimum(1.0, p * self.tests)
        else:
            adjust = holm if self.multiplicity == "holm" else benjamini_hochberg
            adjusted = adjust(p, self.tests)
        sure = np.flatnonzero(adjusted <= self._alpha)
        dependent = self._settled if self._coarse else len(sure)
        rank = 1 if self._coarse or self.multiplicity == "holm" else max(1, dependent)
        best = sure[self._largest(i[sure], j[sure], counts[sure], limit)]
        return Found(
            i=i[best],
            j=j[best],
            counts=counts[best],
            pvalues=p[best],
            adjusted=adjusted[best],
            dependent=dependent,
            threshold=self._alpha * rank / max(1, self.tests),
            coarse=self._coarse,
        )

    def intervals(self, found: Found, level: float) -> tuple[Interval, ...]:
        """Deviations with intervals at the level that the search leaves to a single pair.

        For Holm the limits hold for all pairs at once; for Benjamini and Hochberg the expected
        share of limits that fail among the pairs found is kept.
        """
        runs = self.runs
        p1, p2 = self.wrong[found.i] / runs, self.wrong[found.j] / runs
        both = found.counts / runs
        gap = both - p1 * p2
        cells = (  # chance of each outcome, and the product of the two deviations there
            (both, (1 - p1) * (1 - p2)),
            (p1 - both, -(1 - p1) * p2),
            (p2 - both, -p1 * (1 - p2)),
            (1 - p1 - p2 + both, p1 * p2),
        )
        square = np.sum([chance * product**2 for chance, product in cells], axis=0)
        half = -stdtrit(runs - 1, found.threshold / 2) * np.sqrt((square - gap**2) / (runs - 1))
        return tuple(
            Interval(float(d), float(d - h), float(d + h), level)
            for d, h in zip(gap, half, strict=True)
        )

    def _joined(self) -> tuple[IntArray, IntArray, IntArray]:
        nothing = (np.zeros(0, dtype=np.int64),) * 3
        i, j, counts = (np.concatenate(x) for x in zip(nothing, *self._held, strict=True))
        return i, j, counts

    def _pvalues(self, i: IntArray, j: IntArray, counts: IntArray) -> FloatArray:
        values = np.empty(len(i))
        for start in range(0, len(i), 2**17):
            part = slice(start, start + 2**17)
            a, b = self.wrong[i[part]], self.wrong[j[part]]
            values[part] = self._fisher.pvalues(a, b, counts[part])
        return values

    def _largest(self, i: IntArray, j: IntArray, counts: IntArray, limit: int) -> IntArray:
        gap = np.abs(counts * self.runs - self.wrong[i] * self.wrong[j])
        return np.lexsort((j, i, -gap))[:limit]

    def _settle(self, limit: int) -> None:
        """Judge what is held by Bonferroni's rule; keep the largest deviations only."""
        i, j, counts = self._joined()
        new = slice(min(limit, self._settled) if self._coarse else 0, None)
        p = self._pvalues(i[new], j[new], counts[new])
        sure = np.ones(len(i), dtype=bool)
        sure[new] = p * self.tests <= self._alpha
        self._settled += int(sure[new].sum())
        self._coarse = True
        i, j, counts = i[sure], j[sure], counts[sure]
        best = self._largest(i, j, counts, limit)
        self._held = [(i[best], j[best], counts[best])]
        self._size = len(best)
