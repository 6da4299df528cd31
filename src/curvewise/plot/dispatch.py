"""One entrance to all pictures: the class of a result says how it is drawn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from matplotlib.axes import Axes

from curvewise.errors import InputError
from curvewise.learning import (
    CurveComparison,
    LearnerRanking,
    LearningCurves,
    LeaveOneSizeOut,
    SamplesToReach,
    SizePlan,
    Stability,
    VarianceCheck,
)
from curvewise.learning.base import Curve
from curvewise.plot.checkpoint_compare import plot_ranking_agreement, plot_ranking_comparisons
from curvewise.plot.checkpoint_grid import plot_nleep_grid
from curvewise.plot.checkpoint_judge import plot_ranking_judgement
from curvewise.plot.checkpoint_ranks import plot_checkpoint_ranking
from curvewise.plot.checks import plot_left_out, plot_plan, plot_stability, plot_variance_check
from curvewise.plot.compare import plot_comparison
from curvewise.plot.curves import plot_learning_curves
from curvewise.plot.ranking import plot_ranking, plot_reach
from curvewise.plot.response_curves import plot_response
from curvewise.plot.response_difference import plot_response_comparison
from curvewise.plot.response_information import plot_information, plot_measure_comparison
from curvewise.plot.response_judge import plot_judgement
from curvewise.plot.response_sensitivity import plot_sensitivity
from curvewise.plot.transfer_blind import plot_blind_guess
from curvewise.plot.transfer_compare import plot_transfer_comparison
from curvewise.plot.transfer_ranks import plot_transfer_ranks
from curvewise.plot.transfer_result import plot_transfer
from curvewise.plot.transfer_spread import plot_spread
from curvewise.plot.transfer_tasks import plot_tasks
from curvewise.plot.transfer_wins import plot_win_rate, plot_win_rates
from curvewise.plot.variance_accuracy import plot_accuracy_distribution
from curvewise.plot.variance_agreement import (
    plot_dependent_pairs,
    plot_disagreement,
    plot_ensemble,
)
from curvewise.plot.variance_calibration import plot_bipartitions, plot_calibration
from curvewise.plot.variance_compare import plot_run_comparison
from curvewise.plot.variance_forest import plot_trainings, plot_variance_comparison
from curvewise.plot.variance_luck import plot_seed_luck, plot_test_sets
from curvewise.plot.variance_plan import plot_run_plan, plot_stopping_check, plot_stopping_plan
from curvewise.plot.variance_sources import plot_sources, plot_twins
from curvewise.plot.variance_spread import plot_decomposition
from curvewise.plot.variance_sweep import plot_sweep
from curvewise.ranking.agreement import RankingAgreement
from curvewise.ranking.comparing import RankingComparisons
from curvewise.ranking.grid import NleepGrid
from curvewise.ranking.judgement import RankingJudgement
from curvewise.ranking.ranking_result import CheckpointRanking
from curvewise.response.cmi import ConditionalInformation
from curvewise.response.compare import ResponseComparison
from curvewise.response.curve import ResponseCurve
from curvewise.response.judgement import MeasureComparison, MeasureJudgement
from curvewise.response.sensitivity import ResponseSensitivity
from curvewise.transfer.blind import BlindGuess
from curvewise.transfer.comparison import TransferComparison
from curvewise.transfer.ranks import TransferRanks
from curvewise.transfer.spread import RunSpread
from curvewise.transfer.tasks import TaskRanking
from curvewise.transfer.transfer_result import TransferResult
from curvewise.transfer.wins import WinRate, WinRates
from curvewise.variance.accuracy import AccuracyDistribution
from curvewise.variance.bipartitions import Bipartitions
from curvewise.variance.calibration import Calibration
from curvewise.variance.comparison import RunComparison
from curvewise.variance.decomposition import VarianceDecomposition
from curvewise.variance.disagreement import Disagreement
from curvewise.variance.ensemble import Ensemble
from curvewise.variance.luck import SeedLuck
from curvewise.variance.many import TrainingComparison
from curvewise.variance.pairs import DependentPairs
from curvewise.variance.run_plan import RunPlan
from curvewise.variance.sources import SourceShares
from curvewise.variance.stopped import StoppingCheck, StoppingPlan
from curvewise.variance.sweep import VarianceSweep
from curvewise.variance.test_sets import TestSetComparison
from curvewise.variance.twins import TwinDisagreement
from curvewise.variance.variances import VarianceComparison

PICTURES: dict[type, Callable[..., Axes]] = {
    Curve: plot_learning_curves,
    LearningCurves: plot_learning_curves,
    CurveComparison: plot_comparison,
    LearnerRanking: plot_ranking,
    SamplesToReach: plot_reach,
    SizePlan: plot_plan,
    LeaveOneSizeOut: plot_left_out,
    Stability: plot_stability,
    VarianceCheck: plot_variance_check,
    VarianceDecomposition: plot_decomposition,
    AccuracyDistribution: plot_accuracy_distribution,
    SeedLuck: plot_seed_luck,
    TestSetComparison: plot_test_sets,
    VarianceSweep: plot_sweep,
    SourceShares: plot_sources,
    TwinDisagreement: plot_twins,
    Calibration: plot_calibration,
    Bipartitions: plot_bipartitions,
    Disagreement: plot_disagreement,
    Ensemble: plot_ensemble,
    DependentPairs: plot_dependent_pairs,
    RunComparison: plot_run_comparison,
    TrainingComparison: plot_trainings,
    VarianceComparison: plot_variance_comparison,
    RunPlan: plot_run_plan,
    StoppingPlan: plot_stopping_plan,
    StoppingCheck: plot_stopping_check,
    ResponseCurve: plot_response,
    ResponseComparison: plot_response_comparison,
    ResponseSensitivity: plot_sensitivity,
    ConditionalInformation: plot_information,
    MeasureJudgement: plot_judgement,
    MeasureComparison: plot_measure_comparison,
    CheckpointRanking: plot_checkpoint_ranking,
    RankingJudgement: plot_ranking_judgement,
    RankingComparisons: plot_ranking_comparisons,
    RankingAgreement: plot_ranking_agreement,
    NleepGrid: plot_nleep_grid,
    TransferResult: plot_transfer,
    TransferRanks: plot_transfer_ranks,
    TransferComparison: plot_transfer_comparison,
    BlindGuess: plot_blind_guess,
    TaskRanking: plot_tasks,
    RunSpread: plot_spread,
    WinRate: plot_win_rate,
    WinRates: plot_win_rates,
}
"""How a result of each class, or of a class derived from it, is drawn."""


def draw(result: Any, ax: Axes | None = None, **options: Any) -> Axes:
    """Draw a result; what ``result.plot()`` calls.

    Parameters
    ----------
    result : Result
        Any result that has a picture.
    ax : Axes, optional
        Where; a new pyplot figure by default.
    **options
        Passed to the function that draws this class of result, such as
        :func:`plot_learning_curves`.

    Returns
    -------
    Axes
        The Axes given, or the new ones.
    """
    for kind in type(result).__mro__:
        if kind in PICTURES:
            return PICTURES[kind](result, ax, **options)
    raise InputError(
        f"result is a {type(result).__name__}, which has no picture; there are pictures of "
        f"{', '.join(k.__name__ for k in PICTURES)}."
    )
