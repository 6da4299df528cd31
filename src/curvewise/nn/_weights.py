"""Initial weights out of a file."""

from __future__ import annotations

from pathlib import Path

from torch import Tensor, nn

from curvewise.errors import InputError
from curvewise.nn._foreign import HuggingFace
from curvewise.nn._tensors import misfits, read_tensors

_SUFFIXES = (".safetensors", ".pt", ".pth", ".th")


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


def _read(path: Path) -> dict[str, Tensor]:
    if path.suffix not in _SUFFIXES:
        raise InputError(
            f"weights={str(path)!r}: files that end in {', '.join(_SUFFIXES)} can be read."
        )
    if not path.is_file():
        raise InputError(f"weights={str(path)!r}: there is no such file. Check the path.")
    try:
        return read_tensors(path, safetensors=path.suffix == ".safetensors")
    except InputError as error:
        raise InputError(f"weights={str(path)!r}: {error}") from error
