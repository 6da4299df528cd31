"""Predictions of many runs out of folders: a file each, or a store; labels in files."""

import gzip
import json
import pickle
import shutil

import numpy as np
import pandas as pd
import pytest
from made_predictions import (
    ERRORS,
    EXAMPLES,
    GROUPS,
    LABELS,
    PREDS,
    PROBABILITIES,
    RUNS,
    Trap,
    fails,
    long_frame,
    same,
    save_npz,
)

from curvewise.errors import InputError, StoreError
from curvewise.learning.load import load_measurements
from curvewise.store.write import write_run
from curvewise.variance.load import load_predictions


def write_runs(folder, kind, values=PREDS, column=None):
    folder.mkdir(exist_ok=True)
    for i, run in enumerate(values):
        path = folder / f"run_{i + 8}.{kind}"
        if kind == "npy":
            np.save(path, run)
        elif kind == "npz":
            np.savez(path, preds=run)
        elif kind == "json":
            path.write_text(json.dumps(run.tolist()))
        elif kind == "safetensors":
            pytest.importorskip("safetensors.numpy").save_file({"preds": run}, path)
        else:
            text = "\n".join([*([column] if column else []), *map(str, run.tolist()), ""])
            data = text.replace("\n", "\r\n").encode("utf-8-sig")
            path.write_bytes(gzip.compress(data) if kind.endswith("gz") else data)
    return folder


FILES = ["npy", "npz", "json", "csv", "txt", "csv.gz", "safetensors"]


@pytest.mark.parametrize("kind", FILES)
def test_folders(tmp_path, kind):
    folder = write_runs(tmp_path / "runs", kind)
    np.save(folder / "labels.npy", LABELS)
    (folder / "groups.txt").write_text("\n".join(f"g{g}" for g in GROUPS))
    (folder / ".DS_Store").write_bytes(b"?")
    (folder / "README.md").write_text("# Runs")
    p = same(load_predictions(folder))
    assert p.run_ids.tolist() == ["run_8", "run_9", "run_10", "run_11"]
    np.testing.assert_array_equal(p.groups, GROUPS)
    assert not isinstance(p.values, np.ndarray)
    assert "not read: 'README.md'" in p.notes
    np.testing.assert_array_equal(p.subset(runs=[1, 3]).errors(), ERRORS[[1, 3]])
    assert p.values[2:2].shape == (0, EXAMPLES)
    same(pickle.loads(pickle.dumps(p)))


def test_folders_are_read_when_asked(tmp_path):
    p = load_predictions(write_runs(tmp_path / "runs", "npy"), labels=LABELS)
    np.testing.assert_array_equal(p.values[:2], PREDS[:2])
    np.save(tmp_path / "runs" / "run_11.npy", PREDS[3, :-1])
    np.testing.assert_array_equal(p.values[:2], PREDS[:2])
    with pytest.raises(InputError, match=r"run_11.npy has changed"):
        p.errors()


@pytest.mark.parametrize("column", [None, "prediction", "anything"])
@pytest.mark.parametrize("kind", ["csv", "txt"])
def test_a_name_above_the_values(tmp_path, column, kind):
    folder = write_runs(tmp_path / "runs", kind, column=column)
    same(load_predictions(folder, labels=LABELS))


def test_tables_in_a_folder(tmp_path):
    for i, (_, run) in enumerate(long_frame().groupby("seed")):
        run[["id", "pred", "label"]].to_csv(tmp_path / f"s{i}.csv", index=False)
    p = same(load_predictions(tmp_path))
    assert p.example_ids.tolist() == list(range(EXAMPLES))
    frame = long_frame().iloc[:EXAMPLES][["id", "pred", "label"]]
    frame.iloc[::-1].to_csv(tmp_path / "s2.csv", index=False)
    fails("s2.csv has other labels than s0.csv|s2.csv has other example_ids", tmp_path)


def test_hits_and_names_of_classes_in_folders(tmp_path):
    folder = write_runs(tmp_path / "hits", "csv", ERRORS == 0, column="correct")
    p = same(load_predictions(folder), labels=False)
    assert p.kind == "correct"
    names = np.array(["ant", "bee", "caterpillar"])
    folder = write_runs(tmp_path / "names", "txt", names[PREDS])
    (folder / "targets.csv").write_text("\n".join(["label", *names[LABELS]]))
    p = same(load_predictions(folder), labels=False)
    assert p.classes == tuple(names)


def test_a_folder_with_one_matrix(tmp_path):
    np.save(tmp_path / "preds.npy", PREDS)
    np.save(tmp_path / "labels.npy", LABELS)
    p = same(load_predictions(tmp_path))
    assert isinstance(p.values, np.memmap)


def test_probabilities_in_a_folder(tmp_path):
    folder = write_runs(tmp_path / "runs", "npy", PROBABILITIES)
    np.save(folder / "labels.npy", LABELS)
    fails("three axes", folder, kind="labels")
    same(load_predictions(folder, kind="probabilities"), labels=False)
    same(load_predictions(folder, axes=("runs", "examples", "classes")), labels=False)
    fails("has runs × examples by its form", folder, axes=("examples", "runs", "classes"))


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("damage", ["empty", "cut", "short", "noise"])
def test_a_damaged_run_is_named(tmp_path, kind, damage):
    folder = write_runs(tmp_path / "runs", kind)
    np.save(folder / "labels.npy", LABELS)
    path = folder / f"run_10.{kind}"
    data = path.read_bytes()
    if damage == "short":
        write_runs(tmp_path / "short", kind, PREDS[:, :-1])
        data = (tmp_path / "short" / path.name).read_bytes()
    path.write_bytes({"empty": b"", "cut": data[:-7], "short": data, "noise": bytes(200)}[damage])
    fails(r"run_10\." + kind, folder)


def test_what_is_no_run_is_never_skipped_in_silence(tmp_path):
    folder = write_runs(tmp_path / "runs", "npy")
    (folder / "run_12.pkl").write_bytes(pickle.dumps(Trap()))
    fails("run_12.pkl in runs has an ending that is not known, and might be a run", folder)
    (folder / "run_12.pkl").unlink()
    (folder / "config.json").write_text('{"lr": 0.1}')
    fails("config.json", folder)
    (folder / "config.json").unlink()
    np.save(folder / "run_12.npy", np.zeros(EXAMPLES, dtype="M8[s]"))
    fails("run_12.npy has dtype datetime64", folder)
    (folder / "run_12.npy").unlink()
    (folder / "run_8.txt").write_text("0\n1\n")
    fails("run_8.npy and run_8.txt are both 'run_8'", folder)
    (folder / "run_8.txt").unlink()
    (folder / "labels.txt").write_text("0\n")
    (folder / "targets.npy").write_bytes(b"")
    fails("are both 'label'", folder)


def test_folders_without_runs(tmp_path):
    fails("holds no files of runs", tmp_path)
    (tmp_path / "inner").mkdir()
    fails("holds no files of runs: only 'inner'", tmp_path)


def test_lines_that_are_not_one_value(tmp_path):
    folder = write_runs(tmp_path / "runs", "npy")
    for text, message in [
        ("0 1 1 0\n", "several values in its first line, '0 1 1 0': write one per line"),
        ("0,1,1,0\n", "several values in its first line"),
        ("0\n\n1\n", r"run_1.txt has no value in row 2"),
    ]:
        (folder / "run_1.txt").write_text(text)
        fails(message, folder, labels=LABELS)
    (folder / "run_1.txt").unlink()
    (folder / "run_1.csv").write_text("0,1,1\n0,1,1\n")
    fails("run_1.csv has 3 columns and no line with their names", folder, labels=LABELS)


def test_hostile_names_are_escaped(tmp_path):
    folder = write_runs(tmp_path / "runs", "npy")
    name = "run_\x1b[2J\n1"
    (folder / f"{name}.npy").write_bytes(b"")
    fails(r"'run_\\x1b\[2J\\n1.npy' is empty", folder, labels=LABELS)
    np.save(folder / f"{name}.npy", PREDS[0])
    p = load_predictions(folder, labels=LABELS)
    assert all(k.isprintable() for k in p.run_ids.tolist())
    fails("has no such array", save_npz(tmp_path, **{"a\x1b": PREDS, "b": LABELS}), key="\x1b")
    path = tmp_path / "t\x1b.csv"
    path.write_text("run,id\x1b\n1,2\n")
    fails(r"No column of 't\\x1b.csv' .*'id\\x1b'", path)


def make_store(folder):
    for learner in ("a", "b"):
        for n in (10, 20):
            for seed, run in enumerate(PREDS):
                at = {"learner": learner, "n": n, "seed": seed, "data": "d"}
                write_run(folder, at, run if learner == "a" else 1 * (run == 0))
    write_run(folder, {"learner": "a", "n": 20, "seed": 99, "data": "d"}, error="out of memory")
    return folder


def test_stores(tmp_path):
    store = make_store(tmp_path / "store")
    fails("'learner' is .*; 'n' is 10, 20. Choose one, such as learner='.', where={'n': 20}", store, labels=LABELS)
    fails("'n' is .* where=", store, labels=LABELS, learner="a")
    fails("no labels", store, learner="a", where={"n": 20})
    p = load_predictions(store, labels=LABELS, learner="a", where={"n": 20})
    assert p.shape == (RUNS, EXAMPLES)
    assert sorted(p.errors().sum(axis=1)) == sorted(ERRORS.sum(axis=1))
    assert "1 run(s) failed or have no predictions, and are left out" in p.notes
    fails("No run of store has 'n' = 30. There are", store, where={"n": 30})
    fails("axes=.* by its form", store, labels=LABELS, axes=("examples", "runs"), **ONE)
    fails("says nothing about a store", store, columns={"run": "seed"})
    message = "None of the 5 run.* has preds. There are 'predictions': choose with key="
    fails(message, store, key="preds", **ONE)


ONE = {"learner": "a", "where": {"n": 20}}


def test_stores_bring_their_labels(tmp_path):
    store = tmp_path / "store"
    for seed, run in enumerate(PREDS):
        write_run(
            store,
            {"recipe": "study/1", "learner": "a", "n": 20, "init_seed": seed},
            {"test": run, "shifted": run[:4]},
            arrays={"probabilities": np.eye(PREDS.max() + 1, dtype=np.float32)[run]},
            labels={"test": LABELS, "shifted": LABELS[:4]},
        )
    search = {"recipe": "rate-search/1", "learner": "a", "n": 20, "init_seed": 0, "odd": 1}
    write_run(store, search, np.zeros(3), {"rate": 0.1})
    p = load_predictions(store)
    assert p.kind == "labels"
    assert sorted(p.errors().sum(axis=1)) == sorted(ERRORS.sum(axis=1))
    assert p.notes == (f"{RUNS} of the {RUNS} runs in store",)
    shifted = load_predictions(store, key="predictions.shifted")
    assert shifted.shape == (RUNS, 4)
    assert sorted(shifted.errors().sum(axis=1)) == sorted(ERRORS[:, :4].sum(axis=1))
    q = load_predictions(store, key="probabilities")
    assert q.kind == "probabilities"
    assert sorted(q.errors().sum(axis=1)) == sorted(ERRORS.sum(axis=1))
    assert load_predictions(store, labels=LABELS).shape == p.shape
    fails("labels=… differs from the labels", store, labels=LABELS[::-1] + 1)
    other = {"recipe": "study/1", "learner": "a", "n": 20, "init_seed": 99}
    path = write_run(store, other, PREDS[0], labels=LABELS + 1)
    fails("evaluated on different examples", store)
    shutil.rmtree(path)
    for file in (store / "labels").iterdir():
        file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(StoreError, match="labels"):
        load_predictions(store)


def test_measurements_of_a_store(tmp_path):
    store = tmp_path / "store"
    for n in (10, 20, 40):
        for seed in range(2):
            at = {"learner": "a", "n": n, "init_seed": seed, "subset": f"{n}", "training": {"x": 1}}
            write_run(store, at, metrics={"error": 1 / n, "loss": 2.0, "train_error": 0.0})
    write_run(store, {"recipe": "rate-search/1", "learner": "a", "n": 20}, metrics={"error": 9})
    write_run(store, {"learner": "a", "n": 80}, error="no")
    m = load_measurements(store)
    assert sorted(m.n.tolist()) == [10, 10, 20, 20, 40, 40, 80]
    assert m.labels["status"][m.n == 80].tolist() == ["failed"]
    assert np.isnan(m.error[m.n == 80]).all()
    assert "1 of 7 runs failed (a): no" in m.notes
    m = load_measurements(store, drop_failed=True)
    assert m.error.tolist() == pytest.approx((1 / m.n).tolist())
    assert set(m.learner) == {"a"}
    assert sorted(m.labels["init_seed"].tolist()) in ([0, 0, 0, 1, 1, 1], ["0"] * 3 + ["1"] * 3)
    write_run(tmp_path / "b", {"n": 1})
    with pytest.raises(InputError, match=r"None of the 1 run.* has a metric 'error'"):
        load_measurements(tmp_path / "b")


def test_damaged_stores(tmp_path):
    store = make_store(tmp_path / "store")
    p = load_predictions(store, labels=LABELS, learner="a", where={"n": 20})
    folder = store / p.run_ids[2]
    data = (folder / "predictions.npy").read_bytes()
    (folder / "predictions.npy").write_bytes(data[:-1] + b"\7")
    with pytest.raises(StoreError, match=p.run_ids[2]):
        p.errors()
    (folder / "record.json").write_text("{")
    with pytest.raises(StoreError, match=p.run_ids[2]):
        load_predictions(store, labels=LABELS)
    fails("says nothing about an array", PREDS, labels=LABELS, where={"n": 1})


@pytest.mark.parametrize("kind", ["npy", "txt", "csv", "json", "npz", "head.csv", "id.csv"])
def test_labels_in_a_file(tmp_path, kind):
    path = tmp_path / f"truth.{kind}"
    if kind == "npy":
        np.save(path, LABELS)
    elif kind == "npz":
        np.savez(path, y_true=LABELS, other=[1])
    elif kind == "json":
        path.write_text(json.dumps(LABELS.tolist()))
    elif kind == "id.csv":
        pd.DataFrame({"id": np.arange(EXAMPLES), "target": LABELS}).to_csv(path, index=False)
    else:
        path.write_text("\n".join([*(["x"] if "head" in kind else []), *map(str, LABELS)]))
    same(load_predictions(PREDS, labels=path))
    same(load_predictions(PREDS, labels=str(path)))


def test_labels_in_a_file_that_cannot_be_used(tmp_path):
    path = tmp_path / "truth.csv"
    frame = pd.DataFrame({"id": np.arange(EXAMPLES), "target": LABELS})
    frame.iloc[::-1].to_csv(path, index=False)
    fails("truth.csv lists examples in another order than 'id' numbers them", PREDS, labels=path)
    frame.assign(label=1).to_csv(path, index=False)
    fails("2 of them could be the label", PREDS, labels=path)
    fails("there is no such file", PREDS, labels=tmp_path / "no.npy")
    fails("there is no such file", PREDS, labels=tmp_path / "no.txt")
    np.save(tmp_path / "l.npy", PREDS)
    fails("l.npy have shape", PREDS, labels=tmp_path / "l.npy")
    (tmp_path / "l.parquet").write_bytes(b"PAR1")
    fails("must be one of .npy", PREDS, labels=tmp_path / "l.parquet")
    np.save(tmp_path / "g.npy", np.array(list("ab")))
    fails("groups has shape", PREDS, labels=LABELS, groups=tmp_path / "g.npy")


def test_a_store_of_arrays_with_fields(tmp_path):
    fields = np.array([(1, 2.0)], dtype=[("a", "<i4"), ("b", "<f8")])
    write_run(tmp_path, {"seed": 1}, fields)
    with pytest.raises(InputError, match="an array with fields"):
        load_predictions(tmp_path)


def test_a_store_whose_only_record_is_a_link(tmp_path):
    path = write_run(tmp_path / "store", {"seed": 1, "n": 5}, [0, 1], {"error": 0.5})
    (path / "record.json").rename(tmp_path / "outside.json")
    (path / "record.json").symlink_to(tmp_path / "outside.json")
    for load in (load_predictions, load_measurements):
        with pytest.raises(StoreError, match="is a link"):
            load(tmp_path / "store")


def test_a_pattern_takes_each_file_for_a_run(tmp_path):
    folder = write_runs(tmp_path / "runs", "npy")
    np.save(folder / "other.npy", PREDS[0])
    found = load_predictions(folder / "run_*.npy", labels=LABELS)
    np.testing.assert_array_equal(found.errors(), ERRORS)
    assert found.run_ids.tolist() == [f"run_{i + 8}" for i in range(RUNS)]
    with pytest.raises(InputError, match="matches no file"):
        load_predictions(folder / "seed_*.npy", labels=LABELS)
