"""Intervals of calibrated risks, gains and improvements, held against what others compute."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import trapezoid
from scipy.stats import t as student
from scipy.stats import ttest_ind, ttest_rel

from curvewise.errors import CurvewiseWarning
from curvewise.transfer.measure import measure_transfer
from curvewise.transfer.result import Improvement
from curvewise.transfer.risks import Control, TransferRisks, cci
from curvewise.transfer.runs import StandardError, TaskEstimate, TaskRuns, group_runs

SIZES = np.array([100.0, 1000.0, 10000.0])
TRUE = {
    "scratch": np.array([0.82, 0.54, 0.30]),
    "one": np.array([0.52, 0.40, 0.26]),
    "two": np.array([0.47, 0.37, 0.25]),
    "again": np.array([0.82, 0.54, 0.30]),
}
MANY_AND_FEW = (("scratch", 10), ("one", 2))
WEIGHTS = {"scratch": "scratch", "uniform": "uniform", "log": "log", "own": lambda n: n**-0.5}


def draw(
    rng: np.random.Generator,
    runs: tuple[int, ...] = (3, 3, 3),
    spread: float = 0.03,
    shared: float = 0.0,
    methods: tuple[str, ...] = ("scratch", "one", "two"),
    folds: bool = False,
) -> TransferRisks:
    rows = []
    subset = rng.standard_normal((len(SIZES), max(runs)))
    for method in methods:
        for k, n in enumerate(SIZES):
            own = np.sqrt(1 - shared) * rng.standard_normal(runs[k])
            noise = spread * (own + np.sqrt(shared) * subset[k, : runs[k]])
            rows += [(method, n, TRUE[method][k] + e, str(i)) for i, e in enumerate(noise)]
    names, n, risk, fold = zip(*rows, strict=True)
    return TransferRisks(
        tasks=["a"] * len(rows), methods=names, n=n, risk=risk, seeds=fold, folds=fold if folds else None
    )


def task_of(risks: TransferRisks, blind: float = 1.0, maximal: float | None = 0.1, value: object = None) -> TaskRuns:
    held = None if maximal is None else Control(maximal)
    if value is not None:
        risks = TransferRisks(tasks=risks.tasks, methods=risks.methods, n=risks.n, risk=value, folds=risks.folds)
    controls = {"blind": {"a": Control(blind)}, "maximal": {} if held is None else {"a": held}}
    return group_runs(replace(risks, **controls), "a")


def numbers(task: TaskRuns) -> dict[str, TaskEstimate]:
    found = {
        f"{name}, {'pooled' if pooled else 'mean'}": task.cci("one", SIZES, weight, pooled)
        for name, weight in WEIGHTS.items()
        for pooled in (False, True)
    }
    return {
        **found,
        "calibrated": task.calibrated("one", 1000.0),
        "gain": task.gain("one", 100.0),
        "difference": found["scratch, mean"] - task.cci("two", SIZES, "scratch", False),
    }


class TestSlopes:
    def test_by_runs(self) -> None:
        """Moving one run moves every number as its influence says."""
        risks = draw(np.random.default_rng(1), runs=(4, 3, 1))
        found = numbers(task_of(risks))
        step = 1e-6
        for i in range(len(risks)):
            moved = []
            for sign in (1, -1):
                value = risks.risk.copy()
                value[i] += sign * step
                moved.append(numbers(task_of(risks, value=value)))
            for name, estimate in found.items():
                slope = (moved[0][name].value - moved[1][name].value) / (2 * step)
                assert estimate.influence[i] == pytest.approx(slope, abs=1e-7), name

    @pytest.mark.parametrize("control", ["blind", "maximal"])
    def test_by_controls(self, control: str) -> None:
        risks = draw(np.random.default_rng(1), runs=(4, 3, 1))
        found = numbers(task_of(risks))
        step, at = 1e-6, {"blind": 1.0, "maximal": 0.1}
        up, down = (numbers(task_of(risks, **{**at, control: at[control] + s})) for s in (step, -step))
        for name, estimate in found.items():
            slope = (up[name].value - down[name].value) / (2 * step)
            assert getattr(estimate, control) == pytest.approx(slope, abs=1e-7), name

    def test_a_maximal_taken_from_a_cell_moves_with_it(self) -> None:
        """The variance is that of all that runs do, through the best mean too."""
        risks = draw(np.random.default_rng(2))
        risks = replace(risks, seeds=np.arange(len(risks)))  # no run shares its seed
        task = task_of(risks, maximal=None)
        assert task.best is not None
        step, slopes = 1e-6, {name: np.zeros(len(risks)) for name in numbers(task)}
        for i in range(len(risks)):
            for sign in (1, -1):
                value = risks.risk.copy()
                value[i] += sign * step
                for name, e in numbers(task_of(risks, maximal=None, value=value)).items():
                    slopes[name][i] += sign * e.value / (2 * step)
        for name, estimate in numbers(task).items():
            variance = sum(
                np.var(task.runs.value[task.runs.cell == c], ddof=1) * (slopes[name][task.runs.cell == c] ** 2).sum()
                for c in range(len(task.runs.size))
            )
            assert estimate.error.std == pytest.approx(np.sqrt(variance), rel=1e-5), name


class TestGains:
    """A gain with exact controls is a difference of two means."""

    @pytest.mark.parametrize("runs", [(2, 2, 2), (3, 5, 4)], ids=str)
    def test_independent_runs_are_welch(self, runs: tuple[int, ...]) -> None:
        risks = draw(np.random.default_rng(3), runs=runs)
        found = measure_transfer(risks, blind=1.0, maximal=0.1).improvement("a", "one")
        for k, n in enumerate(SIZES):
            a, b = (risks.of(method=m).risk[risks.of(method=m).n == n] for m in ("scratch", "one"))
            expected = ttest_ind(a / 0.9, b / 0.9, equal_var=False).confidence_interval()
            assert found.gain_low[k] == pytest.approx(expected.low)
            assert found.gain_high[k] == pytest.approx(expected.high)

    def test_shared_training_subsets_are_pairs(self) -> None:
        risks = draw(np.random.default_rng(4), runs=(4, 4, 4), shared=0.8, folds=True)
        found = measure_transfer(risks, blind=1.0, maximal=0.1).improvement("a", "one")
        for k, n in enumerate(SIZES):
            a, b = (risks.of(method=m).risk[risks.of(method=m).n == n] for m in ("scratch", "one"))
            expected = ttest_rel(a / 0.9, b / 0.9).confidence_interval()
            assert found.gain_low[k] == pytest.approx(expected.low)
            assert found.gain_high[k] == pytest.approx(expected.high)

    def test_the_order_of_folds_does_not_matter(self) -> None:
        risks = draw(np.random.default_rng(4), runs=(4, 4, 4), shared=0.8, folds=True)
        turned = risks.select(np.random.default_rng(0).permutation(len(risks)))
        for name in ("one", "two"):
            a, b = (measure_transfer(r, blind=1.0, maximal=0.1).improvement("a", name) for r in (risks, turned))
            assert a.cci.low == pytest.approx(b.cci.low)
            np.testing.assert_allclose(a.gain_low, b.gain_low)

    def test_controls_with_an_error_add_theirs(self) -> None:
        risks = draw(np.random.default_rng(5))
        exact, vague = (
            measure_transfer(risks, blind=Control(1.0, std), maximal=0.1).improvement("a", "one") for std in (0.0, 0.2)
        )
        task = task_of(risks)
        own = task.gain("one", 100.0)
        parts = np.array([own.error.std**2, (own.value / 0.9 * 0.2) ** 2])
        free = parts.sum() ** 2 / (parts[0] ** 2 / own.error.degrees)
        half = np.sqrt(parts.sum()) * student.ppf(0.975, free)
        assert vague.gain_high[0] - vague.gain[0] == pytest.approx(half)
        assert vague.cci.low == exact.cci.low

    def test_a_measured_control_has_degrees_of_freedom(self) -> None:
        risks = draw(np.random.default_rng(5))
        columns = {k: list(v) for k, v in risks.columns().items()}
        for i, risk in enumerate((0.05, 0.15, 0.1)):
            for name, value in zip(columns, ("a", "gold", 1e6, str(i), risk), strict=True):
                columns[name].append(value)
        found = measure_transfer(columns, blind=1.0, maximal="gold").improvement("a", "one")
        own = task_of(risks, maximal=0.1).cci("one", SIZES, "scratch", False)
        std = np.std([0.05, 0.15, 0.1], ddof=1) / np.sqrt(3)
        parts = np.array([own.error.std**2, (own.maximal * std) ** 2])
        free = parts.sum() ** 2 / (parts**2 / [own.error.degrees, 2]).sum()
        half = np.sqrt(parts.sum()) * student.ppf(0.975, free)
        assert found.cci.high - found.cci.estimate == pytest.approx(half)

    def test_an_error_of_a_control_makes_no_interval_narrower(self) -> None:
        """What is known well of a control lends degrees of freedom, which alone would narrow most of these."""
        for seed in range(10):
            risks = draw(np.random.default_rng(seed), runs=(2, 2, 2))
            exact, vague = (
                measure_transfer(risks, blind=1.0, maximal=Control(0.1, std)).improvement("a", "one")
                for std in (0.0, 0.02)
            )
            assert vague.cci.width >= exact.cci.width * (1 - 1e-12)
            assert vague.pvalue >= exact.pvalue * (1 - 1e-12)


class TestSubsets:
    def test_names_that_nobody_shares_change_no_variance(self) -> None:
        risks = draw(np.random.default_rng(6), runs=(3, 3, 3), folds=True)
        names = np.arange(len(risks)).astype(str)
        told = TransferRisks(tasks=risks.tasks, methods=risks.methods, n=risks.n, risk=risks.risk, folds=names)
        plain = TransferRisks(tasks=risks.tasks, methods=risks.methods, n=risks.n, risk=risks.risk, seeds=names)
        for name, estimate in numbers(task_of(plain)).items():
            if "pooled" not in name:
                other = numbers(task_of(told))[name].error
                assert other.std == pytest.approx(estimate.error.std), name

    def test_runs_of_one_subset_do_not_count_twice(self) -> None:
        risks = draw(np.random.default_rng(7), shared=0.5, folds=True)
        twice = risks.select(np.repeat(np.arange(len(risks)), 2))
        one, two = (numbers(task_of(r)) for r in (risks, twice))
        for name in ("scratch, mean", "gain", "difference"):
            assert two[name].error.std == pytest.approx(one[name].error.std), name
            assert two[name].error.degrees == pytest.approx(one[name].error.degrees), name

    def test_one_subset_for_all_is_said(self) -> None:
        risks = draw(np.random.default_rng(8))
        same = TransferRisks(
            tasks=risks.tasks, methods=risks.methods, n=risks.n, risk=risks.risk, folds=["0"] * len(risks)
        )
        found = measure_transfer(same, blind=1.0, maximal=0.1)
        plain = measure_transfer(risks, blind=1.0, maximal=0.1)
        assert any("not about other subsets" in w for w in found.warnings)
        assert found.improvement("a", "one").cci.low == plain.improvement("a", "one").cci.low

    @pytest.mark.parametrize("seed", range(4))
    def test_the_variance_is_that_of_sums_over_subsets(self, seed: int) -> None:
        """By matrices: within sizes, or over all of them where that is more."""
        risks = draw(np.random.default_rng(seed), (4, 4, 4), shared=0.8, folds=True)
        task = task_of(risks)
        estimate = task.cci("one", SIZES, "scratch", False)
        cells = range(len(task.runs.size))
        values = np.array([task.runs.value[task.runs.cell == c] for c in cells])
        slope = np.array([estimate.influence[task.runs.cell == c].sum() for c in cells])
        covariance = np.cov(values) / 4
        same = task.runs.size[:, None] == task.runs.size
        within, over = (slope @ (covariance * m) @ slope for m in (same, np.ones_like(same)))
        assert estimate.error.std**2 == pytest.approx(max(within, over))

    @pytest.mark.parametrize("known", [True, False], ids=["subsets", "seeds on one subset"])
    def test_runs_without_a_subset_are_not_of_one(self, known: bool) -> None:
        """A baseline from elsewhere, beside runs whose subsets are known: it spreads as it does without them."""
        rng = np.random.default_rng(0)
        loss = np.repeat([0.8, 0.5, 0.3], 10).reshape(3, 2, 5) - np.array([0.0, 0.1])[:, None]
        loss += np.array([0.005, 0.1])[:, None] * rng.standard_normal(loss.shape)
        table = {
            "method": np.tile(np.repeat(["scratch", "old"], 5), 3),
            "n": np.repeat([100, 1000, 10000], 10),
            "loss": loss.ravel(),
        }
        folds = [f"fold {i * known}" for i in range(5)] + [""] * 5
        options = {"blind": 1.0, "maximal": 0.1}
        plain = measure_transfer(table, **options).improvements[0]
        seeds = {"seed": np.arange(30)}  # so that rows with the same subset are different runs
        found = measure_transfer({**table, **seeds, "fold": folds * 3}, **options).improvements[0]
        assert not found.borrowed
        assert found.cci.width == pytest.approx(plain.cci.width, rel=0.1)
        assert found.pvalue > 1e-4

    def test_names_of_subsets_that_differ_by_size_change_nothing(self) -> None:
        """Seeds move a method alike at all sizes, whatever the subsets of each size are called."""
        rng = np.random.default_rng(1)
        moved = {m: 0.02 * rng.standard_normal(5) for m in ("scratch", "one", "two")}
        keys = [(m, n, s) for m in moved for n in (100, 1000, 10000) for s in range(5)]
        level = {100: 0.8, 1000: 0.5, 10000: 0.3}
        table = {
            "method": [m for m, _, _ in keys],
            "n": [n for _, n, _ in keys],
            "seed": [s for *_, s in keys],
            "loss": [level[n] + moved[m][s] + 0.005 * rng.standard_normal() for m, n, s in keys],
        }
        same, apart, shuffled = (
            measure_transfer({**table, "fold": folds}, blind=1.0, maximal=0.1).improvement("task", "one")
            for folds in (
                [f"{s}" for *_, s in keys],
                [f"{n}/{s}" for _, n, s in keys],
                [f"{n}/{(s + 7 * n) % 5}" for _, n, s in keys],
            )
        )
        for other in (apart, shuffled):
            assert [*other.cci][:3] == pytest.approx([*same.cci][:3])
            assert other.pvalue == pytest.approx(same.pvalue)

    def test_a_mean_on_one_subset_borrows(self) -> None:
        risks = draw(np.random.default_rng(16), folds=True, methods=("scratch", "one"))
        alone = risks.select((risks.methods == "scratch") | (risks.seeds == "0"))
        task = task_of(alone)
        start = risks.of(method="scratch")
        lent = np.var(start.risk[start.n == 100], ddof=1)
        error = task.runs.error(task.runs.of_mean(task.cells["one", 100.0]), [])
        assert (error.std**2, error.degrees) == (pytest.approx(lent), pytest.approx(2))

    def test_what_a_method_is_worth_in_data_counts_pairs(self) -> None:
        """Means that share subsets have the covariance of their runs."""
        risks = draw(np.random.default_rng(17), (5, 5, 5), shared=0.9, folds=True)
        task = task_of(risks)
        cells = [task.index(m, SIZES) for m in ("one", "scratch")]
        values = [[task.runs.value[task.runs.cell == c] for c in of_method] for of_method in cells]
        expected = np.array([np.cov(a, b)[0, 1] / 5 for a, b in zip(*values, strict=True)])
        found = [task.runs.covariance(a, b) for a, b in zip(*cells, strict=True)]
        np.testing.assert_allclose(found, expected, atol=1e-12)
        assert (expected > 0).all()
        options = {"runs": (5, 5, 5), "shared": 0.9, "methods": ("scratch", "again")}
        told, untold = (
            measure_transfer(draw(np.random.default_rng(17), **options, folds=folds), blind=1.0, maximal=0.1)
            .improvement("a", "again")
            .data_equivalence[1]
            for folds in (True, False)
        )
        assert told.equivalent.estimate == pytest.approx(untold.equivalent.estimate)
        assert told.equivalent.width < 0.7 * untold.equivalent.width

    def test_sharing_makes_an_improvement_surer(self) -> None:
        widths = {True: [], False: []}
        for seed in range(20):
            for folds, held in widths.items():
                risks = draw(np.random.default_rng(seed), (5, 5, 5), shared=0.9, folds=folds)
                error = task_of(risks).cci("one", SIZES, "scratch", False).error
                held.append(error.interval(0.0, 0.95).high)
        assert np.median(widths[True]) < 0.7 * np.median(widths[False])


class TestBorrowing:
    def variance(self, risks: TransferRisks, method: str, n: float) -> tuple[float, float]:
        task = task_of(risks)
        error = task.runs.error(task.runs.of_mean(task.cells[method, n]), [])
        return error.std**2, error.degrees

    def without(self, risks: TransferRisks, *drop: tuple[str, float]) -> TransferRisks:
        """One run only in some cells."""
        keys = list(zip(risks.methods.tolist(), risks.n.tolist(), strict=True))
        later = risks.seeds != "0"
        return risks.select([not (k in drop and x) for k, x in zip(keys, later, strict=True)])

    def own(self, risks: TransferRisks, method: str, n: float) -> float:
        part = risks.of(method=method)
        return float(np.var(part.risk[part.n == n], ddof=1))

    def test_from_the_same_size(self) -> None:
        risks = draw(np.random.default_rng(9))
        found = self.variance(self.without(risks, ("one", 1000.0)), "one", 1000.0)
        others = [self.own(risks, m, 1000.0) for m in ("scratch", "two")]
        assert found == (pytest.approx(np.mean(others)), pytest.approx(_free(others, [2, 2])))

    def test_weighted_by_their_runs(self) -> None:
        risks = draw(np.random.default_rng(10), runs=(5, 5, 5))
        keep = (risks.methods != "two") | np.isin(risks.seeds, ["0", "1"])
        risks = risks.select(keep)
        found = self.variance(self.without(risks, ("one", 100.0)), "one", 100.0)
        others = [self.own(risks, m, 100.0) for m in ("scratch", "two")]
        assert found[0] == pytest.approx((4 * others[0] + others[1]) / 5)

    def test_else_from_the_nearest_smaller_one(self) -> None:
        risks = draw(np.random.default_rng(11))
        alone = self.without(risks, *((m, 10000.0) for m in ("scratch", "one", "two")))
        others = [self.own(risks, m, 1000.0) for m in ("scratch", "one", "two")]
        assert self.variance(alone, "one", 10000.0)[0] == pytest.approx(np.mean(others))

    def test_else_from_a_larger_one(self) -> None:
        risks = draw(np.random.default_rng(12))
        alone = self.without(risks, *((m, 100.0) for m in ("scratch", "one", "two")))
        others = [self.own(risks, m, 1000.0) for m in ("scratch", "one", "two")]
        assert self.variance(alone, "one", 100.0)[0] == pytest.approx(np.mean(others))

    def test_what_is_lent_counts_with_the_lender(self) -> None:
        """One variance behind two means has the degrees of freedom of one."""
        risks = draw(np.random.default_rng(13), methods=("scratch", "one"))
        alone = self.without(risks, *(("one", n) for n in SIZES))
        error = task_of(alone).gain("one", 100.0).error
        assert error.degrees == pytest.approx(2)
        assert error.std**2 == pytest.approx(self.own(risks, "scratch", 100.0) * (1 / 3 + 1) / 0.81)


def _free(variances: list[float], degrees: list[int]) -> float:
    parts = np.array(variances)
    return float(parts.sum() ** 2 / (parts**2 / degrees).sum())


class TestSeeds:
    """Runs of one method with the same seed may go up and down together at all sizes."""

    def drawn(self, seeds: list[str]) -> dict[str, list]:
        """Three runs of a method beside scratch whose runs are all alike."""
        rng = np.random.default_rng(21)
        noise = 0.05 * (rng.standard_normal(3)[:, None] + 0.2 * rng.standard_normal((3, 3)))
        table: dict[str, list] = {"method": [], "n": [], "seed": [], "risk": []}
        for k, n in enumerate(SIZES):
            for i in range(3):
                for method, risk in (("scratch", 0.0), ("one", noise[i, k])):
                    table["method"].append(method)
                    table["n"].append(n)
                    table["seed"].append(seeds[3 * k + i])
                    table["risk"].append(TRUE[method][k] + risk)
        return table

    def measured(self, table: dict[str, list]) -> StandardError:
        risks = TransferRisks(
            tasks=["a"] * len(table["n"]),
            methods=table["method"],
            n=table["n"],
            risk=table["risk"],
            seeds=table["seed"],
        )
        return task_of(risks).cci("one", SIZES, "log", False).error

    def test_the_error_is_that_of_whole_curves(self) -> None:
        """With one curve of scratch, the improvement is the mean of those of the seeds."""
        table = self.drawn([str(i) for _ in SIZES for i in range(3)])
        each = []
        for seed in "012":
            rows = [i for i, s in enumerate(table["seed"]) if s == seed]
            one = {k: [v[i] for i in rows] for k, v in table.items()}
            curves = {m: np.array(one["risk"])[np.array(one["method"]) == m] - 0.1 for m in ("scratch", "one")}
            gain = trapezoid(curves["scratch"] - curves["one"], np.log(SIZES))
            each.append(gain / trapezoid(curves["scratch"], np.log(SIZES)))
        assert self.measured(table).std == pytest.approx(np.std(each, ddof=1) / np.sqrt(3))

    def test_other_seeds_at_each_size_are_independent(self) -> None:
        table = self.drawn([str(i) for i in range(9)])
        again = self.drawn([str(i) for _ in SIZES for i in range(3)])
        risk = np.array(table["risk"]).reshape(3, 3, 2)[:, :, 1]  # sizes × runs of the method
        share = np.gradient(np.log(SIZES)) * [1, 2, 1]
        share = share / 2 / trapezoid(TRUE["scratch"] - 0.1, np.log(SIZES))
        expected = np.sqrt((share**2 * risk.var(axis=1, ddof=1) / 3).sum())
        assert self.measured(table).std == pytest.approx(expected)
        assert self.measured(again).std > 1.3 * expected

    def test_they_never_make_an_interval_narrower(self) -> None:
        rng = np.random.default_rng(22)
        for _ in range(20):
            seeded = draw(rng)
            apart = replace(seeded, seeds=np.arange(len(seeded)))
            a, b = (task_of(r).cci("one", SIZES, "scratch", False).error for r in (apart, seeded))
            assert b.std >= a.std * (1 - 1e-12)
            assert b.degrees <= a.degrees * (1 + 1e-12)

    def test_without_them_the_order_of_rows_stands_for_them(self) -> None:
        """A failed run keeps its place."""
        for risks in (draw(np.random.default_rng(24)), draw(np.random.default_rng(25), (4, 3, 1))):
            failed = replace(risks, risk=np.where(risks.seeds == "1", np.nan, risks.risk))
            for told in (risks, failed):
                a, b = (task_of(r).cci("one", SIZES, "scratch", False).error for r in (told, replace(told, seeds=None)))
                assert (a.std, a.degrees) == (b.std, b.degrees)

    @pytest.mark.slow
    @pytest.mark.parametrize("persisting", [False, True])
    def test_runs_that_persist_over_sizes_are_covered_without_them(self, persisting: bool) -> None:
        """Most of the variance or none comes with the run; both are covered."""
        rng = np.random.default_rng(26)
        truth = cci(SIZES, *((TRUE[m] - 0.1) / 0.9 for m in ("one", "scratch")), weight="log")
        held = []
        for _ in range(400):
            rows = []
            for name in ("scratch", "one"):
                own = rng.standard_normal((1 if persisting else 3, 3)) + np.zeros((3, 1))
                noise = 0.03 * np.sqrt(0.8) * own + 0.03 * np.sqrt(0.2) * rng.standard_normal((3, 3))
                rows += [(name, n, TRUE[name][k] + noise[k, i]) for k, n in enumerate(SIZES) for i in range(3)]
            method, n, risk = zip(*rows, strict=True)
            risks = TransferRisks(tasks=["a"] * len(rows), methods=method, n=n, risk=risk)
            found = task_of(risks).cci("one", SIZES, "log", False)
            held.append(truth in found.error.interval(found.value, 0.95))
        assert 0.925 <= np.mean(held) <= 0.99

    def test_that_they_seem_to_persist_is_said(self) -> None:
        rng = np.random.default_rng(27)
        seed = rng.standard_normal((2, 5))
        rows = {
            "method": np.repeat(["scratch", "one"], 15),
            "n": np.tile(np.repeat(SIZES, 5), 2),
            "risk": np.concatenate([np.repeat(TRUE[m], 5) for m in ("scratch", "one")])
            + 0.02 * np.concatenate([np.tile(s, 3) for s in seed])
            + 0.005 * rng.standard_normal(30),
        }
        with pytest.warns(CurvewiseWarning, match="There is no column of seeds"):
            found = measure_transfer(rows, blind=1.0, maximal=0.1)
        assert any("vary together (mean correlation 0.9" in text for text in found.warnings)
        told = measure_transfer({**rows, "seed": np.tile(np.arange(5), 6)}, blind=1.0, maximal=0.1)
        assert not told.warnings
        assert told.improvement("task", "one").cci == found.improvement("task", "one").cci
        assert any("k-th runs" in text for text in found.notes)
        assert not any("k-th runs" in text for text in told.notes)


class TestUnevenRuns:
    """Two runs beside ten: Welch's intervals are too narrow there."""

    @pytest.mark.slow
    @pytest.mark.parametrize("folds", [False, True], ids=["runs", "subsets"])
    def test_gains_hold_the_truth(self, folds: bool) -> None:
        rng = np.random.default_rng(23)
        truth = float(TRUE["scratch"][0] - TRUE["one"][0]) / 0.9
        held, counts = [], [k for _, k in MANY_AND_FEW]
        drawn = [TRUE[m][0] + 0.03 * rng.standard_normal((500, k)) for m, k in MANY_AND_FEW]
        for risk in zip(*drawn, strict=True):
            risks = TransferRisks(
                tasks=["a"] * 12,
                methods=np.repeat([m for m, _ in MANY_AND_FEW], counts),
                n=[100.0] * 12,
                risk=np.concatenate(risk),
                folds=[str(i) for k in counts for i in range(k)] if folds else None,
            )
            gain = task_of(risks).gain("one", 100.0)
            held.append(truth in gain.error.interval(gain.value, 0.95))
        low, high = ttest_ind(*drawn, axis=1, equal_var=False).confidence_interval()
        assert np.mean((low <= 0.9 * truth) & (0.9 * truth <= high)) < 0.92
        assert 0.92 < np.mean(held) < 0.99


class TestCoverage:
    """With known truth; bounds are generous, see benchmarks/transfer_coverage.py."""

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("options", "maximal"),
        [({}, 0.1), ({"shared": 0.7, "folds": True}, 0.1), ({}, None), ({"runs": (4, 3, 1)}, 0.1)],
        ids=["independent", "shared subsets", "assumed maximal", "uneven"],
    )
    def test_intervals_hold_the_truth(self, options: dict, maximal: float | None) -> None:
        low = min(map(min, TRUE.values())) if maximal is None else maximal
        level = {m: (r - low) / (1 - low) for m, r in TRUE.items()}
        s = level["scratch"]
        truth = {m: float(trapezoid(s - level[m], s) / trapezoid(s, s)) for m in TRUE}
        rng = np.random.default_rng(14)
        held: dict[str, list[bool]] = {"cci": [], "difference": [], "gain": [], "null": []}
        for _ in range(250):
            task = task_of(draw(rng, methods=tuple(TRUE), **options), maximal=maximal)
            found = {m: task.cci(m, SIZES, "scratch", False) for m in task.methods}
            one, difference = found["one"], found["one"] - found["two"]
            gain = task.gain("one", 100.0)
            held["cci"].append(truth["one"] in one.error.interval(one.value, 0.95))
            gap = truth["one"] - truth["two"]
            held["difference"].append(gap in difference.error.interval(difference.value, 0.95))
            at = s[0] - level["one"][0]
            held["gain"].append(at in gain.error.interval(gain.value, 0.95))
            held["null"].append(found["again"].error.pvalue(found["again"].value) <= 0.05)
        for name in ("cci", "difference", "gain"):
            assert np.mean(held[name]) > 0.90, name
        assert np.mean(held["null"]) < 0.10

    @pytest.mark.slow
    @pytest.mark.parametrize("pooled", [False, True], ids=["mean", "pooled"])
    def test_the_error_is_the_spread_of_the_estimates(self, pooled: bool) -> None:
        rng = np.random.default_rng(15)
        found = [task_of(draw(rng, runs=(4, 4, 4))).cci("one", SIZES, "scratch", pooled) for _ in range(600)]
        spread = np.std([e.value for e in found])
        stated = np.sqrt(np.mean([e.error.std**2 for e in found]))
        assert stated == pytest.approx(spread, rel=0.12)


class TestTies:
    """Errors are counts of examples: two runs that agree by chance are no variance of 0."""

    @staticmethod
    def gain(scratch: tuple[int, int], pretrained: tuple[int, int], folds: bool) -> Improvement:
        counts = {"scratch": [(60, 72), (30, 41), scratch], "pretrained": [(20, 29), (11, 16), pretrained]}
        rows = [
            (method, n, seed, wrong / 190)
            for method, cells in counts.items()
            for n, runs in zip((10, 40, 160), cells, strict=True)
            for seed, wrong in enumerate(runs)
        ]
        columns = dict(zip(("method", "n", "fold" if folds else "seed", "risk"), zip(*rows, strict=True), strict=True))
        return measure_transfer(columns, blind=Control(0.93, 0.018, "guess"), maximal=0.01).improvements[0]

    @pytest.mark.parametrize(("scratch", "pretrained"), [((6, 12), (2, 8)), ((9, 9), (5, 5))])
    @pytest.mark.parametrize("folds", [True, False])
    def test_equal_differences_are_not_significant(
        self, scratch: tuple[int, int], pretrained: tuple[int, int], folds: bool
    ) -> None:
        found = self.gain(scratch, pretrained, folds)
        assert found.gain_low[-1] < 0 < found.gain_high[-1]
        assert found.gain_ends is not None
        assert 160 not in found.gain_ends.significant_at


def test_runs_without_a_seed_beside_runs_with_one_vary_together_as_without_seeds():
    """Rows whose seed is missing were all one seed, whose deviations cancel: their intervals were too narrow."""
    n, off = np.tile([100.0, 1000.0, 10000.0], 3), np.repeat([-0.02, 0.0, 0.02], 3)
    both = {"tasks": ["task"] * 18, "methods": ["scratch"] * 9 + ["a"] * 9, "n": np.tile(n, 2), "scratch": "scratch"}
    means = [0.8 * (n / 100) ** -0.2, 0.5 * (n / 100) ** -0.2 + off]
    known = [str(k) for k in np.repeat([0, 1, 2], 3)]
    found = []
    for seeds in (None, known * 2, known + [""] * 9):
        risks = TransferRisks(**both, risk=np.concatenate(means), seeds=seeds, blind={"task": Control(1.0)})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CurvewiseWarning)
            found.append(measure_transfer(risks, maximal=0.1).improvement("task", "a").cci)
    assert found[2].width == pytest.approx(found[0].width)
    assert found[2].width == pytest.approx(found[1].width)
