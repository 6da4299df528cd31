"""Kinds of model files, recognised by their content; no torch."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from curvewise.errors import InputError

_ENDINGS = {
    ".pt2": "exported",
    ".onnx": "onnx",
    ".safetensors": "safetensors",
    ".pt": "torch",
    ".pth": "torch",
    ".ckpt": "torch",
    ".bin": "torch",
}
_FOREIGN = {
    b"\x89HDF": "an HDF5 file, as Keras writes: export it to ONNX with tf2onnx",
    b"TFL3": "a TensorFlow Lite file: export the network to ONNX instead",
    b"\x93NUM": "a numpy array, not a network",
}
KNOWN = (
    "torch.export.save (.pt2), TorchScript, ONNX, or weights (.safetensors) with the factory that makes their network"
)


def kind_of(path: Path) -> str:
    """Recognise a model file by its content: a key of :data:`curvewise.nn.files.model.KINDS`."""
    if not path.exists():
        raise InputError(f"{path}: there is no such file. Check the path.")
    if path.is_dir():
        raise InputError(f"{path} is a folder: give one file, made by {KNOWN}.")
    size = path.stat().st_size
    if not size:
        raise InputError(f"{path} is empty: copy it again, or save it again.")
    with open(path, "rb") as stream:
        head = stream.read(9)
    if head.startswith(b"PK\x03\x04"):
        return _kind_of_archive(path)
    # safetensors: the length of a JSON header in eight bytes, then the header.
    if head[8:9] == b"{" and int.from_bytes(head[:8], "little") <= size:
        return "safetensors"
    # The opcode of a pickle's protocol, with which files of torch.save began before version 1.6.
    if head[:1] == b"\x80" and head[1:2] in b"\x02\x03\x04\x05":
        return "torch"
    for start, what in _FOREIGN.items():
        if start in (head[:4], head[4:8]):
            raise InputError(f"{path} is {what}.")
    ending = _ENDINGS.get(path.suffix.lower())
    if ending is None and head[:1] == b"\x08":  # every ONNX file begins with its version, field 1 of its protocol
        return "onnx"
    if ending is None:
        raise InputError(f"{path} is not a known kind of network file: give a file made by {KNOWN}.")
    return ending


def _kind_of_archive(path: Path) -> str:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError) as error:
        raise InputError(f"{path} is damaged or cut short ({error}): copy it again, or save it again.") from error
    # All three are zip archives of torch, told apart by members that only one of them has.
    last = {name.rpartition("/")[2] for name in names}
    if last & {"archive_format", "serialized_exported_program.json"}:
        return "exported"
    if "constants.pkl" in last and any("/code/" in name for name in names):
        return "script"
    if "data.pkl" in last:
        return "torch"
    if any(name.endswith(".npy") for name in names):
        raise InputError(f"{path} is an archive of numpy arrays, not a network.")
    raise InputError(f"{path} is not a known kind of network file: give a file made by {KNOWN}.")


def file_digest(*paths: Path) -> str:
    """Return a hash of the content of files."""
    found = hashlib.sha256()
    for path in paths:
        with open(path, "rb") as stream:
            found.update(hashlib.file_digest(stream, "sha256").digest())
    return found.hexdigest()


def fits_axes(axes: Sequence[Any], shape: tuple[int, ...]) -> bool:
    """Tell whether an input has the shape that a network takes; an axis that is no number takes any size.

    >>> fits_axes([3, "height", "width"], (3, 8, 8)), fits_axes([3, 9, 9], (3, 8, 8))
    (True, False)
    """
    both = zip(axes, shape, strict=False)
    return len(axes) == len(shape) and all(not isinstance(axis, int) or axis == size for axis, size in both)


def other_shape(path: Path, axes: Sequence[Any], shape: tuple[int, ...]) -> InputError:
    """Return the error for data of another shape than a network takes."""
    wanted = ", ".join(str(axis) if isinstance(axis, int) else "any" for axis in axes)
    return InputError(
        f"{path} takes inputs of shape ({wanted}), and the data has {shape}.",
        remedy="Bring the data to this shape, or export the network again.",
    )


def unreadable(path: Path, error: Exception) -> InputError:
    """Return the error for a file that breaks off or makes no sense."""
    reason = str(error).strip().split("\n")[0][:200]
    reason = reason if " " in reason else f"{type(error).__name__} {reason}".strip()
    return InputError(
        f"{path} cannot be read ({reason}): it may be damaged or cut short. Copy it again, or save it again."
    )
