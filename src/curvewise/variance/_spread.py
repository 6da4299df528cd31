"""What is known of the variance of two trainings before their runs are made."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from curvewise.errors import InputError
from curvewise.variance._power import DifferencePower
from curvewise.variance.decomposition import VarianceDecomposition


@dataclass(frozen=True)
class Known:
    """The arguments of ``plan_runs`` that say how much runs and examples vary."""

    pilot: Any
    test_set_std: float | None
    independent_std: float | None
    examples: int | None
    disagreement: float | None
    correlation: float | None
    paired: bool
    target: str

    def __post_init__(self) -> None:
        given = self.pilot if isinstance(self.pilot, tuple | list) else (self.pilot,)
        if self.pilot is not None and (
            len(given) > 2 or not all(isinstance(p, VarianceDecomposition) for p in given)
        ):
            raise InputError("pilot must be what decompose_variance returns, or a pair of such.")
        for name in ("test_set_std", "independent_std", "examples"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise InputError(f"{name}={value} must be a number above 0.")
            if value is not None and self.pilot is not None:
                raise InputError(f"{name}= is known from pilot=: leave one of them out.")
        if self.disagreement is not None and not 0 <= self.disagreement <= 1:
            raise InputError(f"disagreement={self.disagreement} must lie between 0 and 1.")
        if self.correlation is not None and (not self.paired or not -1 < self.correlation < 1):
            raise InputError(
                f"correlation={self.correlation} is for paired=True and lies between −1 and 1."
            )
        if len(self.pilots) == 2 and self.pilots[0].examples != self.pilots[1].examples:
            raise InputError("pilot: the two are not of one test set; they differ in examples.")

    @property
    def pilots(self) -> tuple[VarianceDecomposition, ...]:
        """None, one or two decompositions."""
        if self.pilot is None:
            return ()
        return tuple(self.pilot) if isinstance(self.pilot, tuple | list) else (self.pilot,)

    @property
    def size(self) -> int | None:
        """Examples in the test set, or groups of them."""
        if self.pilots:
            return self.pilots[0].groups or self.pilots[0].examples
        return self.examples

    @property
    def unit(self) -> str:
        """Of errors."""
        return self.pilots[0].unit if self.pilots else "fraction"


def noise_of(known: Known) -> tuple[float, list[str]]:
    """The variance of test error that independent errors give, and what was assumed."""
    if known.pilots:
        noise = known.pilots[0]._split.noise
    elif known.independent_std is not None:
        noise = known.independent_std**2
    else:
        raise InputError(
            "distribution_std= needs pilot=, or independent_std=: the standard deviation that the"
            " test error would have if examples erred independently."
        )
    if noise <= 0:
        raise InputError("pilot shows no variation within examples: nothing can be planned on it.")
    return noise, ["run effects are normal", "a variance is seen where its interval excludes 0"]


def difference_power(
    known: Known, level: float, end: str = "estimate"
) -> tuple[DifferencePower, list[str]]:
    """The power of a comparison, and what was assumed.

    ``end`` takes the pilot's standard deviations at their estimate, "low" or "high" limit.
    """
    variances, noise, assumed = _between_runs(known, end)
    if known.paired:
        r, how = _correlation(known)
        scale = sum(variances) - 2 * r * math.sqrt(variances[0] * variances[1])
        noise *= scale / sum(variances) if sum(variances) else 1.0
        variances = (scale,)
        assumed.append(how)
    if known.target == "test set":
        return DifferencePower(variances, 0.0, noise, known.size or 1e9, level), assumed
    spread, how = _between_examples(known)
    if known.size is None:
        raise InputError(
            "target='distribution' needs examples=: the size of the test set. For this test set"
            " only, pass target='test set'."
        )
    return DifferencePower(variances, spread, noise, known.size, level), [*assumed, how]


def _between_runs(known: Known, end: str) -> tuple[tuple[float, ...], float, list[str]]:
    """Variances of test error of a and of b, and what of their sum is noise."""
    if not known.pilots:
        if known.test_set_std is None:
            raise InputError(
                "difference= needs pilot=, or test_set_std=: the standard deviation of test error"
                " between runs."
            )
        one = known.test_set_std**2
        noise = 2 * min(one, (known.independent_std or 0.0) ** 2)
        return (one, one), noise, ["both trainings vary alike between runs"]
    stds = [getattr(p.test_set_interval, end) for p in known.pilots]
    shares = [
        min(1.0, p._split.noise / p._split.test_set) if s else 0.0
        for p, s in zip(known.pilots, stds, strict=True)
    ]
    assumed = []
    if len(stds) == 1:
        stds, shares = stds * 2, shares * 2
        assumed.append("the other training varies between runs like the pilot")
    noise = sum(s**2 * share for s, share in zip(stds, shares, strict=True))
    return (stds[0] ** 2, stds[1] ** 2), noise, assumed


def _between_examples(known: Known) -> tuple[float, str]:
    """Variance between examples (or groups) of the difference of error rates."""
    if known.disagreement is not None:
        return known.disagreement, (
            f"the trainings judge {known.disagreement:.1%} of examples differently, whatever the"
            " seed"
        )
    if len(known.pilots) == 2:
        return _example_gap(*known.pilots), "the pilots show how examples differ"
    if known.pilots:
        worst = 2 * max(0.0, _example_variance(known.pilots[0]))
        return worst, (
            "the two trainings find unrelated examples hard, which is the worst case (say"
            " disagreement=, or pass pilots of both)"
        )
    raise InputError(
        "target='distribution' needs disagreement= (the share of examples that one training usually"
        " gets right and the other usually wrong) or pilot=. For this test set only, pass"
        " target='test set'."
    )


def _unit_means(pilot: VarianceDecomposition, values: np.ndarray[Any, Any]) -> Any:
    """Totals by group in units of the mean group; the values themselves without groups."""
    groups = pilot._totals.groups
    if groups is None:
        return values
    return np.bincount(groups, weights=values - values.mean()) * pilot._totals.units / len(values)


def _example_variance(pilot: VarianceDecomposition) -> float:
    if pilot.groups is None:
        return float(pilot._split.example)
    return float(np.var(_unit_means(pilot, pilot.example_errors), ddof=1))


def _example_gap(a: VarianceDecomposition, b: VarianceDecomposition) -> float:
    """What of the variance of the difference is not the runs that the pilots happened to have."""
    gap = float(np.var(_unit_means(a, a.example_errors - b.example_errors), ddof=1))
    size = a.groups or a.examples
    by_runs = sum(p._split.noise * size / p.runs for p in (a, b))
    return max(0.0, gap - by_runs)


def _correlation(known: Known) -> tuple[float, str]:
    if known.correlation is not None:
        return known.correlation, f"paired runs correlate by {known.correlation:g}"
    if len(known.pilots) == 2 and known.pilots[0].runs == known.pilots[1].runs > 2:
        one, two = (p.run_errors for p in known.pilots)
        if one.std() and two.std():
            r = float(np.corrcoef(one, two)[0, 1])
            return min(r, 0.99), f"paired runs correlate by {r:.2f}, as in the pilots"
    return 0.0, "paired runs do not correlate"
