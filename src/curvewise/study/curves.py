"""Measure learning curves of scikit-learn estimators, without a study."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import CurvewiseError, InputError, StoreError, importing, warn_all
from curvewise.learning.partition import Partition, entropy_of, geometric_sizes, partition_training_set
from curvewise.progress import progress_bar
from curvewise.reading.roles import direction, is_score
from curvewise.reading.table import is_missing
from curvewise.store.read import AnyPath, MissingRun, read_run
from curvewise.store.record import data_digest, describe, run_id
from curvewise.store.tables import failure_notes
from curvewise.store.write import write_run
from curvewise.study.data.dataset import hold_out
from curvewise.study.run.estimators import attempt, fresh_estimator
from curvewise.types.measurements import Measurements
from curvewise.types.results import Unit

RECIPE = "measure_learning_curve/1"  # counts up when the same coordinates would train otherwise

MetricLike: TypeAlias = "str | Callable[..., float]"


def measure_learning_curve(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    *,
    sizes: Sequence[float] | NDArray[Any] | None = None,
    folds: Sequence[int] | int | None = None,
    test: float | tuple[Any, ArrayLike] = 0.2,
    metric: MetricLike = "error",
    unit: str = "fraction",
    rng: int | np.random.Generator = 0,
    n_jobs: int = 1,
    store: AnyPath | None = None,
    nested: bool = False,
    stratify: bool | None = None,
    progress: bool | None = None,
    on_error: str = "record",
) -> Measurements:
    """Train an estimator on subsets of several sizes and measure each on the same test set.

    Takes the place of scikit-learn's ``learning_curve``. Instead of ::

        sizes, _, scores = learning_curve(model, X, y, train_sizes=[0.1, 0.5, 1.0], cv=5)

    write ::

        m = measure_learning_curve(model, X, y, sizes=[0.1, 0.5, 1.0], folds=5)

    and get errors rather than scores, one row per run. The subsets of one size do not overlap as
    long as the data suffice (scikit-learn's are nested prefixes, which makes the sizes dependent),
    runs that fail are kept as failed, and with ``store`` an interrupted call goes on where it was.

    Every run works on a clone whose parameters named ``random_state``, nested ones too, are set to
    the run's seed, and in one thread, so that nothing depends on ``n_jobs``. An object without
    scikit-learn's ``get_params`` is copied as it is, and the run's seed is set as its attribute
    ``random_state``, or else ``seed``; a class is called once for each run, with its seed as the
    argument of one of these names if it takes one.

    Parameters
    ----------
    estimator : estimator, class, or dict of str to either
        Anything with ``fit`` and ``predict``: an estimator of scikit-learn, pipelines included, an
        object of your own that was not fitted, or a class. Those of a dict get the same subsets
        and seeds, so that they can be compared pair by pair.
    X : array-like, sparse matrix, DataFrame or list, shape (examples, ...)
        Inputs, as the estimator takes them.
    y : array-like, shape (examples,)
        Targets.
    sizes : sequence of int or of float, optional
        Training-set sizes; numbers up to 1.0 are fractions of the training part. By default
        five, each twice the one before, up to all of it.
    folds : int or sequence of int, optional
        Subsets of each size; by default as many as fit without overlap, at most 16.
    test : float, int or (X_test, y_test)
        What is held out: a fraction, a number of examples, or a test set of its own.
    metric : str or callable
        ``"error"``, the share of wrong predictions; the name of a scikit-learn scorer; a scorer; or
        a function ``(y_true, y_pred) -> float`` with values in ``unit``. Values of scorers between 0 and 1
        become errors, ``1 - score``; negated losses become losses.
    unit : {"fraction", "percent", "loss", "score"}
        Unit of the measured values.
    rng : int or numpy.random.Generator
        Determines the test set, the subsets and the runs' seeds.
    n_jobs : int
        Processes; -1 for all cores.
    store : path, optional
        Folder in which each run is kept as soon as it is done. Runs that are there already are read
        and not trained again; failed ones are tried again.
    nested : bool
        Whether smaller subsets lie inside larger ones.
    stratify : bool, optional
        Whether subsets and test set keep the classes' proportions; by default when the target is a class.
    progress : bool, optional
        Whether to show a bar on stderr; by default on a terminal.
    on_error : {"record", "raise"}
        Keep a failed run as failed and go on, or raise its error.

    Returns
    -------
    Measurements
        One row per run, with labels fold, seed, fit_seconds and status. The error of a failed run
        is NaN and its status "failed"; ``notes`` say how many failed and why.

    Raises
    ------
    InputError
        If an argument cannot be used.
    CurvewiseError
        If all runs failed.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load_digits(return_X_y=True)
    >>> m = measure_learning_curve(GaussianNB(), X, y, sizes=[100, 400, 1400], folds=[8, 3, 1])
    >>> len(m), m.learners
    (12, ('GaussianNB',))
    >>> bool(m.error[m.n == 100].mean() > m.error[m.n == 1400].mean())
    True
    """
    with importing("Training estimators needs scikit-learn", "sklearn"):
        import sklearn  # noqa: F401
    if on_error not in ("record", "raise"):
        raise InputError("use 'record' or 'raise'.", argument="on_error", value=on_error)
    if n_jobs == 0:
        raise InputError("give a number of processes, or -1 for all cores.", argument="n_jobs", value=n_jobs)
    learners = _named(estimator)
    made = _fresh(learners)
    judge = resolve_metric(metric, unit)
    entropy = entropy_of(rng)
    X, target = _check_data(X, y)
    stratified, notes = _decide_stratification(stratify, target, made, metric)
    train, data, split_note = _split(X, target, test, stratified, entropy)
    subset = target[train]
    if sizes is None:
        sizes = geometric_sizes(len(train), minimum=min(len(np.unique(subset)) if stratified else 2, len(train)))
    labels = subset if stratified else len(train)
    partition = partition_training_set(labels, sizes, folds, nested=nested, stratify=stratified, rng=entropy)
    tasks = _plan(learners, made, partition, train, entropy, data, judge)
    setup = CurveSetup(data, judge, None if store is None else Path(store), on_error)
    outcomes, damaged = _train_all(tasks, setup, n_jobs, progress)
    notes = (split_note, *notes, *partition.warnings, *_troubles(tasks, outcomes, damaged))
    return Measurements(
        learner=np.array([t.learner for t in tasks]),
        n=np.array([t.n for t in tasks], dtype=np.float64),
        error=np.array([o.error for o in outcomes], dtype=np.float64),
        unit=judge.unit,
        labels={
            "fold": np.array([t.fold for t in tasks]),
            "seed": np.array([t.seed for t in tasks]),
            "fit_seconds": np.array([o.fit_seconds for o in outcomes]),
            "status": np.array(["done" if o.reason is None else "failed" for o in outcomes]),
        },
        notes=tuple(notes),
    )


@dataclass(frozen=True, eq=False)
class CurveData:
    """Examples to train and to test on; ``test`` holds positions in ``X_test`` and ``y_test``."""

    X: Any
    y: NDArray[Any]
    X_test: Any
    y_test: NDArray[Any]
    test: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class CurveTask:
    """One run to be made: an estimator, the positions of its training examples, a seed."""

    learner: str
    estimator: Any
    n: int
    fold: int
    seed: int
    rows: NDArray[np.int64]
    coordinates: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class CurvePoint:
    """The outcome of a task; ``error`` is NaN where it failed, for ``reason``."""

    error: float
    fit_seconds: float
    reason: str | None = None
    caught: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class CurveSetup:
    """Data, metric and store, which all tasks share and each process is sent."""

    data: CurveData
    metric: Metric
    store: Path | None = None
    on_error: str = "record"


def _named(estimator: Any) -> dict[str, Any]:
    learners = estimator
    if isinstance(estimator, type):
        learners = {estimator.__name__: estimator}
    elif not isinstance(estimator, Mapping):
        steps = [step for _, step in getattr(estimator, "steps", [])] or [estimator]  # of a pipeline
        learners = {" + ".join(s if isinstance(s, str) else type(s).__name__ for s in steps): estimator}
    if not learners:
        raise InputError("estimator is an empty dict: pass at least one estimator.")
    for name, learner in learners.items():
        lacking = [m for m in ("fit", "predict") if not callable(getattr(learner, m, None))]
        if lacking:
            raise InputError(
                f"estimator {name!r} is a {type(learner).__name__}, which lacks "
                f"{' and '.join(lacking)}: pass an estimator with fit(X, y) and predict(X)."
            )
    found = {str(name): learner for name, learner in learners.items()}
    if len(found) < len(learners):
        raise InputError(f"estimator has names that are written alike: {list(learners)}. Give each its own.")
    return found


def _fresh(learners: Mapping[str, Any]) -> dict[str, Any]:
    """An instance of each estimator, as every run will have one of its own."""
    made = {}
    for name, learner in learners.items():
        try:
            made[name] = fresh_estimator(learner, 0)
        except Exception as error:
            way = "made without arguments" if isinstance(learner, type) else "copied for each run"
            raise InputError(
                f"estimator {name!r} cannot be {way} ({type(error).__name__}: {error}): pass an unfitted object that "
                "copy.deepcopy copies, or a class whose arguments all have defaults."
            ) from error
    return made


def _check_data(X: Any, y: ArrayLike) -> tuple[Any, NDArray[Any]]:
    """Check that inputs and targets belong together, and make them ready to be indexed."""
    from sklearn.utils import indexable

    target = np.asarray(y)
    try:
        X, _ = indexable(X, target)
    except (ValueError, TypeError) as error:
        raise InputError(f"X and y cannot be used together: {error}") from error
    missing = 0
    if target.dtype.kind in "fO":
        missing = sum(not isinstance(v, str) and is_missing(v) for v in target.ravel())
    if missing:
        raise InputError(f"y holds {missing} missing label(s) or NaN(s): drop these examples.")
    return X, target


def _decide_stratification(
    asked: bool | None, y: NDArray[Any], learners: Mapping[str, Any], metric: MetricLike
) -> tuple[bool, tuple[str, ...]]:
    """Decide whether to stratify, and say so where it was decided for the user."""
    continuous = y.ndim > 1 or (y.dtype.kind == "f" and bool(np.any(y != np.round(y))))
    regression = any(_is_regressor(learner) for learner in learners.values())
    if (continuous or regression) and metric == "error":
        loss = "a loss, such as metric='neg_mean_squared_error', with unit='loss'"
        raise InputError(
            f"counts wrong classes and this is a regression: pass {loss}.", argument="metric", value=metric
        )
    if asked is not None:
        return asked, ()
    if continuous or regression:
        return False, ("The target is not a class, so subsets and test set are not stratified.",)
    return True, ()


def _is_regressor(estimator: Any) -> bool:
    from sklearn.base import is_regressor

    try:
        return bool(is_regressor(estimator))
    except (AttributeError, TypeError):  # made by hand, without scikit-learn's tags
        return getattr(estimator, "_estimator_type", None) == "regressor"


def _split(
    X: Any, y: NDArray[Any], test: Any, stratify: bool, entropy: int
) -> tuple[NDArray[np.int64], CurveData, str]:
    """Give the positions of the training part, the data, and a note on the test set."""
    if isinstance(test, tuple | list):
        if len(test) != 2:
            raise InputError(f"test has {len(test)} parts: pass (X_test, y_test).")
        X_test, y_test = _check_data(*test)
        own = np.arange(len(y_test), dtype=np.int64)
        note = f"Measured on a test set of its own with {len(y_test)} examples."
        return np.arange(len(y), dtype=np.int64), CurveData(X, y, X_test, y_test, own), note
    train, held = hold_out(y, test, stratify, entropy)
    return train, CurveData(X, y, X, y, held), f"Measured on {len(held)} held-out examples of {len(y)}."


def _plan(
    learners: Any,
    made: Any,
    partition: Partition,
    train: NDArray[np.int64],
    entropy: int,
    data: CurveData,
    metric: Metric,
) -> list[CurveTask]:
    """List the runs with their coordinates; ``made`` are estimators as each run will have one of its own."""
    held = [data_digest(part) for part in (data.X_test, data.y_test, data.test)]
    shared = {
        "recipe": RECIPE,
        "data": data_digest([data_digest(data.X), data_digest(data.y)]),
        "test": data_digest(held),
        "metric": metric.name,
        "unit": metric.unit.name,
    }
    tasks = []
    for name, estimator in learners.items():
        own = {**shared, "learner": name, "estimator": data_digest([describe(made[name])])}
        for s in partition:
            seed = int(np.random.SeedSequence([entropy, s.n, s.fold]).generate_state(1)[0])
            rows = train[s.indices]
            coordinates = {**own, "n": s.n, "fold": s.fold, "seed": seed, "subset": data_digest(rows)}
            tasks.append(CurveTask(name, estimator, s.n, s.fold, seed, rows, coordinates))
    return tasks


# ---- Training


def _train_all(
    tasks: Sequence[CurveTask], setup: CurveSetup, n_jobs: int = 1, progress: bool | None = None
) -> tuple[list[CurvePoint], list[str]]:
    """Train the runs that the store lacks; give all outcomes in order, and what was wrong with stored runs."""
    from joblib import Parallel, delayed

    outcomes, damaged = _stored(tasks, setup.store)
    # The largest first, so that no process is left alone with one at the end.
    waiting = sorted((i for i in range(len(tasks)) if i not in outcomes), key=lambda i: -tasks[i].n)
    parallel = Parallel(n_jobs=n_jobs, backend="loky", return_as="generator_unordered")
    with progress_bar("training", sum(tasks[i].n for i in waiting), progress) as advance:
        for i, outcome in parallel(delayed(_train_one)(i, tasks[i], setup) for i in waiting):
            outcomes[i] = outcome
            advance(tasks[i].n)
    return [outcomes[i] for i in range(len(tasks))], damaged


def _stored(tasks: Sequence[CurveTask], store: Path | None) -> tuple[dict[int, CurvePoint], list[str]]:
    outcomes: dict[int, CurvePoint] = {}
    damaged: list[str] = []
    if store is None:
        return outcomes, damaged
    for i, task in enumerate(tasks):
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
            outcomes[i] = CurvePoint(value, seconds, caught=run.notes)
    return outcomes, damaged


def _train_one(i: int, task: CurveTask, setup: CurveSetup) -> tuple[int, CurvePoint]:
    """Make one run and store it; its number comes back with it, since runs finish in any order."""
    fitted: list[float] = []
    tried = attempt(partial(_fit_and_judge, task, setup, fitted), task.seed)
    if tried.error is not None and setup.on_error == "raise":
        raise tried.error
    predictions, value, reason, error_text = None, np.nan, None, None
    if tried.error is not None:
        reason, error_text = f"{type(tried.error).__name__}: {tried.error}", tried.traceback
    else:
        predictions, value = tried.result
        if np.isfinite(value):
            setup.metric.check(value)  # a wrong unit is for the user to correct
        else:
            reason = error_text = f"the metric is {value}"
    seconds = fitted[0] if fitted else np.nan
    point = CurvePoint(value if reason is None else np.nan, seconds, reason, tried.warnings)
    if setup.store is not None:
        array = np.asarray(predictions)
        if array.dtype.hasobject:  # strings, say; whatever else would need pickle is not kept
            array = np.asarray(array.tolist())
        write_run(
            setup.store,
            task.coordinates,
            None if array.dtype.hasobject else array,
            {"error": point.error, "fit_seconds": seconds},
            error=error_text,
            notes=tried.warnings,
            overwrite=True,
        )
    return i, point


def _fit_and_judge(task: CurveTask, setup: CurveSetup, fitted: list[float]) -> tuple[Any, float]:
    """Fit, predict and judge; ``fitted`` is given the seconds of the fit, which count even if judging fails."""
    from sklearn.utils import _safe_indexing

    data, metric = setup.data, setup.metric
    start = time.perf_counter()
    model = fresh_estimator(task.estimator, task.seed)
    model.fit(_safe_indexing(data.X, task.rows), data.y[task.rows])
    fitted.append(time.perf_counter() - start)
    # Indexing copies, so that an estimator that writes into its input spoils nothing.
    X, y = _safe_indexing(data.X_test, data.test), data.y_test[data.test]
    predictions = model.predict(X)
    if metric.scorer is not None:
        X = _safe_indexing(data.X_test, data.test)
    return predictions, metric(model, X, y, predictions)


def _troubles(tasks: Sequence[CurveTask], outcomes: Sequence[CurvePoint], damaged: Sequence[str]) -> list[str]:
    """Report what failed or warned; failures are Python warnings too."""
    failed = [(t.learner, o.reason) for t, o in zip(tasks, outcomes, strict=True) if o.reason is not None]
    if len(failed) == len(tasks):
        raise CurvewiseError(f"All {len(tasks)} runs failed. The first: {outcomes[0].reason}")
    serious = failure_notes(failed, len(tasks))
    if damaged:
        serious.append(f"{len(damaged)} damaged run(s) were trained again: {damaged[0]}")
    warn_all(serious, stacklevel=4)
    # The runs of each learner that raised a kind of warning are counted, with its first text.
    texts: dict[tuple[str, str], list[str]] = {}
    for task, outcome in zip(tasks, outcomes, strict=True):
        for kind, text in {text.split(":")[0]: text for text in reversed(outcome.caught)}.items():
            texts.setdefault((task.learner, kind), []).append(text)
    counted = [(learner, len(found), found[0]) for (learner, _), found in sorted(texts.items())]
    return serious + [f"{many} of {len(tasks)} runs warned ({who}): {first}" for who, many, first in counted]


# ---- Metrics


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
        ``(estimator, X, y) -> float``, larger is better, as in scikit-learn; that of a loss is negated.
    """

    name: str
    unit: Unit
    function: Callable[[Any, Any], float] | None = None
    scorer: Callable[[Any, Any, Any], float] | None = None

    def __call__(self, model: Any, X: Any, y: Any, predictions: Any) -> float:
        """Judge a trained model by its predictions for X."""
        if self.function is not None:
            return float(self.function(y, predictions))
        assert self.scorer is not None
        score = float(self.scorer(model, X, y))
        if self.unit.name == "loss":  # negated, as scikit-learn's scorers of losses are
            return -score
        return self.unit.top * (1.0 - score) if self.unit.bounded else score

    def check(self, value: float) -> None:
        """Raise for a value that the unit cannot have."""
        try:
            self.unit.errors([value], "metric")
        except InputError:
            if self.scorer is None:
                raise
            problem = f"gave {1.0 - value / self.unit.top:g}, and only scores between 0 and 1 become errors: pass"
            raise InputError(f"{problem} unit='score'.", argument="metric", value=self.name) from None


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
            problem = f"a share of wrong classes is not a {unit}: use unit='fraction' or 'percent', or another metric."
            raise InputError(problem, argument="metric", value=metric)
        return Metric("error", meaning, function=partial(_wrong, whole=meaning.top))
    if isinstance(metric, str) or hasattr(metric, "_sign"):
        return _from_scorer(metric, meaning)
    if not callable(metric):
        problem = "pass 'error', the name of a scikit-learn scorer, or a function (y_true, y_pred) -> float."
        raise InputError(problem, argument="metric", value=metric)
    _check_meaning(metric, meaning)
    return Metric(describe(metric), meaning, function=metric)


def _check_meaning(metric: Callable[..., float], unit: Unit) -> None:
    """Refuse a function whose name says the opposite of the unit, such as accuracy_score for a share of errors."""
    function = getattr(metric, "func", metric)  # of functools.partial
    name, higher = getattr(function, "__name__", ""), direction(getattr(function, "__name__", ""))
    # A function of one's own that is called a score may return anything; one of scikit-learn does not.
    if is_score(name) and not str(getattr(function, "__module__", "")).startswith("sklearn."):
        return
    if higher is not None and higher != unit.higher_is_better:
        better, taken = ("higher", "errors") if higher else ("lower", "scores")
        way = "pass the name of a scorer, or unit='score'" if higher else "pass unit='loss'"
        problem = f"is {name}, for which {better} is better, and values in unit={unit.name!r} are {taken}: {way}."
        raise InputError(problem, argument="metric")


def _from_scorer(metric: Any, unit: Unit) -> Metric:
    from sklearn.metrics import get_scorer

    try:
        scorer: Any = get_scorer(metric) if isinstance(metric, str) else metric
    except ValueError as error:
        ways = "'error', a name out of sklearn.metrics.get_scorer_names(), or a function (y_true, y_pred) -> float"
        raise InputError(f"not known; pass {ways}.", argument="metric", value=metric) from error
    loss = getattr(scorer, "_sign", 1) < 0
    if loss != (unit.name == "loss"):
        right = "unit='loss'" if loss else "unit='fraction' or 'percent' (1 - score) or 'score'"
        raise InputError(f"metric={metric!r} with unit={unit.name!r}: pass {right}.")
    name = metric if isinstance(metric, str) else describe(metric)
    return Metric(name, unit, scorer=scorer)


def _wrong(y: Any, predictions: Any, whole: float) -> float:
    """Return the share of wrong classes, of a whole of 1 or 100."""
    truth, predicted = np.asarray(y), np.asarray(predictions)
    if truth.shape != predicted.shape:
        raise ValueError(f"predictions have shape {predicted.shape}, the labels {truth.shape}")
    return whole * float(np.mean(truth != predicted))
