"""Which layer of a network gives its scores: told by their values, not by their names."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from curvewise.nn._pooling import are_probabilities, as_probabilities, pooled

_CONVOLUTIONS = ("Conv1d", "Conv2d", "Conv3d")
_LAST = 8
"""How many of the linear layers called last are looked at: a network may have several heads."""


@dataclass(frozen=True, eq=False)
class LinearLayer:
    """One call of a linear layer, or of a convolution of one pixel.

    Attributes
    ----------
    name : str
        Of the submodule.
    module : Module
        The layer.
    given, gave : Tensor, optional
        What went in and came out.
    ready, squashed : bool
        Whether the network's scores are probabilities: of all classes together, or of each alone.
    """

    name: str
    module: nn.Module
    given: Tensor | None
    gave: Tensor | None
    ready: bool = False
    squashed: bool = False

    def probabilities(self, scores: Tensor) -> Tensor:
        """Of the network's own classes, out of its scores."""
        found: Tensor = as_probabilities(scores, ready=self.ready, squashed=self.squashed)
        return found

    @property
    def last(self) -> bool:
        """Whether features are the last axis of what it is given."""
        return not _is_convolution(self.module)


def is_linear(module: nn.Module) -> bool:
    """Whether a module is a linear layer, also as a convolution of one pixel or exported.

    >>> is_linear(nn.Conv2d(4, 2, 1)), is_linear(nn.Conv2d(4, 2, 3))
    (True, False)
    """
    weight = getattr(module, "weight", None)
    if not isinstance(weight, Tensor):
        return False
    if _is_convolution(module):
        return weight.ndim > 2 and all(side == 1 for side in weight.shape[2:])
    return isinstance(module, nn.Linear) or _kind(module) == "Linear"


def find_classifier(
    model: nn.Module, run: Callable[[], Tensor]
) -> tuple[LinearLayer | None, LinearLayer | None, Tensor]:
    """Watch a forward pass: the linear layer that gives the scores, the last one, and the output.

    Parameters
    ----------
    model : Module
        Hooks are put on its linear layers, and taken off again.
    run : callable
        Runs it over a few examples and gives its main output.

    Returns
    -------
    tuple
        The last of the linear layers called whose scores the output follows, None if it follows
        none; the linear layer called last, None if there is none; and the output.

    Examples
    --------
    >>> model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2), nn.Softmax(dim=1))
    >>> head, last, output = find_classifier(model, lambda: model(torch.eye(3)))
    >>> head.name, head.ready, tuple(output.shape)
    ('2', True, (3, 2))
    """
    seen: deque[LinearLayer] = deque(maxlen=_LAST)

    def watch(name: str) -> Callable[..., None]:
        def note(module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
            given = any(isinstance(v, Tensor) for v in (*args, *kwargs.values()))
            if given and isinstance(output, Tensor):
                seen.append(LinearLayer(name, module, None, output))

        return note

    with contextlib.ExitStack() as hooks:
        for name, module in model.named_modules():
            if is_linear(module):
                handle = module.register_forward_hook(watch(name), with_kwargs=True)
                hooks.callback(handle.remove)
        output = run()
    heads = (classifier(layer, output) for layer in reversed(seen))  # the last one first
    head = next((head for head in heads if head is not None), None)
    return head, seen[-1] if seen else None, output


def classifier(layer: LinearLayer, output: Tensor) -> LinearLayer | None:
    """The layer as a classifier, if the network's output follows the order of its scores.

    Temperatures, softmax, means over places and the like keep that order. None where the output
    is something else: a network whose classifier was taken off.
    """
    assert layer.gave is not None
    scores, gave = output.float(), layer.gave.float()
    head = replace(layer, given=None, gave=None)
    if scores.ndim > 2:
        return head if scores.shape == gave.shape and torch.allclose(scores, gave) else None
    scores = scores if scores.ndim == 2 else scores[:, None]
    for tried in (gave, gave.relu()):
        logits = pooled(tried, "mean", last=layer.last)
        if logits.shape == scores.shape and _follows(scores, logits):
            same = torch.allclose(scores, logits, rtol=1e-3, atol=1e-5)
            if not same and torch.allclose(scores, logits.sigmoid(), rtol=1e-3, atol=1e-5):
                return replace(head, squashed=True)
            return replace(head, ready=not same and are_probabilities(scores))
    return None


def _follows(scores: Tensor, logits: Tensor) -> bool:
    """Whether each row of scores rises with its logits."""
    if scores.shape[1] == 1:
        return True
    ordered = scores.gather(1, logits.argsort(dim=1))
    slack = 1e-3 * (ordered.amax(dim=1) - ordered.amin(dim=1)).clamp(min=1e-12)
    return bool((ordered.diff(dim=1) >= -slack[:, None]).all())


def _kind(module: nn.Module) -> str:
    """The class of a layer, which exported programs only tell."""
    tell = getattr(module, "type_name", None)
    return str(tell()).rpartition(".")[2] if callable(tell) else type(module).__name__


def _is_convolution(module: nn.Module) -> bool:
    return isinstance(module, nn.Conv1d | nn.Conv2d | nn.Conv3d) or _kind(module) in _CONVOLUTIONS
