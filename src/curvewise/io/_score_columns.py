"""Which columns of a table of checkpoints are names, tasks, accuracies, scores and costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from curvewise.errors import InputError
from curvewise.io._columns import bare, check_column, is_status, normal
from curvewise.io._numbers import is_measured, is_missing, texts
from curvewise.io._table import Table, brief, listed


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
    table: Table,
    told: dict[str, str | None],
    measures: Sequence[str] | None,
    used: Sequence[str],
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
            f"{len(found)} columns of {table.source} could be the {role}: {listed(found)}. Say "
            f"which with {role}=…"
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
    return f"{role}=COLUMN" + (f" (one of {listed(columns)})" if columns else "")


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
