"""Origin of the differences between runs: sources of randomness, and twins that differ by next to nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from os import PathLike
from typing import Any, ClassVar, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, ndtri, stdtrit

from curvewise.errors import InputError, brief, either, list_names, warn_all
from curvewise.stats.clusters import cluster_degrees, cluster_variance
from curvewise.stats.intervals import satterthwaite
from curvewise.stats.tests import holm
from curvewise.text import format_interval, format_pvalue
from curvewise.types.predictions import Predictions
from curvewise.types.results import FloatArray, Interval, Result, as_generator, as_number, check_level, interval_lists
from curvewise.variance.anova import FEWEST, PredictionFormat, SamplingUnits, group_codes, read_answers, true_std
from curvewise.variance.decompose import VarianceDecomposition
from curvewise.variance.difference import align_examples, check_same_examples, places_of
from curvewise.variance.variances import DRAWS, measure_split, observed_std, read_together, tail_notes, variance_ratio
from curvewise.variance.votes import class_counts

BLOCK_CELLS = 2**20
"""Cells of runs × examples compared at a time."""
NEED = "disagreement needs one predicted class (or 0/1 error) of each run for each example."


def measure_sources(
    predictions: Mapping[str, Predictions | VarianceDecomposition | ArrayLike],
    labels: ArrayLike | PathLike[str] | None = None,
    *,
    baseline: str = "all",
    margin: float = 0.1,
    level: float = 0.95,
    draws: int = DRAWS,
    rng: int | np.random.Generator = 0,
    **reading: Unpack[PredictionFormat],
) -> SourceShares:
    """Measure how much runs differ when only one source of randomness is varied.

    Parameters
    ----------
    predictions : mapping of str to Predictions, VarianceDecomposition or array_like
        By what was varied: ``{"all": …, "init": …, "order": …, "augmentation": …}``, on one test
        set. In each, everything else is held fixed from run to run.
    labels : array_like, shape (examples,), optional
        True classes; needed for predicted labels.
    baseline : str
        The key under which everything varies.
    margin : float
        A source suffices if its standard deviation is shown to be at least ``1 - margin`` of the
        baseline's, on this test set.
    kind, axes, groups
        As in :func:`decompose_variance`.
    level : float
        Coverage of each interval.
    draws : int
        For the intervals of shares on new data.
    rng : int or Generator
        Determines the draws.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> hard = rng.random(500) ** 3
    >>> s = measure_sources({k: rng.random((300, 500)) < hard for k in ("all", "init")}, margin=0.2)
    >>> s.verdicts, round(s.test_set_share[0].estimate, 2)
    (('suffices',), 0.97)
    """
    if not isinstance(predictions, Mapping) or len(predictions) < 2:
        problem = "must map names to runs: {'all': …, 'init': …}, the baseline and at least one source."
        raise InputError(problem, argument="predictions")
    predictions, baseline = {str(name): given for name, given in predictions.items()}, str(baseline)
    if baseline not in predictions:
        problem, remedy = f"is not among {list_names(predictions)}.", "Pass the name under which all varies."
        raise InputError(problem, argument="baseline", value=baseline, remedy=remedy)
    if not 0 < as_number(margin) < 1:
        raise InputError("must be a number between 0 and 1, such as 0.1.", argument="margin", value=margin)
    check_level(level)
    read, same_set = read_together(predictions, labels, reading)
    measured = dict(zip(predictions, map(measure_split, read), strict=True))
    sizes = {name: (t.examples, t.binary) for name, (t, _) in measured.items()}
    if len(set(sizes.values())) > 1:
        found = ", ".join(f"{name} has {n:,}" for name, (n, _) in sizes.items())
        raise InputError(
            f"predictions are not of one test set and kind: {found} examples. Shares compare runs on the same examples."
        )
    if other := [name for name, same in zip(predictions, same_set, strict=True) if not same]:
        raise InputError(
            f"predictions are not of one test set: {other[0]} has other example_ids or labels. Shares compare runs on"
            " the same examples."
        )
    generator, (totals, split) = as_generator(rng), measured[baseline]
    varied = {name: both for name, both in measured.items() if name != baseline}
    # Each source against the baseline: the question is if one source alone gives as much.
    ratios = [
        variance_ratio(one, split, (t.run, totals.run), level=level, draws=draws, rng=generator)
        for t, one in varied.values()
    ]
    pvalues = holm([r.test_set_pvalue for r in ratios])
    verdicts = []
    for ratio, pvalue in zip(ratios, pvalues, strict=True):
        differs = pvalue < 1 - level
        if differs and ratio.test_set.estimate > 1:
            verdicts.append("more")
        elif ratio.test_set.low >= 1 - margin:
            verdicts.append("suffices")
        else:
            verdicts.append("less" if differs else "unclear")
    notes = [note for name, (t, _) in measured.items() for note in tail_notes(name, t.run)]
    warn_all(notes)
    unit = totals.unit
    return SourceShares(
        sources=tuple(varied),
        baseline=baseline,
        runs=tuple(t.runs for t, _ in varied.values()),
        baseline_runs=totals.runs,
        examples=totals.examples,
        test_set_std=tuple(observed_std(s, level, unit) for _, s in varied.values()),
        distribution_std=tuple(true_std(s, level, unit) for _, s in varied.values()),
        baseline_test_set_std=observed_std(split, level, unit),
        baseline_distribution_std=true_std(split, level, unit),
        test_set_share=tuple(r.test_set for r in ratios),
        distribution_share=tuple(r.distribution for r in ratios),
        pvalues=tuple(pvalues.tolist()),
        verdicts=tuple(verdicts),
        margin=margin,
        unit=unit,
        level=level,
        warnings=tuple(notes),
        run_errors={name: t.run for name, (t, _) in measured.items()},
    )


@dataclass(frozen=True, eq=False)
class SourceShares(Result):
    """Standard deviations between runs if only one source of randomness varies.

    Tuples have one entry per source, in the order of ``sources``.

    Attributes
    ----------
    sources : tuple of str
        Sources that were varied alone.
    baseline : str
        Experiment in which everything varies, which the shares are of.
    runs : tuple of int
        Runs of each source.
    baseline_runs, examples : int
        Runs of the baseline, and the size of the test set.
    test_set_std, distribution_std : tuple of Interval
        Standard deviations between runs, of test error and of true error.
    baseline_test_set_std, baseline_distribution_std : Interval
        Those of the baseline.
    test_set_share, distribution_share : tuple of Interval
        Standard deviation of each source over the baseline's.
    pvalues : tuple of float
        Two-sided, against the same test-set variance as the baseline; Holm's over the sources.
    verdicts : tuple of {"suffices", "less", "unclear", "more"}
        "suffices": the share of the test-set standard deviation is shown to be at least
        ``1 - margin``. "less" and "more": it differs from 1 and does not suffice (exceeds 1).
        "unclear": neither.
    margin : float
        Part that may be missing from a share that suffices.
    unit : {"fraction", "loss"}
        Unit of the standard deviations.
    run_errors : dict of str to ndarray
        Test error of each run, by source; the baseline's among them.
    """

    unlisted = ("run_errors",)

    sources: tuple[str, ...]
    baseline: str
    runs: tuple[int, ...]
    baseline_runs: int
    examples: int
    test_set_std: tuple[Interval, ...]
    distribution_std: tuple[Interval, ...]
    baseline_test_set_std: Interval
    baseline_distribution_std: Interval
    test_set_share: tuple[Interval, ...]
    distribution_share: tuple[Interval, ...]
    pvalues: tuple[float, ...]
    verdicts: tuple[str, ...]
    margin: float
    unit: str
    level: float
    warnings: tuple[str, ...]
    run_errors: Mapping[str, FloatArray]

    @property
    def one_suffices(self) -> bool | None:
        """True if any one source alone gives as much variance; None if that is unclear."""
        if all(v in ("suffices", "more") for v in self.verdicts):
            return True
        return False if "less" in self.verdicts else None

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per source, the baseline first."""
        base = [self.baseline_test_set_std, self.baseline_distribution_std]
        whole = Interval(1.0, 1.0, 1.0, self.level)
        return {
            "varied": [self.baseline, *self.sources],
            "runs": [self.baseline_runs, *self.runs],
            **interval_lists("test_set_std", [base[0], *self.test_set_std], "test_set_std_"),
            **interval_lists("test_set_share", [whole, *self.test_set_share], "test_set_share_"),
            **interval_lists("distribution_std", [base[1], *self.distribution_std], "distribution_std_"),
            **interval_lists("distribution_share", [whole, *self.distribution_share], "distribution_share_"),
            "pvalue": [math.nan, *self.pvalues],
            "verdict": ["", *self.verdicts],
        }

    def sentences(self) -> str:
        """The shares in a few sentences."""
        lines = [
            f"With everything varied ({self.baseline}, {self.baseline_runs:,} runs) the standard deviation between runs"
            f" is {format_interval(self.baseline_test_set_std, self.unit)} on this test set and"
            f" {format_interval(self.baseline_distribution_std, self.unit)} on new data."
        ]
        meaning = {
            "suffices": f"alone it suffices (at least {1 - self.margin:.0%} of the whole)",
            "less": "less than the whole",
            "more": "more than the whole",
            "unclear": "too few runs to show whether it suffices",
        }
        for i, name in enumerate(self.sources):
            lines.append(
                f"Varying only {name} ({self.runs[i]:,} runs) gives {_share_text(self.test_set_share[i])} of the former"
                f" ({format_pvalue(self.pvalues[i])} after Holm) and {_share_text(self.distribution_share[i])} of the"
                f" latter: {meaning[self.verdicts[i]]}."
            )
        whole = {
            True: "Any one source suffices to make runs differ as much as all together.",
            False: "One source alone does not always make runs differ as much as all together.",
            None: "These runs do not show whether one source suffices.",
        }[self.one_suffices]
        return " ".join([*lines, whole])


def _share_text(share: Interval, digits: int = 0) -> str:
    """Format a share as percentages."""
    if math.isnan(share.estimate):
        return "an unknown share"
    return format_interval(share, write=lambda x: f"{x:.{digits}%}" if math.isfinite(x) else "∞")


def measure_twins(
    reference: Predictions | ArrayLike | PathLike[str],
    twins: Predictions | Mapping[Any, Predictions | ArrayLike | PathLike[str]] | ArrayLike,
    labels: ArrayLike | PathLike[str] | None = None,
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
        On the same examples. Where both sides name their runs (``run_ids``), a twin has the name of
        its run; else run r is the twin of run r. ``study.twins()`` joins the runs of a study by their
        seeds.
    labels : array_like, shape (examples,), optional
        True classes; needed for predicted labels.
    when : object, optional
        When the one set of twins was poked; a mapping says it by its keys.
    reseeded : Predictions or array_like, optional
        As many runs with other seeds, to be compared with the reference run by run. By default
        the runs of the reference are compared among themselves, all pairs of them.
    groups : array_like, shape (examples,), optional
        Group of each example: groups are sampled together. By default those that any of the
        predictions brings along.
    level : float
        Coverage of the intervals.

    Raises
    ------
    InputError
        If the runs cannot be matched: their names differ, or without names twins agree far more with
        another run than with the one in their place.

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
    base = read_answers(reference, labels, NEED, argument="reference", groups=groups)
    if not isinstance(twins, Mapping):
        twins = {"poked" if when is None else when: twins}
        arguments = ["twins"]
    else:
        if when is not None:
            remedy = "The keys of the mapping say it already."
            raise InputError("is for one set of twins.", argument="when", remedy=remedy)
        if not twins:
            raise InputError("is empty: pass at least one set of twins.", argument="twins")
        # Epochs or steps in their order; names in the order given.
        if all(isinstance(k, Real) for k in twins):
            twins = {k: twins[k] for k in sorted(twins)}
        arguments = [f"twins[{brief(k)}]" for k in twins]
    others = {
        key: _matched(base, given, labels, groups, name)
        for (key, given), name in zip(twins.items(), arguments, strict=True)
    }
    for twin, name in zip(others.values(), arguments, strict=True):
        if base.run_ids is None or twin.run_ids is None:
            _check_places(base, twin, name)
    if base.runs < 3:
        raise InputError(f"has {base.runs} run(s): at least three are needed.", argument="reference")
    fresh = None if reseeded is None else _matched(base, reseeded, labels, groups, "reseeded", named=False)
    seeds = SeedDisagreement(base, fresh)
    read = (base, *others.values(), *([fresh] if fresh else []))
    codes = group_codes(next((p.groups for p in read if p.groups is not None), None))
    crossed = {key: cross(base, twin, seeds, codes) for key, twin in others.items()}
    first = next(iter(crossed.values()))
    few = f"{base.runs} runs with their twins are few: the intervals assume that pairs vary normally."
    notes = [f"{few} Train at least {FEWEST}."] if base.runs < FEWEST else []
    warn_all(notes)
    return TwinDisagreement(
        when=tuple(crossed),
        runs=base.runs,
        examples=base.examples,
        groups=None if codes is None else first.units,
        disagreement=tuple(CrossedMean(c, (1.0, 0.0), (1.0, 0.0)).rate(level) for c in crossed.values()),
        seeds=CrossedMean(first, (0.0, 1.0), (0.0, seeds.weight)).rate(level),
        fraction=tuple(_fraction(c, seeds.weight, level) for c in crossed.values()),
        measured="predictions" if base.has_classes else "correctness",
        seeds_from="reseeded" if fresh else "reference",
        level=level,
        warnings=tuple(notes),
        by_run=tuple(c.by_run[0] for c in crossed.values()),
    )


@dataclass(frozen=True, eq=False)
class TwinDisagreement(Result):
    """Disagreement of runs with their twins.

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
        Answers that were compared. If only 0/1 errors are known, two wrong answers count as agreement.
    seeds_from : {"reference", "reseeded"}
        Runs behind ``seeds``: all pairs of the reference, or runs given for it.
    by_run : tuple of ndarray
        Disagreement of each run with its twin, one array per ``when``.
    """

    unit: ClassVar[str] = "fraction"
    unlisted = ("by_run",)

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
    by_run: tuple[FloatArray, ...]

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per ``when``, and a last one for different seeds."""
        rows = [*self.disagreement, self.seeds]
        parts = [*self.fraction, Interval(1.0, 1.0, 1.0, self.level)]
        return {
            "when": [*map(str, self.when), "different seeds"],
            **interval_lists("disagreement", rows),
            **interval_lists("fraction", parts, "fraction_"),
        }

    def sentences(self) -> str:
        """The disagreement in a few sentences."""
        what = "predictions" if self.measured == "predictions" else "right and wrong answers"
        design = f" in {self.groups:,} groups" if self.groups else ""
        lines = [
            f"Over {self.runs:,} runs and {self.examples:,} examples{design}, two runs with"
            f" different seeds disagree on {format_interval(self.seeds, 'fraction')} of {what}."
        ]
        for when, rate, part in zip(self.when, self.disagreement, self.fraction, strict=True):
            how = f"poked at {when:g}" if isinstance(when, Real) else when
            lines.append(
                f"A run and its twin ({how}) disagree on {format_interval(rate, 'fraction')},"
                f" {_share_text(part, 1)} of that."
            )
        return " ".join(lines)


def _matched(
    base: Predictions,
    given: Any,
    labels: ArrayLike | PathLike[str] | None,
    groups: ArrayLike | None,
    name: str,
    named: bool = True,
) -> Predictions:
    """Read runs that go with those of the reference, in its order; runs of other seeds have names of their own."""
    twin = read_answers(given, labels, NEED, argument=name, groups=groups)
    if twin.runs != base.runs:
        raise InputError(f"{name} has {twin.runs} runs and reference has {base.runs}: run r must be the twin of run r.")
    twin = align_examples(base, twin, ("reference", name))
    check_same_examples(base, twin, ("reference", name))
    if base.has_classes != twin.has_classes:
        raise InputError(f"{name} is of kind {twin.kind!r}, reference of kind {base.kind!r}.")
    one, two = base.run_ids, twin.run_ids
    if not named or one is None or two is None or np.array_equal(one, two):
        return twin
    order = places_of(one, two)
    if min(order) < 0:
        lacking = str(one[order.index(-1)])
        problem = f"{name} and reference cannot be matched: of run {lacking!r} there is no single twin by run_ids."
        raise InputError(
            problem,
            remedy=f"Of a study, use {either('study.twins()', '`curvewise variance twins` on its store')}, which joins"
            " runs by their seeds; else give a twin the run_id of its run.",
        )
    return twin.subset(runs=order)


TRIED_CELLS = 16_000_000
"""Runs × examples that twins are held against to see that pairs are in their places: 4,000 runs on 4,000 examples."""
FEWEST_TRIED = 20
"""Twins that are tried however many runs there are."""


def _check_places(base: Predictions, twin: Predictions, name: str) -> None:
    """Refuse twins without names some of which agree far more with another run than with that in their place."""
    count = min(base.examples, max(200, min(4000, TRIED_CELLS // base.runs)))
    columns = np.unique(np.linspace(0, base.examples - 1, count).astype(int))
    runs = np.concatenate([_answers(base, rows, base)[:, columns] for rows in _spans(base)])
    tries = min(base.runs, max(FEWEST_TRIED, 20 * TRIED_CELLS // runs.size))
    tried = np.unique(np.linspace(0, base.runs - 1, tries).astype(int)).tolist()
    sampled, away = set(tried), dict[int, int]()
    for r in tried:  # grows on the way
        apart = np.count_nonzero(runs != _answers(twin, slice(r, r + 1), base)[:, columns], axis=1)
        own, apart[r] = int(apart[r]), len(columns) + 1
        nearest = int(apart.argmin())
        near, usual = int(apart[nearest]), float(np.median(np.delete(apart, r)))
        # Far more: half the disagreement, and beyond what the count of examples leaves to chance. It is also half that
        # with the other runs, since a twin of a run that diverged is merely as near to all others as runs are.
        if 2 * near < min(own, usual) and own - near > 5 * math.sqrt(own):
            away[r] = nearest
            if r in sampled and nearest not in tried:
                tried.append(nearest)  # whose twin must be in another place, too
    # A permutation moves two runs or more. One twin alone may be near another run where both went wrong alike.
    if len(set(away.values())) > 1:
        raise InputError(
            f"{name} is not in the order of reference: {len(away)} of {len(tried)} twins agree far more with another"
            " run than with the one in their place.",
            remedy=f"Of a study, use {either('study.twins()', '`curvewise variance twins` on its store')}, which joins"
            " runs by their seeds; else bring both in one order, or give run_ids.",
        )


class SeedDisagreement:
    """Disagreement of each run with runs of other seeds, cell by cell.

    Run r is compared with run r of another set, or with all other runs of its own. ``weight`` says how far a run moves
    the mean: twice as far among the same runs, where it is in both places of a pair.
    """

    def __init__(self, base: Predictions, other: Predictions | None) -> None:
        self.base, self.other, self.weight = base, other, 2.0 if other is None else 1.0
        if other is None:
            classes = 1 + max(int(_answers(base, rows, base).max()) for rows in _spans(base))
            self.counts = class_counts((_answers(base, rows, base) for rows in _spans(base)), base.examples, classes)

    def of(self, rows: slice, answers: NDArray[Any]) -> FloatArray:
        """Compare the runs in ``rows``, whose answers are given."""
        if self.other is not None:
            return np.asarray(answers != _answers(self.other, rows, self.base), dtype=np.float64)
        # Run r against all others from the counts of classes: no pair is formed.
        same = self.counts[np.arange(answers.shape[1]), answers.astype(np.intp)]
        share: FloatArray = (self.base.runs - same) / (self.base.runs - 1)
        return share


def _spans(given: Predictions) -> Iterator[slice]:
    step = max(1, BLOCK_CELLS // given.examples)
    yield from (slice(start, min(start + step, given.runs)) for start in range(0, given.runs, step))


def _answers(given: Predictions, rows: slice, base: Predictions) -> NDArray[Any]:
    """Predicted classes of some runs, numbered as in ``base``; 0/1 errors where that is all."""
    if not base.has_classes:
        return given.errors_of(rows)
    part = replace(given, values=np.asarray(given.values[rows]), run_ids=None, seeds=None)
    codes = np.concatenate([block for _, block in part.label_blocks()])
    if given.classes == base.classes:
        return codes
    if given.classes is None or base.classes is None:
        raise InputError("twins and reference must both have class names, or neither.")
    numbers = {name: i for i, name in enumerate(base.classes)}
    table = [numbers.get(c, len(numbers) + i) for i, c in enumerate(given.classes)]
    return np.asarray(np.array(table)[codes.astype(np.intp)])


def cross(base: Predictions, twin: Predictions, seeds: SeedDisagreement, groups: NDArray[np.int64] | None) -> Crossed:
    """Compare each run with its twin and with other seeds, cell by cell."""
    crossed = Crossed(base.runs, base.examples, 2, groups)
    for rows in _spans(base):
        answers = _answers(base, rows, base)
        apart = (answers != _answers(twin, rows, base)).astype(np.float64)
        crossed.add(rows.start, [apart, seeds.of(rows, answers)])
    return crossed


# ---- Means over runs × examples with both sampled: several quantities measured in each cell.


class Crossed:
    """Means by run and totals by example (or group) of several quantities, and their products.

    Parameters
    ----------
    runs, examples : int
        The size of the table.
    count : int
        Quantities in each cell.
    groups : ndarray of int, shape (examples,), optional
        Group of each example, numbered from 0; groups are sampled whole.
    """

    def __init__(self, runs: int, examples: int, count: int, groups: NDArray[np.int64] | None = None) -> None:
        self.runs, self.examples = runs, examples
        self._sampled = SamplingUnits(examples, groups)
        self.sizes = self._sampled.sizes
        self.units = len(self.sizes)
        self.by_run = np.zeros((count, runs))
        self.by_unit = np.zeros((count, self.units))
        self._products = np.zeros((count, count))

    @property
    def means(self) -> FloatArray:
        """Mean of each quantity over all cells."""
        values: FloatArray = self.by_run.mean(axis=1)
        return values

    def add(self, start: int, blocks: Sequence[NDArray[Any]]) -> None:
        """Take in some runs from ``start`` on: one block per quantity."""
        totals = [self._sampled.totals(block) for block in blocks]
        for i, total in enumerate(totals):
            self.by_run[i, start : start + len(total)] = total.sum(axis=1) / self.examples
            self.by_unit[i] += total.sum(axis=0) / self.runs
            for j, other in enumerate(totals):
                self._products[i, j] += float(np.vdot(total, other))

    def noise(self) -> FloatArray:
        """Covariances of the means of a run that come from its own answers to these examples."""
        runs, n = self.runs, self.examples
        apart = (self._products - runs * self.by_unit @ self.by_unit.T) / (runs - 1) / n**2
        weight = float((self.sizes**2).sum()) / n**2
        values: FloatArray = (apart - weight * np.atleast_2d(np.cov(self.by_run))) / (1 - weight)
        return values


class CrossedMean:
    """Weighted sum of means with its error, runs and examples both counted as sampled.

    ``run_weights`` say how far the sum moves with the mean of one run: the weights themselves,
    or twice as far where a quantity is a mean over pairs of the same runs.
    """

    def __init__(self, crossed: Crossed, weights: Sequence[float], run_weights: Sequence[float]) -> None:
        w, u = np.asarray(weights), np.asarray(run_weights)
        runs = crossed.runs
        self.runs, self.units = runs, crossed.units
        self.value = float(w @ crossed.means)
        away = w @ (crossed.by_unit - np.outer(crossed.means, crossed.sizes))
        by_run = float(np.var(u @ crossed.by_run, ddof=1)) / runs
        by_unit = float(cluster_variance(away, crossed.sizes))
        shared = max(0.0, float(u @ crossed.noise() @ u)) / runs
        self.variance = max(by_run, by_unit, by_run + by_unit - shared)
        degrees = np.array([runs - 1.0, cluster_degrees(crossed.sizes)])
        self.degrees = min(satterthwaite(self.variance, np.array([by_run, by_unit]), degrees), 1e9)

    def rate(self, level: float) -> Interval:
        """The interval of a rate: that of as many independent answers as have this variance.

        Clopper and Pearson's with an effective number of answers (Korn and Graubard 1998), fewer
        where the variance is known badly. An end is no nearer to 0 or 1 than :meth:`unseen`.
        """
        p = min(1.0, max(0.0, self.value))
        tail = (1 - level) / 2
        most = self.runs * self.units
        # As many independent answers as would have this variance; the t factor makes them fewer if it is badly
        # known.
        answers = min(most, p * (1 - p) / self.variance) if self.variance > 0 else most
        answers *= float(ndtri(tail) / stdtrit(self.degrees, tail)) ** 2
        low = _beta(p * answers, (1 - p) * answers + 1, tail)
        high = _beta(p * answers + 1, (1 - p) * answers, 1 - tail)
        return Interval(p, min(low, 1 - self.unseen(level)), max(high, self.unseen(level)), level)

    def unseen(self, level: float) -> float:
        """The largest share of examples (or groups) of which a sample may well hold none."""
        return -math.expm1(math.log((1 - level) / 2) / self.units)


def _beta(a: float, b: float, chance: float) -> float:
    """A quantile of the beta distribution, at its ends where that is all there is."""
    if a <= 0 or b <= 0:
        return 0.0 if a <= 0 else 1.0
    return float(betaincinv(a, b, chance))


def _fraction(crossed: Crossed, weight: float, level: float) -> Interval:
    """The ratio of the two means, linearised: what they share cancels."""
    twins, seeds = crossed.means
    if seeds == 0:
        return Interval(math.nan, 0.0, math.inf, level)
    # Linearised (Fieller's first order): the numerator minus ratio × denominator has mean 0.
    ratio = float(twins / seeds)
    gap = CrossedMean(crossed, (1.0, -ratio), (1.0, -ratio * weight))
    half = float(stdtrit(gap.degrees, (1 + level) / 2)) * math.sqrt(gap.variance) / float(seeds)
    high = max(ratio + half, gap.unseen(level) / float(seeds))
    return Interval(ratio, max(0.0, ratio - half), high, level)
