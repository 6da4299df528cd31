"""The learning-curve picture: what is drawn lies where the curve and the data are."""

from itertools import pairwise

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.text import Text

from curvewise.drawing.style import PALETTE, one_document, word_shade
from curvewise.errors import CurvewiseWarning, InputError
from curvewise.learning import compare_learners, fit_learning_curves, load_measurements
from curvewise.learning.plot import plot_learning_curves
from curvewise.text import format_interval


def lines(ax, gid):
    return [line for line in ax.lines if line.get_gid() == gid]


def solid(ax):
    return lines(ax, "curvewise-named-curve")


def circles(ax, gid="curvewise-measured"):
    return [c for c in ax.collections if isinstance(c, PathCollection) and c.get_gid() == gid]


def bands(ax):
    return [c for c in ax.collections if c.get_gid() == "curvewise-band"]


def caption(ax):
    (text,) = [t.get_text() for t in ax.texts if t.get_gid() == "curvewise-caption"]
    return " ".join(text.split())


def legend_texts(ax):
    return [t.get_text() for t in ax.get_legend().get_texts()]


def names(ax):
    """What is written at the ends of curves."""
    return [t.get_text() for t in ax.texts if t.get_gid() == "curvewise-end"]


SIZE_AT = {"sqrt": lambda x: 1.0 / x**2, "log": lambda x: x, "linear": lambda x: x}


@pytest.mark.parametrize("x", ["sqrt", "log", "linear"])
@pytest.mark.parametrize("form", ["power", "auto"])
def test_the_drawn_curve_is_the_fitted_curve(fit, x, form):
    curve = fit(form=form)
    ax = plot_learning_curves(curve, x=x)
    (inner,), (outer,) = solid(ax), lines(ax, "curvewise-beyond")
    for line, low, high in ((inner, 25, 400), (outer, 400, np.inf if x == "sqrt" else 1600)):
        place = np.asarray(line.get_xdata())
        with np.errstate(divide="ignore"):
            sizes = SIZE_AT[x](place)
        expected = [curve.error_at(float(n)) for n in sizes]
        np.testing.assert_allclose(line.get_ydata(), expected, rtol=1e-8)
        assert sizes[0] == pytest.approx(low)
        assert sizes[-1] == pytest.approx(high)
    assert inner.get_linestyle() == "-"
    assert outer.get_linestyle() == "--"
    assert outer.get_color() == inner.get_color()


@pytest.mark.parametrize("x", ["log", "linear", "log-log", "sqrt"])
def test_more_data_is_to_the_right_on_every_axis(fit, x):
    ax = plot_learning_curves(fit(), x=x)
    (points,) = circles(ax)
    across = ax.transData.transform(np.asarray(points.get_offsets()))[:, 0]
    assert np.all(np.diff(across) > 0)
    assert (ax.get_xscale(), ax.get_yscale()) == {
        "log": ("log", "linear"),
        "linear": ("linear", "linear"),
        "log-log": ("log", "log"),
        "sqrt": ("linear", "linear"),
    }[x]


def test_infinite_data_stands_at_zero_on_the_papers_axis(fit):
    curve = fit()
    ax = plot_learning_curves(curve, x="sqrt")
    (outer,) = lines(ax, "curvewise-beyond")
    assert outer.get_xdata()[-1] == 0.0
    assert outer.get_ydata()[-1] == pytest.approx(curve.alpha)
    assert ax.get_xlim()[1] == 0.0


def test_ticks_give_the_root_and_the_size(fit):
    ax = plot_learning_curves(fit(), x="sqrt")
    ax.figure.canvas.draw()
    texts = [t.get_text().replace("\n", " ") for t in ax.get_xticklabels()]
    assert texts[0] == "0 (∞)"
    assert {"0.025 (1,600)", "0.05 (400)", "0.1 (100)", "0.2 (25)"} <= set(texts)


def test_roots_on_ticks_are_short_but_differ(fit):
    ax = plot_learning_curves(fit(n=[359, 359, 1437, 1437]), x="sqrt", limit=False)
    ax.figure.canvas.draw()
    texts = [t.get_text().split("\n") for t in ax.get_xticklabels()]
    assert texts == [["0", "(∞)"], ["0.026", "(1,437)"], ["0.053", "(359)"]]
    wide = plt.figure(figsize=(200, 4)).add_subplot()
    plot_learning_curves(fit(n=[1400, 1410, 1437]), wide, x="sqrt", limit=False)
    wide.figure.canvas.draw()
    roots = [t.get_text().split("\n")[0] for t in wide.get_xticklabels()]
    assert roots == ["0", "0.0264", "0.0266", "0.0267"]


def test_log_ticks_are_sizes(fit):
    ax = plot_learning_curves(fit(), x="log")
    ax.figure.canvas.draw()
    texts = [t.get_text() for t in ax.get_xticklabels()]
    assert texts == ["25", "50", "100", "200", "400", "1,600"]


def test_ticks_do_not_crowd_each_other(fit):
    n = np.unique(np.geomspace(16, 5000, 40).round())
    ax = plot_learning_curves(fit(n=np.repeat(n, 2)))
    ax.figure.canvas.draw()
    boxes = [t.get_window_extent() for t in ax.get_xticklabels() if t.get_text()]
    assert len(boxes) > 4
    assert all(a.x1 < b.x0 for a, b in pairwise(boxes))


def test_measurements_are_size_means_with_the_spread_of_one_run(fit):
    curve = fit()
    ax = plot_learning_curves(curve)
    (points,) = circles(ax)
    offsets = np.asarray(points.get_offsets())
    np.testing.assert_allclose(offsets[:, 0], curve.n)
    np.testing.assert_allclose(offsets[:, 1], curve.mean)
    assert np.all(np.diff(points.get_sizes()) < 0), "circles shrink with the number of runs"
    assert to_rgba(PALETTE[0]) == tuple(points.get_facecolors()[0])
    (bars,) = [c for c in ax.collections if isinstance(c, LineCollection)]
    std = np.sqrt(curve.variance[:-1])
    ends = np.array([s[:, 1] for s in bars.get_segments()])
    np.testing.assert_allclose(ends, np.stack([curve.mean[:-1] - std, curve.mean[:-1] + std], 1))


@pytest.mark.parametrize("interval", [None, "confidence", "conditional", "prediction"])
def test_the_band_is_the_interval_asked_for(fit, interval):
    curve = fit()
    ax = plot_learning_curves(curve, x="log", interval=interval, level=0.9)
    (band,) = bands(ax)
    corners = band.get_paths()[0].vertices
    expected = curve.band(np.array([25.0]), interval, level=0.9, runs=np.inf)
    at_left = corners[np.isclose(corners[:, 0], 25.0), 1]
    assert at_left.min() == pytest.approx(expected["low"][0])
    assert at_left.max() == pytest.approx(expected["high"][0])
    assert f"90% {interval or 'confidence'}".replace("conditional", "interval") in caption(ax)


def test_no_band_when_none_is_asked_for(fit):
    ax = plot_learning_curves(fit(), interval="none")
    assert bands(ax) == []
    assert "Shaded" not in caption(ax)


def test_the_kind_of_an_ensembles_band_is_named(fit):
    assert "95% prediction interval" in caption(plot_learning_curves(fit(form="auto")))


def test_held_out_sizes_are_hollow(fit):
    ax = plot_learning_curves(fit(n=[50, 50, 100, 100, 200]), held_out=([800, 800, 25], [17, 19, 50]))
    (hollow,) = circles(ax, "curvewise-held-out")
    assert len(hollow.get_facecolors()) == 0
    assert to_rgba(PALETTE[0]) == tuple(hollow.get_edgecolors()[0])
    np.testing.assert_allclose(np.asarray(hollow.get_offsets()), [[25, 50.0], [800, 18.0]])
    below = [line for line in lines(ax, "curvewise-beyond") if min(line.get_xdata()) < 50]
    assert len(below) == 1, "the curve is dashed down to the held-out size"
    assert "Hollow" in caption(ax)


def test_held_out_by_learner(fit):
    a, b = fit("a"), fit("b", seed=1)
    ax = plot_learning_curves([a, b], held_out={"b": (800, 20.0)})
    (hollow,) = circles(ax, "curvewise-held-out")
    assert tuple(hollow.get_edgecolors()[0]) == to_rgba(PALETTE[1])
    with pytest.raises(InputError, match="dict"):
        plot_learning_curves([a, b], held_out=([800], [20.0]))
    with pytest.raises(InputError, match="'c'"):
        plot_learning_curves([a, b], held_out={"c": ([800], [20.0])})
    with pytest.raises(InputError, match="one value for each"):
        plot_learning_curves(a, held_out=([800, 900], [20.0]))
    with pytest.raises(InputError, match="percent"):
        plot_learning_curves(a, held_out=([800], [200.0]))


def test_names_stand_at_the_curves_with_the_error_where_they_end(fit):
    curve = fit("plain")
    for shown, n in (({}, 1600), ({"to": 800}, 800), ({"at": 200}, 200), ({"predict": [900, 5000]}, 5000)):
        ax = plot_learning_curves(curve, **shown)
        (text,) = names(ax)
        value = format_interval(curve.interval_at(n).error, "percent").split(" [")[0]
        assert text == f"plain\n{value} at {n:,}"
        if shown.keys() <= {"to"}:  # no size was asked for: that of the end of the line
            (line,) = lines(ax, "curvewise-beyond")
            assert line.get_xdata()[-1] == pytest.approx(n)
            assert line.get_ydata()[-1] == pytest.approx(curve.error_at(n))
    text = f"plain\n{format_interval(curve.interval_at().error, 'percent').split(' [')[0]} at 400"
    bare = plot_learning_curves(curve, legend=False)
    assert bare.get_legend() is None
    assert names(bare) == []
    given = plot_learning_curves(curve, Figure().add_subplot())
    assert legend_texts(given) == [text.replace("\n", "  ")], "other Axes have no room beside them"


def test_names_stand_at_the_height_of_their_curves(fit):
    ax = plot_learning_curves([fit("low", alpha=10.0), fit("high", alpha=40.0)])
    ax.figure.canvas.draw()
    for line, text in zip(solid(ax), (t for t in ax.texts if t.get_gid() == "curvewise-end"), strict=True):
        (end,) = [k.get_ydata()[-1] for k in lines(ax, "curvewise-beyond") if k.get_color() == line.get_color()]
        assert text.xy[1] == pytest.approx(end)
        assert text.get_color() == word_shade(line.get_color())
        box = text.get_window_extent()
        assert box.y0 <= ax.transData.transform((1000, end))[1] <= box.y1
        assert box.x0 > ax.get_window_extent().x1


def test_the_picture_reaches_the_size_asked_for(fit):
    assert plot_learning_curves(fit(), at=50_000).get_xlim()[1] > 50_000
    assert plot_learning_curves(fit(), to=50_000).get_xlim()[1] == pytest.approx(50_000)
    far = fit().samples_to_reach(13.5).estimate
    assert 2560 < far < 6400
    assert plot_learning_curves(fit(), reach=13.5).get_xlim()[1] > far
    assert plot_learning_curves(fit(), reach=11.0).get_xlim()[1] == pytest.approx(1600), "too far out"


def test_the_picture_ends_at_the_size_asked_for(fit):
    ax = plot_learning_curves(fit(), to=800)
    assert ax.get_xlim()[1] == pytest.approx(800)
    assert 800 in ax.get_xticks()
    assert lines(ax, "curvewise-limit") == [], "four times the largest size is outside"
    before = len(plt.get_fignums())
    for options in ({"to": 300}, {"to": 800, "at": 900}, {"to": 800, "predict": [900]}, {"to": 800, "x": "sqrt"}):
        with pytest.raises(InputError, match="to=") as caught:
            plot_learning_curves(fit(), **options)
        assert caught.value.argument == "to"
    assert len(plt.get_fignums()) == before


@pytest.mark.parametrize("x", ["log", "log-log"])
def test_sizes_asked_for_have_ticks(fit, x):
    assert 900 in plot_learning_curves(fit(), at=900, x=x).get_xticks()
    ax = plot_learning_curves(fit(), predict=[700, 800, 5000], x=x)
    assert {800, 5000} <= set(ax.get_xticks())
    assert 700 in ax.get_xticks(minor=True), "without room for its label"


def test_a_comparison_of_several_is_drawn_at_its_size(fit):
    curves = [fit("a"), fit("b", alpha=30.0), fit("c", alpha=40.0)]
    ax = compare_learners(curves, at=800).plot()
    assert all(text.endswith(" at 1,600") for text in names(ax)), "where the lines end"
    assert len(names(ax)) == 3
    (line,) = lines(ax, "curvewise-at")
    assert line.get_xdata()[0] == 800
    assert 800 in ax.get_xticks()


def test_a_learner_looks_the_same_in_all_pictures_of_a_document(fit):
    a, b = fit("a"), fit("b", alpha=30.0)
    with one_document({f"other {i}": i for i in range(8)}):
        first = plot_learning_curves([a, b])
        second = plot_learning_curves([b, a])
    looks = [
        {t.split("\n")[0]: (k.get_color(), k.is_dashed()) for t, k in zip(names(x), solid(x), strict=True)}
        for x in (first, second)
    ]
    assert looks[0] == looks[1] == {"a": (PALETTE[0], True), "b": (PALETTE[1], True)}, "the second line style"
    assert solid(plot_learning_curves(b))[0].get_color() == PALETTE[0]


def test_the_limit_is_four_times_the_largest_size(fit):
    ax = plot_learning_curves(fit(), x="log")
    (line,) = lines(ax, "curvewise-limit")
    assert line.get_xdata()[0] == 1600
    assert [t.get_text() for t in ax.texts if t.get_gid() == "curvewise-limit"] == ["4 × largest size"]
    assert lines(plot_learning_curves(fit(), limit=False), "curvewise-limit") == []
    same = plot_learning_curves(fit(), at=1600)  # one line and one text for both
    assert lines(same, "curvewise-at") == []
    assert "n = 1,600, 4 × largest size" in [t.get_text() for t in same.texts]


def test_a_target_is_marked_where_the_curve_reaches_it(fit):
    curve = fit()
    found = curve.samples_to_reach(16.0)
    ax = plot_learning_curves(curve, x="log", reach=16.0)
    target, bar, diamond = lines(ax, "curvewise-reach")
    assert set(target.get_ydata()) == {16.0}
    assert diamond.get_xdata()[0] == pytest.approx(found.estimate)
    np.testing.assert_allclose(bar.get_xdata(), np.clip([found.low, found.high], 25, 2560))
    assert "plain: the fitted curve reaches 16% at about n =" in caption(ax)
    never = plot_learning_curves(curve, reach=1.0)
    assert [m for m in lines(never, "curvewise-reach") if m.get_marker() == "D"] == []
    assert "never reaches 1%" in caption(never)


def test_flagged_curves_are_marked_and_explained(fit):
    good, bad = fit("good"), fit("bad", n=[100, 200, 400])
    assert bad.warnings
    assert not good.warnings
    ax = plot_learning_curves([good, bad])
    assert [line.get_linestyle() for line in solid(ax)] == ["-", "-"]
    assert [text.split("\n")[0] for text in names(ax)] == ["good", "bad ⚠"]
    assert f"⚠ bad: {bad.warnings[0]}"[:60] in caption(ax)
    assert "good:" not in caption(ax)


def test_a_second_picture_on_the_same_axes_says_nothing_twice(fit):
    good, bad = fit("good"), fit("bad", n=[100, 100, 200, 200])
    for first, second in ((good, bad), (bad, good)):
        assert caption(second.plot(ax=first.plot())).count("Dashed:") == 1


def test_a_warning_that_needs_intervals_is_marked_as_well_and_looked_for_once(fit, monkeypatch):
    asked = []

    def late(self):
        asked.append(self.learner)
        return ("The estimate of γ lies outside.",) if self.learner == "b" else ()

    curves = [fit(k, seed=i) for i, k in enumerate("abcdefghijk")]
    assert not any(c.warnings for c in curves)
    monkeypatch.setattr(type(curves[0]), "all_warnings", property(late))
    ax = plot_learning_curves(curves[:10])
    assert asked == list("abcdefghij")
    assert ["⚠" in text for text in names(ax)] == [False, True, *[False] * 8]
    assert "⚠ b: The estimate of γ" in caption(ax)
    asked.clear()
    plot_learning_curves(curves)
    assert asked == [], "in a crowd it would cost too much"


def test_nothing_written_leaves_the_figure_or_overlaps(fit):
    curves = [fit("x" * 60 + str(i), seed=i, n=[100, 200, 400]) for i in range(5)]
    ax = plot_learning_curves(curves)
    ax.figure.canvas.draw()
    page = ax.figure.bbox
    note = next(t for t in ax.texts if t.get_gid() == "curvewise-caption").get_window_extent()
    label = ax.xaxis.label.get_window_extent()
    ends = sorted(
        (Text.get_window_extent(t) for t in ax.texts if t.get_gid() == "curvewise-end"), key=lambda box: box.y0
    )
    for item in (note, label, *ends):
        assert item.x0 >= 0
        assert item.x1 <= page.x1 + 1
        assert item.y0 >= 0
    assert note.y1 <= label.y0 + 1
    assert len(ends) == 5
    assert all(low.y1 <= high.y0 + 1.5 for low, high in pairwise(ends))
    assert ax.get_window_extent().width > 0.55 * page.width


def test_two_hundred_curves_stay_readable(fit):
    curves = [fit(f"learner {i}", alpha=5 + 0.2 * i, seed=i) for i in range(200)]
    ax = plot_learning_curves(curves)
    texts = legend_texts(ax)
    order = sorted(curves, key=lambda c: c.error_at())
    assert len(texts) == 7
    assert [t.split("  ")[0] for t in texts[:3]] == [c.learner for c in order[:3]]
    assert [t.split("  ")[0] for t in texts[3:6]] == [c.learner for c in order[-3:]]
    assert texts[-1].startswith("194 more")
    assert bands(ax) == []
    assert len(solid(ax)) == 6
    rest = lines(ax, "curvewise-curve")
    assert len(rest) == 194
    assert max(line.get_linewidth() for line in rest) < min(x.get_linewidth() for x in solid(ax))
    assert len(bands(plot_learning_curves(curves[:11], interval="confidence"))) == 11


def test_a_group_of_curves_brings_its_own_N_and_its_failures(recwarn):
    n = np.repeat([50.0, 100.0, 200.0, 400.0], 3)
    rng = np.random.default_rng(0)
    frame = {k: (n, 0.1 + 2 * n**-0.5 + rng.normal(0, 0.003, 12)) for k in "ab"}
    frame["c"] = (np.array([-1.0]), np.array([0.3]))
    with pytest.warns(CurvewiseWarning):
        result = fit_learning_curves(frame, at=100)
    ax = result.plot()
    assert all(text.endswith("% at 100") for text in names(ax))
    assert len(solid(ax)) == 2
    assert "1 learner could not be fitted" in caption(ax)


def test_draws_on_the_axes_given_and_touches_no_global_setting(fit):
    before = dict(mpl.rcParams)
    figure = Figure()
    ax = figure.add_subplot()
    assert plot_learning_curves(fit(), ax) is ax
    assert fit().plot(ax=ax) is ax
    assert dict(mpl.rcParams) == before
    assert plt.get_fignums() == [], "no pyplot figure is made when Axes are given"


def test_two_calls_on_the_same_axes_share_it(fit):
    a, b = fit("a"), fit("b", alpha=40.0, n=[800, 800, 1600, 3200])
    ax = a.plot(x="log")
    b.plot(ax=ax, x="log")
    together = plot_learning_curves([a, b], x="log")
    assert [line.get_color() for line in solid(ax)] == list(PALETTE[:2])
    assert [t.split("\n")[0] for t in names(ax)] == [t.split("\n")[0] for t in names(together)] == ["a", "b"]
    assert ax.get_xlim() == pytest.approx(together.get_xlim(), rel=0.05)
    for curve in (a, b):
        assert ax.get_ylim()[0] < curve.mean.min()
        assert ax.get_ylim()[1] > curve.mean.max()
    again = a.plot(ax=a.plot())
    assert len(lines(again, "curvewise-limit")) == 1
    assert len([t for t in again.texts if t.get_gid() == "curvewise-caption"]) == 1


def test_many_figures_raise_no_warning(fit):
    curve = fit()
    for _ in range(25):
        plot_learning_curves(curve, interval="none")
    assert len(plt.get_fignums()) == 25


@pytest.mark.parametrize("x", ["sqrt", "log", "linear"])
@pytest.mark.parametrize("form", ["power", "auto", "last", "sqrt2"])
@pytest.mark.parametrize("n", [[100, 200], [100, 100, 101]])
def test_hardly_any_data_can_be_drawn(fit, x, form, n):
    ax = plot_learning_curves(fit(n=n, form=form), x=x)
    ax.figure.canvas.draw()
    low, high = ax.get_ylim()
    assert low < 30 < high
    assert high - low < 60


def test_limits_follow_the_data_not_the_band(fit):
    curve = fit(n=[100, 200, 400], unit="loss")
    wide = curve.band(np.array([25.0, 1e9]))
    ax = plot_learning_curves(curve)
    low, high = ax.get_ylim()
    assert low <= curve.mean.min()
    assert high >= curve.mean.max()
    assert high - low < 4 * np.ptp(curve.mean)
    assert wide["high"].max() - wide["low"].min() > high - low or np.isinf(wide["high"]).any()


def test_an_infinite_band_is_left_out(fit, monkeypatch):
    curve = fit()

    def band(n, interval=None, *, level=0.95, runs=1):
        assert runs == np.inf, "the caption promises the mean of many runs"
        low = np.where(n > 100, -np.inf, 1.0)
        return {"error": n, "low": low, "high": np.where(n < 50, np.nan, 60.0)}

    monkeypatch.setattr(type(curve), "band", lambda self, *a, **k: band(*a, **k))
    ax = plot_learning_curves(curve, x="log")
    ax.figure.canvas.draw()
    (shade,) = bands(ax)
    corners = shade.get_paths()[0].vertices
    assert corners[:, 0].min() >= 50
    assert corners[:, 0].max() <= 100
    monkeypatch.setattr(type(curve), "band", lambda self, n, *a, **k: {"low": n * np.nan, "high": n * np.inf})
    assert bands(plot_learning_curves(curve, x="log")) == []


def test_zero_errors_and_scores_keep_a_linear_scale():
    from curvewise.learning.fit import build_curve
    from curvewise.learning.power import group_runs
    from curvewise.types import Unit

    n = np.repeat([10.0, 20.0, 40.0], 2)
    zero = build_curve(group_runs(n, np.array([0.1, 0.2, 0.1, 0.05, 0.0, 0.0])), Unit())
    score = build_curve(group_runs(n, np.array([-3.0, -2.5, 1.0, 1.1, 2.0, 2.2])), Unit("score", True))
    for curve in (zero, score):
        ax = plot_learning_curves(curve, x="log", reach=1.5 if curve is score else None)
        ax.figure.canvas.draw()
        assert (ax.get_xscale(), ax.get_yscale()) == ("log", "linear")
    assert ax.get_ylabel() == "score"


@pytest.mark.parametrize(
    ("unit", "label", "scale"), [("percent", "error (%)", 1.0), ("loss", "loss", 1.0), ("fraction", "error (%)", 0.01)]
)
def test_the_unit_is_on_the_axis(fit, unit, label, scale):
    curve = fit(alpha=10.0 * scale, eta=200.0 * scale, noise=0.3 * scale, unit=unit)
    ax = plot_learning_curves(curve)
    assert ax.get_ylabel() == label
    ax.figure.canvas.draw()
    for tick, text in zip(ax.get_yticks(), ax.get_yticklabels(), strict=True):
        assert float(text.get_text()) == pytest.approx(tick * (100 if unit == "fraction" else 1)), "one unit: percent"


def test_mistakes_are_named(fit):
    curve = fit()
    for call, message in (
        (lambda: plot_learning_curves(curve, x="root"), "x='root'"),
        (lambda: plot_learning_curves([]), "curves is empty"),
        (lambda: plot_learning_curves([1]), "holds a int"),
        (lambda: plot_learning_curves([curve, fit(unit="loss")]), "different units"),
        (lambda: plot_learning_curves(curve, interval="bayes"), "interval='bayes'"),
        (lambda: plot_learning_curves(curve, level=95), "level=95"),
        (lambda: plot_learning_curves(curve, at=-1), "n=-1"),
        (lambda: plot_learning_curves(curve, reach=200), "reach holds 200"),
        (lambda: plot_learning_curves(fit(form="auto"), interval="confidence"), "confidence"),
    ):
        with pytest.raises(InputError, match=message):
            call()
    assert plt.get_fignums() == [], "no empty figure is left behind"


def test_measurements_draw_themselves_with_their_curves():
    n = np.repeat([100, 200, 400, 800], 3)
    rows = {"n": n, "error": 0.05 + n**-0.5 + np.tile([-0.004, 0, 0.004], 4), "learner": ["net"] * 12}
    measured = load_measurements(rows)
    ax = measured.plot(x="log")
    assert len(solid(ax)) == 1
    assert sorted(circles(ax)[0].get_offsets()[:, 0]) == [100, 200, 400, 800]
    assert ax.get_xlim()[1] < 10_000
    assert measured.plot(x="log", to=50_000).get_xlim()[1] >= 50_000
    assert measured.plot(Figure().add_subplot(), x="log", at=50_000).get_xlim()[1] >= 50_000


@pytest.fixture
def three():
    n = np.repeat([50.0, 100, 200, 400, 800], 3)
    wiggle = np.tile([-1.0, 0.0, 1.0], 5) * 8 / np.sqrt(n)
    runs = {k: (n, c * (n / 50) ** -0.5 + 2 + wiggle) for k, c in {"logreg": 24, "svm": 20, "forest": 26}.items()}
    return fit_learning_curves(runs, unit="percent")


def test_predicted_sizes_have_ticks_squares_and_their_values(three):
    ax = three.plot(predict=[1600, 8000])
    squares = lines(ax, "curvewise-predicted")
    for curve, square in zip(three, squares, strict=True):
        assert square.get_xdata().tolist() == [1600, 8000]
        assert square.get_ydata() == pytest.approx(curve.errors_at([1600, 8000]))
    assert {1600.0, 8000.0} <= set(ax.get_xticks())
    assert ax.get_xlim()[1] > 8000
    shown = [t.split(",")[0].split("\n")[0] for t in names(ax)]
    assert sorted(shown) == ["forest", "logreg", "svm"]
    for curve, text in zip(three, names(ax), strict=True):
        value = format_interval(curve.interval_at(8000).error, "percent").split(" [")[0]
        assert value in text
    assert "squares: predictions" in caption(ax)
    assert "8,000" in " ".join(names(ax)) or "the value at n = 8,000" in caption(ax)


def test_names_close_together_keep_their_values(three):
    """In one line, and the size in the caption."""
    ax = three.plot()
    assert all("%" in text for text in names(ax))


def test_the_mark_at_four_times_the_largest_size_is_explained(three):
    assert "Beyond 4 × the largest size measured the data do not support" in caption(three.plot())
    assert "Beyond 4 ×" not in caption(three.plot(limit=False))


def test_a_learner_has_one_colour_in_all_results_of_one_fit(three):
    from curvewise import compare_learners, compare_learning_curves, rank_learners

    own = dict(zip(three.curves, PALETTE, strict=False))
    for ax in (three.plot(), compare_learners(three).plot()):
        found = {str(line.get_label()).split("\n")[0].split(" ")[0]: line.get_color() for line in solid(ax)}
        assert found == own
    pair = compare_learning_curves(three["forest"], three["svm"]).plot()
    assert [line.get_color() for line in solid(pair)] == [own["forest"], own["svm"]]
    ranking = rank_learners(three, 8000)
    dots = [line for line in ranking.plot().lines if line.get_marker() == "o"]
    assert [d.get_color() for d in dots] == [own[name] for name in ranking.learners]
    (diamond,) = [k for k in three["svm"].samples_to_reach(6.0).plot().lines if k.get_marker() == "D"]
    assert diamond.get_color() == own["svm"]
    # Curves of two fits on the same Axes do not share a colour.
    ax = three["logreg"].plot()
    n, wiggle = np.repeat([50.0, 100, 200, 400], 2), np.tile([-0.1, 0.1], 4)
    others = {k: (n, a + 60 * n**-0.5 + wiggle) for k, a in {"x": 2, "y": 3}.items()}
    fit_learning_curves(others, unit="percent").plot(ax)
    assert len({line.get_color() for line in solid(ax)}) == 3


def test_the_same_warning_of_several_learners_is_written_once():
    n = np.repeat([50.0, 100, 200, 400], 3)
    wiggle = np.tile([-0.02, 0.0, 0.02], 4)
    runs = {k: (n, c * (n / 50) ** -0.8 * np.exp(wiggle)) for k, c in {"a": 30, "b": 20}.items()}
    with pytest.warns(CurvewiseWarning):
        ax = fit_learning_curves(runs, unit="percent").plot()
    assert caption(ax).count("beyond n = 400 answers follow a power law") == 1
    assert "⚠ a, b: " in caption(ax)


def test_an_option_that_is_not_known_is_refused_with_those_that_are(three):
    with pytest.raises(InputError, match=r"'predict'.*'to'|'to'.*'predict'") as error:
        three.plot(prediction=8000)
    assert "Did you mean 'predict'?" in str(error.value)
    assert "predict=[sizes to mark]" in type(three).plot.__doc__
    assert "predict=[sizes to mark]" in type(three["svm"]).plot.__doc__


def test_bands_of_the_ensemble_are_smooth_at_the_sizes_measured():
    """No kink: the slope of the half width does not jump there."""
    n = np.repeat([50.0, 100, 200, 400, 800], 3)
    wiggle = np.array([-0.5, 0.1, 0.3, 1.0, 0.2, -1.5, 0.1, 0.2, 0.4, -0.3, -0.2, 0.6, 0.1, 0.0, -0.1])
    curve = fit_learning_curves({"a": (n, 2 + 20 * (n / 50) ** -0.5 + wiggle)}, unit="percent", form="auto")["a"]
    at = np.geomspace(60, 700, 2001)
    band = curve.band(at, runs=np.inf)
    turn = np.diff(np.diff(band["high"] - band["error"]) / np.diff(np.log(at)))
    assert np.abs(turn).max() < 0.05
