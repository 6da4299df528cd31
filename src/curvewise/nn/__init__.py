"""Networks: architectures, optimisers, and an engine that trains many of them at once."""

from curvewise.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
