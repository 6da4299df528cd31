"""Random numbers that are a function of what they are for, not of what was drawn before.

A draw is a hash of a seed and of counters (epoch, example, number of the draw). It is the same on
every device, in every order, alone and beside other trainings: the order and the augmentation of a
run depend on its seeds only.
"""

from __future__ import annotations

import torch
from torch import Tensor

_GOLDEN = -7046029254386353131  # 2^64 / golden ratio, as a signed number
_FIRST = -4658895280553007687
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
        step = (
            _wrapped((counter + 1) * _GOLDEN)
            if isinstance(counter, int)
            else (counter * _GOLDEN + _GOLDEN)
        )
        state = mix(state + step)
    return state


def _wrapped(value: int) -> int:
    """Python's integers do not overflow; those of tensors do."""
    return (value + 2**63) % 2**64 - 2**63


def uniform(seed: Tensor, *counters: Tensor | int) -> Tensor:
    """Float32 numbers in [0, 1), in steps of 2⁻²⁴.

    Parameters
    ----------
    seed : Tensor of int64
        Any shape that can be broadcast with the counters.
    *counters : Tensor of int64, or int
        What the number is for: epoch, example, number of the draw.

    Examples
    --------
    >>> seed = torch.tensor(1)
    >>> bool(uniform(seed, 3) == uniform(seed, 3)), bool(uniform(seed, 3) == uniform(seed, 4))
    (True, False)
    """
    return ((hashed(seed, *counters) >> 40) & 0xFFFFFF).to(torch.float32) * 2.0**-24
