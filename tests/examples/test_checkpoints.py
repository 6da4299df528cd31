"""The pool of real checkpoints: its networks, its files and what came of it."""

import importlib
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

CHECKPOINTS = Path(__file__).parents[2] / "examples" / "checkpoints"
MODULES = ("networks", "pool", "weights", "tasks", "finetune", "judge")


@pytest.fixture
def example(monkeypatch):
    """The modules of the example, forgotten afterwards: their names are everyone's."""
    monkeypatch.syspath_prepend(CHECKPOINTS)
    for name in MODULES:
        sys.modules.pop(name, None)
    yield SimpleNamespace(**{name: importlib.import_module(name) for name in MODULES})
    for name in MODULES:
        sys.modules.pop(name, None)


@pytest.fixture
def members(example, data_dir, monkeypatch):
    """Those of the pool whose files come with the data, by name."""
    monkeypatch.setenv("CURVEWISE_DATA", str(data_dir))
    return {m.name: m for m in example.pool.POOL if not m.package}


@pytest.mark.parametrize(
    ("body", "options", "classes", "published"),
    [
        ("mobilenet-v2", {}, 1000, 3_504_872),  # torchvision's
        ("efficientnet-lite", {}, 1000, 4_652_008),  # timm's
        ("efficientnet-lite", {"depth": 1.1}, 1000, 5_416_680),
        ("efficientnet-lite", {"width": 1.1, "depth": 1.2}, 1000, 6_092_072),
        ("cifar-resnet", {"depth": 20}, 10, 269_722),
        ("cifar-resnet", {"depth": 56}, 10, 853_018),
    ],
)
def test_networks_are_as_large_as_published(example, body, options, classes, published):
    made = example.networks.BODIES[body](**options)
    weights = sum(p.numel() for p in made.parameters())
    assert weights + classes * (made.dimensions + 1) == published


def test_padding_is_that_of_tensorflow(example):
    # 5 pixels at stride 2 with a kernel of 3: windows begin at -1, 1, 3; of 6 pixels at 0, 2, 4
    unit = example.networks.Unit(1, 1, 3, 2, norm=None, same=True, active=False)
    with torch.no_grad():
        unit.conv.weight.zero_()[0, 0, 0, 0] = 1  # the upper left pixel of each window
        unit.conv.bias.zero_()
        odd, even = (torch.arange(1.0, n + 1).expand(1, 1, n, n) for n in (5, 6))
        assert unit(odd)[0, 0, 1].tolist() == [0, 2, 4]
        assert unit(even)[0, 0, 1].tolist() == [1, 3, 5]


def test_tensors_that_do_not_fit_are_refused(example):
    body = example.networks.CifarResNet(20)
    with pytest.raises(ValueError, match="do not fit"):
        example.networks.fill(body, [torch.zeros(3)])


def test_dequantised_weights_give_what_the_interpreter_gives(example, members):
    interpreter = pytest.importorskip("ai_edge_litert.interpreter")
    member = members["MobileNetV1 1.0 (224)"]  # whose output is its features
    quantised = interpreter.Interpreter(str(member.path), num_threads=1)
    quantised.allocate_tensors()
    rng = np.random.default_rng(0)
    coarse = torch.from_numpy(rng.random((1, 3, 8, 8), dtype=np.float32))
    pixels = torch.nn.functional.interpolate(coarse, size=224, mode="bicubic").clamp(0, 1)
    pixels = (255 * pixels).round()
    given, taken = quantised.get_input_details()[0], quantised.get_output_details()[0]
    quantised.set_tensor(given["index"], pixels.movedim(1, -1).numpy().astype(np.uint8))
    quantised.invoke()
    scale, zero = taken["quantization"]
    wanted = scale * (quantised.get_tensor(taken["index"]).ravel().astype(float) - zero)
    with torch.no_grad():
        found = example.weights.load_body(member)((pixels - 128) / 128)[0].numpy()
    assert np.corrcoef(found, wanted)[0, 1] > 0.95  # activations of 8 bits against floats


def test_published_weights_know_their_classes(example, members, data_dir, tmp_path):
    pytest.importorskip("PIL")
    import curvewise as cw

    with np.load(data_dir / "cifar10_jpeg.npz") as archive:  # 200 images of each part: decoding all takes seconds
        ends = {part: archive[f"{part}_offsets"][:201] for part in ("train", "test")}
        cut = {f"{part}_jpeg": archive[f"{part}_jpeg"][: ends[part][-1]] for part in ends}
        cut |= {f"{part}_labels": archive[f"{part}_labels"][:200] for part in ends}
        cut |= {f"{part}_offsets": ends[part] for part in ends}
        np.savez(tmp_path / "cifar10_jpeg.npz", classes=archive["classes"], **cut)
    data = cw.load_dataset({"name": "cifar10", "path": str(tmp_path / "cifar10_jpeg.npz")})
    x, y = data.test_x, data.test_y
    for name in ("ResNet-20 (CIFAR-10)", "ResNet-56 (CIFAR-10)"):
        member = members[name]
        mean, std = (torch.tensor(v).view(3, 1, 1) for v in member.scale)
        with torch.no_grad():
            scores = example.weights.load_network(member)((torch.from_numpy(x) / 255 - mean) / std)
        # 92 and 94% as published; images that were stored as JPEG are less familiar
        assert np.mean(scores.argmax(1).numpy() == y) > 0.75


def test_a_finetuned_network_undoes_the_normalisation_of_the_study(example):
    made = example.networks
    body = made.CifarResNet(20).eval()
    rng = np.random.default_rng(1)
    pixels = torch.from_numpy(rng.random((2, 1, 32, 32), dtype=np.float32))
    wanted = ((0.5, 0.4, 0.3), (0.2, 0.3, 0.4))
    network = made.Finetuned(body, 10, ((0.1,), (0.3,)), wanted, 32).eval()
    mean, std = (torch.tensor(v).view(3, 1, 1) for v in wanted)
    with torch.no_grad():
        expected = network.head(body((pixels - mean) / std))
        assert torch.allclose(network((pixels - 0.1) / 0.3), expected, atol=1e-5)


def test_finetuning_begins_with_the_packed_weights(example, tmp_path):
    from safetensors.torch import save_file

    from curvewise.nn.networks import make_network

    rng = np.random.default_rng(2)
    (tmp_path / "tasks").mkdir()
    (tmp_path / "packs").mkdir()
    for task in example.tasks.TASKS:
        x, y = rng.integers(256, size=(20, 1, 28, 28), dtype=np.uint8), np.arange(20) % 10
        np.savez(tmp_path / "tasks" / f"{task}.npz", x=x, y=y, test_x=x, test_y=y)
    member = next(m for m in example.pool.POOL if m.name.startswith("ResNet-20"))
    body = example.networks.CifarResNet(20)
    stored = {f"body.{k}": v.half() for k, v in body.state_dict().items() if "tracked" not in k}
    packed = tmp_path / "packs" / example.finetune.packed_name(member)
    save_file(stored, packed)
    settings = {"members": [member], "rates": [0.01], "images": 20, "tested": 10}
    how = {"epochs": 0, "precision": "float32", "scratch": False, **settings}
    study = example.finetune.make_study("mnist", tmp_path, **how)
    training = study.learners[member.name].training
    first = make_network(training, (1, 28, 28), 10, CHECKPOINTS).state_dict()
    assert all(torch.equal(first[name], value.float()) for name, value in stored.items())
    example.finetune.finetune(tmp_path, tmp_path / "out.csv", device="cpu", workers=0, **how)
    table = pd.read_csv(tmp_path / "out.csv")
    assert sorted(table["task"]) == sorted(example.tasks.TASKS)
    assert table["accuracy"].between(0, 1).all()
    # and a file that does not fit is reported, run by run
    save_file({"body.nothing": torch.zeros(1)}, packed)
    example.finetune.finetune(tmp_path, tmp_path / "failed.csv", device="cpu", workers=0, **how | {"rates": [0.02]})
    failed = pd.read_csv(tmp_path / "failed.csv")
    assert failed["accuracy"].isna().all()
    assert failed["reason"].str.contains("do not fit").all()


def test_the_truth_is_the_best_rate_and_the_tasks_own_networks_are_set_apart(example, tmp_path):
    names = [m.name for m in example.pool.POOL if m.body]
    rng = np.random.default_rng(3)
    truth = {name: 0.5 + 0.02 * i for i, name in enumerate(names)}
    scores = pd.DataFrame(
        {
            "task": np.repeat(["cifar10", "mnist"], len(names)),
            "checkpoint": names * 2,
            "source": "",
            "format": "torch",
            "dimensions": 64,
            "probe": rng.random(2 * len(names)),
            "parameters": rng.random(2 * len(names)),
            "right": [*truth.values()] * 2,
        }
    )
    finetuned = [
        {"task": task, "checkpoint": name, "rate": rate, "accuracy": truth[name] - lost}
        for task in ("cifar10", "mnist")
        for i, name in enumerate(names)
        for rate, lost in ((0.01, 0.3 * (i % 2)), (0.1, 0.3 * (1 - i % 2)))
    ]
    scores.to_csv(tmp_path / "scores.csv", index=False)
    pd.DataFrame(finetuned).to_csv(tmp_path / "finetune.csv", index=False)
    example.judge.judge_pool(tmp_path / "scores.csv", tmp_path / "finetune.csv", tmp_path / "judged.csv")
    judged = pd.read_csv(tmp_path / "judged.csv").set_index(["truth", "pool", "task", "measure"])
    everyone = judged.loc[("finetune", "all", "cifar10", "right")]
    others = judged.loc[("finetune", "without the task's own", "cifar10", "right")]
    assert everyone["kendall"] == others["kendall"] == 1
    assert everyone["n"] - others["n"] == 4
    assert judged.loc[("probe", "all", "mnist", "right"), "kendall"] < 0.8


def test_what_is_committed_follows_from_the_scores(example, tmp_path):
    scores = pd.read_csv(CHECKPOINTS / "scores.csv")
    counts = scores.groupby("task")["checkpoint"].nunique()
    assert set(counts.index) == set(example.tasks.TASKS)
    assert counts.min() >= 12
    known = {m.name for m in example.pool.POOL}
    assert set(scores["checkpoint"]) <= known
    again = tmp_path / "judged.csv"
    example.judge.judge_pool(CHECKPOINTS / "scores.csv", CHECKPOINTS / "finetune.csv", again)
    pd.testing.assert_frame_equal(pd.read_csv(again), pd.read_csv(CHECKPOINTS / "judged.csv"))


def test_rivals_and_the_grid_are_of_networks_that_were_fine_tuned(example):
    tuned = {m.name for m in example.pool.POOL if m.body}
    rivals, grid = (pd.read_csv(CHECKPOINTS / f"{name}.csv") for name in ("rivals", "grid"))
    assert set(rivals["checkpoint"]) <= tuned
    assert rivals[["finetune-1", "finetune-5"]].stack().between(0, 1).all()
    assert grid.groupby("task")["n"].first().to_dict() == {"cifar10": 12, "fashion-mnist": 16, "mnist": 16}
    assert grid.groupby("task").size().eq(5 * 8).all()
    assert grid["kendall"].between(-1, 1).all()


def test_published_scores_are_judged_as_in_the_files(example, data_dir, tmp_path, monkeypatch):
    monkeypatch.setenv("CURVEWISE_DATA", str(data_dir))
    example.judge.judge_stable_transfer(tmp_path / "again.csv")
    again, kept = (pd.read_csv(path) for path in (tmp_path / "again.csv", CHECKPOINTS / "stable_transfer.csv"))
    pd.testing.assert_frame_equal(again, kept)
    mean = kept[kept["task"] == "average"].set_index(["truth", "measure"])["kendall"]
    assert mean["frozen", "nleep"] == pytest.approx(0.755, abs=5e-4)
    assert mean["finetune", "gbc"] == pytest.approx(0.434, abs=5e-4)


@pytest.mark.parametrize("argument", ["--help", "nothing"])
def test_the_script_says_how_to_call_it(argument):
    done = subprocess.run(
        [sys.executable, CHECKPOINTS / "run.py", argument], capture_output=True, text=True, check=False
    )
    assert done.returncode == (0 if argument == "--help" else 2)
    assert "finetune" in done.stdout + done.stderr
