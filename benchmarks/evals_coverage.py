"""Coverage and error rates of the evals lens on simulated evaluations whose truth is known.

    python benchmarks/evals_coverage.py                   # all tables, about twenty minutes
    python benchmarks/evals_coverage.py clusters single   # some of them
    python benchmarks/evals_coverage.py --sets 1000       # rougher

Every table is a JSON line on stdout: rows of coverage (percent) of 95% intervals, or of error rates of tests at 5%.
Truths are none of the methods' assumptions: questions of uniform, skewed, bimodal and nearly perfect difficulty,
clusters of very unequal size, ragged samples, training seeds, judges that err in one direction. With 2,000 sets the
Monte Carlo error of a coverage near 95% is 0.5 points.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import stats

import curvewise as cw
from curvewise.evals.pairs import PairTests, pair_tests

Array = NDArray[np.float64]
SIZES = np.array([22, 231, 34, 2, 1, 8, 22, 10, 19, 32, 44, 75])
"""Questions in each passage of a benchmark, one of which holds nearly half of them."""
MEMBERS = np.repeat(np.arange(len(SIZES)), SIZES)
TRUTHS: dict[str, Callable[[np.random.Generator, tuple[int, ...]], Array]] = {
    "uniform": lambda rng, shape: rng.random(shape),
    "skewed, Beta(5, 1)": lambda rng, shape: rng.beta(5, 1, shape),
    "nearly all solved, Beta(30, 1)": lambda rng, shape: rng.beta(30, 1, shape),
    "bimodal, Beta(.3, .1)": lambda rng, shape: rng.beta(0.3, 0.1, shape),
    "5% or 95%": lambda rng, shape: np.where(rng.random(shape) < 0.3, 0.05, 0.95),
    "never or always": lambda rng, shape: (rng.random(shape) < 0.8).astype(float),
}
Row = dict[str, object]
CHUNK = 250
"""Pairs that are simulated together."""


def main() -> None:
    """Simulate what was asked for and print a JSON line of each table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*", help=f"of {', '.join(TABLES)}; all by default")
    parser.add_argument("--sets", type=int, default=2000, help="simulated data sets a row")
    asked = parser.parse_args()
    warnings.simplefilter("ignore", cw.CurvewiseWarning)
    for name in asked.tables or TABLES:
        start = time.process_time()
        rows = list(TABLES[name](asked.sets))
        for row in rows:
            print(name, row, file=sys.stderr)
        seconds = round(time.process_time() - start, 1)
        line = {"benchmark": "evals_coverage", "table": name, "sets": asked.sets, "cpu_seconds": seconds}
        print(json.dumps({**line, "rows": rows}), flush=True)


def evals(scores: Array, **fields: object) -> cw.Evals:
    """Make evaluations whose models are simulated data sets."""
    names = tuple(map(str, range(len(scores))))
    return cw.Evals(scores, names, np.arange(scores.shape[1]).astype(str), **fields)  # type: ignore[arg-type]


def covered(low: Array, high: Array, truth: float | Array) -> float:
    """Percent of intervals that hold the truth."""
    return round(100 * float(((low <= truth) & (truth <= high)).mean()), 2)


def usual_cluster(values: Array, members: NDArray[np.int64], truth: float) -> float:
    """Coverage of what is commonly done: CR1 with t of one less than the number of clusters."""
    n, count = values.shape[1], members.max() + 1
    mean = values.mean(axis=1)
    totals = np.stack([(values - mean[:, None])[:, members == g].sum(axis=1) for g in range(count)])
    half = stats.t.ppf(0.975, count - 1) * np.sqrt((totals**2).sum(axis=0) * count / (count - 1)) / n
    return covered(mean - half, mean + half, truth)


def clusters(sets: int) -> list[Row]:
    """Twelve clusters of very unequal size: one model, a difference, and `compare_runs`, beside the usual CR1."""
    rows = []
    for base in (0.5, 0.8):
        for std in (0.0, 0.03, 0.1):
            rng = np.random.default_rng([12, int(100 * base), int(100 * std)])
            shift = np.clip(rng.normal(0, std, (sets, len(SIZES))), -0.2, 0.2)[:, MEMBERS]
            scores = (rng.random((sets, len(MEMBERS))) < base + shift).astype(float)
            s = cw.score_evals(evals(scores, groups=MEMBERS))
            row: Row = {"rate": base, "cluster std": std, "score_evals": covered(s.low, s.high, base)}
            row["CR1, t(G-1)"] = usual_cluster(scores, MEMBERS, base)
            # A second model without cluster effects of its own: the difference has the first one's.
            other = (rng.random(scores.shape) < base).astype(float)
            some = min(sets, 1000)
            hits = [0, 0]
            for i in range(some):
                pair = np.stack([scores[i], other[i]])
                e = cw.Evals(pair, ("a", "b"), np.arange(pair.shape[1]), groups=MEMBERS)
                hits[0] += 0 in cw.compare_evals(e, "a", "b").difference
                c = cw.compare_runs(
                    *(1 - pair)[:, None], kind="errors", groups=MEMBERS, distribution_std=0.0, permutations=1
                )
                hits[1] += 0 in c.difference
            row["compare_evals"], row["compare_runs"] = (round(100 * h / some, 2) for h in hits)
            row["difference, CR1, t(G-1)"] = usual_cluster((scores - other)[:some], MEMBERS, 0.0)
            rows.append(row)
    return rows


def single(sets: int) -> list[Row]:
    """Single 0/1 answers, exactly: the mean over uniform rates, and the coverage at some, beside Wilson's formula."""
    del sets  # sums over binomial distributions
    rows = []
    rates = np.round(np.arange(0.005, 1, 0.01), 3)
    for n in (10, 30, 100, 1000):
        right = np.arange(n + 1)
        scores = (np.arange(n) < right[:, None]).astype(float)
        s = cw.score_evals(evals(scores))
        z, share = stats.norm.ppf(0.975), right / n
        centre = (share + z**2 / (2 * n)) / (1 + z**2 / n)
        half = z * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
        tables = {}
        for name, low, high in (("curvewise", s.low, s.high), ("Wilson", centre - half, centre + half)):
            # 4,001 rates stand for the uniform distribution.
            mean = np.mean([exact(low, high, n, p) for p in (np.arange(4001) + 0.5) / 4001])
            tables[name] = (float(mean), np.array([exact(low, high, n, p) for p in rates]))
        ours, theirs = tables["curvewise"], tables["Wilson"]
        row: Row = {"questions": n, "uniform rates": round(ours[0], 2), "Wilson, uniform rates": round(theirs[0], 2)}
        row["least difference to Wilson's at a rate"] = round(float((ours[1] - theirs[1]).min()), 6)
        shown = (
            0.005,
            0.015,
            0.025,
            0.055,
            0.105,
            0.205,
            0.305,
            0.405,
            0.495,
            0.595,
            0.695,
            0.795,
            0.895,
            0.945,
            0.995,
        )
        for p in shown:
            i = int(np.argmin(abs(rates - p)))
            row[f"at {p}"] = [round(float(ours[1][i]), 2), round(float(theirs[1][i]), 2)]
        rows.append(row)
    return rows


def exact(low: Array, high: Array, n: int, rate: float) -> float:
    """Percent of n answers of this rate whose interval, given for each number of right ones, holds it."""
    inside = (low <= rate + 1e-12) & (rate <= high + 1e-12)
    return 100 * float(stats.binom.pmf(np.arange(n + 1), n, rate)[inside].sum())


def expected(metric: str | None, chance: Array) -> float:
    """True score of a metric."""
    if metric is None:
        return float(chance.mean())
    k = int(metric[5:])
    return float((1 - (1 - chance) ** k).mean() if metric[4] == "@" else (chance**k).mean())


def repeated(sets: int) -> list[Row]:
    """Means of several samples, pass@k and pass^k, for questions of several kinds."""
    rows = []
    settings = [(5, None), (10, None), (5, "pass@2"), (10, "pass@5"), (5, "pass@5"), (10, "pass^4"), (4, "pass^4")]
    for kind, draw in TRUTHS.items():
        population = draw(np.random.default_rng(0), (4_000_000,))
        for n in (30, 100, 300):
            row: Row = {"questions are": kind, "questions": n}
            for samples, metric in settings:
                rng = np.random.default_rng([n, samples, len(kind)])
                low, high = np.empty((2, sets))
                for start in range(0, sets, 500):
                    some = slice(start, min(sets, start + 500))
                    chance = draw(rng, (some.stop - start, n))
                    scores = (rng.random((*chance.shape, samples)) < chance[..., None]).astype(float)
                    s = cw.score_evals(evals(scores), metric)
                    low[some], high[some] = s.low, s.high
                row[f"{metric or 'mean'} of {samples}"] = covered(low, high, expected(metric, population))
            rows.append(row)
    return rows


def ragged(sets: int) -> list[Row]:
    """One to ten samples of a question, more of the hard ones or by chance."""
    rows = []
    for kind, draw in TRUTHS.items():
        population = draw(np.random.default_rng(0), (4_000_000,))
        for n in (30, 100, 300):
            row: Row = {"questions are": kind, "questions": n}
            for way in ("by chance", "more of hard ones"):
                rng = np.random.default_rng([n, len(way), len(kind)])
                chance = draw(rng, (sets, n))
                most = 10 - np.floor(9.99 * chance) if way == "more of hard ones" else rng.integers(1, 11, chance.shape)
                scores = (rng.random((sets, n, 10)) < chance[..., None]).astype(float)
                scores[np.arange(10) >= most[..., None]] = np.nan
                s = cw.score_evals(evals(scores))
                row[way] = covered(s.low, s.high, float(population.mean()))
            rows.append(row)
    return rows


def graded(sets: int) -> list[Row]:
    """Graded scores: judges from 1 to 10, ratings crowded at the top, skewed shares, losses without bounds."""
    rows = []
    kinds: dict[str, tuple[Callable[[np.random.Generator, tuple[int, ...]], Array], tuple[float, float]]] = {
        "judge, 1 to 10": (lambda rng, s: np.clip(np.round(rng.normal(7, 2, s)), 1, 10), (1, 10)),
        "ratings, most of them 10": (lambda rng, s: rng.choice([10.0, 9, 8, 2], s, p=[0.6, 0.25, 0.1, 0.05]), (1, 10)),
        "share, Beta(5, 2)": (lambda rng, s: rng.beta(5, 2, s), (0, 1)),
        "loss, log-normal": (lambda rng, s: rng.lognormal(0, 0.5, s), (-np.inf, np.inf)),
    }
    for kind, (draw, limits) in kinds.items():
        truth = float(draw(np.random.default_rng(0), (4_000_000,)).mean())
        row: Row = {"scores are": kind}
        for n in (10, 30, 100, 300):
            s = cw.score_evals(evals(draw(np.random.default_rng(n), (sets, n)), range=limits))
            row[f"{n} questions"] = covered(s.low, s.high, truth)
        rows.append(row)
    return rows


def tasks(sets: int) -> list[Row]:
    """Macro-averages over tasks of unequal size and difficulty, with and without groups and samples."""
    rows = []
    sizes, rates = np.array([200, 60, 25, 12]), np.array([0.3, 0.6, 0.8, 0.9])
    names = np.repeat([f"t{i}" for i in range(4)], sizes)
    chance = np.repeat(rates, sizes)
    weights = {"t0": 0.1, "t1": 0.2, "t2": 0.3, "t3": 0.4}
    for samples in (1, 5):
        for grouped in (False, True):
            rng = np.random.default_rng([samples, grouped])
            groups = np.arange(len(names)) // 4 if grouped else np.arange(len(names))
            own = rng.normal(0, 0.08, (sets, groups.max() + 1))[:, groups] if grouped else 0.0
            scores = (rng.random((sets, len(names), samples)) < (np.clip(chance + own, 0, 1))[..., None]).astype(float)
            if grouped:
                big = np.random.default_rng(1).normal(0, 0.08, 1_000_000)
                true = np.array([np.clip(r + big, 0, 1).mean() for r in rates])
            else:
                true = rates
            e = evals(scores, tasks=names, groups=groups if grouped else None)
            row: Row = {"samples": samples, "groups of four": grouped}
            s = cw.score_evals(e, average="tasks")
            row["tasks alike"] = covered(s.low, s.high, float(true.mean()))
            s = cw.score_evals(e, average=weights)
            row["small tasks weigh more"] = covered(s.low, s.high, float(true @ [0.1, 0.2, 0.3, 0.4]))
            rows.append(row)
    return rows


def compared(scores: Array, metric: str | None = None, **fields: object) -> PairTests:
    """Test many simulated pairs at once, shape (pairs, 2, questions, samples): what `compare_evals` does with one."""
    pairs = len(scores)
    e = evals(scores.reshape(2 * pairs, *scores.shape[2:]), **fields)
    return pair_tests(e, metric, pairs=(np.arange(pairs) * 2, np.arange(pairs) * 2 + 1))


def chunks(sets: int) -> list[int]:
    """Split a number of data sets, because all pairs of a chunk are compared."""
    return [min(CHUNK, sets - start) for start in range(0, sets, CHUNK)]


def compare(sets: int) -> list[Row]:
    """Type I error of comparisons at 5%: single answers, samples, pass^k, groups, ragged samples."""
    rows = []
    for kind, draw in TRUTHS.items():
        for n in (20, 50, 200):
            row: Row = {"questions are": kind, "questions": n}
            for name, samples, alike in (
                ("single answers", 1, True),
                ("single, unrelated", 1, False),
                ("5 samples", 5, True),
                ("5 samples, unrelated", 5, False),
                ("pass^3 of 6", 6, True),
                ("ragged, 1 to 5", 5, True),
                ("3 samples, groups of 5", 3, True),
                ("1 sample, groups of 5", 1, True),
            ):
                rng = np.random.default_rng([n, samples, alike, len(kind), len(name)])
                found = 0.0
                for count in chunks(sets):
                    grouped = "groups" in name
                    one = draw(rng, (count, n // 5)).repeat(5, axis=1) if grouped else draw(rng, (count, n))
                    chance = np.stack([one, one if alike else draw(rng, (count, n))], axis=1)
                    scores = (rng.random((count, 2, n, samples)) < chance[..., None]).astype(float)
                    if "ragged" in name:
                        scores[np.arange(5) >= rng.integers(1, 6, (count, 2, n, 1))] = np.nan
                    groups = np.arange(n) // 5 if grouped else None
                    p = compared(scores, "pass^3" if "pass" in name else None, groups=groups).pvalues()
                    found += float((p < 0.05).sum())
                row[name] = round(100 * found / sets, 2)
            rows.append(row)
    return rows


def differences(sets: int) -> list[Row]:
    """Coverage of the interval of a true difference, and how often the better model is found."""
    rows = []
    hard = np.random.default_rng(9).normal(0, 1.5, 2_000_000)
    for shift in (0.0, 0.4, 1.2):
        truth = float((1 / (1 + np.exp(hard - shift)) - 1 / (1 + np.exp(hard))).mean())
        for n in (30, 100, 400):
            row: Row = {"true difference": round(truth, 4), "questions": n}
            for samples in (1, 4):
                rng = np.random.default_rng([int(10 * shift), n, samples])
                low, high = [], []
                for count in chunks(sets):
                    own = rng.normal(0, 1.5, (count, n))
                    chance = np.stack([1 / (1 + np.exp(own - shift)), 1 / (1 + np.exp(own))], axis=1)
                    scores = (rng.random((count, 2, n, samples)) < chance[..., None]).astype(float)
                    ends = compared(scores).intervals(0.95)
                    low.append(ends[0])
                    high.append(ends[1])
                one, two = np.concatenate(low), np.concatenate(high)
                row[f"covered, {samples} samples"] = covered(one, two, truth)
                row[f"found, {samples} samples"] = round(100 * float((one > 0).mean()), 2)
                row[f"wrong sign, {samples} samples"] = round(100 * float((two < 0).mean()), 2)
            rows.append(row)
    return rows


def seeds(sets: int) -> list[Row]:
    """Training seeds: type I error of a comparison, and coverage of a score, where seeds really differ."""
    rows = []
    n, samples = 200, 2
    for std in (0.0, 0.2, 0.5):
        # A training has an effect on all questions, and one of its own on each.
        logits = np.random.default_rng(4).normal(0, np.sqrt(1.5**2 + std**2 + 0.5**2), 4_000_000)
        truth = float((1 / (1 + np.exp(logits))).mean())
        for count in (2, 3, 5):
            rng = np.random.default_rng([int(10 * std), count])
            found, hits = [0.0, 0.0], 0.0
            names = np.repeat(np.arange(count), samples).astype(str)
            for some in chunks(sets // 2):
                hard = rng.normal(0, 1.5, (some, 1, 1, n, 1))
                effect = rng.normal(0, std, (some, 2, count, 1, 1)) + rng.normal(0, 0.5, (some, 2, count, n, 1))
                right = rng.random((some, 2, count, n, samples)) < 1 / (1 + np.exp(hard + effect))
                scores = right.astype(float).transpose(0, 1, 3, 2, 4).reshape(some, 2, n, -1)
                known = compared(scores, seeds=np.tile(names, (2 * some, 1)))
                for i, tests in enumerate((known, compared(scores))):
                    found[i] += float((tests.pvalues() < 0.05).sum())
                s = cw.score_evals(evals(scores[:, 0], seeds=np.tile(names, (some, 1))))
                hits += float(((s.low <= truth) & (truth <= s.high)).sum())
            total = sets // 2
            row: Row = {"std of seeds (log-odds)": std, "seeds": count}
            row |= {
                "type I": round(100 * found[0] / total, 2),
                "type I, seeds ignored": round(100 * found[1] / total, 2),
            }
            rows.append({**row, "score covered": round(100 * hits / total, 2)})
    return rows


def looks(sets: int) -> list[Row]:
    """Type I error of sequential plans over questions, beside stopping at the first p < 0.05."""
    rows = []
    for planned in ((50, 100, 200), (20, 40, 60, 80, 100), tuple(range(50, 501, 50))):
        plan = cw.evals.plan_looks(planned, rng=1)
        for kind in ("uniform", "nearly all solved, Beta(30, 1)", "5% or 95%"):
            for samples in (1, 4):
                rng = np.random.default_rng([len(planned), samples, len(kind)])
                stopped = naive = 0
                for count in chunks(sets):
                    chance = TRUTHS[kind](rng, (count, 1, planned[-1], 1))
                    scores = (rng.random((count, 2, planned[-1], samples)) < chance).astype(float)
                    # As `check_looks` does, many data sets at a time.
                    least = np.min([compared(scores[:, :, :n]).pvalues() for n in planned], axis=0)
                    stopped += int((least <= plan.nominal_level).sum())
                    naive += int((least < 0.05).sum())
                row: Row = {"looks": list(planned), "questions are": kind, "samples": samples}
                rows.append(row | {"planned": round(100 * stopped / sets, 2), "naive": round(100 * naive / sets, 2)})
    return rows


def plans(sets: int) -> list[Row]:
    """Power of as many questions as are planned for 80%: unrelated uniform questions shifted by the difference."""
    rows = []
    for shift in (0.08, 0.15, 0.25, 0.4):
        for samples in (1, 3, 8):
            rng = np.random.default_rng([int(100 * shift), samples])
            base = rng.random(400_000) * (1 - 2 * shift) + shift
            a = np.clip(base + rng.uniform(-shift, shift, base.size) + shift / 2, 0, 1)
            b = base - shift / 2
            truth = float((a - b).mean())
            # A pilot with several samples of many questions knows the variances, and that answers are right or wrong.
            pilot = (rng.random((2, 20_000, 4)) < np.stack([a, b])[:, :20_000, None]).astype(float)
            e = cw.Evals(pilot, ("a", "b"), np.arange(20_000))
            n = cw.plan_evals(truth, pilot=e, samples=samples).questions or 2
            found = 0.0
            for count in chunks(sets):
                chosen = rng.integers(0, base.size, (count, n))
                chance = np.stack([a[chosen], b[chosen]], axis=1)
                scores = (rng.random((count, 2, n, samples)) < chance[..., None]).astype(float)
                found += float((compared(scores).pvalues() < 0.05).sum())
            row: Row = {"true difference": round(truth, 4), "samples": samples, "questions": n}
            rows.append({**row, "found": round(100 * found / sets, 2)})
    return rows


def ranks(sets: int) -> list[Row]:
    """All intervals of ranks together, and any false difference, for models some of which are equal."""
    rows = []
    for name, skill in (
        ("ten equal models", np.zeros(10)),
        ("two equal groups", np.repeat([0.0, 0.5], 5)),
        ("a ladder", np.linspace(0, 1, 10)),
    ):
        for samples in (1, 3):
            rng = np.random.default_rng([len(name), samples])
            held = false = 0
            count = max(200, sets // 2)
            better = (skill[:, None] > skill).sum(axis=0)  # models truly better than each
            worse = (skill[:, None] < skill).sum(axis=0)
            for _ in range(count):
                hard = rng.normal(0, 1.5, (1, 300, 1)) + rng.normal(0, 0.7, (10, 300, 1))
                scores = rng.random((10, 300, samples)) < 1 / (1 + np.exp(hard - skill[:, None, None]))
                r = cw.rank_models(cw.Evals(scores.astype(float), tuple("abcdefghij"), np.arange(300)))
                place = np.array(["abcdefghij".index(m) for m in r.models])
                # Equal models share all of their ranks, which the intervals of each must hold.
                held += bool(((r.rank_low <= 1 + better[place]) & (r.rank_high >= 10 - worse[place])).all())
                table = r.pair_columns()
                one, two = (np.array(["abcdefghij".index(m) for m in table[k]]) for k in "ab")
                false += bool(((table["pvalue_holm"] < 0.05) & (skill[one] <= skill[two])).any())
            rows.append(
                {
                    "models": name,
                    "samples": samples,
                    "all ranks held": round(100 * held / count, 2),
                    "any false difference": round(100 * false / count, 2),
                }
            )
    return rows


def judge(sets: int) -> list[Row]:
    """Judges that err in one direction, corrected by few labels, with and without groups; beside the judge alone."""
    rows = []
    for name, high, low in (("good judge", 0.95, 0.1), ("lenient judge", 0.98, 0.5), ("useless judge", 0.6, 0.6)):
        for labels in (20, 50, 200):
            for grouped in (False, True):
                rng = np.random.default_rng([labels, grouped, len(name)])
                n = 1000
                groups = np.arange(n) // 5 if grouped else np.arange(n)
                hits = alone = 0
                truth = 0.7
                for _ in range(sets // 2):
                    chance = (
                        np.clip(truth + rng.normal(0, 0.15, n // 5), 0.4, 1.0).repeat(5)
                        if grouped
                        else np.full(n, truth)
                    )
                    right = rng.random(n) < chance
                    seen = rng.random(n) < np.where(right, high, low)
                    chosen = rng.permutation(n)[:labels]
                    own = groups if grouped else None
                    j = cw.Evals(seen[None].astype(float), ("a",), np.arange(n), groups=own)
                    h = cw.Evals(right[None, chosen].astype(float), ("a",), chosen)
                    c = cw.evals.correct_judge(j, h)
                    hits += truth in c.interval("a")
                    alone += truth in cw.score_evals(j).interval("a")
                rows.append(
                    {
                        "judge": name,
                        "labels": labels,
                        "groups of five": grouped,
                        "corrected": round(100 * hits / (sets // 2), 2),
                        "judge alone": round(100 * alone / (sets // 2), 2),
                    }
                )
    return rows


def signal(sets: int) -> list[Row]:
    """Signal, noise and their ratio, for normal and for heavy-tailed deviations of checkpoints."""
    rows = []
    models = np.array([0.40, 0.45, 0.47, 0.52, 0.55, 0.61])
    for kind in ("normal", "t, 5 degrees"):
        for runs, checkpoints in ((1, 10), (1, 30), (5, 10)):
            rng = np.random.default_rng([runs, checkpoints, len(kind)])
            std, hits = 0.01, [0, 0, 0]
            for _ in range(sets // 4):
                around = rng.standard_normal(6 + runs * checkpoints)
                if kind != "normal":
                    around = rng.standard_t(5, len(around)) / np.sqrt(5 / 3)
                s = cw.evals.measure_signal(
                    models + std * around[:6], 0.5 + std * around[6:].reshape(runs, checkpoints)
                )
                true = np.ptp(models) / models.mean(), std / 0.5
                for i, (interval, value) in enumerate(
                    ((s.signal, true[0]), (s.noise, true[1]), (s.ratio, true[0] / true[1]))
                ):
                    hits[i] += value in interval
            names = ("signal", "noise", "ratio")
            row: Row = {"deviations": kind, "runs": runs, "checkpoints": checkpoints}
            rows.append(row | {k: round(100 * h / (sets // 4), 2) for k, h in zip(names, hits, strict=True)})
    return rows


def real(sets: int) -> list[Row]:
    """Real models as the truth: CRUXEval's 800 questions with the rates of ten samples, from which some are drawn."""
    folder = Path(os.environ.get("CURVEWISE_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
    rates = []
    for path in sorted((folder / "evals" / "cruxeval").glob("*_temp0.8_output.json")):
        marks = json.loads(path.read_text())["raw_scored_generations"]
        rates.append([np.mean(marks[f"sample_{i}"]) for i in range(800)])
    if not rates:
        print(f"no evaluation logs at {folder}: set CURVEWISE_DATA", file=sys.stderr)
        return []
    truth = np.array(rates)
    rows = []
    for n in (30, 100, 300):
        for samples, metric in ((1, None), (4, None), (4, "pass@2"), (4, "pass^4")):
            rng = np.random.default_rng([n, samples, len(metric or "")])
            k = 1 if metric is None else int(metric[5:])
            power = 1 - (1 - truth) ** k if metric and "@" in metric else truth**k
            held, kept, total = 0.0, 0.0, 0
            for _ in range(sets // 20):
                questions = rng.integers(0, 800, n)
                scores = (rng.random((len(truth), n, samples)) < truth[:, questions, None]).astype(float)
                s = cw.score_evals(evals(scores), metric)
                true = power.mean(axis=1)
                held += float(((s.low <= true) & (true <= s.high)).mean())
                pairs = pair_tests(evals(scores), metric)
                low, high = pairs.intervals(0.95)
                gap = true[pairs.a] - true[pairs.b]
                kept += float(((low <= gap) & (gap <= high)).mean())
                total += 1
            row: Row = {"questions": n, "samples": samples, "metric": metric or "mean"}
            rows.append(row | {"scores": round(100 * held / total, 2), "differences": round(100 * kept / total, 2)})
    return rows


TABLES: dict[str, Callable[[int], list[Row]]] = {
    "clusters": clusters,
    "single": single,
    "repeated": repeated,
    "ragged": ragged,
    "graded": graded,
    "tasks": tasks,
    "compare": compare,
    "differences": differences,
    "seeds": seeds,
    "looks": looks,
    "plans": plans,
    "ranks": ranks,
    "judge": judge,
    "signal": signal,
    "real": real,
}

if __name__ == "__main__":
    main()
