"""Tables for papers: Python and the command line write the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import curvewise as cw

EXAMPLES = Path(__file__).parents[2] / "examples"


def written(result):
    text = result.to_latex()
    assert text.startswith("% needs \\usepackage{booktabs}\n\\begin{tabular}")
    return text + "\n"


def test_a_comparison_of_runs(call):
    wide, narrow = EXAMPLES / "units128.npz", EXAMPLES / "units16.npz"
    result = cw.compare_runs(wide, narrow, names=("wide", "narrow"))
    found = call("variance", "compare", f"wide={wide}", f"narrow={narrow}", "--table", "latex").out
    assert found == written(result)
    assert r"\par{\footnotesize wide minus narrow (95\% intervals)\par}" in found
    assert call("variance", "compare", wide, narrow, "--table", "latex", "--level", "0.9").out.count(r"90\%") == 1


def test_a_ranking_of_checkpoints(call, tmp_path):
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], 400)
    np.save(tmp_path / "labels.npy", labels)
    pool = {name: labels[:, None] * k + rng.normal(size=(1200, 3)) for name, k in (("a", 1.0), ("b", 0.2))}
    for name, features in pool.items():
        np.save(tmp_path / f"{name}.npy", features)
    files = [f"{name}={tmp_path / name}.npy" for name in pool]
    options = ("--measures", "h-score", "--labels", tmp_path / "labels.npy", "--table", "latex")
    found = call("ranking", "rank", *files, *options).out
    assert found == written(cw.rank_features(pool, labels, "h-score"))
    assert r"Checkpoints by h-score, 1,200 examples (95\% intervals)" in found


@pytest.mark.parametrize("command", ["compare", "rank"])
def test_evaluations(call, command):
    logs = EXAMPLES / "evals" / "logs" / "math"
    evals = cw.load_evals(logs)
    pair = ("made/tuned-13b", "made/base-13b")
    named = ("--a", pair[0], "--b", pair[1]) if command == "compare" else ()
    result = cw.compare_evals(evals, *pair) if command == "compare" else cw.rank_models(evals)
    found = call("evals", command, logs, *named, "--table", "latex").out
    assert found == written(result)
    assert r"Estimates with 95\% intervals" in found


def test_tuned_methods(call):
    trials = EXAMPLES / "scaling" / "trials.csv"
    a, b = (cw.scaling.load_trials(trials, where={"model": name}, name=name) for name in ("baseline", "ours"))
    found = call("scaling", "tuned", trials, "--by", "model", "--a", "baseline", "--b", "ours", "--table", "latex").out
    assert found == written(cw.compare_tuned(a, b))
