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
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import NDArray

from curvewise.errors import CurvewiseError, InputError
from curvewise.nn.alignment import is_spelled_out, whole_groups
from curvewise.nn.data import Resident, find_device
from curvewise.nn.devices import doubts_of, own_generator, ran_out_of_memory, reproducible, spoilt_device
from curvewise.nn.lane import EVALUATION_BATCH, Lane, Setup, check_outputs, draws, make_single, stochastic
from curvewise.nn.networks import features_of, head_of, make_network
from curvewise.nn.schedules import Goal, drive
from curvewise.nn.stack import make_stack, stackable
from curvewise.nn.task import Assignment, Examples, Keep, Trained, check_alike, settle_training
from curvewise.nn.training import Training

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS repeats its bits with this


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
    compile : bool
        Whether kernels are compiled on a GPU. That takes ten seconds or more for every
        architecture and batch size, which does not pay for a few short runs of each.
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
    training = settle_training(training, examples.outputs)
    check_alike(examples.outputs, {name: part.outputs for name, part in evaluations.items()})
    if training.trained == "head":
        yield from train_heads(
            training,
            assignments,
            examples,
            evaluations,
            device=device,
            in_flight=in_flight,
            compile=compile,
            keep=keep or Keep(),
            folder=folder,
        )
        return
    place = find_device(device)
    goal = Goal(training, {k: resident(v, place) for k, v in evaluations.items()}, keep or Keep())
    for batch, numbers in _by_batch(training, assignments).items():
        setup = _setup(training, examples, batch, place, folder)
        setup = replace(setup, compiled=setup.compiled and compile)
        kernels: set[str] = set()
        work = _all_work(setup, goal, assignments, numbers, in_flight, kernels)
        while True:
            with reproducible(kernels):  # not while the caller is at work
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
    kernels: set[str],
) -> Iterator[tuple[int, Trained]]:
    """Train all that have one batch; what fails for all is told for each."""
    left = set(numbers)
    if not setup.batch:
        nothing = Trained(error="There are no examples to train on.")
        yield from ((number, nothing) for number in numbers)
        return
    try:
        for group, lanes in _crews(setup, assignments, numbers, in_flight):
            with taken(lanes):
                for number, trained in _work(lanes, goal, assignments, group):
                    left.discard(number)
                    for lane in lanes:  # a captured graph does not warn again
                        lane.kernels |= kernels
                    yield number, replace(trained, doubts=doubts_of(lanes[0].kernels))
    except CurvewiseError:
        raise
    except Exception as error:
        if _is_serious(error):
            forget()  # what lies on the device would be in the way of a second attempt
            raise
        failed = Trained(error="".join(traceback.format_exception(error)))
        yield from ((number, failed) for number in sorted(left))


def measure_seconds(
    training: Training, examples: Examples, n: int, *, device: str | torch.device = "cpu", folder: Path | None = None
) -> float:
    """Estimate the seconds that one run on n examples takes, from a few steps.

    Its share where several are trained at once. Compilation and evaluation are left out; schedules
    that may stop earlier are counted whole.
    """
    place, training = find_device(device), settle_training(training, examples.outputs)
    if training.trained == "head":
        training, examples = stand_in(training, examples, folder)
    setup = _setup(training, examples, training.batch_for(n), place, folder)
    try:
        seconds = _share(setup)
    except CurvewiseError:
        raise
    except Exception as error:
        if _is_serious(error):
            raise
        raise InputError(f"The network fails in a step on {setup.batch} examples ({error}): correct it.") from error
    return seconds * training.steps_for(n)


def _share(setup: Setup) -> float:
    """Seconds of a step, divided by the networks that take it."""
    place = [setup.device] if setup.cuda else []
    with reproducible(), torch.random.fork_rng(devices=place):
        if _draws(setup, make_probe(setup)):
            lanes: list[Lane] = [make_single(replace(setup, compiled=False))()]
        else:
            lanes = find_lanes(setup, MOST_LANES if setup.cuda else CPU_STACKS[-1], None)
        return seconds_per_step(lanes) / sum(lane.width for lane in lanes)


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


def _setup(training: Training, examples: Examples, batch: int, device: torch.device, folder: Path | None) -> Setup:
    if training.precision == "bfloat16" and device.type == "cpu":
        raise InputError(
            "precision='bfloat16' is for GPUs; on a CPU it is slow, and some CPUs stop at it: "
            "train on device='cuda', or use precision='float32'."
        )
    data = resident(examples, device)
    # A batch smaller than asked for comes from a subset smaller than that: not worth compiling.
    compiled = device.type == "cuda" and batch == training.batch
    return Setup(training, data, examples.shape, examples.outputs, batch, device, folder, compiled)


def _draws(setup: Setup, probe: torch.nn.Module) -> bool:
    """Whether a network draws random numbers while it is trained, which a graph may not."""
    if stochastic(probe) or not setup.cuda:
        return stochastic(probe)
    return draws(probe, setup.data.prepared(setup.data.x[:2]).cpu())


def _crews(
    setup: Setup, assignments: Sequence[Assignment], numbers: list[int], in_flight: int | None
) -> Iterator[tuple[list[list[int]], list[Lane]]]:
    """Deal assignments into groups for lanes, and make the lanes."""
    probe = make_probe(setup)
    if isinstance(setup.outputs, tuple):
        check_outputs(probe, setup.data.inputs(slice(0, 2)).cpu(), setup.outputs)
    if _draws(setup, probe):
        yield [[i] for i in numbers], [make_single(replace(setup, compiled=False))()]
        return
    if setup.training.controlled or not stackable(probe, setup.training.augmentation):
        lanes = find_lanes(setup, len(numbers), in_flight, stacked=False)
        yield [[i] for i in numbers], lanes
        return
    sizes: dict[int, list[int]] = {}
    for i in numbers:
        sizes.setdefault(len(assignments[i].rows), []).append(i)
    for same in sizes.values():
        lanes = find_lanes(setup, len(same), in_flight)
        width = lanes[0].width
        yield [same[k : k + width] for k in range(0, len(same), width)], lanes


@dataclass(eq=False)
class _Turn:
    course: Generator[None, None, list[Trained]]
    numbers: list[int]
    since: float


def _work(
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
    except Exception as error:
        if _is_serious(error):
            raise
        text = "".join(traceback.format_exception(error))
        return [Trained(error=text)] * len(turn.numbers)
    return None


def _is_serious(error: Exception) -> bool:
    """Whether an error is of the device rather than of a run."""
    known = isinstance(error, torch.AcceleratorError)
    return known or ran_out_of_memory(error) or spoilt_device(error)


def _seeded(lane: Lane, goal: Goal, assignments: Sequence[Assignment]) -> Generator[None, None, list[Trained]]:
    """Drive a lane; networks that draw numbers themselves get them from the augmentation seed."""
    if lane.graph is not None or lane.width > 1:  # and so does not, see _draws
        return (yield from drive(lane, goal, assignments))
    with torch.random.fork_rng(devices=[lane.setup.device] if lane.setup.cuda else []):
        torch.manual_seed(assignments[0].augmentation)
        return (yield from drive(lane, goal, assignments))


# Lanes that are there for the next trainings, and which of them are the quickest.

GPU_STACK = 32  # networks in a stack on a GPU, full or not: rounding may depend on it
CPU_STACKS = (32, 8)  # tried on a CPU, where rounding does not depend on it; whole groups
MOST_LANES = 8
WORTH_IT = 1.05  # what twice the lanes must gain
LARGE = 3e7  # products in a step, from which on a CPU is as quick with one network at a time


def find_lanes(setup: Setup, runs: int, in_flight: int | None, *, stacked: bool | None = None) -> list[Lane]:
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
    return all(np.array_equal(first[name], other[name], equal_nan=True) for other in others for name in first)


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


# Linear probes: one layer trained on features that are computed once.


def train_heads(
    training: Training,
    assignments: Sequence[Assignment],
    examples: Examples,
    evaluations: Mapping[str, Examples],
    *,
    device: str | torch.device,
    folder: Path | None,
    **how: Any,
) -> Iterator[tuple[int, Trained]]:
    """Train the last layer of a network whose other weights stay as they are.

    With weights from a file the features are computed once for all assignments. Without, every
    assignment has a random network of its own, drawn from its initial seed.
    """
    place = find_device(device)
    bodies: dict[int | None, list[int]] = {}
    for i, assignment in enumerate(assignments):
        bodies.setdefault(None if training.weights else assignment.init, []).append(i)
    for seed, numbers in bodies.items():
        body = _body(training, examples, folder, seed or 0).to(place)
        name, head = head_of(body)
        probe = _probe(training, head)
        kernels: set[str] = set()
        with reproducible(kernels):
            inputs = _features(body, examples, place)
            shown = {k: _features(body, v, place) for k, v in evaluations.items()}
            factor = _factor(body, head, inputs, resident(examples, place))
        own = [assignments[i] for i in numbers]
        for i, trained in train(probe, own, inputs, shown, device=place, folder=folder, **how):
            doubts = tuple(dict.fromkeys((*doubts_of(kernels), *trained.doubts)))
            yield numbers[i], replace(_named(trained, name, factor), doubts=doubts)


def stand_in(training: Training, examples: Examples, folder: Path | None) -> tuple[Training, Examples]:
    """A layer of the right size and empty features for it, to be timed."""
    head = head_of(_body(training, examples, folder, 0))[1]
    y = examples.y[:1]
    x = np.zeros((len(y), head.in_features), dtype=np.float32)
    return _probe(training, head), Examples(x, y, examples.classes)


def _probe(training: Training, head: torch.nn.Linear) -> Training:
    options: dict[str, Any] = {} if head.bias is not None else {"bias": False}
    bare = replace(training, weights=None, weights_into=None, trained="all")
    return replace(bare, architecture="linear", options=options)


def _body(training: Training, examples: Examples, folder: Path | None, seed: int) -> torch.nn.Module:
    with own_generator(seed):
        model = make_network(training, examples.shape, examples.outputs, folder)
    return model.eval()


def _features(body: torch.nn.Module, examples: Examples, device: torch.device) -> Examples:

    data = resident(examples, device)
    parts = []
    with torch.no_grad():
        for start in range(0, len(data.y), EVALUATION_BATCH):
            x = data.prepared(data.x[start : start + EVALUATION_BATCH])
            parts.append(features_of(body, x).float().cpu())
    return Examples(np.asarray(torch.cat(parts)), examples.y, examples.classes)


def _factor(body: torch.nn.Module, head: torch.nn.Linear, features: Examples, data: Resident) -> float | None:
    """What the network multiplies the outputs of its last layer with; None if it does more."""
    with torch.no_grad():
        own = head(torch.from_numpy(features.x[:8]).to(head.weight.device)).double()
        whole = body(data.prepared(data.x[:8])).double()
    if own.shape != whole.shape:
        return None
    factor = float((own * whole).sum() / (own * own).sum())
    near = torch.allclose(whole, factor * own, rtol=1e-3, atol=1e-3 * float(whole.abs().max()))
    return factor if near and factor else None


def _named(trained: Trained, head: str, factor: float | None) -> Trained:
    """Give the weights of the layer as the network takes them, by the name they have there."""
    renamed = {
        when: {f"{head}.{k.rsplit('.', 1)[-1]}": v / np.float32(factor or 1) for k, v in weights.items()}
        for when, weights in trained.checkpoints.items()
    }
    notes = trained.notes
    if factor is None:
        notes = (*notes, "What the network does after its last layer was left out.")
    path = f"{trained.path}, features computed once"
    return replace(trained, checkpoints=renamed, path=path, notes=notes)
