"""Predicted classes as probabilities, and the loss of probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

HARD_NOTE = "Only classes were predicted, no probabilities: there is an error and no loss."


def one_hot(predicted: NDArray[Any], classes: int, what: str) -> NDArray[np.float32]:
    """Write predicted classes as probabilities of 0 and 1.

    >>> one_hot(np.array([2, 0]), 3, "predictions").tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """
    if predicted.ndim != 1 or predicted.dtype.kind not in "iu":
        raise ValueError(
            f"{what} gave {predicted.dtype} of shape {predicted.shape}: expected one whole number, "
            "the class, for each example."
        )
    if len(predicted) and not (predicted.min() >= 0 and predicted.max() < classes):
        raise ValueError(
            f"{what} gave classes from {predicted.min()} to {predicted.max()}: expected 0 to "
            f"{classes - 1}."
        )
    full = np.zeros((len(predicted), classes), dtype=np.float32)
    full[np.arange(len(predicted)), predicted.astype(np.int64)] = 1
    return full


def log_loss(probabilities: NDArray[np.float32], y: NDArray[np.int64]) -> float:
    """Mean of −log of the probability of the true class, which counts as at least 1.2e-7.

    The bound is the spacing of float32 at 1: without it, one example to whose class a tree or a
    small subset gives probability 0 would make the mean infinite.

    >>> round(log_loss(np.array([[0.5, 0.5], [1, 0]], dtype=np.float32), np.array([0, 0])), 4)
    0.3466
    """
    least = np.finfo(np.float32).eps
    true = probabilities[np.arange(len(y)), y].astype(np.float64)
    return float(-np.log(np.maximum(true, least)).mean())
