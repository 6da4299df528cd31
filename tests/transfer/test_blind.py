"""The best constant for each loss, against other libraries, brute force and minimisers."""

from __future__ import annotations

import warnings
from itertools import permutations

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar
from scipy.stats import entropy, sem
from scipy.stats import t as student

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.transfer import constant as _blind_targets
from curvewise.transfer.blind import blind_guess
from curvewise.transfer.constant import angle, nearest_direction, streamed_median, to_unit, weighted_median


@pytest.fixture
def rng():
    return np.random.default_rng(4)


def test_classes_as_the_dummies_of_another_library(rng):
    dummy = pytest.importorskip("sklearn.dummy")
    metrics = pytest.importorskip("sklearn.metrics")
    train, test = (rng.choice(4, n, p=[0.1, 0.5, 0.2, 0.2]) for n in (300, 200))
    prior = dummy.DummyClassifier(strategy="prior").fit(np.zeros((300, 1)), train)
    empty = np.zeros((200, 1))
    got = blind_guess(train, "error", test_targets=test)
    assert got.prediction == prior.predict(empty)[0]
    assert got.risk.estimate == pytest.approx(1 - metrics.accuracy_score(test, prior.predict(empty)))
    got = blind_guess(train, "cross-entropy", test_targets=test)
    np.testing.assert_allclose(got.prediction, prior.class_prior_)
    expected = metrics.log_loss(test, prior.predict_proba(empty))
    assert got.risk.estimate == pytest.approx(expected)
    assert not got.in_sample
    assert got.trained_on == 300


def test_numbers_as_the_dummies_of_another_library(rng):
    dummy = pytest.importorskip("sklearn.dummy")
    metrics = pytest.importorskip("sklearn.metrics")
    train, test = rng.exponential(size=(101, 3)), rng.exponential(size=(50, 3))
    for loss, strategy, score in (
        ("l1", "median", metrics.mean_absolute_error),
        ("l2", "mean", metrics.mean_squared_error),
    ):
        other = dummy.DummyRegressor(strategy=strategy).fit(train, train)
        got = blind_guess(train, loss, test_targets=test)
        np.testing.assert_allclose(got.prediction, other.constant_.ravel())
        assert got.risk.estimate == pytest.approx(score(test, other.predict(test)))
        assert got.losses.shape == (50,)


def test_entropy_of_the_same_examples_and_text_labels():
    labels = ["cat"] * 6 + ["dog"] * 3 + ["eel"]
    with pytest.warns(CurvewiseWarning, match="few for the frequencies of 3 classes"):
        got = blind_guess(labels, "cross-entropy")
    assert got.risk.estimate == pytest.approx(entropy([0.6, 0.3, 0.1]))
    assert got.classes == ("cat", "dog", "eel")
    assert blind_guess(labels, "error").prediction == "cat"
    assert "'cat'" in blind_guess(labels, "error").summary()


@pytest.mark.parametrize("loss", ["l1", "l2"])
@pytest.mark.parametrize("average", ["example", "pixel"])
@pytest.mark.parametrize("per", ["all", "output", "pixel"])
def test_no_other_constant_has_a_lower_risk(rng, loss, average, per):
    """Minimised numerically, with elements missing, from the definition of the risk."""
    maps = rng.exponential(size=(12, 2, 2, 3)) + np.arange(2)[:, None, None]
    maps[rng.random(maps.shape) < 0.3] = np.nan
    maps[:2, 1] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CurvewiseWarning)
        got = blind_guess(maps, loss, per=per, axis=1, ignore=np.nan, average=average)
    power = 1 if loss == "l1" else 2

    def risk(constant):
        each = np.abs(maps - constant) ** power
        return np.nanmean(each) if average == "pixel" else _row_means(each).mean()

    shape = {"all": (), "output": (2, 1, 1), "pixel": (2, 2, 3)}[per]
    own = np.asarray(got.prediction).reshape(shape)
    assert got.risk.estimate == pytest.approx(risk(own))
    for index in np.ndindex(*shape):

        def moved(x, index=index):
            other = own.copy()
            other[index] = x
            return risk(other)

        best = minimize_scalar(moved, bounds=(0, 8), method="bounded").fun
        assert got.risk.estimate <= best + 1e-9


def _row_means(each):
    return np.nanmean(each.reshape(len(each), -1), axis=1)


def test_weights_of_missing_elements_in_classes():
    """Two images: one with one valid pixel of class 1, one with three of class 0."""
    maps = np.array([[[1, 255], [255, 255]], [[0, 0], [0, 255]], [[1, 1], [1, 0]]])
    every = blind_guess(maps, "error", ignore=255, average="pixel", classes=2)
    assert every.risk.estimate == pytest.approx(4 / 8)
    each = blind_guess(maps, "error", ignore=255, classes=2)
    assert each.prediction == 1
    assert each.risk.estimate == pytest.approx((0 + 1 + 1 / 4) / 3)
    mask = maps == 255
    same = blind_guess(maps, "error", ignore=mask)
    assert same.risk == each.risk
    assert same.left_out == 4


def test_class_for_every_pixel():
    maps = np.array([[0, 1, 2], [0, 1, 0], [1, 1, 0]] * 20)
    got = blind_guess(maps, "error", per="pixel")
    np.testing.assert_array_equal(got.prediction, [0, 1, 0])
    assert got.risk.estimate == pytest.approx((1 / 3 + 0 + 1 / 3) / 3)
    frequencies = blind_guess(maps, "cross-entropy", per="pixel").prediction
    assert frequencies.shape == (3, 3)
    np.testing.assert_allclose(frequencies[:, 0], [2 / 3, 1 / 3, 0])


def test_binary_labels(rng):
    labels = (rng.random((500, 3)) < [0.1, 0.6, 0.5]).astype(int)
    share = labels.mean(axis=0)
    got = blind_guess(labels, "binary")
    np.testing.assert_allclose(got.prediction, share)
    assert got.risk.estimate == pytest.approx(np.mean([entropy([p, 1 - p]) for p in share]))
    assert blind_guess(labels, "binary", per="all").prediction == pytest.approx(share.mean())
    wrong = blind_guess(labels, "binary-error")
    np.testing.assert_array_equal(wrong.prediction, share >= 0.5)
    assert wrong.risk.estimate == pytest.approx(np.minimum(share, 1 - share).mean())
    alone = blind_guess(labels[:, 0].astype(bool), "binary")
    assert alone.prediction == pytest.approx(share[0])


def _sphere(points):
    """Directions that lie evenly on a sphere."""
    i = np.arange(points) + 0.5
    z, turn = 1 - 2 * i / points, np.pi * (1 + 5**0.5) * i
    r = np.sqrt(1 - z**2)
    return np.stack([r * np.cos(turn), r * np.sin(turn), z], axis=1)


@pytest.mark.parametrize("case", ["around", "three walls", "opposite", "half the same"])
def test_direction_of_smallest_mean_angle_by_brute_force(rng, case):
    if case == "around":
        vectors = to_unit(rng.normal((0, 0, 1.5), size=(200, 3)))
    elif case == "three walls":
        vectors = to_unit(np.repeat(np.eye(3), [80, 70, 60], axis=0) + rng.normal(0, 0.05, (210, 3)))
    elif case == "opposite":
        vectors = to_unit(np.repeat([[1, 0, 0], [-1, 0, 0]], [60, 50], axis=0) + 0.1 * rng.normal(size=(110, 3)))
    else:
        vectors = np.concatenate([np.tile([0, 0.6, 0.8], (60, 1)), to_unit(rng.normal(size=(50, 3)))])
    got = blind_guess(vectors, "angular")

    def mean_angle(direction):
        u = direction / np.linalg.norm(direction)
        return np.degrees(np.arccos(np.clip(vectors @ u, -1, 1))).mean()

    grid = _sphere(20_000)
    coarse = np.degrees(np.arccos(np.clip(vectors @ grid.T, -1, 1))).mean(axis=0)
    starts = grid[np.argsort(coarse)[:3]]
    best = min(minimize(mean_angle, s, method="Nelder-Mead", options={"xatol": 1e-9}).fun for s in starts)
    assert got.risk.estimate <= min(best, coarse.min()) + 1e-5
    assert got.risk.estimate == pytest.approx(mean_angle(got.prediction), abs=1e-6)
    if case == "half the same":
        np.testing.assert_allclose(got.prediction, [0, 0.6, 0.8], atol=1e-5)


@pytest.mark.slow
def test_direction_for_every_pixel_and_zero_for_no_target(rng):
    normals = to_unit(rng.normal((0, 0.5, 1), size=(60, 2, 3, 3)))
    normals[rng.random((60, 2, 3)) < 0.2] = 0
    got = blind_guess(normals, "angular", per="pixel", axis=-1, ignore=0)
    assert got.prediction.shape == (2, 3, 3)
    share = (normals != 0).any(axis=-1)
    weight = share / share.reshape(60, -1).sum(axis=1)[:, None, None]
    for i, j in np.ndindex(2, 3):
        v, w = normals[:, i, j], weight[:, i, j]

        def total(u, v=v, w=w):
            return w @ angle(v, u / np.linalg.norm(u))

        best = min(minimize(total, s, method="Nelder-Mead").fun for s in _sphere(12))
        assert total(got.prediction[i, j]) <= best + 1e-6
    first = blind_guess(np.moveaxis(normals, -1, 1), "angular", per="pixel", axis=1, ignore=0)
    np.testing.assert_allclose(np.moveaxis(first.prediction, 0, -1), got.prediction)
    masked = blind_guess(normals, "angular", per="pixel", axis=-1, ignore=~share)
    assert masked.risk == got.risk


def test_cosine_is_minimised_by_the_mean_direction(rng):
    vectors = to_unit(rng.normal(size=(50, 4)) + 0.5)
    got = blind_guess(vectors, "cosine")
    assert got.risk.estimate == pytest.approx(1 - np.linalg.norm(vectors.mean(axis=0)))
    best = minimize(lambda u: 1 - (vectors @ u).mean() / np.linalg.norm(u), np.ones(4)).fun
    assert got.risk.estimate <= best + 1e-9


def test_several_directions_at_once_are_each_their_own(rng):
    vectors = to_unit(rng.normal(size=(40, 3, 3)) + np.eye(3))
    together = nearest_direction(vectors, np.ones((40, 3)))
    alone = [nearest_direction(vectors[:, [k]], np.ones((40, 1)))[0] for k in range(3)]
    np.testing.assert_allclose(together, alone, atol=1e-4)


@pytest.mark.parametrize("n", [1, 2, 7, 1000, 1001])
def test_streamed_median_is_the_median(rng, n):
    values = np.round(rng.standard_cauchy(n), 2) * 10.0 ** rng.integers(-20, 20)
    parts = np.array_split(values, 3)
    got = streamed_median(lambda: ((v, np.ones(len(v))) for v in parts))
    assert got == pytest.approx(np.median(values), rel=1e-15)
    weights = rng.random(n)
    cut = np.array_split(weights, 3)
    got = streamed_median(lambda: zip(parts, cut, strict=True))
    assert got == weighted_median(values[:, None], weights[:, None])[0]


@pytest.mark.parametrize("case", ["atom", "levels", "sorted", "weighted", "zeros", "period"])
def test_streamed_median_of_many_numbers(rng, case):
    """Most numbers the same, few values, an order, or every 61st unlike the rest."""
    n = 30_000
    values, weights = rng.normal(size=n), np.ones(n)
    if case == "atom":
        values[rng.random(n) < 0.7] = 0.25
    elif case == "levels":
        values = rng.integers(0, 256, n).astype(float)
    elif case == "sorted":
        values = np.sort(values)
    elif case == "period":
        values[::61] += 10
    elif case == "weighted":
        weights = rng.random(n) * (rng.random(n) < 0.5)
    else:
        weights = np.where(values > 0, weights, 0.0)
    cut = [np.split(a, [n // 2]) for a in (values, weights)]  # the 61st starts anew in each
    got = streamed_median(lambda: zip(*cut, strict=True))
    assert got == pytest.approx(weighted_median(values[:, None], weights[:, None])[0], abs=1e-15)


@pytest.mark.parametrize("axis", [1, -1], ids=["first", "last"])
def test_medians_of_channels(rng, axis):
    maps = rng.exponential(size=(30, 3, 4, 5))
    given = np.moveaxis(maps, 1, axis)
    np.testing.assert_allclose(blind_guess(given, "l1", axis=axis).prediction, np.median(maps, axis=(0, 2, 3)))


def test_streamed_median_of_equal_values_and_of_a_tie_across_bins():
    for values, median in (([2.0] * 9, 2.0), ([-1e9] * 4 + [1e9] * 4, 0.0), ([-0.0, 0.0], 0.0)):
        v = np.array(values)
        assert streamed_median(lambda v=v: iter([(v, np.ones(len(v)))])) == median


@pytest.mark.slow
def test_mapped_files_in_small_blocks_give_the_same(rng, tmp_path, monkeypatch):
    maps = rng.exponential(size=(40, 3, 6, 5)).astype(np.float32)
    np.save(tmp_path / "maps.npy", maps)
    mapped = np.load(tmp_path / "maps.npy", mmap_mode="r")
    vectors = maps.astype(float) - 0.5
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    cases = [(mapped, loss, per) for loss in ("l1", "l2") for per in ("all", "output", "pixel")]
    cases += [(vectors, "angular", "all"), (vectors, "angular", "pixel")]
    whole = [blind_guess(a, loss, per=per, axis=1) for a, loss, per in cases]
    monkeypatch.setattr(_blind_targets, "BLOCK", 100)
    for (array, loss, per), one in zip(cases, whole, strict=True):
        got = blind_guess(array, loss, per=per, axis=1)
        np.testing.assert_allclose(got.prediction, one.prediction, atol=1e-5)
        assert got.risk.estimate == pytest.approx(one.risk.estimate, rel=1e-9)


def test_interval_counts_examples_and_not_pixels(rng):
    level = rng.normal(size=(30, 1, 1))
    maps = np.broadcast_to(level, (30, 8, 8)).copy()
    got = blind_guess(maps, "l1", per="all")
    assert got.units == 30
    assert got.std == pytest.approx(sem(np.abs(level - np.median(level)).ravel()))


def test_groups_are_what_is_counted(rng):
    """Each target four times, in a group: as sure as with one of each."""
    once = rng.normal(size=40)
    one = blind_guess(np.zeros(3), "l2", test_targets=once)
    four = blind_guess(np.zeros(3), "l2", test_targets=np.repeat(once, 4), groups=np.repeat(np.arange(40), 4))
    assert four.risk.low == pytest.approx(one.risk.low)
    assert four.risk.high == pytest.approx(one.risk.high)
    assert four.std == pytest.approx(sem(once**2))
    assert (four.units, four.examples) == (40, 160)
    assert "160 examples in 40 groups" in four.summary()


def test_standard_error_by_another_library(rng):
    pytest.importorskip("statsmodels")
    import statsmodels.api as sm

    groups = rng.permutation(np.arange(90) % 10)  # of equal size: else its correction is cruder
    losses = rng.exponential(size=90) + 0.5 * groups
    got = blind_guess(losses, (lambda _, y: y, 0), groups=groups)
    fit = sm.OLS(losses, np.ones(90)).fit(cov_type="cluster", cov_kwds={"groups": groups})
    assert got.std == pytest.approx(fit.bse[0])  # its correction is that of one regressor


def test_interval_without_skewness_is_students():
    values = np.array([-3.0, -2, -1, 0, 1, 2, 3]) + 5
    got = blind_guess(values, (lambda _, y: y, 0), level=0.9)
    low, high = student.interval(0.9, 6, loc=5, scale=sem(values))
    assert tuple(got.risk)[1:] == pytest.approx((low, high))


def test_interval_of_an_error_is_wilsons():
    """Against the roots of (p̂ − p)² = t² p(1 − p)/n; in a sample n/(n − 1) is in the variance."""
    test = np.repeat([0, 1], [70, 30])
    got = blind_guess([0], "error", test_targets=test, classes=2)
    t2 = student.ppf(0.975, 99) ** 2
    n = 99
    roots = np.roots([1 + t2 / n, -(2 * 0.3 + t2 / n), 0.09])
    assert tuple(got.risk)[1:] == pytest.approx(tuple(sorted(roots)))


def test_control_carries_risk_error_and_source():
    got = blind_guess([1.0, 2.0, 6.0], "l1", test_targets=[2.0, 4.0, 3.0])
    control = got.control()
    assert (control.risk, control.std) == (got.risk.estimate, got.std)
    assert "l1" in control.source
    assert "3 test examples" in control.source
    assert not control.assumed


def test_targets_that_do_not_vary_say_so():
    with pytest.warns(CurvewiseWarning, match="nothing to learn"):
        got = blind_guess(["a"] * 5, "error")
    assert got.risk.estimate == 0
    assert got.risk.high > 0
    assert "nothing to learn" in got.warnings[0]
    with pytest.warns(CurvewiseWarning, match="nothing to learn"):
        assert blind_guess([2.0, 2.0], "l2").prediction == 2


@pytest.mark.parametrize("loss", ["l1", "l2", "angular", "cosine"])
def test_rounding_is_no_loss(loss):
    """0.1 ten times has a mean that is not 0.1, and the angle of a vector to itself is not 0."""
    vectors = np.tile(to_unit(np.array([0.1, 0.6, 0.8])), (10, 1))
    targets = [0.1] * 10 if loss in ("l1", "l2") else vectors.astype(np.float32)
    with pytest.warns(CurvewiseWarning, match="nothing to learn"):
        assert blind_guess(targets, loss).risk.estimate < 1e-4


def test_one_class_leaves_room_for_another():
    """With a chance of 1 in 40, ten draws miss a class of share 0.31."""
    with pytest.warns(CurvewiseWarning, match="nothing to learn"):
        got = blind_guess([1] * 10, "cross-entropy")
    share = 1 - 0.025**0.1
    assert tuple(got.risk)[1:] == pytest.approx((0, entropy([share, 1 - share])))


def test_one_example_has_no_interval():
    with pytest.warns(CurvewiseWarning, match="no interval"):
        got = blind_guess([1.0, 2.0], "l2", test_targets=[0.0])
    assert np.isnan(got.risk.low)
    assert np.isnan(got.control().std)


@pytest.mark.parametrize(
    ("targets", "loss"), [([0.0, 2.0], "l1"), ([0.0, 2.0], "l2"), ([[1.0, 0.0], [0.0, 1.0]], "angular")]
)
def test_two_examples_have_no_spread_around_their_own_constant(targets, loss):
    with pytest.warns(CurvewiseWarning, match="two examples"):
        got = blind_guess(targets, loss)
    assert np.isnan([got.risk.low, got.risk.high, got.std]).all()
    with pytest.warns(CurvewiseWarning, match="makes its risk low by about 1/3"):
        assert np.isfinite(blind_guess([[0.0, 1.0], [2.0, 5.0], [3.0, 3.0]], "l1", per="pixel").risk.width)


def test_classes_never_seen_need_smoothing():
    with pytest.raises(InputError, match=r"never have.*smoothing=1 .*blind=cw.transfer.blind_guess\("):
        blind_guess([0, 0, 1], "cross-entropy", test_targets=[0, 2])
    got = blind_guess([0, 0, 1], "cross-entropy", test_targets=[0, 2], smoothing=1)
    np.testing.assert_allclose(got.prediction, [3 / 6, 2 / 6, 1 / 6])
    with pytest.raises(InputError, match="smoothing=1"):
        blind_guess([[0, 1], [0, 0]], "binary", test_targets=[[1, 1]])
    got = blind_guess([[0, 1], [0, 0]], "binary", test_targets=[[1, 1], [0, 0]], smoothing=1)
    np.testing.assert_allclose(got.prediction, [1 / 4, 2 / 4])
    assert blind_guess([0, 0, 1], "error", test_targets=[0, 2]).risk.estimate == 0.5


def test_examples_without_any_target_are_left_out():
    values = np.array([[1.0, 3.0], [np.nan, np.nan], [2.0, np.nan], [2.0, 5.0]])
    with pytest.warns(CurvewiseWarning, match="1 example"):
        got = blind_guess(values, "l2", ignore=np.nan, per="all")
    assert got.examples == 3
    assert np.isnan(got.losses[1])


def test_masks_of_both_sets_are_a_pair():
    train, test = np.array([[1.0, 3.0], [2.0, 9.0]]), np.array([[4.0, 9.0], [0.0, 1.0]])
    masks = train == 9, test == 9
    got = blind_guess(train, "l2", test_targets=test, ignore=masks)
    assert got.to_dict() == blind_guess(train, "l2", test_targets=test, ignore=9).to_dict()
    # The only element of the second example weighs as much as both of the first.
    assert got.prediction.tolist() == pytest.approx([5 / 3, 3.0])


def test_a_pixel_without_constant_is_told():
    train = np.array([[1.0, np.nan], [2.0, np.nan]])
    with pytest.raises(InputError, match="no constant for them"):
        blind_guess(train, "l1", per="pixel", ignore=np.nan, test_targets=[[1.0, 2.0]])


def test_result_is_a_result(rng):
    got = blind_guess(rng.normal(size=(50, 2)), "l2")
    assert got.to_dict()["type"] == "BlindGuess"
    assert "losses" not in got.to_dict()
    assert got.columns()["estimate"] == [got.risk.estimate]
    assert "the same that it was found on" in got.summary()


NORMAL = [[0.0, 0.0, 1.0], [0.0, 1.0, 0.0]]

BAD = {
    "empty": (([], "l1"), {}, "empty"),
    "single": ((3, "l1"), {}, "single value"),
    "ragged": (([[1], [1, 2]], "l1"), {}, "row for each example"),
    "nan": (([1.0, np.nan], "l2"), {}, "ignore=np.nan"),
    "inf": (([1.0, np.inf], "l2"), {}, "inf"),
    "text": ((["a", "b"], "l1"), {}, "needs numbers"),
    "dates": ((np.array(["2020-01-01"], "M8[D]"), "error"), {}, "numbers or text as class labels"),
    "mixed": ((np.array(["a", 1], dtype=object), "error"), {}, "mixes int, str"),
    "unknown": (([0, 1], "l3"), {}, "is not known: use one of"),
    "alias": (([0, 1], "MSE"), {}, "Did you mean 'l2'"),
    "case": (([0, 1], "Cross_Entropy"), {}, "Did you mean 'cross-entropy'"),
    "fractions": (([0.5, 1.5], "error"), {}, "whole number"),
    "one-hot": ((np.eye(3, dtype=int), "error"), {}, "indicator"),
    "range": (([0, 1, 7], "error"), {"classes": 3}, "holds 7"),
    "names": ((["a", "b"], "error"), {"classes": ["a", "c"]}, "holds 'b'"),
    "nan class": (([0, 1], "error"), {"classes": [0, 1, np.nan]}, "names or numbers"),
    "no classes": (([0, 1], "error"), {"classes": 0}, "at least 1"),
    "classes": (([0.0, 1.0], "l1"), {"classes": 2}, "no meaning"),
    "smoothing": (([0.0, 1.0], "l1"), {"smoothing": 1}, "for cross-entropies"),
    "below": (([0, 1], "cross-entropy"), {"smoothing": -1}, "0 or more"),
    "binary": (([0, 1, 2], "binary"), {}, "0 or 1"),
    "length": (([[0.0, 0.0, 2.0], [0.0, 1.0, 0.0]], "angular"), {}, "length 2, not 1"),
    "zero": (([[0.0, 0.0, 0.0], [0.0, 1.0, 0.0]], "angular"), {}, "ignore=0"),
    "flat": (([0.0, 1.0], "angular"), {}, "a vector for each"),
    "channels": ((np.zeros((2, 3, 4, 4)), "l1"), {}, "axis=1 or axis=-1"),
    "axis": ((np.zeros((2, 3)), "l1"), {"axis": 2}, "axis=2: is none"),
    "examples": ((np.zeros((2, 3)), "l1"), {"axis": 0}, "holds the examples"),
    "label axis": (([0, 1], "error"), {"axis": 1}, "no channels"),
    "per": (([0.0, 1.0], "l1"), {"per": "image"}, "per='image'"),
    "average": (([0.0, 1.0], "l1"), {"average": "all"}, "average='all'"),
    "shapes": (([[0.0, 1.0]], "l1"), {"test_targets": [[1.0]]}, "must agree"),
    "mask": (([0.0, 1.0], "l1"), {"ignore": np.array([True])}, "mask of shape"),
    "mask type": (([0.0, 1.0], "l1"), {"ignore": np.array([1, 0])}, "must be of bool"),
    "all masked": (([0.0, 1.0], "l1"), {"ignore": np.array([True, True])}, "nothing but"),
    "masked array": ((np.ma.array([1, 2], mask=[0, 1]), "l1"), {}, "its mask as ignore="),
    "one mask": (
        ([0.0, 1.0], "l1"),
        {"ignore": np.array([True, False]), "test_targets": [1.0]},
        "ignore is a mask.* pair",
    ),
    "no test": (([0.0, 1.0], "l1"), {"ignore": (0, 0)}, "without test_targets"),
    "groups": (([0.0, 1.0], "l1"), {"groups": [1]}, "groups has shape"),
    "no group": (([0.0, 1.0], "l1"), {"groups": ["a", None]}, "no value .* for 1 of 2"),
    "nan group": (([0.0, 1.0], "l1"), {"groups": [np.nan, 1]}, "no value .* for 1 of 2"),
    "level": (([0.0, 1.0], "l1"), {"level": 95}, "level=95"),
    "prediction": (([0.0, 1.0], ("l1", 0)), {}, "pair of a function"),
    "missing": (([0.0, 1.0], abs), {}, "pair of a function"),
    "mean": (([0.0, 1.0], (lambda _, y: y.mean(), 0)), {}, "of each example"),
    "ignored number": ((["a", "b"], "error"), {"ignore": 255}, "holds text"),
    "ignored text": (([0, 1], "error"), {"ignore": "void"}, "holds numbers"),
    "own": (([0.0], (lambda _, y: y, 0)), {"ignore": 0}, "^ignore cannot"),
    "kinds": ((["a", "b"], "error"), {"test_targets": [0, 1]}, "both text"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_used_is_told(case):
    arguments, options, message = BAD[case]
    with pytest.raises(InputError, match=message):
        blind_guess(*arguments, **options)


def test_a_loss_of_ones_own(rng):
    values = rng.normal(size=100)
    got = blind_guess(values, (lambda p, y: np.maximum(0, np.abs(y - p) - 0.1), 0.2))
    assert got.risk.estimate == pytest.approx(np.maximum(0, np.abs(values - 0.2) - 0.1).mean())
    assert got.prediction == 0.2
    low, high = student.interval(0.95, 99, loc=-values.mean(), scale=sem(values))
    below = blind_guess(values, (lambda _, y: -y, 0)).risk
    assert (below.low, below.high) == pytest.approx((low, high), abs=0.01)  # but for its skewness


def _covered(rng, draw, loss, truth, draws=400, **options):
    inside = 0
    for _ in range(draws):
        inside += truth in blind_guess(draw(rng), loss, **options).risk
    return inside / draws


SIMULATED = {
    # On the examples the constant is from, truth is the risk of the best constant there is.
    "l1": (lambda r: r.normal(size=50), "l1", np.sqrt(2 / np.pi)),
    "l2": (lambda r: r.exponential(size=200), "l2", 1.0),
    "error": (lambda r: r.choice(3, 100, p=[0.6, 0.3, 0.1]), "error", 0.4),
    "balanced": (lambda r: r.integers(0, 20, 300), "error", 0.95),
    "entropy": (lambda r: r.choice(3, 100, p=[0.6, 0.3, 0.1]), "cross-entropy", entropy([0.6, 0.3, 0.1])),
    "flat entropy": (lambda r: r.random(100) < 0.42, "binary", entropy([0.42, 0.58])),
    "labels": (lambda r: r.random((100, 8)) < 0.5, "binary-error", 0.5),
    "pixels": (lambda r: r.integers(0, 4, (60, 12)), "error", 0.75),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", SIMULATED)
def test_intervals_cover_a_known_truth(rng, case):
    draw, loss, truth = SIMULATED[case]
    share = _covered(rng, draw, loss, truth, per="pixel" if case == "pixels" else "output")
    assert share >= 0.92  # two to three standard errors of 400 draws below 0.95
    if case not in ("flat entropy", "labels", "pixels"):  # where the ends are safe ones
        assert share <= 0.995


def test_grouped_intervals_cover_where_examples_alone_do_not(rng):
    """Ten frames of each of 40 videos that share most of what is in them."""
    groups = np.repeat(np.arange(40), 10)
    inside = alone = 0
    for _ in range(300):
        values = np.repeat(rng.normal(size=40), 10) + 0.3 * rng.normal(size=400)
        inside += 1.09 in blind_guess(values, "l2", groups=groups).risk
        alone += 1.09 in blind_guess(values, "l2").risk
    assert inside / 300 >= 0.9
    assert alone / 300 <= 0.7


def test_a_loss_that_is_infinite_is_not_about_classes() -> None:
    with pytest.raises(InputError, match="so large that the loss of 2"):
        blind_guess([1e300, -1e300, 0.0], "l2")


@pytest.mark.filterwarnings("ignore::curvewise.errors.CurvewiseWarning")
def test_classes_that_are_equally_frequent_but_for_rounding() -> None:
    """Two examples of zeros and two of ones, of 2, 7, 7 and 6 elements: half each, in any order of the examples."""
    targets = np.full((4, 7), -1)
    for row, (value, count) in zip(targets, [(1, 2), (0, 7), (1, 7), (0, 6)], strict=True):
        row[:count] = value
    found = {}
    for loss in ("error", "binary-error"):
        options = {"per": "all", "ignore": -1, "classes": 2 if loss == "error" else None}
        orders = list(permutations(range(4)))
        found[loss] = {
            blind_guess(targets[[*order]], loss, test_targets=[[0]], **options).prediction for order in orders
        }
    assert found == {"error": {0}, "binary-error": {1}}


def test_a_level_is_written_as_it_is() -> None:
    assert "99.5% interval" in blind_guess([0, 0, 1, 0], "error", level=0.995).sentences()
