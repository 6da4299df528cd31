"""Images become what a checkpoint takes: against Pillow and transformers' image processors."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from transformers import CLIPImageProcessorPil, ConvNextImageProcessorPil, ViTImageProcessorPil

from curvewise.errors import InputError
from curvewise.ranking.networks.preprocessing import Preprocessing, as_preprocessing, preprocessing_in, preprocessing_of


def smooth(count: int = 3, height: int = 40, width: int = 56, channels: int = 3) -> np.ndarray:
    """Pictures without noise, whose values stay away from the ends of the scale."""
    rng = np.random.default_rng(5)
    small = rng.integers(60, 200, (count, channels, 5, 7)).astype(np.uint8)
    large = [
        [np.asarray(Image.fromarray(c).resize((width, height), Image.Resampling.BICUBIC)) for c in p] for p in small
    ]
    return np.array(large)


def pictures(images: np.ndarray) -> list[Image.Image]:
    return [Image.fromarray(x.transpose(1, 2, 0)) for x in images]


@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic"])
@pytest.mark.parametrize("sides", [(17, 23), (90, 61)])
def test_resizing_is_that_of_pillow(interpolation: str, sides: tuple[int, int]) -> None:
    images = smooth()
    way = getattr(Image.Resampling, interpolation.upper())
    wanted = np.array([np.asarray(p.resize(sides[::-1], way)) for p in pictures(images)])
    made = Preprocessing(sides, scale=255, interpolation=interpolation)(torch.from_numpy(images))
    assert np.abs(made.numpy().transpose(0, 2, 3, 1) - wanted).max() <= 1


def test_the_shorter_side_is_resized_and_the_centre_is_cut() -> None:
    images = torch.from_numpy(smooth(height=40, width=60))
    plain = Preprocessing(20, scale=255)(images)
    assert plain.shape == (3, 3, 20, 30)
    cut = Preprocessing(20, 16, scale=255)(images)
    assert torch.equal(cut, plain[:, :, 2:18, 7:23])
    assert Preprocessing(20, 16).shape(40, 60) == (3, 16, 16)
    assert Preprocessing(20).shape(60, 40) == (3, 30, 20)


def test_values_are_scaled_and_normalised_per_channel() -> None:
    images = torch.full((1, 3, 2, 2), 51, dtype=torch.uint8)
    made = Preprocessing(mean=(0.1, 0.2, 0.3), std=(1, 2, 0.5))(images)
    assert torch.allclose(made[0, :, 0, 0], torch.tensor([0.1, 0.0, -0.2]), atol=1e-6)


def test_caffes_order_of_channels_and_scale() -> None:
    images = torch.arange(3, dtype=torch.uint8)[None, :, None, None].expand(1, 3, 2, 2)
    made = Preprocessing(channels="bgr", scale=255, mean=(104, 117, 123))(images)
    assert made[0, :, 0, 0].tolist() == [2 - 104, 1 - 117, 0 - 123]


def test_grey_is_repeated_and_colours_become_grey_as_in_pillow() -> None:
    images = smooth()
    wanted = np.array([np.asarray(p.convert("L")) for p in pictures(images)])
    grey = Preprocessing(channels="grey", scale=255)(torch.from_numpy(images))
    assert np.abs(grey[:, 0].numpy() - wanted).max() <= 1
    one = torch.from_numpy(images[:, :1])
    assert torch.equal(Preprocessing(scale=255)(one)[:, 2], one[:, 0].float())


def test_images_of_several_sizes_and_channels_at_the_end() -> None:
    several = [torch.from_numpy(smooth(1, h, w)[0]) for h, w in ((30, 40), (50, 20))]
    made = Preprocessing(24, 24, layout="last")(several)
    assert made.shape == (2, 24, 24, 3)
    alone = Preprocessing(24, 24)(several[1][None])
    assert torch.equal(made[1], alone[0].movedim(0, -1))


@pytest.mark.parametrize(
    ("processor", "levels"),
    [
        (ViTImageProcessorPil(size={"height": 32, "width": 48}), 1),
        (CLIPImageProcessorPil(size={"shortest_edge": 36}, crop_size=32), 1),
        (ConvNextImageProcessorPil(size={"shortest_edge": 32}), 1),
        (ConvNextImageProcessorPil(size={"shortest_edge": 384}), 1),
        (ViTImageProcessorPil(size={"height": 32, "width": 32}, do_normalize=False), 1),
        (ViTImageProcessorPil(size={"height": 32, "width": 32}, do_rescale=False), 1),
    ],
    ids=["vit", "clip", "convnext", "convnext-384", "not-normalised", "not-scaled"],
)
def test_image_processors_do_the_same(processor: Any, levels: int, tmp_path: Path) -> None:
    images = smooth()
    wanted = processor(images=pictures(images), return_tensors="np")["pixel_values"]
    read = as_preprocessing(processor)
    assert isinstance(read, Preprocessing)
    made = read(torch.from_numpy(images)).numpy()
    one_level = read.scale / 255 / np.min(read.std)
    assert np.abs(made - wanted).max() <= levels * one_level * 1.001
    processor.save_pretrained(tmp_path)
    assert preprocessing_in(tmp_path) == read


def test_what_timm_says_of_a_network() -> None:
    cfg = {
        "input_size": (3, 240, 240),
        "mean": (0.485, 0.456, 0.406),
        "std": (0.229, 0.224, 0.225),
        "interpolation": "bicubic",
        "crop_pct": 0.9,
        "crop_mode": "center",
    }
    model = SimpleNamespace(pretrained_cfg=cfg)
    wanted = Preprocessing(266, (240, 240), cfg["mean"], cfg["std"], "bicubic")  # type: ignore[arg-type]
    assert preprocessing_of(model) == wanted
    assert preprocessing_of(SimpleNamespace(default_cfg=SimpleNamespace(**cfg))) == wanted
    squashed = preprocessing_of(SimpleNamespace(pretrained_cfg={**cfg, "crop_mode": "squash"}))
    assert isinstance(squashed, Preprocessing)
    assert squashed.size == (266, 266)
    assert preprocessing_of(SimpleNamespace()) is None


def test_weights_and_transforms_of_torchvision() -> None:
    class Mode(Enum):
        BILINEAR = "bilinear"

    transforms = SimpleNamespace(
        crop_size=[224],
        resize_size=[232],
        mean=[0.485, 0.456, 0.406],
        std=[0.229, 0.224, 0.225],
        interpolation=Mode.BILINEAR,
        antialias=True,
    )
    wanted = Preprocessing(232, 224, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
    assert as_preprocessing(transforms) == wanted
    assert as_preprocessing(SimpleNamespace(transforms=lambda: transforms)) == wanted


def test_a_dict_and_a_function_will_do() -> None:
    assert as_preprocessing({"size": 32, "channels": "grey"}) == Preprocessing(32, channels="grey")
    double = lambda x: 2 * x  # noqa: E731
    assert as_preprocessing(double) is double


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"size": 0}, "'size': 0"),
        ({"crop": (1, 2, 3)}, "'crop'"),
        ({"interpolation": "lanczos"}, "use one of nearest, bilinear, bicubic"),
        ({"mean": (0.5, 0.5)}, "mean has 2 values"),
        ({"std": 0}, "above 0"),
    ],
    ids=["size", "crop", "interpolation", "mean", "std"],
)
def test_what_cannot_be_is_told(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        Preprocessing(**options)


def test_images_that_do_not_fit_are_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"'crop': 64}: larger than images of 40 × 56"):
        Preprocessing(crop=64)(torch.from_numpy(smooth()))
    with pytest.raises(InputError, match="images of 4 channels"):
        Preprocessing()(torch.zeros(1, 4, 8, 8, dtype=torch.uint8))
    with pytest.raises(InputError, match="is not understood"):
        as_preprocessing(3)
    (tmp_path / "preprocessor_config.json").write_text("{")
    with pytest.raises(InputError, match="cannot be read"):
        preprocessing_in(tmp_path)


@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic"])
def test_arrays_are_resized_as_tensors_are(interpolation: str, antialias: bool) -> None:
    """The matrices of numpy are torch's filters, also where an image grows along one axis."""
    images = np.random.default_rng(0).integers(0, 256, (2, 3, 40, 24), dtype=np.uint8)
    how = Preprocessing((17, 31), interpolation=interpolation, antialias=antialias)
    found, wanted = how(images), how(torch.from_numpy(images)).numpy()
    # Both round to pixels of 1/255, which may go either way at a half.
    assert np.abs(found - wanted).max() < 1.5 / 255
    assert np.abs(found - wanted).mean() < 1e-4
