"""Which columns of a table of models are hyperparameters, measures, gaps and accuracies."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from curvewise.errors import InputError
from curvewise.reading.roles import bare, is_status, normal
from curvewise.reading.table import Column, Table, is_measured, is_missing, texts
from curvewise.text import brief, list_names, suggest


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


ROLES = {
    "model": _names("model name model_name model_id id run run_id run_name network"),
    "task": _names("task task_name"),
    "gap": _names("gap generalization_gap generalisation_gap gen_gap"),
    "train_accuracy": _names("""
        train_accuracy train_acc training_accuracy training_acc accuracy_train acc_train"""),
    "test_accuracy": _names("""
        test_accuracy test_acc accuracy_test acc_test val_accuracy val_acc accuracy acc"""),
    "train_error": _names("train_error train_err training_error error_train"),
    "test_error": _names("test_error test_err error_test val_error error err"),
}
_NEITHER = _names("seed fold seconds time date epoch epochs index learner n")
_SETTING = re.compile(r"(hp|hparam|hparams|hyperparameter|hyperparameters|param|params)[._:/]+.+")
_MEASURE = re.compile(r"(measure|measures|prediction|predictions)[._:/]+.+")
USUAL_SETTINGS = _names("""
    depth width layers num_layers n_layers blocks num_blocks filters channels units hidden
    batch batch_size rate lr learning_rate weight_decay wd decay momentum dropout optimiser
    optimizer batch_norm batchnorm bn norm_layer augmentation augment activation kernel_size
    architecture schedule label_smoothing share augmented""")


@dataclass(frozen=True)
class CorpusRoles:
    """Columns by role; None or empty where nobody plays it."""

    one: dict[str, str | None]
    hyperparameters: tuple[str, ...]
    measures: tuple[str, ...]
    left_out: tuple[str, ...]
    guessed: bool


def corpus_roles(
    table: Table,
    told: dict[str, str | None],
    hyperparameters: Sequence[str] | None,
    measures: Sequence[str] | None,
    oriented: Collection[str] = (),
) -> CorpusRoles:
    """Give each column a role: the user's word, then names, then what the cells look like.

    A column that has an orientation is a measure.
    """
    lists = {"hyperparameters": hyperparameters, "measures": measures}
    for role, names in (*((k, [v]) for k, v in told.items() if v), *lists.items()):
        _check(table, role, names)
    taken = {*(hyperparameters or ()), *(measures or ()), *(v for v in told.values() if v)}
    sure = {k for k in oriented if k in table.columns} - taken
    one = dict(told)
    for role, synonyms in ROLES.items():
        if one.get(role) is None:
            free = [k for k in table.columns if k not in taken | sure and bare(k) in synonyms]
            one[role] = _first(table, role, free)
            taken |= set(free[:1])
    rest = [k for k in table.columns if k not in taken]
    known = {k: "measure" if k in sure else _kind(k, table.columns[k]) for k in rest}
    settings = tuple(hyperparameters or [k for k in rest if known[k] == "hyperparameter"])
    scores = tuple(measures or [k for k in rest if known[k] == "measure"])
    if hyperparameters is not None and measures is None:
        scores = tuple(k for k in rest if known[k] != "neither" and is_measured(table.columns[k]))
    unclear = [k for k in rest if known[k] == "unclear" and k not in (*settings, *scores)]
    if unclear and hyperparameters is None and measures is None:
        raise InputError(
            f"{list_names(unclear)} in {table.source} could be hyperparameters or measures: say with "
            "hyperparameters=[…] or measures=[…]."
        )
    left = tuple(k for k in rest if k not in (*settings, *scores))
    return CorpusRoles(one, settings, scores, left, hyperparameters is None or measures is None)


def _check(table: Table, role: str, names: Sequence[str | None] | None) -> None:
    if isinstance(names, str):
        raise InputError(f"{role}={names!r} is one text: give a list of columns.")
    for name in names or ():
        if name not in table.columns:
            raise InputError(
                f"{role} names {brief(name)}: {table.source} has no such column."
                f"{suggest(name, table.columns)} It has {list_names(table.columns)}."
            )


def _first(table: Table, role: str, found: list[str]) -> str | None:
    if len(found) > 1 and role not in ("model", "test_accuracy", "test_error"):
        raise InputError(
            f"{len(found)} columns of {table.source} could be the {role}: {list_names(found)}. Say "
            f"which with {role}=…, or rename one."
        )
    return found[0] if found else None


def _kind(name: str, cells: Column) -> str:
    """What a column is: by its name, or by how many different values it has."""
    rules: list[tuple[str, Callable[[], bool]]] = [
        ("hyperparameter", lambda: bool(_SETTING.fullmatch(name.strip().lower()))),
        ("measure", lambda: bool(_MEASURE.fullmatch(name.strip().lower()))),
        ("neither", lambda: normal(name) in _NEITHER or is_status(name, cells)),
        ("neither", lambda: any(bare(name) in names for names in ROLES.values())),
        ("neither", lambda: all(map(is_missing, cells))),
        ("hyperparameter", lambda: normal(name) in USUAL_SETTINGS),
        ("hyperparameter", lambda: not is_measured(cells) and _repeats(cells) >= 2),
        ("neither", lambda: not is_measured(cells)),
        ("hyperparameter", lambda: _repeats(cells) >= 4),
        ("measure", lambda: _repeats(cells) < 2),
    ]
    return next((kind for kind, holds in rules if holds()), "unclear")


def _repeats(cells: Column) -> float:
    """How often a value occurs on average."""
    return len(cells) / len(set(texts(cells)))
