"""Pictures of several trainings or test sets: comparisons, sweeps, sources, plans."""

import warnings
from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from curvewise.drawing.picture import draw, picture_of
from curvewise.errors import CurvewiseWarning, InputError
from curvewise.types import Interval
from curvewise.variance import compare_runs, compare_trainings, decompose_variance
from curvewise.variance.luck import compare_test_sets
from curvewise.variance.plan import check_stopping, plan_runs, plan_stopping
from curvewise.variance.plot.sources import plot_lengths
from curvewise.variance.sources import measure_sources, measure_twins
from curvewise.variance.variances import compare_variances, measure_sweep

HOSTILE = "$x$_\n" + "long " * 40


def of(artists, gid):
    return [a for a in artists if a.get_gid() == gid]


def caption(ax):
    (note,) = of(ax.texts, "curvewise-caption")
    return " ".join(note.get_text().split())


def segments(ax, gid="curvewise-interval"):
    found = [c for c in ax.collections if isinstance(c, LineCollection) and c.get_gid() == gid]
    return [s for c in found for s in c.get_segments()]


def quietly(measure, *given, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CurvewiseWarning)
        return measure(*given, **options)


def runs(level=0.0, spread=0.0, count=20, seed=0, examples=300):
    rng = np.random.default_rng(seed)
    hard = np.random.default_rng(9).random(examples) ** 3 + level
    return rng.random((count, examples)) < hard + spread * rng.standard_normal((count, 1))


@pytest.fixture(scope="module")
def compared():
    return quietly(compare_runs, runs(), runs(0.03, seed=1), margin=0.02, names=("old", HOSTILE), kind="errors")


@pytest.fixture(scope="module")
def sweep():
    sets = {0.1 * 2**i: runs(0.01 * abs(i - 2), 0.06 * (i == 4), seed=i) for i in range(5)}
    return quietly(measure_sweep, sets, kind="errors")


@pytest.fixture(scope="module")
def stopping():
    return plan_stopping([5, 10, 20], draws=2000)


def test_the_difference_stands_on_the_mean_of_b(compared):
    ax = draw(compared)
    a, b = of(ax.collections, "curvewise-runs")
    np.testing.assert_allclose(a.get_offsets()[:, 1], 100 * compared._parts.a)
    base = 100 * compared._parts.b.mean()
    here, _ = of(ax.lines, "curvewise-difference")
    assert here.get_ydata()[0] == pytest.approx(base + 100 * compared.difference.estimate)
    ends = [s[:, 1] for s in segments(ax)]
    wanted = [tuple(compared.test_set_difference)[1:], tuple(compared.difference)[1:]]
    np.testing.assert_allclose(ends, base + 100 * np.array(wanted))
    (margin,) = of(ax.collections, "curvewise-margin")
    box = margin.get_paths()[0].get_extents()
    assert (box.y0, box.y1) == pytest.approx((base - 2.0, base + 2.0))
    ticks = [t.get_text() for t in ax.get_xticklabels()]
    assert ticks[0] == "old"
    assert ticks[1].startswith(r"\$x\$")
    assert len(ticks[1]) < 30
    assert [b.get_offsets().shape[0], len(ax.figure.axes)] == [20, 1]


def test_paired_runs_are_joined_and_scores_have_one_interval():
    a, b = np.random.default_rng(0).normal(3.0, 0.1, (2, 8))
    ax = draw(quietly(compare_runs, a, b, unit="loss", paired=True))
    assert len(of(ax.lines, "curvewise-pair")) == 8
    assert len(of(ax.lines, "curvewise-difference")) == 1
    assert ax.get_ylabel() == "test loss of a run"


def test_the_clearest_differences_of_many_trainings():
    trainings = {f"t{i}": runs(0.01 * i, seed=i) for i in range(9)}
    c = quietly(compare_trainings, trainings, kind="errors")
    ax = draw(c)
    assert len(ax.get_yticklabels()) == 30
    assert "The 30 clearest of 36 differences" in caption(ax)
    shown, hidden = (p.get_xdata() for p in of(ax.lines, "curvewise-difference"))
    found = [100 * d.estimate for d, v in zip(c.differences, c.verdicts, strict=True) if v != "undecided"]
    np.testing.assert_allclose(np.sort(shown), np.sort(found))
    assert len(shown) + len(hidden) == 30
    ends = {round(s[0][1]): (s[0][0], s[1][0]) for s in segments(ax)}
    for points in of(ax.lines, "curvewise-difference"):
        for x, row in zip(points.get_xdata(), points.get_ydata(), strict=True):
            assert x == pytest.approx(np.mean(ends[row]), abs=0.3 * np.ptp(ends[row]))
    small = draw(c, Figure(figsize=(3.3, 2.6)).add_subplot())
    (said,) = of(small.texts, "curvewise-few")
    assert said.get_text() == f"the {len(small.get_yticklabels())} clearest of 36"
    base = quietly(compare_trainings, trainings, baseline="t0", kind="errors")
    ax = draw(base, most=3)
    assert len(ax.get_yticklabels()) == 3
    assert ax.get_xlabel() == "error minus that of t0 (%)"


def test_ratios_of_deviations_may_be_open():
    v = quietly(compare_variances, runs(spread=0.1), runs(seed=1), names=("loud", "calm"))
    ax = draw(replace(v, distribution_ratio=Interval(np.inf, 1.2, np.inf)))
    assert ax.get_xscale() == "log"
    (point,) = of(ax.lines, "curvewise-difference")
    assert point.get_xdata()[0] == pytest.approx(v.test_set_ratio.estimate)
    assert [c.get_marker() for c in of(ax.lines, "curvewise-cut")] == [">"]
    draw(replace(v, distribution_ratio=Interval(np.nan, 0.0, np.inf))).figure.canvas.draw()


def test_the_sweep_marks_the_best_and_the_largest_without_excess(sweep):
    ax = draw(sweep)
    seen, alone, true = of(ax.lines, "curvewise-line")
    np.testing.assert_allclose(seen.get_xdata(), sweep.values)
    for line, std in (
        (seen, [i.estimate for i in sweep.test_set_std]),
        (alone, sweep.independent_std),
        (true, [i.estimate for i in sweep.distribution_std]),
    ):
        np.testing.assert_allclose(line.get_ydata(), 100 * np.array(std))
    marks = {line.get_xdata()[0] for line in of(ax.lines, "curvewise-mark")}
    assert marks == {sweep.best, sweep.largest_without_excess}
    assert len(of(ax.collections, "curvewise-excess")) == 1
    assert ax.get_xscale() == "log"
    assert ax.get_xlabel() == "hyperparameter"
    (mean,) = of(draw(sweep, what="error").lines, "curvewise-line")
    np.testing.assert_allclose(mean.get_ydata(), [100 * i.estimate for i in sweep.error])


def test_deviations_that_span_decades_get_a_log_scale(sweep):
    wild = [Interval(40 * i.estimate, i.low, 40 * i.high) for i in sweep.test_set_std]
    ax = draw(replace(sweep, test_set_std=(*sweep.test_set_std[:4], wild[4]), name=HOSTILE))
    assert ax.get_yscale() == "log"
    ax.figure.canvas.draw()
    few = quietly(measure_sweep, {4: runs(), 8: runs(seed=1)}, kind="errors")
    assert draw(few).get_xscale() == "linear"


def test_sources_stand_beside_the_baseline():
    s = quietly(measure_sources, {"all": runs(spread=0.1), "init": runs(0, 0.05), "order": runs()})
    ax = draw(s)
    assert [t.get_text() for t in ax.get_yticklabels()] == ["all", "init", "order"]
    seen, true = of(ax.lines, "curvewise-line")
    wanted = [s.baseline_test_set_std, *s.test_set_std]
    np.testing.assert_allclose(seen.get_xdata(), [100 * i.estimate for i in wanted])
    levels = [line.get_xdata()[0] for line in of(ax.lines, "curvewise-level")]
    assert levels[1] == pytest.approx(100 * s.baseline_distribution_std.estimate)
    assert len(segments(ax)) == 6
    assert len(true.get_xdata()) == 3


def test_twins_against_when_they_were_poked():
    rng = np.random.default_rng(0)
    base = rng.integers(0, 5, (6, 200))
    poked = {when: np.where(rng.random((6, 200)) < 0.1 / when, 0, base) for when in (4, 1, 2)}
    t = measure_twins(base, poked, base[0])
    ax = draw(t)
    (line,) = of(ax.lines, "curvewise-line")
    np.testing.assert_allclose(line.get_xdata(), [1, 2, 4])
    by_when = dict(zip(t.when, t.disagreement, strict=True))
    np.testing.assert_allclose(line.get_ydata(), [100 * by_when[w].estimate for w in (1, 2, 4)])
    (level,) = of(ax.lines, "curvewise-level")
    assert level.get_ydata()[0] == pytest.approx(100 * t.seeds.estimate)
    words = draw(replace(t, when=("a weight", HOSTILE, "the order")))
    assert words.get_xticklabels()[0].get_text() == "a weight"


def test_test_sets_are_a_matrix_or_a_pair():
    sets = {"a": runs(0, 0.1), "b": runs(0, 0.1, examples=200), HOSTILE: runs(seed=2)}
    c = quietly(compare_test_sets, sets)
    ax = draw(c)
    (image,) = of(ax.images, "curvewise-cell")
    r = c.pairs[0].correlation.estimate
    values = np.asarray(image.get_array())
    assert values[0, 1] == values[1, 0] == pytest.approx(r)
    numbers = [t.get_text() for t in of(ax.texts, "curvewise-cell")]
    assert numbers[1].rstrip("*") == f"{r:.2f}".replace("-", "−")
    draw(c, true=True).figure.canvas.draw()
    one = draw(c, pair=("b", "a"))
    (dots,) = of(one.collections, "curvewise-runs")
    np.testing.assert_allclose(dots.get_offsets()[:, 0], 100 * c.run_errors["b"])
    assert one.get_xlabel() == "error on b (%)"
    with pytest.raises(InputError, match=r"pair=\('a', 'z'\): is not a pair of test sets"):
        draw(c, pair=("a", "z"))


def test_the_plan_shows_power_by_runs():
    p = plan_runs(difference=0.002, test_set_std=0.002, target="test set")
    ax = draw(p)
    double, asked, half = of(ax.lines, "curvewise-power")
    n = int(asked.get_xdata()[10])
    assert asked.get_ydata()[10] == pytest.approx(100 * p.power_at(n))
    assert double.get_ydata()[10] > asked.get_ydata()[10] > half.get_ydata()[10]
    assert f"{p.runs} runs" in [t.get_text() for t in of(ax.texts, "curvewise-mark")]
    pilot = quietly(decompose_variance, runs())
    never = draw(quietly(plan_runs, difference=1e-4, pilot=pilot, runs_max=50))
    assert "Not even 50 runs show" in caption(never)
    assert "std 0.5%" in [
        t.get_text() for t in draw(plan_runs(distribution_std=0.005, pilot=pilot)).get_legend().get_texts()
    ]


def test_stopping_shows_what_to_expect_and_what_was_decided(stopping):
    ax = draw(stopping)
    plan, fixed = of(ax.lines, "curvewise-power")
    np.testing.assert_allclose(plan.get_ydata(), 100 * np.array(stopping.chance_found))
    np.testing.assert_allclose(fixed.get_ydata(), 100 * np.array(stopping.fixed_chance))
    spent = of(draw(stopping, what="runs").lines, "curvewise-power")[0]
    np.testing.assert_allclose(spent.get_ydata(), stopping.expected_runs)
    rng = np.random.default_rng(0)
    a, b = rng.normal(0.1, 0.002, (2, 10))
    going = draw(quietly(check_stopping, a, b, stopping, margin=0.001, higher_is_better=False))
    assert [line.get_xdata()[0] for line in of(going.lines, "curvewise-ahead")] == [20]
    assert "go on" in [t.get_text() for t in going.get_legend().get_texts()]
    over = quietly(check_stopping, a, b + 0.05, stopping, higher_is_better=False)
    ax = draw(over)
    stop, later = of(ax.lines, "curvewise-path")
    assert [list(line.get_xdata()) for line in (stop, later)] == [[5], [10]]
    assert of(ax.lines, "curvewise-ahead") == []
    assert stop.get_ydata()[0] == pytest.approx(100 * over.differences[0].estimate)


@pytest.mark.parametrize("size", [(6.4, 4.8), (3.3, 2.6)])
def test_pictures_use_the_axes_given_and_leave_settings_alone(compared, sweep, stopping, size):
    before = dict(mpl.rcParams)
    for result in (compared, sweep, stopping, quietly(decompose_variance, runs())):
        figure = Figure(figsize=size, layout="constrained")
        ax = figure.add_subplot()
        assert result.plot(ax=ax) is ax
        figure.canvas.draw()
        assert len(figure.axes) == 1
    assert dict(mpl.rcParams) == before


def test_every_result_of_the_lens_has_a_picture():
    import importlib
    import pkgutil

    import curvewise.variance
    from curvewise.types import Result

    for module in pkgutil.iter_modules(curvewise.variance.__path__, "curvewise.variance."):
        importlib.import_module(module.name)
    kinds = [k for k in Result.__subclasses__() if k.__module__.startswith("curvewise.variance.")]
    assert len(kinds) >= 18
    assert [k.__name__ for k in kinds if picture_of(k) is None] == []


def test_runs_of_every_value_in_rows(sweep):
    """Histograms hold every run once, around the mean of their row; the curve has the area of its histogram."""
    ax = draw(sweep, what="runs")
    boxes = of(ax.patches, "curvewise-bars")
    lines = of(ax.lines, "curvewise-line")
    assert len(boxes) == len(lines) == len(sweep.values)
    for row, (box, line, value) in enumerate(zip(boxes, lines, sweep.values, strict=True)):
        bottom = len(sweep.values) - 1 - row
        heights, edges, _ = box.get_data()
        errors = 100 * sweep[value].run_errors
        counts = np.histogram(errors - errors.mean(), edges)[0]
        assert counts.sum() == len(errors)
        scale = (heights - bottom).max() / counts.max()
        np.testing.assert_allclose(heights - bottom, counts * scale, atol=1e-9)
        x, y = line.get_xdata(), np.nan_to_num(line.get_ydata() - bottom)
        assert heights.max() - bottom <= 0.9
        assert y.max() <= 0.9
        if not np.isnan(line.get_ydata()).any():  # not cut off
            area = y.sum() * (x[1] - x[0])
            assert area == pytest.approx(((heights - bottom) * np.diff(edges)).sum(), rel=0.02)
    assert "runs in each row" in caption(ax)
    assert ax.get_yticklabels()[0].get_text().startswith("0.")


def test_sources_and_twins_along_lengths():
    sources = {
        e: quietly(measure_sources, {"all": runs(spread=0.1), "init": runs(0, 0.05), "order": runs(seed=e)})
        for e in (16, 1, 4)
    }
    ax = plot_lengths(sources)
    every, first, _ = of(ax.lines, "curvewise-line")
    np.testing.assert_allclose(every.get_xdata(), [1, 4, 16])
    np.testing.assert_allclose(every.get_ydata(), [100 * sources[e].baseline_test_set_std.estimate for e in (1, 4, 16)])
    np.testing.assert_allclose(first.get_ydata(), [100 * sources[e].test_set_std[0].estimate for e in (1, 4, 16)])
    assert ax.get_xscale() == "log"
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["all", "init", "order"]
    rng = np.random.default_rng(0)
    base = rng.integers(0, 5, (6, 200))
    twins = {e: measure_twins(base, {0: np.where(rng.random((6, 200)) < e, 0, base)}, base[0]) for e in (0.1, 0.2)}
    seeds, poked = of(plot_lengths(twins).lines, "curvewise-line")
    np.testing.assert_allclose(seeds.get_ydata(), [100 * t.seeds.estimate for t in twins.values()])
    np.testing.assert_allclose(poked.get_ydata(), [100 * t.disagreement[0].estimate for t in twins.values()])
    with pytest.raises(InputError, match="must map lengths"):
        plot_lengths({})


def test_scores_are_drawn_with_their_own_sign():
    rng = np.random.default_rng(3)
    low, high = 30 + rng.normal(0, 0.1, (6, 80)), 31 + rng.normal(0, 0.1, (6, 80))
    ax = compare_runs(low, high, kind="scores", names=("low", "high")).plot()
    assert ax.get_ylabel() == "test score of a run"
    assert ax.get_ylim()[0] > 29
    assert "low minus high, 6 and 6 runs: -" in caption(ax).replace("\n", " ")


def test_the_scale_of_errors_ends_at_zero():
    rng = np.random.default_rng(0)
    a, b = ((rng.random((3, 60)) < chance).astype(float) for chance in (0.02, 0.05))
    ax = draw(quietly(compare_runs, a, b, kind="errors"))
    assert ax.get_ylim()[0] < 0  # the interval of the difference
    assert min(ax.get_yticks()) >= 0
    assert ax.spines["left"].get_bounds()[0] == 0
