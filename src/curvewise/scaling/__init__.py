"""Scaling laws of loss in parameters and tokens: fits with intervals, compute-optimal sizes, extrapolation, tuning."""

from curvewise.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
