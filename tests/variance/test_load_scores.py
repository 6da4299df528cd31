"""One score per run: by training, in the right direction, nothing dropped in silence."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import curvewise as cw
from curvewise.errors import CurvewiseWarning, InputError
from curvewise.variance.scores import load_scores

ROWS = {"model": ["a", "b", "a"], "size": ["s", "s", "l"], "val_loss": [3.0, 2.0, 4.0]}


def test_losses_by_training():
    scores = load_scores(ROWS, by="model", unit="loss")
    assert {k: v.tolist() for k, v in scores.items()} == {"a": [3.0, 4.0], "b": [2.0]}
    scores = load_scores(ROWS, by=["model", "size"], unit="loss")
    assert list(scores) == ["a / s", "b / s", "a / l"]


def test_accuracies_become_errors(tmp_path):
    pd.DataFrame({"seed": [1, 2], "acc": [75, 87.5]}).to_csv(tmp_path / "net.csv", index=False)
    scores = load_scores(tmp_path / "net.csv", unit="percent")
    assert {k: v.tolist() for k, v in scores.items()} == {"net": [25.0, 12.5]}
    with pytest.raises(InputError, match="higher_is_better=False contradicts the name 'acc'"):
        load_scores(tmp_path / "net.csv", unit="percent", higher_is_better=False)
    with pytest.raises(InputError, match="unit='percent'"):
        load_scores(tmp_path / "net.csv")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"by": "modle"}, "by='modle': the dict has no such column. Did you mean 'model'"),
        ({"value": "loss"}, "value='loss': the dict has no such column"),
        ({"by": "model"}, "Pass unit='percent'.* or unit='loss'"),
    ],
)
def test_mistakes(options, message):
    with pytest.raises(InputError, match=message):
        load_scores(ROWS, **options)


def test_the_value_is_asked_for():
    with pytest.raises(InputError, match=r"2 columns .* value=….* 'loss', 'acc'"):
        load_scores({"loss": [1, 2], "acc": [0.1, 0.2]})
    with pytest.raises(InputError, match=r"No column .* It has 'a', 'b'"):
        load_scores({"a": [1, 2], "b": [0.1, 0.2]})


def test_rows_that_are_no_runs_are_warned_of():
    rows = {"run": ["1", "2", "", "Mean", "Std. dev."], "error": [0.1, 0.3, None, 0.2, 0.1]}
    with pytest.warns(CurvewiseWarning) as caught:
        scores = load_scores(rows)
    assert scores["learner"].tolist() == [0.1, 0.3]
    said = [str(w.message) for w in caught]
    assert "1 row(s) of the dict hold no value and are left out: 3" in said
    assert "2 row(s) of the dict are summaries by their names, not runs, and are left out: 4, 5" in said
    assert caught[0].filename == __file__


def test_a_training_may_be_called_mean():
    scores = load_scores({"model": ["mean", "net"], "error": [0.2, 0.1]}, by="model")
    assert list(scores) == ["mean", "net"]


def test_failed_runs_are_refused():
    with pytest.raises(InputError, match="NaN or infinite"):
        load_scores({"seed": ["1", "2"], "error": ["0.1", "nan"]})
    with (
        pytest.warns(CurvewiseWarning, match="hold no value"),
        pytest.raises(InputError, match="No row of the dict has a value in column 'error'"),
    ):
        load_scores({"seed": ["1", "2"], "error": [None, ""]})


def test_real_losses(data_dir):
    path = data_dir / "variance" / "modded_nanogpt_final_val_losses.csv"
    scores = load_scores(path, by="record_dir", unit="loss")
    frame = pd.read_csv(path)
    assert list(scores) == frame["record_dir"].unique().tolist()
    for name, losses in frame.groupby("record_dir")["final_val_loss"]:
        np.testing.assert_array_equal(scores[name], losses)


def test_real_accuracies_with_summaries_below(data_dir):
    path = data_dir / "variance" / "berts_of_a_feather_accuracies_by_run.csv"
    with pytest.warns(CurvewiseWarning) as caught:
        scores = load_scores(path, value="MNLI dev acc.")
    frame = pd.read_csv(path, encoding="utf-8-sig").iloc[:100]
    (errors,) = scores.values()
    np.testing.assert_allclose(errors, 1 - frame["MNLI dev acc."].astype(float))
    assert [str(w.message).split()[0] for w in caught] == ["7", "4"]


def test_one_column_with_or_without_a_name(tmp_path):
    (tmp_path / "named.csv").write_text("accuracy\n0.9\n0.8\n")
    (tmp_path / "plain.txt").write_text("9.0e-01\n8.0e-01\n")
    (tmp_path / "odd.csv").write_text("wrong runs\n3\n4\n")
    np.testing.assert_allclose(load_scores(tmp_path / "named.csv")["named"], [0.1, 0.2])
    with pytest.raises(InputError, match="does not say whether higher is better"):
        load_scores(tmp_path / "plain.txt")
    plain = load_scores(tmp_path / "plain.txt", higher_is_better=False)
    np.testing.assert_allclose(plain["plain"], [0.9, 0.8])
    np.testing.assert_allclose(load_scores(tmp_path / "odd.csv", unit="loss")["odd"], [3, 4])


def test_a_run_that_is_there_twice_is_refused():
    rows = {"model": ["a", "a", "a"], "seed": [1, 2, 1], "acc": [0.5, 0.6, 0.5]}
    with pytest.raises(InputError, match=r"Rows 1 and 3 of .* are the same run"):
        load_scores(rows, by="model")
    assert len(load_scores(rows | {"seed": [1, 1, 1]}, by="model")["a"]) == 3
    assert len(load_scores(rows | {"model": ["a", "a", "b"]}, by="model")["a"]) == 2


def _scores(**further: Any) -> list[dict[str, Any]]:
    return [
        {"model": m, "seed": s, "accuracy": a - s / 100, **further}
        for m, a in (("new", 0.9), ("old", 0.8))
        for s in range(3)
    ]


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (_scores(split="train") + _scores(split="test"), "names 2 splits"),
        (_scores(metric="accuracy") + _scores(metric="f1"), "names 2 metrics"),
        (_scores(epoch=1) + _scores(epoch=2), "same run .* differ in 'epoch'"),
        ([{**r, "index": i} for i, r in enumerate(_scores() + _scores())], "same run .* remove one of them"),
        ([{**r, "seed": ""} for r in _scores() + _scores()], "there 2 times"),
        ([{**r, "seed": ""} for r in _scores(epoch=1) + _scores(epoch=2)], "differ in 'epoch'"),
    ],
)
def test_rows_that_are_no_runs_of_one_training_are_refused(rows: list[dict[str, Any]], reason: str) -> None:
    with pytest.raises(cw.InputError, match=reason):
        load_scores(rows, by="model")


def test_the_metric_says_whether_higher_is_better() -> None:
    rows = [{"model": r["model"], "value": r["accuracy"], "metric": "accuracy"} for r in _scores()]
    assert load_scores(rows, by="model", value="value")["new"] == pytest.approx([0.1, 0.11, 0.12])
    wrong = [{"model": r["model"], "score": 1 - r["accuracy"], "metric": "error"} for r in _scores()]
    with pytest.raises(cw.InputError, match="disagree on whether higher is better"):
        load_scores(wrong, by="model")


def test_accuracies_called_percent_that_are_fractions_are_asked_about() -> None:
    rows = {"acc (%)": [0.9, 0.91, 0.92]}
    with pytest.raises(cw.InputError, match="no value is above 1"):
        load_scores(rows)
    with pytest.raises(cw.InputError, match="no value is above 1"):
        cw.load_measurements({"n": [10, 20, 40], **rows})
    assert cw.load_measurements({"n": [10, 20, 40], **rows}, unit="percent").error == pytest.approx(
        [99.1, 99.09, 99.08]
    )


def test_subsets_of_the_training_data_are_no_splits() -> None:
    (errors,) = load_scores({"subset": ["a", "b"], "error": [0.1, 0.2]}).values()
    assert errors.tolist() == [0.1, 0.2]
