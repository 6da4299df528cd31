"""Fine-tuning against a loop written by hand, and what it leaves alone."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.metrics import label_ranking_average_precision_score
from torch import Tensor, nn
from torch.nn import functional

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.nn.data import draw_sample
from curvewise.ranking.networks.finetuning import MEASURES, PAPER_RATES, Tunable, finetuning_hits, finetuning_score


@pytest.fixture(scope="module")
def digits() -> tuple[np.ndarray, np.ndarray]:
    data = load_digits()
    return (data.images[:, None] / 8 - 1).astype(np.float32), data.target


def network(seed: int = 0, dropout: float = 0.0) -> nn.Module:
    """A small network that ends in a classifier of 1,000 classes."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(
            nn.Conv2d(1, 8, 3, stride=2, padding=1),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.Flatten(),
            nn.Dropout(dropout),
            nn.Linear(128, 1000),
        )


def halves(digits: Any, n: int = 500, shown: int = 300) -> tuple[Any, Any, dict[str, Any]]:
    x, y = digits
    test = {"test_data": x[n : n + shown], "test_labels": y[n : n + shown]}
    return x[:n], y[:n], {**test, "progress": False}


def by_hand(x: Any, y: Any, shown: Any, rate: float, epochs: int, batch: int, seed: int) -> Tensor:
    """The same with the last layer replaced, and the order of examples that the seed gives."""
    model = network()
    model[-1] = nn.Linear(128, 10)
    nn.init.zeros_(model[-1].weight)
    nn.init.zeros_(model[-1].bias)
    search = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)
    order = np.random.default_rng(int(np.random.default_rng(seed).integers(2**63)))
    x, y = torch.from_numpy(x), torch.from_numpy(y)
    for _ in range(epochs):
        for rows in np.array_split(order.permutation(len(x)), len(x) // batch):
            search.zero_grad()
            functional.cross_entropy(model(x[rows]), y[rows]).backward()
            search.step()
    with torch.no_grad():
        answer: Tensor = model.eval()(torch.from_numpy(shown)).argmax(dim=1)
    return answer


def test_it_is_what_a_loop_by_hand_gives(digits: Any) -> None:
    x, y, test = halves(digits)
    found = finetuning_hits(network(), x, y, **test, epochs=2, rate=0.05, batch=32, rng=4)
    told = by_hand(x, y, test["test_data"], 0.05, 2, 32, 4).numpy()
    assert 0.5 < found.mean() < 1
    np.testing.assert_array_equal(found, told == test["test_labels"])


def test_the_network_is_left_as_it_was(digits: Any) -> None:
    x, y, test = halves(digits)
    model = network(dropout=0.5)
    model[0].eval()
    model[0].weight.requires_grad_(False)
    before = copy.deepcopy(model.state_dict())
    modes = [module.training for module in model.modules()]
    chance, threads = torch.get_rng_state(), torch.get_num_threads()
    finetuning_score(model, x, y, **test, epochs=1)
    assert all(torch.equal(before[k], v) for k, v in model.state_dict().items())
    assert [module.training for module in model.modules()] == modes
    assert not model[0].weight.requires_grad
    assert all(p.grad is None for p in model.parameters())
    assert not model[-1]._forward_pre_hooks
    assert torch.equal(torch.get_rng_state(), chance)
    assert torch.get_num_threads() == threads
    assert not torch.are_deterministic_algorithms_enabled()


def test_what_was_frozen_is_trained(digits: Any) -> None:
    x, y, test = halves(digits)
    model = network().requires_grad_(False)
    how = {**test, "epochs": 1, "rate": 0.05, "rng": 4}
    np.testing.assert_array_equal(finetuning_hits(model, x, y, **how), finetuning_hits(network(), x, y, **how))


def test_the_seed_decides_dropout_too(digits: Any) -> None:
    x, y, test = halves(digits)
    model = network(dropout=0.5)
    found = []
    with torch.random.fork_rng():
        for other, seed in enumerate((1, 1, 2)):
            torch.manual_seed(other)
            found.append(finetuning_hits(model, x, y, **test, epochs=1, rate=0.02, rng=seed))
    np.testing.assert_array_equal(found[0], found[1])
    assert (found[0] != found[2]).any()


def test_more_epochs_are_better(digits: Any) -> None:
    x, y, test = halves(digits)
    one, five = (finetuning_score(network(), x, y, **test, epochs=e) for e in (1, 5))
    assert 0.2 < one < five - 0.05


def test_of_several_rates_the_best_counts(digits: Any) -> None:
    x, y, test = halves(digits, 300, 100)
    rates = (1e-5, 0.05, 0.01)
    alone = [finetuning_score(network(), x, y, **test, epochs=2, rate=rate) for rate in rates]
    assert finetuning_score(network(), x, y, **test, epochs=2, rate=rates) == max(alone)
    assert max(alone) > min(alone)
    assert len(PAPER_RATES) == 8


def test_a_schedule_changes_the_rate(digits: Any) -> None:
    x, y, test = halves(digits)
    how = {**test, "epochs": 2, "rate": 0.05}
    falls = finetuning_hits(network(), x, y, **how, schedule="cosine")
    assert (falls != finetuning_hits(network(), x, y, **how)).any()


def test_divergence_is_recorded(digits: Any) -> None:
    x, y, test = halves(digits)
    with pytest.warns(CurvewiseWarning, match=r"diverged at rate 1e\+30"):
        assert np.isnan(finetuning_score(network(), x, y, **test, rate=1e30))
    some = finetuning_score(network(), x, y, **test, epochs=1, rate=[1e30, 0.01])
    assert some == finetuning_score(network(), x, y, **test, epochs=1, rate=0.01)


def test_no_batch_is_left_with_one_example(digits: Any) -> None:
    """Of which batch norm after the flattening could have no spread."""
    x, y, test = halves(digits, 321)
    model = nn.Sequential(nn.Flatten(), nn.BatchNorm1d(64), nn.Linear(64, 3))
    assert finetuning_score(model, x, y, **test, batch=32, epochs=1) > 0.3


def test_a_sample_is_prepared_as_it_says() -> None:
    data = load_digits()
    images = (data.images[:600, None] * 15).astype(np.uint8)
    sample = draw_sample(images, data.target[:600], mean=0.3, std=0.4, rng=0)
    found = finetuning_hits(network(), sample, epochs=1, progress=False)
    x = (sample.x.float() / 255 - 0.3) / 0.4
    np.testing.assert_array_equal(found, finetuning_hits(network(), x, sample.y, epochs=1, progress=False))

    def prepare(batch: Tensor) -> Tensor:
        return (batch.float() / 255 - 0.3) / 0.4

    own = finetuning_hits(network(), sample.x, sample.y, prepare=prepare, epochs=1, progress=False)
    np.testing.assert_array_equal(found, own)


def test_a_network_without_a_classifier_takes_one_on_its_features(digits: Any) -> None:
    x, y, test = halves(digits)
    body = network()[:-1]

    def features(model: nn.Module, batch: Tensor) -> Tensor:
        found: Tensor = model(batch)
        return found

    how = {**test, "epochs": 1, "rate": 0.05}
    np.testing.assert_array_equal(
        finetuning_hits(body, x, y, **how, features=features), finetuning_hits(network(), x, y, **how)
    )


class Backwards(nn.Module):
    """Made last layer first, which a convolution can be; or without it."""

    def __init__(self, end: str) -> None:
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(1)
            self.last = {
                "linear": nn.Linear(8, 5),
                "convolution": nn.Conv2d(8, 5, 1),
                "none": nn.Identity(),
                "everywhere": nn.Conv2d(8, 5, 1),
            }[end]
            self.gate, self.body = nn.Linear(8, 8), nn.Conv2d(1, 8, 3)
        self.end = end

    def forward(self, x: Tensor) -> Tensor:
        x = functional.relu(self.body(x))
        x = x * torch.sigmoid(self.gate(x.mean((2, 3))))[:, :, None, None]
        if self.end == "everywhere":
            return self.last(x).mean((2, 3))
        x = x.mean((2, 3), keepdim=True)
        return self.last(x if self.end == "convolution" else x.flatten(1)).flatten(1)


def test_the_layer_that_gives_the_scores_is_the_one_replaced() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=600)
    x = (rng.standard_normal((600, 1, 6, 6)) + y[:, None, None, None]).astype(np.float32)
    x, y, test = halves((x, y), 400, 200)
    how = {**test, "epochs": 3, "rate": 0.1}
    found = [finetuning_hits(Backwards(end), x, y, **how) for end in ("none", "linear", "convolution", "everywhere")]
    body = finetuning_hits(Backwards("none"), x, y, **how, features=lambda model, batch: model(batch))
    assert body.mean() > 0.6
    for hits in found:
        assert np.mean(hits == body) > 0.98


def test_of_two_layers_that_agree_the_last_is_replaced(digits: Any) -> None:
    x, y, test = halves(digits)
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 9), nn.Linear(9, 9))
    with torch.no_grad():
        model[2].weight.copy_(2 * torch.eye(9))
        model[2].bias.zero_()
    how = {**test, "epochs": 2, "rate": 0.05}
    np.testing.assert_array_equal(
        finetuning_hits(model, x, y, **how),
        finetuning_hits(model, x, y, **how, features=lambda whole, batch: whole[:2](batch)),
    )


@pytest.mark.parametrize("where", ["network", "prepare"])
def test_what_works_in_place_does_not_reach_the_data(digits: Any, where: str) -> None:
    x, y = torch.from_numpy(digits[0][:500].copy()), digits[1][:500]
    kept = x.clone()

    def centred(batch: Tensor) -> Tensor:
        return batch.add_(0.5) if where == "prepare" else batch

    first = [nn.LeakyReLU(0.5, inplace=True)] if where == "network" else []
    model = nn.Sequential(*first, *network())
    test = {"test_data": x[300:], "test_labels": y[300:], "progress": False, "epochs": 2}
    alone = finetuning_score(model, x[:300], y[:300], **test, rate=0.05, prepare=centred)
    assert torch.equal(x, kept)
    several = finetuning_score(model, x[:300], y[:300], **test, rate=[1e-9, 0.05], prepare=centred)
    assert several == alone > 0.3


def test_several_labels(digits: Any) -> None:
    """Of a linear network the scores are those of a classifier for each class, by hand."""
    x, y = digits[0][:400].reshape(400, 64), digits[1][:400]
    labels = np.stack([y % 2 == 0, y > 4, y % 3 == 0], axis=1).astype(int)
    found = finetuning_score(nn.Linear(64, 2), x, labels, epochs=12, batch=400, progress=False)
    weights = torch.zeros(65, 3, requires_grad=True)
    search = torch.optim.SGD([weights], lr=0.01, momentum=0.9)
    wide = torch.from_numpy(np.column_stack([x, np.ones(400, dtype=np.float32)]))
    for _ in range(12):
        search.zero_grad()
        functional.binary_cross_entropy_with_logits(wide @ weights, torch.from_numpy(labels).float()).backward()
        search.step()
    scores = (wide @ weights).detach().numpy()
    assert found == pytest.approx(label_ranking_average_precision_score(labels, scores), abs=1e-3)


class Empty(nn.Linear):
    """Gives nothing."""

    def __init__(self) -> None:
        super().__init__(8, 8)

    def forward(self, x: Tensor) -> None:
        return None


@pytest.mark.parametrize(
    ("model", "how", "said"),
    [
        (network(), {"epochs": 0}, "epochs=0"),
        (network(), {"batch": 1}, "batch=1"),
        (network(), {"rate": ()}, "rate="),
        (network(), {"rate": -1.0}, "rate="),
        (network(), {"schedule": "steps"}, "schedule='steps'"),
        (network(), {"precision": "float16"}, "precision='float16'"),
        (network(), {"test_labels": None}, "belong together"),
        (network(), {"test_labels": np.full(300, 77)}, "class 77"),
        (network(), {"test_data": np.zeros((300, 1, 8, 8), dtype=np.uint8)}, "prepare="),
        (Empty(), {}, "returned NoneType"),
        (network(), {"precision": "bfloat16"}, "is for GPUs"),
        (network(), {"features": lambda model, x: model[:-1](x).detach()}, "No weight"),
        (network(), {"features": lambda model, x: x}, r"shape \(2, 1, 8, 8\)"),
        ("model.onnx", {}, "network is str"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_errors(digits: Any, model: Any, how: dict[str, Any], said: str) -> None:
    x, y, test = halves(digits)
    with pytest.raises(InputError, match=said):
        finetuning_score(model, x, y, **{**test, **how})


def test_too_few_steps_are_said(digits: Any) -> None:
    x, y, test = halves(digits, 100)
    with pytest.warns(CurvewiseWarning, match="make 3 steps"):
        finetuning_score(network(), x, y, **test, epochs=1)


def test_what_cannot_be_trained_is_refused(digits: Any) -> None:
    x, y, test = halves(digits)
    program = torch.export.export(network().eval(), (torch.from_numpy(x[:2]),)).module()
    with pytest.raises(InputError, match="cannot be copied and trained"):
        finetuning_score(program, x, y, **test)


def test_measures_are_called_as_the_lens_does(digits: Any) -> None:
    x, y = digits[0][:700], digits[1][:700]
    given = Tunable(network(), x, {"rate": 0.05})
    train, shown = np.arange(500), np.arange(500, 700)
    one = MEASURES[0]
    assert [m.name for m in MEASURES] == ["finetune-1", "finetune-5"]
    options = {"test_features": given[shown], "test_labels": y[shown], "rng": 3}
    found = one.function(given[train], y[train], **options)
    test = {"test_data": x[shown], "test_labels": y[shown], "rng": 3, "progress": False}
    assert found == finetuning_score(network(), x[train], y[train], **test, epochs=1, rate=0.05)
    hits = one.hits(given[train], y[train], **options)
    assert hits.shape == (200,)
    assert hits.mean() == found
    assert len(given) == 700
    assert MEASURES[1].flops(100, 10**9, 10) == 15 * 100 * 10**9


def test_options_of_another_name_are_refused() -> None:
    with pytest.raises(TypeError, match="argument 'bach'"):
        finetuning_score(nn.Linear(1, 2), np.zeros((4, 1)), [0, 1, 0, 1], bach=2)


def test_inputs_that_are_not_numbers_are_named_and_not_taken_for_divergence():
    x = np.ones((20, 4), np.float32)
    x[3, 1] = np.nan
    labels, network = np.arange(20) % 2, nn.Linear(4, 2)
    with pytest.raises(InputError, match="data has NaN or infinite values"):
        finetuning_score(network, x, labels)
    with pytest.raises(InputError, match="test_data has NaN or infinite values"):
        finetuning_score(network, np.ones_like(x), labels, test_data=x, test_labels=labels)
