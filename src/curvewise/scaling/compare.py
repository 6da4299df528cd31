"""Two families of models by their scaling laws: how much compute one needs over what the other needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc

from curvewise.errors import InputError, Message, arg, prefix, warn_all
from curvewise.scaling.fit import ProfileIntervals, Quantity, inverse_of_squares, mean_steepness
from curvewise.scaling.forms import EXPONENT_BOUNDS, FORMS, HUBER, Data, Form, Place, Values, fit_global, minimise
from curvewise.scaling.law import ScalingLaw
from curvewise.scaling.load import as_scaling_runs
from curvewise.scaling.optimum import positive
from curvewise.scaling.runs import ScalingRuns, check_choice, check_identified, input_warnings, pair_names
from curvewise.text import format_interval, format_level, format_number, format_pvalue
from curvewise.types.results import FloatArray, Interval, Result, check_level, interval_columns

SHARED = {"additive": ("E", "alpha", "beta"), "tied": ("E", "alpha")}
"""Parameters that two laws have in common where one needs the same multiple of compute at every loss."""
UNEQUAL = 0.05
"""P-value below which one family is taken to scatter more than the other."""
DIFFERENT = 0.01
"""P-value below which a warning says that the shared parameters differ: at 0.05 one comparison in twenty would have it
for nothing, and real differences of exponents show far below (`benchmarks/scaling_compare.py`)."""


def compare_scaling_laws(
    a: Any,
    b: Any,
    *,
    form: str | None = None,
    loss: str | None = None,
    share: str = "all",
    at: float | None = None,
    names: tuple[str, str] | None = None,
    level: float = 0.95,
) -> ScalingComparison:
    """Compare two families of models: the compute that b needs over what a needs for the same loss.

    The two laws are fitted together with one irreducible loss E and the same exponents; they differ in A and B. Along
    their compute-optimal paths b then needs ρ = (A_b/A_a)^(1/α) (B_b/B_a)^(1/β) times the compute of a, whatever the
    loss. The shared parameters are tested against separate laws.

    Parameters
    ----------
    a, b : ScalingLaw, ScalingRuns, path, dict or DataFrame
        Fitted laws, or runs as :func:`fit_scaling_law` takes them. Their losses must be comparable: on the same text
        and in the same unit, with one tokenizer or per byte.
    form : {"additive", "tied"}, optional
        Form of both laws; by default that of the laws where both are tied, else additive.
    loss : {"huber", "squares"}, optional
        How residuals count; by default as in ``a``, or "huber".
    share : {"all", "exponents"}
        Share E and the exponents, or the exponents only. In the latter case ρ depends on the loss, and is taken where
        a has the compute ``at``.
    at : float, optional
        Compute of a in FLOP, for ``share="exponents"``; by default that of its largest run.
    names : tuple of str, optional
        Names of the two for sentences.
    level : float
        Coverage of the intervals; the verdict is reached at ``1 - level``.

    Returns
    -------
    ScalingComparison
        ``efficiency`` is ρ with its interval, ``verdict`` "a better", "b better" or "not significant".

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> n, d = (v.ravel() for v in np.meshgrid([1e8, 3e8, 1e9, 3e9], [2e9, 8e9, 3e10, 1.2e11]))
    >>> def runs(ratio):
    ...     loss = 1.8 + 480 * (ratio / n) ** 0.35 + 2000 / d**0.37
    ...     return {"params": n, "tokens": d, "loss": loss * np.exp(0.002 * rng.standard_normal(len(n)))}
    >>> found = compare_scaling_laws(runs(1.0), runs(0.7))
    >>> 0.7 in found.efficiency, found.verdict
    (True, 'b better')
    """
    check_level(level)
    laws = [v if isinstance(v, ScalingLaw) else None for v in (a, b)]
    sets = [v.runs if isinstance(v, ScalingLaw) else as_scaling_runs(v) for v in (a, b)]
    chosen = _choose_form(form, laws)
    how = loss or next((law.loss for law in laws if law is not None), "huber")
    check_choice("loss", how, ("huber", "squares"))
    check_choice("share", share, ("all", "exponents"))
    if at is not None and share == "all":
        needed = arg("share", "exponents")
        raise InputError(f"{arg('at', at)} is for {needed}: with E shared, ρ is the same everywhere.")
    for runs in sets:
        check_identified(runs)
    labels = pair_names(names, sets[0].name, sets[1].name)
    compute = float(sets[0].compute.max()) if at is None else positive(at, "at")
    pair = _Joint(sets[0], sets[1], chosen, how)
    free, shared = pair.separate(), pair.together(share)
    quantities = pair.quantities(shared, compute)
    known = all(runs.checkpoints != "unclear" for runs in sets)
    limits = shared.limits(list(quantities.values()), level) if known else np.full((2, len(quantities)), np.nan)
    rows = {
        name: Interval(float(quantity(shared.theta[None])[0]), float(low), float(high), level)
        for (name, quantity), low, high in zip(quantities.items(), *limits, strict=True)
    }
    estimate, low, high = (float(np.exp(v)) for v in rows.pop("log_ratio"))
    efficiency = Interval(estimate, low, high, level)
    pvalue = pair.test(free, shared) if known else float("nan")
    notes = _notes(pair, free, pvalue, sets, labels)
    warn_all(notes)
    verdict = "not significant"
    # Losses without a value in common are mostly of two data sets or units, whatever the interval says.
    if _have_losses_in_common(sets) and (efficiency.high < 1 or efficiency.low > 1):
        verdict = "b better" if efficiency.high < 1 else "a better"
    return ScalingComparison(
        a=labels[0],
        b=labels[1],
        efficiency=efficiency,
        verdict=verdict,
        pvalue=pvalue,
        form=chosen,
        loss=how,
        share=share,
        at=compute if share == "exponents" else None,
        shared=rows,
        separate=pair.public(),
        counts=(sets[0].count, sets[1].count),
        level=level,
        warnings=tuple(notes),
        _runs=(sets[0], sets[1]),
        _joint=pair.public(shared),
    )


@dataclass(frozen=True, eq=False)
class ScalingComparison(Result):
    """Two scaling laws side by side.

    Attributes
    ----------
    a, b : str
        Names.
    efficiency : Interval
        ρ: the compute that b needs over what a needs for the same loss, each at its own optimal size.
    verdict : str
        "b better" where ρ is significantly below 1, "a better" where above, else "not significant"; so are losses
        that do not overlap.
    pvalue : float
        Of the test that the shared parameters are the same in both; small values speak against one ρ.
    form, loss, share : str
        What was fitted, and how.
    at : float or None
        Compute of a at which ρ holds, where E is not shared.
    shared : dict of str to Interval
        Parameters of the joint fit that both have in common.
    separate : dict of str to tuple of float
        Parameters of the two laws fitted separately.
    counts : tuple of int
        Numbers of runs.
    level : float
        Coverage of the intervals.
    """

    a: str
    b: str
    efficiency: Interval
    verdict: str
    pvalue: float
    form: str
    loss: str
    share: str
    at: float | None
    shared: Mapping[str, Interval]
    separate: Mapping[str, tuple[float, float]]
    counts: tuple[int, int]
    level: float
    warnings: tuple[str, ...]
    _runs: tuple[ScalingRuns, ScalingRuns]
    _joint: Mapping[str, tuple[float, float]]

    row_names: ClassVar[Mapping[str, str]] = {
        "efficiency": "compute that {b} needs over that of {a}",
        "alpha": "α",
        "beta": "β",
    }

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """Return a row for ρ and each shared parameter: estimate, low and high."""
        return interval_columns({"efficiency": self.efficiency, **self.shared})

    def sentences(self) -> str:
        """The comparison in a few sentences."""
        where = "" if self.at is None else f" as {self.a} reaches with {self.at:.3g} FLOP"
        estimate, *limits = format_interval(self.efficiency).partition(" ")
        lines = [
            f"For the same loss{where}, {self.b} needs {estimate}×{''.join(limits)} the compute of {self.a} "
            f"({format_level(self.level)} interval; {self.counts[0]} and {self.counts[1]} runs)."
        ]
        if 1 in self.efficiency:
            lines.append("The difference is not significant.")
        if not np.isnan(self.pvalue):
            what = "E and the exponents" if self.share == "all" else "the exponents"
            lines.append(f"Test that {what} are shared: {format_pvalue(self.pvalue)}.")
        return " ".join(lines)


def _choose_form(form: str | None, laws: Sequence[ScalingLaw | None]) -> str:
    if form is not None:
        check_choice("form", form, SHARED)
        return form
    if any(law is not None and law.form == "repeated" for law in laws):
        raise InputError(
            "Laws of repeated data have no common efficiency: compare runs of one epoch, or pass "
            f"{arg('form', 'additive')} to count repeated tokens as new ones."
        )
    return "tied" if all(law is not None and law.form == "tied" for law in laws) else "additive"


@dataclass(frozen=True)
class Paired(Form):
    """Two laws of one form, the second with some parameters shifted; ``unique`` of a place is 1 for the second law.

    Attributes
    ----------
    base : Form
        The form of each.
    moved : tuple of int
        Places of the parameters that differ.
    """

    base: Form
    moved: tuple[int, ...]
    name: ClassVar[str] = "paired"

    def __post_init__(self) -> None:
        # The solver asks a form for its names; which there are depends on what is shared.
        names = (*self.base.names, *(f"shift_{self.base.names[k]}" for k in self.moved))
        object.__setattr__(self, "names", names)

    def bounds(self, smallest_loss: float) -> tuple[FloatArray, FloatArray]:
        """Limits of the first law's parameters, and as far as the second's may be from them."""
        low, high = self.base.bounds(smallest_loss)
        span = 10 * (high - low)[list(self.moved)]  # wide enough for losses of another unit
        return np.concatenate([low, -span]), np.concatenate([high, span])

    def second(self, theta: FloatArray) -> FloatArray:
        """Return the parameters of the second law."""
        size = self.base.size
        found = theta[:, :size].copy()
        found[:, list(self.moved)] += theta[:, size:]
        # Bounds of a sum are no bounds of the solver: keep the law one that falls, from a loss above 0.
        found[:, 0] = np.maximum(found[:, 0], 0.0)
        found[:, 3:] = np.maximum(found[:, 3:], EXPONENT_BOUNDS[0])
        return found

    def exponents(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return α and β of the first law."""
        return self.base.exponents(theta[:, : self.base.size])

    def values(self, theta: FloatArray, at: Place) -> Values:
        """Losses with derivatives: of the first or the second law, by the place."""
        size, moved = self.base.size, list(self.moved)
        plain = Place(at.params, at.tokens)
        is_second = np.zeros(len(at.params)) if at.unique is None else at.unique
        one, two = self.base.values(theta[:, :size], plain), self.base.values(self.second(theta), plain)
        slope = np.empty((len(theta), size + len(moved), len(is_second)))
        slope[:, :size] = np.where(is_second > 0, two.slope, one.slope)
        slope[:, size:] = two.slope[:, moved] * is_second

        def bend(c: FloatArray) -> FloatArray:
            of_two = two.bend(c * is_second)
            total = np.empty((len(theta), size + len(moved), size + len(moved)))
            total[:, :size, :size] = one.bend(c * (1.0 - is_second)) + of_two
            total[:, size:, :size] = of_two[:, moved]
            total[:, :size, size:] = of_two[:, :, moved]
            total[:, size:, size:] = of_two[:, moved][:, :, moved]
            return total

        return Values(np.where(is_second > 0, two.loss, one.loss), slope, bend)


class _Joint:
    """Runs of two families as one problem, around one centre."""

    def __init__(self, a: ScalingRuns, b: ScalingRuns, form: str, loss: str) -> None:
        self.sets = (a, b)
        n, d = (np.log(np.concatenate([getattr(a, k), getattr(b, k)])) for k in ("params", "tokens"))
        self.base = FORMS[form](float(n.mean()), float(d.mean()))
        self.shared = [k for k, name in enumerate(self.base.names) if name in SHARED[form]]
        self.delta = HUBER if loss == "huber" else np.inf
        self.is_second = np.repeat([0.0, 1.0], [len(a), len(b)])
        self.at = Place(n - self.base.params, d - self.base.tokens, self.is_second)
        self.log_loss = np.log(np.concatenate([a.loss, b.loss]))
        self.groups = np.concatenate([a.groups, a.count + b.groups])
        self.families = (self.is_second == 0, self.is_second == 1)
        self.places = [Place(self.at.params[rows], self.at.tokens[rows]) for rows in self.families]
        self.alone = [
            fit_global(Data(place, self.log_loss[rows], self.base, self.delta))[0]
            for place, rows in zip(self.places, self.families, strict=True)
        ]

    def separate(self) -> ProfileIntervals:
        """Fit two laws with nothing in common."""
        return self._fit(tuple(range(self.base.size)), [self.alone[0]])

    def together(self, share: str) -> ProfileIntervals:
        """Fit two laws with shared exponents, and with ``share="all"`` one E."""
        moved = tuple(k for k in range(self.base.size) if k not in self.shared or (share != "all" and k == 0))
        both = fit_global(Data(Place(*self.at[:2]), self.log_loss, self.base, self.delta))[0]
        return self._fit(moved, [*self.alone, both])

    def _fit(self, moved: tuple[int, ...], guesses: Sequence[FloatArray]) -> ProfileIntervals:
        data = Data(self.at, self.log_loss, Paired(self.base.params, self.base.tokens, self.base, moved), self.delta)
        apart = (self.alone[1] - self.alone[0])[list(moved)]
        start = np.stack([np.concatenate([g, shift]) for g in guesses for shift in (apart, 0.0 * apart)])
        theta, value = minimise(lambda t, _: data.bowl(t), start, data.form, data.bounds)
        best = int(value.argmin())
        # Intervals of Huber's loss follow refits with random weights, in which each run counts by itself already.
        alike = bool(np.isfinite(self.delta)) or not self._scatter_differs()
        return ProfileIntervals(data, theta[best], float(value[best]), self.groups, alike)

    def _scatter_differs(self) -> bool:
        """Return whether one family scatters significantly more about its own law than the other does."""
        spreads, spare = [], []
        for law, runs, at, rows in zip(self.alone, self.sets, self.places, self.families, strict=True):
            residual = np.log(self.base.values(law[None], at).loss[0]) - self.log_loss[rows]
            spare.append(max(runs.count - self.base.size, 1))
            spreads.append(float((residual**2).sum()) / spare[-1] * runs.count / len(residual))
        ratio = spreads[0] / max(spreads[1], 1e-300)
        tail = fdtrc(spare[0], spare[1], ratio) if ratio > 1 else fdtrc(spare[1], spare[0], 1 / max(ratio, 1e-300))
        return bool(tail < UNEQUAL)

    def quantities(self, fit: ProfileIntervals, compute: float) -> dict[str, Quantity]:
        """Return log ρ and the shared parameters as functions of the parameters of the solver."""
        table: dict[str, Quantity] = {"log_ratio": partial(self.log_ratio, fit, log_budget=float(np.log(compute)))}
        form = fit.data.form
        assert isinstance(form, Paired)  # for the type checker
        for k in (k for k in self.shared if k not in form.moved):
            table[self.base.names[k]] = partial(np.take, indices=k, axis=1)
        return table

    def log_ratio(self, fit: ProfileIntervals, theta: FloatArray, log_budget: float) -> FloatArray:
        """Return the log of the compute with which b reaches the loss of a at a budget, over the budget, shape (K,)."""
        one, two = laws = self._laws(fit, theta)
        at = np.full(len(theta), log_budget)
        # On its optimal path a law is E + K C^(−γ) with γ = αβ/(α + β).
        over = [self.base.lowest(law, at)[1] - law[:, 0] for law in laws]
        alpha, beta = self.base.exponents(two)
        room = over[0] + one[:, 0] - two[:, 0]
        with np.errstate(divide="ignore", invalid="ignore"):
            needed = (np.log(over[1]) - np.log(np.maximum(room, 0.0))) * (alpha + beta) / (alpha * beta)
        return np.where(room > 0, needed, np.inf)

    def _laws(self, fit: ProfileIntervals, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the parameters of each of the two laws, shape (K, P)."""
        form = fit.data.form
        assert isinstance(form, Paired)  # for the type checker
        return theta[:, : self.base.size], form.second(theta)

    def test(self, free: ProfileIntervals, shared: ProfileIntervals) -> float:
        """Return the p-value of the shared parameters: the rise of the objective, scaled as the runs' scatter says."""
        dropped = free.data.form.size - shared.data.form.size
        # Contrasts are the shifts that the joint fit sets to 0.
        kept = [self.base.size + k for k in self.shared][-dropped:]
        contrast = np.eye(free.data.form.size)[kept]
        first, delta = self.sets[0].count, free.data.delta
        # Of a family that scatters more, fewer errors lie within δ: its Huber terms bend less, and it weighs less. How
        # many, few runs do not show: errors of both families are taken to have one distribution but for their size.
        sizes = np.array([max(float(np.abs(free.errors[rows]).mean()), 1e-300) for rows in self.families])
        size_of = np.where(self.families[0], *sizes)
        bend = np.where(self.families[0], *mean_steepness(free.errors / size_of, delta / sizes))
        inverse = inverse_of_squares(free.jacobian * np.sqrt(bend))
        pull = np.clip(free.errors, -delta, delta)
        member = np.arange(int(self.groups.max()) + 1)[:, None] == self.groups
        totals = member @ (contrast @ inverse @ free.jacobian * pull).T
        # The rise is distributed as a sum of squares with weights that the two sets have by their own scatter: its mean
        # and degrees of freedom are matched (Satterthwaite), those of the scatter too (Welch).
        scale = np.linalg.pinv(contrast @ inverse @ contrast.T)
        shares = [scale @ part.T @ part for part in (totals[:first], totals[first:])]
        both = shares[0] + shares[1]
        mean, size = float(np.trace(both)), self.base.size
        degrees = mean**2 / float(np.trace(both @ both))
        spare = [max(runs.count - size, 1) for runs in self.sets]
        further = mean**2 / sum(float(np.trace(s)) ** 2 / k for s, k in zip(shares, spare, strict=True))
        rise = max(shared.value - free.value, 0.0)
        return float(fdtrc(degrees, further, 2 * rise / max(mean, 1e-300)))

    def public(self, fit: ProfileIntervals | None = None) -> dict[str, tuple[float, float]]:
        """Return the parameters of the separate laws, or of those of a fit, as papers write them."""
        laws = [law[None] for law in self.alone] if fit is None else self._laws(fit, fit.theta[None])
        one, two = (self.base.public(law) for law in laws)
        return {name: (float(one[name][0]), float(two[name][0])) for name in one}


def _notes(
    pair: _Joint, free: ProfileIntervals, pvalue: float, sets: Sequence[ScalingRuns], labels: Sequence[str]
) -> list[str]:
    """Return what deserves a look."""
    notes = [
        prefix(f"{label}: ", text)
        for label, runs in zip(labels, sets, strict=True)
        for text in (*runs.warnings, *input_warnings(runs))
    ]
    if pvalue < DIFFERENT:
        budgets = np.log([max(r.compute.min() for r in sets), max(r.compute.max() for r in sets)])
        ratios = [float(np.exp(pair.log_ratio(free, free.theta[None], float(c))[0])) for c in budgets]
        laws = pair.public()
        values = ", ".join(
            f"{symbol} {laws[name][0]:.3g} and {laws[name][1]:.3g}"
            for name, symbol in (("E", "E"), ("alpha", "α"), ("beta", "β"))
            if name in SHARED[pair.base.name]
        )
        notes.append(
            f"The two laws differ in more than their efficiency ({format_pvalue(pvalue)}; separately {values}): one "
            f"ratio does not describe them. By separate laws {labels[1]} needs {format_number(ratios[0], 3)}× at "
            f"{np.exp(budgets[0]):.2g} FLOP and {format_number(ratios[1], 3)}× at {np.exp(budgets[1]):.2g} FLOP."
        )
    if not _have_losses_in_common(sets):
        spans = [f"{label} {r.loss.min():.3g} to {r.loss.max():.3g}" for label, r in zip(labels, sets, strict=True)]
        notes.append(
            f"The losses do not overlap ({', '.join(spans)}): the ratio rests on extrapolation, or the units differ. "
            "No verdict is given."
        )
    return [text if isinstance(text, Message) else Message(text) for text in notes]


def _have_losses_in_common(sets: Sequence[ScalingRuns]) -> bool:
    return bool(max(r.loss.min() for r in sets) <= min(r.loss.max() for r in sets))
