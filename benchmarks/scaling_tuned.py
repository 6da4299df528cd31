"""Coverage of the expected best of k trials and of the budget at which two learners cross.

    python benchmarks/scaling_tuned.py [sets] ["part of a name of scores" …]     # 1000 "heavy tail of good ones"

Scores are drawn from distributions whose expected best is known: normal, uniform, skewed to either side, bounded, with
a share of failed trials, rounded to two digits, with a heavy tail of good scores; and, where the data is there
(``CURVEWISE_DATA``), smoothed scores of two real searches (MLP and LSTM of hedwig). For searches of 20, 50 and 150
trials: how often the 95% interval of the expected best of k = 1, 5, 20, n/2 and n trials holds it, beside the usual
percentile band of resampled scores. For pairs that cross: how often the interval of the crossing holds it.

A table on stderr, one JSON line on stdout.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import csv
import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import CurvewiseWarning
from curvewise.scaling import compare_tuned, expected_best

Array = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], Array]
DATA = Path(os.environ.get("CURVEWISE_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
RESAMPLES = 400

PLAIN: dict[str, Draw] = {
    "normal": lambda r, n: r.standard_normal(n),
    "uniform": lambda r, n: r.random(n),
    "many good, beta(5, 1)": lambda r, n: r.beta(5, 1, n),
    "few good, beta(1, 3)": lambda r, n: r.beta(1, 3, n),
    "heavy tail of bad ones": lambda r, n: -np.exp(r.standard_normal(n)),
    "30% failed": lambda r, n: np.where(r.random(n) < 0.3, 0.1, r.beta(8, 3, n)),
    "two digits": lambda r, n: np.round(r.beta(6, 2, n), 2),
    "exponential tail of good ones": lambda r, n: r.standard_exponential(n),
    "heavy tail of good ones": lambda r, n: np.exp(r.standard_normal(n)),
}


def smoothed(scores: Array) -> Draw:
    """Draw real scores with a little normal noise, reflected at 0 and 1."""
    width = 0.3 * scores.std() * len(scores) ** -0.2

    def draw(r: np.random.Generator, n: int) -> Array:
        x = np.abs(r.choice(scores, n) + width * r.standard_normal(n))
        return np.where(x > 1, 2 - x, x)

    return draw


def real_searches() -> dict[str, Draw]:
    """Searches of hedwig, where the data is there."""
    path = DATA / "scaling" / "evp" / "hedwig.tsv"
    if not path.is_file():
        return {}
    with path.open() as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    return {
        f"hedwig {label}": smoothed(np.array([float(r["f1"]) for r in rows if r["model_name"] == model]))
        for label, model in (("MLP", "mlp"), ("LSTM", "reg_lstm"))
    }


def true_curve(draw: Draw, budgets: list[int]) -> Array:
    """Expected best of k, by the quantiles of a million draws."""
    x = np.sort(draw(np.random.default_rng(2**20), 1_000_000))
    u = np.arange(len(x) + 1) / len(x)
    return np.array([np.diff(u**k) @ x for k in budgets])


def percentile_band(x: Array, budgets: list[int], r: np.random.Generator) -> tuple[Array, Array]:
    """Return limits from the expected best of resampled scores, as they are usually made."""
    n = len(x)
    drawn = np.sort(r.choice(x, (RESAMPLES, n)), axis=1)
    u = np.arange(n + 1) / n
    curves = np.stack([drawn @ np.diff(u**k) for k in budgets], axis=1)
    low, high = np.quantile(curves, [0.025, 0.975], axis=0)
    return low, high


def best_coverage(sets: int, searches: dict[str, Draw]) -> dict[str, dict[str, list[float]]]:
    """Cover the expected best."""
    cells = {}
    for n in (20, 50, 150):
        budgets = sorted({1, 5, 20, n // 2, n})
        print(f"{n} trials, k = {budgets}", file=sys.stderr)
        for label, draw in searches.items():
            truth, r = true_curve(draw, budgets), np.random.default_rng([n, 7])
            ours, usual = np.zeros(len(budgets)), np.zeros(len(budgets))
            for _ in range(sets):
                x = draw(r, n)
                found = expected_best(x, budgets)
                ours += (found.low <= truth) & (truth <= found.high)
                low, high = percentile_band(x, budgets, r)
                usual += (low <= truth) & (truth <= high)
            name = f"{n} trials, {label}"
            cells[name] = {
                "intervals": [round(100 * float(v) / sets, 1) for v in ours],
                "percentile band": [round(100 * float(v) / sets, 1) for v in usual],
            }
            said = "  ".join(f"{k}: {' '.join(f'{v:5.1f}' for v in row)}" for k, row in cells[name].items())
            print(f"{name:40} {said}", file=sys.stderr, flush=True)
    return cells


def crossing_coverage(sets: int, searches: dict[str, Draw]) -> dict[str, float]:
    """Cover the first budget at which the learner that trails leads."""
    pairs: dict[str, tuple[Draw, Draw]] = {
        "steady against uniform": (lambda r, n: 0.9 + 0.02 * r.standard_normal(n), lambda r, n: r.random(n)),
        "normal, spreads 1 and 3": (lambda r, n: 2.5 + r.standard_normal(n), lambda r, n: 3 * r.standard_normal(n)),
        "beta(30, 10) and (2, 2)": (lambda r, n: r.beta(30, 10, n), lambda r, n: r.beta(2, 2, n)),
        "20% and 60% failed": (
            lambda r, n: np.where(r.random(n) < 0.2, 0.2, 0.8 + 0.03 * r.standard_normal(n)),
            lambda r, n: np.where(r.random(n) < 0.6, 0.2 + 0.1 * r.random(n), 0.8 + 0.05 * r.standard_normal(n)),
        ),
    }
    if "hedwig MLP" in searches:
        pairs["hedwig MLP against LSTM"] = (searches["hedwig MLP"], searches["hedwig LSTM"])
    cells = {}
    for label, (a, b) in pairs.items():
        for n in (60, 150):
            every = list(range(1, n + 1))
            ahead = true_curve(b, every) > true_curve(a, every)
            truth = int(np.argmax(ahead)) + 1 if ahead.any() else np.inf
            r = np.random.default_rng([n, 11])
            held = sum(truth in compare_tuned(a(r, n), b(r, n), budget=1).crossing for _ in range(sets))
            cells[f"{label}, {n} trials, k = {truth}"] = round(100 * held / sets, 1)
            print(f"crossing, {label}, {n} trials, k = {truth}: {100 * held / sets:.1f}", file=sys.stderr, flush=True)
    return cells


def main() -> None:
    """Simulate, print."""
    warnings.simplefilter("ignore", CurvewiseWarning)
    sets = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    searches = PLAIN | real_searches()
    wanted = {k: v for k, v in searches.items() if not sys.argv[2:] or any(word in k for word in sys.argv[2:])}
    crossings = {} if sys.argv[2:] else crossing_coverage(sets, searches)
    best = best_coverage(sets, wanted)
    print(
        json.dumps(
            {"benchmark": "coverage of tuned scores", "sets": sets, "nominal": 95, "best": best, "crossings": crossings}
        )
    )


if __name__ == "__main__":
    main()
