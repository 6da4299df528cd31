"""Speed of learning-curve fits beside scipy's curve_fit, in one process; one JSON line each.

    python benchmarks/learning.py            # everything
    python benchmarks/learning.py fit        # one of fit, refits, lcdb

CPU time of one thread, median of repeats. `ratio` is how many times faster we are.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import json
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.optimize import OptimizeWarning, curve_fit

import curvewise as cw
from curvewise.errors import CurvewiseWarning
from curvewise.learning import LearningCurve

DATA = Path(os.environ.get("CURVEWISE_DATA", Path(__file__).resolve().parent.parent.parent / "shared" / "data"))
warnings.simplefilter("ignore", CurvewiseWarning)
warnings.simplefilter("ignore", OptimizeWarning)


def main() -> None:
    """Run the benchmarks named on the command line, or all."""
    available = {"fit": fit, "refits": refits, "lcdb": lcdb}
    for name in sys.argv[1:] or available:
        print(json.dumps(available[name]()), flush=True)


def fit() -> dict[str, object]:
    """One fit of a published curve, checks of the input and of its shape included."""
    n, error = golden()
    ours = cpu(lambda: cw.fit_learning_curve(n, error, unit="percent"), 300)
    theirs = cpu(lambda: fit_scipy(n, error), 50)
    return line("one fit", ours, theirs, budget_seconds=0.0003)


def refits() -> dict[str, object]:
    """10,000 bootstrap refits of a published curve, σ̂² and γ estimated anew in each."""
    n, error = golden()
    curve = cw.fit_learning_curve(n, error, unit="percent")
    assert isinstance(curve, LearningCurve)
    ours = cpu(lambda: curve.bootstrap(10_000, rng=0), 15)
    rng = np.random.default_rng(0)
    fitted, spread = curve.band(n)["error"], curve.run_std_at(n)
    noisy = fitted + spread * rng.standard_normal((200, len(n)))
    theirs = cpu(lambda: [fit_scipy(n, e) for e in noisy], 1) * 10_000 / len(noisy)
    return line("10,000 refits", ours, theirs, budget_seconds=0.020, theirs_scaled_from=200)


def lcdb() -> dict[str, object]:
    """Every LCDB curve with 1,000 refits each, in one call."""
    import pandas as pd

    frame = pd.read_csv(DATA / "learning_curves" / "lcdb10_error_mean_var.csv.gz")
    names = frame.openmlid.astype(str) + "/" + frame.learner
    table = {
        "learner": names.to_numpy(),
        "n": frame.size_train.to_numpy(),
        "error": frame.err_valid_mean.to_numpy(),
        "runs": frame.n_rep.to_numpy(),
        "variance": frame.err_valid_var.to_numpy(),
    }
    curves = len(set(table["learner"]))
    start = time.process_time()
    cw.fit_learning_curves(table, refits=1000)
    ours = time.process_time() - start
    sample = [g for i, (_, g) in enumerate(frame.groupby(names, sort=False)) if i % 44 == 0]
    theirs = cpu(lambda: [fit_scipy(g.size_train.to_numpy(), g.err_valid_mean.to_numpy()) for g in sample], 1)
    scaled = theirs / len(sample) * curves * 1000
    return line(
        f"{curves} LCDB curves with 1,000 refits", ours, scaled, budget_seconds=60, theirs_scaled_from=len(sample)
    )


def golden() -> tuple[np.ndarray, np.ndarray]:
    """A published curve if the data is there, else one like it."""
    path = DATA / "learning_curves" / "pretr_ft.json"
    if path.exists():
        m = cw.load_measurements(path, unit="percent")
        return m.n, m.error
    n = np.repeat([25, 50, 100, 200, 400.0], [10, 8, 4, 2, 1])
    noise = np.random.default_rng(0).standard_normal(len(n)) * np.sqrt(0.02 + 130 / n)
    return n, 12.5 + 194 * n**-0.57 + noise


def fit_scipy(n: np.ndarray, error: np.ndarray) -> np.ndarray | None:
    """Fit as a user would: curve_fit of the same law, bounded."""
    try:
        theta, _ = curve_fit(
            lambda x, a, h, g: a + h * x**g,
            n,
            error,
            p0=(error.min(), max(np.ptp(error), 1e-3) * n.min() ** 0.5, -0.5),
            bounds=([-np.inf, -np.inf, -0.99], [np.inf, np.inf, -0.01]),
        )
    except RuntimeError:
        return None
    return theta


def cpu(task: Callable[[], object], repeats: int) -> float:
    """Median CPU seconds of a task after one warm-up."""
    if repeats > 1:
        task()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        task()
        times.append(time.process_time() - start)
    return float(np.median(times))


def line(name: str, ours: float, theirs: float, **more: object) -> dict[str, object]:
    """One result."""
    return {
        "benchmark": f"learning: {name}",
        "curvewise_cpu_seconds": round(ours, 6),
        "curve_fit_cpu_seconds": round(theirs, 6),
        "ratio": round(theirs / ours, 1),
        **more,
    }


if __name__ == "__main__":
    main()
