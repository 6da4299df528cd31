"""What trained models are tried on: the test set, other data, or a perturbed test set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

from curvewise.errors import InputError
from curvewise.io._table import brief
from curvewise.study.dataset import Dataset


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
        raise InputError(
            f"magnitude={brief(magnitude)}: give one number, or a range of two, the lower first."
        )
    return tuple(magnitude)
