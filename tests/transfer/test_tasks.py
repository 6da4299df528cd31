"""How much data tasks ask for: exact curves, simulation with known truth, the published curves."""

from __future__ import annotations

import csv
import json
import warnings

import numpy as np
import pytest
from scipy.integrate import trapezoid

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.transfer.measure import measure_transfer
from curvewise.transfer.risks import Control, TransferRisks
from curvewise.transfer.tasks import TaskNeeds, groups_alike, rank_tasks
from curvewise.types import Interval

SIZES = np.array([100.0, 300.0, 1000.0, 3000.0, 10000.0])


def _risks(curves, runs=3, noise=0.0, sizes=SIZES, rng=None, maximal_std=0.0):
    """Runs of scratch whose calibrated risks are known, between controls at 0.9 and 0.1."""
    rng = rng or np.random.default_rng(0)
    tasks, n, risk = [], [], []
    for task, curve in curves.items():
        for size, value in zip(sizes, curve, strict=True):
            tasks += [task] * runs
            n += [size] * runs
            risk += (0.1 + 0.8 * (value + noise * rng.standard_normal(runs))).tolist()
    return TransferRisks(
        tasks=tasks,
        methods=["scratch"] * len(n),
        n=n,
        risk=risk,
        blind={t: Control(0.9) for t in curves},
        maximal={t: Control(0.1, maximal_std) for t in curves},
    )


def test_a_power_law_halves_where_it_must():
    """cR = (n/100)^-0.5: halved by four times the data; levels by arithmetic between sizes."""
    found = rank_tasks(_risks({"a": (SIZES / 100) ** -0.5}))
    row = found.row("a")
    assert row.halving.estimate == pytest.approx(4)
    risk = (SIZES / 100) ** -0.5
    expected = np.exp(np.interp(-0.5, -risk, np.log(SIZES)))
    assert row.at(0.5).n.estimate == pytest.approx(expected)
    assert row.mean.estimate == pytest.approx(trapezoid(risk, np.log(SIZES)) / np.log(SIZES[-1] / SIZES[0]))
    assert row.at(0.1).n.estimate == pytest.approx(10000)


def test_levels_beyond_the_sizes_are_said_and_not_extrapolated():
    found = rank_tasks(_risks({"hard": np.linspace(0.9, 0.6, 5)}, noise=0.001))
    row = found.row("hard")
    assert row.at(0.5).beyond == "above"
    assert row.at(0.5).n.estimate == np.inf
    assert row.at(0.5).n.low == 10000
    assert str(row.at(0.5)) == "> 10,000"
    easy = rank_tasks(_risks({"easy": np.linspace(0.4, 0.05, 5)}, noise=0.001)).row("easy")
    assert easy.at(0.75).beyond == "below"
    assert (easy.at(0.75).n.estimate, easy.at(0.75).n.high) == (0, 100)
    assert str(easy.at(0.75)) == "≤ 100"
    assert "≤ 100" in rank_tasks(_risks({"easy": np.linspace(0.4, 0.05, 5)})).table()


def test_a_factor_beyond_the_sizes_is_a_bound():
    """cR = (n/100)^-0.1 halves by 1024 times the data, which a range of 100 does not show."""
    flat = (SIZES / 100) ** -0.1
    row = rank_tasks(_risks({"a": flat}, noise=1e-4)).row("a")
    assert (row.halving.estimate, row.halving.low, row.halving.high) == (np.inf, 100, np.inf)
    assert row.halving_text() == "> 100"
    found = rank_tasks(_risks({"a": flat}, noise=1e-4))
    assert found.table("text").splitlines()[1].endswith("> 100")
    assert r"$>$ 100 \\" in found.table("latex")
    assert found.summary().endswith("halve calibrated risk: a > 100.")
    inside = rank_tasks(_risks({"a": (SIZES / 100) ** -0.5}, noise=1e-4)).row("a")
    assert inside.halving_text() == "3.997 [3.991, 4.003]"
    near = TaskNeeds("a", (), inside.mean, inside.mean, Interval(12.0, 9.0, np.inf), 50.0, 800.0)
    assert near.halving_text() == "12.0 [9.0, >16]"
    wide = TaskNeeds("a", (), inside.mean, inside.mean, Interval(66.99, 20.68, np.inf), 50.0, 12800.0)
    assert (wide.halving_text(), wide.halving_text(limits=False)) == ("67 [21, >256]", "67")
    maybe = TaskNeeds("a", (), inside.mean, inside.mean, Interval(np.inf, 9.0, np.inf), 50.0, 800.0)
    assert maybe.halving_text() == "> 16 (or from 9)"


def test_all_pairs_that_are_not_told_apart_are_said():
    """Three that lie together are one group, also the first and the last of them."""
    slow = np.linspace(0.9, 0.45, 5)
    curves = dict.fromkeys(("rte", "boolq", "mnli"), slow) | {"easy": np.linspace(0.6, 0.1, 5)}
    found = rank_tasks(_risks(curves, noise=0.02))
    assert found.order[0] == "easy"
    assert len(found.tied) == 3
    first, second, third = found.order[1:]
    assert f"Not significantly different at 0.05: {first}, {second} and {third}." in found.summary()


def test_groups_hold_every_pair_and_no_other():
    pairs = (("a", "b"), ("a", "c"), ("b", "c"), ("c", "d"), ("a", "e"))
    groups = groups_alike("abcde", pairs)
    assert groups == [("a", "b", "c"), ("c", "d"), ("a", "e")]


def test_order_from_least_to_most_data():
    curves = {"slow": np.linspace(0.9, 0.45, 5), "fast": np.linspace(0.7, 0.1, 5)}
    curves["never"] = np.linspace(1.0, 0.8, 5)
    found = rank_tasks(_risks(curves, noise=0.002))
    assert found.order == ("fast", "slow", "never")
    assert found.ordered_by == 0.5
    assert found.tied == ()
    assert [c.task for c in found.curves] == list(found.order)
    assert found.summary().startswith("From least to most data for a calibrated risk of 0.5")
    noisy = rank_tasks(_risks({"a": curves["slow"], "b": curves["slow"]}, noise=0.05))
    assert len(noisy.tied) == 1
    assert "Not significantly different" in noisy.summary()


def test_table_and_columns():
    found = rank_tasks(_risks({"a": np.linspace(0.9, 0.2, 5)}, noise=0.01), levels=[0.5])
    columns = found.columns()
    assert columns["task"] == ["a"]
    assert columns["n_at_0_5_low"][0] < columns["n_at_0_5"][0] < columns["n_at_0_5_high"][0]
    assert "n at 0.5" in found.table("latex")
    assert found.table().count("\n") == 2
    json.dumps(found.to_dict())


def _cells(columns, name, task):
    row = columns["task"].index(task)
    return [columns[f"{name}{end}"][row] for end in ("", "_low", "_high")]


def test_columns_hold_bounds_and_no_number_that_was_not_found():
    """What the sentence calls "≤ 100" or "> 10,000" is no number, but lies between two."""
    curves = {"easy": np.linspace(0.4, 0.05, 5), "hard": (SIZES / 100) ** -0.1}
    found = rank_tasks(_risks(curves, noise=1e-4))
    columns = found.columns()
    assert _cells(columns, "n_at_0_75", "easy") == pytest.approx([np.nan, 0, 100], nan_ok=True)
    assert _cells(columns, "n_at_0_5", "hard") == pytest.approx([np.nan, 10000, np.inf], nan_ok=True)
    assert _cells(columns, "halving", "hard") == pytest.approx([np.nan, 100, np.inf], nan_ok=True)
    inside = found.row("hard").at(0.75).n
    assert _cells(columns, "n_at_0_75", "hard") == [inside.estimate, inside.low, inside.high]
    with pytest.warns(CurvewiseWarning):
        bare = rank_tasks(_risks(curves, runs=1)).columns()
    assert _cells(bare, "n_at_0_75", "easy") == pytest.approx([np.nan, 0, 100], nan_ok=True)
    assert _cells(bare, "n_at_0_5", "hard") == pytest.approx([np.nan, 10000, np.inf], nan_ok=True)
    assert _cells(bare, "halving", "hard") == pytest.approx([np.nan, 100, np.inf], nan_ok=True)


def test_bounds_reach_as_far_as_the_interval():
    """What may lie between sizes nevertheless, "> 10,000 (or from 9020)", is in the columns."""
    found = rank_tasks(_risks({"a": np.linspace(0.9, 0.56, 5)}, noise=0.03))
    at = found.row("a").at(0.5)
    assert at.beyond == "above"
    assert "(or from" in str(at)
    estimate, low, high = _cells(found.columns(), "n_at_0_5", "a")
    assert np.isnan(estimate)
    assert (low, high) == (at.n.low, np.inf)
    assert low < 10000


def test_means_are_comparable_over_the_sizes_all_tasks_span():
    """A line in log n has the same mean over a stretch, whatever else was measured."""
    line = 1 - 0.15 * np.log10(SIZES)
    long = _risks({"long": line})
    short = _risks({"short": line[1:4]}, sizes=SIZES[1:4])
    both = TransferRisks(
        tasks=[*long.tasks, *short.tasks],
        methods=[*long.methods, *short.methods],
        n=[*long.n, *short.n],
        risk=[*long.risk, *short.risk],
        blind={**long.blind, **short.blind},
        maximal={**long.maximal, **short.maximal},
    )
    found = rank_tasks(both)
    assert found.row("long").shared_mean.estimate == pytest.approx(found.row("short").shared_mean.estimate)
    assert found.row("short").mean.estimate == found.row("short").shared_mean.estimate
    assert found.row("long").mean.estimate != found.row("long").shared_mean.estimate


@pytest.mark.filterwarnings("ignore::curvewise.errors.CurvewiseWarning")
@pytest.mark.parametrize(
    ("risks", "interval"),
    [
        ((0.8287936350994339, 0.7202071294654524, 0.24930727751217516, 0.1285477390096447), (87.67, 107.6)),
        ((0.685179720985299, 0.6827106868085905, 0.6528903848276438, 0.43058321038223824), (936.3, 2236)),
    ],
)
def test_without_noise_the_interval_still_allows_for_a_bend(
    risks: tuple[float, ...], interval: tuple[float, float]
) -> None:
    """Equal runs have no error, and the line between two sizes is one end of what is possible there."""
    sizes = [n for n in (10, 50, 700, 5000) for _ in range(2)]
    for scale in (1.0, 3.0, 7.0, 0.01, 100.0):
        given = {"method": ["scratch"] * 8, "n": sizes, "risk": [scale * r for r in risks for _ in range(2)]}
        found = rank_tasks(measure_transfer(given, blind=scale, maximal=0.05 * scale), levels=[0.6])
        _, low, high = found.rows[0].at(0.6).n
        assert (low, high) == pytest.approx(interval, rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("maximal_std", [0.0, 0.02])
def test_intervals_cover_a_known_truth(maximal_std):
    """Noisy runs, and a maximal supervision that is itself uncertain and shared by all sizes."""
    truth = np.array([0.9, 0.75, 0.5, 0.3, 0.2])
    at = np.exp(np.interp(-0.4, -truth, np.log(SIZES)))
    mean = trapezoid(truth, np.log(SIZES)) / np.log(100)
    rng = np.random.default_rng(1)
    inside = np.zeros(2)
    for _ in range(150):
        risks = _risks({"a": truth}, runs=4, noise=0.05, rng=rng, maximal_std=maximal_std)
        off = Control(0.1 + maximal_std * rng.standard_normal(), maximal_std)
        shifted = TransferRisks(
            **{k: getattr(risks, k) for k in ("tasks", "methods", "n", "risk", "blind")},
            seeds=np.arange(len(risks)),
            maximal={"a": off},
        )
        row = rank_tasks(shifted, levels=[0.4]).row("a")
        inside += [at in row.at(0.4).n, mean in row.mean]
    assert (inside / 150 >= 0.91).all()
    assert (inside / 150 <= 0.995).all()


@pytest.mark.parametrize("factor", [4, 10])
@pytest.mark.parametrize(
    "curve", [lambda n: 0.9 * (n / 100) ** -0.4, lambda n: 1 / (1 + (n / 300) ** 0.9)], ids=["power", "logistic"]
)
def test_intervals_allow_for_a_curve_that_bends_between_sizes(curve, factor):
    """With hardly any noise a line in log n alone excludes the size at which the risk is a quarter."""
    sizes = 100.0 * float(factor) ** np.arange(4)
    grid = np.geomspace(sizes[0], sizes[-1], 20_001)
    truth = grid[np.argmax(curve(grid) <= 0.25)]
    at = rank_tasks(_risks({"a": curve(sizes)}, noise=0.001, sizes=sizes), levels=[0.25]).row("a").at(0.25)
    assert at.n.low <= truth <= at.n.high
    assert at.n.high < 2 * truth


@pytest.mark.slow
def test_the_factor_that_halves_is_covered_with_two_runs():
    rng = np.random.default_rng(4)
    inside = []
    for _ in range(200):
        risks = _risks({"a": 0.9 * (SIZES / 100) ** -0.4}, runs=2, noise=0.03, rng=rng)
        inside.append(2**2.5 in rank_tasks(risks, levels=[0.5]).row("a").halving)
    assert 0.92 <= np.mean(inside) <= 0.99


def test_a_curve_that_comes_back_is_told():
    risks = _risks({"a": np.array([0.9, 0.4, 0.6, 0.3, 0.2])})
    with pytest.warns(CurvewiseWarning, match="gets worse"):
        found = rank_tasks(risks, levels=[0.5])
    assert any("comes back above 0.5" in w for w in found.warnings)
    assert 100 < found.row("a").at(0.5).n.estimate < 300


def test_one_run_each_has_no_intervals_and_one_size_no_curve():
    with pytest.warns(CurvewiseWarning):
        found = rank_tasks(_risks({"a": np.linspace(0.9, 0.2, 5)}, runs=1))
    assert np.isnan(found.row("a").at(0.5).n.low)
    assert np.isfinite(found.row("a").at(0.5).n.estimate)
    assert any("run twice" in w for w in found.warnings)
    one = rank_tasks(_risks({"a": [0.6]}, sizes=SIZES[:1], noise=0.01), levels=[0.5])
    assert any("one training size" in w for w in one.warnings)
    assert np.isnan(one.row("a").mean.estimate)
    assert np.isnan(one.row("a").halving.estimate)


def test_risk_that_does_not_fall_never_halves():
    with pytest.warns(CurvewiseWarning, match="gets worse"):
        found = rank_tasks(_risks({"a": np.linspace(0.5, 0.6, 5)}, noise=0.001))
    assert found.row("a").halving.estimate == np.inf


def test_what_cannot_be_used_is_told():
    risks = _risks({"a": np.linspace(0.9, 0.2, 5)})
    for levels in ((), (1.5,), ("half",), 0.5):
        with pytest.raises(InputError, match="levels="):
            rank_tasks(risks, levels=levels)
    with pytest.raises(InputError, match="none of"):
        rank_tasks(risks).row("b")
    with pytest.raises(InputError, match="none of"):
        rank_tasks(risks).row("a").at(0.33)


@pytest.mark.slow
def test_figure_four_of_the_paper(data_dir):
    """The published scratch curves: depth and normals differ although the images are the same."""
    with (data_dir / "transfer" / "transfer_controls_losses.csv").open() as file:
        rows = list(csv.DictReader(file))
    table = {
        "task": [r["domain"] for r in rows],
        "method": [r["method"] for r in rows],
        "n": [float(r["train_size"]) for r in rows],
        "loss": [float(r["test_loss"]) for r in rows],
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CurvewiseWarning)
        result = measure_transfer(table, blind="blind-guess", maximal="gold")
    found = rank_tasks(result)
    for row in found.rows:
        curve = result.curve(row.task, "scratch")
        for at in row.reached:
            if at.beyond is None:
                there = np.interp(np.log(at.n.estimate), np.log(curve.n), curve.calibrated)
                assert there == pytest.approx(at.level)
    # A line in log n between the means, worked out from the file by hand.
    halves = {"normal": 836.2138, "depth": 1965.1755, "imgnet_cls": 84762.251}
    assert found.order == tuple(halves)
    assert found.tied == ()
    for task, n in halves.items():
        assert found.row(task).at(0.5).n.estimate == pytest.approx(n)
