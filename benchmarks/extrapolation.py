"""Score learning-curve extrapolation on LCDB 1.0 and on the 92 scaling curves.

Usage: ``python benchmarks/extrapolation.py``.  A table goes to stderr, one JSON line to stdout.
The data are found through ``CURVEWISE_DATA`` (default ``../shared/data``).

LCDB 1.0: curves with at least 10 anchors, the largest of 500 or more; fit on anchors up to
``n_max / h`` (at least 3), predict the mean validation error at ``n_max``; median absolute error in
percent points.  Even and odd dataset ids are also reported apart: constants of the method were
chosen looking at the even ones.

92 curves (Alabdulmohsin et al., 2022): fit on the points marked as training, predict the others;
root mean squared log error per curve, then the mean per domain.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from curvewise.learning.fit import build_curve
from curvewise.learning.replicates import Replicates
from curvewise.types import Unit

Array = NDArray[np.float64]

FORMS = ("auto", "constrained", "last")
HORIZONS = (2, 4, 16)
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
            "cpu_seconds": {
                "lcdb": round(middle - start, 2),
                "curves92": round(time.process_time() - middle, 2),
            },
        }
    print_table(results)
    bars = {"lcdb": BARS_LCDB, "curves92": BARS_92, "ratio_to_best_known": BAR_RATIO}
    print(json.dumps({"benchmark": "extrapolation", "bars": bars, "methods": results}))


def find_data() -> Path:
    """Return the folder of learning curves, or exit with a message."""
    default = Path(__file__).resolve().parents[2] / "shared" / "data"
    root = Path(os.environ.get("CURVEWISE_DATA", default))
    folder = root / "learning_curves"
    if not folder.is_dir():
        sys.exit(f"no data: {folder} is not a folder; set CURVEWISE_DATA")
    return folder


def read_lcdb(path: Path) -> Iterator[tuple[int, Replicates]]:
    """Yield dataset id and the curve in percent points."""
    frame = pd.read_csv(path).sort_values(["openmlid", "learner", "size_train"])
    for (dataset, _), rows in frame.groupby(["openmlid", "learner"]):
        n, runs, mean, variance = (
            rows[name].to_numpy(dtype=np.float64)
            for name in ("size_train", "n_rep", "err_valid_mean", "err_valid_var")
        )
        if len(n) >= 10 and n[-1] >= 500:
            yield int(dataset), Replicates(n, runs, 100.0 * mean, 1e4 * variance)


def score_lcdb(curves: list[tuple[int, Replicates]], form: str) -> dict[str, Any]:
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


def read_92(folder: Path) -> Iterator[tuple[str, Replicates, Array, Array]]:
    """Yield domain, the training part, held-out sizes and losses (T,)."""
    names = ("benchmark.lang.csv", "benchmark.vision.csv")
    frame = pd.concat([pd.read_csv(folder / name) for name in names])
    for (domain, _, _), rows in frame.groupby(["Domain", "Task", "Model"]):
        # Points that share a size are steps of one training, not runs that could be averaged over.
        seen = rows[rows["Training"] == 1].groupby("Seen Examples")["Loss"].mean()
        n, loss = seen.index.to_numpy(float), seen.to_numpy(float)
        part = Replicates(n, np.ones_like(n), loss, np.full_like(n, np.nan))
        rest = rows[rows["Training"] == 0]
        yield str(domain), part, rest["Seen Examples"].to_numpy(float), rest["Loss"].to_numpy(float)


def score_92(curves: list[tuple[str, Replicates, Array, Array]], form: str) -> dict[str, float]:
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
