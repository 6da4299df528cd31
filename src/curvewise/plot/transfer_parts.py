"""What pictures of transfer share: who gets which colour, panels for tasks, axes, controls."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from curvewise.errors import InputError
from curvewise.plot.panels import new_panels, write_below
from curvewise.plot.style import OWN, colour, new_axes, write_caption
from curvewise.plot.text import clean, safe_names, shorten
from curvewise.plot.variance_axes import is_narrow
from curvewise.transfer.transfer_result import TransferResult

SCRATCH = "black"
"""Colour of training from scratch."""

GREY = "#B4B4B4"
"""Methods that stand back."""

CROWD = 10
"""With more methods than this, only the best are coloured."""

NAMED_IN_CROWD = 5
LONGEST_WARNING = 240
"""Characters of a warning in a caption."""

LONGEST = 24
"""Characters of a name that are shown."""


@dataclass(frozen=True)
class Look:
    """How a method is drawn."""

    shade: str
    name: str
    back: bool = False

    @property
    def ink(self) -> str:
        """Colour of its name: legible where the line is pale."""
        return "#7A7A7A" if self.back else self.shade


@dataclass(frozen=True, eq=False)
class Chosen:
    """Tasks and methods to draw, and how each method looks in every panel."""

    tasks: tuple[str, ...]
    methods: tuple[str, ...]
    looks: Mapping[str, Look]
    note: str = ""
    picked: bool = False
    quiet: bool = False
    """Whether methods that stand back have no names: some were named to stand out."""

    def named(self, method: str) -> bool:
        """Whether the name of a method is written beside its curve."""
        return not (self.quiet and self.looks[method].back)

    @property
    def back_first(self) -> list[str]:
        """The methods in the order of drawing: those that stand back first."""
        return sorted(self.methods, key=lambda m: not self.looks[m].back)


def one_of(argument: str, value: Any, known: Sequence[str]) -> str:
    """A word that must be one of a few; a near miss is told which was meant.

    >>> one_of("kind", "cci", ("curves", "cci"))
    'cci'
    """
    if value in known:
        return str(value)
    near = get_close_matches(str(value), known, n=1)
    meant = f"did you mean {near[0]!r}? There are" if near else "use one of"
    few = ", ".join(map(repr, known[:20])) + (", …" if len(known) > 20 else "")
    raise InputError(f"{argument}={value!r} is not known: {meant} {few}.")


def several_of(
    argument: str, value: str | Sequence[str] | None, known: Sequence[str]
) -> tuple[str, ...]:
    """Some names, each once; all of them if None."""
    if value is None:
        return tuple(known)
    wanted = [value] if isinstance(value, str) else list(value)
    found = tuple(dict.fromkeys(one_of(argument, name, known) for name in wanted))
    if not found:
        raise InputError(f"{argument} is empty: use some of {', '.join(map(repr, known))}.")
    return found


def choose_drawn(
    result: TransferResult,
    task: str | Sequence[str] | None,
    methods: str | Sequence[str] | None,
    highlight: str | Sequence[str] | None,
) -> Chosen:
    """Which tasks and methods, and their colours: the same in all panels and pictures."""
    tasks = several_of("task", task, result.tasks)
    ahead = {m for t in result.tasks for m in by_improvement(result, result.methods, [t])[:1]}
    order = sorted(by_improvement(result, result.methods), key=lambda m: m not in ahead)
    front = min(max(NAMED_IN_CROWD, len(ahead)), CROWD)
    own = (result.methods, result.scratch)
    chosen = choose_methods(*own, tasks, methods, highlight, order, front)
    if chosen.note and methods is None and len(result.tasks) > 1 and len(ahead) <= CROWD:
        return replace(chosen, note=f"{chosen.note[:-1]}, the best of each task among them.")
    return chosen


def choose_methods(
    known: Sequence[str],
    scratch: str,
    tasks: tuple[str, ...],
    methods: str | Sequence[str] | None,
    highlight: str | Sequence[str] | None,
    order: Sequence[str],
    front: int = NAMED_IN_CROWD,
) -> Chosen:
    """Methods and their colours; of a crowd the first in ``order``, ``front`` of them, have one."""
    every = (*known, scratch)
    drawn = tuple(m for m in several_of("methods", methods, every) if m != scratch)
    names = dict(zip(every, safe_names(every, LONGEST), strict=True))
    shades, said = _shades(known, every, drawn, highlight, [m for m in order if m in drawn][:front])
    looks = {m: Look(shades.get(m, GREY), names[m], m not in shades) for m in drawn}
    looks[scratch] = Look(SCRATCH, names[scratch])
    picked = methods is not None or highlight is not None
    return Chosen(tasks, drawn, looks, said, picked, highlight is not None)


def _shades(
    known: Sequence[str],
    every: Sequence[str],
    drawn: Sequence[str],
    highlight: str | Sequence[str] | None,
    best: Sequence[str],
) -> tuple[dict[str, str], str]:
    """Colours of the methods that have one, and why only some do: of a crowd the best."""
    if highlight is not None:
        wanted = [highlight] if isinstance(highlight, str) else list(highlight)
        named = [one_of("highlight", name, every) for name in dict.fromkeys(wanted)]
        front = [m for m in named if m in drawn]
        few = len(known) <= CROWD
        return {m: colour(list(known).index(m) if few else i) for i, m in enumerate(front)}, ""
    if len(known) <= CROWD:
        return {m: colour(list(known).index(m)) for m in drawn}, ""
    if len(drawn) <= CROWD:
        return {m: colour(i) for i, m in enumerate(drawn)}, ""
    said = f"In colour: the best {len(best)} of {len(drawn)} methods."
    return {m: colour(i) for i, m in enumerate(best)}, said


def by_improvement(
    result: TransferResult, methods: Sequence[str], tasks: Sequence[str] | None = None
) -> list[str]:
    """Methods from the highest CCI to the lowest, over tasks each less its mean."""
    kept = [i for i in result.improvements if tasks is None or i.task in tasks]
    score: dict[str, list[float]] = {m: [] for m in methods}
    for task in dict.fromkeys(i.task for i in kept):
        here = {i.method: i.cci.estimate for i in kept if i.task == task}
        known = [v for v in here.values() if math.isfinite(v)]
        for m in methods:
            if math.isfinite(here.get(m, math.nan)):
                score[m].append(here[m] - float(np.mean(known)))
    return sorted(methods, key=lambda m: -float(np.mean(score[m])) if score[m] else math.inf)


def panels_of(
    ax: Axes | None, tasks: Sequence[str], alone: tuple[float, float] = (7.0, 4.6)
) -> list[Axes]:
    """The Axes given, or new ones: one for each task, in lines of about the same length."""
    if ax is not None:
        if len(tasks) > 1:
            raise InputError(
                f"ax is one Axes, and there are {len(tasks)} tasks: choose one with task=, or "
                "leave ax out."
            )
        return [ax]
    if len(tasks) == 1:
        return [new_axes(*alone)]
    columns = 2 if len(tasks) in (2, 4) else 3
    axes = new_panels(len(tasks), columns, 3.9 if columns == 3 else 4.6, 4.4)
    for panel in axes:
        panel.set_gid(OWN)
    return axes


def name_tasks(axes: Sequence[Axes], tasks: Sequence[str], pad: float = 6.0) -> None:
    """The task over each of several panels."""
    if len(axes) > 1:
        for ax, text in zip(axes, safe_names(tasks, 34), strict=True):
            ax.set_title(text, loc="left", fontsize=10.5, pad=pad)


def shifts(chosen: Chosen, methods: Sequence[str]) -> dict[str, float]:
    """Points by which intervals of methods in colour stand aside; those of scratch do not.

    ``methods`` may hold scratch, which is none of the methods chosen.
    """
    front = [m for m in methods if m in chosen.methods and not chosen.looks[m].back]
    step = min(2.2, 9.0 / max(len(front), 1))
    aside = {m: step * (i // 2 + 1) * (-1.0 if i % 2 == 0 else 1.0) for i, m in enumerate(front)}
    return aside | {m: 0.0 for m in methods if m not in chosen.methods}


def draws_caption(ax: Axes, own: bool, caption: bool | None) -> bool:
    """Whether to write a caption: in figures of ours, and where a layout makes room for it."""
    if caption is not None:
        return caption
    figure = ax.get_figure(root=True)
    moved = figure is not None and figure.get_layout_engine() is not None
    return own or (moved and not is_narrow(ax))


def write_words(
    axes: Sequence[Axes], own: bool, lines: Sequence[str], caption: bool | None
) -> None:
    """A caption under the only panel, or under all of them."""
    kept = [line for line in lines if line]
    if not kept or not draws_caption(axes[0], own, caption):
        return
    if len(axes) > 1 or own:
        write_below(axes[0], kept)
    else:
        write_caption(axes[0], kept)


def warned(result: Any) -> list[str]:
    """The first warning of a result for a caption: whole sentences, or whole words at least."""
    if not result.warnings:
        return []
    left = len(result.warnings) - 1
    more = f" ({left} more)" if left else ""
    return [f"⚠ {in_words(clean(result.warnings[0]), LONGEST_WARNING)}{more}"]


def in_words(text: str, longest: int) -> str:
    """Text that ends after a sentence or, if the first is too long, after a word.

    >>> in_words("One is here. Two is not.", 16), in_words("one, two, three", 11)
    ('One is here.', 'one, two …')
    """
    if len(text) <= longest:
        return text
    at = text.rfind(". ", 0, longest)
    if at > 0:
        return text[: at + 1]
    kept = text[: longest - 1].rsplit(" ", 1)[0]
    return f"{kept.rstrip(' ,;:')} …" if len(kept) < longest - 1 else shorten(text, longest)


def spoken(name: str) -> str:
    """A name within a caption, which is made safe as a whole."""
    return shorten(clean(name), LONGEST)
