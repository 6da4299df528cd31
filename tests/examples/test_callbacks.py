"""The examples that put runs from other people's loops into a store, run as a reader would."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import curvewise as cw
from curvewise.store.read import list_runs, read_run

CALLBACKS = Path(__file__).parents[2] / "examples" / "callbacks"
NEEDS = {
    "own_loop": ("torch", "sklearn"),
    "lightning_callback": ("torch", "sklearn", "lightning"),
    "hf_callback": ("torch", "transformers", "accelerate"),
}
STORES = {
    "own_loop": ("own-loop-runs", "mlp-32"),
    "lightning_callback": ("lightning-runs", "mlp-32"),
    "hf_callback": ("hf-runs", "bert-tiny"),
}
# One process for both, because importing Lightning takes longer than all trainings together.
BROKEN = """
def broken(self, batch, index): raise RuntimeError("no luck today")
made["Network"].training_step = broken
try:
    made["main"](store="failed-runs", seeds=1)
except RuntimeError:
    print("it failed")
"""


def need(script: str) -> None:
    for package in NEEDS[script]:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{script}.py needs {package}, which is not installed: pip install {package}")


def start(where: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    quiet = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=where,
        env=os.environ | quiet,
        capture_output=True,
        encoding="utf-8",
        timeout=1800,
        check=False,
    )


@pytest.mark.parametrize("script", NEEDS)
def test_example_stores_runs_that_the_lenses_read(tmp_path, script):
    need(script)
    file = str(CALLBACKS / f"{script}.py")
    again = BROKEN if script == "lightning_callback" else ""
    code = f"import runpy; made = runpy.run_path({file!r}, run_name='__main__'){again}"
    done = start(tmp_path, "-c", code)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "the mean error is" in done.stdout
    folder, learner = STORES[script]
    runs = [read_run(run.path) for run in list_runs(tmp_path / folder)]
    assert sorted(run.coordinates["seed"] for run in runs) == list(range(6))
    predictions = cw.load_predictions(tmp_path / folder, learner=learner)
    assert predictions.shape == (6, len(runs[0].predictions))
    for run in runs:
        labels = run.labels()
        assert run.status == "done"
        assert run.metrics["error"] == pytest.approx(np.mean(run.predictions != labels))
        assert run.metrics["error"] < 0.3  # it learned: a guess is wrong in half or in nine of ten
        assert 0 < run.metrics["loss"] < 1
    found = cw.decompose_variance(predictions)
    assert found.error.estimate == pytest.approx(np.mean([r.metrics["error"] for r in runs]))
    assert len({tuple(run.predictions.tolist()) for run in runs}) == 6  # seeds made a difference
    if again:
        (failed,) = list_runs(tmp_path / "failed-runs")
        assert "it failed" in done.stdout
        assert failed.status == "failed"
        assert "no luck today" in failed.error
