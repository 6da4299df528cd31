"""Checkpoints with accuracies after fine-tuning and scores that measures gave them before, and their reader."""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import InputError, arg, brief, list_names, suggest
from curvewise.ranking.measure import CheckpointFeatures
from curvewise.reading.arrays import map_npy, named_arrays, read_named, read_vector
from curvewise.reading.roles import (
    TOPS,
    ColumnMap,
    ColumnRoles,
    Role,
    ask,
    ask_percent,
    check_column,
    find_roles,
    fractions,
    is_status,
    named_unit,
    normal,
    select_rows,
    synonyms,
)
from curvewise.reading.table import (
    Table,
    as_path,
    full_names,
    is_measured,
    is_missing,
    large_files,
    names_in,
    numbers,
    read_table,
    read_text,
    texts,
    unfold,
)
from curvewise.store.tables import store_folder, store_table
from curvewise.text import format_count
from curvewise.types.results import FloatArray, RowTable, as_column, as_floats, distinct, same_names

ROLES = (
    Role(
        "checkpoint",
        (
            synonyms("""
            checkpoint checkpoint_name ckpt model model_name network backbone architecture source_architecture
            source_model source_network source_dataset pretrained name"""),
            synonyms("learner"),  # of stored runs
        ),
        percent=True,
        needed=True,
    ),
    Role(
        "task",
        (
            synonyms("""
            task task_name target target_dataset target_task dataset dataset_name downstream downstream_task
            downstream_dataset"""),
        ),
        percent=True,
    ),
    Role("group", (synonyms("group group_name pool family"),), percent=True),
    Role(
        "accuracy",
        (
            synonyms("""
            accuracy acc test_accuracy test_acc final_accuracy fine_tuned_accuracy finetuned_accuracy
            finetune_accuracy fine_tuning_accuracy finetuning_accuracy ft_accuracy ft_acc truth mean_iou test_mean_iou
            miou"""),
        ),
        percent=True,
        needed=True,
    ),
    Role("measure", (synonyms("measure measure_name metric metric_name transferability_metric"),), percent=True),
    Role("score", (synonyms("score measure_score metric_score transferability_metric_score"),), percent=True),
    Role("reference", (synonyms("reference is_reference"),), percent=True),
)
_BY_NAME = {role.name: role for role in ROLES}
BASELINES = synonyms("""
    parameters params n_parameters num_parameters number_of_parameters n_params num_params size model_size weights
    largest_model source_accuracy source_acc source_test_accuracy imagenet_accuracy imagenet_acc imagenet_top_1
    imagenet_top1 pretraining_accuracy best_source_accuracy""")
_NEITHER = synonyms("""
    seed fold seconds time date index id run run_id reason error train_error loss train_loss n epoch epochs steps rate
    lr learning_rate batch batch_size weight_decay rank""")
# What fine-tuning gave beside its accuracy: no score from before.
_AFTERWARDS = synonyms("""
    test_error val_error validation_error error_rate test_error_rate top_1_error top1_error test_loss val_loss
    validation_loss final_loss train_accuracy train_acc training_accuracy val_accuracy val_acc validation_accuracy
    accuracy_std acc_std test_accuracy_std test_acc_std accuracy_stderr accuracy_sem accuracy_se accuracy_low
    accuracy_high std sd sem stderr""")
_YES, _NO = ("true", "1", "1.0", "yes"), ("false", "0", "0.0", "no", "", "nan", "none")
_ERRORS, _LOSSES = {"error", "errors", "err"}, {"loss", "losses", "perplexity"}
_COST = "gflops"
ONE_GROUP = "all checkpoints"
ONE_TASK = "one task"
UNION = "union"
NO_SCORES = "scores: none"
RESERVED = ("group", "task", "checkpoint", "accuracy", "reference")


def load_checkpoint_scores(
    source: Any,
    *,
    accuracies: Any = None,
    columns: ColumnMap | None = None,
    measures: Sequence[str] | None = None,
    wide: str | None = None,
    unit: str | None = None,
    reference: str | Sequence[str] = (),
    baselines: Sequence[str] | None = None,
    where: Mapping[str, Any] | None = None,
    repeats: str | None = None,
    allow_large: bool = False,
) -> CheckpointScores:
    """Read checkpoints with fine-tuned accuracies and scores of ranking measures.

    ``notes`` of the result record how each column was interpreted.

    Parameters
    ----------
    source : path, DataFrame, dict or list
        A CSV, TSV, JSON, JSON lines or Parquet file, a folder of stored runs, a frame, a dict of columns or a list of
        records. Either a row for each checkpoint and task with a column for each measure, or a row
        for each score with a column that names the measure, or accuracies alone as a matrix (see
        ``wide``).
    accuracies : path, DataFrame, dict, list or CheckpointScores, optional
        The accuracies, if they are in another table; joined by checkpoint, task and group. Scores
        without a column of tasks hold for all tasks.
    columns : dict, optional
        Which column has a role: ``{"checkpoint": "net", "accuracy": "top1"}``. Roles are checkpoint, task, group,
        accuracy, reference and, where each row is one score, measure and score; None leaves one out. Others are found
        by name.
    measures : sequence of str, optional
        Columns with scores, by default all other numbers; where each row is one score, the
        measures to read. Columns called ``MEASURE_gflops`` or ``gflops.MEASURE`` are their costs.
    wide : {"checkpoints"}, optional
        Each column of numbers is a checkpoint and holds its accuracies, a row for each task.
    unit : {"fraction", "percent", "score"}, optional
        Of the accuracies. By default percent if the name of their column says so (``acc (%)``),
        else fractions. A score is any number of which more is better.
    reference : str or sequence of str
        Checkpoints that are shown and never ranked, such as "From-Scratch"; also those that a
        column ``reference`` marks as true.
    baselines : sequence of str, optional
        Which scores are plain baselines; by default those called like a number of parameters or a
        source accuracy.
    where : dict, optional
        Only rows with these values: ``{"Trainable Backbone": False}``, or a list of values.
    repeats : {"best", "mean"}, optional
        Of several rows of one checkpoint and task, take the best accuracy, as over hyperparameters, or the mean, as
        over seeds. By default they are an error.
    allow_large : bool
        Read a compressed file even if it unpacks to more than 256 MiB of text or 1 GiB of arrays.

    Returns
    -------
    CheckpointScores
        Rows without an accuracy or a score are kept, with NaN, and noted.

    Raises
    ------
    InputError
        If something cannot be read, or could be read in two ways.

    Examples
    --------
    >>> rows = {
    ...     "model": ["a", "b", "a", "b"],
    ...     "dataset": ["pets", "pets", "cars", "cars"],
    ...     "accuracy": [91.0, 88.0, 70.5, 73.0],
    ...     "nleep": [-0.5, -0.7, -2.1, -2.0],
    ...     "parameters": [25, 11, 25, 11],
    ... }
    >>> table = load_checkpoint_scores(rows, unit="percent")
    >>> table, table.baselines
    (CheckpointScores(2 checkpoints, 2 tasks, 1 group, 2 measures), ('parameters',))
    """
    if unit is not None and unit not in TOPS:
        raise InputError(f"use one of {', '.join(map(repr, TOPS))}.", argument="unit", value=unit)
    if wide not in (None, "checkpoints"):
        raise InputError("use 'checkpoints', or leave it out.", argument="wide", value=wide)
    if repeats not in (None, "best", "mean"):
        raise InputError("use 'best', 'mean', or leave it out.", argument="repeats", value=repeats)
    with large_files(allow_large):
        table = select_rows(_read(source), where)
        if wide is not None:
            found = _from_matrix(table, columns or {}, unit)
        else:
            roles = _find_columns(table, columns, measures, list(where or ()))
            keys = [k for own in roles.of.held.values() for k in own]
            table = unfold(table, keys if roles.is_long else [*keys, *roles.measures])
            found = _from_rows(table, roles, unit, repeats, separate=accuracies is not None)
        if accuracies is not None:
            truth = accuracies
            if not isinstance(truth, CheckpointScores):
                other = _read(accuracies)
                # Names that only the table of scores has are not asked of that of accuracies.
                named = {role: name for role, name in (columns or {}).items() if name is None or name in other.columns}
                truth = _from_rows(other, _find_columns(other, named, None, ()), unit, repeats, separate=False)
                truth = replace(truth, notes=(*truth.notes, *other.notes))
            found = _joined(found, truth, table.source)
    # Fractions read as percentages are all below 1%, which no fine-tuned checkpoint is.
    tops = {name: np.nanmax(part.accuracy, initial=0.0) for name, part in found.by_task().items()}
    if unit == "percent" and (small := [name for name, top in tops.items() if 0 < top <= 0.01]):
        if len(small) == len(tops):
            remedy = f"pass {arg('unit', 'fraction')} if that is what they are."
        else:
            remedy = "give all tasks one unit."
        place = "" if len(small) == len(tops) else f" for {list_names(small, 3)}"
        raise InputError(f"{arg('unit', 'percent')}, and no accuracy{place} is above 1: {remedy}")
    return _finished(replace(found, notes=(*found.notes, *table.notes)), reference, baselines)


@dataclass(frozen=True, eq=False, repr=False)
class CheckpointScores(RowTable):
    """A table on which ranking measures are judged: a row for each checkpoint and task.

    Attributes
    ----------
    checkpoints : ndarray of str
        Each once in a group and task.
    accuracy : ndarray
        After fine-tuning, as a fraction (or any score of which more is better); NaN where it
        failed.
    scores : dict of str to ndarray
        By measure; higher predicts better; NaN where there is none.
    tasks, groups : ndarray of str, optional
        Checkpoints are ranked within a group, for one task at a time.
    reference : tuple of str
        Checkpoints that are shown and never ranked, such as training from scratch.
    gflops : dict of str to ndarray
        Cost of a measure apart from the forward pass, NaN where unknown.
    baselines : tuple of str
        Which of the scores are plain baselines (size, source accuracy).
    notes : tuple of str
        How each column was interpreted.

    Examples
    --------
    >>> CheckpointScores(["a", "b"], [0.8, 0.9], {"nleep": [-1.2, -0.7]})
    CheckpointScores(2 checkpoints, 1 task, 1 group, 1 measure)
    """

    by_row = ("checkpoints", "accuracy", "scores", "tasks", "groups", "gflops")

    checkpoints: NDArray[np.str_]
    accuracy: FloatArray
    scores: Mapping[str, FloatArray] = field(default_factory=dict)
    # Any, since what may be left out is always an array of names afterwards.
    tasks: Any = None
    groups: Any = None
    reference: tuple[str, ...] = ()
    gflops: Mapping[str, FloatArray] = field(default_factory=dict)
    baselines: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        put = object.__setattr__
        names = np.asarray(self.checkpoints, dtype=np.str_)
        if names.ndim != 1 or not len(names):
            raise InputError("is empty: give at least one name.", argument="checkpoints")
        put(self, "checkpoints", self._names(names, "checkpoints", ""))
        put(self, "tasks", self._names(self.tasks, "tasks", ONE_TASK))
        put(self, "groups", self._names(self.groups, "groups", ONE_GROUP))
        put(self, "accuracy", self._numbers(self.accuracy, "accuracy"))
        for part in ("scores", "gflops"):
            given = getattr(self, part)
            put(self, part, {str(k): self._numbers(v, f"{part}[{k!r}]") for k, v in given.items()})
        put(self, "reference", tuple(str(name).strip() for name in self.reference))
        put(self, "baselines", tuple(map(str, self.baselines)))
        self._check()

    def _names(self, given: ArrayLike | None, argument: str, one: str) -> NDArray[np.str_]:
        if given is None:
            return np.full(len(self), one)
        names = as_column(np.asarray(given, dtype=np.str_), argument, len(self), "rows")
        return np.array(same_names(names.tolist(), argument))

    def _numbers(self, given: ArrayLike, argument: str) -> FloatArray:
        found: FloatArray = as_column(as_floats(given, argument), argument, len(self), "rows")
        if np.isinf(found).any():
            raise InputError(f"{argument} holds an infinite value: use NaN where there is none.", argument=argument)
        return found

    def _check(self) -> None:
        rows = Counter(zip(self.groups, self.tasks, self.checkpoints, strict=True))
        (group, task, name), count = rows.most_common(1)[0]
        if count > 1:
            raise InputError(
                f"holds {str(name)!r} {count} times for task {str(task)!r} in group {str(group)!r}: "
                "average repeated fine-tunings, or name them apart.",
                argument="checkpoints",
            )
        if clash := set(self.scores) & set(RESERVED):
            raise InputError(f"scores: {min(clash)!r} is the name of another column.")
        for argument in ("baselines", "gflops"):
            if lost := set(getattr(self, argument)) - set(self.scores):
                raise InputError("none of the scores.", argument=argument, value=min(lost))

    def __len__(self) -> int:
        return len(self.checkpoints)

    def __repr__(self) -> str:
        parts = {
            "checkpoint": len(set(self.checkpoints.tolist()) - set(self.reference)),
            "task": len(self.task_names),
            "group": len(self.group_names),
            "measure": len(self.scores),
        }
        return f"CheckpointScores({', '.join(format_count(k, noun) for noun, k in parts.items())})"

    @property
    def measures(self) -> tuple[str, ...]:
        """Names of the measures."""
        return tuple(self.scores)

    @property
    def task_names(self) -> tuple[str, ...]:
        """The tasks in order of first appearance."""
        return distinct(self.tasks)

    @property
    def group_names(self) -> tuple[str, ...]:
        """The groups in order of first appearance."""
        return distinct(self.groups)

    @property
    def ranked(self) -> NDArray[np.bool_]:
        """True for rows that are ranked: all but those of a reference."""
        return ~np.isin(self.checkpoints, self.reference)

    def by_group(self) -> dict[str, CheckpointScores]:
        """Return a table for each group."""
        return {name: self.select(self.groups == name) for name in self.group_names}

    def by_task(self) -> dict[str, CheckpointScores]:
        """Return a table for each task."""
        return {name: self.select(self.tasks == name) for name in self.task_names}

    def first_rows(self) -> Places:
        """Return for each row the first one of the same task and checkpoint, which several groups may share."""
        places: dict[tuple[str, str], int] = {}
        keys = zip(self.tasks.tolist(), self.checkpoints.tolist(), strict=True)
        return np.array([places.setdefault(key, i) for i, key in enumerate(keys)])

    def union(self) -> CheckpointScores:
        """Join all groups; a row that several groups share (a reference, say) is kept once."""
        found = self.select(self.first_rows() == np.arange(len(self)))
        return replace(found, groups=np.full(len(found), UNION))

    def with_scores(
        self, scores: Mapping[str, ArrayLike], gflops: Mapping[str, ArrayLike] | None = None
    ) -> CheckpointScores:
        """Return the same rows with further measures, or others in the place of those of a name."""
        return replace(
            self,
            scores={**self.scores, **scores},  # type: ignore[dict-item]
            gflops={**self.gflops, **(gflops or {})},  # type: ignore[dict-item]
        )

    def columns(self) -> dict[str, Any]:
        """Return columns with a row for each checkpoint and task."""
        return {
            "group": self.groups,
            "task": self.tasks,
            "checkpoint": self.checkpoints,
            "reference": ~self.ranked,
            "accuracy": self.accuracy,
            **self.scores,
        }


def _read(source: Any) -> Table:
    folder = store_folder(source)
    if folder is None:
        return read_table(source)
    try:
        return store_table(folder, "accuracy")
    except InputError:  # no run has one: what there is will be named where accuracies are asked for
        return store_table(folder)


@dataclass(frozen=True)
class ScoreColumns:
    """Columns by role, and those of scores and costs.

    ``measures`` are columns of scores of a wide table (of a long one the measures to keep, all if empty), and
    ``gflops`` columns of costs by measure (by ``""`` in a long one).
    """

    of: ColumnRoles
    measures: tuple[str, ...] = ()
    gflops: dict[str, str] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()

    @property
    def is_long(self) -> bool:
        """True where a row is one score of one checkpoint."""
        return "measure" in self.of


def _find_columns(
    table: Table, given: ColumnMap | None, measures: Sequence[str] | None, used: Sequence[str]
) -> ScoreColumns:
    """Find the column of each role, by the user's word or by name; other numbers are scores or their costs.

    Columns in ``used`` select rows, and hold no scores.
    """
    if isinstance(measures, str):
        raise InputError("give a list of columns.", argument="measures", value=measures)
    named = {role: name for role, name in (given or {}).items() if name is not None}
    wide = measures is not None and not _is_long(table, named, measures)
    columns = list(measures or ()) if wide else []
    for name in columns:
        _check_measure(table, named, name)
    free = {k: cells for k, cells in table.columns.items() if k not in columns}
    roles = [r if not (wide and r.name in ("measure", "score")) else Role(r.name) for r in ROLES]
    one = find_roles(free, table.source, roles, given, used=used)
    _check_long(table, one)
    costs = {k: measure for k in one.rest if (measure := _costs(k)) is not None}
    scores = list(measures or ())
    if not wide and "measure" not in one:
        scores = [k for k in one.rest if k not in costs and _is_score(k, table)]
    if "measure" in one:
        plain = [k for k, measure in costs.items() if measure == ""]
        gflops = {"": plain[0]} if plain else {}
    else:
        known = {normal(name): name for name in scores}
        gflops = {known[m]: column for column, m in costs.items() if m in known}
    left = [k for k in one.rest if k not in scores and k not in gflops.values()]
    return ScoreColumns(one, tuple(scores), gflops, tuple(left))


def _is_long(table: Table, named: Mapping[str, Any], measures: Sequence[str]) -> bool:
    """Return whether measures that are asked for are named in cells, and not by columns."""
    if "measure" in named or "score" in named:
        return True
    found = [any(map(_BY_NAME[role].is_called, table.columns)) for role in ("measure", "score")]
    return all(found) and not all(name in table.columns for name in measures)


def _check_measure(table: Table, named: Mapping[str, Any], name: str) -> None:
    """Raise unless a measure is a column; where it is in cells of one, say what to pass."""
    free = {k: cells for k, cells in table.columns.items() if k not in named.values()}
    inside = [k for k, cells in free.items() if not is_measured(cells) and name in texts(cells)]
    if name not in table.columns and inside:
        numeric = [k for k in free if _is_score(k, table) and not _BY_NAME["accuracy"].is_called(k)]
        raise InputError(
            f"{brief(name)} is no column of {table.source} but stands in "
            f"{brief(inside[0])}: pass {_ask_long([inside[0]], numeric)}.",
            argument="measures",
            value=[name],
        )
    check_column(table.columns, table.source, arg("measures", [name]), name)


def _check_long(table: Table, one: ColumnRoles) -> None:
    """Check that a table which names measures has scores, and the other way round."""
    numeric = [k for k in one.rest if _is_score(k, table)]
    if "measure" in one and "score" not in one:
        raise InputError(
            f"{table.source} names measures in {brief(one['measure'])}, but no column holds their scores: pass "
            f"{_ask_long([one['measure']], numeric)}."
        )
    if "score" in one and "measure" not in one:
        others = [k for k in one.rest if k not in numeric]
        raise InputError(
            f"{table.source} has scores in {brief(one['score'])}, but no column says of which measure: pass "
            f"{_ask_long(others, [one['score']])}, or {arg('measures', [one['score']])} if there is one only."
        )


def _ask_long(measures: Sequence[str], scores: Sequence[str]) -> str:
    """Write the setting for a table with one score per row, with the columns that are possible.

    >>> from curvewise.errors import Message
    >>> Message(_ask_long(["metric"], ["a", "b"]))
    "columns={'measure': 'metric', 'score': 'COLUMN'} (one of 'a', 'b')"
    """
    named = {"measure": measures, "score": scores}
    choices = [f" (one of {list_names(k)})" for k in named.values() if len(k) > 1]
    return arg("columns", {role: k[0] if len(k) == 1 else "COLUMN" for role, k in named.items()}) + "".join(choices)


def _costs(name: str) -> str | None:
    """Return the measure whose cost a column holds, "" where it does not say; None for another column.

    >>> _costs("nleep_gflops"), _costs("GFLOPs"), _costs("nleep")
    ('nleep', '', None)
    """
    words = normal(name)
    if words in (_COST, "gflop"):
        return ""
    for mark in (f"_{_COST}", f"{_COST}_"):
        if words.endswith(mark) or words.startswith(mark):
            return words.removesuffix(f"_{_COST}").removeprefix(f"{_COST}_")
    return None


def _is_score(name: str, table: Table) -> bool:
    cells = table.columns[name]
    if normal(name) in _NEITHER | _AFTERWARDS or is_status(name, cells) or all(map(is_missing, cells)):
        return False
    if isinstance(cells, np.ndarray) and cells.dtype.kind == "b":
        return False
    return is_measured(cells) and not all(isinstance(c, bool | np.bool_) for c in cells)


def _from_rows(
    table: Table, roles: ScoreColumns, unit: str | None, repeats: str | None, *, separate: bool
) -> CheckpointScores:
    """Read a table with a row for each checkpoint and task, or for each score; accuracies may be ``separate``."""
    one = roles.of
    if "checkpoint" not in one:
        raise InputError(
            f"{table.source} has no column of checkpoints: name it with {ask('checkpoint')}. It has "
            f"{list_names(table.columns)}."
        )
    if "accuracy" not in one and not separate:
        raise InputError(
            f"{table.source} has no accuracies: name their column with {ask('accuracy')}, or pass the table that has "
            f"them as {arg('accuracies')}. It has {list_names(table.columns)}."
        )
    truth = np.full(len(table), np.nan)
    if "accuracy" in one and not separate:
        truth = _accuracies(table, one["accuracy"], unit)
    found = _gather(table, roles, truth, repeats)
    roles_to_note = [
        role for role in ("checkpoint", "task", "group", "accuracy") if not (separate and role == "accuracy")
    ]
    notes = [
        ColumnRoles({role: one.of(role) for role in roles_to_note}, roles.left_out).note(),
        f"scores: {list_names(found.scores)}" if found.scores else NO_SCORES,
    ]
    if not separate and set(normal(one["accuracy"]).split("_")) & _ERRORS:
        notes.append(f"accuracy as 1 − {one['accuracy']!r}")
    references: list[str] = []
    if "reference" in one:
        words = [word.strip().lower() for word in names_in(table, one["reference"])]
        if odd := next((w for w in words if w not in _YES and w not in _NO), None):
            raise InputError(f"{table.where(one['reference'])} reads {odd!r}: use true or false.")
        marks = [word in _YES for word in words]
        references = [k for k, mark in zip(names_in(table, one["checkpoint"]), marks, strict=True) if mark]
    return replace(found, reference=tuple(dict.fromkeys(references)), notes=(*notes, *found.notes))


def _accuracies(table: Table, name: str, unit: str | None) -> FloatArray:
    """Read a column of accuracies; one that is called an error is taken from 1, one of losses is refused."""
    words = set(normal(name).split("_"))
    values = fractions(table, name, named_unit(unit, [name]))
    if words & _LOSSES or (words & _ERRORS and unit == "score"):
        raise InputError(
            f"{table.where(name)} is called so that less is better, and the best checkpoint has the highest accuracy: "
            "give accuracies, or rename a column of which more is better."
        )
    return 1 - values if words & _ERRORS else values


def _from_matrix(table: Table, given: ColumnMap, unit: str | None) -> CheckpointScores:
    """Read accuracies with a row for each task and a column for each checkpoint."""
    for role in ("checkpoint", "accuracy"):
        if given.get(role) is not None:
            raise InputError(f"{ask(role, given[role])} does not go with it.", argument="wide", value="checkpoints")
    roles = [replace(r, first=True) if r.name in ("task", "group") else Role(r.name) for r in ROLES]
    keys = find_roles(table.columns, table.source, roles, given)
    ask_percent(unit, keys.rest, "checkpoints", table.source)
    values = np.stack([fractions(table, name, unit or "fraction") for name in keys.rest], axis=1)

    def spread(role: str) -> Any:
        return np.repeat(names_in(table, keys[role]), len(keys.rest)) if role in keys else None

    return CheckpointScores(
        np.tile(same_names(list(keys.rest), f"the columns of {table.source}"), len(table)),
        values.ravel(),
        tasks=spread("task"),
        groups=spread("group"),
        notes=(f"{len(keys.rest)} checkpoints from columns, {len(table)} tasks from rows",),
    )


# Rows gathered by group, task and checkpoint.

Key: TypeAlias = tuple[str, str, str]
Places: TypeAlias = NDArray[np.intp]


def _gather(table: Table, roles: ScoreColumns, accuracy: FloatArray, repeats: str | None) -> CheckpointScores:
    """Make one entry for each group, task and checkpoint; several rows of one are ``repeats``."""
    words = [
        full_names(table, roles.of[role], role) if role in roles.of else [""] * len(table)
        for role in ("group", "task", "checkpoint")
    ]
    keys = list(zip(*words, strict=True))
    places = {key: i for i, key in enumerate(dict.fromkeys(keys))}
    where = np.array([places[key] for key in keys])
    named = names_in(table, roles.of["measure"]) if roles.is_long else []
    part = np.unique(named, return_inverse=True)[1] if named else np.zeros(len(keys), dtype=int)
    notes = _check_repeats(table, roles, keys, where, part, repeats)
    count = len(places)
    if roles.is_long:
        there = list(dict.fromkeys(named))
        for name in roles.measures:
            if name not in there:
                raise InputError(
                    f"no row of {table.source} is of that measure.{suggest(name, there)} It has {list_names(there)}.",
                    argument="measures",
                    value=[name],
                )
        picks = {name: np.array(named) == name for name in roles.measures or there}
        score, cost = numbers(table, roles.of["score"]), roles.gflops.get("")
        scores = {k: _mean(score, where, count, rows) for k, rows in picks.items()}
        spent = numbers(table, cost) if cost else None
        gflops = {} if spent is None else {k: _mean(spent, where, count, rows) for k, rows in picks.items()}
        if repeats is None:
            _check_same(table, roles, accuracy, where)
    else:
        scores = {k: _mean(numbers(table, k), where, count) for k in roles.measures}
        gflops = {k: _mean(numbers(table, c), where, count) for k, c in roles.gflops.items()}
    # Of a long table those beside the measure with the most: every run would count as often as it has measures.
    every = np.stack([_mean(accuracy, where, count, part == i) for i in range(part.max() + 1)])
    rows = np.stack([np.bincount(where[(part == i) & ~np.isnan(accuracy)], minlength=count) for i in range(len(every))])
    chosen = np.take_along_axis(every, rows.argmax(axis=0)[None], axis=0)[0]
    if repeats == "best":
        chosen = np.full(count, np.nan)
        np.fmax.at(chosen, where, accuracy)
    groups, tasks, checkpoints = (np.array(part) for part in zip(*places, strict=True))
    return CheckpointScores(
        checkpoints,
        chosen,
        scores,
        tasks=tasks if "task" in roles.of else None,
        groups=groups if "group" in roles.of else None,
        gflops=gflops,
        notes=tuple(notes),
    )


def _check_repeats(
    table: Table, roles: ScoreColumns, keys: list[Key], where: Places, part: Places, repeats: str | None
) -> list[str]:
    """Refuse several rows of one checkpoint, task (and measure) unless ``repeats`` says what to take."""
    both = where * (int(part.max()) + 1) + part
    _, first, counts = np.unique(both, return_index=True, return_counts=True)
    if counts.max() == 1:
        return []
    if repeats is not None:
        many = len(np.unique(where[first[counts > 1]]))
        return [f"the {repeats} accuracy of several rows for {format_count(many, 'pair')} of checkpoint and task"]
    row = int(first[np.argmax(counts > 1)])
    rows = np.flatnonzero(both == both[row])
    differ = [k for k in roles.left_out if len({texts(table.columns[k])[i] for i in rows}) > 1]
    group, task, name = keys[row]
    hint = f"Pass {arg('repeats', 'best')} (of hyperparameters) or {arg('repeats', 'mean')} (of seeds)."
    if differ:
        value = texts(table.columns[differ[0]])[row]
        hint = (
            f"They differ in {list_names(differ)}: choose with {arg('where', {differ[0]: value})}, make it the group "
            f"with {ask('group', differ[0])}, or pass {arg('repeats', 'best')} or "
            f"{arg('repeats', 'mean')}."
        )
        words = [k for k in differ if not is_measured(table.columns[k])]
        if words and roles.measures and not roles.is_long:
            hint += f" If each row is one score of a measure, pass {_ask_long(words, roles.measures)}."
    raise InputError(
        f"{table.source} holds {brief(name)} {len(rows)} times"
        + (f" for {brief(task)}" if task else "")
        + (f" in {brief(group)}" if group else "")
        + f". {hint}"
    )


def _check_same(table: Table, roles: ScoreColumns, accuracy: FloatArray, where: Places) -> None:
    """Check that a long table has the same accuracy beside every score of a checkpoint."""
    column = roles.of.get("accuracy")
    if column is None:
        return
    low, high = (np.full(where.max() + 1, end) for end in (np.inf, -np.inf))
    np.fmin.at(low, where, accuracy)
    np.fmax.at(high, where, accuracy)
    if (bad := high - low > 1e-9).any():
        row = int(np.flatnonzero(bad[where])[0])
        raise InputError(
            f"{table.where(column)} has different accuracies for one checkpoint and task, such as row "
            f"{table.rows[row]}: pass {arg('repeats', 'best')} or {arg('repeats', 'mean')}, or correct it."
        )


def _mean(values: FloatArray, where: Places, count: int, rows: NDArray[np.bool_] | None = None) -> FloatArray:
    """Average the known values of each place, NaN where there is none."""
    known = ~np.isnan(values) & (True if rows is None else rows)
    total = np.bincount(where[known], values[known], minlength=count)
    many = np.bincount(where[known], minlength=count)
    found: FloatArray = np.where(many > 0, total / np.maximum(many, 1), np.nan)
    return found


def _joined(scores: CheckpointScores, truth: CheckpointScores, source: str) -> CheckpointScores:
    """Put scores of the same checkpoint and task (and group) beside the accuracies of another table."""
    # Sizes and source accuracies are the same for every task, and often stand in a table without tasks.
    any_task = scores.task_names == (ONE_TASK,) and truth.task_names != (ONE_TASK,)
    # Groups of one table alone say nothing; a group that both name must be the same.
    any_group = len(scores.group_names) == 1 and (ONE_GROUP,) in (scores.group_names, truth.group_names)

    def keys(of: CheckpointScores) -> list[tuple[str, ...]]:
        tasks = [""] * len(of) if any_task else of.tasks.tolist()
        groups = [""] * len(of) if any_group else of.groups.tolist()
        return list(zip(groups, tasks, of.checkpoints.tolist(), strict=True))

    place = {key: i for i, key in enumerate(keys(scores))}
    wanted = keys(truth)
    where = np.array([place.get(key, -1) for key in wanted])
    if (where < 0).all():
        raise InputError(
            f"{source} and the accuracies share no checkpoint and task: {source} has "
            f"{list_names(dict.fromkeys(scores.checkpoints.tolist()), 5)} for {list_names(scores.task_names, 5)}, the "
            f"accuracies {list_names(dict.fromkeys(truth.checkpoints.tolist()), 5)} for "
            f"{list_names(truth.task_names, 5)}."
        )
    notes = []
    if lost := int((where < 0).sum()):
        notes.append(f"{lost} of {len(truth)} accuracies have no scores")
    if unused := len(set(place) - set(wanted)):
        notes.append(f"{unused} of {len(scores)} rows of {source} have no accuracy: left out")

    def taken(values: FloatArray) -> FloatArray:
        return np.where(where < 0, np.nan, values[where])

    return replace(
        truth,
        scores={**truth.scores, **{k: taken(v) for k, v in scores.scores.items()}},
        gflops={**truth.gflops, **{k: taken(v) for k, v in scores.gflops.items()}},
        reference=(*truth.reference, *(name for name in scores.reference if name in truth.checkpoints)),
        notes=(*(text for text in truth.notes if text != NO_SCORES), *scores.notes, *notes),
    )


def _finished(
    table: CheckpointScores, reference: str | Sequence[str], baselines: Sequence[str] | None
) -> CheckpointScores:
    """Add references and baselines, and notes of what is missing."""
    names = (reference,) if isinstance(reference, str) else tuple(reference)
    names = tuple(dict.fromkeys((*table.reference, *names)))
    for name in names:
        if name not in table.checkpoints:
            raise InputError("no checkpoint of the table has this name.", argument="reference", value=name)
    plain = baselines
    if plain is None:
        plain = [name for name in table.scores if normal(name) in BASELINES]
    ranked = ~np.isin(table.checkpoints, names)
    notes = [f"baselines: {list_names(plain)}"] if plain and baselines is None else []
    columns = {"accuracy": table.accuracy, **table.scores}
    for name, values in columns.items():
        if lost := int((np.isnan(values) & ranked).sum()):
            notes.append(f"{lost} of {int(ranked.sum())} rows have no {brief(name)}")
    return replace(table, reference=names, baselines=tuple(plain), notes=tuple(dict.fromkeys((*table.notes, *notes))))


# Features of examples by one checkpoint and their labels, as files hold them; the names of arrays there.
LABEL_NAMES = ("labels", "label", "y", "targets", "target", "classes")
_WHOLE = re.compile(r"[+-]?[0-9]+")
_FEATURE_NAMES = ("features", "embeddings", "embedding", "x", "X")


def read_features(
    source: str | PathLike[str], name: str, **about: Any
) -> tuple[CheckpointFeatures, NDArray[Any] | None]:
    """Read features from an .npy or .npz file, with the probabilities and the labels that an .npz file may hold."""
    path = as_path(source)
    if path.suffix.lower() == ".npy":
        features: NDArray[Any] = map_npy(path)
        own = labels = None
    else:
        names, get = named_arrays(path)
        features = get(name_of_features(names, path))
        own = get("probabilities") if "probabilities" in names else None
        label = [known for known in LABEL_NAMES if known in names and len(names) > 1]
        labels = np.asarray(get(label[0])) if label else None
    if not features.ndim:
        raise InputError(f"{path} holds a single value, no features.")
    return CheckpointFeatures(name, features, own, **about), labels


def name_of_features(names: Sequence[str], path: Path) -> str:
    """Find the array of features: by its name, or as the only one beside labels and probabilities.

    >>> name_of_features(["embeddings", "y"], Path("a.npz")), name_of_features(["pool", "labels"], Path("a.npz"))
    ('embeddings', 'pool')
    """
    rest = [name for name in names if name not in (*LABEL_NAMES, "probabilities")]
    known = [name for name in _FEATURE_NAMES if name in rest]
    if "features" in known or len(known) == 1:
        return known[0]
    if len(names) == 1 or len(rest) == 1:
        return rest[0] if rest else names[0]
    raise InputError(
        f"{path} holds {', '.join(names)}: call the matrix of features 'features' (and its own classes' probabilities "
        "'probabilities')."
    )


def read_target(source: str | PathLike[str]) -> NDArray[Any]:
    """Read the label of each example from an array in a file, a column of a table, or lines of text.

    In lines, whole numbers are classes, and 1.0 is a number.
    """
    path = as_path(source)
    suffix = path.suffix.lower()
    if suffix in (".npy", ".npz"):
        every, get = read_named(path)
        names = [name for name in LABEL_NAMES if name in every] or every
        if len(names) > 1 and names is every:
            raise InputError(f"{path} holds {', '.join(names)}: call one of them labels.")
        return np.asarray(get(names[0]))
    if suffix in (".json", ".safetensors"):
        return read_vector(path, "label")
    lines = [line.strip() for line in read_text(path).strip().splitlines()]
    if lines and lines[0].strip('"').lower() in LABEL_NAMES:
        lines = lines[1:]
    if suffix in (".csv", ".tsv") and any("," in line or "\t" in line for line in lines):
        return read_vector(path, "label")
    if not all(lines) or not lines or any("," in line for line in lines):
        raise InputError(f"{path}: give one label in each line, or an .npy file.")
    with contextlib.suppress(ValueError, OverflowError):  # whole numbers that are too long are names
        if all(_WHOLE.fullmatch(line) for line in lines):
            return np.array([int(line) for line in lines], dtype=np.int64)
        return np.array([float(line) for line in lines])
    return np.array(lines)


def common_labels(found: Mapping[str, NDArray[Any] | None]) -> NDArray[Any]:
    """Return the labels that files of features hold; refuse files that differ in them."""
    known = {name: labels for name, labels in found.items() if labels is not None}
    if not known:
        raise InputError(
            "is missing: give the label of each example, or save it with the features as an array called labels.",
            argument="labels",
        )
    first, labels = next(iter(known.items()))
    for name, other in known.items():
        if not np.array_equal(labels, other):
            raise InputError(
                f"{first} and {name} hold different labels, so that their rows are not the same examples. Features of "
                f"the same examples, in one order, can be ranked; if they are, pass {arg('labels')}."
            )
    return labels
