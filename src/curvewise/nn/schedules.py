"""Learning rates that are known before the training begins."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from curvewise.nn.settings import Training

DROP = 0.1
"""What a drop leaves of the rate."""


def rate_factors(training: Training, steps: int) -> NDArray[np.float32]:
    """The rate of every step, as a share of the training's rate.

    ``linear`` falls from 1 in the first step towards 0, which it would reach one step after the
    last; ``warmup`` rises in equal steps and ends at 1.

    Examples
    --------
    >>> rate_factors(Training(schedule="linear"), 4).tolist()
    [1.0, 0.75, 0.5, 0.25]
    >>> rate_factors(Training(schedule="drops", drops=(0.5,)), 4).round(3).tolist()
    [1.0, 1.0, 0.10000000149011612, 0.10000000149011612]
    """
    done = np.arange(steps) / max(steps, 1)
    rising = round(training.warmup * steps)
    if training.schedule == "linear":
        left = np.maximum(steps - rising, 1)
        factors = 1 - np.maximum(np.arange(steps) - rising, 0) / left
    elif training.schedule == "cosine":
        left = np.maximum(steps - rising, 1)
        factors = 0.5 * (1 + np.cos(np.pi * np.maximum(np.arange(steps) - rising, 0) / left))
    elif training.schedule == "drops":
        factors = DROP ** sum((done >= at).astype(np.float64) for at in training.drops)
    else:
        factors = np.ones(steps)
    if rising:
        factors = factors * np.minimum((np.arange(steps) + 1) / rising, 1)
    return np.asarray(factors, dtype=np.float32)


def drop_steps(training: Training, steps: int) -> list[int]:
    """Steps before which the rate drops, where the schedule says so beforehand."""
    if training.schedule != "drops":
        return []
    done = np.arange(steps) / max(steps, 1)
    return [int(np.searchsorted(done, at)) for at in sorted(training.drops)]
