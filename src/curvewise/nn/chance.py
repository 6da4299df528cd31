"""Random numbers that are a function of what they are for, not of what was drawn before.

A draw is a hash of a seed and of counters (epoch, example, number of the draw). It is the same on
every device, in every order, alone and beside other trainings: the order and the augmentation of a
run depend on its seeds only.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

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


def split_rows(
    rows: NDArray[np.int64], y: NDArray[np.int64], share: float | str, least: int = 1
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Hold out a share of each class, or with ``"1/class"`` so many examples of each.

    Every class with two or more examples keeps at least one on each side as far as the share
    allows; with ``least=0`` all of a class may be held out. The order of the rows is kept.

    Examples
    --------
    >>> train, held = split_rows(np.arange(6), np.array([0, 0, 0, 1, 1, 1]), 1 / 3)
    >>> len(train), len(held)
    (4, 2)
    >>> split_rows(np.arange(6), np.array([0, 0, 0, 0, 1, 1]), "1/class")[1].size
    2
    """
    generator = np.random.default_rng(0)  # always 0: the same rows are held out whatever the seeds of the run
    held = np.zeros(len(rows), dtype=bool)
    labels = y[rows]
    classes, counts = np.unique(labels, return_counts=True)
    if isinstance(share, str):
        ideal = np.full(len(counts), float(share.partition("/")[0]))
        wanted = 0
    else:
        ideal = counts * share
        wanted = max(1, round(share * len(rows)))
    take = np.floor(ideal).astype(int)
    take = np.minimum(take, counts - least)
    # Whole numbers fall short of the share: classes that lost most by rounding give one more, until it is met.
    spare = np.argsort(take - ideal, kind="stable")
    for i in spare:
        if take.sum() >= wanted:
            break
        take[i] += take[i] < counts[i] - least
    for label, k in zip(classes, take, strict=True):
        members = np.flatnonzero(labels == label)
        held[generator.permutation(members)[:k]] = True
    return rows[~held], rows[held]
