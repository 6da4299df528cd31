"""Corpora of models from tables and from the competition's layout."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

from curvewise.errors import InputError
from curvewise.response.cmi import cmi_score
from curvewise.response.load import ModelCorpus, load_corpus


def rows(count: int = 12) -> dict[str, list]:
    rng = np.random.default_rng(0)
    return {
        "model": [f"net {i}" for i in range(count)],
        "depth": [2, 4, 6] * (count // 3),
        "optimiser": ["sgd", "adam"] * (count // 2),
        "train_accuracy": [1.0] * count,
        "test_accuracy": rng.uniform(0.8, 0.9, count).tolist(),
        "gi": rng.random(count).tolist(),
        "seed": list(range(count)),
    }


def specification(count: int = 4, top: float = 1.0) -> dict:
    """What the competition's model_configs.json holds."""
    return {
        str(i): {
            "hparams": {
                "depth": {"possible_values": [2, 4], "current_value": 2 + 2 * (i % 2)},
                "dropout": {"possible_values": [0.0, 0.5], "current_value": 0.5 * (i // 2 % 2)},
            },
            "metrics": {"train_acc": top, "test_acc": top * (0.9 - 0.01 * i)},
        }
        for i in range(count)
    }


def check(corpus) -> None:  # type: ignore[no-untyped-def]
    told = rows()
    assert corpus.models == tuple(told["model"])
    assert list(corpus.hyperparameters) == ["depth", "optimiser"]
    assert corpus.hyperparameters["depth"].tolist() == told["depth"]
    assert list(corpus.measures) == ["gi"]
    np.testing.assert_allclose(corpus.measures["gi"], told["gi"])
    np.testing.assert_allclose(corpus.gap, 1 - np.array(told["test_accuracy"]))
    np.testing.assert_array_equal(corpus.train_accuracy, 1.0)
    assert any("(by names and values)" in note for note in corpus.notes)
    assert any("left out: 'seed'" in note for note in corpus.notes)


@pytest.mark.parametrize("ending", ["csv", "tsv", "json", "parquet", "jsonl", "csv.gz"])
def test_every_kind_of_file(tmp_path: Path, ending: str) -> None:
    frame, path = pd.DataFrame(rows()), tmp_path / f"corpus.{ending}"
    if ending == "json":
        path.write_text(json.dumps(rows()))
    elif ending == "jsonl":
        frame.to_json(path, orient="records", lines=True)
    elif ending == "parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False, sep="\t" if ending == "tsv" else ",")
    check(load_corpus(path))


def test_frames_dicts_and_records() -> None:
    check(load_corpus(pd.DataFrame(rows())))
    check(load_corpus(pl.DataFrame(rows())))
    check(load_corpus(rows()))
    check(load_corpus(pd.DataFrame(rows()).to_dict("records")))


def test_a_corpus_written_as_a_frame_is_read_back(tmp_path: Path) -> None:
    corpus = load_corpus(rows())
    corpus.frame().to_csv(tmp_path / "again.csv", index=False)
    again = load_corpus(tmp_path / "again.csv")
    assert again.models == corpus.models
    assert {k: v.tolist() for k, v in again.hyperparameters.items()} == {
        k: v.tolist() for k, v in corpus.hyperparameters.items()
    }
    np.testing.assert_allclose(again.gap, corpus.gap)
    assert list(again.measures) == ["gi"]


def test_measures_of_networks_and_settings_of_a_study_are_read_back(tmp_path: Path) -> None:
    """Shares of few examples and counts of parameters repeat as settings do, and are measures all the same."""
    rng = np.random.default_rng(0)
    learner, size, depth = np.repeat(["vgg", "resnet"], 8), np.tile([100, 400], 8), np.tile([2, 2, 4, 4], 4)
    corpus = ModelCorpus(
        models=tuple(f"net {i}" for i in range(16)),
        hyperparameters={"learner": learner, "n": size, "depth": depth},
        gap=rng.random(16),
        measures={"parameters": 100.0 * depth, "mixup": np.tile([0.9, 1.0], 8), "dbi": rng.random(16)},
        train_accuracy=np.tile([0.98, 0.99], 8),
    )
    corpus = corpus.with_measures({"accuracy": np.tile([0.985, 0.99], 8)})  # of fewer training examples
    corpus.frame().to_csv(tmp_path / "corpus.csv", index=False)
    again = load_corpus(tmp_path / "corpus.csv")
    assert {k: v.tolist() for k, v in again.hyperparameters.items()} == {
        k: v.tolist() for k, v in corpus.hyperparameters.items()
    }
    assert list(again.measures) == list(corpus.measures)
    # One that is nearer to the test set's is no measure.
    tested = corpus.frame().assign(accuracy=np.tile([0.985, 0.99], 8) - corpus.gap)
    assert "accuracy" not in load_corpus(tested).measures
    # A learner of its own for each model is a name.
    named = load_corpus(corpus.frame().assign(learner=[f"run {i}" for i in range(16)]))
    assert list(named.hyperparameters) == ["n", "depth"]
    shipped = Path(__file__).parents[2] / "examples" / "corpus" / "cifar10.csv"
    assert list(load_corpus(shipped).hyperparameters) == ["depth", "width", "batch_norm", "batch", "rate"]


def test_roles_that_are_named_win() -> None:
    told = rows() | {"t": ["x", "y"] * 6, "width": np.arange(12.0).tolist()}
    corpus = load_corpus(
        told, hyperparameters=["depth"], measures=["width", "gi"], columns={"task": "t"}, orientation={"gi": -1}
    )
    assert list(corpus.hyperparameters) == ["depth"]
    assert list(corpus.measures) == ["width", "gi"]
    assert corpus.task_names == ("x", "y")
    assert corpus.orientation == {"gi": -1}
    assert any("left out: 'optimiser', 'seed'" in note for note in corpus.notes)
    rest = load_corpus(told, hyperparameters=["depth", "optimiser"])
    assert list(rest.measures) == ["gi", "width"]


def test_prefixes_tell_columns_apart() -> None:
    told = {"gap": [0.1, 0.2, 0.3], "hp.x": [1, 2, 3], "measure.y": [1, 1, 1], "params.z": [1, 1, 2]}
    corpus = load_corpus(told)
    assert list(corpus.hyperparameters) == ["hp.x", "params.z"]
    assert list(corpus.measures) == ["measure.y"]


@pytest.mark.parametrize(
    "told",
    [
        {"gap": [0.1, 0.2]},
        {"train_acc": [1.0, 1.0], "test_acc": [0.9, 0.8]},
        {"train_error": [0.0, 0.0], "error": [0.1, 0.2]},
        {"train_accuracy": [1.0, 1.0], "test_error": [0.1, 0.2]},
    ],
    ids=["gap", "accuracies", "errors", "both"],
)
def test_the_gap_comes_in_several_ways(told: dict) -> None:
    corpus = load_corpus(told | {"depth": [1, 2]})
    np.testing.assert_allclose(corpus.gap, [0.1, 0.2])
    percent = {k: [100 * v for v in values] for k, values in told.items()}
    np.testing.assert_allclose(load_corpus(percent | {"depth": [1, 2]}, unit="percent").gap, [0.1, 0.2])


def test_failed_models_are_kept_and_noted() -> None:
    told = rows()
    told["test_accuracy"][1] = None
    told["gi"][4] = None
    corpus = load_corpus(told)
    assert len(corpus) == 12
    assert np.flatnonzero(np.isnan(corpus.gap)).tolist() == [1]
    assert np.flatnonzero(np.isnan(corpus.measures["gi"])).tolist() == [4]
    assert any("1 of 12 models have no gap" in note for note in corpus.notes)
    assert any("1 of 12 models have no 'gi'" in note for note in corpus.notes)


def test_names_that_are_there_twice_are_told_apart_by_their_rows() -> None:
    told = rows() | {"model": ["a", "a", *(f"n{i}" for i in range(10))]}
    corpus = load_corpus(told)
    assert corpus.models[:3] == ("a (row 1)", "a (row 2)", "n0")
    assert any("a name is there twice" in note for note in corpus.notes)
    del told["model"]
    assert load_corpus(told).models[0] == "model 1"


@pytest.mark.parametrize(
    ("told", "options", "message"),
    [
        ({"depth": [1, 2]}, {}, "has no gap: name its column with columns="),
        ({"gap": [11.0, 12.0], "depth": [1, 2]}, {}, "holds 11, which is no fraction.*'percent'"),
        ({"gap": [0.1, 0.2], "depth": [1, 2, 3]}, {}, "differ in length"),
        ({"gap": [0.1, "x"], "depth": [1, 2]}, {}, "which is not a number"),
        ({"gap": [0.1, 0.2]}, {"measures": ["gi"]}, "measures=.'gi'.: .*no such column"),
        ({"gap": [0.1, 0.2]}, {"hyperparameters": "depth"}, "is one text: give a list"),
        ({"gap": [0.1, 0.2]}, {"unit": "loss"}, "unit='loss'"),
        ({"gap": [0.1, 0.2]}, {"predictions": "x"}, "goes with the competition's layout"),
        ({"gap": [0.1] * 9, "x": [1, 2, 3] * 3}, {}, "'x'.*could be hyperparameters or measures"),
        ({"gap": [0.1, 0.2], "gen_gap": [0.1, 0.2]}, {}, "2 columns .* could be the gap.*; or rename one"),
        ({"gap": [0.1, 0.2], "gi": [1, 2]}, {"orientation": {"gi": 5}}, "orientation is 5 for 'gi'"),
        ({"gap": [0.1, 0.2], "task": ["a", ""], "depth": [1, 2]}, {"measures": []}, "'task'.* names no task in row 2"),
    ],
    ids=range(12),
)
def test_bad_tables_are_named_with_a_remedy(told: dict, options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_corpus(told, **options)


def test_specifications_in_one_dict() -> None:
    corpus = load_corpus({"model_specs": specification(), "prediction": {f"model_{i}": i * 1.0 for i in range(4)}})
    assert corpus.models == ("model_0", "model_1", "model_2", "model_3")
    assert corpus.hyperparameters["dropout"].tolist() == [0.0, 0.0, 0.5, 0.5]
    np.testing.assert_allclose(corpus.gap, [0.1, 0.11, 0.12, 0.13])
    assert corpus.measures["prediction"].tolist() == [0, 1, 2, 3]
    np.testing.assert_array_equal(corpus.train_accuracy, 1.0)
    named = load_corpus({"model_configs": specification(), "predictions": {"gi": {"0": 5}}})
    assert named.measures["gi"][0] == 5
    assert any("3 of 4 models have no prediction of 'gi'" in note for note in named.notes)


def competition(folder: Path) -> None:
    for task, count in (("task1_v4", 4), ("task2_v1", 6)):
        home = folder / "reference_data" / task
        home.mkdir(parents=True)
        (home / "model_configs.json").write_text(json.dumps(specification(count)))
        for measure in ("VR", "mixup"):
            told = folder / "ingestions" / measure / f"{task}.predict"
            told.parent.mkdir(parents=True, exist_ok=True)
            told.write_text(json.dumps({f"model_{i}": i / 7 for i in range(count)}))


def test_a_folder_in_the_competitions_layout(tmp_path: Path) -> None:
    competition(tmp_path)
    corpus = load_corpus(tmp_path, orientation={"VR": 1})
    assert corpus.task_names == ("task1_v4", "task2_v1")
    assert list(corpus.measures) == ["VR", "mixup"]
    assert len(corpus) == 10
    np.testing.assert_allclose(corpus.by_task()["task2_v1"].measures["VR"], np.arange(6) / 7)
    assert corpus.orientation == {"VR": 1}
    apart = load_corpus(tmp_path / "reference_data", predictions=tmp_path / "ingestions")
    assert list(apart.measures) == ["VR", "mixup"]
    one = load_corpus(
        tmp_path / "reference_data" / "task1_v4" / "model_configs.json", predictions=tmp_path / "ingestions" / "VR"
    )
    assert one.tasks is None
    assert len(one) == 4
    assert list(one.measures) == ["prediction"]
    assert any("there is no task called 'task2_v1'" in note for note in one.notes)


def test_models_with_a_folder_each(tmp_path: Path) -> None:
    for name, model in specification().items():
        (tmp_path / "nets" / f"model_{name}").mkdir(parents=True)
        (tmp_path / "nets" / f"model_{name}" / "config.json").write_text(json.dumps(model))
    (tmp_path / "nets.predict").write_text(json.dumps({"model_2": 0.5, "model_9": 1.0}))
    corpus = load_corpus(tmp_path)
    assert corpus.models == ("model_0", "model_1", "model_2", "model_3")
    assert corpus.measures["prediction"][2] == 0.5
    assert any("no model 'model_9'" in note for note in corpus.notes)


def test_missing_accuracies_and_settings_are_noted() -> None:
    told = specification()
    del told["1"]["metrics"]
    del told["2"]["hparams"]["depth"]
    corpus = load_corpus(told)
    assert np.flatnonzero(np.isnan(corpus.gap)).tolist() == [1]
    assert corpus.hyperparameters["depth"].tolist() == [2, 4, None, 4]
    assert any("1 of 4 models have no accuracies" in note for note in corpus.notes)


def test_percentages_in_the_competitions_layout() -> None:
    with pytest.raises(InputError, match="unit='percent'"):
        load_corpus(specification(top=100.0))
    np.testing.assert_allclose(load_corpus(specification(top=100.0), unit="percent").gap, [0.1, 0.11, 0.12, 0.13])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"0": {"hparams": 3}}, "has no 'hparams'"),
        ({"0": {"hparams": {}, "metrics": {"train_acc": "high"}}}, "holds 'high' where a number"),
    ],
    ids=["settings", "accuracy"],
)
def test_broken_specifications(change: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_corpus(specification() | change)


def test_hostile_folders(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"without model_configs\.json"):
        load_corpus(tmp_path)
    competition(tmp_path)
    (tmp_path / "loop").symlink_to(tmp_path)
    assert len(load_corpus(tmp_path)) == 10
    with pytest.raises(InputError, match="leave out columns="):
        load_corpus(tmp_path, columns={"gap": "gap"})
    bad = tmp_path / "ingestions" / "VR" / "task1_v4.predict"
    bad.write_text('{"model_0": 1, "model_0": 2}')
    with pytest.raises(InputError, match="more than one"):
        load_corpus(tmp_path)
    bad.write_text("[1, 2]")
    with pytest.raises(InputError, match="a dict by model was expected"):
        load_corpus(tmp_path)
    bad.write_text('{"model_0": {"a": 1}}')
    with pytest.raises(InputError, match="where a number was expected"):
        load_corpus(tmp_path)


def test_names_that_could_do_something_to_a_terminal(tmp_path: Path) -> None:
    name = "a\x1b[2J"
    (tmp_path / name).mkdir()
    (tmp_path / name / "model_configs.json").write_text("{")
    with pytest.raises(InputError) as caught:
        load_corpus(tmp_path)
    assert "\x1b" not in str(caught.value)
    told = rows() | {name: [1.0] * 12}
    assert not any("\x1b" in note for note in load_corpus(told).notes)


def test_the_published_cases_score_as_recorded(data_dir: Path) -> None:
    cases = json.loads((data_dir / "pgdl" / "cmi_cases.json").read_text())["cases"]
    for case in cases:
        corpus = load_corpus({"model_specs": case["model_specs"], "prediction": case["prediction"]})
        found = cmi_score(corpus.measures["prediction"], corpus.gap, corpus.hyperparameters, mode="pgdl")
        assert found == pytest.approx(case["kit_score"], abs=1e-12)


def test_of_several_names_of_models_the_first_counts() -> None:
    named = {"name": [f"net {i}" for i in range(12)], "run_id": [f"r{i}" for i in range(12)]}
    corpus = load_corpus(named | rows(), hyperparameters=["depth"])
    assert corpus.models[0] == "net 0"
    with pytest.raises(InputError, match=r"2 columns .* could be the gap: .*\{'gap': 'gap'\}"):
        load_corpus(rows() | {"gap": [0.1] * 12, "gen_gap": [0.1] * 12}, hyperparameters=["depth"])


def test_a_column_with_an_orientation_is_a_measure() -> None:
    told = rows() | {"error": np.linspace(0.1, 0.9, 12).tolist(), "width": [1.0, 2.0] * 6}
    corpus = load_corpus(told, orientation={"width": 1, "error": -1})
    assert set(corpus.measures) == {"gi", "width", "error"}
    percent = {("gap_pct" if k == "gap" else k): v for k, v in (rows() | {"gap": [10.0] * 12}).items()}
    assert load_corpus(percent).gap.tolist() == [0.1] * 12


def test_empty_cells_do_not_make_a_measure_a_setting() -> None:
    rng = np.random.default_rng(0)
    table = {"depth": [2, 4] * 20, "gap": rng.random(40), "norm": [*rng.random(9), *[None] * 31], "gi": rng.random(40)}
    found = load_corpus(table)
    assert (list(found.hyperparameters), list(found.measures)) == (["depth"], ["norm", "gi"])


def test_where_hyperparameters_are_marked_other_numbers_are_measures() -> None:
    """A count of parameters, say, repeats as the settings that it depends on do."""
    rng = np.random.default_rng(0)
    table = {"hp.blocks": [2, 4] * 20, "gap": rng.random(40), "vc_dim": [10.0, 20.0] * 20, "coarse": [*range(10)] * 4}
    found = load_corpus(table)
    assert (list(found.hyperparameters), list(found.measures)) == (["hp.blocks"], ["vc_dim", "coarse"])
    found = load_corpus({"blocks" if k == "hp.blocks" else k: v for k, v in table.items()})
    assert list(found.hyperparameters) == ["blocks", "vc_dim", "coarse"]
    found = load_corpus(table, measures=["coarse"])
    assert (list(found.hyperparameters), list(found.measures)) == (["hp.blocks"], ["coarse"])


def test_rows_that_are_there_twice_and_epochs_of_one_model_are_no_further_models() -> None:
    """A file appended to itself halved every interval; with eight epochs of 24 models 35% of null tests rejected."""
    frame = pd.DataFrame(rows())
    with pytest.raises(InputError, match="the same row for model 'net 0' 2 times, in rows 1, 13: remove all but one"):
        load_corpus(pd.concat([frame, frame]), orientation={"gi": 1})
    assert len(load_corpus(pd.concat([frame, frame]).assign(seed=range(24)), orientation={"gi": 1})) == 24
    epochs = pd.concat([frame.assign(epoch=k, gi=frame.gi + k / 100) for k in (1, 2)])
    with pytest.raises(
        InputError, match="'epoch' of the DataFrame has several values for one model: keep the last row"
    ):
        load_corpus(epochs, orientation={"gi": 1})
    assert len(load_corpus(frame.assign(epoch=range(12)))) == 12
    assert len(load_corpus(epochs, hyperparameters=["depth", "epoch"])) == 24


def test_no_unit_makes_a_gap_of_infinity_one() -> None:
    with pytest.raises(InputError, match=r"'gap'.* holds inf: where there is no value, leave the cell empty"):
        load_corpus({"gap": [0.1, np.inf], "depth": [1, 2]})
