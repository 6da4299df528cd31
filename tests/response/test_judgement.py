"""Measures judged on corpora."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.response.cmi import cmi_score
from curvewise.response.judgement import granulated_kendall, judge_measures, tabulate_judgements
from curvewise.response.load import ModelCorpus, join_corpora
from curvewise.stats.correlation import kendall

GRID = np.array(list(product(range(3), range(2), range(2), range(2)))).T


def corpus(seed: int = 0, tasks: int = 2, **changes: object) -> ModelCorpus:
    rng = np.random.default_rng(seed)
    settings = np.tile(GRID, tasks)
    count = settings.shape[1]
    own = rng.normal(size=count)
    parts: dict = {
        "models": tuple(f"net {i}" for i in range(count)),
        "hyperparameters": {f"h{k}": column for k, column in enumerate(settings)},
        "gap": 0.2 + 0.01 * (own + settings.sum(axis=0)),
        "measures": {
            "good": own + rng.normal(size=count) / 2,
            "falling": -own + rng.normal(size=count),
            "open": -own + rng.normal(size=count) / 2,
            "poor": rng.normal(size=count),
        },
        "orientation": {"good": 1, "falling": -1, "poor": 1},
        "tasks": np.repeat([f"task {t}" for t in range(tasks)], GRID.shape[1]),
        "train_accuracy": np.where(np.arange(count) % 6 == 0, 0.7, 0.99),
    }
    return ModelCorpus(**(parts | changes))


def test_every_number_is_the_one_of_its_own_function() -> None:
    found = corpus()
    judged = judge_measures(found, permutations=49)
    for task, part in found.by_task().items():
        for name, values in part.measures.items():
            row, sign = judged.row(name, task), part.orientation.get(name)
            settings, oriented = part.hyperparameters, values * (sign or 1)
            assert row.n == 24
            assert row.cmi.estimate == cmi_score(values, part.gap, settings, orientation=sign)
            assert row.pgdl == pytest.approx(cmi_score(oriented, part.gap, settings, mode="pgdl"))
            assert row.kendall == pytest.approx(stats.kendalltau(oriented, part.gap).statistic)
            assert row.pearson == pytest.approx(stats.pearsonr(oriented, part.gap).statistic)
            assert row.spearman == pytest.approx(stats.spearmanr(oriented, part.gap).statistic)
            assert row.granulated == pytest.approx(granulated_kendall(oriented, part.gap, settings))
            assert row.directed == (sign is not None)


def test_averages_are_means_with_narrower_intervals() -> None:
    judged = judge_measures(corpus(tasks=4), permutations=49)
    for name in judged.measures:
        rows = [judged.row(name, t) for t in judged.tasks]
        average = judged.row(name)
        assert average.task == "All Avg"
        assert average.n == 96
        assert average.cmi.estimate == pytest.approx(np.mean([r.cmi.estimate for r in rows]))
        assert average.kendall == pytest.approx(np.mean([r.kendall for r in rows]))
        assert average.cmi.width < np.mean([r.cmi.width for r in rows])
    assert judged.row("good").pvalue == pytest.approx(0.02)
    assert judged.row("poor").pvalue > 0.05
    alone = judge_measures(corpus(tasks=1), permutations=0)
    assert {row.task for row in alone.rows} == {"task 0"}


def test_real_competition_models(data_dir: Path) -> None:
    tasks = json.loads((data_dir / "pgdl" / "pgdl_tasks12_real.json").read_text())["tasks"]
    for name, task in tasks.items():
        found = ModelCorpus(
            models=task["model_ids"],
            hyperparameters={a["name_guess"]: a["index"] for a in task["axes"]},
            gap=task["gen_gap"],
            measures={k: m["values"] for k, m in task["measures"].items()},
        )
        if task["has_constant_hparam"]:
            found.hyperparameters["constant"] = np.zeros(len(found))
        judged = judge_measures(found, permutations=99)
        for key, measure in task["measures"].items():
            row = judged.row(key)
            assert row.pgdl == pytest.approx(measure["kit_score_run_here"], abs=1e-12), name
        # The measures that did well in the competition's scores do so in ours.
        ours = [judged.row(k).cmi.estimate for k in judged.measures]
        theirs = [judged.row(k).pgdl for k in judged.measures]
        assert stats.spearmanr(ours, theirs).statistic > 0.9
        # Most of what the best one says is known from the hyperparameters, but not all.
        assert judged.row("WCV").null_mean > 0.7 * judged.row("WCV").cmi.estimate
        assert judged.row("WCV").pvalue <= 0.05
        assert judged.row("vc_dim").pvalue > 0.05


def test_models_below_a_training_accuracy_are_left_out_and_counted() -> None:
    judged = judge_measures(corpus(), least_train_accuracy=0.8, permutations=0)
    assert judged.models == 40
    assert {row.n for row in judged.rows} == {20, 40}
    assert any("8 of 48 models left out" in w and "n = 40" in w for w in judged.warnings)
    assert "n = 20" in judged.table()
    part = corpus()
    kept = part.select(part.train_accuracy >= 0.8)
    wanted = judge_measures(kept, permutations=0).row("good").cmi
    assert judged.row("good").cmi == wanted


def test_failed_models_are_left_out_where_they_failed_and_named() -> None:
    whole = corpus(tasks=1)
    gap, good = whole.gap.copy(), whole.measures["good"].copy()
    gap[2], good[5], good[6] = np.nan, np.nan, np.inf
    broken = corpus(tasks=1, gap=gap).with_measures({"good": good}, 1)
    with pytest.warns(CurvewiseWarning) as caught:
        judged = judge_measures(broken, permutations=9)
    said = [str(w.message) for w in caught]
    assert any("1 of 24 models ('net 2') have no gap" in text for text in said)
    assert any("2 of 24 models ('net 5', 'net 6') have no 'good'" in text for text in said)
    assert set(said) <= set(judged.warnings)
    assert judged.row("good").n == 21
    assert judged.row("poor").n == 23
    assert "judged on 23 of 24 models." in judged.sentences()
    keep = np.delete(np.arange(24), [2, 5, 6])
    wanted = cmi_score(good[keep], gap[keep], {k: v[keep] for k, v in whole.hyperparameters.items()}, orientation=1)
    assert judged.row("good").cmi.estimate == pytest.approx(wanted)


@pytest.mark.filterwarnings("ignore::curvewise.errors.CurvewiseWarning")
def test_a_task_with_one_model_is_unknown_not_an_error() -> None:
    judged = judge_measures(corpus(tasks=1).select([0]), permutations=9)
    assert math.isnan(judged.row("good").cmi.estimate)
    assert judged.row("good").n == 1
    assert "None has a score" in judged.summary()
    assert "–" in judged.table()


@pytest.mark.filterwarnings("ignore::curvewise.errors.CurvewiseWarning")  # of models without a measure
def test_other_measures_and_later_tasks_change_nothing() -> None:
    """Nor does a measure that other models lack: draws are the same whatever is judged beside."""
    whole = corpus().with_measures({"holes": np.where(np.arange(48) % 5 == 0, np.nan, 1.0)})
    first = judge_measures(whole.select(whole.tasks == "task 0"), ["poor"], permutations=99)
    for names in (["poor"], ["holes", "open", "poor", "good"]):
        beside = judge_measures(whole, names, permutations=99)
        alone = judge_measures(whole, ["poor"], permutations=99)
        for task in alone.shown_tasks:
            assert beside.row("poor", task).cmi == alone.row("poor", task).cmi
            assert beside.row("poor", task).pvalue == alone.row("poor", task).pvalue
        assert beside.row("poor", "task 0").pvalue == first.row("poor").pvalue
    rng = np.random.default_rng(0)
    again = [judge_measures(whole, ["poor"], permutations=99, rng=rng) for _ in range(2)]
    for task in alone.shown_tasks:
        assert again[0].row("poor", task).null_mean != again[1].row("poor", task).null_mean


def test_same_seed_same_judgement() -> None:
    one, two = (judge_measures(corpus(), permutations=49, rng=3) for _ in range(2))
    assert one.to_dict() == two.to_dict()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"measures": ["goood"]}, "measures holds 'goood'"),
        ({"measures": "good"}, "measures='good' is one text"),
        ({"least_train_accuracy": 80}, "least_train_accuracy=80: give a fraction"),
        ({"least_train_accuracy": 0.999}, "no model of 48 reaches it"),
        ({"level": 95}, "level=95"),
    ],
)
def test_bad_options_are_named(options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        judge_measures(corpus(), **options)


def test_what_is_no_corpus_is_refused() -> None:
    pytest.importorskip("pandas")
    with pytest.raises(InputError, match="corpus is a DataFrame: pass a ModelCorpus"):
        judge_measures(corpus().frame())  # type: ignore[arg-type]
    with pytest.raises(InputError, match="corpus has no measures"):
        judge_measures(corpus(measures={}, orientation={}))
    with pytest.raises(InputError, match="has no training accuracies"):
        judge_measures(corpus(train_accuracy=None), least_train_accuracy=0.8)


@pytest.mark.slow
def test_comparing_measures_is_paired_and_keeps_its_level() -> None:
    """Two measures equally far from the gap differ in 5% of corpora at most."""
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(60):
        own = rng.normal(size=GRID.shape[1] * 2)
        twins = {name: own + rng.normal(size=48) for name in ("a", "b")}
        found = corpus(gap=0.2 + 0.01 * own, measures=twins, orientation={"a": 1, "b": 1})
        hits += judge_measures(found, permutations=0).compare("a", "b").pvalue <= 0.05
    assert hits <= 7
    judged = judge_measures(corpus(tasks=6), permutations=0)
    better = judged.compare("good", "poor")
    assert better.pvalue < 0.05
    assert better.difference.low > 0
    assert better.difference.estimate == pytest.approx(
        judged.row("good").cmi.estimate - judged.row("poor").cmi.estimate
    )
    assert len(better.columns()["task"]) == 7
    same = judged.compare("good", "good")
    assert (same.pvalue, same.difference.estimate) == (1.0, 0.0)


def test_table_has_tasks_an_average_and_the_best_in_bold() -> None:
    judged = judge_measures(corpus(), permutations=0)
    lines = judged.table(digits=4).split("\n")
    assert [c.strip() for c in lines[0].strip("|").split("|")] == [
        "measure", "task 0", "task 1", "All Avg",
    ]  # fmt: skip
    assert lines[1].count("-:|") == 3
    rows = {r[0]: r[1:] for r in ([c.strip() for c in x.strip("|").split("|")] for x in lines[2:])}
    assert rows["cmi × 100"] == ["n = 24", "n = 24", "n = 48"]
    for column, task in enumerate(("task 0", "task 1", None)):
        scores = {name: judged.row(name, task).cmi.estimate for name in judged.measures}
        best = max(scores, key=lambda k: scores[k])
        for name, score in scores.items():
            wanted = f"{100 * score:.4f}"
            assert rows[name][column] == (f"**{wanted}**" if name == best else wanted)
    assert "**" in judged.table(value="kendall")
    with pytest.raises(InputError, match="value='tau'"):
        judged.table(value="tau")
    with pytest.raises(InputError, match="format='word'"):
        judged.table("word")


def test_sections_mark_the_best_of_each_and_the_best_of_all() -> None:
    judged = judge_measures(corpus(tasks=1), permutations=0)
    text = judged.table("latex", sections={"One": ["falling", "poor"], "Two": ["good"]})
    assert "\\begin{tabular}{lr}" in text
    good, falling = (100 * judged.row(k).cmi.estimate for k in ("good", "falling"))
    assert good > falling
    assert rf"good & \textbf{{{good:.2f}}}* \\" in text
    assert rf"falling & \textbf{{{falling:.2f}}} \\" in text
    assert "One & n = 24" in text


def test_judgements_of_several_perturbations_stand_below_each_other() -> None:
    one = judge_measures(corpus(1), ["good", "poor"], permutations=0)
    two = judge_measures(corpus(2), ["good", "poor"], permutations=0, least_train_accuracy=0.8)
    text = tabulate_judgements({"Rotation": one, "Blur": two}, "latex")
    lines = text.split("\n")
    assert r"Rotation & n = 24 & n = 24 & n = 48 \\" in lines
    assert r"Blur & n = 20 & n = 20 & n = 40 \\" in lines
    assert text.count(r"\textbf") == 6
    with pytest.raises(InputError, match="judgements is empty"):
        tabulate_judgements({})


def test_data_sets_stand_side_by_side() -> None:
    """Table 3 of Schiff et al.: perturbations below each other, data sets and families side by side."""
    parts = {"CIFAR-10, VGG": replace(corpus(1, 1), tasks=None), "SVHN, VGG": replace(corpus(2, 1), tasks=None)}
    joined = join_corpora(parts)
    judged = judge_measures(joined, ["good", "poor"], permutations=0, least_train_accuracy=0.8)
    for name, part in parts.items():
        alone = judge_measures(part, ["good", "poor"], permutations=0, least_train_accuracy=0.8)
        for measure in ("good", "poor"):
            assert judged.row(measure, name).value("pgdl") == alone.row(measure).value("pgdl")
    text = tabulate_judgements({"Rotation": judged}, value="pgdl")
    assert "CIFAR-10, VGG" in text.split("\n")[0]
    assert "SVHN, VGG" in text.split("\n")[0]


def test_corpora_that_differ_in_columns_are_joined() -> None:
    one = ModelCorpus(("a",), {"depth": [2]}, [0.1], {"x": [1.0]}, {"x": 1}, train_accuracy=[0.9])
    two = ModelCorpus(("a", "b"), {"width": [3, 4]}, [0.2, 0.3], {"y": [2.0, 3.0]}, tasks=["s", "t"])
    joined = join_corpora({"one": one, "two": two})
    assert joined.task_names == ("one", "two, s", "two, t")
    assert joined.hyperparameters["depth"].tolist() == [2, None, None]
    assert np.isnan(joined.measures["x"]).tolist() == [False, True, True]
    assert joined.orientation == {"x": 1}
    assert joined.train_accuracy is not None
    assert np.isnan(joined.train_accuracy).tolist() == [False, True, True]
    for given, message in (
        ({}, "at least one corpus"),
        ({"one": 1}, "holds a int for 'one'"),
        ({"one": one, "other": one.with_measures({"x": [1.0]}, -1)}, "two orientations of 'x'"),
        ({"two, s": one, "two": two}, "two tasks called 'two, s'"),
    ):
        with pytest.raises(InputError, match=message):
            join_corpora(given)


def test_names_cannot_break_a_table() -> None:
    bad = "a|b *x* <script> \x1b[2J _y_ $&%#\n\ue000\ue000"
    named = corpus(tasks=1).with_measures({bad: np.arange(24.0)})
    judged = judge_measures(named, [bad], permutations=0)
    markdown = judged.table()
    assert len(markdown.split("\n")) == 4
    assert "\x1b" not in markdown
    assert r"\*x\*" in markdown
    assert r"\<script\>" in markdown
    latex = judged.table("latex")
    assert r"\$\&\%\#" in latex
    assert "\ue000" not in latex
    assert "<script>" not in judged._repr_html_()


def test_summary_and_frame() -> None:
    pytest.importorskip("pandas")
    judged = judge_measures(corpus(), permutations=49)
    text = judged.summary()
    assert "4 measures judged on 48 models of 2 tasks" in text
    assert "by hyperparameters alone" in text
    frame = judged.frame()
    assert len(frame) == 12
    assert {"cmi", "low", "high", "null_mean", "pvalue", "pgdl", "granulated"} <= set(frame)


def by_axis(measure: np.ndarray, gap: np.ndarray, settings: dict) -> float:
    """Jiang et al. 2020, equation by equation: groups that agree in all but one axis."""
    axes = []
    for axis in settings:
        groups: dict[tuple, list[int]] = {}
        for i in range(len(gap)):
            key = tuple(v[i] for k, v in settings.items() if k != axis)
            groups.setdefault(key, []).append(i)
        found = []
        for rows in groups.values():
            signs = [
                np.sign(measure[i] - measure[j]) * np.sign(gap[i] - gap[j])
                for i, j in product(rows, repeat=2)
                if settings[axis][i] != settings[axis][j]
            ]
            if signs:
                found.append(np.mean(signs))
        if found:
            axes.append(np.mean(found))
    return float(np.mean(axes))


@pytest.mark.parametrize("repeats", [1, 2])
def test_granulated_kendall_is_the_mean_over_axes_of_groups(repeats: int) -> None:
    grid = np.array(list(product(range(3), range(2), range(4))) * repeats).T
    settings = {"a": grid[0], "b": grid[1] == 1, "c": np.array(list("wxyz"))[grid[2]]}
    rng = np.random.default_rng(2)
    gap = rng.normal(size=grid.shape[1])
    measure = gap + rng.normal(size=grid.shape[1])
    wanted = by_axis(measure, gap, settings)
    assert granulated_kendall(measure, gap, settings) == pytest.approx(wanted, abs=1e-12)
    assert granulated_kendall(-measure, gap, settings, orientation=-1) == pytest.approx(wanted)


def test_granulated_kendall_equals_scipys_where_one_axis_is_all() -> None:
    rng = np.random.default_rng(3)
    measure, gap = rng.normal(size=(2, 12))
    wanted = stats.kendalltau(measure, gap).statistic
    assert granulated_kendall(measure, gap, {"a": range(12)}) == pytest.approx(wanted)


def test_granulated_kendall_sees_through_a_dominant_axis() -> None:
    """The measure follows depth alone; along width it is against the gap."""
    depth, width = np.array(list(product(range(2), range(5)))).T
    gap = 10.0 * depth + width
    measure = 10.0 * depth - width
    assert kendall(measure[None], gap)[0] > 0.1
    assert granulated_kendall(measure, gap, {"depth": depth, "width": width}) == 0.0


def test_without_models_that_differ_in_one_axis_it_is_unknown() -> None:
    rng = np.random.default_rng(4)
    measure, gap = rng.normal(size=(2, 6))
    assert np.isnan(granulated_kendall(measure, gap, {"a": range(6), "b": range(6)}))
    with pytest.raises(InputError, match="orientation=3"):
        granulated_kendall(measure, gap, {}, orientation=3)
    with pytest.raises(InputError, match="measure has shape"):
        granulated_kendall(measure[:3], gap, {})
    with pytest.raises(InputError, match="gap holds 1 value"):
        granulated_kendall(measure, [np.nan, *gap[1:]], {"a": range(6)})


def test_a_measure_that_predicts_the_opposite_is_not_called_the_best() -> None:
    found = corpus(tasks=1)
    wrong = judge_measures(replace(found, orientation={"good": -1}), ["good"], permutations=0)
    assert wrong.row("good").cmi.high < 0
    assert "None predicts in its declared direction. Highest is good" in wrong.sentences()
    assert "Significantly opposite to the declared direction: good" in wrong.sentences()
    right = judge_measures(found, ["good"], permutations=0).sentences()
    assert "Best is good" in right
    assert "opposite" not in right


def test_without_a_direction_the_best_correlation_is_the_largest_in_size() -> None:
    found = replace(corpus(tasks=1), orientation={})
    judged = judge_measures(found, ["open", "poor"], permutations=0)
    assert judged.row("open").kendall < -0.3 < abs(judged.row("poor").kendall) < 0.3
    assert "By Kendall's τ" not in judged.sentences()
    lines = judged.table(value="kendall").splitlines()
    assert "**" in next(line for line in lines if "open" in line)
    assert "**" not in next(line for line in lines if "poor" in line)


def test_a_measure_that_a_task_lacks_is_named_and_keeps_its_direction() -> None:
    found = corpus()
    good = np.where(found.tasks == "task 1", np.nan, found.measures["good"])
    found = replace(found, measures={**found.measures, "good": good})
    with pytest.warns(CurvewiseWarning):
        judged = judge_measures(found, ["good", "poor"], permutations=0)
    assert "Without an average, as a task gives no score: good" in judged.sentences()
    assert judged.row("good", "task 1").directed
    assert "Without an average" not in judge_measures(corpus(), ["good"], permutations=0).sentences()


def test_a_difference_that_never_varies_has_no_interval() -> None:
    gap = np.random.default_rng(0).random(24)
    judged = judge_measures(
        corpus(
            tasks=1, gap=gap, measures={"right": gap, "also": 2 * gap, "mute": np.ones(24)}, orientation={"right": 1}
        ),
        permutations=0,
    )
    assert math.isnan(judged.row("right").cmi.low)
    assert "CMI × 100 of 100." in judged.sentences()
    assert list(judged.row("mute").cmi) == [0, 0, 0]
    found = judged.compare("right", "mute")
    assert found.difference.estimate == pytest.approx(1)
    assert math.isnan(found.difference.low)
    assert math.isnan(found.pvalue)
    same = judged.compare("right", "also")
    assert same.difference.estimate == 0
    assert same.pvalue == 1


def test_an_average_with_a_task_of_unknown_error_has_no_interval() -> None:
    """Taken as certain, six models on which it is right on every pair made intervals of averages cover 82%, not 95%."""
    whole = corpus(tasks=2)
    first = whole.tasks == whole.task_names[0]
    judged = judge_measures(
        whole.with_measures({"half": np.where(first, whole.gap, whole.measures["good"])}, 1), permutations=0
    )
    for task, known in ((whole.task_names[0], False), (whole.task_names[1], True), (None, False)):
        cmi = judged.row("half", task).cmi
        assert cmi.estimate > 0
        assert math.isfinite(cmi.low) == math.isfinite(cmi.high) == known


def test_numbers_of_numpy_choose_directions() -> None:
    one = corpus(tasks=1)
    assert one.with_measures({"x": one.gap}, np.int64(-1)).orientation["x"] == -1
    settings = dict(one.hyperparameters)
    assert cmi_score(one.measures["good"], one.gap, settings, given=np.int64(1)) == cmi_score(
        one.measures["good"], one.gap, settings, given=1
    )
    with pytest.raises(InputError, match="orientation=None"):
        granulated_kendall(one.gap, one.gap, settings, orientation=None)
