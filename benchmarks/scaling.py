"""Scaling laws on published runs: how well they extrapolate, and how long fits take. One JSON line each.

    python benchmarks/scaling.py                 # all
    python benchmarks/scaling.py backtest        # the largest runs held out, the published method beside it
    python benchmarks/scaling.py unseen          # the same with losses that no constant was chosen on
    python benchmarks/scaling.py speed           # beside Epoch's method, PyPI's chinchilla and scipy
    python benchmarks/scaling.py minimum         # whether random starts find lower minima

Backtest: runs within 4, 16 and 64 times of the largest compute are held out of each data set and predicted from the
rest, by ``form="auto"`` and by the published method (additive form, or that of repeated data; Huber loss; the global
minimum). Errors are geometric means of |Δ log loss| over the held-out runs of a set, the sets of a source, and the
sources: one weight for each. Coverage of 95% prediction bands in the same way by arithmetic means, with the factor
of the drift (``forecast.REACH``) as it is in the library and as the other sources alone would set it. No forecast sees
the runs it is held against, but the design of the bands and REACH were chosen on these errors.

Unseen: the same with losses that nothing was chosen on: seven further losses of Gadre's models (other texts than C4
validation), twenty task losses in bits per byte of OLMo's ladder, the smoothed training loss of Step Law. The models
are those of the backtest, so that this is a test of new losses, not of new models.

Speed: CPU seconds of one thread on the 240 runs of Chinchilla. Epoch's method is BFGS from 4,500 starts and from the
optimum for each of 4,000 resamples, measured on a few and scaled; ``chinchilla`` (if installed) has the grid of its
manual, 3,125 starts, thinned to 32 and scaled; scipy is ``least_squares(loss="huber")`` from one start.

Minimum: every data set and form is fitted from 200 random starts as well; how often, and by how much, the lowest of
these ends below the fit.

Data: the folder ``scaling`` below CURVEWISE_DATA (default ../shared/data).
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import json
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

# numba imports a package called coverage, which must not be the benchmark beside this one.
sys.path = [p for p in sys.path if Path(p or ".").resolve() != Path(__file__).resolve().parent]

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import optimize
from scipy.special import stdtrit

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.scaling import ScalingRuns, fit_scaling_law, load_scaling_runs
from curvewise.scaling.fit import (
    EMPHASES,
    FAMILY,
    REACH,
    Forecast,
    fit_forecast,
    make_data,
    make_place,
    split_by_compute,
)
from curvewise.scaling.forms import fit_global, minimise
from curvewise.scaling.runs import check_identified

Array = NDArray[np.float64]
ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("CURVEWISE_DATA", ROOT.parent / "shared" / "data")) / "scaling"
FACTORS = (4, 16, 64)
LADDER = {"190M": 190354176, "370M": 371262464, "760M": 758220288, "1B": 1279395840, "3B": 3169537280}


def main() -> None:
    """Run the benchmarks named on the command line, or all."""
    warnings.simplefilter("ignore", CurvewiseWarning)
    available = {
        "backtest": lambda: backtest("backtest of scaling laws", data_sets(), calibrate=True),
        "unseen": lambda: backtest("backtest of scaling laws on losses that nothing was chosen on", unseen_sets()),
        "speed": speed,
        "minimum": minimum,
    }
    for name in sys.argv[1:] or available:
        print(json.dumps(available[name]()), flush=True)


def data_sets() -> dict[str, ScalingRuns]:
    """Return the published runs, by ``source/set``."""
    found = {"chinchilla": load_scaling_runs(DATA / "chinchilla" / "svg_extracted_data.csv")}
    table = pd.read_csv(DATA / "isoflops" / "isoflops_clean.csv")
    for name, part in table.groupby("experiment"):
        found[f"isoflops/{name}"] = runs_of(part.params, part.tokens, part.loss)
    table = pd.read_csv(DATA / "porian" / "isoflop_points.csv")
    keys = ["file", "hparams", "warmup", "decay", "param_count", "val"]
    for setting, part in table[table.dataset == "rw"].groupby(keys):
        found["porian/" + " ".join(setting)] = runs_of(part.n, part.t, part.loss)
    for name, part in pd.read_csv(DATA / "gadre" / "models.csv").groupby("train"):
        found[f"gadre/{name}"] = runs_of(part.params, part.tokens, part.loss_c4_val)
    table = pd.read_csv(DATA / "datablations" / "c4_runs.csv")
    part = table[table.unique_tokens >= table.tokens]
    found["datablations/one epoch"] = runs_of(part.params, part.tokens, part.loss)
    found["datablations/repeated"] = runs_of(table.params, table.tokens, table.loss, table.unique_tokens)
    table, sizes = ladder()
    found["ladder"] = runs_of(sizes, table["throughput/total_tokens"], table["eval/c4_en-validation/CrossEntropyLoss"])
    found["steplaw"] = steplaw("loss")
    return found


def unseen_sets() -> dict[str, ScalingRuns]:
    """Return other losses of models of :func:`data_sets`, by ``source/set``."""
    found = {}
    for name, part in pd.read_csv(DATA / "gadre" / "models.csv").groupby("train"):
        for loss in (c for c in part if c.startswith("loss_") and c != "loss_c4_val"):
            found[f"gadre/{name} {loss}"] = runs_of(part.params, part.tokens, part[loss])
    table, sizes = ladder()
    for loss in (c for c in table if c.endswith("_bpb")):
        found[f"ladder/{loss}"] = runs_of(sizes, table["throughput/total_tokens"], table[loss])
    return found | {"steplaw": steplaw("smooth loss")}


def ladder() -> tuple[pd.DataFrame, pd.Series]:
    """Return the last checkpoint of each run of OLMo's ladder, and the parameters."""
    table = pd.read_csv(DATA / "ladder" / "runs.csv.gz").sort_values("_step").groupby("run").last().reset_index()
    return table, table.run.str.split("-").str[0].map(LADDER)


def steplaw(loss: str) -> ScalingRuns:
    """Return the best loss of each size and number of tokens of Step Law."""
    best = pd.read_csv(DATA / "steplaw" / "dense_lr_bs_loss.csv").groupby(["N", "D"])[loss].min().reset_index()
    return runs_of(best.N, best.D, best[loss])


def runs_of(params: Any, tokens: Any, loss: Any, unique: Any = None) -> ScalingRuns:
    """Make runs of columns."""
    n, d, values = (np.asarray(v, dtype=np.float64) for v in (params, tokens, loss))
    own = None if unique is None else np.asarray(unique, dtype=np.float64)
    return ScalingRuns(n, d, values, unique_tokens=own, unit="loss")


def backtest(title: str, sets: dict[str, ScalingRuns], calibrate: bool = False) -> dict[str, Any]:
    """Hold out the largest runs of every set; ``calibrate`` sets the factor of the drift by other sources, too."""
    cells: dict[str, dict[int, dict[str, Any]]] = {"auto": {}, "published": {}}
    for name, runs in sets.items():
        for factor in FACTORS:
            kept, held = split_by_compute(runs, factor)
            try:
                check_identified(inside := runs.select(kept))
            except InputError:
                continue
            outside = runs.select(held)
            repeated = name.endswith("repeated")
            forms = ("repeated",) if repeated else FAMILY
            if len(inside) < (8 if repeated else 6):
                continue
            auto = fit_forecast(inside, [(f, e) for f in forms for e in EMPHASES])
            published = fit_forecast(inside, [(forms[0], 0.0)])
            for kind, forecast in (("auto", auto), ("published", published)):
                cells[kind].setdefault(factor, {})[name] = held_out(forecast, inside, outside)
        print(f"{name}: {len(runs)} runs", file=sys.stderr, flush=True)
    results: dict[str, Any] = {"benchmark": title, "level": 95}
    for kind, by_factor in cells.items():
        results[kind] = {
            "error": {f: round(1e3 * np.exp(by_source(c, log_error)), 2) for f, c in by_factor.items()},
            "coverage": {f: round(100 * by_source(c, covered), 1) for f, c in by_factor.items()},
            "per source": {f: per_source(c) for f, c in by_factor.items()},
        }
        if calibrate:
            results[kind]["coverage, other sources"] = other_sources(by_factor)
            reach = reach_for([cell for c in by_factor.values() for cell in c.items()])
            results[kind]["reach of all"] = round(reach, 2)
    errors = [results[kind]["error"] for kind in ("auto", "published")]
    results["ratio"] = {f: round(errors[0][f] / errors[1][f], 3) for f in FACTORS}
    results["sets"] = {f: len(c) for f, c in cells["auto"].items()}
    return results


def held_out(forecast: Forecast, inside: ScalingRuns, outside: ScalingRuns) -> dict[str, Any]:
    """Return signed errors of log loss, half the band, and the factor of the drift that each error takes."""
    at = make_place(outside)
    error = forecast.log_loss(at) - np.log(outside.loss)
    quantile = float(stdtrit(max(len(inside) - forecast.leading.data.form.size, 2), 0.975))
    near, far = (forecast.half_width(at, quantile, ratio) for ratio in (0.0, 1.0))
    drift = np.sqrt(np.maximum(far**2 - near**2, 1e-300)) / REACH
    return {"error": error, "half": far, "needs": np.sqrt(np.maximum(error**2 - near**2, 0.0)) / drift}


def log_error(cell: dict[str, Any]) -> float:
    """Mean log of the absolute errors of one set."""
    return float(np.log(np.maximum(np.abs(cell["error"]), 1e-6)).mean())


def covered(cell: dict[str, Any]) -> float:
    """Share of the held-out runs inside their band."""
    return float((np.abs(cell["error"]) <= cell["half"]).mean())


def by_source(cells: dict[str, Any], of: Callable[[dict[str, Any]], float]) -> float:
    """Mean over sources of the means over their sets."""
    return float(np.mean([np.mean([of(cells[name]) for name in names]) for names in sources(cells).values()]))


def sources(cells: dict[str, Any]) -> dict[str, list[str]]:
    """Return the sets of each source."""
    found: dict[str, list[str]] = {}
    for name in cells:
        found.setdefault(name.split("/")[0], []).append(name)
    return found


def per_source(cells: dict[str, Any]) -> dict[str, list[float]]:
    """Error in 1e-3 and coverage in percent of each source."""
    return {
        source: [
            round(1e3 * float(np.exp(np.mean([log_error(cells[n]) for n in names]))), 2),
            round(100 * float(np.mean([covered(cells[n]) for n in names]))),
        ]
        for source, names in sources(cells).items()
    }


def reach_for(cells: list[tuple[str, dict[str, Any]]]) -> float:
    """Return the factor of the drift that covers 95% of the held-out runs, with one weight for each source."""
    count: dict[str, int] = {}
    for name, _ in cells:
        count[name.split("/")[0]] = count.get(name.split("/")[0], 0) + 1
    needs = np.concatenate([cell["needs"] for _, cell in cells])
    weight = np.concatenate(
        [np.full(len(cell["needs"]), 1.0 / len(cell["needs"]) / count[name.split("/")[0]]) for name, cell in cells]
    )
    order = np.argsort(needs)
    return float(needs[order][np.searchsorted(np.cumsum(weight[order]) / weight.sum(), 0.95)])


def other_sources(by_factor: dict[int, dict[str, Any]]) -> dict[int | str, float]:
    """Return coverage in percent where each source is calibrated by the others only."""
    share: dict[int, dict[str, float]] = {factor: {} for factor in by_factor}
    every = [cell for cells in by_factor.values() for cell in cells.items()]
    for source in {name.split("/")[0] for name, _ in every}:
        reach = reach_for([cell for cell in every if cell[0].split("/")[0] != source])
        for factor, cells in by_factor.items():
            own = [cell for name, cell in cells.items() if name.split("/")[0] == source]
            if own:
                share[factor][source] = float(np.mean([(cell["needs"] <= reach).mean() for cell in own]))
    found: dict[int | str, float] = {f: round(100 * float(np.mean(list(v.values()))), 1) for f, v in share.items()}
    return found | {"mean": round(float(np.mean(list(found.values()))), 1)}


def speed() -> dict[str, Any]:
    """Time fits of the 240 runs of Chinchilla."""
    every = load_scaling_runs(DATA / "chinchilla" / "svg_extracted_data.csv")
    runs = every.select(np.argsort(every.loss)[:-5])
    law = fit_scaling_law(runs)
    law.interval("alpha")

    def optima() -> None:
        fresh = fit_scaling_law(runs)
        fresh.interval("alpha")
        begin = time.process_time()
        fresh.compute_optimal(np.geomspace(1e20, 1e24, 100))
        extra.append(time.process_time() - begin)

    extra: list[float] = []
    for _ in range(5):
        optima()
    ours = {
        "fit": seconds(lambda: fit_scaling_law(runs), 30),
        "4,000 refits": seconds(lambda: law.standard_errors(resamples=4000), 3),
        "optima of 100 budgets": round(float(np.median(extra)), 4),
        "objective": law.objective,
    }
    return {
        "benchmark": "speed of scaling laws",
        "seconds": {"curvewise": ours, "epoch": epoch(runs), "scipy": plain_scipy(runs), "chinchilla": package(runs)},
    }


def seconds(job: Callable[[], Any], repeats: int) -> float:
    """Median CPU time."""
    times = []
    for _ in range(repeats):
        begin = time.process_time()
        job()
        times.append(time.process_time() - begin)
    return round(float(np.median(times)), 5)


def huber_sum(theta: Array, x: Array, y: Array, log_loss: Array, weights: Array | float = 1.0) -> float:
    """Objective in a, b, e, α, β by log-sum-exp, as Hoffmann et al. write it."""
    a, b, e, alpha, beta = theta
    terms = np.stack([a - alpha * x, b - beta * y, np.full_like(x, e)])
    top = terms.max(axis=0)
    gap = np.abs(top + np.log(np.exp(terms - top).sum(axis=0)) - log_loss)
    return float((weights * np.where(gap <= 1e-3, 0.5 * gap**2, 1e-3 * (gap - 0.5e-3))).sum())


def epoch(runs: ScalingRuns) -> dict[str, Any]:
    """BFGS with differences from a grid of 4,500 starts, 45 of them measured; and 20 of 4,000 resamples."""
    x, y, z = np.log(runs.params), np.log(runs.tokens), np.log(runs.loss)
    grids = (
        [0, 5, 10, 15, 20, 25],
        [0, 5, 10, 15, 20, 25],
        [-1, -0.5, 0, 0.5, 1],
        [0, 0.5, 1, 1.5, 2],
        [0, 0.5, 1, 1.5, 2],
    )
    every = np.stack([v.ravel() for v in np.meshgrid(*grids, indexing="ij")], axis=1).astype(np.float64)
    chosen = every[np.random.default_rng(0).permutation(len(every))[:45]]
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [optimize.minimize(huber_sum, start, (x, y, z), method="BFGS") for start in chosen]
    took = time.process_time() - begin
    best = min(found, key=lambda f: float(f.fun))
    rng = np.random.default_rng(0)
    begin = time.process_time()
    for _ in range(20):
        weights = rng.multinomial(len(x), np.full(len(x), 1 / len(x))).astype(np.float64)
        optimize.minimize(huber_sum, best.x, (x, y, z, weights), method="BFGS")
    again = time.process_time() - begin
    return {
        "fit": round(took * len(every) / len(chosen), 1),
        "4,000 refits": round(again * 200, 1),
        "objective": float(best.fun),
        "share of starts at the minimum": round(float(np.mean([f.fun < best.fun * 1.001 for f in found])), 2),
    }


def plain_scipy(runs: ScalingRuns) -> dict[str, Any]:
    """Least squares with Huber's function from one start, A and B in logarithms."""
    x, y, z = np.log(runs.params), np.log(runs.tokens), np.log(runs.loss)

    def gaps(t: Array) -> Array:
        return np.asarray(np.log(t[0] + np.exp(t[1] - t[3] * x) + np.exp(t[2] - t[4] * y)) - z)

    def fit() -> Any:
        limits = ([0, -20, -20, 0.01, 0.01], [float(runs.loss.min()), 60, 60, 3, 3])
        start = [1.5, 6.0, 7.0, 0.3, 0.3]
        return optimize.least_squares(
            gaps, start, loss="huber", f_scale=1e-3, bounds=limits, x_scale="jac", max_nfev=5000
        )

    t = fit().x
    objective = huber_sum(np.array([t[1], t[2], np.log(t[0]), t[3], t[4]]), x, y, z)
    return {"fit": seconds(fit, 5), "objective": objective}


def minimum() -> dict[str, Any]:
    """Compare fits with the lowest of 200 random starts."""
    found: dict[str, list[float]] = {}
    for name, runs in data_sets().items():
        for form in ("repeated",) if name.endswith("repeated") else FAMILY:
            for loss in ("huber", "squares"):
                data = make_data(runs, form, loss)
                if len(runs) < data.form.size:
                    continue
                _, value = fit_global(data)
                low, high = data.bounds
                rng = np.random.default_rng(0)
                start = np.empty((200, data.form.size))
                start[:, 0] = rng.uniform(0.0, high[0], 200)
                start[:, 1:3] = np.log(high[0]) + rng.uniform(-4.0, 1.0, (200, 2))
                start[:, 3:] = np.exp(rng.uniform(np.log(0.03), np.log(1.5), (200, data.form.size - 3)))
                if form in ("coupled", "repeated"):  # g, or the logs of two constants
                    start[:, 5:] = rng.uniform(0.2, 3.0, (200, data.form.size - 5))
                other = minimise(lambda t, _, data=data: data.bowl(t), start, data.form, (low, high), steps=200)[
                    1
                ].min()
                found.setdefault(f"{form}, {loss}", []).append(value / float(other) - 1)
    return {
        "benchmark": "global minimum of scaling laws",
        "starts": 200,
        "fits": {name: len(v) for name, v in found.items()},
        "lower by random starts": {name: int(np.sum(np.array(v) > 1e-6)) for name, v in found.items()},
        "worst": {name: float(f"{max(v):.2g}") for name, v in found.items()},
    }


def package(runs: ScalingRuns) -> dict[str, Any] | None:
    """PyPI's chinchilla with the log-Huber loss and the grid of its manual, two values of each parameter."""
    try:
        from chinchilla import Chinchilla
        from chinchilla._metrics import log_huber
    except ImportError:
        return None
    ends = {"E": (1, 2), "a": (1, 10), "b": (1, 10), "alpha": (0.1, 0.7), "beta": (0.1, 0.7)}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        grid = {name: np.linspace(*span, 2) for name, span in ends.items()}
        fit = Chinchilla(
            folder, param_grid=grid, loss_fn=lambda true, found: log_huber(true, found, delta=1e-3), log_level=50
        )
        for n, d, loss in zip(runs.params, runs.tokens, runs.loss, strict=True):
            fit.database.append(N=n, D=d, loss=loss)
        fit.visualizer.optim = lambda *args, **options: None
        begin = time.process_time()
        fit.fit(parallel=False)
        took = time.process_time() - begin
    x, y, z = np.log(runs.params), np.log(runs.tokens), np.log(runs.loss)
    theta = np.array([np.log(fit.A), np.log(fit.B), np.log(fit.E), fit.alpha, fit.beta])
    return {"fit": round(took * 3125 / 32, 1), "objective": huber_sum(theta, x, y, z)}


if __name__ == "__main__":
    main()
