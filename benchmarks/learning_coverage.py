"""Coverage of confidence intervals of learning curves, where the noise is not what a model assumes.

    python benchmarks/learning_coverage.py [draws]

Curves are those of table 3 of Hoiem et al. 2021. Designs: 4, 5 and 8 sizes with 2, 3 and 5 runs
each, and 16, 8, 4, 2, 1 runs at five sizes. Noise of a run: the paper's σ0² + σ²/n; constant;
falling as n^−0.4; binomial on 1,000 test items; and skewed (gamma, skewness 1.6), constant or as
the paper's. Per cell, all four curves together:

- coverage of 95% intervals of e_N, β_N and e_4N, by default and with the paper's variance model,
  and the median width of the first over that of the second;
- how often two equal learners are found to differ at N (nominal 5%);
- the chance that the learner ranked first of four is said to have of being best, and how often it
  is; true errors at N differ by a standard deviation of two standard errors of a mean at N.

Then what LCDB 1.0 says about noise: the slope of log variance on log n, over the last factor of
eight and over whole curves. And single new runs: from runs drawn at five sizes of each curve of
LCDB 1.0, the 95% prediction interval of one run at the largest size, by horizon.
A table on stderr, one JSON line on stdout.
"""

from __future__ import annotations

import json
import os
import sys

os.environ.setdefault("OMP_NUM_THREADS", "1")
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from curvewise.learning.curve import Curve
from curvewise.learning.fit import build_curve
from curvewise.learning.power import GroupedRuns, group_runs, size_variance, slope_variance
from curvewise.learning.profile import Coefficients, NoiseAverage, Profile, average_noise, error_of, reliance_of
from curvewise.stats import difference_interval, probability_lowest
from curvewise.types import Unit

Array = NDArray[np.float64]

TRUTH = {  # α, η, γ of table 3, and σ̂² of the published measurements
    "no_pretr_linear": (78.51, 120.13, -0.84, 21.895),
    "no_pretr_ft": (5.68, 259.29, -0.41, 12.652),
    "pretr_linear": (24.40, 65.28, -0.35, 3.017),
    "pretr_ft": (12.48, 194.19, -0.57, 130.416),
}
DESIGNS: dict[str, tuple[Array, Array]] = {
    f"{s} x {f}": (400 / 2.0 ** np.arange(s)[::-1] if s < 8 else 25 * 2.0 ** np.arange(8), np.full(s, float(f)))
    for s in (4, 5, 8)
    for f in (2, 3, 5)
}
DESIGNS["16 8 4 2 1"] = (25 * 2.0 ** np.arange(5), np.array([16, 8, 4, 2, 1.0]))
NOISES = ("as modelled", "constant", "n^-0.4", "binomial", "skewed", "skewed, as modelled")
LEVELS = (0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 0.98, 0.99, 0.998)
LEARNERS = 4


def main() -> None:
    """Simulate every cell, print."""
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    cells: dict[str, dict[str, Any]] = {}
    head = "e_N  β_N  e_4N | paper's: e_N  β_N  e_4N | width | equal learners differ | said, right"
    print(f"{'':32}{head}", file=sys.stderr)
    for design, (n, runs) in DESIGNS.items():
        for noise in NOISES:
            cell = simulate_cell(n, runs, noise, draws)
            cells[f"{design}, {noise}"] = cell
            print(f"{design + ', ' + noise:32}" + as_text(cell), file=sys.stderr, flush=True)
    print(json.dumps({
        "benchmark": "learning coverage",
        "draws_per_cell": draws * len(TRUTH),
        "cells": cells,
        "lcdb_slopes": lcdb_slopes(),
        "lcdb_single_runs": lcdb_single_runs(),
    }))  # fmt: skip


def as_text(cell: dict[str, Any]) -> str:
    """One line of the table."""
    ours, paper = cell["percent"], cell["percent with the paper's noise"]
    parts = [
        "".join(f"{ours[q]:6.1f}" for q in ours),
        "".join(f"{paper[q]:6.1f}" for q in paper),
        f"{cell['width']:.2f}",
        f"{cell['type I percent']:.1f}",
        f"{cell['best: said']:.0f}, {cell['best: right']:.0f}",
    ]
    return " | ".join(parts)


def simulate_cell(n: Array, runs: Array, noise: str, draws: int) -> dict[str, Any]:
    """Coverage, width, type I error and stated chances of one design under one noise."""
    rows = [simulate_curve(n, runs, noise, truth, draws, i) for i, truth in enumerate(TRUTH.values())]

    def mean(*keys: str) -> float:
        values = rows
        for key in keys:
            values = [v[key] for v in values]
        return round(float(np.mean(values)), 2)

    return {
        key: {q: mean(key, q) for q in rows[0][key]} if isinstance(rows[0][key], dict) else mean(key) for key in rows[0]
    }


def simulate_curve(
    n: Array, runs: Array, noise: str, truth: tuple[float, ...], draws: int, seed: int
) -> dict[str, Any]:
    """The same for one of the four curves."""
    alpha, eta, gamma, _ = truth
    rng = np.random.default_rng(seed)
    mean, variance, sd = draw_runs(rng, n, runs, noise, truth, draws)
    modelled = size_variance(n, slope_variance(n, runs, variance, 0.02)[:, None], 0.02)
    freedom = np.broadcast_to(runs - 1.0, variance.shape)
    both = average_noise(n, runs, mean, freedom, variance, modelled)
    assert isinstance(both, NoiseAverage)
    last = float(n[-1])
    truths = {
        "e_N": (error_of(last), alpha + eta * last**gamma),
        "beta_N": (reliance_of(last), -2 * eta * gamma * last**gamma),
        "e_4N": (error_of(4 * last), alpha + eta * (4 * last) ** gamma),
    }
    width = [np.median(np.subtract(*p.interval(error_of(last))[::-1])) for p in (both, both.paper)]
    return {
        "percent": {q: coverage(both, *t) for q, t in truths.items()},
        "percent with the paper's noise": {q: coverage(both.paper, *t) for q, t in truths.items()},
        "width": float(width[0] / width[1]),
        "type I percent": false_differences(both, error_of(last)),
        **stated_chances(rng, both, error_of(last), 2.0 * sd[-1] / np.sqrt(runs[-1])),
    }


def draw_runs(
    rng: np.random.Generator, n: Array, runs: Array, noise: str, truth: tuple[float, ...], draws: int
) -> tuple[Array, Array, Array]:
    """Means and variances at each size, shape (draws, S), and the true sd of a run, shape (S,)."""
    alpha, eta, gamma, slope = truth
    error = alpha + eta * n**gamma
    middle = 0.02 + slope / 100
    share = np.clip(error / 100, 0.0, 1.0)
    sd = np.sqrt({
        "as modelled": 0.02 + slope / n,
        "constant": np.full(len(n), middle),
        "n^-0.4": middle * (n / 100) ** -0.4,
        "binomial": 1e4 * share * (1 - share) / 1000,
        "skewed": np.full(len(n), middle),
        "skewed, as modelled": 0.02 + slope / n,
    }[noise])  # fmt: skip
    mean, variance = np.empty((2, draws, len(n)))
    for i, count in enumerate(runs.astype(int)):
        if noise == "binomial":
            values = rng.binomial(1000, share[i], (draws, count)) / 10.0
        elif noise.startswith("skewed"):
            values = error[i] + sd[i] * (rng.standard_gamma(1.5, (draws, count)) - 1.5) / 1.5**0.5
        else:
            values = error[i] + sd[i] * rng.standard_normal((draws, count))
        mean[:, i] = values.mean(axis=1)
        variance[:, i] = values.var(axis=1, ddof=1) if count > 1 else 0.0
    return mean, variance, sd


def coverage(p: Profile | NoiseAverage, quantity: Coefficients, truth: float) -> float:
    """Percent of the draws whose 95% interval holds the truth."""
    low, high = p.interval(quantity)
    return 100 * float(np.mean((low <= truth) & (truth <= high)))


def false_differences(p: NoiseAverage, quantity: Coefficients) -> float:
    """Percent of pairs of equal learners that differ significantly, as compared by default."""
    low, high = p.interval(quantity)
    centre = np.clip(p.estimate(quantity), low, high)
    a, b = slice(0, None, 2), slice(1, None, 2)
    ends = difference_interval(centre[a], (low[a], high[a]), centre[b], (low[b], high[b]))
    return 100 * float(np.mean((ends[0] > 0) | (ends[1] < 0)))


def stated_chances(
    rng: np.random.Generator, p: NoiseAverage, quantity: Coefficients, spread: float
) -> dict[str, float]:
    """Mean chance of being best that the favourite of four learners has, and how often it is."""
    ends = [p.interval(quantity, level) for level in LEVELS]
    rows = [*(e[0] for e in reversed(ends)), p.estimate(quantity), *(e[1] for e in ends)]
    quantiles = np.maximum.accumulate(np.array(rows), axis=0).T
    at = np.array([0.5 - v / 2 for v in reversed(LEVELS)] + [0.5] + [0.5 + v / 2 for v in LEVELS])
    tables = len(quantiles) // LEARNERS
    offsets = spread * rng.standard_normal((tables, LEARNERS))
    said, right = [], []
    for i, offset in enumerate(offsets):
        rows_of = quantiles[i * LEARNERS : (i + 1) * LEARNERS] + offset[:, None]
        chance = probability_lowest(rows_of, at)
        said.append(float(chance.max()))
        right.append(bool(chance.argmax() == offset.argmin()))
    return {"best: said": 100 * float(np.mean(said)), "best: right": 100 * float(np.mean(right))}


def read_lcdb() -> pd.DataFrame | None:
    """Sizes with five replicates or more, or None where the file is not there."""
    root = os.environ.get("CURVEWISE_DATA", Path(__file__).resolve().parents[2] / "shared" / "data")
    path = Path(root) / "learning_curves" / "lcdb10_error_mean_var.csv.gz"
    if not path.exists():
        print(f"no LCDB: {path} is not there; set CURVEWISE_DATA", file=sys.stderr)
        return None
    frame = pd.read_csv(path).sort_values(["openmlid", "learner", "size_train"])
    return frame[(frame["n_rep"] >= 5) & frame["err_valid_var"].notna()]


def lcdb_slopes() -> dict[str, float]:
    """Slopes of log variance on log n in LCDB 1.0, of curves with five such sizes or more."""
    frame = read_lcdb()
    if frame is None:
        return {}
    rows = []
    for (dataset, _), curve in frame[frame["err_valid_var"] > 0].groupby(["openmlid", "learner"]):
        x, y = np.log(curve["size_train"].to_numpy(float)), np.log(curve["err_valid_var"])
        late = x >= x.max() - np.log(8.1)
        if len(x) >= 5 and late.sum() >= 3:
            rows.append((dataset, np.polyfit(x, y, 1)[0], np.polyfit(x[late], y[late], 1)[0]))
    slopes = pd.DataFrame(rows, columns=["dataset", "whole", "last"])
    low, middle, high = slopes["last"].quantile([0.025, 0.5, 0.975])
    by = slopes.groupby("dataset")["whole"]
    found = {
        "curves": len(slopes),
        "whole curves, median": float(slopes["whole"].median()),
        "last factor of 8, median": float(middle),
        "last factor of 8, 2.5%": float(low),
        "last factor of 8, 97.5%": float(high),
        "sd between learners of a dataset": float(np.sqrt(by.var().mean())),
        "sd between datasets": float(by.mean().std()),
    }
    print(f"LCDB, slope of log variance: {found}", file=sys.stderr)
    return {k: round(v, 3) for k, v in found.items()}


def lcdb_single_runs() -> dict[str, dict[str, float]]:
    """Percent of single runs inside their 95% prediction interval, on curves of LCDB 1.0.

    The file has means and variances and no single runs: these are drawn, normal and skewed. Five
    sizes, 3 runs each, the largest a half, a quarter or a sixteenth of the size predicted.
    """
    frame = read_lcdb()
    if frame is None:
        return {}
    rng = np.random.default_rng(0)
    kinds: dict[str, Callable[[tuple[int, ...]], Array]] = {
        "normal": rng.standard_normal,
        "skewed": lambda shape: (rng.standard_gamma(1.5, shape) - 1.5) / 1.5**0.5,
    }
    hits: dict[str, dict[str, list[float]]] = {
        form: {f"{k}, {h}x": [] for k in kinds for h in (2, 4, 16)} for form in ("power", "auto")
    }
    for position, (_, rows) in enumerate(frame.groupby(["openmlid", "learner"])):
        n, mean, variance = (rows[c].to_numpy(np.float64) for c in ("size_train", "err_valid_mean", "err_valid_var"))
        if len(n) < 11 or position % 4:  # every fourth curve, for time
            continue
        for horizon in (2, 4, 16):
            seen = np.flatnonzero(n <= n[-1] / horizon)[::-2][:5][::-1]
            if len(seen) < 5:
                continue
            for kind, noise in kinds.items():
                runs = mean[seen, None] + np.sqrt(variance[seen, None]) * noise((5, 3))
                new = np.clip(mean[-1] + np.sqrt(variance[-1]) * noise((50,)), 0.0, 1.0)
                data = group_runs(np.repeat(n[seen], 3), np.clip(runs, 0.0, 1.0).ravel())
                for form, found in hits.items():
                    found[f"{kind}, {horizon}x"].append(inside(data, form, n[-1], new))
    table = {
        form: {cell: round(100 * float(np.mean(v)), 1) for cell, v in cells.items()} for form, cells in hits.items()
    }
    print(f"LCDB, one new run, % inside: {table}", file=sys.stderr)
    return table


def inside(data: GroupedRuns, form: str, n: float, new: Array) -> float:
    """Share of new runs inside the prediction interval of one run."""
    curve: Curve = build_curve(data, Unit("fraction"), form=form)
    band = curve.band([n], "prediction", runs=1)
    return float(np.mean((band["low"] <= new + 1e-12) & (new <= band["high"] + 1e-12)))


if __name__ == "__main__":
    main()
