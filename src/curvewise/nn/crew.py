"""Lanes that are there for the next trainings, and which of them are the quickest."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from curvewise.nn.architectures import make_network
from curvewise.nn.lane import Lane, Setup
from curvewise.nn.resident import Resident
from curvewise.nn.single import make_single
from curvewise.nn.stack import make_stack, stackable
from curvewise.nn.task import Assignment

GPU_STACK = 32  # networks in a stack on a GPU, full or not: rounding may depend on it
CPU_STACKS = (32, 8)  # tried on a CPU, where rounding does not depend on it
MOST_LANES = 8
WORTH_IT = 1.05  # what twice the lanes must gain
SHORT = 8  # sides of matrices
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
    widths = {1, *(min(width, most) for width in CPU_STACKS)}
    if not _alike(setup):
        large = _products(setup) > LARGE
        widths = {1} if large else {max(2, width) for width in widths}
    tried = {}
    for width in sorted(widths):
        lanes = _cpu_stack(setup, width)
        tried[seconds_per_step(lanes, quick=True) / width] = lanes
    return tried[min(tried)]


def _cpu_stack(setup: Setup, width: int) -> list[Lane]:
    if width == 1:
        return _existing("single", lambda: make_single(setup), 1)
    return _existing(f"stack {width}", lambda: make_stack(setup, width), 1)


def _alike(setup: Setup) -> bool:
    """Whether a network takes the same steps, bit for bit, alone and in a stack on this CPU.

    All stacks round alike, but products of matrices with a very short or a long side are added up
    in another order outside of one. Then a network is always trained in a stack, also on its own,
    or never.
    """
    if "alike" not in KEPT.settled:
        # Networks with short sides have so few weights that a trial could miss the difference.
        KEPT.settled["alike"] = min(setup.batch, *_sides(setup)) >= SHORT and _tried(setup)
    return bool(KEPT.settled["alike"])


def _tried(setup: Setup) -> bool:
    width = CPU_STACKS[-1]
    rows = np.arange(min(len(setup.data.y), 1000))
    some = [Assignment(rows, seed, seed, seed) for seed in range(width)]
    together = _few_steps(_cpu_stack(setup, width)[0], some)
    single = _cpu_stack(setup, 1)[0]
    alone = [_few_steps(single, [assignment])[0] for assignment in some]
    both = zip(alone, together, strict=True)
    return all(np.array_equal(a[name], b[name]) for a, b in both for name in a)


def _sides(setup: Setup) -> list[int]:
    linears = [m for m in make_probe(setup).modules() if isinstance(m, torch.nn.Linear)]
    return [side for m in linears for side in (m.in_features, m.out_features)]


def _products(setup: Setup) -> int:
    return setup.batch * sum(p.numel() for p in make_probe(setup).parameters())


def _few_steps(lane: Lane, assignments: Sequence[Assignment]) -> list[dict[str, NDArray[Any]]]:
    lane.begin(assignments)
    lane.lay(0, np.full(4, 0.01, dtype=np.float32))
    lane.advance(4)
    return [lane.weights(member) for member in range(lane.width)]


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
    while len(lanes) < count:
        lane = make()
        if lane.setup.cuda:
            lane.capture()
        lanes.append(lane)
    return lanes[:count]


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
