"""Many trainings at once: which differences are left when they are looked at together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import InputError
from curvewise.stats import benjamini_hochberg, holm
from curvewise.types import (
    FloatArray,
    Interval,
    Predictions,
    Result,
    Unit,
    as_predictions,
    check_level,
)
from curvewise.types.coercion import distinct_names
from curvewise.variance.compare import SCORES_ONLY, few_runs, no_spread, thin_evidence
from curvewise.variance.difference import (
    Difference,
    align_examples,
    check_same_examples,
    check_scores,
    is_scores,
    predictions_difference,
    refuse_hits,
    score_difference,
    score_unit,
    top_of,
    unpaired_difference,
)
from curvewise.variance.tails import FEWEST
from curvewise.variance.totals import Totals, measure_totals
from curvewise.variance.wording import few_groups, mostly_wrong, said, said_interval

ADJUSTMENTS = {"holm": holm, "bh": benjamini_hochberg}


@dataclass(frozen=True, eq=False)
class TrainingComparison(Result):
    """Every pair of several trainings, or each against a baseline.

    Attributes
    ----------
    names : tuple of str
        The trainings, best mean error first.
    errors : ndarray
        Their mean errors, in the order of ``names``; negative scores for unit "score".
    runs : tuple of int
        Their runs.
    pairs : tuple of tuple of str
        Which were compared: a and b.
    differences : tuple of Interval
        Error of a minus error of b. The intervals hold together: all of them cover with
        probability ``level`` or more.
    pvalues, adjusted : ndarray
        By t, before and after the adjustment for their number.
    verdicts : tuple of str
        "a better", "b better" or "undecided", by the adjusted p-values.
    scope : {"distribution", "test set"}
        What the differences are about; the test set where only scores are known.
    baseline : str or None
        Against which all were compared.
    multiplicity : {"holm", "bh"}
        The adjustment.
    """

    names: tuple[str, ...]
    errors: FloatArray
    runs: tuple[int, ...]
    pairs: tuple[tuple[str, str], ...]
    differences: tuple[Interval, ...]
    pvalues: FloatArray
    adjusted: FloatArray
    verdicts: tuple[str, ...]
    scope: str
    baseline: str | None
    multiplicity: str
    unit: str
    level: float
    warnings: tuple[str, ...]

    @property
    def contenders(self) -> tuple[str, ...]:
        """Trainings that are not shown to be worse than any other they were compared with."""
        beaten = {
            pair[verdict == "a better"]
            for pair, verdict in zip(self.pairs, self.verdicts, strict=True)
            if verdict != "undecided"
        }
        return tuple(name for name in self.names if name not in beaten)

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per pair."""
        return {
            "a": [a for a, _ in self.pairs],
            "b": [b for _, b in self.pairs],
            "difference": [d.estimate for d in self.differences],
            "low": [d.low for d in self.differences],
            "high": [d.high for d in self.differences],
            "p": self.pvalues,
            "adjusted p": self.adjusted,
            "verdict": list(self.verdicts),
        }

    def summary(self) -> str:
        """How many differences are real, and who is left."""
        found = sum(v != "undecided" for v in self.verdicts)
        best = self.contenders
        shown = ", ".join(best[:5]) + (f" and {len(best) - 5} more" if len(best) > 5 else "")
        count = f"{len(self.pairs):,} differences" if len(self.pairs) > 1 else "1 difference"
        clear = int(np.argmin(self.adjusted))
        a, b = self.pairs[clear]
        return " ".join(
            [
                f"Of {count} between {len(self.names)} trainings"
                f" {found:,} {'is' if found == 1 else 'are'} shown on the {self.scope} at"
                f" {self.level:.0%} after"
                f" {'Holm' if self.multiplicity == 'holm' else 'Benjamini and Hochberg'}.",
                f"{self.names[0]} has the best mean, {said(abs(self.errors[0]), self.unit)};"
                f" not shown to be worse than another: {shown}.",
                f"The clearest difference is {a} minus {b}:"
                f" {said_interval(self.differences[clear], self.unit)}.",
                *(f"Beware: {w}" for w in self.warnings),
            ]
        )


def compare_trainings(
    trainings: Mapping[str, Predictions | ArrayLike],
    labels: ArrayLike | None = None,
    *,
    kind: str | None = None,
    axes: Sequence[str] | None = None,
    groups: ArrayLike | None = None,
    baseline: str | None = None,
    paired: bool | None = None,
    multiplicity: str = "holm",
    unit: str | None = None,
    higher_is_better: bool | None = None,
    distribution_std: float | None = None,
    level: float = 0.95,
) -> TrainingComparison:
    """Compare several trainings, all pairs or each with a baseline.

    Parameters
    ----------
    trainings : dict of str to Predictions or array_like
        Runs × examples of each, on one test set; or one score per run of each. Of a training with
        one run only these networks are compared: its pairs are undecided.
    labels, kind, axes, groups, paired, unit, higher_is_better, distribution_std
        As in :func:`compare_runs`.
    baseline : str, optional
        Compare each training with this one only.
    multiplicity : {"holm", "bh"}
        Keep the chance of any false finding (Holm), or the share of false ones among the findings
        (Benjamini and Hochberg).
    level : float
        The intervals hold together at this level; a verdict is reached at ``1 - level``.

    Examples
    --------
    >>> losses = {"plain": [3.28, 3.29, 3.27, 3.28, 3.28], "new": [3.21, 3.22, 3.20, 3.2, 3.21]}
    >>> c = compare_trainings(losses, unit="loss")
    >>> c.names[0], c.contenders
    ('new', ('new',))
    """
    check_level(level)
    if not isinstance(trainings, Mapping):
        raise InputError("trainings must be a dict: the name of each training and its runs.")
    named = distinct_names(list(map(str, trainings)), "trainings")
    trainings = dict(zip(named, trainings.values(), strict=True))
    baseline = None if baseline is None else str(baseline).strip()
    if len(trainings) < 2:
        raise InputError("trainings holds fewer than two trainings: there is nothing to compare.")
    if multiplicity not in ADJUSTMENTS:
        raise InputError(f"multiplicity={multiplicity!r} is not known: use 'holm' or 'bh'.")
    if baseline is not None and baseline not in trainings:
        raise InputError(f"baseline={baseline!r} is not among {', '.join(map(repr, trainings))}.")
    if single := [name for name, values in trainings.items() if np.isscalar(values)]:
        raise InputError(
            f"trainings[{single[0]!r}] is one number: each training needs a list of scores, one per"
            " run, two or more of them."
        )
    if any(map(is_scores, trainings.values())):
        for name, values in trainings.items():
            refuse_hits(values, unit, f"trainings[{name!r}]")
        measure = score_unit(unit, higher_is_better)
        read = {name: _scored(name, values, measure) for name, values in trainings.items()}
    else:
        if unit is not None or higher_is_better is not None:
            raise InputError(
                "unit= and higher_is_better= are for one score per run; kind= says what predictions"
                " are."
            )
        options = {"labels": labels, "kind": kind, "axes": axes, "groups": groups}
        read = _with_groups(_read(_aligned(trainings), options))
    pairs = _pairs(list(read), baseline)
    parts = [_difference(read[a], read[b], paired, distribution_std, (a, b)) for a, b in pairs]
    most = top_of(next(iter(read.values())).unit)
    pvalues = np.array([p.decisive.pvalue for p in parts])
    adjusted = ADJUSTMENTS[multiplicity](pvalues)
    means = {name: float(t.errors.mean()) for name, t in read.items()}
    order = sorted(means, key=means.__getitem__)
    return TrainingComparison(
        names=tuple(order),
        errors=np.array([means[name] for name in order]),
        runs=tuple(len(read[name].errors) for name in order),
        pairs=tuple(pairs),
        differences=tuple(p.decisive.interval(1 - (1 - level) / len(pairs), most) for p in parts),
        pvalues=pvalues,
        adjusted=adjusted,
        verdicts=tuple(map(_verdict, parts, adjusted < 1 - level)),
        scope=parts[0].scope,
        baseline=baseline,
        multiplicity=multiplicity,
        unit=read[order[0]].unit,
        level=level,
        warnings=_warnings(parts, read),
    )


@dataclass(frozen=True, eq=False)
class _Training:
    """A training as it was given: errors of its runs, and its predictions where they are known."""

    errors: FloatArray
    unit: str
    predictions: Predictions | None = None
    totals: Totals | None = None


def _scored(name: str, values: Any, unit: Unit) -> _Training:
    if not is_scores(values):
        raise InputError("trainings mixes predictions and scores: pass the same for all.")
    return _Training(check_scores(values, unit, f"trainings[{name!r}]"), unit.name)


def _aligned(trainings: Mapping[str, Any]) -> dict[str, Any]:
    """Examples of all trainings in the order of the first that names them."""
    named = {n: p for n, p in trainings.items() if isinstance(p, Predictions)}
    first = next((n for n, p in named.items() if p.example_ids is not None), None)
    if first is None:
        return dict(trainings)
    return {
        n: align_examples(named[first], p, (first, n)) if n in named else p
        for n, p in trainings.items()
    }


def _read(trainings: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, _Training]:
    read = {}
    for name, values in trainings.items():
        given = as_predictions(values, argument=f"trainings[{name!r}]", directed=True, **options)
        read[name] = _training(given)
    return read


def _training(given: Predictions) -> _Training:
    if given.runs == 1:
        return _Training(given.errors().mean(axis=1), given.unit, given)
    totals = measure_totals(given)
    return _Training(totals.run, given.unit, given, totals)


def _with_groups(read: dict[str, _Training]) -> dict[str, _Training]:
    """Groups that one training brings hold for all: the examples are the same."""
    known = (t.predictions.groups for t in read.values() if t.predictions is not None)
    groups = next((g for g in known if g is not None), None)
    if groups is None:
        return read
    found = {}
    for name, t in read.items():
        if t.predictions is None or t.predictions.groups is not None:
            found[name] = t
        elif t.predictions.examples == len(groups):
            found[name] = _training(replace(t.predictions, groups=groups))
        else:
            found[name] = t  # of another test set, which will be refused
    return found


def _pairs(names: list[str], baseline: str | None) -> list[tuple[str, str]]:
    if baseline is None:
        return list(combinations(names, 2))
    return [(name, baseline) for name in names if name != baseline]


def _difference(
    a: _Training,
    b: _Training,
    paired: bool | None,
    distribution_std: float | None,
    names: tuple[str, str],
) -> Difference:
    if a.predictions is None or b.predictions is None:
        return score_difference(a.errors, b.errors, bool(paired))
    one, two = a.predictions, b.predictions
    unnamed = one.run_ids is None or two.run_ids is None
    if a.totals is not None and b.totals is not None:
        alike = (a.totals.groups is None) == (b.totals.groups is None)
        if (paired is False or (paired is None and unnamed)) and alike:
            check_same_examples(one, two, names)
            return unpaired_difference(a.totals, b.totals)  # which need not be read again
    return predictions_difference(one, two, paired, distribution_std, names)


def _verdict(parts: Difference, shown: bool) -> str:
    if not (shown and parts.conclusive):
        return "undecided"
    return "a better" if parts.decisive.value < 0 else "b better"


def _warnings(parts: list[Difference], read: Mapping[str, _Training]) -> tuple[str, ...]:
    notes = []
    still = [name for name, t in read.items() if len(t.errors) > 1 and np.ptp(t.errors) == 0]
    if still:
        notes.append(no_spread(still))
    worst = max(read.values(), key=lambda t: float(t.errors.mean()))
    notes += mostly_wrong(float(worst.errors.mean()), worst.unit, worst.predictions)
    notes += few_groups(parts[0].groups)
    if parts[0].method == "scores":
        notes.append(SCORES_ONLY)
    unit = next(iter(read.values())).unit
    single = [name for name, t in read.items() if len(t.errors) == 1]
    if single:
        said = ", ".join(single[:5]) + (" …" if len(single) > 5 else "")
        of_one = next(p for p in parts if p.method == "one run")
        notes += [f"{said}: {text}" for text in thin_evidence(of_one, unit)]
    several = [len(t.errors) for t in read.values() if len(t.errors) > 1]
    if several and min(several) < FEWEST:
        notes.append(few_runs(min(several)))
    return tuple(notes)
