"""Compare every measure with the ground truth: a linear probe, and fine-tuning where it is available."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from pool import POOL

from curvewise.errors import CurvewiseWarning
from curvewise.ranking.judgement import RankingJudgement, judge_rankings
from curvewise.ranking.load import CheckpointScores

BASELINES = ("parameters", "source accuracy")
ABOUT = ("task", "checkpoint", "source", "format", "dimensions", "probe")
OWN = {"cifar10": "CIFAR-10"}
"""Tasks on which some checkpoints were trained: they have seen these images already."""


def judge_pool(scores: Path, finetuned: Path, out: Path) -> None:
    """Write Kendall's τ of every measure with each truth, by task and on average."""
    table = pd.read_csv(scores)
    truths: dict[str, pd.Series] = {"probe": table["probe"]}
    if finetuned.is_file():
        best = pd.read_csv(finetuned).groupby(["task", "checkpoint"])["accuracy"].max()
        keys = pd.MultiIndex.from_frame(table[["task", "checkpoint"]])
        truths["finetune"] = pd.Series(best.reindex(keys).to_numpy(), index=table.index)
        truths["finetune or probe"] = truths["finetune"].fillna(table["probe"])
    sources = {m.name: m.source for m in POOL}
    own = table["task"].map(OWN) == table["checkpoint"].map(sources)
    found = []
    for truth, accuracy in truths.items():
        known = accuracy.notna()
        for pool, rows in (("without the task's own", known & ~own), ("all", known)):
            judged = _judged(table[rows], accuracy[rows])
            found.append(_rows(judged).assign(truth=truth, pool=pool))
    _write(pd.concat(found), out)


def judge_stable_transfer(out: Path) -> None:
    """Do the same for 19 networks and 9 tasks of a published table (Agostinelli et al. 2022).

    Its H-score is left out, because its program computes an elementwise product instead.
    """
    name = "source_model_architectures_table.csv"
    long = pd.read_csv(Path(os.environ["CURVEWISE_DATA"]) / "ranking" / name)
    long = long[long["Transferability Metric"] != "hscore"]
    keys = ["Target Dataset", "Source Architecture"]
    found = []
    for trained, rows in long.groupby("Trainable Backbone"):
        wide = rows.pivot_table("Transferability Metric Score", keys, "Transferability Metric")
        accuracy = rows.groupby(keys)["Test Accuracy"].mean().reindex(wide.index)
        table = wide.reset_index().rename(columns=dict(zip(keys, ABOUT, strict=False)))
        judged = _judged(table, accuracy.reset_index(drop=True))
        truth = "finetune" if trained else "frozen"
        found.append(_rows(judged).assign(truth=truth, pool="stable_transfer"))
    _write(pd.concat(found), out)


def _judged(table: pd.DataFrame, accuracy: pd.Series) -> RankingJudgement:
    scores: Mapping[str, np.ndarray] = {
        name: table[name].to_numpy(float) for name in table if name not in ABOUT and table[name].notna().any()
    }
    whole = CheckpointScores(
        table["checkpoint"].to_numpy(str),
        accuracy.to_numpy(float),
        scores,
        tasks=table["task"].to_numpy(str),
        baselines=tuple(name for name in BASELINES if name in scores),
    )
    with warnings.catch_warnings():
        # checkpoints without a score are left out on purpose, and the column n counts the others
        warnings.simplefilter("ignore", CurvewiseWarning)
        return judge_rankings(whole)


def _rows(judged: RankingJudgement) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "task": row.task,
            "measure": row.measure,
            "n": row.n,
            "kendall": row.kendall.estimate,
            "kendall low": row.kendall.low,
            "kendall high": row.kendall.high,
            "weighted kendall": row.weighted_kendall,
            "pearson": row.pearson,
            **{f"recall@{k}": v for k, v in row.recall.items()},
            **{f"rel@{k}": v for k, v in row.rel.items()},
        }
        for row in judged.rows
    )


def _write(table: pd.DataFrame, out: Path) -> None:
    first = ["truth", "pool", "task", "measure"]
    table = table[[*first, *(c for c in table if c not in first)]]
    table.to_csv(out, index=False, float_format="%.4g")
    mean = table[table["task"] == "average"].sort_values(["truth", "pool", "kendall"])
    print(mean.iloc[::-1].drop(columns="task").to_string(index=False, float_format="%.3f"))
