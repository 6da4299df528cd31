from __future__ import annotations

import json
import re
import shutil
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits

from curvewise.cli import main
from curvewise.errors import CurvewiseWarning, InputError
from curvewise.nn.task import Examples, Keep
from curvewise.nn.training import Training
from curvewise.response import judge_measures
from curvewise.response.load import ModelCorpus
from curvewise.study.data.dataset import Dataset
from curvewise.study.response import judge_invariance, kept_invariance, list_invariances, measure_invariance
from curvewise.study.spec.design import Design, Learner
from curvewise.study.spec.evaluation import Evaluation
from curvewise.study.study import Study, load_study, study_recipe

torch = pytest.importorskip("torch")

from curvewise.response.networks.measurement import measure_response, perturbed_accuracy  # noqa: E402

MEASURES = ["gi-score", "mean accuracy", "augmented accuracy"]


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    images, y = load_digits(return_X_y=True)
    x = (images[:300].reshape(-1, 1, 8, 8) * 15).astype(np.uint8)
    made = Study(
        Dataset(x, y[:300]),
        {"mlp": Learner(training=Training("mlp", epochs=10, batch=10, rate=0.05))},
        Design(
            sizes=[120],
            folds=1,
            grid={"width": [16, 32], "augmentation": [[], ["rotation:45"], ["shift-x:0.2"], ["rotation:45", "flip"]]},
        ),
        evaluate={
            "little": Evaluation(perturbation="rotation", magnitude=(-10, 10)),
            "turned": Evaluation(perturbation="rotation", magnitude=(-90, 90)),
            "fixed": Evaluation(perturbation="shift-y", magnitude=0.1),
        },
        keep=Keep(checkpoints="end"),
        folder=tmp_path_factory.mktemp("invariance"),
        store=Path("store"),
    )
    assert made.run(workers=0, progress=False).done == 8
    return made


@pytest.fixture(scope="module")
def corpus(study: Study) -> ModelCorpus:
    return measure_invariance(study, "rotation", magnitudes=5, rng=2)


def rows_of(study: Study, corpus: ModelCorpus) -> list[Any]:
    frame = study.frame()
    return [next(r for _, r in frame.iterrows() if name.endswith(r["run"][:8])) for name in corpus.models]


def test_measures_are_not_written_through_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from curvewise.study.response import KEPT, keep_invariance

    monkeypatch.setattr("curvewise.study.response._invariance_digest", lambda *_: "of no study")
    study = Study("digits", {"a": Learner(Training("mlp", epochs=0))}, folder=tmp_path)
    (study.runs_folder / KEPT).mkdir(parents=True)
    (tmp_path / "victim").write_text("precious")
    (study.runs_folder / KEPT / "rotation.json").symlink_to(tmp_path / "victim")
    corpus = ModelCorpus(
        models=("a", "b", "c"),
        hyperparameters={"h": np.array([1, 2, 3])},
        gap=np.array([0.1, 0.2, 0.3]),
        measures={"gi-score": np.array([1.0, 2.0, 3.0])},
    )
    keep_invariance(study, "rotation", corpus)
    assert (tmp_path / "victim").read_text() == "precious"
    assert not (study.runs_folder / KEPT / "rotation.json").is_symlink()


def test_only_plain_runs_and_those_with_this_perturbation(study: Study, corpus: ModelCorpus) -> None:
    assert sorted((r["augmentation"], r["width"]) for r in rows_of(study, corpus)) == [
        ("none", 16),
        ("none", 32),
        ("rotation:45", 16),
        ("rotation:45", 32),
    ]
    assert list(corpus.hyperparameters) == ["width"]
    assert corpus.notes == ("4 runs with another augmentation are left out.",)


def test_the_gap_is_on_the_widest_range(study: Study, corpus: ModelCorpus) -> None:
    rows = rows_of(study, corpus)
    gaps = [r["error.turned"] - r["train_error"] for r in rows]
    np.testing.assert_allclose(corpus.gap, gaps, atol=1e-12)
    # Those that learnt rotated digits withstand rotation, which the measures say.
    learnt = np.array([r["augmentation"] != "none" for r in rows])
    assert corpus.gap[learnt].max() < corpus.gap[~learnt].min()
    assert corpus.measures["gi-score"][learnt].max() < corpus.measures["gi-score"][~learnt].min()
    for name in MEASURES[1:]:
        assert corpus.measures[name][learnt].min() > corpus.measures[name][~learnt].max()


def test_measures_are_those_by_hand(study: Study, corpus: ModelCorpus) -> None:
    assert corpus.orientation == dict(zip(MEASURES, (1, -1, -1), strict=True))
    for i, row in enumerate(rows_of(study, corpus)):
        own = study.network(run=row["run"])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CurvewiseWarning)
            curve = measure_response(
                own.network, own.examples, "rotation", magnitudes=[-90, -45, 0, 45, 90], signs="keep", rng=2
            )
        share = perturbed_accuracy(own.network, own.examples, "rotation", (-90, 90), examples=0.1, rng=2)
        found = [corpus.measures[name][i] for name in MEASURES]
        assert found == [curve.gi, curve.mean_accuracy, share]


def test_networks_by_name_give_the_same_measures(study: Study, corpus: ModelCorpus) -> None:
    rows = rows_of(study, corpus)
    networks = {r["run"]: study.network(run=r["run"]).network for r in rows}
    train, test = study.network(run=rows[0]["run"]).examples, study.evaluation_sets["test"]
    found = measure_invariance(
        networks,
        "rotation",
        hyperparameters={"width": [r["width"] for r in rows], "kind": [1, "a", None, 2.5]},
        data=(train, test),
        reach=(-90, 90),
        magnitudes=[-90, -45, 0, 45, 90],
        rng=2,
    )
    assert found.models == tuple(networks)
    for name in MEASURES:
        assert np.array_equal(found.measures[name], corpus.measures[name])
    assert found.orientation == corpus.orientation
    assert found.train_accuracy is not None
    np.testing.assert_allclose(found.train_accuracy, corpus.train_accuracy, atol=1e-12)
    tested = [perturbed_accuracy(m, test, "rotation", (-90, 90), rng=2) for m in networks.values()]
    np.testing.assert_allclose(found.gap, found.train_accuracy - tested, atol=1e-13)
    # Other draws of rotations of the same test images: within what 60 images allow.
    assert np.abs(found.gap - corpus.gap).max() < 0.25
    assert found.hyperparameters["kind"].tolist() == [1, "a", None, 2.5]


def test_another_process_agrees_bit_by_bit(study: Study, corpus: ModelCorpus) -> None:
    found = measure_invariance(study, "rotation", magnitudes=5, rng=2, workers=1)
    assert found.models == corpus.models
    assert all(np.array_equal(found.measures[k], corpus.measures[k]) for k in MEASURES)


def test_which_hyperparameters(study: Study) -> None:
    found = measure_invariance(study, "rotation", hyperparameters=["augmentation", "width"], magnitudes=2)
    assert list(found.hyperparameters) == ["augmentation", "width"]
    assert set(found.hyperparameters["augmentation"]) == {"[]", '["rotation:45"]'}


def test_a_damaged_network_does_not_lose_the_others(study: Study, corpus: ModelCorpus, tmp_path: Path) -> None:
    shutil.copytree(study.runs_folder, tmp_path / "store")
    lost = rows_of(study, corpus)[1]["run"]
    (tmp_path / "store" / lost / "end.safetensors").write_bytes(b"nothing")
    with pytest.warns(CurvewiseWarning, match=f"Run {lost} cannot be measured") as said:
        found = measure_invariance(replace(study, folder=tmp_path), "rotation", magnitudes=5, rng=2)
    assert {Path(w.filename).name for w in said} == {"test_invariance.py"}
    for name in MEASURES:
        assert np.isnan(found.measures[name][1])
        rest = [0, 2, 3]
        assert np.array_equal(found.measures[name][rest], corpus.measures[name][rest])


def test_judged_end_to_end(study: Study, corpus: ModelCorpus) -> None:
    asked = {"least_train_accuracy": 0.3, "permutations": 19}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CurvewiseWarning)  # of the few models
        found = judge_invariance(study, "rotation", magnitudes=5, rng=2, **asked)
        judged = judge_measures(corpus, rng=2, **asked)
    assert found.table() == judged.table()
    assert "gi-score" in found.table()
    frames = found.frame(), judged.frame()
    assert frames[0].equals(frames[1])
    assert (frames[0]["kendall"] > 0).all()


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "unknown": ({"perturbation": "rotatoin"}, "rotatoin.*is not known"),
    "pairs": ({"perturbation": "mixup-intra"}, "mixes pairs"),
    "no set": ({"perturbation": "shift-x"}, r"add \[evaluate.shift-x\]"),
    "no range": ({"perturbation": "shift-y"}, r"add \[evaluate.shift-y\]"),
    "data": ({"data": (1, 2)}, "data is for networks"),
    "reach": ({"reach": (-5, 5)}, "reach is for networks"),
    "setting": ({"hyperparameters": ["depth"]}, "'depth'.*they have width, augmentation"),
    "text": ({"hyperparameters": "width"}, "give a list of settings"),
    "columns": ({"hyperparameters": {"width": [1]}}, "give a list of settings"),
    "few": ({"magnitudes": 1}, "magnitudes=1"),
    "workers": ({"workers": -1}, "workers=-1"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_with_a_study(study: Study, case: str) -> None:
    given, said = BAD[case]
    with pytest.raises(InputError, match=said):
        measure_invariance(study, **{"perturbation": "rotation", "magnitudes": 2, **given})


def test_no_run_takes_part(study: Study) -> None:
    design = replace(study.design, grid={"augmentation": [["shift-x:0.2"]], "width": [16]})
    with pytest.raises(InputError, match="No run was trained plainly or with"):
        measure_invariance(replace(study, design=design), "rotation")


def test_other_data_is_not_the_test_set(study: Study) -> None:
    other = replace(study.evaluate["turned"], data=study.data)
    with pytest.raises(InputError, match="no evaluation set with perturbation='rotation'"):
        measure_invariance(replace(study, evaluate={"other": other}), "rotation")


NETWORKS: dict[str, tuple[dict[str, Any], str]] = {
    "empty": ({"models": {}}, "at least one network"),
    "a list": ({"models": [1]}, "a dict with at least one network"),
    "data": ({"data": None}, r"give data=\(train, test\) and hyperparameters="),
    "no test data": ({"data": (1,)}, r"give data=\(train, test\) and hyperparameters="),
    "names only": ({"hyperparameters": ["width"]}, "hyperparameters={name: values}"),
    "length": ({"hyperparameters": {"width": [1]}}, r"\['width'\] has shape \(1,\) for 2 networks"),
    "number": ({"hyperparameters": {"width": 1}}, r"\['width'\] has shape \(\) for 2 networks"),
    "order": ({"reach": (5, -5)}, "the lower first"),
    "too far": ({"reach": (0, 900)}, "from -180 to 180"),
    "pairs": ({"perturbation": "mixup-inter"}, "mixes pairs"),
    "no network": ({"models": {"a": len, "b": len}}, "torch.nn.Module"),
}


@pytest.mark.parametrize("case", NETWORKS)
def test_bad_input_with_networks(case: str) -> None:
    given, said = NETWORKS[case]
    rng = np.random.default_rng(0)
    data = Examples(rng.integers(0, 255, (20, 1, 4, 4), dtype=np.uint8), np.arange(20) % 2, 2)
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, 2))
    asked = {
        "models": {"a": model, "b": model},
        "perturbation": "rotation",
        "hyperparameters": {"width": [1, 2]},
        "data": (data, data),
        **given,
    }
    with pytest.raises(InputError, match=said):
        measure_invariance(**asked)


FILE = """
name = "turned"
data = "digits"
[learners.mlp]
architecture = "mlp"
epochs = 10
batch = 10
rate = 0.05
[design]
sizes = [120]
folds = 1
test = 60
[design.grid]
width = [8, 16]
augmentation = [[], ["rotation:180"]]
[evaluate.turned]
perturbation = "rotation"
magnitude = [-180, 179]
[keep]
checkpoints = "end"
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("command") / "study.toml"
    path.write_text(FILE)
    load_study(path).run(workers=0, progress=False)
    return path


ASKED = ("--magnitudes", "3", "--least-train-accuracy", "0", "--permutations", "9", "--device", "cpu")


def test_the_command_judges_and_keeps_what_it_measured(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = load_study(file)
    assert kept_invariance(study, "rotation") is None
    assert main(["response", "invariance", str(file), *ASKED, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CurvewiseWarning)  # of the few models
        corpus = measure_invariance(study, "rotation", magnitudes=3, device="cpu", progress=False)
        judged = judge_measures(corpus, least_train_accuracy=0, permutations=9)
    assert [row["measure"] for row in told["rows"]] == MEASURES
    assert [row["kendall"] for row in told["rows"]] == [row.kendall for row in judged.rows]
    kept = kept_invariance(study, "rotation")
    assert kept is not None
    assert kept.corpus.models == corpus.models
    for name in MEASURES:
        assert np.array_equal(kept.corpus.measures[name], corpus.measures[name])
    assert np.array_equal(kept.corpus.gap, corpus.gap)
    assert kept.settings == {"magnitudes": 3, "examples": None, "rng": 0}
    # With runs of another design it is out of date.
    other = replace(study, design=replace(study.design, grid={**study.design.grid, "width": [8]}))
    assert kept_invariance(other, "rotation") is None
    assert main(["store", "verify", str(study.runs_folder)]) == 0


def test_the_command_shows_the_score_of_the_paper(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["response", "invariance", str(file), *ASKED, "--json"]) == 0
    scores = {row["measure"]: row["pgdl"] for row in json.loads(capsys.readouterr().out)["rows"]}
    assert main(["response", "invariance", str(file), *ASKED, "--mode", "pgdl"]) == 0
    shown = capsys.readouterr().out
    assert "pgdl" in shown
    for measure, score in scores.items():
        (line,) = [line for line in shown.splitlines() if line.strip().startswith(measure)]
        assert ("–" if score is None else f"{100 * score:.2f}") in line


def test_kept_measures_are_not_those_of_a_study_that_changed(file: Path, tmp_path: Path) -> None:
    shutil.copytree(file.parent, tmp_path / "copy")
    path = tmp_path / "copy" / file.name
    assert main(["response", "invariance", str(path), *ASKED]) == 0
    assert kept_invariance(load_study(path), "rotation") is not None
    changed = re.sub(r"magnitude = .*", "magnitude = [-10, 10]", FILE)
    assert changed != FILE
    path.write_text(changed)
    load_study(path).run(workers=0, progress=False)  # the same runs, evaluated over another range
    assert kept_invariance(load_study(path), "rotation") is None
    # A file that names other settings than it was measured with, or none, is not used.
    assert main(["response", "invariance", str(path), *ASKED]) == 0
    (kept,) = (load_study(path).runs_folder / ".invariance").glob("*.json")
    told = json.loads(kept.read_text())
    kept.write_text(json.dumps({**told, "settings": {**told["settings"], "magnitudes": 11}}))
    assert kept_invariance(load_study(path), "rotation") is None
    kept.write_text(json.dumps({k: v for k, v in told.items() if k not in ("settings", "digest")}))
    assert kept_invariance(load_study(path), "rotation") is None


def test_the_report_shows_what_was_kept_or_measures_it(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from curvewise.report import lenses
    from curvewise.report.study import study_report

    shutil.rmtree(load_study(file).runs_folder / ".invariance", ignore_errors=True)
    title = "Which measure on training data predicts the error under rotation?"
    (section,) = [s for s in study_report(load_study(file)).sections if s.title == title]
    assert "3 measures judged on" in section.text[0]
    assert section.text[-1].startswith("Measured at 11 magnitudes on all training examples of each network, seed 0;")
    assert section.tables[0].columns["measure"] == MEASURES
    # A large study is not measured in passing: the report says how.
    monkeypatch.setattr(lenses, "INVARIANCE_LIMIT", 0)
    (section,) = [s for s in study_report(load_study(file)).sections if s.title == title]
    assert "curvewise response invariance" in section.text[0]
    assert main(["response", "invariance", str(file), *ASKED, "--examples", "20"]) == 0
    (section,) = [s for s in study_report(load_study(file)).sections if s.title == title]
    assert "3 measures judged on" in section.text[0]
    assert section.text[-1].startswith("Measured at 3 magnitudes on 20 training examples of each network, seed 0;")


def test_the_command_needs_a_perturbation_that_is_trained_and_evaluated(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = tmp_path / "plain.toml"
    plain.write_text(FILE.replace('[], ["rotation:180"]', "[]"))
    assert list_invariances(load_study(plain)) == []
    assert main(["response", "invariance", str(plain)]) == 2
    assert "[evaluate.NAME]" in capsys.readouterr().err
    assert main(["response", "invariance", str(file), "--perturbation", "shift-x", *ASKED]) == 1
    assert "[evaluate.shift-x]" in capsys.readouterr().err


def test_the_recipe_sweeps_the_range_it_evaluates(tmp_path: Path) -> None:
    images, y = load_digits(return_X_y=True)
    data = Dataset((images[:100].reshape(-1, 1, 8, 8) * 15).astype(np.uint8), y[:100])
    study = study_recipe(
        "response",
        data,
        sizes=[60],
        folds=1,
        grid={"augmentation": [[]], "batch": [20]},
        learners={"vgg": {"width": 2, "epochs": 2, "rate": 0.01}},
        folder=tmp_path,
    )
    assert study.evaluate["rotation"].magnitude == (-180, 179)
    study.run(workers=0, progress=False, device="cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CurvewiseWarning)
        found = measure_invariance(study, "rotation", device="cpu", progress=False)
        own = study.network("vgg")
        places = np.linspace(-180, 179, 11)
        curve = measure_response(own.network, own.examples, "rotation", magnitudes=places, signs="keep")
    assert found.measures["gi-score"].tolist() == [curve.gi]
    assert found.measures["mean accuracy"].tolist() == [curve.mean_accuracy]
