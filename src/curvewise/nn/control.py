"""Schedules that watch the training: plateau, early stopping, and the searched schedule."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from curvewise.nn.drive import Course, Steps
from curvewise.nn.order import split_rows
from curvewise.nn.schedules import DROP
from curvewise.nn.task import Assignment

DROPS = 2  # of the searched schedule
PATIENCE = 10.0
SHARE = 1 / 3  # that the searched schedule holds out


def plateau(course: Course) -> Steps:
    """Lower the rate to a tenth whenever the loss has stalled.

    The loss is the mean training loss of an epoch, or the validation loss where a share of the
    subset is held out for that. As in ``torch.optim.lr_scheduler.ReduceLROnPlateau``, it has
    stalled after more than ``patience`` epochs that did not lower it by one part in 10,000.
    """
    training = course.training
    patience = training.patience or PATIENCE
    held = _hold_out(course, training.validation) if training.validation else None
    rate, best, waited, drops = course.rate, math.inf, 0, 0
    for _ in range(math.ceil(training.epochs)):
        before = course.taken
        yield from course.epochs(1, rate)
        steps = course.taken - before
        loss = _train_loss(course, steps) if held is None else _validation(course, held)[1]
        if not math.isfinite(loss):
            course.trouble = f"diverged: the loss is not finite after epoch {course.passed}"
            break
        best, waited = (loss, 0) if loss < best * (1 - 1e-4) else (best, waited + 1)
        if waited > patience:
            course.dropped()
            rate, waited, drops = rate * DROP, 0, drops + 1
    course.metrics["drops"] = float(drops)


def early_stop(course: Course) -> Steps:
    """Stop when the validation error has not fallen for a while, and go back to its best epoch.

    Of epochs with the same error, that with the least validation loss is the best. Where targets
    are numbers, the loss stands for the error throughout.
    """
    training = course.training
    held = _hold_out(course, training.validation)
    patience = training.patience or PATIENCE
    best = Best(course)
    for _ in range(math.ceil(training.epochs)):
        yield from course.epochs(1, course.rate)
        best.look(*_validation(course, held))
        if best.stalled >= patience:
            break
    best.go_back()
    best.report()
    course.metrics["best_epoch"] = float(best.epoch)


def searched(course: Course) -> Steps:
    """Find the schedule on two thirds of the subset, then follow it on all of it.

    Twice, when the error on the last third has not fallen for ``patience`` epochs, training goes
    back to its best epoch and on with a tenth of the rate. How many epochs that makes at each rate
    is what the whole subset is then trained for, from the same initial weights.
    """
    training, whole = course.training, course.assignments[0]
    patience = training.patience or _usual_patience(course, whole)
    held = _hold_out(course, SHARE)
    best, spans, most, cut = Best(course), [], math.ceil(training.epochs), False
    for stage in range(DROPS + 1):
        start = best.epoch
        while best.stalled < patience and best.now < most:
            yield from course.epochs(1, course.rate * DROP**stage)
            best.look(*_validation(course, held))
        cut = cut or best.stalled < patience
        best.go_back()
        spans.append(best.epoch - start)
    if cut:
        course.notes.append(f"The search for a schedule was cut short by epochs={most}.")
    course.metrics |= {f"epochs_{i + 1}": float(span) for i, span in enumerate(spans)}
    best.report()
    yield from _follow(course, whole, spans)


def _usual_patience(course: Course, whole: Assignment) -> float:
    """How long the searched schedule waits."""
    data = course.lane.setup.data
    if data.is_numbers:
        return PATIENCE
    classes = len(np.unique(data.strata[whole.rows]))
    return max(1.0, 5 * math.sqrt(400 * classes / len(whole.rows)))


def _follow(course: Course, whole: Assignment, spans: list[int]) -> Steps:
    """Train on the whole subset for so many epochs at each rate."""
    with course.lane.at_work():
        course.lane.begin([whole])
    course.restart()
    for stage, span in enumerate(spans):
        if stage:
            course.dropped()
        yield from course.epochs(span, course.rate * DROP**stage)


class Best:
    """The best epoch so far, by validation error, then loss.

    Attributes
    ----------
    epoch, now : int
        The best epoch, and the present one; both count from the initial weights along the path
        that leads to them.
    stalled : int
        Epochs since the error last fell, or since training went back.
    """

    def __init__(self, course: Course) -> None:
        self.course = course
        self.epoch, self.now, self.stalled, self.looks = 0, 0, 0, 0
        self.error, self.loss = math.inf, math.inf
        with course.lane.at_work():
            self.kept = course.lane.snapshot()

    def look(self, error: float, loss: float) -> None:
        """Look at the next epoch, and keep it if it is better than all before."""
        self.now, self.looks = self.now + 1, self.looks + 1
        self.stalled = 0 if error < self.error else self.stalled + 1
        if (error, loss) < (self.error, self.loss):
            self.epoch, self.error, self.loss = self.now, error, loss
            with self.course.lane.at_work():
                self.kept = self.course.lane.snapshot()

    def report(self) -> None:
        """Say how good it was, or that no epoch was any good."""
        if math.isfinite(self.error):
            numbers = self.course.lane.setup.data.is_numbers
            self.course.metrics[f"validation_{'loss' if numbers else 'error'}"] = self.error
        elif self.looks:
            self.course.trouble = "diverged: the validation loss was never finite"

    def go_back(self) -> None:
        """Return to the weights of the best epoch."""
        self.now, self.stalled = self.epoch, 0
        with self.course.lane.at_work():
            self.course.lane.restore(self.kept)


def _hold_out(course: Course, share: float) -> Tensor:
    """Train on a part of the subset from here on; give the rows of the other."""
    lane, assignment = course.lane, course.assignments[0]
    train, held = split_rows(assignment.rows, lane.setup.data.strata, share)
    if not len(held) or not len(train):
        course.notes.append(
            f"The subset of {len(assignment.rows)} examples is too small to hold out a share of "
            f"{share:.2g}: its schedule was judged on the examples trained on."
        )
        train = held = assignment.rows
    with lane.at_work():
        lane.begin([replace(assignment, rows=train)])
        return torch.from_numpy(held).to(lane.setup.device)


def _validation(course: Course, held: Tensor) -> tuple[float, float]:
    """Error and loss on held-out rows; infinite once the network has diverged.

    Numbers have no error: their loss takes its place.
    """
    lane = course.lane
    if lane.setup.data.is_numbers:
        with lane.at_work():
            loss = course.judge(held)[1]
        return (loss, loss) if math.isfinite(loss) else (math.inf, math.inf)
    with lane.at_work():
        logits, y = lane.predict(lane.setup.data, held)[0], lane.setup.data.y[held]
        loss = float(torch.nn.functional.cross_entropy(logits, y))
        error = float((logits.argmax(dim=1) != y).double().mean())
    return (error, loss) if math.isfinite(loss) else (math.inf, math.inf)


def _train_loss(course: Course, steps: int) -> float:
    with course.lane.at_work():
        return float(course.lane.mean_losses(steps)[0])


CONTROLS: dict[str, Callable[[Course], Iterator[None]]] = {
    "plateau": plateau,
    "early-stop": early_stop,
    "searched": searched,
}
