"""Coverage of the intervals of win rates and of equivalent sizes, simulated with known truth.

    python benchmarks/transfer_wins.py [draws]       (a few minutes with the default of 300)

Win rates: the loss of a run on an example is the example's difficulty, what the method gains (more
on some examples than on others), an effect of the run on all examples and noise of the two
together. The chance that the method has the lower loss follows from the spreads of these. Cells
vary the numbers of runs (equal or not) and of examples, the spread over runs and the truth; some
have 0/1 errors with many ties, examples in groups, pairs of runs that share an effect, or runs of
the method that do not vary while those of scratch do; in the last ones a run changes the loss as
much as an example does. ``held`` is the percentage of 95% intervals that hold the truth,
``rejected`` that of p-values below 0.05 where the truth is one half, ``these`` that of intervals
which hold the truth for the two networks that there are, if each side has one.

Equivalent sizes: scratch and method follow power laws with an asymptote, four sizes of each a
factor of ``step`` apart. ``held`` is the percentage of intervals that hold the size at which
scratch truly is as good, where it lies among those measured; ``factor`` how far the median estimate
is off; ``variance`` says whether each mean has its own variance, or all share one.

One JSON line for each cell.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import json
import sys
import warnings
from itertools import product

import numpy as np
from scipy.special import ndtr, ndtri

from curvewise.transfer.gains import data_equivalence
from curvewise.transfer.wins import win_rate

UNEVEN = 0.5  # spread over examples of what the method gains
EXTREMES = ((2, 2), (2, 10), (3, 3), (5, 5), (10, 10))


def main() -> None:
    """Simulate, print."""
    warnings.simplefilter("ignore")
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    cells = [
        {"runs": (r, r), "examples": n, "spread": spread, "truth": truth}
        for r, n, spread, truth in product((1, 2, 3, 5, 10), (50, 500, 2000), (0.0, 0.1, 0.4), (0.5, 0.8, 0.98))
    ]
    cells += [
        {"runs": runs, "examples": 500, "spread": spread, "truth": truth}
        for runs, spread, truth in product(((1, 5), (2, 10), (3, 10)), (0.0, 0.4), (0.5, 0.9))
    ]
    for kind, runs, spread in product(("errors", "groups", "paired"), EXTREMES, (0.0, 0.4)):
        if kind != "paired" or runs[0] == runs[1]:
            cells.append({"kind": kind, "runs": runs, "examples": 500, "spread": spread, "truth": 0.8})
    cells += [
        {"kind": "one varies", "runs": runs, "examples": 500, "spread": 0.4, "truth": truth}
        for runs, truth in product((*EXTREMES, (10, 2)), (0.5, 0.9))
    ]
    cells += [
        {"runs": (r, r), "examples": 500, "spread": 1.0, "truth": truth}
        for r, truth in product((2, 3, 5, 10), (0.5, 0.8, 0.98))
    ]
    for i, cell in enumerate(cells):
        print(json.dumps({"benchmark": "win rate", **cell, **wins(i, draws, **cell)}), flush=True)
    for i, (runs, noise, step, shared) in enumerate(
        product((2, 3, 5, 10), (0.01, 0.03, 0.08), (4, 10), ("own", "pooled"))
    ):
        cell = {"runs": runs, "noise": noise, "step": step, "variance": shared}
        found = equivalents(i, max(draws // 4, 1), **cell)
        print(json.dumps({"benchmark": "equivalent size", **cell, **found}), flush=True)


def wins(
    index: int, draws: int, *, runs: tuple[int, int], examples: int, spread: float, truth: float, kind: str = "losses"
) -> dict[str, float]:
    """Count how often intervals hold the truth."""
    held, rejected, these, width = [], [], [], []
    for draw in range(draws):
        rng = np.random.default_rng([7, index, draw])
        method, scratch, options, value, here = simulate(rng, runs, examples, spread, truth, kind)
        found = win_rate(method, scratch, **options)
        held.append(value in found.rate)
        these.append(here in found.rate)
        rejected.append(found.pvalue < 0.05)
        width.append(found.rate.width)
    answer = {"held": percent(held), "width": round(float(np.mean(width)), 4)}
    if truth == 0.5:
        answer["rejected"] = percent(rejected)
    if runs == (1, 1):
        answer["these"] = percent(these)
    return answer


def simulate(
    rng: np.random.Generator, runs: tuple[int, int], examples: int, spread: float, truth: float, kind: str
) -> tuple[np.ndarray, np.ndarray, dict[str, object], float, float]:
    """Losses of the method and of scratch, options, the truth, and that of the first two runs."""
    spreads = (0.0 if kind == "one varies" else spread, spread)
    shift = ndtri(truth) * np.sqrt(UNEVEN**2 + spreads[0] ** 2 + spreads[1] ** 2 + 2)
    groups = np.sort(rng.integers(0, examples // 5, examples)) if kind == "groups" else None
    members = np.arange(examples) if groups is None else groups
    uneven = UNEVEN * rng.standard_normal(examples)[members]
    own, other = (s * rng.standard_normal((r, 1)) for s, r in zip(spreads, runs, strict=True))
    hard = rng.standard_normal(examples)
    method = hard + uneven - shift + own + rng.standard_normal((runs[0], examples))
    scratch = hard + other + rng.standard_normal((runs[1], examples))
    options: dict[str, object] = {"groups": groups, "paired": kind == "paired"}
    if kind == "paired":
        both = rng.standard_normal((runs[0], 1))
        method, scratch = method + both, scratch + both
    if kind == "errors":
        wrong = [ndtr(-shift / np.sqrt(UNEVEN**2 + spread**2 + 2)), ndtr(0.0)]
        return method > 0, scratch > 0, options, 0.5 + (wrong[1] - wrong[0]) / 2, truth
    here = ndtr((shift - own[0, 0] + other[0, 0]) / np.sqrt(UNEVEN**2 + 2))
    return method, scratch, options, truth, float(here)


def equivalents(index: int, draws: int, *, runs: int, noise: float, step: int, variance: str) -> dict[str, float]:
    """Count how often intervals of the equivalent size hold it."""
    n = 100.0 * float(step) ** np.arange(4)
    scratch, method = 0.1 + 0.9 * (n / 100) ** -0.4, 0.1 + 0.6 * (n / 100) ** -0.4
    truth = n * (0.9 / 0.6) ** (1 / 0.4)
    inside = truth <= n[-1]
    held, off = [], []
    for draw in range(draws):
        rng = np.random.default_rng([11, index, draw])
        s, m = (mean + noise * rng.standard_normal((runs, 4)) for mean in (scratch, method))
        spreads, degrees = [x.var(axis=0, ddof=1) / runs for x in (s, m)], runs - 1
        if variance == "pooled":
            spreads, degrees = [np.full(4, np.mean(spreads))] * 2, 8 * (runs - 1)
        found = data_equivalence(
            n,
            m.mean(axis=0),
            n,
            s.mean(axis=0),
            variance=spreads[1],
            scratch_variance=spreads[0],
            degrees=degrees,
            scratch_degrees=degrees,
        )
        for ok, size, one in zip(inside, truth, found, strict=True):
            if ok:
                held.append(size in one.equivalent)
                off.append(one.equivalent.estimate / size)
    return {"held": percent(held), "factor": round(float(np.median(off)), 3)}


def percent(flags: list[bool]) -> float:
    """Share of true ones."""
    return round(100 * float(np.mean(flags)), 1)


if __name__ == "__main__":
    main()
