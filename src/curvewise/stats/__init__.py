"""Intervals and tests that more than one lens needs."""

from curvewise.stats.intervals import (
    difference_interval,
    excluded_level,
    paired_t_test,
    probability_lowest,
)

__all__ = ["difference_interval", "excluded_level", "paired_t_test", "probability_lowest"]
