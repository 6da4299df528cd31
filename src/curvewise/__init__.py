"""Judge learners by their curves, not by one number."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from curvewise.errors import CurvewiseError as CurvewiseError
    from curvewise.errors import CurvewiseWarning as CurvewiseWarning
    from curvewise.errors import InputError as InputError
    from curvewise.io import load_checkpoint_scores as load_checkpoint_scores
    from curvewise.io import load_corpus as load_corpus
    from curvewise.io import load_measurements as load_measurements
    from curvewise.io import load_predictions as load_predictions
    from curvewise.io import load_risks as load_risks
    from curvewise.io import load_scores as load_scores
    from curvewise.learning import Constants as Constants
    from curvewise.learning import check_variance_model as check_variance_model
    from curvewise.learning import compare_learning_curves as compare_learning_curves
    from curvewise.learning import fit_learning_curve as fit_learning_curve
    from curvewise.learning import fit_learning_curves as fit_learning_curves
    from curvewise.learning import geometric_sizes as geometric_sizes
    from curvewise.learning import leave_one_size_out as leave_one_size_out
    from curvewise.learning import measure_stability as measure_stability
    from curvewise.learning import partition_training_set as partition_training_set
    from curvewise.learning import plan_sizes as plan_sizes
    from curvewise.learning import rank_learners as rank_learners
    from curvewise.nn.checkpoints import Checkpoint as Checkpoint
    from curvewise.nn.checkpoints import Preprocessing as Preprocessing
    from curvewise.nn.features import extract_features as extract_features
    from curvewise.nn.features import extract_many as extract_many
    from curvewise.nn.finetuning import finetuning_score as finetuning_score
    from curvewise.nn.information import information_score as information_score
    from curvewise.nn.invariance import perturbed_accuracy as perturbed_accuracy
    from curvewise.nn.measures import list_measures as list_measures
    from curvewise.nn.measures import measure_model as measure_model
    from curvewise.nn.perturbations import perturb as perturb
    from curvewise.nn.probes import linear_score as linear_score
    from curvewise.nn.ranking import list_ranking_measures as list_ranking_measures
    from curvewise.nn.ranking import rank_checkpoints as rank_checkpoints
    from curvewise.nn.response import measure_response as measure_response
    from curvewise.nn.response import measure_responses as measure_responses
    from curvewise.nn.response import measure_sensitivity as measure_sensitivity
    from curvewise.plot import plot_checkpoint_ranking as plot_checkpoint_ranking
    from curvewise.plot import plot_checkpoint_scores as plot_checkpoint_scores
    from curvewise.plot import plot_fine_tuning as plot_fine_tuning
    from curvewise.plot import plot_learning_curves as plot_learning_curves
    from curvewise.plot import plot_measures as plot_measures
    from curvewise.plot import plot_perturbed as plot_perturbed
    from curvewise.plot import plot_ranking_judgement as plot_ranking_judgement
    from curvewise.plot import plot_responses as plot_responses
    from curvewise.plot import plot_spread as plot_spread
    from curvewise.plot import plot_tasks as plot_tasks
    from curvewise.plot import plot_transfer as plot_transfer
    from curvewise.plot import plot_win_rates as plot_win_rates
    from curvewise.ranking import add_rankings as add_rankings
    from curvewise.ranking import gbc as gbc
    from curvewise.ranking import h_score as h_score
    from curvewise.ranking import judge_rankings as judge_rankings
    from curvewise.ranking import knn as knn
    from curvewise.ranking import leep as leep
    from curvewise.ranking import logme as logme
    from curvewise.ranking import measure_nleep_grid as measure_nleep_grid
    from curvewise.ranking import nce as nce
    from curvewise.ranking import nleep as nleep
    from curvewise.ranking import parc as parc
    from curvewise.ranking import rank_features as rank_features
    from curvewise.ranking import ranking_agreement as ranking_agreement
    from curvewise.ranking import transrate as transrate
    from curvewise.report import export_report as export_report
    from curvewise.report import write_report as write_report
    from curvewise.response import ResponseCurve as ResponseCurve
    from curvewise.response import accuracy_at as accuracy_at
    from curvewise.response import cmi_score as cmi_score
    from curvewise.response import combine_measures as combine_measures
    from curvewise.response import compare_responses as compare_responses
    from curvewise.response import cumulative_accuracy as cumulative_accuracy
    from curvewise.response import gi_score as gi_score
    from curvewise.response import granulated_kendall as granulated_kendall
    from curvewise.response import judge_measures as judge_measures
    from curvewise.response import mean_accuracy as mean_accuracy
    from curvewise.response import measure_cmi as measure_cmi
    from curvewise.response import pal_score as pal_score
    from curvewise.study import Dataset as Dataset
    from curvewise.study import Design as Design
    from curvewise.study import Evaluation as Evaluation
    from curvewise.study import Keep as Keep
    from curvewise.study import Learner as Learner
    from curvewise.study import Study as Study
    from curvewise.study import Training as Training
    from curvewise.study import checkpoint_files as checkpoint_files
    from curvewise.study import export_store as export_store
    from curvewise.study import judge_invariance as judge_invariance
    from curvewise.study import list_runs as list_runs
    from curvewise.study import load_dataset as load_dataset
    from curvewise.study import load_study as load_study
    from curvewise.study import measure_corpus as measure_corpus
    from curvewise.study import measure_invariance as measure_invariance
    from curvewise.study import measure_learning_curve as measure_learning_curve
    from curvewise.study import ranking_table as ranking_table
    from curvewise.study import read_run as read_run
    from curvewise.study import study_recipe as study_recipe
    from curvewise.study import study_win_rates as study_win_rates
    from curvewise.study import transfer_risks as transfer_risks
    from curvewise.study import verify_store as verify_store
    from curvewise.study import write_run as write_run
    from curvewise.transfer import blind_guess as blind_guess
    from curvewise.transfer import calibrated_risk as calibrated_risk
    from curvewise.transfer import cci as cci
    from curvewise.transfer import data_equivalence as data_equivalence
    from curvewise.transfer import gain_end as gain_end
    from curvewise.transfer import measure_spread as measure_spread
    from curvewise.transfer import measure_transfer as measure_transfer
    from curvewise.transfer import rank_tasks as rank_tasks
    from curvewise.transfer import win_rate as win_rate
    from curvewise.transfer import win_rates as win_rates
    from curvewise.types import CheckpointFeatures as CheckpointFeatures
    from curvewise.types import CheckpointScores as CheckpointScores
    from curvewise.types import Control as Control
    from curvewise.types import Interval as Interval
    from curvewise.types import Measurements as Measurements
    from curvewise.types import ModelCorpus as ModelCorpus
    from curvewise.types import Predictions as Predictions
    from curvewise.types import TransferRisks as TransferRisks
    from curvewise.types import Unit as Unit
    from curvewise.variance import check_stopping as check_stopping
    from curvewise.variance import compare_runs as compare_runs
    from curvewise.variance import compare_test_sets as compare_test_sets
    from curvewise.variance import compare_trainings as compare_trainings
    from curvewise.variance import compare_variances as compare_variances
    from curvewise.variance import decompose_totals as decompose_totals
    from curvewise.variance import decompose_variance as decompose_variance
    from curvewise.variance import measure_accuracy_distribution as measure_accuracy_distribution
    from curvewise.variance import measure_bipartitions as measure_bipartitions
    from curvewise.variance import measure_calibration as measure_calibration
    from curvewise.variance import measure_dependent_pairs as measure_dependent_pairs
    from curvewise.variance import measure_disagreement as measure_disagreement
    from curvewise.variance import measure_ensemble as measure_ensemble
    from curvewise.variance import measure_seed_luck as measure_seed_luck
    from curvewise.variance import measure_sources as measure_sources
    from curvewise.variance import measure_sweep as measure_sweep
    from curvewise.variance import measure_twins as measure_twins
    from curvewise.variance import plan_runs as plan_runs
    from curvewise.variance import plan_stopping as plan_stopping

__version__ = "0.1.0"

# Public name → where it lives. Nothing is imported before it is used, so that
# `import curvewise` stays quick.
_HOMES = {
    "errors": ("CurvewiseError", "CurvewiseWarning", "InputError"),
    "types": (
        "CheckpointFeatures",
        "CheckpointScores",
        "Control",
        "Interval",
        "Measurements",
        "ModelCorpus",
        "Predictions",
        "TransferRisks",
        "Unit",
    ),
    "io": (
        "load_checkpoint_scores",
        "load_corpus",
        "load_measurements",
        "load_predictions",
        "load_risks",
        "load_scores",
    ),
    "learning": (
        "Constants",
        "check_variance_model",
        "compare_learning_curves",
        "fit_learning_curve",
        "fit_learning_curves",
        "geometric_sizes",
        "leave_one_size_out",
        "measure_stability",
        "partition_training_set",
        "plan_sizes",
        "rank_learners",
    ),
    "nn.checkpoints": ("Checkpoint", "Preprocessing"),
    "nn.features": ("extract_features", "extract_many"),
    "nn.finetuning": ("finetuning_score",),
    "nn.information": ("information_score",),
    "nn.invariance": ("perturbed_accuracy",),
    "nn.measures": ("list_measures", "measure_model"),
    "nn.perturbations": ("perturb",),
    "nn.probes": ("linear_score",),
    "nn.ranking": ("list_ranking_measures", "rank_checkpoints"),
    "nn.response": ("measure_response", "measure_responses", "measure_sensitivity"),
    "plot": (
        "plot_checkpoint_ranking",
        "plot_checkpoint_scores",
        "plot_fine_tuning",
        "plot_learning_curves",
        "plot_measures",
        "plot_perturbed",
        "plot_ranking_judgement",
        "plot_responses",
        "plot_spread",
        "plot_tasks",
        "plot_transfer",
        "plot_win_rates",
    ),
    "ranking": (
        "add_rankings",
        "gbc",
        "h_score",
        "judge_rankings",
        "knn",
        "leep",
        "logme",
        "measure_nleep_grid",
        "nce",
        "nleep",
        "parc",
        "rank_features",
        "ranking_agreement",
        "transrate",
    ),
    "report": ("export_report", "write_report"),
    "response": (
        "ResponseCurve",
        "accuracy_at",
        "cmi_score",
        "combine_measures",
        "compare_responses",
        "cumulative_accuracy",
        "gi_score",
        "granulated_kendall",
        "judge_measures",
        "mean_accuracy",
        "measure_cmi",
        "pal_score",
    ),
    "study": (
        "Dataset",
        "Design",
        "Evaluation",
        "Keep",
        "Learner",
        "Study",
        "Training",
        "checkpoint_files",
        "export_store",
        "judge_invariance",
        "list_runs",
        "load_dataset",
        "load_study",
        "measure_corpus",
        "measure_invariance",
        "measure_learning_curve",
        "ranking_table",
        "read_run",
        "study_recipe",
        "study_win_rates",
        "transfer_risks",
        "verify_store",
        "write_run",
    ),
    "transfer": (
        "blind_guess",
        "calibrated_risk",
        "cci",
        "data_equivalence",
        "gain_end",
        "measure_spread",
        "measure_transfer",
        "rank_tasks",
        "win_rate",
        "win_rates",
    ),
    "variance": (
        "check_stopping",
        "compare_runs",
        "compare_test_sets",
        "compare_trainings",
        "compare_variances",
        "decompose_totals",
        "decompose_variance",
        "measure_accuracy_distribution",
        "measure_bipartitions",
        "measure_calibration",
        "measure_dependent_pairs",
        "measure_disagreement",
        "measure_ensemble",
        "measure_seed_luck",
        "measure_sources",
        "measure_sweep",
        "measure_twins",
        "plan_runs",
        "plan_stopping",
    ),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = ["__version__", *sorted(_HOME)]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'curvewise' has no attribute {name!r}")
    try:
        home = import_module(f"curvewise.{_HOME[name]}")
    except ModuleNotFoundError as error:
        if error.name not in ("torch", "safetensors"):
            raise
        from curvewise.errors import MissingDependencyError

        raise MissingDependencyError(
            f"curvewise.{name} needs {error.name}, which is not installed: pip install "
            '"curvewise[torch]".'
        ) from error
    value = getattr(home, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
