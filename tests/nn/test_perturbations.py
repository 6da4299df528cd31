"""Perturbations against scipy, matplotlib's colours and plain numpy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from matplotlib.colors import hsv_to_rgb, rgb_to_hsv
from scipy import ndimage, stats

from curvewise.errors import InputError
from curvewise.nn.perturbations import PERTURBATIONS, perturb

RNG = np.random.default_rng(5)
IMAGES = RNG.random((3, 3, 9, 13)).astype(np.float32)
BYTES = RNG.integers(0, 256, (5, 3, 8, 10), dtype=np.uint8)


def applied(name: str, magnitude: float, **options: object) -> np.ndarray:
    return PERTURBATIONS[name].apply(torch.tensor(IMAGES), magnitude, **options).numpy()


def luma(x: np.ndarray) -> np.ndarray:
    return np.tensordot([0.299, 0.587, 0.114], x, axes=(0, 1))[:, None]


@pytest.mark.parametrize("name", PERTURBATIONS)
def test_magnitude_zero_changes_nothing_and_others_do(name: str) -> None:
    p = PERTURBATIONS[name]
    x = torch.tensor(IMAGES)
    assert torch.equal(p.apply(x, 0.0), x)
    assert np.array_equal(perturb(BYTES, name, 0), BYTES)
    assert not np.array_equal(perturb(BYTES, name, p.high / 3), BYTES)


@pytest.mark.parametrize("degrees", [-170.0, -30.0, 12.5, 90.0])
@pytest.mark.parametrize("fill", [0.0, 0.4])
def test_rotation_is_counter_clockwise_as_in_scipy(degrees: float, fill: float) -> None:
    wanted = ndimage.rotate(
        IMAGES, degrees, axes=(2, 3), reshape=False, order=1, mode="grid-constant", cval=fill
    )
    found = applied("rotation", degrees, fill=fill)
    np.testing.assert_allclose(found, wanted, atol=2e-5)


@pytest.mark.parametrize("share", [-0.5, 0.1, 3 / 13, 1.0])
def test_shifts_go_right_and_down_as_in_scipy(share: float) -> None:
    for name, pixels in (("shift-x", (0, 0, 0, share * 13)), ("shift-y", (0, 0, share * 9, 0))):
        wanted = ndimage.shift(IMAGES, pixels, order=1, mode="grid-constant", cval=0.3)
        np.testing.assert_allclose(applied(name, share, fill=0.3), wanted, atol=2e-5)


def test_nearest_invents_no_values() -> None:
    found = applied("rotation", 33.0, interpolation="nearest", fill=0.0)
    assert np.isin(found, [*IMAGES.ravel(), 0]).all()
    assert not np.isin(applied("rotation", 33.0), [*IMAGES.ravel(), 0]).all()


@pytest.mark.parametrize("sigma", [0.3, 1.0, 6.0, 10.0])
def test_blur_is_scipys_even_where_the_kernel_is_wider_than_the_image(sigma: float) -> None:
    wanted = ndimage.gaussian_filter(IMAGES.astype(float), (0, 0, sigma, sigma), mode="mirror")
    np.testing.assert_allclose(applied("blur", sigma), wanted, atol=2e-6)


@pytest.mark.parametrize("share", [-0.6, 0.4])
def test_colours_follow_their_formulas(share: float) -> None:
    mean = luma(IMAGES).mean(axis=(1, 2, 3), keepdims=True)
    wanted = {
        "brightness": IMAGES + share,
        "intensity": IMAGES * (1 + share),
        "contrast": mean + (IMAGES - mean) * (1 + share),
        "saturation": luma(IMAGES) + (IMAGES - luma(IMAGES)) * (1 + share),
    }
    for name, values in wanted.items():
        np.testing.assert_allclose(applied(name, share), np.clip(values, 0, 1), atol=1e-5)


@pytest.mark.parametrize("turns", [-0.3, 0.25, 0.5])
def test_hue_turns_the_wheel(turns: float) -> None:
    hsv = rgb_to_hsv(np.moveaxis(IMAGES, 1, -1))
    hsv[..., 0] = (hsv[..., 0] + turns) % 1
    np.testing.assert_allclose(
        applied("hue", turns), np.moveaxis(hsv_to_rgb(hsv), -1, 1), atol=1e-4
    )


def test_colour_is_the_four_one_after_the_other() -> None:
    step = torch.tensor(IMAGES)
    for name in ("brightness", "contrast", "saturation", "hue"):
        step = PERTURBATIONS[name].apply(step, 0.2)
    np.testing.assert_allclose(applied("colour", 0.2), step.numpy(), atol=1e-6)


def test_noise_is_normal_and_flips_with_the_sign() -> None:
    x = torch.full((40, 1, 32, 32), 0.5)
    noise = (PERTURBATIONS["noise"].apply(x, 0.05) - 0.5).numpy().ravel() / 0.05
    assert stats.kstest(noise, "norm").pvalue > 0.001
    other = (PERTURBATIONS["noise"].apply(x, -0.05) - 0.5).numpy().ravel() / 0.05
    np.testing.assert_allclose(other, -noise, atol=1e-4)
    pixels = noise.reshape(40, -1)
    between = np.corrcoef(pixels)[np.triu_indices(40, 1)]  # examples do not share their noise
    assert np.abs(between).max() < 6 / 32
    again = (PERTURBATIONS["noise"].apply(x, 0.05, seed=1) - 0.5).numpy().ravel() / 0.05
    assert abs(np.corrcoef(noise, again)[0, 1]) < 0.03


def test_cutout_covers_its_share_anywhere_inside() -> None:
    x = torch.ones(2000, 1, 8, 12)
    out = PERTURBATIONS["cutout"].apply(x, 0.5, fill=0.25).numpy()[:, 0]
    gone = out == 0.25
    assert (gone.sum(axis=(1, 2)) == 4 * 6).all()
    rows, columns = gone.any(axis=2), gone.any(axis=1)
    assert (rows.sum(axis=1) == 4).all()
    assert (columns.sum(axis=1) == 6).all()
    starts = np.bincount(rows.argmax(axis=1) * 7 + columns.argmax(axis=1), minlength=35)
    assert stats.chisquare(starts).pvalue > 0.001
    assert (PERTURBATIONS["cutout"].apply(x[:3], 1.0) == 0).all()


@pytest.mark.parametrize("name", PERTURBATIONS)
def test_each_image_gets_its_own_magnitude_whoever_is_beside_it(name: str) -> None:
    p = PERTURBATIONS[name]
    x = torch.tensor(IMAGES)
    magnitudes = torch.tensor([p.high / 4, 0.0, max(p.low, -p.high) / 2])
    together = p.apply(x, magnitudes, 3)
    for i, m in enumerate(magnitudes):
        alone = p.apply(x[i : i + 1], float(m), 3, first=i)
        np.testing.assert_allclose(together[i], alone[0], atol=1e-6)


def test_arrays_larger_than_a_batch_are_as_if_done_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = {name: perturb(BYTES, name, 0.3, 9) for name in PERTURBATIONS}
    monkeypatch.setattr("curvewise.nn.perturbations.AT_ONCE", 2)
    for name, x in whole.items():
        assert np.array_equal(perturb(BYTES, name, 0.3, 9), x), name


def test_grey_images_take_what_needs_no_colours() -> None:
    grey = BYTES[:, :1]
    for name, p in PERTURBATIONS.items():
        if p.coloured:
            with pytest.raises(InputError, match=r"is for colours; these images have 1 channel,"):
                perturb(grey, name, 0.1)
        else:
            assert perturb(grey, name, 0.1).shape == grey.shape


@pytest.mark.parametrize(
    ("name", "magnitude", "message"),
    [
        ("rotatoin", 1.0, "Did you mean 'rotation'"),
        ("rotation", 181.0, "degrees counter-clockwise from -180 to 180"),
        ("blur", -1.0, "from 0 to 10"),
        ("noise", float("nan"), "magnitude=nan"),
        ("noise", "much", "magnitude='much'"),
    ],
)
def test_what_cannot_be_done_is_said(name: str, magnitude: float, message: str) -> None:
    with pytest.raises(InputError, match=message):
        perturb(BYTES, name, magnitude)


def test_wrong_images_are_refused() -> None:
    with pytest.raises(InputError, match="uint8"):
        perturb(BYTES.astype(np.float32), "noise", 0.1)
    p = PERTURBATIONS["noise"]
    with pytest.raises(InputError, match="int64"):
        p.apply(torch.zeros(2, 1, 4, 4, dtype=torch.int64), 0.1)
    with pytest.raises(InputError, match=r"one for each of the 2 images"):
        p.apply(torch.zeros(2, 1, 4, 4), torch.zeros(3))
    with pytest.raises(InputError, match="interpolation"):
        p.apply(torch.zeros(2, 1, 4, 4), 0.1, interpolation="cubic")
    with pytest.raises(InputError, match="fill"):
        p.apply(torch.zeros(2, 1, 4, 4), 0.1, fill=2.0)
