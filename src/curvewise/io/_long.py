"""Long tables into predictions: one row for each run and example."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError
from curvewise.io._found import Found
from curvewise.io._numbers import first_row, names_in, numbers, texts
from curvewise.io._parts import IF_WIDE, KIND_OF, PartMap, Parts, find_parts
from curvewise.io._table import Table, brief, listed, suggest, take_cells, unfold
from curvewise.io._vectors import compact, counts_up, flags, no_value
from curvewise.types.coercion import same_names


def read_long(
    table: Table,
    key: str | None = None,
    kind: str | None = None,
    columns: PartMap | None = None,
    learner: str | None = None,
) -> Found:
    """Arrange the rows of a long table as runs × examples, or × repeats."""
    names = list(table.columns)
    parts = find_parts(names, table.source, noun="column", key=key, kind=kind, columns=columns)
    for part in ("run", "example"):
        if part not in parts.others:
            raise InputError(
                f"No column of {table.source} is known as the {part}: it has "
                f"{listed(table.columns)}. Say which with columns={{{part!r}: …}}. {IF_WIDE}"
            )
    used = [parts.value, *parts.others.values()]
    table = unfold(table, used)
    cells = {name: compact(table.columns[name]) for name in used}
    if cells[run := parts.others["run"]].dtype.kind == "U":
        cells[run] = np.array(same_names(cells[run].tolist(), table.where(run)))
    table = replace(table, columns=cells)
    table = _without_empty(table, parts)
    table = keep_learner(table, parts.others.get("learner"), learner)
    _check_filled(table, parts)
    return _arranged(table, parts)


def _arranged(table: Table, parts: Parts) -> Found:
    runs, run = _coded(table, parts.others["run"])
    examples, example = _coded(table, parts.others["example"])
    ordered = _same_order(run, example)
    if counts_up(np.sort(examples)) and not counts_up(examples):
        order = np.argsort(examples)
        examples, example, ordered = examples[order], np.argsort(order)[example], True
    repeats, repeat = np.zeros(1), np.zeros(len(table), dtype=np.int64)
    if "repeat" in parts.others:
        repeats, repeat = _coded(table, parts.others["repeat"])
    names = {"run": runs, "example": examples, "repeat": repeats}
    place = _places(table, names, (run, example, repeat))
    values, labels = _values(table, parts)
    whole = np.empty(len(place), dtype=values.dtype)
    whole[place] = values
    several = len(repeats) > 1
    shape = (len(runs), len(examples), len(repeats)) if several else (len(runs), len(examples))
    groups = compact(table.columns[parts.others["group"]]) if "group" in parts.others else None
    return Found(
        whole.reshape(shape),
        table.source,
        parts.kind,
        axes=("runs", "examples", "repeats")[: len(shape)],
        labels=None if labels is None else _of_examples(table, "label", labels, example, examples),
        groups=None if groups is None else _of_examples(table, "group", groups, example, examples),
        run_ids=runs,
        example_ids=examples,
        predicted=parts.predicted,
        ordered=ordered,
        notes=(_taken(parts), *table.notes),
    )


def keep_learner(table: Table, name: str | None, learner: str | None) -> Table:
    """Keep the rows of one learner; where there are several the user must say which."""
    if name is None:
        if learner is not None:
            raise InputError(
                f"learner={brief(learner)}: {table.source} has no column of learners. Say which "
                f"with columns={{'learner': …}}; it has {listed(table.columns)}."
            )
        return table
    words = np.array(names_in(table, name), dtype=np.str_)
    there = list(dict.fromkeys(words.tolist()))
    if learner is None and len(there) > 1:
        raise InputError(
            f"{table.where(name)} names {len(there)} learners: {listed(there)}. Choose one with "
            f"learner={brief(there[0])}, or pass columns={{'learner': None}} if they are one."
        )
    chosen = there[0] if learner is None else str(learner)
    if chosen not in there:
        raise InputError(
            f"learner={brief(learner)} is not in {table.where(name)}.{suggest(chosen, there)} "
            f"There are {listed(there)}."
        )
    keep = words == chosen
    if keep.all():
        return table
    note = f"{int(keep.sum()):,} of {len(table):,} rows taken: learner is {brief(chosen)}"
    return replace(table.take(np.flatnonzero(keep)), notes=(*table.notes, note))


def drop_rows(table: Table, empty: NDArray[np.bool_], what: str) -> Table:
    """Leave rows out, and have it noted."""
    if not empty.any():
        return table
    if empty.all():
        raise InputError(f"All rows of {table.source} are {what}: there is nothing to read.")
    note = f"{int(empty.sum())} row(s) left out as {what} ({first_row(table.rows, empty)})"
    return replace(table.take(np.flatnonzero(~empty)), notes=(*table.notes, note))


def _without_empty(table: Table, parts: Parts) -> Table:
    names = [parts.value, parts.others["run"], parts.others["example"]]
    empty = np.logical_and.reduce([no_value(table.columns[name]) for name in names])
    return drop_rows(table, empty, "empty")


def _check_filled(table: Table, parts: Parts) -> None:
    said = {part: name for part, name in parts.others.items() if part != "learner"}
    for part, name in {**said, "value": parts.value}.items():
        bad = no_value(table.columns[name])
        if not bad.any():
            continue
        remedy = "Fill it in, or leave the row out on purpose."
        if part == "value":
            rows = np.flatnonzero(bad)
            of = dict.fromkeys(texts(take_cells(table.columns[parts.others["run"]], rows)))
            remedy = (
                f"It is in run(s) {listed(of, 5)}: one that diverged? Count it as wrong on every "
                "example, or leave the run out on purpose and say so."
            )
        raise InputError(
            f"{table.where(name)} is empty or NaN in {first_row(table.rows, bad)}. {remedy}"
        )


def _coded(table: Table, name: str) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Names in order of appearance, and for each row which it is."""
    found, first, codes = np.unique(
        compact(table.columns[name]), return_index=True, return_inverse=True
    )
    order = np.argsort(first)
    return found[order], np.argsort(order)[codes.ravel()].astype(np.int64)


def _same_order(run: NDArray[np.int64], example: NDArray[np.int64]) -> bool:
    """Whether all runs list the examples in one order."""
    rows = np.argsort(run, kind="stable")
    steps = np.diff(example[rows])
    return bool((steps[np.diff(run[rows]) == 0] >= 0).all())


def _places(
    table: Table, names: Mapping[str, NDArray[Any]], codes: tuple[NDArray[np.int64], ...]
) -> NDArray[np.int64]:
    """Where each row goes; each place must be taken once."""
    sizes = [len(there) for there in names.values()]
    if np.prod(sizes, dtype=float) > 2.0**62:
        raise InputError(
            f"{table.source} has {sizes[0]:,} runs and {sizes[1]:,} examples in {len(table):,} "
            "rows: are these the right columns? Say which with columns=."
        )
    place = (codes[0] * sizes[1] + codes[1]) * sizes[2] + codes[2]
    taken, counts = np.unique(place, return_counts=True)
    if (counts > 1).any():
        raise _twice(table, names, place, int(taken[np.argmax(counts > 1)]), counts)
    total = sizes[0] * sizes[1] * sizes[2]
    if len(taken) < total:
        raise _missing(table, names, taken, total)
    return place


def _called(names: Mapping[str, NDArray[Any]], place: int) -> str:
    runs, examples, repeats = names.values()
    rest, repeat = divmod(place, len(repeats))
    run, example = divmod(rest, len(examples))
    said = f"run {brief(runs[run].item())}, example {brief(examples[example].item())}"
    return said + (f", repeat {brief(repeats[repeat].item())}" if len(repeats) > 1 else "")


def _twice(
    table: Table, names: Mapping[str, NDArray[Any]], place: Any, first: int, counts: Any
) -> InputError:
    rows = table.rows[np.flatnonzero(place == first)[:2]]
    return InputError(
        f"{table.source} has {int((counts > 1).sum())} cell(s) more than once: "
        f"{_called(names, first)} is in rows {rows[0]} and {rows[1]}. Remove the copies; samples of"
        " one run need a column that numbers them, columns={'repeat': …}; runs of several trainings"
        " one that names them, columns={'learner': …}."
    )


def _missing(
    table: Table, names: Mapping[str, NDArray[Any]], taken: NDArray[np.int64], total: int
) -> InputError:
    gaps: list[int] = []
    for here, after in zip((-1, *taken.tolist()), (*taken.tolist(), total), strict=True):
        gaps += range(here + 1, min(after, here + 6))
        if len(gaps) >= 5:
            break
    said = "; ".join(_called(names, gap) for gap in gaps[:5])
    count = total - len(taken)
    return InputError(
        f"{table.source} lacks {count:,} of {total:,} cells: {said}{' …' if count > 5 else ''}. "
        "Every run needs every example: add the rows, or leave out the runs or examples that are "
        "not whole, on purpose."
    )


def _values(table: Table, parts: Parts) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Read values and labels; where one of them is text, both are."""
    cells = table.columns[parts.value]
    values = numbers(table, parts.value) if parts.kind in ("losses", "scores") else compact(cells)
    if parts.kind in ("errors", "correct"):
        values = flags(values)
        if values.dtype.kind == "U":
            raise InputError(
                f"{table.where(parts.value)} should hold {parts.kind} and holds text: use 0 and 1, "
                "or columns={'prediction': …} if it names predicted classes."
            )
    if "label" not in parts.others:
        return values, None
    truth = table.columns[parts.others["label"]]
    labels = compact(truth)
    if parts.kind in (None, "labels") and (values.dtype.kind == "U") != (labels.dtype.kind == "U"):
        values, labels = np.array(texts(cells)), np.array(texts(truth))
    return values, labels


def _of_examples(
    table: Table,
    part: str,
    values: NDArray[Any],
    example: NDArray[np.int64],
    examples: NDArray[Any],
) -> NDArray[Any]:
    """One value for each example, which all of its rows must agree on."""
    held = np.empty(len(examples), dtype=values.dtype)
    held[example] = values
    bad = held[example] != values
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise InputError(
            f"The {part} of example {brief(examples[example[row]].item())} in {table.source} is not"
            f" the same in all rows: {brief(values[row].item())} in row {table.rows[row]}, "
            f"{brief(held[example[row]].item())} in another. Are these the same examples?"
        )
    return held


def _taken(parts: Parts) -> str:
    what = parts.kind if parts.kind and parts.kind not in KIND_OF else "values"
    said = [f"{what} from column {brief(parts.value)}"]
    said += [f"{part} from {brief(name)}" for part, name in parts.others.items()]
    said += [f"not read: {listed(parts.unread)}"] if parts.unread else []
    return "; ".join(said)
