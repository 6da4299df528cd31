"""Networks as they were: from their settings and stored weights, or from their seed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from curvewise.errors import InputError
from curvewise.nn.architectures import make_network
from curvewise.nn.settings import Training


def restore_network(
    training: Training,
    shape: tuple[int, ...],
    classes: int,
    weights: Mapping[str, NDArray[Any]],
    folder: Path | None = None,
) -> nn.Module:
    """A network with stored weights, in evaluation mode, on the CPU.

    Parameters
    ----------
    training : Training
        Its architecture and options are read.
    shape, classes
        Of one input, and of the output.
    weights : dict of str to ndarray
        Parameters and buffers by name, as :class:`~curvewise.nn.task.Trained` has them.
    folder : Path, optional
        Where the module of a factory of one's own is looked for first.

    Raises
    ------
    InputError
        If the weights do not fit the architecture.

    Examples
    --------
    >>> training = Training("linear")
    >>> start = initial_network(training, (4,), 2, seed=1)
    >>> weights = {name: value.numpy() for name, value in start.state_dict().items()}
    >>> again = restore_network(training, (4,), 2, weights)
    >>> all(torch.equal(a, b) for a, b in zip(start.parameters(), again.parameters()))
    True
    """
    model = initial_network(replace(training, weights=None), shape, classes, 0, folder)
    tensors = {name: torch.from_numpy(np.array(value)) for name, value in weights.items()}
    try:
        model.load_state_dict(tensors)
    except RuntimeError as error:
        raise InputError(
            f"The weights do not fit architecture={training.architecture!r} with options "
            f"{dict(training.options)}: {error}"
        ) from error
    return model


def initial_network(
    training: Training,
    shape: tuple[int, ...],
    classes: int,
    seed: int,
    folder: Path | None = None,
) -> nn.Module:
    """A network with the weights that a training of this seed starts from, in evaluation mode."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        return make_network(training, shape, classes, folder).eval()
