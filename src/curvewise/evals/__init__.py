"""Evaluations of language models and agents on questions: scores, comparisons, rankings and plans with intervals."""

from curvewise.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
