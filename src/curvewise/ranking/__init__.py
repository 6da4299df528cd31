"""Ranking of checkpoints for fine-tuning, from features alone."""

from curvewise.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
