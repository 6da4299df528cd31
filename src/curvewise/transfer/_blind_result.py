"""What a blind guess is found to be."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from curvewise.tables import number
from curvewise.types import Control, FloatArray, Interval, Result, interval_columns


@dataclass(frozen=True, eq=False)
class BlindGuess(Result):
    """The best constant prediction for a loss, and its risk.

    Attributes
    ----------
    loss : str
        Name of the loss.
    prediction : number, str or ndarray
        The constant: a class, frequencies of the classes, a number for each output or element, or
        a direction.
    risk : Interval
        Mean loss of the constant.
    std : float
        Standard error of the risk; NaN with a single example or group.
    examples : int
        On how many the risk was measured.
    units : int
        How many independent units they are: groups if given, else examples.
    trained_on : int
        Examples that the constant was found on; 0 if it was given.
    in_sample : bool
        Whether the risk was measured on the examples that the constant was found on.
    per : {"output", "pixel", "all"}
        What has a constant of its own.
    average : {"example", "pixel"}
        What counts the same in the risk.
    classes : tuple
        Of the targets, in the order of the frequencies; empty for numbers.
    unit : str
        Of the risk.
    left_out : int
        Elements without target among those measured.
    rivals : int
        For "error" on the same examples: how many classes may be the most frequent one, as far as
        these examples tell; else 1.
    """

    loss: str
    prediction: Any
    risk: Interval
    std: float
    examples: int
    units: int
    trained_on: int
    in_sample: bool
    per: str
    average: str
    classes: tuple[Any, ...]
    unit: str
    left_out: int = 0
    rivals: int = 1
    warnings: tuple[str, ...] = ()
    _losses: FloatArray = field(default_factory=lambda: np.empty(0), repr=False)

    @property
    def losses(self) -> FloatArray:
        """Mean loss of each example; NaN for one without target."""
        return self._losses

    def control(self) -> Control:
        """The risk as a control of :func:`measure_transfer`."""
        of = "the same examples" if self.in_sample else f"{self.examples} test examples"
        std = 0.0 if self.risk.estimate == 0 and not np.isfinite(self.std) else self.std
        return Control(self.risk.estimate, std, f"best constant for {self.loss}, on {of}")

    def columns(self) -> dict[str, Any]:
        """One row: the risk."""
        return {**interval_columns({"risk": self.risk}), "std": [self.std]}

    def summary(self) -> str:
        """A few sentences."""
        share = f"{self.risk.level:.0%}"
        text = f"The best constant prediction for {self.loss} {self._said()}has a risk of "
        text += f"{number(self.risk.estimate)} ({self.unit}; {share} interval "
        text += f"{number(self.risk.low)} to {number(self.risk.high)}), measured on "
        text += f"{self.examples} example{'' if self.examples == 1 else 's'}"
        text += f" in {self.units} groups" if self.units != self.examples else ""
        if self.in_sample:
            text += ", the same that it was found on."
            if self.rivals > 1:
                text += f" {self.rivals} classes may be the most frequent; the upper end of the "
                text += "interval allows for the choice among them."
            return text
        found = f"; it was found on {self.trained_on} others." if self.trained_on else "."
        return text + found

    def _said(self) -> str:
        value = self.prediction
        if isinstance(value, str):
            return f"({value!r}) "
        if isinstance(value, np.ndarray) and value.size > 4:
            return f"({value.size} numbers) "
        if isinstance(value, np.ndarray) and value.dtype.kind in "fiu":
            return f"({', '.join(number(float(v)) for v in value.ravel())}) "
        return f"({number(float(value))}) " if isinstance(value, int | float) else ""
