"""Which runs to train next: those that narrow an interval of a scaling law most for their compute.

The choice is made with the linearised law, in which the effect of a further run has a closed form. What the chosen runs
would bring is then simulated: their losses are drawn, the law is fitted again, and its interval measured.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from curvewise.errors import InputError, Message, arg, quietly, warn_all
from curvewise.scaling.fit import QuantityFamily
from curvewise.scaling.forms import Place, on_budget
from curvewise.scaling.law import ScalingLaw, fit_scaling_law
from curvewise.scaling.optimum import positive, short
from curvewise.scaling.runs import ScalingRuns, check_choice
from curvewise.text import format_count, format_interval, format_level, format_number
from curvewise.types.results import FloatArray, Interval, Result, check_level

QUANTITIES = {
    "params": "the optimal size",
    "loss": "the loss",
    "exponent": "the exponent a",
    "alpha": "α",
    "beta": "β",
    "E": "E",
}
"""Quantities whose interval can be narrowed, as sentences call them."""
LEVELS = 10
"""Budgets of candidate runs, from the cheapest run at hand to the largest that is allowed."""
OFF_PATH = np.geomspace(1 / 12, 12, 11)
"""Sizes of candidate runs over the compute-optimal size for their budget."""
BEYOND = 2.0
"""Factor by which a planned model, a training, or tokens per parameter may lie outside those at hand."""
DRAWS = 15
"""Simulated outcomes of a plan."""
ROUNDS = 4
"""Times that a plan is made larger where its simulated outcome falls short."""
SLACK = 1.05
"""Ratio to the goal within which a simulated outcome counts as reaching it."""


def plan_scaling_runs(
    law: ScalingLaw,
    budget: float,
    *,
    quantity: str = "params",
    factor: float = 0.5,
    largest: float | None = None,
    most: int = 16,
    level: float = 0.95,
    rng: int | np.random.Generator = 0,
) -> ScalingPlan:
    """Plan further runs that narrow an interval of a scaling law, by default to half its width.

    Parameters
    ----------
    law : ScalingLaw
        The law as it is fitted now.
    budget : float
        Compute in FLOP of the model that the law is for, as in ``law.compute_optimal(budget)``.
    quantity : {"params", "loss", "exponent", "alpha", "beta", "E"}
        Interval to narrow: of the optimal size N*, of the loss there, or of a parameter.
    factor : float
        Width to reach over the present one.
    largest : float, optional
        Most compute of a single new run; by default that of the largest run so far.
    most : int
        Most runs to plan.
    level : float
        Coverage of the interval.
    rng : int or Generator
        Seed of the simulated outcomes.

    Returns
    -------
    ScalingPlan
        The cheapest of the plans compared: runs, their cost, and the width that simulated outcomes have.

    Notes
    -----
    For each of several limits on the compute of one run, runs are chosen one by one by how much they lower the variance
    of the quantity; the plan with the least total compute is kept. A run is taken to scatter about the law as those at
    hand do, which few runs show only roughly: 16 runs to a fifth. Where rows are checkpoints, only the last of each run
    counts.

    Examples
    --------
    >>> n, d = (v.ravel() for v in np.meshgrid([1e8, 3e8, 1e9], [2e9, 8e9, 3e10]))
    >>> noise = np.random.default_rng(0).standard_normal(len(n))
    >>> loss = (1.8 + 480 / n**0.35 + 2000 / d**0.37) * np.exp(0.002 * noise)
    >>> law = fit_scaling_law({"params": n, "tokens": d, "loss": loss}, loss="squares")
    >>> plan = plan_scaling_runs(law, 1e23, largest=1e21)
    >>> plan.expected_factor < 0.55, len(plan.params) == len(plan.tokens) > 0
    (True, True)
    """
    check_level(level)
    if not isinstance(law, ScalingLaw):
        raise InputError(f"is a {type(law).__name__}: pass what fit_scaling_law gives.", argument="law")
    check_choice("quantity", quantity, QUANTITIES)
    if not 0 < factor < 1:
        raise InputError(f"{arg('factor', factor)} must lie between 0 and 1, such as 0.5 for half the width.")
    log_budget = float(np.log(positive(budget, "budget")))
    if not isinstance(most, int | np.integer) or most < 1:
        raise InputError(f"{arg('most', most)} must be a whole number, at least 1.")
    planner = _Planner(law, quantity, log_budget, level)
    limit = float(planner.runs.compute.max()) if largest is None else positive(largest, "largest")
    now = planner.interval(planner.runs)
    notes = []
    if not np.isfinite(planner.width(now)):
        notes.append(
            f"The present runs do not bound the interval of {QUANTITIES[quantity]}: the plan begins from its linear "
            "approximation, and its outcome is uncertain."
        )
    generator = np.random.default_rng(rng)
    aim, (places, enough) = factor, planner.choose(factor, limit, most)
    for _ in range(ROUNDS):
        widths = planner.simulate(places, generator)
        reached = float(np.median(widths)) / planner.base_width(now)
        if reached <= factor * SLACK or not enough:
            break
        # The linear law promised more than the law itself keeps: aim further.
        aim *= max(factor / reached, 0.5)
        places, enough = planner.choose(aim, limit, most)
    if reached > factor * SLACK:
        notes.append(
            f"No plan of up to {format_count(most, 'run')} of {limit:.2g} FLOP at most is expected to narrow the "
            f"interval to {factor:.0%} of its width: this one reaches {reached:.0%}. Allow larger runs with "
            f"{arg('largest')}, or more with {arg('most')}."
        )
    warn_all(map(Message, notes))
    order = np.argsort(places.sum(axis=1))
    n, d = np.exp(places[order]).T
    return ScalingPlan(
        quantity=quantity,
        budget=float(budget),
        current=now,
        expected_factor=reached,
        factor=factor,
        cost=float((6 * n * d).sum()),
        spent=float(planner.runs.compute.sum()),
        params=tuple(n.tolist()),
        tokens=tuple(d.tolist()),
        largest=limit,
        level=level,
        warnings=(*map(Message, notes), *law.warnings),
    )


@dataclass(frozen=True, eq=False)
class ScalingPlan(Result):
    """Runs to train next.

    Attributes
    ----------
    quantity : str
        Whose interval is narrowed.
    budget : float
        Compute in FLOP that the law is for.
    current : Interval
        The interval now.
    expected_factor : float
        Width of the interval with the new runs over the present one: the median of simulated outcomes. Widths of N* and
        of the loss are those of their logarithms.
    factor : float
        What was asked for.
    cost : float
        Compute of the new runs together, in FLOP.
    spent : float
        Compute of the runs at hand together.
    params, tokens : tuple of float
        N and D of each new run, from the cheapest to the most expensive.
    largest : float
        Most compute that one run was allowed.
    level : float
        Coverage of the interval.
    """

    quantity: str
    budget: float
    current: Interval
    expected_factor: float
    factor: float
    cost: float
    spent: float
    params: tuple[float, ...]
    tokens: tuple[float, ...]
    largest: float
    level: float
    warnings: tuple[str, ...]

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """Return a row for each new run: params, tokens, flops and tokens per parameter."""
        n, d = np.array(self.params), np.array(self.tokens)
        return {"params": n, "tokens": d, "flops": 6 * n * d, "tokens_per_param": d / n}

    def readable(self) -> Mapping[str, Sequence[Any]]:
        """Return a row for each size, with how many runs it has and counts as people write them."""
        sizes = self.repeats()
        return {
            "params": [short(n) for n, _ in sizes],
            "tokens": [short(d) for _, d in sizes],
            "runs": list(sizes.values()),
            "compute of each": [f"{6 * n * d:.2g}" for n, d in sizes],
            "tokens per param": [format_number(d / n, 3) for n, d in sizes],
        }

    def repeats(self) -> dict[tuple[float, float], int]:
        """Return N and D of each size that is planned, with the number of runs of it."""
        return dict(Counter(zip(self.params, self.tokens, strict=True)))

    def sentences(self) -> str:
        """The plan in a few sentences."""
        unit = short if self.quantity == "params" else None
        now = format_interval(self.current, write=unit)
        where = f" for {self.budget:.3g} FLOP" if self.quantity in ("params", "loss") else ""
        sizes = ", ".join(
            f"{short(n)} on {short(d)}" + (f" ({count} times)" if count > 1 else "")
            for (n, d), count in self.repeats().items()
        )
        return (
            f"The {format_level(self.level)} interval of {QUANTITIES[self.quantity]}{where} is {now}. "
            f"{format_count(len(self.params), 'run')} with {self.cost:.2g} FLOP in total, "
            f"{format_number(self.cost / self.spent, 2)} times what the present runs took, are expected to narrow it "
            f"to {self.expected_factor:.0%} of its width; parameters and tokens: {sizes}."
        )


class _Planner:
    """A law, linearised around its fit, and what further runs would add to it."""

    def __init__(self, law: ScalingLaw, quantity: str, log_budget: float, level: float) -> None:
        if law.runs.checkpoints == "unclear":
            raise InputError(
                "rests on rows that look like checkpoints of unnamed runs: there is no interval to narrow. Name the "
                f"runs with {arg('columns', {'run': 'COLUMN'})}.",
                argument="law",
            )
        if law.form == "repeated":
            problem = "is one of repeated data, which is not planned for: fit runs of one epoch."
            raise InputError(problem, argument="law")
        name = law._forecast.leading.design[0]
        self.name, self.loss, self.quantity, self.log_budget, self.level = name, law.loss, quantity, log_budget, level
        self.runs = _last_rows(law.runs)
        with quietly():
            fitted = fit_scaling_law(self.runs, form=name, loss=law.loss)
        profile = fitted._forecast.profile
        self.form, self.theta, self.inverse = profile.data.form, profile.theta, profile.inverse
        self.slope = QuantityFamily.of([self._value]).slope(self.theta[None], np.zeros(1, dtype=np.intp))[0]
        if not self.slope.any():
            problem = f"{arg('quantity', quantity)} is fixed by the {name} form: there is no interval to narrow."
            raise InputError(problem)
        self.degrees = max(len(self.runs) - self.form.size, 1)
        # Errors of runs that are left out; residuals of few runs are too small, and with Huber's loss many are zero.
        self.errors = profile.errors - profile.errors.mean()

    def _value(self, theta: FloatArray) -> FloatArray:
        """Return the quantity, on the scale of its width."""
        if self.quantity not in ("params", "loss"):
            return (self.form.public(theta) | {"exponent": self.form.exponent(theta)})[self.quantity]
        size, loss = self.form.lowest(theta, np.full(len(theta), self.log_budget))
        return size if self.quantity == "params" else np.log(loss)

    def interval(self, runs: ScalingRuns) -> Interval:
        """Return the interval of the quantity for some runs."""
        with quietly():
            law = fit_scaling_law(runs, form=self.name, loss=self.loss)
            if self.quantity not in ("params", "loss"):
                return law.interval(self.quantity, level=self.level)
            best = law.compute_optimal(float(np.exp(self.log_budget)), level=self.level)
        return best.params if self.quantity == "params" else best.loss  # type: ignore[no-any-return]

    def width(self, interval: Interval) -> float:
        """Return the width of an interval, on the scale on which it is about symmetric."""
        if self.quantity not in ("params", "loss"):
            return interval.width
        with np.errstate(divide="ignore"):
            return float(np.log(interval.high) - np.log(interval.low))

    def base_width(self, now: Interval) -> float:
        """Return the present width: that of the interval, or where it is infinite that of the linear law."""
        width = self.width(now)
        if np.isfinite(width):
            return width
        spread = float(np.sqrt(self.slope @ self.inverse @ self.slope) * self.errors.std())
        return 2 * float(stdtrit(self.degrees, 0.5 + self.level / 2)) * spread

    def choose(self, goal: float, limit: float, most: int) -> tuple[FloatArray, bool]:
        """Return the runs that reach a width over the present one with the least compute, by the linear law.

        Logarithms of N and D of the runs, shape (m, 2), and whether they reach it.
        """
        floor = min(float(self.runs.compute.min()), limit)
        caps = np.geomspace(floor, limit, LEVELS)
        places, costs = self._candidates(caps)
        found = []
        for cap in caps:
            allowed = costs <= cap * (1 + 1e-9)
            if not allowed.any():
                continue
            picked, ratio = self._greedy(places[allowed], goal, most)
            total = float(costs[allowed][picked].sum())
            found.append((ratio > goal, total if ratio <= goal else ratio, places[allowed][picked]))
        if not found:
            raise InputError(f"{arg('largest', limit)} is less than any run takes that the law could be trusted for.")
        missed, _, best = min(found, key=lambda each: each[:2])
        return best, not missed

    def _candidates(self, budgets: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return sizes on and off the optimal path, shape (K, 2), with their compute."""
        logs = np.repeat(np.log(budgets), len(OFF_PATH))
        size = self.form.optimum(np.tile(self.theta, (len(logs), 1)), logs) + np.tile(np.log(OFF_PATH), len(budgets))
        places = np.column_stack(on_budget(logs, size)[:2])
        # Nobody has seen the law hold far below the smallest model and the shortest training, nor for other shares of
        # the two. The linear law finds such runs the most telling.
        least = np.log([self.runs.params.min() / BEYOND, self.runs.tokens.min() / BEYOND])
        ratio, known = places[:, 1] - places[:, 0], np.log(self.runs.tokens / self.runs.params)
        off = np.abs(ratio - np.clip(ratio, known.min(), known.max()))
        seen = (places >= least).all(axis=1) & (off < np.log(BEYOND))
        return places[seen], np.exp(logs[seen])

    def _greedy(self, places: FloatArray, goal: float, most: int) -> tuple[list[int], float]:
        """Add the run that lowers the variance most until the goal is reached; return runs and the ratio of widths."""
        values = self.form.values(self.theta[None], self.form.shift(Place(*places.T)))
        rows = (values.slope[0] / values.loss[0]).T  # (K, P)
        inverse = self.inverse.copy()
        start = float(self.slope @ inverse @ self.slope)
        t = stdtrit(self.degrees, 0.5 + self.level / 2)
        picked: list[int] = []
        ratio = 1.0
        while len(picked) < most and ratio > goal:
            # Sherman and Morrison: one more row changes the variance of a quantity by a rank-one term.
            across = rows @ inverse
            gain = (across @ self.slope) ** 2 / (1.0 + np.einsum("kp,kp->k", across, rows))
            best = int(gain.argmax())
            picked.append(best)
            inverse -= np.outer(across[best], across[best]) / (1.0 + across[best] @ rows[best])
            left = max(float(self.slope @ inverse @ self.slope), 1e-300)
            ratio = float(np.sqrt(left / start) * stdtrit(self.degrees + len(picked), 0.5 + self.level / 2) / t)
        return picked, ratio

    def simulate(self, places: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return widths of the interval after runs whose losses are drawn around the law, shape (draws,)."""
        expected = np.log(self.form.loss(self.theta[None], Place(*places.T))[0])
        kernel = 1.06 * self.errors.std() * len(self.errors) ** -0.2  # Silverman's rule
        shrink = self.errors.std() / np.hypot(self.errors.std(), kernel)
        widths = []
        for _ in range(DRAWS):
            error = rng.choice(self.errors, len(expected)) + kernel * rng.standard_normal(len(expected))
            drawn = np.exp(np.stack([*places.T, expected + shrink * error]))
            n, d, loss = np.hstack([[self.runs.params, self.runs.tokens, self.runs.loss], drawn])
            runs = ScalingRuns(n, d, loss, run=np.arange(len(n)).astype(str), unit="loss")
            widths.append(self.width(self.interval(runs)))
        return np.array(widths)


def _last_rows(runs: ScalingRuns) -> ScalingRuns:
    """Return the last row of each run."""
    if runs.checkpoints != "grouped":
        return replace(runs, warnings=())
    groups = runs.groups
    last = [rows[np.argmax(runs.tokens[rows])] for rows in (np.flatnonzero(groups == k) for k in range(runs.count))]
    return replace(runs.select(np.array(last)), warnings=())
