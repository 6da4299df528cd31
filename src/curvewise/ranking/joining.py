"""Scores of ranked checkpoints beside what fine-tuning gave."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from curvewise.errors import InputError
from curvewise.ranking.ranking_result import CheckpointRanking
from curvewise.types import CheckpointScores, FloatArray


def add_rankings(
    table: CheckpointScores, rankings: Mapping[str, CheckpointRanking] | CheckpointRanking
) -> CheckpointScores:
    """Put the scores of rankings beside accuracies of the same checkpoints, to judge measures.

    Parameters
    ----------
    table : CheckpointScores
        With accuracies by checkpoint and task.
    rankings : dict of str to CheckpointRanking, or CheckpointRanking
        By task; a single one if there is one task.

    Returns
    -------
    CheckpointScores
        With the scores and costs of every measure; NaN where a checkpoint or a task was not
        ranked, or a measure failed.

    Raises
    ------
    InputError
        If a ranking is of a task or of a checkpoint that the table does not know.

    Examples
    --------
    >>> from curvewise.ranking.rank import rank_features
    >>> rng, labels = np.random.default_rng(0), np.repeat([0, 1], 50)
    >>> pool = {name: labels[:, None] * s + rng.normal(size=(100, 3)) for name, s in
    ...         {"weak": 0.5, "strong": 3.0}.items()}
    >>> def separation(features, labels):
    ...     return abs(features[labels == 1].mean() - features[labels == 0].mean())
    >>> ranking = rank_features(pool, labels, separation, reliability=0.8, known={})
    >>> table = CheckpointScores(["weak", "strong"], [0.7, 0.9])
    >>> add_rankings(table, ranking).scores["separation"].round(1).tolist()
    [0.3, 2.9]
    """
    tasks = table.task_names
    if isinstance(rankings, CheckpointRanking):
        if len(tasks) > 1:
            raise InputError(
                f"rankings is a single one, and the table has {len(tasks)} tasks: give a dict by "
                f"task, {{{tasks[0]!r}: …}}."
            )
        rankings = {tasks[0]: rankings}
    for task, ranking in rankings.items():
        if task not in tasks:
            raise InputError(f"rankings has task {task!r}, which is none of {list(tasks)!r}.")
        if lost := [c for c in ranking.checkpoints if c not in table.checkpoints]:
            raise InputError(
                f"rankings[{task!r}] holds checkpoint {lost[0]!r}, which the table does not: name "
                "checkpoints alike in both."
            )
    measures = list(dict.fromkeys(m for r in rankings.values() for m in r.measures))
    if not measures:
        raise InputError("rankings is empty: give at least one.")
    return table.with_scores(
        {name: _spread(table, rankings, name, "scores") for name in measures},
        {name: _spread(table, rankings, name, "gflops") for name in measures},
    )


def _spread(
    table: CheckpointScores, rankings: Mapping[str, CheckpointRanking], measure: str, part: str
) -> FloatArray:
    """Scores or costs of a measure in the rows of the table."""
    assert table.tasks is not None
    known = {
        (task, name): value
        for task, ranking in rankings.items()
        if measure in getattr(ranking, part)
        for name, value in zip(
            ranking.checkpoints, getattr(ranking, part)[measure].tolist(), strict=True
        )
    }
    keys = zip(table.tasks.tolist(), table.checkpoints.tolist(), strict=True)
    return np.array([known.get(key, np.nan) for key in keys])
