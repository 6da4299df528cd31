"""How scores of a response curve, and the time it takes, depend on how many batches are used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError
from curvewise.response.curve import ResponseCurve, place_in_words
from curvewise.response.spread import SCORES, score_error
from curvewise.types import FloatArray, Result


@dataclass(frozen=True, eq=False)
class ResponseSensitivity(Result):
    """Scores over repeated samples of several sizes.

    Attributes
    ----------
    batches : ndarray of int, shape (K,)
        Numbers of batches, in rising order.
    batch : int
        Examples in a batch.
    values : dict of str to ndarray, shape (K, R)
        ``"gi"``, ``"pal"`` and ``"mean_accuracy"`` of every repeat.
    seconds : ndarray, shape (K, R)
        What each curve took.
    expected : dict of str to ndarray, shape (K, R)
        The standard error of each score that its own curve tells, from its closed-form interval.
    model, perturbation, layer : str
        Of what.
    """

    batches: NDArray[np.int64]
    batch: int
    values: dict[str, FloatArray] = field(repr=False)
    seconds: FloatArray = field(repr=False)
    expected: dict[str, FloatArray] = field(repr=False)
    model: str = "model"
    perturbation: str = "perturbation"
    layer: str = "input"
    warnings: tuple[str, ...] = ()

    @classmethod
    def from_curves(
        cls, batch: int, curves: Mapping[int, Sequence[ResponseCurve]]
    ) -> ResponseSensitivity:
        """Put repeated curves together.

        Parameters
        ----------
        batch : int
            Examples in a batch.
        curves : mapping of int to sequence of ResponseCurve
            For each number of batches the same number of repeats, at least two.
        """
        if not curves or len({len(c) for c in curves.values()}) > 1:
            raise InputError("curves must hold the same number of repeats for each size.")
        counts = sorted(curves)
        one = curves[counts[0]][0]
        rows = [curves[count] for count in counts]
        values = {s: np.array([[getattr(c, s) for c in row] for row in rows]) for s in SCORES}
        expected = {s: np.array([[score_error(c, s) for c in row] for row in rows]) for s in SCORES}
        seconds = [[c.settings.get("seconds", np.nan) for c in row] for row in rows]
        notes = {w: None for row in rows for c in row for w in c.warnings}
        return cls(
            np.array(counts),
            batch,
            values,
            np.array(seconds, dtype=np.float64),
            expected,
            one.model,
            one.perturbation,
            one.layer,
            tuple(notes),
        )

    @property
    def examples(self) -> NDArray[np.int64]:
        """Examples at each number of batches."""
        return self.batches * self.batch

    def mean(self, score: str = "gi") -> FloatArray:
        """Mean over repeats at each number of batches."""
        found: FloatArray = self._of(score).mean(axis=1)
        return found

    def spread(self, score: str = "gi") -> FloatArray:
        """Standard deviation over repeats at each number of batches."""
        found: FloatArray = self._of(score).std(axis=1, ddof=1)
        return found

    def columns(self) -> dict[str, Any]:
        """A row for each number of batches."""
        found: dict[str, Any] = {"batches": self.batches, "examples": self.examples}
        for score in SCORES:
            found[score] = self.mean(score)
            found[f"{score}_sd"] = self.spread(score)
            found[f"{score}_expected_sd"] = np.sqrt((self.expected[score] ** 2).mean(axis=1))
        found["seconds"] = self.seconds.mean(axis=1)
        found["seconds_sd"] = self.seconds.std(axis=1, ddof=1)
        return found

    def summary(self) -> str:
        """A few sentences."""
        gi, spread, seconds = self.mean(), self.spread(), self.seconds.mean(axis=1)
        return (
            f"Gi-score of {self.model} under {self.perturbation} at "
            f"{place_in_words(self.layer)}, over {self.seconds.shape[1]} repeats: {gi[0]:.4f} ± "
            f"{spread[0]:.4f} with {self.batches[0]} batches of {self.batch} ({seconds[0]:.2g} s), "
            f"{gi[-1]:.4f} ± {spread[-1]:.4f} with {self.batches[-1]} ({seconds[-1]:.2g} s)."
        )

    def _of(self, score: str) -> FloatArray:
        if score not in self.values:
            raise InputError(f"score={score!r}: use one of {', '.join(map(repr, SCORES))}.")
        return self.values[score]
