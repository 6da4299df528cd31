"""Which networks are stacked, and that a stack is nothing but its members."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from curvewise.nn import Assignment, Examples, Keep, Poke, Trained, Training, crew
from curvewise.nn._flags import reproducible
from curvewise.nn.drive import Goal, drive
from curvewise.nn.engine import resident, train
from curvewise.nn.lane import Lane, Setup
from curvewise.nn.single import make_single
from curvewise.nn.stack import make_stack, stackable

CPU = torch.device("cpu")


class Own(nn.Module):
    """A forward pass that nobody here knows."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x) if self.training else -self.layer(x)


def frozen() -> nn.Module:
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
    model[0].requires_grad_(False)
    return model


def test_only_what_is_known_is_stacked() -> None:
    assert stackable(nn.Linear(4, 2))
    assert stackable(nn.Sequential(nn.Flatten(), nn.Linear(4, 4), nn.GELU(), nn.Linear(4, 2)))
    for model in (
        Own(),
        frozen(),
        nn.Sequential(nn.Linear(4, 2), nn.BatchNorm1d(2)),
        nn.Sequential(nn.Linear(4, 2), nn.Dropout()),
        nn.Sequential(nn.Linear(4, 2), nn.SiLU()),
        nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten()),
    ):
        assert not stackable(model)
    assert stackable(nn.Linear(4, 2), ("flip", "translate:2", "cutout:3"))
    assert not stackable(nn.Linear(4, 2), ("flip", "noise:0.1"))


def made(rng: np.random.Generator, width: int, classes: int, count: int) -> Examples:
    x = rng.normal(size=(count, width)).astype(np.float32)
    return Examples(x, rng.integers(0, classes, count), classes)


def driven(lane: Lane, goal: Goal, assignments: list[Assignment]) -> list[Trained]:
    course = drive(lane, goal, assignments)
    while True:
        try:
            next(course)
        except StopIteration as stop:
            found: list[Trained] = stop.value
            return found


def setup_for(training: Training, examples: Examples) -> Setup:
    return Setup(training, resident(examples, CPU), examples.shape, examples.classes, 5, CPU)


def parts(one: Trained) -> Iterator[Any]:
    yield from one.checkpoints["end"].values()
    yield one.probabilities["test"]
    yield one.features["test"]
    yield np.array(list(one.metrics.values()))


RATE = 0.01


def assert_close(one: Any, two: Any, optimiser: str) -> None:
    """Where a slope is nothing but rounding, an adaptive step of full length follows its sign."""
    if optimiser == "sgd":
        np.testing.assert_allclose(one, two, rtol=1e-3, atol=1e-5)
    else:
        np.testing.assert_allclose(one, two, rtol=1e-3, atol=20 * RATE)
        assert np.median(np.abs(one - two)) < RATE / 10


@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 1000),
    optimiser=st.sampled_from(["sgd", "adamw", "ranger"]),
    wide=st.integers(1, 40),
    hidden=st.integers(1, 20),
    classes=st.integers(1, 12),
    test=st.integers(1, 9),
)
def test_every_stack_rounds_alike(
    seed: int, optimiser: str, wide: int, hidden: int, classes: int, test: int
) -> None:
    rng = np.random.default_rng(seed)
    examples = made(rng, wide, classes, 30)
    options = {"width": hidden}
    training = Training("mlp", options=options, optimiser=optimiser, rate=RATE, steps=4, batch=5)
    runs = [Assignment(rng.permutation(30)[:12], i, i, i) for i in range(5)]
    shown = {"test": resident(made(rng, wide, classes, test), CPU)}
    goal = Goal(training, shown, Keep(checkpoints="end", features=True))
    setup = setup_for(training, examples)
    with reproducible():
        whole = driven(make_stack(setup, 5)(), goal, runs)
        for width in (2, 3, 8):
            lane = make_stack(setup, width)()
            some = [
                one for k in range(0, 5, width) for one in driven(lane, goal, runs[k : k + width])
            ]
            for mine, other in zip(whole, some, strict=True):
                for one, two in zip(parts(mine), parts(other), strict=True):
                    assert np.array_equal(one, two)
        single = make_single(setup)()
        for run, mine in zip(runs, whole, strict=True):
            (alone,) = driven(single, goal, [run])
            for one, two in zip(parts(mine), parts(alone), strict=True):
                assert_close(one, two, optimiser)


@pytest.mark.parametrize("large", [0, 1e9])
@pytest.mark.parametrize(("wide", "classes", "batch"), [(20, 10, 16), (3, 2, 5), (900, 12, 17)])
def test_a_run_alone_has_the_bits_of_its_stack(
    wide: int, classes: int, batch: int, large: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the two ways round differently, all are trained in one of them."""
    monkeypatch.setattr(crew, "LARGE", large)
    rng = np.random.default_rng(1)
    examples = made(rng, wide, classes, 60)
    training = Training("mlp", options={"width": 16}, batch=batch, steps=6)
    runs = [Assignment(rng.permutation(60)[:40], i, i, i) for i in range(9)]
    together = dict(train(training, runs, examples, {"test": examples}))
    for i, run in enumerate(runs):
        ((_, alone),) = train(training, [run], examples, {"test": examples})
        assert np.array_equal(alone.probabilities["test"], together[i].probabilities["test"])
        assert alone.metrics == together[i].metrics
    ways = set(crew.KEPT.lanes or {})
    if min(wide, classes, batch) < crew.SHORT:
        assert ways == {"single"} if large == 0 else "single" not in ways


def test_members_are_poked_each_at_its_own_time() -> None:
    rng = np.random.default_rng(1)
    examples = made(rng, 6, 3, 30)
    training = Training("mlp", options={"width": 8}, steps=6, batch=5)
    goal = Goal(training, {"test": resident(examples, CPU)}, Keep(checkpoints="end"))
    pokes = [None, Poke(1, 0.0), Poke(1, 1.0), Poke(4, 0.5), None]
    rows = np.arange(12)
    runs = [Assignment(rows, 1, 1, 1, poke) for poke in pokes]
    setup = setup_for(training, examples)
    with reproducible():
        found = driven(make_stack(setup, 5)(), goal, runs)
        lane = make_stack(setup, 2)()
        alone = [driven(lane, goal, [run])[0] for run in runs]
    for one, other in zip(found, alone, strict=True):
        assert np.array_equal(one.probabilities["test"], other.probabilities["test"])
    assert np.array_equal(found[0].probabilities["test"], found[4].probabilities["test"])
    assert len({one.probabilities["test"].tobytes() for one in found}) == 4


def test_trainings_longer_than_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is laid out at a time changes nothing."""
    rng = np.random.default_rng(1)
    examples = made(rng, 6, 3, 30)
    training = Training("mlp", options={"width": 8}, steps=20, batch=5)
    goal = Goal(training, {"test": resident(examples, CPU)}, Keep(checkpoints="end"))
    runs = [Assignment(np.arange(i, i + 12), i, i, i, Poke(1, 3.3)) for i in range(2)]
    found = []
    for line in (2**21, 70, 1):
        monkeypatch.setattr("curvewise.nn.lane.LINE", line)
        with reproducible():
            setup = setup_for(training, examples)
            lanes = [make_stack(setup, 2)(), make_single(setup)()]
            found.append([driven(lane, goal, runs[: lane.width])[0] for lane in lanes])
    for other in found[1:]:
        for one, two in zip(found[0], other, strict=True):
            assert np.array_equal(one.probabilities["test"], two.probabilities["test"])
