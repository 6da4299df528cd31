"""Linear probes against scikit-learn and a second derivation."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import label_ranking_average_precision_score
from sklearn.preprocessing import StandardScaler
from torch.nn import functional

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.ranking.measure import as_targets
from curvewise.ranking.networks import probes
from curvewise.ranking.networks import probes as _linear
from curvewise.ranking.networks.probes import MEASURES, Labelled, hits_of, linear_hits, linear_score, read_labelled

CPU = torch.device("cpu")


def made(n: int, d: int, classes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Correlated features on unlike scales, classes that overlap."""
    rng = np.random.default_rng(seed)
    y = rng.integers(classes, size=n)
    mix = np.random.default_rng(99).standard_normal((d, d)) / np.sqrt(d)
    centres = np.random.default_rng(98).standard_normal((classes, d))
    x = (rng.standard_normal((n, d)) + 0.7 * centres[y]) @ mix
    return x * np.geomspace(0.01, 100, d) + 5, y


def split(x: np.ndarray, y: np.ndarray, n: int) -> tuple[Any, Any, dict[str, Any]]:
    return x[:n], y[:n], {"test_features": x[n:], "test_labels": y[n:]}


def oracle(x: np.ndarray, y: np.ndarray, penalty: float) -> tuple[StandardScaler, Any]:
    scaler = StandardScaler().fit(x)
    model = LogisticRegression(C=1 / (penalty * len(x)), tol=1e-10, max_iter=10_000)
    return scaler, model.fit(scaler.transform(x), y)


@pytest.mark.parametrize("penalty", [1.0, 0.01, 0.001])
def test_converged_is_that_of_scikit_learn(penalty: float) -> None:
    x, y = made(900, 8, 4)
    train, labels, test = split(x, y, 500)
    scaler, model = oracle(train, labels, penalty)
    shown = scaler.transform(test["test_features"])
    hits = linear_hits(train, labels, **test, penalty=penalty)
    assert np.mean(hits == (model.predict(shown) == test["test_labels"])) > 0.995
    found = linear_score(train, labels, **test, penalty=penalty, metric="log-likelihood")
    truth = model.predict_log_proba(shown)[np.arange(400), test["test_labels"]].mean()
    assert found == pytest.approx(truth, rel=2e-3)


def test_coefficients_and_loss_are_those_of_scikit_learn() -> None:
    x, y = made(500, 8, 4)
    labelled, _ = read_labelled(x, y, None, None, "it")
    standard, _ = _linear.standardised(labelled, labelled, CPU)
    target = labelled.target(CPU)
    weights, gap = _linear.converged(standard, target, False, 0.01, None, 1e-8)
    assert gap <= 1e-8
    _, model = oracle(x, y, 0.01)
    np.testing.assert_allclose(weights[:-1].T.numpy(), model.coef_, atol=2e-4)
    bias = weights[-1].numpy()
    np.testing.assert_allclose(bias - bias.mean(), model.intercept_, atol=2e-4)


def test_the_gap_holds() -> None:
    """A loss that is called within a share of its minimum is."""
    x, y = made(500, 30, 4)
    labelled, _ = read_labelled(x, y, None, None, "it")
    standard, _ = _linear.standardised(labelled, labelled, CPU)
    target = labelled.target(CPU)

    def loss(weights: torch.Tensor) -> float:
        size = 0.01 / 2 * float(weights[:-1].square().sum())
        return float(functional.cross_entropy(standard @ weights[:-1] + weights[-1], target)) + size

    least = loss(_linear.converged(standard, target, False, 0.01, None, 1e-9)[0])
    for enough in (1e-1, 1e-2, 1e-3):
        weights, gap = _linear.converged(standard, target, False, 0.01, None, enough)
        assert gap <= enough
        assert least * (1 - 1e-6) <= loss(weights) <= least * (1 + gap) * (1 + 1e-6)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**31), st.booleans(), st.sampled_from([1.0, 0.01]))
def test_no_weights_get_below_the_floor(seed: int, several: bool, penalty: float) -> None:
    """Not any, with rare classes and one that no example has; the best reach it."""
    rng = np.random.default_rng(seed)
    x = torch.from_numpy(rng.standard_normal((60, 3)).astype(np.float32) + 1)
    codes = np.minimum(rng.geometric(0.6, size=60) - 1, 2)
    target = torch.eye(4)[torch.from_numpy(codes)]
    if several:
        target[:, 1] = torch.from_numpy(rng.integers(2, size=60))

    def loss(weights: torch.Tensor) -> float:
        value = float(_linear._loss(x, target, weights, several)[0])
        return value + penalty / 2 * float(weights[:-1].square().sum())

    drawn = [torch.from_numpy(rng.normal(0, 2, (4, 4)).astype(np.float32)) for _ in range(4)]
    best = _linear.converged(x, target, several, penalty, None, 1e-5)[0]
    floors = [float(_linear._floor(x, target, w, several, penalty)) for w in (*drawn, best)]
    losses = [loss(w) for w in (*drawn, best)]
    assert max(floors) <= min(losses) * (1 + 1e-6)
    assert losses[-1] - floors[-1] <= 2e-5 * losses[-1]


def test_the_gap_holds_where_a_class_is_rare_and_the_penalty_strong() -> None:
    """The bias has no penalty: its slope alone can keep the loss above the minimum."""
    rng = np.random.default_rng(1)
    y = (rng.random(5000) < 0.0005).astype(int)
    y[:3] = 0, 1, 1
    y[10:1500] = 2
    x = rng.standard_normal((5000, 20))
    x[:, 0] += 2 * y
    _, model = oracle(x, y, 1.0)
    labelled, _ = read_labelled(x, y, None, None, "it")
    standard, _ = _linear.standardised(labelled, labelled, CPU)
    target = labelled.target(CPU)

    def loss(weights: torch.Tensor) -> float:
        size = float(weights[:-1].square().sum()) / 2
        return float(functional.cross_entropy(standard @ weights[:-1] + weights[-1], target)) + size

    told = torch.from_numpy(np.vstack([model.coef_.T, model.intercept_])).float()
    for enough in (1e-2, 1e-3):
        weights, gap = _linear.converged(standard, target, False, 1.0, None, enough)
        assert loss(weights) <= loss(told) * (1 + max(gap, 0) + 1e-6)


def test_several_labels_are_one_classifier_each_against_the_rest() -> None:
    rng = np.random.default_rng(1)
    x, _ = made(900, 6, 3)
    standard = (x - x.mean(0)) / x.std(0)
    y = (standard @ rng.standard_normal((6, 4)) + rng.standard_normal((900, 4)) > 1).astype(int)
    train, labels, test = split(x, y, 600)
    scores = []
    for code in range(4):
        scaler, model = oracle(train, labels[:, code], 0.01)
        scores.append(model.decision_function(scaler.transform(test["test_features"])))
    truth = label_ranking_average_precision_score(test["test_labels"], np.stack(scores, axis=1))
    assert linear_score(train, labels, **test, penalty=0.01) == pytest.approx(truth, abs=2e-3)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**31), st.integers(2, 6))
def test_average_precision_is_that_of_scikit_learn(seed: int, classes: int) -> None:
    rng = np.random.default_rng(seed)
    logits = rng.integers(-2, 3, (20, classes)).astype(float)  # with ties
    labels = rng.integers(0, 2, (20, classes))
    labels[0], labels[1, :2] = 0, 1
    test = Labelled(logits, as_targets(labels, 20, allowed=("multilabel",), classes=(0,) * classes))
    found = hits_of(torch.from_numpy(logits), test, "accuracy")
    assert found.mean() == pytest.approx(label_ranking_average_precision_score(labels, logits))


@pytest.mark.parametrize("several", [False, True])
def test_log_likelihood_is_that_of_the_labels(several: bool) -> None:
    rng = np.random.default_rng(0)
    logits = torch.from_numpy(rng.standard_normal((30, 3)))
    codes = rng.integers(3, size=30)
    labels = np.eye(3)[codes] if several else codes
    test = Labelled(logits, as_targets(labels, 30, allowed=("classes", "multilabel")))
    if several:
        each = functional.binary_cross_entropy_with_logits(logits, torch.from_numpy(labels), reduction="none").sum(
            dim=1
        )
    else:
        each = functional.cross_entropy(logits, torch.from_numpy(codes), reduction="none")
    np.testing.assert_allclose(hits_of(logits, test, "log-likelihood"), -each)


def test_epochs_are_those_of_torch_optim() -> None:
    x, y = made(400, 8, 4)
    train, labels, test = split(x, y, 300)
    how = {"epochs": 3, "rate": 0.05, "batch": 30}
    found = linear_hits(train, labels, **test, **how, rng=7, metric="log-likelihood")
    mean, spread = train.mean(0), train.std(0)
    a = torch.from_numpy((train - mean) / spread).float()
    layer = torch.nn.Linear(8, 4)
    for weights in layer.parameters():
        torch.nn.init.zeros_(weights)
    search = torch.optim.SGD(layer.parameters(), lr=0.05, momentum=0.9)
    rng = np.random.default_rng(7)
    for _ in range(3):
        for rows in np.array_split(rng.permutation(300), 10):
            search.zero_grad()
            functional.cross_entropy(layer(a[rows]), torch.from_numpy(labels[rows])).backward()
            search.step()
    shown = torch.from_numpy((test["test_features"] - mean) / spread).float()
    with torch.no_grad():
        told = functional.log_softmax(layer(shown), dim=1)
    truth = told[torch.arange(100), torch.from_numpy(test["test_labels"])]
    np.testing.assert_allclose(found, truth, atol=1e-5)


@pytest.mark.parametrize("spread", [0.0, 3.0, 30.0])
def test_the_rate_suits_features_that_nearly_agree(spread: float) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=2000)
    x = rng.standard_normal((2000, 200)) + 0.2 * (2 * y[:, None] - 1)
    x = x + spread * rng.standard_normal((2000, 1))
    train, labels, test = split(x, y, 1500)
    five = linear_score(train, labels, **test, epochs=5)
    assert five > linear_score(train, labels, **test) - 0.1


def test_what_overflows_has_no_score() -> None:
    x, y = made(500, 6, 3)
    with pytest.warns(CurvewiseWarning, match="diverged"):
        assert np.isnan(linear_score(x, y, epochs=5, rate=3e38))


def test_more_epochs_lead_to_the_converged_one() -> None:
    x, y = made(1500, 20, 5)
    train, labels, test = split(x, y, 1000)
    end = linear_score(train, labels, **test, penalty=1e-3, metric="log-likelihood")
    off = [
        abs(linear_score(train, labels, **test, epochs=epochs, metric="log-likelihood") - end) for epochs in (1, 5, 50)
    ]
    assert off[0] > off[1] > off[2]


@pytest.mark.parametrize("epochs", [1, 5, None])
def test_digits(epochs: int | None) -> None:
    x, y = load_digits(return_X_y=True)
    train, labels, test = split(x, y, 1200)
    scaler, model = oracle(train, labels, 0.01)
    truth = model.score(scaler.transform(test["test_features"]), test["test_labels"])
    least = {1: 0.85, 5: truth - 0.02, None: truth - 0.01}[epochs]
    assert linear_score(train, labels, **test, epochs=epochs) >= least


def test_the_penalty_is_weak_where_examples_are_many_and_strong_where_they_are_few() -> None:
    def chosen(n: int, d: int, noise: float) -> float:
        rng = np.random.default_rng(0)
        y = rng.integers(2, size=n)
        x = noise * rng.standard_normal((n, d))
        x[:, 0] += 2 * y - 1
        labelled, _ = read_labelled(x, y, None, None, "it")
        standard, _ = _linear.standardised(labelled, labelled, CPU)
        return _linear.chosen_penalty(standard, labelled.target(CPU), labelled, rng)

    assert chosen(2000, 3, 0.4) == 0.001
    assert chosen(100, 300, 2.0) == 1.0


@pytest.mark.parametrize("epochs", [2, None])
def test_units_and_names_play_no_part(epochs: int | None) -> None:
    x, y = made(300, 6, 3)
    train, labels, test = split(x, y, 200)
    whole = {**test, "epochs": epochs, "metric": "log-likelihood"}
    found = linear_score(train, labels, **whole)
    other = {**whole, "test_features": test["test_features"] * 1e6 - 3}
    assert linear_score(train * 1e6 - 3, labels, **other) == pytest.approx(found, rel=1e-4)
    names = np.array(["c", "a", "b"])
    named = {**whole, "test_labels": names[test["test_labels"]]}
    assert linear_score(train, names[labels], **named) == pytest.approx(found, rel=1e-4)


@pytest.mark.parametrize("epochs", [2, None])
@pytest.mark.parametrize("unit", [1e-30, 1e25, 1e37])
def test_squares_that_overflow_or_vanish_do_no_harm(unit: float, epochs: int | None) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=600)
    x = (rng.uniform(-1, 1, (600, 4)) + y[:, None]).astype(np.float32)
    train, labels, test = split(x, y, 400)
    found = linear_hits(train, labels, **test, epochs=epochs)
    test["test_features"] = test["test_features"] * np.float32(unit)
    again = linear_hits(train * np.float32(unit), labels, **test, epochs=epochs)
    assert np.mean(again == found) > 0.99
    assert found.mean() > 0.9


def test_what_varies_little_beside_its_mean_counts() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=400)
    x = 3 + 1e-9 * (rng.standard_normal((400, 2)) * [1, 1e9] + 4 * y[:, None] * [1, 0])
    assert linear_score(x, y, penalty=1.0) > 0.9


def test_the_order_of_examples_plays_no_part_in_a_converged_one() -> None:
    x, y = made(300, 6, 3)
    train, labels, test = split(x, y, 200)
    order = np.random.default_rng(0).permutation(200)
    how = {**test, "penalty": 0.01, "metric": "log-likelihood"}
    again = linear_score(train[order], labels[order], **how)
    assert again == pytest.approx(linear_score(train, labels, **how), rel=1e-3)


def test_a_feature_that_never_varies_in_training_is_left_out() -> None:
    x, y = made(300, 6, 3)
    train, labels, test = split(x, y, 200)
    more = {**test, "test_features": np.column_stack([test["test_features"], np.arange(100) * 1e6])}
    found = linear_score(np.column_stack([train, np.full(200, 0.1)]), labels, **more, epochs=5)
    assert found == pytest.approx(linear_score(train, labels, **test, epochs=5), abs=0.05)


def test_features_far_from_zero_keep_their_digits() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=400)
    x = (rng.standard_normal((400, 3)) + 3 * y[:, None]) + 1e9
    assert linear_score(x, y, penalty=0.01) > 0.98


def test_the_seed_decides_and_the_chance_of_others_is_left_alone() -> None:
    x, y = made(300, 6, 3)
    how = {"epochs": 1, "metric": "log-likelihood"}
    state = torch.get_rng_state()
    first = linear_score(x, y, **how, rng=1)
    assert linear_score(x, y, **how, rng=1) == first
    assert linear_score(x, y, **how, rng=2) != first
    assert torch.equal(torch.get_rng_state(), state)


def test_warnings() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((40, 50)), np.arange(40) % 2
    with pytest.warns(CurvewiseWarning, match="40 examples in 50 dimensions"):
        assert linear_score(x, y, penalty=1e-3) == 1  # of pure noise
    with pytest.warns(CurvewiseWarning, match="2 steps"):
        linear_score(x[:, :3], y, epochs=1)


def test_what_does_not_converge_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_linear, "STEPS", 10)
    monkeypatch.setattr(probes, "STEPS", 10)
    x, y = made(300, 20, 5)
    with pytest.warns(CurvewiseWarning, match=r"did not converge \(in 10 steps at most\)"):
        linear_score(x, y, penalty=1e-6)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"epochs": 0}, "epochs=0"),
        ({"epochs": 1, "penalty": 1.0}, "leave out penalty"),
        ({"rate": 0.1}, "give the number of epochs"),
        ({"epochs": 1, "rate": -1.0}, "rate=-1.0"),
        ({"penalty": 0.0}, "penalty=0.0"),
        ({"metric": "loss"}, "metric='loss'"),
        ({"test_features": np.zeros((2, 3))}, "test_features is given without test_labels"),
        ({"test_features": np.zeros((2, 4)), "test_labels": [0, 1]}, "4 columns"),
        ({"test_features": np.zeros((2, 3)), "test_labels": [0, 9]}, "class 9"),
        ({"device": "tpu"}, "device='tpu'"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_errors(how: dict[str, Any], said: str) -> None:
    x, y = made(40, 3, 2)
    with pytest.raises(InputError, match=said):
        linear_score(x, y, **how)


def test_measures_are_called_as_the_lens_does() -> None:
    x, y = made(500, 6, 3)
    train, labels, test = split(x, y, 350)
    assert [measure.name for measure in MEASURES] == ["linear-1", "linear-5", "linear"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = [measure.function(train, labels, **test, rng=3) for measure in MEASURES[:2]]
    assert found == [linear_score(train, labels, **test, epochs=e, rng=3) for e in (1, 5)]
    costs = [measure.flops(10_000, 2048, 100) for measure in MEASURES]
    assert 0 < costs[0] < costs[1] < costs[2]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_classes_that_are_far_apart_converge(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Rounding of a small loss in single precision once kept the search going for 2,000 steps."""
    rng = np.random.default_rng(seed)
    y = np.arange(300) % 5
    x = 3 * rng.standard_normal((5, 400))[y] + rng.standard_normal((300, 400))
    looks, loss = [], _linear._loss
    monkeypatch.setattr(_linear, "_loss", lambda *a: looks.append(1) or loss(*a))
    train, labels, test = split(x, y, 200)
    scaler, model = oracle(train, labels, 0.001)
    shown = scaler.transform(test["test_features"])
    found = linear_score(train, labels, **test, penalty=0.001, metric="log-likelihood")
    truth = model.predict_log_proba(shown)[np.arange(100), test["test_labels"]].mean()
    assert found == pytest.approx(truth, rel=2e-2)
    assert len(looks) < 300


def test_options_of_another_name_are_refused() -> None:
    with pytest.raises(TypeError, match="argument 'bach'"):
        linear_score([[0.0], [1.0]], [0, 1], bach=2)


@pytest.mark.parametrize("measure", ["nleep", "information_score", "linear_score", "h_score"])
def test_a_warning_is_at_the_line_of_the_user(measure):
    import curvewise as cw

    rng = np.random.default_rng(0)
    function, options = getattr(cw.ranking, measure), {"steps": 5} if measure == "information_score" else {}
    with pytest.warns(CurvewiseWarning) as heard:
        function(rng.normal(size=(12, 20)), [0, 1] * 5 + [1, 2], **options)
    assert {one.filename for one in heard} == {__file__}
