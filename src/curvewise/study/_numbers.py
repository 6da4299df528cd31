"""Targets that are numbers: how they are checked, scaled, and how far predictions are off."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError

MOST_LOST = 1e-3
"""Of the span of numbers, what may be lost when they become single precision."""


def number_targets(y: Any, name: str) -> NDArray[np.float32]:
    """Targets as numbers: (examples, k) or (examples, channels, height, width) of float32.

    One number for each example is a row of one.

    >>> number_targets(np.array([0.5, 1.5]), "y").shape
    (2, 1)
    """
    values = np.asarray(y)
    if values.dtype.kind not in "fiub":
        raise InputError(f"{name} is of type {values.dtype}: targets='numbers' needs numbers.")
    if values.ndim not in (1, 2, 4) or 0 in values.shape[1:]:
        raise InputError(
            f"{name} has shape {values.shape}: pass numbers as (examples,), (examples, k) or "
            "(examples, channels, height, width), with an axis for the channel if there is one."
        )
    with np.errstate(over="ignore"):  # said below
        found = values.astype(np.float32)
    if np.ma.is_masked(y) or not np.isfinite(found).all():
        _refuse_holes(y, name)
    return found[:, None] if found.ndim == 1 else found


def _refuse_holes(y: Any, name: str) -> NoReturn:
    """Say whether numbers are missing, or too large."""
    lost = np.ma.getmaskarray(y) | ~np.isfinite(np.ma.getdata(y))
    if lost.any():
        raise InputError(
            f"{name} holds {int(lost.sum())} masked, NaN or infinite numbers: drop these examples."
        )
    raise InputError(
        f"{name} holds numbers up to {np.abs(np.ma.getdata(y)).max():.3g}, too large for single "
        "precision: divide them by their standard deviation."
    )


def check_precision(y: Any, found: NDArray[np.float32], name: str) -> None:
    """Refuse numbers that vary by so little that single precision does not tell them apart.

    >>> check_precision([0.1, 0.2], np.array([[0.1], [0.2]], dtype=np.float32), "y")
    """
    values = np.asarray(y).reshape(found.shape)
    if np.can_cast(values.dtype, np.float32):
        return
    axes = (0,) if values.ndim == 2 else (0, 2, 3)
    high, low = values.max(axis=axes), values.min(axis=axes)
    span = high.astype(np.float64) - low.astype(np.float64)
    lost = np.zeros(span.shape)
    for start in range(0, len(values), 1000):  # images in double precision take much memory
        part = slice(start, start + 1000)
        off = np.abs(values[part].astype(np.float64) - found[part])
        lost = np.maximum(lost, off.max(axis=axes))
    one = found.max(axis=axes) == found.min(axis=axes)
    vague = (high != low) & (one | (lost > MOST_LOST * span))
    if vague.any():
        where = int(np.argmax(vague))
        raise InputError(
            f"{name} has numbers (column or channel {where}) that lie within "
            f"{span[where]:.3g} of each other, which single precision does not tell "
            "apart: subtract their mean and divide by their standard deviation first."
        )


def target_scale(y: NDArray[np.float32]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and spread of each number of a row, or of each channel of images.

    What does not vary is not scaled.

    >>> target_scale(np.array([[0.0, 5.0], [2.0, 5.0]], dtype=np.float32))
    ((1.0, 5.0), (1.0, 1.0))
    """
    axes = (0,) if y.ndim == 2 else (0, 2, 3)
    mean, std = y.mean(axis=axes, dtype=np.float64), y.std(axis=axes, dtype=np.float64)
    return tuple(mean.tolist()), tuple(np.where(std > 0, std, 1.0).tolist())


def scaled(
    y: NDArray[np.float32], mean: tuple[float, ...], std: tuple[float, ...]
) -> NDArray[np.float32]:
    """Subtract the mean and divide by the spread.

    >>> scaled(np.array([[0.0], [4.0]], dtype=np.float32), (2.0,), (2.0,)).tolist()
    [[-1.0], [1.0]]
    """
    shape = (len(mean), *(1,) * (y.ndim - 2))
    off = y - np.array(mean, dtype=np.float64).reshape(shape)
    return np.asarray(off / np.array(std).reshape(shape), dtype=np.float32)


def number_losses(
    predicted: NDArray[Any], y: NDArray[np.float32], loss: str
) -> NDArray[np.float32]:
    """The loss of each example: the mean over its numbers of absolute or squared differences.

    >>> number_losses(np.array([[1.0, 4.0]]), np.zeros((1, 2), dtype=np.float32), "l1").tolist()
    [2.5]
    """
    found = np.empty(len(y), dtype=np.float32)
    for start in range(0, len(y), 1000):  # images in double precision take much memory
        part = slice(start, start + 1000)
        off = predicted[part].astype(np.float64) - y[part]
        each = np.abs(off) if loss == "l1" else off**2
        found[part] = each.reshape(len(off), -1).mean(axis=1)
    return found


def as_predicted(values: Any, shape: tuple[int, ...], what: str) -> NDArray[np.float32]:
    """Predicted numbers in the shape of their targets; a row of one may lack its axis.

    >>> as_predicted([1, 2], (2, 1), "predict").tolist()
    [[1.0], [2.0]]
    """
    array = np.asarray(values)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{what} gave {array.dtype}: expected numbers of shape {shape}.")
    if shape[1:] == (1,) and array.shape == shape[:1]:
        array = array[:, None]
    if array.shape != shape:
        raise ValueError(
            f"{what} gave an array of shape {array.shape}: expected {shape}, the shape of the "
            "targets."
        )
    return array.astype(np.float32)
