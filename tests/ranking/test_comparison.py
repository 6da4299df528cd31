"""Paired tests between measures: by hand, exact chances, and their size in simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from curvewise.ranking.judgement import Pool, compare_pairs


def drawn_pair(rng: np.random.Generator, shared: float, tasks: int, size: int) -> np.ndarray:
    """Qualities and two noises, of which a part is the same for all tasks."""
    common, own = rng.normal(size=(3, 1, size)), rng.normal(size=(3, tasks, size))
    return math.sqrt(shared) * common + math.sqrt(1 - shared) * own


def pool_of(accuracy: np.ndarray, scores: dict[str, np.ndarray]) -> Pool:
    tasks, size = accuracy.shape
    return Pool(
        group="all",
        tasks=tuple(f"task {i}" for i in range(tasks)),
        checkpoints=tuple(f"net {i}" for i in range(size)),
        accuracy=accuracy,
        failed=np.zeros(accuracy.shape, dtype=bool),
        scores=scores,
        gflops={},
    )


def test_opposites_differ_as_surely_as_independent_pairs_tell() -> None:
    """Without any checkpoint all is the same; five disjoint pairs of ten that all agree tell."""
    accuracy = np.linspace(0.5, 0.9, 10)[None]
    pool = pool_of(accuracy, {"right": accuracy, "wrong": -accuracy})
    (row,) = compare_pairs(pool, [("right", "wrong")], "kendall", 0.95, 99, 0).rows
    assert (row.difference.estimate, row.pvalue) == (2.0, 2 * 0.5**5)


def test_differences_by_hand() -> None:
    """Each checkpoint left out of all tasks and of both measures; Welch's degrees of freedom."""
    quality, a, b = drawn_pair(np.random.default_rng(3), 0.5, 3, 9)
    one, two = quality + a, quality + 2 * b
    pool = pool_of(quality, {"a": one, "b": two})
    (row,) = compare_pairs(pool, [("a", "b")], "pearson", 0.95, 99, 0).rows

    def differences(kept: list[int]) -> np.ndarray:
        pairs = zip(one[:, kept], two[:, kept], quality[:, kept], strict=True)
        return np.array([stats.pearsonr(x, z)[0] - stats.pearsonr(y, z)[0] for x, y, z in pairs])

    every = differences(list(range(9)))
    without = [differences([j for j in range(9) if j != i]).mean() for i in range(9)]
    checkpoints, tasks = 8 * np.var(without), np.var(every, ddof=1) / 3
    error = math.sqrt(checkpoints + tasks)
    degrees = error**4 / (checkpoints**2 / 8 + tasks**2 / 2)
    assert row.difference.estimate == pytest.approx(every.mean())
    half = stats.t.ppf(0.975, degrees) * error
    assert tuple(row.difference)[1:] == pytest.approx((every.mean() - half, every.mean() + half))
    assert row.pvalue == pytest.approx(2 * stats.t.sf(abs(every.mean()) / error, degrees))


@pytest.mark.slow
def test_size_of_the_paired_test_of_rel_is_kept() -> None:
    """Two measures of pure chance, each nearly the same in all tasks; signs find half to differ."""
    rng = np.random.default_rng(1)
    found, signs = [], []
    for _ in range(60):
        quality, a, b = drawn_pair(rng, 0.8, 20, 8)
        pool = pool_of(1 / (1 + np.exp(-1 - 0.7 * quality)), {"a": a, "b": b})
        (row,) = compare_pairs(pool, [("a", "b")], "rel_at_1", 0.95, 99, 0).rows
        found.append(row.pvalue <= 0.05)
        signs.append(row.task_pvalue <= 0.05)
    assert np.mean(found) <= 0.17
    assert np.mean(signs) >= 0.35


def test_a_real_difference_of_rel_is_found() -> None:
    quality, a, _ = drawn_pair(np.random.default_rng(2), 0.3, 20, 20)
    accuracy = 1 / (1 + np.exp(-quality))
    pool = pool_of(accuracy, {"chance": a, "good": quality + 0.3 * a})
    (row,) = compare_pairs(pool, [("good", "chance")], "rel_at_1", 0.95, 99, 0).rows
    assert row.pvalue < 0.05
    assert row.difference.low > 0
    (back,) = compare_pairs(pool, [("chance", "good")], "rel_at_1", 0.95, 99, 0).rows
    assert back.pvalue == pytest.approx(row.pvalue)
    error = (row.difference.high - row.difference.estimate) / stats.t.ppf(0.975, 19)
    assert row.pvalue == pytest.approx(2 * stats.t.sf(row.difference.estimate / error, 19))
    sure = pool_of(accuracy, {"right": accuracy, "wrong": -accuracy})
    (row,) = compare_pairs(sure, [("right", "wrong")], "recall_at_1", 0.95, 99, 0).rows
    assert (row.pvalue, *tuple(row.difference)[1:]) == (2 * 0.5**20, -1.0, 1.0)
    one = pool_of(accuracy[:1], {name: s[:1] for name, s in pool.scores.items()})
    (row,) = compare_pairs(one, [("good", "chance")], "rel_at_1", 0.95, 99, 0).rows
    assert math.isnan(row.pvalue)


@pytest.mark.slow
def test_size_of_the_paired_test_is_kept() -> None:
    """Two measures that are as good, on checkpoints that all tasks share: 5% are found to differ.

    Signs over tasks alone find far more; the benchmark has the figures.
    """
    rng = np.random.default_rng(0)
    found, signs = [], []
    for _ in range(200):
        quality, a, b = drawn_pair(rng, 0.7, 7, 12)
        pool = pool_of(quality, {"a": quality + a, "b": quality + b})
        (row,) = compare_pairs(pool, [("a", "b")], "kendall", 0.95, 99, 0).rows
        found.append(row.pvalue <= 0.05)
        signs.append(row.task_pvalue <= 0.05)
    assert np.mean(found) <= 0.09
    assert np.mean(signs) >= 0.15


def test_a_task_that_tells_nothing_does_not_count_in_draws() -> None:
    quality, a, b = drawn_pair(np.random.default_rng(4), 0.5, 5, 12)
    scores, accuracy = {"a": quality + a, "b": quality + b}, 1 / (1 + np.exp(-quality))
    accuracy[4] = 0.5
    (row,) = compare_pairs(pool_of(accuracy, scores), [("a", "b")], "rel_at_1", 0.95, 99, 0).rows
    rest = pool_of(accuracy[:4], {name: s[:4] for name, s in scores.items()})
    (same,) = compare_pairs(rest, [("a", "b")], "rel_at_1", 0.95, 99, 0).rows
    assert (row.pvalue, row.difference, row.tasks) == (same.pvalue, same.difference, 4)
