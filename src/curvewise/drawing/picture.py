"""One entrance to all pictures: the class of a result says how it is drawn.

A table of names, so that drawing a picture imports only the lens that it is of.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from importlib import import_module
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curvewise.errors import InputError, list_names, suggest

if TYPE_CHECKING:
    from matplotlib.axes import Axes


PICTURES = {
    "Curve": "curvewise.learning.plot:plot_learning_curves",
    "LearningCurves": "curvewise.learning.plot:plot_learning_curves",
    "CurveComparison": "curvewise.learning.plot:plot_comparison",
    "LearnerComparison": "curvewise.learning.plot:plot_learning_curves",
    "Measurements": "curvewise.learning.plot:plot_measurements",
    "LearnerRanking": "curvewise.learning.plot:plot_ranking",
    "SamplesToReach": "curvewise.learning.plot:plot_reach",
    "SizePlan": "curvewise.learning.plot:plot_plan",
    "LeaveOneSizeOut": "curvewise.learning.plot:plot_left_out",
    "Stability": "curvewise.learning.plot:plot_stability",
    "VarianceCheck": "curvewise.learning.plot:plot_variance_check",
    "VarianceDecomposition": "curvewise.variance.plot.runs:plot_decomposition",
    "AccuracyDistribution": "curvewise.variance.plot.runs:plot_accuracy_distribution",
    "SeedLuck": "curvewise.variance.plot.runs:plot_seed_luck",
    "TestSetComparison": "curvewise.variance.plot.runs:plot_test_sets",
    "VarianceSweep": "curvewise.variance.plot.sources:plot_sweep",
    "SourceShares": "curvewise.variance.plot.sources:plot_sources",
    "TwinDisagreement": "curvewise.variance.plot.sources:plot_twins",
    "Calibration": "curvewise.variance.plot.votes:plot_calibration",
    "Bipartitions": "curvewise.variance.plot.votes:plot_bipartitions",
    "Disagreement": "curvewise.variance.plot.votes:plot_disagreement",
    "Ensemble": "curvewise.variance.plot.votes:plot_ensemble",
    "DependentPairs": "curvewise.variance.plot.votes:plot_dependent_pairs",
    "RunComparison": "curvewise.variance.plot.compare:plot_run_comparison",
    "TrainingComparison": "curvewise.variance.plot.compare:plot_trainings",
    "VarianceComparison": "curvewise.variance.plot.compare:plot_variance_comparison",
    "RunPlan": "curvewise.variance.plot.plan:plot_run_plan",
    "StoppingPlan": "curvewise.variance.plot.plan:plot_stopping_plan",
    "StoppingCheck": "curvewise.variance.plot.plan:plot_stopping_check",
    "ResponseCurve": "curvewise.response.plot.curves:plot_response",
    "ResponseComparison": "curvewise.response.plot.comparison:plot_response_comparison",
    "ContrastingPairs": "curvewise.response.plot.comparison:plot_contrasting_pairs",
    "CorpusSensitivity": "curvewise.response.plot.curves:plot_corpus_sensitivity",
    "ResponseSensitivity": "curvewise.response.plot.curves:plot_sensitivity",
    "ConditionalInformation": "curvewise.response.plot.measures:plot_information",
    "MeasureJudgement": "curvewise.response.plot.measures:plot_judgement",
    "MeasureComparison": "curvewise.response.plot.measures:plot_measure_comparison",
    "CheckpointRanking": "curvewise.ranking.plot.rank:plot_checkpoint_ranking",
    "RankingJudgement": "curvewise.ranking.plot.judgement:plot_ranking_judgement",
    "RankingComparisons": "curvewise.ranking.plot.judgement:plot_ranking_comparisons",
    "RankingAgreement": "curvewise.ranking.plot.judgement:plot_ranking_agreement",
    "NleepGrid": "curvewise.ranking.plot.judgement:plot_nleep_grid",
    "ModelScores": "curvewise.evals.plot:plot_model_scores",
    "ModelRanking": "curvewise.evals.plot:plot_leaderboard",
    "PassCurve": "curvewise.evals.plot:plot_pass_curve",
    "JudgeCorrection": "curvewise.evals.plot:plot_judge_correction",
    "EvalComparison": "curvewise.evals.plot:plot_eval_comparison",
    "EvalPlan": "curvewise.evals.plot:plot_eval_plan",
    "LookPlan": "curvewise.evals.plot:plot_look_plan",
    "LookCheck": "curvewise.evals.plot:plot_look_check",
    "ScalingLaw": "curvewise.scaling.plot:plot_scaling_law",
    "ComputeOptimal": "curvewise.scaling.plot:plot_optimum",
    "IsoflopFit": "curvewise.scaling.plot:plot_isoflops",
    "Backtest": "curvewise.scaling.plot:plot_backtest",
    "Sensitivity": "curvewise.scaling.plot:plot_scaling_sensitivity",
    "ScalingPlan": "curvewise.scaling.plot:plot_scaling_plan",
    "ScalingComparison": "curvewise.scaling.plot:plot_scaling_comparison",
    "DownstreamPrediction": "curvewise.scaling.plot:plot_downstream",
    "ExpectedBest": "curvewise.scaling.plot:plot_expected_best",
    "TunedComparison": "curvewise.scaling.plot:plot_tuned",
    "TransferResult": "curvewise.transfer.plot.result:plot_transfer",
    "TransferRanks": "curvewise.transfer.plot.result:plot_transfer_ranks",
    "TransferComparison": "curvewise.transfer.plot.result:plot_transfer_comparison",
    "PredictedImages": "curvewise.transfer.plot.tasks:plot_predictions",
    "BlindGuess": "curvewise.transfer.plot.tasks:plot_blind_guess",
    "TaskRanking": "curvewise.transfer.plot.tasks:plot_tasks",
    "RunSpread": "curvewise.transfer.plot.tasks:plot_spread",
    "WinRate": "curvewise.transfer.plot.tasks:plot_win_rate",
    "WinRates": "curvewise.transfer.plot.tasks:plot_win_rates",
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
            f"result is a {type(result).__name__}, which has no picture; there are pictures of {', '.join(PICTURES)}."
        )
    known = list(signature(picture).parameters.values())[2:]
    if not any(p.kind is Parameter.VAR_KEYWORD for p in known):
        names = [p.name for p in known]
        for name in options:
            if name not in names:
                there = f"It takes {list_names(names)}." if names else "It takes none."
                problem = f"is no option of {picture.__name__}.{suggest(name, names)}"
                raise InputError(problem, argument=name, value=options[name], remedy=there)
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


def save_picture(draw: Callable[[], Axes], path: Path) -> None:
    """Call ``draw`` to make Axes, save their figure and close it.

    Switches matplotlib to a backend that needs no display, so it is for commands, not notebooks.
    """
    use_no_display()
    save_figure(draw, path)


def use_no_display() -> None:
    """Switch matplotlib to a backend that needs no display: for commands, not notebooks.

    A ``matplotlibrc`` in the current folder is not followed: it may have come with a study of
    someone else's, and can have LaTeX run on text of its own.
    """
    import matplotlib

    if Path(matplotlib.matplotlib_fname()).resolve() == Path("matplotlibrc").resolve():
        matplotlib.rcdefaults()
    matplotlib.use("Agg")


def save_figure(draw: Callable[[], Axes], path: Path) -> None:
    """Call ``draw`` to make Axes, save their figure and close it.

    Texts stay texts, so that they can be found and changed in SVG and PDF.
    """
    _save(draw, path, dpi=200)


LONGEST_LINE = 240
"""Letters of a line of a caption that is text beside a picture."""


def svg_text(draw: Callable[[], Axes], note: list[str] | None = None) -> str:
    """Call ``draw`` to make Axes, and return their figure as the text of an SVG file.

    The lines of the caption are moved from the picture into ``note`` if that is given.
    """
    stream = io.StringIO()
    _save(draw, stream, note, format="svg", metadata={"Date": None, "Creator": None})
    return stream.getvalue()


def _save(draw: Callable[[], Axes], place: Any, note: list[str] | None = None, **options: Any) -> None:
    from matplotlib import pyplot

    from curvewise.drawing.labels import shorten
    from curvewise.drawing.style import CAPTION, style

    with style({"svg.fonttype": "none", "svg.hashsalt": "curvewise", "pdf.fonttype": 42}):
        ax = draw()
        figure = ax.get_figure(root=True)
        if figure is not None:
            if note is not None:
                for caption in figure.findobj(lambda artist: artist.get_gid() == CAPTION):
                    note += [shorten(line, LONGEST_LINE) for line in str(caption.get_label()).split("\n")]
                    caption.remove()
            figure.savefig(place, bbox_inches="tight", **options)
            pyplot.close(figure)
