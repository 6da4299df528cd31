"""Pictures of one training: histograms, luck, calibration, agreement."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from curvewise.drawing.marks import digits
from curvewise.drawing.picture import draw
from curvewise.errors import CurvewiseWarning, InputError
from curvewise.types import Interval
from curvewise.variance.accuracy import measure_accuracy_distribution, poisson_binomial_pmf, shrunk_rates
from curvewise.variance.calibration import measure_bipartitions, measure_calibration
from curvewise.variance.decompose import decompose_variance
from curvewise.variance.luck import measure_seed_luck
from curvewise.variance.pairs import measure_dependent_pairs
from curvewise.variance.plot.runs import DrawnUnit
from curvewise.variance.votes import measure_disagreement, measure_ensemble


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


@pytest.fixture(scope="module")
def errors():
    rng = np.random.default_rng(0)
    return rng.random((60, 400)) < rng.random(400) ** 4


@pytest.fixture(scope="module")
def votes():
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 4, 500)
    slips = rng.random((30, 500)) < rng.random(500) ** 3
    return np.where(slips, rng.integers(0, 4, (30, 500)), labels), labels


def test_runs_stand_beside_exact_independent_errors(errors):
    v = quietly(decompose_variance, errors)
    ax = draw(v)
    bars = of(ax.patches, "curvewise-histogram")
    assert sum(b.get_height() for b in bars) == v.runs
    width = bars[0].get_width()
    assert width * 4 == pytest.approx(round(width * 4)), "whole numbers of errors: 0.25% each"
    (line,) = of(ax.lines, "curvewise-predicted")
    pmf = poisson_binomial_pmf(shrunk_rates(v.example_errors, v.runs))
    wrong = np.rint(np.asarray(line.get_xdata()) * 4).astype(int)
    np.testing.assert_allclose(line.get_ydata(), pmf[wrong] * v.runs * width * 4)
    assert ax.get_xlabel() == "test error of a run (%)"
    assert ax.get_ylabel() == "runs (of 60)"
    assert "cut off" not in caption(ax)


def test_the_three_standard_deviations_are_bars_about_the_mean(errors):
    v = quietly(decompose_variance, errors)
    ax = draw(v)
    ends = sorted({float(np.ptp(b.get_xdata())) / 200 for b in of(ax.lines, "curvewise-spread")})
    wanted = [
        v.test_set_std,
        v.test_set_interval.high,
        v.independent_std,
        v.distribution_std,
        v.distribution_interval.high,
    ]
    np.testing.assert_allclose(ends, sorted(set(wanted)), atol=1e-12)
    texts = [t.get_text() for t in of(ax.texts, "curvewise-spread")]
    assert texts[:2] == ["std on this test set", DrawnUnit("fraction").range(v.test_set_interval)]


def test_a_curve_far_above_the_runs_leaves_the_histogram_readable():
    """All variance is real: independent errors would crowd into a small part of a bin."""
    rng = np.random.default_rng(0)
    wrong = rng.uniform(size=(200, 1000)) < rng.uniform(0.2, 0.8, (200, 1))
    for measure in (decompose_variance, measure_accuracy_distribution):
        ax = draw(quietly(measure, wrong, kind="errors"))
        highest = max(b.get_height() for b in of(ax.patches, "curvewise-histogram"))
        lines = of(ax.lines, "curvewise-predicted")
        assert max(np.max(line.get_ydata()) for line in lines) > 3 * highest
        assert highest > 0.35 * ax.get_ylim()[1]
        assert "cut off" in caption(ax)
        ax.figure.draw_without_rendering()
        for line in lines:
            top = ax.transAxes.inverted().transform(line.get_clip_box().corners())[:, 1].max()
            assert top < 0.96, "what stands on top is not crossed"


def test_losses_have_a_normal_curve():
    losses = np.random.default_rng(0).gamma(2.0, 0.2, (40, 300))
    v = quietly(decompose_variance, losses, kind="losses")
    ax = draw(v)
    (line,) = of(ax.lines, "curvewise-predicted")
    x, y = (np.asarray(d) for d in (line.get_xdata(), line.get_ydata()))
    width = of(ax.patches, "curvewise-histogram")[0].get_width()
    assert np.sum(y[1:] * np.diff(x)) == pytest.approx(v.runs * width, rel=0.01)
    assert x[np.argmax(y)] == pytest.approx(v.run_errors.mean())
    assert ax.get_xlabel() == "test loss of a run"
    assert ax.get_legend().get_texts()[1].get_text() == "independent errors (normal)"


def test_examples_are_counted_on_a_log_scale(errors):
    v = quietly(decompose_variance, errors)
    ax = draw(v, what="examples")
    assert ax.get_yscale() == "log"
    assert sum(b.get_height() for b in of(ax.patches, "curvewise-histogram")) == 400
    assert f"{int((v.example_errors == 0).sum())} are right in all 60 runs" in caption(ax)
    with pytest.raises(InputError, match="what='seeds' is not known: use one of 'runs'"):
        draw(v, what="seeds")


def test_runs_that_do_not_differ_can_be_drawn():
    same = np.tile(np.arange(50) % 5 == 0, (6, 1))
    for result in (
        quietly(decompose_variance, same),
        quietly(measure_accuracy_distribution, same, kind="errors"),
        quietly(measure_seed_luck, same, kind="errors"),
    ):
        draw(result).figure.canvas.draw()


def test_accuracy_beside_independent_errors_and_coins(errors):
    a = quietly(measure_accuracy_distribution, errors, kind="errors")
    ax = draw(a)
    independent, binomial = of(ax.lines, "curvewise-predicted")
    assert binomial.get_linestyle() == "--"
    for line, pmf in ((independent, a.independent_pmf), (binomial, a.binomial_pmf)):
        wrong = np.rint(400 - 4 * np.asarray(line.get_xdata())).astype(int)
        heights = np.asarray(line.get_ydata())
        np.testing.assert_allclose(heights / heights[0], pmf[wrong - a.errors[0]] / pmf[wrong[0] - a.errors[0]])
    texts = [t.get_text() for t in ax.get_legend().get_texts()]
    assert texts[2] == f"binomial, std {DrawnUnit('fraction').text(a.binomial_std)}"
    assert len(of(draw(a, binomial=False).lines, "curvewise-predicted")) == 1


def test_luck_of_equal_runs_is_unknown_and_no_nan():
    text = caption(draw(quietly(measure_seed_luck, np.tile([0.0, 1.0], (6, 20)), top=0.25, kind="errors")))
    assert "where unknown would follow" in text
    assert "nan" not in text


def test_there_is_no_room_for_errors_below_0_or_above_100():
    few = (np.random.default_rng(0).random((2, 200)) < 0.3).astype(float)
    left, right = draw(quietly(decompose_variance, few, kind="errors")).get_xlim()
    assert 0 <= left < right <= 100


def test_the_lucky_runs_are_marked_with_what_they_gain(errors):
    luck = quietly(measure_seed_luck, errors, top=0.2, kind="errors")
    ax = draw(luck)
    (rest,) = of(ax.collections, "curvewise-runs")
    (best,) = of(ax.collections, "curvewise-picked")
    assert len(rest.get_offsets()) + len(best.get_offsets()) == 60
    assert best.get_offsets()[:, 0].max() < rest.get_offsets()[:, 0].min()
    marks = of(ax.lines, "curvewise-mark")
    assert marks[3].get_ydata()[0] - marks[2].get_ydata()[0] == pytest.approx(-100 * luck.gain_second.estimate)
    assert "60 runs; correlation" in caption(ax)


def test_reliability_is_drawn_bin_by_bin(votes):
    c = quietly(measure_calibration, *votes)
    ax = draw(c)
    (bins,) = of(ax.lines, "curvewise-bins")
    table = c.reliability_columns()
    known = table["cells"] > 0
    np.testing.assert_allclose(bins.get_ydata(), 100 * table["frequency"][known])
    assert len(segments(ax)) == known.sum()
    assert len(of(ax.lines, "curvewise-diagonal")) == 1


def test_predicted_deviations_stand_beside_the_measured_one(votes):
    c = quietly(measure_calibration, *votes)
    ax = draw(c, what="std")
    points = np.concatenate([p.get_xdata() for p in of(ax.lines, "curvewise-points")])
    wanted = [c.measured.estimate, c.independent_std, *(i.estimate for i in c.total.values())]
    np.testing.assert_allclose(points, 100 * np.array(wanted))
    classes = draw(c, what="classes")
    assert [t.get_text() for t in classes.get_yticklabels()] == ["0", "1", "2", "3"]
    assert sum(len(p.get_xdata()) for p in of(classes.lines, "curvewise-points")) == 4


def test_bipartitions_are_predicted_against_measured(votes):
    b = quietly(measure_bipartitions, *votes)
    ax = draw(b)
    binomial, calibrated = of(ax.collections, "curvewise-tasks")
    np.testing.assert_allclose(calibrated.get_offsets(), 100 * np.stack([b.calibrated, b.measured], axis=1))
    np.testing.assert_allclose(binomial.get_offsets()[:, 0], 100 * b.binomial)
    texts = [t.get_text() for t in ax.get_legend().get_texts()]
    assert texts[0] == f"calibrated, err/2n: R² = {b.r_squared.estimate:.2f}"
    assert ax.get_xlim() == ax.get_ylim()


def test_disagreement_of_several_trainings_shares_the_axes(votes):
    d = measure_disagreement(*votes)
    ax = draw(d, name="$one$")
    assert draw(d, ax, name="two") is ax
    points = of(ax.lines, "curvewise-point")
    assert len({p.get_color() for p in points}) == 2
    assert points[0].get_xdata()[0] == pytest.approx(100 * d.error.estimate)
    assert points[0].get_ydata()[0] == pytest.approx(100 * d.disagreement.estimate)
    assert len(of(ax.lines, "curvewise-diagonal")) == 1
    assert of(ax.texts, "curvewise-mark")[0].get_text() == r"\$one\$"
    like = draw(d, what="examples")
    (bins,) = of(like.lines, "curvewise-bins")
    assert np.all(np.diff(np.asarray(bins.get_ydata())) > 0)


def test_ensembles_by_size(votes):
    e = measure_ensemble(*votes)
    ax = draw(e)
    (line,) = of(ax.lines, "curvewise-line")
    np.testing.assert_allclose(line.get_xdata(), e.sizes)
    np.testing.assert_allclose(line.get_ydata(), [100 * i.estimate for i in e.errors])
    assert ax.get_xscale() == "log"


def test_dependent_pairs_off_the_diagonal():
    rng = np.random.default_rng(0)
    errors = rng.random((400, 30)) < 0.3
    errors[:, 1] = np.where(rng.random(400) < 0.8, errors[:, 0], errors[:, 1])
    p = quietly(measure_dependent_pairs, errors, axes=("runs", "examples"))
    ax = draw(p)
    (dots,) = of(ax.collections, "curvewise-pairs")
    wanted = 100 * np.stack([p.expected_correct, p.both_correct], axis=1)
    np.testing.assert_allclose(dots.get_offsets(), wanted)
    assert len(segments(ax)) == len(p.first)
    assert "0, 1" in [t.get_text() for t in of(ax.texts, "curvewise-label")]
    none = {k: getattr(p, k)[:0] for k in ("expected_correct", "both_correct", "first")}
    empty = draw(replace(p, dependent=0, differences=(), **none))
    (said,) = of(empty.texts, "curvewise-label")
    assert said.get_text() == "no pair is shown to be dependent"


def test_narrow_axes_say_less_and_smaller(errors):
    a = quietly(measure_accuracy_distribution, errors, kind="errors")
    small = draw(a, Figure(figsize=(3.3, 2.6), layout="constrained").add_subplot())
    assert of(small.texts, "curvewise-caption") == []
    assert {t.get_fontsize() for t in small.get_legend().get_texts()} == {7.0}
    loose = draw(a, Figure(figsize=(6.4, 4.8)).add_subplot())
    assert of(loose.texts, "curvewise-caption") == [], "it would be cut off"
    roomy = draw(a, Figure(figsize=(6.4, 4.8), layout="constrained").add_subplot())
    assert of(roomy.texts, "curvewise-caption") != []
    asked = draw(a, Figure(figsize=(3.3, 2.6)).add_subplot(), caption=True)
    assert of(asked.texts, "curvewise-caption") != []


def test_units_and_digits():
    assert digits(0.2) == "0.200"
    assert digits(np.inf) == "∞"
    assert DrawnUnit("fraction").range(Interval(0.002, 0.0, 0.01)) == "0.20% [0.00, 1.0]"
    assert DrawnUnit("percent").text(2.0) == "2%"
    assert DrawnUnit("loss").label("test error") == "test loss"
    assert DrawnUnit("score").label("test error of a run") == "test score of a run"


def test_long_captions_are_broken_after_sentences_not_cut(votes):
    c = quietly(measure_calibration, *votes)
    ax = draw(replace(c, warnings=("w " * 60 + "end.",)))
    assert "end." in caption(ax)
    b = quietly(measure_bipartitions, *votes)
    assert f"differ on {b.rejected} tasks." in caption(draw(b))
