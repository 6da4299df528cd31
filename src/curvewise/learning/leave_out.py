"""How well a form predicts the sizes it has not seen: the table in the paper's Fig. 2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import InputError
from curvewise.learning.fit import build_curve, check_form
from curvewise.learning.power import Constants
from curvewise.learning.replicates import Replicates, from_means, group_runs
from curvewise.stats import paired_t_test
from curvewise.tables import number
from curvewise.types import FloatArray, Result, Unit, as_floats

PAPER_ROWS = (
    ("power", "size"),
    ("power", "run"),
    ("power", "none"),
    ("sqrt", "size"),
    ("sqrt2", "size"),
    ("power2", "size"),
)
"""Forms and weights of the table in the paper's Fig. 2, in its order."""


@dataclass(frozen=True, eq=False)
class LeaveOneSizeOut(Result):
    """How well each form and weighting predicts the mean error at a size left out.

    Attributes
    ----------
    forms, weights : tuple of str, length K
        The rows.
    r_squared : ndarray, shape (K,)
        Of the fits to all sizes, averaged over curves.
    sizes : ndarray, shape (S,)
        Sizes left out in turn.
    rmse : ndarray, shape (K, S)
        Root mean square, over curves, of predicted minus measured mean, in the unit given.
    average : ndarray, shape (K,)
        Mean of ``rmse`` over sizes.
    p_value : ndarray, shape (K,)
        Paired t-test of absolute errors over curves and sizes against the first row (NaN there).
    """

    forms: tuple[str, ...]
    weights: tuple[str, ...]
    r_squared: FloatArray
    sizes: FloatArray
    rmse: FloatArray
    average: FloatArray
    p_value: FloatArray
    curves: int
    unit: Unit
    warnings: tuple[str, ...] = ()

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """The layout of the paper's Fig. 2: form, weights, R², RMSE per size, average, p."""
        by_size = {number(n): self.rmse[:, i] for i, n in enumerate(self.sizes)}
        return {
            "form": list(self.forms),
            "weights": list(self.weights),
            "R2": self.r_squared,
            **by_size,
            "average": self.average,
            "p_value": self.p_value,
        }

    def summary(self) -> str:
        """Which row predicts best, and against what."""
        best = int(np.nanargmin(self.average))
        text = (
            f"Over {self.curves} curve(s), the mean error at a size left out is predicted best by"
            f" form {self.forms[best]} with weights {self.weights[best]}: RMSE"
            f" {number(float(self.average[best]))}{self.unit.suffix} on average over"
            f" {len(self.sizes)} sizes"
        )
        if "last" in self.forms:
            carried = float(self.average[self.forms.index("last")])
            text += f" (the nearest size carried over: {number(carried)}{self.unit.suffix})"
        return " ".join([text + ".", *(f"Beware: {w}" for w in self.warnings)])


def leave_one_size_out(
    n: ArrayLike,
    error: ArrayLike,
    *,
    learner: ArrayLike | None = None,
    forms: Sequence[str] | None = None,
    weights: Sequence[str] | None = None,
    unit: str = "fraction",
    higher_is_better: bool = False,
    runs: ArrayLike | None = None,
    variance: ArrayLike | None = None,
    constants: Constants = Constants(),  # noqa: B008 (frozen)
) -> LeaveOneSizeOut:
    """Leave out each size in turn, fit the rest, predict its mean error.

    Parameters
    ----------
    n, error : array_like, shape (runs,)
        Training size and error of each run.
    learner : array_like, shape (runs,), optional
        Which curve a run belongs to; all curves must share the sizes that are scored.
    forms, weights : sequence of str, optional
        Rows are all combinations; by default the six of the paper's table, "auto", and "last", the
        nearest size's mean carried over.
    unit, higher_is_better, runs, variance, constants
        As in :func:`fit_learning_curve`.
    """
    read_as = Unit(unit, higher_is_better)
    kind = read_as.once_read
    columns = {"n": n, "error": read_as.errors(error), "runs": runs, "variance": variance}
    given = {k: as_floats(v, k) for k, v in columns.items() if v is not None}
    if any(v.shape not in (given["n"].shape, ()) for v in given.values()):
        raise InputError("n, error, runs and variance must have one entry per row each.")
    given = {k: np.broadcast_to(v, given["n"].shape) for k, v in given.items()}
    if variance is not None and runs is None:
        raise InputError("variance needs runs=: over how many runs each mean was taken.")
    curves = _by_learner(given, learner)
    rows = _rows(forms, weights)
    sizes = curves[0].n
    for data in curves:
        if len(data.n) < 3:
            raise InputError("n needs at least three sizes per curve to leave one out.")
        sizes = np.intersect1d(sizes, data.n)
    if len(sizes) == 0:
        raise InputError("learner: the curves share no size, so no size can be scored for all.")
    misses = np.array([[_misses(d, sizes, f, w, kind, constants) for d in curves] for f, w in rows])
    flat = np.abs(misses).reshape(len(rows), -1)
    p = [np.nan, *(paired_t_test(row, flat[0]) for row in flat[1:])]
    rmse = np.sqrt((misses**2).mean(axis=1))
    return LeaveOneSizeOut(
        forms=tuple(f for f, _ in rows),
        weights=tuple(w for _, w in rows),
        r_squared=np.array(
            [
                [
                    build_curve(d, kind, form=f, weights=w, constants=constants).r_squared
                    for d in curves
                ]
                for f, w in rows
            ]
        ).mean(axis=1),
        sizes=sizes,
        rmse=rmse,
        average=rmse.mean(axis=1),
        p_value=np.array(p),
        curves=len(curves),
        unit=kind,
    )


def _by_learner(columns: dict[str, NDArray[Any]], learner: ArrayLike | None) -> list[Replicates]:
    if learner is None:
        return [_grouped(columns)]
    names = np.asarray(learner).astype(str)
    shape = columns["n"].shape
    if names.shape != shape:
        raise InputError(f"learner has shape {names.shape} and n has {shape}: one name per run.")
    return [
        _grouped({c: v[names == k] for c, v in columns.items()})
        for k in dict.fromkeys(names.tolist())
    ]


def _grouped(columns: dict[str, NDArray[Any]]) -> Replicates:
    if "runs" not in columns:
        return group_runs(columns["n"], columns["error"])
    return from_means(columns["n"], columns["error"], columns["runs"], columns.get("variance"))


def _rows(forms: Sequence[str] | None, weights: Sequence[str] | None) -> list[tuple[str, str]]:
    if forms is None and weights is None:
        return [*PAPER_ROWS, ("auto", "size"), ("last", "size")]
    rows = [(f, w) for f in forms or ("power",) for w in weights or ("size",)]
    for form, _ in rows:
        check_form(form)
    return rows


def _misses(
    data: Replicates, sizes: FloatArray, form: str, weights: str, unit: Unit, constants: Constants
) -> FloatArray:
    out = []
    for size in sizes:
        held = data.n == size
        rest = data.only(~held)
        if form == "last":
            nearest = int(np.abs(np.log(rest.n / size)).argmin())
            predicted = float(rest.mean[nearest])
        else:
            curve = build_curve(rest, unit, form=form, weights=weights, constants=constants)
            predicted = curve.error_at(float(size))
        out.append(predicted - float(data.mean[held][0]))
    return np.array(out)
