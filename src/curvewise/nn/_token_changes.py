"""What the perturbations do to texts as tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from curvewise.errors import InputError
from curvewise.nn._draw import Draw

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
            "token-dropout needs to know what a dropped token becomes: give padding= or mask=, the "
            "number of a token."
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
