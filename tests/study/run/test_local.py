from __future__ import annotations

import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

from curvewise.errors import CurvewiseError, InputError, StoreError, Terminated
from curvewise.nn.task import Keep, Trained
from curvewise.nn.training import Training
from curvewise.progress import progress_bar
from curvewise.store.claims import Claims
from curvewise.store.read import list_runs, read_run
from curvewise.store.write import write_run
from curvewise.study.data.dataset import Dataset
from curvewise.study.run import drive, processes
from curvewise.study.run.drive import MOST_DEATHS, REPLACED, Board, end_if_asked, group_of, run_local, terminable
from curvewise.study.run.maker import DONE, FAILED, Event
from curvewise.study.spec.design import Design, Learner
from curvewise.study.spec.study import Job
from curvewise.study.status import Pace, choose_devices
from curvewise.study.study import Study

MODELS = """
import os, shutil, signal, time
import numpy as np

class Centres:
    def __init__(self, kill_at=0, random_state=0):
        self.kill_at, self.random_state = kill_at, random_state

    def get_params(self, deep=True):
        return {"kill_at": self.kill_at, "random_state": self.random_state}

    def set_params(self, **values):
        for name, value in values.items():
            setattr(self, name, value)
        return self

    def fit(self, x, y):
        if self.kill_at and len(x) == self.kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        print("this goes to stderr and harms nobody")
        self.centres = np.stack([x[y == k].mean(axis=0) for k in range(3)])

    def predict(self, x):
        return ((x[:, None] - self.centres) ** 2).sum(axis=2).argmin(axis=1)

class Spoilt(Centres):
    def fit(self, x, y):
        try:
            open("was-here", "x").close()
        except FileExistsError:
            return super().fit(x, y)
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

class Moody(Centres):
    def fit(self, x, y):
        self.kill_at = int(os.environ.get("KILL_AT", 0))
        super().fit(x, y)

class Slow(Centres):
    def fit(self, x, y):
        if len(x) == 24:
            time.sleep(float(os.environ.get("WAIT", 0)))
        super().fit(x, y)

class Deaf(Centres):  # no interrupt reaches it, as in a long call of a library
    def fit(self, x, y):
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        open(f"fits-{os.getpid()}", "x").close()
        time.sleep(6000)

class Broken(Centres):
    def fit(self, x, y):
        raise ValueError("this one never works")

class Torn(Centres):  # the first is cut off when it is to stop; the next cannot be stored
    def fit(self, x, y):
        try:
            open("was-here", "x").close()
        except FileExistsError:
            while not os.path.exists("waits"):
                time.sleep(0.01)
            shutil.rmtree("store/.partial", ignore_errors=True)
            open("store/.partial", "w").close()
            return super().fit(x, y)
        try:
            open("waits", "x").close()
            time.sleep(6000)
        except KeyboardInterrupt:
            os.remove("store/.partial")
            os.mkdir("store/.partial")
            for name in os.listdir("store/.claims"):
                with open("store/.claims/" + name) as file:
                    mine = f'"pid": {os.getpid()},' in file.read()
                if mine and name[0] != ".":
                    os.mkdir(f"store/.partial/{name.partition('.')[0]}-0123456789ab")
                    if self.kill_at == 1:  # its claim is given back already
                        os.remove("store/.claims/" + name)
            os._exit(1)
"""


def made_study(tmp_path: Path, learner: Learner | None = None, **options: Any) -> Study:
    (tmp_path / "own_models.py").write_text(MODELS)
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    data = Dataset((rng.normal(size=(90, 4)) + 2 * np.eye(3, 4)[y]).astype(np.float32), y)
    learner = learner or Learner(estimator="own_models:Centres")
    options.setdefault("design", Design(sizes=[12, 24], folds=2, seeds=2, stratify=True))
    return Study(data, {"it": learner}, folder=tmp_path, store=Path("store"), **options)


def results(study: Study) -> dict[str, Any]:
    """All that must not depend on how a study was executed."""
    return {
        run.id: (run.status, run.arrays, {k: v for k, v in run.metrics.items() if k != "seconds"})
        for run in list_runs(study.runs_folder)
    }


def test_processes_and_none_give_the_same(tmp_path: Path, capfd: Any) -> None:
    found = []
    for workers in (0, 2):
        folder = tmp_path / str(workers)
        folder.mkdir()
        study, heard = made_study(folder), []
        outcome = run_local(study, workers=workers, tell=heard.append)
        assert (outcome.planned, outcome.there, outcome.made, outcome.failed) == (8, 0, 8, {})
        assert Counter(e.kind for e in heard) == {"done": 8}
        assert {e.id for e in heard} == {j.id for j in study.jobs}
        assert len({e.where for e in heard}) <= max(1, workers)
        assert not list((study.runs_folder / ".claims").iterdir())
        found.append(results(study))
        said = capfd.readouterr().err
        assert "8 runs: 0 finished, 8 remaining" in said
        assert "8 runs made in" in said
    assert found[0] == found[1]
    assert {status for status, _, _ in found[0].values()} == {"done"}


def test_a_second_call_has_nothing_to_do(tmp_path: Path, capfd: Any) -> None:
    study = made_study(tmp_path)
    run_local(study, workers=0, progress=False)
    before = {p: p.stat().st_mtime_ns for p in study.runs_folder.glob("*/*")}
    assert capfd.readouterr().err == ""
    outcome = run_local(study, workers=2)
    assert (outcome.there, outcome.made) == (8, 0)
    assert "8 runs: 8 finished, 0 remaining" in capfd.readouterr().err
    assert {p: p.stat().st_mtime_ns for p in study.runs_folder.glob("*/*")} == before


def test_damaged_and_failed_runs_are_made_again_and_told(tmp_path: Path, capfd: Any) -> None:
    study = made_study(tmp_path)
    run_local(study, workers=0, progress=False)
    expected = results(study)
    damaged, failed, gone = study.jobs[:3]
    (study.runs_folder / damaged.id / "record.json").write_text("{")
    (study.runs_folder / gone.id / "predictions.npy").unlink()
    write_run(study.runs_folder, failed.coordinates, error="lightning", overwrite=True)
    outcome = run_local(study, workers=0)
    assert set(outcome.redone) == {damaged.id, failed.id, gone.id}
    said = "8 runs: 5 finished, 1 failed, 2 remaining (1 damaged, 1 outdated), in "
    assert capfd.readouterr().err.startswith(said)
    assert results(study) == expected


def test_failures_are_tried_three_times_in_all(tmp_path: Path) -> None:
    study = made_study(tmp_path, Learner(estimator="own_models:Broken"))
    tries = []
    for retry in (None, None, None, None, False, True, None):
        outcome = run_local(study, workers=0, progress=False, retry_failed=retry)
        assert len(outcome.failed) == 8
        assert "this one never works" in outcome.summary()
        tries.append(outcome.made)
    assert tries == [8, 8, 8, 0, 0, 8, 0]
    run = list_runs(study.runs_folder)[0]
    assert run.environment["attempts"] == 4
    assert "ValueError: this one never works" in str(run.error)


def test_a_run_that_kills_its_worker_fails_and_the_others_are_made(tmp_path: Path) -> None:
    learner = Learner(estimator="own_models:Centres", options={"kill_at": 24})
    study = made_study(tmp_path, learner, design=Design(sizes=[12, 24], folds=[3, 1], seeds=2))
    heard: list[Event] = []
    outcome = run_local(study, workers=1, progress=False, tell=heard.append)
    bad = {j.id for j in study.jobs if j.n == 24}
    assert set(outcome.failed) == bad
    assert "died 3 times" in next(iter(outcome.failed.values()))
    assert "SIGKILL" in str(read_run(study.runs_folder / min(bad)).error)
    assert outcome.made == 8
    assert not list((study.runs_folder / ".claims").iterdir())
    assert not list((study.runs_folder / ".partial").iterdir())


def test_a_spoilt_gpu_gets_another_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    study = made_study(tmp_path, Learner(estimator="own_models:Spoilt"))
    heard: list[Event] = []
    outcome = run_local(study, workers=1, device="cuda:0", progress=False, tell=heard.append)
    assert (tmp_path / "was-here").exists()
    assert (outcome.made, outcome.failed) == (8, {})
    assert Counter(e.kind for e in heard) == {"done": 8}


class FakeWorker:
    """Stands in for a process on a GPU, of which there is none here: one that works, or one that is lost."""

    def __init__(self, drive: Any, device: str, inbox: Any) -> None:
        self.device, self.inbox = device, inbox
        self.chunk: list[Job] = []
        self.last = self.reason = self.token = None
        self.is_ready = self.is_busy = False
        self.began = 0.0
        self.process = SimpleNamespace(wait=lambda: 1, kill=lambda: None)
        self.starts_of(device)

    lost: ClassVar[dict[str, str]] = {}
    started: ClassVar[list[str]] = []

    def starts_of(self, device: str) -> None:
        self.started.append(device)
        if self.lost.get(device) == "start":
            self.inbox.put((self, "spoilt", ("SpoiltDeviceError", "CUDA error: no device")))
            self.inbox.put((self, "gone", None))
        else:
            self.inbox.put((self, "ready", None))

    def give(self, chunk: list[Job], tried: dict[str, int]) -> None:
        self.chunk, self.is_busy, self.last = chunk, True, chunk[0]
        if self.device in self.lost:
            self.inbox.put((self, "spoilt", ("SpoiltDeviceError", "CUDA error: device lost")))
            self.inbox.put((self, "gone", None))
            return
        for job in chunk:
            self.inbox.put((self, "event", Event(DONE, job.id)))
        self.inbox.put((self, "finished", None))

    def send(self, message: Any) -> None: ...

    def end(self, until: float) -> None: ...


@pytest.mark.parametrize("when", ["start", "work"])
def test_a_study_goes_on_without_a_gpu_that_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str) -> None:
    monkeypatch.setattr(processes, "_Worker", FakeWorker)
    monkeypatch.setattr(drive, "choose_devices", lambda *_: ["cuda:0", "cuda:1", "cuda:2"])
    monkeypatch.setattr(FakeWorker, "lost", {"cuda:1": when})
    monkeypatch.setattr(FakeWorker, "started", [])
    study = made_study(tmp_path, Learner(training=Training("mlp")), design=Design(sizes=[12], folds=3, seeds=40))
    outcome = run_local(study, progress=False)
    assert (outcome.made, outcome.failed) == (120, {})
    (note,) = (note for note in outcome.notes if "cuda:1" in note)
    assert "not used any more: 3 workers ended there, the last one with CUDA error" in note
    assert Counter(FakeWorker.started) == {"cuda:0": 1, "cuda:1": 3, "cuda:2": 1}


def test_a_study_ends_where_no_gpu_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_Worker", FakeWorker)
    monkeypatch.setattr(drive, "choose_devices", lambda *_: ["cuda:0", "cuda:1"])
    monkeypatch.setattr(FakeWorker, "lost", {"cuda:0": "start", "cuda:1": "start"})
    study = made_study(tmp_path, Learner(training=Training("mlp")))
    with pytest.raises(CurvewiseError, match="before they can train anything, the last one with CUDA error"):
        run_local(study, progress=False)


def test_several_gpus_are_used_by_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_Worker", FakeWorker)
    monkeypatch.setattr("curvewise.nn.devices.list_gpus", lambda: ["cuda:0", "cuda:1", "cuda:2", "cuda:3"])
    monkeypatch.setattr(FakeWorker, "lost", {})
    monkeypatch.setattr(FakeWorker, "started", [])
    study = made_study(tmp_path, Learner(training=Training("mlp")), design=Design(sizes=[12], folds=3, seeds=40))
    outcome = run_local(study, progress=False)
    assert (outcome.made, outcome.failed) == (120, {})
    assert FakeWorker.started == ["cuda:0", "cuda:1", "cuda:2", "cuda:3"]


def test_workers_that_cannot_start_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    study = made_study(tmp_path)
    study.jobs  # noqa: B018  # planned while the data was still there
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(CurvewiseError, match="before they can train anything, the last one with exit status 1"):
        run_local(study, workers=1, progress=False)


def test_what_is_wrong_for_all_runs_ends_the_study(tmp_path: Path) -> None:
    study = made_study(tmp_path)
    unreadable = Study("nowhere.npz", study.learners, study.design, folder=tmp_path, store=Path("other"))
    object.__setattr__(unreadable, "dataset", study.dataset)  # readable here, not in the worker
    with pytest.raises(CurvewiseError, match=r"nowhere\.npz"):
        run_local(unreadable, workers=1, progress=False)


def test_fresh_moves_the_planned_runs_and_no_others(tmp_path: Path) -> None:
    study = made_study(tmp_path)
    run_local(study, workers=0, progress=False)
    before = results(study)
    other = write_run(study.runs_folder, {"mine": 1}, [1, 2])
    outcome = run_local(study, workers=0, progress=False, fresh=True)
    assert (outcome.there, outcome.made) == (0, 8)
    after = results(study)
    assert after.pop(other.name)
    assert after == before
    (kept,) = (study.runs_folder / REPLACED).iterdir()
    assert {p.name for p in kept.iterdir()} == set(before)
    with Claims(study.runs_folder) as claims:
        claims.take(study.jobs[0].id)
        with pytest.raises(StoreError, match="another process is making"):
            run_local(study, workers=0, progress=False, fresh=True)


def test_what_others_make_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = made_study(tmp_path)
    run_local(study, workers=0, progress=False)
    theirs, failed, dropped = study.jobs[:3]
    stored = {j.id: (study.runs_folder / j.id, tmp_path / j.id) for j in study.jobs[:3]}
    for place, aside in stored.values():
        place.rename(aside)
    other = Claims(study.runs_folder)
    for job in study.jobs[:3]:
        assert other.take(job.id)
    waited = 0

    def wait(seconds: float) -> None:  # the other process goes on while we wait
        nonlocal waited
        waited += 1
        if waited == 2:
            stored[theirs.id][1].rename(stored[theirs.id][0])
            other.release(theirs.id)
        if waited == 3:
            environment = {"attempts": 1}
            write_run(study.runs_folder, failed.coordinates, error="theirs", environment=environment)
            other.release(failed.id)
        if waited == 4:
            other.close()

    monkeypatch.setattr("curvewise.study.run.drive.time.sleep", wait)
    heard: list[Event] = []
    outcome = run_local(study, workers=0, progress=False, tell=heard.append)
    assert [(e.kind, e.id) for e in heard] == [
        *(("held", j.id) for j in study.jobs[:3]),
        ("there", theirs.id),
        ("there", failed.id),
        ("done", dropped.id),
    ]
    assert (outcome.made, outcome.by_others, outcome.failed) == (1, 2, {failed.id: "theirs"})


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_keeps_what_is_stored_and_says_how_to_go_on(tmp_path: Path, sent: signal.Signals) -> None:
    study = made_study(tmp_path, Learner(estimator="own_models:Slow"))
    (tmp_path / "study.pickle").write_bytes(pickle.dumps(study))
    code = (
        "import pickle, sys\n"
        "from curvewise.study.run.drive import run_local\n"
        "study = pickle.load(open(sys.argv[1], 'rb'))\n"
        "run_local(study, workers=2, tell=lambda e: print(e.kind, flush=True))\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "study.pickle")]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=os.environ | {"WAIT": "6000"},  # so that it never gets through all of them
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "done\n"
    os.killpg(process.pid, sent)  # as a terminal or a scheduler does
    _, said = process.communicate(timeout=300)
    assert process.returncode != 0
    assert "Run the study again to continue" in said
    there = len(list_runs(study.runs_folder))
    assert 1 <= there <= 4
    assert not list((study.runs_folder / ".claims").iterdir())  # given back in order
    assert not list((study.runs_folder / ".partial").iterdir())
    assert run_local(study, workers=0, progress=False).made == 8 - there
    assert len(list_runs(study.runs_folder)) == 8


def test_ctrl_c_does_not_wait_for_a_run_that_takes_no_notice(tmp_path: Path) -> None:
    study = made_study(tmp_path, Learner(estimator="own_models:Deaf"))
    (tmp_path / "study.pickle").write_bytes(pickle.dumps(study))
    code = (
        "import pickle, sys\n"
        "from curvewise.study.run.drive import run_local\n"
        "run_local(pickle.load(open(sys.argv[1], 'rb')), workers=1)\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "study.pickle")]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True, cwd=tmp_path)
    while not (fits := list(tmp_path.glob("fits-*"))):
        assert process.poll() is None
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=300)  # the run would take 6000 s
    assert "Run the study again to continue" in said
    with pytest.raises(ProcessLookupError):
        os.kill(int(fits[0].name.removeprefix("fits-")), 0)
    assert not list((study.runs_folder / ".claims").iterdir())


def test_a_limit_on_file_sizes_stops_the_study_cleanly(tmp_path: Path) -> None:
    study = made_study(tmp_path)
    (tmp_path / "study.pickle").write_bytes(pickle.dumps(study))
    code = (
        "import pickle, resource, sys\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (900, 900))\n"  # less than a record
        "from curvewise.study.run.drive import run_local\n"
        "study = pickle.load(open(sys.argv[1], 'rb'))\n"
        "run_local(study, workers=2, progress=False)\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "study.pickle")]
    # Python would keep byte code that is cut off at the limit too.
    alone = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    process = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, env=alone)
    assert process.returncode == 1
    assert "StoreError: A run cannot be stored" in process.stderr
    assert "File too large" in process.stderr
    assert list_runs(study.runs_folder) == []
    assert not list((study.runs_folder / ".partial").iterdir())
    assert not list((study.runs_folder / ".claims").iterdir())
    assert run_local(study, workers=0, progress=False).made == 8


@pytest.mark.parametrize("kill_at", [0, 1], ids=["claim and run", "run"])
def test_a_worker_that_is_cut_off_leaves_nothing(tmp_path: Path, monkeypatch: Any, kill_at: int) -> None:
    """Another worker ended the study; this one does not get so far as to clean up."""
    monkeypatch.chdir(tmp_path)
    learner = Learner(estimator="own_models:Torn", options={"kill_at": kill_at})
    study = made_study(tmp_path, learner)
    with pytest.raises(StoreError, match="cannot be stored"):
        run_local(study, workers=2, progress=False)
    assert (tmp_path / "waits").exists()
    assert not list((study.runs_folder / ".claims").iterdir())
    assert not list((study.runs_folder / ".partial").iterdir())


def test_a_study_travels_without_what_was_loaded(tmp_path: Path) -> None:
    digits = Study("digits", {"it": Learner(estimator="sklearn.svm:SVC")}, Design(sizes=[100]))
    assert len(digits.jobs) > 0
    assert len(digits.evaluation_sets["test"].y) == 360
    data = pickle.dumps(digits)
    assert len(data) < 2_000
    again = pickle.loads(data)
    assert "dataset" not in vars(again)
    assert [j.id for j in again.jobs] == [j.id for j in digits.jobs]


# The board


def network_jobs(tmp_path: Path, **design: Any) -> list[Job]:
    learner = Learner(training=Training("mlp", rate=(0.1, 0.2)))
    return made_study(tmp_path, learner, design=Design(**design)).jobs


def done(job: Job) -> Event:
    return Event(DONE, job.id)


def test_searches_come_first_and_their_runs_after_them(tmp_path: Path) -> None:
    jobs = network_jobs(tmp_path, sizes=[12, 24], folds=2, seeds=3)
    board = Board(jobs, workers=2)
    (search,) = board.next_chunk()
    assert search.is_search
    assert board.next_chunk() == []
    assert not board.is_finished
    board.hear(done(search))
    chunk = board.next_chunk()
    assert {j.n for j in chunk} == {12}  # the short ones first
    assert len(chunk) == 3  # half of them, for there are two workers


def test_on_a_gpu_few_runs_of_a_size_get_company_of_other_sizes(tmp_path: Path) -> None:
    design = Design(sizes=[6, 12, 24], folds=3, grid={"rate": [0.1, 0.2]})
    jobs = made_study(tmp_path, Learner(training=Training("mlp")), design=design).jobs
    board, dealt, last = Board(jobs, workers=1, on_gpu=True), [], None
    while chunk := board.next_chunk(last):
        last = chunk[0]
        dealt.append([(j.settings["rate"], j.n) for j in chunk])
        for job in chunk:
            board.hear(done(job))
        board.finish_chunk(chunk, seconds=20.0)
    assert [len(chunk) for chunk in dealt] == [8, 1, 8, 1]
    assert [len({rate for rate, _ in chunk}) for chunk in dealt] == [1] * 4
    assert [n for _, n in dealt[0]] == [6] * 3 + [12] * 3 + [24] * 2
    assert [j.n for j in Board(jobs, workers=1).next_chunk()] == [6] * 3  # on a CPU


def simulate(board: Board, workers: int, seconds: Any) -> list[tuple[float, Job]]:
    """Work through a board in fake time; gives when each run was finished."""
    free, finished = [(0.0, i) for i in range(workers)], []
    busy: list[tuple[float, int, list[Job], int]] = []
    while not board.is_finished:
        idle = []
        for now, i in sorted(free):
            if chunk := board.next_chunk():
                busy.append((now + seconds(chunk[0]), i, chunk, 0))
            else:
                idle.append(i)
        now, i, chunk, k = min(busy, key=lambda entry: entry[:2])
        busy.remove((now, i, chunk, k))
        board.hear(Event(DONE, chunk[k].id, seconds=seconds(chunk[k])))
        finished.append((now, chunk[k]))
        free = [(now, worker) for worker in idle]
        if k + 1 < len(chunk):
            busy.append((now + seconds(chunk[k + 1]), i, chunk, k + 1))
        else:
            board.finish_chunk(chunk, 20.0)
            free.append((now, i))
    return finished


@pytest.mark.parametrize("workers", [1, 2, 8])
def test_short_runs_go_first_and_no_worker_is_left_alone_with_a_long_one(tmp_path: Path, workers: int) -> None:
    learners = {
        "quick": Learner(estimator="own_models:Centres"),
        "slow": Learner(estimator="own_models:Slow"),
        "net": Learner(training=Training("mlp")),
    }
    design = Design(sizes=[3, 6, 12, 24, 48], folds=[16, 8, 4, 2, 1], seeds=2)
    study = replace(made_study(tmp_path, design=design), learners=learners)
    speed = {"quick": 0.1, "slow": 10.0, "net": 1.0}  # seconds per example, which nobody told the board

    def seconds(job: Job) -> float:
        return speed[job.name] * job.n

    finished = simulate(Board(study.jobs, workers), workers, seconds)
    assert sorted(job.id for _, job in finished) == sorted(job.id for job in study.jobs)
    total = sum(seconds(job) for job in study.jobs)
    # After 40 of 5328 seconds of work, every learner has finished runs; a slow one on 48 examples takes 480.
    early = {job.name for when, job in finished if when <= 40.0}
    assert early == set(learners)
    # No schedule ends before the work is shared evenly, or before the longest run is made.
    least = max(total / workers, max(map(seconds, study.jobs)))
    assert max(when for when, _ in finished) <= 1.15 * least


def test_the_time_left_follows_from_finished_runs(tmp_path: Path) -> None:
    learners = {"a": Learner(estimator="own_models:Centres"), "b": Learner(estimator="own_models:Slow")}
    study = replace(made_study(tmp_path, design=Design(sizes=[12, 24], folds=1)), learners=learners)
    board = Board(study.jobs, workers=1)
    assert np.isnan(board.seconds_left(0.0)[0])
    (first,) = board.next_chunk()
    board.hear(Event(DONE, first.id, seconds=3.0))
    assert (first.name, first.n) == ("a", 12)
    assert board.seconds_left(3.0) == (pytest.approx(6.0), False)  # nothing is known of b
    (second,) = board.next_chunk()
    board.hear(Event(DONE, second.id, seconds=5.0))
    assert (second.name, second.n) == ("b", 12)
    assert board.seconds_left(8.0) == (pytest.approx(6.0 + 10.0), True)
    assert board.seconds_left(16.0)[0] == pytest.approx(32.0)  # half of the time went elsewhere


def test_every_run_is_dealt_out_once(tmp_path: Path) -> None:
    jobs = network_jobs(tmp_path, sizes=[12, 24], folds=2, seeds=30)
    board = Board(jobs, workers=3)
    dealt: list[str] = []
    while not board.is_finished:
        chunk = board.next_chunk()
        assert len({group_of(j) for j in chunk}) == 1
        dealt += [j.id for j in chunk]
        for job in chunk:
            board.hear(done(job))
        board.finish_chunk(chunk, seconds=1.0)
    assert sorted(dealt) == sorted(j.id for j in jobs)


def test_chunks_grow_while_they_are_short_and_shrink_when_long(tmp_path: Path) -> None:
    jobs = [j for j in network_jobs(tmp_path, sizes=[12], folds=1, seeds=900) if not j.is_search]
    board, sizes = Board(jobs, workers=1), []
    for seconds in (1, 1, 30, 100, 100, 100, 100):
        chunk = board.next_chunk()
        sizes.append(len(chunk))
        for job in chunk:
            board.hear(done(job))
        board.finish_chunk(chunk, seconds)
    assert sizes == [4, 32, 64, 64, 32, 16, 8]  # a few of unknown speed, then as many as are quick


@pytest.mark.parametrize(("seconds", "then"), [(5.0, 4), (1.0, 10), (0.01, 32)])
def test_slow_networks_on_a_cpu_come_a_few_at_a_time(tmp_path: Path, seconds: float, then: int) -> None:
    """All of a chunk are finished at once: one that lasts longer than ten seconds would lose much when interrupted."""
    jobs = [j for j in network_jobs(tmp_path, sizes=[12], folds=1, seeds=99) if not j.is_search]
    board = Board(jobs, workers=1)
    chunk = board.next_chunk()
    assert len(chunk) == 4
    for job in chunk:
        board.hear(Event(DONE, job.id, seconds=seconds))
    board.finish_chunk(chunk, 20.0)
    assert len(board.next_chunk()) == then


def test_a_dead_workers_runs_are_tried_alone_and_given_up(tmp_path: Path) -> None:
    jobs = [j for j in network_jobs(tmp_path, sizes=[12], folds=1, seeds=4) if not j.is_search]
    board = Board(jobs, workers=1)
    chunk = board.next_chunk()
    assert len(chunk) == 4
    board.hear(done(chunk[0]))
    assert board.lose_chunk(chunk) == []
    deaths, given_up = Counter({chunk[1].id: 1}), []
    while not board.is_finished:
        (job,) = board.next_chunk()
        if job is chunk[1]:
            deaths[job.id] += 1
            for hopeless in board.lose_chunk([job]):
                given_up.append(hopeless)
                board.hear(Event(FAILED, hopeless.id))
        else:
            board.hear(done(job))
    assert given_up == [chunk[1]]
    assert deaths[chunk[1].id] == MOST_DEATHS


def test_silence_is_an_error_of_ours(tmp_path: Path) -> None:
    board = Board(network_jobs(tmp_path, sizes=[12], folds=1), workers=1)
    chunk = board.next_chunk()
    with pytest.raises(RuntimeError, match="said nothing"):
        board.finish_chunk(chunk, 1.0)


# Options


@pytest.mark.parametrize(
    "options",
    [
        {"workers": -1},
        {"workers": 1.5},
        {"workers": True},
        {"device": "tpu"},
        {"in_flight": 0},
        {"in_flight": 2.0},
        {"shard": "3/2"},
    ],
)
def test_bad_options_are_named(tmp_path: Path, options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(InputError, match=f"{name}="):
        run_local(made_study(tmp_path), progress=False, **options)
    assert not (tmp_path / "store").exists()


def test_devices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    network = made_study(tmp_path, Learner(training=Training("mlp")))
    estimator = made_study(tmp_path)
    monkeypatch.setattr("curvewise.nn.devices.list_gpus", lambda: ["cuda:0", "cuda:1"])
    assert choose_devices(network, None, None) == ["cuda:0", "cuda:1"]
    assert choose_devices(network, "cuda", 3) == ["cuda:0", "cuda:1", "cuda:0"]
    assert choose_devices(network, "cuda:1", None) == ["cuda:1"]
    assert choose_devices(network, "cpu", 3) == ["cpu"] * 3
    assert choose_devices(estimator, None, 2) == ["cpu"] * 2
    monkeypatch.setattr("curvewise.nn.devices.list_gpus", list)
    assert choose_devices(network, None, 0) == ["cpu"]
    with pytest.raises(InputError, match="no GPU"):
        choose_devices(network, "cuda", None)


def test_the_bar_says_how_far_it_is(capfd: Any) -> None:
    with progress_bar("starting", 2, show=True) as advance:
        advance(1, "1/2 runs, 1 failed")
    assert "1/2 runs, 1 failed" in capfd.readouterr().err


def test_a_failed_run_does_not_count_as_finished(tmp_path: Path) -> None:
    study = made_study(tmp_path, Learner(estimator="own_models:Moody"))
    run = drive.Drive(study, drive.RunSettings(progress=False), 1)
    with run:
        run._made.update(job.id for job in study.jobs[:3])
        run._failed[study.jobs[0].id] = "no"
        assert run._how_far().startswith(f"2/{len(study.jobs)} finished, 1 failed")


@pytest.mark.parametrize(("left", "why"), [(900.0, " (longest last)"), (20.0, "")])
def test_the_line_of_progress_fits_a_terminal_and_explains_a_long_rest(tmp_path: Path, left: float, why: str) -> None:
    study = made_study(tmp_path, Learner(estimator="own_models:Moody"))
    run = drive.Drive(study, drive.RunSettings(progress=False), 1)
    with run:
        run._made.update(job.id for job in study.jobs[: len(study.jobs) // 2])
        run.board.began = time.monotonic() - 15.0
        run.board.seconds_left = lambda elapsed: (left, True)  # type: ignore[method-assign]
        text = run._how_far()
        # Half of the runs took 15 seconds: 20 more need no word, a quarter of an hour does.
        assert text.endswith(f"{drive.duration(left)} left{why}")
        assert "finished, 0.27/s, " in text
        assert len(f"runs {10 * '━'} 0:00:15 {text}") <= 80


def test_how_workers_end_in_words() -> None:
    assert processes._how_it_ended(-9) == "by signal SIGKILL: out of memory?"
    assert processes._how_it_ended(-11) == "by signal SIGSEGV"
    assert processes._how_it_ended(3) == "with exit status 3"


def test_halved_memory_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")

    def train(training: Any, assignments: Any, examples: Any, sets: Any, **how: Any) -> Any:
        if (how["in_flight"] or 99) > 2:
            raise torch.OutOfMemoryError("CUDA out of memory")
        for i, _ in enumerate(assignments):
            shape = (len(sets["test"].y), 3)
            yield i, Trained({"test": np.full(shape, 1 / 3, dtype=np.float32)})

    monkeypatch.setattr("curvewise.nn.engine.train", train)
    study = made_study(tmp_path, Learner(training=Training("mlp")))
    outcome = run_local(study, workers=0, progress=False, device="cpu")
    assert (outcome.made, outcome.failed) == (8, {})
    assert any("Out of memory with 4 networks" in note for note in outcome.notes)


def test_a_remade_run_that_kills_its_worker_stays_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    design = Design(sizes=[12, 24], folds=1, stratify=True)
    study = made_study(tmp_path, Learner(estimator="own_models:Moody"), design=design)
    run_local(study, workers=0, progress=False)
    expected = results(study)
    more = replace(study, keep=Keep(probabilities=True))
    monkeypatch.setenv("KILL_AT", "24")
    outcome = run_local(more, workers=1, progress=False)
    (bad,) = (j.id for j in study.jobs if j.n == 24)
    assert set(outcome.failed) == {bad}
    assert "died 3 times" in outcome.summary()
    assert bad in outcome.lost
    assert bad not in outcome.redone
    assert any("repeated after a worker died." in note for note in outcome.notes)
    assert "1 outdated run could not be updated" in outcome.notes[-1]
    assert results(study)[bad] == expected[bad]
    assert study.status().done == 2


def test_fresh_is_refused_beside_one_who_makes_what_is_not_there_yet(tmp_path: Path) -> None:
    study = made_study(tmp_path)
    run_local(study, workers=0, progress=False)
    before, missing = results(study), study.jobs[3]
    shutil.rmtree(study.runs_folder / missing.id)
    with Claims(study.runs_folder) as claims:
        claims.take(missing.id)
        with pytest.raises(StoreError, match=f"is making run {missing.id}"):
            run_local(study, workers=0, progress=False, fresh=True)
    assert results(study) == {k: v for k, v in before.items() if k != missing.id}


def test_the_time_of_a_larger_size_is_not_that_of_loading_libraries(tmp_path: Path) -> None:
    study = made_study(tmp_path, design=Design(sizes=[12, 24, 48], folds=1, seeds=6))
    by_size = {n: [job for job in study.jobs if job.n == n] for n in (12, 24, 48)}
    pace = Pace()
    for job, seconds in zip(by_size[12], [9.0, 9.0, 1.0, 1.0, 1.0, 1.0], strict=True):
        pace.learn(job, seconds)
    assert pace.seconds(by_size[12][0]) == 1.0
    assert pace.seconds(by_size[24][0]) == pytest.approx(2.0)
    pace.learn(by_size[24][0], 1.2)
    assert pace.seconds(by_size[48][0]) == pytest.approx(1.2 + 24 * 0.2 / 12)  # most of it does not grow


def test_a_learner_that_always_fails_is_said_once_and_not_counted_as_finished(tmp_path: Path, capsys: Any) -> None:
    learners = {"a": Learner(estimator="own_models:Centres"), "bad": Learner(estimator="own_models:Broken")}
    study = replace(made_study(tmp_path, design=Design(sizes=[12, 24], folds=2, seeds=2)), learners=learners)
    heard: list[Event] = []

    def tell(event: Event) -> None:
        heard.append(event)
        kinds = Counter(e.kind for e in heard)
        if kinds[FAILED] >= 5 and kinds[DONE]:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_local(study, workers=0, tell=tell)
    said = capsys.readouterr().err
    kinds = Counter(e.kind for e in heard)
    assert said.count("The first 3 runs of bad failed: ") == 1
    left = 16 - kinds[DONE] - kinds[FAILED]
    assert f"16 runs: {kinds[DONE]} finished, {kinds[FAILED]} failed, {left} remaining" in said


def test_a_request_to_end_that_was_lost_is_remembered() -> None:
    with terminable():
        end_if_asked()
        with suppress(Terminated):  # as where it is raised in a callback of compiled code
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(10)
        with pytest.raises(Terminated):
            end_if_asked()
    end_if_asked()
