"""Train many networks, several at once, in the way that is quickest on the device.

Three ways, all of which give a run the same result whoever trains beside it:

- *stack*: small networks without convolutions share one batched step (CPU and GPU);
- *graphs*: on a GPU, every network has a stream and a CUDA graph of its own, with compiled kernels;
- *plain*: one network after the other; networks with dropout, and everything else on a CPU.
"""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import NDArray

from curvewise.errors import CurvewiseError, InputError
from curvewise.nn._flags import reproducible
from curvewise.nn.architectures import make_network
from curvewise.nn.drive import Goal, drive
from curvewise.nn.lane import Lane, Setup
from curvewise.nn.resident import Resident, find_device
from curvewise.nn.settings import Training
from curvewise.nn.single import draws, make_single, stochastic
from curvewise.nn.stack import make_stack, stackable
from curvewise.nn.task import Assignment, Examples, Keep, Trained

GPU_STACK = 32  # networks in a stack on a GPU, full or not: rounding may depend on it
CPU_STACKS = (32, 8)  # tried on a CPU, where rounding does not depend on it
SHORT = 8  # sides of matrices
MOST_LANES = 8
SERIOUS = (torch.OutOfMemoryError, torch.AcceleratorError, MemoryError)
WORTH_IT = 1.05  # what twice the lanes must gain

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS repeats its bits with this


def train(
    training: Training,
    assignments: Sequence[Assignment],
    examples: Examples,
    evaluations: Mapping[str, Examples],
    *,
    device: str | torch.device = "cpu",
    in_flight: int | None = None,
    keep: Keep | None = None,
    folder: Path | None = None,
) -> Iterator[tuple[int, Trained]]:
    """Train networks and give what came of each as soon as it is done.

    Parameters
    ----------
    training : Training
        How; with one rate.
    assignments : sequence of Assignment
        Which examples and seeds, one for each network.
    examples : Examples
        What their rows count in.
    evaluations : dict of str to Examples
        What every trained network predicts.
    device : str or torch.device
        Where.
    in_flight : int, optional
        At most so many at once; by default as many as a short measurement finds worth while.
    keep : Keep, optional
        What to keep beside predictions.
    folder : Path, optional
        Where relative paths of weights start.

    Yields
    ------
    int
        Number of the assignment.
    Trained
        What came of it; ``error`` is set where it failed.

    Raises
    ------
    torch.OutOfMemoryError
        If that many do not fit; what was yielded before stands.
    """
    if training.trained == "head":
        from curvewise.nn.heads import train_heads

        yield from train_heads(
            training,
            assignments,
            examples,
            evaluations,
            device=device,
            in_flight=in_flight,
            keep=keep or Keep(),
            folder=folder,
        )
        return
    place = find_device(device)
    goal = Goal(training, {k: resident(v, place) for k, v in evaluations.items()}, keep or Keep())
    for batch, numbers in _by_batch(training, assignments).items():
        setup = _setup(training, examples, batch, place, folder)
        work = _all_work(setup, goal, assignments, numbers, in_flight)
        while True:
            with reproducible():  # not while the caller is at work
                done = next(work, None)
            if done is None:
                break
            yield done


def _all_work(
    setup: Setup,
    goal: Goal,
    assignments: Sequence[Assignment],
    numbers: list[int],
    in_flight: int | None,
) -> Iterator[tuple[int, Trained]]:
    """Train all that have one batch; what fails for all is told for each."""
    left = set(numbers)
    if not setup.batch:
        nothing = Trained(error="There are no examples to train on.")
        yield from ((number, nothing) for number in numbers)
        return
    try:
        for group, lanes in _crews(setup, assignments, numbers, in_flight):
            for number, trained in _work(lanes, goal, assignments, group):
                left.discard(number)
                yield number, trained
    except (CurvewiseError, *SERIOUS):
        raise
    except Exception as error:
        failed = Trained(error="".join(traceback.format_exception(error)))
        yield from ((number, failed) for number in sorted(left))


def measure_seconds(
    training: Training,
    examples: Examples,
    n: int,
    *,
    device: str | torch.device = "cpu",
    folder: Path | None = None,
) -> float:
    """Estimate the seconds that one run on n examples takes, from a few steps.

    Its share where several are trained at once. Compilation and evaluation are left out; schedules
    that may stop earlier are counted whole.
    """
    place = find_device(device)
    if training.trained == "head":
        from curvewise.nn.heads import stand_in

        training, examples = stand_in(training, examples, folder)
    setup = _setup(training, examples, training.batch_for(n), place, folder)
    try:
        seconds = _share(setup)
    except (CurvewiseError, *SERIOUS):
        raise
    except Exception as error:
        raise InputError(
            f"The network fails in a step on {setup.batch} examples ({error}): correct it."
        ) from error
    return seconds * training.steps_for(n)


def _share(setup: Setup) -> float:
    """Seconds of a step, divided by the networks that take it."""
    place = [setup.device] if setup.cuda else []
    with reproducible(), torch.random.fork_rng(devices=place):
        if _draws(setup, _probe(setup)):
            lanes: list[Lane] = [make_single(replace(setup, compiled=False))()]
        else:
            lanes = _lanes(setup, MOST_LANES if setup.cuda else CPU_STACKS[-1], None)
        return _seconds_per_step(lanes) / sum(lane.width for lane in lanes)


def _by_batch(training: Training, assignments: Sequence[Assignment]) -> dict[int, list[int]]:
    """Numbers of the assignments by the size of their batches; 0 for those without examples."""
    groups: dict[int, list[int]] = {}
    for i, assignment in enumerate(assignments):
        groups.setdefault(training.batch_for(len(assignment.rows)), []).append(i)
    return groups


_RESIDENTS: WeakKeyDictionary[Examples, dict[torch.device, Resident]] = WeakKeyDictionary()


def resident(examples: Examples, device: torch.device) -> Resident:
    """Examples on a device; brought there once."""
    there = _RESIDENTS.setdefault(examples, {})
    if device not in there:
        there[device] = Resident(examples, device)
    return there[device]


def _setup(
    training: Training, examples: Examples, batch: int, device: torch.device, folder: Path | None
) -> Setup:
    data = resident(examples, device)
    # A batch smaller than asked for comes from a subset smaller than that: not worth compiling.
    compiled = device.type == "cuda" and batch == training.batch
    return Setup(training, data, examples.shape, examples.classes, batch, device, folder, compiled)


def _probe(setup: Setup) -> torch.nn.Module:
    """A network to look at; torch's generator stays as it is."""
    with torch.random.fork_rng(devices=[]):
        return make_network(setup.training, setup.shape, setup.classes, setup.folder)


def _draws(setup: Setup, probe: torch.nn.Module) -> bool:
    """Whether a network draws random numbers while it is trained, which a graph may not."""
    if stochastic(probe) or not setup.cuda:
        return stochastic(probe)
    return draws(probe, setup.data.prepared(setup.data.x[:2]).cpu())


def _crews(
    setup: Setup, assignments: Sequence[Assignment], numbers: list[int], in_flight: int | None
) -> Iterator[tuple[list[list[int]], list[Lane]]]:
    """Deal assignments into groups for lanes, and make the lanes."""
    probe = _probe(setup)
    if _draws(setup, probe):
        yield [[i] for i in numbers], [make_single(replace(setup, compiled=False))()]
        return
    if setup.training.controlled or not stackable(probe, setup.training.augmentation):
        lanes = _lanes(setup, len(numbers), in_flight, stacked=False)
        yield [[i] for i in numbers], lanes
        return
    sizes: dict[int, list[int]] = {}
    for i in numbers:
        sizes.setdefault(len(assignments[i].rows), []).append(i)
    for same in sizes.values():
        lanes = _lanes(setup, len(same), in_flight)
        width = lanes[0].width
        yield [same[k : k + width] for k in range(0, len(same), width)], lanes


@dataclass(eq=False)
class _Kept:
    """The lanes of the last call; making them anew, above all compiling, takes long."""

    key: tuple[Any, ...] = ()
    data: Resident | None = None
    makers: dict[str, Callable[[], Lane]] | None = None
    lanes: dict[str, list[Lane]] | None = None
    settled: dict[str, int] = field(default_factory=dict)


_KEPT = _Kept()


def _lanes(
    setup: Setup, runs: int, in_flight: int | None, *, stacked: bool | None = None
) -> list[Lane]:
    """Lanes for so many runs: those that are there already first."""
    if stacked is None:
        known = stackable(_probe(setup), setup.training.augmentation)
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


def _stacks(setup: Setup, most: int) -> list[Lane]:
    if setup.cuda:
        count = -(-most // GPU_STACK)
        return _grown("stack", lambda: make_stack(setup, GPU_STACK), min(count, MOST_LANES))
    best, least = None, float("inf")
    # Networks with short sides have so few weights that a trial could miss the difference.
    smallest = 1 if _shortest_side(setup) >= SHORT and _alike(setup) else 2
    for width in sorted({smallest, *(max(smallest, min(w, most)) for w in CPU_STACKS)}):
        lanes = _cpu_stack(setup, width)
        seconds = _seconds_per_step(lanes, quick=True) / width
        if seconds < least:
            best, least = lanes, seconds
    assert best is not None
    return best


def _cpu_stack(setup: Setup, width: int) -> list[Lane]:
    if width == 1:
        return _existing("single", lambda: make_single(setup), 1)
    return _existing(f"stack {width}", lambda: make_stack(setup, width), 1)


def _alike(setup: Setup) -> bool:
    """Whether a network takes the same steps, bit for bit, alone and in a stack on this CPU.

    All stacks round alike, but products of matrices with a very short or a long side are added up
    in another order outside of one; then a network on its own is trained in a stack, too.
    """
    if "alike" not in _KEPT.settled:
        width = CPU_STACKS[-1]
        rows = np.arange(min(len(setup.data.y), 1000))
        some = [Assignment(rows, seed, seed, seed) for seed in range(width)]
        together = _few_steps(_cpu_stack(setup, width)[0], some)
        single = _cpu_stack(setup, 1)[0]
        alone = [_few_steps(single, [assignment])[0] for assignment in some]
        _KEPT.settled["alike"] = all(
            np.array_equal(a[name], b[name], equal_nan=True)
            for a, b in zip(alone, together, strict=True)
            for name in a
        )
    return bool(_KEPT.settled["alike"])


def _shortest_side(setup: Setup) -> int:
    linears = (m for m in _probe(setup).modules() if isinstance(m, torch.nn.Linear))
    sides = (side for m in linears for side in (m.in_features, m.out_features))
    return min(setup.batch, *sides)


def _few_steps(lane: Lane, assignments: Sequence[Assignment]) -> list[dict[str, NDArray[Any]]]:
    lane.begin(assignments)
    lane.lay(0, np.full(4, 0.01, dtype=np.float32))
    lane.advance(4)
    return [lane.weights(member) for member in range(lane.width)]


def _keep_for(setup: Setup) -> None:
    """Forget lanes that were made for something else."""
    free = {"rate", "epochs", "steps", "schedule", "warmup", "drops", "validation", "patience"}
    settings = {k: repr(v) for k, v in setup.training.as_dict().items() if k not in free}
    key = (tuple(settings.items()), setup.batch, setup.device, setup.folder, setup.compiled)
    if _KEPT.key != key or _KEPT.data is not setup.data:
        _KEPT.key, _KEPT.data, _KEPT.makers, _KEPT.lanes = key, setup.data, {}, {}
        _KEPT.settled = {}


def _existing(name: str, maker: Callable[[], Callable[[], Lane]], count: int) -> list[Lane]:
    assert _KEPT.makers is not None
    assert _KEPT.lanes is not None
    if name not in _KEPT.makers:
        _KEPT.makers[name] = maker()
    make = _KEPT.makers[name]
    lanes = _KEPT.lanes.setdefault(name, [])
    while len(lanes) < count:
        lane = make()
        if lane.setup.cuda:
            lane.capture()
        lanes.append(lane)
    return lanes[:count]


def _grown(name: str, maker: Callable[[], Callable[[], Lane]], most: int) -> list[Lane]:
    """Double the lanes as long as that makes them quicker altogether; measured once."""
    if name in _KEPT.settled:
        return _existing(name, maker, min(most, _KEPT.settled[name]))
    lanes = _existing(name, maker, 1)
    seconds = _seconds_per_step(lanes)
    while 2 * len(lanes) <= most:
        more = _existing(name, maker, 2 * len(lanes))
        now = _seconds_per_step(more)
        if seconds / len(lanes) < WORTH_IT * now / len(more):
            _KEPT.settled[name] = len(lanes)
            break
        lanes, seconds = more, now
    if len(lanes) == MOST_LANES:
        _KEPT.settled[name] = MOST_LANES
    return lanes


def _seconds_per_step(lanes: Sequence[Lane], *, quick: bool = False) -> float:
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


@dataclass(eq=False)
class _Turn:
    course: Generator[None, None, list[Trained]]
    numbers: list[int]
    since: float


def _work(
    lanes: Sequence[Lane],
    goal: Goal,
    assignments: Sequence[Assignment],
    groups: list[list[int]],
) -> Iterator[tuple[int, Trained]]:
    """Keep every lane busy, turn by turn."""
    waiting = list(reversed(groups))
    turns: dict[int, _Turn] = {}
    while waiting or turns:
        for i, lane in enumerate(lanes):
            if i not in turns and waiting:
                numbers = waiting.pop()
                course = _seeded(lane, goal, [assignments[k] for k in numbers])
                turns[i] = _Turn(course, numbers, time.perf_counter())
        at_once = sum(len(turn.numbers) for turn in turns.values())
        for i, turn in list(turns.items()):
            found = _move(turn)
            if found is not None:
                del turns[i]
                seconds = (time.perf_counter() - turn.since) / max(at_once, 1)
                for number, trained in zip(turn.numbers, found, strict=True):
                    yield number, replace(trained, seconds=seconds)


def _move(turn: _Turn) -> list[Trained] | None:
    """Go on with one lane; give the results once it has finished."""
    try:
        next(turn.course)
    except StopIteration as stop:
        found: list[Trained] = stop.value
        return found
    except SERIOUS:
        raise
    except Exception as error:
        text = "".join(traceback.format_exception(error))
        return [Trained(error=text)] * len(turn.numbers)
    return None


def _seeded(
    lane: Lane, goal: Goal, assignments: Sequence[Assignment]
) -> Generator[None, None, list[Trained]]:
    """Drive a lane; networks that draw numbers themselves get them from the augmentation seed."""
    if lane.graph is not None or lane.width > 1:  # and so does not, see _draws
        return (yield from drive(lane, goal, assignments))
    with torch.random.fork_rng(devices=[lane.setup.device] if lane.setup.cuda else []):
        torch.manual_seed(assignments[0].augmentation)
        return (yield from drive(lane, goal, assignments))
