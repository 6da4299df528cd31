"""Units of measured values: fractions, percentages, losses, scores; numbers and names out of what users pass."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import InputError
from curvewise.text import arg

FloatArray: TypeAlias = NDArray[np.float64]

UNITS = ("fraction", "percent", "loss", "score")


@dataclass(frozen=True)
class Unit:
    """Meaning of a measured value.

    Parameters
    ----------
    name : {"fraction", "percent", "loss", "score"}
        Fractions and percentages are classification errors (or accuracies, with
        ``higher_is_better``); losses and scores have no natural bound.
    higher_is_better : bool
        Accuracies are turned into errors when they are read. Scores stay scores.
    """

    name: str = "fraction"
    higher_is_better: bool = False

    def __post_init__(self) -> None:
        if self.name not in UNITS:
            raise InputError(f"{arg('unit', self.name)} is not known: use one of {', '.join(map(repr, UNITS))}.")
        if self.name == "loss" and self.higher_is_better:
            raise InputError(
                f"{arg('unit', 'loss')} with {arg('higher_is_better', True)} contradicts itself: use "
                f"{arg('unit', 'score')}."
            )
        if self.name == "score" and not self.higher_is_better:
            raise InputError(
                f"{arg('unit', 'score')} needs {arg('higher_is_better', True)}; for a value that should fall, use "
                f"{arg('unit', 'loss')}."
            )

    @property
    def top(self) -> float:
        """The largest possible value: 1 for fractions, 100 for percentages, else infinity."""
        return {"fraction": 1.0, "percent": 100.0}.get(self.name, math.inf)

    @property
    def bounded(self) -> bool:
        """True where values lie between 0 and :attr:`top`."""
        return math.isfinite(self.top)

    @property
    def suffix(self) -> str:
        """Text after a number: ``"%"`` for percentages."""
        return "%" if self.name == "percent" else ""

    @property
    def once_read(self) -> Unit:
        """The unit of what :meth:`errors` returns: accuracies have become errors."""
        return Unit(self.name) if self.bounded else self

    def errors(self, values: ArrayLike, argument: str = "error") -> FloatArray:
        """Check values against the unit; accuracies come back as errors.

        Raises
        ------
        InputError
            If a value is not finite or cannot be in this unit; the message names the right one.
        """
        array = as_floats(values, argument)
        bad = ~np.isfinite(array)
        if bad.any():
            raise InputError(
                f"{argument} holds {int(bad.sum())} value(s) that are NaN or infinite. Leave failed runs out on "
                f"purpose and say so ({arg('drop_failed', True)} when they are read), or give them the value "
                "of a blind guess."
            )
        # Percentages read as fractions would be off by a factor of 100 without any other sign.
        if self.bounded and array.size and (array.min() < 0 or array.max() > self.top):
            worst = array.min() if array.min() < 0 else array.max()
            raise InputError(
                f"{argument} holds {worst:g}, which is no {self.name} (0 to {self.top:g}). " + self._remedy(array)
            )
        return self.top - array if self.bounded and self.higher_is_better else array

    def _remedy(self, array: FloatArray) -> str:
        if array.min() >= 0 and array.max() <= 100 and self.name == "fraction":
            return f"Pass {arg('unit', 'percent')} if these are percentages, or {arg('unit', 'loss')} for a loss."
        return f"Pass {arg('unit', 'loss')}, or {arg('unit', 'score')} with {arg('higher_is_better', True)}."


def as_floats(values: ArrayLike, argument: str) -> FloatArray:
    """Make a float array of numbers, or raise an error that names the argument."""
    as_unmasked(values, argument)
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{argument} must hold numbers: {error}.") from None


def as_unmasked(values: Any, argument: str) -> Any:
    """Return an array; refuse one that is masked in part."""
    # numpy would hand out the numbers below the mask, as if nothing had been left out.
    if np.ma.isMaskedArray(values) and np.ma.getmaskarray(values).any():
        raise InputError(f"{argument} is a masked array: pass only the entries that count, such as {argument}[~mask].")
    try:
        return values if hasattr(values, "dtype") else np.asarray(values)
    except ValueError:
        raise InputError(
            f"{argument} is no array: its rows have unequal lengths, or arrays of several kinds are put together."
        ) from None


def as_column(values: NDArray[Any], argument: str, count: int, noun: str) -> NDArray[Any]:
    """Return an array with one entry for each of ``count`` rows, or raise an error that names the argument."""
    if values.shape != (count,):
        raise InputError(f"{argument} has shape {values.shape} for {count} {noun}: give one for each.")
    return values


def same_names(words: Sequence[str], where: str) -> list[str]:
    """Strip names of blanks around them, refusing ``"a"`` beside ``"a "``.

    >>> same_names(["a ", "b"], "column 'learner'")
    ['a', 'b']
    """
    # A trailing blank in a spreadsheet would make two learners of one, each with half of the runs.
    stripped = {word: word.strip() for word in dict.fromkeys(words)}
    first: dict[str, str] = {}
    for word, name in stripped.items():
        if first.setdefault(name, word) != word:
            raise InputError(
                f"{where} has {first[name]!r:.60} and {word!r:.60}, which differ only in blanks: write the name in one "
                "way if they are one, or in two ways if they are not."
            )
    return [stripped[word] for word in words]


def distinct_names(words: Sequence[str], where: str) -> list[str]:
    """As :func:`same_names`, for names of which no two may be the same.

    >>> distinct_names(["a ", "b"], "names")
    ['a', 'b']
    """
    names = same_names(words, where)
    if twice := [name for i, name in enumerate(names) if name in names[:i]]:
        raise InputError(f"{where} has {twice[0]!r:.60} twice: give each a name of its own.")
    return names
