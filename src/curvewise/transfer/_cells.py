"""One task: its methods by size, its controls, and what follows from them."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError
from curvewise.tables import number
from curvewise.transfer._gradients import calibrated_slopes, cci_slopes
from curvewise.transfer._spread import Error, Runs
from curvewise.transfer.cumulative import Weight, cci
from curvewise.types import Control, FloatArray, TransferRisks


@dataclass(frozen=True, eq=False)
class Estimate:
    """A number, how each run and each control moves it, and the task that it is about."""

    value: float
    influence: FloatArray
    blind: float
    maximal: float
    task: Task

    def __sub__(self, other: Estimate) -> Estimate:
        return Estimate(
            self.value - other.value,
            self.influence - other.influence,
            self.blind - other.blind,
            self.maximal - other.maximal,
            self.task,
        )

    @cached_property
    def error(self) -> Error:
        """Standard error; what is shared between the parts of a difference counts once."""
        return self.task.error(self)


@dataclass(frozen=True, eq=False)
class Task:
    """The runs of one task in cells of method and size.

    Attributes
    ----------
    name, scratch : str
    methods : tuple of str
        Without scratch, in order of appearance.
    runs : Runs
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
    runs: Runs
    cells: dict[tuple[str, float], int]
    failed: dict[tuple[str, float], int]
    blind: Control
    maximal: Control
    best: int | None = None
    twice: int = 0
    seeded: bool = True

    def sizes(self, method: str) -> FloatArray:
        """Sizes at which a method has a run, from small to large."""
        return np.array(sorted(n for m, n in self.cells if m == method), dtype=np.float64)

    def shared(self, *methods: str) -> FloatArray:
        """Sizes that some methods and scratch have all."""
        found = self.sizes(self.scratch)
        for method in methods:
            found = np.intersect1d(found, self.sizes(method))
        return found

    def index(self, method: str, n: FloatArray) -> NDArray[np.int64]:
        """Cells of a method at some sizes."""
        return np.array([self.cells[method, float(size)] for size in n], dtype=np.int64)

    def calibrated(self, method: str, n: float) -> Estimate:
        """Calibrated mean risk of a method at a size."""
        cell = self.cells[method, float(n)]
        risk, b, m = self.runs.mean[cell], self.blind.risk, self.maximal.risk
        by_risk, by_blind, by_maximal = calibrated_slopes(float(risk), b, m)
        influence = np.where(self.runs.cell == cell, by_risk / self.runs.count[cell], 0.0)
        return Estimate(float((risk - m) / (b - m)), influence, by_blind, by_maximal, self)

    def gain(self, method: str, n: float) -> Estimate:
        """Calibrated risk of scratch less that of a method, at a size."""
        return self.calibrated(self.scratch, n) - self.calibrated(method, n)

    def cci(self, method: str, n: FloatArray, weight: Weight, pooled: bool) -> Estimate:
        """Cumulative improvement of a method over some sizes.

        Pooled, every run of the method is a point of its own, in the order of the source.
        """
        cells = self.index(method, n)
        rows = [np.flatnonzero(self.runs.cell == c) for c in cells]
        points = np.repeat(np.arange(len(n)), [len(r) if pooled else 1 for r in rows])
        every = np.concatenate(rows)
        risk = self.runs.value[every] if pooled else self.runs.mean[cells]
        scratch = self.index(self.scratch, n)[points]
        sizes, start = n[points], self.runs.mean[scratch]
        m, span = self.maximal.risk, self.blind.risk - self.maximal.risk
        value = cci(sizes, (risk - m) / span, (start - m) / span, weight=weight)
        slopes = cci_slopes(sizes, risk, start, m, weight)
        influence = np.zeros(len(self.runs.value))
        if pooled:
            influence[every] += slopes.method
        else:
            influence += self._spread_over(cells, slopes.method)
        influence += self._spread_over(scratch, slopes.scratch)
        return Estimate(value, influence, slopes.blind, slopes.maximal, self)

    def borrows(self, method: str, n: FloatArray) -> bool:
        """Whether a method, or scratch, has one run at half or more of some sizes."""
        single = [(self.runs.degrees[self.index(m, n)] == 0).mean() for m in (method, self.scratch)]
        return self.runs.replicated and bool(max(single) >= 0.5)

    def lowered(self, share: float) -> Task:
        """The task if maximal supervision were lower by a share of its distance to the guess."""
        risk = self.maximal.risk - share * (self.blind.risk - self.maximal.risk)
        return replace(self, maximal=replace(self.maximal, risk=risk), best=None)

    def _spread_over(self, cells: NDArray[np.int64], slopes: FloatArray) -> FloatArray:
        """Slopes by the means of cells as slopes by their runs."""
        by_cell = np.bincount(cells, slopes, len(self.runs.size)) / self.runs.count
        found: FloatArray = by_cell[self.runs.cell]
        return found

    def error(self, estimate: Estimate) -> Error:
        """Standard error of an estimate."""
        influence = estimate.influence
        controls = [(estimate.blind, self.blind)]
        if self.best is None:
            controls.append((estimate.maximal, self.maximal))
        else:
            influence = influence + self._spread_over(
                np.array([self.best]), np.array([estimate.maximal])
            )
        if np.isnan(influence).any():
            return Error(math.nan, math.nan)
        known = [
            (abs(slope) * control.std, control.degrees)
            for slope, control in controls
            if control.std > 0  # neither 0 nor unknown
        ]
        return self.runs.error(influence, known)


def cells_of(
    risks: TransferRisks,
    task: str,
    blind: Control | None,
    maximal: Control | None,
    sizes: FloatArray | None = None,
) -> Task:
    """The cells of one task, to be used at some sizes or at all.

    Without a maximal control, the best observed mean of all sizes stands for it.
    """
    own = risks.of(task=task)
    names = list(own.method_names)
    _check_controls(risks.scratch, task, names, blind)
    assert blind is not None
    lost = np.isnan(own.risk)
    if lost[own.methods == risks.scratch].all():
        raise InputError(
            f"every run of scratch={risks.scratch!r} on task {task!r} failed (all "
            f"{int((own.methods == risks.scratch).sum())} risks are NaN): run it again, or choose "
            "other tasks with tasks=."
        )
    good = own.select(~lost)
    keys = list(zip(good.methods.tolist(), good.n.tolist(), strict=True))
    cells = {key: i for i, key in enumerate(dict.fromkeys(keys))}
    runs = Runs(
        value=good.risk,
        cell=np.array([cells[key] for key in keys], dtype=np.int64),
        size=np.array([n for _, n in cells], dtype=np.float64),
        fold=None if good.folds is None else _codes(good.folds),
        line=_lines(own)[~lost],
    )
    best = None
    if maximal is None:
        best = int(np.argmin(runs.mean))
        maximal = _assumed(runs, best, list(cells)[best])
    _check_order(task, blind, maximal, any("turned into" in text for text in risks.notes))
    failed = zip(own.methods[lost].tolist(), own.n[lost].tolist(), strict=True)
    used = {n for _, n in cells} if sizes is None else set(sizes.tolist())
    left = {key: i for key, i in cells.items() if key[1] in used}
    there = {method for method, _ in left}
    return Task(
        name=task,
        scratch=risks.scratch,
        methods=tuple(m for m in names if m in there and m != risks.scratch),
        runs=runs,
        cells=left,
        failed=dict(Counter(key for key in failed if key[1] in used)),
        blind=blind,
        maximal=maximal,
        best=best,
        twice=_twice(good),
        seeded=own.seeds is not None,
    )


def _check_controls(scratch: str, task: str, names: list[str], blind: Control | None) -> None:
    if scratch not in names:
        raise InputError(
            f"scratch={scratch!r} was not measured on task {task!r}, where there are {names!r}: "
            "pass scratch= with the name of the one that starts from nothing."
        )
    if blind is None:
        raise InputError(
            f"blind is missing for task {task!r}: pass blind= with the risk of the best constant "
            "guess, which cw.blind_guess(targets, loss) computes, or with the name of the method "
            "whose rows hold it."
        )


def _codes(names: NDArray[np.str_]) -> NDArray[np.int64]:
    return np.unique(names, return_inverse=True)[1].astype(np.int64)


def _lines(risks: TransferRisks) -> NDArray[np.int64]:
    """Number the runs of each method by seed; without seeds, by their order at each size.

    Tables usually list the runs of every size in the same order, so that the k-th runs share what
    seed they may share. Where the order means nothing, intervals become a little wider.
    """
    if risks.seeds is not None:
        names = _codes(risks.seeds)
    else:
        seen: Counter[tuple[str, float]] = Counter()
        names = np.empty(len(risks), dtype=np.int64)
        for row, key in enumerate(zip(risks.methods.tolist(), risks.n.tolist(), strict=True)):
            names[row] = seen[key]
            seen[key] += 1
    pairs = np.stack([_codes(risks.methods), names])
    return np.unique(pairs, axis=1, return_inverse=True)[1].ravel().astype(np.int64)


def _twice(risks: TransferRisks) -> int:
    """Rows that say what another has said; without seeds and folds that may be chance."""
    if risks.seeds is None and risks.folds is None:
        return 0
    columns = [np.asarray(c).tolist() for c in risks.columns().values()]
    return len(risks) - len(set(zip(*columns, strict=True)))


def _assumed(runs: Runs, best: int, key: tuple[str, float]) -> Control:
    method, n = key
    error = runs.error(runs.of_mean(best), [])
    return Control(
        float(runs.mean[best]),
        error.std,
        f"best observed risk ({method}, n = {number(n)})",
        assumed=True,
        degrees=math.inf if math.isnan(error.degrees) else error.degrees,
    )


def _check_order(task: str, blind: Control, maximal: Control, turned: bool) -> None:
    if blind.risk > maximal.risk:
        return
    if maximal.assumed:
        remedy = (
            "no method is better than a blind guess, so that there is no scale: pass maximal= "
            "with a risk that can be reached"
        )
    else:
        what = "turned into risks, as higher were better" if turned else "read as lower is better"
        remedy = (
            f"the values are {what}. Exchange blind= and maximal= if they are mixed up, or read "
            f"the table with load_risks(…, higher_is_better={not turned}) if "
            f"{'lower' if turned else 'higher'} is better"
        )
    raise InputError(
        f"blind={blind.risk:g} ({blind.source}) of task {task!r} is not above "
        f"maximal={maximal.risk:g} ({maximal.source}): {remedy}."
    )
