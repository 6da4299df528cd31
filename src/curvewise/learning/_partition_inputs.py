"""Check what :func:`partition_training_set` is given and turn it into whole numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import InputError
from curvewise.learning._allocation import IntArray
from curvewise.types import check_labelled

MOST_FOLDS = 16  # more subsets than this of one size cost training time and say little more


def class_codes(
    labels_or_count: ArrayLike | int, stratify: bool, per_class: bool
) -> tuple[IntArray, list[Any]]:
    """Turn labels into class numbers from 0 and class names; one class where they do not matter."""
    if per_class and not stratify:
        raise InputError("per_class=True needs the classes: leave stratify=True.")
    if isinstance(labels_or_count, int | np.integer) and not isinstance(labels_or_count, bool):
        if stratify:
            raise InputError(
                f"labels_or_count={labels_or_count} is a count, which has no classes: pass the "
                "labels, or stratify=False."
            )
        if labels_or_count < 1:
            raise InputError(f"labels_or_count={labels_or_count}: at least 1 example is needed.")
        return np.zeros(int(labels_or_count), dtype=np.int64), ["all"]
    labels = np.asarray(labels_or_count)
    if labels.ndim != 1 or labels.size == 0:
        raise InputError(
            f"labels_or_count has shape {labels.shape}: pass one label per example, or a count."
        )
    return _label_codes(labels) if stratify else (np.zeros(len(labels), dtype=np.int64), ["all"])


def _label_codes(labels: NDArray[Any]) -> tuple[IntArray, list[Any]]:
    missing = np.array(
        [_is_missing(v) for v in labels.tolist()] if labels.dtype.kind in "fOM" else []
    )
    if missing.any():
        raise InputError(
            f"labels_or_count holds {int(missing.sum())} missing label(s), the first at position "
            f"{int(missing.argmax())}: drop these examples or give them a class."
        )
    if labels.dtype.kind == "f" and np.any(labels != np.round(labels)):
        raise InputError(
            "labels_or_count holds numbers that are not whole, which cannot be classes: pass "
            "stratify=False for a continuous target."
        )
    check_labelled(labels, "labels_or_count")
    try:
        names, codes = np.unique(labels, return_inverse=True)
    except TypeError as error:
        raise InputError(
            "labels_or_count mixes labels that cannot be compared, such as numbers and strings: "
            "use one type."
        ) from error
    return codes.astype(np.int64), names.tolist()


def _is_missing(label: object) -> bool:
    return label is None or (not isinstance(label, str) and str(label) in {"nan", "NaT", "<NA>"})


def example_counts(
    sizes: Sequence[float] | NDArray[Any], available: int, there_are: str
) -> list[int]:
    """Turn sizes into checked numbers of examples."""
    values = list(np.atleast_1d(sizes)) if isinstance(sizes, np.ndarray) else list(sizes)
    numbers = [isinstance(v, Real) and not isinstance(v, bool | np.bool_) for v in values]
    if not values or not all(numbers) or not all(math.isfinite(v) for v in values):
        raise InputError(f"sizes={sizes!r}: pass whole numbers or fractions, at least one.")
    fractions = all(not isinstance(v, Integral) and v <= 1 for v in values)
    if not fractions and any(v != int(v) for v in values):
        raise InputError(
            f"sizes={sizes!r} mixes fractions and numbers of examples: pass only one kind (all of "
            "the data is 1.0 as a fraction)."
        )
    # 0.29 * 100 is 28.999999999999996
    counts = [int(round(v * available, 6)) if fractions else int(v) for v in values]
    for value, n in zip(values, counts, strict=True):
        if not 1 <= n <= available:
            raise InputError(
                f"sizes holds {value:g}, which is {n} example(s) while {there_are} {available}: "
                "a size must lie between 1 and that."
            )
    if len(set(counts)) < len(counts):
        raise InputError(f"sizes={sizes!r} names a size twice: in examples it is {counts}.")
    return counts


def fold_counts(folds: Sequence[int] | int | None, counts: list[int], available: int) -> list[int]:
    """Say how many subsets there are of each size: by default as many as fit."""
    if folds is None:
        return [min(MOST_FOLDS, available // n) for n in counts]
    given = list(np.atleast_1d(np.asarray(folds, dtype=object)))
    given = given * len(counts) if np.ndim(folds) == 0 else given
    if len(given) != len(counts):
        raise InputError(
            f"folds has {len(given)} value(s) and sizes has {len(counts)}: pass one number for "
            "each size, or a single number."
        )
    if any(isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1 for k in given):
        raise InputError(f"folds={folds!r}: each must be a whole number of at least 1.")
    return [int(k) for k in given]


def entropy_of(rng: int | np.random.Generator) -> int:
    """Turn a seed or a Generator into one whole number."""
    if isinstance(rng, np.random.Generator):
        return int(rng.integers(2**63))
    if not isinstance(rng, int | np.integer) or isinstance(rng, bool) or rng < 0:
        raise InputError(f"rng={rng!r}: pass a seed of at least 0 or a numpy.random.Generator.")
    return int(rng)
