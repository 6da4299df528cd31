"""Load risks of pretrained and other methods by training size, with their controls."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from os.path import isdir
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError
from curvewise.learning.load import read_source
from curvewise.reading.files import large_files
from curvewise.reading.roles import (
    FINISHED,
    HIGHER_IS_BETTER,
    LOWER_IS_BETTER,
    SCORES,
    SYNONYMS,
    bare,
    check_column,
    direction,
    is_score,
    is_status,
    named_unit,
    normal,
    says_percent,
    some_rows,
    status_word,
)
from curvewise.reading.table import (
    Table,
    first_row,
    is_measured,
    is_missing,
    names_in,
    numbers,
    parse,
    take_cells,
    texts,
    unfold,
)
from curvewise.store.read import is_store
from curvewise.store.tables import risk_table
from curvewise.text import brief, list_names
from curvewise.transfer.risks import (
    BLIND,
    MAXIMAL,
    ONE_TASK,
    SCRATCH,
    Found,
    Rows,
    TransferRisks,
    find_control,
    find_scratch,
    names_share,
)
from curvewise.types.units import UNITS, FloatArray


def load_risks(
    source: Any,
    *,
    task: ColumnName = None,
    method: str | None = None,
    n: str | None = None,
    risk: str | None = None,
    seed: ColumnName = None,
    fold: ColumnName = None,
    scratch: str | None = None,
    blind: Any = None,
    maximal: Any = None,
    unit: str | None = None,
    higher_is_better: bool | None = None,
    where: Mapping[str, Any] | None = None,
    drop_failed: bool = False,
    allow_large: bool = False,
) -> TransferRisks:
    """Read test losses or errors of methods on tasks by training size.

    What was taken for what is said in ``notes`` of the result; where two readings are possible
    it is an error that says how to choose.

    Parameters
    ----------
    source : path, DataFrame, dict or list
        A CSV, TSV, JSON, JSON lines or Parquet file, a frame, a dict of columns or a list of
        records with a row for each run; or a folder of runs stored by
        :func:`curvewise.write_run`, of which ``risk`` then names a metric. Methods or sizes may
        also be columns; then ``higher_is_better`` must say what is in them.
    task, method, n, risk, seed, fold : str, optional
        Columns with these roles, found by name otherwise: domain, dataset, … are tasks; method,
        pretraining, initialisation, learner, … methods; train_size, n, … sizes; test_loss, risk,
        error, accuracy, … risks. False for a task, seed or fold: no column.
    scratch : str, optional
        The method that starts from nothing; by default the one called scratch, from-scratch,
        random init, ….
    blind, maximal : str, number, Interval, Control, or dict of these by task, optional
        The controls: the method whose rows they are, or their risk. By default the rows called
        blind-guess, chance, dummy, zero-shot, …, and gold, maximal, oracle, full, …. Of a control
        with several sizes the largest counts. A number is read as those of the table, so that it
        is an accuracy among accuracies, and a percentage among percentages; an Interval or a
        Control is a risk.
    unit : {"fraction", "percent", "loss", "score"}, optional
        What the values are. By default percentages if the name of the column says so
        (``error (%)``) or accuracies are above 1, and all else is taken as it is: a calibrated
        risk is the same in every unit.
    higher_is_better : bool, optional
        By default the name of the column says so; that of one chosen with ``risk`` must. Accuracies
        become errors, and scores their negatives.
    where : dict, optional
        Only rows with these values: ``{"split": "test"}``, or a list of values.
    drop_failed : bool
        Leave out failed runs, and say how many. By default they stay, with NaN.
    allow_large : bool
        Read a compressed file even if it unpacks to more than 256 MiB of text or 1 GiB of arrays.

    Returns
    -------
    TransferRisks
        Rows of scratch and the methods, in their order; those of the other controls are in
        ``blind`` and ``maximal``, with the standard error over their runs.

    Raises
    ------
    InputError
        If something cannot be read, could be read in two ways, or a run is there twice.

    Notes
    -----
    Names of controls are free. For language models ``scratch="few-shot"``, ``blind="zero-shot"``
    and ``maximal="full fine-tuning"`` play these roles, and are found by themselves unless others
    do.

    A run failed if its risk is missing, NaN or infinite, or if a column called status or state
    says so. Rows of runs that still go on are left out.

    Examples
    --------
    >>> rows = {
    ...     "domain": ["depth"] * 6,
    ...     "method": ["blind-guess", "gold", "scratch", "scratch", "swav", "swav"],
    ...     "train_size": [-1, -1, 100, 1000, 100, 1000],
    ...     "test_loss": [0.9, 0.1, 0.7, 0.4, 0.5, 0.3],
    ... }
    >>> risks = load_risks(rows)
    >>> risks
    TransferRisks(4 runs, 1 task, 2 methods, 2 sizes from 100 to 1000)
    >>> risks.blind["depth"].risk, risks.maximal["depth"].risk, risks.unit
    (0.9, 0.1, 'test loss')
    """
    used = where or {}
    told: dict[str, ColumnName] = {"task": task, "method": method, "n": n, "risk": risk}
    told |= {"seed": seed, "fold": fold}
    with large_files(allow_large):
        table, note = some_rows(_read(source), used)
    table = in_rows(table, told, used, scratch, higher_is_better)
    roles = risk_roles(table, told, list(used))
    table = unfold(table, roles.one.values())
    table, failed, notes = finished(table, roles)
    if says_percent(roles.column("risk")) and unit in (None, "fraction"):
        unit = named_unit(unit, [roles.column("risk")])
    values, lost = risks_of(table, roles.column("risk"), failed)
    reading = reading_of(roles.column("risk"), values, unit, higher_is_better, table.source)
    if risk is not None:
        check_direction(risk, unit, higher_is_better)
    given = {"blind": blind, "maximal": maximal}
    check_numbers(given, reading, roles.column("risk"), values, unit)
    rows = _rows(table, roles, reading.risks(values))
    said = [_what_was_taken(roles, reading), *note, *notes]
    repeats = check_repeats(table, roles, _keys(table, roles, rows))
    start, controls = _controls(rows, table.source, scratch, blind, maximal, reading)
    gone = np.isin(rows.methods, [name for c in controls for name in c.methods])
    check_sizes(table, roles.column("n"), rows.n, gone)
    said += [f"scratch: {start!r}", *(text for c in controls for text in c.notes)]
    found = _risks(table, roles, rows, ~gone, start, controls, reading.name)
    return _finished(found, [*said, *repeats, *lost, *table.notes], drop_failed, table.source)


def _read(source: Any) -> Table:
    if isinstance(source, str | PathLike) and isdir(source) and is_store(Path(source)):
        return risk_table(Path(source).resolve())
    return read_source(source)


def _rows(table: Table, roles: RiskRoles, risk: Any) -> Rows:
    return Rows(
        names_of(table, roles.one["task"], "task", ONE_TASK),
        names_of(table, roles.one["method"], "method", ""),
        sizes_of(table, roles.column("n")),
        np.asarray(risk, dtype=np.float64),
    )


def _keys(table: Table, roles: RiskRoles, rows: Rows) -> list[tuple[str, ...]]:
    """What a run is: task, method, size, and seed and fold where there are any."""
    more = [names_in(table, name) for role in ("seed", "fold") if (name := roles.one[role])]
    sizes = [f"{n:g}" for n in rows.n.tolist()]
    return list(zip(rows.tasks.tolist(), rows.methods.tolist(), sizes, *more, strict=True))


def _controls(
    rows: Rows, source: str, scratch: str | None, blind: Any, maximal: Any, reading: Reading
) -> tuple[str, tuple[Found, Found]]:
    """The name of scratch, and the two other controls."""
    parts = [
        find_control(rows, called, given, reading.risk, source, scratch)
        for called, given in ((BLIND, blind), (MAXIMAL, maximal))
    ]
    start = find_scratch(rows, scratch, [k for c in parts for k in c.methods], source)
    return start, (parts[0], parts[1])


def _risks(
    table: Table, roles: RiskRoles, rows: Rows, keep: Any, scratch: str, controls: tuple[Found, Found], unit: str
) -> TransferRisks:
    def column(role: str) -> Any:
        name = roles.one[role]
        return None if name is None else np.array(names_in(table, name))[keep]

    if not keep.any():
        raise InputError(f"{table.source} has controls and no other rows: there is no method.")
    return TransferRisks(
        tasks=rows.tasks[keep],
        methods=rows.methods[keep],
        n=rows.n[keep],
        risk=rows.risk[keep],
        seeds=column("seed"),
        folds=column("fold"),
        scratch=scratch,
        blind=controls[0].control,
        maximal=controls[1].control,
        unit=unit,
    )


def _what_was_taken(roles: RiskRoles, reading: Reading) -> str:
    one = roles.one
    parts = [f"{role}s from {one[role]!r}" for role in ("task", "method") if one[role]]
    parts += [f"n from {one['n']!r}", f"risks from {one['risk']!r} ({reading.note})"]
    parts += [f"{role}s from {one[role]!r}" for role in ("seed", "fold") if one[role]]
    parts += [f"left out: {list_names(roles.left_out)}"] if roles.left_out else []
    return "; ".join(parts)


def _finished(found: TransferRisks, notes: list[str], drop_failed: bool, source: str) -> TransferRisks:
    failed = np.isnan(found.risk)
    if failed.all():
        raise InputError(f"All {len(found)} runs of {source} failed: none is left.")
    if drop_failed and failed.any():
        found = found.select(~failed)
        notes.append(f"{int(failed.sum())} failed runs left out")
    return replace(found, notes=tuple(notes))


# Which columns of a table of risks are tasks, methods, sizes, risks, seeds and folds.

ColumnName: TypeAlias = str | Literal[False] | None
"""A column, False for none, or None to find it by its name."""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Names in the first set of a role are taken before those in the next.
ROLES: dict[str, tuple[frozenset[str], ...]] = {
    "task": (
        _names("""
        task task_name domain dataset dataset_name target target_task target_dataset downstream
        downstream_task downstream_dataset"""),
    ),
    "method": (
        _names("""
        method method_name pretraining pre_training pretraining_method pretrained pretrained_on
        init init_method initialisation initialization initial_weights learner learner_name"""),
        _names("""
        weights checkpoint model model_name name backbone encoder network algorithm estimator
        classifier prompt prompting"""),
    ),
    "n": (
        SYNONYMS["n"],
        _names("""
        shots n_shots num_shots k_shot train_size_total data_regime images n_images num_images
        train_images n_train_images labels n_labels num_labels n_labelled n_labeled"""),
    ),
    "seed": (SYNONYMS["seed"], _names("run run_id replicate repeat repetition trial"), _names("init_seed")),
    "fold": (SYNONYMS["fold"] | _names("train_fold training_fold subset_id"),),
}
NEEDED = ("method", "n", "risk")
_DOWN = LOWER_IS_BETTER | _names("mse mae rmse perplexity ppl crossentropy ce")
_UP = HIGHER_IS_BETTER | _names("iou miou dice bleu rouge psnr ssim r2 acc1 acc5")
_DISTANCES = _names("l1 l2")  # alone they may be a penalty, and are no risk unless chosen
_UP_WHOLE = re.compile(r"(?:test_|val_|valid_|validation_|eval_)?(?:top_?[15]|exact_match)")
_RISKS = _DOWN | _UP | SCORES
_PLACES = (_names("test"), frozenset[str](), _names("val valid validation eval"))
_BESIDE = _names("""
    test val valid validation eval rate mean avg average l1 l2 log cross entropy angular 01 zero
    one top 1 5 top1 top5 final per example""")
_UNSPOKEN = _names("value values")
_SEVERAL = _names("split partition metric metric_name evaluation")
"""Columns whose values must not be mixed: a risk is of one of them."""


@dataclass(frozen=True)
class RiskRoles:
    """Columns by role, None where nobody plays it, and those that play none."""

    one: Mapping[str, str | None]
    left_out: tuple[str, ...]

    def column(self, role: str) -> str:
        """The column of a role that every table has."""
        name = self.one[role]
        assert name is not None
        return name


def risk_roles(table: Table, told: Mapping[str, ColumnName], used: Sequence[str]) -> RiskRoles:
    """Give each column a role: the user's word, then names; ``used`` ones select rows."""
    one: dict[str, str | None] = {}
    for role, name in told.items():
        if name:
            check_column(table, role, name)
            _check_free(role, name, one)
        if name is not None:
            one[role] = name or None
    taken = {name for name in one.values() if name}
    for role, tiers in ROLES.items():
        if role not in one:
            free = [k for k in table.columns if k not in taken]
            one[role] = _first(table, role, [[k for k in free if normal(k) in t] for t in tiers])
            taken |= {one[role] or ""}
    rest = [k for k in table.columns if k not in taken]
    if "risk" not in one:
        one["risk"] = _first(table, "risk", _risk_tiers(rest))
    rest = [k for k in rest if k != one["risk"]]
    states = [k for k in rest if is_status(k, table.columns[k])]
    one["status"] = states[0] if states else None
    rest = [k for k in rest if k != one["status"]]
    _check_needed(table, one)
    _check_one_kind(table, [k for k in rest if k not in used])
    return RiskRoles(one, tuple(k for k in rest if k not in used))


def _check_free(role: str, name: str, one: Mapping[str, str | None]) -> None:
    for other, column in one.items():
        if column == name:
            raise InputError(f"{other}={name!r:.200} and {role}={name!r:.200} are one column: it can play one role.")


def _risk_tiers(names: Sequence[str]) -> list[list[str]]:
    """Columns called like risks: of the test set, of no set in particular, of a validation set.

    >>> _risk_tiers(["test_loss", "loss", "train_loss", "val_acc", "seconds"])
    [['test_loss'], ['loss'], ['val_acc'], []]
    """
    words = {name: frozenset(bare(name).split("_")) for name in names}
    risks = [k for k, w in words.items() if (w & _RISKS and w <= _RISKS | _BESIDE) or _UP_WHOLE.fullmatch(bare(k))]
    places = _PLACES[0] | _PLACES[2]
    tiers = [[k for k in risks if (words[k] & p if p else not words[k] & places)] for p in _PLACES]
    return [*tiers, [k for k in names if bare(k) in _UNSPOKEN]]


def higher_is_better(name: str) -> bool | None:
    """What the name of a column of risks says; None if it says nothing.

    >>> higher_is_better("test_acc"), higher_is_better("mIoU"), higher_is_better("MAE")
    (True, True, False)
    >>> higher_is_better("Top-1 (%)"), higher_is_better("top1_error"), higher_is_better("acc1")
    (True, False, True)
    """
    words = frozenset(bare(name).split("_"))
    if _UP_WHOLE.fullmatch(bare(name)):
        return True
    if words & _DISTANCES and not words & _UP:
        return False
    if words & (_UP - HIGHER_IS_BETTER) and not words & _DOWN:
        return True
    return False if words & (_DOWN - LOWER_IS_BETTER) and not words & _UP else direction(name)


def _first(table: Table, role: str, tiers: Sequence[Sequence[str]]) -> str | None:
    """The one column of the first tier that has any; several are an error unless they agree."""
    every = [list(tier) for tier in tiers if tier]
    if role in ("task", "method"):  # a name that all rows share tells nothing, if another does
        every = [telling for tier in every if (telling := _telling(table, tier))] or [tier[:1] for tier in every]
    found = every[0] if every else []
    if len(found) > 1:
        none = f", or {role}=False for none of them" if role not in NEEDED else ""
        raise InputError(
            f"{len(found)} columns of {table.source} could be the {role}: {list_names(found)}. Choose "
            f"with {role}={found[0]!r:.200}{none}."
        )
    return found[0] if found else None


def _telling(table: Table, found: list[str]) -> list[str]:
    """Columns that tell rows apart, one of those that do so alike."""
    kept: dict[tuple[int, ...], str] = {}
    for name in found:
        order: dict[str, int] = {}
        codes = tuple(order.setdefault(word, len(order)) for word in texts(table.columns[name]))
        kept.setdefault(codes, name)
    return [name for codes, name in kept.items() if any(codes)]


_AS_COLUMNS = ", or if methods are columns that of training from scratch with scratch=…"


def _check_needed(table: Table, one: Mapping[str, str | None]) -> None:
    what = {"method": "methods", "n": "training sizes", "risk": "losses or errors"}
    for role in NEEDED:
        if one[role] is None:
            raise InputError(
                f"{table.source} has no column of {what[role]}: name it with {role}=…"
                f"{_AS_COLUMNS if role == 'method' else ''}. It has "
                f"{list_names(table.columns)}."
            )


def _check_one_kind(table: Table, rest: Sequence[str]) -> None:
    """Rows of several splits or metrics are no runs of one another."""
    for name in rest:
        if normal(name) not in _SEVERAL:
            continue
        there = list(dict.fromkeys(names_in(table, name)))
        if len(there) > 1:
            one = next((word for word in there if normal(word) == "test"), there[0])
            raise InputError(
                f"{table.where(name)} has {len(there)} values: {list_names(there)}. Choose one with "
                f"where={{{name!r:.200}: {brief(one)}}}."
            )


# Rows of a table of risks: sizes, failed runs, accuracies turned into errors, repeated rows.

FAILED = frozenset(("failed", "fail", "failure", "error", "crashed", "killed", "aborted", "pruned"))
"""How a run ended that has no result; one that goes on is left out instead."""
NO_NUMBER = frozenset(("oom", "out of memory", "diverged", "timeout", "timed out"))
"""What else is written in place of a number that did not come about."""


def names_of(table: Table, column: str | None, role: str, otherwise: str) -> NDArray[np.str_]:
    """Names in a column, of which none may be empty."""
    if column is None:
        return np.full(len(table), otherwise)
    words = names_in(table, column)
    if "" in words:
        raise InputError(
            f"Row {table.rows[words.index('')]} of {table.source} names no {role} in "
            f"{brief(column)}: fill the cell or remove the row."
        )
    return np.array(words, dtype=np.str_)


def finished(table: Table, roles: RiskRoles) -> tuple[Table, NDArray[np.bool_], list[str]]:
    """Leave out runs that are not at their end; which of the others failed, and what to say."""
    column = roles.one["status"]
    if column is None:
        return table, np.zeros(len(table), dtype=np.bool_), []
    words = np.array([status_word(cell) for cell in table.columns[column]])
    ended = np.isin(words, sorted(FINISHED | FAILED))
    if not ended.any():
        raise InputError(f"None of the {len(table)} rows of {table.source} is finished.")
    notes = []
    if not ended.all():
        others = list_names(dict.fromkeys(words[~ended].tolist()))
        notes.append(f"{int((~ended).sum())} rows left out by {column!r:.200}: {others}")
    table = table.take(np.flatnonzero(ended))
    return table, np.isin(words[ended], sorted(FAILED)), notes


def check_sizes(table: Table, column: str, n: FloatArray, is_control: NDArray[np.bool_]) -> None:
    """Only rows of controls may have no size."""
    bad = ~(np.isfinite(n) & (n > 0)) & ~is_control
    if bad.any():
        cell = table.columns[column][int(np.flatnonzero(bad)[0])]
        raise InputError(
            f"{table.where(column)} reads {brief(cell)} ({first_row(table.rows, bad)}): a training "
            "size is a positive number. Only controls may have none: name theirs with blind=… or "
            "maximal=…."
        )


@dataclass(frozen=True)
class Reading:
    """How values of a table become risks.

    Attributes
    ----------
    name : str
        What a risk is called on an axis.
    note : str
        How they were read, in words.
    top, sign : float
        A risk is ``top + sign * value``.
    """

    name: str
    note: str
    top: float = 0.0
    sign: float = 1.0

    def risk(self, value: float) -> float:
        """A risk out of one value."""
        return self.top + self.sign * value

    def risks(self, values: FloatArray) -> FloatArray:
        """Risks out of values."""
        return self.top + self.sign * values


def reading_of(column: str, values: FloatArray, unit: str | None, higher: bool | None, source: str) -> Reading:
    """Decide whether values are losses, errors, accuracies or scores, and in which unit."""
    _check(unit, higher)
    up = _is_up(column, unit, higher)
    words = normal(column).replace("_", " ")
    seen = values[np.isfinite(values)]
    if unit in ("fraction", "percent"):
        _check_bounds(seen, unit, column, source)
    if not up:
        known = higher is False or higher_is_better(column) is not None
        note = "lower is better" if known else "lower is taken as better"
        mark = {"percent": " (%)", "loss": "" if "loss" in words else " (loss)"}
        return Reading(words + mark.get(unit or "", ""), note)
    if unit == "loss":
        raise InputError(f"unit='loss' contradicts higher_is_better=True for {column!r:.200}: leave one out.")
    if unit == "score" or (unit is None and seen.size and not 0 <= seen.min() <= seen.max() <= 100):
        return Reading(f"−{words}", "a score, turned into its negative", 0.0, -1.0)
    percent = unit == "percent" or (unit is None and seen.size and seen.max() > 1)
    top = 100.0 if percent else 1.0
    name = " ".join("error" if k in ("accuracy", "acc") else k for k in words.split())
    if name == words:
        name = f"{top:g} − {words}"
    how = f"turned into {top:g} − {column}, as accuracies in {'percent' if percent else 'fractions'}"
    return Reading(name + (" (%)" if percent and "error" in name else ""), how, top, -1.0)


def check_direction(column: str, unit: str | None, higher: bool | None) -> None:
    """A column that was chosen by hand must say whether lower is better, or the user must."""
    if higher is None and unit not in ("loss", "score") and higher_is_better(column) is None:
        raise InputError(
            f"risk={column!r:.200} does not say whether lower is better: pass "
            "higher_is_better=False for losses or errors, higher_is_better=True for accuracies or "
            "scores."
        )


def _is_up(column: str, unit: str | None, higher: bool | None) -> bool:
    """Whether higher is better: the user's word, which must not contradict a plain name."""
    said = higher_is_better(column)
    if higher is None and unit != "score":
        return bool(said)
    up = bool(higher or unit == "score")
    if said is not None and said != up and not is_score(column):
        setting = "unit='score'" if unit == "score" else f"higher_is_better={higher}"
        better = "higher" if said else "lower"
        raise InputError(
            f"{setting} contradicts the name {column!r:.200}, for which {better} is better: leave "
            "the setting out, or give the column its right name."
        )
    return up


def _check(unit: str | None, higher: bool | None) -> None:
    if unit is not None and unit not in UNITS:
        raise InputError(f"unit={unit!r}: use one of {', '.join(map(repr, UNITS))}.")
    if higher not in (None, True, False):
        raise InputError(f"higher_is_better={higher!r} must be True, False or None.")
    if unit == "score" and higher is False:
        raise InputError("unit='score' contradicts higher_is_better=False: use unit='loss'.")


def _check_bounds(seen: FloatArray, unit: str, column: str, source: str) -> None:
    top = 1.0 if unit == "fraction" else 100.0
    bad = seen[(seen < 0) | (seen > top)]
    if bad.size:
        right = "'percent', or 'loss' or 'score'" if unit == "fraction" else "'loss' or 'score'"
        raise InputError(
            f"Column {column!r:.200} of {source} holds {bad[0]:g}, which is no {unit}: pass "
            f"unit={right} for a number without bounds."
        )


def risks_of(table: Table, column: str, failed: NDArray[np.bool_]) -> tuple[FloatArray, list[str]]:
    """Risks as they stand, NaN where the run failed or is not finite, and what to say."""
    spread = any("±" in cell for cell in table.columns[column] if isinstance(cell, str))
    remedy = "Of a mean ± a spread give the mean, or better a row for each run." if spread else ""
    said = [_says_failed(cell) for cell in table.columns[column]]
    if any(said):
        cells = [None if bad else c for bad, c in zip(said, table.columns[column], strict=True)]
        table = replace(table, columns={**table.columns, column: cells})
    values = numbers(table, column, remedy=remedy)
    notes = []
    for bad, why in (
        (failed, "failed by their status"),
        (np.isnan(values) & ~failed, "without a value"),
        (np.isinf(values) & ~failed, "infinite"),
    ):
        if bad.any():
            notes.append(
                f"{int(bad.sum())} of {len(values)} runs taken as failed, {why} ({first_row(table.rows, bad)})"
            )
    return np.where(failed | ~np.isfinite(values), np.nan, values), notes


def _says_failed(cell: object) -> bool:
    """Whether a cell says that there is no number since the run failed.

    >>> _says_failed("FAILED"), _says_failed("OOM"), _says_failed("0.5"), _says_failed(0.5)
    (True, True, False, False)
    """
    return isinstance(cell, str) and cell.strip().lower() in FAILED | NO_NUMBER


def check_repeats(table: Table, roles: RiskRoles, keys: list[tuple[str, ...]]) -> list[str]:
    """Two rows of one run are an error; without seeds, rows of one size are runs, and noted."""
    seen: dict[tuple[str, ...], int] = {}
    named = roles.one["seed"] is not None or roles.one["fold"] is not None
    repeated = False
    for row, key in enumerate(keys):
        if named and not any(key[3:]):
            continue  # a control, mostly, that has no seed
        if key not in seen:
            seen[key] = row
            continue
        repeated = True
        if named:
            raise _twice(table, roles, seen[key], row)
    if repeated:
        return ["no seeds: rows of one task, method and size are taken as runs"]
    return []


def _twice(table: Table, roles: RiskRoles, first: int, second: int) -> InputError:
    columns = {role: name for role in ("task", "method", "n", "seed", "fold") if (name := roles.one[role])}
    where = ", ".join(f"{k} {brief(table.columns[k][second])}" for k in columns.values())
    differ = [k for k in roles.left_out if texts(table.columns[k])[first] != texts(table.columns[k])[second]]
    way = "remove one"
    if differ:
        value = texts(table.columns[differ[0]])[first]
        way = f"choose with where={{{differ[0]!r:.200}: {value!r:.200}}}, as they differ in "
        way += list_names(differ)
    role = "seed" if roles.one["seed"] else "fold"
    return InputError(
        f"Rows {table.rows[first]} and {table.rows[second]} of {table.source} are the same run "
        f"({where}): {way}, or pass {role}=False if {roles.one[role]!r:.200} does not tell runs "
        "apart."
    )


# Training sizes of a table of risks: 1000, 1,000, 1k; and cells that say there is none.

_SHORT = re.compile(r"([0-9]+(?:[.,][0-9]+)?) ?([kKmM])")
_TIMES = {"k": 1e3, "m": 1e6}
_NONE = frozenset(("-", "–", "—", "all", "full", "max", "any"))
_HEADER = re.compile(r"(?:n ?[=_] ?)?([0-9][0-9.,]* ?[kKmM]?)")


def sizes_of(table: Table, column: str) -> FloatArray:
    """Sizes of a column; NaN where a cell is empty or says "all", as rows of controls may.

    >>> from curvewise.reading.table import make_table
    >>> sizes_of(make_table("a", {"n": ["100", "1k", "10,000", "1.5M", "all"]}), "n").tolist()
    [100.0, 1000.0, 10000.0, 1500000.0, nan]
    """
    cells = [_plain(cell) for cell in table.columns[column]]
    for row, cell in zip(table.rows, cells, strict=True):
        if isinstance(cell, str) and cell.strip().endswith("%"):
            raise InputError(
                f"Row {row} in {table.where(column)} reads {brief(cell)}: a training size is a "
                "number of examples. Write 500 for 1% of 50,000."
            )
    changed = replace(table, columns={**table.columns, column: cells})
    return numbers(changed, column, thousands=True)


def _plain(cell: Any) -> Any:
    """A cell with 1k as 1000 and "all" as nothing."""
    if not isinstance(cell, str):
        return cell
    text = cell.strip()
    if found := _SHORT.fullmatch(text):
        return round(float(found[1].replace(",", ".")) * _TIMES[found[2].lower()], 6)
    return None if text.lower() in _NONE else cell


def header_size(name: str) -> float | None:
    """The size that a column is called by, None if it is called something else.

    >>> header_size("100"), header_size("n=1k"), header_size("1,000"), header_size("top5")
    (100.0, 1000.0, 1000.0, None)
    """
    found = _HEADER.fullmatch(name.strip())
    size = parse(_plain(found[1]), thousands=True) if found else None
    return size if size is not None and size > 0 else None


# Whether controls that are given as numbers are in the unit of the table.


def check_numbers(
    given: Mapping[str, Any], reading: Reading, column: str, values: FloatArray, unit: str | None
) -> None:
    """Raise for a number that is no share where the table holds shares, or may be two things.

    Parameters
    ----------
    given : dict
        What the user gave for blind and maximal.
    reading : Reading
        How values of the table become risks.
    column : str
        Where they are from.
    values : ndarray
        As the table has them.
    unit : str, optional
        The user's word for what they are.
    """
    seen = values[np.isfinite(values)]
    if not seen.size or not _holds_shares(reading, column, unit, seen):
        return
    percent = unit == "percent" or (unit is None and seen.max() > 1)
    for role, value in ((r, v) for r, g in given.items() for _, v in _numbers(g)):
        _check_bounds_risk_units(role, value, 100.0 if percent else 1.0, column, seen, reading)
        if percent and unit is None and 0 < value <= 1:
            _check_percent(role, value, column, reading, seen)
    if reading.sign < 0:
        _check_order(given, column)
        _check_reach(given["maximal"], column, seen)


def _holds_shares(reading: Reading, column: str, unit: str | None, seen: FloatArray) -> bool:
    """Whether values are accuracies or errors that lie between 0 and 1 or 0 and 100."""
    if unit in ("fraction", "percent") or reading.top:
        return True
    return unit is None and names_share(column) and seen.min() >= 0 and seen.max() <= 100


def _numbers(given: Any) -> Iterator[tuple[str | None, float]]:
    """Plain numbers among what was given, with their tasks."""
    for task, value in given.items() if isinstance(given, Mapping) else ((None, given),):
        if isinstance(value, int | float | np.number) and not isinstance(value, bool):
            yield (None if task is None else str(task)), float(value)


def _check_bounds_risk_units(
    role: str, value: float, top: float, column: str, seen: FloatArray, reading: Reading
) -> None:
    if not np.isfinite(value) or 0 <= value <= top:
        return
    kind = "fraction" if top == 1 else "percentage"
    way = f"pass {role}={value / 100:g}" if 1 < value <= 100 else f"pass {role}= as one"
    free = "" if reading.sign < 0 else ", or unit='loss' if these are losses without bounds"
    raise InputError(
        f"{role}={value:g} is no {kind}, as {column!r:.200} holds ({seen.min():.4g} to {seen.max():.4g}): {way}{free}."
    )


def _check_percent(role: str, value: float, column: str, reading: Reading, seen: FloatArray) -> None:
    """A number up to 1 among percentages may be a fraction, if that would make sense as well."""
    risks, other = reading.risks(seen), reading.risk(100 * value)
    sensible = other >= np.median(risks) if role == "blind" else other <= risks.min()
    if sensible:
        raise InputError(
            f"{role}={value:g} among percentages ({column!r:.200} holds {seen.min():.4g} to "
            f"{seen.max():.4g}) may mean {value:g}% or {100 * value:g}%: pass "
            f"{role}={100 * value:g}, or unit='percent' if {value:g}% is meant."
        )


def _check_order(given: Mapping[str, Any], column: str) -> None:
    """Among accuracies the blind guess is the lower of the two."""
    blind, maximal = (dict(_numbers(given[role])) for role in ("blind", "maximal"))
    for task, low in blind.items():
        high = maximal.get(task, maximal.get(None))
        if high is not None and low >= high:
            raise InputError(
                f"blind={low:g} is not below maximal={high:g}: {column!r:.200} is read as "
                "higher-is-better, and so are its controls. Check which is which; numbers are as "
                "the table has them, such as accuracies among accuracies."
            )


def _check_reach(maximal: Any, column: str, seen: FloatArray) -> None:
    """Maximal supervision that every run beats would turn all signs round."""
    for _, value in _numbers(maximal):
        if value < seen.min():
            raise InputError(
                f"maximal={value:g} is beaten by every run ({column!r:.200} holds {seen.min():.4g} "
                f"to {seen.max():.4g}), which would turn the sign of CCI round: pass what all the "
                "data gives, in the unit of the table, or leave it out."
            )


# Tables of risks with a column for each method or each size, turned into a row for each run.

VALUE = "value"


_NO_METHOD = _names("""
    std sd sem stderr se var variance ci low high lower upper time seconds hours runtime epoch
    epochs step steps lr""")
"""Words in names of columns that say something else of a run than its risk."""


def in_rows(
    table: Table, told: Mapping[str, ColumnName], used: Collection[str], scratch: str | None, higher: bool | None
) -> Table:
    """A table with a row for each run, as it is or out of one whose columns are sizes or methods.

    Columns are sizes if two or more are called like one and none holds sizes; they are methods if
    one is called like training from scratch and none holds methods. A cell without a value was not
    measured. Columns do not say whether lower is better, so that ``higher`` must.
    """
    taken = {*used, *(name for name in told.values() if name)}
    free = [k for k in table.columns if k not in taken]
    lacks = {role for role in ("n", "method") if not told[role] and not _plays(free, role)}
    sizes = {k: size for k in free if (size := header_size(k)) is not None}
    if "n" in lacks and len(sizes) > 1:
        return _melted(table, "n", sizes, higher)
    if "method" in lacks and (called := _called_scratch(free, scratch)):
        methods = [k for k in free if k in called or _holds_risks(table, k)]
        return _melted(table, "method", {k: k for k in methods}, higher)
    return table


def _plays(names: Sequence[str], *roles: str) -> bool:
    return any(normal(k) in tier for k in names for role in roles for tier in ROLES[role])


def _called_scratch(names: Sequence[str], given: str | None) -> list[str]:
    return [k for k in names if (normal(k) in SCRATCH.plain if given is None else k == given)]


def _holds_risks(table: Table, name: str) -> bool:
    cells = table.columns[name]
    if _plays([name], *ROLES) or is_status(name, cells) or _NO_METHOD & set(normal(name).split("_")):
        return False
    return is_measured(cells)


def _melted(table: Table, role: str, names: Mapping[str, Any], higher: bool | None) -> Table:
    """The columns ``names`` below one another, with what each is called in one of its own."""
    what = {"n": "sizes", "method": "methods"}[role]
    if higher is None:
        raise InputError(
            f"{table.source} has {what} as columns ({list_names(names)}), which do not say what is in "
            "them: pass higher_is_better=False for losses or errors, higher_is_better=True for "
            "accuracies."
        )
    there = {
        name: np.array([i for i, cell in enumerate(table.columns[name]) if not is_missing(cell)]) for name in names
    }
    if not any(map(len, there.values())):
        raise InputError(f"{table.source} has no value in {list_names(names)}: there is no risk.")
    index = np.concatenate([rows.astype(np.intp) for rows in there.values()])
    kept = {k: take_cells(cells, index) for k, cells in table.columns.items() if k not in names}
    columns = {
        **kept,
        role: [called for name, called in names.items() for _ in there[name]],
        VALUE: [table.columns[name][i] for name, rows in there.items() for i in rows],
    }
    empty = len(names) * len(table) - len(index)
    notes = [f"columns {list_names(names)} taken as {what}"]
    notes += [f"{empty} empty cells left out"] if empty else []
    rows = table.rows[index]
    return replace(table, columns=columns, rows=rows, notes=(*table.notes, *notes))
