"""What the augmentations do to a batch of images."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from curvewise.nn._colours import recolour
from curvewise.nn.chance import uniform


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
        """Uniform in [0, 1), shape (examples,)."""
        return uniform(self.seed, self.epoch, self.example, number)

    def signed(self, number: int, amount: float) -> Tensor:
        """Uniform within ±amount."""
        return (2 * self.unit(number) - 1) * amount

    def whole(self, number: int, least: int, most: int) -> Tensor:
        """Uniform among the integers from least to most, shape (examples, 1)."""
        drawn = torch.floor(self.unit(number) * (most - least + 1)).to(torch.int64)
        return (drawn + least).unsqueeze(-1)

    def each(self, number: int, count: int) -> Tensor:
        """Uniform in [0, 1), shape (examples, count)."""
        place = torch.arange(count, device=self.example.device)
        epoch, example = self.epoch.unsqueeze(-1), self.example.unsqueeze(-1)
        seed = self.seed.unsqueeze(-1) if self.seed.ndim else self.seed
        return uniform(seed, epoch, example, number, place)


def move_pixels(x: Tensor, changes: list[Change], chance: Chance, fill: Tensor) -> Tensor:
    """Flip, translate, crop and cut out, by one look-up of each pixel and one mask.

    From the last change back to the first: which row and column of the original a pixel comes
    from, and whether it comes from nowhere.
    """
    height, width = x.shape[-2:]
    rows = torch.arange(height, device=x.device).unsqueeze(0)
    columns = torch.arange(width, device=x.device).unsqueeze(0)
    gone: list[Tensor] = []
    for change in reversed(changes):
        amount, first = int(change.amount), change.first
        if change.kind == "flip":
            turned = chance.unit(first).unsqueeze(-1) < 0.5
            columns = torch.where(turned, width - 1 - columns, columns)
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
    moved = _looked_up(x, rows, columns)
    if not gone:
        return moved
    mask = gone[0]
    for more in gone[1:]:
        mask = mask | more
    return torch.where(mask.unsqueeze(-3), fill[:, None, None], moved)


def _within(place: Tensor, start: Tensor | int, count: int) -> Tensor:
    return (place >= start) & (place < start + count)


def _reflected(place: Tensor, size: int) -> Tensor:
    """Positions beyond an edge, mirrored at the edge's pixel."""
    return (size - 1) - ((size - 1) - place.abs()).abs()


def _looked_up(x: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    examples, channels, height, width = x.shape
    place = rows.unsqueeze(-1) * width + columns.unsqueeze(-2)
    place = place.expand(examples, height, width).reshape(examples, 1, height * width)
    place = place.expand(examples, channels, height * width)
    return x.reshape(examples, channels, height * width).gather(-1, place).reshape(x.shape)


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
    """Pixels to the right of the centre and down from it, for each column and row of images."""
    height, width = x.shape[-2:]
    right = (torch.arange(width, device=x.device) - (width - 1) / 2).view(1, 1, width)
    down = (torch.arange(height, device=x.device) - (height - 1) / 2).view(1, height, 1)
    return right, down


def turn(right: Tensor, down: Tensor, degrees: Tensor) -> tuple[Tensor, Tensor]:
    """Places that come to these when images are rotated counter-clockwise about their centre."""
    cosine, sine = torch.cos(torch.deg2rad(degrees)), torch.sin(torch.deg2rad(degrees))
    return cosine * right - sine * down, sine * right + cosine * down


def resample(
    x: Tensor, right: Tensor, down: Tensor, level: Tensor | float, mode: str = "bilinear"
) -> Tensor:
    """Images whose pixels are what lies at these places; beyond the edges lies ``level``."""
    height, width = x.shape[-2:]
    # grid_sample counts from −1 at the left edge of the first pixel to 1 at the right of the last
    size = (x.shape[0], height, width)
    grid = torch.stack([(2 * right / width).expand(size), (2 * down / height).expand(size)], -1)
    found = functional.grid_sample(x - level, grid.to(x.dtype), mode, align_corners=False)
    return found + level


def jitter_colour(x: Tensor, changes: list[Change], chance: Chance, fill: Tensor) -> Tensor:
    """Brightness, contrast, saturation, hue, in that order; the first two alone for grey images.

    Brightness scales the image, contrast its distance from its mean grey, saturation its
    distance from the grey of each pixel, each by a factor within 1 ± amount; hue turns by up to
    that share of the colour circle. Values are cut to 0…1 after each. The perturbation
    ``"colour"`` does the same with one signed magnitude for all four, which are drawn
    independently of each other here.
    """
    for change in changes:
        shares = [
            chance.signed(change.first + i, change.amount)[:, None, None, None] for i in range(4)
        ]
        x = recolour(x, *shares)
    return x


def add_noise(x: Tensor, changes: list[Change], chance: Chance, fill: Tensor) -> Tensor:
    """Independent normal noise on every value; what leaves 0…1 is cut."""
    for change in changes:
        count = math.prod(x.shape[1:])
        radius = torch.sqrt(-2 * torch.log1p(-chance.each(change.first, count)))
        angle = 2 * math.pi * chance.each(change.first + 1, count)
        noise = (radius * torch.cos(angle)).reshape(x.shape)
        x = (x + change.amount * noise).clamp(0, 1)
    return x
