"""Pretraining against simple controls: calibrated risk and cumulative improvement."""

from curvewise.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
