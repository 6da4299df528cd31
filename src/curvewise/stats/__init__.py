"""Intervals and tests that more than one lens needs."""

from curvewise.stats.clusters import cluster_degrees, cluster_variance
from curvewise.stats.crossing import crossing_interval, first_crossing
from curvewise.stats.intervals import (
    difference_interval,
    excluded_level,
    paired_t_test,
    probability_lowest,
)
from curvewise.stats.multiplicity import benjamini_hochberg, holm
from curvewise.stats.permutation import permutation_pvalue, sign_flip_pvalue
from curvewise.stats.superiority import probability_below

__all__ = [
    "benjamini_hochberg",
    "cluster_degrees",
    "cluster_variance",
    "crossing_interval",
    "difference_interval",
    "excluded_level",
    "first_crossing",
    "holm",
    "paired_t_test",
    "permutation_pvalue",
    "probability_below",
    "probability_lowest",
    "sign_flip_pvalue",
]
