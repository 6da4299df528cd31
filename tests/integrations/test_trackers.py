"""Readers of experiment trackers, against the trackers' own libraries."""

from __future__ import annotations

import json
import re
import struct
import sys
import zlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import curvewise as cw
from curvewise.errors import CurvewiseWarning, MissingDependencyError
from curvewise.integrations import mlflow as from_mlflow
from curvewise.integrations import optuna as from_optuna
from curvewise.integrations import wandb as from_wandb

SIZES = [100, 100, 200, 200, 400, 400, 100, 200, 400]
ERRORS = [0.30, 0.32, 0.22, 0.24, 0.17, 0.18, None, 0.25, float("nan")]
STATUS = ["done"] * 6 + ["failed"] * 3
LABELS = np.arange(20) % 4
pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::ResourceWarning"
)


def predictions(run: int) -> np.ndarray:
    return np.where(np.arange(20) == run, LABELS + 1, LABELS)


def check(m: cw.Measurements, notes: list[str]) -> None:
    """Six runs finished; one failed, one stopped early with a value, one diverged; a tenth still runs."""
    assert m.n.tolist() == SIZES
    assert m.labels["status"].tolist() == STATUS
    np.testing.assert_allclose(m.error, [*ERRORS[:6], *[np.nan] * 3])
    assert m.labels["seed"].tolist() == list(range(9))
    for note in notes:
        assert any(note in given for given in m.notes), (note, m.notes)
    with pytest.warns(CurvewiseWarning, match="3 of 9 runs failed and are left out"):
        curves = cw.fit_learning_curves(m)
    assert curves[m.learners[0]].error_at(400) == pytest.approx(0.175, abs=0.01)
    assert any("3 of 9 runs failed" in warning for warning in curves.all_warnings)


# MLflow: a file store, and skinny, which has the client and not the server.


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """An experiment with ten runs and its client."""
    mlflow = pytest.importorskip("mlflow")
    folder = tmp_path_factory.mktemp("mlflow")
    patch = pytest.MonkeyPatch()
    patch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # newer ones want a database, which takes seconds to make
    uri = (folder / "mlruns").as_uri()
    client = mlflow.MlflowClient(uri)
    experiment = client.create_experiment("digits")
    ends = ["FINISHED"] * 6 + ["FAILED", "KILLED", "FINISHED", None]
    for i, end in enumerate(ends):
        run = client.create_run(experiment, run_name=f"run-{i}", start_time=1000 + i).info.run_id
        size, error = ([*SIZES, 400][i], [*ERRORS, 0.5][i])
        for name, value in {"train_examples": size, "seed": i, "model": "net"}.items():
            client.log_param(run, name, value)
        if error is not None:
            client.log_metric(run, "val_acc", 0.0, step=0)
            client.log_metric(run, "val_acc", 1 - error, step=1)
            client.log_metric(run, "train_loss", 7.0)
        if i in (0, 2, 3):
            np.save(folder / "predictions.npy", predictions(i))
            client.log_artifact(run, str(folder / "predictions.npy"))
        if end:
            client.set_terminated(run, end)
    yield client, uri
    patch.undo()


MLFLOW_NOTES = ["(net): its status is FAILED", "(net): its status is KILLED", "'val_acc' is nan", "still running"]


def test_mlflow_experiment(store):
    client, uri = store
    options = {"metric": "val_acc", "size_param": "train_examples"}
    m = from_mlflow.load_measurements("digits", tracking_uri=uri, **options)
    check(m, MLFLOW_NOTES)
    assert m.learners == ("net",)
    # By id, object, a list of them, and the runs themselves: the same.
    found = client.get_experiment_by_name("digits")
    runs = client.search_runs([found.experiment_id], order_by=["attributes.start_time ASC"])
    for same in (found.experiment_id, found, ["digits"]):
        check(from_mlflow.load_measurements(same, tracking_uri=uri, metric="val_acc"), MLFLOW_NOTES)
    check(from_mlflow.load_measurements(runs, **options), MLFLOW_NOTES)


def test_mlflow_table_without_mlflow(store, tmp_path, monkeypatch):
    import mlflow

    table = mlflow.MlflowClient(store[1])
    runs = table.search_runs(["0", table.get_experiment_by_name("digits").experiment_id], order_by=["start_time ASC"])
    frame = pd.DataFrame(
        [
            {
                "run_id": run.info.run_id,
                "experiment_id": run.info.experiment_id,  # as the frame of mlflow.search_runs has it
                "status": run.info.status,
                **{f"params.{k}": v for k, v in run.data.params.items()},
                **{f"metrics.{k}": v for k, v in run.data.metrics.items()},
            }
            for run in runs
        ]
    )
    frame.to_csv(tmp_path / "runs.csv", index=False)
    monkeypatch.setitem(sys.modules, "mlflow", None)
    for source in (frame, tmp_path / "runs.csv", str(tmp_path / "runs.csv")):
        check(from_mlflow.load_measurements(source, metric="metrics.val_acc"), MLFLOW_NOTES[:2])
    with pytest.raises(cw.InputError, match="experiment is a table, which holds no files"):
        from_mlflow.load_predictions(frame)
    with pytest.raises(MissingDependencyError, match=r"pip install mlflow-skinny.* can be read without"):
        from_mlflow.load_measurements("digits")


def test_mlflow_mistakes_are_named(store):
    uri = store[1]
    with pytest.raises(cw.InputError, match=r"experiment='digit': is no experiment.*Did you mean 'digits'"):
        from_mlflow.load_measurements("digit", tracking_uri=uri)
    with pytest.raises(cw.InputError, match=r"metric='val_ac' was logged by no run.*Did you mean 'val_acc'"):
        from_mlflow.load_measurements("digits", tracking_uri=uri, metric="val_ac")
    with pytest.raises(
        cw.InputError,
        match=r"'train_loss', 'val_acc' are 2 metrics.*metric='train_loss'; they have 'train_loss', 'val_acc'",
    ):
        from_mlflow.load_measurements("digits", tracking_uri=uri)
    with pytest.raises(cw.InputError, match=r"size_param='n_train' is no parameter of the runs in the MLflow"):
        from_mlflow.load_measurements("digits", tracking_uri=uri, metric="val_acc", size_param="n_train")
    where = {"train_examples": 100, "seed": 6}
    with pytest.raises(
        cw.InputError, match=r"No run .* finished with a value of 'val_acc' \(run-6: its status is FAILED"
    ):
        from_mlflow.load_measurements("digits", tracking_uri=uri, metric="val_acc", where=where)


def test_mlflow_predictions(store):
    uri = store[1]
    with pytest.raises(cw.InputError, match=r"more than one training: 'train_examples' is '100', '200', '400'"):
        from_mlflow.load_predictions("digits", tracking_uri=uri, labels=LABELS)
    where = {"train_examples": 200}
    p = from_mlflow.load_predictions("digits", tracking_uri=uri, labels=LABELS, where=where)
    np.testing.assert_array_equal(p.values, [predictions(2), predictions(3)])
    assert p.errors().sum(axis=1).tolist() == [1, 1]
    assert any("1 of 3 runs did not finish" in note for note in p.notes)
    one = from_mlflow.load_predictions("digits", tracking_uri=uri, labels=LABELS, where={"train_examples": "100"})
    assert any("1 finished run without predictions.npy left out" in note for note in one.notes)
    with pytest.raises(cw.InputError, match=r"artifact='probs.npy': is a file of none of the 2 finished runs"):
        from_mlflow.load_predictions("digits", tracking_uri=uri, artifact="probs.npy", where=where)


@pytest.mark.parametrize("reader", [from_mlflow, from_wandb])
def test_a_table_that_does_not_exist_is_no_experiment(reader):
    with pytest.raises(cw.InputError, match=r"nowhere\.csv"):
        reader.load_measurements("nowhere.csv")


def test_a_finished_run_without_a_size_is_an_error_and_a_failed_one_a_note():
    runs = {
        "run_id": ["a", "b", "c"],
        "status": ["FINISHED", "FINISHED", "FAILED"],
        "params.n": ["100", "200", None],
        "metrics.error": [0.3, 0.2, None],
    }
    m = from_mlflow.load_measurements(runs)
    assert len(m) == 2
    assert any("1 run without 'n' left out, none finished: 'c'" in note for note in m.notes)
    runs["status"][2], runs["metrics.error"][2] = "FINISHED", 0.1
    with pytest.raises(cw.InputError, match=r"1 finished run in the dict did not log 'n': 'c'"):
        from_mlflow.load_measurements(runs)


# Optuna.


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """A study with ten trials, some of which uploaded their predictions."""
    optuna = pytest.importorskip("optuna")
    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    folder = tmp_path_factory.mktemp("optuna")
    artifacts = optuna.artifacts.FileSystemArtifactStore(folder)
    study = optuna.create_study(direction="maximize", study_name="digits")
    study.set_user_attr("model", "net")
    for i, size in enumerate(SIZES):
        study.enqueue_trial({"n": size, "seed": i})

    def objective(trial):
        n, seed = trial.suggest_int("n", 1, 1000), trial.suggest_int("seed", 0, 100)
        assert n == SIZES[seed]
        trial.report(0.75, step=1)
        if seed == 6:
            raise RuntimeError("out of memory")
        if seed == 7:
            raise optuna.TrialPruned  # its value is then the one reported above
        if seed in (2, 3):
            np.save(folder / "predictions.npy", predictions(seed))
            path = str(folder / "predictions.npy")
            optuna.artifacts.upload_artifact(artifact_store=artifacts, file_path=path, study_or_trial=trial)
        return 1 - ERRORS[seed]

    study.optimize(objective, n_trials=9, catch=RuntimeError)
    study.ask()  # a trial that still runs
    return study, artifacts


OPTUNA_NOTES = ["1 of 9 runs failed (net): its status is PRUNED", "2 of 9 runs failed (net): its status is FAIL"]


def test_optuna_study(study):
    m = from_optuna.load_measurements(study[0], size_param="n")
    check(m, OPTUNA_NOTES)
    assert m.learners == ("net",)
    assert any("1 run without 'n' left out, none finished: '9'" in note for note in m.notes)
    # Its own table has no user attributes of the study and no direction.
    frame = study[0].trials_dataframe()
    with pytest.raises(cw.InputError, match=r"higher_is_better: the name of column 'value'"):
        from_optuna.load_measurements(frame)
    for contradiction in ({"unit": "loss"}, {"higher_is_better": False}):
        with pytest.raises(cw.InputError, match="contradicts the study, which maximizes 'value'"):
            from_optuna.load_measurements(study[0], size_param="n", **contradiction)
    check(from_optuna.load_measurements(frame, higher_is_better=True), ["PRUNED"])


def test_optuna_objectives_and_mistakes(study):
    import optuna

    with pytest.raises(cw.InputError, match=r"size_param='size' is no parameter of the runs in the Optuna study"):
        from_optuna.load_measurements(study[0], size_param="size")
    several = optuna.create_study(directions=["minimize", "maximize"])
    for i in range(6):
        trial = several.ask({"lr": optuna.distributions.FloatDistribution(0.1, 0.2)})
        trial.set_user_attr("n", SIZES[i])
        several.tell(trial, [5.0, 1 - ERRORS[i]])
    with pytest.raises(cw.InputError, match=r"metric is needed: the study has 2 objectives, '0', '1'"):
        from_optuna.load_measurements(several)
    m = from_optuna.load_measurements(several, metric="1", columns={"ignore": "lr"})
    np.testing.assert_allclose(m.error, ERRORS[:6])
    losses = from_optuna.load_measurements(several, metric="0", unit="loss", columns={"ignore": "lr", "seed": None})
    assert set(losses.error) == {5.0}


def test_optuna_predictions(study):
    p = from_optuna.load_predictions(*study, labels=LABELS, where={"n": 200})
    np.testing.assert_array_equal(p.values, [predictions(2), predictions(3)])
    assert p.run_ids.tolist() == ["2", "3"]


# Weights & Biases: offline runs, and the objects of its API made from what a server sends.


def test_a_metric_whose_name_says_no_direction_is_asked_about():
    runs = {"run_id": ["a", "b"], "status": ["FINISHED"] * 2, "params.n": [100, 200], "metrics.quality": [0.7, 0.8]}
    with pytest.raises(cw.InputError, match=r"higher_is_better: the name of column 'quality'"):
        from_mlflow.load_measurements(runs, metric="quality")
    m = from_mlflow.load_measurements(runs, metric="quality", higher_is_better=True)
    np.testing.assert_allclose(m.error, [0.3, 0.2])
    records = [{"name": str(n), "state": "finished", "config": {"n": n}, "summary": {"mIoU": 0.7}} for n in (1, 2)]
    np.testing.assert_allclose(from_wandb.load_measurements(records, metric="mIoU").error, [0.3, 0.3])


@pytest.fixture(scope="module")
def offline(tmp_path_factory):
    """A folder with nine runs that were logged offline."""
    wandb = pytest.importorskip("wandb")
    folder = tmp_path_factory.mktemp("tracked")
    options = {"mode": "offline", "silent": True, "console": "off", "x_disable_stats": True, "x_disable_meta": True}
    settings = wandb.Settings(**options, x_save_requirements=False, disable_git=True, disable_code=True)
    for i, (size, error) in enumerate(zip(SIZES, ERRORS, strict=True)):
        run = wandb.init(project="digits", dir=folder, settings=settings, config={"n": size, "model": "net"})
        run.config.update({"seed": i, "optimiser": {"lr": 0.1}})
        run.log({"val": {"acc": 0.0}, "epoch": 0, "text": "x" * 40_000})  # longer than a block of the file
        if error is not None:
            run.log({"val": {"acc": 1 - error}, "epoch": 1})
        if i in (2, 3):
            np.savez(f"{run.dir}/predictions.npz", predictions=predictions(i), labels=LABELS)
        run.finish(exit_code=1 if i in (6, 7) else 0)
    wandb.teardown()
    return folder / "wandb"


def test_wandb_offline_folder(offline):
    m = from_wandb.load_measurements(offline, metric="val.acc", size_param="n")
    check(m, ["2 of 9 runs failed (net): its status is failed", "1 of 9 runs failed (net): 'val.acc' is nan"])
    assert m.labels["optimiser.lr"].tolist() == [0.1] * 9
    with pytest.raises(cw.InputError, match=r"metric='accuracy' was logged by no run in the W&B runs in"):
        from_wandb.load_measurements(str(offline), metric="accuracy")


def test_wandb_log_that_was_cut_short_is_a_crashed_run(offline, tmp_path):
    for path in offline.rglob("*.wandb"):
        (tmp_path / path.parent.name).mkdir(exist_ok=True)
        (tmp_path / path.parent.name / path.name).write_bytes(path.read_bytes())
    first = min(tmp_path.rglob("*.wandb"), key=lambda path: path.stat().st_mtime_ns)
    first.write_bytes(first.read_bytes()[:-200])
    m = from_wandb.load_measurements(tmp_path, metric="val.acc")
    (row,) = np.flatnonzero(m.labels["run_id"] == first.stem.removeprefix("run-"))
    assert m.labels["status"][row] == "failed"
    assert any("its status is crashed" in note for note in m.notes)
    first.write_bytes(b"no log of this kind")
    with pytest.raises(cw.InputError, match="is no log of W&B"):
        from_wandb.load_measurements(tmp_path, metric="val.acc")


@pytest.mark.parametrize("left", [0, 3, 7])
def test_wandb_log_whose_block_has_no_room_for_a_header(tmp_path, left):
    messages = pytest.importorskip("wandb.proto.wandb_internal_pb2")

    def record(kind: str, **values: str) -> bytes:
        made = messages.Record()
        where = made.run.config if kind == "config" else made.summary
        for key, text in values.items():
            where.update.add(key=key, value_json=text)
        return made.SerializeToString()

    def logged(data: bytes) -> bytes:
        return struct.pack("<IHB", zlib.crc32(b"\1" + data), len(data), 1) + data

    room = 32768 - 7 - 7 - left  # of the first block, after the header of the file and that of the record
    filling = json.dumps("x" * (room - len(record("config", n="100", text=json.dumps("x" * room))) + room))
    first = record("config", n="100", text=filling)
    assert len(first) == room
    end = messages.Record()
    end.exit.exit_code = 0
    # Below 7 bytes the rest of a block is zeros; 7 are a header without data, of a record that goes on behind it.
    second = record("summary", error="0.25")
    if left == 7:
        parts = struct.pack("<IHB", zlib.crc32(b"\2"), 0, 2)
        parts += struct.pack("<IHB", zlib.crc32(b"\4" + second), len(second), 4) + second
    else:
        parts = bytes(left) + logged(second)
    data = b":W&B\xe1\xbe\0" + logged(first) + parts + logged(end.SerializeToString())
    (tmp_path / "run-abc.wandb").write_bytes(data)
    m = from_wandb.load_measurements(tmp_path)
    assert (m.n.tolist(), m.error.tolist(), m.labels["status"].tolist()) == ([100], [0.25], ["done"])


def test_wandb_predictions(offline, tmp_path):
    p = from_wandb.load_predictions(offline, artifact="predictions.npz", where={"n": 200})
    np.testing.assert_array_equal(p.values, [predictions(2), predictions(3)])
    assert p.errors().sum(axis=1).tolist() == [1, 1]
    with pytest.raises(cw.InputError, match="is a table, which holds no files"):
        from_wandb.load_predictions(pd.DataFrame({"n": [1]}))
    with pytest.raises(cw.InputError, match="holds no runs of W&B"):
        from_wandb.load_predictions(tmp_path)


def test_wandb_runs_of_the_api(offline, monkeypatch, tmp_path):
    import wandb
    from wandb.apis.public import Run

    state = ["finished"] * 6 + ["failed", "crashed", "finished", "running"]
    runs = []
    for i, size in enumerate([*SIZES, 100]):
        config = {"n": {"value": size}, "seed": {"value": i}, "_wandb": {"value": {"cli": "1"}}}
        summary = {"_step": 3} if i == 6 else {"val_acc": "NaN" if i == 8 else 1 - ([*ERRORS, 0.4][i] or 0)}
        attrs = {"state": state[i], "displayName": f"sweep-{i}", "config": json.dumps(config)}
        attrs |= {
            "summaryMetrics": json.dumps(summary),
            "systemMetrics": "{}",
            "user": {"name": "me", "username": "me"},
        }
        runs.append(Run(None, "team", "digits", f"id{i}", attrs=attrs, lazy=False))
    m = from_wandb.load_measurements(runs, metric="val_acc")
    check(m, ["its status is crashed", "1 run left out, still running"])
    assert m.labels["run_name"][5] == "sweep-5"
    assert m.learners == ("digits",)

    # A project by its name, and a file of each run, as the server would send them.
    class Stored:
        name = "predictions.npy"

        def __init__(self, run: int) -> None:
            self.run = run

        def download(self, root: str, replace: bool):
            np.save(f"{root}/{self.name}", predictions(self.run))
            return open(f"{root}/{self.name}", encoding="utf-8")

    for i, run in enumerate(runs):
        monkeypatch.setattr(run, "files", lambda names, i=i: [Stored(i)] if names == ["predictions.npy"] else [])
    asked = []
    monkeypatch.setattr(wandb.Api, "__init__", lambda api: None)
    monkeypatch.setattr(wandb.Api, "runs", lambda api, path, lazy=True: asked.append((path, lazy)) or runs)
    p = from_wandb.load_predictions("team/digits", labels=LABELS, where={"n": 200})
    np.testing.assert_array_equal(p.values, [predictions(2), predictions(3)])
    assert asked == [("team/digits", False)]
    with pytest.raises(cw.InputError, match="is neither a folder nor a file here, and no project"):
        from_wandb.load_measurements("no/such/folder")


# The page that shows all three: its code is executed as it stands.


def test_code_of_the_page(tmp_path, monkeypatch, capsys):
    for package in ("mlflow", "wandb", "optuna", "sklearn"):
        pytest.importorskip(package)
    import optuna

    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    page = Path(__file__).parents[2] / "docs" / "howto" / "trackers.md"
    blocks = re.findall(r"```\{code-block\} python\n:class: run\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 4
    monkeypatch.chdir(tmp_path)
    for name, value in {"MLFLOW_ALLOW_FILE_STORE": "true", "WANDB_SILENT": "true", "WANDB_CONSOLE": "off"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "mlruns").as_uri())
    names: dict = {}
    errors = []
    for block in blocks:
        exec(block, names)
        if "m" in names:
            m = names.pop("m")
            assert sorted(m.n.tolist()) == [100] * 3 + [200] * 3 + [400] * 3
            errors.append(sorted(m.error.tolist()))
    assert len(errors) == 3
    np.testing.assert_allclose(errors[1:], [errors[0]] * 2)  # one training, tracked by three libraries
    assert names["p"].shape == (3, 997)
    assert "Predictions(3 runs × 997 examples" in capsys.readouterr().out
