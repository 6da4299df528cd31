"""Optimisers as plain rules on lists of tensors, and the losses that they minimise.

A rule holds its constants; what it remembers lies in a dict of tensors that the caller keeps. A
step reads the learning rate and the number of the step from tensors and never asks the host, so
the same code runs on a CPU, inside a captured CUDA graph, under ``torch.compile``, and on stacked
models (several models' weights in one tensor, the first axis being the model). Multiplications
and additions are kept apart rather than fused, so that a model's steps come out the same, bit for
bit, alone and in a stack.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from curvewise.nn.task import check_shape
from curvewise.nn.training import NUMBER_LOSSES, Training

Tensors = list[Tensor]
State = dict[str, Tensors]


class Optimiser(ABC):
    """A rule that changes parameters by their gradients. Call it under ``torch.no_grad``."""

    @abstractmethod
    def start(self, params: Tensors) -> State:
        """Return the state before the first step, in tensors of its own."""

    def reset(self, params: Tensors, state: State) -> None:
        """Bring a state back, in place, to what it was before the first step: zeros."""
        for tensors in state.values():
            torch._foreach_zero_(tensors)

    @abstractmethod
    def step(
        self, params: Tensors, grads: Tensors, state: State, rate: Tensor, count: Tensor, *, stacked: bool = False
    ) -> None:
        """Change params and state in place; the gradients are left as they are.

        Parameters
        ----------
        params, grads : list of Tensor
            Parameters, and the loss's derivative for each.
        state : dict of str to list of Tensor
            From ``start``.
        rate : Tensor of float32, shape ()
            Learning rate.
        count : Tensor of float32, shape ()
            Number of the step, from 1.
        stacked : bool
            True if the first axis of every parameter is the model.
        """


def make_optimiser(training: Training) -> Optimiser:
    """Return the rule that a training asks for.

    Examples
    --------
    >>> rule = make_optimiser(Training(optimiser="sgd", momentum=0.0))
    >>> weight = torch.tensor([1.0, 2.0])
    >>> state = rule.start([weight])
    >>> rule.step([weight], [torch.ones(2)], state, torch.tensor(0.5), torch.tensor(1.0))
    >>> weight
    tensor([0.5000, 1.5000])
    """
    decay = float(training.weight_decay)
    if training.optimiser in ("sgd", "sgdw"):
        return Sgd(float(training.momentum), decay, decoupled=training.optimiser == "sgdw")
    if training.optimiser == "ranger":
        return Ranger(decay)
    return Adam(decay, decoupled=training.optimiser == "adamw")


@dataclass(frozen=True)
class Sgd(Optimiser):
    """Stochastic gradient descent with momentum, as in ``torch.optim.SGD``.

    The decay is added to the gradient, and the velocity starts as the first gradient. Decoupled
    (Loshchilov and Hutter 2017), the weights shrink by ``rate · weight_decay`` instead, and momentum
    does not carry the decay on.
    """

    momentum: float = 0.9
    weight_decay: float = 0.0
    decoupled: bool = False

    def start(self, params: Tensors) -> State:
        """Velocities of zero; nothing without momentum."""
        return {"velocity": _zeros(params)} if self.momentum else {}

    def step(
        self, params: Tensors, grads: Tensors, state: State, rate: Tensor, count: Tensor, *, stacked: bool = False
    ) -> None:
        """Take one step against the velocity."""
        if self.decoupled:
            _shrink(params, rate, self.weight_decay)
        else:
            grads = _with_decay(params, grads, self.weight_decay)
        if self.momentum:
            torch._foreach_mul_(state["velocity"], self.momentum)
            torch._foreach_add_(state["velocity"], grads)
            grads = state["velocity"]
        _descend(params, rate, grads)


@dataclass(frozen=True)
class Adam(Optimiser):
    """Adam, with the decay in the gradient or decoupled from it (AdamW), as in ``torch.optim``."""

    weight_decay: float = 0.0
    decoupled: bool = False
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8

    def start(self, params: Tensors) -> State:
        """Moments of zero."""
        return {"mean": _zeros(params), "square": _zeros(params)}

    def step(
        self, params: Tensors, grads: Tensors, state: State, rate: Tensor, count: Tensor, *, stacked: bool = False
    ) -> None:
        """Take one step of the mean gradient over the root of the mean square, both unbiased."""
        if self.decoupled:
            _shrink(params, rate, self.weight_decay)
        else:
            grads = _with_decay(params, grads, self.weight_decay)
        _follow(state, grads, self.betas)
        scale = torch.rsqrt(_unbiasing(self.betas[1], count)).to(torch.float32)
        size = (rate.double() / _unbiasing(self.betas[0], count)).to(torch.float32)
        denominator = torch._foreach_sqrt(state["square"])
        torch._foreach_mul_(denominator, scale)
        torch._foreach_add_(denominator, self.eps)
        update = torch._foreach_div(state["mean"], denominator)
        _descend(params, size, update)


@dataclass(frozen=True)
class Ranger(Optimiser):
    """Rectified Adam with look-ahead and centralised gradients, with Wright's constants.

    Each gradient of more than one axis loses its mean over all axes but the first. The step is
    Adam's with a factor for the unreliability of the second moment; until that has an effective
    length of five steps, it is a step along the unbiased mean gradient. After every sixth step,
    slow weights move halfway to the weights, which then continue from there.

    The decay is decoupled: weights shrink by ``rate · weight_decay`` before the step, as in
    rectified Adam and in the Ranger with centralised gradients of spring 2020. (Wright's later
    file adds the decay to the update instead, where the rectifying factor scales it too.)
    """

    weight_decay: float = 0.0
    betas: tuple[float, float] = (0.95, 0.999)
    eps: float = 1e-5
    every: int = 6
    halfway: float = 0.5
    threshold: float = 5.0

    def start(self, params: Tensors) -> State:
        """Moments of zero; slow weights where the weights are."""
        slow = [p.detach().clone() for p in params]
        return {"mean": _zeros(params), "square": _zeros(params), "slow": slow}

    def reset(self, params: Tensors, state: State) -> None:
        """Moments back to zero, slow weights to the weights."""
        super().reset(params, state)
        torch._foreach_copy_(state["slow"], params)

    def step(
        self, params: Tensors, grads: Tensors, state: State, rate: Tensor, count: Tensor, *, stacked: bool = False
    ) -> None:
        """Take one rectified step; the slow weights follow after every sixth."""
        # Gradients are centralised before all else (Yong et al. 2020).
        # Each loses its mean over the axes after the first (after the second in a stack).
        first = 1 + stacked
        grads = [g if g.dim() <= first else g - g.mean(dim=tuple(range(first, g.dim())), keepdim=True) for g in grads]
        _shrink(params, rate, self.weight_decay)
        _follow(state, grads, self.betas)
        factor, trusted = self._rectification(count)
        size = (rate.double() * factor / _unbiasing(self.betas[0], count)).to(torch.float32)
        denominator = torch._foreach_sqrt(state["square"])
        torch._foreach_add_(denominator, self.eps)
        # One of the two subtracts nothing: a branch would make the host wait for the device.
        _descend(params, size * trusted, torch._foreach_div(state["mean"], denominator))
        _descend(params, size * (1 - trusted), state["mean"])
        self._look_ahead(params, state["slow"], count)

    def _rectification(self, count: Tensor) -> tuple[Tensor, Tensor]:
        """Return the factor of the step, and 1 where the second moment can be trusted, else 0."""
        # Liu et al. 2020, algorithm 2: ρ∞ (longest), ρ_t (length) and r_t (the root below).
        beta = self.betas[1]
        longest = 2 / (1 - beta) - 1
        unbiasing = _unbiasing(beta, count)
        length = longest - 2 * count.double() * (1 - unbiasing) / unbiasing
        ratio = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
        trusted = (length > self.threshold).double()
        factor = torch.sqrt((unbiasing * ratio).clamp_min(0)) * trusted + (1 - trusted)
        return factor, trusted.to(torch.float32)

    def _look_ahead(self, params: Tensors, slow: Tensors, count: Tensor) -> None:
        now = (torch.remainder(count, self.every) == 0).to(torch.float32)
        way = torch._foreach_sub(params, slow)
        torch._foreach_mul_(way, now * self.halfway)
        torch._foreach_add_(slow, way)
        # Exact for now = 0 and now = 1, unlike params + now · (slow − params).
        torch._foreach_mul_(params, 1 - now)
        torch._foreach_add_(params, torch._foreach_mul(slow, now))


def _zeros(params: Tensors) -> Tensors:
    return [torch.zeros_like(p) for p in params]


def _with_decay(params: Tensors, grads: Tensors, decay: float) -> Tensors:
    if not decay:
        return grads
    decayed = torch._foreach_mul(params, decay)
    torch._foreach_add_(decayed, grads)
    return list(decayed)


def _shrink(params: Tensors, rate: Tensor, decay: float) -> None:
    if decay:
        keep = (1 - rate.double() * decay).to(torch.float32)
        torch._foreach_mul_(params, keep)


def _follow(state: State, grads: Tensors, betas: tuple[float, float]) -> None:
    """Update the exponential means of the gradients and of their squares."""
    torch._foreach_mul_(state["mean"], betas[0])
    torch._foreach_add_(state["mean"], torch._foreach_mul(grads, 1 - betas[0]))
    squares = torch._foreach_mul(grads, grads)
    torch._foreach_mul_(squares, 1 - betas[1])
    torch._foreach_mul_(state["square"], betas[1])
    torch._foreach_add_(state["square"], squares)


def _unbiasing(beta: float, count: Tensor) -> Tensor:
    """Return 1 − beta^count in double precision: in single, the first steps lose four digits."""
    return -torch.expm1(count.double() * math.log(beta))


def _descend(params: Tensors, size: Tensor, update: list[Tensor] | tuple[Tensor, ...]) -> None:
    """Subtract size · update from the parameters, as two operations: fused they would round otherwise in a stack."""
    torch._foreach_sub_(params, list(torch._foreach_mul(update, size)))


# Losses: what a training minimises, and the loss of each example for predicted numbers.


Loss = Callable[[Tensor, Tensor], Tensor]


def make_loss(training: Training, *, stacked: bool = False) -> Loss:
    """Return the loss of a batch, as a function of outputs in float32 and targets.

    Parameters
    ----------
    training : Training
        Settled, so that its loss is that of its targets (:func:`curvewise.nn.task.settle_training`).
    stacked : bool
        The losses of several networks, each of a batch of its own: shape (networks,).

    Examples
    --------
    >>> outputs = torch.tensor([[[1.0, 4.0]], [[0.0, 1.0]]])
    >>> float(make_loss(Training(loss="l1"))(outputs[0], torch.zeros(1, 2)))
    2.5
    >>> make_loss(Training(loss="l1"), stacked=True)(outputs, torch.zeros(2, 1, 2))
    tensor([2.5000, 0.5000])
    """
    if training.loss in NUMBER_LOSSES:
        difference = functional.l1_loss if training.loss == "l1" else functional.mse_loss

        def number_loss(outputs: Tensor, y: Tensor) -> Tensor:
            if not stacked:
                check_shape(outputs.shape, y.shape)
                return difference(outputs, y)
            check_shape(outputs.shape[1:], y.shape[1:])
            return difference(outputs, y, reduction="none").flatten(1).mean(dim=1)

        return number_loss
    smoothing = training.label_smoothing

    def cross_entropy(outputs: Tensor, y: Tensor) -> Tensor:
        if not stacked:
            return functional.cross_entropy(outputs, y, label_smoothing=smoothing)
        flat = outputs.flatten(0, 1)
        each = functional.cross_entropy(flat, y.flatten(), label_smoothing=smoothing, reduction="none")
        return each.view(y.shape).mean(dim=1)

    return cross_entropy


def number_losses(outputs: Tensor, y: Tensor, loss: str) -> Tensor:
    """Return the loss of each example, in double precision: the mean over its outputs.

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
