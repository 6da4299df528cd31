"""The frozen first layer against numpy's covariance, and in a training."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.feature_extraction.image import extract_patches_2d

from curvewise.errors import InputError
from curvewise.nn import Assignment, Examples, Keep, Training
from curvewise.nn.data import Resident, Streamed
from curvewise.nn.engine import train
from curvewise.nn.networks import RIDGE, Whitening, make_network, patch_covariance, restore_network

CPU = torch.device("cpu")
MEAN, STD = (0.4, 0.5, 0.6), (0.2, 0.25, 0.3)


def _pictures(count: int = 300, channels: int = 3, side: int = 10, seed: int = 0) -> Examples:
    """Smooth pictures, whose neighbouring pixels and channels are correlated."""
    rng = np.random.default_rng(seed)
    coarse = rng.normal(size=(count, 1, side // 2, side // 2)).repeat(2, axis=2).repeat(2, axis=3)
    y = rng.integers(2, size=count)
    values = 100 + 40 * y[:, None, None, None] + 30 * coarse + 12 * rng.normal(size=(count, channels, side, side))
    return Examples(values.clip(0, 255).astype(np.uint8), y, 2, MEAN[:channels], STD[:channels])


def _patches(examples: Examples, rows: np.ndarray) -> np.ndarray:
    """All 2×2 patches of normalised images, (patches, channels · 4), by scikit-learn."""
    mean, std = (np.array(v)[:, None, None] for v in (examples.mean, examples.std))
    images = (examples.x[rows] / 255 - mean) / std
    cut = [extract_patches_2d(image.transpose(1, 2, 0), (2, 2)) for image in images]
    # scikit-learn leaves out the axis of a single channel.
    flat = [c.reshape(len(c), 2, 2, -1).transpose(0, 3, 1, 2).reshape(len(c), -1) for c in cut]
    return np.concatenate(flat)


@pytest.mark.parametrize("channels", [1, 3])
def test_the_covariance_is_that_of_all_patches(channels: int) -> None:
    examples, rows = _pictures(channels=channels), np.arange(20, 120)
    expected = np.cov(_patches(examples, rows), rowvar=False, bias=True)
    for kind in (Resident, Streamed):
        np.testing.assert_allclose(patch_covariance(kind(examples, CPU), rows), expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("channels", [1, 3])
def test_what_leaves_the_layer_is_white(channels: int) -> None:
    examples, rows = _pictures(channels=channels), np.arange(200)
    layer = Whitening(channels)
    layer.fill(Resident(examples, CPU), rows)
    half = 4 * channels
    assert layer.weight.shape == (2 * half, channels, 2, 2)
    assert torch.equal(layer.weight[half:], -layer.weight[:half])
    white = _patches(examples, rows) @ layer.weight[:half].flatten(1).numpy().T
    covariance = np.cov(white, rowvar=False, bias=True)
    values = np.linalg.eigvalsh(np.cov(_patches(examples, rows), rowvar=False, bias=True))[::-1]
    # Identity, but for the ridge: λ / (λ + 5e-4).
    np.testing.assert_allclose(covariance, np.diag(values / (values + RIDGE)), atol=1e-4)
    assert values.min() > 20 * RIDGE
    assert np.abs(covariance - np.eye(half)).max() < 0.05
    # As a convolution, with GELU after it.
    x = torch.from_numpy(
        (examples.x[:3] / 255 - np.array(MEAN[:channels])[:, None, None]) / np.array(STD[:channels])[:, None, None]
    )
    out = layer(x.float())
    assert out.shape == (3, 2 * half, 9, 9)
    by_hand = torch.nn.functional.gelu(torch.from_numpy(white.reshape(200, 9, 9, half)[:3]).permute(0, 3, 1, 2))
    torch.testing.assert_close(out[:, :half], by_hand.float(), rtol=1e-4, atol=1e-4)


def test_a_constant_channel_is_no_trouble() -> None:
    examples = _pictures()
    examples.x[:, 1] = 7
    layer = Whitening(3)
    layer.fill(Resident(examples, CPU), np.arange(100))
    assert bool(layer.weight.isfinite().all())
    assert float(layer.weight.abs().max()) <= 1.001 / RIDGE**0.5


TRAINING = Training(
    "speednet",
    options={"width": 4},
    optimiser="adam",
    rate=0.01,
    batch=20,
    epochs=3,
    first_layer="whitening",
    groups={"first_layer.bias": {"epochs": 1}},
)


def test_the_layer_is_the_run_s_own_and_stays_as_it_is() -> None:
    examples = _pictures()
    shown = {"test": _pictures(40, seed=1)}
    first, second = np.arange(100), np.arange(100, 200)
    runs = [Assignment(rows, 1, 2, 3) for rows in (first, second, first)]
    found = dict(train(TRAINING, runs, examples, shown, keep=Keep(checkpoints="end")))
    ends = [found[i].checkpoints["end"] for i in range(3)]
    expected = Whitening(3)
    for rows, weights in zip((first, second), ends, strict=False):
        expected.fill(Resident(examples, CPU), rows)
        np.testing.assert_array_equal(weights["first_layer.weight"], expected.weight.numpy())
    assert all(np.array_equal(ends[0][k], ends[2][k]) for k in ends[0])
    assert not np.array_equal(ends[0]["first_layer.weight"], ends[1]["first_layer.weight"])
    model = restore_network(TRAINING, examples.shape, 2, ends[0])
    x = (torch.from_numpy(shown["test"].x) / 255 - torch.tensor(MEAN)[:, None, None]) / torch.tensor(STD)[:, None, None]
    with torch.no_grad():
        probabilities = torch.softmax(model(x), 1).numpy()
    np.testing.assert_allclose(found[0].probabilities["test"], probabilities, atol=1e-5)


def test_a_bias_of_few_epochs_is_trained_no_further() -> None:
    examples, shown = _pictures(), {"test": _pictures(40, seed=1)}
    run, keep = [Assignment(np.arange(100), 1, 2, 3)], Keep(checkpoints="end")
    # At a constant rate, the first epoch of three is that of a training of one.
    constant = replace(TRAINING, schedule="constant", groups={"first_layer.bias": {"epochs": 1, "rate": 0.02}})
    ends = []
    for epochs in (1, 3):
        ((_, found),) = train(replace(constant, epochs=epochs), run, examples, shown, keep=keep)
        ends.append(found.checkpoints["end"])
    np.testing.assert_array_equal(ends[0]["first_layer.bias"], ends[1]["first_layer.bias"])
    assert np.abs(ends[0]["first_layer.bias"]).max() > 1e-3
    assert not np.array_equal(ends[0]["network.block1.2.bias"], ends[1]["network.block1.2.bias"])


@pytest.mark.parametrize("shape", [(20,), (3, 2, 8)])
def test_inputs_that_have_no_patches_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match=r"first_layer='whitening': takes images of more than 2×2"):
        make_network(Training("linear", first_layer="whitening"), shape, 2)


def test_any_network_for_images_may_stand_behind_it() -> None:
    examples, shown = _pictures(side=12), {"test": _pictures(40, side=12, seed=1)}
    for name in ("mlp", "cnn", "resnet9"):
        training = Training(name, options={"width": 8}, optimiser="adam", rate=0.01, batch=20, epochs=12)
        training = replace(training, first_layer="whitening")
        ((_, found),) = train(training, [Assignment(np.arange(300))], examples, shown)
        assert found.error is None
        assert (found.probabilities["test"].argmax(1) != shown["test"].y).mean() < 0.3
