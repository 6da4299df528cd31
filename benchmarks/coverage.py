"""Coverage of the intervals of the variance lens on simulated runs whose truth is known.

    python benchmarks/coverage.py                  # 1,000 data sets for each row, about 15 minutes
    python benchmarks/coverage.py --sets 200       # rougher
    python benchmarks/coverage.py decompose        # one of decompose, groups, compare, unequal

Runs err on 1,000 examples with probability expit(difficulty + run effect); the run effect is such
that the true error has exactly the wanted spread. σ is that spread, τ the noise that the finite
test set adds to the standard deviation of test error. Failed runs have a true error of one half.
The Monte Carlo error of a coverage near 95% is 0.7 points for 1,000 data sets.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import math
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from scipy.special import expit

import curvewise as cw
from curvewise.errors import CurvewiseWarning
from curvewise.text import format_table

N = 1000
DIFFICULTY = (-2.2, 2.0)
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(101)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
SHIFTS = np.linspace(-9, 9, 3601)
"""Run effects, and the true error that each gives:"""
RATES = expit(DIFFICULTY[0] + DIFFICULTY[1] * NODES + SHIFTS[:, None])
TRUE = RATES @ WEIGHTS
ERROR = float(np.interp(0, SHIFTS, TRUE))
TAU = math.sqrt(float(np.interp(0, SHIFTS, (RATES * (1 - RATES)) @ WEIGHTS)) / N)

DECOMPOSED = (
    [("normal", ratio, runs) for ratio in (0, 1, 3) for runs in (5, 10, 30, 100)]
    + [("10% failed", 1, runs) for runs in (10, 30, 100)]
    + [("t, 5 df", 3, runs) for runs in (10, 30, 100)]
    + [("normal", 3, 1000)]
)
GROUPED = [(ratio, runs) for ratio in (0, 1, 3) for runs in (10, 30, 100)]
COMPARED = [
    (wobble, ratio, runs, paired)
    for paired in (False, True)
    for wobble in (0.3, 1.5)
    for ratio in (0, 1)
    for runs in (3, 10, 30)
]


SIZES = np.array([22, 231, 34, 2, 1, 8, 22, 10, 19, 32, 44, 75])
"""Questions in each passage of a benchmark, one of which holds nearly half of them."""
UNEQUAL = [(spread, runs) for spread in (0.0, 0.05, 0.1) for runs in (1, 5)]


def main() -> None:
    """Simulate what was asked for and print a table of each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="*", help="tables to make; all by default")
    parser.add_argument("--sets", type=int, default=1000, help="simulated data sets a row")
    asked = parser.parse_args()
    tables: dict[str, tuple[Callable[..., dict[str, object]], list[tuple[object, ...]]]] = {
        "decompose": (decompose, DECOMPOSED),
        "groups": (groups, GROUPED),
        "compare": (compare, COMPARED),
        "unequal": (unequal, UNEQUAL),
    }
    for name in asked.what or tables:
        simulate, rows = tables[name]
        with ProcessPoolExecutor(max_workers=os.cpu_count()) as pool:
            jobs = [pool.submit(simulate, *row, asked.sets) for row in rows]
            found = [job.result() for job in jobs]
        print(f"\n{simulate.__doc__}\n")
        print(format_table({k: [row[k] for row in found] for k in found[0]}, "markdown", 1))


def decompose(kind: str, ratio: float, runs: int, sets: int) -> dict[str, object]:
    """Coverage (%) of 95% intervals for the standard deviation of true error."""
    warnings.simplefilter("ignore", CurvewiseWarning)
    rng = np.random.default_rng([runs, int(10 * ratio), len(kind)])
    sigma = ratio * TAU
    truth = float(np.std(true_errors(np.random.default_rng(1), kind, 4_000_000, sigma)))
    hits = {"F": 0, "auto": 0, "robust": 0}
    mean = warned = 0
    for _ in range(sets):
        errors = draw(rng, true_errors(rng, kind, runs, sigma), difficulties(rng))
        v = cw.decompose_variance(errors, kind="errors", axes=("runs", "examples"), rng=rng, resamples=1000)
        f = cw.decompose_variance(errors, axes=("runs", "examples"), interval="F")
        hits["auto"] += truth in v.distribution_interval
        hits["F"] += truth in f.distribution_interval
        hits["robust"] += truth in v.robust_interval
        mean += mean_error(kind) in v.error
        warned += bool(v.warnings)
    covered = {k: 100 * h / sets for k, h in hits.items()}
    row = {"runs are": kind, "σ/τ": ratio, "R": runs, **covered}
    return {**row, "mean error": 100 * mean / sets, "warned": 100 * warned / sets}


def groups(ratio: float, runs: int, sets: int) -> dict[str, object]:
    """Coverage (%) for examples in groups of five that a run gets right or wrong together."""
    warnings.simplefilter("ignore", CurvewiseWarning)
    rng = np.random.default_rng([runs, int(10 * ratio), 77])
    members = np.repeat(np.arange(N // 5), 5)
    sigma = ratio * TAU
    hits = {"with groups": 0, "groups ignored": 0}
    above = {"with groups": 0, "groups ignored": 0}
    for _ in range(sets):
        true = ERROR + sigma * rng.standard_normal((runs, 1))
        lost = rng.random((runs, N // 5)) < true  # half of the cells take it from their group
        own = rng.random((runs, N)) < true
        errors = np.where(rng.random((runs, N)) < 0.5, lost[:, members], own)
        for name, given in (("with groups", members), ("groups ignored", None)):
            v = cw.decompose_variance(errors, groups=given, interval="F")
            hits[name] += sigma in v.distribution_interval
            above[name] += v.distribution_interval.low > 0
    row: dict[str, object] = {"σ/τ": ratio, "R": runs}
    row |= {k: 100 * h / sets for k, h in hits.items()}
    return row | {f"{k}: σ > 0 claimed": 100 * h / sets for k, h in above.items()}


def compare(wobble: float, ratio: float, runs: int, paired: bool, sets: int) -> dict[str, object]:
    """Coverage (%) for a difference of two trainings that find different examples hard."""
    warnings.simplefilter("ignore", CurvewiseWarning)
    rng = np.random.default_rng([runs, int(10 * ratio), int(10 * wobble), paired])
    sigma = ratio * TAU
    spread = math.hypot(DIFFICULTY[1], wobble)
    other = expit(DIFFICULTY[0] + spread * NODES + SHIFTS[:, None]) @ WEIGHTS
    hits = {"runs and examples": 0, "runs only": 0}
    for _ in range(sets):
        logits = difficulties(rng)
        effects = np.interp(true_errors(rng, "normal", runs, sigma), TRUE, SHIFTS)
        again = np.interp(true_errors(rng, "normal", runs, sigma), TRUE, SHIFTS)
        again = effects if paired else again
        a = rng.random((runs, N)) < expit(logits + effects[:, None])
        changed = logits + wobble * rng.standard_normal(N)
        b = rng.random((runs, N)) < expit(changed + again[:, None])
        truth = _mean_true(TRUE, sigma) - _mean_true(other, sigma)
        c = cw.compare_runs(a, b, kind="errors", paired=paired, permutations=19)
        hits["runs and examples"] += truth in c.difference
        hits["runs only"] += truth in c.test_set_difference
    row = {"paired": str(paired), "change": wobble, "σ/τ": ratio, "R": runs}
    return {**row, **{k: 100 * h / sets for k, h in hits.items()}}


def unequal(spread: float, runs: int, sets: int) -> dict[str, object]:
    """Coverage (%) for a difference of two trainings on 12 groups of very unequal size."""
    warnings.simplefilter("ignore", CurvewiseWarning)
    rng = np.random.default_rng([runs, int(100 * spread), 12])
    members = np.repeat(np.arange(len(SIZES)), SIZES)
    hits = {"with groups": 0, "groups ignored": 0}
    for _ in range(sets):
        hard = rng.uniform(0.3, 0.7, len(members))  # so that no group effect is cut off at 0 or 1
        effect = np.clip(rng.normal(0, spread, len(SIZES)), -0.3, 0.3)[members]
        a = rng.random((runs, len(members))) < hard
        b = rng.random((runs, len(members))) < hard + effect
        for name, given in (("with groups", members), ("groups ignored", None)):
            c = cw.compare_runs(a, b, kind="errors", groups=given, distribution_std=0.0, permutations=19)
            hits[name] += 0 in c.difference
    row: dict[str, object] = {"std between groups (%)": 100 * spread, "R": runs}
    return row | {k: 100 * h / sets for k, h in hits.items()}


def _mean_true(rates: np.ndarray, sigma: float) -> float:
    """Mean true error of a training whose runs have the effects of normal true errors."""
    effects = np.interp(np.clip(ERROR + sigma * NODES, 0.01, 0.95), TRUE, SHIFTS)
    return float(np.interp(effects, SHIFTS, rates) @ WEIGHTS)


def mean_error(kind: str) -> float:
    """Mean of the true error over runs."""
    return ERROR if kind != "10% failed" else 0.9 * ERROR + 0.05


def true_errors(rng: np.random.Generator, kind: str, runs: int, sigma: float) -> np.ndarray:
    """True errors of runs."""
    effect = rng.standard_t(5, runs) / math.sqrt(5 / 3) if kind == "t, 5 df" else rng.standard_normal(runs)
    errors = np.clip(ERROR + sigma * effect, 0.01, 0.95)
    if kind == "10% failed":
        errors = np.where(rng.random(runs) < 0.1, 0.5, errors)
    return errors


def difficulties(rng: np.random.Generator) -> np.ndarray:
    """Log odds of an error on each example."""
    return DIFFICULTY[0] + DIFFICULTY[1] * rng.standard_normal(N)


def draw(rng: np.random.Generator, true: np.ndarray, logits: np.ndarray) -> np.ndarray:
    """Errors of runs with given true errors."""
    effects = np.interp(true, TRUE, SHIFTS)
    chance = expit((logits + effects[:, None]).astype(np.float32))
    return rng.random(chance.shape, dtype=np.float32) < chance


if __name__ == "__main__":
    main()
