"""NLEEP on a GPU: the lens's own code, run with torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from curvewise.errors import InputError
from curvewise.nn.resident import find_device
from curvewise.ranking._prediction import has_test
from curvewise.ranking.nleep import Settings, nleep_reduced, reduce_features
from curvewise.types import as_matrix


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
    tolerance: float = 1e-3,
    rng: int | np.random.Generator = 0,
    device: str | torch.device | None = None,
) -> float:
    """NLEEP computed by torch; see :func:`curvewise.ranking.nleep.nleep`.

    Parameters
    ----------
    features, test_features : array_like or Tensor, shape (examples, dimensions)
        In memory or on the device already.
    labels, test_labels, energy, components, covariance, variant, steps, tolerance, rng
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
    >>> from curvewise.ranking.nleep import nleep
    >>> abs(nleep_on_device(torch.tensor(x), labels) - nleep(x, labels)) < 1e-9
    True
    """
    settings = Settings(components, covariance, variant, steps, tolerance)
    place = _place(features, device)
    with torch.no_grad(), place:
        x, test = _matrix(features, "features", place), None
        if has_test(test_features, test_labels, "test_features"):
            test = _matrix(test_features, "test_features", place)
        reduced, test = reduce_features(x, test, energy, torch)
        return nleep_reduced(reduced, labels, test, test_labels, settings, rng, torch)


def _place(features: Any, device: str | torch.device | None) -> torch.device:
    if device is not None:
        return find_device(device)
    if isinstance(features, Tensor):
        return features.device
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def _matrix(values: Any, argument: str, place: torch.device) -> Tensor:
    """A finite matrix on the device."""
    if not isinstance(values, Tensor):
        return torch.asarray(as_matrix(values, argument), device=place, copy=True)
    if values.ndim != 2 or not values.numel() or not values.is_floating_point():
        raise InputError(
            f"{argument} has shape {tuple(values.shape)} and holds {values.dtype}: give a matrix "
            "of floats with a row for each example."
        )
    found = values.to(place, values.dtype if values.dtype == torch.float64 else torch.float32)
    if not bool(torch.isfinite(found.sum())):
        as_matrix(found.cpu().numpy(), argument)
    return found
