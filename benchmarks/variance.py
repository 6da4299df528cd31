"""Speed of the variance lens beside plain numpy and scipy, in one process; one JSON line each.

    python benchmarks/variance.py                # everything, about three minutes
    python benchmarks/variance.py memory pmf     # some of memory, disk, disagreement, pmf, pairs,
                                                 # bootstrap

CPU time of one thread, median of repeats. `ratio` is how many times faster we are. 60,000 runs on
10,000 examples; plain ways that would take long are measured on a part and scaled, as said.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import json
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

# numba imports a package called coverage, which must not be the benchmark beside this one.
sys.path = [p for p in sys.path if Path(p or ".").resolve() != Path(__file__).resolve().parent]

import numpy as np
from scipy import stats

import curvewise as cw
from curvewise.errors import CurvewiseWarning
from curvewise.variance import pairs as _pair_counts
from curvewise.variance.accuracy import poisson_binomial_pmf
from curvewise.variance.decompose import bootstrap_variances

RUNS, N, CLASSES = 60_000, 10_000, 10
PART = 6_000  # runs on which the plain ways are measured

Times = tuple[float, float, float]


def main() -> None:
    """Run the benchmarks named on the command line, or all."""
    warnings.simplefilter("ignore", CurvewiseWarning)
    available = {
        "memory": memory,
        "disk": disk,
        "disagreement": disagreement,
        "pmf": pmf,
        "pairs": pairs,
        "bootstrap": bootstrap,
    }
    if sys.argv[1:2] == ["resident"]:
        print(json.dumps(resident(sys.argv[2])))
        return
    for name in sys.argv[1:] or available:
        print(json.dumps(available[name]()), flush=True)


def memory() -> dict[str, object]:
    """The whole decomposition of errors that lie in memory as bits."""
    bits = errors_as_bits()
    given = cw.Predictions(bits, "errors", packed=N)
    ours = cpu(lambda: cw.decompose_variance(given), 9)
    theirs = cpu(lambda: plain_decomposition(bits[:PART]), 5)
    return line("decomposition of bits in memory", ours, theirs, RUNS / PART, bar=0.15)


def disk() -> dict[str, object]:
    """The same from a file, and the memory that a process of its own needs for it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "errors.npy"
        np.save(path, errors_as_bits())
        ours = cpu(lambda: decompose_file(path), 7)
        theirs = cpu(lambda: plain_decomposition(np.load(path, mmap_mode="r")[:PART]), 5)
        alone = subprocess.run([sys.executable, __file__, "resident", str(path)], capture_output=True, check=True)
        return line(
            "decomposition of bits on disk",
            ours,
            theirs,
            RUNS / PART,
            bar=0.5,
            bar_resident_mb=200,
            **json.loads(alone.stdout),
        )


def resident(path: str) -> dict[str, float]:
    """Most memory of a process that decomposes a file."""
    decompose_file(Path(path))
    status = Path("/proc/self/status").read_text()  # ru_maxrss would count the parent's
    peak = next(row for row in status.splitlines() if row.startswith("VmHWM"))
    return {"resident_mb": round(int(peak.split()[1]) / 1024, 1)}


def disagreement() -> dict[str, object]:
    """Mean disagreement of two runs out of 600 MB of labels."""
    labels = random_bytes((RUNS, N), CLASSES)
    truth = labels[0].astype(np.int64)
    ours = cpu(lambda: cw.variance.measure_disagreement(labels, truth), 5)
    theirs = cpu(lambda: plain_disagreement(labels[:PART]), 5)
    return line("mean disagreement", ours, theirs, RUNS / PART, bar=1.0)


def pmf() -> dict[str, object]:
    """Poisson-binomial probabilities of 10,000 trials, beside scipy's."""
    p = np.random.default_rng(0).random(N)
    ours = cpu(lambda: poisson_binomial_pmf(p), 15)
    theirs = cpu(lambda: stats.poisson_binom.pmf(np.arange(N + 1), p), 3)
    return line("Poisson-binomial probabilities", ours, theirs, 1.0, bar=0.1)


def pairs() -> dict[str, object]:
    """All pairs of examples tested for dependence, none of them rare enough to be left out."""
    given = cw.Predictions(random_bytes((RUNS, N // 8), 256), "errors", packed=N)
    start = time.process_time()
    cw.variance.measure_dependent_pairs(cw.Predictions(given.values[:64], "errors", packed=N))
    compilation = time.process_time() - start
    ours = cpu(lambda: cw.variance.measure_dependent_pairs(given), 3)
    columns = random_bytes((2048, RUNS // 64 * 8), 256).view(np.uint64)
    theirs = cpu(lambda: plain_tile(columns), 3)
    return line(
        "all pairs of examples", ours, theirs, (N / 1024) ** 2 / 2, bar=15, first_call_cpu_seconds=round(compilation, 2)
    )


def bootstrap() -> dict[str, object]:
    """2,000 two-way resamples of 100 runs on 10,000 examples, beside a loop."""
    rng = np.random.default_rng(0)
    errors = (rng.random((100, N)) < rng.beta(0.2, 2.0, N)).astype(np.uint8)
    given = cw.Predictions(errors, "errors")
    ours = cpu(lambda: bootstrap_variances(given, 2000, np.random.default_rng(0)), 3)
    theirs = cpu(lambda: looped_bootstrap(errors, 50), 3)
    return line("two-way bootstrap", ours, theirs, 40.0)


def decompose_file(path: Path) -> cw.Predictions:
    """Decompose what a memory map holds."""
    return cw.decompose_variance(cw.Predictions(np.load(path, mmap_mode="r"), "errors", packed=N))


def plain_decomposition(bits: np.ndarray) -> float:
    """Compute it as a user would, in blocks that fit the memory."""
    by_run, by_example = [], np.zeros(N, dtype=np.int64)
    for start in range(0, len(bits), 1000):
        errors = np.unpackbits(bits[start : start + 1000], axis=1, count=N)
        by_run.append(errors.sum(axis=1))
        by_example += errors.sum(axis=0, dtype=np.int64)
    runs = len(bits)
    p = by_example / runs
    noise = (p * (1 - p)).sum() * runs / (runs - 1) / N**2
    return float(N / (N - 1) * (np.var(np.concatenate(by_run) / N, ddof=1) - noise))


def plain_disagreement(labels: np.ndarray) -> float:
    """One comparison with the whole table per class."""
    counts = np.stack([(labels == c).sum(axis=0) for c in range(CLASSES)], axis=1)
    runs = len(labels)
    return float(1 - (counts * (counts - 1)).sum() / (runs * (runs - 1) * N))


def plain_tile(columns: np.ndarray) -> np.ndarray:
    """One tile of pairs by matrix multiplication, as without numba."""
    counts = np.zeros((1024, 1024), dtype=np.int32)
    _pair_counts.plain_kernel(columns, 0, 1024, counts)
    return counts


def looped_bootstrap(errors: np.ndarray, resamples: int) -> list[float]:
    """Resample rows and columns one after the other, each example paired with others only."""
    rng = np.random.default_rng(0)
    runs = len(errors)
    found = []
    for _ in range(resamples):
        w = np.bincount(rng.integers(0, runs, runs), minlength=runs)
        u = np.bincount(rng.integers(0, N, N), minlength=N)
        sums, first = errors @ u, w @ errors
        total = runs * (w * sums.astype(float) ** 2).sum() - float((w * sums).sum()) ** 2
        own = (u.astype(float) ** 2 * (runs * first - first.astype(float) ** 2)).sum()
        found.append((total - own) / (runs**2 - (w**2).sum()) / (N**2 - (u**2).sum()))
    return found


def errors_as_bits() -> np.ndarray:
    """60,000 runs on examples of very different difficulty, 75 MB."""
    rng = np.random.default_rng(0)
    p = rng.beta(0.1, 1.5, N).astype(np.float32)
    rows = [np.packbits(rng.random((1000, N), dtype=np.float32) < p, axis=1) for _ in range(RUNS // 1000)]
    return np.concatenate(rows)


def random_bytes(shape: tuple[int, int], high: int) -> np.ndarray:
    """Bytes below ``high``."""
    return np.random.default_rng(0).integers(0, high, shape, dtype=np.uint8)


def cpu(task: Callable[[], object], repeats: int) -> Times:
    """Median, least and most CPU seconds of a task after one warm-up."""
    task()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        task()
        times.append(time.process_time() - start)
    return float(np.median(times)), min(times), max(times)


def line(name: str, ours: Times, theirs: Times, scale: float, **more: object) -> dict[str, object]:
    """One result; the plain times are multiplied by ``scale``."""
    return {
        "benchmark": f"variance: {name}",
        "curvewise_cpu_seconds": round(ours[0], 4),
        "curvewise_range": [round(t, 4) for t in ours[1:]],
        "plain_cpu_seconds": round(scale * theirs[0], 4),
        "plain_scaled_by": round(scale, 2),
        "ratio": round(scale * theirs[0] / ours[0], 1),
        **more,
    }


if __name__ == "__main__":
    main()
