"""Trials of Optuna, MLflow and W&B, as tables."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import curvewise as cw
from curvewise.errors import CurvewiseWarning, InputError
from curvewise.scaling import expected_best, load_trials

VALUES = [0.30, 0.22, 0.41, 0.25, 0.28]
RATES = [0.1, 0.01, 1.0, 0.03, 0.05]


def optuna_frame() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "number": [1, 0, 2, 3, 4, 5],
            "value": [*VALUES, None],
            "datetime_start": pd.Timestamp("2024-01-01"),
            "params_lr": [*RATES, 10.0],
            "params_kind": ["a", "b", "a", "a", "b", "a"],
            "state": ["COMPLETE"] * 5 + ["PRUNED"],
        }
    )


def test_a_frame_of_optuna_is_read_in_the_order_of_trials():
    trials = load_trials(optuna_frame(), higher_is_better=False)
    assert trials.scores.tolist() == [0.22, 0.30, 0.41, 0.25, 0.28]
    assert trials.settings == {"lr": (0.01, 1.0), "kind": ("a", "b")}
    assert trials.lost == 0
    assert "pruned" in trials.warnings[0]
    with pytest.raises(InputError, match="does not say whether higher is better"):
        load_trials(optuna_frame())


def test_a_study_says_its_direction_and_its_sampler():
    optuna = pytest.importorskip("optuna")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    found = {}
    for sampler in (optuna.samplers.RandomSampler(seed=0), optuna.samplers.TPESampler(seed=0)):
        study = optuna.create_study(direction="minimize", sampler=sampler, study_name="search")
        study.optimize(lambda trial: (trial.suggest_float("x", -1, 1)) ** 2, n_trials=12)
        found[type(sampler).__name__] = load_trials(study)
    random, adaptive = found["RandomSampler"], found["TPESampler"]
    assert not random.higher_is_better
    assert random.name == "search"
    assert len(random) == 12
    assert set(random.settings) == {"x"}
    assert not random.warnings
    assert "TPESampler" in adaptive.warnings[0]
    with pytest.raises(InputError, match="minimizes"):
        load_trials(study, higher_is_better=True)


def test_runs_of_mlflow_and_wandb_are_read():
    mlflow = pd.DataFrame(
        {
            "run_id": list("abcde"),
            "status": ["FINISHED"] * 4 + ["FAILED"],
            "metrics.val_acc": VALUES,
            "params.lr": [str(v) for v in RATES],
            "tags.mlflow.user": "someone",
        }
    )
    trials = load_trials(mlflow)
    assert trials.scores.tolist() == VALUES[:4]
    assert trials.higher_is_better
    assert trials.lost == 1
    assert trials.settings == {"lr": (0.01, 1.0)}
    wandb = pd.DataFrame(
        {
            "name": list("abcde"),
            "state": "finished",
            "config": [{"lr": v} for v in RATES],
            "summary": [{"val_loss": v, "_step": 3} for v in VALUES],
        }
    )
    trials = load_trials(wandb)
    assert trials.scores.tolist() == VALUES
    assert not trials.higher_is_better
    assert trials.settings == {"lr": (0.01, 1.0)}


def test_unequal_spaces_are_warned_of():
    r = np.random.default_rng(0)
    base = {"accuracy": r.random(20).tolist(), "trial": list(range(20))}
    a = pd.DataFrame(base | {"lr": np.geomspace(1e-4, 1e-1, 20), "dropout": np.linspace(0, 0.5, 20)})
    b = pd.DataFrame(base | {"lr": np.geomspace(1e-3, 1e-2, 20)})
    with pytest.warns(CurvewiseWarning) as seen:
        cw.compare_tuned(a, b, names=("wide", "narrow"))
    text = " ".join(str(w.message) for w in seen)
    assert "only wide 'dropout'" in text
    assert "'lr' over unequal ranges" in text
    same = cw.compare_tuned(a, a.assign(accuracy=r.random(20)))
    assert not same.warnings


def test_a_file_gives_the_same_as_its_column(tmp_path):
    path = tmp_path / "trials.csv"
    pd.DataFrame({"accuracy": VALUES}).to_csv(path, index=False)
    np.testing.assert_array_equal(expected_best(path).expected, expected_best(VALUES).expected)


def test_a_series_of_polars_is_read_like_one_of_pandas():
    pl = pytest.importorskip("polars")
    for value in (pl.Series("loss", [0.5, None, 0.7]), pd.Series([0.5, None, 0.7], name="loss")):
        trials = load_trials(value)
        assert (trials.scores.tolist(), trials.higher_is_better, trials.lost) == ([0.5, 0.7], False, 1)
