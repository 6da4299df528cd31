"""Values measured on trained models, one row per run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError, arg
from curvewise.text import format_count, format_number
from curvewise.types.results import FloatArray, RowTable, Unit, distinct

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False, repr=False)
class Measurements(RowTable):
    """Values measured on trained models, one row per run: what :func:`load_measurements` makes.

    Attributes
    ----------
    learner : ndarray of str, shape (rows,)
        Which learner the value belongs to.
    n : ndarray of float, shape (rows,)
        Training-set size.
    error : ndarray of float, shape (rows,)
        Errors, losses or scores in ``unit``; accuracies were turned into errors when read.
    unit : Unit
        Of the values.
    runs, variance : ndarray of float, shape (rows,), optional
        When a row is already a mean: over how many runs, and their variance (ddof 1).
    labels : dict of str to ndarray
        Further coordinates as they came: fold, seed, split, metric, …
    notes : tuple of str
        How each column was interpreted.
    """

    by_row = ("learner", "n", "error", "runs", "variance", "labels")

    learner: NDArray[np.str_]
    n: FloatArray
    error: FloatArray
    unit: Unit = field(default_factory=Unit)
    runs: FloatArray | None = None
    variance: FloatArray | None = None
    labels: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def learners(self) -> tuple[str, ...]:
        """The learners in order of first appearance."""
        return distinct(self.learner)

    def __len__(self) -> int:
        return len(self.n)

    def __repr__(self) -> str:
        names = ", ".join(map(repr, self.learners[:4])) + (" …" if len(self.learners) > 4 else "")
        sizes = np.unique(self.n)
        span = f"{format_number(sizes[0])} to {format_number(sizes[-1])}" if len(sizes) else "none"
        return (
            f"Measurements({format_count(len(self), 'row')} in {self.unit.name}, {format_count(len(sizes), 'size')} "
            f"({span}), {format_count(len(self.learners), 'learner')}: {names})"
        )

    def of(self, learner: str) -> Measurements:
        """Select the rows of one learner."""
        keep = self.learner == learner
        if not keep.any():
            raise InputError(
                f"{arg('learner', learner)} is not among the measurements; there are: "
                + ", ".join(map(repr, self.learners[:20]))
            )
        return self.select(keep)

    @property
    def shared_subsets(self) -> int:
        """Number of training subsets with more than one run that did not fail; 0 where folds are unknown."""
        keys = self._subsets()
        done = np.isfinite(self.error)
        return 0 if keys is None else sum(int(done[rows].sum()) > 1 for rows in keys.values())

    def subset_means(self) -> Measurements:
        """Average the seeds trained on one subset: a row per learner, size and fold.

        Runs on one subset are not independent of each other, and an interval that takes them so is
        too narrow. Failed runs (NaN) are left out of their mean; a subset all of whose runs failed
        stays NaN.
        """
        keys = self._subsets()
        # Rows that are means already cannot be averaged over seeds again.
        if keys is None or self.runs is not None:
            return self
        errors = [self.error[rows] for rows in keys.values()]
        good = [e[np.isfinite(e)] for e in errors]
        first = np.array([rows[0] for rows in keys.values()], dtype=np.int64)
        lost = sum(len(e) - len(g) for e, g in zip(errors, good, strict=True))
        failed = np.array([not len(g) for g in good])
        notes = [f"{lost} failed run(s) are left out of the means over seeds."] if lost else []
        labels = {"fold": self.labels["fold"][first]}
        if "status" in self.labels:
            labels["status"] = np.where(failed, "failed", "done")
        return Measurements(
            learner=self.learner[first],
            n=self.n[first],
            error=np.array([g.mean() if len(g) else np.nan for g in good]),
            unit=self.unit,
            labels=labels,
            notes=(*self.notes, *notes),
        )

    def _subsets(self) -> dict[tuple[Any, ...], list[int]] | None:
        """Return the rows of each learner, size and fold."""
        if "fold" not in self.labels:
            return None
        found: dict[tuple[Any, ...], list[int]] = {}
        columns = (self.learner.tolist(), self.n.tolist(), self.labels["fold"].tolist())
        for row, key in enumerate(zip(*columns, strict=True)):
            found.setdefault(key, []).append(row)
        return found

    def plot(self, ax: Axes | None = None, **options: Any) -> Axes:
        """Fit a learning curve to each learner and draw it with the values on ``ax`` (a new figure's if None).

        ``curvewise.fit_learning_curves`` returns the curves themselves; options are those of
        ``curvewise.plot_learning_curves``.
        """
        # As of Result.plot: a table finds its picture only when it is asked for.
        return import_module("curvewise.drawing").draw(self, ax=ax, **options)  # type: ignore[no-any-return]

    def columns(self) -> dict[str, Any]:
        """Return learner, n, the labels and the values, with the number of runs and their variance where known."""
        # Above 2**53 a float has no whole digits left to show.
        whole = bool((self.n == np.round(self.n)).all() and (self.n < 2**53).all())
        sizes = self.n.astype(np.int64) if whole else self.n
        columns: dict[str, Any] = {"learner": self.learner, "n": sizes, **self.labels}
        columns["score" if self.unit.name == "score" else "error"] = self.error
        columns |= {name: v for name in ("runs", "variance") if (v := getattr(self, name)) is not None}
        return columns
