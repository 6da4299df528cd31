"""Learning rates that are known beforehand, and schedules that watch the training: against torch and by hand."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from torch.nn import functional
from torch.optim import lr_scheduler

from curvewise.nn import Assignment, Examples, Keep, Poke, Trained, Training
from curvewise.nn.augmentation import visits
from curvewise.nn.engine import train
from curvewise.nn.networks import make_network
from curvewise.nn.schedules import Course, drop_steps, rate_factors
from curvewise.nn.task import split_rows


def of_torch(make: Callable[[Any], Any], steps: int) -> list[float]:
    optimiser = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    scheduler = make(optimiser)
    rates = []
    for _ in range(steps):
        rates.append(optimiser.param_groups[0]["lr"])
        optimiser.step()
        scheduler.step()
    return rates


@pytest.mark.parametrize("steps", [1, 2, 7, 100])
def test_they_are_those_of_torch(steps: int) -> None:
    def linear(optimiser: Any) -> Any:
        return lr_scheduler.LinearLR(optimiser, 1.0, 0.0, total_iters=steps)

    def cosine(optimiser: Any) -> Any:
        return lr_scheduler.CosineAnnealingLR(optimiser, T_max=steps)

    for name, make in (("linear", linear), ("cosine", cosine)):
        ours = rate_factors(Training(schedule=name), steps)
        assert ours.dtype == np.float32
        assert np.allclose(ours, of_torch(make, steps), atol=1e-6)
    assert rate_factors(Training(schedule="constant"), steps).tolist() == [1.0] * steps


@pytest.mark.parametrize("steps", [10, 20, 60, 101])
def test_drops_are_milestones(steps: int) -> None:
    shares = (0.75, 0.5)
    at = [int(np.ceil(share * steps)) for share in sorted(shares)]
    training = Training(schedule="drops", drops=shares)

    def milestones(optimiser: Any) -> Any:
        return lr_scheduler.MultiStepLR(optimiser, at, gamma=0.1)

    assert np.allclose(rate_factors(training, steps), of_torch(milestones, steps), rtol=1e-6)
    assert drop_steps(training, steps) == at
    factors = rate_factors(training, steps)
    assert all(factors[k] < 0.2 * factors[k - 1] for k in drop_steps(training, steps))


def test_shares_that_floats_cannot_hold_drop_where_they_say() -> None:
    for tenth in range(1, 10):
        training = Training(schedule="drops", drops=(tenth / 10,))
        assert [drop_steps(training, 10 * k)[0] for k in (1, 3, 7)] == [tenth * k for k in (1, 3, 7)]


def test_drops_that_come_too_late_or_together() -> None:
    training = Training(schedule="drops", drops=(0.5, 0.6, 0.95))
    assert drop_steps(training, 4) == [2, 3, 4]
    assert drop_steps(training, 2) == [1, 2, 2]
    assert rate_factors(training, 1).tolist() == [1.0]
    assert drop_steps(Training(), 10) == []


@pytest.mark.parametrize("schedule", ["constant", "linear", "cosine"])
def test_the_warm_up_rises_to_the_rate_and_the_schedule_goes_on_from_there(schedule: str) -> None:
    training = Training(schedule=schedule, warmup=0.25)
    factors = rate_factors(training, 40)
    assert np.allclose(factors[:10], np.arange(1, 11) / 10)
    assert np.allclose(factors[10:], rate_factors(Training(schedule=schedule), 30))


def test_the_linear_warm_up_is_that_of_transformers_one_step_on() -> None:
    optimization = pytest.importorskip("transformers.optimization")

    def make(optimiser: Any) -> Any:
        return optimization.get_linear_schedule_with_warmup(optimiser, 10, 40)

    theirs = of_torch(make, 40)
    ours = rate_factors(Training(schedule="linear", warmup=0.25), 40)
    assert np.allclose(ours[:10], theirs[1:11])
    assert np.allclose(ours[10:], theirs[10:])


def test_no_steps_no_rates() -> None:
    for schedule in ("constant", "linear", "cosine", "drops"):
        training = Training(schedule=schedule, drops=(0.5,), warmup=0.1)
        assert len(rate_factors(training, 0)) == 0


PLAIN = Training("mlp", options={"width": 12}, batch=16, rate=0.3)
NORMED = replace(PLAIN, options={"width": 12, "batch_norm": True}, rate=0.1)
ADAM = replace(PLAIN, rate=0.02, optimiser="adam")


@pytest.fixture(scope="module")
def digits() -> Examples:
    data = load_digits()
    return Examples((data.data[:500] / 16).astype(np.float32), data.target[:500].astype(int), 10)


def assigned(seed: int, n: int) -> Assignment:
    rows = np.random.default_rng(seed).permutation(400)[:n]
    return Assignment(rows, seed, seed + 100, seed + 200)


def run(training: Training, assignment: Assignment, digits: Examples) -> Trained:
    keep = Keep(checkpoints="drops")
    test = Examples(digits.x[400:], digits.y[400:], 10)
    ((_, found),) = train(training, [assignment], digits, {"test": test}, keep=keep)
    assert found.error is None, found.error
    return found


@dataclass
class Loop:
    """Plain training of one network, an epoch at a time."""

    training: Training
    digits: Examples
    assignment: Assignment
    rows: NDArray[np.int64]

    def __post_init__(self) -> None:
        torch.manual_seed(self.assignment.init)
        self.model = make_network(self.training, self.digits.shape, 10)
        weights = self.model.parameters()
        self.optimiser = (
            torch.optim.SGD(weights, lr=1.0, momentum=0.9)
            if self.training.optimiser == "sgd"
            else torch.optim.Adam(weights)
        )
        self.x, self.y = torch.from_numpy(self.digits.x), torch.from_numpy(self.digits.y)
        self.steps, self.passed = 0, 0
        self.batch = self.training.batch_for(len(self.assignment.rows))

    def epochs(self, count: int, rate: float) -> list[float]:
        """Train up to the end of the next epochs; the losses of the steps."""
        self.passed += count
        return self.to(math.ceil(self.passed * len(self.rows) / self.batch), rate)

    def to(self, last: int, rate: float, rising: int = 1) -> list[float]:
        """Train up to a step, in the course of which the rate rises in so many steps."""
        rows, order = torch.from_numpy(self.rows)[None], torch.tensor([self.assignment.order])
        line = visits(order, rows, self.steps * self.batch, last * self.batch)[0]
        losses = []
        for step, index in enumerate(line.view(last - self.steps, self.batch), self.steps):
            self.optimiser.param_groups[0]["lr"] = rate * min((step + 1) / rising, 1)
            self.optimiser.zero_grad()
            loss = functional.cross_entropy(self.model(self.x[index]), self.y[index])
            loss.backward()
            self.optimiser.step()
            losses.append(float(loss.detach()))
        self.steps = last
        return losses

    def judged(self, held: NDArray[np.int64]) -> tuple[float, float]:
        with torch.no_grad():
            logits = self.model.eval()(self.x[held])
        self.model.train()
        wrong = float((logits.argmax(1) != self.y[held]).double().mean())
        return wrong, float(functional.cross_entropy(logits, self.y[held]))

    def kept(self) -> Any:
        return copy.deepcopy((self.model.state_dict(), self.optimiser.state_dict()))

    def back(self, kept: Any) -> None:
        model, optimiser = copy.deepcopy(kept)
        self.model.load_state_dict(model)
        self.optimiser.load_state_dict(optimiser)


def assert_weights(kept: Any, state: dict[str, torch.Tensor]) -> None:
    for key, weight in state.items():
        assert np.allclose(kept[key], weight, rtol=1e-4, atol=1e-5), key


# Plateau


@pytest.mark.parametrize("validation", [0.0, 0.25])
@pytest.mark.parametrize("patience", [0.5, 1, 3])
def test_a_plateau_is_that_of_torch(digits: Examples, validation: float, patience: float) -> None:
    training = replace(PLAIN, schedule="plateau", epochs=25, patience=patience, validation=validation, rate=0.5)
    one = assigned(1, 50)
    found = run(training, one, digits)
    rows, held = split_rows(one.rows, digits.y, validation) if validation else (one.rows, one.rows)
    loop = Loop(training, digits, one, rows)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(
        torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.5), factor=0.1, patience=patience
    )
    drops: list[dict[str, torch.Tensor]] = []
    for _ in range(25):
        rate = scheduler.optimizer.param_groups[0]["lr"]
        loss = float(np.mean(loop.epochs(1, rate)))
        scheduler.step(loop.judged(held)[1] if validation else loss)
        if scheduler.optimizer.param_groups[0]["lr"] < 0.5 * rate:
            drops.append(copy.deepcopy(loop.model.state_dict()))
    assert drops or patience == 3
    # torch stops lowering the rate at 1e-8
    assert found.metrics["drops"] >= len(drops)
    assert found.metrics["steps"] == loop.steps == math.ceil(25 * len(rows) / 16)
    for number, weights in enumerate(drops, 1):
        assert_weights(found.checkpoints[f"drop-{number}"], weights)
    assert_weights(found.checkpoints["end"], loop.model.state_dict())


# Early stopping


@pytest.mark.parametrize("patience", [1, 4, 100])
def test_early_stopping_gives_the_best_epoch(digits: Examples, patience: int) -> None:
    training = replace(PLAIN, schedule="early-stop", validation=0.3, epochs=14, patience=patience, rate=0.5)
    one = assigned(2, 70)
    found = run(training, one, digits)
    rows, held = split_rows(one.rows, digits.y, 0.3)
    loop = Loop(training, digits, one, rows)
    history, weights = [], []
    for _ in range(14):
        loop.epochs(1, 0.5)
        history.append(loop.judged(held))
        weights.append(copy.deepcopy(loop.model.state_dict()))
        errors = [error for error, _ in history]
        if len(errors) - 1 - errors.index(min(errors)) >= patience:
            break
    best = min(range(len(history)), key=lambda i: history[i])
    assert found.metrics["best_epoch"] == best + 1
    assert found.metrics["validation_error"] == history[best][0]
    assert found.metrics["steps"] == loop.steps
    assert_weights(found.checkpoints["end"], weights[best])
    # what is reported of the training is of the rows trained on, at that epoch
    loop.model.load_state_dict(weights[best])
    error, loss = loop.judged(rows)
    assert found.metrics["train_error"] == error
    assert found.metrics["train_loss"] == pytest.approx(loss, rel=1e-3)


def test_the_best_epoch_has_its_running_statistics(digits: Examples) -> None:
    training = replace(NORMED, schedule="early-stop", validation=0.3, epochs=12, patience=12)
    one = assigned(4, 60)
    found = run(training, one, digits)
    loop = Loop(training, digits, one, split_rows(one.rows, digits.y, 0.3)[0])
    loop.epochs(int(found.metrics["best_epoch"]), 0.1)
    assert found.metrics["best_epoch"] < 12
    assert_weights(found.checkpoints["end"], loop.model.state_dict())


# Steps, warm-up and a patience that depends on the size


@pytest.mark.parametrize(("look", "patience"), [(7, 21), (None, 20), (10, 1000)])
def test_early_stopping_counts_steps(digits: Examples, look: int | None, patience: int) -> None:
    lengths = {"steps": 65, "look_every": look, "patience_steps": patience, "warmup": 0.4}
    training = replace(PLAIN, schedule="early-stop", validation=0.3, rate=0.5, **lengths)
    one = assigned(2, 70)
    found = run(training, one, digits)
    rows, held = split_rows(one.rows, digits.y, 0.3)
    loop = Loop(training, digits, one, rows)
    history: list[tuple[tuple[float, float], int, Any]] = []
    while loop.steps < 65:
        passed = len(history) + 1
        loop.to(min(65, passed * look if look else math.ceil(passed * len(rows) / 16)), 0.5, rising=26)
        history.append((loop.judged(held), loop.steps, copy.deepcopy(loop.model.state_dict())))
        lowest = min(error for (error, _), _, _ in history)
        fell = next(step for (error, _), step, _ in history if error == lowest)
        if loop.steps - fell >= patience:
            break
    best = min(history, key=lambda looked: looked[0])
    assert found.metrics["steps"] == loop.steps
    assert (found.metrics["steps"] == 65) == (patience == 1000)
    assert_weights(found.checkpoints["end"], best[2])
    if look:
        assert found.metrics["best_step"] == best[1]
        assert found.metrics["best_epoch"] == pytest.approx(best[1] * 16 / len(rows))


def test_a_small_subset_trains_for_as_many_steps_as_a_large_one(digits: Examples) -> None:
    lengths = {"steps": 300, "look_every": 50, "patience_steps": 300}
    training = replace(PLAIN, schedule="early-stop", validation=0.2, **lengths)
    few, many = (run(training, assigned(5, n), digits).metrics for n in (10, 300))
    assert few["steps"] == many["steps"] == 300
    assert few["epochs"] == 375  # batches of 10, where 8 are trained on
    assert many["epochs"] == 20


def test_a_lower_loss_is_better_and_does_not_prolong_the_wait(
    digits: Examples, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Course, "validate", lambda course, held: (0.5, 1 / course.taken))
    lengths = {"steps": 100, "look_every": 5, "patience_steps": 20}
    found = run(replace(PLAIN, schedule="early-stop", validation=0.3, **lengths), assigned(2, 40), digits)
    assert found.metrics["steps"] == found.metrics["best_step"] == 25


def best_at_ten(course: Course, held: Any) -> tuple[float, float]:
    """Judge the weights after ten steps to be the best."""
    return abs(course.taken - 10) / 100, 1.0


def test_a_nudge_after_the_best_epoch_is_noted_and_leaves_the_best_as_it_was(
    digits: Examples, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Course, "validate", best_at_ten)
    lengths = {"steps": 100, "look_every": 5, "patience_steps": 20}
    training, one = replace(PLAIN, schedule="early-stop", validation=0.3, **lengths), assigned(2, 40)
    plain = run(training, one, digits)
    assert (plain.metrics["best_step"], plain.metrics["steps"]) == (10, 30)
    epoch = plain.metrics["epochs"] / 30
    for step, note in ((9, ""), (10, "was undone"), (29, "was undone"), (30, "ended before"), (40, "ended before")):
        found = run(training, replace(one, poke=Poke(1, step * epoch, 3.0)), digits)
        same = all(np.array_equal(found.checkpoints["end"][k], w) for k, w in plain.checkpoints["end"].items())
        assert same == bool(note)
        assert len(found.notes) == bool(note)
        assert all(text.startswith("No weight was nudged") and note in text for text in found.notes)


@pytest.mark.parametrize("look", [1, 2, 3])
def test_patience_counts_epochs_however_often_it_is_looked(
    look: int, digits: Examples, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Course, "validate", lambda course, held: (0.5, 1.0))
    training = replace(PLAIN, steps=100, validation=0.3, patience=3, look_every=look)
    found = run(replace(training, schedule="early-stop"), assigned(2, 40), digits).metrics
    per_epoch = found["steps"] / found["epochs"]
    # The error falls at the first look, and from there it takes three epochs, to the next look.
    assert found["steps"] == look + look * math.ceil(3 * per_epoch / look)
    drops = run(replace(training, schedule="plateau"), assigned(2, 40), digits).metrics["drops"]
    wait = look * (math.floor(3 * per_epoch / look) + 1)
    assert drops == (100 - look) // wait


def test_a_plateau_counts_steps(digits: Examples) -> None:
    training = replace(PLAIN, schedule="plateau", rate=0.5, steps=90, look_every=5, patience_steps=10)
    one = assigned(1, 50)
    found = run(training, one, digits)
    loop = Loop(training, digits, one, one.rows)
    rate, best, since, drops = 0.5, math.inf, 0, 0
    while loop.steps < 90:
        loss = float(np.mean(loop.to(loop.steps + 5, rate)))
        if loss < best * (1 - 1e-4):
            best, since = loss, loop.steps
        elif loop.steps - since > 10:
            rate, since, drops = rate / 10, loop.steps, drops + 1
    assert found.metrics["drops"] == drops > 0
    assert_weights(found.checkpoints["end"], loop.model.state_dict())


@pytest.mark.parametrize("schedule", ["plateau", "early-stop", "searched"])
def test_the_warm_up_is_a_share_of_the_longest_training(digits: Examples, schedule: str) -> None:
    validation = 0.25 if schedule == "early-stop" else 0.0
    training = replace(PLAIN, schedule=schedule, epochs=6, warmup=0.5, validation=validation, patience=6)
    one = assigned(3, 64)
    found = run(training, one, digits)
    if schedule == "searched":
        assert "drop-1" in found.checkpoints
        spans = [int(found.metrics[f"epochs_{i}"]) for i in (1, 2, 3)]
        loop = Loop(training, digits, one, one.rows)
        for stage, span in enumerate(spans):
            loop.to(loop.steps + 4 * span, 0.3 * 0.1**stage, rising=12)
    else:
        rows = split_rows(one.rows, digits.y, 0.25)[0] if validation else one.rows
        loop = Loop(training, digits, one, rows)
        epochs = int(found.metrics.get("best_epoch", 6))
        loop.to(math.ceil(epochs * len(rows) / 16), 0.3, rising=round(0.5 * math.ceil(6 * len(rows) / 16)))
    assert_weights(found.checkpoints["end"], loop.model.state_dict())
    sudden = run(replace(training, warmup=0.0), one, digits)
    assert not np.array_equal(*(next(iter(f.checkpoints["end"].values())) for f in (found, sudden)))


@pytest.mark.parametrize("schedule", ["early-stop", "searched"])
def test_the_patience_may_hold_at_one_size_and_go_as_the_root(digits: Examples, schedule: str) -> None:
    looks: list[int] = []

    def stuck(course: Any, held: Any) -> tuple[float, float]:
        looks[-1] += 1
        return (0.5, 1.0)

    validation = 0.2 if schedule == "early-stop" else 0.0
    training = replace(PLAIN, schedule=schedule, epochs=500, patience=3, patience_n=160, validation=validation)
    for n, patience in ((160, 3), (40, 6), (18, 9), (400, 2)):
        looks.append(0)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Course, "validate", stuck)
            run(replace(training, architecture="linear", options={}), assigned(n, n), digits)
        assert patience == math.ceil(3 * math.sqrt(160 / n))
        assert looks[-1] == 1 + patience * (3 if schedule == "searched" else 1)


# The searched schedule


def searched_by_hand(training: Training, digits: Examples, one: Assignment) -> tuple[list[int], list[Any], Loop]:
    """Epochs at each rate, weights before the drops, and the loop at its end."""
    rows, held = split_rows(one.rows, digits.y, 1 / 3)
    if not len(held):
        rows = held = one.rows
    classes = len(set(digits.y[one.rows]))
    patience = training.patience or max(1, 5 * math.sqrt(400 / (len(one.rows) / classes)))
    rate = training.rates[0]
    loop = Loop(training, digits, one, rows)
    best, at, kept, spans = (math.inf, math.inf), 0, loop.kept(), []
    for stage in range(3):
        epoch, fell, start = at, at, at
        while epoch - fell < patience and epoch < training.epochs:
            loop.epochs(1, rate * 0.1**stage)
            epoch += 1
            now = loop.judged(held)
            fell = epoch if now[0] < best[0] else fell
            if now < best:
                best, at, kept = now, epoch, loop.kept()
        loop.back(kept)
        spans.append(at - start)
    whole = Loop(training, digits, one, one.rows)
    before = []
    for stage, span in enumerate(spans):
        if stage:
            before.append(copy.deepcopy(whole.model.state_dict()))
        whole.epochs(span, rate * 0.1**stage)
    return spans, before, whole


@pytest.mark.parametrize(
    ("n", "patience", "epochs"),
    [(90, 3, 60), (90, None, 25), (50, 2, 60), (20, 2, 40), (5, 1, 10), (2, 2, 9), (1, 1, 5)],
)
def test_a_searched_schedule_is_found_and_followed(
    digits: Examples, n: int, patience: float | None, epochs: int
) -> None:
    training = replace(PLAIN, schedule="searched", patience=patience, epochs=epochs)
    one = assigned(n, n)
    found = run(training, one, digits)
    spans, before, whole = searched_by_hand(training, digits, one)
    assert [found.metrics[f"epochs_{i}"] for i in (1, 2, 3)] == spans
    assert sum(spans) <= epochs
    assert found.metrics["steps"] == whole.steps == math.ceil(sum(spans) * n / min(16, n))
    assert list(found.checkpoints) == ["drop-1", "drop-2", "end"]
    assert_weights(found.checkpoints["drop-1"], before[0])
    assert_weights(found.checkpoints["drop-2"], before[1])
    assert_weights(found.checkpoints["end"], whole.model.state_dict())


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("base", [NORMED, ADAM])
def test_going_back_restores_statistics_and_moments(digits: Examples, seed: int, base: Training) -> None:
    training = replace(base, schedule="searched", patience=4, epochs=40)
    found = run(training, assigned(seed, 80), digits)
    spans, _, whole = searched_by_hand(training, digits, assigned(seed, 80))
    assert [found.metrics[f"epochs_{i}"] for i in (1, 2, 3)] == spans
    for key, weight in whole.model.state_dict().items():
        assert np.allclose(found.checkpoints["end"][key], weight, rtol=1e-2, atol=1e-3)


def test_small_subsets_search_for_longer(digits: Examples) -> None:
    """The patience is 5 epochs at 400 examples of each class, and goes as n^-1/2."""
    waits = []

    def stuck(course: Any, held: Any) -> tuple[float, float]:
        waits[-1] += 1
        return (0.5, 1.0)  # never better than the first

    for classes, each in ((2, 25), (4, 16), (1, 100)):
        rows = np.concatenate([np.flatnonzero(digits.y == c)[:each] for c in range(classes)])
        waits.append(0)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Course, "validate", stuck)
            training = replace(PLAIN, schedule="searched", epochs=1000, architecture="linear")
            found = run(replace(training, options={}), Assignment(rows), digits)
        patience = math.ceil(5 * math.sqrt(400 / (len(rows) / classes)))
        assert waits[-1] == 1 + 3 * patience
        assert [found.metrics[f"epochs_{i}"] for i in (1, 2, 3)] == [1, 0, 0]
        assert found.notes == ()


def test_what_the_search_could_not_do_is_told(digits: Examples) -> None:
    training = replace(PLAIN, schedule="searched", epochs=3)
    assert "cut short by epochs=3" in run(training, assigned(1, 60), digits).notes[0]
    training = replace(PLAIN, schedule="searched", epochs=300, patience=1)
    assert run(training, assigned(1, 60), digits).notes == ()
    assert "too small to hold out" in run(training, assigned(1, 1), digits).notes[0]


def test_a_rate_that_diverges_leaves_the_lower_ones(digits: Examples, monkeypatch: pytest.MonkeyPatch) -> None:
    """The search goes back to the initial weights and on with a tenth."""
    looks, real = [], Course.validate

    def diverging(course: Any, held: Any) -> tuple[float, float]:
        looks.append(1)
        return (math.inf, math.inf) if len(looks) <= 2 else real(course, held)

    monkeypatch.setattr(Course, "validate", diverging)
    training = replace(PLAIN, schedule="searched", patience=2, epochs=30, rate=1.0)
    one = assigned(3, 60)
    found = run(training, one, digits)
    assert found.metrics["epochs_1"] == 0
    assert found.metrics["epochs_2"] > 0
    start = Loop(training, digits, one, one.rows)
    assert_weights(found.checkpoints["drop-1"], start.model.state_dict())
    start.epochs(int(found.metrics["epochs_2"]), 0.1)
    assert_weights(found.checkpoints["drop-2"], start.model.state_dict())


def test_a_warm_up_that_was_once_passed_over_makes_another_run():
    assert "warmup_watched" in Training(schedule="early-stop", validation=0.2, warmup=0.1).as_dict()
    for old in (Training(schedule="early-stop", validation=0.2), Training(schedule="linear", warmup=0.1)):
        assert "warmup_watched" not in old.as_dict()
