"""Plans of runs: statsmodels' power, the F test by simulation, two-way data with known truth."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import f as f_distribution

from curvewise.errors import CurvewiseWarning, InputError, quietly
from curvewise.stats.power import t_power
from curvewise.types import Predictions
from curvewise.variance.anova import f_interval, measure_totals, split_variance
from curvewise.variance.compare import compare_runs
from curvewise.variance.decompose import decompose_variance
from curvewise.variance.difference import score_difference, unpaired_difference
from curvewise.variance.plan import plan_runs


def two_trainings(rng, runs, n, std=0.01, gap=0.0, spread=0.1):
    """0/1 errors of two trainings; ``spread`` is how the difference varies between examples."""
    hard = rng.uniform(0.15, 0.45, n)
    other = hard + gap + rng.choice([-spread, spread], n)
    rates = [p + rng.normal(0, std, (runs, 1)) for p in (hard, other)]
    return [Predictions(rng.random((runs, n)) < np.clip(p, 0, 1), "errors") for p in rates]


@pytest.mark.parametrize(("effect", "runs"), [(0.5, 10), (1.0, 17), (2.0, 6), (0.1, 1000)])
def test_power_is_statsmodels(effect, runs):
    power = pytest.importorskip("statsmodels.stats.power")
    plan = plan_runs(difference=effect * 0.002, test_set_std=0.002, target="test set")
    expected = power.TTestIndPower().power(effect, runs, 0.05)
    assert plan.power_at(runs) == pytest.approx(expected, abs=1e-6)
    paired = plan_runs(difference=effect * 0.002, test_set_std=0.002, target="test set", paired=0.5)
    assert paired.power_at(runs) == pytest.approx(power.TTestPower().power(effect, runs, 0.05), abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("runs", [3, 6])
def test_power_of_few_runs_is_that_of_the_comparison(runs):
    """Fewer than five runs are compared more cautiously than by Welch."""
    rng = np.random.default_rng(runs)
    plan = plan_runs(difference=3.0, test_set_std=1.0, target="test set")
    found = [
        score_difference(rng.normal(3, 1, runs), rng.normal(0, 1, runs), False).test_set.pvalue < 0.05
        for _ in range(1200)
    ]
    assert plan.power_at(runs) == pytest.approx(np.mean(found), abs=0.05)


def test_runs_are_the_fewest():
    power = pytest.importorskip("statsmodels.stats.power")
    for effect in (0.3, 0.8, 2.0):
        plan = plan_runs(difference=effect, test_set_std=1.0, target="test set", power=0.9)
        needed = power.TTestIndPower().solve_power(effect, alpha=0.05, power=0.9)
        assert plan.runs == math.ceil(needed)
        assert plan.power_at(plan.runs) >= 0.9 > plan.power_at(plan.runs - 1)
        row = plan.table_runs.tolist().index(plan.runs)
        assert plan.table_detectable[row] <= effect
        assert plan.power_at(plan.runs, plan.table_detectable[row]) == pytest.approx(0.9)


def test_large_degrees_of_freedom_join_smoothly():
    assert t_power(2.8, 2e6, 0.95) == pytest.approx(t_power(2.8, 9e5, 0.95), abs=1e-5)


def test_variance_power_by_simulation():
    """F intervals of normal run effects on two-way data, drawn as mean squares."""
    rng = np.random.default_rng(0)
    noise, std, n = 0.0015**2, 0.001, 500
    plan = plan_runs(distribution_std=std, independent_std=math.sqrt(noise), examples=n, power=0.8)
    runs = plan.runs
    draws = 20_000
    between = (noise + std**2) * rng.chisquare(runs - 1, draws) / (runs - 1)
    rest = (runs - 1) * (n - 1)
    within = noise * rng.chisquare(rest, draws) / rest
    found = between / within > f_distribution.ppf(0.975, runs - 1, rest)  # the lower end is above 0
    assert found.mean() == pytest.approx(plan.power_at(runs), abs=0.01)
    assert 0.8 <= plan.power_at(runs) < 0.82
    assert plan.question == "variance"
    assert "between runs from 0" in plan.summary()
    row = plan.table_runs.tolist().index(runs)
    assert plan.table_detectable[row] == pytest.approx(std, rel=0.02)


def test_variance_power_on_decompositions():
    """How often the interval of decompose_variance excludes 0, on 0/1 errors."""
    rng = np.random.default_rng(1)
    pilot = decompose_variance(two_trainings(rng, 40, 1000)[0])
    plan = plan_runs(distribution_std=0.012, pilot=pilot)
    found = 0
    for _ in range(200):
        errors = two_trainings(rng, plan.runs, 1000, std=0.012)[0]
        found += f_interval(split_variance(measure_totals(errors)), 0.95)[0] > 0
    assert found / 200 == pytest.approx(plan.power_at(plan.runs), abs=0.08)
    assert "its interval excludes 0" in plan.summary()


@pytest.mark.slow
def test_difference_on_the_distribution_by_simulation():
    """The planned power, with new runs and new examples each time."""
    rng = np.random.default_rng(2)
    one, two = two_trainings(rng, 30, 2000)
    pilots = decompose_variance(one), decompose_variance(two)
    plan = plan_runs(difference=0.012, pilot=pilots)
    known = plan_runs(difference=0.012, pilot=pilots, disagreement=0.01)  # the truth: 0.1²
    assert plan.runs in range(known.runs - 3, known.runs + 4)
    assert plan.runs_interval is not None
    assert plan.runs_interval.low < plan.runs < plan.runs_interval.high
    found = 0
    for _ in range(150):
        a, b = two_trainings(rng, plan.runs, 2000, gap=0.012)
        gap = unpaired_difference(measure_totals(a), measure_totals(b))
        found += gap.distribution.pvalue < 0.05
    assert found / 150 == pytest.approx(plan.power_at(plan.runs), abs=0.1)


def test_a_test_set_can_be_too_small():
    plan = plan_runs(difference=0.002, test_set_std=0.002, examples=1000, disagreement=0.05)
    assert plan.runs is None
    z = 1.959964 + 0.841621
    fewest = 0.05 * z**2 / 0.002**2  # with runs without end
    assert fewest < plan.examples_needed < 1.01 * fewest
    again = plan_runs(difference=0.002, test_set_std=0.002, examples=plan.examples_needed, disagreement=0.05)
    assert again.runs is not None
    assert "too small" in plan.summary()
    few = plan_runs(difference=1e-5, test_set_std=0.002, target="test set", runs_max=50)
    assert (few.runs, few.examples_needed) == (None, None)
    assert "Even 50 runs of each training do not detect" in few.summary()


def test_a_difference_as_large_as_the_error_of_the_pilot_is_warned_of():
    rng = np.random.default_rng(3)
    pilots = tuple(decompose_variance(p) for p in two_trainings(rng, 6, 500))
    largest = max(p.error.estimate for p in pilots)
    told = r"A difference of 40% is no smaller .* for 0.4 points pass difference=0.004\."
    for given in (pilots, pilots[0]):
        with pytest.warns(CurvewiseWarning, match=told):
            plan = plan_runs(difference=-0.4, pilot=given)
        assert len(plan.warnings) == 1
        assert plan_runs(difference=0.004, pilot=given).warnings == ()
        assert plan_runs(pilot=given).warnings == ()
    assert plan_runs(difference=0.99 * largest, pilot=pilots).warnings == ()
    assert plan_runs(difference=40.0, test_set_std=2.0, target="test set").warnings == ()


def test_one_pilot_assumes_the_worst_and_says_so():
    rng = np.random.default_rng(3)
    pilot = decompose_variance(two_trainings(rng, 30, 500)[0])
    plan = plan_runs(difference=0.05, pilot=pilot)
    assert any("worst case" in a for a in plan.assumptions)
    assert plan._model.example_part == pytest.approx(2 * pilot.components["example"])
    small = plan_runs(difference=0.002, pilot=pilot)
    assert small.runs is None
    first = small.summary().partition(". ")[0]
    assert first.startswith("Even 100,000 runs"), first
    assert "in the worst case, that the two trainings find unrelated examples hard" in first
    assert "Pass two pilots, one of each training" in small.summary()
    assert "worst case" not in plan_runs(difference=0.002, pilot=pilot, disagreement=0.2).summary()
    calm = plan_runs(difference=0.05, pilot=pilot, disagreement=0.01)
    assert calm.runs < plan.runs if plan.runs else calm.runs is not None


def test_paired_pilots_bring_their_correlation():
    rng = np.random.default_rng(4)
    shared = rng.normal(0, 0.03, (40, 1))
    both = [rng.random((40, 800)) < 0.3 + shared for _ in range(2)]
    pilots = tuple(decompose_variance(b) for b in both)
    apart = plan_runs(difference=0.01, pilot=pilots, target="test set")
    together = plan_runs(difference=0.01, pilot=pilots, target="test set", paired=True)
    gaps = pilots[0].run_errors - pilots[1].run_errors
    assert together._model.run_parts[0] == pytest.approx(gaps.var(ddof=1))
    assert together.runs < apart.runs


def test_the_test_set_for_few_runs_is_told_where_no_number_of_runs_is_enough():
    asked = {"difference": 0.01, "test_set_std": 0.002, "disagreement": 0.05}
    plan = plan_runs(examples=1000, **asked)
    assert plan.runs is None
    for runs in (5, 10):
        n = plan.examples_at(runs)
        # Planned again with such a test set, so many runs are enough, and with a smaller one they are not.
        assert plan_runs(examples=n, **asked).power_at(runs) >= 0.8 - 1e-9
        assert plan_runs(examples=int(0.98 * n), **asked).power_at(runs) < 0.8
    text = plan.sentences()
    assert "about 4,510 examples with 5 runs of each training, or about 4,190 examples with 10 runs" in text
    assert plan.table_runs.tolist() == [2, 3, 5, 10, 20, 30, 50, 100, 100_000]
    assert "narrowed by one more" in plan.readable()
    # Runs that differ in truth by more than the difference: no test set helps.
    text = plan_runs(examples=1000, **asked | {"test_set_std": 0.02}).sentences()
    assert "with 5 or 10 runs no test set is large enough, because runs differ" in text


@pytest.mark.filterwarnings("ignore::curvewise.errors.CurvewiseWarning")
def test_the_table_and_the_sentence_agree_in_their_digits():
    a, b = two_trainings(np.random.default_rng(3), 5, 1000)
    plan = plan_runs(a, b)
    table = plan.readable()
    heads = ["80% power for", "std error", "half-width"]
    assert len({len(text.rstrip("%").partition(".")[2]) for head in heads for text in table[head]}) == 1
    row = table["runs"].index(5)
    (power,) = (head for head in table if head.startswith("power for"))
    assert power == f"power for {table[heads[0]][row]}"
    assert f"detect a true difference of {table[heads[0]][row]} [" in plan.sentences()
    assert f"The interval is then ±{table['half-width'][row]};" in plan.sentences()
    assert "power for 1%" in plan_runs(a, b, difference=0.01).readable()


def test_one_more_run_buys_less_and_less():
    plan = plan_runs(difference=0.002, test_set_std=0.002, target="test set")
    assert (np.diff(plan.table_one_more) < 0).all()
    assert (np.diff(plan.table_power) >= -1e-12).all()
    widths = plan.table_half_width
    assert (np.diff(widths) < 0).all()
    names = ["runs", "power", "detectable", "standard_error", "half_width", "one_more"]
    assert list(plan.columns()) == names
    assert len(plan.columns()["power"]) == len(plan.table_runs)


@pytest.mark.parametrize("question", ["difference", "distribution_std"])
def test_the_table_fits_a_terminal(question):
    plan = plan_runs(**{question: 0.002}, test_set_std=0.003, independent_std=0.002, examples=9000, disagreement=0.002)
    assert max(map(len, plan.table("text", digits=5).splitlines())) <= 80


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "one question at a time"),
        ({"difference": 0.1, "distribution_std": 0.1}, "one question at a time"),
        ({"difference": 0.0, "test_set_std": 0.1}, "difference=0.0"),
        ({"difference": 0.1}, "test_set_std="),
        ({"difference": 0.1, "test_set_std": -1.0}, "test_set_std=-1.0"),
        ({"difference": 0.1, "test_set_std": 0.1}, "needs disagreement="),
        ({"difference": 0.1, "test_set_std": 0.1, "disagreement": 0.1}, "needs examples="),
        ({"difference": 0.1, "test_set_std": 0.1, "disagreement": 2.0}, "disagreement=2.0"),
        ({"difference": 0.1, "test_set_std": 0.1, "target": "moon"}, "target='moon'"),
        ({"difference": 0.1, "test_set_std": 0.1, "power": 1.0}, "power=1.0"),
        ({"difference": 0.1, "test_set_std": 0.1, "paired": 1.5}, "paired=1.5"),
        ({"difference": 0.1, "pilot": 3}, "pilot must be"),
        ({"distribution_std": 0.1}, "independent_std="),
        ({"difference": 0.1, "test_set_std": 0.1, "runs_max": 1}, "runs_max=1"),
    ],
)
def test_bad_input(options, message):
    with pytest.raises(InputError, match=message):
        plan_runs(**options)


@pytest.mark.parametrize("paired", [False, True])
def test_a_comparison_is_a_pilot(paired):
    rng = np.random.default_rng(1)
    a, b = two_trainings(rng, 6, 500)
    compared = compare_runs(a, b, paired=paired)
    wanted = plan_runs(difference=0.03, pilot=(decompose_variance(a), decompose_variance(b)), paired=paired)
    for plan in (plan_runs(compared, difference=0.03), plan_runs(difference=0.03, pilot=compared)):
        assert (plan.runs, plan.runs_interval, plan.paired) == (wanted.runs, wanted.runs_interval, paired)
    with pytest.raises(InputError, match="pass nothing beside it"):
        plan_runs(compared, b)
    with pytest.warns(CurvewiseWarning):
        scores = compare_runs([0.1, 0.2, 0.3], [0.2, 0.3, 0.5], higher_is_better=False)
    with pytest.raises(InputError, match="the predictions of two runs or more of each"):
        plan_runs(scores, difference=0.03)


@pytest.mark.parametrize("runs", [2, 3, 5])
def test_power_is_that_of_a_comparison_that_is_never_surer_on_new_data(runs):
    known = {"test_set_std": 0.01, "examples": 1000, "disagreement": 0.001}
    new, here = (plan_runs(difference=0.02, target=target, **known) for target in ("distribution", "test set"))
    assert new.power_at(runs) <= here.power_at(runs)
    widths = [float(plan.table_half_width[list(plan.table_runs).index(runs)]) for plan in (new, here)]
    assert widths[0] >= widths[1] * (1 - 1e-9)


def test_a_pilot_may_be_files_and_need_no_question(tmp_path, call) -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 5, 400)
    hard = rng.beta(0.3, 2.0, 400)
    made = {}
    for name, scale in (("a", 0.8), ("b", 1.0)):
        wrong = rng.random((5, 400)) < hard * scale * np.exp(rng.normal(0, 0.05, (5, 1)))
        made[name] = np.where(wrong, (labels + 1) % 5, labels)
        np.save(tmp_path / f"{name}.npy", made[name])
    np.save(tmp_path / "y.npy", labels)
    files = [tmp_path / "a.npy", tmp_path / "b.npy"]
    pilot = tuple(decompose_variance(runs, labels) for runs in made.values())
    wanted = plan_runs(difference=0.03, pilot=pilot)
    for plan in (
        plan_runs(*files, tmp_path / "y.npy", difference=0.03),
        plan_runs(made["a"], made["b"], labels, difference=0.03),
        plan_runs(*pilot, difference=0.03),
    ):
        assert (plan.runs, plan.runs_interval) == (wanted.runs, wanted.runs_interval)
    found = plan_runs(*files, tmp_path / "y.npy")
    assert found.runs == 5
    assert found.power_at(5, found.detectable.estimate) == pytest.approx(0.8, abs=1e-6)
    assert found.detectable.low < found.detectable.estimate < found.detectable.high
    assert "5 runs of each training, as many as the pilot has, detect a true difference of" in found.summary()
    seen = call("variance", "plan", *files, "--labels", tmp_path / "y.npy", "--json")
    assert seen.code == 0, seen.err
    assert seen.document["detectable"]["estimate"] == pytest.approx(found.detectable.estimate)
    with pytest.raises(InputError, match="pilot=… is given twice"):
        plan_runs(made["a"], labels=labels, pilot=pilot)


def test_pilots_are_matched_by_the_names_of_examples_and_runs():
    # By place, a pilot whose file lists the test set in another order seemed to find other examples hard: "even 100,000
    # runs do not" in place of 390; and pairs of runs seemed not to correlate.
    rng = np.random.default_rng(0)
    n, runs = 800, 12
    hard, seeds = rng.random(n) ** 2, rng.normal(0, 0.03, (runs, 1))
    a, b = ((rng.random((runs, n)) < np.clip(hard + seeds, 0, 1)).astype(np.uint8) for _ in range(2))
    ids, names = np.arange(n), np.array([f"seed {i}" for i in range(runs)])
    one, two = (Predictions(x, "errors", example_ids=ids, run_ids=names) for x in (a, b))
    order, rows = rng.permutation(n), rng.permutation(runs)
    moved = Predictions(b[:, order], "errors", example_ids=order, run_ids=names)
    assert plan_runs(one, moved, difference=0.02).runs == plan_runs(one, two, difference=0.02).runs
    swapped = Predictions(b[rows], "errors", example_ids=ids, run_ids=names[rows])
    pairs = {"difference": 0.02, "paired": True, "target": "test set"}
    assert plan_runs(one, swapped, **pairs).runs == plan_runs(one, two, **pairs).runs
    assert plan_runs(one, two, **pairs).runs < plan_runs(one, two, difference=0.02, target="test set").runs


@pytest.mark.parametrize("options", [{"difference": 0.05}, {}, {"difference": 0.05, "paired": True}])
def test_groups_of_one_example_change_nothing(options):
    """The runs of a pilot of one training were counted among its groups, but not among its examples."""
    rng = np.random.default_rng(3)
    errors = rng.random((5, 150)) < rng.random(150) ** 2
    pilots = [Predictions(errors, "errors", groups=groups) for groups in (None, np.arange(150))]
    plain, grouped = (plan_runs(pilot, **options) for pilot in pilots)
    assert grouped.table_detectable == pytest.approx(plain.table_detectable)
    assert grouped.examples_needed == pytest.approx(plain.examples_needed) if plain.examples_needed else True


def test_examples_in_groups_are_counted_as_examples():
    """Plans called groups of examples examples: 40 groups of 5 were a test set of 40."""
    rng = np.random.default_rng(2)
    groups = np.repeat(np.arange(40), 5)
    a, b = ((rng.random((8, 40)) < 0.2 + rng.uniform(0, 0.2, 40))[:, groups] for _ in range(2))
    with quietly():
        plan = plan_runs(*(Predictions(runs, "errors", groups=groups) for runs in (a, b)), difference=0.02)
        single = plan_runs(*(Predictions(runs[:, ::5], "errors") for runs in (a, b)), difference=0.02)
    assert (plan.runs, plan.examples, plan.groups) == (None, 200, 40)
    assert (single.examples, single.groups) == (40, None)
    assert plan.examples_needed == 5 * single.examples_needed
    assert plan.examples_at(200) == 5 * single.examples_at(200)
    assert "The test set of 200 examples in 40 groups is too small" in plan.summary()
    assert "in groups of the same size" in plan.summary()


def test_pilots_are_of_one_test_set_and_kind():
    rng = np.random.default_rng(0)
    errors, losses = rng.random((6, 50)) < 0.3, rng.random((6, 50))
    pairs = [
        [Predictions(errors, "errors"), Predictions(losses, "losses")],
        [Predictions(errors.astype(int), "labels", labels=np.full(50, k)) for k in (0, 1)],
    ]
    for pair, message in zip(pairs, ("kind", "different labels"), strict=True):
        with pytest.raises(InputError, match=message):
            plan_runs(*pair, difference=0.1)
    with pytest.raises(InputError, match="unit of a is 'fraction', that of b 'loss'"):
        plan_runs(difference=0.1, pilot=tuple(decompose_variance(p) for p in pairs[0]))


def test_the_limits_of_a_plan_have_its_level():
    rng = np.random.default_rng(1)
    a, b = (Predictions(rng.random((7, 300)) < 0.2, "errors") for _ in range(2))
    plans = [plan_runs(a, b, difference=0.03, level=0.8)]
    plans += [
        plan_runs(*(decompose_variance(p, level=level) for p in (a, b)), difference=0.03, level=0.8)
        for level in (0.8, 0.99)
    ]
    assert len({plan.runs_interval for plan in plans}) == 1


def test_a_pilot_whose_runs_tie_is_no_pilot():
    """Two runs with as many errors each made "2 [2, 2] runs are needed", whatever the difference."""
    wrong = np.arange(100) % 5 == 0
    tie = Predictions(np.array([wrong, np.roll(wrong, 1)]), "errors")
    rng = np.random.default_rng(0)
    other = Predictions(rng.random((6, 100)) < 0.2, "errors")
    with quietly():
        for pilots in ((tie,), (tie, other), (other, tie)):
            for options in ({"difference": 0.03}, {"difference": 0.03, "target": "test set"}, {}):
                with pytest.raises(InputError, match=r"has 2 runs of the same error, .* Add runs to it"):
                    plan_runs(*pilots, **options)
        assert plan_runs(tie, distribution_std=0.05).runs > 2


def test_examples_do_not_stand_in_for_runs_that_differ():
    """Only the noise in the variance between runs gets smaller with more examples."""
    rng = np.random.default_rng(5)
    pilots = [Predictions(rng.random((12, 300)) < rng.normal(0.3, 0.05, (12, 1)), "errors") for _ in range(2)]
    plan = plan_runs(*pilots, difference=0.02)
    assert plan.examples_at(10) is None
    alike = [Predictions(rng.random((12, 300)) < 0.3, "errors") for _ in range(2)]
    assert plan_runs(*alike, difference=0.02).examples_at(10) > 300
