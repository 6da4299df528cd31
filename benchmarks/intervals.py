"""Check on LCDB 1.0 that the calibrated prediction intervals cover, and print their constants.

Usage: ``python benchmarks/intervals.py`` for a table on stderr and one JSON line on stdout;
``--regenerate`` prints the constants of ``curvewise.learning.calibration``, fitted to the datasets
of even id, as Python source. The data are found through ``CURVEWISE_DATA`` (default
``../shared/data``).

Curves have at least 10 anchors, the largest of 500 or more. They are fitted on anchors up to
n_max / h (at least 3); the target is the mean validation error at n_max. To these come, from each
curve, one anchor left out (horizon 0), four short designs of 1 to 7 sizes cut as in
``extrapolation.py`` and the first sizes up to a random one. Seeded splits by dataset: constants
are fitted to one half and tested on the other. Features and the form of the scale were chosen by
cross-validation inside the datasets of even id.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from extrapolation import HORIZONS, short_designs
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

from curvewise.learning.calibration import (
    EPSILON,
    FEATURES,
    LEVELS,
    IntervalSide,
    describe,
    log_distance,
    log_ratio,
    prediction_interval,
)
from curvewise.learning.extrapolation import fit_ensemble, fit_member
from curvewise.learning.power import GroupedRuns, fit_means, group_runs
from curvewise.types import FloatArray

CALIBRATED = (0.0, 1.4, 2.0, 4.0, 8.0, 16.0, 64.0)
TESTED = (2.0, 4.0)
SHORT = (1, 2, 3, 4, 5, 6, 7)
SHORT_PER_CURVE = 4
SHORT_DESIGN, PREFIX = -1.0, -2.0
SPLITS = 20
LAWS = ("auto", "power", "constrained", "last")
BOUNDS = (0.0, 100.0)
BARS = {2.0: {"width": 4.0, "score": 11.0}, 4.0: {"width": 9.0, "score": 23.0}}
Cases = dict[str, Any]
Table = tuple[IntervalSide, IntervalSide]


def main() -> None:
    """Forecast every curve at every horizon, then split, calibrate and test."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--regenerate", action="store_true", help="print the constants and stop")
    options = parser.parse_args()
    start = time.process_time()
    curves = list(read_lcdb(find_data() / "lcdb10_error_mean_var.csv.gz"))
    if options.regenerate:
        curves = [curve for curve in curves if curve[0] % 2 == 0]
    cases = forecast_all(curves)
    if options.regenerate:
        print(as_source(calibrate_on(cases, cases["g"] % 2 == 0)))
        return
    rows = [row for seed in range(SPLITS) for row in run_split(cases, seed)]
    result = summarise(pd.DataFrame(rows), cases)
    result["cpu_seconds"] = round(time.process_time() - start, 1)
    print_table(result)
    print(json.dumps({"benchmark": "intervals", "bars": BARS, **result}))


def find_data() -> Path:
    """Return the folder of learning curves, or exit with a message."""
    default = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("CURVEWISE_DATA", default)) / "learning_curves"
    if not folder.is_dir():
        sys.exit(f"no data: {folder} is not a folder; set CURVEWISE_DATA")
    return folder


def read_lcdb(path: Path) -> Iterator[tuple[int, str, GroupedRuns]]:
    """Yield dataset, learner and the whole curve in percent points."""
    frame = pd.read_csv(path).sort_values(["openmlid", "learner", "size_train"])
    for (dataset, learner), rows in frame.groupby(["openmlid", "learner"]):
        if len(rows) >= 10 and rows["size_train"].iloc[-1] >= 500:
            mean, variance = 100.0 * rows["err_valid_mean"], 1e4 * rows["err_valid_var"]
            curve = group_runs(rows["size_train"], mean, rows["n_rep"], variance)
            yield int(str(dataset)), str(learner), curve


def forecast_all(curves: list[tuple[int, str, GroupedRuns]]) -> Cases:
    """Return arrays over forecasts: what was known, what was predicted, what came true."""
    rng = np.random.default_rng(0)
    rows: list[Cases] = []
    for dataset, learner, curve in curves:
        left_out = int(rng.integers(1, len(curve.n) - 1))
        for horizon in CALIBRATED:
            if horizon == 0:
                at, seen = left_out, np.arange(len(curve.n)) != left_out
            else:
                at, seen = -1, curve.n <= curve.n[-1] / horizon
            if seen.sum() >= 3:
                known = {"g": dataset, "learner": learner, "h": horizon, "y": curve.mean[at]}
                rows += forecast(curve.only(seen), curve.n[[at]], {**known, "sizes": 0})
        rows += forecast_prefix(dataset, learner, curve, rng)
        sizes = tuple(rng.choice(SHORT, SHORT_PER_CURVE, replace=False).tolist())
        for design in short_designs([(dataset, curve)], sizes, seed=int(rng.integers(2**32))):
            known = {"g": dataset, "learner": learner, "h": SHORT_DESIGN, "y": design.mean}
            rows += forecast(design.seen, design.n, {**known, "sizes": len(design.seen.n)})
    return {key: np.array([row[key] for row in rows]) for key in rows[0]}


def forecast_prefix(dataset: int, learner: str, curve: GroupedRuns, rng: np.random.Generator) -> list[Cases]:
    """Forecast from the first sizes up to a random one: many of these have not left chance yet."""
    end = int(rng.integers(3, len(curve.n)))
    later = np.isin(np.round(np.log2(curve.n / curve.n[end - 1]), 1), np.log2(HORIZONS))
    if not later.any():
        return []
    known = {"g": dataset, "learner": learner, "h": PREFIX, "sizes": 0, "y": curve.mean[later]}
    return forecast(curve.only(slice(end)), curve.n[later], known)


def forecast(data: GroupedRuns, n: FloatArray, known: Cases) -> list[Cases]:
    """Return what is known with centres and features of each law at each of the sizes n (T,)."""
    stderr = data.standard_error() if data.replicated else None
    ensemble = fit_ensemble(data.n, data.mean, stderr, floor=BOUNDS[0], ceiling=BOUNDS[1])
    member = fit_member("constrained", data.n, data.mean, stderr, BOUNDS[0], BOUNDS[1])
    power = fit_means(data.n, data.runs, data.mean[None], data.variance[None])
    centres = {
        "auto": ensemble.predict(n),
        "power": power.alpha + power.eta * n**power.gamma,
        "constrained": member.predict(n),
        "last": np.full(n.shape, data.mean[-1]),
    }
    columns = {f"c_{law}": centre for law, centre in centres.items()}
    columns |= {"x": describe(data, ensemble, n), "reach": log_ratio(data.n, n)}
    columns["spread"] = ensemble.spread(n)
    columns["y"] = np.atleast_1d(known["y"])
    away = np.abs(data.mean - data.mean[0]).max()
    known = {**known, "plateau": bool(away <= 0.05 * data.mean[0])}
    return [{**known, **{key: c[i] for key, c in columns.items()}} for i in range(len(n))]


def calibrate_on(cases: Cases, rows: NDArray[np.bool_]) -> Table:
    """Fit the constants to some of the forecasts."""
    return calibrate(*(cases[key][rows] for key in ("x", "reach", "c_auto", "y", "g")))


def calibrate(
    x: FloatArray, reach: FloatArray, centre: FloatArray, target: FloatArray, groups: FloatArray, folds: int = 4
) -> Table:
    """Fit the constants to C forecasts whose outcome is known.

    Parameters
    ----------
    x : ndarray, shape (C, P)
        Features.
    reach, centre, target : ndarray, shape (C,)
        Log ratios, predicted errors and what came true, in points.
    groups : ndarray, shape (C,)
        Dataset of each forecast. Quantiles are taken of forecasts whose whole group was held out
        of the fit, because curves of one dataset resemble each other.
    folds : int
        Number of parts the groups are dealt into.
    """
    names, index = np.unique(groups, return_inverse=True)
    part = np.random.default_rng(0).permutation(len(names))[index] % folds
    sides = []
    for miss, room in ((centre - target, centre - BOUNDS[0]), (target - centre, BOUNDS[1] - centre)):
        room = np.maximum(room, 1e-3)  # beyond the ends of the scale an interval costs nothing
        size, growth = _fit_side(x, reach, miss, room)
        relative = np.empty_like(miss)
        for k in range(folds):
            rest, held = part != k, part == k
            fitted = IntervalSide(*_fit_side(x[rest], reach[rest], miss[rest], room[rest]), ())
            relative[held] = miss[held] / fitted.scale(x[held], reach[held])
        tails = np.quantile(relative, 0.5 + np.array(LEVELS) / 2.0)
        increasing = np.maximum.accumulate(np.maximum(tails, 1e-3))
        sides.append(IntervalSide(size, growth, tuple(increasing.tolist())))
    return sides[0], sides[1]


def _fit_side(
    x: FloatArray, reach: FloatArray, miss: FloatArray, room: FloatArray
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return a and b: smoothed pinball loss at 97.5%, a little ridge on all but the ones."""
    p, tau, ridge = x.shape[1], 0.975, 1e-3
    distance = log_distance(reach)
    # First guess of the size of the misses: least squares on their logarithm.
    design = np.column_stack([x, x * distance[:, None]])
    normal = design.T @ design + 1e-3 * len(miss) * np.eye(2 * p)
    pilot = np.exp(design @ np.linalg.solve(normal, design.T @ np.log(np.abs(miss) + EPSILON)))
    # Between errors in points (only wide curves would count) and relative ones (none more than
    # another): the first decides the mean interval score, the second the typical width.
    weight = pilot**-0.75 / np.mean(pilot**0.25)
    blur = 0.3 * pilot

    def loss(theta: FloatArray) -> tuple[float, FloatArray]:
        slope = x @ theta[p:]
        logs = x @ theta[:p] + np.logaddexp(0.0, slope) * distance
        free = np.exp(np.clip(logs, -9.0, 7.0))
        gap = (miss - np.minimum(free, room)) / blur
        value = weight * blur * (tau * gap + np.logaddexp(0.0, -gap))
        push = np.where(free < room, -weight * (tau - expit(-gap)) * free, 0.0)
        gradient = np.concatenate([x.T @ push, x.T @ (push * distance * expit(slope))]) / len(miss)
        penalised = np.where(np.arange(2 * p) % p == 0, 0.0, theta)
        total = float(value.mean() + ridge * penalised @ penalised)
        return total, gradient + 2.0 * ridge * penalised

    start = np.zeros(2 * p)
    start[0] = 1.0
    best = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 400}).x
    return tuple(best[:p].tolist()), tuple(best[p:].tolist())


def run_split(cases: Cases, seed: int) -> Iterator[Cases]:
    """Calibrate on half of the datasets; yield how each method does on the other half."""
    datasets = np.random.default_rng(seed).permutation(np.unique(cases["g"]))
    train = np.isin(cases["g"], datasets[: len(datasets) // 2])
    table = calibrate_on(cases, train)
    centre, x, reach = (cases[key][~train] for key in ("c_auto", "x", "reach"))
    for level in LEVELS:
        ends = [np.clip(end, *BOUNDS) for end in prediction_interval(centre, x, reach, table, level=level)]
        yield {"seed": seed, "law": "auto", "level": level, **judge(cases, ~train, *ends)}
        if level == 0.95:
            for law in LAWS[1:]:
                own = np.clip(cases[f"c_{law}"][~train], *BOUNDS)
                wide = np.minimum(ends[0], own), np.maximum(ends[1], own)
                yield {"seed": seed, "law": law, "level": level, **judge(cases, ~train, *wide)}
    for law, ends in naive(cases, train).items():
        yield {"seed": seed, "law": law, "level": 0.95, **judge(cases, ~train, *ends)}


def naive(cases: Cases, train: NDArray[np.bool_]) -> dict[str, tuple[FloatArray, FloatArray]]:
    """Return what simpler recipes give: two standard deviations, and one width per horizon."""
    centre, miss = cases["c_auto"], np.abs(cases["y"] - cases["c_auto"])
    width = np.empty_like(centre)
    for horizon in np.unique(cases["h"]):
        here = cases["h"] == horizon
        width[here] = np.quantile(miss[here & train], 0.95)
    halves = {"spread x 1.96": 1.96 * cases["spread"], "one width": width}
    return {
        name: (np.clip(centre - half, *BOUNDS)[~train], np.clip(centre + half, *BOUNDS)[~train])
        for name, half in halves.items()
    }


def judge(cases: Cases, test: NDArray[np.bool_], low: FloatArray, high: FloatArray) -> Cases:
    """Return coverage, median width and mean interval score per horizon, coverage per learner."""
    y, horizon, learner = (cases[key][test] for key in ("y", "h", "learner"))
    covered = (low <= y) & (y <= high)
    beyond = np.maximum(low - y, 0.0) + np.maximum(y - high, 0.0)
    frame = pd.DataFrame({"h": horizon, "learner": learner, "coverage": covered})
    frame["width"], frame["score"] = high - low, high - low + 40.0 * beyond
    frame["sizes"], frame["plateau"] = cases["sizes"][test], cases["plateau"][test]
    grouped = frame.groupby("h")
    short = frame[horizon == SHORT_DESIGN]
    return {
        "short": short.groupby("sizes")["coverage"].mean().to_dict(),
        "plateau": short.groupby("plateau")["coverage"].mean().to_dict(),
        "coverage": grouped["coverage"].mean().to_dict(),
        "width": grouped["width"].median().to_dict(),
        "score": grouped["score"].mean().to_dict(),
        "learners": {h: part.groupby("learner")["coverage"].mean().to_dict() for h, part in grouped},
    }


def summarise(rows: pd.DataFrame, cases: Cases) -> Cases:
    """Average the splits: per law the tested horizons in full, for auto the rest in short."""
    result: Cases = {"curves": int((cases["h"] == TESTED[0]).sum()), "laws": {}, "more": {}}
    for law, part in rows[rows["level"] == 0.95].groupby("law", sort=False):
        result["laws"][law] = {f"{h:g}x": summarise_one(part, h) for h in TESTED}
    auto = rows[rows["law"] == "auto"]
    for level, part in auto.groupby("level"):
        result["more"][f"auto {level:g}"] = mean_coverage(part)
    result["short"] = {
        name: pd.DataFrame(auto[auto["level"] == 0.95][name].tolist()).mean().round(4).to_dict()
        for name in ("short", "plateau")
    }
    power = rows[rows["law"] == "power"]
    result["more"]["power 0.95"] = mean_coverage(power)
    return result


def summarise_one(part: pd.DataFrame, horizon: float) -> Cases:
    """Return the figures of one law at one horizon over all splits."""
    coverage, width, score = (
        np.array([cell[horizon] for cell in part[name]]) for name in ("coverage", "width", "score")
    )
    learners = pd.DataFrame([cell[horizon] for cell in part["learners"]]).mean()
    values = {
        "coverage_min": coverage.min(),
        "coverage_mean": coverage.mean(),
        "coverage_max": coverage.max(),
        "width_median": width.mean(),
        "width_largest": width.max(),
        "score": score.mean(),
        "score_largest": score.max(),
        "learner_min": learners.min(),
        "learner_median": learners.median(),
    }
    return {key: round(float(value), 4) for key, value in values.items()}


def mean_coverage(part: pd.DataFrame) -> dict[str, float]:
    """Return the coverage at every horizon, averaged over splits."""
    return {f"{h:g}x": round(float(np.mean([cell[h] for cell in part["coverage"]])), 4) for h in CALIBRATED}


def print_table(result: Cases) -> None:
    """Print the summary to stderr."""
    head = ("cover min", "mean", "max", "width", "(largest)", "score", "(largest)", "learner min")
    lines = [" " * 20 + "".join(f"{name:>12}" for name in (*head, "median"))]
    for law, horizons in result["laws"].items():
        for horizon, values in horizons.items():
            cells = "".join(f"{value:12.3f}" for value in values.values())
            lines.append(f"{law:>14} {horizon:>5}{cells}")
    lines.append("bars: cover 0.92-0.98 in each split, mean 0.94-0.96; 2x 4.0 / 11, 4x 9.0 / 23")
    lines.append("coverage by horizon (0x: interpolation)")
    for name, values in result["more"].items():
        cells = "".join(f"{h:>6} {value:.3f}" for h, value in values.items())
        lines.append(f"{name:>14} {cells}")
    for name, values in result["short"].items():
        cells = "".join(f"{group!s:>7} {value:.3f}" for group, value in values.items())
        lines.append(f"short designs by {'sizes' if name == 'short' else name}: {cells}")
    print("\n".join([*lines, f"CPU {result['cpu_seconds']} s"]), file=sys.stderr)


def as_source(table: Table) -> str:
    """Write the constants as Python source, laid out as in ``curvewise.learning.calibration``."""
    lines = ["COEFFICIENTS = {"]
    for name, *values in zip(FEATURES, *(v for side in table for v in (side.size, side.growth)), strict=True):
        lines.append(f'    "{name}": ({", ".join(f"{v:.3f}" for v in values)}),')
    quantiles = ", ".join(f"({', '.join(f'{q:.3f}' for q in side.quantiles)})" for side in table)
    return "\n".join([*lines, "}", f"QUANTILES = {quantiles}"])


if __name__ == "__main__":
    main()
