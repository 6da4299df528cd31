"""Trained networks out of files: exported programs, TorchScript, ONNX, and weights with a factory."""

from __future__ import annotations

import contextlib
import inspect
import io
import json
import logging
import os
import pickle
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from curvewise.errors import InputError, arg
from curvewise.nn.devices import own_generator
from curvewise.nn.files.formats import OnnxModel, fits_axes, kind_of, other_shape, unreadable
from curvewise.nn.files.hugging_face import HuggingFace
from curvewise.nn.files.tensors import fill_network, read_tensors
from curvewise.nn.networks import following_weights, make_network
from curvewise.nn.training import Training, misfit

KINDS = {
    "exported": "exported program",
    "script": "TorchScript",
    "safetensors": "weights (safetensors)",
    "torch": "weights (torch.save)",
    "onnx": "ONNX",
}
"""Kinds of files that can be loaded, and their names for people."""


@dataclass(frozen=True, eq=False)
class ModelFile:
    """A trained network from a file.

    Attributes
    ----------
    model : nn.Module or callable
        In evaluation mode, on the CPU unless exported for elsewhere. A network of an ONNX file is
        a plain callable, arrays in and arrays out.
    kind : str
        Kind of the file, for people.
    path : Path
        The file.
    notes : tuple of str
        Choices made where the file leaves some.
    """

    model: nn.Module | Callable[[Any], Any]
    kind: str
    path: Path
    notes: tuple[str, ...] = field(default=())


def load_model(
    path: str | os.PathLike[str],
    *,
    shape: tuple[int, ...],
    classes: int,
    factory: str | None = None,
    options: Mapping[str, Any] | None = None,
    layer: str | int | None = None,
    device: str | None = None,
    folder: str | os.PathLike[str] | None = None,
) -> ModelFile:
    """Load a trained network; the content of the file decides how, not its name.

    Files with pickled code are refused. An exported program and TorchScript are programs all the
    same: use those that come from people you trust.

    Parameters
    ----------
    path : path
        An ExportedProgram, TorchScript, ONNX, or a state_dict in a file of safetensors or of
        ``torch.save``.
    shape : tuple of int
        Shape of one input.
    classes : int
        Number of classes.
    factory : str, optional
        Factory of the network for a state_dict: ``"module:function"``, called with shape, classes
        and options; a name such as ``"cnn"`` or ``"resnet18"``; ``"timm:NAME"``; ``"hf:FOLDER"``.
        The weights choose the stem of an architecture that has several.
    options : dict, optional
        Further options of the factory.
    layer : str or int, optional
        Layer that will be looked into: raise where the file does not allow it.
    device : str, optional
        Device that the network will run on.
    folder : path, optional
        Folder with the module of a factory; the current one by default.

    Raises
    ------
    InputError
        If there is no such file, it is damaged, would run code when it is read, or does not fit.
    MissingDependencyError
        If the file needs a package that is not installed.
    """
    file = Path(path)
    kind = kind_of(file)
    if kind in ("safetensors", "torch"):
        tensors = read_tensors(file, safetensors=kind == "safetensors")  # before all else: a whole module is refused
        if factory is None:
            raise InputError(
                f"{path} holds weights alone.",
                remedy=f"Name what makes their network with {arg('factory', 'module:function')} (called with shape, "
                f"classes and options), or a name such as {arg('factory', 'resnet18')}.",
            )
        training = following_weights(Training(factory, options=dict(options or {})), tensors)
        with own_generator():  # its first weights are drawn, and not used
            network = make_network(training, tuple(shape), classes, Path(folder or "."))
        inner = network.network if isinstance(network, HuggingFace) else network
        fill_network(inner, tensors, file)
        return ModelFile(network.eval(), KINDS[kind], file)
    ignored = () if factory is None else ("it holds its network: the factory is not used",)
    if layer is not None and kind != "exported":
        remedy = "Give an exported program (.pt2), or weights with a factory."
        raise misfit("layer", layer, f"the layers inside {KINDS[kind]} cannot be reached.", remedy)
    if kind == "onnx":
        model = OnnxModel(file, tuple(shape), device)
        return ModelFile(model, KINDS[kind], file, ignored + model.notes)
    if kind == "script":
        return ModelFile(load_script(file), KINDS[kind], file, ignored)
    on = None if device is None else torch.device(device)
    network = load_exported(file, tuple(shape), layers=layer is not None, device=on)
    return ModelFile(network, KINDS[kind], file, ignored)


def check_answers(file: ModelFile, x: Tensor) -> None:
    """Raise unless a network can be run on inputs and answers each by itself, always the same.

    A network exported in training mode drops units at random or normalises with what else is in
    the batch; no mode that is set later changes that.

    Parameters
    ----------
    file : ModelFile
        The network, on the CPU.
    x : Tensor
        A few inputs as the network takes them.
    """
    whole, again, half = (_answers(file, part) for part in (x, x, x[: max(1, len(x) // 2)]))
    if not all(isinstance(a, np.ndarray) for a in (whole, again, half)):
        return  # no plain answers: the caller who needs them reports it
    # Far above rounding, which may differ with the size of a batch.
    scale = 1e-3 * max(1.0, float(np.abs(whole).max(initial=0)))
    same = {"differently each time": (whole, again), "by what else is in the batch": (whole[: len(half)], half)}
    for how, (a, b) in same.items():
        if not np.allclose(a, b, rtol=0, atol=scale, equal_nan=True):
            raise InputError(
                f"{file.path} answers {how}: it was exported in training mode. Call model.eval() before exporting it."
            )


def _answers(file: ModelFile, x: Tensor) -> Any:
    if not isinstance(file.model, nn.Module):
        return file.model(x.numpy())
    device = next((p.device for p in file.model.parameters()), torch.device("cpu"))
    try:
        with torch.inference_mode():
            found = file.model(x.to(device))
    except (RuntimeError, ValueError, TypeError, AssertionError, IndexError) as error:
        reason = str(error).strip().split("\n")[-1][:300]
        raise InputError(
            f"{file.path} cannot be run on inputs of shape {tuple(x.shape)}, {x.dtype}: {reason}"
        ) from error
    return found.float().cpu().numpy() if isinstance(found, Tensor) else found


PICKLED = (
    "holds {what}, which could run code when read, and is refused. Export the network again with plain tensors only."
)
_LOGGERS = ("torch.export", "torch.export.pt2_archive._package", "torch._export.serde.serialize")


class Program(nn.Module):
    """A network whose mode is fixed, given batches of the sizes that it takes.

    Parameters
    ----------
    network : nn.Module
        Called with inputs alone.
    dtype : dtype, optional
        Of floating-point inputs, where it is fixed.
    batch : int, optional
        The one batch size that it takes.
    most : int, optional
        The largest batch size that it takes.
    """

    def __init__(
        self, network: nn.Module, dtype: torch.dtype | None = None, batch: int | None = None, most: int | None = None
    ) -> None:
        super().__init__()
        self.network = network
        self._dtype, self._batch, self._most = dtype, batch, most

    def train(self, mode: bool = True) -> Program:
        """Note the mode; the network stays as it was exported."""
        self.training = mode
        return self

    def forward(self, x: Tensor) -> Any:
        """Return answers; where the batch size is fixed, the last row fills up the last batch."""
        x = x.contiguous()  # programs rely on the strides they were exported with
        if self._dtype is not None and x.is_floating_point():
            x = x.to(self._dtype)
        size = self._batch or self._most
        if size is None or (self._batch is None and len(x) <= size):
            return self.network(x)
        parts = [self._padded(x[first : first + size]) for first in range(0, len(x), size)]
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def _padded(self, x: Tensor) -> Any:
        lacking = 0 if self._batch is None else self._batch - len(x)
        if not lacking:
            return self.network(x)
        filled = torch.cat([x, x[-1:].expand(lacking, *x.shape[1:])])
        found = self.network(filled)
        return found[: len(x)] if isinstance(found, Tensor) else found


def load_script(path: Path) -> nn.Module:
    """Load TorchScript, in evaluation mode, on the CPU."""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "`torch.jit", DeprecationWarning)
            script = torch.jit.load(path, map_location="cpu")  # type: ignore[no-untyped-call]
    except Exception as error:  # whatever a damaged file leads to, in whatever part of torch
        raise unreadable(path, error) from error
    return Program(script.eval())


def load_exported(path: Path, shape: tuple[int, ...], *, layers: bool, device: torch.device | None) -> nn.Module:
    """Load an ExportedProgram that was exported in evaluation mode.

    Parameters
    ----------
    path : Path
        File of ``torch.export.save``.
    shape : tuple of int
        Shape of one input that it will be given.
    layers : bool
        Keep its submodules, so that they can be looked into.
    device : device, optional
        Device that it will run on.
    """
    try:
        refuse_pickles(path)
        with _quietly(), open(path, "rb") as stream:
            program = torch.export.load(stream)
            if device is not None and device.type != "cpu":
                from torch.export.passes import move_to_device_pass

                program = move_to_device_pass(program, device)
    except InputError:
        raise
    except Exception as error:  # whatever a damaged file leads to, in whatever part of torch
        raise unreadable(path, error) from error
    # The placeholder of the one input in the program has its shape, perhaps symbolic, and its type.
    names = program.graph_signature.user_inputs
    inputs = [node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder" and node.name in names]
    if len(inputs) != 1 or not isinstance(given := inputs[0], Tensor):
        raise InputError(f"{path} takes {len(inputs)} inputs: export a network that takes one tensor, the inputs.")
    batch: Any
    batch, *rest = given.shape
    if not fits_axes(rest, shape):
        raise other_shape(path, rest, shape)
    fixed = batch if isinstance(batch, int) else None
    # The largest size that a symbolic axis was exported for; without one, or with a huge one, it is unlimited.
    limits = None if fixed else program.range_constraints.get(batch.node.expr)
    most = int(limits.upper) if limits is not None and limits.upper.is_Integer and int(limits.upper) <= 2**31 else None
    if layers and (fixed or most):
        raise InputError(
            f"{path} was exported for batches of {'' if fixed else 'at most '}{fixed or most}, and "
            "its layers need any size: export it with dynamic_shapes=({0: "
            "torch.export.Dim.DYNAMIC},)."
        )
    dtype = given.dtype if given.dtype.is_floating_point else None
    with _quietly():
        if layers:
            unflattened = torch.export.unflatten(program)
            # Restore the classes of activations, by which a perturbation finds its layers: unflattening loses them.
            for module in unflattened.modules():
                tell = getattr(module, "type_name", None)
                home, _, name = str(tell() if callable(tell) else "").rpartition(".")
                if home == nn.modules.activation.__name__:
                    module.__class__ = type(name, (type(module),), {"__module__": home})
            return unflattened
        # Shapes were checked above; older versions of torch have no guards to leave out.
        free = "check_guards" in inspect.signature(program.module).parameters
        network = program.module(**({"check_guards": False} if free else {}))
    return Program(network, dtype, fixed, most)


def refuse_pickles(path: Path) -> None:
    """Refuse an exported program that torch would unpickle parts of, or that holds machine code."""
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        if len(set(names)) < len(names):  # one might be checked, and the other one read
            raise InputError(f"{path} holds a part twice: export the network again.")
        for name in names:
            if "/aotinductor/" in name:
                raise InputError(f"{path} " + PICKLED.format(what="compiled machine code"))
            if name.endswith("_config.json"):
                # torch unpickles what its table of weights and constants marks so, or names otherwise.
                for about in json.loads(archive.read(name)).get("config", {}).values():
                    stored = str(about.get("path_name"))
                    if about.get("use_pickle") or not stored.startswith(("weight_", "tensor_")):
                        raise InputError(f"{path} " + PICKLED.format(what=f"the pickled object {stored}"))
            elif name.endswith(".pt") and (data := archive.read(name)):
                try:
                    torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
                except pickle.UnpicklingError as error:
                    raise InputError(f"{path} " + PICKLED.format(what=f"pickles in {name}")) from error


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Silence tracebacks in torch's log and warnings about torch itself inside the block; errors are raised."""
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    before = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", category=FutureWarning)
            warnings.filterwarnings("ignore", "This version of file is deprecated")
            # torch 2.11 wraps the bytes it has just read in a tensor that it never writes to.
            warnings.filterwarnings("ignore", "The given buffer is not writable")
            yield
    finally:
        for logger, state in zip(loggers, before, strict=True):
            logger.disabled = state
