"""Perturbations against scipy, Pillow, matplotlib's colours and plain numpy."""

from __future__ import annotations

import kornia.geometry
import numpy as np
import pytest
import torch
from matplotlib.colors import hsv_to_rgb, rgb_to_hsv
from PIL import Image, ImageEnhance
from scipy import ndimage, stats

from curvewise.errors import InputError
from curvewise.response.networks.perturbations import (
    PERTURBATIONS,
    Perturbation,
    draw_magnitudes,
    find_perturbation,
    perturb,
    usual_magnitudes,
)

RNG = np.random.default_rng(5)
IMAGES = RNG.random((3, 3, 9, 13)).astype(np.float32)
BYTES = RNG.integers(0, 256, (5, 3, 8, 10), dtype=np.uint8)
PICTURES = [name for name, p in PERTURBATIONS.items() if p.of == "images"] + ["intensity"]


def applied(name: str, magnitude: float, **options: object) -> np.ndarray:
    return find_perturbation(name, **options).apply(torch.tensor(IMAGES), magnitude).numpy()


def luma(x: np.ndarray) -> np.ndarray:
    return np.tensordot([0.299, 0.587, 0.114], x, axes=(0, 1))[:, None]


@pytest.mark.parametrize("name", PICTURES)
def test_magnitude_zero_changes_nothing_and_others_do(name: str) -> None:
    p = PERTURBATIONS[name]
    x = torch.tensor(IMAGES)
    assert torch.equal(p.apply(x, 0.0), x)
    assert np.array_equal(perturb(BYTES, name, 0), BYTES)
    assert not np.array_equal(perturb(BYTES, name, p.high / 3), BYTES)


@pytest.mark.parametrize("degrees", [-170.0, -30.0, 12.5, 90.0])
@pytest.mark.parametrize("fill", [0.0, 0.4])
def test_rotation_is_counter_clockwise_as_in_scipy(degrees: float, fill: float) -> None:
    wanted = ndimage.rotate(IMAGES, degrees, axes=(2, 3), reshape=False, order=1, mode="grid-constant", cval=fill)
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
        "brightness": IMAGES * (1 + share),
        "contrast": mean + (IMAGES - mean) * (1 + share),
        "saturation": luma(IMAGES) + (IMAGES - luma(IMAGES)) * (1 + share),
    }
    for name, values in wanted.items():
        np.testing.assert_allclose(applied(name, share), np.clip(values, 0, 1), atol=1e-5)
    np.testing.assert_allclose(applied("intensity", share), IMAGES * (1 + share), atol=1e-6)


@pytest.mark.parametrize("share", [-1.0, -0.3, 0.25, 0.9])
def test_colours_are_those_of_pillow_but_for_its_rounding(share: float) -> None:
    theirs = {
        "brightness": ImageEnhance.Brightness,
        "contrast": ImageEnhance.Contrast,
        "saturation": ImageEnhance.Color,
    }
    pictures = [Image.fromarray(np.moveaxis(x, 0, -1)) for x in BYTES]
    for name, enhancer in theirs.items():
        wanted = [np.asarray(enhancer(picture).enhance(1 + share)) for picture in pictures]
        found = np.moveaxis(perturb(BYTES, name, share), 1, -1)
        np.testing.assert_allclose(found, np.array(wanted, dtype=float), atol=2, err_msg=name)


@pytest.mark.parametrize("turns", [-0.3, 0.25, 0.5])
def test_hue_turns_the_wheel(turns: float) -> None:
    hsv = rgb_to_hsv(np.moveaxis(IMAGES, 1, -1))
    hsv[..., 0] = (hsv[..., 0] + turns) % 1
    np.testing.assert_allclose(applied("hue", turns), np.moveaxis(hsv_to_rgb(hsv), -1, 1), atol=1e-4)


def test_colour_is_the_four_one_after_the_other() -> None:
    step = torch.tensor(IMAGES)
    for name in ("brightness", "contrast", "saturation", "hue"):
        step = PERTURBATIONS[name].apply(step, 0.2)
    np.testing.assert_allclose(applied("colour", 0.2), step.numpy(), atol=1e-6)
    grey = torch.tensor(IMAGES[:, :1])
    step = PERTURBATIONS["contrast"].apply(PERTURBATIONS["brightness"].apply(grey, 0.2), 0.2)
    torch.testing.assert_close(PERTURBATIONS["colour"].apply(grey, 0.2), step)


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
    out = find_perturbation("cutout", fill=0.25).apply(x, 0.5).numpy()[:, 0]
    gone = out == 0.25
    assert (gone.sum(axis=(1, 2)) == 4 * 6).all()
    rows, columns = gone.any(axis=2), gone.any(axis=1)
    assert (rows.sum(axis=1) == 4).all()
    assert (columns.sum(axis=1) == 6).all()
    starts = np.bincount(rows.argmax(axis=1) * 7 + columns.argmax(axis=1), minlength=35)
    assert stats.chisquare(starts).pvalue > 0.001
    assert (PERTURBATIONS["cutout"].apply(x[:3], 1.0) == 0).all()


@pytest.mark.parametrize("name", PICTURES)
def test_each_image_gets_its_own_magnitude_whoever_is_beside_it(name: str) -> None:
    p = PERTURBATIONS[name]
    x = torch.tensor(IMAGES)
    magnitudes = torch.tensor([p.high / 4, 0.0, max(p.low, -p.high) / 2])
    together = p.apply(x, magnitudes, 3)
    for i, m in enumerate(magnitudes):
        alone = p.apply(x[i : i + 1], float(m), 3, positions=torch.tensor([i]))
        np.testing.assert_allclose(together[i], alone[0], atol=1e-6)


def test_arrays_larger_than_a_batch_are_as_if_done_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = {name: perturb(BYTES, name, 0.3, 9) for name in PICTURES}
    monkeypatch.setattr("curvewise.response.networks.perturbations.AT_ONCE", 2)
    for name, x in whole.items():
        assert np.array_equal(perturb(BYTES, name, 0.3, 9), x), name


def test_grey_images_take_what_needs_no_colours() -> None:
    grey = BYTES[:, :1]
    for name in PICTURES:
        if PERTURBATIONS[name].coloured:
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
    with pytest.raises(InputError, match="from 0 to 255: 'noise' is for images with values from 0"):
        perturb(np.arange(256.0).reshape(1, 1, 16, 16), "noise", 0.1)
    p = PERTURBATIONS["noise"]
    with pytest.raises(InputError, match="int64"):
        p.apply(torch.zeros(2, 1, 4, 4, dtype=torch.int64), 0.1)
    with pytest.raises(InputError, match=r"give one, or one per example"):
        p.apply(torch.zeros(2, 1, 4, 4), torch.zeros(3))
    with pytest.raises(InputError, match=r"magnitude has shape \(3,\)"):
        perturb(BYTES, "noise", [0.1, 0.2, 0.3])
    with pytest.raises(InputError, match=r"positions has shape \(3,\)"):
        p.apply(torch.zeros(2, 1, 4, 4), 0.1, positions=torch.arange(3))
    with pytest.raises(InputError, match="interpolation"):
        find_perturbation(p, interpolation="cubic")
    with pytest.raises(InputError, match="fill"):
        find_perturbation(p, fill=2.0)
    with pytest.raises(InputError, match="leave partner out"):
        p.apply(torch.zeros(2, 1, 4, 4), 0.1, partner=torch.zeros(2, 1, 4, 4))


def test_arrays_take_a_magnitude_for_each_example_fill_and_interpolation() -> None:
    degrees = [0.0, 30.0, -90.0, 5.0, 180.0]
    rotation = find_perturbation("rotation", fill=1.0, interpolation="nearest")
    found = perturb(BYTES, rotation, degrees)
    for i, angle in enumerate(degrees):
        alone = rotation.apply(torch.from_numpy(BYTES[i : i + 1]), angle)
        assert np.array_equal(found[i], alone[0].numpy())
    assert not np.array_equal(found, perturb(BYTES, "rotation", degrees))


def test_half_precision_is_computed_in_full() -> None:
    half = torch.tensor(IMAGES).to(torch.bfloat16)
    for name in PICTURES:
        found = PERTURBATIONS[name].apply(half, 0.3)
        wanted = PERTURBATIONS[name].apply(half.float(), 0.3).to(torch.bfloat16)
        assert found.dtype == torch.bfloat16
        assert torch.equal(found, wanted), name


@pytest.mark.parametrize("name", PERTURBATIONS)
def test_usual_magnitudes_lie_in_range(name: str) -> None:
    p = PERTURBATIONS[name]
    for count in (2, 9, 10):
        grid = usual_magnitudes(name, count)
        assert len(grid) == count
        assert (np.diff(grid) > 0).all()
        np.testing.assert_allclose(np.diff(grid), grid[1] - grid[0])
        for magnitude in grid:
            p.check(magnitude)
        if p.usual[0] < 0:
            assert np.array_equal(grid, -grid[::-1])
            assert (0 in grid) == bool(count % 2)
        else:
            assert grid[0] == 0


def test_usual_magnitudes_are_the_papers() -> None:
    ends = {
        "mixup-intra": (0, 0.5),
        "mixup-inter": (0, 0.45),
        "shift-x": (-0.5, 0.5),
        "shift-y": (-0.5, 0.5),
        "colour": (-0.25, 0.25),
    }
    for name, (low, high) in ends.items():
        grid = usual_magnitudes(name)
        np.testing.assert_allclose(grid[[0, -1]], [low, high])
        assert PERTURBATIONS[name].paper_range == PERTURBATIONS[name].usual
    with pytest.raises(InputError, match="count=1"):
        usual_magnitudes("colour", 1)
    # A half turn makes a 6 of a 9: it says nothing about which of two networks withstands rotation.
    assert PERTURBATIONS["rotation"].usual == (-30, 30)
    assert PERTURBATIONS["rotation"].paper_range == (-180, 180)


def test_drawn_magnitudes_are_uniform_and_each_depends_on_its_position_alone() -> None:
    drawn = draw_magnitudes(-3, 5, 5000, seed=4)
    assert stats.kstest(drawn, "uniform", (-3, 8)).pvalue > 0.001
    assert np.array_equal(drawn[:7], draw_magnitudes(-3, 5, 7, seed=4))
    assert abs(np.corrcoef(drawn, draw_magnitudes(-3, 5, 5000, seed=5))[0, 1]) < 0.06


def test_a_function_is_a_perturbation() -> None:
    seen: list[float] = []

    def shaken(x: torch.Tensor, magnitude: float, rng: torch.Generator) -> torch.Tensor:
        seen.append(magnitude)
        return x + magnitude * torch.randn(x.shape, generator=rng)

    p = find_perturbation(shaken)
    assert (p.name, p.of, p.pairs, find_perturbation(p)) == ("shaken", "values", None, p)
    x = torch.zeros(6, 50)
    found = p.apply(x, torch.tensor([0.1, 0.0, -0.3, 0.1, 0.1, -0.3]), 3)
    assert seen == [-0.3, 0.1]  # once for each, as they were given, and not for 0
    assert torch.equal(found[1], x[1])
    assert 0.05 < float(found[0].std()) < 0.2 < float(found[2].std()) < 0.45
    assert torch.equal(p.apply(x, 0.1, 3), p.apply(x, 0.1, 3))
    assert not torch.equal(p.apply(x, 0.1, 3), p.apply(x, 0.1, 4))
    later = p.apply(x, 0.1, 3, positions=torch.arange(6, 12))  # another batch, other noise
    assert not torch.equal(p.apply(x, 0.1, 3), later)
    assert usual_magnitudes(shaken, 3).tolist() == [0, 0.5, 1]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x, magnitude, rng: x.numpy(), "returned ndarray: return the changed tensor"),
        (lambda x, magnitude, rng: x[:1], r"returned shape \(1, 3\) for an x of \(2, 3\)"),
        (lambda x, magnitude, rng: x.to("meta"), "a tensor on meta for an x on cpu"),
        (lambda x, magnitude, rng: x > 0, "returned torch.bool for an x of torch.float32"),
    ],
    ids=["array", "shape", "device", "kind"],
)
def test_what_a_function_must_not_do_is_said(function: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        find_perturbation(function).apply(torch.zeros(2, 3), 0.5)


def test_what_is_no_perturbation_is_said() -> None:
    with pytest.raises(InputError, match="Did you mean 'mixup-intra'"):
        find_perturbation("mixup_intra")
    with pytest.raises(InputError, match="perturbation=3 is not known"):
        find_perturbation(3)  # type: ignore[arg-type]
    own = Perturbation("own", "units", 0, 1, lambda x, magnitude, draw: x, of="tokens")
    with pytest.raises(InputError, match="perturbation='own' is for tokens"):
        own.apply(torch.zeros(2, 3), 0.5)


@pytest.mark.parametrize("interpolation", ["bilinear", "nearest"])
@pytest.mark.parametrize("shape", [(40, 1, 28, 28), (40, 3, 9, 14)])
def test_pixels_move_as_in_kornia(interpolation: str, shape: tuple[int, ...]) -> None:
    random = torch.Generator().manual_seed(0)
    x, drawn = torch.rand(shape, generator=random), torch.rand(shape[0], generator=random) * 2 - 1
    how = {"mode": interpolation, "padding_mode": "zeros", "align_corners": True}
    still = torch.zeros_like(drawn)
    wanted = {
        "rotation": kornia.geometry.rotate(x - 0.3, 180 * drawn, **how),
        "shift-x": kornia.geometry.translate(x - 0.3, torch.stack([drawn * shape[3], still], 1), **how),
        "shift-y": kornia.geometry.translate(x - 0.3, torch.stack([still, drawn * shape[2]], 1), **how),
    }
    for name, theirs in wanted.items():
        magnitude = 180 * drawn if name == "rotation" else drawn
        ours = find_perturbation(name, fill=0.3, interpolation=interpolation).apply(x, magnitude)
        torch.testing.assert_close(ours, theirs + 0.3, atol=2e-5, rtol=0)


def test_a_fill_is_a_number():
    with pytest.raises(InputError, match="fill='black'"):
        find_perturbation("rotation", fill="black")
