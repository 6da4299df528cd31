"""Pictures of results, and the only folder that imports matplotlib.

Every picture returns the Axes it was drawn on, and changes no global setting of matplotlib.
"""

from curvewise.plot.curves import plot_learning_curves
from curvewise.plot.dispatch import draw
from curvewise.plot.save import save_picture
from curvewise.plot.style import PALETTE

__all__ = ["PALETTE", "draw", "plot_learning_curves", "save_picture"]
