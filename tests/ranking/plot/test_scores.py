"""Pictures of checkpoints with accuracies and scores, against numbers by hand."""

from __future__ import annotations

import csv
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from scipy import stats

from curvewise.errors import InputError
from curvewise.ranking.load import CheckpointScores
from curvewise.ranking.plot.scores import place_names, plot_checkpoint_scores, plot_fine_tuning

HOSTILE = "$x$_<b>\n" + "long " * 30


def of(artists, gid):
    return [a for a in artists if a.get_gid() == gid]


def caption(ax):
    (note,) = of(ax.figure.findobj(mpl.text.Text), "curvewise-caption")
    return " ".join(note.get_text().split())


def names(ax):
    return [t.get_text() for t in ax.get_yticklabels()]


def widths(ax):
    """Bars from top to bottom."""
    bars = sorted(of(ax.patches, "curvewise-bar"), key=lambda bar: bar.get_y())
    return [bar.get_width() for bar in bars]


def pool(groups=2, each=6, tasks=3, seed=0):
    """Checkpoints of several groups on tasks, with a reference in each group."""
    rng = np.random.default_rng(seed)
    rows = [
        (f"g{g}", f"t{t}", "scratch" if c == each else f"c{g}{c}")
        for g in range(groups)
        for t in range(tasks)
        for c in range(each + 1)
    ]
    group, task, name = map(list, zip(*rows, strict=True))
    accuracy = rng.uniform(0.4, 0.9, len(rows))
    scores = {"good": accuracy + rng.normal(0, 0.05, len(rows)), "bad": rng.normal(size=len(rows))}
    return CheckpointScores(name, accuracy, scores, task, group, reference=("scratch",))


@pytest.fixture(scope="module")
def first_group(data_dir: Path) -> CheckpointScores:
    """Table 7 of the paper: the checkpoints of figure 1."""
    with open(data_dir / "ranking" / "neucrab_tables" / "table7.csv", newline="") as stream:
        table = list(csv.DictReader(stream))
    rows = [(r["Dataset"], k, float(v) / 100) for r in table for k, v in r.items() if k != "Dataset"]
    task, name, accuracy = map(list, zip(*rows, strict=True))
    return CheckpointScores(name, accuracy, tasks=task, reference=("From-Scratch",))


def test_bars_are_the_paper_s_accuracies_less_their_mean(first_group):
    ax = plot_fine_tuning(first_group, order="table")
    panels = ax.figure.axes
    assert [p.get_title(loc="left").split("\n")[0] for p in panels] == list(first_group.task_names)
    assert names(ax)[-1] == "From-Scratch"
    part = first_group.by_task()["Camelyon"]
    ranked = part.accuracy[part.checkpoints != "From-Scratch"]
    scratch = part.accuracy[part.checkpoints == "From-Scratch"]
    wanted = 100 * (np.concatenate([ranked, scratch]) - ranked.mean())
    np.testing.assert_allclose(widths(panels[2]), wanted)
    assert f"mean {100 * ranked.mean():.1f}%" in panels[2].get_title(loc="left")
    # Some generative models lie below training from scratch, as the text says of figure 1.
    *others, last = widths(panels[0])
    below = [name for name, width in zip(names(ax), others, strict=False) if width < last]
    assert set(below) == {"WAE-UKL", "WAE-GAN"}


@pytest.mark.parametrize("count", [8, 9])
def test_kinds_that_have_no_colour_of_their_own_have_none(count):
    names = [f"c{i}" for i in range(count)]
    ax = plot_fine_tuning(CheckpointScores(names, np.linspace(0.5, 0.9, count)), kinds={n: f"kind {n}" for n in names})
    shades = [to_hex(bar.get_facecolor()) for bar in of(ax.patches, "curvewise-bar")]
    assert len(set(shades)) == (8 if count == 8 else 1)


def test_the_best_on_average_is_on_top_and_colours_tell_kinds(first_group):
    kinds = {
        name: "generative" if "AE" in name or "GAN" in name else "other"
        for name in first_group.checkpoints.tolist()
        if name != "From-Scratch"
    }
    ax = plot_fine_tuning(first_group, kinds=kinds)
    mean = {n: first_group.accuracy[first_group.checkpoints == n].mean() for n in names(ax)[:-1]}
    assert list(mean) == sorted(mean, key=lambda n: -mean[n])
    bars = sorted(of(ax.patches, "curvewise-bar"), key=lambda bar: bar.get_y())
    shades = [to_hex(bar.get_facecolor()) for bar in bars]
    assert shades[-1] == "#000000"
    assert len(set(shades)) == 3
    told = {kinds[n]: s for n, s in zip(names(ax)[:-1], shades, strict=False)}
    assert [told[kinds[n]] for n in names(ax)[:-1]] == shades[:-1]
    (legend,) = ax.figure.legends
    assert {t.get_text() for t in legend.get_texts()} == {"generative", "other", "From-Scratch"}
    with pytest.raises(InputError, match="kinds says nothing of 'Cond-BigGAN'"):
        plot_fine_tuning(first_group, kinds={"VAE": "generative"})


def test_groups_are_rows_with_means_of_their_own():
    table = pool(groups=2, tasks=3)
    panels = plot_fine_tuning(table).figure.axes
    assert len(panels) == 6
    assert [p.get_ylabel() for p in panels] == ["g0", "", "", "g1", "", ""]
    part = table.by_group()["g1"].by_task()["t2"]
    offset = 100 * (part.accuracy - part.accuracy[part.ranked].mean())
    np.testing.assert_allclose(sorted(widths(panels[5])), np.sort(offset))
    one = plot_fine_tuning(table, group="g1", task="t2")
    np.testing.assert_allclose(sorted(widths(one)), np.sort(offset))


def test_a_failed_fine_tuning_is_said_to_have_failed():
    table = CheckpointScores(["a", "b", "c"], [0.5, np.nan, 0.7])
    ax = plot_fine_tuning(table)
    assert names(ax) == ["c", "a", "b"]
    np.testing.assert_allclose(widths(ax), [10, -10])
    assert [t.get_text() for t in of(ax.texts, "curvewise-failed")] == ["failed"]
    assert "1 accuracies are not numbers" in caption(ax)


def test_other_scores_than_accuracies_are_not_percentages():
    ax = plot_fine_tuning(CheckpointScores(["a", "b"], [20.0, 30.0]))
    np.testing.assert_allclose(widths(ax), [5, -5])
    assert ax.get_xlabel() == "accuracy − mean"


@pytest.mark.parametrize("tasks", [1, 4, 9])
def test_names_of_41_checkpoints_do_not_touch(tasks):
    table = pool(groups=1, each=41, tasks=tasks)
    ax = plot_fine_tuning(table)
    ax.figure.draw_without_rendering()
    assert len(ax.figure.axes) == tasks
    for panel in ax.figure.axes:
        boxes = [t.get_window_extent() for t in panel.get_yticklabels() if t.get_text()]
        assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
        assert panel.get_tightbbox().x0 >= 0


def test_dots_are_scores_and_accuracies_and_titles_their_correlation():
    table = pool(groups=2, tasks=2)
    ax = plot_checkpoint_scores(table)
    panels = ax.figure.axes
    assert [p.get_xlabel() for p in panels] == ["good", "good", "bad", "bad"]
    here = table.ranked & (table.tasks == "t1")
    x, y = table.scores["bad"][here], table.accuracy[here]
    dots = np.concatenate([d.get_offsets() for d in of(panels[3].collections, "curvewise-checkpoints")])
    np.testing.assert_allclose(sorted(map(tuple, dots)), sorted(zip(x, 100 * y, strict=True)))
    tau, r = stats.kendalltau(x, y).statistic, stats.pearsonr(x, y).statistic
    said = f"n = 12, τ = {tau:.2f}, r = {r:.2f}".replace("-", "−")
    assert panels[3].get_title(loc="left") == said
    assert panels[1].get_title(loc="left").startswith("t1\n")
    (ring,) = of(panels[3].collections, "curvewise-chosen")
    np.testing.assert_allclose(ring.get_offsets(), [[x.max(), 100 * y[np.argmax(x)]]])


def test_references_are_lines_and_never_dots():
    table = pool(groups=2, tasks=1)
    ax = plot_checkpoint_scores(table, "good")
    lines = [line.get_ydata()[0] for line in of(ax.lines, "curvewise-reference")]
    wanted = 100 * table.accuracy[table.checkpoints == "scratch"]
    np.testing.assert_allclose(sorted(lines), np.sort(wanted))
    dots = of(ax.collections, "curvewise-checkpoints")
    assert sum(len(d.get_offsets()) for d in dots) == 12
    assert "Dashed: scratch, not ranked." in caption(ax)


def test_a_checkpoint_of_several_groups_is_one_dot():
    table = CheckpointScores(
        ["a", "b", "b", "c"], [0.5, 0.6, 0.6, 0.8], {"m": [1, 2, 2, 3]}, groups=["g", "g", "h", "h"]
    )
    assert "n = 3" in plot_checkpoint_scores(table).get_title(loc="left")
    assert "n = 2" in plot_checkpoint_scores(table, group="h").get_title(loc="left")


def test_what_is_no_number_is_left_out_and_counted():
    table = CheckpointScores(
        ["a", "b", "c", "d"], [0.5, np.nan, 0.7, 0.8], {"m": [1, 2, 3, np.nan], "none": [np.nan] * 4}
    )
    ax = plot_checkpoint_scores(table)
    first, second = ax.figure.axes
    assert first.get_title(loc="left") == "n = 2, τ = 1.00, r = ?"
    assert second.get_title(loc="left") == "no checkpoint has both numbers"
    assert "6 dot(s) left out" in caption(ax)
    flat = CheckpointScores(["a", "b", "c"], [0.5, 0.6, 0.7], {"flat": [1, 1, 1]})
    assert plot_checkpoint_scores(flat).get_title(loc="left") == "n = 3, τ = ?, r = ?"


def test_refused_in_words():
    table = pool(tasks=2)
    ax = Figure().add_subplot()
    with pytest.raises(InputError, match="ax is one Axes, there are 2 group"):
        plot_fine_tuning(table, ax)
    with pytest.raises(InputError, match="ax is one Axes, there are 1 measure"):
        plot_checkpoint_scores(table, "good", ax)
    with pytest.raises(InputError, match="measures='nleep' is not known: use one of 'good', 'bad'"):
        plot_checkpoint_scores(table, "nleep")
    with pytest.raises(InputError, match="task='t9' is not known"):
        plot_fine_tuning(table, task="t9")
    with pytest.raises(InputError, match="group='g9' is not known"):
        plot_checkpoint_scores(table, group="g9")
    with pytest.raises(InputError, match="order='best' is not known"):
        plot_fine_tuning(table, order="best")
    with pytest.raises(InputError, match="table has no scores"):
        plot_checkpoint_scores(CheckpointScores(["a"], [0.5]))
    with pytest.raises(InputError, match="table is a dict"):
        plot_fine_tuning({"a": 0.5})


@pytest.mark.parametrize("size", [(6.4, 4.8), (3.3, 2.6)])
def test_hostile_names_are_drawn_and_settings_left_alone(size):
    before = dict(mpl.rcParams)
    some = [f"{HOSTILE}{i}" for i in range(3)]
    table = CheckpointScores(some, [0.5, 0.6, 0.7], {HOSTILE: [1, 2, 2]}, [HOSTILE] * 3, [HOSTILE] * 3, some[:1])
    for draw in (plot_fine_tuning, plot_checkpoint_scores):
        figure = Figure(figsize=size, layout="constrained")
        ax = figure.add_subplot()
        assert draw(table, ax=ax) is ax
        figure.draw_without_rendering()
        draw(table).figure.draw_without_rendering()
    assert dict(mpl.rcParams) == before


def test_names_beside_dots_keep_apart():
    rng = np.random.default_rng(3)
    x, y = rng.uniform(size=14), rng.uniform(size=14)
    figure = Figure(figsize=(7, 4.5))
    ax = figure.add_subplot()
    ax.scatter(x, y)
    ax.set(xlim=(-0.1, 1.1), ylim=(-0.1, 1.1))
    place_names(ax, x, y, [(i, f"measure {i}") for i in range(14)])
    figure.draw_without_rendering()
    texts = of(ax.texts, "curvewise-name")
    boxes = [mpl.text.Text.get_window_extent(t) for t in texts]
    assert len(boxes) == 14
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
    dots = ax.transData.transform(np.column_stack([x, y]))
    assert sum(box.contains(*dot) for box in boxes for dot in dots) == 0


def test_the_legend_names_references_last():
    table = CheckpointScores(
        ["a", "b", "scratch"], [0.7, 0.8, 0.6], {"nleep": [1.0, 2.0, np.nan]}, reference=("scratch",)
    )
    ax = plot_checkpoint_scores(table, kinds={"a": "large", "b": "small"})
    texts = [text.get_text() for text in ax.get_figure().findobj(mpl.legend.Legend)[0].get_texts()]
    assert texts == ["large", "small", "reference, not ranked"]
