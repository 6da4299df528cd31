"""Order and augmentation of examples on the device, as functions of a seed, an epoch and an example.

What an example looks like in an epoch depends on nothing else: not on the batch it is in, not on
the device, not on what was drawn before. Shapes are static and nothing is asked of the host, so
that it can be compiled and captured in a CUDA graph.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from itertools import groupby
from operator import or_

import torch
from torch import Tensor
from torch.nn import functional

from curvewise.nn.training import AUGMENTATIONS, MOVES, parse_augmentation

# ---- Random numbers: a draw is a hash of a seed and of counters (epoch, example, number of the draw). It is the same
# on every device, in every order, alone and beside other trainings.

_GOLDEN = -7046029254386353131  # 2^64 / golden ratio, as a signed number
_FIRST = -4658895280553007687  # the two multipliers of SplitMix64 (Steele, Lea and Flood 2014), as signed numbers
_SECOND = -7723592293110705685


def mix(value: Tensor) -> Tensor:
    """Scramble 64-bit integers, one to one (the finaliser of SplitMix64)."""
    value = (value ^ ((value >> 30) & 0x3FFFFFFFF)) * _FIRST
    value = (value ^ ((value >> 27) & 0x1FFFFFFFFF)) * _SECOND
    return value ^ ((value >> 31) & 0x1FFFFFFFF)


def hashed(seed: Tensor, *counters: Tensor | int) -> Tensor:
    """Hash a seed with counters, one after the other; they are broadcast against each other."""
    state = mix(seed + _GOLDEN)
    for counter in counters:
        if isinstance(counter, int):  # Python's integers do not overflow as those of tensors do
            step: Tensor | int = ((counter + 1) * _GOLDEN + 2**63) % 2**64 - 2**63
        else:
            # Not (counter + 1) · golden, the same numbers: compiled for a GPU, the kernels around it round otherwise.
            step = counter * _GOLDEN + _GOLDEN
        state = mix(state + step)
    return state


def uniform(seed: Tensor, *counters: Tensor | int) -> Tensor:
    """Draw float32 numbers in [0, 1), in steps of 2⁻²⁴.

    Parameters
    ----------
    seed : Tensor of int64
        Any shape that can be broadcast with the counters.
    *counters : Tensor of int64, or int
        Purpose of the number: epoch, example, number of the draw.

    Examples
    --------
    >>> seed = torch.tensor(1)
    >>> bool(uniform(seed, 3) == uniform(seed, 3)), bool(uniform(seed, 3) == uniform(seed, 4))
    (True, False)
    """
    return ((hashed(seed, *counters) >> 40) & 0xFFFFFF).to(torch.float32) * 2.0**-24


def visits(seeds: Tensor, rows: Tensor, first: int, last: int) -> Tensor:
    """Return the examples at some positions of a training, for several trainings at once.

    A training is one long line of examples: epoch after epoch, each in an order of its own.
    Batches are cut from that line without regard to where an epoch ends, so that all have one size
    and no example is left out.

    Parameters
    ----------
    seeds : Tensor of int64, shape (models,)
        Seeds of the order.
    rows : Tensor of int64, shape (models, n)
        The training examples of each model.
    first, last : int
        Positions in the line, ``first`` included and ``last`` not.

    Returns
    -------
    Tensor of int64, shape (models, last - first)

    Examples
    --------
    >>> line = visits(torch.tensor([7]), torch.arange(4)[None], 0, 8)
    >>> sorted(line[0, :4].tolist()), sorted(line[0, 4:].tolist())
    ([0, 1, 2, 3], [0, 1, 2, 3])
    """
    n = rows.shape[1]
    if last <= first:
        return rows[:, :0]
    epochs = torch.arange(first // n, (last - 1) // n + 1, device=rows.device)
    counters = torch.arange(n, device=rows.device)
    keys = hashed(seeds[:, None, None], epochs[:, None], counters)
    # Half of the bits sort twice as fast; the few that are equal keep their order.
    line = torch.argsort((keys >> 33).to(torch.int32), dim=-1, stable=True).flatten(1)
    start = first - int(first // n) * n
    return rows.gather(1, line[:, start : start + last - first])


# ---- Augmentation

Augmentation = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]

_WARPS = ("rotation", "shift-x", "shift-y")
_ASPECTS = (3 / 4, 4 / 3)  # of the boxes of random resized crops, width over height
_ATTEMPTS = 10  # boxes drawn for each image; the middle of the image is taken where none fits into it
_DRAWS = 16  # numbers of draws that belong to one augmentation, so that one more of them leaves the others alone
_AGAIN = 1024  # offset of the draws where an augmentation is asked for a second time


@dataclass(frozen=True)
class Change:
    """One augmentation: its kind, how much of it, and the number of its first draw."""

    kind: str
    amount: float
    first: int


@dataclass(frozen=True)
class Chance:
    """Random numbers for a batch, by the number of the draw."""

    seed: Tensor
    epoch: Tensor
    example: Tensor

    def unit(self, number: int) -> Tensor:
        """Draw uniformly from [0, 1), shape (examples,)."""
        return uniform(self.seed, self.epoch, self.example, number)

    def once(self, number: int) -> Tensor:
        """Draw uniformly from [0, 1), the same in every epoch, shape (examples,)."""
        return uniform(self.seed, 0, self.example, number)

    def signed(self, number: int, amount: float) -> Tensor:
        """Draw uniformly within ±amount."""
        return (2 * self.unit(number) - 1) * amount

    def whole(self, number: int, least: int, most: int) -> Tensor:
        """Draw uniformly among the integers from least to most, shape (examples, 1)."""
        drawn = torch.floor(self.unit(number) * (most - least + 1)).to(torch.int64)
        return (drawn + least).unsqueeze(-1)

    def few(self, number: int, count: int) -> Tensor:
        """Draw uniformly from [0, 1) a few times, shape (examples, count)."""
        # One by one: compiled for a GPU, counters in a short tensor become 32-bit indices, which hashing overflows.
        return torch.stack([uniform(self.seed, self.epoch, self.example, number, k) for k in range(count)], dim=-1)

    def each(self, number: int, count: int) -> Tensor:
        """Uniform in [0, 1), shape (examples, count)."""
        epoch, example = self.epoch.unsqueeze(-1), self.example.unsqueeze(-1)
        # Added to zeros, as a compiler would take the counters themselves for 32-bit indices, which hashing overflows.
        place = (example & 0) + torch.arange(count, device=example.device)
        seed = self.seed.unsqueeze(-1) if self.seed.ndim else self.seed
        return uniform(seed, epoch, example, number, place)


Family = Callable[[Tensor, list[Change], Chance, Tensor], Tensor]


def make_augmentation(specs: tuple[str, ...], shape: tuple[int, ...]) -> Augmentation:
    """Make a function that augments a batch of images.

    The augmentations are applied in the order given. Neighbours that move pixels (flip,
    translate, crop, cutout) become one look-up, neighbours that interpolate (rotation and
    shifts) one resampling. Two trainings that differ in one augmentation draw the same numbers
    for the others.

    Parameters
    ----------
    specs : tuple of str
        Names of :data:`AUGMENTATIONS`, with a number after a colon; empty for none.
    shape : tuple of int
        (channels, height, width).

    Returns
    -------
    callable
        Of images (examples, channels, height, width) on the scale 0 to 1, a seed (0-dim int64),
        the epoch and the index of each example (int64), and a fill for each channel, which
        stands where an image has no pixel; gives the augmented images.

    Raises
    ------
    InputError
        A specification is not known, or does not fit images of this shape.

    Examples
    --------
    >>> import torch
    >>> flip = make_augmentation(("flip",), (1, 1, 3))
    >>> x = torch.tensor([0.0, 0.1, 0.2]).expand(4, 1, 1, 3)
    >>> epoch, example = torch.zeros(4, dtype=torch.int64), torch.arange(4)
    >>> flip(x, torch.tensor(0), epoch, example, torch.zeros(1))[:, 0, 0, 0]
    tensor([0.2000, 0.0000, 0.0000, 0.2000])
    """
    if not specs:
        return lambda x, seed, epoch, example, fill: x
    changes: list[Change] = []
    for kind, amount in parse_augmentation(specs, shape):
        repeats = sum(c.kind == kind for c in changes)
        # Each has numbers of draws of its own.
        first = _DRAWS * list(AUGMENTATIONS).index(kind) + _AGAIN * repeats
        changes.append(Change(kind, amount, first))
    groups = [(family, list(steps)) for family, steps in groupby(changes, key=lambda change: _FAMILIES[change.kind])]

    def augment(x: Tensor, seed: Tensor, epoch: Tensor, example: Tensor, fill: Tensor) -> Tensor:
        chance = Chance(seed, epoch, example)
        for family, steps in groups:
            x = family(x, steps, chance, fill)
        return x

    return augment


def move_pixels(x: Tensor, changes: list[Change], chance: Chance, fill: Tensor) -> Tensor:
    """Flip, translate, crop and cut out, by one look-up of each pixel and one mask.

    Alternating flips (Jordan 2024) show every image both ways in any two epochs that follow each other.

    From the last change back to the first: which row and column of the original a pixel comes
    from, and whether it comes from nowhere.
    """
    height, width = x.shape[-2:]
    rows = torch.arange(height, device=x.device).unsqueeze(0)
    columns = torch.arange(width, device=x.device).unsqueeze(0)
    gone: list[Tensor] = []
    for change in reversed(changes):
        amount, first = int(change.amount), change.first
        if change.kind in ("flip", "alternating-flip"):
            turned = (chance.unit(first) if change.kind == "flip" else chance.once(first)) < 0.5
            if change.kind == "alternating-flip":  # drawn for the first epoch, and the other way in every next one
                turned = turned ^ (chance.epoch % 2 == 1)
            columns = torch.where(turned.unsqueeze(-1), width - 1 - columns, columns)
        elif change.kind == "cutout":
            hit_rows = _within(rows, chance.whole(first, 0, height - amount), amount)
            hit_columns = _within(columns, chance.whole(first + 1, 0, width - amount), amount)
            gone.append(hit_rows.unsqueeze(-1) & hit_columns.unsqueeze(-2))
        else:
            rows = rows - chance.whole(first, -amount, amount)
            columns = columns - chance.whole(first + 1, -amount, amount)
            if change.kind == "translate":
                gone.append(~_within(rows, 0, height).unsqueeze(-1))
                gone.append(~_within(columns, 0, width).unsqueeze(-2))
                rows, columns = rows.clamp(0, height - 1), columns.clamp(0, width - 1)
            else:
                rows, columns = _reflected(rows, height), _reflected(columns, width)
    examples, channels = x.shape[:2]
    place = rows.unsqueeze(-1) * width + columns.unsqueeze(-2)
    place = place.expand(examples, height, width).reshape(examples, 1, height * width)
    place = place.expand(examples, channels, height * width)
    moved = x.reshape(examples, channels, height * width).gather(-1, place).reshape(x.shape)
    return torch.where(reduce(or_, gone).unsqueeze(-3), fill[:, None, None], moved) if gone else moved


def _within(place: Tensor, start: Tensor | int, count: int) -> Tensor:
    return (place >= start) & (place < start + count)


def _reflected(place: Tensor, size: int) -> Tensor:
    """Mirror positions beyond an edge at the edge's pixel."""
    return (size - 1) - ((size - 1) - place.abs()).abs()


def warp(x: Tensor, changes: list[Change], chance: Chance, fill: Tensor) -> Tensor:
    """Rotate about the centre and shift, with one bilinear interpolation.

    Beyond its edges, an image goes on as the fill. Positive angles turn counter-clockwise,
    positive shifts go right and down.
    """
    height, width = x.shape[-2:]
    right, down = places(x)
    for change in reversed(changes):
        drawn = chance.signed(change.first, change.amount)[:, None, None]
        if change.kind == "rotation":
            right, down = turn(right, down, drawn)
        elif change.kind == "shift-x":
            right = right - drawn * width
        else:
            down = down - drawn * height
    return resample(x, right, down, fill[:, None, None])


def places(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return pixels to the right of the centre and down from it, for each column and row of images."""
    height, width = x.shape[-2:]
    right = (torch.arange(width, device=x.device) - (width - 1) / 2).view(1, 1, width)
    down = (torch.arange(height, device=x.device) - (height - 1) / 2).view(1, height, 1)
    return right, down


def turn(right: Tensor, down: Tensor, degrees: Tensor) -> tuple[Tensor, Tensor]:
    """Return the places that come to these when images are rotated counter-clockwise about their centre."""
    cosine, sine = torch.cos(torch.deg2rad(degrees)), torch.sin(torch.deg2rad(degrees))
    return cosine * right - sine * down, sine * right + cosine * down


def resample(x: Tensor, right: Tensor, down: Tensor, level: Tensor | float, mode: str = "bilinear") -> Tensor:
    """Return images whose pixels are taken from these places; beyond the edges lies ``level``."""
    height, width = x.shape[-2:]
    # grid_sample counts from −1 at the left edge of the first pixel to 1 at the right of the last. It fills with 0:
    # subtracting the level first fills with that instead.
    size = (x.shape[0], height, width)
    grid = torch.stack([(2 * right / width).expand(size), (2 * down / height).expand(size)], -1)
    found = functional.grid_sample(x - level, grid.to(x.dtype), mode, align_corners=False)
    return found + level


def crop_resized(x: Tensor, changes: list[Change], chance: Chance, fill: Tensor) -> Tensor:
    """Cut out a random box of each image and enlarge it to the size of the image, bilinearly.

    Szegedy et al. 2015, as ``torchvision.transforms.RandomResizedCrop`` defines it: the share of the
    area is uniform from the amount to 1, the logarithm of the aspect uniform from 3/4 to 4/3, sides
    are rounded, and a box that does not fit is drawn again, up to ten times; positions are uniform.
    """
    height, width = x.shape[-2:]
    for change in changes:
        high, wide, top, left = draw_boxes(change, chance, height, width)
        x = _enlarged(_enlarged(x, top, high, -2), left, wide, -1)
    return x


def draw_boxes(change: Change, chance: Chance, height: int, width: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Draw the height, width, first row and first column of a box for each image, int64 of shape (examples,)."""
    # In double precision: where a side is rounded, the last bit of single precision may depend on the batch.
    area = change.amount + (1 - change.amount) * chance.few(change.first, _ATTEMPTS).double()
    narrow, broad = map(math.log, _ASPECTS)
    aspect = torch.exp(narrow + (broad - narrow) * chance.few(change.first + 1, _ATTEMPTS).double())
    wide = torch.round(torch.sqrt(area * (height * width) * aspect)).to(torch.int64)
    high = torch.round(torch.sqrt(area * (height * width) / aspect)).to(torch.int64)
    fits = (wide > 0) & (wide <= width) & (high > 0) & (high <= height)
    order = torch.arange(_ATTEMPTS, device=fits.device).expand_as(fits)
    first = torch.where(fits, order, _ATTEMPTS).amin(dim=-1, keepdim=True)
    there, found = first < _ATTEMPTS, first.clamp(max=_ATTEMPTS - 1)
    # Otherwise the largest box in the middle whose aspect is allowed.
    middle_wide = min(width, round(height * _ASPECTS[1]))
    middle_high = min(height, round(width / _ASPECTS[0]))
    wide = torch.where(there, wide.gather(-1, found), middle_wide)
    high = torch.where(there, high.gather(-1, found), middle_high)
    down, right = (chance.unit(change.first + k).double().unsqueeze(-1) for k in (2, 3))
    top = torch.where(there, torch.floor(down * (height - high + 1)).to(torch.int64), (height - middle_high) // 2)
    left = torch.where(there, torch.floor(right * (width - wide + 1)).to(torch.int64), (width - middle_wide) // 2)
    return high[:, 0], wide[:, 0], top[:, 0], left[:, 0]


def _enlarged(x: Tensor, start: Tensor, count: Tensor, axis: int) -> Tensor:
    """Enlarge ``count`` rows or columns of each image to the whole axis; beyond the box its edge goes on."""
    size = x.shape[axis]
    # Centres of pixels: place 0 is the middle of the first pixel of the box (align_corners=False).
    place = (torch.arange(size, device=x.device) + 0.5) * count.unsqueeze(-1) / size - 0.5
    place = place.clamp_min(0)
    last = (count - 1).unsqueeze(-1)
    before = torch.minimum(place.to(torch.int64), last)
    after = torch.minimum(before + 1, last)
    share = place - before
    shape = [len(x), 1, 1, 1]
    shape[axis] = size

    def taken(index: Tensor) -> Tensor:
        return x.gather(axis, (index + start.unsqueeze(-1)).view(shape).expand(x.shape))

    # Two products and a sum, not a fused step: a pixel is rounded alike wherever it lies in a batch.
    share = share.view(shape).to(x.dtype)
    return taken(before) * (1 - share) + taken(after) * share


def jitter_colour(x: Tensor, changes: list[Change], chance: Chance, fill: Tensor) -> Tensor:
    """Change brightness, contrast, saturation and hue, in that order; the first two alone for grey images.

    Brightness scales the image, contrast its distance from its mean grey, saturation its
    distance from the grey of each pixel, each by a factor within 1 ± amount; hue turns by up to
    that share of the colour circle. Values are cut to 0…1 after each. The perturbation
    ``"colour"`` does the same with one signed magnitude for all four, which are drawn
    independently of each other here.
    """
    for change in changes:
        shares = [chance.signed(change.first + i, change.amount)[:, None, None, None] for i in range(4)]
        x = recolour(x, *shares)
    return x


def add_noise(x: Tensor, changes: list[Change], chance: Chance, fill: Tensor) -> Tensor:
    """Add independent normal noise to every value; results are clipped to 0…1."""
    for change in changes:
        # Box and Muller's transform of two uniform numbers; log1p, since the first may be exactly 0.
        count = math.prod(x.shape[1:])
        radius = torch.sqrt(-2 * torch.log1p(-chance.each(change.first, count)))
        angle = 2 * math.pi * chance.each(change.first + 1, count)
        noise = (radius * torch.cos(angle)).reshape(x.shape)
        x = (x + change.amount * noise).clamp(0, 1)
    return x


def view(x: Tensor, shift: int, *, mirrored: bool) -> Tensor:
    """Return images moved down and to the right by so many pixels, then mirrored; edges are reflected.

    >>> view(torch.arange(4.0).view(1, 1, 1, 4).expand(1, 1, 2, 4), 1, mirrored=False)[0, 0, 0]
    tensor([1., 0., 1., 2.])
    """
    if shift:
        height, width = x.shape[-2:]
        rows = _reflected(torch.arange(height, device=x.device) - shift, height)
        columns = _reflected(torch.arange(width, device=x.device) - shift, width)
        x = x.index_select(-2, rows).index_select(-1, columns)
    return x.flip(-1) if mirrored else x


# Colours, shared with the perturbations of images. Shares have the shape (B, 1, 1, 1); only recolour clips to 0…1.


def recolour(x: Tensor, light: Tensor, contrast: Tensor, saturation: Tensor, hue: Tensor) -> Tensor:
    """Change brightness, contrast, saturation and hue in that order, clipped to 0…1 after each.

    Only images of three channels have saturation and hue; others change in the first two.
    """
    x = brighten(x, light).clamp(0, 1)
    x = stretch_contrast(x, contrast).clamp(0, 1)
    if x.shape[1] != 3:
        return x
    return turn_hue(saturate(x, saturation).clamp(0, 1), hue)


def brighten(x: Tensor, share: Tensor) -> Tensor:
    """Scale the image."""
    return x * (1 + share)


def stretch_contrast(x: Tensor, share: Tensor) -> Tensor:
    """Scale the distance from the mean grey of the image."""
    mean = grey(x).mean(dim=(-2, -1), keepdim=True)
    return mean + (x - mean) * (1 + share)


def saturate(x: Tensor, share: Tensor) -> Tensor:
    """Scale the distance from the grey of each pixel."""
    level = grey(x)
    return level + (x - level) * (1 + share)


def grey(x: Tensor) -> Tensor:
    """Return the perceived brightness of each pixel, (B, 1, H, W): luma, or the mean of other than 3 channels.

    >>> grey(torch.tensor([1.0, 0.5, 0.0]).view(1, 3, 1, 1)).item()
    0.5924999713897705
    """
    if x.shape[1] != 3:
        return x.mean(dim=1, keepdim=True)
    red, green, blue = x.unbind(1)
    # ITU-R BT.601, as Pillow and torchvision convert to grey.
    return (0.299 * red + 0.587 * green + 0.114 * blue).unsqueeze(1)


def turn_hue(x: Tensor, turns: Tensor) -> Tensor:
    """Turn the hue of colours by a share of the circle, keeping saturation and value."""
    # By way of HSV, without its branches: each channel is value − spread · min(place, 4 − place), cut to 0…1, with
    # its place along the six sides of the colour hexagon.
    red, green, blue = x.unbind(1)
    value, least = x.amax(1), x.amin(1)
    spread = value - least
    unit = torch.where(spread > 0, spread, 1.0)
    sixth = torch.where(
        value == red,
        (green - blue) / unit,
        torch.where(value == green, 2 + (blue - red) / unit, 4 + (red - green) / unit),
    )
    sixth = sixth + 6 * turns.squeeze(1)

    def channel(offset: int) -> Tensor:
        place = torch.remainder(sixth + offset, 6)
        return value - spread * torch.minimum(place, 4 - place).clamp(0, 1)

    return torch.stack([channel(5), channel(3), channel(1)], dim=1)


_FAMILIES: dict[str, Family] = {
    **dict.fromkeys(MOVES, move_pixels),
    **dict.fromkeys(_WARPS, warp),
    "colour": jitter_colour,
    "noise": add_noise,
    "resized-crop": crop_resized,
}
"""Functions that apply an augmentation; neighbours of one family are applied together."""
