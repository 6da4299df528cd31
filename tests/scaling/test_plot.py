"""Pictures of scaling laws: what is drawn agrees with the result."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.text import Text

import curvewise as cw
from curvewise.drawing.picture import picture_of
from curvewise.scaling import ScalingRuns
from curvewise.scaling.plot import (
    BEST,
    BUDGET,
    CONTOUR,
    CROSSING,
    HELD_OUT,
    MINIMUM,
    PARABOLA,
    PATH,
    PLANNED,
    PREDICTED,
    RATIO,
    RESIDUAL,
    RUN,
    WINDOW,
    graded,
    log_axis,
    write_count,
    write_flops,
)

pytestmark = pytest.mark.filterwarnings("ignore::curvewise.CurvewiseWarning")


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


@pytest.fixture
def law(made):
    return cw.fit_scaling_law(made(noise=0.004))


def of(ax, gid):
    return [artist for artist in ax.findobj() if artist.get_gid() == gid]


def test_contours_runs_path_and_budget(law) -> None:
    ax = law.plot(budget=1e23)
    (named,) = (t.get_text() for t in ax.get_legend().get_texts() if t.get_text().startswith("10²³: "))
    assert named.endswith("tokens")
    assert of(ax, CONTOUR)
    (dots,) = of(ax, RUN)
    assert np.allclose(dots.get_xdata(), law.runs.compute)
    assert np.allclose(dots.get_ydata(), law.runs.params)
    (path,) = of(ax, PATH)
    c, n = path.get_data()
    assert np.allclose(n, [i.estimate for i in law.compute_optimal(c).params])
    (mark,) = of(ax, BUDGET)
    assert mark.get_xdata()[0] == 1e23
    assert mark.get_ydata()[0] == pytest.approx(law.compute_optimal(1e23).params.estimate)
    assert ax.get_xlim()[1] > 1e23
    assert "1B" in [ax.yaxis.get_major_formatter()(v, 0) for v in ax.yaxis.get_major_locator()()]
    with pytest.raises(cw.InputError, match="what"):
        law.plot(what="loss")
    with pytest.raises(cw.InputError, match="budget"):
        law.plot(what="sizes")


def test_flagged_runs_are_hollow(made) -> None:
    table = made(noise=0.004)
    flagged = np.arange(len(table["loss"])) < 3
    law = cw.fit_scaling_law(ScalingRuns(**table, flagged=flagged))
    filled, hollow = of(law.plot(), RUN)
    assert len(filled.get_xdata()) == (~flagged).sum()
    assert len(hollow.get_xdata()) == 3
    assert hollow.get_markerfacecolor() == "none"


def test_residuals_are_of_every_run_and_diverged_ones_stand_at_the_edge(made) -> None:
    table = made(noise=0.004)
    table["loss"][0] *= 2
    law = cw.fit_scaling_law(table)
    ax = law.plot(what="residuals")
    drawn = np.concatenate([line.get_ydata() for line in of(ax, RESIDUAL)])
    assert np.allclose(
        np.sort(drawn), np.sort(100 * (law.runs.loss / law.loss_at(table["params"], table["tokens"]) - 1))
    )
    assert ax.get_ylim()[1] < drawn.max()
    assert any(line.get_marker() == "^" for line in ax.lines)


def test_sizes_have_their_minimum_at_the_optimum(law) -> None:
    ax = law.plot(what="sizes", budget=[1e22, 1e23])
    for curve, mark, c in zip(of(ax, PARABOLA), of(ax, MINIMUM), (1e22, 1e23), strict=True):
        n, loss = curve.get_data()
        best = law.compute_optimal(c).params.estimate
        assert mark.get_xdata()[0] == pytest.approx(best)
        assert abs(np.log(n[loss.argmin()] / best)) < 0.1


def test_optimum_of_one_and_of_many_budgets(law) -> None:
    for budgets in (1e22, [1e21, 1e22], np.geomspace(1e20, 1e24, 9).tolist()):
        found = law.compute_optimal(budgets)
        params, tokens = of(found.plot(what="path"), PATH)
        assert np.allclose(params.get_ydata() * tokens.get_ydata() * 6, np.atleast_1d(budgets))
        assert len(of(found.plot(), MINIMUM)) == (0 if np.size(budgets) > 4 else np.size(budgets))


def test_parabolas_pass_through_their_minima() -> None:
    c, off = np.repeat([1e18, 1e19, 1e20, 1e21], 5), np.tile([0.3, 0.6, 1.0, 1.8, 3.0], 4)
    n = np.sqrt(c / 120) * off
    loss = 1.8 + 480 / n**0.35 + 2000 / (c / 6 / n) ** 0.37
    loss[:5] = [3, 3.1, 3.2, 3.3, 3.4]  # no minimum at the first budget
    found = cw.fit_isoflops({"params": n, "flops": c, "loss": loss})
    ax = found.plot()
    assert len(of(ax, PARABOLA)) == len(of(ax, MINIMUM)) == len(found.budget) == 3
    assert sum(len(line.get_xdata()) for line in of(ax, RUN)) == 20
    for line, best in zip(of(ax, PARABOLA), found.optimum_loss, strict=True):
        assert line.get_ydata().min() == pytest.approx(best, abs=1e-3)


def test_backtest_and_windows(law) -> None:
    found = law.backtest(8)
    dots = of(found.plot(), HELD_OUT)
    assert np.allclose(np.sort(np.concatenate([d.get_xdata() for d in dots])), np.sort(found.loss))
    windows = law.sensitivity(1e23)
    drawn = [float(dot.get_xdata()[0]) for dot in of(windows.plot(), WINDOW)]
    assert np.allclose(drawn, windows.tokens_per_param)


def test_plan_is_drawn_beside_the_runs(law) -> None:
    plan = cw.plan_scaling_runs(law, 1e23, factor=0.7)
    assert len(of(plan.plot(), RUN)) == 0
    ax = plan.plot(law=law)
    (new,) = of(ax, PLANNED)
    assert np.allclose(new.get_ydata(), plan.params)
    assert len(of(ax, RUN)) == 1


def test_comparison_shows_the_ratio(made) -> None:
    found = cw.compare_scaling_laws(made(noise=0.003), made(noise=0.003, seed=1, A=300.0), names=("$base$", "new"))
    ax = found.plot()
    assert ax.get_legend().get_texts()[0].get_text().startswith(r"\$base\$: ")
    a, b = (line.get_ydata() for line in of(ax, PATH))
    assert (b < a).all()
    # Where a needs C for a loss, b needs ρ C.
    c = of(ax, PATH)[0].get_xdata()
    at = np.interp(found.efficiency.estimate * c[60], c, b)
    assert at == pytest.approx(a[60], rel=2e-3)
    (arrow,) = of(ax, RATIO)
    assert arrow.xy[0] < arrow.xyann[0]


def test_searches_and_their_crossing() -> None:
    rng = np.random.default_rng(0)
    found = cw.compare_tuned(0.8 + 0.01 * rng.standard_normal(60), 0.5 + 0.25 * rng.standard_normal(60))
    ax = found.plot()
    first, second = of(ax, BEST)
    assert first.get_ydata()[0] == pytest.approx(found.expected_a[0])
    assert second.get_ydata()[0] == pytest.approx(found.expected_b[0])
    assert np.isfinite(found.crossing.estimate)
    assert of(ax, CROSSING)
    (caption,) = of(ax, "curvewise-caption")
    assert "Grey: that of the crossing." in " ".join(caption.get_text().split())
    bounded = cw.compare_tuned([0.7, 0.8, 0.9, 0.95, 0.6, 0.5], [0.65, 0.7, 0.72, 0.8, 0.75, 0.71], best_possible=1.0)
    assert bounded.plot().dataLim.y1 <= 1.0
    one = cw.scaling.expected_best([0.71, 0.64, 0.80, 0.58, 0.77], budget=[1, 3])
    (line,) = of(one.plot(), BEST)
    assert line.get_ydata().tolist() == one.expected.tolist()


def test_predicted_accuracies_stand_on_the_curve() -> None:
    n, d = (v.ravel() for v in np.meshgrid([1e8, 3e8, 1e9, 3e9], [4e9, 2e10, 1e11]))
    loss = 0.5 + 300 / n**0.35 + 1500 / d**0.37
    accuracy = 0.25 + 0.75 / (1 + np.exp(6 * (loss - 0.8)))
    runs = ScalingRuns(n, d, loss + 2, metrics={"quiz_bpb": loss, "quiz_acc": accuracy})
    found = cw.predict_downstream(runs, "quiz", at=[(1e10, 1e12), (7e9, 3e11)], chance=0.25)
    ax = found.plot()
    (dots,) = of(ax, PREDICTED)
    assert dots.get_ydata().tolist() == [i.estimate for i in found.accuracy]
    (points,) = of(ax, RUN)
    assert np.allclose(np.sort(points.get_ydata()), np.sort(accuracy))


def test_captions_write_each_number_in_one_form(doubtful) -> None:
    law = cw.fit_scaling_law(doubtful)
    found = law.sensitivity(5.76e22)
    said = " ".join(" ".join(text.get_text() for text in found.plot().figure.findobj(Text)).split())
    low, high = f"{found.interval.low:.3g}", f"{found.interval.high:.3g}"
    assert f"by all rows, {found.interval.estimate:.3g} [{low}, {high}]." in said
    assert said.count(f"[{low}, {high}]") == 2
    assert said.count("5.76×10²² FLOP") == 2
    assert f"{found.interval.estimate:.3g} [{low}, {high}] tokens" in found.sentences()
    for ax in (law.compute_optimal(1e27).plot(), cw.plan_scaling_runs(law, 1e23, most=2).plot(law=law)):
        assert "e+" not in " ".join(text.get_text() for text in ax.figure.findobj(Text))


def test_pictures_fit_small_axes(law) -> None:
    figure, axes = plt.subplots(1, 3, figsize=(9, 3))
    law.plot(axes[0], budget=1e23)
    law.backtest(8).plot(axes[1])
    law.sensitivity().plot(axes[2])
    figure.canvas.draw()


@pytest.mark.parametrize(
    ("low", "high", "flops"),
    [(1e17, 1e26, True), (2e18, 5e18, True), (1e6, 1e12, False), (3e8, 4e8, False), (2e17, 6.8e17, True)],
)
def test_ticks_are_round_and_few(low, high, flops) -> None:
    _, ax = plt.subplots()
    log_axis(ax.xaxis, low, high, flops=flops)
    ticks = [t for t in ax.get_xticks() if low <= t <= high]
    assert 3 <= len(ticks) <= 12  # one tick is no scale, though an axis may span less than a decade
    assert all(f"{t:e}"[0] in "123456" for t in ticks)
    assert len({(write_flops if flops else write_count)(t) for t in ticks}) == len(ticks)


def test_every_answer_has_a_picture() -> None:
    for name in ("ScalingLaw", "ComputeOptimal", "IsoflopFit", "Backtest", "Sensitivity", "ScalingPlan"):
        assert picture_of(getattr(cw.scaling, name)) is not None
    for name in ("ScalingComparison", "DownstreamPrediction", "ExpectedBest", "TunedComparison"):
        assert picture_of(getattr(cw.scaling, name)) is not None


def test_colours_of_budgets_are_seen_on_white_and_on_black_paper() -> None:
    for count in range(1, 30):
        shades = graded(count)
        assert len(set(shades)) == count
        for shade in shades:
            part = np.array([int(shade[i : i + 2], 16) / 255 for i in (1, 3, 5)])
            light = np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722]
            assert 1.05 / (light + 0.05) >= 3
            assert (light + 0.05) / 0.05 >= 3
