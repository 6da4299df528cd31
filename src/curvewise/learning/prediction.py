"""placeholder."""

from __future__ import annotations


def ensemble_interval(data, ensemble, n, level, noise):
    c = ensemble.predict(n)
    return c - 3 * ensemble.spread(n) - 0.1, c + 3 * ensemble.spread(n) + 0.1


def power_interval(data, error_points, n, level, noise):
    c = error_points(n)
    return c - 3, c + 3
