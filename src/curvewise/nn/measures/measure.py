"""What a measure of generalisation is: a function with what it means, needs and costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from curvewise.errors import InputError
from curvewise.io._table import brief, listed
from curvewise.nn.measures.subject import Subject

NEEDS = {
    "initial": "initial=, the weights before training",
    "twin": "twin=, the same network trained with another seed",
    "continuous": "inputs that are numbers, not tokens",
    "images": "images, (examples, channels, height, width)",
}
"""What a measure may need beside a network and labelled examples, in words."""


@dataclass(frozen=True, eq=False)
class Measure:
    """A number of a trained network that may go with its generalisation gap.

    Attributes
    ----------
    name : str
        What it is called.
    function : callable
        Takes a :class:`Subject`, gives a number. It raises :class:`InputError` where the network
        has no such number.
    orientation : {1, -1}
        1 if a higher value should mean a larger gap, -1 if a smaller one.
    needs : tuple of str
        Of :data:`NEEDS`.
    cost : str
        The work, in words.
    about : str
        What it is, and whose.
    """

    name: str
    function: Callable[[Subject], Tensor | float]
    orientation: int
    needs: tuple[str, ...] = ()
    cost: str = ""
    about: str = ""

    def __post_init__(self) -> None:
        if self.orientation not in (1, -1):
            raise InputError(
                f"orientation={brief(self.orientation)} of measure {self.name!r}: give 1 if a "
                "higher value should mean a larger gap, -1 otherwise."
            )
        unknown = [need for need in self.needs if need not in NEEDS]
        if unknown:
            raise InputError(
                f"needs={brief(self.needs)} of measure {self.name!r}: use {listed(NEEDS)}."
            )

    def lacks(self, subject: Subject) -> tuple[str, ...]:
        """Which of its needs are not met."""
        shape = subject.sample.x.shape
        there = {
            "initial": subject.initial is not None,
            "twin": subject.twin is not None,
            "continuous": subject.continuous,
            "images": subject.continuous and len(shape) == 4,
        }
        return tuple(need for need in self.needs if not there[need])
