"""Certainty that the best checkpoint is among the first k: its constants, and how often it is right.

    python benchmarks/ranking_certainty.py [folder of the data]

Prints the table ``RELIABILITY`` of ``curvewise.ranking.rank``, and the stated certainty beside
the observed share, leaving one target out at a time (its reliability comes from the others):

- ``architectures``: 19 architectures × 9 targets, fine-tuned by others; the constants come from
  these and the next. Its H-score is no H-score and its LogME of two targets another number than
  ours: both are left out.
- ``checkpoints``: 16 networks × 3 targets, fine-tuned in examples/checkpoints.
- ``frozen``: 19 architectures × 9 targets with a linear classifier on frozen features.
- ``segmentation``: 16 sources × 17 targets of another kind, with the constants: none comes from it.

The form of the model (scores as they are rather than their ranks, reliability that varies between
tasks) was chosen with these tables in view, so that agreement is a little flattered; targets share
their checkpoints and are no independent draws.

A table on stderr, one JSON line on stdout.
"""

from __future__ import annotations

import csv
import json
import math
import os
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

from curvewise.ranking.rank import Reliability, best_certainty

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("CURVEWISE_DATA", ROOT.parent / "shared" / "data"))
NAMES = {"nleep": "nleep", "leep": "leep", "logme": "logme", "gbc": "gbc"}
# Not in NAMES: the H-score of both tables, whose program multiplies elementwise where the formula has a matrix
# product. CIFAR-10 has 197 to 2,566 where 9 is the maximum, so that it says nothing of ours.
BROKEN = ("hscore",)
# LogME's program counts more weights than eigenvalues where features outnumber examples (1,020 and 1,880 here),
# which ours does not: these targets are left out for it.
WIDE = {"logme": ("oxford_flowers102", "dtd")}
PRINTED = {  # how the paper's tables call what has no other reference
    "linear (1": "linear-1",
    "linear (5": "linear-5",
    "linear (c": "linear",
    "fine-tune (1": "finetune-1",
    "fine-tune (5": "finetune-5",
    "mi ($\\alpha=0.01$)": "mi-0.01",
    "mi ($\\alpha=0.50$)": "mi-0.5",
    "mi w/ pca ($\\alpha=0.01$)": "mi-pca-0.01",
    "mi w/ pca ($\\alpha=0.50$)": "mi-pca-0.5",
}
KS = (1, 3, 5)
FIRST = 8  # column of scores.csv that holds a measure
THERE, HERE = "stable_transfer", "examples/checkpoints"
Task = tuple[np.ndarray, np.ndarray]


def main() -> None:
    """Print constants and calibration."""
    folder = (Path(sys.argv[1]) if len(sys.argv) > 1 else DATA) / "ranking"
    table = folder / "source_model_architectures_table.csv"
    tuned, frozen = read(table, "Test Accuracy", "True"), read(table, "Test Accuracy", "False")
    other = read(folder / "source_datasets_table.csv", "Test Mean IoU", None)
    pool = read_pool(ROOT / "examples" / "checkpoints")
    known = constants(tuned, pool, folder / "neucrab_tables")
    for name, found in known.items():
        print(f"    {name!r}: {found},", file=sys.stderr)
    rows = []
    for name in tuned:
        rows += calibration("architectures", name, tuned[name], pool[name])
        rows += calibration("checkpoints", name, pool[name], tuned[name])
        rows += calibration("frozen", name, frozen[name])
        rows += calibration("segmentation", name, other[name], given=known[name])
    show(rows)
    print(
        json.dumps(
            {
                "benchmark": "ranking certainty",
                "constants": {name: vars(found) for name, found in known.items()},
                "calibration": rows,
            }
        )
    )


def read(path: Path, accuracy: str, tuned: str | None) -> dict[str, list[Task]]:
    """Scores and accuracies of each target, by measure."""
    tasks: dict[str, dict[str, list[tuple[float, float]]]] = defaultdict(lambda: defaultdict(list))
    with path.open() as file:
        for row in csv.DictReader(file):
            if tuned is None or row["Trainable Backbone"] == tuned:
                pair = float(row["Transferability Metric Score"]), float(row[accuracy])
                name, target = row["Transferability Metric"], row["Target Dataset"]
                if name not in BROKEN and target not in WIDE.get(name, ()):
                    tasks[NAMES[name]][target].append(pair)
    return {name: [tuple(np.array(pairs).T) for pairs in own.values()] for name, own in tasks.items()}


def read_pool(folder: Path) -> dict[str, list[Task]]:
    """The same of the checkpoints that were fine-tuned here, without those that know the task."""
    best: dict[tuple[str, str], float] = defaultdict(float)
    with (folder / "finetune.csv").open() as file:
        for row in csv.DictReader(file):
            key = row["task"], row["checkpoint"]
            best[key] = max(best[key], float(row["accuracy"]))
    tasks: dict[str, dict[str, list[tuple[float, float]]]] = defaultdict(lambda: defaultdict(list))
    with (folder / "scores.csv").open() as file:
        for row in csv.DictReader(file):
            key = row["task"], row["checkpoint"]
            if key in best and (row["task"], row["source"]) != ("cifar10", "CIFAR-10"):
                for name in (n for n in list(row)[FIRST:] if row[n]):
                    tasks[name][row["task"]].append((float(row[name]), best[key]))
    return {name: [tuple(np.array(pairs).T) for pairs in own.values()] for name, own in tasks.items()}


def constants(tuned: dict[str, list[Task]], pool: dict[str, list[Task]], printed: Path) -> dict[str, Reliability]:
    """Reliability of each measure that has a reference, and of one that has none."""
    both = {name: tuned[name] + pool[name] for name in sorted(tuned)}
    known = {name: reliability(tasks, f"{THERE}, {HERE}") for name, tasks in both.items()}
    spread = math.sqrt(np.mean([found.spread**2 for found in known.values()]))
    for name, values in sorted(pearsons(printed).items()):
        own = [correlation(task) for task in pool.get(name, [])]
        mean = float(np.mean(np.arctanh([*values, *own])))
        source = f"NeuCRaB, {HERE}" if own else "NeuCRaB"
        known[name] = Reliability(round(mean, 3), round(spread, 3), 4 + len(own), source)
    for name in sorted(set(pool) - set(known)):
        mean = float(np.mean(np.arctanh([correlation(task) for task in pool[name]])))
        known[name] = Reliability(round(mean, 3), round(spread, 3), len(pool[name]), HERE)
    lower = float(np.quantile([found.fisher for found in known.values()], 0.25))
    known[""] = Reliability(round(lower, 3), round(spread, 3), 4, "")
    return known


def pearsons(folder: Path) -> dict[str, list[float]]:
    """Pearson's correlations of tables 1 to 3 (means over four tasks) by measure."""
    found: dict[str, list[float]] = defaultdict(list)
    for number in (1, 2, 3):
        with (folder / f"table{number}.csv").open() as file:
            for row in csv.DictReader(file):
                for start, name in PRINTED.items():
                    if row["Method"].lower().startswith(start):
                        found[name].append(float(row["Pearson"]) / 100)
    return found


def reliability(tasks: list[Task], source: str) -> Reliability:
    """Mean and spread of Fisher's z over tasks."""
    z = np.arctanh([correlation(task) for task in tasks])
    mean, spread = float(z.mean()), float(z.std(ddof=1))
    return Reliability(round(mean, 3), round(spread, 3), len(tasks), source)


def correlation(task: Task) -> float:
    """Pearson's."""
    return float(np.corrcoef(*task)[0, 1])


def calibration(
    table: str, name: str, tasks: list[Task], further: list[Task] | None = None, given: Reliability | None = None
) -> list[dict[str, object]]:
    """Stated certainty and observed share for each k, from other and from further tasks."""
    stated, seen = [], []
    for i, (scores, accuracy) in enumerate(tasks):
        others = given or reliability(tasks[:i] + tasks[i + 1 :] + (further or []), "")
        chances = best_certainty(scores, reliability=others, rng=i)
        order = np.argsort(-scores, kind="stable")
        place = int(np.flatnonzero(order == accuracy.argmax())[0])
        stated.append([chances[order[:k]].sum() for k in KS])
        seen.append([place < k for k in KS])
    return [
        {
            "table": table,
            "measure": name,
            "k": k,
            "stated": round(float(np.mean(stated, axis=0)[i]), 3),
            "observed": round(float(np.mean(seen, axis=0)[i]), 3),
            "expected spread": round(spread_of(np.array(stated)[:, i]), 3),
            "tasks": len(tasks),
        }
        for i, k in enumerate(KS)
    ]


def spread_of(chances: np.ndarray) -> float:
    """Standard error of an observed share, were the stated chances true and tasks independent."""
    return float(np.sqrt(np.sum(chances * (1 - chances))) / len(chances))


def show(rows: list[dict[str, object]]) -> None:
    """Tables on stderr: stated / observed."""
    print(f"\n{'stated / observed':28}" + "".join(f"{f'k = {k}':>16}" for k in KS), file=sys.stderr)
    for table, name in dict.fromkeys((row["table"], row["measure"]) for row in rows):
        own = [row for row in rows if (row["table"], row["measure"]) == (table, name)]
        cells = [f"{row['stated']:.2f} / {row['observed']:.2f}" for row in own]
        print(f"{f'{table}, {name}':28}" + "".join(f"{c:>16}" for c in cells), file=sys.stderr)


if __name__ == "__main__":
    main()
