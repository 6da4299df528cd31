"""Coverage of the efficiency ratio of two scaling laws, and the test that their exponents are shared.

    python benchmarks/scaling_compare.py [sets] ["part of a cell's name" …]     # 1000 "larger in b, huber"

Two families with the additive law published for Chinchilla; b needs 0.7 times the compute, by its A, by its B, or by
both. Designs: 35 isoFLOP runs each; a ladder of 16 runs each; 35 runs of a and a ladder of 12 of b; 12 runs of 10
checkpoints each. Noise of log loss, 0.4%: normal, Student's t with 3 degrees of freedom, three times as large in b, and
for checkpoints a common error of each run. Printed: how often the 95% interval of ρ holds 0.7, by both losses, how
often the test rejects shared parameters that are shared (nominal 5), and its power where b has α larger by 0.05.

A table on stderr, one JSON line on stdout.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import json
import sys
import warnings

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import CurvewiseWarning
from curvewise.scaling import ScalingRuns, compare_scaling_laws

Array = NDArray[np.float64]
E, A, B, ALPHA, BETA = 1.8172, 482.01, 2085.43, 0.3478, 0.3658
RATIO, NOISE, CHECKPOINTS = 0.7, 0.004, 10


def isoflops() -> tuple[Array, Array]:
    """Seven sizes at each of five budgets."""
    c, off = np.repeat(np.geomspace(1e18, 1e21, 5), 7), np.tile(np.geomspace(0.2, 5, 7), 5)
    n = np.sqrt(c / 120) * off
    return n, c / 6 / n


def ladder(count: int) -> tuple[Array, Array]:
    """Four sizes by several multiples of tokens."""
    n = np.repeat(np.geomspace(2e7, 1e9, 4), count // 4)
    return n, 20 * n * np.tile(np.geomspace(0.5, 32, count // 4), 4)


def along_runs() -> tuple[Array, Array]:
    """Twelve runs of ten checkpoints."""
    n, d = ladder(12)
    return np.repeat(n, CHECKPOINTS), np.concatenate([v * np.linspace(0.1, 1, CHECKPOINTS) for v in d])


DESIGNS = {
    "35 and 35 isoFLOP runs": (isoflops, isoflops),
    "ladders of 16": (lambda: ladder(16), lambda: ladder(16)),
    "35 isoFLOP runs and a ladder of 12": (isoflops, lambda: ladder(12)),
    "12 and 12 runs x 10 checkpoints": (along_runs, along_runs),
}
NOISES = ("normal", "t3", "larger in b")


def draw(kind: str, second: bool, count: int, rng: np.random.Generator) -> Array:
    """Noise of one family."""
    if kind == "t3":
        return NOISE * rng.standard_t(3, count) / np.sqrt(3)
    return NOISE * (3 if kind == "larger in b" and second else 1) * rng.standard_normal(count)


def family(design: str, kind: str, second: bool, share: float, alpha: float, rng: np.random.Generator) -> ScalingRuns:
    """Simulate one family; of the advantage of b, a share is by A."""
    n, d = DESIGNS[design][int(second)]()
    better = RATIO if second else 1.0
    at = 3e8  # where a law with another exponent is as good
    loss = E + A / at**ALPHA * (at * better**share / n) ** alpha + B * (better ** (1 - share) / d) ** BETA
    if "checkpoints" in design:
        runs = len(n) // CHECKPOINTS
        noise = np.repeat(draw(kind, second, runs, rng), CHECKPOINTS) + 0.3 * draw("normal", False, len(n), rng)
        names = np.repeat(np.arange(runs), CHECKPOINTS).astype(str)
        return ScalingRuns(n, d, loss * np.exp(noise), run=names, unit="loss")
    return ScalingRuns(n, d, loss * np.exp(draw(kind, second, len(n), rng)), unit="loss")


def main() -> None:
    """Simulate every cell, print."""
    warnings.simplefilter("ignore", CurvewiseWarning)
    sets = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    cells: dict[str, dict[str, float]] = {}
    print(f"{'':66}{'ρ':>8}{'rejected':>10}{'power':>8}{'width':>8}", file=sys.stderr)
    for design in DESIGNS:
        for kind in NOISES:
            for loss in ("squares", "huber"):
                name = f"{design}, {kind}, {loss}"
                if sys.argv[2:] and not any(word in name for word in sys.argv[2:]):
                    continue
                held = rejected = power = 0
                widths = []
                for seed in range(sets):
                    rng = np.random.default_rng([seed, 20])
                    share = (0.0, 0.5, 1.0)[seed % 3]
                    a, b = (family(design, kind, second, share, ALPHA, rng) for second in (False, True))
                    found = compare_scaling_laws(a, b, loss=loss)
                    held += RATIO in found.efficiency
                    rejected += found.pvalue < 0.05
                    widths.append(found.efficiency.width)
                    if seed % 5 == 0:
                        steep = family(design, kind, True, share, ALPHA + 0.05, rng)
                        power += compare_scaling_laws(a, steep, loss=loss).pvalue < 0.05
                tried = len(range(0, sets, 5))
                cells[name] = {
                    "coverage": round(100 * held / sets, 1),
                    "rejected": round(100 * rejected / sets, 1),
                    "power": round(100 * power / tried, 1),
                    "width": round(float(np.median(widths)), 4),
                }
                row = cells[name]
                print(
                    f"{name:66}{row['coverage']:8.1f}{row['rejected']:10.1f}{row['power']:8.1f}{row['width']:8.3f}",
                    file=sys.stderr,
                    flush=True,
                )
    print(json.dumps({"benchmark": "efficiency of scaling laws", "sets": sets, "nominal": 95, "cells": cells}))


if __name__ == "__main__":
    main()
