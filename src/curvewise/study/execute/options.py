"""What a user may say about how a study is executed."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

from curvewise.errors import InputError
from curvewise.study.execute.events import Event

if TYPE_CHECKING:
    from curvewise.study.study import Study


class RunOptions(TypedDict, total=False):
    """Rarer options of :func:`~curvewise.study.execute.local.run_local`, which describes them."""

    in_flight: int | None
    compile: bool
    fresh: bool
    shard: str | None
    retry_failed: bool | None
    progress: bool | None
    tell: Callable[[Event], None] | None


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
        Called with an :class:`~curvewise.study.execute.events.Event` for every run.
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
        """What a :class:`~curvewise.study.making.Maker` is told of them."""
        return {"in_flight": self.in_flight, "compile": self.compile}

    def __post_init__(self) -> None:
        if self.in_flight is not None and (type(self.in_flight) is not int or self.in_flight < 1):
            raise InputError(f"in_flight={self.in_flight!r}: give a whole number from 1 on.")
        if self.fresh and self.shard is not None:
            raise InputError(
                "fresh=True with a shard would throw away what other shards have made: run once "
                "with fresh=True and without a shard, or name another store."
            )


def choose_devices(study: Study, device: str | None, workers: int | None) -> list[str]:
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
