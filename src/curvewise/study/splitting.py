"""Which examples are trained on and which are held out."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.learning.partition import Partition, geometric_sizes, partition_training_set
from curvewise.study.scoring import MetricLike
from curvewise.study.training import Data


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


def hold_out(
    X: Any, y: NDArray[Any], test: Any, stratify: bool, entropy: int
) -> tuple[NDArray[np.int64], Data, str]:
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
        return partition_training_set(
            labels, sizes, folds, nested=nested, stratify=stratify, rng=rng
        )
    except InputError as error:
        raise InputError(str(error).replace("labels_or_count", "y")) from error
