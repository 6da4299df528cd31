"""Rank correlation of measures with the gap, one hyperparameter at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from curvewise.errors import InputError
from curvewise.response._cells import Codes, pair_cells
from curvewise.response._settings import as_columns, value_codes
from curvewise.types import FloatArray, as_floats


def granulated_kendall(
    measure: ArrayLike, gap: ArrayLike, hyperparameters: Mapping[str, Any], *, orientation: int = 1
) -> float:
    """Rank correlation of a measure with the gap among models that differ in one hyperparameter.

    For every hyperparameter, Kendall's correlation within each group of models that agree in all
    others, averaged over the groups; then the mean over the hyperparameters (Jiang et al. 2020).
    A measure that predicts well only because one hyperparameter dominates the gap scores low.

    Parameters
    ----------
    measure, gap : array_like, shape (models,)
    hyperparameters : dict of str to array_like
        Columns with a value for each model.
    orientation : {1, -1}
        Whether more of the measure should mean a larger gap or a smaller one.

    Returns
    -------
    float
        From -1 to 1; NaN where no two models differ in one hyperparameter only.

    Examples
    --------
    >>> granulated_kendall([1, 2, 3, 4], [1, 2, 3, 4], {"a": [0, 0, 1, 1], "b": [0, 1, 0, 1]})
    1.0
    """
    values, gaps = as_floats(measure, "measure"), as_floats(gap, "gap")
    if values.ndim != 1 or values.shape != gaps.shape:
        raise InputError(f"measure has shape {values.shape} and gap {gaps.shape}: one of each.")
    if orientation not in (1, -1):
        raise InputError(f"orientation={orientation!r}: use 1 or -1.")
    columns = as_columns(hyperparameters, len(values))
    codes = {name: value_codes(column) for name, column in columns.items()}
    return float(granulated(values[None] * orientation, gaps, codes)[0])


def granulated(measures: FloatArray, gap: FloatArray, codes: Mapping[str, Codes]) -> FloatArray:
    """Granulated Kendall correlation of each row."""
    by_axis = [_along(name, measures, gap, codes) for name in codes]
    known = [axis for axis in by_axis if axis is not None]
    return np.mean(known, axis=0) if known else np.full(len(measures), np.nan)


def _along(
    name: str, measures: FloatArray, gap: FloatArray, codes: Mapping[str, Codes]
) -> FloatArray | None:
    """Mean correlation over the groups of models that differ in one hyperparameter only."""
    cells = pair_cells({k: v for k, v in codes.items() if k != name}, len(gap))
    same = cells.groups[cells.first] == cells.groups[cells.second]
    differ = codes[name][cells.first] != codes[name][cells.second]
    chosen = same & differ
    if not chosen.any():
        return None
    first, second = cells.first[chosen], cells.second[chosen]
    _, group = np.unique(cells.groups[first], return_inverse=True)
    agree = np.sign(measures[:, first] - measures[:, second]) * np.sign(gap[first] - gap[second])
    count = np.bincount(group)
    means = [np.bincount(group, weights=row) / count for row in agree]
    return np.array([m.mean() for m in means])
