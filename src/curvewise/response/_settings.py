"""Hyperparameters of any kind as whole numbers, and gaps without what they explain."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError
from curvewise.response._cells import Codes
from curvewise.response._ranks import normal_scores
from curvewise.types import FloatArray
from curvewise.types.corpus import mixed_array


def as_columns(hyperparameters: Mapping[str, Any], count: int) -> dict[str, NDArray[Any]]:
    """Check that each hyperparameter has a value for each model."""
    if not isinstance(hyperparameters, Mapping):
        raise InputError(
            f"hyperparameters is a {type(hyperparameters).__name__}: give a dict of columns, such "
            "as {'depth': [2, 2, 4], 'rate': [0.1, 0.01, 0.1]}."
        )
    found = {}
    for name, values in hyperparameters.items():
        column = values if isinstance(values, np.ndarray) else mixed_array(values)
        if column.shape != (count,):
            raise InputError(
                f"hyperparameters[{name!r}] has shape {column.shape} for {count} models: give one "
                "value for each."
            )
        found[str(name)] = column
    return found


def value_codes(column: NDArray[Any]) -> Codes:
    """Number the different values of a column in order of first appearance.

    >>> value_codes(np.array([None, "a", 2, 2.0, None, float("nan")], dtype=object)).tolist()
    [0, 1, 2, 2, 0, 3]
    """
    known: dict[Any, int] = {}
    codes = [known.setdefault(_key(value), len(known)) for value in column.tolist()]
    return np.array(codes, dtype=np.int64)


def _key(value: Any) -> Any:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "nan" if value != value else float(value)
    return type(value).__name__, str(value)


class Varied(NamedTuple):
    """Hyperparameters as numbers: those that differ between models, and what is odd about them."""

    codes: dict[str, Codes]
    constant: list[str]
    continuous: list[str]

    def notes(self) -> list[str]:
        """What may be worth knowing."""
        if not self.constant:
            return []
        return [f"{_listed(self.constant)} has one value only and is left out."]

    def alarms(self) -> list[str]:
        """What is likely a mistake."""
        if not self.continuous:
            return []
        return [
            f"{_listed(self.continuous)} has nearly as many values as there are models, so that "
            "few pairs of models share them: leave it out, or put its values into a few bins."
        ]


def varied(columns: Mapping[str, NDArray[Any]]) -> Varied:
    """Number the values of hyperparameters, leaving out those with one value only."""
    codes = {name: value_codes(column) for name, column in columns.items()}
    constant = [name for name, column in codes.items() if column.max(initial=0) == 0]
    many = [name for name, column in codes.items() if _like_continuous(column)]
    return Varied({k: v for k, v in codes.items() if k not in constant}, constant, many)


def _like_continuous(codes: Codes) -> bool:
    values = int(codes.max(initial=0)) + 1
    return values > 5 and len(codes) < 3 * values


def _listed(names: list[str]) -> str:
    return "hyperparameter " + ", ".join(map(repr, names[:5])) + (" …" if len(names) > 5 else "")


def shuffled_gaps(
    gap: FloatArray, codes: Mapping[str, Codes], draws: int, rng: np.random.Generator
) -> tuple[FloatArray | None, str]:
    """Gaps that hang together with the hyperparameters as they do, and with nothing else.

    Gaps are brought to normal scores, since only their order counts. A least-squares fit of these
    by all hyperparameters stays, with two-way interactions where that leaves half of the freedom;
    what it leaves over is dealt anew.

    Returns
    -------
    gaps : ndarray, shape (models, draws), optional
        None where the hyperparameters leave nothing over.
    what : str
        Which effects stay.
    """
    scores = normal_scores(gap)
    for interactions in (True, False):
        design = _design(codes, len(gap), interactions)
        basis, sizes, _ = np.linalg.svd(design, full_matrices=False)
        basis = basis[:, sizes > 1e-10 * sizes[0]]
        free = len(gap) - basis.shape[1]
        if free >= (len(gap) / 2 if interactions else 1):
            fitted = basis @ (basis.T @ scores)
            rest = np.tile(scores - fitted, (draws, 1))
            dealt: FloatArray = fitted[:, None] + rng.permuted(rest, axis=1).T
            return dealt, "effects and two-way interactions" if interactions else "effects"
    return None, "nothing"


def _design(codes: Mapping[str, Codes], count: int, interactions: bool) -> FloatArray:
    each = [np.eye(int(c.max(initial=0)) + 1)[c][:, 1:] for c in codes.values()]
    columns = [np.ones((count, 1)), *each]
    if interactions:
        for one, two in combinations(each, 2):
            columns.append((one[:, :, None] * two[:, None, :]).reshape(count, -1))
    return np.concatenate(columns, axis=1)
