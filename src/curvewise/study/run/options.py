"""Options of an execution of a study, the events it tells, and its outcome."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypedDict

from curvewise.errors import CurvewiseError, InputError
from curvewise.study.spec.study import StudySpec
from curvewise.text import arg

DONE, FAILED, THERE, HELD, MEMORY = "done", "failed", "there", "held", "memory"


class RunOptions(TypedDict, total=False):
    """Less common options of :func:`~curvewise.study.run.local.run_local`, which describes them."""

    in_flight: int | None
    compile: bool
    fresh: bool
    shard: str | None
    retry_failed: bool | None
    progress: bool | None
    tell: Callable[[Event], None] | None


@dataclass(frozen=True)
class RunSettings:
    """Options of an execution, checked; the same whatever executes the study.

    Attributes
    ----------
    in_flight : int, optional
        How many networks a worker trains at once; by default as the engine chooses.
    compile : bool
        Whether kernels are compiled on a GPU.
    fresh : bool
        Whether to move the study's runs out of the way and make them anew.
    shard : str, optional
        Such as ``"3/16"``: only this share of the runs.
    retry_failed : bool, optional
        Whether runs that failed before are made again: always, never, or (by default) until they
        have failed three times in all.
    progress : bool, optional
        Whether to show a bar on stderr; by default on a terminal. False says nothing at all.
    tell : callable, optional
        Called with an :class:`~curvewise.study.run.options.Event` for every run.
    """

    in_flight: int | None = None
    compile: bool = True
    fresh: bool = False
    shard: str | None = None
    retry_failed: bool | None = None
    progress: bool | None = None
    tell: Callable[[Event], None] | None = None

    @property
    def making(self) -> dict[str, Any]:
        """The options of a :class:`~curvewise.study.run.maker.Maker`."""
        return {"in_flight": self.in_flight, "compile": self.compile}

    def __post_init__(self) -> None:
        if self.in_flight is not None and (type(self.in_flight) is not int or self.in_flight < 1):
            raise InputError("give a whole number from 1 on.", argument="in_flight", value=self.in_flight)
        if self.fresh and self.shard is not None:
            raise InputError(
                f"{arg('fresh', True)} with a shard would throw away what other shards have made: run once "
                f"with {arg('fresh', True)} and without a shard, or name another store."
            )


def choose_devices(study: StudySpec, device: str | None, workers: int | None) -> list[str]:
    """Give each worker its device."""
    if workers is not None and (type(workers) is not int or workers < 0):
        raise InputError("give a whole number, 0 for this process.", argument="workers", value=workers)
    if device is not None and device != "cpu" and not device.startswith("cuda"):
        raise InputError("use 'cpu', 'cuda' or 'cuda:1'.", argument="device", value=device)
    networks = any(learner.kind == "network" for learner in study.learners.values())
    gpus: list[str] = []
    if networks and device in (None, "cuda"):
        from curvewise.nn.devices import list_gpus  # asks torch, which takes seconds to import

        gpus = list_gpus()
    if device == "cuda" and networks and not gpus:
        raise InputError(f"{arg('device', device)}, but torch sees no GPU here: use {arg('device', 'cpu')}.")
    if gpus:
        return [gpus[i % len(gpus)] for i in range(workers or len(gpus))]
    single = device or "cpu"
    most = 1 if single.startswith("cuda") else usable_cores()
    return [single] * max(1, most if workers is None else workers)


def usable_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@dataclass(frozen=True)
class Event:
    """An event in the making of one run.

    Attributes
    ----------
    kind : {"done", "failed", "there", "held", "memory"}
        Made; made and failed; found made already; another process is making it; there was too
        little memory, and it is tried again with fewer networks at once.
    id : str
        Which run.
    text : str
        Why it failed, or what a reader should know.
    seconds : float
        How long it took.
    where : str
        Machine and process.
    """

    kind: str
    id: str
    text: str = ""
    seconds: float = 0.0
    where: str = field(default_factory=lambda: f"{socket.gethostname()}:{os.getpid()}")

    @property
    def is_final(self) -> bool:
        """True if no more events of the run will come from the same process."""
        return self.kind != MEMORY


@dataclass(frozen=True)
class Outcome:
    """The outcome of an execution of a study.

    Attributes
    ----------
    planned : int
        Runs of the study, or of its shard.
    there : int
        Runs that were there before.
    made : int
        Runs made now, failed ones included.
    by_others : int
        Runs that other processes made meanwhile.
    failed : dict of str to str
        Runs that failed, now or before, and why.
    interrupted : tuple of str
        Runs that a process that is gone was making; they are made again where the study needs them.
    redone : tuple of str
        Runs that were there and were made again: failed, damaged or outdated ones.
    seconds : float
        How long it took.
    notes : tuple of str
        What a reader should know.
    lost : tuple of str
        Runs whose worker died; they were tried again.
    """

    planned: int
    there: int
    made: int
    by_others: int
    failed: dict[str, str]
    interrupted: tuple[str, ...]
    redone: tuple[str, ...]
    seconds: float
    notes: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()

    def summary(self) -> str:
        """Summarise how it ended in a sentence or two."""
        parts = [f"{self.made} of {self.planned} runs made"]
        again = len({*self.redone, *self.interrupted})
        parts += [f"{again} of them interrupted, failed or damaged before"] if again else []
        parts += [f"{len(self.lost)} redone after a worker died"] if self.lost else []
        parts += [f"{self.there} were there"] if self.there else []
        parts += [f"{self.by_others} made by other processes"] if self.by_others else []
        parts += [f"{len(self.failed)} failed"] if self.failed else []
        text = ", ".join(parts) + f", in {self.seconds:.0f} s."
        if self.failed:
            lines = next(iter(self.failed.values())).strip().splitlines() or ["no reason given"]
            text += f" The first failure: {lines[-1][:300]}"
        return text


class SpoiltDeviceError(CurvewiseError):
    """After an error on the GPU, nothing more can be computed there by this process."""
