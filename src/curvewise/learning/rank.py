"""Many learners: which is best at a training size, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError
from curvewise.learning.base import EXTRAPOLATION_LIMIT, Curve, check_size
from curvewise.learning.compare import likely
from curvewise.stats import probability_lowest
from curvewise.tables import number
from curvewise.types import FloatArray, Result, Unit, check_level


@dataclass(frozen=True, eq=False)
class LearnerRanking(Result):
    """Learners ordered by predicted error at one training size.

    Attributes
    ----------
    at : float
        The training size N.
    learners : tuple of str
        Lowest predicted error first (highest score).
    error, low, high : ndarray, shape (K,)
        Predicted error and its interval, in the unit of the fits.
    probability_best : ndarray, shape (K,)
        Chance that each is the best at N, taking the learners as independent. It goes by the
        whole intervals, so that the best prediction need not have the highest chance: the prior
        on γ that power laws are fitted with moves the prediction and not the interval.
    kind : str
        Of the intervals: "confidence" for power laws, "prediction" for form="auto".
    """

    at: float
    learners: tuple[str, ...]
    error: FloatArray
    low: FloatArray
    high: FloatArray
    probability_best: FloatArray
    level: float
    kind: str
    unit: Unit
    warnings: tuple[str, ...] = ()

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per learner, the best prediction first."""
        return {
            "learner": list(self.learners),
            "error": self.error,
            "low": self.low,
            "high": self.high,
            "probability_best": self.probability_best,
        }

    def summary(self) -> str:
        """Which to choose, and how sure that is."""
        likely, *others = np.argsort(-self.probability_best, kind="stable").tolist()
        name, chance = self.learners[likely], self.probability_best
        text = f"At n = {number(self.at)}, {name} is "
        if likely == 0:
            text += f"predicted best with {self._said(0)}; the chance that it is the best of"
            text += f" {len(self.learners)} is {chance[0]:.0%}."
        else:
            text += f"most probably the best of {len(self.learners)}: its chance is"
            text += f" {chance[likely]:.0%}, its prediction {self._said(likely)}."
        if others and chance[likely] < 0.8:
            text += f" {self.learners[others[0]]} has {chance[others[0]]:.0%}: train both further"
            text += " before choosing."
        if likely != 0:
            text += f" {self.learners[0]} has the best prediction, {self._said(0)}, yet its"
            text += f" chance is {chance[0]:.0%}: chances go by all of an interval, and a"
            text += " prediction need not lie in its middle."
        return " ".join([text, *(f"Beware: {w}" for w in self.warnings)])

    def _said(self, i: int) -> str:
        """A prediction with its interval."""
        low, high = number(float(self.low[i])), number(float(self.high[i]))
        if np.isnan(self.error[i]):
            return f"an error between {low} and {high}{self.unit.suffix}"
        return f"{number(float(self.error[i]))}{self.unit.suffix} [{low}, {high}]"


def rank_learners(
    curves: Iterable[Curve], *, at: float | None = None, level: float = 0.95
) -> LearnerRanking:
    """Order learners by predicted error at N, with the chance that each is best.

    Parameters
    ----------
    curves : iterable of LearningCurve or EnsembleCurve
        In one unit. Their intervals are used as they are: confidence for power laws, calibrated
        prediction for form="auto", which is the one to choose by when N is beyond the data.
    at : float, optional
        N; by default the smallest of the largest sizes.
    level : float
        Coverage of the intervals shown.
    """
    check_level(level)
    failures: Mapping[str, str] = getattr(curves, "failures", {})
    all_curves = list(curves)
    if not all_curves:
        raise InputError("curves is empty: give at least one fitted curve.")
    if len({c.unit for c in all_curves}) > 1:
        raise InputError("curves are in different units: fit all of them in the same unit.")
    size = min(c.largest_n for c in all_curves) if at is None else check_size(at, "at")
    point = np.array([size])
    probabilities, quantiles = _quantiles(all_curves, point)
    chance = probability_lowest(quantiles, probabilities)
    bands = [c.band(point, level=level, runs=np.inf) for c in all_curves]
    # A fit that implies an impossible error has no prediction: the centre of its chances stands in.
    costs = [
        float(likely(c, point, level)[0][0])
        if np.isnan(b["error"][0])
        else c._scale.sign * float(b["error"][0])
        for c, b in zip(all_curves, bands, strict=True)
    ]
    order = np.argsort(costs, kind="stable")
    pick = {k: np.array([b[k][0] for b in bands])[order] for k in ("error", "low", "high")}
    return LearnerRanking(
        at=size,
        learners=tuple(all_curves[i].learner for i in order),
        **pick,
        probability_best=chance[order],
        level=level,
        kind=" and ".join(dict.fromkeys(c.default_interval for c in all_curves)),
        unit=all_curves[0].unit,
        warnings=(
            *(f"{name} could not be fitted and is not ranked: {f}" for name, f in failures.items()),
            *_warnings(all_curves, size),
        ),
    )


def _warnings(curves: Sequence[Curve], at: float) -> tuple[str, ...]:
    found = [f"{c.learner}: {w}" for c in curves for w in c.all_warnings]
    beyond = at > min(c.largest_n for c in curves)
    if beyond and any(c.default_interval == "confidence" for c in curves):
        found.append(
            f"n = {number(at)} is beyond the sizes measured, where fits with form='auto' predict"
            " better and have intervals calibrated for it."
        )
    if at > EXTRAPOLATION_LIMIT * min(c.largest_n for c in curves):
        found.append(
            f"n = {number(at)} is beyond four times the largest size measured: few curves have been"
            " followed that far."
        )
    return tuple(found)


_LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.998)


def _quantiles(curves: Sequence[Curve], n: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Quantiles of each curve at n, as costs, read off its nested intervals."""
    rows = []
    for curve in curves:
        centre, _ = likely(curve, n, 0.5)
        ends = [likely(curve, n, level)[1] for level in _LEVELS]
        low = [float(e[0][0]) for e in reversed(ends)]
        high = [float(e[1][0]) for e in ends]
        finite = np.nan_to_num([*low, float(centre[0]), *high], posinf=1e12, neginf=-1e12)
        rows.append(np.maximum.accumulate(finite))
    below = [0.5 - level / 2 for level in reversed(_LEVELS)]
    above = [0.5 + level / 2 for level in _LEVELS]
    return np.array([*below, 0.5, *above]), np.array(rows)
