"""Three tasks on the images of CIFAR-10: name them, find their edges, give them their colours."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import curvewise as cw
from curvewise.study import Dataset

Make = Callable[[NDArray[np.uint8]], tuple[NDArray[np.generic], NDArray[np.float32]]]

FOLDER = Path(__file__).resolve().parent / "transfer-runs"
TRAIN, TEST = 40_000, 2_000
GREY = np.array([0.299, 0.587, 0.114], dtype=np.float32)
"""Brightness of red, green and blue."""


def prepare_images(train: int = TRAIN, test: int = TEST) -> None:
    """Write the first images of CIFAR-10, as the JPEG files they came as, to one small file."""
    import os

    place = Path(os.environ["CURVEWISE_DATA"]) / "cifar10_jpeg.npz"
    with np.load(place) as stored:
        kept = {"classes": stored["classes"]}
        for part, count in (("train", train), ("test", test)):
            offsets = stored[f"{part}_offsets"][: count + 1]
            kept[f"{part}_jpeg"] = stored[f"{part}_jpeg"][: offsets[-1]]
            kept[f"{part}_offsets"] = offsets
            kept[f"{part}_labels"] = stored[f"{part}_labels"][:count]
    FOLDER.mkdir(parents=True, exist_ok=True)
    np.savez(FOLDER / "cifar10_jpeg.npz", **kept)


def classes(images: int, tested: int) -> Dataset:
    """Return photographs with their classes."""
    whole = _photographs()
    assert whole.test_x is not None
    assert whole.test_y is not None
    return Dataset(whole.x[:images], whole.y[:images], whole.test_x[:tested], whole.test_y[:tested])


def edges(images: int, tested: int) -> Dataset:
    """Return photographs with the gradient of their brightness at each pixel."""
    return _numbers(_edges, images, tested)


def colours(images: int, tested: int) -> Dataset:
    """Return grey photographs with their original colours."""
    return _numbers(_colours, images, tested)


def clothes() -> Dataset:
    """Return Fashion-MNIST, for the pretraining that is done here."""
    with np.load(FOLDER / "fashion-mnist.npz") as stored:
        return Dataset(stored["x"], stored["y"])


def _photographs() -> Dataset:
    return cw.load_dataset({"name": "cifar10", "path": FOLDER / "cifar10_jpeg.npz"})


def _numbers(make: Make, images: int, tested: int) -> Dataset:
    whole = _photographs()
    assert whole.test_x is not None
    pairs = make(whole.x[:images]), make(whole.test_x[:tested])
    return Dataset(*pairs[0], *pairs[1], targets="numbers")


def _edges(images: NDArray[np.uint8]) -> tuple[NDArray[np.generic], NDArray[np.float32]]:
    """Return images with the gradient of their brightness at each pixel: Sobel's filter, about 0 to 1."""
    from scipy.ndimage import correlate1d

    grey = _brightness(images)  # of many images: scipy's sobel would mix them
    down, across = (correlate1d(correlate1d(grey, [-1, 0, 1], axis=a), [1, 2, 1], axis=b) for a, b in ((1, 2), (2, 1)))
    steep = np.hypot(down, across) / 4
    return images, steep[:, None].astype(np.float32)


def _colours(images: NDArray[np.uint8]) -> tuple[NDArray[np.generic], NDArray[np.float32]]:
    """Return grey images with their blue and red relative to grey, about -1 to 1."""
    grey = _brightness(images)
    share = images.astype(np.float32) / 255
    chroma = np.stack([share[:, 2] - grey, share[:, 0] - grey], axis=1)
    return np.round(grey * 255).astype(np.uint8)[:, None], chroma


def _brightness(images: NDArray[np.uint8]) -> NDArray[np.float32]:
    return np.einsum("c,nchw->nhw", GREY, images.astype(np.float32) / 255)
