"""Checkpoints with what fine-tuning gave and what measures said of them before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import InputError
from curvewise.text import format_count
from curvewise.types.results import FloatArray, RowTable, as_column, as_floats, distinct

ONE_GROUP = "all checkpoints"
ONE_TASK = "one task"
UNION = "union"
RESERVED = ("group", "task", "checkpoint", "accuracy", "reference")


@dataclass(frozen=True, eq=False, repr=False)
class CheckpointScores(RowTable):
    """A table on which ranking measures are judged: a row for each checkpoint and task.

    Attributes
    ----------
    checkpoints : ndarray of str
        Each once in a group and task.
    accuracy : ndarray
        After fine-tuning, as a fraction (or any score of which more is better); NaN where it
        failed.
    scores : dict of str to ndarray
        By measure; higher predicts better; NaN where there is none.
    tasks, groups : ndarray of str, optional
        Checkpoints are ranked within a group, for one task at a time.
    reference : tuple of str
        Checkpoints that are shown and never ranked, such as training from scratch.
    gflops : dict of str to ndarray
        Cost of a measure apart from the forward pass, NaN where unknown.
    baselines : tuple of str
        Which of the scores are plain baselines (size, source accuracy).
    notes : tuple of str
        How each column was interpreted.

    Examples
    --------
    >>> CheckpointScores(["a", "b"], [0.8, 0.9], {"nleep": [-1.2, -0.7]})
    CheckpointScores(2 checkpoints, 1 task, 1 group, 1 measure)
    """

    by_row = ("checkpoints", "accuracy", "scores", "tasks", "groups", "gflops")

    checkpoints: NDArray[np.str_]
    accuracy: FloatArray
    scores: Mapping[str, FloatArray] = field(default_factory=dict)
    # Any, since what may be left out is always an array of names afterwards.
    tasks: Any = None
    groups: Any = None
    reference: tuple[str, ...] = ()
    gflops: Mapping[str, FloatArray] = field(default_factory=dict)
    baselines: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        put = object.__setattr__
        names = np.asarray(self.checkpoints, dtype=np.str_)
        if names.ndim != 1 or not len(names):
            raise InputError("is empty: give at least one name.", argument="checkpoints")
        put(self, "checkpoints", names)
        put(self, "tasks", self._names(self.tasks, "tasks", ONE_TASK))
        put(self, "groups", self._names(self.groups, "groups", ONE_GROUP))
        put(self, "accuracy", self._numbers(self.accuracy, "accuracy"))
        for part in ("scores", "gflops"):
            given = getattr(self, part)
            put(self, part, {str(k): self._numbers(v, f"{part}[{k!r}]") for k, v in given.items()})
        put(self, "reference", tuple(map(str, self.reference)))
        put(self, "baselines", tuple(map(str, self.baselines)))
        self._check()

    def _names(self, given: ArrayLike | None, argument: str, one: str) -> NDArray[np.str_]:
        if given is None:
            return np.full(len(self), one)
        return as_column(np.asarray(given, dtype=np.str_), argument, len(self), "rows")

    def _numbers(self, given: ArrayLike, argument: str) -> FloatArray:
        found: FloatArray = as_column(as_floats(given, argument), argument, len(self), "rows")
        if np.isinf(found).any():
            raise InputError(f"{argument} holds an infinite value: use NaN where there is none.")
        return found

    def _check(self) -> None:
        rows = Counter(zip(self.groups, self.tasks, self.checkpoints, strict=True))
        (group, task, name), count = rows.most_common(1)[0]
        if count > 1:
            raise InputError(
                f"holds {str(name)!r} {count} times for task {str(task)!r} in group {str(group)!r}: "
                "average repeated fine-tunings, or name them apart.",
                argument="checkpoints",
            )
        if clash := set(self.scores) & set(RESERVED):
            raise InputError(f"scores: {min(clash)!r} is the name of another column.")
        for argument in ("baselines", "gflops"):
            if lost := set(getattr(self, argument)) - set(self.scores):
                raise InputError("none of the scores.", argument=argument, value=min(lost))

    def __len__(self) -> int:
        return len(self.checkpoints)

    def __repr__(self) -> str:
        parts = {
            "checkpoint": len(set(self.checkpoints.tolist()) - set(self.reference)),
            "task": len(self.task_names),
            "group": len(self.group_names),
            "measure": len(self.scores),
        }
        return f"CheckpointScores({', '.join(format_count(k, noun) for noun, k in parts.items())})"

    @property
    def measures(self) -> tuple[str, ...]:
        """Names of the measures."""
        return tuple(self.scores)

    @property
    def task_names(self) -> tuple[str, ...]:
        """The tasks in order of first appearance."""
        return distinct(self.tasks)

    @property
    def group_names(self) -> tuple[str, ...]:
        """The groups in order of first appearance."""
        return distinct(self.groups)

    @property
    def ranked(self) -> NDArray[np.bool_]:
        """True for rows that are ranked: all but those of a reference."""
        return ~np.isin(self.checkpoints, self.reference)

    def by_group(self) -> dict[str, CheckpointScores]:
        """Return a table for each group."""
        return {name: self.select(self.groups == name) for name in self.group_names}

    def by_task(self) -> dict[str, CheckpointScores]:
        """Return a table for each task."""
        return {name: self.select(self.tasks == name) for name in self.task_names}

    def union(self) -> CheckpointScores:
        """Join all groups; a row that several groups share (a reference, say) is kept once."""
        keys = list(zip(self.tasks.tolist(), self.checkpoints.tolist(), strict=True))
        first = sorted({key: i for i, key in reversed(list(enumerate(keys)))}.values())
        found = self.select(np.array(first))
        return replace(found, groups=np.full(len(found), UNION))

    def with_scores(
        self, scores: Mapping[str, ArrayLike], gflops: Mapping[str, ArrayLike] | None = None
    ) -> CheckpointScores:
        """Return the same rows with further measures, or others in the place of those of a name."""
        return replace(
            self,
            scores={**self.scores, **scores},  # type: ignore[dict-item]
            gflops={**self.gflops, **(gflops or {})},  # type: ignore[dict-item]
        )

    def columns(self) -> dict[str, Any]:
        """Return columns with a row for each checkpoint and task."""
        return {
            "group": self.groups,
            "task": self.tasks,
            "checkpoint": self.checkpoints,
            "reference": ~self.ranked,
            "accuracy": self.accuracy,
            **self.scores,
        }
