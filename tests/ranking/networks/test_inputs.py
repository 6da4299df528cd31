"""Examples of every kind reach the network as they are, or it is said why they cannot."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset

from curvewise.errors import InputError
from curvewise.ranking.networks import preprocessing as _preprocessing
from curvewise.ranking.networks.checkpoints import Checkpoint
from curvewise.ranking.networks.features import extract_features, extract_many
from curvewise.ranking.networks.inputs import read_inputs
from curvewise.ranking.networks.preprocessing import Preprocessing

PIXELS = np.random.default_rng(5).integers(0, 256, (20, 9, 7, 3)).astype(np.uint8)


class Items(Dataset[Any]):
    """Whatever a function makes of pixels, with a label."""

    def __init__(self, make: Any) -> None:
        self.make = make

    def __len__(self) -> int:
        return len(PIXELS)

    def __getitem__(self, i: int) -> Any:
        return self.make(PIXELS[i], i)


def network() -> nn.Module:
    torch.manual_seed(0)
    pool = nn.Sequential(nn.AdaptiveAvgPool2d(2), nn.Flatten())
    return nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), pool, nn.Linear(16, 3))


def by_hand(x: np.ndarray) -> np.ndarray:
    with torch.no_grad():
        return network()[:3](torch.from_numpy(x)).numpy()  # type: ignore[index]


FIRST = PIXELS.transpose(0, 3, 1, 2).astype(np.float32) / 255


def picture(pixels: np.ndarray, i: int) -> tuple[Image.Image, int]:
    return Image.fromarray(pixels), i % 3


@pytest.mark.parametrize("layout", [None, "first", "last"])
def test_pictures_know_where_their_channels_are(layout: str | None) -> None:
    one = Checkpoint("net", network(), preprocessing=Preprocessing())
    for data in (Items(picture), DataLoader(Items(picture), shuffle=True, collate_fn=list)):
        found = extract_features(one, data, layout=layout, batch=6)
        assert np.allclose(found.features, by_hand(FIRST), atol=1e-6)
    narrow = Items(lambda x, i: (Image.fromarray(x[:, :3]), 0))
    found = extract_features(one, narrow, layout=layout)
    assert np.allclose(found.features, by_hand(np.ascontiguousarray(FIRST[..., :3])), atol=1e-6)


def test_numbers_with_channels_last_are_moved_where_that_is_said() -> None:
    last = np.moveaxis(FIRST, 1, -1)
    for data in (last, Items(lambda x, i: (x.astype(np.float32) / 255, 0))):
        found = extract_features(network(), data, layout="last")
        assert np.allclose(found.features, by_hand(FIRST), atol=1e-6)


def test_pictures_in_a_list() -> None:
    pictures = [Image.fromarray(x) for x in PIXELS]
    one = Checkpoint("net", network(), preprocessing=Preprocessing((9, 7)))
    assert np.allclose(extract_features(one, pictures).features, by_hand(FIRST), atol=1e-6)
    pictures[3] = pictures[3].resize((30, 20))
    assert len(extract_features(one, pictures)) == 20
    with pytest.raises(InputError, match=r"several sizes, and preprocessing leaves them so"):
        extract_features(one.__class__("net", network(), preprocessing=Preprocessing(9)), pictures)


def test_tables_and_columns_of_texts() -> None:
    table = pd.DataFrame(np.arange(12.0).reshape(3, 4), index=[7, 8, 9])
    found = extract_features(nn.Linear(4, 2), table)
    assert np.array_equal(found.features, table.to_numpy(np.float32))
    texts = pd.Series(["one", "two"], index=[5, 6])
    assert [*read_inputs(texts).batches(2)] == [["one", "two"]]


def broken(pixels: np.ndarray, i: int) -> tuple[np.ndarray, int]:
    if i == 17:
        raise OSError("truncated file")
    return pixels, 0


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (broken, r"example 17 cannot be read \(OSError: truncated file\)"),
        (lambda x, i: {"image": x, "label": 0}, "a dict with image, label"),
        (lambda x, i: (Image.fromarray(x[..., 0].astype(np.uint16)), 0), "more than 8 bits"),
    ],
    ids=["broken", "dict", "sixteen bits"],
)
def test_examples_that_cannot_be_read_are_told(make: Any, said: str) -> None:
    one = Checkpoint("net", network(), preprocessing=Preprocessing())
    with pytest.raises(InputError, match=said):
        extract_features(one, Items(make))


def test_things_that_differ_in_shape_are_told() -> None:
    with pytest.raises(InputError, match="differ in shape"):
        extract_features(network(), [np.zeros((3, n)) for n in (4, 5, 4)])


def test_one_preprocessing_for_all_that_bring_none() -> None:
    def mean(x: np.ndarray) -> np.ndarray:
        return x.mean(axis=(2, 3))

    plain, own = network(), network()
    own.pretrained_cfg = {"input_size": (3, 9, 7), "mean": (0.2,) * 3, "std": (0.5,) * 3}  # type: ignore[assignment]
    said = Checkpoint("said", network(), preprocessing=Preprocessing(mean=0.1))
    pool = {"plain": plain, "own": own, "said": said, "function": mean}
    found, failures = extract_many(pool, PIXELS, preprocessing={"mean": 0.5, "std": 0.5})
    assert failures == {}
    assert np.allclose(found["plain"].features, by_hand((FIRST - 0.5) / 0.5), atol=1e-5)
    assert np.allclose(found["said"].features, by_hand(FIRST - np.float32(0.1)), atol=1e-5)
    assert np.allclose(found["function"].features, mean((FIRST - 0.5) / 0.5), atol=1e-5)
    assert not np.allclose(found["own"].features, found["plain"].features, atol=1e-3)
    inputs = read_inputs(PIXELS, preprocessing=Preprocessing(mean=0.5, std=0.5))
    assert np.array_equal(extract_features(plain, inputs).features, found["plain"].features)
    with pytest.raises(InputError, match="is not known"):
        extract_features(plain, PIXELS)
    with pytest.raises(InputError, match="not understood"):
        extract_features(plain, PIXELS, preprocessing=3)


def test_large_images_are_resized_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.from_numpy(PIXELS).movedim(-1, 1)
    whole = Preprocessing(6, 5)(x)
    sizes: list[int] = []
    resize = Preprocessing._resized

    def seen(self: Preprocessing, part: torch.Tensor) -> torch.Tensor:
        sizes.append(part.numel())
        return resize(self, part)

    monkeypatch.setattr(_preprocessing, "_PIXELS", 500)
    monkeypatch.setattr(Preprocessing, "_resized", seen)
    assert torch.equal(Preprocessing(6, 5)(x), whole)
    assert max(sizes) <= 500


def test_lists_of_several_lengths_are_no_labels() -> None:
    with pytest.raises(InputError, match="labels holds lists of several lengths"):
        read_inputs(np.zeros((2, 3), np.float32), [[0], [0, 1]])
