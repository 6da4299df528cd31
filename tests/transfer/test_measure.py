"""What measure_transfer does with good and odd tables."""

from __future__ import annotations

import json
from dataclasses import fields

import numpy as np
import pytest

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.transfer.measure import measure_transfer
from curvewise.transfer.result import TransferResult, measure_spread
from curvewise.transfer.risks import Control, TransferRisks
from curvewise.transfer.tasks import rank_tasks
from curvewise.types import Interval

SIZES = (100, 1000, 10000)
CURVES = {"scratch": (0.82, 0.54, 0.30), "one": (0.5, 0.33, 0.26), "two": (0.9, 0.6, 0.32)}
QUIET = pytest.mark.filterwarnings("ignore::curvewise.errors.CurvewiseWarning")


def rows(
    curves: dict[str, tuple[float, ...]] | None = None, runs: int = 3, sizes: tuple[float, ...] = SIZES, task: str = "a"
) -> list[dict]:
    """Runs that spread by a hundredth, the same in every process."""
    rng = np.random.default_rng(0)
    return [
        {"task": task, "method": m, "n": n, "seed": s, "risk": r + 0.01 * rng.standard_normal()}
        for m, risks in (curves or CURVES).items()
        for n, r in zip(sizes, risks, strict=True)
        for s in range(runs)
    ]


def table(given: list[dict]) -> dict[str, list]:
    return {k: [row[k] for row in given] for k in given[0]}


def measure(given: list[dict] | None = None, **options):
    return measure_transfer(table(given or rows()), **{"blind": 1.0, "maximal": 0.1, **options})


def check_same(one, two) -> None:
    """Every column, NaN where NaN is."""
    a, b = one.columns(), two.columns()
    assert list(a) == list(b)
    for name in a:
        np.testing.assert_array_equal(a[name], b[name])


def mean_of(given: list[dict], method: str, n: float) -> float:
    return float(np.mean([r["risk"] for r in given if (r["method"], r["n"]) == (method, n)]))


class TestResult:
    def test_curves_are_means_between_the_controls(self) -> None:
        given = rows()
        curve = measure(given).curve("a", "one")
        expected = [mean_of(given, "one", n) for n in SIZES]
        np.testing.assert_allclose(curve.risk, expected)
        np.testing.assert_allclose(curve.calibrated, (np.array(expected) - 0.1) / 0.9)
        assert curve.runs.tolist() == [3, 3, 3]
        assert curve.failed.tolist() == [0, 0, 0]
        runs = [r["risk"] for r in given if (r["method"], r["n"]) == ("one", 100)]
        assert curve.std[0] == pytest.approx(np.std(runs, ddof=1) / 0.9)

    def test_gains_are_differences_of_curves(self) -> None:
        found = measure()
        row = found.improvement("a", "one")
        both = [found.curve("a", m).calibrated for m in ("scratch", "one")]
        np.testing.assert_allclose(row.gain, both[0] - both[1])
        assert (row.gain_low < row.gain).all()
        assert (row.gain < row.gain_high).all()
        assert row.gain_ends is not None
        assert row.gain_ends.n_last_significant == 10000
        assert row.cci.low < row.cci.estimate < row.cci.high
        assert row.pvalue < 0.001

    def test_scratch_is_among_the_curves_and_not_among_the_methods(self) -> None:
        found = measure()
        assert found.methods == ("one", "two")
        assert [c.method for c in found.curves] == ["scratch", "one", "two"]
        with pytest.raises(InputError, match="no such pair"):
            found.improvement("a", "scratch")

    def test_what_a_size_is_worth_in_data(self) -> None:
        first = measure().improvement("a", "one").data_equivalence[0]
        assert 1000 < first.equivalent.low < first.equivalent.estimate < first.equivalent.high
        assert first.factor.estimate == first.equivalent.estimate / 100

    def test_it_can_be_written_and_read(self) -> None:
        found = measure()
        held = json.loads(json.dumps(found.to_dict()))
        assert held["improvements"][0]["method"] == "one"
        assert held["blind"]["a"]["risk"] == 1.0
        columns = found.columns()
        assert {len(v) for v in columns.values()} == {2}
        assert columns["runs"] == [9, 9]
        assert columns["largest"] == [10000.0, 10000.0]
        assert "one, CCI 0." in found.summary()
        assert "better than scratch" in found.summary()

    def test_runs_are_those_of_the_sizes_used(self) -> None:
        assert measure(sizes=[100, 1000]).columns()["runs"] == [6, 6]
        given = [r for r in rows() if not (r["method"] == "scratch" and r["n"] == 1000)]
        assert measure(given).columns()["runs"] == [6, 6]

    def test_the_summary_counts_tests_together(self) -> None:
        """Of twenty copies of one that p = .01 tells from scratch none is sure."""
        rng = np.random.default_rng(0)
        curves = {"scratch": CURVES["scratch"], "one": (0.80, 0.525, 0.285)}
        given = [
            {"task": "a", "method": m, "n": n, "risk": r + 0.02 * rng.standard_normal(), "seed": f"{n}, {i}"}
            for m, risks in curves.items()
            for n, r in zip(SIZES, risks, strict=True)
            for i in range(4)
        ]
        own = [r for r in given if r["method"] == "one"]
        many = [{**r, "method": f"copy {i}"} for i in range(20) for r in own]
        found = measure([*given, *many])
        pvalue = found.improvement("a", "one").pvalue
        assert 0.05 / 21 < pvalue < 0.05
        assert "0 of 21 are better than scratch at 5% after Holm's correction" in found.summary()

    def test_without_its_runs_a_result_says_what_it_lacks(self) -> None:
        found = measure()
        held = {f.name: getattr(found, f.name) for f in fields(found) if f.name[0] != "_"}
        bare = TransferResult(**held)
        check_same(found, bare)
        assert bare.summary() == found.summary()
        for call in (bare.ranks, bare.comparisons, lambda: bare.compare("one", "two"), lambda: rank_tasks(bare)):
            with pytest.raises(InputError, match=r"holds no runs of task 'a'.*measure_transfer"):
                call()

    def test_tables(self) -> None:
        found = measure()
        assert found.table("latex").count(r"\textbf{") == 1
        assert "*" in found.table("text").splitlines()[1]
        assert " p " in found.table(layout="long").splitlines()[0]
        with pytest.raises(InputError, match="layout='wide'"):
            found.table(layout="wide")
        with pytest.raises(InputError, match="format='xml'"):
            found.table("xml")

    def test_adjusted_pvalues_are_those_of_statsmodels_within_a_task(self) -> None:
        multitest = pytest.importorskip("statsmodels.stats.multitest")
        near = {**CURVES, "near": (0.81, 0.535, 0.297), "last": (0.80, 0.54, 0.295)}
        found = measure([*rows(near), *rows(task="b")])
        assert found.columns()["adjusted"] == [r.adjusted for r in found.improvements]
        for task in ("a", "b"):
            own = [r for r in found.improvements if r.task == task]
            expected = multitest.multipletests([r.pvalue for r in own], method="holm")[1]
            np.testing.assert_allclose([r.adjusted for r in own], expected)
            assert [r.significant for r in own] == [p <= 0.05 for p in expected]
        assert any(r.adjusted > r.pvalue for r in found.improvements)

    @QUIET
    def test_borrowed_intervals_have_a_dagger_and_a_note(self) -> None:
        once = [r for r in rows() if r["method"] != "two" or r["seed"] == 0]
        found = measure(once)
        assert found.columns()["borrowed"] == [False, True]
        _, *lines, note = found.table("text").splitlines()
        assert [line.endswith("†") for line in lines] == [False, True]
        assert note.startswith("† ")
        latex = found.table("latex")
        assert latex.count(r"$^\dagger$") == 2
        assert "†" not in latex
        twice = [r for r in rows() if r["method"] != "two" or r["seed"] == 0 or r["n"] < 10000]
        assert measure(twice).columns()["borrowed"] == [False, False]
        start = [r for r in rows() if r["method"] != "scratch" or r["seed"] == 0]
        assert measure(start).columns()["borrowed"] == [True, True]
        assert measure(rows(runs=1)).columns()["borrowed"] == [False, False]

    @QUIET
    def test_a_table_says_that_sizes_differ_and_leaves_out_who_has_nothing(self) -> None:
        given = [
            *(r for r in rows() if not (r["method"] == "two" and r["n"] == 100)),
            *rows({"elsewhere": (0.4, 0.3)}, sizes=(50, 500)),
        ]
        found = measure(given)
        text = found.table("text")
        assert "elsewhere" in found.methods
        assert "elsewhere" not in text
        assert "‡" in next(line for line in text.splitlines() if line.startswith("one"))
        assert text.splitlines()[-1].startswith("‡ The highest of methods on different")
        assert "‡" not in measure(given, sizes=[1000, 10000]).table("text")

    @QUIET
    def test_minus_signs_of_a_latex_table_are_mathematics(self) -> None:
        latex = measure().table("latex")
        line = next(line for line in latex.splitlines() if line.startswith("two"))
        assert line.count("$-$0.") == 3
        assert "-" not in line.replace("$-$", "")
        assert "−" not in latex

    def test_sizes_at_which_the_gain_is_sure_are_listed(self) -> None:
        found = measure(rows({**CURVES, "gap": (0.5, 0.54, 0.2)}))
        columns = found.columns()
        for row, text, until in zip(
            found.improvements, columns["gain_significant_at"], columns["gain_until"], strict=True
        ):
            sure = row.n[row.gain_low > 0]
            assert [float(n) for n in text.split()] == sure.tolist()
            assert not len(sure) or until == sure[-1]
        assert columns["gain_significant_at"] == ["100 1000 10000", "", "100 10000"]

    def test_a_table_without_tasks_does_not_name_one(self) -> None:
        bare = table([{k: v for k, v in r.items() if k != "task"} for r in rows()])
        said = measure_transfer(bare, blind=1.0, maximal=0.1).summary()
        assert " Best is one, CCI" in said
        assert "task: " not in said

    def test_methods_on_different_sizes_are_not_ranked(self) -> None:
        given = [r for r in rows() if (r["method"], r["n"]) != ("two", 10000)]
        with pytest.warns(CurvewiseWarning, match="not comparable"):
            said = measure(given).summary()
        assert "a: one, CCI" in said
        assert "best is" not in said
        assert "CCIs rest on different sizes, and methods are not ranked" in said
        assert "a: best is one, CCI" in measure(given, sizes=[100, 1000]).summary()

    def test_a_name_cannot_break_a_table(self) -> None:
        given = rows({"scratch": CURVES["scratch"], "**a**|b": CURVES["one"]})
        line = measure(given).table().splitlines()[2]
        assert line.startswith(r"| \*\*a\*\*\|b")

    def test_levels_widen_intervals(self) -> None:
        wide, narrow = (measure(level=x).improvement("a", "one") for x in (0.99, 0.8))
        assert wide.cci.width > narrow.cci.width
        assert (wide.gain_low < narrow.gain_low).all()

    def test_repeated_calls_and_seeds_as_numbers_or_text_agree(self) -> None:
        given = rows()
        text = [{**r, "seed": f"s{r['seed']}"} for r in given]
        check_same(measure(given), measure(text))


class TestControls:
    def test_the_rows_of_a_method_with_their_error(self) -> None:
        extra = [
            {"task": "a", "method": "gold", "n": -1, "seed": s, "risk": r} for s, r in enumerate([0.08, 0.12, 0.13])
        ]
        found = measure([*rows(), *extra], maximal="gold")
        assert found.maximal["a"].risk == pytest.approx(0.11)
        assert found.maximal["a"].std == pytest.approx(np.std([0.08, 0.12, 0.13], ddof=1) / 3**0.5)
        assert "gold" not in found.methods
        exact = measure(maximal=0.11)
        assert found.improvement("a", "one").cci.estimate == pytest.approx(exact.improvement("a", "one").cci.estimate)
        assert found.improvement("a", "one").cci.width > exact.improvement("a", "one").cci.width

    def test_of_rows_with_several_sizes_the_largest_counts(self) -> None:
        extra = [
            {"task": "a", "method": "gold", "n": n, "seed": s, "risk": r}
            for n, s, r in ((1e5, 0, 0.2), (1e6, 0, 0.1), (1e6, 1, 0.12))
        ]
        control = measure([*rows(), *extra], maximal="gold").maximal["a"]
        assert control.risk == pytest.approx(0.11)
        assert control.degrees == 1
        assert control.source == "measured at n = 1,000,000"

    def test_an_interval_has_an_error(self) -> None:
        found = measure(maximal=Interval(0.1, 0.1 - 1.96 * 0.02, 0.1 + 1.96 * 0.02))
        assert found.maximal["a"].std == pytest.approx(0.02, rel=1e-4)
        assert found.maximal["a"].source == "interval"

    def test_an_interval_of_another_level(self) -> None:
        found = measure(maximal=Interval(0.1, 0.1 - 1.645 * 0.02, 0.1 + 1.645 * 0.02, 0.9))
        assert found.maximal["a"].std == pytest.approx(0.02, rel=1e-3)

    def test_anything_that_makes_a_control_is_one(self) -> None:
        class Guess:
            def control(self) -> Control:
                return Control(1.0, 0.01, "a guess")

        assert measure(blind=Guess()).blind["a"].source == "a guess"

    def test_they_may_differ_by_task(self) -> None:
        given = [*rows(), *rows(task="b")]
        found = measure(given, blind={"a": 1.0, "b": Control(2.0)})
        assert found.blind["b"].risk == 2.0
        assert found.curve("b", "one").calibrated[0] < found.curve("a", "one").calibrated[0]

    def test_what_is_passed_goes_before_what_the_source_brings(self) -> None:
        held = table(rows())
        risks = TransferRisks(
            tasks=held["task"],
            methods=held["method"],
            n=held["n"],
            risk=held["risk"],
            blind={"a": Control(0.95)},
            maximal={"a": Control(0.05)},
            unit="test error",
            notes=("from somewhere",),
        )
        found = measure_transfer(risks, maximal=0.1)
        assert (found.blind["a"].risk, found.maximal["a"].risk) == (0.95, 0.1)
        assert found.unit == "test error"
        assert found.notes[0] == "from somewhere"
        assert found.to_dict()["notes"] == list(found.notes)
        assert not found.warnings

    def test_the_blind_guess_does_not_change_cci(self) -> None:
        one, two = (measure(blind=b).improvement("a", "one") for b in (1.0, Control(2.0, 0.3)))
        assert one.cci.estimate == pytest.approx(two.cci.estimate, rel=1e-12)
        assert one.cci.low == pytest.approx(two.cci.low, rel=1e-12)
        assert one.gain[0] == pytest.approx(two.gain[0] * 1.9 / 0.9)

    def test_one_run_is_taken_as_exact_like_a_number_and_that_is_said(self) -> None:
        gold = {"task": "a", "method": "gold", "n": -1, "seed": 0, "risk": 0.1}
        guess = {**gold, "method": "guess", "risk": 1.0}
        found = measure([*rows(), gold, guess], maximal="gold", blind="guess")
        assert np.isnan([found.maximal["a"].std, found.blind["a"].std]).all()
        number = measure()
        assert number.warnings == ()
        (said,) = found.warnings
        assert "maximal supervision, measured once" in said  # and nothing of the blind guess
        check_same(found, number)

    @pytest.mark.parametrize("value", [True, [0.1], {"a": object()}], ids=["flag", "list", "thing"])
    def test_what_is_no_control_is_an_error(self, value: object) -> None:
        with pytest.raises(InputError, match="is no control"):
            measure(blind=value)

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"tasks": []}, "is empty: name at least one"),
            ({"blind": "guess"}, "blind='guess' is no method of the dict"),
            ({"maximal": "scratch"}, "starts from nothing"),
            ({"maximal": {"b": 0.1}}, "names the task 'b'"),
            (
                {"blind": 0.05},
                r"blind=0.05: of task 'a' \(given\) is not above maximal=0.1 \(given\).* Exchange "
                r"blind=… and maximal=… .* load_risks\(…, higher_is_better=True\) if higher",
            ),
            ({"blind": 0.05, "maximal": None}, "no method is better than a blind guess"),
        ],
        ids=["no task", "unknown", "scratch", "task", "order", "assumed"],
    )
    def test_controls_that_cannot_be(self, options: dict, said: str) -> None:
        with pytest.raises(InputError, match=said):
            measure(**options)


class TestAssumedMaximal:
    def test_the_best_mean_stands_for_it_and_says_so(self) -> None:
        given = rows()
        with pytest.warns(CurvewiseWarning, match="maximal supervision was not measured"):
            found = measure(given, maximal=None)
        control = found.maximal["a"]
        assert control.assumed
        assert control.risk == mean_of(given, "one", 10000)
        assert control.source == "best observed risk (one, n = 10,000)"
        runs = [r["risk"] for r in given if (r["method"], r["n"]) == ("one", 10000)]
        assert control.std == pytest.approx(np.std(runs, ddof=1) / 3**0.5)
        assert found.curve("a", "one").calibrated[-1] == 0
        assert "Maximal supervision is assumed" in found.summary()

    def test_the_warning_says_what_a_lower_one_would_change(self) -> None:
        with pytest.warns(CurvewiseWarning) as caught:
            found = measure(maximal=None)
        risk = found.maximal["a"].risk
        lower = measure(maximal=risk - 0.1 * (1 - risk)).improvement("a", "one").cci.estimate
        assert f"would be {lower:.3g} in place of" in str(caught[0].message)
        assert lower < found.improvement("a", "one").cci.estimate

    @QUIET
    def test_sizes_left_out_still_count_for_it(self) -> None:
        found = measure(maximal=None, sizes=[100, 1000])
        assert "n = 10,000" in found.maximal["a"].source
        assert found.improvement("a", "one").n.tolist() == [100, 1000]

    @QUIET
    def test_methods_left_out_do_not(self) -> None:
        assert "scratch" in measure(maximal=None, methods=["two"]).maximal["a"].source

    @QUIET
    def test_methods_left_out_lend_their_spread(self) -> None:
        """Which methods are measured changes no interval: the spread of one run rests on all the rows."""
        given = [r for r in rows() if r["method"] != "one" or r["seed"] == 0]
        noisy = [{**r, "risk": r["risk"] + 0.05 * r["seed"]} if r["method"] == "two" else r for r in given]
        every, alone = measure(noisy), measure(noisy, methods=["one"])
        assert alone.methods == ("one",)
        assert [c.method for c in alone.curves] == ["scratch", "one"]
        a, b = (found.improvement("a", "one") for found in (every, alone))
        assert (a.cci, a.pvalue) == (b.cci, b.pvalue)
        assert b.adjusted == b.pvalue, "one test, without a correction for those left out"
        for name in ("gain", "gain_low", "gain_high"):
            np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
        assert a.gain_ends.significant_at == b.gain_ends.significant_at
        dropped = measure([r for r in noisy if r["method"] != "two"]).improvement("a", "one")
        assert dropped.cci.high - dropped.cci.low < b.cci.high - b.cci.low

    @QUIET
    def test_failures_of_methods_left_out_are_not_told(self) -> None:
        given = [{**r, "risk": np.nan} if (r["method"], r["n"], r["seed"]) == ("two", 100, 0) else r for r in rows()]
        assert any("failed run" in text for text in measure(given).warnings)
        assert not any("failed run" in text for text in measure(given, methods=["one"]).warnings)

    def test_a_control_that_is_assumed_elsewhere_is_said_to_be(self) -> None:
        with pytest.warns(CurvewiseWarning, match="asymptote"):
            measure(maximal=Control(0.1, 0.01, "asymptote", assumed=True))


class TestOddTables:
    def test_methods_on_other_sizes_are_compared_where_both_are(self) -> None:
        given = [r for r in rows() if not (r["method"] == "two" and r["n"] == 100)]
        with pytest.warns(CurvewiseWarning, match=r"different sizes.*sizes=\[1000, 10000\]"):
            found = measure(given)
        assert found.improvement("a", "two").n.tolist() == [1000, 10000]
        assert found.improvement("a", "one").n.tolist() == [100, 1000, 10000]
        same = measure(given, sizes=[1000, 10000])
        assert same.improvement("a", "one").n.tolist() == [1000, 10000]
        assert same.improvement("a", "two").cci.estimate == pytest.approx(found.improvement("a", "two").cci.estimate)

    def test_what_is_wrong_with_sizes_is_a_short_sentence(self) -> None:
        sizes = (10000, 100000, 1000000)
        given = [r for r in rows(sizes=sizes) if not (r["method"] == "two" and r["n"] == 10000)]
        with pytest.warns(CurvewiseWarning, match="different sizes"):
            found = measure(given)
        first, remedy, *_ = found.warnings[0].split(". ")
        assert first == "a: CCIs rest on different sizes and are not comparable"
        assert remedy == "Pass sizes=[100000, 1000000], which all of them have"
        assert "two on 100,000 and 1,000,000." in found.warnings[0]

    def test_with_several_tasks_the_remedy_names_the_task(self) -> None:
        given = [r for r in rows() if not (r["method"] == "two" and r["n"] == 100)]
        with pytest.warns(CurvewiseWarning, match=r"sizes=\{'a': \[1000, 10000\]\}"):
            measure([*given, *rows(task="b")])

    def test_a_size_that_scratch_lacks_is_on_the_curve_only(self) -> None:
        given = [r for r in rows() if not (r["method"] == "scratch" and r["n"] == 1000)]
        found = measure(given)
        assert found.curve("a", "one").n.tolist() == [100, 1000, 10000]
        assert found.improvement("a", "one").n.tolist() == [100, 10000]
        assert len(found.improvement("a", "one").data_equivalence) == 3

    def test_nothing_shared_is_said(self) -> None:
        given = [*(r for r in rows() if r["method"] != "two"), *rows({"two": (0.4, 0.3)}, sizes=(50, 500))]
        with pytest.warns(CurvewiseWarning, match="two: no size shared with scratch"):
            found = measure(given)
        assert [r.method for r in found.improvements] == ["one"]
        assert found.curve("a", "two").n.tolist() == [50, 500]

    def test_one_size_has_a_gain_and_no_cci(self) -> None:
        given = [r for r in rows() if r["n"] == 100]
        with pytest.warns(CurvewiseWarning, match="one size shared with scratch, n = 100"):
            found = measure(given)
        row = found.improvement("a", "one")
        assert np.isnan([row.cci.estimate, row.cci.low, row.cci.high, row.pvalue]).all()
        assert row.gain_low[0] > 0
        assert "a: no CCI can be computed" in found.summary()
        assert "–" in found.table()

    def test_flat_scratch_has_no_cci(self) -> None:
        flat = [
            {"task": "a", "method": m, "n": n, "seed": s, "risk": r}
            for m, r in (("scratch", 0.5), ("one", 0.4))
            for n in SIZES
            for s in range(2)
        ]
        with pytest.warns(CurvewiseWarning, match="encloses no area"):
            found = measure(flat)
        assert np.isnan(found.improvement("a", "one").cci.estimate)

    def test_scratch_that_gets_worse_is_a_signed_area(self) -> None:
        curves = {"scratch": (0.8, 0.4, 0.5, 0.3), "one": (0.5, 0.3, 0.2, 0.2)}
        given = [
            {"task": "a", "method": m, "n": n, "seed": s, "risk": r + 0.001 * s}
            for m, risks in curves.items()
            for n, r in zip((10, 20, 40, 80), risks, strict=True)
            for s in (-1, 1)
        ]
        with pytest.warns(CurvewiseWarning, match=r"14% of the weight is negative"):
            found = measure(given)
        s, f = (np.array(curves[m]) - 0.1 for m in ("scratch", "one"))
        steps = np.diff(s)
        gain = s - f
        expected = (steps @ (gain[1:] + gain[:-1])) / (steps @ (s[1:] + s[:-1]))
        assert found.improvement("a", "one").cci.estimate == pytest.approx(expected)
        measure(given, weight="log")

    @pytest.mark.parametrize(
        ("risks", "said"),
        [
            ((0.5, 0.6, 0.7), "from the smallest size to the largest"),
            ((0.5, 0.4, 0.7), "where it gets better a gain counts as a loss"),
        ],
    )
    def test_scratch_that_gets_worse_on_the_whole_is_not_said_to_do_so_in_places(
        self, risks: tuple[float, ...], said: str
    ) -> None:
        with pytest.warns(CurvewiseWarning, match="gets worse with more data") as seen:
            found = measure(rows({"scratch": risks, "one": tuple(r - 0.1 for r in risks)}))
        assert found.improvement("a", "one").cci.estimate > 0
        text = next(str(w.message) for w in seen if "gets worse" in str(w.message))
        assert said in text
        assert "in places" not in text

    @QUIET
    def test_equal_runs_have_no_spread_by_rounding(self) -> None:
        # The sum of three times 0.7, divided by 3, is not 0.7.
        cells = {("scratch", 100): 3, ("scratch", 1000): 3, ("one", 100): 1, ("one", 1000): 6}
        level = {100: 0.7, 1000: 0.2}
        given = [{"task": "a", "method": m, "n": n, "risk": level[n]} for (m, n), k in cells.items() for _ in range(k)]
        found = measure(given)
        assert [*found.improvement("a", "one").cci][:3] == [0, 0, 0]
        assert found.improvement("a", "one").pvalue == 1
        assert any("are they copies of one run, or rounded?" in text for text in found.warnings)

    @QUIET
    def test_a_weight_without_a_name_is_ones_own(self) -> None:
        own, log = (measure(rows(), weight=w) for w in (lambda n: 1 / n, "log"))
        assert own.weight == "own"
        assert measure(rows(), weight=np.ones_like).weight == "ones_like"
        assert own.improvement("a", "one").cci.estimate == pytest.approx(log.improvement("a", "one").cci.estimate)

    @QUIET
    def test_the_best_of_equal_means_is_the_same_in_any_order(self) -> None:
        cells = {
            ("scratch", 100): (0.42, 0.41, 0.44),
            ("scratch", 1000): (0.22,),
            ("one", 100): (0.38, 0.43, 0.44),
            ("one", 1000): (0.22,),
        }
        given = [
            {"task": "a", "method": m, "n": n, "seed": s, "risk": r}
            for (m, n), risks in cells.items()
            for s, r in enumerate(risks)
        ]
        found = [measure_transfer(table(order), blind=1.0) for order in (given, given[::-1])]
        assert found[0].maximal == found[1].maximal
        one, two = ([*f.improvement("a", "one").cci][:3] for f in found)
        assert one == pytest.approx(two)

    def test_beyond_the_controls_is_said(self) -> None:
        curves = {"scratch": (1.2, 0.54, 0.30), "one": (0.5, 0.33, 0.05)}
        found = measure(rows(curves))
        assert found.curve("a", "scratch").calibrated[0] > 1
        assert found.curve("a", "one").calibrated[-1] < 0
        assert "a: worse than the blind guess: scratch at n = 100." in found.warnings
        assert "a: better than maximal supervision: one at n = 10,000." in found.warnings

    def test_failed_runs_are_counted_and_left_out(self) -> None:
        given = rows()
        at = next(i for i, r in enumerate(given) if (r["method"], r["n"]) == ("one", 1000))
        kept = [r for i, r in enumerate(given) if i != at]
        failed = [{**r, "risk": np.nan} if i == at else r for i, r in enumerate(given)]
        with pytest.warns(CurvewiseWarning, match=r"1 failed run left out \(one at n = 1,000: 1\)"):
            found = measure(failed)
        assert found.curve("a", "one").failed.tolist() == [0, 1, 0]
        assert found.curve("a", "one").runs.tolist() == [3, 2, 3]
        np.testing.assert_array_equal(found.columns()["cci"], measure(kept).columns()["cci"])
        np.testing.assert_array_equal(found.columns()["low"], measure(kept).columns()["low"])

    def test_failures_at_sizes_that_are_not_used_are_nobodys_concern(self) -> None:
        given = [{**r, "risk": np.nan} if r["n"] == 100 and r["seed"] else r for r in rows()]
        assert not measure(given, sizes=[1000, 10000]).warnings

    def test_each_task_takes_the_sizes_that_it_has(self) -> None:
        other = rows(task="b", sizes=(50, 1000, 10000))
        found = measure([*rows(), *other], sizes=[50, 100, 10000])
        assert found.improvement("a", "one").n.tolist() == [100, 10000]
        assert found.improvement("b", "one").n.tolist() == [50, 10000]

    def test_warnings_point_to_the_caller(self) -> None:
        held = table(rows(runs=1))
        with pytest.warns(CurvewiseWarning, match="no method was run twice") as caught:
            measure_transfer(held, blind=1.0, maximal=0.1)
        assert caught[0].filename == __file__

    def test_a_size_at_which_all_failed_is_not_there(self) -> None:
        given = [{**r, "risk": np.nan} if (r["method"], r["n"]) == ("one", 1000) else r for r in rows()]
        with pytest.warns(CurvewiseWarning, match="all of them"):
            found = measure(given, methods=["one"])
        assert found.improvement("a", "one").n.tolist() == [100, 10000]

    def test_without_repeats_there_are_no_intervals(self) -> None:
        with pytest.warns(CurvewiseWarning, match="no method was run twice"):
            found = measure(rows(runs=1))
        row = found.improvement("a", "one")
        assert row.cci.estimate > 0
        assert np.isnan([row.cci.low, row.cci.high, row.pvalue, *row.gain_low]).all()
        assert row.gain_ends is None
        assert not any("rest on one run" in w for w in found.warnings)
        assert np.isnan(row.data_equivalence[0].equivalent.low)
        found.summary(), found.table(), found.comparisons().summary(), found.ranks().summary()

    def test_single_runs_borrow_and_say_so(self) -> None:
        given = [r for r in rows() if r["method"] == "scratch" or r["seed"] == 0]
        found = measure(given)
        said = next(w for w in found.warnings if "rest on one run" in w)
        assert "6 of 9 means" in said
        assert "Intervals of one, two hold if" in said
        assert "may be too small" not in said
        assert np.isnan(found.curve("a", "one").std).all()
        assert np.isfinite(found.curve("a", "one").low).all()

    def test_borrowing_from_a_larger_size_is_said(self) -> None:
        given = [r for r in rows() if r["n"] > 100 or r["seed"] == 0]
        assert any("may be too small" in w for w in measure(given).warnings)

    def test_runs_that_do_not_differ_have_an_interval_of_no_width(self) -> None:
        given = [{**r, "risk": CURVES[r["method"]][SIZES.index(r["n"])]} for r in rows()]
        found = measure(given)
        row = found.improvement("a", "one")
        assert row.cci.low == row.cci.estimate == row.cci.high
        assert row.pvalue == 0
        assert any("all runs of the same method and size" in text for text in found.warnings)
        assert not any("same method and size" in text for text in measure().warnings)

    def test_a_table_put_together_twice_is_said(self) -> None:
        given = rows()
        with pytest.raises(InputError, match=r"Rows 1 and 28 .* are the same run .*load_risks"):
            measure([*given, *given[:2]])
        columns = {k: np.array([r[k] for r in (*given, *given[:2])]) for k in given[0]}
        named = {f"{k}s": columns[k] for k in ("task", "method", "seed")}
        risks = TransferRisks(n=columns["n"], risk=columns["risk"], **named)
        with pytest.warns(CurvewiseWarning, match="2 rows repeat"):
            measure_transfer(risks, blind=1.0, maximal=0.1)
        bare = [{k: v for k, v in r.items() if k != "seed"} for r in (*given, *given[:2])]
        measure(bare)

    def test_tasks_keep_to_themselves(self) -> None:
        other = [{**r, "risk": 5 * r["risk"]} for r in rows({**CURVES, "one": CURVES["two"]})]
        both = [*rows(), *({**r, "task": "b"} for r in other)]
        found = measure(both, blind={"a": 1.0, "b": 5.0}, maximal={"a": 0.1, "b": 0.5})
        alone = measure()
        for name in ("one", "two"):
            got, expected = (x.improvement("a", name).cci for x in (found, alone))
            assert (got.low, got.high) == (expected.low, expected.high)
        check_same(measure(both, tasks=["a"]), alone)

    def test_a_task_without_a_name(self) -> None:
        bare = table([{k: v for k, v in r.items() if k != "task"} for r in rows()])
        found = measure_transfer(bare, blind=1.0, maximal=0.1)
        assert found.tasks == ("task",)


class TestErrors:
    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"scratch": "random"}, "scratch='random' is no method"),
            ({"seeds": "all"}, "seeds='all'"),
            ({"weight": "cubic"}, "weight='cubic'"),
            ({"level": 95}, "level=95"),
            ({"methods": ["oen"]}, "Did you mean 'one'"),
            ({"methods": "one"}, "one text"),
            ({"tasks": ["c"]}, "tasks='c': is none of"),
            ({"tasks": "a"}, "one text"),
            ({"sizes": [150]}, "sizes=150: was not measured"),
            ({"sizes": {"c": [100]}}, "sizes='c': is none of"),
            ({"sizes": {"a": [150]}}, "sizes=150: was not measured"),
        ],
        ids=[
            "scratch",
            "seeds",
            "weight",
            "level",
            "method",
            "method as text",
            "task",
            "task as text",
            "size",
            "size of a task",
            "size of this task",
        ],
    )
    def test_options(self, options: dict, said: str) -> None:
        with pytest.raises(InputError, match=said):
            measure(**options)

    def test_scratch_missing_for_a_task(self) -> None:
        given = [*rows(), *rows({"one": CURVES["one"]}, task="b")]
        with pytest.raises(InputError, match="scratch='scratch': was not measured on task 'b'"):
            measure(given)

    def test_scratch_that_always_failed(self) -> None:
        given = [{**r, "risk": np.nan} if r["method"] == "scratch" else r for r in rows()]
        with pytest.raises(InputError, match=r"scratch=.* every run .*all 9 risks .* tasks="):
            measure(given)

    def test_sizes_without_scratch(self) -> None:
        given = [r for r in rows() if not (r["method"] == "scratch" and r["n"] == 1000)]
        with pytest.raises(InputError, match="holds none at which 'scratch'"):
            measure(given, sizes=[1000])

    @pytest.mark.parametrize(
        ("source", "said"),
        [
            ("losses.csv", "no such file"),
            ([1, 2, 3], "a list of records"),
            ({"method": ["a"], "n": [1]}, "known as the risk.*columns=.* Read the table with load_risks"),
            ({"thing": ["a"], "n": [1], "loss": [1]}, "known as the method.*'thing'"),
            ({"method": ["a"], "n": [1], "loss": [1], "error": [1]}, "2 columns of the dict could be the risk"),
            ({"method": ["a", "b"], "n": [1], "loss": [1]}, "differ in length"),
            ({"method": ["a"], "n": [1], "loss": ["low"]}, "is not a number"),
            ({"method": [None], "n": [1], "loss": [1]}, "names no method in row 1"),
            ({"task": ["average"], "method": ["scratch"], "n": [1], "loss": [1]}, "rename"),
        ],
        ids=["name", "list", "risk", "method", "two", "length", "text", "nameless", "average"],
    )
    def test_sources(self, source: object, said: str) -> None:
        with pytest.raises(InputError, match=said):
            measure_transfer(source, blind=1.0)

    def test_only_controls(self) -> None:
        with pytest.raises(InputError, match="controls and no other rows"):
            measure_transfer({"method": ["g"], "n": [-1], "risk": [1.0]}, blind="g")

    def test_a_control_without_a_role_is_not_taken_for_a_run(self) -> None:
        extra = {"task": "a", "method": "mine", "n": -1, "seed": 0, "risk": 0.1}
        with pytest.raises(InputError, match="a training size is a positive number"):
            measure([*rows(), extra])


def test_without_a_blind_guess_only_the_scale_is_missing(tmp_path) -> None:
    table = {
        "method": ["scratch"] * 6 + ["swav"] * 6,
        "n": [100, 100, 1000, 1000, 10000, 10000] * 2,
        "seed": [0, 1] * 6,
        "loss": [0.83, 0.81, 0.52, 0.55, 0.30, 0.31, 0.52, 0.50, 0.33, 0.32, 0.25, 0.27],
    }
    with pytest.warns(CurvewiseWarning, match=r"no blind guess: 0.82 stands for it .*scratch, n = 100.*CCI"):
        found = measure_transfer(table, maximal=0.1)
    full = measure_transfer(table, blind=0.9, maximal=0.1)
    row, same = found.improvement("task", "swav"), full.improvement("task", "swav")
    assert (row.cci.estimate, row.cci.low) == pytest.approx((same.cci.estimate, same.cci.low))
    assert row.pvalue == pytest.approx(same.pvalue)
    assert [e.factor.estimate for e in row.data_equivalence] == [e.factor.estimate for e in same.data_equivalence]
    assert found.blind["task"].assumed
    gain = found.runs_of(["task"])[0].risk_gain("swav", 10000)
    assert gain.value == pytest.approx(0.305 - 0.26)
    assert gain.error.std == pytest.approx(np.sqrt(0.005**2 + 0.01**2), rel=1e-6)
    for analysis in (rank_tasks, measure_spread):
        with pytest.raises(InputError, match=r"blind is missing for task 'task'\. Pass the risk"):
            analysis(found)
    path = tmp_path / "t.csv"
    pd = pytest.importorskip("pandas")  # which reads files
    pd.DataFrame(table).to_csv(path, index=False)
    assert measure_transfer(path, blind=0.9, maximal=0.1).improvements[0].cci == same.cci
