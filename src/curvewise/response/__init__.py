"""Accuracy under perturbations of growing magnitude, and measures that predict generalization."""

from curvewise.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
