"""Estimators in a study, against scikit-learn used by hand."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import threadpoolctl
from sklearn.datasets import load_digits
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import log_loss
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVC

from curvewise.errors import InputError
from curvewise.nn.task import Examples
from curvewise.study.data.dataset import Dataset
from curvewise.study.run.estimators import fit_estimator, make_estimator
from curvewise.study.spec.design import Design, Learner
from curvewise.study.study import Study

DIGITS = load_digits()
IMAGES = (DIGITS.images[:, None] * 255 / 16).astype(np.uint8)
Y = DIGITS.target.astype(np.int64)
LAYERS = {"hidden_layer_sizes": [8], "max_iter": 500, "learning_rate_init": 0.02, "alpha": 1.0}


def study_of(learner: Learner, data: Dataset | None = None, **settings) -> Study:
    data = data or Dataset(IMAGES[:400], Y[:400], IMAGES[400:600], Y[400:600])
    settings = {"design": Design(sizes=(100,), folds=1)} | settings
    made = Study(data, {"a": learner}, **settings)
    test = made.test_examples()
    upside_down = Examples(test.x[..., ::-1, :] if test.x.ndim == 4 else -test.x, test.y, test.classes)
    made.__dict__["evaluation_sets"] = {"test": test, "flipped": upside_down}
    return made


def flat(images: np.ndarray) -> np.ndarray:
    return images.reshape(len(images), -1).astype(np.float32) / np.float32(255)


def fit_one(learner: Learner, data: Dataset | None = None, **settings):
    study = study_of(learner, data, **settings)
    job = study.jobs[0]
    return study, job, study.rows_of(job.n, job.fold), fit_estimator(study, job)


@pytest.mark.parametrize(
    ("place", "made", "options"),
    [
        ("sklearn.neighbors:KNeighborsClassifier", KNeighborsClassifier, {"n_neighbors": 3}),
        ("sklearn.neural_network:MLPClassifier", MLPClassifier, LAYERS),
    ],
)
def test_probabilities_are_those_of_scikit_learn(place, made, options):
    study, job, rows, trained = fit_one(Learner(estimator=place, options=options))
    own = made(**options)
    if "random_state" in own.get_params():
        own.set_params(random_state=job.seeds["init"])
    own.fit(flat(IMAGES[rows]), Y[rows])
    assert trained.error is None
    assert not trained.hard
    assert trained.path == "scikit-learn"
    assert trained.seconds > 0
    for name, part in study.evaluation_sets.items():
        expected = own.predict_proba(flat(part.x))
        np.testing.assert_allclose(trained.probabilities[name], expected, rtol=1e-5, atol=1e-7)
        assert trained.probabilities[name].dtype == np.float32
    seen = own.predict_proba(flat(IMAGES[rows])).astype(np.float32)
    assert trained.metrics["train_error"] == pytest.approx(1 - own.score(flat(IMAGES[rows]), Y[rows]))
    if seen.min() > 1e-6:
        loss = log_loss(Y[rows], seen, labels=range(10))
        assert trained.metrics["train_loss"] == pytest.approx(loss, rel=1e-4)


def test_a_blind_guess_is_given_no_images(monkeypatch):
    widths = set()
    usual = DummyClassifier.fit

    def fit(self, x, y, **given):
        widths.add(x.shape[1:])
        return usual(self, x, y, **given)

    monkeypatch.setattr(DummyClassifier, "fit", fit)
    study, _, rows, trained = fit_one(Learner(estimator="sklearn.dummy:DummyClassifier", options={"strategy": "prior"}))
    assert widths == {(1,)}
    own = usual(DummyClassifier(strategy="prior"), flat(IMAGES[rows]), Y[rows])
    for name, part in study.evaluation_sets.items():
        np.testing.assert_allclose(trained.probabilities[name], own.predict_proba(flat(part.x)), rtol=1e-6)


def test_without_probabilities_the_result_is_hard_and_has_no_loss():
    learner = Learner(estimator="sklearn.svm:SVC", options={"C": 2.0})
    study, _, rows, trained = fit_one(learner)
    own = SVC(C=2.0).fit(flat(IMAGES[rows]), Y[rows])
    assert trained.hard
    assert "train_loss" not in trained.metrics
    assert any("no loss" in note for note in trained.notes)
    for name, part in study.evaluation_sets.items():
        given = trained.probabilities[name]
        assert set(np.unique(given)) == {0, 1}
        np.testing.assert_array_equal(given.argmax(axis=1), own.predict(flat(part.x)))
        np.testing.assert_array_equal(given.sum(axis=1), 1)


def test_a_class_that_the_subset_lacks_has_probability_0():
    y = np.array([0, 2] * 20 + [1, 3])  # 1 and 3 are only in the test part
    x = np.random.default_rng(0).normal(size=(42, 3)) + y[:, None]
    data = Dataset(x[:40], y[:40], x[20:], y[20:])
    learner = Learner(estimator="sklearn.naive_bayes:GaussianNB")
    _, _, rows, trained = fit_one(learner, data, design=Design(sizes=(20,), folds=1))
    given = trained.probabilities["test"]
    assert given.shape == (22, 4)
    assert not given[:, [1, 3]].any()
    expected = GaussianNB().fit(x[rows], y[rows]).predict_proba(x[20:])
    np.testing.assert_allclose(given[:, [0, 2]], expected, rtol=1e-6, atol=1e-30)


def test_the_init_seed_decides_and_nothing_else_does():
    place = "sklearn.linear_model:SGDClassifier"
    design = Design(sizes=(100,), folds=1, seeds=2)
    study = study_of(Learner(estimator=place, options={"loss": "log_loss"}), design=design)
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    first, second = (fit_estimator(study, job) for job in study.jobs)
    np.testing.assert_array_equal(state, np.random.get_state()[1])  # noqa: NPY002
    again = fit_estimator(study, study.jobs[0])
    assert (first.probabilities["test"] != second.probabilities["test"]).any()
    np.testing.assert_array_equal(first.probabilities["test"], again.probabilities["test"])
    job = study.jobs[1]
    rows = study.rows_of(job.n, job.fold)
    own = SGDClassifier(loss="log_loss", random_state=job.seeds["init"])
    expected = own.fit(flat(IMAGES[rows]), Y[rows]).predict_proba(flat(IMAGES[400:600]))
    np.testing.assert_allclose(second.probabilities["test"], expected, rtol=1e-5, atol=1e-7)


def test_a_fit_has_one_thread_also_of_libraries_that_came_later(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "counting.py").write_text(
        "import threadpoolctl\n"
        "from sklearn.naive_bayes import GaussianNB\n"
        "class Counting(GaussianNB):\n"
        "    def fit(self, x, y):\n"
        "        threads = [pool['num_threads'] for pool in threadpoolctl.threadpool_info()]\n"
        "        assert threads and set(threads) == {1}, threads\n"
        "        return super().fit(x, y)\n"
    )
    searched = []
    found = threadpoolctl.ThreadpoolController.__init__
    monkeypatch.setattr(
        threadpoolctl.ThreadpoolController, "__init__", lambda self: (searched.append(self), found(self))[1]
    )
    study = study_of(Learner(estimator="counting:Counting"), folder=tmp_path)
    with threadpoolctl.threadpool_limits(limits=2):
        before = threadpoolctl.threadpool_info()
        assert fit_estimator(study, study.jobs[0]).error is None
        assert threadpoolctl.threadpool_info() == before
        searched.clear()
        assert fit_estimator(study, study.jobs[0]).error is None
        assert len(searched) == 1  # by the estimator itself
        monkeypatch.setitem(sys.modules, "brought_something", sys)  # as any module may have
        assert fit_estimator(study, study.jobs[0]).error is None
        assert len(searched) == 3


def test_warnings_are_notes_and_failures_are_errors():
    options = {"hidden_layer_sizes": [4], "max_iter": 2}
    *_, trained = fit_one(Learner(estimator="sklearn.neural_network:MLPClassifier", options=options))
    assert trained.error is None
    assert any("ConvergenceWarning" in note for note in trained.notes)
    *_, failed = fit_one(Learner(estimator="sklearn.svm:SVC", options={"C": -1.0}))
    assert "InvalidParameterError" in failed.error
    assert not failed.probabilities


def test_a_class_of_ones_own_beside_the_study(tmp_path: Path):
    (tmp_path / "my_guess_for_tests.py").write_text(
        "class Guess:\n"
        "    def __init__(self, which=0, **rest): self.which = which\n"
        "    def fit(self, X, y): X[:] = 7; return self\n"
        "    def predict(self, X): assert X.max() <= 1; return [self.which] * len(X)\n"
        "    def get_params(self, deep=True): return {'which': self.which}\n"
        "    def set_params(self, **given): return self\n"
        "class Half:\n"
        "    def fit(self, X, y): return self\n"
    )
    learner = Learner(estimator="my_guess_for_tests:Guess", options={"which": 3})
    *_, trained = fit_one(learner, folder=tmp_path)
    assert trained.error is None
    assert trained.hard
    assert (trained.probabilities["test"].argmax(axis=1) == 3).all()
    assert str(tmp_path) not in sys.path
    for place, options, said in (
        ("my_guess_for_tests:Half", {}, "no method predict"),
        ("my_guess_for_tests:Guess", {"unknown": 1}, "no parameter 'unknown'"),
    ):
        with pytest.raises(InputError, match=said):
            make_estimator(Learner(estimator=place, options=options), tmp_path)
    *_, wrong = fit_one(Learner(estimator=learner.estimator, options={"which": 10}), folder=tmp_path)
    assert "expected 0 to 9" in wrong.error


@pytest.mark.parametrize(
    ("place", "options", "said"),
    [
        ("sklearn.nowhere:SVC", {}, "sklearn.nowhere"),
        ("no_such_module_anywhere:SVC", {}, "no_such_module_anywhere"),
        ("sklearn.svm:NoSuchClass", {}, "has no .NoSuchClass.; it has"),
        ("sklearn.svm:SVC", {"c": 1}, "does not take the options"),
        ("sklearn.preprocessing:StandardScaler", {}, "no method predict"),
    ],
)
def test_what_cannot_be_made_is_named(place, options, said):
    study = study_of(Learner(estimator=place, options=options))
    with pytest.raises(InputError, match=said):
        fit_estimator(study, study.jobs[0])


def test_a_class_that_would_end_the_process_is_an_error(tmp_path: Path):
    (tmp_path / "leaving_for_tests.py").write_text(
        "import sys\n"
        "class Leaves:\n"
        "    def get_params(self, deep=True): return {}\n"
        "    def fit(self, X, y): sys.exit('no licence')\n"
        "    def predict(self, X): return X\n"
    )
    (tmp_path / "left_for_tests.py").write_text("raise SystemExit('not today')\n")
    *_, trained = fit_one(Learner(estimator="leaving_for_tests:Leaves"), folder=tmp_path)
    assert "SystemExit: no licence" in trained.error
    with pytest.raises(InputError, match="SystemExit: not today"):
        make_estimator(Learner(estimator="left_for_tests:Left"), tmp_path)


PLAIN = """
import numpy as np

class Plain:
    made = []

    def __init__(self, shrink=1.0):
        self.shrink = shrink
        Plain.made.append(self)

    def fit(self, x, y):
        assert not hasattr(self, "centres")  # fresh for every run
        self.centres = self.shrink * np.stack([x[y == k].mean(axis=0) for k in range(10)])

    def predict(self, x):
        return ((x[:, None] - self.centres) ** 2).sum(axis=2).argmin(axis=1)

class Stated(Plain):
    def __init__(self, shrink=1.0, random_state=None):
        super().__init__(shrink)
        self.generator = np.random.default_rng(random_state)
        self.random_state = np.random.RandomState(random_state)  # as some do

    def predict(self, x):
        return self.generator.integers(10, size=len(x))

class Seeded(Plain):
    def __init__(self, *, seed, shrink=1.0):
        super().__init__(shrink)
        self.generator = np.random.default_rng(seed)

    predict = Stated.predict

class Scores(Plain):
    def predict_proba(self, x):
        return np.full((len(x), 10), 1.5)

class Raises(Plain):
    def __init__(self, shrink=1.0):
        raise OSError("no licence")
"""


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    (tmp_path / "plain_models.py").write_text(PLAIN)
    return tmp_path


def test_any_class_with_fit_and_predict_does(plain: Path) -> None:
    learner = Learner(estimator="plain_models:Plain", options={"shrink": 0.9})
    data = Dataset(IMAGES[:400], Y[:400], IMAGES[400:600], Y[400:600])
    design = Design(sizes=(100,), folds=1, seeds=3)
    study = Study(data, {"plain": learner}, design, folder=plain)
    assert study.run(workers=0, progress=False).done == 3
    frame = study.frame()
    assert frame["error"].nunique() == 1  # it has no seed
    rows = study.rows_of(100, 0)
    x, y, test = flat(IMAGES[rows]), Y[rows], flat(IMAGES[400:600])
    centres = 0.9 * np.stack([x[y == k].mean(axis=0) for k in range(10)])
    guess = ((test[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
    assert frame["error"][0] == np.mean(guess != Y[400:600])


def test_scores_are_no_probabilities(plain: Path) -> None:
    data = Dataset(IMAGES[:400], Y[:400], IMAGES[400:600], Y[400:600])
    study = Study(
        data, {"scores": Learner(estimator="plain_models:Scores")}, Design(sizes=(100,), folds=1), folder=plain
    )
    status = study.run(workers=0, progress=False)
    assert "values up to 1.5: probabilities are at most 1" in status.failures[0].message


@pytest.mark.parametrize("kind", ["Stated", "Seeded"])
def test_a_plain_class_gets_its_seed_through_its_constructor(plain: Path, kind: str) -> None:
    learner = Learner(estimator=f"plain_models:{kind}", options={"shrink": 0.9})
    data = Dataset(IMAGES[:400], Y[:400], IMAGES[400:600], Y[400:600])
    design = Design(sizes=(100,), folds=1, seeds=4)
    study = Study(data, {"plain": learner}, design, folder=plain)
    assert study.run(workers=0, progress=False).done == 4
    for job, error in zip(study.jobs, study.frame()["error"], strict=True):
        generator = np.random.default_rng(job.seeds["init"])
        generator.integers(10, size=100)  # for the training error
        assert error == np.mean(generator.integers(10, size=200) != Y[400:600])


def test_a_class_that_cannot_be_made_is_named_with_its_options(plain: Path) -> None:
    learner = Learner(estimator="plain_models:Raises", options={"shrink": 2})
    said = r"estimator='plain_models:Raises': cannot be made with the options {'shrink': 2}: it fails"
    with pytest.raises(InputError, match=rf"{said} in plain_models.py, line \d+ with OSError"):
        make_estimator(learner, plain)
    learner = Learner(estimator="plain_models:Plain", options={"shrunk": 2})
    with pytest.raises(InputError, match=r"does not take the options {'shrunk': 2}"):
        make_estimator(learner, plain)
