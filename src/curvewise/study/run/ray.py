"""Execute a study on a Ray cluster; every node sees the store's folder."""

from __future__ import annotations

import math
import os
import queue
import signal
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import chdir, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from curvewise.errors import InputError, MissingDependencyError
from curvewise.nn.own_code import installed_only
from curvewise.store.claims import Claims
from curvewise.study.run.drive import (
    ERRORS,
    ONE_THREAD,
    POLL_SECONDS,
    STOP_SECONDS,
    Drive,
    Outcome,
    RunSettings,
    describe_fatal,
    terminable,
)
from curvewise.study.run.maker import Maker, SpoiltDeviceError
from curvewise.study.spec.study import Job, StudySpec
from curvewise.study.status import usable_cores

LOCAL = "local"


def run_ray(
    study: StudySpec,
    address: str | None = None,
    *,
    cpus: float = 1,
    gpus: float = 0,
    workers: int | None = None,
    **options: Any,
) -> Outcome:
    """Make the runs that a study lacks on a Ray cluster, a chunk of runs per task.

    The store must be a folder that all nodes see under the same path, and curvewise installed on
    all of them. Ids and results are those of a run on one machine.

    A task whose worker or node is lost is given out again by us, not by Ray (``max_retries=0``):
    only so are its claims known to be void. Its runs are then tried one by one, and a run that was
    lost three times is stored as failed.

    Whoever reaches the ports of a Ray cluster can run programs as the user who started it: Ray has
    no authentication, or, in recent versions, a token that a cluster of several machines only asks
    for if it was set up so (``RAY_AUTH_MODE=token``). Its ports are 6379 (control), 8265
    (dashboard), 10001 (clients), 10002–19999 (workers) and several at random, and on Linux Ray
    listens on all interfaces: keep a cluster of several machines within a network that you trust.
    The cluster that is started here without an address listens on 127.0.0.1 only, with the
    dashboard and usage reports off.

    Parameters
    ----------
    study : Study
        What to execute.
    address : str, optional
        ``"auto"`` for the cluster that this machine belongs to, ``"ray://host:10001"`` or
        ``"host:6379"``. By default a cluster is started on this machine and stopped at the end;
        one that this process is connected to already, or that RAY_ADDRESS names, is used.
    cpus, gpus : float
        What each task asks for; half a GPU puts two tasks on one. Networks are trained on the GPU
        if there is some.
    workers : int, optional
        Tasks at a time; by default as many as the cluster has room for.
    **options
        As for :func:`~curvewise.study.run.drive.run_local`.

    Returns
    -------
    Outcome
        What was made, what failed, what was redone.

    Raises
    ------
    MissingDependencyError
        Without Ray.
    StoreError
        If a run cannot be stored.
    """
    if cpus < 0 or gpus < 0 or cpus + gpus == 0:
        raise InputError(f"cpus={cpus!r}, gpus={gpus!r}: a task needs some of either.")
    settings = RunSettings(**options)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            'Running on a cluster needs Ray, which is not installed: pip install "curvewise[ray]".'
        ) from error
    # Other machines, and Ray's processes on this one, work in other folders.
    study = replace(study, folder=study.folder.resolve())
    with _cluster(ray, address, math.ceil((workers or usable_cores()) * max(cpus, 1))):
        room = _room(ray, cpus, gpus)
        if not room:
            raise InputError(f"cpus={cpus:g}, gpus={gpus:g}: no node of the cluster has that much for one task.")
        slots = room if workers is None else max(1, workers)
        with Drive(study, settings, slots, on_gpu=gpus > 0) as drive:
            if drive.due:
                _Tasks(ray, drive, slots, cpus, gpus).run()
            return drive.outcome()


@contextmanager
def _cluster(ray: Any, address: str | None, cores: int) -> Iterator[None]:
    """Connect, or start a cluster of our own, and leave things as they were."""
    if ray.is_initialized():
        with terminable():
            yield
        return
    address = address or os.environ.get("RAY_ADDRESS") or LOCAL
    quiet = {"log_to_driver": False, "logging_level": "error"}
    main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGTERM)
    try:
        # Ray puts the current folder first on its workers' path, where a file json.py would be
        # imported instead of Python's: connect from a folder without modules.
        with chdir(Path(sys.executable).parent):
            if address == LOCAL:
                with _loopback():
                    ray.init(address=LOCAL, num_cpus=cores, include_dashboard=False, **quiet)
            else:
                ray.init(address=address, **quiet)
        with terminable():  # where Ray would end the process before its claims are given back
            yield
    finally:
        ray.shutdown()
        if main:
            signal.signal(signal.SIGTERM, before)


@contextmanager
def _loopback() -> Iterator[None]:
    """Have Ray listen on 127.0.0.1 only.

    Asked for that address, Ray takes another that can be reached from outside, except where it
    supports no clusters: so this is declared to be such a place.
    """
    from ray._private import ray_constants

    name, constant = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "ENABLE_RAY_CLUSTER"
    before, value = os.environ.get(name), getattr(ray_constants, constant, True)
    os.environ[name] = "0"
    setattr(ray_constants, constant, False)
    try:
        yield
    finally:
        setattr(ray_constants, constant, value)
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def _room(ray: Any, cpus: float, gpus: float) -> int:
    """Count the tasks that the cluster can run at a time."""
    asked = {kind: many for kind, many in (("CPU", cpus), ("GPU", gpus)) if many}
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    return sum(min(int(has.get(kind, 0) / many + 1e-9) for kind, many in asked.items()) for has in nodes)


@dataclass
class _Chunk:
    jobs: list[Job]
    token: str
    """Owner of the claims that its task makes."""
    began: float = field(default_factory=time.monotonic)


class _Tasks:
    """Tasks on the cluster, and the loop that gives them out."""

    def __init__(self, ray: Any, drive: Drive, slots: int, cpus: float, gpus: float) -> None:
        self.ray, self.drive, self.board, self.slots = ray, drive, drive.board, slots
        self.study = ray.put(drive.study)
        self.key = uuid.uuid4().hex
        self.options = {"device": "cuda" if gpus else "cpu", **drive.settings.making}
        self.running: dict[Any, _Chunk] = {}
        self.task = ray.remote(make_chunk).options(
            num_cpus=cpus, num_gpus=gpus, num_returns="streaming", max_retries=0, runtime_env={"env_vars": ONE_THREAD}
        )

    def run(self) -> None:
        try:
            while not self.board.is_finished:
                self._deal()
                self._listen()
        finally:
            self._cancel()

    def _deal(self) -> None:
        while len(self.running) < self.slots and (jobs := self.board.next_chunk()):
            chunk = _Chunk(jobs, uuid.uuid4().hex)
            work = (jobs, self.drive.tried(jobs))
            stream = self.task.remote(self.key, self.study, work, chunk.token, self.options, os.getcwd())
            self.running[stream] = chunk

    def _listen(self) -> None:
        if not self.running:
            self.drive.wait_for_others()
            return
        ready, _ = self.ray.wait(list(self.running), timeout=POLL_SECONDS, fetch_local=False)
        if not ready:
            self.drive.look_at_others()
        for stream in ready:
            self._hear(stream, self.running[stream])

    def _hear(self, stream: Any, chunk: _Chunk) -> None:
        try:
            kind, content = self.ray.get(next(stream))
        except StopIteration:
            del self.running[stream]
            self.board.finish_chunk(chunk.jobs, time.monotonic() - chunk.began)
        except self.ray.exceptions.RayTaskError:  # not of a run: of the data, or of our own
            raise
        except self.ray.exceptions.RayError as error:
            del self.running[stream]
            reason = f"on the cluster: {type(error).__name__}"
            self.drive.lose(chunk.jobs, reason, token=chunk.token)
        else:
            if kind == "fatal":
                raise ERRORS[content[0]](content[1])
            self.drive.hear(content)

    def _cancel(self) -> None:
        """Stop what is still running, and void its claims."""
        if not self.running:
            return
        with suppress(Exception):  # a cluster that was stopped with us has stopped its tasks
            for stream in self.running:
                self.ray.cancel(stream, force=True)
            self.ray.wait(list(self.running), num_returns=len(self.running), timeout=STOP_SECONDS, fetch_local=False)
        for chunk in self.running.values():
            self.drive.claims.forget(chunk.token)


def make_chunk(
    key: str,
    study: StudySpec,
    work: tuple[list[Job], dict[str, int]],
    token: str,
    options: dict[str, Any],
    folder: str = ".",
) -> Iterator[tuple[str, Any]]:
    """Make a chunk of runs in a process of the cluster; yields what happens while it happens.

    Parameters
    ----------
    key : str
        Of the execution. What was loaded for a study is kept for its next chunk in this process.
    study : Study
        Whose runs.
    work : (list of Job, dict)
        Which runs, and how often each had been tried.
    token : str
        Owner of the claims.
    options : dict
        Device and networks at once.
    folder : str
        Where to work, if it is on this machine: code of the user's may rely on it.
    """
    sys.path[:] = installed_only(sys.path, study.folder, Path(folder))
    with suppress(OSError):
        os.chdir(folder)
    said: queue.SimpleQueue[tuple[str, Any] | None] = queue.SimpleQueue()

    def make() -> None:
        try:
            with Claims(study.runs_folder, token) as claims:
                if key not in _makers:
                    _makers.clear()
                    _makers[key] = Maker(study, claims=claims, tell=lambda _: None, **options)
                maker = _makers[key]
                maker.claims, maker.tell = claims, lambda event: said.put(("event", event))
                maker.make(*work)
        except SpoiltDeviceError:
            os._exit(1)  # a new process may fare better; the claims are voided by who waits for us
        except BaseException as error:
            said.put(("fatal", describe_fatal(error)))
        said.put(None)

    # In a thread, so that its events can be passed on while it works.
    threading.Thread(target=make, daemon=True, name="making").start()
    while (message := said.get()) is not None:
        yield message


_makers: dict[str, Maker] = {}
