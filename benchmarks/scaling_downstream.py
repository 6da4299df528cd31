"""Accuracy of larger models: how often prediction intervals hold it. One JSON line each.

    python benchmarks/scaling_downstream.py            # all
    python benchmarks/scaling_downstream.py backtest   # the largest runs held out, on 46 and on 20 tasks
    python benchmarks/scaling_downstream.py drift      # the constant downstream.DRIFT
    python benchmarks/scaling_downstream.py targets    # the 7B and the 13B model of OLMo's ladder

Backtest: runs within 4, 16 and 64 times of the largest compute are held out and their accuracies predicted from the
rest: 46 tasks of Gadre's models (each training set, by their loss on C4), 20 tasks of OLMo's ladder by bits per byte.
Printed, with one weight for each task: coverage of 95% intervals, medians of their width and of the absolute error, and
how many tasks were refused because no run is above chance. The same again with ten runs, drawn from those that are not
held out.

Drift: error of the second step per factor e of loss below the lowest that was fitted, as ``predict_downstream``
estimates it in the runs at hand; here the median over the tasks of Gadre's models that rise. The ladder's, printed for
comparison, is not used.

Targets: predictions for the ladder's 7B and 13B models, whose runs are not among those fitted, beside what they
reached. Nothing is chosen by them. The tasks are those other than MMLU; those of the 7B model are computed from the
published relative errors of the two steps.

Data: the folder ``scaling`` below CURVEWISE_DATA (default ../shared/data).
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import json
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.scaling import ScalingRuns, predict_downstream
from curvewise.scaling import downstream as steps

Array = NDArray[np.float64]
ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("CURVEWISE_DATA", ROOT.parent / "shared" / "data")) / "scaling"
SIZES = {"190M": 190354176, "370M": 371262464, "760M": 758220288, "1B": 1279395840, "3B": 3169537280}
PUBLISHED = [f"{size}-{k}xC" for size in ("190M", "370M", "760M", "1B") for k in (1, 2, 5, 10)]
SEVEN = {
    "HellaSwag": "hellaswag_val",
    "ARC-Challenge": "arc_challenge_test",
    "ARC-Easy": "arc_easy_test",
    "PIQA": "piqa_val",
    "CommonsenseQA": "csqa_val",
    "Social IQa": "socialiqa_val",
    "OpenBookQA": "openbookqa_test",
    "Winogrande": "winogrande_val",
    "BoolQ": "boolq_val",
}
AT_7B, AT_13B = (6887575552, 3.945066e12), (13202396160, 596057 * 8388608)
Task = tuple[str, str, ScalingRuns]


def main() -> None:
    """Run the benchmarks named on the command line, or all."""
    warnings.simplefilter("ignore", CurvewiseWarning)
    available = {"drift": drift, "backtest": backtest, "targets": targets}
    for name in sys.argv[1:] or available:
        print(json.dumps(available[name]()), flush=True)


def gadre() -> Iterator[Task]:
    """Yield training set, task and runs with its loss and accuracy."""
    table = pd.read_csv(DATA / "gadre" / "models.csv")
    scores = pd.read_csv(DATA / "gadre" / "downstream_accuracy.csv")
    for train, part in table.merge(scores, on="name").groupby("train"):
        for task in scores.columns.drop("name"):
            yield f"gadre {train}", task, task_runs(part.params, part.tokens, part.loss_c4_val, part[task])


def ladder(runs: list[str] | None = None) -> Iterator[Task]:
    """Yield the tasks of OLMo's ladder, with the checkpoints of all runs or of some."""
    table = pd.read_csv(DATA / "ladder" / "runs.csv.gz").sort_values("_step")
    table = table[table.run.isin(runs or table.run)]
    size = table.run.str.split("-").str[0].map(SIZES)
    for loss in (c for c in table if c.endswith("_bpb")):
        name = loss.removesuffix("_bpb").replace("downstream_bpb", "downstream")
        score = name + ("_len_norm" if name + "_len_norm" in table else "_acc")
        task = name.removeprefix("eval/downstream/").removesuffix("_rc_5shot")
        yield "ladder", task, task_runs(size, table["throughput/total_tokens"], table[loss], table[score], table.run)


def task_runs(params: Any, tokens: Any, loss: Any, accuracy: Any, run: Any = None) -> ScalingRuns:
    """Make runs of columns, without rows that lack one."""
    n, d, x, y = (np.asarray(v, dtype=np.float64) for v in (params, tokens, loss, accuracy))
    there = np.isfinite(n * d * x * y)
    names = None if run is None else np.asarray(run, dtype=np.str_)[there]
    metrics = {"loss of the task": x[there], "accuracy": y[there]}
    return ScalingRuns(n[there], d[there], x[there], run=names, metrics=metrics, unit="loss")


COLUMNS = ("loss of the task", "accuracy")


def backtest() -> dict[str, Any]:
    """Hold out the largest runs of every task."""
    results: dict[str, Any] = {"benchmark": "backtest of accuracies", "level": 95}
    for title, few in (("all runs", None), ("ten runs", 10)):
        cells: dict[str, list[tuple[float, float, float]]] = {}
        refused: dict[str, int] = {}
        for k, (source, _, runs) in enumerate((*gadre(), *ladder())):
            for factor in (4, 16, 64):
                name = f"{source}, {factor}"
                found = held_out(runs, factor, few, np.random.default_rng([k, factor]))
                if found is None:
                    refused[name] = refused.get(name, 0) + 1
                else:
                    cells.setdefault(name, []).append(found)
        results[title] = {
            name: {
                "coverage": round(100 * float(np.mean([c[0] for c in found])), 1),
                "width": round(float(np.median([c[1] for c in found])), 3),
                "error": round(float(np.median([c[2] for c in found])), 3),
                "tasks": len(found),
                "refused": refused.get(name, 0),
            }
            for name, found in cells.items()
        }
        results[title]["mean coverage"] = round(float(np.mean([v["coverage"] for v in results[title].values()])), 1)
    return results


def held_out(
    runs: ScalingRuns, factor: float, few: int | None, rng: np.random.Generator
) -> tuple[float, float, float] | None:
    """Return coverage, width and error for the runs within a factor of the largest; None where it is refused."""
    ends = steps._collect(runs, *COLUMNS)
    compute = 6 * ends.size.prod(axis=1)
    last = compute > compute.max() / factor * (1 + 1e-9)
    inside = np.flatnonzero(~last)
    if few is not None:
        inside = rng.choice(inside, few, replace=False)
    try:
        found = predict_downstream(runs.select(np.isin(runs.groups, inside)), COLUMNS, ends.size[last])
    except InputError:
        return None
    low, high, middle = (np.array([getattr(i, k) for i in found.accuracy]) for k in ("low", "high", "estimate"))
    truth = ends.end[last, 1]
    error = np.abs(middle - truth)
    return float(((low <= truth) & (truth <= high)).mean()), float(np.median(high - low)), float(np.median(error))


def drift() -> dict[str, Any]:
    """Median drift over the tasks that rise."""
    found: dict[str, list[float]] = {"gadre": [], "ladder": []}
    for source, _, runs in (*gadre(), *ladder()):
        try:
            predict_downstream(runs, COLUMNS, (1e10, 1e12))  # refuses tasks that do not rise
        except InputError:
            continue
        found[source.split()[0]].append(steps._Steps(steps._collect(runs, *COLUMNS), None).drift)
    return {
        "benchmark": "drift of accuracy per factor e of loss",
        "median": {k: round(float(np.median(v)), 3) for k, v in found.items()},
        "quartiles": {k: [round(float(q), 3) for q in np.quantile(v, [0.25, 0.75])] for k, v in found.items()},
        "tasks": {k: len(v) for k, v in found.items()},
        "in the library": steps.DRIFT,
    }


def targets() -> dict[str, Any]:
    """Predict the two large models of the ladder from the sixteen runs of the published fit."""
    runs = {task: runs for _, task, runs in ladder(PUBLISHED)}
    reached: dict[str, dict[str, float]] = {"7B": {}, "13B": {}}
    printed: dict[str, float] = {}
    table = pd.read_csv(DATA / "ladder" / "published_chained_main.csv").set_index("Task")
    for task, name in ((t, t.removesuffix("_5shot")) for t in table.index if not t.startswith("mmlu")):
        reached["13B"][name], printed[name] = float(table.Actual[task]), float(table["Rel Error"][task])
    errors = pd.read_csv(DATA / "ladder" / "published_variance.csv").set_index("Task")
    results: dict[str, Any] = {"benchmark": "the 7B and 13B models of OLMo's ladder", "level": 95}
    for size, at in (("7B", AT_7B), ("13B", AT_13B)):
        rows: dict[str, dict[str, Any]] = {}
        for label, name in SEVEN.items():
            if size == "13B" and name not in reached["13B"]:
                continue
            try:
                found = predict_downstream(runs[name], COLUMNS, at)
            except InputError:
                rows[name] = {"refused": "no run is above chance"}
                continue
            if size == "7B":
                # Relative errors are predicted over actual, less 1: first of the loss, then of the curve at that loss.
                loss = found.loss.estimate / (1 + errors["7B Loss Rel Error"][label])
                curve = steps._accuracy(np.array(list(found.sigmoid.values())), np.array([loss]))[0]
                reached["7B"][name] = float(curve) / (1 + errors["7B Accuracy Rel Error"][label])
            published = float(errors["7B Stacked Rel Error"][label]) if size == "7B" else printed[name]
            i = found.accuracy
            gap = abs(i.estimate / reached[size][name] - 1)
            rows[name] = {
                "accuracy": [round(v, 3) for v in (i.estimate, i.low, i.high)],
                "reached": round(reached[size][name], 3),
                "inside": reached[size][name] in i,
                "error, published error": [round(gap, 4), round(published, 4)],
            }
        predicted = [row["inside"] for row in rows.values() if "inside" in row]
        results[size] = {"inside": f"{sum(predicted)} of {len(predicted)}", **rows}
    return results


if __name__ == "__main__":
    main()
