"""Networks as they were: from their settings and stored weights, or from their seed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from curvewise.errors import InputError
from curvewise.nn._flags import own_generator
from curvewise.nn.architectures import head_of, make_network
from curvewise.nn.settings import Training
from curvewise.nn.targets import Outputs


def restore_network(
    training: Training,
    shape: tuple[int, ...],
    classes: Outputs,
    weights: Mapping[str, NDArray[Any]],
    folder: Path | None = None,
    seed: int = 0,
) -> nn.Module:
    """A network with stored weights, in evaluation mode, on the CPU.

    Parameters
    ----------
    training : Training
        Its architecture and options are read.
    shape, classes
        Of one input, and of the output: the number of classes, or the shape of numbers.
    weights : dict of str to ndarray
        Parameters and buffers by name, as :class:`~curvewise.nn.task.Trained` has them.
    folder : Path, optional
        Where relative paths start, and the file of a factory of one's own may lie.
    seed : int
        Of the initial weights. Where only the last layer was trained, only that was stored, and
        the rest is drawn again.

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
    head = training.trained == "head"
    start = training if head else replace(training, weights=None, weights_into=None)
    model = _drawn(start, shape, classes, 0 if training.weights else seed, folder)
    tensors = {name: torch.from_numpy(np.array(value)) for name, value in weights.items()}
    wanted = {f"{head_of(model)[0]}.weight"} if head else set(model.state_dict())
    try:
        if head and not wanted <= tensors.keys():
            raise RuntimeError(f"they have no {', '.join(wanted)}.")
        unknown = model.load_state_dict(tensors, strict=not head).unexpected_keys
        if unknown:
            raise RuntimeError(f"it has no {', '.join(unknown)}.")
    except RuntimeError as error:
        raise InputError(
            f"The weights do not fit architecture={training.architecture!r} with options "
            f"{dict(training.options)}: {error}"
        ) from error
    return model


def initial_network(
    training: Training,
    shape: tuple[int, ...],
    classes: Outputs,
    seed: int,
    folder: Path | None = None,
) -> nn.Module:
    """A network with the weights that a training of this seed starts from, in evaluation mode.

    Parameters
    ----------
    training, shape, classes, folder
        As of :func:`restore_network`; a file of initial weights is read.
    seed : int
        Of the initial weights.

    Raises
    ------
    InputError
        If only the last layer is trained: it starts apart from its network.
    """
    if training.trained == "head":
        raise InputError(
            "trained='head': the last layer is trained on features that were computed once, and "
            "starts apart from its network. Use trained='all' to have initial weights."
        )
    return _drawn(training, shape, classes, seed, folder)


def _drawn(
    training: Training, shape: tuple[int, ...], classes: Outputs, seed: int, folder: Path | None
) -> nn.Module:
    with own_generator(seed):
        return make_network(training, shape, classes, folder).eval()


@contextmanager
def one_thread() -> Iterator[None]:
    """Sums on a CPU are cut into as many parts as there are threads, which changes the bits."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
