"""What a user may say about how a study is executed."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypedDict

from curvewise.errors import CurvewiseError, InputError

if TYPE_CHECKING:
    from curvewise.study.spec.study import StudySpec


class RunOptions(TypedDict, total=False):
    """Rarer options of :func:`~curvewise.study.run.local.run_local`, which describes them."""

    in_flight: int | None
    compile: bool
    fresh: bool
    shard: str | None
    retry_failed: bool | None
    progress: bool | None
    tell: Callable[[Event], None] | None


@dataclass(frozen=True)
class Event:
    """What happened to one run.

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
        """Whether nothing more will be heard of the run from who told this."""
        return self.kind != MEMORY


@dataclass(frozen=True)
class Wishes:
    """How a study is to be executed, whatever executes it.

    Attributes
    ----------
    in_flight : int, optional
        How many networks a worker trains at once; by default as the engine likes.
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
        """What a :class:`~curvewise.study.run.maker.Maker` is told of them."""
        return {"in_flight": self.in_flight, "compile": self.compile}

    def __post_init__(self) -> None:
        if self.in_flight is not None and (type(self.in_flight) is not int or self.in_flight < 1):
            raise InputError(f"in_flight={self.in_flight!r}: give a whole number from 1 on.")
        if self.fresh and self.shard is not None:
            raise InputError(
                "fresh=True with a shard would throw away what other shards have made: run once "
                "with fresh=True and without a shard, or name another store."
            )


def choose_devices(study: StudySpec, device: str | None, workers: int | None) -> list[str]:
    """Give each worker its device."""
    if workers is not None and (type(workers) is not int or workers < 0):
        raise InputError(f"workers={workers!r}: give a whole number, 0 for this process.")
    if device is not None and device != "cpu" and not device.startswith("cuda"):
        raise InputError(f"device={device!r}: use 'cpu', 'cuda' or 'cuda:1'.")
    networks = any(learner.kind == "network" for learner in study.learners.values())
    gpus = _gpus() if networks and device in (None, "cuda") else []
    if device == "cuda" and networks and not gpus:
        raise InputError("device='cuda', but torch sees no GPU here: use device='cpu'.")
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


def _gpus() -> list[str]:
    from curvewise.nn.devices import list_gpus

    return list_gpus()


# What happened to a run, told by whoever makes it to whoever watches.

DONE, FAILED, THERE, HELD, MEMORY = "done", "failed", "there", "held", "memory"


# How the execution of a study ended.


@dataclass(frozen=True)
class Outcome:
    """How the execution of a study ended.

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
        """Say in a sentence or two how it ended."""
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


# What goes wrong in a training and is not the fault of the run.


class SpoiltDeviceError(CurvewiseError):
    """After an error on the GPU, nothing more can be computed there by this process."""
