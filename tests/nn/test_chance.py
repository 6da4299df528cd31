"""Random numbers by counter, against plain Python integers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from curvewise.nn.augmentation import hashed, mix, uniform, visits
from curvewise.nn.task import split_rows

_BITS = 2**64


def _signed(value: int) -> int:
    return value - _BITS if value >= 2**63 else value


def _split_mix(state: int) -> int:
    """Steele, Lea and Flood's finaliser on unsigned Python integers."""
    z = state % _BITS
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % _BITS
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % _BITS
    return z ^ (z >> 31)


VALUES = [0, 1, 2, -1, 12345, 2**31, 2**62 + 77, -(2**63), 2**63 - 1, -987654321]


def test_mix_is_the_finaliser_of_split_mix() -> None:
    assert mix(torch.tensor(VALUES)).tolist() == [_signed(_split_mix(v)) for v in VALUES]


def test_a_hash_of_a_seed_alone_is_the_generator_s_first_number() -> None:
    # first outputs of SplitMix64 with seeds 0 and 1234567, as published with other libraries
    assert hashed(torch.tensor(0)).item() % _BITS == 0xE220A8397B1DCDAF
    assert hashed(torch.tensor(1234567)).item() % _BITS == 6457827717110365317


def test_whole_numbers_and_tensors_count_alike() -> None:
    seed = torch.tensor([3, 99])
    for counter in (0, 1, 7, 2**40, -5):
        ours = hashed(seed, counter, 2)
        assert torch.equal(ours, hashed(seed, torch.tensor(counter), torch.tensor(2)))


def test_the_order_of_counters_matters() -> None:
    seed = torch.tensor(1)
    seen = {hashed(seed, a, b).item() for a in range(30) for b in range(30)}
    assert len(seen) == 900


def test_uniform_numbers_are_uniform_and_unrelated() -> None:
    seed, examples = torch.tensor(5), torch.arange(20_000)
    first, second = uniform(seed, 0, examples, 0), uniform(seed, 0, examples, 1)
    later, other = uniform(seed, 1, examples, 0), uniform(seed + 1, 0, examples, 0)
    assert first.dtype == torch.float32
    for drawn in (first, second, later, other):
        assert 0 <= float(drawn.min()) < float(drawn.max()) < 1
        assert stats.kstest(drawn.numpy(), "uniform").pvalue > 1e-3
    for drawn in (second, later, other, first.roll(1)):
        assert abs(np.corrcoef(first.numpy(), drawn.numpy())[0, 1]) < 0.03


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
