"""Judge ranking measures on checkpoints whose fine-tuned accuracies are known."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from difflib import get_close_matches

import numpy as np

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.ranking._pools import Pool, pools_of
from curvewise.ranking.agreement import (
    RankingAgreement,
    accuracy_alarms,
    agree,
    as_counts,
    score_alarms,
)
from curvewise.ranking.comparing import Compared, RankingComparisons, compare_pairs
from curvewise.ranking.judgement import AVERAGE, Judged, RankingJudgement, Referred
from curvewise.types import CheckpointScores, check_level
from curvewise.types.scores import UNION


def judge_rankings(
    table: CheckpointScores,
    measures: Sequence[str] | None = None,
    *,
    k: int | Sequence[int] = (1, 3),
    union: bool = True,
    level: float = 0.95,
    permutations: int = 9999,
    rng: int = 0,
) -> RankingJudgement:
    """Judge how well measures rank checkpoints, by group and task and on average over tasks.

    Parameters
    ----------
    table : CheckpointScores
        Checkpoints by task with accuracies and scores; see :func:`load_checkpoint_scores`.
    measures : sequence of str, optional
        Which to judge; all by default.
    k : int or sequence of int
        How many checkpoints can be tried.
    union : bool
        Whether to judge all groups as one too, if there are several.
    level : float
        Coverage of the intervals.
    permutations : int
        Random signs drawn at most where there are too many tasks to try all.
    rng : int
        Decides the draws behind intervals and tests.

    Returns
    -------
    RankingJudgement
        For each measure, group and task, and for the mean over tasks: Recall@k, Rel@k, Pearson's
        correlation, Kendall's τ-b and its weighted form, with intervals as of
        :func:`ranking_agreement`; each measure against the best baseline; references beside the
        checkpoints, which are never ranked.

    Warns
    -----
    CurvewiseWarning
        If scores or accuracies are missing, or a measure cannot tell checkpoints apart.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> accuracy = rng.uniform(0.6, 0.9, (4, 12))
    >>> table = CheckpointScores(
    ...     checkpoints=[f"net {i}" for i in range(12)] * 4,
    ...     accuracy=accuracy.ravel(),
    ...     scores={
    ...         "nleep": (accuracy + rng.normal(0, 0.05, (4, 12))).ravel(),
    ...         "parameters": np.tile(rng.random(12), 4),
    ...     },
    ...     tasks=np.repeat(["pets", "cars", "birds", "flowers"], 12),
    ...     baselines=("parameters",),
    ... )
    >>> judged = judge_rankings(table, k=1)
    >>> print(judged.table("text", digits=1))
    Measure                Recall@1  Rel@1  Pearson  Kendall  Weighted  GFLOPs
    nleep                  75.0*     98.8*  85.7*    62.9*    71.7*     –
    parameters (baseline)  25.0+     90.9+  16.1+    15.9+    21.4+     –
    >>> judged.against_baseline.rows[0].pvalue < 0.05
    True
    """
    if not isinstance(table, CheckpointScores):
        raise InputError(
            f"table is a {type(table).__name__}: pass CheckpointScores, which "
            "load_checkpoint_scores reads from a file or a DataFrame."
        )
    chosen, counts = _chosen(table, measures), as_counts(k)
    check_level(level)
    if AVERAGE in table.task_names:
        raise InputError(
            f"tasks holds {AVERAGE!r}, which the mean over tasks is called: rename it."
        )
    pools = pools_of(table, union)
    generator = np.random.default_rng(rng)
    rows = [r for p in pools.values() for r in _rows(p, table, chosen, counts, level, generator)]
    alarms = [text for pool in pools.values() for text in _alarms(pool, chosen)]
    notes = [
        f"{p.group}: {p.uneven} of {len(p.tasks)} tasks lack some checkpoints of the group; "
        "each ranks those that it has."
        for p in pools.values()
        if p.uneven
    ]
    for text in alarms:
        warnings.warn(text, CurvewiseWarning, stacklevel=2)
    return RankingJudgement(
        rows=tuple(rows),
        measures=tuple(chosen),
        groups=tuple(pools),
        tasks=table.select(table.ranked).task_names,
        baselines=tuple(name for name in chosen if name in table.baselines),
        k=counts,
        level=level,
        references=tuple(_references(table, pools)),
        against_baseline=_against(rows, pools, level, permutations, generator),
        warnings=(*alarms, *notes),
        _pools=pools,
        _permutations=permutations,
    )


def _chosen(table: CheckpointScores, measures: Sequence[str] | None) -> list[str]:
    if isinstance(measures, str):
        raise InputError(f"measures={measures!r} is one text: give a list of names.")
    chosen = list(table.measures if measures is None else dict.fromkeys(measures))
    for name in chosen:
        if name not in table.scores:
            near = " or ".join(map(repr, get_close_matches(name, table.measures)))
            hint = f" Did you mean {near}?" if near else ""
            raise InputError(
                f"measures holds {name!r}, which is none of {list(table.measures)[:20]!r}.{hint}"
            )
    if not chosen:
        raise InputError("table has no scores: add some with table.with_scores({…}).")
    return chosen


def _rows(
    pool: Pool,
    table: CheckpointScores,
    measures: Sequence[str],
    k: tuple[int, ...],
    level: float,
    rng: np.random.Generator,
) -> list[Judged]:
    """Every measure on every task, then on average."""
    rows = []
    for t, task in enumerate(pool.tasks):
        for name in measures:
            found = agree(pool.scores[name][t : t + 1], pool.accuracy[t : t + 1], k, level, rng)
            rows.append(_judged(found, pool, table, name, task, pool.cost(name, t)))
    for name in measures:
        found = agree(pool.scores[name], pool.accuracy, k, level, rng)
        rows.append(_judged(found, pool, table, name, AVERAGE, pool.cost(name)))
    return rows


def _judged(
    found: RankingAgreement,
    pool: Pool,
    table: CheckpointScores,
    measure: str,
    task: str,
    gflops: float,
) -> Judged:
    return Judged(
        measure=measure,
        group=pool.group,
        task=task,
        n=sum(found.n),
        recall=found.recall,
        rel=found.rel,
        pearson=found.pearson,
        kendall=found.intervals["kendall"],
        weighted_kendall=found.weighted_kendall,
        gflops=gflops,
        baseline=measure in table.baselines,
        intervals=found.intervals,
    )


def _alarms(pool: Pool, measures: Sequence[str]) -> list[str]:
    """What is missing; of the scores of a union its groups have told already."""
    said = accuracy_alarms(pool.accuracy, pool.tasks, pool.failed)
    found = [f"{pool.group}: {text}" for text in said]
    for name in () if pool.group == UNION else measures:
        if np.isnan(pool.scores[name]).all():
            found.append(f"{pool.group}: {name} has no score for any checkpoint.")
            continue
        said = score_alarms(pool.scores[name], pool.accuracy, pool.tasks)
        found += [f"{pool.group}, {name}: {text}" for text in said]
    return found


def _references(table: CheckpointScores, pools: dict[str, Pool]) -> list[Referred]:
    """Each reference beside the checkpoints of every group that it stands in."""
    found = []
    parts = {**table.by_group(), **({UNION: table.union()} if UNION in pools else {})}
    for group, pool in pools.items():
        part = parts[group]
        for row in np.flatnonzero(~part.ranked):
            assert part.tasks is not None
            name, task = str(part.checkpoints[row]), str(part.tasks[row])
            if task not in pool.tasks:
                continue
            others = pool.accuracy[pool.tasks.index(task)]
            known = others[~np.isnan(others)]
            own = float(part.accuracy[row])
            best = float(known.max()) if len(known) else math.nan
            below = int((known < own).sum())
            found.append(Referred(name, group, task, own, below, len(known), best))
    return found


def _against(
    rows: Sequence[Judged],
    pools: dict[str, Pool],
    level: float,
    permutations: int,
    rng: np.random.Generator,
) -> RankingComparisons | None:
    """Each measure against the baseline of the highest Kendall, in every group."""
    compared: list[Compared] = []
    for group, pool in pools.items():
        means = [r for r in rows if r.group == group and r.task == AVERAGE]
        plain = [r for r in means if r.baseline and not math.isnan(r.kendall.estimate)]
        if not plain:
            continue
        best = max(plain, key=lambda r: r.kendall.estimate).measure
        pairs = [(r.measure, best) for r in means if not r.baseline]
        compared += compare_pairs(pool, pairs, "kendall", level, permutations, rng).rows
    return RankingComparisons(tuple(compared)) if compared else None
