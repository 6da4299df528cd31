"""The decomposition against other people's formulas, known truth and the golden data."""

from __future__ import annotations

import csv
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.types import Predictions
from curvewise.variance import decompose_totals, decompose_variance
from curvewise.variance.anova import example_variance, f_interval, judge_tails, measure_totals, split_variance
from curvewise.variance.decompose import bca_limits, bootstrap_variances, measure_influence

quiet = pytest.mark.filterwarnings("ignore::curvewise.errors.CurvewiseWarning")


def matrices(low=5, high=12, columns=24):
    """0/1 matrices with runs before examples."""
    shape = st.tuples(st.integers(low, high), st.integers(high + 1, columns))
    return shape.flatmap(lambda s: arrays(np.int8, s, elements=st.integers(0, 1)))


def draw(rng, runs, n, spread=0.0, shape=(0.3, 3.0)):
    """Errors of runs that shift the logit of every example by a common normal effect."""
    p = np.clip(rng.beta(*shape, n), 1e-9, 1 - 1e-9)
    logit = np.log(p / (1 - p))
    effect = spread * rng.standard_normal((runs, 1))
    return rng.random((runs, n)) < 1 / (1 + np.exp(-(logit + effect)))


# identities


@quiet
@given(matrices())
@settings(max_examples=60, deadline=None)
def test_equals_the_covariance_form(errors):
    n = errors.shape[1]
    covariance = np.cov(errors.T.astype(float), ddof=1)
    pairs = (covariance.sum() - np.trace(covariance)) / (n * (n - 1))
    v = decompose_variance(errors)
    assert v.distribution_variance == pytest.approx(pairs, abs=1e-14)


@quiet
@given(matrices())
@settings(max_examples=60, deadline=None)
def test_equals_the_mean_squares_of_a_two_way_anova(errors):
    runs, n = errors.shape
    e = errors.astype(float)
    grand, row, column = e.mean(), e.mean(1, keepdims=True), e.mean(0, keepdims=True)
    ms_run = n * ((row - grand) ** 2).sum() / (runs - 1)
    ms_residual = ((e - row - column + grand) ** 2).sum() / ((runs - 1) * (n - 1))
    v = decompose_variance(errors)
    assert v.distribution_variance == pytest.approx((ms_run - ms_residual) / n, abs=1e-14)
    assert v._split.noise * n == pytest.approx(ms_residual, abs=1e-14)


@quiet
@given(matrices())
@settings(max_examples=60, deadline=None)
def test_share_is_cronbachs_alpha(errors):
    n = errors.shape[1]
    total = errors.sum(axis=1).var(ddof=1)
    v = decompose_variance(errors)
    if total == 0:
        assert np.isnan(v.distribution_share)
        return
    alpha = n / (n - 1) * (1 - errors.var(axis=0, ddof=1).sum() / total)
    assert v.distribution_share == pytest.approx(np.clip(alpha, 0, 1), abs=1e-12)
    assert v.distribution_share == v.share_interval.estimate
    assert v.distribution_variance == pytest.approx(alpha * v.test_set_std**2, abs=1e-14)


def test_the_share_is_a_percentage_in_the_table_as_in_the_sentence():
    rng = np.random.default_rng(0)
    v = decompose_variance(rng.random((30, 400)) < rng.uniform(0.05, 0.3, (30, 1)), kind="errors")
    table = v.readable()
    shown = dict(zip(table["quantity"], table["estimate"], strict=True))["share of variance that is real"]
    assert f"{shown.text}{shown.after} of the test-set variance is a real difference" in v.summary()
    assert shown.text.endswith("%")


@quiet
@given(matrices())
@settings(max_examples=60, deadline=None)
def test_independence_is_cochrans_q(errors):
    statsmodels = pytest.importorskip("statsmodels.stats.contingency_tables")
    v = decompose_variance(errors)
    if errors.var(axis=0).sum() == 0:
        assert v.independence_pvalue == 1
        return
    oracle = statsmodels.cochrans_q(errors.T)
    assert v.independence_pvalue == pytest.approx(oracle.pvalue, rel=1e-8, abs=1e-12)
    runs, n = errors.shape
    if oracle.statistic > 0:
        by_q = n / (n - 1) * v.test_set_std**2 * (1 - (runs - 1) / oracle.statistic)
        assert v.distribution_variance == pytest.approx(by_q, abs=1e-13)


@quiet
@given(matrices(), st.randoms(use_true_random=False))
@settings(max_examples=30, deadline=None)
def test_order_of_runs_and_examples_does_not_matter(errors, random):
    rows, columns = list(range(errors.shape[0])), list(range(errors.shape[1]))
    random.shuffle(rows)
    random.shuffle(columns)
    one, two = decompose_variance(errors), decompose_variance(errors[rows][:, columns])
    for name in ("test_set_std", "independent_std", "distribution_variance"):
        assert getattr(one, name) == pytest.approx(getattr(two, name), abs=1e-14)
    assert tuple(one.distribution_interval) == pytest.approx(tuple(two.distribution_interval))


@quiet
def test_f_interval_inverts_the_f_distribution():
    errors = draw(np.random.default_rng(1), 12, 500, 0.4)
    v = decompose_variance(errors, interval="F")
    split = v._split
    _, low, high = v.distribution_interval
    for limit, tail in ((low, 0.025), (high, 0.975)):
        # at a limit, the F seen has just this tail probability
        scaled = split.ratio / (1 + limit**2 / split.noise)
        assert stats.f.sf(scaled, *split.degrees) == pytest.approx(tail, rel=1e-6)


def test_negative_estimates_stay_negative_and_show_zero():
    rng = np.random.default_rng(3)
    errors = np.array([rng.permutation([1] * 50 + [0] * 150) for _ in range(8)])
    v = decompose_variance(errors)
    assert v.test_set_std == 0
    assert v.distribution_variance < 0
    assert v.distribution_std == 0
    assert v.distribution_interval.low == 0
    assert v.independence_pvalue == 1
    assert "have the same error" in v.summary()


def test_identical_runs_have_no_variance_at_all():
    with pytest.warns(CurvewiseWarning, match="5 run.s. repeat another run"):
        v = decompose_variance(np.tile([0, 1, 0, 0, 1, 1, 0, 0] * 30, (6, 1)))
    assert (v.test_set_std, v.independent_std, v.distribution_std) == (0, 0, 0)
    # they may differ on examples not seen, of which there are at most a share q: σ ≤ q/2
    assert v.distribution_interval.low == 0
    assert v.distribution_interval.high == pytest.approx((1 - 0.025 ** (1 / 240)) / 2)


def test_a_run_given_twice_is_noticed_but_not_a_coincidence():
    rng = np.random.default_rng(1)
    errors = rng.random((10, 200)) < 0.3
    with pytest.warns(CurvewiseWarning, match="1 run.s. repeat another run"):
        decompose_variance(np.vstack([errors, errors[:1]]))
    rare = np.zeros((10, 40), dtype=bool)
    rare[0, 3] = rare[4, 7] = True
    assert not any("repeat" in w for w in decompose_variance(rare, interval="robust").warnings)


def test_losses_follow_the_same_formulas_whatever_their_level():
    rng = np.random.default_rng(5)
    losses = rng.gamma(1.0, size=(1, 300)) * rng.gamma(9.0, 1 / 9, size=(20, 300))
    losses = losses + 0.02 * rng.standard_normal((20, 1))
    plain = decompose_variance(losses)
    far = decompose_variance(losses + 1e6)
    covariance = np.cov(losses.T, ddof=1)
    pairs = (covariance.sum() - np.trace(covariance)) / (300 * 299)
    assert plain.distribution_variance == pytest.approx(pairs, rel=1e-9)
    assert far.distribution_variance == pytest.approx(pairs, rel=1e-4)
    assert plain.unit == "loss"
    assert "%" not in plain.summary().split("test-set variance")[0].rpartition(":")[0]


# known truth


@pytest.mark.slow
def test_estimate_is_unbiased():
    """Both terms at ddof 1: with plain p(1−p) a training without variance would show sd/√R."""
    rng = np.random.default_rng(7)
    p = rng.beta(0.3, 3.0, 300)
    found, naive = [], []
    for _ in range(3000):
        errors = rng.random((5, 300)) < p
        split = split_variance(measure_totals(Predictions(errors, "errors")))
        found.append(split.distribution)
        naive.append(split.test_set - split.independent * 4 / 5)
    error = np.std(found) / np.sqrt(len(found))
    assert abs(np.mean(found)) < 3 * error
    assert np.mean(naive) > 10 * error  # mixed ddof


def test_estimate_is_unbiased_with_true_variance():
    rng = np.random.default_rng(8)
    truth, found = [], []
    for _ in range(1500):
        p = rng.beta(1.0, 4.0, 200)
        effect = rng.choice([-0.1, 0.1], size=(6, 1))
        errors = rng.random((6, 200)) < p * (1 + effect)
        found.append(split_variance(measure_totals(Predictions(errors, "errors"))).distribution)
        truth.append((0.1 * 0.2) ** 2)  # sd of 0.2·(1 ± .1)
    assert abs(np.mean(found) - np.mean(truth)) < 3 * np.std(found) / np.sqrt(len(found))


@pytest.mark.slow
@pytest.mark.parametrize(("runs", "spread"), [(5, 0.3), (10, 0.1), (30, 0.3), (10, 0.0)])
def test_f_interval_covers(runs, spread):
    """A small version of benchmarks/coverage.py."""
    rng = np.random.default_rng(runs)
    n, base = 400, 0.2
    sigma = spread * base * 0.5
    hits = 0
    for _ in range(800):
        true = np.clip(base + sigma * rng.standard_normal((runs, 1)), 0, 1)
        errors = rng.random((runs, n)) < true
        low, high = f_interval(split_variance(measure_totals(Predictions(errors, "errors"))), 0.95)
        hits += low <= sigma**2 <= high
    assert 0.925 <= hits / 800 <= 1.0
    if spread:
        assert hits / 800 <= 0.975


# the bootstrap


def test_bootstrap_with_unit_weights_is_the_estimate():
    """A generator that draws everything once: the resample is the sample."""

    class Once:
        def multinomial(self, count, p, size):
            return np.ones((size, len(p)), dtype=int)

    rng = np.random.default_rng(0)
    errors = Predictions(draw(rng, 9, 60, 0.5), "errors")
    losses = Predictions(rng.gamma(2.0, size=(9, 60)), "losses")
    groups = np.repeat(np.arange(20), 3)
    grouped = Predictions(draw(rng, 9, 60, 0.5), "errors", groups=groups)
    for p in (errors, losses, grouped):
        wanted = split_variance(measure_totals(p)).distribution
        assert bootstrap_variances(p, 3, Once()) == pytest.approx([wanted] * 3, abs=1e-12)


def test_bootstrap_leaves_out_an_examples_own_copy():
    """Resampling examples with the plain formula adds noise/n; the U-form does not."""
    rng = np.random.default_rng(2)
    errors = rng.random((100, 300)) < rng.beta(0.5, 1.5, 300)
    p = Predictions(errors, "errors")
    drawn = bootstrap_variances(p, 500, np.random.default_rng(0))
    plain = []
    for _ in range(500):
        rows, columns = rng.integers(0, 100, 100), rng.integers(0, 300, 300)
        resample = Predictions(errors[rows][:, columns], "errors")
        plain.append(split_variance(measure_totals(resample)).distribution)
    noise = split_variance(measure_totals(p)).noise
    assert abs(drawn.mean() - split_variance(measure_totals(p)).distribution) < 0.3 * noise
    assert np.mean(plain) > 0.8 * noise


def test_bootstrap_against_a_loop_over_distinct_pairs():
    rng = np.random.default_rng(4)
    errors = (rng.random((6, 8)) < 0.4).astype(float)
    seen = {}

    class Record:
        def multinomial(self, count, p, size):
            seen[len(p)] = np.random.default_rng(len(p)).multinomial(count, p, size)
            return seen[len(p)]

    value = bootstrap_variances(Predictions(errors, "errors"), 1, Record())[0]
    w, u = seen[6][0], seen[8][0]
    rows, columns = np.repeat(np.arange(6), w), np.repeat(np.arange(8), u)
    total = count = 0
    for r, s in itertools.permutations(range(6), 2):
        if rows[r] == rows[s]:
            continue
        for i, j in itertools.permutations(range(8), 2):
            if columns[i] == columns[j]:
                continue
            a, b = errors[rows[r]], errors[rows[s]]
            gap = a - b
            total += 0.5 * gap[columns[i]] * gap[columns[j]]
            count += 1
    assert value == pytest.approx(total / count, abs=1e-12)


@quiet
def test_same_seed_same_interval_whatever_the_global_generator():
    errors = draw(np.random.default_rng(0), 40, 300, 0.5)
    np.random.seed(1)  # noqa: NPY002
    one = decompose_variance(errors, interval="bootstrap", rng=3)
    np.random.seed(2)  # noqa: NPY002
    np.random.random(10)  # noqa: NPY002
    two = decompose_variance(errors, interval="bootstrap", rng=3)
    assert tuple(one.distribution_interval) == tuple(two.distribution_interval)
    other = decompose_variance(errors, interval="bootstrap", rng=4)
    assert tuple(one.distribution_interval) != tuple(other.distribution_interval)


# groups and repeats


def test_error_of_the_mean_is_that_of_two_crossed_samples():
    """MS_run + MS_example − MS_residual, over R n: what varies with both is counted once."""
    rng = np.random.default_rng(16)
    runs, n = 12, 40
    losses = 5 + rng.normal(size=(runs, 1)) + rng.normal(size=n) + rng.normal(size=(runs, n))
    v = decompose_variance(losses, kind="losses")
    by_run, by_example = losses.mean(axis=1).var(ddof=1) / runs, losses.mean(axis=0).var(ddof=1) / n
    rest = losses - losses.mean(axis=1, keepdims=True) - losses.mean(axis=0) + losses.mean()
    both = (rest**2).sum() / ((runs - 1) * (n - 1)) / (runs * n)
    parts = np.array([by_run, by_example - both])
    degrees = parts.sum() ** 2 / (parts**2 / [runs - 1, n - 1]).sum()
    half = stats.t.ppf(0.975, degrees) * np.sqrt(by_run + by_example - both)
    assert tuple(v.error) == pytest.approx((losses.mean(), losses.mean() - half, losses.mean() + half))


def test_error_of_the_mean_is_statsmodels_cluster_covariance():
    linear = pytest.importorskip("statsmodels.regression.linear_model")
    rng = np.random.default_rng(6)
    groups = np.repeat(np.arange(40), 6)
    passage = rng.normal(0, 1, 40)[groups]
    errors = rng.random((30, len(groups))) < 1 / (1 + np.exp(1 - passage))
    p = Predictions(errors, "errors", groups=groups)
    totals = measure_totals(p)
    variance, degrees = example_variance(totals.example, totals.groups)
    mean = errors.mean(axis=0)
    fit = linear.OLS(mean, np.ones(len(mean))).fit(cov_type="cluster", cov_kwds={"groups": groups})
    assert variance**0.5 == pytest.approx(float(fit.bse[0]), rel=1e-10)
    assert degrees == pytest.approx(39)


def test_unequal_groups_are_cr2_with_bell_and_mccaffreys_degrees():
    """The closed forms for a mean, against the definition in matrices (Bell and McCaffrey 2002)."""
    rng = np.random.default_rng(7)
    groups = np.repeat(np.arange(12), [22, 231, 34, 2, 1, 8, 22, 10, 19, 32, 44, 75])
    y = rng.normal(size=len(groups)) + rng.normal(size=12)[groups]
    n = len(y)
    x = np.ones((n, 1))
    bread = np.linalg.inv(x.T @ x)
    rest = np.eye(n) - x @ bread @ x.T
    rows = []
    for g in range(12):
        there = groups == g
        values, vectors = np.linalg.eigh(rest[np.ix_(there, there)])
        root = vectors @ np.diag(values**-0.5) @ vectors.T
        rows.append((bread @ x[there].T @ root @ rest[there]).ravel())
    parts = np.array(rows)  # the variance is the sum of their squared products with y
    spread = parts @ parts.T
    variance, degrees = example_variance(y, groups)
    assert variance == pytest.approx(float(((parts @ y) ** 2).sum()), rel=1e-10)
    assert degrees == pytest.approx(np.trace(spread) ** 2 / (spread**2).sum(), rel=1e-10)
    assert degrees < 4


@quiet
def test_groups_of_one_change_nothing():
    errors = draw(np.random.default_rng(9), 10, 80, 0.5)
    one = decompose_variance(errors)
    two = decompose_variance(errors, groups=np.arange(80)[::-1])
    assert two.distribution_variance == pytest.approx(one.distribution_variance, abs=1e-15)
    assert tuple(two.distribution_interval) == pytest.approx(tuple(one.distribution_interval))
    assert tuple(two.error) == pytest.approx(tuple(one.error))


def test_equal_groups_are_a_decomposition_of_their_means():
    rng = np.random.default_rng(10)
    errors = rng.random((12, 90)) < 0.3
    grouped = decompose_variance(errors, groups=np.repeat(np.arange(30), 3))
    means = decompose_variance(errors.reshape(12, 30, 3).mean(axis=2), kind="losses", axes=("runs", "examples"))
    assert grouped.distribution_variance == pytest.approx(means.distribution_variance, abs=1e-15)
    assert tuple(grouped.distribution_interval) == pytest.approx(tuple(means.distribution_interval), abs=1e-12)
    assert tuple(grouped.error) == pytest.approx(tuple(means.error), rel=1e-9)


def test_groups_keep_a_shared_fate_out_of_the_distribution():
    """Passages that a run understands or not: no real variance, and only groups see that."""
    rng = np.random.default_rng(11)
    groups = np.repeat(np.arange(60), 10)
    with_groups, without = [], []
    for _ in range(150):
        lost = rng.random((20, 60)) < 0.3
        errors = lost[:, groups]
        split = split_variance(measure_totals(Predictions(errors, "errors", groups=groups)))
        with_groups.append(split.distribution)
        without.append(split_variance(measure_totals(Predictions(errors, "errors"))).distribution)
    error = np.std(with_groups) / np.sqrt(150)
    assert abs(np.mean(with_groups)) < 3 * error
    assert np.mean(without) > 10 * error


@quiet
def test_repeats_split_the_variance_three_ways():
    rng = np.random.default_rng(12)
    runs, n, k = 40, 400, 5
    truth = {"run": 0.3, "example": 1.0, "run_example": 0.5, "repeat": 0.8}
    values = (
        truth["run"] ** 0.5 * rng.standard_normal((runs, 1, 1))
        + truth["example"] ** 0.5 * rng.standard_normal((1, n, 1))
        + truth["run_example"] ** 0.5 * rng.standard_normal((runs, n, 1))
        + truth["repeat"] ** 0.5 * rng.standard_normal((runs, n, k))
    )
    v = decompose_variance(values, axes=("runs", "examples", "repeats"), kind="losses")
    for name, expected in truth.items():
        assert v.components[name] == pytest.approx(expected, rel=0.5 if name == "run" else 0.15)
    assert v.repeats == k


def test_repeats_agree_with_statsmodels_anova():
    pd = pytest.importorskip("pandas")
    ols = pytest.importorskip("statsmodels.formula.api").ols
    anova_lm = pytest.importorskip("statsmodels.stats.anova").anova_lm
    rng = np.random.default_rng(13)
    runs, n, k = 6, 9, 3
    values = rng.gamma(2.0, size=(runs, n, k)) + rng.normal(size=(runs, 1, 1))
    v = decompose_variance(values, axes=("runs", "examples", "repeats"), kind="losses")
    index = np.indices(values.shape)
    frame = pd.DataFrame({"y": values.ravel(), "run": index[0].ravel(), "example": index[1].ravel()})
    table = anova_lm(ols("y ~ C(run) * C(example)", data=frame).fit())
    ms = table["sum_sq"] / table["df"]
    run, example, both, rest = (ms["C(run)"], ms["C(example)"], ms["C(run):C(example)"], ms["Residual"])
    assert v.components["run"] == pytest.approx((run - both) / (n * k))
    assert v.components["example"] == pytest.approx((example - both) / (runs * k))
    assert v.components["run_example"] == pytest.approx((both - rest) / k)
    assert v.components["repeat"] == pytest.approx(rest)


# golden data


def test_golden_fashion_mnist(data_dir):
    data = np.load(data_dir / "variance" / "fashion_mnist_mlp_512runs.npz")
    v = decompose_variance(data["preds"], data["labels"])
    percent = [100 * x for x in (*v.distribution_interval, v.test_set_std)]
    assert [f"{x:.3f}" for x in percent] == ["0.129", "0.109", "0.149", "0.203"]


def test_golden_berts(data_dir):
    accuracy, right = read_berts(data_dir)
    v = decompose_totals(accuracy, right, higher_is_better=True)
    assert (v.runs, v.examples) == (100, 9815)
    figures = (v.test_set_std, v.independent_std, *v.distribution_interval)
    assert [f"{100 * x:.3f}" for x in figures] == ["0.242", "0.179", "0.163", "0.115", "0.217"]
    assert f"{v.independence_pvalue:.0e}" == "9e-07"


def read_berts(data_dir):
    folder = data_dir / "variance"
    with open(folder / "berts_of_a_feather_accuracies_by_run.csv", encoding="utf-8-sig") as file:
        rows = [r for r in csv.DictReader(file) if r["Run"].startswith("Run")]
    with open(folder / "mnli_development_set_number_of_correct_responses.txt") as file:
        right = [int(line.rstrip("\n").split("\t")[-1]) for line in file.readlines()[1:]]
    return [float(r["MNLI dev acc."]) for r in rows], right


# forms of input


@quiet
def test_all_forms_of_input_agree(tmp_path):
    rng = np.random.default_rng(14)
    labels = rng.integers(0, 4, 203)
    preds = np.where(rng.random((30, 203)) < 0.3, rng.integers(0, 4, (30, 203)), labels)
    errors = preds != labels
    np.save(tmp_path / "p.npy", preds.astype(np.uint8))
    scores = np.eye(4)[preds] + 0.1
    names = np.array(["ant", "bee", "cat", "dog"])
    forms = [
        decompose_variance(preds, labels),
        decompose_variance(errors),
        decompose_variance(errors.astype(float)),
        decompose_variance(errors.T, axes=("examples", "runs")),
        decompose_variance(~errors, kind="correct"),
        decompose_variance(errors.astype(float), kind="losses"),
        decompose_variance(np.load(tmp_path / "p.npy", mmap_mode="r"), labels),
        decompose_variance(Predictions(np.packbits(errors, axis=1), "errors", packed=203)),
        decompose_variance(Predictions(np.packbits(~errors, axis=1), "correct", packed=203)),
        decompose_variance(scores / scores.sum(axis=2, keepdims=True), labels),
        decompose_variance(names[preds], names[labels]),
        decompose_totals(errors.mean(axis=1), errors.sum(axis=0)),
        decompose_totals(100 * (1 - errors.mean(axis=1)), (~errors).sum(axis=0), unit="percent", higher_is_better=True),
    ]
    for v in forms:
        assert v.error.estimate == pytest.approx(errors.mean())
        assert v.distribution_variance == pytest.approx(forms[0].distribution_variance, abs=1e-15)
        assert tuple(v.distribution_interval) == pytest.approx(tuple(forms[0].distribution_interval), abs=1e-12)


@quiet
def test_packed_groups_agree():
    errors = draw(np.random.default_rng(15), 12, 77)
    groups = np.arange(77) // 4
    one = decompose_variance(errors, groups=groups)
    packed = Predictions(np.packbits(errors, axis=1), "errors", packed=77, groups=groups)
    assert decompose_variance(packed).distribution_variance == pytest.approx(one.distribution_variance)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: decompose_variance(np.zeros((500, 20), int), np.zeros(500, int)), "transposed"),
        (lambda: decompose_variance(np.zeros((500, 20), int)), "axes="),
        (lambda: decompose_variance(np.zeros((20, 20), int), np.zeros(20, int)), "not clear which are the runs"),
        (lambda: decompose_variance(np.zeros((1, 20), int)), "at least two"),
        (lambda: decompose_variance(np.zeros((0, 20), int)), "empty"),
        (lambda: decompose_variance(np.zeros(20)), "enough to compare trainings"),
        (lambda: decompose_variance(np.full((5, 20), np.nan)), "diverged"),
        (lambda: decompose_variance(np.arange(100).reshape(5, 20)), "labels="),
        (lambda: decompose_variance(np.zeros((5, 20), int), np.zeros(19, int)), "one label for each"),
        (lambda: decompose_variance(np.zeros((5, 20, 3)), np.zeros(20, int)), "three axes"),
        (lambda: decompose_variance(np.zeros((5, 20), int), interval="t"), "interval='t'"),
        (lambda: decompose_variance(np.zeros((5, 20), int), level=95), "level=95"),
        (lambda: decompose_variance(np.zeros((5, 20), int), groups=np.zeros(20)), "one group"),
        (lambda: decompose_variance(np.zeros((5, 20), int), groups=np.zeros(3)), "groups has shape"),
        (lambda: decompose_variance(np.zeros((5, 20)) + 0.5, np.zeros(20, int)), "kind='losses'"),
        (lambda: decompose_variance(np.full((5, 20), 2), kind="errors"), "only 0 and 1"),
        (lambda: decompose_variance([["a"] * 20] * 5), "labels="),
        (lambda: decompose_variance(np.zeros((5, 20), int), kind="loss"), "kind='loss'"),
        (lambda: decompose_totals([0.5], [1, 0]), "at least two"),
        (lambda: decompose_totals([0.5, 0.5], [1, 3]), "between 0 and 2"),
        (lambda: decompose_totals([0.5, 0.5], [1, 0.5]), "whole numbers"),
        (lambda: decompose_totals([0.9, 0.9], [0, 0, 1]), "not of the same runs"),
        (lambda: decompose_totals([50, 50], [1, 1]), "unit='percent'"),
        (lambda: decompose_totals([0.5, 0.5], [1, 1], unit="loss"), "0/1 errors"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_few_runs_are_said():
    with pytest.warns(CurvewiseWarning, match="3 runs are too few"):
        v = decompose_variance(draw(np.random.default_rng(0), 3, 100))
    assert v.warnings


def test_result_can_be_written_down():
    v = decompose_variance(draw(np.random.default_rng(0), 8, 100))
    told = v.to_dict()
    assert told["distribution_interval"]["low"] == v.distribution_interval.low
    assert told["components"]["run"] == v.distribution_variance
    assert "_totals" not in told
    assert list(v.columns()["quantity"])[3] == "distribution_std"
    assert v.run_errors.shape == (8,)
    assert v.example_errors.shape == (100,)


# the rule


def test_excess_kurtosis_is_scipys():
    values = np.random.default_rng(0).gamma(1.0, size=37)
    assert judge_tails(values).excess_kurtosis == pytest.approx(stats.kurtosis(values, bias=False))


@pytest.mark.parametrize("runs", [5, 8, 20, 30, 100, 1000, 20_000])
def test_normal_runs_seldom_look_heavy(runs):
    rng = np.random.default_rng(runs)
    sets = 40 if runs > 5000 else 400
    heavy = np.mean([judge_tails(rng.standard_normal(runs)).heavy for _ in range(sets)])
    assert heavy <= 0.1


def test_failed_runs_ask_for_the_bootstrap():
    rng = np.random.default_rng(3)
    fails = {10: 0, 40: 0}
    for runs in fails:
        true = np.where(np.arange(runs) % 10 == 0, 0.5, 0.1)[:, None]
        errors = rng.random((runs, 300)) < true
        if runs < 30:
            with pytest.warns(CurvewiseWarning, match="no interval is certain to cover"):
                v = decompose_variance(errors)
            assert v.method == "robust"
        else:
            v = decompose_variance(errors)
            assert v.method == "bootstrap"
            assert v.warnings == ()
        plain = f_interval(v._split, 0.95)
        assert v.distribution_interval.low < plain[0] ** 0.5
    with pytest.warns(CurvewiseWarning, match="too narrow"):
        assert decompose_variance(errors, interval="F").method == "F"


def test_the_bootstrap_interval_is_that_of_its_resamples():
    rng = np.random.default_rng(14)
    p = Predictions(rng.random((40, 200)) < rng.normal(0.2, 0.05, (40, 1)), "errors")
    v = decompose_variance(p, interval="bootstrap", resamples=200, rng=3)
    drawn = bootstrap_variances(p, 200, np.random.default_rng(3))
    limits = bca_limits(drawn, v._split, v.run_errors, measure_influence(p).units, 0.95)
    assert tuple(v.distribution_interval)[1:] == pytest.approx(tuple(np.sqrt(limits)))
    assert drawn.min() <= limits[0] < v.distribution_variance < limits[1] <= drawn.max()
    assert v.distribution_interval != v.robust_interval


@pytest.mark.slow
def test_bootstrap_covers_with_failed_runs_where_f_does_not():
    """A small version of benchmarks/coverage.py."""
    rng = np.random.default_rng(5)
    truth = 0.4 * np.sqrt(0.1 * 0.9)
    hits = {"auto": 0, "F": 0}
    for _ in range(120):
        true = np.where(rng.random((40, 1)) < 0.1, 0.5, 0.1)
        errors = rng.random((40, 200)) < true
        v = decompose_variance(errors, resamples=300)
        hits["auto"] += truth in v.distribution_interval
        low, high = f_interval(v._split, 0.95)
        hits["F"] += low <= truth**2 <= high
    assert hits["auto"] / 120 >= 0.88
    assert hits["F"] / 120 < 0.85


@quiet
def test_robust_counts_the_examples_too():
    """As many runs as examples, which the runs shift unequally: F is too sure of itself."""
    rng = np.random.default_rng(6)
    hits = {"robust": 0, "F": 0}
    for _ in range(150):
        p = rng.beta(1.0, 9.0, 150)  # a run multiplies errors, so that hard examples vary more
        errors = rng.random((400, 150)) < p * (1 + 0.3 * rng.standard_normal((400, 1)))
        v = decompose_variance(errors, axes=("runs", "examples"), interval="F")
        hits["robust"] += 0.03 in v.robust_interval
        hits["F"] += 0.03 in v.distribution_interval
    assert hits["robust"] / 150 >= 0.88
    assert hits["F"] / 150 < 0.8


# sizes at which something could overflow or be merged wrongly


@quiet
def test_counts_beyond_a_byte():
    errors = np.random.default_rng(0).random((1500, 40)) < 0.95
    v = decompose_variance(errors, axes=("runs", "examples"), interval="F")
    assert v.example_errors == pytest.approx(errors.mean(axis=0))
    covariance = np.cov(errors.T)
    assert v.distribution_variance == pytest.approx((covariance.sum() - np.trace(covariance)) / (40 * 39))


def test_blocks_of_losses_are_merged():
    rng = np.random.default_rng(1)
    losses = rng.gamma(2.0, size=(300, 2500)) + 0.1 * rng.standard_normal((300, 1))
    assert len(list(Predictions(losses, "losses").blocks())) > 2
    v = decompose_variance(losses, interval="F")
    total = losses.sum(axis=1).var(ddof=1) - losses.var(axis=0, ddof=1).sum()
    assert v.distribution_variance == pytest.approx(total / (2500 * 2499), rel=1e-9)


def test_no_errors_seen_is_not_no_error():
    """A share of 0.5% of examples on which every run errs: 200 examples often hold none."""
    rng = np.random.default_rng(1)
    hits = 0
    for _ in range(300):
        wrong = rng.random(200) < 0.005
        errors = np.tile(wrong, (6, 1))
        hits += 0.005 in decompose_variance(errors, interval="robust").error
    assert hits / 300 > 0.93
    v = decompose_variance(np.zeros((6, 200), dtype=bool))
    assert v.error.low == 0
    assert 0.01 < v.error.high < 0.03


def test_repeats_of_errors_are_errors():
    errors = np.random.default_rng(0).random((6, 50, 3)) < 0.2
    v = decompose_variance(errors, kind="errors", axes=("runs", "examples", "repeats"))
    assert v.unit == "fraction"
    assert "mean error is" in v.summary()


def test_few_sensitive_examples_ask_for_the_robust_interval():
    rng = np.random.default_rng(2)
    hits = {"auto": 0, "F": 0}
    u = np.linspace(-6, 6, 2001)
    density = np.exp(-u * u / 2) / np.exp(-u * u / 2).sum()
    rate = 1 / (1 + np.exp(-3 * u))
    truth = 0.05 * np.sqrt((density * (rate - (density * rate).sum()) ** 2).sum())
    for _ in range(100):
        sensitive = rng.random(500) < 0.05
        shift = 1 / (1 + np.exp(-3 * rng.standard_normal((100, 1))))
        errors = rng.random((100, 500)) < np.where(sensitive, shift, 0.05)
        v = decompose_variance(errors)
        hits["auto"] += truth in v.distribution_interval
        low, high = f_interval(v._split, 0.95)
        hits["F"] += low <= truth**2 <= high
    assert hits["auto"] >= 88
    assert hits["F"] < 80


@pytest.mark.slow
def test_failed_runs_widen_the_other_intervals_too():
    rng = np.random.default_rng(4)
    hits = {"test set": 0, "share": 0}
    spread = 0.4 * np.sqrt(0.09)
    noise = (0.9 * 0.09 + 0.1 * 0.25) / 300
    for _ in range(60):
        errors = rng.random((60, 300)) < np.where(rng.random((60, 1)) < 0.1, 0.5, 0.1)
        v = decompose_variance(errors, resamples=300)
        hits["test set"] += np.sqrt(spread**2 + noise) in v.test_set_interval
        hits["share"] += spread**2 / (spread**2 + noise) in v.share_interval
    assert min(hits.values()) >= 51


@quiet
def test_runs_that_agree_on_all_examples_may_differ_on_others():
    """On a share q of unseen examples they may: Var ≤ q²/4, and n examples would show it unless q is small."""
    v = decompose_variance(np.tile(np.arange(200) % 10 == 0, (12, 1)), kind="errors")
    assert v.distribution_std == 0
    assert v.distribution_interval.high == pytest.approx((1 - 0.025 ** (1 / 200)) / 2)


def test_a_tie_of_two_runs_is_not_certainty():
    errors = np.zeros((2, 100), dtype=bool)
    errors[0, :5] = errors[1, 5:10] = True
    with pytest.warns(CurvewiseWarning, match="too few"):
        v = decompose_variance(errors)
    assert v.test_set_std == 0
    assert v.distribution_interval.high > 0.02
    assert "have the same error" in v.summary()


@quiet
@pytest.mark.parametrize("runs", [2, 3])
def test_mean_error_of_few_runs_covers(runs):
    rng = np.random.default_rng(runs)
    hits = 0
    for _ in range(400):
        p = rng.beta(2, 8, 400)
        errors = rng.random((runs, 400)) < np.clip(p + 0.03 * rng.standard_normal((runs, 1)), 0, 1)
        hits += 0.2 in decompose_variance(errors, interval="F").error
    assert hits / 400 > 0.925


@pytest.mark.parametrize(("runs", "n", "wrong"), [(30, 719, 64), (30, 1000, 64), (30, 700, 70)])
@pytest.mark.filterwarnings("ignore::curvewise.errors.CurvewiseWarning")
def test_runs_that_agree_do_not_differ_by_rounding(runs, n, wrong):
    errors = np.zeros((runs, n), dtype=np.uint8)
    errors[:, :wrong] = 1
    result = decompose_variance(Predictions(errors, "errors"))
    assert result.test_set_std == 0
    assert result.distribution_interval.high < 0.01
    assert "do not differ at all" in result.summary()


@quiet
def test_limits_of_two_runs_are_possible_standard_deviations():
    """Two runs that differ a little: F with one degree of freedom goes up to 1872%."""
    rng = np.random.default_rng(40)
    errors = rng.random((2, 500)) < np.array([[0.2], [0.7]])
    v = decompose_variance(errors, kind="errors")
    for interval in (v.distribution_interval, v.robust_interval, v.test_set_interval):
        assert interval.low <= interval.estimate <= interval.high == 0.5
    losses = decompose_variance(100.0 * errors, kind="losses")
    assert losses.distribution_interval.high > 500


@quiet
def test_a_share_is_never_printed_outside_its_interval():
    rng = np.random.default_rng(41)
    for _ in range(40):
        v = decompose_variance(rng.random((6, 80)) < 0.3, kind="errors")
        assert 0 <= v.share_interval.low <= v.share_interval.high <= 1
        assert v.distribution_share == v.share_interval.estimate
        assert not v.share_interval.outside


def test_repeats_of_one_run_are_decomposed_as_runs():
    rng = np.random.default_rng(42)
    errors = rng.random((1, 300, 12)) < rng.random(300)[None, :, None]
    with pytest.warns(CurvewiseWarning, match="its 12 repeats are taken as the runs"):
        v = decompose_variance(errors, kind="errors", axes=("runs", "examples", "repeats"))
    runs = decompose_variance(errors[0].T, kind="errors")
    assert (v.runs, v.examples) == (12, 300)
    assert tuple(v.error) == tuple(runs.error)
    assert v.independence_pvalue == runs.independence_pvalue


def test_a_kind_that_was_assumed_is_said():
    errors = np.random.default_rng(43).random((20, 300)) < 0.4
    assumed, told = decompose_variance(errors), decompose_variance(~errors, kind="correct")
    assert tuple(assumed.distribution_interval) == tuple(told.distribution_interval)
    assert "(1 was read as an error" in assumed.summary()
    assert "1 was read" not in told.summary()
    scores = decompose_variance(np.random.default_rng(44).random((9, 40)) * 10, kind="scores")
    assert "the mean score is 4.87 [4.52, 5.21]" in scores.summary()


@pytest.mark.parametrize("resamples", [0, -1, 1, 99.5])
def test_a_bootstrap_needs_some_resamples(resamples):
    errors = np.random.default_rng(0).random((40, 30)) < 0.3
    with pytest.raises(InputError, match="must be a whole number, 50 or more"):
        decompose_variance(errors, kind="errors", axes=("runs", "examples"), interval="bootstrap", resamples=resamples)


def test_the_sentence_tests_at_its_level():
    rng = np.random.default_rng(0)
    errors = rng.random((12, 400)) < rng.normal(0.2, 0.03, (12, 1))
    usual, strict = (decompose_variance(errors, kind="errors", level=level) for level in (0.95, 0.9999))
    assert 0.0001 < usual.independence_pvalue < 0.05
    assert "The errors of runs vary significantly" in usual.summary()
    assert "The errors of runs do not vary significantly" in strict.summary()


@quiet
@pytest.mark.parametrize("failed", [0.35, 0.9])
def test_the_robust_interval_is_that_of_the_documentation(failed):
    """By scipy: fewer degrees of freedom for heavy tails, which also reach further down."""
    rng = np.random.default_rng(4)
    rates = np.append(rng.normal(0.2, 0.03, 8), failed)
    errors = rng.random((9, 500)) < rates[:, None]
    v = decompose_variance(errors, kind="errors")
    runs, n = errors.shape
    seen, independent = errors.mean(axis=1).var(ddof=1), errors.var(axis=0, ddof=1).sum() / n**2
    noise = (independent - seen / n) * n / (n - 1)
    kurtosis = stats.kurtosis(errors.mean(axis=1), bias=False)
    assert kurtosis > 1
    degrees = 2 / (kurtosis / runs + 2 / (runs - 1))
    low, high = stats.f.ppf([0.025, 0.975], degrees, (runs - 1) * (n - 1))
    below = min(seen / high, seen * max(0.0, 1 - stats.norm.ppf(0.975) / np.sqrt(2 * degrees)) ** 2)
    expected = np.sqrt(np.maximum(0.0, [below - noise, seen / low - noise]))
    assert tuple(v.robust_interval)[1:] == pytest.approx(np.minimum(expected, 0.5))
    assert v.method == "robust"
