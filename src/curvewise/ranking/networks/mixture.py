"""NLEEP on a GPU: the lens's own code, run with torch."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from curvewise.errors import InputError
from curvewise.nn.devices import find_device
from curvewise.ranking.measure import as_matrix, has_test
from curvewise.ranking.prediction import NleepSettings, nleep_reduced, reduce_features

# Steps before a loop is recorded, in which libraries allocate their workspaces.
FIRST = 2


def nleep_on_device(
    features: ArrayLike | Tensor,
    labels: ArrayLike,
    *,
    test_features: ArrayLike | Tensor | None = None,
    test_labels: ArrayLike | None = None,
    energy: float = 0.8,
    components: int = 5,
    covariance: str = "diagonal",
    variant: str = "paper",
    steps: int = 100,
    rng: int | np.random.Generator = 0,
    device: str | torch.device | None = None,
) -> float:
    """Compute NLEEP by torch; see :func:`curvewise.ranking.prediction.nleep`.

    Parameters
    ----------
    features, test_features : array_like or Tensor, shape (examples, dimensions)
        In memory or on the device already.
    labels, test_labels, energy, components, covariance, variant, steps, rng
        As there. The same draws are made, so that results differ by rounding only.
    device : str or torch.device, optional
        By default where the features are; for arrays the GPU if there is one.

    Returns
    -------
    float
        As there.

    Raises
    ------
    InputError
        As there; or if there is no such device.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> labels = np.repeat(["cat", "dog"], 100)
    >>> x = random.standard_normal((200, 20)) + 3 * (labels == "cat")[:, None]
    >>> from curvewise.ranking.prediction import nleep
    >>> abs(nleep_on_device(torch.tensor(x), labels) - nleep(x, labels)) < 1e-9
    True
    """
    settings = NleepSettings(components, covariance, variant, steps)
    default = features.device if isinstance(features, Tensor) else "cuda" if torch.cuda.is_available() else "cpu"
    place = find_device(device) if device is not None else torch.device(default)
    here = torch.cuda.device(place) if place.type == "cuda" else nullcontext()
    with torch.no_grad(), here:
        x, test, xp = _matrix(features, "features", place), None, TorchOn(place)
        if has_test(test_features, test_labels, "test_features"):
            test = _matrix(test_features, "test_features", place)
        reduced, test = reduce_features(x, test, energy, xp)
        return nleep_reduced(reduced, labels, test, test_labels, settings, rng, xp)


class TorchOn:
    """Array module with the functions of torch whose new arrays lie on one device.

    A ``with torch.device(…)`` would do the same, and slow every call down; on a GPU loops are
    recorded as well.
    """

    def __init__(self, place: torch.device) -> None:
        makers = ("arange", "asarray", "empty", "eye", "zeros")
        self.__dict__ |= {name: partial(getattr(torch, name), device=place) for name in makers}
        if place.type == "cuda":
            self.looped = _recorded

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)


def _recorded(step: Callable[[], None]) -> Callable[[int], None]:
    """Replay steps from a CUDA graph, recorded after a few steps in which libraries allocate their memory."""
    stream, graph, taken = torch.cuda.Stream(), torch.cuda.CUDAGraph(), 0  # type: ignore[no-untyped-call]

    def go(times: int) -> None:
        nonlocal taken
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for number in range(taken, taken + times):
                if number == FIRST:
                    graph.capture_begin(capture_error_mode="thread_local")
                    try:
                        step()
                    finally:
                        graph.capture_end()
                if number < FIRST:
                    step()
                else:
                    graph.replay()
        taken += times
        torch.cuda.current_stream().wait_stream(stream)

    return go


def _matrix(values: Any, argument: str, place: torch.device) -> Tensor:
    """Return a finite matrix on the device."""
    if not isinstance(values, Tensor):
        return torch.asarray(as_matrix(values, argument), device=place, copy=True)
    if values.ndim != 2 or not values.numel() or not values.is_floating_point():
        raise InputError(
            f"has shape {tuple(values.shape)} and holds {values.dtype}: give a matrix "
            "of floats with a row for each example.",
            argument=argument,
        )
    found = values.to(place, values.dtype if values.dtype == torch.float64 else torch.float32)
    if not bool(torch.isfinite(found.sum())):
        as_matrix(found.cpu().numpy(), argument)
    return found
