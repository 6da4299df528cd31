"""Speed of LogME beside plain numpy, in one process; one JSON line for each number of classes.

    python benchmarks/logme.py              # 10 and 100 classes, about a minute
    python benchmarks/logme.py --growth     # how time grows with examples, dimensions and classes

10,000 examples of 2,048 dimensions in single precision with a power-law spectrum. CPU time of one
thread, the least of two of ours and one of the plain way: a singular value decomposition, then
alternating updates for one class after the other until they stand still. `ratio` is how many times
faster we are, `difference` how far apart the values are, relative.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import json
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from curvewise.ranking.moments import logme

N, D, CLASSES = 10_000, 2048, (10, 100)
BAR, TOLERANCE = 3.0, 1e-6


def main() -> None:
    """Measure both ways, or the growth of ours."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--growth", action="store_true", help="time of ours for other sizes")
    if parser.parse_args().growth:
        for n, d, classes in ((N, D, 10), (2 * N, D, 10), (N, D // 2, 10), (N, D, 1000)):
            features, labels = made(n, d, classes)
            seconds, _ = cpu(lambda f=features, y=labels: logme(f, y), 1)
            print(json.dumps({"n": n, "d": d, "classes": classes, "seconds": round(seconds, 2)}))
        return
    for classes in CLASSES:
        features, labels = made(N, D, classes)
        ours, value = cpu(lambda f=features, y=labels: logme(f, y), 2)
        theirs, plain = cpu(lambda f=features, y=labels: plain_logme(f, y), 1)
        difference = abs(value - plain) / abs(plain)
        line = {
            "benchmark": "LogME",
            "n": N,
            "d": D,
            "classes": classes,
            "seconds": round(ours, 2),
            "plain_seconds": round(theirs, 2),
            "ratio": round(theirs / ours, 2),
            "bar": BAR,
            "value": value,
            "plain_value": plain,
            "difference": difference,
            "passed": theirs / ours >= BAR and difference <= TOLERANCE,
        }
        print(json.dumps(line), flush=True)


def made(n: int, d: int, classes: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Features whose variances fall as a power of their place, around class means, turned."""
    rng = np.random.default_rng(0)
    labels = rng.permutation(np.arange(n) % classes)
    spread = np.arange(1, d + 1, dtype=np.float32) ** np.float32(-0.5)
    means = 0.5 * rng.standard_normal((classes, d), dtype=np.float32)
    features = (rng.standard_normal((n, d), dtype=np.float32) + means[labels]) * spread
    axes = np.linalg.qr(rng.standard_normal((d, d), dtype=np.float32))[0]
    return features @ axes + np.float32(0.1), labels


def plain_logme(features: NDArray[np.float32], labels: NDArray[np.int64]) -> float:
    """The textbook way, class by class."""
    f = features.astype(np.float64)
    n, d = f.shape
    u, s, _ = np.linalg.svd(f, full_matrices=False)
    sigma = s**2
    evidences = []
    for label in np.unique(labels):
        y = (labels == label).astype(np.float64)
        x2 = (u.T @ y) ** 2
        outside = y @ y - x2.sum()
        alpha = beta = 1.0
        for _ in range(10_000):
            ratio = alpha / beta
            kept = (sigma / (sigma + ratio)).sum()
            weights = (sigma * x2 / (sigma + ratio) ** 2).sum()
            residual = (x2 * (ratio / (sigma + ratio)) ** 2).sum() + outside
            alpha, beta = kept / weights, (n - kept) / residual
            if abs(alpha / beta - ratio) <= 1e-9 * ratio:
                break
        evidence = d / 2 * np.log(alpha) + n / 2 * np.log(beta / (2 * np.pi))
        evidence -= 0.5 * np.log(alpha + beta * sigma).sum()
        evidences.append((evidence - beta / 2 * residual - alpha / 2 * weights) / n)
    return float(np.mean(evidences))


def cpu(call: Callable[[], float], repeats: int) -> tuple[float, float]:
    """Least CPU time of a call, and what it gave."""
    best, found = np.inf, np.nan
    for _ in range(repeats):
        start = time.process_time()
        found = call()
        best = min(best, time.process_time() - start)
    return best, found


if __name__ == "__main__":
    main()
