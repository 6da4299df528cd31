"""Evaluation sets: the test set, other data with its classes matched, and perturbed copies."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from curvewise.errors import InputError
from curvewise.nn.training import Training
from curvewise.response.networks.perturbations import draw_magnitudes, perturb
from curvewise.study.data.dataset import Dataset
from curvewise.study.spec.design import Learner
from curvewise.study.spec.evaluation import Evaluation
from curvewise.study.study import Study

RNG = np.random.default_rng(3)
LEARNERS = {"svm": Learner(estimator="sklearn.svm:SVC")}


def images(n: int = 40, classes: tuple[str, ...] = ("cat", "dog"), seed: int = 0) -> Dataset:
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 256, (n, 3, 6, 6), dtype=np.uint8)
    return Dataset(x, np.arange(n) % len(classes), classes=classes)


def study(data: Dataset, seed: int = 0, folder: Path = Path(), **evaluate: Evaluation) -> Study:
    return Study(data, LEARNERS, evaluate=evaluate, seed=seed, folder=folder)


def test_the_test_set_comes_first_and_the_others_in_order() -> None:
    sets = study(images(), z=Evaluation(images(10, seed=1)), a=Evaluation(images(12, seed=2))).evaluation_sets
    assert list(sets) == ["test", "z", "a"]
    assert [len(s.y) for s in sets.values()] == [8, 10, 12]


def test_other_data_is_normalised_as_the_training_data_and_its_test_part_taken() -> None:
    parts = images(10, seed=1), images(6, seed=2)
    other = Dataset(parts[0].x, parts[0].y, parts[1].x, parts[1].y, classes=("cat", "dog"))
    sets = study(images(), other=Evaluation(other)).evaluation_sets
    assert np.array_equal(sets["other"].x, parts[1].x)
    assert sets["other"].mean == sets["test"].mean
    assert sets["other"].classes == 2


def test_classes_are_matched_by_name() -> None:
    other = Dataset(images(6).x, np.array([0, 1, 2, 0, 1, 2]), classes=("dog", "bird", "cat"))
    own = images(40, ("bird", "cat", "dog"))
    found = study(own, other=Evaluation(other)).evaluation_sets["other"].y
    assert found.tolist() == [2, 0, 1, 2, 0, 1]


def test_classes_that_are_only_numbers_are_matched_by_number() -> None:
    numbers = Dataset(images(4).x, np.array([1, 0, 1, 1]))
    found = study(images(), other=Evaluation(numbers)).evaluation_sets["other"].y
    assert found.tolist() == [1, 0, 1, 1]


def test_numbers_that_are_sorted_as_texts_are_matched_by_number() -> None:
    """Folders of ImageNet-V2 are called 0 to 999, and "10" stands before "2"."""
    names = tuple(f"n{i:02d}" for i in range(12))
    texts = tuple(sorted(map(str, range(12))))
    y = np.arange(12)
    there = Dataset(images(12).x, y, classes=texts)
    found = study(images(36, names), other=Evaluation(there)).evaluation_sets["other"].y
    assert found.tolist() == [int(texts[i]) for i in y]
    found = study(images(36, texts), other=Evaluation(Dataset(images(12).x, y, classes=names))).evaluation_sets
    assert [int(texts[i]) for i in found["other"].y] == y.tolist()


def test_names_that_stand_for_two_classes_do_not_tell_them_apart() -> None:
    names = ("crane", "dog", "crane")  # the bird and the machine
    own, other = images(30, names), images(9, names, seed=1)
    assert study(own, other=Evaluation(other)).evaluation_sets["other"].y.tolist() == other.y.tolist()
    with pytest.raises(InputError, match=r"evaluate\.other cannot be matched .* the study has several .*'crane'"):
        _ = study(own, other=Evaluation(images(9, ("dog", "crane"), seed=1))).evaluation_sets


def test_names_that_nothing_uses_do_not_matter_and_unknown_classes_do() -> None:
    unused = Dataset(images(4).x, np.array([0, 0, 1, 1]), classes=("dog", "cat", "bird"))
    found = study(images(), other=Evaluation(unused)).evaluation_sets["other"].y
    assert found.tolist() == [1, 1, 0, 0]
    with pytest.raises(InputError, match=r"evaluate.other has classes .*'bird'"):
        _ = study(images(), other=Evaluation(images(6, ("cat", "dog", "bird")))).evaluation_sets
    numbers = Dataset(images(4).x, np.array([0, 1, 2, 3]))
    with pytest.raises(InputError, match="classes that the study does not"):
        _ = study(images(), other=Evaluation(numbers)).evaluation_sets


def test_data_may_be_named_as_in_a_study_file(tmp_path: Path) -> None:
    np.savez(tmp_path / "shifted.npz", x=images(6).x, y=np.array(["dog", "cat"] * 3))
    found = study(images(), folder=tmp_path, shifted=Evaluation({"path": "shifted.npz"})).evaluation_sets
    assert found["shifted"].y.tolist() == [1, 0] * 3


def test_perturbed_copies_depend_on_the_seed_and_share_their_noise() -> None:
    def made(seed: int) -> dict[str, np.ndarray]:
        weak, strong = Evaluation(None, "noise", 0.05), Evaluation(None, "noise", 0.1)
        sets = study(grey(), seed=seed, weak=weak, strong=strong).evaluation_sets
        assert np.array_equal(sets["weak"].y, sets["test"].y)
        return {k: s.x.astype(float) - 128 for k, s in sets.items()}

    def grey() -> Dataset:
        return Dataset(np.full((40, 1, 6, 6), 128, np.uint8), np.arange(40) % 2)

    first, again, other = made(1), made(1), made(2)
    assert np.array_equal(first["weak"], again["weak"])
    assert not np.array_equal(first["weak"], other["weak"])
    assert np.corrcoef(first["weak"].ravel(), first["strong"].ravel())[0, 1] > 0.99
    assert np.abs(first["strong"]).sum() > 1.8 * np.abs(first["weak"]).sum()


def test_a_rotated_copy_is_the_test_set_rotated_and_other_data_can_be_too() -> None:
    other = images(10, seed=4)
    sets = study(
        images(), turned=Evaluation(None, "rotation", 30), both=Evaluation(other, "rotation", -30.0)
    ).evaluation_sets
    assert np.array_equal(sets["turned"].x, perturb(sets["test"].x, "rotation", 30.0))
    assert np.array_equal(sets["both"].x, perturb(other.x, "rotation", -30.0))


def test_a_range_draws_a_magnitude_for_each_example() -> None:
    flat = Dataset(np.full((2000, 1, 4, 4), 100, np.uint8), np.arange(2000) % 2)

    def drawn(seed: int, low: float, high: float) -> np.ndarray:
        evaluation = Evaluation(None, "brightness", (low, high))
        x = study(flat, seed, some=evaluation).evaluation_sets["some"].x
        assert (x == x[:, :, :1, :1]).all()
        return x[:, 0, 0, 0] / 100 - 1

    first = drawn(1, -0.5, 0.5)
    assert stats.kstest(first, "uniform", (-0.5, 1)).pvalue > 0.001
    assert np.array_equal(first, drawn(1, -0.5, 0.5))
    other = drawn(2, -0.5, 0.5)
    assert abs(np.corrcoef(first, other)[0, 1]) < 0.2
    np.testing.assert_allclose(drawn(1, 0, 1), first + 0.5, atol=0.011)  # two roundings


def test_each_example_of_a_range_is_perturbed_by_its_own_magnitude() -> None:
    wide = Evaluation(None, "noise", [-0.2, 0.2])
    sets = study(images(200), seed=3, wide=wide).evaluation_sets
    once = np.random.SeedSequence([3, zlib.crc32(b"noise")]).generate_state(2)
    magnitudes = draw_magnitudes(-0.2, 0.2, 40, int(once[1]))
    assert len(set(magnitudes)) == 40
    for i, magnitude in enumerate(magnitudes):
        whole = perturb(sets["test"].x, "noise", float(magnitude), int(once[0]))
        assert np.array_equal(sets["wide"].x[i], whole[i])


@pytest.mark.parametrize(
    ("evaluation", "message"),
    [
        (Evaluation(None, "rotaton", 30.0), "evaluate.other: .*Did you mean 'rotation'"),
        (Evaluation(None, "rotation", 400.0), "evaluate.other: magnitude=400.0"),
        (Evaluation(None, "rotation", (-10, 400)), "evaluate.other: magnitude=400 of 'rotation'"),
        (Evaluation(None, "mixup-intra", 0.3), "evaluate.other: .*mixes examples in pairs"),
        (Evaluation(None, "token-dropout", 0.3), "evaluate.other: .* is for tokens"),
        (Evaluation({"name": "digits"}), r"inputs of shape \(1, 8, 8\), the study's data \(3"),
        (Evaluation("nowhere.npz"), "nowhere.npz"),
    ],
)
def test_what_does_not_fit_is_said(evaluation: Evaluation, message: str) -> None:
    with pytest.raises(InputError, match=message):
        _ = study(images(), other=evaluation).evaluation_sets


def test_a_wrong_perturbation_is_found_before_other_data_is_loaded() -> None:
    sets = {"far": Evaluation("nowhere.npz"), "wrong": Evaluation(None, "hew", 0.1)}
    with pytest.raises(InputError, match=r"evaluate.wrong: .*hue"):
        _ = study(images(), **sets).evaluation_sets


FEATURES = Dataset(RNG.random((20, 5)).astype(np.float32), np.arange(20) % 2)
TOKENS = Dataset(RNG.integers(1, 9, (20, 5)), np.arange(20) % 2, padding=0)


def test_tables_and_texts_have_perturbations_of_their_own() -> None:
    noisy = Evaluation(None, "feature-noise", 0.5)
    sets = study(FEATURES, noisy=noisy).evaluation_sets
    moved = (sets["noisy"].x - sets["test"].x) / (0.5 * sets["test"].x.std(axis=0))
    assert 0.5 < moved.std() < 1.5
    sets = study(TOKENS, gone=Evaluation(None, "token-dropout", 0.4)).evaluation_sets
    gone = sets["gone"].x == 0
    assert (gone.sum(axis=1) == 2).all()
    assert np.array_equal(sets["gone"].x[~gone], sets["test"].x[~gone])


def test_perturbations_are_for_their_kind_of_data_and_tokens_are_not_features() -> None:
    with pytest.raises(InputError, match=r"evaluate.other: .*is for images"):
        _ = study(FEATURES, other=Evaluation(None, "noise", 0.1)).evaluation_sets
    with pytest.raises(InputError, match="holds tokens, the study's data features"):
        _ = study(FEATURES, other=Evaluation(TOKENS)).evaluation_sets
    unpadded = Dataset(TOKENS.x, TOKENS.y)
    with pytest.raises(InputError, match="padding token None"):
        _ = study(TOKENS, other=Evaluation(unpadded)).evaluation_sets
    with pytest.raises(InputError, match=r"evaluate.gone: .*which token is the padding"):
        _ = study(unpadded, gone=Evaluation(None, "token-dropout", 0.4)).evaluation_sets


def test_classes_that_only_one_side_groups_are_not_matched_by_number() -> None:
    plain = Dataset(RNG.normal(size=(90, 3)), np.repeat([0, 1, 2], 30))
    joined = plain.grouped([0, 0, 1])
    few = Dataset(RNG.normal(size=(20, 3)), np.repeat([0, 1], 10))
    for own, other in ((joined, plain), (joined, few), (plain, joined)):
        with pytest.raises(InputError, match=r"evaluate.o has the classes.*'0[+]1' is a group. Group both alike"):
            _ = study(own, o=Evaluation(other)).evaluation_sets
    assert study(joined, o=Evaluation(joined)).evaluation_sets["o"].y.tolist() == [0] * 60 + [1] * 30


def test_views_are_for_networks_and_images() -> None:
    network = {"net": Learner(Training("cnn"))}
    views = {"averaged": Evaluation(views=["mirror", "shift:2"]), "same": Evaluation()}
    sets = Study(images(), network, evaluate=views).evaluation_sets
    assert sets["averaged"].views == ("mirror", "shift:2")
    assert sets["same"].views == ()
    digests = Study(images(), network, evaluate=views).label_digests()
    assert digests["test"] == digests["same"] != digests["averaged"]
    assert Evaluation(views="mirror").views == ("mirror",)
    with pytest.raises(InputError, match=r"evaluate\.averaged\.views=.*is for networks, and 'svm' predict"):
        assert study(images(), averaged=Evaluation(views=["mirror"])).evaluation_sets
    with pytest.raises(InputError, match=r"evaluate\.v: views='shift:6': Give a whole number from 1 to 5"):
        assert Study(images(), network, evaluate={"v": Evaluation(views=["shift:6"])}).evaluation_sets
    table = Dataset(RNG.normal(size=(40, 5)).astype(np.float32), np.arange(40) % 2)
    with pytest.raises(InputError, match=r"evaluate\.v: views=\['mirror'\]: for images"):
        assert Study(table, network, evaluate={"v": Evaluation(views=["mirror"])}).evaluation_sets
    with pytest.raises(InputError, match="give a list of words"):
        Evaluation(views=[1])  # type: ignore[list-item]
    pictures = Dataset(images().x, images().x.astype(np.float32), targets="numbers")
    with pytest.raises(InputError, match="the targets are images"):
        assert Study(
            pictures, {"u": Learner(Training("unet"))}, evaluate={"v": Evaluation(views=["mirror"])}
        ).evaluation_sets
