"""Measures against the gap: the dots, and what stands over them."""

from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy.stats import pearsonr

from curvewise.errors import InputError
from curvewise.response.cmi import cmi_score
from curvewise.response.load import ModelCorpus
from curvewise.response.plot.measures import plot_measures

HOSTILE = "$x$_\n" + "long " * 40


def of(artists, gid="curvewise-models"):
    return [a for a in artists if a.get_gid() == gid]


def dots(ax):
    return np.concatenate([np.asarray(c.get_offsets()) for c in of(ax.collections)])


def caption(ax):
    (note,) = of(ax.figure.findobj(mpl.text.Text), "curvewise-caption")
    return " ".join(note.get_text().split())


def make(tasks=2, models=24, seed=0, **changes):
    rng = np.random.default_rng(seed)
    count = tasks * models
    depth, width = rng.choice([2, 4, 8], count), rng.choice([16, 64], count)
    batch_norm = rng.choice(["yes", "no"], count)
    gap = 0.05 + 0.02 * depth / 8 + 0.02 * rng.random(count)
    given = {
        "models": [f"m{i}" for i in range(count)],
        "hyperparameters": {"depth": depth, "width": width, "norm": batch_norm},
        "gap": gap,
        "measures": {
            "gi": gap + 0.004 * rng.standard_normal(count),
            "pal": 84 - 100 * gap + rng.standard_normal(count),
            "product": 10 ** (60 * gap + rng.standard_normal(count)),
        },
        "orientation": {"gi": 1, "pal": -1},
        "tasks": np.repeat([f"task {i}" for i in range(tasks)], models) if tasks > 1 else None,
    }
    return ModelCorpus(**(given | changes))


def test_a_panel_for_each_task_with_n_cmi_and_r():
    corpus = make()
    ax = plot_measures(corpus, "gi")
    panels = ax.figure.axes
    assert len(panels) == 2
    for panel, (task, here) in zip(panels, corpus.by_task().items(), strict=True):
        seen, wanted = dots(panel), np.c_[here.measures["gi"], 100 * here.gap]
        np.testing.assert_allclose(seen[np.lexsort(seen.T)], wanted[np.lexsort(wanted.T)])
        score = cmi_score(here.measures["gi"], here.gap, here.hyperparameters, orientation=1)
        r = pearsonr(here.measures["gi"], here.gap).statistic
        title = f"{task}\nn = 24, CMI {100 * score:.1f}%, r = {r:.2f}"
        assert panel.get_title(loc="left") == title.replace("-", "−")
    assert panels[0].get_xlabel() == "gi"


def test_measures_are_rows_and_tasks_columns():
    ax = plot_measures(make(3), ["gi", "pal"])
    labels = [(a.get_xlabel(), a.get_title(loc="left").split("\n")[0]) for a in ax.figure.axes]
    assert labels == [(m, f"task {t}") for m in ("gi", "pal") for t in range(3)]
    grid = ax.get_subplotspec().get_gridspec()
    assert (grid.nrows, grid.ncols) == (2, 3)
    assert "Higher should mean a smaller gap: pal." in caption(ax)
    assert len(plot_measures(make(1)).figure.axes) == 3


def test_colours_are_those_of_the_hyperparameter_that_tells_most():
    corpus = make(1, 60)
    ax = plot_measures(corpus, "gi")
    assert ax.get_legend().get_title().get_text() == "depth"
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["2", "4", "8"]
    for found, value in zip(of(ax.collections), (2, 4, 8), strict=True):
        rows = corpus.hyperparameters["depth"] == value
        np.testing.assert_allclose(found.get_offsets()[:, 0], corpus.measures["gi"][rows])
    looks = {tuple(c.get_facecolor()[0]) for c in of(ax.collections)}
    assert len(looks) == 3
    shapes = {c.get_paths()[0].vertices.tobytes() for c in of(ax.collections)}
    assert len(shapes) == 3
    by_norm = plot_measures(corpus, "gi", colours="norm").get_legend()
    assert [t.get_text() for t in by_norm.get_texts()] == ["no", "yes"]


def test_hyperparameters_with_too_many_values_get_no_colours():
    corpus = make(1, 30, hyperparameters={"rate": np.linspace(0.1, 1, 30)})
    ax = plot_measures(corpus, "gi")
    assert ax.get_legend() is None
    assert len(of(ax.collections)) == 1
    with pytest.raises(InputError, match="colours='rate' has 30 values"):
        plot_measures(corpus, "gi", colours="rate")
    mixed = make(1, 4, hyperparameters={"drop": [None, 0.5, None, 0.1]})
    legend = plot_measures(mixed, "gi").get_legend()
    assert [t.get_text() for t in legend.get_texts()] == ["0.1", "0.5", "None"]


def test_what_the_score_warns_of_stands_in_the_caption():
    corpus = make(1, 12, hyperparameters={"rate": np.arange(12), "depth": [1, 2] * 6})
    ax = plot_measures(corpus, "gi")
    assert "⚠" in caption(ax)
    assert "rate" in caption(ax)


def test_measures_over_decades_get_a_log_scale():
    ax = plot_measures(make(1), "product")
    assert ax.get_xscale() == "log"
    ax.figure.draw_without_rendering()
    boxes = [t.get_window_extent() for t in ax.get_xticklabels() if t.get_text()]
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
    assert plot_measures(make(1), "gi").get_xscale() == "linear"


def test_what_is_no_number_is_left_out_and_said():
    corpus = make(1)
    gi = corpus.measures["gi"].copy()
    gi[[3, 7]] = np.nan, np.inf
    ax = plot_measures(corpus.with_measures({"gi": gi}, 1), "gi")
    assert len(dots(ax)) == 22
    assert ax.get_title(loc="left").startswith("n = 22,")
    assert "2 dot(s) left out" in caption(ax)
    none = plot_measures(corpus.with_measures({"gi": np.full(24, np.nan)}), "gi")
    assert none.get_title(loc="left") == "no model has a number"
    same = plot_measures(corpus.with_measures({"gi": np.ones(24)}), "gi")
    assert "r = unknown" in same.get_title(loc="left")
    one = plot_measures(corpus.select([0]), "gi")
    assert one.get_title(loc="left") == "n = 1, CMI unknown, r = unknown"


def test_a_choice_that_is_not_there_is_refused():
    corpus = make()
    with pytest.raises(InputError, match="measures='x' is not in the corpus: use 'gi', 'pal'"):
        plot_measures(corpus, "x")
    with pytest.raises(InputError, match="task='x' is not known: use 'task 0', 'task 1'"):
        plot_measures(corpus, "gi", task="x")
    with pytest.raises(InputError, match="colours='x' is not a hyperparameter"):
        plot_measures(corpus, "gi", colours="x")
    with pytest.raises(InputError, match=r"ax is one Axes, there are 1 measure.s. and 2 task"):
        plot_measures(corpus, "gi", Figure().add_subplot())


@pytest.mark.parametrize("size", [(6.4, 4.8), (3.3, 2.6)])
def test_hostile_names_on_axes_given(size):
    before = dict(mpl.rcParams)
    settings = {HOSTILE + "s": ["$a$", "b" * 99] * 12}
    corpus = replace(make(1, 24, hyperparameters=settings), tasks=[HOSTILE] * 24)
    corpus = corpus.with_measures({HOSTILE: corpus.gap})
    figure = Figure(figsize=size, layout="constrained")
    ax = figure.add_subplot()
    assert plot_measures(corpus, HOSTILE, ax) is ax
    figure.draw_without_rendering()
    assert r"\$x\$" in ax.get_xlabel()
    assert len(figure.axes) == 1
    plot_measures(corpus, [HOSTILE, "gi"]).figure.draw_without_rendering()
    assert dict(mpl.rcParams) == before
