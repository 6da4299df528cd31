"""Pictures of measured transfer: curves, area, CCI, equivalence, and comparisons."""

from __future__ import annotations

import csv
import importlib
import pkgutil
import re
import warnings
from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

import curvewise.transfer
from curvewise.drawing.picture import draw, picture_of
from curvewise.drawing.style import PALETTE, word_shade
from curvewise.errors import CurvewiseWarning, InputError
from curvewise.transfer.gains import Equivalence
from curvewise.transfer.measure import measure_transfer
from curvewise.transfer.plot.panels import CROWD, GREY, NAMED_IN_CROWD, MethodLook, compact, end_at, thin
from curvewise.transfer.plot.result import KINDS, pieces
from curvewise.transfer.risks import cci
from curvewise.types import Interval, Result

HOSTILE = "$x$_<b>\n😀 " + "long " * 30


def of(artists, gid):
    return [a for a in artists if a.get_gid() == gid]


def caption(ax):
    (note,) = of(ax.figure.findobj(mpl.text.Text), "curvewise-caption")
    return " ".join(note.get_text().split())


def texts(ax, gid):
    return [t.get_text() for t in of(ax.texts, gid)]


def untouched(group):
    # Of an annotation the text alone, without the line that leads to it.
    boxes = [mpl.text.Text.get_window_extent(t) for t in group if t.get_text()]
    return not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


def measured(count=3, tasks=("depth",), runs=3, sizes=(100, 1000, 10000), name="m{}", **options):
    """Methods that gain less and less, the first one most."""
    rng = np.random.default_rng(0)
    methods = ["scratch", *(name.format(i) for i in range(count))]
    table = {"task": [], "method": [], "n": [], "risk": [], "seed": []}
    for t, task in enumerate(tasks):
        for m, method in enumerate(methods):
            gain = 0.0 if m == 0 else 0.5 * (count + 1 - m) / count
            for i, n in enumerate(sizes):
                mean = 0.1 + 0.8 * (1 - gain) * 0.9 * 0.5 ** (i + 0.4 * t)
                for run in range(runs):
                    row = (task, method, float(n), mean + 0.004 * rng.normal(), str(run))
                    for column, value in zip(table.values(), row, strict=True):
                        column.append(value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CurvewiseWarning)
        return measure_transfer(table, **({"blind": 0.9, "maximal": 0.1} | options))


@pytest.fixture(scope="module")
def result():
    return measured()


@pytest.fixture(scope="module")
def many():
    return measured(15, ("depth", "normal", "edges"))


def test_curves_are_calibrated_means_between_the_controls(result):
    ax = result.plot()
    lines = of(ax.lines, "curvewise-risk")
    assert len(lines) == 4
    drawn = {to_hex(line.get_color()): line for line in lines}
    for i, method in enumerate(result.methods):
        curve = result.curve("depth", method)
        np.testing.assert_allclose(drawn[PALETTE[i].lower()].get_xdata(), curve.n)
        np.testing.assert_allclose(drawn[PALETTE[i].lower()].get_ydata(), curve.calibrated)
    black = drawn["#000000"]
    np.testing.assert_allclose(black.get_ydata(), result.curve("depth", "scratch").calibrated)
    assert black.get_linewidth() == max(line.get_linewidth() for line in lines)
    controls = sorted(line.get_ydata()[0] for line in of(ax.lines, "curvewise-control"))
    assert controls == [0.0, 1.0]
    assert texts(ax, "curvewise-control") == ["blind guess", "maximal supervision"]
    assert ax.get_xscale() == "log"
    assert set(texts(ax, "curvewise-end")) == {"scratch", *result.methods}


def test_bands_are_the_intervals_of_few_methods_and_bars_those_of_many(result):
    bands = of(result.plot().collections, "curvewise-band")
    assert len(bands) == 4
    scratch = result.curve("depth", "scratch")
    (black,) = (b for b in bands if to_hex(b.get_facecolor()[0]) == "#000000")
    corners = black.get_paths()[0].vertices
    for n, low, high in zip(scratch.n, scratch.low, scratch.high, strict=True):
        at = corners[np.isclose(corners[:, 0], n), 1]
        assert np.isclose(at.min(), low)
        assert np.isclose(at.max(), high)
    more = measured(6)
    ax = more.plot()
    assert of(ax.collections, "curvewise-band") == []
    bars = of(ax.collections, "curvewise-interval")
    assert len(bars) == 7
    (black,) = (b for b in bars if to_hex(b.get_colors()[0]) == "#000000")
    curve = more.curve("depth", "scratch")
    found = np.array(black.get_segments())
    np.testing.assert_allclose(found[:, 0, 0], curve.n)
    np.testing.assert_allclose(found[:, :, 1], np.column_stack([curve.low, curve.high]))


def test_a_wide_interval_does_not_squeeze_the_rest(result):
    first = result.curves[0]
    wild = replace(first, low=first.calibrated - 50.0, high=first.calibrated + 50.0)
    ax = replace(result, curves=(wild, *result.curves[1:])).plot()
    low, high = ax.get_ylim()
    assert -0.3 < low < 0.0 < 1.0 < high < 1.3
    assert "some end outside the picture" in caption(ax)
    assert "run out" not in caption(result.plot())


def test_an_assumed_control_is_said_to_be():
    found = measured(maximal=None)
    assert "maximal supervision (assumed)" in texts(found.plot(), "curvewise-control")


def test_of_a_crowd_the_best_have_colours_and_all_have_names_that_do_not_touch(many):
    ax = many.plot()
    panels = ax.figure.axes
    assert [p.get_title(loc="left") for p in panels] == list(many.tasks)
    assert len({p.get_ylim() for p in panels}) == 1
    ax.figure.draw_without_rendering()
    for panel in panels:
        shades = [to_hex(line.get_color()) for line in of(panel.lines, "curvewise-risk")]
        assert len(shades) == 16
        assert shades.count(GREY.lower()) == 15 - NAMED_IN_CROWD
        assert set(texts(panel, "curvewise-end")) == {"scratch", *many.methods}
        assert untouched(of(panel.texts, "curvewise-end"))
        assert untouched([t for t in panel.get_xticklabels() if t.get_text()])
    coloured = {t.get_text() for t in of(ax.texts, "curvewise-end") if t.get_color() in map(word_shade, PALETTE)}
    assert coloured == set(many.methods[:NAMED_IN_CROWD])
    assert f"the best {NAMED_IN_CROWD} of 15" in caption(ax)


@pytest.mark.parametrize("kind", ["curves", "cci", "ranks", "equivalence"])
def test_highlight_colours_some_and_greys_the_rest(kind, result):
    ax = result.plot(kind=kind, highlight=["m2"])
    if kind == "cci":
        marks = of(ax.lines, "curvewise-cci")
        shades = [to_hex(m.get_markeredgecolor()) for m in marks]
    elif kind == "ranks":
        places = of(ax.collections, "curvewise-place")
        shades = [to_hex(p.get_facecolor()[0]) for p in places]
    else:
        gid = {"curves": "risk", "equivalence": "equivalent"}[kind]
        shades = [to_hex(line.get_color()) for line in of(ax.lines, f"curvewise-{gid}")]
    # Its colour is the one that it has without the others standing back.
    assert set(shades) - {"#000000"} == {PALETTE[2].lower(), GREY.lower()}
    if kind != "cci":
        names = " ".join(texts(ax, "curvewise-end"))
        assert "m2" in names
        assert "m0" not in names


def test_names_that_do_not_exist_are_answered_with_near_ones(result):
    for options, match in (
        ({"kind": "curve"}, "kind='curve' is not known: .*Did you mean 'curves'"),
        ({"kind": "pie"}, "kind='pie' is not known: use one of 'curves', 'area', 'cci'"),
        ({"task": "dept"}, "task='dept' is not known: .*Did you mean 'depth'"),
        ({"methods": ["m0", "nn"]}, "methods='nn' is not known"),
        ({"highlight": "scrach"}, "highlight='scrach' is not known: .*Did you mean 'scratch'"),
        ({"methods": []}, r"methods is empty"),
    ):
        with pytest.raises(InputError, match=match):
            draw(result, **options)
    two = measured(tasks=("a", "b"))
    for kind in KINDS:
        with pytest.raises(InputError, match="there are 2 tasks: choose one with task="):
            draw(two, ax=Figure().add_subplot(), kind=kind)


def shoelace(shape):
    x, y = shape.T
    return 0.5 * abs(np.dot(x, np.roll(y, 1)) - np.dot(y, np.roll(x, 1)))


@pytest.mark.parametrize(
    ("scratch", "method"),
    [
        ([0.9, 0.5, 0.2, 0.1], [0.6, 0.4, 0.1, 0.05]),
        ([0.9, 0.5, 0.2, 0.1], [1.1, 0.4, 0.3, -0.1]),
        ([0.9, 0.4, 0.6, 0.1], [0.5, 0.5, 0.3, 0.2]),
        ([0.4, 0.5, 0.45, 0.8], [0.3, 0.6, 0.3, 0.2]),
    ],
)
def test_shaded_less_hatched_area_over_that_under_the_diagonal_is_the_cci(scratch, method):
    s, m = np.array(scratch), np.array(method)
    better, worse = pieces(s, m)
    between = sum(map(shoelace, better)) - sum(map(shoelace, worse))
    whole = 0.5 * abs(s[0] ** 2 - s[-1] ** 2)
    sizes = 10.0 ** np.arange(len(s))
    np.testing.assert_allclose(between / whole, cci(sizes, m, s))


def test_the_area_of_the_best_method_is_drawn_unless_others_are_chosen(many):
    ax = many.plot(kind="area")
    for panel, task in zip(ax.figure.axes, many.tasks, strict=True):
        (path,) = of(panel.lines, "curvewise-path")
        best = many.improvement(task, "m0")
        scratch = many.curve(task, "scratch").calibrated
        np.testing.assert_allclose(path.get_xdata(), scratch)
        np.testing.assert_allclose(path.get_ydata(), many.curve(task, "m0").calibrated)
        (area,) = of(panel.collections, "curvewise-gain")
        whole = 0.5 * (scratch[0] ** 2 - scratch[-1] ** 2)
        found = shoelace(area.get_paths()[0].vertices[:-1]) / whole
        np.testing.assert_allclose(found, best.cci.estimate)
        (name,) = texts(panel, "curvewise-name")
        assert name.startswith("m0\nCCI ")
        np.testing.assert_allclose(float(name.split()[2]), best.cci.estimate, atol=0.005)
    two = many.plot(kind="area", task="depth", methods=["m3", "m9"])
    assert [t.split("\n")[0] for t in texts(two, "curvewise-name")] == ["m3", "m9"]
    assert len(of(two.collections, "curvewise-gain")) == 2
    crowd = many.plot(kind="area", task="depth", methods=many.methods[:6])
    assert len(of(crowd.lines, "curvewise-path")) == 6
    assert of(crowd.collections, "curvewise-gain") == []
    assert "up to 3 methods" in caption(crowd)


def test_another_weight_is_said_not_to_be_the_area():
    ax = measured(weight="log").plot(kind="area")
    assert "weighted otherwise (log)" in caption(ax)
    assert "over all that could be gained" in caption(measured().plot(kind="area"))


def test_cci_in_order_with_intervals_between_scratch_and_maximal(many):
    ax = many.plot(kind="cci")
    assert [t.get_text() for t in ax.get_yticklabels()] == list(many.methods)
    for panel, task in zip(ax.figure.axes, many.tasks, strict=True):
        rows = [many.improvement(task, m).cci for m in many.methods]
        marks = of(panel.lines, "curvewise-cci")
        np.testing.assert_allclose([m.get_xdata()[0] for m in marks], [r.estimate for r in rows])
        assert [m.get_ydata()[0] for m in marks] == list(range(15))
        ends = np.array([s for c in of(panel.collections, "curvewise-interval") for s in c.get_segments()])
        np.testing.assert_allclose(ends[:, :, 0], [(r.low, r.high) for r in rows])
        limits = [line.get_xdata()[0] for line in of(panel.lines, "curvewise-limit")]
        assert limits == [0.0, 1.0]
        left, right = panel.get_xlim()
        assert left <= 0.0 < 1.0 <= right
        hollow = [m.get_markerfacecolor() == "white" for m in marks]
        assert hollow == [many.improvement(task, m).adjusted > 0.05 for m in many.methods]
        shown = [float(t.replace("−", "-")) for t in texts(panel, "curvewise-value")]
        np.testing.assert_allclose(shown, [r.estimate for r in rows], atol=0.0051)


def test_a_method_that_a_task_lacks_and_one_size_say_so():
    found = measured(tasks=("a", "b"))
    gone = ("b", "m1")
    less = replace(
        found,
        improvements=tuple(i for i in found.improvements if (i.task, i.method) != gone),
        curves=tuple(c for c in found.curves if (c.task, c.method) != gone),
    )
    panels = less.plot(kind="cci").figure.axes
    assert "not measured" in texts(panels[1], "curvewise-mark")
    assert "not measured" not in texts(panels[0], "curvewise-mark")
    single = measured(sizes=(100,), runs=1)
    assert texts(single.plot(kind="cci"), "curvewise-mark").count("one shared size") == 3
    elsewhere = [replace(c, n=c.n + 1.0) if c.method == "m1" else c for c in less.curves]
    apart = replace(
        found, improvements=tuple(i for i in found.improvements if i.method != "m1"), curves=tuple(elsewhere)
    )
    assert "no shared size" in texts(apart.plot(kind="cci"), "curvewise-mark")
    for kind in ("curves", "area", "ranks"):
        ax = single.plot(kind=kind)
        ax.figure.draw_without_rendering()
    (line, *_) = of(single.plot().lines, "curvewise-risk")
    assert len(line.get_xdata()) == 1


def test_the_dots_of_the_cci_and_the_summary_agree_after_holm():
    """A method whose own interval leaves 0 out, and that as many tests as there are make unsure."""
    found = measured(3)
    cci = Interval(0.2, 0.01, 0.39)
    rows = [
        replace(i, cci=cci, pvalue=0.04, adjusted=p)
        for i, p in zip(found.improvements, (0.01, 0.05, 0.12), strict=True)
    ]
    changed = replace(found, improvements=tuple(rows))
    ax = changed.plot(kind="cci")
    hollow = [m.get_markerfacecolor() == "white" for m in of(ax.lines, "curvewise-cci")]
    assert hollow == [False, False, True]
    assert "Filled: differs from scratch after Holm's correction" in caption(ax)
    assert "2 of 3 are better than scratch at 5% after Holm's correction" in changed.summary()


def test_borrowed_intervals_are_dashed_and_said_to_be():
    found = measured()
    plain = found.plot(kind="cci")
    assert "dashed" not in caption(plain)
    first, *rest = found.improvements
    some = replace(found, improvements=(replace(first, borrowed=True), *rest))
    ax = some.plot(kind="cci")
    styles = [c.get_linestyle()[0][1] is not None for c in of(ax.collections, "curvewise-interval")]
    assert styles == [True, False, False]
    assert "dashed where" in caption(ax)


def test_one_wide_interval_does_not_set_the_axis_of_all_panels():
    found = measured(tasks=("a", "b"))
    usual = found.plot(kind="cci").figure.axes[0].get_xlim()
    first, *rest = found.improvements
    wide = replace(first, cci=Interval(first.cci.estimate, -3.0, 4.0))
    panels = replace(found, improvements=(wide, *rest)).plot(kind="cci").figure.axes
    assert np.diff(panels[1].get_xlim())[0] < 1.5 * np.diff(usual)[0]
    assert len(of(panels[0].lines, "curvewise-cut")) == 2


def test_the_best_of_each_task_has_a_colour_in_every_kind(many):
    """One that only leads on one task, and is last on the others, is in colour all the same."""
    scores = {("edges", "m14"): 0.95, ("depth", "m14"): -0.3, ("normal", "m14"): -0.3}
    turned = replace(
        many,
        improvements=tuple(
            replace(i, cci=replace(i.cci, estimate=scores.get((i.task, i.method), i.cci.estimate)))
            for i in many.improvements
        ),
    )
    ax = turned.plot(kind="curves", task="edges")
    shades = {t.get_text(): t.get_color() for t in of(ax.texts, "curvewise-end")}
    assert shades["m14"] in map(word_shade, PALETTE)
    assert "the best of each task among them" in caption(ax)
    area = turned.plot(kind="area").figure.axes[list(many.tasks).index("edges")]
    (path,) = of(area.lines, "curvewise-path")
    assert word_shade(path.get_color()) == shades["m14"]


def test_areas_do_not_mix_and_the_smaller_lies_on_top(result):
    ax = result.plot(kind="area", methods=["m0", "m2"])
    areas = of(ax.collections, "curvewise-gain")
    assert all(a.get_alpha() is None and a.get_facecolor()[0][3] == 1.0 for a in areas)
    size = [shoelace(a.get_paths()[0].vertices[:-1]) for a in areas]
    assert areas[int(np.argmin(size))].get_zorder() > areas[int(np.argmax(size))].get_zorder()
    assert "the smallest on top" in caption(ax)


def test_a_long_warning_ends_after_a_sentence_or_a_word(result):
    long = "first: " + ", ".join(f"method_{k}" for k in range(60)) + "."
    sentences = "Sizes differ. " * 5 + "Then " + "more " * 80 + "."
    for text, end in ((long, r"method_\d+ … \(1 more\)$"), (sentences, r"differ\. \(1 more\)$")):
        said = caption(replace(result, warnings=(text, "another")).plot())
        assert re.search(end, said)


def test_unknown_intervals_are_not_drawn():
    found = measured(runs=1)
    assert np.isnan(found.curve("depth", "m0").low).all()
    ax = found.plot()
    assert of(ax.collections, "curvewise-band") == []
    assert of(ax.collections, "curvewise-interval") == []
    assert "intervals" not in caption(ax).split("⚠")[0]
    ax = found.plot(kind="cci")
    assert all(m.get_markerfacecolor() == "white" for m in of(ax.lines, "curvewise-cci"))
    found.plot(kind="equivalence").figure.draw_without_rendering()


def test_what_lies_beyond_the_sizes_of_scratch_is_a_triangle_at_the_edge(result):
    def at(n, estimate, low, high, beyond=None):
        span = Interval(estimate, low, high)
        return Equivalence(n, span, Interval(estimate / n, low / n, high / n), beyond)

    rows = (
        at(100.0, 0.0, 0.0, 150.0, "below"),
        at(1000.0, 3000.0, 2000.0, 4000.0),
        at(10000.0, np.inf, 8000.0, np.inf, "above"),
    )
    first = replace(result.improvement("depth", "m0"), data_equivalence=rows)
    ax = replace(result, methods=("m0",), improvements=(first,)).plot(kind="equivalence")
    (line,) = of(ax.lines, "curvewise-equivalent")
    np.testing.assert_array_equal(line.get_ydata(), [np.nan, 3000.0, np.nan])
    beyond = {b.get_marker(): b for b in of(ax.lines, "curvewise-beyond")}
    assert beyond["^"].get_xdata().tolist() == [10000.0]
    assert beyond["v"].get_xdata().tolist() == [100.0]
    bottom, top = ax.get_ylim()
    assert 10000.0 < beyond["^"].get_ydata()[0] < top
    assert bottom < beyond["v"].get_ydata()[0] < 100.0
    (bars,) = of(ax.collections, "curvewise-interval")
    found = np.array(bars.get_segments())[:, :, 1]
    np.testing.assert_allclose(found[1], [2000.0, 4000.0])
    assert found[2, 1] == beyond["^"].get_ydata()[0]
    (equal,) = of(ax.lines, "curvewise-diagonal")
    np.testing.assert_array_equal(equal.get_xdata(), equal.get_ydata())
    assert ax.get_xscale() == ax.get_yscale() == "log"


def test_nothing_to_draw_is_an_error(result):
    bare = tuple(replace(i, data_equivalence=()) for i in result.improvements)
    with pytest.raises(InputError, match="kind='equivalence': has nothing to draw"):
        replace(result, improvements=bare).plot(kind="equivalence")


def test_differences_have_the_better_method_first(result):
    found = result.comparisons()
    ax = draw(found)
    names = [t.get_text() for t in ax.get_yticklabels()]
    assert set(names) == {"m0 − m1", "m0 − m2", "m1 − m2"}
    values = np.concatenate([d.get_xdata() for d in of(ax.lines, "curvewise-difference")])
    assert (values > 0).all()
    wanted = sorted(abs(r.difference.estimate) for r in found.rows)
    np.testing.assert_allclose(sorted(values), wanted)
    assert len(draw(found, most=1).get_yticklabels()) == 1


@pytest.fixture(scope="module")
def hostile():
    return measured(12, (HOSTILE,), name=HOSTILE + "{}", sizes=(100, 1000))


@pytest.mark.parametrize("kind", list(KINDS))
def test_hostile_names_are_shown_and_settings_left_alone(kind, hostile):
    before = dict(mpl.rcParams)
    for size, layout in (((6.4, 4.8), "constrained"), ((3.3, 2.6), None)):
        figure = Figure(figsize=size, layout=layout)
        ax = figure.add_subplot()
        assert hostile.plot(ax=ax, kind=kind) is ax
        figure.draw_without_rendering()
        assert len(figure.axes) == 1
    own = hostile.plot(kind=kind)
    own.figure.draw_without_rendering()
    shown = [t.get_text() for t in own.figure.findobj(mpl.text.Text)]
    named = [t for t in shown if r"\$x\$" in t]
    assert named or kind == "area"
    assert all(len(part) < 60 for t in named for part in t.split("\n") if "long" in part)
    assert dict(mpl.rcParams) == before


def test_scratch_may_have_another_name(result):
    rows = tuple(replace(c, method="zero-shot") if c.method == "scratch" else c for c in result.curves)
    named = replace(result, scratch="zero-shot", curves=rows)
    ax = named.plot()
    (bold,) = (t for t in of(ax.texts, "curvewise-end") if t.get_fontweight() == "bold")
    assert bold.get_text() == "zero-shot"
    assert texts(named.plot(kind="cci"), "curvewise-limit") == ["zero-shot", "maximal"]
    assert named.plot(kind="area").get_xlabel() == "calibrated risk of zero-shot"
    assert "Diagonal: zero-shot." in caption(named.plot(kind="area"))
    label = named.plot(kind="equivalence").get_ylabel()
    assert label == "training samples that zero-shot needs"


def test_more_names_than_fit_leave_out_those_that_stand_back():
    found = measured(60, sizes=(100, 1000), runs=1)
    ax = found.plot()
    ax.figure.draw_without_rendering()
    named = of(ax.texts, "curvewise-end")
    assert len(named) < 61
    assert {"scratch", *found.methods[:NAMED_IN_CROWD]} <= {t.get_text() for t in named}
    assert untouched(named)


def test_methods_have_colours_of_their_own():
    found = measured(CROWD)
    shades = [to_hex(line.get_color()) for line in of(found.plot().lines, "curvewise-risk")]
    assert sorted(shades) == sorted(["#000000", *(shade.lower() for shade in PALETTE)])
    more = [to_hex(line.get_color()) for line in of(measured(CROWD + 1).plot().lines, "curvewise-risk")]
    coloured = [shade for shade in more if shade != GREY.lower()]
    assert len(coloured) == len(set(coloured)) == NAMED_IN_CROWD + 1
    some = found.plot(methods=["m4"])
    assert {to_hex(line.get_color()) for line in of(some.lines, "curvewise-risk")} == {"#000000", PALETTE[4].lower()}


def test_ticks_of_sizes_are_short_and_do_not_touch():
    assert [compact(n) for n in (18.0, 3161.25, 12800.0, 1e6, 1.5e9)] == ["18", "3,161", "12,800", "1M", "1.5G"]
    sizes = np.array([100.0, 315.0, 1000.0, 3161.0, 10000.0])
    assert thin(sizes, 2.0) == sizes.tolist()
    assert thin(sizes, 0.1) == [100.0, 10000.0]
    assert thin(sizes, 0.05) == [10000.0]
    assert thin(sizes, 0.25) == [100.0, 1000.0, 10000.0]


def test_the_authors_losses(data_dir):
    path = data_dir / "transfer" / "transfer_controls_losses.csv"
    with path.open() as file:
        rows = [r for r in csv.DictReader(file) if not r["method"].endswith("_orig")]
    controls = {name: {} for name in ("blind-guess", "gold")}
    for r in rows:
        if r["method"] in controls:
            controls[r["method"]][r["domain"]] = float(r["test_loss"])
    rows = [r for r in rows if r["method"] not in controls]
    names = {"task": "domain", "method": "method", "n": "train_size", "risk": "test_loss"}
    table = {to: [r[name] for r in rows] for to, name in names.items()}
    table |= {name: np.array(table[name], dtype=float) for name in ("n", "risk")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CurvewiseWarning)
        found = measure_transfer(table, blind=controls["blind-guess"], maximal=controls["gold"])
    for kind in ("curves", "ranks"):  # those that name their curves at their ends
        ax = found.plot(kind=kind)
        ax.figure.draw_without_rendering()
        assert len(ax.figure.axes) == 3
        for panel in ax.figure.axes:
            assert untouched(of(panel.texts, "curvewise-end"))
            assert untouched([t for t in panel.get_xticklabels() if t.get_text()])
    (path,) = of(found.plot(kind="area", task="depth").lines, "curvewise-path")
    assert len(path.get_xdata()) == 4


def test_every_result_of_the_lens_has_a_picture():
    for module in pkgutil.iter_modules(curvewise.transfer.__path__, "curvewise.transfer."):
        importlib.import_module(module.name)
    kinds = [k for k in Result.__subclasses__() if k.__module__.startswith("curvewise.transfer.")]
    assert len(kinds) >= 8
    assert [k.__name__ for k in kinds if picture_of(k) is None] == []


@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"curves"}))
def test_scratch_alone_is_only_curves(kind):
    runs = {"method": ["scratch"] * 4, "n": [100, 100, 1000, 1000], "risk": [0.8, 0.82, 0.5, 0.49]}
    result = measure_transfer(runs, blind=0.9, maximal=0.1)
    with pytest.raises(InputError, match=rf"kind='{kind}': has nothing to draw: there is no method"):
        draw(result, kind=kind)
    assert draw(result).get_ylabel() == "calibrated risk"


def test_a_name_stands_at_the_last_size_with_a_value():
    look = MethodLook("#000000", "a")
    end = end_at(np.array([10.0, 20.0, 30.0]), np.array([0.5, 0.4, np.nan]), look)
    assert (end.x, end.y, end.text) == (20.0, 0.4, "a")
    assert np.isnan(end_at(np.array([10.0]), np.array([np.nan]), look).y)


@pytest.mark.parametrize(("size", "layout"), [((3.3, 2.6), "constrained"), ((6.4, 4.8), None)])
def test_without_room_beside_the_axes_there_is_a_legend_and_no_caption(result, size, layout):
    ax = Figure(figsize=size, layout=layout).add_subplot()
    result.plot(ax=ax, task=result.tasks[0])
    assert ax.get_legend() is not None
    assert not of(ax.texts, "curvewise-end")
    roomy = Figure(figsize=(6.4, 4.8), layout="constrained").add_subplot()
    result.plot(ax=roomy, task=result.tasks[0])
    assert roomy.get_legend() is None
    assert of(roomy.texts, "curvewise-end")


def test_rows_of_cci_leave_room_for_their_names_and_values():
    for tasks in (("a",), ("a", "b", "c")):
        ax = measured(2, tasks=tasks).plot(kind="cci")
        ax.figure.canvas.draw()
        assert untouched(ax.get_yticklabels())
        for panel in ax.figure.axes:
            assert untouched(of(panel.texts, "curvewise-value"))


def test_the_names_of_the_controls_stand_outside_the_range_between_them():
    ax = measured(2).plot()
    ax.figure.canvas.draw()
    maximal = next(t for t in of(ax.texts, "curvewise-control") if t.get_text().startswith("maximal"))
    box = mpl.text.Text.get_window_extent(maximal).transformed(ax.transData.inverted())
    assert ax.get_ylim()[0] < box.y0
    assert box.y1 < 0


def test_a_picture_of_one_task_has_no_warning_about_another():
    result = replace(measured(2, tasks=("a", "b")), warnings=("b: scratch gets worse.",))
    assert "gets worse" in caption(result.plot())
    assert "gets worse" not in caption(result.plot(task="a"))


def test_more_than_was_measured_is_more_than_scratch_was_given():
    given = {
        "method": ["scratch"] * 4 + ["m"] * 6,
        "n": [100, 100, 1000, 1000, 100, 100, 1000, 1000, 10000, 10000],
        "risk": [0.8, 0.82, 0.5, 0.52, 0.6, 0.61, 0.4, 0.41, 0.3, 0.31],
    }
    ax = measure_transfer(given, blind=0.9, maximal=0.1).plot(kind="equivalence")
    (beyond,) = of(ax.patches, "curvewise-measured")
    assert beyond.get_y() == 1000
    assert beyond.get_y() + beyond.get_height() > ax.get_ylim()[1]


def test_a_caption_is_about_the_tasks_that_are_drawn():
    runs = measured(tasks=("depth", "edges"))
    once = tuple(replace(i, borrowed=i.task == "edges") for i in runs.improvements)
    found = replace(runs, improvements=once)
    assert "dashed where" in caption(found.plot(kind="cci"))
    assert "dashed where" not in caption(found.plot(kind="cci", task="depth"))
