"""Data that a function of the user's makes."""

import os
from pathlib import Path

import numpy as np
import pytest

import curvewise as cw
from curvewise.errors import InputError, StoreError
from curvewise.store.verify import verify_store
from curvewise.study import Dataset
from curvewise.study.run.programs import write_data

MODULE = """
import numpy as np
import curvewise as cw
from curvewise.study import Dataset

def clouds(n=60, apart=2.0):
    y = np.arange(n) % 3
    x = np.random.default_rng(0).normal(size=(n, 4)) + apart * np.eye(3, 4)[y]
    return Dataset(x.astype(np.float32), y, name="clouds")

def slopes(n=60):
    x = np.random.default_rng(0).normal(size=(n, 4)).astype(np.float32)
    return Dataset(x, x.sum(axis=1), targets="numbers")

def arrays():
    return np.zeros((3, 2)), np.arange(3)

def breaks():
    raise RuntimeError("the disk is gone")

def breaks_within():
    return breaks()

def ragged():
    return Dataset(np.zeros((3, 2), np.float32), np.arange(2))

def stops():
    raise SystemExit(3)

def needs(n):
    return clouds(n)

def picky():
    raise cw.InputError("n=0: give more.")
"""

STUDY = """
name = "own"
store = "runs"

[data]
function = "own_data:clouds"
apart = 5.0

[learners.bayes]
estimator = "sklearn.naive_bayes:GaussianNB"

[design]
sizes = [12, 24]
folds = 2
test = 12
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "own_data.py").write_text(MODULE)
    (tmp_path / "own_broken.py").write_text("def clouds(:\n    pass\n")
    return tmp_path


@pytest.mark.parametrize("spec", ["own_data:clouds", {"function": "own_data:clouds"}])
def test_a_function_beside_the_study_makes_the_data(folder: Path, spec) -> None:
    found = cw.load_dataset(spec, folder=folder)
    assert isinstance(found, Dataset)
    assert (len(found.x), found.name) == (60, "clouds")


def test_all_other_options_are_the_functions(folder: Path) -> None:
    spec = {"function": "own_data:clouds", "n": 30, "apart": 9.0}
    found = cw.load_dataset(spec, folder=folder)
    assert len(found.x) == 30
    assert found.x[0, 0] > 5


def test_numbers_can_be_made_too(folder: Path) -> None:
    found = cw.load_dataset("own_data:slopes", folder=folder)
    assert found.is_numbers
    np.testing.assert_allclose(found.y[:, 0], found.x.sum(axis=1))


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("own_data:arrays", "gives tuple: let it return"),
        ("own_data:breaks", "fails in own_data.py, line 19 with RuntimeError: the disk is gone"),
        ("own_data:breaks_within", "fails in own_data.py, line 19 with RuntimeError"),
        ("own_data:stops", "fails in own_data.py, line 28 with SystemExit: 3"),
        ("own_data:picky", "data.function='own_data:picky': n=0: give more"),
        ("own_data:ragged", "data.function='own_data:ragged': y has shape"),
        ("own_broken:clouds", r"fails with SyntaxError: .*own_broken.py, line 1"),
        ("own_data:missing", "the module has no 'missing'; it has"),
        ("nowhere_data:clouds", "cannot import 'nowhere_data': put nowhere_data.py in the current folder"),
        ({"function": "own_data"}, "give 'module:function'"),
        ({"function": 3}, "give a text"),
        ({"function": "own_data:clouds", "m": 3}, "argument 'm'; it takes n, apart"),
        ({"function": "own_data:breaks", "m": 3}, "argument 'm'; it takes no options"),
        ("own_data:needs", "required argument: 'n'; it takes n"),
        ("own_data.py:clouds", "Give 'own_data:clouds', without '.py'"),
    ],
)
def test_what_goes_wrong_names_the_function(folder: Path, spec, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)  # where code without a file would seem to be
    with pytest.raises(InputError, match=said):
        cw.load_dataset(spec, folder=folder)


def test_a_study_file_runs_on_it_in_workers_and_is_the_same_when_saved(folder: Path) -> None:
    (folder / "study.toml").write_text(STUDY)
    study = cw.load_study(folder / "study.toml")
    assert study.run(workers=1, progress=False).done == 4
    assert (study.frame()["error"] < 0.2).all()  # 5 apart: nearly no overlap
    again = cw.load_study(study.save(folder / "again.toml"))
    assert [j.id for j in again.jobs] == [j.id for j in study.jobs]
    assert again.status().done == 4


def test_other_data_are_other_runs(folder: Path) -> None:
    (folder / "study.toml").write_text(STUDY)
    (folder / "wider.toml").write_text(STUDY.replace("apart = 5.0", "apart = 6.0"))
    one, two = (cw.load_study(folder / f"{name}.toml", trust=True) for name in ("study", "wider"))
    assert not {j.id for j in one.jobs} & {j.id for j in two.jobs}


def test_a_file_with_a_colon_in_its_name_is_a_file(folder: Path) -> None:
    np.savez(folder / "odd:npz", x=np.zeros((4, 2), np.float32), y=np.array([0, 1, 0, 1]))
    (folder / "odd:npz.npz").rename(folder / "odd:npz")
    with pytest.raises(InputError, match="are not read"):
        cw.load_dataset("odd:npz", folder=folder)


@pytest.mark.parametrize("workers", [1, 2])
def test_data_that_come_out_otherwise_in_a_worker_are_refused(folder: Path, workers: int) -> None:
    (folder / "own_data.py").write_text(MODULE.replace("default_rng(0)", "default_rng()"))
    (folder / "study.toml").write_text(STUDY.replace("test = 12", "test = 0.2"))
    study = cw.load_study(folder / "study.toml")
    with pytest.raises(InputError, match="loading them again gave other examples"):
        study.run(workers=workers, progress=False)
    assert study.status().done == 0
    assert study.run(workers=0, progress=False).done == 4  # in one process there is one draw


def test_a_function_may_import_what_lies_beside_it_when_it_is_called(folder: Path) -> None:
    (folder / "beside_own.py").write_text("COUNT = 24\n")
    late = "def late():\n    from beside_own import COUNT\n    return clouds(COUNT)\n"
    (folder / "own_data.py").write_text(MODULE + late)
    assert len(cw.load_dataset("own_data:late", folder=folder).x) == 24


@pytest.fixture
def made(folder: Path) -> Path:
    """The copy, in a store, of data that a function made."""
    (folder / "study.toml").write_text(STUDY)
    assert cw.load_study(folder / "study.toml").run(workers=0, progress=False).done == 4
    (copy,) = (folder / "runs" / "data").glob("*.npz")
    return copy


def status_fails(folder: Path) -> str:
    with pytest.raises(StoreError) as caught:
        cw.load_study(folder / "study.toml").status()
    return str(caught.value)


def damaged_data(folder: Path) -> list[str]:
    found = verify_store(folder / "runs", progress=False)
    return [d.problem for d in found.damage if d.file.startswith("data")]


@pytest.mark.skipif(not hasattr(os, "O_NOFOLLOW"), reason="needs links and pipes")
@pytest.mark.parametrize(
    ("put", "said"),
    [(lambda p, to: p.symlink_to(to), "it is a link"), (lambda p, _: os.mkfifo(p), "no plain file")],
    ids=["link", "pipe"],
)
def test_a_copy_that_is_no_file_is_not_opened_and_is_made_anew(folder: Path, made: Path, put, said: str) -> None:
    outside = made.rename(folder / "outside.npz")
    before = outside.stat().st_mtime_ns
    put(made, outside)
    text = status_fails(folder)
    assert said in text
    assert "a copy of the data that own_data:clouds made: remove it" in text
    assert said in damaged_data(folder)[0]
    cw.load_study(folder / "study.toml").run(workers=0, progress=False)
    assert made.is_file()
    assert not made.is_symlink()
    assert outside.stat().st_mtime_ns == before
    assert not damaged_data(folder)


@pytest.mark.skipif(not hasattr(os, "O_NOFOLLOW"), reason="needs links")
def test_a_link_in_the_place_of_the_folder_of_data_is_not_followed(folder: Path, made: Path) -> None:
    outside = folder / "outside"
    outside.mkdir()
    made.unlink()
    made.parent.rmdir()
    made.parent.symlink_to(outside)
    with pytest.raises(StoreError, match=r"data is a link or a file.*remove it"):
        cw.load_study(folder / "study.toml").run(workers=0, progress=False)
    assert not list(outside.iterdir())
    assert damaged_data(folder)


def test_a_copy_that_unpacks_to_far_too_much_is_refused(
    folder: Path, made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("curvewise.reading.arrays.LARGEST_ARRAYS", 1 << 20)
    with np.load(made) as file:
        arrays = {name: file[name] for name in file.files}
    np.savez_compressed(made, **arrays | {"x": np.zeros((1 << 17, 4), np.float32)})
    for text in (status_fails(folder), *damaged_data(folder)):
        assert "unpacks to more than" in text
        assert "allow_large" not in text


@pytest.mark.parametrize("damage", ["cut", "pickle", "other"])
def test_a_damaged_copy_is_found_without_advice_on_pickles(folder: Path, made: Path, damage: str) -> None:
    with np.load(made) as file:
        arrays = {name: file[name] for name in file.files}
    if damage == "cut":
        made.write_bytes(b"x" * 100)
    elif damage == "pickle":
        np.savez(made, **arrays | {"x": np.array([{}], dtype=object)})
    else:
        np.savez(made, **arrays | {"x": arrays["x"] + 1})  # whole, and not what was recorded
    for text in (status_fails(folder), *damaged_data(folder)):
        assert "cannot be read: " in text
        assert "allow_pickle" not in text
        assert ".:" not in text


def test_colleagues_may_read_a_copy_as_they_may_read_a_run(folder: Path, made: Path) -> None:
    record = next((folder / "runs").glob("*/record.json"))
    assert made.stat().st_mode == record.stat().st_mode
    study = cw.load_study(folder / "study.toml")
    assert write_data(study).stat().st_mode == record.stat().st_mode
