"""Tests that look at the data several times and may stop at each, at a level that keeps the error rate over all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri, stdtr

from curvewise.errors import InputError
from curvewise.types.units import FloatArray


@dataclass(frozen=True)
class SequentialDesign:
    """Level of each look, and what the looks find at true differences.

    Attributes
    ----------
    looks : tuple of int
        Values (runs, questions) at each look.
    nominal_level : float
        The p-value below which a look stops, the same at each, as in Pocock's design.
    naive_error : float
        Error rate over all looks if each stopped at the level that is kept over all.
    expected, found, fixed : tuple of float
        For each effect: values until the test stops, on average; the chance that it stops with a difference; the chance
        that a single look at the last finds one.
    """

    looks: tuple[int, ...]
    nominal_level: float
    naive_error: float
    expected: tuple[float, ...]
    found: tuple[float, ...]
    fixed: tuple[float, ...]


def sequential_design(
    looks: Sequence[int],
    effects: Sequence[float] = (),
    *,
    level: float = 0.95,
    paired: bool = True,
    draws: int = 100_000,
    rng: int | np.random.Generator = 0,
) -> SequentialDesign:
    """Find the level of each of several looks by simulating t tests of normal values.

    Parameters
    ----------
    looks : sequence of int
        Values at each look, rising, from 2 on.
    effects : sequence of float
        True differences, in standard deviations of a value, for which to tell what is found.
    level : float
        One minus the error rate over all looks.
    paired : bool
        True for the t test of differences, False for Welch's t test of two samples of that size each.
    draws : int
        Simulated experiments.
    rng : int or Generator
        Determines them.

    Examples
    --------
    >>> design = sequential_design([50, 100, 200], [0.3], draws=20_000)
    >>> round(design.nominal_level, 3), round(design.found[0], 2)
    (0.021, 0.97)
    """
    planned = rising_looks(looks)
    if draws < 1000:
        raise InputError("too few to simulate an error rate: pass 1000 or more.", argument="draws", value=draws)
    generator = np.random.default_rng(rng)
    # Simulated, not looked up: tables of Pocock's constants are for known variances, and few values need t.
    null = _simulate(planned, paired, draws, generator)
    smallest = null.pvalues(0.0, 1 - level).min(axis=0)
    # The level at which the smallest p-value of all looks falls below it just 1 − level of the time.
    nominal = float(np.quantile(smallest, 1 - level, method="lower"))
    some = _simulate(planned, paired, max(1000, draws // 10), generator)
    rows = [_expect(some, effect, nominal, 1 - level) for effect in effects]
    expected, found, fixed = zip(*rows, strict=True) if rows else ((), (), ())
    return SequentialDesign(planned, nominal, float((smallest <= 1 - level).mean()), expected, found, fixed)


def rising_looks(looks: ArrayLike) -> tuple[int, ...]:
    """Raise unless looks are rising whole numbers from 2 on."""
    planned = tuple(int(n) for n in np.ravel(looks))
    whole = all(float(n) == int(n) for n in np.ravel(looks))
    if not planned or not whole or planned[0] < 2 or not all(x < y for x, y in pairwise(planned)):
        raise InputError("must be rising whole numbers from 2 on, such as [5, 10, 20].", argument="looks", value=looks)
    return planned


def _simulate(looks: tuple[int, ...], paired: bool, draws: int, rng: np.random.Generator) -> _Looks:
    """Simulate normal values, and compare by Welch's or the paired t test.

    Only sums and sums of squares of the values between two looks are drawn.
    """
    sides = [_look_moments(looks, draws, rng) for _ in range(1 if paired else 2)]
    sizes = np.array(looks, dtype=np.float64)[:, None]
    parts = [variance / sizes for _, variance in sides]
    total = np.sum(parts, axis=0)
    degrees = (sizes - 1) * total**2 / np.sum([p**2 for p in parts], axis=0)
    gap = sides[0][0] if paired else sides[0][0] - sides[1][0]
    return _Looks(looks, gap, np.sqrt(total), degrees)


@dataclass(frozen=True, eq=False)
class _Looks:
    """Means and variances of simulated experiments at each look, without a true difference.

    Attributes
    ----------
    looks : tuple of int
        Values at each look.
    gap : ndarray, shape (looks, draws)
        Difference of the two means so far, in standard deviations of a value.
    error : ndarray, shape (looks, draws)
        Its estimated standard error.
    degrees : ndarray, shape (looks, draws)
        Degrees of freedom of that.
    """

    looks: tuple[int, ...]
    gap: FloatArray
    error: FloatArray
    degrees: FloatArray

    def pvalues(self, effect: float, most: float) -> FloatArray:
        """Two-sided p-values of the t tests if the true difference is ``effect``.

        Those above ``most`` are given as 1: a t that is not even extreme for a normal variable is
        not worth the time.
        """
        t = np.abs(self.gap + effect) / self.error
        values = np.ones_like(t)
        small = t >= -ndtri(most / 2)
        values[small] = 2 * stdtr(self.degrees[small], -t[small])
        return np.where(values > most, 1.0, values)


def _look_moments(looks: tuple[int, ...], draws: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Mean and variance (ddof 1) of standard normal values so far, at each look."""
    means, variances = np.empty((2, len(looks), draws))
    mean, squares, before = np.zeros(draws), np.zeros(draws), 0
    for look, now in enumerate(looks):
        new = now - before
        fresh = rng.standard_normal(draws) / math.sqrt(new)
        # Only what enters the t statistic is drawn: the mean and the sum of squares of the new values.
        within = rng.chisquare(new - 1, draws) if new > 1 else 0.0
        squares += within + (fresh - mean) ** 2 * (before * new / now)
        mean += (fresh - mean) * (new / now)
        means[look], variances[look] = mean, squares / (now - 1)
        before = now
    return means, variances


def _expect(looks: _Looks, effect: float, nominal: float, alpha: float) -> tuple[float, float, float]:
    """Values until the test stops, its chance to find the effect, and that of one last look."""
    pvalues = looks.pvalues(effect, alpha)
    found = pvalues <= nominal
    stopped = np.where(found.any(axis=0), found.argmax(axis=0), len(pvalues) - 1)
    values = float(np.array(looks.looks)[stopped].mean())
    return values, float(found.any(axis=0).mean()), float((pvalues[-1] <= alpha).mean())
