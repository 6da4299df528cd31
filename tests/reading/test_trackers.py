"""Exports of experiment trackers, built to the shapes that the trackers document."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.learning.load import load_measurements
from curvewise.variance.scores import load_scores

SIZES = [100, 100, 200, 200, 400, 400]
ERRORS = [0.30, 0.32, 0.20, 0.22, 0.12, 0.13]


def mlflow_runs() -> pd.DataFrame:
    """Like mlflow.search_runs(): params are text, metrics floats; one run failed, one goes on."""
    status = ["FINISHED"] * 6 + ["FAILED", "RUNNING"]
    start = pd.to_datetime(["2026-01-01"] * 8, utc=True)
    return pd.DataFrame(
        {
            "run_id": [f"{i:032x}" for i in range(8)],
            "experiment_id": ["0"] * 8,
            "status": status,
            "artifact_uri": [f"file:///mlruns/0/{i}" for i in range(8)],
            "start_time": start,
            "end_time": [*start[:7], pd.NaT],
            "metrics.val_error": [*ERRORS, 0.9, 0.5],
            "params.n": [*map(str, SIZES), "100", "200"],
            "params.seed": list("01010101"),
            "params.model": ["net"] * 8,
            "params.lr": ["0.1"] * 7 + [None],
            "tags.mlflow.runName": [f"gifted-shrimp-{i}" for i in range(8)],
            "tags.mlflow.user": ["me"] * 8,
            "tags.mlflow.source.name": ["train.py"] * 8,
        }
    )


def check(m, left_out: str, learner: str = "net"):
    assert m.n.tolist() == SIZES
    np.testing.assert_allclose(m.error, ERRORS)
    assert set(m.learner.tolist()) == {learner}
    assert any(left_out in note for note in m.notes), m.notes


@pytest.mark.parametrize("make", [lambda f: f, pl.from_pandas, lambda f: f.to_dict("records")])
def test_mlflow(make):
    m = load_measurements(make(mlflow_runs()), tracker="mlflow")
    check(m, "2 of 8 rows left out by column 'status': 1 failed, 1 running")
    assert m.labels["seed"].tolist() == [0, 1, 0, 1, 0, 1]
    assert m.labels["lr"].tolist() == [0.1] * 6
    assert m.labels["run_name"][0] == "gifted-shrimp-0"
    assert set(m.labels) == {"seed", "lr", "run_name", "run_id"}
    assert not any("not part of the learner's name" in note for note in m.notes)


def test_mlflow_from_a_file(tmp_path):
    mlflow_runs().to_csv(tmp_path / "runs.csv", index=False)
    m = load_measurements(tmp_path / "runs.csv", tracker="mlflow")
    check(m, "2 of 8 rows left out")


@pytest.mark.parametrize("tracker", [None, "mlflow"])
def test_a_column_map_alone_leaves_out_the_same_runs(tracker):
    columns = {"n": "params.n", "value": "metrics.val_error", "learner": "params.model"}
    m = load_measurements(mlflow_runs(), columns=columns, tracker=tracker)
    check(m, "2 of 8 rows left out by column 'status'")


def test_several_metrics_are_asked_about_and_chosen_by_either_name():
    runs = mlflow_runs().rename(columns={"metrics.val_error": "metrics.val_acc"})
    runs["metrics.val_acc"] = 1 - runs["metrics.val_acc"]
    runs["metrics.train_loss"] = 1.5
    with pytest.raises(InputError, match="'val_acc', 'train_loss'"):
        load_measurements(runs, tracker="mlflow")
    for name in ("val_acc", "metrics.val_acc"):
        check(load_measurements(runs, tracker="mlflow", columns={"value": name}), "2 of 8")


def test_a_short_name_that_two_columns_would_have_stays_long():
    runs = mlflow_runs()
    runs["tags.model"] = "other"
    runs["metrics.n"] = 1.0
    with pytest.raises(InputError, match=r"'metrics.n', 'params.n'|No column .* size"):
        load_measurements(runs, tracker="mlflow")
    columns = {"n": "params.n", "learner": "params.model"}
    m = load_measurements(runs, tracker="mlflow", columns=columns)
    check(m, "2 of 8")
    assert m.labels["metrics.n"].tolist() == [1.0] * 6
    kept = load_measurements(runs, tracker="mlflow", columns={**columns, "split": "experiment_id"})
    assert kept.labels["split"].tolist() == [0] * 6


def wandb_records() -> list[dict]:
    """Like the attributes of wandb.Api().runs(…)."""
    state = ["finished"] * 6 + ["crashed", "running", "killed"]
    error = [*ERRORS, 0.9, 0.9, None]
    return [
        {
            "name": f"rosy-sweep-{i}",
            "state": state[i],
            "config": {
                "n": [*SIZES, 100, 100, 100][i],
                "seed": i,
                "optimiser": {"name": "sgd", "lr": 0.1},
                "layers": [64, 64],
                "_wandb": {"cli": 1},
            },
            "summary": {"val_acc": None if error[i] is None else 1 - error[i], "_step": 9},
        }
        for i in range(9)
    ]


def as_saved(records, tmp_path):
    """What the tracker's guide saves: a frame with dicts as cells, written as text."""
    pd.DataFrame(records).to_csv(tmp_path / "project.csv")
    return tmp_path / "project.csv"


@pytest.mark.parametrize(
    "make", [lambda r, _: r, lambda r, _: pd.DataFrame(r), lambda r, _: pd.json_normalize(r), as_saved]
)
def test_weights_and_biases(make, tmp_path):
    m = load_measurements(make(wandb_records(), tmp_path), tracker="wandb")
    label = m.learner[0]  # a run's own name is no learner
    check(m, "3 of 9 rows left out by column 'state': 1 crashed, 1 running, 1 killed", label)
    assert label in ("learner", "project")
    assert m.labels["seed"].tolist() == list(range(6))
    assert m.labels["optimiser.lr"].tolist() == [0.1] * 6
    assert m.labels["run_name"][5] == "rosy-sweep-5"
    assert not any(name.startswith(("_", "config", "summary")) for name in m.labels)


def test_weights_and_biases_table_from_the_page(tmp_path):
    text = '"Name","State","Notes","User","Tags","Created","Runtime","Sweep","n","seed","val_acc"\n'
    rows = zip(SIZES, ERRORS, strict=True)
    for i, (n, error) in enumerate(rows):
        text += f'"run-{i}","finished","-","me","","2026-01-01","12","","{n}","{i}","{1 - error}"\n'
    text += '"run-6","failed","-","me","","2026-01-01","1","","100","6",""\n'
    (tmp_path / "export.csv").write_text(text)
    m = load_measurements(tmp_path / "export.csv", tracker="wandb")
    check(m, "1 of 7 rows left out by column 'State': 1 failed", "export")
    assert set(m.labels) == {"seed", "run_name"}


def test_a_cell_that_is_no_dict_is_named():
    records = wandb_records()
    records[2]["config"] = "__import__('os').getcwd()"
    with pytest.raises(InputError, match=r"Row 3 in column 'config'.*not a dict"):
        load_measurements(records, tracker="wandb")


def optuna_trials() -> pd.DataFrame:
    """Like study.trials_dataframe(): a pruned trial has the value that it had come to."""
    return pd.DataFrame(
        {
            "number": range(9),
            "value": [*ERRORS, 0.41, None, None],
            "datetime_start": pd.to_datetime(["2026-01-01"] * 9),
            "datetime_complete": pd.to_datetime(["2026-01-02"] * 8 + [None]),
            "duration": pd.to_timedelta([1] * 8 + [None], unit="s"),
            "params_n": [*SIZES, 100, 100, 400],
            "params_seed": range(9),
            "user_attrs_model": ["net"] * 9,
            "system_attrs_key": ["x"] * 9,
            "state": ["COMPLETE"] * 6 + ["PRUNED", "FAIL", "RUNNING"],
        }
    )


def test_optuna():
    with pytest.raises(InputError, match="does not say whether higher is better: pass higher_is_better=True"):
        load_measurements(optuna_trials(), tracker="optuna")
    m = load_measurements(optuna_trials(), tracker="optuna", higher_is_better=False)
    check(m, "3 of 9 rows left out by column 'state': 1 pruned, 1 fail, 1 running")
    assert set(m.labels) == {"seed", "trial"}
    named = optuna_trials().rename(columns={"value": "value_accuracy"})
    named["value_accuracy"] = 1 - named["value_accuracy"]
    check(load_measurements(named, tracker="optuna"), "3 of 9")


def test_all_rows_can_be_taken_on_purpose():
    options = {"tracker": "optuna", "columns": {"status": None}, "higher_is_better": False}
    with pytest.raises(InputError, match="drop_failed=True"):
        load_measurements(optuna_trials(), **options)
    m = load_measurements(optuna_trials(), **options, drop_failed=True)
    assert len(m) == 7
    assert 0.41 in m.error
    assert m.labels["state"][6] == "PRUNED"


def test_a_state_that_is_no_status_is_a_label():
    rows = {"n": [1, 2, 3], "error": [0.3, 0.2, 0.1], "state": ["Ohio", "failed", "Utah"]}
    m = load_measurements(rows)
    assert len(m) == 3
    assert m.labels["state"].tolist() == rows["state"]
    with pytest.raises(InputError, match="'ohio', 'utah', which is no known status"):
        load_measurements(rows, columns={"status": "state"})


def test_rows_without_a_status_and_tables_without_a_finished_row():
    rows = {"n": [1, 2], "error": [0.3, 0.2], "status": ["done", None]}
    m = load_measurements(rows)
    assert m.n.tolist() == [1]
    assert any("1 without a status" in note for note in m.notes)
    with pytest.raises(InputError, match=r"None of the 2 rows .* is finished: 1 failed, 1 running"):
        load_measurements({**rows, "status": ["failed", "running"]})


def test_unknown_trackers_are_refused():
    with pytest.raises(InputError, match=r"tracker='neptune'.*'mlflow', 'wandb', 'optuna'"):
        load_measurements(mlflow_runs(), tracker="neptune")


def test_scores_leave_out_unfinished_runs_too():
    runs = mlflow_runs()[["status", "metrics.val_error", "params.model"]]
    with pytest.warns(CurvewiseWarning, match="2 row.* not finished and are left out: 7, 8"):
        scores = load_scores(runs, by="params.model", value="metrics.val_error")
    np.testing.assert_allclose(scores["net"], ERRORS)
