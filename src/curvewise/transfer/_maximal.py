"""Maximal supervision that training from scratch beats: in places a warning, else an error."""

from __future__ import annotations

import numpy as np

from curvewise.errors import InputError
from curvewise.tables import number
from curvewise.transfer._cells import Task
from curvewise.transfer.cumulative import Weight, along
from curvewise.types import FloatArray

REMEDY = "Pass maximal= with what all the data gives"


def is_turned(task: Task, n: FloatArray, weight: Weight) -> bool:
    """Whether scratch beats maximal supervision over some sizes, as CCI weighs them.

    The area below its calibrated curve, which CCI is a share of, then has the other sign.
    """
    above = _above(task, n)
    across = along(n, above, weight)
    area = float((across * (above[1:] + above[:-1])).sum())
    return bool((above < 0).all()) or float(across.sum()) * area < 0


def check_maximal(task: Task, weight: Weight) -> None:
    """Raise for maximal supervision that scratch beats on the whole."""
    n = task.sizes(task.scratch)
    if not is_turned(task, n, weight):
        return
    seen, scratch = task.runs.value, [i for (m, _), i in task.cells.items() if m == task.scratch]
    start = seen[np.isin(task.runs.cell, scratch)]
    who = f"every run of {task.scratch}"
    if (seen < task.maximal.risk).all():
        who = "every run"
    elif not (start < task.maximal.risk).all():
        who = f"{task.scratch} on the whole, {_where(task)}"
    raise InputError(
        f"maximal={task.maximal.risk:.6g} of task {task.name!r} is beaten by {who} (risks from "
        f"{seen.min():.4g} to {seen.max():.4g}), which would turn the sign of CCI round. Is it in "
        f"the unit of the risks, a fraction among fractions, an error among errors? {REMEDY}, by "
        "task where units differ, or leave it out."
    )


def beaten(task: Task) -> list[str]:
    """A warning where the mean of scratch is lower than maximal supervision at some size."""
    where = _where(task)
    if not where:
        return []
    return [
        f"{task.scratch} beats maximal supervision (a risk of {number(task.maximal.risk)}) "
        f"{where}: the area below its curve is negative there, and CCIs come out too far from 0. "
        f"{REMEDY}, or leave it out: the best risk observed then stands for it."
    ]


def _above(task: Task, n: FloatArray) -> FloatArray:
    found: FloatArray = task.runs.mean[task.index(task.scratch, n)] - task.maximal.risk
    return found


def _where(task: Task) -> str:
    """Sizes at which scratch beats maximal supervision, with its means."""
    n = task.sizes(task.scratch)
    above = _above(task, n)
    means = above + task.maximal.risk
    said = [
        f"n = {number(size)} ({number(mean)})"
        for size, mean in zip(n[above < 0], means[above < 0], strict=True)
    ]
    return f"at {', '.join(said)}" if said else ""
