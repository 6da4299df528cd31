"""Checkpoints as colours: by their kind, by their group, and references in black."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from curvewise.errors import InputError
from curvewise.plot.style import NEUTRAL, colour
from curvewise.plot.text import safe_names, safe_text
from curvewise.types.scores import CheckpointScores

MARKERS = "osD^vPX<>p"
MOST_KINDS = 10
"""Kinds that get a colour of their own."""

REFERENCE = "black"
"""Colour of checkpoints that are shown and never ranked."""


@dataclass(frozen=True, eq=False)
class Kinds:
    """Which colour a row of a table has: one for each kind, in order of first appearance."""

    names: tuple[str, ...]
    rows: tuple[str, ...]

    def index(self, row: int) -> int:
        """The number of a row's kind."""
        return self.names.index(self.rows[row])

    def shade(self, row: int) -> str:
        """Colour of a row."""
        return self._shade(self.index(row))

    def _shade(self, index: int) -> str:
        return NEUTRAL if len(self.names) > MOST_KINDS else colour(index)

    def marker(self, row: int) -> str:
        """Shape of a row's dot."""
        many = len(self.names) > MOST_KINDS
        return MARKERS[0] if many else MARKERS[self.index(row) % len(MARKERS)]

    def key(self, marked: bool = True) -> list[tuple[Any, str]]:
        """A legend, in dots of several shapes or in squares; none where all are of one kind."""
        if not 1 < len(self.names) <= MOST_KINDS:
            return []
        texts = safe_names(self.names, 24)
        shapes = [MARKERS[i % len(MARKERS)] if marked else "s" for i in range(len(texts))]
        looks = [(self._shade(i), shape) for i, shape in enumerate(shapes)]
        return [
            (handle(*look), text.replace(r"\$", "$"))
            for look, text in zip(looks, texts, strict=True)
        ]


def handle(shade: str, marker: str) -> Line2D:
    """A dot for a legend."""
    return Line2D([], [], color=shade, marker=marker, linestyle="none", markersize=6.0)


def find_kinds(table: CheckpointScores, kinds: Mapping[str, str] | None) -> Kinds:
    """Kinds by checkpoint, where they are given; else the groups."""
    assert table.groups is not None
    ranked = table.ranked
    if kinds is None:
        rows = table.groups.tolist()
    else:
        names = table.checkpoints.tolist()
        if lost := sorted({n for n, r in zip(names, ranked, strict=True) if r} - set(kinds)):
            raise InputError(
                f"kinds says nothing of {lost[0]!r}: give the kind of each checkpoint, a "
                "reference's apart."
            )
        rows = [str(kinds.get(name, "")) for name in names]
    known = dict.fromkeys(kind for kind, r in zip(rows, ranked, strict=True) if r)
    return Kinds(tuple(known), tuple(rows))


def choose_rows(
    table: CheckpointScores, tasks: str | Sequence[str] | None, group: str | None
) -> CheckpointScores:
    """The rows of some tasks, and of a group."""
    if not isinstance(table, CheckpointScores):
        raise InputError(
            f"table is a {type(table).__name__}: give CheckpointScores, as made by "
            "cw.load_checkpoint_scores."
        )
    wanted = [tasks] if isinstance(tasks, str) else tasks
    for name, known, given in (
        ("task", table.task_names, wanted),
        ("group", table.group_names, None if group is None else [group]),
    ):
        for value in given or ():
            if value not in known:
                there = ", ".join(map(repr, known))
                raise InputError(f"{name}={value!r} is not in the table: use {there}.")
    assert table.tasks is not None
    keep = np.ones(len(table), dtype=bool)
    if wanted is not None:
        keep &= np.isin(table.tasks, list(wanted))
    if group is not None:
        keep &= table.groups == group
    return table.select(keep)


def as_percent(table: CheckpointScores) -> float:
    """100 where accuracies are fractions, 1 where they are another score."""
    known = table.accuracy[np.isfinite(table.accuracy)]
    return 100.0 if not len(known) or (known.min() >= 0 and known.max() <= 1) else 1.0


def legend_above(ax: Axes, key: Sequence[tuple[Any, str]]) -> None:
    """One legend over all panels of a figure of ours, in as many columns as fit."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    if not key:
        return
    texts = [text for _, text in key]
    longest = max(map(len, texts))
    room = float(figure.get_size_inches()[0]) / (0.075 * longest + 0.55)
    # A label with a leading underscore would be left out, hence numbers first and texts after.
    box = figure.legend(
        [h for h, _ in key],
        [str(i) for i in range(len(key))],
        loc="outside upper left",
        ncols=max(1, min(len(key), math.floor(room))),
        frameon=False,
        handlelength=1.2,
        fontsize=8.5,
    )
    for artist, text in zip(box.get_texts(), texts, strict=True):
        artist.set_text(safe_text(text, 30))
