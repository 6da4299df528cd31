from __future__ import annotations

import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curvewise.errors import InputError, MissingDependencyError, StoreError
from curvewise.nn.training import Training
from curvewise.store.claims import Claims
from curvewise.store.read import list_runs, read_run
from curvewise.store.verify import verify_store
from curvewise.study.data.dataset import Dataset
from curvewise.study.run.drive import run_local
from curvewise.study.run.maker import Event
from curvewise.study.run.ray import run_ray
from curvewise.study.spec.design import Design, Learner
from curvewise.study.study import Study

MODELS = """
import os, signal, time
import numpy as np

class Centres:
    def __init__(self, kill_at=0, gate="", random_state=0):
        self.kill_at, self.gate, self.random_state = kill_at, gate, random_state

    def get_params(self, deep=True):
        return {"kill_at": self.kill_at, "gate": self.gate, "random_state": self.random_state}

    def set_params(self, **values):
        for name, value in values.items():
            setattr(self, name, value)
        return self

    def fit(self, x, y):
        time.sleep(0.1)
        while self.gate and len(x) == 24 and not os.path.exists(self.gate):
            time.sleep(0.05)
        if self.kill_at == len(x):
            os.kill(os.getpid(), signal.SIGKILL)
        self.centres = np.stack([x[y == k].mean(axis=0) for k in range(3)])

    def predict(self, x):
        return ((x[:, None] - self.centres) ** 2).sum(axis=2).argmin(axis=1)
"""


# Ray gives up on what is slow to start, and kills workers where others have filled the memory.
PATIENCE = {
    "RAY_worker_register_timeout_seconds": "600",
    "RAY_gcs_server_request_timeout_seconds": "300",
    "RAY_health_check_failure_threshold": "100",
    "RAY_memory_monitor_refresh_ms": "0",
}


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in PATIENCE.items():
        monkeypatch.setenv(name, value)


def made_study(folder: Path, seeds: int = 3, **learners: Learner) -> Study:
    folder.mkdir(exist_ok=True)
    (folder / "ray_models.py").write_text(MODELS)
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    data = Dataset((rng.normal(size=(90, 4)) + np.eye(3, 4)[y]).astype(np.float32), y)
    design = Design(sizes=[12, 24], folds=[3, 1], seeds=seeds)
    return Study(data, learners, design, folder=folder, store=Path("store"))


def results(study: Study) -> dict[str, Any]:
    return {
        run.id: (run.status, run.arrays, {k: v for k, v in run.metrics.items() if k != "seconds"})
        for run in list_runs(study.runs_folder)
    }


def listening() -> dict[str, set[str]]:
    """Addresses on which the processes of Ray that descend from this one listen."""
    addresses = {}
    for table in ("tcp", "tcp6"):
        with suppress(FileNotFoundError):
            for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == "0A":
                    addresses[fields[9]] = fields[1].split(":")[0]
    found: dict[str, set[str]] = {}
    for pid in descendants(os.getpid()):
        with suppress(OSError):
            name = Path(f"/proc/{pid}/comm").read_text().strip()
            for handle in os.listdir(f"/proc/{pid}/fd"):
                target = os.readlink(f"/proc/{pid}/fd/{handle}")
                inode = re.sub(r"\D", "", target)
                if target.startswith("socket:") and inode in addresses:
                    found.setdefault(name, set()).add(addresses[inode])
    return found


def descendants(pid: int) -> Iterator[int]:
    yield pid
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield from descendants(int(child))


LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_worker_killed_on_a_real_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray")
    pytest.importorskip("torch")
    learners = {
        "own": Learner(estimator="ray_models:Centres"),
        "net": Learner(training=Training("mlp", rate=(0.1, 0.2), epochs=3, batch=8)),
    }
    study, here = (made_study(tmp_path / "ray", **learners), made_study(tmp_path / "here", **learners))
    # In the study's folder, a file that is called like an installed package is not imported.
    (study.folder / "threadpoolctl.py").write_text("raise RuntimeError('shadowed')")
    monkeypatch.chdir(study.folder)
    heard: list[Event] = []
    killed: list[int] = []
    addresses: dict[str, set[str]] = {}

    def tell(event: Event) -> None:
        heard.append(event)
        pid = int(event.where.rsplit(":", 1)[1])
        assert pid != os.getpid()
        if not addresses:
            addresses.update(listening())
        # Twice, workers in the middle of their chunks; what was said by one that is gone is late.
        if len(killed) < 2 and len(heard) >= (6, 14)[len(killed)]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)

    outcome = run_ray(study, workers=2, progress=False, tell=tell)
    assert len(killed) == 2
    assert (outcome.planned, outcome.failed) == (25, {})
    # Of the runs of a chunk whose worker was killed, some are stored before anybody hears of them.
    assert Counter(e.kind for e in heard if e.kind == "done").total() >= 15
    assert Path.cwd() == study.folder
    run_local(here, workers=0, device="cpu", progress=False)
    assert results(study) == results(here)
    assert verify_store(study.runs_folder).sound
    assert not list((study.runs_folder / ".claims").iterdir())
    assert not [p for p in (study.runs_folder / ".partial").iterdir() if "npy" not in p.name]
    assert len(addresses) >= 3  # the driver, the control and the node at least
    assert set().union(*addresses.values()) <= LOOPBACK


def test_a_cluster_that_is_there_is_used_and_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ray = pytest.importorskip("ray")
    killer = Learner(estimator="ray_models:Centres", options={"kill_at": 24})
    study = made_study(tmp_path, seeds=1, killer=killer)
    ray.init(address="local", num_cpus=2, include_dashboard=False, logging_level="error")
    try:
        bad = {j.id for j in study.jobs if j.n == 24}
        # Another process holds a run: workers without work are given back until it lets go of it.
        monkeypatch.setattr("curvewise.study.run.ray.IDLE_SECONDS", 0.2)
        heard: list[Event] = []
        released: list[bool] = []

        def let_go() -> None:
            until(lambda: {e.id for e in heard if e.kind == "failed"} == bad)
            released.append(until(lambda: not actors_in("ALIVE", "PENDING_CREATION")))
            other.release(held)

        with Claims(study.runs_folder) as other:
            held = min(j.id for j in study.jobs if j.n == 12)
            assert other.take(held)
            waiting = threading.Thread(target=let_go)
            waiting.start()
            outcome = run_ray(study, progress=False, tell=heard.append)
            waiting.join()
        assert released == [True]
        assert set(outcome.failed) == bad
        assert "died 3 times" in str(read_run(study.runs_folder / min(bad)).error)
        assert outcome.made == 4
        shutil.rmtree(study.runs_folder / ".partial")
        (study.runs_folder / ".partial").write_text("in the way")
        with pytest.raises(StoreError, match="cannot be stored"):
            run_ray(made_study(tmp_path, own=Learner(estimator="ray_models:Centres")))
        assert not list((study.runs_folder / ".claims").iterdir())
        assert ray.is_initialized()
    finally:
        ray.shutdown()


def test_nodes_come_and_go(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A head without a GPU, a node that is added when the study waits for it, another, and one that is taken away."""
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    gate = tmp_path / "gate"
    learner = Learner(estimator="ray_models:Centres", options={"gate": str(gate)})
    study = made_study(tmp_path / "ray", seeds=2, own=learner)
    assert isinstance(study.data, Dataset)
    np.savez(study.folder / "data.npz", x=study.data.x, y=study.data.y)
    study = replace(study, data={"path": "data.npz"})
    heard: list[Event] = []
    trouble: list[BaseException] = []
    # Not at exit, but here: only the main thread may have it set up.
    cluster = Cluster(initialize_head=True, shutdown_at_exit=False, head_node_args={"num_cpus": 2, "num_gpus": 0})

    def change() -> None:
        try:
            # GPUs in name only: estimators do not use them.
            until(lambda: actors_in("PENDING_CREATION") == 2)
            (study.folder / "data.npz").unlink()  # which is in the object store
            first = cluster.add_node(num_cpus=1, num_gpus=1, resources={"fast": 1})
            until(lambda: [e for e in heard if e.kind == "done"])
            cluster.add_node(num_cpus=1, num_gpus=1, resources={"fast": 1})
            # Both are at the gate: a run each, of different owners.
            claims = study.runs_folder / ".claims"
            until(lambda: len([c for c in claims.iterdir() if c.name[0] != "."]) == 2)
            cluster.remove_node(first)
            until(lambda: len([c for c in claims.iterdir() if c.name[0] != "."]) == 1)
        except BaseException as error:
            trouble.append(error)
        gate.touch()

    changing = threading.Thread(target=change)
    changing.start()
    try:
        asked = {"gpus": 1, "memory": "10MB", "resources": {"fast": 0.5}, "runtime_env": {"env_vars": {"MARK": "1"}}}
        outcome = run_ray(study, cluster.address, tell=heard.append, **asked)
        changing.join()
    finally:
        gate.touch()
        cluster.shutdown()
    assert not trouble
    assert "waiting for one" in capfd.readouterr().err
    # The run on the node that was taken away; another, if it was sent there before the cluster noticed.
    assert (outcome.made, outcome.failed, len(outcome.lost) >= 1) == (8, {}, True)
    assert len({e.where for e in heard}) == 2
    assert verify_store(study.runs_folder).sound
    assert not list((study.runs_folder / ".claims").iterdir())


def until(condition: Callable[[], Any]) -> Any:
    limit = time.monotonic() + 300
    while not (found := condition()):
        assert time.monotonic() < limit
        time.sleep(0.05)
    return found


def actors_in(*states: str) -> int:
    """Count the actors of the cluster in some states; those that wait are what an autoscaler is shown."""
    import ray
    from ray._private.state import actors

    return sum(about["State"] in states for about in actors().values()) if ray.is_initialized() else 0


ON_RAY = """
import pickle, sys
from curvewise.errors import Terminated
from curvewise.study.run.ray import run_ray
study = pickle.load(open(sys.argv[1], "rb"))
try:
    run_ray(study, workers=1, tell=lambda event: print(event.kind, flush=True))
except Terminated:
    sys.exit(143)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_scheduler_ends_a_study_on_ray(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    study = made_study(tmp_path, seeds=200, own=Learner(estimator="ray_models:Centres"))
    (tmp_path / "study.pickle").write_bytes(pickle.dumps(study))
    with subprocess.Popen(
        [sys.executable, "-c", ON_RAY, str(tmp_path / "study.pickle")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as started:
        assert started.stdout is not None
        assert started.stdout.readline() == "done\n"
        started_by_it = [*descendants(started.pid)]
        started.terminate()
        _, said = started.communicate(timeout=600)
    assert started.returncode == 143
    assert "Run the study again to continue" in said
    limit = time.monotonic() + 300
    while any(map(is_running, started_by_it)) and time.monotonic() < limit:
        time.sleep(0.1)
    # Workers that Ray kills while they claim a run may leave that one claim behind each.
    claims = [c for c in (study.runs_folder / ".claims").iterdir() if c.name[0] != "."]
    assert len(claims) <= (os.cpu_count() or 1)
    assert not [pid for pid in started_by_it if is_running(pid)]


def is_running(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False


def test_without_ray_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    study = made_study(tmp_path, own=Learner(estimator="ray_models:Centres"))
    with pytest.raises(MissingDependencyError, match=r"curvewise\[ray\]"):
        run_ray(study)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"cpus": -1}, "a worker needs"),
    ({"cpus": 0}, "a worker needs"),
    ({"gpus": -0.5}, "a worker needs"),
    ({"workers": 0}, "workers=0: give a whole number"),
    ({"memory": "much"}, "memory='much': give bytes, or a text such as '8GiB'"),
    ({"resources": {"fast": 0}}, "give a positive number for each name"),
    ({"resources": {"CPU": 1}}, "say cpus=, gpus= or memory= instead"),
    ({"runtime_env": ["pip"]}, "give a dict as Ray takes it"),
    ({"runtime_env": {"working_directory": "."}}, "'working_directory', which Ray does not know."),
    ({"runtime_env": {"env_vars": {"OMP_NUM_THREADS": "8"}}}, "one thread each"),
    ({"address": "ray://head:10001"}, "ray job submit --address http://head:8265 -- curvewise study run"),
]


@pytest.mark.parametrize(("options", "text"), WRONG)
def test_what_cannot_be_asked_for(tmp_path: Path, options: dict[str, Any], text: str) -> None:
    pytest.importorskip("ray")
    study = made_study(tmp_path, own=Learner(estimator="ray_models:Centres"))
    with pytest.raises(InputError, match=re.escape(text)):
        run_ray(study, **options)


def test_ray_client_is_refused_wherever_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray")
    monkeypatch.setenv("RAY_ADDRESS", "ray://head:10001")
    study = made_study(tmp_path, own=Learner(estimator="ray_models:Centres"))
    with pytest.raises(InputError, match="ray job submit"):
        run_ray(study)


def test_a_cluster_that_does_not_answer_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ray = pytest.importorskip("ray")

    def init(**how: Any) -> None:
        raise ConnectionError("Could not find any running Ray instance. Please specify the one to connect to.")

    monkeypatch.setattr(ray, "init", init)
    study = made_study(tmp_path, own=Learner(estimator="ray_models:Centres"))
    with pytest.raises(InputError, match=re.escape("on='auto': no Ray cluster answers")):
        run_ray(study, "auto")


def test_an_environment_that_ray_refuses_is_named(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    study = made_study(tmp_path, own=Learner(estimator="ray_models:Centres"))
    with pytest.raises(InputError, match=r"Ray does not take it: .*gone\.zip"):
        run_ray(study, workers=1, runtime_env={"py_modules": ["gone.zip"]})
