"""Features out of TorchScript, whose layers take no hooks: its operations are watched instead."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from curvewise.errors import InputError
from curvewise.nn._feature_heads import LinearLayer, classifier
from curvewise.nn._feature_reader import OUTPUT, Found, Given, as_rows
from curvewise.nn._feature_torch import TorchReader
from curvewise.nn._pooling import channels_at_end, places_of, pooled

_DATA = {"aten::addmm": 1, "aten::mm": 0, "aten::linear": 0}
"""Which argument of an operation is what a linear layer is given."""


class ScriptReader(TorchReader):
    """A network in TorchScript or an exported program: its last linear layer, or its output."""

    def __init__(self, model: nn.Module, *how: Any, **options: Any) -> None:
        super().__init__(model, *how, **options)
        self._fixed: int | None = getattr(model, "_batch", None)
        self.most = self._fixed
        self._calls = 0

    def start(self, given: Given) -> None:
        """Find the last linear layer among the operations."""
        if self.taken.layer not in (None, OUTPUT):
            raise InputError(
                f"layer={self.taken.layer!r}: the layers inside this file cannot be reached. Give "
                "an exported program (.pt2) and a layer's name, or weights with a factory."
            )
        few = given.part(0, min(2, len(given)))
        with _Watched(self._fixed or len(few)) as seen:
            output = self._output(few)
        if seen.given is not None and seen.gave is not None:
            kind: nn.Module = nn.Conv2d(1, 1, 1) if seen.given.ndim == 4 else nn.Linear(1, 1)
            layer = LinearLayer("last", kind, seen.given[: len(few)], seen.gave[: len(few)])
            self._head = classifier(layer, output)
            self._calls = seen.calls
        if self.taken.layer is None:
            said = "what its last linear layer is given"
            if self._head is None:
                said = "its output, since no linear classifier was found at its end"
            self.notes.append(f"features: {said}")

    def read(self, given: Given) -> Found:
        """Run a batch with its last linear layer watched."""
        inside = self._head is not None and self.taken.layer is None
        with _Watched(self._fixed or len(given), self._calls) as seen:
            output = self._output(given)
        value, name = (seen.given, "input of the last linear layer") if inside else (output, OUTPUT)
        if value is None:
            raise InputError("the network calls other layers for this batch than for the first.")
        value = value[: len(given)]  # a fixed batch was filled up
        last = channels_at_end(None, value)
        rows = {name: as_rows(pooled(value, self.taken.pool, last=last))}
        places = {}
        if self.taken.pool == "tokens":
            places[name] = places_of(value, last=last, mask=None)
        own = None
        if self._head is not None and output.ndim == 2:
            own = as_rows(self._head.probabilities(output))
        return Found(rows, own, places)


class _Watched(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Keeps what the last linear operation was given, or the one of a number."""

    def __init__(self, examples: int, number: int | None = None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.examples, self.number, self.calls = examples, number, 0
        self.given: Tensor | None = None
        self.gave: Tensor | None = None

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        output = func(*args, **(kwargs or {}))
        given = _linear_input(func, args)
        if given is not None and len(given) == self.examples:
            self.calls += 1
            if self.number in (None, self.calls):
                self.given, self.gave = given, output
        return output


def _linear_input(func: Any, args: tuple[Any, ...]) -> Tensor | None:
    name = func._schema.name
    if name in _DATA:
        found: Tensor = args[_DATA[name]]
        return found
    if name in ("aten::convolution", "aten::_convolution"):
        pixel = all(side == 1 for side in args[1].shape[2:])
        return args[0] if pixel else None
    return None


def is_script(model: nn.Module) -> bool:
    """Whether a network, or one inside of it, is TorchScript."""
    return any(isinstance(m, torch.jit.ScriptModule) for m in model.modules())
