"""Learning curves of scikit-learn estimators, measured."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import CurvewiseError, CurvewiseWarning, InputError, MissingDependencyError
from curvewise.learning.partition import Partition, entropy_of, geometric_sizes, partition_training_set
from curvewise.store.read import AnyPath
from curvewise.store.record import data_digest, describe
from curvewise.study.run.estimators import (
    Data,
    Metric,
    MetricLike,
    Outcome,
    Task,
    Workplace,
    fresh_estimator,
    resolve_metric,
    train_all,
)
from curvewise.types.measurements import Measurements

RECIPE = "measure_learning_curve/1"  # counts up when the same coordinates would train otherwise


class MeasureOptions(TypedDict, total=False):
    """Rarer options of :func:`measure_learning_curve`, which describes them."""

    nested: bool
    stratify: bool | None
    progress: bool | None
    on_error: str


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
    **options: Unpack[MeasureOptions],
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
        a function ``(y_true, y_pred) -> float`` with values in ``unit``. Scores between 0 and 1
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
    **options
        ``nested`` (False): smaller subsets lie inside larger ones.
        ``stratify`` (None): whether subsets and test set keep the classes' proportions; by default
        when the target is a class. ``progress`` (None): whether to show a bar on stderr; by default
        on a terminal. ``on_error`` ("record"): keep a failed run as failed and go on, or "raise".

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
    _require_sklearn()
    chosen = _check_options(dict(options))
    if n_jobs == 0:
        raise InputError("n_jobs=0 is no number of processes: pass at least 1, or -1 for all cores.")
    learners = _named(estimator)
    made = _fresh(learners)
    judge = resolve_metric(metric, unit)
    entropy = entropy_of(rng)
    X, target = check_data(X, y)
    stratify, notes = decide_stratification(chosen["stratify"], target, made, metric)
    train, data, split_note = hold_out(X, target, test, stratify, entropy)
    partition = draw_partition(target[train], sizes, folds, chosen["nested"], stratify, entropy)
    about = {name: data_digest([describe(model)]) for name, model in made.items()}
    shared = _fingerprint(data, judge)
    tasks = _plan(learners, about, partition, train, entropy, shared)
    folder = None if store is None else Path(store)
    place = Workplace(data, judge, folder, chosen["on_error"])
    outcomes, damaged = train_all(tasks, place, n_jobs, chosen["progress"])
    notes = (split_note, *notes, *partition.warnings, *_troubles(tasks, outcomes, damaged))
    return _measurements(tasks, outcomes, judge, notes)


def _require_sklearn() -> None:
    try:
        import sklearn  # noqa: F401
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            'Training estimators needs scikit-learn: pip install "curvewise[sklearn]".'
        ) from error


def _check_options(options: dict[str, Any]) -> dict[str, Any]:
    defaults = {"nested": False, "stratify": None, "progress": None, "on_error": "record"}
    if unknown := options.keys() - defaults.keys():
        raise TypeError(
            f"measure_learning_curve() got unexpected options {sorted(unknown)}; beside the named "
            f"arguments it takes {sorted(defaults)}."
        )
    chosen = defaults | options
    if chosen["on_error"] not in ("record", "raise"):
        raise InputError(f"on_error={chosen['on_error']!r}: use 'record' or 'raise'.")
    return chosen


def _named(estimator: Any) -> dict[str, Any]:
    learners = estimator if isinstance(estimator, Mapping) else {_name(estimator): estimator}
    if not learners:
        raise InputError("estimator is an empty dict: pass at least one estimator.")
    for name, learner in learners.items():
        lacking = [m for m in ("fit", "predict") if not callable(getattr(learner, m, None))]
        if lacking:
            raise InputError(
                f"estimator {name!r} is a {type(learner).__name__}, which lacks "
                f"{' and '.join(lacking)}: pass an estimator with fit(X, y) and predict(X)."
            )
    return {str(name): learner for name, learner in learners.items()}


def _fresh(learners: Mapping[str, Any]) -> dict[str, Any]:
    """An instance of each estimator, as every run will have one of its own."""
    made = {}
    for name, learner in learners.items():
        try:
            made[name] = fresh_estimator(learner, 0)
        except Exception as error:
            way = "made without arguments" if isinstance(learner, type) else "copied for each run"
            raise InputError(
                f"estimator {name!r} cannot be {way} ({type(error).__name__}: {error}): pass an "
                "unfitted object that copy.deepcopy copies, or a class whose arguments all have "
                "defaults."
            ) from error
    return made


def _name(estimator: Any) -> str:
    if isinstance(estimator, type):
        return estimator.__name__
    steps = [step for _, step in getattr(estimator, "steps", [])] or [estimator]
    return " + ".join(step if isinstance(step, str) else type(step).__name__ for step in steps)


def _fingerprint(data: Data, metric: Metric) -> dict[str, Any]:
    """Give the coordinates that all runs share."""
    held = [data_digest(part) for part in (data.X_test, data.y_test, data.test)]
    return {
        "recipe": RECIPE,
        "data": data_digest([data_digest(data.X), data_digest(data.y)]),
        "test": data_digest(held),
        "metric": metric.name,
        "unit": metric.unit.name,
    }


def _plan(
    learners: Mapping[str, Any],
    about: Mapping[str, str],
    partition: Partition,
    train: NDArray[np.int64],
    entropy: int,
    shared: Mapping[str, Any],
) -> list[Task]:
    tasks = []
    for name, estimator in learners.items():
        for s in partition:
            seed = int(np.random.SeedSequence([entropy, s.n, s.fold]).generate_state(1)[0])
            rows = train[s.indices]
            coordinates = {
                **shared,
                "learner": name,
                "estimator": about[name],
                "n": s.n,
                "fold": s.fold,
                "seed": seed,
                "subset": data_digest(rows),
            }
            tasks.append(Task(name, estimator, s.n, s.fold, seed, rows, coordinates))
    return tasks


def _troubles(tasks: Sequence[Task], outcomes: Sequence[Outcome], damaged: Sequence[str]) -> list[str]:
    """Say in words what failed or warned; failures are Python warnings too."""
    failed = Counter((t.learner, o.reason) for t, o in zip(tasks, outcomes, strict=True) if o.reason is not None)
    if failed.total() == len(tasks):
        raise CurvewiseError(f"All {len(tasks)} runs failed. The first: {outcomes[0].reason}")
    serious = [
        f"{count} of {len(tasks)} runs failed ({learner}): {reason}" for (learner, reason), count in failed.items()
    ]
    if damaged:
        serious.append(f"{len(damaged)} stored run(s) were trained again: {damaged[0]}")
    for note in serious:
        warnings.warn(note, CurvewiseWarning, stacklevel=3)
    return serious + _training_warnings(tasks, outcomes)


def _training_warnings(tasks: Sequence[Task], outcomes: Sequence[Outcome]) -> list[str]:
    """Count the runs of each learner that raised a kind of warning, with its first text."""
    texts: dict[tuple[str, str], list[str]] = {}
    for task, outcome in zip(tasks, outcomes, strict=True):
        of_kind = {text.split(":")[0]: text for text in reversed(outcome.caught)}
        for kind, text in of_kind.items():
            texts.setdefault((task.learner, kind), []).append(text)
    return [
        f"{len(found)} of {len(tasks)} runs warned ({learner}): {found[0]}"
        for (learner, _), found in sorted(texts.items())
    ]


def _measurements(
    tasks: Sequence[Task], outcomes: Sequence[Outcome], metric: Metric, notes: Sequence[str]
) -> Measurements:
    labels = {
        "fold": np.array([t.fold for t in tasks]),
        "seed": np.array([t.seed for t in tasks]),
        "fit_seconds": np.array([o.fit_seconds for o in outcomes]),
        "status": np.array([o.status for o in outcomes]),
    }
    return Measurements(
        learner=np.array([t.learner for t in tasks]),
        n=np.array([t.n for t in tasks], dtype=np.float64),
        error=np.array([o.error for o in outcomes], dtype=np.float64),
        unit=metric.unit,
        labels=labels,
        notes=tuple(notes),
    )


# Which examples are trained on and which are held out.


def check_data(X: Any, y: ArrayLike) -> tuple[Any, NDArray[Any]]:
    """Check that inputs and targets belong together, and make them ready to be indexed."""
    from sklearn.utils import indexable

    target = np.asarray(y)
    try:
        X, _ = indexable(X, target)
    except (ValueError, TypeError) as error:
        raise InputError(f"X and y cannot be used together: {error}") from error
    if target.dtype.kind == "f" and np.isnan(target).any():
        raise InputError(f"y holds {int(np.isnan(target).sum())} NaN(s): drop these examples.")
    return X, target


def decide_stratification(
    asked: bool | None, y: NDArray[Any], learners: Mapping[str, Any], metric: MetricLike
) -> tuple[bool, tuple[str, ...]]:
    """Decide whether to stratify, and say so where it was decided for the user."""
    continuous = y.ndim > 1 or (y.dtype.kind == "f" and bool(np.any(y != np.round(y))))
    regression = any(_is_regressor(learner) for learner in learners.values())
    if (continuous or regression) and metric == "error":
        raise InputError(
            "metric='error' counts wrong classes and this is a regression: pass a loss, such as "
            "metric='neg_mean_squared_error', with unit='loss'."
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


def hold_out(X: Any, y: NDArray[Any], test: Any, stratify: bool, entropy: int) -> tuple[NDArray[np.int64], Data, str]:
    """Give the positions of the training part, the data, and a note on the test set."""
    everything = np.arange(len(y), dtype=np.int64)
    if isinstance(test, tuple | list):
        if len(test) != 2:
            raise InputError(f"test has {len(test)} parts: pass (X_test, y_test).")
        X_test, y_test = check_data(*test)
        own = np.arange(len(y_test), dtype=np.int64)
        note = f"Measured on a test set of its own with {len(y_test)} examples."
        return everything, Data(X, y, X_test, y_test, own), note
    count = isinstance(test, int | np.integer) and not isinstance(test, bool)
    held_out = int(test) if count else math.ceil(round(float(test) * len(y), 6))
    if not 1 <= held_out < len(y) or (not count and not 0 < test < 1):
        raise InputError(
            f"test={test!r} would hold out {held_out} of {len(y)} examples: pass a fraction "
            "between 0 and 1, a number of examples, or (X_test, y_test)."
        )
    # Drawing the training part, not the test set, keeps the only example of a class for training.
    generator = np.random.default_rng([entropy, 0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CurvewiseWarning)
        kept = draw_partition(y, [len(y) - held_out], 1, False, stratify, generator)
    train = np.sort(kept.subsets[0].indices)
    held = np.setdiff1d(everything, train)
    note = f"Measured on {held_out} held-out examples of {len(y)}."
    return train, Data(X, y, X, y, held), note


def draw_partition(
    y: NDArray[Any],
    sizes: Sequence[float] | NDArray[Any] | None,
    folds: Sequence[int] | int | None,
    nested: bool,
    stratify: bool,
    rng: int | np.random.Generator,
) -> Partition:
    """Partition the training part; messages speak of ``y``."""
    labels = y if stratify else len(y)
    if sizes is None:
        fewest = min(len(np.unique(y)), len(y)) if stratify else min(2, len(y))
        sizes = geometric_sizes(len(y), minimum=fewest)
    try:
        return partition_training_set(labels, sizes, folds, nested=nested, stratify=stratify, rng=rng)
    except InputError as error:
        raise InputError(str(error).replace("labels_or_count", "y")) from error
