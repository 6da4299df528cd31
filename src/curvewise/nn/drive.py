"""Take a lane through a training: schedule, pokes, checkpoints, and what to measure at the end."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from curvewise.nn.lane import Lane
from curvewise.nn.losses import number_losses
from curvewise.nn.resident import Resident
from curvewise.nn.schedules import drop_steps, rate_factors
from curvewise.nn.settings import Training
from curvewise.nn.task import Assignment, Keep, Trained

BURST = 32  # steps that a lane takes before another has its turn
MOST_TRAIN_ROWS = 10_000  # on which the training error is measured

Steps = Generator[None, None, None]
Weights = dict[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Goal:
    """What is wanted of each training."""

    training: Training
    evaluations: Mapping[str, Resident]
    keep: Keep


def drive(
    lane: Lane, goal: Goal, assignments: Sequence[Assignment]
) -> Generator[None, None, list[Trained]]:
    """Train the networks of a lane; yields now and then so that others can go on.

    Returns
    -------
    list of Trained
        One for each assignment.
    """
    from curvewise.nn.control import CONTROLS

    with lane.at_work():
        lane.begin(assignments)
    course = Course(lane, goal, assignments)
    if goal.training.controlled:
        yield from CONTROLS[goal.training.schedule](course)
    else:
        yield from fixed(course)
    yield  # the other lanes get work before this one is waited for
    with lane.at_work():
        course.poke()
        return _finish(course)


class Course:
    """One pass of a lane, with what it has collected on the way."""

    def __init__(self, lane: Lane, goal: Goal, assignments: Sequence[Assignment]) -> None:
        self.lane, self.goal, self.assignments = lane, goal, assignments
        self.training = goal.training
        self.taken, self.passed = 0, 0  # steps and, where they are counted, epochs
        self.checkpoints: list[dict[str, Weights]] = [{} for _ in assignments]
        self.metrics: dict[str, float] = {}
        self.notes: list[str] = []
        self.trouble: str | None = None

    @property
    def n(self) -> int:
        """Examples that are trained on now."""
        return int(self.lane.rows.shape[1])

    @property
    def rate(self) -> float:
        """The learning rate that the training starts with."""
        return self.training.rates[0]

    def epochs(self, count: int, rate: float) -> Steps:
        """Go on for so many epochs, to the first step that lies beyond them."""
        self.passed += count
        steps = -(-self.passed * self.n // self.lane.setup.batch) - self.taken
        yield from self.walk(np.full(steps, rate, dtype=np.float32))

    def restart(self) -> None:
        """Count from 0 again."""
        self.taken, self.passed = 0, 0

    def walk(self, rates: NDArray[np.float32]) -> Steps:
        """Take a step for each rate, poking where it is time."""
        lane, start = self.lane, self.taken
        cuts = {0, len(rates), *range(0, len(rates), lane.capacity)}
        cuts |= {at - start for at in self._poke_steps() if start <= at < start + len(rates)}
        for first, last in pairwise(sorted(cuts)):
            with lane.at_work():
                self.poke()
                lane.lay(self.taken, rates[first:last])
            for done in range(0, last - first, BURST):
                with lane.at_work():
                    lane.advance(min(BURST, last - first - done))
                yield
            self.taken += last - first

    def poke(self) -> None:
        """Nudge a weight of each network whose step for that has come."""
        steps = self._poke_steps()
        if self.taken in steps:
            both = zip(self.assignments, steps, strict=True)
            self.lane.poke([a.poke if at == self.taken else None for a, at in both])

    def unpoked(self, member: int) -> tuple[str, ...]:
        """A note where the training was over before a weight was to be nudged."""
        poke = self.assignments[member].poke
        if poke is None or self._poke_steps()[member] <= self.taken:
            return ()
        return (f"No weight was nudged: the training ended before epoch {poke.epoch:g}.",)

    def _poke_steps(self) -> list[int]:
        """Before which step each network is nudged; −1 for never."""
        epoch = self.n / self.lane.setup.batch
        return [-1 if a.poke is None else round(a.poke.epoch * epoch) for a in self.assignments]

    def judge(self, rows: Tensor, member: int = 0) -> tuple[float | None, float]:
        """Error and loss of a network on some examples of the data; numbers have no error."""
        lane, data = self.lane, self.lane.setup.data
        if data.is_numbers:
            parts = lane.look(data, rows, members=(member,))
            losses = [number_losses(o[0], y, str(self.training.loss)) for y, o in parts]
            return None, float(torch.cat(losses).mean())
        own, y = lane.predict(data, rows, members=(member,))[0], data.y[rows]
        loss = torch.nn.functional.cross_entropy(own.double(), y)
        return float((own.argmax(dim=1) != y).double().mean()), float(loss)

    def checkpoint(self, name: str) -> None:
        """Keep the weights as they are now."""
        with self.lane.at_work():
            for member, kept in enumerate(self.checkpoints):
                kept[name] = self.lane.weights(member)

    def dropped(self) -> None:
        """Keep the weights before the rate falls, if that was asked for."""
        if self.goal.keep.checkpoints == "drops":
            self.checkpoint(f"drop-{len(self.checkpoints[0]) + 1}")


def fixed(course: Course) -> Steps:
    """Follow a schedule that is known beforehand."""
    training = course.training
    steps = training.steps_for(course.n)
    rates = course.rate * rate_factors(training, steps)
    drops = drop_steps(training, steps)
    for first, last in pairwise(sorted({0, *drops, steps})):
        for _ in range(drops.count(first)):
            course.dropped()
        yield from course.walk(rates[first:last].astype(np.float32))


def _finish(course: Course) -> list[Trained]:
    lane, goal = course.lane, course.goal
    if goal.keep.checkpoints != "none":
        course.checkpoint("end")
    members = range(len(course.assignments))
    shown = {k: _shown(course, data, members) for k, data in goal.evaluations.items()}
    features = {}
    if goal.keep.features:
        features = {
            k: lane.predict(data, members=members, features=True).cpu().numpy()
            for k, data in goal.evaluations.items()
        }
    train, said = _train_metrics(course), [_of_member(shown, member) for member in members]
    counted = {
        "steps": float(course.taken),
        "epochs": course.taken * lane.setup.batch / course.n,
        "rate": course.rate,
        **course.metrics,
    }
    return [
        Trained(
            **said[member],  # type: ignore[arg-type]  # fields of it that hold arrays
            metrics={**train[member], **counted},
            checkpoints=course.checkpoints[member],
            features={k: f[member] for k, f in features.items()},
            path=lane.path,
            error=course.trouble or _divergence(train[member], said[member]),
            notes=(*lane.notes, *course.notes, *course.unpoked(member)),
        )
        for member in members
    ]


Shown = dict[str, NDArray[np.float32]]
"""What networks say of an evaluation set, by the field of Trained; the first axis is theirs."""


def _of_member(shown: Mapping[str, Shown], member: int) -> dict[str, Shown]:
    fields = {field for found in shown.values() for field in found}
    return {f: {k: found[f][member] for k, found in shown.items()} for f in fields}


def _shown(course: Course, data: Resident, members: Sequence[int]) -> Shown:
    """Probabilities of classes; or losses, and the numbers if they are kept."""
    lane = course.lane
    if not data.is_numbers:
        outputs = lane.predict(data, members=members)
        return {"probabilities": torch.softmax(outputs, dim=-1).cpu().numpy()}
    losses, numbers = [], []
    for y, outputs in lane.look(data, members=members):
        losses.append(number_losses(outputs, y, str(course.training.loss)).float())
        numbers += [outputs.cpu()] if course.goal.keep.predictions else []
    kept = {"predictions": torch.cat(numbers, dim=1).numpy()} if numbers else {}
    return {"losses": torch.cat(losses, dim=1).cpu().numpy(), **kept}


def _train_metrics(course: Course) -> list[dict[str, float]]:
    """Error of classes, and loss, on what was trained on, in evaluation mode."""
    lane, found = course.lane, []
    for member in range(len(course.assignments)):
        error, loss = course.judge(lane.rows[member, :MOST_TRAIN_ROWS], member)
        errors = {} if error is None else {"train_error": error}
        found.append({**errors, "train_loss": loss})
    return found


def _divergence(train: Mapping[str, float], shown: Mapping[str, Shown]) -> str | None:
    said = [values for found in shown.values() for values in found.values()]
    if np.isfinite(train["train_loss"]) and all(np.isfinite(values).all() for values in said):
        return None
    way = "A lower learning rate" if "train_error" in train else "A lower rate, or smaller targets,"
    return f"diverged: the training loss is {train['train_loss']} at the end. {way} may help."
