"""Which checkpoints can be fine-tuned, and on what."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from curvewise.errors import CurvewiseError
from curvewise.nn._feature_inputs import Inputs
from curvewise.nn._feature_opening import open_reader, stored_features
from curvewise.nn._feature_preparing import given_preprocessing, input_shape, preparation
from curvewise.nn._feature_script import ScriptReader
from curvewise.nn._feature_torch import TorchReader, call_plain
from curvewise.nn.checkpoints import Checkpoint, as_checkpoints
from curvewise.nn.finetuning import Tunable
from curvewise.types.features import CheckpointFeatures

PRECISIONS = ("float32", "bfloat16")
BATCH = 256


def find_networks(
    checkpoints: Any, inputs: Inputs, device: str | None = None, precision: str = "float32"
) -> dict[str, Tunable]:
    """Networks of torch that can be trained, by name, with the examples as they take them.

    Examples are kept as they are stored and made ready by the checkpoint's own preprocessing a
    batch at a time. Networks that take more than one tensor (texts) are left out, as is whatever
    is no network of torch.
    """
    stored = _stored(inputs)
    if stored is None:
        return {}
    options = {"device": device, "precision": precision if precision in PRECISIONS else "float32"}
    found = {}
    for checkpoint in as_checkpoints(checkpoints):
        reader = _reader(checkpoint, inputs, device)
        if reader is None:
            continue
        first: Any = stored[: min(2, len(stored))]
        ready = preparation(checkpoint, reader, inputs, first)
        if ready(first).mask is None:
            prepare = _Prepare(ready)
            found[checkpoint.name] = Tunable(reader.model, stored, {**options, "prepare": prepare})
    return found


class _Prepare:
    """Makes a network's inputs out of stored ones, on their device."""

    def __init__(self, ready: Any) -> None:
        self.ready = ready

    def __call__(self, batch: Tensor) -> Tensor:
        found: Tensor = self.ready(batch).x
        return found.to(batch.device)


def _stored(inputs: Inputs) -> Tensor | None:
    """All examples as one tensor, where they are of one shape."""
    batches = list(inputs.batches(BATCH))
    arrays = [batch for batch in batches if isinstance(batch, np.ndarray)]
    if len(arrays) < len(batches) or len({batch.shape[1:] for batch in arrays}) > 1:
        return None
    return torch.from_numpy(np.concatenate(arrays))


def _reader(checkpoint: Checkpoint, inputs: Inputs, device: str | None) -> TorchReader | None:
    """What runs a network that can be trained; None for anything else."""
    if isinstance(checkpoint.source, CheckpointFeatures):
        return None
    try:
        if stored_features(checkpoint) is not None:
            return None
        first = next(iter(inputs.batches(min(2, len(inputs)))))
        shape = input_shape(given_preprocessing(checkpoint, inputs), first)
        reader = open_reader(checkpoint, shape, device, "float32")
    except (CurvewiseError, OSError, RuntimeError):  # told when its features were asked for
        return None
    if isinstance(reader, ScriptReader) or not isinstance(reader, TorchReader):
        return None
    return reader if reader.call is call_plain and reader.parameters else None
