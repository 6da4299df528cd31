"""Signal and noise of a benchmark: the published ratio, pooled runs, and coverage."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.evals import measure_signal


def test_the_ratio_of_heineman_et_al():
    final, last = np.array([0.41, 0.52, 0.47, 0.60]), np.array([0.50, 0.51, 0.49, 0.50, 0.52, 0.50])
    s = measure_signal(final, last)
    assert s.signal.estimate == pytest.approx((0.60 - 0.41) / final.mean())
    assert s.noise.estimate == pytest.approx(last.std(ddof=1) / last.mean())
    assert s.ratio.estimate == pytest.approx(s.signal.estimate / s.noise.estimate)
    ends = s.noise.estimate * np.sqrt(5 / stats.chi2.ppf([0.975, 0.025], 5))
    assert s.noise.low <= ends[0] * 1.001  # fewer degrees of freedom where tails are heavy
    assert s.noise.high >= ends[1] * 0.999


def test_runs_are_pooled_relative_to_their_own_means():
    rng = np.random.default_rng(0)
    runs = {"a": 0.5 + 0.005 * rng.normal(size=400), "b": 0.8 + 0.008 * rng.normal(size=300)}
    s = measure_signal({"x": 0.4, "y": 0.6, "z": 0.5}, runs)
    assert s.noise.estimate == pytest.approx(0.01, rel=0.07)
    assert (s.runs, s.checkpoints, s.models) == (2, 700, 3)
    assert measure_signal([0.4, 0.6, 0.5], list(runs.values())).noise.estimate == s.noise.estimate
    equal = np.stack([runs["a"][:50], runs["b"][:50]])
    assert measure_signal([0.4, 0.6], equal).checkpoints == 100


def test_checkpoints_that_still_rise_are_named():
    with pytest.warns(CurvewiseWarning, match="successive checkpoints are correlated"):
        measure_signal([0.4, 0.6], np.linspace(0.4, 0.6, 30))
    with pytest.warns(CurvewiseWarning, match="3 checkpoints: too few"):
        measure_signal([0.4, 0.6], [0.5, 0.52, 0.49])


@pytest.mark.parametrize(
    ("final", "last", "text"),
    [
        ([0.5], [0.5, 0.6], "final holds one score"),
        ([0.5, 0.6], [0.5], "checkpoints holds one score"),
        ([0.5, np.nan], [0.5, 0.6], "NaN"),
        ([-0.5, 0.1], [0.5, 0.6], "not above 0"),
        ([0.5, 0.6], [0.5, 0.5, 0.5], "no noise"),
        ([0.5, 0.6], np.zeros((2, 2, 2)), "shape"),
    ],
)
def test_what_is_refused(final, last, text):
    with pytest.raises(InputError, match=text):
        measure_signal(final, last)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::curvewise.errors.CurvewiseWarning")
def test_coverage():
    rng = np.random.default_rng(1)
    models, std = np.array([0.40, 0.47, 0.52, 0.61]), 0.01
    truth = np.ptp(models) / models.mean(), std / 0.5
    held = np.zeros(3)
    for _ in range(600):
        s = measure_signal(models + std * rng.normal(size=4), 0.5 + std * rng.normal(size=20))
        held += [truth[0] in s.signal, truth[1] in s.noise, truth[0] / truth[1] in s.ratio]
    assert (held / 600 > 0.93).all()


def test_checkpoints_that_differ_by_rounding_only_show_no_noise():
    with pytest.raises(InputError, match="there is no noise to measure"):
        measure_signal([0.1, 0.2, 0.3], [[0.1] * 3, [0.7] * 3])
