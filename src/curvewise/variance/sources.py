"""Which source of randomness makes runs differ: initial weights, data order, augmentation."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.stats import holm
from curvewise.types import FloatArray, Interval, Predictions, Result, check_level
from curvewise.variance.anova import Split
from curvewise.variance.decomposition import VarianceDecomposition
from curvewise.variance.ratio import DRAWS, VarianceRatio, measure_split, variance_ratio
from curvewise.variance.totals import Totals
from curvewise.variance.variances import observed_std, tail_notes, true_std
from curvewise.variance.wording import said_interval, said_pvalue


@dataclass(frozen=True, eq=False)
class SourceShares(Result):
    """How much runs differ when only one source of randomness varies.

    Tuples have one entry per source, in the order of ``sources``.

    Attributes
    ----------
    sources : tuple of str
        What alone was varied.
    baseline : str
        What varies together: the experiment that the shares are of.
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
        What may be missing from a share that suffices.
    unit : {"fraction", "loss"}
        Of the standard deviations.
    """

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
    _run_errors: Mapping[str, FloatArray]

    @property
    def run_errors(self) -> Mapping[str, FloatArray]:
        """Test error of each run, by source; the baseline's among them."""
        return self._run_errors

    @property
    def one_suffices(self) -> bool | None:
        """Whether any one source alone gives as much variance; None where that is unclear."""
        if all(v in ("suffices", "more") for v in self.verdicts):
            return True
        return False if "less" in self.verdicts else None

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per source, the baseline first."""
        base = [self.baseline_test_set_std, self.baseline_distribution_std]
        whole = Interval(1.0, 1.0, 1.0, self.level)
        parts = {
            "test-set std": [base[0], *self.test_set_std],
            "test-set share": [whole, *self.test_set_share],
            "distribution std": [base[1], *self.distribution_std],
            "distribution share": [whole, *self.distribution_share],
        }
        table: dict[str, Sequence[Any]] = {
            "varied": [self.baseline, *self.sources],
            "runs": [self.baseline_runs, *self.runs],
        }
        for name, intervals in parts.items():
            table[name] = [i.estimate for i in intervals]
            table[f"{name} low"] = [i.low for i in intervals]
            table[f"{name} high"] = [i.high for i in intervals]
        table["p"] = [math.nan, *self.pvalues]
        table["verdict"] = ["", *self.verdicts]
        return table

    def summary(self) -> str:
        """The shares in a few sentences."""
        lines = [
            f"With everything varied ({self.baseline}, {self.baseline_runs:,} runs) the standard"
            " deviation between runs is"
            f" {said_interval(self.baseline_test_set_std, self.unit)} on this test set and"
            f" {said_interval(self.baseline_distribution_std, self.unit)} on the distribution."
        ]
        for i, name in enumerate(self.sources):
            lines.append(
                f"Varying only {name} ({self.runs[i]:,} runs) gives"
                f" {_percent(self.test_set_share[i])} of the former"
                f" ({said_pvalue(self.pvalues[i])} after Holm) and"
                f" {_percent(self.distribution_share[i])} of the latter: {self._meaning(i)}."
            )
        whole = {
            True: "Any one source suffices to make runs differ as much as all together.",
            False: "One source alone does not always make runs differ as much as all together.",
            None: "Whether one source suffices is not settled by these runs.",
        }[self.one_suffices]
        return " ".join([*lines, whole, *(f"Beware: {w}" for w in self.warnings)])

    def _meaning(self, i: int) -> str:
        return {
            "suffices": f"alone it suffices (at least {1 - self.margin:.0%} of the whole)",
            "less": "less than the whole",
            "more": "more than the whole",
            "unclear": "too few runs to tell whether it suffices",
        }[self.verdicts[i]]


def measure_sources(
    predictions: Mapping[str, Predictions | VarianceDecomposition | ArrayLike],
    labels: ArrayLike | None = None,
    *,
    baseline: str = "all",
    margin: float = 0.1,
    kind: str | None = None,
    axes: Sequence[str] | None = None,
    groups: ArrayLike | None = None,
    level: float = 0.95,
    draws: int = DRAWS,
    rng: int | np.random.Generator = 0,
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
        For the intervals of shares on the distribution.
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
    _check(predictions, baseline, margin)
    check_level(level)
    options = {"kind": kind, "axes": axes, "groups": groups}
    measured = {
        str(name): measure_split(given, labels, name, **_asked(given, options))
        for name, given in predictions.items()
    }
    _check_one_test_set({name: totals for name, (totals, _) in measured.items()})
    generator = np.random.default_rng(rng)
    base = measured[baseline]
    ratios = {
        name: variance_ratio(
            split, base[1], (totals.run, base[0].run), level=level, draws=draws, rng=generator
        )
        for name, (totals, split) in measured.items()
        if name != baseline
    }
    return _result(measured, ratios, baseline, margin, level)


def _asked(given: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """Options for arrays; Predictions already know their kind and axes."""
    known = ("kind", "axes") if isinstance(given, Predictions) else ()
    return {name: value for name, value in options.items() if name not in known}


def _result(
    measured: Mapping[str, tuple[Totals, Split]],
    ratios: Mapping[str, VarianceRatio],
    baseline: str,
    margin: float,
    level: float,
) -> SourceShares:
    pvalues = holm([r.test_set_pvalue for r in ratios.values()])
    notes = [note for name, (t, _) in measured.items() for note in tail_notes(name, t.run)]
    for text in notes:
        warnings.warn(text, CurvewiseWarning, stacklevel=3)
    totals, split = measured[baseline]
    unit = totals.unit
    return SourceShares(
        sources=tuple(ratios),
        baseline=baseline,
        runs=tuple(measured[name][0].runs for name in ratios),
        baseline_runs=totals.runs,
        examples=totals.examples,
        test_set_std=tuple(observed_std(measured[name][1], level, unit) for name in ratios),
        distribution_std=tuple(true_std(measured[name][1], level, unit) for name in ratios),
        baseline_test_set_std=observed_std(split, level, unit),
        baseline_distribution_std=true_std(split, level, unit),
        test_set_share=tuple(r.test_set for r in ratios.values()),
        distribution_share=tuple(r.distribution for r in ratios.values()),
        pvalues=tuple(pvalues.tolist()),
        verdicts=tuple(
            _verdict(r.test_set, p, margin, level)
            for r, p in zip(ratios.values(), pvalues, strict=True)
        ),
        margin=margin,
        unit=unit,
        level=level,
        warnings=tuple(notes),
        _run_errors={name: t.run for name, (t, _) in measured.items()},
    )


def _verdict(share: Interval, pvalue: float, margin: float, level: float) -> str:
    differs = pvalue < 1 - level
    if differs and share.estimate > 1:
        return "more"
    if share.low >= 1 - margin:
        return "suffices"
    return "less" if differs else "unclear"


def _check(predictions: Any, baseline: str, margin: float) -> None:
    if not isinstance(predictions, Mapping) or len(predictions) < 2:
        raise InputError(
            "predictions must map names to runs: {'all': …, 'init': …}, the baseline and at least"
            " one source."
        )
    if baseline not in predictions:
        raise InputError(
            f"baseline={baseline!r} is not among {', '.join(map(repr, predictions))}: pass the name"
            " under which everything varies."
        )
    if not 0 < margin < 1:
        raise InputError(f"margin={margin} must lie between 0 and 1, such as 0.1.")


def _check_one_test_set(totals: Mapping[str, Totals]) -> None:
    sizes = {name: (t.examples, t.binary) for name, t in totals.items()}
    if len(set(sizes.values())) > 1:
        found = ", ".join(f"{name} has {n:,}" for name, (n, _) in sizes.items())
        raise InputError(
            f"predictions are not of one test set and kind: {found} examples. Shares compare runs"
            " on the same examples."
        )


def _percent(share: Interval) -> str:
    if math.isnan(share.estimate):
        return "an unknown share"
    low, high = (f"{100 * x:.0f}%" if math.isfinite(x) else "∞" for x in share)
    estimate = f"{100 * share.estimate:.0f}%" if math.isfinite(share.estimate) else "∞"
    return f"{estimate} [{low}, {high}]"
