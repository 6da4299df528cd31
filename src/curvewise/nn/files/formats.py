"""Formats of model files, recognised by their content, and networks in ONNX files, run by onnxruntime; no torch."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError, importing

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


# ---- Networks in ONNX files: arrays in, arrays out

DTYPES = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(float16)": np.float16,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(uint8)": np.uint8,
}
"""Types of inputs, by onnxruntime's name for them."""


class OnnxModel:
    """A network of an ONNX file: call it with an array of inputs to get an array of answers.

    Parameters
    ----------
    path : Path
        The file.
    shape : tuple of int
        Shape of one input that it will be given, channels first.
    device : str, optional
        ``"cpu"`` or ``"cuda"``; by default a GPU if onnxruntime can use one.

    Attributes
    ----------
    notes : tuple of str
        Choices made where the file leaves some.
    """

    def __init__(self, path: Path, shape: tuple[int, ...], device: str | None = None) -> None:
        self._session, remarks = open_session(path, device)
        self._path = path
        inputs = self._session.get_inputs()
        if len(inputs) != 1:
            names = ", ".join(i.name for i in inputs)
            raise InputError(f"{path} takes {len(inputs)} inputs ({names}): give one that takes 1.")
        self._input = inputs[0]
        if self._input.type not in DTYPES or self._input.type == "tensor(uint8)":
            raise InputError(
                f"{path} takes {self._input.type}: export a network that takes floating-point inputs, or int64 tokens."
            )
        self._dtype = DTYPES[self._input.type]
        size, *rest = self._input.shape or [None]
        # Networks from TensorFlow take the channels last: (height, width, channels).
        self._last = not fits_axes(rest, shape)
        if self._last and not (len(shape) == 3 and fits_axes(rest, (*shape[1:], shape[0]))):
            raise other_shape(path, rest, shape)
        self._batch = size if isinstance(size, int) and size > 0 else None
        self._output, chosen = self._choose_output()
        self.notes = (*remarks, *chosen)

    def __call__(self, x: NDArray[Any]) -> NDArray[Any]:
        """Return answers for inputs."""
        if (x.dtype.kind == "f") != (np.dtype(self._dtype).kind == "f"):
            raise InputError(f"{self._path} takes {self._input.type}, and the data is {x.dtype}.")
        x = np.moveaxis(x, 1, -1) if self._last else x
        feeds = {self._input.name: np.ascontiguousarray(x, dtype=self._dtype)}
        found: NDArray[Any]
        (found,) = run_session(self._session, self._path, [self._output], feeds, self._batch)
        return found

    def _choose_output(self) -> tuple[str, tuple[str, ...]]:
        """Choose the scores of the classes, where there is more than one output."""
        outputs = self._session.get_outputs()
        scores = [o for o in outputs if len(o.shape or ()) == 2 and "float" in o.type]
        chosen = (scores or outputs)[0].name
        if len(outputs) == 1:
            return chosen, ()
        names = ", ".join(o.name for o in outputs)
        return chosen, (f"of its outputs {names}, {chosen} was taken",)


def run_session(
    session: Any, path: Path, outputs: list[str], feeds: dict[str, NDArray[Any]], batch: int | None
) -> list[NDArray[Any]]:
    """Return outputs for inputs by name; where the batch size is fixed, the last row fills it up."""
    count = len(next(iter(feeds.values())))
    size = batch or count
    parts = []
    for first in range(0, count, size):
        part = {name: x[first : first + size] for name, x in feeds.items()}
        here = min(size, count - first)
        filled = {
            name: np.concatenate([x, np.repeat(x[-1:], size - here, axis=0)]) if here < size else x
            for name, x in part.items()
        }
        try:
            found = session.run(outputs, filled)
        except Exception as error:  # onnxruntime's errors have no common base
            reason = str(error).split(" : ")[-1].strip().split("\n")[0]
            shape = next(iter(filled.values())).shape
            raise InputError(f"{path} cannot be run on inputs of shape {shape} ({reason}).") from error
        parts.append([values[:here] for values in found])
    return [np.concatenate(values) for values in zip(*parts, strict=True)]


def open_session(path: Path, device: str | None, content: bytes | None = None) -> tuple[Any, tuple[str, ...]]:
    """Load a file, or changed content of it, with onnxruntime; return the session and remarks."""
    with importing(f"{path} is an ONNX file, and needs onnxruntime", "onnx"):
        import onnxruntime
    gpu = "CUDAExecutionProvider" in onnxruntime.get_available_providers()
    wanted = device is not None and device.startswith("cuda")
    remarks = ("the onnxruntime here has no GPU: it runs on the CPU",) if wanted and not gpu else ()
    use = ["CUDAExecutionProvider"] if gpu and (wanted or device is None) else []
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # errors only, which are raised as well
    if content is not None:  # content has no path: weights that lie beside the file would not be found
        beside = str(path.resolve().parent)
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", beside)
    try:
        session = onnxruntime.InferenceSession(content or str(path), options, providers=[*use, "CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's errors have no common base
        raise unreadable(path, error) from error
    return session, remarks
