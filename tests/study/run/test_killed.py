"""Studies that are killed for real, at random moments, and must end as if nothing had happened."""

from __future__ import annotations

import json
import os
import random
import runpy
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from curvewise.store.read import read_record
from curvewise.store.verify import verify_store
from curvewise.study.run.drive import run_local
from curvewise.study.study import Study

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")

MODELS = """
import os, time
import numpy as np

def meet():
    place = os.environ.get("MEET")
    if place:
        open(os.path.join(place, str(os.getppid())), "w").close()
        limit = time.monotonic() + 300
        while len(os.listdir(place)) < 2 and time.monotonic() < limit:
            time.sleep(0.02)

class Centres:
    def __init__(self, random_state=0):
        self.random_state = random_state

    def get_params(self, deep=True):
        return {"random_state": self.random_state}

    def set_params(self, random_state):
        self.random_state = random_state
        return self

    def fit(self, x, y):
        meet()
        time.sleep(0.02)
        noise = np.random.default_rng(self.random_state).normal(size=(3, x.shape[1]))
        self.centres = np.stack([x[y == k].mean(axis=0) for k in range(3)]) + noise

    def predict_proba(self, x):
        near = np.exp(-((x[:, None] - self.centres) ** 2).sum(axis=2))
        return near / near.sum(axis=1, keepdims=True)

    def predict(self, x):
        return self.predict_proba(x).argmax(axis=1)
"""
PLAN = """
import json, sys
from pathlib import Path
import numpy as np
from curvewise.nn.training import Training
from curvewise.nn.task import Keep
from curvewise.study.data.dataset import Dataset
from curvewise.study.spec.design import Design
from curvewise.study.spec.evaluation import Evaluation
from curvewise.study.run.drive import run_local
from curvewise.study.spec.design import Learner
from curvewise.study.study import Study

def blobs(examples):
    rng = np.random.default_rng(examples)
    y = np.arange(examples) % 3
    return Dataset((rng.normal(size=(examples, 4)) + np.eye(3, 4)[y]).astype(np.float32), y)

def make_study(store, kind, more):
    folder = Path(__file__).parent
    learner = Learner(estimator="killed_models:Centres")
    design = Design(sizes=[12, 24], folds=[4, 2], seeds=24 * more)
    if kind == "network":
        learner = Learner(training=Training("mlp", rate=(0.1, 0.2), epochs=40, batch=4))
        design = Design(sizes=[12, 24], folds=[4, 2], seeds=4 * more)
    options = {"keep": Keep(probabilities=True), "evaluate": {"other": Evaluation(blobs(60))}}
    return Study(blobs(120), {"it": learner}, design, folder=folder, store=Path(store), **options)

def tell(event):
    print(json.dumps([event.kind, event.id]), flush=True)

if __name__ == "__main__":
    store, kind, workers, more = sys.argv[1:]
    how = {"in_flight": 2 if kind == "network" else None, "device": "cpu", "tell": tell}
    run_local(make_study(store, kind, int(more)), workers=int(workers), **how)
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "killed_models.py").write_text(MODELS)
    (tmp_path / "plan.py").write_text(PLAN)
    return tmp_path


def planned(place: Path, store: str, kind: str, more: int = 1) -> Study:
    return runpy.run_path(str(place / "plan.py"))["make_study"](place / store, kind, more)


class Running:
    """A study that runs in processes of its own."""

    def __init__(self, place: Path, kind: str, workers: int, more: int = 1, **env: str) -> None:
        given = [str(place / "store"), kind, str(workers), str(more)]
        command = [sys.executable, str(place / "plan.py"), *given]
        self.log = (place / f"log-{time.monotonic_ns()}").open("w+")
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=self.log, text=True, start_new_session=True, env=os.environ | env
        )

    def events(self) -> Iterator[tuple[str, str]]:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with suppress(ValueError):  # the last line may be cut off
                kind, identity = json.loads(line)
                yield kind, identity

    def workers(self) -> list[int]:
        with suppress(FileNotFoundError):
            children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
            return [int(pid) for pid in children.read_text().split()]
        return []

    def kill(self, whom: str) -> bool:
        """Whether there was one to kill."""
        workers = self.workers()
        victims = {
            "all": [self.process.pid, *workers],
            "all, workers first": [*workers, self.process.pid],
            "driver": [self.process.pid],
            "worker": workers[:1],
        }[whom]
        for pid in victims:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return bool(victims)

    def said(self) -> str:
        self.process.wait(timeout=300)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.log.seek(0)
        text = self.log.read()
        self.log.close()
        return text


# None comes three times in a row, after which a run would count as one that kills its workers.
VICTIMS = ("worker", "worker", "driver", "all", "worker", "all, workers first")


def kill_again_and_again(
    place: Path, kind: str, kills: int, rng: random.Random, most: int
) -> tuple[Counter[str], list[str], int]:
    """Run a study to its end, killing some of its processes on the way.

    Where the machine lets it get through before it was killed so often, it is made larger: gives
    how many times as large it was in the end, too.
    """
    killed: Counter[str] = Counter()
    logs: list[str] = []
    more = 1
    while True:
        running = Running(place, kind, workers=2 if kind == "estimator" else 1, more=more)
        left, aimed_at = rng.randint(1, most), None
        for event, _ in running.events():
            left -= event == "done"
            if left > 0 or aimed_at or killed.total() >= kills:
                continue
            time.sleep(rng.uniform(0, 0.05))
            whom, left = VICTIMS[killed.total() % len(VICTIMS)], rng.randint(1, most)
            hit = running.kill(whom)
            if whom == "worker":
                killed[whom] += hit
            else:
                aimed_at = whom
        logs.append(running.said())
        if running.process.returncode != 0:
            assert aimed_at, logs[-1]  # it did not end by itself
            killed[aimed_at] += 1
        elif killed.total() >= kills:
            return killed, logs, more
        else:
            more += 1
            assert more < 20


def contents(store: Path) -> dict[str, Any]:
    """All that is stored of the runs, but for times and circumstances."""
    found: dict[str, Any] = {}
    for folder in store.glob("[0-9a-f]" * 20):
        record = read_record(folder)
        metrics = {k: v for k, v in record["metrics"].items() if k != "seconds"}
        kept = {k: record[k] for k in ("coordinates", "status", "error", "notes", "labels")}
        files = {p.name: p.read_bytes() for p in folder.iterdir() if p.name != "record.json"}
        found[folder.name] = (kept, metrics, files)
    return found


def check_whole(place: Path, kind: str, more: int = 1) -> None:
    study, undisturbed = (planned(place, name, kind, more) for name in ("store", "undisturbed"))
    assert run_local(undisturbed, workers=0, device="cpu", progress=False).failed == {}
    assert sorted(contents(study.runs_folder)) == sorted(j.id for j in study.jobs)
    assert contents(study.runs_folder) == contents(undisturbed.runs_folder)
    check = verify_store(study.runs_folder)
    assert check.sound
    assert check.failed == 0
    assert not list((study.runs_folder / ".claims").iterdir())
    runs = {j.id for j in study.jobs}
    left = [p.name for p in (study.runs_folder / ".partial").iterdir()]
    assert not [name for name in left if name[:20] in runs]


def test_killed_at_random_again_and_again(place: Path) -> None:
    rng = random.Random(20)
    killed, logs, more = kill_again_and_again(place, "estimator", kills=12, rng=rng, most=6)
    assert killed == {"worker": 6, "driver": 2, "all": 2, "all, workers first": 2}
    assert any("will be started again" in text for text in logs)
    assert f"{144 * more} runs: " in logs[-1]
    check_whole(place, "estimator", more)


def test_networks_and_their_search_killed(place: Path) -> None:
    pytest.importorskip("torch")
    rng = random.Random(0)
    killed, _, more = kill_again_and_again(place, "network", kills=3, rng=rng, most=3)
    assert killed == {"worker": 2, "driver": 1}
    check_whole(place, "network", more)


def test_two_at_once_make_every_run_once(place: Path) -> None:
    meeting = place / "meeting"  # neither goes on before the other has begun
    meeting.mkdir()
    both = [Running(place, "estimator", workers=1, MEET=str(meeting)) for _ in range(2)]
    made: Counter[str] = Counter()
    shares = []
    for running in both:
        own = [identity for event, identity in running.events() if event == "done"]
        shares.append(len(own))
        made.update(own)
    for running in both:
        text = running.said()
        assert running.process.returncode == 0, text
    jobs = planned(place, "store", "estimator").jobs
    assert made == {j.id: 1 for j in jobs}
    assert min(shares) > 0
    check_whole(place, "estimator")
