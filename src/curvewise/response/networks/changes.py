"""The changes that perturbations make to images, values of any kind and tokens.

Each change takes examples, a magnitude for each of them and a :class:`Draw`. All random numbers are functions of a
seed, the position of the example in the sample and the place within it, not of the batch: batches and threads do not
matter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from curvewise.errors import InputError, arg
from curvewise.nn import augmentation
from curvewise.nn.chance import hashed, uniform

# The widest blur in pixels; its kernel reaches four times as far.
BLUR = 10.0
# Texts from which on it can be seen which tokens belong to every text.
ENOUGH = 32


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


def brighten(x: Tensor, share: Tensor, draw: Draw) -> Tensor:
    """Multiply by 1 plus the share."""
    return augmentation.brighten(x, per_example(share, 4))


def stretch_contrast(x: Tensor, share: Tensor, draw: Draw) -> Tensor:
    """Move away from the mean grey of the image, or towards it."""
    return augmentation.stretch_contrast(x, per_example(share, 4))


def saturate(x: Tensor, share: Tensor, draw: Draw) -> Tensor:
    """Move away from each pixel's grey, or towards it."""
    return augmentation.saturate(x, per_example(share, 4))


def turn_hue(x: Tensor, turns: Tensor, draw: Draw) -> Tensor:
    """Turn colours round the colour wheel."""
    return augmentation.turn_hue(x, per_example(turns, 4))


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
    """Standard deviation of each value over the examples."""
    kept = x if x.dtype == torch.float64 else x.to(torch.float32)
    return kept.std(dim=0, correction=0)


def learn_donors(x: Tensor, roles: TokenRoles) -> Tensor:
    """All examples, to take features from."""
    if len(x) < 2:
        raise InputError("feature-swap takes features from another example: give a sample of at least 2.")
    return x


# Texts as tokens.


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
