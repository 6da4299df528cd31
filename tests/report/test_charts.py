"""Data of curves that the browser gets."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import curvewise as cw
from curvewise.report.charts import MOST_POINTS, MOST_SEEDS, figures_of, learning_chart
from curvewise.types import Measurements


@pytest.fixture
def curve(simulated: tuple[np.ndarray, np.ndarray]) -> cw.learning.LearningCurve:
    return cw.fit_learning_curve(*simulated, unit="percent", learner="oak")


def test_line_and_band_are_those_of_the_curve(curve: cw.learning.LearningCurve) -> None:
    chart = learning_chart([curve])
    n = np.array(chart["n"])
    line = chart["series"][0]["line"]
    band = curve.band(n, runs=np.inf)
    np.testing.assert_allclose(line["value"], band["error"], rtol=1e-5)
    np.testing.assert_allclose(line["low"], band["low"], rtol=1e-5)
    np.testing.assert_allclose(line["high"], band["high"], rtol=1e-5)
    assert (np.diff(n) > 0).all()
    assert n[0] == 1.0
    assert n[-1] == pytest.approx(4e8)
    for sizes in (chart["n"], chart["slider"]["n"]):
        assert {400.0, 1600.0} <= set(sizes)  # what sentences name is read off to the digit
        assert np.diff(np.log10(sizes)).min() > 0.008
    assert chart["x"]["supported"] == chart["series"][0]["supported"] == 1600


def test_brackets_name_the_interval_of_each_column_and_the_target_is_a_round_example(
    curve: cw.learning.LearningCurve, simulated: tuple[np.ndarray, np.ndarray]
) -> None:
    chart = learning_chart([curve])
    assert chart["intervals"] == "95% confidence intervals"
    middle = curve.error_at(400)
    assert chart["target"]["value"] in (10, 15, 20, 25, 30)
    assert 0.8 < chart["target"]["value"] / middle < 1.25
    extrapolator = cw.fit_learning_curve(*simulated, unit="percent", form="auto")
    now = extrapolator.interval_at(400)
    assert (now.error.kind, now.data_reliance.kind) == ("prediction", "confidence")
    assert learning_chart([extrapolator])["intervals"] == (
        "95% prediction intervals for the mean of many runs; of β, 95% confidence intervals of form power"
    )


def test_points_are_runs_or_where_there_are_many_their_means(curve: cw.learning.LearningCurve) -> None:
    def measured(repeats: int) -> Measurements:
        n = np.repeat([25.0, 50.0, 100.0, 200.0, 400.0], repeats)
        rng = np.random.default_rng(0)
        return cw.load_measurements(
            {
                "learner": ["oak"] * len(n),
                "n": n,
                "seed": np.tile(np.arange(repeats), 5),
                "error": 8 + 150 / np.sqrt(n) + rng.standard_normal(len(n)),
            },
            unit="percent",
        )

    few = measured(4)
    points = learning_chart([curve], few)["series"][0]["points"]
    np.testing.assert_allclose([p["value"] for p in points], few.error, rtol=1e-5)
    assert points[1]["label"] == "seed 1"
    many = learning_chart([curve], measured(MOST_POINTS // 5 + 1))["series"][0]["points"]
    assert [p["label"] for p in many][:2] == ["mean of 16 runs", "mean of 8 runs"]
    np.testing.assert_allclose([p["value"] for p in many], curve.mean, rtol=1e-5)


def test_loss_below_zero_has_no_floor_and_constant_values_have_room() -> None:
    n = np.repeat([25.0, 50.0, 100.0, 200.0], 3)
    noise = np.random.default_rng(1).standard_normal(len(n)) * 0.01
    with pytest.warns(cw.CurvewiseWarning):
        flat = cw.fit_learning_curve(n, np.full(len(n), 0.5), unit="fraction")
    low, high = learning_chart([flat])["y"]["range"]
    assert low == 0
    assert high > 0.5
    below = cw.fit_learning_curve(n, -3 + 5 / np.sqrt(n) + noise, unit="loss")
    assert learning_chart([below])["target"]["floor"] is None
    assert learning_chart([below])["target"]["value"] == -2.5  # a round number near -2.75
    above = cw.fit_learning_curve(n, 3 + 5 / np.sqrt(n) + noise, unit="loss")
    assert learning_chart([above])["target"]["floor"] == 0


@pytest.mark.parametrize("runs", [MOST_SEEDS, MOST_SEEDS + 1, 2 * MOST_SEEDS])
def test_the_chart_of_many_runs_ends_before_them(runs: int) -> None:
    losses = np.random.default_rng(0).gamma(2.0, 0.5, (runs, 500))
    chart = figures_of(cw.decompose_variance(losses, kind="losses"), "seeds", "Seeds")[0].chart
    assert chart is not None
    assert chart["slider"]["n"][-1] == chart["slider"]["value"] == len(chart["series"][0]["points"]) == MOST_SEEDS
    assert chart["series"][0]["points"][-1]["value"] == pytest.approx(losses[:MOST_SEEDS].mean(), rel=1e-5)


def test_runs_that_do_not_differ_have_room_around_their_mean() -> None:
    labels = np.arange(36) % 3
    same = np.tile(np.where(np.arange(36) < 29, labels, 0), (7, 1))
    chart = figures_of(cw.decompose_variance(same, labels), "seeds", "Seeds")[0].chart
    assert chart is not None
    (low, high), mean = chart["y"]["range"], 100 * np.mean(same != labels)
    assert low < 0.99 * mean < 1.01 * mean < high


def test_charts_of_hardly_anything_are_left_out_and_of_losses_are_not_percentages() -> None:
    losses = np.random.default_rng(0).gamma(2.0, 0.5, (6, 40))
    chart = figures_of(cw.decompose_variance(losses, kind="losses"), "seeds", "Seeds")[0].chart
    assert chart is not None
    assert chart["y"]["label"] == "mean loss"
    line, std = chart["series"][0]["line"], chart["series"][0]["std"]
    assert line["value"][0] == pytest.approx(losses.mean(), rel=1e-5)
    assert std["value"][3] == pytest.approx(losses.mean(axis=1).std(ddof=1) / 2, rel=1e-5)
    assert chart["series"][0]["points"][5]["value"] == pytest.approx(losses.mean(), rel=1e-5)
    labels = np.arange(60) % 2
    pool = {"a": labels[:, None] + 0.1, "b": np.sin(np.arange(60.0))[:, None]}
    ranking = cw.ranking.rank_features(pool, labels, "knn", resamples=0, reliability=0.8)
    unknown = replace(ranking, chance_best=np.full(2, np.nan), chance_top=np.full(2, np.nan))
    assert figures_of(ranking, "k", "k")[0].chart is not None
    assert figures_of(unknown, "k", "k")[0].chart is None
