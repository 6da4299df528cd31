"""Speed of the counting kernels beside plain numpy and scipy, in one process; one JSON line each.

    python benchmarks/variance_kernels.py            # everything
    python benchmarks/variance_kernels.py totals     # one of totals, classes, pairs, pmf

CPU time of one thread, median of repeats. `ratio` is how many times faster we are. 60,000 runs on
10,000 examples; the plain alternatives are measured on a part and scaled where they would take
long.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import json
import sys
import time
from collections.abc import Callable, Iterator

import numpy as np
from scipy import stats

from curvewise.variance import _pair_counts
from curvewise.variance._bits import column_pack, packed_totals
from curvewise.variance._class_counts import class_counts
from curvewise.variance._pair_counts import estimate_seconds, iter_pair_counts
from curvewise.variance.poisson_binomial import poisson_binomial_pmf

RUNS, N, CLASSES = 60_000, 10_000, 10
PART = 6_000  # runs on which the alternatives are measured


def main() -> None:
    """Run the benchmarks named on the command line, or all."""
    available = {"totals": totals, "classes": classes, "pairs": pairs, "pmf": pmf}
    for name in sys.argv[1:] or available:
        print(json.dumps(available[name]()), flush=True)


def totals() -> dict[str, object]:
    """Errors of every run and every example out of packed bits."""
    packed = random_bytes((RUNS, N // 8), 256)
    ours = cpu(lambda: packed_totals([packed], N), 9)
    theirs = cpu(lambda: unpacked_totals(packed[:PART]), 5)
    return line("totals of packed errors", ours, theirs, RUNS / PART, budget_seconds=0.15)


def classes() -> dict[str, object]:
    """How many runs gave each example each class."""
    labels = random_bytes((RUNS, N), CLASSES)
    ours = cpu(lambda: class_counts([labels], N, CLASSES), 7)
    theirs = cpu(lambda: compared_counts(labels[:PART]), 5)
    return line("class counts", ours, theirs, RUNS / PART, budget_seconds=1.0)


def pairs() -> dict[str, object]:
    """Common errors of all pairs of examples; transposing the bits first is timed apart."""
    packed = random_bytes((RUNS, N // 8), 256)
    transpose = cpu(lambda: column_pack([packed], N, RUNS), 5)
    columns = column_pack([packed], N, RUNS)
    start = time.process_time()
    estimate = estimate_seconds(N, RUNS)
    compilation = time.process_time() - start
    ours = cpu(lambda: exhaust(iter_pair_counts(columns)), 5)
    part = np.ascontiguousarray(columns[:2048])
    theirs = cpu(lambda: plain_tile(part), 5)
    return line(
        "common errors of all pairs",
        ours,
        theirs,
        (N / 1024) ** 2 / 2,
        budget_seconds=15,
        column_pack_cpu_seconds=round(transpose[0], 3),
        first_estimate_cpu_seconds=round(compilation, 3),
        estimate_seconds=round(estimate, 2),
    )


def pmf() -> dict[str, object]:
    """Poisson-binomial probabilities of 10,000 trials."""
    p = np.random.default_rng(0).random(N)
    ours = cpu(lambda: poisson_binomial_pmf(p), 15)
    theirs = cpu(lambda: stats.poisson_binom.pmf(np.arange(N + 1), p), 3)
    return line("Poisson-binomial probabilities", ours, theirs, 1.0, budget_seconds=0.1)


def unpacked_totals(packed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What a user would write, in blocks that fit the memory."""
    by_run, by_example = [], np.zeros(N, dtype=np.int64)
    for start in range(0, len(packed), 1000):
        errors = np.unpackbits(packed[start : start + 1000], axis=1, count=N)
        by_run.append(errors.sum(axis=1))
        by_example += errors.sum(axis=0, dtype=np.int64)
    return np.concatenate(by_run), by_example


def compared_counts(labels: np.ndarray) -> np.ndarray:
    """What a user would write: one comparison with the whole table per class."""
    return np.stack([(labels == c).sum(axis=0) for c in range(CLASSES)], axis=1)


def plain_tile(columns: np.ndarray) -> np.ndarray:
    """One tile of pairs by matrix multiplication, as without numba."""
    counts = np.zeros((1024, 1024), dtype=np.int32)
    _pair_counts._plain_kernel(columns, 0, 1024, counts)
    return counts


def exhaust(tiles: Iterator[tuple[int, int, np.ndarray]]) -> int:
    """Number of tiles, each made and dropped."""
    return sum(1 for _ in tiles)


def random_bytes(shape: tuple[int, int], high: int) -> np.ndarray:
    """Bytes below ``high``."""
    return np.random.default_rng(0).integers(0, high, shape, dtype=np.uint8)


def cpu(task: Callable[[], object], repeats: int) -> tuple[float, float, float]:
    """Median, least and most CPU seconds of a task after one warm-up."""
    if repeats > 1:
        task()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        task()
        times.append(time.process_time() - start)
    return float(np.median(times)), min(times), max(times)


def line(
    name: str,
    ours: tuple[float, float, float],
    theirs: tuple[float, float, float],
    scale: float,
    **more: object,
) -> dict[str, object]:
    """One result; the plain times are multiplied by ``scale``."""
    return {
        "benchmark": f"variance: {name}",
        "curvewise_cpu_seconds": round(ours[0], 6),
        "curvewise_range": [round(t, 6) for t in ours[1:]],
        "plain_cpu_seconds": round(scale * theirs[0], 6),
        "plain_range": [round(scale * t, 6) for t in theirs[1:]],
        "plain_scaled_by": round(scale, 2),
        "ratio": round(scale * theirs[0] / ours[0], 1),
        **more,
    }


if __name__ == "__main__":
    main()
