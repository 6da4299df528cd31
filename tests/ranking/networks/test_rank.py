"""Ranking checkpoints from networks, files and features, with measures that are trained."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.ranking.moments import logme
from curvewise.ranking.networks import probes
from curvewise.ranking.networks.checkpoints import Checkpoint
from curvewise.ranking.networks.features import extract_features
from curvewise.ranking.networks.finetuning import find_networks
from curvewise.ranking.networks.inputs import read_inputs
from curvewise.ranking.networks.preprocessing import Preprocessing
from curvewise.ranking.networks.probes import linear_hits, linear_score
from curvewise.ranking.networks.rank import MEASURES, list_ranking_measures, rank_checkpoints
from curvewise.ranking.rank import rank_features


def make_network(sharpness, blind=0, seed=0):
    generator = torch.Generator().manual_seed(seed)
    network = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 4))
    for weight in network.parameters():
        weight.data = torch.randn(weight.shape, generator=generator)
    network[0].weight.data *= sharpness
    network[0].weight.data[:, :blind] = 0
    return network


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    labels = np.arange(600) % 3
    means = rng.standard_normal((3, 6))
    x = (means[labels] + rng.standard_normal((600, 6))).astype(np.float32)
    return x, labels


@pytest.fixture(scope="module")
def pool():
    return {"blind": make_network(0.3, 5), "sees": make_network(0.3), "dazzled": make_network(30)}


def test_networks_are_ranked_by_their_features(data, pool):
    found = rank_checkpoints(pool, data, ("logme", "leep"), resamples=10, k=1, reliability=0.8)
    assert found.checkpoints[0] == "sees"
    for place, name in enumerate(found.checkpoints):
        features = extract_features(pool[name], data[0]).features
        assert found.scores["logme"][place] == pytest.approx(logme(features, data[1]))
    assert np.isfinite(found.scores["leep"]).all()  # their own heads give probabilities
    assert (found.forward_seconds > 0).all()
    assert (found.forward_gflops > 0).all()
    assert found.failures == {}


def test_what_cannot_be_run_is_told_and_the_others_go_on(data, pool, tmp_path):
    wide = torch.nn.Linear(7, 2)
    given = {**pool, "wide": wide, "lost": tmp_path / "lost.onnx"}
    with pytest.warns(CurvewiseWarning) as heard:
        found = rank_checkpoints(given, data, "logme", resamples=0)
    assert set(found.failures) == {"wide", "lost"}
    assert set(found.checkpoints) == set(pool)
    assert {str(w.message).split(" is not")[0] for w in heard} == {"wide", "lost"}
    with pytest.raises(InputError, match=r"No checkpoint could be run.*wide"):
        rank_checkpoints({"wide": wide}, data, "logme")


def test_features_on_disk_and_in_memory_stand_beside_networks(data, pool, tmp_path):
    features = extract_features(pool["sees"], data[0]).features
    np.save(tmp_path / "kept.npy", features)
    given = {"network": pool["sees"], "file": tmp_path / "kept.npy", "array": features}
    found = rank_checkpoints(given, data, "logme", resamples=0)
    np.testing.assert_allclose(found.scores["logme"], found.scores["logme"][0], rtol=1e-6)
    np.testing.assert_array_equal(found.ranks, 2)
    assert np.isnan(found.forward_seconds).sum() == 2


def test_datasets_bring_their_labels(data, pool):
    x, labels = torch.from_numpy(data[0]), torch.from_numpy(data[1])
    arrays = rank_checkpoints(pool, data, "logme", resamples=0)
    for given in (TensorDataset(x, labels), DataLoader(TensorDataset(x, labels), batch_size=50)):
        found = rank_checkpoints(pool, given, "logme", resamples=0)
        np.testing.assert_allclose(found.scores["logme"], arrays.scores["logme"], rtol=1e-5)
    with pytest.raises(InputError, match="labels are missing"):
        rank_checkpoints(pool, data[0], "logme")


def test_some_of_the_examples(data, pool):
    mask = np.arange(600) < 200
    how = {"examples": 120, "test": mask, "resamples": 0, "reliability": 0.5, "rng": 1}
    found = rank_checkpoints(pool, data, "knn", **how)
    assert found.examples == 120
    again = rank_checkpoints(pool, data, "knn", **how)
    assert 20 < found.test_examples < 60
    np.testing.assert_array_equal(found.scores["knn"], again.scores["knn"])


def test_a_linear_probe_is_trained_once_for_its_interval(data, pool, monkeypatch):
    trained, descended = [], probes.descended
    monkeypatch.setattr(probes, "descended", lambda *given: trained.append(len(given[0])) or descended(*given))
    found = rank_checkpoints(pool, data, "linear-5", rng=2, reliability=0.5)
    assert any("not retrained" in text for text in found.warnings)
    share = found.scores["linear-5"]
    error = np.sqrt(share * (1 - share) / found.test_examples)
    np.testing.assert_allclose((found.score_high - share) / 1.96, error, rtol=0.15)
    assert len(trained) == len(pool)


def test_hits_are_those_of_the_measures(data, pool):
    features = extract_features(pool["sees"], data[0]).features
    shown = {"test_features": features[500:], "test_labels": data[1][500:], "rng": 3}
    for name in ("linear-1", "linear-5", "linear"):
        hits = MEASURES[name].hits
        found = hits(features[:500], data[1][:500], **shown)
        score = MEASURES[name].function(features[:500], data[1][:500], **shown)
        assert found.mean() == pytest.approx(score)
        assert found.shape == (100,)
    assert MEASURES["linear"].hits is linear_hits
    assert MEASURES["linear"].function is linear_score


def test_the_same_as_ranking_features(data, pool):
    features = {name: extract_features(network, data[0]) for name, network in pool.items()}
    one = rank_features(features, data[1], ("nleep", "logme"), resamples=0, test=None)
    two = rank_checkpoints(pool, data, ("nleep", "logme"), resamples=0, test=None)
    assert one.checkpoints == two.checkpoints
    np.testing.assert_allclose(one.scores["logme"], two.scores["logme"])


def test_networks_are_fine_tuned_where_they_can_be(data, pool, tmp_path):
    features = extract_features(pool["sees"], data[0]).features
    before = {name: network[0].weight.clone() for name, network in pool.items()}
    with pytest.warns(CurvewiseWarning, match="No finetune-1 for 'array'.* is not given as a net"):
        found = rank_checkpoints({**pool, "array": features}, data, ("logme", "finetune-1"), resamples=0, rng=4)
    tuned = dict(zip(found.checkpoints, found.scores["finetune-1"], strict=True))
    assert np.isnan(tuned["array"])
    assert tuned["sees"] > max(tuned["blind"], 0.5)
    again = rank_checkpoints(pool, data, "finetune-1", rng=4, reliability=0.3)
    assert again.checkpoints[-1] == "blind"
    assert any("not retrained" in text for text in again.warnings)
    assert (again.score_low < again.scores["finetune-1"]).all()
    np.testing.assert_allclose(again.gflops["finetune-1"], 3 * again.forward_gflops, rtol=1e-3)
    for name, network in pool.items():
        assert torch.equal(before[name], network[0].weight)


def test_images_are_prepared_for_fine_tuning():
    """Bytes of 8 × 8, for a network that takes 4 × 4: tuned on what its features come from."""
    rng = np.random.default_rng(0)
    labels = np.arange(400) % 2
    images = (rng.integers(0, 120, (400, 1, 8, 8)) + 100 * labels[:, None, None, None]).astype("u1")
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, 8), torch.nn.Linear(8, 2))
    how = Preprocessing(size=4, mean=(0.4,), std=(0.02,), channels="grey")
    given = [Checkpoint("small", network, preprocessing=how)]
    inputs = read_inputs(images, labels)
    tunable = find_networks(given, inputs)["small"]
    assert tunable.options["prepare"](tunable.data[:3]).shape == (3, 1, 4, 4)
    found = rank_checkpoints(given, (images, labels), "finetune-5", resamples=0, reliability=0.5)
    assert found.scores["finetune-5"][0] > 0.9


def test_places_are_no_examples(data):
    tokens = np.random.default_rng(0).integers(1, 20, (60, 5))
    network = torch.nn.Sequential(torch.nn.Embedding(20, 4), torch.nn.Linear(4, 3))
    given = [Checkpoint("pooled", network, layer="0"), Checkpoint("each", network, layer="0", pool="tokens")]
    with pytest.warns(CurvewiseWarning, match="each is not ranked: it has a row for each token"):
        found = rank_checkpoints(given, (tokens, np.arange(60) % 2), "logme", resamples=0)
    assert found.checkpoints == ("pooled",)


def test_every_measure_is_listed():
    table = list_ranking_measures().set_index("measure")
    assert list(table.index) == list(MEASURES)
    assert table.loc["finetune-1", "takes"] == "network"
    assert table.loc["nleep", "reference"] == "stable_transfer, examples/checkpoints"
    assert table.loc["knn", "reference"] == "examples/checkpoints"
    assert table["correlation"].between(-1, 1).all()
    assert (table[["about", "cost", "fails"]].map(len) > 10).all().all()


def test_every_measure_has_one_name():
    assert {"nleep", "leep", "logme", "linear", "linear-1", "mi-pca-0.01"} <= set(MEASURES)
    assert all(measure.name == name for name, measure in MEASURES.items())


def test_a_mask_of_all_examples_serves_those_that_are_drawn(data, pool):
    mask = np.arange(600) < 150
    found = rank_checkpoints(pool, data, "knn", examples=200, test=mask, resamples=0, rng=3)
    rows = read_inputs(data, examples=200, rng=np.random.default_rng(3)).rows
    assert found.test_examples == mask[rows].sum() != 40  # a fifth, by default
