"""Learning curves for the browser: points, lines with bands, and what can be asked of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from curvewise.errors import CurvewiseError
from curvewise.types import FloatArray, Measurements

if TYPE_CHECKING:
    from curvewise.learning.base import Curve

REACH = 10.0
"""Curves are drawn up to this multiple of the largest size."""

LINE, ANSWERS, TARGETS = 60, 25, 25
"""Points of a line, training sizes and target errors that are worked out beforehand."""


def learning_chart(curves: Sequence[Curve], runs: Measurements | None = None) -> dict[str, Any]:
    """The chart of fitted curves.

    Parameters
    ----------
    curves : sequence of LearningCurve
        Fitted to one metric.
    runs : Measurements, optional
        The points, where they say more than the fits remember: fold and seed.
    """
    largest = max(c.largest_n for c in curves)
    smallest = min(float(np.min(c.n)) for c in curves)
    grid = np.geomspace(smallest, largest * REACH, LINE)
    series = [_series(c, grid, runs) for c in curves]
    values = [v for s in series for v in (*s["line"]["value"], *(p["value"] for p in s["points"]))]
    top = max(values)
    unit = curves[0].unit
    word = "score" if unit.name == "score" else "loss" if unit.name == "loss" else "error"
    label = f"{word} ({unit.suffix})" if unit.suffix else word
    low = min(0.0, min(values)) if unit.name in ("fraction", "percent") else min(values)
    reachable = [v for s in series for v in s["line"]["value"]]
    return {
        "title": f"{word.capitalize()} against training size",
        "scales": ["log", "linear", "root"],
        "scale": "log",
        "x": {"range": [float(smallest), float(largest * REACH)]},
        "y": {"range": [low, float(top * 1.06)], "label": label, "word": word},
        "series": series,
        "slider": {"low": float(smallest), "high": float(largest * REACH), "value": float(largest)},
        "target": {
            "low": float(min(reachable)),
            "high": float(max(reachable)),
            "value": float(np.median([c.error_at(largest) for c in curves])),
        },
    }


def _series(curve: Curve, grid: FloatArray, runs: Measurements | None) -> dict[str, Any]:
    band = curve.band(grid)
    line = {"n": grid, "value": band["error"], "low": band["low"], "high": band["high"]}
    found: dict[str, Any] = {
        "name": curve.learner,
        "points": _points(curve, runs),
        "line": {k: np.asarray(v, dtype=np.float64).tolist() for k, v in line.items()},
    }
    for key, made in (("answers", _answers), ("needs", _needs)):
        try:
            found[key] = made(curve, grid)
        except CurvewiseError:  # some forms cannot say
            found[key] = None
    return found


def _points(curve: Curve, runs: Measurements | None) -> list[dict[str, Any]]:
    if runs is not None and curve.learner in runs.learners:
        own = runs.of(curve.learner)
        marks = [k for k in ("fold", "seed") if k in own.labels]
        labels = [
            ", ".join(f"{k} {own.labels[k][i]}" for k in marks) for i in range(len(own))
        ]
        rows = zip(own.n.tolist(), own.error.tolist(), labels, strict=True)
    else:
        over = [f"mean of {int(k)} runs" if k > 1 else "one run" for k in curve.runs]
        rows = zip(curve.n.tolist(), curve.mean.tolist(), over, strict=True)
    return [{"n": n, "value": v, "label": label} for n, v, label in rows if np.isfinite(v)]


def _answers(curve: Curve, grid: FloatArray) -> Mapping[str, Any]:
    sizes = np.geomspace(grid[0], grid[-1], ANSWERS)
    found = [curve.interval_at(float(n)) for n in sizes]
    return {
        "logn": np.log(sizes).tolist(),
        **_interval("error", [f.error for f in found]),
        **_interval("reliance", [f.data_reliance for f in found]),
    }


def _interval(name: str, found: Sequence[Any]) -> dict[str, list[float]]:
    return {
        name: [i.estimate for i in found],
        f"{name}_low": [i.low for i in found],
        f"{name}_high": [i.high for i in found],
    }


def _needs(curve: Curve, grid: FloatArray) -> Mapping[str, Any]:
    values = [curve.error_at(float(n)) for n in (grid[0], grid[-1])]
    targets = np.linspace(max(values), min(values), TARGETS)
    found = [curve.samples_to_reach(float(t)) for t in targets]
    return {
        "target": targets.tolist(),
        "n": [f.estimate for f in found],
        "low": [f.low for f in found],
        "high": [f.high for f in found],
    }
