"""Pictures of evaluations: what is drawn agrees with the result, whatever the names."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from matplotlib import pyplot as plt

import curvewise as cw
import curvewise.evals
from curvewise.drawing.picture import picture_of
from curvewise.drawing.plans import PATH
from curvewise.drawing.rows import CELL, DIFFERENCE
from curvewise.evals.plot import COUNT, CURVE, FRONTIER, POINT, QUESTION, SCORE, TIE, VALUE, model_names

HOSTILE = ("$x^2$", "a\nb", "_hidden", "模型", "x" * 300)


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def made(models: int, questions: int = 120, samples: int = 1, names: tuple[str, ...] | None = None) -> cw.Evals:
    rng = np.random.default_rng(0)
    skill, ease = np.linspace(1.5, -0.5, models), 1.5 * rng.normal(size=questions)
    chance = 1 / (1 + np.exp(-(skill[:, None] + ease)))
    scores = rng.random((models, questions, samples)) < chance[:, :, None]
    return cw.Evals(scores, names or tuple(f"m{i}" for i in range(models)), np.arange(questions))


def of(ax, gid):
    return [artist for artist in ax.findobj() if artist.get_gid() == gid]


def test_scores_are_drawn_best_first() -> None:
    e = made(5)
    found = cw.score_evals(e)
    ax = found.plot()
    (dots,) = of(ax, SCORE)
    assert np.allclose(dots.get_xdata(), np.sort(found.scores)[::-1])
    assert [t.get_text() for t in ax.get_yticklabels()] == [f"m{m}" for m in np.argsort(-found.scores, kind="stable")]
    assert len(of(ax, VALUE)) == 5


@pytest.mark.parametrize("models", [2, 5, 28])
def test_bars_stand_beside_models_that_do_not_differ(models) -> None:
    found = cw.rank_models(made(models))
    ax = found.plot()
    ties = of(ax, TIE)
    groups = [g for g in found.groups if len(g) > 1]
    assert len(ties) == len(groups)
    for line, group in zip(ties, groups, strict=True):
        top, bottom = line.get_ydata()
        assert found.models[int(np.ceil(top)) : int(np.floor(bottom)) + 1] == group
    # Two bars that share a model stand side by side.
    columns: dict[float, list[tuple[float, float]]] = {}
    for line in ties:
        columns.setdefault(round(float(line.get_xdata()[0]), 6), []).append(tuple(line.get_ydata()))
    assert all(
        a[1] < b[0] for spans in columns.values() for a, b in zip(sorted(spans), sorted(spans)[1:], strict=False)
    )
    ranks = [t.get_text() for t in of(ax, VALUE)]
    low, high = int(found.rank_low[0]), int(found.rank_high[0])
    assert ranks[0] == (f"{low}" if low == high else f"{low}–{high}")


def test_questions_are_counted_in_cells() -> None:
    e = made(2, samples=1)
    found = cw.compare_evals(e, "m0", "m1")
    ax = found.plot()
    assert len(of(ax, CELL)) == 1
    counts = [int(t.get_text()) for t in of(ax, COUNT)]
    assert sum(counts) == found.questions
    assert {found.wins[0], found.wins[1]} <= set(counts)
    assert [t.get_text() for t in ax.get_xticklabels()] == ["wrong", "right"]
    (cells,) = of(ax, CELL)
    key = [1 - c[3] * (1 - np.array(c[:3])) for c in (patch.get_facecolor() for patch in ax.get_legend().get_patches())]
    tones = cells.get_array()
    # The key has the colours of the cells; those on which both are right, or wrong, share one.
    assert np.allclose([tones[1, 0], tones[0, 1], tones[0, 0]], key)
    assert np.array_equal(tones[0, 0], tones[1, 1])


def test_graded_scores_are_dots() -> None:
    rng = np.random.default_rng(0)
    e = cw.Evals(rng.random((2, 80)), ("a", "b"), np.arange(80))
    found = cw.compare_evals(e, "a", "b")
    points = np.concatenate([c.get_offsets() for c in of(found.plot(), QUESTION)])
    assert len(points) == 80
    assert sum(y > x for x, y in points) == found.wins[0]
    (dot,) = of(found.plot(what="difference"), DIFFERENCE)
    assert dot.get_xdata()[0] == found.difference.estimate


def test_frontier_passes_through_the_plan() -> None:
    plan = cw.plan_evals(0.05, pilot=made(2, samples=4))
    ax = plan.plot()
    lines = of(ax, FRONTIER)
    assert len(lines) == 3
    x, y = lines[1].get_data()
    assert dict(zip(x.tolist(), y.tolist(), strict=True))[plan.samples[0]] == plan.questions
    assert {(int(p.get_xdata()[0]), int(p.get_ydata()[0])) for p in of(ax, POINT)} == {
        (4, plan.questions),
        plan.cheapest[::-1],
    }
    with pytest.raises(cw.InputError, match="no frontier"):
        cw.plan_evals(0.05, pilot=made(2)).plot(what="frontier")


@pytest.mark.filterwarnings("ignore:the plan already stopped")
def test_passes_looks_and_judges_are_drawn() -> None:
    curve = cw.evals.measure_passes(made(3, samples=4))
    assert [len(line.get_xdata()) for line in of(curve.plot(), CURVE)] == [4, 4, 4]
    looks = cw.evals.plan_looks([60, 120], draws=2000)
    looks.plot()
    looks.plot(what="questions")
    check = cw.evals.check_looks(made(2), "m0", "m1", looks)
    assert sum(len(line.get_xdata()) for line in of(check.plot(), PATH)) == len(check.looked)
    e = made(2)
    cw.evals.correct_judge(e, e.select(questions=np.arange(40))).plot()


def test_every_answer_about_models_has_a_picture() -> None:
    kinds = ("ModelScores", "ModelRanking", "PassCurve", "EvalComparison", "EvalPlan", "LookPlan", "LookCheck")
    assert [k for k in (*kinds, "JudgeCorrection") if picture_of(getattr(curvewise.evals, k)) is None] == []


@pytest.mark.filterwarnings("error")
def test_any_name_can_be_drawn_and_in_small_axes() -> None:
    e = made(5, samples=2, names=HOSTILE)
    results = [cw.score_evals(e), cw.rank_models(e), cw.evals.measure_passes(e), cw.compare_evals(e, *HOSTILE[:2])]
    for found in results:
        found.plot().figure.canvas.draw()
        _, axes = plt.subplots(2, 2, figsize=(6, 5))
        assert found.plot(axes[0, 0]) is axes[0, 0]
        axes[0, 0].figure.canvas.draw()


def test_names_of_curves_do_not_touch_in_small_axes() -> None:
    _, axes = plt.subplots(2, 2, figsize=(7, 5))
    ax = cw.evals.measure_passes(made(5, samples=2)).plot(axes[0, 0])
    ax.figure.canvas.draw()
    boxes = [t.get_window_extent() for t in of(ax, "curvewise-end")]
    tops = sorted((box.y0, box.y1) for box in boxes)
    assert len(boxes) == 5
    assert all(low[1] <= high[0] + 1 for low, high in pairwise(tops))


def test_long_names_lose_what_they_share() -> None:
    names = ["deepseek-base-33b_temp0.8_output", "phi-2_temp0.8_output"]
    assert model_names(names, 30) == ["deepseek-base-33b…", "phi-2…"]
    assert model_names(["llama-4-maverick-17b-00001", "llama-4-maverick-17b-00002"], 20)[0].endswith("00001")
    assert len(set(model_names(["x" * 60 + "1", "x" * 60 + "2"], 20))) == 2


def test_long_names_lose_what_they_share_before_what_tells_them_apart() -> None:
    names = [f"deepseek-instruct-{size}b_temp0.8_output" for size in ("1.3", "6.7", "33")] + ["phi-1_temp0.8_output"]
    short = model_names(names, 22)
    assert [name[-6:] for name in short] == ["-1.3b…", "-6.7b…", "t-33b…", "phi-1…"]
    assert max(map(len, short)) <= 22


def test_a_question_without_an_error_is_right() -> None:
    scores = (np.random.default_rng(0).random((2, 40)) < 0.3).astype(float)
    for better in (True, False):
        e = cw.Evals(scores, ("a", "b"), np.arange(40), higher_is_better=better)
        ticks = [t.get_text() for t in cw.compare_evals(e, "a", "b").plot().get_xticklabels()]
        assert ticks == (["wrong", "right"] if better else ["right", "wrong"])
