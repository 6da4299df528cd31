"""What trained models are tried on: the test set, other data, or a perturbed test set."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError, MissingDependencyError
from curvewise.nn.task import MOVING, Examples
from curvewise.study.data.dataset import Dataset
from curvewise.text import brief, list_names

if TYPE_CHECKING:
    from curvewise.study.spec.study import Study


@dataclass(frozen=True)
class Evaluation:
    """A set of examples that every trained model predicts.

    Attributes
    ----------
    data : Dataset, dict or str, optional
        Other examples of the same classes, as the data of a study is given; their test part if
        they have one. None for the study's own test set.
    perturbation : str, optional
        Name of a perturbation of :data:`curvewise.response.networks.perturbations.PERTURBATIONS` applied to them.
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


# The sets of examples that every trained model of a study predicts.


def make_evaluation_sets(study: Study) -> dict[str, Examples]:
    """The test set and the study's other evaluation sets, in the order of the study.

    Other data must have inputs of the study's shape. Its classes are matched by name; by number
    where either side has only numbers for names. Perturbed copies are drawn from the study's seed
    and the perturbation, so that several magnitudes of one perturbation share their noise. For a
    range of magnitudes each example's own is drawn from the seed, the perturbation and the
    example's position, whatever the range. Where targets are numbers, other data must have numbers
    of the same shape; where they are images, no perturbation may move the pixels of an input.

    Parameters
    ----------
    study : Study
        Its data, seed and ``evaluate``.

    Returns
    -------
    dict of str to Examples
        ``"test"`` first.

    Raises
    ------
    InputError
        If a set does not fit the study, or a perturbation or its magnitude is not known.

    Examples
    --------
    >>> from curvewise.study.spec.learner import Learner
    >>> from curvewise.study.spec.study import Study
    >>> learner = Learner(estimator="sklearn.svm:SVC")
    >>> sets = make_evaluation_sets(Study("digits", {"svm": learner}))
    >>> {name: len(examples.y) for name, examples in sets.items()}
    {'test': 360}
    """
    for name, evaluation in study.evaluate.items():
        _check_perturbation(name, evaluation, study.dataset)
    sets = {"test": study.test_examples()}
    for name, evaluation in study.evaluate.items():
        examples = sets["test"]
        if evaluation.data is not None:
            examples = _other(name, evaluation.data, study)
        sets[name] = _perturbed(examples, evaluation, study.seed)
    return sets


def _other(name: str, data: Dataset | Mapping[str, Any] | str, study: Study) -> Examples:
    """Other data as examples of the study's classes: its test part, else all of it."""
    other = study.load_data(data, f"evaluate.{name}.data")
    own = study.dataset
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
        return replace(study.examples, x=x, y=_matched(name, y, other.classes, own.classes))
    if y.shape[1:] != own.y.shape[1:]:
        raise InputError(
            f"evaluate.{name} has targets of shape {y.shape[1:]}, the study's data of "
            f"{own.y.shape[1:]}: bring both to one shape."
        )
    return replace(study.examples, x=x, y=study.scaled_targets(y))


def _matched(name: str, y: NDArray[np.int64], theirs: tuple[str, ...], ours: tuple[str, ...]) -> NDArray[np.int64]:
    """Classes of other data, numbered as the study numbers them."""
    used = np.unique(y)
    position = {label: i for i, label in enumerate(ours)}
    if all(theirs[i] in position for i in used):
        numbers = np.array([position.get(label, -1) for label in theirs], dtype=np.int64)
        return numbers[y]
    if (_are_numbers(theirs) or _are_numbers(ours)) and used[-1] < len(ours):
        return y.astype(np.int64)
    unknown = [theirs[i] for i in used if theirs[i] not in position]
    raise InputError(
        f"evaluate.{name} has classes that the study does not: {list_names(unknown, 5)}; the study has "
        f"{list_names(ours, 10)}. Name them alike."
    )


def _are_numbers(names: tuple[str, ...]) -> bool:
    """Whether classes have no names but their own numbers."""
    return names == tuple(str(i) for i in range(len(names)))


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
        for magnitude in _ends(evaluation.magnitude):
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


def _ends(magnitude: float | tuple[float, float]) -> tuple[float, ...]:
    return magnitude if isinstance(magnitude, tuple) else (magnitude,)


def _perturbed(examples: Examples, evaluation: Evaluation, seed: int) -> Examples:
    if evaluation.perturbation is None or evaluation.magnitude is None:
        return examples
    own = np.random.SeedSequence([seed, zlib.crc32(evaluation.perturbation.encode())])
    drawn, other = (int(state) for state in own.generate_state(2))
    perturbations = _perturbations()
    magnitude: Any = evaluation.magnitude
    if isinstance(magnitude, tuple):
        magnitude = perturbations.draw_magnitudes(*magnitude, len(examples.y), other)
    change = perturbations.find_perturbation(evaluation.perturbation, padding=examples.padding)
    changed = perturbations.perturb(examples.x, change, magnitude, drawn)
    return replace(examples, x=changed)


def _perturbations() -> Any:
    try:
        from curvewise.response.networks import perturbations
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            f'Perturbed evaluation sets need {error.name}, which is not installed: pip install "curvewise[torch]".'
        ) from error
    return perturbations
