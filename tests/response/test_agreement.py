"""Granulated correlation with the gap, by hand."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import stats

from curvewise.errors import InputError
from curvewise.response.judgement import granulated_kendall
from curvewise.stats.correlation import kendall


def by_axis(measure: np.ndarray, gap: np.ndarray, settings: dict) -> float:
    """Jiang et al. 2020, equation by equation: groups that agree in all but one axis."""
    axes = []
    for axis in settings:
        groups: dict[tuple, list[int]] = {}
        for i in range(len(gap)):
            key = tuple(v[i] for k, v in settings.items() if k != axis)
            groups.setdefault(key, []).append(i)
        found = []
        for rows in groups.values():
            signs = [
                np.sign(measure[i] - measure[j]) * np.sign(gap[i] - gap[j])
                for i, j in product(rows, repeat=2)
                if settings[axis][i] != settings[axis][j]
            ]
            if signs:
                found.append(np.mean(signs))
        if found:
            axes.append(np.mean(found))
    return float(np.mean(axes))


@pytest.mark.parametrize("repeats", [1, 2])
def test_granulated_kendall_is_the_mean_over_axes_of_groups(repeats: int) -> None:
    grid = np.array(list(product(range(3), range(2), range(4))) * repeats).T
    settings = {"a": grid[0], "b": grid[1] == 1, "c": np.array(list("wxyz"))[grid[2]]}
    rng = np.random.default_rng(2)
    gap = rng.normal(size=grid.shape[1])
    measure = gap + rng.normal(size=grid.shape[1])
    wanted = by_axis(measure, gap, settings)
    assert granulated_kendall(measure, gap, settings) == pytest.approx(wanted, abs=1e-12)
    assert granulated_kendall(-measure, gap, settings, orientation=-1) == pytest.approx(wanted)


def test_granulated_kendall_equals_scipys_where_one_axis_is_all() -> None:
    rng = np.random.default_rng(3)
    measure, gap = rng.normal(size=(2, 12))
    wanted = stats.kendalltau(measure, gap).statistic
    assert granulated_kendall(measure, gap, {"a": range(12)}) == pytest.approx(wanted)


def test_granulated_kendall_sees_through_a_dominant_axis() -> None:
    """The measure follows depth alone; along width it is against the gap."""
    depth, width = np.array(list(product(range(2), range(5)))).T
    gap = 10.0 * depth + width
    measure = 10.0 * depth - width
    assert kendall(measure[None], gap)[0] > 0.1
    assert granulated_kendall(measure, gap, {"depth": depth, "width": width}) == 0.0


def test_without_models_that_differ_in_one_axis_it_is_unknown() -> None:
    rng = np.random.default_rng(4)
    measure, gap = rng.normal(size=(2, 6))
    assert np.isnan(granulated_kendall(measure, gap, {"a": range(6), "b": range(6)}))
    with pytest.raises(InputError, match="orientation=3"):
        granulated_kendall(measure, gap, {}, orientation=3)
    with pytest.raises(InputError, match="measure has shape"):
        granulated_kendall(measure[:3], gap, {})
