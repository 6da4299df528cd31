"""Measure transfer: calibrated risks and cumulative improvements with their intervals."""

from __future__ import annotations

import math
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from shlex import quote
from typing import Any, TypeAlias

import numpy as np

from curvewise.errors import CurvewiseWarning, InputError, Message, arg, either, prefix
from curvewise.text import as_count, format_number
from curvewise.transfer.gains import data_equivalence, gain_end
from curvewise.transfer.load import by_task, load_risks, scratch_as_control
from curvewise.transfer.result import AVERAGE, CciSettings, Improvement, RiskCurve, TransferResult, check_name
from curvewise.transfer.risks import (
    Control,
    TransferRisks,
    Weight,
    as_control,
    measured_control,
    names_share,
    step_widths,
)
from curvewise.transfer.runs import TaskRuns, adjust_pvalues, group_runs, shown_risk
from curvewise.types.results import FloatArray, as_floats, check_level

ControlLike: TypeAlias = Any  # a number, an Interval, a Control, a name, or these by task
Sizes = Sequence[float] | Mapping[str, Sequence[float]]

SEEDS = ("mean", "pooled")
RISKS = ("risk", "loss", "error")
LOWER = 0.1  # how much lower maximal supervision might be, as a share of the distance to the blind guess
FAR = 10  # a blind guess more than so many times the largest of risks between 0 and 1 is probably in percent
# z-score above which runs are reported to vary together. Two runs at five sizes that agree by chance reach
# (5 · 4 / 2) / √10 = 3.16, which must not raise an alarm.
PERSISTING = 3.2


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
    source : TransferRisks, path, DataFrame, dict or list
        Risks of methods by training size. All but TransferRisks is read by :func:`load_risks`: a table has the columns
        method, n and risk (or loss, error, accuracy, …), and task, seed and fold where there are several. NaN is a run
        that failed.
    scratch : str, optional
        Name of the method that starts from nothing; by default the one called scratch, from-scratch, ….
    blind, maximal : float, Interval, Control, str or dict, optional
        Risks of the controls: a number, one with its error, the name of the method whose rows hold
        it (those without a size, else those at its largest), or a dictionary of these by task.
        A control given here replaces that of ``source``. Without ``maximal`` the best mean
        risk of the methods measured stands for it, at any size; without ``blind`` the worst, as the
        end of the scale of calibrated risks and gains, which CCI does not depend on.
    weight : {"scratch", "uniform", "log"} or callable
        Scale on which the area between the curves is integrated; see :func:`cci`.
    seeds : {"mean", "pooled"}
        Average the runs of each size, or take each as a point of its own in the order of the source, as the authors of
        the measure do. Pooled, the result depends on that order, and scratch does not score 0.
    sizes : sequence of float, or dict by task, optional
        Training sizes to use; all by default.
    methods, tasks : sequence of str, optional
        Which to measure; all by default. Methods that are left out lend their spread to means of one run, so that
        intervals between given controls do not depend on the choice. They stand for no control, and Holm's correction
        does not count them. Drop their rows to leave them out of everything.
    level : float
        Coverage of the intervals.

    Returns
    -------
    TransferResult
        Curves of calibrated risk; for each task and method the calibrated cumulative improvement
        (CCI), the gain at each size, where it ends and how many samples it is worth.

    Warns
    -----
    CurvewiseWarning
        If maximal supervision or the blind guess is assumed, scratch beats maximal supervision at
        some size, the blind guess looks
        like a percentage beside fractions, runs failed, nothing was run twice, runs vary together
        over sizes though no column of seeds says why, methods rest on different sizes, or scratch
        gets worse with more data. Maximal supervision that scratch beats on the whole, which would
        turn the sign of CCI round, is an error; where it does so over the sizes of one method, that has no CCI.

    Notes
    -----
    The blind guess sets the scale of calibrated risks and gains; CCI does not depend on it.
    Intervals count the error of a control that has one (of several runs, an Interval or a Control), and are never
    narrower for it.
    One run and a plain number have none, and are taken as exact; a note says so of one run.

    Intervals are about other runs of the same kind on the same test set (not about other pretrainings, nor other test
    examples): by the delta method, with the spread between runs of each method and size and Satterthwaite's degrees of
    freedom, fewer where a mean of few runs stands beside one of many. A mean of one run, or of a few
    that are equal by chance, borrows the spread of other methods at its size. Runs of a method with
    the same ``seed`` at several sizes may go up and down together: where they do, intervals are
    wider. Without a column of
    seeds, the k-th runs of the sizes, in the order of the source, are taken to share one. Where
    ``fold`` says which runs were trained on the same examples, these count as pairs of methods
    (as independent at a size where all pairs differ by the same, which is chance);
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
    twenty goes wrong: runs that went well say nothing about those that might not. CCI,
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
    if seeds not in SEEDS:
        raise InputError("is not known: use 'mean' or 'pooled'.", argument="seeds", value=seeds)
    step_widths(np.array([1.0, 2.0]), np.array([1.0, 2.0]), weight)  # refuse an unknown weight before measuring
    settings = CciSettings(weight, seeds == "pooled", check_level(level))
    risks = _read_source(source, scratch, blind, maximal)
    if AVERAGE in risks.task_names:
        raise InputError(f"holds {AVERAGE!r}, which a mean over tasks is called: rename it.", argument="task")
    _check_names("methods", methods, risks.method_names)
    _check_names("tasks", tasks, risks.task_names)
    _check_names("sizes", list(sizes) if isinstance(sizes, Mapping) else None, risks.task_names)
    if tasks is not None and not len(tasks):
        raise InputError("is empty: name at least one, or leave it out for all.", argument="tasks", value=tasks)
    cells = []
    for name in risks.task_names if tasks is None else dict.fromkeys(tasks):
        own = risks.of(task=name)
        chosen = _choose_sizes(risks, own, sizes, name)
        cells.append(group_runs(own, name, chosen, methods))
        _check_maximal(cells[-1], weight)
    curves = tuple(_curve(task, method, level) for task in cells for method in (task.scratch, *task.methods))
    rows: list[Improvement] = []
    for task in cells:
        rows += adjust_pvalues([_improvement(task, m, settings) for m in task.methods if len(task.shared(m))])
    alarms = [prefix(f"{task.name}: ", w) for task in cells for w in _task_warnings(task, settings, len(cells) == 1)]
    alarms += [prefix(f"{r.task}, {r.method}: ", text) for r in rows for text in r.warnings]
    known = [prefix(f"{task.name}: ", text) for task in cells for text in _task_notes(task, curves)]
    for text in alarms:
        warnings.warn(text, CurvewiseWarning, stacklevel=2)
    notes = risks.notes
    keys = zip(risks.tasks.tolist(), risks.methods.tolist(), risks.n.tolist(), strict=True)
    if risks.seeds is None and risks.folds is None and max(Counter(keys).values()) > 1:
        notes = (*notes, "There is no column of seeds: the k-th runs of different sizes count as one seed.")
    called = str(getattr(weight, "__name__", "own")) if callable(weight) else weight
    return TransferResult(
        tasks=tuple(task.name for task in cells),
        methods=tuple(dict.fromkeys(m for task in cells for m in task.methods)),
        scratch=risks.scratch,
        blind={task.name: task.blind for task in cells},
        maximal={task.name: task.maximal for task in cells},
        curves=curves,
        improvements=tuple(rows),
        weight=called if called.isidentifier() else "own",
        seeds=seeds,
        level=level,
        unit=risks.unit,
        warnings=(*alarms, *known),
        notes=notes,
        _cells={task.name: task for task in cells},
        _settings=settings,
    )


def _read_source(source: Any, scratch: str | None, blind: ControlLike, maximal: ControlLike) -> TransferRisks:
    """Read risks and controls from a table or :class:`TransferRisks`, and from the arguments beside it."""
    if isinstance(source, TransferRisks):
        own = source
    else:
        # The reader knows whether numbers beside a table are accuracies, as its own are.
        try:
            own = load_risks(source, scratch=scratch, blind=blind, maximal=maximal)
        except InputError as error:
            if not re.search(r"\b(columns|higher_is_better|unit|where)=", str(error)):
                raise
            remedy = "Read the table with load_risks, which has these arguments, and pass what it returns."
            raise InputError(error.message, remedy=remedy) from error
        scratch = blind = maximal = None
    start, tasks = scratch or own.scratch, own.task_names
    held: dict[str, dict[str, Control]] = {}
    used: set[str] = set()
    for role, given in (("blind", blind), ("maximal", maximal)):
        held[role] = dict(getattr(own, role))
        for task, value in by_task(given, tasks, role, "the source").items():
            if isinstance(value, str):
                held[role][task] = _named_control(own, value, role, task, start)
                used.add(value)
            elif own.turned and isinstance(value, int | float | np.number):
                raise InputError(
                    "may be a value like those of the table, where higher is better, or a risk.",
                    argument=role,
                    value=value,
                    remedy=f"Pass it to load_risks as the table has it, or as a risk: Control({value!r}).",
                )
            elif value is not None:
                held[role][task] = as_control(value, role)
    keep = ~np.isin(own.methods, sorted(used))
    if not keep.any():
        raise InputError("holds no runs beside those of the controls.", argument="source")
    risks = replace(own.select(keep), scratch=start, blind=held["blind"], maximal=held["maximal"])
    # Risks that are shares of examples by what they are called can be checked for controls in another unit.
    if names_share(risks.unit) or risks.unit.startswith(("1 − ", "100 − ")):
        for task in risks.task_names:
            seen = risks.of(task=task).risk
            for role, controls in held.items():
                if task in controls and not np.isnan(seen).all():
                    _check_share(role, controls[task], task, seen[~np.isnan(seen)])
    return risks


def _named_control(own: TransferRisks, name: str, role: str, task: str, scratch: str) -> Control:
    """Return a control from the rows of a method: those without a size, else those at its largest."""
    if name == scratch:
        raise scratch_as_control(role, name)
    here = own.tasks == task
    rows = here & (own.methods == name)
    found = measured_control(own.n[rows], own.risk[rows])
    if found is None:
        there = sorted(set(own.methods[here].tolist()))
        raise InputError(f"has no risk on task {task!r}; there are {there!r}.", argument=role, value=name)
    return found


def _check_share(role: str, control: Control, task: str, seen: FloatArray) -> None:
    """Raise for a percentage among fractions, or a fraction among percentages."""
    risk, low, high = control.risk, float(seen.min()), float(seen.max())
    text, among = f"of task {task!r} looks like a ", f"risks from {low:.4g} to {high:.4g}"
    shown = shown_risk(risk)
    if low >= 0 and high <= 1 < risk <= 100:
        unbounded = either("call the column loss", "pass --unit loss")
        raise InputError(
            f"{text}percentage beside fractions ({among}).",
            argument=role,
            value=shown,
            remedy=f"Pass {risk / 100:.6g}, or {unbounded} if it has no bounds.",
        )
    if role == "blind" and 0 < risk <= 1 < high <= 100 and risk < low <= 100 * risk:
        raise InputError(
            f"{text}fraction beside percentages ({among}).",
            argument=role,
            value=shown,
            remedy=f"Pass {100 * risk:.6g}.",
        )


def _check_names(argument: str, names: Sequence[str] | None, known: Sequence[str]) -> None:
    if isinstance(names, str):
        raise InputError("is one text: give a list of names.", argument=argument, value=names)
    for name in names or ():
        check_name(argument, name, known)


def _choose_sizes(risks: TransferRisks, own: TransferRisks, sizes: Sizes | None, task: str) -> FloatArray | None:
    """Return the sizes asked for, of which a task has some; None for all."""
    wanted = sizes.get(task) if isinstance(sizes, Mapping) else sizes
    if wanted is None:
        return None
    chosen = np.atleast_1d(as_floats(wanted, "sizes"))
    there = np.unique(own.n if isinstance(sizes, Mapping) else risks.n)
    for size in chosen:
        if size not in there:
            raise InputError(
                f"was not measured; there are {[as_count(n) for n in there]!r}.", argument="sizes", value=as_count(size)
            )
    start = own.n[(own.methods == own.scratch) & ~np.isnan(own.risk)]
    if not np.isin(start, chosen).any():
        raise InputError(f"holds none at which {own.scratch!r} has {task!r}.", argument="sizes", value=wanted)
    return chosen


def _curve(task: TaskRuns, method: str, level: float) -> RiskCurve:
    n = task.sizes(method)
    cells = task.index(method, n)
    found = [task.calibrated(method, size) for size in n]
    value, low, high = np.array([[*e.error.interval(e.value, level)] for e in found]).reshape(-1, 3).T
    return RiskCurve(
        task=task.name,
        method=method,
        n=n,
        risk=task.runs.mean[cells],
        calibrated=value,
        low=low,
        high=high,
        std=np.sqrt(task.runs.variance[cells]) / (task.blind.risk - task.maximal.risk),
        runs=task.runs.count[cells],
        failed=np.array([task.failed.get((method, size), 0) for size in n.tolist()], dtype=np.int64),
    )


def _improvement(task: TaskRuns, method: str, settings: CciSettings) -> Improvement:
    n, level = task.shared(method), settings.level
    found = task.cci(method, n, settings.weight, settings.pooled)
    gains = [task.gain(method, size) for size in n]
    gain, low, high = np.array([[*e.error.interval(e.value, level)] for e in gains]).T
    # How many samples of scratch each size of the method is worth.
    own, start = (task.index(m, task.sizes(m)) for m in (method, task.scratch))
    at = task.runs.size
    (variance, degrees), (scratch_variance, scratch_degrees) = (task.runs.of_means(cells) for cells in (own, start))
    worth = data_equivalence(
        task.sizes(method),
        task.runs.mean[own],
        task.sizes(task.scratch),
        task.runs.mean[start],
        variance=variance,
        scratch_variance=scratch_variance,
        # Means of a method and of scratch may share training subsets at the same size.
        covariance=[[task.runs.covariance(a, b) if at[a] == at[b] else 0.0 for b in start] for a in own],
        degrees=degrees,
        scratch_degrees=scratch_degrees,
        level=level,
    )
    alarms: tuple[str, ...] = ()
    reversed_ = False
    if len(n) < 2:
        alarms = (f"one size shared with scratch, n = {format_number(n[0])}: CCI needs two; its gain is there.",)
    elif task.is_turned(n, settings.weight):
        text = f"{task.scratch} beats maximal supervision over the sizes shared with it, so that there is no CCI"
        alarms = (Message(f"{text}: pass a lower {arg('maximal')}, or leave it out."),)
    elif math.isnan(found.value):
        alarms = ("scratch encloses no area over these sizes, so that there is no CCI.",)
    elif np.ptp(np.sign(step_widths(n, task.runs.mean[task.index(task.scratch, n)], settings.weight))) > 1:
        # Steps on which scratch gets worse count backwards; log n has no such steps.
        against = task.cci(method, n, "log", False).value * found.value < 0
        reversed_ = against and not found.error.pvalue(found.value) > 1 - level
        if reversed_:
            text = (
                f"CCI has the sign that it has because {task.scratch} gets worse with more data in places; over log n"
            )
            alarms = (Message(f"{text} it is the other way round. It is not called significant: see the gains."),)
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
        gain_ends=None if np.isnan(low).all() else gain_end(n, gain, low, high),
        data_equivalence=worth,
        borrowed=task.borrows(method, n),
        reversed=reversed_,
        warnings=alarms,
    )


def _check_maximal(task: TaskRuns, weight: Weight) -> None:
    """Raise for maximal supervision that scratch beats over all sizes together."""
    if not task.is_turned(task.sizes(task.scratch), weight):
        return
    seen, cells = task.runs.value, [i for (m, _), i in task.cells.items() if m == task.scratch]
    who = f"every run of {task.scratch}"
    if (seen < task.maximal.risk).all():
        who = "every run"
    elif not (seen[np.isin(task.runs.cell, cells)] < task.maximal.risk).all():
        who = f"{task.scratch} on the whole, {_beaten_sizes(task)}"
    raise InputError(
        f"of task {task.name!r} is beaten by {who} (risks from {seen.min():.4g} to {seen.max():.4g}), which would turn "
        "the sign of CCI round. Is it in the unit of the risks, a fraction among fractions, an error among errors?",
        argument="maximal",
        value=shown_risk(task.maximal.risk),
        remedy="Pass the risk that all the data gives, by task where units differ, or leave it out.",
    )


def _beaten_sizes(task: TaskRuns) -> str:
    """List the sizes at which scratch beats maximal supervision, with its means; "" if there are none."""
    n = task.sizes(task.scratch)
    means = task.runs.mean[task.index(task.scratch, n)]
    lower = means < task.maximal.risk
    pairs = zip(n[lower], means[lower], strict=True)
    listed = ", ".join(f"n = {format_number(size)} ({format_number(mean)})" for size, mean in pairs)
    return f"at {listed}" if listed else ""


def _task_warnings(task: TaskRuns, settings: CciSettings, alone: bool) -> Iterator[str]:
    """Warn of what the user should act on, for a task as a whole that may be the only one."""
    if task.maximal.assumed:
        yield _assumed_maximal(task, settings)
    if task.blind.assumed:
        yield Message(
            f"no blind guess: {format_number(task.blind.risk)} stands for it ({task.blind.source}) on the scale of "
            "calibrated risks and gains. CCI, and gains in risk and in data, do not depend on it. For calibrated risks "
            f"pass {arg('blind')} with the risk of the best constant guess."
        )
    if where := _beaten_sizes(task):
        yield Message(
            f"{task.scratch} beats maximal supervision (a risk of {format_number(task.maximal.risk)}) {where}: the "
            f"area below its curve is negative there, and CCIs come out too far from 0. Pass {arg('maximal')} with "
            "what all the data gives, or leave it out: the best risk observed then stands for it."
        )
    blind, low, high = task.blind.risk, float(task.runs.value.min()), float(task.runs.value.max())
    if low >= 0 and 0 < high <= 1 and blind > FAR * high:
        asked = f"in percent? Then pass {blind / 100:.6g}." if blind <= 100 else "in their unit?"
        yield Message(
            f"{arg('blind', shown_risk(blind))} is more than {FAR} times the largest risk, {format_number(high)}: "
            f"is it {asked} Calibrated risks and gains depend on it; CCI does not."
        )
    if task.failed:
        listed = ", ".join(
            f"{m} at n = {format_number(n)}: {k}{'' if (m, n) in task.cells else ' (all of them)'}"
            for (m, n), k in task.failed.items()
        )
        n_failed = sum(task.failed.values())
        yield (
            f"{n_failed} failed run{'' if n_failed == 1 else 's'} left out ({listed}), so that means are those of runs "
            "that went well: give a failed run the risk of what would be used in its place, if that is the question."
        )
    if not task.runs.replicated:
        yield (
            "no method was run twice at any size, so that there is no interval: repeat some runs with other seeds, "
            "scratch first."
        )
    if task.twice:
        yield (
            f"{task.twice} row{'' if task.twice == 1 else 's'} repeat the method, size, seed, fold and risk of another "
            "and count as runs of their own: was a table put together twice?"
        )
    if not (task.seeded or task.runs.by_fold):
        # Only the order of the rows says which runs of different sizes belong together.
        r, z = task.runs.persistence()
        if z > PERSISTING:
            yield (
                f"the k-th runs of different sizes vary together (mean correlation {r:.2f}), as runs that share a seed "
                "do, and intervals are wider for it. There is no column of seeds: add one. If the rows of each size "
                "are sorted by risk, that is the reason: give them in the order in which they were run."
            )
    apart = [m for m in task.methods if not len(task.shared(m))]
    if apart:
        yield f"{', '.join(apart)}: no size shared with {task.scratch}, so that no gain is known."
    yield from _different_sizes(task, alone)
    if settings.weight == "scratch":
        steps = np.diff(task.runs.mean[task.index(task.scratch, task.sizes(task.scratch))])
        rising, total = float(steps[steps > 0].sum()), float(np.abs(steps).sum())
        if rising:
            places = f"in places: {format_number(100 * rising / total, 2)}% of the weight is negative, and there"
            if 2 * rising > total:  # the area below scratch is then negative as a whole, and CCI the share of it
                places = "from the smallest size to the largest: CCI weighs each step by how much worse it gets, and "
                places += "where it gets better"
            yield Message(
                f"{task.scratch} gets worse with more data {places} a gain counts as a loss. More runs would show "
                f"whether that is noise; {arg('weight', 'log')} does not depend on it."
            )


def _assumed_maximal(task: TaskRuns, settings: CciSettings) -> str:
    """Say what stands for maximal supervision, and how much the best CCI depends on it."""
    control = task.maximal
    text = (
        f"maximal supervision was not measured: {format_number(control.risk)} stands for it ({control.source}). "
        f"Pass {arg('maximal')} with the risk that all the data gives"
    )
    how = (settings.weight, settings.pooled)
    known = {m: task.shared(m) for m in task.methods}
    found = {m: task.cci(m, n, *how).value for m, n in known.items() if len(n) > 1}
    found = {m: value for m, value in found.items() if not math.isnan(value)}
    if not found:
        return Message(text + ".")
    best = max(found, key=lambda m: found[m])
    least = replace(control, risk=control.risk - LOWER * (task.blind.risk - control.risk))
    lower = replace(task, maximal=least, best=None).cci(best, known[best], *how).value
    return Message(
        f"{text}: were it lower by {LOWER:.0%} of the distance to the "
        f"{'largest risk' if task.blind.assumed else 'blind guess'}, CCI of {best} would be "
        f"{format_number(lower, 3)} in place of {format_number(found[best], 3)}."
    )


def _different_sizes(task: TaskRuns, alone: bool) -> Iterator[str]:
    """Warn of methods whose improvements rest on different sizes."""
    held: dict[tuple[float, ...], list[str]] = {}
    for method in task.methods:
        if len(n := task.shared(method)):
            held.setdefault(tuple(n.tolist()), []).append(method)
    if len(held) < 2:
        return
    parts = []
    for sizes, names in held.items():
        span = f"{len(sizes)} sizes from {format_number(sizes[0])} to {format_number(sizes[-1])}"
        span = " and ".join(map(format_number, sizes)) if len(sizes) < 3 else span
        parts.append(f"{', '.join(names[:4])}{' …' if len(names) > 4 else ''} on {span}")
    shared = sorted(set.intersection(*(set(sizes) for sizes in held)))
    chosen = [as_count(n) for n in shared]
    remedy = "No two sizes are shared by all"
    if len(shared) > 1:
        listed = quote(f"{task.name}={','.join(map(str, chosen))}")
        own = {task.name: chosen}
        by_task = either(f"sizes={own}", f"--sizes {listed}")
        remedy = f"Pass {arg('sizes', chosen) if alone else by_task}, which all of them have"
    yield Message(f"CCIs rest on different sizes and are not comparable. {remedy}. There are {'; '.join(parts)}.")


def _task_notes(task: TaskRuns, curves: Sequence[RiskCurve]) -> Iterator[str]:
    """Report what else there is to know of a task, without anything to act on."""
    runs = task.runs
    if math.isnan(task.maximal.std) and task.best is None:  # CCI does not depend on the blind guess
        once = ", measured once," if task.maximal.source.startswith("measured") else ""
        yield Message(
            f"the error of maximal supervision{once} is not known, and intervals take its risk as exact: run "
            f"it with other seeds, too, or pass {arg('maximal')} with its interval."
        )
    lending = runs.degrees > 0
    used = list(task.cells.values())
    known, size = lending[used], runs.size[used]
    if not known.all() and lending.any():
        ties = int(runs.tied[used].sum())
        counts = {
            f"one {'training subset' if runs.by_fold else 'run'}": int((~known).sum()) - ties,
            "a few runs that are equal by chance": ties,
        }
        resting = " and ".join(f"{k} of {len(known)} means rest on {what}" for what, k in counts.items() if k)
        text = f"{resting}; their spread is taken from methods with several at the same size, else at the nearest "
        text += "smaller one"
        if size[~known].min() < runs.size[lending].min():
            text += ", below the smallest from the nearest larger one, where it may be too small"
        every = [m for m in (task.scratch, *task.methods) if len(task.sizes(m))]
        if single := [m for m in every if not lending[task.index(m, task.sizes(m))].any()]:
            text += f". Intervals of {', '.join(single)} hold if their runs spread alike"
        yield text + "."
    if runs.fold is not None and not runs.by_fold and runs.replicated:
        yield (
            "every method was trained on one subset of each size, so that intervals are about other seeds on these "
            "subsets, not about other subsets."
        )
    variance = runs.variance[runs.count > 1]
    if len(variance) and not variance.any():  # copies of one run rather than a spread of 0
        yield (
            "all runs of the same method and size have the same risk, so that intervals have no width and p-values "
            "mean nothing: are they copies of one run, or rounded?"
        )
    own = [c for c in curves if c.task == task.name]
    beyond = {
        "worse than the blind guess": [(c, c.calibrated > 1) for c in own if not task.blind.assumed],
        "better than maximal supervision": [(c, c.calibrated < 0) for c in own if c.method != task.scratch],
    }
    for text, chosen in beyond.items():
        where = [f"{c.method} at n = {', '.join(map(format_number, c.n[m].tolist()))}" for c, m in chosen if m.any()]
        if where:
            yield f"{text}: {'; '.join(where)}."
