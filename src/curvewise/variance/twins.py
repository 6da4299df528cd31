"""How much a tiny change to a run alters it: run r against its poked or re-seeded twin."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import InputError
from curvewise.types import FloatArray, Interval, Predictions, Result, as_predictions, check_level
from curvewise.variance._class_counts import class_counts
from curvewise.variance._crossed import Crossed, crossed_interval
from curvewise.variance.difference import check_same_examples
from curvewise.variance.wording import said_interval

BLOCK_CELLS = 2**20
"""Cells of runs × examples compared at a time."""


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
    disagreement : tuple of Interval
        Share of examples on which a run and its twin disagree; pairs of runs and examples both
        count as sampled.
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
        lines = [
            f"Over {self.runs:,} runs and {self.examples:,} examples, two runs with different"
            f" seeds disagree on {said_interval(self.seeds, 'fraction')} of {what}."
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
    base = _checked(reference, labels, "reference")
    others = {
        key: _matched(base, given, labels, name)
        for key, given, name in _named(twins, when, "twins")
    }
    if base.runs < 3:
        raise InputError(f"reference has {base.runs} run(s): at least three are needed.")
    seeds: _Compared = _Among(base)
    if reseeded is not None:
        seeds = _Against(base, _matched(base, reseeded, labels, "reseeded"))
    crossed = {key: _cross(base, twin, seeds) for key, twin in others.items()}
    first = next(iter(crossed.values()))
    rates = tuple(crossed_interval(c, (1.0, 0.0), (1.0, 0.0), level) for c in crossed.values())
    return TwinDisagreement(
        when=tuple(crossed),
        runs=base.runs,
        examples=base.examples,
        disagreement=rates,
        seeds=crossed_interval(first, (0.0, 1.0), (0.0, seeds.weight), level),
        fraction=tuple(_fraction(c, seeds.weight, level) for c in crossed.values()),
        measured="predictions" if base.has_classes else "correctness",
        seeds_from="reference" if reseeded is None else "reseeded",
        level=level,
        warnings=(),
        _by_run=tuple(c.by_run[0] for c in crossed.values()),
    )


def _fraction(crossed: Crossed, weight: float, level: float) -> Interval:
    """The ratio of the two means, linearised: what they share cancels."""
    twins, seeds = crossed.means
    if seeds == 0:
        return Interval(math.nan, 0.0, math.inf, level)
    ratio = float(twins / seeds)
    gap = crossed_interval(crossed, (1.0, -ratio), (1.0, -ratio * weight), level)
    half = (gap.high - gap.low) / 2 / float(seeds)
    return Interval(ratio, max(0.0, ratio - half), ratio + half, level)


class _Compared:
    """Disagreement of each run with runs of other seeds, cell by cell.

    ``weight`` says how often a run enters the mean: twice where pairs are among the same runs.
    """

    weight = 1.0

    def of(self, rows: slice, said: NDArray[Any]) -> FloatArray:
        """For the runs in ``rows``, whose answers are ``said``."""
        raise NotImplementedError


class _Against(_Compared):
    """Run r against run r of another set."""

    def __init__(self, base: Predictions, other: Predictions) -> None:
        self.base, self.other = base, other

    def of(self, rows: slice, said: NDArray[Any]) -> FloatArray:
        apart: FloatArray = (said != _answers(self.other, rows, self.base)).astype(np.float64)
        return apart


class _Among(_Compared):
    """Run r against all other runs of its own set."""

    weight = 2.0

    def __init__(self, base: Predictions) -> None:
        self.runs = base.runs
        blocks = [slice(start, stop) for start, stop in _spans(base)]
        classes = 1 + max(int(_answers(base, rows, base).max()) for rows in blocks)
        answers = (_answers(base, rows, base) for rows in blocks)
        self.counts = class_counts(answers, base.examples, classes)

    def of(self, rows: slice, said: NDArray[Any]) -> FloatArray:
        same = self.counts[np.arange(said.shape[1]), said]
        share: FloatArray = (self.runs - same) / (self.runs - 1)
        return share


def _cross(base: Predictions, twin: Predictions, seeds: _Compared) -> Crossed:
    crossed = Crossed(base.runs, base.examples, 2)
    for start, stop in _spans(base):
        rows = slice(start, stop)
        said = _answers(base, rows, base)
        apart = (said != _answers(twin, rows, base)).astype(np.float64)
        crossed.add(start, [apart, seeds.of(rows, said)])
    return crossed


def _spans(given: Predictions) -> Iterator[tuple[int, int]]:
    step = max(1, BLOCK_CELLS // given.examples)
    for start in range(0, given.runs, step):
        yield start, min(start + step, given.runs)


def _answers(given: Predictions, rows: slice, base: Predictions) -> NDArray[Any]:
    """Predicted classes of some runs, numbered as in ``base``; 0/1 errors where that is all."""
    if not base.has_classes:
        return given.errors_of(rows)
    part = replace(given, values=np.asarray(given.values[rows]), run_ids=None)
    said = np.concatenate([block for _, block in part.label_blocks()])
    return _renumbered(said, given, base)


def _renumbered(codes: NDArray[Any], given: Predictions, base: Predictions) -> NDArray[Any]:
    """Numbers of classes as ``base`` has them, where both have names."""
    if given.classes == base.classes:
        return codes
    if given.classes is None or base.classes is None:
        raise InputError("twins and reference must both have class names, or neither.")
    numbers = {name: i for i, name in enumerate(base.classes)}
    table = [numbers.get(c, len(numbers) + i) for i, c in enumerate(given.classes)]
    numbered: NDArray[Any] = np.array(table)[codes]
    return numbered


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


def _checked(given: Any, labels: ArrayLike | None, argument: str) -> Predictions:
    predictions = as_predictions(given, labels, argument=argument)
    if not predictions.binary:
        raise InputError(
            f"{argument} holds losses or repeats; disagreement needs one predicted class (or 0/1"
            " error) of each run for each example."
        )
    return predictions


def _matched(base: Predictions, given: Any, labels: ArrayLike | None, name: str) -> Predictions:
    twin = _checked(given, labels, name)
    if twin.runs != base.runs:
        raise InputError(
            f"{name} has {twin.runs} runs and reference has {base.runs}: run r must be the twin of"
            " run r."
        )
    check_same_examples(base, twin)
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
