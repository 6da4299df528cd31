"""Pictures of judged measures, compared responses and sensitivity."""

import warnings
from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from scipy.stats import pearsonr

import curvewise.response
from curvewise.drawing.picture import draw, picture_of
from curvewise.errors import CurvewiseWarning, InputError
from curvewise.response import ResponseCurve
from curvewise.response.cmi import cmi_score, measure_cmi
from curvewise.response.comparison import compare_responses
from curvewise.response.curve import ResponseSensitivity
from curvewise.response.judgement import judge_measures
from curvewise.response.load import ModelCorpus
from curvewise.response.plot.comparison import plot_response_difference
from curvewise.response.plot.measures import plot_measures
from curvewise.types import Result

HOSTILE = "$x$_\n" + "long " * 40


def of(artists, gid):
    return [a for a in artists if a.get_gid() == gid]


def caption(ax):
    (note,) = of(ax.figure.findobj(mpl.text.Text), "curvewise-caption")
    return " ".join(note.get_text().split())


def bars(ax):
    """Intervals that are drawn, as (low, high), sorted."""
    found = [c for c in of(ax.collections, "curvewise-interval") if isinstance(c, LineCollection)]
    segments = [s for c in found for s in c.get_segments()]
    return np.array(sorted((s[0, 0], s[1, 0]) for s in segments))


def names(ax):
    return [t.get_text() for t in ax.get_yticklabels()]


def corpus(tasks=2, models=36, measures=4, seed=0):
    rng = np.random.default_rng(seed)
    count = tasks * models
    gap = rng.uniform(0.05, 0.2, count)
    noise = rng.standard_normal((measures, count))
    return ModelCorpus(
        models=[f"m{i}" for i in range(count)],
        hyperparameters={"depth": np.tile([1, 2, 3], count // 3), "norm": rng.integers(0, 2, count)},
        gap=gap,
        measures={f"measure {k}": gap + 0.03 * k * noise[k] for k in range(measures)},
        tasks=np.repeat([f"task {i}" for i in range(tasks)], models),
        orientation={"measure 0": 1},
    )


@pytest.fixture(scope="module")
def judged():
    return judge_measures(corpus(), permutations=19)


@pytest.fixture(scope="module")
def curves():
    """Two small networks on the same rotated digits."""
    torch = pytest.importorskip("torch")
    digits = pytest.importorskip("sklearn.datasets").load_digits()
    from curvewise.response.networks.measurement import measure_responses

    x, y = torch.tensor(digits.images / 16).float()[:, None], torch.tensor(digits.target)
    models = {}
    for width in (8, 64):
        torch.manual_seed(width)
        net = torch.nn.Sequential(
            torch.nn.Flatten(), torch.nn.Linear(64, width), torch.nn.ReLU(), torch.nn.Linear(width, 10)
        )
        optimiser = torch.optim.Adam(net.parameters(), 0.01)
        for _ in range(60):
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(net(x), y).backward()
            optimiser.step()
        models[f"width {width}"] = net
    options = {"magnitudes": np.linspace(-60, 60, 5), "examples": 400}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CurvewiseWarning)
        return list(measure_responses(models, (x, y), "rotation", **options).values())


def test_scores_stand_with_intervals_the_best_on_top(judged):
    ax = draw(judged)
    average, *tasks = of(ax.lines, "curvewise-score")
    order = sorted(judged.measures, key=lambda m: -judged.row(m).cmi.estimate)
    assert names(ax) == order
    wanted = [100 * judged.row(m).cmi.estimate for m in order]
    np.testing.assert_allclose(average.get_xdata(), wanted)
    for line, task in zip(tasks, judged.tasks, strict=True):
        wanted = [100 * judged.row(m, task).cmi.estimate for m in order]
        np.testing.assert_allclose(line.get_xdata(), wanted)
    # The first measure is the gap itself: nothing is known of its error, within a task or on average.
    ends = [(100 * r.cmi.low, 100 * r.cmi.high) for r in judged.rows if not np.isnan(r.cmi.low)]
    assert len(ends) == len(judged.rows) - 3
    np.testing.assert_allclose(bars(ax), sorted(ends))
    null = np.concatenate([line.get_xdata() for line in of(ax.lines, "curvewise-null")])
    np.testing.assert_allclose(np.sort(null), np.sort([100 * r.null_mean for r in judged.rows]))
    texts = [t.get_text() for t in ax.get_legend().get_texts()]
    assert texts == ["average", "task 0", "task 1", "hyperparameters alone"]
    looks = {(line.get_color(), line.get_marker()) for line in (average, *tasks)}
    assert len(looks) == 3
    assert "72 models. Bars: 95% intervals." in caption(ax)


def test_one_task_and_many_tasks():
    one = judge_measures(corpus(1), permutations=0)
    ax = draw(one)
    assert len(of(ax.lines, "curvewise-score")) == 1
    assert ax.get_legend() is None
    many = judge_measures(corpus(6), permutations=0)
    ax = draw(many)
    assert len(of(ax.lines, "curvewise-score")) == 1
    assert len(of(ax.lines, "curvewise-task")) == 6
    assert len(bars(ax)) == 3  # the first measure is the gap itself, of unknown error


def test_other_scores_have_no_intervals(judged):
    ax = draw(judged, score="kendall")
    (average, *_) = of(ax.lines, "curvewise-score")
    found = sorted((judged.row(m).kendall for m in judged.measures), reverse=True)
    np.testing.assert_allclose(average.get_xdata(), found)
    assert len(bars(ax)) == 0
    assert ax.get_xlabel() == "Kendall's τ"
    with pytest.raises(InputError, match="score='r' is not known"):
        draw(judged, score="r")


def test_a_measure_without_a_score_is_said_to_be_unknown():
    given = corpus().with_measures({"flat": np.ones(72)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CurvewiseWarning)
        found = judge_measures(given, permutations=0)
    ax = draw(found, score="pearson")
    assert names(ax)[-1] == "flat"
    assert [t.get_text() for t in ax.texts if t.get_text() == "unknown"] == ["unknown"]
    heat = draw(found, kind="heat", score="pearson")
    assert [t.get_text() for t in of(heat.texts, "curvewise-cell")][-3:] == ["?"] * 3


def test_the_table_in_colours_has_the_best_in_bold(judged):
    ax = draw(judged, kind="heat")
    (image,) = of(ax.images, "curvewise-cell")
    order = sorted(judged.measures, key=lambda m: -judged.row(m).cmi.estimate)
    wanted = [[100 * judged.row(m, t).cmi.estimate for t in (*judged.tasks, None)] for m in order]
    np.testing.assert_allclose(np.asarray(image.get_array()), wanted)
    texts = of(ax.texts, "curvewise-cell")
    assert [float(t.get_text().replace("−", "-")) for t in texts] == pytest.approx(np.ravel(wanted), abs=0.051)
    bold = [i for i, t in enumerate(texts) if t.get_fontweight() == "bold"]
    best = [3 * int(np.argmax(c)) + j for j, c in enumerate(np.transpose(wanted))]
    assert bold == sorted(best)
    assert [t.get_text() for t in ax.get_xticklabels()] == ["task 0", "task 1", "average"]


def test_only_the_best_of_many():
    many = judge_measures(corpus(1, measures=30), permutations=0)
    ax = draw(many, most=5)
    assert len(names(ax)) == 5
    assert "The best 5 of 30 measures." in caption(ax)
    small = draw(many, Figure(figsize=(3.3, 2.6)).add_subplot())
    assert 3 <= len(names(small)) < 30


def test_scores_of_a_judgement_stand_over_the_dots(judged):
    ax = plot_measures(corpus(), "measure 1", judgement=judged)
    for panel, task in zip(ax.figure.axes, judged.tasks, strict=True):
        said = f"CMI {100 * judged.row('measure 1', task).cmi.estimate:.1f}%"
        assert said in panel.get_title(loc="left")
    with pytest.raises(InputError, match="judgement has 36 models with 'measure 1', the corpus 30"):
        plot_measures(corpus(models=30), "measure 1", judgement=judged)


def test_models_that_were_not_trained_well_can_be_left_out():
    given = replace(corpus(1), train_accuracy=np.linspace(0.5, 1, 36))
    ax = plot_measures(given, "measure 1", least_train_accuracy=0.8)
    count = int((given.train_accuracy >= 0.8).sum())
    assert f"n = {count}," in ax.get_title(loc="left")
    with pytest.raises(InputError, match="no training accuracies"):
        plot_measures(corpus(1), "measure 1", least_train_accuracy=0.8)


def test_information_given_each_set(judged):
    given = corpus(1)
    found = measure_cmi(given.measures["measure 2"], given.gap, given.hyperparameters, given=1)
    ax = draw(found)
    assert names(ax)[0] == "score"
    assert sorted(names(ax)[1:]) == ["depth", "norm"]
    score, dots = of(ax.lines, "curvewise-set")
    assert score.get_xdata() == [100 * found.score]
    np.testing.assert_allclose(dots.get_xdata(), 100 * np.sort(found.values))
    np.testing.assert_allclose(bars(ax), [[100 * found.value.low, 100 * found.value.high]])
    (mark,) = of(ax.lines, "curvewise-mark")
    assert mark.get_xdata()[0] == pytest.approx(100 * found.null_mean)
    assert "least of 2 sets." in caption(ax)


def test_two_measures_compared_task_by_task(judged):
    found = judged.compare("measure 0", "measure 3")
    ax = draw(found)
    assert names(ax) == ["task 0", "task 1", "average"]
    every, last = of(ax.lines, "curvewise-difference")
    wanted = [100 * d.estimate for d in (*found.by_task, found.difference)]
    np.testing.assert_allclose(every.get_xdata(), wanted[:-1])
    np.testing.assert_allclose(last.get_xdata(), wanted[-1:])
    assert ax.get_xlabel() == "CMI of measure 0 − measure 3 (%)"


def test_the_difference_at_each_magnitude_is_paired(curves):
    a, b = curves
    ax = plot_response_difference(a, b)
    (line,) = of(ax.lines, "curvewise-difference")
    np.testing.assert_allclose(line.get_ydata(), 100 * (a.accuracy - b.accuracy))
    (band,) = of(ax.collections, "curvewise-band")
    corners = band.get_paths()[0].vertices
    answers = a.hits.astype(float) - b.hits
    half = 1.959964 * answers.std(axis=1, ddof=1) / np.sqrt(answers.shape[1])
    top = [corners[np.isclose(corners[:, 0], m), 1].max() for m in a.magnitude]
    np.testing.assert_allclose(top, 100 * (answers.mean(axis=1) + half), rtol=1e-4)
    apart = plot_response_difference(a, b, paired=False)
    wide = of(apart.collections, "curvewise-band")[0].get_paths()[0].vertices
    assert np.ptp(wide[:, 1]) > np.ptp(corners[:, 1])
    assert "on the same perturbed examples" in caption(ax)
    assert ax.get_title(loc="left") == "width 8 − width 64"
    with pytest.raises(InputError, match="must be measured at the same magnitudes"):
        plot_response_difference(a, replace(b, magnitude=b.magnitude + 1))


def test_compared_scores_have_scales_of_their_own(curves):
    found = compare_responses(*curves)
    ax = draw(found)
    assert [names(panel) for panel in ax.figure.axes] == [["Gi-score"], ["Pal-score"], ["mean accuracy (%)"]]
    for panel, (score, scale) in zip(ax.figure.axes, {"gi": 1, "pal": 1, "mean_accuracy": 100}.items(), strict=True):
        _, low, high = found.differences[score]
        np.testing.assert_allclose(bars(panel), [[scale * low, scale * high]])
        left, right = panel.get_xlim()
        assert left <= 0 <= right
    verdict = {"a better": "width 8 is better", "b better": "width 64 is better"}
    assert verdict.get(found.verdict, "undecided") in caption(ax)
    one = Figure(layout="constrained").add_subplot()
    assert names(draw(found, one)) == ["Gi-score"]
    assert names(draw(found, score="pal")) == ["Pal-score"]


def sensitivity(counts=(2, 20, 180), repeats=6, seconds=True):
    rng = np.random.default_rng(0)
    curves = {
        count: [
            ResponseCurve.from_counts(
                [0, 0.25, 0.5],
                rng.binomial(128 * count, [0.95, 0.8, 0.6]),
                128 * count,
                model=HOSTILE,
                settings={"seconds": 0.01 * count + 0.001 * rng.random()} if seconds else {},
            )
            for _ in range(repeats)
        ]
        for count in counts
    }
    return ResponseSensitivity.from_curves(128, curves)


def test_sensitivity_shows_spread_and_time():
    found = sensitivity()
    ax = draw(found)
    left, right = ax.figure.axes
    for panel, values in ((left, found.values["gi"]), (right, found.seconds)):
        (mean,) = of(panel.lines, "curvewise-line")
        np.testing.assert_allclose(mean.get_xydata(), np.c_[found.batches, values.mean(axis=1)])
        (band,) = of(panel.collections, "curvewise-band")
        corners = band.get_paths()[0].vertices
        spread = values.std(axis=1, ddof=1)
        for x, middle, s in zip(found.batches, values.mean(axis=1), spread, strict=True):
            here = corners[np.isclose(corners[:, 0], x), 1]
            assert here.min() == pytest.approx(middle - s)
            assert here.max() == pytest.approx(middle + s)
        (mark,) = of(panel.lines, "curvewise-mark")
        assert mark.get_xdata()[0] == 180
    low, high = (line.get_ydata() for line in of(left.lines, "curvewise-expected"))
    told = np.sqrt((found.expected["gi"] ** 2).mean(axis=1))
    np.testing.assert_allclose((high - low) / 2, told)
    assert left.get_xscale() == "log"
    assert left.get_xlabel() == "batches of 128"


def test_sensitivity_one_kind_at_a_time():
    found = sensitivity((10, 20))
    ax = Figure(layout="constrained").add_subplot()
    assert draw(found, ax, score="pal") is ax
    assert ax.get_ylabel() == "Pal-score"
    assert ax.get_xscale() == "linear"
    assert of(ax.lines, "curvewise-mark") == []
    assert draw(found, kind="time").get_ylabel() == "seconds"
    with pytest.raises(InputError, match="kind='both': two Axes are needed"):
        draw(found, ax, kind="both")
    unknown = sensitivity((10, 20), seconds=False)
    assert len(draw(unknown).figure.axes) == 1
    with pytest.raises(InputError, match="do not say how long"):
        draw(unknown, kind="time")


@pytest.mark.parametrize("size", [(6.4, 4.8), (3.3, 2.6)])
def test_pictures_use_the_axes_given_and_leave_settings_alone(curves, size):
    before = dict(mpl.rcParams)
    given = corpus()
    given = replace(given, tasks=[f"{HOSTILE}{t}" for t in given.tasks])
    given = given.with_measures({HOSTILE: given.gap})
    judged = judge_measures(given, permutations=9)
    a, b = (replace(c, model=f"{HOSTILE}{i}") for i, c in enumerate(curves))
    for result in (
        judged,
        judged.compare("measure 1", HOSTILE),
        measure_cmi(given.gap, given.gap, {HOSTILE: [1, 2] * 36}, permutations=9),
        compare_responses(a, b),
        sensitivity(),
    ):
        figure = Figure(figsize=size, layout="constrained")
        ax = figure.add_subplot()
        assert result.plot(ax=ax) is ax
        figure.draw_without_rendering()
        assert len(figure.axes) == 1
        result.plot().figure.draw_without_rendering()
    figure = Figure(figsize=size, layout="constrained")
    draw(judged, figure.add_subplot(), kind="heat")
    figure.draw_without_rendering()
    plot_response_difference(a, b, Figure(figsize=size).add_subplot())
    assert dict(mpl.rcParams) == before


def test_rows_of_a_judgement_do_not_touch(judged):
    many = judge_measures(corpus(3, measures=25), permutations=9)
    for ax in (draw(many), draw(many, kind="heat")):
        ax.figure.draw_without_rendering()
        for group in (ax.get_yticklabels(), of(ax.texts, "curvewise-cell")):
            boxes = [t.get_window_extent() for t in group]
            assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
        assert ax.get_tightbbox().x0 >= 0


def test_every_result_of_the_lens_has_a_picture():
    pytest.importorskip("torch")  # for the names that need it
    kinds = [getattr(curvewise.response, name) for name in curvewise.response.__all__]
    # Measures of one network have no common scale: they are a table.
    kinds = [k for k in kinds if isinstance(k, type) and issubclass(k, Result) and k.__name__ != "ModelMeasures"]
    assert len(kinds) >= 6
    assert [k.__name__ for k in kinds if picture_of(k) is None] == []


def dots(ax):
    return np.concatenate([np.asarray(c.get_offsets()) for c in of(ax.collections, "curvewise-models")])


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
    for found, value in zip(of(ax.collections, "curvewise-models"), (2, 4, 8), strict=True):
        rows = corpus.hyperparameters["depth"] == value
        np.testing.assert_allclose(found.get_offsets()[:, 0], corpus.measures["gi"][rows])
    looks = {tuple(c.get_facecolor()[0]) for c in of(ax.collections, "curvewise-models")}
    assert len(looks) == 3
    shapes = {c.get_paths()[0].vertices.tobytes() for c in of(ax.collections, "curvewise-models")}
    assert len(shapes) == 3
    by_norm = plot_measures(corpus, "gi", colours="norm").get_legend()
    assert [t.get_text() for t in by_norm.get_texts()] == ["no", "yes"]


def test_hyperparameters_with_too_many_values_get_no_colours():
    corpus = make(1, 30, hyperparameters={"rate": np.linspace(0.1, 1, 30)})
    ax = plot_measures(corpus, "gi")
    assert ax.get_legend() is None
    assert len(of(ax.collections, "curvewise-models")) == 1
    with pytest.raises(InputError, match="colours='rate': it has 30 values"):
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
    with pytest.raises(InputError, match="measures='x' is not known: use one of 'gi', 'pal'"):
        plot_measures(corpus, "x")
    with pytest.raises(InputError, match="task='x' is not known: use one of 'task 0', 'task 1'"):
        plot_measures(corpus, "gi", task="x")
    with pytest.raises(InputError, match="colours='x' is not known"):
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
