"""Runs on disk: record, write, read, verify, export."""

from curvewise.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
