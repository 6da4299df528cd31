"""Features out of TensorFlow Lite files, run by ai-edge-litert, quantised or not."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib import import_module
from math import prod
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError, MissingDependencyError
from curvewise.io._table import brief, listed, suggest
from curvewise.nn._feature_graph import Head, Step, find_head
from curvewise.nn._feature_reader import OUTPUT, Found, Given, Taken
from curvewise.nn._files import file_digest, unreadable
from curvewise.nn._own_preprocessing import Prepare
from curvewise.nn._pooling import as_probabilities, places_of, pooled
from curvewise.nn._preprocessing import Preprocessing

_ROLES = {
    "FULLY_CONNECTED": "linear",
    **dict.fromkeys(("SOFTMAX", "LOG_SOFTMAX"), "softmax"),
    "LOGISTIC": "sigmoid",
    **dict.fromkeys(("AVERAGE_POOL_2D", "MEAN"), "pool"),
    **dict.fromkeys(
        (
            *("ADD", "DEQUANTIZE", "QUANTIZE", "RESHAPE", "SQUEEZE", "RELU", "RELU6"),
            *("MUL", "CAST", "EXPAND_DIMS"),
        ),
        "pass",
    ),
}


class TfliteReader:
    """A network of a TensorFlow Lite file.

    Such files take one example at a time as a rule: several copies run side by side.

    Parameters
    ----------
    path : Path
        The file.
    taken : Taken
        Which tensor, and how it becomes rows.
    """

    def __init__(self, path: Path, taken: Taken) -> None:
        self.path, self.taken = path, taken
        self._package = _package(path)
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
        self.notes: list[str] = []
        self.most: int | None = None
        if len(outputs) > 1:
            self.notes.append(f"of its {len(outputs)} outputs, {outputs[0]['name']} was taken")
        self.parameters: int | None = self._count()
        self._wanted, self._head = self._choose()
        shape = [int(s) for s in self._input["shape"]]
        self.sides = (shape[1], shape[2]) if len(shape) == 4 else None
        self.preprocessing = self._own(shape)
        inside = {*self._wanted, *([] if self._head is None else [self._head.logits])}
        self._workers = _processors()
        self._free: SimpleQueue[Any] = SimpleQueue()
        for _ in range(self._workers):
            self._free.put(self._open(inside=inside != {self._output}, delegates=True))

    def running(self) -> AbstractContextManager[None]:
        """Nothing has to be put back."""
        return nullcontext()

    def start(self, given: Given) -> None:
        """Nothing is found by running: the graph was read."""

    def read(self, given: Given) -> Found:
        """Run the examples of a batch, each by itself."""
        x = self._quantised(given)
        names = [*dict.fromkeys([*self._wanted, *([self._head.logits] if self._head else [])])]
        with ThreadPoolExecutor(self._workers) as pool:
            found = list(pool.map(lambda one: self._run(one[None], names), x))
        values = {name: np.concatenate([each[name] for each in found]) for name in names}
        rows, places = {}, {}
        for name in self._wanted:
            shown = self._shown(name)
            rows[shown] = pooled(values[name], self.taken.pool, last=True)
            if self.taken.pool == "tokens":
                places[shown] = places_of(values[name], last=True, mask=None)
        own = None
        if self._head is not None:
            logits = pooled(values[self._head.logits], "mean", last=True)
            own = as_probabilities(logits, ready=False)
        return Found(rows, own, places)

    def gflops(self, given: Given) -> float | None:
        """Counted from the shapes of weights and outputs."""
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
        """A hash of the file."""
        return file_digest(self.path)

    def _open(self, *, inside: bool, delegates: bool) -> Any:
        """One copy of the network; with ``inside``, all of its tensors can be looked at."""
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
            said = str(error).strip().split("\n")[0][:300]
            raise InputError(
                f"{self.path} cannot be run on inputs of shape {x.shape} ({said})."
            ) from error
        finally:
            self._free.put(copy)

    def _real(self, name: int, stored: NDArray[Any]) -> NDArray[np.float32]:
        """Numbers out of the bytes that stand for them."""
        scale, zero = self._about[name]["quantization"]
        found = stored.astype(np.float32)
        return (found - np.float32(zero)) * np.float32(scale) if scale else found

    def _quantised(self, given: Given) -> NDArray[Any]:
        """Inputs in the layout and as the bytes that the network takes."""
        shape, kind = [int(s) for s in self._input["shape"]], self._input["dtype"]
        x = given.x
        if x.ndim == 4 and list(x.shape[1:]) != shape[1:]:
            x = np.moveaxis(x, 1, -1)
        if list(x.shape[1:]) != shape[1:] or shape[0] != 1:
            raise InputError(
                f"{self.path} takes inputs of shape {tuple(shape)}, and was given "
                f"{given.x.shape}: bring the data to this shape with preprocessing=."
            )
        scale, zero = self._input["quantization"]
        if scale and np.issubdtype(kind, np.integer):
            limits = np.iinfo(kind)
            x = np.clip(np.rint(x / scale + zero), limits.min, limits.max)
        return np.ascontiguousarray(x.astype(kind))

    def _own(self, shape: list[int]) -> Prepare | None:
        """Bytes in are pixels; what numbers in would be is not said by such files."""
        kind = self._input["dtype"]
        if len(shape) != 4 or kind not in (np.uint8, np.int8):
            return None
        scale, zero = self._input["quantization"]
        scale = scale or 1.0
        lowest = 0 if kind == np.uint8 else -128
        self.notes.append(
            "it takes bytes: whole images are resized, their pixels given as they are"
        )
        channels = "grey" if shape[3] == 1 else "rgb"
        return Preprocessing(
            (shape[1], shape[2]), scale=255 * scale, mean=scale * (zero - lowest), channels=channels
        )

    def _choose(self) -> tuple[list[int], Head[int] | None]:
        """The tensors to take, and the head where there is one."""
        steps: dict[int, Step[int]] = {}
        for op in self._ops:
            given = tuple(int(i) for i in op["inputs"] if int(i) in self._computed)
            steps.update(dict.fromkeys(map(int, op["outputs"]), Step(self._role(op), given)))
        head, layer = find_head(steps, self._output), self.taken.layer
        if layer == "all":
            return [i for i in steps if self._floating(i)], head
        if layer not in (None, OUTPUT):
            return [self._named(str(layer), steps)], head
        if head is not None and layer is None:
            name = self._about[head.features]["name"].split(";")[0]
            self.notes.append(f"features: what its last linear layer is given, {name!r}")
            return [head.features], head
        if layer is None:
            self.notes.append(
                "features: its output, since no linear classifier was found at its end; layer= "
                "names another tensor"
            )
        return [self._output], head

    def _role(self, op: Any) -> str:
        if op["op_name"] == "CONV_2D":
            sides = self._about[int(op["inputs"][1])]["shape"][1:3]
            return "linear" if all(int(s) == 1 for s in sides) else "other"
        return _ROLES.get(op["op_name"], "other")

    def _floating(self, index: int) -> bool:
        about = self._about[index]
        real = np.issubdtype(about["dtype"], np.floating) or about["quantization"][0] != 0
        return bool(real) and len(about["shape"]) > 1 and int(about["shape"][0]) == 1

    def _named(self, layer: str, steps: dict[int, Step[int]]) -> int:
        names = {str(self._about[i]["name"]): i for i in steps}
        short = {name.split(";")[0]: i for name, i in names.items()}  # parts were merged into it
        found = {**short, **names}.get(layer)
        if found is None:
            raise InputError(
                f"layer={brief(layer)}: {self.path} has no tensor of that name."
                f"{suggest(layer, short) or f' Some are {listed([*short][-8:], 8)}.'}"
            )
        return found

    def _shown(self, name: int) -> str:
        text = str(self._about[name]["name"]).split(";")[0]
        return f"{text} (input of the last layer)" if self._is_default() else text

    def _is_default(self) -> bool:
        return self._head is not None and self.taken.layer is None

    def _count(self) -> int | None:
        weights = {int(i) for op in self._ops for i in op["inputs"] if int(i) in self._about}
        kept = [self._about[i] for i in weights - self._computed]
        return sum(prod(int(s) for s in about["shape"]) for about in kept) or None


@contextmanager
def _without_chatter() -> Iterator[None]:
    """Leave out the line that LiteRT writes to stderr whenever all is well; others are kept."""
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


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _package(path: Path) -> Any:
    try:
        return import_module("ai_edge_litert.interpreter")
    except ImportError as error:
        raise MissingDependencyError(
            f"{path} is a TensorFlow Lite file, and ai-edge-litert is not installed: pip install "
            '"curvewise[tflite]".'
        ) from error
