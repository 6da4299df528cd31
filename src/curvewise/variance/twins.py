"""How much a tiny change to a run alters it: run r against its poked or re-seeded twin."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.types import FloatArray, Interval, Predictions, Result, as_predictions, check_level
from curvewise.variance._crossed import Crossed, Spread
from curvewise.variance._twin_answers import Against, Among, Compared, cross
from curvewise.variance._votes import group_codes
from curvewise.variance.difference import align_examples, check_same_examples
from curvewise.variance.tails import FEWEST
from curvewise.variance.wording import said_interval


@dataclass(frozen=True, eq=False)
class TwinDisagreement(Result):
    """How often a run and its twin disagree.

    Tuples have one entry per ``when``.

    Attributes
    ----------
    when : tuple
        When the twins were poked (an epoch, a step), or what else was done to them.
    runs, examples : int
        Pairs of a run and its twin, and the size of the test set.
    groups : int or None
        Number of groups of examples that belong together.
    disagreement : tuple of Interval
        Share of examples on which a run and its twin disagree; pairs of runs and examples (or
        groups) both count as sampled. That none was seen does not make the upper end 0.
    seeds : Interval
        The same for two runs with fully different seeds.
    fraction : tuple of Interval
        ``disagreement`` over ``seeds``: how much of the difference between seeds the twins show
        already.
    measured : {"predictions", "correctness"}
        What was compared. Where only 0/1 errors are known, two wrong answers count as agreement.
    seeds_from : {"reference", "reseeded"}
        Whether ``seeds`` is over all pairs of runs of the reference, or against runs given for it.
    """

    when: tuple[Any, ...]
    runs: int
    examples: int
    groups: int | None
    disagreement: tuple[Interval, ...]
    seeds: Interval
    fraction: tuple[Interval, ...]
    measured: str
    seeds_from: str
    level: float
    warnings: tuple[str, ...]
    _by_run: tuple[FloatArray, ...]

    @property
    def by_run(self) -> tuple[FloatArray, ...]:
        """Disagreement of each run with its twin, one array per ``when``."""
        return self._by_run

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per ``when``, and a last one for different seeds."""
        rows = [*self.disagreement, self.seeds]
        parts = [*self.fraction, Interval(1.0, 1.0, 1.0, self.level)]
        return {
            "when": [*map(str, self.when), "different seeds"],
            "disagreement": [i.estimate for i in rows],
            "low": [i.low for i in rows],
            "high": [i.high for i in rows],
            "fraction": [i.estimate for i in parts],
            "fraction low": [i.low for i in parts],
            "fraction high": [i.high for i in parts],
        }

    def summary(self) -> str:
        """The disagreement in a few sentences."""
        what = "predictions" if self.measured == "predictions" else "right and wrong answers"
        design = f" in {self.groups:,} groups" if self.groups else ""
        lines = [
            f"Over {self.runs:,} runs and {self.examples:,} examples{design}, two runs with"
            f" different seeds disagree on {said_interval(self.seeds, 'fraction')} of {what}."
        ]
        for when, rate, part in zip(self.when, self.disagreement, self.fraction, strict=True):
            lines.append(
                f"A run and its twin ({when}) disagree on {said_interval(rate, 'fraction')},"
                f" {_percent(part)} of that."
            )
        return " ".join([*lines, *(f"Beware: {w}" for w in self.warnings)])


def measure_twins(
    reference: Predictions | ArrayLike,
    twins: Predictions | Mapping[Any, Predictions | ArrayLike] | ArrayLike,
    labels: ArrayLike | None = None,
    *,
    when: Any = None,
    reseeded: Predictions | ArrayLike | None = None,
    groups: ArrayLike | None = None,
    level: float = 0.95,
) -> TwinDisagreement:
    """Measure how often runs disagree with twins that differ by next to nothing.

    A twin repeats a run with the same seeds, except that something small was done to it: one
    weight multiplied by 1.001 (a poke), say, at initialization or later. Beside it stands the
    disagreement of runs with fully different seeds.

    Parameters
    ----------
    reference : Predictions or array_like, shape (runs, examples)
        Runs that were left alone.
    twins : Predictions, array_like, or mapping of when to those
        Run r is the twin of run r of the reference, on the same examples.
    labels : array_like, shape (examples,), optional
        True classes; needed for predicted labels.
    when : object, optional
        When the one set of twins was poked; a mapping says it by its keys.
    reseeded : Predictions or array_like, optional
        As many runs with other seeds, to be compared with the reference run by run. By default
        the runs of the reference are compared among themselves, all pairs of them.
    groups : array_like, shape (examples,), optional
        Which examples belong together: they are sampled together. By default what any of the
        predictions brings along.
    level : float
        Coverage of the intervals.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(0, 10, 400)
    >>> runs = np.where(rng.random((20, 400)) < 0.1, rng.integers(0, 10, (20, 400)), truth)
    >>> poked = np.where(rng.random((20, 400)) < 0.05, rng.integers(0, 10, (20, 400)), runs)
    >>> t = measure_twins(runs, poked, truth, when="epoch 4")
    >>> round(t.disagreement[0].estimate, 3), round(t.seeds.estimate, 3)
    (0.043, 0.178)
    """
    check_level(level)
    base = _checked(reference, labels, groups, "reference")
    others = {
        key: _matched(base, given, labels, groups, name)
        for key, given, name in _named(twins, when, "twins")
    }
    if base.runs < 3:
        raise InputError(f"reference has {base.runs} run(s): at least three are needed.")
    seeds, fresh = _seeds(base, reseeded, labels, groups)
    together = _together([base, *others.values(), *fresh])
    crossed = {key: cross(base, twin, seeds, together) for key, twin in others.items()}
    first = next(iter(crossed.values()))
    notes = _notes(base.runs)
    for text in notes:
        warnings.warn(text, CurvewiseWarning, stacklevel=2)
    return TwinDisagreement(
        when=tuple(crossed),
        runs=base.runs,
        examples=base.examples,
        groups=None if together is None else first.units,
        disagreement=tuple(_twins(c).rate(level) for c in crossed.values()),
        seeds=Spread(first, (0.0, 1.0), (0.0, seeds.weight)).rate(level),
        fraction=tuple(_fraction(c, seeds.weight, level) for c in crossed.values()),
        measured="predictions" if base.has_classes else "correctness",
        seeds_from="reseeded" if fresh else "reference",
        level=level,
        warnings=tuple(notes),
        _by_run=tuple(c.by_run[0] for c in crossed.values()),
    )


def _twins(crossed: Crossed) -> Spread:
    return Spread(crossed, (1.0, 0.0), (1.0, 0.0))


def _fraction(crossed: Crossed, weight: float, level: float) -> Interval:
    """The ratio of the two means, linearised: what they share cancels."""
    twins, seeds = crossed.means
    if seeds == 0:
        return Interval(math.nan, 0.0, math.inf, level)
    ratio = float(twins / seeds)
    gap = Spread(crossed, (1.0, -ratio), (1.0, -ratio * weight))
    half = gap.half_width(level) / float(seeds)
    high = max(ratio + half, gap.unseen(level) / float(seeds))
    return Interval(ratio, max(0.0, ratio - half), high, level)


def _seeds(
    base: Predictions, reseeded: Any, labels: ArrayLike | None, groups: ArrayLike | None
) -> tuple[Compared, list[Predictions]]:
    """What different seeds are compared with, and the runs that were given for it."""
    if reseeded is None:
        return Among(base), []
    fresh = _matched(base, reseeded, labels, groups, "reseeded")
    return Against(base, fresh), [fresh]


def _together(given: Sequence[Predictions]) -> NDArray[np.int64] | None:
    """Groups that any of the predictions brings along, numbered from 0."""
    return next((group_codes(p) for p in given if p.groups is not None), None)


def _notes(runs: int) -> list[str]:
    if runs >= FEWEST:
        return []
    return [
        f"{runs} runs with their twins are few: the intervals lean on pairs varying normally."
        f" Train at least {FEWEST}."
    ]


def _named(twins: Any, when: Any, argument: str) -> list[tuple[Any, Any, str]]:
    if not isinstance(twins, Mapping):
        return [("poked" if when is None else when, twins, argument)]
    if when is not None:
        raise InputError("when= is for one set of twins: the mapping's keys say it already.")
    if not twins:
        raise InputError("twins is empty: pass at least one set of twins.")
    keys = list(twins)
    if all(isinstance(k, int | float) for k in keys):
        keys.sort()
    return [(k, twins[k], f"{argument}[{k!r}]") for k in keys]


def _checked(
    given: Any, labels: ArrayLike | None, groups: ArrayLike | None, argument: str
) -> Predictions:
    predictions = as_predictions(given, labels, groups=groups, argument=argument)
    if not predictions.binary:
        raise InputError(
            f"{argument} holds losses or repeats; disagreement needs one predicted class (or 0/1"
            " error) of each run for each example."
        )
    return predictions


def _matched(
    base: Predictions, given: Any, labels: ArrayLike | None, groups: ArrayLike | None, name: str
) -> Predictions:
    twin = _checked(given, labels, groups, name)
    if twin.runs != base.runs:
        raise InputError(
            f"{name} has {twin.runs} runs and reference has {base.runs}: run r must be the twin of"
            " run r."
        )
    twin = align_examples(base, twin, ("reference", name))
    check_same_examples(base, twin, ("reference", name))
    if base.has_classes != twin.has_classes:
        raise InputError(f"{name} is of kind {twin.kind!r}, reference of kind {base.kind!r}.")
    one, two = base.run_ids, twin.run_ids
    if one is not None and two is not None and not np.array_equal(one, two):
        raise InputError(f"{name} and reference have different run_ids: bring them in one order.")
    return twin


def _percent(part: Interval) -> str:
    if math.isnan(part.estimate):
        return "an unknown share"
    return f"{part.estimate:.1%} [{part.low:.1%}, {part.high:.1%}]"
