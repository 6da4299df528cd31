"""Spread over runs: against scipy, and the published runs."""

from __future__ import annotations

import csv
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2, ttest_ind

from curvewise.errors import InputError
from curvewise.transfer.measure import measure_transfer
from curvewise.transfer.result import measure_spread
from curvewise.transfer.risks import Control, TransferRisks


@pytest.fixture
def runs():
    rng = np.random.default_rng(3)
    return {
        (m, n): rng.normal(0.5 - 0.05 * i, 0.03 * (1 + i), size=3 + i)
        for i, m in enumerate(("scratch", "swav", "moco"))
        for n in (100.0, 1000.0)
    }


def _risks(runs, **controls):
    rows = [(m, n, r) for (m, n), values in runs.items() for r in values]
    return TransferRisks(
        tasks=["depth"] * len(rows),
        methods=[r[0] for r in rows],
        n=[r[1] for r in rows],
        risk=[r[2] for r in rows],
        **controls,
    )


def test_standard_deviations_and_their_intervals(runs):
    found = measure_spread(_risks(runs), level=0.9)
    assert not found.calibrated
    assert len(found.rows) == 6
    for (method, n), values in runs.items():
        row = found.row("depth", method, n)
        free = len(values) - 1
        std = np.std(values, ddof=1)
        assert row.std.estimate == pytest.approx(std)
        assert row.std.low == pytest.approx(std * np.sqrt(free / chi2.ppf(0.95, free)))
        assert row.std.high == pytest.approx(std * np.sqrt(free / chi2.ppf(0.05, free)))
        assert row.mean == pytest.approx(values.mean())


def test_pairs_by_welchs_test(runs):
    found = measure_spread(_risks(runs))
    assert len(found.pairs) == 6
    for pair in found.pairs:
        a, b = runs[pair.one, pair.n], runs[pair.two, pair.n]
        assert pair.pvalue == pytest.approx(ttest_ind(a, b, equal_var=False).pvalue)
        gap = abs(a.mean() - b.mean())
        assert pair.outside == (gap > np.std(a, ddof=1) and gap > np.std(b, ddof=1))
        assert pair.adjusted >= pair.pvalue
    smallest = min(found.pairs, key=lambda p: p.pvalue)
    assert smallest.adjusted == pytest.approx(min(1, 6 * smallest.pvalue))
    assert len(found.pair_columns()["task"]) == 6
    assert "outside" in found.pair_table()


def test_result_and_risks_agree(runs):
    risks = _risks(runs, blind={"depth": Control(0.9)}, maximal={"depth": Control(0.1)})
    one, two = measure_spread(risks), measure_spread(measure_transfer(risks))
    assert one.calibrated
    for row in one.rows:
        other = two.row(row.task, row.method, row.n)
        assert row.std.estimate == pytest.approx(other.std.estimate)
        assert row.mean == pytest.approx(other.mean)
        assert row.std.high == pytest.approx(other.std.high)
    raw = measure_spread(_risks(runs)).row("depth", "swav", 100)
    assert one.row("depth", "swav", 100).std.estimate == pytest.approx(raw.std.estimate / 0.8)


def test_it_knows_who_starts_from_nothing(runs):
    risks = _risks(runs, blind={"depth": Control(0.9)}, maximal={"depth": Control(0.1)})
    methods = ["random" if m == "scratch" else m for m in risks.methods]
    renamed = replace(risks, methods=methods, scratch="random")
    assert measure_spread(renamed).scratch == "random"
    assert measure_spread(measure_transfer(renamed)).scratch == "random"


def test_a_task_may_be_called_like_a_method():
    """Rows stay in the order of tasks, then of methods."""
    risks = TransferRisks(
        tasks=["b", "b", "a", "a"] * 2, methods=["a"] * 4 + ["b"] * 4, n=[10] * 8, risk=np.linspace(0.1, 0.8, 8)
    )
    rows = [(r.task, r.method) for r in measure_spread(risks).rows]
    assert rows == [("b", "a"), ("b", "b"), ("a", "a"), ("a", "b")]


def test_single_and_failed_runs_have_no_spread():
    risks = TransferRisks(
        tasks=["t"] * 5, methods=["scratch"] * 3 + ["a"] * 2, n=[10] * 5, risk=[0.5, 0.6, np.nan, 0.3, np.nan]
    )
    found = measure_spread(risks)
    assert found.row("t", "scratch", 10).runs == 2
    assert np.isnan(found.row("t", "a", 10).std.estimate)
    assert found.pairs == ()
    assert found.warnings == ("1 of 2 cells have one run, and no spread.",)
    alone = measure_spread(risks.of(method="a"))
    assert "the spread is unknown" in alone.summary()


def test_runs_that_are_all_equal_are_not_tested():
    risks = TransferRisks(
        tasks=["t"] * 6, methods=["a", "a", "b", "b", "c", "c"], n=[10] * 6, risk=[0.5, 0.5, 0.5, 0.5, 0.25, 0.25]
    )
    assert np.isnan([p.pvalue for p in measure_spread(risks).pairs]).all()


def test_what_is_no_source_is_told(runs):
    with pytest.raises(InputError, match="load_risks"):
        measure_spread({"method": []})
    with pytest.raises(InputError, match="no such row"):
        measure_spread(_risks(runs)).row("depth", "swav", 5)
    with pytest.raises(InputError, match="level"):
        measure_spread(_risks(runs), level=2)


def published(data_dir, *tasks):
    """The published losses of some tasks as risks with their controls."""
    path = data_dir / "transfer" / "transfer_controls_losses.csv"
    with path.open() as file:
        rows = [r for r in csv.DictReader(file) if r["domain"] in tasks]
    control = {
        name: {r["domain"]: Control(float(r["test_loss"])) for r in rows if r["method"] == name}
        for name in ("blind-guess", "gold")
    }
    rows = [r for r in rows if r["method"] not in control]
    return TransferRisks(
        tasks=[r["domain"] for r in rows],
        methods=[r["method"] for r in rows],
        n=[float(r["train_size"]) for r in rows],
        risk=[float(r["test_loss"]) for r in rows],
        seeds=[r["seed"] for r in rows],
        blind=control["blind-guess"],
        maximal=control["gold"],
    )


def test_figure_three_of_the_paper(data_dir):
    """Scratch, SwAV and MoCo of Taskonomy: "generally" outside, and deviations "relatively low"."""
    risks = published(data_dir, "normal", "depth")
    three = risks.select(np.isin(risks.methods, ("scratch", "swav_task", "moco_task")))
    found = measure_spread(three.select(np.isin(three.n, (100, 1000, 10000))))
    assert {r.runs for r in found.rows if r.task == "depth" and r.n < 10000} == {4}
    assert {r.runs for r in found.rows if r.task == "depth" and r.n == 10000} == {3}
    assert len(found.pairs) == 18
    outside = [p.outside for p in found.pairs]
    assert sum(outside) == 17
    inside = next(p for p in found.pairs if not p.outside)
    assert (inside.task, inside.n, {inside.one, inside.two}) == ("normal", 100, {"swav_task", "moco_task"})
    assert np.median([r.std.estimate for r in found.rows]) < 0.02


def test_equal_runs_have_no_spread_by_rounding():
    """Three times 0.7, whose mean is not 0.7 in floating point: there is nothing to test by."""
    methods = ["scratch"] * 3 + ["one"] * 3
    risks = TransferRisks(tasks=["a"] * 6, methods=methods, n=[100] * 6, risk=[0.7] * 3 + [0.1] * 3)
    found = measure_spread(risks, level=0.975)
    assert [r.std.estimate for r in found.rows] == [0, 0]
    assert np.isnan(found.pairs[0].pvalue)
    assert "by Welch's test at 2.5%" in found.sentences()
