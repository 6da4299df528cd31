"""Pictures of response curves: what is drawn is what was measured, and can be read."""

from dataclasses import replace

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure

from curvewise.drawing.panels import spread_out
from curvewise.drawing.style import word_shade
from curvewise.errors import InputError
from curvewise.response import ResponseCurve, find_contrasting_pairs
from curvewise.response.plot.comparison import plot_response_pairs
from curvewise.response.plot.curves import plot_response, plot_responses

HOSTILE = "$x$_\n" + "long " * 40
GRID = np.linspace(0, 0.5, 6)


def of(artists, gid):
    return [a for a in artists if a.get_gid() == gid]


def falling(drop=0.4, model="net", grid=GRID, **about):
    shares = 0.98 - drop * np.abs(grid) / np.abs(grid).max()
    about = {"clean_correct": 980, "clean_total": 1000, "model": model} | about
    about = {"perturbation": "mixup-intra", "unit": "shares of the partner"} | about
    return ResponseCurve.from_counts(grid, np.round(1000 * shares), 1000, **about)


def shoelace(corners):
    x, y = corners.T
    return 0.5 * abs(np.dot(x, np.roll(y, 1)) - np.dot(y, np.roll(x, 1)))


def overlaps(texts):
    """Pairs of texts that cover each other, after drawing."""
    texts[0].get_figure(root=True).draw_without_rendering()
    boxes = [mpl.text.Text.get_window_extent(t) for t in texts]  # without the leader lines
    return [
        (texts[i].get_text(), texts[j].get_text())
        for i in range(len(boxes))
        for j in range(i)
        if boxes[i].overlaps(boxes[j])
    ]


def caption(figure_or_ax):
    (note,) = of(figure_or_ax.findobj(mpl.text.Text), "curvewise-caption")
    return " ".join(note.get_text().split())


@pytest.mark.parametrize("signs", ["fold", "keep"])
@pytest.mark.parametrize("grid", [GRID, np.linspace(-90, 90, 7), np.array([-1, 0, 0.4, 2])])
def test_the_area_shaded_is_the_gi_score(grid, signs):
    curve = falling(0.6, grid=grid, signs=signs)
    ax = plot_response(curve, kind="cumulative")
    (area,) = of(ax.collections, "curvewise-gi")
    (path,) = area.get_paths()
    assert shoelace(path.vertices) / 0.5 == pytest.approx(curve.gi, abs=1e-12)
    assert f"Gi-score {curve.gi:.3f} [" in ax.get_title(loc="left")


def test_response_and_cumulative_accuracy_stand_side_by_side():
    curve = falling()
    ax = plot_response(curve)
    left, right = ax.figure.axes
    assert ax is left
    (line,) = of(left.lines, "curvewise-response")
    np.testing.assert_allclose(line.get_xydata(), np.c_[curve.magnitude, 100 * curve.accuracy])
    (band,) = of(left.collections, "curvewise-band")
    (path,) = band.get_paths()
    low, high = curve.accuracy_interval()
    assert path.vertices[:, 1].min() == pytest.approx(100 * low.min())
    assert path.vertices[:, 1].max() == pytest.approx(100 * high.max())
    (drawn,) = of(right.lines, "curvewise-cumulative")
    np.testing.assert_allclose(drawn.get_xydata(), np.stack(curve.cumulative, axis=1))
    assert left.get_title(loc="left") == "net, 98.0% clean"
    assert left.get_xlabel() == "mixup-intra (shares of the partner)"
    assert right.get_xlabel() == "magnitude, 0 to 0.5 as 0 to 1"
    said = caption(ax.figure)
    assert f"Gi {curve.gi:.3f}" in said
    assert "on 1,000 examples" in said
    assert of(plot_response(curve, intervals=False).collections, "curvewise-band") == []


@pytest.mark.parametrize(
    ("grid", "signs", "label"),
    [
        ([-180, 0, 180], "fold", "magnitude, 0 to ±180 as 0 to 1"),
        ([-180, 0, 180], "keep", "magnitude, -180 to 180 as 0 to 1"),
        ([-0.5, -0.2, 0], "fold", "magnitude, 0 to −0.5 as 0 to 1"),
        ([-2, -1, 2], "fold", "magnitude, ±1 to ±2 as 0 to 1"),
        ([0.1, 1, 2], "fold", "magnitude, 0.1 to 2 as 0 to 1"),
    ],
)
def test_the_ends_of_the_folded_range_are_said(grid, signs, label):
    curve = falling(grid=np.array(grid, dtype=float), signs=signs)
    assert plot_response(curve, kind="cumulative").get_xlabel() == label


def test_ticks_of_degrees_are_those_people_know():
    ax = plot_response(falling(grid=np.linspace(-180, 180, 9)), kind="response")
    assert ax.get_xticks().tolist() == [-180, -90, 0, 90, 180]
    ax = plot_response(falling(grid=np.linspace(-90, 90, 9)), kind="response")
    assert ax.get_xticks().tolist() == [-90, -45, 0, 45, 90]


def test_one_axes_gets_one_kind():
    ax = Figure(layout="constrained").add_subplot()
    assert plot_response(falling(), ax) is ax
    assert len(of(ax.lines, "curvewise-response")) == 1
    with pytest.raises(InputError, match="kind='both': two Axes are needed"):
        plot_response(falling(), ax, kind="both")
    with pytest.raises(InputError, match="kind='pcd' is not known"):
        plot_response(falling(), kind="pcd")


@pytest.mark.parametrize("drop", [0.0, 0.3, 0.97])
@pytest.mark.parametrize("size", [(3.3, 2.6), (6.4, 4.8)])
def test_words_beside_the_cumulative_curve_do_not_touch_it(drop, size):
    figure = Figure(figsize=size, layout="constrained")
    ax = plot_response(falling(drop), figure.add_subplot(), kind="cumulative")
    assert overlaps(list(ax.texts)) == []
    (curve,) = of(ax.lines, "curvewise-cumulative")
    dense = np.stack([np.linspace(0, 1, 400)] * 2, axis=1)
    dense[:, 1] = np.interp(dense[:, 0], *curve.get_xydata().T)
    (word,) = [t for t in ax.texts if t.get_text() == "measured"]
    box = word.get_window_extent().padded(-1)
    assert not any(box.contains(*p) for p in ax.transData.transform(dense))
    assert box.x1 <= ax.bbox.x1 + 1


def test_names_stand_where_curves_end_and_apart():
    curves = [falling(d, f"net {i}") for i, d in enumerate((0.1, 0.101, 0.102, 0.5, 0.8))]
    ax = plot_responses(curves)
    names = of(ax.texts, "curvewise-end")
    assert [n.get_text() for n in names] == [f"net {i}  Gi {c.gi:.3f}" for i, c in enumerate(curves)]
    assert overlaps(names) == []
    for name, curve in zip(names, curves, strict=True):
        assert name.xy == pytest.approx((0.5, 100 * curve.accuracy[-1]))
    lines = of(ax.lines, "curvewise-response")
    assert [n.get_color() for n in names] == [word_shade(line.get_color()) for line in lines]
    assert len(of(ax.collections, "curvewise-band")) == 5


def test_twenty_curves_that_end_together_are_named_in_order_of_the_score():
    rng = np.random.default_rng(0)
    grid = np.linspace(-180, 180, 13)
    curves = {f"net {i}": falling(d, grid=grid) for i, d in enumerate(rng.uniform(0.5, 0.52, 20))}
    ax = plot_responses(curves)
    scores = [float(t.get_text().split()[-1]) for t in ax.get_legend().get_texts()]
    assert len(scores) == 20
    assert scores == sorted(scores)
    looks = {(line.get_color(), str(line._unscaled_dash_pattern)) for line in of(ax.lines, "curvewise-response")}
    assert len(looks) == 20
    assert of(ax.collections, "curvewise-band") == []
    assert len(of(plot_responses(curves, intervals=True).collections, "curvewise-band")) == 20
    ax.figure.draw_without_rendering()
    assert ax.get_legend().get_window_extent().x1 <= ax.figure.bbox.x1


def test_of_a_crowd_only_the_ends_are_named():
    curves = [falling(0.02 * i, f"net {i}") for i in range(30)]
    ax = plot_responses(curves)
    names = {t.get_text().split("  ")[0] for t in of(ax.texts, "curvewise-end")}
    assert names == {f"net {i}" for i in (0, 1, 2, 27, 28, 29)}
    assert "the 3 lowest and 3 highest Gi of 30" in caption(ax)
    given = plot_responses(curves[:12], Figure().add_subplot())
    assert len(given.get_legend().get_texts()) == 6


def test_a_legend_inside_has_room_of_its_own():
    figure = Figure(figsize=(3.3, 2.6), layout="constrained")
    curves = [falling(0.05 * i, f"net {i}") for i in range(5)]
    ax = plot_responses(curves, figure.add_subplot())
    figure.draw_without_rendering()
    box = ax.get_legend().get_window_extent()
    top = max(ax.transData.transform(line.get_xydata())[:, 1].max() for line in ax.lines)
    assert box.y0 >= top
    assert ax.get_yticks().max() <= 100


def test_what_tells_curves_apart_is_their_name():
    same = falling()
    others = [same, replace(same, layer="conv1"), replace(same, layer="conv2")]
    texts = [t.get_text() for t in plot_responses(others).texts]
    assert [t.split("  ")[0] for t in texts[:3]] == ["input", "conv1", "conv2"]
    turned = falling(grid=np.linspace(-180, 180, 5), perturbation="rotation", unit="degrees")
    ax = plot_responses([same, turned], Figure().add_subplot())
    assert ax.get_xlabel() == "magnitude over the largest"
    lines = of(ax.lines, "curvewise-response")
    np.testing.assert_allclose(lines[1].get_xdata(), [-1, -0.5, 0, 0.5, 1])


def test_each_perturbation_has_a_panel_with_its_unit():
    curves = [
        falling(grid=grid, model=model, perturbation=kind, unit=unit)
        for kind, unit, grid in (
            ("noise", "standard deviations", np.linspace(0, 0.25, 4)),
            ("rotation", "degrees", np.linspace(-30, 30, 5)),
        )
        for model in ("net", "svm")
    ]
    axes = plot_responses(curves).figure.axes
    assert [a.get_title(loc="left") for a in axes] == ["noise", "rotation"]
    assert [a.get_xlabel() for a in axes] == ["standard deviations", "degrees"]
    for ax, pair in zip(axes, (curves[:2], curves[2:]), strict=True):
        lines = of(ax.lines, "curvewise-response")
        np.testing.assert_array_equal(lines[0].get_xdata(), pair[0].magnitude)
        assert [t.get_text().split("  ")[0] for t in ax.get_legend().get_texts()] == ["net", "svm"]
    # A model has one colour in all panels.
    shades = [[line.get_color() for line in of(ax.lines, "curvewise-response")] for ax in axes]
    assert shades[0] == shades[1]
    assert len(set(shades[0])) == 2
    assert [a.get_ylim() for a in axes] == [axes[0].get_ylim()] * 2


def test_high_accuracies_are_looked_at_closely():
    low, high = plot_responses([falling(0.02)]).get_ylim()
    assert 90 < low < 96
    assert 100 < high < 101
    assert plot_responses([falling(0.7)]).get_ylim()[0] == 0


def test_pairs_say_score_accuracy_and_gap():
    a, b = falling(0.3, "a"), falling(0.5, "b")
    ax = plot_response_pairs([(a, b), (b, a)], gaps=[(0.021, 0.1), (0.3, 0.4)], at=0.25)
    assert len(ax.figure.axes) == 2
    texts = [t.get_text() for t in ax.get_legend().get_texts()]
    assert texts[0] == f"a: Gi {a.gi:.3f}, 83.0% at 0.25, gap 2.1%"
    assert texts[1] == f"b: Gi {b.gi:.3f}, 73.0% at 0.25, gap 10.0%"
    one = plot_response_pairs((a, b))
    assert one.get_legend().get_texts()[0].get_text() == f"a: Gi {a.gi:.3f}, 68.0% at 0.5"
    (between,) = of(one.collections, "curvewise-between")
    area = shoelace(between.get_paths()[0].vertices)
    wanted = 100 * np.trapezoid(a.accuracy - b.accuracy, a.magnitude)
    assert area == pytest.approx(wanted)
    narrow = Figure(figsize=(3.3, 2.6), layout="constrained")
    given = plot_response_pairs((a, b), narrow.add_subplot(), gaps=(0.1, 0.2))
    narrow.draw_without_rendering()
    assert given.get_legend().get_window_extent().x1 <= given.bbox.x1


def test_pairs_that_are_none_are_refused():
    a, b = falling(), falling(perturbation="rotation")
    with pytest.raises(InputError, match="pair those to the same"):
        plot_response_pairs((a, b))
    with pytest.raises(InputError, match="ax is one Axes, pairs holds 2"):
        plot_response_pairs([(a, a), (a, a)], Figure().add_subplot())
    with pytest.raises(InputError, match="give two numbers for each of the 1 pair"):
        plot_response_pairs((a, a), gaps=(0.1, 0.2, 0.3))
    with pytest.raises(InputError, match=r"must hold pairs of response curves"):
        plot_response_pairs([a, a, a])
    with pytest.raises(InputError, match="do not meet"):
        plot_response_pairs((a, falling(grid=GRID + 1)))


def test_what_is_no_curve_is_refused():
    with pytest.raises(InputError, match="curves holds a str"):
        plot_responses(["net"])
    with pytest.raises(InputError, match="curves is empty"):
        plot_responses({})
    with pytest.raises(InputError, match="names='top' is not known"):
        plot_responses([falling()], names="top")
    with pytest.raises(InputError, match="level=2"):
        plot_response(falling(), level=2)


@pytest.mark.parametrize("size", [(6.4, 4.8), (3.3, 2.6)])
def test_pictures_use_the_axes_given_and_leave_settings_alone(size):
    before = dict(mpl.rcParams)
    curve = replace(falling(model=HOSTILE, unit=r"$\frac", layer=HOSTILE), warnings=(HOSTILE,))
    for draw in (
        plot_response,
        lambda c, ax: plot_response(c, ax, kind="cumulative"),
        lambda c, ax: plot_responses([c, c], ax),
        lambda c, ax: plot_response_pairs((c, c), ax),
    ):
        figure = Figure(figsize=size, layout="constrained")
        ax = figure.add_subplot()
        assert draw(curve, ax) is ax
        figure.draw_without_rendering()
        assert len(figure.axes) == 1
    assert plt.get_fignums() == []
    for ax in (plot_response(curve), plot_responses([curve] * 3), plot_response_pairs((curve, curve))):
        ax.figure.draw_without_rendering()
    assert dict(mpl.rcParams) == before


def test_labels_move_as_little_as_can_be():
    wanted = np.array([0.9, 0.1, 0.5, 0.52, 0.51])
    places = spread_out(wanted, 0.1)
    order = np.argsort(wanted)
    assert np.diff(places[order]).min() >= 0.1 - 1e-12
    np.testing.assert_allclose(places[order], [0.1, 0.41, 0.51, 0.61, 0.9])
    assert spread_out(np.ones(3), 0.1).max() == pytest.approx(1.0)
    assert spread_out(np.zeros(3), 0.1).min() == pytest.approx(0.0)


def test_contrasting_pairs_are_drawn_with_their_names_and_gaps():
    curves = {name: falling(drop, model="Net") for name, drop in (("a", 0.4), ("b", 0.4), ("c", 0.1))}
    found = find_contrasting_pairs(curves, {"a": 0.1, "b": 0.3, "c": 0.05})
    ax = found.plot()
    (line, other) = (t.get_text() for t in ax.get_legend().get_texts())
    assert line.startswith("b: Gi")
    assert line.endswith("gap 30.0%")
    assert other.startswith("a: Gi")
    with pytest.raises(InputError, match="no pairs to draw"):
        find_contrasting_pairs(curves, [0.1, 0.1, 0.1]).plot()
