"""Risks of methods by training size, with the controls that they are measured against."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import InputError
from curvewise.reading.roles import normal
from curvewise.text import brief, format_number, list_names, suggest
from curvewise.types.results import data_frame
from curvewise.types.units import FloatArray, as_floats

if TYPE_CHECKING:
    import pandas as pd


ONE_TASK = "task"
_SHARES = frozenset(["error", "errors", "err", "errs"])
_BESIDE = {"test", "val", "valid", "validation", "eval", "rate", "mean", "avg", "average"}
_BESIDE |= {"top", "1", "5", "top1", "top5", "final", "01"}


@dataclass(frozen=True)
class Control:
    """A risk that others are measured against: a blind guess, or maximal supervision.

    Attributes
    ----------
    risk : float
        In the unit of the losses.
    std : float
        Its standard error: 0 where the risk is known, NaN where the error is not. Either way
        intervals take the risk as exact.
    source : str
        Where it is from, in words: "measured", "given", "best observed risk", "asymptote", ….
    assumed : bool
        Whether it stands in for something that was not measured.
    degrees : float
        Degrees of freedom of the standard error: of three runs 2, infinite where it is known.
    """

    risk: float
    std: float = 0.0
    source: str = "given"
    assumed: bool = False
    degrees: float = math.inf

    def __post_init__(self) -> None:
        for name in ("risk", "std", "degrees"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float | np.number):
                raise InputError(f"{name}={value!r} of a control must be a number.")
            object.__setattr__(self, name, float(value))
        if not np.isfinite(self.risk):
            raise InputError(f"risk={self.risk!r} of a control must be a finite number.")
        if self.std < 0 or np.isinf(self.std):
            raise InputError(f"std={self.std!r} of a control must be 0 or above, NaN if unknown.")
        if not self.degrees > 0:
            raise InputError(f"degrees={self.degrees!r} of a control must be above 0.")


def measured_control(n: ArrayLike, risk: ArrayLike) -> Control | None:
    """The mean of runs without a size or, if all have one, of those at the largest.

    Parameters
    ----------
    n : array_like, shape (runs,)
        Training sizes; NaN or not positive where a run has none.
    risk : array_like, shape (runs,)
        NaN where a run failed.

    Returns
    -------
    Control, optional
        None if every run failed. The error of a single run is not known.

    Examples
    --------
    >>> measured_control([-1, -1, -1], [0.1, 0.2, 0.3]).degrees
    2.0
    >>> measured_control([1000, 1e6], [0.3, 0.2]).source
    'measured at n = 1,000,000'
    """
    sizes, risks = as_floats(n, "n"), as_floats(risk, "risk")
    here = ~np.isnan(risks)
    if not here.any():
        return None
    chosen, source = here & ~(sizes > 0), "measured"
    if not chosen.any():
        largest = float(sizes[here].max())
        chosen, source = here & (sizes == largest), f"measured at n = {format_number(largest)}"
    values = risks[chosen]
    many, mean = len(values), float(values.mean())
    if many < 2:
        return Control(mean, math.nan, source)
    std = float(values.std(ddof=1)) / math.sqrt(many)
    return Control(mean, std, source, degrees=many - 1.0)


def as_control(value: Any, argument: str, turned: Callable[[float], float] = float) -> Control:
    """A control out of a number, an interval, or an object that is, has or makes one.

    Parameters
    ----------
    value : float, Interval, Control, or object with a method ``control``
        As a user gives it.
    argument : str
        What it is called in an error.
    turned : callable
        Makes a risk of a plain number, where tables hold something else.

    Examples
    --------
    >>> from curvewise.types import Interval
    >>> as_control(Interval(0.1, 0.08, 0.12), "maximal").risk
    0.1
    """
    if isinstance(value, Control):
        return value
    if callable(getattr(value, "control", None)):  # as BlindGuess has it
        made = value.control()
        if isinstance(made, Control):
            return made
    if all(hasattr(value, k) for k in ("estimate", "low", "high")):
        wide = 2 * NormalDist().inv_cdf(0.5 + float(getattr(value, "level", 0.95)) / 2)
        std = (float(value.high) - float(value.low)) / wide
        return Control(float(value.estimate), std if math.isfinite(std) else math.nan, "interval")
    single = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not single or not math.isfinite(value):
        raise InputError(
            f"{argument}={repr(value)[:60]} is no control: give a finite number, an interval, a "
            "Control, the name of a method, or a dictionary of these by task."
        )
    return Control(turned(float(value)))


def names_share(name: str) -> bool:
    """Whether a risk is a share of the examples by its name, in percent or not.

    >>> names_share("Top-1 error"), names_share("reconstruction error"), names_share("loss")
    (True, False, False)
    """
    words = set(re.findall(r"[a-z0-9]+", name.lower()))
    return bool(words & _SHARES) and words <= _SHARES | _BESIDE


@dataclass(frozen=True, eq=False, repr=False)
class TransferRisks:
    """Risks of methods on tasks by training size: what :func:`load_risks` makes.

    Attributes
    ----------
    tasks, methods : ndarray of str, shape (rows,)
        What was learned, and from which start.
    n : ndarray of float, shape (rows,)
        Training-set size.
    risk : ndarray of float, shape (rows,)
        Loss or error on test data, lower is better; NaN where the run failed. Rows keep the order
        of their source.
    seeds, folds : ndarray of str, optional
        Which run it is: of which seed, and on which training subset. Runs with the same fold and
        size have been trained on the same examples.
    scratch : str
        Name of the method that starts from nothing.
    blind, maximal : dict of str to Control
        By task; a task that has none is not there. A number is a control without an error.
    unit : str
        What a risk is called on an axis, such as "test error" or "L1 loss".
    notes : tuple of str
        What was taken for what.

    Examples
    --------
    >>> TransferRisks(
    ...     tasks=["a"] * 4,
    ...     methods=["scratch", "scratch", "swav", "swav"],
    ...     n=[100, 1000, 100, 1000],
    ...     risk=[0.8, 0.4, 0.5, 0.3],
    ...     blind={"a": Control(0.9)},
    ... )
    TransferRisks(4 runs, 1 task, 2 methods, 2 sizes from 100 to 1000)
    """

    tasks: NDArray[np.str_]
    methods: NDArray[np.str_]
    n: FloatArray
    risk: FloatArray
    seeds: NDArray[np.str_] | None = None
    folds: NDArray[np.str_] | None = None
    scratch: str = "scratch"
    blind: Mapping[str, Control] = field(default_factory=dict)
    maximal: Mapping[str, Control] = field(default_factory=dict)
    unit: str = "loss"
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "risk", as_floats(self.risk, "risk"))
        if self.risk.ndim != 1 or not len(self.risk):
            raise InputError("risk is empty: give at least one measured risk.")
        put(self, "n", self._column(as_floats(self.n, "n"), "n"))
        for name in ("tasks", "methods", "seeds", "folds"):
            given = getattr(self, name)
            if given is not None:
                put(self, name, self._column(np.asarray(given, dtype=np.str_), name))
        for name in ("blind", "maximal"):
            put(self, name, _controls(getattr(self, name), name))
        if not (np.isfinite(self.n) & (self.n > 0)).all():
            bad = self.n[~(np.isfinite(self.n) & (self.n > 0))][0]
            raise InputError(f"n holds {bad:g}: training sizes must be positive numbers.")
        if np.isinf(self.risk).any():
            raise InputError("risk holds an infinite value: use NaN where a run failed.")

    def _column(self, given: NDArray[Any], argument: str) -> NDArray[Any]:
        if given.shape != self.risk.shape:
            raise InputError(f"{argument} has shape {given.shape} for {len(self)} risks: give one for each.")
        return given

    def __len__(self) -> int:
        return len(self.risk)

    def __repr__(self) -> str:
        sizes = np.unique(self.n)
        counts = {"run": len(self), "task": len(self.task_names), "method": len(self.method_names)}
        said = ", ".join(f"{k} {name}" + ("" if k == 1 else "s") for name, k in counts.items())
        ends = [format_number(n) for n in (sizes[0], sizes[-1])]
        span = f" from {ends[0]} to {ends[1]}" if len(sizes) > 1 else f": {ends[0]}"
        return f"TransferRisks({said}, {len(sizes)} size" + "s" * (len(sizes) > 1) + f"{span})"

    @property
    def task_names(self) -> tuple[str, ...]:
        """The tasks in order of first appearance."""
        return tuple(dict.fromkeys(self.tasks.tolist()))

    @property
    def method_names(self) -> tuple[str, ...]:
        """The methods, scratch among them, in order of first appearance."""
        return tuple(dict.fromkeys(self.methods.tolist()))

    def select(self, mask: ArrayLike) -> TransferRisks:
        """Some of the rows: a mask with an entry for each, or their positions."""
        chosen = np.asarray(mask)
        if chosen.dtype == np.bool_ and chosen.shape != self.risk.shape:
            raise InputError(f"mask has shape {chosen.shape}: give one entry for each of {len(self)} rows.")
        return replace(
            self,
            tasks=self.tasks[chosen],
            methods=self.methods[chosen],
            n=self.n[chosen],
            risk=self.risk[chosen],
            seeds=None if self.seeds is None else self.seeds[chosen],
            folds=None if self.folds is None else self.folds[chosen],
        )

    def of(self, *, task: str | None = None, method: str | None = None) -> TransferRisks:
        """The rows of one task, of one method, or of both."""
        keep = np.ones(len(self), dtype=np.bool_)
        for name, wanted, column in (("task", task, self.tasks), ("method", method, self.methods)):
            if wanted is None:
                continue
            if wanted not in column:
                there = ", ".join(map(repr, dict.fromkeys(column.tolist())))
                raise InputError(f"{name}={wanted!r} is not among the risks; there are {there}.")
            keep &= column == wanted
        if not keep.any():
            raise InputError(f"method={method!r} was not measured on task={task!r}.")
        return self.select(keep)

    def columns(self) -> dict[str, Any]:
        """A row for each run."""
        found: dict[str, Any] = {"task": self.tasks, "method": self.methods, "n": self.n}
        for name, column in (("seed", self.seeds), ("fold", self.folds)):
            if column is not None:
                found[name] = column
        return {**found, "risk": self.risk}

    def frame(self) -> pd.DataFrame:
        """The rows as a pandas DataFrame."""
        return data_frame(self.columns())


def _controls(given: Any, argument: str) -> dict[str, Control]:
    if not isinstance(given, Mapping):
        raise InputError(f"{argument}={given!r} must be a dictionary of controls by task.")
    return {str(t): c if isinstance(c, Control) else Control(c) for t, c in given.items()}


# Controls of a table of risks: rows that are called like one, or what the user gives.

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
                f"{list_names(found)}. Choose with scratch={found[0]!r:.200}, and leave the others out "
                "with where=… if they are not meant."
            )
        if found:
            return found[0]
    raise InputError(
        f"No method of {source} is called like training from scratch: name it with scratch=…. "
        f"There are {list_names(free)}."
    )


def find_control(
    rows: Rows, called: Called, given: Given, turned: Callable[[float], float], source: str, scratch: str | None = None
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
        notes.append(f"rows of {list_names(unused)} left out: {called.argument}= is given")
    gone = tuple(k for k in dict.fromkeys((*named, *unused)) if k != scratch)
    return Found(control, gone, (_said(called, control, tasks, named), *notes))


def _by_task(given: Given, tasks: Sequence[str], called: Called, source: str) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        return {} if given is None else dict.fromkeys(tasks, given)
    for task in given:
        if str(task) not in tasks:
            raise InputError(
                f"{called.argument} names the task {brief(task)}, which {source} does not have."
                f"{suggest(task, tasks)} It has {list_names(tasks)}."
            )
    return {str(task): value for task, value in given.items()}


def _named(rows: Rows, called: Called, name: str, source: str) -> str:
    if name not in rows.names:
        raise InputError(
            f"{called.argument}={name!r:.200} is no method of {source}.{suggest(name, rows.names)} "
            f"It has {list_names(rows.names)}."
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
                    f"{list_names([by_task[task], name])}. Choose with "
                    f"{called.argument}={by_task[task]!r:.200}."
                )
            by_task.setdefault(task, name)
    return by_task, notes


def _measured(rows: Rows, task: str, method: str) -> Control | None:
    here = (rows.tasks == task) & (rows.methods == method)
    return measured_control(rows.n[here], rows.risk[here])


def _said(called: Called, control: Mapping[str, Control], tasks: Sequence[str], names: Sequence[str]) -> str:
    if not control:
        return f"no {called.said}"
    measured = f"rows of {list_names(dict.fromkeys(names))}" if names else ""
    given = "" if all(c.source.startswith("measured") for c in control.values()) else "given"
    lost = [task for task in tasks if task not in control]
    how = " and ".join(filter(None, (measured, given)))
    exact = [task for task, one in control.items() if not one.std > 0]  # one run, or a number
    if exact:
        how += ", taken as exact" + ("" if len(exact) == len(control) else f" for {list_names(exact)}")
    return f"{called.said}: {how}" + (f"; none for {list_names(lost)}" if lost else "")
