"""Three starts on three tasks: networks, targets, and what came of the runs."""

import importlib
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import curvewise as cw

FOLDER = Path(__file__).parents[2] / "examples" / "transfer"
MODULES = ("encoders", "pictures", "run", "networks")
GIVEN = ([0.5, 0.5, 0.5], [0.25, 0.25, 0.25])


@pytest.fixture
def example(monkeypatch):
    """The modules of the example, forgotten afterwards: their names are everyone's."""
    monkeypatch.syspath_prepend(FOLDER)
    for name in MODULES:
        sys.modules.pop(name, None)
    yield SimpleNamespace(**{name: importlib.import_module(name) for name in MODULES})
    for name in MODULES:
        sys.modules.pop(name, None)


@pytest.fixture
def images(example, data_dir, monkeypatch, tmp_path):
    """A few images of CIFAR-10, as the example keeps them."""
    monkeypatch.setenv("CURVEWISE_DATA", str(data_dir))
    example.pictures.prepare_images(tmp_path, train=40, test=10)
    for start in ("fashion-mnist", "imagenet"):  # studies look for them
        save_file({"body.0": torch.zeros(1)}, tmp_path / f"{start}.safetensors")
    return tmp_path


@pytest.mark.parametrize("size", [32, 64])
@pytest.mark.parametrize("outputs", [(1, 32, 32), (2, 32, 32), (1, 20, 20)])
def test_dense_networks_give_the_shape_of_a_target(example, size, outputs):
    made = example.encoders.dense((3, 32, 32), outputs, GIVEN, size)
    assert made(torch.zeros(2, 3, 32, 32)).shape == (2, *outputs)


def test_both_networks_share_an_encoder(example):
    dense = example.encoders.dense((3, 32, 32), (1, 32, 32), GIVEN, 32)
    classifier = example.encoders.classifier((3, 32, 32), 10, GIVEN, 32)
    one, two = ({k: v.shape for k, v in m.body.state_dict().items()} for m in (dense, classifier))
    assert one == two


def test_every_stage_is_half_as_large_as_the_one_before(example):
    made = example.encoders.dense((3, 32, 32), (1, 32, 32), GIVEN, 64)
    x = made.prepared(torch.zeros(1, 3, 32, 32))
    stages = dict(example.encoders.STAGES)
    seen = []
    for place, layer in enumerate(list(made.body)[:18], start=1):
        x = layer(x)
        if place in stages:
            assert x.shape[1] == stages[place]
            seen.append(x.shape[-1])
    assert seen == [32, 16, 8, 4, 2]


def test_edges_are_sobels(example, images):
    x, y, _, _ = example.pictures.read_task(images, "edges")
    grey = np.tensordot([0.299, 0.587, 0.114], x[0] / 255.0, axes=1)
    i, j = 10, 17  # by hand, at one place
    patch = grey[i - 1 : i + 2, j - 1 : j + 2]
    weights = np.array([[1, 2, 1], [0, 0, 0], [-1, -2, -1]])
    steep = np.hypot((patch * weights).sum(), (patch * weights.T).sum()) / 4
    assert y[0, 0, i, j] == pytest.approx(steep, abs=1e-5)


def test_colours_and_brightness_make_the_image(example, images):
    x, chroma, _, _ = example.pictures.read_task(images, "colours")
    whole = example.pictures.read_task(images, "classes")[0] / 255.0
    grey = x[:, 0] / 255.0
    assert np.abs(grey + chroma[:, 0] - whole[:, 2]).max() < 0.003  # rounded to 255 steps
    assert np.abs(grey + chroma[:, 1] - whole[:, 0]).max() < 0.003


@pytest.mark.parametrize("task", ["classes", "edges"])
def test_studies_are_as_described(example, images, task):
    scale = example.run.Scale((8, 16), 40, 2, 32, {"train": 2, "maximal": 3}, 4, "float32", 10)
    study = example.run.make_study(task, images, scale)
    assert len(study.jobs) == 3 * 2 * 2
    assert study.dataset.is_numbers == (task != "classes")
    trained = {name: learner.training for name, learner in study.learners.items()}
    assert {name: t.weights_into for name, t in trained.items()} == {
        "scratch": None,
        "fashion-mnist": "body",
        "imagenet": "body",
    }
    most = example.run.make_study(task, images, scale, maximal=True)
    assert {job.n for job in most.jobs} == {40}


def test_what_came_of_the_runs_is_whole():
    risks = cw.load_risks(FOLDER / "risks.csv")
    assert set(risks.task_names) == {"classes", "edges"}
    assert set(risks.method_names) == {"scratch", "fashion-mnist", "imagenet"}
    assert np.isfinite(risks.risk).all()
    counts = {
        (task, method, n): int(
            ((risks.tasks == task) & (risks.methods == method) & (risks.n == n)).sum()
        )
        for task in risks.task_names
        for method in risks.method_names
        for n in np.unique(risks.n)
    }
    assert set(counts.values()) == {3}
    assert len(np.unique(risks.n)) == 5
