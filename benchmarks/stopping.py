"""Simulate plans for stopping: their error rate, beside naive peeking, and the runs they save.

Usage: ``python benchmarks/stopping.py`` for a table on stderr and one JSON line on stdout. Run
errors are normal, means of 0/1 errors on a small test set (so that they are coarse), of different
spread in the two trainings, skewed, or have heavy tails. For each, two trainings without a
difference are compared at every look of a plan: how often does it stop with one? Then the
difference is 0.5, 1 and 2 standard deviations between runs: how many runs are made, beside a single
look at the last?
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import json
import math
import sys
import time
from collections.abc import Callable

import numpy as np
from scipy.special import stdtr

from curvewise.types import FloatArray
from curvewise.variance.plan import plan_stopping

DESIGNS = {"3 looks": (5, 10, 20), "5 looks": (3, 5, 10, 20, 40), "every run": tuple(range(3, 31))}
EFFECTS = (0.5, 1.0, 2.0)
CHUNK = 5000
Draw = Callable[[np.random.Generator, tuple[int, int], int], FloatArray]
DRAWS: dict[str, Draw] = {
    "normal": lambda rng, shape, side: rng.standard_normal(shape),
    "0/1, 200 examples": lambda rng, shape, side: (rng.binomial(200, 0.1, shape) - 20) / math.sqrt(18),
    "one spread 3 times the other": lambda rng, shape, side: rng.standard_normal(shape) * (1, 3)[side],
    "heavy tails (t, 3 degrees)": lambda rng, shape, side: rng.standard_t(3, shape),
    "skewed (exponential), spreads 1 : 3": lambda rng, shape, side: (rng.exponential(size=shape) - 1) * (1, 3)[side],
    "skewed (log-normal), spreads 1 : 3": lambda rng, shape, side: (
        (rng.lognormal(size=shape) - math.exp(0.5)) / math.sqrt(math.e**2 - math.e) * (1, 3)[side]
    ),
    "one run in ten fails": lambda rng, shape, side: rng.standard_normal(shape) + 6 * (rng.random(shape) < 0.1),
}


def main() -> None:
    """Simulate every design with every kind of run error."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--experiments", type=int, default=100_000)
    count = parser.parse_args().experiments
    start = time.process_time()
    result: dict[str, dict[str, object]] = {}
    for design, looks in DESIGNS.items():
        for paired in (False, True):
            name = f"{design}, {'paired' if paired else 'unpaired'}"
            plan = plan_stopping(looks, paired=paired, draws=200_000)
            rows: dict[str, object] = {"nominal": round(plan.nominal_level, 5)}
            for kind, draw in DRAWS.items():
                rng = np.random.default_rng(1)
                p = pvalues(looks, paired, draw, 0.0, count, rng)
                rows[kind] = {
                    "planned": round(float((p <= plan.nominal_level).any(axis=0).mean()), 4),
                    "naive": round(float((p <= 0.05).any(axis=0).mean()), 4),
                    "one look": round(float((p[-1] <= 0.05).mean()), 4),
                }
                print(f"{name:22} {kind:30} {rows[kind]}", file=sys.stderr)
            rows["runs"] = saved(looks, paired, plan.nominal_level, count // 5)
            print(f"{name:22} {rows['runs']}", file=sys.stderr)
            result[name] = rows
    seconds = round(time.process_time() - start, 1)
    line = {"benchmark": "stopping", "experiments": count, "cpu_seconds": seconds}
    print(json.dumps({**line, "designs": result}))


def pvalues(
    looks: tuple[int, ...], paired: bool, draw: Draw, effect: float, count: int, rng: np.random.Generator
) -> FloatArray:
    """P-values of the t tests at each look, looks × experiments, from runs drawn one by one."""
    parts = []
    for start in range(0, count, CHUNK):
        shape = min(CHUNK, count - start), looks[-1]
        sides = [draw(rng, shape, side) for side in (0, 1)]
        if paired:
            sides = [(sides[0] - sides[1]) / math.sqrt(2)]
        parts.append(np.array([_test([s[:, :k] for s in sides], effect) for k in looks]))
    return np.concatenate(parts, axis=1)


def _test(sides: list[FloatArray], effect: float) -> FloatArray:
    size = sides[0].shape[1]
    squares = [s.var(axis=1, ddof=1) / size for s in sides]
    total = np.sum(squares, axis=0)
    gap = sides[0].mean(axis=1) - (sides[1].mean(axis=1) if len(sides) > 1 else 0.0) + effect
    with np.errstate(divide="ignore", invalid="ignore"):
        degrees = (size - 1) * total**2 / np.sum([s**2 for s in squares], axis=0)
        t = np.where((total == 0) & (gap == 0), 0.0, np.abs(gap) / np.sqrt(total))
    p: FloatArray = np.where(total == 0, gap == 0, 2 * stdtr(degrees, -t))
    return p


def saved(looks: tuple[int, ...], paired: bool, nominal: float, count: int) -> dict[str, object]:
    """Runs of each training and chance to find a difference, beside a single look."""
    rows: dict[str, object] = {}
    for effect in EFFECTS:
        p = pvalues(looks, paired, DRAWS["normal"], effect, count, np.random.default_rng(2))
        found = p <= nominal
        last = np.where(found.any(axis=0), found.argmax(axis=0), len(looks) - 1)
        rows[str(effect)] = {
            "runs": round(float(np.array(looks)[last].mean()), 2),
            "of": looks[-1],
            "found": round(float(found.any(axis=0).mean()), 3),
            "found by one look": round(float((p[-1] <= 0.05).mean()), 3),
        }
    return rows


if __name__ == "__main__":
    main()
