"""How many runs to train: to see a difference, or to see that true error varies."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from curvewise.errors import InputError
from curvewise.types import Interval, check_level
from curvewise.variance._power import DifferencePower, VariancePower, fewest_runs
from curvewise.variance._spread import Known, difference_power, noise_of
from curvewise.variance.decomposition import VarianceDecomposition
from curvewise.variance.run_plan import RunPlan

STEPS = (1, 2, 3, 5)
TARGETS = ("distribution", "test set")


def plan_runs(
    *,
    difference: float | None = None,
    distribution_std: float | None = None,
    pilot: VarianceDecomposition
    | tuple[VarianceDecomposition, VarianceDecomposition]
    | None = None,
    test_set_std: float | None = None,
    independent_std: float | None = None,
    examples: int | None = None,
    disagreement: float | None = None,
    power: float = 0.8,
    level: float = 0.95,
    paired: bool = False,
    correlation: float | None = None,
    target: str = "distribution",
    runs_max: int = 100_000,
) -> RunPlan:
    """Plan how many runs to train.

    Ask one of two questions. ``difference=0.002``: how many runs of each of two trainings show
    that their errors differ by 0.2 points? ``distribution_std=0.0005``: how many runs of one
    training show that its true error varies between runs by that much? What is known of the
    variance comes from a ``pilot`` (a few runs, decomposed) or from numbers.

    The difference of two trainings with R runs each on n examples has the variance
    σ_A²/R + σ_B²/R + ω²/n: σ is the standard deviation of test error between runs, ω² the
    variance between examples of the difference of their error rates. More runs do not make the
    last part smaller. For ``target="test set"`` it is left out.

    A variance of true error counts as seen where the lower end of its F interval is above 0. That
    takes more runs than a one-sided test at ``1 - level``, such as Cochran's Q, would.

    Parameters
    ----------
    difference : float
        The true difference of errors that should be seen: 0.002 for 0.2 points.
    distribution_std : float
        Instead: the standard deviation of true error that should be told from 0.
    pilot : VarianceDecomposition or two of them
        Of runs that exist already: of one training, or of both on the same test set.
    test_set_std, independent_std : float
        Without a pilot: standard deviation of test error between runs, and what independent
        errors alone would give. For a difference the first is needed, for a variance the second.
    examples : int
        Size of the test set; a pilot knows it.
    disagreement : float
        For a difference on the distribution, where there are not two pilots: the share of
        examples that one training usually gets right and the other usually wrong. By default the
        worst case: the two find unrelated examples hard.
    power : float
        Chance of seeing what is there: that the interval excludes 0.
    level : float
        Coverage of that interval.
    paired : bool
        Whether the runs of both trainings come in pairs that share seeds.
    correlation : float
        Of the test errors of such pairs; by default from two pilots with as many runs, else 0.
    target : {"distribution", "test set"}
        Whether the difference should be shown for new examples, or for this test set only.
    runs_max : int
        More runs than this are out of the question.

    Examples
    --------
    >>> plan = plan_runs(difference=0.002, test_set_std=0.002, target="test set")
    >>> plan.runs, round(plan.power_at(17), 3)
    (17, 0.807)
    """
    check_level(level)
    known = Known(
        pilot, test_set_std, independent_std, examples, disagreement, correlation, paired, target
    )
    _check(difference, distribution_std, power, target, runs_max)
    if difference is not None:
        return _plan_difference(known, abs(difference), power, level, runs_max)
    assert distribution_std is not None
    noise, assumed = noise_of(known)
    size = known.size
    model = VariancePower(noise, distribution_std, size or 1e9, level)
    runs = _needed(model, distribution_std, power, runs_max)
    plan = _plan("variance", distribution_std, model, runs, power, runs_max)
    return replace(plan, assumptions=tuple(assumed), unit=known.unit, examples=size)


def _plan_difference(
    known: Known, gap: float, power: float, level: float, runs_max: int
) -> RunPlan:
    model, assumed = difference_power(known, level)
    runs = _needed(model, gap, power, runs_max)
    limits = None
    if known.pilots:
        ends = [difference_power(known, level, end)[0] for end in ("low", "high")]
        found = [_needed(m, gap, power, runs_max) for m in (model, *ends)]
        estimate, low, high = (math.inf if r is None else float(r) for r in found)
        limits = Interval(estimate, low, high, level)
    plan = _plan("difference", gap, model, runs, power, runs_max)
    wanted = None
    if runs is None and model.example_part:
        wanted = model.examples_needed(gap, power, runs_max)
    return replace(
        plan,
        runs_interval=limits,
        examples_needed=wanted,
        target=known.target,
        paired=known.paired,
        examples=known.size,
        assumptions=tuple(assumed),
        unit=known.unit,
    )


def _needed(
    model: DifferencePower | VariancePower, effect: float, power: float, most: int
) -> int | None:
    return fewest_runs(lambda runs: model.power(effect, runs), power, most)


def _plan(
    question: str,
    effect: float,
    model: DifferencePower | VariancePower,
    runs: int | None,
    power: float,
    runs_max: int,
) -> RunPlan:
    most = min(runs_max, max(100, 10 * runs if runs else 1000))
    steps = {s * 10**k for k in range(12) for s in STEPS if 2 <= s * 10**k <= most}
    table = np.array(sorted(steps | ({runs} if runs else {runs_max})), dtype=np.int64)
    rows = table.tolist()
    widths = np.array([model.half_width(r) for r in rows])
    after = np.array([model.half_width(r + 1) for r in rows])
    with np.errstate(invalid="ignore"):
        narrower = np.where(widths > 0, 1 - after / widths, 0.0)
    return RunPlan(
        question=question,
        effect=effect,
        runs=runs,
        runs_interval=None,
        examples_needed=None,
        runs_max=runs_max,
        power=power,
        level=model.level,
        target="distribution",
        paired=False,
        examples=None,
        table_runs=table,
        table_power=np.array([model.power(effect, r) for r in rows]),
        table_detectable=np.array([model.detectable(power, r) for r in rows]),
        table_standard_error=np.array([model.standard_error(r) for r in rows]),
        table_half_width=widths,
        table_one_more=narrower,
        assumptions=(),
        unit="fraction",
        warnings=(),
        _model=model,
    )


def _check(
    difference: float | None, std: float | None, power: float, target: str, runs_max: int
) -> None:
    if (difference is None) == (std is None):
        raise InputError(
            "a plan answers one question at a time: pass difference= (between two trainings) or"
            " distribution_std= (to be told from 0)."
        )
    effect = std if difference is None else abs(difference)
    if effect is None or not 0 < effect < math.inf:
        name = "distribution_std" if difference is None else "difference"
        raise InputError(f"{name}={effect} must be a number other than 0, such as 0.002.")
    if not 0 < power < 1:
        raise InputError(f"power={power} must lie between 0 and 1, such as 0.8.")
    if target not in TARGETS:
        raise InputError(f"target={target!r} is not known: use one of {', '.join(TARGETS)}.")
    if runs_max < 2:
        raise InputError(f"runs_max={runs_max} must be at least 2.")
