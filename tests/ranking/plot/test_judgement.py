"""Pictures of judged ranking measures, their comparisons and agreement."""

from __future__ import annotations

from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from curvewise.drawing.picture import draw
from curvewise.errors import CurvewiseWarning, InputError
from curvewise.ranking.agreement import ranking_agreement
from curvewise.ranking.judgement import judge_rankings
from curvewise.ranking.load import CheckpointScores
from curvewise.ranking.plot.judgement import plot_ranking_judgement

HOSTILE = "$x$_<b>\n" + "long " * 30
NOISE = {"nleep": 0.03, "logme": 0.08, "knn": 0.2, "parameters": 0.4}


def of(artists, gid):
    return [a for a in artists if a.get_gid() == gid]


def caption(ax):
    (note,) = of(ax.figure.findobj(mpl.text.Text), "curvewise-caption")
    return " ".join(note.get_text().split())


def names(ax):
    return [t.get_text() for t in ax.get_yticklabels()]


def segments(ax):
    found = [c for c in of(ax.collections, "curvewise-interval") if isinstance(c, LineCollection)]
    return np.array([s for c in found for s in c.get_segments()])


def scores(ax):
    """Dots with their colours, from the first row on."""
    dots = [(x, y, line.get_color()) for line in of(ax.lines, "curvewise-score") for x, y in line.get_xydata()]
    return sorted(dots, key=lambda dot: dot[1])


def pool(tasks=3, each=10, groups=1, noise=None, seed=0, cost=True):
    rng = np.random.default_rng(seed)
    count = tasks * each * groups
    accuracy = rng.uniform(0.4, 0.9, count)
    noise = NOISE if noise is None else noise
    scores = {name: accuracy + rng.normal(0, s, count) for name, s in noise.items()}
    plain = tuple(name for name in noise if name == "parameters")
    gflops = {name: np.full(count, 10.0**i) for i, name in enumerate(noise) if name not in plain}
    return CheckpointScores(
        [f"c{i % each}g{i // (tasks * each)}" for i in range(count)],
        accuracy,
        scores,
        [f"t{i // each % tasks}" for i in range(count)],
        [f"g{i // (tasks * each)}" for i in range(count)],
        gflops=gflops if cost else {},
        baselines=plain,
    )


@pytest.fixture(scope="module")
def judged():
    return judge_rankings(pool(), permutations=99)


def test_dots_are_means_with_intervals_the_best_on_top(judged):
    ax = draw(judged)
    rows = sorted((judged.row(name) for name in judged.measures), key=lambda r: -r.kendall.estimate)
    assert names(ax) == [r.measure for r in rows]
    dots = [x for x, _, _ in scores(ax)]
    np.testing.assert_allclose(dots, [r.kendall.estimate for r in rows])
    left, right = ax.get_xlim()
    ends = np.clip([[r.kendall.low, r.kendall.high] for r in rows], left, right)
    bars = sorted(segments(ax).tolist(), key=lambda bar: bar[0][1])
    np.testing.assert_allclose(np.array(bars)[:, :, 0], ends)
    tasks = np.array([line.get_xdata() for line in of(ax.lines, "curvewise-task")])
    wanted = [[judged.row(r.measure, t).kendall.estimate for r in rows] for t in judged.tasks]
    np.testing.assert_allclose(tasks, wanted)
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["mean over tasks", "plain baseline", "a task"]
    shades = {r.measure: shade for r, (_, _, shade) in zip(rows, scores(ax), strict=True)}
    assert shades["parameters"] != shades["nleep"] == shades["logme"]


@pytest.mark.parametrize(
    ("score", "label", "scale"),
    [("rel_at_1", "Rel@1 (%)", 100), ("recall_at_3", "Recall@3 (%)", 100), ("pearson", "Pearson's r", 1)],
)
def test_other_numbers_can_be_drawn(judged, score, label, scale):
    ax = draw(judged, score=score)
    assert ax.get_xlabel() == label
    dots = [x for x, _, _ in scores(ax)]
    wanted = sorted((scale * judged.row(m).value(score) for m in judged.measures), reverse=True)
    np.testing.assert_allclose(dots, wanted)


def test_heat_map_of_measures_and_tasks(judged):
    ax = plot_ranking_judgement(judged, kind="heat")
    (image,) = of(ax.images, "curvewise-cell")
    order = sorted(judged.measures, key=lambda m: -judged.row(m).kendall.estimate)
    wanted = [[judged.row(m, t).kendall.estimate for t in (*judged.tasks, None)] for m in order]
    np.testing.assert_allclose(np.asarray(image.get_array()), wanted)
    assert [t.get_text() for t in ax.get_xticklabels()] == [*judged.tasks, "average"]
    assert "parameters (baseline)" in names(ax)
    bold = [t for t in of(ax.texts, "curvewise-cell") if t.get_fontweight() == "bold"]
    best = {(int(np.argmax(column)), j) for j, column in enumerate(np.transpose(wanted))}
    places = {(round(t.get_position()[1]), round(t.get_position()[0])) for t in bold}
    assert best <= places


def test_cost_against_kendall(judged):
    ax = plot_ranking_judgement(judged, kind="cost")
    dots = sorted((x, y) for x, y, _ in scores(ax))
    wanted = [(10.0**i, judged.row(m).kendall.estimate) for i, m in enumerate(list(NOISE)[:3])]
    np.testing.assert_allclose(dots, wanted)
    assert ax.get_xscale() == "log"
    (line,) = of(ax.lines, "curvewise-baseline")
    assert line.get_ydata()[0] == pytest.approx(judged.row("parameters").kendall.estimate)
    assert {t.get_text() for t in of(ax.texts, "curvewise-name")} == set(list(NOISE)[:3])
    assert "plain baselines, which cost nothing" in caption(ax)
    with pytest.raises(InputError, match="no measure has a cost"):
        plot_ranking_judgement(judge_rankings(pool(cost=False), permutations=9), kind="cost")


def test_a_measure_of_unknown_cost_is_named_under_the_picture():
    table = pool()
    table = replace(table, gflops={"nleep": table.gflops["nleep"]})
    ax = plot_ranking_judgement(judge_rankings(table, permutations=9), kind="cost")
    assert len(scores(ax)) == 1
    assert "Cost unknown, not drawn: logme, knn." in caption(ax)


def test_groups_and_their_union():
    found = judge_rankings(pool(groups=2), permutations=9)
    ax = draw(found)
    dots = [x for x, _, _ in scores(ax)]
    union = sorted((found.row(m).kendall.estimate for m in found.measures), reverse=True)
    np.testing.assert_allclose(dots, union)
    assert "checkpoints: union" in caption(ax)
    one = draw(found, group="g1")
    dots = [x for x, _, _ in scores(one)]
    first = sorted((found.row(m, group="g1").kendall.estimate for m in found.measures), reverse=True)
    np.testing.assert_allclose(dots, first)
    with pytest.raises(InputError, match="group='g9'"):
        draw(found, group="g9")


def test_what_is_unknown_is_said_to_be():
    table = pool(tasks=1)
    table = table.with_scores({"none": np.full(len(table), np.nan)})
    with pytest.warns(CurvewiseWarning, match="no score"):
        found = judge_rankings(table, permutations=9)
    ax = draw(found)
    assert names(ax)[-1] == "none"
    assert [t.get_text() for t in ax.texts if t.get_text() == "unknown"] == ["unknown"]
    heat = plot_ranking_judgement(found, kind="heat")
    assert of(heat.texts, "curvewise-cell")[-1].get_text() == "?"


def test_only_the_best_of_many_and_rows_do_not_touch():
    found = judge_rankings(pool(tasks=2, noise={f"measure {i}": 0.01 * i for i in range(25)}), permutations=9)
    ax = draw(found, most=5)
    assert len(names(ax)) == 5
    assert "The best 5 of 25 measures." in caption(ax)
    assert 3 <= len(names(draw(found, Figure(figsize=(3.3, 2.6)).add_subplot()))) < 25
    for ax in (draw(found), plot_ranking_judgement(found, kind="heat")):
        ax.figure.draw_without_rendering()
        for group in (ax.get_yticklabels(), of(ax.texts, "curvewise-cell")):
            boxes = [t.get_window_extent() for t in group]
            assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
        assert ax.get_tightbbox().x0 >= 0


def test_comparisons_are_a_forest(judged):
    found = judged.comparisons()
    ax = draw(found)
    rows = sorted(found.rows, key=lambda r: -r.difference.estimate)
    assert names(ax) == [f"{r.one} − {r.two}" for r in rows]
    dots = np.concatenate([line.get_xydata() for line in of(ax.lines, "curvewise-difference")])
    dots = dots[np.argsort(dots[:, 1])]
    np.testing.assert_allclose(dots[:, 0], [r.difference.estimate for r in rows])
    shown, _ = of(ax.lines, "curvewise-difference")
    assert len(shown.get_xdata()) == sum(r.adjusted <= 0.05 for r in rows)
    few = draw(found, most=2)
    assert len(names(few)) == 2
    clear = sorted(found.rows, key=lambda r: r.pvalue)[:2]
    assert set(names(few)) == {f"{r.one} − {r.two}" for r in clear}


def test_agreement_of_one_measure():
    rng = np.random.default_rng(0)
    accuracy = rng.random((4, 12))
    found = ranking_agreement(accuracy + rng.normal(0, 0.2, (4, 12)), accuracy)
    ax = draw(found)
    (line,) = of(ax.lines, "curvewise-number")
    np.testing.assert_allclose(line.get_xdata(), [100 * i.estimate for i in found.intervals.values()])
    assert len(of(ax.lines, "curvewise-task")) == len(found.intervals)
    one = draw(ranking_agreement(accuracy[0] + rng.normal(0, 0.2, 12), accuracy[0]))
    assert of(one.lines, "curvewise-task") == []
    assert one.get_legend() is None
    two = ranking_agreement([1.0, 2.0], [0.5, 0.6])
    left, right = draw(two).get_xlim()
    assert left < 100 * min(i.low for i in two.intervals.values())
    assert right > 100


@pytest.mark.parametrize("size", [(6.4, 4.8), (3.3, 2.6)])
def test_pictures_use_the_axes_given_and_leave_settings_alone(size):
    before = dict(mpl.rcParams)
    noise = {f"{HOSTILE}{i}": 0.1 * i + 0.01 for i in range(3)}
    table = pool(tasks=2, noise=noise)
    table = replace(table, tasks=[f"{HOSTILE}{t}" for t in table.tasks])
    judged = judge_rankings(table, permutations=9)
    for result, options in (
        (judged, {}),
        (judged, {"kind": "heat"}),
        (judged, {"kind": "cost"}),
        (judged.comparisons(), {}),
        (ranking_agreement(table.scores[f"{HOSTILE}1"], table.accuracy), {}),
    ):
        figure = Figure(figsize=size, layout="constrained")
        ax = figure.add_subplot()
        assert result.plot(ax=ax, **options) is ax
        figure.draw_without_rendering()
        assert len(figure.axes) == 1
        result.plot(**options).figure.draw_without_rendering()
    with pytest.raises(InputError, match="kind='pie' is not known"):
        draw(judged, kind="pie")
    with pytest.raises(InputError, match="score='rel_at_7' is not known"):
        draw(judged, score="rel_at_7")
    assert dict(mpl.rcParams) == before


@pytest.mark.parametrize("kind", ["dots", "heat", "cost"])
def test_several_groups_have_a_panel_each(kind):
    found = judge_rankings(pool(groups=2), permutations=9)
    ax = plot_ranking_judgement(found, kind=kind, group=found.groups)
    panels = ax.figure.axes
    assert [p.get_title(loc="left") for p in panels] == ["g0", "g1", "union"]
    for panel, group in zip(panels, found.groups, strict=True):
        alone = plot_ranking_judgement(found, kind=kind, group=group)
        for one, two in zip(of(panel.lines, "curvewise-score"), of(alone.lines, "curvewise-score"), strict=True):
            np.testing.assert_array_equal(one.get_xydata(), two.get_xydata())
        images = [np.asarray(a.images[0].get_array()) for a in (panel, alone) if a.images]
        assert len(images) == (2 if kind == "heat" else 0)
        np.testing.assert_array_equal(*(images or (0, 0)))
    if kind == "dots":
        assert len({p.get_xlim() for p in panels}) == 1
    assert "checkpoints:" not in caption(ax)
    with pytest.raises(InputError, match="ax is one Axes, and group names 3"):
        plot_ranking_judgement(found, ax, group=found.groups)
    with pytest.raises(InputError, match="group is empty: use some of 'g0'"):
        plot_ranking_judgement(found, group=[])
