"""Runs on disk: whole or not at all, checked when read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curvewise.errors import InputError, StoreError
from curvewise.study import _files, environment, list_runs, read_run, write_run
from curvewise.study._record import run_id

COORDINATES = {"learner": "mine", "n": 100, "fold": 0, "seed": 7}


def leaves(folder: Path) -> list[Path]:
    """What lies in the store beside the place for unfinished runs."""
    return [p for p in folder.iterdir() if p.name != _files.ASIDE]


def test_a_run_comes_back_as_it_was_written(tmp_path):
    predictions = np.array([[0.25, 0.75], [1.0, 0.0]], dtype=np.float32)
    path = write_run(
        tmp_path / "a" / "store",
        COORDINATES,
        predictions,
        {"error": np.float64(0.1), "loss": 2},
        environment={"device": "cpu"},
        notes=("slow",),
    )
    run = read_run(path)
    np.testing.assert_array_equal(run.predictions, predictions)
    assert run.predictions.dtype == np.float32
    assert dict(run.coordinates) == COORDINATES
    assert run.metrics == {"error": 0.1, "loss": 2.0}
    assert (run.status, run.error, run.notes) == ("done", None, ("slow",))
    assert run.environment["device"] == "cpu"
    assert run.environment["packages"]["numpy"] == np.__version__
    assert run.id == path.name == run_id(COORDINATES)
    assert len(run.id) == 20


def test_the_record_is_strict_json_with_checksums(tmp_path):
    path = write_run(tmp_path, COORDINATES, [1, 2], {"error": float("nan"), "loss": float("inf")})
    record = json.loads((path / "record.json").read_text(), parse_constant=pytest.fail)
    assert record["schema"] == 1
    assert record["metrics"] == {"error": None, "loss": None}
    assert len(record["arrays"]["predictions"]["sha256"]) == 64
    assert len(record["notes"]) == 2
    run = read_run(path)
    assert np.isnan(run.metrics["error"])
    assert "metrics['error'] was nan" in run.notes[0]


def test_failed_runs_keep_their_error_and_give_way(tmp_path):
    path = write_run(tmp_path, COORDINATES, status="failed", error=ValueError("no luck"))
    assert read_run(path).error == "ValueError: no luck"
    assert read_run(path).predictions is None
    assert write_run(tmp_path, COORDINATES, [1], {"error": 0.5}) == path
    assert read_run(path).status == "done"


def test_a_done_run_is_only_replaced_on_purpose(tmp_path):
    path = write_run(tmp_path, COORDINATES, [1, 2], {"error": 0.5})
    stamp = (path / "record.json").stat().st_mtime_ns
    assert write_run(tmp_path, COORDINATES, [1, 2], {"error": 0.5}) == path
    assert (path / "record.json").stat().st_mtime_ns == stamp
    for other in [([1, 3], {"error": 0.5}), ([1, 2], {"error": 0.4})]:
        with pytest.raises(StoreError, match="overwrite=True"):
            write_run(tmp_path, COORDINATES, *other)
    with pytest.raises(StoreError, match="overwrite=True"):
        write_run(tmp_path, COORDINATES, status="failed", error="later")
    assert read_run(path).metrics["error"] == 0.5
    write_run(tmp_path, COORDINATES, [1, 3], {"error": 0.4}, overwrite=True)
    assert read_run(path).metrics["error"] == 0.4
    assert list((tmp_path / _files.ASIDE).iterdir()) == []


@given(
    st.dictionaries(st.text(), st.text() | st.integers() | st.booleans() | st.none(), min_size=1)
)
@settings(deadline=None)
def test_the_id_ignores_order_and_tells_coordinates_apart(coordinates):
    backwards = dict(reversed(coordinates.items()))
    assert run_id(coordinates) == run_id(backwards)
    assert run_id(coordinates) != run_id(coordinates | {"another": 1.5})


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "a/b\\c", "con", "", "\x00", "\ud800", "é" * 5000, "<script>"]
)
def test_hostile_names_are_data_only(tmp_path, name):
    path = write_run(tmp_path, {"learner": name, name: "key"}, [1])
    assert path.parent == tmp_path
    assert leaves(tmp_path) == [path]
    assert read_run(path).coordinates["learner"] == name


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"coordinates": {}}, "at least one entry"),
        ({"coordinates": {"x": float("nan")}}, r"coordinates\['x'\] is nan"),
        ({"coordinates": {"x": [1, float("inf")]}}, r"coordinates\['x'\]\[1\] is inf"),
        ({"coordinates": {"x": object()}}, r"coordinates\['x'\] is a object"),
        ({"coordinates": {1: 2}}, "keys must be strings"),
        ({"predictions": [object()]}, "pickle"),
        ({"metrics": {"error": "low"}}, r"metrics\['error'\] is 'low'"),
        ({"status": "running"}, "status='running'"),
        ({"error": "oops"}, "status='failed'"),
    ],
)
def test_what_cannot_be_stored_is_named(tmp_path, arguments, message):
    with pytest.raises(InputError, match=message):
        write_run(tmp_path / "store", **({"coordinates": COORDINATES} | arguments))
    assert not (tmp_path / "store").exists() or leaves(tmp_path / "store") == []


def test_a_store_that_is_a_file(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="file"):
        write_run(tmp_path / "file", COORDINATES)
    with pytest.raises(StoreError, match="not a folder"):
        list_runs(tmp_path / "file")


def spoil_array(path):
    data = bytearray((path / "predictions.npy").read_bytes())
    data[-1] ^= 1
    (path / "predictions.npy").write_bytes(data)


def edit(**changes):
    def spoil(path):
        record = json.loads((path / "record.json").read_text())
        (path / "record.json").write_text(json.dumps(record | changes))

    return spoil


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (spoil_array, "predictions.npy is damaged"),
        (lambda p: (p / "predictions.npy").unlink(), "predictions.npy cannot be read"),
        (lambda p: (p / "record.json").unlink(), "record.json cannot be read"),
        (lambda p: (p / "record.json").write_text('{"schema": 1'), "record.json cannot be read"),
        (lambda p: (p / "record.json").write_text("[]"), "not the record"),
        (lambda p: (p / "record.json").write_bytes(b"\xff"), "record.json cannot be read"),
        (edit(schema=2), "schema 2 and this curvewise reads 1"),
        (edit(coordinates={"n": 1}), "does not belong"),
        (edit(coordinates={}), "does not belong"),
        (edit(metrics=None), "lacks metrics"),
        (edit(status="odd"), "known status"),
        (edit(metrics={"error": float("nan")}), "NaN is not JSON"),
    ],
)
def test_damage_is_found_and_the_file_named(tmp_path, spoil, message):
    path = write_run(tmp_path, COORDINATES, [1, 2, 3], {"error": 0.5})
    spoil(path)
    with pytest.raises(StoreError, match=message):
        read_run(path)


def test_arrays_are_never_unpickled(tmp_path):
    import hashlib

    path = write_run(tmp_path, COORDINATES, [1])
    np.save(path / "predictions.npy", np.array([{}], dtype=object), allow_pickle=True)
    digest = hashlib.sha256((path / "predictions.npy").read_bytes()).hexdigest()
    edit(arrays={"predictions": {"sha256": digest, "file": "/etc/passwd"}})(path)
    with pytest.raises(StoreError, match=r"predictions.npy is not an array"):
        read_run(path)


def test_listing_reads_no_arrays_and_ignores_leftovers(tmp_path):
    paths = [write_run(tmp_path, COORDINATES | {"fold": k}, [k]) for k in range(3)]
    for path in paths:
        (path / "predictions.npy").unlink()
    (tmp_path / "notes.txt").write_text("mine")
    old, young = tmp_path / ".partial" / "old", tmp_path / ".partial" / "young"
    for folder in (old, young):
        folder.mkdir()
        (folder / "record.json").write_text("{")
    an_hour_ago = time.time() - 3700
    os.utime(old, (an_hour_ago, an_hour_ago))
    runs = list_runs(tmp_path)
    assert [r.path for r in runs] == sorted(paths)
    assert all(r.predictions is None and "predictions" in r.arrays for r in runs)
    assert not old.exists()
    assert young.exists()
    assert list_runs(tmp_path / "none") == []
    (paths[0] / "record.json").write_text("{")
    with pytest.raises(StoreError, match=paths[0].name):
        list_runs(tmp_path)


WRITER = """
import sys
from curvewise.study import read_run, write_run
for i in range(60):
    path = write_run(sys.argv[1], {"n": 1}, [int(sys.argv[2])] * 500, overwrite=True)
"""


def test_processes_that_write_the_same_run_leave_one_of_them_whole(tmp_path):
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    writers = [subprocess.Popen([*command, str(i)]) for i in range(2)]
    path = tmp_path / run_id({"n": 1})
    while any(w.poll() is None for w in writers):
        try:
            predictions = read_run(path).predictions
        except StoreError as error:
            # Missing between two renames, or replaced between two reads; never half there.
            assert "No such file" in str(error) or "checksum" in str(error)  # noqa: PT017
        else:
            assert len(set(predictions.tolist())) == 1
    assert [w.returncode for w in writers] == [0, 0]
    assert len(read_run(path).predictions) == 500
    assert leaves(tmp_path) == [path]
    assert list((tmp_path / _files.ASIDE).iterdir()) == []


def test_writing_once_wins_when_another_process_was_quicker(tmp_path, monkeypatch):
    from curvewise.study import store

    write_aside = store.write_aside

    def slow(*args):
        monkeypatch.setattr(store, "write_aside", write_aside)
        write_run(tmp_path, COORDINATES, [1], {"error": 0.5})
        return write_aside(*args)

    monkeypatch.setattr(store, "write_aside", slow)
    write_run(tmp_path, COORDINATES, [1], {"error": 0.5})
    assert list((tmp_path / _files.ASIDE).iterdir()) == []
    monkeypatch.setattr(store, "write_aside", slow)
    with pytest.raises(StoreError, match="overwrite=True"):
        write_run(tmp_path, COORDINATES, [2], {"error": 0.5})
    assert list((tmp_path / _files.ASIDE).iterdir()) == []


def test_a_crash_before_the_rename_leaves_no_run(tmp_path, monkeypatch):
    def crash(*args):
        raise OSError("power cut")

    monkeypatch.setattr(_files.os, "rename", crash)
    with pytest.raises(OSError, match="power cut"):
        write_run(tmp_path, COORDINATES, [1])
    monkeypatch.undo()
    assert list_runs(tmp_path) == []


def test_the_environment_does_without_git(tmp_path, monkeypatch):
    environment._git.cache_clear()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert environment.capture_environment()["git"] is None
    environment._git.cache_clear()
