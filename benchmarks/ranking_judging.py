"""Coverage of the intervals of ranking metrics, and size of the test between two measures.

    python benchmarks/ranking_judging.py [repetitions]     # about ten minutes with 400

Made worlds with a known truth: checkpoints have a quality that tasks share in part, measures see
it with noise that tasks share in part, and how well they see it differs from task to task. Every
repetition draws new checkpoints and new tasks. One JSON line for each world and design: how often
the interval holds the truth, beside that of an interval over tasks alone; then how often the
paired test finds a difference between two measures that are as good, beside random signs over
tasks alone, and how often it finds a real one.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import json
import math
import sys
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, stdtrit

from curvewise.errors import CurvewiseWarning
from curvewise.ranking.agreement import CORRELATIONS, correlation, drawn_selections, ranking_agreement
from curvewise.ranking.judgement import Pool, compare_pairs
from curvewise.types import FloatArray

DESIGNS = ((1, 6), (1, 12), (1, 41), (2, 8), (4, 16), (9, 19), (4, 41), (20, 8))
TRUTH = 4000  # sets of checkpoints behind each truth
K = (1, 3)


@dataclass(frozen=True)
class World:
    """Model of how scores and accuracies come about.

    ``correlation`` of a score with quality, its ``spread`` over tasks, and the ``shared`` part of
    quality and of noise that is the same in all tasks. ``shape`` of the scores: normal; skewed,
    so that a few are far below the others, as the accuracies then are; outliers, of which one in
    thirty is far too high; or ties, of which there are about five values.
    """

    name: str
    correlation: float
    spread: float
    shared: float
    shape: str = "normal"

    def draw(
        self, rng: np.random.Generator, tasks: int, size: int, loss: float = 0.0
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Scores of two measures and accuracies; ``loss`` of correlation for the second."""
        common, own = rng.standard_normal((3, 1, size)), rng.standard_normal((3, tasks, size))
        quality, a, b = math.sqrt(self.shared) * common + math.sqrt(1 - self.shared) * own
        wide = self.spread if tasks > 1 else 0.0
        r = self.correlation + wide * rng.standard_normal((2, tasks, 1))
        r = np.clip(r - np.array([0, loss])[:, None, None], -0.95, 0.98)
        first, second = self.shaped(r * quality + np.sqrt(1 - r**2) * np.stack([a, b]), rng)
        level = 1.0 + (0.5 * rng.standard_normal((tasks, 1)) if tasks > 1 else 0.0)
        if self.shape == "skewed":
            return first, second, expit(level + 1 + 2 * quality)
        found = expit(level + 0.5 * quality)
        return first, second, found.round(2) if self.shape == "ties" else found

    def shaped(self, scores: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Normal scores in another shape."""
        if self.shape == "skewed":
            return -np.exp(-scores)
        if self.shape == "outliers":
            return np.where(rng.random(scores.shape) < 1 / 30, 9.0, scores)
        return scores.round() if self.shape == "ties" else scores


WORLDS = (
    World("no relation", 0.0, 0.1, 0.5),
    World("weak, tasks differ", 0.5, 0.2, 0.5),
    World("strong, shared", 0.8, 0.1, 0.8),
    World("strong, tasks apart", 0.8, 0.1, 0.0),
    World("very strong", 0.95, 0.02, 0.5),
    World("ties", 0.7, 0.1, 0.5, "ties"),
    World("skewed", 0.95, 0.02, 0.5, "skewed"),
    World("outliers", 0.95, 0.02, 0.5, "outliers"),
)


def main() -> None:
    """Print a line for each world and design."""
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    warnings.simplefilter("ignore", CurvewiseWarning)  # of ties and the like
    for world in WORLDS:
        for tasks, size in DESIGNS:
            print(json.dumps(coverage(world, tasks, size, repetitions)), flush=True)
    for world in (*WORLDS[:4], World("no relation, shared", 0.0, 0.0, 0.8)):
        for tasks, size in DESIGNS:
            print(json.dumps(test_size(world, tasks, size, repetitions)), flush=True)


def coverage(world: World, tasks: int, size: int, repetitions: int) -> dict[str, Any]:
    """Count how often each interval holds the mean over all sets of checkpoints and tasks."""
    rng = np.random.default_rng(0)
    known = truth(world, tasks, size)
    hits: dict[str, list[bool]] = {name: [] for name in known}
    alone = []
    for repetition in range(repetitions):
        scores, _, accuracy = world.draw(rng, tasks, size)
        found = ranking_agreement(scores, accuracy, K, rng=repetition)
        for name, value in known.items():
            hits[name].append(value in found.intervals[name])
        if tasks > 1:
            each = found.by_task["kendall"]
            half = stdtrit(tasks - 1, 0.975) * each.std(ddof=1) / math.sqrt(tasks)
            alone.append(abs(each.mean() - known["kendall"]) <= half)
    return {
        "world": world.name,
        "tasks": tasks,
        "checkpoints": size,
        "coverage": {name: share(values) for name, values in hits.items()},
        "kendall_over_tasks_alone": share(alone) if alone else None,
        "truth": {name: round(value, 3) for name, value in known.items()},
    }


def truth(world: World, tasks: int, size: int) -> dict[str, float]:
    """Means of all metrics over many sets of checkpoints of this size."""
    rng = np.random.default_rng(1)
    rows: dict[str, list[float]] = {}
    several = tasks > 1
    for _ in range(TRUTH // (4 if several else 1)):
        scores, _, accuracy = world.draw(rng, 4 if several else 1, size)
        drawn = {k: float(v.mean()) for k, v in drawn_selections(scores, accuracy, K, rng).items()}
        both = list(zip(scores, accuracy, strict=True))
        for name in CORRELATIONS:
            drawn[name] = float(np.mean([correlation(s, a, name) for s, a in both]))
        for name, value in drawn.items():
            rows.setdefault(name, []).append(value)
    return {name: float(np.mean(values)) for name, values in rows.items()}


def test_size(world: World, tasks: int, size: int, repetitions: int) -> dict[str, Any]:
    """Count how often equally good measures are found to differ, and a worse one is found."""
    rng = np.random.default_rng(2)
    found: dict[str, list[bool]] = {"size": [], "rel": [], "signs": [], "power": []}
    for _ in range(repetitions):
        drawn = world.draw(rng, tasks, size)
        same = compared(drawn)
        found["rel"].append(compared(drawn, "rel_at_1").pvalue <= 0.05)
        found["size"].append(same.pvalue <= 0.05)
        if not math.isnan(same.task_pvalue):
            found["signs"].append(same.task_pvalue <= 0.05)
        found["power"].append(compared(world.draw(rng, tasks, size, 0.4)).pvalue <= 0.05)
    return {
        "world": world.name,
        "tasks": tasks,
        "checkpoints": size,
        "size_at_5%": share(found["size"]),
        "size_at_5%_of_rel@1": share(found["rel"]),
        "signs_over_tasks_alone": share(found["signs"]) if found["signs"] else None,
        "power_for_0.4_less_correlation": share(found["power"]),
    }


def compared(drawn: tuple[FloatArray, FloatArray, FloatArray], value: str = "kendall") -> Any:
    """The row of a comparison of two measures."""
    first, second, accuracy = drawn
    tasks, size = accuracy.shape
    pool = Pool(
        "all",
        tuple(map(str, range(tasks))),
        tuple(map(str, range(size))),
        accuracy,
        np.zeros(accuracy.shape, dtype=bool),
        {"a": first, "b": second},
        {},
    )
    return compare_pairs(pool, [("a", "b")], value, 0.95, 999, 0).rows[0]


def share(values: list[bool]) -> float:
    """Share of them that are true."""
    return round(float(np.mean(values)), 3)


if __name__ == "__main__":
    main()
