"""Damage in a store is found, whatever byte it hits."""

from __future__ import annotations

import hashlib
import io
import json
import os
import random
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curvewise.errors import InputError, StoreError
from curvewise.store.read import list_runs, read_run
from curvewise.store.record import record_bytes, record_checksum, record_text
from curvewise.store.tables import export_store
from curvewise.store.verify import verify_store
from curvewise.store.write import write_labels, write_run


def make_store(folder: Path, runs: int = 3, weights: bool = True) -> Path:
    for seed in range(runs):
        write_run(
            folder,
            {"learner": "a", "n": 10, "seed": seed},
            {"test": np.arange(5) + seed, "shifted": [seed]},
            {"error": 0.1 + seed, "loss": float("nan"), "seconds": 1.5},
            arrays={"probabilities": np.full((5, 2), 0.5, dtype=np.float32)},
            checkpoints={"end": {"w": np.arange(3.0)}} if weights else None,
            labels={"test": np.arange(5), "shifted": [1]},
        )
    write_run(folder, {"learner": "b"}, error="ValueError: no")
    return folder


def files_of(store: Path) -> list[Path]:
    return sorted(p for p in store.rglob("*") if p.is_file())


def test_a_sound_store(tmp_path):
    store = make_store(tmp_path / "store")
    found = verify_store(store)
    assert found.sound
    assert (found.runs, found.done, found.failed) == (4, 3, 1)
    files = files_of(store)
    assert found.files == len(files) == 3 * 5 + 1 + 2
    assert found.bytes == sum(p.stat().st_size for p in files)
    assert (found.damage, found.warnings, found.leftovers, found.claims) == ((), (), (), ())
    assert "all are intact" in found.summary()
    assert found.to_dict()["type"] == "StoreCheck"
    assert len(found.frame()) == 0


def is_harmless(file: Path, before: bytes) -> bool:
    """Whether a changed record still says the same, all of it."""
    if file.name != "record.json":
        return False
    return bool(json.loads(file.read_bytes()) == json.loads(before))


def test_every_flipped_byte_is_found_or_harmless(tmp_path):
    store = make_store(tmp_path / "store", runs=1)
    rng = random.Random(0)
    harmless = total = 0
    for file in files_of(store):
        before = file.read_bytes()
        for position in range(len(before)):
            after = bytearray(before)
            after[position] ^= 1 << rng.randrange(8)
            file.write_bytes(after)
            found = verify_store(store)
            if found.sound:
                assert is_harmless(file, before), (file.name, position)
                harmless += 1
            else:
                place = file.relative_to(store).as_posix()
                assert {d.file for d in found.damage} == {place}
                assert all(place in d.problem and "Restore it" in d.problem for d in found.damage)
            total += 1
        file.write_bytes(before)
    assert verify_store(store).sound
    assert harmless < total / 50  # white space between the fields of a record


@pytest.mark.parametrize("seed", range(40))
def test_nothing_that_happens_to_a_file_makes_it_crash(tmp_path, seed):
    rng = random.Random(seed)
    store = make_store(tmp_path / "store", runs=1)
    file = rng.choice(files_of(store))
    data = bytearray(file.read_bytes())
    cut = rng.randrange(len(data))
    kind = rng.choice(["truncate", "zeros", "noise", "gone", "folder", "longer", "swapped"])
    other = rng.choice([p for p in files_of(store) if p != file])
    changed = {
        "truncate": data[:cut],
        "zeros": data[:cut] + bytes(len(data) - cut),
        "noise": data[:cut] + rng.randbytes(len(data) - cut),
        "longer": data + b"\0",
        "swapped": other.read_bytes(),
    }
    if kind == "gone":
        file.unlink()
    elif kind == "folder":
        file.unlink()
        file.mkdir()
    else:
        file.write_bytes(changed[kind])
    if kind in changed and (changed[kind] == data or changed[kind].rstrip() == data.rstrip()):
        return  # zeros over zeros, the last line break, or files that are equal
    found = verify_store(store)
    assert file.relative_to(store).as_posix() in {d.file for d in found.damage}
    assert found.table()
    json.dumps(found.to_dict(), allow_nan=False)


def test_damaged_runs_are_moved_aside_and_can_be_made_again(tmp_path):
    store = make_store(tmp_path / "store")
    bad = [run for run in list_runs(store) if run.status == "done"][:2]
    (bad[0].path / "record.json").write_text("{")
    (bad[1].path / "predictions.shifted.npy").unlink()
    (bad[1].path / "end.safetensors").write_bytes(b"")
    found = verify_store(store)
    assert not found.sound
    assert set(found.damaged_runs) == {run.id for run in bad}
    assert len(found.damage) == 3
    assert (found.runs, found.done, found.failed) == (4, 2, 1)
    assert found.removed == ()
    assert set(verify_store(store, remove=True).removed) == {run.id for run in bad}
    after = verify_store(store)
    assert after.sound
    assert after.runs == 2
    assert len(list((store / ".damaged").iterdir())) == 2
    make_store(store)
    assert verify_store(store).sound
    assert len(list_runs(store)) == 4
    assert read_run(bad[0].path).predictions is not None


def test_damaged_labels_take_no_runs_with_them(tmp_path):
    store = make_store(tmp_path / "store")
    digest = list_runs(store)[0].label_digests or list_runs(store)[1].label_digests
    file = store / "labels" / f"{digest['test']}.npy"
    file.write_bytes(file.read_bytes()[:-1])
    found = verify_store(store, remove=True)
    assert [(d.run, d.file) for d in found.damage] == [(None, f"labels/{file.name}")]
    assert found.removed == ()
    assert "write_labels" in found.damage[0].problem
    write_labels(store, np.arange(5))
    assert verify_store(store).sound


def test_runs_of_a_later_version_are_left_where_they_are(tmp_path):
    store = make_store(tmp_path / "store")
    run = list_runs(store)[0]
    record = json.loads((run.path / "record.json").read_text())
    del record["sha256"]
    (run.path / "record.json").write_bytes(record_bytes(record | {"schema": 2}))
    found = verify_store(store, remove=True)
    assert "use the version that wrote it" in found.damage[0].problem
    assert found.removed == ()
    assert run.path.exists()


def test_what_is_odd_and_no_damage(tmp_path):
    store = make_store(tmp_path / "store", weights=False)
    run = next(run for run in list_runs(store) if run.status == "done")
    (run.path / "notes.txt").write_text("mine")
    (store / "README").write_text("mine")
    (store / ".partial" / "leftover").mkdir()
    (store / ".claims").mkdir()
    (store / ".claims" / "someone").write_text("")
    record = json.loads((run.path / "record.json").read_text())
    keep = {k: v for k, v in record.items() if k not in ("sha256", "files", "labels")}
    (run.path / "record.json").write_text(json.dumps(keep))
    found = verify_store(store)
    assert found.sound
    assert found.leftovers == ("leftover",)
    assert found.claims == ("someone",)
    assert found.unguarded == 1
    assert f"{run.id}/notes.txt belongs to no run." in found.warnings
    assert "1 records were written before" in found.warnings[1]


def test_runs_in_the_wrong_place(tmp_path):
    store = make_store(tmp_path / "store")
    one, two = [run for run in list_runs(store) if run.status == "done"][:2]
    shutil.move(one.path, store / "copy of it")
    shutil.rmtree(two.path)
    shutil.copytree(store / "copy of it", two.path)
    found = verify_store(store)
    assert {d.file for d in found.damage} == {"copy of it", f"{two.id}/record.json"}
    assert "does not belong" in next(d for d in found.damage if d.run).problem
    verify_store(store, remove=True)
    assert (store / "copy of it").exists()


def test_no_store(tmp_path):
    with pytest.raises(StoreError, match="not a folder"):
        verify_store(tmp_path / "none")
    assert verify_store(tmp_path).summary().startswith(f"{tmp_path} holds 0 runs")


@contextmanager
def time_limit(seconds: int = 300) -> Iterator[None]:
    """Turn a reader that waits for ever into a failure."""

    def give_up(*_: object) -> None:
        pytest.fail("it waits for ever")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def forge(path: Path, **changes: Any) -> None:
    """Change fields of a record, nested ones too, and give it the checksum that goes with them."""
    record = json.loads((path / "record.json").read_text())
    del record["sha256"]
    for name, value in changes.items():
        record[name] = record[name] | value if isinstance(value, dict) else value
    record["sha256"] = record_checksum(record)
    (path / "record.json").write_bytes(record_text(record))


def done_run(store: Path) -> Path:
    return next(run.path for run in list_runs(store) if run.status == "done")


def assert_damaged(store: Path, run: Path, place: str) -> None:
    with time_limit():
        found = verify_store(store)
        assert [(d.run, d.file) for d in found.damage] == [(run.name, place)]
        assert "Restore it" in found.damage[0].problem
        assert verify_store(store, remove=True).removed == (run.name,)
        assert verify_store(store).sound


ABOUT = {"file": "predictions.npy", "sha256": "0" * 64, "shape": [5], "dtype": "int64"}


@pytest.mark.parametrize(
    "changes",
    [
        *({"environment": {"evaluations": v}} for v in (["a"], None, "a", {"test": 1})),
        *({"environment": {"attempts": v}} for v in ("many", -1, 1.5, None, True, [1])),
        *({"metrics": {"error": v}} for v in ("bad", [1], 10**400, -(10**400), True, {})),
        *({"error": v} for v in (5, ["x"], False)),
        *({"notes": v} for v in ([1], [{"a": 2}], [None])),
        {"arrays": {"predictions": {}}},
        *({"arrays": {"predictions": ABOUT | {"shape": v}}} for v in ("zz", None, [-1], [1.5])),
        *({"arrays": {"predictions": ABOUT | {"dtype": v}}} for v in ("O", "zz", "[x", 8, "")),
        *({"arrays": {"predictions": ABOUT | {"sha256": v}}} for v in (5, "0", "G" * 64)),
        {"arrays": {"predictions": {k: v for k, v in ABOUT.items() if k != "file"}}},
        *({"files": {"end": v}} for v in ({}, {"file": "x"}, [], {"file": 1, "sha256": "0" * 64})),
        *({"labels": {"test": v}} for v in (5, None, "../x", ["0" * 64])),
    ],
    ids=lambda changes: json.dumps(changes)[:60],
)
def test_entries_of_the_wrong_kind_are_damage(tmp_path, changes):
    store = make_store(tmp_path / "store", weights=False)
    run = done_run(store)
    forge(run, **changes)
    for read in (lambda: list_runs(store), lambda: read_run(run)):
        with pytest.raises(StoreError, match=r"record\.json.*Restore it"):
            read()
    with pytest.raises(StoreError, match=run.name):
        export_store(store, tmp_path / "x.csv")
    assert_damaged(store, run, f"{run.name}/record.json")


def test_numbers_beyond_all_floats_are_damage(tmp_path):
    store = make_store(tmp_path / "store", weights=False)
    run = done_run(store)
    text = (run / "record.json").read_text()
    record = json.loads(text)
    rest = text.replace(f' "sha256": "{record["sha256"]}",\n', "", 1)
    rest = rest.replace(f'"error": {record["metrics"]["error"]}', '"error": 1e999', 1)
    digest = hashlib.sha256(rest.encode()).hexdigest()
    (run / "record.json").write_text(rest.replace(' "status"', f' "sha256": "{digest}",\n "status"', 1))
    with pytest.raises(StoreError, match="1e999 is too large"):
        list_runs(store)


def test_what_a_record_may_hold(tmp_path):
    store = make_store(tmp_path / "store", weights=False)
    run = done_run(store)
    fields = np.array([(1, 2.0)], dtype=[("a", "<i4"), ("b", "<f8")])
    odd = {"packages": [1], "x": "\ud800", "git": None, "device": 5, "attempts": 0}
    forge(run, metrics={"error": None, "whole": 2**70}, environment=odd, notes=["é"])
    write_run(store, {"learner": "fields"}, arrays={"fields": fields, "texts": ["a", "bc"]})
    assert verify_store(store).sound
    assert len(list_runs(store)) == 5
    export_store(store, tmp_path / "x.csv")


@pytest.mark.parametrize("entry", [{"attempts": "many"}, {"evaluations": None}])
def test_what_could_not_be_read_again_is_not_written(tmp_path, entry):
    with pytest.raises(InputError, match=next(iter(entry))):
        write_run(tmp_path, {"n": 1}, environment=entry)
    with pytest.raises(InputError, match="error=5"):
        write_run(tmp_path, {"n": 1}, error=5)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="metrics"):
        write_run(tmp_path, {"n": 1}, metrics={"error": 10**400})
    assert list_runs(tmp_path) == []


def test_coordinates_of_another_run_are_damage(tmp_path):
    store = make_store(tmp_path / "store", weights=False)
    run = done_run(store)
    forge(run, coordinates={"n": 11})
    assert_damaged(store, run, f"{run.name}/record.json")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names")
@pytest.mark.parametrize("name", ["record.json", "predictions.npy", "end.safetensors"])
def test_nothing_waits_for_a_pipe(tmp_path, name):
    store = make_store(tmp_path / "store")
    run = done_run(store)
    (run / name).unlink()
    os.mkfifo(run / name)
    with time_limit(), pytest.raises(StoreError, match="no plain file"):
        read_run(run).checkpoint()
    assert_damaged(store, run, f"{run.name}/{name}")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names")
def test_labels_in_a_pipe_are_stored_again(tmp_path):
    store = make_store(tmp_path / "store", weights=False)
    file = store / "labels" / f"{read_run(done_run(store)).label_digests['test']}.npy"
    file.unlink()
    os.mkfifo(file)
    with time_limit():
        assert [d.file for d in verify_store(store).damage] == [f"labels/{file.name}"]
        write_labels(store, np.arange(5))
        assert verify_store(store).sound


@pytest.mark.skipif(not hasattr(os, "O_NOFOLLOW"), reason="needs links that can be told")
@pytest.mark.parametrize("name", ["record.json", "predictions.npy", "end.safetensors"])
@pytest.mark.parametrize("dangling", [False, True])
def test_linked_files_are_damage(tmp_path, name, dangling):
    store = make_store(tmp_path / "store")
    run = done_run(store)
    (run / name).rename(tmp_path / "outside")
    (run / name).symlink_to(tmp_path / ("nothing" if dangling else "outside"))
    with pytest.raises(StoreError, match="is a link"):
        read_run(run).checkpoint()
    assert_damaged(store, run, f"{run.name}/{name}")
    assert (tmp_path / "outside").exists()


@pytest.mark.parametrize("kind", ["link", "dangling link", "file", "pipe"])
def test_what_is_named_like_a_run_and_is_none(tmp_path, kind):
    store = make_store(tmp_path / "store")
    run = done_run(store)
    coordinates = read_run(run).coordinates
    shutil.move(run, tmp_path / run.name)
    if kind == "file":
        run.write_text("x")
    elif kind == "pipe":
        os.mkfifo(run)
    else:
        run.symlink_to(tmp_path / (run.name if kind == "link" else "nothing"))
    with time_limit(), pytest.raises(StoreError, match=run.name):
        list_runs(store)
    assert_damaged(store, run, run.name)
    run.write_text("x")
    write_run(store, coordinates, [1], overwrite=True)
    assert verify_store(store).sound
    assert (tmp_path / run.name / "record.json").exists()


def npy(header: str, data: bytes = b"123") -> bytes:
    text = header.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + data


def pickled() -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.array([{}], dtype=object), allow_pickle=True)
    return buffer.getvalue()


def zipped() -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, np.arange(5))
    return buffer.getvalue()


@pytest.mark.parametrize(
    "data",
    [
        npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }"),
        npy("{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999999,), }"),
        npy("{'descr': '<f8', 'fortran_order': False, 'shape': (-5,), }"),
        npy("{'descr': '<f8', 'fortran_order': False, 'shape': (100,), }"),
        npy("(" * 110),
        npy("5"),
        pickled(),
        zipped(),
        b"",
    ],
    ids=["8 TB", "beyond", "negative", "short", "nested", "no dict", "pickle", "zip", "empty"],
)
def test_arrays_that_are_none(tmp_path, data):
    store = make_store(tmp_path / "store")
    run = done_run(store)
    (run / "predictions.npy").write_bytes(data)
    forge(run, arrays={"predictions": ABOUT | {"sha256": hashlib.sha256(data).hexdigest()}})
    with pytest.raises(StoreError, match=r"predictions\.npy is not an array"):
        read_run(run)
    assert_damaged(store, run, f"{run.name}/predictions.npy")
