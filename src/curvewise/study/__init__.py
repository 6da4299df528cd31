"""Studies: a plan of runs, its execution, and results for the lenses."""

from curvewise.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
