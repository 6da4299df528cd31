"""All weights of a network as one vector, and what the network does with other ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor
from torch.func import functional_call
from torch.nn import functional

from curvewise.errors import InputError
from curvewise.nn.measures.subject import Subject


@dataclass(frozen=True, eq=False)
class Weights:
    """The network's parameters end to end, and its answers on the first so many examples.

    Batch-norm statistics are no parameters: they stay as they are.
    """

    subject: Subject
    most: int

    @cached_property
    def flat(self) -> Tensor:
        """The weights as they are, shape (D,)."""
        return flattened(dict(self.subject.model.named_parameters()))

    @cached_property
    def examples(self) -> list[tuple[Tensor, Tensor]]:
        """Inputs and classes, a batch at a time."""
        return list(self.subject.batches(self.most))

    def answers(self, flat: Tensor, x: Tensor) -> Tensor:
        """What the network gives with these weights."""
        named, start = {}, 0
        for name, parameter in self.subject.model.named_parameters():
            end = start + parameter.numel()
            named[name] = flat[start:end].view(parameter.shape)
            start = end
        return self.subject.answers(lambda x: functional_call(self.subject.model, named, (x,)), x)

    @torch.no_grad()
    def loss(self, flat: Tensor) -> Tensor:
        """Mean cross-entropy with these weights."""
        sums = [
            functional.cross_entropy(self.answers(flat, x), y, reduction="sum")
            for x, y in self.examples
        ]
        return torch.stack(sums).sum() / self._count

    @torch.no_grad()
    def accuracy(self, flat: Tensor) -> Tensor:
        """Share of right answers with these weights."""
        right = [(self.answers(flat, x).argmax(1) == y).sum() for x, y in self.examples]
        return torch.stack(right).sum() / self._count

    def gradient(self, flat: Tensor) -> tuple[Tensor, Tensor]:
        """Mean cross-entropy with these weights, and its slope."""
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


def flattened(parameters: Mapping[str, Tensor]) -> Tensor:
    """Parameters end to end."""
    if not parameters:
        raise InputError("the model has no parameters.")
    return torch.cat([p.detach().flatten() for p in parameters.values()])


def weights_of(subject: Subject, most: int) -> Weights:
    """The network's weights, with their batches of examples, kept for the next measure."""
    return subject.once(("weights", most), lambda: Weights(subject, most))
