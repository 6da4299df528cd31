"""What networks are to predict, classes or numbers, and which settings fit it; no torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from curvewise.errors import InputError
from curvewise.nn.settings import NUMBER_LOSSES, Training

Outputs: TypeAlias = "int | tuple[int, ...]"
"""What a network gives for one input: so many classes, or numbers of that shape."""

MOVING = ("flip", "translate", "crop", "rotation", "shift-x", "shift-y")
"""Augmentations and perturbations after which a pixel is elsewhere."""


IMAGES = ("unet",)
"""Architectures that give images; the others of ours, of timm and of Hugging Face give a row."""


def settle_training(training: Training, outputs: Outputs) -> Training:
    """Settle the loss by the kind of targets, and refuse settings that contradict it.

    Parameters
    ----------
    training : Training
        As given; ``loss=None`` is the usual loss.
    outputs : int or tuple of int
        The number of classes, or the shape of the numbers.

    Returns
    -------
    Training
        For numbers, with ``loss`` ``"l1"`` or ``"l2"``; for classes with None, which stands for
        cross-entropy, so that both ways to say it are one training.

    Raises
    ------
    InputError
        If a setting is not for such targets.

    Examples
    --------
    >>> settle_training(Training("mlp"), (3,)).loss
    'l2'
    >>> settle_training(Training("mlp", loss="cross-entropy"), 10) == Training("mlp")
    True
    """
    if ":" not in training.architecture and outputs:
        check_outputs_of(training.architecture, outputs)
    if isinstance(outputs, int):
        if training.loss in NUMBER_LOSSES:
            raise InputError(
                f"loss={training.loss!r} is for numbers, and the targets are classes: leave it "
                "out, or say targets='numbers' where the data is loaded."
            )
        return replace(training, loss=None)
    if not outputs:
        raise InputError(
            "The targets have shape (examples,), without an axis for the numbers of an example: "
            "pass y[:, None]."
        )
    if training.loss == "cross-entropy":
        raise InputError(
            "loss='cross-entropy' is for classes, and the targets are numbers: use 'l1' or 'l2'."
        )
    if training.label_smoothing:
        raise InputError(
            f"label_smoothing={training.label_smoothing:g} is for classes, and the targets are "
            "numbers: leave it out."
        )
    if len(outputs) > 1:
        _check_dense(training, outputs)
    return replace(training, loss=training.loss or "l2")


def _check_dense(training: Training, outputs: tuple[int, ...]) -> None:
    """Refuse what would take apart the pixels of an input and those of its target."""
    moving = [spec for spec in training.augmentation if spec.partition(":")[0] in MOVING]
    if moving:
        raise InputError(
            f"augmentation={moving} moves the pixels of an input and not those of its target, "
            f"which is an image of shape {outputs}: leave it out (noise, colour and cutout move "
            "nothing)."
        )
    if training.trained == "head":
        raise InputError(
            "trained='head' trains a linear layer, which gives a row of numbers, and the targets "
            f"are images of shape {outputs}: use trained='all'."
        )


def check_outputs_of(architecture: str, outputs: Outputs) -> None:
    """Refuse an architecture that gives a row for images, or images for a row.

    >>> check_outputs_of("unet", (1, 8, 8))
    """
    dense = isinstance(outputs, tuple) and len(outputs) > 1
    if dense and architecture not in IMAGES:
        raise InputError(
            f"architecture={architecture!r} gives a row of numbers, and the targets are images of "
            f"shape {outputs}: use 'unet', or 'module:function' for a factory of your own."
        )
    if architecture in IMAGES and not dense:
        what = "classes" if isinstance(outputs, int) else "rows of numbers"
        raise InputError(
            f"architecture={architecture!r} gives images, and the targets are {what}: use 'mlp', "
            "'cnn' or 'resnet9', say."
        )


def check_shape(given: Sequence[int], wanted: Sequence[int]) -> None:
    """Refuse outputs of another shape than their targets: one would be spread over the other.

    >>> check_shape((4, 1), (4, 1))
    """
    if tuple(given) != tuple(wanted):
        raise InputError(
            f"The network gives an array of shape {tuple(given)} for {wanted[0]} inputs, and their "
            f"targets have shape {tuple(wanted)}: let it give numbers of the shape of a target."
        )


def check_alike(outputs: Outputs, others: Mapping[str, Outputs]) -> None:
    """Refuse evaluation sets whose targets are of another kind or shape than those trained on.

    >>> check_alike((2,), {"test": (2,)})
    """
    for name, found in others.items():
        if found != outputs and not (isinstance(found, int) and isinstance(outputs, int)):
            raise InputError(
                f"The evaluation set {name!r} has targets of {_said(found)}, and what is trained "
                f"on has {_said(outputs)}: bring both to one kind and shape."
            )


def _said(outputs: Outputs) -> str:
    if isinstance(outputs, int):
        return f"{outputs} classes"
    return f"numbers of shape {outputs}"
