"""Graphs of ONNX files: where their features are, and how many operations they take."""

from __future__ import annotations

from importlib import import_module
from math import prod
from pathlib import Path
from typing import Any

from curvewise.errors import InputError, MissingDependencyError
from curvewise.io._table import brief, listed, suggest
from curvewise.nn._feature_graph import Head, Step, find_head
from curvewise.nn._files import unreadable

_ROLES = {
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
_FLOAT = (1, 10, 11, 16)  # float32, float16, float64, bfloat16


class OnnxGraph:
    """The operations of an ONNX file.

    Parameters
    ----------
    path : Path
        The file.
    """

    def __init__(self, path: Path) -> None:
        self._onnx: Any = _package(path)
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
        """Files with weights that the file names; also those of graphs inside of operations."""
        graphs, tensors = [self.model.graph], []
        for graph in graphs:  # grows
            given = [a for node in graph.node for a in node.attribute]
            graphs += [inner for a in given for inner in (*a.graphs, a.g) if inner.node]
            tensors += [*graph.initializer, *(t for a in given for t in (*a.tensors, a.t))]
        entries = [entry for tensor in tensors for entry in tensor.external_data]
        return sorted({entry.value for entry in entries if entry.key == "location"})

    def head(self, output: str) -> Head[str] | None:
        """The layer that the scores come from."""
        steps: dict[str, Step[str]] = {}
        for node in self.model.graph.node:
            given = tuple(n for n in node.input if n and n not in self._constant)
            steps.update(dict.fromkeys(node.output, Step(self._role(node), given)))
        return find_head(steps, output)

    def named(self, layer: str) -> str:
        """The tensor of that name, or that a node of that name gives."""
        nodes = {node.name: node.output[0] for node in self.model.graph.node if node.name}
        tensors = [name for node in self.model.graph.node for name in node.output if name]
        if layer in tensors:
            return layer
        if layer in nodes:
            return str(nodes[layer])
        raise InputError(
            f"layer={brief(layer)}: {self.path} has no tensor or node of that name."
            f"{suggest(layer, [*tensors, *nodes]) or f' Some are {listed(tensors[-8:], 8)}.'}"
        )

    def every(self) -> list[str]:
        """Tensors of floating point with the batch as their first axis, in order."""
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
        """The last of the feature maps that have the most channels; None where there are none.

        A network of mostly matrix products has none: what has four axes there is attention.
        """
        kinds_of = [node.op_type for node in self.model.graph.node]
        if kinds_of.count("Conv") <= kinds_of.count("MatMul"):
            return None
        shapes, kinds = self.shapes()
        maps = [
            (shape[1], name)
            for name, shape in shapes.items()
            if len(shape) == 4
            and isinstance(shape[1], int)
            and kinds[name] in _FLOAT
            and name not in self._constant
        ]
        most = max((channels for channels, _ in maps), default=0)
        return next((name for channels, name in reversed(maps) if channels == most), None)

    def with_outputs(self, names: list[str]) -> bytes:
        """The file's content with further tensors among the outputs."""
        changed = type(self.model)()
        changed.CopyFrom(self.model)
        there = {output.name for output in changed.graph.output}
        for name in names:
            if name not in there:
                changed.graph.output.append(self._onnx.ValueInfoProto(name=name))
        content: bytes = changed.SerializeToString()
        return content

    def gflops(self, shape: tuple[int, ...]) -> float | None:
        """10⁹ operations for one input of a shape; None where a shape inside is not known."""
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

    def shapes(
        self, given: tuple[int, ...] | None = None
    ) -> tuple[dict[str, tuple[Any, ...]], dict[str, int]]:
        """Shapes and types by tensor, in the order they are computed, as far as they are known."""
        model = type(self.model)()
        model.CopyFrom(self.model)
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
        return _ROLES.get(node.op_type, "other")

    @staticmethod
    def _dims(info: Any) -> tuple[Any, ...]:
        return tuple(
            d.dim_value if d.HasField("dim_value") else d.dim_param or None
            for d in info.type.tensor_type.shape.dim
        )


def _package(path: Path) -> Any:
    try:
        import_module("onnx.shape_inference")
        return import_module("onnx")
    except ImportError as error:
        raise MissingDependencyError(
            f"{path}: finding the features in an ONNX file needs onnx, which is not installed: "
            'pip install "curvewise[onnx]".'
        ) from error
