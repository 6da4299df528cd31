"""Reports: one page that holds everything, and its tables and figures for papers."""

from curvewise.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
