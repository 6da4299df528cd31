"""Score learning-curve extrapolation on LCDB 1.0 and on the 92 scaling curves.

Usage: ``python benchmarks/extrapolation.py``.  A table goes to stderr, one JSON line to stdout.
The data are found through ``CURVEWISE_DATA`` (default ``../shared/data``).

LCDB 1.0: curves with at least 10 anchors, the largest of 500 or more; fit on anchors up to
``n_max / h`` (at least 3), predict the mean validation error at ``n_max``; median absolute error in
percent points.  Even and odd dataset ids are also reported apart: constants of the method were
chosen looking at the even ones.

92 curves (Alabdulmohsin et al., 2022): fit on the points marked as training, predict the others;
root mean squared log error per curve, then the mean per domain.

Short designs, as people run them: 4 to 7 sizes in steps of 2 or the square root of 2 that end
somewhere on a curve of LCDB, with the means of the file or 1, 2, 3 or 5 runs drawn from its means
and variances; the mean error at 2, 4 and 16 times the last size is predicted.  The ratio of the
median errors of auto and constrained has a 95% interval by resampling datasets.  The 95% prediction
intervals of auto are counted: of the true mean, and of one new run, normal or skewed (gamma); apart
for designs on a plateau, whose true means lie within 5% of the first one.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from curvewise.learning.fit import build_curve
from curvewise.learning.power import GroupedRuns, group_runs
from curvewise.types import Unit

Array = NDArray[np.float64]

FORMS = ("auto", "constrained", "last")
HORIZONS = (2, 4, 16)
SHORT_SIZES = (4, 5, 6, 7)
RUNS = (0, 1, 2, 3, 5)
RESAMPLES = 1000
BARS_LCDB = {2: 0.45, 4: 0.85, 16: 1.95}
BARS_92 = {"IC": 0.034, "LM": 0.0010, "BB": 0.010, "NMT": 0.015}
BEST_KNOWN = {"IC": 0.0415, "LM": 0.00084, "BB": 0.0077, "NMT": 0.0083}
BAR_RATIO = 1.15


def main() -> None:
    """Run both benchmarks for every method and print the results."""
    folder = find_data()
    lcdb = list(read_lcdb(folder / "lcdb10_error_mean_var.csv.gz"))
    curves = list(read_92(folder))
    results: dict[str, Any] = {}
    for name in FORMS:
        start = time.process_time()
        scores = score_lcdb(lcdb, name)
        middle = time.process_time()
        domains = score_92(curves, name)
        results[name] = {
            "lcdb": scores,
            "curves92": domains,
            "cpu_seconds": {"lcdb": round(middle - start, 2), "curves92": round(time.process_time() - middle, 2)},
        }
    short = score_short(lcdb)
    print_table(results)
    print_short(short)
    bars = {"lcdb": BARS_LCDB, "curves92": BARS_92, "ratio_to_best_known": BAR_RATIO}
    line = {"benchmark": "extrapolation", "bars": bars, "methods": results, "short": short}
    print(json.dumps(line))


def find_data() -> Path:
    """Return the folder of learning curves, or exit with a message."""
    default = Path(__file__).resolve().parents[2] / "shared" / "data"
    root = Path(os.environ.get("CURVEWISE_DATA", default))
    folder = root / "learning_curves"
    if not folder.is_dir():
        sys.exit(f"no data: {folder} is not a folder; set CURVEWISE_DATA")
    return folder


def read_lcdb(path: Path) -> Iterator[tuple[int, GroupedRuns]]:
    """Yield dataset id and the curve in percent points."""
    frame = pd.read_csv(path).sort_values(["openmlid", "learner", "size_train"])
    for (dataset, _), rows in frame.groupby(["openmlid", "learner"]):
        n, runs, mean, variance = (
            rows[name].to_numpy(dtype=np.float64) for name in ("size_train", "n_rep", "err_valid_mean", "err_valid_var")
        )
        if len(n) >= 10 and n[-1] >= 500:
            yield int(dataset), GroupedRuns(n, runs, 100.0 * mean, 1e4 * variance)


def score_lcdb(curves: list[tuple[int, GroupedRuns]], form: str) -> dict[str, Any]:
    """Return per horizon the number of curves and the median errors: all, even, odd datasets."""
    scores: dict[str, Any] = {}
    for horizon in HORIZONS:
        errors, even = [], []
        for dataset, curve in curves:
            seen = curve.n <= curve.n[-1] / horizon
            if seen.sum() >= 3:
                fitted = build_curve(curve.only(seen), Unit("percent"), form=form)
                errors.append(abs(fitted.error_at(curve.n[-1]) - curve.mean[-1]))
                even.append(dataset % 2 == 0)
        error, is_even = np.array(errors), np.array(even)
        scores[f"{horizon}x"] = {
            "curves": len(error),
            "all": round(float(np.median(error)), 4),
            "even": round(float(np.median(error[is_even])), 4),
            "odd": round(float(np.median(error[~is_even])), 4),
        }
    return scores


@dataclass(frozen=True)
class ShortDesign:
    """Runs at a few sizes of a real curve, and what came after.

    Attributes
    ----------
    dataset : int
        OpenML id.
    runs : int
        Runs per size; 0 stands for the means of the file.
    seen : GroupedRuns
        The design, in percent points.
    horizons, n, mean, variance : ndarray, shape (T,)
        Multiples of the last size, the sizes there, the mean and the variance of one run.
    on_plateau : bool
        Whether the true means lie within 5% of the first one.
    """

    dataset: int
    runs: int
    seen: GroupedRuns
    horizons: Array
    n: Array
    mean: Array
    variance: Array
    on_plateau: bool


def short_designs(
    curves: list[tuple[int, GroupedRuns]], sizes: tuple[int, ...], seed: int = 0
) -> Iterator[ShortDesign]:
    """Cut one design of each number of sizes from each curve: where, how and which runs by lot."""
    rng = np.random.default_rng(seed)
    for dataset, curve in curves:
        for number in sizes:
            step, runs = int(rng.integers(1, 3)), int(rng.choice(RUNS))
            # The last size of a curve is not on the grid of half octaves.
            ends = np.arange((number - 1) * step, len(curve.n) - 1)
            ends = ends[curve.n[ends] * min(HORIZONS) <= 1.1 * curve.n[-1]]
            if len(ends) == 0:
                continue
            end = int(rng.choice(ends))
            later = [(h, int(np.abs(np.log(curve.n / (h * curve.n[end]))).argmin())) for h in HORIZONS]
            later = [(h, i) for h, i in later if abs(np.log(curve.n[i] / (h * curve.n[end]))) < 0.1]
            if not later:
                continue
            at = [i for _, i in later]
            truth = curve.only(np.arange(end - (number - 1) * step, end + 1, step))
            yield ShortDesign(
                dataset,
                runs,
                draw_runs(truth, runs, rng) if runs else truth,
                np.array([h for h, _ in later], dtype=np.float64),
                curve.n[at],
                curve.mean[at],
                curve.variance[at],
                bool(np.abs(truth.mean - truth.mean[0]).max() <= 0.05 * truth.mean[0]),
            )


def draw_runs(truth: GroupedRuns, runs: int, rng: np.random.Generator) -> GroupedRuns:
    """Draw single runs with the mean and variance of each size, within 0 and 100%."""
    spread = np.sqrt(np.nan_to_num(truth.variance))
    error = truth.mean + spread * rng.standard_normal((runs, len(truth.n)))
    return group_runs(np.tile(truth.n, runs), np.clip(error, 0.0, 100.0).ravel())


def score_short(curves: list[tuple[int, GroupedRuns]]) -> dict[str, Any]:
    """Return ratios of median errors, auto over constrained, and the coverage of auto."""
    rng = np.random.default_rng(1)
    rows = []
    for design in short_designs(curves, SHORT_SIZES):
        auto, constrained = (build_curve(design.seen, Unit("percent"), form=form) for form in ("auto", "constrained"))
        scale = np.nan_to_num(design.variance) / np.maximum(design.mean, 1e-9)
        shape = design.mean / np.maximum(scale, 1e-9)
        drawn = {
            "mean": design.mean,
            "one run": design.mean + np.sqrt(scale * design.mean) * rng.standard_normal(len(scale)),
            "one skewed run": np.where(scale > 0, rng.gamma(shape, scale), design.mean),
        }
        row: dict[str, Any] = {
            "h": design.horizons,
            "auto": np.abs(auto.errors_at(design.n) - design.mean),
            "constrained": np.abs(constrained.errors_at(design.n) - design.mean),
        }
        for name, value in drawn.items():
            band = auto.band(design.n, runs=np.inf if name == "mean" else 1)
            value = np.clip(value, 0.0, 100.0)
            row[name] = (band["low"] <= value) & (value <= band["high"])
        known = {"sizes": len(design.seen.n), "dataset": design.dataset}
        rows.append(pd.DataFrame({**row, **known, "plateau": design.on_plateau}))
    frame = pd.concat(rows)
    parts = {"all": frame, "even": frame[frame.dataset % 2 == 0], "odd": frame[frame.dataset % 2 == 1]}
    ratios = {
        f"{sizes} sizes, {horizon:g}x": {
            name: median_ratio(part[(part.sizes == sizes) & (part.h == horizon)]) for name, part in parts.items()
        }
        for sizes in SHORT_SIZES
        for horizon in HORIZONS
    }
    kinds = ["mean", "one run", "one skewed run"]
    coverage = {}
    for name, part in parts.items():
        groups = {f"{sizes} sizes": part[part.sizes == sizes] for sizes in SHORT_SIZES}
        groups |= {"plateau": part[part.plateau], "no plateau": part[~part.plateau]}
        coverage[name] = {
            group: {"forecasts": len(some), **some[kinds].mean().round(4).to_dict()} for group, some in groups.items()
        }
    return {"ratio": ratios, "coverage": coverage}


def median_ratio(rows: pd.DataFrame) -> dict[str, float]:
    """Return the ratio of median errors with its 95% interval by resampling datasets."""
    rng = np.random.default_rng(0)
    groups = [part[["auto", "constrained"]].to_numpy() for _, part in rows.groupby("dataset")]
    ratios = []
    for _ in range(RESAMPLES):
        drawn = np.concatenate([groups[i] for i in rng.integers(0, len(groups), len(groups))])
        auto, constrained = np.median(drawn, axis=0)
        ratios.append(auto / constrained)
    auto, constrained = rows[["auto", "constrained"]].median()
    low, high = np.quantile(ratios, [0.025, 0.975])
    values = {"auto": auto, "constrained": constrained}
    values |= {"ratio": auto / constrained, "low": low, "high": high}
    return {"designs": len(rows), **{key: round(float(v), 4) for key, v in values.items()}}


def print_short(short: dict[str, Any]) -> None:
    """Print ratios and coverage to stderr."""
    lines = [f"{'auto / constrained':26}" + "".join(f"{p:>22}" for p in ("all", "even", "odd"))]
    for name, parts in short["ratio"].items():
        cells = [f"{p['ratio']:8.3f} [{p['low']:.2f}, {p['high']:.2f}]" for p in parts.values()]
        lines.append(f"{name:26}" + "".join(f"{cell:>22}" for cell in cells))
    lines.append(f"{'coverage':26}{'mean':>12}{'one run':>16}{'one skewed run':>16}")
    for part, groups in short["coverage"].items():
        for group, values in groups.items():
            cells = "".join(f"{values[k]:14.3f}" for k in ("mean", "one run", "one skewed run"))
            lines.append(f"{f'{part}, {group}':26}{cells}   of {values['forecasts']}")
    print("\n".join(lines), file=sys.stderr)


def read_92(folder: Path) -> Iterator[tuple[str, GroupedRuns, Array, Array]]:
    """Yield domain, the training part, held-out sizes and losses (T,)."""
    names = ("benchmark.lang.csv", "benchmark.vision.csv")
    frame = pd.concat([pd.read_csv(folder / name) for name in names])
    for (domain, _, _), rows in frame.groupby(["Domain", "Task", "Model"]):
        # Points that share a size are steps of one training, not runs that could be averaged over.
        seen = rows[rows["Training"] == 1].groupby("Seen Examples")["Loss"].mean()
        n, loss = seen.index.to_numpy(float), seen.to_numpy(float)
        part = GroupedRuns(n, np.ones_like(n), loss, np.full_like(n, np.nan))
        rest = rows[rows["Training"] == 0]
        yield str(domain), part, rest["Seen Examples"].to_numpy(float), rest["Loss"].to_numpy(float)


def score_92(curves: list[tuple[str, GroupedRuns, Array, Array]], form: str) -> dict[str, float]:
    """Return mean RMSLE per domain, and the geometric mean of its ratios to the best known."""
    errors: dict[str, list[float]] = {domain: [] for domain in BARS_92}
    for domain, part, n_new, truth in curves:
        fitted = build_curve(part, Unit("loss"), form=form)
        log_ratio = np.log(fitted.errors_at(n_new) / truth)
        errors[domain].append(float(np.sqrt(np.mean(log_ratio**2))))
    means = {domain: float(np.mean(values)) for domain, values in errors.items()}
    ratios = [means[domain] / BEST_KNOWN[domain] for domain in means]
    ratio = float(np.exp(np.mean(np.log(ratios))))
    return {**{k: round(v, 6) for k, v in means.items()}, "ratio_to_best_known": round(ratio, 4)}


def print_table(results: dict[str, Any]) -> None:
    """Print the results beside the bars to stderr."""
    names = list(results)
    lines = [f"{'':26}{'bar':>9}" + "".join(f"{name:>13}" for name in names)]
    for horizon in HORIZONS:
        for part in ("all", "even", "odd"):
            bar = f"{BARS_LCDB[horizon]:9.2f}" if part == "all" else " " * 9
            cells = [results[name]["lcdb"][f"{horizon}x"][part] for name in names]
            label = f"LCDB {horizon}x, {part}"
            lines.append(f"{label:26}{bar}" + "".join(f"{cell:13.3f}" for cell in cells))
    for key, limit in {**BARS_92, "ratio_to_best_known": BAR_RATIO}.items():
        cells = [results[name]["curves92"][key] for name in names]
        label = f"92 curves, {key}" if key in BARS_92 else "92 curves, ratio to best"
        lines.append(f"{label:26}{limit:9.4f}" + "".join(f"{cell:13.5f}" for cell in cells))
    for part in ("lcdb", "curves92"):
        cells = [results[name]["cpu_seconds"][part] for name in names]
        label = f"CPU seconds, {part}"
        lines.append(f"{label:26}{'':9}" + "".join(f"{cell:13.1f}" for cell in cells))
    print("\n".join(lines), file=sys.stderr)


if __name__ == "__main__":
    main()
