"""From examples as they are stored to batches as a checkpoint takes them."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

import numpy as np

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.nn._feature_inputs import Batch, Inputs
from curvewise.nn._feature_items import as_array, is_network, is_torch, kind_of_numbers
from curvewise.nn._feature_reader import Given, Reader
from curvewise.nn._own_preprocessing import Prepare, as_preprocessing
from curvewise.nn._preprocessing import Preprocessing, put_together
from curvewise.nn.checkpoints import Checkpoint

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


def preparation(
    checkpoint: Checkpoint, reader: Reader, inputs: Inputs, first: Batch
) -> Preparation:
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
    return Preparation(
        lambda batch: Given(_taken_by(reader, _floating(batch))), "numbers as they are", notes
    )


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
            f"preprocessing gave shape {tuple(found.shape)} for {len(batch)} images: it must give "
            "a row for each."
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
        found = tokenizer(
            list(batch), padding=True, truncation=True, max_length=length, return_tensors="np"
        )
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
        from curvewise.nn.tokens import load_tokenizer

        return load_tokenizer(given)
    return given
