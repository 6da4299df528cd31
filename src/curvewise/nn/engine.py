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
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from weakref import WeakKeyDictionary

import torch

from curvewise.errors import CurvewiseError, InputError
from curvewise.nn._flags import doubts_of, reproducible
from curvewise.nn.crew import (
    CPU_STACKS,
    MOST_LANES,
    find_lanes,
    forget,
    make_probe,
    seconds_per_step,
    taken,
)
from curvewise.nn.devices import ran_out_of_memory, spoilt_device
from curvewise.nn.drive import Goal, drive
from curvewise.nn.lane import Lane, Setup
from curvewise.nn.resident import Resident, find_device
from curvewise.nn.settings import Training
from curvewise.nn.single import check_outputs, draws, make_single, stochastic
from curvewise.nn.stack import stackable
from curvewise.nn.targets import check_alike, settle_training
from curvewise.nn.task import Assignment, Examples, Keep, Trained

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
        from curvewise.nn.heads import train_heads

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
    place, training = find_device(device), settle_training(training, examples.outputs)
    if training.trained == "head":
        from curvewise.nn.heads import stand_in

        training, examples = stand_in(training, examples, folder)
    setup = _setup(training, examples, training.batch_for(n), place, folder)
    try:
        seconds = _share(setup)
    except CurvewiseError:
        raise
    except Exception as error:
        if _is_serious(error):
            raise
        raise InputError(
            f"The network fails in a step on {setup.batch} examples ({error}): correct it."
        ) from error
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


def _setup(
    training: Training, examples: Examples, batch: int, device: torch.device, folder: Path | None
) -> Setup:
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


def _seeded(
    lane: Lane, goal: Goal, assignments: Sequence[Assignment]
) -> Generator[None, None, list[Trained]]:
    """Drive a lane; networks that draw numbers themselves get them from the augmentation seed."""
    if lane.graph is not None or lane.width > 1:  # and so does not, see _draws
        return (yield from drive(lane, goal, assignments))
    with torch.random.fork_rng(devices=[lane.setup.device] if lane.setup.cuda else []):
        torch.manual_seed(assignments[0].augmentation)
        return (yield from drive(lane, goal, assignments))
