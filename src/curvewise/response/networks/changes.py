"""What the perturbations do to images; each takes images, magnitudes and a :class:`Draw`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from curvewise.errors import InputError
from curvewise.nn import augmentation as colours
from curvewise.nn.augmentation import places, resample, turn
from curvewise.nn.chance import hashed, uniform

BLUR = 10.0
"""The widest blur, in pixels."""


def rotated(x: Tensor, degrees: Tensor, draw: Draw) -> Tensor:
    """About the middle, counter-clockwise for positive angles."""
    right, down = turn(*places(x), degrees[:, None, None])
    return resample(x, right, down, draw.fill, draw.interpolation)


def shifted_right(x: Tensor, share: Tensor, draw: Draw) -> Tensor:
    """To the right by a share of the width, to the left by a negative one."""
    right, down = places(x)
    right = right - share[:, None, None] * x.shape[3]
    return resample(x, right, down, draw.fill, draw.interpolation)


def shifted_down(x: Tensor, share: Tensor, draw: Draw) -> Tensor:
    """Downwards by a share of the height, upwards by a negative one."""
    right, down = places(x)
    down = down - share[:, None, None] * x.shape[2]
    return resample(x, right, down, draw.fill, draw.interpolation)


def brighter(x: Tensor, share: Tensor, draw: Draw) -> Tensor:
    """By a factor."""
    return colours.brighten(x, _each(share))


def contrasted(x: Tensor, share: Tensor, draw: Draw) -> Tensor:
    """Away from the mean grey of the image, or towards it."""
    return colours.stretch_contrast(x, _each(share))


def saturated(x: Tensor, share: Tensor, draw: Draw) -> Tensor:
    """Away from each pixel's grey, or towards it."""
    return colours.saturate(x, _each(share))


def hued(x: Tensor, turns: Tensor, draw: Draw) -> Tensor:
    """Round the wheel of colours."""
    return colours.turn_hue(x, _each(turns))


def recoloured(x: Tensor, share: Tensor, draw: Draw) -> Tensor:
    """Brightness, contrast, saturation and hue by one magnitude, clipped after each."""
    share = _each(share)
    return colours.recolour(x, share, share, share, share)


def noisy(x: Tensor, std: Tensor, draw: Draw) -> Tensor:
    """Gaussian noise, its own for each example and value; a negative magnitude flips it."""
    return x + _each(std) * draw.normal(x.shape)


def blurred(x: Tensor, sigma: Tensor, draw: Draw) -> Tensor:
    """Gaussian blur cut off at 4 sigma, the image mirrored at the middle of its border pixels.

    As a product with a matrix for each axis: images smaller than the kernel and a sigma for each
    image are no special cases, which they are for a convolution.
    """
    down, across = (_blur_matrix(sigma, size) for size in x.shape[2:])
    return torch.einsum("bij,bcjk,blk->bcil", down.to(x.dtype), x, across.to(x.dtype))


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
    """A rectangle of that share of height and width, wholly inside, at a place drawn for each."""
    inside = torch.ones((), dtype=torch.bool, device=x.device)
    for k, size in enumerate(x.shape[2:]):
        side = torch.round(share * size)
        start = torch.floor(draw.one(k) * (size - side + 1))
        place = torch.arange(size, device=x.device)
        within = (place >= start[:, None]) & (place < (start + side)[:, None])
        shape = [len(x), 1, size, 1] if k == 0 else [len(x), 1, 1, size]
        inside = inside & within.view(shape)
    return torch.where(inside, torch.full_like(x, draw.fill), x)


def _each(magnitude: Tensor) -> Tensor:
    return magnitude[:, None, None, None]


# What the perturbations do to values of any kind: features of tables, outputs of layers.


def mixed(x: Tensor, share: Tensor, partner: Tensor) -> Tensor:
    """A straight line from each example to its partner, by that share of the way."""
    share = each(share, x.ndim)
    return (1 - share) * x + share * partner


def scaled(x: Tensor, share: Tensor, draw: Draw) -> Tensor:
    """By a factor."""
    return x * (1 + each(share, x.ndim))


def jittered(x: Tensor, std: Tensor, draw: Draw) -> Tensor:
    """Gaussian noise in units of each value's spread over the sample, which ``draw.known`` is."""
    spread: Tensor = draw.known.to(x)
    _check_like(x, spread.shape, "feature-noise")
    return x + each(std, x.ndim) * spread * draw.normal(x.shape)


def spreads(x: Tensor, roles: Roles) -> Tensor:
    """Take the standard deviation of each value over the examples."""
    kept = x if x.dtype == torch.float64 else x.to(torch.float32)
    return kept.std(dim=0, correction=0)


def swapped(x: Tensor, share: Tensor, draw: Draw) -> Tensor:
    """That share of each example's features taken from one other example of ``draw.known``.

    Positions count through the sample, so that no example is given its own features back.
    """
    pool = draw.known.to(x)
    _check_like(x, pool.shape[1:], "feature-swap")
    step = 1 + torch.floor(draw.one(2) * (len(pool) - 1)).to(torch.int64)
    donors = pool[(draw.positions + step) % len(pool)]
    return torch.where(draw.chosen(torch.ones_like(x, dtype=torch.bool), share), donors, x)


def donors(x: Tensor, roles: Roles) -> Tensor:
    """All examples, to take features from."""
    if len(x) < 2:
        raise InputError("feature-swap takes features from another example: give a sample of at least 2.")
    return x


def _check_like(x: Tensor, shape: torch.Size, name: str) -> None:
    if x.shape[1:] != shape:
        raise InputError(
            f"{name} was fitted to examples of shape {tuple(shape)} and given some of shape "
            f"{tuple(x.shape[1:])}: fit it to the sample that it is for."
        )


# What the perturbations do to texts as tokens.

ENOUGH = 32
"""Examples from which it can be seen which tokens are in every text."""


@dataclass(frozen=True)
class Roles:
    """Tokens that are no words, as far as they were said.

    Attributes
    ----------
    padding : int, optional
        Fills short texts up.
    special : sequence of int, optional
        Marks beginning, end and the like.
    mask : int, optional
        Stands for a dropped token; the padding otherwise.
    """

    padding: int | None = None
    special: Sequence[int] | None = None
    mask: int | None = None


@dataclass(frozen=True)
class Vocabulary:
    """What token perturbations know of a sample.

    Attributes
    ----------
    fixed : Tensor of int64
        Padding and special tokens, which are never touched.
    words : Tensor of int64
        All other tokens of the sample, in ascending order.
    blank : int, optional
        What a dropped token becomes.
    """

    fixed: Tensor
    words: Tensor
    blank: int | None

    def to(self, device: torch.device) -> Vocabulary:
        """The same on another device."""
        return Vocabulary(self.fixed.to(device), self.words.to(device), self.blank)


def dropped(x: Tensor, share: Tensor, draw: Draw) -> Tensor:
    """That share of each text's tokens replaced by the mask, or by padding."""
    known: Vocabulary = draw.known.to(x.device)
    if known.blank is None:
        raise InputError(
            "token-dropout needs to know what a dropped token becomes: give padding= or mask=, the number of a token."
        )
    gone = draw.chosen(~torch.isin(x, known.fixed), share)
    return torch.where(gone, known.blank, x)


def replaced(x: Tensor, share: Tensor, draw: Draw) -> Tensor:
    """That share of each text's tokens replaced by others of the sample, all equally likely."""
    known: Vocabulary = draw.known.to(x.device)
    words = known.words
    if len(words) < 2:
        raise InputError(
            f"token-replacement needs other tokens to draw from; the sample has {len(words)} that "
            "is neither padding nor special."
        )
    gone = draw.chosen(~torch.isin(x, known.fixed), share)
    own = torch.searchsorted(words, x.to(torch.int64).contiguous())
    step = 1 + torch.floor(draw.uniform(x.shape, 2) * (len(words) - 1)).to(torch.int64)
    return torch.where(gone, words[(own + step) % len(words)].to(x.dtype), x)


def vocabulary(x: Tensor, roles: Roles) -> Vocabulary:
    """Take the tokens of a sample: what is fixed, what are words."""
    tokens = x.to(torch.int64)
    special = _seen_everywhere(tokens, roles.padding) if roles.special is None else roles.special
    fixed = torch.tensor(
        sorted({*special, *(t for t in (roles.padding, roles.mask) if t is not None)}),
        dtype=torch.int64,
        device=x.device,
    )
    words = torch.unique(tokens)
    words = words[~torch.isin(words, fixed)]
    return Vocabulary(fixed, words, roles.padding if roles.mask is None else roles.mask)


def _seen_everywhere(tokens: Tensor, padding: int | None) -> list[int]:
    """Tokens that every text has equally often, as it has its beginning and its end."""
    if len(tokens) < ENOUGH:
        return []
    candidates = [int(t) for t in set(tokens[0].tolist()) if int(t) != padding]
    counts = ((t, (tokens == t).sum(dim=1)) for t in candidates)
    return [t for t, count in counts if bool((count == count[0]).all())]


# Chance for perturbations: a function of a seed, an example and a place, not of the batch.


@dataclass(frozen=True)
class Draw:
    """What a perturbation is given beside examples and magnitudes.

    Attributes
    ----------
    seed : Tensor
        Decides noise and places; one number.
    positions : Tensor of int, shape (B,)
        Which example of the whole each one is, so that noise does not depend on the batch.
    fill : float
        Value from 0 to 1 of what comes in from outside an image, and of what is cut out.
    interpolation : {"bilinear", "nearest"}
        Between pixels, for what moves them.
    known : object, optional
        What the perturbation was told of the whole sample: spreads, other examples, tokens.
    """

    seed: Tensor
    positions: Tensor
    fill: float = 0.0
    interpolation: str = "bilinear"
    known: Any = None

    def normal(self, shape: torch.Size) -> Tensor:
        """Normal numbers, their own for each example and place; float32 of that shape.

        Both of the uniform numbers that make a normal one are bits of a single hash.
        """
        bits = hashed(self.seed, each(self.positions, len(shape)), self._places(shape))
        first, second = ((bits >> k & 0xFFFFFF).to(torch.float32) * 2.0**-24 for k in (40, 16))
        radius = torch.sqrt(-2 * torch.log1p(-first))  # 1 - first is never 0
        return radius * torch.cos(2 * math.pi * second)

    def uniform(self, shape: torch.Size, number: int) -> Tensor:
        """Numbers in [0, 1), their own for each example and place; float32 of that shape."""
        return uniform(self.seed, each(self.positions, len(shape)), self._places(shape), number)

    def _places(self, shape: torch.Size) -> Tensor:
        return torch.arange(shape[1:].numel(), device=self.positions.device).view(shape[1:])

    def one(self, number: int) -> Tensor:
        """Numbers in [0, 1), one for each example; float32 of shape (B,)."""
        return uniform(self.seed, self.positions, number)

    def chosen(self, allowed: Tensor, share: Tensor) -> Tensor:
        """Choose that share of the allowed places of each example; a larger share adds places.

        The count is rounded up or down by chance, so that it is the share on average however few
        places there are.
        """
        numbers = torch.where(allowed, self.uniform(allowed.shape, 0), 2.0)
        wanted = torch.floor(share * allowed.sum(dim=1) + self.one(1))
        ranks = numbers.argsort(dim=1, stable=True).argsort(dim=1, stable=True)
        return (ranks < wanted[:, None]) & allowed


def each(values: Tensor, ndim: int) -> Tensor:
    """One value for each example, in a shape that goes with tensors of so many dimensions."""
    return values.view(-1, *([1] * (ndim - 1)))
