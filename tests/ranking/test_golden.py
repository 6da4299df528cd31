"""Published figures of ranking measures, from published scores and accuracies."""

from __future__ import annotations

import csv
from collections import defaultdict
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from curvewise.errors import InputError
from curvewise.ranking.agreement import ranking_agreement
from curvewise.ranking.judgement import RankingJudgement, judge_rankings
from curvewise.ranking.load import CheckpointScores, load_checkpoint_scores
from curvewise.ranking.prediction import nleep
from curvewise.ranking.rank import RELIABILITY

ARCHITECTURES = "source_model_architectures_table.csv"
FROZEN, TUNED = False, True

# Means over the nine target sets of what each has, to the digits that are printed.
FIGURES = {
    ("nleep", FROZEN): {"kendall": 0.755, "pearson": 0.912, "rel_at_1": 0.994},
    ("nleep", TUNED): {"kendall": 0.610, "pearson": 0.830, "rel_at_1": 0.977},
    ("gbc", FROZEN): {"kendall": 0.557},
    ("gbc", TUNED): {"kendall": 0.434},
    ("logme", FROZEN): {"kendall": 0.459},
    ("logme", TUNED): {"kendall": 0.392},
}


@pytest.fixture(scope="module")
def tables(data_dir: Path) -> dict[bool, CheckpointScores]:
    path = data_dir / "ranking" / ARCHITECTURES
    return {tuned: load_checkpoint_scores(path, where={"Trainable Backbone": tuned}) for tuned in (FROZEN, TUNED)}


@pytest.fixture(scope="module")
def judged(tables: dict[bool, CheckpointScores]) -> dict[bool, RankingJudgement]:
    return {tuned: judge_rankings(table) for tuned, table in tables.items()}


@pytest.mark.parametrize(("measure", "tuned"), FIGURES)
def test_published_figures(judged: dict[bool, RankingJudgement], measure: str, tuned: bool) -> None:
    row = judged[tuned].row(measure)
    assert row.n == 9 * 19
    for name, figure in FIGURES[measure, tuned].items():
        assert round(row.value(name), 3) == figure


@pytest.mark.parametrize("tuned", [FROZEN, TUNED])
def test_nleep_is_best_there_and_surely_so(judged: dict[bool, RankingJudgement], tuned: bool) -> None:
    found = judged[tuned].comparisons()
    ahead = {r.two: r for r in found.rows if r.one == "nleep"}
    ahead |= {r.one: r for r in found.rows if r.two == "nleep"}
    assert set(ahead) == {"gbc", "logme", "leep", "hscore"}
    means = {m: judged[tuned].row(m).kendall.estimate for m in judged[tuned].measures}
    assert max(means, key=means.__getitem__) == "nleep"
    assert all(r.pvalue < 0.05 for r in ahead.values())


CLASSES = {
    "caltech_birds2011": 200,
    "cifar10": 10,
    "cifar100": 100,
    "dtd": 47,
    "imagenette": 10,
    "oxford_flowers102": 102,
    "oxford_iiit_pet": 37,
    "stanford_dogs": 120,
    "sun397": 397,
}


def test_published_scores_lie_where_formulas_allow_but_for_the_h_score(tables: dict[bool, CheckpointScores]) -> None:
    """The H-score is at most C − 1: that table's is an elementwise product, and no reference of ours."""
    table = tables[TUNED]
    classes = np.array([CLASSES[task] for task in table.tasks])
    assert (np.abs(table.scores["gbc"] + classes * (classes - 1) / 2) <= classes * (classes - 1) / 2).all()
    for name in ("leep", "nleep"):  # in-sample, no worse than the shares of the classes
        assert (table.scores[name] <= 0).all()
        assert (table.scores[name] >= -np.log(classes)).all()
    # The evidence at vanishing weights: all is noise, with 1/C of the squares.
    assert (table.scores["logme"] >= -0.5 * (np.log(2 * np.pi / classes) + 1)).all()
    assert (table.scores["hscore"] > classes - 1)[table.tasks != "sun397"].all()
    assert "stable_transfer" not in RELIABILITY["h-score"].source


def test_a_second_table_has_a_gbc_that_cannot_be(data_dir: Path) -> None:
    """Ten classes have 90 ordered pairs, each with at most 1: why no constant comes from that table."""
    with (data_dir / "ranking" / "model_spider_baseline_results.csv").open(newline="") as handle:
        rows = [row for row in csv.DictReader(handle) if row["Dataset"] == "CIFAR10"]
    assert min(float(row["GBC"]) for row in rows) < -90
    assert all(0 < float(row["H-Score"]) < 9 for row in rows)


@pytest.mark.parametrize(
    ("file", "value"), [(ARCHITECTURES, "Test Accuracy"), ("source_datasets_table.csv", "Test Mean IoU")]
)
def test_every_measure_and_target_against_scipy(data_dir: Path, file: str, value: str) -> None:
    """A second reading of the files: rows by the csv module, correlations by scipy."""
    path = data_dir / "ranking" / file
    pairs: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    with path.open(newline="") as handle:
        for row in csv.DictReader(handle):
            if row.get("Trainable Backbone", "True") == "True":
                key = row["Transferability Metric"], row["Target Dataset"]
                pairs[key].append((float(row["Transferability Metric Score"]), float(row[value])))
    where = {"Trainable Backbone": True} if file == ARCHITECTURES else None
    table = load_checkpoint_scores(path, where=where)
    found = judge_rankings(table)
    for (measure, task), rows in pairs.items():
        scores, accuracy = np.array(rows).T
        row = found.row(measure, task)
        assert row.kendall.estimate == pytest.approx(stats.kendalltau(scores, accuracy).statistic)
        assert row.pearson == pytest.approx(stats.pearsonr(scores, accuracy).statistic)
        assert row.weighted_kendall == pytest.approx(stats.weightedtau(scores, accuracy).statistic)
        assert row.rel[1] == pytest.approx(accuracy[scores.argmax()] / accuracy.max())
        top = np.argsort(scores)[-3:]
        assert row.recall[3] == (accuracy[top].max() == accuracy.max())
    assert len(pairs) == len(table.measures) * len(table.task_names)


def neucrab(data_dir: Path, number: int) -> CheckpointScores:
    reference = () if number == 9 else "From-Scratch"  # table 9 has no training from scratch
    path = data_dir / "ranking" / "neucrab_tables" / f"table{number}.csv"
    return load_checkpoint_scores(path, wide="checkpoints", unit="percent", reference=reference)


def with_misses(table: CheckpointScores, misses: dict[str, str]) -> CheckpointScores:
    """Scores that put the best checkpoint first, and another one in the tasks of ``misses``."""
    scores = table.accuracy.copy()
    for task, name in misses.items():
        scores[(table.tasks == task) & (table.checkpoints == name)] = 9.0
    return table.with_scores({"measure": scores})


@pytest.mark.parametrize(
    ("truth", "task", "pick", "figure"),
    [
        (7, "Camelyon", "Sup-100%-Img", 99.65),  # table 1, NLEEP
        (8, "Camelyon", "Inat-270k", 99.44),  # table 2, LEEP
        (10, "Caltech101", "Img-270k", 99.98),  # table 6, NLEEP
    ],
)
def test_one_miss_in_four_tasks_gives_the_printed_figure(
    data_dir: Path, truth: int, task: str, pick: str, figure: float
) -> None:
    table = neucrab(data_dir, truth)
    row = judge_rankings(with_misses(table, {task: pick})).row("measure")
    assert round(100 * row.rel[1], 2) == figure
    assert row.recall[1] == 0.75
    giving = []
    ranked = table.select(table.ranked)
    names = dict.fromkeys(ranked.checkpoints.tolist())
    accuracy = ranked.accuracy.reshape(len(ranked.task_names), len(names))
    for t, n in product(range(len(accuracy)), range(len(names))):
        rel = (3 + accuracy[t, n] / accuracy[t].max()) / 4
        if round(100 * rel, 2) == figure:
            giving.append((ranked.task_names[t], list(names)[n]))
    assert giving == [(task, pick)]  # no other single miss does


@pytest.mark.parametrize("number", [1, 2, 3, 5, 6])
def test_rel_never_falls_with_k_but_in_one_misprint(data_dir: Path, number: int) -> None:
    path = data_dir / "ranking" / "neucrab_tables" / f"table{number}.csv"
    with path.open(newline="") as handle:
        rows = [row for row in csv.DictReader(handle) if row["Rel@1"] != "—"]
    fallen = [row["Method"] for row in rows if float(row["Rel@3"]) < float(row["Rel@1"])]
    assert fallen == (["Fine-tune (5 epochs)"] if number == 6 else [])


def test_rel_cannot_fall_with_k(data_dir: Path) -> None:
    table = neucrab(data_dir, 10).select(neucrab(data_dir, 10).ranked)
    accuracy = table.accuracy.reshape(4, -1)
    rng = np.random.default_rng(0)
    for _ in range(20):
        scores = rng.integers(0, 5, accuracy.shape).astype(float)
        rel = ranking_agreement(scores, accuracy, k=range(1, 13)).by_task
        each = np.array([rel[f"rel_at_{k}"] for k in range(1, 13)])
        assert (np.diff(each, axis=0) >= -1e-12).all()
        np.testing.assert_allclose(each[-1], 1)


def test_table_9_has_no_training_from_scratch(data_dir: Path) -> None:
    path = data_dir / "ranking" / "neucrab_tables" / "table9.csv"
    found = load_checkpoint_scores(path, wide="checkpoints", unit="percent")
    assert len(set(found.checkpoints)) == 13
    assert found.reference == ()
    with pytest.raises(InputError, match="no checkpoint of the table has this name"):
        load_checkpoint_scores(path, wide="checkpoints", unit="percent", reference="From-Scratch")


def test_defaults_of_nleep_are_the_papers() -> None:
    rng = np.random.default_rng(0)
    features, labels = rng.normal(size=(60, 5)), np.arange(60) % 2
    assert nleep(features, labels) == nleep(features, labels, energy=0.8, components=5)
    assert nleep(features, labels) != nleep(features, labels, energy=0.8, components=2)


def test_checkpoints_below_training_from_scratch(data_dir: Path) -> None:
    """Group I: some encoders of generative models, counted in table 7 by hand."""
    table = neucrab(data_dir, 7)
    found = judge_rankings(with_misses(table, {}))
    below = {r.task: r.below for r in found.references}
    assert below == {"Caltech101": 2, "Flowers102": 4, "Camelyon": 5, "Sun397": 6}
    assert {r.n for r in found.references} == {16}


def test_tables_have_the_papers_columns(data_dir: Path) -> None:
    with (data_dir / "ranking" / "neucrab_tables" / "table1.csv").open(newline="") as handle:
        printed = next(csv.reader(handle))
    found = judge_rankings(with_misses(neucrab(data_dir, 7), {}))
    titles = [t.strip() for t in found.table().splitlines()[0].strip("|").split("|")]
    own = [t for t in titles if t != "Weighted"]
    assert [t.lower() for t in own[1:]] == [t.lower() for t in printed[1:]]


def test_groups_and_their_union(data_dir: Path) -> None:
    """Groups I to III as one table: 41 checkpoints, which share From-Scratch."""
    rows = []
    for group, number in {"I": 7, "II": 8, "III": 9}.items():
        part = neucrab(data_dir, number)
        for task, name, value in zip(part.tasks, part.checkpoints, part.accuracy, strict=True):
            rows.append({"group": group, "task": task, "model": name, "accuracy": value})
    rows = [row | {"m": row["accuracy"]} for row in rows]
    table = load_checkpoint_scores(rows, reference="From-Scratch")
    found = judge_rankings(table)
    assert found.groups == ("I", "II", "III", "union")
    assert [found.row("m", "Sun397", group=g).n for g in found.groups] == [16, 12, 13, 41]
    assert found.row("m").kendall.estimate == pytest.approx(1)
    assert {r.group for r in found.references} == {"I", "II", "union"}


def test_scores_of_one_file_with_accuracies_of_another(data_dir: Path) -> None:
    """Model Spider's scores beside the fine-tuned accuracies of the other pool."""
    folder = data_dir / "ranking"
    tasks = {"CIFAR10": "cifar10", "CIFAR100": "cifar100", "DTD": "dtd"}
    tasks |= {"Pet": "oxford_iiit_pet", "SUN397": "sun397"}
    with (folder / "model_spider_baseline_results.csv").open(newline="") as handle:
        rows = [r | {"Dataset": tasks.get(r["Dataset"], r["Dataset"])} for r in csv.DictReader(handle)]
    with (folder / ARCHITECTURES).open(newline="") as handle:
        names = {r["Source Architecture"] for r in csv.DictReader(handle)}
    shared = names & {r["Model"] for r in rows}
    truth = load_checkpoint_scores(
        folder / ARCHITECTURES, where={"Trainable Backbone": True, "Source Architecture": sorted(shared)}
    )
    truth = truth.select(np.isin(truth.tasks, list(tasks.values())))
    table = load_checkpoint_scores(rows, accuracies=truth)
    assert len(shared) >= 5
    assert len(table) == len(shared) * 5
    found = judge_rankings(table, ["NLEEP", "LogME"])
    chosen = [r for r in rows if r["Dataset"] == "dtd" and r["Model"] in shared]
    accuracy = dict(zip(truth.checkpoints[truth.tasks == "dtd"], truth.accuracy[truth.tasks == "dtd"], strict=True))
    oracle = stats.kendalltau([float(r["LogME"]) for r in chosen], [accuracy[r["Model"]] for r in chosen]).statistic
    assert found.row("LogME", "dtd").kendall.estimate == pytest.approx(oracle)
