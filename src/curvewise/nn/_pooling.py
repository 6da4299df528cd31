"""One row of numbers for each example, or each token, out of whatever a layer gives."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from curvewise.errors import InputError

POOLS = ("auto", "mean", "first", "flatten", "tokens")
"""How outputs with several places become rows: see ``Checkpoint``."""

_LAST = ("Linear", "LayerNorm", "RMSNorm", "Embedding", "GELU")
_FIRST = ("Conv1d", "BatchNorm1d", "MaxPool1d", "AvgPool1d", "AdaptiveAvgPool1d")


def main_tensor(output: Any, examples: int) -> Tensor | None:
    """The tensor that a network's or layer's output is about; None where there is none."""
    named: dict[str, Any] = {}
    if isinstance(output, Tensor):
        return output if _fits(output, examples) else None
    if isinstance(output, dict):
        named = {str(k): v for k, v in output.items()}
    elif isinstance(output, tuple | list):
        named = {str(i): v for i, v in enumerate(output)}
    for name in ("logits", "last_hidden_state", "features", *named):
        found = named.get(name)
        if isinstance(found, Tensor) and _fits(found, examples):
            return found
    return None


def _fits(value: Tensor, examples: int) -> bool:
    return value.ndim >= 1 and len(value) == examples and value.is_floating_point()


def channels_at_end(module: nn.Module | None, value: Tensor) -> bool:
    """Whether the last axis of an output holds the features: tokens do, feature maps do not."""
    kind = "" if module is None else type(module).__name__
    if kind in _FIRST:
        return False
    return value.ndim == 3 or kind in _LAST


def pooled(value: Tensor, pool: str, *, last: bool, mask: Tensor | None = None) -> Tensor:
    """Rows for examples: a feature map's mean over places, the tokens' mean or the first of them.

    Parameters
    ----------
    value : Tensor, shape (examples, ...)
        What a layer gave.
    pool : str
        One of :data:`POOLS`; with ``"tokens"`` there is a row for each place.
    last : bool
        Whether the features are the last axis, otherwise the second.
    mask : Tensor, shape (examples, tokens), optional
        False for tokens that stand for nothing.

    Examples
    --------
    >>> pooled(torch.ones(2, 8, 4, 4), "auto", last=False).shape
    torch.Size([2, 8])
    >>> pooled(torch.ones(2, 5, 8), "tokens", last=True).shape
    torch.Size([10, 8])
    """
    value = value.to(torch.float32)
    if value.ndim == 1:
        return value[:, None]
    if value.ndim == 2:
        return value
    if pool == "flatten":
        return value.flatten(1)
    places = (value if last else value.movedim(1, -1)).flatten(1, -2)
    if mask is not None and mask.shape != places.shape[:2]:
        mask = None  # a layer that is not about tokens
    if pool == "tokens":
        return places.flatten(0, 1) if mask is None else places[mask]
    if pool == "first":
        return places[:, 0]
    if mask is None:
        return places.mean(dim=1)
    weights = mask.to(places.dtype)[:, :, None]
    return (places * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=1)


def places_of(value: Tensor, *, last: bool, mask: Tensor | None) -> Tensor:
    """How many rows each example has with ``pool="tokens"``."""
    if value.ndim <= 2:
        return torch.ones(len(value), dtype=torch.int64)
    places = (value if last else value.movedim(1, -1)).shape[1:-1].numel()
    if mask is not None and mask.shape[1] == places:
        return mask.sum(dim=1).cpu()
    return torch.full((len(value),), places, dtype=torch.int64)


def check_pool(pool: Any) -> str:
    """Raise unless a way to pool is known."""
    if pool not in POOLS:
        raise InputError(f"pool={pool!r}: use one of {', '.join(POOLS)}.")
    return str(pool)


def are_probabilities(scores: Tensor) -> bool:
    """Whether a network's scores are probabilities already: none negative, with a sum of 1.

    >>> are_probabilities(torch.tensor([[0.25, 0.75]])), are_probabilities(torch.zeros(1, 2))
    (True, False)
    """
    scores = scores.to(torch.float32)
    inside = bool(((scores >= 0) & (scores <= 1)).all())
    return inside and (scores.shape[1] == 1 or bool(((scores.sum(dim=1) - 1).abs() < 1e-2).all()))


def as_probabilities(scores: Tensor, *, ready: bool, squashed: bool = False) -> Tensor:
    """Probabilities of classes, out of logits or log-probabilities unless they are ready.

    One column is about the second of two classes. Scores that were squashed, each by a sigmoid,
    are taken back to logits, since those of all classes do not sum to 1.

    >>> as_probabilities(torch.tensor([[0.0]]), ready=False).tolist()
    [[0.5, 0.5]]
    """
    scores = scores.to(torch.float32)
    if squashed:
        scores, ready = scores.logit(eps=1e-7), False
    if scores.shape[1] == 1:
        second = scores if ready else scores.sigmoid()
        return torch.cat([1 - second, second], dim=1)
    if ready:
        return scores / scores.sum(dim=1, keepdim=True)
    return scores.softmax(dim=1)  # of log-probabilities, these themselves
