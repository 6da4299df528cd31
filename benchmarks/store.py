"""A store of 60,000 runs: listed, loaded, checked and exported; one JSON line each.

    python benchmarks/store.py              # everything, about two minutes
    python benchmarks/store.py list 6000    # some of list, export, verify; fewer runs

CPU time, the system's included, of one process, best of three, from a warm cache; `clock` is what
it took beside whatever else ran. Beside the listing stands what a user would write: a loop that
loads every record and checks nothing, and pandas with one CSV per run.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from curvewise.store import record as record_module
from curvewise.store.read import list_runs
from curvewise.store.tables import export_store
from curvewise.store.verify import verify_store
from curvewise.store.write import write_run

RUNS, EXAMPLES = 60_000, 1_000
PART = 2_000  # runs whose checksums are verified, and CSV files read by pandas


def main() -> None:
    """Make the store once and run the benchmarks named on the command line, or all."""
    available = {"list": listing, "export": exporting, "verify": verifying}
    numbers = [int(word) for word in sys.argv[1:] if word.isdigit()]
    names = [word for word in sys.argv[1:] if not word.isdigit()]
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "runs"
        make_store(store, numbers[0] if numbers else RUNS)
        for name in names or available:
            print(json.dumps(available[name](store)), flush=True)


def make_store(store: Path, runs: int) -> None:
    """Write one run and repeat it under other coordinates, without syncing each."""
    rng = np.random.default_rng(0)
    labels = rng.integers(10, size=EXAMPLES)
    coordinates = {"recipe": "study/1", "data": "d" * 32, "learner": "resnet9", "n": 400, "fold": 0}
    coordinates |= {"training": {"epochs": 16, "rate": 0.5, "batch": 500, "momentum": 0.9}}
    metrics = {"error": 0.1, "loss": 0.4, "train_error": 0.0, "train_loss": 0.01, "gap": 0.1}
    first = write_run(store, coordinates, labels.astype(np.uint8), metrics | {"seconds": 1.5}, labels=labels)
    record = json.loads((first / "record.json").read_text())
    data = (first / "predictions.npy").read_bytes()
    for seed in range(runs - 1):
        at = coordinates | {"init_seed": seed, "order_seed": seed, "learner": f"net{seed % 5}"}
        identity = record_module.run_id(at)
        made = {k: v for k, v in record.items() if k != "sha256"}
        made |= {"id": identity, "coordinates": at, "metrics": metrics | {"error": seed / runs}}
        os.mkdir(store / identity)
        (store / identity / "record.json").write_bytes(record_module.record_bytes(made))
        (store / identity / "predictions.npy").write_bytes(data)


def listing(store: Path) -> dict[str, object]:
    """Every record, checked, against a loop over them and pandas over a CSV per run."""
    ours, clock = times(lambda: list_runs(store))
    loop = seconds(lambda: [json.loads(p.read_text()) for p in store.glob("*/record.json")])
    runs = list_runs(store)
    with tempfile.TemporaryDirectory() as folder:
        for run in runs[:PART]:
            pd.DataFrame([{**run.coordinates, **run.metrics}]).to_csv(f"{folder}/{run.id}.csv")
        part = seconds(lambda: pd.concat([pd.read_csv(p) for p in Path(folder).iterdir()]))
    return {
        "what": "list the records of a store",
        "runs": len(runs),
        "seconds": round(ours, 2),
        "clock": round(clock, 2),
        "json.loads over glob": round(loop, 2),
        "ratio": round(loop / ours, 2),
        "pandas, a CSV per run (scaled)": round(part * len(runs) / min(PART, len(runs)), 1),
    }


def exporting(store: Path) -> dict[str, object]:
    """One row per run, into Parquet."""
    path = store.parent / "runs.parquet"
    ours = seconds(lambda: export_store(store, path, overwrite=True), repeats=1)
    return {
        "what": "export a store to Parquet",
        "runs": len(list_runs(store)),
        "seconds": round(ours, 2),
        "megabytes": round(path.stat().st_size / 1e6, 2),
    }


def verifying(store: Path) -> dict[str, object]:
    """Every checksum of every file."""
    found = verify_store(store)
    assert found.sound, found.summary()
    return {
        "what": "verify every file of a store",
        "runs": found.runs,
        "seconds": round(seconds(lambda: verify_store(store), repeats=1), 2),
    }


def seconds(call: Callable[[], object], repeats: int = 3) -> float:
    """Least CPU time of some repeats."""
    return times(call, repeats)[0]


def times(call: Callable[[], object], repeats: int = 3) -> tuple[float, float]:
    """Least CPU time of some repeats, and the least by the clock."""
    spent = []
    for _ in range(repeats):
        start = time.process_time(), time.perf_counter()
        made = call()
        spent.append((time.process_time() - start[0], time.perf_counter() - start[1]))
        del made
    return min(cpu for cpu, _ in spent), min(clock for _, clock in spent)


if __name__ == "__main__":
    main()
