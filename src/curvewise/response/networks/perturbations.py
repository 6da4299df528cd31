"""Perturbations of images, texts and tables by name: their magnitudes, units and limits, and how they are applied.

A change takes examples, a magnitude for each of them and a :class:`Draw`. All random numbers are functions of a seed,
the position of the example in the sample and the place within it, not of the batch: batches and threads do not matter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from curvewise.errors import InputError, arg, list_names, suggest
from curvewise.nn import augmentation
from curvewise.nn.augmentation import hashed, uniform
from curvewise.types.results import check_whole

Custom = Callable[[Tensor, float, torch.Generator], Tensor]

# The widest blur in pixels; its kernel reaches four times as far.
BLUR = 10.0
# Texts from which on it can be seen which tokens belong to every text.
ENOUGH = 32
# Examples that `perturb` changes at a time, so that large arrays are not copied whole.
AT_ONCE = 1024
INTERPOLATIONS = ("bilinear", "nearest")
EXPECTED = {
    "images": "images of uint8 or floating point, (batch, channels, height, width)",
    "values": "floating point, (batch, ...), or images of uint8",
    "tokens": "tokens as whole numbers, (batch, length)",
    "features": "features of floating point, (batch, features)",
}
"""The input of each kind of perturbation."""


@dataclass(frozen=True)
class TokenRoles:
    """Tokens that are not words, as far as they were given.

    Attributes
    ----------
    padding : int, optional
        Fills short texts up. It is never touched.
    special : sequence of int, optional
        Other tokens that are never touched, such as those for beginning and end. Unless given: those that every text
        has equally often, where there are at least 32 texts.
    mask : int, optional
        Replaces a dropped token; the padding unless given.
    """

    padding: int | None = None
    special: Sequence[int] | None = None
    mask: int | None = None


@dataclass(frozen=True)
class Perturbation:
    """A family of changes to examples; magnitude 0 changes nothing.

    Attributes
    ----------
    name, unit : str
        Its name and the unit of magnitudes.
    low, high : float
        The range of magnitudes. Where ``low`` is negative the sign is a direction.
    change : callable
        ``(x, magnitude, draw)`` with magnitudes of shape (B,); ``(x, magnitude, partner)`` where there are pairs.
        Images come with values from 0 to 1, and the result is clipped to that.
    coloured : bool
        Needs three channels.
    of : {"images", "values", "tokens", "features"}
        What it changes: pixels; any floating point, at the input or at any layer; tokens of texts; or rows of a table.
    pairs : {"intra", "inter"}, optional
        Each example is mixed with a partner, of its own class or of another.
    usual : tuple of float
        The range that is measured by default.
    paper : tuple of float, optional
        The range of Schiff et al. 2021, where that is another one.
    learn : callable, optional
        Computes what it has to know of the whole sample, see :meth:`fitted`.
    known : object, optional
        What it learnt.
    fill : float
        Value from 0 to 1 of what comes in from outside an image, or is cut out.
    interpolation : {"bilinear", "nearest"}
        For what moves pixels by parts of a pixel.
    roles : TokenRoles
        For tokens: padding, special tokens and the mask.
    """

    name: str
    unit: str
    low: float
    high: float
    change: Callable[[Tensor, Tensor, Any], Tensor]
    coloured: bool = False
    of: str = "images"
    pairs: str | None = None
    usual: tuple[float, float] = (0.0, 1.0)
    learn: Callable[[Tensor, TokenRoles], Any] | None = None
    known: Any = field(default=None, compare=False, repr=False)
    fill: float = 0.0
    interpolation: str = "bilinear"
    roles: TokenRoles = field(default_factory=TokenRoles)
    paper: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if self.interpolation not in INTERPOLATIONS:
            raise InputError(f"use {list_names(INTERPOLATIONS)}.", argument="interpolation", value=self.interpolation)
        if not isinstance(self.fill, Real) or not 0 <= self.fill <= 1:
            raise InputError("give a value from 0 (black) to 1 (white).", argument="fill", value=self.fill)

    @property
    def paper_range(self) -> tuple[float, float]:
        """The range of Schiff et al. 2021."""
        return self.usual if self.paper is None else self.paper

    def fitted(self, x: Tensor, *, padding: int | None = None) -> Perturbation:
        """Learn from the sample: spreads, other examples, tokens.

        Feature noise is measured in spreads over the sample, features are swapped between its examples, tokens are
        replaced by its tokens. A perturbation that was not fitted takes the batch that it is applied to for the sample.
        One that needs nothing, or was fitted before, stays as it is.

        Parameters
        ----------
        x : Tensor, shape (examples, ...)
            The sample, in the order that positions count; what the layer gives for it, where a layer is perturbed. Best
            on the device where it will be applied.
        padding : int, optional
            The padding of the data, where the perturbation was not given one.

        Examples
        --------
        >>> texts = torch.tensor([[1, 5, 6, 2, 0], [1, 7, 2, 0, 0]])
        >>> drop = find_perturbation("token-dropout", padding=0, special=(1, 2), mask=9).fitted(texts)
        >>> drop.apply(texts, 1.0).tolist()
        [[1, 9, 9, 2, 0], [1, 9, 2, 0, 0]]
        """
        if self.learn is None or self.known is not None:
            return self
        roles = replace(self.roles, padding=padding) if self.roles.padding is None else self.roles
        return replace(self, known=self.learn(self._values(x), roles))

    def apply(
        self,
        x: Tensor,
        magnitude: float | Tensor,
        seed: int = 0,
        *,
        positions: Tensor | None = None,
        partner: Tensor | None = None,
    ) -> Tensor:
        """Perturb a batch of examples, on the device it is on.

        Parameters
        ----------
        x : Tensor, shape (B, ...)
            As ``of`` says. Images are uint8, or floating point from 0 to 1; the result is of the same kind.
        magnitude : float, or Tensor of shape (B,)
            One for all, or one for each example. Its range is checked on the CPU only: a check on another device would
            have to wait for it.
        seed : int
            Decides noise and places. Together with ``positions`` it fully determines the result.
        positions : Tensor of int, shape (B,), optional
            Position of each example in the sample: parts of a batch with their positions get the same noise as the
            whole. 0, 1, … unless given.
        partner : Tensor, shape (B, ...), optional
            For those with pairs: the example that each is mixed with.

        Returns
        -------
        Tensor
            As x.

        Examples
        --------
        >>> x = torch.tensor([[[[0, 100, 200]]]], dtype=torch.uint8)
        >>> find_perturbation("cutout", fill=0.5).apply(x, 1).tolist()
        [[[[128, 128, 128]]]]
        """
        before = self._values(x)
        magnitudes = self._magnitudes(magnitude, before)
        aside: Any = self._partner(x, partner)
        if self.pairs is None:
            known = self.known
            if self.learn is not None and known is None:
                known = self.learn(before, self.roles)
            if positions is None:
                positions = torch.arange(len(x), device=x.device)
            elif positions.shape != (len(x),):
                raise InputError(f"has shape {tuple(positions.shape)}: give one for each of x.", argument="positions")
            number = torch.full((), seed, dtype=torch.int64, device=x.device)
            places = positions.to(device=x.device, dtype=torch.int64)
            aside = Draw(number, places, self.fill, self.interpolation, known)
        changed = self.change(before, magnitudes, aside)
        if self.of == "images" or x.dtype == torch.uint8:
            changed = changed.clamp(0, 1)
        # Resampling by nothing would leave a trace of rounding.
        still = per_example(magnitudes == 0, x.ndim)
        changed = torch.where(still, before, changed)
        whole = x.dtype == torch.uint8 and self.of != "tokens"
        return (changed * 255).round().to(x.dtype) if whole else changed.to(x.dtype)

    def check(self, magnitude: Any, channels: int | None = None) -> None:
        """Refuse a magnitude out of range, or images without colours where they are needed."""
        number = isinstance(magnitude, Real) and not isinstance(magnitude, bool)
        if not number or not self.low <= float(magnitude) <= self.high:
            problem = f"give {self.unit} from {self.low:g} to {self.high:g}."
            raise InputError(f"{arg('magnitude', magnitude)} of {self.name!r}: {problem}")
        if self.pairs == "inter" and magnitude >= 0.5:
            raise InputError(
                f"{arg('magnitude', magnitude)} of {self.name!r}: give less than 0.5, from where on the mixture is no "
                "longer of the first one's class."
            )
        if self.coloured and channels not in (None, 3):
            raise InputError(
                f"{arg('perturbation', self.name)} is for colours; these images have {channels} "
                f"channel{'' if channels == 1 else 's'}, not 3."
            )

    def check_input(self, x: Any) -> None:
        """Refuse examples, a Tensor or ndarray, of a kind or shape that it cannot change."""
        dtype = str(x.dtype).removeprefix("torch.")
        floating, whole = dtype.startswith(("float", "bfloat")), dtype.lstrip("u").startswith("int")
        picture = x.ndim == 4 and (dtype == "uint8" or floating)
        fits = {
            "images": picture,
            "values": picture or (floating and x.ndim > 1),
            "tokens": whole and x.ndim == 2,
            "features": floating and x.ndim == 2,
        }
        if not fits[self.of]:
            raise InputError(
                f"holds {dtype} of shape {tuple(x.shape)}: {arg('perturbation', self.name)} is for "
                f"{EXPECTED[self.of]}.",
                argument="x",
            )
        if self.coloured:
            self.check(0.0, x.shape[1])

    def _values(self, x: Tensor) -> Tensor:
        """Examples to compute with: at least float32, images of bytes as values from 0 to 1."""
        self.check_input(x)
        if self.of == "tokens" or x.dtype in (torch.float32, torch.float64):
            return x
        return x.to(torch.float32) / (255 if x.dtype == torch.uint8 else 1)

    def _magnitudes(self, magnitude: float | Tensor, x: Tensor) -> Tensor:
        kind = x.dtype if x.is_floating_point() else torch.float32
        if not isinstance(magnitude, Tensor):
            self.check(magnitude)
            return torch.full((len(x),), float(magnitude), dtype=kind, device=x.device)
        if magnitude.ndim and magnitude.shape != (len(x),):
            raise InputError(f"has shape {tuple(magnitude.shape)}: give one, or one per example.", argument="magnitude")
        if magnitude.device.type == "cpu" and len(x):
            self.check(float(magnitude.min()))
            self.check(float(magnitude.max()))
        return magnitude.to(device=x.device, dtype=kind).expand(len(x))

    def _partner(self, x: Tensor, partner: Tensor | None) -> Tensor | None:
        if (partner is not None) != (self.pairs is not None):
            problem = (
                "changes one example at a time: leave partner out."
                if self.pairs is None
                else "mixes pairs: give partner=, an example for each of x."
            )
            raise InputError(f"{arg('perturbation', self.name)} {problem}")
        if partner is None:
            return None
        if partner.shape != x.shape:
            raise InputError(f"has shape {tuple(partner.shape)}: give that of x, {tuple(x.shape)}.", argument="partner")
        return self._values(partner)


def find_perturbation(
    perturbation: str | Perturbation | Custom,
    *,
    fill: float | None = None,
    interpolation: str | None = None,
    padding: int | None = None,
    special: Sequence[int] | None = None,
    mask: int | None = None,
) -> Perturbation:
    """Find a perturbation by its name, or make one of a function.

    Parameters
    ----------
    perturbation : str, Perturbation or callable
        A name of :data:`PERTURBATIONS`; a perturbation; or a function ``(x, magnitude, rng) -> x`` of a batch of
        floating point (what the network takes, or what a layer gives), one number, and a ``torch.Generator`` on the
        device of x. It must keep shape and device. It is not called at magnitude 0, which changes nothing. Its
        generator is set by the seed and the first example of the batch: what it draws depends on batches.
    fill : float, optional
        Value from 0 to 1 of what comes in from outside an image, or is cut out; 0 by default.
    interpolation : {"bilinear", "nearest"}, optional
        For what moves pixels by parts of a pixel; bilinear by default.
    padding, special, mask : int, sequence of int, int, optional
        For tokens: the one that fills short texts up, by default the data's, and others that are never touched; and
        what a dropped token becomes, by default the padding. See :class:`TokenRoles`.

    Raises
    ------
    InputError
        If there is no such name.

    Examples
    --------
    >>> find_perturbation("rotation").unit
    'degrees counter-clockwise'
    >>> louder = find_perturbation(lambda x, magnitude, rng: x * 2**magnitude)
    >>> louder.apply(torch.ones(2, 1), torch.tensor([0.0, 3.0])).tolist()
    [[1.0], [8.0]]
    """
    if isinstance(perturbation, Perturbation):
        found = perturbation
    elif callable(perturbation):
        name = str(getattr(perturbation, "__name__", type(perturbation).__name__))
        change = _custom_change(perturbation, name)
        found = Perturbation(name, "its own unit", -float("inf"), float("inf"), change, of="values")
    elif isinstance(perturbation, str) and perturbation in PERTURBATIONS:
        found = PERTURBATIONS[perturbation]
    else:
        raise InputError(
            f"{arg('perturbation', perturbation)} is not known: use one of {list_names(PERTURBATIONS)}, or a function "
            f"(x, magnitude, rng) -> x.{suggest(perturbation, PERTURBATIONS)}"
        )
    options = {k: v for k, v in (("fill", fill), ("interpolation", interpolation)) if v is not None}
    tokens = {k: v for k, v in (("padding", padding), ("special", special), ("mask", mask)) if v is not None}
    if not options and not tokens:
        return found
    return replace(found, roles=replace(found.roles, **tokens), **options)  # type: ignore[arg-type]


def _custom_change(function: Custom, name: str) -> Callable[[Tensor, Tensor, Draw], Tensor]:
    """Wrap a function of the user: one call for each magnitude in a batch, its result checked."""

    def change(x: Tensor, magnitudes: Tensor, draw: Draw) -> Tensor:
        state = int(hashed(draw.seed, draw.positions[0])) & (2**63 - 1)
        rng = torch.Generator(device=x.device).manual_seed(state)
        out = x.clone()
        for magnitude in sorted(set(magnitudes.tolist()) - {0.0}):
            rows = (magnitudes == magnitude).nonzero().squeeze(1)
            # 0.1 in float32 is 0.10000000149 as a Python float: give the number that the user wrote.
            given = float(f"{magnitude:.7g}") if x.dtype == torch.float32 else magnitude
            changed: Any = function(x[rows], given, rng)
            problem = None
            if not isinstance(changed, Tensor):
                problem = f"{type(changed).__name__}: return the changed tensor"
            elif changed.shape != x[rows].shape:
                problem = f"shape {tuple(changed.shape)} for an x of {tuple(x[rows].shape)}: keep the shape"
            elif changed.device != x.device:
                problem = f"a tensor on {changed.device} for an x on {x.device}: keep the device"
            elif not changed.is_floating_point():
                problem = f"{changed.dtype} for an x of {x.dtype}: return floating point"
            if problem:
                raise InputError(f"{arg('perturbation', name)} returned {problem}.")
            out[rows] = changed.to(x.dtype)
        return out

    return change


def usual_magnitudes(perturbation: str | Perturbation | Custom, count: int = 10) -> NDArray[np.float64]:
    """Evenly spaced magnitudes over the usual range of a perturbation.

    Both ends are included, except for mixup between classes, which ends before one half, where the mixture is as much
    of the one class as of the other. Ranges with both signs are symmetric; an odd count has 0.

    Examples
    --------
    >>> usual_magnitudes("mixup-inter", 5).tolist()
    [0.0, 0.1, 0.2, 0.30000000000000004, 0.4]
    >>> usual_magnitudes("rotation", 5).tolist()
    [-30.0, -15.0, 0.0, 15.0, 30.0]
    """
    count = check_whole(count, "count", 2)
    found = find_perturbation(perturbation)
    low, high = found.usual
    # Symmetrised, as linspace rounds the two halves differently.
    grid = np.linspace(low, high, count, endpoint=found.pairs != "inter")
    return (grid - grid[::-1]) / 2 if low == -high else grid


def draw_magnitudes(low: float, high: float, count: int, seed: int = 0) -> NDArray[np.float64]:
    """Draw a magnitude for each example uniformly, as a function of the seed and its position.

    Examples
    --------
    >>> draw_magnitudes(-180, 180, 3).round(1).tolist() == draw_magnitudes(-180, 180, 5).round(1).tolist()[:3]
    True
    """
    unit = uniform(torch.tensor(seed, dtype=torch.int64), torch.arange(count))
    return low + (high - low) * unit.numpy().astype(np.float64)


def perturb(
    x: NDArray[Any],
    perturbation: str | Perturbation | Custom,
    magnitude: float | ArrayLike,
    seed: int = 0,
    *,
    partner: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """Perturb examples in an array; an example's change does not depend on the others.

    Parameters
    ----------
    x : ndarray, shape (examples, ...)
        Images of uint8 or of values from 0 to 1, (examples, channels, height, width); floating point; or tokens,
        (examples, length).
    perturbation : str, Perturbation or callable
        As :func:`find_perturbation` takes it, or returns it with a fill, an interpolation or tokens of its own.
    magnitude : float, or array_like of shape (examples,)
        In its unit, one for all or one for each; 0 changes nothing.
    seed : int
        Decides noise and places.
    partner : ndarray, optional
        As x: what each example is mixed with, for mixup.

    Examples
    --------
    >>> x = np.full((2, 1, 4, 4), 100, dtype=np.uint8)
    >>> perturb(x, "brightness", 0.2)[0, 0, 0].tolist()
    [120, 120, 120, 120]
    """
    found = find_perturbation(perturbation)
    x = np.asarray(x)
    if found.of == "images" and x.dtype.kind == "f" and x.size:
        low, high = float(x.min()), float(x.max())
        if not -1e-3 <= low <= high <= 1 + 1e-3:
            raise InputError(
                f"holds values from {low:g} to {high:g}: {found.name!r} is for images with values from 0 to 1, "
                "before they are normalised, or of uint8.",
                argument="x",
            )
    many = np.ndim(magnitude) > 0
    strengths = torch.as_tensor(np.array(magnitude, dtype=np.float64)) if many else None
    if strengths is not None and strengths.shape != (len(x),):
        raise InputError(f"has shape {tuple(strengths.shape)}: give one, or one per example.", argument="magnitude")
    if found.learn is not None:
        found = found.fitted(torch.from_numpy(np.array(x)))
    out = np.empty_like(x)
    for first in range(0, len(x), AT_ONCE):
        here = slice(first, first + AT_ONCE)
        changed = found.apply(
            torch.from_numpy(np.array(x[here])),
            magnitude if strengths is None else strengths[here],  # type: ignore[arg-type]
            seed,
            positions=torch.arange(first, min(first + AT_ONCE, len(x))),
            partner=None if partner is None else torch.from_numpy(np.array(partner[here])),
        )
        out[here] = changed.numpy()
    return out


@dataclass(frozen=True)
class Draw:
    """Random numbers and settings for one batch.

    Attributes
    ----------
    seed : Tensor
        Decides noise and places; one number.
    positions : Tensor of int, shape (B,)
        Position of each example in the whole sample, so that noise does not depend on the batch.
    fill : float
        Value from 0 to 1 of what comes in from outside an image, and of what is cut out.
    interpolation : {"bilinear", "nearest"}
        Between pixels, for what moves them.
    known : object, optional
        What the perturbation learnt from the whole sample: spreads, other examples, tokens.
    """

    seed: Tensor
    positions: Tensor
    fill: float = 0.0
    interpolation: str = "bilinear"
    known: Any = None

    def normal(self, shape: torch.Size) -> Tensor:
        """Normal numbers, their own for each example and place; float32 of that shape."""
        # Box–Muller; both uniform numbers are 24 bits of a single hash, as many as float32 resolves.
        bits = hashed(self.seed, per_example(self.positions, len(shape)), self._places(shape))
        first, second = ((bits >> k & 0xFFFFFF).to(torch.float32) * 2.0**-24 for k in (40, 16))
        radius = torch.sqrt(-2 * torch.log1p(-first))  # 1 - first is never 0
        return radius * torch.cos(2 * math.pi * second)

    def uniform(self, shape: torch.Size, number: int) -> Tensor:
        """Numbers in [0, 1), their own for each example and place; float32 of that shape."""
        return uniform(self.seed, per_example(self.positions, len(shape)), self._places(shape), number)

    def _places(self, shape: torch.Size) -> Tensor:
        return torch.arange(shape[1:].numel(), device=self.positions.device).view(shape[1:])

    def one(self, number: int) -> Tensor:
        """Numbers in [0, 1), one for each example; float32 of shape (B,)."""
        return uniform(self.seed, self.positions, number)

    def choose(self, allowed: Tensor, share: Tensor) -> Tensor:
        """Choose that share of the allowed places of each example; a larger share adds places.

        The count is rounded up or down at random, so that it is the share on average however few places there are.
        """
        numbers = torch.where(allowed, self.uniform(allowed.shape, 0), 2.0)
        wanted = torch.floor(share * allowed.sum(dim=1) + self.one(1))
        ranks = numbers.argsort(dim=1, stable=True).argsort(dim=1, stable=True)
        return (ranks < wanted[:, None]) & allowed


def per_example(values: Tensor, ndim: int) -> Tensor:
    """Reshape one value for each example so that it broadcasts over tensors of so many dimensions."""
    return values.view(-1, *([1] * (ndim - 1)))


# Images: values from 0 to 1, shape (B, C, H, W).


def rotate(x: Tensor, degrees: Tensor, draw: Draw) -> Tensor:
    """Turn about the middle, counter-clockwise for positive angles."""
    right, down = augmentation.turn(*augmentation.places(x), degrees[:, None, None])
    return augmentation.resample(x, right, down, draw.fill, draw.interpolation)


def shift_right(x: Tensor, share: Tensor, draw: Draw) -> Tensor:
    """Move to the right by a share of the width, to the left by a negative one."""
    right, down = augmentation.places(x)
    return augmentation.resample(x, right - share[:, None, None] * x.shape[3], down, draw.fill, draw.interpolation)


def shift_down(x: Tensor, share: Tensor, draw: Draw) -> Tensor:
    """Move downwards by a share of the height, upwards by a negative one."""
    right, down = augmentation.places(x)
    return augmentation.resample(x, right, down - share[:, None, None] * x.shape[2], draw.fill, draw.interpolation)


def recolour_by(change: Callable[[Tensor, Tensor], Tensor], x: Tensor, share: Tensor, draw: Draw) -> Tensor:
    """Change colours as the augmentation of that name does, each image by a share of its own."""
    return change(x, per_example(share, 4))


def recolour(x: Tensor, share: Tensor, draw: Draw) -> Tensor:
    """Change brightness, contrast, saturation and hue by one magnitude, clipped after each."""
    share = per_example(share, 4)
    return augmentation.recolour(x, share, share, share, share)


def add_noise(x: Tensor, std: Tensor, draw: Draw) -> Tensor:
    """Add Gaussian noise, its own for each example and value; a negative magnitude flips it."""
    return x + per_example(std, 4) * draw.normal(x.shape)


def blur(x: Tensor, sigma: Tensor, draw: Draw) -> Tensor:
    """Blur with a Gaussian cut off at 4 sigma, the image mirrored at the middle of its border pixels."""
    # A product with a matrix for each axis: images smaller than the kernel and a sigma for each image are no special
    # cases, which they are for a convolution.
    down, across = (_blur_matrix(sigma, size).to(x.dtype) for size in x.shape[2:])
    return torch.einsum("bij,bcjk,blk->bcil", down, x, across)


def _blur_matrix(sigma: Tensor, size: int) -> Tensor:
    """Weights of each pixel for each blurred one, shape (B, size, size)."""
    reach = math.ceil(4 * BLUR)
    offsets = torch.arange(-reach, reach + 1, device=sigma.device)
    spread = sigma.to(torch.float32).clamp(min=1e-6)[:, None]
    weights = torch.exp(-0.5 * (offsets / spread) ** 2)
    weights = weights * (offsets.abs() <= torch.floor(4 * spread + 0.5))
    weights = weights / weights.sum(dim=1, keepdim=True)
    period = max(2 * (size - 1), 1)
    places = (torch.arange(size, device=sigma.device)[:, None] + offsets) % period
    places = torch.minimum(places, period - places) if size > 1 else places * 0
    mirrored = torch.nn.functional.one_hot(places, size).to(weights.dtype)
    return torch.einsum("bo,ioj->bij", weights, mirrored)


def cut_out(x: Tensor, share: Tensor, draw: Draw) -> Tensor:
    """Fill a rectangle of that share of height and width, wholly inside, at a random place."""
    inside = torch.ones((), dtype=torch.bool, device=x.device)
    for k, size in enumerate(x.shape[2:]):
        side = torch.round(share * size)
        start = torch.floor(draw.one(k) * (size - side + 1))
        place = torch.arange(size, device=x.device)
        within = (place >= start[:, None]) & (place < (start + side)[:, None])
        inside = inside & within.view([len(x), 1, size, 1] if k == 0 else [len(x), 1, 1, size])
    return torch.where(inside, torch.full_like(x, draw.fill), x)


# Values of any kind: rows of tables, outputs of layers.


def mix(x: Tensor, share: Tensor, partner: Tensor) -> Tensor:
    """Move each example that share of the straight line to its partner."""
    share = per_example(share, x.ndim)
    return (1 - share) * x + share * partner


def scale(x: Tensor, share: Tensor, draw: Draw) -> Tensor:
    """Multiply by 1 plus the share."""
    return x * (1 + per_example(share, x.ndim))


def add_scaled_noise(x: Tensor, std: Tensor, draw: Draw) -> Tensor:
    """Add Gaussian noise in units of each value's spread over the sample, ``draw.known``."""
    spread: Tensor = draw.known.to(x)
    _check_like(x, spread.shape, "feature-noise")
    return x + per_example(std, x.ndim) * spread * draw.normal(x.shape)


def swap_features(x: Tensor, share: Tensor, draw: Draw) -> Tensor:
    """Take that share of each example's features from one other example of ``draw.known``."""
    pool = draw.known.to(x)
    _check_like(x, pool.shape[1:], "feature-swap")
    # Positions count through the sample, so that no example is given its own features back.
    step = 1 + torch.floor(draw.one(2) * (len(pool) - 1)).to(torch.int64)
    donors = pool[(draw.positions + step) % len(pool)]
    return torch.where(draw.choose(torch.ones_like(x, dtype=torch.bool), share), donors, x)


def _check_like(x: Tensor, shape: torch.Size, name: str) -> None:
    if x.shape[1:] != shape:
        problem = f"was fitted to examples of shape {tuple(shape)} and given some of shape {tuple(x.shape[1:])}"
        raise InputError(f"{name} {problem}: fit it to the sample that it is for.")


def learn_spreads(x: Tensor, roles: TokenRoles) -> Tensor:
    """Standard deviation of each value over the examples in which it is finite."""
    kept = x if x.dtype == torch.float64 else x.to(torch.float32)
    spreads = kept.std(dim=0, correction=0)
    known = kept.isfinite()
    if known.all():
        return spreads
    # One NaN must not make the noise of all examples NaN.
    count = known.sum(dim=0).clamp(min=1)
    mean = torch.where(known, kept, 0.0).sum(dim=0) / count
    return (torch.where(known, kept - mean, 0.0).square().sum(dim=0) / count).sqrt()


def learn_donors(x: Tensor, roles: TokenRoles) -> Tensor:
    """All examples, to take features from."""
    if len(x) < 2:
        raise InputError("feature-swap takes features from another example: give a sample of at least 2.")
    return x


# Texts as tokens.


@dataclass(frozen=True)
class Vocabulary:
    """Tokens of a sample.

    Attributes
    ----------
    fixed : Tensor of int64
        Padding and special tokens, which are never touched.
    words : Tensor of int64
        All other tokens of the sample, in ascending order.
    blank : int, optional
        Replaces a dropped token.
    """

    fixed: Tensor
    words: Tensor
    blank: int | None

    def to(self, device: torch.device) -> Vocabulary:
        """Return the same on another device."""
        return Vocabulary(self.fixed.to(device), self.words.to(device), self.blank)


def drop_tokens(x: Tensor, share: Tensor, draw: Draw) -> Tensor:
    """Replace that share of each text's tokens by the mask, or by padding."""
    known: Vocabulary = draw.known.to(x.device)
    if known.blank is None:
        raise InputError(
            f"token-dropout needs to know what a dropped token becomes: give {arg('padding')} or {arg('mask')}, the "
            "number of a token."
        )
    gone = draw.choose(~torch.isin(x, known.fixed), share)
    return torch.where(gone, known.blank, x)


def replace_tokens(x: Tensor, share: Tensor, draw: Draw) -> Tensor:
    """Replace that share of each text's tokens by others of the sample, all equally likely."""
    known: Vocabulary = draw.known.to(x.device)
    words = known.words
    if len(words) < 2:
        there = f"the sample has {len(words)} that is neither padding nor special."
        raise InputError(f"token-replacement needs other tokens to draw from; {there}")
    gone = draw.choose(~torch.isin(x, known.fixed), share)
    # A step of 1 to len - 1 through the words from the token's own place: never the token itself.
    own = torch.searchsorted(words, x.to(torch.int64).contiguous())
    step = 1 + torch.floor(draw.uniform(x.shape, 2) * (len(words) - 1)).to(torch.int64)
    return torch.where(gone, words[(own + step) % len(words)].to(x.dtype), x)


def learn_vocabulary(x: Tensor, roles: TokenRoles) -> Vocabulary:
    """Take the tokens of a sample, those that stay fixed and those that are words."""
    tokens = x.to(torch.int64)
    special = roles.special
    if special is None:
        special = []
        if len(tokens) >= ENOUGH:  # tokens that every text has equally often, as it has its beginning and its end
            candidates = [int(t) for t in set(tokens[0].tolist()) if int(t) != roles.padding]
            counts = ((t, (tokens == t).sum(dim=1)) for t in candidates)
            special = [t for t, count in counts if bool((count == count[0]).all())]
    kept = sorted({*special, *(t for t in (roles.padding, roles.mask) if t is not None)})
    fixed = torch.tensor(kept, dtype=torch.int64, device=x.device)
    words = torch.unique(tokens)
    words = words[~torch.isin(words, fixed)]
    return Vocabulary(fixed, words, roles.padding if roles.mask is None else roles.mask)


# The table.


def _perturbation(
    name: str, unit: str, limits: tuple[float, float], change: Any, usual: tuple[float, float], **more: Any
) -> Perturbation:
    return Perturbation(name, unit, *limits, change, usual=usual, **more)


_QUARTER, _HALF, _UP = (-0.25, 0.25), (-0.5, 0.5), (0, 0.5)
_TEXTS = {"of": "tokens", "learn": learn_vocabulary}
_ROWS = {"of": "features", "learn": learn_donors}
_VALUES = {"of": "values"}
_MEASURED = {**_VALUES, "learn": learn_spreads}
_SPREADS, _DEGREES = "standard deviations of each feature", "degrees counter-clockwise"
_PARTNER, _ADDED, _TOKENS = "shares of the partner", "shares of it added", "shares of the tokens"
PERTURBATIONS = {
    p.name: p
    for p in (
        _perturbation("mixup-intra", _PARTNER, (0, 1), mix, _UP, pairs="intra", **_VALUES),
        # From one half on the mixture belongs to the other class as much, and its label would be wrong.
        _perturbation("mixup-inter", _PARTNER, (0, 0.5), mix, _UP, pairs="inter", **_VALUES),
        # Up to 30 degrees a picture stays what it is (Engstrom et al. 2019); turned by 180, a 6 is a 9.
        _perturbation("rotation", _DEGREES, (-180, 180), rotate, (-30, 30), paper=(-180, 180)),
        _perturbation("shift-x", "widths to the right", (-1, 1), shift_right, _HALF),
        _perturbation("shift-y", "heights downwards", (-1, 1), shift_down, _HALF),
        _perturbation("brightness", _ADDED, (-1, 10), partial(recolour_by, augmentation.brighten), _QUARTER),
        _perturbation("contrast", _ADDED, (-1, 10), partial(recolour_by, augmentation.stretch_contrast), _QUARTER),
        _perturbation(
            "saturation", _ADDED, (-1, 10), partial(recolour_by, augmentation.saturate), _QUARTER, coloured=True
        ),
        _perturbation(
            "hue", "turns of the wheel", _HALF, partial(recolour_by, augmentation.turn_hue), _QUARTER, coloured=True
        ),
        _perturbation("colour", "shares of all four", _HALF, recolour, _QUARTER),
        _perturbation("intensity", _ADDED, (-1, 10), scale, _HALF, **_VALUES),
        _perturbation("noise", "standard deviations, 1 the whole range", (-1, 1), add_noise, (0, 0.25)),
        _perturbation("blur", "pixels of standard deviation", (0, BLUR), blur, (0, 3)),
        _perturbation("cutout", "shares of height and width", (0, 1), cut_out, _UP),
        _perturbation("token-dropout", _TOKENS, (0, 1), drop_tokens, _UP, **_TEXTS),
        _perturbation("token-replacement", _TOKENS, (0, 1), replace_tokens, _UP, **_TEXTS),
        _perturbation("feature-noise", _SPREADS, (-10, 10), add_scaled_noise, (0, 1), **_MEASURED),
        _perturbation("feature-swap", "shares of the features", (0, 1), swap_features, _UP, **_ROWS),
    )
}
"""Perturbations by name.

Colours follow torchvision's ColorJitter, with a factor of 1 plus the magnitude: ``"colour"`` is ``"brightness"``,
``"contrast"``, ``"saturation"`` and ``"hue"`` in this order by one magnitude (the first two for grey images). The
augmentation of that name draws the four independently. ``"intensity"`` scales what the network takes, normalised as it
is, or what a layer gives; of bytes it is the same as brightness.
"""
