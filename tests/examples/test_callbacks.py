"""The examples that store runs from other training loops, run as a reader would, and read by the commands."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import curvewise as cw
from curvewise.cli.app import main
from curvewise.store.read import list_runs, read_run

CALLBACKS = Path(__file__).parents[2] / "examples" / "callbacks"
STORES = {
    "own_loop": ("own-loop-runs", "mlp-32", {400: 6}),
    "lightning_callback": ("lightning-runs", "mlp-32", {100: 5, 200: 5, 400: 5}),
    "hf_callback": ("hf-runs", "bert-tiny", {300: 5}),
}
# All in one process, because importing the libraries takes longer than all trainings together. After the examples, two
# trainings that go wrong with each library.
RUN = f"""
import os, runpy, torch
made = {{name: runpy.run_path({str(CALLBACKS)!r} + f"/{{name}}.py", run_name="__main__") for name in {list(STORES)}}}

def raises(self, batch, index): raise RuntimeError("out of memory")
def diverges(self, *inputs, **more): return self.layers(*inputs) * float("nan")
def attempt(main, store):
    try: main(store=store, seeds=1)
    except Exception as error: print("stopped:", type(error).__name__, error)
network = made["lightning_callback"]["Network"]
network.training_step, working = raises, network.training_step
attempt(made["lightning_callback"]["main"], "raised-runs")
network.training_step, network.forward = working, diverges
attempt(made["lightning_callback"]["main"], "diverged-runs")

Bert = made["hf_callback"]["BertForSequenceClassification"]
class Diverged(Bert):
    def __init__(self, config):
        super().__init__(config)
        torch.nn.init.constant_(self.classifier.bias, float("nan"))
made["hf_callback"]["main"].__globals__["BertForSequenceClassification"] = Diverged
attempt(made["hf_callback"]["main"], "diverged-hf-runs")
"""


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """A folder with the stores of all examples."""
    for package in ("torch", "sklearn", "lightning", "transformers", "accelerate"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"the examples need {package}, which is not installed")
    folder = tmp_path_factory.mktemp("callbacks")
    quiet = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        cwd=folder,
        env=os.environ | quiet,
        capture_output=True,
        encoding="utf-8",
        timeout=1800,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "stopped: RuntimeError out of memory" in done.stdout
    return folder


@pytest.mark.parametrize("example", STORES)
def test_runs_are_complete(stores, example):
    name, learner, sizes = STORES[example]
    runs = [read_run(run.path) for run in list_runs(stores / name)]
    assert {run.coordinates["learner"] for run in runs} == {learner}
    for n, seeds in sizes.items():
        alike = [run for run in runs if run.coordinates["n"] == n]
        assert sorted(run.coordinates["seed"] for run in alike) == list(range(seeds))
        assert len({tuple(run.predictions.tolist()) for run in alike}) == seeds  # seeds made a difference
    for run in runs:
        assert run.status == "done"
        assert run.metrics["error"] == pytest.approx(np.mean(run.predictions != run.labels()))
        assert run.metrics["error"] < 0.4  # it learned: a guess is wrong in half or in nine of ten
        assert 0 < run.metrics["loss"] < 2
    largest = max(sizes)
    found = cw.decompose_variance(cw.load_predictions(stores / name, where={"n": largest}))
    errors = [run.metrics["error"] for run in runs if run.coordinates["n"] == largest]
    assert found.error.estimate == pytest.approx(np.mean(errors))


def test_commands_read_what_a_callback_stored(stores, capsys):
    assert main(["learning", "fit", str(stores / "lightning-runs"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["curves"]["mlp-32"]["runs"] == [5, 5, 5]
    for name, where in (("lightning-runs", ["--where", "n=400"]), ("hf-runs", [])):
        assert main(["variance", "decompose", str(stores / name), *where, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["runs"] == 5


@pytest.mark.parametrize("store", ["raised-runs", "diverged-runs", "diverged-hf-runs"])
def test_failed_trainings_are_stored_with_the_reason(stores, store):
    first = min(list_runs(stores / store), key=lambda run: run.coordinates["n"])
    assert first.status == "failed"
    assert first.coordinates["seed"] == 0
    assert ("out of memory" if store == "raised-runs" else "diverged: the network predicts NaN") in first.error
