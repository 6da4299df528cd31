"""What a blind guess accepts: shapes, values, options; and which classes there are."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import InputError
from curvewise.transfer._blind_losses import LOSSES
from curvewise.transfer._blind_targets import Elements, as_targets

PER = ("output", "pixel", "all")
UNIT_LENGTH = 0.02
"""How far from 1 the length of a unit vector may be: normals stored in 8 bits are 0.007 off."""


def check_options(
    loss: str, per: str, average: str, classes: Any, smoothing: float, prediction: Any
) -> None:
    """Raise for options that are not known, or that the loss has no use for."""
    if per not in PER:
        raise InputError(f"per={per!r} is not known: use one of {', '.join(map(repr, PER))}.")
    if average not in ("example", "pixel"):
        raise InputError(f"average={average!r} is not known: use 'example' or 'pixel'.")
    if not (isinstance(smoothing, Real) and 0 <= smoothing < math.inf):
        raise InputError(f"smoothing={smoothing!r} must be a number of examples, 0 or more.")
    if smoothing and loss not in ("cross-entropy", "binary"):
        raise InputError(f"smoothing={smoothing!r} is for cross-entropies, not for loss={loss!r}.")
    if classes is not None and LOSSES[loss].kind != "classes":
        raise InputError(f"classes={classes!r} has no meaning for loss={loss!r}: leave it out.")
    if prediction is not None:
        raise InputError(
            f"prediction is for a loss of your own; the constant for loss={loss!r} is found."
        )


def check_unused(**options: Any) -> None:
    """Raise for options that mean nothing to a loss of one's own."""
    given = [k for k, v in options.items() if v is not None and (k != "smoothing" or v)]
    if given:
        raise InputError(
            f"{', '.join(given)} cannot be used with a loss of your own: the function must see "
            "to it."
        )


def check_groups(groups: ArrayLike, examples: int) -> NDArray[Any]:
    """A group for each measured example."""
    found = np.asarray(groups)
    if found.shape != (examples,):
        raise InputError(
            f"groups has shape {found.shape} for {examples} examples that the risk is measured on: "
            "say for each which group it belongs to."
        )
    missing = sum(g is None or g != g for g in found.tolist())
    if missing:
        raise InputError(
            f"groups has no value for {missing} of {examples} examples: give each a group, its own "
            "if it is alone."
        )
    return found.astype(np.str_) if found.dtype.kind == "O" else found


def read_pair(
    given: tuple[Any, Any],
    kind: str,
    per: str,
    axis: int | None,
    ignore: tuple[Any, Any],
    by_pixel: bool,
) -> tuple[Elements, Elements | None]:
    """Targets to learn the constant from and to measure it on, checked."""
    train = read(given[0], "targets", kind, per, axis, ignore[0], by_pixel)
    if given[1] is None:
        if ignore[1] is not None:
            raise InputError("test_ignore is given without test_targets: pass it as ignore.")
        return train, None
    mark = ignore[1]
    if mark is None and not isinstance(_as_mark(ignore[0]), np.ndarray):
        mark = ignore[0]
    elif mark is None:
        raise InputError("ignore is a mask for targets: pass one for test_targets as test_ignore.")
    test = read(given[1], "test_targets", kind, per, axis, mark, by_pixel)
    _check_alike(train, test, per)
    return train, test


def _check_alike(train: Elements, test: Elements, per: str) -> None:
    same = train.dimension == test.dimension and train.array.ndim == test.array.ndim
    if per == "pixel":
        same = same and train.shape == test.shape
    elif per == "output" and not train.vectors and train.axis is not None:
        same = same and train.array.shape[train.axis] == test.array.shape[train.axis]
    if not same:
        raise InputError(
            f"test_targets has examples of shape {test.array.shape[1:]}, targets of "
            f"{train.array.shape[1:]}: with per={per!r} they must agree."
        )


def read(
    given: Any, argument: str, kind: str, per: str, axis: int | None, ignore: Any, by_pixel: bool
) -> Elements:
    """Targets as elements, after a first look at all of them."""
    labels = kind == "classes"
    array = as_targets(given, argument, numbers=not labels)
    where = _find_axis(array, argument, kind, per, axis)
    mark = _as_mark(ignore)
    made = Elements(array, argument, where, kind == "vectors", mark, by_pixel, not labels)
    _check_mask(made)
    _check_value(made)
    check = _CHECKS[kind]
    counts = np.zeros(len(array), dtype=np.intp)
    for rows, values, valid in made.raw():
        counts[rows] = valid.sum(axis=1)
        if valid.any():
            check(values[valid], argument)
    if not counts.any():
        raise InputError(f"{argument} holds nothing but what ignore={_brief(ignore)} leaves out.")
    return replace(made, counts=counts)


def _brief(value: Any) -> str:
    return "a mask" if isinstance(value, np.ndarray) else repr(value)


def _as_mark(ignore: Any) -> Any:
    """A mask as a boolean array; a value as it is."""
    if ignore is None or isinstance(ignore, str):
        return ignore
    found = np.asanyarray(ignore)
    if found.ndim == 0:
        value = found.item()
        if not isinstance(value, int | float):
            raise InputError(f"ignore={ignore!r} must be a value, NaN, or a mask.")
        return value
    if found.dtype != np.bool_:
        raise InputError(
            f"ignore is an array of {found.dtype}: a mask must be of bool, True where there is no "
            "target."
        )
    return found


def _check_mask(made: Elements) -> None:
    if not isinstance(made.ignore, np.ndarray):
        return
    whole = made.array.shape
    inner = (len(whole) and whole[0], *made.shape)
    without = whole if made.axis is None else tuple(np.delete(whole, made.axis).tolist())
    allowed = {inner} if made.vectors else {whole, without}
    if made.ignore.shape not in allowed:
        said = " or ".join(str(s) for s in sorted(allowed, key=len, reverse=True))
        raise InputError(
            f"ignore is a mask of shape {made.ignore.shape} for {made.argument} of shape {whole}: "
            f"it must be of shape {said}."
        )


def _check_value(made: Elements) -> None:
    text = made.array.dtype.kind in "US"
    if isinstance(made.ignore, int | float | str) and isinstance(made.ignore, str) != text:
        kind = "text" if text else "numbers"
        raise InputError(f"ignore={made.ignore!r}, but {made.argument} holds {kind}.")


def _find_axis(
    array: NDArray[Any], argument: str, kind: str, per: str, axis: int | None
) -> int | None:
    """Where channels or components are; asked for where it matters and cannot be told."""
    if kind == "classes":
        if axis is not None:
            raise InputError(f"axis={axis!r}: class labels have no channels; leave it out.")
        return None
    if axis is not None:
        if not isinstance(axis, int | np.integer) or not -array.ndim < axis < array.ndim:
            raise InputError(f"axis={axis!r} is none of {argument} of shape {array.shape}.")
        found = int(axis) % array.ndim
        if found == 0:
            raise InputError("axis=0 holds the examples: channels must lie on another axis.")
        return found
    if array.ndim == 2:
        return 1
    if kind == "vectors" and array.ndim == 1:
        raise InputError(f"{argument} has shape {array.shape}: give a vector for each example.")
    if array.ndim > 2 and (kind == "vectors" or per == "output"):
        what = "the components of the vectors" if kind == "vectors" else "the channels"
        plain = "" if kind == "vectors" else " For maps without channels use per='all'."
        raise InputError(
            f"{argument} has shape {array.shape}: say which axis holds {what}, such as axis=1 or "
            f"axis=-1.{plain}"
        )
    return None


def _finite(values: NDArray[Any], argument: str) -> None:
    bad = ~np.isfinite(values)
    if bad.any():
        some = values[bad].flat[0]
        remedy = "Pass ignore=np.nan if NaN means no target." if np.isnan(some) else ""
        raise InputError(f"{argument} holds {some} {int(bad.sum())} times. {remedy}".rstrip())


def _binary(values: NDArray[Any], argument: str) -> None:
    _finite(values, argument)
    bad = (values != 0) & (values != 1)
    if bad.any():
        raise InputError(
            f"{argument} holds {values[bad].flat[0]:g}: binary labels are 0 or 1. For several "
            "classes use loss='cross-entropy'; mark missing labels with ignore=."
        )


def _vectors(values: NDArray[Any], argument: str) -> None:
    _finite(values, argument)
    length = np.linalg.norm(values, axis=-1)
    if values.shape[-1] < 2:
        raise InputError(f"{argument} holds vectors of one component: a direction needs two.")
    bad = np.abs(length - 1.0) > UNIT_LENGTH
    if bad.any():
        worst = float(length[bad].flat[0])
        remedy = (
            "Pass ignore=0 if that means no target."
            if worst == 0
            else "Divide each vector by its length (normals stored as 0 to 255 or 0 to 1 must be "
            "brought back to −1 to 1 first), or say by axis= where the components are."
        )
        raise InputError(
            f"{argument} holds a vector of length {worst:.4g}, not 1 ({int(bad.sum())} of "
            f"{len(length)}). {remedy}"
        )


def _labels(values: NDArray[Any], argument: str) -> None:
    if values.dtype.kind != "f":
        return
    _finite(values, argument)
    bad = values != np.rint(values)
    if bad.any():
        raise InputError(
            f"{argument} holds {values[bad].flat[0]:g}: a class is a whole number or text. For "
            "numbers use loss='l1' or loss='l2'; for probabilities pass their argmax."
        )


_CHECKS: dict[str, Callable[[NDArray[Any], str], None]] = {
    "numbers": _finite,
    "binary": _binary,
    "vectors": _vectors,
    "classes": _labels,
}


def check_prediction(constant: NDArray[Any], measured: Elements, per: str) -> None:
    """Raise where an element to be measured has no constant, since no target decides it."""
    if constant.dtype.kind != "f":
        return
    missing = np.isnan(constant.reshape(len(constant), -1)).any(axis=1)
    if not missing.any():
        return
    cells, _ = measured.cells(per)
    seen = measured.totals(lambda v: np.ones(v.shape[:2])) > 0
    if (missing[cells] & seen).any():
        raise InputError(
            f"{int((missing[cells] & seen).sum())} element(s) of test_targets have no target in "
            f"any of targets, so that there is no constant for them: use per='output' or "
            "per='all', or leave them out by test_ignore=."
        )
