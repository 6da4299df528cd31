"""Train many networks, several at once, in the way that is quickest on the device.

Three ways, all of which give a run the same result whoever trains beside it:

- *stack*: small networks without convolutions share one batched step (CPU and GPU);
- *graphs*: on a GPU, every network has a stream and a CUDA graph of its own, with compiled kernels;
- *plain*: one network after the other; networks with dropout, and everything else on a CPU.
"""

from __future__ import annotations

import math
import os
import time
import traceback
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch

from curvewise.errors import CurvewiseError, InputError, arg
from curvewise.nn.data import Resident, Streamed, fits
from curvewise.nn.devices import doubts_of, find_device, ran_out_of_memory, reproducible, spoilt_device
from curvewise.nn.lane import (
    EVALUATION_BATCH,
    Lane,
    Setup,
    check_outputs,
    draws,
    is_spelled_out,
    make_single,
    make_stack,
    stackable,
    stochastic,
    whole_groups,
)
from curvewise.nn.networks import draw_network, features_of, head_of
from curvewise.nn.schedules import Goal, drive
from curvewise.nn.task import Assignment, Examples, Keep, Trained, check_alike, settle_training
from curvewise.nn.training import Training, misfit

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS repeats its bits only with a fixed workspace

GPU_STACK = 32  # networks in a stack on a GPU, full or not: rounding may depend on it
CPU_STACKS = (32, 8)  # tried on a CPU, where rounding does not depend on it; whole groups
MOST_LANES = 8
WORTH_IT = 1.05  # speed-up that twice the lanes must bring: less than that is within the noise of the stopwatch
LARGE = 3e7  # products in a step, from which on a CPU is as quick with one network at a time (measured)


def train(
    training: Training,
    assignments: Sequence[Assignment],
    examples: Examples,
    evaluations: Mapping[str, Examples],
    *,
    device: str | torch.device = "cpu",
    in_flight: int | None = None,
    compile: bool = True,
    keep: Keep | None = None,
    folder: Path | None = None,
    stream: bool | None = None,
) -> Iterator[tuple[int, Trained]]:
    """Train networks and give the result of each as soon as it is finished.

    Parameters
    ----------
    training : Training
        Settings, with one rate.
    assignments : sequence of Assignment
        Examples and seeds, one assignment for each network.
    examples : Examples
        Data that their rows count in.
    evaluations : dict of str to Examples
        Data that every trained network predicts.
    device : str or torch.device
        Device to train on.
    in_flight : int, optional
        At most so many at once; by default as many as a short measurement finds worth while.
    compile : bool
        Compile kernels on a GPU. That takes ten seconds or more for every architecture and batch size, which does
        not pay for a few short runs of each.
    keep : Keep, optional
        Results to keep beside predictions.
    folder : Path, optional
        Where relative paths of weights start.
    stream : bool, optional
        Leave images on the host and copy each batch to the device while the one before is trained on; the bits are
        the same. By default where they take more than half of the device's free memory.

    Yields
    ------
    int
        Number of the assignment.
    Trained
        Its result; ``error`` is set where it failed.

    Raises
    ------
    torch.OutOfMemoryError
        If that many do not fit; what was yielded before stands.
    """
    training = settle_training(training, examples.outputs)
    check_alike(examples.outputs, {name: part.outputs for name, part in evaluations.items()})
    keep = keep or Keep()
    place = find_device(device)
    options = {"in_flight": in_flight, "compile": compile, "keep": keep, "folder": folder, "stream": stream}
    way = _train_heads if training.trained == "head" else _train_whole
    yield from way(training, assignments, examples, evaluations, place, options)


def _train_whole(
    training: Training,
    assignments: Sequence[Assignment],
    examples: Examples,
    evaluations: Mapping[str, Examples],
    place: torch.device,
    options: dict[str, Any],
    body: torch.nn.Module | None = None,
) -> Iterator[tuple[int, Trained]]:
    """Train all that has a gradient: networks, or linear layers on features of a body that are computed each time."""
    folder, stream = options["folder"], options["stream"]
    shown = {k: resident(v, place, stream) for k, v in evaluations.items()}
    goal = Goal(training, shown, options["keep"])
    batches: dict[int, list[int]] = {}
    for i, assignment in enumerate(assignments):
        # A share held out by the training itself does not count: stored runs have batches of the size they had.
        held = 0 if assignment.held is None else len(assignment.held)
        batches.setdefault(training.batch_for(len(assignment.rows) - held), []).append(i)
    for batch, numbers in batches.items():
        if not batch:
            nothing = Trained(error="There are no examples to train on.")
            yield from ((number, nothing) for number in numbers)
            continue
        setup = _setup(training, examples, batch, place, folder, stream)
        setup = replace(setup, compiled=setup.compiled and options["compile"])
        setup = setup if body is None else _on_body(setup, body)
        kernels: set[str] = set()
        compiles = body is not None or _may_compile(training, place)
        work = _train_batch(setup, goal, assignments, numbers, options["in_flight"], kernels)
        while True:
            # Entered for each result anew: the settings of torch are the caller's own between two results.
            with reproducible(kernels, compiles=compiles):
                done = next(work, None)
            if done is None:
                break
            yield done


def _may_compile(training: Training, device: torch.device) -> bool:
    """Return whether kernels may be compiled: ours are on a GPU only, networks from elsewhere may do as they like."""
    return device.type == "cuda" or ":" in training.architecture


MOST_MEASURING = 15.0
"""Seconds for the steps of one measurement."""


def measure_seconds(
    training: Training, examples: Examples, n: int, *, device: str | torch.device = "cpu", folder: Path | None = None
) -> float:
    """Estimate the seconds that one run on n examples takes, from a few steps.

    Its share where several are trained at once. Compilation and evaluation are left out; schedules that may stop
    earlier are counted whole.
    """
    place, training = find_device(device), settle_training(training, examples.outputs)
    body, compiles = None, _may_compile(training, place)
    if training.trained == "head":
        body = draw_network(training, examples.shape, examples.outputs, 0, folder)
        head = head_of(body)[1]
        training = _head_training(training, head)
        if not training.augmentation:
            # Only the layer is trained: time one of the right size, on features that need not be computed for that.
            y, body = examples.y[:1], None
            examples = Examples(np.zeros((len(y), head.in_features), dtype=np.float32), y, examples.classes)
    setup = _setup(training, examples, training.batch_for(n), place, folder)
    setup = setup if body is None else _on_body(setup, body.to(place))
    try:
        with reproducible(compiles=compiles), torch.random.fork_rng(devices=[place] if setup.cuda else []):
            if _draws_numbers(setup, setup.network()):
                lanes: list[Lane] = [make_single(replace(setup, compiled=False))()]
            else:
                lanes = find_lanes(setup, MOST_LANES if setup.cuda else CPU_STACKS[-1], None)
            seconds = seconds_per_step(lanes, most=MOST_MEASURING) / sum(lane.width for lane in lanes)
    except CurvewiseError:
        raise
    except Exception as error:
        if _is_serious(error):
            raise
        raise InputError(f"The network fails in a step on {setup.batch} examples ({error}): correct it.") from error
    return seconds * training.steps_for(n)


_RESIDENTS: WeakKeyDictionary[Examples, dict[tuple[torch.device, bool], Resident]] = WeakKeyDictionary()


def resident(examples: Examples, device: torch.device, stream: bool | None = None) -> Resident:
    """Return examples on a device, where they are brought once; images that are streamed stay on the host."""
    there = _RESIDENTS.setdefault(examples, {})
    if stream is None:  # as it was decided before, if it was
        stream = next((way for at, way in there if at == device), not fits(examples, device))
    stream = stream and examples.x.ndim == 4
    if (device, stream) not in there:
        there[device, stream] = (Streamed if stream else Resident)(examples, device)
    return there[device, stream]


def _setup(
    training: Training,
    examples: Examples,
    batch: int,
    device: torch.device,
    folder: Path | None,
    stream: bool | None = None,
) -> Setup:
    if training.precision != "float32" and device.type == "cpu":
        remedy = f"Train on {arg('device', 'cuda')}, or use {arg('precision', 'float32')}."
        problem = "for GPUs; on a CPU it is slow, and some CPUs stop at it."
        raise misfit("precision", training.precision, problem, remedy)
    data = resident(examples, device, stream)
    # A batch smaller than asked for comes from a subset smaller than that: not worth compiling.
    compiled = device.type == "cuda" and batch == training.batch
    return Setup(training, data, examples.shape, examples.outputs, batch, device, folder, compiled)


def _train_batch(
    setup: Setup,
    goal: Goal,
    assignments: Sequence[Assignment],
    numbers: list[int],
    in_flight: int | None,
    kernels: set[str],
) -> Iterator[tuple[int, Trained]]:
    """Train all assignments with one size of batches; an error that concerns all is the result of each."""
    left = set(numbers)
    try:
        for groups, lanes in _crews(setup, assignments, numbers, in_flight):
            for lane in lanes:  # kept from other calls, in this thread or another, that train at the same time
                lane.is_taken = True
            try:
                for number, trained in _run_lanes(lanes, goal, assignments, groups):
                    left.discard(number)
                    # Kernels are remembered with the lanes: a graph that was captured earlier does not warn again.
                    for lane in lanes:
                        lane.kernels |= kernels
                    yield number, replace(trained, doubts=doubts_of(lanes[0].kernels))
            finally:
                for lane in lanes:
                    lane.is_taken = False
    except CurvewiseError:
        raise
    except Exception as error:
        if _is_serious(error):
            POOL.forget()  # what lies on the device would be in the way of a second attempt
            raise
        failed = Trained(error="".join(traceback.format_exception(error)))
        yield from ((number, failed) for number in sorted(left))


def _crews(
    setup: Setup, assignments: Sequence[Assignment], numbers: list[int], in_flight: int | None
) -> Iterator[tuple[list[list[int]], list[Lane]]]:
    """Deal assignments into groups for lanes, and make the lanes."""
    probe = setup.network()
    if isinstance(setup.outputs, tuple):
        check_outputs(probe, setup.data.inputs(slice(0, 2)).cpu(), setup.outputs)
    if _draws_numbers(setup, probe):
        yield [[i] for i in numbers], [make_single(replace(setup, compiled=False))()]
        return
    if setup.training.controlled or not stackable(probe, setup.training):
        yield [[i] for i in numbers], find_lanes(setup, len(numbers), in_flight, stacked=False)
        return
    # Networks of a stack take their steps together, and therefore have as many examples.
    sizes: dict[int, list[int]] = {}
    for i in numbers:
        sizes.setdefault(len(assignments[i].rows), []).append(i)
    for same in sizes.values():
        lanes = find_lanes(setup, len(same), in_flight)
        width = lanes[0].width
        yield [same[k : k + width] for k in range(0, len(same), width)], lanes


def _draws_numbers(setup: Setup, probe: torch.nn.Module) -> bool:
    """Tell whether a network draws random numbers while it is trained, which a graph may not."""
    if stochastic(probe) or not setup.cuda:
        return stochastic(probe)
    return draws(probe, setup.data.prepared(setup.data.stored(slice(0, 2))).cpu())


@dataclass(eq=False)
class _Turn:
    course: Generator[None, None, list[Trained]]
    numbers: list[int]
    since: float


def _run_lanes(
    lanes: Sequence[Lane], goal: Goal, assignments: Sequence[Assignment], groups: list[list[int]]
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
        # Lanes share the device: a run's time is its share of the time in which so many were trained.
        at_once = sum(len(turn.numbers) for turn in turns.values())
        for i, turn in list(turns.items()):
            try:
                next(turn.course)
                continue
            except StopIteration as stop:
                found: list[Trained] = stop.value
            except Exception as error:
                if _is_serious(error):
                    raise
                found = [Trained(error="".join(traceback.format_exception(error)))] * len(turn.numbers)
            del turns[i]
            seconds = (time.perf_counter() - turn.since) / max(at_once, 1)
            for number, trained in zip(turn.numbers, found, strict=True):
                yield number, replace(trained, seconds=seconds)


def _seeded(lane: Lane, goal: Goal, assignments: Sequence[Assignment]) -> Generator[None, None, list[Trained]]:
    """Drive a lane; networks that draw numbers themselves get them from the augmentation seed."""
    if lane.graph is not None or lane.width > 1:  # neither is used for networks that draw, see _crews
        return (yield from drive(lane, goal, assignments))
    with torch.random.fork_rng(devices=[lane.setup.device] if lane.setup.cuda else []):
        torch.manual_seed(assignments[0].augmentation)
        return (yield from drive(lane, goal, assignments))


def _is_serious(error: Exception) -> bool:
    """Tell errors of the device from errors of a run."""
    known = isinstance(error, torch.AcceleratorError)
    return known or ran_out_of_memory(error) or spoilt_device(error)


# Lanes: made once for many trainings, as many as are the quickest.


def seconds_per_step(lanes: Sequence[Lane], *, quick: bool = False, most: float = math.inf) -> float:
    """Measure the time in which every lane takes one step; overwrites what they hold.

    Takes fewer steps, at the least one, where all would last longer than about ``most`` seconds.
    """
    steps = 4 if quick else 16
    if math.isfinite(most):
        first = _time_steps(lanes, 1)
        if 2 * first > most:
            return first
        if 4 * steps * first > most:  # again: the first may have been spent on warming up
            steps = min(steps, max(1, int(most / (4 * _time_steps(lanes, 1)))))
    _, *times = (_time_steps(lanes, steps) for _ in range(4))  # the first warms up
    return min(times) / min(steps, lanes[0].capacity)


def _time_steps(lanes: Sequence[Lane], steps: int) -> float:
    start = time.perf_counter()
    for lane in lanes:
        with lane.at_work():
            lane.start_line()
            lane.advance(min(steps, lane.capacity))
    for lane in lanes:
        if lane.stream is not None:
            lane.stream.synchronize()
    return time.perf_counter() - start


class LanePool:
    """Lanes of the last call, kept for the next: making them anew, above all compiling, takes long.

    Parameters
    ----------
    stopwatch : callable
        Seconds in which lanes take one step.
    """

    def __init__(self, stopwatch: Callable[[Sequence[Lane]], float] = seconds_per_step) -> None:
        self.stopwatch = stopwatch
        self.forget()

    def forget(self) -> None:
        """Release all lanes and what they hold on the device."""
        self.key: tuple[Any, ...] = ()
        self.makers: dict[str, Callable[[], Lane]] = {}
        self.lanes: dict[str, list[Lane]] = {}
        self.settled: dict[str, int] = {}

    def keep_for(self, setup: Setup) -> None:
        """Forget lanes that were made for something else."""
        # These settings reach a lane anew with each training, and are no part of what was compiled.
        free = {"rate", "epochs", "steps", "schedule", "warmup", "drops", "validation", "patience"}
        free |= {"patience_n", "patience_steps", "look_every"}
        settings = {k: repr(v) for k, v in setup.training.as_dict().items() if k not in free}
        groups = (setup.training.groups or {}).items()
        settings["groups"] = repr([(name, {k: v for k, v in own.items() if k not in free}) for name, own in groups])
        key = (tuple(settings.items()), setup.batch, setup.device, setup.folder, setup.compiled, setup.data, setup.body)
        if self.key != key:  # data and networks are compared by identity
            self.forget()
            self.key = key

    def existing(self, name: str, maker: Callable[[], Callable[[], Lane]], count: int) -> list[Lane]:
        """Return so many lanes that are free; those that are lacking are made."""
        if name not in self.makers:
            self.makers[name] = maker()
        lanes = self.lanes.setdefault(name, [])
        free = [lane for lane in lanes if not lane.is_taken]
        while len(free) < count:
            lane = self.makers[name]()
            if lane.setup.cuda:
                lane.capture()
            lanes.append(lane)
            free.append(lane)
        return free[:count]

    def grown(self, name: str, maker: Callable[[], Callable[[], Lane]], most: int) -> list[Lane]:
        """Double the lanes as long as that makes them quicker altogether; measured once."""
        if name in self.settled:
            return self.existing(name, maker, min(most, self.settled[name]))
        lanes = self.existing(name, maker, 1)
        seconds = self.stopwatch(lanes)
        while len(lanes) < most:
            more = self.existing(name, maker, min(2 * len(lanes), most))
            now = self.stopwatch(more)
            if seconds / len(lanes) < WORTH_IT * now / len(more):
                if len(more) == 2 * len(lanes):  # of less than that, little was to be expected
                    self.settled[name] = len(lanes)
                break
            lanes, seconds = more, now
        if len(lanes) == MOST_LANES:
            self.settled[name] = MOST_LANES
        return lanes


POOL = LanePool()


def find_lanes(setup: Setup, runs: int, in_flight: int | None, *, stacked: bool | None = None) -> list[Lane]:
    """Return lanes for so many runs: those that exist already first."""
    if stacked is None:
        known = stackable(setup.network(), setup.training)
        stacked = known and not setup.training.controlled
    POOL.keep_for(setup)
    most = runs if in_flight is None else max(1, min(in_flight, runs))
    if stacked and setup.cuda:
        count = -(-most // GPU_STACK)
        return POOL.grown("stack", lambda: make_stack(setup, GPU_STACK), min(count, MOST_LANES))
    if stacked and _is_stacked(setup):
        widths = sorted({min(width, whole_groups(most)) for width in CPU_STACKS})
        name = f"width of {widths}"
        if len(widths) == 1:  # nothing to choose: a stopwatch would take longer than a short training
            POOL.settled[name] = widths[0]
        if name not in POOL.settled:
            seconds = {width: seconds_per_step(_cpu_stack(setup, width), quick=True) / width for width in widths}
            POOL.settled[name] = min(widths, key=lambda width: seconds[width])
        return _cpu_stack(setup, POOL.settled[name])
    if not setup.cuda:
        return POOL.existing("single", lambda: make_single(setup), 1)
    lanes_for = POOL.grown if in_flight is None else POOL.existing
    return lanes_for("single", lambda: make_single(setup), min(most, MOST_LANES))


def _cpu_stack(setup: Setup, width: int) -> list[Lane]:
    return POOL.existing(f"stack {width}", lambda: make_stack(setup, width), 1)


def _is_stacked(setup: Setup) -> bool:
    """Decide whether networks are trained in a stack on a CPU, also where there is only one.

    Alone a network may round otherwise than in a stack, so that this must not depend on how many there are, nor on
    how quick they are today.
    """
    if "stacked" not in POOL.settled:
        probe = setup.network()
        products = setup.batch * sum(p.numel() for p in probe.parameters())
        POOL.settled["stacked"] = products <= LARGE and is_spelled_out(probe) and _is_even(setup)
    return bool(POOL.settled["stacked"])


def _is_even(setup: Setup) -> bool:
    """Try whether the same training gives the same bits at every place of a stack."""
    (lane,) = _cpu_stack(setup, CPU_STACKS[-1])
    rows = np.arange(min(len(setup.data.y), 1000))
    lane.begin([Assignment(rows, 1, 1, 1)] * CPU_STACKS[-1])
    lane.lay(0, np.full((4, *lane.rates.shape[1:]), 0.01, dtype=np.float32))  # with groups, a rate for each
    lane.advance(4)
    first, *others = (lane.weights(member) for member in range(lane.width))
    return all(np.array_equal(first[name], other[name], equal_nan=True) for other in others for name in first)


# Linear probes: one layer trained on features, computed once, or in each step where images are augmented.


def _train_heads(
    training: Training,
    assignments: Sequence[Assignment],
    examples: Examples,
    evaluations: Mapping[str, Examples],
    place: torch.device,
    options: dict[str, Any],
) -> Iterator[tuple[int, Trained]]:
    """Train the last layer of a network whose other weights stay as they are.

    With weights from a file the features are computed once for all assignments. Without, every assignment has a
    random network of its own, drawn from its initial seed. With augmentation the features of every batch are computed
    anew, since the images of each epoch are others.
    """
    stream = options["stream"]
    bodies: dict[int | None, list[int]] = {}
    for i, assignment in enumerate(assignments):
        bodies.setdefault(None if training.weights else assignment.init, []).append(i)
    for seed, numbers in bodies.items():
        body = draw_network(training, examples.shape, examples.outputs, seed or 0, options["folder"]).to(place)
        name, head = head_of(body)
        kernels: set[str] = set()
        own, layer = [assignments[i] for i in numbers], _head_training(training, head)
        with reproducible(kernels, compiles=_may_compile(training, place)):
            few = replace(examples, x=examples.x[:8], y=examples.y[:8])
            inputs = _features(body, few if training.augmentation else examples, place, stream)
            factor = _factor(body, head, inputs, resident(examples, place, stream))
            if not training.augmentation:
                shown = {k: _features(body, v, place, stream) for k, v in evaluations.items()}
        if training.augmentation:
            work, when = _train_whole(layer, own, examples, evaluations, place, options, body), "in each step"
        else:
            work, when = _train_whole(layer, own, inputs, shown, place, options), "once"
        for i, trained in work:
            doubts = tuple(dict.fromkeys((*doubts_of(kernels), *trained.doubts)))
            yield numbers[i], replace(_named(trained, name, factor, when), doubts=doubts)


def _on_body(setup: Setup, body: torch.nn.Module) -> Setup:
    """Return the setup of a linear layer on the features of a network."""
    with torch.no_grad():
        width = features_of(body, setup.data.prepared(setup.data.stored(slice(0, 1)))).shape[1]
    # Not compiled: the features are caught by a hook, which a compiler would stumble over.
    return replace(setup, body=body, shape=(width,), compiled=False)


def _head_training(training: Training, head: torch.nn.Linear) -> Training:
    """Return the training of a layer alone, as of a linear network."""
    bias: dict[str, Any] = {} if head.bias is not None else {"bias": False}
    alone = replace(training, weights=None, weights_into=None, like=None)
    return replace(alone, trained="all", architecture="linear", options=bias)


def _features(body: torch.nn.Module, examples: Examples, device: torch.device, stream: bool | None) -> Examples:
    data = resident(examples, device, stream)
    parts = []
    with torch.no_grad():
        for start in range(0, len(data.y), EVALUATION_BATCH):
            x = data.prepared(data.stored(slice(start, start + EVALUATION_BATCH)))
            parts.append(features_of(body, x).float().cpu())
    return Examples(np.asarray(torch.cat(parts)), examples.y, examples.classes)


def _factor(body: torch.nn.Module, head: torch.nn.Linear, features: Examples, data: Resident) -> float | None:
    """Find the factor by which the network multiplies the outputs of its last layer; None if it does more."""
    with torch.no_grad():
        own = head(torch.from_numpy(features.x[:8]).to(head.weight.device)).double()
        whole = body(data.prepared(data.stored(slice(0, 8)))).double()
    if own.shape != whole.shape:
        return None
    factor = float((own * whole).sum() / (own * own).sum())  # least squares
    near = torch.allclose(whole, factor * own, rtol=1e-3, atol=1e-3 * float(whole.abs().max()))
    return factor if near and factor else None


def _named(trained: Trained, head: str, factor: float | None, when: str) -> Trained:
    """Return weights of the layer as the network takes them, by the name they have there."""
    renamed = {
        when: {f"{head}.{k.rsplit('.', 1)[-1]}": v / np.float32(factor or 1) for k, v in weights.items()}
        for when, weights in trained.checkpoints.items()
    }
    notes = trained.notes
    if factor is None:
        notes = (*notes, "What the network does after its last layer was left out.")
    path = f"{trained.path}, features computed {when}"
    return replace(trained, checkpoints=renamed, path=path, notes=notes)
