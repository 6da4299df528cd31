"""The training of the speed record, against a loop with the published constants and torch's optimisers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from curvewise.errors import InputError
from curvewise.nn import Assignment, Examples, Keep, Training
from curvewise.nn.augmentation import make_augmentation, visits
from curvewise.nn.engine import train
from curvewise.nn.networks import make_network
from curvewise.study.spec.recipes import recipe_document

BATCH, N, WIDTH = 40, 120, 8
MEAN, STD = (0.45, 0.5, 0.55), (0.25, 0.25, 0.25)


def _examples(n: int = N, seed: int = 0, side: int = 12) -> Examples:
    rng = np.random.default_rng(seed)
    x = rng.integers(60, 200, size=(n, 3, side, side), dtype=np.uint8)
    y = rng.integers(3, size=n)
    x[np.arange(n), y, 2:6, 2:6] += 50
    return Examples(x, y, 3, MEAN, STD)


def _training(**changes: Any) -> Training:
    """The recipe with a small network and batch, with which the rates for the mean loss go."""
    settings = dict(recipe_document("variance-fast")["training"])
    groups = {name: {**group, "rate": group["rate"] * BATCH / 2000} for name, group in settings["groups"].items()}
    changed = {"batch": BATCH, "precision": "float32", "groups": groups, "options": {"width": WIDTH}}
    return Training(**{**settings, **changed, "epochs": 4, **changes})


class _ByHand(nn.Module):
    """The network of the description, layer by layer."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.whiten = nn.Conv2d(3, 24, 2)
        widths, inside = (WIDTH, 4 * WIDTH, 4 * WIDTH), 24
        self.convs, self.norms = nn.ModuleList(), nn.ModuleList()
        for width in widths:
            self.convs += [nn.Conv2d(inside, width, 3, padding="same", bias=False)]
            self.convs += [nn.Conv2d(width, width, 3, padding="same", bias=False)]
            self.norms += [nn.BatchNorm2d(width, eps=1e-12, momentum=0.4) for _ in range(2)]
            inside = width
        self.head = nn.Linear(inside, classes, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        x = functional.gelu(self.whiten(x))
        for block in range(3):
            x = functional.max_pool2d(self.convs[2 * block](x), 2)
            x = functional.gelu(self.norms[2 * block](x))
            x = functional.gelu(self.norms[2 * block + 1](self.convs[2 * block + 1](x)))
        x = x.amax((2, 3))
        return self.head(x) / x.shape[1]


def _whitening(examples: Examples, rows: np.ndarray) -> Tensor:
    """The twelve eigenvectors over √(eigenvalue + 5e-4), and their negatives, from patches cut one by one."""
    images = (examples.x[rows] / 255 - np.array(MEAN)[:, None, None]) / np.array(STD)[:, None, None]
    cut = [images[:, :, r : r + 2, c : c + 2].reshape(len(rows), -1) for r in range(11) for c in range(11)]
    values, vectors = np.linalg.eigh(np.cov(np.concatenate(cut), rowvar=False, bias=True))
    filters = (vectors / np.sqrt(values + 5e-4)).T[::-1]
    filters = filters * np.sign(filters[np.arange(12), np.abs(filters).argmax(1)])[:, None]
    return torch.from_numpy(np.concatenate([filters, -filters]).reshape(24, 3, 2, 2)).float()


def _loop(training: Training, examples: Examples, assignment: Assignment, epochs: int) -> _ByHand:
    torch.manual_seed(assignment.init)
    start = make_network(training, examples.shape, examples.classes).state_dict()
    model = _ByHand(examples.classes)
    with torch.no_grad():
        model.whiten.weight.copy_(_whitening(examples, assignment.rows))
        model.whiten.bias.zero_()
        for k, conv in enumerate(model.convs):
            conv.weight.copy_(start[f"network.block{k // 2 + 1}.{4 * (k % 2)}.weight"])
        model.head.weight.copy_(start["network.head.weight"])
    # Published constants: a summed loss, rates of 0.053 and 0.67, decay (2e-6 · batch) / rate.
    decay, filters = 2e-6 * BATCH, [conv.weight for conv in model.convs]
    biases = {"params": [norm.bias for norm in model.norms], "lr": 0.053, "weight_decay": decay / 0.053}
    first = {"params": [model.whiten.bias], "lr": 0.053, "weight_decay": decay / 0.053}
    head = {"params": [model.head.weight], "lr": 0.67, "weight_decay": decay / 0.67}
    sgd = torch.optim.SGD([biases, first, head], lr=1.0, momentum=0.85, nesterov=True)
    flat = [nn.Parameter(w.detach().flatten(1)) for w in filters]
    muon = torch.optim.Muon(flat, lr=0.24, momentum=0.6, weight_decay=0.0, ns_steps=3)
    steps, few = epochs * N // BATCH, 3 * N // BATCH
    rows = torch.from_numpy(assignment.rows)
    line = visits(torch.tensor([assignment.order]), rows[None], 0, steps * BATCH)[0]
    seed, rates = torch.tensor(assignment.augmentation), [group["lr"] for group in sgd.param_groups]
    crop = make_augmentation(("alternating-flip", "crop:2"), examples.shape)
    images, labels = torch.from_numpy(examples.x), torch.from_numpy(examples.y)
    for step in range(steps):
        place = torch.arange(step * BATCH, (step + 1) * BATCH)
        index = line[place]
        x = crop(images[index].float() / 255, seed, place // N, index, torch.tensor(MEAN))
        x = (x - torch.tensor(MEAN)[:, None, None]) / torch.tensor(STD)[:, None, None]
        loss = functional.cross_entropy(model(x), labels[index], label_smoothing=0.2, reduction="sum")
        model.zero_grad()
        loss.backward()
        for group, rate in zip(sgd.param_groups, rates, strict=True):
            left = max(0.0, 1 - step / few) if group["params"][0] is model.whiten.bias else 1 - step / steps
            group["lr"] = rate * left
        muon.param_groups[0]["lr"] = 0.24 * (1 - step / steps)
        sgd.step()
        with torch.no_grad():
            for matrix, weight in zip(flat, filters, strict=True):
                matrix.copy_(weight.flatten(1) * len(weight) ** 0.5 / weight.norm())
                matrix.grad = weight.grad.flatten(1)
        muon.step()
        with torch.no_grad():
            for matrix, weight in zip(flat, filters, strict=True):
                weight.copy_(matrix.view_as(weight))
    return model.eval()


def test_the_recipe_is_the_published_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    # Torch's Muon iterates in bfloat16, ours in float32 on a CPU.
    monkeypatch.setattr(torch.Tensor, "bfloat16", lambda tensor: tensor.clone())
    training, examples, test = _training(), _examples(), _examples(50, seed=1)
    rows = np.random.default_rng(0).permutation(N)
    run = Assignment(rows, 5, 6, 7)
    shown = {"test": test, "averaged": replace(test, views=("mirror", "shift:1"))}
    ((_, found),) = train(training, [run], examples, shown, keep=Keep(checkpoints="end"))
    assert found.error is None
    model = _loop(training, examples, run, 4)
    ours = found.checkpoints["end"]
    for k, (conv, norm) in enumerate(zip(model.convs, model.norms, strict=True)):
        block, at = k // 2 + 1, 4 * (k % 2)
        between = 2 if k % 2 == 0 else 1  # pooling stands between the first convolution and its norm
        pairs = {f"{at}.weight": conv.weight, f"{at + between}.bias": norm.bias}
        pairs |= {f"{at + between}.running_mean": norm.running_mean, f"{at + between}.running_var": norm.running_var}
        for name, theirs in ((key, value.detach()) for key, value in pairs.items()):
            own = torch.from_numpy(ours[f"network.block{block}.{name}"])
            assert float((own - theirs).norm() / theirs.norm()) < 2e-4, (block, name)
    np.testing.assert_allclose(ours["first_layer.bias"], model.whiten.bias.detach(), rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(ours["network.head.weight"], model.head.weight.detach(), rtol=1e-3, atol=1e-4)
    x = (torch.from_numpy(test.x) / 255 - torch.tensor(MEAN)[:, None, None]) / torch.tensor(STD)[:, None, None]
    padded = functional.pad(x, (1, 1, 1, 1), mode="reflect")
    moved = [padded[..., :12, :12], padded[..., 2:, 2:]]
    with torch.no_grad():
        plain, mirror = model(x), model(x.flip(-1))
        shifted = sum(model(m) + model(m.flip(-1)) for m in moved) / 4
        averaged = 0.5 * (plain + mirror) / 2 + 0.5 * shifted
    for name, logits in (("test", plain), ("averaged", averaged)):
        np.testing.assert_allclose(found.probabilities[name], torch.softmax(logits, 1), atol=1e-4)
    assert not np.allclose(found.probabilities["test"], found.probabilities["averaged"], atol=5e-3)


def test_averaging_views_is_averaging_outputs_by_hand() -> None:
    training, examples, test = _training(epochs=1), _examples(), _examples(50, seed=1)
    shown = {
        "plain": test,
        "averaged": replace(test, views=("mirror", "shift:2")),
        "mirror": replace(test, views=("mirror",)),
    }
    shown["turned"] = replace(test, x=test.x[..., ::-1].copy())
    ((_, found),) = train(training, [Assignment(np.arange(N))], examples, shown, keep=Keep(features=True))

    def logits(name: str) -> np.ndarray:
        logs = np.log(found.probabilities[name].astype(np.float64))
        return logs - logs.mean(axis=1, keepdims=True)  # up to what softmax takes away

    np.testing.assert_allclose(logits("mirror"), (logits("plain") + logits("turned")) / 2, atol=1e-5)
    # Features are those of the images themselves.
    np.testing.assert_array_equal(found.features["plain"], found.features["averaged"])


@pytest.mark.slow
def test_company_changes_no_bit_of_the_recipe() -> None:
    training, examples, test = _training(epochs=2), _examples(), {"test": _examples(30, seed=1)}
    runs = [Assignment(np.random.default_rng(s).permutation(N)[:90], s, s, s) for s in range(3)]
    keep = Keep(checkpoints="end")
    together = dict(train(training, runs, examples, test, keep=keep))
    for i, run in enumerate(runs):
        ((_, alone),) = train(training, [run], examples, test, keep=keep)
        assert np.array_equal(alone.probabilities["test"], together[i].probabilities["test"])
        for name, value in alone.checkpoints["end"].items():
            assert np.array_equal(value, together[i].checkpoints["end"][name])


def test_initial_filters_pass_their_inputs_on_and_the_head_has_unit_spread() -> None:
    torch.manual_seed(0)
    network = make_network(Training("speednet", options={"width": WIDTH}), (5, 16, 16), 3)
    for conv in (m for m in network.modules() if isinstance(m, nn.Conv2d)):
        assert conv.bias is None
        kept = min(conv.in_channels, conv.out_channels)
        x = torch.randn(2, conv.in_channels, 6, 6)
        torch.testing.assert_close(conv(x)[:, :kept], x[:, :kept])
    assert float(network.head.weight.detach().std()) == pytest.approx(1, abs=1e-5)
    norms = [m for m in network.modules() if isinstance(m, nn.BatchNorm2d)]
    assert all((m.eps, round(m.momentum, 9), m.weight.requires_grad) == (1e-12, 0.4, False) for m in norms)
    assert all(bool((m.weight == 1).all()) and m.bias.requires_grad for m in norms)
    features = torch.randn(4, 4 * WIDTH)
    torch.testing.assert_close(network.scale(network.head(features)), features @ network.head.weight.T / (4 * WIDTH))


def test_its_parts_are_options() -> None:
    options = {
        "width": 4,
        "norm_scale": True,
        "norm_eps": 1e-5,
        "norm_momentum": 0.9,
        "dirac": False,
        "unit_head": False,
    }
    network = make_network(Training("speednet", options=options), (3, 16, 16), 3)
    norm = next(m for m in network.modules() if isinstance(m, nn.BatchNorm2d))
    assert norm.weight.requires_grad
    assert (norm.eps, norm.momentum) == (1e-5, pytest.approx(0.1))
    assert float(network.head.weight.detach().std()) < 0.5
    for wrong in ({"norm_momentum": 1.0}, {"norm_eps": -1}, {"width": 0}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            make_network(Training("speednet", options=wrong), (3, 16, 16), 3)


def test_published_size() -> None:
    # 3×3 filters 24→64, 64→64, 64→256 and three 256→256; six biases of norms; the whitening's bias; the head.
    filters = 9 * (24 * 64 + 64 * 64 + 64 * 256 + 3 * 256 * 256)
    network = make_network(Training("speednet", first_layer="whitening"), (3, 32, 32), 10)
    trained = sum(p.numel() for p in network.parameters() if p.requires_grad)
    assert trained == filters + 2 * (64 + 256 + 256) + 24 + 2560


@pytest.mark.parametrize(("shape", "classes"), [((1, 28, 28), 10), ((3, 64, 48), 5), ((4, 9, 9), 2)])
def test_other_sizes_and_colours_are_taken(shape: tuple[int, ...], classes: int) -> None:
    network = make_network(Training("speednet", options={"width": 4}, first_layer="whitening"), shape, classes)
    assert network(torch.zeros(2, *shape)).shape == (2, classes)


def test_images_that_are_too_small_are_refused() -> None:
    with pytest.raises(
        InputError, match="architecture='speednet': needs images of 8×8 pixels or more; it is given 7×11"
    ):
        make_network(Training("speednet", first_layer="whitening"), (3, 8, 12), 10)
    with pytest.raises(InputError, match="takes images"):
        make_network(Training("speednet"), (64,), 10)
