"""Speed of NLEEP beside scikit-learn's PCA and GaussianMixture; a JSON line for each row.

    python benchmarks/ranking.py                  # about five minutes of one core
    python benchmarks/ranking.py growth           # some of nleep, growth
    python benchmarks/ranking.py --quick          # small features, to see that it runs
    python benchmarks/ranking.py --device cuda    # ours on a GPU as well, features lying there

10,000 examples of 2,048 dimensions in float32, whose power-law spectrum PCA with energy .8 takes to
about 120. CPU seconds of one thread, medians of repeats by turns in one process. `ours` is
`nleep(features, labels)` from end to end. `sklearn` is PCA(0.8), then GaussianMixture with the same
covariance, our clusters as its start (their cost is ours alone) and as many steps of EM, then the
posteriors; `quicker` the same with PCA's solver "covariance_eigh". Both read the same float32
features; where single precision fails scikit-learn's mixture, it is given double. `difference` is
that of the mean log-likelihoods, relative. `growth` changes one size at a time.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import json
import math
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

# A package called coverage may be imported, which must not be the benchmark beside this one.
sys.path = [p for p in sys.path if Path(p or ".").resolve() != Path(__file__).resolve().parent]

import numpy as np
from sklearn.decomposition import PCA
from sklearn.mixture import GaussianMixture

from curvewise.ranking.mixture import FLOOR, candidates, cluster, fit_mixture, project
from curvewise.ranking.prediction import nleep

POWER = 1.16  # of the spectrum
POOL = 41 * 4  # checkpoints × tasks


def main() -> None:
    """Print a line for each row."""
    parser = argparse.ArgumentParser()
    parser.add_argument("rows", nargs="*", default=("nleep", "growth"), help="nleep, growth")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--device", help="such as cuda")
    wish = parser.parse_args()
    warnings.simplefilter("ignore")  # few examples, and EM that stops early on purpose
    n, d, many = (1000, 512, 20) if wish.quick else (10_000, 2048, 100)
    repeats = 1 if wish.quick else 3
    for classes, covariance in ((10, "diagonal"), (many, "diagonal"), (10, "full")):
        if "nleep" in wish.rows:
            show(beside(n, d, classes, covariance, repeats))
    for classes in (10, many) if wish.device else ():
        show(on_device(n, d, classes, wish.device))
    if "growth" in wish.rows:
        grown(n, d, many)


def grown(n: int, d: int, many: int) -> None:
    """Print rows for sizes, one changed at a time, and minutes for a pool of checkpoints."""
    factors = (0.25, 0.5, 1, 2)
    sizes = [("n", (int(n * k), d, 10)) for k in factors]
    sizes += [("d", (n, int(d * k), 10)) for k in factors]
    sizes += [("classes", (n, d, classes)) for classes in (10, many // 3, many)]
    minutes = []
    for name, size in sizes:
        x, labels = made(*size)
        used = statistics.median(spent(nleep, x, labels) for _ in range(3))
        minutes.append(round(POOL * used / 60, 1))
        given = dict(zip(("n", "d", "classes"), size, strict=True))
        show({"row": "growth", "of": name, **given, "ours": round(used, 2)})
    show({"row": "pool", "scores": POOL, "minutes": [minutes[-3], minutes[-1]]})


def beside(n: int, d: int, classes: int, covariance: str, repeats: int) -> dict[str, Any]:
    """Ours and scikit-learn's by turns."""
    x, labels = made(n, d, classes)
    count = 5 * classes
    reduced, projection = project(x)
    start = cluster(reduced, np.random.default_rng(0).random((count, candidates(count))))
    ours = fit_mixture(reduced, start, count, covariance)
    likelihood = ours.log_likelihood(reduced)
    likelihood -= reduced.shape[1] * math.log(projection.scale)
    times, gaps = [], []
    for _ in range(repeats):
        own = spent(nleep, x, labels, covariance=covariance)
        plain, quicker, mixture, theirs = by_scikit_learn(x, start, covariance, len(ours.trace))
        times.append((own, plain + mixture, quicker + mixture))
        gaps.append(abs(likelihood / theirs - 1))
    own, plain, quicker = (statistics.median(t) for t in zip(*times, strict=True))
    return {
        "row": "nleep",
        "n": n,
        "d": d,
        "classes": classes,
        "covariance": covariance,
        "dimensions": reduced.shape[1],
        "steps": len(ours.trace),
        "ours": round(own, 2),
        "sklearn": round(plain, 2),
        "quicker": round(quicker, 2),
        "ratio": round(plain / own, 2),
        "ratio_quicker": round(quicker / own, 2),
        "difference": float(f"{max(gaps):.1e}"),
    }


def by_scikit_learn(x: np.ndarray, start: np.ndarray, covariance: str, steps: int) -> tuple[float, float, float, float]:
    """Seconds of PCA by two solvers and of the mixture, and its mean log-likelihood."""
    begun = time.process_time()
    PCA(0.8).fit_transform(x)
    plain = time.process_time() - begun
    begun = time.process_time()
    reduced = PCA(0.8, svd_solver="covariance_eigh").fit_transform(x)
    quicker = time.process_time() - begun
    try:
        return plain, quicker, *_mixture(reduced, start, covariance, steps)
    except ValueError:  # ill-defined covariance
        return plain, quicker, *_mixture(reduced.astype(np.float64), start, covariance, steps)


def _mixture(reduced: np.ndarray, start: np.ndarray, covariance: str, steps: int) -> tuple[float, float]:
    """Seconds of EM and of the posteriors, and the mean log-likelihood."""
    count, floor = int(start.max()) + 1, FLOOR * float(reduced.var(axis=0).mean())
    shares = (np.bincount(start) / len(start)).astype(reduced.dtype)
    groups = [reduced[start == k] for k in range(count)]
    means = np.array([g.mean(axis=0) for g in groups])
    if covariance == "full":
        level = floor * np.eye(reduced.shape[1])
        precisions = np.linalg.inv([np.cov(g.T, bias=True) + level for g in groups])
    else:
        precisions = 1 / np.array([g.var(axis=0) + floor for g in groups])
    model = GaussianMixture(
        count,
        covariance_type="full" if covariance == "full" else "diag",
        reg_covar=floor,
        tol=0,
        max_iter=steps,
        init_params="random_from_data",
        random_state=0,
        weights_init=shares,
        means_init=means,
        precisions_init=precisions,
    )
    begun = time.process_time()
    model.fit(reduced)
    model.predict_proba(reduced)
    used = time.process_time() - begun
    return used, float(model.score(reduced))


def on_device(n: int, d: int, classes: int, device: str) -> dict[str, Any]:
    """Wall-clock seconds on a GPU: medians of ten after two to warm up."""
    import torch

    from curvewise.ranking.networks.probes import nleep_on_device

    x, labels = made(n, d, classes)
    there = torch.tensor(x, device=device)
    times, found = [], 0.0
    for _ in range(12):
        torch.cuda.synchronize()
        begun = time.perf_counter()
        found = nleep_on_device(there, labels)
        times.append(time.perf_counter() - begun)
    return {
        "row": "device",
        "device": torch.cuda.get_device_name(),
        "classes": classes,
        "seconds": round(statistics.median(times[2:]), 4),
        "first": round(times[0], 2),
        "difference": float(f"{abs(found - nleep(x, labels)):.1e}"),
    }


def made(n: int, d: int, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Features with a power-law spectrum, turned, that tell something about labels."""
    rng = np.random.default_rng(0)
    labels = np.arange(n) % classes
    centres = 0.3 * rng.standard_normal((classes, d))
    x = rng.standard_normal((n, d), dtype=np.float32) + centres[labels].astype(np.float32)
    x *= np.arange(1, d + 1, dtype=np.float32) ** (-POWER / 2)
    for mirror in rng.standard_normal((2, d), dtype=np.float32):
        x -= np.outer(x @ mirror, 2 * mirror / (mirror @ mirror))
    return x, labels


def spent(function: Callable[..., Any], *given: Any, **options: Any) -> float:
    """CPU seconds of a call."""
    begun = time.process_time()
    function(*given, **options)
    return time.process_time() - begun


def show(row: dict[str, Any]) -> None:
    """Print a line."""
    print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
