"""Measure transfer: calibrated risks and cumulative improvements with their intervals."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.stats.tests import holm
from curvewise.text import as_count, format_number
from curvewise.transfer.calibration import Weight, along
from curvewise.transfer.gains import Equivalence, data_equivalence, gain_end
from curvewise.transfer.result import (
    AVERAGE,
    Improvement,
    RiskCurve,
    Settings,
    TransferResult,
    near,
    task_alarms,
    task_notes,
)
from curvewise.transfer.risks import ONE_TASK, Control, TransferRisks, as_control, measured_control, names_share
from curvewise.transfer.runs import Estimate, Task, cells_of, check_maximal, is_turned
from curvewise.types.results import check_level
from curvewise.types.units import FloatArray, as_floats, same_names

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
        failed=np.array([task.failed.get((method, size), 0) for size in n.tolist()], dtype=np.int64),
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
    gain, low, high = (np.array([getattr(i, name) for i in intervals]) for name in ("estimate", "low", "high"))
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
        return (f"one size shared with scratch, n = {format_number(n[0])}: CCI needs two; its gain is there.",)
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
    return np.array([[task.runs.covariance(a, b) if size[a] == size[b] else 0.0 for b in start] for a in own])


# What is to be measured: tasks, methods and sizes by what was asked for.

Sizes = Sequence[float] | Mapping[str, Sequence[float]]


def chosen_tasks(risks: TransferRisks, sizes: Sizes | None, tasks: Sequence[str] | None) -> tuple[str, ...]:
    """Tasks asked for, or all; their names and those of ``sizes`` must be known."""
    known = risks.task_names
    if AVERAGE in known:
        raise InputError(f"task holds {AVERAGE!r}, which a mean over tasks is called: rename it.")
    if isinstance(tasks, str):
        raise InputError(f"tasks={tasks!r} is one text: give a list of names.")
    for argument, names in (("tasks", tasks), ("sizes", sizes if _by_task(sizes) else None)):
        for name in names or ():
            if name not in known:
                text = near(str(name), known)
                raise InputError(f"{argument} holds {name!r}, none of {list(known)!r}.{text}")
    if tasks is not None and not len(tasks):
        raise InputError("tasks is empty: name at least one, or leave it out for all.")
    return known if tasks is None else tuple(dict.fromkeys(tasks))


def _by_task(sizes: Sizes | None) -> bool:
    return isinstance(sizes, Mapping)


def check_methods(risks: TransferRisks, methods: Sequence[str] | None) -> None:
    """Raise unless methods asked for are there."""
    if isinstance(methods, str):
        raise InputError(f"methods={methods!r} is one text: give a list of names.")
    for name in methods or ():
        if name not in risks.method_names:
            known = list(risks.method_names)
            raise InputError(f"methods holds {name!r}, none of {known!r}.{near(name, known)}")


def chosen_sizes(risks: TransferRisks, own: TransferRisks, sizes: Sizes | None, task: str) -> FloatArray | None:
    """Sizes asked for, of which a task has some."""
    by_task = isinstance(sizes, Mapping)
    wanted = sizes.get(task) if isinstance(sizes, Mapping) else sizes
    if wanted is None:
        return None
    chosen = np.atleast_1d(as_floats(wanted, "sizes"))
    there = np.unique(own.n if by_task else risks.n)
    for size in chosen:
        if size not in there:
            raise InputError(
                f"sizes holds {as_count(size)}, which was not measured; there are {[as_count(n) for n in there]!r}."
            )
    start = own.n[(own.methods == own.scratch) & ~np.isnan(own.risk)]
    if not np.isin(start, chosen).any():
        raise InputError(f"sizes={wanted!r} holds none at which {own.scratch!r} has {task!r}.")
    return chosen


# What is measured: risks out of a table, with their controls.

ControlLike: TypeAlias = Any  # a number, an Interval, a Control, a name, or these by task
RISKS = ("risk", "loss", "error")


@dataclass(frozen=True, eq=False)
class Given:
    """Risks of the methods, and the controls of each task that has them."""

    risks: TransferRisks
    blind: Mapping[str, Control]
    maximal: Mapping[str, Control]


def read_source(source: Any, scratch: str | None, blind: ControlLike, maximal: ControlLike) -> Given:
    """Risks and controls out of a table or :class:`TransferRisks`, and what was passed beside."""
    columns, unit = _columns_of(source)
    own = source if isinstance(source, TransferRisks) else None
    start = scratch or (own.scratch if own else "scratch")
    tasks = tuple(dict.fromkeys(columns["task"].tolist()))
    held: dict[str, dict[str, Control]] = {}
    used: set[str] = set()
    for role, given in (("blind", blind), ("maximal", maximal)):
        held[role] = dict(getattr(own, role)) if own else {}
        for task, value in _by_task_sources(given, role, tasks).items():
            if isinstance(value, str):
                held[role][task] = _named(value, role, task, columns, start)
                used.add(value)
            elif value is not None:
                held[role][task] = as_control(value, role)
    keep = ~np.isin(columns["method"], sorted(used))
    risks = _as_risks({k: v[keep] for k, v in columns.items()}, own, start, unit)
    found = Given(risks, held["blind"], held["maximal"])
    for task in risks.task_names:
        _check_controls(found, task)
    return found


def _check_controls(given: Given, task: str) -> None:
    """Raise where a control is in another unit than the risks."""
    own = given.risks.of(task=task)
    seen = own.risk[~np.isnan(own.risk)]
    if not len(seen) or not _are_shares(given.risks.unit):
        return
    for role, controls in (("blind", given.blind), ("maximal", given.maximal)):
        if task in controls:
            _check_share(role, controls[task], task, seen)


def _are_shares(unit: str) -> bool:
    """Whether risks are shares of examples by what they are called, in percent or not."""
    return names_share(unit) or unit.startswith(("1 − ", "100 − "))


def _check_share(role: str, control: Control, task: str, seen: FloatArray) -> None:
    """Raise for a percentage among fractions, or a fraction among percentages."""
    risk, low, high = control.risk, float(seen.min()), float(seen.max())
    text = f"{role}={risk:.6g} of task {task!r} looks like a "
    among = f"risks from {low:.4g} to {high:.4g}"
    if low >= 0 and high <= 1 < risk <= 100:
        raise InputError(
            f"{text}percentage beside fractions ({among}): pass {risk / 100:.6g}, or call the "
            "column loss if it has no bounds."
        )
    if role == "blind" and 0 < risk <= 1 < high <= 100 and risk < low <= 100 * risk:
        raise InputError(f"{text}fraction beside percentages ({among}): pass {100 * risk:.6g}.")


def _columns_of(source: Any) -> tuple[dict[str, NDArray[Any]], str]:
    """Columns task, method, n, risk and, where they are, seed and fold; and what a risk is."""
    if isinstance(source, TransferRisks):
        return {k: np.asarray(v) for k, v in source.columns().items()}, source.unit
    if isinstance(source, str | PathLike):
        raise InputError(f"source={str(source)!r} is a name: pass load_risks({str(source)!r}).")
    names = _names(source)
    risk = [name for name in RISKS if name in names]
    missing = [name for name in ("method", "n") if name not in names] + ["risk"] * (not risk)
    if missing:
        raise InputError(
            f"source has no column {' and no '.join(map(repr, missing))}; it has {names!r}. Rename "
            "them to method, n and risk, or say which is which: load_risks(table, method=…, n=…, "
            "risk=…)."
        )
    if len(risk) > 1:
        raise InputError(f"source has the columns {risk!r}, all of them risks: keep one.")
    found = {"method": _named_rows(source["method"], "method"), "n": as_floats(source["n"], "n")}
    found["risk"] = as_floats(source[risk[0]], risk[0])
    rows = len(found["risk"])
    found["task"] = _named_rows(source["task"], "task") if "task" in names else np.full(rows, ONE_TASK)
    found |= {name: _texts(source[name]) for name in ("seed", "fold") if name in names}
    for name, column in found.items():
        if column.shape != (rows,):
            raise InputError(f"source has {rows} risks and {column.shape} entries of {name!r}.")
    return found, risk[0]


def _names(source: Any) -> list[str]:
    listed = source if isinstance(source, Mapping) else getattr(source, "columns", None)
    if listed is None or callable(listed):
        raise InputError(
            f"source is a {type(source).__name__}: pass TransferRisks, or a table with the columns "
            "method, n and risk, and task, seed or fold where there are several."
        )
    return [str(name) for name in listed]


def _texts(values: Any) -> NDArray[np.str_]:
    return np.asarray(values).astype(np.str_)


def _named_rows(values: Any, name: str) -> NDArray[np.str_]:
    """Names as text; none may be missing."""
    array = np.asarray(values)
    if array.dtype.kind in "Of":
        missing = sum(1 for v in array.ravel().tolist() if v is None or v != v or str(v) == "<NA>")
        if missing:
            raise InputError(f"source has {missing} row(s) without a {name}: name or drop them.")
    return np.array(same_names(array.astype(np.str_).tolist(), f"source: column {name!r}"))


def _as_risks(columns: Mapping[str, NDArray[Any]], own: TransferRisks | None, scratch: str, unit: str) -> TransferRisks:
    if not len(columns["risk"]):
        raise InputError("source holds no runs beside those of the controls.")
    made: dict[str, Any] = {
        "tasks": columns["task"],
        "methods": columns["method"],
        "n": columns["n"],
        "risk": columns["risk"],
        "seeds": columns.get("seed"),
        "folds": columns.get("fold"),
        "scratch": scratch,
        "unit": unit,
    }
    return TransferRisks(**made) if own is None else replace(own, **made)


def _by_task_sources(given: ControlLike, role: str, tasks: Sequence[str]) -> dict[str, Any]:
    """What was passed for each task."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        return dict.fromkeys(tasks, given)
    named = {str(task): value for task, value in given.items()}
    strangers = [t for t in named if t not in tasks]
    if strangers:
        raise InputError(f"{role} is given for {strangers[0]!r}, which is none of {list(tasks)!r}.")
    return named


def _named(name: str, role: str, task: str, columns: Mapping[str, NDArray[Any]], scratch: str) -> Control:
    """What the rows of a method say: those without a size, else those at its largest."""
    if name == scratch:
        raise InputError(
            f"{role}={name!r} is the method that starts from nothing, which is measured against it:"
            " pass its risk at the size that you mean as a number or a Control."
        )
    rows = (columns["method"] == name) & (columns["task"] == task)
    found = measured_control(columns["n"][rows], columns["risk"][rows])
    if found is None:
        there = sorted(set(columns["method"][columns["task"] == task].tolist()))
        raise InputError(f"{role}={name!r} has no risk on task {task!r}; there are {there!r}.")
    return found
