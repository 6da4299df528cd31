"""What is said of measured transfer: warnings, notes and the summary."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from curvewise.tables import number, whole
from curvewise.transfer._cells import Task
from curvewise.transfer._maximal import beaten
from curvewise.transfer.comparison import Settings
from curvewise.types import FloatArray
from curvewise.types.risks import ONE_TASK

if TYPE_CHECKING:
    from curvewise.transfer.transfer_result import Improvement, RiskCurve, TransferResult

LOWER = 0.1  # how much lower maximal supervision might be, of the distance to the blind guess
PERSISTING = 3.2  # z-score from which runs are said to vary together; two runs at five sizes: 3.16
FAR = 10  # how many times the largest of risks between 0 and 1 a blind guess may be


def task_alarms(task: Task, settings: Settings, alone: bool) -> list[str]:
    """What the user should act on, for a task as a whole that may be the only one."""
    found = [
        *([_assumed(task, settings)] if task.maximal.assumed else []),
        *beaten(task),
        *_far(task),
        *_failures(task),
        *_no_spread(task),
        *_twice(task),
        *_persisting(task),
        *_apart(task),
        *_ranges(task, alone),
        *_rising(task, settings),
    ]
    return [f"{task.name}: {text}" for text in found]


def _far(task: Task) -> list[str]:
    """A blind guess in percent, by the look of it, beside risks that are fractions."""
    blind, risks = task.blind.risk, task.runs.value
    low, high = float(risks.min()), float(risks.max())
    if low < 0 or not 0 < high <= 1 or blind <= FAR * high:
        return []
    asked = f"in percent? Then pass {blind / 100:.6g}." if blind <= 100 else "in their unit?"
    return [
        f"blind={blind:.6g} is more than {FAR} times the largest risk, {number(high)}: is it "
        f"{asked} Calibrated risks and gains hang on it; CCI does not."
    ]


def _failures(task: Task) -> list[str]:
    if not task.failed:
        return []
    said = ", ".join(
        f"{m} at n = {number(n)}: {k}{'' if (m, n) in task.cells else ' (all of them)'}"
        for (m, n), k in task.failed.items()
    )
    many = sum(task.failed.values())
    return [
        f"{many} failed run{'' if many == 1 else 's'} left out ({said}), so that means are those "
        "of runs that went well: give a failed run the risk of what would be used in its place, if "
        "that is the question."
    ]


def _no_spread(task: Task) -> list[str]:
    if task.runs.replicated:
        return []
    return [
        "no method was run twice at any size, so that there is no interval: repeat some runs with "
        "other seeds, scratch first."
    ]


def _twice(task: Task) -> list[str]:
    if not task.twice:
        return []
    return [
        f"{task.twice} row{'' if task.twice == 1 else 's'} repeat the method, size, seed, fold and "
        "risk of another and count as runs of their own: was a table put together twice?"
    ]


def _persisting(task: Task) -> list[str]:
    """Runs that go up and down together over sizes, by nothing but their order in the table."""
    if task.seeded or task.runs.by_fold:
        return []
    r, z = task.runs.persistence()
    if not z > PERSISTING:
        return []
    return [
        f"the k-th runs of different sizes vary together (mean correlation {r:.2f}), as runs that "
        "share a seed do, and intervals are wider for it. There is no column of seeds: add one. If "
        "the rows of each size are sorted by risk, that is the reason: give them in the order in "
        "which they were run."
    ]


def _apart(task: Task) -> list[str]:
    names = [m for m in task.methods if not len(task.shared(m))]
    if not names:
        return []
    return [f"{', '.join(names)}: no size shared with {task.scratch}, so that no gain is known."]


def _rising(task: Task, settings: Settings) -> list[str]:
    share = rising_share(task, task.sizes(task.scratch), settings)
    if not share:
        return []
    return [
        f"{task.scratch} gets worse with more data in places: {number(100 * share, 2)}% of the "
        "weight is negative, and there a gain counts as a loss. More runs would tell whether that "
        "is noise; weight='log' does not depend on it."
    ]


def rising_share(task: Task, n: FloatArray, settings: Settings) -> float:
    """How much of the weight is negative: steps over which the risk of scratch rises."""
    if callable(settings.weight) or settings.weight != "scratch" or len(n) < 2:
        return 0.0
    steps = np.diff(task.runs.mean[task.index(task.scratch, n)])
    total = float(np.abs(steps).sum())
    return float(steps[steps > 0].sum()) / total if total else 0.0


def _assumed(task: Task, settings: Settings) -> str:
    control = task.maximal
    text = (
        f"maximal supervision was not measured: {number(control.risk)} stands for it "
        f"({control.source}). Pass maximal= with the risk that all the data gives"
    )
    known = {m: task.shared(m) for m in task.methods}
    found = {
        m: task.cci(m, n, settings.weight, settings.pooled) for m, n in known.items() if len(n) > 1
    }
    found = {m: e for m, e in found.items() if not math.isnan(e.value)}
    if not found:
        return text + "."
    best = max(found, key=lambda m: found[m].value)
    now = found[best].value
    lower = task.lowered(LOWER).cci(best, known[best], settings.weight, settings.pooled).value
    return (
        f"{text}: were it lower by {LOWER:.0%} of the distance to the blind guess, CCI of {best} "
        f"would be {number(lower, 3)} in place of {number(now, 3)}."
    )


def _ranges(task: Task, alone: bool) -> list[str]:
    """Methods whose improvements rest on different sizes."""
    held: dict[tuple[float, ...], list[str]] = {}
    for method in task.methods:
        n = task.shared(method)
        if len(n):
            held.setdefault(tuple(n.tolist()), []).append(method)
    if len(held) < 2:
        return []
    shared = sorted(set.intersection(*(set(sizes) for sizes in held)))
    said = "; ".join(
        f"{', '.join(names[:4])}{' …' if len(names) > 4 else ''} on {_listed(sizes)}"
        for sizes, names in held.items()
    )
    chosen = [whole(n) for n in shared]
    remedy = (
        f"Pass sizes={chosen if alone else {task.name: chosen}!r}, which all of them have"
        if len(shared) > 1
        else "No two sizes are shared by all"
    )
    return [f"CCIs rest on different sizes and are not comparable. {remedy}. There are {said}."]


def _listed(sizes: Sequence[float]) -> str:
    if len(sizes) < 3:
        return " and ".join(map(number, sizes))
    return f"{len(sizes)} sizes from {number(sizes[0])} to {number(sizes[-1])}"


def task_notes(task: Task, curves: Sequence[RiskCurve]) -> list[str]:
    """What else there is to know of a task."""
    alone = (*_unknown(task), *_borrowed(task), *_one_subset(task), *_alike(task))
    found = [f"{task.name}: {text}" for text in alone]
    own = [c for c in curves if c.task == task.name]
    for text, chosen in (
        ("worse than the blind guess", [_where(c, c.calibrated > 1) for c in own]),
        (
            "better than maximal supervision",
            [_where(c, c.calibrated < 0) for c in own if c.method != task.scratch],
        ),
    ):
        said = [part for part in chosen if part]
        if said:
            found.append(f"{task.name}: {text}: {'; '.join(said)}.")
    return found


def _borrowed(task: Task) -> list[str]:
    """Means whose spread is that of others."""
    lending = task.runs.degrees > 0
    used = list(task.cells.values())
    known, size = lending[used], task.runs.size[used]
    if known.all() or not lending.any():
        return []
    alone = [
        m
        for m in (task.scratch, *task.methods)
        if len(task.sizes(m)) and not lending[task.index(m, task.sizes(m))].any()
    ]
    what = "training subset" if task.runs.by_fold else "run"
    text = (
        f"{int((~known).sum())} of {len(known)} means rest on one {what}; their spread is taken "
        "from methods with several at the same size, else at the nearest smaller one"
    )
    if size[~known].min() < task.runs.size[lending].min():
        text += ", below the smallest from the nearest larger one, where it may be too small"
    if alone:
        text += f". Intervals of {', '.join(alone)} hold if their runs spread alike"
    return [text + "."]


def _one_subset(task: Task) -> list[str]:
    if task.runs.fold is None or task.runs.by_fold or not task.runs.replicated:
        return []
    return [
        "every method was trained on one subset of each size, so that intervals are about other "
        "seeds on these subsets, not about other subsets."
    ]


def _alike(task: Task) -> list[str]:
    """Runs that differ nowhere, which are rather copies than a spread of 0."""
    variance = task.runs.variance[task.runs.count > 1]
    if not len(variance) or variance.any():
        return []
    return [
        "all runs of the same method and size have the same risk, so that intervals have no width "
        "and p-values mean nothing: are they copies of one run, or rounded?"
    ]


def _unknown(task: Task) -> list[str]:
    """Maximal supervision that was measured, but not twice; CCI does not depend on the guess."""
    if not math.isnan(task.maximal.std) or task.best is not None:
        return []
    return [
        "the error of maximal supervision, measured once, is not known, and intervals take its "
        "risk as exact: run it with other seeds, too, or pass maximal= with its interval."
    ]


def _where(curve: RiskCurve, mask: NDArray[np.bool_]) -> str:
    if not mask.any():
        return ""
    return f"{curve.method} at n = {', '.join(map(number, curve.n[mask].tolist()))}"


def said_of_transfer(result: TransferResult) -> str:
    """A few sentences on a result."""
    tasks = f"{len(result.tasks)} task{'' if len(result.tasks) == 1 else 's'}"
    methods = f"{len(result.methods)} method{'' if len(result.methods) == 1 else 's'}"
    text = f"{methods} against {result.scratch} on {tasks}."
    return text + "".join(f" {_said_of_task(result, task)}" for task in result.tasks)


def _said_of_task(result: TransferResult, task: str) -> str:
    rows = [r for r in result.improvements if r.task == task]
    known = [r for r in rows if not math.isnan(r.cci.estimate)]
    if not known:
        return f"{task}: no improvement can be computed."
    best = max(known, key=lambda r: r.cci.estimate)
    nameless = result.tasks == (ONE_TASK,)  # the table has no column of tasks
    text = "" if nameless else f"{task}: "
    text += f"{'B' if nameless else 'b'}est is " if len(known) > 1 else ""
    text += f"{best.method}, CCI {_interval(best)}"
    told = [r for r in known if not math.isnan(r.pvalue)]
    share = 1 - result.level
    if len(told) > 1:
        signs = np.sign([r.cci.estimate for r in told if r.sure])
        text += f"; {int((signs > 0).sum())} of {len(told)} are better than {result.scratch}"
        text += f", {int((signs < 0).sum())} worse" if (signs < 0).any() else ""
        text += f" at {number(round(100 * share, 6))}% after Holm's correction for "
        text += f"{len(told)} tests"
    text += "."
    if best.gain_ends is not None and told:
        text += f" {best.gain_ends.text}"
    if result.maximal[task].assumed:
        text += f" Maximal supervision is assumed: {result.maximal[task].source}."
    return text


def _interval(row: Improvement) -> str:
    if math.isnan(row.cci.low):
        return number(row.cci.estimate, 3)
    ends = f"[{number(row.cci.low, 3)}, {number(row.cci.high, 3)}]"
    return f"{number(row.cci.estimate, 3)} {ends}"
