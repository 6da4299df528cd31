"""Each rule against someone else's implementation, step by step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from pytorch_optimizer import Ranger as OtherRanger
from torch import Tensor

from curvewise.nn.optimisers import make_optimiser
from curvewise.nn.training import Training

SHAPES = [(7, 5), (7,), (4, 3, 3, 3), (1,), (33, 17), (2, 9)]
STEPS = 40


def _drawn(seed: int, scale: float = 1.0) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=generator) * scale for shape in SHAPES]


def _rates() -> list[float]:
    return [0.02 * (1 - step / STEPS) + 1e-3 for step in range(STEPS)]


@torch.no_grad()
def _ours(training: Training, seed: int, gradients: Callable[[int], list[Tensor]]) -> list[Any]:
    params = _drawn(seed)
    rule = make_optimiser(training)
    state = rule.start(params)
    path = []
    for step, rate in enumerate(_rates()):
        count = torch.tensor(float(step + 1))
        rule.step(params, gradients(step), state, torch.tensor(rate), count)
        path.append([p.clone() for p in params])
    return path


def _theirs(
    make: Callable[[list[Tensor]], torch.optim.Optimizer], seed: int, gradients: Callable[[int], list[Tensor]]
) -> list[Any]:
    params = [p.requires_grad_() for p in _drawn(seed)]
    optimizer = make(params)
    path = []
    for step, rate in enumerate(_rates()):
        for group in optimizer.param_groups:
            group["lr"] = rate
        for p, g in zip(params, gradients(step), strict=True):
            p.grad = g
        optimizer.step()
        path.append([p.detach().clone() for p in params])
    return path


def _noise(seed: int) -> Callable[[int], list[Tensor]]:
    return lambda step: _drawn(1000 * seed + step, scale=0.1 * (1 + step % 5))


def _assert_close(ours: list[Any], theirs: list[Any], tolerance: float) -> None:
    assert len(ours) == len(theirs) == STEPS
    for mine, other in zip(ours, theirs, strict=True):
        for a, b in zip(mine, other, strict=True):
            assert float((a - b).norm() / b.norm()) < tolerance


CASES = {
    "sgd": lambda p, decay: torch.optim.SGD(p, lr=1.0, momentum=0.9, weight_decay=decay),
    "adam": lambda p, decay: torch.optim.Adam(p, lr=1.0, weight_decay=decay),
    "adamw": lambda p, decay: torch.optim.AdamW(p, lr=1.0, weight_decay=decay),
    # degenerated_to_sgd: without it the first five steps would climb (a factor of −1), where
    # Wright's rule goes down the unbiased mean gradient
    "ranger": lambda p, decay: OtherRanger(p, lr=1.0, weight_decay=decay, degenerated_to_sgd=True),
}


@pytest.mark.parametrize("decay", [0.0, 0.05])
@pytest.mark.parametrize("name", list(CASES))
def test_every_step_is_the_reference_implementation_s(name: str, decay: float) -> None:
    for seed in range(3):
        gradients = _noise(seed)
        ours = _ours(Training(optimiser=name, weight_decay=decay), seed, gradients)
        theirs = _theirs(lambda p: CASES[name](p, decay), seed, gradients)
        _assert_close(ours, theirs, 1e-6)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_decoupled_decay_is_beside_the_step_along_the_gradient(momentum: float) -> None:
    gradients = _noise(4)
    ours = _ours(Training(optimiser="sgdw", momentum=momentum, weight_decay=0.05), 4, gradients)
    weights = [p.double() for p in _drawn(4)]
    velocity = [torch.zeros_like(w) for w in weights]
    for step, rate in enumerate(_rates()):
        velocity = [momentum * v + g for v, g in zip(velocity, gradients(step), strict=True)]
        # w ← w − rate · decay · w − rate · v, where v never sees the decay
        weights = [w - rate * 0.05 * w - rate * v for w, v in zip(weights, velocity, strict=True)]
        for mine, expected in zip(ours[step], weights, strict=True):
            assert float((mine - expected).norm() / expected.norm()) < 1e-6
    added = _ours(Training(optimiser="sgd", momentum=momentum, weight_decay=0.05), 4, gradients)
    apart = [float((a - b).norm() / b.norm()) for a, b in zip(ours[-1], added[-1], strict=True)]
    assert (min(apart) > 1e-3) == (momentum > 0)  # ten times the decay under a momentum of 0.9


def test_plain_gradient_descent_has_no_state() -> None:
    training = Training(optimiser="sgd", momentum=0.0, weight_decay=0.1)
    assert make_optimiser(training).start(_drawn(0)) == {}
    theirs = _theirs(lambda p: torch.optim.SGD(p, lr=1.0, weight_decay=0.1), 0, _noise(0))
    _assert_close(_ours(training, 0, _noise(0)), theirs, 1e-6)


@pytest.mark.parametrize("name", list(CASES))
def test_the_rules_differ(name: str) -> None:
    """The comparison above would be empty if every rule gave the same steps."""
    last = {n: _ours(Training(optimiser=n, weight_decay=0.05), 0, _noise(0))[-1] for n in CASES}
    others = [n for n in CASES if n != name]
    assert all(float((last[name][0] - last[n][0]).norm()) > 1e-3 for n in others)


@pytest.mark.parametrize("decay", [0.0, 0.05])
@pytest.mark.parametrize("name", list(CASES))
@torch.no_grad()
def test_a_stack_takes_each_model_s_own_steps_bit_for_bit(name: str, decay: float) -> None:
    models, rule = 5, make_optimiser(Training(optimiser=name, weight_decay=decay))
    alone = [_drawn(seed) for seed in range(models)]
    together = [torch.stack(p) for p in zip(*alone, strict=True)]
    states, state = [rule.start(p) for p in alone], rule.start(together)
    rate = torch.tensor(0.03)
    for step in range(25):
        count = torch.tensor(float(step + 1))
        grads = [_drawn(100 * step + m, scale=0.1) for m in range(models)]
        for m in range(models):
            rule.step(alone[m], grads[m], states[m], rate, count)
        stacked = [torch.stack(g) for g in zip(*grads, strict=True)]
        rule.step(together, stacked, state, rate, count, stacked=True)
    for m in range(models):
        assert all(torch.equal(a, t[m]) for a, t in zip(alone[m], together, strict=True))


@pytest.mark.parametrize("name", list(CASES))
@torch.no_grad()
def test_reset_is_a_new_start(name: str) -> None:
    rule = make_optimiser(Training(optimiser=name, weight_decay=0.01))
    params = _drawn(0)
    state = rule.start(params)
    tensors = {key: [t.data_ptr() for t in ts] for key, ts in state.items()}

    def train() -> list[Tensor]:
        for step in range(13):
            count = torch.tensor(float(step + 1))
            rule.step(params, _noise(3)(step), state, torch.tensor(0.01), count)
        return [p.clone() for p in params]

    first = train()
    for p, start in zip(params, _drawn(0), strict=True):
        p.copy_(start)
    rule.reset(params, state)
    assert {key: [t.data_ptr() for t in ts] for key, ts in state.items()} == tensors
    assert all(torch.equal(a, b) for a, b in zip(train(), first, strict=True))


@pytest.mark.parametrize("name", list(CASES))
@torch.no_grad()
def test_gradients_and_rate_are_left_alone(name: str) -> None:
    rule = make_optimiser(Training(optimiser=name, weight_decay=0.01))
    params, grads, rate = _drawn(0), _drawn(1), torch.tensor(0.1)
    state = rule.start(params)
    for _ in range(2):
        rule.step(params, grads, state, rate, torch.tensor(1.0))
    assert all(torch.equal(a, b) for a, b in zip(grads, _drawn(1), strict=True))
    assert rate == torch.tensor(0.1)


@torch.no_grad()
def test_look_ahead_moves_halfway_after_every_sixth_step() -> None:
    rule = make_optimiser(Training(optimiser="ranger"))
    params = [torch.tensor([3.0])]
    state = rule.start(params)
    for step in range(1, 13):
        rule.step(params, [torch.ones(1)], state, torch.tensor(0.1), torch.tensor(float(step)))
        if step % 6:
            assert not torch.equal(params[0], state["slow"][0])
        else:
            assert torch.equal(params[0], state["slow"][0])
    # five steps of 0.1 along a gradient of 1, a rectified sixth, then halfway back to 3
    assert 2.4 < float(params[0]) < 3


@pytest.mark.parametrize("stacked", [False, True])
@pytest.mark.parametrize("name", list(CASES))
@torch.no_grad()
def test_a_step_never_asks_the_host(name: str, stacked: bool) -> None:
    """Tensors without memory have no value to look at: a branch on one would raise."""
    rule = make_optimiser(Training(optimiser=name, weight_decay=0.01))
    with torch.device("meta"):
        params = [torch.empty(3, *shape) for shape in SHAPES]
        rate = torch.empty(())
        state = rule.start(params)
        rule.step(params, params, state, rate, torch.empty(()), stacked=stacked)
        rule.reset(params, state)
        with pytest.raises(RuntimeError, match="meta"):
            rate.sum().item()
