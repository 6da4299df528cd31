"""Pictures of results, and the only folder that imports matplotlib.

Every picture returns the Axes it was drawn on, and changes no global setting of matplotlib.
"""

from curvewise.plot.checkpoint_bars import plot_fine_tuning
from curvewise.plot.checkpoint_judge import plot_ranking_judgement
from curvewise.plot.checkpoint_ranks import plot_checkpoint_ranking
from curvewise.plot.checkpoint_scores import plot_checkpoint_scores
from curvewise.plot.curves import plot_learning_curves
from curvewise.plot.dispatch import draw
from curvewise.plot.response_curves import plot_response, plot_responses
from curvewise.plot.response_difference import plot_response_comparison, plot_response_difference
from curvewise.plot.response_judge import plot_judgement
from curvewise.plot.response_pairs import plot_response_pairs
from curvewise.plot.response_scatter import plot_measures
from curvewise.plot.response_sensitivity import plot_sensitivity
from curvewise.plot.response_sheet import plot_perturbed
from curvewise.plot.save import save_picture
from curvewise.plot.style import PALETTE
from curvewise.plot.transfer_blind import plot_blind_guess
from curvewise.plot.transfer_compare import plot_transfer_comparison
from curvewise.plot.transfer_ranks import plot_transfer_ranks
from curvewise.plot.transfer_result import plot_transfer
from curvewise.plot.transfer_spread import plot_spread
from curvewise.plot.transfer_tasks import plot_tasks
from curvewise.plot.transfer_wins import plot_win_rate, plot_win_rates

__all__ = [
    "PALETTE",
    "draw",
    "plot_blind_guess",
    "plot_checkpoint_ranking",
    "plot_checkpoint_scores",
    "plot_fine_tuning",
    "plot_judgement",
    "plot_learning_curves",
    "plot_measures",
    "plot_perturbed",
    "plot_ranking_judgement",
    "plot_response",
    "plot_response_comparison",
    "plot_response_difference",
    "plot_response_pairs",
    "plot_responses",
    "plot_sensitivity",
    "plot_spread",
    "plot_tasks",
    "plot_transfer",
    "plot_transfer_comparison",
    "plot_transfer_ranks",
    "plot_win_rate",
    "plot_win_rates",
    "save_picture",
]
