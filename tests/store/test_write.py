"""Runs on disk: whole or not at all, checked when read."""

from __future__ import annotations

import builtins
import errno
import io
import json
import os
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curvewise.errors import InputError, MissingDependencyError, StoreError
from curvewise.store import record as environment
from curvewise.store import write as _files
from curvewise.store.claims import Claims
from curvewise.store.read import list_runs, read_record, read_run
from curvewise.store.record import is_guarded, record_bytes, run_id
from curvewise.store.tables import export_store
from curvewise.store.verify import StoreCheck, verify_store
from curvewise.store.write import write_labels, write_run

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
    path = write_run(tmp_path, COORDINATES, error=ValueError("no luck"))
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
        write_run(tmp_path, COORDINATES, error="later")
    assert read_run(path).metrics["error"] == 0.5
    write_run(tmp_path, COORDINATES, [1, 3], {"error": 0.4}, overwrite=True)
    assert read_run(path).metrics["error"] == 0.4
    assert list((tmp_path / _files.ASIDE).iterdir()) == []


@given(st.dictionaries(st.text(), st.text() | st.integers() | st.booleans() | st.none(), min_size=1))
@settings(deadline=None)
def test_the_id_ignores_order_and_tells_coordinates_apart(coordinates):
    backwards = dict(reversed(coordinates.items()))
    assert run_id(coordinates) == run_id(backwards)
    assert run_id(coordinates) != run_id(coordinates | {"another": 1.5})


@pytest.mark.parametrize("name", ["../../etc/passwd", "a/b\\c", "con", "", "\x00", "\ud800", "é" * 5000, "<script>"])
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
        ({"metrics": {"error": "low"}}, r"metrics\['error'\]='low': must be a number"),
        ({"error": 5}, "error=5: pass text"),
        ({"predictions": {"../x": [1]}}, r"predictions has the name '../x'"),
        ({"predictions": {"": [1]}}, "predictions has the name ''"),
        ({"predictions": {"x" * 65: [1]}}, "at most 64 letters"),
        ({"predictions": {"a": [1], "A": [2]}}, "differ by case only"),
        ({"arrays": {"/etc/passwd": [1]}}, "arrays has the name '/etc/passwd'"),
        ({"arrays": {".hidden": [1]}}, "begin with a letter or digit"),
        ({"arrays": {"predictions.a": [1]}}, "pass predictions as predictions="),
        ({"arrays": {"features": [object()]}}, "features holds Python objects"),
        ({"checkpoints": {"a\nb": {}}}, r"checkpoints has the name 'a\\nb'"),
        ({"checkpoints": {"end": {}, "END": {}}}, "differ by case only"),
        ({"checkpoints": {"end": {"w": ["a"]}}}, r"checkpoints\['end'\]\['w'\] is of <U1"),
        ({"checkpoints": {"end": {"w": [None]}}}, r"checkpoints\['end'\]\['w'\] holds Python"),
        ({"labels": {"a b": [1]}}, "labels has the name 'a b'"),
        ({"labels": [object()]}, r"labels\['test'\] holds Python objects"),
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


def forge(path, **changes):
    """Change a record and its checksum, as no accident would."""
    record = json.loads((path / "record.json").read_text())
    del record["sha256"]
    (path / "record.json").write_bytes(record_bytes(record | changes))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (spoil_array, "predictions.npy is damaged"),
        (lambda p: (p / "predictions.npy").unlink(), "predictions.npy cannot be read"),
        (lambda p: (p / "record.json").unlink(), "record.json cannot be read"),
        (lambda p: (p / "record.json").write_text('{"schema": 1'), "record.json cannot be read"),
        (lambda p: (p / "record.json").write_text("[]"), "not the record"),
        (lambda p: (p / "record.json").write_bytes(b"\xff"), "record.json cannot be read"),
        (edit(schema=2), "record.json is damaged"),
        (lambda p: forge(p, schema=2), "schema 2 and this curvewise reads 1"),
        (edit(coordinates={"n": 1}), "does not belong"),
        (edit(coordinates={}), "does not belong"),
        (edit(metrics=None), "lacks metrics"),
        (edit(status="odd"), "known status"),
        (edit(metrics={"error": float("nan")}), "NaN is not JSON"),
        (edit(metrics={"error": 0.4}), "record.json is damaged: its checksum"),
        (edit(coordinates={"n": 1e999}), "Infinity is not JSON"),
        (lambda p: forge(p, arrays={"../x": {}}), "no arrays or files that a run can have"),
        (lambda p: forge(p, files={"end": "x"}), "no arrays or files that a run can have"),
        (lambda p: forge(p, labels={"test": "../../x"}), "no labels that a store can have"),
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
    about = {"sha256": digest, "file": "predictions.npy", "shape": [1], "dtype": "int64"}
    forge(path, arrays={"predictions": about})
    with pytest.raises(StoreError, match=r"predictions.npy is not an array"):
        read_run(path)


def leftover(store: Path, age: float, name: str = "0" * 20, part: str = "record.json") -> Path:
    """Leave what a writer leaves that is killed; some time ago by the clock of the disk."""
    folder = store / _files.ASIDE / f"{name}-0123456789ab"
    folder.mkdir(parents=True)
    (folder / part).write_text("{")
    then = folder.stat().st_mtime - age
    for path in (folder / part, folder):
        os.utime(path, (then, then))
    return folder


def test_writing_removes_old_leftovers_and_nothing_else(tmp_path):
    old, young = leftover(tmp_path, 3700), leftover(tmp_path, 3500, name="1" * 20)
    slow = leftover(tmp_path, 3700, name="2" * 20)  # a large file that is still being written
    os.utime(slow / "record.json")
    strange = tmp_path / _files.ASIDE / "my notes"
    strange.mkdir()
    os.utime(strange, (0, 0))
    write_run(tmp_path, COORDINATES, [1])
    assert not old.exists()
    assert [p.exists() for p in (young, slow, strange)] == [True] * 3


@pytest.mark.parametrize("ahead", [7200, -7200, 4e8])
def test_leftovers_are_judged_by_the_clock_of_the_file_system(tmp_path, monkeypatch, ahead):
    young, old = leftover(tmp_path, 60), leftover(tmp_path, 3700, name="1" * 20)
    clock = time.time
    monkeypatch.setattr(time, "time", lambda: clock() + ahead)
    write_run(tmp_path, COORDINATES, [1])
    list_runs(tmp_path)
    assert young.exists()
    assert not old.exists()


def test_success_means_that_the_run_is_there(tmp_path, monkeypatch):
    """Whoever deletes what is about to be published makes the call fail, and nothing is lost."""
    path = write_run(tmp_path, COORDINATES, [1], {"error": 0.5})
    rename = os.rename

    def spoiled(source, target, **kwargs):
        if Path(target) == path and ".replaced" not in str(source):
            (Path(source) / "predictions.npy").unlink(missing_ok=True)
        rename(source, target, **kwargs)

    monkeypatch.setattr(os, "rename", spoiled)
    with pytest.raises(StoreError, match="is not as it was written"):
        write_run(tmp_path, COORDINATES, [2], {"error": 0.4}, overwrite=True)
    monkeypatch.undo()
    assert read_run(path).predictions.tolist() == [1]
    assert list((tmp_path / _files.ASIDE).iterdir()) == []


def test_listing_reads_no_arrays_and_ignores_leftovers(tmp_path):
    paths = [write_run(tmp_path, COORDINATES | {"fold": k}, [k]) for k in range(3)]
    for path in paths:
        (path / "predictions.npy").unlink()
    (tmp_path / "notes.txt").write_text("mine")
    old = leftover(tmp_path, age=3700)
    runs = list_runs(tmp_path)
    assert [r.path for r in runs] == sorted(paths)
    assert all(r.predictions is None and "predictions" in r.arrays for r in runs)
    assert old.exists()  # who reads changes nothing
    assert list_runs(tmp_path / "none") == []
    (paths[0] / "record.json").write_text("{")
    with pytest.raises(StoreError, match=paths[0].name):
        list_runs(tmp_path)


WRITER = """
import sys
from curvewise.store import read_run, write_run
for i in range(60):
    path = write_run(sys.argv[1], {"n": 1}, [int(sys.argv[2])] * 500, overwrite=True)
"""


def test_processes_that_write_the_same_run_leave_one_of_them_whole(tmp_path):
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    writers = [subprocess.Popen([*command, str(i)]) for i in range(2)]
    path = tmp_path / run_id({"n": 1})
    begun = False
    while any(w.poll() is None for w in writers):
        try:
            predictions = read_run(path).predictions
        except StoreError as error:
            assert "There is no run" in str(error)  # noqa: PT017
            assert not begun
        else:
            begun = True  # and from now on there is one, whoever replaces it
            assert len(set(predictions.tolist())) == 1
            assert len(list_runs(tmp_path)) == 1
    assert [w.returncode for w in writers] == [0, 0]
    assert len(read_run(path).predictions) == 500
    assert leaves(tmp_path) == [path]
    assert list((tmp_path / _files.ASIDE).iterdir()) == []


def test_writing_once_wins_when_another_process_was_quicker(tmp_path, monkeypatch):
    from curvewise.store import write as store

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


WEIGHTS = {
    "conv.weight": np.arange(24, dtype=np.float32).reshape(2, 3, 4).transpose(2, 0, 1),
    "half": np.ones(3, dtype=np.float16),
    "steps": np.array(7),
    "flag": np.array([True, False]),
    "none": np.zeros((0, 3)),
}


def test_all_that_an_engine_keeps_comes_back(tmp_path):
    labels = np.array([1, 0, 2])
    probabilities = np.random.default_rng(0).random((3, 4), dtype=np.float32)
    path = write_run(
        tmp_path,
        COORDINATES,
        {"test": [1, 2, 3], "shifted": np.array(["a", "b"])},
        arrays={"probabilities": probabilities, "probabilities.shifted": probabilities[:2]},
        checkpoints={"end": WEIGHTS, "drop-1": {"w": np.zeros(2)}},
        labels={"test": labels, "shifted": np.array(["b", "a"])},
    )
    for run in (read_run(path), list_runs(tmp_path)[0]):
        assert run.array().tolist() == [1, 2, 3]
        assert run.array("predictions.shifted").tolist() == ["a", "b"]
        np.testing.assert_array_equal(run.array("probabilities.shifted"), probabilities[:2])
        assert run.labels().tolist() == labels.tolist()
        assert run.labels("shifted").tolist() == ["b", "a"]
        weights = run.checkpoint("end")
        assert weights.keys() == WEIGHTS.keys()
        for name, values in WEIGHTS.items():
            np.testing.assert_array_equal(weights[name], values)
            assert (weights[name].dtype, weights[name].shape) == (values.dtype, values.shape)
        assert run.checkpoint("drop-1")["w"].tolist() == [0, 0]
    assert read_run(path).predictions.tolist() == [1, 2, 3]
    for ask, message in [
        (lambda: run.array("features"), "no array 'features'; there is 'predictions', "),
        (lambda: run.checkpoint("start"), "no checkpoint 'start'; there is 'drop-1', 'end'"),
        (lambda: run.labels("train"), "no set of labels 'train'"),
    ]:
        with pytest.raises(InputError, match=message):
            ask()


def test_torch_reads_the_checkpoints(tmp_path):
    torch = pytest.importorskip("torch")
    load_file = pytest.importorskip("safetensors.torch").load_file
    path = write_run(tmp_path, COORDINATES, checkpoints={"end": WEIGHTS})
    weights = load_file(path / "end.safetensors")
    assert torch.equal(weights["conv.weight"], torch.tensor(WEIGHTS["conv.weight"].copy()))


def test_checkpoints_need_safetensors_and_nothing_else_does(tmp_path, monkeypatch):
    path = write_run(tmp_path, COORDINATES, checkpoints={"end": WEIGHTS})
    monkeypatch.setitem(sys.modules, "safetensors.numpy", None)
    with pytest.raises(MissingDependencyError, match=r"curvewise\[torch\]"):
        write_run(tmp_path, COORDINATES | {"n": 1}, checkpoints={"end": WEIGHTS})
    with pytest.raises(MissingDependencyError, match=r"curvewise\[torch\]"):
        read_run(path).checkpoint()
    write_run(tmp_path, COORDINATES | {"n": 1}, [1])


def test_labels_are_stored_once_and_mended(tmp_path):
    labels = np.arange(50) % 3
    paths = [write_run(tmp_path, COORDINATES | {"fold": k}, labels=labels) for k in range(3)]
    write_run(tmp_path, COORDINATES | {"fold": 3}, labels=labels[::-1])
    files = sorted((tmp_path / "labels").iterdir())
    assert len(files) == 2
    run = read_run(paths[0])
    (tmp_path / "labels" / f"{run.label_digests['test']}.npy").write_bytes(b"cut")
    with pytest.raises(StoreError, match="store these labels again"):
        run.labels()
    write_run(tmp_path, COORDINATES | {"fold": 0}, labels=labels)  # settled, and yet it mends
    assert run.labels().tolist() == labels.tolist()
    files[0].unlink()
    files[1].unlink()
    assert write_labels(tmp_path, labels) == run.label_digests
    assert run.labels().tolist() == labels.tolist()


def test_damage_beside_the_predictions_is_found_when_it_is_read(tmp_path):
    path = write_run(tmp_path, COORDINATES, [1], arrays={"features": [[1.5]]}, checkpoints={"end": WEIGHTS})
    for file, read in [
        ("features.npy", lambda run: run.array("features")),
        ("end.safetensors", lambda run: run.checkpoint()),
    ]:
        data = (path / file).read_bytes()
        (path / file).write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
        run = read_run(path)
        with pytest.raises(StoreError, match=f"{file} is damaged"):
            read(run)


def test_records_from_before_they_had_checksums_are_read(tmp_path):
    path = write_run(tmp_path, COORDINATES, [1, 2], {"error": 0.5})
    record = json.loads((path / "record.json").read_text())
    old = {k: v for k, v in record.items() if k not in ("sha256", "files", "labels")}
    (path / "record.json").write_text(json.dumps(old))
    assert not is_guarded(read_record(path))
    assert read_run(path).predictions.tolist() == [1, 2]
    assert read_run(path).label_digests == {}
    assert write_run(tmp_path, COORDINATES, [1, 2], {"error": 0.5}) == path
    (path / "record.json").write_text(json.dumps(old | {"shb256": record["sha256"]}))
    with pytest.raises(StoreError, match="damaged"):
        read_run(path)


def test_time_is_no_result(tmp_path):
    path = write_run(tmp_path, COORDINATES, [1], {"error": 0.5, "seconds": 1.0})
    assert write_run(tmp_path, COORDINATES, [1], {"error": 0.5, "seconds": 2.0}) == path
    assert read_run(path).metrics["seconds"] == 1.0


TOO_LARGE = """
import resource, signal, sys
import numpy as np
from curvewise.errors import StoreError
from curvewise.store.write import write_run
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    write_run(sys.argv[1], {"n": int(sys.argv[2])}, np.zeros(int(sys.argv[3])), overwrite=True,
              arrays={"a": np.zeros(1000), "features": np.zeros(1_000_000)},
              labels=np.arange(int(sys.argv[3])))
except StoreError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits the size of files")
def test_a_write_that_fails_half_way_leaves_what_was_there(tmp_path):
    path = write_run(tmp_path, {"n": 1}, [1, 2, 3])
    for n, examples in [("1", "5"), ("2", "5"), ("3", "1000000")]:
        done = subprocess.run(
            [sys.executable, "-c", TOO_LARGE, str(tmp_path), n, examples], capture_output=True, text=True, check=True
        )
        assert "could not be written" in done.stdout
        assert "File too large" in done.stdout
        assert "earlier runs are unchanged" in done.stdout
    assert [run.path for run in list_runs(tmp_path)] == [path]
    assert read_run(path).predictions.tolist() == [1, 2, 3]
    assert list((tmp_path / _files.ASIDE).iterdir()) == []
    assert len(list((tmp_path / "labels").iterdir())) == 1


@pytest.mark.parametrize("when", range(8))
def test_a_full_disk_at_any_moment(tmp_path, monkeypatch, when):
    write_run(tmp_path, COORDINATES, [1], labels=[1])
    calls = iter(range(100))
    real = os.fsync

    def full(handle):
        if next(calls) == when:
            raise OSError(28, "No space left on device")
        real(handle)

    monkeypatch.setattr(os, "fsync", full)
    try:
        write_run(tmp_path, COORDINATES, [2], arrays={"a": [1]}, labels=[2], overwrite=True)
    except StoreError as error:
        assert "No space left" in str(error)  # noqa: PT017
        # The last sync is that of the store, after the new run is in its place.
        expected = [[1], [2]] if when == 6 else [[1]]
    else:
        assert when == 7
        expected = [[2]]
    monkeypatch.undo()
    run = read_run(list_runs(tmp_path)[0].path)
    assert run.predictions.tolist() in expected
    assert run.labels().tolist() == run.predictions.tolist()
    assert list((tmp_path / _files.ASIDE).iterdir()) == []


REFUSALS = {
    errno.ENOSPC: "No space left on device: make room there",
    errno.EDQUOT: "Disk quota exceeded: make room there",
    errno.EROFS: "Read-only file system: name a folder that can be written to",
    errno.EACCES: "Permission denied: name a folder that you may use",
}


def refuse_writing(monkeypatch: pytest.MonkeyPatch, store: Path, number: int) -> None:
    """Have the system refuse whatever would change a store."""

    def refused(name: str, real: Any) -> Any:
        def call(path: Any, *args: Any, **kwargs: Any) -> Any:
            inside = kwargs.get("dir_fd") is not None or str(path).startswith(str(store))
            mode = kwargs.get("mode", args[0] if args else "r")
            if inside and (name != "open" or set(str(mode)) & set("wxa+")):
                raise OSError(number, os.strerror(number), str(path))
            return real(path, *args, **kwargs)

        return call

    for name in ("mkdir", "rename", "replace", "link", "unlink", "rmdir", "utime"):
        monkeypatch.setattr(os, name, refused(name, getattr(os, name)))
    monkeypatch.setattr(builtins, "open", refused("open", open))
    monkeypatch.setattr(io, "open", refused("open", io.open))


@pytest.mark.parametrize("number", REFUSALS)
def test_a_store_that_cannot_be_written_is_told_in_one_sentence(tmp_path, monkeypatch, number):
    path = write_run(tmp_path, COORDINATES, [1], labels=[1])
    before = {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*")}
    refuse_writing(monkeypatch, tmp_path, number)
    for write in (
        lambda: write_run(tmp_path, COORDINATES | {"n": 1}, [1]),
        lambda: write_run(tmp_path, COORDINATES, [2], labels=[2], overwrite=True),
        lambda: write_labels(tmp_path, [3]),
        lambda: Claims(tmp_path).take("a" * 20),
        lambda: export_store(tmp_path, tmp_path / "runs.csv"),
    ):
        with pytest.raises(StoreError) as told:
            write()
        assert REFUSALS[number] in str(told.value)
        assert str(tmp_path) in str(told.value)
        assert "Errno" not in str(told.value)
    assert read_run(path).labels().tolist() == [1]
    assert len(list_runs(tmp_path)) == 1
    assert verify_store(tmp_path).sound
    monkeypatch.undo()
    assert {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*")} == before


def test_readers_of_a_store_that_cannot_be_written_see_all_runs(tmp_path, monkeypatch):
    """Also one that its writer, killed in between, left aside."""
    path = write_run(tmp_path, COORDINATES, [1], labels=[1])
    os.rename(path, tmp_path / _files.ASIDE / f"{path.name}.replaced-0123456789ab")
    refuse_writing(monkeypatch, tmp_path, errno.EROFS)
    assert read_run(path).predictions.tolist() == [1]
    assert [r.path for r in list_runs(tmp_path)] == [path]
    assert list_runs(tmp_path)[0].labels().tolist() == [1]
    assert (verify_store(tmp_path).runs, verify_store(tmp_path).sound) == (1, True)


def whole(found: StoreCheck) -> bool:
    return (found.runs, found.damage) == (2, ())


READERS = {
    "read": lambda store, path: read_run(path).predictions.tolist() in ([0] * 9, [1] * 9),
    "list": lambda store, path: len(list_runs(store)) == 2,
    "verify": lambda store, path: whole(verify_store(store)),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("moment", [0, 3])
def test_a_reader_looks_again_while_a_run_is_replaced(tmp_path, monkeypatch, reader, moment):
    """Another process takes the run away, and puts its successor there, between any two looks."""
    names = ("open", "lstat", "scandir")
    before, after = tmp_path / "before", tmp_path / "after"
    for value, folder in enumerate((before, after)):
        write_run(folder, COORDINATES | {"fold": 1}, [0])
        identity = write_run(folder, COORDINATES, [value] * 9, {"error": 0.0}).name
    for at in range(1, 80):
        store = shutil.copytree(before, tmp_path / f"store {at}")
        new = shutil.copytree(after / identity, tmp_path / f"new {at}")
        path = store / identity
        old = store / _files.ASIDE / f"{path.name}.replaced-0123456789ab"
        calls = iter(range(1, 10_000))
        last = 0

        def interleaved(real, at=at, path=path, new=new, old=old, calls=calls):
            def call(*args, **kwargs):
                nonlocal last
                last = next(calls)
                if last == at:
                    os.rename(path, old)
                if last == at + moment:
                    os.rename(new, path)
                    old.rename(old.parent / "gone")
                return real(*args, **kwargs)

            return call

        for name in names:
            monkeypatch.setattr(os, name, interleaved(getattr(os, name)))
        found = READERS[reader](store, path)
        monkeypatch.undo()
        assert found, at
        if last < at:
            break
    else:
        pytest.fail("there are more looks than moments that were tried")


def test_an_array_of_a_run_that_was_replaced_is_not_called_damaged(tmp_path):
    path = write_run(tmp_path, COORDINATES, [1], {"error": 0.5})
    (run,) = list_runs(tmp_path)
    write_run(tmp_path, COORDINATES, [2], {"error": 0.4}, overwrite=True)
    with pytest.raises(StoreError, match=r"was replaced by another run.*read the store again"):
        run.array()
    shutil.rmtree(path)
    with pytest.raises(StoreError, match="There is no run"):
        run.array()


class Killed(BaseException):
    """Stands for a process that is gone: nothing of it runs any more."""


@pytest.mark.parametrize("when", range(6))
@pytest.mark.parametrize("reader", ["list", "read", "write"])
def test_a_run_being_replaced_is_never_lost(tmp_path, monkeypatch, when, reader):
    path = write_run(tmp_path, COORDINATES, [1], {"error": 0.5})
    calls = iter(range(100))
    real = {name: getattr(os, name) for name in ("rename", "unlink", "rmdir")}

    def dying(name):
        def call(*args, **kwargs):
            if next(calls) >= when:
                raise Killed
            return real[name](*args, **kwargs)

        return call

    for name in real:
        monkeypatch.setattr(os, name, dying(name))
    with suppress(Killed):
        write_run(tmp_path, COORDINATES, [2], {"error": 0.4}, overwrite=True)
    monkeypatch.undo()
    if reader == "list":
        assert len(list_runs(tmp_path)) == 1
    elif reader == "write":
        with suppress(StoreError):
            write_run(tmp_path, COORDINATES, [3], {"error": 0.3})
    assert read_run(path).predictions.tolist() in ([1], [2])
    # What is deleted by the user stays deleted, once a writer has tidied up.
    other = write_run(tmp_path, COORDINATES | {"fold": 1}, [1])
    assert read_run(path).predictions.tolist() in ([1], [2])
    shutil.rmtree(path)
    assert [run.path for run in list_runs(tmp_path)] == [other]


KILLED_AGAIN_AND_AGAIN = """
import os, random, signal, sys, time
from curvewise.store import read_run, write_run
path = write_run(sys.argv[1], {"n": 1}, [0] * 300, labels=[0] * 300)
rng = random.Random(0)
for round in range(1, 31):
    heard, said = os.pipe()
    child = os.fork()
    if child == 0:
        while True:
            values = [round] * 300
            write_run(sys.argv[1], {"n": 1}, values, arrays={"a": values}, labels=values,
                      overwrite=True)
            os.write(said, b".")
    os.read(heard, 1)  # once it is through; however slow the machine
    time.sleep(rng.uniform(0, 0.02))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(heard), os.close(said)
    run = read_run(path)
    assert run.predictions.tolist() == [round] * 300
    assert run.labels().tolist() == run.predictions.tolist()
    assert (run.array("a") == run.predictions).all()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="starts processes by forking")
def test_a_writer_that_is_killed_loses_nothing(tmp_path):
    command = [sys.executable, "-c", KILLED_AGAIN_AND_AGAIN, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


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


@pytest.mark.parametrize("kept", [{"predictions": [0, 1]}, {"arrays": {"probabilities": [[1.0]]}}])
def test_predictions_for_other_examples_than_the_labels_are_refused(tmp_path, kept):
    with pytest.raises(InputError, match=r"has shape \(.*labels 'test' 3 examples"):
        write_run(tmp_path, {"learner": "a"}, labels=[0, 1, 1], **kept)
    assert not list_runs(tmp_path)


def test_a_folder_that_another_worker_makes_at_the_same_moment_is_no_link(tmp_path, monkeypatch):
    look, looks = _files.is_folder, []

    def slow(path: Any) -> bool:
        found = look(path)
        looks.append(path)
        if len(looks) == 1:  # between the first look and what follows from it
            Path(path).mkdir()
        return found

    monkeypatch.setattr(_files, "is_folder", slow)
    assert _files.own_folder(tmp_path, "labels").is_dir()
    (tmp_path / "linked").symlink_to(tmp_path / "labels")
    with pytest.raises(StoreError, match="is a link or a file"):
        _files.own_folder(tmp_path, "linked")


def test_texts_of_pandas_are_stored_as_texts(tmp_path):
    pd = pytest.importorskip("pandas")
    labels, predicted = pd.Series(["a", "b"]), pd.Categorical(["b", "b"])
    run = read_run(write_run(tmp_path, {"learner": "mine"}, predicted, labels=labels))
    assert run.predictions.tolist() == ["b", "b"]
    assert run.labels().tolist() == ["a", "b"]
    with pytest.raises(InputError, match="Python objects"):
        write_run(tmp_path, {"learner": "other"}, pd.Series(["a", None]))


def test_one_note_and_labels_without_an_axis(tmp_path: Path) -> None:
    assert read_run(write_run(tmp_path, {"n": 1}, notes="by hand")).notes == ("by hand",)
    with pytest.raises(InputError, match=r"labels\['test'\] is a single value"):
        write_run(tmp_path, {"n": 2}, [0, 1], labels=1)
