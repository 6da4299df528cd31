"""One hyperparameter as the colours and shapes of dots."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import to_hex
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from curvewise.errors import InputError
from curvewise.plot.style import colour
from curvewise.plot.text import safe_names
from curvewise.tables import number
from curvewise.types import FloatArray
from curvewise.types.corpus import ModelCorpus

MARKERS = "osD^vPX*<>"
MOST_VALUES = 10
"""Values of a hyperparameter that get a colour of their own."""


@dataclass(frozen=True, eq=False)
class Colours:
    """What the colours say: one hyperparameter, its values, and the look of each."""

    name: str
    values: tuple[Any, ...]
    shades: tuple[str, ...]

    def index(self, corpus: ModelCorpus) -> NDArray[np.int64]:
        """The number of each model's value."""
        place = {str(v): i for i, v in enumerate(self.values)}
        return np.array([place[str(v)] for v in corpus.hyperparameters[self.name].tolist()])

    def key(self) -> list[tuple[Line2D, str]]:
        """A legend."""
        names = safe_names(map(_value, self.values), 18)
        return [
            (handle(shade, MARKERS[i % len(MARKERS)]), name)
            for i, (shade, name) in enumerate(zip(self.shades, names, strict=True))
        ]


def choose_colours(tasks: Mapping[str, ModelCorpus], name: str | None) -> Colours | None:
    """Values of a hyperparameter as colours: from dark to bright where they are numbers.

    Unless one is named, it is the one that the gaps of a task differ most by.
    """
    columns = {
        k: [v for c in tasks.values() for v in c.hyperparameters[k].tolist()]
        for k in next(iter(tasks.values())).hyperparameters
    }
    kinds = {k: {str(v): v for v in column} for k, column in columns.items()}
    if name is None:
        few = [k for k, values in kinds.items() if 1 < len(values) <= MOST_VALUES]
        if not few:
            return None
        name = max(
            few, key=lambda k: sum(_told(c.gap, c.hyperparameters[k]) for c in tasks.values())
        )
    if name not in columns:
        known = ", ".join(map(repr, columns))
        raise InputError(f"colours={name!r} is not a hyperparameter: use {known}.")
    values = list(kinds[name].values())
    if len(values) > MOST_VALUES:
        raise InputError(
            f"colours={name!r} has {len(values)} values: use one with at most {MOST_VALUES}."
        )
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
    values.sort(key=None if numbers else str)
    return Colours(name, tuple(values), _shades(len(values), numbers))


def _shades(count: int, ordered: bool) -> tuple[str, ...]:
    if ordered and count > 2:
        return tuple(to_hex(colormaps["viridis"](s)) for s in np.linspace(0.0, 0.88, count))
    return tuple(colour(i) for i in range(count))


def _told(gap: FloatArray, column: NDArray[Any]) -> float:
    """The part of the squares of the gap that lies between the values of a hyperparameter."""
    known = np.isfinite(gap)
    if not known.any():
        return 0.0
    _, index = np.unique(column.astype(str)[known], return_inverse=True)
    count = np.bincount(index)
    mean = np.bincount(index, gap[known]) / count
    return float(np.sum(count * (mean - gap[known].mean()) ** 2))


def handle(shade: str, marker: str) -> Line2D:
    """A dot for a legend."""
    return Line2D([], [], color=shade, marker=marker, linestyle="none", markersize=5.5)


def _value(value: Any) -> str:
    return number(value) if isinstance(value, float) else str(value)
