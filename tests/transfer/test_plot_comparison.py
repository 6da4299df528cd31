"""Pictures of ranks by size, of tasks, of the spread over runs, of wins and of blind guesses."""

from __future__ import annotations

import warnings
from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from curvewise.drawing.picture import draw
from curvewise.drawing.style import PALETTE
from curvewise.errors import CurvewiseWarning, InputError
from curvewise.text import format_interval
from curvewise.transfer.blind import blind_guess
from curvewise.transfer.measure import measure_transfer
from curvewise.transfer.result import MethodRank, TransferRanks, measure_spread
from curvewise.transfer.tasks import rank_tasks
from curvewise.transfer.wins import win_rate, win_rates

HOSTILE = "$x$_<b>\n😀 " + "long " * 30


def of(artists, gid):
    return [a for a in artists if a.get_gid() == gid]


def caption(ax):
    (note,) = of(ax.figure.findobj(mpl.text.Text), "curvewise-caption")
    return " ".join(note.get_text().split())


def texts(ax, gid):
    return [t.get_text() for t in of(ax.texts, gid)]


def measured(tasks=("edges", "depth"), runs=3, **options):
    """Scratch with two methods; each task needs ten times the data of the one before."""
    rng = np.random.default_rng(0)
    rows = [
        (task, method, n, 0.1 + 0.8 * share * half / (1 + n / (100.0 * 10**t)), run)
        for t, task in enumerate(tasks)
        for method, share in (("scratch", 1.0), ("a", 0.8), ("b", 0.6))
        for n, half in ((100.0, 1.0), (1000.0, 1.0), (10000.0, 1.0))
        for run in range(runs)
    ]
    table = {
        "task": [r[0] for r in rows],
        "method": [r[1] for r in rows],
        "n": [r[2] for r in rows],
        "risk": np.array([r[3] for r in rows]) + 0.003 * rng.normal(size=len(rows)),
        "seed": [str(r[4]) for r in rows],
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CurvewiseWarning)
        return measure_transfer(table, **({"blind": 0.9, "maximal": 0.1} | options))


def ranks(task="depth"):
    """Three methods that change places; "late" is measured at the largest size alone."""
    places = {
        100.0: {"swav": (1, 1, 1), "color": (2, 2, 3), "scratch": (3, 2, 3)},
        1000.0: {"color": (1, 1, 3), "swav": (2, 1, 3), "scratch": (3, 1, 3)},
        5000.0: {"swav": (1, 1, 1)},
        10000.0: {"color": (1, 1, 2), "late": (2, 1, 2), "swav": (3, 3, 3), "scratch": (4, 4, 4)},
    }
    rows = [
        MethodRank(task, m, n, float(rank), low, high, 0.5, len(found))
        for n, found in places.items()
        for m, (rank, low, high) in found.items()
    ]
    return TransferRanks(tuple(rows), 0.95)


def test_places_by_size_named_at_both_ends_and_faint_where_unsure():
    ax = draw(ranks())
    assert [t.get_text() for t in ax.get_xticklabels()] == ["100", "1,000", "10,000"]
    assert "(5,000)" in caption(ax)
    ends = texts(ax, "curvewise-end")
    assert set(ends[:3]) == {"swav  1", "color  2", "scratch  3"}
    assert set(ends[3:]) == {"1  color", "2  late", "3  swav", "4  scratch"}
    black = [p for p in of(ax.collections, "curvewise-place") if to_hex(p.get_facecolor()[0]) == "#000000"]
    assert len(black) == 1
    np.testing.assert_array_equal(black[0].get_offsets(), [[0, 3], [1, 3], [2, 4]])
    np.testing.assert_allclose(black[0].get_facecolor()[:, 3], [0.675, 0.35, 1.0])
    assert ax.yaxis.get_inverted()


def test_ranks_of_some_methods_leave_the_others_faint():
    ax = draw(ranks(), methods=["swav"])
    assert len(of(ax.lines, "curvewise-other")) == 2
    assert len(of(ax.collections, "curvewise-place")) == 2
    assert {t.split("  ")[1] for t in texts(ax, "curvewise-end")} >= {"swav", "scratch"}
    with pytest.raises(InputError, match=r"methods='swaw' is not known: .*Did you mean 'swav'"):
        draw(ranks(), methods=["swaw"])


def test_without_two_methods_there_is_no_place_to_draw():
    alone = TransferRanks((), 0.95)
    with pytest.raises(InputError, match="no two methods were measured at one size"):
        draw(alone)


def test_ranks_of_a_measured_transfer_are_its_own():
    found = measured(("depth",))
    one, two = found.plot(kind="ranks"), draw(found.ranks())
    for a, b in zip(of(one.collections, "curvewise-place"), of(two.collections, "curvewise-place"), strict=True):
        np.testing.assert_array_equal(a.get_offsets(), b.get_offsets())


def test_tasks_by_their_scratch_curves_with_the_size_that_each_needs():
    found = rank_tasks(measured(), levels=(0.75, 0.5, 0.25))
    ax = draw(found)
    assert found.order == ("edges", "depth")
    lines = of(ax.lines, "curvewise-risk")
    for line, curve in zip(lines, found.curves, strict=True):
        np.testing.assert_allclose(line.get_ydata(), curve.calibrated)
    marks = of(ax.lines, "curvewise-needed")
    wanted = [r.at(found.ordered_by).n.estimate for r in found.rows]
    inside = [n for n in wanted if 100 <= n <= 10000]
    np.testing.assert_allclose([m.get_xdata()[0] for m in marks], inside)
    assert {m.get_ydata()[0] for m in marks} == {found.ordered_by}
    names = texts(ax, "curvewise-end")
    assert [n.split(" (")[0] for n in names] == ["edges", "depth"]
    half = draw(found, at=0.25)
    (level,) = of(half.lines, "curvewise-level")
    assert level.get_ydata()[0] == 0.25
    with pytest.raises(InputError, match=r"at=0\.3: is not among the levels"):
        draw(found, at=0.3)
    assert len(of(draw(found, task="depth").lines, "curvewise-risk")) == 1
    assert "thick bars along the dotted line: 95% intervals" in caption(ax)


def test_a_level_that_is_not_reached_says_so():
    found = rank_tasks(measured(("edges", "depth", "far", "farther")), levels=(0.5,))
    names = texts(draw(found), "curvewise-end")
    assert "farther (> 10,000)" in names
    assert len(of(draw(found).lines, "curvewise-needed")) < 4


def test_spread_is_one_standard_deviation_to_both_sides():
    found = measure_spread(measured(("depth",)))
    ax = draw(found)
    bars = of(ax.collections, "curvewise-interval")
    assert len(bars) == 3
    (black,) = (b for b in bars if to_hex(b.get_colors()[0]) == "#000000")
    rows = [found.row("depth", "scratch", n) for n in (100.0, 1000.0, 10000.0)]
    wanted = [(r.mean - r.std.estimate, r.mean + r.std.estimate) for r in rows]
    np.testing.assert_allclose(np.array(black.get_segments())[:, :, 1], wanted)
    outside = sum(p.outside for p in found.pairs)
    assert f"In {outside} of {len(found.pairs)} pairs" in caption(ax)
    assert set(texts(ax, "curvewise-end")) == {"scratch", "a", "b"}
    some = draw(measure_spread(measured()), task="depth", methods=["a", "scratch"])
    assert "1 method is left out: not chosen." in caption(some)
    assert "of 3 pairs" in caption(some)  # of those in the picture: one at each size
    once = replace(found, rows=tuple(replace(r, runs=1) if r.method == "b" else r for r in found.rows))
    assert "1 method is left out: run once at every size." in caption(draw(once))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CurvewiseWarning)
        single = measure_spread(measured(runs=1))
    with pytest.raises(InputError, match="no method was run twice"):
        draw(single)


def losses(mean, runs=3, examples=300, seed=0):
    rng = np.random.default_rng(seed)
    return mean + rng.normal(0.0, 1.0, (runs, examples))


@pytest.fixture(scope="module")
def wins():
    gains = {100: 1.5, 1000: 0.8, 10000: 0.0}
    return win_rates({n: (losses(0.0, 8, seed=n), losses(g, 8, seed=n + 1)) for n, g in gains.items()})


def test_win_rates_by_size_around_one_half(wins):
    ax = draw(wins)
    (line,) = of(ax.lines, "curvewise-rate")
    np.testing.assert_allclose(line.get_xdata(), wins.n)
    np.testing.assert_allclose(line.get_ydata(), [100 * r.rate.estimate for r in wins.rates])
    (half,) = of(ax.lines, "curvewise-half")
    assert half.get_ydata()[0] == 50.0
    (band,) = of(ax.collections, "curvewise-band")
    corners = band.get_paths()[0].vertices
    for n, r in zip(wins.n, wins.rates, strict=True):
        at = corners[np.isclose(corners[:, 0], n), 1]
        np.testing.assert_allclose([at.min(), at.max()], [100 * r.rate.low, 100 * r.rate.high])
    sure, tied = of(ax.lines, "curvewise-rate-dot")
    outside = [r.rate.low > 0.5 or r.rate.high < 0.5 for r in wins.rates]
    assert outside == [True, True, False]
    np.testing.assert_array_equal(sure.get_xdata(), wins.n[:2])
    assert tied.get_markerfacecolor() == "white"
    assert len(of(ax.lines, "curvewise-run")) == 3
    assert wins.end.text.split(";")[0] in caption(ax)


def test_win_rates_of_several_methods_are_named(wins):
    from curvewise.transfer.plot.tasks import plot_win_rates

    ax = plot_win_rates({"swav": wins, HOSTILE: wins})
    first, second = texts(ax, "curvewise-end")
    assert first == "swav"
    assert second.startswith(r"\$x\$")
    assert [to_hex(line.get_color()) for line in of(ax.lines, "curvewise-rate")] == [
        shade.lower() for shade in PALETTE[:2]
    ]
    with pytest.raises(InputError, match="result is empty"):
        plot_win_rates({})


def test_one_win_rate_among_its_runs(wins):
    found = wins.at(1000)
    ax = draw(found)
    (mark,) = of(ax.lines, "curvewise-rate")
    assert mark.get_xdata()[0] == 100 * found.rate.estimate
    (runs,) = of(ax.lines, "curvewise-run")
    np.testing.assert_allclose(runs.get_xdata(), 100 * found.by_run)
    (bar,) = of(ax.collections, "curvewise-interval")
    (ends,) = bar.get_segments()
    np.testing.assert_allclose(ends[:, 0], [100 * found.rate.low, 100 * found.rate.high])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CurvewiseWarning)
        one = win_rate(losses(0.0, 1), losses(0.5, 1, seed=1))
    assert of(draw(one).lines, "curvewise-run")[0].get_xdata().tolist() == []


def test_a_blind_guess_is_its_frequencies_or_the_losses_it_makes():
    found = blind_guess(["cat"] * 30 + ["dog"] * 60 + [HOSTILE] * 10, "cross-entropy")
    ax = draw(found)
    bars = of(ax.patches, "curvewise-frequency")
    np.testing.assert_allclose([b.get_width() for b in bars], [60.0, 30.0, 10.0])
    names = [t.get_text() for t in ax.get_yticklabels()]
    assert names[:2] == ["dog", "cat"]
    assert names[2].startswith(r"\$x\$")
    values = np.random.default_rng(0).exponential(size=200)
    found = blind_guess(values, "l1")
    ax = draw(found)
    counts = [p.get_height() for p in of(ax.patches, "curvewise-losses")]
    assert sum(counts) == 200
    few = draw(blind_guess(values[:12], "l1"))
    assert all(float(tick).is_integer() for tick in few.get_yticks())
    (line,) = of(ax.lines, "curvewise-risk")
    assert line.get_xdata()[0] == found.risk.estimate
    assert f"has a risk of {format_interval(found.risk)} (95% interval" in caption(ax)
    np.testing.assert_allclose(line.get_xdata()[0], np.abs(values - np.median(values)).mean())


@pytest.mark.parametrize("what", ["ranks", "tasks", "spread", "comparison", "wins", "win", "blind"])
def test_axes_of_any_size_and_settings_left_alone(what, wins):
    before = dict(mpl.rcParams)
    found = {
        "ranks": lambda: ranks(HOSTILE),
        "tasks": lambda: rank_tasks(measured((HOSTILE, "b"))),
        "spread": lambda: measure_spread(measured((HOSTILE,))),
        "comparison": lambda: measured((HOSTILE, "b")).comparisons(),
        "wins": lambda: wins,
        "win": lambda: wins.at(100),
        "blind": lambda: blind_guess([HOSTILE] * 20 + ["dog"] * 60, "cross-entropy"),
    }[what]()
    for size, layout in (((6.4, 4.8), "constrained"), ((3.3, 2.6), None)):
        figure = Figure(figsize=size, layout=layout)
        ax = figure.add_subplot()
        assert found.plot(ax=ax) is ax
        figure.draw_without_rendering()
        assert len(figure.axes) == 1
    found.plot().figure.draw_without_rendering()
    assert dict(mpl.rcParams) == before


def test_wins_against_another_method_name_it_on_the_axis() -> None:
    losses = np.random.default_rng(0).normal(size=(2, 3, 100))
    assert win_rate(*losses, names=("swav", "moco")).plot().get_xlabel() == "examples won against moco (%)"
    assert win_rate(*losses).plot().get_xlabel() == "examples won against scratch (%)"
