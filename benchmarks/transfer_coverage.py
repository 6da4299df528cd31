"""Coverage of 95% intervals of transfer, simulated with known truth.

    python benchmarks/transfer_coverage.py [draws] [name …]      (three minutes for 1000 draws)

Scratch and two methods have true curves that are power laws at four sizes; runs add noise that
falls with size. For each cell of the design one JSON line with, in percent: how often intervals
hold the truth, for the cumulative improvement (``cci``), the gain and the calibrated risk at a size
(``gain`` and ``risk``, the mean over sizes) and the difference of two improvements
(``difference``); how often a test at 5% rejects what is true (``null_cci``: a method that is no
better than scratch; ``null_difference``: two methods that are alike); and the median width of the
interval of the improvement.

The cells: independent runs, two to ten of each, with the names of their seeds and without; runs
that get fewer as the size grows, down to one, and that are there at large sizes only; ten runs
beside two; scratch that spreads three times as much; one cell that spreads four times as much;
tails as heavy as Student's t with four degrees of freedom, skewed ones (exponential, log-normal),
and one run in twenty that goes wrong by half of the scale; methods with one run beside a repeated
scratch, spreading as it does and three times as much; seeds that move a method alike at all sizes,
with a column that names them, without it, and without it and in another order at every size;
training subsets that are shared by the methods, and nested in each other; controls that are
measured with error, and by two or three runs; an assumed maximal control; other weights; every run
a point of its own.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import json
import sys
from dataclasses import dataclass, replace

import numpy as np

from curvewise.transfer.risks import Control, TransferRisks, cci, measured_control
from curvewise.transfer.runs import TaskRuns, group_runs

SIZES = 100.0 * 10 ** np.arange(4)
BLIND, MAXIMAL, LEVEL, HALF = 1.0, 0.02, 0.95, 0.5
TRUE = {
    "scratch": 0.05 + 0.81 * (SIZES / 100) ** -0.3,
    "one": 0.05 + 0.54 * (SIZES / 100) ** -0.2,
    "two": 0.05 + 0.48 * (SIZES / 100) ** -0.2,
    "alike": 0.05 + 0.54 * (SIZES / 100) ** -0.2,
    "again": 0.05 + 0.81 * (SIZES / 100) ** -0.3,
}


@dataclass(frozen=True)
class Design:
    """One cell of the simulation."""

    name: str
    runs: tuple[int, int, int, int] = (3, 3, 3, 3)
    start: int | None = None  # runs of scratch at each size, if other
    spread: float = 0.05  # at the smallest size
    scratch: float = 1.0  # its spread over that of the methods
    odd: float = 1.0  # spread of one cell over what it would be
    tails: str = "normal"
    wrong: float = 0.0  # chance of a run to go wrong
    seeds: bool = True  # whether seeds are given
    line: float = 0.0  # share of variance that a method keeps over sizes by its seed
    shuffled: bool = False  # whether the runs of each size come in an order of their own
    single: bool = False  # whether the methods have one run
    shared: float = 0.0  # share of variance that comes with the training subset
    nested: float = 0.0  # share of that which all sizes have in common
    folds: bool = False  # whether subsets are given
    controls: float = 0.0  # standard error of the two controls
    measured: int = 0  # runs that maximal supervision is measured with, spreading by 0.1
    assumed: bool = False
    pooled: bool = False
    weight: str = "scratch"


DESIGNS = (
    *(Design(f"{r} runs", (r,) * 4) for r in (2, 3, 5, 10)),
    *(Design(f"{r} runs, seeds not told", (r,) * 4, seeds=False) for r in (2, 3, 5)),
    Design("4, 4, 3, 1 runs", (4, 4, 3, 1)),
    Design("1, 1, 3, 3 runs", (1, 1, 3, 3)),
    Design("2 runs, scratch 10", (2,) * 4, start=10),
    Design("10 runs, scratch 2", (10,) * 4, start=2),
    *(Design(f"scratch spreads 3×, {r} runs", (r,) * 4, scratch=3.0) for r in (2, 3, 5)),
    *(Design(f"one cell spreads 4×, {r} runs", (r,) * 4, odd=4.0) for r in (2, 3, 5)),
    Design("three times the noise", spread=0.15),
    Design("heavy tails", tails="t"),
    Design("skewed", tails="skewed"),
    *(Design(f"log-normal, {r} runs", (r,) * 4, tails="log-normal") for r in (2, 3, 5, 10)),
    *(Design(f"one in 20 goes wrong, {r} runs", (r,) * 4, wrong=0.05) for r in (3, 5, 10)),
    *(Design(f"seeds over sizes, {r} runs", (r,) * 4, line=0.7) for r in (2, 3, 5)),
    *(Design(f"seeds over sizes, not told, {r} runs", (r,) * 4, line=0.7, seeds=False) for r in (2, 3, 5, 10)),
    *(Design(f"seeds alone, not told, {r} runs", (r,) * 4, line=1.0, seeds=False) for r in (2, 3, 5, 10)),
    *(
        Design(f"{name}, not told, shuffled, {r} runs", (r,) * 4, line=line, seeds=False, shuffled=True)
        for name, line in (("seeds over sizes", 0.7), ("seeds alone", 1.0))
        for r in (2, 3, 5, 10)
    ),
    Design("one run per method", single=True),
    Design("one run per method, spreading 3×", single=True, scratch=1 / 3),
    *(Design(f"subsets shared, {r}", (r,) * 4, shared=0.6, folds=True) for r in (2, 3, 5, 10)),
    Design("subsets shared, not told", shared=0.6),
    Design("subsets told, not shared", folds=True),
    Design("subsets shared, 4, 4, 3, 1", (4, 4, 3, 1), shared=0.6, folds=True),
    *(Design(f"subsets nested, {r}", (r,) * 4, shared=0.6, nested=0.8, folds=True) for r in (3, 5, 10)),
    *(Design(f"nested, scratch 3×, {r}", (r,) * 4, scratch=3, shared=0.9, nested=0.9, folds=True) for r in (3, 5)),
    Design("2 subsets shared, scratch 10", (2,) * 4, start=10, shared=0.6, folds=True),
    Design("controls with error", controls=0.02),
    *(Design(f"maximal of {k} runs", measured=k) for k in (2, 3, 5)),
    *(Design(f"maximal of {k} runs, others 10", (10,) * 4, measured=k) for k in (2, 3)),
    *(Design(f"maximal assumed, {r} runs", (r,) * 4, assumed=True) for r in (2, 3, 5)),
    *(Design(f"weight {w}", weight=w) for w in ("uniform", "log")),
    *(Design(f"pooled, {r} runs", (r,) * 4, pooled=True) for r in (2, 3, 5)),
)


def main() -> None:
    """Simulate, print."""
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    wanted = sys.argv[2:]
    for design in DESIGNS:
        if not wanted or design.name in wanted:
            found = {"cell": design.name, "draws": draws, **simulate(design, draws)}
            print(json.dumps(found, ensure_ascii=False), flush=True)


def simulate(design: Design, draws: int) -> dict[str, float]:
    """Shares in percent, and the median width."""
    true = {name: risk + design.wrong * HALF for name, risk in TRUE.items()}
    maximal = min(map(min, true.values())) if design.assumed else MAXIMAL
    level = {name: (risk - maximal) / (BLIND - maximal) for name, risk in true.items()}
    weight = design.weight
    truth = {name: cci(SIZES, level[name], level["scratch"], weight=weight) for name in level}
    held: dict[str, list[float]] = {}
    for i in range(draws):
        task = draw(design, np.random.default_rng([11, i]))
        found = {m: task.cci(m, SIZES, weight, design.pooled) for m in task.methods}
        one = found["one"]
        within = one.error.interval(one.value, LEVEL)
        difference = one - found["two"]
        gap = difference.error.interval(difference.value, LEVEL)
        gains = [task.gain("one", n) for n in SIZES]
        inside = [
            level["scratch"][k] - level["one"][k] in g.error.interval(g.value, LEVEL) for k, g in enumerate(gains)
        ]
        risks = [task.calibrated("one", n) for n in SIZES]
        known = [level["one"][k] in r.error.interval(r.value, LEVEL) for k, r in enumerate(risks)]
        alike = one - found["alike"]
        for name, value in {
            "cci": truth["one"] in within,
            "gain": np.mean(inside),
            "risk": np.mean(known),
            "difference": truth["one"] - truth["two"] in gap,
            "null_cci": found["again"].error.pvalue(found["again"].value) <= 1 - LEVEL,
            "null_difference": alike.error.pvalue(alike.value) <= 1 - LEVEL,
            "width": within.width,
        }.items():
            held.setdefault(name, []).append(float(value))
    width = round(float(np.median(held.pop("width"))), 4)
    return {k: round(100 * float(np.mean(v)), 1) for k, v in held.items()} | {"width": width}


def draw(design: Design, rng: np.random.Generator) -> TaskRuns:
    """Runs of scratch and the methods, in cells."""
    most = max(*design.runs, design.start or 0)
    common = rng.standard_normal(most)
    rows: list[tuple[str, float, float, str]] = []
    subset = [np.sqrt(1 - design.nested) * rng.standard_normal(most) + np.sqrt(design.nested) * common for _ in SIZES]
    for name, risk in TRUE.items():
        line = rng.standard_normal(most)
        for k, n in enumerate(SIZES):
            count = 1 if design.single and name != "scratch" else design.runs[k]
            count = design.start or count if name == "scratch" else count
            std = design.spread * (n / 100) ** -0.25 * (design.scratch if name == "scratch" else 1)
            std *= design.odd if (name, k) == ("one", 1) else 1
            own = np.sqrt(1 - design.shared - design.line) * noise(design.tails, count, rng)
            kept = rng.permutation(count) if design.shuffled else np.arange(count)
            own += np.sqrt(design.line) * line[kept]
            moved = risk[k] + std * (own + np.sqrt(design.shared) * subset[k][:count])
            moved += HALF * (rng.random(count) < design.wrong)
            rows += [(name, n, value, str(i)) for i, value in enumerate(moved.tolist())]
    methods, n, values, folds = zip(*rows, strict=True)
    risks = TransferRisks(
        tasks=["task"] * len(rows),
        methods=methods,
        n=n,
        risk=values,
        seeds=folds if design.seeds else None,
        folds=folds if design.folds else None,
    )
    off = design.controls * rng.standard_normal(2)
    blind = Control(BLIND + off[0], design.controls)
    maximal = None if design.assumed else Control(MAXIMAL + off[1], design.controls)
    if design.measured:
        runs = MAXIMAL + 0.1 * rng.standard_normal(design.measured)
        maximal = measured_control([-1] * design.measured, runs)
    controls = {"blind": {"task": blind}, "maximal": {} if maximal is None else {"task": maximal}}
    return group_runs(replace(risks, **controls), "task")


def noise(tails: str, count: int, rng: np.random.Generator) -> np.ndarray:
    """Of mean 0 and variance 1."""
    if tails == "t":
        return rng.standard_t(4, count) / np.sqrt(2)
    if tails == "log-normal":
        return (rng.lognormal(size=count) - np.exp(0.5)) / np.sqrt(np.e * (np.e - 1))
    if tails == "skewed":
        return rng.exponential(size=count) - 1
    return rng.standard_normal(count)


if __name__ == "__main__":
    main()
