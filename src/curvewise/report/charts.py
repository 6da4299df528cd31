"""Charts for the browser: what is drawn, and what can be asked of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from curvewise.errors import CurvewiseError
from curvewise.report.content import Figure
from curvewise.text import format_level
from curvewise.types.measurements import Measurements
from curvewise.types.results import FloatArray, Result

if TYPE_CHECKING:
    from curvewise.learning.curve import Curve
    from curvewise.ranking.rank import CheckpointRanking
    from curvewise.response.curve import ResponseCurve
    from curvewise.transfer.result import TransferResult
    from curvewise.variance.decompose import VarianceDecomposition


def figures_of(
    result: Result, name: str, title: str, runs: Measurements | None = None, *, alive: bool = True
) -> tuple[Figure, ...]:
    """Make the pictures of a result: one, or one for each task of a transfer; with charts where there are some.

    Parameters
    ----------
    result : Result
        One that has a picture.
    name, title : str
        Of the picture.
    runs : Measurements, optional
        Points of learning curves, see :func:`learning_chart`.
    alive : bool
        Give the charts that a browser can play with, too.
    """
    kinds = [k.__name__ for k in type(result).__mro__]
    make = next((CHARTS[k] for k in kinds if k in CHARTS), None)
    said = result.sentences()
    if not alive or make is None:
        return (Figure(name, title, result.plot, said=said),)
    if "TransferResult" in kinds:
        tasks = result.tasks  # type: ignore[attr-defined]
        # Small panels side by side where there are many.
        shown = [*tasks] if len(tasks) <= MOST_TASKS else []
        drawn = [Figure(name, title, result.plot, said=said)] if not shown else []
        for i, task in enumerate(shown, start=1):
            label, key = (f"{title} {task}", f"{name}-{i}") if len(tasks) > 1 else (title, name)
            chart = transfer_chart(result, task)  # type: ignore[arg-type]
            drawn.append(Figure(key, label, partial(result.plot, task=task), chart, said=said))
        return tuple(drawn)
    return (Figure(name, title, result.plot, make(result, runs), said=said),)


MOST_TASKS = 6
"""Tasks of a transfer that get a chart each; more are drawn as small panels."""

REACH = 10.0
"""Curves are drawn up to this multiple of the largest size."""

DENSITY = 12
"""Points of a curve for each factor of ten in size; the browser goes smoothly between them."""

MOST_POINTS = 5_000
"""Of more runs than this, the mean of each size is drawn."""


def learning_chart(curves: Sequence[Curve], runs: Measurements | None = None) -> dict[str, Any]:
    """Make the chart of fitted curves for the browser: points, lines with bands, and what can be asked of them.

    The curves reach from a thousandth of the smallest size to where
    :meth:`~curvewise.learning.curve.Curve.samples_to_reach` stops searching, so that the browser
    can read off the samples that any error takes.

    Parameters
    ----------
    curves : sequence of LearningCurve
        Fitted to one metric.
    runs : Measurements, optional
        The points, where they say more than the fits remember: fold and seed.
    """
    from curvewise.learning.curve import EXTRAPOLATION_LIMIT, FARTHEST

    if runs is not None and len(runs) > MOST_POINTS:
        runs = None
    largest = max(c.largest_n for c in curves)
    smallest = min(float(np.min(c.n)) for c in curves)
    first = max(min(1.0, smallest), smallest / 1e3)
    # The sizes at which people read values off are on the grid, so that they are not interpolated.
    ends = {c.largest_n for c in curves}
    exact = {k * n for n in ends for k in (1.0, EXTRAPOLATION_LIMIT)}
    grid = _grid(first, largest * FARTHEST, exact)
    sizes = _grid(smallest, largest * REACH, exact)
    series = [_series(c, grid, sizes, runs) | {"supported": EXTRAPOLATION_LIMIT * c.largest_n} for c in curves]
    unit = curves[0].unit
    word = unit.name if unit.name in ("score", "loss") else "error"
    seen = (grid >= smallest) & (grid <= largest * REACH)
    times, suffix = _percent(unit.name)
    values = [v for s in series for v in np.asarray(s["line"]["value"])[seen]]
    values += [p["value"] for s in series for p in s["points"]]
    low, high = _room(values)
    return {
        "title": f"{word.capitalize()} against number of training samples",
        "scales": ["log", "linear", "root"],
        "scale": "log",
        "x": {"range": [smallest, largest * REACH], "supported": EXTRAPOLATION_LIMIT * largest, "word": "n"},
        "y": {
            "range": [0.0 if unit.bounded else low, high],  # from 0 where 0 means something
            "label": f"{word} ({suffix})" if suffix else word,
            "word": word,
            "suffix": suffix,
        },
        "n": _short(grid),
        "between": "smooth",
        "series": series,
        "slider": {"n": _short(sizes), "value": largest, "label": "Training size n"},
        "columns": [
            {"key": "line", "title": f"{word}{f' ({suffix})' if suffix else ''} at n = {{at}}"},
            {"key": "reliance", "title": f"data-reliance β{f' ({suffix})' if suffix else ''}"},
        ],
        "target": {
            "value": _example(times * float(np.median([c.error_at(largest) for c in curves])), unit.name == "score"),
            "higher": unit.name == "score",
            "floor": 0.0 if unit.bounded or (word == "loss" and min(values) >= 0) else None,
        },
        # β is by the power law, whatever the form.
        "intervals": "95% confidence intervals"
        if curves[0].default_interval == "confidence"
        else "95% prediction intervals for the mean of many runs; of β, 95% confidence intervals of form power",
    }


ROUND = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)


def _example(value: float, higher: bool) -> float:
    """Return a round number near a value, as an example of a target; none that is harder where higher is better.

    >>> [_example(v, higher=False) for v in (4.39, 0.117, 0.0)], _example(96.0, higher=True)
    ([4.0, 0.1, 0.0], 80.0)
    """
    if value == 0 or not math.isfinite(value):
        return value
    power = 10.0 ** math.floor(math.log10(abs(value)))
    known = [k * power for k in ROUND if not higher or value < 0 or k * power <= value]
    return math.copysign(float(f"{min(known, key=lambda k: abs(math.log(abs(value) / k))):.6g}"), value)


def _grid(low: float, high: float, exact: Iterable[float]) -> FloatArray:
    """Sizes evenly spaced in log n, and some exactly; none is almost another."""
    even = np.geomspace(low, high, 2 + int(DENSITY * np.log10(high / low)))
    kept = np.array(sorted(exact)[-DENSITY:])
    apart = np.abs(np.log10(even[:, None] / kept)).min(axis=1) * DENSITY > 0.1
    apart[[0, -1]] = True
    return np.union1d(even[apart], kept)


def _series(curve: Curve, grid: FloatArray, sizes: FloatArray, runs: Measurements | None) -> dict[str, Any]:
    times, _ = _percent(curve.unit.name)
    try:
        every = [curve.interval_at(float(n)).data_reliance for n in sizes]
        ends_of = zip(("value", "low", "high"), zip(*every, strict=True), strict=True)
        reliance = {k: _short(times * v for v in values) for k, values in ends_of}
    except CurvewiseError:  # the form cannot say β_N
        reliance = None
    band = curve.band(grid, runs=np.inf)
    ends = curve.errors_at([float(curve.n[0]), curve.largest_n])
    return {
        "name": curve.learner,
        "points": _points(curve, runs),
        "line": {k: _short(times * band[v]) for k, v in {"value": "error", "low": "low", "high": "high"}.items()},
        "measured": [float(curve.n[0]), curve.largest_n],
        "reliance": reliance,
        "worsens": bool(ends[0] > ends[1] if curve.unit.name == "score" else ends[1] > ends[0]),
    }


def _points(curve: Curve, runs: Measurements | None) -> list[dict[str, Any]]:
    times, _ = _percent(curve.unit.name)
    if runs is not None and curve.learner in runs.learners:
        own = runs.of(curve.learner)
        marks = [k for k in ("fold", "seed") if k in own.labels]
        labels = [", ".join(f"{k} {own.labels[k][i]}" for k in marks) for i in range(len(own))]
        return _measured(own.n, times * own.error, None, None, labels)
    return _measured(curve.n, times * curve.mean, None, None, [_mean_of(k) for k in curve.runs])


def _mean_of(runs: float) -> str:
    return f"mean of {int(runs)} runs" if runs > 1 else "one run"


def _percent(unit: str) -> tuple[float, str]:
    """Return the factor to what people read, and the sign behind it: errors are percentages."""
    return (100.0, "%") if unit == "fraction" else (1.0, "%" if unit == "percent" else "")


def _short(values: Iterable[float]) -> list[float]:
    """Round to six digits, which halves the size of a page."""
    return [float(f"{v:.6g}") for v in values]


def _line(n: FloatArray, value: FloatArray, low: FloatArray, high: FloatArray) -> dict[str, list[float]]:
    """Make a line with its band."""
    return {"n": _short(n), "value": _short(value), "low": _short(low), "high": _short(high)}


def response_chart(curve: ResponseCurve) -> dict[str, Any]:
    """Make the chart of a response curve: accuracy against magnitude, read off at any magnitude.

    Parameters
    ----------
    curve : ResponseCurve
        What to draw.
    """
    x, value = curve.magnitude, 100 * curve.accuracy
    low, high = (100 * end for end in curve.accuracy_interval())
    clean = curve.clean_accuracy
    labels = [f"{right:,} of {tried:,} right" for right, tried in zip(curve.correct, curve.total, strict=True)]
    series: dict[str, Any] = {
        "name": curve.model,
        "points": _measured(x, value, low, high, labels),
        "line": _line(x, value, low, high),
    }
    columns = [{"key": "line", "title": "accuracy (%) at {at}"}]
    if math.isfinite(clean):
        series["lost"] = {"n": _short(x), "value": _short(100 * clean - value)}
        columns.append({"key": "lost", "title": "lost against no perturbation (points)"})
    where = "" if curve.layer == "input" else f" at {curve.where}"
    unit = f" ({curve.unit})" if curve.unit else ""
    return {
        "title": f"Accuracy against the magnitude of {curve.perturbation}",
        "scale": "linear",
        "x": {"range": _short([x[0], x[-1]]), "label": f"{curve.perturbation}{where}{unit}", "word": "magnitude"},
        "y": {"range": _room([*low, *value, 100.0], top=100.0), "label": "accuracy (%)", "suffix": "%"},
        "between": "linear",
        "series": [series],
        "slider": {"n": _short(x), "value": float(x[len(x) // 2]), "label": "Magnitude"},
        "columns": columns,
        "intervals": "95% intervals for other examples of the same kind",
    }


MOST_SEEDS = 200
"""Seeds up to which the spread of their mean is drawn."""


def seeds_chart(result: VarianceDecomposition) -> dict[str, Any]:
    """Make the chart of a decomposition: how far the mean of so many runs may lie from the mean of all.

    Parameters
    ----------
    result : VarianceDecomposition
        What to draw.
    """
    from curvewise.variance.anova import DisplayUnit

    times, suffix = _percent(result.unit)
    display = DisplayUnit(result.unit)
    word, errors = display.word, times * display.signed(result.run_errors)
    mean = float(errors.mean())
    seeds = np.arange(1, min(max(2 * result.runs, 20), MOST_SEEDS) + 1)
    z = 1.959964
    rows = {"this test set": (result.test_set_interval, "ink"), "new data": (result.distribution_interval, "faint")}
    series: list[dict[str, Any]] = []
    bottom, top = (0.0, times) if result.unit == "fraction" else (-math.inf, math.inf)
    near: list[float] = []
    for name, (std, tone) in rows.items():
        spread = {k: times * v / np.sqrt(seeds) for k, v in zip(("value", "low", "high"), std, strict=False)}
        # By the upper limit: the estimate may be 0 by chance, which does not make means certain.
        half = z * spread["high"]
        near = [*near, *(mean - z * spread["value"]), *(mean + z * spread["value"])]
        series.append(
            {
                "name": name,
                "tone": tone,
                "points": [],
                "line": {
                    "n": seeds.tolist(),
                    "value": [float(f"{mean:.6g}")] * len(seeds),
                    "low": _short(np.maximum(mean - half, bottom)),
                    "high": _short(np.minimum(mean + half, top)),
                },
                "std": {"n": seeds.tolist(), **{k: _short(v) for k, v in spread.items()}},
            }
        )
    shown = seeds[: result.runs]
    running = np.cumsum(errors)[: len(shown)] / shown
    told = [f"mean of the first {k} runs" if k > 1 else "the first run" for k in shown]
    series[0]["points"] = _measured(shown.astype(float), running, None, None, told)
    ends = [*near, *running, *(series[0]["line"][k][len(shown) - 1] for k in ("low", "high"))]
    unit = f" ({suffix})" if suffix else ""
    return {
        "title": f"Mean {word} by number of seeds",
        "scale": "log",
        "x": {"range": [1.0, float(seeds[-1])], "label": "number of seeds that are averaged", "word": "seeds"},
        "y": {"range": _room(ends), "label": f"mean {word}{unit}", "suffix": suffix},
        "between": "log",
        "series": series,
        "slider": {"n": seeds.tolist(), "value": len(shown), "label": "Number of seeds", "steps": True},
        "columns": [
            {"key": "line", "title": f"at least 95% of means of {{at}} seeds lie in{unit}"},
            {"key": "std", "title": "their standard deviation"},
        ],
        "intervals": "the range of such means, by the upper limit of their standard deviation; and its 95% interval",
        "kept": True,
    }


def transfer_chart(result: TransferResult, task: str) -> dict[str, Any] | None:
    """Make the chart of one task of a transfer: calibrated risk and gain by training size; None for a single size.

    Parameters
    ----------
    result : TransferResult
        What to draw.
    task : str
        Of its tasks.
    """
    gains = {i.method: i for i in result.improvements if i.task == task}
    series: list[dict[str, Any]] = []
    for curve in (c for c in result.curves if c.task == task and len(c.n)):
        ends = (curve.n, curve.calibrated, curve.low, curve.high)
        points = _measured(*ends, [_mean_of(k) for k in curve.runs])
        one: dict[str, Any] = {"name": curve.method, "points": points, "line": _line(*ends)}
        if curve.method == result.scratch:
            one["tone"] = "ink"
        gain = gains.get(curve.method)
        if gain is not None and len(gain.n):
            one["gain"] = _line(gain.n, gain.gain, gain.gain_low, gain.gain_high)
        series.append(one)
    sizes = np.unique(np.concatenate([np.zeros(0), *(s["line"]["n"] for s in series)]))
    values = [v for s in series for k in ("value", "low", "high") for v in s["line"][k] if math.isfinite(v)]
    middle = [v for s in series for v in s["line"]["value"] if math.isfinite(v)]
    if len(sizes) < 2 or not middle:
        return None
    span = max(middle) - min(middle) or 1.0
    kept = [float(np.clip(v, min(middle) - 0.5 * span, max(middle) + 0.5 * span)) for v in values]
    return {
        "title": f"Calibrated risk against number of training samples, {task}",
        "scales": ["log", "linear"],
        "scale": "log",
        "x": {"range": [float(sizes[0]), float(sizes[-1])], "word": "n"},
        "y": {"range": _room(kept), "label": "calibrated risk", "suffix": ""},
        "between": "log",
        "series": series,
        "slider": {"n": sizes.tolist(), "value": float(sizes[len(sizes) // 2]), "label": "Training size n"},
        "columns": [
            {"key": "line", "title": "calibrated risk at n = {at}"},
            {"key": "gain", "title": f"gain over {result.scratch}"},
        ],
        "intervals": f"{format_level(result.level)} intervals of the mean. 1 is "
        f"{'the largest risk' if result.blind[task].assumed else 'a blind guess'}, 0 maximal "
        "supervision",
    }


def tries_chart(result: CheckpointRanking) -> dict[str, Any] | None:
    """Make the chart of a ranking: the chance that the best checkpoint is among the first k; None where it is unknown.

    Parameters
    ----------
    result : CheckpointRanking
        What to draw.
    """
    k = np.arange(1, result.ranked + 1)
    rows = {
        "fine-tunes best": (result.chance_best, "ink"),
        f"has the highest {result.by}": (result.chance_top, "faint"),
    }
    series = []
    for name, (chance, tone) in rows.items():
        share = 100 * np.minimum(np.cumsum(chance[: result.ranked]), 1.0)
        if np.isfinite(share).all():
            labels = [f"with {checkpoint}" for checkpoint in result.checkpoints[: result.ranked]]
            points = _measured(np.asarray(k, dtype=np.float64), share, None, None, labels)
            line = {"n": k.tolist(), "value": _short(share)}
            series.append({"name": name, "tone": tone, "points": points, "line": line})
    if len(k) < 2 or not series:
        return None
    return {
        "title": "Chance that the best checkpoint is among the first k",
        "scale": "linear",
        "x": {"range": [1.0, float(k[-1])], "label": "checkpoints to try, the best-ranked first", "word": "k"},
        "y": {"range": [0.0, 103.0], "label": "chance (%)", "suffix": "%"},
        "between": "linear",
        "series": series,
        "slider": {
            "n": k.tolist(),
            "value": min(result.k, result.ranked),
            "label": "Checkpoints to try",
            "steps": True,
            "notes": [f"Try {join_names(result.checkpoints[:i], 8)}." for i in k],
        },
        "columns": [{"key": "line", "title": "chance (%) that it is among the first {at}"}],
        "kept": True,
    }


def join_names(names: Sequence[str], most: int) -> str:
    """Join names by commas and "and", the first few of many.

    >>> join_names(["a"], 2), join_names("abcd", 2)
    ('a', 'a, b and 2 more')
    """
    shown = list(names[:most]) + ([f"{len(names) - most} more"] if len(names) > most else [])
    return " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))


def _measured(
    x: FloatArray, value: FloatArray, low: FloatArray | None, high: FloatArray | None, labels: Sequence[str]
) -> list[dict[str, Any]]:
    """Make points with the text of each, and their intervals where they are known."""
    points: list[dict[str, Any]] = []
    for i, label in enumerate(labels):
        if math.isfinite(value[i]):
            point = {"n": float(x[i]), "value": float(f"{value[i]:.6g}"), "label": label}
            if low is not None and high is not None and math.isfinite(low[i] + high[i]):
                point |= {"low": float(f"{low[i]:.6g}"), "high": float(f"{high[i]:.6g}")}
            points.append(point)
    return points


def _room(values: Iterable[float], top: float = math.inf) -> list[float]:
    """Limits of an axis with some room around values, little above the highest that can be."""
    known = [float(v) for v in values if math.isfinite(v)]
    low, high = min(known), max(known)
    # Values that differ by rounding alone have the room of equal ones: their limits would be written alike.
    pad = 0.06 * (high - low if high - low > 1e-5 * abs(high) else abs(high)) or 1.0
    return _short([low - pad, min(high + pad, top + 0.4 * pad)])


CHARTS: Mapping[str, Any] = {
    "LearningCurves": lambda result, runs: learning_chart([*result], runs) if len(result.curves) else None,
    "Curve": lambda result, runs: learning_chart([result], runs),
    "ResponseCurve": lambda result, _: response_chart(result),
    "VarianceDecomposition": lambda result, _: seeds_chart(result),
    "TransferResult": transfer_chart,
    "CheckpointRanking": lambda result, _: tries_chart(result),
}
"""The function that makes the chart of each class of results."""
