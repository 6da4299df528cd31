"""What is measured, made ready once for all models: examples, magnitudes, partners."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import InputError
from curvewise.nn.data import Sample
from curvewise.nn.devices import PRECISIONS
from curvewise.response.networks.perturbations import Custom, Perturbation, find_perturbation, usual_magnitudes
from curvewise.response.scores import SIGNS, check_magnitudes, folded
from curvewise.text import brief, list_names
from curvewise.types.units import FloatArray, as_floats

EXAMPLES = 180 * 128
"""Examples taken by default: the paper's 180 batches of 128."""
HASHED = 16
"""Examples whose values tell samples apart that have the same rows and labels."""


# What a network is to answer, and how.

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Task:
    """What is to be answered.

    Attributes
    ----------
    labels : ndarray of int, shape (N,)
        Classes of the examples.
    perturbation : Perturbation
        What is done to them.
    magnitudes : ndarray, shape (M,)
        How much.
    partners : ndarray of int, shape (M, N), or None
        With what, for perturbations of pairs.
    seed : int
        Decides noise and places.
    fill, interpolation
        How images are changed.
    """

    labels: Integers
    perturbation: Perturbation
    magnitudes: FloatArray
    partners: Integers | None
    seed: int
    fill: float = 0.0
    interpolation: str = "bilinear"

    @property
    def levels(self) -> list[int]:
        """Which magnitudes are to be measured: −1 for none, and all that are not 0."""
        return [-1, *np.flatnonzero(self.magnitudes).tolist()]


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
    """What :func:`curvewise.response.networks.measurement.measure_response` is told beside model and data."""

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
            raise InputError(f"precision={self.precision!r}: use one of {list_names(PRECISIONS)}.")
        if self.signs not in SIGNS:
            raise InputError(f"signs={self.signs!r}: use one of {list_names(SIGNS)}.")
        if self.batch is not None:
            check_count(self.batch, "batch", 1)


def check_count(value: Any, argument: str, least: int) -> None:
    """Refuse what is not a whole number, or too small."""
    number = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not number or value < least:
        raise InputError(f"{argument}={brief(value)}: give a whole number of at least {least}.")


def make_ready(sample: Sample, perturbation: str | Perturbation | Custom, options: Options, seed: int) -> Ready:
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
            f"perturbation={change.name!r} mixes two examples of a class, and no class has two: give more examples."
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
        raise InputError(f"magnitudes={brief(magnitudes)}: give a list of numbers, or a whole number of them.")
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


@dataclass(frozen=True, eq=False)
class Manner:
    """How it is to be done.

    Attributes
    ----------
    device, precision
        Where, and in what arithmetic.
    batch : int
        Examples given to the network at a time.
    compiled : bool
        Whether to compile.
    advance : callable
        Told how many examples were answered.
    notes : list of str
        Takes what a reader should know.
    """

    device: torch.device
    precision: str
    batch: int
    compiled: bool
    advance: Callable[[float], None]
    notes: list[str] = field(default_factory=list)


# Partners for perturbations of pairs: drawn through an index per class over the whole sample.


def draw_partners(labels: Integers, pairs: str, count: int, seed: int) -> Integers:
    """Draw a partner for each example, anew for each magnitude.

    Parameters
    ----------
    labels : ndarray of int, shape (N,)
        Classes. For ``"intra"`` each must be there twice or not at all (:func:`lonely`).
    pairs : {"intra", "inter"}
        Of the same class: every example is then the partner of exactly one other. Or of another
        class, all examples of other classes being equally likely.
    count : int
        Magnitudes.
    seed : int
        With the number of the magnitude it fully decides the partners.

    Returns
    -------
    ndarray of int, shape (count, N)
        Positions of the partners.

    Examples
    --------
    >>> labels = np.array([0, 1, 0, 1])
    >>> draw_partners(labels, "intra", 1, seed=0)
    array([[2, 3, 0, 1]])
    """
    draw = _same_class if pairs == "intra" else _other_class
    return np.stack([draw(labels, np.random.default_rng([seed, i])) for i in range(count)])


def lonely(labels: Integers) -> NDArray[np.bool_]:
    """Which examples are the only ones of their class.

    >>> lonely(np.array([0, 1, 0])).tolist()
    [False, True, False]
    """
    _, place, count = np.unique(labels, return_inverse=True, return_counts=True)
    alone: NDArray[np.bool_] = count[place] == 1
    return alone


def _same_class(labels: Integers, random: np.random.Generator) -> Integers:
    """Put each class in a ring of random order; the partner is the next one."""
    order = random.permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]
    _, first, count = np.unique(labels[order], return_index=True, return_counts=True)
    following = np.arange(1, len(labels) + 1)
    following[first + count - 1] = first
    partners = np.empty(len(labels), dtype=np.int64)
    partners[order] = order[following]
    return partners


def _other_class(labels: Integers, random: np.random.Generator) -> Integers:
    """Draw from all examples, sorted by class, with the example's own class cut out."""
    order = np.argsort(labels, kind="stable")
    _, first, place, count = np.unique(labels[order], return_index=True, return_inverse=True, return_counts=True)
    own, start = count[place], first[place]
    drawn = random.integers(len(labels) - own)
    partners = np.empty(len(labels), dtype=np.int64)
    partners[order] = order[np.where(drawn < start, drawn, drawn + own)]
    return partners
