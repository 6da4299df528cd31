"""What is measured, made ready once for all models: examples, magnitudes, partners."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike

from curvewise.errors import InputError
from curvewise.io._table import brief, listed
from curvewise.nn._custom_changes import Custom
from curvewise.nn._feature_reader import PRECISIONS
from curvewise.nn._pairing import draw_partners, lonely
from curvewise.nn._perturbation import Perturbation
from curvewise.nn._tasks import Task
from curvewise.nn.perturbations import find_perturbation, usual_magnitudes
from curvewise.nn.sample import Sample
from curvewise.response.scores import SIGNS, check_magnitudes, folded
from curvewise.types import FloatArray, as_floats

EXAMPLES = 180 * 128
"""Examples taken by default: the paper's 180 batches of 128."""
HASHED = 16
"""Examples whose values tell samples apart that have the same rows and labels."""


@dataclass(frozen=True, eq=False)
class Ready:
    """Examples, magnitudes and partners, the same for every model."""

    sample: Sample
    task: Task
    left_out: int

    @property
    def answers(self) -> int:
        """How many a model is asked for."""
        return len(self.task.levels) * len(self.sample)

    @property
    def digest(self) -> str:
        """Tells samples apart."""
        some = self.sample.x[:HASHED].cpu().numpy()
        told = (self.sample.rows, self.task.labels, some)
        known = b"".join(part.tobytes() for part in told)
        return hashlib.blake2b(known, digest_size=8).hexdigest()


@dataclass(frozen=True, eq=False)
class Options:
    """What :func:`curvewise.nn.response.measure_response` is told beside model and data."""

    layer: str | int | None = None
    magnitudes: ArrayLike | int | None = None
    labels: Any = None
    examples: int | None = EXAMPLES
    batch: int | None = None
    device: str | torch.device | None = None
    precision: str = "float32"
    mean: float | Sequence[float] | None = None
    std: float | Sequence[float] | None = None
    fill: float = 0.0
    interpolation: str = "bilinear"
    signs: str = "fold"
    padding: int | None = None
    mask: int | None = None
    compile: bool | None = None
    rng: int | np.random.Generator = 0

    def check(self) -> None:
        """Refuse what is not known before anything is computed."""
        if self.precision not in PRECISIONS:
            raise InputError(f"precision={self.precision!r}: use one of {listed(PRECISIONS)}.")
        if self.signs not in SIGNS:
            raise InputError(f"signs={self.signs!r}: use one of {listed(SIGNS)}.")
        if self.batch is not None:
            check_count(self.batch, "batch", 1)


def check_count(value: Any, argument: str, least: int) -> None:
    """Refuse what is not a whole number, or too small."""
    number = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not number or value < least:
        raise InputError(f"{argument}={brief(value)}: give a whole number of at least {least}.")


def make_ready(
    sample: Sample, perturbation: str | Perturbation | Custom, options: Options, seed: int
) -> Ready:
    """Check that the perturbation fits the examples, and draw partners."""
    change = find_perturbation(perturbation)
    grid = _grid(change, options.magnitudes)
    folded(grid, options.signs)  # refuses what has no score, before it is measured
    _check_kind(change, sample, options.layer)
    if change.of == "tokens":
        padding = sample.padding if options.padding is None else options.padding
        change = change.fitted(sample.x, padding=padding, mask=options.mask)
    labels = sample.y.cpu().numpy()
    if len(np.unique(labels)) < 2:
        raise InputError(
            f"labels holds one class only, {labels[0]}, in {len(labels)} example(s): a response "
            "needs two or more classes."
        )
    alone = lonely(labels) & (change.pairs == "intra")
    if alone.all():
        raise InputError(
            f"perturbation={change.name!r} mixes two examples of a class, and no class has "
            "two: give more examples."
        )
    if alone.any():
        sample, labels = sample.take(np.flatnonzero(~alone)), labels[~alone]
    partners = None
    if change.pairs is not None:
        partners = draw_partners(labels, change.pairs, len(grid), seed)
    task = Task(labels, change, grid, partners, seed, options.fill, options.interpolation)
    return Ready(sample, task, int(alone.sum()))


def _grid(perturbation: Perturbation, magnitudes: ArrayLike | int | None) -> FloatArray:
    if magnitudes is None or isinstance(magnitudes, int | np.integer):
        # With two directions an odd number, so that 0 is among them.
        usual = 11 if perturbation.usual[0] < 0 < perturbation.usual[1] else 10
        return usual_magnitudes(perturbation, usual if magnitudes is None else int(magnitudes))
    grid = as_floats(magnitudes, "magnitudes")
    if grid.ndim != 1:
        raise InputError(
            f"magnitudes={brief(magnitudes)}: give a list of numbers, or a whole number of them."
        )
    grid = np.sort(grid)
    check_magnitudes(grid)
    for magnitude in grid:
        perturbation.check(float(magnitude))
    return grid


def _check_kind(perturbation: Perturbation, sample: Sample, layer: str | int | None) -> None:
    """Refuse a perturbation of something else than there is."""
    if layer is not None:
        if perturbation.of not in ("values", "features"):
            raise InputError(
                f"perturbation={perturbation.name!r} is for {perturbation.of} and cannot be "
                f"applied at layer={layer!r}: leave layer out, or use mixup, feature-noise or a "
                "function of your own."
            )
        return
    if perturbation.of == "images" and sample.x.is_floating_point() and sample.x.ndim == 4:
        pixels = sample.pixels(sample.x)
        low, high = float(pixels.min()), float(pixels.max())
        if not -0.005 <= low <= high <= 1.005:
            undone = " once mean and std are undone" if sample.mean is not None else ""
            remedy = "pass the mean= and std= that the images were normalised with"
            if low >= 0 and high > 2:
                remedy = f"divide them by {255 if high > 16 else high:g}"
            raise InputError(
                f"data holds images with values from {low:.3g} to {high:.3g}{undone}, and "
                f"perturbation={perturbation.name!r} is for pixels from 0 to 1: {remedy}, or give "
                "images of uint8."
            )
    if perturbation.of == "images" and sample.x.ndim == 3:
        raise InputError(
            f"data holds inputs of shape {tuple(sample.x.shape[1:])}, and perturbation="
            f"{perturbation.name!r} is for images, (channels, height, width): add the channel, "
            "x[:, None]."
        )
    raw = perturbation.of in ("tokens", "images")
    perturbation.check_input(sample.x[:1] if raw else sample.given(sample.x[:1]))
