"""Answers beyond the largest size by the default form: their errors, how often they rise, their intervals.

    python benchmarks/answers.py [draws]

Four rules are compared, all at 2, 4 and 10 or 16 times the largest size:

- law: the fitted law, cut off at 0;
- by size: at each size the law where it lies inside its own 95% interval, else the value at the most likely γ, and
  none where that is impossible, too (none counts as 0 in the errors);
- now: the fitted law, or where it falls below 0, rises or leaves its interval anywhere beyond the data, the power law
  with α, η ≥ 0 through the fitted error at the largest size: one function for every size;
- auto: the form made to extrapolate; and last: the last mean.

Simulations: e(n) = α + η n^γ with α of 0, 1 and 5%, γ of −0.3, −0.5, −0.8 and −1, and an error 25 points above α at
n = 50; five sizes with 3 runs, with 1 run, with 8, 4, 2, 1, 1 runs, and four sizes with 2 runs; binomial noise on 600
test items, alone and with a further spread of the runs that grows towards small n. Real curves: short designs cut
from LCDB 1.0, as in ``extrapolation.py``, and the 92 scaling curves. Nothing was chosen by these numbers but the rule
itself, which has no constant.

Rankings: three learners whose curves differ a little, ranked at 1, 4 and 10 times the largest size; how often the best
prediction is the best, how often the highest chance is, and what that chance was. Tables on stderr, one JSON line on
stdout.
"""

from __future__ import annotations

import json
import os
import sys

os.environ.setdefault("OMP_NUM_THREADS", "1")
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from extrapolation import find_data, read_92, read_lcdb, short_designs
from numpy.typing import NDArray

from curvewise.learning.calibration import power_interval
from curvewise.learning.comparison import rank_learners
from curvewise.learning.curve import LearningCurve
from curvewise.learning.fit import build_curve
from curvewise.learning.power import GroupedRuns, bounds, group_runs
from curvewise.types import Unit

Array = NDArray[np.float64]

ASYMPTOTES, EXPONENTS = (0.0, 1.0, 5.0), (-0.3, -0.5, -0.8, -1.0)
DESIGNS: dict[str, tuple[Array, list[int]]] = {
    "5 x 3": (50 * 2.0 ** np.arange(5), [3] * 5),
    "4 x 2": (100 * 2.0 ** np.arange(4), [2] * 4),
    "5 x 1": (50 * 2.0 ** np.arange(5), [1] * 5),
    "8 4 2 1 1": (50 * 2.0 ** np.arange(5), [8, 4, 2, 1, 1]),
}
FACTORS = np.array([2.0, 4.0, 10.0])
RULES = ("law", "by size", "now", "auto", "last")
GRID = np.geomspace(1.0, 20.0, 40)
"""Multiples of the largest size at which a rise is looked for."""


def main() -> None:
    """Score every rule on simulations, on LCDB 1.0 and on the 92 curves, and print."""
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    folder = find_data()
    simulated = score(simulate(draws))
    lcdb = score(short_of_lcdb(folder))
    scaling = score_92(folder)
    ranking = score_ranking(8 * draws)
    line = {"benchmark": "answers", "draws": draws, "simulated": simulated, "lcdb": lcdb, "curves92": scaling}
    line["ranking"] = ranking
    for name in ("simulated", "lcdb"):
        show(name, line[name])
    print(pd.DataFrame(scaling).T.round(4).to_string(), file=sys.stderr)
    print(pd.DataFrame(ranking).T.to_string(), file=sys.stderr)
    print(json.dumps(line))


Case = tuple[GroupedRuns, Array, Array, Array]
"""Runs in points, multiples of the largest size, sizes and true errors there."""


def simulate(draws: int) -> Iterator[Case]:
    """Draw runs from power laws, in percent."""
    rng = np.random.default_rng(0)
    for alpha in ASYMPTOTES:
        for gamma in EXPONENTS:
            eta = 25.0 * 50.0**-gamma
            for n, runs in DESIGNS.values():
                sizes = np.repeat(n, runs)
                true = alpha + eta * sizes**gamma
                for draw in range(draws):
                    error = 100 * rng.binomial(600, true / 100) / 600
                    if draw % 2:
                        error += 8 * np.sqrt(50 / sizes * true / 25) * rng.standard_normal(len(sizes))
                    at = n[-1] * FACTORS
                    yield group_runs(sizes, np.clip(error, 0, 100)), FACTORS, at, alpha + eta * at**gamma


def short_of_lcdb(folder: Any) -> Iterator[Case]:
    """Cut designs of four and six sizes from LCDB 1.0."""
    curves = list(read_lcdb(folder / "lcdb10_error_mean_var.csv.gz"))
    for design in short_designs(curves, (4, 6)):
        yield design.seen, design.horizons, design.n, design.mean


def score(cases: Iterator[Case]) -> dict[str, Any]:
    """Return errors, rises and coverage of every rule, apart where the rule of today does not follow the law."""
    rows = []
    for data, factors, n, truth in cases:
        power = build_curve(data, Unit("percent"))
        assert isinstance(power, LearningCurve)
        auto = build_curve(data, Unit("percent"), form="auto")
        everywhere = np.concatenate([data.n[-1] * GRID, n])
        found = answers(power, everywhere) | {"auto": auto.errors_at(everywhere)}
        found["last"] = np.full_like(everywhere, data.mean[-1])
        for rule in RULES:
            curve, there = found[rule][: len(GRID)], found[rule][len(GRID) :]
            missing = np.isnan(there)
            with np.errstate(invalid="ignore"):
                rises = bool((np.diff(curve) > 1e-9).any() or np.isnan(curve).any())
            miss = np.abs(np.where(missing, 0.0, there) - truth)
            same = {"rule": rule, "left": power.beyond != "law", "rises": rises}
            every = zip(factors, miss, missing, strict=True)
            rows += [{**same, "factor": f, "miss": m, "none": k} for f, m, k in every]
        for kind, curve_of in (("confidence", power), ("prediction", power), ("prediction of auto", auto)):
            band = curve_of.band(n, kind.split()[0], runs=np.inf)
            before = curve_of._scale.values(np.array(curve_of._clip(*raw_band(curve_of, n, kind.split()[0]))))
            every = zip(factors, truth, band["low"], band["high"], *before, strict=True)
            for f, t, low, high, old_low, old_high in every:
                hit = {"rule": kind, "factor": f, "covered": low <= t <= high, "width": high - low}
                rows.append({**hit, "left": power.beyond != "law", "before": old_low <= t <= old_high})
    frame = pd.DataFrame(rows)
    parts = {"all": frame, "left": frame[frame.left]}
    return {"share left": float(frame[frame.rule == "now"].left.mean()), **{k: table(v) for k, v in parts.items()}}


def raw_band(curve: Any, n: Array, kind: str) -> tuple[Array, Array]:
    """Return the interval as the rule by size has it: it need not hold the answer, and predictions hold the law."""
    if kind == "prediction" and isinstance(curve, LearningCurve):
        floor, ceiling = bounds(curve.unit, curve._data.mean)
        noise = curve._noise_of_mean(n, 0.95, np.inf)
        return power_interval(curve._data, curve._law_points, n, 0.95, noise, floor, ceiling)
    low, high = curve._band_points(n, 0.95, kind, np.inf)
    return low, high


def answers(curve: LearningCurve, n: Array) -> dict[str, Array]:
    """Return the answers of the three rules of the default form at sizes n."""
    law, likely = curve._law_points(n), curve._likely_points(n)
    low, high = curve._clip(*curve._band_points(n, 0.95, "confidence", np.inf))
    outside = (law < low - 1e-9) | (law > high + 1e-9)
    mixed = np.where(outside, likely, law)
    floor, ceiling = bounds(curve.unit, curve._data.mean)
    mixed = np.where((mixed >= floor - 1e-9) & (mixed <= ceiling), mixed, np.nan)
    return {"law": np.clip(law, floor, ceiling), "by size": mixed, "now": curve.errors_at(n)}


def table(frame: pd.DataFrame) -> dict[str, Any]:
    """Return one row per rule and per kind of interval."""
    found: dict[str, Any] = {}
    for rule in RULES:
        rows = frame[frame.rule == rule]
        by = rows.groupby("factor").miss
        found[rule] = {
            "median": {f"{f:g}x": round(float(v), 3) for f, v in by.median().items()},
            "rms": {f"{f:g}x": round(float(v), 3) for f, v in by.apply(lambda m: np.sqrt((m**2).mean())).items()},
            "rises or none": round(float(rows.rises.mean()), 4),
            "none": round(float(rows.none.mean()), 4),
        }
    for rule in ("confidence", "prediction", "prediction of auto"):
        by = frame[frame.rule == rule].groupby("factor")
        found[f"{rule} interval"] = {
            "covered": {f"{f:g}x": round(float(v), 3) for f, v in by.covered.mean().items()},
            "covered, rule by size": {f"{f:g}x": round(float(v), 3) for f, v in by.before.mean().items()},
            "median width": {f"{f:g}x": round(float(v), 2) for f, v in by.width.median().items()},
        }
    return found


def score_92(folder: Any) -> dict[str, dict[str, float]]:
    """Return the mean RMSLE of each domain for each rule, and how often a rule has no answer or one of 0."""
    errors: dict[str, dict[str, list[float]]] = {}
    for domain, part, n_new, truth in read_92(folder):
        power = build_curve(part, Unit("loss"))
        assert isinstance(power, LearningCurve)
        found = {k: power._scale.values(v) for k, v in answers(power, n_new).items() if k != "now"}
        found |= {"now": power.errors_at(n_new), "auto": build_curve(part, Unit("loss"), form="auto").errors_at(n_new)}
        found["last"] = np.full_like(truth, power.mean[-1])
        for rule, values in found.items():
            # Where there is no answer, or one of 0, the last mean stands in: a logarithm needs one.
            usable = np.where(np.isnan(values) | (values <= 0), power.mean[-1], values)
            error = float(np.sqrt((np.log(usable / truth) ** 2).mean()))
            errors.setdefault(rule, {}).setdefault(domain, []).append(error)
    return {rule: {k: float(np.mean(v)) for k, v in domains.items()} for rule, domains in errors.items()}


def score_ranking(draws: int) -> dict[str, dict[str, float]]:
    """Return how often the first of three ranked learners is the best, and how often the most probable one is."""
    rng = np.random.default_rng(0)
    designs = list(DESIGNS.values())
    rows = []
    for draw in range(draws):
        n, runs = designs[draw % len(designs)]
        sizes = np.repeat(n, runs)
        alpha, gamma, spread = rng.choice(ASYMPTOTES), rng.choice(EXPONENTS), rng.choice([0.0, 4.0])
        curves, laws = [], []
        for name in "abc":
            own = max(alpha + 0.5 * rng.standard_normal(), 0.0) if alpha else 0.0
            law = own, 25 * np.exp(0.1 * rng.standard_normal()), gamma * np.exp(0.15 * rng.standard_normal())
            true = np.clip(law[0] + law[1] * (sizes / 50) ** law[2], 0, 100)
            error = 100 * rng.binomial(600, true / 100) / 600
            error = error + spread * np.sqrt(50 / sizes * true / 25) * rng.standard_normal(len(sizes))
            curves.append(build_curve(group_runs(sizes, np.clip(error, 0, 100)), Unit("percent"), learner=name))
            laws.append(law)
        for factor in (1.0, 4.0, 10.0):
            at = factor * n[-1]
            found = rank_learners(curves, at)
            best = "abc"[int(np.argmin([a + b * (at / 50) ** c for a, b, c in laws]))]
            likely = int(np.argmax(found.probability_best))
            right = {"first": found.learners[0] == best, "most probable": found.learners[likely] == best}
            rows.append({"factor": f"{factor:g}x", **right, "its chance": found.probability_best[likely]})
    return {str(k): v.round(3).to_dict() for k, v in pd.DataFrame(rows).groupby("factor").mean().iterrows()}


def show(name: str, found: dict[str, Any]) -> None:
    """Print the tables of one kind of data to stderr."""
    for part in ("all", "left"):
        which = "all" if part == "all" else f"those whose law is not followed ({found['share left']:.1%})"
        print(f"{name}, {which}", file=sys.stderr)
        for rule, row in found[part].items():
            print(f"  {rule:28}" + "; ".join(f"{k} {v}" for k, v in row.items()), file=sys.stderr)


if __name__ == "__main__":
    main()
