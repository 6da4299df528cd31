"""Variance between runs: the part that is real, and the part that is due to the finite test set."""

from curvewise.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
