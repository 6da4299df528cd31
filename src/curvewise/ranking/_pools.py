"""Checkpoints of a group as matrices of tasks by checkpoints."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError
from curvewise.types import CheckpointScores, FloatArray
from curvewise.types.scores import UNION


@dataclass(frozen=True, eq=False)
class Pool:
    """Checkpoints that are ranked against each other, without references.

    Attributes
    ----------
    group : str
    tasks, checkpoints : tuple of str
    accuracy : ndarray, shape (tasks, checkpoints)
        NaN where a checkpoint was not fine-tuned, or that failed.
    failed : ndarray of bool
        Where the table has a row without an accuracy.
    scores, gflops : dict of str to ndarray
        By measure, in the same shape.
    """

    group: str
    tasks: tuple[str, ...]
    checkpoints: tuple[str, ...]
    accuracy: FloatArray
    failed: NDArray[np.bool_]
    scores: Mapping[str, FloatArray]
    gflops: Mapping[str, FloatArray]

    @property
    def uneven(self) -> int:
        """Tasks for which not all checkpoints of the group were tried."""
        return int((np.isnan(self.accuracy) & ~self.failed).any(axis=1).sum())

    def cost(self, measure: str, task: int | None = None) -> float:
        """Mean cost of a score; NaN where unknown."""
        values = self.gflops.get(measure, np.full_like(self.accuracy, np.nan))
        some = values if task is None else values[task]
        known = some[~np.isnan(some)]
        return float(known.mean()) if len(known) else math.nan


def pools_of(table: CheckpointScores, union: bool) -> dict[str, Pool]:
    """The pool of each group, and of all as one at the end if there are several."""
    parts = table.by_group()
    if union and len(parts) > 1:
        if UNION in parts:
            raise InputError(
                f"groups holds {UNION!r}, which all groups together are called: rename it, or "
                "pass union=False."
            )
        _check_union(table)
        parts[UNION] = table.union()
    return {name: _pool(name, part) for name, part in parts.items()}


def _pool(group: str, table: CheckpointScores) -> Pool:
    if not table.ranked.any():
        raise InputError(f"group {group!r} holds references only: there is nothing to rank.")
    table = table.select(table.ranked)
    tasks = table.task_names
    names = tuple(dict.fromkeys(table.checkpoints.tolist()))
    assert table.tasks is not None
    row = {task: i for i, task in enumerate(tasks)}
    column = {name: i for i, name in enumerate(names)}
    rows = np.array([row[t] for t in table.tasks.tolist()])
    columns = np.array([column[c] for c in table.checkpoints.tolist()])

    def matrix(values: NDArray[np.float64]) -> FloatArray:
        found = np.full((len(tasks), len(names)), np.nan)
        found[rows, columns] = values
        return found

    return Pool(
        group,
        tasks,
        names,
        matrix(table.accuracy),
        matrix(np.isnan(table.accuracy).astype(np.float64)) == 1,
        {name: matrix(values) for name, values in table.scores.items()},
        {name: matrix(values) for name, values in table.gflops.items()},
    )


def _check_union(table: CheckpointScores) -> None:
    """One name in two groups is one checkpoint, with one accuracy and one score of a measure."""
    assert table.tasks is not None
    keys = list(zip(table.tasks.tolist(), table.checkpoints.tolist(), strict=True))
    first = {key: i for i, key in reversed(list(enumerate(keys)))}
    before = np.array([first[key] for key in keys])
    kinds = {"accuracies": table.accuracy, **{f"scores of {k}": v for k, v in table.scores.items()}}
    for kind, values in kinds.items():
        other = ~np.isclose(values, values[before], rtol=1e-9, atol=0, equal_nan=True)
        if other.any():
            row = int(np.flatnonzero(other)[0])
            task, name = keys[row]
            raise InputError(
                f"checkpoint {name!r} is in several groups with different {kind} for {task!r} "
                f"({values[before[row]]:g} and {values[row]:g}): name them apart, or pass "
                "union=False."
            )
