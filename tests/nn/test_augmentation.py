"""Augmented batches against slow references that work on one picture at a time."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import kornia.enhance
import kornia.geometry
import numpy as np
import pytest
import torch
from scipy import ndimage, stats
from torch import Tensor

from curvewise.errors import InputError
from curvewise.nn.augmentation import Chance, Change, _enlarged, draw_boxes, make_augmentation, turn_hue, uniform, view
from curvewise.nn.training import AUGMENTATIONS, parse_views
from curvewise.response.networks.perturbations import PERTURBATIONS

SEED = torch.tensor(11)
FIRST = {name: 16 * i for i, name in enumerate(AUGMENTATIONS)}
FILL = torch.tensor([0.3, 0.5, 0.7])
ALL = ("flip", "translate:2", "cutout:3", "crop:2", "rotation:30", "shift-x:0.2", "shift-y:0.3")
ALL += ("colour:0.25", "noise:0.1", "resized-crop:0.3", "alternating-flip")


def _images(count: int = 40, channels: int = 3, height: int = 9, width: int = 11) -> Tensor:
    generator = torch.Generator().manual_seed(2)
    return torch.rand((count, channels, height, width), generator=generator)


def _augmented(x: Tensor, *specs: str, epoch: int = 3, start: int = 0) -> Tensor:
    change = make_augmentation(specs, tuple(x.shape[1:]))
    examples = torch.arange(start, start + len(x))
    fill = FILL[: x.shape[1]]
    return change(x, SEED, torch.full_like(examples, epoch), examples, fill)


def _draw(name: str, number: int, example: int, again: int = 0) -> float:
    return float(uniform(SEED, 3, torch.tensor(example), FIRST[name] + 1024 * again + number))


def _whole(name: str, number: int, example: int, least: int, most: int, again: int = 0) -> int:
    return least + int(_draw(name, number, example, again) * (most - least + 1))


def _flip(x: np.ndarray, i: int) -> np.ndarray:
    return x[:, :, ::-1] if _draw("flip", 0, i) < 0.5 else x


def _translate(x: np.ndarray, i: int) -> np.ndarray:
    down, right = (_whole("translate", k, i, -2, 2) for k in range(2))
    out = np.broadcast_to(FILL[: len(x), None, None].numpy(), x.shape).copy()
    for r in range(x.shape[1]):
        for c in range(x.shape[2]):
            if 0 <= r - down < x.shape[1] and 0 <= c - right < x.shape[2]:
                out[:, r, c] = x[:, r - down, c - right]
    return out


def _crop(x: np.ndarray, i: int) -> np.ndarray:
    down, right = (_whole("crop", k, i, -4, 4) for k in range(2))
    padded = np.pad(x, ((0, 0), (4, 4), (4, 4)), mode="reflect")
    return padded[:, 4 - down : 4 - down + x.shape[1], 4 - right : 4 - right + x.shape[2]]


def _cutout(x: np.ndarray, i: int, again: int = 0) -> np.ndarray:
    top = _whole("cutout", 0, i, 0, x.shape[1] - 5, again)
    left = _whole("cutout", 1, i, 0, x.shape[2] - 5, again)
    out = x.copy()
    out[:, top : top + 5, left : left + 5] = FILL[: len(x), None, None].numpy()
    return out


Reference = Callable[[np.ndarray, int], np.ndarray]


@pytest.mark.parametrize(
    ("specs", "references"),
    [
        (("flip",), (_flip,)),
        (("translate:2",), (_translate,)),
        (("crop:4",), (_crop,)),
        (("cutout:5",), (_cutout,)),
        (("flip", "translate:2", "cutout:5"), (_flip, _translate, _cutout)),
        (("cutout:5", "translate:2", "flip"), (_cutout, _translate, _flip)),
        (("translate:2", "crop:4", "flip"), (_translate, _crop, _flip)),
        (("cutout:5", "crop:4"), (_cutout, _crop)),
        (("cutout:5", "cutout:5"), (_cutout, lambda x, i: _cutout(x, i, again=1))),
    ],
)
def test_moved_pixels_are_those_of_one_picture_at_a_time(
    specs: tuple[str, ...], references: tuple[Reference, ...]
) -> None:
    x = _images()
    for i, (before, after) in enumerate(zip(x.numpy(), _augmented(x, *specs).numpy(), strict=True)):
        for reference in references:
            before = reference(before, i)
        np.testing.assert_array_equal(before, after)


def _signed(name: str, example: int, amount: float) -> float:
    return (2 * _draw(name, 0, example) - 1) * amount


def _affine(x: np.ndarray, matrix: np.ndarray, offset: np.ndarray) -> np.ndarray:
    centre = (np.array(x.shape[1:]) - 1) / 2
    start = centre - matrix @ (centre + offset)
    options = {"order": 1, "mode": "grid-constant"}
    return np.stack(
        [
            ndimage.affine_transform(c, matrix, start, cval=float(level), **options)
            for c, level in zip(x.astype(float), FILL, strict=False)
        ]
    )


@pytest.mark.parametrize("order", [("rotation:30", "shift-x:0.3", "shift-y:0.2"), ("shift-x:0.5",)])
def test_warps_are_scipy_s_interpolation(order: tuple[str, ...]) -> None:
    x = _images(12)
    for i, (before, after) in enumerate(zip(x.numpy(), _augmented(x, *order), strict=True)):
        height, width = before.shape[1:]
        if len(order) == 3:
            angle = np.deg2rad(_signed("rotation", i, 30))
            # rows and columns of the source for those of the result, counter-clockwise
            c, s = np.cos(angle), np.sin(angle)
            matrix = np.array([[c, s], [-s, c]])
            shift = [_signed("shift-y", i, 0.2) * height, _signed("shift-x", i, 0.3) * width]
        else:
            matrix, shift = np.eye(2), [0.0, _signed("shift-x", i, 0.5) * width]
        np.testing.assert_allclose(after, _affine(before, matrix, np.array(shift)), atol=2e-5)


def test_rotation_is_kornia_s() -> None:
    x = _images(12, height=11)
    change = make_augmentation(("rotation:90",), (3, 11, 11))
    examples = torch.arange(12)
    ours = change(x, SEED, torch.full_like(examples, 3), examples, torch.zeros(3))
    angles = torch.tensor([_signed("rotation", i, 90) for i in range(12)])
    theirs = kornia.geometry.rotate(x, angles, mode="bilinear", align_corners=True)
    torch.testing.assert_close(ours, theirs, atol=2e-5, rtol=0)


@pytest.mark.parametrize("amount", [0.1, 0.25, 0.5])
def test_colours_are_kornia_s(amount: float) -> None:
    x = _images()
    draws = [torch.tensor([2 * _draw("colour", k, i) - 1 for i in range(len(x))]) * amount for k in range(4)]
    theirs = kornia.enhance.adjust_brightness_accumulative(x, 1 + draws[0])
    theirs = kornia.enhance.adjust_contrast_with_mean_subtraction(theirs, 1 + draws[1])
    theirs = kornia.enhance.adjust_saturation_with_gray_subtraction(theirs, 1 + draws[2])
    theirs = kornia.enhance.adjust_hue(theirs, 2 * torch.pi * draws[3])
    ours = _augmented(x, f"colour:{amount}")
    torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=0)
    assert float((ours - x).abs().mean()) > 0.01


def test_colours_are_the_perturbations_one_after_the_other() -> None:
    x = _images()
    step = x
    for k, name in enumerate(("brightness", "contrast", "saturation", "hue")):
        drawn = torch.tensor([2 * _draw("colour", k, i) - 1 for i in range(len(x))])
        step = PERTURBATIONS[name].apply(step, 0.3 * drawn)
    torch.testing.assert_close(_augmented(x, "colour:0.3"), step, atol=1e-6, rtol=0)


def test_grey_images_change_in_brightness_and_contrast() -> None:
    x = _images(channels=1)
    ours = _augmented(x, "colour:0.4")
    for i, picture in enumerate(x):
        light, contrast = (1 + 0.4 * (2 * _draw("colour", k, i) - 1) for k in range(2))
        lit = (picture * light).clamp(0, 1)
        expected = (lit.mean() + contrast * (lit - lit.mean())).clamp(0, 1)
        torch.testing.assert_close(ours[i], expected, atol=1e-6, rtol=0)


def test_pure_colours_and_greys_survive_the_turn_of_hue() -> None:
    x = torch.eye(3)[:, :, None, None].expand(3, 3, 2, 2).contiguous()
    x = torch.cat([x, torch.full((1, 3, 2, 2), 0.4), torch.zeros(1, 3, 2, 2)])
    third = torch.full((5, 1, 1, 1), 1 / 3)
    turned = turn_hue(x, third)
    torch.testing.assert_close(turned[:3], x[[1, 2, 0]], atol=1e-6, rtol=0)
    torch.testing.assert_close(turned[3:], x[3:])


def test_noise_is_normal() -> None:
    x = torch.full((50, 3, 9, 11), 0.5)
    noise = ((_augmented(x, "noise:0.05") - x) / 0.05).flatten().numpy()
    assert stats.kstest(noise, "norm").pvalue > 1e-3
    assert abs(np.corrcoef(noise[1:], noise[:-1])[0, 1]) < 0.03
    bright = _augmented(torch.ones(4, 3, 9, 11), "noise:0.5")
    assert float(bright.max()) == 1
    assert float(bright.min()) < 0.9


def _boxes(least: float, count: int, height: int, width: int) -> np.ndarray:
    examples = torch.arange(count)
    chance = Chance(SEED, torch.full_like(examples, 3), examples)
    return torch.stack(draw_boxes(Change("resized-crop", least, FIRST["resized-crop"]), chance, height, width)).numpy()


def _defined_boxes(least: float, count: int, height: int, width: int) -> np.ndarray:
    """Boxes by torchvision's definition of a random resized crop: ten attempts, then the middle."""
    rng = np.random.default_rng(5)
    middle = min(height, round(width / (3 / 4))), min(width, round(height * (4 / 3)))
    h, w = np.full(count, middle[0]), np.full(count, middle[1])
    top, left = (height - h) // 2, (width - w) // 2
    waiting = np.ones(count, dtype=bool)
    for _ in range(10):
        area = height * width * rng.uniform(least, 1, count)
        aspect = np.exp(rng.uniform(np.log(3 / 4), np.log(4 / 3), count))
        wide, high = np.round(np.sqrt(area * aspect)).astype(int), np.round(np.sqrt(area / aspect)).astype(int)
        now = waiting & (wide > 0) & (wide <= width) & (high > 0) & (high <= height)
        h[now], w[now] = high[now], wide[now]
        top[now], left[now] = rng.integers(height - h[now] + 1), rng.integers(width - w[now] + 1)
        waiting &= ~now
    return np.stack([h, w, top, left])


@pytest.mark.parametrize(("least", "height", "width"), [(0.08, 24, 32), (0.35, 33, 33), (0.3, 10, 31)])
def test_boxes_of_resized_crops_are_distributed_as_torchvision_s(least: float, height: int, width: int) -> None:
    ours, theirs = (draw(least, 30_000, height, width) for draw in (_boxes, _defined_boxes))
    for about in (
        lambda h, w, top, left: h * w,
        lambda h, w, top, left: w / h,
        lambda h, w, top, left: top + h / 2,
        lambda h, w, top, left: left + w / 2,
        lambda h, w, top, left: top * left * (h + w),
    ):
        assert stats.ks_2samp(about(*ours), about(*theirs)).pvalue > 1e-3
        assert stats.ttest_ind(about(*ours), about(*theirs)).pvalue > 1e-3
    h, w, top, left = ours
    assert (top >= 0).all()
    assert (left >= 0).all()
    assert (top + h <= height).all()
    assert (left + w <= width).all()
    # So elongated that most boxes do not fit: the middle is taken as often.
    middle = [(b[:2] == [[10], [13]]).all(0) & (b[3] == 9) for b in (ours, theirs)]
    assert (np.mean(middle[0]) > 0.01) == (height == 10)
    assert abs(np.mean(middle[0]) - np.mean(middle[1])) < 0.03


def test_resized_crops_are_boxes_enlarged_bilinearly() -> None:
    x = _images(30, height=12, width=10)
    ours = _augmented(x, "resized-crop:0.1")
    for i, (h, w, top, left) in enumerate(_boxes(0.1, 30, 12, 10).T.tolist()):
        box = x[i : i + 1, :, top : top + h, left : left + w]
        theirs = torch.nn.functional.interpolate(box, size=(12, 10), mode="bilinear", align_corners=False)
        torch.testing.assert_close(ours[i], theirs[0], atol=1e-5, rtol=0)
    whole = _augmented(x, "resized-crop:1")  # all of the area: the aspect of the image, or its middle
    kept = (_boxes(1.0, 30, 12, 10)[:2] == [[12], [10]]).all(0)
    torch.testing.assert_close(whole[kept], x[kept], atol=1e-6, rtol=0)
    # By hand: the left half of four columns, enlarged to four.
    row = torch.tensor([0.0, 1.0, 0.5, 0.25]).view(1, 1, 1, 4)
    half = _enlarged(row, torch.tensor([0]), torch.tensor([2]), -1)
    assert half.flatten().tolist() == [0.0, 0.25, 0.75, 1.0]


def _one_pixel(count: int) -> Tensor:
    x = torch.zeros(count, 1, 9, 9)
    x[:, 0, 4, 4] = 1
    return x


def test_every_translation_is_equally_likely() -> None:
    change = make_augmentation(("translate:2",), (1, 9, 9))
    examples = torch.arange(10_000)
    moved = change(_one_pixel(10_000), SEED, examples * 0, examples, torch.zeros(1))
    counts = moved.sum(0)[0, 2:7, 2:7].flatten().numpy()
    assert counts.sum() == 10_000
    assert stats.chisquare(counts).pvalue > 1e-3


def test_cutouts_lie_inside_and_anywhere() -> None:
    change = make_augmentation(("cutout:3",), (1, 9, 9))
    examples = torch.arange(10_000)
    cut = change(torch.zeros(10_000, 1, 9, 9), SEED, examples * 0, examples, torch.ones(1))
    assert torch.all(cut.sum((1, 2, 3)) == 9)
    corner = (cut.flatten(1).argmax(1)).bincount(minlength=81).view(9, 9)
    assert corner[7:].sum() == corner[:, 7:].sum() == 0
    assert stats.chisquare(corner[:7, :7].flatten().numpy()).pvalue > 1e-3


def test_half_are_flipped_and_not_the_same_half_each_epoch() -> None:
    x = torch.arange(3.0).expand(4000, 1, 1, 3)
    first, second = (_augmented(x, "flip", epoch=e)[:, 0, 0, 0] == 2 for e in range(2))
    for flipped in (first, second, first == second):
        assert stats.binomtest(int(flipped.sum()), 4000).pvalue > 1e-3


def test_alternating_flips_show_every_image_both_ways() -> None:
    x = torch.arange(3.0).expand(4000, 1, 1, 3)
    flipped = [_augmented(x, "alternating-flip", epoch=e)[:, 0, 0, 0] == 2 for e in range(6)]
    assert stats.binomtest(int(flipped[0].sum()), 4000).pvalue > 1e-3
    for now, then in pairwise(flipped):
        assert torch.equal(now, ~then)
    # The choice is the seed's and the example's, and no other augmentation's.
    assert (
        stats.binomtest(int((flipped[0] == (_augmented(x, "flip", epoch=0)[:, 0, 0, 0] == 2)).sum()), 4000).pvalue
        > 1e-3
    )
    change, rows = make_augmentation(("alternating-flip",), (1, 1, 3)), torch.arange(4000)
    other = change(x, SEED + 1, rows * 0, rows, FILL[:1])[:, 0, 0, 0] == 2
    assert stats.binomtest(int((other == flipped[0]).sum()), 4000).pvalue > 1e-3


@pytest.mark.parametrize("shift", [0, 1, 2, -2])
@pytest.mark.parametrize("mirrored", [False, True])
def test_a_view_is_a_crop_of_the_padded_image(shift: int, mirrored: bool) -> None:
    x = _images(5).numpy()
    height, width = x.shape[-2:]
    pad = abs(shift)
    padded = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)), mode="reflect")
    start = pad - shift
    expected = padded[..., start : start + height, start : start + width]
    found = view(torch.from_numpy(x), shift, mirrored=mirrored).numpy()
    np.testing.assert_array_equal(found, expected[..., ::-1] if mirrored else expected)


def test_views_have_the_weights_of_the_paper() -> None:
    both = parse_views(("mirror", "shift:1"), (3, 32, 32))
    assert sorted(both) == sorted(parse_views(("shift:1", "mirror"), (3, 32, 32)))
    # Half on the image and its mirror image, half on the mean over two diagonal shifts of the same pair.
    assert {(shift, turned): weight for weight, shift, turned in both} == {
        **{(0, turned): 0.25 for turned in (False, True)},
        **{(shift, turned): 0.125 for shift in (-1, 1) for turned in (False, True)},
    }
    assert parse_views((), (3, 32, 32)) == [(1.0, 0, False)]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("mirrored", "Did you mean 'mirror'"),
        ("mirror:2", "takes no number"),
        ("shift", "from 1 to 8"),
        ("shift:9", "from 1 to 8"),
        ("shift:-1", "from 1 to 8"),
    ],
)
def test_wrong_views_are_refused(spec: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_views((spec,), (3, 9, 11))


def test_views_are_of_images_and_each_once() -> None:
    with pytest.raises(InputError, match="twice"):
        parse_views(("mirror", "mirror"), (3, 9, 11))
    with pytest.raises(InputError, match=r"images.*\(64,\)"):
        parse_views(("mirror",), (64,))


def test_an_example_looks_the_same_in_any_batch() -> None:
    x = _images(30)
    whole = _augmented(x, *ALL)
    torch.testing.assert_close(whole[10:15], _augmented(x[10:15], *ALL, start=10), atol=0, rtol=0)
    change = make_augmentation(ALL, (3, 9, 11))
    order = torch.randperm(30, generator=torch.Generator().manual_seed(0))
    shuffled = change(x[order], SEED, torch.full_like(order, 3), order, FILL)
    torch.testing.assert_close(shuffled, whole[order], atol=0, rtol=0)


def test_epochs_and_seeds_change_the_picture() -> None:
    x = _images(30)
    change = make_augmentation(("translate:2", "cutout:3"), (3, 9, 11))
    rows = torch.arange(30)
    base = change(x, SEED, rows * 0, rows, FILL)
    for other in (change(x, SEED, rows * 0 + 1, rows, FILL), change(x, SEED + 1, rows * 0, rows, FILL)):
        same = (base == other).flatten(1).all(1)
        assert int(same.sum()) < 5


def test_another_augmentation_leaves_the_draws_of_the_first() -> None:
    x = _images(20)
    cut = _augmented(x, "cutout:3")
    both = _augmented(x, "translate:0", "flip", "cutout:3")
    gone = FILL[:, None, None]
    assert torch.equal((cut == gone).all(1), (both == gone).all(1))


def test_examples_of_one_batch_may_be_in_different_epochs() -> None:
    x = _images(6)
    change = make_augmentation(ALL, (3, 9, 11))
    rows = torch.arange(6)
    mixed = change(x, SEED, torch.tensor([0, 0, 0, 1, 1, 1]), rows, FILL)
    for epoch in range(2):
        pure = change(x, SEED, torch.full_like(rows, epoch), rows, FILL)
        part = slice(3 * epoch, 3 * epoch + 3)
        assert torch.equal(mixed[part], pure[part])


def test_stacked_models_get_what_each_gets_alone() -> None:
    x = _images(5).repeat(2, 1, 1, 1).view(2, 5, 3, 9, 11)
    change = make_augmentation(ALL, (3, 9, 11))
    seeds, rows = torch.tensor([1, 2]), torch.arange(10).view(2, 5)
    epochs = torch.zeros_like(rows)
    together = torch.func.vmap(change, in_dims=(0, 0, 0, 0, None))(x, seeds, epochs, rows, FILL)
    for m in range(2):
        alone = change(x[m], seeds[m], epochs[m], rows[m], FILL)
        torch.testing.assert_close(together[m], alone, atol=1e-6, rtol=0)


@pytest.mark.parametrize("spec", [s for s in ALL if not s.startswith(("flip", "resized-crop", "alternating-flip"))])
def test_nothing_of_it_changes_nothing(spec: str) -> None:
    x = _images()
    kind = spec.partition(":")[0]
    torch.testing.assert_close(_augmented(x, f"{kind}:0"), x, atol=2e-6, rtol=0)
    assert not torch.allclose(_augmented(x, spec), x, atol=1e-3)


def test_no_augmentation_is_the_identity_for_anything() -> None:
    x = torch.rand(3, 7)
    none = torch.zeros(3, dtype=torch.int64)
    assert make_augmentation((), (7,))(x, SEED, none, none, torch.zeros(1)) is x


@pytest.mark.parametrize(
    ("spec", "word"),
    [
        ("blur", "translate"),
        ("Flip", "flip"),
        ("flip:2", "no number"),
        ("alternating-flip:2", "no number"),
        ("translate", "whole number"),
        ("translate:", "whole number"),
        ("translate:1.5", "whole number"),
        ("translate:-1", "from 0 to 8"),
        ("crop:9", "from 0 to 8"),
        ("cutout:10", "from 0 to 9"),
        ("rotation:200", "from 0 to 180"),
        ("rotation:nan", "number from 0"),
        ("shift-x:1.5", "from 0 to 1"),
        ("colour:0.6", "from 0 to 0.5"),
        ("noise:inf", "number from 0"),
        ("noise:-1", "number from 0"),
    ],
)
def test_wrong_specifications_are_refused(spec: str, word: str) -> None:
    with pytest.raises(InputError, match=word):
        make_augmentation((spec,), (3, 9, 11))


def test_features_cannot_be_augmented() -> None:
    with pytest.raises(InputError, match=r"images.*\(64,\)"):
        make_augmentation(("flip",), (64,))


def test_augmenting_never_asks_the_host() -> None:
    """Tensors without memory have no value to look at: a branch or a mask's size would raise."""
    with torch.device("meta"):
        x, rows = torch.empty(4, 3, 9, 11), torch.empty(4, dtype=torch.int64)
        fill, seed = torch.empty(3), torch.empty((), dtype=torch.int64)
        assert make_augmentation(ALL, (3, 9, 11))(x, seed, rows, rows, fill).shape == x.shape
