"""Predicted images side by side: what methods make of the same inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import InputError
from curvewise.text import format_number
from curvewise.transfer.runs import columns_of
from curvewise.types.results import Result

ANY = 0
"""Training size of predictions that belong to no size, such as a blind guess."""
LOSSES = {"l1": np.abs, "l2": np.square}

BySize = Mapping[int, NDArray[Any]]


def compare_images(
    predictions: Mapping[str, ArrayLike | Mapping[int, ArrayLike]],
    targets: ArrayLike,
    inputs: ArrayLike | None = None,
    *,
    examples: Sequence[int] | None = None,
    loss: str = "l1",
) -> PredictedImages:
    """Put the images that methods predicted for the same inputs side by side, with the loss of each.

    Parameters
    ----------
    predictions : dict of str to array, or to dict of int to array
        For each method its images, of the shape of the targets; or these for each training size.
    targets : array
        What was to be predicted: (examples, channels, height, width), or (examples, height, width).
    inputs : array, optional
        What it was predicted from, of any height and width: bytes, or numbers.
    examples : sequence of int, optional
        Positions of the examples to keep; all by default.
    loss : {"l1", "l2"}
        Mean of absolute or squared differences over an image.

    Returns
    -------
    PredictedImages
        ``.plot()`` draws the grid (:func:`plot_predictions`).

    Raises
    ------
    InputError
        If arrays do not belong together.

    Examples
    --------
    >>> targets = np.zeros((2, 1, 4, 4))
    >>> found = compare_images({"scratch": targets + 0.5, "pretrained": targets + 0.25}, targets)
    >>> found.loss_of("pretrained", 1)
    0.25
    """
    if loss not in LOSSES:
        raise InputError(f"use one of {', '.join(LOSSES)}.", argument="loss", value=loss)
    wanted = _images("targets", targets)
    if not np.isfinite(wanted).all():
        raise InputError("holds NaN or infinite values, which no loss can be measured by.", argument="targets")
    count = len(wanted)
    kept = np.arange(count) if examples is None else np.asarray(examples)
    if kept.ndim != 1 or not len(kept) or kept.dtype.kind not in "iu" or kept.min() < 0 or kept.max() >= count:
        problem = f"give positions from 0 to {count - 1}."
        raise InputError(problem, argument="examples", value=examples)
    if not isinstance(predictions, Mapping) or not predictions:
        raise InputError("give a dict of methods and their images.", argument="predictions")
    chosen: dict[str, BySize] = {}
    for method, given in predictions.items():
        by_size = given if isinstance(given, Mapping) else {ANY: given}
        kept_by: dict[int, NDArray[Any]] = {}
        for n, array in sorted(by_size.items()):
            here = _images(f"predictions[{method!r}]", array)
            if here.shape != wanted.shape:
                problem = f"predictions[{method!r}] has shape {here.shape}, the targets {wanted.shape}."
                raise InputError(problem, argument="predictions", remedy="Give both in one order and shape.")
            kept_by[int(n)] = here[kept]
        chosen[str(method)] = kept_by
    shown = None
    if inputs is not None:
        shown = _images("inputs", inputs)
        if len(shown) != count:
            problem = f"has {len(shown)} images, and there are {count} targets."
            raise InputError(problem, argument="inputs", remedy="Give one for each, in the same order.")
        shown = shown[kept]
    rows = []
    for method, by_size in chosen.items():
        for n, here in by_size.items():
            off = LOSSES[loss](here.astype(np.float64) - wanted[kept]).mean(axis=(1, 2, 3))
            rows += [ImageLoss(method, n, int(i), float(v)) for i, v in zip(kept, off, strict=True)]
    sizes = tuple(sorted({n for by in chosen.values() for n in by} - {ANY})) or (ANY,)
    return PredictedImages(loss, sizes, tuple(rows), shown, wanted[kept], chosen)


def _images(name: str, given: ArrayLike) -> NDArray[Any]:
    array = np.asarray(given)
    if array.ndim == 3:
        array = array[:, None]
    if array.ndim != 4 or not array.size or array.dtype.kind not in "fiub":
        problem = f"has shape {np.shape(given)} and type {array.dtype}: it holds no images."
        raise InputError(problem, argument=name, remedy="Give numbers of shape (examples, channels, height, width).")
    return array


@dataclass(frozen=True)
class ImageLoss:
    """Loss of one predicted image.

    Attributes
    ----------
    method : str
    n : int
        Training size; 0 where there is none.
    example : int
        Position of the image among the targets.
    loss : float
    """

    method: str
    n: int
    example: int
    loss: float


@dataclass(frozen=True, eq=False)
class PredictedImages(Result):
    """Images that methods predicted for the same inputs, and their losses.

    Attributes
    ----------
    loss : {"l1", "l2"}
    sizes : tuple of int
        Training sizes; (0,) where there is none.
    rows : tuple of ImageLoss
        Every predicted image.
    inputs : ndarray, optional
        (examples, channels, height, width); None if they were not given.
    targets : ndarray
        (examples, channels, height, width).
    predictions : dict
        Images of each method by training size.
    """

    loss: str
    sizes: tuple[int, ...]
    rows: tuple[ImageLoss, ...]
    inputs: NDArray[Any] | None
    targets: NDArray[Any]
    predictions: Mapping[str, BySize]
    warnings: tuple[str, ...] = ()

    unlisted = ("inputs", "targets", "predictions")

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods, in the order of the columns."""
        return tuple(self.predictions)

    @property
    def positions(self) -> tuple[int, ...]:
        """Positions of the examples."""
        return tuple(dict.fromkeys(row.example for row in self.rows))

    def images_of(self, method: str, n: int = ANY) -> NDArray[Any] | None:
        """Return the images of a method at a training size; None where there are none."""
        by_size = self.predictions[method]
        return by_size.get(n, by_size.get(ANY))

    def loss_of(self, method: str, example: int, n: int = ANY) -> float:
        """Return the loss of one image."""
        there = {row.n: row.loss for row in self.rows if (row.method, row.example) == (method, example)}
        return there.get(n, there.get(ANY, float("nan")))

    def sentences(self) -> str:
        """Mean losses of the methods at each size."""
        parts = []
        for n in self.sizes:
            means = []
            for method in self.methods:
                if self.images_of(method, n) is not None:
                    losses = [self.loss_of(method, example, n) for example in self.positions]
                    means.append(f"{method} {format_number(float(np.mean(losses)), 3)}")
            parts.append(f"{f'n = {n:,}: ' if n else ''}{', '.join(means)}")
        return f"Mean {self.loss.upper()} loss over {len(self.positions)} images. {'; '.join(parts)}."

    def columns(self) -> dict[str, list[Any]]:
        """Return a row for each predicted image."""
        return columns_of(self.rows, "method n example loss")
