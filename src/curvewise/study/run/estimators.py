"""The scikit-learn engine: make an estimator with a run's seed, fit it alone and reproducibly, let it predict.

Studies (:func:`fit_estimator`) and :func:`~curvewise.study.curves.measure_learning_curve` both train through it.
"""

from __future__ import annotations

import copy
import inspect
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError, MissingDependencyError, importing
from curvewise.nn.devices import ONE_AT_A_TIME, spoilt_device
from curvewise.nn.own_code import failure, find_function, importable, names_own_code
from curvewise.nn.task import Examples, Trained
from curvewise.study.data.dataset import HARD_NOTE, as_predicted, log_loss, number_losses, one_hot
from curvewise.study.spec.design import Learner, within
from curvewise.study.spec.study import Job, StudySpec

SEEDS = ("random_state", "seed")
"""Usual names of a seed in classes that are not scikit-learn's."""
_POOLS: dict[str, Any] = {}
"""The thread pools found last, and how many modules were loaded then."""


def fit_estimator(study: StudySpec, job: Job) -> Trained:
    """Fit the estimator of a job on its subset and let it predict every evaluation set.

    Images are flattened and scaled from 0 … 255 to 0 … 1; features are taken as they are: put a
    scaler into a pipeline of your own where they need one. Every parameter ``random_state``, nested
    ones too, and numpy's global state are set from the job's ``init`` seed, and one thread is used,
    so that the result depends on nothing else. A class without scikit-learn's ``get_params`` gets
    the seed as its argument ``random_state``, or else ``seed``, if it has one.

    Probabilities are those of ``predict_proba``; a class that the subset lacks has probability 0.
    Without ``predict_proba`` they are 0 and 1 from ``predict``, and the result is ``hard``: it has
    errors and no losses. Where targets are numbers, the estimator must be a regressor, and what it
    predicts is judged by the learner's loss.

    Parameters
    ----------
    study : Study
        Data and evaluation sets.
    job : Job
        One of its runs, whose learner has an ``estimator``.

    Returns
    -------
    Trained
        With ``train_error`` (of classes) and, unless hard, ``train_loss``. A fit that raises is
        recorded in ``error``; warnings are in ``notes``.

    Raises
    ------
    InputError
        If the estimator cannot be had: no run of this learner can be made.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from curvewise.study.data.dataset import Dataset
    >>> from curvewise.study.study import Study
    >>> flowers = Dataset(*load_iris(return_X_y=True))
    >>> tree = Learner(estimator="sklearn.tree:DecisionTreeClassifier", options={"max_depth": 3})
    >>> study = Study(flowers, {"tree": tree})
    >>> fit_estimator(study, study.jobs[0]).probabilities["test"].shape
    (30, 3)
    """
    seed = job.seeds["init"]
    with within(f"learners.{job.name}"):
        model = make_estimator(job.learner, study.folder, seed)
    rows = study.rows_of(job.n, job.fold)
    work = partial(_classify, model, study.examples, rows, study.evaluation_sets)
    if study.dataset.is_numbers:
        work = partial(_regress, model, study.examples, rows, study.evaluation_sets, str(job.learner.loss))
    own = names_own_code(str(job.learner.estimator))
    tried = attempt(work, seed, study.folder if own else None)
    if tried.error is not None and spoilt_device(tried.error):
        raise tried.error
    found = tried.result if tried.error is None else {"error": tried.traceback}
    notes = (*tried.warnings, *((HARD_NOTE,) if found.get("hard") else ()))
    # The reason why an estimator that is fitted again may have other bits, if there is one.
    mkl = "numpy uses MKL, whose rounding depends on memory addresses: a repeated run may differ in the last digits."
    doubts = (mkl,) if any(library["internal_api"] == "mkl" for library in _thread_pools().info()) else ()
    return Trained(seconds=tried.seconds, path="scikit-learn", notes=notes, doubts=doubts, **found)


def make_estimator(learner: Learner, folder: Path | None = None, seed: int = 0) -> Any:
    """Make the estimator that a learner names, not yet fitted.

    Parameters
    ----------
    learner : Learner
        With ``estimator`` as ``"module:Class"`` and its parameters in ``options``.
    folder : Path, optional
        Where modules are looked for, beside the usual places.
    seed : int
        Of the run.

    Returns
    -------
    estimator
        With ``fit`` and ``predict``.

    Raises
    ------
    InputError
        If there is no such class, it takes other parameters, or it cannot fit and predict.
    MissingDependencyError
        If it is in scikit-learn, which is not installed.
    """
    place = str(learner.estimator)
    try:
        kind: Any = find_function("estimator", place, folder)
    except InputError as error:
        if getattr(error.__cause__, "name", None) == "sklearn":
            raise MissingDependencyError(
                f'estimator={place!r} needs scikit-learn, which is not installed: pip install "curvewise[sklearn]".'
            ) from error
        raise
    for method in ("fit", "predict"):
        if not callable(getattr(kind, method, None)):
            problem = f"has no method {method}: name a class with fit(X, y) and predict(X), as scikit-learn's have."
            raise InputError(problem, argument="estimator", value=place)
    options = dict(learner.options)
    try:
        with importable(folder if names_own_code(place) else None):  # files it imports only now
            model = construct(kind, options, seed)
    except (Exception, SystemExit) as error:
        problem = f"cannot be made with the options {options!r}: it {failure(error, folder)}"
        if isinstance(error, TypeError):
            problem = f"does not take the options {options!r}: {error}."
        raise InputError(problem, argument="estimator", value=place) from error
    # A class with ``**parameters`` takes anything, also what it has no use for.
    known = model.get_params() if options and has_parameters(model) else options
    for name in options:
        if name not in known:
            problem = f"has no parameter {name!r}: it has {', '.join(known)}."
            raise InputError(problem, argument="estimator", value=place)
    return model


# ---- Estimators with the seed of a run


def fresh_estimator(estimator: Any, seed: int) -> Any:
    """Make an estimator that was not fitted, with a seed of its own.

    Parameters
    ----------
    estimator : estimator or class
        One of scikit-learn's is cloned, and every ``random_state`` set. Any other object with
        ``fit`` and ``predict`` is copied as it is, and a plain attribute ``random_state``, or else
        ``seed``, is set. A class is called without arguments but its seed.
    seed : int
        Of the run.
    """
    if isinstance(estimator, type):
        return construct(estimator, {}, seed)
    if has_parameters(estimator):
        from sklearn.base import clone

        return set_seeds(clone(estimator), seed)
    made = copy.deepcopy(estimator)
    for name in SEEDS:
        # What is more than a number, such as a generator, belongs to the object.
        if name in getattr(made, "__dict__", {}) and isinstance(getattr(made, name), int | np.integer | None):
            setattr(made, name, seed)
            break
    return made


def construct(kind: type, options: Mapping[str, Any], seed: int) -> Any:
    """Make an instance of a class with a run's seed, which comes before one of the options.

    A class that has scikit-learn's ``get_params`` has every ``random_state`` set; any other one is
    given ``random_state``, or else ``seed``, if it takes such an argument.
    """
    if has_parameters(kind):
        return set_seeds(kind(**options), seed)
    try:
        takes = inspect.signature(kind).parameters
    except (TypeError, ValueError):  # some that are written in C do not say
        return kind(**options)
    named = next((name for name in SEEDS if name in takes), None)
    return kind(**{**options, **({} if named is None else {named: seed})})


def has_parameters(estimator: Any) -> bool:
    """Return whether an estimator, or a class, has scikit-learn's parameters."""
    return all(callable(getattr(estimator, name, None)) for name in ("get_params", "set_params"))


def set_seeds(model: Any, seed: int) -> Any:
    """Set every parameter named ``random_state``, nested ones too, and return the estimator."""
    names = [k for k in model.get_params() if k == "random_state" or k.endswith("__random_state")]
    return model.set_params(**dict.fromkeys(names, seed)) if names else model


# ---- One fit, whatever happens in it


@dataclass(frozen=True, eq=False)
class Attempt:
    """One attempt to fit an estimator and let it predict.

    Attributes
    ----------
    result
        Of the work; None if it raised.
    error : BaseException, optional
        What it raised, with its traceback as text in ``traceback``.
    seconds : float
        How long it took.
    warnings : tuple of str
        Each warning once.
    """

    result: Any
    error: BaseException | None
    seconds: float
    warnings: tuple[str, ...]

    @property
    def traceback(self) -> str:
        """The error as Python prints it."""
        return "" if self.error is None else "".join(traceback.format_exception(self.error))


def attempt(work: Callable[[], Any], seed: int, folder: Path | None = None) -> Attempt:
    """Do the work of one run: an exception, or a call of ``exit``, is its outcome, and is not raised.

    Parameters
    ----------
    work : callable
        Fits and predicts.
    seed : int
        Of numpy's global state, which some estimators draw from.
    folder : Path, optional
        Where modules are looked for that the work imports, beside the usual places.
    """
    result, problem = None, None
    start = time.perf_counter()
    with _alone(seed) as caught, importable(folder):
        try:
            result = work()
        except (Exception, SystemExit) as error:
            problem = error
    texts = dict.fromkeys(f"{w.category.__name__}: {w.message}" for w in caught)
    return Attempt(result, problem, time.perf_counter() - start, tuple(texts))


@contextmanager
def _alone(seed: int) -> Iterator[list[warnings.WarningMessage]]:
    """Record warnings; make the work independent of threads and of numpy's global state.

    Other threads of this process wait meanwhile.
    """
    pools = _thread_pools()
    # Both the number of threads and numpy's generator belong to the whole process.
    with ONE_AT_A_TIME:
        state = np.random.get_state()  # noqa: NPY002
        try:
            with warnings.catch_warnings(record=True) as caught, pools.limit(limits=1):
                warnings.simplefilter("always")
                np.random.seed(seed)  # noqa: NPY002
                yield caught
        finally:
            np.random.set_state(state)  # noqa: NPY002


def _thread_pools() -> Any:
    """Return threadpoolctl's control of all libraries that are loaded and have threads."""
    with importing("Training estimators needs threadpoolctl", "sklearn"):
        from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]
    # Looking through all libraries takes as long as a small fit. Others can only have come with further modules.
    if _POOLS.get("modules") != len(sys.modules):
        _POOLS.update(modules=len(sys.modules), found=ThreadpoolController())
    return _POOLS["found"]


def _classify(
    model: Any, examples: Examples, rows: NDArray[np.int64], evaluations: Mapping[str, Examples]
) -> dict[str, Any]:
    x, y = _inputs(model, examples, rows), examples.y[rows]
    model.fit(x, y)
    hard = not hasattr(model, "predict_proba")  # only classes: there is no loss
    # Made anew, because an estimator may have written into its input.
    seen = _probabilities(model, _inputs(model, examples, rows), examples.classes)
    metrics = {"train_error": float(np.mean(seen.argmax(axis=1) != y))}
    if not hard:
        metrics["train_loss"] = log_loss(seen, y)
    predicted = {
        name: _probabilities(model, _inputs(model, part), examples.classes) for name, part in evaluations.items()
    }
    return {"probabilities": predicted, "metrics": metrics, "hard": hard}


def _regress(
    model: Any, examples: Examples, rows: NDArray[np.int64], evaluations: Mapping[str, Examples], loss: str
) -> dict[str, Any]:
    y = examples.y[rows]
    # One number per example is a row of one, which scikit-learn would warn about.
    model.fit(_inputs(model, examples, rows), y[:, 0].copy() if y.shape[1:] == (1,) else y.copy())
    seen = as_predicted(model.predict(_inputs(model, examples, rows)), y.shape, "predict")
    sets = {name: (model.predict(_inputs(model, part)), part.y.shape) for name, part in evaluations.items()}
    predicted = {name: as_predicted(values, shape, "predict") for name, (values, shape) in sets.items()}
    metrics = {"train_loss": float(number_losses(seen, y, loss).mean(dtype=np.float64))}
    return {"predictions": predicted, "metrics": metrics}


def _inputs(model: Any, examples: Examples, rows: NDArray[np.int64] | None = None) -> NDArray[Any]:
    """Rows of features; images become fractions of white in one long row."""
    if type(model).__module__ == "sklearn.dummy":  # looks at the targets alone: a million images need not be copied
        return np.zeros((len(examples.y if rows is None else rows), 1), dtype=np.float32)
    x = examples.x.copy() if rows is None else examples.x[rows]
    if x.ndim == 2:
        return x
    return x.reshape(len(x), -1).astype(np.float32) / np.float32(255)


def _probabilities(model: Any, x: NDArray[Any], classes: int) -> NDArray[np.float32]:
    """Give one column for every class of the data, whichever of them the model has seen."""
    if not hasattr(model, "predict_proba"):
        return one_hot(np.asarray(model.predict(x)), classes, "predict")
    given = np.asarray(model.predict_proba(x), dtype=np.float64)
    known = np.asarray(getattr(model, "classes_", np.arange(classes)))
    if given.shape != (len(x), len(known)):
        raise ValueError(
            f"predict_proba gave an array of shape {given.shape}: expected {(len(x), len(known))}, "
            "a column for each class."
        )
    if not np.isfinite(given).all() or (given < 0).any():
        raise ValueError("predict_proba gave values that are not probabilities: NaN or below 0.")
    # The loss of scores may be below 0. Sums tell less: rows of GaussianNB in single precision add up to 2 at times.
    if given.max() > 1.01:
        raise ValueError(f"predict_proba gave values up to {given.max():.4g}: probabilities are at most 1.")
    full = np.zeros((len(x), classes), dtype=np.float32)
    full[:, known.astype(np.int64)] = given
    return full
