"""Where in a network a perturbation is applied: a submodule's output, found by a forward pass."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor, nn
from torch.nn.modules import activation

from curvewise.errors import InputError
from curvewise.io._table import brief, listed, suggest
from curvewise.nn._guarding import logits_of

_NO_ACTIVATION = ("MultiheadAttention", "Softmax", "Softmax2d", "Softmin", "LogSoftmax")


@dataclass(frozen=True, eq=False)
class Site:
    """One call of one submodule.

    Attributes
    ----------
    name : str
        How it is shown.
    module : Module
        Its output is perturbed.
    call : int
        In which of its calls within a forward pass, from 0 on.
    """

    name: str
    module: nn.Module
    call: int = 0


@dataclass(frozen=True, eq=False)
class Probed:
    """What a forward pass showed.

    Attributes
    ----------
    logits : Tensor
        What came out.
    site : Site or None
        Where to perturb; None at the input.
    largest : int
        Bytes of the largest output of a submodule for one example.
    """

    logits: Tensor
    site: Site | None
    largest: int


def probe(model: nn.Module, layer: str | int | None, x: Tensor) -> Probed:
    """Call a network once, and find a layer in it.

    Raises
    ------
    InputError
        The network cannot be called, or there is no such layer, or it is called several times,
        never, or gives something else than one tensor for a batch.
    """
    named = _named(model, layer) if isinstance(layer, str) else None
    calls: list[tuple[nn.Module, Any]] = []
    largest = 0

    def seen(module: nn.Module, given: Any, output: Any) -> None:
        nonlocal largest
        if isinstance(output, Tensor):
            largest = max(largest, output.numel() * output.element_size() // len(x))
        if module is named or (named is None and is_activation(module)):
            calls.append((module, output))

    with _watched(model, seen):
        logits = logits_of(_called(model, x))
    if layer is None:
        return Probed(logits, None, largest)
    if named is not None:
        if len(calls) != 1:
            raise InputError(_called_wrongly(str(layer), len(calls)))
        number, name = 0, str(layer)
    else:
        number, name = _numbered(layer, calls, model)
    module, output = calls[number]
    _check_output(name, output, len(x))
    return Probed(logits, Site(name, module, _earlier(calls, number)), largest)


def is_activation(module: nn.Module) -> bool:
    """Whether a module is an activation function, of torch or of transformers.

    >>> is_activation(nn.ReLU()), is_activation(nn.Linear(1, 1))
    (True, False)
    """
    kind = type(module)
    home = kind.__module__
    if home == activation.__name__:
        return kind.__name__ not in _NO_ACTIVATION
    return home.endswith(".activations")


def _named(model: nn.Module, layer: str) -> nn.Module:
    named = model.named_modules(remove_duplicate=False)
    modules: dict[str, nn.Module] = {name: module for name, module in named if name}
    if layer not in modules:
        some = f" Some are {listed(modules, 8)}." if modules else " It has no submodules."
        raise InputError(
            f"layer={brief(layer)}: the model has no submodule of that name."
            f"{suggest(layer, modules) or some}"
        )
    return modules[layer]


def _numbered(
    layer: str | int, calls: list[tuple[nn.Module, Any]], model: nn.Module
) -> tuple[int, str]:
    """Position among the calls of activation modules, and a name."""
    if isinstance(layer, bool) or not isinstance(layer, int | np.integer) or layer < 1:
        raise InputError(
            f"layer={layer!r}: give a submodule's name, or a number from 1 (the output of the "
            "first activation module)."
        )
    if layer > len(calls):
        raise InputError(
            f"layer={layer}: a forward pass calls {len(calls)} activation modules (such as "
            "torch.nn.ReLU; torch.relu does not count). Give a submodule's name instead."
        )
    module = calls[layer - 1][0]
    name = next(name for name, other in model.named_modules() if other is module)
    earlier = _earlier(calls, layer - 1)
    several = sum(other is module for other, _ in calls) > 1
    return int(layer) - 1, f"{name} (call {earlier + 1})" if several else name


def _earlier(calls: list[tuple[nn.Module, Any]], number: int) -> int:
    """How often the same module was called before."""
    return sum(other is calls[number][0] for other, _ in calls[:number])


def _called_wrongly(layer: str, times: int) -> str:
    if times:
        return (
            f"layer={layer!r} is called {times} times in a forward pass, so that it is not clear "
            "which output to perturb: name a submodule that is called once, or give the number of "
            "an activation."
        )
    return (
        f"layer={layer!r} is never called in a forward pass: name one that is (a container whose "
        "parts are called one by one is not)."
    )


def _check_output(name: str, output: Any, examples: int) -> None:
    if not isinstance(output, Tensor):
        raise InputError(
            f"layer={name!r} returns {type(output).__name__}: name a submodule that returns one "
            "tensor."
        )
    if output.ndim < 2 or len(output) != examples or not output.is_floating_point():
        raise InputError(
            f"layer={name!r} returns {output.dtype} of shape {tuple(output.shape)} for {examples} "
            "examples: name a submodule that returns floating point, (examples, ...)."
        )


def _called(model: nn.Module, x: Tensor) -> Any:
    try:
        return model(x)
    except (RuntimeError, TypeError, ValueError, IndexError, AssertionError) as error:
        raise InputError(
            f"model cannot be called with a batch of {x.dtype} of shape {tuple(x.shape)}: {error}"
        ) from error


@contextlib.contextmanager
def _watched(model: nn.Module, seen: Callable[[nn.Module, Any, Any], None]) -> Iterator[None]:
    """Have a function called with every output of every submodule."""
    handles = []
    try:
        for module in model.modules():
            with contextlib.suppress(RuntimeError):  # what was scripted may take no hooks
                handles.append(module.register_forward_hook(seen))
        yield
    finally:
        for handle in handles:
            handle.remove()
