"""How error falls with training size: fits, intervals that cover, extrapolation, comparison.

Numpy and scipy only. The method is that of Hoiem, Gupta, Li and Shlapentokh-Rothman, Learning
Curves for Analysis of Deep Networks, 2021, with intervals that let γ be unknown.
"""

from curvewise.learning.answers import SamplesToReach
from curvewise.learning.base import CurveIntervals
from curvewise.learning.compare import CurveComparison, compare_learning_curves
from curvewise.learning.curve import LearningCurve
from curvewise.learning.design import SizePlan, plan_sizes
from curvewise.learning.ensemble import EnsembleCurve
from curvewise.learning.fit import fit_learning_curve
from curvewise.learning.leave_out import LeaveOneSizeOut, leave_one_size_out
from curvewise.learning.many import LearningCurves, fit_learning_curves
from curvewise.learning.partition import geometric_sizes, partition_training_set
from curvewise.learning.power import Constants
from curvewise.learning.rank import LearnerRanking, rank_learners
from curvewise.learning.stability import Stability, measure_stability
from curvewise.learning.variance_check import VarianceCheck, check_variance_model

__all__ = [
    "Constants",
    "CurveComparison",
    "CurveIntervals",
    "EnsembleCurve",
    "LearnerRanking",
    "LearningCurve",
    "LearningCurves",
    "LeaveOneSizeOut",
    "SamplesToReach",
    "SizePlan",
    "Stability",
    "VarianceCheck",
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
]
