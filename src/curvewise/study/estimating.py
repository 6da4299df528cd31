"""Train an estimator of scikit-learn, or any class with ``fit`` and ``predict``, for a study."""

from __future__ import annotations

import time
import traceback
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError, MissingDependencyError
from curvewise.nn._own_code import failure, find_function, importable, names_own_code
from curvewise.nn.devices import spoilt_device
from curvewise.nn.task import Examples, Trained
from curvewise.study._classes import HARD_NOTE, log_loss, one_hot
from curvewise.study._numbers import as_predicted, number_losses
from curvewise.study.learner import Learner
from curvewise.study.training import (
    construct,
    has_parameters,
    library_doubts,
    warning_texts,
    watched,
)

if TYPE_CHECKING:
    from curvewise.study.jobs import Job
    from curvewise.study.study import Study


def fit_estimator(study: Study, job: Job) -> Trained:
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
        told in ``error``; warnings are in ``notes``.

    Raises
    ------
    InputError
        If the estimator cannot be had: no run of this learner can be made.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from curvewise.study.dataset import Dataset
    >>> from curvewise.study.study import Study
    >>> flowers = Dataset(*load_iris(return_X_y=True))
    >>> tree = Learner(estimator="sklearn.tree:DecisionTreeClassifier", options={"max_depth": 3})
    >>> study = Study(flowers, {"tree": tree})
    >>> fit_estimator(study, study.jobs[0]).probabilities["test"].shape
    (30, 3)
    """
    seed = job.seeds["init"]
    try:
        model = make_estimator(job.learner, study.folder, seed)
    except InputError as error:
        raise InputError(f"learners.{job.name}: {error}") from error
    rows = study.rows_of(job.n, job.fold)
    start = time.perf_counter()
    found: dict[str, Any] = {}
    own = names_own_code(str(job.learner.estimator))
    with watched(seed) as caught, importable(study.folder if own else None):
        try:
            loss = str(job.learner.loss)
            fit = partial(_regress, loss=loss) if study.examples.is_numbers else _train
            found = fit(model, study.examples, rows, study.evaluation_sets)
        except (Exception, SystemExit) as error:
            if spoilt_device(error):
                raise
            found = {"error": "".join(traceback.format_exception(error))}
    notes = (*warning_texts(caught), *((HARD_NOTE,) if found.get("hard") else ()))
    seconds = time.perf_counter() - start
    doubts = library_doubts()
    return Trained(seconds=seconds, path="scikit-learn", notes=notes, doubts=doubts, **found)


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
    kind = _named_class(place, folder)
    for method in ("fit", "predict"):
        if not callable(getattr(kind, method, None)):
            raise InputError(
                f"estimator={place!r} has no method {method}: name a class with fit(X, y) and "
                "predict(X), as scikit-learn's have."
            )
    options = dict(learner.options)
    try:
        with importable(folder if names_own_code(place) else None):  # files it imports only now
            model = construct(kind, options, seed)
    except TypeError as error:
        raise InputError(
            f"estimator={place!r} does not take the options {options!r}: {error}."
        ) from error
    except (Exception, SystemExit) as error:
        raise InputError(
            f"estimator={place!r} cannot be made with the options {options!r}: it "
            f"{failure(error, folder)}"
        ) from error
    if options and has_parameters(model):
        _check_options(place, options, model)
    return model


def _named_class(place: str, folder: Path | None) -> Any:
    try:
        return find_function("estimator", place, folder)
    except InputError as error:
        if getattr(error.__cause__, "name", None) == "sklearn":
            raise MissingDependencyError(
                f"estimator={place!r} needs scikit-learn, which is not installed: "
                'pip install "curvewise[sklearn]".'
            ) from error
        raise


def _check_options(place: str, options: Mapping[str, Any], model: Any) -> None:
    """Refuse what a class with ``**parameters`` would swallow."""
    known = model.get_params()
    for name in options:
        if name not in known:
            raise InputError(
                f"estimator={place!r} has no parameter {name!r}: it has {', '.join(known)}."
            )


def _train(
    model: Any, examples: Examples, rows: NDArray[np.int64], evaluations: Mapping[str, Examples]
) -> dict[str, Any]:
    x, y = _inputs(examples, rows), examples.y[rows]
    model.fit(x, y)
    hard = not hasattr(model, "predict_proba")
    # Made anew, because an estimator may have written into its input.
    seen = _probabilities(model, _inputs(examples, rows), examples.classes)
    metrics = {"train_error": float(np.mean(seen.argmax(axis=1) != y))}
    if not hard:
        metrics["train_loss"] = log_loss(seen, y)
    predicted = {
        name: _probabilities(model, _inputs(part), examples.classes)
        for name, part in evaluations.items()
    }
    return {"probabilities": predicted, "metrics": metrics, "hard": hard}


def _regress(
    model: Any,
    examples: Examples,
    rows: NDArray[np.int64],
    evaluations: Mapping[str, Examples],
    *,
    loss: str,
) -> dict[str, Any]:
    y = examples.y[rows]
    model.fit(_inputs(examples, rows), y[:, 0].copy() if y.shape[1:] == (1,) else y.copy())
    seen = as_predicted(model.predict(_inputs(examples, rows)), y.shape, "predict")
    predicted = {
        name: as_predicted(model.predict(_inputs(part)), part.y.shape, "predict")
        for name, part in evaluations.items()
    }
    metrics = {"train_loss": float(number_losses(seen, y, loss).mean(dtype=np.float64))}
    return {"predictions": predicted, "metrics": metrics}


def _inputs(examples: Examples, rows: NDArray[np.int64] | None = None) -> NDArray[Any]:
    """Rows of features; images become fractions of white in one long row."""
    x = examples.x.copy() if rows is None else examples.x[rows]
    if x.ndim == 2:
        return x
    return x.reshape(len(x), -1).astype(np.float32) / np.float32(255)


def _probabilities(model: Any, x: NDArray[Any], classes: int) -> NDArray[np.float32]:
    """One column for every class of the data, whichever of them the model has seen."""
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
        raise ValueError("predict_proba gave values that are no probabilities: NaN or below 0.")
    full = np.zeros((len(x), classes), dtype=np.float32)
    full[:, known.astype(np.int64)] = given
    return full
