"""The losses that a blind guess is known for: the best constant, and what it costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError
from curvewise.transfer._blind_median import medians
from curvewise.transfer._blind_sphere import angle, directions, to_unit
from curvewise.transfer._blind_targets import Elements, IntArray
from curvewise.types import FloatArray


@dataclass(frozen=True)
class Loss:
    """What a named loss reads, and in what its risk is measured.

    Attributes
    ----------
    kind : {"classes", "numbers", "binary", "vectors"}
        What a target is.
    unit : str
        Of the risk, for an axis.
    bounded : bool
        Whether the loss of an element lies between 0 and 1.
    """

    kind: str
    unit: str
    bounded: bool = False


LOSSES: dict[str, Loss] = {
    "error": Loss("classes", "error", bounded=True),
    "cross-entropy": Loss("classes", "cross-entropy in nats"),
    "l1": Loss("numbers", "L1 loss"),
    "l2": Loss("numbers", "mean squared error"),
    "binary": Loss("binary", "binary cross-entropy in nats"),
    "binary-error": Loss("binary", "error of a label", bounded=True),
    "angular": Loss("vectors", "angle in degrees"),
    "cosine": Loss("vectors", "1 − cosine"),
}

_ALIASES = {
    "mae": "l1",
    "mse": "l2",
    "0/1": "error",
    "0-1": "error",
    "accuracy": "error",
    "nll": "cross-entropy",
    "ce": "cross-entropy",
    "bce": "binary",
}


def find_loss(name: Any) -> Loss:
    """The loss of a name, or an error that says what may have been meant."""
    if isinstance(name, str) and name in LOSSES:
        return LOSSES[name]
    plain = str(name).lower().replace("_", "-").replace(" ", "-")
    near = [plain] if plain in LOSSES else get_close_matches(plain, LOSSES)
    near = [_ALIASES[plain]] if plain in _ALIASES else near
    meant = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
    raise InputError(
        f"loss={name!r} is not known: use one of {', '.join(map(repr, LOSSES))}, or a function "
        f"(prediction, targets) -> loss of each example.{meant}"
    )


def best_constant(
    loss: str, targets: Elements, per: str, classes: NDArray[Any] | None, smoothing: float
) -> FloatArray | IntArray:
    """The constants of smallest risk; a row for each, NaN where no target decides it.

    Codes of classes, or shape (K, C) frequencies, (K,) numbers, (K, D) directions.
    """
    if loss == "l1":
        return medians(targets, per)
    if loss == "angular":
        return directions(targets, per)
    cells, many = targets.cells(per)
    if classes is not None:
        count = _class_weights(targets, cells, many, classes)
        return np.argmax(count, axis=1) if loss == "error" else _smooth(count, targets, smoothing)
    total = _by_cell(targets.totals(to_unit if loss == "cosine" else None), cells, many)
    if loss == "cosine":
        direction = to_unit(total)
        direction[~direction.any(axis=1), 0] = 1.0
        return direction
    weight = _by_cell(targets.totals(np.ones_like), cells, many)
    with np.errstate(invalid="ignore"):
        mean = total / weight
    if loss == "binary" and smoothing > 0:
        both = _smooth(np.stack([weight - total, total], axis=1), targets, smoothing)
        return both[:, 1]
    return np.asarray(mean >= 0.5).astype(np.float64) if loss == "binary-error" else mean


def _by_cell(columns: FloatArray, cells: IntArray, many: int) -> FloatArray:
    if columns.ndim == 2:
        return np.stack([_by_cell(c, cells, many) for c in columns.T], axis=1)
    return np.bincount(cells, weights=columns, minlength=many).astype(np.float64)


def _class_weights(
    targets: Elements, cells: IntArray, many: int, classes: NDArray[Any]
) -> FloatArray:
    """Weight of each class for each constant, shape (K, C)."""
    total = np.zeros(many * len(classes))
    for _, labels, weight in targets.pieces():
        where = cells * len(classes) + encode(labels, classes)
        total += np.bincount(where.ravel(), weights=weight.ravel(), minlength=len(total))
    return total.reshape(many, len(classes))


def _smooth(weights: FloatArray, targets: Elements, smoothing: float) -> FloatArray:
    """Frequencies, with ``smoothing`` more elements of each class."""
    each = targets.counts.sum() / targets.example_weights.sum()
    total = weights.sum(axis=1, keepdims=True) * each
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((weights * each + smoothing) / (total + smoothing * weights.shape[1]))


def encode(labels: NDArray[Any], classes: NDArray[Any]) -> IntArray:
    """Place of each label among sorted classes; 0 for one that is not among them."""
    place = np.searchsorted(classes, labels)
    place[place == len(classes)] = 0
    return place


def element_losses(
    loss: str, values: NDArray[Any], constant: NDArray[Any], classes: NDArray[Any] | None
) -> FloatArray:
    """Loss of each element, shape (B, E), for the constant of each, shape (E, ...)."""
    if classes is not None:
        codes = encode(values, classes)
        if loss == "error":
            return np.asarray(codes != constant, dtype=np.float64)
        with np.errstate(divide="ignore"):
            return np.asarray(-np.log(constant)[np.arange(len(constant)), codes])
    with np.errstate(divide="ignore"):
        return _MEASURED[loss](values, constant)


def _binary(values: FloatArray, share: FloatArray) -> FloatArray:
    return np.where(values == 1, -np.log(share), -np.log1p(-share))


_MEASURED: dict[str, Callable[[FloatArray, FloatArray], FloatArray]] = {
    "l1": lambda v, c: np.abs(v - c),
    "l2": lambda v, c: (v - c) ** 2,
    "binary": _binary,
    "binary-error": lambda v, c: (v != c).astype(np.float64),
    "angular": lambda v, c: np.degrees(angle(to_unit(v), c)),
    "cosine": lambda v, c: 0.5 * ((to_unit(v) - c) ** 2).sum(axis=-1),
}


def example_losses(
    loss: str,
    targets: Elements,
    per: str,
    constant: NDArray[Any],
    classes: NDArray[Any] | None,
) -> FloatArray:
    """Mean loss of each example over its elements; NaN for one that has none."""
    cells, _ = targets.cells(per)
    of_element = constant[cells]
    found = np.full(len(targets.array), np.nan)
    for rows, values, weight in targets.pieces():
        each = np.where(weight > 0, element_losses(loss, values, of_element, classes), 0.0)
        count = targets.counts[rows]
        found[rows] = np.where(count > 0, each.sum(axis=1) / np.maximum(count, 1), np.nan)
    return found


def rounding(loss: str, constant: NDArray[Any]) -> float:
    """What may be left of a loss of nothing by the arithmetic of the constant."""
    kind = LOSSES[loss].kind
    if kind == "vectors":
        return 1e-4 if loss == "angular" else 1e-12
    if kind != "numbers":
        return 0.0
    least = 1e-12 * float(np.nanmax(np.abs(constant)))
    return least if loss == "l1" else least**2
