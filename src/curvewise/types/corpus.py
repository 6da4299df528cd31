"""Trained models with their hyperparameters, generalization gaps and measures of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import InputError
from curvewise.types.results import data_frame
from curvewise.types.units import FloatArray, as_floats

if TYPE_CHECKING:
    import pandas as pd

RESERVED = ("model", "task", "gap", "train_accuracy")
ONE_TASK = "all models"


@dataclass(frozen=True, eq=False, repr=False)
class ModelCorpus:
    """A table of trained models on which measures of generalization can be judged.

    Attributes
    ----------
    models : tuple of str
        Names, each once in a task.
    hyperparameters : dict of str to ndarray
        What was varied; values of any kind.
    gap : ndarray, shape (models,)
        Training accuracy less test accuracy, as a fraction. NaN for a model that failed.
    measures : dict of str to ndarray
        A number for each model, NaN where there is none.
    orientation : dict of str to int
        1 where a higher value should mean a larger gap, -1 where a smaller one. A measure that is
        not named here has no declared orientation.
    tasks : ndarray of str, optional
        Which task (a data set with an architecture, say) a model belongs to. Models are only
        compared with others of their task.
    train_accuracy : ndarray, optional
        As a fraction.
    notes : tuple of str
        What was taken for what, and which models failed.

    Examples
    --------
    >>> corpus = ModelCorpus(
    ...     models=("a", "b", "c"),
    ...     hyperparameters={"depth": [2, 2, 4]},
    ...     gap=[0.1, 0.2, 0.3],
    ...     measures={"norm": [5.0, 6.0, 7.0]},
    ...     orientation={"norm": 1},
    ... )
    >>> corpus
    ModelCorpus(3 models, 1 task, 1 hyperparameter, 1 measure)
    """

    models: tuple[str, ...]
    hyperparameters: Mapping[str, NDArray[Any]]
    gap: FloatArray
    measures: Mapping[str, FloatArray] = field(default_factory=dict)
    orientation: Mapping[str, int] = field(default_factory=dict)
    tasks: NDArray[np.str_] | None = None
    train_accuracy: FloatArray | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "models", tuple(map(str, self.models)))
        put(self, "gap", _fractions(self.gap, "gap", -1.0, len(self)))
        put(self, "measures", _measures(self.measures, len(self)))
        put(self, "hyperparameters", _settings(self.hyperparameters, len(self)))
        put(self, "orientation", _orientation(self.orientation, self.measures))
        if self.tasks is not None:
            put(self, "tasks", _column(np.asarray(self.tasks, dtype=np.str_), "tasks", len(self)))
        if self.train_accuracy is not None:
            share = _fractions(self.train_accuracy, "train_accuracy", 0.0, len(self))
            put(self, "train_accuracy", share)
        self._check_names()

    def _check_names(self) -> None:
        if not self.models:
            raise InputError("models is empty: a corpus holds at least one model.")
        tasks = self.models if self.tasks is None else zip(self.tasks, self.models, strict=True)
        name, count = Counter(tasks).most_common(1)[0]
        if count > 1:
            raise InputError(
                f"models holds {name if self.tasks is None else name[1]!r} {count} times in one "
                "task: give each model a name of its own."
            )
        both = set(self.hyperparameters) & set(self.measures)
        kept = (set(self.hyperparameters) | set(self.measures)) & set(RESERVED)
        if both or kept:
            why = "is a hyperparameter and a measure" if both else "is the name of another column"
            raise InputError(f"{sorted(both or kept)[0]!r} {why}: give it another name.")

    def __len__(self) -> int:
        return len(self.models)

    def __repr__(self) -> str:
        parts = {
            "model": len(self),
            "task": len(self.task_names),
            "hyperparameter": len(self.hyperparameters),
            "measure": len(self.measures),
        }
        said = ", ".join(f"{k} {name}" + ("" if k == 1 else "s") for name, k in parts.items())
        return f"ModelCorpus({said})"

    @property
    def task_names(self) -> tuple[str, ...]:
        """The tasks in order of first appearance; one called "all models" where none is told."""
        return (ONE_TASK,) if self.tasks is None else tuple(dict.fromkeys(self.tasks.tolist()))

    def by_task(self) -> dict[str, ModelCorpus]:
        """A corpus for each task."""
        if self.tasks is None:
            return {ONE_TASK: self}
        return {name: self.select(self.tasks == name) for name in self.task_names}

    def select(self, mask: ArrayLike) -> ModelCorpus:
        """Some of the models: a mask with an entry for each, or their positions.

        >>> corpus = ModelCorpus(("a", "b"), {"depth": [2, 4]}, [0.1, 0.2])
        >>> corpus.select(corpus.hyperparameters["depth"] > 2).models
        ('b',)
        """
        chosen = np.asarray(mask)
        if chosen.dtype == np.bool_ and chosen.shape != (len(self),):
            raise InputError(
                f"mask has shape {chosen.shape}: give one entry for each of {len(self)} models."
            )
        where = np.arange(len(self))[chosen]
        if where.ndim != 1 or not len(where):
            raise InputError("mask selects no model of the corpus: at least one must be left.")
        return replace(
            self,
            models=tuple(self.models[i] for i in where),
            hyperparameters={k: v[where] for k, v in self.hyperparameters.items()},
            gap=self.gap[where],
            measures={k: v[where] for k, v in self.measures.items()},
            tasks=None if self.tasks is None else self.tasks[where],
            train_accuracy=None if self.train_accuracy is None else self.train_accuracy[where],
        )

    def with_measures(
        self, measures: Mapping[str, ArrayLike], orientation: Mapping[str, int] | int | None = None
    ) -> ModelCorpus:
        """The same models with further measures, or others in the place of those of a name.

        Parameters
        ----------
        measures : dict of str to array_like
            A number for each model.
        orientation : dict or {1, -1}, optional
            Of each of them, or of all.
        """
        told = dict.fromkeys(measures, orientation) if isinstance(orientation, int) else orientation
        kept = {k: v for k, v in self.orientation.items() if k not in measures}
        added = _measures(measures, len(self))
        return replace(
            self, measures={**self.measures, **added}, orientation={**kept, **(told or {})}
        )

    def columns(self) -> dict[str, Any]:
        """A row for each model."""
        task = {} if self.tasks is None else {"task": self.tasks}
        share = {} if self.train_accuracy is None else {"train_accuracy": self.train_accuracy}
        return {
            **task,
            "model": np.array(self.models, dtype=np.str_),
            **self.hyperparameters,
            **share,
            "gap": self.gap,
            **self.measures,
        }

    def frame(self) -> pd.DataFrame:
        """The models as a pandas DataFrame."""
        return data_frame(self.columns())


def _column(values: NDArray[Any], name: str, count: int) -> NDArray[Any]:
    if values.shape != (count,):
        raise InputError(
            f"{name} has shape {values.shape} for {count} models: give one value for each."
        )
    return values


def _fractions(values: ArrayLike, name: str, low: float, count: int) -> FloatArray:
    found = _column(as_floats(values, name), name, count)
    bad = np.isinf(found) | (found < low) | (found > 1)
    if bad.any():
        raise InputError(
            f"{name} holds {found[bad][0]:g}, which cannot be a fraction from {low:g} to 1. If "
            "these are percentages, divide them by 100 (or load them with unit='percent')."
        )
    return found


def _measures(measures: Mapping[str, ArrayLike], count: int) -> dict[str, FloatArray]:
    return {
        str(k): _column(as_floats(v, f"measure {k!r}"), f"measure {k!r}", count)
        for k, v in measures.items()
    }


def _settings(hyperparameters: Mapping[str, Any], count: int) -> dict[str, NDArray[Any]]:
    found = {}
    for name, values in hyperparameters.items():
        column = values if isinstance(values, np.ndarray) else mixed_array(values)
        found[str(name)] = _column(column, f"hyperparameter {name!r}", count)
    return found


def mixed_array(values: Any) -> NDArray[Any]:
    """A column of values of any kind; those of different kinds stay what they are.

    >>> mixed_array([1, 2]).dtype.kind, mixed_array([1, "a", None]).tolist()
    ('i', [1, 'a', None])
    """
    cells = list(values)
    kinds = {type(v) for v in cells}
    if kinds <= {int} or kinds <= {float} or kinds <= {bool} or kinds <= {str}:
        return np.array(cells)
    column = np.empty(len(cells), dtype=object)
    column[:] = cells
    return column


def _orientation(
    orientation: Mapping[str, int], measures: Mapping[str, FloatArray]
) -> dict[str, int]:
    for name, sign in orientation.items():
        if name not in measures:
            raise InputError(
                f"orientation names {name!r}, which is no measure: there is "
                f"{', '.join(map(repr, measures)) or 'none'}."
            )
        if sign not in (1, -1) or isinstance(sign, bool):
            raise InputError(
                f"orientation of {name!r} is {sign!r}: use 1 if more means a larger gap, -1 if it "
                "means a smaller one, or leave the measure out if neither is claimed."
            )
    return {str(k): int(v) for k, v in orientation.items()}
