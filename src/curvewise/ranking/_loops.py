"""Steps that are taken again and again on arrays that stay where they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def looped(step: Callable[[], None], xp: Any) -> Callable[[int], None]:
    """A function that takes a step so many times.

    The step changes arrays in place and reads nothing from the device. An array module may have a
    ``looped`` of its own, which records the step and plays it back: on a GPU most of the time of a
    small step goes into asking for it.

    >>> import numpy as np
    >>> total = np.zeros(1)
    >>> def step():
    ...     total[...] = total + 2
    >>> looped(step, np)(3)
    >>> total
    array([6.])
    """

    def go(times: int) -> None:
        for _ in range(times):
            step()

    found: Callable[[int], None] = xp.looped(step) if hasattr(xp, "looped") else go
    return found
