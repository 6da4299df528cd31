"""The sets of examples that trained models predict: the test set, other data, or a perturbed test set."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError, MissingDependencyError
from curvewise.nn.task import MOVING, Examples
from curvewise.study.data.dataset import Dataset
from curvewise.text import brief, list_names

TEST = "test"
"""The evaluation set that every study has."""


@dataclass(frozen=True)
class Evaluation:
    """A set of examples that every trained model predicts.

    Attributes
    ----------
    data : Dataset, dict or str, optional
        Other examples of the same classes, as the data of a study is given; their test part if
        they have one. None for the study's own test set.
    perturbation : str, optional
        Name of a perturbation of :data:`curvewise.nn.perturbations.PERTURBATIONS` applied to them.
    magnitude : float, or two, optional
        How strongly, in the unit of the perturbation. Two are a range: each example has a
        magnitude of its own, drawn uniformly from it; the same for every model.

    Examples
    --------
    >>> Evaluation(perturbation="rotation", magnitude=[-180, 180]).magnitude
    (-180, 180)
    """

    data: Dataset | Mapping[str, Any] | str | None = None
    perturbation: str | None = None
    magnitude: float | tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.magnitude, list | tuple):
            object.__setattr__(self, "magnitude", _range(self.magnitude))
        if (self.perturbation is None) != (self.magnitude is None):
            raise InputError("perturbation and magnitude belong together: give both or neither.")


def _range(magnitude: Sequence[Any]) -> tuple[Any, ...]:
    numbers = all(isinstance(m, Real) and not isinstance(m, bool) for m in magnitude)
    if not numbers or len(magnitude) != 2 or not magnitude[0] < magnitude[1]:
        raise InputError(f"magnitude={brief(magnitude)}: give one number, or a range of two, the lower first.")
    return tuple(magnitude)


def make_evaluation_sets(
    evaluate: Mapping[str, Evaluation],
    own: Dataset,
    test: Callable[[], Examples],
    load: Callable[[Any, str], Dataset],
    convert: Callable[[NDArray[Any], NDArray[Any]], Examples],
    seed: int,
) -> dict[str, Examples]:
    """Make the test set and a study's other evaluation sets, in the order of the study.

    Other data must have inputs of the study's shape. Its classes are matched by name; by number
    where either side has only numbers for names. Perturbed copies are drawn from the study's seed
    and the perturbation, so that several magnitudes of one perturbation share their noise. For a
    range of magnitudes each example's own is drawn from the seed, the perturbation and the
    example's position, whatever the range. Where targets are numbers, other data must have numbers
    of the same shape; where they are images, no perturbation may move the pixels of an input.

    Parameters
    ----------
    evaluate : dict of str to Evaluation
        The further sets.
    own : Dataset
        The study's data.
    test : callable
        Gives the test set.
    load : callable
        Loads other data; its second argument is the place in the study, for messages.
    convert : callable
        Turns inputs and targets into examples, normalised as the study's own.
    seed : int
        Of the study.

    Returns
    -------
    dict of str to Examples
        ``"test"`` first.

    Raises
    ------
    InputError
        If a set does not fit the study, or a perturbation or its magnitude is not known.
    """
    for name, evaluation in evaluate.items():  # before anything is loaded or perturbed
        _check_perturbation(name, evaluation, own)
    sets = {TEST: test()}
    for name, evaluation in evaluate.items():
        examples = sets[TEST]
        if evaluation.data is not None:
            other = load(evaluation.data, f"evaluate.{name}.data")
            examples = convert(*_matched(name, other, own))
        sets[name] = _perturbed(examples, evaluation, seed)
    return sets


def _matched(name: str, other: Dataset, own: Dataset) -> tuple[NDArray[Any], NDArray[Any]]:
    """Inputs and targets of other data in the study's terms: its test part, else all of it."""
    if other.targets != own.targets:
        raise InputError(
            f"evaluate.{name} has targets={other.targets!r}, the study's data {own.targets!r}: say the same for both."
        )
    x, y = other.x, other.y
    if other.test_x is not None and other.test_y is not None:
        x, y = other.test_x, other.test_y
    if x.shape[1:] != own.x.shape[1:]:
        raise InputError(
            f"evaluate.{name} has inputs of shape {x.shape[1:]}, the study's data of "
            f"{own.x.shape[1:]}: bring both to one shape."
        )
    kinds = {"f": "features", "b": "features"}
    if own.x.ndim == 2:
        here, there = (kinds.get(v.dtype.kind, "tokens") for v in (own.x, x))
        if here != there:
            raise InputError(f"evaluate.{name} holds {there}, the study's data {here}.")
        x = x.astype(own.x.dtype, copy=False)
    if other.padding != own.padding:
        raise InputError(
            f"evaluate.{name} has the padding token {other.padding}, the study's data "
            f"{own.padding}: use one tokenizer for both."
        )
    if not own.is_numbers:
        return x, _numbered_as(name, y, other.classes, own.classes)
    if y.shape[1:] != own.y.shape[1:]:
        raise InputError(
            f"evaluate.{name} has targets of shape {y.shape[1:]}, the study's data of "
            f"{own.y.shape[1:]}: bring both to one shape."
        )
    return x, y


def _numbered_as(name: str, y: NDArray[np.int64], theirs: tuple[str, ...], ours: tuple[str, ...]) -> NDArray[np.int64]:
    """Number the classes of other data as the study numbers them."""
    used = np.unique(y)
    position = {label: i for i, label in enumerate(ours)}
    if all(theirs[i] in position for i in used):
        numbers = np.array([position.get(label, -1) for label in theirs], dtype=np.int64)
        return numbers[y]
    # Names that are just the numbers 0, 1, … are no names: then the numbers must mean the same.
    unnamed = any(names == tuple(map(str, range(len(names)))) for names in (theirs, ours))
    if unnamed and used[-1] < len(ours):
        return y.astype(np.int64)
    unknown = [theirs[i] for i in used if theirs[i] not in position]
    raise InputError(
        f"evaluate.{name} has classes that the study does not: {list_names(unknown, 5)}; the study has "
        f"{list_names(ours, 10)}. Name them alike."
    )


def _check_perturbation(name: str, evaluation: Evaluation, data: Dataset) -> None:
    if evaluation.perturbation is None or evaluation.magnitude is None:
        return
    try:
        perturbation = _perturbations().find_perturbation(evaluation.perturbation)
        if perturbation.pairs is not None:
            raise InputError(
                f"perturbation={perturbation.name!r} mixes examples in pairs, of which a set has "
                "none: use one that changes each example by itself."
            )
        given = evaluation.magnitude
        for magnitude in given if isinstance(given, tuple) else (given,):
            perturbation.check(magnitude)
        perturbation.check_input(data.x)
        if perturbation.name in MOVING and data.y.ndim > 2:
            raise InputError(
                f"perturbation={perturbation.name!r} moves the pixels of an input and not those of "
                "its target, which is an image: use one that moves nothing."
            )
        if perturbation.name == "token-dropout" and data.padding is None:
            raise InputError(
                "perturbation='token-dropout' puts padding in the place of tokens: say which token "
                "is the padding of the data."
            )
    except InputError as error:
        raise InputError(f"evaluate.{name}: {error}") from error


def _perturbed(examples: Examples, evaluation: Evaluation, seed: int) -> Examples:
    if evaluation.perturbation is None or evaluation.magnitude is None:
        return examples
    own = np.random.SeedSequence([seed, zlib.crc32(evaluation.perturbation.encode())])
    drawn, other = (int(state) for state in own.generate_state(2))
    perturbations = _perturbations()
    magnitude: Any = evaluation.magnitude
    if isinstance(magnitude, tuple):
        magnitude = perturbations.draw_magnitudes(*magnitude, len(examples.y), other)
    changed = perturbations.perturb(examples.x, evaluation.perturbation, magnitude, drawn, padding=examples.padding)
    return replace(examples, x=changed)


def _perturbations() -> Any:
    try:
        from curvewise.response.networks import perturbations
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            f'Perturbed evaluation sets need {error.name}, which is not installed: pip install "curvewise[torch]".'
        ) from error
    return perturbations
