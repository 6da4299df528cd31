"""Three starts on three tasks: networks, targets, and what came of the runs."""

import importlib
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

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
    monkeypatch.setattr(example.pictures, "FOLDER", tmp_path)
    example.pictures.prepare_images(train=40, test=10)
    return example.pictures


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


def test_edges_are_sobels(images):
    found = images.edges(30, 10)
    assert (len(found.x), len(found.test_x), found.is_numbers) == (30, 10, True)
    grey = np.tensordot([0.299, 0.587, 0.114], found.x[0] / 255.0, axes=1)
    i, j = 10, 17  # by hand, at one place
    patch = grey[i - 1 : i + 2, j - 1 : j + 2]
    weights = np.array([[1, 2, 1], [0, 0, 0], [-1, -2, -1]])
    steep = np.hypot((patch * weights).sum(), (patch * weights.T).sum()) / 4
    assert found.y[0, 0, i, j] == pytest.approx(steep, abs=1e-5)


def test_colours_and_brightness_make_the_image(images):
    found = images.colours(40, 10)
    whole = images.classes(40, 10).x / 255.0
    grey = found.x[:, 0] / 255.0
    assert np.abs(grey + found.y[:, 0] - whole[:, 2]).max() < 0.003  # rounded to 255 steps
    assert np.abs(grey + found.y[:, 1] - whole[:, 0]).max() < 0.003


@pytest.mark.parametrize("task", ["classes", "edges", "colours"])
def test_study_files_differ_in_their_starts_alone(example, images, task):
    study = cw.load_study(FOLDER / f"{task}.toml")
    trained = {name: learner.training for name, learner in study.learners.items()}
    assert {name: t.weights_into for name, t in trained.items()} == {
        "scratch": None,
        "fashion-mnist": "body",
        "imagenet": "body",
    }
    for name, training in trained.items():
        assert training.weights == (f"transfer-runs/{name}.safetensors" * (name != "scratch") or None)
        assert replace(training, weights=None, weights_into=None) == trained["scratch"]
    assert study.design.sizes == (50, 200, 800, 3200, 12800)
    assert study.design.folds == 3
    asked = dict(study.data)
    assert asked.pop("function") == f"pictures:{task}"
    assert len(getattr(images, task)(**asked).x) == 40  # all there are in this test


def test_maximal_supervision_differs_from_its_study_in_size_and_length(example):
    study = cw.load_study(FOLDER / "edges.toml")
    most = example.run.with_most(study)
    assert most.data == {**study.data, "images": 40_000}
    assert most.design.sizes == (40_000,)
    assert list(most.learners) == ["imagenet"]
    training = most.learners["imagenet"].training
    assert replace(training, steps=1000) == study.learners["imagenet"].training


def test_what_came_of_the_runs_is_whole():
    risks = cw.load_risks(FOLDER / "risks.csv")
    assert set(risks.task_names) == {"classes", "edges", "colours"}
    assert set(risks.method_names) == {"scratch", "fashion-mnist", "imagenet"}
    assert np.isfinite(risks.risk).all()
    counts = {
        (task, method, n): int(((risks.tasks == task) & (risks.methods == method) & (risks.n == n)).sum())
        for task in risks.task_names
        for method in risks.method_names
        for n in np.unique(risks.n)
    }
    assert set(counts.values()) == {3}
    assert len(np.unique(risks.n)) == 5
