"""One row of numbers for each example, or each token, out of whatever a layer gives."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from curvewise.errors import InputError
from curvewise.nn._feature_items import is_torch

if TYPE_CHECKING:
    from torch import Tensor, nn

POOLS = ("auto", "mean", "first", "flatten", "tokens")
"""How outputs with several places become rows: see ``Checkpoint``."""

_LAST = ("Linear", "LayerNorm", "RMSNorm", "Embedding", "GELU")
_FIRST = ("Conv1d", "BatchNorm1d", "MaxPool1d", "AvgPool1d", "AdaptiveAvgPool1d")


def main_tensor(output: Any, examples: int) -> Tensor | None:
    """The tensor that a network's or layer's output is about; None where there is none."""
    named: dict[str, Any] = {}
    if is_torch(output, "Tensor"):
        return output if _fits(output, examples) else None
    if isinstance(output, dict):
        named = {str(k): v for k, v in output.items()}
    elif isinstance(output, tuple | list):
        named = {str(i): v for i, v in enumerate(output)}
    found: Tensor
    for name in ("logits", "last_hidden_state", "features", *named):
        found = named.get(name)  # type: ignore[assignment]
        if is_torch(found, "Tensor") and _fits(found, examples):
            return found
    return None


def _fits(value: Any, examples: int) -> bool:
    return bool(value.ndim >= 1 and len(value) == examples and value.is_floating_point())


def channels_at_end(module: nn.Module | None, value: Tensor) -> bool:
    """Whether the last axis of an output holds the features: tokens do, feature maps do not."""
    kind = "" if module is None else type(module).__name__
    if kind in _FIRST:
        return False
    return value.ndim == 3 or kind in _LAST


def pooled(value: Any, pool: str, *, last: bool, mask: Any = None) -> Any:
    """Rows for examples: a feature map's mean over places, the tokens' mean or the first of them.

    Parameters
    ----------
    value : ndarray or Tensor, shape (examples, ...)
        What a layer gave.
    pool : str
        One of :data:`POOLS`; with ``"tokens"`` there is a row for each place.
    last : bool
        Whether the features are the last axis, otherwise the second.
    mask : ndarray or Tensor, shape (examples, tokens), optional
        False for tokens that stand for nothing.

    Returns
    -------
    ndarray or Tensor
        Whichever was given, of float32.

    Examples
    --------
    >>> pooled(np.ones((2, 8, 4, 4)), "auto", last=False).shape
    (2, 8)
    >>> pooled(np.ones((2, 5, 8)), "tokens", last=True).shape
    (10, 8)
    """
    value = _floats(value)
    if value.ndim == 1:
        return value[:, None]
    if value.ndim == 2:
        return value
    if pool == "flatten":
        return value.reshape(len(value), -1)
    places = _places(value, last)
    if mask is not None and mask.shape != places.shape[:2]:
        mask = None  # a layer that is not about tokens
    if pool == "tokens":
        return places.reshape(-1, places.shape[2]) if mask is None else places[mask]
    if pool == "first":
        return places[:, 0]
    if mask is None:
        return places.mean(1)
    weights = _floats(mask)[:, :, None]
    return (places * weights).sum(1) / weights.sum(1).clip(1)


def places_of(value: Any, *, last: bool, mask: Any) -> NDArray[np.int64]:
    """How many rows each example has with ``pool="tokens"``."""
    if value.ndim <= 2:
        return np.ones(len(value), dtype=np.int64)
    places = prod(_places(value, last).shape[1:-1])
    if mask is not None and mask.shape[1] == places:
        counts = mask.sum(1)
        return np.asarray(counts.cpu() if is_torch(counts, "Tensor") else counts, dtype=np.int64)
    return np.full(len(value), places, dtype=np.int64)


def _floats(value: Any) -> Any:
    return value.float() if is_torch(value, "Tensor") else np.asarray(value, dtype=np.float32)


def _places(value: Any, last: bool) -> Any:
    """The same values as (examples, places, features)."""
    if not last:
        value = value.movedim(1, -1) if is_torch(value, "Tensor") else np.moveaxis(value, 1, -1)
    return value.reshape(len(value), prod(value.shape[1:-1]), value.shape[-1])


def check_pool(pool: Any) -> str:
    """Raise unless a way to pool is known."""
    if pool not in POOLS:
        raise InputError(f"pool={pool!r}: use one of {', '.join(POOLS)}.")
    return str(pool)


def are_probabilities(scores: Tensor) -> bool:
    """Whether a network's scores are probabilities already: none negative, with a sum of 1."""
    scores = scores.float()
    inside = bool(((scores >= 0) & (scores <= 1)).all())
    return inside and (scores.shape[1] == 1 or bool(((scores.sum(dim=1) - 1).abs() < 1e-2).all()))


def as_probabilities(scores: Any, *, ready: bool, squashed: bool = False) -> Any:
    """Probabilities of classes, out of logits or log-probabilities unless they are ready.

    One column is about the second of two classes. Scores that were squashed, each by a sigmoid,
    are taken back to logits, since those of all classes do not sum to 1.

    >>> as_probabilities(np.array([[0.0]]), ready=False).tolist()
    [[0.5, 0.5]]
    """
    scores, tensor = _floats(scores), is_torch(scores, "Tensor")
    if squashed:
        scores, ready = scores.clip(1e-7, 1 - 1e-7), False
        scores = scores.logit() if tensor else special.logit(scores)
    if scores.shape[1] == 1:
        if not ready:
            scores = scores.sigmoid() if tensor else special.expit(scores)
        found = scores[:, [0, 0]]  # a copy
        found[:, 0] = 1 - found[:, 1]
        return found
    if ready:
        return scores / scores.sum(1)[:, None]
    # of log-probabilities, these themselves
    return scores.softmax(dim=1) if tensor else special.softmax(scores, axis=1)
