"""How much of a difference between runs is real, and how much is the finite test set."""

from curvewise.variance.decompose import (
    VarianceDecomposition,
    decompose_totals,
    decompose_variance,
)

__all__ = ["VarianceDecomposition", "decompose_totals", "decompose_variance"]
