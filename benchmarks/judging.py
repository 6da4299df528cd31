"""Speed of judging measures on a corpus beside a plain loop over pairs; one JSON line.

    python benchmarks/judging.py             # about half a minute
    python benchmarks/judging.py coverage    # coverage of the interval, error of the test, minutes

550 models of 8 tasks and 20 measures, with interval and null. The plain way scores one measure at
a time with numpy over all pairs, again for each model left out and for each draw of the null; it
is measured on a part and scaled, as said. CPU time of one thread.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import json
import sys
import time
from collections.abc import Callable, Iterator
from itertools import combinations, product

import numpy as np

from curvewise.response.cmi import cmi_score
from curvewise.response.judgement import MeasureJudgement, MeasureScores, judge_measures
from curvewise.response.load import ModelCorpus

# Sizes of the competition's tasks, with as many hyperparameters as those had.
GRIDS = [(2, 2, 2, 3, 2, 2), (3, 3, 3, 2), (4, 4, 2, 3), (4, 4, 2, 2), (4, 4, 2, 3)]
GRIDS += [(4, 3, 2, 2), (2, 2, 2, 4), (4, 4, 2, 2)]
MEASURES, DRAWS = 20, 999

Grid = tuple[int, ...]


def main() -> None:
    """Print the line that was asked for."""
    if sys.argv[1:] == ["coverage"]:
        for row in coverage():
            print(json.dumps(row), flush=True)
        return
    corpus = make_corpus()
    judge_measures(corpus.select(corpus.tasks == "task 1"), permutations=9)
    ours, found = cpu(lambda: judge_measures(corpus, permutations=DRAWS))
    theirs, worst = plain_time(corpus, found)
    line = {
        "benchmark": "judging: 550 models, 8 tasks, 20 measures, 999 draws, a jackknife",
        "curvewise_cpu_seconds": round(ours, 3),
        "plain_cpu_seconds": round(theirs, 1),
        "ratio": round(theirs / ours, 1),
        "bar": 5.0,
        "largest_difference": float(f"{worst:.2g}"),
    }
    print(json.dumps(line))


def make_corpus(seed: int = 0) -> ModelCorpus:
    """Models whose gap and measures depend on hyperparameters and on each other."""
    rng = np.random.default_rng(seed)
    parts = [np.array(list(product(*map(range, grid)))) for grid in GRIDS]
    rows = sum(map(len, parts))
    settings = np.zeros((rows, max(map(len, GRIDS))))
    tasks = np.repeat([f"task {t + 1}" for t in range(len(parts))], list(map(len, parts)))
    at = 0
    for part in parts:
        settings[at : at + len(part), : part.shape[1]] = part
        at += len(part)
    noise = rng.standard_normal(rows)
    gap = 0.2 + 0.02 * (settings.sum(axis=1) / 6 + noise)
    measures = {
        f"measure {m}": m / MEASURES * noise + rng.standard_normal(rows) + settings[:, m % 4] for m in range(MEASURES)
    }
    return ModelCorpus(
        models=tuple(map(str, range(rows))),
        hyperparameters={f"h{k}": column for k, column in enumerate(settings.T)},
        gap=gap,
        measures=measures,
        orientation=dict.fromkeys(measures, 1),
        tasks=tasks,
    )


def plain_time(corpus: ModelCorpus, found: MeasureJudgement) -> tuple[float, float]:
    """Time of the plain loop, from one score in each task; and how far it is from ours."""
    total, worst = 0.0, 0.0
    name = f"measure {MEASURES - 1}"
    for task, part in corpus.by_task().items():
        settings = {k: v for k, v in part.hyperparameters.items() if len(set(v.tolist())) > 1}
        seconds, score = cpu(lambda p=part, s=settings: plain_score(p.measures[name], p.gap, s))
        total += seconds * MEASURES * (1 + DRAWS + len(part))
        worst = max(worst, abs(score - found.row(name, task).cmi.estimate))
    return total, worst


def plain_score(measure: np.ndarray, gap: np.ndarray, settings: dict[str, np.ndarray]) -> float:
    """One score: cells in a dict, entropies with numpy."""
    up = gap[:, None] > gap
    higher = measure[:, None] > measure
    other = ~np.eye(len(gap), dtype=bool)
    found = []
    for names in combinations(settings, 2):
        values = np.stack([settings[k] for k in names], axis=1)
        groups = [np.flatnonzero((values == v).all(axis=1)) for v in np.unique(values, axis=0)]
        told = known = 0.0
        for one in groups:
            for two in groups:
                cell = np.ix_(one, two)
                there = other[cell]
                if not there.any():
                    continue
                table = np.array(
                    [[(there & (up[cell] == a) & (higher[cell] == b)).sum() for b in (0, 1)] for a in (0, 1)]
                )
                p = table / table.sum()
                by_gap, by_measure = entropy(p.sum(axis=1)), entropy(p.sum(axis=0))
                sign = np.sign(np.linalg.det(table))
                told += sign * max(by_gap + by_measure - entropy(p.ravel()), 0.0)
                known += by_gap
        found.append(told / known)
    return min(found)


def entropy(p: np.ndarray) -> float:
    """In bits."""
    p = p[p > 0]
    return float(-(p * np.log2(p)).sum())


WORLDS = {
    # What hyperparameters do to the measure and to the gap, and how much of the gap's own part and
    # of its own noise the measure has.
    "unrelated": ((0, 0, 0, 0), (0, 0, 0, 0), 0.0, 1.0),
    "same two hyperparameters": ((2, 2, 0, 0), (2, 2, 0, 0), 0.0, 1.0),
    "same four hyperparameters": ((1, 1, 1, 1), (1, 1, 1, 1), 0.0, 1.0),
    "weak": ((1, -1, 1, 1), (1, 1, 1, 1), 0.5, 1.0),
    "middling": ((1, -1, 1, 1), (1, 1, 1, 1), 1.0, 0.7),
    "strong": ((1, 0.5, 1, 1), (1, 1, 1, 1), 1.0, 0.2),
}


def coverage(runs: int = 400, draws: int = 99) -> Iterator[dict[str, object]]:
    """Count how often intervals hold the score of 2,400 models, and how often p ≤ .05."""
    rng = np.random.default_rng(0)
    for grid in ((3, 2, 2, 2), (3, 3, 3, 2), (4, 4, 3, 2)):
        small = np.array(list(product(*map(range, grid))))
        large = np.tile(small, (2400 // len(small), 1))
        for world in WORLDS:
            for declared in (True, False):
                settings, gap, measure = draw(world, large, rng)
                columns = dict(enumerate(settings.T))
                truth = cmi_score(measure, gap, columns, orientation=1 if declared else None)
                found = [score(*draw(world, small, rng), declared, draws) for _ in range(runs)]
                yield {
                    "models": len(small),
                    "world": world,
                    "orientation": "declared" if declared else "open",
                    "truth": round(truth, 3),
                    "mean": round(float(np.mean([f.cmi.estimate for f in found])), 3),
                    "covered": round(float(np.mean([truth in f.cmi for f in found])), 3),
                    "width": round(float(np.mean([f.cmi.width for f in found])), 3),
                    "p_at_most_5_percent": float(np.mean([f.pvalue <= 0.05 for f in found])),
                }


def draw(world: str, settings: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A corpus of a simulated world."""
    on_measure, on_gap, shared, noise = WORLDS[world]
    u = settings / settings.max(axis=0) - 0.5
    own, other = rng.standard_normal((2, len(u)))
    return settings, u @ on_gap + own, u @ on_measure + shared * own + noise * other


def score(settings: np.ndarray, gap: np.ndarray, measure: np.ndarray, declared: bool, draws: int) -> MeasureScores:
    """Judge one measure on one corpus."""
    corpus = ModelCorpus(
        models=tuple(map(str, range(len(gap)))),
        hyperparameters={f"h{k}": column for k, column in enumerate(settings.T)},
        gap=gap / 100,
        measures={"m": measure},
        orientation={"m": 1} if declared else {},
    )
    return judge_measures(corpus, permutations=draws).rows[0]


def cpu(run: Callable[[], object]) -> tuple[float, object]:
    """CPU seconds, and what came out."""
    start = time.process_time()
    found = run()
    return time.process_time() - start, found


if __name__ == "__main__":
    main()
