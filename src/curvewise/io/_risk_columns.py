"""Which columns of a table of risks are tasks, methods, sizes, risks, seeds and folds."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from curvewise.errors import InputError
from curvewise.io._columns import (
    HIGHER_IS_BETTER,
    LOWER_IS_BETTER,
    SCORES,
    SYNONYMS,
    bare,
    check_column,
    direction,
    is_status,
    normal,
)
from curvewise.io._numbers import names_in, texts
from curvewise.io._table import Table, brief, listed

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
    "seed": (
        SYNONYMS["seed"],
        _names("run run_id replicate repeat repetition trial"),
        _names("init_seed"),
    ),
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
            raise InputError(
                f"{other}={name!r:.200} and {role}={name!r:.200} are one column: it can play one "
                "role."
            )


def _risk_tiers(names: Sequence[str]) -> list[list[str]]:
    """Columns called like risks: of the test set, of no set in particular, of a validation set.

    >>> _risk_tiers(["test_loss", "loss", "train_loss", "val_acc", "seconds"])
    [['test_loss'], ['loss'], ['val_acc'], []]
    """
    words = {name: frozenset(bare(name).split("_")) for name in names}
    risks = [
        k
        for k, w in words.items()
        if (w & _RISKS and w <= _RISKS | _BESIDE) or _UP_WHOLE.fullmatch(bare(k))
    ]
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
        every = [telling for tier in every if (telling := _telling(table, tier))] or [
            tier[:1] for tier in every
        ]
    found = every[0] if every else []
    if len(found) > 1:
        none = f", or {role}=False for none of them" if role not in NEEDED else ""
        raise InputError(
            f"{len(found)} columns of {table.source} could be the {role}: {listed(found)}. Choose "
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
                f"{listed(table.columns)}."
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
                f"{table.where(name)} has {len(there)} values: {listed(there)}. Choose one with "
                f"where={{{name!r:.200}: {brief(one)}}}."
            )
