"""One entrance to all pictures: the class of a result says how it is drawn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from matplotlib.axes import Axes

from curvewise.errors import InputError
from curvewise.learning import (
    CurveComparison,
    LearnerRanking,
    LearningCurves,
    LeaveOneSizeOut,
    SamplesToReach,
    SizePlan,
    Stability,
    VarianceCheck,
)
from curvewise.learning.base import Curve
from curvewise.plot.checks import plot_left_out, plot_plan, plot_stability, plot_variance_check
from curvewise.plot.compare import plot_comparison
from curvewise.plot.curves import plot_learning_curves
from curvewise.plot.ranking import plot_ranking, plot_reach

PICTURES: dict[type, Callable[..., Axes]] = {
    Curve: plot_learning_curves,
    LearningCurves: plot_learning_curves,
    CurveComparison: plot_comparison,
    LearnerRanking: plot_ranking,
    SamplesToReach: plot_reach,
    SizePlan: plot_plan,
    LeaveOneSizeOut: plot_left_out,
    Stability: plot_stability,
    VarianceCheck: plot_variance_check,
}
"""How a result of each class, or of a class derived from it, is drawn."""


def draw(result: Any, ax: Axes | None = None, **options: Any) -> Axes:
    """Draw a result; what ``result.plot()`` calls.

    Parameters
    ----------
    result : Result
        Any result that has a picture.
    ax : Axes, optional
        Where; a new pyplot figure by default.
    **options
        Passed to the function that draws this class of result, such as
        :func:`plot_learning_curves`.

    Returns
    -------
    Axes
        The Axes given, or the new ones.
    """
    for kind in type(result).__mro__:
        if kind in PICTURES:
            return PICTURES[kind](result, ax, **options)
    raise InputError(
        f"result is a {type(result).__name__}, which has no picture; there are pictures of "
        f"{', '.join(k.__name__ for k in PICTURES)}."
    )
