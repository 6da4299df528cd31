"""Response curves: accuracy at each magnitude of a perturbation, and scores with their intervals.

Every score is linear in the accuracies, or a ratio of two that are, so that its variance over samples of examples is
closed-form: no resampling is needed.
"""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri, stdtrit

from curvewise.errors import InputError
from curvewise.response.scores import PAL_FLAT, check_magnitudes, cumulative_accuracy, gi_weights, pal_weights
from curvewise.stats import intervals
from curvewise.stats.intervals import wilson_interval
from curvewise.text import format_count, format_level, format_table, readable_columns
from curvewise.types.results import (
    FloatArray,
    Interval,
    Result,
    as_floats,
    check_level,
    data_frame,
    interval_lists,
    plain,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

SCORES = {"gi": "Gi-score", "pal": "Pal-score", "mean_accuracy": "mean accuracy"}
"""Scores that models are compared by, and what people call them."""


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
        Names; ``layer`` is ``"input"`` or a submodule's name, ``unit`` that of magnitudes.
    signs : {"fold", "keep"}
        How the scores take negative magnitudes, see :func:`gi_score`.
    hits : ndarray of bool, shape (M, N), optional
        Right answers by example; the same N at every magnitude.
    partners : ndarray of int, shape (M, N), optional
        Position of the partner that each example was mixed with, for perturbations of pairs.
    settings : dict
        Settings of the measurement: examples, seed, device, precision, …
    """

    unlisted = ("hits", "partners")

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
    def from_counts(cls, magnitude: ArrayLike, correct: ArrayLike, total: ArrayLike, **about: Any) -> ResponseCurve:
        """Make a curve from counts that came from anywhere.

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
        tried = as_floats(total, "total")
        if places.ndim != 1 or places.shape != right.shape:
            raise InputError(
                f"magnitude has shape {places.shape} and correct {right.shape}: give two of the same length."
            )
        if tried.shape not in ((), right.shape):
            raise InputError(f"total has shape {tried.shape}: give one number, or one for each magnitude.")
        tried = np.broadcast_to(tried, right.shape)
        if not (np.isfinite(right).all() and np.isfinite(tried).all()):
            raise InputError("correct and total must be finite counts.")
        if (right < 0).any() or (right > tried).any() or (tried < 1).any():
            raise InputError("correct must lie between 0 and total, and total be at least 1.")
        if (right % 1 != 0).any() or (tried % 1 != 0).any():
            raise InputError("correct and total are counts: give whole numbers, accuracy times examples.")
        if not 0 <= about.get("clean_correct", 0) <= about.get("clean_total", 0):
            raise InputError("clean_correct must lie between 0 and clean_total: give both.")
        order = np.argsort(places, kind="stable")
        check_magnitudes(places[order])
        return cls(places[order], right[order].astype(np.int64), tried[order].astype(np.int64), **about)

    def _headline(self) -> str:
        about = f"{self.model!r}, {self.perturbation!r} at {self.where}"
        return f"{about}, {len(self.magnitude)} magnitudes, gi={self.gi:.4g}"

    @property
    def where(self) -> str:
        """Place of the perturbation, in words."""
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

    def accuracy_interval(self, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Wilson's interval of the accuracy at each magnitude.

        Mixed pairs share examples: they count as fewer answers, as many as have their variance.
        """
        count: FloatArray = self.total.astype(np.float64)
        # An example that fails alone may fail in each of its two pairs: fewer independent answers than pairs.
        if self.hits is not None and self.partners is not None:
            each = zip(np.eye(len(count)), self.accuracy, self.total, strict=True)
            alike = [effective_count(p, seen_variance(w, self), int(n)) for w, p, n in each]
            count = np.minimum(count, alike)
        return wilson_interval(self.accuracy, count, check_level(level))

    def clean_interval(self, level: float = 0.95) -> Interval:
        """Wilson's interval of the clean accuracy."""
        clean = self.clean_accuracy
        at = np.flatnonzero(self.magnitude == 0)
        if math.isnan(clean):
            return Interval(clean, math.nan, math.nan, level)
        count = self.clean_total or int(self.total[at[0]])
        low, high = wilson_interval(clean, count, check_level(level))
        return Interval(clean, float(low), float(high), level)

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
        """Return every score with its interval."""
        found = {name: score_interval(self, name, level) for name in ("gi", "gi_relative", "pal", "mean_accuracy")}
        return {**found, "clean_accuracy": self.clean_interval(level)}

    def columns(self, level: float = 0.95) -> dict[str, Any]:
        """Return a row for each magnitude."""
        low, high = self.accuracy_interval(level)
        return {
            "magnitude": self.magnitude,
            "correct": self.correct,
            "total": self.total,
            "accuracy": self.accuracy,
            "low": low,
            "high": high,
        }

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Return all but the single answers, ready for JSON."""
        found = super().to_dict()
        found["summary"] = found["summary"].replace(self.sentences(), self.sentences(level))
        return found | {"scores": plain(self.scores(level)), "accuracy": plain(self.accuracy)}

    def readable(self) -> Mapping[str, Sequence[Any]]:
        """Return a row for each magnitude, with the accuracy and its interval."""
        return readable_columns(self.columns(), "fraction")

    def table_note(self, level: float = 0.95) -> str:
        """Name the perturbation, where it is applied, and the level of the intervals."""
        return f"Accuracy under {self.perturbation} at {self.where} ({format_level(level)} intervals)"

    def sentences(self, level: float = 0.95) -> str:
        """Describe the result in a few sentences."""
        gi, pal = self.gi_interval(level), self.pal_interval(level)
        first, last = self.magnitude[0], self.magnitude[-1]
        clean = self.clean_accuracy
        known = "" if math.isnan(clean) else f"{clean:.1%} clean and "
        unit = f" ({self.unit})" if self.unit else ""
        worst = self.magnitude[self.accuracy.argmin()]
        return (
            f"Response of {self.model} to {self.perturbation} at {self.where}, magnitudes {first:g} to {last:g}{unit}, "
            f"{format_count(int(self.total.max()), 'example')}: accuracy is {known}{self.accuracy.min():.1%} at worst, "
            f"at {worst:g}, and {self.mean_accuracy:.1%} on average. Gi-score {gi} (0 is best), Pal-score {pal} "
            f"(a ratio of areas, {PAL_FLAT:g} where accuracy does not fall)."
        )


class ResponseCurves(dict[str, Any]):
    """Response curves of several models, by model; for several perturbations such a dict for each of them.

    A dict that can be printed and drawn. In a notebook it shows itself as a table. It may be indexed by model and by
    perturbation in any order: what is not a key of its own is looked for among the others' names.

    Examples
    --------
    >>> one = ResponseCurve.from_counts([0, 0.25, 0.5], [99, 95, 80], 100, model="net", perturbation="noise")
    >>> curves = ResponseCurves(noise=ResponseCurves(net=one))
    >>> print(curves)
    Response of net to noise at the input, magnitudes 0 to 0.5, 100 examples: accuracy is 99.0% clean and 80.0% at \
worst, at 0.5, and 91.3% on average. Gi-score 0.054 [0.032, 0.089] (0 is best), Pal-score 81.6 [78.4, 84.7] (a ratio \
of areas, 84 where accuracy does not fall).
    >>> curves.columns()["model"]
    ['net']
    >>> curves["noise"]["net"] is curves["net"]["noise"] is one
    True
    """

    def __missing__(self, key: str) -> Any:
        """Return the curves of a model, by perturbation; or of the one perturbation that there is."""
        models, changes = ({getattr(c, name): None for c in self.curves} for name in ("model", "perturbation"))
        nested = any(isinstance(found, ResponseCurves) for found in self.values())
        if nested and key in models:
            return ResponseCurves((name, found[key]) for name, found in self.items() if key in found)
        if not nested and [key] == list(changes):
            return self
        raise KeyError(
            f"{key!r} is neither a model ({', '.join(map(repr, models))}) nor a perturbation "
            f"({', '.join(map(repr, changes))})"
        )

    @property
    def curves(self) -> list[ResponseCurve]:
        """All curves, perturbation by perturbation."""
        return [c for found in self.values() for c in (found.curves if isinstance(found, ResponseCurves) else [found])]

    @property
    def all_warnings(self) -> tuple[str, ...]:
        """The warnings of all curves, each with its model's name."""
        return tuple(dict.fromkeys(f"{c.model}: {w}" for c in self.curves for w in c.all_warnings))

    def sentences(self) -> str:
        """Describe each curve, a line for each."""
        return "\n".join(curve.sentences() for curve in self.curves)

    def columns(self) -> dict[str, list[Any]]:
        """Return a row for each curve: its scores with their intervals."""
        found: dict[str, list[Any]] = {
            "model": [c.model for c in self.curves],
            "perturbation": [c.perturbation for c in self.curves],
        }
        scores = [curve.scores() for curve in self.curves]
        for name in ("gi", "pal", "mean_accuracy", "clean_accuracy"):
            found |= interval_lists(name, (row[name] for row in scores), f"{name}_")
        return found

    def readable(self) -> dict[str, list[Any]]:
        """Return the scores as people read them, accuracies as percentages."""
        columns = self.columns()
        shares = {name: values for name, values in columns.items() if "accuracy" in name}
        rest = {name: values for name, values in columns.items() if name not in shares}
        return {**readable_columns(rest), **readable_columns(shares, "fraction")}

    def frame(self) -> pd.DataFrame:
        """Return the scores as a pandas DataFrame."""
        return data_frame(self.columns())

    def to_latex(self) -> str:
        """Return the scores as a table for LaTeX."""
        return format_table(self.readable(), "latex", None, note="Scores with 95% intervals")

    def plot(self, ax: Axes | None = None, **options: Any) -> Axes:
        """Draw accuracy against magnitude, a line for each curve, on ``ax`` (a new figure's if None)."""
        # As of any result: the picture is found only when it is asked for.
        draw = import_module("curvewise.response.plot.curves").plot_responses
        return draw(self.curves, ax, **options)  # type: ignore[no-any-return]

    def summary(self) -> str:
        """Describe the curves in sentences, and add their warnings."""
        return str(self)

    def __str__(self) -> str:
        return "\n".join([self.sentences(), *(f"Warning: {w}" for w in self.all_warnings)])

    def _repr_html_(self) -> str:
        lines = "".join(f"<p>{html.escape(line)}</p>" for line in self.sentences().splitlines())
        notes = "".join(f"<li>{html.escape(w)}</li>" for w in self.all_warnings)
        cells = format_table(self.readable(), "html")
        return f"<div>{lines}{f'<ul>{notes}</ul>' if notes else ''}{cells}</div>"


def place_in_words(layer: str) -> str:
    """Write "the input" or the name of the module, which is not the number of a layer.

    >>> place_in_words("input"), place_in_words("2")
    ('the input', "module '2'")
    """
    return "the input" if layer == "input" else f"module {layer!r}"


def score_slope(curve: ResponseCurve, score: str) -> FloatArray:
    """Derivative of a score by the accuracy at each magnitude; NaN where it has no value."""
    known = (*SCORES, "gi_relative")
    if score not in known:
        raise InputError(f"use one of {', '.join(map(repr, known))}.", argument="score", value=score)
    if score == "gi":
        return -gi_weights(curve.magnitude, curve.signs)
    if score == "mean_accuracy":
        return np.full(len(curve.magnitude), 1 / len(curve.magnitude))
    if score == "gi_relative":
        clean = curve.clean_accuracy
        if not clean > 0:
            return np.full(len(curve.magnitude), np.nan)
        # 1 − area / clean: the clean accuracy itself moves with the answers at magnitude 0.
        slope: FloatArray = np.where(_gives_clean(curve), (1 - curve.gi) / clean**2, 0.0)
        return slope - gi_weights(curve.magnitude, curve.signs) / clean
    above, below = pal_weights(curve.magnitude, signs=curve.signs)
    area = float(below @ curve.accuracy)
    return (above - curve.pal * below) / area if area > 0 else np.full(len(above), np.nan)


def score_error(curve: ResponseCurve, score: str) -> float:
    """Standard error of a score over samples of examples, by the delta method for ratios."""
    variance = linear_variance(score_slope(curve, score), curve)
    return math.sqrt(variance + _clean_variance(curve, score))


def _clean_variance(curve: ResponseCurve, score: str) -> float:
    """Variance that a separately measured clean accuracy adds to a score."""
    if score != "gi_relative" or _gives_clean(curve).any() or not curve.clean_total:
        return 0.0
    # Taken as independent, which is conservative: answers to clean and perturbed examples rise together.
    clean = curve.clean_accuracy
    slope = (1 - curve.gi) / clean**2 if clean > 0 else math.nan
    return slope**2 * clean * (1 - clean) / curve.clean_total


def _gives_clean(curve: ResponseCurve) -> NDArray[np.bool_]:
    """Mark magnitude 0 where the clean accuracy is that of the same answers, not of others counted apart."""
    same = (curve.correct == curve.clean_correct) & (curve.total == curve.clean_total)
    marked: NDArray[np.bool_] = (curve.magnitude == 0) & (same if curve.clean_total else True)
    return marked


def score_interval(curve: ResponseCurve, score: str, level: float) -> Interval:
    """Interval of a score over samples of examples.

    Wilson's, of as many independent answers as have the variance of the score: near an ideal score the normal interval
    is far too narrow. A ratio may be better than ideal, so that its interval is that of the delta method.
    """
    estimate = float(getattr(curve, score))
    # The score as a share of the way from the best to the worst possible, for which Wilson's interval is made.
    best, worst = _ends(curve, score)
    slope = score_slope(curve, score)
    variance = (seen_variance(slope, curve) + _clean_variance(curve, score)) / (worst - best) ** 2
    lost = (estimate - best) / (worst - best)
    if math.isnan(variance) or math.isnan(lost):
        return Interval(estimate, math.nan, math.nan, check_level(level))
    count = int(curve.total.min())
    times = quantile(level, count - 1 if curve.hits is not None else math.inf)
    if score in ("pal", "gi_relative"):
        # One example more in the variance, and at least the share of examples that a sample of this size may miss: a
        # sample without failures would otherwise give an interval of no width.
        half = max(times * math.sqrt(variance + count**-2), times**2 / (count + times**2))
        low, high = lost - half, min(1.0, lost + half)
    else:
        share = min(max(lost, 0.0), 1.0)
        alike = np.array(effective_count(share, variance, count))
        low, high = map(float, intervals.score_interval(np.array(share), times**2 / alike))
    ends = sorted((best + low * (worst - best), best + high * (worst - best)))
    return Interval(estimate, min(ends[0], estimate), max(ends[1], estimate), level)


def _ends(curve: ResponseCurve, score: str) -> tuple[float, float]:
    """Scores of a network that is always right, and of one that never is once perturbed."""
    if score != "pal":
        return (1.0, 0.0) if score == "mean_accuracy" else (0.0, 1.0)
    above, below = pal_weights(curve.magnitude, signs=curve.signs)
    return float(above.sum() / below.sum()), 0.0


def quantile(level: float, degrees: float) -> float:
    """Standard errors that an interval reaches on each side: Student's t, or normal."""
    upper = 0.5 + check_level(level) / 2
    return float(ndtri(upper) if math.isinf(degrees) else stdtrit(max(degrees, 1), upper))


def effective_count(share: float, variance: float, examples: int) -> float:
    """Number of independent answers that have the variance of this share of all answers.

    An example that is always right and one that never is are added first (Agresti and Coull's idea): where there are
    few failures or none the variance says little, and they count as if an example failed at every magnitude.

    >>> effective_count(0.0, 0.0, 100)
    101.0
    """
    more = (1 - share) ** 2 + share**2 - (1 - 2 * share) ** 2 / (examples + 2)
    squares = examples * max(examples - 1, 1) * variance + more
    middle = (examples * share + 1) / (examples + 2)
    return float(middle * (1 - middle) * (examples + 2) * (examples + 1) / squares)


def linear_variance(weights: FloatArray, curve: ResponseCurve) -> float:
    """Variance of weights · accuracy, which is never 0.

    Where single answers are known, an example counts with all its magnitudes together and, in mixed pairs, with every
    pair that it is in. Otherwise the magnitudes are taken as independent.
    """
    p, n = curve.accuracy, curve.total
    # With all answers right (or wrong) a proportion shows no spread: one pseudo-answer more.
    p = (p * n + 0.5) / (n + 1)
    if curve.hits is None:
        return float(np.sum(weights**2 * p * (1 - p) / n))
    found = seen_variance(weights, curve)
    return found if found != 0 else float(np.sum(np.abs(weights) * np.sqrt(p * (1 - p) / n)) ** 2)


def seen_variance(weights: FloatArray, curve: ResponseCurve) -> float:
    """Variance of weights · accuracy as observed; 0 where all answers are alike."""
    if curve.hits is None:
        p = curve.accuracy
        return float(np.sum(weights**2 * p * (1 - p) / curve.total))
    return answers_variance(weights, curve.hits.astype(np.float64), curve.partners)


def answers_variance(weights: FloatArray, answers: FloatArray, partners: NDArray[np.int64] | None) -> float:
    """Variance of ``weights · answers.mean(axis=1)`` over samples of examples.

    Answers that share an example are not independent. Their products are added up over all such pairs of answers (the
    dyadic form of the cluster-robust variance): for each example the sum over every pair it is in, squared, minus the
    products of answers that share both examples, which are then counted twice.

    Parameters
    ----------
    weights : ndarray, shape (M,)
        Weight of each magnitude.
    answers : ndarray, shape (M, N)
        Right (1) or wrong (0), or the difference of two such.
    partners : ndarray of int, shape (M, N), optional
        Position of the partner that each example was mixed with.
    """
    count = answers.shape[1]
    parts = weights[:, None] * (answers - answers.mean(axis=1, keepdims=True))
    alone = float(np.sum(parts.sum(axis=0) ** 2) / (count * max(count - 1, 1)))
    if partners is None or not np.isfinite(alone):
        return alone
    own = np.broadcast_to(np.arange(count), partners.shape)
    by_example = sum(np.bincount(of.ravel(), weights=parts.ravel(), minlength=count) for of in (own, partners))
    _, pair = np.unique(np.minimum(own, partners) * count + np.maximum(own, partners), return_inverse=True)
    twice = np.bincount(pair.ravel(), weights=parts.ravel())
    shared = float(np.sum(by_example**2) - np.sum(twice**2))
    # N - 4 instead of N - 1: deviations from their own mean are too small for answers that share an example with four
    # in N others.
    shared /= count * max(count - 4, 1)
    return float(max(shared, alone))  # never less than with examples alone


@dataclass(frozen=True, eq=False)
class RepeatedScores(Result):
    """Scores over repeated samples of several sizes.

    Attributes
    ----------
    batches : ndarray of int, shape (K,)
        Numbers of batches, in rising order.
    batch : int
        Examples in a batch.
    values : dict of str to ndarray, shape (K, R)
        ``"gi"``, ``"pal"`` and ``"mean_accuracy"``, a number for each repeat.
    """

    batches: NDArray[np.int64]
    batch: int
    values: dict[str, FloatArray] = field(repr=False)

    @property
    def examples(self) -> NDArray[np.int64]:
        """Examples at each number of batches."""
        return self.batches * self.batch

    def mean(self, score: str = "gi") -> FloatArray:
        """Mean over repeats at each number of batches."""
        means: FloatArray = self._of(score).mean(axis=1)
        return means

    def spread(self, score: str = "gi") -> FloatArray:
        """Standard deviation over repeats at each number of batches."""
        spreads: FloatArray = self._of(score).std(axis=1, ddof=1)
        return spreads

    def _of(self, score: str) -> FloatArray:
        if score not in self.values:
            raise InputError(f"use one of {', '.join(map(repr, SCORES))}.", argument="score", value=score)
        return self.values[score]


@dataclass(frozen=True, eq=False)
class ResponseSensitivity(RepeatedScores):
    """Scores, and the time they take, over repeated samples of several sizes.

    Attributes
    ----------
    batches : ndarray of int, shape (K,)
        Numbers of batches, in rising order.
    batch : int
        Examples in a batch.
    values : dict of str to ndarray, shape (K, R)
        ``"gi"``, ``"pal"`` and ``"mean_accuracy"`` of every repeat.
    seconds : ndarray, shape (K, R)
        Time of each curve.
    expected : dict of str to ndarray, shape (K, R)
        The standard error of each score by its own curve, from its closed-form interval.
    model, perturbation, layer : str
        Names.
    """

    seconds: FloatArray = field(repr=False)
    expected: dict[str, FloatArray] = field(repr=False)
    model: str = "model"
    perturbation: str = "perturbation"
    layer: str = "input"
    warnings: tuple[str, ...] = ()

    @classmethod
    def from_curves(cls, batch: int, curves: Mapping[int, Sequence[ResponseCurve]]) -> ResponseSensitivity:
        """Combine repeated curves.

        Parameters
        ----------
        batch : int
            Examples in a batch.
        curves : mapping of int to sequence of ResponseCurve
            For each number of batches the same number of repeats, at least two.
        """
        if not curves or len({len(c) for c in curves.values()}) > 1:
            raise InputError("must hold the same number of repeats for each size.", argument="curves")
        counts = sorted(curves)
        one = curves[counts[0]][0]
        rows = [curves[count] for count in counts]
        values = {s: np.array([[getattr(c, s) for c in row] for row in rows]) for s in SCORES}
        expected = {s: np.array([[score_error(c, s) for c in row] for row in rows]) for s in SCORES}
        seconds = [[c.settings.get("seconds", np.nan) for c in row] for row in rows]
        notes = {w: None for row in rows for c in row for w in c.warnings}
        about = (one.model, one.perturbation, one.layer)
        times = np.array(seconds, dtype=np.float64)
        return cls(np.array(counts), batch, values, times, expected, *about, tuple(notes))

    def columns(self) -> dict[str, Any]:
        """Return a row for each number of batches."""
        found: dict[str, Any] = {"batches": self.batches, "examples": self.examples}
        for score in SCORES:
            found[score] = self.mean(score)
            found[f"{score}_sd"] = self.spread(score)
            found[f"{score}_expected_sd"] = np.sqrt((self.expected[score] ** 2).mean(axis=1))
        found["seconds"] = self.seconds.mean(axis=1)
        found["seconds_sd"] = self.seconds.std(axis=1, ddof=1)
        return found

    def sentences(self) -> str:
        """Describe the result in a few sentences."""
        gi, spread, seconds = self.mean(), self.spread(), self.seconds.mean(axis=1)
        return (
            f"Gi-score of {self.model} under {self.perturbation} at "
            f"{place_in_words(self.layer)}, over {self.seconds.shape[1]} repeats: {gi[0]:.4f} ± "
            f"{spread[0]:.4f} with {self.batches[0]} batches of {self.batch} ({seconds[0]:.2g} s), "
            f"{gi[-1]:.4f} ± {spread[-1]:.4f} with {self.batches[-1]} ({seconds[-1]:.2g} s)."
        )


@dataclass(frozen=True, eq=False)
class CorpusSensitivity(RepeatedScores):
    """Conditional mutual information of scores with the gap, over repeated samples of several sizes.

    Attributes
    ----------
    batches : ndarray of int, shape (K,)
        Numbers of batches, in rising order.
    batch : int
        Examples in a batch.
    values : dict of str to ndarray, shape (K, R)
        For ``"gi"``, ``"pal"`` and ``"mean_accuracy"`` the score of :func:`cmi_score` in every repeat.
    models : int
        How many the corpus has.
    mode : {"corrected", "pgdl"}
        Which score.
    perturbation, layer : str
        Names.
    """

    models: int
    mode: str = "corrected"
    perturbation: str = "perturbation"
    layer: str = "input"
    warnings: tuple[str, ...] = ()

    def columns(self) -> dict[str, Any]:
        """Return a row for each number of batches."""
        found: dict[str, Any] = {"batches": self.batches, "examples": self.examples}
        for score in SCORES:
            found[score], found[f"{score}_sd"] = self.mean(score), self.spread(score)
        return found

    def sentences(self) -> str:
        """Describe the result in a few sentences."""
        mean, spread = 100 * self.mean(), 100 * self.spread()
        return (
            f"CMI × 100 of the Gi-score under {self.perturbation} at {place_in_words(self.layer)} with the gaps of "
            f"{self.models} models, over {self.values['gi'].shape[1]} repeats: {mean[0]:.1f} ± {spread[0]:.1f} with "
            f"{self.batches[0]} batches of {self.batch}, {mean[-1]:.1f} ± {spread[-1]:.1f} with {self.batches[-1]}."
        )
