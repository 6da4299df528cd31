"""The difference between the risks of scratch and of a method, at any size of scratch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from curvewise.errors import InputError
from curvewise.stats import difference_interval
from curvewise.types import FloatArray

FARTHEST = 1000.0
"""A curve is followed up to this multiple of the largest size of scratch."""

BEND = 0.3
"""Error of the interpolation, as a share of what it differs from straight lines between sizes."""

POINTS = 301
"""Sizes looked at among those of scratch, and as many beyond where a curve leads there."""

_NOWHERE: NDArray[np.intp] = np.empty(0, dtype=np.intp)
_NOTHING: tuple[FloatArray, FloatArray, FloatArray] = (np.empty(0),) * 3


class Looked(NamedTuple):
    """Scratch at some sizes.

    ``risk``, shape (T,), is interpolated; ``moves``, shape (T, sizes), is how far it moves with
    each of the means. ``variance`` is what their errors make, ``doubt`` the sum of squares of its
    parts over their degrees of freedom; ``bend`` is how far the risk may be off by itself.
    ``beyond`` are the places past the largest size where there is a fitted curve, ``band`` its
    error there, low and high.
    """

    risk: FloatArray
    moves: FloatArray
    variance: FloatArray
    doubt: FloatArray
    bend: FloatArray
    beyond: NDArray[np.intp]
    band: tuple[FloatArray, FloatArray, FloatArray]


@dataclass(frozen=True, eq=False)
class ScratchCurve:
    """Mean risks of scratch: sizes, means, their covariances, degrees of freedom.

    Past the largest size a fitted ``curve`` may lead on, with its interval of ``level``.
    """

    n: FloatArray
    risk: FloatArray
    covariance: FloatArray
    degrees: FloatArray
    level: float
    curve: Any = None

    @cached_property
    def grid(self) -> FloatArray:
        """Sizes of scratch to look at."""
        sizes = self.n
        inner = np.geomspace(sizes[0], sizes[-1], POINTS) if len(sizes) > 1 else sizes
        points = [inner, sizes]
        if self.curve is not None:
            points.append(np.geomspace(sizes[-1], FARTHEST * sizes[-1], POINTS))
        found: FloatArray = np.unique(np.concatenate(points))
        apart = np.diff(np.log(found), prepend=-np.inf) > 1e-12
        kept: FloatArray = found[apart]
        return kept

    def at(self, n: FloatArray) -> Looked:
        """Scratch at any sizes; what is found on the grid is kept, since every method needs it."""
        return self._on_grid if n is self.grid else self._look(n)

    @cached_property
    def _on_grid(self) -> Looked:
        return self._look(self.grid)

    def _look(self, n: FloatArray) -> Looked:
        """Slopes are over one standard error either way, since interpolation has kinks."""
        count, logs = len(self.n), np.log(n)
        found = np.asarray(self._interpolate(logs))
        moves = (found[:, 1 : count + 1] - found[:, count + 1 :]) / (2 * self._steps)
        parts = moves**2 * np.diagonal(self.covariance)
        straight = np.interp(logs, np.log(self.n), self.risk)
        beyond = np.flatnonzero(n > self.n[-1]) if self.curve is not None else _NOWHERE
        band = curve_band(self.curve, n[beyond], self.level) if len(beyond) else _NOTHING
        return Looked(
            risk=found[:, 0],
            moves=moves,
            variance=((moves @ self.covariance) * moves).sum(axis=1),
            doubt=(parts**2 / self.degrees).sum(axis=1),
            bend=BEND * np.abs(found[:, 0] - straight),
            beyond=beyond,
            band=band,
        )

    @cached_property
    def _steps(self) -> FloatArray:
        errors = np.sqrt(np.nan_to_num(np.diagonal(self.covariance)))
        least = 1e-6 * max(float(np.ptp(self.risk)), 1e-6 * float(np.abs(self.risk).max()), 1e-12)
        return np.maximum(errors, least)

    @cached_property
    def _interpolate(self) -> Any:
        moved = np.diag(self._steps)
        base = self.risk[:, None]
        values = np.concatenate([base, base + moved, base - moved], axis=1)
        if len(self.n) == 1:
            return lambda x: np.broadcast_to(values[0], (len(x), values.shape[1]))
        from scipy.interpolate import PchipInterpolator

        logs = np.log(self.n)
        inner = PchipInterpolator(logs, values, axis=0)
        return lambda x: inner(np.clip(x, logs[0], logs[-1]))


@dataclass(frozen=True, eq=False)
class Gap:
    """Risk of scratch at a size minus that of a method at its own, with an interval.

    ``variance`` and ``degrees`` are those of the method's ``risk``, ``shared`` its covariances
    with the means of scratch.
    """

    scratch: ScratchCurve
    risk: float
    variance: float
    degrees: float
    shared: FloatArray

    @property
    def known(self) -> bool:
        """Whether the errors are known, so that there can be an interval."""
        return not (np.isnan(self.variance) or np.isnan(self.scratch.covariance).any())

    def centre(self, n: FloatArray) -> FloatArray:
        """The difference alone."""
        there = self.scratch.at(n)
        found = there.risk - self.risk
        found[there.beyond] = there.band[0] - self.risk
        return found

    def __call__(self, n: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The difference, low and high: as :func:`crossing_interval` wants them."""
        there = self.scratch.at(n)
        half = self._half(there)
        centre = there.risk - self.risk
        low, high = centre - half, centre + half
        if len(there.beyond):
            band = there.band
            own = float(self._quantile(self.degrees)) * np.sqrt(self.variance)
            ends = (self.risk - own, self.risk + own)
            centre[there.beyond] = band[0] - self.risk
            low[there.beyond], high[there.beyond] = difference_interval(
                band[0], band[1:], self.risk, ends
            )
        return centre, low, high

    def _half(self, there: Looked) -> FloatArray:
        """Half of a t interval, with Satterthwaite's degrees of freedom."""
        total = there.variance + self.variance - 2 * there.moves @ self.shared
        total = np.maximum(total, 0.0) + there.bend**2
        doubt = there.doubt + self.variance**2 / self.degrees
        degrees = np.divide(total**2, doubt, out=np.full_like(total, np.inf), where=doubt > 0)
        degrees = np.maximum(degrees, min(self.degrees, float(self.scratch.degrees.min())))
        half: FloatArray = self._quantile(np.minimum(degrees, 1e9)) * np.sqrt(total)
        return half

    def _quantile(self, degrees: FloatArray | float) -> FloatArray:
        return np.asarray(stdtrit(degrees, 0.5 + self.scratch.level / 2))


def curve_band(
    curve: Any, n: FloatArray, level: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Error of a fitted curve, moved into its interval where it lies outside, low and high.

    Curves without a confidence interval give that of the mean of many runs.
    """
    kind = getattr(curve, "default_interval", "confidence")
    options: dict[str, Any] = {"interval": kind, "level": level}
    if kind == "prediction":
        options["runs"] = np.inf
    try:
        # A curve of ours gives the same as arrays, for which no pandas is needed.
        found = (curve.band if hasattr(curve, "band") else curve.predict)(n, **options)
        named = (found[name] for name in ("error", "low", "high"))
        error, low, high = (np.asarray(v, dtype=np.float64) for v in named)
    except (AttributeError, KeyError, TypeError) as failure:
        raise InputError(
            f"curve={type(curve).__name__} cannot be used ({failure}): pass a fitted learning curve"
            ' whose predict(n, interval="confidence", level=...) has columns error, low and high.'
        ) from None
    return np.clip(error, low, high), low, high
