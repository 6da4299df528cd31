"""How much data one task asks for: sizes that reach a level, the mean, the factor that halves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from curvewise.errors import InputError
from curvewise.stats import crossing_interval, difference_interval, first_crossing
from curvewise.tables import about, number
from curvewise.transfer._cells import Estimate, Task
from curvewise.types import FloatArray, Interval

UNKNOWN = float("nan")


@dataclass(frozen=True)
class Reached:
    """The training size at which a calibrated risk comes down to a level.

    Attributes
    ----------
    level : float
        Of calibrated risk.
    n : Interval
        0 (∞) stands for a size below the smallest (above the largest) that was measured.
    beyond : {"below", "above"}, optional
        On which side of the sizes measured the level lies, if it does not lie between them.
    smallest, largest : float
        Sizes measured.
    """

    level: float
    n: Interval
    beyond: str | None
    smallest: float
    largest: float

    @property
    def bounds(self) -> Interval:
        """The size as a table holds it: NaN beyond the sizes measured, between its bounds."""
        if self.beyond == "below":
            return _bounds(self.n, 0.0, self.smallest)
        return self.n if self.beyond is None else _bounds(self.n, self.largest, math.inf)

    def __str__(self) -> str:
        low, high = self.n
        if self.beyond == "below":
            return f"≤ {number(self.smallest)}" + self._maybe("up to", high, self.smallest)
        if self.beyond == "above":
            return f"> {number(self.largest)}" + self._maybe("from", low, self.largest)
        if math.isnan(low):
            return about(self.n.estimate)
        ends = ["<" * (low == 0) + self._size(low), ">" * math.isinf(high) + self._size(high)]
        return f"{about(self.n.estimate)} [{', '.join(ends)}]"

    def _maybe(self, word: str, end: float, size: float) -> str:
        """How far between the sizes measured the level may lie nevertheless."""
        return "" if math.isnan(end) or end == size else f" (or {word} {self._size(end)})"

    def _size(self, n: float) -> str:
        if n == 0:
            return number(self.smallest)
        return number(self.largest) if math.isinf(n) else about(n)


@dataclass(frozen=True, eq=False)
class TaskNeeds:
    """How much data one task asks for when it is learned from scratch.

    Attributes
    ----------
    task : str
    reached : tuple of Reached
        For each level of calibrated risk, the training size that reaches it first.
    mean : Interval
        Mean calibrated risk over log n, over all sizes measured; NaN with one size.
    shared_mean : Interval
        The same over the sizes that all tasks span, which makes it comparable; NaN if none.
    halving : Interval
        By what factor the training set must grow for calibrated risk to halve, by a line through
        log risk against log n; ∞ stands for a factor above that between the largest and the
        smallest size, or for a risk that does not fall.
    smallest, largest : float
        Training sizes measured.
    warnings : tuple of str
    """

    task: str
    reached: tuple[Reached, ...]
    mean: Interval
    shared_mean: Interval
    halving: Interval
    smallest: float
    largest: float
    warnings: tuple[str, ...] = ()

    @property
    def spanned(self) -> float:
        """The largest training size over the smallest: factors above it were not looked at."""
        return self.largest / self.smallest

    @property
    def halving_bounds(self) -> Interval:
        """The factor as a table holds it: NaN above what was measured, between its bounds."""
        if not math.isinf(self.halving.estimate):
            return self.halving
        return _bounds(self.halving, self.spanned, math.inf)

    def halving_text(self, digits: int = 2) -> str:
        """The factor that halves the risk, with its interval; "> 16" beyond what was measured."""
        low, high = self.halving
        if math.isnan(self.halving.estimate):
            return ""
        if math.isinf(self.halving.estimate):
            maybe = f" (or from {low:.{digits}f})" if low < self.spanned else ""
            return f"> {number(self.spanned, 3)}{maybe}"
        if math.isnan(low):
            return f"{self.halving.estimate:.{digits}f}"
        top = f">{number(self.spanned, 3)}" if math.isinf(high) else f"{high:.{digits}f}"
        return f"{self.halving.estimate:.{digits}f} [{low:.{digits}f}, {top}]"

    def at(self, level: float) -> Reached:
        """The training size for one of the levels."""
        for found in self.reached:
            if math.isclose(found.level, level):
                return found
        raise InputError(f"level={level!r} is none of {[r.level for r in self.reached]!r}.")


def _bounds(value: Interval, low: float, high: float) -> Interval:
    """What lies between low and high, or as far as its interval goes where it has one."""
    ends = (low, high) if math.isnan(value.low) else tuple(value)
    return replace(value, estimate=UNKNOWN, low=ends[0], high=ends[1])


def needs_of(
    task: Task, levels: Sequence[float], shared: tuple[float, float] | None, level: float
) -> TaskNeeds:
    """What the curve of scratch says about a task."""
    n = task.sizes(task.scratch)
    risks = [task.calibrated(task.scratch, size) for size in n]
    reached = tuple(_reached(n, risks, wanted, level) for wanted in levels)
    return TaskNeeds(
        task=task.name,
        reached=reached,
        mean=_mean(n, risks, (n[0], n[-1]), level),
        shared_mean=_mean(n, risks, shared, level),
        halving=_halving(n, risks, level),
        smallest=float(n[0]),
        largest=float(n[-1]),
        warnings=_alarms(n, risks, reached),
    )


def shared_range(tasks: Sequence[Task]) -> tuple[float, float] | None:
    """The training sizes that scratch spans on all tasks, if there are any."""
    sizes = [task.sizes(task.scratch) for task in tasks]
    low, high = max(n[0] for n in sizes), min(n[-1] for n in sizes)
    return (float(low), float(high)) if low < high else None


def told_apart(a: Reached, b: Reached) -> bool:
    """Whether two sizes differ for sure, judged on the scale of log n."""
    if a.n.high < b.n.low or b.n.high < a.n.low:
        return True
    if a.beyond or b.beyond or any(map(math.isnan, (*a.n, *b.n))):
        return False
    with np.errstate(divide="ignore"):
        logs = [np.log([i.estimate, i.low, i.high]) for i in (a.n, b.n)]
    low, high = difference_interval(
        logs[0][0], (logs[0][1], logs[0][2]), logs[1][0], (logs[1][1], logs[1][2])
    )
    return bool(low > 0 or high < 0)


def _combined(weights: FloatArray, parts: Sequence[Estimate]) -> Estimate:
    """Σ weight × estimate, with what its parts share counted once."""
    used = [(w, p) for w, p in zip(weights, parts, strict=True) if w != 0]
    return Estimate(
        value=float(sum(w * p.value for w, p in used)),
        influence=np.sum([w * p.influence for w, p in used], axis=0),
        blind=float(sum(w * p.blind for w, p in used)),
        maximal=float(sum(w * p.maximal for w, p in used)),
        task=parts[0].task,
    )


def _shares(n: FloatArray, x: FloatArray) -> FloatArray:
    """What each size counts in the risk interpolated at x, shape (len(x), sizes)."""
    return np.stack([np.interp(np.log(x), np.log(n), unit) for unit in np.eye(len(n))], axis=1)


def _reached(n: FloatArray, risks: Sequence[Estimate], wanted: float, level: float) -> Reached:
    value = np.array([r.value for r in risks])
    value[np.abs(value - wanted) < 1e-12] = wanted  # what arithmetic leaves of a level itself
    log_n = first_crossing(np.log(n), value - wanted)
    first = value[0] <= wanted
    estimate = 0.0 if first else float(np.exp(log_n)) if math.isfinite(log_n) else math.inf
    beyond = "below" if first else "above" if math.isinf(estimate) else None

    def evaluate(x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        found = [_combined(w, risks) for w in _shares(n, x)]
        spans = [e.error.interval(e.value - wanted, level) for e in found]
        return (
            np.array([s.estimate for s in spans]),
            np.array([s.low for s in spans]),
            np.array([s.high for s in spans]),
        )

    if any(math.isnan(r.error.std) for r in risks):
        low, high = UNKNOWN, UNKNOWN
    else:
        low, high = crossing_interval(evaluate, n)
        low = float(n[-1]) if math.isinf(low) else low
        high = float(n[0]) if high == 0 else high
    return Reached(wanted, Interval(estimate, low, high, level), beyond, float(n[0]), float(n[-1]))


def _mean(
    n: FloatArray, risks: Sequence[Estimate], span: tuple[float, float] | None, level: float
) -> Interval:
    if span is None or len(n) < 2:
        return Interval(UNKNOWN, UNKNOWN, UNKNOWN, level)
    x = np.unique([*span, *n[(n > span[0]) & (n < span[1])]])
    steps = np.diff(np.log(x))
    each = 0.5 * (np.append(steps, 0.0) + np.append(0.0, steps)) / steps.sum()
    found = _combined(each @ _shares(n, x), risks)
    return found.error.interval(found.value, level)


def _halving(n: FloatArray, risks: Sequence[Estimate], level: float) -> Interval:
    """2 to the power of −1/slope, of a line through log calibrated risk against log n."""
    used = [i for i, r in enumerate(risks) if _positive(r)]
    if len(used) < 2:
        return Interval(UNKNOWN, UNKNOWN, UNKNOWN, level)
    log_n = np.log(n[used])
    lever = (log_n - log_n.mean()) / ((log_n - log_n.mean()) ** 2).sum()
    value = np.array([risks[i].value for i in used])
    slope = float(lever @ np.log(value))
    span = _combined(lever / value, [risks[i] for i in used]).error.interval(slope, level)
    most = float(n[-1] / n[0])
    low = min(_factor(span.low, most), most) if not math.isnan(span.low) else UNKNOWN
    return Interval(_factor(slope, most), low, _factor(span.high, most), level)


def _positive(risk: Estimate) -> bool:
    """Whether its logarithm means something: two standard errors above maximal supervision."""
    return risk.value > (0.0 if math.isnan(risk.error.std) else 2 * risk.error.std)


def _factor(slope: float, most: float) -> float:
    """What halves the risk; nothing is known of factors beyond the one that was measured."""
    if math.isnan(slope):
        return UNKNOWN
    found = float(2.0 ** min(-1.0 / slope, 1000.0)) if slope < 0 else math.inf
    return found if found <= most * (1 + 1e-9) else math.inf


def _alarms(
    n: FloatArray, risks: Sequence[Estimate], reached: Sequence[Reached]
) -> tuple[str, ...]:
    found = []
    if len(n) < 2:
        found.append(f"one training size, n = {number(n[0])}: nothing is known of its curve.")
    if any(math.isnan(r.error.std) for r in risks):
        found.append("no size was run twice, so that there are no intervals: add seeds.")
    for at in reached:
        after = [
            r.value > at.level for size, r in zip(n, risks, strict=True) if size > at.n.estimate
        ]
        if at.beyond != "above" and any(after):
            found.append(f"calibrated risk comes back above {at.level:g} after n = {at}.")
    return tuple(found)
