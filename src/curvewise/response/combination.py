"""Several measures of generalization made into one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from curvewise.errors import InputError
from curvewise.response.load import ModelCorpus
from curvewise.stats.correlation import average_ranks
from curvewise.text import arg
from curvewise.types.units import FloatArray, as_floats


def combine_measures(
    measures: Mapping[str, ArrayLike] | ModelCorpus,
    how: str = "pca",
    *,
    names: Sequence[str] | None = None,
    orientation: Mapping[str, int] | None = None,
    tasks: ArrayLike | None = None,
) -> FloatArray:
    """Combine measures into one, of which more means a larger gap.

    Every measure is first turned so that more means a larger gap.

    Parameters
    ----------
    measures : dict of str to array_like, or ModelCorpus
        A number of each measure for each model.
    how : {"pca", "npca", "average", "product", "product+average", "rank"}
        The first principal component, of the measures as they are or each divided by its standard
        deviation; its sign is such that the mean of the loadings is positive. Their mean. Their
        product, in which a measure that falls with the gap divides. The sum of the last two. The
        mean of their ranks.
    names : sequence of str, optional
        Which to combine; all by default.
    orientation : dict of str to {1, -1}, optional
        -1 for a measure of which less means a larger gap. 1 where nothing is said, or what the
        corpus says.
    tasks : array_like of str, optional
        Components, standard deviations and ranks are found within each task. By default those of
        the corpus.

    Returns
    -------
    ndarray, shape (models,)
        NaN where one of the measures is not finite.

    Raises
    ------
    InputError
        For a product of negative numbers, which has no direction.

    Examples
    --------
    >>> combine_measures({"gi": [0.1, 0.3], "pal": [60, 40]}, "rank", orientation={"pal": -1})
    array([1., 2.])
    >>> combine_measures({"gi": [0.1, 0.3], "pal": [60, 40]}, "product", orientation={"pal": -1})
    array([0.00166667, 0.0075    ])
    """
    if how not in _WAYS:
        raise InputError(f"use one of {', '.join(map(repr, _WAYS))}.", argument="how", value=how)
    if isinstance(measures, ModelCorpus):
        orientation = {**measures.orientation, **(orientation or {})}
        tasks = measures.tasks if tasks is None else tasks
        measures = measures.measures
    chosen = _chosen(measures, names)
    signs = _signs(list(chosen), orientation or {}, list(measures))
    table = np.stack(list(chosen.values()))
    where = _tasks(tasks, table.shape[1])
    combined = np.full(table.shape[1], np.nan)
    whole = np.isfinite(table).all(axis=0)
    for task in np.unique(where):
        mask = (where == task) & whole
        if mask.any():
            combined[mask] = _WAYS[how](table[:, mask], signs)
    return combined


def _chosen(measures: Mapping[str, ArrayLike], names: Sequence[str] | None) -> dict[str, FloatArray]:
    if isinstance(names, str):
        raise InputError(f"{arg('names', names)} is one text: give a list of measures.")
    wanted = list(measures) if names is None else list(names)
    if not wanted:
        raise InputError("measures is empty: give at least one measure.")
    for name in wanted:
        if name not in measures:
            raise InputError(f"names holds {name!r}, which is none of {list(measures)!r}.")
    found = {name: as_floats(measures[name], f"measure {name!r}") for name in wanted}
    shapes = {values.shape for values in found.values()}
    if len(shapes) > 1 or any(values.ndim != 1 for values in found.values()):
        raise InputError(f"measures differ in shape, {sorted(shapes)}: one number for each model.")
    return found


def _signs(names: list[str], orientation: Mapping[str, int], known: list[str]) -> FloatArray:
    for name, sign in orientation.items():
        if name not in known or sign not in (1, -1):
            raise InputError(f"orientation[{name!r}]={sign!r}: give 1 or -1 for a measure out of {known!r}.")
    return np.array([float(orientation.get(name, 1)) for name in names])


def _tasks(tasks: ArrayLike | None, count: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    if tasks is None:
        return np.zeros(count, dtype=np.int64)
    found = np.asarray(tasks, dtype=np.str_)
    if found.shape != (count,):
        raise InputError(f"tasks has shape {found.shape} for {count} models: one for each.")
    return np.unique(found, return_inverse=True)[1]


def _component(table: FloatArray, signs: FloatArray) -> FloatArray:
    """Scores on the first principal component, with a positive mean loading."""
    oriented = table * signs[:, None]
    centred = oriented - oriented.mean(axis=1, keepdims=True)
    loadings = np.linalg.svd(centred, full_matrices=False)[0][:, 0]
    lean = loadings.mean()
    if abs(lean) < 1e-12:  # opposite loadings: the first decides
        lean = loadings[np.argmax(np.abs(loadings) > 1e-12)]
    scores: FloatArray = np.sign(lean) * (loadings @ centred)
    return scores


def _standard_component(table: FloatArray, signs: FloatArray) -> FloatArray:
    spread = table.std(axis=1, keepdims=True)
    flat = spread <= 1e-12 * np.abs(table).max(axis=1, keepdims=True)
    centred = table - table.mean(axis=1, keepdims=True)
    return _component(np.where(flat, 0.0, centred / np.where(flat, 1.0, spread)), signs)


def _average(table: FloatArray, signs: FloatArray) -> FloatArray:
    mean: FloatArray = (table * signs[:, None]).mean(axis=0)
    return mean


def _product(table: FloatArray, signs: FloatArray) -> FloatArray:
    falling = signs < 0
    if (table < 0).any() or (table[falling] == 0).any():
        raise InputError(
            f"{arg('how', 'product')} needs measures that are not negative, and above 0 where they fall with the gap, "
            f"or it has no direction: use {arg('how', 'rank')}, 'average' or 'npca'."
        )
    product: FloatArray = np.prod(table ** signs[:, None], axis=0)
    return product


def _both(table: FloatArray, signs: FloatArray) -> FloatArray:
    return _product(table, signs) + _average(table, signs)


def _ranks(table: FloatArray, signs: FloatArray) -> FloatArray:
    ranks: FloatArray = np.mean([average_ranks(row) for row in table * signs[:, None]], axis=0)
    return ranks


_WAYS: dict[str, Callable[[FloatArray, FloatArray], FloatArray]] = {
    "pca": _component,
    "npca": _standard_component,
    "average": _average,
    "product": _product,
    "product+average": _both,
    "rank": _ranks,
}
