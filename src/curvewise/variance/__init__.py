"""How much of a difference between runs is real, and how much is the finite test set."""

from curvewise.variance.compare import compare_runs
from curvewise.variance.comparison import RunComparison
from curvewise.variance.decompose import (
    VarianceDecomposition,
    decompose_totals,
    decompose_variance,
)
from curvewise.variance.many import TrainingComparison, compare_trainings

__all__ = [
    "RunComparison",
    "TrainingComparison",
    "VarianceDecomposition",
    "compare_runs",
    "compare_trainings",
    "decompose_totals",
    "decompose_variance",
]
