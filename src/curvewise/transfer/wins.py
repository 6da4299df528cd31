"""On how many test examples a method beats training from scratch."""

from __future__ import annotations

import warnings as python_warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.stats import holm
from curvewise.tables import number
from curvewise.transfer._wins_counts import (
    Losses,
    Units,
    as_losses,
    as_units,
    check_pair,
    count_all,
    count_pairs,
    finished,
    repeats_a_run,
    shape_of,
    without,
)
from curvewise.transfer._wins_results import WinRate, WinRates
from curvewise.transfer._wins_spread import spread_of
from curvewise.transfer.gains import gain_end
from curvewise.types import Predictions, check_level

__all__ = ["WinRate", "WinRates", "win_rate", "win_rates"]

NAMES = ("the method", "scratch")
FEW_UNITS = 10
"""With fewer groups (or examples) an interval is a rough one."""


def win_rate(
    losses: ArrayLike | Predictions | Sequence[ArrayLike],
    scratch_losses: ArrayLike | Predictions | Sequence[ArrayLike],
    *,
    groups: ArrayLike | None = None,
    paired: bool = False,
    names: tuple[str, str] = NAMES,
    level: float = 0.95,
) -> WinRate:
    """The share of test examples on which a method has a lower loss than scratch.

    With several runs it is averaged over all pairs of a run of the method and one of scratch, and
    the interval is for other test examples *and* other runs. With one run of each it is for these
    two networks on other examples; with one run of one side only, that side is taken to vary as
    much as the other.

    Parameters
    ----------
    losses, scratch_losses : array_like or Predictions
        Loss of each example, shape (examples,), or (runs, examples); the numbers of runs may
        differ. Examples must be the same and in the same order. Infinite losses may be compared;
        a run that is NaN on every example has failed and is left out, with a warning.
        :class:`Predictions` are read a block at a time; those of labels count as 0/1 errors, so
        that most examples are ties.
    groups : array_like, shape (examples,), optional
        Which examples belong together (frames of a video, questions on a passage) and are sampled
        whole. Taken from the predictions where they know.
    paired : bool
        Compare run r of the method only with run r of scratch: for runs that share their training
        subset or seed, whose losses go up and down together.
    names : tuple of str
        What to call the method, and what it is compared with.
    level : float
        Coverage of the interval.

    Notes
    -----
    The variance is that of a mean over examples, runs of the method and runs of scratch, all of
    them sampled; the interval is Student's on the scale of log odds, with fewer than five runs of a
    side on that of an angle. Two runs say little of how much others vary: the interval is wide for
    that, and a narrower one holds the truth too seldom where only one side varies. Simulated with
    known truth (``benchmarks/transfer_wins.py``; 50 to 2000 examples), 95% intervals hold it in 98
    to 100% of cases with two runs of each, 93 to 100% with three, 92 to 100% with five or ten,
    least where the rate is near 1 and runs vary much; 94 to 99% where one side does not vary. Where
    a run changes losses as much as an example does they hold a rate of one half in 96 to 100%, one
    of 0.98 in as few as 78%: the runs that lose are seldom among those seen. With one run of each
    they hold the rate of these two networks in 94 to 99%, but that of other runs in as few as 11%.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> difficulty = rng.normal(size=500)
    >>> scratch = difficulty + rng.normal(size=(5, 500))
    >>> method = difficulty - 0.5 + rng.normal(size=(5, 500))
    >>> found = win_rate(method, scratch)
    >>> print(f"{found.rate.estimate:.3f}", found.verdict)
    0.620 better
    """
    if len(names) != 2 or isinstance(names, str):
        raise InputError(f"names={names!r} must be two: of the method, and of scratch.")
    found = _measured(losses, scratch_losses, groups, paired, level, (names[0], names[1]))
    for text in found.warnings:
        python_warnings.warn(text, CurvewiseWarning, stacklevel=2)
    return found


def win_rates(
    by_n: Mapping[float, tuple[Any, Any]],
    *,
    groups: ArrayLike | None = None,
    paired: bool = False,
    level: float = 0.95,
) -> WinRates:
    """Win rates at several training sizes, and from which size there is nothing to be told.

    Parameters
    ----------
    by_n : dict
        From training size to the losses of the method and of scratch; see :func:`win_rate`.
    groups, paired, level
        As for :func:`win_rate`, the same at every size.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> draw = lambda gain: (rng.normal(-gain, size=(5, 400)), rng.normal(size=(5, 400)))
    >>> found = win_rates({100: draw(1.0), 1000: draw(0.5), 10000: draw(0.0)})
    >>> print(found.end.text)
    The gain is sure up to n = 1000; from n = 10,000 on it cannot be told from none.
    """
    if not isinstance(by_n, Mapping) or not by_n:
        raise InputError(
            "by_n must be a dict from training size to (losses, scratch_losses), not empty."
        )
    for size, pair in by_n.items():
        if not isinstance(size, int | float | np.number) or not 0 < size < np.inf:
            raise InputError(f"by_n has the key {size!r}: training sizes are positive numbers.")
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise InputError(f"by_n[{size!r}] must be a pair: (losses, scratch_losses).")
    order = sorted(by_n)
    rates = []
    for size in order:
        try:
            rates.append(_measured(*by_n[size], groups, paired, level))
        except InputError as failure:
            raise InputError(f"At n = {number(float(size))}: {failure}") from None
    sizes = np.array(order, dtype=np.float64)
    ends = np.array([[r.rate.estimate, r.rate.low, r.rate.high] for r in rates]) - 0.5
    said = tuple(dict.fromkeys(text for r in rates for text in r.warnings))
    for text in said:
        python_warnings.warn(text, CurvewiseWarning, stacklevel=2)
    return WinRates(
        n=sizes,
        rates=tuple(rates),
        adjusted=holm(np.array([r.pvalue for r in rates])),
        end=gain_end(sizes, *ends.T),
        level=level,
        warnings=said,
    )


def _measured(
    losses: Any,
    scratch_losses: Any,
    groups: ArrayLike | None,
    paired: bool,
    level: float,
    names: tuple[str, str] = NAMES,
) -> WinRate:
    check_level(level)
    own, other = as_losses(losses, "losses"), as_losses(scratch_losses, "scratch_losses")
    check_pair(own, other, ("losses", "scratch_losses"))
    units = as_units(groups, own, other)
    runs, rivals = shape_of(own)[0], shape_of(other)[0]
    if paired and runs != rivals:
        raise InputError(
            f"paired=True, but losses has {runs} runs and scratch_losses has {rivals}: pairs need"
            " as many of each."
        )
    own, other, failed = _finished(own, other, paired, names)
    runs, rivals = shape_of(own)[0], shape_of(other)[0]
    if paired:
        sides = [count_pairs(own, other, units)]
    else:
        sides = [count_all(own, other, units), count_all(other, own, units)]
    spread = spread_of(sides, units)
    return WinRate(
        rate=spread.interval(level),
        pvalue=spread.pvalue(),
        ties=sides[0].ties,
        by_run=sides[0].by_run,
        runs=runs,
        scratch_runs=rivals,
        examples=shape_of(own)[1],
        groups=None if units.codes is None else len(units.sizes),
        paired=paired,
        examples_std=float(np.sqrt(spread.examples)),
        runs_std=float(np.sqrt(spread.runs)),
        level=level,
        warnings=(*failed, *_warnings(own, other, units, names)),
        names=names,
    )


def _finished(
    own: Losses, other: Losses, paired: bool, names: tuple[str, str]
) -> tuple[Losses, Losses, tuple[str, ...]]:
    """The runs that did not fail, and what to say of those that did."""
    keep = finished(own), finished(other)
    said = tuple(
        f"Left out, since failed (NaN on every example): {int((~there).sum())} of {len(there)} runs"
        f" of {name}{', and the runs that go with them' if paired else ''}."
        for name, there in zip(names, keep, strict=True)
        if not there.all()
    )
    if paired:
        keep = (keep[0] & keep[1],) * 2
        if not keep[0].any():
            raise InputError("paired=True, but in every pair of runs one has failed (NaN).")
    return without(own, keep[0]), without(other, keep[1]), said


def _warnings(own: Losses, other: Losses, units: Units, names: tuple[str, str]) -> tuple[str, ...]:
    runs = zip(names, (shape_of(own)[0], shape_of(other)[0]), strict=True)
    single = [name for name, count in runs if count == 1]
    found = []
    if len(single) == 2:
        found.append(
            "One run of each was compared: the interval is for these two networks on other"
            " examples. What another seed would change is not in it; train three or more of each."
        )
    elif single:
        found.append(
            f"There is one run of {single[0]}: it is taken to vary between runs as much as the"
            " other side does."
        )
    for name, losses in zip(names, (own, other), strict=True):
        if repeats_a_run(losses):
            found.append(
                f"Two runs of {name} have the same losses on every example: was a run given twice?"
            )
    if len(units.sizes) < FEW_UNITS:
        word = "examples" if units.codes is None else "groups of examples"
        found.append(f"There are only {len(units.sizes)} {word}: the interval is a rough one.")
    return tuple(found)
