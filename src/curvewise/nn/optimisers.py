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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import torch
from torch import Tensor
from torch.nn import functional

from curvewise.errors import arg, list_names
from curvewise.nn.task import check_shape
from curvewise.nn.training import NUMBER_LOSSES, Training, misfit

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


def make_optimiser(training: Training, shapes: Mapping[str, Sequence[int]] | None = None) -> Optimiser:
    """Return the rule that a training asks for.

    Parameters
    ----------
    training : Training
        Its optimiser, and the groups that are trained otherwise.
    shapes : dict of str to sequence of int, optional
        Shape of each trained parameter of one network by its name, in the order of the parameters.

    Raises
    ------
    InputError
        If a group has no parameters, two have the same, or ``muon`` is to change what is no matrix.

    Examples
    --------
    >>> rule = make_optimiser(Training(optimiser="sgd", momentum=0.0))
    >>> weight = torch.tensor([1.0, 2.0])
    >>> state = rule.start([weight])
    >>> rule.step([weight], [torch.ones(2)], state, torch.tensor(0.5), torch.tensor(1.0))
    >>> weight
    tensor([0.5000, 1.5000])
    """
    shapes = shapes or {}
    groups = list(training.groups or ())
    members = _members(list(shapes), groups)
    rules = [_rule(training), *(_rule(training.group_training(name)) for name in groups)]
    for rule, mine in zip(rules, members, strict=True):
        if isinstance(rule, Muon) and shapes:
            _check_matrices({name: shape for i, (name, shape) in enumerate(shapes.items()) if i in mine})
    return rules[0] if len(rules) == 1 else Grouped(tuple(rules), tuple(members))


def _rule(training: Training) -> Optimiser:
    """Return the rule of a training, or of a group, for all parameters alike."""
    decay, momentum, nesterov = float(training.weight_decay), float(training.momentum), training.nesterov
    if training.optimiser in ("sgd", "sgdw"):
        return Sgd(momentum, decay, decoupled=training.optimiser == "sgdw", nesterov=bool(nesterov))
    if training.optimiser == "ranger":
        return Ranger(decay)
    if training.optimiser == "muon":
        steps, rescale = training.newton_schulz or NEWTON_SCHULZ, bool(training.rescale_filters)
        return Muon(momentum, decay, nesterov=nesterov is not False, steps=steps, rescale=rescale)
    return Adam(decay, decoupled=training.optimiser == "adamw")


def _members(names: list[str], patterns: list[str]) -> list[tuple[int, ...]]:
    """Return positions of the parameters in no group, then of those in each."""
    found: dict[str, list[int]] = {pattern: [] for pattern in patterns}
    rest: list[int] = []
    for i, name in enumerate(names):
        matching = [pattern for pattern in patterns if fnmatchcase(name, pattern)]
        if len(matching) > 1:
            problem = f"{matching[0]!r} and {matching[1]!r} both match {name!r}."
            raise misfit("groups", patterns, problem, "Change one of them: a parameter has one group.")
        (found[matching[0]] if matching else rest).append(i)
    for pattern, mine in found.items():
        if not mine:
            problem = f"matches none of the trained parameters, {list_names(names, 6)}."
            raise misfit("groups", pattern, problem, "Name them as the network does; * stands for anything.")
    return [tuple(rest), *map(tuple, found.values())]


def _check_matrices(shapes: Mapping[str, Sequence[int]]) -> None:
    """Refuse parameters that Muon cannot orthogonalise."""
    others = [name for name, shape in shapes.items() if len(shape) < 2]
    if len(others) == len(shapes):
        problem = "changes matrices and banks of filters, and there are none for it among the parameters."
        raise misfit("optimiser", "muon", problem, "Use 'sgd' or 'adamw'.")
    if others:
        problem = f"changes matrices and banks of filters, and these are neither: {list_names(others, 6)}."
        way = "{'*bias': {'optimiser': 'sgd', 'rate': 0.1}}"
        raise misfit("optimiser", "muon", problem, f"Give them a rule of their own: {arg('groups')}, such as {way}.")


@dataclass(frozen=True)
class Grouped(Optimiser):
    """Several rules, each for parameters of its own.

    The rate of a step has one entry for each rule: shape (rules,).
    """

    rules: tuple[Optimiser, ...]
    members: tuple[tuple[int, ...], ...]

    def start(self, params: Tensors) -> State:
        """States of all rules, each under its number."""
        each = zip(self.rules, self.members, strict=True)
        states = [rule.start([params[i] for i in mine]) for rule, mine in each]
        return {f"{k}.{name}": slot for k, state in enumerate(states) for name, slot in state.items()}

    def reset(self, params: Tensors, state: State) -> None:
        """Bring the states of all rules back."""
        for k, (rule, mine) in enumerate(zip(self.rules, self.members, strict=True)):
            rule.reset([params[i] for i in mine], self._own(state, k))

    def step(
        self, params: Tensors, grads: Tensors, state: State, rate: Tensor, count: Tensor, *, stacked: bool = False
    ) -> None:
        """Take a step by each rule."""
        for k, (rule, mine) in enumerate(zip(self.rules, self.members, strict=True)):
            if mine:
                own = [params[i] for i in mine], [grads[i] for i in mine]
                rule.step(*own, self._own(state, k), rate[k], count, stacked=stacked)

    def _own(self, state: State, k: int) -> State:
        return {name.partition(".")[2]: slot for name, slot in state.items() if name.startswith(f"{k}.")}


@dataclass(frozen=True)
class Sgd(Optimiser):
    """Stochastic gradient descent with momentum, as in ``torch.optim.SGD``.

    The decay is added to the gradient, and the velocity starts as the first gradient. Decoupled
    (Loshchilov and Hutter 2017), the weights shrink by ``rate · weight_decay`` instead, and momentum
    does not carry the decay on. Nesterov's step goes along the gradient and ``momentum`` times the velocity.
    """

    momentum: float = 0.9
    weight_decay: float = 0.0
    decoupled: bool = False
    nesterov: bool = False

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
            grads = _carried(state["velocity"], grads, self.momentum, nesterov=self.nesterov)
        _descend(params, rate, grads)


NEWTON_SCHULZ = 5
"""Steps of the iteration by default, as in ``torch.optim.Muon``."""
_QUINTIC = (3.4445, -4.7750, 2.0315)  # a, b, c of Jordan 2024: singular values σ become aσ + bσ³ + cσ⁵ in each step
_LEAST_NORM = 1e-7


@dataclass(frozen=True)
class Muon(Optimiser):
    """Momentum whose direction is made orthogonal, for matrices and banks of filters (Jordan 2024).

    A bank of filters (outputs, inputs, height, width) counts as a matrix with a row for each output. The direction,
    gradient and ``momentum`` times the velocity, is brought near the closest matrix with orthonormal rows by a few
    steps of a Newton–Schulz iteration, and multiplied by √(rows / columns) where there are more rows. As in
    ``torch.optim.Muon``; the velocity is a sum there weighted by 1 − momentum, which makes no difference to a
    direction. Not as there: the iteration is in bfloat16 on a GPU and in float32 on a CPU, where some processors lack
    bfloat16; norms are computed before rounding to it; and with ``rescale`` each matrix is first brought to the norm
    √rows, so that the size of the weights does not grow and the rate alone decides how far they turn.
    """

    momentum: float = 0.95
    weight_decay: float = 0.0
    nesterov: bool = True
    steps: int = NEWTON_SCHULZ
    rescale: bool = False

    def start(self, params: Tensors) -> State:
        """Velocities of zero."""
        return {"velocity": _zeros(params)}

    def step(
        self, params: Tensors, grads: Tensors, state: State, rate: Tensor, count: Tensor, *, stacked: bool = False
    ) -> None:
        """Take one step along the orthogonal direction; matrices of a stack are not known here."""
        if stacked:
            raise NotImplementedError("Muon's products may round otherwise in a stack.")
        direction = _carried(state["velocity"], grads, self.momentum, nesterov=self.nesterov)
        if self.rescale:
            for p, norm in zip(params, torch._foreach_norm(params), strict=True):
                p.mul_(math.sqrt(len(p)) / norm.clamp_min(_LEAST_NORM))
        _shrink(params, rate, self.weight_decay)
        _descend(params, rate, orthogonalised(direction, self.steps))


def orthogonalised(matrices: Sequence[Tensor], steps: int = NEWTON_SCHULZ) -> Tensors:
    """Return matrices whose singular vectors are those of the given ones, and whose singular values are about 1.

    Parameters
    ----------
    matrices : sequence of Tensor, shape (rows, columns) or (rows, columns, height, width)
        The axes after the first are one.
    steps : int
        Of the Newton–Schulz iteration; after 5, singular values above a hundredth of the matrix's norm lie from
        0.6 to 1.2, smaller ones below.

    Returns
    -------
    list of Tensor
        Of the same shapes; those with more rows than columns are scaled by √(rows / columns).

    Examples
    --------
    >>> (turned,) = orthogonalised([torch.tensor([[3.0, 0.0], [0.0, -0.5]])])
    >>> bool(((turned.abs().diag() - 1).abs() < 0.35).all())
    True
    """
    a, b, c = _QUINTIC
    flat = [_as_matrix(matrix) for matrix in matrices]
    wide = [m.mT if m.shape[0] > m.shape[1] else m for m in flat]
    found: dict[int, Tensor] = {}
    # Matrices with as many rows are multiplied in one call. Columns of zeros fill up the shorter ones: they stay zeros.
    for rows in dict.fromkeys(len(m) for m in wide):
        mine = [i for i, m in enumerate(wide) if len(m) == rows]
        longest = max(wide[i].shape[1] for i in mine)
        x = torch.stack([functional.pad(wide[i], (0, longest - wide[i].shape[1])) for i in mine])
        x = x / torch.linalg.vector_norm(x, dim=(1, 2), keepdim=True).clamp_min(_LEAST_NORM)
        x = x.to(torch.bfloat16) if x.is_cuda else x
        for _ in range(steps):
            square = torch.bmm(x, x.mT)
            x = torch.baddbmm(x, torch.baddbmm(square, square, square, beta=b, alpha=c), x, beta=a)
        for i, one in zip(mine, x.to(torch.float32), strict=True):
            found[i] = one[:, : wide[i].shape[1]]
    both = ((found[i].mT if m.shape[0] > m.shape[1] else found[i], m) for i, m in enumerate(flat))
    scaled = [x * math.sqrt(len(x) / x.shape[1]) if len(x) > x.shape[1] else x for x, _ in both]
    return [_as_filters(x, matrix.shape) for x, matrix in zip(scaled, matrices, strict=True)]


def _as_matrix(filters: Tensor) -> Tensor:
    """Flatten the axes after the first, channels innermost, as filters lie in memory: their order does not matter."""
    return filters.permute(0, *range(2, filters.dim()), 1).reshape(len(filters), -1)


def _as_filters(matrix: Tensor, shape: Sequence[int]) -> Tensor:
    """Undo :func:`_as_matrix`."""
    outputs, inputs, *sides = shape
    return matrix.reshape(outputs, *sides, inputs).movedim(-1, 1)


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


def _carried(velocity: Tensors, grads: Tensors, momentum: float, *, nesterov: bool) -> Tensors:
    """Add gradients to the velocity, in place; return the direction of the step."""
    torch._foreach_mul_(velocity, momentum)
    torch._foreach_add_(velocity, grads)
    if not nesterov:
        return velocity
    ahead = torch._foreach_mul(velocity, momentum)
    torch._foreach_add_(ahead, grads)
    return list(ahead)


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
