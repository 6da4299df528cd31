"""Initial weights out of a file."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from curvewise.errors import InputError, MissingDependencyError
from curvewise.nn._foreign import HuggingFace

_SUFFIXES = (".safetensors", ".pt", ".pth", ".th")
_NESTED = ("state_dict", "model")


def load_weights(model: nn.Module, path: Path, head: str) -> tuple[str, ...]:
    """Fill a network with a file's weights; return what a reader should know.

    A head of another shape than the file's, or that the file lacks, keeps the weights it was
    drawn with. Everything else must fit.

    Parameters
    ----------
    model : nn.Module
        Changed in place.
    path : Path
        ``.safetensors``, or ``.pt``, ``.pth``, ``.th`` with tensors and nothing else, alone or
        under ``"state_dict"``; a ``module.`` in front of every name is taken off.
    head : str
        Name of the last layer.
    """
    if isinstance(model, HuggingFace):  # its files do not know of the wrapper
        model, head = model.network, head.removeprefix("network.")
    given = _read(path)
    wanted = model.state_dict()
    # a head that does not fit is left as drawn, with all of its tensors
    ours = [name for name in wanted if name.startswith(f"{head}.")]
    redrawn = any(n not in given or given[n].shape != wanted[n].shape for n in ours)
    if redrawn:
        given = {n: t for n, t in given.items() if not n.startswith(f"{head}.")}
    skipped = {n for n in wanted if n.endswith(".num_batches_tracked")}
    skipped |= set(ours) if redrawn else set()
    _check_names(path, given, wanted, skipped)
    model.load_state_dict({**wanted, **given})
    if not redrawn:
        return ()
    return (f"The last layer ({head}) does not fit the one in {path.name}: it was drawn anew.",)


def _check_names(
    path: Path, given: Mapping[str, Tensor], wanted: Mapping[str, Tensor], skipped: set[str]
) -> None:
    missing = [n for n in wanted if n not in given and n not in skipped]
    unknown = [n for n in given if n not in wanted]
    other = [
        f"{n} {tuple(t.shape)} instead of {tuple(wanted[n].shape)}"
        for n, t in given.items()
        if n in wanted and t.shape != wanted[n].shape
    ]
    problems = [
        f"{len(names)} {what}, such as {', '.join(names[:4])}"
        for names, what in (
            (missing, "missing in the file"),
            (unknown, "not in the network"),
            (other, "of another shape"),
        )
        if names
    ]
    if problems:
        raise InputError(
            f"weights={str(path)!r} do not fit the network: {'; '.join(problems)}. Use the "
            "architecture and options they were trained with, or rename the tensors."
        )


def _read(path: Path) -> dict[str, Tensor]:
    if path.suffix not in _SUFFIXES:
        raise InputError(
            f"weights={str(path)!r}: files that end in {', '.join(_SUFFIXES)} can be read."
        )
    if not path.is_file():
        raise InputError(f"weights={str(path)!r}: there is no such file. Check the path.")
    content = _safetensors(path) if path.suffix == ".safetensors" else _torch_file(path)
    for key in _NESTED:
        if isinstance(content, Mapping) and isinstance(content.get(key), Mapping):
            content = content[key]
    if not isinstance(content, Mapping) or not content:
        raise InputError(f"weights={str(path)!r} holds no tensors by name: save state_dict().")
    wrong = [str(k) for k, v in content.items() if not isinstance(v, Tensor)]
    if wrong:
        raise InputError(
            f"weights={str(path)!r} holds things that are not tensors ({', '.join(wrong[:4])}): "
            "save state_dict() alone, or under 'state_dict'."
        )
    if all(str(name).startswith("module.") for name in content):
        return {str(name).removeprefix("module."): t for name, t in content.items()}
    return {str(name): t for name, t in content.items()}


def _safetensors(path: Path) -> Any:
    try:
        from safetensors import SafetensorError
        from safetensors.torch import load_file
    except ImportError as error:
        raise MissingDependencyError(
            "Reading .safetensors needs safetensors: pip install 'curvewise[torch]'."
        ) from error
    try:
        return load_file(path)
    except (SafetensorError, OSError, ValueError) as error:
        raise _unreadable(path, error) from error


def _torch_file(path: Path) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of other protocols: refused if so
            return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise InputError(
            f"weights={str(path)!r} is damaged, or would run code when read, which is refused. "
            "Where you trust it, load it yourself and save state_dict() as .safetensors."
        ) from error
    except (RuntimeError, EOFError, OSError, ValueError, KeyError) as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> InputError:
    return InputError(
        f"weights={str(path)!r} cannot be read ({error}): it may be damaged or cut short. Copy it "
        "again, or save it anew."
    )
