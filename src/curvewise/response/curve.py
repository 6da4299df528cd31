"""What a network answers at each magnitude of a perturbation, and scores with their intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import InputError
from curvewise.response.scores import (
    check_magnitudes,
    cumulative_accuracy,
    folded,
    gi_weights,
    pal_weights,
)
from curvewise.response.spread import (
    effective_count,
    quantile,
    score_interval,
    seen_variance,
    wilson,
)
from curvewise.types import FloatArray, Interval, Result, as_floats, plain


@dataclass(frozen=True, eq=False)
class ResponseCurve(Result):
    """Accuracy of one model at growing magnitudes of one perturbation.

    Attributes
    ----------
    magnitude : ndarray, shape (M,)
        In rising order.
    correct, total : ndarray of int, shape (M,)
        Right answers, and examples tried, at each magnitude.
    clean_correct, clean_total : int
        The same without any perturbation; total 0 where it was not measured.
    model, perturbation, layer, unit : str
        Of what; ``layer`` is ``"input"`` or a submodule's name, ``unit`` that of magnitudes.
    signs : {"fold", "keep"}
        How the scores take negative magnitudes, see :func:`gi_score`.
    hits : ndarray of bool, shape (M, N), optional
        Which examples were answered rightly; the same N at every magnitude.
    partners : ndarray of int, shape (M, N), optional
        With which example each was mixed, for perturbations of pairs.
    settings : dict
        How it was measured: examples, seed, device, precision, …
    """

    magnitude: FloatArray
    correct: NDArray[np.int64]
    total: NDArray[np.int64]
    clean_correct: int = 0
    clean_total: int = 0
    model: str = "model"
    perturbation: str = "perturbation"
    layer: str = "input"
    unit: str = ""
    signs: str = "fold"
    hits: NDArray[np.bool_] | None = field(default=None, repr=False)
    partners: NDArray[np.int64] | None = field(default=None, repr=False)
    settings: dict[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @classmethod
    def from_counts(
        cls, magnitude: ArrayLike, correct: ArrayLike, total: ArrayLike, **about: Any
    ) -> ResponseCurve:
        """A curve from counts that came from anywhere.

        Without knowing which examples were right, intervals take the magnitudes as measured on
        different examples.

        Parameters
        ----------
        magnitude : array_like, shape (M,)
            In any order.
        correct, total : array_like, shape (M,)
            Right answers at each, and examples tried; one total stands for all.
        **about
            Other attributes: ``model``, ``perturbation``, ``clean_correct``, …

        Examples
        --------
        >>> curve = ResponseCurve.from_counts([0, 0.25, 0.5], [99, 95, 80], 100)
        >>> round(curve.gi, 3)
        0.054
        """
        places = as_floats(magnitude, "magnitude")
        right = as_floats(correct, "correct")
        tried = np.broadcast_to(as_floats(total, "total"), right.shape)
        if places.ndim != 1 or places.shape != right.shape:
            raise InputError(
                f"magnitude has shape {places.shape} and correct {right.shape}: give two lists of "
                "the same length."
            )
        if not (np.isfinite(right).all() and np.isfinite(tried).all()):
            raise InputError("correct and total must be finite counts.")
        if (right < 0).any() or (right > tried).any() or (tried < 1).any():
            raise InputError("correct must lie between 0 and total, and total be at least 1.")
        if (right % 1 != 0).any() or (tried % 1 != 0).any():
            raise InputError(
                "correct and total are counts: give whole numbers, accuracy times examples."
            )
        order = np.argsort(places, kind="stable")
        check_magnitudes(places[order])
        return cls(
            places[order], right[order].astype(np.int64), tried[order].astype(np.int64), **about
        )

    @property
    def where(self) -> str:
        """Where the perturbation is, in words."""
        return place_in_words(self.layer)

    @property
    def accuracy(self) -> FloatArray:
        """Share of right answers at each magnitude."""
        shares: FloatArray = self.correct / self.total
        return shares

    @property
    def clean_accuracy(self) -> float:
        """Share of right answers without perturbation; at magnitude 0 if that is all there is."""
        if self.clean_total:
            return self.clean_correct / self.clean_total
        at = np.flatnonzero(self.magnitude == 0)
        return float(self.accuracy[at[0]]) if len(at) else math.nan

    @property
    def mean_accuracy(self) -> float:
        """Mean over the magnitudes."""
        return float(self.accuracy.mean())

    @property
    def gi(self) -> float:
        """Gi-score; lower is better."""
        return 1.0 - float(gi_weights(self.magnitude, self.signs) @ self.accuracy)

    @property
    def gi_relative(self) -> float:
        """Gi-score against a network that keeps the clean accuracy; NaN where that is 0."""
        clean = self.clean_accuracy
        return 1.0 - (1.0 - self.gi) / clean if clean > 0 else math.nan

    @property
    def pal(self) -> float:
        """Pal-score, as the paper's text has it; higher is better."""
        above, below = pal_weights(self.magnitude, signs=self.signs)
        area = float(below @ self.accuracy)
        return float(above @ self.accuracy) / area if area > 0 else math.nan

    @property
    def cumulative(self) -> tuple[FloatArray, FloatArray]:
        """The PCD: magnitudes from 0 to 1, and the integral of accuracy up to each."""
        return cumulative_accuracy(self.magnitude, self.accuracy, signs=self.signs)

    @property
    def folded(self) -> tuple[FloatArray, FloatArray]:
        """Magnitudes from 0 to 1 as the scores take them, and the accuracy at each."""
        u, fold = folded(self.magnitude, self.signs)
        return u, fold @ self.accuracy

    def accuracy_interval(self, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Wilson's interval of the accuracy at each magnitude.

        Mixed pairs share examples: they count as fewer answers, as many as have their variance.
        """
        count: FloatArray = self.total.astype(np.float64)
        if self.hits is not None and self.partners is not None:
            each = zip(np.eye(len(count)), self.accuracy, self.total, strict=True)
            alike = [effective_count(p, seen_variance(w, self), int(n)) for w, p, n in each]
            count = np.minimum(count, alike)
        return wilson(self.accuracy, count, quantile(level, math.inf))

    def clean_interval(self, level: float = 0.95) -> Interval:
        """Wilson's interval of the clean accuracy."""
        clean = self.clean_accuracy
        at = np.flatnonzero(self.magnitude == 0)
        if math.isnan(clean):
            return Interval(clean, math.nan, math.nan, level)
        count = self.clean_total or int(self.total[at[0]])
        low, high = wilson(np.array([clean]), np.array([count]), quantile(level, math.inf))
        return Interval(clean, float(low[0]), float(high[0]), level)

    def gi_interval(self, level: float = 0.95) -> Interval:
        """Interval of the Gi-score: what another sample of examples would give."""
        return score_interval(self, "gi", level)

    def gi_relative_interval(self, level: float = 0.95) -> Interval:
        """Interval of the relative Gi-score, by the delta method; below 0 if perturbing helps."""
        return score_interval(self, "gi_relative", level)

    def pal_interval(self, level: float = 0.95) -> Interval:
        """Interval of the Pal-score, by the delta method."""
        return score_interval(self, "pal", level)

    def mean_interval(self, level: float = 0.95) -> Interval:
        """Interval of the mean accuracy."""
        return score_interval(self, "mean_accuracy", level)

    def scores(self, level: float = 0.95) -> dict[str, Interval]:
        """Every score with its interval."""
        return {
            "gi": self.gi_interval(level),
            "gi_relative": self.gi_relative_interval(level),
            "pal": self.pal_interval(level),
            "mean_accuracy": self.mean_interval(level),
            "clean_accuracy": self.clean_interval(level),
        }

    def columns(self) -> dict[str, Any]:
        """A row for each magnitude."""
        low, high = self.accuracy_interval()
        return {
            "magnitude": self.magnitude,
            "correct": self.correct,
            "total": self.total,
            "accuracy": self.accuracy,
            "low": low,
            "high": high,
        }

    def to_dict(self) -> dict[str, Any]:
        """All but the single answers, ready for JSON."""
        found = super().to_dict()
        del found["hits"], found["partners"]
        return found | {"scores": plain(self.scores()), "accuracy": plain(self.accuracy)}

    def summary(self) -> str:
        """A few sentences."""
        gi, pal = self.gi_interval(), self.pal_interval()
        first, last = self.magnitude[0], self.magnitude[-1]
        clean = self.clean_accuracy
        known = "" if math.isnan(clean) else f"{clean:.1%} clean and "
        return (
            f"Response of {self.model} to {self.perturbation} at {self.where}, magnitudes "
            f"{first:g} to {last:g} on {int(self.total.max()):,} examples: accuracy is "
            f"{known}{self.accuracy.min():.1%} at worst. "
            f"Gi-score {gi}, Pal-score {pal}, mean accuracy {self.mean_accuracy:.1%}."
        )


def place_in_words(layer: str) -> str:
    """The input, or which layer.

    >>> place_in_words("input"), place_in_words("conv1")
    ('the input', 'layer conv1')
    """
    return "the input" if layer == "input" else f"layer {layer}"
