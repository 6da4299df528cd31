"""Open a checkpoint of any format: a network of torch, an ONNX or TensorFlow Lite file, a function, or stored features.

ONNX and TensorFlow Lite files are run by their own runtimes; their graphs tell where the features are.
"""

from __future__ import annotations

import os
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Hashable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from importlib import import_module
from math import prod
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Generic, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError, Message, arg, importing, list_names, suggest
from curvewise.nn.files.formats import DTYPES, file_digest, kind_of, open_session, run_session, unreadable
from curvewise.ranking.load import name_of_features
from curvewise.ranking.networks.checkpoints import (
    OUTPUT,
    Checkpoint,
    InputBatch,
    LayerOutputs,
    Reader,
    as_probabilities,
    as_rows,
    pooled,
)
from curvewise.ranking.networks.preprocessing import Prepare, Preprocessing, is_network, is_torch
from curvewise.reading.arrays import map_npy, named_arrays
from curvewise.reading.table import large_files

_BYTES = "tensor(uint8)"

# Bytes that the arrays of one archive may have: far more than is ever put into one. A file of one array is mapped.
_UNPACKED = 2**34


def open_reader(checkpoint: Checkpoint, shape: tuple[int, ...], device: str | None, precision: str) -> Reader:
    """Load a checkpoint.

    Parameters
    ----------
    checkpoint : Checkpoint
        A network or function, not features.
    shape : tuple of int
        Shape of one input after preprocessing, as far as that is known.
    device : str, optional
        Device that it runs on; a network in memory stays where it is by default.
    precision : str
        Precision that torch computes in.
    """
    path = checkpoint.path
    if path is not None and path.is_dir():
        return cast(Reader, _networks(path).from_folder(checkpoint, path, device, precision))
    if path is not None:
        if path.is_file():
            with open(path, "rb") as stream:
                head = stream.read(8)
            if head[4:] == b"TFL3":
                return TfliteReader(checkpoint)
        kind = kind_of(path)
        if kind == "onnx":
            return OnnxReader(checkpoint, device)
        return cast(Reader, _networks(path).from_file(checkpoint, path, kind, shape, device, precision))
    if is_network(checkpoint.source):
        from curvewise.ranking.networks.modules import from_module

        return from_module(checkpoint.source, checkpoint, device, precision)
    return FunctionReader(checkpoint)


def _networks(path: Path) -> Any:
    """Return the module that opens networks of torch; ONNX and TensorFlow Lite do without it."""
    with importing(f"Reading {path} needs {{}}", "torch"):
        from curvewise.ranking.networks import modules
    return modules


def stored_features(checkpoint: Checkpoint) -> tuple[NDArray[Any], NDArray[Any] | None] | None:
    """Return the features and probabilities that a checkpoint holds instead of a network; None for a network."""
    source, path = checkpoint.source, checkpoint.path
    if path is None:
        if is_torch(source, "Tensor"):
            return source.detach().cpu().numpy(), None
        return (source, None) if isinstance(source, np.ndarray) else None
    if not path.is_file():
        return None
    with open(path, "rb") as stream:
        head = stream.read(9)
    try:
        if head.startswith(b"\x93NUMPY"):
            return map_npy(path), None
        sizes = {}
        if head.startswith(b"PK\x03\x04"):
            with zipfile.ZipFile(path) as archive:
                sizes = {about.filename: about.file_size for about in archive.infolist()}
        if any(name.endswith(".npy") for name in sizes):
            if sum(sizes.values()) > _UNPACKED:
                raise ValueError(f"unpacked it would take {sum(sizes.values()) / 2**30:,.0f} GiB of memory")
            names, get = named_arrays(path, "npz")
            with large_files(True):  # up to the size just checked
                return _picked({name: get(name) for name in names}, path)
    except (ValueError, OSError, RuntimeError, MemoryError, zipfile.BadZipFile) as error:
        raise InputError(f"{path} cannot be read ({error}): write features as plain arrays with numpy.save.") from error
    if head[8:] == b"{" and checkpoint.factory is None:
        named = _networks(path).read_tensors(path, safetensors=True)
        if "features" in named:
            return _picked({name: t.float().numpy() for name, t in named.items()}, path)
    return None


def _picked(arrays: dict[str, NDArray[Any]], path: Path) -> tuple[NDArray[Any], NDArray[Any] | None]:
    return arrays[name_of_features(list(arrays), path)], arrays.get("probabilities")


class FunctionReader(Reader):
    """A function of the user's from a batch to features, or to (features, probabilities)."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        super().__init__(checkpoint)
        self.function = checkpoint.source
        if self.layer not in (None, OUTPUT):
            raise InputError(
                "a function has no layers. Let it give those features.", argument="layer", value=self.layer
            )

    def read(self, given: InputBatch) -> LayerOutputs:
        """Call the function, with arrays."""
        found = self.function(given.x)
        values, own = found if isinstance(found, tuple) and len(found) == 2 else (found, None)
        rows = as_rows(values)
        if rows.ndim < 1 or len(rows) != len(given):
            raise InputError(
                f"the function gave shape {rows.shape} for {len(given)} examples: it must give a row for each."
            )
        return self.outputs({OUTPUT: (rows, rows.ndim == 3)}, own)


class _GraphReader(Reader):
    """Common part of the readers of graphs: layers are found in the file, not by running it."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        super().__init__(checkpoint)
        self.path = Path(checkpoint.source)

    def _choose(
        self,
        head: Head[Any] | None,
        every: Callable[[], list[Any]],
        named: Callable[[str], Any],
        instead: Any,
        what: str,
    ) -> list[Any]:
        """Choose the tensors to take: all, the one named, the input of the classifier, or something ``instead``."""
        layer = self.layer
        if layer == "all":
            return every()
        if layer not in (None, OUTPUT):
            return [named(str(layer))]
        if layer is None and head is not None:
            self.notes.append(f"features: the input of its last linear layer, {self._short(head.features)!r}")
            return [head.features]
        if layer is None:
            reason = f"since no linear classifier was found at its end; {arg('layer')} names another tensor"
            self.notes.append(Message(f"features: {what}, {reason}"))
        return [instead]

    def _short(self, name: Any) -> str:
        """Return the name of a tensor as notes have it."""
        return str(name)


class OnnxReader(_GraphReader):
    """Reader of an ONNX file, run by onnxruntime with the wanted tensors among its outputs.

    Parameters
    ----------
    checkpoint : Checkpoint
        The file, the tensor that is wanted, and the way it becomes rows.
    device : str, optional
        ``"cpu"`` or ``"cuda"``; by default a GPU if onnxruntime can use one.
    """

    def __init__(self, checkpoint: Checkpoint, device: str | None = None) -> None:
        super().__init__(checkpoint)
        path = self.path
        self._graph = OnnxGraph(path)
        self.parameters = self._graph.parameters
        plain, remarks = open_session(path, device)
        self.notes.extend(remarks)
        inputs = plain.get_inputs()
        self._inputs = sorted(inputs, key=lambda i: i.name != "input_ids")  # a text's come first
        outputs = plain.get_outputs()
        flat = [o for o in outputs if len(o.shape or ()) == 2 and "float" in o.type]
        self._output = (flat or outputs)[0].name
        if len(outputs) > 1:
            self.notes.append(f"of its outputs {', '.join(o.name for o in outputs)}, {self._output} was taken")
        self._head = self._graph.head(self._output)
        axes = {o.name: len(o.type.tensor_type.shape.dim) for o in self._graph.model.graph.output}
        found = None if axes[self._output] <= 2 or self.layer or self._head else self._graph.largest_map()
        what = "its output" if found is None else f"the feature map {found!r}, pooled"
        self._wanted = self._choose(self._head, self._graph.every, self._graph.named, found or self._output, what)
        kept = [] if self._head is None else [self._output]
        self._names = [*dict.fromkeys([*self._wanted, *kept])]
        content = self._graph.with_outputs(self._names)
        self._session, _ = open_session(path, device, content)
        main = self._inputs[0]
        self._sizes = list(main.shape or [None])
        size = self._sizes[0]
        self._batch = size if isinstance(size, int) and size > 0 else None
        self.sides, self.preprocessing = self._own(main)

    def read(self, given: InputBatch) -> LayerOutputs:
        """Run a batch; where the batch size is fixed, the last row is repeated."""
        feeds = self._feeds(given)
        found = run_session(self._session, self.path, self._names, feeds, self._batch)
        values = dict(zip(self._names, found, strict=True))
        layers = {}
        for name in self._wanted:
            value = values[name]
            if value.dtype.kind != "f" or value.ndim < 1 or len(value) != len(given):
                raise InputError(
                    f"{self.path}: {name!r} gives {value.dtype} of shape {value.shape} for {len(given)} examples: name "
                    f"with {arg('layer')} a tensor of floating point that has a row for each."
                )
            is_default = self._head is not None and self.layer is None
            label = f"input of {self._head.logits}" if is_default and self._head else name
            layers[label] = value, value.ndim == 3 or (value.ndim == 4 and self._is_last())
        own = None
        scores = values.get(self._output)
        if self._head is not None and scores is not None and scores[0].size == scores.shape[1]:
            scores = scores.reshape(scores.shape[:2])  # some keep axes of one pixel
            made = next(n for n in self._graph.model.graph.node if self._output in n.output)
            ready, squashed = self._head.soft and made.op_type != "LogSoftmax", self._head.squashed
            own = as_probabilities(scores, ready=ready, squashed=squashed)
        return self.outputs(layers, own, given.mask)

    def gflops(self, given: InputBatch) -> float | None:
        """Count operations from the shapes in the graph."""
        x = next(iter(self._feeds(given).values()))
        shape = (self._batch or 1, *x.shape[1:])
        return self._graph.gflops(shape) if len(self._inputs) == 1 else None

    def digest(self) -> str | None:
        """Return a hash of the file, and of the weights beside it."""
        return file_digest(self.path, *(self.path.parent / f for f in self._graph.beside()))

    def _is_last(self) -> bool:
        """Tell if images and feature maps have their channels last."""
        sizes = self._sizes
        return len(sizes) == 4 and sizes[3] in (1, 3) and sizes[1] not in (1, 3)

    def _own(self, main: Any) -> tuple[tuple[int, int] | None, Prepare | None]:
        """Return the size of images that it takes, and its preprocessing where the input type tells."""
        if len(self._sizes) != 4:
            return None, None
        sides = self._sizes[1:3] if self._is_last() else self._sizes[2:]
        channels = self._sizes[3 if self._is_last() else 1]
        fixed = (sides[0], sides[1]) if all(isinstance(s, int) for s in sides) else None
        if main.type != _BYTES:
            return fixed, None
        self.notes.append("it takes bytes: pixels are given as they are")
        return fixed, Preprocessing(fixed, scale=255, channels="grey" if channels == 1 else "rgb")

    def _feeds(self, given: InputBatch) -> dict[str, NDArray[Any]]:
        x = given.x
        if len(self._sizes) == 4 and self._is_last() and x.shape[-1] != self._sizes[3]:
            x = np.moveaxis(x, 1, -1)
        named = {"attention_mask": given.mask, "token_type_ids": np.zeros_like(x)}
        feeds: dict[str, NDArray[Any]] = {self._inputs[0].name: x}
        for other in self._inputs[1:]:
            if named.get(other.name) is None:
                names = ", ".join(i.name for i in self._inputs)
                raise InputError(
                    f"{self.path} takes {len(self._inputs)} inputs ({names}): give one that takes "
                    "images, or tokens with their attention_mask."
                )
            feeds[other.name] = named[other.name]
        found = {}
        for about in self._inputs:
            kind = DTYPES.get(about.type)
            if kind is None:
                raise InputError(f"{self.path} takes {about.type}: export it for numbers.")
            value = feeds[about.name]
            value = np.rint(value) if value.dtype.kind == "f" and kind == np.uint8 else value
            found[about.name] = np.ascontiguousarray(value, dtype=kind)
        return found


# Roles of operations in the way back from the scores to the classifier: see ``Step``.
_ONNX_ROLES = {
    **dict.fromkeys(("Gemm", "MatMul"), "linear"),
    **dict.fromkeys(("Softmax", "LogSoftmax"), "softmax"),
    "Sigmoid": "sigmoid",
    **dict.fromkeys(("GlobalAveragePool", "AveragePool", "ReduceMean"), "pool"),
    **dict.fromkeys(
        (
            *("Add", "Mul", "Div", "Cast", "Clip", "Dropout", "Flatten", "Identity", "Relu"),
            *("Reshape", "Squeeze", "Unsqueeze", "DequantizeLinear", "QuantizeLinear"),
        ),
        "pass",
    ),
}
# ONNX's numbers of float32, float16, float64 and bfloat16.
_FLOAT = (1, 10, 11, 16)


class OnnxGraph:
    """Graph of an ONNX file.

    Parameters
    ----------
    path : Path
        The file.
    """

    def __init__(self, path: Path) -> None:
        with importing(f"{path} is an ONNX file, which needs onnx", "onnx"):
            import_module("onnx.shape_inference")  # which onnx does not import by itself
            self._onnx: Any = import_module("onnx")
        self.path = path
        try:
            self.model: Any = self._onnx.load(str(path), load_external_data=False)
        except Exception as error:  # protobuf's errors have no common base
            raise unreadable(path, error) from error
        graph = self.model.graph
        self.weights = {w.name: tuple(w.dims) for w in graph.initializer}
        for node in graph.node:  # where Paddle has them
            if node.op_type == "Constant" and node.attribute[0].name == "value":
                self.weights[node.output[0]] = tuple(node.attribute[0].t.dims)
        self.inputs = [i.name for i in graph.input if i.name not in self.weights]
        self._constant = {*self.weights}
        for node in graph.node:  # what is computed from weights alone, such as their transpose
            if all(name in self._constant or not name for name in node.input):
                self._constant.update(node.output)
        self.parameters = sum(map(prod, self.weights.values())) or None
        inferred, _ = self.shapes()
        self.weights.update({n: s for n, s in inferred.items() if n in self._constant})

    def beside(self) -> list[str]:
        """Return the files with weights that the file names, also in graphs inside of operations."""
        graphs, tensors = [self.model.graph], []
        for graph in graphs:  # grows
            given = [a for node in graph.node for a in node.attribute]
            graphs += [inner for a in given for inner in (*a.graphs, a.g) if inner.node]
            tensors += [*graph.initializer, *(t for a in given for t in (*a.tensors, a.t))]
        entries = [entry for tensor in tensors for entry in tensor.external_data]
        return sorted({entry.value for entry in entries if entry.key == "location"})

    def head(self, output: str) -> Head[str] | None:
        """Return the layer that the scores come from."""
        steps: dict[str, Step[str]] = {}
        for node in self.model.graph.node:
            given = tuple(n for n in node.input if n and n not in self._constant)
            steps.update(dict.fromkeys(node.output, Step(self._role(node), given)))
        return find_head(steps, output)

    def named(self, layer: str) -> str:
        """Return the tensor of that name, or the output of the node of that name."""
        nodes = {node.name: node.output[0] for node in self.model.graph.node if node.name}
        tensors = [name for node in self.model.graph.node for name in node.output if name]
        if layer in tensors:
            return layer
        if layer in nodes:
            return str(nodes[layer])
        some = suggest(layer, [*tensors, *nodes]) or f" Some are {list_names(tensors[-8:], 8)}."
        raise InputError(f"{self.path} has no tensor or node of that name.{some}", argument="layer", value=layer)

    def every(self) -> list[str]:
        """Return the tensors of floating point with the batch as their first axis, in order."""
        shapes, kinds = self.shapes()
        main = next(i for i in self.model.graph.input if i.name == self.inputs[0])
        batch = self._dims(main)[:1]
        return [
            name
            for node in self.model.graph.node
            for name in node.output
            if kinds.get(name) in _FLOAT
            and name not in self._constant
            and len(shapes[name]) > 1
            and shapes[name][:1] == batch
        ]

    def largest_map(self) -> str | None:
        """Return the last of the feature maps with the most channels; None where there are none.

        A network of mostly matrix products has none: what has four axes there is attention.
        """
        kinds_of = [node.op_type for node in self.model.graph.node]
        if kinds_of.count("Conv") <= kinds_of.count("MatMul"):
            return None
        shapes, kinds = self.shapes()
        maps = [
            (shape[1], name)
            for name, shape in shapes.items()
            if len(shape) == 4 and isinstance(shape[1], int) and kinds[name] in _FLOAT and name not in self._constant
        ]
        most = max((channels for channels, _ in maps), default=0)
        return next((name for channels, name in reversed(maps) if channels == most), None)

    def with_outputs(self, names: list[str]) -> bytes:
        """Return the file's content with further tensors among the outputs."""
        changed = deepcopy(self.model)
        there = {output.name for output in changed.graph.output}
        for name in names:
            if name not in there:
                changed.graph.output.append(self._onnx.ValueInfoProto(name=name))
        content: bytes = changed.SerializeToString()
        return content

    def gflops(self, shape: tuple[int, ...]) -> float | None:
        """Return 10⁹ operations for one input of a shape; None where a shape inside is not known."""
        shapes, _ = self.shapes(shape)
        total = 0
        for node in self.model.graph.node:
            if node.op_type not in ("Conv", "Gemm", "MatMul"):
                continue
            first, second = (self.weights.get(n, shapes.get(n, ())) for n in node.input[:2])
            out = shapes.get(node.output[0], ())
            each = second[1:] if node.op_type == "Conv" else first[-1:]
            if not out or not each or not all(isinstance(s, int) for s in (*out, *each)):
                return None
            total += 2 * prod(out) * prod(each)
        return total / shape[0] / 1e9

    def shapes(self, given: tuple[int, ...] | None = None) -> tuple[dict[str, tuple[Any, ...]], dict[str, int]]:
        """Return shapes and types by tensor, in the order they are computed, as far as they are known."""
        model = deepcopy(self.model)
        if given is not None:
            main = next(i for i in model.graph.input if i.name == self.inputs[0])
            for dim, size in zip(main.type.tensor_type.shape.dim, given, strict=False):
                dim.dim_value = size
        try:
            model = self._onnx.shape_inference.infer_shapes(model)
        except Exception:  # a graph that cannot be followed: nothing is known
            return {}, {}
        infos = {info.name: info for info in (*model.graph.value_info, *model.graph.output)}
        order = [n for node in model.graph.node for n in node.output if n in infos]
        shapes = {name: self._dims(infos[name]) for name in order}
        return shapes, {name: infos[name].type.tensor_type.elem_type for name in order}

    def _role(self, node: Any) -> str:
        if node.op_type == "Conv":
            sides = self.weights.get(node.input[1], (0, 0, 0))[2:]
            return "linear" if all(side == 1 for side in sides) else "other"
        return _ONNX_ROLES.get(node.op_type, "other")

    @staticmethod
    def _dims(info: Any) -> tuple[Any, ...]:
        return tuple(
            d.dim_value if d.HasField("dim_value") else d.dim_param or None for d in info.type.tensor_type.shape.dim
        )


_TFLITE_ROLES = {
    "FULLY_CONNECTED": "linear",
    **dict.fromkeys(("SOFTMAX", "LOG_SOFTMAX"), "softmax"),
    "LOGISTIC": "sigmoid",
    **dict.fromkeys(("AVERAGE_POOL_2D", "MEAN"), "pool"),
    **dict.fromkeys(
        (*("ADD", "DEQUANTIZE", "QUANTIZE", "RESHAPE", "SQUEEZE", "RELU", "RELU6"), *("MUL", "CAST", "EXPAND_DIMS")),
        "pass",
    ),
}


class TfliteReader(_GraphReader):
    """Reader of a TensorFlow Lite file, quantised or not, run by ai-edge-litert.

    Such files usually take one example at a time: several copies run in parallel.

    Parameters
    ----------
    checkpoint : Checkpoint
        The file, the tensor that is wanted, and the way it becomes rows.
    """

    def __init__(self, checkpoint: Checkpoint) -> None:
        super().__init__(checkpoint)
        path = self.path
        with importing(f"{path} is a TensorFlow Lite file, which needs ai-edge-litert", "tflite"):
            self._package = import_module("ai_edge_litert.interpreter")
        plain = self._open(inside=False, delegates=False)
        details = plain.get_tensor_details()
        self._about: dict[int, Any] = {about["index"]: about for about in details}
        self._ops = plain._get_ops_details()
        inputs, outputs = plain.get_input_details(), plain.get_output_details()
        if len(inputs) != 1:
            names = ", ".join(i["name"] for i in inputs)
            raise InputError(f"{path} takes {len(inputs)} inputs ({names}): give one that takes 1.")
        self._input, self._output = inputs[0], int(outputs[0]["index"])
        made = {int(i) for op in self._ops for i in op["outputs"]}
        self._computed = made | {int(self._input["index"])}
        if len(outputs) > 1:
            self.notes.append(f"of its {len(outputs)} outputs, {outputs[0]['name']} was taken")
        self.parameters = self._count()
        steps: dict[int, Step[int]] = {}
        for op in self._ops:
            given = tuple(int(i) for i in op["inputs"] if int(i) in self._computed)
            steps.update(dict.fromkeys(map(int, op["outputs"]), Step(self._role(op), given)))
        self._head = find_head(steps, self._output)
        self._wanted = self._choose(
            self._head, lambda: [i for i in steps if self._floating(i)], self._named, self._output, "its output"
        )
        shape = [int(s) for s in self._input["shape"]]
        self.sides = (shape[1], shape[2]) if len(shape) == 4 else None
        self.preprocessing = self._own(shape)
        inside = {*self._wanted, *([] if self._head is None else [self._head.logits])}
        affinity = getattr(os, "sched_getaffinity", None)  # not on every system
        self._workers = len(affinity(0)) if affinity else os.cpu_count() or 1
        self._free: SimpleQueue[Any] = SimpleQueue()
        for _ in range(self._workers):
            self._free.put(self._open(inside=inside != {self._output}, delegates=True))

    def read(self, given: InputBatch) -> LayerOutputs:
        """Run the examples of a batch, each by itself."""
        x = self._quantised(given)
        names = [*dict.fromkeys([*self._wanted, *([self._head.logits] if self._head else [])])]
        with ThreadPoolExecutor(self._workers) as pool:
            found = list(pool.map(lambda one: self._run(one[None], names), x))
        values = {name: np.concatenate([each[name] for each in found]) for name in names}
        tail = " (input of the last layer)" if self._head is not None and self.layer is None else ""
        layers = {self._short(name) + tail: (values[name], True) for name in self._wanted}
        own = None
        if self._head is not None:
            logits = pooled(values[self._head.logits], "mean", last=True)
            own = as_probabilities(logits, ready=False)
        return self.outputs(layers, own)

    def gflops(self, given: InputBatch) -> float | None:
        """Count operations from the shapes of weights and outputs."""
        total = 0
        for op in self._ops:
            inputs = [int(i) for i in op["inputs"]]
            out = prod(int(s) for s in self._about[int(op["outputs"][0])]["shape"])
            if op["op_name"] in ("CONV_2D", "FULLY_CONNECTED"):
                total += 2 * out * prod(int(s) for s in self._about[inputs[1]]["shape"][1:])
            elif op["op_name"] == "DEPTHWISE_CONV_2D":
                total += 2 * out * prod(int(s) for s in self._about[inputs[1]]["shape"][1:3])
            elif op["op_name"] in ("BATCH_MATMUL", "TRANSPOSE_CONV"):
                return None
        return total / int(self._input["shape"][0]) / 1e9

    def digest(self) -> str | None:
        """Return a hash of the file."""
        return file_digest(self.path)

    def _open(self, *, inside: bool, delegates: bool) -> Any:
        """Open a copy of the network; with ``inside``, all of its tensors can be read."""
        kinds = self._package.OpResolverType
        kind = kinds.BUILTIN if delegates else kinds.BUILTIN_WITHOUT_DEFAULT_DELEGATES
        try:
            with warnings.catch_warnings(), _without_chatter():
                warnings.filterwarnings("ignore", ".*experimental_preserve_all_tensors")
                copy = self._package.Interpreter(
                    str(self.path),
                    num_threads=1,
                    experimental_op_resolver_type=kind,
                    experimental_preserve_all_tensors=inside,
                )
                copy.allocate_tensors()
        except (ValueError, RuntimeError) as error:
            raise unreadable(self.path, error) from error
        return copy

    def _run(self, x: NDArray[Any], names: list[int]) -> dict[int, NDArray[np.float32]]:
        copy = self._free.get()
        try:
            copy.set_tensor(self._input["index"], x)
            copy.invoke()
            return {name: self._real(name, copy.get_tensor(name)) for name in names}
        except (ValueError, RuntimeError) as error:
            reason = str(error).strip().split("\n")[0][:300]
            raise InputError(f"{self.path} cannot be run on inputs of shape {x.shape} ({reason}).") from error
        finally:
            self._free.put(copy)

    def _real(self, name: int, stored: NDArray[Any]) -> NDArray[np.float32]:
        """Return the numbers that quantised bytes stand for."""
        scale, zero = self._about[name]["quantization"]
        found = stored.astype(np.float32)
        return (found - np.float32(zero)) * np.float32(scale) if scale else found

    def _quantised(self, given: InputBatch) -> NDArray[Any]:
        """Return inputs in the layout and quantisation of the network."""
        shape, kind = [int(s) for s in self._input["shape"]], self._input["dtype"]
        x = given.x
        if x.ndim == 4 and list(x.shape[1:]) != shape[1:]:
            x = np.moveaxis(x, 1, -1)
        if list(x.shape[1:]) != shape[1:] or shape[0] != 1:
            raise InputError(
                f"{self.path} takes inputs of shape {tuple(shape)}, and was given "
                f"{given.x.shape}: bring the data to this shape with {arg('preprocessing')}."
            )
        scale, zero = self._input["quantization"]
        if scale and np.issubdtype(kind, np.integer):
            limits = np.iinfo(kind)
            x = np.clip(np.rint(x / scale + zero), limits.min, limits.max)
        return np.ascontiguousarray(x.astype(kind))

    def _own(self, shape: list[int]) -> Prepare | None:
        """Return the preprocessing: bytes are pixels; for numbers such files do not specify one."""
        kind = self._input["dtype"]
        if len(shape) != 4 or kind not in (np.uint8, np.int8):
            return None
        scale, zero = self._input["quantization"]
        scale = scale or 1.0
        lowest = 0 if kind == np.uint8 else -128
        self.notes.append("it takes bytes: whole images are resized, their pixels given as they are")
        channels = "grey" if shape[3] == 1 else "rgb"
        return Preprocessing((shape[1], shape[2]), scale=255 * scale, mean=scale * (zero - lowest), channels=channels)

    def _role(self, op: Any) -> str:
        if op["op_name"] == "CONV_2D":
            sides = self._about[int(op["inputs"][1])]["shape"][1:3]
            return "linear" if all(int(s) == 1 for s in sides) else "other"
        return _TFLITE_ROLES.get(op["op_name"], "other")

    def _floating(self, index: int) -> bool:
        about = self._about[index]
        real = np.issubdtype(about["dtype"], np.floating) or about["quantization"][0] != 0
        return bool(real) and len(about["shape"]) > 1 and int(about["shape"][0]) == 1

    def _named(self, layer: str) -> int:
        names = {str(self._about[int(i)]["name"]): int(i) for op in self._ops for i in op["outputs"]}
        short = {name.split(";")[0]: i for name, i in names.items()}  # parts were merged into it
        found = {**short, **names}.get(layer)
        if found is None:
            some = suggest(layer, short) or f" Some are {list_names([*short][-8:], 8)}."
            raise InputError(f"{self.path} has no tensor of that name.{some}", argument="layer", value=layer)
        return found

    def _short(self, name: int) -> str:
        """Return the name of a tensor without those of parts that were merged into it."""
        return str(self._about[name]["name"]).split(";")[0]

    def _count(self) -> int | None:
        weights = {int(i) for op in self._ops for i in op["inputs"] if int(i) in self._about}
        kept = [self._about[i] for i in weights - self._computed]
        return sum(prod(int(s) for s in about["shape"]) for about in kept) or None


@contextmanager
def _without_chatter() -> Iterator[None]:
    """Suppress the line that LiteRT always writes to stderr; others are kept."""
    with tempfile.TemporaryFile() as aside:
        before = os.dup(2)
        os.dup2(aside.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(before, 2)
            os.close(before)
            aside.seek(0)
            os.write(2, b"".join(line for line in aside if not line.startswith(b"INFO: Created ")))


Tensor = TypeVar("Tensor", bound=Hashable)


@dataclass(frozen=True)
class Step(Generic[Tensor]):
    """Operation of a graph.

    Attributes
    ----------
    role : {"linear", "softmax", "sigmoid", "pool", "pass", "other"}
        A linear layer (a convolution of one pixel included); an operation that turns scores into
        probabilities, of all classes together or of each alone; a mean over places; one that
        keeps the order of scores or only moves them.
    inputs : tuple
        Its input tensors, without constants.
    """

    role: str
    inputs: tuple[Tensor, ...]


@dataclass(frozen=True)
class Head(Generic[Tensor]):
    """Last layer of a classifier.

    Attributes
    ----------
    features, logits : hashable
        Its input and output tensors.
    soft, squashed : bool
        True if the network turns its logits into probabilities: of all classes together, or of
        each alone.
    """

    features: Tensor
    logits: Tensor
    soft: bool
    squashed: bool = False


def find_head(steps: Mapping[Tensor, Step[Tensor]], output: Tensor) -> Head[Tensor] | None:
    """Go back from the output to the linear layer that the scores come from.

    A mean over places is passed only where probabilities come after it: a network without a
    classifier ends with one, too.

    Parameters
    ----------
    steps : mapping
        Operation that each computed tensor comes from.
    output : hashable
        Output tensor of the network.

    Examples
    --------
    >>> steps = {"p": Step("softmax", ("s",)), "s": Step("linear", ("f",))}
    >>> find_head(steps, "p")
    Head(features='f', logits='s', soft=True, squashed=False)
    """
    soft, squashed, at = False, False, output
    while at in steps:
        step = steps[at]
        if len(step.inputs) != 1:
            return None
        if step.role == "linear":
            return Head(step.inputs[0], at, soft, squashed)
        if step.role == "other" or (step.role == "pool" and not soft):
            return None
        soft, squashed = soft or step.role == "softmax", squashed or step.role == "sigmoid"
        at = step.inputs[0]
    return None
