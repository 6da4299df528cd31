"""Pictures of ranked checkpoints."""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from scipy import stats

import curvewise.ranking
from curvewise.drawing.picture import draw, picture_of
from curvewise.errors import CurvewiseWarning, InputError
from curvewise.ranking.plot.rank import LARGE, plot_checkpoint_ranking
from curvewise.ranking.rank import rank_features
from curvewise.text import interval_cell
from curvewise.types import Result

HOSTILE = "$x$_<b>\n" + "long " * 30


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


def separation(features, labels):
    """Spread of the classes' centres over that of all examples."""
    centres = np.stack([features[labels == c].mean(axis=0) for c in np.unique(labels)])
    return float(centres.var() / features.var())


def nearest(features, labels, *, test_features=None, test_labels=None):
    """Accuracy of the nearest centre."""
    centres = np.stack([features[labels == c].mean(axis=0) for c in np.unique(labels)])
    far = ((test_features[:, None] - centres) ** 2).sum(axis=2)
    return float((far.argmin(axis=1) == test_labels).mean())


def ranked(count=6, measures=(separation, nearest), name="net {}", **options):
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], 40)
    pool = {name.format(i): labels[:, None] * 0.15 * i + rng.normal(size=(120, 3)) for i in range(count)}
    usual = {"k": 2, "reliability": 0.8, "resamples": 20, "progress": False}
    return rank_features(pool, labels, measures, **(usual | options))


@pytest.fixture(scope="module")
def result():
    return ranked()


def test_ranks_with_intervals_the_best_on_top(result):
    ax = draw(result)
    assert names(ax) == list(result.checkpoints)
    (line,) = of(ax.lines, "curvewise-rank")
    np.testing.assert_allclose(line.get_xdata(), result.ranks)
    wanted = np.column_stack([result.rank_low, result.rank_high])
    # A bar covers every rank that is possible, and is longer than the dot is wide where there is one.
    np.testing.assert_allclose(segments(ax)[:, :, 0], wanted + np.array([-0.3, 0.3]))
    ax.figure.draw_without_rendering()
    left, right = ax.transData.transform([(0.7, 0), (1.3, 0)])[:, 0]
    assert right - left > 1.5 * LARGE * ax.figure.dpi / 72
    (other,) = of(ax.lines, "curvewise-other")
    scores = result.scores["nearest"]
    np.testing.assert_allclose(other.get_xdata(), stats.rankdata(-scores))
    values = [t.get_text().replace("−", "-") for t in of(ax.texts, "curvewise-value")]
    assert values[0] == "separation"
    ends = zip(result.scores["separation"], result.score_low, result.score_high, strict=True)
    assert values[1:] == [cell.text + cell.after for cell in map(interval_cell, ends)]
    chances = [t.get_text() for t in of(ax.texts, "curvewise-chance")]
    assert chances == ["chance\nto be best", *(f"{p:.0%}" for p in result.chance_best)]
    assert "takes separation to correlate with fine-tuned accuracy by 0.80, as given." in caption(ax)
    legend = [t.get_text() for t in ax.get_legend().get_texts()]
    assert legend == ["by separation", "by nearest"]


def test_what_the_legend_names_can_be_seen(result):
    """Where measures agree, small dots lie on large ones; a measure without ranks is not named."""
    same = replace(result, measure_ranks=dict.fromkeys(result.scores, result.ranks))
    order = [line.get_gid() for line in draw(same).lines]
    assert order.index("curvewise-other") > order.index("curvewise-rank")
    nothing = np.full(len(result.ranks), np.nan)
    ax = draw(replace(result, measure_ranks={"separation": result.ranks, "nearest": nothing}))
    assert of(ax.lines, "curvewise-other") == []
    assert ax.get_legend() is None


def test_the_line_is_under_those_to_try_and_the_caption_says_how_sure(result):
    ax = draw(result)
    (line,) = of(ax.lines, "curvewise-top")
    assert line.get_ydata()[0] == 1.5
    said = caption(ax)
    assert "the 2 to try" in said
    assert f"with {result.best_certainty:.0%} certainty" in said
    assert f"highest score with {result.top_certainty:.0%}" in said
    assert of(draw(replace(result, k=6)).lines, "curvewise-top") == []


def test_scores_with_intervals(result):
    ax = plot_checkpoint_ranking(result, kind="scores")
    (line,) = of(ax.lines, "curvewise-score")
    np.testing.assert_allclose(line.get_xdata(), result.scores["separation"])
    left, right = ax.get_xlim()
    wanted = np.clip(np.column_stack([result.score_low, result.score_high]), left, right)
    np.testing.assert_allclose(segments(ax)[:, :, 0], wanted)
    assert ax.get_xlabel() == "separation"
    ranks = [t.get_text() for t in of(ax.texts, "curvewise-value")]
    assert ranks == ["rank", *result.readable()["rank"]]


def test_agreement_of_measures(result):
    ax = plot_checkpoint_ranking(result, kind="agreement")
    (image,) = of(ax.images, "curvewise-cell")
    tau = stats.kendalltau(*result.scores.values()).statistic
    found = np.ma.filled(image.get_array(), np.nan)
    np.testing.assert_allclose(found, [[np.nan, tau], [tau, np.nan]])
    assert names(ax) == ["separation", "nearest"]


def test_one_that_fails_is_named_and_has_no_rank():
    def fussy(features, labels):
        if features.mean() < 0.1:
            raise InputError("not this one")
        return separation(features, labels)

    with pytest.warns(CurvewiseWarning, match="fussy"):
        result = ranked(measures=(fussy,))
    lost = [n for n, r in zip(result.checkpoints, result.ranks, strict=True) if np.isnan(r)]
    assert len(lost) >= 1
    ax = draw(result)
    texts = [t.get_text() for t in of(ax.texts, "curvewise-value")]
    assert texts[-len(lost) :] == ["failed"] * len(lost)
    assert f"{len(lost)} without a rank: {', '.join(lost)}." in caption(ax)
    more = replace(result, failures={"gone.onnx": "no such file"})
    assert f"{len(lost) + 1} without a rank" in caption(draw(more))


def test_ties_share_a_rank_and_no_intervals_are_no_bars():
    def flat(features, labels):
        return 1.0

    result = ranked(measures=(flat,), resamples=0)
    ax = draw(result)
    (line,) = of(ax.lines, "curvewise-rank")
    np.testing.assert_allclose(line.get_xdata(), 3.5)
    assert len(segments(ax)) == 0
    assert "Bars" not in caption(ax)


@pytest.mark.parametrize("count", [2, 41])
def test_rows_do_not_touch(count):
    result = ranked(count, resamples=10)
    for kind in ("ranks", "scores"):
        ax = plot_checkpoint_ranking(result, kind=kind)
        ax.figure.draw_without_rendering()
        assert len(names(ax)) == count
        columns = [*of(ax.texts, "curvewise-value"), *of(ax.texts, "curvewise-chance")]
        for group in (ax.get_yticklabels(), columns, ax.get_xticklabels()):
            boxes = [t.get_window_extent() for t in group if t.get_text()]
            assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
        assert ax.get_tightbbox().x0 >= 0
    few = draw(result, most=2)
    assert len(names(few)) == 2
    assert ("The best 2 of 41 checkpoints." in caption(few)) == (count == 41)


@pytest.mark.parametrize("size", [(6.4, 4.8), (3.3, 2.6)])
def test_hostile_names_are_drawn_and_settings_left_alone(size):
    before = dict(mpl.rcParams)
    result = ranked(20, name=HOSTILE + "{}", resamples=10)
    result = replace(
        result,
        by=HOSTILE,
        scores={HOSTILE: result.scores["separation"], "b": result.scores["nearest"]},
        measure_ranks={HOSTILE: result.ranks, "b": result.measure_ranks["nearest"]},
    )
    for kind in ("ranks", "scores", "agreement"):
        figure = Figure(figsize=size, layout="constrained")
        ax = figure.add_subplot()
        assert result.plot(ax=ax, kind=kind) is ax
        figure.draw_without_rendering()
        assert len(figure.axes) == 1
        result.plot(kind=kind).figure.draw_without_rendering()
    with pytest.raises(InputError, match="kind='pie' is not known"):
        draw(result, kind="pie")
    assert dict(mpl.rcParams) == before


def test_every_result_of_the_lens_has_a_picture():
    for module in pkgutil.iter_modules(curvewise.ranking.__path__, "curvewise.ranking."):
        importlib.import_module(module.name)
    kinds = [k for k in Result.__subclasses__() if k.__module__.startswith("curvewise.ranking.")]
    assert len(kinds) >= 4
    assert [k.__name__ for k in kinds if picture_of(k) is None] == []
