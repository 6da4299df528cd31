"""How often two runs disagree, beside how often one errs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike, NDArray

from curvewise.types import (
    FloatArray,
    Interval,
    Predictions,
    Result,
    as_predictions,
    check_level,
    interval_columns,
)
from curvewise.variance._estimates import (
    Test,
    chance,
    example_interval,
    mean_test,
)
from curvewise.variance._votes import Votes, count_votes
from curvewise.variance.anova import example_variance
from curvewise.variance.wording import said_interval, said_pvalue


@dataclass(frozen=True, eq=False)
class Disagreement(Result):
    """How often two runs of one training disagree.

    Attributes
    ----------
    runs, examples, classes : int
        The size of the experiment; classes that occur.
    groups : int or None
        Number of groups of examples that belong together.
    disagreement : Interval
        Chance that two different runs predict different classes for an example.
    error : Interval
        Chance that a run is wrong on an example.
    gap : Interval
        Error minus disagreement: 0 if the ensemble is class-wise calibrated.
    pvalue : float
        Of no gap.
    level : float
        Coverage of the intervals, for which examples (or groups of them) are sampled.
    """

    runs: int
    examples: int
    classes: int
    groups: int | None
    disagreement: Interval
    error: Interval
    gap: Interval
    pvalue: float
    level: float
    warnings: tuple[str, ...]
    _votes: Votes

    @property
    def example_disagreement(self) -> FloatArray:
        """Disagreement of two runs on each example."""
        return self._votes.disagreement

    @property
    def example_errors(self) -> FloatArray:
        """Share of runs that err on each example."""
        return self._votes.error

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per quantity: estimate, low, high."""
        rows = {"disagreement": self.disagreement, "error": self.error, "gap": self.gap}
        return interval_columns(rows)

    def summary(self) -> str:
        """Disagreement and error in a few sentences."""
        design = f" in {self.groups:,} groups" if self.groups else ""
        if self.pvalue >= 1 - self.level:
            verdict = "no more than chance makes of equal ones"
        else:
            less = self.gap.estimate > 0
            verdict = (
                f"so the runs agree {'more' if less else 'less'} often than a calibrated ensemble"
                " of this error would"
            )
        return " ".join(
            [
                f"Two of {self.runs:,} runs disagree on"
                f" {said_interval(self.disagreement, 'fraction')} of {self.examples:,}"
                f" examples{design}; a run errs on {said_interval(self.error, 'fraction')}.",
                f"Error minus disagreement is {said_interval(self.gap, 'fraction')}"
                f" ({said_pvalue(self.pvalue)}): {verdict}.",
                *(f"Beware: {w}" for w in self.warnings),
            ]
        )


def measure_disagreement(
    predictions: Predictions | ArrayLike,
    labels: ArrayLike | None = None,
    *,
    kind: str | None = None,
    axes: Sequence[str] | None = None,
    groups: ArrayLike | None = None,
    level: float = 0.95,
) -> Disagreement:
    """Measure how often two runs disagree, over all pairs of runs, in one pass.

    With c runs out of R for a class, R(R − 1) − Σ c(c − 1) ordered pairs disagree on the example,
    so that no pair need be formed. The intervals are those of a new sample of examples for these
    runs; :func:`measure_calibration` counts the runs as sampled, too.

    Parameters
    ----------
    predictions : Predictions or array_like, shape (runs, examples)
        Predicted labels, or probabilities with an axis for the classes.
    labels : array_like, shape (examples,), optional
        True classes.
    kind : {"labels", "probabilities"}, optional
        What the values are, where they do not say it.
    axes : sequence of str, optional
        What the axes are, where the shape does not say it.
    groups : array_like, shape (examples,), optional
        Which examples belong together: they are sampled together.
    level : float
        Coverage of the intervals.

    Examples
    --------
    >>> d = measure_disagreement([[0, 1, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]], [0, 1, 0, 1])
    >>> round(d.disagreement.estimate, 3), round(d.error.estimate, 3)
    (0.333, 0.417)
    """
    check_level(level)
    given = as_predictions(predictions, labels, kind=kind, axes=axes, groups=groups)
    votes = count_votes(given)
    test = _gap(votes, level)
    return Disagreement(
        runs=votes.runs,
        examples=votes.examples,
        classes=votes.classes,
        groups=None if votes.groups is None else int(votes.groups.max()) + 1,
        disagreement=chance(example_interval(votes.disagreement, votes.groups, level)),
        error=chance(example_interval(votes.error, votes.groups, level)),
        gap=test.estimate,
        pvalue=test.pvalue,
        level=level,
        warnings=(),
        _votes=votes,
    )


def _gap(votes: Votes, level: float) -> Test:
    gap = votes.error - votes.disagreement
    parts = {"examples": example_variance(gap, votes.groups)}
    return mean_test(float(gap.mean()), parts, 0.0, level)
