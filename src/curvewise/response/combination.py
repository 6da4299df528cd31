"""Combinations of several measures of generalization into one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from curvewise.errors import InputError, arg
from curvewise.response.load import KNOWN_ORIENTATION, ModelCorpus
from curvewise.stats.correlation import average_ranks
from curvewise.types.results import FloatArray, as_floats


def combine_measures(
    measures: Mapping[str, ArrayLike] | ModelCorpus,
    how: str = "pca",
    *,
    names: Sequence[str] | None = None,
    orientation: Mapping[str, int] | None = None,
    tasks: ArrayLike | None = None,
) -> FloatArray:
    """Combine measures into one, of which more means a larger gap (signed products excepted).

    Every measure is first oriented so that more means a larger gap.

    Parameters
    ----------
    measures : dict of str to array_like, or ModelCorpus
        A number of each measure for each model.
    how : {"pca", "npca", "average", "product", "product+average", "signed-product", "signed-product+average", "rank"}
        The first principal component, of the measures as they are or each divided by its standard deviation; its sign
        is such that the mean of the loadings is positive. Their mean. Their product, in which a measure that falls with
        the gap divides. The sum of the last two. The product as tables 7 and 8 of Schiff et al. 2021 have it, in which
        a measure that falls with the gap is negated, Gi · (−Pal); and its sum with the mean. The mean of their ranks.
        The paper does not negate Mixup scores: for those rows say ``orientation={"mixup": 1}``.
    names : sequence of str, optional
        Measures to combine; all by default.
    orientation : dict of str to {1, -1}, optional
        -1 for a measure of which less means a larger gap. By default what the corpus declares, else what
        :func:`list_measures` declares for that name, else 1; a signed product needs it for measures of other names.
    tasks : array_like of str, optional
        Components, standard deviations and ranks are computed within each task. By default those of the corpus.

    Returns
    -------
    ndarray, shape (models,)
        NaN where one of the measures is not finite.

    Raises
    ------
    InputError
        For a product of negative numbers, which has no direction, and for a signed product of measures whose
        orientation is not known.

    Notes
    -----
    A signed product rises with one factor and falls with the other, whatever the gap does: Gi · (−Pal) orders models
    nearly as −Gi does, because Pal varies little. Take ``"product"`` unless the paper's numbers are wanted.

    Examples
    --------
    >>> combine_measures({"gi": [0.1, 0.3], "pal": [60, 40]}, "rank", orientation={"pal": -1})
    array([1., 2.])
    >>> combine_measures({"gi": [0.1, 0.3], "pal": [60, 40]}, "product", orientation={"pal": -1})
    array([0.00166667, 0.0075    ])
    >>> combine_measures({"gi": [0.1, 0.3], "pal": [60, 40]}, "signed-product", orientation={"pal": -1})
    array([ -6., -12.])
    """
    if how not in _WAYS:
        raise InputError(f"use one of {', '.join(map(repr, _WAYS))}.", argument="how", value=how)
    told = orientation is not None
    if isinstance(measures, ModelCorpus):
        orientation = {**measures.orientation, **(orientation or {})}
        tasks = measures.tasks if tasks is None else tasks
        measures = measures.measures
    if isinstance(names, str):
        raise InputError(f"{arg('names', names)} is one text: give a list of measures.")
    wanted = list(measures) if names is None else list(names)
    if not wanted:
        raise InputError("is empty: give at least one measure.", argument="measures")
    for name in wanted:
        if name not in measures:
            raise InputError(f"holds {name!r}, which is none of {list(measures)!r}.", argument="names")
    for name, sign in (orientation or {}).items():
        if name not in measures or sign not in (1, -1):
            raise InputError(f"orientation[{name!r}]={sign!r}: give 1 or -1 for a measure out of {list(measures)!r}.")
    known = KNOWN_ORIENTATION | dict(orientation or {})
    unknown = [name for name in wanted if name not in known]
    # Whoever names orientations has decided on all of them.
    if how.startswith("signed") and unknown and not told:
        raise InputError(
            f"{arg('how', how)} needs the orientation of {unknown[0]!r}, which is not known.",
            remedy=f"Give orientation={{{unknown[0]!r}: 1}}, or -1 if less of it means a larger gap.",
        )
    signs = np.array([float(known.get(name, 1)) for name in wanted])
    rows = [as_floats(measures[name], f"measure {name!r}") for name in wanted]
    shapes = {row.shape for row in rows}
    if len(shapes) > 1 or rows[0].ndim != 1:
        raise InputError(f"measures differ in shape, {sorted(shapes)}: one number for each model.")
    table = np.stack(rows)
    where = np.zeros(table.shape[1], dtype=np.str_) if tasks is None else np.asarray(tasks, dtype=np.str_)
    if where.shape != (table.shape[1],):
        raise InputError(f"has shape {where.shape} for {table.shape[1]} models: one for each.", argument="tasks")
    combined = np.full(table.shape[1], np.nan)
    whole = np.isfinite(table).all(axis=0)
    # Within each task: levels of measures are not comparable between data sets.
    for task in np.unique(where):
        mask = (where == task) & whole
        if mask.any():
            combined[mask] = _WAYS[how](table[:, mask], signs)
    return combined


def _component(table: FloatArray, signs: FloatArray) -> FloatArray:
    """Return scores on the first principal component, with a positive mean loading."""
    oriented = table * signs[:, None]
    centred = oriented - oriented.mean(axis=1, keepdims=True)
    loadings = np.linalg.svd(centred, full_matrices=False)[0][:, 0]
    # A principal component has no sign of its own: that of the mean loading decides.
    lean = loadings.mean()
    if abs(lean) < 1e-12:  # opposite loadings: the first decides
        lean = loadings[np.argmax(np.abs(loadings) > 1e-12)]
    scores: FloatArray = np.sign(lean) * (loadings @ centred)
    return scores


def _standard_component(table: FloatArray, signs: FloatArray) -> FloatArray:
    """Return the same with each measure divided by its standard deviation."""
    # A constant measure has no spread but that of rounding, which must not be blown up.
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


def _signed_product(table: FloatArray, signs: FloatArray) -> FloatArray:
    product: FloatArray = np.prod(table * signs[:, None], axis=0)
    return product


_WAYS: dict[str, Callable[[FloatArray, FloatArray], FloatArray]] = {
    "pca": _component,
    "npca": _standard_component,
    "average": _average,
    "product": _product,
    "product+average": lambda table, signs: _product(table, signs) + _average(table, signs),
    "signed-product": _signed_product,
    "signed-product+average": lambda table, signs: _signed_product(table, signs) + _average(table, signs),
    "rank": lambda table, signs: np.mean([average_ranks(row) for row in table * signs[:, None]], axis=0),
}
