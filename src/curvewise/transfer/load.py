"""Read risks of pretrained and other methods by training size, with their controls."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError, Message, arg, brief, list_names, suggest
from curvewise.reading.roles import (
    FAILED,
    FINISHED,
    FOLD,
    HIGHER_IS_BETTER,
    LOWER_IS_BETTER,
    SCORES,
    SEED,
    SIZE,
    STATUS,
    ColumnMap,
    ColumnRoles,
    Role,
    ask,
    bare,
    check_contradiction,
    check_direction_flag,
    direction,
    find_roles,
    is_score,
    is_status,
    keep_ended,
    named_unit,
    normal,
    says_percent,
    select_rows,
    status_word,
    synonyms,
)
from curvewise.reading.table import (
    Table,
    counts,
    first_row,
    full_names,
    is_measured,
    large_files,
    melt,
    names_in,
    numbers,
    parse,
    plain_count,
    read_table,
    texts,
    unfold,
)
from curvewise.store.tables import risk_table, store_folder
from curvewise.text import as_count
from curvewise.transfer.risks import ONE_TASK, Control, TransferRisks, as_control, measured_control, names_share
from curvewise.types.results import FloatArray, Unit

_RISKS = LOWER_IS_BETTER | HIGHER_IS_BETTER | SCORES
_RISKS |= synonyms("mse mae rmse perplexity ppl crossentropy ce iou miou dice bleu rouge psnr ssim r2 acc1 acc5")
_TOP = re.compile(r"(?:test_|val_|valid_|validation_|eval_)?(?:top_?[15]|exact_match)")
_TEST, _VALIDATION = synonyms("test"), synonyms("val valid validation eval")
_BESIDE = (
    _TEST
    | _VALIDATION
    | synonyms("""
    rate mean avg average l1 l2 log cross entropy angular 01 zero one top 1 5 top1 top5 final per example""")
)
_SEVERAL = synonyms("split partition metric metric_name evaluation")
"""Columns whose values must not be mixed: a risk is of one of them."""
_METRIC = synonyms("metric metric_name")


def _risk_on(name: str, places: frozenset[str]) -> bool:
    """Return whether a column is called like a risk on one of these sets, or on none in particular.

    >>> [_risk_on(k, _TEST) for k in ("test_loss", "loss", "train_loss", "seconds")]
    [True, False, False, False]
    """
    words = frozenset(bare(name).split("_"))
    is_risk = (words & _RISKS and words <= _RISKS | _BESIDE) or _TOP.fullmatch(bare(name))
    return bool(is_risk) and bool(words & places if places else not words & (_TEST | _VALIDATION))


ROLES = (
    Role(
        "task",
        (
            synonyms("""
            task task_name domain dataset dataset_name target target_task target_dataset downstream downstream_task
            downstream_dataset"""),
        ),
        telling=True,
    ),
    Role(
        "method",
        (
            synonyms("""
            method method_name pretraining pre_training pretraining_method pretrained pretrained_on init init_method
            initialisation initialization initial_weights learner learner_name"""),
            synonyms("""
            weights checkpoint model model_name name backbone encoder network algorithm estimator classifier prompt
            prompting"""),
        ),
        telling=True,
        required=True,
        if_none=f", or if methods are columns name that of training from scratch with {arg('scratch')}",
    ),
    Role(
        "n",
        (
            SIZE,
            synonyms("""
            shots n_shots num_shots k_shot train_size_total data_regime images n_images num_images train_images
            n_train_images labels n_labels num_labels n_labelled n_labeled"""),
        ),
        required=True,
        noun="training-set size",
    ),
    Role("seed", (SEED, synonyms("run run_id replicate repeat repetition trial"), synonyms("init_seed"))),
    Role("fold", (FOLD | synonyms("train_fold training_fold subset_id"),)),
    Role(
        "risk",
        # The test set before none in particular, and that before a validation set.
        matches=(
            lambda k: _risk_on(k, _TEST),
            lambda k: _risk_on(k, frozenset()),
            lambda k: _risk_on(k, _VALIDATION),
            lambda k: bare(k) in ("value", "values"),
        ),
        required=True,
    ),
    STATUS,
)


def load_risks(
    source: Any,
    *,
    columns: ColumnMap | None = None,
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

    ``notes`` of the result record how each column was interpreted; where two readings are possible it is an error that
    says how to choose.

    Parameters
    ----------
    source : path, DataFrame, dict or list
        A CSV, TSV, JSON, JSON lines or Parquet file, a frame, a dict of columns or a list of
        records with a row for each run; or a folder of runs stored by
        :func:`curvewise.write_run`, of which ``columns={"risk": …}`` then names a metric. Methods or sizes may
        also be columns; then ``higher_is_better`` must say what is in them.
    columns : dict, optional
        Which column has a role: ``{"method": "start", "n": "images", "risk": "val_l1"}``. Roles are task, method, n,
        risk, seed, fold and status; None leaves one out. Others are found by name: domain, dataset, … are tasks;
        method, pretraining, initialisation, learner, … methods; train_size, n, … sizes; test_loss, risk, error,
        accuracy, … risks.
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
        By default the name of the column says so; that of one chosen with ``columns`` must. Accuracies
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
    TransferRisks(4 runs, 1 task, 2 methods, 2 sizes from 100 to 1,000)
    >>> risks.blind["depth"].risk, risks.maximal["depth"].risk, risks.unit
    (0.9, 0.1, 'test loss')
    """
    folder = store_folder(source)
    with large_files(allow_large):
        table = select_rows(risk_table(folder) if folder else read_table(source), where)
    table = _in_rows(table, columns or {}, where or {}, scratch, higher_is_better)
    roles = find_roles(table.columns, table.source, ROLES, columns, used=list(where or ()))
    _check_one_kind(table, roles.rest)
    column = roles["risk"]
    if not (columns or {}).get("risk"):
        _check_alike(table, column, roles.rest)
    table = unfold(table, [k for role in roles.held for k in roles.of(role)])
    # A failed run stays, as NaN; one that still goes on is left out.
    table = keep_ended(table, roles.get("status"), FINISHED | FAILED)
    called = _metric_of(table, column)
    if says_percent(called) and unit in (None, "fraction"):
        unit = named_unit(unit, [called])
    values, lost = _risks_of(table, column, roles.get("status"))
    if higher_is_better is None and unit not in ("loss", "score") and direction(called) is None:
        losses, scores = arg("higher_is_better", False), arg("higher_is_better", True)
        raise InputError(
            f"{ask('risk', column)}: the name does not say whether lower is better: pass {losses} for losses or "
            f"errors, {scores} for accuracies or scores."
        )
    scale = _scale_of(called, values, unit, higher_is_better, table.source)
    _check_numbers({"blind": blind, "maximal": maximal}, scale, called, values, unit)
    rows = RiskRows(
        np.array(full_names(table, roles["task"], "task") if "task" in roles else [ONE_TASK] * len(table)),
        np.array(full_names(table, roles["method"], "method")),
        counts(table, roles["n"], nothing=_NO_SIZE),
        np.asarray(scale.risk(values), dtype=np.float64),
    )
    runs = {role: np.array(names_in(table, roles[role])) for role in ("seed", "fold") if role in roles}
    runs = {role: names for role, names in runs.items() if (names != "").any()}  # an empty column says nothing
    repeats = _check_repeats(table, roles, rows, runs)
    if repeats and not {"seed", "fold"} & set(columns or {}):  # the user has not said that rows are runs
        _check_crossed(table, roles.rest, rows)
    plainly = [name for name in rows.names if normal(name) in SCRATCH.plain]
    only_scratch = plainly[0] if len(plainly) == 1 else None
    blind_found, maximal_found = (
        find_control(rows, called, given, scale.risk, table.source, scratch or only_scratch)
        for called, given in ((BLIND, blind), (MAXIMAL, maximal))
    )
    # Rows of controls are no method.
    gone = (*blind_found.methods, *maximal_found.methods)
    start = find_scratch(rows, scratch, gone, table.source)
    is_control = np.isin(rows.methods, gone)
    _check_sizes(table, roles["n"], rows.n, is_control)
    keep = ~is_control
    found = TransferRisks(
        tasks=rows.tasks[keep],
        methods=rows.methods[keep],
        n=rows.n[keep],
        risk=rows.risk[keep],
        seeds=runs["seed"][keep] if "seed" in runs else None,
        folds=runs["fold"][keep] if "fold" in runs else None,
        scratch=start,
        blind=blind_found.control,
        maximal=maximal_found.control,
        unit=scale.name,
        turned=scale.sign < 0,
    )
    notes = [roles.note(risk=scale.note), f"scratch: {start!r}", *blind_found.notes, *maximal_found.notes]
    notes += [*repeats, *lost, *table.notes]
    failed = np.isnan(found.risk)
    if failed.all():
        raise InputError(f"All {len(found)} runs of {table.source} failed: none is left.")
    if drop_failed and failed.any():
        found = found.select(~failed)
        notes.append(f"{int(failed.sum())} failed runs left out")
    return replace(found, notes=tuple(map(Message, notes)))


# Tables with a column for each method or each size.

_VALUE = "value"
_NO_METHOD = synonyms("""
    std sd sem stderr se var variance ci low high lower upper time seconds hours runtime epoch epochs step steps lr""")
"""Words in names of columns that say something else of a run than its risk."""


def _in_rows(table: Table, named: ColumnMap, used: Collection[str], scratch: str | None, higher: bool | None) -> Table:
    """Make a table with a row for each run of one whose columns are sizes or methods; others stay as they are.

    Columns are sizes if two or more are called like one and none holds sizes; they are methods if one is called like
    training from scratch and none holds methods. A cell without a value was not measured. Columns do not say whether
    lower is better, so that ``higher`` must.
    """
    taken = {*used, *(name for name in named.values() if isinstance(name, str))}
    free = [k for k in table.columns if k not in taken]
    by_name = {role.name: role for role in ROLES}
    lacks = {k for k in ("n", "method") if not named.get(k) and not any(map(by_name[k].is_called, free))}
    sizes = {k: size for k in free if (size := header_size(k)) is not None}
    # One column called like a number may be anything; two are a table by size.
    if "n" in lacks and len(sizes) > 1:
        return _melted(table, "n", sizes, higher)
    called = [k for k in free if (normal(k) in SCRATCH.plain if scratch is None else k == scratch)]
    if "method" in lacks and called:
        other = [role for role in ROLES if role.name not in ("risk", "status")]

        def holds_risks(name: str) -> bool:
            words, cells = set(normal(name).split("_")), table.columns[name]
            known = any(role.is_called(name) for role in other) or is_status(name, cells) or words & _NO_METHOD
            return not known and is_measured(cells)

        return _melted(table, "method", {k: k for k in free if k in called or holds_risks(k)}, higher)
    return table


def _melted(table: Table, role: str, names: Mapping[str, Any], higher: bool | None) -> Table:
    """Make rows of columns that are called like sizes or methods."""
    what = {"n": "sizes", "method": "methods"}[role]
    if higher is None:
        raise InputError(
            f"{table.source} has {what} as columns ({list_names(names)}), which do not say what is in them: pass "
            f"{arg('higher_is_better', False)} for losses or errors, {arg('higher_is_better', True)} for accuracies."
        )
    long, empty = melt(table, names, role, _VALUE)
    notes = [f"columns {list_names(names)} taken as {what}"]
    notes += [f"{empty} empty cells left out"] if empty else []
    return replace(long, notes=(*table.notes, *notes))


def _check_one_kind(table: Table, rest: Sequence[str]) -> None:
    """Refuse rows of several splits or metrics: they are no runs of one another."""
    for name in rest:
        there = list(dict.fromkeys(names_in(table, name))) if normal(name) in _SEVERAL else []
        if len(there) > 1:
            one = next((word for word in there if normal(word) == "test"), there[0])
            raise InputError(
                f"{table.where(name)} has {len(there)} values: {list_names(there)}. Choose one with "
                f"{arg('where', {name: one})}."
            )


def _check_alike(table: Table, column: str, rest: Sequence[str]) -> None:
    """Refuse a column of risks beside others of the same name but for a number: loss_0, loss_1, loss_2."""
    stem = re.sub("[0-9]+", "#", normal(column))
    if "#" in stem and (alike := [k for k in rest if re.sub("[0-9]+", "#", normal(k)) == stem]):
        names = [k for k in table.columns if k in (column, *alike)]
        raise InputError(
            f"{table.source} has {list_names(names)}: choose one with {ask('risk', column)}, or put them below one "
            "another, a row for each run, with their numbers in a column of seeds."
        )


def _metric_of(table: Table, column: str) -> str:
    """Return the name of the risks: that of their column or, if it says little, the one metric of a column of these."""
    if direction(column) is not None and not is_score(column):
        return column
    found = {word for name in table.columns if normal(name) in _METRIC for word in names_in(table, name)} - {""}
    return found.pop() if len(found) == 1 else column


# Training sizes in cells and in names of columns.

# Cells of controls, which were not trained at a size.
_NO_SIZE = frozenset(("-", "–", "—", "all", "full", "max", "any"))
_HEADER = re.compile(r"(?:n ?[=_] ?)?([0-9][0-9.,]* ?[kKmM]?)")


def header_size(name: str) -> float | None:
    """Return the size in the name of a column, None if it has another name.

    >>> header_size("100"), header_size("n=1k"), header_size("1,000"), header_size("top5")
    (100.0, 1000.0, 1000.0, None)
    """
    found = _HEADER.fullmatch(name.strip())
    size = parse(plain_count(found[1]), thousands=True) if found else None
    return size if size is not None and size > 0 else None


def _check_sizes(table: Table, column: str, n: FloatArray, is_control: NDArray[np.bool_]) -> None:
    """Refuse rows without a size, unless they are of controls."""
    bad = ~(np.isfinite(n) & (n > 0)) & ~is_control
    if bad.any():
        cell = table.columns[column][int(np.flatnonzero(bad)[0])]
        raise InputError(
            f"{table.where(column)} reads {brief(cell)} ({first_row(table.rows, bad)}): a training size is a positive "
            f"number. Only controls may have none: name theirs with {arg('blind')} or {arg('maximal')}."
        )


# Losses, errors, accuracies and scores into risks.

NO_NUMBER = frozenset(("oom", "out of memory", "diverged", "timeout", "timed out"))
"""Further words that people write in place of the number of a failed run."""


def _risks_of(table: Table, column: str, status: str | None) -> tuple[FloatArray, list[str]]:
    """Read risks as they stand, NaN where the run failed or the value is not finite, and make notes."""
    cells = table.columns[column]
    spread = any("±" in cell for cell in cells if isinstance(cell, str))
    remedy = "Of a mean ± a spread give the mean, or better a row for each run." if spread else ""
    said = [isinstance(cell, str) and cell.strip().lower() in FAILED | NO_NUMBER for cell in cells]
    if any(said):
        blanked = [None if bad else cell for bad, cell in zip(said, cells, strict=True)]
        table = replace(table, columns={**table.columns, column: blanked})
    values = numbers(table, column, remedy=remedy)
    words = [status_word(cell) for cell in table.columns[status]] if status else []
    failed = np.array([word in FAILED for word in words] or [False] * len(table))
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


@dataclass(frozen=True)
class RiskScale:
    """Scale of the values in a table: a risk is ``top + sign * value``.

    Attributes
    ----------
    name : str
        Label of an axis of risks.
    note : str
        The interpretation, in words.
    top, sign : float
        0 and 1 for losses, 100 and -1 for accuracies in percent.
    """

    name: str
    note: str
    top: float = 0.0
    sign: float = 1.0

    def risk(self, value: Any) -> Any:
        """Return the risk of a value, or the risks of an array."""
        return self.top + self.sign * value


def _scale_of(column: str, values: FloatArray, unit: str | None, higher: bool | None, source: str) -> RiskScale:
    """Decide whether values are losses, errors, accuracies or scores, and in which unit."""
    check_direction_flag(higher)
    by_name = direction(column)
    up = (bool(by_name) or unit == "score") if higher is None else higher
    known = Unit(unit or "fraction", up)  # refuses settings that contradict each other
    if higher is not None or unit == "score":  # the user's word, which must not contradict a plain name
        setting = arg("unit", "score") if unit == "score" else arg("higher_is_better", higher)
        check_contradiction(column, by_name, up, setting)
    seen = values[np.isfinite(values)]
    if unit is not None:
        known.errors(seen, f"Column {column!r:.200} of {source}")
    words = normal(column).replace("_", " ")
    if not up:
        mark = {"percent": " (%)", "loss": "" if "loss" in words else " (loss)"}
        return RiskScale(words + mark.get(unit or "", ""), "lower is better")
    if unit == "score" or (unit is None and seen.size and not 0 <= seen.min() <= seen.max() <= 100):
        return RiskScale(f"−{words}", "a score, turned into its negative", 0.0, -1.0)
    percent = unit == "percent" or (unit is None and seen.size and seen.max() > 1)
    top = 100.0 if percent else 1.0
    name = " ".join("error" if k in ("accuracy", "acc") else k for k in words.split())
    if name == words:
        name = f"{top:g} − {words}"
    how = f"turned into {top:g} − {column}, as accuracies in {'percent' if percent else 'fractions'}"
    return RiskScale(name + (" (%)" if percent and "error" in name else ""), how, top, -1.0)


# Controls that are given as numbers must be in the unit of the table.


def _check_numbers(
    given: Mapping[str, Any], scale: RiskScale, column: str, values: FloatArray, unit: str | None
) -> None:
    """Raise for a number that is no share where the table holds shares, or may be two things.

    Parameters
    ----------
    given : dict
        The user's blind and maximal.
    scale : RiskScale
        Of the table.
    column : str
        The column of risks.
    values : ndarray
        As the table has them.
    unit : str, optional
        As the user gave it.
    """
    seen = values[np.isfinite(values)]
    # Only accuracies and errors, from 0 to 1 or 0 to 100, have bounds that a control can be outside of.
    shares = unit in ("fraction", "percent") or scale.top > 0
    if unit is None and not shares and seen.size:
        shares = bool(names_share(column) and seen.min() >= 0 and seen.max() <= 100)
    if not seen.size or not shares:
        return
    percent = unit == "percent" or (unit is None and seen.max() > 1)
    for role, value in ((r, v) for r, g in given.items() for _, v in _numbers(g)):
        _check_control_bounds(role, value, 100.0 if percent else 1.0, column, seen, scale)
        if percent and unit is None and 0 < value <= 1:
            _check_percent(role, value, column, scale, seen)
    if scale.sign < 0:
        # Among accuracies the blind guess is the lower of the two, and no run is above maximal supervision.
        blind, maximal = (dict(_numbers(given[role])) for role in ("blind", "maximal"))
        for task, low in blind.items():
            high = maximal.get(task, maximal.get(None))
            if high is not None and low >= high:
                raise InputError(
                    f"is not below {arg('maximal', as_count(high))}: {column!r:.200} is read as higher-is-better, and "
                    "so are its controls. Check which is which; numbers are as the table has them, such as accuracies "
                    "among accuracies.",
                    argument="blind",
                    value=as_count(low),
                )
        for value in maximal.values():
            if value < seen.min():
                raise InputError(
                    f"is beaten by every run ({column!r:.200} holds {seen.min():.4g} to {seen.max():.4g}), which would "
                    "turn the sign of CCI round: pass what all the data gives, in the unit of the table, or leave it "
                    "out.",
                    argument="maximal",
                    value=as_count(value),
                )


def _numbers(given: Any) -> Iterator[tuple[str | None, float]]:
    """Find the plain numbers among given controls, with their tasks."""
    for task, value in given.items() if isinstance(given, Mapping) else ((None, given),):
        if isinstance(value, int | float | np.number) and not isinstance(value, bool):
            yield (None if task is None else texts([task])[0]), float(value)


def _check_control_bounds(role: str, value: float, top: float, column: str, seen: FloatArray, scale: RiskScale) -> None:
    if not np.isfinite(value) or 0 <= value <= top:
        return
    kind = "fraction" if top == 1 else "percentage"
    way = f"pass {arg(role, as_count(value / 100))}" if 1 < value <= 100 else "pass one"
    free = "" if scale.sign < 0 else f", or {arg('unit', 'loss')} if these are losses without bounds"
    raise InputError(
        f"{arg(role, as_count(value))} is no {kind}, as {column!r:.200} holds ({seen.min():.4g} to {seen.max():.4g}): "
        f"{way}{free}."
    )


def _check_percent(role: str, value: float, column: str, scale: RiskScale, seen: FloatArray) -> None:
    """Ask about a number up to 1 among percentages, if it would make sense as a fraction as well."""
    risks, other = scale.risk(seen), scale.risk(100 * value)
    # A blind guess is worse than most runs, maximal supervision better than all of them.
    sensible = other >= np.median(risks) if role == "blind" else other <= risks.min()
    if sensible:
        raise InputError(
            f"{arg(role, as_count(value))} among percentages ({column!r:.200} holds {seen.min():.4g} to "
            f"{seen.max():.4g}) may mean {value:g}% or {100 * value:g}%: pass {arg(role, as_count(100 * value))}, or "
            f"{arg('unit', 'percent')} if {value:g}% is meant."
        )


def _check_repeats(table: Table, roles: ColumnRoles, rows: RiskRows, runs: Mapping[str, NDArray[np.str_]]) -> list[str]:
    """Refuse two rows of one run; without seeds, rows of one size are runs, and noted."""
    keys = zip(
        rows.tasks.tolist(), rows.methods.tolist(), rows.n.tolist(), *(r.tolist() for r in runs.values()), strict=True
    )
    seen: dict[tuple[Any, ...], int] = {}
    repeated = False
    for row, key in enumerate(keys):
        if runs and not any(key[3:]):
            continue  # a control, mostly, that has no seed
        key = (*key[:2], None if key[2] != key[2] else key[2], *key[3:])
        first = seen.setdefault(key, row)
        if first != row and runs:
            columns = [roles[k] for k in ("task", "method", "n", "seed", "fold") if k in roles]
            where = ", ".join(f"{k} {brief(table.columns[k][row])}" for k in columns)
            differ = [k for k in roles.rest if texts(table.columns[k])[first] != texts(table.columns[k])[row]]
            way, role = "remove one", next(iter(runs))
            if differ:
                value = texts(table.columns[differ[0]])[first]
                way = f"choose with {arg('where', {differ[0]: value})}, as they differ in {list_names(differ)}"
            raise InputError(
                f"Rows {table.rows[first]} and {table.rows[row]} of {table.source} are the same run ({where}): {way}, "
                f"or pass {ask(role, None)} if {roles[role]!r:.200} does not tell runs apart."
            )
        repeated |= first != row
    return ["no seeds: rows of one task, method and size are taken as runs"] if repeated else []


def _check_crossed(table: Table, rest: Sequence[str], runs: RiskRows) -> None:
    """Refuse rows without seeds that differ in a column with the same values for every task, method and size.

    They may be epochs, evaluation sets or settings of one run.
    """
    cells: dict[tuple[Any, ...], list[int]] = {}
    for row, key in enumerate(zip(runs.tasks.tolist(), runs.methods.tolist(), runs.n.tolist(), strict=True)):
        if key[2] > 0:
            cells.setdefault(key, []).append(row)
    several = [rows for rows in cells.values() if len(rows) > 1]
    for name in rest if len(several) > 1 else ():
        words = texts(table.columns[name])
        tallies = [Counter(words[row] for row in rows) for rows in several]
        there = list(tallies[0])
        if len(there) > 1 and all(len(set(c.values())) == 1 and c.keys() == tallies[0].keys() for c in tallies):
            one = next((word for word in there if normal(word) == "test"), there[-1])
            raise InputError(
                f"The rows of each task, method and size of {table.source} differ in {name!r:.200}, which is as often "
                f"each of {list_names(there)}: choose one with {arg('where', {name: one})}, or pass "
                f"{ask('seed', name)} if these are runs."
            )


# Controls: rows that are called like one, or what the user gives.


Given: TypeAlias = Any
"""A number, an interval, a Control, the name of a method, or any of these by task."""


@dataclass(frozen=True)
class ControlNames:
    """Names of a control: plain ones, and those that a method may have, too."""

    argument: str
    said: str
    plain: frozenset[str]
    other: frozenset[str]


SCRATCH = ControlNames(
    "scratch",
    "scratch",
    synonyms("""
    scratch from_scratch train_from_scratch trained_from_scratch training_from_scratch random
    random_init random_initialisation random_initialization random_weights randominit rand_init
    no_pretraining no_pre_training not_pretrained without_pretraining"""),
    synonyms("none few_shot fewshot"),
)
BLIND = ControlNames(
    "blind",
    "blind guess",
    synonyms("""
    blind blind_guess blind_guessing blindguess chance chance_level dummy constant
    constant_prediction majority majority_class most_frequent prior random_guess
    random_guessing"""),
    synonyms("zero_shot zeroshot"),
)
MAXIMAL = ControlNames(
    "maximal",
    "maximal supervision",
    synonyms("""
    maximal maximal_supervision max_supervision gold gold_standard oracle upper_bound
    full_supervision fully_supervised full_data all_data"""),
    synonyms("full full_fine_tuning full_finetuning full_finetune full_fine_tune"),
)


@dataclass(frozen=True, eq=False)
class RiskRows:
    """A table of risks by row; ``n`` is NaN or not positive where the table has no size."""

    tasks: NDArray[np.str_]
    methods: NDArray[np.str_]
    n: FloatArray
    risk: FloatArray

    @property
    def names(self) -> list[str]:
        """Names of the methods."""
        return list(dict.fromkeys(self.methods.tolist()))


@dataclass(frozen=True)
class FoundControl:
    """A control by task, the methods whose rows are it, and what to say."""

    control: dict[str, Control] = field(default_factory=dict)
    methods: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def find_scratch(rows: RiskRows, given: str | None, taken: Sequence[str], source: str) -> str:
    """Find the method that starts from nothing: the one that the user names, else by its name."""
    if given is not None:
        return _named(rows, SCRATCH, given, source)
    free = [name for name in rows.names if name not in taken]
    if not free:
        raise InputError(f"{source} has controls and no other rows: there is no method.")
    for names in (SCRATCH.plain, SCRATCH.other):
        found = [name for name in free if normal(name) in names]
        if len(found) > 1:
            raise InputError(
                f"{len(found)} methods of {source} could be training from scratch: {list_names(found)}. Choose with "
                f"{arg('scratch', found[0])}, and leave the others out with {arg('where')} if they are not meant."
            )
        if found:
            return found[0]
    raise InputError(
        f"No method of {source} is called like training from scratch: name it with {arg('scratch')}. There are "
        f"{list_names(free)}."
    )


def find_control(
    rows: RiskRows,
    called: ControlNames,
    given: Given,
    turned: Callable[[float], float],
    source: str,
    scratch: str | None = None,
) -> FoundControl:
    """Find a control for each task; ``turned`` makes a risk of a number as the table has it."""
    tasks = list(dict.fromkeys(rows.tasks.tolist()))
    wanted = by_task(given, tasks, called.argument, source)
    for value in wanted.values():
        if isinstance(value, str) and _named(rows, called, value, source) == scratch:
            raise scratch_as_control(called.argument, value)
    chosen, notes = _recognised(rows, called, given)
    control: dict[str, Control] = {}
    for task, value in {**chosen, **wanted}.items():
        if not isinstance(value, str):
            control[task] = as_control(value, called.argument, turned)
            continue
        here = (rows.tasks == task) & (rows.methods == value)
        if (one := measured_control(rows.n[here], rows.risk[here])) is not None:
            control[task] = one
        else:
            notes.append(f"rows of {value!r:.200} have no value for {task!r}")
    named = [v for v in {**chosen, **wanted}.values() if isinstance(v, str)]
    unused = dict.fromkeys(v for v in chosen.values() if v not in named)
    if unused:
        notes.append(Message(f"rows of {list_names(unused)} left out: {arg(called.argument)} is given"))
    gone = tuple(dict.fromkeys((*named, *unused)))
    if not control:
        return FoundControl(control, gone, (f"no {called.said}", *notes))
    given = "" if all(c.source.startswith("measured") for c in control.values()) else "given"
    how = " and ".join(filter(None, (f"rows of {list_names(dict.fromkeys(named))}" if named else "", given)))
    if exact := [task for task, one in control.items() if not one.std > 0]:  # one run, or a number
        how += ", taken as exact" + ("" if len(exact) == len(control) else f" for {list_names(exact)}")
    lost = [task for task in tasks if task not in control]
    how += f"; none for {list_names(lost)}" if lost else ""
    return FoundControl(control, gone, (f"{called.said}: {how}", *notes))


def scratch_as_control(role: str, name: str) -> InputError:
    """Make the error for a control that is training from scratch."""
    return InputError(
        "is the method that starts from nothing, which is measured against it.",
        argument=role,
        value=name,
        remedy="Pass its risk at the size that you mean as a number or a Control.",
    )


def by_task(given: Given, tasks: Sequence[str], argument: str, source: str) -> dict[str, Any]:
    """Return what is given for each task, which may be one for all, or raise for a task that there is not."""
    if not isinstance(given, Mapping):
        return {} if given is None else dict.fromkeys(tasks, given)
    # As names of a column are: 1, 1.0 and "1" are one task.
    named = dict(zip(texts(list(given)), given.values(), strict=True))
    for task in named:
        if task not in tasks:
            raise InputError(
                f"{arg(argument)} names the task {brief(task)}, which {source} does not have."
                f"{suggest(task, tasks)} It has {list_names(tasks)}."
            )
    return named


def _named(rows: RiskRows, called: ControlNames, name: str, source: str) -> str:
    if name not in rows.names:
        raise InputError(
            f"{arg(called.argument, name)} is no method of {source}.{suggest(name, rows.names)} It has "
            f"{list_names(rows.names)}."
        )
    return name


def _recognised(rows: RiskRows, called: ControlNames, given: Given) -> tuple[dict[str, str], list[str]]:
    """Return names of the control by task, and notes on methods that could be it and are not."""
    notes: list[str] = []
    found = [name for name in rows.names if normal(name) in called.plain]
    short = isinstance(given, Mapping) and not set(rows.tasks.tolist()) <= set(texts(list(given)))
    if not found and (given is None or short):
        maybe = [name for name in rows.names if normal(name) in called.other]
        found = [name for name in maybe if len(np.unique(rows.n[(rows.methods == name) & (rows.n > 0)])) < 2]
        notes = [
            Message(
                f"{name!r:.200} is taken as a method, as it has several sizes: {arg(called.argument, name)} makes it "
                f"the {called.said}"
            )
            for name in maybe
            if name not in found
        ]
    by_task: dict[str, str] = {}
    named = given if isinstance(given, str) else None
    for name in sorted(found, key=lambda k: k != named):
        for task in dict.fromkeys(rows.tasks[rows.methods == name].tolist()):
            if task in by_task and named is None:
                raise InputError(
                    f"Two methods could be the {called.said} of {brief(task)}: {list_names([by_task[task], name])}. "
                    f"Choose with {arg(called.argument, by_task[task])}."
                )
            by_task.setdefault(task, name)
    return by_task, notes
