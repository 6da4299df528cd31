"""Controls of a table of risks: rows that are called like one, or what the user gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError
from curvewise.io._columns import normal
from curvewise.io._table import brief, listed, suggest
from curvewise.types import Control, FloatArray
from curvewise.types.risks import as_control, measured_control

Given: TypeAlias = Any
"""A number, an interval, a Control, the name of a method, or any of these by task."""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


@dataclass(frozen=True)
class Called:
    """Names of a control: plain ones, and those that a method may have, too."""

    argument: str
    said: str
    plain: frozenset[str]
    other: frozenset[str]


SCRATCH = Called(
    "scratch",
    "scratch",
    _names("""
    scratch from_scratch train_from_scratch trained_from_scratch training_from_scratch random
    random_init random_initialisation random_initialization random_weights randominit rand_init
    no_pretraining no_pre_training not_pretrained without_pretraining"""),
    _names("none few_shot fewshot"),
)
BLIND = Called(
    "blind",
    "blind guess",
    _names("""
    blind blind_guess blind_guessing blindguess chance chance_level dummy constant
    constant_prediction majority majority_class most_frequent prior random_guess
    random_guessing"""),
    _names("zero_shot zeroshot"),
)
MAXIMAL = Called(
    "maximal",
    "maximal supervision",
    _names("""
    maximal maximal_supervision max_supervision gold gold_standard oracle upper_bound
    full_supervision fully_supervised full_data all_data"""),
    _names("full full_fine_tuning full_finetuning full_finetune full_fine_tune"),
)


@dataclass(frozen=True, eq=False)
class Rows:
    """A table of risks by row; ``n`` is NaN or not positive where the table has no size."""

    tasks: NDArray[np.str_]
    methods: NDArray[np.str_]
    n: FloatArray
    risk: FloatArray

    @property
    def names(self) -> list[str]:
        """The methods."""
        return list(dict.fromkeys(self.methods.tolist()))

    def has_several_sizes(self, method: str) -> bool:
        """Whether a method was trained at more than one size."""
        n = self.n[self.methods == method]
        return len(np.unique(n[n > 0])) > 1


@dataclass(frozen=True)
class Found:
    """A control by task, the methods whose rows are it, and what to say."""

    control: dict[str, Control] = field(default_factory=dict)
    methods: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def find_scratch(rows: Rows, given: str | None, taken: Sequence[str], source: str) -> str:
    """The method that starts from nothing: as named, or by its name."""
    if given is not None:
        return _named(rows, SCRATCH, given, source)
    free = [name for name in rows.names if name not in taken]
    for names in (SCRATCH.plain, SCRATCH.other):
        found = [name for name in free if normal(name) in names]
        if len(found) > 1:
            raise InputError(
                f"{len(found)} methods of {source} could be training from scratch: "
                f"{listed(found)}. Choose with scratch={found[0]!r:.200}, and leave the others out "
                "with where=… if they are not meant."
            )
        if found:
            return found[0]
    raise InputError(
        f"No method of {source} is called like training from scratch: name it with scratch=…. "
        f"There are {listed(free)}."
    )


def find_control(
    rows: Rows,
    called: Called,
    given: Given,
    turned: Callable[[float], float],
    source: str,
    scratch: str | None = None,
) -> Found:
    """Find a control for each task; ``turned`` makes a risk of a number as the table has it."""
    tasks = list(dict.fromkeys(rows.tasks.tolist()))
    wanted = _by_task(given, tasks, called, source)
    for value in wanted.values():
        if isinstance(value, str):
            _named(rows, called, value, source)
    chosen, notes = _recognised(rows, called, given)
    control: dict[str, Control] = {}
    for task, value in {**chosen, **wanted}.items():
        if not isinstance(value, str):
            control[task] = as_control(value, called.argument, turned)
        elif (one := _measured(rows, task, value)) is not None:
            control[task] = one
        else:
            notes.append(f"rows of {value!r:.200} have no value for {task!r}")
    named = [v for v in {**chosen, **wanted}.values() if isinstance(v, str)]
    unused = dict.fromkeys(v for v in chosen.values() if v not in named)
    if unused:
        notes.append(f"rows of {listed(unused)} left out: {called.argument}= is given")
    gone = tuple(k for k in dict.fromkeys((*named, *unused)) if k != scratch)
    return Found(control, gone, (_said(called, control, tasks, named), *notes))


def _by_task(given: Given, tasks: Sequence[str], called: Called, source: str) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        return {} if given is None else dict.fromkeys(tasks, given)
    for task in given:
        if str(task) not in tasks:
            raise InputError(
                f"{called.argument} names the task {brief(task)}, which {source} does not have."
                f"{suggest(task, tasks)} It has {listed(tasks)}."
            )
    return {str(task): value for task, value in given.items()}


def _named(rows: Rows, called: Called, name: str, source: str) -> str:
    if name not in rows.names:
        raise InputError(
            f"{called.argument}={name!r:.200} is no method of {source}.{suggest(name, rows.names)} "
            f"It has {listed(rows.names)}."
        )
    return name


def _recognised(rows: Rows, called: Called, given: Given) -> tuple[dict[str, str], list[str]]:
    """Names of the control by task, and notes of methods that could be it and are not."""
    notes: list[str] = []
    found = [name for name in rows.names if normal(name) in called.plain]
    short = isinstance(given, Mapping) and not set(rows.tasks.tolist()) <= set(map(str, given))
    if not found and (given is None or short):
        maybe = [name for name in rows.names if normal(name) in called.other]
        found = [name for name in maybe if not rows.has_several_sizes(name)]
        notes = [
            f"{name!r:.200} is taken as a method, as it has several sizes: "
            f"{called.argument}={name!r:.200} makes it the {called.said}"
            for name in maybe
            if name not in found
        ]
    by_task: dict[str, str] = {}
    named = given if isinstance(given, str) else None
    for name in sorted(found, key=lambda k: k != named):
        for task in dict.fromkeys(rows.tasks[rows.methods == name].tolist()):
            if task in by_task and named is None:
                raise InputError(
                    f"Two methods could be the {called.said} of {brief(task)}: "
                    f"{listed([by_task[task], name])}. Choose with "
                    f"{called.argument}={by_task[task]!r:.200}."
                )
            by_task.setdefault(task, name)
    return by_task, notes


def _measured(rows: Rows, task: str, method: str) -> Control | None:
    here = (rows.tasks == task) & (rows.methods == method)
    return measured_control(rows.n[here], rows.risk[here])


def _said(
    called: Called, control: Mapping[str, Control], tasks: Sequence[str], names: Sequence[str]
) -> str:
    if not control:
        return f"no {called.said}"
    measured = f"rows of {listed(dict.fromkeys(names))}" if names else ""
    given = "" if all(c.source.startswith("measured") for c in control.values()) else "given"
    lost = [task for task in tasks if task not in control]
    how = " and ".join(filter(None, (measured, given)))
    exact = [task for task, one in control.items() if not one.std > 0]  # one run, or a number
    if exact:
        how += ", taken as exact" + ("" if len(exact) == len(control) else f" for {listed(exact)}")
    return f"{called.said}: {how}" + (f"; none for {listed(lost)}" if lost else "")
