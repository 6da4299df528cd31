"""Random numbers by counter, against plain Python integers."""

from __future__ import annotations

import numpy as np
import torch
from scipy import stats

from curvewise.nn.chance import hashed, mix, uniform

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
