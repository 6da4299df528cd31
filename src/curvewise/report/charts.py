"""Learning curves for the browser: points, lines with bands, and what can be asked of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from curvewise.errors import CurvewiseError
from curvewise.learning.answers import FARTHEST
from curvewise.learning.base import EXTRAPOLATION_LIMIT
from curvewise.types import FloatArray, Measurements

if TYPE_CHECKING:
    from curvewise.learning.base import Curve

REACH = 10.0
"""Curves are drawn up to this multiple of the largest size."""

DENSITY = 12
"""Points of a curve for each factor of ten in size; the browser goes smoothly between them."""

MOST_POINTS = 5_000
"""Of more runs than this, the mean of each size is drawn."""


def learning_chart(curves: Sequence[Curve], runs: Measurements | None = None) -> dict[str, Any]:
    """The chart of fitted curves.

    The curves reach from a thousandth of the smallest size to where
    :meth:`~curvewise.learning.base.Curve.samples_to_reach` stops searching, so that the browser
    can read off the samples that any error takes.

    Parameters
    ----------
    curves : sequence of LearningCurve
        Fitted to one metric.
    runs : Measurements, optional
        The points, where they say more than the fits remember: fold and seed.
    """
    if runs is not None and len(runs) > MOST_POINTS:
        runs = None
    largest = max(c.largest_n for c in curves)
    smallest = min(float(np.min(c.n)) for c in curves)
    first = max(min(1.0, smallest), smallest / 1e3)
    ends = {c.largest_n for c in curves}
    exact = {k * n for n in ends for k in (1.0, EXTRAPOLATION_LIMIT)}
    grid = _grid(first, largest * FARTHEST, exact)
    sizes = _grid(smallest, largest * REACH, exact)
    series = [_series(c, grid, sizes, runs) for c in curves]
    unit = curves[0].unit
    word = unit.name if unit.name in ("score", "loss") else "error"
    seen = (grid >= smallest) & (grid <= largest * REACH)
    values = [v for s in series for v in np.asarray(s["line"]["value"])[seen]]
    values += [p["value"] for s in series for p in s["points"]]
    return {
        "title": f"{word.capitalize()} against training size",
        "scales": ["log", "linear", "root"],
        "scale": "log",
        "x": {"range": [smallest, largest * REACH], "supported": EXTRAPOLATION_LIMIT * largest},
        "y": {
            "range": _room(values, unit.bounded),
            "label": f"{word} ({unit.suffix})" if unit.suffix else word,
            "word": word,
            "suffix": unit.suffix,
        },
        "n": _short(grid),
        "series": series,
        "slider": {"n": _short(sizes), "value": largest},
        "target": {
            "value": float(np.median([c.error_at(largest) for c in curves])),
            "higher": unit.name == "score",
            "floor": 0.0 if unit.bounded or (word == "loss" and min(values) >= 0) else None,
        },
        "intervals": f"95% {curves[0].default_interval} intervals",
    }


def _grid(low: float, high: float, exact: Iterable[float]) -> FloatArray:
    """Sizes evenly spaced in log n, and some exactly; none is almost another."""
    even = np.geomspace(low, high, 2 + int(DENSITY * np.log10(high / low)))
    kept = np.array(sorted(exact)[-DENSITY:])
    apart = np.abs(np.log10(even[:, None] / kept)).min(axis=1) * DENSITY > 0.1
    apart[[0, -1]] = True
    return np.union1d(even[apart], kept)


def _room(values: Sequence[float], bounded: bool) -> list[float]:
    """A range for the values with a little room; from 0 where 0 means something."""
    low, high = min(values), max(values)
    room = 0.06 * (high - low) or 0.06 * abs(high) or 1.0
    return [0.0 if bounded else low - room, high + room]


def _series(
    curve: Curve, grid: FloatArray, sizes: FloatArray, runs: Measurements | None
) -> dict[str, Any]:
    band = curve.band(grid, runs=np.inf)
    ends = curve.errors_at([float(curve.n[0]), curve.largest_n])
    return {
        "name": curve.learner,
        "points": _points(curve, runs),
        "line": {k: _short(band[v]) for k, v in _BAND.items()},
        "reliance": _reliance(curve, sizes),
        "supported": EXTRAPOLATION_LIMIT * curve.largest_n,
        "worsens": bool(ends[0] > ends[1] if curve.unit.name == "score" else ends[1] > ends[0]),
    }


_BAND = {"value": "error", "low": "low", "high": "high"}


def _points(curve: Curve, runs: Measurements | None) -> list[dict[str, Any]]:
    if runs is not None and curve.learner in runs.learners:
        own = runs.of(curve.learner)
        marks = [k for k in ("fold", "seed") if k in own.labels]
        labels = [", ".join(f"{k} {own.labels[k][i]}" for k in marks) for i in range(len(own))]
        rows = zip(own.n.tolist(), own.error.tolist(), labels, strict=True)
    else:
        over = [f"mean of {int(k)} runs" if k > 1 else "one run" for k in curve.runs]
        rows = zip(curve.n.tolist(), curve.mean.tolist(), over, strict=True)
    return [{"n": n, "value": v, "label": label} for n, v, label in rows if np.isfinite(v)]


def _reliance(curve: Curve, sizes: FloatArray) -> dict[str, list[float]] | None:
    """β_N and its interval at some sizes; None where the form cannot say."""
    try:
        found = [curve.interval_at(float(n)).data_reliance for n in sizes]
    except CurvewiseError:
        return None
    parts = {"value": "estimate", "low": "low", "high": "high"}
    return {k: _short(getattr(i, v) for i in found) for k, v in parts.items()}


def _short(values: Iterable[float]) -> list[float]:
    """Numbers of six digits."""
    return [float(f"{v:.6g}") for v in values]
