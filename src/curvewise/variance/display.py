"""Errors, losses and scores as people read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.types.results import FloatArray, Interval

ENDS = ("estimate", "low", "high")
"""Columns of a table with a row for each quantity."""


@dataclass(frozen=True)
class DisplayUnit:
    """Name, sign and direction of errors for people.

    The analyses hold scores, of which a high one is good, as negative errors, so that lower is better in every unit.
    People read the score itself, and differences of the scores themselves.

    >>> DisplayUnit("score").interval(Interval(-31.0, -32.0, -30.5))
    Interval(estimate=31.0, low=30.5, high=32.0, level=0.95, kind='confidence')
    """

    unit: str

    @property
    def word(self) -> str:
        """The measured quantity: error, loss or score."""
        return self.unit if self.unit in ("loss", "score") else "error"

    @property
    def best(self) -> str:
        """Direction of the best value: lowest, or highest of scores."""
        return "highest" if self.unit == "score" else "lowest"

    @property
    def sign(self) -> float:
        """Factor from an error as it is held to the value that is read: −1 for scores."""
        return -1.0 if self.unit == "score" else 1.0

    def signed(self, errors: ArrayLike) -> FloatArray:
        """Return errors, or differences of them, with the sign in which they are read."""
        return self.sign * np.asarray(errors, dtype=np.float64)

    def interval(self, error: Interval) -> Interval:
        """Return the interval of an error, or of a difference, with the sign in which it is read."""
        if self.unit != "score":
            return error
        return replace(error, estimate=-error.estimate, low=-error.high, high=-error.low)

    def columns(
        self,
        columns: Mapping[str, Sequence[Any] | NDArray[Any]],
        names: tuple[str, str, str] = ENDS,
        rows: Sequence[str] | None = None,
    ) -> dict[str, Any]:
        """Return a table whose estimates and limits have the sign in which they are read.

        Parameters
        ----------
        columns : mapping
            The table with errors as they are held.
        names : tuple of str
            Columns of the estimates and of their lower and upper limits.
        rows : sequence of str, optional
            Only the rows of these quantities; the others are probabilities, standard deviations or shares.
        """
        table = dict(columns)
        turned = [rows is None or q in rows for q in table.get("quantity", [""] * len(table[names[0]]))]
        sides = zip(*(table[name] for name in names), turned, strict=True)
        ends = [tuple(self.interval(Interval(*ends))) if turn else tuple(ends) for *ends, turn in sides]
        return table | dict(zip(names, map(list, zip(*ends, strict=True)), strict=True))
