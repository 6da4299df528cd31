"""Programs in circulation beside the formulas that they are for: differences, and what they do to a ranking.

    python benchmarks/ranking_programs.py                    # simulated pools, about half a minute
    python benchmarks/ranking_programs.py FILE.npz …         # your features: an array for each, and `labels`

For each measure the largest difference of its scores over a pool of checkpoints, and Kendall's τ between the two
rankings. Programs are described, not copied: each function below computes what one of them does.

- LogME, fixed-point version of its authors: with more features than examples it counts d weights and n eigenvalues.
- GBC, spherical: the logarithm's term counts one dimension instead of d.
- H-score of stable_transfer: an elementwise product where the formula has a matrix product.
- PARC: its authors standardise each feature first (the default here), the formula of the paper does not.
- TransRate: its author divides rows by their norm (`rows="unit"`), the formula does not.

One JSON line for each pool on stdout, a table on stderr.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Mapping

import numpy as np

from curvewise.ranking.distances import parc
from curvewise.ranking.moments import gbc, h_score, logme, principal_coordinates, transrate
from curvewise.stats.correlation import kendall

CHECKPOINTS, CLASSES = 20, 10
# Examples of the simulated pools, whose features are 64 to 1,024.
EXAMPLES = (300, 1500)
DIMENSIONS = (64, 256, 1024)
Score = Callable[[np.ndarray, np.ndarray], float]


def program_logme(features: np.ndarray, labels: np.ndarray) -> float:
    """Evidence with d log α for the weights, and only as many eigenvalues as the features have rank."""
    x = features.astype(np.float64)
    n, d = x.shape
    left, sizes, _ = np.linalg.svd(x, full_matrices=False)
    kept = sizes > 1e-10
    left, squares = left[:, kept], sizes[kept] ** 2
    found = []
    for label in np.unique(labels):
        y = (labels == label).astype(float)
        along = (left.T @ y) ** 2
        rest = max(float(y @ y - along.sum()), 0.0)
        alpha = beta = 1.0
        for _ in range(11):
            ratio = alpha / beta
            gamma = float((squares / (squares + ratio)).sum())
            weights = float((squares * along / (squares + ratio) ** 2).sum())
            missed = float((along / (1 + squares / ratio) ** 2).sum()) + rest
            alpha, beta = gamma / (weights + 1e-5), (n - gamma) / (missed + 1e-5)
            if abs(alpha / beta - ratio) / ratio <= 1e-2:
                break
        evidence = n * np.log(beta / (2 * np.pi)) + d * np.log(alpha) - beta * missed - alpha * weights
        found.append((evidence - np.log(alpha + beta * squares).sum()) / (2 * n))
    return float(np.mean(found))


def program_gbc(features: np.ndarray, labels: np.ndarray, dims: int = 64) -> float:
    """Spherical Gaussians whose variances count once in the logarithm, not once for each dimension."""
    x = principal_coordinates(features, dims) if features.shape[1] > dims else features.astype(np.float64)
    groups = [x[labels == c] for c in np.unique(labels)]
    means, spread = np.array([g.mean(axis=0) for g in groups]), np.array([g.var(axis=0).mean() for g in groups])
    middle = (spread[:, None] + spread[None]) / 2
    apart = ((means[:, None] - means[None]) ** 2).sum(axis=-1) / middle / 8
    distance = apart + np.log(middle / np.sqrt(spread[:, None] * spread[None])) / 2
    return float(len(groups) - np.exp(-distance).sum())


def program_h_score(features: np.ndarray, labels: np.ndarray) -> float:
    """Sum of the products of the diagonals: the trace of an elementwise product."""
    x = features.astype(np.float64)
    means = np.array([x[labels == c].mean(axis=0) for c in np.unique(labels)])[
        np.unique(labels, return_inverse=True)[1]
    ]
    inverse = np.linalg.pinv(np.cov(x.T), rcond=1e-5, hermitian=True)
    return float((np.diag(inverse) * means.var(axis=0, ddof=1)).sum())


PAIRS: Mapping[str, tuple[Score, Score]] = {
    "logme": (logme, program_logme),
    "gbc": (gbc, program_gbc),
    "h-score": (lambda x, y: h_score(x, y, shrinkage=0), program_h_score),
    "parc": (lambda x, y: parc(x, y, standardise=False), parc),
    "transrate": (transrate, lambda x, y: transrate(x, y, rows="unit")),
}


def simulated(n: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Positive features of very different scales, as networks have, with more or less of the classes in them."""
    rng = np.random.default_rng(0)
    labels = np.arange(n) % CLASSES
    pool = {}
    for i in range(CHECKPOINTS):
        d = DIMENSIONS[i % len(DIMENSIONS)]
        signal = rng.uniform(0.1, 1.5) * rng.standard_normal((CLASSES, d))[labels]
        x = (rng.standard_normal((n, d)) + signal) * np.exp(rng.standard_normal(d)) + rng.standard_normal(d)
        pool[f"{i}"] = np.maximum(x, 0.0).astype(np.float32)
    return pool, labels


def compare(pool: Mapping[str, np.ndarray], labels: np.ndarray) -> dict[str, dict[str, float]]:
    """Both scores of every checkpoint: the largest difference, Kendall's τ, and both ranges."""
    found = {}
    for name, (formula, program) in PAIRS.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            one, two = (np.array([score(x, labels) for x in pool.values()]) for score in (formula, program))
        found[name] = {
            "difference": round(float(np.abs(one - two).max()), 4),
            "kendall": round(float(kendall(one[None], two)[0]), 3),
            "formula": [round(float(v), 4) for v in (one.min(), one.max())],
            "program": [round(float(v), 4) for v in (two.min(), two.max())],
        }
    return found


def main() -> None:
    """Compare on simulated pools, or on stored features."""
    if sys.argv[1:]:
        pools = {}
        for path in sys.argv[1:]:
            with np.load(path) as stored:
                pools[path] = {k: stored[k] for k in stored if k != "labels"}, stored["labels"]
    else:
        pools = {f"simulated, {n} examples": simulated(n) for n in EXAMPLES}
    for where, (pool, labels) in pools.items():
        found = compare(pool, labels)
        for name, row in found.items():
            told = f"{row['formula']} formula, {row['program']} program"
            print(f"{where:28}{name:11}{row['difference']:>12}  τ {row['kendall']:>6}  {told}", file=sys.stderr)
        print(
            json.dumps({"benchmark": "ranking programs", "pool": where, "checkpoints": len(pool), **found}), flush=True
        )


if __name__ == "__main__":
    main()
