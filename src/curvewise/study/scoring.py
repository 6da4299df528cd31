"""How a trained estimator is judged: a metric by name or as a function, with its unit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from curvewise.errors import InputError
from curvewise.study.digest import describe
from curvewise.types import Unit

MetricLike: TypeAlias = "str | Callable[..., float]"


@dataclass(frozen=True)
class Metric:
    """A metric whose values are errors, losses or scores in one unit.

    Attributes
    ----------
    name : str
        What tells this metric from others in a run's coordinates.
    unit : Unit
        Unit of the values.
    function : callable, optional
        ``(y_true, y_pred) -> float``.
    scorer : callable, optional
        ``(estimator, X, y) -> float``, larger is better, as in scikit-learn.
    loss : bool
        Whether the scorer gives a negated loss.
    """

    name: str
    unit: Unit
    function: Callable[[Any, Any], float] | None = None
    scorer: Callable[[Any, Any, Any], float] | None = None
    loss: bool = False

    def __call__(self, model: Any, X: Any, y: Any, predictions: Any) -> float:
        """Judge a trained model by its predictions for X."""
        if self.function is not None:
            return float(self.function(y, predictions))
        assert self.scorer is not None
        score = float(self.scorer(model, X, y))
        if self.loss:
            return -score
        return self.unit.top * (1.0 - score) if self.unit.bounded else score


def resolve_metric(metric: MetricLike, unit: str) -> Metric:
    """Turn what the user calls a metric into a :class:`Metric`.

    Parameters
    ----------
    metric : str or callable
        ``"error"`` (the share of wrong classes), the name of a scikit-learn scorer, a scorer, or a
        function ``(y_true, y_pred) -> float`` whose values are in ``unit``.
    unit : {"fraction", "percent", "loss", "score"}
        Unit of the values. Scorers between 0 and 1 become errors, ``1 - score``, in a fraction or
        percent; negated losses become losses again.
    """
    meaning = Unit(unit, higher_is_better=unit == "score")
    if metric == "error":
        if not meaning.bounded:
            raise InputError(
                f"metric='error' is a share of wrong classes, which is no {unit}: use "
                "unit='fraction' or 'percent', or another metric."
            )
        wrong = _percent_wrong if unit == "percent" else _fraction_wrong
        return Metric("error", meaning, function=wrong)
    if isinstance(metric, str) or hasattr(metric, "_sign"):
        return _from_scorer(metric, meaning)
    if not callable(metric):
        raise InputError(
            f"metric={metric!r}: pass 'error', the name of a scikit-learn scorer, or a function "
            "(y_true, y_pred) -> float."
        )
    return Metric(describe(metric), meaning, function=metric)


def _from_scorer(metric: Any, unit: Unit) -> Metric:
    from sklearn.metrics import get_scorer

    try:
        scorer: Any = get_scorer(metric) if isinstance(metric, str) else metric
    except ValueError as error:
        raise InputError(
            f"metric={metric!r} is not known: pass 'error', a name out of "
            "sklearn.metrics.get_scorer_names(), or a function (y_true, y_pred) -> float."
        ) from error
    loss = getattr(scorer, "_sign", 1) < 0
    if loss != (unit.name == "loss"):
        right = "unit='loss'" if loss else "unit='fraction' or 'percent' (1 - score) or 'score'"
        raise InputError(f"metric={metric!r} with unit={unit.name!r}: pass {right}.")
    name = metric if isinstance(metric, str) else describe(metric)
    return Metric(name, unit, scorer=scorer, loss=loss)


def _fraction_wrong(y: Any, predictions: Any) -> float:
    truth, predicted = np.asarray(y), np.asarray(predictions)
    if truth.shape != predicted.shape:
        raise ValueError(f"predictions have shape {predicted.shape}, the labels {truth.shape}")
    return float(np.mean(truth != predicted))


def _percent_wrong(y: Any, predictions: Any) -> float:
    return 100.0 * _fraction_wrong(y, predictions)
