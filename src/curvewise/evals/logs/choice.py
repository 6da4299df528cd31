"""The user's choice among what logs hold: models, tasks, and one metric and one filter for each task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import PurePath
from typing import Any

import numpy as np

from curvewise.errors import InputError, arg, brief, list_names, suggest
from curvewise.evals.evals import check_range
from curvewise.evals.logs.block import SAMPLES_OF_HARNESS, Block, Names
from curvewise.evals.logs.collect import Collection
from curvewise.reading.roles import check_direction_flag
from curvewise.reading.table import natural


@dataclass(frozen=True)
class EvalChoice:
    """The user's choice among what logs hold."""

    metric: tuple[str, ...] = ()
    filter: tuple[str, ...] = ()
    missing: str = "refuse"
    task: tuple[str, ...] = ()
    models: tuple[str, ...] | Mapping[str, tuple[str, ...]] | None = None
    repeats: str | None = None
    range: tuple[float, float] | None = None
    higher_is_better: bool | None = None

    @classmethod
    def of(cls, **given: Any) -> EvalChoice:
        """Make a choice of the arguments of ``load_evals``, refusing values that are not known."""
        names = {name: _names(given.get(name)) for name in ("metric", "filter", "task")}
        models = given.get("models")
        if isinstance(models, Mapping):
            models = {str(new): _names(old) for new, old in models.items()}
        elif models is not None:
            models = _names(models)
        choice = cls(**given | names | {"models": models})
        for name, allowed in (("missing", ("refuse", "wrong", "drop")), ("repeats", (None, "samples", "seeds"))):
            if getattr(choice, name) not in allowed:
                known = ", ".join(repr(value) for value in allowed if value)
                raise InputError(f"{arg(name, getattr(choice, name))} is not known: use {known}.")
        check_direction_flag(choice.higher_is_better)
        return choice if choice.range is None else replace(choice, range=check_range(choice.range))


def _names(given: Any) -> tuple[str, ...]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        return () if given is None else (str(given),)
    return tuple(map(str, given))


# Models and tasks: which of them, and under which names.


@dataclass(frozen=True)
class Selection:
    """Blocks of the chosen models and tasks.

    Attributes
    ----------
    blocks : tuple of Block
        With the names of models that the user gave.
    logs : tuple of tuple of str
        For each block and each of its models, in the order of the codes, the log that a row is out of.
    order : tuple of str
        Models in the order of the result.
    merged : frozenset of str
        Models that the user made of several.
    notes, warnings : tuple of str
        How the logs were interpreted, and what deserves a look.
    """

    blocks: tuple[Block, ...]
    logs: tuple[tuple[str, ...], ...]
    order: tuple[str, ...]
    merged: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def select_blocks(found: Collection, choice: EvalChoice) -> Selection:
    """Keep the chosen models and tasks, under the names that the user gives."""
    blocks = found.blocks
    if choice.task:
        tasks = sorted({name for block in blocks for name in used(block.task)}, key=natural)
        for pattern in choice.task:
            if not any(_matches(name, pattern, tasks) for name in tasks):
                known = f"There are {list_names(tasks)}." if any(tasks) else "They name no tasks: leave it out."
                raise InputError(f"{arg('task', pattern)} is in none of the logs.{suggest(pattern, tasks)} {known}")
        wanted = {name for name in tasks for pattern in choice.task if _matches(name, pattern, tasks)}
        chosen = [np.array([name in wanted for name in block.task.names], dtype=np.bool_) for block in blocks]
        blocks = tuple(block.keep(mask[block.task.codes]) for block, mask in zip(blocks, chosen, strict=True))
        blocks = tuple(block for block in blocks if len(block))
    named = _new_names(blocks, choice.models)
    kept, logs = [], []
    for block, new in zip(blocks, named, strict=True):
        mask = np.array([name is not None for name in new], dtype=np.bool_)
        rows = block.keep(mask[block.model.codes])
        if len(rows):
            label = [block.source if len(new) == 1 else f"{block.source}, {old}" for old in block.model.names]
            kept.append(replace(rows, model=Names(rows.model.codes, tuple(name or "" for name in new))))
            logs.append(tuple(label))
    there = {name for block in kept for name in used(block.model)}
    order = tuple(sorted(there, key=natural))
    merged: frozenset[str] = frozenset()
    if isinstance(choice.models, Mapping):
        order, merged = tuple(name for name in choice.models if name in there), frozenset(choice.models)
    files = Counter(kind for kind, _ in {(block.kind, block.source): None for block in kept})
    kinds = ", ".join(f"{count:,} × {kind}" if count > 1 else kind for kind, count in files.items())
    notes = dict.fromkeys([kinds, *_called_by_place(blocks), *(note for block in kept for note in block.notes)])
    warnings = dict.fromkeys([*found.warnings, *(text for block in kept for text in block.warnings)])
    return Selection(tuple(kept), tuple(logs), order, merged, tuple(notes), tuple(warnings))


def _called_by_place(blocks: Sequence[Block]) -> list[str]:
    """Note once which models of lm-eval are called by their folder or file, where no other file names them."""
    called: dict[str, dict[str, None]] = {}
    for block in blocks:
        if block.kind == SAMPLES_OF_HARNESS and block.called_by is not None:
            place = "folder" if block.called_by.is_dir() else "file"
            called.setdefault(place, {})[block.model.names[0]] = None
    return [
        f"{list_names(names, 4)} {how} (no results_*.json of the same date)"
        for place, names in called.items()
        for how in [f"are called by their {place}s" if len(names) > 1 else f"is called by its {place}"]
    ]


def code_of(names: Sequence[str], name: str) -> int:
    """Return the place of a name, -1 where it is not there."""
    return names.index(name) if name in names else -1


def used(names: Names) -> list[str]:
    """Return the names that occur in at least one row."""
    counts = np.bincount(names.codes, minlength=len(names.names))
    return [name for name, count in zip(names.names, counts, strict=True) if count]


def _matches(name: str, pattern: str, known: Iterable[str]) -> bool:
    """Return whether a pattern stands for a name: one that is itself a name stands for no other."""
    return name == pattern or (pattern not in known and fnmatchcase(name, pattern))


def _new_names(blocks: Sequence[Block], models: Any) -> list[tuple[str | None, ...]]:
    """Return the name of each model of each block, None for one that is not wanted."""
    if models is None:
        return [block.model.names for block in blocks]
    wanted = models if isinstance(models, Mapping) else {name: (name,) for name in models}
    missed = {pattern for patterns in wanted.values() for pattern in patterns}
    there = sorted({name for block in blocks for name in used(block.model)}, key=natural)
    found: list[tuple[str | None, ...]] = []
    for block in blocks:
        names: list[str | None] = []
        for old in block.model.names:
            path = PurePath(block.source)
            files = (block.source, f"{block.source}, {old}", path.name, path.stem)
            # The name of a model comes before that of a file: new.csv may hold the models new and old.
            fits = [
                (new, pattern)
                for new, patterns in wanted.items()
                for pattern in patterns
                if _matches(old, pattern, there)
                or (pattern not in there and any(_matches(file, pattern, files) for file in files))
            ]
            missed -= {pattern for _, pattern in fits}
            # Under the name of their file several models would be one, as if they were its trainings.
            several = used(block.model)
            by_file = [pattern for _, pattern in fits if not _matches(old, pattern, there) and pattern != files[1]]
            if isinstance(models, Mapping) and by_file and len(several) > 1:
                raise InputError(
                    f"{arg('models')} gives one name to {block.source}, which holds {len(several)} models: "
                    f"{list_names(several)}. Name the model that is meant: {arg('models', {fits[0][0]: several[0]})}."
                )
            new_names = {new for new, _ in fits}
            if isinstance(models, Mapping) and len(new_names) > 1:
                raise InputError(
                    f"{arg('models')} gives {brief(old)} of {block.source} the names {list_names(new_names)}."
                )
            names.append((next(iter(new_names)) if isinstance(models, Mapping) else old) if fits else None)
        found.append(tuple(names))
    if missed:
        pattern = min(missed)
        raise InputError(
            f"{arg('models', pattern)} is in none of the logs.{suggest(pattern, there)} There "
            f"{'is' if len(there) == 1 else 'are'} {list_names(there)}."
        )
    return found


# Metrics and filters: one of each for a task.


def _options(blocks: Sequence[Block], kind: str) -> dict[str, dict[str, list[str]]]:
    """Return for each task the metrics (with a score) or filters, and the files that have each."""
    found: dict[str, dict[str, list[str]]] = {}
    for block in blocks:
        for task in used(block.task):
            found.setdefault(task, {})
        if kind == "metric":
            scored = {metric: block.task.codes[~np.isnan(values)] for metric, values in block.scores.items()}
        elif block.filter is not None:
            scored = {name: block.task.codes[block.filter.codes == i] for i, name in enumerate(block.filter.names)}
        else:
            continue
        for option, codes in scored.items():
            for task in used(Names(codes, block.task.names)):
                found[task].setdefault(option, []).append(block.source)
    # A task without any score has the metrics of its files: its scores are missing.
    bare = {task for task, options in found.items() if not options and kind == "metric"}
    for block in blocks if bare else ():
        for task in bare.intersection(used(block.task)):
            for metric in block.scores:
                found[task].setdefault(metric, []).append(block.source)
    return found


def choose_metrics(blocks: Sequence[Block], wanted: Sequence[str]) -> dict[str, str]:
    """Return the metric of each task: the only one, or the one that is wanted."""
    chosen = {}
    unusable = {metric: (block.source, why) for block in blocks for metric, why in block.unusable.items()}
    for name in wanted:
        if name in unusable:
            source, why = unusable[name]
            raise InputError(f"{arg('metric', name)} of {source} {why}: it is no single score for each sample.")
    available = _options(blocks, "metric")
    for task, options in available.items():
        fits = _fitting("metric", task, options, wanted)
        if not fits:
            where = f"the task {brief(task)} has" if task else "there is"
            raise InputError(
                f"{arg('metric', wanted[0] if len(wanted) == 1 else list(wanted))}: {where} no such metric."
                f"{suggest(wanted[0], options)} There is {list_names(options)}."
            )
        chosen[task] = fits[0]
    _check_missed("metric", set(wanted) - set(chosen.values()), available)
    return chosen


def choose_filters(blocks: Sequence[Block], wanted: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Return the filter of each task that has filters, and notes on those that were not asked for."""
    chosen, notes = {}, []
    available = {task: options for task, options in _options(blocks, "filter").items() if options}
    for task, options in available.items():
        fits = _fitting("filter", task, options, wanted)
        if not fits and len(options) > 1:
            raise InputError(
                f"{arg('filter', wanted[0])}: the task {brief(task)} has no such filter. There are "
                f"{list_names(options)}."
            )
        chosen[task] = fits[0] if fits else next(iter(options))
        if wanted and not fits:
            notes.append(f"the task {brief(task)} has one filter, {brief(chosen[task])}, which is read")
    _check_missed("filter", set(wanted) - set(chosen.values()), available)
    return chosen, notes


def _fitting(kind: str, task: str, options: Mapping[str, Sequence[str]], wanted: Sequence[str]) -> list[str]:
    """Return the wanted one of the options of a task, or the only one; nothing where it has none that is wanted."""
    fits = [name for name in options if name in wanted] if wanted else list(options)
    if len(fits) > 1:
        raise _several(kind, task, {name: options[name] for name in fits})
    return fits


def _check_missed(kind: str, missed: set[str], available: Mapping[str, Iterable[str]]) -> None:
    """Refuse a wanted metric or filter that no task has."""
    if missed:
        name = min(missed)
        there = list(dict.fromkeys(option for options in available.values() for option in options))
        are = f"There {'is' if len(there) == 1 else 'are'} {list_names(there)}."
        remedy = are if there else f"These logs have no {kind}s: leave it out."
        raise InputError(f"{arg(kind, name)} is in none of the logs.{suggest(name, there)} {remedy}")


def _several(kind: str, task: str, options: Mapping[str, Sequence[str]]) -> InputError:
    files = {tuple(sources) for sources in options.values()}
    listed = list_names(options)
    if len(files) > 1:  # the user wants to know which log has which
        listed = "; ".join(
            f"{brief(name)} in {sources[0]}{f' and {len(sources) - 1} more' if len(sources) > 1 else ''}"
            for name, sources in list(options.items())[:10]
        )
    where = f"the task {brief(task)} has" if task else "the logs have" if len(files) > 1 else f"{min(files)[0]} has"
    return InputError(f"{where} {len(options)} {kind}s: {listed}. Choose one with {arg(kind, next(iter(options)))}.")
