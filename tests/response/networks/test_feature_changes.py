"""Mixup, scaling, feature noise and feature swap against plain numpy and their definitions."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from curvewise.errors import InputError
from curvewise.response.networks.perturbations import PERTURBATIONS, find_perturbation, perturb

RNG = np.random.default_rng(8)
ROWS = (RNG.normal(size=(400, 6)) * [1, 10, 0.1, 3, 0, 1]).astype(np.float32)


@pytest.mark.parametrize("name", ["mixup-intra", "mixup-inter"])
def test_mixup_is_on_the_line_between_two(name: str) -> None:
    x, partner = RNG.normal(size=(2, 4, 3, 5)).astype(np.float32)
    shares = np.array([0, 0.1, 0.25, 0.49])
    wanted = [(1 - a) * one + a * other for a, one, other in zip(shares, x, partner, strict=True)]
    found = perturb(x, name, shares, partner=partner)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
    assert PERTURBATIONS[name].pairs == name[6:]


def test_mixup_of_bytes_is_rounded() -> None:
    x, partner = RNG.integers(0, 256, (2, 3, 1, 4, 4), dtype=np.uint8)
    found = perturb(x, "mixup-intra", 0.3, partner=partner)
    assert np.abs(found - (0.7 * x + 0.3 * partner)).max() <= 0.501


def test_mixup_keeps_its_classes_apart_and_needs_a_partner() -> None:
    x = torch.zeros(2, 3)
    with pytest.raises(InputError, match=r"less than 0\.5"):
        PERTURBATIONS["mixup-inter"].apply(x, 0.5, partner=x)
    assert torch.equal(PERTURBATIONS["mixup-intra"].apply(x, 1.0, partner=x + 1), x + 1)
    with pytest.raises(InputError, match="mixes pairs: give partner="):
        PERTURBATIONS["mixup-intra"].apply(x, 0.2)
    with pytest.raises(InputError, match=r"partner has shape \(1, 3\)"):
        PERTURBATIONS["mixup-intra"].apply(x, 0.2, partner=x[:1])


def test_feature_noise_is_normal_in_units_of_each_spread() -> None:
    found = perturb(ROWS, "feature-noise", 0.5, 3)
    assert np.array_equal(found[:, 4], ROWS[:, 4])  # what never varies stays
    varied = [0, 1, 2, 3, 5]
    noise = ((found - ROWS)[:, varied] / (0.5 * ROWS[:, varied].std(axis=0))).ravel()
    assert stats.kstest(noise, "norm").pvalue > 0.001
    flipped = perturb(ROWS, "feature-noise", -0.5, 3)
    np.testing.assert_allclose(flipped - ROWS, ROWS - found, atol=1e-4)


def test_feature_noise_is_for_layers_of_any_shape() -> None:
    x = torch.randn(300, 4, 3, 3, generator=torch.Generator().manual_seed(0)) * 5
    moved = (find_perturbation("feature-noise").fitted(x).apply(x, 0.2) - x) / 0.2
    ratio = moved.std(dim=0) / x.std(dim=0)
    assert 0.8 < float(ratio.min()) < float(ratio.max()) < 1.2


@pytest.mark.parametrize("name", ["feature-noise", "feature-swap"])
def test_a_fitted_one_does_not_depend_on_batches(name: str) -> None:
    x = torch.from_numpy(ROWS)
    p = PERTURBATIONS[name].fitted(x)
    whole = p.apply(x, 0.4, 2)
    for rows in (torch.arange(100, 130), torch.tensor([7, 399, 0])):
        part = p.apply(x[rows], 0.4, 2, positions=rows)
        torch.testing.assert_close(part, whole[rows])
    assert p.fitted(x[:5]) is p
    assert not torch.equal(PERTURBATIONS[name].apply(x[:5], 0.4, 2), whole[:5])  # its own sample
    with pytest.raises(InputError, match=r"fitted to examples of shape \(6,\)"):
        p.apply(x[:, :3], 0.4)


def test_feature_swap_takes_a_share_of_features_from_one_other_example() -> None:
    marked = np.arange(500 * 10, dtype=np.float32).reshape(500, 10)  # a value tells row and column
    found = perturb(marked, "feature-swap", 0.25, 1)
    changed = found != marked
    assert (found % 10 == np.arange(10)).all()
    counts = changed.sum(axis=1)
    assert set(counts) == {2, 3}  # 2.5 on average
    assert abs(counts.mean() - 2.5) < 4 * 0.5 / np.sqrt(500)
    assert stats.chisquare(changed.sum(axis=0)).pvalue > 0.001
    givers = [np.unique(found[i, changed[i]] // 10) for i in range(500)]
    assert all(len(g) == 1 and g[0] != i for i, g in enumerate(givers))
    assert len(np.unique(np.concatenate(givers))) > 250
    more = perturb(marked, "feature-swap", 0.6, 1)
    assert (more[changed] == found[changed]).all()  # more of it changes further places
    assert (perturb(marked, "feature-swap", 1.0, 1) != marked).all()


def test_feature_swap_is_for_tables_with_others() -> None:
    with pytest.raises(InputError, match=r"float32 of shape \(3, 1, 2, 2\).*is for features"):
        perturb(np.zeros((3, 1, 2, 2), np.float32), "feature-swap", 0.2)
    with pytest.raises(InputError, match="at least 2"):
        perturb(ROWS[:1], "feature-swap", 0.2)


def test_intensity_scales_whatever_it_is_given() -> None:
    np.testing.assert_allclose(perturb(ROWS, "intensity", -0.3), ROWS * 0.7, rtol=1e-5)
    pixels = RNG.integers(0, 256, (3, 1, 4, 4), dtype=np.uint8)
    assert np.array_equal(perturb(pixels, "intensity", 0.5), perturb(pixels, "brightness", 0.5))
