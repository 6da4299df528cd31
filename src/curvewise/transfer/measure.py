"""Measure transfer: calibrated risks and cumulative improvements with their intervals."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.stats import holm
from curvewise.tables import number
from curvewise.transfer._cells import Estimate, Task, cells_of
from curvewise.transfer._chosen import Sizes, check_methods, chosen_sizes, chosen_tasks
from curvewise.transfer._maximal import check_maximal, is_turned
from curvewise.transfer._sources import ControlLike, Given, read_source
from curvewise.transfer._words import task_alarms, task_notes
from curvewise.transfer.comparison import Settings
from curvewise.transfer.cumulative import Weight, along
from curvewise.transfer.equivalence import Equivalence, data_equivalence
from curvewise.transfer.gains import gain_end
from curvewise.transfer.transfer_result import Improvement, RiskCurve, TransferResult
from curvewise.types import FloatArray, TransferRisks, check_level

SEEDS = ("mean", "pooled")


def measure_transfer(
    source: Any,
    *,
    scratch: str | None = None,
    blind: ControlLike = None,
    maximal: ControlLike = None,
    weight: Weight = "scratch",
    seeds: str = "mean",
    sizes: Sizes | None = None,
    methods: Sequence[str] | None = None,
    tasks: Sequence[str] | None = None,
    level: float = 0.95,
) -> TransferResult:
    """Measure how much pretraining helps, between a blind guess and maximal supervision.

    Parameters
    ----------
    source : TransferRisks, DataFrame or dict
        Risks of methods by training size. A table has the columns method, n and risk (or loss, or
        error), and task, seed and fold where there are several. NaN is a run that failed.
    scratch : str, optional
        Name of the method that starts from nothing; "scratch" by default.
    blind, maximal : float, Interval, Control, str or dict, optional
        Risks of the controls: a number, one with its error, the name of the method whose rows hold
        it (those without a size, else those at its largest), or a dictionary of these by task.
        What is given here goes before what ``source`` brings. Without ``maximal`` the best mean
        risk of the methods measured stands for it, at any size.
    weight : {"scratch", "uniform", "log"} or callable
        What the area between the curves is integrated over; see :func:`cci`.
    seeds : {"mean", "pooled"}
        Whether runs are averaged at each size, or each is a point of its own in the order of the
        source, as the authors of the measure have it. Pooled, the result depends on that order,
        and scratch does not score 0.
    sizes : sequence of float, or dict by task, optional
        Training sizes to use; all by default.
    methods, tasks : sequence of str, optional
        Which to measure; all by default.
    level : float
        Coverage of the intervals.

    Returns
    -------
    TransferResult
        Curves of calibrated risk; for each task and method the calibrated cumulative improvement
        (CCI), the gain at each size, where it ends and what it is worth in data.

    Warns
    -----
    CurvewiseWarning
        If maximal supervision is assumed or beaten by scratch at some size, the blind guess looks
        like a percentage beside fractions, runs failed, nothing was run twice, runs vary together
        over sizes though no column of seeds says why, methods rest on different sizes, or scratch
        gets worse with more data. Maximal supervision that scratch beats on the whole, which would
        turn the sign of CCI round, is an error.

    Notes
    -----
    The blind guess sets the scale of calibrated risks and gains; CCI does not depend on it.
    Intervals count the error of a control that has one: of several runs, an Interval or a Control.
    One run and a plain number have none, and are taken as exact; of one run that is said.

    Intervals are about other runs of the same kind (not about other pretrainings): by the delta
    method, with the spread between runs of each method and size and Satterthwaite's degrees of
    freedom, fewer where a mean of few runs stands beside one of many. A mean of one run borrows
    the spread of other methods at its size. Runs of a method with the same ``seed`` at several
    sizes may go up and down together: where they do, intervals are wider. Without a column of
    seeds, the k-th runs of the sizes, in the order of the source, are taken to share one. Where
    ``fold`` says which runs were trained on the same examples, these count as pairs of methods;
    without it, methods are taken as independent, and intervals are wider than need be if they are
    not.

    Simulated by ``benchmarks/transfer_coverage.py``, intervals of 95% hold the true CCI in 92 to
    99% of draws with two to ten runs, whether or not methods have as many runs and spread alike,
    with skewed or heavy-tailed noise, with an assumed maximal control, and with seeds that move a
    method alike at all sizes (94 to 98%, with a column of seeds or without). With two runs they
    are twice as wide as with three. What breaks them:

    - methods with one run that spread three times as much as the repeated ones: 71%;
    - small sizes with one run, which borrow the smaller spread of large ones: 70%;
    - seeds that move a method alike at all sizes, without a column of seeds and in another order
      at each size: 80 to 94%, and a true null is rejected in 6 to 21%;
    - maximal supervision that two runs measure, where they make up most of the error: 91%.

    The interval of one calibrated risk rests on the runs of one mean. It holds 95% if these are
    near normal, 82 to 89% if they are as skewed as a log-normal, and 56 to 73% if one run in
    twenty goes wrong: runs that did not happen to go wrong do not tell of those that might. CCI,
    gains and differences hold 95 to 99% then.

    Examples
    --------
    >>> table = {
    ...     "method": ["scratch"] * 6 + ["swav"] * 6,
    ...     "n": [100, 100, 1000, 1000, 10000, 10000] * 2,
    ...     "seed": [0, 1] * 6,
    ...     "loss": [0.83, 0.81, 0.52, 0.55, 0.30, 0.31, 0.52, 0.50, 0.33, 0.32, 0.25, 0.27],
    ... }
    >>> found = measure_transfer(table, blind=0.9, maximal=0.1)
    >>> print(found.table("text", digits=2))
    Method  task
    swav    0.43 [0.40, 0.47]
    >>> found.improvement("task", "swav").gain.round(2)
    array([0.39, 0.26, 0.06])
    >>> print(found.improvement("task", "swav").data_equivalence[0].text)
    100 samples of the method are worth ...
    """
    settings = _settings(weight, seeds, level)
    given = read_source(source, scratch, blind, maximal)
    check_methods(given.risks, methods)
    cells = [_task(given, name, sizes, methods) for name in chosen_tasks(given.risks, sizes, tasks)]
    for task in cells:
        check_maximal(task, weight)
    curves = tuple(c for task in cells for c in _curves(task, level))
    rows = tuple(r for task in cells for r in _adjusted(_improvements(task, settings)))
    alone = len(cells) == 1
    alarms = [text for task in cells for text in task_alarms(task, settings, alone)]
    alarms += [f"{r.task}, {r.method}: {text}" for r in rows for text in r.warnings]
    known = [text for task in cells for text in task_notes(task, curves)]
    for text in alarms:
        warnings.warn(text, CurvewiseWarning, stacklevel=2)
    return TransferResult(
        tasks=tuple(task.name for task in cells),
        methods=tuple(dict.fromkeys(m for task in cells for m in task.methods)),
        scratch=given.risks.scratch,
        blind={task.name: task.blind for task in cells},
        maximal={task.name: task.maximal for task in cells},
        curves=curves,
        improvements=rows,
        weight=getattr(weight, "__name__", "own") if callable(weight) else weight,
        seeds=seeds,
        level=level,
        unit=given.risks.unit,
        warnings=(*alarms, *known),
        notes=(*given.risks.notes, *_matched(given.risks)),
        _cells={task.name: task for task in cells},
        _settings=settings,
    )


def _matched(risks: TransferRisks) -> tuple[str, ...]:
    """How runs of different sizes were matched, where no column says so."""
    keys = zip(risks.tasks.tolist(), risks.methods.tolist(), risks.n.tolist(), strict=True)
    if risks.seeds is not None or risks.folds is not None or max(Counter(keys).values()) < 2:
        return ()
    return ("There is no column of seeds: the k-th runs of different sizes count as one seed.",)


def _settings(weight: Weight, seeds: str, level: float) -> Settings:
    if seeds not in SEEDS:
        raise InputError(f"seeds={seeds!r} is not known: use 'mean' or 'pooled'.")
    two = np.array([1.0, 2.0])
    along(two, two, weight)  # an unknown weight is told before anything is measured
    return Settings(weight, seeds == "pooled", check_level(level))


def _task(given: Given, name: str, sizes: Sizes | None, methods: Sequence[str] | None) -> Task:
    """The cells of a task with the sizes and methods that were asked for."""
    risks = given.risks
    keep = risks.tasks == name
    if methods is not None:
        keep &= np.isin(risks.methods, [risks.scratch, *methods])
    own = risks.select(keep)
    chosen = chosen_sizes(risks, own, sizes, name)
    return cells_of(own, name, given.blind.get(name), given.maximal.get(name), chosen)


def _curves(task: Task, level: float) -> list[RiskCurve]:
    return [_curve(task, method, level) for method in (task.scratch, *task.methods)]


def _curve(task: Task, method: str, level: float) -> RiskCurve:
    n = task.sizes(method)
    cells = task.index(method, n)
    found = [task.calibrated(method, size) for size in n]
    intervals = [e.error.interval(e.value, level) for e in found]
    span = task.blind.risk - task.maximal.risk
    return RiskCurve(
        task=task.name,
        method=method,
        n=n,
        risk=task.runs.mean[cells],
        calibrated=np.array([e.value for e in found]),
        low=np.array([i.low for i in intervals]),
        high=np.array([i.high for i in intervals]),
        std=np.sqrt(task.runs.variance[cells]) / span,
        runs=task.runs.count[cells],
        failed=np.array(
            [task.failed.get((method, size), 0) for size in n.tolist()], dtype=np.int64
        ),
    )


def _improvements(task: Task, settings: Settings) -> list[Improvement]:
    return [_improvement(task, m, settings) for m in task.methods if len(task.shared(m))]


def _adjusted(rows: Sequence[Improvement]) -> list[Improvement]:
    """The methods of a task, with p-values after Holm's correction for as many as there are."""
    known = [i for i, r in enumerate(rows) if not math.isnan(r.pvalue)]
    found = dict(zip(known, holm([rows[i].pvalue for i in known]), strict=True))
    return [replace(r, adjusted=float(found.get(i, math.nan))) for i, r in enumerate(rows)]


def _improvement(task: Task, method: str, settings: Settings) -> Improvement:
    n, level = task.shared(method), settings.level
    found = task.cci(method, n, settings.weight, settings.pooled)
    gains = [task.gain(method, size) for size in n]
    intervals = [e.error.interval(e.value, level) for e in gains]
    gain, low, high = (
        np.array([getattr(i, name) for i in intervals]) for name in ("estimate", "low", "high")
    )
    told = not np.isnan(low).all()
    return Improvement(
        task=task.name,
        method=method,
        cci=found.error.interval(found.value, level),
        pvalue=found.error.pvalue(found.value),
        adjusted=math.nan,  # until all methods of the task are known
        n=n,
        gain=gain,
        gain_low=low,
        gain_high=high,
        gain_ends=gain_end(n, gain, low, high) if told else None,
        data_equivalence=_equivalence(task, method, level),
        borrowed=task.borrows(method, n),
        warnings=_alarms(task, n, found, settings.weight),
    )


def _alarms(task: Task, n: FloatArray, found: Estimate, weight: Weight) -> tuple[str, ...]:
    if len(n) < 2:
        return (
            f"one size shared with scratch, n = {number(n[0])}: CCI needs two; its gain is there.",
        )
    if math.isnan(found.value):
        return ("scratch encloses no area over these sizes, so that there is no CCI.",)
    if is_turned(task, n, weight):
        return (
            f"{task.scratch} beats maximal supervision over the sizes shared with it, which turns "
            "the sign of CCI round: pass a lower maximal=, or leave it out.",
        )
    return ()


def _equivalence(task: Task, method: str, level: float) -> tuple[Equivalence, ...]:
    """What each size of a method is worth in samples of scratch."""
    cells = [task.index(m, task.sizes(m)) for m in (method, task.scratch)]
    (own, free), (start, start_free) = (task.runs.of_means(c) for c in cells)
    return data_equivalence(
        task.sizes(method),
        task.runs.mean[cells[0]],
        task.sizes(task.scratch),
        task.runs.mean[cells[1]],
        variance=own,
        scratch_variance=start,
        covariance=_covariances(task, *cells),
        degrees=free,
        scratch_degrees=start_free,
        level=level,
    )


def _covariances(task: Task, own: NDArray[np.int64], start: NDArray[np.int64]) -> FloatArray:
    """Between means of a method and of scratch at the same size, which may share subsets."""
    size = task.runs.size
    return np.array(
        [[task.runs.covariance(a, b) if size[a] == size[b] else 0.0 for b in start] for a in own]
    )
