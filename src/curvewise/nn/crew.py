"""Lanes that are there for the next trainings, and which of them are the quickest."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from curvewise.nn._aligned import is_spelled_out, whole_groups
from curvewise.nn.architectures import make_network
from curvewise.nn.lane import Lane, Setup
from curvewise.nn.resident import Resident
from curvewise.nn.single import make_single
from curvewise.nn.stack import make_stack, stackable
from curvewise.nn.task import Assignment

GPU_STACK = 32  # networks in a stack on a GPU, full or not: rounding may depend on it
CPU_STACKS = (32, 8)  # tried on a CPU, where rounding does not depend on it; whole groups
MOST_LANES = 8
WORTH_IT = 1.05  # what twice the lanes must gain
LARGE = 3e7  # products in a step, from which on a CPU is as quick with one network at a time


def find_lanes(
    setup: Setup, runs: int, in_flight: int | None, *, stacked: bool | None = None
) -> list[Lane]:
    """Lanes for so many runs: those that are there already first."""
    if stacked is None:
        known = stackable(make_probe(setup), setup.training.augmentation)
        stacked = known and not setup.training.controlled
    _keep_for(setup)
    most = runs if in_flight is None else max(1, min(in_flight, runs))
    if stacked:
        return _stacks(setup, most)
    if not setup.cuda:
        return _existing("single", lambda: make_single(setup), 1)
    if in_flight is not None:
        return _existing("single", lambda: make_single(setup), min(most, MOST_LANES))
    return _grown("single", lambda: make_single(setup), min(most, MOST_LANES))


def make_probe(setup: Setup) -> torch.nn.Module:
    """A network to look at; torch's generator stays as it is."""
    with torch.random.fork_rng(devices=[]):
        return make_network(setup.training, setup.shape, setup.outputs, setup.folder)


@dataclass(eq=False)
class Kept:
    """The lanes of the last call; making them anew, above all compiling, takes long."""

    key: tuple[Any, ...] = ()
    data: Resident | None = None
    makers: dict[str, Callable[[], Lane]] | None = None
    lanes: dict[str, list[Lane]] | None = None
    settled: dict[str, int] = field(default_factory=dict)


KEPT = Kept()


def _stacks(setup: Setup, most: int) -> list[Lane]:
    if setup.cuda:
        count = -(-most // GPU_STACK)
        return _grown("stack", lambda: make_stack(setup, GPU_STACK), min(count, MOST_LANES))
    if not _is_stacked(setup):
        return _existing("single", lambda: make_single(setup), 1)
    tried = {}
    for width in sorted({min(width, whole_groups(most)) for width in CPU_STACKS}):
        lanes = _cpu_stack(setup, width)
        tried[seconds_per_step(lanes, quick=True) / width] = lanes
    return tried[min(tried)]


def _cpu_stack(setup: Setup, width: int) -> list[Lane]:
    return _existing(f"stack {width}", lambda: make_stack(setup, width), 1)


def _is_stacked(setup: Setup) -> bool:
    """Whether networks are trained in a stack on a CPU, also where there is only one.

    Alone a network may round otherwise than in a stack, so that this must not depend on how many
    there are, nor on how quick they are today.
    """
    if "stacked" not in KEPT.settled:
        small = _products(setup) <= LARGE and is_spelled_out(make_probe(setup))
        KEPT.settled["stacked"] = small and _is_even(setup)
    return bool(KEPT.settled["stacked"])


def _is_even(setup: Setup) -> bool:
    """Try whether the same training gives the same bits at every place of a stack."""
    width = CPU_STACKS[-1]
    rows = np.arange(min(len(setup.data.y), 1000))
    first, *others = _few_steps(_cpu_stack(setup, width)[0], [Assignment(rows, 1, 1, 1)] * width)
    return all(
        np.array_equal(first[name], other[name], equal_nan=True)
        for other in others
        for name in first
    )


def _products(setup: Setup) -> int:
    return setup.batch * sum(p.numel() for p in make_probe(setup).parameters())


def _few_steps(lane: Lane, assignments: Sequence[Assignment]) -> list[dict[str, NDArray[Any]]]:
    lane.begin(assignments)
    lane.lay(0, np.full(4, 0.01, dtype=np.float32))
    lane.advance(4)
    return [lane.weights(member) for member in range(lane.width)]


@contextmanager
def taken(lanes: Sequence[Lane]) -> Iterator[None]:
    """Keep lanes from other calls, in this thread or another, that train at the same time."""
    for lane in lanes:
        lane.is_taken = True
    try:
        yield
    finally:
        for lane in lanes:
            lane.is_taken = False


def forget() -> None:
    """Let go of all lanes and what they hold on the device."""
    KEPT.key, KEPT.data, KEPT.makers, KEPT.lanes, KEPT.settled = (), None, {}, {}, {}


def _keep_for(setup: Setup) -> None:
    """Forget lanes that were made for something else."""
    free = {"rate", "epochs", "steps", "schedule", "warmup", "drops", "validation", "patience"}
    settings = {k: repr(v) for k, v in setup.training.as_dict().items() if k not in free}
    key = (tuple(settings.items()), setup.batch, setup.device, setup.folder, setup.compiled)
    if KEPT.key != key or KEPT.data is not setup.data:
        KEPT.key, KEPT.data, KEPT.makers, KEPT.lanes = key, setup.data, {}, {}
        KEPT.settled = {}


def _existing(name: str, maker: Callable[[], Callable[[], Lane]], count: int) -> list[Lane]:
    assert KEPT.makers is not None
    assert KEPT.lanes is not None
    if name not in KEPT.makers:
        KEPT.makers[name] = maker()
    make = KEPT.makers[name]
    lanes = KEPT.lanes.setdefault(name, [])
    free = [lane for lane in lanes if not lane.is_taken]
    while len(free) < count:
        lane = make()
        if lane.setup.cuda:
            lane.capture()
        lanes.append(lane)
        free.append(lane)
    return free[:count]


def _grown(name: str, maker: Callable[[], Callable[[], Lane]], most: int) -> list[Lane]:
    """Double the lanes as long as that makes them quicker altogether; measured once."""
    if name in KEPT.settled:
        return _existing(name, maker, min(most, KEPT.settled[name]))
    lanes = _existing(name, maker, 1)
    seconds = seconds_per_step(lanes)
    while len(lanes) < most:
        more = _existing(name, maker, min(2 * len(lanes), most))
        now = seconds_per_step(more)
        if seconds / len(lanes) < WORTH_IT * now / len(more):
            if len(more) == 2 * len(lanes):  # of less than that, little was to be expected
                KEPT.settled[name] = len(lanes)
            break
        lanes, seconds = more, now
    if len(lanes) == MOST_LANES:
        KEPT.settled[name] = MOST_LANES
    return lanes


def seconds_per_step(lanes: Sequence[Lane], *, quick: bool = False) -> float:
    """Time in which every lane takes one step; spoils what they hold."""
    best = float("inf")
    steps = 4 if quick else 16
    for repeat in range(4):
        start = time.perf_counter()
        for lane in lanes:
            with lane.at_work():
                lane.cursor.zero_()
                lane.advance(min(steps, lane.capacity))
        for lane in lanes:
            if lane.stream is not None:
                lane.stream.synchronize()
        if repeat:  # the first warms up
            best = min(best, (time.perf_counter() - start) / min(steps, lanes[0].capacity))
    return best
