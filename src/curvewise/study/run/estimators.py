"""Train estimators on subsets, in parallel, and keep each run in a store."""

from __future__ import annotations

import copy
import inspect
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError, MissingDependencyError, StoreError
from curvewise.nn.devices import ONE_AT_A_TIME, spoilt_device
from curvewise.nn.own_code import failure, find_function, importable, names_own_code
from curvewise.nn.task import Examples, Trained
from curvewise.progress import progress_bar
from curvewise.store.read import MissingRun, read_run
from curvewise.store.record import describe, run_id
from curvewise.store.write import write_run
from curvewise.study.data.dataset import HARD_NOTE, as_predicted, log_loss, number_losses, one_hot
from curvewise.study.spec.learner import Learner
from curvewise.types.units import Unit

if TYPE_CHECKING:
    from curvewise.study.spec.study import Job, StudySpec


@dataclass(frozen=True, eq=False)
class Data:
    """Examples to train and to test on; ``test`` holds positions in ``X_test`` and ``y_test``."""

    X: Any
    y: NDArray[Any]
    X_test: Any
    y_test: NDArray[Any]
    test: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Task:
    """One run to be made: an estimator, the positions of its training examples, a seed."""

    learner: str
    estimator: Any
    n: int
    fold: int
    seed: int
    train: NDArray[np.int64]
    coordinates: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Outcome:
    """What came of a task; ``error`` is NaN when it failed, and ``reason`` says why."""

    error: float
    fit_seconds: float
    reason: str | None = None
    caught: tuple[str, ...] = ()

    @property
    def status(self) -> str:
        """Either ``"done"`` or ``"failed"``."""
        return "done" if self.reason is None else "failed"


@dataclass(frozen=True)
class Metric:
    """A metric whose values are errors, losses or scores in one unit.

    Attributes
    ----------
    name : str
        What tells this metric from others in a run's coordinates.
    unit : Unit
        Unit of the values.
    function : callable, optional
        ``(y_true, y_pred) -> float``.
    scorer : callable, optional
        ``(estimator, X, y) -> float``, larger is better, as in scikit-learn.
    loss : bool
        Whether the scorer gives a negated loss.
    """

    name: str
    unit: Unit
    function: Callable[[Any, Any], float] | None = None
    scorer: Callable[[Any, Any, Any], float] | None = None
    loss: bool = False

    def __call__(self, model: Any, X: Any, y: Any, predictions: Any) -> float:
        """Judge a trained model by its predictions for X."""
        if self.function is not None:
            return float(self.function(y, predictions))
        assert self.scorer is not None
        score = float(self.scorer(model, X, y))
        if self.loss:
            return -score
        return self.unit.top * (1.0 - score) if self.unit.bounded else score


@dataclass(frozen=True, eq=False)
class Workplace:
    """What all tasks share."""

    data: Data
    metric: Metric
    store: Path | None = None
    on_error: str = "record"


def train_all(
    tasks: Sequence[Task], place: Workplace, n_jobs: int = 1, progress: bool | None = None
) -> tuple[list[Outcome], list[str]]:
    """Train what the store lacks.

    Parameters
    ----------
    tasks : sequence of Task
        What to train.
    place : Workplace
        Data, metric and store.
    n_jobs : int
        Processes, as joblib counts them.
    progress : bool, optional
        Whether to show a bar; by default when stderr is a terminal.

    Returns
    -------
    outcomes : list of Outcome
        In the order of the tasks, whatever the order of their completion.
    damaged : list of str
        What was wrong with stored runs that were trained again.
    """
    from joblib import Parallel, delayed

    outcomes, damaged = _stored(tasks, place.store)
    # The largest first, so that no process is left alone with one at the end.
    waiting = sorted((i for i in range(len(tasks)) if i not in outcomes), key=lambda i: -tasks[i].n)
    parallel = Parallel(n_jobs=n_jobs, backend="loky", return_as="generator_unordered")
    with progress_bar("training", sum(tasks[i].n for i in waiting), progress) as advance:
        for i, outcome in parallel(delayed(_numbered)(i, tasks[i], place) for i in waiting):
            outcomes[i] = outcome
            advance(tasks[i].n)
    return [outcomes[i] for i in range(len(tasks))], damaged


SEEDS = ("random_state", "seed")
"""What classes call their seed."""


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
    """Tell whether an estimator, or a class, has scikit-learn's parameters."""
    return all(callable(getattr(estimator, name, None)) for name in ("get_params", "set_params"))


def set_seeds(model: Any, seed: int) -> Any:
    """Set every parameter named ``random_state``, nested ones too, and return the estimator."""
    names = [k for k in model.get_params() if k == "random_state" or k.endswith("__random_state")]
    return model.set_params(**dict.fromkeys(names, seed)) if names else model


@contextmanager
def watched(seed: int) -> Iterator[list[warnings.WarningMessage]]:
    """Record warnings; make what happens independent of threads and of numpy's global state.

    Other threads of this process wait meanwhile.
    """
    try:
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            'Training estimators needs threadpoolctl, which is not installed: pip install "curvewise[sklearn]".'
        ) from error

    with ONE_AT_A_TIME:
        state = np.random.get_state()  # noqa: NPY002
        try:
            with warnings.catch_warnings(record=True) as caught, threadpool_limits(limits=1):
                warnings.simplefilter("always")
                np.random.seed(seed)  # noqa: NPY002
                yield caught
        finally:
            np.random.set_state(state)  # noqa: NPY002


def library_doubts() -> tuple[str, ...]:
    """Why the bits of an estimator may be others when it is fitted again, if they may."""
    from threadpoolctl import threadpool_info

    if all(library["internal_api"] != "mkl" for library in threadpool_info()):
        return ()
    return ("numpy computes with MKL, which rounds by where arrays lie in memory: made again, the bits may be others.",)


def warning_texts(caught: Sequence[warnings.WarningMessage]) -> tuple[str, ...]:
    """Write each of the warnings once."""
    return tuple(dict.fromkeys(f"{w.category.__name__}: {w.message}" for w in caught))


def _stored(tasks: Sequence[Task], store: Path | None) -> tuple[dict[int, Outcome], list[str]]:
    outcomes: dict[int, Outcome] = {}
    damaged: list[str] = []
    for i, task in enumerate(tasks if store is not None else ()):
        assert store is not None
        path = store / run_id(task.coordinates)
        try:
            run = read_run(path)
        except MissingRun:
            continue
        except StoreError as error:
            damaged.append(str(error))
            continue
        if run.status == "done":  # a failed run gets another chance
            value, seconds = (run.metrics.get(k, np.nan) for k in ("error", "fit_seconds"))
            outcomes[i] = Outcome(value, seconds, caught=run.notes)
    return outcomes, damaged


def _numbered(i: int, task: Task, place: Workplace) -> tuple[int, Outcome]:
    return i, train(task, place)


def train(task: Task, place: Workplace) -> Outcome:
    """Make one run and store it."""
    predictions, error_text, value, reason = None, None, np.nan, None
    with watched(task.seed) as caught:
        start = time.perf_counter()
        seconds = np.nan
        try:
            model = _fit(task, place.data)
            seconds = time.perf_counter() - start
            predictions, value = _judge(model, place.data, place.metric)
        except Exception as error:
            if place.on_error == "raise":
                raise
            reason = f"{type(error).__name__}: {error}"
            error_text = "".join(traceback.format_exception(error))
    if reason is None and not np.isfinite(value):
        reason = error_text = f"the metric is {value}"
    elif reason is None:
        place.metric.unit.errors([value], "metric")  # a wrong unit is the user's to mend
    messages = warning_texts(caught)
    outcome = Outcome(value if reason is None else np.nan, seconds, reason, messages)
    if place.store is not None:
        write_run(
            place.store,
            task.coordinates,
            _storable(predictions),
            {"error": outcome.error, "fit_seconds": seconds},
            status=outcome.status,
            error=error_text,
            notes=messages,
            overwrite=True,
        )
    return outcome


def _fit(task: Task, data: Data) -> Any:
    from sklearn.utils import _safe_indexing

    model = fresh_estimator(task.estimator, task.seed)
    model.fit(_safe_indexing(data.X, task.train), data.y[task.train])
    return model


def _judge(model: Any, data: Data, metric: Metric) -> tuple[Any, float]:
    from sklearn.utils import _safe_indexing

    # Indexing copies, so that an estimator that writes into its input spoils nothing.
    X, y = _safe_indexing(data.X_test, data.test), data.y_test[data.test]
    predictions = model.predict(X)
    if metric.scorer is not None:
        X = _safe_indexing(data.X_test, data.test)
    return predictions, metric(model, X, y, predictions)


def _storable(predictions: Any) -> NDArray[Any] | None:
    """Turn strings in an object array into a plain array; None where there is no plain array."""
    array = np.asarray(predictions)
    if array.dtype.hasobject:
        array = np.asarray(array.tolist())
    return None if array.dtype.hasobject else array


# Train an estimator of scikit-learn, or any class with ``fit`` and ``predict``, for a study.


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
        told in ``error``; warnings are in ``notes``.

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
        raise InputError(f"estimator={place!r} does not take the options {options!r}: {error}.") from error
    except (Exception, SystemExit) as error:
        raise InputError(
            f"estimator={place!r} cannot be made with the options {options!r}: it {failure(error, folder)}"
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
                f'estimator={place!r} needs scikit-learn, which is not installed: pip install "curvewise[sklearn]".'
            ) from error
        raise


def _check_options(place: str, options: Mapping[str, Any], model: Any) -> None:
    """Refuse what a class with ``**parameters`` would swallow."""
    known = model.get_params()
    for name in options:
        if name not in known:
            raise InputError(f"estimator={place!r} has no parameter {name!r}: it has {', '.join(known)}.")


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
    predicted = {name: _probabilities(model, _inputs(part), examples.classes) for name, part in evaluations.items()}
    return {"probabilities": predicted, "metrics": metrics, "hard": hard}


def _regress(
    model: Any, examples: Examples, rows: NDArray[np.int64], evaluations: Mapping[str, Examples], *, loss: str
) -> dict[str, Any]:
    y = examples.y[rows]
    model.fit(_inputs(examples, rows), y[:, 0].copy() if y.shape[1:] == (1,) else y.copy())
    seen = as_predicted(model.predict(_inputs(examples, rows)), y.shape, "predict")
    predicted = {
        name: as_predicted(model.predict(_inputs(part)), part.y.shape, "predict") for name, part in evaluations.items()
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


# How a trained estimator is judged: a metric by name or as a function, with its unit.

MetricLike: TypeAlias = "str | Callable[..., float]"


def resolve_metric(metric: MetricLike, unit: str) -> Metric:
    """Turn what the user calls a metric into a :class:`Metric`.

    Parameters
    ----------
    metric : str or callable
        ``"error"`` (the share of wrong classes), the name of a scikit-learn scorer, a scorer, or a
        function ``(y_true, y_pred) -> float`` whose values are in ``unit``.
    unit : {"fraction", "percent", "loss", "score"}
        Unit of the values. Scorers between 0 and 1 become errors, ``1 - score``, in a fraction or
        percent; negated losses become losses again.
    """
    meaning = Unit(unit, higher_is_better=unit == "score")
    if metric == "error":
        if not meaning.bounded:
            raise InputError(
                f"metric='error' is a share of wrong classes, which is no {unit}: use "
                "unit='fraction' or 'percent', or another metric."
            )
        wrong = _percent_wrong if unit == "percent" else _fraction_wrong
        return Metric("error", meaning, function=wrong)
    if isinstance(metric, str) or hasattr(metric, "_sign"):
        return _from_scorer(metric, meaning)
    if not callable(metric):
        raise InputError(
            f"metric={metric!r}: pass 'error', the name of a scikit-learn scorer, or a function "
            "(y_true, y_pred) -> float."
        )
    return Metric(describe(metric), meaning, function=metric)


def _from_scorer(metric: Any, unit: Unit) -> Metric:
    from sklearn.metrics import get_scorer

    try:
        scorer: Any = get_scorer(metric) if isinstance(metric, str) else metric
    except ValueError as error:
        raise InputError(
            f"metric={metric!r} is not known: pass 'error', a name out of "
            "sklearn.metrics.get_scorer_names(), or a function (y_true, y_pred) -> float."
        ) from error
    loss = getattr(scorer, "_sign", 1) < 0
    if loss != (unit.name == "loss"):
        right = "unit='loss'" if loss else "unit='fraction' or 'percent' (1 - score) or 'score'"
        raise InputError(f"metric={metric!r} with unit={unit.name!r}: pass {right}.")
    name = metric if isinstance(metric, str) else describe(metric)
    return Metric(name, unit, scorer=scorer, loss=loss)


def _fraction_wrong(y: Any, predictions: Any) -> float:
    truth, predicted = np.asarray(y), np.asarray(predictions)
    if truth.shape != predicted.shape:
        raise ValueError(f"predictions have shape {predicted.shape}, the labels {truth.shape}")
    return float(np.mean(truth != predicted))


def _percent_wrong(y: Any, predictions: Any) -> float:
    return 100.0 * _fraction_wrong(y, predictions)
