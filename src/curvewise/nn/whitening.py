"""A first layer that whitens patches of images by what the training images look like, and stays as it is."""

from __future__ import annotations

import hashlib
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from curvewise.nn.data import Resident
from curvewise.nn.training import PATCH

MOST_IMAGES = 5_000  # whose patches are looked at
RIDGE = 5e-4  # added to the variances, on the scale of normalised pixels: directions without variance stay small
CHUNK = 500  # images whose patches are in memory at a time


class Whitening(nn.Module):
    """Convolve with the principal directions of small patches and their negatives, add a trained bias, take GELU.

    Jordan 2024, arXiv 2404.00498. The filters are a buffer: :meth:`fill` sets them, nothing trains them.

    Parameters
    ----------
    channels : int
        Of the images.
    """

    weight: Tensor

    def __init__(self, channels: int) -> None:
        super().__init__()
        filters = 2 * channels * PATCH**2
        self.register_buffer("weight", torch.zeros(filters, channels, PATCH, PATCH))
        self.bias = nn.Parameter(torch.zeros(filters))

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, channels, height, width) to (batch, filters, height − 1, width − 1)."""
        return functional.gelu(functional.conv2d(x, self.weight, self.bias))

    @torch.no_grad()
    def fill(self, data: Resident, rows: NDArray[np.int64]) -> None:
        """Compute the filters from the first of some training images."""
        self.weight.copy_(_filters(data, rows[:MOST_IMAGES]))


def patch_covariance(data: Resident, rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the covariance of the patches of some images, on the scale of normalised pixels.

    Sums of products of bytes are whole numbers below 2⁵³, and thus exact in double precision: the same on every
    device, and in any order.

    Parameters
    ----------
    data : Resident
        Images, and their mean and spread by channel.
    rows : ndarray of int64
        Positions of the images.

    Returns
    -------
    ndarray of float64, shape (values, values)
        Values of a patch in the order channels, rows, columns.
    """
    size, count, device = data.mean.numel() * PATCH**2, 0, data.mean.device
    products = torch.zeros((size, size), dtype=torch.float64, device=device)
    sums = torch.zeros(size, dtype=torch.float64, device=device)
    for start in range(0, len(rows), CHUNK):
        images = data.stored(torch.from_numpy(rows[start : start + CHUNK]).to(device))
        patches = images.unfold(2, PATCH, 1).unfold(3, PATCH, 1)  # examples, channels, height, width, rows, columns
        values = patches.permute(1, 4, 5, 0, 2, 3).reshape(size, -1).to(torch.float64)
        products += values @ values.T
        sums += values.sum(dim=1)
        count += values.shape[1]
    mean = np.asarray(sums.cpu()) / count
    scale = np.repeat(np.asarray(data.std.cpu(), dtype=np.float64) * 255, PATCH**2)
    found: NDArray[np.float64] = (np.asarray(products.cpu()) / count - np.outer(mean, mean)) / np.outer(scale, scale)
    return found


def _filters(data: Resident, rows: NDArray[np.int64]) -> Tensor:
    """Return filters from some images, (filters, channels, 2, 2): the largest variance first, then the negatives."""
    known = _KNOWN.setdefault(data, {})
    which = hashlib.sha256(rows.tobytes()).hexdigest()
    if which not in known:
        variances, directions = np.linalg.eigh(patch_covariance(data, rows))
        directions = directions.T[::-1]
        # Either sign is an eigenvector: the largest entry is made positive, whatever the library found.
        largest = np.take_along_axis(directions, np.abs(directions).argmax(axis=1)[:, None], axis=1)
        whitening = directions * np.sign(largest) / np.sqrt(np.maximum(variances[::-1], 0) + RIDGE)[:, None]
        both = np.concatenate([whitening, -whitening]).reshape(-1, data.mean.numel(), PATCH, PATCH)
        known[which] = torch.from_numpy(both.astype(np.float32))
    return known[which]


_KNOWN: WeakKeyDictionary[Resident, dict[str, Tensor]] = WeakKeyDictionary()
"""Filters of data on a device by the rows they were computed from: most runs of a study share theirs."""
