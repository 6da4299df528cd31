"""Inputs and results of the training engine in plain arrays, and checks that settings fit the targets; no torch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError, arg
from curvewise.nn.training import IMAGE_ARCHITECTURES, LARGEST, NUMBER_LOSSES, Training, misfit


@dataclass(frozen=True, eq=False)
class Examples:
    """Inputs with their targets: classes, or numbers.

    Attributes
    ----------
    x : ndarray
        Images, (examples, channels, height, width) of uint8; features, (examples, features) of
        float; or tokens, (examples, length) of integers.
    y : ndarray of int, shape (examples,); or of float32, shape (examples, ...)
        Classes from 0 on; or numbers, (examples, k) or (examples, channels, height, width).
    classes : int
        Number of classes, seen or not; 0 where y holds numbers.
    mean, std : tuple of float, optional
        Per channel, on the scale 0 to 1, for images; per feature otherwise. Networks are given inputs with this
        mean subtracted, divided by this spread.
    padding : int, optional
        The token that stands for nothing, where x holds tokens.
    views : tuple of str
        Views of each image over which outputs are averaged where these examples are predicted, such as
        ``("mirror", "shift:1")``; by default the image alone.
    """

    x: NDArray[Any]
    y: NDArray[Any]
    classes: int
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    padding: int | None = None
    views: tuple[str, ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one input."""
        return tuple(self.x.shape[1:])

    @property
    def is_numbers(self) -> bool:
        """True if the targets are numbers."""
        return not self.classes

    @property
    def outputs(self) -> int | tuple[int, ...]:
        """Target of one input: the number of classes, or the shape of its numbers."""
        return self.classes or tuple(self.y.shape[1:])


@dataclass(frozen=True)
class Poke:
    """A tiny change of one weight in the course of a training.

    Attributes
    ----------
    seed : int
        Chooses the weight, among all trained ones.
    epoch : float
        When; 0 is right after the weights were drawn.
    factor : float
        Multiplier of the weight.
    """

    seed: int
    epoch: float = 0.0
    factor: float = 1.001


@dataclass(frozen=True, eq=False)
class Assignment:
    """One network to train: the rows it is trained on, and its three seeds.

    Attributes
    ----------
    rows : ndarray of int
        Positions of its training examples.
    init, order, augmentation : int
        Seeds of the initial weights, of the order of the examples, and of their augmentation
        (dropout included). The three do not touch each other.
    poke : Poke, optional
        A weight to nudge, and when.
    held : ndarray of int, optional
        Those of its rows that a schedule which validates holds out; by default they are drawn as
        ``validation`` of the training says.
    """

    rows: NDArray[np.int64]
    init: int = 0
    order: int = 0
    augmentation: int = 0
    poke: Poke | None = None
    held: NDArray[np.int64] | None = None


@dataclass(frozen=True)
class Keep:
    """Results of each run to keep beside its predictions and errors.

    Attributes
    ----------
    probabilities : bool
        The probability of every class for each evaluation example.
    checkpoints : {"none", "end", "drops"}
        Weights at the end, or also right before every drop of the learning rate.
    features : bool
        Inputs of the last layer, for each evaluation example.
    predictions : bool
        The predicted numbers for each evaluation example, where targets are numbers: their losses
        are kept always, and so are predicted classes.
    """

    probabilities: bool = False
    checkpoints: str = "none"
    features: bool = False
    predictions: bool = False


@dataclass(frozen=True, eq=False)
class Trained:
    """Result of one :class:`Assignment`.

    Attributes
    ----------
    probabilities : dict of str to ndarray of float32, shape (examples, classes)
        For each evaluation set, where targets are classes.
    metrics : dict of str to float
        ``train_error`` (of classes), ``train_loss`` on the rows trained on, in evaluation mode;
        ``steps``, ``epochs``; ``rate``; what the schedule settled on.
    checkpoints : dict of str to dict of str to ndarray
        ``"end"``, ``"drop-1"``, …: the weights by name.
    features : dict of str to ndarray of float32, shape (examples, features)
        For each evaluation set, if kept.
    seconds : float
        Time it took, its share where several were trained at once.
    path : str
        Way of execution, such as ``"cuda graph, compiled"``.
    error : str, optional
        Why it failed; the other fields then hold what there was.
    notes : tuple of str
        Remarks for a reader.
    hard : bool
        True if the probabilities are only 0 and 1, from predicted classes; then there is no loss.
    losses : dict of str to ndarray of float32, shape (examples,)
        For each evaluation set, where targets are numbers.
    predictions : dict of str to ndarray of float32, shape (examples, ...)
        The predicted numbers for each evaluation set, if kept.
    doubts : tuple of str
        Reasons why its bits may be others when it is made again; none where they are promised.
    """

    probabilities: Mapping[str, NDArray[np.float32]] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    checkpoints: Mapping[str, Mapping[str, NDArray[Any]]] = field(default_factory=dict)
    features: Mapping[str, NDArray[np.float32]] = field(default_factory=dict)
    seconds: float = 0.0
    path: str = ""
    error: str | None = None
    notes: tuple[str, ...] = ()
    hard: bool = False
    losses: Mapping[str, NDArray[np.float32]] = field(default_factory=dict)
    predictions: Mapping[str, NDArray[np.float32]] = field(default_factory=dict)
    doubts: tuple[str, ...] = ()


def is_pair(data: Any) -> bool:
    """Tell inputs with their labels from a list of two labelled examples."""
    if not isinstance(data, tuple | list) or len(data) != 2:
        return False
    return not (isinstance(data, list) and all(isinstance(item, tuple) for item in data))


def standardised(examples: Examples) -> NDArray[Any]:
    """Return inputs as networks are trained on: features on one scale, images and tokens as stored."""
    x = examples.x
    plain = examples.padding is not None or x.ndim == 4
    if plain or examples.mean is None or examples.std is None:
        return x
    # In double precision first: a mean far from 0 would cost digits in single.
    scaled: NDArray[Any] = (x.astype(np.float64) - np.asarray(examples.mean)) / np.asarray(examples.std)
    return scaled.astype(np.float32)


def choose_rows(there: int, examples: float | None, random: np.random.Generator) -> NDArray[np.int64]:
    """Draw the positions of so many examples, or of a share below 1, out of those there are."""
    if there == 0:
        raise InputError("is empty: give at least one example.", argument="data")
    wanted = there if examples is None else examples
    count = math.ceil(wanted * there) if wanted < 1 else min(int(wanted), there)
    return random.permutation(there)[:count].astype(np.int64)


def split_rows(
    rows: NDArray[np.int64], y: NDArray[np.int64], share: float | str, least: int = 1
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Hold out a share of each class, or with ``"1/class"`` so many examples of each.

    Every class with two or more examples keeps at least one on each side as far as the share
    allows; with ``least=0`` all of a class may be held out. The order of the rows is kept.

    Examples
    --------
    >>> train, held = split_rows(np.arange(6), np.array([0, 0, 0, 1, 1, 1]), 1 / 3)
    >>> len(train), len(held)
    (4, 2)
    >>> split_rows(np.arange(6), np.array([0, 0, 0, 0, 1, 1]), "1/class")[1].size
    2
    """
    generator = np.random.default_rng(0)  # always 0: the same rows are held out whatever the seeds of the run
    held = np.zeros(len(rows), dtype=bool)
    labels = y[rows]
    classes, counts = np.unique(labels, return_counts=True)
    if isinstance(share, str):
        ideal = np.full(len(counts), float(share.partition("/")[0]))
        wanted = 0
    else:
        ideal = counts * share
        wanted = max(1, round(share * len(rows)))
    take = np.floor(ideal).astype(int)
    take = np.minimum(take, counts - least)
    # Whole numbers fall short of the share: classes that lost most by rounding give one more, until it is met.
    spare = np.argsort(take - ideal, kind="stable")
    for i in spare:
        if take.sum() >= wanted:
            break
        take[i] += take[i] < counts[i] - least
    for label, k in zip(classes, take, strict=True):
        members = np.flatnonzero(labels == label)
        held[generator.permutation(members)[:k]] = True
    return rows[~held], rows[held]


def is_amount(examples: Any) -> bool:
    """Tell whether a value is a number of examples of at least 1, or a share of them below 1."""
    if isinstance(examples, bool) or not isinstance(examples, int | float | np.number):
        return False
    amount = float(examples)
    return 0 < amount < 1 or (amount >= 1 and amount.is_integer())


Outputs: TypeAlias = "int | tuple[int, ...]"
"""Outputs of a network for one input: so many classes, or numbers of that shape."""

# Colours, noise and cutout leave every pixel where it is.
MOVING = ("flip", "translate", "crop", "rotation", "shift-x", "shift-y", "resized-crop", "alternating-flip")
"""Augmentations and perturbations after which a pixel is elsewhere."""


def settle_training(training: Training, outputs: Outputs, largest: int | None = None) -> Training:
    """Settle the loss by the kind of targets, and refuse settings that contradict it.

    Parameters
    ----------
    training : Training
        As given; ``loss=None`` is the usual loss.
    outputs : int or tuple of int
        The number of classes, or the shape of the numbers.
    largest : int, optional
        The largest training size of a study, for ``patience_n="largest"``.

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
    if training.patience_n == LARGEST:
        if largest is None:
            raise misfit("patience_n", LARGEST, "only a study has sizes.", "Give a number of examples.")
        training = replace(training, patience_n=largest)
    if ":" not in training.architecture and outputs:
        check_outputs_of(training.architecture, outputs)
    if isinstance(outputs, int):
        if training.loss in NUMBER_LOSSES:
            remedy = f"Leave it out, or say {arg('targets', 'numbers')} where the data is loaded."
            raise misfit("loss", training.loss, "for numbers, and the targets are classes.", remedy)
        return replace(training, loss=None)
    if not outputs:
        raise InputError(
            "The targets have shape (examples,), without an axis for the numbers of an example: pass y[:, None]."
        )
    for_classes = "for classes, and the targets are numbers."
    if training.loss == "cross-entropy":
        raise misfit("loss", "cross-entropy", for_classes, "Use 'l1' or 'l2'.")
    if training.label_smoothing:
        raise misfit("label_smoothing", training.label_smoothing, for_classes, "Leave it out.")
    moving = [spec for spec in training.augmentation if spec.partition(":")[0] in MOVING]
    if len(outputs) > 1 and moving:
        problem = f"moves the pixels of an input and not those of its target, which is an image of shape {outputs}."
        raise misfit("augmentation", moving, problem, "Leave it out (noise, colour and cutout move nothing).")
    if len(outputs) > 1 and training.trained == "head":
        problem = f"trains a linear layer, which gives a row of numbers, and the targets are images of shape {outputs}."
        raise misfit("trained", "head", problem, f"Use {arg('trained', 'all')}.")
    return replace(training, loss=training.loss or "l2")


def check_outputs_of(architecture: str, outputs: Outputs) -> None:
    """Refuse an architecture that gives a row for images, or images for a row.

    >>> check_outputs_of("unet", (1, 8, 8))
    """
    dense = isinstance(outputs, tuple) and len(outputs) > 1
    if dense and architecture not in IMAGE_ARCHITECTURES:
        problem = f"gives a row of numbers, and the targets are images of shape {outputs}."
        remedy = "Use 'unet', or 'module:function' for a factory of your own."
        raise misfit("architecture", architecture, problem, remedy)
    if architecture in IMAGE_ARCHITECTURES and not dense:
        what = "classes" if isinstance(outputs, int) else "rows of numbers"
        problem = f"gives images, and the targets are {what}."
        raise misfit("architecture", architecture, problem, "Use 'mlp', 'cnn' or 'resnet9', say.")


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
            here, there = (f"{o} classes" if isinstance(o, int) else f"numbers of shape {o}" for o in (outputs, found))
            raise InputError(
                f"The evaluation set {name!r} has targets of {there}, and what is trained "
                f"on has {here}: bring both to one kind and shape."
            )
