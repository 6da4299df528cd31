"""Conditional mutual information: what a measure tells about the gap beyond hyperparameters."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.response import _pgdl
from curvewise.response._cells import PairCells, gap_outcomes, information, pair_cells
from curvewise.response._engine import prepare, score_measures
from curvewise.response._settings import as_columns, shuffled_gaps, value_codes, varied
from curvewise.tables import number
from curvewise.types import FloatArray, Interval, Result, as_floats, check_level

MODES = ("corrected", "pgdl")


def cmi_score(
    measure: ArrayLike,
    gap: ArrayLike,
    hyperparameters: Mapping[str, Any],
    mode: str = "corrected",
    *,
    orientation: int | None = None,
    given: int = 2,
) -> float:
    """Conditional mutual information of a measure and the generalization gap, from 0 to 1.

    How much of what there is to know about "which of two models has the larger gap" the measure
    tells, where the values of hyperparameters are known (Jiang et al. 2020). Two hyperparameters
    are held at a time; the score is the smallest over all such sets, so that a measure that only
    mirrors one of them scores low.

    Parameters
    ----------
    measure, gap : array_like, shape (models,)
        A number for each model. Only their order matters.
    hyperparameters : dict of str to array_like
        Columns with a value for each model, of any kind. There may be none.
    mode : {"corrected", "pgdl"}
        ``"pgdl"`` gives what the program of the PGDL competition (2020) gives, less its factor of
        100; a set whose value is not a number is skipped. ``"corrected"`` drops pairs of a model
        with itself and pairs with tied gaps; a tied measure tells nothing.
    orientation : {1, -1}, optional
        Whether more of the measure should mean a larger gap or a smaller one. If given, what
        is told in the other direction counts as negative, and the score goes from -1 to 1.
        Otherwise either direction is as good. In ``"pgdl"``, -1 negates the measure.
    given : int
        How many hyperparameters are held at a time, in ``"corrected"``.

    Returns
    -------
    float
        NaN where hyperparameters leave nothing to tell, for example because all gaps are equal.

    Raises
    ------
    InputError
        If lengths differ, values are missing, or there are fewer than two models.

    See Also
    --------
    measure_cmi : The same with every set, interval and null.

    Examples
    --------
    >>> depth, width = [1, 1, 1, 1, 2, 2, 2, 2], [1, 1, 2, 2, 1, 1, 2, 2]
    >>> gap = [0.10, 0.12, 0.14, 0.11, 0.30, 0.31, 0.28, 0.29]
    >>> cmi_score(gap, gap, {"depth": depth, "width": width})
    1.0
    >>> cmi_score(gap, gap, {"depth": depth, "width": width}, orientation=-1)
    -1.0
    """
    values, gaps, columns = _check(measure, gap, hyperparameters, mode, orientation)
    if mode == "pgdl":
        sets = _pgdl.pgdl_scores(values[None] * (orientation or 1), gaps, columns)
        return float(_pgdl.lowest(sets, 1)[0])
    settings = varied(columns)
    prepared = prepare(gaps, settings.codes, given)
    warn([*settings.alarms(), *prepared.alarms()])
    signs = np.array([orientation is not None])
    oriented = values[None] * (orientation or 1)
    return float(min((_value(s, oriented, signs, gaps) for s in prepared.sets), default=math.nan))


@dataclass(frozen=True, eq=False)
class ConditionalInformation(Result):
    """What a measure tells about the gap given each set of hyperparameters.

    Attributes
    ----------
    value : Interval
        The score with its interval, which is for the value that a very large corpus with these
        hyperparameters would give. NaN for what is not known.
    null_mean : float
        Mean score when the part of the gap that hyperparameters do not explain is dealt anew
        among the models.
    pvalue : float
        How often that gives a score as high.
    null : str
        What was held to be explained by the hyperparameters.
    sets : tuple of tuple of str
        The sets of hyperparameters that were held; in mode ``"pgdl"`` in both orders.
    values : ndarray
        The share told given each; NaN where a set is skipped.
    cells, empty : ndarray of int
        Cells of each set, and how many of them hold no pair.
    models : int
    mode : str
    orientation : int, optional
        As declared.
    """

    value: Interval
    null_mean: float
    pvalue: float
    null: str
    sets: tuple[tuple[str, ...], ...]
    values: FloatArray
    cells: NDArray[np.int64]
    empty: NDArray[np.int64]
    models: int
    mode: str
    orientation: int | None
    warnings: tuple[str, ...] = ()

    @property
    def score(self) -> float:
        """The smallest value over the sets."""
        return self.value.estimate

    @property
    def skipped(self) -> tuple[tuple[str, ...], ...]:
        """The sets without a value."""
        return tuple(s for s, v in zip(self.sets, self.values, strict=True) if math.isnan(v))

    def columns(self) -> dict[str, Any]:
        """A row for each set."""
        return {
            "given": [" & ".join(s) or "nothing" for s in self.sets],
            "information": self.values,
            "cells": self.cells,
            "empty": self.empty,
        }

    def summary(self) -> str:
        """A few sentences."""
        text = f"CMI {self.value} over {self.models} models"
        if self.sets and not np.isnan(self.values).all():
            least = self.sets[int(np.nanargmin(self.values))]
            text += f", the smallest of {len(self.sets)} sets, given {' and '.join(least) or '-'}"
        if not math.isnan(self.pvalue):
            text += (
                f". With the gap dealt anew beyond the {self.null} of the hyperparameters it is "
                f"{number(self.null_mean)} on average, and as high with p = {self.pvalue:.2g}"
            )
        return text + "."


def measure_cmi(
    measure: ArrayLike,
    gap: ArrayLike,
    hyperparameters: Mapping[str, Any],
    mode: str = "corrected",
    *,
    orientation: int | None = None,
    given: int = 2,
    permutations: int = 999,
    level: float = 0.95,
    rng: int | np.random.Generator = 0,
) -> ConditionalInformation:
    """Score a measure as :func:`cmi_score` does, with all that lies behind the number.

    Parameters
    ----------
    measure, gap, hyperparameters, mode, orientation, given
        As of :func:`cmi_score`.
    permutations : int
        Draws of the null, which tests whether the measure tells anything beyond all the
        hyperparameters together: what a least-squares fit by them leaves of the gap is dealt anew.
        0 for none.
    level : float
        Coverage of the interval.
    rng : int or Generator
        Decides the draws.

    Returns
    -------
    ConditionalInformation
        Without interval and null in mode ``"pgdl"``.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> depth, width = np.repeat([1, 2], 12), np.tile([1, 2, 3], 8)
    >>> gap = depth + rng.normal(size=24)
    >>> measure = gap + rng.normal(size=24)
    >>> found = measure_cmi(measure, gap, {"depth": depth, "width": width}, orientation=1)
    >>> print(found.value)
    0.2584 [-0.1127, 0.6295]
    """
    values, gaps, columns = _check(measure, gap, hyperparameters, mode, orientation)
    check_level(level)
    oriented = values[None] * (orientation or 1)
    if mode == "pgdl":
        return _pgdl_details(oriented, gaps, columns, orientation, level)
    settings = varied(columns)
    prepared = prepare(gaps, settings.codes, given)
    generator = np.random.default_rng(rng)
    dealt, null = shuffled_gaps(gaps, settings.codes, permutations, generator)
    signs = np.array([orientation is not None])
    found = score_measures(prepared, oriented, signs, dealt, generator)
    alarms = [*settings.alarms(), *prepared.alarms()]
    warn(alarms)
    sets = [*prepared.sets, *prepared.skipped]
    return ConditionalInformation(
        value=found.interval(0, level),
        null_mean=found.null_mean(0),
        pvalue=found.pvalue(0),
        null=null,
        sets=tuple(s.names for s in sets),
        values=np.append(found.values[:, 0], [math.nan] * len(prepared.skipped)),
        cells=np.array([s.possible for s in sets], dtype=np.int64),
        empty=np.array([s.empty for s in sets], dtype=np.int64),
        models=len(gaps),
        mode=mode,
        orientation=orientation,
        warnings=(*alarms, *settings.notes(), *prepared.notes()),
    )


def _value(
    cells: PairCells, measure: FloatArray, directed: NDArray[np.bool_], gap: FloatArray
) -> float:
    return float(information(cells, measure, directed, gap_outcomes(cells, gap[:, None]))[0, 0])


def _pgdl_details(
    oriented: FloatArray,
    gaps: FloatArray,
    columns: Mapping[str, NDArray[Any]],
    orientation: int | None,
    level: float,
) -> ConditionalInformation:
    sets = _pgdl.pgdl_scores(oriented, gaps, columns)
    values = np.array([v[0] for v in sets.values()])
    score = float(_pgdl.lowest(sets, 1)[0])
    levels = {k: len(np.unique(value_codes(column))) for k, column in columns.items()}
    skipped = [" & ".join(s) for s, v in sets.items() if math.isnan(v[0])]
    notes = _pgdl.skipped_note(skipped)
    warn(notes)
    pairs = [pair_cells({k: value_codes(columns[k]) for k in s}, len(gaps)) for s in sets]
    there = [len(np.unique(p.groups)) ** 2 for p in pairs]
    cells = np.array([(levels[a] * levels[b]) ** 2 for a, b in sets], dtype=np.int64)
    return ConditionalInformation(
        value=Interval(score, math.nan, math.nan, level),
        null_mean=math.nan,
        pvalue=math.nan,
        null="nothing",
        sets=tuple(sets),
        values=values,
        cells=cells,
        empty=cells - np.array(there, dtype=np.int64),
        models=len(gaps),
        mode="pgdl",
        orientation=orientation,
        warnings=tuple(notes),
    )


def _check(
    measure: ArrayLike,
    gap: ArrayLike,
    hyperparameters: Mapping[str, Any],
    mode: str,
    orientation: int | None,
) -> tuple[FloatArray, FloatArray, dict[str, NDArray[Any]]]:
    if mode not in MODES:
        raise InputError(f"mode={mode!r}: use one of {', '.join(map(repr, MODES))}.")
    if orientation not in (None, 1, -1) or isinstance(orientation, bool):
        raise InputError(
            f"orientation={orientation!r}: use 1 if more should mean a larger gap, -1 if a smaller "
            "one, None if neither is claimed."
        )
    values, gaps = as_floats(measure, "measure"), as_floats(gap, "gap")
    if values.ndim != 1 or values.shape != gaps.shape:
        raise InputError(
            f"measure has shape {values.shape} and gap {gaps.shape}: give a number for each model "
            "in both."
        )
    for name, array in (("measure", values), ("gap", gaps)):
        if not np.isfinite(array).all():
            raise InputError(
                f"{name} holds {int((~np.isfinite(array)).sum())} value(s) that are NaN or "
                "infinite: leave those models out of all columns, and say so."
            )
    if len(values) < 2:
        raise InputError(f"measure has {len(values)} value(s): it takes two models to compare.")
    columns = as_columns(hyperparameters, len(values))
    if mode == "pgdl" and len(columns) < 2:
        raise InputError(
            f"mode='pgdl' holds two hyperparameters at a time, and there are {len(columns)}: add a "
            "constant one, as the competition did, or use mode='corrected'."
        )
    return values, gaps, columns


def warn(notes: Sequence[str]) -> None:
    """Tell the user, who called what calls this."""
    for text in notes:
        warnings.warn(text, CurvewiseWarning, stacklevel=3)
