"""Runs of one task in cells of method and size, and the standard errors of numbers made of their means."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from operator import attrgetter
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from curvewise.errors import InputError, arg, either
from curvewise.stats.correlation import pearson
from curvewise.stats.intervals import FEW
from curvewise.stats.tests import holm
from curvewise.text import as_count, format_number
from curvewise.transfer.risks import Control, TransferRisks, Weight, cci_slopes, step_widths
from curvewise.types.results import FloatArray, Interval

# Degrees of freedom beyond which Student's t is the normal distribution to all digits; scipy's quantiles of larger ones
# lose precision.
MANY = 1e9
# Degrees of freedom that the pooled spread of a size has in the variance of one cell. Small, so that it only matters
# beside cells of two or three runs; chosen by benchmarks/transfer_coverage.py.
STEADY = 0.5
# Sums of squares, and differences, below this share of what they could be are 0 but for rounding.
TIE = 1e-12

Row = TypeVar("Row")


def group_runs(
    risks: TransferRisks, task: str, sizes: FloatArray | None = None, methods: Sequence[str] | None = None
) -> TaskRuns:
    """Group the runs of one task into cells of method and size.

    Parameters
    ----------
    risks : TransferRisks
        Also of other tasks. Without a control, the best and the worst observed mean of all sizes stand for maximal
        supervision and for the blind guess.
    task : str
        Name of the task.
    sizes : ndarray, optional
        Training sizes to be used; all by default.
    methods : sequence of str, optional
        Those to be used beside scratch; all by default. Others lend their spread, but do not stand for a control.
    """
    own, scratch = risks.of(task=task), risks.scratch
    blind, maximal = risks.blind.get(task), risks.maximal.get(task)
    names = list(own.method_names)
    if scratch not in names:
        raise InputError(
            f"was not measured on task {task!r}, where there are {names!r}.",
            argument="scratch",
            value=scratch,
            remedy=f"Pass {arg('scratch')} with the name of the one that starts from nothing.",
        )
    lost = np.isnan(own.risk)
    if lost[own.methods == scratch].all():
        raise InputError(
            f"every run of it on task {task!r} failed (all {int((own.methods == scratch).sum())} risks are NaN).",
            argument="scratch",
            value=scratch,
            remedy=f"Run it again, or choose other tasks with {arg('tasks')}.",
        )
    good = own.select(~lost)
    keys = list(zip(good.methods.tolist(), good.n.tolist(), strict=True))
    cells = {key: i for i, key in enumerate(dict.fromkeys(keys))}
    runs = CellRuns(
        value=good.risk,
        cell=np.array([cells[key] for key in keys], dtype=np.int64),
        size=np.array([n for _, n in cells], dtype=np.float64),
        method=_codes(np.array([method for method, _ in cells])),
        fold=None if good.folds is None else np.where(good.folds == "", -1, _codes(good.folds)),
        line=_lines(own)[~lost],
        seed=None if good.seeds is None else _codes(good.seeds),
    )
    chosen = set(names if methods is None else (scratch, *methods))
    measured = np.array([method in chosen for method, _ in cells])
    best = None
    if maximal is None:
        # Of equal means that of most runs, whatever the order of the rows.
        ranked = [(runs.mean[i], -runs.count[i], *key) for key, i in cells.items() if measured[i]]
        *_, method, n = min(ranked)
        best = cells[method, n]
        error = runs.error(runs.of_mean(best))
        maximal = Control(
            float(runs.mean[best]),
            error.std,
            f"best observed risk ({method}, n = {format_number(n)})",
            assumed=True,
            degrees=math.inf if math.isnan(error.degrees) else error.degrees,
        )
    if blind is None:
        # Any number above the risks would do for CCI; the largest mean keeps the scale within 0 and 1.
        worst = int(np.argmax(np.where(measured, runs.mean, -np.inf)))
        method, n = list(cells)[worst]
        source = f"largest observed risk ({method}, n = {format_number(n)})"
        blind = Control(float(runs.mean[worst]), 0.0, source, assumed=True)
        if not blind.risk > maximal.risk:
            raise blind_missing(task)
    if not blind.risk > maximal.risk:
        raise _wrong_order(task, blind, maximal, turned=risks.turned)
    failed = zip(own.methods[lost].tolist(), own.n[lost].tolist(), strict=True)
    used = {n for _, n in cells} if sizes is None else set(sizes.tolist())
    left = {key: i for key, i in cells.items() if key[0] in chosen and key[1] in used}
    there = {method for method, _ in left}
    # Rows that are the same as another; without seeds and folds that may be chance.
    columns = [np.asarray(c).tolist() for c in good.columns().values()]
    same = len(good) - len(set(zip(*columns, strict=True)))
    return TaskRuns(
        name=task,
        scratch=scratch,
        methods=tuple(m for m in names if m in there and m != scratch),
        runs=runs,
        cells=left,
        failed=dict(Counter(key for key in failed if key[0] in chosen and key[1] in used)),
        blind=blind,
        maximal=maximal,
        best=best,
        twice=0 if good.seeds is None and good.folds is None else same,
        seeded=own.seeds is not None,
    )


def blind_missing(task: str) -> InputError:
    """Make the error for a task whose calibrated risks are asked for without a blind guess."""
    computes = either("cw.transfer.blind_guess(targets, loss)", "`curvewise transfer blind`")
    remedy = f"Pass the risk of the best constant guess (an accuracy among accuracies), which {computes} computes, "
    remedy += "or the name of the method whose rows hold it."
    return InputError(f"is missing for task {task!r}.", argument="blind", remedy=remedy)


def _wrong_order(task: str, blind: Control, maximal: Control, turned: bool) -> InputError:
    """Make the error for a blind guess that is not above maximal supervision."""
    if maximal.assumed:
        problem = "no method is better than a blind guess, so that there is no scale."
        remedy = f"Pass {arg('maximal')} with a risk that can be reached."
    else:
        what = "turned into risks, as higher were better" if turned else "read as lower is better"
        higher = arg("higher_is_better", not turned)
        problem = f"the values are {what}."
        remedy = (
            f"Exchange {arg('blind')} and {arg('maximal')} if they are mixed up, or read the table with "
            f"{either('load_risks(…, ', '')}{higher}{either(')', '')} if {'lower' if turned else 'higher'} is better."
        )
    return InputError(
        f"of task {task!r} ({blind.source}) is not above {arg('maximal', shown_risk(maximal.risk))} "
        f"({maximal.source}): {problem}",
        argument="blind",
        value=shown_risk(blind.risk),
        remedy=remedy,
    )


def shown_risk(risk: float) -> float:
    """Return a risk in six digits, as messages show it."""
    return as_count(float(f"{risk:.6g}"))


def _codes(names: NDArray[np.str_]) -> NDArray[np.int64]:
    return np.unique(names, return_inverse=True)[1].astype(np.int64)


def _lines(risks: TransferRisks) -> NDArray[np.int64]:
    """Number the runs of each method by seed; those without one by their order at each size.

    Tables usually list the runs of every size in the same order, so that the k-th runs share what seed they may share.
    Where the order means nothing, intervals become a little wider.
    """
    seeds = [""] * len(risks) if risks.seeds is None else risks.seeds.tolist()
    seen: Counter[tuple[str, float]] = Counter()
    names = []
    for seed, *key in zip(seeds, risks.methods.tolist(), risks.n.tolist(), strict=True):
        place = (key[0], key[1])
        names.append(f"seed {seed}" if seed else f"run {seen[place]}")
        seen[place] += not seed
    pairs = np.stack([_codes(risks.methods), _codes(np.array(names))])
    return np.unique(pairs, axis=1, return_inverse=True)[1].ravel().astype(np.int64)


@dataclass(frozen=True, eq=False)
class TaskRuns:
    """The runs of one task in cells of method and size.

    Attributes
    ----------
    name, scratch : str
    methods : tuple of str
        Without scratch, in order of appearance.
    runs : CellRuns
        Those that did not fail.
    cells : dict of (str, float) to int
        The cell of each method and size that is to be used; others may lend their spread, or
        stand for maximal supervision.
    failed : dict of (str, float) to int
        Failed runs of each method and size, also where no other is left.
    blind, maximal : Control
        Controls; a maximal that is assumed is the mean of ``best``.
    best : int, optional
        The cell that maximal supervision was taken from.
    twice : int
        Rows that are the same as another.
    seeded : bool
        Whether a column says which runs of different sizes share a seed.
    """

    name: str
    scratch: str
    methods: tuple[str, ...]
    runs: CellRuns
    cells: dict[tuple[str, float], int]
    failed: dict[tuple[str, float], int]
    blind: Control
    maximal: Control
    best: int | None = None
    twice: int = 0
    seeded: bool = True

    def sizes(self, method: str) -> FloatArray:
        """Return the sizes at which a method has a run, from small to large."""
        return np.array(sorted(n for m, n in self.cells if m == method), dtype=np.float64)

    def shared(self, *methods: str) -> FloatArray:
        """Return the sizes that some methods and scratch have all."""
        found = self.sizes(self.scratch)
        for method in methods:
            found = np.intersect1d(found, self.sizes(method))
        return found

    def index(self, method: str, n: FloatArray) -> NDArray[np.int64]:
        """Return the cells of a method at some sizes."""
        return np.array([self.cells[method, float(size)] for size in n], dtype=np.int64)

    def calibrated(self, method: str, n: float) -> TaskEstimate:
        """Estimate the calibrated mean risk of a method at a size."""
        cell, span = self.cells[method, float(n)], self.blind.risk - self.maximal.risk
        value = float((self.runs.mean[cell] - self.maximal.risk) / span)
        influence = self.runs.of_mean(cell) / span
        # Derivatives of (R − M) / (B − M) by the blind guess B and by maximal supervision M.
        return TaskEstimate(value, influence, -value / span, (value - 1) / span, self)

    def gain(self, method: str, n: float) -> TaskEstimate:
        """Estimate the calibrated risk of scratch less that of a method, at a size."""
        return self.calibrated(self.scratch, n) - self.calibrated(method, n)

    def risk_gain(self, method: str, n: float) -> TaskEstimate:
        """Estimate the risk of scratch less that of a method at a size, which no control scales."""
        one, two = self.cells[self.scratch, float(n)], self.cells[method, float(n)]
        slopes = self._spread_over(np.array([one, two]), np.array([1.0, -1.0]))
        return TaskEstimate(float(self.runs.mean[one] - self.runs.mean[two]), slopes, 0.0, 0.0, self)

    def cci(self, method: str, n: FloatArray, weight: Weight, pooled: bool) -> TaskEstimate:
        """Estimate the cumulative improvement of a method over some sizes; NaN where its sign would be turned round.

        Pooled, every run of the method is a point of its own, in the order of the source.
        """
        cells = self.index(method, n)
        rows = [np.flatnonzero(self.runs.cell == c) for c in cells]
        points = np.repeat(np.arange(len(n)), [len(r) if pooled else 1 for r in rows])
        every = np.concatenate(rows)
        risk = self.runs.value[every] if pooled else self.runs.mean[cells]
        scratch = self.index(self.scratch, n)[points]
        slopes = cci_slopes(n[points], risk, self.runs.mean[scratch], self.maximal.risk, weight)
        if self.is_turned(n, weight):
            slopes = replace(slopes, value=math.nan, method=np.full(len(points), np.nan))
        influence = np.zeros(len(self.runs.value))
        if pooled:
            influence[every] += slopes.method
        else:
            influence += self._spread_over(cells, slopes.method)
        influence += self._spread_over(scratch, slopes.scratch)
        return TaskEstimate(slopes.value, influence, 0.0, slopes.maximal, self)

    def is_turned(self, n: FloatArray, weight: Weight) -> bool:
        """Tell whether scratch beats maximal supervision over some sizes, as CCI weighs them.

        The area below its calibrated curve, which CCI is a share of, then has the other sign.
        """
        above = self.runs.mean[self.index(self.scratch, n)] - self.maximal.risk
        width = step_widths(n, above, weight)
        area = float((width * (above[1:] + above[:-1])).sum())
        return bool((above < 0).all()) or float(width.sum()) * area < 0

    def borrows(self, method: str, n: FloatArray) -> bool:
        """Tell whether a method, or scratch, has one run at half or more of some sizes."""
        single = [(self.runs.degrees[self.index(m, n)] == 0).mean() for m in (method, self.scratch)]
        return self.runs.replicated and bool(max(single) >= 0.5)

    def _spread_over(self, cells: NDArray[np.int64], slopes: FloatArray) -> FloatArray:
        """Turn slopes by the means of cells into slopes by their runs."""
        by_cell = np.bincount(cells, slopes, len(self.runs.size)) / self.runs.count
        return np.asarray(by_cell[self.runs.cell])

    def error(self, estimate: TaskEstimate) -> StandardError:
        """Return the standard error of an estimate."""
        influence = estimate.influence
        controls = [(estimate.blind, self.blind)]
        if self.best is None:
            controls.append((estimate.maximal, self.maximal))
        else:
            influence = influence + self._spread_over(np.array([self.best]), np.array([estimate.maximal]))
        if np.isnan(influence).any():
            return StandardError(math.nan, math.nan)
        # Controls are measured apart from the runs, so that their variances add up.
        known = [
            (abs(slope) * control.std, control.degrees)
            for slope, control in controls
            if control.std > 0  # neither 0 nor unknown
        ]
        return self.runs.error(influence, known)


@dataclass(frozen=True, eq=False)
class TaskEstimate:
    """A number with its derivatives by each run and each control, and the task that it is about."""

    value: float
    influence: FloatArray
    blind: float
    maximal: float
    task: TaskRuns

    def __sub__(self, other: TaskEstimate) -> TaskEstimate:
        return sum_estimates((1.0, -1.0), (self, other))

    @cached_property
    def error(self) -> StandardError:
        """Standard error; what is shared between the parts of a difference counts once."""
        return self.task.error(self)


def sum_estimates(weights: Iterable[float], parts: Sequence[TaskEstimate]) -> TaskEstimate:
    """Return Σ weight × estimate, with what its parts share counted once."""
    used = [(w, p) for w, p in zip(weights, parts, strict=True) if w != 0]
    value, blind, maximal = (float(sum(w * getattr(p, k) for w, p in used)) for k in ("value", "blind", "maximal"))
    return TaskEstimate(value, np.sum([w * p.influence for w, p in used], axis=0), blind, maximal, parts[0].task)


@dataclass(frozen=True, eq=False)
class CellRuns:
    """Runs of a task, each in the cell of a method and a size.

    Attributes
    ----------
    value : ndarray, shape (runs,)
        Risks; none is NaN.
    cell : ndarray of int, shape (runs,)
        Which cell each belongs to.
    size : ndarray of float, shape (cells,)
        Training size of each cell.
    method : ndarray of int, shape (cells,)
        Method of each cell.
    fold : ndarray of int, optional
        Which runs of a size were trained on the same examples; -1 where that is not known.
    line : ndarray of int, optional
        Which runs of different sizes are of the same method and seed, or may be.
    seed : ndarray of int, optional
        Which are of the same seed, whatever their method; by its name only.
    """

    value: FloatArray
    cell: NDArray[np.int64]
    size: FloatArray
    method: NDArray[np.int64]
    fold: NDArray[np.int64] | None = None
    line: NDArray[np.int64] | None = None
    seed: NDArray[np.int64] | None = None

    @cached_property
    def count(self) -> NDArray[np.int64]:
        """Runs of each cell."""
        return np.bincount(self.cell, minlength=len(self.size))

    @cached_property
    def mean(self) -> FloatArray:
        """Mean risk of each cell: exact where all runs are equal, and the same in any order of the rows."""
        # A plain mean of 0.7, 0.7 and 0.7 is not 0.7: such runs would have a spread, and a difference from 0.7.
        order = np.lexsort((self.value, self.cell))
        least = self.value[order][np.cumsum(self.count) - self.count]
        above = (self.value - least[self.cell])[order]
        return np.asarray(least + np.bincount(self.cell[order], above) / self.count)

    @cached_property
    def variance(self) -> FloatArray:
        """Between the runs of each cell; NaN with one run."""
        squares = self._per_cell(self._residual**2)
        return np.where(self.count > 1, squares / np.maximum(self.count - 1, 1), np.nan)

    @cached_property
    def by_fold(self) -> bool:
        """True if some method has two training subsets at some size, so that runs are compared by subset."""
        if self.fold is None:
            return False
        named = np.unique(np.stack([self.cell, self.fold])[:, self.fold >= 0], axis=1)
        return bool((np.bincount(named[0]) > 1).any())

    @cached_property
    def degrees(self) -> NDArray[np.int64]:
        """Of the variance of each cell: its runs, or its training subsets, less 1; 0 for a few that tie."""
        return np.where(self.tied, 0, self._free)

    @cached_property
    def tied(self) -> NDArray[np.bool_]:
        """Cells of two to four runs that are equal by chance, while others differ.

        Errors are counts of examples, so that few runs often agree. That is no variance of 0: such a cell
        takes the spread of others, as a cell of one run does. A method whose runs agree at every size, two or
        more, does not vary.
        """
        few = (self._free > 0) & (self._free < FEW - 1)
        same = self._per_fold_squares(self._residual) if self.by_fold else self._per_cell(self._residual**2)
        equal = same <= TIE * self._per_cell(self.value**2)
        several, differs = (np.bincount(self.method, (self._free > 0) & k) for k in (True, ~equal))
        constant = (several > 1) & (differs == 0)
        found: NDArray[np.bool_] = few & equal & ~constant[self.method]
        return found if differs.any() else np.zeros_like(found)

    @property
    def replicated(self) -> bool:
        """True if any cell has a spread."""
        return bool((self.degrees > 0).any())

    def of_mean(self, cell: int) -> FloatArray:
        """Return the derivative of the mean of a cell by each run."""
        return np.where(self.cell == cell, 1 / self.count[cell], 0.0)

    def of_means(self, cells: NDArray[np.int64]) -> tuple[FloatArray, FloatArray]:
        """Return the variance of the mean of each cell and its degrees of freedom; NaN and many if unknown."""
        found = [self.error(self.of_mean(c)) for c in cells]
        variance = np.array([e.std**2 for e in found])
        return variance, np.array([MANY if math.isnan(e.degrees) else e.degrees for e in found])

    def covariance(self, one: int, two: int) -> float:
        """Return the covariance of the means of two cells, 0 unless they share training subsets."""
        a, b = self.of_mean(one), self.of_mean(two)
        if not self.by_fold or not self.replicated:
            return 0.0
        return (self.error(a + b).std ** 2 - self.error(a - b).std ** 2) / 4

    def error(self, influence: FloatArray, controls: Sequence[tuple[float, float]] = ()) -> StandardError:
        """Return the standard error of Σ influence × risk over runs, with that of controls.

        Parameters
        ----------
        influence : ndarray, shape (runs,)
            How much each run moves the number.
        controls : sequence of (float, float)
            Standard deviations that independent controls add, with their degrees of freedom.
        """
        if not self.replicated:
            return StandardError(math.nan, math.nan)
        # What is known well of a control lends its degrees of freedom to the runs: not to a narrower interval.
        within = self.error(influence) if controls else None
        lent = self._lent(influence)
        if self.by_fold:
            parts, steadied, degrees = self._by_subset(influence, lent)
        else:
            known, weight, along = self.degrees > 0, self._per_cell(influence**2) + lent, self._along(influence)
            parts, steadied = ((weight * spread)[known] * along for spread in (self.variance, self._steadied))
            # Cells that move together say less about their spread than as many independent ones: from no fewer degrees
            # of freedom (along = 1) to those of one cell for each method (all of them move alike). The square root lies
            # between these, and keeps the coverage in benchmarks/transfer_coverage.py ("seeds over sizes").
            degrees = self.degrees[known] / math.sqrt(along)
        more, free = zip(*((std**2, degrees) for std, degrees in controls), strict=True) if controls else ((), ())
        own, steady = (combine_variances(np.array([*p, *more]), np.array([*degrees, *free])) for p in (parts, steadied))
        return StandardError(own.std, min(own.degrees, steady.degrees), within)

    def _along(self, influence: FloatArray) -> float:
        """Return by which factor sums over sizes of one method and seed vary more than by chance."""
        if self.line is None:
            return 1.0
        moved = influence * self._scaled
        apart = float((moved**2).sum())
        return max(1.0, float((np.bincount(self.line, moved) ** 2).sum()) / apart) if apart else 1.0

    def persistence(self) -> tuple[float, float]:
        """Return the mean correlation of runs over pairs of sizes of a method, by line, and its z-score.

        NaN without pairs.
        """
        if self.line is None:
            return math.nan, math.nan
        # Each pair of cells with s lines in common has a correlation r, which under random orders of its runs has mean
        # 0 and variance 1/(s − 1); pairs are uncorrelated then, so that Σ (s − 1) r has variance Σ (s − 1).
        inside = [self.cell == c for c in range(len(self.size))]
        lines = [dict(zip(self.line[i], self.value[i], strict=True)) for i in inside]
        total, weight = 0.0, 0
        for one, two in combinations(lines, 2):
            shared = sorted(one.keys() & two.keys())
            if len(shared) < 2:
                continue
            r = pearson(np.array([[one[k] for k in shared]]), np.array([two[k] for k in shared]))[0]
            if not math.isnan(r):
                total += (len(shared) - 1) * float(r)
                weight += len(shared) - 1
        return (total / weight, total / math.sqrt(weight)) if weight else (math.nan, math.nan)

    @cached_property
    def _steadied(self) -> FloatArray:
        """Variance of each cell, drawn a little to that of all cells of its size.

        Degrees of freedom rest on it where it makes them fewer: next to a mean of many runs, two
        runs that are near each other by chance would hide that most of the error is theirs.
        """
        _, size = np.unique(self.size, return_inverse=True)
        squares = np.nan_to_num(self.variance) * self.degrees
        pooled = np.bincount(size, squares) / np.maximum(np.bincount(size, self.degrees), 1)
        return np.asarray((squares + STEADY * pooled[size]) / (self.degrees + STEADY))

    def _by_subset(self, influence: FloatArray, lent: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the variance of each size, summing what moves with a training subset, and its degrees of freedom.

        Between them, the same variance drawn a little to that of independent methods, as in :attr:`_steadied`.
        A small subset may be part of a large one of the same name, so that sizes may not be
        independent: if sums over all sizes vary more than the sizes by themselves, that counts.
        """
        _, size = np.unique(self.size, return_inverse=True)
        moved = influence * self._scaled
        sums = np.zeros((size.max() + 1, self._fold_codes.max() + 1))
        np.add.at(sums, (size[self.cell], self._fold_codes), moved)
        apart = (sums**2).sum(axis=1)
        nested = float((sums.sum(axis=0) ** 2).sum())
        if self.seed is not None and self._one_seed:  # subsets of another name at each size may go with one seed
            nested = max(nested, float((np.bincount(self.seed, moved) ** 2).sum()))
        more = max(1.0, nested / float(apart.sum())) if apart.any() else 1.0  # never narrower than sizes by themselves
        # Variance of a run of each cell, estimated from its training subsets.
        borrowed = lent * self._per_fold_squares(self._scaled) / self.count
        weight = np.where(self.degrees > 0, self._per_fold_squares(moved) + borrowed, 0.0)
        total = np.bincount(size, weight, len(sums))
        lost = np.bincount(size, weight / np.maximum(self.degrees, 1), len(sums))
        parts = more * apart + np.bincount(size, borrowed, len(sums))
        # Differences that are the same for every subset, as those of two pairs often are by chance, show no variance
        # of 0: methods count as independent there.
        parts = np.where(parts <= TIE * total, total, parts)
        used = total > 0
        parts, total, degrees = parts[used], total[used], total[used] / lost[used]
        return parts, (degrees * parts + STEADY * total) / (degrees + STEADY), degrees

    def _lent(self, influence: FloatArray) -> FloatArray:
        """Return the weights of cells that lend their spread to cells without one.

        Such a cell takes the pooled variance of cells of its size, else of the nearest smaller
        size that has some (spread falls with size), else of the nearest larger one.
        """
        known, squares = self.degrees > 0, self._per_cell(influence**2)
        found = np.zeros(len(self.size))
        lending = np.unique(self.size[known])
        for i in np.flatnonzero(~known & (squares > 0)):
            # Smaller sizes first: spread falls with size, so that theirs is rather too large than too small.
            below = lending[lending <= self.size[i]]
            pool = known & (self.size == (below[-1] if len(below) else lending[0]))
            found[pool] += squares[i] * self.degrees[pool] / self.degrees[pool].sum()
        return found

    def _per_cell(self, values: FloatArray) -> FloatArray:
        return np.bincount(self.cell, values, len(self.size)).astype(np.float64)

    @cached_property
    def _residual(self) -> FloatArray:
        return np.asarray(self.value - self.mean[self.cell])

    @cached_property
    def _fold_codes(self) -> NDArray[np.int64]:
        if self.fold is None:
            return np.zeros(len(self.value), dtype=np.int64)
        # A run whose subset is not known has one of its own: it may be none of the others'.
        alone = self.fold < 0
        return np.where(alone, self.fold.max() + np.cumsum(alone), self.fold)

    @cached_property
    def _one_seed(self) -> bool:
        """True if all runs on a training subset of a size, of whatever method, are of one seed."""
        subsets = self.size[self.cell].tolist(), self._fold_codes.tolist()
        if self.seed is None:
            return False
        return len(set(zip(*subsets, strict=True))) == len(set(zip(*subsets, self.seed.tolist(), strict=True)))

    @cached_property
    def _folds(self) -> NDArray[np.int64]:
        """Training subsets of each cell."""
        pairs = np.unique(np.stack([self.cell, self._fold_codes]), axis=1)
        return np.bincount(pairs[0], minlength=len(self.size))

    @cached_property
    def _free(self) -> NDArray[np.int64]:
        """Runs, or training subsets, of each cell less 1."""
        return (self._folds if self.by_fold else self.count) - 1

    @cached_property
    def _scaled(self) -> FloatArray:
        """Residuals, larger by what the mean of a cell takes from them."""
        free = self.degrees[self.cell]
        return self._residual * np.sqrt((free + 1) / np.maximum(free, 1))

    def _per_fold_squares(self, values: FloatArray) -> FloatArray:
        """Sum values over the runs of a cell and subset, square the sums and add them up by cell."""
        sums = np.zeros((len(self.size), self._fold_codes.max() + 1))
        np.add.at(sums, (self.cell, self._fold_codes), values)
        return np.asarray((sums**2).sum(axis=1))


@dataclass(frozen=True)
class StandardError:
    """A standard error with its degrees of freedom; NaN where there is nothing to go by.

    ``within`` is that of fewer sources of error: intervals are not narrower, nor p-values smaller, than its own.
    """

    std: float
    degrees: float
    within: StandardError | None = None

    def interval(self, estimate: float, level: float) -> Interval:
        """Return Student's interval around an estimate."""
        half = self.std
        if half > 0:  # neither 0 nor NaN, of which there are no degrees of freedom
            half = self.std * float(stdtrit(min(self.degrees, MANY), 0.5 + level / 2))
        if self.within is not None:
            half = max(half, self.within.interval(0.0, level).high)
        return Interval(estimate, estimate - half, estimate + half, level)

    def pvalue(self, estimate: float, value: float = 0.0) -> float:
        """Return the two-sided p-value of the truth being ``value``."""
        away = abs(estimate - value)
        if math.isnan(self.std) or math.isnan(away):
            return math.nan
        if self.std == 0:
            return 1.0 if away == 0 else 0.0
        own = float(2 * stdtr(min(self.degrees, MANY), -away / self.std))
        return own if self.within is None else max(own, self.within.pvalue(estimate, value))


def combine_variances(parts: FloatArray, degrees: FloatArray) -> StandardError:
    """Add up independent variances, with Satterthwaite's degrees of freedom."""
    if (total := float(parts.sum())) <= 0:
        return StandardError(0.0, math.inf)
    lost = float(((parts / total) ** 2 / degrees).sum())
    return StandardError(math.sqrt(total), 1 / lost if lost > 0 else math.inf)


def adjust_pvalues(rows: Sequence[Row]) -> tuple[Row, ...]:
    """Fill the field ``adjusted`` of rows from their ``pvalue`` by Holm's method; NaN stays NaN."""
    values: list[Any] = list(rows)
    known = [i for i, row in enumerate(values) if not math.isnan(row.pvalue)]
    adjusted = dict(zip(known, holm([values[i].pvalue for i in known]), strict=True))
    return tuple(replace(row, adjusted=float(adjusted.get(i, math.nan))) for i, row in enumerate(values))


def columns_of(rows: Sequence[Any], names: str) -> dict[str, list[Any]]:
    """Return a column for each attribute of some rows; ``low=cci.low`` is a column low of an attribute of another.

    >>> columns_of([Interval(0.2, 0.1, 0.3)], "estimate error=low")
    {'estimate': [0.2], 'error': [0.1]}
    """
    split = (name.partition("=") for name in names.split())
    return {name: [attrgetter(path or name)(row) for row in rows] for name, _, path in split}
