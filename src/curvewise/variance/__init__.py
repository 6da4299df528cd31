"""How much of a difference between runs is real, and how much is the finite test set."""

from curvewise.variance.accuracy import AccuracyDistribution, measure_accuracy_distribution
from curvewise.variance.bipartitions import Bipartitions, measure_bipartitions
from curvewise.variance.calibration import Calibration, measure_calibration
from curvewise.variance.compare import compare_runs
from curvewise.variance.comparison import RunComparison
from curvewise.variance.decompose import decompose_totals, decompose_variance
from curvewise.variance.decomposition import VarianceDecomposition
from curvewise.variance.disagreement import Disagreement, measure_disagreement
from curvewise.variance.ensemble import Ensemble, measure_ensemble
from curvewise.variance.luck import SeedLuck, measure_seed_luck
from curvewise.variance.many import TrainingComparison, compare_trainings
from curvewise.variance.pairs import DependentPairs, measure_dependent_pairs
from curvewise.variance.plan import plan_runs
from curvewise.variance.run_plan import RunPlan
from curvewise.variance.sources import SourceShares, measure_sources
from curvewise.variance.stopped import StoppingCheck, StoppingPlan
from curvewise.variance.stopping import check_stopping, plan_stopping
from curvewise.variance.sweep import VarianceSweep, measure_sweep
from curvewise.variance.test_sets import TestSetComparison, compare_test_sets
from curvewise.variance.twins import TwinDisagreement, measure_twins
from curvewise.variance.variances import VarianceComparison, compare_variances

__all__ = [
    "AccuracyDistribution",
    "Bipartitions",
    "Calibration",
    "DependentPairs",
    "Disagreement",
    "Ensemble",
    "RunComparison",
    "RunPlan",
    "SeedLuck",
    "SourceShares",
    "StoppingCheck",
    "StoppingPlan",
    "TestSetComparison",
    "TrainingComparison",
    "TwinDisagreement",
    "VarianceComparison",
    "VarianceDecomposition",
    "VarianceSweep",
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
]
