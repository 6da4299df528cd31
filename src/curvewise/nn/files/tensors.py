"""Tensors by name out of files, and networks filled with them: wholly, but for the head, or in one part.

No code that a file may hold is run: files of pickles are read with ``weights_only``.
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Collection, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any
from zipfile import is_zipfile

import torch
from torch import Tensor, nn

from curvewise.errors import InputError, importing
from curvewise.nn.files.formats import unreadable
from curvewise.nn.files.hugging_face import HuggingFace
from curvewise.nn.training import misfit
from curvewise.reading.arrays import read_npz

_SUFFIXES = (".safetensors", ".npz", ".pt", ".pth", ".th")


def load_weights(
    model: nn.Module, given: Mapping[str, Tensor], path: Path, head: str | None, what: str = "the network"
) -> tuple[str, ...]:
    """Fill a network with a file's weights; return remarks for a reader.

    A head of another shape than the file's, or that the file lacks, keeps the weights it was
    drawn with; auxiliary classifiers of the file that the network lacks are left out. Everything
    else must fit.

    Parameters
    ----------
    model : nn.Module
        Changed in place; nothing but shapes is looked at where it has no memory (device ``"meta"``).
    given : dict of str to Tensor
        Content of the file, from :func:`read_weights`.
    path : Path
        The file, for messages.
    head : str, optional
        Name of the last layer; None where all of the network must fit.
    what : str
        Name of the network, for messages.
    """
    if isinstance(model, HuggingFace):  # its files do not know of the wrapper
        model, head = model.network, (head or "").removeprefix("network.")
    wanted = model.state_dict()
    whole, given = len(given), _without_auxiliary(given, wanted)
    notes = [f"Auxiliary classifiers in {path.name} were left out."] if len(given) < whole else []
    # A head that does not fit is left as drawn, with all of its tensors.
    ours = [name for name in wanted if head is not None and name.startswith(f"{head}.")]
    redrawn = any(n not in given or given[n].shape != wanted[n].shape for n in ours)
    if redrawn:
        given = {n: t for n, t in given.items() if not n.startswith(f"{head}.")}
    skipped = ours if redrawn else []
    _fill(model, given, path, what, skipped)
    if redrawn:
        notes.append(f"The last layer ({head}) does not fit the one in {path.name}: it was initialised randomly.")
    return tuple(notes)


def lost_layers(given: Collection[str], head: str) -> list[str]:
    """Name the layers of a file in front of its last that stand where a network has its last layer alone.

    >>> lost_layers(["features.0.weight", "fc.0.weight", "fc.3.weight", "fc.6.weight"], "fc")
    ['fc.0', 'fc.3']
    """
    inside = (name.removesuffix(".weight") for name in given if name.endswith(".weight"))
    return [name for name in inside if name.startswith(f"{head}.")][:-1]


def load_part(model: nn.Module, part: str, given: Mapping[str, Tensor], path: Path) -> tuple[str, ...]:
    """Fill a part of a network with a file's weights; return a remark on what was filled and what was not.

    Every weight of the part must be in the file, by its name within the part or within the whole
    network. What else the file holds, such as the last layer of a classifier, is left out.

    Parameters
    ----------
    model : nn.Module
        Changed in place.
    part : str
        Name of a part, such as ``"encoder"``.
    given, path
        As of :func:`load_weights`.
    """
    parts = dict(model.named_modules())
    if not part or part not in parts:
        names = [name for name, _ in model.named_children()]
        problem = f"no part of the network {type(model).__name__}, which has {', '.join(names) or 'none'}."
        raise misfit("weights_into", part, problem)
    wanted = parts[part].state_dict()
    if not wanted:
        raise misfit("weights_into", part, "it has no weights.", "Name a part that has some.")
    same = any(name.startswith(f"{part}.") for name in given)  # of a network with the same part
    left = [name for name in given if not (name.startswith(f"{part}.") if same else name in wanted)]
    fitting = {n.removeprefix(f"{part}."): t for n, t in given.items() if n not in left}
    _fill(parts[part], fitting, path, f"the part {part!r} of the network")
    drawn = [name for name in model.state_dict() if not name.startswith(f"{part}.")]
    return (
        f"Of {path.name}, {len(fitting)} arrays were loaded into {part}; left out of it: "
        f"{_listed(left)}. Initialised randomly in the network: {_listed(drawn)}.",
    )


def _fill(
    module: nn.Module, tensors: Mapping[str, Tensor], path: Path, what: str, spared: Collection[str] = ()
) -> None:
    wanted = module.state_dict()
    if problems := list(misfits(tensors, wanted, spared)):
        remedy = "Use the architecture and options they were trained with, or rename the tensors."
        raise misfit("weights", str(path), f"they do not fit {what}: {'; '.join(problems)}.", remedy)
    if not any(tensor.is_meta for tensor in wanted.values()):
        module.load_state_dict({**wanted, **tensors})


def _listed(names: list[str]) -> str:
    shown = ", ".join(sorted(names)[:4]) or "none"
    return shown if len(names) <= 4 else f"{shown} and {len(names) - 4} more"


def read_weights(path: Path, *, shapes: bool = False) -> dict[str, Tensor]:
    """Read weights that a training starts from.

    Parameters
    ----------
    path : Path
        ``.safetensors``, ``.npz`` with an array for each name, or ``.pt``, ``.pth``, ``.pth.tar``, ``.th`` with
        tensors and nothing else, alone or under ``"state_dict"``; a ``module.`` in front of every
        name is taken off.
    shapes : bool
        Look at names and shapes only: large files are not read whole, nor checked for NaN.
    """
    # The usual name of checkpoints of ImageNet, which are no archives.
    if path.suffix not in _SUFFIXES and not path.name.endswith((".pth.tar", ".pt.tar")):
        raise misfit("weights", str(path), f"files that end in {', '.join(_SUFFIXES)} can be read.")
    if not path.is_file():
        raise misfit("weights", str(path), "there is no such file.", "Check the path.")
    try:
        if path.suffix == ".npz":
            try:
                found = {name: torch.from_numpy(array) for name, array in read_npz(path).items()}
            except (ValueError, TypeError) as error:
                raise unreadable(path, error) from error
        else:
            found = read_tensors(path, safetensors=path.suffix == ".safetensors", shapes=shapes)
        if shapes:
            return found
        # A training that starts from such values would only be reported as diverged.
        for name, tensor in found.items():
            if tensor.is_complex() or bool(tensor.isnan().any()):
                what = "complex numbers" if tensor.is_complex() else "NaN"
                raise InputError(f"{name} holds {what}: these are not weights to start from.")
    except InputError as error:
        raise misfit("weights", str(path), error.message) from error
    return found


_NESTED = ("state_dict", "model_state_dict", "model")
_PREFIXES = ("module.", "_orig_mod.")
"""Prefixes that wrappers for many devices and for compiling put in front of every name."""

UNSAFE = (
    "is damaged, or would run code when read (torch.save of a whole module does), which is "
    "refused. Where you trust it, load it yourself and write its state_dict() as .safetensors, or "
    "torch.export.save(torch.export.export(model.eval(), (x,), dynamic_shapes=({0: "
    "torch.export.Dim('batch')},)), 'model.pt2')."
)


def read_tensors(path: Path, *, safetensors: bool, shapes: bool = False) -> dict[str, Tensor]:
    """Read a state_dict without running any code that the file may hold.

    Parameters
    ----------
    path : Path
        File of safetensors, or of ``torch.save`` with tensors and nothing else, alone or under
        ``"state_dict"``, ``"model_state_dict"`` or ``"model"``.
    safetensors : bool
        True for the first kind, False for the second.
    shapes : bool
        Leave the numbers on the disk: only shapes may be looked at.
    """
    content = _safetensors(path, shapes) if safetensors else _torch_file(path, shapes)
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
        File that they come from, for messages.
    """
    wanted = network.state_dict()
    tensors = _without_auxiliary(tensors, wanted)
    problems = list(misfits(tensors, wanted))
    if problems:
        raise InputError(
            f"{path} does not fit the network: {'; '.join(problems)}. Use the factory and options "
            "it was trained with, and data of the same shape and classes."
        )
    network.load_state_dict({**wanted, **tensors})


def _without_auxiliary(given: Mapping[str, Tensor], wanted: Collection[str]) -> dict[str, Tensor]:
    """Leave out classifiers between the layers, which torchvision's files of an Inception hold and no answer needs."""
    names = ("aux1", "aux2", "AuxLogits")
    return {n: t for n, t in given.items() if n in wanted or n.partition(".")[0] not in names}


def misfits(given: Mapping[str, Tensor], wanted: Mapping[str, Tensor], spared: Collection[str] = ()) -> Iterator[str]:
    """Describe what does not fit: names that either side lacks, and shapes.

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


def _safetensors(path: Path, shapes: bool) -> Any:
    with importing("Reading .safetensors needs safetensors", "torch"):
        from safetensors import SafetensorError, safe_open
        from safetensors.torch import load_file
    try:
        if shapes:
            with safe_open(path, framework="pt") as file:
                return {n: torch.empty(file.get_slice(n).get_shape(), device="meta") for n in file.keys()}  # noqa: SIM118
        return load_file(path)
    except (SafetensorError, OSError, ValueError, TypeError, MemoryError, OverflowError) as error:
        raise unreadable(path, error) from error


def _torch_file(path: Path, shapes: bool) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # about other pickle protocols: refused below if unsafe
            # Only archives can be mapped into memory; files of before torch 1.6 are none.
            return torch.load(path, map_location="cpu", weights_only=True, mmap=shapes and is_zipfile(path))
    except pickle.UnpicklingError as error:
        raise InputError(f"{path} {UNSAFE}") from error
    except Exception as error:  # whatever a damaged file leads to inside torch
        raise unreadable(path, error) from error
