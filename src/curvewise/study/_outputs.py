"""Read and check what a command of one's own left in its folder."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import parse_reason
from curvewise.study._classes import one_hot
from curvewise.study._numbers import as_predicted

TEST = "test"
LARGEST_JSON = 1_000_000  # bytes
SUM_TOLERANCE = 0.01  # softmax in half precision is off by about a thousandth


class BadOutput(Exception):
    """A file is missing or holds something else than expected; the message says what."""


def read_set(out: Path, name: str, examples: int, classes: int) -> tuple[NDArray[np.float32], bool]:
    """Read the predictions for one evaluation set.

    Returns
    -------
    probabilities : ndarray of float32, shape (examples, classes)
        As given, or 0 and 1 from predicted classes.
    hard : bool
        Whether they come from predicted classes.
    """
    suffix = "" if name == TEST else f".{name}"
    by_class = out / f"predictions{suffix}.npy"
    by_probability = out / f"probabilities{suffix}.npy"
    if not by_class.exists() and not by_probability.exists():
        there = ", ".join(sorted(p.name for p in out.iterdir())) or "nothing"
        raise BadOutput(
            f"it left neither {by_class.name} nor {by_probability.name} for the evaluation set "
            f"{name!r}: write one of them to the folder {{out}}. There is {there}."
        )
    predicted = _read_classes(by_class, examples, classes) if by_class.exists() else None
    if not by_probability.exists():
        assert predicted is not None
        return one_hot(predicted, classes, by_class.name), True
    probabilities = _read_probabilities(by_probability, examples, classes)
    if predicted is not None:
        _check_agreement(by_class, predicted, by_probability, probabilities)
    return probabilities, False


def read_numbers(out: Path, name: str, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Read the predicted numbers for one evaluation set, in the shape of its targets."""
    path = out / f"predictions{'' if name == TEST else f'.{name}'}.npy"
    expected = f"expected finite numbers of shape {shape}, that of the targets"
    if not path.exists():
        there = ", ".join(sorted(p.name for p in out.iterdir())) or "nothing"
        raise BadOutput(
            f"it left no {path.name} for the evaluation set {name!r}: write it to the folder "
            f"{{out}}; {expected}. There is {there}."
        )
    try:
        numbers = as_predicted(_read_array(path, expected), shape, path.name)
    except ValueError as error:
        raise BadOutput(str(error)) from error
    if not np.isfinite(numbers).all():
        raise BadOutput(f"{path.name} holds NaN or infinity: {expected}.")
    return numbers


def read_metrics(out: Path) -> dict[str, float]:
    """Read ``metrics.json``, if there is one."""
    path = out / "metrics.json"
    if not path.exists():
        return {}
    expected = 'expected numbers by name, such as {"train_error": 0.01}'
    if path.stat().st_size > LARGEST_JSON:
        raise BadOutput(f"{path.name} is {path.stat().st_size:,} bytes long: {expected}.")
    try:
        found = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise BadOutput(f"{path.name} is not JSON ({parse_reason(error)}): {expected}.") from error
    if not isinstance(found, dict):
        raise BadOutput(f"{path.name} holds a {type(found).__name__}: {expected}.")
    for name, value in found.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise BadOutput(f"{path.name} has {name!r}: {value!r:.80}: {expected}.")
        if not math.isfinite(value):
            raise BadOutput(f"{path.name} has {name!r}: {value}: leave out what is not finite.")
    return {name: float(value) for name, value in found.items()}


def _read_classes(path: Path, examples: int, classes: int) -> NDArray[Any]:
    expected = (
        f"expected whole numbers of shape ({examples},), from 0 to {classes - 1}: the class of "
        "each example"
    )
    array = _read_array(path, expected)
    if array.dtype.kind not in "iu":
        raise BadOutput(f"{path.name} holds {array.dtype}: {expected}.")
    if array.shape != (examples,):
        raise BadOutput(f"{path.name} has shape {array.shape}: {expected}.")
    if array.min() < 0 or array.max() >= classes:
        raise BadOutput(
            f"{path.name} holds numbers from {array.min()} to {array.max()}: {expected}."
        )
    return array


def _read_probabilities(path: Path, examples: int, classes: int) -> NDArray[np.float32]:
    expected = f"expected fractions of shape ({examples}, {classes}), each row with the sum 1"
    array = _read_array(path, expected)
    if array.dtype.kind != "f":
        raise BadOutput(f"{path.name} holds {array.dtype}: {expected}.")
    if array.shape != (examples, classes):
        raise BadOutput(f"{path.name} has shape {array.shape}: {expected}.")
    wide = array.astype(np.float64)
    if not np.isfinite(wide).all():
        raise BadOutput(f"{path.name} holds NaN or infinity: {expected}.")
    sums = wide.sum(axis=1)
    if wide.min() < 0 or wide.max() > 1 + SUM_TOLERANCE or abs(sums - 1).max() > SUM_TOLERANCE:
        raise BadOutput(
            f"{path.name} holds values from {wide.min():.4g} to {wide.max():.4g}, with sums from "
            f"{sums.min():.4g} to {sums.max():.4g}: {expected}. Apply a softmax to logits."
        )
    return wide.astype(np.float32)


def _read_array(path: Path, expected: str) -> NDArray[Any]:
    try:  # mapped first, so that a header that lies about its size costs no memory
        return np.array(np.lib.format.open_memmap(path, mode="r"))
    except (ValueError, EOFError, OSError, OverflowError) as error:
        raise BadOutput(
            f"{path.name} cannot be read as a .npy file without Python objects ({error}): "
            f"{expected}."
        ) from error


def _check_agreement(
    by_class: Path,
    predicted: NDArray[Any],
    by_probability: Path,
    probabilities: NDArray[np.float32],
) -> None:
    own = probabilities[np.arange(len(predicted)), predicted.astype(np.int64)]
    against = int((own < probabilities.max(axis=1)).sum())
    if against:
        raise BadOutput(
            f"{by_class.name} and {by_probability.name} disagree: for {against} of "
            f"{len(predicted)} examples the predicted class is not the most probable one. Write "
            "only the one that is meant."
        )
