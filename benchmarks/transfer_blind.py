"""Coverage of the interval of a blind guess, simulated from targets whose best risk is known.

    python benchmarks/transfer_blind.py [draws]

The constant is found and measured on the same examples; the truth is the risk of the best constant
there is. Beside the interval stands Student's about the same mean. A table on stderr, one JSON line
on stdout, which also says how low the risk on the same examples is on average, next to what theory
says, in the unit of the loss.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable

import numpy as np
from scipy.special import entr
from scipy.stats import t as student

from curvewise.errors import CurvewiseWarning
from curvewise.transfer.blind import blind_guess

RARE, UNEVEN = np.array([0.9, 0.08, 0.02]), np.array([0.6, 0.3, 0.1])
LABELS = np.array([0.1, 0.5, 0.3])

Case = tuple[str, Callable[[np.random.Generator, int], np.ndarray], float, Callable[[int], float]]
CASES: dict[str, Case] = {
    "l1, normal": ("l1", lambda r, n: r.normal(size=n), np.sqrt(2 / np.pi), lambda n: 0.627 / n),
    "l1, exponential": ("l1", lambda r, n: r.exponential(size=n), np.log(2), lambda n: 0.5 / n),
    "l2, normal": ("l2", lambda r, n: r.normal(size=n), 1.0, lambda n: 1 / n),
    "l2, exponential": ("l2", lambda r, n: r.exponential(size=n), 1.0, lambda n: 1 / n),
    "error, uneven": ("error", lambda r, n: r.choice(3, n, p=UNEVEN), 0.4, lambda n: 0.0),
    "error, 10 alike": ("error", lambda r, n: r.integers(0, 10, n), 0.9, lambda n: np.nan),
    "error, 100 alike": ("error", lambda r, n: r.integers(0, 100, n), 0.99, lambda n: np.nan),
    "entropy, uneven": (
        "cross-entropy",
        lambda r, n: r.choice(3, n, p=UNEVEN),
        entr(UNEVEN).sum(),
        lambda n: 2 / (2 * n),
    ),
    "entropy, rare": ("cross-entropy", lambda r, n: r.choice(3, n, p=RARE), entr(RARE).sum(), lambda n: 2 / (2 * n)),
    "entropy, 10 alike": ("cross-entropy", lambda r, n: r.integers(0, 10, n), np.log(10), lambda n: 9 / (2 * n)),
    "binary, nearly even": (
        "binary",
        lambda r, n: (r.random(n) < 0.4).astype(int),
        entr(0.4) + entr(0.6),
        lambda n: 1 / (2 * n),
    ),
    "binary, rare": (
        "binary",
        lambda r, n: (r.random(n) < 0.03).astype(int),
        entr(0.03) + entr(0.97),
        lambda n: 1 / (2 * n),
    ),
    "binary error, 5 even": (
        "binary-error",
        lambda r, n: (r.random((n, 5)) < 0.5).astype(int),
        0.5,
        lambda n: 0.5 * np.sqrt(2 / (np.pi * n)),
    ),
    "l1, many zeros": (
        "l1",
        lambda r, n: np.where(r.random(n) < 0.6, 0.0, r.exponential(size=n)),
        0.4,
        lambda n: np.nan,
    ),
    "l2, lognormal": (
        "l2",
        lambda r, n: r.lognormal(0, 0.5, n),
        (np.exp(0.25) - 1) * np.exp(0.25),
        lambda n: (np.exp(0.25) - 1) * np.exp(0.25) / n,
    ),
    "binary": (
        "binary",
        lambda r, n: (r.random((n, 3)) < LABELS).astype(int),
        (entr(LABELS) + entr(1 - LABELS)).mean(),
        lambda n: 1 / (2 * n),
    ),
}
SIZES = (50, 200, 1000)


def main() -> None:
    """Simulate, print."""
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    warnings.simplefilter("ignore", CurvewiseWarning)
    found = {name: {n: simulate(case, n, draws) for n in SIZES} for name, case in CASES.items()}
    head = f"{'% covered, 95% nominal':26}{'n':>6}{'ours':>8}{'Student':>9}"
    print(f"{head}{'low by':>10}{'theory':>10}", file=sys.stderr)
    for name, sizes in found.items():
        for n, row in sizes.items():
            cells = f"{row['ours']:8.1f}{row['student']:9.1f}{row['low_by']:10.5f}{row['theory']:10.5f}"
            print(f"{name:26}{n:6d}{cells}", file=sys.stderr)
    print(json.dumps({"benchmark": "blind guess", "draws": draws, "found": found}))


def simulate(case: Case, n: int, draws: int) -> dict[str, float]:
    """Coverage in percent, and how low the risk is on average."""
    loss, draw, truth, theory = case
    rng = np.random.default_rng(0)
    quantile = student.ppf(0.975, n - 1)
    ours = theirs = 0
    risks = []
    for _ in range(draws):
        guess = blind_guess(draw(rng, n), loss)
        ours += truth in guess.risk
        theirs += abs(guess.risk.estimate - truth) <= quantile * guess.std
        risks.append(guess.risk.estimate)
    return {
        "ours": 100 * ours / draws,
        "student": 100 * theirs / draws,
        "low_by": float(truth - np.mean(risks)),
        "theory": float(theory(n)),
    }


if __name__ == "__main__":
    main()
