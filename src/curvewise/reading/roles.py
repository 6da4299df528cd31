"""Which column plays which role: a dictionary of names, and the user's word over it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from curvewise.errors import InputError
from curvewise.reading.table import Column, Table, is_missing, names_in, texts
from curvewise.text import brief, list_names, suggest
from curvewise.types.coercion import same_names
from curvewise.types.units import Unit

ColumnMap: TypeAlias = Mapping[str, str | Sequence[str] | None]
Roles: TypeAlias = dict[str, tuple[str, ...]]


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Names are compared in lower case with every run of other characters than letters and digits
# read as one underscore: "Seen Examples" is seen_examples.
SYNONYMS: dict[str, frozenset[str]] = {
    "n": _names("""
        n size sizes n_train ntrain num_train train_n train_size size_train trainsize n_samples
        num_samples samples sample_size n_train_samples num_train_samples num_training_samples
        n_training_samples train_samples training_samples training_size training_set_size
        train_set_size dataset_size data_size n_examples num_examples examples seen_examples
        n_train_examples num_train_examples train_examples training_examples anchor"""),
    "learner": _names("""
        learner model method estimator algorithm name classifier learner_name model_name
        method_name estimator_name algorithm_name"""),
    "fold": _names("fold cv_fold fold_id"),
    "seed": _names("seed random_seed rng_seed random_state"),
    "split": _names("split subset partition"),
    "metric": _names("metric measure metric_name"),
    "runs": _names("runs n_runs num_runs n_rep n_reps num_reps reps replicates n_replicates count"),
}
# A value, a variance and a standard deviation are known by their words instead: one of these,
# and beside it nothing but words that say where or how it was measured.
LOWER_IS_BETTER = _names("error errors err errs loss losses risk nll")
HIGHER_IS_BETTER = _names("accuracy accuracies acc accs f1 auc auroc")
SCORES = _names("score scores")
_UNSPOKEN = _names("value values mean avg average")
_VALUE = LOWER_IS_BETTER | HIGHER_IS_BETTER | SCORES | _UNSPOKEN
_BESIDE = _names("test val valid validation eval train training rate mean avg average")
_PERCENT = _names("percent percents percentage percentages pct")
_SPREAD = {"variance": _names("var variance"), "std": _names("std sd stdev")}
_STANDARD_ERROR = _names("std_err std_error stderr test_std_err test_std_error")
_TOP_K = re.compile(r"top_?[0-9]+")
_RUN_NAME = re.compile(r"(run|seed|fold|rep|replicate|repeat|repetition|trial)_?[0-9]+")

# What trackers of runs call the column that says how a run ended, and what they say in it.
_STATUS = _names("status state run_status run_state trial_state")
FINISHED = _names("finished complete completed done success succeeded")
UNFINISHED = _names("""
    failed fail failure error crashed killed aborted cancelled canceled stopped interrupted pruned
    preempted preempting running scheduled waiting pending queued missing outdated damaged""")

ROLES = (*SYNONYMS, "value", *_SPREAD, "status", "ignore")
_SEVERAL = ("learner", "value", "ignore")  # roles that more than one column may have


def assign_roles(table: Table, columns: ColumnMap | None, wide: str | None) -> Roles:
    """Find columns by role: those the user named, then those the dictionary knows.

    A role that nobody plays is an empty tuple. In the wide form values are not looked for.
    """
    roles = {role: _named(table, role, names) for role, names in (columns or {}).items()}
    _check_once(roles)
    taken = {name for names in roles.values() for name in names}
    if "status" not in roles:
        others = {k: cells for k, cells in table.columns.items() if k not in taken}
        roles["status"] = _only(table, "status", [k for k, cells in others.items() if is_status(k, cells)])
    for role in ROLES:
        if role not in roles:
            free = () if role == "value" and wide else table.columns
            found = [name for name in free if name not in taken and plays(name, role)]
            roles[role] = _only(table, role, found)
    if roles["variance"] and roles["std"]:
        raise InputError(
            f"{table.source} has a variance ({list_names(roles['variance'])}) and a standard "
            f"deviation ({list_names(roles['std'])}). Leave one out: columns={{'std': None}}."
        )
    return roles


def plays(name: str, role: str) -> bool:
    """Whether the dictionary knows a column by this name in this role.

    >>> plays("Seen Examples", "n"), plays("err_valid_mean", "value"), plays("Task", "learner")
    (True, True, False)
    """
    if role in SYNONYMS:
        return normal(name) in SYNONYMS[role]
    if role == "ignore":
        return False
    words = words_of(name)
    if role == "value":
        return bool(words & _VALUE) and words <= _VALUE | _BESIDE
    if normal(name) in _STANDARD_ERROR:  # of the mean, or the deviation of the error? not ours
        return False
    return bool(words & _SPREAD[role]) and words <= _SPREAD[role] | _VALUE | _BESIDE


def direction(name: str) -> bool | None:
    """Whether higher is better, by the name; None if it does not say.

    >>> direction("val_acc"), direction("error rate"), direction("value")
    (True, False, None)
    """
    words = words_of(name)
    if "neg" in words or "negative" in words:
        return None
    up, down = words & (HIGHER_IS_BETTER | SCORES), words & LOWER_IS_BETTER
    return None if bool(up) == bool(down) else bool(up)


def is_score(name: str) -> bool:
    """Whether the name says no more than "score", which can be meant either way."""
    words = words_of(name)
    return bool(words & SCORES) and not words & HIGHER_IS_BETTER


def status_word(cell: Any) -> str:
    """How a run ended, in one lower-case word; empty if the cell says nothing.

    >>> status_word("FINISHED"), status_word("TrialState.PRUNED"), status_word(None)
    ('finished', 'pruned', '')
    """
    if is_missing(cell):
        return ""
    return str(cell).strip().rpartition(".")[2].lower()


def is_status(name: str, cells: Column) -> bool:
    """Whether a column is called a status and holds nothing else; a state may be Ohio.

    >>> is_status("State", ["finished", "crashed"]), is_status("State", ["Ohio", "Utah"])
    (True, False)
    """
    if normal(name) not in _STATUS:
        return False
    words = set(map(status_word, cells)) - {""}
    return bool(words) and words <= FINISHED | UNFINISHED


def is_run_name(name: str) -> bool:
    """Whether a column is called like one of several runs: ``run_3``, ``seed0``."""
    return _RUN_NAME.fullmatch(normal(name)) is not None


def normal(name: str) -> str:
    """Write a name in lower case with underscores.

    >>> normal(" Seen Examples "), normal("train-size")
    ('seen_examples', 'train_size')
    """
    return re.sub(r"[\W_]+", "_", name.strip().lower()).strip("_")


def bare(name: str) -> str:
    """Write a name as :func:`normal` does, without words for percent.

    >>> bare("Test Acc [%]"), bare("gap_pct"), bare("Error rate in %")
    ('test_acc', 'gap', 'error_rate')
    """
    unit = _PERCENT | {"in"} if says_percent(name) else _PERCENT
    return "_".join(word for word in normal(name).split("_") if word not in unit)


def says_percent(name: str) -> bool:
    """Whether a name says that values are percentages.

    >>> says_percent("error (%)"), says_percent("acc_pct"), says_percent("error")
    (True, True, False)
    """
    return "%" in name or bool(_PERCENT & set(normal(name).split("_")))


def words_of(name: str) -> frozenset[str]:
    """The words of a name, without those for percent and ``top_5``."""
    return frozenset(_TOP_K.sub("", bare(name)).split("_")) - {""}


def check_column(table: Table, role: str, name: str | None) -> None:
    """Raise unless a named column is there."""
    if name is not None and name not in table.columns:
        raise InputError(
            f"{role} names {brief(name)}: {table.source} has no such column."
            f"{suggest(name, table.columns)} It has {list_names(table.columns)}."
        )


def some_rows(table: Table, where: Mapping[str, Any]) -> tuple[Table, list[str]]:
    """The rows that have these values, or one of a list of them, and what to say of it."""
    keep = np.ones(len(table), dtype=np.bool_)
    for name, wanted in where.items():
        check_column(table, "where", name)
        several = wanted if isinstance(wanted, list | tuple | set) else [wanted]
        words = names_in(table, name)
        asked = same_names(texts(list(several)), "where")
        if absent := [value for value in asked if value not in set(words)]:
            raise InputError(
                f"where={{{name!r:.200}: {absent[0]!r:.200}}} is in no row of {table.source}: it "
                f"has {list_names(dict.fromkeys(words))}."
            )
        keep &= np.isin(words, asked)
    if not keep.any():
        raise InputError(f"where={dict(where)!r:.200}: no row of {table.source} has all of it.")
    note = f"{int(keep.sum())} of {len(table)} rows, where {dict(where)!r:.200}"
    return (table, []) if keep.all() else (table.take(np.flatnonzero(keep)), [note])


def _named(table: Table, role: str, names: str | Sequence[str] | None) -> tuple[str, ...]:
    if role not in ROLES:
        raise InputError(
            f"columns has the key {brief(role)}, which is no role.{suggest(role, ROLES)} Roles are {', '.join(ROLES)}."
        )
    if names is None:
        return ()
    chosen = (names,) if isinstance(names, str) else tuple(names)
    for name in chosen:
        if name not in table.columns:
            raise InputError(
                f"columns={{{role!r}: {brief(name)}}}: {table.source} has no such column."
                f"{suggest(name, table.columns)} It has {list_names(table.columns)}."
            )
    if len(chosen) != 1 and (role not in _SEVERAL or not chosen):
        raise InputError(f"columns[{role!r}] must name one column, not {brief(list(chosen))}.")
    return chosen


def _check_once(roles: Roles) -> None:
    seen: dict[str, str] = {}
    for role, names in roles.items():
        for name in names:
            if name in seen:
                raise InputError(
                    f"columns gives {brief(name)} two roles, {seen[name]!r} and {role!r}: a column can play one."
                )
            seen[name] = role


def _only(table: Table, role: str, found: Sequence[str]) -> tuple[str, ...]:
    if len(found) < 2:
        return tuple(found)
    ways = [f"columns={{{role!r}: {brief(found[0])}}}"]
    if role == "learner":
        ways.append(f"columns={{{role!r}: [{list_names(found)}]}} to join them")
    if role == "value":
        ways.append("wide='runs' or wide='learners' if each is a measurement of its own")
    elif role != "n":
        ways.append(f"columns={{{role!r}: None}} to take none")
    raise InputError(
        f"{len(found)} columns of {table.source} could be the {role}: {list_names(found)}. Choose "
        f"with {'; or '.join(ways)}."
    )


# Error or accuracy, fraction or percent: what the names say, held against what the user says.


def decide_unit(unit: str | None, higher_is_better: bool | None, columns: Sequence[str], metric: str | None) -> Unit:
    """Make the unit; what the arguments do not say, the names do.

    Parameters
    ----------
    unit, higher_is_better
        As the user gave them.
    columns : sequence of str
        Names of the value columns; empty where names are learners or sizes.
    metric : str, optional
        The one value in the column of metrics.
    """
    if higher_is_better not in (None, True, False):
        raise InputError(f"higher_is_better={higher_is_better!r} must be True, False or None.")
    names = [*columns, metric] if metric else list(columns)
    said = {direction(name) for name in names} - {None}
    if higher_is_better is None and len(said) > 1:
        raise InputError(
            f"The names {list_names(names)} disagree on whether higher is better: pass "
            "higher_is_better=True or higher_is_better=False."
        )
    unit = named_unit(unit, names)
    if higher_is_better is None and unit != "loss":
        return Unit(unit, True in said)
    chosen = Unit(unit, bool(higher_is_better))
    against = [k for k in names if _contradicts(k, chosen.higher_is_better)]
    if against:
        raise InputError(_contradiction(against[0], chosen, higher_is_better))
    return chosen


def named_unit(unit: str | None, names: Sequence[str]) -> str:
    """The unit as given; else percent if a name says so, and fractions if none does.

    >>> named_unit(None, ["error (%)"]), named_unit(None, ["error"]), named_unit("loss", ["x %"])
    ('percent', 'fraction', 'loss')
    """
    percent = [name for name in names if says_percent(name)]
    if unit == "fraction" and percent:
        raise InputError(
            f"unit='fraction' contradicts the name {list_names(percent[:1])}, which says percent: pass "
            "unit='percent', or give the column its right name."
        )
    return unit or ("percent" if percent else "fraction")


def ask_percent(unit: str | None, names: Sequence[str], what: str, source: str) -> None:
    """Raise where columns are called by learners or the like and one of them has a % in it."""
    found = [name for name in names if says_percent(name)]
    if unit is None and found:
        raise InputError(
            f"The columns of {source} are {what}, and {list_names(found[:3])} may say that values are "
            "percentages: pass unit='percent', or unit='fraction' if they are not."
        )


def unit_note(unit: Unit, columns: Sequence[str]) -> str:
    """How values were read, in a few words."""
    if unit.higher_is_better and not unit.bounded:
        return "a score, higher is better"
    if unit.higher_is_better:
        what = columns[0] if len(columns) == 1 else "value"
        return f"higher is better, turned into error = {unit.top:g} − {_plain(what)}"
    if unit.name == "loss":
        return "a loss, lower is better"
    loss = any("loss" in name.lower() for name in columns)
    unbounded = "; for an unbounded loss pass unit='loss'" if loss else ""
    return f"an error from 0 to {unit.top:g}{unbounded}"


def _contradicts(name: str, higher_is_better: bool) -> bool:
    hint = direction(name)
    return hint is not None and hint != higher_is_better and not is_score(name)


def _contradiction(name: str, unit: Unit, higher_is_better: bool | None) -> str:
    setting = "unit='loss'" if higher_is_better is None else f"higher_is_better={higher_is_better}"
    better = "lower" if unit.higher_is_better else "higher"
    return (
        f"{setting} contradicts the name {list_names([name])}, for which {better} is better. Leave "
        "the setting out, or give the column its right name."
    )


def _plain(name: str) -> str:
    """Write a name inside a formula: as it is if it is a word, else in quotes."""
    return name if name.isidentifier() else brief(name)
