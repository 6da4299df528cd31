"""Response curves against a loop over single examples, for every kind of data and model."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.nn import Examples
from curvewise.nn.data import draw_sample
from curvewise.response.cmi import cmi_score
from curvewise.response.comparison import compare_responses
from curvewise.response.curve import ResponseCurve
from curvewise.response.load import ModelCorpus
from curvewise.response.networks import measurement
from curvewise.response.networks.measurement import (
    judge_sensitivity,
    measure_response,
    measure_responses,
    measure_sensitivity,
)
from curvewise.response.networks.perturbations import PERTURBATIONS, find_perturbation
from curvewise.response.networks.trial import Execution, Trial, draw_partners, lonely
from curvewise.study.response import judge_invariance


def small_cnn(seed: int = 0, width: int = 8) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Conv2d(1, width, 3, padding=1),
        nn.BatchNorm2d(width),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(2),
        nn.Conv2d(width, 2 * width, 3, padding=1),
        nn.ReLU(inplace=True),
        nn.Flatten(),
        nn.Linear(2 * width * 16, 10),
    )


@pytest.fixture(scope="module")
def digits() -> tuple[np.ndarray, np.ndarray]:
    found = load_digits()
    images = np.round(found.images * 255 / 16).astype(np.uint8)[:, None]
    return images, found.target.astype(np.int64)


def trained(model: nn.Module, x: Tensor, y: Tensor, steps: int = 60) -> nn.Module:
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    order = torch.Generator().manual_seed(0)
    model.train()
    for _ in range(steps):
        rows = torch.randint(len(y), (128,), generator=order)
        optimiser.zero_grad()
        nn.functional.cross_entropy(model(x[rows]), y[rows]).backward()
        optimiser.step()
    return model.eval()


@pytest.fixture(scope="module")
def network(digits: tuple[np.ndarray, np.ndarray]) -> nn.Module:
    images, labels = digits
    return trained(small_cnn(), torch.from_numpy(images) / 255, torch.from_numpy(labels))


def by_hand(model: nn.Module, curve: ResponseCurve, x: Tensor, y: Tensor) -> np.ndarray:
    """Answers to pairs that were mixed one at a time."""
    assert curve.partners is not None
    hits = np.zeros(curve.partners.shape, dtype=bool)
    with torch.no_grad():
        for (m, i), j in np.ndenumerate(curve.partners):
            share = float(curve.magnitude[m])
            mixed = (1 - share) * x[i] + share * x[j]
            hits[m, i] = int(model(mixed[None]).argmax()) == int(y[i])
    return hits


@pytest.mark.parametrize("name", ["mixup-intra", "mixup-inter"])
def test_mixed_pairs_one_by_one(name: str, network: nn.Module, digits: tuple[np.ndarray, np.ndarray]) -> None:
    images, labels = digits
    curve = measure_response(network, (images, labels), name, magnitudes=4, examples=150, rng=5)
    rows = np.random.default_rng(5).permutation(len(labels))[:150]
    x, y = torch.from_numpy(images[rows]) / 255, torch.from_numpy(labels[rows])
    assert curve.hits is not None
    assert np.array_equal(curve.hits, by_hand(network, curve, x, y))
    with torch.no_grad():
        right = (network(x).argmax(dim=1) == y).numpy()
    assert curve.clean_correct == right.sum()
    assert np.array_equal(curve.hits[0], right)
    assert curve.correct.tolist() == curve.hits.sum(axis=1).tolist()
    assert curve.settings["path"] == "traced"
    assert curve.layer == "input"
    assert curve.perturbation == name


def test_partners_are_of_the_class_each_once_and_fresh(
    network: nn.Module, digits: tuple[np.ndarray, np.ndarray]
) -> None:
    images, labels = digits
    curve = measure_response(network, (images, labels), examples=400)
    partners = curve.partners
    assert partners is not None
    rows = np.random.default_rng(0).permutation(len(labels))[:400]
    own = labels[rows]
    for row in partners:
        assert np.array_equal(np.sort(row), np.arange(400))
        assert (row != np.arange(400)).all()
        assert np.array_equal(own[row], own)
    assert (partners[1:] != partners[:-1]).mean() > 0.9


def test_partners_of_other_classes_are_all_equally_likely() -> None:
    labels = np.array([0, 0, 0, 1, 1, 2])
    partners = draw_partners(labels, "inter", 4000, seed=1)
    assert (labels[partners] != labels).all()
    counts = np.stack([np.bincount(column, minlength=6) for column in partners.T])
    for i, row in enumerate(counts):
        others = row[labels != labels[i]]
        expected = 4000 / len(others)
        assert abs(others - expected).max() < 5 * np.sqrt(expected)


def test_partners_of_the_same_class_are_all_equally_likely() -> None:
    labels = np.array([3, 1, 3, 3, 1, 3])
    partners = draw_partners(labels, "intra", 3000, seed=1)
    counts = np.bincount(partners[:, 0], minlength=6)
    assert counts[[0, 1, 4]].tolist() == [0, 0, 0]
    assert abs(counts[[2, 3, 5]] - 1000).max() < 5 * np.sqrt(1000)
    assert (partners[:, 1] == 4).all()
    assert lonely(np.array([0, 1, 0, 2])).tolist() == [False, True, False, True]


def test_an_example_alone_in_its_class_is_left_out(network: nn.Module) -> None:
    rng = np.random.default_rng(0)
    images = rng.integers(256, size=(21, 1, 8, 8), dtype=np.uint8)
    labels = np.array([0] * 10 + [1] * 10 + [7])
    with pytest.warns(CurvewiseWarning) as said:
        curve = measure_response(network, (images, labels), magnitudes=3)
    assert any("1 example(s) left out" in str(w.message) for w in said)
    assert curve.total.tolist() == [20, 20, 20]
    assert curve.settings["left_out"] == 1
    assert any("left out" in w for w in curve.warnings)


@pytest.mark.parametrize(
    ("name", "batch"),
    [
        *(("mixup-intra", b) for b in (1, 7, 60, 128)),
        *(("noise", b) for b in (7, 128)),
        ("cutout", 1),
        ("rotation", 60),
    ],
)
def test_batches_and_threads_do_not_matter(
    name: str, batch: int, network: nn.Module, digits: tuple[np.ndarray, np.ndarray]
) -> None:
    # Single examples are perturbed in blocks of about 256.
    options: dict[str, Any] = {"magnitudes": [0.1, 0.2, 0.5], "examples": 300 if name == "noise" else 60, "rng": 2}
    wanted = measure_response(network, digits, name, **options)
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        found = measure_response(network, digits, name, device=Execution(batch=batch), **options)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)
    assert wanted.hits is not None
    assert np.array_equal(wanted.hits, found.hits)
    assert found.settings["batch"] == batch


def test_rng_decides_everything(network: nn.Module, digits: tuple[np.ndarray, np.ndarray]) -> None:
    def measured(rng: Any) -> ResponseCurve:
        return measure_response(network, digits, "noise", magnitudes=3, examples=100, rng=rng)

    one, two, other = measured(1), measured(1), measured(2)
    assert np.array_equal(one.hits, two.hits)  # type: ignore[arg-type]
    assert one.settings["sample"] == two.settings["sample"] != other.settings["sample"]
    first, second = (measured(np.random.default_rng(4)) for _ in range(2))
    assert first.settings["seed"] == second.settings["seed"]
    assert np.array_equal(first.hits, second.hits)  # type: ignore[arg-type]


def test_every_source_of_examples(network: nn.Module, digits: tuple[np.ndarray, np.ndarray]) -> None:
    images, labels = digits
    images, labels = images[:200], labels[:200]
    ready = (torch.from_numpy(images) / 255 - 0.3) / 0.5
    dataset = TensorDataset(ready, torch.from_numpy(labels))
    scale: dict[str, Any] = {"mean": [0.3], "std": [0.5]}
    sources = [
        ((images, labels), scale),
        ((torch.from_numpy(images), torch.from_numpy(labels)), scale),
        (Examples(images, labels, 10, mean=(0.3,), std=(0.5,)), {}),
        (dataset, {}),
        (DataLoader(dataset, batch_size=32, shuffle=True), {}),
        (ready, {"labels": labels}),
    ]
    options: dict[str, Any] = {"magnitudes": 3, "rng": 3}
    wanted, *others = [measure_response(network, data, **options, reading=more) for data, more in sources]
    for curve in others:
        assert np.array_equal(curve.hits, wanted.hits)  # type: ignore[arg-type]
        assert np.array_equal(curve.partners, wanted.partners)  # type: ignore[arg-type]


def test_pixels_are_perturbed_before_they_are_normalised(digits: tuple[np.ndarray, np.ndarray]) -> None:
    """A network that looks at one pixel sees what the perturbation made of it, scaled."""

    class Look(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            seen.append(x[:, 0, 4, 4].clone())
            return torch.nn.functional.one_hot(torch.zeros(len(x), dtype=torch.int64), 10).float()

    images, labels = digits
    images, labels = images[:6], labels[:6]
    normal = (torch.from_numpy(images) / 255 - 0.25) / 0.5
    found = []
    scale = {"mean": [0.25], "std": [0.5]}
    for data in ((images, labels), (normal, labels)):
        seen: list[Tensor] = []
        with pytest.warns(CurvewiseWarning):
            measure_response(Look(), data, "brightness", magnitudes=[0.5, 1], reading=scale, device=Execution(batch=6))
        found.append(torch.stack(seen[-2:]))
    rows = np.random.default_rng(0).permutation(6)
    pixels = torch.from_numpy(images[rows, 0, 4, 4]) / 255
    expected = torch.stack([(pixels * f).clamp(0, 1) for f in (1.5, 2.0)])
    for each in found:
        assert torch.allclose(each[:, :6], (expected - 0.25) / 0.5, atol=1e-5)


@pytest.mark.parametrize("name", [n for n, p in PERTURBATIONS.items() if p.of == "images"])
def test_image_perturbations_at_the_input(name: str, network: nn.Module, digits: tuple[np.ndarray, np.ndarray]) -> None:
    if PERTURBATIONS[name].coloured:
        torch.manual_seed(0)
        images = np.random.default_rng(0).integers(256, size=(60, 3, 6, 6), dtype=np.uint8)
        data: Any = (images, np.arange(60) % 3)
        model: nn.Module = nn.Sequential(nn.Flatten(), nn.Linear(108, 3))
    else:
        data, model = digits, network
    perturbation = find_perturbation(name)
    with pytest.warns() if perturbation.coloured else _quiet():
        curve = measure_response(model, data, name, magnitudes=5, examples=60, signs="keep")
    x, y = torch.from_numpy(data[0]), torch.from_numpy(data[1])
    rows = np.random.default_rng(0).permutation(len(y))[:60]
    x, y = x[rows] / 255, y[rows]
    assert curve.hits is not None
    for m, magnitude in enumerate(curve.magnitude):
        changed = perturbation.apply(x, float(magnitude), 0, positions=torch.arange(60) + m * 60)
        with torch.no_grad():
            right = (model(changed).argmax(dim=1) == y).numpy()
        assert (right != curve.hits[m]).sum() <= 1  # rounding may decide a tie


class _quiet:
    def __enter__(self) -> None: ...
    def __exit__(self, *_: object) -> None: ...


def test_tokens_and_features() -> None:
    rng = np.random.default_rng(0)
    labels = np.arange(200) % 2
    # Tokens 1 to 5 in the first class, 6 to 10 in the second, then padding.
    tokens = rng.integers(1, 6, size=(200, 8)) + 5 * labels[:, None]
    tokens[:, 6:] = 0

    class Votes(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.stack([((x > 0) & (x < 6)).sum(1), (x > 5).sum(1)], dim=1).float()

    for name in ("token-replacement", "token-dropout"):
        texts = Examples(tokens, labels, 2, padding=0)
        curve = measure_response(Votes(), texts, name, magnitudes=[0, 0.4, 0.9])
        assert curve.accuracy[0] == 1
        assert curve.accuracy[2] < 0.95
    # Bytes are tokens, too, where tokens are perturbed.
    pair = [measure_response(Votes(), (tokens.astype(kind), labels), "token-replacement") for kind in (int, "uint8")]
    assert pair[1].correct.tolist() == pair[0].correct.tolist()
    table = (rng.normal(size=(200, 4)) + 3 * labels[:, None]).astype(np.float32)
    linear = nn.Linear(4, 2)
    linear.load_state_dict({"weight": torch.tensor([[-1.0] * 4, [1.0] * 4]), "bias": torch.tensor([6.0, -6.0])})
    for name in ("feature-noise", "feature-swap", "mixup-intra"):
        curve = measure_response(linear, (table, labels), name, magnitudes=[0, 0.5, 1])
        assert curve.accuracy[0] > 0.99
        if name != "mixup-intra":
            assert curve.accuracy[2] < 0.95


def test_own_functions_see_the_same_whatever_the_batch(
    network: nn.Module, digits: tuple[np.ndarray, np.ndarray]
) -> None:
    def shaky(x: Tensor, magnitude: float, rng: torch.Generator) -> Tensor:
        sizes.append(len(x))
        return x + magnitude * torch.randn(x.shape, generator=rng)

    curves = []
    for batch in (10, 64, 1000):
        sizes: list[int] = []
        how = Execution(batch=batch)
        curves.append(measure_response(network, digits, shaky, magnitudes=[0, 0.5, 1], examples=600, device=how))
        assert sizes == [256] * 6
    for curve in curves[1:]:
        assert np.array_equal(curve.hits, curves[0].hits)  # type: ignore[arg-type]
    assert curves[0].perturbation == "shaky"
    assert curves[0].accuracy[0] > curves[0].accuracy[2]


def test_models_of_any_framework(network: nn.Module, digits: tuple[np.ndarray, np.ndarray]) -> None:
    def logits(x: np.ndarray) -> np.ndarray:
        assert isinstance(x, np.ndarray)
        with torch.no_grad():
            return network(torch.from_numpy(x)).numpy()

    def classes(x: np.ndarray) -> np.ndarray:
        return logits(x).argmax(axis=1)

    options: dict[str, Any] = {"magnitudes": 3, "examples": 120}
    wanted = measure_response(network, digits, **options)
    for model in (logits, classes):
        curve = measure_response(model, digits, **options)
        assert np.array_equal(curve.hits, wanted.hits)  # type: ignore[arg-type]
        assert curve.settings["path"] == "callable"
        assert curve.model == model.__name__
    with pytest.warns(CurvewiseWarning):
        nowhere = measure_response(lambda x: np.full(len(x), -1), digits, **options)
    assert nowhere.correct.tolist() == [0, 0, 0]


class Wrapped(nn.Module):
    def __init__(self, network: nn.Module, wrap: Any) -> None:
        super().__init__()
        self.network, self.wrap = network, wrap

    def forward(self, x: Tensor) -> Any:
        return self.wrap(self.network(x))


@pytest.mark.parametrize(
    "wrap", [lambda z: (z, None), lambda z: [z], lambda z: {"loss": None, "logits": z}], ids=["tuple", "list", "dict"]
)
def test_outputs_that_hold_logits(wrap: Any, network: nn.Module, digits: tuple[np.ndarray, np.ndarray]) -> None:
    options: dict[str, Any] = {"magnitudes": 3, "examples": 100}
    wanted = measure_response(network, digits, **options)
    found = measure_response(Wrapped(network, wrap), digits, **options)
    assert np.array_equal(found.hits, wanted.hits)  # type: ignore[arg-type]


def test_networks_that_cannot_be_traced_run_as_they_are(
    network: nn.Module, digits: tuple[np.ndarray, np.ndarray]
) -> None:
    class Choosy(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
            return self.network(x) if x.sum() > 0 else -self.network(x)

    class Optional(Choosy):
        def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
            self.last = x
            return self.network(x) if mask is None else -self.network(x)

    class Rough(Choosy):
        """A view is possible in one layout only."""

        def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
            for layer in list(self.network)[:6]:
                x = layer(x)
            return self.network[7](x.view(x.size(0), -1))

    options: dict[str, Any] = {"magnitudes": 3, "examples": 100}
    wanted = measure_response(network, digits, **options)
    for kind, path in ((Choosy, "as is"), (Optional, "traced"), (Rough, "traced")):
        model = kind()
        found = measure_response(model, digits, **options)
        assert np.array_equal(found.hits, wanted.hits)  # type: ignore[arg-type]
        assert found.settings["path"] == path
        assert isinstance(getattr(model, "last", torch.zeros(1)), Tensor)


def test_double_precision_is_kept(digits: tuple[np.ndarray, np.ndarray]) -> None:
    model = small_cnn().double()
    with pytest.warns(CurvewiseWarning, match="right on"):
        curve = measure_response(model, digits, magnitudes=3, examples=200)
    assert curve.settings["precision"] == "float32"
    assert next(model.parameters()).dtype == torch.float64


def test_precision_is_asked_for(digits: tuple[np.ndarray, np.ndarray]) -> None:
    class Asked(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            kinds.add(torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else None)
            return x.flatten(1)[:, :10] + 0 if len(x) else x

    for precision, kind in (("float32", None), ("bfloat16", torch.bfloat16)):
        kinds: set[Any] = set()
        with pytest.warns(CurvewiseWarning):
            measure_response(
                Asked(), digits, magnitudes=3, examples=50, device=Execution(batch=10, precision=precision)
            )
        assert kind in kinds
        if precision == "float32":
            assert kinds == {None}


@pytest.mark.parametrize("name", ["rotation", "blur", "feature-noise", "mixup-intra"])
@pytest.mark.filterwarnings("ignore:The model is right on")
def test_only_the_network_computes_in_low_precision(name: str, digits: tuple[np.ndarray, np.ndarray]) -> None:
    class Noted(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            if len(x):  # not traceable
                given.append(x.clone())
            return x.flatten(1)[:, :10] + 0

    found = []
    for precision in ("float32", "bfloat16"):
        given: list[Tensor] = []
        images = (digits[0] / 255, digits[1])
        options: dict[str, Any] = {"magnitudes": [0, 0.3], "examples": 100}
        measure_response(Noted(), images, name, device=Execution(batch=25, precision=precision), **options)
        found.append(torch.cat(given))
    assert torch.equal(*found)


def test_samples_with_the_same_rows_and_labels_are_told_apart(
    network: nn.Module, digits: tuple[np.ndarray, np.ndarray]
) -> None:
    images, labels = digits
    options: dict[str, Any] = {"magnitudes": 3, "examples": 100}
    one, two = (measure_response(network, digits, "noise", **options) for _ in range(2))
    assert compare_responses(one, two).paired
    with pytest.warns(CurvewiseWarning, match="right on"):
        other = measure_response(network, (255 - images, labels), "noise", **options)
    assert one.settings["sample"] != other.settings["sample"]
    assert not compare_responses(one, other).paired


def test_compiled_gives_the_same_answers(
    network: nn.Module, digits: tuple[np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    options: dict[str, Any] = {"magnitudes": 3, "examples": 100}
    wanted = measure_response(network, digits, **options)
    noisy = measure_response(network, digits, "noise", **options)
    calls = []

    def compile(body: Any, dynamic: bool) -> Any:
        assert not dynamic
        calls.append(body)
        return body

    monkeypatch.setattr(torch, "compile", compile)
    found = measure_response(network, digits, device=Execution(compile=True), **options)
    assert np.array_equal(found.hits, wanted.hits)  # type: ignore[arg-type]
    assert found.settings["compiled"]
    again = measure_response(network, digits, "noise", device=Execution(compile=True), **options)
    assert np.array_equal(again.hits, noisy.hits)  # type: ignore[arg-type]
    assert len(calls) == 2
    assert not wanted.settings["compiled"]

    def fail(body: Any, dynamic: bool) -> Any:
        raise RuntimeError("no compiler")

    monkeypatch.setattr(torch, "compile", fail)
    with pytest.warns(CurvewiseWarning, match="could not be compiled"):
        eager = measure_response(network, digits, device=Execution(compile=True), **options)
    assert np.array_equal(eager.hits, wanted.hits)  # type: ignore[arg-type]
    assert not eager.settings["compiled"]


def test_several_models_are_compared_in_pairs(network: nn.Module, digits: tuple[np.ndarray, np.ndarray]) -> None:
    images, labels = digits
    weak = trained(small_cnn(1, 2), torch.from_numpy(images) / 255, torch.from_numpy(labels), 100)
    shares: list[float] = []
    curves = measure_responses(
        {"strong": network, "weak": weak},
        digits,
        "noise",
        examples=300,
        magnitudes=[0.2, 0.4, 0.6],
        progress=shares.append,
    )
    assert shares == sorted(shares)
    assert shares[-1] == 1
    alone = measure_response(weak, digits, "noise", examples=300, magnitudes=[0.2, 0.4, 0.6])
    assert np.array_equal(curves["weak"].hits, alone.hits)  # type: ignore[arg-type]
    found = compare_responses(curves["strong"], curves["weak"])
    assert found.paired
    assert found.verdict == "a better"


def test_sensitivity(network: nn.Module, digits: tuple[np.ndarray, np.ndarray]) -> None:
    found = measure_sensitivity(network, digits, "noise", batches=(1, 4), repeats=6, magnitudes=[0, 0.3, 0.6])
    assert found.batches.tolist() == [1, 4]
    assert found.values["gi"].shape == (2, 6)
    assert len(np.unique(found.values["gi"][0])) > 1
    assert found.spread()[1] < 1.5 * found.spread()[0]
    assert (found.seconds > 0).all()
    again = measure_sensitivity(network, digits, "noise", batches=(1, 4), repeats=6, magnitudes=[0, 0.3, 0.6])
    assert np.array_equal(found.values["pal"], again.values["pal"])
    by_default = measure_sensitivity(network, digits, repeats=2, magnitudes=2)
    assert by_default.batches.tolist() == [5, 10]  # 1,797 digits hold no 20 batches


def test_defaults_are_the_papers() -> None:
    """180 batches of 128, 20 draws, networks with 80% of their training set, a tenth of it augmented."""
    usual = {f: inspect.signature(f).parameters for f in (measure_response, judge_sensitivity, judge_invariance)}
    assert usual[measure_response]["examples"].default == 180 * 128
    assert (usual[judge_sensitivity]["repeats"].default, usual[judge_sensitivity]["batch"].default) == (20, 128)
    assert max(measurement.BATCHES) == 180
    assert usual[judge_invariance]["least_train_accuracy"].default == 0.8
    assert measurement.SHARE == 0.1


@pytest.fixture(scope="module")
def tiny_corpus(digits: tuple[np.ndarray, np.ndarray]) -> tuple[dict[str, nn.Module], ModelCorpus]:
    """Linear networks trained for longer and longer, whose gaps fall with the length."""
    x, y = torch.from_numpy(digits[0]) / 255, torch.from_numpy(digits[1])
    models: dict[str, nn.Module] = {}
    for seed in (0, 1):
        for steps in (4, 8, 32):
            torch.manual_seed(seed)
            linear = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
            models[f"{seed}, {steps}"] = trained(linear, x, y, steps)
    gap = np.array([0.3, 0.2, 0.22, 0.26, 0.29, 0.1])
    settings = {"seed": [0, 0, 0, 1, 1, 1], "long": [0, 0, 1, 0, 0, 1]}
    return models, ModelCorpus(tuple(models), settings, gap, {})


def test_sensitivity_of_a_corpus(
    digits: tuple[np.ndarray, np.ndarray], tiny_corpus: tuple[dict[str, nn.Module], ModelCorpus]
) -> None:
    models, corpus = tiny_corpus
    mode = "pgdl"
    asked: dict[str, Any] = {"batches": [1, 4], "repeats": 2, "magnitudes": [0, 0.3, 0.6], "rng": 5}
    found = judge_sensitivity(models, digits, corpus, "noise", mode=mode, **asked)
    # Model by model: each is measured on the same draws, then judged together.
    alone = [measure_sensitivity(models[name], digits, "noise", **asked) for name in corpus.models]
    for score, sign in (("gi", 1), ("pal", -1), ("mean_accuracy", -1)):
        for k, r in np.ndindex(2, 2):
            values = [one.values[score][k, r] for one in alone]
            wanted = cmi_score(values, corpus.gap, corpus.hyperparameters, mode, orientation=sign)
            assert found.values[score][k, r] == wanted
    # The largest number of batches is what a single curve with that seed is measured on.
    seed = int(np.random.default_rng(5).integers(2**62, size=2)[1])
    single = measure_response(models["1, 32"], digits, "noise", magnitudes=[0, 0.3, 0.6], examples=512, rng=seed)
    assert alone[-1].values["gi"][1, 1] == single.gi
    assert len(np.unique(found.values["gi"])) > 1
    frame = found.frame()
    assert frame["examples"].tolist() == [128, 512]
    assert frame["gi_sd"].tolist() == found.values["gi"].std(axis=1, ddof=1).tolist()
    assert "6 models, over 2 repeats" in found.sentences()
    assert found.plot().get_ylabel() == "CMI × 100 of the Gi-score"


def test_sensitivity_needs_a_corpus_of_the_models(
    digits: tuple[np.ndarray, np.ndarray], tiny_corpus: tuple[dict[str, nn.Module], ModelCorpus]
) -> None:
    models, corpus = tiny_corpus
    with pytest.raises(InputError, match="names of the corpus"):
        judge_sensitivity({"other": next(iter(models.values()))}, digits, corpus)
    with pytest.raises(InputError, match="layers is not known here"):
        judge_sensitivity(models, digits, corpus, layers=1)
    with pytest.raises(InputError, match=r"batches=.* of 128 need 25,600 examples, and there are 1,797"):
        judge_sensitivity(models, digits, corpus, batches=[200])
    parts = ModelCorpus(corpus.models, {}, corpus.gap, {}, tasks=np.repeat(["x", "y"], 3))
    with pytest.raises(InputError, match="has 2 tasks"):
        judge_sensitivity(models, digits, parts)


def test_a_dropped_token_becomes_the_mask_or_the_padding():
    seen = []

    def listener(x):
        seen.append(x)
        return x[:, 0] % 2

    x = torch.randint(1, 50, (64, 6), generator=torch.Generator().manual_seed(0))
    with pytest.raises(InputError, match="padding=… or mask=…"):
        measure_response(listener, (x, x[:, 0] % 2), "token-dropout")
    for option in ({"padding": 0}, {"mask": 77}):
        seen.clear()
        measure_response(listener, (x, x[:, 0] % 2), find_perturbation("token-dropout", **option), magnitudes=3)
        assert set(option.values()) < set(np.concatenate(seen).ravel().tolist())


def test_two_directions_have_the_unperturbed_example_in_their_middle():
    x = torch.rand(40, 1, 6, 6, generator=torch.Generator().manual_seed(0))
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(36, 2))
    with pytest.warns(CurvewiseWarning):
        curve = measure_response(model, (x, torch.arange(40) % 2), "shift-x", reading={"mean": 0.0, "std": 1.0})
    assert len(curve.magnitude) == 11
    assert curve.magnitude[5] == 0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda x: 255 * x, "divide them by 255"),
        (lambda x: x - 0.5, "pass the mean=… and std=…"),
        (lambda x: x[:, 0], "add the channel"),
        (lambda x: x.permute(0, 2, 3, 1), r"40 × 6 × 6 × 1, and looks like .* channels last.*permute\(0, 3, 1, 2\)"),
    ],
)
def test_images_in_another_form_are_told_what_to_do(change, said):
    x = change(torch.rand(40, 1, 6, 6, generator=torch.Generator().manual_seed(0)))
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(36, 2))
    with pytest.raises(InputError, match=said):
        measure_response(model, (x, torch.arange(40) % 2), "rotation")


def test_channels_last_are_named_in_place_of_a_shape_error_of_torch(digits):
    images, labels = digits
    last = np.ascontiguousarray(images.transpose(0, 2, 3, 1))[:60]
    for model in (small_cnn(), lambda x: np.zeros((len(x), 10))):
        with pytest.raises(InputError, match="channels last"):
            measure_response(model, (last, labels[:60]), "noise")
    # Mixing pixels does not depend on their order: only the network can tell.
    with pytest.raises(InputError, match="channels last"):
        measure_response(small_cnn(), (last, labels[:60]), "mixup-intra")


@pytest.mark.filterwarnings("ignore:.*The model is right on")
def test_one_model_and_several_perturbations_by_reliable_keys(digits):
    images, labels = digits
    data, few = (images[:80], labels[:80]), {"magnitudes": 3, "progress": False}
    one = measure_responses(small_cnn(), data, ["noise", "rotation"], **few)
    assert list(one) == ["noise", "rotation"]
    assert one["Sequential"]["noise"] is one["noise"]["Sequential"]
    assert list(one["Sequential"]) == ["noise", "rotation"]
    flat = measure_responses({"cnn": small_cnn()}, data, "noise", **few)
    assert flat["noise"]["cnn"] is flat["cnn"]
    np.testing.assert_array_equal(flat["cnn"].correct, one["noise"]["Sequential"].correct)
    with pytest.raises(KeyError, match=r"'mlp' is neither a model \('cnn'\) nor a perturbation \('noise'\)"):
        flat["mlp"]
    assert "mlp" not in flat
    with pytest.raises(InputError, match="give a model, or a mapping from names to models"):
        measure_responses([small_cnn()], data, "noise")


@pytest.mark.filterwarnings("ignore:.*The model is right on")
def test_rotation_over_the_usual_range_and_the_papers(digits):
    data = (digits[0][:40], digits[1][:40])
    assert measure_response(small_cnn(), data, "rotation").magnitude.tolist() == [*range(-30, 31, 6)]
    paper = measure_response(small_cnn(), data, "rotation", magnitudes="paper")
    assert paper.magnitude.tolist() == [*range(-180, 181, 36)]
    assert "magnitudes -180 to 180 (degrees counter-clockwise), 40 examples" in paper.sentences()
    with pytest.raises(InputError, match="magnitudes='all'"):
        measure_response(small_cnn(), data, "rotation", magnitudes="all")


@pytest.mark.filterwarnings("ignore:The model is right on")
def test_the_number_of_a_layer_is_not_confused_with_the_name_of_its_module():
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 2))
    curve = measure_response(model, (torch.rand(40, 4), torch.arange(40) % 2), "mixup-inter", layer=1)
    assert curve.layer == "2"
    assert "to mixup-inter at module '2', magnitudes" in curve.sentences()


@pytest.mark.parametrize("perturbation", ["mixup-intra", "mixup-inter"])
def test_the_seed_decides_the_partners_of_the_same_sample(perturbation):
    sample = draw_sample((torch.rand(40, 3), torch.arange(40) % 4), rng=0)
    drawn = [Trial.prepare(sample, perturbation, s).partners for s in (1, 1, 2)]
    assert np.array_equal(drawn[0], drawn[1])
    assert not np.array_equal(drawn[0], drawn[2])


def test_one_distance_from_zero_is_refused_before_anything_is_measured():
    def never(x):
        raise AssertionError("asked")

    x = np.zeros((8, 1, 4, 4), dtype=np.uint8)
    with pytest.raises(InputError, match="distance"):
        measure_response(never, (x, np.arange(8) % 2), "rotation", magnitudes=[-10, 10])


@pytest.mark.filterwarnings("ignore:.*right on:curvewise.CurvewiseWarning")
def test_several_perturbations_share_the_examples(digits):
    models = {"one": small_cnn(0), "two": small_cnn(1)}
    options: dict[str, Any] = {"magnitudes": [0, 0.1, 0.2], "examples": 200, "rng": 3}
    both = measure_responses(models, digits, ["noise", "cutout"], **options)
    assert list(both) == ["noise", "cutout"]
    for name, curves in both.items():
        alone = measure_responses(models, digits, name, **options)
        assert {m: c.correct.tolist() for m, c in curves.items()} == {m: c.correct.tolist() for m, c in alone.items()}
        assert all(curve.perturbation == name for curve in curves.values())
    shares: list[float] = []
    measure_responses(models, digits, ["noise", "cutout"], **options, progress=shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1)
    with pytest.raises(InputError, match="each once"):
        measure_responses(models, digits, ["noise", "noise"], **options)
