"""Files and frames into columns and arrays."""

from curvewise.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
