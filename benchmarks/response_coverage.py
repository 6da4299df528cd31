"""Coverage of 95% intervals of scores of a response curve, simulated with known truth.

    python benchmarks/response_coverage.py [draws]

An example has a normal hardness; mixed with a partner, that of both. It is answered rightly while
this and some noise stay below a threshold that falls with the magnitude, so that every accuracy is
a value of the normal distribution function. ``shared``: examples fail at every magnitude or none.
A table on stderr, one JSON line on stdout.
"""

from __future__ import annotations

import json
import sys

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

from curvewise.response.curve import ResponseCurve
from curvewise.response.networks.trial import draw_partners

GRID = np.linspace(0, 0.45, 6)
NOISE = 0.3 * (GRID > 0)
EXAMPLES = (25, 50, 200, 1000)
ACCURACIES = (0.6, 0.93, 0.998)
KINDS = ("single", "intra", "inter", "shared")
SCORES = ("gi", "gi_relative", "pal", "mean_accuracy")


def main() -> None:
    """Simulate, print."""
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 250
    head = "".join(f"{score:>16}" for score in (*SCORES, "accuracies"))
    print(f"{'% covered, 95% nominal':28}{head}", file=sys.stderr)
    percent = {}
    for kind in KINDS:
        for accuracy in ACCURACIES:
            for examples in EXAMPLES:
                row = simulate(kind, accuracy, examples, draws)
                name = f"{kind}, {accuracy:g}, {examples}"
                cells = "".join(f"{share:16.1f}" for share in row.values())
                print(f"{name:28}{cells}", file=sys.stderr)
                percent[name] = row
    print(json.dumps({"benchmark": "response coverage", "draws": draws, "percent": percent}))


def simulate(kind: str, accuracy: float, examples: int, draws: int) -> dict[str, float]:
    """Share of draws, in percent, whose intervals hold the truth."""
    level = brentq(lambda t: truth(kind, t).mean() - accuracy, -4, 9)
    actual = ResponseCurve(GRID, truth(kind, level), np.ones(len(GRID)))  # type: ignore[arg-type]
    held: dict[str, list[float]] = {name: [] for name in (*SCORES, "accuracies")}
    for i in range(draws):
        rng = np.random.default_rng([i, examples, round(1000 * accuracy)])
        curve = draw(kind, level, examples, rng)
        found = curve.scores()
        for score in SCORES:
            value = getattr(actual, score)
            slack = 1e-9 * (1 + abs(value))
            inside = found[score].low - slack <= value <= found[score].high + slack
            held[score].append(inside)
        low, high = curve.accuracy_interval()
        inside = (low <= actual.correct) & (actual.correct <= high)
        held["accuracies"].append(float(inside.mean()))
    return {name: round(100 * float(np.mean(shares)), 1) for name, shares in held.items()}


def truth(kind: str, level: float) -> np.ndarray:
    """Accuracy at each magnitude over all examples there are."""
    if kind == "shared":
        return np.full(len(GRID), ndtr(level))
    own = np.ones(len(GRID)) if kind == "single" else np.hypot(1 - GRID, GRID)
    return np.asarray(ndtr((level - GRID) / np.hypot(own, NOISE)))


def draw(kind: str, level: float, examples: int, rng: np.random.Generator) -> ResponseCurve:
    """A sample's answers."""
    hardness = np.tile(rng.standard_normal(examples), (len(GRID), 1))
    total, partners = np.full(len(GRID), examples), None
    if kind == "shared":
        hits = hardness < level
        return ResponseCurve(GRID, hits.sum(axis=1), total, hits=hits)
    grid = GRID[:, None]
    if kind != "single":
        labels = np.arange(examples) % 5
        partners = draw_partners(labels, kind, len(GRID), int(rng.integers(2**40)))
        hardness = (1 - grid) * hardness + grid * hardness[0][partners]
    hits = hardness + NOISE[:, None] * rng.standard_normal(hardness.shape) < level - grid
    return ResponseCurve(GRID, hits.sum(axis=1), total, hits=hits, partners=partners)


if __name__ == "__main__":
    main()
