"""The order of the examples, and the share held out."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from curvewise.nn.chance import split_rows, visits


def epoch(seed: int, number: int, n: int) -> torch.Tensor:
    rows = torch.arange(n)[None]
    return visits(torch.tensor([seed]), rows, number * n, (number + 1) * n)[0]


@pytest.mark.parametrize("n", [1, 2, 97, 5000])
def test_an_epoch_visits_each_example_once(n: int) -> None:
    rows = torch.arange(n).expand(3, n) * 10
    line = visits(torch.tensor([1, 2, 3]), rows, 4 * n, 5 * n)
    assert line.shape == (3, n)
    assert torch.equal(line.sort(dim=-1).values, rows)


def test_orders_differ_by_epoch_and_seed_and_nothing_else() -> None:
    orders = [epoch(s, e, 100) for s in (1, 2) for e in range(3)]
    for i, a in enumerate(orders):
        assert all(float((a == b).float().mean()) < 0.1 for b in orders[i + 1 :])
    both = visits(torch.tensor([1, 2]), torch.arange(100).expand(2, 100), 200, 300)
    assert torch.equal(both[0], epoch(1, 2, 100))
    assert torch.equal(both[1], epoch(2, 2, 100))


def test_any_piece_of_the_line_is_that_piece_of_the_whole() -> None:
    seeds, rows = torch.tensor([5]), torch.arange(7)[None]
    whole = visits(seeds, rows, 0, 70)
    for first, last in ((0, 3), (3, 16), (7, 14), (20, 70), (9, 9)):
        assert torch.equal(visits(seeds, rows, first, last), whole[:, first:last])


def test_every_order_of_four_comes_up_equally_often() -> None:
    count = 12_000
    lines = visits(torch.arange(count), torch.arange(4).expand(count, 4), 0, 4)
    counts = torch.unique(lines, dim=0, return_counts=True)[1]
    assert len(counts) == 24
    assert stats.chisquare(counts.numpy()).pvalue > 1e-3


def test_a_share_of_each_class_is_held_out_whatever_the_order() -> None:
    y = np.repeat([0, 1, 2], [30, 12, 3])
    rows = np.random.default_rng(1).permutation(45)
    train, held = split_rows(rows, y, 1 / 3)
    assert sorted([*train, *held]) == list(range(45))
    assert np.bincount(y[held]).tolist() == [10, 4, 1]
    assert [r for r in rows if r in set(train)] == train.tolist()
    assert np.array_equal(split_rows(rows, y, 1 / 3)[1], held)


def test_no_class_loses_its_only_example() -> None:
    train, held = split_rows(np.arange(4), np.array([0, 1, 2, 2]), 0.5)
    assert set(np.array([0, 1, 2, 2])[train]) == {0, 1, 2}
    assert len(held) == 1
