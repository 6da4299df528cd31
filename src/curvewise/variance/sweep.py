"""Variance between runs along a hyperparameter, and where it exceeds independent errors."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.stats import holm
from curvewise.tables import number
from curvewise.types import Interval, Predictions, Result, as_predictions, asked_of, check_level
from curvewise.variance.decompose import decompose_variance
from curvewise.variance.decomposition import VarianceDecomposition
from curvewise.variance.difference import unpaired_difference
from curvewise.variance.totals import Totals
from curvewise.variance.wording import said, said_interval, said_pvalue


@dataclass(frozen=True, eq=False)
class VarianceSweep(Result):
    """The variance between runs at each value of a hyperparameter.

    Tuples have one entry per value, from the smallest to the largest.

    Attributes
    ----------
    name : str
        The hyperparameter.
    values : tuple of float
        Its values.
    runs : tuple of int
        Runs at each.
    error : tuple of Interval
        Mean error.
    test_set_std, distribution_std : tuple of Interval
        Standard deviations between runs, of test error and of true error.
    independent_std : tuple of float
        What the test error would show if examples erred independently.
    excess_std : tuple of float
        ``test_set_std − independent_std``.
    variance_ratio : tuple of Interval
        Variance of test error over variance of true error; infinite where no variance of true
        error was found.
    pvalues, adjusted_pvalues : tuple of float
        Of Cochran's Q against independent errors; the latter by Holm over the values.
    best : float
        The value of lowest mean error.
    tied : tuple of float
        Values whose mean error was not shown to differ from the best's (on the distribution, Holm
        over the values). Values measured on other examples (another number of them, or other
        groups) are not compared.
    largest_without_excess : float or None
        The largest value at which no excess was shown (adjusted p of ``1 - level`` or more).
    unit : {"fraction", "loss"}
        Of errors and standard deviations.
    """

    name: str
    values: tuple[float, ...]
    runs: tuple[int, ...]
    error: tuple[Interval, ...]
    test_set_std: tuple[Interval, ...]
    independent_std: tuple[float, ...]
    excess_std: tuple[float, ...]
    distribution_std: tuple[Interval, ...]
    variance_ratio: tuple[Interval, ...]
    pvalues: tuple[float, ...]
    adjusted_pvalues: tuple[float, ...]
    best: float
    tied: tuple[float, ...]
    largest_without_excess: float | None
    unit: str
    level: float
    warnings: tuple[str, ...]
    _decompositions: tuple[VarianceDecomposition, ...]

    @property
    def has_excess(self) -> tuple[bool, ...]:
        """Whether an excess over independent errors was shown, value by value."""
        return tuple(p < 1 - self.level for p in self.adjusted_pvalues)

    def __getitem__(self, value: float) -> VarianceDecomposition:
        """The decomposition at a value of the hyperparameter."""
        if value not in self.values:
            raise KeyError(value)
        return self._decompositions[self.values.index(value)]

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per value of the hyperparameter."""
        return {
            self.name: list(self.values),
            "runs": list(self.runs),
            "error": [i.estimate for i in self.error],
            "error low": [i.low for i in self.error],
            "error high": [i.high for i in self.error],
            "test-set std": [i.estimate for i in self.test_set_std],
            "independent std": list(self.independent_std),
            "excess std": list(self.excess_std),
            "distribution std": [i.estimate for i in self.distribution_std],
            "distribution std low": [i.low for i in self.distribution_std],
            "distribution std high": [i.high for i in self.distribution_std],
            "variance ratio": [i.estimate for i in self.variance_ratio],
            "p": list(self.pvalues),
            "adjusted p": list(self.adjusted_pvalues),
        }

    def summary(self) -> str:
        """The sweep in a few sentences."""
        spot = self.values.index(self.best)
        lines = [
            f"Of {len(self.values)} values of the {self.name}, {number(self.best)} has the lowest"
            f" mean {self._what} ({said_interval(self.error[spot], self.unit)}).{self._tied()}",
            self._excess_sentence(),
        ]
        if self.largest_without_excess is not None:
            lines.append(self._limit_sentence(self.values.index(self.largest_without_excess)))
        return " ".join([*lines, *(f"Beware: {w}" for w in self.warnings)])

    def _tied(self) -> str:
        names = ", ".join(map(number, self.tied))
        return f" Not shown to differ from it: {names}." if names else ""

    @property
    def _what(self) -> str:
        return self.unit if self.unit in ("loss", "score") else "error"

    def _excess_sentence(self) -> str:
        found = [number(v) for v, has in zip(self.values, self.has_excess, strict=True) if has]
        if not found:
            return (
                "At no value do the runs vary more than independent errors would (Cochran's Q,"
                f" Holm over the values, smallest {said_pvalue(min(self.adjusted_pvalues))})."
            )
        return (
            f"The runs vary more than independent errors would at {', '.join(found)} (Cochran's Q,"
            " Holm over the values)."
        )

    def _limit_sentence(self, spot: int) -> str:
        limit = said(self.distribution_std[spot].high, self.unit)
        best = self.values[spot] == self.best
        same = "It is also the value of lowest error. " if best and len(self.values) > 1 else ""
        return (
            f"The largest value at which no such excess was shown is"
            f" {number(self.values[spot])}. {same}Not shown is not absent: there, the standard"
            f" deviation of true {self._what} between runs may be up to {limit}."
        )


def measure_sweep(
    predictions: Mapping[float, Predictions | VarianceDecomposition | ArrayLike],
    labels: ArrayLike | None = None,
    *,
    name: str = "learning rate",
    kind: str | None = None,
    axes: Sequence[str] | None = None,
    groups: ArrayLike | None = None,
    level: float = 0.95,
    rng: int | np.random.Generator = 0,
) -> VarianceSweep:
    """Decompose the variance between runs at each value of a hyperparameter.

    Parameters
    ----------
    predictions : mapping of float to Predictions, VarianceDecomposition or array_like
        Runs at each value of the hyperparameter (or of the length of training).
    labels : array_like, shape (examples,), optional
        True classes; needed for predicted labels.
    name : str
        What the hyperparameter is called.
    kind, axes, groups
        As in :func:`decompose_variance`. Groups that one of the Predictions brings along count for
        all of as many examples that bring none.
    level : float
        Coverage of the intervals; excess is shown at ``1 - level``.
    rng : int or Generator
        Determines bootstrap intervals, where there are any.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> steady = rng.random((40, 500)) < 0.1
    >>> shaky = rng.random((40, 500)) < rng.uniform(0.05, 0.2, (40, 1))
    >>> s = measure_sweep({0.5: steady, 1.0: shaky}, kind="errors")
    >>> s.best, s.largest_without_excess, s.has_excess
    (0.5, 0.5, (False, True))
    """
    check_level(level)
    values = _sorted_values(predictions)
    generator = np.random.default_rng(rng)
    options = {"kind": kind, "axes": axes, "groups": groups}
    given = _with_groups([_read(predictions[v], labels, options) for v in values])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CurvewiseWarning)
        parts = [
            decompose_variance(g, level=level, rng=generator) if isinstance(g, Predictions) else g
            for g in given
        ]
    if len({p.unit for p in parts}) > 1:
        raise InputError("predictions mixes losses with 0/1 errors: pass one kind.")
    notes = [f"at {number(v)}, {w}" for v, p in zip(values, parts, strict=True) for w in p.warnings]
    for text in notes:
        warnings.warn(text, CurvewiseWarning, stacklevel=2)
    pvalues = [p.independence_pvalue for p in parts]
    adjusted = holm(pvalues)
    best = min(zip(values, parts, strict=True), key=lambda pair: pair[1].error.estimate)[0]
    calm = [v for v, p in zip(values, adjusted, strict=True) if p >= 1 - level]
    return VarianceSweep(
        name=name,
        values=tuple(values),
        runs=tuple(p.runs for p in parts),
        error=tuple(p.error for p in parts),
        test_set_std=tuple(p.test_set_interval for p in parts),
        independent_std=tuple(p.independent_std for p in parts),
        excess_std=tuple(p.test_set_std - p.independent_std for p in parts),
        distribution_std=tuple(p.distribution_interval for p in parts),
        variance_ratio=tuple(_inverse(p.share_interval) for p in parts),
        pvalues=tuple(pvalues),
        adjusted_pvalues=tuple(adjusted.tolist()),
        best=best,
        tied=_tied_with(best, dict(zip(values, parts, strict=True)), level),
        largest_without_excess=max(calm) if calm else None,
        unit=parts[0].unit,
        level=level,
        warnings=tuple(notes),
        _decompositions=tuple(parts),
    )


def _read(
    given: Any, labels: ArrayLike | None, options: Mapping[str, Any]
) -> Predictions | VarianceDecomposition:
    """Arrays as predictions, with the options that are for them."""
    if isinstance(given, VarianceDecomposition):
        return given
    return as_predictions(given, labels, directed=True, **asked_of(given, options))


def _with_groups(
    given: Sequence[Predictions | VarianceDecomposition],
) -> list[Predictions | VarianceDecomposition]:
    """Groups that one brings along count for all of one test set."""
    brought = [g.groups if isinstance(g, Predictions) else g._totals.groups for g in given]
    known = {len(groups): groups for groups in brought if groups is not None}
    return [
        replace(g, groups=known.get(g.examples))
        if isinstance(g, Predictions) and g.groups is None
        else g
        for g in given
    ]


def _tied_with(
    best: float, parts: Mapping[float, VarianceDecomposition], level: float
) -> tuple[float, ...]:
    """Values whose mean error is not shown to be above the best one's."""
    lowest = parts[best]._totals
    rest = {v: p._totals for v, p in parts.items() if v != best}
    rest = {v: t for v, t in rest.items() if _comparable(t, lowest)}
    pvalues = [unpaired_difference(t, lowest).distribution.pvalue for t in rest.values()]
    adjusted = holm(pvalues)
    return tuple(v for v, p in zip(rest, adjusted, strict=True) if p >= 1 - level)


def _comparable(a: Totals, b: Totals) -> bool:
    """Whether these may be of one test set."""
    if a.groups is None or b.groups is None:
        return a.examples == b.examples
    return np.array_equal(a.groups, b.groups)


def _sorted_values(predictions: Any) -> list[float]:
    if not isinstance(predictions, Mapping) or not predictions:
        raise InputError("predictions must map values to runs: {0.1: …, 0.2: …}.")
    wrong = [v for v in predictions if not isinstance(v, Real) or not math.isfinite(v)]
    if wrong:
        raise InputError(
            f"predictions has the key {wrong[0]!r}, which is no number: a sweep needs the values of"
            " the hyperparameter. For named settings use decompose_variance on each."
        )
    return sorted(predictions)


def _inverse(share: Interval) -> Interval:
    """Test-set variance over true variance, from the share of the latter."""
    estimate, low, high = (
        x if math.isnan(x) else (1 / x if x > 0 else math.inf)
        for x in (share.estimate, share.high, share.low)
    )
    return Interval(estimate, low, high, share.level)
