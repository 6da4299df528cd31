"""Judging measures: averages, unions, references, baselines, comparisons and their tables."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.ranking.agreement import ranking_agreement
from curvewise.ranking.judgement import AVERAGE, RankingComparisons, RankingJudgement, judge_rankings
from curvewise.ranking.load import CheckpointScores
from curvewise.stats.tests import holm, sign_flip_pvalue
from curvewise.types.results import Interval

TASKS = ("birds", "cars", "flowers", "pets", "scenes", "textures", "digits")


def made(
    tasks: int = 4,
    size: int = 14,
    groups: int = 1,
    seed: int = 0,
    noise: tuple[float, ...] = (0.4, 1.0),
    **options: Any,
) -> CheckpointScores:
    """Measures with noise of their own, a baseline of chance, and a reference in every group."""
    rng = np.random.default_rng(seed)
    quality = rng.normal(size=(groups, tasks, size))
    rows: dict[str, list[Any]] = {k: [] for k in ("checkpoint", "task", "group", "accuracy")}
    for g in range(groups):
        for t in range(tasks):
            names = [f"net {g}.{i}" for i in range(size)]
            rows["checkpoint"] += [*names, "scratch"]
            rows["task"] += [TASKS[t]] * (size + 1)
            rows["group"] += [f"group {g}"] * (size + 1)
            rows["accuracy"] += [*(1 / (1 + np.exp(-quality[g, t]))), 0.3]
    truth = np.array(rows["accuracy"])
    logits = np.log(truth / (1 - truth))
    scores = {f"m{i}": logits + s * rng.normal(size=len(truth)) for i, s in enumerate(noise)}
    sizes = {name: rng.random() for name in dict.fromkeys(rows["checkpoint"])}
    scores["parameters"] = np.array([sizes[name] for name in rows["checkpoint"]])
    for values in scores.values():
        values[np.array(rows["checkpoint"]) == "scratch"] = np.nan
    found = {
        "tasks": rows["task"],
        "groups": rows["group"],
        "reference": ("scratch",),
        "baselines": ("parameters",),
        "gflops": {"m0": np.full(len(truth), 12.5)},
    }
    return CheckpointScores(rows["checkpoint"], truth, scores, **(found | options))


def matrix(table: CheckpointScores, values: np.ndarray, group: str | None = None) -> np.ndarray:
    """Tasks by ranked checkpoints, by another way."""
    chosen = table.ranked & (True if group is None else table.groups == group)
    return np.array([values[chosen & (table.tasks == t)] for t in table.task_names])


@pytest.fixture(scope="module")
def table() -> CheckpointScores:
    return made(groups=2)


@pytest.fixture(scope="module")
def judged(table: CheckpointScores) -> RankingJudgement:
    return judge_rankings(table)


@pytest.mark.slow
def test_rows_are_those_of_each_task_and_their_mean(table: CheckpointScores, judged: RankingJudgement) -> None:
    assert judged.groups == ("group 0", "group 1", "union")
    assert len(judged.rows) == 3 * 5 * 3
    for group in (None, "group 0"):
        for name, values in table.scores.items():
            s, a = (matrix(table, v, group) for v in (values, table.accuracy))
            row = judged.row(name, group=group or "union")
            each = [stats.kendalltau(x, y).statistic for x, y in zip(s, a, strict=True)]
            assert row.kendall.estimate == pytest.approx(np.mean(each))
            assert row.n == a.size
            picks = [y[np.argmax(x)] / y.max() for x, y in zip(s, a, strict=True)]
            assert row.rel[1] == pytest.approx(np.mean(picks))
            for t, task in enumerate(table.task_names):
                one = judged.row(name, task, group=group or "union")
                assert one.kendall.estimate == pytest.approx(each[t])
                expected = ranking_agreement(s[t], a[t]).intervals["kendall"]
                np.testing.assert_allclose(list(one.kendall), list(expected))


def test_costs_are_averaged_over_checkpoints_and_tasks() -> None:
    table = made(groups=1, tasks=2, size=5)
    cost = np.where(table.tasks == "cars", 3.0, 1.0)
    judged = judge_rankings(replace(table, gflops={"m0": cost}))
    assert (judged.row("m0", "cars").gflops, judged.row("m0").gflops) == (3.0, 2.0)


def test_what_a_group_lacks_is_not_said_of_the_union_again(table: CheckpointScores) -> None:
    lost = np.where(table.checkpoints == "net 1.3", np.nan, table.scores["m0"])
    with pytest.warns(CurvewiseWarning, match="1 of 14 checkpoints has no score") as said:
        judge_rankings(table.with_scores({"m0": lost}))
    assert [str(w.message).partition(":")[0] for w in said] == ["group 1, m0"]


def test_costs_and_baselines_are_marked(judged: RankingJudgement) -> None:
    assert judged.row("m0").gflops == 12.5
    assert math.isnan(judged.row("m1").gflops)
    assert judged.baselines == ("parameters",)
    assert [r.baseline for r in judged.rows[:3]] == [False, False, True]


def test_references_stand_beside_and_are_never_ranked(table: CheckpointScores, judged: RankingJudgement) -> None:
    assert len(judged.references) == 3 * 4
    for row in judged.references:
        group = None if row.group == "union" else row.group
        others = matrix(table, table.accuracy, group)[table.task_names.index(row.task)]
        assert (row.below, row.n) == ((others < 0.3).sum(), len(others))
        assert row.best == others.max()
    assert "lie below scratch" in judged.summary()
    assert "of 28" in judged.reference_table("text")
    best = made()
    accuracy = np.where(best.ranked, best.accuracy, 1.0)
    winner = CheckpointScores(best.checkpoints, accuracy, best.scores, tasks=best.tasks, reference=("scratch",))
    same = judge_rankings(winner), judge_rankings(best)
    assert same[0].columns()["rel_at_1"] == same[1].columns()["rel_at_1"]
    level = CheckpointScores(["a", "b", "c"], [0.5, 0.6, 0.6], {"m": [1, 2, 3]}, reference=("c",))
    (row,) = judge_rankings(level).references
    assert (row.below, row.n, row.best) == (1, 2, 0.6)


def test_each_measure_is_tested_against_the_best_baseline(judged: RankingJudgement) -> None:
    assert judged.against_baseline is not None
    rows = judged.against_baseline.rows
    assert [(r.group, r.one, r.two) for r in rows[:2]] == [
        ("group 0", "m0", "parameters"),
        ("group 0", "m1", "parameters"),
    ]
    last = [r for r in rows if r.group == "union"]
    assert [r.adjusted for r in last] == holm([r.pvalue for r in last]).tolist()
    assert last[0].pvalue < 0.001
    assert last[0].difference.low > 0
    assert "Significantly better than the best baseline (parameters), at 0.05 by Holm" in judged.summary()


def test_the_best_baseline_is_the_one_and_all_comparisons_count() -> None:
    table = made(noise=(0.4, 0.6))
    judged = judge_rankings(replace(table, baselines=("m1", "parameters")))
    assert judged.against_baseline is not None
    assert [(r.one, r.two) for r in judged.against_baseline.rows] == [("m0", "m1")]
    plain = judge_rankings(table)
    assert plain.against_baseline is not None
    row = replace(plain.against_baseline.rows[0], pvalue=0.03, adjusted=0.06)
    unsure = replace(plain, against_baseline=RankingComparisons((row,)))
    assert "at 0.05 by Holm: none." in unsure.summary()
    sure = replace(plain, against_baseline=RankingComparisons((replace(row, adjusted=0.04),)))
    assert "at 0.05 by Holm: m0." in sure.summary()
    other = replace(row, adjusted=0.04, difference=Interval(-0.2, -0.3, -0.1, 0.95))
    worse = replace(plain, against_baseline=RankingComparisons((other,)))
    assert "at 0.05 by Holm: none." in worse.summary()


def test_without_baselines_there_is_no_such_test() -> None:
    assert judge_rankings(made(baselines=())).against_baseline is None


def test_differences_are_paired(judged: RankingJudgement) -> None:
    found = judged.comparisons(group="group 0")
    assert [(r.one, r.two) for r in found.rows] == [("m0", "m1"), ("m0", "parameters"), ("m1", "parameters")]
    row = found.rows[0]
    one, two = (judged.row(m, group="group 0").kendall.estimate for m in ("m0", "m1"))
    assert row.difference.estimate == pytest.approx(one - two)
    assert (row.tasks, row.checkpoints) == (4, 14)
    assert math.isnan(row.task_pvalue)  # four tasks have 16 arrangements of signs
    # The interval leaves 0 out exactly where the test finds a difference.
    for r in found.rows:
        assert (0 in r.difference) == (r.pvalue > 0.05)
    with pytest.raises(InputError, match="value='speed'"):
        judged.comparisons(value="speed")
    with pytest.raises(InputError, match="there is no such row"):
        judged.comparisons(["m0", "m9"])
    with pytest.raises(InputError, match="measures='kendall': give a list of two or more"):
        judged.comparisons("kendall")


def test_many_tasks_have_an_exact_test_for_the_same_checkpoints() -> None:
    table = made(tasks=7, seed=3)
    judged = judge_rankings(table)
    row = judged.comparisons(["m0", "m1"]).rows[0]
    differences = [
        stats.kendalltau(a, y).statistic - stats.kendalltau(b, y).statistic
        for a, b, y in zip(
            *(matrix(table, v) for v in (table.scores["m0"], table.scores["m1"], table.accuracy)), strict=True
        )
    ]
    assert row.task_pvalue == pytest.approx(sign_flip_pvalue(np.array(differences)))
    rel = judged.comparisons(["m0", "m1"], value="rel_at_1").rows[0]
    assert rel.test == "bootstrap over checkpoints and tasks"
    assert rel.difference.estimate == pytest.approx(judged.row("m0").rel[1] - judged.row("m1").rel[1])
    assert (0 in rel.difference) == (rel.pvalue > 0.05)


def test_the_same_scores_do_not_differ() -> None:
    table = made(noise=(0.5,))
    table = table.with_scores({"again": 2 * table.scores["m0"] + 5})
    row = judge_rankings(table).comparisons(["m0", "again"]).rows[0]
    assert (row.difference.estimate, row.pvalue, row.adjusted) == (0.0, 1.0, 1.0)
    rel = judge_rankings(table).comparisons(["m0", "again"], value="rel_at_1").rows[0]
    assert (rel.difference.estimate, rel.pvalue) == (0.0, 1.0)


def test_measures_are_compared_where_both_have_scores() -> None:
    table = made(noise=(0.4, 0.4))
    lost = table.scores["m1"].copy()
    lost[(table.checkpoints == "net 0.3")] = np.nan
    with pytest.warns(CurvewiseWarning, match="group 0, m1: 1 of 14 checkpoints has no"):
        judged = judge_rankings(table.with_scores({"m1": lost}))
    row = judged.comparisons(["m0", "m1"]).rows[0]
    assert row.checkpoints == 13
    kept = table.select(table.checkpoints != "net 0.3")
    same = judge_rankings(kept).comparisons(["m0", "m1"]).rows[0]
    assert row.difference.estimate == pytest.approx(same.difference.estimate)
    assert row.pvalue == pytest.approx(same.pvalue, rel=0.2)
    assert judged.row("m1").n == 4 * 13


def test_a_failed_fine_tuning_is_said() -> None:
    table = made(noise=(0.4,))
    accuracy = np.where(table.checkpoints == "net 0.2", np.nan, table.accuracy)
    accuracy[table.tasks != "cars"] = table.accuracy[table.tasks != "cars"]
    lost = CheckpointScores(table.checkpoints, accuracy, table.scores, tasks=table.tasks)
    lost = lost.select(table.ranked)
    with pytest.warns(CurvewiseWarning, match="cars: 1 of 14 checkpoints has no accuracy"):
        judged = judge_rankings(lost)
    assert judged.row("m0", "cars").n == 13


def test_a_measure_without_scores_is_shown_as_unknown() -> None:
    table = made(noise=(0.4,))
    none = np.full(len(table), np.nan)
    with pytest.warns(CurvewiseWarning, match="group 0: leep has no score for any checkpoint"):
        judged = judge_rankings(table.with_scores({"leep": none}))
    row = judged.row("leep")
    assert math.isnan(row.kendall.estimate)
    assert math.isnan(row.rel[1])
    assert row.n == 0
    line = next(x for x in judged.table("text").splitlines() if x.startswith("leep"))
    assert line.split() == ["leep", *["–"] * 8]
    assert math.isnan(judged.comparisons(["m0", "leep"]).rows[0].pvalue)
    assert "Best is m0" in judged.summary()


def test_table_has_the_papers_columns_best_bold_second_underlined() -> None:
    accuracy = np.array([0.5, 0.6, 0.7, 0.8, 0.9])
    table = CheckpointScores(
        list("abcde"),
        accuracy,
        {"good": accuracy, "fair": [1.0, 2.0, 3.0, 5.0, 4.0], "bad|name": -accuracy, "size": [1.0, 2.0, 4.0, 3.0, 5.0]},
        gflops={"good": np.full(5, 49_500.0), "fair": np.full(5, 12.95)},
        baselines=("size",),
    )
    judged = judge_rankings(table)
    lines = judged.table(digits=1).splitlines()
    assert lines[0].replace(" ", "") == ("|Measure|Recall@1|Rel@1|Recall@3|Rel@3|Pearson|Kendall|Weighted|GFLOPs|")
    assert [c.strip() for c in lines[2].split("|")[1:4]] == ["good", "**100.0**", "**100.0**"]
    assert lines[2].split("|")[-2].strip() == "4.95E+04"
    assert "<u>88.9</u>" in lines[3]
    assert lines[4].startswith(r"| bad\|name ")
    assert "-100.0" in lines[4]
    assert lines[5].startswith("| size (baseline)")
    assert len({len(line.replace(r"\|", "!!")) for line in lines}) == 1
    assert r"\textbf{100.0}" in judged.table("latex", 1)
    assert r"\underline{80.0}" in judged.table("latex", 1)
    assert "100.0*" in judged.table("text", 1)
    assert "88.9+" in judged.table("text", 1)
    one = judged.table(task="one task")
    assert one == judged.table()
    with pytest.raises(InputError, match="format='word'"):
        judged.table("word")


def test_table_of_a_group_or_a_task(judged: RankingJudgement) -> None:
    assert judged.table() == judged.table(group="union")
    assert judged.table(group="group 0") != judged.table()
    value = judged.row("m0", "cars", group="group 0").kendall.estimate
    assert f"{100 * value:.2f}" in judged.table(task="cars", group="group 0")
    with pytest.raises(InputError, match="group='group 7': not among"):
        judged.table(group="group 7")


def test_columns_and_plain_values(judged: RankingJudgement) -> None:
    columns = judged.columns()
    assert {len(v) for v in columns.values()} == {len(judged.rows)}
    assert columns["task"].count(AVERAGE) == 9
    plain = judged.to_dict()
    assert plain["rows"][0]["measure"] == "m0"
    assert plain["against_baseline"]["rows"][0]["two"] == "parameters"


@pytest.mark.slow
def test_groups_need_not_have_the_same_tasks() -> None:
    table = made(groups=2)
    table = table.select((table.groups == "group 0") | (table.tasks != "cars"))
    judged = judge_rankings(table, union=False)
    assert judged.groups == ("group 0", "group 1")
    assert {r.task for r in judged.rows if r.group == "group 1"} == {*("birds", "flowers", "pets"), AVERAGE}
    assert "In group 0:" in judged.summary()
    judged = judge_rankings(table)
    assert any("union: 1 of 4 tasks lack some checkpoints" in w for w in judged.warnings)
    assert judged.row("m0", "cars").n == 14


@pytest.mark.slow
def test_the_seed_determines_the_answer(table: CheckpointScores, judged: RankingJudgement) -> None:
    again = judge_rankings(table)
    assert [r.intervals for r in again.rows] == [r.intervals for r in judged.rows]
    other = judge_rankings(table, rng=1)
    assert [r.intervals for r in other.rows] != [r.intervals for r in judged.rows]


def test_bad_input(table: CheckpointScores) -> None:
    with pytest.raises(InputError, match="table is a dict"):
        judge_rankings({})  # type: ignore[arg-type]
    with pytest.raises(InputError, match="'m7': not among"):
        judge_rankings(table, ["m7"])
    with pytest.raises(InputError, match="Did you mean 'm0'"):
        judge_rankings(table, ["m00"])
    with pytest.raises(InputError, match="give a list of names"):
        judge_rankings(table, "m0")
    with pytest.raises(InputError, match="table has no scores"):
        judge_rankings(CheckpointScores(["a"], [0.5]))
    with pytest.raises(InputError, match="references only"):
        judge_rankings(CheckpointScores(["a"], [0.5], {"m": [1.0]}, reference=("a",)))
    clash = CheckpointScores(["a", "a"], [0.5, 0.6], {"m": [1, 2]}, groups=["x", "y"])
    with pytest.raises(InputError, match="several groups with different accuracies"):
        judge_rankings(clash)
    two = CheckpointScores(["a", "a"], [0.5, 0.5], {"m": [1, 2]}, groups=["x", "y"])
    with pytest.raises(InputError, match=r"different scores of m for 'one task' \(1 and 2\)"):
        judge_rankings(two)
    lost = CheckpointScores(["a", "a"], [0.5, 0.5], {"m": [np.nan, 2]}, groups=["x", "y"])
    with pytest.raises(InputError, match="different scores of m"):
        judge_rankings(lost)
    mean = CheckpointScores(["a", "b"], [0.5, 0.6], {"m": [1, 2]}, tasks=["average"] * 2)
    with pytest.raises(InputError, match="tasks holds 'average'"):
        judge_rankings(mean)
    named = CheckpointScores(["a", "b"], [0.5, 0.6], {"m": [1, 2]}, groups=["x", "union"])
    with pytest.raises(InputError, match="rename it"):
        judge_rankings(named)


def test_union_of_three_groups_ranks_all_their_checkpoints_together() -> None:
    """Table 5 of the paper: groups differ in their level, so that the union is not the mean of its groups."""
    rng = np.random.default_rng(0)
    rows = []
    for group, (size, level) in {"I": (6, 0.3), "II": (5, 0.5), "III": (4, 0.7)}.items():
        for task in ("flowers", "scenes"):
            rows.append((group, task, "From-Scratch", 0.35, np.nan))
            for i in range(size):
                accuracy = level + 0.1 * rng.random()
                rows.append((group, task, f"{group} {i}", accuracy, accuracy + 0.1 * rng.normal()))
    groups, tasks, names, accuracy, scores = (np.array(column) for column in zip(*rows, strict=True))
    table = CheckpointScores(names, accuracy, {"m": scores}, tasks=tasks, groups=groups, reference=("From-Scratch",))
    judged = judge_rankings(table)
    assert judged.groups == ("I", "II", "III", "union")
    assert [judged.row("m", "scenes", group=g).n for g in judged.groups] == [6, 5, 4, 15]
    for task in ("flowers", "scenes"):
        own = (tasks == task) & (names != "From-Scratch")
        expected = stats.kendalltau(scores[own], accuracy[own]).statistic
        assert judged.row("m", task, group="union").kendall.estimate == pytest.approx(expected)
    parts = [judged.row("m", group=g).kendall.estimate for g in ("I", "II", "III")]
    assert judged.row("m", group="union").kendall.estimate > max(parts)
    (below,) = {r.below for r in judged.references if r.group == "union" and r.task == "scenes"}
    assert below == int((accuracy[(tasks == "scenes") & (names != "From-Scratch")] < 0.35).sum())


@pytest.mark.slow
def test_readable_rows_begin_with_the_averages_best_first() -> None:
    result = judge_rankings(made(groups=2, gflops={}))
    table = result.readable()
    assert list(table)[:4] == ["measure", "task", "group", "Kendall"]
    assert list(table)[-2:] == ["baseline", "pairs"]
    assert "Rel@1" in table
    assert "GFLOPs" not in table
    assert table["task"][: 3 * len(result.measures)] == [AVERAGE] * (3 * len(result.measures))
    assert table["group"][0] == "union"
    first = [result.row(name).kendall.estimate for name in table["measure"][: len(result.measures)]]
    assert first == sorted(first, reverse=True)
    assert len(table["measure"]) == len(result.rows)
    assert "group" not in judge_rankings(made()).readable()


def test_measures_that_lack_the_same_scores_share_a_warning() -> None:
    given = made()
    scores = {name: values.copy() for name, values in given.scores.items()}
    for name in ("m0", "m1"):
        scores[name][given.checkpoints == "net 0.0"] = np.nan
    with pytest.warns(CurvewiseWarning, match="no score"):
        found = judge_rankings(replace(given, scores=scores))
    told = [w for w in found.warnings if "no score" in w]
    assert [w.partition(":")[0] for w in told] == [f"{found.groups[0]}, m0, m1"]


def test_a_measure_in_reverse_is_not_called_the_best() -> None:
    accuracy = np.linspace(0.5, 0.9, 12)
    noise = np.random.default_rng(0).normal(0, 0.02, 12)
    names = [f"net {i}" for i in range(12)]
    wrong = judge_rankings(CheckpointScores(names, accuracy, {"distance": -accuracy + noise})).sentences()
    assert "None orders checkpoints as accuracies do; the highest is distance" in wrong
    assert "Significantly in reverse: distance (change the sign if less of it is better)" in wrong
    right = judge_rankings(CheckpointScores(names, accuracy, {"closeness": accuracy + noise})).sentences()
    assert "Best is closeness" in right
    assert "reverse" not in right


def test_the_best_is_said_to_be_better_only_where_all_pairs_show_it() -> None:
    judged = judge_rankings(made(size=24, noise=(0.6, 0.7, 5.0)))
    (close,), (far,) = (judged.comparisons(["m0", other]).rows for other in ("m1", "m2"))
    said = "significantly better than m2, but not than m1 (at 0.05 by Holm for all pairs)"
    assert close.pvalue > 0.05 > far.pvalue * 6
    assert said in judged.sentences()
    assert said in judged.summary()
    assert "parameters" not in judged.sentences().split(" (at 0.05 by Holm for all pairs)")[0]  # told after it
    pairs = {frozenset((r.one, r.two)): r.adjusted for r in judged.comparisons().rows}
    assert pairs[frozenset(("m0", "m2"))] < 0.05 < pairs[frozenset(("m0", "m1"))]
    assert "; not significantly better than m0 (" in judge_rankings(made(noise=(0.6, 0.61))).sentences()
    assert "significantly better" not in judge_rankings(made(noise=(0.6,)), ["m0"]).sentences()


def test_references_of_an_unbounded_score_are_not_in_per_cent() -> None:
    table = CheckpointScores(["a", "b", "scratch"], [28.0, 26.0, 25.0], {"m": [1, 0, np.nan]}, reference=("scratch",))
    columns = judge_rankings(table, k=1).reference_columns()
    assert columns["Accuracy"] == ["25.00"]
    assert columns["Best checkpoint"] == ["28.00"]


def test_k_that_tries_all_checkpoints_is_noted() -> None:
    table = CheckpointScores(["a", "b", "c"], [0.8, 0.7, 0.6], {"m": [1, 0, 2]})
    assert any("Recall@3 and Rel@3 say nothing" in text for text in judge_rankings(table).warnings)
    assert not any("say nothing" in text for text in judge_rankings(table, k=2).warnings)


@pytest.mark.parametrize("permutations", [-1, 2.5, "many", None])
def test_permutations_are_a_whole_number(table: CheckpointScores, permutations: Any) -> None:
    with pytest.raises(InputError, match=r"permutations=.*: must be a whole number, 1 or more"):
        judge_rankings(table, permutations=permutations)


def test_other_measures_and_tasks_play_no_part() -> None:
    """Draws were one sequence for all: a further measure moved the intervals of the others."""
    table = made(tasks=4, size=8)
    whole, alone = judge_rankings(table), judge_rankings(table, ["m1"])
    part = judge_rankings(table.select(np.isin(table.tasks, TASKS[2:4])), ["m1"])
    for task in (*TASKS[:4], None):
        assert whole.row("m1", task).intervals == alone.row("m1", task).intervals
    ours = (table.tasks == TASKS[2]) & table.ranked
    expected = ranking_agreement(table.scores["m1"][ours], table.accuracy[ours]).intervals
    assert part.row("m1", TASKS[2]).intervals == whole.row("m1", TASKS[2]).intervals == expected
    pairs = [judged.comparisons(value="rel_at_1").rows for judged in (whole, judge_rankings(table, table.measures[1:]))]
    last = [next(r for r in rows if (r.one, r.two) == table.measures[1:3]) for rows in pairs]
    assert last[0].difference == last[1].difference


@pytest.mark.parametrize(("value", "far"), [("recall_at_1", 1.0), ("rel_at_1", 1.0), ("kendall", 2.0)])
def test_differences_end_where_they_can(value: str, far: float) -> None:
    """Student's t reaches beyond: the interval of a difference of Recall@1 of 0.75 ended at 1.5."""
    accuracy = np.tile([0.9, 0.5, 0.2, 0.1], (4, 1))
    right, wrong = accuracy.copy(), -accuracy
    right[0] = wrong[0]
    names, tasks = list("abcd") * 4, np.repeat(TASKS[:4], 4)
    table = CheckpointScores(names, accuracy.ravel(), {"r": right.ravel(), "w": wrong.ravel()}, tasks=tasks)
    (row,) = judge_rankings(table, k=1).comparisons(["r", "w"], value=value).rows
    (turned,) = judge_rankings(table, k=1).comparisons(["w", "r"], value=value).rows
    assert row.difference.estimate > 0.6 * far
    assert row.difference.high <= far
    assert (turned.difference.low, turned.difference.high) == (-row.difference.high, -row.difference.low)
    assert turned.pvalue == row.pvalue
