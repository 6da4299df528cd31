"""Sequential designs: published constants, and the error rate on values that were simulated one by one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from curvewise.errors import InputError
from curvewise.stats import sequential_design


@pytest.mark.parametrize(("looks", "published"), [(2, 0.0294), (3, 0.0221), (5, 0.0158)])
def test_many_values_have_pococks_published_levels(looks, published):
    design = sequential_design((500 * np.arange(1, looks + 1)).tolist(), draws=200_000)
    assert design.nominal_level == pytest.approx(published, abs=0.0012)


def test_one_look_is_a_plain_test():
    design = sequential_design([100], [0.0, 0.3], draws=50_000)
    assert design.nominal_level == pytest.approx(0.05, abs=0.003)
    power = stats.nct.sf(stats.t.ppf(0.975, 99), 99, 3.0)
    assert design.found[1] == pytest.approx(power, abs=0.02)
    assert design.expected == (100.0, 100.0)


@pytest.mark.slow
def test_the_error_rate_over_all_looks_is_kept_with_values_drawn_one_by_one():
    looks = (10, 20, 40)
    level = sequential_design(looks).nominal_level
    x = np.random.default_rng(5).standard_normal((40_000, 40))
    p = np.min([stats.ttest_1samp(x[:, :n], 0, axis=1).pvalue for n in looks], axis=0)
    assert (p <= level).mean() == pytest.approx(0.05, abs=0.004)


@pytest.mark.parametrize("looks", [[], [10, 10], [20, 10], [1, 5], [2.5, 4]])
def test_looks_that_make_no_plan(looks):
    with pytest.raises(InputError, match="looks"):
        sequential_design(looks)
