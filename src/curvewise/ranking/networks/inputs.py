"""Examples in the order that every checkpoint reads them, and their preparation for a checkpoint."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError, arg, either
from curvewise.nn.task import Examples, choose_rows, is_amount, is_pair, standardised
from curvewise.ranking.measure import label_array, warn
from curvewise.ranking.networks.checkpoints import Checkpoint, InputBatch, Reader
from curvewise.ranking.networks.preprocessing import (
    Prepare,
    Preprocessing,
    as_array,
    as_preprocessing,
    is_network,
    is_picture,
    is_torch,
    layout_of,
    pair_of,
    pixels_of,
    put_together,
)

# An array with a row for each example; a list of texts, or of images of several sizes.
Batch = NDArray[Any] | list[Any]
# Examples that are read at a time to be hashed: photographs are large.
_READ = 32
# Tokens of a text that are kept where neither network nor tokenizer has a limit.
LONGEST = 512
NOT_APPLIED = (
    "Images of floating point are given to the network as they are, so the preprocessing was not applied: give images "
    "of uint8, from 0 to 255, for it."
)


class Inputs:
    """Examples in their order: images as pixels, tokens, texts, or numbers as they are.

    Parameters
    ----------
    source : array, sequence of str, Dataset
        Anything with a length whose examples are indexed by their positions.
    labels : ndarray, optional
        A label for each example of the source.
    rows : ndarray of int
        Positions of the examples to read.
    layout : {"first", "last"}, optional
        Place of the channels of images; needed where their shape does not tell.
    mean, std : tuple of float, optional
        Normalisation of images that the data specifies, for networks that were trained on it.
    padding : int, optional
        Padding token.
    preprocessing : Preprocessing or callable, optional
        For networks without preprocessing of their own.
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
            raise InputError("use 'first' or 'last', where the channels are.", argument="layout", value=layout)
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
        """Yield all examples in their order, so many at a time."""
        labels: list[Any] = []
        for first in range(0, len(self), size):
            here = self.rows[first : first + size]
            if self._texts:
                yield [str(self.source[int(i)]) for i in here]
            elif self._arrays:
                # A slice where rows are consecutive: no copy of a memory map.
                whole = len(here) and here[-1] - here[0] == len(here) - 1
                place = slice(here[0], here[-1] + 1) if whole else here
                indexed = isinstance(self.source, np.ndarray) or whole
                yield self._laid(as_array(self.source[place if indexed else here.tolist()]))
            else:
                pairs = [pair_of(self._item(int(i))) for i in here]
                labels.extend(label for _, label in pairs)
                yield self._together([x for x, _ in pairs])
        if labels and self._labels is None and all(label is not None for label in labels):
            self._labels = np.stack([np.asarray(label) for label in labels])

    def digest(self) -> str:
        """Return a hash of every example and their order, computed once."""
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
            reason = str(error).strip().split("\n")[0][:300]
            raise InputError(
                f"data: example {row} cannot be read ({type(error).__name__}: {reason}): mend it, or "
                "leave it out, such as with torch.utils.data.Subset."
            ) from error

    def _laid(self, x: NDArray[Any]) -> NDArray[Any]:
        """Return images of bytes with their channels first; everything else as it is."""
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
        """Return examples of a dataset as one array, or in a list where their sizes differ."""
        if items and isinstance(items[0], str):
            return items
        found = [pixels_of(item) if is_picture(item) else self._one(item) for item in items]
        if len({tuple(x.shape) for x in found}) == 1:
            return np.stack(found)
        if all(x.dtype == np.uint8 and x.ndim == 3 for x in found):
            return found
        raise InputError(
            "gives inputs of several shapes that are not images of bytes: bring all to one "
            "shape, such as with a transform.",
            argument="data",
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
    """Make the examples for checkpoints from whatever holds them; nothing is read yet.

    Parameters
    ----------
    data : ndarray, Tensor, list of str, Examples, (inputs, labels), Dataset or DataLoader
        Images of uint8 are pixels; numbers of floating point are what the network takes; other
        whole numbers are tokens. Of a DataLoader, the examples that its sampler gives are taken;
        of data of a study, those to train on.
    labels : array_like, optional
        Where data holds inputs only.
    examples : int or float, optional
        Number of examples, or below 1 their share, drawn at random; all by default. They keep
        their order.
    layout : {"first", "last"}, optional
        Place of the channels of images, if their shape does not tell.
    preprocessing : Preprocessing, dict, object or callable, optional
        For images of bytes and checkpoints without preprocessing of their own.
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
        raise InputError("give a whole number of at least 1, or a share below 1.", argument="examples", value=examples)
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
        from curvewise.nn.data import sampled_rows

        if is_torch(data.dataset, "IterableDataset", "torch.utils.data"):
            raise InputError(
                "is a stream (IterableDataset), which every checkpoint would have to read again: "
                "give a dataset with a length, or arrays.",
                argument="data",
            )
        data, known = data.dataset, sampled_rows(data, len(data.dataset), 0)
    source = _checked(data)
    if labels is not None and len(labels) != len(source):
        raise InputError(f"has {len(source):,} examples and labels {len(labels):,}.", argument="data")
    there = np.arange(len(source)) if known is None else known
    rows = there[np.sort(choose_rows(len(there), examples, np.random.default_rng(rng)))]
    if is_torch(labels, "Tensor"):
        labels = labels.detach().cpu().numpy()
    return Inputs(source, None if labels is None else label_array(labels), rows, **about)


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
                f"is a {type(data).__name__} of things that differ in shape: give one array, "
                "pictures of Pillow, or a Dataset.",
                argument="data",
            ) from error
    if isinstance(data, np.ndarray) and data.dtype.kind not in "fiubU":
        raise InputError(f"holds {data.dtype}: give numbers or texts.", argument="data")
    if is_torch(data, "IterableDataset", "torch.utils.data") or not (
        hasattr(data, "__len__") and hasattr(data, "__getitem__")
    ):
        raise InputError(
            f"is a {type(data).__name__}: give arrays, texts, or a dataset with a length.", argument="data"
        )
    if not len(data):
        raise InputError("is empty: give at least one example.", argument="data")
    return data


def _are_texts(data: Any) -> bool:
    if isinstance(data, np.ndarray):
        return bool(data.dtype.kind == "U")
    return isinstance(data, list | tuple) and len(data) > 0 and all(isinstance(text, str) for text in data)


@dataclass(frozen=True, eq=False)
class Preparation:
    """Preparation of batches for one checkpoint.

    Attributes
    ----------
    ready : callable
        From a stored batch to the network's inputs.
    description : str, optional
        All that determines it, as text; None where that is not known.
    notes : tuple of str
        How images were interpreted.
    """

    ready: Callable[[Batch], InputBatch]
    description: str | None
    notes: tuple[str, ...] = ()

    def __call__(self, batch: Batch) -> InputBatch:
        """Prepare a batch."""
        return self.ready(batch)


def are_images(batch: Batch) -> bool:
    """Tell if a batch holds pixels: bytes with channels, height and width."""
    return _is_of(batch[0], "uint8") and batch[0].ndim == 3


def given_preprocessing(checkpoint: Checkpoint, inputs: Inputs) -> Prepare | None:
    """Return the preprocessing that is known before the checkpoint is opened: the user's, then that of the data."""
    if checkpoint.preprocessing is not None:
        return as_preprocessing(checkpoint.preprocessing)
    if inputs.preprocessing is not None:
        return inputs.preprocessing
    if inputs.mean is not None and inputs.std is not None:
        channels = "grey" if len(inputs.mean) == 1 else "rgb"
        return Preprocessing(mean=inputs.mean, std=inputs.std, channels=channels)
    return None


def input_shape(known: Prepare | None, batch: Batch) -> tuple[int, ...]:
    """Return the shape of one input after preprocessing, as far as that is known."""
    first = batch[0]
    if not hasattr(first, "dtype"):
        return (1,)
    if are_images(batch) and isinstance(known, Preprocessing):
        return known.shape(int(first.shape[1]), int(first.shape[2]))
    return tuple(first.shape)


def preparation(checkpoint: Checkpoint, reader: Reader, inputs: Inputs, first: Batch) -> Preparation:
    """Choose the preparation of examples for a checkpoint that was opened.

    Networks of torch are given tensors, all others arrays.

    Raises
    ------
    InputError
        Texts without a tokenizer, or pixels without any preprocessing.
    """
    if isinstance(first[0], str):
        return _of_texts(checkpoint, reader)
    if are_images(first):
        return _of_images(checkpoint, reader, inputs)
    if _is_of(first, "int64"):
        return _of_tokens(reader, inputs)
    notes: tuple[str, ...] = ()
    if not isinstance(first, list) and first.ndim == 4:  # images of floating point
        if checkpoint.preprocessing is not None or inputs.preprocessing is not None:
            warn(NOT_APPLIED)
            notes = (NOT_APPLIED,)
        elif reader.preprocessing is not None:
            notes = ("images are of floating point and taken as prepared: no preprocessing was done",)

    def ready(batch: Any) -> InputBatch:
        if _is_of(batch, "uint8"):
            batch = batch.float() if is_torch(batch, "Tensor") else batch.astype(np.float32)
        return InputBatch(_for_reader(reader, batch))

    return Preparation(ready, "numbers as they are", notes)


def _is_of(value: Any, kind: str) -> bool:
    """Tell if an array or tensor has numbers of a type."""
    return hasattr(value, "dtype") and str(value.dtype).removeprefix("torch.") == kind


def _for_reader(reader: Reader, batch: Any) -> Any:
    """Return arrays as tensors for a network of torch; anything else as it is."""
    return _as_tensor(batch) if hasattr(reader, "device") else batch


def _as_tensor(batch: Any) -> Any:
    if find_spec("torch") is None or is_torch(batch, "Tensor"):
        return batch
    import torch

    return torch.from_numpy(batch)


def _of_images(checkpoint: Checkpoint, reader: Reader, inputs: Inputs) -> Preparation:
    """Prepare pixels by the checkpoint's own preprocessing, or by that of the data or the user."""
    known = None if checkpoint.preprocessing is None else as_preprocessing(checkpoint.preprocessing)
    is_function = checkpoint.path is None and not is_network(checkpoint.source)
    if known is None and inputs.preprocessing is None and is_function:
        return Preparation(InputBatch, "pixels as they are")
    known = known or reader.preprocessing or given_preprocessing(checkpoint, inputs)
    if known is None:
        python = "preprocessing=Preprocessing(size=256, crop=224, mean=(.485, .456, .406), std=(.229, .224, .225))"
        command = (
            "--preprocess size=256 --preprocess crop=224 --preprocess mean=[0.485,0.456,0.406] "
            "--preprocess std=[0.229,0.224,0.225]"
        )
        raise InputError(
            f"the preprocessing of {checkpoint.name!r} is not known, and the data holds images of bytes: say what it "
            f"was trained with, such as {either(python, command)}; "
            f"{either('Preprocessing()', '--preprocess scale=1')} only brings pixels to 0…1."
        )
    if not isinstance(known, Preprocessing):
        own = known
        return Preparation(lambda batch: _by_function(own, batch, reader), None)
    notes: tuple[str, ...] = ()
    if reader.sides is not None and known.size is None and known.crop is None:
        known = replace(known, size=reader.sides)
        notes = (f"images are resized to {reader.sides[0]} × {reader.sides[1]}, which it takes",)
    made, place = known, getattr(reader, "device", None)

    def ready(batch: Batch) -> InputBatch:
        if place is None:
            return InputBatch(made(batch))
        if isinstance(batch, list):
            return InputBatch(made([_for_reader(reader, image).to(place) for image in batch]))
        # Resized on the network's device: bytes are moved faster than floats.
        return InputBatch(made(_for_reader(reader, batch).to(place)))

    return Preparation(ready, repr(made), notes)


def _by_function(function: Callable[[Any], Any], batch: Batch, reader: Reader) -> InputBatch:
    """Prepare images by a function of the user's: all at once, or one by one if sizes differ.

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
    return InputBatch(found)


def _of_tokens(reader: Reader, inputs: Inputs) -> Preparation:
    """Give tokens as they are, with a mask where the padding token is known."""
    config = getattr(getattr(reader, "model", None), "config", None)
    padding = inputs.padding
    if padding is None:
        padding = getattr(config, "pad_token_id", None)

    def ready(batch: Batch) -> InputBatch:
        x = _for_reader(reader, batch)
        return InputBatch(x, None if padding is None else x != padding)

    return Preparation(ready, f"tokens, padding {padding}")


def _of_texts(checkpoint: Checkpoint, reader: Reader) -> Preparation:
    """Turn texts into tokens, padded to the longest of each batch."""
    is_function = checkpoint.path is None and not is_network(checkpoint.source)
    if is_function and checkpoint.tokenizer is None:
        return Preparation(InputBatch, "texts as they are")
    tokenizer = _tokenizer(checkpoint)
    if tokenizer.pad_token_id is None:
        raise InputError(f"the tokenizer of {checkpoint.name!r} has no padding token: set one.")
    config = getattr(getattr(reader, "model", None), "config", None)
    most = getattr(config, "max_position_embeddings", None)
    if isinstance(most, int):
        most -= 2 if "roberta" in getattr(config, "model_type", "") else 0  # which never uses its first two positions
    limits = (getattr(tokenizer, "model_max_length", None), most if isinstance(most, int) and most > 0 else None)
    length = checkpoint.length or min([n for n in limits if n and n < 10**6] or [LONGEST])

    def ready(batch: Batch) -> InputBatch:
        found = tokenizer(list(batch), padding=True, truncation=True, max_length=length, return_tensors="np")
        ids, mask = (_for_reader(reader, found[key]) for key in ("input_ids", "attention_mask"))
        return InputBatch(ids, mask != 0)

    return Preparation(ready, _described(tokenizer, length), (f"texts are cut to {length} tokens",))


def _described(tokenizer: Any, length: int) -> str | None:
    """Return all that determines tokens, as text; None where that is not known."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        return None
    # The state of truncation and padding is left over from the last texts.
    about = {**json.loads(backend.to_str()), "truncation": None, "padding": None}
    sides = tokenizer.padding_side, tokenizer.truncation_side, tokenizer.pad_token_id
    return json.dumps([about, length, *sides])


def _tokenizer(checkpoint: Checkpoint) -> Any:
    """Return the tokenizer of a checkpoint, its own or that of its folder."""
    given = checkpoint.tokenizer
    path = checkpoint.path
    if given is None and path is not None and path.is_dir():
        given = path
    if given is None:
        raise InputError(
            f"the tokenizer of {checkpoint.name!r} is missing, and the data holds texts: pass {arg('tokenizer')}, an "
            "object or a folder of Hugging Face, or give tokens."
        )
    if isinstance(given, str | os.PathLike):
        from curvewise.nn.files.datasets import load_tokenizer

        return load_tokenizer(given)
    return given
