"""Intervals and tests that more than one lens needs."""

from curvewise.stats.crossing import crossing_interval, first_crossing
from curvewise.stats.intervals import (
    difference_interval,
    excluded_level,
    paired_t_test,
    probability_lowest,
)

__all__ = [
    "crossing_interval",
    "difference_interval",
    "excluded_level",
    "first_crossing",
    "paired_t_test",
    "probability_lowest",
]
