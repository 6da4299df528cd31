"""Time leaderboards and scores of evaluations, beside evalstats, evalci and statsmodels where these are installed.

    python benchmarks/evals_speed.py                # both parts
    python benchmarks/evals_speed.py leaderboard    # 28 models × 500 questions, about a minute with all peers
    python benchmarks/evals_speed.py large          # 200 models × 10,000 questions × 10 samples

Each part prints one JSON line: seconds of CPU, peak memory and, for peers, how many times as long they take. All run in
one process on the same answers. `agreement` counts pairs on which the exact test of statsmodels has the same p-value.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import contextlib
import io
import json
import resource
import sys
import time
import warnings
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

# Other packages import one called coverage, which must not be the benchmark beside this one.
sys.path = [p for p in sys.path if Path(p or ".").resolve() != Path(__file__).resolve().parent]

import numpy as np

import curvewise as cw


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}; all by default")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in asked.parts or PARTS:
        line = {"benchmark": "evals_speed", "part": name, **PARTS[name]()}
        line["peak_gb"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2)
        print(json.dumps(line), flush=True)


def simulate(models: int, questions: int, samples: int) -> cw.Evals:
    """Answers of models of different skill to questions of different difficulty."""
    rng = np.random.default_rng(0)
    hard, skill = rng.normal(0, 1.5, questions), rng.normal(0.8, 0.6, models)
    scores = np.empty((models, questions, samples))
    for m in range(models):
        chance = 1 / (1 + np.exp(hard - skill[m]))
        scores[m] = rng.random((questions, samples), dtype=np.float32) < chance[:, None]
    return cw.Evals(scores, tuple(f"m{m:03d}" for m in range(models)), np.array([f"q{q}" for q in range(questions)]))


def seconds(run: Callable[[], object]) -> float:
    """CPU seconds of one call, its output thrown away."""
    with contextlib.redirect_stdout(io.StringIO()):
        start = time.process_time()
        run()
    return time.process_time() - start


def leaderboard() -> dict[str, object]:
    """28 models on 500 questions, single answers: scores, all pairs, Holm, ranks."""
    e = simulate(28, 500, 1)
    cw.rank_models(e.select(["m000", "m001"]))  # imports
    own = seconds(lambda: cw.rank_models(e))
    line: dict[str, object] = {"models": 28, "questions": 500, "curvewise": round(own, 4)}
    ranked = cw.rank_models(e).pair_columns()
    for name, peer in (("statsmodels", by_statsmodels), ("evalci", by_evalci), ("evalstats", by_evalstats)):
        try:
            run = peer(e)
        except ImportError as error:
            line[name] = f"not installed: {error.name}"
            continue
        taken = seconds(run)
        line[name], line[f"{name}_ratio"] = round(taken, 3), round(taken / own)
        if name == "statsmodels":
            theirs = run()
            pairs = zip(ranked["a"], ranked["b"], ranked["pvalue"], strict=True)
            line["agreement"] = sum(int(abs(theirs[frozenset((a, b))] - p) < 1e-9) for a, b, p in pairs)
    return line


def by_statsmodels(e: cw.Evals) -> Callable[[], dict[frozenset[str], float]]:
    """Exact McNemar tests, Wilson intervals and Holm's adjustment, pair by pair."""
    from statsmodels.stats.contingency_tables import mcnemar
    from statsmodels.stats.multitest import multipletests
    from statsmodels.stats.proportion import proportion_confint

    answers = e.scores[:, :, 0].astype(bool)

    def run() -> dict[frozenset[str], float]:
        for row in answers:
            proportion_confint(row.sum(), len(row), method="wilson")
        found = {}
        for (one, a), (two, b) in combinations(zip(e.models, answers, strict=True), 2):
            table = [[(a & b).sum(), (a & ~b).sum()], [(~a & b).sum(), (~a & ~b).sum()]]
            found[frozenset((one, two))] = float(mcnemar(table, exact=True).pvalue)
        multipletests(list(found.values()), method="holm")
        return found

    return run


def by_evalci(e: cw.Evals) -> Callable[[], object]:
    """All pairs by evalci, with its own defaults."""
    import evalci

    frame = e.frame().rename(columns={"question": "item_id"})[["item_id", "model", "score"]]
    return lambda: evalci.multi_compare(frame, correction="holm")


def by_evalstats(e: cw.Evals) -> Callable[[], object]:
    """All pairs by evalstats, with its own defaults."""
    import evalstats

    frame = e.frame().rename(columns={"question": "item"})[["model", "item", "score"]]
    return lambda: evalstats.compare(evalstats.load_from(frame), factors="model")


def large() -> dict[str, object]:
    """200 models on 10,000 questions, ten samples of each: scores, pass@5, and all 19,900 pairs."""
    e = simulate(200, 10_000, 10)
    line: dict[str, object] = {"models": 200, "questions": 10_000, "samples": 10, "pairs": 19_900}
    line["score_evals"] = round(seconds(lambda: cw.score_evals(e)), 2)
    line["score_evals pass@5"] = round(seconds(lambda: cw.score_evals(e, "pass@5")), 2)
    line["rank_models"] = round(seconds(lambda: cw.rank_models(e)), 2)
    line["rank_models pass^4"] = round(seconds(lambda: cw.rank_models(e, "pass^4")), 2)
    tasks = np.arange(10_000) % 57
    clustered = cw.Evals(e.scores, e.models, e.questions, groups=np.arange(10_000) // 7, tasks=tasks)
    line["rank_models, groups and tasks"] = round(seconds(lambda: cw.rank_models(clustered, average="tasks")), 2)
    return line


PARTS: dict[str, Callable[[], dict[str, object]]] = {"leaderboard": leaderboard, "large": large}

if __name__ == "__main__":
    main()
