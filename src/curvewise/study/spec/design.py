"""The design of a study (sizes × folds × seeds, and a grid of settings), and its learners."""

from __future__ import annotations

import math
import re
import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from itertools import product
from typing import Any

import numpy as np

from curvewise.errors import InputError
from curvewise.learning.partition import read_size
from curvewise.nn.task import Outputs, settle_training
from curvewise.nn.training import NUMBER_LOSSES, Training, misfit, parse_augmentation

CHANCES = ("init", "order", "augmentation", "poke")
"""Sources of randomness that can be varied one by one."""

CLASSES = "classes"
"""The setting of a grid that groups the classes of the data, for every learner."""

RESERVED = (
    *("learner", "n", "fold", "subset", "vary", "seed", "poke", "run", "status", "training"),
    *("recipe", "data", "search", *(f"{name}_seed" for name in CHANCES)),
)
"""Coordinates that every run has, whose names no setting of a grid may take."""


# Their coordinates alone would fill gigabytes, and a store has a folder for each.
MOST_RUNS = 500_000
"""Runs of a learner that a study may plan; more are a slip of the keyboard."""


@dataclass(frozen=True)
class Design:
    """The runs that a study makes of each learner.

    Attributes
    ----------
    sizes : sequence of int, float or str, optional
        Training-set sizes; numbers up to 1.0 are fractions of the training part. ``"3/class"`` is
        three examples of each class; ``"3/class + 1/class"`` and ``"18 + 1/class"`` add one of each
        for schedules that hold out a part to validate on, in the place of the learner's share. By
        default all.
    folds : int or sequence of int, optional
        Subsets of each size; by default as many as fit without overlap, at most 16.
    seeds : int or sequence of int
        Runs on each subset, and in each variation if there are several; one number, or one for
        each size.
    vary : sequence of {"init", "order", "augmentation", "poke"}, or sequence of such sequences
        What differs between these runs; the rest stays fixed. Several lists are several
        experiments on the same subsets, to see what each source of randomness does alone:
        ``[["init", "order", "augmentation"], ["init"], ["order"]]``.
    poke : dict, optional
        ``epoch`` (0) and ``factor`` (1.001): one weight is nudged then. Where ``vary`` holds
        several lists, only in those that name ``"poke"``. A list of epochs makes a run for each, of
        the same weight; a training is not poked after its end.
    grid : dict of str to sequence
        Settings of the learners, every combination of which is trained; those of networks leave
        estimators alone. A dict under the name of a learner is for that one:
        ``{"batch": [32, 128], "forest": {"max_depth": [3, 9]}}``. ``classes`` groups the classes of
        the data: each value has the new class of every old one, as :func:`binary_groupings` lists.
    test : float or int, optional
        Share or number of examples held out, where the data have no test set of their own; 0.2 by default.
    hold_out : bool
        Whether to hold out ``test`` even where the data has a test set of its own, which is then not used.
    nested, stratify, per_class : bool
        As in :func:`curvewise.learning.partition_training_set`. Numbers have no classes to stratify by.

    Examples
    --------
    >>> design = Design(seeds=5, vary=[["init", "order"], ["init"]])
    >>> design.variations
    (('init', 'order'), ('init',))
    """

    sizes: Sequence[float | str] | None = None
    folds: Sequence[int] | int | None = None
    seeds: Sequence[int] | int = 1
    vary: Sequence[str] | Sequence[Sequence[str]] = ("init", "order", "augmentation")
    poke: Mapping[str, Any] | None = None
    grid: Mapping[str, Sequence[Any] | Mapping[str, Sequence[Any]]] = field(default_factory=dict)
    test: float | None = None
    hold_out: bool = False
    nested: bool = False
    stratify: bool = True
    per_class: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.vary, str):
            object.__setattr__(self, "vary", (self.vary,))
        for name in ("sizes", "folds", "seeds", "vary"):
            object.__setattr__(self, name, _settled(getattr(self, name)))
        if isinstance(self.grid, Mapping):
            object.__setattr__(self, "grid", _plain_values(self.grid))
        self._check_numbers()
        self._check_variations()
        self._check_poke()
        self._refuse("grid", not isinstance(self.grid, Mapping), "give a table of settings and their values.")
        for name, values in self.grid.items():
            for inner, tried in values.items() if isinstance(values, Mapping) else [(None, values)]:
                place = name if inner is None else f"{name}.{inner}"
                if (inner or name) in RESERVED:
                    raise InputError(
                        f"has {place!r}, which every run has already: it cannot be a setting.", argument="grid"
                    )
                if isinstance(tried, str) or not isinstance(tried, Sequence) or not len(tried):
                    raise InputError(f"grid[{place!r}]={tried!r}: give a list of values to try.")
                if any(value in tried[:i] for i, value in enumerate(tried)):
                    raise InputError(f"grid[{place!r}]={tried!r} holds a value twice: give each once.")
        # More runs than can be planned are refused before they are counted one by one.
        beside = [v if isinstance(v, tuple) else (v or 1,) for v in (self.folds, self.seeds)]
        sizes = max(len(self.sizes or (1,)), *map(len, beside))
        subsets = zip(*(v if len(v) == sizes else (max(v),) * sizes for v in beside), strict=True)
        plain = [len(v) for v in self.grid.values() if not isinstance(v, Mapping)]
        chances = sum(len(self.poke_epochs) if self.is_poked(v) else 1 for v in self.variations)
        runs = int(sum(folds * seeds for folds, seeds in subsets)) * chances * math.prod(plain)
        if runs > MOST_RUNS:
            raise InputError(
                f"sizes × folds × seeds × vary × grid are {runs:,} runs of each learner: a study "
                f"makes at most {MOST_RUNS:,}. Lower folds={self.folds!r} or seeds={self.seeds!r}."
            )

    def _refuse(self, name: str, wrong: bool, problem: str) -> None:
        """Raise an error about one field, if something is wrong with it."""
        if wrong:
            raise InputError(problem, argument=name, value=getattr(self, name))

    def _check_numbers(self) -> None:
        seeds = self.seeds if isinstance(self.seeds, tuple) else (self.seeds,)
        whole = seeds and all(isinstance(k, int) and not isinstance(k, bool) and k >= 1 for k in seeds)
        self._refuse("seeds", not whole, "give the number of runs on each subset.")
        there = len(self.sizes) if isinstance(self.sizes, tuple) else 1
        if isinstance(self.seeds, tuple) and len(seeds) != there:
            problem = f"has {len(seeds)} value(s) and sizes has {there}: give one for each size, or one for all."
            raise InputError(problem, argument="seeds", value=list(seeds))
        wrong = self.test is not None and (not _is_number(self.test) or self.test <= 0)
        self._refuse("test", wrong, "give a share such as 0.2, or a number of examples.")
        given = self.sizes if isinstance(self.sizes, tuple) else ()
        right = len(given) > 0 and all(read_size(v) if isinstance(v, str) else _is_number(v) for v in given)
        problem = "give a list of numbers, such as [100, 200], or of texts such as '3/class' and '3/class + 1/class'."
        self._refuse("sizes", self.sizes is not None and not right, problem)
        folds = () if self.folds is None else self.folds if isinstance(self.folds, tuple) else (self.folds,)
        right = folds != () or self.folds is None
        right = right and all(_is_number(k) and k == int(k) >= 1 for k in folds)
        self._refuse("folds", not right, "give whole numbers, one or one for each size.")
        for name, largest in (("seeds", max(seeds)), ("folds", max(folds, default=1))):
            self._refuse(name, largest > MOST_RUNS, f"a study makes at most {MOST_RUNS:,} runs.")
        for name in ("hold_out", "nested", "stratify", "per_class"):
            self._refuse(name, not isinstance(getattr(self, name), bool), "give true or false.")

    def _check_variations(self) -> None:
        right = isinstance(self.vary, tuple) and all(isinstance(v, str | tuple) for v in self.vary)
        self._refuse("vary", not right, f"give a list out of {', '.join(CHANCES)}.")
        for variation in self.variations:
            for name in variation:
                if name not in CHANCES:
                    raise InputError(f"has {name!r}: use some of {', '.join(CHANCES)}.", argument="vary")
            if not variation and max(self.most_seeds, len(self.variations)) > 1:
                problem = "with vary=[] would make the same run several times: name what varies, or use seeds=1."
                raise InputError(problem, argument="seeds", value=self.seeds)
        as_sets = [frozenset(v) for v in self.variations]
        twice = len(set(as_sets)) < len(as_sets) or any(len(set(v)) < len(v) for v in self.variations)
        self._refuse("vary", twice, "holds an entry twice: give each once.")

    def _check_poke(self) -> None:
        poked = any("poke" in variation for variation in self.variations)
        if poked and self.poke is None:
            raise InputError("vary has 'poke', but poke= is not given: use poke={'epoch': 0}.", argument="poke")
        if self.poke is None:
            return
        self._refuse("poke", not isinstance(self.poke, Mapping), "give a table such as {epoch = 0}.")
        if unknown := set(self.poke) - {"epoch", "factor"}:
            raise InputError(f"has {sorted(unknown)}: it takes epoch and factor.", argument="poke")
        object.__setattr__(self, "poke", {name: _settled(value) for name, value in self.poke.items()})
        assert self.poke is not None
        for name, value in self.poke.items():
            several = value if name == "epoch" and isinstance(value, tuple) else (value,)
            right = all(_is_number(v) and (name != "epoch" or v >= 0) for v in several)
            if not right or not several or len(set(several)) < len(several):
                problem = "give a number, at least 0 for epoch, or a list of epochs, each once."
                raise InputError(f"poke has {name}={value!r}: {problem}")
        if len(self.variations) > 1 and not poked:
            raise InputError("poke= is given, but no list of vary names 'poke': add it to one.")

    @property
    def variations(self) -> tuple[tuple[str, ...], ...]:
        """The sources of randomness that vary, experiment by experiment; usually one."""
        if any(not isinstance(v, str) for v in self.vary):
            return tuple((v,) if isinstance(v, str) else tuple(v) for v in self.vary)
        return (tuple(self.vary),)  # type: ignore[arg-type]  # strings only, as just seen

    @property
    def most_seeds(self) -> int:
        """The most runs on a subset and in a variation, of any size."""
        return max(self.seeds) if isinstance(self.seeds, tuple) else int(self.seeds)  # type: ignore[arg-type]

    def is_poked(self, variation: Sequence[str]) -> bool:
        """Return whether a weight is nudged in the runs of a variation."""
        return self.poke is not None and (len(self.variations) == 1 or "poke" in variation)

    @property
    def sources(self) -> dict[str, tuple[str, ...]]:
        """Variations to be held against the widest one, which is called all; twins of that are no source of their own.

        >>> every = ["init", "order"]
        >>> list(Design(vary=[every, ["init"], [*every, "poke"]], poke={}).sources)
        ['all', 'init']
        """
        widest = max((v for v in self.variations if "poke" not in v), key=len, default=self.variations[0])
        others = [v for v in self.variations if v != widest and set(v) != {*widest, "poke"}]
        return {"all": widest, **{"+".join(v): v for v in others}}

    @property
    def poke_epochs(self) -> tuple[float, ...]:
        """Epochs at which a weight is nudged, each in a run of its own."""
        epoch = (self.poke or {}).get("epoch", 0.0)
        return epoch if isinstance(epoch, tuple) else (epoch,)

    @property
    def settings(self) -> tuple[str, ...]:
        """Names of the settings that the grid varies, for any learner."""
        inner = [list(v) if isinstance(v, Mapping) else [k] for k, v in self.grid.items()]
        return tuple(dict.fromkeys(name for names in inner for name in names))

    def combinations(
        self, learner: str | None = None, takes: Callable[[str], bool] = lambda _: True
    ) -> Iterator[dict[str, Any]]:
        """Every combination of the grid for a learner; one empty one when there is none.

        Parameters
        ----------
        learner : str, optional
            Whose; what the grid holds for this one alone comes last.
        takes : callable
            Whether a setting that the grid holds for all means something to the learner.
        """
        grid = {k: v for k, v in self.grid.items() if not isinstance(v, Mapping) and takes(k)}
        own = self.grid.get(learner, {}) if learner is not None else {}
        grid |= own if isinstance(own, Mapping) else {}
        for values in product(*grid.values()):
            yield dict(zip(grid, values, strict=True))

    def seeds_of(
        self, entropy: int, n: int, fold: int, replicate: int, variation: Sequence[str] | None = None
    ) -> dict[str, int]:
        """Seeds of one run, each from a stream of its own; what does not vary is replicate 0's."""
        variation = self.variations[0] if variation is None else variation
        found = {}
        for i, name in enumerate(CHANCES):
            if name == "poke" and not self.is_poked(variation):
                continue
            which = replicate if name in variation else 0
            # Adding sizes, folds or replicates to a design leaves the seeds of all other runs as they were.
            state = np.random.SeedSequence([entropy, i, n, fold, which]).generate_state(1)
            found[name] = int(state[0])
        return found


def _settled(value: Any) -> Any:
    """Lists and arrays become tuples, so that designs compare alike wherever they came from."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    return tuple(map(_settled, value)) if isinstance(value, list | tuple) else value


def _plain_values(value: Any) -> Any:
    """Replace numpy's arrays and numbers by lists and numbers; all else stays as it is."""
    if isinstance(value, Mapping):
        return {k: _plain_values(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_plain_values, value))
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def _is_number(value: Any) -> bool:
    number = isinstance(value, int | float | np.integer | np.floating)
    return number and not isinstance(value, bool) and math.isfinite(value)


@contextmanager
def within(place: str) -> Iterator[None]:
    """Put the place of a mistake before its message."""
    try:
        yield
    except InputError as error:  # in the terms of Python, which are those of TOML, and never as options
        raise InputError(f"{place}: {error}") from error


def check_keys(table: Mapping[str, Any], known: Sequence[str]) -> None:
    """Refuse a key that means nothing here, and suggest the one that was meant."""
    for key in table:
        if key not in known:
            close = get_close_matches(str(key), known, 1)
            meant = f" Did you mean {close[0]!r}?" if close else ""
            raise InputError(f"{key!r} is not known here.{meant} There are {', '.join(known)}.")


FIELDS = (*("n", "fold", "seed", "init_seed", "order_seed", "augmentation_seed"), *("id", "rows", "data", "out"))
"""Fields that a command may ask for in braces, beside the names of the grid."""


@dataclass(frozen=True)
class Learner:
    """One way to turn a training set into predictions; exactly one of the three kinds.

    Attributes
    ----------
    training : Training, optional
        A network and how it is trained.
    estimator : str, optional
        An estimator by its place, ``"sklearn.svm:SVC"``; its parameters in ``options``.
    command : str, optional
        A command line with ``{n}``, ``{seed}``, ``{out}`` and others of :data:`FIELDS` in it. It is
        run without a shell, is given its training rows in the file ``{rows}``, and writes its
        predictions to the folder ``{out}``.
    options : dict
        Parameters of the estimator.
    members : int
        How many networks with seeds of their own average their probabilities, or numbers.
    timeout : float, optional
        Seconds after which a command is stopped and counted as failed.
    judged : {"l1", "l2"}, optional
        By which loss an estimator or a command is judged where targets are numbers; ``"l2"`` by
        default. Networks are judged by the loss they are trained with.
    inherited : tuple of str
        Settings that come from a recipe: one that a change of another setting makes idle is no
        mistake. No part of a run's identity.
    """

    training: Training | None = None
    estimator: str | None = None
    command: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    members: int = 1
    timeout: float | None = None
    judged: str | None = None
    inherited: tuple[str, ...] = field(default=(), compare=False, repr=False)

    def __post_init__(self) -> None:
        kinds = [k for k in ("training", "estimator", "command") if getattr(self, k) is not None]
        if len(kinds) != 1:
            raise InputError(
                "A learner needs one of architecture (a network), estimator or command; it has "
                f"{' and '.join(kinds) or 'none'}."
            )
        object.__setattr__(self, "members", _plain_values(self.members))
        whole = isinstance(self.members, int) and not isinstance(self.members, bool)
        if not whole or self.members < 1 or (self.members > 1 and self.training is None):
            raise InputError(f"members={self.members!r}: only networks, one or more, form ensembles.")
        if self.estimator is not None and not re.fullmatch(r"\w+(\.\w+)*:\w+", str(self.estimator)):
            problem = "give its place as 'module:Class', such as 'sklearn.svm:SVC'."
            raise InputError(problem, argument="estimator", value=self.estimator)
        if self.command is not None and "out" not in asked_fields(self.command):
            problem = "does not say {out}: the folder to which it must write its predictions."
            raise InputError(problem, argument="command", value=self.command)
        given: Any = self.timeout
        seconds = isinstance(given, int | float) and not isinstance(given, bool) and given > 0
        if given is not None and (not seconds or self.command is None):
            raise InputError("give a command that may take so many seconds.", argument="timeout", value=given)
        problem = ""
        if self.judged is not None and self.judged not in NUMBER_LOSSES:
            problem = f"is not known: use one of {', '.join(NUMBER_LOSSES)}."
        elif self.judged is not None and self.training is not None:
            problem = "a network is judged by the loss it is trained with; give loss= instead."
        if problem:
            raise InputError(problem, argument="judged", value=self.judged)

    @property
    def kind(self) -> str:
        """``"network"``, ``"estimator"`` or ``"command"``."""
        if self.training is not None:
            return "network"
        return "estimator" if self.estimator is not None else "command"

    @property
    def loss(self) -> str | None:
        """By which loss it is judged where targets are numbers; None for classes."""
        return self.judged if self.training is None else self.training.loss

    def takes(self, setting: str) -> bool:
        """Return whether a setting that a grid varies for all learners means something to this one.

        >>> Learner(estimator="sklearn.svm:SVC").takes("batch")
        False
        """
        if self.training is not None or setting == CLASSES:
            return True
        if self.command is not None:
            return setting in asked_fields(self.command) or setting in FIELDS  # which is refused
        # Estimators have a loss of their own.
        return setting == "loss" or setting not in {"members", *(f.name for f in fields(Training))}

    def with_settings(self, settings: Mapping[str, Any]) -> Learner:
        """The learner with some of its settings replaced, as a grid asks for; classes are the data's."""
        settings = {k: v for k, v in settings.items() if k != CLASSES}
        if self.training is None:
            return replace(self, options={**self.options, **settings})
        members = settings.get("members", self.members)
        settings = {k: v for k, v in settings.items() if k != "members"}
        known = {f.name for f in fields(Training)} - {"options"}
        direct = {k: v for k, v in settings.items() if k in known}
        inner = {k: v for k, v in settings.items() if k not in known}
        options = {**self.training.options, **inner}
        training = replace(self.training, **direct, options=options)
        return replace(self, training=training, members=members)

    def as_dict(self) -> dict[str, Any]:
        """Everything that determines what is trained, ready for JSON."""
        if self.training is not None:
            return {**self.training.as_dict(), "members": self.members}
        judged = {} if self.judged is None else {"judged": self.judged}
        return {self.kind: self.estimator or self.command, "options": dict(self.options), **judged}


def settle_learner(learner: Learner, outputs: Outputs, name: str = "learner", largest: int | None = None) -> Learner:
    """Settle by which loss a learner is judged, and refuse one that is not for such targets.

    >>> settle_learner(Learner(estimator="sklearn.linear_model:Ridge"), (2,)).loss
    'l2'
    """
    with within(f"learners.{name}"):
        if learner.training is not None:
            return replace(learner, training=settle_training(learner.training, outputs, largest))
        if isinstance(outputs, int):
            if learner.judged is not None:
                problem = "is for numbers, and the targets are classes: leave it out."
                raise InputError(problem, argument="judged", value=learner.judged)
            return learner
        if learner.estimator is not None and len(outputs) > 1:
            problem = (
                f"predicts rows of numbers, and the targets are images of shape {outputs}: use a network or a command."
            )
            raise InputError(problem, argument="estimator", value=learner.estimator)
    return replace(learner, judged=learner.judged or "l2")


def check_learner(name: str, versions: Sequence[Learner], shape: tuple[int, ...]) -> None:
    """Refuse augmentation that does not fit the inputs, and settings that change none of a learner's runs.

    Parameters
    ----------
    name : str
        Of the learner.
    versions : sequence of Learner
        Networks: the learner with each combination of a grid.
    shape : tuple of int
        Of one input.

    Raises
    ------
    InputError
        Names the setting and a remedy. A setting that at least one version uses is no mistake.
    """
    trainings = [v.training for v in versions if v.training is not None]
    idle = [training.idle() for training in trainings]
    usual = Training()
    with within(f"learners.{name}"):
        for training in trainings:
            parse_augmentation(training.augmentation, shape)
        for setting in dict.fromkeys(key for found in idle for key in found):
            given = [k for k, training in enumerate(trainings) if getattr(training, setting) != getattr(usual, setting)]
            if setting not in versions[0].inherited and all(setting in idle[k] for k in given):
                raise misfit(setting, getattr(trainings[given[0]], setting), *idle[given[0]][setting])


def asked_fields(command: str) -> list[str]:
    """List the names in braces of a command, each once.

    >>> asked_fields("train {n} {out} {{not}} {n:05d}")
    ['n', 'out']
    """
    if not isinstance(command, str) or not command.strip():
        raise InputError("give a command line as text.", argument="command", value=command)
    try:
        parsed = [name for _, name, _, _ in string.Formatter().parse(command) if name is not None]
    except ValueError as error:
        raise InputError(f"{error}.", argument="command", value=command) from error
    return list(dict.fromkeys(parsed))
