"""Axes, labels and names that all pictures of evaluations share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from matplotlib.axes import Axes

from curvewise.drawing.labels import safe_names
from curvewise.drawing.style import as_percent, new_axes, style
from curvewise.types.results import Unit

LEAST_LEFT = 7
"""Letters of the longest name that are kept where names are shortened by what they share."""
FRACTION = Unit("fraction")


@contextmanager
def eval_canvas(ax: Axes | None, height: float, width: float = 7.0) -> Iterator[tuple[Axes, bool]]:
    """Draw in our style on the Axes given, or on those of a new figure; tell if it is new."""
    with style():
        yield ax or new_axes(width, height), ax is None


def score_axis(ax: Axes, unit: str, label: str, sign: str = "%") -> None:
    """Label the x axis of scores, fractions as percentages; differences of them are points."""
    ax.set_xlabel(f"{label} ({sign})" if unit == "fraction" else label)
    if unit == "fraction":
        as_percent(ax.xaxis, FRACTION)


def metric_label(metric: str, average: str) -> str:
    """Name the score on an axis."""
    name = "mean score" if metric == "mean" else metric
    return name if average == "questions" else f"{name}, averaged over tasks"


def model_names(names: Sequence[str], longest: int) -> list[str]:
    """Make names of models safe to draw, without what all of them end or begin with where they are long.

    >>> model_names(["org/phi-1.5_temp0.8_output", "org/phi-2_temp0.8_output"], 16)
    ['org/phi-1.5…', 'org/phi-2…']
    >>> model_names(["org/phi-1.5", "org/phi-2"], 16)
    ['org/phi-1.5', 'org/phi-2']
    """
    if len(names) > 1 and max(map(len, names)) > longest:
        tail = len(_common([name[::-1] for name in names]))
        head = len(_common(names))
        short = []
        for start, end in ((0, tail), (head, 0), (head, tail)):
            cut = [name[start : len(name) - end] for name in names]
            # What is left must say something: a number alone does not.
            if start + end and max(map(len, cut)) >= LEAST_LEFT:
                short.append([f"{'…' * bool(start)}{name}{'…' * bool(end)}" for name in cut])
        # The first that fits, else the shortest.
        fits = [cut for cut in short if max(map(len, cut)) <= longest]
        names = [*fits, *sorted(short, key=lambda cut: max(map(len, cut))), names][0]
    return safe_names(names, longest)


def _common(names: Sequence[str]) -> str:
    """Return what all names begin with, up to the last sign between two words, leaving something of each."""
    first, last = min(names), max(names)  # what these two share, all in between do
    length = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))
    ends = [i + 1 for i, c in enumerate(first[: min(length, min(map(len, names)) - 1)]) if c in "/_-:. "]
    return first[: ends[-1]] if ends else ""
