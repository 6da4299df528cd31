"""Answers of runs, of their twins and of runs with other seeds, compared cell by cell."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError
from curvewise.types import FloatArray, Predictions
from curvewise.variance._class_counts import class_counts
from curvewise.variance._crossed import Crossed

BLOCK_CELLS = 2**20
"""Cells of runs × examples compared at a time."""


class Compared(ABC):
    """Disagreement of each run with runs of other seeds, cell by cell.

    ``weight`` says how often a run enters the mean: twice where pairs are among the same runs.
    """

    weight = 1.0

    @abstractmethod
    def of(self, rows: slice, said: NDArray[Any]) -> FloatArray:
        """For the runs in ``rows``, whose answers are ``said``."""


class Against(Compared):
    """Run r against run r of another set."""

    def __init__(self, base: Predictions, other: Predictions) -> None:
        self.base, self.other = base, other

    def of(self, rows: slice, said: NDArray[Any]) -> FloatArray:
        """For the runs in ``rows``, whose answers are ``said``."""
        apart: FloatArray = (said != _answers(self.other, rows, self.base)).astype(np.float64)
        return apart


class Among(Compared):
    """Run r against all other runs of its own set."""

    weight = 2.0

    def __init__(self, base: Predictions) -> None:
        self.runs = base.runs
        blocks = [slice(start, stop) for start, stop in _spans(base)]
        classes = 1 + max(int(_answers(base, rows, base).max()) for rows in blocks)
        answers = (_answers(base, rows, base) for rows in blocks)
        self.counts = class_counts(answers, base.examples, classes)

    def of(self, rows: slice, said: NDArray[Any]) -> FloatArray:
        """For the runs in ``rows``, whose answers are ``said``."""
        same = self.counts[np.arange(said.shape[1]), said.astype(np.intp)]
        share: FloatArray = (self.runs - same) / (self.runs - 1)
        return share


def cross(
    base: Predictions, twin: Predictions, seeds: Compared, groups: NDArray[np.int64] | None
) -> Crossed:
    """Whether each run disagrees with its twin, and how often with other seeds."""
    crossed = Crossed(base.runs, base.examples, 2, groups)
    for start, stop in _spans(base):
        rows = slice(start, stop)
        said = _answers(base, rows, base)
        apart = (said != _answers(twin, rows, base)).astype(np.float64)
        crossed.add(start, [apart, seeds.of(rows, said)])
    return crossed


def _spans(given: Predictions) -> Iterator[tuple[int, int]]:
    step = max(1, BLOCK_CELLS // given.examples)
    for start in range(0, given.runs, step):
        yield start, min(start + step, given.runs)


def _answers(given: Predictions, rows: slice, base: Predictions) -> NDArray[Any]:
    """Predicted classes of some runs, numbered as in ``base``; 0/1 errors where that is all."""
    if not base.has_classes:
        return given.errors_of(rows)
    part = replace(given, values=np.asarray(given.values[rows]), run_ids=None)
    said = np.concatenate([block for _, block in part.label_blocks()])
    return _renumbered(said, given, base)


def _renumbered(codes: NDArray[Any], given: Predictions, base: Predictions) -> NDArray[Any]:
    """Numbers of classes as ``base`` has them, where both have names."""
    if given.classes == base.classes:
        return codes
    if given.classes is None or base.classes is None:
        raise InputError("twins and reference must both have class names, or neither.")
    numbers = {name: i for i, name in enumerate(base.classes)}
    table = [numbers.get(c, len(numbers) + i) for i, c in enumerate(given.classes)]
    numbered: NDArray[Any] = np.array(table)[codes.astype(np.intp)]
    return numbered
