"""What the training engine is given and what it gives back; plain arrays, no torch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError


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
        How many classes there are, seen or not; 0 where y holds numbers.
    mean, std : tuple of float, optional
        Per channel, on the scale 0 to 1, for images; per feature otherwise. What networks are given
        has this mean subtracted and is divided by this spread.
    padding : int, optional
        The token that stands for nothing, where x holds tokens.
    """

    x: NDArray[Any]
    y: NDArray[Any]
    classes: int
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    padding: int | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one input."""
        return tuple(self.x.shape[1:])

    @property
    def is_numbers(self) -> bool:
        """Whether the targets are numbers."""
        return not self.classes

    @property
    def outputs(self) -> int | tuple[int, ...]:
        """What is predicted of one input: the number of classes, or the shape of its numbers."""
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
        What the weight is multiplied with.
    """

    seed: int
    epoch: float = 0.0
    factor: float = 1.001


@dataclass(frozen=True, eq=False)
class Assignment:
    """One network to train: on which rows, from which three seeds.

    Attributes
    ----------
    rows : ndarray of int
        Positions of its training examples.
    init, order, augmentation : int
        Seeds of the initial weights, of the order of the examples, and of their augmentation
        (dropout included). The three do not touch each other.
    poke : Poke, optional
        Whether and when a weight is nudged.
    """

    rows: NDArray[np.int64]
    init: int = 0
    order: int = 0
    augmentation: int = 0
    poke: Poke | None = None


@dataclass(frozen=True)
class Keep:
    """What to keep of each run beside its predictions and errors.

    Attributes
    ----------
    probabilities : bool
        The probability of every class for each evaluation example.
    checkpoints : {"none", "end", "drops"}
        Weights at the end, or also right before every drop of the learning rate.
    features : bool
        What the last layer was given, for each evaluation example.
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
    """What came of an :class:`Assignment`.

    Attributes
    ----------
    probabilities : dict of str to ndarray of float32, shape (examples, classes)
        For each evaluation set, where targets are classes.
    metrics : dict of str to float
        ``train_error`` (of classes), ``train_loss`` on the rows trained on, in evaluation mode;
        ``steps``, ``epochs``; ``rate``; what the schedule found.
    checkpoints : dict of str to dict of str to ndarray
        ``"end"``, ``"drop-1"``, …: the weights by name.
    features : dict of str to ndarray of float32, shape (examples, features)
        For each evaluation set, if kept.
    seconds : float
        Time it took, its share where several were trained at once.
    path : str
        How it was executed, such as ``"cuda graph, compiled"``.
    error : str, optional
        Why it failed; the other fields then hold what there was.
    notes : tuple of str
        What a reader should know.
    hard : bool
        Whether the probabilities are only 0 and 1, from predicted classes; then there is no loss.
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
    """Whether there are inputs and labels, not a list of two examples with theirs."""
    if not isinstance(data, tuple | list) or len(data) != 2:
        return False
    return not (isinstance(data, list) and all(isinstance(item, tuple) for item in data))


def standardised(examples: Examples) -> NDArray[Any]:
    """Inputs as networks were trained on: features on one scale, the rest as it is."""
    x = examples.x
    if x.ndim != 2 or x.dtype.kind != "f" or examples.mean is None or examples.std is None:
        return x
    scaled: NDArray[Any] = (x - np.asarray(examples.mean)) / np.asarray(examples.std)
    return scaled.astype(np.float32)


def choose_rows(
    there: int, examples: float | None, random: np.random.Generator
) -> NDArray[np.int64]:
    """Positions of so many examples, or of a share below 1, out of those there are."""
    if there == 0:
        raise InputError("data is empty: give at least one example.")
    wanted = there if examples is None else examples
    count = math.ceil(wanted * there) if wanted < 1 else min(int(wanted), there)
    return random.permutation(there)[:count].astype(np.int64)


def is_amount(examples: Any) -> bool:
    """Whether it is a number of examples of at least 1, or a share of them below 1."""
    if isinstance(examples, bool) or not isinstance(examples, int | float | np.number):
        return False
    amount = float(examples)
    return 0 < amount < 1 or (amount >= 1 and amount.is_integer())
