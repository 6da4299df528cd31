"""Coverage of confidence intervals, simulated from the four published learning curves.

    python benchmarks/learning_coverage.py [draws]

Normal noise from the fitted variance model, 16, 8, 4, 2, 1 runs at n = 25 … 400. Beside the
default interval stands the published band, which treats γ as known. A table on stderr, one JSON
line on stdout. Where the published measurements are absent, their printed parameters are used.
"""

from __future__ import annotations

import json
import sys

import numpy as np

from curvewise.learning.bootstrap import simulate
from curvewise.learning.power import fit_power
from curvewise.learning.profile import error_of, profile, reliance_of
from curvewise.learning.replicates import size_variance, slope_variance

N = np.array([25, 50, 100, 200, 400.0])
RUNS = np.array([16, 8, 4, 2, 1.0])
TRUTH = {  # α, η, γ of table 3, and σ̂² of the published measurements
    "no_pretr_linear": (78.51, 120.13, -0.84, 21.895),
    "no_pretr_ft": (5.68, 259.29, -0.41, 12.652),
    "pretr_linear": (24.40, 65.28, -0.35, 3.017),
    "pretr_ft": (12.48, 194.19, -0.57, 130.416),
}
QUANTITIES = ("e_400", "beta_400", "e_1600", "asymptote")


def main() -> None:
    """Simulate, print."""
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 4000
    coverage = {name: simulate_curve(truth, draws) for name, truth in TRUTH.items()}
    print(
        f"{'% covered, 95% nominal':28}" + "".join(f"{q:>12}" for q in QUANTITIES), file=sys.stderr
    )
    for name, both in coverage.items():
        for kind, row in both.items():
            cells = "".join(f"{row[q]:12.1f}" for q in QUANTITIES)
            print(f"{name + ', ' + kind:28}{cells}", file=sys.stderr)
    print(json.dumps({"benchmark": "learning coverage", "draws": draws, "percent": coverage}))


def simulate_curve(truth: tuple[float, ...], draws: int) -> dict[str, dict[str, float]]:
    """Share of draws, in percent, whose interval holds the truth."""
    alpha, eta, gamma, slope = truth
    rng = np.random.default_rng(0)
    mean, variance = simulate(rng, alpha + eta * N**gamma, 0.02 + slope / N, RUNS, draws)
    modelled = size_variance(N, slope_variance(N, RUNS, variance, 0.02)[:, None], 0.02)
    within = ((RUNS - 1) * variance / modelled).sum(axis=1)
    p = profile(N, mean, RUNS / modelled, within, np.full(draws, RUNS.sum() - 3))
    actual = {
        "e_400": alpha + eta * 400**gamma,
        "beta_400": -2 * eta * gamma * 400**gamma,
        "e_1600": alpha + eta * 1600**gamma,
        "asymptote": alpha,
    }
    linear = {
        "e_400": error_of(400),
        "beta_400": reliance_of(400),
        "e_1600": error_of(1600),
        "asymptote": error_of(np.inf),
    }
    ours = {q: p.interval(linear[q]) for q in QUANTITIES}
    theirs = published_band(mean, modelled)
    return {
        kind: {q: percent(band[q], actual[q]) for q in QUANTITIES}
        for kind, band in {"default": ours, "published": theirs}.items()
    }


def published_band(
    mean: np.ndarray, modelled: np.ndarray
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Eq. 3 of the paper about the paper's fit, for every draw."""
    weight = 1 / modelled
    fits = fit_power(N, mean, weight)
    x = N ** fits.gamma[:, None]
    design = np.stack([np.ones_like(x), x], axis=2)
    gram = np.linalg.inv(np.einsum("bsi,bsj,bs->bij", design, design, weight))
    m = np.einsum("bij,bsj,bs->bis", gram, design, weight)
    covariance = np.einsum("bis,bjs,bs->bij", m, m, modelled / RUNS)
    zero, one = np.zeros_like(fits.gamma), np.ones_like(fits.gamma)
    rows = {
        "e_400": np.stack([one, 400**fits.gamma], 1),
        "beta_400": np.stack([zero, -2 * fits.gamma * 400**fits.gamma], 1),
        "e_1600": np.stack([one, 1600**fits.gamma], 1),
        "asymptote": np.stack([one, zero], 1),
    }
    theta = np.stack([fits.alpha, fits.eta], 1)
    out = {}
    for name, c in rows.items():
        centre = (c * theta).sum(1)
        half = 1.96 * np.sqrt(np.einsum("bi,bij,bj->b", c, covariance, c))
        out[name] = (centre - half, centre + half)
    return out


def percent(interval: tuple[np.ndarray, np.ndarray], truth: float) -> float:
    """Coverage in percent."""
    low, high = interval
    return round(100 * float(np.mean((low <= truth) & (truth <= high))), 1)


if __name__ == "__main__":
    main()
