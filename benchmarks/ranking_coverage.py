"""Coverage of 95% intervals of scores and ranks of checkpoints, simulated with known truth.

    python benchmarks/ranking_coverage.py [draws] [measure …]      (an hour for all measures)

Examples have a class and latent traits; each checkpoint sees the same traits through its own
random layer, more or less sharply, and adds noise of its own. A sample is scored, parts of it (or
bootstrap samples) give the spread, and the intervals are held against the mean score of a few
hundred fresh samples of the same size and classes: the truth as ``rank_features`` defines it.

For each measure and pool (``close``: checkpoints nearly tied; ``apart``; ``wide``: more features
than examples; ``faint``: hardly more than noise), in percent: score intervals that hold the truth;
rank intervals that do, on average and of the truly best checkpoint; the same for plain quantiles of
resampled ranks. Then the
estimated spread over the true one, and the width of rank intervals in places; a star marks what
``rank_features`` does. At last the stated chance that
the highest score of the population is among the first k, beside how often it was, for pools that
differ more or less beside the error of sampling. A table on stderr, one JSON line on stdout.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import json
import sys
import warnings

import numpy as np

from curvewise.ranking.measure import CheckpointFeatures, RankingMeasure, as_targets
from curvewise.ranking.scoring import (
    MEASURES,
    Candidate,
    Scorer,
    ScoreReplicates,
    draw_parts,
    find_measures,
    highest_shares,
    likely_scores,
    rank_limits,
    reused,
    score_limits,
    share_for,
    split_rows,
)

EXAMPLES, CLASSES, TRAITS = 240, 4, 6
POOLS = {  # how sharply each checkpoint sees, and its number of features
    "close": (np.linspace(1.0, 1.04, 6), 20),
    "apart": (np.linspace(0.6, 1.6, 6), 20),
    "wide": (np.linspace(0.6, 1.6, 6), 300),
    "faint": (np.linspace(0.05, 0.12, 6), 20),
}
DIFFERENCES = (0.0, 0.3, 0.6, 1.0, 2.0, 4.0)  # spread of true scores over that of sampling
FRESH, RESAMPLES, LEVEL = 200, 50, 0.95
DEFAULT = ("knn", "logme", "h-score", "gbc", "parc", "nleep", "centres")
Rows = np.ndarray
Pair = tuple[RankingMeasure, Candidate]


def main() -> None:
    """Simulate, print."""
    warnings.simplefilter("ignore")
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    names = sys.argv[2:] or DEFAULT
    chosen = [centres if name == "centres" else name for name in names]
    heads = ("score", "rank", "best", "plain", "wider", "places")
    print(f"{'percent, 95 nominal':28}{''.join(f'{h:>8}' for h in heads)}", file=sys.stderr)
    rows = []
    for measure in find_measures(chosen, MEASURES):
        for pool in POOLS:
            for method, share in methods(measure).items():
                row = simulate(measure, pool, share, draws)
                rows.append({"measure": measure.name, "pool": pool, "method": method, **row})
                name = f"{measure.name}, {pool}, {method}"
                cells = "".join(f"{row[head]:8.1f}" for head in heads)
                print(f"{name:28}{cells}", file=sys.stderr)
    stated = [certainty(count, tau, 3 * draws) for count in (4, 8, 20) for tau in DIFFERENCES]
    for row in stated:
        print(row, file=sys.stderr)
    found = {"benchmark": "ranking coverage", "draws": draws, "rows": rows, "certainty": stated}
    print(json.dumps(found))


def methods(measure: RankingMeasure) -> dict[str, float | None]:
    """List what replicates rest on: the default share, another, and a bootstrap sample (None)."""
    default = share_for(measure)
    other = 0.5 if default == 0.8 else 0.8
    return {f"{default:.0%} *": default, f"{other:.0%}": other, "bootstrap": None}


def simulate(measure: RankingMeasure, pool: str, share: float | None, draws: int) -> dict[str, float]:
    """Shares of draws whose intervals hold the truth, in percent."""
    truth, error = expected(measure, pool)
    places = 1 + (truth[None] > truth[:, None]).sum(axis=1)
    held: dict[str, list[float]] = {key: [] for key in ("score", "rank", "best", "plain", "wider", "places")}
    for i in range(draws):
        rng = np.random.default_rng([7, i])
        pairs, scorer = draw_sample(measure, pool, rng)
        train, test = split_rows(scorer.targets, 0.2, rng)
        scores = score_all(scorer, pairs, train, test, i)
        kept = [reused(*pair, train, test) for pair in pairs]
        again = [
            score_all(scorer, kept, *again_rows(scorer, train, test, share, rng), i * 1000 + j)
            for j in range(RESAMPLES)
        ]
        replicates = ScoreReplicates(np.array(again), share or 0.5)
        low, high = score_limits(scores, replicates, LEVEL)
        held["score"].append(float(np.mean((low <= truth) & (truth <= high))))
        held["wider"].append(float(np.mean(replicates.errors() / error)) / 100)
        low, high = rank_limits(scores, replicates, LEVEL, rng)
        inside = (low <= places) & (places <= high)
        held["rank"].append(float(inside.mean()))
        held["best"].append(float(inside[truth.argmax()]))
        held["places"].append(float((high - low).mean()) / 100)
        held["plain"].append(float(plain(scores, replicates, places).mean()))
    return {key: round(100 * float(np.mean(values)), 2) for key, values in held.items()}


def certainty(count: int, tau: float, draws: int) -> dict[str, float]:
    """Stated chance that the highest of the population is among the first k, and how often it was.

    True scores are normal with spread τ; samples add an error of 1 of their own and one of 3 that
    all checkpoints share, as the same examples do.
    """
    rng = np.random.default_rng(count)
    stated: dict[int, list[float]] = {1: [], 3: []}
    seen: dict[int, list[float]] = {1: [], 3: []}
    for _ in range(draws):
        truth = tau * rng.standard_normal(count)
        noise = rng.standard_normal((RESAMPLES + 1, count)) + 3 * rng.standard_normal((RESAMPLES + 1, 1))
        scores, replicates = truth + noise[0], ScoreReplicates(noise[1:])
        chance = highest_shares(likely_scores(scores, replicates, rng), rng)
        order = np.argsort(-scores)
        for k in stated:
            stated[k].append(float(chance[order[:k]].sum()))
            seen[k].append(float(truth.argmax() in order[:k]) if tau else k / count)
    found: dict[str, float] = {"checkpoints": count, "difference": tau}
    for k in stated:
        found[f"stated@{k}"] = round(float(np.mean(stated[k])), 2)
        found[f"was@{k}"] = round(float(np.mean(seen[k])), 2)
    return found


def plain(scores: np.ndarray, replicates: ScoreReplicates, places: np.ndarray) -> np.ndarray:
    """Count how often quantiles of resampled ranks hold the true ones."""
    drawn = scores + replicates.deviations
    ranks = 1 + (drawn[:, None, :] > drawn[:, :, None]).sum(axis=2)
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(ranks, [tail, 1 - tail], axis=0, method="nearest")
    return (low <= places) & (places <= high)


def expected(measure: RankingMeasure, pool: str) -> tuple[np.ndarray, np.ndarray]:
    """Mean and spread of each checkpoint's score over fresh samples of the same size."""
    found = []
    for i in range(FRESH):
        rng = np.random.default_rng([8, i])
        pairs, scorer = draw_sample(measure, pool, rng)
        train, test = split_rows(scorer.targets, 0.2, rng)
        found.append(score_all(scorer, pairs, train, test, i))
    return np.mean(found, axis=0), np.std(found, axis=0, ddof=1)


def draw_sample(measure: RankingMeasure, pool: str, rng: np.random.Generator) -> tuple[list[Pair], Scorer]:
    """The measure with each checkpoint, and what computes it on rows of a sample."""
    fixed = np.random.default_rng(5)
    means = fixed.standard_normal((CLASSES, TRAITS))
    labels = np.arange(EXAMPLES) % CLASSES
    traits = means[labels] + rng.standard_normal((EXAMPLES, TRAITS))
    found = []
    sharpness, width = POOLS[pool]
    for i, sharp in enumerate(sharpness):
        layer = fixed.standard_normal((TRAITS, width)) / np.sqrt(TRAITS)
        seen = np.tanh(sharp * traits @ layer)
        features = seen + 0.7 * rng.standard_normal((EXAMPLES, width))
        found.append((measure, Candidate.of(CheckpointFeatures(str(i), features))))
    return found, Scorer(labels, as_targets(labels, EXAMPLES))


def again_rows(
    scorer: Scorer, train: Rows, test: Rows, share: float | None, rng: np.random.Generator
) -> tuple[Rows, Rows]:
    """A share of the rows, or for None as many drawn with replacement, within classes."""
    targets = scorer.targets
    if share is not None:
        return draw_parts(train, test, targets, share, rng)  # type: ignore[return-value]
    codes = targets.codes
    parts = [train[codes[train] == code] for code in np.unique(codes[train])]
    fitted = np.concatenate([rng.choice(part, len(part)) for part in parts])
    return fitted, rng.choice(test, len(test))


def score_all(scorer: Scorer, pairs: list[Pair], train: Rows, test: Rows, seed: int) -> np.ndarray:
    """A measure of every checkpoint on some rows."""
    return np.array([scorer.score(*pair, train, test, seed).value for pair in pairs])


def centres(features: np.ndarray, labels: np.ndarray, *, test_features: np.ndarray, test_labels: np.ndarray) -> float:
    """Mean log chance of the right class, by distance to the centres of classes."""
    middle = np.stack([features[labels == c].mean(axis=0) for c in range(CLASSES)])
    near = test_features @ middle.T - 0.5 * (middle**2).sum(axis=1)
    top = near.max(axis=1, keepdims=True)
    log = near - top - np.log(np.exp(near - top).sum(axis=1, keepdims=True))
    return float(log[np.arange(len(log)), test_labels].mean())


if __name__ == "__main__":
    main()
