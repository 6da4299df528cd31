"""Tables of checkpoints in every form, and what is said of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from curvewise.errors import InputError
from curvewise.ranking.load import CheckpointScores, load_checkpoint_scores
from curvewise.store import write_run

NAMES, TASKS = ("a", "b", "c"), ("pets", "cars")


def rows() -> dict[str, list[Any]]:
    rng = np.random.default_rng(0)
    return {
        "model": [name for _ in TASKS for name in NAMES],
        "dataset": [task for task in TASKS for _ in NAMES],
        "accuracy": rng.uniform(0.5, 0.9, 6).round(4).tolist(),
        "nleep": rng.normal(size=6).tolist(),
        "logme": rng.normal(size=6).tolist(),
        "nleep_gflops": [12.0] * 6,
        "parameters": [25, 11, 60] * 2,
        "seed": [0] * 6,
        "notes": ["fine"] * 6,
    }


def long_rows() -> pd.DataFrame:
    frame = pd.DataFrame(rows()).drop(columns=["seed", "notes", "nleep_gflops"])
    keys = ["model", "dataset", "accuracy"]
    return frame.melt(keys, var_name="measure", value_name="score")


def check(table: CheckpointScores) -> None:
    told = rows()
    assert table.checkpoints.tolist() == told["model"]
    assert table.tasks is not None
    assert table.tasks.tolist() == told["dataset"]
    np.testing.assert_allclose(table.accuracy, told["accuracy"])
    assert set(table.scores) == {"nleep", "logme", "parameters"}
    for name, values in table.scores.items():
        np.testing.assert_allclose(values, told[name])
    assert table.baselines == ("parameters",)


@pytest.mark.parametrize("ending", ["csv", "tsv", "json", "jsonl", "parquet", "csv.gz"])
def test_every_kind_of_file(tmp_path: Path, ending: str) -> None:
    frame, path = pd.DataFrame(rows()), tmp_path / f"scores.{ending}"
    if ending.startswith(("csv", "tsv")):
        frame.to_csv(path, sep="\t" if ending == "tsv" else ",", index=False)
    elif ending == "parquet":
        frame.to_parquet(path)
    else:
        frame.to_json(path, orient="records", lines=ending == "jsonl")
    found = load_checkpoint_scores(path)
    check(found)
    np.testing.assert_array_equal(found.gflops["nleep"], 12.0)
    assert found.notes[0].endswith("left out: 'seed', 'notes'")
    assert found.notes[0].startswith("checkpoint from 'model'; task from 'dataset'")


@pytest.mark.parametrize("kind", ["pandas", "polars", "dict", "records"])
def test_every_kind_of_frame(kind: str) -> None:
    frame = pd.DataFrame(rows())
    given = {"pandas": frame, "polars": pl.DataFrame(rows()), "dict": rows(), "records": frame.to_dict("records")}
    check(load_checkpoint_scores(given[kind]))


def test_a_long_table_is_the_same() -> None:
    check(load_checkpoint_scores(long_rows()))
    mixed = load_checkpoint_scores(long_rows().sample(frac=1, random_state=1))
    keys = list(zip(mixed.tasks.tolist(), mixed.checkpoints.tolist(), strict=True))
    check(mixed.select([keys.index((t, n)) for t in TASKS for n in NAMES]))


def test_a_long_table_with_costs_and_gaps() -> None:
    frame = long_rows().assign(gflops=3.5)
    lost = (frame["measure"] == "logme") & (frame["model"] == "b")
    found = load_checkpoint_scores(frame[~lost])
    assert np.isnan(found.scores["logme"]).tolist() == [False, True, False] * 2
    np.testing.assert_array_equal(found.gflops["nleep"], 3.5)
    assert "2 of 6 rows have no 'logme'" in found.notes


def test_columns_by_the_users_word() -> None:
    renamed = pd.DataFrame(rows()).rename(columns={"model": "who", "dataset": "on", "accuracy": "y", "nleep": "x"})
    found = load_checkpoint_scores(
        renamed, columns={"checkpoint": "who", "task": "on", "accuracy": "y"}, measures=["x"], baselines=()
    )
    assert found.measures == ("x",)
    np.testing.assert_allclose(found.accuracy, rows()["accuracy"])
    with pytest.raises(InputError, match=r"has no such column\. Did you mean 'who'"):
        load_checkpoint_scores(renamed, columns={"checkpoint": "whom"})


@pytest.mark.parametrize("column", ["model", "dataset", "group"])
def test_an_empty_name_is_no_name(column: str) -> None:
    given = rows() | {"group": ["g"] * 6}
    given[column] = [*given[column][:3], "", *given[column][4:]]
    role = {"model": "checkpoint", "dataset": "task"}.get(column, column)
    with pytest.raises(InputError, match=f"names no {role} in row 4"):
        load_checkpoint_scores(given)


def test_scores_of_groups_stay_apart_when_joined() -> None:
    truth = pd.DataFrame({"model": ["a", "a"], "group": ["x", "y"], "accuracy": [0.5, 0.6]})
    scores = pd.DataFrame({"model": ["a", "a"], "group": ["y", "x"], "nleep": [1.0, 2.0]})
    found = load_checkpoint_scores(scores, accuracies=truth)
    assert found.scores["nleep"].tolist() == [2.0, 1.0]


def test_percentages_are_said() -> None:
    hundred = rows() | {"accuracy": [100 * v for v in rows()["accuracy"]]}
    with pytest.raises(InputError, match="which is no fraction: pass unit='percent'"):
        load_checkpoint_scores(hundred)
    check(load_checkpoint_scores(hundred, unit="percent"))
    loss = load_checkpoint_scores(rows() | {"accuracy": [-3.0] * 6}, unit="score")
    np.testing.assert_array_equal(loss.accuracy, -3.0)
    with pytest.raises(InputError, match="no accuracy is above 1: pass unit='fraction'"):
        load_checkpoint_scores(rows(), unit="percent")
    wide = {"task": ["pets", "cars"], "good": [91.0, 80.0], "lost": [0.2, 0.5]}
    found = load_checkpoint_scores(wide, wide="checkpoints", unit="percent")
    np.testing.assert_allclose(found.accuracy, [0.91, 0.002, 0.80, 0.005])
    with pytest.raises(InputError, match="unit='loss'"):
        load_checkpoint_scores(rows(), unit="loss")


def test_accuracies_of_another_table() -> None:
    frame = pd.DataFrame(rows())
    truth = frame[["model", "dataset", "accuracy"]]
    scores = frame.drop(columns="accuracy").sample(frac=1, random_state=0)
    check(load_checkpoint_scores(scores, accuracies=truth))
    check(load_checkpoint_scores(scores, accuracies=load_checkpoint_scores(truth)))
    assert "scores: none" not in load_checkpoint_scores(scores, accuracies=truth).notes
    fewer = load_checkpoint_scores(scores[scores["model"] != "b"], accuracies=truth)
    assert np.isnan(fewer.scores["nleep"]).tolist() == [False, True, False] * 2
    assert "2 of 6 accuracies have no scores" in fewer.notes
    more = load_checkpoint_scores(scores, accuracies=truth[truth["model"] != "b"])
    assert len(more) == 4
    assert any("2 of 6 rows of the DataFrame have no accuracy" in note for note in more.notes)
    with pytest.raises(InputError, match="share no checkpoint and task"):
        load_checkpoint_scores(scores, accuracies=truth.assign(model="z" + truth["model"]))


def test_scores_without_tasks_hold_for_all() -> None:
    truth = load_checkpoint_scores(pd.DataFrame(rows())[["model", "dataset", "accuracy"]])
    sizes = {"model": list(NAMES), "parameters": [25, 11, 60]}
    found = load_checkpoint_scores(sizes, accuracies=truth)
    assert found.scores["parameters"].tolist() == [25, 11, 60] * 2


def test_a_store_of_accuracies_alone(tmp_path: Path) -> None:
    for number, value in enumerate((0.7, 0.8, 0.9)):
        for learner, less in (("cnn", 0.0), ("mlp", 0.1)):
            coordinates = {"learner": learner, "n": 100, "seed": number}
            write_run(tmp_path / "runs", coordinates, np.zeros(4, dtype=int), {"accuracy": value - less})
    with pytest.raises(InputError, match=r"holds '(cnn|mlp)' 3 times"):
        load_checkpoint_scores(tmp_path / "runs")
    found = load_checkpoint_scores(tmp_path / "runs", repeats="mean")
    assert dict(zip(found.checkpoints.tolist(), found.accuracy.round(9).tolist(), strict=True)) == {
        "cnn": 0.8,
        "mlp": 0.7,
    }
    assert found.measures == ()


def test_a_matrix_of_accuracies(tmp_path: Path) -> None:
    path = tmp_path / "matrix.csv"
    path.write_text("Dataset,From-Scratch,A,B\npets,50.5,80,90\ncars,40,70,\n")
    found = load_checkpoint_scores(path, wide="checkpoints", unit="percent", reference="From-Scratch")
    assert found.task_names == ("pets", "cars")
    assert found.checkpoints.tolist() == ["From-Scratch", "A", "B"] * 2
    np.testing.assert_allclose(found.accuracy, [0.505, 0.8, 0.9, 0.4, 0.7, np.nan])
    assert found.ranked.tolist() == [False, True, True] * 2
    assert "1 of 4 rows have no 'accuracy'" in found.notes
    with pytest.raises(InputError, match=r"wide='checkpoints': .* does not go with it"):
        load_checkpoint_scores(path, wide="checkpoints", columns={"checkpoint": "A"})
    with pytest.raises(InputError, match="wide='models'"):
        load_checkpoint_scores(path, wide="models")


def test_repeated_rows_must_be_meant() -> None:
    frame = pd.concat([pd.DataFrame(rows()), pd.DataFrame(rows()).assign(seed=1)])
    frame["accuracy"] += np.where(frame["seed"] == 1, 0.02, 0.0)
    with pytest.raises(InputError, match=r"'a' 2 times for 'pets'. They differ in 'seed'"):
        load_checkpoint_scores(frame)
    base = np.array(rows()["accuracy"])
    best = load_checkpoint_scores(frame, repeats="best")
    np.testing.assert_allclose(best.accuracy, base + 0.02)
    mean = load_checkpoint_scores(frame, repeats="mean")
    np.testing.assert_allclose(mean.accuracy, base + 0.01)
    assert any("best accuracy of several rows" in note for note in best.notes)
    np.testing.assert_allclose(best.scores["nleep"], rows()["nleep"])
    chosen = load_checkpoint_scores(frame, where={"seed": 1})
    np.testing.assert_allclose(chosen.accuracy, base + 0.02)
    grouped = load_checkpoint_scores(frame, columns={"group": "seed"})
    assert grouped.group_names == ("0", "1")
    with pytest.raises(InputError, match="repeats='worst'"):
        load_checkpoint_scores(frame, repeats="worst")


def test_the_mean_of_seeds_does_not_depend_on_how_many_measures_each_has() -> None:
    """Of two seeds with one and two scores, the second counted twice."""
    cells = [("a", 0, "m", 0.5), ("a", 0, "n", 0.5), ("a", 1, "m", 0.6), ("b", 0, "n", 0.7), ("b", 0, "m", 0.7)]
    frame = pd.DataFrame(cells, columns=["model", "seed", "measure", "accuracy"]).assign(score=1.0)
    for order in (slice(None), slice(None, None, -1)):
        found = load_checkpoint_scores(frame[order], repeats="mean")
        assert dict(zip(found.checkpoints.tolist(), found.accuracy.tolist(), strict=True)) == {"a": 0.55, "b": 0.7}
        assert "the mean accuracy of several rows for 1 pair of checkpoint and task" in found.notes


def test_where_takes_several_values_and_says_what_there_is() -> None:
    found = load_checkpoint_scores(rows(), where={"model": ["a", "c"], "dataset": "cars"})
    assert found.checkpoints.tolist() == ["a", "c"]
    assert any("2 of 6 rows" in note for note in found.notes)
    with pytest.raises(InputError, match="it has 'a', 'b', 'c'"):
        load_checkpoint_scores(rows(), where={"model": "z"})
    with pytest.raises(InputError, match=r"'who': 1\}: .*no such column"):
        load_checkpoint_scores(rows(), where={"who": 1})


def test_flags_are_no_scores() -> None:
    for flags in ([True, False] * 3, ["True", "False"] * 3):
        found = load_checkpoint_scores(rows() | {"frozen": flags})
        assert "frozen" not in found.scores


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"model": None}, "has no column of checkpoints"),
        ({"accuracy": None}, "has no accuracies"),
        ({"test_accuracy": [0.5] * 6}, "2 columns of the dict could be the accuracy.*; or rename one"),
        ({"accuracy": ["high"] * 6}, "is not a number"),
        ({"model": ["a", "", "c"] * 2}, "names no checkpoint"),
        ({"measure": ["nleep"] * 6}, "no column holds their scores"),
        ({"score": [0.1] * 6}, "no column says of which measure"),
    ],
)
def test_what_cannot_be_read(change: dict[str, Any], said: str) -> None:
    given = {k: v for k, v in {**rows(), **change}.items() if v is not None}
    with pytest.raises(InputError, match=said):
        load_checkpoint_scores(given)


def test_bad_arguments() -> None:
    with pytest.raises(InputError, match="reference='z': no checkpoint"):
        load_checkpoint_scores(rows(), reference="z")
    with pytest.raises(InputError, match="give a list of columns"):
        load_checkpoint_scores(rows(), measures="nleep")
    with pytest.raises(InputError, match="baselines='z': none of the scores"):
        load_checkpoint_scores(rows(), baselines=["z"])
    frame = long_rows()
    frame.loc[0, "accuracy"] += 0.05
    with pytest.raises(InputError, match="different accuracies for one checkpoint and task"):
        load_checkpoint_scores(frame)


def test_a_table_may_be_written_and_read_again(tmp_path: Path) -> None:
    table = load_checkpoint_scores(rows(), reference="c")
    table.frame().to_csv(tmp_path / "again.csv", index=False)
    again = load_checkpoint_scores(tmp_path / "again.csv")
    check(again)
    assert again.reference == ("c",)


def test_measures_of_a_long_table_are_chosen_by_name() -> None:
    found = load_checkpoint_scores(long_rows(), measures=["nleep"])
    assert found.measures == ("nleep",)
    np.testing.assert_allclose(found.scores["nleep"], rows()["nleep"])
    odd = long_rows().rename(columns={"measure": "method", "score": "value"})
    told = load_checkpoint_scores(odd, columns={"measure": "method", "score": "value"}, measures=["logme"])
    assert told.measures == ("logme",)
    np.testing.assert_allclose(told.scores["logme"], rows()["logme"])
    with pytest.raises(InputError, match=r"measures=.'nlep'.: .* Did you mean 'nleep'\?"):
        load_checkpoint_scores(long_rows(), measures=["nlep"])
    with pytest.raises(InputError, match=r"measures=.'nlep'.: .* Did you mean 'nleep'"):
        load_checkpoint_scores(rows(), measures=["nlep"])


@pytest.mark.parametrize(
    ("columns", "how", "said"),
    [
        (("method", "value"), {}, r"'measure': 'method', 'score': 'value'\}\."),
        (("method", "value"), {"measures": ["nleep"]}, r"stands in 'method': pass columns="),
        (("method", "score"), {}, r"'measure': 'method', 'score': 'score'\}, or measures=\['score"),
        (("measure", "value"), {}, r"'measure': 'measure', 'score': 'value'\}\."),
    ],
)
def test_a_long_table_with_unusual_names_says_what_to_pass(
    columns: tuple[str, str], how: dict[str, Any], said: str
) -> None:
    names = dict(zip(("measure", "score"), columns, strict=True))
    odd = long_rows().rename(columns=names)
    with pytest.raises(InputError, match=said):
        load_checkpoint_scores(odd, **how)
    check(load_checkpoint_scores(odd, columns=names))


def test_several_columns_that_could_hold_scores_are_listed() -> None:
    odd = long_rows().rename(columns={"measure": "method", "score": "value"}).assign(error=0.5)
    odd["spread"] = odd["value"] / 2
    with pytest.raises(InputError, match=r"'score': 'COLUMN'\} \(one of 'value', 'spread'\)"):
        load_checkpoint_scores(odd)


def test_a_percent_sign_in_a_name_is_no_other_name_and_a_named_measure_is_a_column() -> None:
    given = {("Accuracy in percent" if k == "accuracy" else k): v for k, v in rows().items()}
    given["Accuracy in percent"] = [100 * value for value in given["Accuracy in percent"]]
    np.testing.assert_allclose(load_checkpoint_scores(given).accuracy, rows()["accuracy"])
    wide = load_checkpoint_scores(rows() | {"metric": ["top-1"] * 6}, measures=["nleep"])
    assert wide.measures == ("nleep",)


def test_a_folder_of_runs_is_read(tmp_path):
    from curvewise.store import write_run

    for i, name in enumerate("abc"):
        row = {"checkpoint": name, "task": "pets", "accuracy": 0.5 + 0.1 * i, "leep": -1.0 + 0.2 * i}
        write_run(tmp_path / "runs", row, metrics={"error": 0.5 - 0.1 * i})
    found = load_checkpoint_scores(tmp_path / "runs")
    assert sorted(found.accuracy.tolist()) == [0.5, 0.6, 0.7]
    assert list(found.scores) == ["leep"]


def test_errors_are_taken_from_one_and_losses_refused() -> None:
    frame = pd.DataFrame(rows()).assign(error=lambda f: 1 - f["accuracy"]).drop(columns="accuracy")
    found = load_checkpoint_scores(frame, columns={"accuracy": "error"})
    np.testing.assert_allclose(found.accuracy, rows()["accuracy"])
    assert "accuracy as 1 − 'error'" in found.notes
    percent = frame.assign(**{"error (%)": 100 * frame["error"]}).drop(columns="error")
    np.testing.assert_allclose(
        load_checkpoint_scores(percent, columns={"accuracy": "error (%)"}).accuracy, rows()["accuracy"]
    )
    with pytest.raises(InputError, match="less is better"):
        load_checkpoint_scores(frame, columns={"accuracy": "error"}, unit="score")
    with pytest.raises(InputError, match="less is better"):
        load_checkpoint_scores(frame.rename(columns={"error": "test_loss"}), columns={"accuracy": "test_loss"})


def test_results_of_fine_tuning_are_no_scores() -> None:
    more = {"test_error": [0.1] * 6, "train_accuracy": [0.9] * 6, "accuracy_std": [0.01] * 6, "rank": [1, 2, 3] * 2}
    found = load_checkpoint_scores(rows() | more)
    assert set(found.scores) == {"nleep", "logme", "parameters"}
    assert list(load_checkpoint_scores(rows() | more, measures=["rank"]).scores) == ["rank"]


def test_references_of_a_table_of_scores_are_kept() -> None:
    told = rows()
    scores = {k: told[k] for k in ("model", "dataset", "nleep")} | {"reference": ["no", "yes", "no"] * 2}
    found = load_checkpoint_scores(scores, accuracies={k: told[k] for k in ("model", "dataset", "accuracy")})
    assert found.reference == ("b",)


def test_scores_of_one_group_are_not_those_of_another() -> None:
    told = rows()
    keys = {k: told[k] for k in ("model", "dataset")}
    accuracies = {k: [*v, *v] for k, v in {**keys, "accuracy": told["accuracy"]}.items()}
    accuracies["group"] = ["A"] * 6 + ["B"] * 6
    one = load_checkpoint_scores({**keys, "nleep": told["nleep"], "group": ["A"] * 6}, accuracies=accuracies)
    np.testing.assert_array_equal(one.scores["nleep"], [*told["nleep"], *[np.nan] * 6])
    both = load_checkpoint_scores({**keys, "nleep": told["nleep"]}, accuracies=accuracies)
    np.testing.assert_array_equal(both.scores["nleep"], told["nleep"] * 2)


def test_tasks_in_two_units_are_refused() -> None:
    told = rows()
    mixed = [100 * v if task == "pets" else v for v, task in zip(told["accuracy"], told["dataset"], strict=True)]
    with pytest.raises(InputError, match="no accuracy for 'cars' is above 1: give all tasks one unit"):
        load_checkpoint_scores({**told, "accuracy": mixed}, unit="percent")


def test_marks_of_references_are_true_or_false() -> None:
    assert load_checkpoint_scores(rows() | {"reference": [1.0, 0.0, 0.0] * 2}).reference == ("a",)
    assert load_checkpoint_scores(rows() | {"reference": ["Yes", "", "no"] * 2}).reference == ("a",)
    with pytest.raises(InputError, match="reads 'x': use true or false"):
        load_checkpoint_scores(rows() | {"reference": ["x", "", ""] * 2})
