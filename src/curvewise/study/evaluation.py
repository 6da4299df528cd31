"""What trained models are tried on: the test set, other data, or a perturbed test set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from curvewise.errors import InputError
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
    magnitude : float, optional
        How strongly, in the unit of the perturbation.
    """

    data: Dataset | Mapping[str, Any] | str | None = None
    perturbation: str | None = None
    magnitude: float | None = None

    def __post_init__(self) -> None:
        if (self.perturbation is None) != (self.magnitude is None):
            raise InputError("perturbation and magnitude belong together: give both or neither.")
