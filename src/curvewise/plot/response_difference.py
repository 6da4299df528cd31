"""Two response curves compared: their difference at each magnitude, and that of their scores."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from scipy.special import ndtri

from curvewise.errors import InputError
from curvewise.plot import response_parts as parts
from curvewise.plot.panels import new_panels, told, write_below
from curvewise.plot.style import colour, new_axes, style
from curvewise.plot.text import clean, safe_names, shorten
from curvewise.plot.variance_axes import is_narrow, rows_of, view
from curvewise.plot.variance_parts import bars, choose, finish, warned, zero_line
from curvewise.response import ResponseCurve
from curvewise.response.compare import ResponseComparison, compare_responses
from curvewise.response.spread import answers_variance, linear_variance
from curvewise.types import FloatArray, Interval
from curvewise.variance.wording import said_pvalue

DIFFERENCE = "curvewise-difference"
BAND = "curvewise-band"

LABELS = {"gi": "Gi-score", "pal": "Pal-score", "mean_accuracy": "mean accuracy (%)"}


def plot_response_difference(
    a: ResponseCurve,
    b: ResponseCurve,
    ax: Axes | None = None,
    *,
    paired: bool | None = None,
    level: float = 0.95,
    caption: bool | None = None,
) -> Axes:
    """Draw by how much one model is more accurate than another at each magnitude.

    Parameters
    ----------
    a, b : ResponseCurve
        Of two models, at the same magnitudes of the same perturbation.
    ax : Axes, optional
        Where; a new figure by default.
    paired : bool, optional
        As of :func:`compare_responses`.
    level : float
        Coverage of the intervals.
    caption : bool, optional
        Say what was found under the picture; by default where there is room.

    Returns
    -------
    Axes
        The Axes given, or the new ones.
    """
    parts.check_curves([a, b])
    if not parts.share_unit([a, b]) or not np.array_equal(a.magnitude, b.magnitude):
        raise InputError(
            "a and b were not measured at the same magnitudes of the same perturbation: only then "
            "is there a difference at each."
        )
    found = compare_responses(a, b, paired=paired, level=level)
    difference = 100 * (a.accuracy - b.accuracy)
    half = 100 * float(ndtri(0.5 + level / 2)) * _errors(a, b, found.paired)
    with style():
        own = ax is None
        ax = ax or new_axes()
        zero_line(ax, horizontal=True)
        low, high = difference - half, difference + half
        ax.fill_between(
            a.magnitude, low, high, color=colour(0), alpha=0.18, linewidth=0.0, gid=BAND
        )
        look: dict[str, Any] = {"color": colour(0), "lw": 1.8, "marker": "o", "ms": 3.2}
        ax.plot(a.magnitude, difference, gid=DIFFERENCE, label="_difference", **look)
        ax.set_ylim(*view(difference, low, high, 0.0))
        parts.magnitude_axis(ax, a.magnitude)
        ax.grid(alpha=0.25, linewidth=0.6)
        ax.set_xlabel(parts.magnitude_label(a, ax))
        ax.set_ylabel("difference of accuracy (%)" if not is_narrow(ax) else "difference (%)")
        ax.set_title(_title(found, 12 if is_narrow(ax) else 28), loc="left")
        finish(ax, own, [], _caption(found, shaded=True), caption=caption)
    return ax


def _errors(a: ResponseCurve, b: ResponseCurve, paired: bool) -> FloatArray:
    """Standard error of the difference at each magnitude."""
    each = np.eye(len(a.magnitude))
    if not paired or a.hits is None or b.hits is None:
        return np.sqrt([linear_variance(w, a) + linear_variance(w, b) for w in each])
    answers = a.hits.astype(np.float64) - b.hits
    return np.sqrt([answers_variance(w, answers, a.partners) for w in each])


def plot_response_comparison(
    result: ResponseComparison,
    ax: Axes | None = None,
    *,
    score: str | None = None,
    caption: bool | None = None,
) -> Axes:
    """Draw the differences of two models' scores with their intervals.

    Parameters
    ----------
    result : ResponseComparison
        What to draw. For the difference at each magnitude see :func:`plot_response_difference`.
    ax : Axes, optional
        Where; a new figure by default.
    score : {"gi", "pal", "mean_accuracy"}, optional
        All three by default, in panels of their own; on ``ax`` the Gi-score.
    caption : bool, optional
        Say what was found under the picture; by default where there is room.

    Returns
    -------
    Axes
        The Axes given, or those of the first panel.
    """
    if score is not None:
        choose("score", score, tuple(LABELS))
    chosen = [score] if score else list(LABELS) if ax is None else ["gi"]
    lines = _caption(result, shaded=False)
    with style():
        own = ax is None
        axes = [ax] if ax is not None else new_panels(len(chosen), 1, 7.0, 0.95)
        for panel, name in zip(axes, chosen, strict=True):
            _row(panel, result.differences[name], name)
        axes[0].set_title(_title(result, 28 if own or not is_narrow(axes[0]) else 12), loc="left")
        if own and caption is not False:
            _taller(axes[0], 1.3)
            write_below(axes[0], lines)
        elif not own:
            finish(axes[0], own, [], lines, caption=caption)
    return axes[0]


def _row(ax: Axes, interval: Interval, name: str) -> None:
    """One difference on a scale of its own; 0 is always in view."""
    scale = 100.0 if name == "mean_accuracy" else 1.0
    values = [scale * v for v in (interval.estimate, interval.low, interval.high)]
    limits = view(values[:1], values[1:2], values[2:], 0.0)
    zero_line(ax)
    bars(ax, [0], values[1:2], values[2:], colour(0), limits=limits, horizontal=True)
    ax.plot(values[:1], [0], "o", color=colour(0), ms=6.0, gid=DIFFERENCE, label="_difference")
    rows_of(ax, [LABELS[name]])
    ax.set_xlim(*limits)


def _taller(ax: Axes, inches: float) -> None:
    """Room for title and caption in a figure of ours."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    width, height = figure.get_size_inches()
    figure.set_size_inches(width, height + inches)


def _title(result: ResponseComparison, longest: int) -> str:
    a, b = safe_names((result.a, result.b), longest)
    return f"{a} − {b}"


def _caption(result: ResponseComparison, shaded: bool) -> list[str]:
    gi = result.differences["gi"]
    a, b = (shorten(clean(name), 40) for name in (result.a, result.b))
    verdict = {"a better": f"{a} is better", "b better": f"{b} is better"}
    how = "the same perturbed examples" if result.paired else "examples of their own"
    return [
        f"Gi-scores differ by {told(gi).replace('-', '−')} "
        f"({said_pvalue(result.pvalues['gi'])}), lower is better: "
        f"{verdict.get(result.verdict, 'undecided')}.",
        f"{'Shaded' if shaded else 'Bars'}: {100 * result.level:.4g}% intervals, on {how}.",
        *warned(result),
    ]
