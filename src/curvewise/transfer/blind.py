"""The best that can be said without looking at the input, and its risk."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence, Sized
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.transfer._blind_check import (
    check_groups,
    check_options,
    check_prediction,
    check_unused,
    read_pair,
)
from curvewise.transfer._blind_classes import find_classes
from curvewise.transfer._blind_losses import (
    LOSSES,
    best_constant,
    example_losses,
    find_loss,
    rounding,
)
from curvewise.transfer._blind_optimism import flattered
from curvewise.transfer._blind_result import BlindGuess
from curvewise.transfer._blind_risk import Mean, mean_loss
from curvewise.transfer._blind_targets import BLOCK, Elements, as_targets
from curvewise.types import FloatArray, check_level

__all__ = ["BlindGuess", "blind_guess"]

LossFunction: TypeAlias = Callable[[Any, NDArray[Any]], ArrayLike]


def blind_guess(
    targets: ArrayLike,
    loss: str | LossFunction,
    *,
    test_targets: ArrayLike | None = None,
    per: str = "output",
    axis: int | None = None,
    ignore: Any = None,
    test_ignore: Any = None,
    average: str = "example",
    groups: ArrayLike | None = None,
    classes: int | Sequence[Any] | None = None,
    smoothing: float = 0.0,
    prediction: Any = None,
    level: float = 0.95,
) -> BlindGuess:
    """The best constant prediction for a loss and its risk: what a method must beat at least.

    Parameters
    ----------
    targets : array_like, shape (examples, ...)
        What is to be predicted, one row for each example: class labels (numbers or text), numbers,
        maps, 0/1 labels, or unit vectors. A memory-mapped array is read in blocks.
    loss : str or callable
        "error" (the most frequent class), "cross-entropy" (class frequencies; nats), "l1"
        (medians), "l2" (means; mean squared error), "binary" (frequencies of 0/1 labels; mean
        cross-entropy of a label, nats), "binary-error" (the more frequent value of each label),
        "angular" (the direction of smallest mean angle; degrees), "cosine" (the mean direction;
        1 − cosine); or a function of a prediction and some targets that gives the loss of each
        example, for which ``prediction`` says the constant.
    test_targets : array_like, optional
        Targets to measure the risk on. Without them it is measured on ``targets``, see Notes.
    per : {"output", "pixel", "all"}
        What has a constant of its own: each output (channel, label), each element of an example,
        or nothing, so that one number serves all. Classes and vectors are one output.
    axis : int, optional
        Which axis holds channels, or the components of vectors. Known to be 1 for two axes; must be
        said for more, where it matters.
    ignore, test_ignore : object, optional
        What marks an element without target: a value such as 255, NaN, or a mask that is True
        there, of the shape of the targets, with or without ``axis``. A mask for ``test_targets`` is
        ``test_ignore``; a value serves both. For vectors, the value of all components.
    average : {"example", "pixel"}
        The risk is the mean over examples of each one's mean loss over its elements that count, so
        that an element of an example with few weighs more; with "pixel" all elements weigh the
        same. The constant is best for the chosen one.
    groups : array_like, shape (examples,), optional
        Which measured examples belong together (frames of a video, patients). The interval counts
        groups; otherwise examples, never pixels.
    classes : int or sequence, optional
        How many classes, numbered from 0, or their names; by default those that are there.
    smoothing : float
        Examples (elements, in maps) added to each class before frequencies are taken.
    prediction : object, optional
        The constant for a callable loss.
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
    if callable(loss):
        check_unused(
            axis=axis, ignore=ignore, test_ignore=test_ignore, classes=classes, smoothing=smoothing
        )
        return _of_function(targets, loss, prediction, test_targets, groups, level)
    kind = find_loss(loss)
    check_options(loss, per, average, classes, smoothing, prediction)
    train, test = read_pair(
        (targets, test_targets), kind.kind, per, axis, (ignore, test_ignore), average == "pixel"
    )
    known = find_classes(train, test, classes) if kind.kind == "classes" else None
    constant = best_constant(loss, train, per, known, smoothing)
    measured = train if test is None else test
    check_prediction(constant, measured, per)
    losses = example_losses(loss, measured, per, constant, known)
    _check_finite(losses, smoothing)
    rivals, low_by = 1, None
    if test is None:
        rivals, low_by = flattered(loss, train, per, constant, known, losses, level)
    found = _risk(
        losses,
        measured.example_weights,
        groups,
        level,
        bounded=kind.bounded,
        rivals=rivals,
        optimism=low_by,
        entropy=test is None and loss in ("cross-entropy", "binary"),
    )
    frequencies = known if known is not None and loss == "cross-entropy" else ()
    nothing = rounding(loss, constant)
    notes = _notes(found, measured, test is None, per, frequencies, nothing)
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
        rivals=rivals,
        warnings=_said(notes),
        _losses=losses,
    )


def _said(notes: list[str]) -> tuple[str, ...]:
    for note in notes:
        warnings.warn(note, CurvewiseWarning, stacklevel=3)
    return tuple(notes)


def _risk(
    losses: FloatArray,
    weights: FloatArray,
    groups: ArrayLike | None,
    level: float,
    **options: Any,
) -> Mean:
    together = None if groups is None else check_groups(groups, len(losses))
    used = weights > 0
    own = None if together is None else together[used]
    return mean_loss(losses[used], weights[used], own, level, **options)


def _check_finite(losses: FloatArray, smoothing: float) -> None:
    bad = int(np.isinf(losses).sum())
    if bad:
        raise InputError(
            f"{bad} of the test_targets hold a class or label value that targets never have, for "
            "which the blind guess has an infinite cross-entropy. Check that both sets have the "
            "same classes, or add one example to every class by smoothing=1 (now "
            f"smoothing={smoothing:g}); where a control is computed for you, pass it instead: "
            "blind=cw.blind_guess(targets, loss, test_targets=…, smoothing=1).control()."
        )


def _notes(
    found: Mean,
    measured: Elements,
    in_sample: bool,
    per: str,
    frequencies: Sized,
    nothing: float,
) -> list[str]:
    notes = []
    empty = int((measured.counts == 0).sum())
    if empty:
        notes.append(f"{empty} example(s) without any target were left out.")
    if found.units < 2:
        notes.append("The risk has no interval: it was measured on one example or group only.")
    if found.interval.estimate <= nothing:
        notes.append(
            "The blind guess has no loss at all: the targets do not vary, and there is nothing to "
            "learn. Calibrated risks have no scale here."
        )
    elif in_sample and per == "pixel" and measured.size > 1 and found.units < 30:
        notes.append(
            f"A constant for every element was found on {found.units} examples and measured on the "
            f"same, which makes its risk low by about a {found.units}th: pass test_targets=…, or "
            "per='output'."
        )
    elif in_sample and len(frequencies) and found.units < 5 * len(frequencies):
        notes.append(
            f"{found.units} examples are few for the frequencies of {len(frequencies)} classes, and"
            " the cross-entropy on the same examples is too low: pass test_targets=… and "
            "smoothing=…."
        )
    return notes


def _shaped(
    constant: NDArray[Any], loss: str, train: Elements, per: str, known: NDArray[Any] | None
) -> Any:
    """The constant as people would write it: a number, or an array shaped like a target."""
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


def _of_function(
    targets: ArrayLike,
    loss: LossFunction,
    prediction: Any,
    test_targets: ArrayLike | None,
    groups: ArrayLike | None,
    level: float,
) -> BlindGuess:
    """The risk of a constant that was given, for a loss that was given."""
    if prediction is None:
        raise InputError(
            "prediction is missing: for a loss of your own, say which constant to predict, or use "
            f"one of {', '.join(map(repr, LOSSES))}."
        )
    argument = "targets" if test_targets is None else "test_targets"
    given = targets if test_targets is None else test_targets
    array = as_targets(given, argument, numbers=False)
    step = max(1, BLOCK * len(array) // array.size)
    parts = [
        _checked(loss(prediction, array[i : i + step]), len(array[i : i + step]))
        for i in range(0, len(array), step)
    ]
    losses = np.concatenate(parts)
    found = _risk(losses, np.ones(len(losses)), groups, level, bounded=False)
    name = getattr(loss, "__name__", type(loss).__name__)
    notes = ["The risk has no interval: one example or group only."] if found.units < 2 else []
    return BlindGuess(
        loss=name,
        prediction=prediction,
        risk=found.interval,
        std=found.std,
        examples=len(losses),
        units=found.units,
        trained_on=0,
        in_sample=False,
        per="all",
        average="example",
        classes=(),
        unit=name,
        warnings=_said(notes),
        _losses=losses,
    )


def _checked(found: ArrayLike, examples: int) -> FloatArray:
    losses = np.asarray(found)
    if losses.shape != (examples,) or losses.dtype.kind not in "biuf":
        raise InputError(
            f"loss gave {losses.dtype} values of shape {losses.shape} for {examples} examples: it "
            "must give the loss of each example, not their mean or one for each pixel."
        )
    if not np.isfinite(losses).all():
        raise InputError("loss gave NaN or infinite values: choose a prediction of finite loss.")
    return losses.astype(np.float64)
