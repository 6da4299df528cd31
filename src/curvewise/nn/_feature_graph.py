"""Where the features are in a graph of operations: what enters the layer that gives the scores."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

Tensor = TypeVar("Tensor", bound=Hashable)


@dataclass(frozen=True)
class Step(Generic[Tensor]):
    """One operation.

    Attributes
    ----------
    role : {"linear", "softmax", "sigmoid", "pool", "pass", "other"}
        A linear layer (a convolution of one pixel included); what turns scores into
        probabilities, of all classes together or of each alone; a mean over places;
        what keeps the order of scores or only moves them.
    inputs : tuple
        Tensors it is given, constants left out.
    """

    role: str
    inputs: tuple[Tensor, ...]


@dataclass(frozen=True)
class Head(Generic[Tensor]):
    """The last layer of a classifier.

    Attributes
    ----------
    features, logits : hashable
        The tensors that it is given and that it gives.
    soft, squashed : bool
        Whether the network turns its logits into probabilities: of all classes together, or of
        each alone.
    """

    features: Tensor
    logits: Tensor
    soft: bool
    squashed: bool = False


def find_head(steps: Mapping[Tensor, Step[Tensor]], output: Tensor) -> Head[Tensor] | None:
    """Go back from the output to the linear layer that the scores come from.

    A mean over places is gone through only where probabilities come after it: a network without
    a classifier ends with one, too.

    Parameters
    ----------
    steps : mapping
        By each tensor that is computed, the operation it comes from.
    output : hashable
        The tensor that the network gives.

    Examples
    --------
    >>> steps = {"p": Step("softmax", ("s",)), "s": Step("linear", ("f",))}
    >>> find_head(steps, "p")
    Head(features='f', logits='s', soft=True, squashed=False)
    """
    soft, squashed, at = False, False, output
    while at in steps:
        step = steps[at]
        if len(step.inputs) != 1:
            return None
        if step.role == "linear":
            return Head(step.inputs[0], at, soft, squashed)
        if step.role == "other" or (step.role == "pool" and not soft):
            return None
        soft, squashed = soft or step.role == "softmax", squashed or step.role == "sigmoid"
        at = step.inputs[0]
    return None
