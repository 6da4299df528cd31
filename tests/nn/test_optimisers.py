"""Each rule against someone else's implementation, step by step."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from pytorch_optimizer import Ranger as OtherRanger
from torch import Tensor

from curvewise.errors import InputError
from curvewise.nn.optimisers import Muon, make_optimiser, orthogonalised
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


@pytest.mark.parametrize("decay", [0.0, 0.05])
def test_nesterov_s_steps_are_torch_s(decay: float) -> None:
    training = Training(optimiser="sgd", momentum=0.85, nesterov=True, weight_decay=decay)
    make = partial(torch.optim.SGD, lr=1.0, momentum=0.85, nesterov=True, weight_decay=decay)
    _assert_close(_ours(training, 2, _noise(2)), _theirs(make, 2, _noise(2)), 1e-6)
    plain = _ours(Training(optimiser="sgd", momentum=0.85, weight_decay=decay), 2, _noise(2))
    assert float((plain[-1][0] - _ours(training, 2, _noise(2))[-1][0]).norm()) > 1e-3


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


# Muon against torch's: matrices only there, so that banks of filters are compared as matrices.

MATRICES = [(7, 5), (4, 27), (33, 17), (2, 9), (7, 40), (64, 64)]


def _muon(training: Training, gradients: Callable[[int], list[Tensor]], start: list[Tensor]) -> list[list[Tensor]]:
    params, path = [p.clone() for p in start], []
    rule = make_optimiser(training)
    state = rule.start(params)
    with torch.no_grad():
        for step, rate in enumerate(_rates()):
            rule.step(params, gradients(step), state, torch.tensor(rate), torch.tensor(step + 1.0))
            path.append([p.clone() for p in params])
    return path


def _torch_muon(
    gradients: Callable[[int], list[Tensor]], start: list[Tensor], **options: Any
) -> tuple[list[list[Tensor]], list[list[Tensor]]]:
    params, path, moves = [p.clone().requires_grad_() for p in start], [], []
    optimizer = torch.optim.Muon(params, **options)
    for step, rate in enumerate(_rates()):
        before = [p.detach().clone() for p in params]
        optimizer.param_groups[0]["lr"] = rate
        for p, g in zip(params, gradients(step), strict=True):
            p.grad = g
        optimizer.step()
        path.append([p.detach().clone() for p in params])
        moves.append([p.detach() - b for p, b in zip(params, before, strict=True)])
    return path, moves


def _matrices(seed: int, scale: float = 1.0) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=generator) * scale for shape in MATRICES]


def _matrix_noise(step: int) -> list[Tensor]:
    return _matrices(1000 + step, scale=0.1 * (1 + step % 5))


MUON = {
    "usual": ({}, {"weight_decay": 0.0}),
    "decay": ({"weight_decay": 0.1}, {"weight_decay": 0.1}),
    "three steps": ({"newton_schulz": 3}, {"ns_steps": 3, "weight_decay": 0.0}),
    "plain momentum": ({"nesterov": False}, {"nesterov": False, "weight_decay": 0.0}),
}


@pytest.mark.parametrize("name", MUON)
def test_every_step_of_muon_is_torch_s(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = MUON[name]
    training = Training(optimiser="muon", momentum=0.95, **ours)
    mine = _muon(training, _matrix_noise, _matrices(0))
    # Torch iterates in bfloat16, ours in float32 on a CPU. Without its rounding, every step is the same.
    with monkeypatch.context() as patch:
        patch.setattr(torch.Tensor, "bfloat16", lambda tensor: tensor.clone())
        exact, _ = _torch_muon(_matrix_noise, _matrices(0), momentum=0.95, **theirs)
    _assert_close(mine, exact, 1e-5)
    # With it, each move differs by the rounding of bfloat16, 2^-9 of a number, which the iteration enlarges.
    rounded, moves = _torch_muon(_matrix_noise, _matrices(0), momentum=0.95, **theirs)
    starts, apart = [_matrices(0), *mine], []
    for step, (after, moved) in enumerate(zip(mine, moves, strict=True)):
        for p, before, other in zip(after, starts[step], moved, strict=True):
            apart.append(float((p - before - other).norm() / other.norm()))
    assert np.median(apart) < 0.03
    assert max(apart) < 0.2
    assert any(not torch.equal(a, b) for a, b in zip(exact[-1], rounded[-1], strict=True))


def test_filters_are_matrices_with_a_row_for_each() -> None:
    start = [torch.randn(6, 4, 3, 3, generator=torch.Generator().manual_seed(1))]
    start += [p.to(memory_format=torch.channels_last) for p in start]

    def gradients(step: int) -> list[Tensor]:
        g = torch.randn(6, 4, 3, 3, generator=torch.Generator().manual_seed(step))
        return [g, g.to(memory_format=torch.channels_last)]

    training = Training(optimiser="muon", momentum=0.6, newton_schulz=3)
    filters = _muon(training, gradients, start)
    flat = _muon(training, lambda step: [g.flatten(1) for g in gradients(step)], [p.flatten(1) for p in start])
    for four, two in zip(filters, flat, strict=True):
        for a, b in zip(four, two, strict=True):
            torch.testing.assert_close(a.flatten(1), b, rtol=1e-5, atol=1e-6)


def test_filters_are_rescaled_before_the_step() -> None:
    start, rate = _matrices(3, scale=4.0), 0.3
    rule = make_optimiser(Training(optimiser="muon", rescale_filters=True, momentum=0.0, newton_schulz=3))
    params = [p.clone() for p in start]
    grads = _matrices(4)
    with torch.no_grad():
        rule.step(params, grads, rule.start(params), torch.tensor(rate), torch.tensor(1.0))
    for p, before, move in zip(params, start, orthogonalised(grads, 3), strict=True):
        expected = before / before.norm() * len(before) ** 0.5 - rate * move
        torch.testing.assert_close(p, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape", [(5, 40), (40, 5), (16, 16), (8, 4, 3, 3)])
def test_directions_are_orthogonal_and_keep_their_singular_vectors(shape: tuple[int, ...]) -> None:
    generator = torch.Generator().manual_seed(0)
    given = torch.randn(shape, generator=generator)
    (found,) = orthogonalised([given], 5)
    assert found.shape == given.shape
    flat, matrix = found.flatten(1).double(), given.flatten(1).double()
    tall = max(1.0, flat.shape[0] / flat.shape[1]) ** 0.5
    u, _, v = torch.linalg.svd(matrix, full_matrices=False)
    turned = u.T @ flat @ v.T / tall  # diagonal in the singular vectors of what was given
    assert float((turned - torch.diag(turned.diag())).abs().max()) < 1e-4
    assert 0.5 < float(turned.diag().min()) <= float(turned.diag().max()) < 1.3


def test_matrices_are_orthogonalised_as_if_each_were_alone() -> None:
    together = orthogonalised(_matrices(7), 5)
    for one, given in zip(together, _matrices(7), strict=True):
        torch.testing.assert_close(one, orthogonalised([given], 5)[0], rtol=1e-4, atol=1e-5)
    assert float(orthogonalised([torch.zeros(3, 4)])[0].abs().max()) == 0


def test_muon_never_asks_the_host() -> None:
    rule = Muon(rescale=True, weight_decay=0.1)
    with torch.device("meta"), torch.no_grad():
        params = [torch.empty(shape) for shape in (*MATRICES, (4, 3, 3, 3))]
        rule.step(params, params, rule.start(params), torch.empty(()), torch.empty(()))


# Groups of parameters with a rule of their own.

NAMED = {"conv.weight": (4, 3, 3, 3), "conv.bias": (4,), "norm.bias": (4,), "head.weight": (2, 4)}


def _named(seed: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=generator) for shape in NAMED.values()]


def test_each_group_follows_its_own_rule() -> None:
    groups = {
        "*bias": {"optimiser": "sgd", "rate": 0.5, "momentum": 0.8, "nesterov": True},
        "head.*": {"optimiser": "adamw", "rate": 0.01, "weight_decay": 0.1},
    }
    training = Training(optimiser="muon", rate=0.1, momentum=0.6, groups=groups)
    rule, params = make_optimiser(training, NAMED), _named(0)
    state = rule.start(params)
    rates = torch.tensor([0.1, 0.5, 0.01])
    alone = {
        "muon": (make_optimiser(Training(optimiser="muon", momentum=0.6)), [0], 0.1),
        "sgd": (make_optimiser(Training(optimiser="sgd", momentum=0.8, nesterov=True)), [1, 2], 0.5),
        "adamw": (make_optimiser(Training(optimiser="adamw", weight_decay=0.1)), [3], 0.01),
    }
    others = _named(0)
    states = {name: one.start([others[i] for i in mine]) for name, (one, mine, _) in alone.items()}
    with torch.no_grad():
        for step in range(5):
            count, grads = torch.tensor(step + 1.0), _named(step + 1)
            rule.step(params, grads, state, rates, count)
            for name, (one, mine, rate) in alone.items():
                own = [others[i] for i in mine], [grads[i] for i in mine]
                one.step(*own, states[name], torch.tensor(rate), count)
        assert all(torch.equal(a, b) for a, b in zip(params, others, strict=True))
        rule.reset(params, state)
    assert all(float(t.abs().max()) == 0 for slot in state.values() for t in slot)


@pytest.mark.parametrize(
    ("options", "shapes", "message"),
    [
        ({}, NAMED, r"optimiser='muon': changes matrices.*neither: 'conv.bias', 'norm.bias'.*groups.*\*bias"),
        ({}, {"a": (3,), "b": (4,)}, r"optimiser='muon': .*there are none for it.*Use 'sgd'"),
        ({"groups": {"*": {"rate": 1.0, "optimiser": "sgd"}}}, NAMED, "there are none for it"),
        ({"groups": {"*bias": {"rate": 1.0}}}, NAMED, "neither: 'conv.bias'|there are none"),
        ({"groups": {"gain": {"rate": 1.0}}}, NAMED, "groups='gain': matches none of the trained.*'conv.weight'"),
        ({"groups": {"*bias": {"rate": 1.0}, "conv.*": {"rate": 2.0}}}, NAMED, "both match 'conv.bias'"),
    ],
)
def test_parameters_without_a_rule_are_named(
    options: dict[str, Any], shapes: dict[str, tuple[int, ...]], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        make_optimiser(Training(optimiser="muon", **options), shapes)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"groups": ["a"]}, "groups=.*Give a table"),
        ({"groups": {"a": 1}}, "which is no table"),
        ({"groups": {"a": {}}}, "Give some of optimiser, rate"),
        ({"groups": {"a": {"batch": 3}}}, "Give some of optimiser, rate"),
        ({"groups": {"a": {"rate": -1}}}, r"groups\['a'\]: rate=-1"),
        ({"groups": {"a": {"rate": [0.1, 0.2]}}}, "a group has one rate"),
        ({"groups": {"a": {"optimiser": "lion"}}}, "optimiser='lion': not known"),
        ({"groups": {"a": {"optimiser": "adam", "momentum": 0.3}}}, "momentum=0.3: changes nothing"),
        ({"groups": {"a": {"epochs": 0}}}, "epochs=0: Give a number above 0"),
        ({"groups": {"a": {"epochs": 2}}, "schedule": "plateau"}, "known beforehand, not plateau"),
        ({"nesterov": 1}, "nesterov=1: Give true or false"),
        ({"newton_schulz": 0}, "newton_schulz=0: Give a whole number above 0"),
        ({"first_layer": "pca"}, "first_layer='pca': not known. Use one of whitening"),
        ({"first_layer": "whitening", "trained": "head"}, "first_layer='whitening': is for networks that are trained"),
    ],
)
def test_wrong_settings_of_groups_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Training(**options)


def test_numbers_of_groups_that_are_equal_make_one_training() -> None:
    one = Training(groups={"a": {"rate": 1, "epochs": 2, "weight_decay": 0}})
    other = Training(groups={"a": {"rate": 1.0, "epochs": 2.0, "weight_decay": 0.0}})
    assert one == other
    assert one.as_dict() == other.as_dict()
    assert Training(groups={}) == Training()
    assert not {"groups", "nesterov", "newton_schulz", "rescale_filters", "first_layer"} & Training().as_dict().keys()
    idle = Training(nesterov=True, newton_schulz=3, rescale_filters=True, optimiser="adam").idle()
    assert set(idle) == {"nesterov", "newton_schulz", "rescale_filters"}
    used = Training(optimiser="adam", newton_schulz=3, groups={"a": {"optimiser": "muon"}})
    assert not used.idle()
