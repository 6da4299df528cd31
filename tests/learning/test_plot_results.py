"""Pictures of comparisons, rankings, plans and checks."""

import subprocess
import sys
from dataclasses import dataclass, replace

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from curvewise.drawing.picture import draw
from curvewise.drawing.style import PALETTE
from curvewise.errors import InputError
from curvewise.learning import (
    check_variance_model,
    compare_learning_curves,
    fit_learning_curve,
    leave_one_size_out,
    measure_stability,
    plan_sizes,
    rank_learners,
)
from curvewise.text import format_chance
from curvewise.types import Interval


@pytest.fixture
def pair(fit):
    """Two curves that cross near n = 170; the first is better at 400."""
    return fit("steep", alpha=5.0, eta=400.0), fit("flat", alpha=18.0, eta=230.0, seed=1)


def of(artists, gid):
    return [a for a in artists if a.get_gid() == gid]


def caption(ax):
    (note,) = of(ax.texts, "curvewise-caption")
    return " ".join(note.get_text().split())


def test_the_comparison_marks_N_the_crossing_and_the_worth_in_data(pair):
    result = compare_learning_curves(*pair, at=400)
    ax = draw(result)
    assert ax.get_xscale() == "log"
    (at,) = of(ax.lines, "curvewise-at")
    assert at.get_xdata()[0] == 400
    (cross,) = of(ax.lines, "curvewise-crossing")
    assert cross.get_xdata()[0] == pytest.approx(result.crossing.estimate)
    (strip,) = of(ax.patches, "curvewise-crossing")
    box = strip.get_path().get_extents(strip.get_patch_transform())
    assert (box.x0, box.x1) == pytest.approx(tuple(result.crossing)[1:])
    assert len(of(ax.collections, "curvewise-band")) == 2
    (label,) = of(ax.texts, "curvewise-crossing")
    assert label.get_text() == f"curves cross (n = {str(result.crossing).split(' [')[0]})", "the digits of the sentence"


def test_the_label_of_a_crossing_does_not_lie_across_the_curves(pair):
    result = compare_learning_curves(*pair, at=400)
    ax = draw(result)
    (label,) = of(ax.texts, "curvewise-crossing")
    ax.figure.canvas.draw()
    box = label.get_window_extent()
    for line in of(ax.lines, "curvewise-named-curve"):
        assert not line.get_path().transformed(line.get_transform()).intersects_bbox(box, filled=False)


def test_texts_among_the_curves_have_a_halo(pair):
    ax = draw(compare_learning_curves(*pair, at=400))
    within = ("curvewise-at", "curvewise-limit", "curvewise-crossing", "curvewise-equivalence")
    texts = [t for gid in within for t in of(ax.texts, gid) if t.get_text()]
    assert len(texts) == 4
    for text in texts:
        (halo,) = text.get_path_effects()
        assert halo._gc == {"linewidth": 3.0, "foreground": mpl.rcParams["axes.facecolor"]}
        assert text.get_zorder() > max(line.get_zorder() for line in ax.lines)


def test_a_flagged_curve_of_a_comparison_is_marked_and_explained(fit, pair):
    assert "⚠" not in caption(draw(compare_learning_curves(*pair)))
    few = fit("few", alpha=30.0, n=[100, 200, 400])
    ax = draw(compare_learning_curves(pair[0], few))
    assert [t.get_text().split("\n")[0] for t in of(ax.texts, "curvewise-end")] == ["steep", "few ⚠"]
    assert "⚠ few:" in caption(ax)


@pytest.mark.parametrize("x", ["log", "sqrt", "linear"])
@pytest.mark.parametrize("at", [400, 50])
def test_the_arrow_runs_from_the_better_one_at_N_to_the_others_curve(pair, x, at):
    result = compare_learning_curves(*pair, at=at)
    better, other = sorted(pair, key=lambda curve: curve.error_at(at))
    assert result.worse_first[:2] == (other.learner, better.learner)
    ax = draw(result, x=x)
    arrow, text = of(ax.texts, "curvewise-equivalence")
    start, stop = arrow.xyann, arrow.xy
    size = (lambda v: v**-2) if x == "sqrt" else (lambda v: v)
    assert size(start[0]) == pytest.approx(at)
    assert start[1] == stop[1] == pytest.approx(better.error_at(at))
    k = result.worse_first[2].estimate
    assert k > 1
    assert (better is pair[0]) == (at == 400)
    assert size(stop[0]) == pytest.approx(k * at, rel=1e-6)
    assert other.error_at(float(size(stop[0]))) == pytest.approx(stop[1], rel=0.01)
    assert text.get_text().endswith("×")
    assert float(text.get_text()[:-1].replace(",", "")) == pytest.approx(k, rel=0.05)


def test_open_ends_of_a_comparison_are_drawn_as_far_as_they_go(pair):
    result = compare_learning_curves(*pair, at=400)
    nothing = Interval(np.nan, np.nan, np.nan)
    ax = draw(replace(result, crossing=nothing, data_equivalence=nothing))
    assert of(ax.lines, "curvewise-crossing") == []
    assert of(ax.texts, "curvewise-equivalence") == []
    endless = Interval(np.inf, np.inf, np.inf)
    half = Interval(140.0, 0.0, np.inf)
    ax = draw(replace(result, crossing=half, data_equivalence=endless))
    assert of(ax.patches, "curvewise-crossing") == []
    arrow, text = of(ax.texts, "curvewise-equivalence")
    assert text.get_text() == "not within 1,000×"
    assert "does not get to the error of steep with 1,000 times the data." in caption(ax)
    some = draw(replace(result, data_equivalence=Interval(np.inf, 3.0, np.inf)))
    assert "it takes more than 3 times with 95% confidence" in caption(some)
    assert of(some.texts, "curvewise-equivalence")[1].get_text() == "more than 3×"
    none = draw(replace(result, data_equivalence=Interval(np.inf, 0.0, np.inf)))
    assert "it takes more than" not in caption(none)
    assert arrow.xy[0] == pytest.approx(ax.get_xlim()[1])
    ax.figure.canvas.draw()


def test_the_ranking_is_a_forest_plot_with_chances(fit):
    curves = [fit(f"learner {i}", alpha=10 + 5 * i, seed=i) for i in range(4)]
    result = rank_learners(curves[::-1])
    ax = draw(result)
    assert [t.get_text() for t in ax.get_yticklabels()] == list(result.learners)
    np.testing.assert_allclose([line.get_xdata()[0] for line in ax.lines], result.error)
    assert [line.get_color() for line in ax.lines] == list(PALETTE[:4]), "each learner has its colour"
    bars = [c for c in ax.collections if isinstance(c, LineCollection)]
    ends = np.array([s[:, 0] for c in bars for s in c.get_segments()])
    np.testing.assert_allclose(ends, np.stack([result.low, result.high], axis=1))
    assert ax.yaxis_inverted(), "the best is on top"
    chances = [t.get_text() for t in of(ax.texts, "curvewise-chance")]
    assert chances[0] == "chance of being best"
    assert chances[1:] == [format_chance(p) for p in result.probability_best]
    assert chances[1] == result.readable()["chance of being best"][0], "the table says the same"
    assert "Bars: 95% confidence intervals" in caption(ax)
    assert "90% prediction intervals" in caption(draw(replace(result, kind="prediction", level=0.9)))


def test_intervals_without_end_get_arrowheads(fit):
    result = rank_learners([fit(f"{i}", alpha=10 + 5 * i, seed=i) for i in range(3)])
    low, high = result.low.copy(), result.high.copy()
    low[0], high[1], high[2] = -np.inf, np.inf, np.nan
    ax = draw(replace(result, low=low, high=high))
    cuts = of(ax.lines, "curvewise-cut")
    assert [(c.get_marker(), list(c.get_ydata())) for c in cuts] == [("<", [0]), (">", [1])]
    assert np.isfinite(ax.get_xlim()).all()
    ax.figure.canvas.draw()


def test_a_long_ranking_shows_the_best(fit):
    result = rank_learners([fit(f"{i}", alpha=10 + i / 10, seed=i) for i in range(45)])
    ax = draw(result)
    assert len(ax.get_yticklabels()) == 40
    assert "best 40 of 45" in caption(ax)


def test_the_size_that_reaches_a_target(fit):
    result = fit().samples_to_reach(16.0)
    ax = draw(result)
    (diamond,) = [line for line in ax.lines if line.get_marker() == "D"]
    assert diamond.get_xdata()[0] == result.estimate
    (bars,) = [c for c in ax.collections if isinstance(c, LineCollection)]
    np.testing.assert_allclose(bars.get_segments()[0][:, 0], np.clip([result.low, result.high], *ax.get_xlim()))
    assert "16%" in ax.get_xlabel()
    never = draw(replace(result, estimate=np.inf, low=np.inf, high=np.inf, curve_reaches=np.inf))
    never.figure.canvas.draw()
    assert "never reaches" in caption(never)


def test_the_plan_stacks_what_is_and_what_to_add(fit):
    result = plan_sizes(fit(), at=800, sizes=[25, 50, 100, 200, 400, 800])
    ax = draw(result)
    have, extra = ax.containers
    np.testing.assert_allclose([b.get_height() for b in have], result.runs)
    np.testing.assert_allclose([b.get_height() for b in extra], result.add)
    np.testing.assert_allclose([b.get_y() for b in extra], result.runs)
    assert [t.get_text() for t in ax.get_xticklabels()] == ["25", "50", "100", "200", "400", "800"]
    marks = [t.get_text() for t in ax.texts if t.get_text().startswith("+")]
    assert marks == [f"+{int(k)}" for k in result.add if k > 0]


def test_sizes_left_out_are_lines_by_form(fit):
    n = np.repeat([25.0, 50.0, 100.0, 200.0, 400.0], 3)
    error = 10 + 200 * n**-0.5 + np.random.default_rng(0).normal(0, 0.3, len(n))
    result = leave_one_size_out(n, error, unit="percent")
    ax = draw(result)
    assert len(ax.lines) == len(result.forms)
    for line, row in zip(ax.lines, result.rmse, strict=True):
        np.testing.assert_allclose(line.get_xdata(), result.sizes)
        np.testing.assert_allclose(line.get_ydata(), row)
    texts = [t.get_text() for t in ax.get_legend().get_texts()]
    assert texts[0].startswith("power, weights size: average")
    assert ax.get_ylabel() == "error of the prediction, RMSE (%)"
    broken = replace(result, rmse=np.full_like(result.rmse, np.nan))
    draw(broken).figure.canvas.draw()


def test_stability_is_bars_of_standard_deviations():
    n = np.repeat([25.0, 50.0, 100.0, 200.0, 400.0], 3)
    error = 10 + 200 * n**-0.5 + np.random.default_rng(0).normal(0, 0.3, len(n))
    result = measure_stability(n, error, unit="percent", draws=20)
    ax = draw(result)
    for bars, std in zip(ax.containers, (result.error_std, result.data_reliance_std, result.alpha_std), strict=True):
        np.testing.assert_allclose([b.get_height() for b in bars], std)
    first = ax.get_xticklabels()[0].get_text()
    assert first.startswith("power\n(γ: ")
    assert [t.get_text() for t in ax.get_legend().get_texts()] == [
        "error e_N",
        "data-reliance β_N",
        "limit of infinite data α",
    ]


@pytest.mark.parametrize("x", ["sqrt", "log"])
def test_sampled_curves_lie_over_the_runs_they_stand_for(x):
    n = np.repeat([25.0, 50.0, 100.0, 200.0, 400.0], 3)
    error = 10 + 200 * n**-0.5 + np.random.default_rng(0).normal(0, 0.3, len(n))
    result = measure_stability(n, error, unit="percent", draws=20, forms=["power", "sqrt"])
    ax = draw(result, kind="curves", x=x)
    (lines,) = of(ax.collections, "curvewise-sampled")
    segments = lines.get_segments()
    assert len(segments) == 2 * 20
    size = (lambda v: v**-2) if x == "sqrt" else (lambda v: v)
    # The second line is the first draw of the second form.
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(segments[1][:, 1], result.sampled_at(size(segments[1][:, 0]))[1, 0], rtol=1e-6)
    (dots,) = of(ax.collections, "curvewise-measured")
    np.testing.assert_allclose(np.sort(dots.get_offsets()[:, 1]), np.sort(error))
    (bars,) = of(ax.containers[0].lines[2], "curvewise-bars")
    assert len(bars.get_segments()) == 4, "of the four sizes drawn from"
    first = ax.get_legend().get_texts()[0].get_text()
    assert first.startswith("form power, error at N ± ")
    with pytest.raises(InputError, match="kind"):
        draw(result, kind="lines")


def test_the_variance_check_shows_measured_against_modelled(fit):
    result = check_variance_model([fit("a"), fit("b", seed=3)])
    ax = draw(result)
    measured, modelled = ax.lines
    np.testing.assert_allclose(measured.get_ydata(), result.measured)
    np.testing.assert_allclose(modelled.get_ydata(), result.modelled)
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    (bars,) = [c for c in ax.collections if isinstance(c, LineCollection)]
    ends = np.array([s[:, 1] for s in bars.get_segments()])
    assert ((ends[:, 0] < result.measured) & (result.measured < ends[:, 1])).all()
    scipy_stats = pytest.importorskip("scipy.stats")
    free = result.freedom
    np.testing.assert_allclose(ends[:, 0], free * result.measured / scipy_stats.chi2.ppf(0.975, free))


def test_the_table_of_variances_has_the_numbers_of_the_picture():
    """Squares of errors are no errors, and degrees of freedom no percentages."""
    n = np.repeat([50.0, 100.0, 200.0, 400.0], 3)
    error = 0.1 + 2 * n**-0.5 + np.random.default_rng(0).normal(0, 0.003, len(n))
    result = check_variance_model([fit_learning_curve(n, error)])
    table = result.readable()
    assert [float(v) for v in table["measured"]] == pytest.approx(1e4 * result.measured, rel=5e-3)
    assert table["degrees of freedom"] == [2, 2, 2, 2]
    assert result.table().endswith("Variance of one run in %²")
    assert f"{1e4 * result.modelled[0]:.4f}" in result.table(digits=4)


def test_bars_that_leave_the_picture_of_variances_end_in_arrowheads(fit):
    result = check_variance_model([fit("a")])
    ax = draw(replace(result, freedom=np.ones_like(result.freedom)))
    (cut,) = of(ax.lines, "curvewise-cut")
    assert cut.get_marker() == "^"
    (bars,) = [c for c in ax.collections if isinstance(c, LineCollection)]
    assert max(s[:, 1].max() for s in bars.get_segments()) <= ax.get_ylim()[1]


def test_no_spread_at_all_can_be_drawn(fit):
    result = check_variance_model([fit()])
    ax = draw(replace(result, measured=np.zeros_like(result.measured)))
    ax.figure.canvas.draw()


def test_every_picture_uses_the_axes_given(fit, pair):
    n = np.repeat([50.0, 100.0, 200.0, 400.0], 2)
    error = 10 + 200 * n**-0.5 + np.random.default_rng(0).normal(0, 0.3, len(n))
    for result in (
        pair[0],
        compare_learning_curves(*pair),
        rank_learners(pair),
        pair[0].samples_to_reach(20.0),
        plan_sizes(pair[0]),
        leave_one_size_out(n, error, unit="percent"),
        measure_stability(n, error, unit="percent", draws=5),
        check_variance_model(list(pair)),
    ):
        figure = Figure()
        ax = figure.add_subplot()
        assert result.plot(ax=ax) is ax
        assert ax.has_data()
        figure.canvas.draw()


def test_a_derived_class_is_drawn_as_its_parent_and_a_stranger_is_refused(fit):
    @dataclass(frozen=True)
    class Mine(type(fit().samples_to_reach(16.0))):
        pass

    found = fit().samples_to_reach(16.0)
    mine = Mine(**{k: getattr(found, k) for k in found.__dataclass_fields__})
    assert "reaches error 16%" in draw(mine).get_xlabel()
    with pytest.raises(InputError, match="int, which has no picture"):
        draw(3)


def test_importing_curvewise_does_not_import_matplotlib():
    code = "import sys, curvewise, curvewise.learning; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
