"""What measuring one network gives."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from curvewise.tables import format_table, number
from curvewise.types import Result


@dataclass(frozen=True, eq=False)
class ModelMeasures(Result):
    """Measures of one network.

    Attributes
    ----------
    model : str
        What it is called.
    values : dict of float
        By name of the measure; NaN where the network has none, with the reason in ``warnings``.
    orientation : dict of int
        1 where a higher value should mean a larger generalisation gap, -1 where a smaller one.
    seconds : dict of float
        What each took; the first of those that share some work pays for it.
    settings : dict
        How they were measured: examples, seed, device, …
    """

    model: str
    values: dict[str, float]
    orientation: dict[str, int]
    seconds: dict[str, float]
    settings: dict[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def columns(self) -> dict[str, list[Any]]:
        """A row for each measure."""
        return {
            "measure": list(self.values),
            "value": list(self.values.values()),
            "orientation": [self.orientation[name] for name in self.values],
            "seconds": [self.seconds[name] for name in self.values],
        }

    def table(self, format: str = "markdown", digits: int = 4) -> str:
        """The measures as text, values with so many significant digits."""
        columns = self.columns()
        columns["value"] = [
            "" if math.isnan(v) else number(v, digits) for v in self.values.values()
        ]
        higher = {1: "higher", -1: "lower"}
        columns["larger gap if"] = [higher[o] for o in columns.pop("orientation")]
        columns["seconds"] = [f"{s:.2f}" for s in columns.pop("seconds")]
        return format_table(columns, format, digits)

    def summary(self) -> str:
        """A few sentences."""
        known = sum(not math.isnan(v) for v in self.values.values())
        without = len(self.values) - known
        lost = f", {without} could not be computed" if without else ""
        return (
            f"{known} measures of {self.model} on {self.settings['examples']:,} examples in "
            f"{sum(self.seconds.values()):.1f} s{lost}."
        )
