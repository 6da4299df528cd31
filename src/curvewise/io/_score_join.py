"""Scores of one table beside the accuracies of another."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from curvewise.errors import InputError
from curvewise.io._table import listed
from curvewise.types import CheckpointScores, FloatArray
from curvewise.types.scores import ONE_TASK


def joined(scores: CheckpointScores, truth: CheckpointScores, source: str) -> CheckpointScores:
    """The rows of the truth with scores of the same checkpoint and task (and group)."""
    any_task = scores.task_names == (ONE_TASK,) and truth.task_names != (ONE_TASK,)
    any_group = len(scores.group_names) == 1

    def keys(of: CheckpointScores) -> list[tuple[str, ...]]:
        assert of.tasks is not None
        assert of.groups is not None
        tasks = [""] * len(of) if any_task else of.tasks.tolist()
        groups = [""] * len(of) if any_group else of.groups.tolist()
        return list(zip(groups, tasks, of.checkpoints.tolist(), strict=True))

    place = {key: i for i, key in enumerate(keys(scores))}
    wanted = keys(truth)
    where = np.array([place.get(key, -1) for key in wanted])
    if (where < 0).all():
        raise InputError(
            f"{source} and the accuracies share no checkpoint and task: {source} has "
            f"{listed(dict.fromkeys(scores.checkpoints.tolist()), 5)} for "
            f"{listed(scores.task_names, 5)}, the accuracies "
            f"{listed(dict.fromkeys(truth.checkpoints.tolist()), 5)} for "
            f"{listed(truth.task_names, 5)}."
        )
    notes = []
    if lost := int((where < 0).sum()):
        notes.append(f"{lost} of {len(truth)} accuracies have no scores")
    if unused := len(set(place) - set(wanted)):
        notes.append(f"{unused} of {len(scores)} rows of {source} have no accuracy: left out")

    def taken(values: FloatArray) -> FloatArray:
        return np.where(where < 0, np.nan, values[where])

    return replace(
        truth,
        scores={**truth.scores, **{k: taken(v) for k, v in scores.scores.items()}},
        gflops={**truth.gflops, **{k: taken(v) for k, v in scores.gflops.items()}},
        notes=(*truth.notes, *scores.notes, *notes),
    )
