"""Plans: sizes to train next, and how many runs, to narrow an interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

from curvewise.errors import InputError, arg
from curvewise.learning.curve import LearningCurve, check_size, check_sizes_to_predict
from curvewise.learning.profile import SLOPE_STD
from curvewise.text import as_count, format_count, format_level, format_number, format_value
from curvewise.types.results import FloatArray, Result, Unit, check_level, check_whole


@dataclass(frozen=True, eq=False)
class SizePlan(Result):
    """Runs to add so that the interval of the error at N shrinks.

    Attributes
    ----------
    learner : str
    at : float
        N.
    n : ndarray, shape (S,)
        Candidate sizes.
    runs : ndarray, shape (S,)
        Runs there are at each.
    add : ndarray, shape (S,)
        Runs to add.
    width_now, width_then : float
        Expected width of the confidence interval of e_N before and after, in the unit of the fit.
    samples : float
        Training samples that the added runs see in total: what they cost.
    reached : bool
        Whether the asked-for width is reached within ``max_runs``.
    """

    learner: str
    at: float
    n: FloatArray
    runs: FloatArray
    add: FloatArray
    width_now: float
    width_then: float
    samples: float
    reached: bool
    level: float
    unit: Unit
    warnings: tuple[str, ...] = ()

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per size."""
        columns = {"n": self.n, "runs": self.runs, "add": self.add}
        return {name: [as_count(v) for v in values] for name, values in columns.items()}

    def sentences(self) -> str:
        """State what to train, and what it brings."""
        steps = [
            f"{format_count(int(k), 'run')} at n = {format_number(float(size))}"
            for size, k in zip(self.n, self.add, strict=True)
            if k > 0
        ]
        now, then = (format_value(width, self.unit.name) for width in (self.width_now, self.width_then))
        word = self.unit.quantity
        runs = f"add {' and '.join(steps)}" if steps else "add no runs"
        return (
            f"{self.learner}: to narrow the {format_level(self.level)} interval of the {word} at n ="
            f" {format_number(self.at)} from a width of {now} to {then}, {runs}"
            f" ({format_number(self.samples)} training examples in all)."
            " The new runs must differ from the old in training data or seed."
        )


def plan_sizes(
    curve: LearningCurve,
    *,
    at: float | None = None,
    factor: float = 0.5,
    sizes: ArrayLike | None = None,
    max_runs: int = 500,
    level: float = 0.95,
) -> SizePlan:
    """Choose sizes and numbers of runs that narrow the interval of e_N, cheapest first.

    The variance of e_N follows from the information that runs carry about α, η and γ at the fitted
    values (c-optimal design); runs are added one at a time where they narrow the interval most
    per training sample.

    Parameters
    ----------
    curve : LearningCurve
        A fitted power law.
    at : float, optional
        N; the largest size by default.
    factor : float
        Wanted width relative to the present one.
    sizes : array_like, optional
        Candidate sizes; by default those measured. Name larger ones to allow them.
    max_runs : int
        Give up after this many.
    level : float
        Coverage.
    """
    check_level(level)
    if not isinstance(curve, LearningCurve):
        raise InputError(f"Runs can be planned for a power law only: fit with {arg('form', 'power')}.")
    if not 0 < factor < 1:
        raise InputError("must lie between 0 and 1; 0.5 halves the width.", argument="factor", value=factor)
    max_runs = check_whole(max_runs, "max_runs", 1)
    target = curve.largest_n if at is None else check_size(at, "at")
    candidates = curve.n if sizes is None else np.unique(check_sizes_to_predict(sizes))
    if len(candidates) == 0 or not np.isfinite(candidates).all():
        raise InputError("must name at least one finite training size.", argument="sizes")
    if len(curve.n) < curve.parameters or curve.runs.sum() <= curve.parameters:
        raise InputError(
            f"curve has {format_count(int(curve.runs.sum()), 'run')} at {format_count(len(curve.n), 'size')}, too few"
            f" for an interval of {curve.parameters} parameters that could be narrowed: first train"
            f" at {curve.parameters} sizes or more, one of them twice."
        )
    add, widths = _greedy(curve, target, candidates, factor, max_runs, level)
    have = dict(zip(curve.n.tolist(), curve.runs.tolist(), strict=True))
    reached = widths[1] <= factor * widths[0] * (1 + 1e-9)
    note = f"the width asked for is not reached with {max_runs} runs at these sizes; allow larger."
    return SizePlan(
        learner=curve.learner,
        at=target,
        n=candidates,
        runs=np.array([have.get(float(s), 0.0) for s in candidates]),
        add=add,
        width_now=widths[0] / curve._scale.factor,
        width_then=widths[1] / curve._scale.factor,
        samples=float(add @ candidates),
        reached=reached,
        level=level,
        unit=curve.unit,
        warnings=() if reached else (note,),
    )


def _greedy(
    curve: LearningCurve, target: float, candidates: FloatArray, factor: float, max_runs: int, level: float
) -> tuple[FloatArray, tuple[float, float]]:
    sizes = np.union1d(curve.n, candidates)
    there = np.searchsorted(sizes, candidates)
    runs = np.zeros(len(sizes))
    runs[np.searchsorted(sizes, curve.n)] = curve.runs
    gradient, goal = _gradients(curve, sizes), _gradients(curve, np.array([target]))[0]
    weight = 1.0 / curve._run_noise.variance(sizes)

    def width(runs: FloatArray) -> float:
        """Expected width with so many runs at each size."""
        information = (gradient * (runs * weight)[:, None]).T @ gradient
        # A whisper of a prior keeps two-size designs solvable.
        information += np.diag(1e-9 * np.maximum(np.diag(information), 1e-9))
        direction = np.linalg.solve(information, goal)
        freedom = max(runs.sum() - curve.parameters, 1.0)
        if curve.constants.noise != "paper":
            share = runs * weight * (gradient @ direction) ** 2
            freedom = expected_freedom(sizes, runs, share, freedom)
        half = float(stdtrit(freedom, 0.5 + level / 2.0)) * np.sqrt(max(goal @ direction, 0.0))
        return 2.0 * float(half)

    # Greedy: the run that narrows the interval most per training sample it costs, in relative width.
    start = now = width(runs)
    add = np.zeros(len(candidates))
    while now > factor * start and add.sum() < max_runs:
        options = [width(runs + (np.arange(len(sizes)) == i)) for i in there]
        gain = (np.log(now) - np.log(options)) / candidates
        best = int(np.argmax(gain))
        # A single run can widen the expected interval, as it moves the size at which the noise is known best: then
        # take the least bad.
        if gain[best] <= 0:
            best = int(np.argmin(options))
        runs[there[best]] += 1
        add[best] += 1
        now = options[best]
    return add, (start, now)


def _gradients(curve: LearningCurve, n: FloatArray) -> FloatArray:
    """∂e(n)/∂(α, η[, δ][, γ]) at the fit, in points, shape (S, parameters)."""
    _, eta, delta = curve._points
    reference = curve.largest_n
    x = (n / reference) ** curve.gamma
    # In units of the largest size, so that the columns are of one order of magnitude.
    h, d = eta * reference**curve.gamma, delta * reference ** (2 * curve.gamma)
    columns = [np.ones_like(n), x]
    if curve._terms == 3:
        columns.append(x * x)
    if curve._gamma_is_free:
        columns.append((h * x + 2 * d * x * x) * np.log(n / reference))
    return np.stack(columns, axis=1)


def expected_freedom(n: FloatArray, runs: FloatArray, share: FloatArray, freedom: float) -> float:
    """Satterthwaite's degrees of freedom that a design gives on average.

    Parameters
    ----------
    n, runs : ndarray, shape (S,)
        Sizes and the number of runs at each.
    share : ndarray, shape (S,)
        What each size contributes to the variance of the quantity.
    freedom : float
        Runs minus parameters.
    """
    replicates = np.maximum(runs - 1.0, 0.0)
    level = replicates + 1e-9
    logs = np.log(n) - (level @ np.log(n)) / level.sum()
    # Half a squared distance per degree of freedom is what a log variance says about b.
    slope_variance = 1.0 / (1.0 / SLOPE_STD**2 + 0.5 * float(replicates @ logs**2))
    apart = float(share @ logs) / max(float(share.sum()), 1e-300)
    return 2.0 / (2.0 / freedom + slope_variance * apart**2)
