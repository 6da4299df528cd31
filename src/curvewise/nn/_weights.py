"""Initial weights out of a file."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn

from curvewise.errors import InputError
from curvewise.io._arrays import named_arrays
from curvewise.nn._files import unreadable
from curvewise.nn._foreign import HuggingFace
from curvewise.nn._tensors import misfits, read_tensors

_SUFFIXES = (".safetensors", ".npz", ".pt", ".pth", ".th")


def load_weights(model: nn.Module, path: Path, head: str | None) -> tuple[str, ...]:
    """Fill a network with a file's weights; return what a reader should know.

    A head of another shape than the file's, or that the file lacks, keeps the weights it was
    drawn with. Everything else must fit.

    Parameters
    ----------
    model : nn.Module
        Changed in place.
    path : Path
        ``.safetensors``, ``.npz`` with an array for each name, or ``.pt``, ``.pth``, ``.th`` with
        tensors and nothing else, alone or under ``"state_dict"``; a ``module.`` in front of every
        name is taken off.
    head : str, optional
        Name of the last layer; None where all of the network must fit.
    """
    if isinstance(model, HuggingFace):  # its files do not know of the wrapper
        model, head = model.network, (head or "").removeprefix("network.")
    given = _read(path)
    wanted = model.state_dict()
    # a head that does not fit is left as drawn, with all of its tensors
    ours = [name for name in wanted if head is not None and name.startswith(f"{head}.")]
    redrawn = any(n not in given or given[n].shape != wanted[n].shape for n in ours)
    if redrawn:
        given = {n: t for n, t in given.items() if not n.startswith(f"{head}.")}
    skipped = ours if redrawn else []
    if problems := list(misfits(given, wanted, skipped)):
        raise InputError(
            f"weights={str(path)!r} do not fit the network: {'; '.join(problems)}. Use the "
            "architecture and options they were trained with, or rename the tensors."
        )
    model.load_state_dict({**wanted, **given})
    if not redrawn:
        return ()
    return (f"The last layer ({head}) does not fit the one in {path.name}: it was drawn anew.",)


def load_part(model: nn.Module, part: str, path: Path) -> tuple[str, ...]:
    """Fill a part of a network with a file's weights; say what was filled and what was not.

    Every weight of the part must be in the file, by its name within the part or within the whole
    network. What else the file holds, such as the last layer of a classifier, is left out.

    Parameters
    ----------
    model : nn.Module
        Changed in place.
    part : str
        Name of a part, such as ``"encoder"``.
    path : Path
        As of :func:`load_weights`.
    """
    parts = dict(model.named_modules())
    if not part or part not in parts:
        names = [name for name, _ in model.named_children()]
        raise InputError(
            f"weights_into={part!r} is no part of the network {type(model).__name__}: it has "
            f"{', '.join(names) or 'none'}."
        )
    given, wanted = _read(path), parts[part].state_dict()
    if not wanted:
        raise InputError(f"weights_into={part!r} has no weights: name a part that has some.")
    if any(name.startswith(f"{part}.") for name in given):  # of a network with the same part
        left = [name for name in given if not name.startswith(f"{part}.")]
        fitting = {n.removeprefix(f"{part}."): t for n, t in given.items() if n not in left}
    else:
        left = [name for name in given if name not in wanted]
        fitting = {name: tensor for name, tensor in given.items() if name not in left}
    if problems := list(misfits(fitting, wanted)):
        raise InputError(
            f"weights={str(path)!r} do not fit the part {part!r} of the network: "
            f"{'; '.join(problems)}. Use the architecture and options they were trained with, or "
            "rename the tensors."
        )
    parts[part].load_state_dict({**wanted, **fitting})
    drawn = [name for name in model.state_dict() if not name.startswith(f"{part}.")]
    return (
        f"Of {path.name}, {len(fitting)} arrays were loaded into {part}; left out of it: "
        f"{_said(left)}. Drawn anew in the network: {_said(drawn)}.",
    )


def _said(names: list[str]) -> str:
    shown = ", ".join(sorted(names)[:4]) or "none"
    return shown if len(names) <= 4 else f"{shown} and {len(names) - 4} more"


def _read(path: Path) -> dict[str, Tensor]:
    if path.suffix not in _SUFFIXES:
        raise InputError(
            f"weights={str(path)!r}: files that end in {', '.join(_SUFFIXES)} can be read."
        )
    if not path.is_file():
        raise InputError(f"weights={str(path)!r}: there is no such file. Check the path.")
    try:
        if path.suffix == ".npz":
            found = _read_arrays(path)
        else:
            found = read_tensors(path, safetensors=path.suffix == ".safetensors")
        _check_values(found)
    except InputError as error:
        raise InputError(f"weights={str(path)!r}: {error}") from error
    return found


def _check_values(tensors: dict[str, Tensor]) -> None:
    """Refuse what no training can start from, and would only be told of as a divergence."""
    for name, tensor in tensors.items():
        if tensor.is_complex() or bool(tensor.isnan().any()):
            what = "complex numbers" if tensor.is_complex() else "NaN"
            raise InputError(f"{name} holds {what}: these are no weights to start from.")


def _read_arrays(path: Path) -> dict[str, Tensor]:
    try:
        names, get = named_arrays(path)
        return {name: torch.from_numpy(get(name)) for name in names}
    except (ValueError, TypeError) as error:
        raise unreadable(path, error) from error
