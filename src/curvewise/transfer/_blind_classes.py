"""Which classes there are among labels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError
from curvewise.transfer._blind_targets import Elements
from curvewise.types import check_labelled

MANY_CLASSES = 100_000


def find_classes(
    train: Elements, test: Elements | None, classes: int | Sequence[Any] | None
) -> NDArray[Any]:
    """The classes, sorted: those that are given, else those that are there."""
    both = [train] if test is None else [train, test]
    seen = [_seen(t) for t in both]
    if classes is None:
        for targets in both:
            _check_one_hot(targets)
        kinds = {"text" if s.dtype.kind in "US" else "numbers" for s in seen}
        if len(kinds) > 1:
            raise InputError("targets and test_targets are not both text or both numbers.")
        found = np.unique(np.concatenate(seen))
        check_labelled(found, "targets", "leave such elements out by ignore=")
        if len(found) > MANY_CLASSES:
            raise InputError(
                f"targets hold {len(found)} different values: are these classes? For numbers use "
                "loss='l1' or loss='l2'."
            )
        return found.astype(np.int64) if found.dtype.kind in "fb" else found
    known = _given(classes)
    for targets, there in zip(both, seen, strict=True):
        odd = there[~np.isin(there, known)]
        if len(odd):
            raise InputError(
                f"{targets.argument} holds {odd[0].item()!r}, which is none of the "
                f"{len(known)} classes ({known[0].item()!r} to {known[-1].item()!r}). Correct "
                "classes=, or leave such elements out by ignore=."
            )
    return known


def _seen(targets: Elements) -> NDArray[Any]:
    parts = [np.unique(values[valid]) for _, values, valid in targets.raw()]
    return np.unique(np.concatenate(parts))


def _given(classes: int | Sequence[Any]) -> NDArray[Any]:
    if isinstance(classes, int | np.integer) and not isinstance(classes, bool):
        if classes < 1:
            raise InputError(f"classes={classes!r} must be at least 1.")
        return np.arange(int(classes))
    if isinstance(classes, str) or not isinstance(classes, Iterable):
        raise InputError(f"classes={classes!r} must be a number, or the names of the classes.")
    found = np.unique(np.asarray(list(classes)))
    if not len(found) or found.dtype.kind == "O":
        raise InputError(f"classes={classes!r} must hold names or numbers, at least one.")
    return found


def _check_one_hot(targets: Elements) -> None:
    """Rows of 0 and 1 are an indicator matrix or several labels, not maps of two classes."""
    array = targets.array
    if array.ndim != 2 or array.shape[1] < 2 or len(array) < 2 or array.dtype.kind not in "biuf":
        return
    single = True
    for _, values, _ in targets.raw():
        if not np.isin(values, (0, 1)).all():
            return
        single = single and bool((values.sum(axis=1) == 1).all())
    text = f"{targets.argument} of shape {array.shape} "
    if single:
        raise InputError(
            f"{text}has a single 1 in each row: labels as an indicator matrix. Pass the position "
            "of the 1 in each row (its argmax) in place of the row, or classes=2 if these are "
            "labels of elements."
        )
    raise InputError(
        f"{text}holds 0 and 1 only, which looks like several labels of each example: pass "
        "loss='binary' (cross-entropy) or loss='binary-error' (error of a label), or classes=2 if "
        "these are maps of two classes."
    )
