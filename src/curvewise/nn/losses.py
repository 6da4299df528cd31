"""What a training lowers, and how far predicted numbers are off."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor
from torch.nn import functional

from curvewise.nn.settings import NUMBER_LOSSES, Training
from curvewise.nn.targets import check_shape

Loss = Callable[[Tensor, Tensor], Tensor]


def make_loss(training: Training) -> Loss:
    """The loss of a batch, from outputs in float32 and targets.

    Parameters
    ----------
    training : Training
        Settled, so that its loss is that of its targets (``curvewise.nn.targets``).

    Examples
    --------
    >>> import torch
    >>> float(make_loss(Training(loss="l1"))(torch.tensor([[1.0, 4.0]]), torch.zeros(1, 2)))
    2.5
    """
    if training.loss in NUMBER_LOSSES:
        off = functional.l1_loss if training.loss == "l1" else functional.mse_loss

        def of_numbers(outputs: Tensor, y: Tensor) -> Tensor:
            check_shape(outputs.shape, y.shape)
            return off(outputs, y)

        return of_numbers
    smoothing = training.label_smoothing

    def cross_entropy(outputs: Tensor, y: Tensor) -> Tensor:
        return functional.cross_entropy(outputs, y, label_smoothing=smoothing)

    return cross_entropy


def make_losses(training: Training) -> Loss:
    """The losses of several networks, each of a batch of its own, shape (networks,).

    Examples
    --------
    >>> import torch
    >>> outputs = torch.tensor([[[1.0, 4.0]], [[0.0, 1.0]]])
    >>> make_losses(Training(loss="l1"))(outputs, torch.zeros(2, 1, 2))
    tensor([2.5000, 0.5000])
    """
    if training.loss in NUMBER_LOSSES:
        off = functional.l1_loss if training.loss == "l1" else functional.mse_loss

        def of_numbers(outputs: Tensor, y: Tensor) -> Tensor:
            check_shape(outputs.shape[1:], y.shape[1:])
            return off(outputs, y, reduction="none").flatten(1).mean(dim=1)

        return of_numbers
    smoothing = training.label_smoothing

    def cross_entropies(outputs: Tensor, y: Tensor) -> Tensor:
        flat = outputs.flatten(0, 1)
        each = functional.cross_entropy(
            flat, y.flatten(), label_smoothing=smoothing, reduction="none"
        )
        return each.view(y.shape).mean(dim=1)

    return cross_entropies


def number_losses(outputs: Tensor, y: Tensor, loss: str) -> Tensor:
    """The loss of each example, in double precision: the mean over its outputs.

    Parameters
    ----------
    outputs : Tensor, shape (..., examples, *numbers)
        Predicted numbers, of one or of several networks.
    y : Tensor, shape (examples, *numbers)
        The targets.
    loss : {"l1", "l2"}
        Absolute or squared differences.

    Returns
    -------
    Tensor, shape (..., examples)
    """
    check_shape(outputs.shape[-y.ndim :], y.shape)
    off = outputs.double() - y.double()
    each = off.abs() if loss == "l1" else off.square()
    return each.flatten(outputs.ndim - y.ndim + 1).mean(dim=-1)
