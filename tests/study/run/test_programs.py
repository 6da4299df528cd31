"""Commands of one's own in a study: what they are given, and what of theirs is accepted."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from curvewise.errors import InputError, StoreError
from curvewise.nn.task import Examples
from curvewise.store.read import list_runs
from curvewise.study.data.dataset import Dataset
from curvewise.study.run.drive import run_local
from curvewise.study.run.programs import TAIL, fill_command, run_command, write_data
from curvewise.study.spec.design import FIELDS, Design, Learner
from curvewise.study.study import Study

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(60, 4)), np.arange(60) % 3
TEST_X, TEST_Y = RNG.normal(size=(12, 4)), np.arange(12) % 3


def study_with(folder: Path, code: str, arguments: str = "{out}", **settings) -> Study:
    """A study whose command runs this code, with ``out`` as a Path in it."""
    start = "import json, os, sys, time\nfrom pathlib import Path\nimport numpy as np\n"
    start += "out = Path(sys.argv[1])\n"
    (folder / "my script.py").write_text(start + textwrap.dedent(code))
    timeout = settings.pop("timeout", None)
    further = settings.pop("further", False)
    learner = Learner(command=f"python 'my script.py' {arguments}", timeout=timeout)
    design = Design(sizes=(30,), folds=1, **settings)
    study = Study(Dataset(X, Y, TEST_X, TEST_Y), {"mine": learner}, design=design, folder=folder)
    sets = {"test": study.test_examples()}
    if further:
        sets["noisy"] = Examples(TEST_X[:5] + 1, TEST_Y[:5], 3)
    study.__dict__["evaluation_sets"] = sets
    return study


def run_one(folder: Path, code: str, *arguments, **settings):
    study = study_with(folder, code, *arguments, **settings)
    return run_command(study, study.jobs[0])


def test_fields_reach_the_command(tmp_path):
    names = [*FIELDS[:-1], "rate"]
    given = " ".join(f"{name}={{{name}}}" for name in names)
    code = """
        given = dict(a.split("=", 1) for a in sys.argv[2:])
        for name, value in given.items():
            assert os.environ["CURVEWISE_" + name.upper()] == value
        assert os.environ["CURVEWISE_OUT"] == sys.argv[1] and not list(out.iterdir())
        assert Path.cwd() == Path(__file__).resolve().parent
        Path("given.json").write_text(json.dumps(given))
        rows = np.load(given["rows"])
        with np.load(given["data"]) as data:
            np.savez("seen.npz", rows=rows, **data)
            np.save(out / "predictions.npy", data["test_y"])
            np.save(out / "predictions.noisy.npy", data["noisy_y"])
    """
    study = study_with(tmp_path, code, "{out} " + given, grid={"rate": [0.5, "a b"]}, seeds=2, further=True)
    for job in study.jobs:
        trained = run_command(study, job)
        assert trained.error is None, trained.error
        assert trained.path == "command"
        assert trained.seconds > 0
        got = json.loads((tmp_path / "given.json").read_text())
        assert (got["n"], got["fold"], got["id"]) == (str(job.n), str(job.fold), job.id)
        assert got["seed"] == got["init_seed"] == str(job.seeds["init"])
        assert got["order_seed"] == str(job.seeds["order"])
        assert got["augmentation_seed"] == str(job.seeds["augmentation"])
        assert got["rate"] == str(job.settings["rate"])
        assert not Path(got["rows"]).exists()  # nothing is left lying about
        with np.load(tmp_path / "seen.npz") as seen:
            np.testing.assert_array_equal(seen["rows"], study.rows_of(job.n, job.fold))
            np.testing.assert_array_equal(seen["x"], X)
            np.testing.assert_array_equal(seen["y"], Y)
            np.testing.assert_array_equal(seen["test_x"], TEST_X)
            np.testing.assert_array_equal(seen["noisy_x"], TEST_X[:5] + 1)
        np.testing.assert_array_equal(trained.probabilities["test"].argmax(axis=1), TEST_Y)
        np.testing.assert_array_equal(trained.probabilities["noisy"].argmax(axis=1), TEST_Y[:5])
    files = list((study.runs_folder / "data").iterdir())
    assert len(files) == 1  # written once, with nothing half-written beside it
    written = files[0].stat().st_mtime_ns
    assert write_data(study) == files[0].resolve()
    assert files[0].stat().st_mtime_ns == written


def test_probabilities_and_metrics(tmp_path):
    code = """
        p = np.random.default_rng(3).dirichlet([1, 1, 1], 12)
        np.save(out / "probabilities.npy", p.astype(np.float16))
        np.save(out / "predictions.npy", p.astype(np.float16).argmax(axis=1).astype(np.uint8))
        (out / "metrics.json").write_text('{"train_error": 0.25, "epochs": 3}')
        print("a line")
    """
    trained = run_one(tmp_path, code)
    assert trained.error is None
    assert not trained.hard
    assert trained.notes == ()
    expected = np.random.default_rng(3).dirichlet([1, 1, 1], 12).astype(np.float16)
    np.testing.assert_array_equal(trained.probabilities["test"], expected.astype(np.float32))
    assert trained.metrics == {"train_error": 0.25, "epochs": 3.0}


def test_classes_alone_are_hard(tmp_path):
    trained = run_one(tmp_path, "np.save(out / 'predictions.npy', np.arange(12) % 3)")
    assert trained.hard
    assert any("no loss" in note for note in trained.notes)
    np.testing.assert_array_equal(trained.probabilities["test"], np.eye(3)[np.arange(12) % 3])


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("pass", "neither predictions.npy nor probabilities.npy"),
        ("np.save(out / 'prediction.npy', np.zeros(12, int))", "There is prediction.npy"),
        ("np.save(out / 'predictions.npy', np.zeros(11, int))", r"shape \(11,\): expected .* \(12,\)"),
        ("np.save(out / 'predictions.npy', np.zeros((12, 1), int))", r"shape \(12, 1\)"),
        ("np.save(out / 'predictions.npy', np.full(12, 3))", "from 3 to 3: expected .* 0 to 2"),
        ("np.save(out / 'predictions.npy', np.full(12, -1))", "from -1 to -1"),
        ("np.save(out / 'predictions.npy', np.zeros(12))", "holds float64: expected whole"),
        ("np.save(out / 'predictions.npy', np.array(['a'] * 12))", "holds <U1"),
        ("np.save(out / 'predictions.npy', np.array([0] * 12, object))", "Python objects"),
        ("(out / 'predictions.npy').write_bytes(b'')", "cannot be read as a .npy"),
        ("(out / 'predictions.npy').write_text('0 1 2')", "cannot be read as a .npy"),
        ("(out / 'predictions.npy').mkdir()", "cannot be read as a .npy"),
        (
            "np.savez(out / 'p', np.zeros(12)); os.rename(out / 'p.npz', out / 'predictions.npy')",
            "cannot be read as a .npy",
        ),
        (
            "np.save(out / 'predictions.npy', np.zeros(12, int)); "
            "f = out / 'predictions.npy'; f.write_bytes(f.read_bytes()[:-5])",
            "predictions.npy cannot be read",
        ),
        ("np.save(out / 'probabilities.npy', np.ones((12, 3)))", "sums from 3 to 3.*softmax"),
        ("np.save(out / 'probabilities.npy', np.eye(3)[[0] * 12] - [2, 0, -2])", "from -1"),
        ("np.save(out / 'probabilities.npy', np.full((12, 3), np.nan))", "NaN"),
        ("np.save(out / 'probabilities.npy', np.full((12, 2), 0.5))", r"\(12, 2\).*\(12, 3\)"),
        ("np.save(out / 'probabilities.npy', np.eye(3, dtype=int)[[0] * 12])", "holds int64"),
        (
            "np.save(out / 'probabilities.npy', np.eye(3)[[0] * 12]); "
            "np.save(out / 'predictions.npy', np.ones(12, int))",
            "disagree: for 12 of 12",
        ),
    ],
)
def test_what_is_left_is_checked(tmp_path, code, said):
    trained = run_one(tmp_path, code)
    assert trained.error is not None
    assert not trained.probabilities
    assert re.search(said, trained.error), trained.error


def test_every_evaluation_set_is_asked_for(tmp_path):
    code = "np.save(out / 'predictions.npy', np.zeros(12, int))"
    trained = run_one(tmp_path, code, further=True)
    assert "predictions.noisy.npy" in trained.error
    more = code + "; np.save(out / 'probabilities.noisy.npy', np.eye(3)[[0] * 5])"
    trained = run_one(tmp_path, more, further=True)
    assert trained.error is None
    assert trained.hard
    assert trained.probabilities["noisy"].shape == (5, 3)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[1]", "holds a list"),
        ("{", "not JSON"),
        ('{"a": "1"}', "'a': '1'"),
        ('{"a": true}', "'a': True"),
        ('{"a": NaN}', "not finite"),
        ('{"a": 1' + " " * 1_000_000 + "}", "bytes long"),
    ],
)
def test_metrics_are_checked(tmp_path, text, said):
    (tmp_path / "m.json").write_text(text)
    code = """
        np.save(out / 'predictions.npy', np.zeros(12, int))
        (out / "metrics.json").write_text(Path("m.json").read_text())
    """
    assert said in run_one(tmp_path, code).error


def test_a_failing_command_is_told_with_the_end_of_its_output(tmp_path):
    code = f"""
        print("first words")
        print("x" * {5 * TAIL})
        np.save(out / 'predictions.npy', np.zeros(12, int))
        raise RuntimeError("no luck today")
    """
    trained = run_one(tmp_path, code)
    assert "exit status 1" in trained.error
    assert "RuntimeError: no luck today" in trained.error
    assert "my script.py" in trained.error
    assert "first words" not in trained.error
    assert len(trained.error) < 2 * TAIL
    assert not trained.probabilities
    killed = run_one(tmp_path, "import signal; os.kill(os.getpid(), signal.SIGKILL)")
    assert "SIGKILL" in killed.error
    assert "printed nothing" in killed.error


def test_a_program_that_is_not_there(tmp_path):
    learner = Learner(command="no-such-program-anywhere {out}")
    study = Study(Dataset(X, Y, TEST_X, TEST_Y), {"mine": learner}, folder=tmp_path)
    study.__dict__["evaluation_sets"] = {"test": study.test_examples()}
    assert "cannot be started" in run_command(study, study.jobs[0]).error


def lives(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def comes_true(check: Callable[[], bool], seconds: float = 300) -> bool:
    """Wait for something, on however slow a machine."""
    limit = time.monotonic() + seconds
    while not check() and time.monotonic() < limit:
        time.sleep(0.02)
    return check()


def gone(pid: int) -> bool:
    return comes_true(lambda: not lives(pid))


CHILD = """
    import subprocess
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(6000)"])
    Path("self").write_text(str(os.getpid()))
    Path("child.tmp").write_text(str(child.pid))
    os.rename("child.tmp", "child")
"""
linux = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")


@linux
def test_a_timeout_kills_the_whole_group(tmp_path):
    code = CHILD + "    print('begun', flush=True); time.sleep(6000)"
    for timeout in (3, 12, 48, 192):  # until it is long enough for the command to begin
        trained = run_one(tmp_path, code, timeout=timeout)
        assert f"timeout={timeout} seconds" in trained.error
        if "begun" in trained.error:
            break
    assert "begun" in trained.error
    assert gone(int((tmp_path / "child").read_text()))


@linux
def test_what_a_command_left_running_ends_with_it(tmp_path):
    trained = run_one(tmp_path, CHILD + "    np.save(out / 'predictions.npy', np.zeros(12, int))")
    assert trained.error is None
    assert gone(int((tmp_path / "child").read_text()))


@linux
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_command_does_not_outlive_us(tmp_path, number):
    here = str(Path(__file__).parent)
    code = f"""
import sys; sys.path.insert(0, {here!r})
from pathlib import Path
import test_programs as t
study = t.study_with(Path({str(tmp_path)!r}), t.CHILD + "    time.sleep(6000)")
t.run_command(study, study.jobs[0])
"""
    process = subprocess.Popen(
        [sys.executable, "-c", code], stderr=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(tmp_path)}
    )
    try:
        assert comes_true(lambda: (tmp_path / "child").exists() or process.poll() is not None)
        assert process.poll() is None
        process.send_signal(number)
        _, said = process.communicate(timeout=300)
    finally:
        process.kill()
    assert process.returncode == -number
    assert ("KeyboardInterrupt" in said) == (number == signal.SIGINT)
    assert gone(int((tmp_path / "self").read_text()))
    assert gone(int((tmp_path / "child").read_text()))


def test_no_shell_is_involved(tmp_path):
    words = fill_command("a '{out}' ; rm -rf {x} $HOME", {"out": "$(b)", "x": "c d; e"})
    assert words == ["a", "$(b)", ";", "rm", "-rf", "c d; e", "$HOME"]
    assert fill_command("python {out}", {"out": "x"})[0] == sys.executable
    assert shlex.split(shlex.join(words)) == words


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("train {size} {out}", r"asks for {size}: there is n, out"),
        ("train {n.real} {out}", r"asks for {n.real}"),
        ("train {n[0]} {out}", r"asks for {n\[0\]}"),
        ("train {} {out}", r"asks for {}"),
        ("train 'a {out}", "cannot be split"),
        ("train {n:q} {out}", "cannot be filled in"),
    ],
)
def test_fields_that_there_are_not(command, said):
    with pytest.raises(InputError, match=said):
        fill_command(command, {"n": 1, "out": "x"})


def test_a_grid_cannot_take_the_name_of_a_field(tmp_path):
    study = study_with(tmp_path, "", grid={"rows": [1]})
    with pytest.raises(InputError, match="grid has rows"):
        run_command(study, study.jobs[0])


def test_what_is_measured_is_not_taken_from_the_command(tmp_path):
    code = """
        np.save(out / "predictions.npy", np.zeros(12, int))
        said = {"error": 0, "loss.noisy": 1, "gap": 2, "seconds": 3}
        said |= {"train_error": 0.5, "errors": 4}
        (out / "metrics.json").write_text(json.dumps(said))
    """
    trained = run_one(tmp_path, code)
    assert trained.metrics == {"train_error": 0.5, "errors": 4}
    assert "error, loss.noisy, gap, seconds ignored" in trained.notes[-1]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES])
@pytest.mark.parametrize("place", ["numpy.savez", "numpy.save", "tempfile.TemporaryDirectory"])
def test_a_full_disk_is_no_fault_of_the_run(tmp_path, monkeypatch, place, number):
    study = study_with(tmp_path, "", "{out} {data}")

    save = np.save

    def refuse(*given, **options):
        if given and isinstance(given[0], io.BytesIO):  # which is on no disk
            return save(*given, **options)
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(place, refuse)
        with pytest.raises(StoreError, match=r"cannot be written.* Run the study again"):
            run_local(study, workers=0, progress=False)
    assert list_runs(study.runs_folder) == []
    assert not list(study.runs_folder.glob("data/*.partial"))
