"""Train estimators on subsets, in parallel, and keep each run in a store."""

from __future__ import annotations

import copy
import inspect
import time
import traceback
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import MissingDependencyError, StoreError
from curvewise.io._stored import MissingRun
from curvewise.nn._flags import ONE_AT_A_TIME
from curvewise.progress import progress_bar
from curvewise.study._record import run_id
from curvewise.study.scoring import Metric
from curvewise.study.store import read_run, write_run


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
        if name in getattr(made, "__dict__", {}) and isinstance(
            getattr(made, name), int | np.integer | None
        ):
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
            "Training estimators needs threadpoolctl, which is not installed: pip install "
            '"curvewise[sklearn]".'
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
    return (
        "numpy computes with MKL, which rounds by where arrays lie in memory: made again, the bits "
        "may be others.",
    )


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
