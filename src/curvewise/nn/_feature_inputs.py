"""Examples that every checkpoint is shown: in one order, read a batch at a time."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError
from curvewise.nn._feature_items import (
    as_array,
    is_picture,
    is_torch,
    layout_of,
    pair_of,
    pixels_of,
)
from curvewise.nn._own_preprocessing import Prepare, as_preprocessing
from curvewise.nn.task import Examples, choose_rows, is_amount, is_pair, standardised

Batch = NDArray[Any] | list[Any]
"""An array with a row for each example; a list of texts, or of images of several sizes."""

_READ = 32
"""Examples that are read at a time to be hashed: photographs are large."""


class Inputs:
    """Examples in their order: images as pixels, tokens, texts, or numbers as they are.

    Parameters
    ----------
    source : array, sequence of str, Dataset
        Anything with a length whose examples can be asked for by their positions.
    labels : ndarray, optional
        A label for each example of the source.
    rows : ndarray of int
        Positions of the examples that are shown.
    layout : {"first", "last"}, optional
        Where images have their channels; needed where their shape does not tell.
    mean, std : tuple of float, optional
        What the data says images are normalised with, for networks that were trained on it.
    padding : int, optional
        The token that stands for nothing.
    preprocessing : Preprocessing or callable, optional
        For networks that bring none along.
    """

    def __init__(
        self,
        source: Any,
        labels: NDArray[Any] | None,
        rows: NDArray[np.int64],
        *,
        layout: str | None = None,
        mean: tuple[float, ...] | None = None,
        std: tuple[float, ...] | None = None,
        padding: int | None = None,
        preprocessing: Prepare | None = None,
    ) -> None:
        if layout not in (None, "first", "last"):
            raise InputError(f"layout={layout!r}: use 'first' or 'last', where the channels are.")
        self.source, self.rows, self.layout = source, rows, layout
        self.total = len(source)
        self.mean, self.std, self.padding = mean, std, padding
        self.preprocessing = preprocessing
        self._arrays = isinstance(source, np.ndarray) or is_torch(source, "Tensor")
        self._texts = _are_texts(source)
        self._labels = None if labels is None else labels[rows]
        self._digest: str | None = None

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def labels(self) -> NDArray[Any] | None:
        """Labels of the examples; those of a dataset are read once, with the examples."""
        if self._labels is None and not (self._arrays or self._texts):
            for _ in self.batches(_READ):
                pass
        return self._labels

    def batches(self, size: int) -> Iterator[Batch]:
        """All examples in their order, so many at a time."""
        labels: list[Any] = []
        for first in range(0, len(self), size):
            here = self.rows[first : first + size]
            if self._texts:
                yield [str(self.source[int(i)]) for i in here]
            elif self._arrays:
                yield self._laid(as_array(_taken(self.source, here)))
            else:
                pairs = [pair_of(self._item(int(i))) for i in here]
                labels.extend(label for _, label in pairs)
                yield self._together([x for x, _ in pairs])
        if labels and self._labels is None and all(label is not None for label in labels):
            self._labels = np.stack([np.asarray(label) for label in labels])

    def digest(self) -> str:
        """A hash of every example and their order, computed once."""
        if self._digest is None:
            found = hashlib.sha256(repr((len(self), self.layout, self.padding)).encode())
            for batch in self.batches(_READ):
                for part in [batch] if isinstance(batch, np.ndarray) else batch:
                    if isinstance(part, np.ndarray):
                        found.update(repr((part.shape, part.dtype.str)).encode())
                        part = part.tobytes()
                    else:
                        part = part.encode()
                    found.update(len(part).to_bytes(8, "little") + part)
            self._digest = found.hexdigest()
        return self._digest

    def _item(self, row: int) -> Any:
        try:
            return self.source[row]
        except Exception as error:  # whatever a dataset of someone else's may raise
            said = str(error).strip().split("\n")[0][:300]
            raise InputError(
                f"data: example {row} cannot be read ({type(error).__name__}: {said}): mend it, or "
                "leave it out, such as with torch.utils.data.Subset."
            ) from error

    def _laid(self, x: NDArray[Any]) -> NDArray[Any]:
        """Images of bytes with their channels first; everything else as it is."""
        if x.dtype.kind == "f" and x.ndim == 4 and self.layout == "last":
            return np.moveaxis(x, -1, 1)
        if x.dtype != np.uint8 or self.padding is not None or x.ndim < 3:
            return x
        if x.ndim == 3:
            return x[:, None]  # grey images without an axis for it
        layout = self.layout or layout_of(tuple(x.shape))
        return np.moveaxis(x, -1, 1) if layout == "last" else x

    def _one(self, item: Any) -> NDArray[Any]:
        one: NDArray[Any] = self._laid(as_array(item)[None])[0]
        return one

    def _together(self, items: list[Any]) -> Batch:
        """Examples of a dataset as one array, or in a list where their sizes differ."""
        if items and isinstance(items[0], str):
            return items
        found = [pixels_of(item) if is_picture(item) else self._one(item) for item in items]
        if len({tuple(x.shape) for x in found}) == 1:
            return np.stack(found)
        if all(x.dtype == np.uint8 and x.ndim == 3 for x in found):
            return found
        raise InputError(
            "data gives inputs of several shapes that are not images of bytes: bring all to one "
            "shape, such as with a transform."
        )


def read_inputs(
    data: Any,
    labels: Any = None,
    *,
    examples: float | None = None,
    layout: str | None = None,
    preprocessing: Any = None,
    rng: int | np.random.Generator = 0,
) -> Inputs:
    """Examples for checkpoints out of whatever holds them; nothing is read yet.

    Parameters
    ----------
    data : ndarray, Tensor, list of str, Examples, (inputs, labels), Dataset or DataLoader
        Images of uint8 are pixels; numbers of floating point are what the network takes; other
        whole numbers are tokens. Of a DataLoader, the examples that its sampler gives are taken;
        of data of a study, those to train on.
    labels : array_like, optional
        Where data holds inputs only.
    examples : int or float, optional
        How many, or below 1 which share, drawn at random; all by default. They keep their order.
    layout : {"first", "last"}, optional
        Where images have their channels, if that cannot be told from their shape.
    preprocessing : Preprocessing, dict, object or callable, optional
        For images of bytes and checkpoints that bring none along.
    rng : int or Generator
        Decides which examples.

    Examples
    --------
    >>> inputs = read_inputs(np.zeros((10, 8, 8, 3), np.uint8), np.arange(10), examples=4)
    >>> len(inputs), [tuple(x.shape) for x in inputs.batches(3)]
    (4, [(3, 3, 8, 8), (1, 3, 8, 8)])
    """
    default = None if preprocessing is None else as_preprocessing(preprocessing)
    if isinstance(data, Inputs):
        data.preprocessing = default or data.preprocessing
        return data
    if examples is not None and not is_amount(examples):
        raise InputError(
            f"examples={examples!r}: give a whole number of at least 1, or a share below 1."
        )
    about: dict[str, Any] = {"layout": layout, "preprocessing": default}
    if isinstance(data, Examples):
        about.update(mean=data.mean, std=data.std, padding=data.padding)
        data, labels = standardised(data), data.y if labels is None else labels
    elif isinstance(getattr(data, "x", None), np.ndarray) and hasattr(data, "y"):
        about.update(padding=getattr(data, "padding", None), layout=layout or "first")
        data, labels = data.x, data.y if labels is None else labels
    elif labels is None and is_pair(data) and not _are_texts(data):
        data, labels = data
    known = None
    if is_torch(data, "DataLoader", "torch.utils.data"):
        data, known = _from_loader(data)
    source = _checked(data)
    if labels is not None and len(labels) != len(source):
        raise InputError(f"data has {len(source):,} examples and labels {len(labels):,}.")
    there = np.arange(len(source)) if known is None else known
    rows = there[np.sort(choose_rows(len(there), examples, np.random.default_rng(rng)))]
    if is_torch(labels, "Tensor"):
        labels = labels.detach().cpu().numpy()
    return Inputs(source, None if labels is None else np.asarray(labels), rows, **about)


def _from_loader(loader: Any) -> tuple[Any, NDArray[np.int64] | None]:
    from curvewise.nn._loading import sampled_rows

    if is_torch(loader.dataset, "IterableDataset", "torch.utils.data"):
        raise InputError(
            "data is a stream (IterableDataset), which every checkpoint would have to read anew: "
            "give a dataset with a length, or arrays."
        )
    return loader.dataset, sampled_rows(loader, len(loader.dataset), 0)


def _checked(data: Any) -> Any:
    if hasattr(data, "to_numpy"):  # a table, or a column of texts
        data = data.to_numpy()
        if data.dtype == object and data.ndim == 1 and _are_texts(data.tolist()):
            return data.tolist()
    if is_torch(data, "Tensor"):
        data = data.detach()
    elif not isinstance(data, np.ndarray) and isinstance(data, Sequence):
        if _are_texts(data) or (len(data) and (isinstance(data[0], tuple) or is_picture(data[0]))):
            return data
        try:
            data = np.asarray(data)
        except ValueError as error:
            raise InputError(
                f"data is a {type(data).__name__} of things that differ in shape: give one array, "
                "pictures of Pillow, or a Dataset."
            ) from error
    if isinstance(data, np.ndarray) and data.dtype.kind not in "fiubU":
        raise InputError(f"data holds {data.dtype}: give numbers or texts.")
    if is_torch(data, "IterableDataset", "torch.utils.data") or not (
        hasattr(data, "__len__") and hasattr(data, "__getitem__")
    ):
        raise InputError(
            f"data is a {type(data).__name__}: give arrays, texts, or a dataset with a length."
        )
    if not len(data):
        raise InputError("data is empty: give at least one example.")
    return data


def _are_texts(data: Any) -> bool:
    if isinstance(data, np.ndarray):
        return bool(data.dtype.kind == "U")
    return (
        isinstance(data, list | tuple)
        and len(data) > 0
        and all(isinstance(text, str) for text in data)
    )


def _taken(source: Any, rows: NDArray[np.int64]) -> Any:
    if len(rows) and rows[-1] - rows[0] == len(rows) - 1:
        return source[rows[0] : rows[-1] + 1]
    return source[rows] if isinstance(source, np.ndarray) else source[rows.tolist()]
