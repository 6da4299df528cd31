"""How a network's accuracy responds to perturbations, and what that says of generalization."""

from curvewise.response.agreement import granulated_kendall
from curvewise.response.cmi import ConditionalInformation, cmi_score, measure_cmi
from curvewise.response.combine import combine_measures
from curvewise.response.compare import ResponseComparison, compare_responses
from curvewise.response.curve import ResponseCurve
from curvewise.response.judge import judge_measures
from curvewise.response.judgement import (
    MeasureComparison,
    MeasureJudgement,
    tabulate_judgements,
)
from curvewise.response.scores import (
    accuracy_at,
    cumulative_accuracy,
    gi_score,
    mean_accuracy,
    pal_score,
)
from curvewise.response.sensitivity import ResponseSensitivity

__all__ = [
    "ConditionalInformation",
    "MeasureComparison",
    "MeasureJudgement",
    "ResponseComparison",
    "ResponseCurve",
    "ResponseSensitivity",
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
    "tabulate_judgements",
]
