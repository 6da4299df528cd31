"""The corpora of models that the documentation is about."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import curvewise as cw

CORPUS = Path(__file__).parents[2] / "examples" / "corpus"
SETTINGS = ["depth", "width", "batch_norm", "batch", "rate"]


def test_the_files_agree_with_their_studies():
    study = cw.load_study(CORPUS / "invariance.toml")
    planned = {(job.settings["depth"], job.settings["batch_norm"], job.settings["batch"]) for job in study.jobs}
    for name in study.evaluate:
        models = cw.load_corpus(CORPUS / f"{name}.csv", hyperparameters=["depth", "batch_norm"])
        ids = {label.rpartition(", ")[2] for label in models.models}
        assert ids <= {job.id[:8] for job in study.jobs}
        assert len(models) == 3 * 16
    assert len(planned) == 8


def test_networks_that_fit_their_data_are_told_apart_by_their_response():
    models = cw.load_corpus(CORPUS / "cifar10.csv", hyperparameters=SETTINGS)
    assert len(models) == 58
    assert models.train_accuracy is not None
    fitted = models.select(models.train_accuracy >= 0.99)
    order = np.corrcoef(fitted.measures["gi-intra"], fitted.gap)[0, 1]
    assert order > 0.5  # a larger Gi-score, a larger gap
    assert np.corrcoef(models.measures["gi-intra"], models.train_accuracy)[0, 1] < -0.5


def test_the_subset_of_cifar_is_read_as_the_study_wants_it(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    arrays = {
        "x": rng.integers(256, size=(40, 3, 32, 32), dtype=np.uint8),
        "y": np.arange(40) % 10,
        "test_x": rng.integers(256, size=(20, 3, 32, 32), dtype=np.uint8),
        "test_y": np.arange(20) % 10,
    }
    np.savez(tmp_path / "cifar10-3000.npz", **arrays)
    (tmp_path / "cifar10.toml").write_text((CORPUS / "cifar10.toml").read_text())
    study = cw.load_study(tmp_path / "cifar10.toml")
    assert len(study.jobs) == 144
    assert study.examples.shape == (3, 32, 32)


@pytest.mark.parametrize("argument", ["--help", "nothing"])
def test_the_script_says_how_to_call_it(argument):
    done = subprocess.run([sys.executable, CORPUS / "run.py", argument], capture_output=True, text=True, check=False)
    assert done.returncode == (0 if argument == "--help" else 2)
    assert "generalization" in done.stdout + done.stderr
