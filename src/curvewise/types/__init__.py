"""Types that more than one lens takes or gives: units, measurements, predictions, intervals, results."""

from curvewise.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
