"""Readers of features of torch networks: of modules by hooks, of TorchScript by watching its operations."""

from __future__ import annotations

import contextlib
import enum
import functools
import hashlib
import io
import sys
import types
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from curvewise.errors import InputError, Message, arg, list_names, suggest
from curvewise.nn.devices import own_generator
from curvewise.nn.files.formats import file_digest
from curvewise.nn.files.hugging_face import call_hugging_face, hugging_face_encoder, is_hugging_face
from curvewise.nn.files.model import load_model
from curvewise.nn.files.tensors import fill_network, read_tensors
from curvewise.nn.networks import arithmetic, borrowed, chosen_device
from curvewise.ranking.networks.checkpoints import (
    OUTPUT,
    Checkpoint,
    InputBatch,
    LayerOutputs,
    Matrix,
    Reader,
    as_probabilities,
    as_rows,
    channels_at_end,
    main_tensor,
    places_of,
    pooled,
)
from curvewise.ranking.networks.preprocessing import Prepare, preprocessing_in, preprocessing_of


def from_module(
    model: nn.Module, checkpoint: Checkpoint, device: str | None, precision: str, preprocessing: Prepare | None = None
) -> Reader:
    """Make the reader of a network in memory, which stays where it is unless a device is given."""
    model = getattr(model, "_orig_mod", model)  # inside of torch.compile
    place = chosen_device(model, device)
    own = preprocessing or preprocessing_of(model)
    if any(isinstance(m, torch.jit.ScriptModule) for m in model.modules()):
        return ScriptReader(model, checkpoint, place, precision, call_plain, own)
    call = call_hugging_face if is_hugging_face(model) else call_plain
    return TorchReader(model, checkpoint, place, precision, call, own)


def from_folder(checkpoint: Checkpoint, path: Path, device: str | None, precision: str) -> Reader:
    """Make the reader of a folder of Hugging Face."""
    return from_module(hugging_face_encoder(path), checkpoint, device or _best(), precision, preprocessing_in(path))


def from_file(
    checkpoint: Checkpoint, path: Path, kind: str, shape: tuple[int, ...], device: str | None, precision: str
) -> Reader:
    """Make the reader of an exported program, TorchScript, or weights with their factory."""
    notes: list[str] = []
    if kind in ("safetensors", "torch"):
        model = _weighted(checkpoint, path, kind, shape, notes)
    else:
        inside = kind == "exported" and checkpoint.layer not in (None, OUTPUT)
        layer = checkpoint.layer if inside else None
        file = load_model(path, shape=shape, classes=1, layer=layer, device=device)
        assert isinstance(file.model, nn.Module)
        model, notes = file.model, [*file.notes]
    place = chosen_device(model, device or _best())
    if kind in ("script", "exported") and checkpoint.layer in (None, OUTPUT, "all"):
        reader: Reader = ScriptReader(model, checkpoint, place, precision, file=path)
    elif kind == "exported":
        reader = TorchReader(model, checkpoint, place, precision, file=path)
    else:
        reader = from_module(model, checkpoint, str(place), precision)
    reader.notes.extend(notes)
    return reader


def _best() -> str:
    """Return the device for networks from files: a GPU if there is one."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def _weighted(checkpoint: Checkpoint, path: Path, kind: str, shape: tuple[int, ...], notes: list[str]) -> nn.Module:
    """Make the network of a file of weights by its factory."""
    classes, factory = checkpoint.classes, checkpoint.factory
    shape, options = checkpoint.shape or shape, checkpoint.options
    if factory is not None:
        tensors = read_tensors(path, safetensors=kind == "safetensors")
        notes.extend(_prefix_note(path, kind, next(iter(tensors))))
    if classes is None and factory is not None:
        # Rows of the last matrix, convolutions of one pixel included.
        rows = [int(t.shape[0]) for t in tensors.values() if t.ndim >= 2 and all(side == 1 for side in t.shape[2:])]
        classes = rows[-1] if rows else 1
        notes.append(f"its network was made for {classes} classes, the rows of its last matrix")
    if callable(factory):
        with own_generator():  # its first weights are drawn, and not used
            model: nn.Module = factory(shape, classes, **(options or {}))
        fill_network(model, tensors, path)
        return model
    file = load_model(
        path, shape=shape, classes=classes or 1, factory=factory, options=options, folder=checkpoint.folder
    )
    notes.extend(file.notes)
    assert isinstance(file.model, nn.Module)
    return file.model


def _prefix_note(path: Path, kind: str, name: str) -> list[str]:
    """Return a note on the prefix that was removed from the names in a file, given one name without it."""
    if kind == "safetensors":
        from safetensors import safe_open

        with safe_open(path, "pt") as file:
            levels: list[Any] = [list(file.keys())]
    else:
        content = torch.load(path, map_location="meta", weights_only=True)
        levels = [content, *(inner for inner in content.values() if isinstance(inner, Mapping))]
    names = {str(raw) for level in levels for raw in level}
    before = {raw.removesuffix(name) for raw in names if raw.endswith(f".{name}")}
    if name in names or not before:
        return []
    return [f"{min(before)!r} was removed from the name of every tensor in the file"]


# Calls a network with its inputs and the mask of its tokens.
Call = Callable[[nn.Module, Tensor, Tensor | None], Any]


def call_plain(model: nn.Module, x: Tensor, mask: Tensor | None) -> Any:
    """Call a network with its inputs and nothing else."""
    return model(x)


class TorchReader(Reader):
    """Reader of a network of torch.

    Parameters
    ----------
    model : nn.Module
        Its mode, device and hooks are restored afterwards.
    checkpoint : Checkpoint
        Says which layer is wanted, and how its output becomes rows.
    device : device
        Device that it runs on.
    precision : {"float32", "bfloat16", "float16"}
        Precision that it computes in.
    call : callable
        Calls it with its inputs.
    preprocessing : Preprocessing or callable, optional
        Its own.
    file : Path, optional
        File that holds all of it, code and weights.
    """

    def __init__(
        self,
        model: nn.Module,
        checkpoint: Checkpoint,
        device: torch.device,
        precision: str,
        call: Call = call_plain,
        preprocessing: Prepare | None = None,
        file: Path | None = None,
    ) -> None:
        super().__init__(checkpoint)
        self.model, self.device, self.precision = model, device, precision
        self.call, self.preprocessing, self.file = call, preprocessing, file
        self.parameters = sum(p.numel() for p in model.parameters()) or None
        kinds = [p.dtype for p in model.parameters() if p.is_floating_point()]
        self._kind = kinds[0] if kinds else torch.float32
        self._head: LinearLayer | None = None
        self._layer: tuple[str, nn.Module] | None = None
        if self.layer not in (None, "all", OUTPUT):
            self._layer = str(self.layer), self._named(str(self.layer))

    def running(self) -> AbstractContextManager[None]:
        """Borrow the network."""
        return borrowed(self.model, self.device)

    def start(self, given: InputBatch) -> None:
        """Find the classifier, where no layer was asked for."""
        few = given.part(0, min(2, len(given)))
        if self.layer == OUTPUT or self._layer is not None:
            return
        self._head, last, output = find_classifier(self.model, lambda: self._output(few))
        if self.layer is not None:
            return
        if self._head is not None:
            self.notes.append(f"features: the input of its last linear layer, {self._head.name!r}")
            return
        ends = f"its last linear layer, {last.name!r}, gives no scores" if last else "it has no linear layer"
        shape = f"of shape {tuple(output.shape[1:])}, " if output.ndim > 2 else ""
        self.notes.append(
            Message(
                f"features: the network's output, {shape}since it has no linear classifier at its end "
                f"({ends}); {arg('layer')} names another place"
            )
        )

    def read(self, given: InputBatch) -> LayerOutputs:
        """Run a batch; outputs are pooled in the hooks."""
        kept = _Kept(self.pool, given.mask)
        with self._hooks(len(given), kept):
            output = self._output(given)
        own = None
        if self._head is not None and output.ndim <= 2:
            scores = output if output.ndim == 2 else output[:, None]
            own = as_rows(self._head.probabilities(scores))
        if self._layer is not None and not kept.rows:
            raise InputError(
                "it is never called in a forward pass: name one that is (a container whose parts are called one by "
                "one is not).",
                argument="layer",
                value=self._layer[0],
            )
        if not kept.rows:
            kept(OUTPUT, output, channels_at_end(None, output))
        return LayerOutputs(kept.rows, own, kept.places)

    def gflops(self, given: InputBatch) -> float | None:
        """Count operations by torch while a batch runs."""
        with FlopCounterMode(display=False) as counter:
            self._output(given)
        return float(counter.get_total_flops()) / len(given) / 1e9

    def digest(self) -> str | None:
        """Return a hash of the file, or of weights, settings and code."""
        return network_digest(self.model) if self.file is None else file_digest(self.file)

    def _output(self, given: InputBatch) -> Tensor:
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
            if "can't allocate memory" in str(error):  # how torch reports it on a CPU
                raise torch.OutOfMemoryError(str(error)) from error
            reason = str(error).strip().split("\n")[-1][:300]
            raise InputError(
                f"the network cannot be called with a batch of {x.dtype} of shape {tuple(x.shape)}: {reason}"
            ) from error
        found = main_tensor(output, len(given))
        if found is None:
            raise InputError(
                f"the network returned {type(output).__name__} without a tensor that has a row "
                f"for each of {len(given)} examples: wrap it in a module that does."
            )
        return found

    def _hooks(self, examples: int, keep: _Kept) -> AbstractContextManager[Any]:
        if self.layer == "all":
            return _every_layer(self.model, examples, keep)
        if self._layer is not None:
            name, module = self._layer
            often: list[str] = []

            def after(module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
                value = main_tensor(output, examples)
                if value is None:
                    raise InputError(
                        f"it gives {type(output).__name__} without a tensor of floating point that has a row for each "
                        f"of {examples} examples: name another layer.",
                        argument="layer",
                        value=name,
                    )
                keep(name, value, channels_at_end(module, value))
                often.append(f"layer {name!r} is called more than once: the last call was taken")
                if len(often) == 2 and often[0] not in self.notes:
                    self.notes.append(often[0])

            return _removed(module.register_forward_hook(after, with_kwargs=True))
        if self._head is not None:
            head = self._head

            def before(module: nn.Module, args: Any, kwargs: Any) -> None:
                value = next(v for v in (*args, *kwargs.values()) if isinstance(v, Tensor))
                keep(f"input of {head.name}", value, head.last)

            return _removed(head.module.register_forward_pre_hook(before, with_kwargs=True))
        return contextlib.nullcontext()

    def _named(self, layer: str) -> nn.Module:
        every = self.model.named_modules(remove_duplicate=False)
        modules: dict[str, nn.Module] = {name: module for name, module in every if name}
        if layer not in modules:
            some = f" Some are {list_names(modules, 8)}." if modules else " It has no submodules."
            raise InputError(
                f"the network has no submodule of that name.{suggest(layer, modules) or some}",
                argument="layer",
                value=layer,
            )
        return modules[layer]


class _Kept:
    """Rows by layer, pooled as soon as a hook sees them."""

    def __init__(self, pool: str, mask: Tensor | None) -> None:
        self.pool, self.mask = pool, mask
        self.rows: dict[str, Matrix] = {}
        self.places: dict[str, NDArray[np.int64]] = {}

    def __call__(self, name: str, value: Tensor, last: bool) -> None:
        """Keep the output of a layer."""
        mask = None if self.mask is None else self.mask.to(value.device)
        self.rows[name] = as_rows(pooled(value, self.pool, last=last, mask=mask))
        if self.pool == "tokens":
            self.places[name] = places_of(value, last=last, mask=mask)

    def rename(self, old: str, new: str) -> None:
        """Keep the same under another name."""
        for kept in (self.rows, self.places):
            if old in kept:
                kept[new] = kept.pop(old)  # type: ignore[assignment]


def _removed(handle: Any) -> contextlib.ExitStack:
    """Return a context at whose end a hook is removed."""
    hooks = contextlib.ExitStack()
    hooks.callback(handle.remove)
    return hooks


@contextlib.contextmanager
def _every_layer(model: nn.Module, examples: int, kept: _Kept) -> Iterator[None]:
    """Pool the output of every submodule while the network runs.

    A module that passes an output on unchanged counts once: under the name of the outermost container.
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
            label = name if calls[name] == 1 else f"{name} (call {calls[name]})"
            if passed:
                kept.rename(latest[0][0], label)
            else:
                kept(label, value, channels_at_end(module, value))
            latest[:] = [(label, value, value._version)]

        return note

    with contextlib.ExitStack() as hooks:
        for name, module in model.named_modules():
            if name:
                hooks.callback(module.register_forward_hook(watch(name), with_kwargs=True).remove)
        yield


# Place of a linear layer's input among the arguments of an operation.
_DATA = {"aten::addmm": 1, "aten::mm": 0, "aten::linear": 0}


class ScriptReader(TorchReader):
    """Reader of TorchScript or of an exported program: the input of its last linear layer, or its output."""

    def __init__(self, model: nn.Module, *how: Any, **options: Any) -> None:
        super().__init__(model, *how, **options)
        self._fixed: int | None = getattr(model, "_batch", None)
        self.most = self._fixed
        self._calls = 0

    def start(self, given: InputBatch) -> None:
        """Find the last linear layer among the operations."""
        if self.layer not in (None, OUTPUT):
            raise InputError(
                "the layers inside this file cannot be reached. Give "
                "an exported program (.pt2) and a layer's name, or weights with a factory.",
                argument="layer",
                value=self.layer,
            )
        few = given.part(0, min(2, len(given)))
        with _Watched(self._fixed or len(few)) as seen:
            output = self._output(few)
        if seen.given is not None and seen.gave is not None:
            kind: nn.Module = nn.Conv2d(1, 1, 1) if seen.given.ndim == 4 else nn.Linear(1, 1)
            layer = LinearLayer("last", kind, seen.gave[: len(few)])
            self._head = classifier(layer, output)
            self._calls = seen.calls
        if self.layer is None:
            found = "the input of its last linear layer"
            missing = "its output, since no linear classifier was found at its end"
            self.notes.append(f"features: {missing if self._head is None else found}")

    def read(self, given: InputBatch) -> LayerOutputs:
        """Run a batch with its last linear layer watched."""
        inside = self._head is not None and self.layer is None
        with _Watched(self._fixed or len(given), self._calls) as seen:
            output = self._output(given)
        value, name = (seen.given, "input of the last linear layer") if inside else (output, OUTPUT)
        if value is None:
            raise InputError("the network calls other layers for this batch than for the first.")
        value = value[: len(given)]  # a fixed batch was padded
        own = self._head.probabilities(output) if self._head is not None and output.ndim == 2 else None
        return self.outputs({name: (value, channels_at_end(None, value))}, own)


class _Watched(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Keep the input of the last linear operation, or of the one with a number."""

    def __init__(self, examples: int, number: int | None = None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.examples, self.number, self.calls = examples, number, 0
        self.given: Tensor | None = None
        self.gave: Tensor | None = None

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        output = func(*args, **(kwargs or {}))
        given = _linear_input(func, args)
        if given is not None and len(given) == self.examples:
            self.calls += 1
            if self.number in (None, self.calls):
                self.given, self.gave = given, output
        return output


def _linear_input(func: Any, args: tuple[Any, ...]) -> Tensor | None:
    name = func._schema.name
    if name in _DATA:
        found: Tensor = args[_DATA[name]]
        return found
    if name in ("aten::convolution", "aten::_convolution"):
        pixel = all(side == 1 for side in args[1].shape[2:])
        return args[0] if pixel else None
    return None


_CONVOLUTIONS = ("Conv1d", "Conv2d", "Conv3d")
# Linear layers called last that are tried as the classifier: a network may have several heads.
_LAST = 8


@dataclass(frozen=True, eq=False)
class LinearLayer:
    """Call of a linear layer, or of a convolution of one pixel.

    Attributes
    ----------
    name : str
        Of the submodule.
    module : Module
        The layer.
    gave : Tensor, optional
        Output of the call.
    ready, squashed : bool
        True if the network's scores are probabilities: of all classes together, or of each alone.
    """

    name: str
    module: nn.Module
    gave: Tensor | None
    ready: bool = False
    squashed: bool = False

    def probabilities(self, scores: Tensor) -> Tensor:
        """Return the probabilities of the network's own classes from its scores."""
        found: Tensor = as_probabilities(scores, ready=self.ready, squashed=self.squashed)
        return found

    @property
    def last(self) -> bool:
        """True if the features are the last axis of its input."""
        return not _is_convolution(self.module)


def is_linear(module: nn.Module) -> bool:
    """Tell if a module is a linear layer, also as a convolution of one pixel or exported.

    >>> is_linear(nn.Conv2d(4, 2, 1)), is_linear(nn.Conv2d(4, 2, 3))
    (True, False)
    """
    weight = getattr(module, "weight", None)
    if not isinstance(weight, Tensor):
        return False
    if _is_convolution(module):
        return weight.ndim > 2 and all(side == 1 for side in weight.shape[2:])
    return isinstance(module, nn.Linear) or _kind(module) == "Linear"


def find_classifier(
    model: nn.Module, run: Callable[[], Tensor]
) -> tuple[LinearLayer | None, LinearLayer | None, Tensor]:
    """Run a forward pass and find the linear layer that gives the scores, the last one, and the output.

    Parameters
    ----------
    model : Module
        Hooks are put on its linear layers, and taken off again.
    run : callable
        Runs it over a few examples and gives its main output.

    Returns
    -------
    tuple
        The last of the linear layers called whose scores the output follows, None if it follows
        none; the linear layer called last, None if there is none; and the output.

    Examples
    --------
    >>> model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2), nn.Softmax(dim=1))
    >>> head, last, output = find_classifier(model, lambda: model(torch.eye(3)))
    >>> head.name, head.ready, tuple(output.shape)
    ('2', True, (3, 2))
    """
    seen: deque[LinearLayer] = deque(maxlen=_LAST)

    def watch(name: str) -> Callable[..., None]:
        def note(module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
            given = any(isinstance(v, Tensor) for v in (*args, *kwargs.values()))
            if given and isinstance(output, Tensor):
                seen.append(LinearLayer(name, module, output))

        return note

    with contextlib.ExitStack() as hooks:
        for name, module in model.named_modules():
            if is_linear(module):
                hooks.callback(module.register_forward_hook(watch(name), with_kwargs=True).remove)
        output = run()
    heads = (classifier(layer, output) for layer in reversed(seen))  # the last one first
    head = next((head for head in heads if head is not None), None)
    return head, seen[-1] if seen else None, output


def classifier(layer: LinearLayer, output: Tensor) -> LinearLayer | None:
    """Return the layer as a classifier if the network's output follows the order of its scores.

    Temperatures, softmax, means over places and the like keep that order. None where the output
    is something else, as of a network whose classifier was removed.
    """
    assert layer.gave is not None
    scores, gave = output.float(), layer.gave.float()
    head = replace(layer, gave=None)
    if scores.ndim > 2:
        return head if scores.shape == gave.shape and torch.allclose(scores, gave) else None
    scores = scores if scores.ndim == 2 else scores[:, None]
    for tried in (gave, gave.relu()):
        logits = pooled(tried, "mean", last=layer.last)
        if logits.shape == scores.shape and _same_order(scores, logits):
            same = torch.allclose(scores, logits, rtol=1e-3, atol=1e-5)
            if not same and torch.allclose(scores, logits.sigmoid(), rtol=1e-3, atol=1e-5):
                return replace(head, squashed=True)
            # Probabilities are not negative and sum to 1; one column is about the second of two classes.
            sums = scores.shape[1] == 1 or bool(((scores.sum(dim=1) - 1).abs() < 1e-2).all())
            inside = bool(((scores >= 0) & (scores <= 1)).all())
            return replace(head, ready=not same and inside and sums)
    return None


def _same_order(scores: Tensor, logits: Tensor) -> bool:
    """Tell if each row of scores rises with its logits."""
    if scores.shape[1] == 1:
        return True
    ordered = scores.gather(1, logits.argsort(dim=1))
    # Rounding may swap scores that are nearly equal.
    slack = 1e-3 * (ordered.amax(dim=1) - ordered.amin(dim=1)).clamp(min=1e-12)
    return bool((ordered.diff(dim=1) >= -slack[:, None]).all())


def _kind(module: nn.Module) -> str:
    """Return the class name of a layer; exported programs keep nothing else of it."""
    tell = getattr(module, "type_name", None)
    return str(tell()).rpartition(".")[2] if callable(tell) else type(module).__name__


def _is_convolution(module: nn.Module) -> bool:
    """Tell if a module is a convolution, also as exported."""
    return isinstance(module, nn.Conv1d | nn.Conv2d | nn.Conv3d) or _kind(module) in _CONVOLUTIONS


_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(...), range, slice)
_PLAIN_OF_TORCH = (torch.dtype, torch.device, torch.layout, torch.memory_format, torch.Size)
_TENSORS = (Tensor, nn.Parameter, nn.Buffer)
_HOOKS = ("_forward_pre_hooks", "_forward_hooks")
# Attributes of a module that its answers in evaluation mode do not depend on.
_UNUSED = ("training", "_non_persistent_buffers_set", "_is_full_backward_hook", "_compiled_call_impl")
# Attributes of a class without an effect, or that differ between places where the same code is read.
_DOCUMENTS = ("__annotations__", "__dict__", "__doc__", "__firstlineno__", "__module__")


class _UnknownContentError(Exception):
    """Something has a content that cannot be hashed."""


def network_digest(model: nn.Module) -> str | None:
    """Return a hash of everything that a network's answers depend on; None where that is not known.

    Weights, buffers, all attributes of each submodule (a number of heads, an epsilon), hooks, and
    the code of their classes with the functions that it names. Of code that is installed, the
    version of its package.

    Parameters
    ----------
    model : nn.Module
        The network, as it is.

    Examples
    --------
    >>> a, b = nn.Softplus(beta=1.0), nn.Softplus(beta=1.0)
    >>> network_digest(a) == network_digest(b)
    True
    >>> network_digest(a) == network_digest(nn.Softplus(beta=2.0))
    False
    """
    found = _Digest()
    try:
        found.add(model)
    except (_UnknownContentError, RecursionError):
        return None
    return found.hexdigest()


class _Digest:
    """Hash of objects by their content; each object counts once."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._seen: dict[int, tuple[int, Any]] = {}  # by id; kept, so that no id is used again

    def hexdigest(self) -> str:
        """Return the hash of all that was added."""
        return self._hash.hexdigest()

    def add(self, value: Any) -> None:
        """Add an object with all of its parts."""
        if isinstance(value, enum.Enum):
            self._say(f"{type(value).__qualname__} {value.name}")
        elif isinstance(value, _PLAIN_OF_TORCH) or type(value) in _PLAIN:
            self._say(f"{type(value).__name__} {value!r}")
        elif isinstance(value, np.ndarray | np.generic):
            self._array(np.asarray(value))
        elif isinstance(value, dict):
            self._all("dict", [part for pair in value.items() for part in pair])
        elif isinstance(value, tuple | list):
            self._all(type(value).__name__, value)
        elif isinstance(value, set | frozenset):  # in no order of their own
            self._all("set", sorted(_alone(part) for part in value))
        elif id(value) in self._seen:
            self._say(f"again {self._seen[id(value)][0]}")
        else:
            self._seen[id(value)] = len(self._seen), value
            self._object(value)

    def _say(self, text: str) -> None:
        content = text.encode("utf-8", "surrogatepass")
        self._hash.update(len(content).to_bytes(8, "little") + content)

    def _all(self, what: str, parts: Iterable[Any]) -> None:
        parts = list(parts)
        self._say(f"{what} {len(parts)}")
        for part in parts:
            self.add(part)

    def _array(self, values: np.ndarray[Any, Any]) -> None:
        if values.dtype.hasobject:
            raise _UnknownContentError
        self._say(f"array {values.dtype.str} {values.shape}")
        self._hash.update(np.ascontiguousarray(values).tobytes())

    def _object(self, value: Any) -> None:
        if isinstance(value, Tensor):
            self._tensor(value)
        elif isinstance(value, type):
            self._class(value)
        elif isinstance(value, types.FunctionType):
            self._function(value)
        elif isinstance(value, types.MethodType):
            self._all("method", (value.__func__, value.__self__))
        elif isinstance(value, types.BuiltinFunctionType | types.MethodDescriptorType):
            self._say(f"builtin {value.__qualname__} {torch.__version__}")
        elif isinstance(value, types.ModuleType):
            self._say(f"module {value.__name__}")
        elif isinstance(value, functools.partial):
            self._all("partial", (value.func, value.args, value.keywords))
        elif isinstance(value, nn.Module):
            self._module(value)
        elif hasattr(value, "__dict__") and not hasattr(type(value), "__slots__"):
            self._all("object", (type(value), vars(value)))
        else:  # such as weights packed for a processor
            raise _UnknownContentError

    def _tensor(self, value: Tensor) -> None:
        if type(value) not in _TENSORS or value.layout != torch.strided or value.is_quantized:
            raise _UnknownContentError
        self._say(f"tensor {tuple(value.shape)} {value.dtype}")
        flat = value.detach().cpu().contiguous().reshape(-1)
        self._hash.update(flat.view(torch.uint8).numpy().tobytes() if len(flat) else b"")

    def _module(self, value: nn.Module) -> None:
        inner = getattr(value, "_orig_mod", None)
        if isinstance(value, torch.jit.ScriptModule):
            content = io.BytesIO()
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "`torch.jit", DeprecationWarning)
                torch.jit.save(value, content)
            self._all("script", [content.getvalue()])
        elif isinstance(value, torch.fx.GraphModule):
            parts = (value._parameters, value._buffers, value._modules)
            self._all("graph", (value.code, *parts))
        elif isinstance(inner, nn.Module):  # compiled
            self.add(inner)
        else:
            self.add(type(value))
            for name in _HOOKS:
                self._all(name, vars(value)[name].values())  # their keys are only counted up
            kept = {n: v for n, v in vars(value).items() if n not in _UNUSED and "_hooks" not in n}
            self.add(kept)

    def _class(self, value: type) -> None:
        """Add the code of a class; of an installed one its name and version."""
        known = _installed(value.__module__)
        self._say(f"class {known or ''} {value.__qualname__}")
        if known is None:
            self.add(value.__bases__)
            for name, part in sorted(vars(value).items()):
                if name not in _DOCUMENTS:
                    self._say(name)
                    # Of a static method, class method or property the function inside.
                    self._try(part.fget if isinstance(part, property) else getattr(part, "__func__", part))

    def _function(self, value: types.FunctionType) -> None:
        known = _installed(value.__module__ or "")
        self._say(f"function {known or ''} {value.__qualname__}")
        if known is None:
            self._code(value.__code__, value.__globals__)
        cells = [_content(cell) for cell in value.__closure__ or ()]
        self.add([value.__defaults__, value.__kwdefaults__, cells])

    def _code(self, code: types.CodeType, known: dict[str, Any]) -> None:
        self._all("code", (code.co_code, code.co_names, code.co_varnames))
        for part in code.co_consts:
            if isinstance(part, types.CodeType):
                self._code(part, known)
            else:
                self.add(part)
        for found in _named(code, known):
            self._try(found)

    def _try(self, value: Any) -> None:
        """Add something beside the network itself; what cannot be hashed, such as a lock, is left out."""
        before = self._hash.copy()
        try:
            self.add(value)
        except _UnknownContentError:
            self._hash = before


def _named(code: types.CodeType, known: dict[str, Any]) -> list[Any]:
    """Return the objects that code may mean by its names, in its module and in others that are not installed."""
    found = [known[name] for name in code.co_names if name in known]
    modules = [m for m in found if isinstance(m, types.ModuleType)]
    for module in modules:
        if _installed(module.__name__) is None:
            found += [vars(module)[name] for name in code.co_names if name in vars(module)]
    return [value for value in found if not isinstance(value, types.ModuleType)]


def _alone(value: Any) -> str:
    found = _Digest()
    found.add(value)
    return found.hexdigest()


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None


@functools.lru_cache(maxsize=1024)
def _installed(module: str) -> str | None:
    """Return package and version of installed code, which changes with its version only; None for other code."""
    top = module.partition(".")[0]
    if top in sys.stdlib_module_names or top == "builtins":
        return f"{module} {sys.version}"
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is None or not {"site-packages", "dist-packages"} & {*Path(file).parts}:
        return None
    return f"{module} {getattr(sys.modules.get(top), '__version__', '')}"
