"""One trial, the same for every model: examples, magnitudes and partners; and how it is executed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import InputError, arg, brief, list_names
from curvewise.nn.data import Sample, channels_last, draw_sample, is_channels_last
from curvewise.nn.devices import PRECISIONS
from curvewise.response.networks.perturbations import Custom, Perturbation, find_perturbation, usual_magnitudes
from curvewise.response.scores import check_magnitudes, folded
from curvewise.types.results import FloatArray, as_floats, check_whole

Integers = NDArray[np.int64]
Magnitudes = ArrayLike | int | str | None
Change = str | Perturbation | Custom

EXAMPLES = 180 * 128
"""Examples taken by default: 180 batches of 128, as in the paper."""
# Examples whose values distinguish samples that have the same rows and labels.
HASHED = 16


@dataclass(frozen=True)
class Execution:
    """Device, batch size and arithmetic for computing a network.

    Attributes
    ----------
    device : str or torch.device, optional
        By default where the model is.
    batch : int, optional
        Examples given to the model at a time; by default what suits device and model. Answers do not depend on it, up
        to rounding.
    precision : {"float32", "bfloat16", "float16"}
        Of the arithmetic, by autocast.
    compile : bool, optional
        Compile the network together with the mixing of pairs, which takes half a minute; by default on a GPU, from ten
        million answers on.
    """

    device: str | torch.device | None = None
    batch: int | None = None
    precision: str = "float32"
    compile: bool | None = None

    @classmethod
    def of(cls, device: Device) -> Execution:
        """Return an execution as it is, or one on a device with the usual settings."""
        return device if isinstance(device, Execution) else cls(device)

    def __post_init__(self) -> None:
        if self.precision not in PRECISIONS:
            raise InputError(f"use one of {list_names(PRECISIONS)}.", argument="precision", value=self.precision)
        if self.batch is not None:
            object.__setattr__(self, "batch", check_whole(self.batch, "batch", 1))


Device = str | torch.device | Execution | None
"""A place to compute, or all settings of the execution; None where the model is."""


@dataclass(frozen=True, eq=False)
class ExecutionPlan:
    """An :class:`Execution` settled for one model.

    Attributes
    ----------
    device, precision
        Where, and in what arithmetic.
    batch : int
        Examples given to the network at a time.
    compiled : bool
        Compile the network.
    advance : callable
        Called with the number of examples that were answered.
    notes : list of str
        Collects remarks for the reader.
    """

    device: torch.device
    precision: str
    batch: int
    compiled: bool
    advance: Callable[[float], None]
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Trial:
    """Perturbed examples to be answered.

    Attributes
    ----------
    sample : Sample
        The examples.
    labels : ndarray of int, shape (N,)
        Their classes.
    perturbation : Perturbation
        The change.
    magnitudes : ndarray, shape (M,)
        In rising order.
    partners : ndarray of int, shape (M, N), or None
        Positions of the partners, for perturbations of pairs.
    seed : int
        Decides noise and places.
    left_out : int
        Examples that have no partner.
    layer : str or int, optional
        Where the perturbation is applied; None at the input.
    signs : str
        How the scores take negative magnitudes.
    """

    sample: Sample
    labels: Integers
    perturbation: Perturbation
    magnitudes: FloatArray
    partners: Integers | None
    seed: int
    left_out: int = 0
    layer: str | int | None = None
    signs: str = "fold"

    @classmethod
    def prepare(
        cls,
        sample: Sample,
        perturbation: Change,
        seed: int,
        *,
        layer: str | int | None = None,
        magnitudes: Magnitudes = None,
        signs: str = "fold",
    ) -> Trial:
        """Check that the perturbation fits the examples, and draw partners."""
        change = find_perturbation(perturbation)
        grid = _grid(change, magnitudes)
        # Refuses magnitudes that have no score before anything is measured.
        folded(grid, signs)
        check_kind(change, sample, layer)
        if change.of == "tokens":
            sample = as_tokens(sample)
            change = change.fitted(sample.x, padding=sample.padding)
        labels = sample.y.cpu().numpy()
        if len(np.unique(labels)) < 2:
            raise InputError(f"holds one class only, {labels[0]}: a response needs two or more.", argument="labels")
        # Mixing an example with itself would change nothing and count as robust.
        alone = lonely(labels) & (change.pairs == "intra")
        if alone.all():
            problem = "mixes two examples of a class, and no class has two: give more examples."
            raise InputError(f"{arg('perturbation', change.name)} {problem}")
        if alone.any():
            sample, labels = sample.take(np.flatnonzero(~alone)), labels[~alone]
        partners = None if change.pairs is None else draw_partners(labels, change.pairs, len(grid), seed)
        return cls(sample, labels, change, grid, partners, seed, int(alone.sum()), layer, signs)

    @property
    def levels(self) -> list[int]:
        """Positions of the magnitudes to measure: −1 for none, and all that are not 0."""
        return [-1, *np.flatnonzero(self.magnitudes).tolist()]

    @property
    def answers(self) -> int:
        """Number of answers that a model is asked for."""
        return len(self.levels) * len(self.sample)

    @property
    def digest(self) -> str:
        """Hash of rows, labels and the first values: curves with the same digest are compared in pairs."""
        some = self.sample.x[:HASHED].cpu().numpy()
        known = b"".join(part.tobytes() for part in (self.sample.rows, self.labels, some))
        return hashlib.blake2b(known, digest_size=8).hexdigest()


def read_sample(
    data: Any, reading: Mapping[str, Any] | None, examples: float | None, rng: int | np.random.Generator
) -> Sample:
    """Draw examples from data of any kind; ``reading`` holds ``labels``, ``mean`` and ``std`` where data does not."""
    given = dict(reading or {})
    for key in given:
        if key not in ("labels", "mean", "std"):
            raise InputError(f"holds {brief(key)}: use 'labels', 'mean' and 'std'.", argument="reading")
    return draw_sample(data, given.pop("labels", None), examples=examples, rng=rng, **given)


def _grid(perturbation: Perturbation, magnitudes: Magnitudes) -> FloatArray:
    if isinstance(magnitudes, str):
        if magnitudes != "paper":
            raise InputError("give numbers, or 'paper' for its range.", argument="magnitudes", value=magnitudes)
        perturbation, magnitudes = replace(perturbation, usual=perturbation.paper_range), None
    if magnitudes is None or isinstance(magnitudes, int | np.integer):
        if magnitudes is not None:
            check_whole(magnitudes, "magnitudes", 2)
        # With two directions an odd number, so that 0 is among them.
        usual = 11 if perturbation.usual[0] < 0 < perturbation.usual[1] else 10
        return usual_magnitudes(perturbation, usual if magnitudes is None else int(magnitudes))
    grid = as_floats(magnitudes, "magnitudes")
    if grid.ndim != 1:
        raise InputError("give a list of numbers, or a whole number of them.", argument="magnitudes", value=magnitudes)
    grid = np.sort(grid)
    check_magnitudes(grid)
    for magnitude in grid:
        perturbation.check(float(magnitude))
    return grid


def check_kind(perturbation: Perturbation, sample: Sample, layer: str | int | None = None) -> None:
    """Refuse a perturbation that does not fit the examples or the layer."""
    if layer is not None:
        if perturbation.of not in ("values", "features"):
            raise InputError(
                f"{arg('perturbation', perturbation.name)} is for {perturbation.of} and cannot be applied at "
                f"{arg('layer', layer)}: leave layer out, or use mixup, feature-noise or a function of your own."
            )
        return
    if perturbation.of == "images" and sample.x.is_floating_point() and sample.x.ndim == 4:
        pixels = sample.pixels(sample.x)
        low, high = float(pixels.min()), float(pixels.max())
        if not -0.005 <= low <= high <= 1.005:  # one step of a byte for rounding in the user's own normalisation
            undone = " once mean and std are undone" if sample.mean is not None else ""
            remedy = f"pass the {arg('mean')} and {arg('std')} that the images were normalised with"
            if low >= 0 and high > 2:
                remedy = f"divide them by {255 if high > 16 else high:g}"
            raise InputError(
                f"holds images with values from {low:.3g} to {high:.3g}{undone}, and "
                f"{arg('perturbation', perturbation.name)} is for pixels from 0 to 1: {remedy}, or give images of "
                "uint8.",
                argument="data",
            )
    if perturbation.of == "images" and sample.x.ndim == 3:
        raise InputError(
            f"holds inputs of shape {tuple(sample.x.shape[1:])}, and {arg('perturbation', perturbation.name)} is "
            "for images, (channels, height, width): add the channel, x[:, None].",
            argument="data",
        )
    if perturbation.of == "images" and is_channels_last(sample.x.shape):
        raise InputError(channels_last(sample.x.shape), argument="data")
    # Pixels and tokens are changed as they are stored, other values as the network takes them.
    raw = perturbation.of in ("tokens", "images")
    perturbation.check_input(sample.x[:1] if raw else sample.given(sample.x[:1]))


def as_tokens(sample: Sample) -> Sample:
    """Return examples for a perturbation of tokens: bytes are tokens as well, not pixels to be divided by 255."""
    return replace(sample, x=sample.x.to(torch.int64))


def draw_partners(labels: Integers, pairs: str, count: int, seed: int) -> Integers:
    """Draw a partner for each example, anew for each magnitude.

    Parameters
    ----------
    labels : ndarray of int, shape (N,)
        Classes. For ``"intra"`` each must occur twice or not at all (:func:`lonely`).
    pairs : {"intra", "inter"}
        Of the same class: every example is then the partner of exactly one other. Or of another class, all examples of
        other classes being equally likely.
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
    """Mark the examples that are the only ones of their class.

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
    # The last of each class is followed by its first.
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
