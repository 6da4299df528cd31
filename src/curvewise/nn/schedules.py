"""Take a lane through a training: its schedule, pokes and checkpoints, and the measurements at the end.

Learning rates are known before the training begins (linear, cosine, drops), or follow what is measured on the way
(plateau, early stopping, the searched schedule).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from curvewise.nn.data import SLOTS, Resident
from curvewise.nn.lane import Lane
from curvewise.nn.optimisers import number_losses
from curvewise.nn.task import Assignment, Keep, Trained, split_rows
from curvewise.nn.training import Training

BURST = 32  # steps that a lane takes before another has its turn
MOST_TRAIN_ROWS = 10_000  # on which the training error is measured
DROP = 0.1  # share of the rate that a drop leaves
DROPS = 2  # drops of the searched schedule
PATIENCE = 10.0  # epochs, as torch's ReduceLROnPlateau waits
SHARE = 1 / 3  # held out by the searched schedule
UNPOKED = "No weight was nudged"  # a note of runs that begins so keeps them out of the twins

Steps = Generator[None, None, None]
Weights = dict[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Goal:
    """Settings of each training, and what is measured and kept at its end."""

    training: Training
    evaluations: Mapping[str, Resident]
    keep: Keep


def drive(lane: Lane, goal: Goal, assignments: Sequence[Assignment]) -> Generator[None, None, list[Trained]]:
    """Train the networks of a lane; yields now and then so that others can go on.

    Returns
    -------
    list of Trained
        One for each assignment.
    """
    with lane.at_work():
        lane.begin(assignments)
    course = Course(lane, goal, assignments)
    yield from CONTROLS.get(goal.training.schedule, fixed)(course)
    yield  # the other lanes get work before this one is waited for
    with lane.at_work():
        if course.back is None:  # weights of an earlier step are not those that were to be nudged
            course.poke()
        return _finish(course)


class Course:
    """One pass of a lane, with what it has collected on the way."""

    def __init__(self, lane: Lane, goal: Goal, assignments: Sequence[Assignment]) -> None:
        self.lane, self.goal, self.assignments = lane, goal, assignments
        self.training = goal.training
        self.taken, self.passed = 0, 0  # steps and, where they are counted, epochs
        self.back: int | None = None  # the step whose weights are the result, where that is not the last
        self.checkpoints: list[dict[str, Weights]] = [{} for _ in assignments]
        self.metrics: dict[str, float] = {}
        self.notes: list[str] = []
        self.trouble: str | None = None

    @property
    def n(self) -> int:
        """Examples that are trained on now."""
        return int(self.lane.rows.shape[1])

    @property
    def most(self) -> int:
        """Steps of the training on these examples; at most that many if it may stop earlier."""
        training = self.training
        if training.steps is not None:
            return training.steps
        return math.ceil(round(training.epochs * self.n / self.lane.setup.batch, 9))

    def patience_steps(self, patience: float) -> float | None:
        """Return the patience in steps, where epochs are not what the training looks after."""
        training = self.training
        if training.patience_steps is not None or training.look_every is None:
            return training.patience_steps
        return patience * self.n / self.lane.setup.batch

    @property
    def rate(self) -> float:
        """The learning rate that the training starts with."""
        return self.training.rates[0]

    def epochs(self, count: int, rate: float) -> Steps:
        """Train for so many more epochs, to the first step that ends at or beyond them."""
        self.passed += count
        yield from self.to(-(-self.passed * self.n // self.lane.setup.batch), rate)

    def to(self, step: int, rate: float) -> Steps:
        """Train up to a step; the rate still rises where the warm-up is not over."""
        rates = np.full(step - self.taken, rate, dtype=np.float32)
        rising = round(self.training.warmup * self.most)
        if self.taken < rising:
            rates *= np.minimum((np.arange(self.taken, step) + 1) / rising, 1).astype(np.float32)
        yield from self.walk(rates)

    def looks(self) -> Iterator[int]:
        """Yield the step before each look at how the training goes: after an epoch, or ``look_every`` steps."""
        training, batch = self.training, self.lane.setup.batch
        if training.steps is None and training.look_every is None:
            for _ in range(math.ceil(training.epochs)):
                self.passed += 1
                yield -(-self.passed * self.n // batch)
            return
        most, every = self.most, training.look_every
        while self.taken < most:
            self.passed += 1
            yield min(-(-self.passed * self.n // batch) if every is None else self.passed * every, most)

    def walk(self, rates: NDArray[np.float32]) -> Steps:
        """Take a step for each rate, poking where it is time."""
        lane, start = self.lane, self.taken
        # Steps are laid out in pieces: as many as a lane has room for, and anew where a weight is nudged.
        cuts = {0, len(rates), *range(0, len(rates), lane.capacity)}
        cuts |= {at - start for at in self._poke_steps() if start <= at < start + len(rates)}
        for first, last in pairwise(sorted(cuts)):
            with lane.at_work():
                self.poke()
                lane.lay(self.taken, self._by_group(rates[first:last]))
            # Batches that come from the host fill a few slots, and then wait for the steps before them.
            burst = BURST if lane.feed is None else SLOTS // 2
            for done in range(0, last - first, burst):
                with lane.at_work():
                    lane.advance(min(burst, last - first - done))
                yield
            self.taken += last - first

    def _by_group(self, rates: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the rates of the next steps, (steps,); with groups (steps, 1 + groups), the others' first."""
        training = self.training
        if not training.groups:
            return rates
        columns = [rates]
        for name, group in training.groups.items():
            if "epochs" in group:
                own = training.group_training(name)
                whole = replace(
                    own, steps=None, epochs=min(group["epochs"], self.most * self.lane.setup.batch / self.n)
                )
                factors = rate_factors(whole, whole.steps_for(self.n))[self.taken : self.taken + len(rates)]
                columns.append(np.pad(own.rates[0] * factors, (0, len(rates) - len(factors))))
            else:
                columns.append(rates * (group.get("rate", self.rate) / self.rate))
        return np.stack(columns, axis=1).astype(np.float32)

    def poke(self) -> None:
        """Nudge a weight of each network whose step for that has come."""
        steps = self._poke_steps()
        if self.taken in steps:
            both = zip(self.assignments, steps, strict=True)
            self.lane.poke([a.poke if at == self.taken else None for a, at in both])

    def unpoked(self, member: int) -> tuple[str, ...]:
        """Return a note where no weight of the result was nudged."""
        poke, at = self.assignments[member].poke, self._poke_steps()[member]
        if poke is None or at < (self.taken + 1 if self.back is None else self.back):
            return ()
        if self.back is not None and at < self.taken:
            return (f"{UNPOKED}: the nudge at epoch {poke.epoch:g} came after the best epoch, and was undone.",)
        return (f"{UNPOKED}: the training ended before epoch {poke.epoch:g}.",)

    def _poke_steps(self) -> list[int]:
        """Return the step before which each network is nudged; −1 for never."""
        epoch = self.n / self.lane.setup.batch
        return [-1 if a.poke is None else round(a.poke.epoch * epoch) for a in self.assignments]

    def judge(self, rows: Tensor, member: int = 0) -> tuple[float | None, float]:
        """Measure error and loss of a network on some examples of the data; numbers have no error."""
        lane, data = self.lane, self.lane.setup.data
        if data.is_numbers:
            parts = lane.look(data, rows, members=(member,))
            losses = [number_losses(o[0], y, str(self.training.loss)) for y, o in parts]
            return None, float(torch.cat(losses).mean())
        own, y = lane.predict(data, rows, members=(member,))[0], data.y[rows]
        loss = torch.nn.functional.cross_entropy(own.double(), y)
        return float((own.argmax(dim=1) != y).double().mean()), float(loss)

    def validate(self, held: Tensor) -> tuple[float, float]:
        """Measure error and loss on held-out rows; infinite once the network has diverged.

        Numbers have no error: their loss takes its place.
        """
        lane = self.lane
        with lane.at_work():
            if lane.setup.data.is_numbers:
                error = loss = self.judge(held)[1]
            else:
                logits, y = lane.predict(lane.setup.data, held)[0], lane.setup.data.y[held]
                # In single precision, unlike in judge: another precision might call another epoch the best, and a
                # stored run would not be made again with the same bits.
                loss = float(torch.nn.functional.cross_entropy(logits, y))
                error = float((logits.argmax(dim=1) != y).double().mean())
        return (error, loss) if math.isfinite(loss) else (math.inf, math.inf)

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
    """Measure the networks of a lane at the end of their training."""
    lane, goal = course.lane, course.goal
    if goal.keep.checkpoints != "none":
        course.checkpoint("end")
    members = range(len(course.assignments))
    shown = {k: _predictions(course, data, members) for k, data in goal.evaluations.items()}
    features = {}
    if goal.keep.features:
        features = {
            k: lane.predict(data, members=members, features=True).cpu().numpy() for k, data in goal.evaluations.items()
        }
    # Epochs as they were passed, which may be fewer than asked for or a fraction.
    counted = {
        "steps": float(course.taken),
        "epochs": course.taken * lane.setup.batch / course.n,
        "rate": course.rate,
        **course.metrics,
    }
    results = []
    for member in members:
        error, loss = course.judge(lane.rows[member, :MOST_TRAIN_ROWS], member)
        predicted: dict[str, Any] = {}
        for name, fields in shown.items():
            for field, values in fields.items():
                predicted.setdefault(field, {})[name] = values[member]
        finite = math.isfinite(loss) and all(np.isfinite(v).all() for sets in predicted.values() for v in sets.values())
        diverged = None
        if not finite:
            remedy = "A lower rate, or smaller targets," if error is None else "A lower learning rate"
            diverged = f"diverged: the training loss is {loss} at the end. {remedy} may help."
        trained = {"train_loss": loss} if error is None else {"train_error": error, "train_loss": loss}
        results.append(
            Trained(
                **predicted,
                metrics={**trained, **counted},
                checkpoints=course.checkpoints[member],
                features={k: f[member] for k, f in features.items()},
                path=lane.path,
                error=course.trouble or diverged,
                notes=(*lane.notes, *course.notes, *course.unpoked(member)),
            )
        )
    return results


def _predictions(course: Course, data: Resident, members: Sequence[int]) -> dict[str, NDArray[np.float32]]:
    """Predict an evaluation set: by the field of Trained, arrays whose first axis is the network.

    Probabilities of classes; or losses of numbers, and the numbers themselves if they are kept.
    """
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


def plateau(course: Course) -> Steps:
    """Lower the rate to a tenth whenever the loss has stalled.

    The loss is the mean training loss of an epoch, or the validation loss where a share of the
    subset is held out for that. As in ``torch.optim.lr_scheduler.ReduceLROnPlateau``, it has
    stalled after more than ``patience`` epochs that did not lower it by one part in 10,000; or
    after more than ``patience_steps`` steps.
    """
    training = course.training
    patience = training.patience_for(course.n, PATIENCE)
    held = _hold_out(course, training.validation) if training.validation else None
    in_steps = course.patience_steps(patience)
    rate, best, waited, drops, since = course.rate, math.inf, 0, 0, 0
    for step in course.looks():
        before = course.taken
        yield from course.to(step, rate)
        steps = course.taken - before
        if held is None:
            with course.lane.at_work():
                loss = float(course.lane.mean_losses(steps)[0])
        else:
            loss = course.validate(held)[1]
        if not math.isfinite(loss):
            when = "epoch" if training.look_every is None else "look"
            course.trouble = f"diverged: the loss is not finite after {when} {course.passed}"
            break
        # 1e-4 is the relative threshold of ReduceLROnPlateau.
        if loss < best * (1 - 1e-4):
            best, waited, since = loss, 0, course.taken
        else:
            waited += 1
        if waited > patience if in_steps is None else course.taken - since > in_steps:
            course.dropped()
            rate, waited, since, drops = rate * DROP, 0, course.taken, drops + 1
    course.metrics["drops"] = float(drops)


def early_stop(course: Course) -> Steps:
    """Stop when the validation error has not fallen for a while, and go back to its best epoch.

    Of epochs with the same error, that with the least validation loss is the best. Where targets
    are numbers, the loss stands for the error throughout. With ``look_every``, the best epoch is
    the best of these steps; ``patience`` counts epochs and ``patience_steps`` steps in either case.
    """
    training = course.training
    patience = training.patience_for(course.n, PATIENCE)
    held = _hold_out(course, training.validation)
    in_steps = course.patience_steps(patience)
    best = Best(course)
    for step in course.looks():
        yield from course.to(step, course.rate)
        best.look(*course.validate(held))
        if best.stalled >= patience if in_steps is None else course.taken - best.fell >= in_steps:
            break
    best.go_back()
    course.back = best.step if best.step < course.taken else None
    best.report()
    course.metrics["best_epoch"] = float(best.epoch)
    if training.look_every is not None:  # epochs as they were passed, not looks
        course.metrics |= {"best_step": float(best.step), "best_epoch": best.step * course.lane.setup.batch / course.n}


def searched(course: Course) -> Steps:
    """Find the schedule on two thirds of the subset, then follow it on all of it.

    Twice, when the error on the last third has not fallen for ``patience`` epochs, training goes
    back to its best epoch and on with a tenth of the rate. How many epochs that makes at each rate
    is for how long the whole subset is then trained, from the same initial weights.
    """
    training, whole = course.training, course.assignments[0]
    patience = training.patience_for(len(whole.rows), PATIENCE)
    data = course.lane.setup.data
    if training.patience is None and not data.is_numbers:
        # Hoiem et al. 2021, appendix: proportional to 1/√n, and 5 epochs at 400 examples per class.
        classes = len(np.unique(data.strata[whole.rows]))
        patience = max(1.0, 5 * math.sqrt(400 * classes / len(whole.rows)))
    held = _hold_out(course, SHARE)
    best, spans, most, cut = Best(course), [], math.ceil(training.epochs), False
    for stage in range(DROPS + 1):
        start = best.epoch
        while best.stalled < patience and best.now < most:
            yield from course.epochs(1, course.rate * DROP**stage)
            best.look(*course.validate(held))
        cut = cut or best.stalled < patience
        best.go_back()
        spans.append(best.epoch - start)
    if cut:
        course.notes.append(f"The search for a schedule was cut short by epochs={most}.")
    course.metrics |= {f"epochs_{i + 1}": float(span) for i, span in enumerate(spans)}
    best.report()
    # Then on the whole subset, from the same initial weights, for as many epochs at each rate.
    with course.lane.at_work():
        course.lane.begin([whole])
    course.taken = course.passed = 0
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
    step, fell : int
        Steps that were taken at the best epoch, and when the error last fell.
    """

    def __init__(self, course: Course) -> None:
        self.course = course
        self.epoch, self.now, self.stalled, self.looks = 0, 0, 0, 0
        self.step, self.fell = 0, 0
        self.error, self.loss = math.inf, math.inf
        with course.lane.at_work():
            self.kept = course.lane.snapshot()

    def look(self, error: float, loss: float) -> None:
        """Look at the next epoch, and keep it if it is better than all before."""
        self.now, self.looks = self.now + 1, self.looks + 1
        self.stalled = 0 if error < self.error else self.stalled + 1
        self.fell = self.course.taken if error < self.error else self.fell
        if (error, loss) < (self.error, self.loss):
            self.step = self.course.taken
            self.epoch, self.error, self.loss = self.now, error, loss
            with self.course.lane.at_work():
                self.kept = self.course.lane.snapshot()

    def report(self) -> None:
        """Record how good it was, or that no epoch was any good."""
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


def _hold_out(course: Course, share: float | str) -> Tensor:
    """Train on a part of the subset from here on; return the rows of the other part."""
    lane, assignment = course.lane, course.assignments[0]
    if assignment.held is None:
        train, held = split_rows(assignment.rows, lane.setup.data.strata, share)
    else:
        train, held = assignment.rows[~np.isin(assignment.rows, assignment.held)], assignment.held
    if not len(held) or not len(train):
        part = share if isinstance(share, str) else f"a share of {share:.2g}"
        course.notes.append(
            f"The subset of {len(assignment.rows)} examples is too small to hold out {part}: its schedule was judged "
            "on the examples trained on."
        )
        train = held = assignment.rows
    with lane.at_work():
        lane.begin([replace(assignment, rows=train)])
        return torch.from_numpy(held).to(lane.setup.device)


CONTROLS: dict[str, Callable[[Course], Iterator[None]]] = {
    "plateau": plateau,
    "early-stop": early_stop,
    "searched": searched,
}


def rate_factors(training: Training, steps: int) -> NDArray[np.float32]:
    """Return the rate of every step, as a share of the training's rate.

    ``linear`` falls from 1 in the first step towards 0, which it would reach one step after the
    last; ``warmup`` rises in equal steps and ends at 1.

    Examples
    --------
    >>> rate_factors(Training(schedule="linear"), 4).tolist()
    [1.0, 0.75, 0.5, 0.25]
    >>> rate_factors(Training(schedule="drops", drops=(0.5,)), 4).round(3).tolist()
    [1.0, 1.0, 0.10000000149011612, 0.10000000149011612]
    """
    rising = round(training.warmup * steps)
    left, past = np.maximum(steps - rising, 1), np.maximum(np.arange(steps) - rising, 0)
    if training.schedule == "linear":
        factors = 1 - past / left
    elif training.schedule == "cosine":
        factors = 0.5 * (1 + np.cos(np.pi * past / left))
    elif training.schedule == "drops":
        done = np.arange(steps) / max(steps, 1)
        factors = DROP ** sum((done >= at).astype(np.float64) for at in training.drops)
    else:
        factors = np.ones(steps)
    if rising:
        factors = factors * np.minimum((np.arange(steps) + 1) / rising, 1)
    return np.asarray(factors, dtype=np.float32)


def drop_steps(training: Training, steps: int) -> list[int]:
    """Return the steps before which the rate drops, where the schedule says so beforehand."""
    if training.schedule != "drops":
        return []
    done = np.arange(steps) / max(steps, 1)
    return [int(np.searchsorted(done, at)) for at in sorted(training.drops)]
