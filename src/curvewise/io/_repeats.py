"""Rows that are the same run twice, or runs of different settings under one learner's name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError
from curvewise.io._columns import (
    HIGHER_IS_BETTER,
    LOWER_IS_BETTER,
    SCORES,
    SYNONYMS,
    ColumnMap,
    normal,
    plays,
)
from curvewise.io._corpus_columns import USUAL_SETTINGS
from curvewise.io._table import brief, listed
from curvewise.types import Measurements


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# What is set before a run and makes it one of another training, unless the learner's name says it.
_SETTINGS = USUAL_SETTINGS | _names("""
    epoch epochs step steps iteration iterations iter iters update updates checkpoint ckpt round
    temperature noise eps epsilon dataset task""")
# What tells runs of one training apart, as does any name that ends in _seed.
_CHANCE = (
    SYNONYMS["fold"]
    | SYNONYMS["seed"]
    | _names("""
    run run_id run_name run_index run_number trial trial_id repeat repetition rep replicate
    replication draw subset subset_id""")
)
# Words of columns that hold what came of a run, or where it was made.
_OUTCOMES = (
    LOWER_IS_BETTER
    | HIGHER_IS_BETTER
    | SCORES
    | _names("""
    time wall seconds sec secs minutes hours day duration runtime date timestamp start end created
    updated memory vram ram power energy flops gflops correct wrong std sd var variance stderr
    precision recall ece best converged stopped
    comment comments note notes reason message host hostname machine node nodes gpu device worker
    user path file url commit version status state id uid""")
)
_CROSSED = 0.8
"""Values of a setting fill at least this share of a full design: some runs may have failed."""
_COARSE = 1000
"""Errors on so few test examples, or to so few digits, may be the same in all runs of a size."""
_BLOCK = 6
"""So many rows in a row, of different values to many digits, are not repeated by chance."""


def not_told_apart(columns: ColumnMap | None, names: Sequence[str]) -> tuple[list[str], bool]:
    """The columns that the user says are no seeds or folds, and whether no row has a seed."""
    left_out = [role for role in ("fold", "seed") if (columns or {}).get(role, role) is None]
    apart = [name for name in names for role in left_out if plays(name, role)]
    return apart, "seed" in left_out and not apart


def check_repeats(
    found: Measurements,
    source: str,
    rows: Sequence[int] | NDArray[Any],
    learner_columns: Sequence[str] = (),
    apart: Sequence[str] = (),
    alike: bool = False,
) -> list[str]:
    """Refuse rows of one run, and rows of one learner and size that differ in a setting.

    A column is a setting if its name says so, or if its values are crossed with learners and
    sizes: the same few recur at every size. Whole numbers from 0 or 1 on, each once at every size,
    number the runs. What varies otherwise came of the runs, or names them.

    Parameters
    ----------
    found : Measurements
        As read, with all further columns in ``labels``.
    source : str
        What messages call it.
    rows : sequence of int
        The number of each row in the source.
    learner_columns : sequence of str
        Columns that name the learner.
    apart : sequence of str
        Columns of which the user said that they do not tell runs apart.
    alike : bool
        Whether the user said that rows are runs even if they are alike.

    Returns
    -------
    list of str
        What to say of settings that differ between runs which have seeds or folds, and of columns
        that were not taken for settings where there are none.
    """
    labels = {k: v for k, v in found.labels.items() if k not in (*apart, *learner_columns)}
    chance = [k for k in labels if tells_runs(k)]
    # Numbers of which no two rows share one, such as those of a tracker, tell nothing.
    ids = [k for k in chance if len(set(labels[k].tolist())) < len(found)]
    cells = list(zip(found.learner.tolist(), found.n.tolist(), strict=True))
    if ids:
        _check_ids(cells, labels, ids, source, rows, learner_columns)
    if not ids and not alike:
        _check_copies(found, labels, source, can_say=not apart)
    differ = [k for k in labels if k not in chance and _varies(cells, labels[k])]
    numbering = [k for k in differ if _numbers_runs(k, cells, labels[k])]
    varying = [k for k in differ if k not in numbering and _is_setting(k, cells, labels[k])]
    if not ids:
        if varying:
            raise _differ(cells, labels, varying, source, rows, learner_columns)
        return _unused_notes(numbering, [k for k in differ if k not in numbering])
    numeric = [k for k in varying if labels[k].dtype.kind != "U"]
    if not numeric:
        return []
    joined = [*(learner_columns or ()), *numeric]
    return [
        f"runs of one learner and size differ in {listed(numeric)}: to tell curves apart by it "
        f"pass columns={{'learner': [{listed(joined)}]}}"
    ]


def tells_runs(column: str) -> bool:
    """Whether a column is called as one that tells runs of one training apart."""
    return normal(column) in _CHANCE or normal(column).endswith("_seed")


def _unused_notes(numbering: Sequence[str], others: Sequence[str]) -> list[str]:
    notes = [f"{listed(numbering)} taken as run numbers"] if numbering else []
    if others:
        notes.append(f"runs of one learner and size differ in {listed(others)}: not settings")
    return notes


def _check_ids(
    cells: Sequence[tuple[str, float]],
    labels: Mapping[str, NDArray[Any]],
    ids: Sequence[str],
    source: str,
    rows: Sequence[int] | NDArray[Any],
    learner_columns: Sequence[str],
) -> None:
    """Two rows of one learner, size, fold and seed are one run."""
    seen: dict[tuple[Any, ...], int] = {}
    columns = [labels[k].tolist() for k in ids]
    for row, (cell, *values) in enumerate(zip(cells, *columns, strict=True)):
        if all(value in ("", None) or value != value for value in values):
            continue  # this row does not say which run it is
        first = seen.setdefault((cell, *values), row)
        if first == row:
            continue
        none = (ids[0], None) if ids[0] in ("fold", "seed") else ("ignore", ids[0])
        which = ", ".join(f"{k} {brief(v)}" for k, v in zip(ids, values, strict=True))
        differ = [k for k in labels if k not in ids and _apart(labels[k], first, row)]
        way = "remove one of them"
        if differ:
            # A column of a setting tells more than what came of the run.
            differ.sort(key=lambda k: not _is_setting(k, cells, labels[k]))
            way = f"they differ in {listed(differ, 5)}: " + _ways(labels, differ[0], row, ())
            way += _joined(learner_columns, differ[0])
        raise InputError(
            f"Rows {rows[first]} and {rows[row]} of {source} are the same run (learner "
            f"{brief(cell[0])}, n {cell[1]:g}, {which}); {way}. If {brief(ids[0])} does not tell "
            f"runs apart, pass columns={{{none[0]!r}: {none[1]!r:.200}}}."
        )


def _differ(
    cells: Sequence[tuple[str, float]],
    labels: Mapping[str, NDArray[Any]],
    varying: Sequence[str],
    source: str,
    rows: Sequence[int] | NDArray[Any],
    learner_columns: Sequence[str],
) -> InputError:
    name = varying[0]
    first: dict[tuple[str, float], int] = {}
    pair = next(
        (first[cell], row)
        for row, cell in enumerate(cells)
        if _apart(labels[name], first.setdefault(cell, row), row)
    )
    also = f" (and in {listed(varying[1:], 5)})" if len(varying) > 1 else ""
    return InputError(
        f"Rows {rows[pair[0]]} and {rows[pair[1]]} of {source} are of one learner and size "
        f"({brief(cells[pair[0]][0])}, n {cells[pair[0]][1]:g}) and differ in {brief(name)}{also}: "
        f"{_ways(labels, name, pair[1], ('seed',))}{_joined(learner_columns, name)}, or pass "
        f"columns={{'ignore': {name!r:.200}}} if that does not matter."
    )


def _ways(labels: Mapping[str, NDArray[Any]], name: str, row: int, roles: Sequence[str]) -> str:
    """How to choose rows by a column, or to say what it is."""
    value = labels[name][row].item() if hasattr(labels[name][row], "item") else labels[name][row]
    ways = [f"choose with where={{{name!r:.200}: {value!r:.200}}}"]
    ways += [f"pass columns={{{role!r}: {name!r:.200}}} if it numbers runs" for role in roles]
    return ", ".join(ways)


def _joined(learner_columns: Sequence[str], name: str) -> str:
    names = listed([*learner_columns, name])
    return f", or tell curves apart with columns={{'learner': [{names}]}}"


def _check_copies(
    found: Measurements, labels: Mapping[str, NDArray[Any]], source: str, can_say: bool
) -> None:
    """Refuse rows that were pasted again, where no column tells runs apart.

    Single rows may be alike by chance: errors are counts of a test set. All rows of a learner, or
    a block of rows with values to many digits, are not; only where each size has one error, which
    a small test set gave or few digits show, these are runs.
    """
    columns = [found.learner, found.n, found.error, *labels.values()]
    keys = list(zip(*(column.tolist() for column in columns), strict=True))
    by_learner: dict[str, Counter[tuple[Any, ...]]] = {}
    for key in keys:
        by_learner.setdefault(key[0], Counter())[key] += 1
    say = ", or pass columns={'seed': None}," if can_say else ""
    remedy = (
        f"Remove the copies, or add a column seed or fold that tells runs apart{say} if these are "
        "different runs."
    )
    for learner, counts in by_learner.items():
        times = int(np.gcd.reduce(list(counts.values())))
        sizes, errors = {key[1] for key in counts}, {key[2] for key in counts}
        if times == 1 or len(sizes) < 3 or len(errors) < 3:
            continue
        if len(counts) > len(sizes) or not _are_coarse(errors):
            raise InputError(
                f"Every row of {brief(learner)} in {source} is there {times} times, with the same "
                f"values. {remedy}"
            )
    fine = [len(f"{abs(key[2]):.15g}".rstrip("0").replace(".", "").lstrip("0")) > 4 for key in keys]
    seen: dict[tuple[Any, ...], int] = {}
    for start in range(len(keys) - _BLOCK + 1):
        block = tuple(keys[start : start + _BLOCK])
        if not all(fine[start : start + _BLOCK]) or len({key[2] for key in block}) < _BLOCK:
            continue
        first = seen.setdefault(block, start)
        if start - first >= _BLOCK:
            raise InputError(
                f"{_BLOCK} rows of {source}, from row {first + 1} on, are there again from row "
                f"{start + 1} on, with the same values to all digits. {remedy}"
            )


def _are_coarse(errors: set[float]) -> bool:
    """Whether all errors are counts of one small test set, or rounded to a few digits."""
    values, parts = np.array(sorted(errors)), np.arange(1, _COARSE + 1)[:, None]
    counts = values * parts
    return bool((abs(counts - np.rint(counts)) < 1e-9 * parts).all(axis=1).any())


def _is_setting(name: str, cells: Sequence[tuple[str, float]], values: NDArray[Any]) -> bool:
    """Whether a column says how a run was made, by its name or by the values in each cell."""
    plain = normal(name)
    if values.dtype.kind == "U" and len(set(values.tolist())) == len(values) > 2:
        return False  # paths and ids
    if plain in _SETTINGS:
        return True
    if plain in ("metric", "split") or set(plain.split("_")) & _OUTCOMES:
        return False
    return _is_crossed(cells, values)


def _is_crossed(cells: Sequence[tuple[str, float]], values: NDArray[Any]) -> bool:
    """Whether the same few values, each as often, recur at the sizes of each learner."""
    counts = {cell: _reduced(count) for cell, count in _counts(cells, values).items()}
    learners = Counter(learner for learner, _ in counts)
    several = any(count > 1 for count in learners.values())
    groups: dict[str, list[Counter[Any]]] = {}
    for (learner, _), count in counts.items():
        groups.setdefault(learner if several else "", []).append(count)
    rows = full = kinds = pairs = 0
    for group in groups.values():
        every: Counter[Any] = Counter()
        for count in group:
            every |= count  # of each value as many as in the cell with most of it
        if len(group) < 2 or len(every) < 2:
            continue
        if every not in group:
            return False
        rows += sum(count.total() for count in group)
        full += len(group) * every.total()
        kinds += sum(map(len, group))
        pairs += len(group) * len(every)
    return full > 0 and rows >= _CROSSED * full and kinds >= _CROSSED * pairs


def _reduced(count: Counter[Any]) -> Counter[Any]:
    """Several values that are there equally often, once each; any other count as it is."""
    return Counter(list(count)) if len(count) > 1 and len(set(count.values())) == 1 else count


def _numbers_runs(name: str, cells: Sequence[tuple[str, float]], values: NDArray[Any]) -> bool:
    """Whether a column holds 0, 1, 2, … or 1, 2, 3, …, each once at a size of a learner.

    Two values are no such numbers: 0 and 1 may say without and with.
    """
    if values.dtype.kind not in "iuf" or normal(name) in _SETTINGS:
        return False
    kinds = sorted(set(values.tolist()))
    if len(kinds) < 3 or kinds[0] not in (0, 1):
        return False
    if kinds != list(range(int(kinds[0]), int(kinds[0]) + len(kinds))):
        return False
    counts = _counts(cells, values).values()
    return all(max(count.values()) == 1 for count in counts) and _is_crossed(cells, values)


def _counts(
    cells: Sequence[tuple[str, float]], values: NDArray[Any]
) -> dict[tuple[str, float], Counter[Any]]:
    """How often each value is there, by learner and size."""
    counts: dict[tuple[str, float], Counter[Any]] = {}
    for cell, value in zip(cells, values.tolist(), strict=True):
        counts.setdefault(cell, Counter())[value if value == value else None] += 1  # NaN is one
    return counts


def _varies(cells: Sequence[tuple[str, float]], values: NDArray[Any]) -> bool:
    first: dict[tuple[str, float], int] = {}
    return any(_apart(values, first.setdefault(cell, row), row) for row, cell in enumerate(cells))


def _apart(values: NDArray[Any], one: int, other: int) -> bool:
    a, b = values[one], values[other]
    return bool(a != b) and not (a != a and b != b)
