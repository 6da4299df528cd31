"""Pairs of examples that do not err independently of each other."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from os import PathLike
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

from curvewise.errors import InputError, brief, warn_all
from curvewise.stats.tests import benjamini_hochberg, holm
from curvewise.text import format_interval, format_pvalue, format_value
from curvewise.types.predictions import Predictions
from curvewise.types.results import FloatArray, Interval, Result, check_level, check_whole, interval_lists, plain
from curvewise.variance.anova import measure_totals, read_answers

IntArray: TypeAlias = NDArray[np.int64]
WordArray: TypeAlias = NDArray[np.uint64]
CountTile: TypeAlias = NDArray[np.int32]
# A kernel adds to counts (tile, tile) the pairs of examples from i0 and from j0 on.
Kernel: TypeAlias = Callable[[WordArray, int, int, CountTile], None]
PACK_RUNS = 512
"""Runs transposed at a time; a multiple of 8."""
LONG = 20.0
"""Seconds of counting from which a warning says beforehand how long it takes."""
SPEED, PLAIN_SPEED = 2e10, 6e8
"""Pairs × words of 64 runs that one core counts in a second, roughly: with numba, and without."""
MOST = 2_000_000
"""Candidates held at once; beyond them pairs are judged one by one, by Bonferroni's rule."""
SCREEN = 3.0
"""Deviations of fewer standard errors count as p = 1, which keeps every adjustment valid."""
TILE = 256
"""Examples along a side: 60,000 runs of a tile just fit the L2 cache."""
PLAIN_TILE = 1024
"""The same without numba, when unpacking costs less in larger tiles."""
WORDS = 1024
"""Words of 64 runs at a time: eight examples of them fill 64 KB of cache."""
PLAIN_WORDS = 32
"""The same without numba, when each run becomes four bytes."""
TIE = 1e-7
"""Tables whose chance is larger by less than this count as no more likely than the one seen."""
TOLD = 10
"""Pairs that were asked for of which the summary speaks; the table has all."""
SMALL = 1e-13
"""Terms below this part of a sum are left out."""


def measure_dependent_pairs(
    predictions: Predictions | ArrayLike | PathLike[str],
    labels: ArrayLike | PathLike[str] | None = None,
    *,
    kind: str | None = None,
    axes: Sequence[str] | None = None,
    pairs: Sequence[Sequence[Any]] | None = None,
    min_effect: float = 0.02,
    level: float = 0.95,
    multiplicity: str = "holm",
    limit: int = 1000,
    progress: Callable[[float], None] | None = None,
) -> DependentPairs:
    """Find pairs of examples that violate independent errors.

    Errors are independent if the chance of being right on two examples at once is the product of
    the two chances. All pairs are compared; those off by ``min_effect`` or more are tested. The
    test is exact because a normal approximation fails where errors are rare: there it declares
    thousands of independent pairs dependent.

    Parameters
    ----------
    predictions : Predictions or array_like, shape (runs, examples)
        Predicted labels or 0/1 errors, of many runs: hundreds at least. 0/1 errors of as many runs
        as examples, or of more, need ``axes=("runs", "examples")``: without labels their shape
        does not say which is which.
    labels : array_like, shape (examples,), optional
        True classes; needed for predicted labels.
    kind, axes
        As in :func:`decompose_variance`.
    pairs : sequence of pairs, optional
        Examine only these pairs of examples, by index or by example id: ``[(776, 796)]``. All of them
        are listed, whatever was found, and p-values are adjusted for these only.
    min_effect : float
        The smallest deviation of interest: 0.02 is two points.
    level : float
        One minus the error rate over all pairs of examples.
    multiplicity : {"holm", "bh"}
        Keep the chance of any false pair, or the share of false pairs among those found.
    limit : int
        How many pairs to list; all are counted.
    progress : callable, optional
        Called now and then with the part of the work that is done, from 0 to 1.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> errors = rng.random((400, 30)) < 0.3
    >>> errors[:, 7] = errors[:, 3] ^ (rng.random(400) < 0.1)
    >>> found = measure_dependent_pairs(errors, axes=("runs", "examples"))
    >>> found.dependent, int(found.first[0]), int(found.second[0])
    (1, 3, 7)
    """
    need = "pairs need one 0/1 error (or predicted class) of each run for each example."
    given = read_answers(predictions, labels, need, kind=kind, axes=axes)
    if not (math.isfinite(min_effect) and 0 < min_effect <= 0.25):
        problem = "must be above 0 and at most 0.25, the largest possible deviation. 0.02 is two points."
        raise InputError(problem, argument="min_effect", value=min_effect)
    if multiplicity not in ("holm", "bh"):
        raise InputError("is not known: use 'holm' or 'bh'.", argument="multiplicity", value=multiplicity)
    limit = check_whole(limit, "limit", 1)
    check_level(level)
    runs, n = given.runs, given.examples
    wrong = np.rint(measure_totals(given).example * runs).astype(np.int64)
    if pairs is not None:
        return _named_pairs(given, wrong, pairs, min_effect, level, multiplicity)
    share = wrong / runs
    kept = np.flatnonzero(share * (1 - share) >= min_effect)  # others cannot deviate so much
    notes = _announce(len(kept), given, level)
    search = PairSearch(wrong[kept], runs, n, min_effect, level, multiplicity)
    columns = column_pack(given)[kept]
    done = 0
    for i, j, counts in iter_pair_counts(columns):
        search.add(i, j, counts, limit)
        done += counts.size * (1 if i == j else 2)  # tiles stand for both sides of the diagonal
        if progress is not None:
            progress(done / len(kept) ** 2)
    found = search.finish(limit)
    if found.coarse:
        notes.append(
            "so many pairs deviate that p-values were adjusted by Bonferroni's rule, which finds at most as many as the"
            " one asked for: a failed run among the runs causes this."
        )
        warn_all(notes[-1:])
    return _as_result(given, search, found, (kept[found.i], kept[found.j]), notes)


def _named_pairs(
    given: Predictions, wrong: IntArray, pairs: Any, min_effect: float, level: float, multiplicity: str
) -> DependentPairs:
    """Test the pairs that were asked for, and no others."""
    names = np.arange(given.examples) if given.example_ids is None else given.example_ids
    place = {name: i for i, name in enumerate(names.tolist())}
    places = []
    for pair in pairs:
        if isinstance(pair, str) or not hasattr(pair, "__len__") or len(pair) != 2 or pair[0] == pair[1]:
            raise InputError("give two examples for each, such as [(776, 796)].", argument="pairs", value=plain(pairs))
        for name in pair:
            if name not in place:
                problem = f"has {brief(name)}, and no example is called so: there are {given.examples:,}, "
                raise InputError(f"{problem}from {names[0]} to {names[-1]}.", argument="pairs")
        places.append([place[name] for name in pair])
    if not places:
        raise InputError("is empty: give two examples, such as [(776, 796)].", argument="pairs")
    first, second = np.array(places, dtype=np.int64).T
    examples, inverse = np.unique([first, second], return_inverse=True)
    i, j = inverse.reshape(2, -1)
    columns = column_pack(given)[examples]
    both = np.bitwise_count(columns[i] & columns[j]).sum(axis=1).astype(np.int64)
    search = PairSearch(wrong[examples], given.runs, given.examples, min_effect, level, multiplicity)
    search.tests = len(i)
    gap = np.abs(both * given.runs - search.wrong[i] * search.wrong[j])
    search.deviating = int(np.count_nonzero(gap >= min_effect * given.runs**2 * (1 - 1e-12)))
    p = FisherTest(given.runs).pvalues(search.wrong[i], search.wrong[j], both)
    adjusted = (holm if multiplicity == "holm" else benjamini_hochberg)(p)
    dependent = int(np.count_nonzero(adjusted <= 1 - level))
    found = PairFindings(i, j, both, p, adjusted, dependent, (1 - level) / len(i), coarse=False)
    return _as_result(given, search, found, (first, second), [], named=True)


def _as_result(
    given: Predictions,
    search: PairSearch,
    found: PairFindings,
    places: tuple[IntArray, IntArray],
    notes: Sequence[str],
    named: bool = False,
) -> DependentPairs:
    first, second = places
    names = np.arange(given.examples) if given.example_ids is None else given.example_ids
    one, two = (1 - search.wrong[k] / search.runs for k in (found.i, found.j))
    return DependentPairs(
        runs=search.runs,
        examples=given.examples,
        pairs=search.tests,
        min_effect=search.min_effect,
        deviating=search.deviating,
        dependent=found.dependent,
        first=first,
        second=second,
        first_ids=names[first],
        second_ids=names[second],
        first_correct=one,
        second_correct=two,
        both_correct=one + two - 1 + found.counts / search.runs,
        expected_correct=one * two,
        differences=search.intervals(found),
        pvalues=found.pvalues,
        adjusted_pvalues=found.adjusted,
        multiplicity=search.multiplicity,
        level=search.level,
        warnings=tuple(notes),
        named=named,
    )


@dataclass(frozen=True, eq=False)
class DependentPairs(Result):
    """Pairs of examples whose errors go together, or avoid each other.

    Arrays have one entry per pair that is listed, the largest difference first; pairs that were asked
    for are all listed, in the order given.

    Attributes
    ----------
    runs, examples, pairs : int
        Size of the experiment; how many pairs of examples there are, or were asked for.
    min_effect : float
        Deviations from independence smaller than this are of no interest.
    deviating : int
        Pairs that deviate by ``min_effect`` or more in these runs, by chance or not.
    dependent : int
        Those among them that chance does not explain: the violating pairs, listed or not. Of pairs that
        were asked for, those that deviate significantly, by however little.
    first, second : ndarray of int
        Their examples, by index.
    first_ids, second_ids : ndarray
        Their examples, by name; the indices where examples have no names.
    first_correct, second_correct : ndarray
        Share of runs that are right on each.
    both_correct, expected_correct : ndarray
        Share of runs that are right on both, and what independent errors would give.
    differences : tuple of Interval
        ``both_correct − expected_correct``. The intervals allow for the search over all pairs;
        being symmetric they are rough where runs are few.
    pvalues, adjusted_pvalues : ndarray
        P-values of Fisher's exact test, and adjusted for all pairs of examples.
    multiplicity : {"holm", "bh"}
        How: by the chance of any false pair, or by the share of false pairs among those found.
    named : bool
        True if the pairs were asked for.
    """

    unit: ClassVar[str] = "fraction"

    runs: int
    examples: int
    pairs: int
    min_effect: float
    deviating: int
    dependent: int
    first: IntArray
    second: IntArray
    first_ids: NDArray[Any]
    second_ids: NDArray[Any]
    first_correct: FloatArray
    second_correct: FloatArray
    both_correct: FloatArray
    expected_correct: FloatArray
    differences: tuple[Interval, ...]
    pvalues: FloatArray
    adjusted_pvalues: FloatArray
    multiplicity: str
    level: float
    warnings: tuple[str, ...]
    named: bool = False

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per listed pair."""
        return {
            "first": self.first_ids,
            "second": self.second_ids,
            "first_correct": self.first_correct,
            "second_correct": self.second_correct,
            "expected_correct": self.expected_correct,
            "both_correct": self.both_correct,
            **interval_lists("difference", self.differences),
            "pvalue": self.pvalues,
            "adjusted_pvalue": self.adjusted_pvalues,
        }

    def sentences(self) -> str:
        """The search in a few sentences."""
        if self.named:
            return " ".join(self._sentence(i) for i in range(min(len(self.first), TOLD)))
        effect = format_value(self.min_effect, "fraction")
        how = "Holm" if self.multiplicity == "holm" else "Benjamini–Hochberg"
        found = {0: "no pair violates", 1: "1 violates"}.get(self.dependent, f"{self.dependent:,} violate")
        lines = [
            f"Of {self.pairs:,} pairs of {self.examples:,} examples, {found} independent errors by {effect} or more"
            f" (Fisher's exact test over {self.runs:,} runs, {how} over all pairs, {1 - self.level:.2g}).",
            f"{self.deviating:,} deviate as much in these runs, by chance or not.",
        ]
        if len(self.first):
            lines.append(
                f"The largest deviation is that of {self.first_ids[0]} and {self.second_ids[0]}: both are right in"
                f" {format_value(float(self.both_correct[0]), 'fraction')} of runs, where independent errors would give"
                f" {format_value(float(self.expected_correct[0]), 'fraction')}."
            )
        return " ".join(lines)

    def _sentence(self, i: int) -> str:
        """One pair that was asked for."""
        one, two, both, expected = (
            format_value(float(x[i]), "fraction")
            for x in (self.first_correct, self.second_correct, self.both_correct, self.expected_correct)
        )
        apart = format_interval(self.differences[i], "fraction")
        chance = "p" if len(self.first) == 1 else "adjusted p"
        pvalue = format_pvalue(float(self.adjusted_pvalues[i])).removeprefix("p ")
        verdict = "deviate from" if self.adjusted_pvalues[i] <= 1 - self.level else "do not significantly deviate from"
        return (
            f"Examples {self.first_ids[i]} and {self.second_ids[i]} are right in {one} and {two} of {self.runs:,} runs,"
            f" both in {both}, where independent errors would give {expected}: a difference of {apart}"
            f" (Fisher's exact test, {chance} {pvalue}). They {verdict} independent errors."
        )


def _announce(kept: int, given: Predictions, level: float) -> list[str]:
    """Warn beforehand of a search that takes long, or cannot find anything."""
    notes = []
    pairs = given.examples * (given.examples - 1) / 2
    if smallest_pvalue(given.runs) > (1 - level) / pairs:
        notes.append(
            f"{given.runs:,} runs are too few: no pair among {pairs:,.0f} could be told from chance. Train more runs,"
            " or pass fewer examples."
        )
    plain = fastest_kernel() is plain_kernel
    seconds = kept**2 / 2 * -(-given.runs // 64) / (PLAIN_SPEED if plain else SPEED)
    if seconds > LONG:
        faster = " (curvewise[fast] makes it about ten times faster)" if plain else ""
        duration = f"{seconds:.0f} seconds" if seconds < 120 else f"{seconds / 60:.0f} minutes"
        notes.append(f"counting the pairs takes about {duration}{faster}.")
    warn_all(notes, 4)
    return notes


def column_pack(given: Predictions) -> WordArray:
    """Pack the errors of each example along runs: 64 runs to a word, the first in the highest bit of the first byte."""
    columns = np.zeros((given.examples, -(-given.runs // 64)), dtype=np.uint64)
    by_byte = columns.view(np.uint8)
    for start in range(0, given.runs, PACK_RUNS):
        packed = np.packbits(given.errors_of(slice(start, start + PACK_RUNS)), axis=0)
        by_byte[:, start // 8 : start // 8 + len(packed)] = packed.T
    return columns


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
        self, wrong: IntArray, runs: int, examples: int, min_effect: float, level: float, multiplicity: str
    ) -> None:
        self.wrong, self.runs, self.min_effect, self.multiplicity = wrong, runs, min_effect, multiplicity
        self.tests, self.deviating = examples * (examples - 1) // 2, 0
        self.level, self._alpha, self._fisher = level, 1 - level, FisherTest(runs)
        self._held: list[tuple[IntArray, IntArray, IntArray]] = []
        self._size, self._settled, self._coarse = 0, 0, False

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
        # Variance of the hypergeometric count, times R²: a cheap screen before the exact test.
        spread = a * (self.runs - a) * b * (self.runs - b) / (self.runs - 1)
        far = gap[i, j] ** 2 >= SCREEN**2 * spread
        i, j = i[far], j[far]
        self._held.append((i + i0, j + j0, counts[i, j].astype(np.int64)))
        self._size += len(i)
        # A failed run makes every pair deviate: memory stays bounded, at the price of the finer adjustment.
        if self._size > MOST:
            self._settle(limit)

    def finish(self, limit: int) -> PairFindings:
        """Adjust the p-values and keep the pairs that count."""
        if self._coarse:
            self._settle(limit)
        i, j, counts = self._joined()
        p = self._pvalues(i, j, counts)
        adjust = holm if self.multiplicity == "holm" else benjamini_hochberg
        adjusted = np.minimum(1.0, p * self.tests) if self._coarse else adjust(p, self.tests)
        sure = np.flatnonzero(adjusted <= self._alpha)
        dependent = self._settled if self._coarse else len(sure)
        # Benjamini and Yekutieli (2005): intervals of the pairs found at the level that the search spent on
        # each.
        rank = 1 if self._coarse or self.multiplicity == "holm" else max(1, dependent)
        best = sure[self._largest(i[sure], j[sure], counts[sure], limit)]
        return PairFindings(
            i=i[best],
            j=j[best],
            counts=counts[best],
            pvalues=p[best],
            adjusted=adjusted[best],
            dependent=dependent,
            threshold=self._alpha * rank / max(1, self.tests),
            coarse=self._coarse,
        )

    def intervals(self, found: PairFindings) -> tuple[Interval, ...]:
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
        ends = zip(gap.tolist(), half.tolist(), strict=True)
        return tuple(Interval(d, d - h, d + h, self.level) for d, h in ends)

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


@dataclass(frozen=True, eq=False)
class PairFindings:
    """Dependent pairs, the largest deviation first.

    ``i`` and ``j`` are places among the examples searched, ``counts`` runs in which both fail,
    ``dependent`` how many there are in all, ``threshold`` the p-value up to which a pair counts,
    ``coarse`` is True if Bonferroni's rule was used.
    """

    i: IntArray
    j: IntArray
    counts: IntArray
    pvalues: FloatArray
    adjusted: FloatArray
    dependent: int
    threshold: float
    coarse: bool


def iter_pair_counts(columns: WordArray, tile: int | None = None) -> Iterator[tuple[int, int, CountTile]]:
    """Yield counts of common errors for all pairs of examples, a tile at a time.

    Parameters
    ----------
    columns : ndarray of uint64, shape (n, words)
        Errors of each example packed along runs, as ``column_pack`` makes them.
    tile : int, optional
        Examples along each side of a tile; by default what is fastest.

    Yields
    ------
    i0, j0 : int
        First examples of the tile, ``i0 <= j0``.
    counts : ndarray of int32, shape (up to tile, up to tile)
        ``counts[a, b]`` runs in which both ``i0 + a`` and ``j0 + b`` fail. Tiles on the diagonal
        are symmetric, and their diagonal holds each example's own errors.
    """
    columns, kernel = np.ascontiguousarray(columns), fastest_kernel()
    tile = tile or (PLAIN_TILE if kernel is plain_kernel else TILE)
    n, side = len(columns), -(-tile // 4) * 4  # kernels go by squares of 4 × 4 pairs
    for i0 in range(0, n, tile):
        for j0 in range(i0, n, tile):
            counts = np.zeros((side, side), dtype=np.int32)
            kernel(columns, i0, j0, counts)
            yield i0, j0, counts[: min(tile, n - i0), : min(tile, n - j0)]


@cache
def fastest_kernel() -> Kernel:
    """Return the fastest kernel that the installed packages allow.

    With numba (the extra ``fast``) the bits that two examples share are counted word by word; without it the
    errors are unpacked and multiplied as matrices, which takes about ten times as long.
    """
    try:
        numba = importlib.import_module("numba")
        importlib.import_module("llvmlite")
    except ImportError:
        return plain_kernel
    return _compiled_kernel(numba)


def plain_kernel(columns: WordArray, i0: int, j0: int, counts: CountTile) -> None:
    """Multiply matrices of zeros and ones; below 2^24 single precision is exact."""
    side = len(counts)
    for start in range(0, columns.shape[1], PLAIN_WORDS):
        part = columns[:, start : start + PLAIN_WORDS]
        left, right = (
            np.unpackbits(np.ascontiguousarray(part[at : at + side]).view(np.uint8), axis=1).astype(np.float32)
            for at in (i0, j0)
        )
        counts[: len(left), : len(right)] += (left @ right.T).astype(np.int32)


def _compiled_kernel(numba: Any) -> Kernel:
    """Compile a kernel that goes through a tile in squares of 4 x 4 pairs: a word once read serves four pairs."""
    word = numba.types.uint64

    # The processor's instruction that counts bits, which numba does not offer by itself.
    @numba.extending.intrinsic  # type: ignore[untyped-decorator]
    def popcount(typing_context: Any, x: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.ctpop(arguments[0])

        return word(word), generate

    # Unsigned throughout: numba turns a mix of signed and unsigned integers into floats.
    zero = np.uint64(0)

    @numba.njit(inline="always")  # type: ignore[untyped-decorator]
    def four_rows(columns: Any, i: int) -> Any:
        last = len(columns) - 1  # it stands in for examples beyond it, whose counts are not read
        second, third, fourth = min(i + 1, last), min(i + 2, last), min(i + 3, last)
        return columns[i], columns[second], columns[third], columns[fourth]

    @numba.njit(inline="always")  # type: ignore[untyped-decorator]
    def add(s: Any, x: Any, y: Any) -> Any:
        s0, s1 = s[0] + popcount(x & y[0]), s[1] + popcount(x & y[1])
        s2, s3 = s[2] + popcount(x & y[2]), s[3] + popcount(x & y[3])
        return s0, s1, s2, s3

    @numba.njit(nogil=True)  # type: ignore[untyped-decorator]
    def square(columns: Any, i: int, j: int, start: int, stop: int) -> Any:
        a, b = four_rows(columns, i), four_rows(columns, j)
        s0 = s1 = s2 = s3 = (zero, zero, zero, zero)
        for w in range(np.uint64(start), np.uint64(stop)):  # unsigned, or it does not vectorise
            y = (b[0][w], b[1][w], b[2][w], b[3][w])
            s0, s1 = add(s0, a[0][w], y), add(s1, a[1][w], y)
            s2, s3 = add(s2, a[2][w], y), add(s3, a[3][w], y)
        return s0, s1, s2, s3

    @numba.njit(nogil=True)  # type: ignore[untyped-decorator]
    def kernel(columns: WordArray, i0: int, j0: int, counts: CountTile) -> None:
        n, words = columns.shape
        for start in range(0, words, WORDS):
            stop = min(start + WORDS, words)
            for i in range(0, min(len(counts), n - i0), 4):
                for j in range(0, min(len(counts), n - j0), 4):
                    sums = square(columns, i0 + i, j0 + j, start, stop)
                    for a in range(4):
                        for b in range(4):
                            counts[i + a, j + b] += sums[a][b]

    compiled: Kernel = kernel
    return compiled


class FisherTest:
    """Two-sided p-values of co-occurrence, given how often each of two things occurs.

    Parameters
    ----------
    runs : int
        In how many runs both were watched.
    """

    def __init__(self, runs: int) -> None:
        self.runs = runs
        self._log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1.0, runs + 1)))])

    def pvalues(self, a: IntArray, b: IntArray, both: IntArray) -> FloatArray:
        """Return p-values: the chance of all tables that are no more likely than the one seen.

        Parameters
        ----------
        a, b : ndarray of int64
            How often each of the two occurred.
        both : ndarray of int64
            How often both did, in the same run.
        """
        runs = self.runs
        # Mirror tables below the mode, so that the tail that is summed always lies above it.
        mode = (a + 1) * (b + 1) // (runs + 2)
        below = both < mode
        b, k = np.where(below, runs - b, b), np.where(below, a - both, both)
        mode = (a + 1) * (b + 1) // (runs + 2)
        here = self._log_chance(a, b, k)
        near = self._tail(a, b, k)
        # Two-sided by probability, as scipy and R do: tables of the other tail that are no more likely.
        other = self._mirror(a, b, mode, here + TIE)
        inside = other >= np.maximum(0, a + b - runs)
        far = np.zeros(len(k))
        if inside.any():
            x, a1, b1 = other[inside], a[inside], b[inside]
            shift = self._log_chance(a1, b1, x) - here[inside]
            far[inside] = np.exp(shift) * self._tail(a1, runs - b1, a1 - x)
        p = np.exp(here + np.log(near + far))
        whole = (k <= mode) | (self._log_chance(a, b, mode) <= here + TIE)
        return np.where(whole, 1.0, np.minimum(1.0, p))

    def _log_chance(self, a: IntArray, b: IntArray, x: IntArray) -> FloatArray:
        f, runs = self._log_factorial, self.runs
        values: FloatArray = (
            f[a] + f[runs - a] + f[b] + f[runs - b] - f[runs]
            - f[x] - f[a - x] - f[b - x] - f[runs - a - b + x]
        )  # fmt: skip
        return values

    def _mirror(self, a: IntArray, b: IntArray, mode: IntArray, limit: FloatArray) -> IntArray:
        """Return the largest count up to the mode with a log chance of at most ``limit``."""
        low: IntArray = np.maximum(0, a + b - self.runs) - 1  # the chance there is 0
        high: IntArray = mode + 1
        while True:
            apart = high - low > 1
            if not apart.any():
                return low
            middle = np.where(apart, (low + high) // 2, mode)
            fits = self._log_chance(a, b, middle) <= limit
            low = np.where(apart & fits, middle, low)
            high = np.where(apart & ~fits, middle, high)

    def _tail(self, a: IntArray, b: IntArray, k: IntArray) -> FloatArray:
        """Return the chance of k or more over that of k alone."""
        total = np.ones(len(k))
        alive = np.arange(len(k))
        x, term = k.astype(np.float64), np.ones(len(k))
        u, v, w = (c.astype(np.float64) for c in (a, b, self.runs - a - b))
        while len(alive):
            for _ in range(16):
                term = term * (u - x) * (v - x) / ((x + 1) * (w + x + 1))
                x += 1
                total[alive] += term
            keep = term > SMALL * total[alive]
            alive = alive[keep]
            x, term, u, v, w = (c[keep] for c in (x, term, u, v, w))
        return total


def smallest_pvalue(runs: int) -> float:
    """Return the smallest p-value of any table with so many runs: that of perfect agreement in half of them."""
    half = np.array([runs // 2])
    return float(FisherTest(runs).pvalues(half, half, half)[0])
