"""One entrance to all pictures: the class of a result says how it is drawn.

A table of names, so that drawing a picture imports only the lens that it is of.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from curvewise.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PICTURES = {
    "Curve": "curvewise.plot.curves:plot_learning_curves",
    "LearningCurves": "curvewise.plot.curves:plot_learning_curves",
    "CurveComparison": "curvewise.plot.compare:plot_comparison",
    "LearnerRanking": "curvewise.plot.ranking:plot_ranking",
    "SamplesToReach": "curvewise.plot.ranking:plot_reach",
    "SizePlan": "curvewise.plot.checks:plot_plan",
    "LeaveOneSizeOut": "curvewise.plot.checks:plot_left_out",
    "Stability": "curvewise.plot.checks:plot_stability",
    "VarianceCheck": "curvewise.plot.checks:plot_variance_check",
    "VarianceDecomposition": "curvewise.plot.variance_spread:plot_decomposition",
    "AccuracyDistribution": "curvewise.plot.variance_accuracy:plot_accuracy_distribution",
    "SeedLuck": "curvewise.plot.variance_luck:plot_seed_luck",
    "TestSetComparison": "curvewise.plot.variance_luck:plot_test_sets",
    "VarianceSweep": "curvewise.plot.variance_sweep:plot_sweep",
    "SourceShares": "curvewise.plot.variance_sources:plot_sources",
    "TwinDisagreement": "curvewise.plot.variance_sources:plot_twins",
    "Calibration": "curvewise.plot.variance_calibration:plot_calibration",
    "Bipartitions": "curvewise.plot.variance_calibration:plot_bipartitions",
    "Disagreement": "curvewise.plot.variance_agreement:plot_disagreement",
    "Ensemble": "curvewise.plot.variance_agreement:plot_ensemble",
    "DependentPairs": "curvewise.plot.variance_agreement:plot_dependent_pairs",
    "RunComparison": "curvewise.plot.variance_compare:plot_run_comparison",
    "TrainingComparison": "curvewise.plot.variance_forest:plot_trainings",
    "VarianceComparison": "curvewise.plot.variance_forest:plot_variance_comparison",
    "RunPlan": "curvewise.plot.variance_plan:plot_run_plan",
    "StoppingPlan": "curvewise.plot.variance_plan:plot_stopping_plan",
    "StoppingCheck": "curvewise.plot.variance_plan:plot_stopping_check",
    "ResponseCurve": "curvewise.plot.response_curves:plot_response",
    "ResponseComparison": "curvewise.plot.response_difference:plot_response_comparison",
    "ResponseSensitivity": "curvewise.plot.response_sensitivity:plot_sensitivity",
    "ConditionalInformation": "curvewise.plot.response_information:plot_information",
    "MeasureJudgement": "curvewise.plot.response_judge:plot_judgement",
    "MeasureComparison": "curvewise.plot.response_information:plot_measure_comparison",
    "CheckpointRanking": "curvewise.plot.checkpoint_ranks:plot_checkpoint_ranking",
    "RankingJudgement": "curvewise.plot.checkpoint_judge:plot_ranking_judgement",
    "RankingComparisons": "curvewise.plot.checkpoint_compare:plot_ranking_comparisons",
    "RankingAgreement": "curvewise.plot.checkpoint_compare:plot_ranking_agreement",
    "NleepGrid": "curvewise.plot.checkpoint_grid:plot_nleep_grid",
    "TransferResult": "curvewise.plot.transfer_result:plot_transfer",
    "TransferRanks": "curvewise.plot.transfer_ranks:plot_transfer_ranks",
    "TransferComparison": "curvewise.plot.transfer_compare:plot_transfer_comparison",
    "BlindGuess": "curvewise.plot.transfer_blind:plot_blind_guess",
    "TaskRanking": "curvewise.plot.transfer_tasks:plot_tasks",
    "RunSpread": "curvewise.plot.transfer_spread:plot_spread",
    "WinRate": "curvewise.plot.transfer_wins:plot_win_rate",
    "WinRates": "curvewise.plot.transfer_wins:plot_win_rates",
}
"""The function that draws a result of each class, or of a class derived from it."""


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
    picture = picture_of(type(result))
    if picture is None:
        raise InputError(
            f"result is a {type(result).__name__}, which has no picture; there are pictures of "
            f"{', '.join(PICTURES)}."
        )
    return picture(result, ax, **options)


def picture_of(kind: type) -> Callable[..., Axes] | None:
    """Find the function that draws results of a class; None where there is no picture."""
    # A class of the same name from elsewhere is not meant, hence the look at its module.
    own = (k.__name__ for k in kind.__mro__ if k.__module__.startswith("curvewise."))
    for name in own:
        if name in PICTURES:
            module, function = PICTURES[name].split(":")
            return getattr(import_module(module), function)  # type: ignore[no-any-return]
    return None
