"""Learning curves of estimators: right, reproducible, resumable, honest about failures."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import warnings
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_diabetes, load_digits
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import accuracy_score, f1_score, make_scorer, mean_absolute_error, r2_score, zero_one_loss
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from curvewise.errors import CurvewiseError, CurvewiseWarning, InputError, MissingDependencyError
from curvewise.learning.load import load_measurements
from curvewise.learning.partition import partition_training_set
from curvewise.store.read import list_runs, read_run
from curvewise.study import measure_learning_curve

DIGITS, CLASSES = load_digits(return_X_y=True)
SMALL = (DIGITS[:400], CLASSES[:400])
TRAIN, TEST = (DIGITS[:1200], CLASSES[:1200]), (DIGITS[1200:], CLASSES[1200:])


def same(a, b) -> bool:
    """Whether two Measurements agree in everything but the time it took."""
    np.testing.assert_array_equal(a.error, b.error)
    np.testing.assert_array_equal(a.n, b.n)
    assert a.learner.tolist() == b.learner.tolist()
    assert a.notes == b.notes
    assert a.unit == b.unit
    for label in ("fold", "seed", "status"):
        assert a.labels[label].tolist() == b.labels[label].tolist()
    return True


class Counting(ClassifierMixin, BaseEstimator):
    """Predicts the commonest class; counts its fits and fails where it should."""

    fits = 0

    def __init__(self, fail_at=None, answer="raise", random_state=None):
        self.fail_at = fail_at
        self.answer = answer
        self.random_state = random_state

    def fit(self, X, y):
        type(self).fits += 1
        if len(y) == self.fail_at and self.answer == "raise":
            raise ValueError("too much for me")
        if len(y) == self.fail_at and self.answer == "warn":
            warnings.warn(f"fit {type(self).fits} is shaky", RuntimeWarning, stacklevel=1)
        self.classes_ = np.unique(y)
        self.common_ = np.bincount(y).argmax()
        return self

    def predict(self, X):
        return np.full(len(X), self.common_)


@pytest.fixture(autouse=True)
def _no_fits_yet():
    Counting.fits = 0


@pytest.mark.parametrize("unit", ["fraction", "percent"])
def test_one_run_equals_fitting_by_hand(unit):
    model = make_pipeline(StandardScaler(), RandomForestClassifier(5))
    m = measure_learning_curve(model, *TRAIN, sizes=[300], folds=1, test=TEST, unit=unit, rng=4)
    (subset,) = partition_training_set(TRAIN[1], [300], 1, rng=4)
    by_hand = clone(model).set_params(randomforestclassifier__random_state=m.labels["seed"][0])
    by_hand.fit(TRAIN[0][subset.indices], TRAIN[1][subset.indices])
    wrong = 1 - accuracy_score(TEST[1], by_hand.predict(TEST[0]))
    assert m.error[0] == pytest.approx(wrong * (100 if unit == "percent" else 1), abs=1e-12)
    assert m.learners == ("StandardScaler + RandomForestClassifier",)
    assert (m.unit.name, m.n[0], m.labels["status"][0]) == (unit, 300, "done")


def test_the_hold_out_is_apart_from_the_training_part(tmp_path):
    class Memory(DummyClassifier):
        def fit(self, X, y):
            self.seen_ = set(np.ravel(X))
            return super().fit(X, y)

        def predict(self, X):
            assert not self.seen_ & set(np.ravel(X))
            return super().predict(X)

    X = np.arange(100)[:, None]
    m = measure_learning_curve(Memory(), X, [0, 1] * 50, store=tmp_path)
    assert m.n.tolist() == [5] * 16 + [10] * 8 + [20] * 4 + [40] * 2 + [80]
    assert m.notes == ("Measured on 20 held-out examples of 100.",)
    assert np.allclose(m.error, 0.5)  # the test set is stratified
    assert {len(read_run(r.path).predictions) for r in list_runs(tmp_path)} == {20}


def test_a_store_of_estimators_is_read_by_the_name_of_the_learner(tmp_path):
    measured = measure_learning_curve(Counting(), *SMALL, sizes=[20, 30], folds=2, store=tmp_path)
    read = load_measurements(tmp_path)
    assert read.learners == measured.learners
    assert sorted(read.error.tolist()) == sorted(measured.error.tolist())


def test_results_do_not_depend_on_the_number_of_processes():
    learners = {
        "tree": DecisionTreeClassifier(),
        "forest": make_pipeline(MinMaxScaler(copy=False), RandomForestClassifier(5, n_jobs=1)),
    }
    options = {"sizes": [50, 100, 0.5 * 640], "folds": [4, 2, 1], "rng": 2}
    one = measure_learning_curve(learners, DIGITS[:800], CLASSES[:800], n_jobs=1, **options)
    two = measure_learning_curve(learners, DIGITS[:800], CLASSES[:800], n_jobs=2, **options)
    assert same(one, two)
    assert one.learners == ("tree", "forest")
    assert len(set(one.error.tolist())) > 5
    for label in ("fold", "seed"):  # common subsets and seeds
        assert one.of("tree").labels[label].tolist() == one.of("forest").labels[label].tolist()


def test_another_seed_gives_another_result_and_global_state_is_left_alone():
    def measure(rng):
        return measure_learning_curve(DecisionTreeClassifier(), *SMALL, sizes=[80], rng=rng).error

    before = np.random.get_state()[1].copy()  # noqa: NPY002
    assert measure(0).tolist() == measure(0).tolist()
    assert measure(0).tolist() != measure(1).tolist()
    assert measure(np.random.default_rng(5)).tolist() == measure(np.random.default_rng(5)).tolist()
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_estimators_that_use_the_global_state_are_reproducible_too():
    class Careless(DummyClassifier):
        def predict(self, X):
            return np.random.choice(self.classes_, len(X))  # noqa: NPY002

    a, b = (measure_learning_curve(Careless(), *SMALL, sizes=[20, 40]) for _ in range(2))
    assert same(a, b)
    assert len(set(a.error.tolist())) > 2  # each run has a seed of its own


def test_an_estimator_that_writes_into_its_input_spoils_nothing():
    X = SMALL[0].copy()
    model = make_pipeline(StandardScaler(copy=False), GaussianNB())
    a = measure_learning_curve(model, X, SMALL[1], sizes=[50, 100])
    np.testing.assert_array_equal(X, SMALL[0])
    model.set_params(standardscaler__copy=True)
    assert same(a, measure_learning_curve(model, X, SMALL[1], sizes=[50, 100]))


def test_a_second_call_trains_nothing_and_gives_the_same(tmp_path):
    options = {"sizes": [20, 40], "folds": [3, 2], "store": tmp_path}
    first = measure_learning_curve(Counting(), *SMALL, **options)
    assert Counting.fits == 5
    second = measure_learning_curve(Counting(), *SMALL, **options)
    assert Counting.fits == 5
    assert same(first, second)
    assert first.labels["fit_seconds"].tolist() == second.labels["fit_seconds"].tolist()
    more = measure_learning_curve(Counting(), *SMALL, **options | {"sizes": [20, 80]})
    assert Counting.fits == 7  # only the new size
    np.testing.assert_array_equal(more.error[:3], first.error[:3])


@pytest.mark.parametrize(
    "change",
    [
        {"estimator": {"Counting": Counting(fail_at=1)}},
        {"estimator": {"other": Counting()}},
        {"X": SMALL[0] + 1},
        {"y": (SMALL[1] + 1) % 10},
        {"metric": "balanced_accuracy"},
        {"metric": lambda y, p: 0.5},
        {"unit": "percent"},
        {"rng": 1},
        {"test": 0.3},
        {"nested": True, "sizes": [20, 40], "folds": [1, 1]},
    ],
)
def test_other_work_is_not_taken_for_the_stored(tmp_path, change):
    base = {"estimator": {"Counting": Counting()}, "X": SMALL[0], "y": SMALL[1], "sizes": [20]}
    base |= {"folds": 1, "store": tmp_path}
    measure_learning_curve(**base)
    Counting.fits = 0
    measure_learning_curve(**base | change)
    assert Counting.fits > 0


def test_a_damaged_run_is_trained_again_and_it_is_said(tmp_path):
    first = measure_learning_curve(Counting(), *SMALL, sizes=[20], folds=3, store=tmp_path)
    (list_runs(tmp_path)[0].path / "predictions.npy").write_bytes(b"junk")
    with pytest.warns(CurvewiseWarning, match="predictions.npy is damaged"):
        again = measure_learning_curve(Counting(), *SMALL, sizes=[20], folds=3, store=tmp_path)
    assert Counting.fits == 4
    np.testing.assert_array_equal(first.error, again.error)
    assert "1 damaged run(s) were trained again" in again.notes[-1]
    assert len([read_run(r.path) for r in list_runs(tmp_path)]) == 3


HALTING = """
import sys, time
import numpy as np
from sklearn.datasets import load_digits
from sklearn.tree import DecisionTreeClassifier
from curvewise.study import measure_learning_curve

class Halting(DecisionTreeClassifier):
    left = int(sys.argv[2])
    def fit(self, X, y):
        Halting.left -= 1
        if Halting.left < 0:
            time.sleep(6000)
        return super().fit(X, y)

X, y = load_digits(return_X_y=True)
m = measure_learning_curve(Halting(), X[:500], y[:500], sizes=[40, 80], folds=[10, 5],
                           store=sys.argv[1])
print(m.n.tolist(), m.error.tolist(), m.labels["seed"].tolist(), m.notes)
"""


def test_a_killed_measurement_goes_on_to_the_same_end(tmp_path):
    def start(store, fits):
        command = [sys.executable, "-c", HALTING, str(store), str(fits)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    m = measure_learning_curve(
        {"Halting": DecisionTreeClassifier()}, DIGITS[:500], CLASSES[:500], sizes=[40, 80], folds=[10, 5]
    )
    undisturbed = f"{m.n.tolist()} {m.error.tolist()} {m.labels['seed'].tolist()} {m.notes}\n"
    store = tmp_path / "store"
    victim = start(store, 6)
    deadline = time.monotonic() + 300
    while len(list_runs(store)) < 3 and victim.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(victim.pid, signal.SIGKILL)
    victim.communicate()
    assert victim.returncode == -signal.SIGKILL
    assert 3 <= len(list_runs(store)) <= 6
    kept = {r.path: (r.path / "record.json").stat().st_mtime_ns for r in list_runs(store)}
    resumed, _ = start(store, 12).communicate()
    assert resumed == undisturbed
    assert len(list_runs(store)) == 15
    for path, stamp in kept.items():  # what was done was not done again
        assert (path / "record.json").stat().st_mtime_ns == stamp


def test_failed_runs_are_kept_and_the_rest_goes_on(tmp_path):
    options = {"sizes": [20, 40], "folds": [3, 2], "store": tmp_path}
    with pytest.warns(CurvewiseWarning, match=r"2 of 5 runs failed \(Counting\): ValueError: too"):
        m = measure_learning_curve(Counting(fail_at=40), *SMALL, **options)
    assert m.labels["status"].tolist() == ["done"] * 3 + ["failed"] * 2
    assert np.isnan(m.error[3:]).all()
    assert np.isfinite(m.error[:3]).all()
    assert any("2 of 5 runs failed" in note for note in m.notes)
    failed = [r for r in list_runs(tmp_path) if r.status == "failed"]
    assert len(failed) == 2
    assert "Traceback" in failed[0].error
    assert "ValueError: too much for me" in failed[0].error
    Counting.fits = 0
    with pytest.warns(CurvewiseWarning):
        measure_learning_curve(Counting(fail_at=40), *SMALL, **options)
    assert Counting.fits == 2  # failed runs get another chance, done ones are read


def test_a_scorer_that_is_no_share_is_a_score():
    """R² below 0 is an error above 1: the remedy works, and percent or a loss would not."""
    X, y = load_diabetes(return_X_y=True)
    measure = partial(measure_learning_curve, LinearRegression(), X, y, sizes=[12, 14], folds=2, metric="r2")
    with pytest.raises(InputError, match=r"metric='r2': gave -\d.* pass unit='score'"):
        measure()
    assert measure(unit="score").error.min() < 0


def test_a_metric_that_is_nan_is_a_failed_run(tmp_path):
    def odd(y, predictions):
        return float("nan") if predictions[0] == 3 else 0.5

    with pytest.warns(CurvewiseWarning, match="the metric is nan"):
        m = measure_learning_curve(
            {"a": DummyClassifier(strategy="constant", constant=3), "b": GaussianNB()},
            *SMALL,
            sizes=[40],
            folds=2,
            metric=odd,
            store=tmp_path,
        )
    assert set(m.of("a").labels["status"]) == {"failed"}
    assert len([r for r in list_runs(tmp_path) if r.error == "the metric is nan"]) >= 2


def test_when_all_fail_or_the_user_asks_it_raises():
    with pytest.raises(CurvewiseError, match=r"All 2 runs failed.*too much for me"):
        measure_learning_curve(Counting(fail_at=20), *SMALL, sizes=[20], folds=2)
    with pytest.raises(ValueError, match="too much for me"):
        measure_learning_curve(Counting(fail_at=20), *SMALL, sizes=[20, 40], on_error="raise")


def test_an_error_is_raised_out_of_a_process_too():
    X = np.full((40, 1), np.nan)
    with pytest.raises(ValueError, match="NaN"):
        measure_learning_curve(LogisticRegression(), X, [0, 1] * 20, sizes=[8, 16], n_jobs=2, on_error="raise")
    with pytest.raises(CurvewiseError, match=r"All .* runs failed.*NaN"):
        measure_learning_curve(LogisticRegression(), X, [0, 1] * 20, sizes=[8, 16])


def test_warnings_in_training_are_counted_and_kept_but_not_raised(tmp_path):
    options = {"sizes": [20, 40], "folds": [3, 2], "store": tmp_path}
    model = Counting(fail_at=20, answer="warn")
    m = measure_learning_curve(model, *SMALL, **options)
    assert any(n.startswith("3 of 5 runs warned (Counting): RuntimeWarning: fit") for n in m.notes)
    assert sum("RuntimeWarning" in n for n in m.notes) == 1
    noted = [r for r in list_runs(tmp_path) if r.notes]
    assert len(noted) == 3
    assert noted[0].notes[0].startswith("RuntimeWarning: fit")
    assert same(m, measure_learning_curve(model, *SMALL, **options))
    logistic = measure_learning_curve(LogisticRegression(max_iter=2), *SMALL, sizes=[50], folds=2)
    assert "2 of 2 runs warned (LogisticRegression): ConvergenceWarning" in logistic.notes[-1]


@pytest.mark.parametrize(
    "convert",
    [
        lambda X: X.tolist(),
        lambda X: pd.DataFrame(X, columns=[f"pixel {i}" for i in range(64)]).set_index(
            pd.Index(np.arange(len(X))[::-1])
        ),
        lambda X: pl.DataFrame(X, schema=[f"pixel {i}" for i in range(64)]),
        sparse.csr_matrix,
        sparse.coo_matrix,
        sparse.csc_array,
    ],
)
def test_kinds_of_inputs(convert, tmp_path):
    X, y = SMALL
    options = {"sizes": [50, 100], "folds": 2}
    plain = measure_learning_curve(MultinomialNB(), X, y, **options)
    other = measure_learning_curve(MultinomialNB(), convert(X), y, store=tmp_path, **options)
    assert same(plain, other)
    pair = (convert(TEST[0]), pd.Series(TEST[1]))
    measure_learning_curve(MultinomialNB(), convert(X), pd.Series(y), test=pair, **options)


def test_texts_and_string_labels(tmp_path):
    texts = ["good fine nice", "bad awful poor"] * 30
    labels = ["plus", "minus"] * 30
    model = make_pipeline(CountVectorizer(), MultinomialNB())
    m = measure_learning_curve(model, texts, labels, sizes=[4, 40], store=tmp_path)
    assert m.error.max() == 0
    assert set(read_run(list_runs(tmp_path)[0].path).predictions) == {"plus", "minus"}
    n = measure_learning_curve(model, texts, np.array(labels, dtype=object), sizes=[4, 40])
    assert same(m, n)


def test_losses_of_a_regression():
    X, y = load_diabetes(return_X_y=True)
    options = {"sizes": [50, 0.5 * 600], "folds": [4, 1], "unit": "loss"}
    by_name = measure_learning_curve(LinearRegression(), X, y, metric="neg_mean_absolute_error", **options)
    by_hand = measure_learning_curve(LinearRegression(), X, y, metric=mean_absolute_error, **options)
    np.testing.assert_array_equal(by_name.error, by_hand.error)
    assert by_name.unit.name == "loss"
    assert 30 < by_name.error[-1] < by_name.error[:4].mean() < 90
    assert any("not stratified" in note for note in by_name.notes)
    score = measure_learning_curve(LinearRegression(), X, y, metric="r2", sizes=[200], folds=1, unit="score")
    assert 0.2 < score.error[0] < 0.7
    assert score.unit.higher_is_better


def test_scores_become_errors():
    options = {"sizes": [100], "folds": 2}
    error = measure_learning_curve(GaussianNB(), *SMALL, **options)
    for metric in ("accuracy", make_scorer(accuracy_score)):
        other = measure_learning_curve(GaussianNB(), *SMALL, metric=metric, **options)
        np.testing.assert_allclose(other.error, error.error)
    percent = measure_learning_curve(GaussianNB(), *SMALL, metric="accuracy", unit="percent", **options)
    np.testing.assert_allclose(percent.error, 100 * error.error)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"y": CLASSES}, "X and y cannot be used together"),
        ({"y": np.where(CLASSES[:400] == 3, np.nan, 1.0)}, "y holds"),
        ({"y": np.array([None, *"ab" * 200][:400], dtype=object)}, "y holds 1 missing label"),
        ({"y": pd.Series([None, *"ab" * 200][:400], dtype="string")}, "y holds 1 missing label"),
        ({"estimator": {}}, "empty dict"),
        ({"estimator": {"a": "svm"}}, "'a' is a str"),
        ({"sizes": [1000]}, "sizes holds 1000"),
        ({"test": 0.0}, "test=0.0"),
        ({"test": 1.5}, "test=1.5"),
        ({"test": 400}, "test=400"),
        ({"test": (DIGITS,)}, "test has 1 parts"),
        ({"estimator": {1: GaussianNB(), "1": LogisticRegression()}}, "written alike"),
        ({"test": np.nan}, "test=nan: would hold out 0"),
        ({"test": "0.2"}, "test='0.2': would hold out 0"),
        ({"metric": "nonsense"}, "metric='nonsense': not known"),
        ({"metric": 3}, "metric=3"),
        ({"metric": "neg_log_loss"}, "unit='loss'"),
        ({"metric": "accuracy", "unit": "loss"}, "'fraction' or 'percent'"),
        ({"unit": "loss"}, "metric='error': a share"),
        ({"unit": "furlong"}, "unit='furlong'"),
        ({"estimator": LinearRegression()}, "unit='loss'"),
        ({"y": np.linspace(0, 1, 400)}, "unit='loss'"),
        ({"metric": lambda y, p: 40.0}, "unit='percent'"),
        ({"metric": accuracy_score}, "accuracy_score, for which higher is better"),
        ({"metric": partial(f1_score, average="macro")}, "f1_score, for which higher is better"),
        ({"metric": r2_score, "unit": "loss"}, "r2_score, for which higher is better"),
        ({"metric": zero_one_loss, "unit": "score"}, "zero_one_loss, for which lower is better"),
        ({"on_error": "shrug"}, "on_error='shrug'"),
        ({"rng": "x"}, "rng='x'"),
        ({"n_jobs": 0}, "n_jobs=0"),
    ],
)
def test_mistakes_are_named(arguments, message):
    base = {"estimator": GaussianNB(), "X": SMALL[0], "y": SMALL[1], "sizes": [20], "folds": 1}
    with pytest.raises(InputError, match=message):
        measure_learning_curve(**base | arguments)


def test_unknown_options_are_a_type_error():
    with pytest.raises(TypeError, match="unexpected keyword argument 'fold'"):
        measure_learning_curve(GaussianNB(), *SMALL, fold=3)


def test_a_class_with_one_example_is_trained_on():
    y = SMALL[1].copy()
    y[0] = 77
    m = measure_learning_curve(GaussianNB(), SMALL[0], y, sizes=[1.0])
    assert m.labels["status"].tolist() == ["done"]


def test_the_bar_goes_to_stderr_and_only_when_wanted(capsys):
    measure_learning_curve(GaussianNB(), *SMALL, sizes=[20], folds=1)
    assert capsys.readouterr() == ("", "")
    measure_learning_curve(GaussianNB(), *SMALL, sizes=[20], folds=1, progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert "training" in err
    assert "100%" in err


def test_importing_is_light_and_a_missing_sklearn_is_named(monkeypatch):
    code = (
        "import sys, curvewise.study\nprint([m for m in ('sklearn', 'pandas', 'rich', 'joblib') if m in sys.modules])"
    )
    command = [sys.executable, "-c", code]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "[]\n"
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(MissingDependencyError, match=r"curvewise\[sklearn\]"):
        measure_learning_curve(GaussianNB(), *SMALL)


class Plain:
    """No estimator of scikit-learn's: it has fit and predict, and no get_params."""

    def __init__(self, shrink: float = 1.0) -> None:
        self.shrink = shrink

    def fit(self, x, y) -> None:
        assert not hasattr(self, "classes")  # fresh for every run
        self.classes, which = np.unique(y, return_inverse=True)
        self.centres = np.stack([x[which == k].mean(axis=0) for k in range(len(self.classes))])

    def predict(self, x):
        far = ((x[:, None] - self.shrink * self.centres) ** 2).sum(axis=2)
        return self.classes[far.argmin(axis=1)]


class Guessing(Plain):
    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        self.seed = seed

    def predict(self, x):
        return np.random.default_rng(self.seed).choice(self.classes, len(x))


class Drawn(Guessing):
    """Draws from a generator that was made with it."""

    def __init__(self, random_state: int = 0) -> None:
        super().__init__()
        self.random_state = np.random.RandomState(random_state)

    def predict(self, x):
        return self.random_state.choice(self.classes, len(x))


def test_any_object_with_fit_and_predict_does(tmp_path):
    given = Plain(shrink=0.5)
    options = {"sizes": [50, 100], "folds": 2}
    m = measure_learning_curve(given, *SMALL, **options, store=tmp_path)
    assert m.learners == ("Plain",)
    assert set(m.labels["status"]) == {"done"}
    assert not hasattr(given, "classes")
    other = measure_learning_curve({"Plain": Plain(shrink=1.0)}, *SMALL, **options, store=tmp_path)
    assert len(list_runs(tmp_path)) == 8  # its attributes tell it from the first
    assert not np.array_equal(m.error, other.error)
    # scikit-learn's own nearest centroid is the same classifier.
    from sklearn.neighbors import NearestCentroid

    np.testing.assert_array_equal(other.error, measure_learning_curve(NearestCentroid(), *SMALL, **options).error)


@pytest.mark.parametrize("given", [Guessing, Guessing(seed=3), Drawn])
def test_a_plain_object_gets_the_seed_of_its_run(given):
    m = measure_learning_curve(given, *TRAIN, sizes=[200], folds=4, test=TEST)
    for seed, error in zip(m.labels["seed"], m.error, strict=True):
        draw = np.random.RandomState(seed) if given is Drawn else np.random.default_rng(seed)
        assert error == np.mean(draw.choice(np.arange(10), len(TEST[1])) != TEST[1])


def test_a_generator_that_an_object_holds_is_left_alone():
    m = measure_learning_curve(Drawn(5), *TRAIN, sizes=[200], folds=3, test=TEST)
    draw = np.random.RandomState(5)
    assert set(m.error) == {np.mean(draw.choice(np.arange(10), len(TEST[1])) != TEST[1])}


def test_what_cannot_be_made_afresh_is_named():
    class Locked(Plain):
        def __deepcopy__(self, memo):
            raise TypeError("cannot copy")

    class Needs(Plain):
        def __init__(self, width):
            pass

    with pytest.raises(InputError, match=r"'Locked' cannot be copied for each run .*cannot copy"):
        measure_learning_curve(Locked(), *SMALL)
    with pytest.raises(InputError, match="'Needs' cannot be made without arguments"):
        measure_learning_curve(Needs, *SMALL)
    with pytest.raises(InputError, match="'mine' is a object, which lacks fit and predict"):
        measure_learning_curve({"mine": object()}, *SMALL)
