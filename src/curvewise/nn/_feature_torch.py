"""Features out of networks of torch, by hooks that are gone afterwards."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from curvewise.errors import InputError
from curvewise.io._table import brief, listed, suggest
from curvewise.nn._feature_digest import network_digest
from curvewise.nn._feature_heads import LinearLayer, find_classifier
from curvewise.nn._feature_reader import OUTPUT, Found, Given, Matrix, Taken, as_rows
from curvewise.nn._files import file_digest
from curvewise.nn._guarding import arithmetic, borrowed
from curvewise.nn._own_preprocessing import Prepare
from curvewise.nn._pooling import channels_at_end, main_tensor, places_of, pooled

Call = Callable[[nn.Module, Tensor, Tensor | None], Any]
"""How a network is given its inputs and the mask of its tokens."""


def call_plain(model: nn.Module, x: Tensor, mask: Tensor | None) -> Any:
    """Give a network its inputs and nothing else."""
    return model(x)


class TorchReader:
    """A network of torch.

    Parameters
    ----------
    model : nn.Module
        Left as it is: its mode, device and hooks are put back.
    taken : Taken
        Which layer, and how it becomes rows.
    device : device
        Where it runs.
    precision : {"float32", "bfloat16", "float16"}
        What it computes in.
    call : callable
        How it is given its inputs.
    preprocessing : Preprocessing or callable, optional
        Its own.
    file : Path, optional
        Where all of it is from, code and weights.
    """

    def __init__(
        self,
        model: nn.Module,
        taken: Taken,
        device: torch.device,
        precision: str,
        call: Call = call_plain,
        preprocessing: Prepare | None = None,
        file: Path | None = None,
    ) -> None:
        self.model, self.taken, self.device, self.precision = model, taken, device, precision
        self.call, self.preprocessing, self.file = call, preprocessing, file
        self.notes: list[str] = []
        self.parameters: int | None = sum(p.numel() for p in model.parameters()) or None
        self.sides: tuple[int, int] | None = None
        self.most: int | None = None
        kinds = [p.dtype for p in model.parameters() if p.is_floating_point()]
        self._kind = kinds[0] if kinds else torch.float32
        self._head: LinearLayer | None = None
        self._layer: tuple[str, nn.Module] | None = None
        if taken.layer not in (None, "all", OUTPUT):
            self._layer = str(taken.layer), self._named(str(taken.layer))

    def running(self) -> AbstractContextManager[None]:
        """Borrow the network."""
        return borrowed(self.model, self.device)

    def start(self, given: Given) -> None:
        """Find the classifier, where no layer was asked for."""
        few = given.part(0, min(2, len(given)))
        if self.taken.layer == OUTPUT or self._layer is not None:
            return
        self._head, last, output = find_classifier(self.model, lambda: self._output(few))
        if self.taken.layer is None:
            self.notes.append(self._said(last, output))

    def _said(self, last: LinearLayer | None, output: Tensor) -> str:
        if self._head is not None:
            return f"features: what its last linear layer, {self._head.name!r}, is given"
        ends = "it has no linear layer"
        if last is not None:
            ends = f"its last linear layer, {last.name!r}, gives no scores"
        shape = f"of shape {tuple(output.shape[1:])}, " if output.ndim > 2 else ""
        return (
            f"features: the network's output, {shape}since it has no linear classifier at its end "
            f"({ends}); layer= names another place"
        )

    def read(self, given: Given) -> Found:
        """Run a batch, with what the hooks see pooled at once."""
        kept = _Kept(self.taken.pool, given.mask)
        with self._hooks(len(given), kept):
            output = self._output(given)
        own = None
        if self._head is not None and output.ndim <= 2:
            scores = output if output.ndim == 2 else output[:, None]
            own = as_rows(self._head.probabilities(scores))
        if self._layer is not None and not kept.rows:
            raise InputError(
                f"layer={self._layer[0]!r} is never called in a forward pass: name one that is (a "
                "container whose parts are called one by one is not)."
            )
        if not kept.rows:
            kept(OUTPUT, output, channels_at_end(None, output))
        return Found(kept.rows, own, kept.places)

    def gflops(self, given: Given) -> float | None:
        """Counted by torch while a batch runs."""
        with FlopCounterMode(display=False) as counter:
            self._output(given)
        return float(counter.get_total_flops()) / len(given) / 1e9

    def digest(self) -> str | None:
        """A hash of its file, or of weights, settings and code."""
        return network_digest(self.model) if self.file is None else file_digest(self.file)

    def _output(self, given: Given) -> Tensor:
        x = given.x.to(self.device, non_blocking=True)
        if x.is_floating_point():
            x = x.to(self._kind)
        mask = None if given.mask is None else given.mask.to(self.device)
        try:
            with arithmetic(self.device, self.precision):
                output = self.call(self.model, x, mask)
        except torch.OutOfMemoryError:
            raise
        except (RuntimeError, TypeError, ValueError, IndexError, AssertionError) as error:
            if "can't allocate memory" in str(error):
                raise torch.OutOfMemoryError(str(error)) from error
            said = str(error).strip().split("\n")[-1][:300]
            raise InputError(
                f"the network cannot be called with a batch of {x.dtype} of shape "
                f"{tuple(x.shape)}: {said}"
            ) from error
        found = main_tensor(output, len(given))
        if found is None:
            raise InputError(
                f"the network returned {type(output).__name__} without a tensor that has a row "
                f"for each of {len(given)} examples: wrap it in a module that does."
            )
        return found

    def _hooks(self, examples: int, keep: _Kept) -> AbstractContextManager[None]:
        if self.taken.layer == "all":
            return _every_layer(self.model, examples, keep)
        if self._layer is not None:
            name, module = self._layer
            often: list[str] = []

            def after(module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
                keep(*_checked(name, module, output, examples))
                often.append(f"layer {name!r} is called more than once: the last call was taken")
                if len(often) == 2 and often[0] not in self.notes:
                    self.notes.append(often[0])

            return _hooked(module, after)
        if self._head is not None:
            head = self._head

            def before(module: nn.Module, args: Any, kwargs: Any) -> None:
                value = next(v for v in (*args, *kwargs.values()) if isinstance(v, Tensor))
                keep(f"input of {head.name}", value, head.last)

            return _hooked_before(head.module, before)
        return contextlib.nullcontext()

    def _named(self, layer: str) -> nn.Module:
        every = self.model.named_modules(remove_duplicate=False)
        modules: dict[str, nn.Module] = {name: module for name, module in every if name}
        if layer not in modules:
            some = f" Some are {listed(modules, 8)}." if modules else " It has no submodules."
            raise InputError(
                f"layer={brief(layer)}: the network has no submodule of that name."
                f"{suggest(layer, modules) or some}"
            )
        return modules[layer]


class _Kept:
    """Rows by layer, pooled as soon as they are seen."""

    def __init__(self, pool: str, mask: Tensor | None) -> None:
        self.pool, self.mask = pool, mask
        self.rows: dict[str, Matrix] = {}
        self.places: dict[str, NDArray[np.int64]] = {}

    def __call__(self, name: str, value: Tensor, last: bool) -> None:
        """Keep what a layer gave."""
        mask = None if self.mask is None else self.mask.to(value.device)
        self.rows[name] = as_rows(pooled(value, self.pool, last=last, mask=mask))
        if self.pool == "tokens":
            self.places[name] = places_of(value, last=last, mask=mask)

    def rename(self, old: str, new: str) -> None:
        """Keep the same under another name."""
        for kept in (self.rows, self.places):
            if old in kept:
                kept[new] = kept.pop(old)  # type: ignore[assignment]


@contextlib.contextmanager
def _hooked(module: nn.Module, hook: Callable[..., None]) -> Iterator[None]:
    handle = module.register_forward_hook(hook, with_kwargs=True)
    try:
        yield
    finally:
        handle.remove()


@contextlib.contextmanager
def _hooked_before(module: nn.Module, hook: Callable[..., None]) -> Iterator[None]:
    handle = module.register_forward_pre_hook(hook, with_kwargs=True)
    try:
        yield
    finally:
        handle.remove()


def _checked(name: str, module: nn.Module, output: Any, examples: int) -> tuple[str, Tensor, bool]:
    value = main_tensor(output, examples)
    if value is None:
        raise InputError(
            f"layer={name!r} gives {type(output).__name__} without a tensor of floating point "
            f"that has a row for each of {examples} examples: name another layer."
        )
    return name, value, channels_at_end(module, value)


@contextlib.contextmanager
def _every_layer(model: nn.Module, examples: int, kept: _Kept) -> Iterator[None]:
    """Pool every submodule's output as it is given.

    What passes an output on unchanged counts once: under the name of the outermost container.
    """
    calls: dict[str, int] = {}
    latest: list[tuple[str, Tensor, int]] = []

    def watch(name: str) -> Callable[..., None]:
        def note(module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
            value = main_tensor(output, examples)
            if value is None:
                return
            passed = latest and latest[0][1] is value and latest[0][2] == value._version
            if passed and not any(True for _ in module.children()):
                return
            calls[name] = calls.get(name, 0) + 1
            shown = name if calls[name] == 1 else f"{name} (call {calls[name]})"
            if passed:
                kept.rename(latest[0][0], shown)
            else:
                kept(shown, value, channels_at_end(module, value))
            latest[:] = [(shown, value, value._version)]

        return note

    with contextlib.ExitStack() as hooks:
        for name, module in model.named_modules():
            if name:
                hooks.enter_context(_hooked(module, watch(name)))
        yield
