"""Which networks are stacked, and that a stack is nothing but its members."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from curvewise.nn import Assignment, Examples, Keep, Poke, Trained, Training, engine
from curvewise.nn.devices import reproducible
from curvewise.nn.engine import POOL, resident, train
from curvewise.nn.lane import Lane, Setup, make_single, make_stack, stackable
from curvewise.nn.schedules import Goal, drive

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
    plain = Training()
    assert stackable(nn.Linear(4, 2), plain)
    assert stackable(nn.Sequential(nn.Flatten(), nn.Linear(4, 4), nn.GELU(), nn.Linear(4, 2)), plain)
    for model in (
        Own(),
        frozen(),
        nn.Sequential(nn.Linear(4, 2), nn.BatchNorm1d(2)),
        nn.Sequential(nn.Linear(4, 2), nn.Dropout()),
        nn.Sequential(nn.Linear(4, 2), nn.SiLU()),
        nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten()),
    ):
        assert not stackable(model, plain)
    assert stackable(nn.Linear(4, 2), Training(augmentation=("flip", "translate:2", "cutout:3", "alternating-flip")))
    assert not stackable(nn.Linear(4, 2), Training(augmentation=("flip", "noise:0.1")))
    assert not stackable(nn.Linear(4, 2), Training(optimiser="muon"))
    assert not stackable(nn.Linear(4, 2), Training(groups={"weight": {"optimiser": "muon"}}))


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
def test_every_stack_rounds_alike(seed: int, optimiser: str, wide: int, hidden: int, classes: int, test: int) -> None:
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
        for width in (1, 10):
            lane = make_stack(setup, width)()
            order = [runs[(3 * k + 1) % 5] for k in range(10)]  # each in two other places
            some = [one for k in range(0, 10, lane.width) for one in driven(lane, goal, order[k : k + lane.width])]
            for k, other in enumerate(some):
                mine = whole[(3 * k + 1) % 5]
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
    monkeypatch.setattr(engine, "LARGE", large)
    rng = np.random.default_rng(1)
    examples = made(rng, wide, classes, 60)
    training = Training("mlp", options={"width": 16}, batch=batch, steps=6)
    runs = [Assignment(rng.permutation(60)[:40], i, i, i) for i in range(9)]
    together = dict(train(training, runs, examples, {"test": examples}))
    for i, run in enumerate(runs):
        ((_, alone),) = train(training, [run], examples, {"test": examples})
        assert np.array_equal(alone.probabilities["test"], together[i].probabilities["test"])
        assert alone.metrics == together[i].metrics
    ways = set(POOL.lanes)
    assert ways == {"single"} if large == 0 else "single" not in ways


NETS = """
from torch import nn

def odd(shape, classes, width=7):
    return nn.Sequential(
        nn.Flatten(),
        nn.Sequential(nn.Linear(shape[0], width), nn.GELU(approximate="tanh")),
        nn.LayerNorm(width),
        nn.Linear(width, width + 4, bias=False),
        nn.Tanh(),
        nn.Identity(),
        nn.LayerNorm(width + 4, elementwise_affine=False),
        nn.GELU(),
        nn.Linear(width + 4, classes),
    )

def rows(shape, classes):
    shared = nn.Linear(shape[-1], shape[-1])
    layers = nn.LayerNorm(shape), shared, nn.ReLU(), shared, nn.Linear(shape[-1], 3)
    return nn.Sequential(*layers, nn.ReLU(), nn.Flatten(), nn.Linear(3 * shape[1], classes))

def hooked(shape, classes):
    layer = nn.Linear(shape[0], classes)
    layer.register_forward_hook(lambda layer, given, found: 2 * found)
    return layer
"""


@pytest.fixture(scope="module")
def nets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nets")
    (folder / "nets_of_stacks.py").write_text(NETS)
    return folder


@pytest.mark.parametrize("optimiser", ["sgd", "adamw", "ranger"])
@pytest.mark.parametrize(("wide", "width", "classes", "batch"), [(13, 7, 3, 5), (33, 18, 10, 1)])
def test_every_place_is_alike(wide: int, width: int, classes: int, batch: int, optimiser: str, nets: Path) -> None:
    """The same training at all places of two stacks; sides that begin at no boundary of memory."""
    examples = made(np.random.default_rng(0), wide, classes, 40)
    training = Training(
        "nets_of_stacks:odd",
        options={"width": width},
        optimiser=optimiser,
        rate=RATE,
        weight_decay=0.01,
        label_smoothing=0.1,
    )
    data = resident(examples, CPU)
    setup = Setup(training, data, examples.shape, examples.classes, batch, CPU, nets)
    run = Assignment(np.arange(31), 1, 1, 1)
    found = []
    with reproducible():
        for lanes in (4, 20):
            lane = make_stack(setup, lanes)()
            lane.begin([run] * lanes)
            lane.lay(0, np.full(5, RATE, dtype=np.float32))
            lane.advance(5)
            found += [lane.weights(member) for member in range(lanes)]
    first = np.concatenate([w.ravel() for w in found[0].values()])
    for other in found[1:]:
        assert np.array_equal(first, np.concatenate([w.ravel() for w in other.values()]))


class Calls(TorchDispatchMode):
    """What a step asks of torch."""

    def __init__(self) -> None:
        super().__init__()
        self.products: list[tuple[torch.Tensor, ...]] = []
        self.loops: list[torch.Tensor] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        if name in ("bmm", "mm", "addmm", "baddbmm"):
            self.products.append((*args, *(kwargs or {}).values()))
        if name in ("gelu", "gelu_backward", "tanh", "tanh_backward"):
            self.loops.append(args[0])
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("networks", [1, 9])
@pytest.mark.parametrize(("wide", "width", "batch"), [(13, 7, 5), (1, 1, 1), (64, 32, 3)])
def test_matrices_begin_at_boundaries(wide: int, width: int, batch: int, networks: int, nets: Path) -> None:
    """What keeps bits from depending on a place, on whichever CPU this is run."""
    examples = made(np.random.default_rng(0), wide, 3, 40)
    training = Training("nets_of_stacks:odd", options={"width": width}, optimiser="ranger")
    setup = Setup(training, resident(examples, CPU), examples.shape, 3, batch, CPU, nets)
    lane = make_stack(setup, networks)()
    lane.begin([Assignment(np.arange(9), 1, 1, 1)] * networks)
    lane.lay(0, np.full(1, RATE, dtype=np.float32))
    with reproducible(), Calls() as calls:
        lane.advance(1)
    assert len(calls.products) == 8 * lane.width // 4  # two for the first layer, three for others
    for tensors in calls.products:
        for tensor in tensors:
            assert len(tensor) == 4
            assert tensor.data_ptr() % 64 == 0
            assert all(4 * stride % 64 == 0 for stride in tensor.stride() if stride > 1)
    assert len(calls.loops) == 6
    assert all(tensor.numel() % 64 == 0 for tensor in calls.loops)


def test_a_stack_calculates_what_its_networks_do(nets: Path) -> None:
    """Layers on rows of images, normed images, a layer used twice."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, size=(40, 1, 5, 6)).astype(np.uint8)
    examples = Examples(x, rng.integers(0, 3, 40), 3, (0.5,), (0.25,))
    training = Training("nets_of_stacks:rows", rate=0.05, batch=7, steps=5)
    goal = Goal(training, {"test": resident(examples, CPU)}, Keep(checkpoints="end", features=True))
    setup = Setup(training, resident(examples, CPU), examples.shape, 3, 7, CPU, nets)
    runs = [Assignment(rng.permutation(40)[:20], i, i, i) for i in range(3)]
    with reproducible():
        assert stackable(setup.network(), training)
        together = driven(make_stack(setup, 3)(), goal, runs)
        single = make_single(setup)()
        for mine, run in zip(together, runs, strict=True):
            (alone,) = driven(single, goal, [run])
            for name, weight in mine.checkpoints["end"].items():
                other = alone.checkpoints["end"][name]
                np.testing.assert_allclose(weight, other, rtol=1e-3, atol=1e-5)
            for kind in ("probabilities", "features"):
                one, two = (getattr(found, kind)["test"] for found in (mine, alone))
                np.testing.assert_allclose(one, two, rtol=1e-3, atol=1e-5)


def test_hooks_are_called_where_a_network_has_some(nets: Path) -> None:
    examples = made(np.random.default_rng(0), 4, 3, 30)
    training = Training("nets_of_stacks:hooked", steps=0, batch=5)
    ((_, found),) = train(training, [Assignment(np.arange(9), 1)], examples, {"test": examples}, folder=nets)
    assert found.error is None
    assert set(POOL.lanes) == {"single"}


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
        lane = make_stack(setup, 1)()
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


def test_any_number_of_architectures_is_compiled() -> None:
    """Torch gives up compiling a function after eight versions of it; those that follow would round differently."""
    compiled = []

    def backend(graph: torch.fx.GraphModule, _: object) -> torch.fx.GraphModule:
        compiled.append(graph)
        return graph

    step = torch.compile(lambda tensors: sum(tensors) * 2, backend=backend, dynamic=False)
    with reproducible():
        for count in range(1, 12):
            step([torch.ones(2)] * count)
    assert len(compiled) == 11
