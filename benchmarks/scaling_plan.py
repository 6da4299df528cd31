"""Planned runs of a scaling law: the width of an interval that is promised, the one that comes out, and the cost.

    python benchmarks/scaling_plan.py [sets]

The truth is the additive law published for Chinchilla, with normal noise, or Student's t with 3 degrees of freedom, of
0.4% of the loss. A first design (20 isoFLOP runs, or a ladder of 12) is drawn and fitted; runs are planned that halve
the interval of N* or of the loss at 100 times its largest compute, where a run may be up to 10 times the largest; their
losses are drawn from the truth, and the law is fitted again. Printed: medians of the promised width, of that which came
out, and of their ratio; how often the new interval holds the truth; the number of planned runs; and the compute of the
plan over that of three more copies of the first design, which would halve the interval, too.

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
from curvewise.scaling import ScalingRuns, fit_scaling_law, plan_scaling_runs

Array = NDArray[np.float64]
E, A, B, ALPHA, BETA = 1.8172, 482.01, 2085.43, 0.3478, 0.3658
NOISE = 0.004


def isoflops() -> tuple[Array, Array]:
    """Five sizes at each of four budgets."""
    c, off = np.repeat(np.geomspace(1e18, 1e20, 4), 5), np.tile(np.geomspace(0.2, 5, 5), 4)
    n = np.sqrt(c / 120) * off
    return n, c / 6 / n


def ladder() -> tuple[Array, Array]:
    """Four sizes by three multiples of tokens."""
    n = np.repeat(np.geomspace(2e7, 1e9, 4), 3)
    return n, 20 * n * np.tile([0.5, 4.0, 32.0], 4)


def trained(n: Array, d: Array, kind: str, rng: np.random.Generator) -> Array:
    """Losses of new runs."""
    z = rng.standard_normal(len(n)) if kind == "normal" else rng.standard_t(3, len(n)) / np.sqrt(3)
    return np.asarray((E + A / n**ALPHA + B / d**BETA) * np.exp(NOISE * z))


def main() -> None:
    """Simulate every cell, print."""
    warnings.simplefilter("ignore", CurvewiseWarning)
    sets = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    cells = {}
    for label, design in (("20 isoFLOP runs", isoflops), ("ladder of 12", ladder)):
        for kind in ("normal", "t3"):
            for loss in ("squares", "huber"):
                for quantity in ("params", "loss"):
                    name = f"{label}, {kind}, {loss}, {quantity}"
                    cells[name] = cell(design, kind, loss, quantity, sets)
                    print(f"{name:44} {cells[name]}", file=sys.stderr, flush=True)
    print(json.dumps({"benchmark": "planned runs of scaling laws", "sets": sets, "cells": cells}))


def cell(design, kind: str, loss: str, quantity: str, sets: int) -> dict[str, float]:  # type: ignore[no-untyped-def]
    """Plan and train so many times."""
    promised, came, held, counts, costs = [], [], 0, [], []
    for seed in range(sets):
        rng = np.random.default_rng([seed, 5])
        n, d = design()
        y = trained(n, d, kind, rng)
        budget = 100 * float((6 * n * d).max())
        law = fit_scaling_law(ScalingRuns(n, d, y, unit="loss"), loss=loss)
        plan = plan_scaling_runs(law, budget, quantity=quantity, largest=budget / 10)
        more_n, more_d = np.array(plan.params), np.array(plan.tokens)
        all_n, all_d = np.concatenate([n, more_n]), np.concatenate([d, more_d])
        runs = ScalingRuns(all_n, all_d, np.concatenate([y, trained(more_n, more_d, kind, rng)]), unit="loss")
        after = getattr(fit_scaling_law(runs, loss=loss).compute_optimal(budget), quantity)
        before = plan.current
        if np.isfinite(before.high) and before.low > 0:
            promised.append(plan.expected_factor)
            came.append(np.log(after.high / after.low) / np.log(before.high / before.low))
        size = (ALPHA * A / (BETA * B)) ** (1 / (ALPHA + BETA)) * (budget / 6) ** (BETA / (ALPHA + BETA))
        truth = size if quantity == "params" else E + A / size**ALPHA + B / (budget / 6 / size) ** BETA
        held += truth in after
        counts.append(len(more_n))
        costs.append(plan.cost / (3 * plan.spent))
    ratio = np.array(came) / np.array(promised)
    return {
        "promised": round(float(np.median(promised)), 3),
        "came out": round(float(np.median(came)), 3),
        "ratio": round(float(np.median(ratio)), 3),
        "ratio, 10% to 90%": [round(float(q), 2) for q in np.quantile(ratio, [0.1, 0.9])],  # type: ignore[dict-item]
        "coverage": round(100 * held / sets, 1),
        "runs": float(np.median(counts)),
        "cost over three copies": round(float(np.median(costs)), 4),
        "bounded before": round(100 * len(came) / sets, 1),
    }


if __name__ == "__main__":
    main()
