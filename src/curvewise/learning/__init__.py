"""Learning curves: fits, intervals that cover, extrapolation, comparison.

The method is that of Hoiem, Gupta, Li and Shlapentokh-Rothman, Learning Curves for Analysis of Deep Networks.
"""

from curvewise.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
