"""Learning curves as the paper draws them: error against n^−½, so that straight means γ = −½."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from curvewise.errors import InputError
from curvewise.learning import LearningCurves
from curvewise.learning.base import EXTRAPOLATION_LIMIT, INTERVALS, Curve
from curvewise.plot import layers
from curvewise.plot.layers import Look, Picture
from curvewise.plot.scene import CROWD, NAMED_IN_CROWD, curve_legend, finish_axes, looks_of
from curvewise.plot.sizes import SizeAxis
from curvewise.plot.style import NEUTRAL, OWN, new_axes, style, write_caption
from curvewise.plot.wording import caption_of, labels_of, reach_line, warning_lines, warnings_of
from curvewise.tables import number
from curvewise.types import FloatArray, check_level

Values: TypeAlias = tuple[ArrayLike, ArrayLike]


def plot_learning_curves(
    curves: Curve | Iterable[Curve] | LearningCurves,
    ax: Axes | None = None,
    *,
    x: str = "sqrt",
    at: float | None = None,
    interval: str | None = None,
    level: float = 0.95,
    limit: bool = True,
    held_out: Values | Mapping[str, Values] | None = None,
    reach: float | None = None,
    legend: bool = True,
) -> Axes:
    """Draw fitted learning curves with their measurements and intervals.

    Parameters
    ----------
    curves : LearningCurve, EnsembleCurve, iterable of them, or LearningCurves
        In one unit. More than ten are drawn thin, with only the best and worst at N named.
    ax : Axes, optional
        Where to draw; a new pyplot figure by default. Curves already drawn there are kept.
    x : {"sqrt", "log", "linear"}
        The paper's n^−½ with infinite data at the left; log-log; or n as it is.
    at : float, optional
        N of the legend's e_N and β_N, marked by a line; each curve's largest size by default.
    interval : {"confidence", "prediction", "conditional", "none"}, optional
        Kind of the band; each curve's default kind, and none for more than ten curves.
        Prediction bands are for the mean of many runs.
    level : float
        Coverage of the band.
    limit : bool
        Mark four times the largest size, beyond which curves are dashed in any case.
    held_out : (n, values) or dict of learner to (n, values), optional
        Measurements that the fit did not see, given as they would be to the fit: hollow circles.
    reach : float, optional
        A target in the unit of the fit: a line there, and the size at which each curve reaches it.
    legend : bool
        Name the curves, with γ, e_N and β_N.

    Returns
    -------
    Axes
        The Axes given, or the new ones.

    Examples
    --------
    >>> from curvewise.learning import fit_learning_curve
    >>> n, error = [100, 100, 200, 200, 400, 400], [.32, .30, .24, .25, .19, .18]
    >>> ax = plot_learning_curves(fit_learning_curve(n, error, learner="plain"))
    >>> ax.get_legend().get_texts()[0].get_text()
    'plain   γ=...   e_N=...   β_N=...   (N=400)'
    """
    chosen, failures = _checked(curves)
    if isinstance(curves, LearningCurves) and at is None:
        at = curves.at
    _check_options(chosen, at, interval, level, reach)
    outside = _held_out(held_out, chosen)
    axis = SizeAxis(x)
    with style():
        found = warnings_of(chosen)
        warned = warning_lines(chosen, found, failures)
        ax = ax or new_axes(height=_height(len(chosen), len(warned), legend))
        own = ax.get_gid() == OWN
        start = len(layers.lines_of(ax, layers.NAMED, layers.UNNAMED))
        picture = _picture(ax, axis, chosen, outside, at)
        looks = looks_of(chosen, at, start, list(map(bool, found)))
        _draw_all(picture, chosen, looks, labels_of(chosen, at, found), outside, interval, level)
        if limit:
            layers.draw_limits(picture, chosen)
        if at is not None and math.isfinite(at):
            layers.mark_size(picture, at, f"N = {number(at)}", gid="curvewise-at", ls=":")
        reached = [] if reach is None else _draw_reach(picture, chosen, looks, reach, level)
        finish_axes(picture, chosen)
        box = curve_legend(ax, own, len(chosen)) if legend else None
        dotted = any(look.flagged for look in looks)
        said = caption_of(chosen, interval, level, held=bool(outside), dotted=dotted)
        write_caption(ax, [said, *reached, *warned], under=box if own else None)
    return ax


def _checked(
    curves: Curve | Iterable[Curve] | LearningCurves,
) -> tuple[list[Curve], dict[str, str]]:
    """The curves as a list, and the learners that could not be fitted."""
    if isinstance(curves, Mapping):
        curves = curves.values()
    chosen = [curves] if isinstance(curves, Curve) else list(curves)
    for curve in chosen:
        if not isinstance(curve, Curve):
            raise InputError(
                f"curves holds a {type(curve).__name__}: give fitted curves, as made by"
                " cw.fit_learning_curve."
            )
    if not chosen:
        raise InputError("curves is empty: give at least one fitted curve.")
    if len({c.unit.name for c in chosen}) > 1:
        raise InputError("curves are in different units: fit all of them in the same unit.")
    return chosen, curves.failures if isinstance(curves, LearningCurves) else {}


def _check_options(
    curves: Sequence[Curve],
    at: float | None,
    interval: str | None,
    level: float,
    reach: float | None,
) -> None:
    """Raise before a figure is made."""
    check_level(level)
    curves[0]._size(at)
    if reach is not None:
        curves[0].unit.errors(reach, "reach")
    if interval not in (None, "none", *INTERVALS):
        known = ", ".join(map(repr, (*INTERVALS, "none")))
        raise InputError(f"interval={interval!r} is not known: use one of {known}.")
    for curve in curves if interval not in (None, "none") else ():
        curve.band(curve.n[:1], interval, level=level)


def _held_out(
    held_out: Values | Mapping[str, Values] | None, curves: Sequence[Curve]
) -> dict[int, tuple[FloatArray, FloatArray]]:
    """Held-out sizes and errors, by the number of the curve they belong to."""
    if held_out is None:
        return {}
    if not isinstance(held_out, Mapping):
        if len(curves) > 1:
            raise InputError("held_out needs a dict of learner to (n, values): there are several.")
        held_out = {curves[0].learner: held_out}
    places = {c.learner: i for i, c in reversed(list(enumerate(curves)))}
    out = {}
    for learner, pair in held_out.items():
        if learner not in places:
            raise InputError(f"held_out names {learner!r}, which is not among the curves.")
        n = np.atleast_1d(np.asarray(pair[0], dtype=np.float64))
        values = np.atleast_1d(curves[places[learner]].unit.errors(pair[1], "held_out"))
        if n.shape != values.shape or n.ndim != 1 or not (np.isfinite(n) & (n > 0)).all():
            raise InputError("held_out must be (n, values): positive sizes, one value for each.")
        out[places[learner]] = (n, values)
    return {i: pair for i, pair in out.items() if len(pair[0])}


def _picture(
    ax: Axes,
    axis: SizeAxis,
    curves: Sequence[Curve],
    outside: Mapping[int, tuple[FloatArray, FloatArray]],
    at: float | None,
) -> Picture:
    """The range of sizes: that of the data, what is held out, N, and what is there already."""
    there = axis.size(layers.points_of(ax, layers.MEASURED, layers.HELD_OUT)[:, 0])
    asked = np.array([] if at is None else [curves[0]._size(at)])
    sizes = np.concatenate(
        [*(c.n for c in curves), *(n for n, _ in outside.values()), there, asked]
    )
    high = axis.reach([EXTRAPOLATION_LIMIT * c.largest_n for c in curves], sizes)
    if len(there) and axis.name != "sqrt":
        high = max(high, ax.get_xlim()[1])
    return Picture(ax, axis, float(sizes.min()), high)


def _draw_all(
    picture: Picture,
    curves: Sequence[Curve],
    looks: Sequence[Look],
    labels: Sequence[str],
    outside: Mapping[int, tuple[FloatArray, FloatArray]],
    interval: str | None,
    level: float,
) -> None:
    shaded = interval != "none" and (interval is not None or len(curves) <= CROWD)
    for i, (curve, look) in enumerate(zip(curves, looks, strict=True)):
        low = float(min(curve.n[0], outside[i][0].min() if i in outside else np.inf))
        if shaded:
            layers.draw_band(picture, curve, look, interval, level, low)
        layers.draw_line(picture, curve, look, labels[i], low)
        layers.draw_measurements(picture, curve, look)
        if i in outside:
            layers.draw_held_out(picture, curve, look, *outside[i])


def _draw_reach(
    picture: Picture, curves: Sequence[Curve], looks: Sequence[Look], target: float, level: float
) -> list[str]:
    """The target and where each named curve reaches it; what to say about the first few."""
    picture.ax.axhline(float(target), color=NEUTRAL, lw=0.9, zorder=0.5, label="_target")
    picture.ax.lines[-1].set_gid(layers.REACH)
    said = []
    for curve, look in zip(curves, looks, strict=True):
        if look.named:
            found = curve.samples_to_reach(float(target), level=level)
            layers.draw_reach(picture, curve, look, found)
            said.append(reach_line(found))
    return said[:5]


def _height(curves: int, warned: int, legend: bool) -> float:
    rows = 0 if not legend else min(curves, CROWD if curves <= CROWD else 2 * NAMED_IN_CROWD + 1)
    return 4.3 + 0.2 * rows + 0.28 * warned
