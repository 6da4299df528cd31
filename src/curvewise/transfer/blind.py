"""Blind guess: the best constant prediction without looking at the input, and its risk."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Sequence, Sized
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, entr, ndtri, stdtrit

from curvewise.errors import CurvewiseWarning, InputError, Message, arg, either
from curvewise.stats.clusters import cluster_degrees, cluster_variance
from curvewise.stats.intervals import score_interval
from curvewise.text import format_level, format_number
from curvewise.transfer.constant import (
    LOSSES,
    TargetElements,
    as_targets,
    best_constant,
    blocks_of,
    example_losses,
    find_loss,
    rounding,
)
from curvewise.transfer.risks import Control
from curvewise.transfer.wins import group_codes
from curvewise.types.results import FloatArray, Interval, Result, check_labelled, check_level, interval_columns

# A function (prediction, targets) -> loss of each example, and the constant prediction.
OwnLoss: TypeAlias = tuple[Callable[[Any, NDArray[Any]], ArrayLike], Any]

PER = ("output", "pixel", "all")
# How far from 1 the length of a unit vector may be: normals stored in 8 bits are 0.007 off.
UNIT_LENGTH = 0.02
# More different labels than this are probably numbers, not classes.
MANY_CLASSES = 100_000


def blind_guess(
    targets: ArrayLike,
    loss: str | OwnLoss,
    *,
    test_targets: ArrayLike | None = None,
    per: str = "output",
    axis: int | None = None,
    ignore: Any = None,
    average: str = "example",
    groups: ArrayLike | None = None,
    classes: int | Sequence[Any] | None = None,
    smoothing: float = 0.0,
    level: float = 0.95,
) -> BlindGuess:
    """Find the best constant prediction for a loss and its risk, which every method must beat.

    Parameters
    ----------
    targets : array_like, shape (examples, ...)
        Targets to be predicted, one row for each example: class labels (numbers or text), numbers,
        maps, 0/1 labels, or unit vectors. A memory-mapped array is read in blocks.
    loss : str or pair
        "error" (the most frequent class), "cross-entropy" (class frequencies; nats), "l1"
        (medians), "l2" (means; mean squared error), "binary" (frequencies of 0/1 labels; mean
        cross-entropy of a label, nats), "binary-error" (the more frequent value of each label),
        "angular" (the direction of smallest mean angle; degrees), "cosine" (the mean direction;
        1 − cosine); or a pair of a function of your own and the constant that it is measured for:
        the function takes a prediction and some targets, and gives the loss of each example.
    test_targets : array_like, optional
        Targets to measure the risk on. Without them it is measured on ``targets``, see Notes.
    per : {"output", "pixel", "all"}
        TargetElements with a constant of their own: each output (channel, label), each element of an example,
        or nothing, so that one number serves all. Classes and vectors are one output.
    axis : int, optional
        Axis of channels, or of the components of vectors. 1 for two axes; must be given for more, where it matters.
    ignore : object, or pair, optional
        Mark of an element without target: a value such as 255, NaN, or a mask that is True
        there, of the shape of the targets, with or without ``axis``. A value serves for ``test_targets``,
        too; of masks give a tuple, the one for ``test_targets`` second. For vectors, the value of all components.
    average : {"example", "pixel"}
        The risk is the mean over examples of each one's mean loss over its elements that count, so
        that an element of an example with few weighs more; with "pixel" all elements weigh the
        same. The constant is best for the chosen one.
    groups : array_like, shape (examples,), optional
        Group of each measured example, where some belong together (frames of a video, patients). The interval counts
        groups; otherwise examples, never pixels.
    classes : int or sequence, optional
        Number of classes, numbered from 0, or their names; by default those that occur.
    smoothing : float
        Examples (elements, in maps) added to each class before frequencies are taken.
    level : float
        Coverage of the interval.

    Notes
    -----
    Where the constant is found and measured on the same examples the risk is a little low: it is
    the smallest on them. The interval need not know that the constant was estimated, since risk
    does not change to first order around its minimum. What is left is of second order: for "l2"
    risk/n (n examples) below that of the best constant, for "cross-entropy" (C − 1)/(2n) for C
    classes, for "binary" 1/(2n), for "l1" and "angular" about as for "l2"; and as much again below
    the risk of this constant on new examples. "error" is an exception where several classes are
    about equally frequent, and so is "binary-error": the largest frequency is then too high by the
    order of 1/√n. The upper end of the interval allows for both. ``test_targets`` avoids them.

    The interval is Student's with Hall's correction for skewness, Wilson's for errors; that of
    entropies on the same examples has room for frequencies that are less alike. In
    ``benchmarks/transfer_blind.py`` it covers 93 to 100% from 50 examples on, where 95% are asked
    for, but for 50 squared errors with a long tail (89%). It cannot know of a rare class that
    happens to be absent where there are others.

    Raises
    ------
    InputError
        For targets that the loss is not for, and if a test class was never seen in training, so
        that its cross-entropy is infinite.

    Examples
    --------
    >>> guess = blind_guess([0, 0, 0, 1, 2, 0, 1, 0], "error")
    >>> guess.prediction, guess.risk.estimate
    (0, 0.375)
    >>> blind_guess([[1.0, 10.0], [2.0, 10.0], [6.0, 40.0]], "l1").prediction
    array([ 2., 10.])
    """
    check_level(level)
    if callable(loss) or isinstance(loss, tuple):
        options = {"axis": axis, "ignore": ignore, "classes": classes, "smoothing": smoothing or None}
        if unused := [k for k, v in options.items() if v is not None]:
            raise InputError("cannot be used with a loss of your own: the function must see to it.", argument=unused[0])
        return _own_loss(targets, loss, test_targets, groups, level)
    kind = find_loss(loss)
    _check_options(loss, per, average, classes, smoothing)
    train, test = _read_pair(targets, test_targets, ignore, kind.kind, per, axis, average == "pixel")
    known = _find_classes(train, test, classes) if kind.kind == "classes" else None
    constant = best_constant(loss, train, per, known, smoothing)
    measured = train if test is None else test
    _check_prediction(constant, measured, per)
    losses = example_losses(loss, measured, per, constant, known)
    bad = int(np.isinf(losses).sum())
    if bad and kind.kind in ("numbers", "vectors"):
        raise InputError(f"{measured.argument} holds numbers so large that the loss of {bad} example(s) is infinite.")
    if bad:
        control = either(
            "blind=cw.transfer.blind_guess(targets, loss, test_targets=…, smoothing=1).control()", "--blind"
        )
        raise InputError(
            f"{bad} of the test_targets hold a class or label value that targets never have, for which the blind guess "
            "has an infinite cross-entropy. Check that both sets have the same classes, or add one example to every "
            f"class by {arg('smoothing', 1)} (now {arg('smoothing', smoothing)}); where a control is computed for you, "
            f"pass it instead: {control}."
        )
    same: dict[str, Any] = {}  # what the interval must allow for where the constant is from the same examples
    if test is None:
        rivals, optimism = _optimism(loss, train, per, constant, known, losses, level)
        same = {"rivals": rivals, "optimism": optimism, "entropy": loss in ("cross-entropy", "binary")}
    found = _risk(losses, measured.example_weights, groups, level, bounded=kind.bounded, **same)
    frequencies = known if known is not None and loss == "cross-entropy" else ()
    notes = _notes(found, measured, test is None, per, frequencies, rounding(loss, constant))
    return BlindGuess(
        loss=loss,
        prediction=_shaped(constant, loss, train, per, known),
        risk=found.interval,
        std=found.std,
        examples=int((measured.counts > 0).sum()),
        units=found.units,
        trained_on=int((train.counts > 0).sum()),
        in_sample=test is None,
        per=per,
        average=average,
        classes=() if known is None else tuple(known.tolist()),
        unit=kind.unit,
        left_out=int(measured.size * len(measured.array) - measured.counts.sum()),
        rivals=same.get("rivals", 1),
        warnings=_warn(notes),
        losses=losses,
    )


def _warn(notes: list[str]) -> tuple[str, ...]:
    for note in notes:
        warnings.warn(note, CurvewiseWarning, stacklevel=3)
    return tuple(notes)


def _risk(losses: FloatArray, weights: FloatArray, groups: ArrayLike | None, level: float, **options: Any) -> MeanLoss:
    used = weights > 0  # examples with a target
    own = None if groups is None else group_codes(groups, len(losses))[used]
    return _mean_loss(losses[used], weights[used], own, level, **options)


def _notes(
    found: MeanLoss, measured: TargetElements, in_sample: bool, per: str, frequencies: Sized, nothing: float
) -> list[str]:
    notes = []
    empty = int((measured.counts == 0).sum())
    if empty:
        notes.append(f"{empty} example(s) without any target were left out.")
    if found.units < 2:
        notes.append("The risk has no interval: it was measured on one example or group only.")
    elif math.isnan(found.std):
        notes.append("The risk has no interval: two examples show no spread around a constant found on them.")
    if found.interval.estimate <= nothing:
        notes.append(
            "The blind guess has no loss at all: the targets do not vary, and there is nothing to "
            "learn. Calibrated risks have no scale here."
        )
    elif in_sample and per == "pixel" and measured.size > 1 and found.units < 30:
        notes.append(
            Message(
                f"A constant for every element was found on {found.units} examples and measured on the same, which "
                f"makes its risk low by about 1/{found.units}: pass {arg('test_targets')}, or {arg('per', 'output')}."
            )
        )
    elif in_sample and len(frequencies) and found.units < 5 * len(frequencies):
        notes.append(
            Message(
                f"{found.units} examples are few for the frequencies of {len(frequencies)} classes, and the "
                f"cross-entropy on the same examples is too low: pass {arg('test_targets')} and {arg('smoothing')}."
            )
        )
    return notes


def _shaped(constant: NDArray[Any], loss: str, train: TargetElements, per: str, known: NDArray[Any] | None) -> Any:
    """Shape the constant as people would write it: a number, or an array shaped like a target."""
    values = known[constant] if loss == "error" and known is not None else constant
    inner = train.shape if per == "pixel" else ()
    if values.ndim == 2:  # a row for each constant
        if not inner:
            return values[0]
        where = train.axis - 1 if train.vectors and train.axis is not None else 0
        return np.moveaxis(values.reshape(*inner, -1), -1, where)
    if per == "pixel" and inner:
        return values.reshape(inner)
    alone = len(values) == 1 and (known is not None or per == "all" or train.axis is None)
    return values[0].item() if alone else values


def _own_loss(
    targets: ArrayLike, loss: Any, test_targets: ArrayLike | None, groups: ArrayLike | None, level: float
) -> BlindGuess:
    """Measure the risk of a given constant for a given loss."""
    if not (isinstance(loss, tuple) and len(loss) == 2 and callable(loss[0])):
        raise InputError(
            "must be a pair of a function and the constant to predict, such as (my_loss, 0.5), or one of "
            f"{', '.join(map(repr, LOSSES))}.",
            argument="loss",
            value=loss,
        )
    function, prediction = loss
    argument = "targets" if test_targets is None else "test_targets"
    array = as_targets(targets if test_targets is None else test_targets, argument, numbers=False)
    parts = []
    for rows in blocks_of(len(array), array.size // len(array)):
        block = array[rows]
        part = np.asarray(function(prediction, block))
        if part.shape != (len(block),) or part.dtype.kind not in "biuf":
            raise InputError(
                f"gave {part.dtype} values of shape {part.shape} for {len(block)} examples: it must give the loss of "
                "each example, not their mean or one for each pixel.",
                argument="loss",
            )
        if not np.isfinite(part).all():
            raise InputError("gave NaN or infinite values: choose a prediction of finite loss.", argument="loss")
        parts.append(part.astype(np.float64))
    losses = np.concatenate(parts)
    found = _risk(losses, np.ones(len(losses)), groups, level, bounded=False)
    name = getattr(function, "__name__", type(function).__name__)
    return BlindGuess(
        loss=name,
        prediction=prediction,
        risk=found.interval,
        std=found.std,
        examples=len(losses),
        units=found.units,
        unit=name,
        warnings=_warn(["The risk has no interval: one example or group only."] if found.units < 2 else []),
        losses=losses,
    )


@dataclass(frozen=True, eq=False)
class BlindGuess(Result):
    """Best constant prediction for a loss, and its risk.

    Attributes
    ----------
    loss : str
        Name of the loss.
    prediction : number, str or ndarray
        The constant: a class, frequencies of the classes, a number for each output or element, or
        a direction.
    risk : Interval
        Mean loss of the constant.
    std : float
        Standard error of the risk; NaN with a single example or group.
    examples : int
        Number that the risk was measured on.
    units : int
        Number of independent units among them: groups if given, else examples.
    trained_on : int
        Examples that the constant was found on; 0 if it was given.
    in_sample : bool
        Whether the risk was measured on the examples that the constant was found on.
    per : {"output", "pixel", "all"}
        TargetElements with a constant of their own.
    average : {"example", "pixel"}
        TargetElements that weigh the same in the risk.
    classes : tuple
        Of the targets, in the order of the frequencies; empty for numbers.
    unit : str
        Of the risk.
    left_out : int
        TargetElements without target among those measured.
    rivals : int
        For "error" on the same examples: number of classes that may be the most frequent one; else 1.
    losses : ndarray, shape (examples,)
        Mean loss of each example; NaN for one without target.
    """

    loss: str
    prediction: Any
    risk: Interval
    std: float
    examples: int
    units: int
    trained_on: int = 0
    in_sample: bool = False
    per: str = "all"
    average: str = "example"
    classes: tuple[Any, ...] = ()
    unit: str = "loss"
    left_out: int = 0
    rivals: int = 1
    warnings: tuple[str, ...] = ()
    losses: FloatArray = field(default_factory=lambda: np.empty(0))

    unlisted = ("losses",)

    def control(self) -> Control:
        """Return the risk as a control of :func:`measure_transfer`."""
        of = "the same examples" if self.in_sample else f"{self.examples} test examples"
        std = 0.0 if self.risk.estimate == 0 and not np.isfinite(self.std) else self.std
        return Control(self.risk.estimate, std, f"best constant for {self.loss}, on {of}")

    def columns(self) -> dict[str, Any]:
        """Return one row: the risk."""
        return {**interval_columns({"risk": self.risk}), "std": [self.std]}

    def sentences(self) -> str:
        """Summarise the result in a few sentences."""
        share = f"{format_level(self.risk.level)}"
        text = f"The best constant prediction for {self.loss} {self._prediction_text()}has a risk of "
        text += f"{format_number(self.risk.estimate)} ({self.unit}; {share} interval "
        text += f"{format_number(self.risk.low)} to {format_number(self.risk.high)}), measured on "
        text += f"{self.examples} example{'' if self.examples == 1 else 's'}"
        text += f" in {self.units} groups" if self.units != self.examples else ""
        if self.in_sample:
            text += ", the same that it was found on."
            if self.rivals > 1:
                text += f" {self.rivals} classes may be the most frequent; the upper end of the "
                text += "interval allows for the choice among them."
            return text
        found = f"; it was found on {self.trained_on} others." if self.trained_on else "."
        return text + found

    def _prediction_text(self) -> str:
        value = self.prediction
        if isinstance(value, str):
            return f"({value!r}) "
        if isinstance(value, np.ndarray) and value.size > 4:
            return f"({value.size} numbers) "
        if isinstance(value, np.ndarray) and value.dtype.kind in "fiu":
            return f"({', '.join(format_number(float(v)) for v in value.ravel())}) "
        return f"({format_number(float(value))}) " if isinstance(value, int | float) else ""


def _check_options(loss: str, per: str, average: str, classes: Any, smoothing: float) -> None:
    """Raise for options that are not known, or that the loss does not use."""
    if per not in PER:
        raise InputError(f"is not known: use one of {', '.join(map(repr, PER))}.", argument="per", value=per)
    if average not in ("example", "pixel"):
        raise InputError("is not known: use 'example' or 'pixel'.", argument="average", value=average)
    if not (isinstance(smoothing, Real) and 0 <= smoothing < math.inf):
        raise InputError("must be a number of examples, 0 or more.", argument="smoothing", value=smoothing)
    if smoothing and loss not in ("cross-entropy", "binary"):
        raise InputError(f"is for cross-entropies, not for {arg('loss', loss)}.", argument="smoothing", value=smoothing)
    if classes is not None and LOSSES[loss].kind != "classes":
        raise InputError(f"has no meaning for {arg('loss', loss)}: leave it out.", argument="classes", value=classes)


def _read_pair(
    targets: Any, test_targets: Any, ignore: Any, kind: str, per: str, axis: int | None, by_pixel: bool
) -> tuple[TargetElements, TargetElements | None]:
    """Read and check the targets to learn the constant from and to measure it on."""
    own, other = ignore if isinstance(ignore, tuple) and len(ignore) == 2 else (ignore, ignore)
    train = _read(targets, "targets", kind, per, axis, own, by_pixel)
    if test_targets is None:
        if isinstance(ignore, tuple):
            raise InputError("is a pair, without test_targets: pass one mark.", argument="ignore")
        return train, None
    if other is ignore and isinstance(_as_mark(ignore), np.ndarray):
        raise InputError("is a mask for targets: pass a pair, with a mask for test_targets second.", argument="ignore")
    test = _read(test_targets, "test_targets", kind, per, axis, other, by_pixel)
    same = train.dimension == test.dimension and train.array.ndim == test.array.ndim
    if per == "pixel":
        same = same and train.shape == test.shape
    elif per == "output" and not train.vectors and train.axis is not None:
        same = same and train.array.shape[train.axis] == test.array.shape[train.axis]
    if not same:
        raise InputError(
            f"has examples of shape {test.array.shape[1:]}, targets of {train.array.shape[1:]}: with "
            f"{arg('per', per)} they must agree.",
            argument="test_targets",
        )
    return train, test


def _called(argument: str) -> str:
    """Name the targets: those to train on have no option on the command line."""
    return either(argument, "--test") if argument == "test_targets" else argument


def _read(
    given: Any, argument: str, kind: str, per: str, axis: int | None, ignore: Any, by_pixel: bool
) -> TargetElements:
    """Read targets as elements, and check all of them."""
    labels = kind == "classes"
    array = as_targets(given, argument, numbers=not labels)
    where = _find_axis(array, argument, kind, per, axis)
    mark = _as_mark(ignore)
    made = TargetElements(array, argument, where, kind == "vectors", mark, by_pixel, not labels)
    if isinstance(mark, np.ndarray):
        without = array.shape if where is None else tuple(np.delete(array.shape, where).tolist())
        allowed = {(len(array), *made.shape)} if made.vectors else {array.shape, without}
        if mark.shape not in allowed:
            shapes = " or ".join(str(s) for s in sorted(allowed, key=len, reverse=True))
            raise InputError(
                f"is a mask of shape {mark.shape} for {argument} of shape {array.shape}: it must be of shape {shapes}.",
                argument="ignore",
            )
    is_text = array.dtype.kind in "US"
    if isinstance(mark, int | float | str) and isinstance(mark, str) != is_text:
        raise InputError(
            f"{_called(argument)} holds {'text' if is_text else 'numbers'}.", argument="ignore", value=mark
        )
    counts = np.zeros(len(array), dtype=np.intp)
    for rows, values, valid in made.raw():
        counts[rows] = valid.sum(axis=1)
        if valid.any():
            _CHECKS[kind](values[valid], argument)
    if not counts.any():
        raise InputError(f"{_called(argument)} holds nothing but what ignore leaves out.")
    return replace(made, counts=counts)


def _as_mark(ignore: Any) -> Any:
    """Return a mask as a boolean array; a value as it is."""
    if ignore is None or isinstance(ignore, str):
        return ignore
    found = np.asanyarray(ignore)
    if found.ndim == 0:
        value = found.item()
        if not isinstance(value, int | float):
            raise InputError("must be a value, NaN, or a mask.", argument="ignore", value=ignore)
        return value
    if found.dtype != np.bool_:
        raise InputError(
            f"is an array of {found.dtype}: a mask must be of bool, True where there is no target.", argument="ignore"
        )
    return found


def _find_axis(array: NDArray[Any], argument: str, kind: str, per: str, axis: int | None) -> int | None:
    """Find the axis of channels or components; raise where it matters and cannot be known."""
    if kind == "classes":
        if axis is not None:
            raise InputError("class labels have no channels; leave it out.", argument="axis", value=axis)
        return None
    if axis is not None:
        if not isinstance(axis, int | np.integer) or not -array.ndim < axis < array.ndim:
            raise InputError(f"is none of {argument} of shape {array.shape}.", argument="axis", value=axis)
        found = int(axis) % array.ndim
        if found == 0:
            raise InputError("holds the examples: channels must lie on another axis.", argument="axis", value=axis)
        return found
    if array.ndim == 2:
        return 1
    if kind == "vectors" and array.ndim == 1:
        raise InputError(f"{_called(argument)} has shape {array.shape}: give a vector for each example.")
    if array.ndim > 2 and (kind == "vectors" or per == "output"):
        what = "the components of the vectors" if kind == "vectors" else "the channels"
        plain = "" if kind == "vectors" else f" For maps without channels use {arg('per', 'all')}."
        raise InputError(
            f"{_called(argument)} has shape {array.shape}: say which axis holds {what}, such as {arg('axis', 1)} or "
            f"{arg('axis', -1)}.{plain}"
        )
    return None


def _finite(values: NDArray[Any], argument: str) -> None:
    bad = ~np.isfinite(values)
    if bad.any():
        some = values[bad].flat[0]
        remedy = f"Pass {either('ignore=np.nan', '--ignore nan')} if NaN means no target." if np.isnan(some) else ""
        raise InputError(f"{_called(argument)} holds {some} {int(bad.sum())} times. {remedy}".rstrip())


def _binary(values: NDArray[Any], argument: str) -> None:
    _finite(values, argument)
    bad = (values != 0) & (values != 1)
    if bad.any():
        raise InputError(
            f"{_called(argument)} holds {values[bad].flat[0]:g}: binary labels are 0 or 1. For several "
            f"classes use {arg('loss', 'cross-entropy')}; mark missing labels with {arg('ignore')}."
        )


def _vectors(values: NDArray[Any], argument: str) -> None:
    _finite(values, argument)
    length = np.linalg.norm(values, axis=-1)
    if values.shape[-1] < 2:
        raise InputError(f"{_called(argument)} holds vectors of one component: a direction needs two.")
    bad = np.abs(length - 1.0) > UNIT_LENGTH
    if bad.any():
        worst = float(length[bad].flat[0])
        remedy = (
            f"Pass {arg('ignore', 0)} if that means no target."
            if worst == 0
            else "Divide each vector by its length (normals stored as 0 to 255 or 0 to 1 must be "
            f"brought back to −1 to 1 first), or say by {arg('axis')} where the components are."
        )
        raise InputError(
            f"{_called(argument)} holds a vector of length {worst:.4g}, not 1 ({int(bad.sum())} of "
            f"{len(length)}). {remedy}"
        )


def _labels(values: NDArray[Any], argument: str) -> None:
    if values.dtype.kind != "f":
        return
    _finite(values, argument)
    bad = values != np.rint(values)
    if bad.any():
        raise InputError(
            f"{_called(argument)} holds {values[bad].flat[0]:g}: a class is a whole number or text. For "
            f"numbers use {arg('loss', 'l1')} or {arg('loss', 'l2')}; for probabilities pass their argmax."
        )


_CHECKS: dict[str, Callable[[NDArray[Any], str], None]] = {
    "numbers": _finite,
    "binary": _binary,
    "vectors": _vectors,
    "classes": _labels,
}


def _check_prediction(constant: NDArray[Any], measured: TargetElements, per: str) -> None:
    """Raise where an element to be measured has no constant, since no target determines it."""
    if constant.dtype.kind != "f":
        return
    missing = np.isnan(constant.reshape(len(constant), -1)).any(axis=1)
    if not missing.any():
        return
    cells, _ = measured.cells(per)
    seen = measured.totals(lambda v: np.ones(v.shape[:2])) > 0
    if (missing[cells] & seen).any():
        raise InputError(
            f"{int((missing[cells] & seen).sum())} element(s) of test_targets have no target in any of targets, so "
            f"that there is no constant for them: use {arg('per', 'output')} or {arg('per', 'all')}, or leave them out "
            f"by {arg('ignore')}."
        )


def _find_classes(
    train: TargetElements, test: TargetElements | None, classes: int | Sequence[Any] | None
) -> NDArray[Any]:
    """Return the classes, sorted: those that are given, else those that occur."""
    both = [train] if test is None else [train, test]
    seen = [np.unique(np.concatenate([np.unique(v[valid]) for _, v, valid in t.raw()])) for t in both]
    if classes is None:
        for targets in both:
            _check_one_hot(targets)
        kinds = {"text" if s.dtype.kind in "US" else "numbers" for s in seen}
        if len(kinds) > 1:
            raise InputError("targets and test_targets are not both text or both numbers.")
        found = np.unique(np.concatenate(seen))
        check_labelled(found, "targets", f"leave such elements out by {arg('ignore')}")
        if len(found) > MANY_CLASSES:
            raise InputError(
                f"targets hold {len(found)} different values: are these classes? For numbers use "
                f"{arg('loss', 'l1')} or {arg('loss', 'l2')}."
            )
        return found.astype(np.int64) if found.dtype.kind in "fb" else found
    if isinstance(classes, int | np.integer) and not isinstance(classes, bool):
        if classes < 1:
            raise InputError("must be at least 1.", argument="classes", value=classes)
        known = np.arange(int(classes))
    elif isinstance(classes, str) or not isinstance(classes, Iterable):
        raise InputError("must be a number, or the names of the classes.", argument="classes", value=classes)
    else:
        known = np.unique(np.asarray(list(classes)))
    if not len(known) or known.dtype.kind == "O" or (known.dtype.kind == "f" and np.isnan(known).any()):
        raise InputError("must hold names or numbers, at least one.", argument="classes", value=classes)
    for targets, there in zip(both, seen, strict=True):
        odd = there[~np.isin(there, known)]
        if len(odd):
            raise InputError(
                f"{targets.argument} holds {odd[0].item()!r}, which is none of the "
                f"{len(known)} classes ({known[0].item()!r} to {known[-1].item()!r}). Correct "
                f"{arg('classes')}, or leave such elements out by {arg('ignore')}."
            )
    return known


def _check_one_hot(targets: TargetElements) -> None:
    """Refuse rows of 0 and 1: an indicator matrix or several labels rather than maps of two classes."""
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
            f"of the 1 in each row (its argmax) in place of the row, or {arg('classes', 2)} if these are labels of "
            "elements."
        )
    raise InputError(
        f"{text}holds 0 and 1 only, which looks like several labels of each example: pass "
        f"{arg('loss', 'binary')} (cross-entropy) or {arg('loss', 'binary-error')} (error of a label), or "
        f"{arg('classes', 2)} if these are maps of two classes."
    )


@dataclass(frozen=True)
class MeanLoss:
    """Weighted mean loss with its standard error and interval, and the number of independent units."""

    interval: Interval
    std: float
    units: int


def _mean_loss(
    losses: FloatArray,
    weights: FloatArray,
    groups: NDArray[np.intp] | None,
    level: float,
    *,
    bounded: bool,
    rivals: int = 1,
    optimism: Callable[[float, int], float] | None = None,
    entropy: bool = False,
) -> MeanLoss:
    """Average the losses of examples; examples, or groups of them, count as drawn.

    Parameters
    ----------
    losses, weights : ndarray, shape (examples,)
        Without those that have no target.
    groups : ndarray, shape (examples,), optional
        Examples that belong together.
    bounded : bool
        Whether losses lie between 0 and 1: then the interval is Wilson's, for as many examples as
        would have this standard error, else Student's with Hall's correction for skewness.
    rivals : int
        Number of constants without a significant difference from which the best was chosen on the same examples;
        the upper end allows for it (Bonferroni, with the exact binomial interval).
    optimism : callable, optional
        Function of the mean and the number of units that says by how much the mean may be too low; the upper end
        allows for it.
    entropy : bool
        Whether this is the entropy of frequencies on the same examples.
    """
    total = weights.sum()
    mean = float((weights * losses).sum() / total)
    parts, sizes = weights * (losses - mean), weights
    if groups is not None:
        parts, sizes = (np.bincount(groups, weights=w).astype(np.float64) for w in (parts, sizes))
    parts, sizes = parts[sizes > 0], sizes[sizes > 0]
    units = len(parts)
    # Two numbers are always equally far from the constant that was found on them: that is no spread.
    own_two = len(losses) == 2 and mean > 0 and optimism is not None and not (bounded or entropy)
    if units < 2 or own_two:
        return MeanLoss(Interval(mean, np.nan, np.nan, level), float("nan"), units)
    std = float(np.sqrt(cluster_variance(parts, sizes)))
    tail = 0.5 * (1.0 - level)
    quantile = float(-stdtrit(cluster_degrees(sizes), tail))
    if bounded:
        # Wilson's interval, for as many draws of 0 or 1 as would have this standard error.
        n = _effective_examples(mean, std, units)
        low, high = map(float, score_interval(np.asarray(mean), np.asarray(quantile**2 / n)))
        if rivals > 1:
            # Bonferroni needs far tails, which only the binomial distribution itself has right.
            kept = (1.0 - mean) * n
            exact = float(1.0 - betaincinv(kept, n - kept + 1.0, tail / rivals)) if kept > 0 else 1.0
            high = max(high, exact)
    else:
        low, high = _skewed(mean, std, parts, quantile)
        low = max(low, 0.0) if losses.min() >= 0 else low
    high += 0.0 if optimism is None else optimism(mean, units)
    high = min(high, 1.0) if bounded else high
    if entropy:
        # An entropy is flat where frequencies are alike: losses are then nearly the same, and their spread says nothing
        # about how far other frequencies, no less likely, would be below: to second order by z² / 2n.
        low = max(0.0, low - quantile**2 / (2.0 * units))
        if mean <= 0:  # one class was seen: allow for a second so rare that it may well be missing
            unseen = -np.expm1(np.log(tail) / units)
            high = max(high, float(entr(unseen) + entr(1.0 - unseen)))
    return MeanLoss(Interval(mean, low, high, level), std, units)


def _skewed(mean: float, std: float, parts: FloatArray, quantile: float) -> tuple[float, float]:
    """Return the ends for a mean of skewed parts, by the monotone transformation of Hall 1992."""
    n, deviation = len(parts), float(parts.std())
    skew = float(((parts - parts.mean()) ** 3).mean()) / deviation**3 if deviation > 0 else 0.0
    if abs(skew) < 1e-6:  # the limit without skewness, where the formula divides by it
        return mean - quantile * std, mean + quantile * std
    y = np.array([quantile, -quantile]) / np.sqrt(n) - skew / (6.0 * n)
    away = (3.0 / skew) * (np.cbrt(1.0 + skew * y) - 1.0)
    low, high = mean - std * np.sqrt(n) * away
    return float(min(low, mean)), float(max(high, mean))


def _effective_examples(share: float, std: float, units: int) -> float:
    """Return how many independent draws of 0 or 1 would have this standard error."""
    return share * (1.0 - share) / std**2 if std > 0 else float(units)


def _optimism(
    loss: str,
    train: TargetElements,
    per: str,
    constant: NDArray[Any],
    known: NDArray[Any] | None,
    losses: FloatArray,
    level: float,
) -> tuple[int, Callable[[float, int], float]]:
    """Estimate how much too low the risk may be on the examples that the constant was found on.

    Returns the number of classes, without a significant difference in frequency, from which one was chosen, and by how
    much the mean may be too low.
    """
    if not LOSSES[loss].bounded:
        return 1, _second_order(loss, constant)
    name = "binary" if known is None else "cross-entropy"
    shares = best_constant(name, train, per, known, 0.0).astype(np.float64)
    shares = np.stack([1.0 - shares, shares], axis=1) if known is None else shares
    if len(shares) == 1:
        used = train.example_weights > 0
        weights = train.example_weights[used]
        found = _mean_loss(losses[used], weights, None, level, bounded=True)
        n = _effective_examples(found.interval.estimate, found.std, found.units)
        rivals = int(_rivals_of_best(shares, n, level)[0]) if found.units > 1 else 1
        return (rivals if known is not None else 1), lambda *_: 0.0
    cells, _ = train.cells(per)

    def gain_of_choice(_: float, units: int) -> float:
        # The most frequent class of each row is overrated by choosing it: on average as the largest of as many
        # independent shares as do not differ from it significantly (Blom 1958).
        rivals = _rivals_of_best(shares, units, level)
        gains = ndtri((rivals - 0.375) / (rivals + 0.25)) * np.sqrt(shares.max(axis=1) / units)
        return float(np.nanmean(gains[cells]))

    return 1, gain_of_choice


def _second_order(loss: str, constant: NDArray[Any]) -> Callable[[float, int], float]:
    """Return how much the risk on the examples of the constant may be below that of the best one.

    To second order, for constants that are estimated from as many independent targets as there are
    units: exact for means, and for frequencies 1/(2n) for each that is free (Miller and Madow); for
    medians and directions about that of means. It is more than needed where constants are shared by
    the elements of an example.
    """
    if loss == "cross-entropy":
        free = float(((constant > 0).sum(axis=1) - 1).mean())
        return lambda _, units: free / (2.0 * units)
    if loss == "binary":
        free = float(((constant > 0) & (constant < 1)).mean())
        return lambda _, units: free / (2.0 * units)
    return lambda risk, units: risk / units


def _rivals_of_best(shares: FloatArray, n: float, level: float) -> NDArray[np.intp]:
    """Count the classes that may be the most frequent one, that one among them, for each row.

    >>> _rivals_of_best(np.array([[0.5, 0.48, 0.02]]), 100, 0.95)
    array([2])
    """
    quantile = float(-stdtrit(max(1.0, n - 1), 0.5 * (1.0 - level)))
    best = shares.max(axis=1, keepdims=True)
    # Variance of a difference of two frequencies of one multinomial sample.
    spread = np.sqrt(np.maximum(best + shares - (best - shares) ** 2, 0.0) / n)
    return np.asarray((best - shares <= quantile * spread).sum(axis=1))
