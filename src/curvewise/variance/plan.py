"""Plans: how many runs to train, and when to stop training more."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import fdtrc

from curvewise.errors import InputError, Message, arg, either, warn_all
from curvewise.stats.intervals import SampledMean
from curvewise.stats.power import DifferencePower, VariancePower
from curvewise.stats.tests import sequential_design
from curvewise.text import format_interval, format_level, format_size, format_target, format_value, name_decision
from curvewise.types.predictions import Predictions
from curvewise.types.results import FloatArray, Interval, Result, as_number, check_level, check_whole, interval_lists
from curvewise.variance.anova import DisplayUnit, interval_of, measure_totals, read_predictions, run_std
from curvewise.variance.compare import RunComparison
from curvewise.variance.decompose import VarianceDecomposition, decompose_variance, decomposition_of
from curvewise.variance.difference import (
    RunFormat,
    align_examples,
    check_same_examples,
    pair_runs,
    read_pair,
    score_difference,
    share_groups,
    top_of,
)

STEPS = (1, 2, 3, 5)
TARGETS = ("distribution", "test set")
AFFORDABLE = (5, 10, 20, 50, 100, 200, 500, 1000)
"""Runs for which a test set is named where no number of runs is enough on this one: the first two that would do."""
DRAWS = 100_000
"""Simulated experiments behind a plan for stopping."""
UNEQUAL = 2.0
"""Ratio of the standard deviations of two trainings from which their inequality is reported."""
EFFECTS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0)
"""Differences, in standard deviations between runs, for which a plan says what to expect."""
WORST_CASE = (
    "the two trainings find unrelated examples hard, which is the worst case"
    " (give their disagreement, or pilots of both)"
)
"""Assumption of a plan that knows the examples of one training only."""
_PILOT = either("pilot=…", "a FILE of pilot runs")


def plan_runs(
    a: Any = None,
    b: Any = None,
    labels: ArrayLike | PathLike[str] | None = None,
    *,
    difference: float | None = None,
    distribution_std: float | None = None,
    pilot: VarianceDecomposition | tuple[VarianceDecomposition, VarianceDecomposition] | RunComparison | None = None,
    power: float = 0.8,
    level: float = 0.95,
    paired: bool | float = False,
    target: str = "distribution",
    runs_max: int = 100_000,
    **numbers: Unpack[KnownNumbers],
) -> RunPlan:
    """Plan how many runs to train.

    Ask one of two questions. ``difference=0.002``: how many runs of each of two trainings show
    that their errors differ by 0.2 points? ``distribution_std=0.0005``: how many runs of one
    training show that its true error varies between runs by that much? What is known of the
    variance comes from a ``pilot`` (a few runs, or their decomposition) or from numbers. Without
    a question, the plan says which difference as many runs as the pilot has would show.

    The difference of two trainings with R runs each on n examples has the variance
    σ_A²/R + σ_B²/R + ω²/n: σ is the standard deviation of test error between runs, ω² the
    variance between examples of the difference of their error rates. More runs do not make the
    last part smaller. For ``target="test set"`` it is left out.

    A variance of true error counts as seen where the lower end of its F interval is above 0. That
    takes more runs than a one-sided test at ``1 - level``, such as Cochran's Q, would.

    Parameters
    ----------
    a, b : Predictions, array_like, path or VarianceDecomposition, optional
        A pilot: a few runs of one training, or of both on the same test set, as in
        :func:`compare_runs`; or, as ``a`` alone, the comparison that this has made of them. Where that is of
        paired runs, the plan is for pairs. Examples, and paired runs, are matched by name where both have names;
        those of two decompositions by place.
    labels : array_like or path, optional
        True classes of the examples, where ``a`` and ``b`` are predicted classes.
    difference : float
        The true difference of errors that should be seen: 0.002 for 0.2 points.
    distribution_std : float
        Instead: the standard deviation of true error that should be told from 0.
    pilot : VarianceDecomposition or two of them, or RunComparison
        The same by name, decomposed or compared already.
    test_set_std, independent_std : float
        Without a pilot: standard deviation of test error between runs, and what independent
        errors alone would give. For a difference the first is needed, for a variance the second.
    examples : int
        Size of the test set; a pilot knows it.
    disagreement : float
        For a difference on new data, where there are not two pilots: the share of
        examples that one training usually gets right and the other usually wrong. By default the
        worst case: the two find unrelated examples hard.
    power : float
        Chance of seeing what is there: that the interval excludes 0.
    level : float
        Coverage of that interval.
    paired : bool or float
        True if the runs of both trainings come in pairs that share seeds; a number is the correlation of the
        test errors of such pairs, which is by default that of two pilots with as many runs, else 0.
    target : {"distribution", "test set"}
        Show the difference for new examples, or for this test set only.
    runs_max : int
        More runs than this are out of the question.

    Examples
    --------
    >>> plan = plan_runs(difference=0.002, test_set_std=0.002, target="test set")
    >>> plan.runs, round(plan.power_at(17), 3)
    (17, 0.807)
    """
    check_level(level)
    given = [each for each in (a, b) if each is not None]
    if given and pilot is not None:
        raise InputError(f"{arg('pilot')} is given twice: once by name, once without.")
    pilots: Any = pilot
    if isinstance(compared := a if given else pilot, RunComparison):
        if b is not None or labels is not None:
            raise InputError("holds both trainings and their labels: pass nothing beside it.", argument="a")
        pilots, paired = _compared_pilots(compared, level), paired or compared.paired
    elif given:
        pilots = _read_pilots(given, labels, paired is True, level)
    known = Pilot(pilots, paired, target, **numbers)
    detects = difference is None and distribution_std is None and bool(known.pilots)
    if (difference is None) == (distribution_std is None) and not detects:
        raise InputError(
            f"a plan answers one question at a time: pass {arg('difference')} (between two trainings) or"
            f" {arg('distribution_std')} (to be told from 0)."
        )
    if not 0 < power < 1:
        raise InputError("must be a number between 0 and 1, such as 0.8.", argument="power", value=power)
    if target not in TARGETS:
        raise InputError(f"is not known: use one of {', '.join(TARGETS)}.", argument="target", value=target)
    runs_max = check_whole(runs_max, "runs_max", 2)
    # The pilot's standard deviations are uncertain themselves: plan at both of their limits as well.
    sides = ("estimate", "low", "high") if known.pilots and distribution_std is None else ()
    ends = [known.difference_power(level, side)[0] for side in sides]
    detectable, runs = None, None
    if detects:
        runs = min(p.runs for p in known.pilots)
        detectable = interval_of((end.detectable(power, runs) for end in ends), level)
        difference = detectable.estimate
    name = "distribution_std" if difference is None else "difference"
    effect = abs(difference) if difference is not None else distribution_std
    if effect is None or not 0 < effect < math.inf:
        raise InputError("must be a number other than 0, such as 0.002.", argument=name, value=effect)
    model: DifferencePower | VariancePower
    if difference is None:
        model = VariancePower(known.noise(), effect, known.size or 1e9, level)
        assumed = ["run effects are normal", "a variance is seen if its interval excludes 0"]
    else:
        model, assumed = known.difference_power(level)
    warnings = [] if difference is None or detects else _too_large(effect, known.pilots)
    limits, wanted = None, None
    if detectable is None:
        runs = fewest_runs(model, effect, power, runs_max)
        found = (fewest_runs(end, effect, power, runs_max) for end in ends)
        limits = interval_of((math.inf if n is None else n for n in found), level) if ends else None
    if runs is None and isinstance(model, DifferencePower) and model.example_part:
        wanted = _in_examples(model.examples_needed(effect, power, runs_max), known.examples_in_set, known.groups)
    most = min(runs_max, max(100, 10 * (runs or 0)))
    steps = {s * 10**k for k in range(12) for s in STEPS if 2 <= s * 10**k <= most}
    table = np.array(sorted(steps | ({runs} if runs else {runs_max})), dtype=np.int64)
    rows = table.tolist()
    widths = np.array([model.half_width(r) for r in rows])
    after = np.array([model.half_width(r + 1) for r in rows])
    with np.errstate(invalid="ignore"):
        narrower = np.where(widths > 0, 1 - after / widths, 0.0)
    warn_all(warnings)
    return RunPlan(
        question="variance" if difference is None else "difference",
        effect=effect,
        runs=runs,
        runs_interval=limits,
        detectable=detectable,
        examples_needed=wanted,
        runs_max=runs_max,
        power=power,
        level=level,
        target="distribution" if difference is None else target,
        paired=difference is not None and paired is not False,
        examples=known.examples_in_set,
        groups=known.groups,
        table_runs=table,
        table_power=np.array([model.power(effect, r) for r in rows]),
        table_detectable=np.array([model.detectable(power, r) for r in rows]),
        table_standard_error=np.array([model.standard_error(r) for r in rows]),
        table_half_width=widths,
        table_one_more=narrower,
        assumptions=tuple(assumed),
        unit=known.pilots[0].unit if known.pilots else "fraction",
        warnings=tuple(warnings),
        _model=model,
    )


def _too_large(difference: float, pilots: Sequence[VarianceDecomposition]) -> list[str]:
    """Warn of a difference that is no smaller than the errors of the pilots, probably meant in points."""
    if not pilots or pilots[0].unit != "fraction":
        return []
    error = max(p.error.estimate for p in pilots)
    if difference < error:
        return []
    asked, points = format_target(difference, "fraction"), float(f"{difference / 100:.6g}")
    return [
        Message(
            f"A difference of {asked} is no smaller than the error of the pilot, {format_value(error, 'fraction')}: no"
            f" training can be better by so much. Differences are fractions: for {difference:g} points pass"
            f" {arg('difference', points)}."
        )
    ]


def _read_pilots(
    given: Sequence[Any], labels: ArrayLike | PathLike[str] | None, paired: bool, level: float
) -> tuple[VarianceDecomposition, ...]:
    """Decompose one pilot or two, the examples of both in one order, and paired runs, too, where their names say it."""
    read: list[Any] = [p if isinstance(p, VarianceDecomposition) else read_predictions(p, labels) for p in given]
    if len(read) == 2 and all(isinstance(p, Predictions) for p in read):
        a, b = read[0], align_examples(*read)
        check_same_examples(a, b)
        read = share_groups([a, pair_runs(a, b, strict=False)[0] if paired else b])
    return tuple(p if isinstance(p, VarianceDecomposition) else decompose_variance(p, level=level) for p in read)


def _compared_pilots(compared: RunComparison, level: float) -> tuple[VarianceDecomposition, VarianceDecomposition]:
    """Return the decompositions of the two trainings of a comparison."""
    if compared._parts.totals is None:
        raise InputError(
            "compares scores, or a training with one run: a plan needs the predictions of two runs or more of each.",
            argument="pilot",
        )
    one, two = (decomposition_of(totals, level, []) for totals in compared._parts.totals)
    return one, two


@dataclass(frozen=True, eq=False)
class RunPlan(Result):
    """Plan of runs: how many are needed, and the power of other numbers.

    Attributes
    ----------
    question : {"difference", "variance"}
        Question: do two trainings differ, or does true error vary between runs of one.
    effect : float
        The true difference (or standard deviation of true error) that should be seen.
    runs : int or None
        The fewest runs of each training that do; None where ``runs_max`` do not.
    runs_interval : Interval or None
        The same with the pilot's standard deviations at the limits of their intervals; infinite
        where ``runs_max`` would not do. None without a pilot.
    detectable : Interval or None
        Where no question was asked: the difference that as many runs as the pilot has detect, with the
        limits of the pilot's standard deviations.
    examples_needed : int or None
        Where ``runs`` is None because the test set is too small: the fewest examples with which
        ``runs_max`` runs would do, in groups as large as those of the pilot.
    power : float
        The chance of seeing the effect that was asked for: that the interval of the difference
        (or of the standard deviation) excludes 0.
    target : {"distribution", "test set"}
        Where the difference is to be seen. On new data the examples count as sampled.
    paired : bool
        True if run r of one training shares its seeds with run r of the other.
    examples : int or None
        Size of the test set, where it is known.
    groups : int or None
        Number of groups of examples that belong together, where the pilot has some.
    table_runs, table_power : ndarray
        Numbers of runs, and the power of each.
    table_detectable : ndarray
        The effect that is seen with the power asked for.
    table_standard_error, table_half_width : ndarray
        Standard error of the estimate, and half the width of its interval.
    table_one_more : ndarray
        Gain of one more run of each training: the part by which the interval gets narrower.
    assumptions : tuple of str
        Assumptions that were made.
    """

    question: str
    effect: float
    runs: int | None
    runs_interval: Interval | None
    detectable: Interval | None
    examples_needed: int | None
    runs_max: int
    power: float
    level: float
    target: str
    paired: bool
    examples: int | None
    groups: int | None
    table_runs: NDArray[np.int64]
    table_power: FloatArray
    table_detectable: FloatArray
    table_standard_error: FloatArray
    table_half_width: FloatArray
    table_one_more: FloatArray
    assumptions: tuple[str, ...]
    unit: str
    warnings: tuple[str, ...]
    _model: DifferencePower | VariancePower

    def power_at(self, runs: int, effect: float | None = None) -> float:
        """The chance that so many runs of each training show the effect."""
        if runs < 2:
            raise InputError(f"runs={runs}: at least two runs are needed.")
        return self._model.power(self.effect if effect is None else effect, runs)

    def examples_at(self, runs: int) -> int | None:
        """The fewest examples with which so many runs of each training show the difference; None if none would.

        >>> plan = plan_runs(difference=0.01, test_set_std=0.002, examples=1000, disagreement=0.05)
        >>> plan.runs, plan.examples_at(5), plan.examples_at(10)
        (None, 4510, 4192)
        """
        if not isinstance(self._model, DifferencePower) or not self._model.example_part:
            return None
        return _in_examples(self._model.examples_needed(self.effect, self.power, runs), self.examples, self.groups)

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per number of runs.

        ``detectable`` is the difference (or standard deviation) that is seen with the power asked
        for, ``one_more`` by what part one more run of each training makes the interval narrower.
        """
        names = ("runs", "power", "detectable", "standard_error", "half_width", "one_more")
        return {name: getattr(self, f"table_{name}") for name in names}

    def readable(self) -> Mapping[str, Sequence[Any]]:
        """Return one row per number of runs; headings say which effect the power is for, and which power detects."""
        shown = (self.table_detectable, self.table_standard_error, self.table_half_width)
        detected, error, half = (self._in_digits(column.tolist()) for column in shown)
        # The effect as it was given, or in the digits of the table.
        effect = format_target(self.effect, self.unit) if self.detectable is None else self._in_digits([self.effect])[0]
        return {
            "runs": [int(n) for n in self.table_runs],
            f"power for {effect}": [f"{p:.0%}" for p in self.table_power],
            f"{self.power:.0%} power for": detected,
            "std error": error,
            "half-width": half,
            "narrowed by one more": [f"{p:.1%}" if np.isfinite(p) else "–" for p in self.table_one_more],
        }

    def _in_digits(self, values: Sequence[float]) -> list[str]:
        """Write numbers with one number of decimals, which gives the smallest standard error two digits."""
        scale, sign = (100.0, "%") if self.unit == "fraction" else (1.0, "")
        smallest = scale * float(np.min(self.table_standard_error[self.table_standard_error > 0], initial=np.inf))
        decimals = min(max(0, 1 - math.floor(math.log10(smallest))), 6) if smallest < math.inf else 0
        return [f"{scale * v:,.{decimals}f}{sign}" if math.isfinite(v) else "∞" for v in values]

    def sentences(self) -> str:
        """The plan in a few sentences."""
        lines = [self._answer()]
        if self.runs is not None:
            where = int(np.searchsorted(self.table_runs, self.runs))
            half = self._in_digits([float(self.table_half_width[where])])[0]
            lines.append(
                f"The interval is then ±{half}; one more run would make it {self.table_one_more[where]:.1%} narrower."
            )
        if self.assumptions:
            lines.append(f"Assumptions: {'; '.join(self.assumptions)}.")
        return " ".join(lines)

    def _answer(self) -> str:
        where = "new data" if self.target == "distribution" else "this test set"
        effect = format_target(self.effect, self.unit)
        if self.detectable is not None:
            text, *ends = self._in_digits(list(self.detectable))
            found = f"{text} [{', '.join(end.removesuffix('%') for end in ends)}]"
            return (
                f"{self.runs:,} runs of each training, as many as the pilot has, detect a true difference of {found} on"
                f" {where} with {self.power:.0%} power."
            )
        what, each = f"distinguish a standard deviation of true error of {effect} between runs from 0", ""
        if self.question == "difference":
            what, each = f"detect a true difference of {effect} on {where}", " of each training"
        if self.runs is not None:
            inner = self.runs_interval
            limits = "" if inner is None else f" [{format_size(inner.low)}, {format_size(inner.high)}]"
            text = f"{self.runs:,}{limits} runs{each} are needed to {what} with {self.power:.0%} power."
            if inner is not None and inner.high > 2 * self.runs:
                # The estimate aims at the power with the variance that the pilot happened to show.
                many = "more than are possible" if math.isinf(inner.high) else f"up to {format_size(inner.high)}"
                text += f" The pilot is small and its variance uncertain: plan for {many} to be safe."
            return text
        text = f"Even {self.runs_max:,} runs{each} do not {what} with {self.power:.0%} power."
        if WORST_CASE in self.assumptions:
            text = (
                f"{text[:-1]} in the worst case, that the two trainings find unrelated examples hard, which one pilot"
                " does not rule out. Pass two pilots, one of each training: the plan then usually asks for less."
            )
        if self.examples_needed is None:
            return text
        # Two numbers of runs that people train; more where runs differ so much that few do not do.
        tried = {runs: self.examples_at(runs) for runs in AFFORDABLE}
        enough = [(runs, n) for runs, n in tried.items() if n is not None] or [(self.runs_max, self.examples_needed)]
        ways = ", or ".join(f"about {format_size(n)} examples with {runs:,} runs{each}" for runs, n in enough[:2])
        ways += ", in groups of the same size" if self.groups else ""
        design = f" in {self.groups:,} groups" if self.groups else ""
        few = [runs for runs in AFFORDABLE[:2] if tried[runs] is None]
        no_use = (
            f"; with {' or '.join(map(str, few))} runs no test set is large enough, because runs differ" if few else ""
        )
        return (
            f"{text} The test set of {self.examples:,} examples{design} is too small: these add a part that no number"
            f" of runs removes. It takes {ways}{no_use}."
        )


def _in_examples(units: int | None, examples: int | None, groups: int | None) -> int | None:
    """Return the examples of so many sampling units: groups as large as those at hand, or single examples."""
    return units if units is None or examples is None or groups is None else math.ceil(units * examples / groups)


def fewest_runs(model: DifferencePower | VariancePower, effect: float, power: float, most: int) -> int | None:
    """Return the fewest runs, two or more, that show the effect with this power; None if ``most`` do not."""
    if model.power(effect, most) < power:
        return None
    low, high = 1, 2
    # Power rises with runs: double, then bisect.
    while high < most and model.power(effect, high) < power:
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if model.power(effect, middle) >= power else (middle, high)
    return high


class KnownNumbers(TypedDict, total=False):
    """Keywords of :func:`plan_runs` that say in numbers what a pilot would show."""

    test_set_std: float | None
    independent_std: float | None
    examples: int | None
    disagreement: float | None


@dataclass(frozen=True)
class Pilot:
    """Knowledge of the variance between runs and between examples before the runs are made.

    The arguments are those of :func:`plan_runs`.
    """

    pilot: Any
    paired: bool | float
    target: str
    test_set_std: float | None = None
    independent_std: float | None = None
    examples: int | None = None
    disagreement: float | None = None

    def __post_init__(self) -> None:
        if not all(isinstance(p, VarianceDecomposition) for p in self.pilots) or len(self.pilots) > 2:
            problem = "must be a result of compare_runs or of decompose_variance, or a pair of the latter."
            raise InputError(problem, argument="pilot")
        for name in ("test_set_std", "independent_std", "examples"):
            value = getattr(self, name)
            if value is not None and name == "examples":
                check_whole(value, name, 2)  # one example has no variance between examples
            elif value is not None and not 0 < value < math.inf:
                raise InputError("must be a number above 0.", argument=name, value=value)
            if value is not None and self.pilots:
                raise InputError(f"{arg(name)} is known from {_PILOT}: leave one of them out.")
        if self.disagreement is not None and not 0 <= self.disagreement <= 1:
            raise InputError("must lie between 0 and 1.", argument="disagreement", value=self.disagreement)
        if not isinstance(self.paired, bool) and not -1 < self.paired < 1:
            problem = "must be True or False, or the correlation of pairs, between −1 and 1."
            raise InputError(problem, argument="paired", value=self.paired)
        if len(self.pilots) == 2 and self.pilots[0].examples != self.pilots[1].examples:
            raise InputError("the two are not of one test set; they differ in examples.", argument="pilot")
        if len({p.unit for p in self.pilots}) > 1:
            problem = f"the two are not of one kind: the unit of a is {self.pilots[0].unit!r}"
            raise InputError(f"{problem}, that of b {self.pilots[1].unit!r}.", argument="pilot")

    @property
    def pilots(self) -> tuple[VarianceDecomposition, ...]:
        """No, one or two decompositions."""
        if self.pilot is None:
            return ()
        return tuple(self.pilot) if isinstance(self.pilot, tuple | list) else (self.pilot,)

    @property
    def examples_in_set(self) -> int | None:
        """Examples in the test set."""
        return self.pilots[0].examples if self.pilots else self.examples

    @property
    def groups(self) -> int | None:
        """Groups of them, where a pilot has some."""
        return self.pilots[0].groups if self.pilots else None

    @property
    def size(self) -> int | None:
        """Units by which examples are sampled: groups of them, or single ones."""
        return self.groups or self.examples_in_set

    def noise(self) -> float:
        """Return the variance of test error that independent errors give."""
        if not self.pilots and self.independent_std is None:
            raise InputError(
                f"{arg('distribution_std')} needs {_PILOT}, or {arg('independent_std')}: the standard deviation"
                " that the test error would have if examples erred independently."
            )
        noise = self.pilots[0]._split.noise if self.pilots else (self.independent_std or 0.0) ** 2
        if noise <= 0:
            raise InputError("pilot shows no variation within examples: nothing can be planned on it.")
        return noise

    def difference_power(self, level: float, end: str = "estimate") -> tuple[DifferencePower, list[str]]:
        """Return the power of a comparison, and the assumptions made.

        ``end`` takes the pilot's standard deviations at their estimate, "low" or "high" limit.
        """
        variances, noise, assumed = self._between_runs(level, end)
        if self.paired is not False:
            r, how = self._correlation()
            # The difference of pairs has the variance σ_A² + σ_B² − 2 r σ_A σ_B; noise shrinks alike.
            scale = sum(variances) - 2 * r * math.sqrt(variances[0] * variances[1])
            noise *= scale / sum(variances) if sum(variances) else 1.0
            variances = (scale,)
            assumed.append(how)
        if self.target == "test set":
            return DifferencePower(variances, 0.0, noise, self.size or 1e9, level), assumed
        spread, how = self._between_examples()
        if self.size is None:
            raise InputError(
                f"{arg('target', 'distribution')} needs {arg('examples')}: the size of the test set. For this test set"
                f" only, pass {arg('target', 'test set')}."
            )
        return DifferencePower(variances, spread, noise, self.size, level), [*assumed, how]

    def _between_runs(self, level: float, end: str) -> tuple[tuple[float, ...], float, list[str]]:
        """Return the variances of test error of a and of b, and the noise in their sum."""
        if not self.pilots:
            if self.test_set_std is None:
                raise InputError(
                    f"{arg('difference')} needs {_PILOT}, or {arg('test_set_std')}: the standard deviation of"
                    " test error between runs."
                )
            one = self.test_set_std**2
            noise = 2 * min(one, (self.independent_std or 0.0) ** 2)
            return (one, one), noise, ["both trainings vary alike between runs"]
        # Not those that a pilot brings, which may have another level.
        stds = [getattr(run_std(p.run_errors, level, p.unit), end) for p in self.pilots]
        splits = [p._split for p in self.pilots]
        if tied := [p.runs for p in self.pilots if p.test_set_std == 0]:
            problem = f"has {tied[0]} runs of the same error, which show no variation between runs: nothing can be"
            remedy = f"Add runs to it, or give {arg('test_set_std')} in its place."
            raise InputError(f"{problem} planned on it.", argument="pilot", remedy=remedy)
        shares = [min(1.0, v.noise / v.test_set) for v in splits]
        assumed = []
        if len(stds) == 1:
            stds, shares = stds * 2, shares * 2
            assumed.append("the other training varies between runs like the pilot")
        noise = sum(s**2 * share for s, share in zip(stds, shares, strict=True))
        return (stds[0] ** 2, stds[1] ** 2), noise, assumed

    def _between_examples(self) -> tuple[float, str]:
        """Return the variance between examples (or groups) of the difference of error rates."""
        if self.disagreement is not None:
            how = f"the trainings judge {self.disagreement:.1%} of examples differently, whatever the seed"
            return self.disagreement, how
        if self.pilots:
            one, *other = self.pilots
            rates = one.example_errors - (other[0].example_errors if other else 0.0)
            gap = float(np.var(_unit_means(one, rates), ddof=1))
            # Part of it are the runs that the pilots happened to have, which more runs average out.
            by_runs = sum(p._split.noise * p._totals.units / p.runs for p in self.pilots)
            spread = max(0.0, gap - by_runs)
            return (spread, "the pilots show how examples differ") if other else (2 * spread, WORST_CASE)
        raise InputError(
            f"{arg('target', 'distribution')} needs {arg('disagreement')} (the share of examples that one training"
            f" usually gets right and the other usually wrong) or {_PILOT}. For this test set only, pass"
            f" {arg('target', 'test set')}."
        )

    def _correlation(self) -> tuple[float, str]:
        if not isinstance(self.paired, bool):
            return self.paired, f"paired runs correlate by {self.paired:g}"
        if len(self.pilots) == 2 and self.pilots[0].runs == self.pilots[1].runs > 2:
            one, two = (p.run_errors for p in self.pilots)
            if one.std() and two.std():
                r = float(np.corrcoef(one, two)[0, 1])
                return min(r, 0.99), f"paired runs correlate by {r:.2f}, as in the pilots"
        return 0.0, "paired runs do not correlate"


def _unit_means(pilot: VarianceDecomposition, values: FloatArray) -> FloatArray:
    """Return totals by group in units of the mean group; the values themselves without groups."""
    groups = pilot._totals.groups
    if groups is None:
        return values
    means: FloatArray = np.bincount(groups, weights=values - values.mean()) * pilot._totals.units / len(values)
    return means


def plan_stopping(
    looks: Sequence[int],
    *,
    level: float = 0.95,
    paired: bool = False,
    draws: int = DRAWS,
    rng: int | np.random.Generator = 0,
) -> StoppingPlan:
    """Plan at which numbers of runs to compare two trainings, and when to stop.

    Comparing after every few seeds and stopping at the first p < 0.05 finds differences that are
    not there. This plan looks at ``looks`` only, and stops at a smaller p-value, the same at each
    look (as Pocock's design does), chosen so that the error rate over all looks is
    ``1 - level``. It is found by simulating t tests of normal run errors of equal spread, so
    it holds for few runs as well. Where one training has three times the spread of the other, 5%
    become 6% with looks from 5 runs on; with heavy tails the error rate is lower. Where runs are
    skewed and the spreads unequal, 5% become 10% to 18%, and :func:`check_stopping` warns.

    Looks at 2 to 4 runs are worth little. With looks from 2 runs on and spreads that unequal,
    Welch's test would err in 6.9% instead of 5%. :func:`check_stopping` therefore takes fewer
    degrees of freedom there, and errs in 3% to 5.5%: what a look saves it loses in power.

    Parameters
    ----------
    looks : sequence of int
        Runs of each training at which to look, rising, from 2 on: ``[5, 10, 20, 40]``.
    level : float
        One minus the error rate over all looks.
    paired : bool
        True if run r of one training shares its seeds with run r of the other.
    draws : int
        Simulated experiments.
    rng : int or Generator
        Determines them.

    Examples
    --------
    >>> plan = plan_stopping([5, 10, 20], draws=20_000)
    >>> round(plan.nominal_level, 3), round(plan.naive_error, 2)
    (0.022, 0.11)
    """
    check_level(level)
    design = sequential_design(looks, EFFECTS, level=level, paired=paired, draws=draws, rng=rng)
    return StoppingPlan(
        looks=design.looks,
        level=level,
        nominal_level=design.nominal_level,
        naive_error=design.naive_error,
        paired=paired,
        effects=EFFECTS,
        expected_runs=design.expected,
        chance_found=design.found,
        fixed_chance=design.fixed,
        draws=draws,
        warnings=(),
    )


@dataclass(frozen=True, eq=False)
class StoppingPlan(Result):
    """At which numbers of runs to look, and how small a p-value must be to stop.

    Attributes
    ----------
    looks : tuple of int
        Runs of each training at which the two are compared.
    level : float
        One minus the chance that any look finds a difference where there is none.
    nominal_level : float
        The p-value below which a look stops, the same at each.
    naive_error : float
        That chance if every look stopped at ``1 - level`` instead.
    paired : bool
        True if run r of one training shares its seeds with run r of the other.
    effects : tuple of float
        True differences in standard deviations between runs (of a training; of the differences
        of pairs, if paired).
    expected_runs, chance_found : tuple of float
        For each effect: runs of each training until the plan stops, on average, and the chance
        that it stops with a difference.
    fixed_chance : tuple of float
        The chance that a single look at the last number of runs finds it.
    draws : int
        Simulated experiments with normal run errors behind these numbers.
    """

    looks: tuple[int, ...]
    level: float
    nominal_level: float
    naive_error: float
    paired: bool
    effects: tuple[float, ...]
    expected_runs: tuple[float, ...]
    chance_found: tuple[float, ...]
    fixed_chance: tuple[float, ...]
    draws: int
    warnings: tuple[str, ...]

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per true difference: what to expect."""
        return {
            "effect": list(self.effects),
            "expected_runs": list(self.expected_runs),
            "chance_found": list(self.chance_found),
            "fixed_chance": list(self.fixed_chance),
        }

    def sentences(self) -> str:
        """The plan in a few sentences."""
        shown = [f"{n:,}" for n in self.looks]
        looks = ", ".join(shown if len(shown) <= 10 else [*shown[:4], "…", shown[-1]])
        one = self.effects.index(1.0)
        return (
            f"Compare after {looks} runs of each training, and stop when p < {self.nominal_level:.4f}. Where there is"
            f" no difference, one is found with a chance of {format_level(1 - self.level)} over all looks; stopping at"
            f" p < {1 - self.level:.2g} instead would make that {self.naive_error:.0%}. A difference of one standard"
            f" deviation between runs is found with a chance of {self.chance_found[one]:.0%} after"
            f" {self.expected_runs[one]:.1f} runs on average, by a single look at {self.looks[-1]:,} runs with"
            f" {self.fixed_chance[one]:.0%}."
        )


def check_stopping(
    a: Predictions | ArrayLike,
    b: Predictions | ArrayLike,
    plan: StoppingPlan,
    labels: ArrayLike | None = None,
    *,
    margin: float | None = None,
    names: tuple[str, str] = ("a", "b"),
    **reading: Unpack[RunFormat],
) -> StoppingCheck:
    """Decide by a plan whether the runs so far suffice.

    With fewer than five runs each training counts with its own degrees of freedom, because Welch's
    test at looks from 2 runs on errs in 6.9% instead of 5% where the spreads are unequal.

    Parameters
    ----------
    a, b : Predictions or array_like
        Runs so far, in the order in which they were made: predictions, runs × examples, or one
        score per run. As many of a as of b, and a number at which the plan looks. Where the plan is for
        pairs, partners are found by seeds or ``run_ids`` if both have the same, else by place.
    plan : StoppingPlan
        Made before the first look.
    labels : array_like, shape (examples,), optional
        True classes; needed for predicted labels.
    kind, axes, groups
        As in :func:`decompose_variance`. A plan is for this test set, on which groups change
        nothing.
    margin : float, optional
        The largest difference that does not matter: allows to stop for equivalence.
    names : tuple of str
        Names of the trainings: two different ones.
    unit : {"fraction", "percent", "loss", "score"}, optional
        Unit of scores per run: "fraction" by default.
    higher_is_better : bool, optional
        True if scores per run are accuracies; needed for fractions and percentages.

    Examples
    --------
    >>> plan = plan_stopping([5, 10, 20], draws=20_000)
    >>> a, b = [0.10, 0.11, 0.12, 0.11, 0.10], [0.08, 0.07, 0.08, 0.09, 0.08]
    >>> c = check_stopping(a, b, plan, higher_is_better=False)
    >>> c.decision, c.next_look
    ('stop: b better', None)
    """
    if margin is not None and not as_number(margin) > 0:
        raise InputError("must be a number above 0, such as 0.005.", argument="margin", value=margin)
    one, two, measure, names = read_pair(a, b, labels, names, reading)
    if isinstance(one, Predictions):
        check_same_examples(one, two, names)
        two, _ = pair_runs(one, two, names, strict=False) if plan.paired else (two, "")
        one, two = measure_totals(one).run, measure_totals(two).run
    if len(one) != len(two):
        raise InputError(f"a has {len(one)} runs and b has {len(two)}: the plan compares as many.")
    if len(one) not in plan.looks:
        later = [n for n in plan.looks if n > len(one)]
        then = f"train until {later[0]}" if later else f"pass the first {plan.looks[-1]}"
        raise InputError(
            f"a and b have {len(one)} runs, and the plan looks at {', '.join(map(str, plan.looks))} only: {then}. A"
            " look that was not planned raises the error rate."
        )
    done = tuple(n for n in plan.looks if n <= len(one))
    estimates = [score_difference(one[:r], two[:r], plan.paired).test_set for r in done]
    decisions = [_decide(e, r, plan, margin) for e, r in zip(estimates, done, strict=True)]
    stops = [i for i, d in enumerate(decisions) if d != "go on"]
    notes = _unequal_spreads(one, two, names)
    if stops and stops[0] < len(done) - 1:
        notes.append(
            f"the plan already stopped at {done[stops[0]]:,} runs: that decision counts, and later"
            " runs do not change it."
        )
    decision = decisions[stops[0]] if stops else "go on"
    most = top_of(measure)
    differences = tuple(e.interval(1 - plan.nominal_level, most) for e in estimates)
    return StoppingCheck(
        decision=decision,
        runs=done[-1],
        difference=differences[-1],
        pvalue=estimates[-1].pvalue,
        next_look=plan.looks[len(done)] if decision == "go on" else None,
        looked=done,
        differences=differences,
        pvalues=tuple(e.pvalue for e in estimates),
        decisions=tuple(decisions),
        margin=margin,
        names=names,
        plan=plan,
        unit=measure,
        warnings=tuple(notes),
    )


@dataclass(frozen=True, eq=False)
class StoppingCheck(Result):
    """Decision of a plan about the runs so far.

    Attributes
    ----------
    decision : str
        "stop: a better", "stop: b better", "stop: equivalent within margin", "stop: undecided"
        (the last look is over) or "go on". It is that of the first look that stopped.
    runs : int
        Runs of each training that were looked at.
    difference : Interval
        Error of a minus error of b on this test set at the last look (of scores, the score of b
        minus that of a), with an interval that holds at all looks together.
    pvalue : float
        At the last look, not adjusted: it is compared with the plan's ``nominal_level``.
    next_look : int or None
        Runs at which to look again.
    looked, differences, pvalues, decisions : tuple
        The same at every look so far.
    margin : float or None
        Differences up to this size do not matter.
    """

    decision: str
    runs: int
    difference: Interval
    pvalue: float
    next_look: int | None
    looked: tuple[int, ...]
    differences: tuple[Interval, ...]
    pvalues: tuple[float, ...]
    decisions: tuple[str, ...]
    margin: float | None
    names: tuple[str, str]
    plan: StoppingPlan
    unit: str
    warnings: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Add ``direction``, the meaning of the sign of differences, which for scores is not that in texts."""
        return super().to_dict() | {"direction": DisplayUnit(self.unit).direction}

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per look so far. Differences as in :attr:`difference`."""
        return {
            "runs": list(self.looked),
            **interval_lists("difference", self.differences),
            "pvalue": list(self.pvalues),
            "decision": list(self.decisions),
        }

    def display_columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per look so far; differences of scores are those of the scores themselves."""
        return DisplayUnit(self.unit).columns(self.columns(), ("difference", "low", "high"))

    def sentences(self) -> str:
        """The decision in a few sentences."""
        (a, b), display = self.names, DisplayUnit(self.unit)
        difference = format_interval(display.interval(self.difference), self.unit)
        then = "" if self.next_look is None else f" Look again at {self.next_look:,} runs."
        return (
            f"After {self.runs:,} runs of each training the {display.word} of {a} minus that of {b} on this test set is"
            f" {difference} (an interval that holds at all planned looks together with"
            f" {format_level(self.plan.level)}). Decision: {name_decision(self.decision, a, b)}.{then}"
        )


def _decide(estimate: SampledMean, runs: int, plan: StoppingPlan, margin: float | None) -> str:
    interval = estimate.interval(1 - plan.nominal_level)
    if estimate.pvalue <= plan.nominal_level:
        return "stop: a better" if estimate.value < 0 else "stop: b better"
    if margin is not None and -margin < interval.low and interval.high < margin:
        return "stop: equivalent within margin"
    return "stop: undecided" if runs == plan.looks[-1] else "go on"


def _unequal_spreads(a: FloatArray, b: FloatArray, names: tuple[str, str]) -> list[str]:
    """Warn where one training spreads far more: the plan does not hold if runs are skewed, too."""
    spreads = {name: float(np.var(x, ddof=1)) for name, x in zip(names, (a, b), strict=True)}
    calm, wild = sorted(spreads, key=spreads.__getitem__)
    if spreads[wild] == 0:
        return []
    ratio = spreads[wild] / spreads[calm] if spreads[calm] > 0 else math.inf
    # Only a ratio that is large and shown: few runs often differ by two by chance.
    if ratio < UNEQUAL**2 or 2 * float(fdtrc(len(a) - 1, len(a) - 1, ratio)) >= 0.05:
        return []
    times = f"{math.sqrt(ratio):.1f} times as much as" if math.isfinite(ratio) else "and not"
    return [
        f"the runs of {wild} vary {times} those of {calm}. Where runs are skewed as well, one in six to ten comparisons"
        " stops for a difference that is not there, instead of one in twenty: confirm it with new runs."
    ]
