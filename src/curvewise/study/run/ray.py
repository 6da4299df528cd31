"""Execute a study on a Ray cluster; every node sees the store's folder."""

from __future__ import annotations

import math
import os
import queue
import re
import signal
import sys
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import chdir, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from curvewise.errors import CurvewiseError, InputError, arg, importing, suggest
from curvewise.nn.own_code import installed_only
from curvewise.progress import say
from curvewise.store.claims import Claims
from curvewise.study.run.drive import Drive, Outcome, RunSettings, end_if_asked, terminable
from curvewise.study.run.maker import Maker, SpoiltDeviceError
from curvewise.study.run.processes import (
    ERRORS,
    MOST_FALSE_STARTS,
    ONE_THREAD,
    POLL_SECONDS,
    STOP_SECONDS,
    check_device,
    describe_fatal,
)
from curvewise.study.spec.study import Job, StudySpec
from curvewise.study.status import usable_cores

LOCAL = "local"
PENDING = 2
"""Slots asked for beyond those for which there is room: an autoscaler adds nodes for what waits."""
IDLE_SECONDS = 5.0
"""After which a slot without work gives back its GPU and its memory."""
UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}


def run_ray(
    study: StudySpec,
    address: str | None = None,
    *,
    cpus: float = 1,
    gpus: float = 0,
    memory: float | str | None = None,
    resources: Mapping[str, float] | None = None,
    runtime_env: Mapping[str, Any] | None = None,
    workers: int | None = None,
    logs: bool = False,
    **options: Any,
) -> Outcome:
    """Make the runs that a study lacks on a Ray cluster.

    Each worker is an actor, which has the data and compiled steps for as long as it has work and is
    released when it has none. Nodes may come and go: workers are asked for whenever there is room,
    and two beyond it, so that an autoscaler sees that more nodes would be used. The data is read
    here and put into the object store, of which each node has one copy; only images that are
    memory-mapped are read from their file by each node.

    The store must be a folder that all nodes see under the same path, and curvewise installed on
    all of them. Ids and results are those of a run on one machine.

    A worker that is lost, with its node or without, is replaced by us, not by Ray (``max_restarts=0``):
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
        ``"auto"`` for the cluster that this machine belongs to, or ``"host:6379"``. By default a
        cluster is started on this machine and stopped at the end; one that this process is
        connected to already, or that RAY_ADDRESS names, is used. ``"ray://…"`` is refused: submit
        the command to the cluster with ``ray job submit``.
    cpus, gpus : float
        What each worker asks for; half a GPU puts two workers on one. Networks are trained on the GPU
        if there is some. Where no node has as much, the study waits for one.
    memory : float or str, optional
        What each worker asks for, in bytes or as ``"8GiB"``.
    resources : dict of str to float, optional
        Custom resources that each worker asks for, such as ``{"accelerator_type:A100": 0.01}``.
    runtime_env : dict, optional
        Environment of the workers as Ray takes it: ``pip``, ``working_dir``, ``env_vars``, …
    workers : int, optional
        Workers at a time; by default as many as the cluster has room for.
    logs : bool
        Whether to show on stderr what workers print. A process that is connected already has its own
        setting.
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
        raise InputError(f"cpus={cpus!r}, gpus={gpus!r}: a worker needs some of either.")
    if workers is not None and workers < 1:
        raise InputError("give a whole number from 1 on.", argument="workers", value=workers)
    asked = _asked(cpus, gpus, memory, resources)
    environment = _environment(runtime_env)
    settings = RunSettings(**options)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    with importing("Running on a cluster needs Ray", "ray"):
        import ray
    known = {name.lstrip("_") for name in ray.runtime_env.RuntimeEnv.known_fields}
    if unknown := environment.keys() - known:  # which Ray would ignore
        problem = f"has an entry {min(unknown)!r}, which Ray does not know.{suggest(min(unknown), known)}"
        raise InputError(problem, argument="runtime_env")
    # Other machines, and Ray's processes on this one, work in other folders.
    study = replace(study, folder=study.folder.resolve())
    cores = math.ceil((workers or usable_cores()) * max(cpus, 1))
    with _cluster(ray, address, cores, environment, logs) as (own, environment):
        room = _room(ray, asked)
        if not room and own:
            raise InputError(
                f"A worker asks for {_text(asked)}, and this machine has less: ask for less, or name a cluster."
            )
        with Drive(study, settings, workers or max(1, room), on_gpu=gpus > 0) as drive:
            if drive.due:
                # A cluster of our own does not grow.
                limit = workers if workers is not None else room if own else None
                # Where the user has sent a folder along, workers stay in it.
                folder = None if "working_dir" in (runtime_env or {}) else os.getcwd()
                Slots(ray, drive, asked, limit, environment, folder).run()
            return drive.outcome()


def _asked(
    cpus: float, gpus: float, memory: float | str | None, resources: Mapping[str, float] | None
) -> dict[str, float]:
    """Return what a slot asks for, by the names that nodes have for it."""
    asked = {"CPU": cpus, "GPU": gpus, "memory": 0.0 if memory is None else parse_bytes(memory)}
    for name, amount in (resources or {}).items():
        if name in asked:
            raise InputError(f"resources holds {name!r}: say cpus=, gpus= or memory= instead.")
        number = isinstance(amount, int | float) and not isinstance(amount, bool) and amount > 0
        if not number:
            raise InputError("give a positive number for each name.", argument="resources", value=dict(resources or {}))
        asked[name] = float(amount)
    return {name: amount for name, amount in asked.items() if amount}


def parse_bytes(size: float | str) -> float:
    """Read a number of bytes.

    Examples
    --------
    >>> parse_bytes("8GiB"), parse_bytes("500 MB"), parse_bytes(1000)
    (8589934592.0, 500000000.0, 1000.0)
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?(?:e\d+)?)\s*([kmgt]?i?)b?\s*", str(size).lower())
    amount = float(found[1]) * UNITS.get(found[2], 0) if found else 0.0
    if not amount or isinstance(size, bool):
        raise InputError("give bytes, or a text such as '8GiB'.", argument="memory", value=size)
    return amount


def _environment(given: Mapping[str, Any] | None) -> dict[str, Any]:
    """Check the environment that a user wants for slots, and make its paths absolute."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InputError("give a dict as Ray takes it.", argument="runtime_env", value=given)
    found = dict(given)
    variables = found.get("env_vars", {})
    for name in ONE_THREAD.keys() & variables.keys():
        if variables[name] != ONE_THREAD[name]:
            problem = f"sets {name}, on which the bits of results depend: workers have one thread each."
            raise InputError(problem, argument="runtime_env", remedy="Leave it out.")

    def absolute(value: Any) -> Any:
        is_file = isinstance(value, str) and "://" not in value and Path(value).exists()
        return str(Path(value).resolve()) if is_file else value

    # We connect from another folder.
    for key in ("working_dir", "pip", "uv", "conda"):
        if key in found:
            found[key] = absolute(found[key])
    if isinstance(found.get("py_modules"), list):
        found["py_modules"] = [absolute(each) for each in found["py_modules"]]
    return found


@contextmanager
def _cluster(
    ray: Any, address: str | None, cores: int, environment: dict[str, Any], logs: bool
) -> Iterator[tuple[bool, dict[str, Any]]]:
    """Connect, or start a cluster of our own, and leave things as they were.

    Yields whether the cluster is our own, and the environment that remains to be given to each slot.
    """
    if ray.is_initialized():
        if ray.util.client.ray.is_connected():
            raise _no_client("ray://")
        with terminable():
            yield False, environment
        return
    address = address or os.environ.get("RAY_ADDRESS") or LOCAL
    if address.startswith("ray://"):
        raise _no_client(address)
    how: dict[str, Any] = {"log_to_driver": logs, "logging_level": "error"}
    # Folders of this machine are only sent to the nodes when they are given here.
    how |= {"runtime_env": environment} if environment else {}
    main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGTERM)
    try:
        # Ray puts the current folder first on its workers' path, where a file json.py would be
        # imported instead of Python's: connect from a folder without modules.
        with chdir(Path(sys.executable).parent), _worded(address, environment):
            if address == LOCAL:
                with _loopback():
                    ray.init(address=LOCAL, num_cpus=cores, include_dashboard=False, **how)
            else:
                ray.init(address=address, **how)
        with terminable():  # where Ray would end the process before its claims are given back
            yield address == LOCAL, {}
    finally:
        ray.shutdown()
        if main:
            signal.signal(signal.SIGTERM, before)


@contextmanager
def _worded(address: str, environment: dict[str, Any]) -> Iterator[None]:
    """Name the argument that Ray refuses to connect with."""
    try:
        yield
    except ConnectionError as error:
        problem = f"no Ray cluster answers: {str(error).partition('.')[0]}."
        remedy = "Start one there with `ray start --head`, or correct the address."
        raise InputError(problem, argument="on", value=address, remedy=remedy) from error
    except ValueError as error:
        if not environment:
            raise
        raise InputError(f"Ray does not take it: {error}", argument="runtime_env", value=environment) from error


def _no_client(address: str) -> InputError:
    host = address.removeprefix("ray://").rpartition(":")[0] or "HOST"
    way = f"ray job submit --address http://{host}:8265 -- curvewise study run STUDY.toml --on auto"
    problem = "is a Ray Client, which cannot pass on results while they are made."
    return InputError(problem, argument="on", value=address, remedy=f"Start the study on the cluster: {way}")


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


def _room(ray: Any, asked: Mapping[str, float]) -> int:
    """Count the slots that the nodes of the cluster have room for, whoever uses them now."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    return sum(min(int(has.get(kind, 0) / many + 1e-9) for kind, many in asked.items()) for has in nodes)


def _text(asked: Mapping[str, float]) -> str:
    """Name what a slot asks for."""
    names = {"memory": "bytes of memory"}
    return ", ".join(f"{many:,.10g} {names.get(kind, kind)}" for kind, many in asked.items())


def loaded_data(study: StudySpec) -> dict[str, Any]:
    """Return what a study has loaded, for those who are sent it; nothing where that is a mapped file.

    Such a file may be larger than memory, and each node keeps one copy of its pages anyway.
    """
    data, sets = study.dataset, study.evaluation_sets
    arrays = [data.x, data.y, data.test_x, *(part.x for part in sets.values())]
    if any(isinstance(array, np.memmap) for array in arrays):
        return {}
    return {"dataset": data, "evaluation_sets": sets}


@dataclass(eq=False)
class _Slot:
    """An actor of the cluster, from outside."""

    actor: Any
    token: str
    """Owner of the claims that it makes."""
    answer: Any
    """Its next answer: that it is ready, or the stream of what happens to its runs; None when it is idle."""
    is_ready: bool = False
    jobs: list[Job] = field(default_factory=list)
    last: Job | None = None
    since: float = field(default_factory=time.monotonic)
    """When it began what it does now."""


class Slots:
    """Actors on the cluster, and the loop that deals out work to them.

    Parameters
    ----------
    ray : module
        Connected to the cluster.
    drive : Drive
        The execution.
    asked : dict of str to float
        Resources of a slot.
    limit : int, optional
        How many; by default as many as there is room for, and a few that wait for room.
    environment : dict
        Runtime environment of each.
    folder : str, optional
        Where they work.
    """

    def __init__(
        self,
        ray: Any,
        drive: Drive,
        asked: dict[str, float],
        limit: int | None,
        environment: dict[str, Any],
        folder: str | None,
    ) -> None:
        self.ray, self.drive, self.board, self.asked, self.limit = ray, drive, drive.board, asked, limit
        self.slots: list[_Slot] = []
        self.false_starts, self.looked, self.waits = 0, -math.inf, False
        study = drive.study
        # In one object, so that arrays that are in both are there once.
        self.study = ray.put((study, loaded_data(study)))
        self.given = ({"device": "cuda" if "GPU" in asked else "cpu", **drive.settings.making}, folder)
        variables = {**environment.get("env_vars", {}), **ONE_THREAD}
        self.actor = ray.remote(RunMaker).options(
            num_cpus=asked.get("CPU", 0),
            num_gpus=asked.get("GPU", 0),
            memory=asked.get("memory"),
            resources={k: v for k, v in asked.items() if k not in ("CPU", "GPU", "memory")},
            max_restarts=0,
            max_task_retries=0,
            runtime_env={**environment, "env_vars": variables},
        )

    def run(self) -> None:
        """Deal out runs until all are made."""
        try:
            while not self.board.is_finished:
                end_if_asked()
                self._resize()
                self._deal()
                self._listen()
        finally:
            self._stop()

    def _resize(self) -> None:
        """Ask for slots where nodes have come, and give back those that nobody needs."""
        if time.monotonic() - self.looked < POLL_SECONDS:
            return
        self.looked = time.monotonic()
        room = _room(self.ray, self.asked)
        if not room and not self.waits:
            text = f"No node of the cluster has room for a worker ({_text(self.asked)}): waiting for one."
            say(text, self.drive.settings.progress)
            self.drive.stage = "waiting for a node"
        self.waits = not room
        self.board.workers = max(1, room if self.limit is None else self.limit)
        most = room + PENDING if self.limit is None else self.limit
        busy = sum(bool(slot.jobs) for slot in self.slots)
        wanted = min(most, busy + self.board.ready)
        while len(self.slots) < wanted:
            token = uuid.uuid4().hex
            actor = self.actor.remote(self.study, token, *self.given)
            self.slots.append(_Slot(actor, token, actor.start.remote()))
        for slot in [*self.slots]:
            idle = slot.is_ready and not slot.jobs and time.monotonic() - slot.since > IDLE_SECONDS
            if idle or (not slot.is_ready and len(self.slots) > max(wanted, busy)):
                self._release(slot)

    def _deal(self) -> None:
        for slot in self.slots:
            if slot.is_ready and not slot.jobs and (jobs := self.board.next_chunk(slot.last)):
                slot.jobs, slot.last, slot.since = jobs, jobs[0], time.monotonic()
                way = slot.actor.make.options(num_returns="streaming")
                slot.answer = way.remote(jobs, self.drive.tried(jobs))

    def _listen(self) -> None:
        awaited = {slot.answer: slot for slot in self.slots if slot.answer is not None}
        if not awaited:
            self.drive.wait_for_others()
            return
        ready, _ = self.ray.wait([*awaited], timeout=POLL_SECONDS, fetch_local=False)
        if not ready:
            self.drive.look_at_others()
        else:  # the first of them, and whatever else has come
            ready, _ = self.ray.wait([*awaited], num_returns=len(awaited), timeout=0, fetch_local=False)
        for answer in ready:
            self._hear(awaited[answer])

    def _hear(self, slot: _Slot) -> None:
        errors = self.ray.exceptions
        try:
            kind, content = self.ray.get(next(slot.answer) if slot.is_ready else slot.answer)
        except StopIteration:
            self.board.finish_chunk(slot.jobs, time.monotonic() - slot.since)
            slot.jobs, slot.answer, slot.since = [], None, time.monotonic()
        except errors.RuntimeEnvSetupError as error:
            raise CurvewiseError(f"The runtime_env of the workers cannot be set up. {error}") from error
        except errors.RayTaskError:  # not of a run: of the data, or of our own
            raise
        except errors.RayError as error:
            self._lose(slot, f"on the cluster: {type(error).__name__}", str(error))
        else:
            if kind == "event":
                self.drive.hear(content)
            elif kind == "ready":
                self.drive.stage = self.drive.first_stage()
                slot.is_ready, slot.answer, slot.since, self.false_starts = True, None, time.monotonic(), 0
            elif kind == "spoilt":  # a new process may fare better
                self._lose(slot, f"with {content}", content)
            else:
                raise ERRORS[content[0]](content[1])

    def _lose(self, slot: _Slot, reason: str, why: str) -> None:
        """Put the runs of a slot back that is gone; :meth:`_resize` asks for another."""
        if not slot.is_ready:
            self.false_starts += 1
            if self.false_starts >= MOST_FALSE_STARTS:
                raise CurvewiseError(
                    f"Workers end before they can train anything; show what they print with {arg('logs', True)}. The "
                    f"last one said: {why}"
                )
        jobs, slot.jobs = slot.jobs, []
        self._release(slot)
        self.drive.lose(jobs, reason, token=slot.token)
        self.looked = -math.inf

    def _release(self, slot: _Slot) -> None:
        """Give back a slot that makes nothing, with its GPU and its memory."""
        self.slots.remove(slot)
        with suppress(Exception):  # it is gone already
            self.ray.kill(slot.actor)
        self.drive.tidy([], slot.token)

    def _stop(self) -> None:
        """Stop what is still running, and void its claims."""
        streams = [slot.answer for slot in self.slots if slot.jobs]
        with suppress(Exception):  # a cluster that was stopped with us has stopped its actors
            for slot in self.slots:
                self.ray.kill(slot.actor)
            if streams:
                self.ray.wait(streams, num_returns=len(streams), timeout=STOP_SECONDS, fetch_local=False)
        for slot in self.slots:
            self.drive.tidy(slot.jobs, slot.token)


class RunMaker:
    """Makes runs in a process of the cluster, and keeps for the next ones what it has loaded and compiled.

    Parameters
    ----------
    study : (StudySpec, dict)
        Whose runs, and what was loaded for it.
    token : str
        Owner of the claims.
    options : dict
        Device and networks at once.
    folder : str, optional
        Where to work, if it is on this machine: code of the user's may rely on it. None for the folder that came
        with the runtime environment, whose modules may be imported.
    """

    def __init__(
        self, study: tuple[StudySpec, dict[str, Any]], token: str, options: dict[str, Any], folder: str | None
    ) -> None:
        self.study, loaded = study
        self.study.__dict__.update(loaded)
        self.token, self.options, self.folder = token, options, folder
        self.maker: Maker | None = None

    def start(self) -> tuple[str, Any]:
        """Prepare to make runs; gives ``("ready", None)``, or what is in the way."""
        # What a training prints goes to stderr, here and where logs are shown.
        sys.stdout.flush()
        os.dup2(2, 1)
        if self.folder is not None:
            sys.path[:] = installed_only(sys.path, self.study.folder, Path(self.folder))
            with suppress(OSError):
                os.chdir(self.folder)
        try:
            check_device(self.study, self.options["device"])
            claims = Claims(self.study.runs_folder, self.token)
            self.maker = Maker(self.study, claims=claims, tell=lambda _: None, **self.options)
        except SpoiltDeviceError as error:
            return "spoilt", str(error)
        except Exception as error:
            return "fatal", describe_fatal(error)
        return "ready", None

    def make(self, jobs: list[Job], tried: dict[str, int]) -> Iterator[tuple[str, Any]]:
        """Make runs; yields what happens while it happens.

        Parameters
        ----------
        jobs : list of Job
            Which runs.
        tried : dict of str to int
            How often each had been tried.
        """
        maker = self.maker
        assert maker is not None
        messages: queue.SimpleQueue[tuple[str, Any] | None] = queue.SimpleQueue()
        maker.tell = lambda event: messages.put(("event", event))

        def work() -> None:
            try:
                maker.make(jobs, tried)
            except SpoiltDeviceError as error:
                messages.put(("spoilt", str(error)))
            except BaseException as error:
                messages.put(("fatal", describe_fatal(error)))
            messages.put(None)

        # In a thread, so that its events can be passed on while it works.
        threading.Thread(target=work, daemon=True, name="making").start()
        while (message := messages.get()) is not None:
            yield message
