"""How a network's accuracy responds to perturbations, and what that says of generalization."""

from curvewise.response.curve import ResponseCurve
from curvewise.response.scores import (
    accuracy_at,
    cumulative_accuracy,
    gi_score,
    mean_accuracy,
    pal_score,
)

__all__ = [
    "ResponseCurve",
    "accuracy_at",
    "cumulative_accuracy",
    "gi_score",
    "mean_accuracy",
    "pal_score",
]
