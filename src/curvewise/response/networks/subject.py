"""A network under measurement with its examples, the definition of a measure, and the weights as one vector."""

from __future__ import annotations

import copy
import zlib
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional

from curvewise.errors import InputError, arg, list_names
from curvewise.nn.data import Sample
from curvewise.nn.networks import check_logits, logits_of
from curvewise.response.networks.perturbations import Draw

Made = TypeVar("Made")

JIANG = "Jiang et al. 2020, Fantastic generalization measures"


@dataclass(frozen=True, eq=False)
class Subject:
    """A copy of a network in eval mode and float32, with examples on its device.

    Measures may put hooks on the copy and take them off again; they do not write to its weights.

    Attributes
    ----------
    model : nn.Module
        The copy.
    sample : Sample
        Labelled examples, as a rule of the training data.
    batch : int
        Examples of one forward pass.
    seed : int
        Decides all noise.
    layer : int or str
        The layer whose representations are measured.
    initial : dict of Tensor, optional
        Weights before training, by name of the parameter.
    twin : nn.Module, optional
        Another network, also a copy.
    notes : list of str
        Collects remarks of measures for the reader.
    """

    model: nn.Module
    sample: Sample
    batch: int = 512
    seed: int = 0
    layer: int | str = 1
    initial: Mapping[str, Tensor] | None = None
    twin: nn.Module | None = None
    notes: list[str] = field(default_factory=list)
    _made: dict[Hashable, Any] = field(default_factory=dict)

    @property
    def device(self) -> torch.device:
        """Device of examples and networks."""
        return self.sample.y.device

    @property
    def continuous(self) -> bool:
        """Inputs are numbers (or images) that can be moved a little, not tokens."""
        return self.sample.x.is_floating_point() or self.sample.x.dtype == torch.uint8

    def once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """Make something once and keep it, or the error that it raises, so that measures share it."""
        # A network without layers, say, is refused once and not traced again for each norm.
        if key not in self._made:
            try:
                self._made[key] = make()
            except InputError as error:
                self._made[key] = error
        if isinstance(self._made[key], InputError):
            raise self._made[key]
        made: Made = self._made[key]
        return made

    def batches(self, most: int | None = None) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield inputs as the network takes them and their classes, of all examples or the first so many."""
        end = len(self.sample) if most is None else min(most, len(self.sample))
        for first in range(0, end, self.batch):
            here = slice(first, min(first + self.batch, end))
            x = self.sample.given(self.sample.x[here])
            yield x.float() if x.is_floating_point() else x, self.sample.y[here]

    def noise(self, purpose: str, draw: int, count: int) -> Tensor:
        """Normal numbers, a function of the seed, the purpose and the draw alone."""
        # The purpose is part of the seed, so that measures that are added or left out do not change the others.
        seed = torch.tensor(self.seed ^ zlib.crc32(purpose.encode()), device=self.device)
        drawn = Draw(seed, torch.tensor([draw], device=self.device))
        return drawn.normal(torch.Size((1, count)))[0]

    def answers(self, model: Callable[[Tensor], Any], x: Tensor) -> Tensor:
        """Return the logits of a network for inputs, or raise an error that says why there are none."""
        logits = logits_of(model(x))
        check_logits(logits, len(x), self.once("classes", lambda: self.sample.classes))
        return logits

    @property
    def logits(self) -> Tensor:
        """Outputs for every example, shape (examples, classes)."""
        return self.once("logits", lambda: checked_logits(self, self.model))

    @property
    def accuracy(self) -> Tensor:
        """Share of examples that the network gets right."""
        return (self.logits.argmax(1) == self.sample.y).float().mean()

    @property
    def loss(self) -> Tensor:
        """Mean cross-entropy."""
        return functional.cross_entropy(self.logits, self.sample.y)


def checked_logits(subject: Subject, model: nn.Module) -> Tensor:
    """Return outputs for all examples, or raise an error that says why they are no scores of classes."""
    with torch.no_grad():
        logits = torch.cat([subject.answers(model, x) for x, _ in subject.batches()])
    if not torch.isfinite(logits).all():
        raise InputError("the model's outputs are not all finite: its weights may have diverged.")
    return logits


def copied(model: nn.Module, device: torch.device | str | None) -> nn.Module:
    """Copy a network in eval mode and float32, without gradients.

    Weights that are computed in forward passes (weight norm) are left as they last were; they are computed again in the
    next pass.
    """
    model = getattr(model, "_orig_mod", model)  # what torch.compile wraps
    # deepcopy refuses tensors with a history; the memo gives it detached copies instead.
    computed = {
        id(value): value.detach().clone()
        for module in model.modules()
        for value in vars(module).values()
        if isinstance(value, Tensor) and not value.is_leaf
    }
    twin = copy.deepcopy(model, computed).eval().float().requires_grad_(False)
    return twin if device is None else twin.to(device)


@contextmanager
def rounding() -> Iterator[None]:
    """Let a GPU's convolutions round factors to 10 bits (TF32), where only right answers are counted."""
    before = torch.backends.cudnn.allow_tf32
    try:
        torch.backends.cudnn.allow_tf32 = True
        yield
    finally:
        torch.backends.cudnn.allow_tf32 = before


NEEDS = {
    "initial": f"{arg('initial')}, the weights before training",
    "twin": f"{arg('twin')}, the same network trained with another seed",
    "continuous": "inputs that are numbers, not tokens",
    "images": "images, (examples, channels, height, width)",
}
"""Requirements of a measure beside a network and labelled examples, in words."""


@dataclass(frozen=True, eq=False)
class Measure:
    """A number of a trained network that may go with its generalisation gap.

    Attributes
    ----------
    name : str
        Its name in tables and on the command line.
    function : callable
        Takes a :class:`Subject`, gives a number. It raises :class:`InputError` where the network has no such number.
    orientation : {1, -1}
        1 if a higher value should mean a larger gap, -1 if a smaller one.
    needs : tuple of str
        Of :data:`NEEDS`.
    cost : str
        The work, in words.
    about : str
        Its definition, and the paper.
    """

    name: str
    function: Callable[[Subject], Tensor | float]
    orientation: int
    needs: tuple[str, ...] = ()
    cost: str = ""
    about: str = ""

    def __post_init__(self) -> None:
        if self.orientation not in (1, -1):
            problem = (
                f"{arg('orientation', self.orientation)} of measure {self.name!r}: give 1 if a higher value should"
            )
            raise InputError(f"{problem} mean a larger gap, -1 otherwise.")
        unknown = [need for need in self.needs if need not in NEEDS]
        if unknown:
            raise InputError(f"{arg('needs', self.needs)} of measure {self.name!r}: use {list_names(NEEDS)}.")

    def __call__(self, subject: Subject) -> Tensor | float:
        """Compute it for a network."""
        return self.function(subject)

    def lacks(self, subject: Subject) -> tuple[str, ...]:
        """Return the needs that are not met."""
        shape = subject.sample.x.shape
        there = {
            "initial": subject.initial is not None,
            "twin": subject.twin is not None,
            "continuous": subject.continuous,
            "images": subject.continuous and len(shape) == 4,
        }
        return tuple(need for need in self.needs if not there[need])


def measure(
    name: str, orientation: int, cost: str, *needs: str, paper: str = ""
) -> Callable[[Callable[[Subject], Tensor | float]], Measure]:
    """Make a :class:`Measure` of the function below, whose docstring is the definition."""

    def make(function: Callable[[Subject], Tensor | float]) -> Measure:
        about = " ".join((function.__doc__ or "").split())
        return Measure(name, function, orientation, needs, cost, f"{about[:-1]} ({paper})." if paper else about)

    return make


@dataclass(frozen=True, eq=False)
class Weights:
    """The network's parameters as one vector, and its answers on the first so many examples with others.

    Batch-norm statistics are no parameters: they stay as they are.
    """

    subject: Subject
    most: int

    @cached_property
    def flat(self) -> Tensor:
        """The trained weights, shape (D,)."""
        return flattened(dict(self.subject.model.named_parameters()))

    @cached_property
    def examples(self) -> list[tuple[Tensor, Tensor]]:
        """Inputs and classes, a batch at a time."""
        return list(self.subject.batches(self.most))

    def answers(self, flat: Tensor, x: Tensor) -> Tensor:
        """Return the logits of the network with these weights."""
        named, start = {}, 0
        for name, parameter in self.subject.model.named_parameters():
            end = start + parameter.numel()
            named[name] = flat[start:end].view(parameter.shape)
            start = end
        return self.subject.answers(lambda x: called_with(self.subject.model, named, x), x)

    @torch.no_grad()
    def loss(self, flat: Tensor) -> Tensor:
        """Mean cross-entropy with these weights."""
        sums = [functional.cross_entropy(self.answers(flat, x), y, reduction="sum") for x, y in self.examples]
        return torch.stack(sums).sum() / self._count

    @torch.no_grad()
    def accuracy(self, flat: Tensor) -> Tensor:
        """Share of right answers with these weights."""
        right = [(self.answers(flat, x).argmax(1) == y).sum() for x, y in self.examples]
        return torch.stack(right).sum() / self._count

    def gradient(self, flat: Tensor) -> tuple[Tensor, Tensor]:
        """Return the mean cross-entropy with these weights, and its slope."""
        leaf = flat.detach().requires_grad_()
        slope, total = torch.zeros_like(flat), flat.new_zeros(())
        for x, y in self.examples:
            loss = functional.cross_entropy(self.answers(leaf, x), y, reduction="sum")
            slope += torch.autograd.grad(loss, leaf)[0]
            total += loss.detach()
        return total / self._count, slope / self._count

    @property
    def _count(self) -> int:
        return min(self.most, len(self.subject.sample))


def called_with(model: nn.Module, weights: Mapping[str, Tensor], x: Tensor) -> Any:
    """Call a network with other weights, by the names of its parameters; its own stay as they are."""
    # Of a module that stands under two names torch would restore the first only: each place of a weight counts once.
    # Weights that two modules share have a place in each.
    instead = {id(parameter): weights[name] for name, parameter in model.named_parameters()}
    places = {
        f"{name}.{key}".removeprefix("."): instead[id(parameter)]
        for name, module in model.named_modules()
        for key, parameter in module._parameters.items()
        if parameter is not None
    }
    return functional_call(model, places, (x,), tie_weights=False)


def flattened(parameters: Mapping[str, Tensor]) -> Tensor:
    """Concatenate parameters into one vector."""
    if not parameters:
        raise InputError("the model has no parameters.")
    return torch.cat([p.detach().flatten() for p in parameters.values()])


def weights_of(subject: Subject, most: int) -> Weights:
    """Return the network's weights with their batches of examples, which measures share."""
    return subject.once(("weights", most), lambda: Weights(subject, most))
