"""Damage in a store is found, whatever byte it hits."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import numpy as np
import pytest

from curvewise.errors import StoreError
from curvewise.study import list_runs, read_run, write_run
from curvewise.study._record import record_bytes
from curvewise.study.labels import write_labels
from curvewise.study.verify import verify_store


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
    write_run(folder, {"learner": "b"}, status="failed", error="ValueError: no")
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
    assert "all are as they were written" in found.summary()
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
