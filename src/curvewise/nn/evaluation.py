"""Trained networks in evaluation: mode, device and precision for a while, and checks of what they return."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from curvewise.errors import InputError
from curvewise.nn.devices import find_device


def place_of(model: Any) -> torch.device:
    """Return the device of a network's weights; the CPU if it has none."""
    tensors = [*model.parameters(), *model.buffers()] if isinstance(model, nn.Module) else []
    return tensors[0].device if tensors else torch.device("cpu")


def chosen_device(model: Any, device: str | torch.device | None) -> torch.device:
    """Return the device asked for, or the one that the network is on."""
    place = place_of(model) if device is None else find_device(device)
    if place.type == "meta":
        problem = "is on the 'meta' device and has no weights: load them, or make it elsewhere."
        raise InputError(problem, argument="model")
    return place


@contextlib.contextmanager
def borrowed(model: nn.Module, device: torch.device) -> Iterator[None]:
    """Put a network in evaluation mode on a device inside the block; restore both, also after an error.

    Modes are put back for each submodule. No gradient is computed inside, none is touched.
    """
    modes = [(module, module.training) for module in model.modules()]
    home = place_of(model)
    try:
        # A program that was exported has no modes.
        with contextlib.suppress(NotImplementedError):
            model.eval()
        if home != device:
            model.to(device)
        with torch.no_grad():  # not inference_mode: what a network keeps must stay usable
            yield
    finally:
        if home != device:
            model.to(home)
        for module, training in modes:
            module.training = training


@contextlib.contextmanager
def arithmetic(device: torch.device, precision: str) -> Iterator[None]:
    """Compute without gradients in a precision inside the block; only in the thread that enters."""
    kind = None if precision == "float32" else getattr(torch, precision)
    with torch.no_grad(), torch.autocast(device.type, dtype=kind, enabled=kind is not None):
        yield


def exact(device: torch.device) -> torch.autocast:
    """Return a context in which values keep their own precision, whatever the network computes in."""
    return torch.autocast(device.type, enabled=False)


def is_told(logits: Tensor) -> Tensor:
    """Tell which rows have a largest logit: no NaN, none infinite; −∞ excludes a class.

    >>> is_told(torch.tensor([[0.0, -torch.inf], [0.0, torch.inf], [0.0, torch.nan]])).tolist()
    [True, False, False]
    """
    return logits.amax(dim=1).isfinite()


def logits_of(output: Any) -> Tensor:
    """Return the logits, shape (batch, classes), in what a network returned, or raise."""
    found = output
    if isinstance(output, Mapping):
        found = output.get("logits", output)
    elif hasattr(output, "logits"):
        found = output.logits
    elif isinstance(output, tuple | list) and output:
        found = output[0]
    if not isinstance(found, Tensor):
        keys = f" with {', '.join(map(repr, output))}" if isinstance(output, Mapping) else ""
        raise InputError(
            f"returned {type(output).__name__}{keys}: it must return logits as a tensor, a tuple that begins with "
            "them, or a mapping with 'logits'. Wrap it in a module that does.",
            argument="model",
        )
    return found


def unsteady(model: nn.Module, x: Tensor, other: Tensor, logits: Tensor) -> str | None:
    """Return a warning if a network's answers depend on more than the example; else None.

    Parameters
    ----------
    model : nn.Module
        In evaluation mode.
    x, other : Tensor
        Two batches of different size that begin with the same examples.
    logits : Tensor
        Its answers to x before.
    """
    # Far above rounding, which is coarser on a GPU (TF32) and in half precision.
    share = 1e-3 if x.device.type == "cpu" else 1e-2
    if x.dtype in (torch.float16, torch.bfloat16):
        share = 5e-2
    slack = share * float(logits.float().nan_to_num(0, 0, 0).abs().max())
    with contextlib.suppress(Exception):  # some take one size of batches only
        for given, reason in (
            (x, "on chance (such as dropout that is never turned off): they change with every run"),
            (
                other,
                "on the other examples of a batch (such as batch norm without running statistics): "
                "they change with batch",
            ),
        ):
            found = logits_of(model(given.clone()))
            count = min(len(found), len(logits))
            here, there = found[:count].float(), logits[:count].float()
            if not torch.allclose(here, there, share, slack, equal_nan=True):
                return f"The network's outputs depend {reason}, so this curve does too."
    return None


def check_logits(logits: Tensor, examples: int, classes: int) -> None:
    """Refuse outputs that are not one row of at least two logits for each example."""
    shape = tuple(logits.shape)
    if shape in ((examples,), (examples, 1)):
        raise InputError(
            f"returned shape {shape} for {examples} examples, one number each: give logits of two classes. For a "
            "binary network wrap it in a module that returns torch.stack([-z, z], dim=-1) of its logit z.",
            argument="model",
        )
    if len(shape) != 2 or shape[0] != examples:
        problem = f"returned shape {shape} for {examples} examples: it must return logits, (examples, classes)."
        raise InputError(problem, argument="model")
    if classes > shape[1]:
        problem = f"holds class {classes - 1}, but the model has {shape[1]} outputs"
        raise InputError(f"{problem}: count classes from 0 on, as the model does.", argument="labels")
