"""Evaluation sets: other data with its classes matched, perturbed copies, and views."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError, arg, importing, list_names
from curvewise.nn.task import MOVING, Examples
from curvewise.nn.training import parse_views
from curvewise.study.data.dataset import Dataset
from curvewise.study.spec.design import within

if TYPE_CHECKING:
    from curvewise.study.spec.study import StudySpec


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
    views : sequence of str
        Views of each image over which a network's outputs are averaged (test-time augmentation): names of
        :data:`curvewise.nn.training.VIEWS`, such as ``["mirror", "shift:1"]``.

    Examples
    --------
    >>> Evaluation(perturbation="rotation", magnitude=[-180, 180]).magnitude
    (-180, 180)
    """

    data: Dataset | Mapping[str, Any] | str | None = None
    perturbation: str | None = None
    magnitude: float | tuple[float, float] | None = None
    views: Sequence[str] = ()

    def __post_init__(self) -> None:
        views = (self.views,) if isinstance(self.views, str) else self.views
        if not isinstance(views, list | tuple) or not all(isinstance(view, str) for view in views):
            raise InputError("give a list of words, such as ['mirror'].", argument="views", value=self.views)
        object.__setattr__(self, "views", tuple(views))
        if isinstance(self.magnitude, np.ndarray | np.generic):
            object.__setattr__(self, "magnitude", self.magnitude.tolist())
        if isinstance(self.magnitude, list | tuple):
            numbers = all(isinstance(m, Real) and not isinstance(m, bool) for m in self.magnitude)
            if not numbers or len(self.magnitude) != 2 or not self.magnitude[0] < self.magnitude[1]:
                problem = "give one number, or a range of two, the lower first."
                raise InputError(problem, argument="magnitude", value=self.magnitude)
            object.__setattr__(self, "magnitude", tuple(self.magnitude))
        if (self.perturbation is None) != (self.magnitude is None):
            raise InputError("perturbation and magnitude belong together: give both or neither.")


def match_examples(name: str, other: Dataset, own: Dataset) -> tuple[NDArray[Any], NDArray[Any]]:
    """Give inputs and targets of other data in the study's terms: its test part, else all of it."""
    x, y = other.x, other.y
    if other.test_x is not None and other.test_y is not None:
        x, y = other.test_x, other.test_y
    kinds = {"f": "features", "b": "features"}
    here, there = (kinds.get(v.dtype.kind, "tokens") if own.x.ndim == 2 else "images" for v in (own.x, x))
    # What must be the same of both: its value there and here, and what to do where it is not.
    same: list[tuple[str, Any, Any, str]] = [
        ("has targets=", repr(other.targets), repr(own.targets), "say the same for both"),
        ("has inputs of shape ", x.shape[1:], own.x.shape[1:], "bring both to one shape"),
        ("holds ", there, here, "give the same kind of inputs"),
        ("has the padding token ", other.padding, own.padding, "use one tokenizer for both"),
    ]
    if own.is_numbers:
        same.append(("has targets of shape ", y.shape[1:], own.y.shape[1:], "bring both to one shape"))
    for what, theirs, ours, remedy in same:
        if theirs != ours:
            raise InputError(f"{what}{theirs}, the study's data {ours}: {remedy}.", argument=f"evaluate.{name}")
    x = x.astype(own.x.dtype, copy=False) if own.x.ndim == 2 else x
    return x, y if own.is_numbers else _numbered_as(name, y, other.classes, own.classes)


def _numbered_as(name: str, y: NDArray[np.int64], theirs: tuple[str, ...], ours: tuple[str, ...]) -> NDArray[np.int64]:
    """Number the classes of other data as the study numbers them."""
    if theirs == ours:
        return y
    for whose, names in (("it", theirs), ("the study", ours)):
        if twice := [label for label, many in Counter(names).items() if many > 1]:
            problem = f"cannot be matched by the names of its classes: {whose} has several of the name {twice[0]!r}."
            raise InputError(problem, argument=f"evaluate.{name}", remedy="Give each class a name of its own.")
    used = np.unique(y)
    position = {label: i for i, label in enumerate(ours)}
    if all(theirs[i] in position for i in used):
        numbers = np.array([position.get(label, -1) for label in theirs], dtype=np.int64)
        return numbers[y]
    # Names that are just the numbers 0, 1, … are no names: then the numbers must mean the same. Folders are sorted as
    # texts, "10" before "2".
    there, here = _only_numbers(theirs), _only_numbers(ours)
    unknown = [theirs[i] for i in used if theirs[i] not in position]
    if there is not None or here is not None:
        if joined := [label for label in (*theirs, *ours) if "+" in label]:  # as Dataset.grouped names them
            both = f"{list_names(theirs, 5)} and the study {list_names(ours, 5)}"
            problem = f"has the classes {both}: {joined[0]!r} is a group."
            remedy = f"Group both alike, with {arg('data.classes')}."
            raise InputError(problem, argument=f"evaluate.{name}", remedy=remedy)
        numbers = y.astype(np.int64) if there is None else there[y]
        if numbers.max() < len(ours):
            return numbers if here is None else np.argsort(here)[numbers]
    problem = f"has classes that the study does not: {list_names(unknown, 5)}; the study has {list_names(ours, 10)}."
    raise InputError(problem, argument=f"evaluate.{name}", remedy="Name them alike.")


def _only_numbers(names: tuple[str, ...]) -> NDArray[np.int64] | None:
    """Return the numbers that are the names of classes, each from 0 on once; None where they are no such names."""
    numbers = [int(name) if name.isdecimal() else -1 for name in names]
    return np.array(numbers, dtype=np.int64) if sorted(numbers) == list(range(len(names))) else None


def check_perturbation(name: str, evaluation: Evaluation, data: Dataset) -> None:
    """Refuse a perturbation that does not fit the data or has no such magnitude."""
    if evaluation.perturbation is None or evaluation.magnitude is None:
        return
    with within(f"evaluate.{name}"):
        perturbation, problem = _perturbations().find_perturbation(evaluation.perturbation), ""
        if perturbation.pairs is not None:
            problem = "mixes examples in pairs, of which a set has none: use one that changes each example by itself."
            raise InputError(problem, argument="perturbation", value=perturbation.name)
        given = evaluation.magnitude
        for magnitude in given if isinstance(given, tuple) else (given,):
            perturbation.check(magnitude)
        perturbation.check_input(data.x)
        if perturbation.name in MOVING and data.y.ndim > 2:
            problem = "moves the pixels of an input and not those of its target, an image: use one that moves nothing."
        elif perturbation.name == "token-dropout" and data.padding is None:
            problem = "puts padding in the place of tokens: say which token is the padding of the data."
        if problem:
            raise InputError(problem, argument="perturbation", value=perturbation.name)


def check_views(name: str, evaluation: Evaluation, study: StudySpec) -> None:
    """Refuse views of what is no image, or whose targets would have to move, and learners that do not have them."""
    if not evaluation.views:
        return
    with within(f"evaluate.{name}"):
        parse_views(evaluation.views, tuple(study.dataset.x.shape[1:]))
    others = [key for key, learner in study.learners.items() if learner.kind != "network"]
    problem = ""
    if others:
        problem = f"is for networks, and {list_names(others, 3)} predict by themselves: leave one of both out."
    elif study.dataset.y.ndim > 2:
        problem = "averages over images that were moved, and the targets are images: leave it out."
    if problem:
        raise InputError(problem, argument=f"evaluate.{name}.views", value=list(evaluation.views))


def perturb_examples(examples: Examples, evaluation: Evaluation, seed: int) -> Examples:
    """Perturb examples as an evaluation set asks for; its own draws follow from the seed of the study."""
    if evaluation.perturbation is None or evaluation.magnitude is None:
        return examples
    # Seeded by the perturbation and not by its magnitude, so that several magnitudes share their noise.
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
    with importing("Perturbed evaluation sets need {}", "torch"):
        from curvewise.response.networks import perturbations
    return perturbations
