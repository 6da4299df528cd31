"""Examples that every checkpoint is shown: in one order, read a batch at a time."""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.nn.task import Examples, choose_rows, is_amount, is_pair, standardised
from curvewise.ranking.networks.checkpoints import Checkpoint, Given, Reader
from curvewise.ranking.networks.preprocessing import (
    Prepare,
    Preprocessing,
    as_array,
    as_preprocessing,
    is_network,
    is_picture,
    is_torch,
    kind_of_numbers,
    layout_of,
    pair_of,
    pixels_of,
    put_together,
)

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
        raise InputError(f"examples={examples!r}: give a whole number of at least 1, or a share below 1.")
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
    from curvewise.nn.data import sampled_rows

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
        raise InputError(f"data is a {type(data).__name__}: give arrays, texts, or a dataset with a length.")
    if not len(data):
        raise InputError("data is empty: give at least one example.")
    return data


def _are_texts(data: Any) -> bool:
    if isinstance(data, np.ndarray):
        return bool(data.dtype.kind == "U")
    return isinstance(data, list | tuple) and len(data) > 0 and all(isinstance(text, str) for text in data)


def _taken(source: Any, rows: NDArray[np.int64]) -> Any:
    if len(rows) and rows[-1] - rows[0] == len(rows) - 1:
        return source[rows[0] : rows[-1] + 1]
    return source[rows] if isinstance(source, np.ndarray) else source[rows.tolist()]


# From examples as they are stored to batches as a checkpoint takes them.

LONGEST = 512
"""Tokens that are kept of a text where neither network nor tokenizer says how many."""

NOT_APPLIED = (
    "Images of floating point are taken as the network takes them, so the preprocessing given was "
    "not applied: give images of uint8, from 0 to 255, for it."
)


@dataclass(frozen=True, eq=False)
class Preparation:
    """How batches are made ready.

    Attributes
    ----------
    ready : callable
        From a stored batch to what the network takes.
    said : str, optional
        All that determines it, as text; None where that cannot be told.
    notes : tuple of str
        What was taken for what.
    """

    ready: Callable[[Batch], Given]
    said: str | None
    notes: tuple[str, ...] = ()

    def __call__(self, batch: Batch) -> Given:
        """Prepare a batch."""
        return self.ready(batch)


def are_images(batch: Batch) -> bool:
    """Whether a batch holds pixels: bytes with channels, height and width."""
    return _is_of(batch[0], "uint8") and batch[0].ndim == 3


def given_preprocessing(checkpoint: Checkpoint, inputs: Inputs) -> Prepare | None:
    """What is known before the checkpoint is opened: what the user says, then the data."""
    if checkpoint.preprocessing is not None:
        return as_preprocessing(checkpoint.preprocessing)
    if inputs.preprocessing is not None:
        return inputs.preprocessing
    if inputs.mean is not None and inputs.std is not None:
        channels = "grey" if len(inputs.mean) == 1 else "rgb"
        return Preprocessing(mean=inputs.mean, std=inputs.std, channels=channels)
    return None


def input_shape(known: Prepare | None, batch: Batch) -> tuple[int, ...]:
    """Shape of one input after preprocessing, as far as that is known."""
    first = batch[0]
    if not hasattr(first, "dtype"):
        return (1,)
    if are_images(batch) and isinstance(known, Preprocessing):
        return known.shape(int(first.shape[1]), int(first.shape[2]))
    return tuple(first.shape)


def preparation(checkpoint: Checkpoint, reader: Reader, inputs: Inputs, first: Batch) -> Preparation:
    """How the examples are made ready for a checkpoint that was opened.

    Networks of torch are given tensors, all others arrays.

    Raises
    ------
    InputError
        Texts without a tokenizer, or pixels and no word on what the network takes.
    """
    if isinstance(first[0], str):
        return _of_texts(checkpoint, reader)
    if are_images(first):
        return _of_images(checkpoint, reader, inputs)
    if _is_of(first, "int64"):
        return _of_tokens(reader, inputs)
    is_image = not isinstance(first, list) and first.ndim == 4
    notes = _left_alone(checkpoint, reader, inputs) if is_image else ()
    return Preparation(lambda batch: Given(_taken_by(reader, _floating(batch))), "numbers as they are", notes)


def _is_of(value: Any, kind: str) -> bool:
    return hasattr(value, "dtype") and kind_of_numbers(value) == kind


def _taken_by(reader: Reader, batch: Any) -> Any:
    """Arrays as tensors for a network of torch; anything else as it is."""
    return _as_tensor(batch) if hasattr(reader, "device") else batch


def _as_tensor(batch: Any) -> Any:
    if find_spec("torch") is None or is_torch(batch, "Tensor"):
        return batch
    import torch

    return torch.from_numpy(batch)


def _floating(batch: Any) -> Any:
    if not _is_of(batch, "uint8"):
        return batch
    return batch.float() if is_torch(batch, "Tensor") else batch.astype(np.float32)


def _left_alone(checkpoint: Checkpoint, reader: Reader, inputs: Inputs) -> tuple[str, ...]:
    """What is said of images that are no pixels; a warning where someone asked for more."""
    if checkpoint.preprocessing is not None or inputs.preprocessing is not None:
        warnings.warn(NOT_APPLIED, CurvewiseWarning, stacklevel=5)
        return (NOT_APPLIED,)
    if reader.preprocessing is not None:
        return ("images are of floating point and taken as prepared: no preprocessing was done",)
    return ()


def _of_images(checkpoint: Checkpoint, reader: Reader, inputs: Inputs) -> Preparation:
    known = None if checkpoint.preprocessing is None else as_preprocessing(checkpoint.preprocessing)
    is_function = checkpoint.path is None and not is_network(checkpoint.source)
    if known is None and inputs.preprocessing is None and is_function:
        return Preparation(Given, "pixels as they are")
    known = known or reader.preprocessing or given_preprocessing(checkpoint, inputs)
    if known is None:
        raise InputError(
            f"preprocessing of {checkpoint.name!r} is not known, and the data holds images of "
            "bytes: say what it was trained with, such as preprocessing=Preprocessing(size=256, "
            "crop=224, mean=(.485, .456, .406), std=(.229, .224, .225)); Preprocessing() only "
            "brings pixels to 0…1."
        )
    if not isinstance(known, Preprocessing):
        own = known
        return Preparation(lambda batch: _by_function(own, batch, reader), None)
    notes: tuple[str, ...] = ()
    if reader.sides is not None and known.size is None and known.crop is None:
        known = replace(known, size=reader.sides)
        notes = (f"images are resized to {reader.sides[0]} × {reader.sides[1]}, which it takes",)
    made, place = known, getattr(reader, "device", None)

    def ready(batch: Batch) -> Given:
        if place is None:
            return Given(made(batch))
        if isinstance(batch, list):
            return Given(made([_taken_by(reader, image).to(place) for image in batch]))
        # resized where the network is: bytes are moved faster
        return Given(made(_taken_by(reader, batch).to(place)))

    return Preparation(ready, repr(made), notes)


def _by_function(function: Callable[[Any], Any], batch: Batch, reader: Reader) -> Given:
    """Images prepared by a function of the user's: all at once, or one by one if sizes differ.

    It is given tensors where torch is installed, and arrays otherwise.
    """

    def one(images: Any) -> Any:
        found = function(_as_tensor(images))
        if not hasattr(reader, "device"):
            return as_array(found)
        return found if is_torch(found, "Tensor") else _as_tensor(np.array(found))

    if isinstance(batch, list):
        parts = [one(image[None]) for image in batch]
        found = put_together(parts)
    else:
        found = one(batch)
    if len(found) != len(batch):
        raise InputError(
            f"preprocessing gave shape {tuple(found.shape)} for {len(batch)} images: it must give a row for each."
        )
    return Given(found)


def _of_tokens(reader: Reader, inputs: Inputs) -> Preparation:
    config = getattr(getattr(reader, "model", None), "config", None)
    padding = inputs.padding
    if padding is None:
        padding = getattr(config, "pad_token_id", None)

    def ready(batch: Batch) -> Given:
        x = _taken_by(reader, batch)
        return Given(x, None if padding is None else x != padding)

    return Preparation(ready, f"tokens, padding {padding}")


def _of_texts(checkpoint: Checkpoint, reader: Reader) -> Preparation:
    """Tokens of texts, filled up to the longest of each batch."""
    is_function = checkpoint.path is None and not is_network(checkpoint.source)
    if is_function and checkpoint.tokenizer is None:
        return Preparation(Given, "texts as they are")
    tokenizer = _tokenizer(checkpoint)
    if tokenizer.pad_token_id is None:
        raise InputError(f"the tokenizer of {checkpoint.name!r} has no padding token: set one.")
    config = getattr(getattr(reader, "model", None), "config", None)
    limits = (getattr(tokenizer, "model_max_length", None), _positions(config))
    length = checkpoint.length or min([n for n in limits if n and n < 10**6] or [LONGEST])

    def ready(batch: Batch) -> Given:
        found = tokenizer(list(batch), padding=True, truncation=True, max_length=length, return_tensors="np")
        ids, mask = (_taken_by(reader, found[key]) for key in ("input_ids", "attention_mask"))
        return Given(ids, mask != 0)

    return Preparation(ready, _said_of(tokenizer, length), (f"texts are cut to {length} tokens",))


def _said_of(tokenizer: Any, length: int) -> str | None:
    """All that determines tokens; how the last texts were cut and filled up is no part of it."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        return None
    about = {**json.loads(backend.to_str()), "truncation": None, "padding": None}
    sides = tokenizer.padding_side, tokenizer.truncation_side, tokenizer.pad_token_id
    return json.dumps([about, length, *sides])


def _positions(config: Any) -> int | None:
    """How many tokens a network takes; some count two positions that are never used."""
    most = getattr(config, "max_position_embeddings", None)
    unused = 2 if "roberta" in getattr(config, "model_type", "") else 0
    return None if not isinstance(most, int) or most < 1 else most - unused


def _tokenizer(checkpoint: Checkpoint) -> Any:
    given = checkpoint.tokenizer
    path = checkpoint.path
    if given is None and path is not None and path.is_dir():
        given = path
    if given is None:
        raise InputError(
            f"tokenizer of {checkpoint.name!r} is missing, and the data holds texts: pass "
            "tokenizer=, an object or a folder of Hugging Face, or give tokens."
        )
    if isinstance(given, str | os.PathLike):
        from curvewise.nn.files.datasets import load_tokenizer

        return load_tokenizer(given)
    return given
