"""The figure kit: style, axes, marks, labels, saving, and the way from a result to its picture."""

from curvewise.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
