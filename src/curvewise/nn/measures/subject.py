"""The network that is measured, the examples it is measured on, and what measures share."""

from __future__ import annotations

import copy
import zlib
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from curvewise.errors import InputError
from curvewise.nn._draw import Draw
from curvewise.nn._guarding import check_logits, logits_of
from curvewise.nn.sample import Sample

Made = TypeVar("Made")


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
        Where representations are taken.
    initial : dict of Tensor, optional
        Weights before training, by name of the parameter.
    twin : nn.Module, optional
        Another network, also a copy.
    notes : list of str
        What measures have to say to the reader.
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
        """Where everything is."""
        return self.sample.y.device

    @property
    def continuous(self) -> bool:
        """Whether inputs are numbers (or images) that can be moved a little, not tokens."""
        return self.sample.x.is_floating_point() or self.sample.x.dtype == torch.uint8

    def once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """Make something once and keep it, or why it cannot be made, so that measures share it."""
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
        """Inputs as the network takes them and their classes, of all or the first so many."""
        end = len(self.sample) if most is None else min(most, len(self.sample))
        for first in range(0, end, self.batch):
            here = slice(first, min(first + self.batch, end))
            x = self.sample.given(self.sample.x[here])
            yield x.float() if x.is_floating_point() else x, self.sample.y[here]

    def noise(self, purpose: str, draw: int, count: int) -> Tensor:
        """Normal numbers, a function of the seed, the purpose and the draw alone."""
        seed = torch.tensor(self.seed ^ zlib.crc32(purpose.encode()), device=self.device)
        drawn = Draw(seed, torch.tensor([draw], device=self.device))
        return drawn.normal(torch.Size((1, count)))[0]

    def answers(self, model: Callable[[Tensor], Any], x: Tensor) -> Tensor:
        """The logits that a network gives for inputs, or an error that says why there are none."""
        logits = logits_of(model(x))
        check_logits(logits, len(x), self.once("classes", lambda: self.sample.classes))
        return logits

    @property
    def logits(self) -> Tensor:
        """What the network gives for every example, shape (examples, classes)."""
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
    """Outputs for all examples, or an error that says why they are no scores of classes."""
    with torch.no_grad():
        logits = torch.cat([subject.answers(model, x) for x, _ in subject.batches()])
    if not torch.isfinite(logits).all():
        raise InputError("the model's outputs are not all finite: its weights may have diverged.")
    return logits


def copied(model: nn.Module, device: torch.device | str | None) -> nn.Module:
    """A copy that can be worked with: eval mode, float32, no gradients asked for.

    Weights that are computed in forward passes (weight norm) are left as they last were; they are
    computed again in the next pass.
    """
    model = getattr(model, "_orig_mod", model)  # what torch.compile wraps
    computed = {
        id(value): value.detach().clone()
        for module in model.modules()
        for value in vars(module).values()
        if isinstance(value, Tensor) and not value.is_leaf
    }
    twin = copy.deepcopy(model, computed).eval().float().requires_grad_(False)
    return twin if device is None else twin.to(device)


@contextmanager
def steady() -> Iterator[None]:
    """The same kernels each time, and no rounding of float32, inside the block."""
    cudnn, matmul = torch.backends.cudnn, torch.backends.cuda.matmul
    before = (cudnn.deterministic, cudnn.benchmark, cudnn.allow_tf32, matmul.allow_tf32)
    try:
        cudnn.deterministic, cudnn.benchmark = True, False
        cudnn.allow_tf32 = matmul.allow_tf32 = False
        yield
    finally:
        cudnn.deterministic, cudnn.benchmark, cudnn.allow_tf32, matmul.allow_tf32 = before


@contextmanager
def rounding() -> Iterator[None]:
    """Let a GPU's convolutions round factors to 10 bits, where only answers are counted."""
    before = torch.backends.cudnn.allow_tf32
    try:
        torch.backends.cudnn.allow_tf32 = True
        yield
    finally:
        torch.backends.cudnn.allow_tf32 = before
