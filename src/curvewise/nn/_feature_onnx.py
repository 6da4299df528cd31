"""Features out of ONNX files, run by onnxruntime with the tensors wanted among its outputs."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError
from curvewise.nn._feature_graph import Head
from curvewise.nn._feature_reader import OUTPUT, Found, Given, Taken
from curvewise.nn._files import file_digest
from curvewise.nn._onnx import DTYPES, open_session, run_session
from curvewise.nn._onnx_graph import OnnxGraph
from curvewise.nn._own_preprocessing import Prepare
from curvewise.nn._pooling import as_probabilities, places_of, pooled
from curvewise.nn._preprocessing import Preprocessing

_BYTES = "tensor(uint8)"


class OnnxReader:
    """A network of an ONNX file.

    Parameters
    ----------
    path : Path
        The file.
    taken : Taken
        Which tensor, and how it becomes rows.
    device : str, optional
        ``"cpu"`` or ``"cuda"``; by default a GPU if onnxruntime can use one.
    """

    def __init__(self, path: Path, taken: Taken, device: str | None = None) -> None:
        self.path, self.taken = path, taken
        self._graph = OnnxGraph(path)
        self.parameters: int | None = self._graph.parameters
        self.notes: list[str] = []
        self.most: int | None = None
        plain, told = open_session(path, device)
        self.notes.extend(told)
        inputs = plain.get_inputs()
        self._inputs = sorted(inputs, key=lambda i: i.name != "input_ids")  # a text's come first
        self._output, chosen = self._scores(plain.get_outputs())
        self.notes.extend(chosen)
        self._wanted, self._head = self._choose()
        kept = [] if self._head is None else [self._output]
        self._names = [*dict.fromkeys([*self._wanted, *kept])]
        content = self._graph.with_outputs(self._names)
        self._session, _ = open_session(path, device, content)
        main = self._inputs[0]
        self._sizes = list(main.shape or [None])
        size = self._sizes[0]
        self._batch = size if isinstance(size, int) and size > 0 else None
        self.sides, self.preprocessing = self._own(main)

    def running(self) -> AbstractContextManager[None]:
        """Nothing has to be put back."""
        return nullcontext()

    def start(self, given: Given) -> None:
        """Nothing is found by running: the graph was read."""

    def read(self, given: Given) -> Found:
        """Run a batch; where the batch size is fixed, the last row fills the last one up."""
        feeds = self._feeds(given)
        found = run_session(self._session, self.path, self._names, feeds, self._batch)
        values = dict(zip(self._names, found, strict=True))
        rows, places = {}, {}
        for name in self._wanted:
            value = self._checked(name, values[name], len(given))
            last = value.ndim == 3 or (value.ndim == 4 and self._is_last())
            shown = self._shown(name)
            rows[shown] = pooled(value, self.taken.pool, last=last, mask=given.mask)
            if self.taken.pool == "tokens":
                places[shown] = places_of(value, last=last, mask=given.mask)
        own = None
        scores = values.get(self._output)
        if self._head is not None and scores is not None and scores[0].size == scores.shape[1]:
            scores = scores.reshape(scores.shape[:2])  # some keep axes of one pixel
            ready, squashed = self._head.soft and not self._logs(), self._head.squashed
            own = as_probabilities(scores, ready=ready, squashed=squashed)
        return Found(rows, own, places)

    def gflops(self, given: Given) -> float | None:
        """Counted from the shapes in the graph."""
        x = next(iter(self._feeds(given).values()))
        shape = (self._batch or 1, *x.shape[1:])
        return self._graph.gflops(shape) if len(self._inputs) == 1 else None

    def digest(self) -> str | None:
        """A hash of the file, and of the weights beside it."""
        return file_digest(self.path, *(self.path.parent / f for f in self._graph.beside()))

    def _choose(self) -> tuple[list[str], Head[str] | None]:
        """The tensors to take, and the head where there is one."""
        head = self._graph.head(self._output)
        layer = self.taken.layer
        if layer == "all":
            return self._graph.every(), head
        if layer not in (None, OUTPUT):
            return [self._graph.named(str(layer))], head
        if head is not None and layer is None:
            self.notes.append(f"features: what its last linear layer is given, {head.features!r}")
            return [head.features], head
        found = None if layer == OUTPUT or self._flat() else self._graph.largest_map()
        if layer is None:
            what = "its output" if found is None else f"the feature map {found!r}, pooled"
            self.notes.append(
                f"features: {what}, since no linear classifier was found at its end; layer= names "
                "another tensor"
            )
        return [found or self._output], head

    def _flat(self) -> bool:
        outputs = {o.name: o for o in self._graph.model.graph.output}
        return len(outputs[self._output].type.tensor_type.shape.dim) <= 2

    def _logs(self) -> bool:
        made = next(n for n in self._graph.model.graph.node if self._output in n.output)
        return bool(made.op_type == "LogSoftmax")

    def _shown(self, name: str) -> str:
        is_default = self._head is not None and self.taken.layer is None
        return f"input of {self._head.logits}" if is_default and self._head else name

    def _scores(self, outputs: Any) -> tuple[str, tuple[str, ...]]:
        flat = [o for o in outputs if len(o.shape or ()) == 2 and "float" in o.type]
        chosen = (flat or outputs)[0].name
        if len(outputs) == 1:
            return chosen, ()
        return chosen, (f"of its outputs {', '.join(o.name for o in outputs)}, {chosen} was taken",)

    def _is_last(self) -> bool:
        """Whether images go in with their channels last, and so do its feature maps."""
        sizes = self._sizes
        return len(sizes) == 4 and sizes[3] in (1, 3) and sizes[1] not in (1, 3)

    def _own(self, main: Any) -> tuple[tuple[int, int] | None, Prepare | None]:
        """The size of images that it takes, and what to do to pixels where that is plain."""
        if len(self._sizes) != 4:
            return None, None
        sides = self._sizes[1:3] if self._is_last() else self._sizes[2:]
        channels = self._sizes[3 if self._is_last() else 1]
        fixed = (sides[0], sides[1]) if all(isinstance(s, int) for s in sides) else None
        if main.type != _BYTES:
            return fixed, None
        self.notes.append("it takes bytes: pixels are given as they are")
        return fixed, Preprocessing(fixed, scale=255, channels="grey" if channels == 1 else "rgb")

    def _feeds(self, given: Given) -> dict[str, NDArray[Any]]:
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

    def _checked(self, name: str, value: NDArray[Any], examples: int) -> NDArray[Any]:
        if value.dtype.kind != "f" or value.ndim < 1 or len(value) != examples:
            raise InputError(
                f"{self.path}: {name!r} gives {value.dtype} of shape {value.shape} for "
                f"{examples} examples: name with layer= a tensor of floating point that has a row "
                "for each."
            )
        return value
