"""Load checkpoints with what fine-tuning gave and what measures said of them before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError
from curvewise.learning.load import read_source
from curvewise.ranking.scores import ONE_TASK, CheckpointScores
from curvewise.reading.files import large_files
from curvewise.reading.roles import ask_percent, bare, check_column, is_status, named_unit, normal, some_rows
from curvewise.reading.table import Table, is_measured, is_missing, names_in, numbers, texts, unfold
from curvewise.text import brief, list_names, suggest
from curvewise.types.coercion import same_names
from curvewise.types.units import FloatArray

_UNITS = {"fraction": 1.0, "percent": 100.0, "score": 1.0}


def load_checkpoint_scores(
    source: Any,
    *,
    accuracies: Any = None,
    checkpoint: str | None = None,
    task: str | None = None,
    group: str | None = None,
    accuracy: str | None = None,
    measures: Sequence[str] | None = None,
    measure: str | None = None,
    score: str | None = None,
    wide: str | None = None,
    unit: str | None = None,
    reference: str | Sequence[str] = (),
    baselines: Sequence[str] | None = None,
    where: Mapping[str, Any] | None = None,
    repeats: str | None = None,
    allow_large: bool = False,
) -> CheckpointScores:
    """Read checkpoints with fine-tuned accuracies and scores of ranking measures.

    What was taken for what is said in ``notes`` of the result.

    Parameters
    ----------
    source : path, DataFrame, dict or list
        A CSV, TSV, JSON, JSON lines or Parquet file, a frame, a dict of columns or a list of
        records. Either a row for each checkpoint and task with a column for each measure, or a row
        for each score with a column that names the measure, or accuracies alone as a matrix (see
        ``wide``).
    accuracies : path, DataFrame, dict, list or CheckpointScores, optional
        The accuracies, if they are in another table; joined by checkpoint, task and group. Scores
        without a column of tasks hold for all tasks.
    checkpoint, task, group, accuracy : str, optional
        Columns with these roles, found by name otherwise.
    measures : sequence of str, optional
        Columns with scores, by default all other numbers; where each row is one score, the
        measures to read. Columns called ``MEASURE_gflops`` or ``gflops.MEASURE`` are their costs.
    measure, score : str, optional
        Columns with the name of a measure and its score, where each row is one score.
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
        What to take of several rows of one checkpoint and task: the best accuracy, as over
        hyperparameters, or the mean, as over seeds. By default they are an error.
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
    _check_options(unit, wide, repeats)
    with large_files(allow_large):
        table, note = some_rows(read_source(source), where or {})
    told = {"checkpoint": checkpoint, "task": task, "group": group, "accuracy": accuracy}
    options = _Options(unit, repeats)
    if wide is not None:
        found = _from_matrix(table, told, options)
    else:
        named = {**told, "measure": measure, "score": score}
        roles = score_roles(table, named, measures, list(where or ()))
        table = unfold(table, [*roles.one.values(), *roles.measures * (not roles.is_long)])
        found = _from_rows(table, roles, options, separate=accuracies is not None)
    if accuracies is not None:
        with large_files(allow_large):
            found = joined(found, _truth(accuracies, told, options), table.source)
    if unit == "percent" and 0 < np.nanmax(found.accuracy, initial=0.0) <= 0.01:
        raise InputError("unit='percent', and no accuracy is above 1: pass unit='fraction' if that is what they are.")
    found = replace(found, notes=(*found.notes, *note, *table.notes))
    return _finished(found, reference, baselines)


@dataclass(frozen=True)
class _Options:
    unit: str | None
    repeats: str | None


def _check_options(unit: str | None, wide: str | None, repeats: str | None) -> None:
    if unit is not None and unit not in _UNITS:
        raise InputError(f"unit={unit!r}: use one of {', '.join(map(repr, _UNITS))}.")
    if wide not in (None, "checkpoints"):
        raise InputError(f"wide={wide!r}: use 'checkpoints', or leave it out.")
    if repeats not in (None, "best", "mean"):
        raise InputError(f"repeats={repeats!r}: use 'best', 'mean', or leave it out.")


def _from_rows(table: Table, roles: ScoreRoles, options: _Options, *, separate: bool) -> CheckpointScores:
    one = roles.one
    if one["checkpoint"] is None:
        raise InputError(
            f"{table.source} has no column of checkpoints: name it with checkpoint=…. It has "
            f"{list_names(table.columns)}."
        )
    if one["accuracy"] is None and not separate:
        raise InputError(
            f"{table.source} has no accuracies: name their column with accuracy=…, or pass the "
            f"table that has them as accuracies=…. It has {list_names(table.columns)}."
        )
    truth = np.full(len(table), np.nan)
    if one["accuracy"] is not None and not separate:
        name = one["accuracy"]
        truth = _in_unit(table, name, named_unit(options.unit, [name]))
    found = gather(table, roles, truth, options.repeats)
    notes = [
        *(f"{role}s from {one[role]!r}" for role in ("checkpoint", "task", "group") if one[role]),
        *([f"accuracies from {one['accuracy']!r}"] if one["accuracy"] and not separate else []),
        f"scores: {list_names(found.scores) or 'none'}",
        *([f"left out: {list_names(roles.left_out)}"] if roles.left_out else []),
    ]
    return replace(found, reference=_references(table, one), notes=(*notes, *found.notes))


def _references(table: Table, one: Mapping[str, str | None]) -> tuple[str, ...]:
    """Checkpoints that a column marks as references."""
    if one["reference"] is None or one["checkpoint"] is None:
        return ()
    marks = [word.lower() in ("true", "1", "yes") for word in names_in(table, one["reference"])]
    names = names_in(table, one["checkpoint"])
    return tuple(dict.fromkeys(n for n, mark in zip(names, marks, strict=True) if mark))


def _in_unit(table: Table, name: str, unit: str) -> FloatArray:
    top = _UNITS[unit]
    values = numbers(table, name) / top
    bad = np.isinf(values) | ((values < 0) | (values > 1) if unit != "score" else False)
    if bad.any():
        right = "'percent'" if top == 1 else "'fraction'"
        raise InputError(
            f"{table.where(name)} holds {values[bad][0] * top:g}, which is no "
            f"{'fraction' if top == 1 else 'percentage'}: pass unit={right} if that is "
            "what it is, or unit='score' for a number without bounds."
        )
    return values


def _from_matrix(table: Table, told: dict[str, str | None], options: _Options) -> CheckpointScores:
    """Accuracies with a row for each task and a column for each checkpoint."""
    for role in ("checkpoint", "accuracy"):
        if told[role] is not None:
            raise InputError(f"{role}={told[role]!r} does not go with wide='checkpoints'.")
    keys = {}
    for role in ("task", "group"):
        check_column(table, role, told[role])
        free = [k for k in table.columns if normal(k) in ROLES[role]]
        keys[role] = told[role] or (free[0] if free else None)
    names = [k for k in table.columns if k not in keys.values()]
    ask_percent(options.unit, names, "checkpoints", table.source)
    unit = options.unit or "fraction"
    values = np.stack([_in_unit(table, name, unit) for name in names], axis=1)

    def spread(role: str) -> Any:
        column = keys[role]
        return None if column is None else np.repeat(names_in(table, column), len(names))

    return CheckpointScores(
        np.tile(same_names(names, f"the columns of {table.source}"), len(table)),
        values.ravel(),
        tasks=spread("task"),
        groups=spread("group"),
        notes=(f"{len(names)} checkpoints from columns, {len(table)} tasks from rows",),
    )


def _truth(accuracies: Any, told: dict[str, str | None], options: _Options) -> CheckpointScores:
    if isinstance(accuracies, CheckpointScores):
        return accuracies
    table = read_source(accuracies)
    named = {k: v if v in table.columns else None for k, v in told.items()}
    roles = score_roles(table, named, None, ())
    found = _from_rows(table, roles, options, separate=False)
    return replace(found, notes=(*found.notes, *table.notes))


def _finished(
    table: CheckpointScores, reference: str | Sequence[str], baselines: Sequence[str] | None
) -> CheckpointScores:
    """With references and baselines, and notes of what is missing."""
    names = (reference,) if isinstance(reference, str) else tuple(reference)
    names = tuple(dict.fromkeys((*table.reference, *names)))
    for name in names:
        if name not in table.checkpoints:
            raise InputError(f"reference names {brief(name)}, which is no checkpoint of the table.")
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


# Which columns of a table of checkpoints are names, tasks, accuracies, scores and costs.


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


ROLES = {
    "checkpoint": _names("""
        checkpoint checkpoint_name ckpt model model_name network backbone architecture
        source_architecture source_model source_network source_dataset pretrained name"""),
    "task": _names("""
        task task_name target target_dataset target_task dataset dataset_name downstream
        downstream_task downstream_dataset"""),
    "group": _names("group group_name pool family"),
    "accuracy": _names("""
        accuracy acc test_accuracy test_acc final_accuracy fine_tuned_accuracy finetuned_accuracy
        finetune_accuracy fine_tuning_accuracy finetuning_accuracy ft_accuracy ft_acc truth
        mean_iou test_mean_iou miou"""),
    "measure": _names("measure measure_name metric metric_name transferability_metric"),
    "score": _names("score measure_score metric_score transferability_metric_score"),
    "reference": _names("reference is_reference"),
}
BASELINES = _names("""
    parameters params n_parameters num_parameters number_of_parameters n_params num_params size
    model_size weights largest_model source_accuracy source_acc source_test_accuracy
    imagenet_accuracy imagenet_acc imagenet_top_1 imagenet_top1 pretraining_accuracy
    best_source_accuracy""")
_NEITHER = _names("""
    seed fold seconds time date index id run run_id reason error train_error loss train_loss n
    epoch epochs steps rate lr learning_rate batch batch_size weight_decay""")
_COST = "gflops"


@dataclass(frozen=True)
class ScoreRoles:
    """Columns by role; None or empty where nobody plays it.

    ``measures`` are columns of scores of a wide table (of a long one the measures to keep, all
    if empty), and ``gflops`` columns of costs by measure (by ``""`` in a long one).
    """

    one: dict[str, str | None]
    measures: tuple[str, ...] = ()
    gflops: dict[str, str] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()

    @property
    def is_long(self) -> bool:
        """Whether a row is one score of one checkpoint."""
        return self.one["measure"] is not None


def score_roles(
    table: Table, told: dict[str, str | None], measures: Sequence[str] | None, used: Sequence[str]
) -> ScoreRoles:
    """Give each column a role: the user's word, then names, then whether it holds numbers.

    Columns in ``used`` select rows, and hold no scores.
    """
    if isinstance(measures, str):
        raise InputError(f"measures={measures!r} is one text: give a list of columns.")
    wide = measures is not None and not _is_long(table, told, measures)
    columns = list(measures or ()) if wide else []
    for role, name in told.items():
        check_column(table, role, name)
    for name in columns:
        _check_measure(table, told, name)
    taken = {*columns, *(v for v in told.values() if v)}
    one = dict(told)
    for role, synonyms in ROLES.items():
        if one.get(role) is None and not (wide and role in ("measure", "score")):
            free = [k for k in table.columns if k not in taken and bare(k) in synonyms]
            one[role] = _only(table, role, free)
            taken |= {one[role] or ""}
    _check_long(table, one, {*taken, *used})
    rest = [k for k in table.columns if k not in taken and k not in used]
    costs = {k: _costs(k) for k in rest if _costs(k) is not None}
    scores = list(measures or ())
    if not wide and one.get("measure") is None:
        scores = [k for k in rest if k not in costs and _is_score(k, table)]
    gflops = _named_costs(costs, scores, one.get("measure") is not None)
    left = [k for k in rest if k not in scores and k not in gflops.values()]
    return ScoreRoles({role: one.get(role) for role in ROLES}, tuple(scores), gflops, tuple(left))


def _check_measure(table: Table, told: dict[str, str | None], name: str) -> None:
    """Raise unless a measure is a column; where it is in cells of one, say what to pass."""
    inside = [
        k
        for k, cells in table.columns.items()
        if k not in told.values() and not is_measured(cells) and name in texts(cells)
    ]
    if name not in table.columns and inside:
        free = [k for k in table.columns if k not in told.values() and _is_score(k, table)]
        numeric = [k for k in free if bare(k) not in ROLES["accuracy"]]
        raise InputError(
            f"measures names {brief(name)}, which is no column of {table.source} but stands in "
            f"{brief(inside[0])}: pass measure={inside[0]!r:.200} and {_which('score', numeric)}."
        )
    check_column(table, "measures", name)


def _only(table: Table, role: str, found: list[str]) -> str | None:
    if len(found) > 1:
        raise InputError(
            f"{len(found)} columns of {table.source} could be the {role}: {list_names(found)}. Say which with {role}=…"
        )
    return found[0] if found else None


def _is_long(table: Table, told: dict[str, str | None], measures: Sequence[str]) -> bool:
    """Whether measures that are asked for are named in cells, and not by columns."""
    if told.get("measure") is not None or told.get("score") is not None:
        return True
    found = [any(normal(k) in ROLES[role] for k in table.columns) for role in ("measure", "score")]
    return all(found) and not all(name in table.columns for name in measures)


def _check_long(table: Table, one: dict[str, str | None], taken: set[str]) -> None:
    """A table that names measures has scores, and the other way round; says what to pass."""
    measure, score = one.get("measure"), one.get("score")
    rest = [k for k in table.columns if k not in taken]
    numeric = [k for k in rest if _is_score(k, table)]
    if measure is not None and score is None:
        raise InputError(
            f"{table.source} names measures in {brief(measure)}, but no column holds their "
            f"scores: pass measure={measure!r:.200} and {_which('score', numeric)}."
        )
    if score is not None and measure is None:
        others = [k for k in rest if k not in numeric]
        raise InputError(
            f"{table.source} has scores in {brief(score)}, but no column says of which measure: "
            f"pass {_which('measure', others)} and score={score!r:.200}, or "
            f"measures=[{score!r:.200}] if there is one only."
        )


def _which(role: str, columns: Sequence[str]) -> str:
    """An argument with the column that it can only be, or with those to choose from.

    >>> _which("score", ["value"]), _which("score", ["a", "b"])
    ("score='value'", "score=COLUMN (one of 'a', 'b')")
    """
    if len(columns) == 1:
        return f"{role}={columns[0]!r:.200}"
    return f"{role}=COLUMN" + (f" (one of {list_names(columns)})" if columns else "")


def long_hint(table: Table, roles: ScoreRoles, differ: Sequence[str]) -> str:
    """What to pass if a column in which rows of a checkpoint differ names measures."""
    words = [k for k in differ if not is_measured(table.columns[k])]
    if roles.is_long or not words or not roles.measures:
        return ""
    told = " and ".join([_which("measure", words), _which("score", roles.measures)])
    return f" If each row is one score of a measure, pass {told}."


def _costs(name: str) -> str | None:
    """The measure whose cost a column holds, "" where it does not say; None for another column.

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


def _named_costs(costs: dict[str, str | None], scores: Sequence[str], long: bool) -> dict[str, str]:
    if long:
        plain = [column for column, measure in costs.items() if measure == ""]
        return {"": plain[0]} if plain else {}
    known = {normal(name): name for name in scores}
    return {known[m]: column for column, m in costs.items() if m in known}


def _is_score(name: str, table: Table) -> bool:
    cells = table.columns[name]
    if normal(name) in _NEITHER or is_status(name, cells) or all(map(is_missing, cells)):
        return False
    if isinstance(cells, np.ndarray) and cells.dtype.kind == "b":
        return False
    return is_measured(cells) and not all(isinstance(c, bool | np.bool_) for c in cells)


# Rows of a table gathered by group, task and checkpoint.

Key: TypeAlias = tuple[str, str, str]
Places: TypeAlias = NDArray[np.intp]


def gather(table: Table, roles: ScoreRoles, accuracy: FloatArray, repeats: str | None) -> CheckpointScores:
    """One entry for each group, task and checkpoint; several rows of one are ``repeats``."""
    keys = _keys(table, roles)
    places = {key: i for i, key in enumerate(dict.fromkeys(keys))}
    where = np.array([places[key] for key in keys])
    words = names_in(table, roles.one["measure"]) if roles.one["measure"] else []
    part = np.unique(words, return_inverse=True)[1] if words else np.zeros(len(keys), dtype=int)
    notes = _check_repeats(table, roles, keys, where, part, repeats)
    count = len(places)
    if roles.is_long:
        score, cost = roles.one["score"], roles.gflops.get("")
        assert score is not None
        wanted = _wanted(table, roles, words)
        picks = {name: np.array(words) == name for name in wanted}
        scores = {k: _mean(numbers(table, score), where, count, rows) for k, rows in picks.items()}
        gflops = {k: _mean(numbers(table, cost), where, count, rows) for k, rows in picks.items()} if cost else {}
        if repeats is None:
            _check_same(table, roles, accuracy, where)
    else:
        scores = {k: _mean(numbers(table, k), where, count) for k in roles.measures}
        gflops = {k: _mean(numbers(table, c), where, count) for k, c in roles.gflops.items()}
    chosen = _best if repeats == "best" else _mean
    names = list(places)
    return CheckpointScores(
        np.array([name for _, _, name in names]),
        chosen(accuracy, where, count),
        scores,
        tasks=np.array([t for _, t, _ in names]) if roles.one["task"] else None,
        groups=np.array([g for g, _, _ in names]) if roles.one["group"] else None,
        gflops=gflops,
        notes=tuple(notes),
    )


def _wanted(table: Table, roles: ScoreRoles, words: list[str]) -> list[str]:
    """The measures of a long table, or those that were asked for."""
    there = list(dict.fromkeys(words))
    for name in roles.measures:
        if name not in there:
            raise InputError(
                f"measures names {brief(name)}: no row of {table.source} is of that measure."
                f"{suggest(name, there)} It has {list_names(there)}."
            )
    return list(roles.measures) or there


def _keys(table: Table, roles: ScoreRoles) -> list[Key]:
    def words(role: str) -> list[str]:
        column = roles.one[role]
        if column is None:
            return [""] * len(table)
        found = names_in(table, column)
        if "" in found:
            raise InputError(
                f"Row {table.rows[found.index('')]} of {table.source} names no {role}: fill the cell or remove the row."
            )
        return found

    return list(zip(words("group"), words("task"), words("checkpoint"), strict=True))


def _check_repeats(
    table: Table, roles: ScoreRoles, keys: list[Key], where: Places, part: Places, repeats: str | None
) -> list[str]:
    """Several rows of one checkpoint, task (and measure) are an error unless they were meant."""
    both = where * (int(part.max()) + 1) + part
    _, first, counts = np.unique(both, return_index=True, return_counts=True)
    if counts.max() == 1:
        return []
    if repeats is not None:
        many = int((counts > 1).sum())
        return [f"the {repeats} accuracy of several rows for {many} checkpoints and tasks"]
    row = int(first[np.argmax(counts > 1)])
    rows = np.flatnonzero(both == both[row])
    differ = [k for k in roles.left_out if len({texts(table.columns[k])[i] for i in rows}) > 1]
    group, task, name = keys[row]
    hint = "Pass repeats='best' (of hyperparameters) or repeats='mean' (of seeds)."
    if differ:
        value = texts(table.columns[differ[0]])[row]
        hint = (
            f"They differ in {list_names(differ)}: choose with "
            f"where={{{differ[0]!r:.200}: {value!r:.200}}}, make it the group with "
            f"group={differ[0]!r:.200}, or pass repeats='best' or "
            f"repeats='mean'.{long_hint(table, roles, differ)}"
        )
    raise InputError(
        f"{table.source} holds {brief(name)} {len(rows)} times"
        + (f" for {brief(task)}" if task else "")
        + (f" in {brief(group)}" if group else "")
        + f". {hint}"
    )


def _check_same(table: Table, roles: ScoreRoles, accuracy: FloatArray, where: Places) -> None:
    """In a long table the accuracy stands beside every score, and is the same there."""
    column = roles.one["accuracy"]
    if column is None:
        return
    low, high = (np.full(where.max() + 1, end) for end in (np.inf, -np.inf))
    np.fmin.at(low, where, accuracy)
    np.fmax.at(high, where, accuracy)
    if (bad := high - low > 1e-9).any():
        row = int(np.flatnonzero(bad[where])[0])
        raise InputError(
            f"{table.where(column)} has different accuracies for one checkpoint and task, such as "
            f"row {table.rows[row]}: pass repeats='best' or repeats='mean', or correct it."
        )


def _mean(values: FloatArray, where: Places, count: int, rows: NDArray[np.bool_] | None = None) -> FloatArray:
    """Mean of what is known by place, NaN where nothing is."""
    known = ~np.isnan(values) & (True if rows is None else rows)
    total = np.bincount(where[known], values[known], minlength=count)
    many = np.bincount(where[known], minlength=count)
    found: FloatArray = np.where(many > 0, total / np.maximum(many, 1), np.nan)
    return found


def _best(values: FloatArray, where: Places, count: int) -> FloatArray:
    found = np.full(count, np.nan)
    np.fmax.at(found, where, values)
    return found


# Scores of one table beside the accuracies of another.


def joined(scores: CheckpointScores, truth: CheckpointScores, source: str) -> CheckpointScores:
    """The rows of the truth with scores of the same checkpoint and task (and group)."""
    any_task = scores.task_names == (ONE_TASK,) and truth.task_names != (ONE_TASK,)
    any_group = len(scores.group_names) == 1

    def keys(of: CheckpointScores) -> list[tuple[str, ...]]:
        assert of.tasks is not None
        assert of.groups is not None
        tasks = [""] * len(of) if any_task else of.tasks.tolist()
        groups = [""] * len(of) if any_group else of.groups.tolist()
        return list(zip(groups, tasks, of.checkpoints.tolist(), strict=True))

    place = {key: i for i, key in enumerate(keys(scores))}
    wanted = keys(truth)
    where = np.array([place.get(key, -1) for key in wanted])
    if (where < 0).all():
        raise InputError(
            f"{source} and the accuracies share no checkpoint and task: {source} has "
            f"{list_names(dict.fromkeys(scores.checkpoints.tolist()), 5)} for "
            f"{list_names(scores.task_names, 5)}, the accuracies "
            f"{list_names(dict.fromkeys(truth.checkpoints.tolist()), 5)} for "
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
        notes=(*truth.notes, *scores.notes, *notes),
    )
