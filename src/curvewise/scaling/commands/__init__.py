"""``curvewise scaling``: fit, optimal, isoflops, backtest, plan, compare, downstream, tuned."""

from curvewise.scaling.commands import compare, law
from curvewise.scaling.commands.options import OPTIONS, scaling

__all__ = ["OPTIONS", "compare", "law", "scaling"]
