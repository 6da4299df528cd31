"""What the measures do not depend on, and what some of them do.

| measure   | order, names | rotation | scale | shift |
|-----------|--------------|----------|-------|-------|
| logme     | yes          | yes      | yes   | no    |
| h-score   | yes          | yes      | yes   | yes   |
| gbc       | yes          | yes      | yes   | yes   |
| transrate | yes          | yes      | no    | yes   |
| parc      | yes          | no       | yes   | yes   |
| knn       | yes          | yes      | yes   | yes   |

GBC with diagonal covariances turns with the features unless principal components are taken first;
kNN by cosine and PARC of features that are not standardised depend on the shift; TransRate with
unit_scale or of rows of norm 1 does not depend on the scale.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.ranking.distances import knn, parc
from curvewise.ranking.moments import gbc, h_score, logme, transrate

Measure = Callable[..., float]

MEASURES: dict[str, Measure] = {
    "logme": logme,
    "h-score": h_score,
    "h-score plain": partial(h_score, shrinkage=0),
    "gbc": gbc,
    "gbc diagonal": partial(gbc, covariance="diagonal", dims=3),
    "transrate": transrate,
    "transrate unit": partial(transrate, unit_scale=True),
    "transrate rows": partial(transrate, rows="unit"),
    "parc": parc,
    "parc plain": partial(parc, standardise=False),
    "knn": knn,
    "knn cosine": partial(knn, metric="cosine"),
}
TURNING = [name for name in MEASURES if not name.startswith("parc")]
SCALING = [name for name in MEASURES if name != "transrate"]
SHIFTING = [name for name in MEASURES if name not in ("logme", "parc plain", "knn cosine", "transrate rows")]

pytestmark = pytest.mark.filterwarnings("ignore::curvewise.errors.CurvewiseWarning")
seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=25, deadline=None)


def draw(seed: int) -> tuple[np.ndarray, np.ndarray, np.random.Generator]:
    """Features around class means, labels with at least three of each class, and more chance."""
    rng = np.random.default_rng(seed)
    n, d, classes = rng.integers(24, 60), rng.integers(4, 40), rng.integers(2, 6)
    rest = rng.integers(0, classes, n - 3 * classes)
    labels = rng.permutation(np.r_[np.arange(3 * classes) % classes, rest])
    means, wide = rng.standard_normal((classes, d)), np.exp(rng.standard_normal(d))
    return (rng.standard_normal((n, d)) + means[labels]) * wide, labels, rng


def same(one: float, other: float) -> None:
    assert np.isfinite(one)
    assert one == pytest.approx(other, rel=1e-7, abs=1e-9)


def rotation(rng: np.random.Generator, d: int) -> np.ndarray:
    return np.linalg.qr(rng.standard_normal((d, d)))[0]


@pytest.mark.parametrize("name", MEASURES)
@few
@given(seed=seeds)
def test_order_of_examples(name, seed):
    features, labels, rng = draw(seed)
    order = rng.permutation(len(labels))
    measure = MEASURES[name]
    same(measure(features[order], labels[order]), measure(features, labels))


@pytest.mark.parametrize("name", MEASURES)
@few
@given(seed=seeds)
def test_names_and_order_of_classes(name, seed):
    features, labels, rng = draw(seed)
    measure = MEASURES[name]
    score = measure(features, labels)
    numbers = rng.permutation(labels.max() + 1)
    same(measure(features, numbers[labels]), score)
    same(measure(features, 7 * numbers[labels] - 20), score)
    same(measure(features, np.array([f"class {c}" for c in numbers])[labels]), score)


@pytest.mark.parametrize("name", TURNING)
@few
@given(seed=seeds)
def test_rotation_of_features(name, seed):
    features, labels, rng = draw(seed)
    measure = MEASURES[name]
    turned = features @ rotation(rng, features.shape[1])
    same(measure(turned, labels), measure(features, labels))


@pytest.mark.parametrize("name", SCALING)
@few
@given(seed=seeds, power=st.integers(-6, 6))
def test_scale_of_features(name, seed, power):
    features, labels, _ = draw(seed)
    measure = MEASURES[name]
    same(measure(10.0**power * features, labels), measure(features, labels))


@pytest.mark.parametrize("name", SHIFTING)
@few
@given(seed=seeds)
def test_shift_of_features(name, seed):
    features, labels, rng = draw(seed)
    measure = MEASURES[name]
    moved = features + 10 * rng.standard_normal(features.shape[1])
    same(measure(moved, labels), measure(features, labels))


@few
@given(seed=seeds)
def test_plain_h_score_has_no_units_at_all(seed):
    """Any invertible linear map of more examples than features leaves it as it is."""
    features, labels, rng = draw(seed)
    features = features[:, :6]
    d = features.shape[1]
    mixed = features @ (rotation(rng, d) * rng.uniform(0.2, 5, d)) @ rotation(rng, d)
    same(h_score(mixed, labels, 0), h_score(features, labels, 0))


@few
@given(seed=seeds)
def test_adding_one_number_to_every_feature_leaves_parc(seed):
    features, labels, rng = draw(seed)
    moved = features + rng.standard_normal((len(labels), 1))
    same(parc(moved, labels, standardise=False), parc(features, labels, standardise=False))


@few
@given(seed=seeds)
def test_test_examples_in_any_order(seed):
    features, labels, rng = draw(seed)
    order = rng.permutation(len(labels))
    test = features + 0.1 * rng.standard_normal(features.shape)
    score = knn(features, labels, test_features=test, test_labels=labels)
    same(knn(features[order], labels[order], test_features=test[::-1], test_labels=labels[::-1]), score)


@few
@given(seed=seeds)
def test_every_example_twice(seed):
    """Moments count shares of examples, not how many there are."""
    features, labels, _ = draw(seed)
    for name in ("h-score plain", "gbc", "gbc diagonal", "transrate"):
        measure = MEASURES[name]
        same(measure(np.tile(features, (2, 1)), np.tile(labels, 2)), measure(features, labels))


def differs(measure: Measure, features: np.ndarray, other: np.ndarray, labels: np.ndarray) -> None:
    assert measure(other, labels) != pytest.approx(measure(features, labels), rel=1e-3, abs=1e-3)


def test_what_they_do_depend_on():
    features, labels, rng = draw(1)
    d = features.shape[1]
    moved = features + 10 * rng.standard_normal(d)
    turned = features @ rotation(rng, d)
    differs(logme, features, moved, labels)  # no intercept
    differs(parc, features, turned, labels)  # correlates over the axes
    differs(MEASURES["parc plain"], features, moved, labels)
    differs(MEASURES["transrate rows"], features, moved, labels)  # norms are from 0
    differs(transrate, features, 10 * features, labels)  # the distortion has a unit
    differs(MEASURES["knn cosine"], features, moved, labels)
    differs(partial(gbc, covariance="diagonal", dims=None), features, turned, labels)
    differs(h_score, features, features * np.exp(rng.standard_normal(d)), labels)  # the sphere has one


def test_the_small_print_is_warned_of():
    """Two classes with fewer examples than features: each of these says so."""
    features, labels = np.random.default_rng(0).standard_normal((20, 30)), np.arange(20) % 2
    for measure in (logme, transrate, partial(h_score, shrinkage=0), partial(parc, examples=5)):
        with pytest.warns(CurvewiseWarning):
            measure(features, labels)


@pytest.mark.parametrize("name", [name for name in MEASURES if not name.startswith("parc")])
@pytest.mark.parametrize("case", ["one", "one, two rows", "constant", "one of a class"])
def test_few_features_and_examples_give_numbers(name, case):
    """scipy.linalg.eigh(driver="evd") fails for one feature before scipy 1.14."""
    rng = np.random.default_rng(3)
    labels = np.arange(30) % 3
    features = rng.standard_normal((30, 1)) + labels[:, None]
    if case == "one, two rows":
        features, labels = features[:2], labels[:2]
    elif case == "constant":
        features = np.full((30, 2), 0.1)
    elif case == "one of a class":
        labels = (np.arange(30) == 7).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CurvewiseWarning)
        if name.startswith("knn") and len(labels) == 2:
            with pytest.raises(InputError, match="neighbours=5"):
                MEASURES[name](features, labels)
        else:
            assert np.isfinite(MEASURES[name](features, labels))


@pytest.mark.parametrize("name", MEASURES)
@pytest.mark.parametrize("scale", [1e200, 1e-200])
def test_values_whose_powers_overflow_are_refused(name, scale):
    x = scale * np.random.default_rng(4).standard_normal((30, 3))
    with pytest.raises(InputError, match="of the order of 1"):
        MEASURES[name](x, np.arange(30) % 3)
    with pytest.raises(InputError, match="it is empty"):
        MEASURES[name](x[:, :0], np.arange(30) % 3)
