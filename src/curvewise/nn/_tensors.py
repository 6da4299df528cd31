"""Tensors by name out of a file, and a network filled with them, strictly."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Collection, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from curvewise.errors import InputError, MissingDependencyError
from curvewise.nn._files import unreadable

_NESTED = ("state_dict", "model_state_dict", "model")
_PREFIXES = ("module.", "_orig_mod.")
"""What wrappers for many devices and for compiling put in front of every name."""

UNSAFE = (
    "is damaged, or would run code when read (torch.save of a whole module does), which is "
    "refused. Where you trust it, load it yourself and write its state_dict() as .safetensors, or "
    "torch.export.save(torch.export.export(model.eval(), (x,), dynamic_shapes=({0: "
    "torch.export.Dim('batch')},)), 'model.pt2')."
)


def read_tensors(path: Path, *, safetensors: bool) -> dict[str, Tensor]:
    """Read a state_dict without running any code that the file may hold.

    Parameters
    ----------
    path : Path
        File of safetensors, or of ``torch.save`` with tensors and nothing else, alone or under
        ``"state_dict"``, ``"model_state_dict"`` or ``"model"``.
    safetensors : bool
        Which of the two it is.
    """
    content = _safetensors(path) if safetensors else _torch_file(path)
    for key in _NESTED:
        if isinstance(content, Mapping) and isinstance(content.get(key), Mapping):
            content = content[key]
    if not isinstance(content, Mapping) or not content:
        raise InputError(f"{path} holds no tensors by name: save state_dict().")
    wrong = [str(k) for k, v in content.items() if not isinstance(v, Tensor)]
    if wrong:
        raise InputError(
            f"{path} holds things that are not tensors ({', '.join(wrong[:4])}): save "
            "state_dict() alone, or under 'state_dict'."
        )
    named = {str(name): tensor for name, tensor in content.items()}
    for prefix in _PREFIXES:
        if all(name.startswith(prefix) for name in named):
            named = {name.removeprefix(prefix): tensor for name, tensor in named.items()}
    return named


def fill_network(network: nn.Module, tensors: Mapping[str, Tensor], path: Path) -> None:
    """Put tensors into a network; every name and shape must fit.

    Parameters
    ----------
    network : nn.Module
        Changed in place.
    tensors : dict of str to Tensor
        Its state_dict; counters of batches seen may be missing.
    path : Path
        Where they are from, for messages.
    """
    wanted = network.state_dict()
    problems = list(misfits(tensors, wanted))
    if problems:
        raise InputError(
            f"{path} does not fit the network: {'; '.join(problems)}. Use the factory and options "
            "it was trained with, and data of the same shape and classes."
        )
    network.load_state_dict({**wanted, **tensors})


def misfits(
    given: Mapping[str, Tensor], wanted: Mapping[str, Tensor], spared: Collection[str] = ()
) -> Iterator[str]:
    """Say what does not fit: names that either side lacks, and shapes.

    Counters of batches seen, and the names ``spared``, may be missing among those given.
    """
    counters = {name for name in wanted if name.endswith(".num_batches_tracked")}
    needed = [name for name in wanted if name not in counters and name not in spared]
    missing = [name for name in needed if name not in given]
    unknown = [name for name in given if name not in wanted]
    for names, others, what, where in (
        (missing, unknown, "missing in the file", "the file"),
        (unknown, missing, "not in the network", "the network"),
    ):
        if names:
            close = get_close_matches(names[0], others, n=1, cutoff=0.5)
            hint = f" ({where} has {close[0]} instead)" if close else ""
            yield f"{len(names)} {what}, such as {', '.join(names[:4])}{hint}"
    shapes = [
        f"{name} {tuple(given[name].shape)} in the file and {tuple(tensor.shape)} in the network"
        for name, tensor in wanted.items()
        if name in given and tensor.shape != given[name].shape
    ]
    if shapes:
        yield f"{len(shapes)} of another shape, such as {shapes[0]}"


def _safetensors(path: Path) -> Any:
    try:
        from safetensors import SafetensorError
        from safetensors.torch import load_file
    except ImportError as error:
        raise MissingDependencyError(
            "Reading .safetensors needs safetensors, which is not installed: pip install "
            '"curvewise[torch]".'
        ) from error
    try:
        return load_file(path)
    except (SafetensorError, OSError, ValueError, TypeError, MemoryError, OverflowError) as error:
        raise unreadable(path, error) from error


def _torch_file(path: Path) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of other protocols: refused if so
            return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise InputError(f"{path} {UNSAFE}") from error
    except Exception as error:  # whatever a damaged file leads to inside torch
        raise unreadable(path, error) from error
