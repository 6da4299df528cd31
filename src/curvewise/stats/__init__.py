"""Intervals and tests that more than one lens needs."""

from curvewise.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
