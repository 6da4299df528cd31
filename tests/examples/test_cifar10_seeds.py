"""The committed errors of hundreds of networks on CIFAR-10, and the script that makes and reads them."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import curvewise as cw

FOLDER = Path(__file__).parents[2] / "examples" / "cifar10_seeds"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("cifar10_seeds_run", FOLDER / "run.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_luck_ends_with_training(script):
    short, full = (cw.decompose_variance(script.load_errors(epochs)) for epochs in (1, 8))
    assert (short.runs, full.runs, full.examples) == (200, 338, 10_000)
    # After one epoch a run that is better is better on new images, after eight it is not.
    assert short.share_interval.low > 0.85
    assert short.independence_pvalue < 0.001
    assert full.share_interval.low == 0
    assert full.independence_pvalue > 0.05
    assert full.error.estimate < short.error.estimate / 2


def test_errors_that_are_written_are_read_again(script, tmp_path):
    rng = np.random.default_rng(0)
    wrong = {name: rng.random((4, 37)) < 0.3 for name in script.SEEN}

    class Study:
        def predictions(self, epochs, evaluation):
            assert epochs == 8
            return cw.load_predictions(wrong[evaluation], kind="errors", axes=("runs", "examples"))

    script.save_errors(Study(), 8, tmp_path / "seeds_8.npz")
    for name in script.SEEN:
        np.testing.assert_array_equal(script.load_errors(8, name, tmp_path).errors(), wrong[name])


def test_the_study_is_the_recipe_at_three_lengths():
    study = cw.load_study(FOLDER / "seeds.toml")
    assert study.design.grid == {"epochs": [1, 8, 32]}
    assert study.learners == cw.study_recipe("variance-fast", "cifar10").learners
