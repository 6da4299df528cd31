"""What a study file may have imported before its study is run; what it says where that fails."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import curvewise as cw
from curvewise.errors import InputError, StoreError, UntrustedCodeError
from curvewise.nn.own_code import find_function, importable, installed, installed_only
from curvewise.study import transfer_risks

CODE = """
import numpy as np
from curvewise.study import Dataset

CALLS = []

def clouds(n=90, numbers=False):
    CALLS.append(n)
    y = np.arange(n) % 3
    x = np.random.default_rng(0).normal(size=(n, 4)) + 3 * np.eye(3, 4)[y]
    if numbers:
        return Dataset(x.astype(np.float32), x.sum(axis=1), targets="numbers", standardise=True)
    test = (x[:30].astype(np.float32), y[:30])
    return Dataset(x.astype(np.float32), y, *test, classes=("a", "b", "c"), notes=("made",))

def net(shape, classes):
    import torch
    return torch.nn.Linear(shape[0], classes)
"""

STUDY = """
store = "runs"
data = {{ function = "trusted_code:clouds"{} }}
[learners.scratch]
estimator = "sklearn.{}"
[design]
sizes = [12, 24]
folds = 2
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "trusted_code.py").write_text(CODE)
    (tmp_path / "study.toml").write_text(STUDY.format("", "naive_bayes:GaussianNB"))
    return tmp_path


def calls(folder: Path) -> list[int]:
    """How the function was called, whichever process has imported its file."""
    found = [m for m in sys.modules.values() if getattr(m, "__file__", "") is not None]
    mine = [m for m in found if Path(getattr(m, "__file__", "")) == folder / "trusted_code.py"]
    return [n for m in mine for n in m.CALLS]


def test_a_loaded_study_reads_the_copy_that_run_kept(folder: Path) -> None:
    study = cw.load_study(folder / "study.toml")
    for ask in (study.plan, study.status, study.measurements, study.frame, lambda: study.jobs):
        with pytest.raises(UntrustedCodeError, match="trusted_code:clouds, which is not imported"):
            ask()
    assert calls(folder) == []
    assert study.run(workers=0, progress=False).done == 4
    assert calls(folder) == [90]
    study = cw.load_study(folder / "study.toml")
    measured = study.measurements()
    assert "trusted_code:clouds was not called" in " ".join(measured.notes)
    assert "not called" in " ".join(study.predictions(n=24).notes)
    assert "not called" in " ".join(study.status().warnings)
    assert "not called" in " ".join(study.plan().warnings)
    assert len(transfer_risks(study, scratch="scratch").notes) > 0
    assert calls(folder) == [90]
    # The copy is what the function gives, to the last bit and word.
    made = cw.load_study(folder / "study.toml", trust=True)
    assert [j.id for j in made.jobs] == [j.id for j in study.jobs]
    for name in ("x", "y", "test_x", "test_y"):
        kept, given = getattr(study.dataset, name), getattr(made.dataset, name)
        np.testing.assert_array_equal(kept, given)
        assert kept.dtype == given.dtype
    for name in ("classes", "name", "padding", "notes", "targets", "standardise"):
        assert getattr(study.dataset, name) == getattr(made.dataset, name)
    assert np.array_equal(made.measurements().error, measured.error)
    assert not made.assumptions


def test_numbers_are_kept_too(folder: Path) -> None:
    text = STUDY.format(", numbers = true", "linear_model:Ridge")
    (folder / "study.toml").write_text(text)
    study = cw.load_study(folder / "study.toml")
    assert study.run(workers=1, progress=False).done == 4
    assert calls(folder)  # the driver, beside the worker
    assert study.measurements().unit.name == "loss"
    assert study.dataset.standardise


def test_a_copy_that_is_damaged_says_so(folder: Path) -> None:
    study = cw.load_study(folder / "study.toml")
    study.run(workers=0, progress=False)
    (copy,) = (folder / "runs" / "data").glob("made-*.npz")
    whole = copy.read_bytes()
    for part in (b"", whole[: len(whole) // 2], b"x" * 100):
        copy.write_bytes(part)
        with pytest.raises(StoreError, match="a copy of the data that trusted_code:clouds made"):
            cw.load_study(folder / "study.toml").status()
    # A copy with Python objects in it is a pickle, and is not opened.
    np.savez(copy, x=np.array([{}], dtype=object), about=np.array("{}"))
    with pytest.raises(StoreError, match="cannot be read"):
        cw.load_study(folder / "study.toml").status()


def test_a_study_made_in_python_is_its_makers_own(folder: Path) -> None:
    study = cw.Study(
        "trusted_code:clouds",
        {"bayes": cw.Learner(estimator="sklearn.naive_bayes:GaussianNB")},
        cw.Design(sizes=[12], folds=1),
        folder=folder,
    )
    assert study.plan().total_to_do == 1
    assert study.trust
    assert not replace(study, trust=False).trust


def test_networks_of_others_are_not_made_before_they_are_trusted(folder: Path) -> None:
    pytest.importorskip("torch")
    np.savez(folder / "data.npz", x=np.eye(30, 4, dtype=np.float32), y=np.arange(30) % 2)
    (folder / "study.toml").write_text(
        'data = "data.npz"\n[design]\nsizes = [12]\nfolds = 1\n[keep]\ncheckpoints = "end"\n'
        '[learners.net]\narchitecture = "trusted_code:net"\nepochs = 1\n'
    )
    study = cw.load_study(folder / "study.toml")
    plan = study.plan()
    assert np.isnan(plan.bytes_needed)
    assert np.isnan(plan.total_seconds)
    assert plan.source == ("unknown without trust",)
    assert "The time of 1 run (net) is unknown without trust=True" in plan.sentences()
    assert "net is made by trusted_code:net, which is not imported without trust=True" in " ".join(plan.warnings)
    known = study.plan(trust=True)
    assert known.bytes_needed > 0
    assert known.total_seconds > 0
    assert not any("--trust" in w for w in known.warnings)
    # A grid names code, too.
    grid = replace(study.learners["net"].training, architecture="linear")
    varied = replace(study, learners={"net": cw.Learner(grid)})
    design = cw.Design(sizes=[12], folds=1, grid={"architecture": ["linear", "trusted_code:net"]})
    found = replace(varied, design=design).plan()
    assert "net is made by trusted_code:net" in " ".join(found.warnings)
    assert found.source == ("a short measurement and unknown without trust",)
    study.run(workers=0, progress=False)
    with pytest.raises(UntrustedCodeError, match="trusted_code:net"):
        study.network()
    trusted = cw.load_study(folder / "study.toml", trust=True)
    assert trusted.network().network.in_features == 4


@pytest.mark.parametrize("name", ["timm:resnet18", "torchvision:resnet18", "hf:folder"])
def test_names_of_known_packages_need_no_trust(name: str) -> None:
    study = cw.Study("digits", {"a": cw.Learner(cw.Training(name))}, trust=False)
    assert study.unimported(study.learners["a"]) is None
    fetched = cw.Training("timm:resnet18", options={"pretrained": True})
    assert study.unimported(cw.Learner(fetched)) == "timm:resnet18"
    fetched = cw.Training("torchvision:resnet18", options={"weights": "DEFAULT"})
    assert study.unimported(cw.Learner(fetched)) == "torchvision:resnet18"


BROKEN = {
    "syntax": ("def make(:\n", r"fails with SyntaxError: .*Correct the module 'broken_syntax'"),
    "raises": ("\nraise ValueError('no')\n", "fails in broken_raises.py, line 2 with ValueError"),
    "exits": ("import sys\nsys.exit(3)\n", "line 2 with SystemExit: 3"),
    "needs": ("import nowhere_to_be_found\n", "'nowhere_to_be_found': broken_needs needs it"),
    "empty": ("", "the module has no 'make'"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_an_import_that_fails_names_module_line_and_remedy(tmp_path: Path, kind: str) -> None:
    text, said = BROKEN[kind]
    (tmp_path / f"broken_{kind}.py").write_text(text)
    with pytest.raises(InputError, match=f"architecture='broken_{kind}:make'.*{said}"):
        find_function("architecture", f"broken_{kind}:make", tmp_path)
    study = cw.Study(
        "digits", {"mine": cw.Learner(estimator=f"broken_{kind}:make")}, cw.Design(sizes=[50], folds=1), folder=tmp_path
    )
    assert any(w.startswith("mine: ") and kind in w for w in study.plan().warnings)
    with pytest.raises(InputError, match=f"nothing was started. mine: estimator='broken_{kind}:make'"):
        study.run(workers=0, progress=False)


def test_an_import_that_is_stopped_says_what_was_imported(tmp_path: Path) -> None:
    (tmp_path / "stopped_code.py").write_text("raise KeyboardInterrupt\n")
    with pytest.raises(KeyboardInterrupt) as stop:
        find_function("data.function", "stopped_code:make", tmp_path)
    assert "stopped while 'stopped_code' was imported" in stop.value.__notes__[0]
    assert not any("stopped_code" in name for name in sys.modules)


def test_two_studies_may_have_modules_of_one_name_but_no_mixture(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "twin_nets.py").write_text(f"def make(): return {name!r}\n")
        (tmp_path / name / "twin_user.py").write_text("import twin_helper\ndef make(): return twin_helper.NAME\n")
        (tmp_path / name / "twin_helper.py").write_text(f"NAME = {name!r}\n")
        assert find_function("data", "twin_nets:make", tmp_path / name)() == name
    assert find_function("data", "twin_user:make", tmp_path / "one")() == "one"
    # Python would give the second study the first one's helper.
    with pytest.raises(InputError, match=r"two modules 'twin_helper'.*imported already"):
        find_function("data", "twin_user:make", tmp_path / "two")


def test_a_package_without_init_clashes_too(tmp_path: Path) -> None:
    (tmp_path / "sklearn").mkdir()
    (tmp_path / "sklearn" / "svm.py").write_text("SVC = dict\n")
    with pytest.raises(InputError, match="two modules 'sklearn'"):
        find_function("estimator", "sklearn.svm:SVC", tmp_path)
    (tmp_path / "sklearn" / "svm.py").rename(tmp_path / "sklearn" / "notes.txt")
    assert find_function("estimator", "sklearn.svm:SVC", tmp_path).__module__.startswith("sklearn")


def test_the_folder_is_last_on_the_path_and_gone_afterwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = [str(tmp_path), *sys.path]
    monkeypatch.setattr(sys, "path", list(before))
    with importable(tmp_path):
        assert sys.path == [*before, str(tmp_path)]
    assert sys.path == before
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    home = str(Path(cw.__file__).parents[1])
    (tmp_path / "a").mkdir()
    path = ["", "/b", str(tmp_path), str(tmp_path / "a"), home]
    assert installed_only(path) == ["/b", str(tmp_path / "a"), home]
    assert installed_only(path, tmp_path / "a", Path(home)) == ["/b", home]
    monkeypatch.setattr(sys, "path", list(path))
    with installed(tmp_path / "a"):
        assert sys.path == ["/b", home]
    assert sys.path == path
    # Which somebody asked for, unlike the empty entry of PYTHONPATH=:/elsewhere.
    monkeypatch.setenv("PYTHONPATH", f":{tmp_path}")
    assert str(tmp_path) in installed_only(path)
    monkeypatch.setenv("PYTHONPATH", ":.")
    assert str(tmp_path) not in installed_only(path)
