"""Rows of a table that are the same run twice, or runs of different settings under one learner's name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError, arg, brief, list_names
from curvewise.reading.roles import (
    FOLD,
    HIGHER_IS_BETTER,
    LOWER_IS_BETTER,
    SCORES,
    SEED,
    SETTINGS,
    ColumnMap,
    ask,
    normal,
    synonyms,
    tells_runs,
)
from curvewise.types.measurements import Measurements

# What is set before a run and makes it one of another training, unless the learner's name says it.
_SETTINGS = SETTINGS | synonyms("""
    epoch epochs step steps iteration iterations iter iters update updates checkpoint ckpt round temperature noise eps
    epsilon dataset task""")
# Words of columns that hold what came of a run, or where it was made.
_OUTCOMES = (
    LOWER_IS_BETTER
    | HIGHER_IS_BETTER
    | SCORES
    | synonyms("""
    time wall seconds sec secs minutes hours day duration runtime date timestamp start end created updated memory vram
    ram power energy flops gflops correct wrong std sd var variance stderr precision recall ece best converged stopped
    comment comments note notes reason message host hostname machine node nodes gpu device worker user path file url
    commit version status state id uid""")
)
_CROSSED = 0.8
"""Values of a setting fill at least this share of a full design: some runs may have failed."""
_COARSE = 1000
"""Errors on so few test examples, or to so few digits, may be the same in all runs of a size."""
_BLOCK = 6
"""So many rows in a row, of different values to many digits, are not repeated by chance."""


def join_measurements(
    parts: Mapping[str, Measurements], names: Mapping[str, str] | None = None, columns: ColumnMap | None = None
) -> Measurements:
    """Put the measurements of several files together.

    Parameters
    ----------
    parts : dict of str to Measurements
        By file, in one unit.
    names : dict of str to str, optional
        Keep learners of different files separate, named by these; by default a learner in several files is pooled.
    columns : dict, optional
        As of :func:`load_measurements`.
    """
    every = list(parts.values())
    # Percentages beside fractions would be fitted as one curve.
    if len({p.unit for p in every}) > 1:
        raise InputError(f"The files are in different units: read them with the same {arg('unit')}.")
    learners = [p.learner.tolist() for p in every]
    for i, head in enumerate((names or {}).values()):
        alone = len(every[i].learners) == 1
        learners[i] = [head if alone else f"{head} / {name}" for name in learners[i]]

    def column(name: str, filling: Any) -> Any:
        """Join a column that some files have; the rows of the others get the filling."""
        found = [p.labels.get(name) if name == "status" else getattr(p, name) for p in every]
        filled = [np.full(len(p), filling) if v is None else v for p, v in zip(every, found, strict=True)]
        return None if all(v is None for v in found) else np.concatenate(filled)

    # Labels that only some files have cannot tell all rows apart.
    shared = [k for k in every[0].labels if all(k in p.labels for p in every)]
    labels = {k: np.concatenate([p.labels[k] for p in every]) for k in shared}
    # But runs of a store that failed must stay known as failed beside a table, whose rows are all finished.
    status = column("status", "done")
    found = Measurements(
        learner=np.array([name for one in learners for name in one], dtype=np.str_),
        n=np.concatenate([p.n for p in every]),
        error=np.concatenate([p.error for p in every]),
        unit=every[0].unit,
        runs=column("runs", 1.0),
        variance=column("variance", np.nan),
        labels=labels if status is None else {**labels, "status": status},
        notes=(f"{len(every)} files", *dict.fromkeys(note for p in every for note in p.notes)),
    )
    check_repeats(found, " and ".join(parts), range(1, len(found) + 1), columns)
    return found


def check_repeats(
    found: Measurements,
    source: str,
    rows: Sequence[int] | NDArray[Any],
    columns: ColumnMap | None = None,
    learner_columns: Sequence[str] = (),
    apart: Sequence[str] = (),
) -> list[str]:
    """Refuse rows of one run, and rows of one learner and size that differ in a setting.

    A column is a setting if its name says so, or if its values are crossed with learners and sizes: the same few recur
    at every size. Whole numbers from 0 or 1 on, each once at every size, number the runs. Other columns that vary hold
    results of the runs, or names.

    Parameters
    ----------
    found : Measurements
        As read, with all further columns in ``labels``.
    source : str
        Its name in messages.
    rows : sequence of int
        The number of each row in the source.
    columns : dict, optional
        The user's roles: ``{"seed": None}`` says that a column of seeds does not tell runs apart or, where there is
        none, that rows are runs even if they are alike.
    learner_columns : sequence of str
        Columns that name the learner.
    apart : sequence of str
        Further columns that do not tell runs apart.

    Returns
    -------
    list of str
        Notes on settings that differ between runs with seeds or folds, and on columns that were not taken for settings
        where there are none.
    """
    left_out = [role for role in ("fold", "seed") if (columns or {}).get(role, role) is None]
    known = {"fold": FOLD, "seed": SEED}
    apart = [*(k for k in found.labels for role in left_out if normal(k) in known[role]), *apart]
    alike = "seed" in left_out and not apart
    labels = {k: v for k, v in found.labels.items() if k not in (*apart, *learner_columns)}
    chance = [k for k in labels if tells_runs(k)]
    # Numbers of which no two rows share one, such as those of a tracker, tell nothing; seeds tell that no run is twice.
    ids = [k for k in chance if len(set(labels[k][~no_label(labels[k])].tolist())) < len(found)]
    seeded = any(normal(k) in SEED for k in chance if k not in ids)
    cells = list(zip(found.learner.tolist(), found.n.tolist(), strict=True))
    read = _RowsRead(cells, labels, source, rows, learner_columns)
    unnamed = np.logical_and.reduce([no_label(labels[k]) for k in ids] or [np.ones(len(found), dtype=np.bool_)])
    if ids and not seeded:
        read.check_ids(ids)
    if unnamed.any() and not seeded and not alike:
        # Rows that do not say which run they are.
        kept = {k: v[unnamed] for k, v in labels.items() if k not in ids}
        _check_copies(found.select(unnamed), kept, source, can_say=not apart)
    differ = [k for k in labels if k not in chance and read.first_pair(k)]
    numbering = [k for k in differ if read.numbers_runs(k)]
    varying = [k for k in differ if k not in numbering and read.is_setting(k)]
    if ids:
        numeric = [k for k in varying if labels[k].dtype.kind != "U"]
        way = ask("learner", [*learner_columns, *numeric])
        note = f"runs of one learner and size differ in {list_names(numeric)}: to tell curves apart by it pass {way}"
        return [note] if numeric else []
    if varying:
        raise read.differ_in(varying)
    notes = [f"{list_names(numbering)} taken as run numbers"] if numbering else []
    if others := [k for k in differ if k not in numbering]:
        notes.append(f"runs of one learner and size differ in {list_names(others)}: not settings")
    return notes


@dataclass(frozen=True, eq=False)
class _RowsRead:
    """The learner and size of each row, its labels by column, and its number in the source."""

    cells: Sequence[tuple[str, float]]
    labels: Mapping[str, NDArray[Any]]
    source: str
    rows: Sequence[int] | NDArray[Any]
    learner_columns: Sequence[str]

    def check_ids(self, ids: Sequence[str]) -> None:
        """Refuse two rows of one learner, size, fold and seed: they are one run."""
        seen: dict[tuple[Any, ...], int] = {}
        columns = [self.labels[k].tolist() for k in ids]
        for row, (cell, *values) in enumerate(zip(self.cells, *columns, strict=True)):
            if all(map(_is_blank, values)):
                continue  # this row does not say which run it is
            first = seen.setdefault((cell, *values), row)
            if first == row:
                continue
            none = (ids[0], None) if ids[0] in ("fold", "seed") else ("ignore", ids[0])
            which = ", ".join(f"{k} {brief(v)}" for k, v in zip(ids, values, strict=True))
            differ = [k for k in self.labels if k not in ids and self.are_apart(k, first, row)]
            # A column of a setting tells more than what came of the run.
            differ.sort(key=lambda k: not self.is_setting(k))
            way = f"they differ in {list_names(differ, 5)}: {self.ways(differ[0], row)}" if differ else ""
            raise InputError(
                f"Rows {self.rows[first]} and {self.rows[row]} of {self.source} are the same run (learner "
                f"{brief(cell[0])}, n {cell[1]:g}, {which}); {way or 'remove one of them'}. If {brief(ids[0])} does "
                f"not tell runs apart, pass {ask(*none)}."
            )

    def differ_in(self, names: Sequence[str]) -> InputError:
        """Make the error for rows of one learner and size that differ in settings."""
        pair = self.first_pair(names[0])
        assert pair is not None
        (learner, n), also = self.cells[pair[0]], f" (and in {list_names(names[1:], 5)})" if len(names) > 1 else ""
        return InputError(
            f"Rows {self.rows[pair[0]]} and {self.rows[pair[1]]} of {self.source} are of one learner and size "
            f"({brief(learner)}, n {n:g}) and differ in {brief(names[0])}{also}: {self.ways(names[0], pair[1])}, pass "
            f"{ask('seed', names[0])} if it numbers runs, or pass {ask('ignore', names[0])} if that does not matter."
        )

    def ways(self, name: str, row: int) -> str:
        """Say how to choose rows by a column, or to tell curves apart by it."""
        value = self.labels[name].tolist()[row]
        joined = ask("learner", [*self.learner_columns, name])
        return f"choose with {arg('where', {name: value})}, or tell curves apart with {joined}"

    def are_apart(self, name: str, one: int, other: int) -> bool:
        """Return whether two rows differ in a column; NaN equals NaN."""
        a, b = self.labels[name][one], self.labels[name][other]
        return bool(a != b) and not (a != a and b != b)

    def first_pair(self, name: str) -> tuple[int, int] | None:
        """Find two rows of one learner and size that differ in a column."""
        first: dict[tuple[str, float], int] = {}
        pairs = ((first.setdefault(cell, row), row) for row, cell in enumerate(self.cells))
        return next((pair for pair in pairs if self.are_apart(name, *pair)), None)

    def is_setting(self, name: str) -> bool:
        """Return whether a column says how a run was made, by its name or by the values in each cell."""
        plain, values = normal(name), self.labels[name]
        if values.dtype.kind == "U" and len(set(values.tolist())) == len(values) > 2:
            return False  # paths and ids
        if plain in _SETTINGS:
            return True
        if plain in ("metric", "split") or set(plain.split("_")) & _OUTCOMES:
            return False
        return self.is_crossed(name)

    def numbers_runs(self, name: str) -> bool:
        """Return whether a column holds 0, 1, 2, … or 1, 2, 3, …, each once at a size of a learner.

        Two values are no such numbers: 0 and 1 may say without and with.
        """
        values = self.labels[name]
        if values.dtype.kind not in "iuf" or normal(name) in _SETTINGS:
            return False
        kinds = sorted(set(values.tolist()))
        if len(kinds) < 3 or kinds[0] not in (0, 1):
            return False
        if kinds != list(range(int(kinds[0]), int(kinds[0]) + len(kinds))):
            return False
        return all(max(count.values()) == 1 for count in self.counts(name).values()) and self.is_crossed(name)

    def is_crossed(self, name: str) -> bool:
        """Return whether the same few values, each as often, recur at the sizes of each learner."""
        counts = {
            # Several values that are there equally often count once each: two folds of a setting are no other design.
            cell: Counter(list(count)) if len(count) > 1 and len(set(count.values())) == 1 else count
            for cell, count in self.counts(name).items()
        }
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

    def counts(self, name: str) -> dict[tuple[str, float], Counter[Any]]:
        """Count each value by learner and size."""
        counts: dict[tuple[str, float], Counter[Any]] = {}
        for cell, value in zip(self.cells, self.labels[name].tolist(), strict=True):
            counts.setdefault(cell, Counter())[value if value == value else None] += 1  # NaN is one
        return counts


def no_label(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return where a column of labels is empty or NaN."""
    return np.array([_is_blank(value) for value in values.tolist()], dtype=np.bool_)


def _is_blank(value: Any) -> bool:
    return value in ("", None) or value != value


def _check_copies(found: Measurements, labels: Mapping[str, NDArray[Any]], source: str, can_say: bool) -> None:
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
    say = f", or pass {ask('seed', None)}," if can_say else ""
    remedy = f"Remove the copies, or add a column seed or fold that tells runs apart{say} if these are different runs."
    for learner, counts in by_learner.items():
        # A file that was appended to itself has every row an equal number of times.
        times = int(np.gcd.reduce(list(counts.values())))
        sizes, errors = {key[1] for key in counts}, {key[2] for key in counts}
        if times == 1 or len(sizes) < 3 or len(errors) < 3:
            continue
        # Coarse errors are all counts of one small test set, or rounded to a few digits.
        parts = np.arange(1, _COARSE + 1)[:, None]
        examples = np.array(sorted(errors)) * parts
        coarse = bool((abs(examples - np.rint(examples)) < 1e-9 * parts).all(axis=1).any())
        if len(counts) > len(sizes) or not coarse:
            raise InputError(
                f"Every row of {brief(learner)} in {source} is there {times} times, with the same values. {remedy}"
            )
    # Four digits recur by chance on test sets of a few thousand examples, five or more hardly.
    fine = [len(f"{abs(key[2]):.15g}".rstrip("0").replace(".", "").lstrip("0")) > 4 for key in keys]
    seen: dict[tuple[Any, ...], int] = {}
    for start in range(len(keys) - _BLOCK + 1):
        block = tuple(keys[start : start + _BLOCK])
        if not all(fine[start : start + _BLOCK]) or len({key[2] for key in block}) < _BLOCK:
            continue
        first = seen.setdefault(block, start)
        if start - first >= _BLOCK:
            raise InputError(
                f"{_BLOCK} rows of {source}, from row {first + 1} on, are there again from row {start + 1} on, with "
                f"the same values to all digits. {remedy}"
            )
