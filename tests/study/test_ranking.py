"""Checkpoints kept by one study, fine-tuned by others, and measures judged on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.nn.task import Keep
from curvewise.nn.training import Training
from curvewise.ranking.judgement import add_rankings, judge_rankings
from curvewise.ranking.moments import MEASURES as SPECTRAL
from curvewise.ranking.moments import h_score
from curvewise.ranking.rank import rank_features
from curvewise.store.read import list_runs
from curvewise.study.data.dataset import Dataset
from curvewise.study.lenses import checkpoint_files, ranking_table, stage_checkpoints
from curvewise.study.spec.design import Design, Learner
from curvewise.study.study import Study, study_recipe

torch = pytest.importorskip("torch")
safetensors = pytest.importorskip("safetensors.torch")

from curvewise.nn.networks import features_of, make_network  # noqa: E402
from curvewise.ranking.networks.rank import rank_checkpoints  # noqa: E402

MEASURES = {measure.name: measure for measure in SPECTRAL if measure.name in ("h-score", "logme")}


def patterns(classes: int, count: int, seed: int, noise: float = 60.0) -> Dataset:
    """Images of classes that are a pattern each, in noise; one world of patterns for all tasks."""
    world = np.random.default_rng(0).normal(0, 50, (6, 1, 8, 8))
    rng = np.random.default_rng(seed)
    y = np.arange(count) % classes
    x = 128 + world[y + seed % (7 - classes)] + rng.normal(0, noise, (count, 1, 8, 8))
    return Dataset(np.clip(x, 0, 255).astype(np.uint8), y)


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory: pytest.TempPathFactory) -> Study:
    study = study_recipe(
        "ranking-checkpoints",
        patterns(6, 240, 0),
        learners={
            "net": {"architecture": "mlp", "width": 16, "steps": 90, "batch": 32, "rate": 0.05, "augmentation": []}
        },
        design={"folds": 1},
        folder=tmp_path_factory.mktemp("source"),
    )
    assert study.run(workers=0, progress=False, device="cpu").failures == ()
    return study


@pytest.fixture(scope="module")
def tuned(pretrained: Study, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Study]:
    files = checkpoint_files(pretrained)
    usual = Training("mlp", options={"width": 16}, steps=6, batch=16, rate=0.02)
    learners = {name: Learner(training=replace(usual, weights=f)) for name, f in files.items()}
    learners["From-Scratch"] = Learner(training=usual)
    found = {}
    for task, seed in {"first": 1, "second": 2}.items():
        found[task] = Study(
            patterns(3, 120, seed, 90.0),
            learners,
            Design(sizes=[30, 60], folds=1, seeds=2, grid={"rate": [0.0001, 0.05]}),
            keep=Keep(checkpoints="end"),
            folder=tmp_path_factory.mktemp(task),
            name=task,
        )
        assert found[task].run(workers=0, progress=False, device="cpu").failures == ()
    return found


def test_files_of_every_drop_and_the_end(pretrained: Study) -> None:
    files = checkpoint_files(pretrained)
    assert list(files) == ["net drop-1", "net drop-2", "net drop-3", "net end"]
    assert all(Path(path).is_file() for path in files.values())
    (run,) = list_runs(pretrained.runs_folder)
    weights = run.checkpoint("drop-1")
    kept = safetensors.load_file(files["net drop-1"])
    assert all(np.array_equal(kept[name], weights[name]) for name in weights)


def test_stages_of_one_network_are_ranked_in_one_call(pretrained: Study) -> None:
    """Features are those of the kept weights on images as the network saw them, in the order of the training."""
    task = patterns(3, 90, 1, 90.0)
    stages = stage_checkpoints(pretrained)
    assert [stage.name for stage in stages] == ["net drop-1", "net drop-2", "net drop-3", "net end"]
    found = rank_checkpoints(stages, (task.x, task.y), "h-score", resamples=0)
    assert found.failures == {}
    whole = pretrained.examples
    mean, std = (np.reshape(v, (-1, 1, 1)) for v in (whole.mean, whole.std))
    x = torch.from_numpy(((task.x / 255 - mean) / std).astype(np.float32))
    for name, path in checkpoint_files(pretrained).items():
        network = make_network(Training("mlp", options={"width": 16}, weights=path), (1, 8, 8), 6)
        with torch.no_grad():
            own = features_of(network.eval(), x).numpy()
        score = found.scores["h-score"][found.checkpoints.index(name)]
        assert score == pytest.approx(h_score(own, task.y), rel=1e-4)


def test_runs_of_one_training_are_numbered(tmp_path: Path) -> None:
    study = Study(
        patterns(3, 60, 0),
        {"net": Learner(training=Training("mlp", options={"width": 4}, steps=2))},
        Design(folds=1, seeds=2),
        keep=Keep(checkpoints="end"),
        folder=tmp_path,
    )
    with pytest.raises(InputError, match=r"None of the 2 runs has kept weights"):
        checkpoint_files(study)
    study.run(workers=0, progress=False, device="cpu")
    assert list(checkpoint_files(study)) == ["net #1 end", "net #2 end"]


def by_hand(studies: Mapping[str, Study], n: int) -> dict[tuple[str, str], float]:
    """Means over seeds by rate, and the best rate, from the table of runs."""
    found = {}
    for task, study in studies.items():
        frame = study.frame()
        frame = frame[frame["n"] == n]
        means = frame.groupby(["learner", "rate"])["error"].mean()
        for learner in study.learners:
            found[task, learner] = 1 - means[learner].min()
    return found


def test_truth_is_the_best_over_the_grid_of_means_over_seeds(tuned: Mapping[str, Study]) -> None:
    table = ranking_table(tuned)
    assert table.task_names == ("first", "second")
    assert table.reference == ("From-Scratch",)
    assert table.ranked.sum() == 8
    known = by_hand(tuned, 60)
    assert len(table) == len(known)
    for task, name, accuracy in zip(table.tasks, table.checkpoints, table.accuracy, strict=True):
        assert accuracy == pytest.approx(known[task, name], abs=1e-12)
    assert any("best of up to 2 settings" in note for note in table.notes)
    smaller = ranking_table(tuned, n=30)
    np.testing.assert_allclose(smaller.accuracy, list(by_hand(tuned, 30).values()), atol=1e-12)
    single = ranking_table(tuned["first"])
    np.testing.assert_array_equal(single.accuracy, table.accuracy[table.tasks == "first"])


def test_pretraining_on_the_same_patterns_beats_scratch(tuned: Mapping[str, Study]) -> None:
    """Known truth: the source has the patterns of the tasks in it, and the drops are late."""
    table = ranking_table(tuned)
    scratch = table.accuracy[~table.ranked]
    end = table.accuracy[table.checkpoints == "net end"]
    assert (end > scratch + 0.05).all()


def test_measures_are_judged_on_the_truth(pretrained: Study, tuned: Mapping[str, Study]) -> None:
    """Pretrain, keep, fine-tune, extract, rank, judge."""
    table, files = ranking_table(tuned), checkpoint_files(pretrained)
    rankings = {}
    for task, study in tuned.items():
        data = study.examples
        x = (torch.as_tensor(data.x).float() / 255 - 0.5) / 0.25
        features = {}
        for name, path in files.items():
            weights = Training("mlp", options={"width": 16}, weights=path)
            network = make_network(weights, (1, 8, 8), 6)
            with torch.no_grad():
                features[name] = features_of(network.eval(), x).numpy()
        rankings[task] = rank_features(features, data.y, tuple(MEASURES))
    joined = add_rankings(table, rankings)
    assert set(joined.scores) == {"h-score", "logme"}
    assert np.isnan(joined.scores["h-score"][~joined.ranked]).all()
    assert np.isfinite(joined.scores["h-score"][joined.ranked]).all()
    judged = judge_rankings(joined)
    assert judged.tasks == ("first", "second")
    assert {r.reference for r in judged.references} == {"From-Scratch"}
    assert all(r.below == 0 and r.n == 4 for r in judged.references)
    for task in tuned:
        row, ranking = judged.row("h-score", task), rankings[task]
        best = ranking.checkpoints[int(np.argmax(ranking.scores["h-score"]))]
        own = joined.select((joined.tasks == task) & joined.ranked)
        tops = own.scores["h-score"] == own.scores["h-score"].max()
        expected = own.accuracy[tops].mean() / own.accuracy.max()
        assert best in own.checkpoints[tops]
        assert row.rel[1] == pytest.approx(expected)


def test_a_grid_of_weights_is_a_checkpoint_each(pretrained: Study, tmp_path: Path) -> None:
    files = checkpoint_files(pretrained)
    chosen = [files["net drop-1"], files["net end"], None]
    study = Study(
        patterns(3, 60, 1),
        {"net": Learner(training=Training("mlp", options={"width": 16}, steps=3))},
        Design(folds=1, grid={"weights": chosen}),
        folder=tmp_path,
        name="third",
    )
    study.run(workers=0, progress=False, device="cpu")
    table = ranking_table(study)
    assert table.checkpoints.tolist() == ["net drop-1", "net end", "net"]
    assert table.reference == ("net",)


def test_groups_share_their_reference(tuned: Mapping[str, Study]) -> None:
    groups = {"early": ["net drop-1", "net drop-2"], "late": ["net drop-3", "net end"]}
    table = ranking_table(tuned, groups=groups)
    assert table.group_names == ("early", "late")
    for name, part in table.by_group().items():
        assert set(part.checkpoints) == {*groups[name], "From-Scratch"}
    with pytest.raises(InputError, match=r"names 'net drop-9', which is not a learner"):
        ranking_table(tuned, groups={"all": ["net drop-9"]})
    with pytest.raises(InputError, match="is one text"):
        ranking_table(tuned, groups={"all": "net end"})


def test_a_failed_setting_is_said_and_left_out(tmp_path: Path) -> None:
    study = Study(
        patterns(3, 60, 1),
        {"net": Learner(training=Training("mlp", options={"width": 4}, steps=3))},
        Design(folds=1, grid={"rate": [0.01, 1e30]}),
        folder=tmp_path,
    )
    status = study.run(workers=0, progress=False, device="cpu")
    assert len(status.failures) == 1
    with pytest.warns(CurvewiseWarning, match="1 of 2 runs failed"):
        table = ranking_table(study)
    frame: Any = study.frame()
    assert table.accuracy[0] == pytest.approx(1 - frame["error"].min())
    assert any("failed" in note for note in table.notes)


def test_nothing_done_is_an_error(tmp_path: Path) -> None:
    learners = {"net": Learner(training=Training("mlp", steps=3))}
    with pytest.raises(InputError, match="None of the 1 runs"):
        ranking_table(Study(patterns(3, 60, 1), learners, Design(folds=1), folder=tmp_path))
    with pytest.raises(InputError, match="studies is empty"):
        ranking_table({})
