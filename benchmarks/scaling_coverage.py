"""Coverage of the confidence intervals of scaling laws, where the noise is not what a model assumes.

    python benchmarks/scaling_coverage.py [sets] ["part of a cell's name" …]     # 1000 "35 isoFLOP runs, t3"

Designs: 240 runs spread over four decades of compute; 35 isoFLOP runs, seven sizes at each of five budgets; a ladder of
16 runs, four sizes by four multiples of tokens, narrow as OLMo's (190M to 1.3B) or wide (20M to 1B); 18 runs of 20
checkpoints each. Noise of log loss, with a standard deviation of 0.4% unless said: normal; Student's t with 3 degrees
of freedom; skewed (gamma); larger for small runs by up to 7; for checkpoints a common error of the run, errors that
carry over from one checkpoint to the next, and errors that grow along the run. The truth is the additive law with the
parameters published for Chinchilla. For each: how often 95% intervals of α, β, E, the exponent a, N* and the expected
loss at 100 times the largest compute hold the truth, by both losses.

A table on stderr, one JSON line on stdout.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import json
import sys
import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import CurvewiseWarning
from curvewise.scaling import ScalingRuns, fit_scaling_law

Array = NDArray[np.float64]
TRUTH = {"E": 1.8172, "A": 482.01, "B": 2085.43, "alpha": 0.3478, "beta": 0.3658}
NOISE = 0.004
QUANTITIES = ("alpha", "beta", "E", "exponent", "params", "loss")


def spread_out(rng: np.random.Generator) -> tuple[Array, Array]:
    """240 runs from 1e18 to 1e22 FLOP, up to six times off the optimum on either side."""
    c, off = 10 ** rng.uniform(18, 22, 240), 10 ** rng.uniform(-0.8, 0.8, 240)
    n = np.sqrt(c / 120) * off
    return n, c / 6 / n


def isoflops(rng: np.random.Generator) -> tuple[Array, Array]:
    """Seven sizes at each of five budgets."""
    c, off = np.repeat(np.geomspace(1e18, 1e21, 5), 7), np.tile(np.geomspace(0.2, 5, 7), 5)
    n = np.sqrt(c / 120) * off
    return n, c / 6 / n


def narrow_ladder(rng: np.random.Generator) -> tuple[Array, Array]:
    """Sizes and multiples of OLMo's ladder."""
    n = np.repeat([1.9e8, 3.7e8, 7.6e8, 1.28e9], 4)
    return n, 20 * n * np.tile([1.0, 2, 5, 10], 4)


def wide_ladder(rng: np.random.Generator) -> tuple[Array, Array]:
    """A ladder that spans more."""
    n = np.repeat(np.geomspace(2e7, 1e9, 4), 4)
    return n, 20 * n * np.tile([0.5, 2, 8, 32], 4)


def checkpoints(rng: np.random.Generator) -> tuple[Array, Array]:
    """18 runs, six sizes by three lengths, with 20 checkpoints each."""
    n, multiple = (v.ravel() for v in np.meshgrid(np.geomspace(5e7, 3e9, 6), [10.0, 40, 160], indexing="ij"))
    share = np.linspace(0.05, 1, 20)
    return np.repeat(n, 20), np.concatenate([k * share for k in n * multiple])


def by_run(draw: Callable[[np.random.Generator], Array]) -> Callable[[Array, np.random.Generator], Array]:
    """Noise of 20 checkpoints at a time."""
    return lambda c, rng: np.concatenate([draw(rng) for _ in range(len(c) // 20)])


def carried(rng: np.random.Generator) -> Array:
    """Errors of which nine tenths carry over to the next checkpoint."""
    z = rng.standard_normal(20)
    for i in range(1, 20):
        z[i] = 0.9 * z[i - 1] + np.sqrt(1 - 0.81) * z[i]
    return NOISE * z


def falling(c: Array, rng: np.random.Generator) -> Array:
    """Noise that is up to seven times as large for the smallest runs."""
    size = 7.0 ** (1 - (np.log(c) - np.log(c).min()) / np.ptp(np.log(c)))
    return NOISE * size / np.sqrt((size**2).mean()) * rng.standard_normal(len(c))


PLAIN = {
    "normal": lambda c, rng: NOISE * rng.standard_normal(len(c)),
    "t3": lambda c, rng: NOISE * rng.standard_t(3, len(c)) / np.sqrt(3),
    "skewed": lambda c, rng: NOISE * (rng.gamma(1.5, 1, len(c)) - 1.5) / np.sqrt(1.5),
    "falling": falling,
    "normal, 1.2%": lambda c, rng: 3 * NOISE * rng.standard_normal(len(c)),
}
RUNS = {
    "run": by_run(lambda rng: NOISE * rng.standard_normal() + 0.5 * NOISE * rng.standard_normal(20)),
    "run, t3": by_run(lambda rng: NOISE * rng.standard_t(3) / np.sqrt(3) + 0.5 * NOISE * rng.standard_normal(20)),
    "carried over": by_run(carried),
    "growing": by_run(
        lambda rng: NOISE * rng.standard_normal() * np.linspace(0, 2, 20) + 0.25 * NOISE * rng.standard_normal(20)
    ),
}
DESIGNS = {
    "240 runs": (spread_out, {k: PLAIN[k] for k in ("normal", "t3", "falling")}, False),
    "35 isoFLOP runs": (isoflops, PLAIN, False),
    "narrow ladder of 16": (narrow_ladder, PLAIN, False),
    "wide ladder of 16": (wide_ladder, PLAIN, False),
    "18 runs x 20 checkpoints": (checkpoints, RUNS, True),
}


def main() -> None:
    """Simulate every cell, print."""
    warnings.simplefilter("ignore", CurvewiseWarning)
    sets = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    cells: dict[str, dict[str, float]] = {}
    print(f"{'':52}" + "".join(f"{q:>10}" for q in QUANTITIES), file=sys.stderr)
    for design, (place, noises, grouped) in DESIGNS.items():
        for noise, draw in noises.items():
            for loss in ("squares", "huber"):
                name = f"{design}, {noise}, {loss}"
                if sys.argv[2:] and not any(word in name for word in sys.argv[2:]):
                    continue
                held = np.mean([covered(place, draw, grouped, loss, seed) for seed in range(sets)], axis=0)
                cells[name] = {q: round(100 * float(h), 1) for q, h in zip(QUANTITIES, held, strict=True)}
                print(f"{name:52}" + "".join(f"{100 * h:10.1f}" for h in held), file=sys.stderr, flush=True)
    print(json.dumps({"benchmark": "coverage of scaling laws", "sets": sets, "nominal": 95, "coverage": cells}))


def covered(
    place: Callable[[np.random.Generator], tuple[Array, Array]],
    draw: Callable[[Array, np.random.Generator], Array],
    grouped: bool,
    loss: str,
    seed: int,
) -> list[bool]:
    """Return whether each interval of one simulated set holds the truth."""
    rng = np.random.default_rng([seed, 2022])
    n, d = place(rng)
    value = law_of(n, d) * np.exp(draw(n * d, rng))
    run = np.repeat(np.arange(len(n) // 20), 20).astype(str) if grouped else None
    law = fit_scaling_law(ScalingRuns(n, d, value, run=run, unit="loss"), loss=loss)
    budget = 100 * float((6 * n * d).max())
    best = law.compute_optimal(budget)
    # What law.interval gives, in one search instead of four.
    found = [*law._intervals(("alpha", "beta", "E", "exponent"), 0.95).values(), best.params, best.loss]
    alpha, beta = TRUTH["alpha"], TRUTH["beta"]
    a = beta / (alpha + beta)
    size = (alpha * TRUTH["A"] / (beta * TRUTH["B"])) ** (1 / (alpha + beta)) * (budget / 6) ** a
    truth = [alpha, beta, TRUTH["E"], a, size, float(law_of(size, budget / 6 / size))]
    return [t in i for t, i in zip(truth, found, strict=True)]


def law_of(n: Array | float, d: Array | float) -> Array:
    """Loss of the true law."""
    return np.asarray(TRUTH["E"] + TRUTH["A"] / n ** TRUTH["alpha"] + TRUTH["B"] / d ** TRUTH["beta"])


if __name__ == "__main__":
    main()
