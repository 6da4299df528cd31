"""Files and frames of runs."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

import curvewise as cw
from curvewise.errors import InputError
from curvewise.scaling import load_scaling_runs

quiet = pytest.mark.filterwarnings("ignore::curvewise.errors.CurvewiseWarning")


@quiet
@pytest.mark.parametrize("kind", ["dict", "pandas", "polars", "csv", "jsonl", "parquet"])
def test_the_same_law_from_any_table(made, tmp_path, kind):
    runs = made(noise=0.004)
    frame = pd.DataFrame(runs)
    if kind == "csv":
        frame.to_csv(tmp_path / "runs.csv", index=False)
    if kind == "jsonl":
        frame.to_json(tmp_path / "runs.jsonl", orient="records", lines=True, double_precision=15)
    if kind == "parquet":
        frame.to_parquet(tmp_path / "runs.parquet")
    tables = {"dict": runs, "pandas": frame, "polars": pl.DataFrame(runs)}
    source = tables.get(kind, tmp_path / f"runs.{kind}")
    read = load_scaling_runs(source)
    np.testing.assert_allclose(read.loss, runs["loss"], rtol=1e-12)
    assert cw.fit_scaling_law(read).alpha == pytest.approx(cw.fit_scaling_law(runs).alpha, rel=1e-9)
    if kind in tables:
        assert cw.fit_scaling_law(source).alpha == pytest.approx(cw.fit_scaling_law(runs).alpha, rel=1e-9)


def test_columns_by_other_names_and_counts_in_words():
    table = {
        "Model Size": ["190M", "1.3B", "7e9"],
        "train_tokens": ["4B", "1,000,000,000", "2T"],
        "final_loss": [3.0, 2.7, 2.0],
        "run_id": ["a", "b", "c"],
        "hellaswag": [0.3, 0.4, 0.7],
    }
    runs = load_scaling_runs(table)
    assert runs.params.tolist() == [1.9e8, 1.3e9, 7e9]
    assert runs.tokens.tolist() == [4e9, 1e9, 2e12]
    assert runs.run.tolist() == ["a", "b", "c"]
    assert runs.metrics["hellaswag"].tolist() == [0.3, 0.4, 0.7]
    assert "params from 'Model Size'" in runs.notes[0]


def test_two_losses_are_asked_about_and_can_be_named():
    table = {"params": [1e8, 1e9], "tokens": [1e9, 1e10], "val_loss": [3.0, 2.5], "test_loss": [3.1, 2.6]}
    with pytest.raises(InputError, match="loss"):
        load_scaling_runs(table)
    assert load_scaling_runs(table, columns={"loss": "test_loss"}).loss.tolist() == [3.1, 2.6]


def test_missing_columns_are_named():
    with pytest.raises(InputError, match="training tokens or the compute"):
        load_scaling_runs({"params": [1e8], "loss": [3.0]})
    with pytest.raises(InputError, match="parameters"):
        load_scaling_runs({"tokens": [1e9], "loss": [3.0]})
    with pytest.raises(InputError, match="empty in 1 rows"):
        load_scaling_runs({"params": [1e8, None], "tokens": [1e9, 1e9], "loss": [3.0, 2.9]})


def test_an_accuracy_by_its_name_is_refused():
    table = {"params": [1e8, 1e9], "tokens": [1e9, 1e10], "accuracy": [0.3, 0.5]}
    with pytest.raises(InputError, match="predict_downstream"):
        load_scaling_runs(table, columns={"loss": "accuracy"})


def test_rows_are_selected_and_diverged_ones_left_out():
    table = {
        "params": [1e8, 1e9, 1e9],
        "tokens": [1e9, 1e10, 2e10],
        "loss": [3.0, np.nan, 2.4],
        "corpus": ["c4", "c4", "pile"],
    }
    runs = load_scaling_runs(table)
    assert len(runs) == 2
    assert "1 row without a finite loss" in runs.warnings[0]
    assert load_scaling_runs(table, where={"corpus": "pile"}).loss.tolist() == [2.4]


def test_a_perplexity_by_its_name_becomes_a_loss(made):
    runs = made(noise=0.002)
    read = load_scaling_runs({"params": runs["params"], "tokens": runs["tokens"], "val_ppl": np.exp(runs["loss"])})
    np.testing.assert_allclose(read.loss, runs["loss"])


def test_settings_that_differ_are_warned_of(made) -> None:
    table = made() | {"schedule": ["cosine", "linear"] * 18, "label": [f"run {k}" for k in range(36)]}
    runs = load_scaling_runs(table)
    assert any("differ in 'schedule'" in text and "where={'schedule': 'cosine'}" in text for text in runs.warnings)
    assert not load_scaling_runs(table, where={"schedule": "cosine"}).warnings
    remarks = made() | {"remark": ["off centre", "twice", *[None] * 34]}
    assert not load_scaling_runs(remarks).warnings


@pytest.mark.parametrize(
    ("name", "is_loss"), [("val_ppl", False), ("blog_ppl", False), ("log_ppl", True), ("eval/LogPerplexity", True)]
)
def test_a_log_perplexity_is_a_loss(name, is_loss):
    runs = load_scaling_runs({"params": [1e8, 1e9], "tokens": [1e9, 1e10], name: [3.0, 2.5]}, columns={"loss": name})
    np.testing.assert_allclose(runs.loss, [3.0, 2.5] if is_loss else np.log([3.0, 2.5]))


def test_flags_are_true_or_false():
    table = {"params": [1e8, 1e9, 2e9], "tokens": [1e9, 1e10, 2e10], "loss": [3.0, 2.5, 2.4]}
    for given in (["yes", "no", None], ["True", "False", ""], [1, 0, 0], ["t", "f", "f"]):
        assert load_scaling_runs(table | {"outlier": given}).flagged.tolist() == [True, False, False]
    reasons = table | {"excluded": ["diverged", "", ""]}
    with pytest.raises(InputError, match="holds 'diverged': flags are true or false"):
        load_scaling_runs(reasons)
    assert load_scaling_runs(reasons, columns={"flagged": None}).flagged is None
