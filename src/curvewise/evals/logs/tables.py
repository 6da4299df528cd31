"""Tables of scores: CSV, JSON, JSON lines, Parquet and frames, with a row for each sample of a question."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from curvewise.errors import InputError, arg, brief, format_path, importing, list_names
from curvewise.evals.logs.block import (
    Block,
    Coder,
    Codes,
    LogOptions,
    Names,
    UnreadError,
    grade,
    grade_cells,
    id_of,
    json_lines,
    one_name,
    records_only,
)
from curvewise.evals.logs.formats import expand_counts, is_details, read_details
from curvewise.reading.roles import SEED, ColumnRoles, Role, ask, direction, find_roles, is_spread, normal, synonyms
from curvewise.reading.table import (
    LARGEST_ARRAYS,
    Column,
    Table,
    check_file,
    check_unpacked,
    is_decimal_comma,
    is_missing,
    numbers,
    parse,
)
from curvewise.types.results import FloatArray

ROLES = (
    Role("model", (synonyms("model model_name model_id llm agent agent_name system system_name"), synonyms("learner"))),
    Role(
        "question",
        (
            synonyms("""
            question_id questions_id qid item_id example_id instance_id problem_id prompt_id query_id doc_id sample_id
            case_id"""),
            synonyms("question item example instance problem prompt query case task_id test_case"),
            synonyms("id ids idx index uid key"),
        ),
        required=True,
    ),
    Role(
        "sample",
        (
            synonyms("""
            sample sample_index sample_idx sample_number epoch trial trial_id trial_index attempt attempt_id repeat
            repetition replicate rollout rollout_id generation generation_id completion_id draw"""),
        ),
    ),
    Role("seed", (SEED | synonyms("training_seed train_seed"),)),
    Role("group", (synonyms("group group_id cluster cluster_id passage passage_id document document_id story_id"),)),
    Role("task", (synonyms("task task_name benchmark benchmark_name"),)),
    Role(
        "count", (synonyms("count n_samples num_samples attempts n_attempts num_attempts n_trials num_trials total"),)
    ),
    Role("metric", (synonyms("metric metric_name scorer"),)),
    Role("filter", (synonyms("filter filter_name"),)),
    Role("score"),  # found among the columns that are left, where several are metrics to choose from
)
_SCORES = synonyms("""
    score scores value correct is_correct correctness num_correct n_correct accuracy acc exact_match em pass passed
    passes success solved resolved is_resolved reward win f1 rating grade judgement judgment quality""")
_COUNTED = synonyms("num_correct n_correct passes")
"""Scores that say that they are numbers of right answers."""
_NOT_SCORES = synonyms(
    "answer answers target label choice option index id time text response prediction reason message"
)
_SPREAD = synonyms("std sd stdev stderr se sem var variance")
_PEEK = 1000
"""Rows that are looked at to find the columns."""


class TableRoles(NamedTuple):
    """Columns of the roles, and the columns that hold metrics."""

    columns: ColumnRoles
    metrics: tuple[str, ...]

    @property
    def wanted(self) -> list[str]:
        """All columns to read."""
        held = (column for columns in self.columns.held.values() for column in columns)
        return list(dict.fromkeys([*held, *self.metrics]))


def find_eval_roles(cells: Mapping[str, Column], source: str, options: LogOptions) -> TableRoles:
    """Find the columns of a table of scores by their names; the user's choice comes first."""
    chosen = dict(options.columns)
    # In the logs of tools a group is a field of the question; a table without such a column has none.
    if isinstance(chosen.get("group"), str) and chosen["group"] not in cells:
        del chosen["group"]
    absent = any(isinstance(column, str) and column not in cells for column in chosen.values())
    named = [name for name in cells if name in chosen.values() or not _holds_answers(name, cells[name])]
    try:
        roles = find_roles({name: cells[name] for name in named}, source, ROLES, chosen)
    except InputError as error:
        # A table without these columns is something else, which may lie in the same folder.
        if absent or "is known as the question" in str(error):
            raise UnreadError(error.message, "unknown") from error
        raise
    if "score" in roles:
        return TableRoles(roles, (roles["score"],))
    if options.wide:
        return TableRoles(roles, _model_columns(roles, cells, source))
    if "metric" not in roles and (asked := [m for m in options.metrics if m in cells]):
        return TableRoles(roles, tuple(asked))
    found = tuple(name for name in roles.rest if _is_metric(name, cells[name]))
    _check_texts([name for name in roles.rest if name not in found], cells, source, bool(found))
    if not found or ("metric" in roles and len(found) > 1):
        several = (
            f"{len(found)} columns of {source} could be the score"
            if found
            else f"No column of {source} is known as the score"
        )
        models = _graded(roles, cells)
        wide = "model" not in roles and not found and len(models) > 1
        remedy = f", or pass {arg('wide', 'models')} if each of {list_names(models, 4)} is a model" if wide else ""
        raise UnreadError(
            f"{several}: it has {list_names(cells)}. Say which with {ask('score')}{remedy}.",
            "unknown" if not found else "log",
        )
    return TableRoles(roles, found)


def _holds_answers(name: str, cells: Column) -> bool:
    """Return whether a column that is called as the number of a sample, such as generation, holds its text."""
    if not next(role for role in ROLES if role.name == "sample").is_called(name):
        return False
    texts = [str(cell) for cell in cells if np.isscalar(cell) and not is_missing(cell)]
    return any(id_of(cell) != cell for cell in texts) or (normal(name) == "generation" and None in map(parse, texts))


def _graded(roles: ColumnRoles, cells: Mapping[str, Column]) -> list[str]:
    """Return the columns without a role whose cells are scores."""
    return [name for name in roles.rest if not isinstance(grade_cells(list(cells[name])), str)]


def _model_columns(roles: ColumnRoles, cells: Mapping[str, Column], source: str) -> tuple[str, ...]:
    """Return the columns of a table with one for each model: all that have no role."""
    taken = [role for role in ("model", "score", "metric", "count") if role in roles]
    if taken:
        role = taken[0]
        raise InputError(
            f"{source} has a column for the {role}, {brief(roles[role])}: a table with a column for each model has"
            f" none. Leave {arg('wide', 'models')} out, or pass {ask(role, None)} if {brief(roles[role])} is a model."
        )
    found = _graded(roles, cells)
    if not found:
        raise UnreadError(f"{source} has no column of scores: it has {list_names(cells)}.", "unknown")
    return tuple(found)


def _check_texts(names: Sequence[str], cells: Mapping[str, Column], source: str, others: bool) -> None:
    """Refuse a column that is called as a score and is empty or holds texts; beside other metrics, a few texts."""
    for name in filter(_is_called_metric, names):
        if not others and all(map(is_missing, cells[name])):
            raise UnreadError(f"column {brief(name)} of {source} is empty: it holds no score.", "unknown")
        plain = [cell for cell in cells[name] if cell is not None and np.isscalar(cell) and not is_missing(cell)]
        scores = sum(grade(cell) is not None for cell in plain)
        if scores < len(plain) and (not others or 2 * scores >= len(plain)):
            raise UnreadError(
                f"column {brief(name)} of {source} {grade_cells(plain)}: a score is a number, true or false, or "
                f"correct or incorrect (C or I). Correct the cells, or name the column of the score: {ask('score')}.",
                "unknown",
            )


def _is_called_metric(name: str) -> bool:
    words = set(normal(name).split("_"))
    known = normal(name) in _SCORES or (direction(name) is not None and not words & _NOT_SCORES)
    return known and not (is_spread(name, _SPREAD) or words & _SPREAD)


def _is_metric(name: str, cells: Column) -> bool:
    """Return whether a column holds scores, by its name and its cells."""
    if not _is_called_metric(name):
        return False
    filled = [cell for cell in cells if not (np.isscalar(cell) or cell is None) or not is_missing(cell)]
    if any(isinstance(cell, list) for cell in filled):
        flat = [value for cell in filled for value in (cell if isinstance(cell, list) else [cell])]
        return normal(name) in _SCORES and bool(flat) and all(isinstance(v, bool | int | float) for v in flat)
    return bool(filled) and not isinstance(grade_cells(filled), str)


def read_table_scores(table: Table, options: LogOptions) -> list[Block]:
    """Read a table that is in memory."""
    plain = {name: _plain_cells(cells) for name, cells in table.columns.items()}
    # Columns of numbers, some of them with a decimal comma.
    commas = [
        name
        for name, cells in (plain.items() if table.decimal_commas else ())
        if any(map(is_decimal_comma, cells)) and all(is_decimal_comma(c) or parse(c) is not None for c in cells)
    ]
    graded = plain | {name: numbers(table, name) for name in commas}
    roles = find_eval_roles(graded, table.source, options)
    # An id such as 1,5 stays as it is.
    columns = {name: (graded if name in roles.metrics else plain)[name] for name in roles.wanted}
    label = "model" if table.label == "learner" else table.label
    return _build([columns], table.source, label, roles, options, table.notes)


def _plain_cells(cells: Column) -> Column:
    """Make lists of tuples and arrays, which frames read from Parquet hold, and None of the missing value of pandas."""
    if isinstance(cells, np.ndarray):
        return cells

    def plain(cell: Any) -> Any:
        if isinstance(cell, tuple | np.ndarray):
            return np.asarray(cell).tolist()
        return None if not np.isscalar(cell) and is_missing(cell) else cell

    return list(map(plain, cells))


def read_lines(path: Path, options: LogOptions, others: Sequence[dict[str, Any]] = ()) -> list[Block]:
    """Read JSON lines a thousand at a time; texts beside the scores are not kept.

    ``others`` are later rows with columns that the first ones have not.
    """
    source = format_path(path)
    batches = (records_only(batch, path) for batch in json_lines(path, unique=True))
    if not (first := next(batches, [])):
        raise InputError(f"{source} is empty.")

    def roles_of(rows: Sequence[dict[str, Any]]) -> tuple[frozenset[str], TableRoles]:
        columns = {name: [row.get(name) for row in rows] for name in dict.fromkeys(chain.from_iterable(rows))}
        return frozenset(columns), find_eval_roles(columns, source, options)

    known, roles = roles_of([*first, *others])
    fresh: dict[str, dict[str, Any]] = {}

    def pieces() -> Iterator[dict[str, list[Any]]]:
        for batch in chain([first], batches):
            for row in batch:
                if not row.keys() <= known:
                    fresh.update({name: row for name in row if name not in known and name not in fresh})
            yield {name: [row.get(name) for row in batch] for name in roles.wanted}

    blocks = _build(pieces(), source, path.name.removesuffix(".gz").rpartition(".")[0], roles, options)
    # A column that only later rows have may be one of a role: then the file is read once more.
    later = [*others, *fresh.values()]
    return read_lines(path, options, later) if fresh and roles_of([*first, *later])[1] != roles else blocks


# Parquet, a million rows at a time, with texts as codes into a dictionary.

_BATCH = 1 << 20
_BYTES_PER_ROW = 24
"""A score and four codes, in memory."""


class _Coded(NamedTuple):
    """Cells as they come from a Parquet file: places in a list of distinct ones."""

    codes: Codes
    cells: list[Any]


def read_parquet(path: Path, options: LogOptions) -> list[Block]:
    """Read a Parquet file by batches."""
    check_file(path)
    with importing(f"Reading {format_path(path)} needs pyarrow", "parquet"):
        import pyarrow as pa
        import pyarrow.parquet as pq
    try:
        with pq.ParquetFile(path, memory_map=True) as file:
            schema = file.schema_arrow
            if is_details(schema.names):
                return [read_details(file, path)]
            # A column that repeats one value takes next to nothing on disk.
            check_unpacked(path, _BYTES_PER_ROW * file.metadata.num_rows, LARGEST_ARRAYS)
            if not file.metadata.num_rows:
                raise InputError(f"{format_path(path)} has columns ({list_names(schema.names)}) but no rows.")
            # Structs may hold whole transcripts; polars writes large lists.
            listed = (pa.ListType, pa.LargeListType, pa.FixedSizeListType)
            flat = [f.name for f in schema if not pa.types.is_nested(f.type) or isinstance(f.type, listed)]
            head = next(file.iter_batches(_PEEK, columns=flat)).to_pydict()
        roles = find_eval_roles(head, format_path(path), options)
        texts = [f.name for f in schema if f.name in roles.wanted and f.type in (pa.string(), pa.large_string())]
        with pq.ParquetFile(path, memory_map=True, read_dictionary=texts) as file:
            batches = file.iter_batches(_BATCH, columns=roles.wanted)
            pieces = (
                {name: _arrow_cells(batch.column(name), name in roles.metrics, pa) for name in roles.wanted}
                for batch in batches
            )
            return _build(pieces, format_path(path), path.stem, roles, options)
    except InputError:
        raise
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(
            f"{format_path(path)} is not a whole Parquet file ({reason:.200}): it was cut short."
        ) from error


def _arrow_cells(column: Any, is_metric: bool, pa: Any) -> Any:
    kind = column.type
    if is_metric and (pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
        return column.cast(pa.float64()).to_numpy(zero_copy_only=False)
    if pa.types.is_nested(kind):
        return column.to_pylist()
    coded = column if pa.types.is_dictionary(kind) else column.dictionary_encode()
    cells = coded.dictionary.to_pylist()
    if not column.null_count:
        return _Coded(coded.indices.to_numpy(zero_copy_only=False), cells)
    # An empty cell has no place in the dictionary of arrow, and gets one here.
    return _Coded(coded.indices.fill_null(len(cells)).to_numpy(zero_copy_only=False), [*cells, None])


# From pieces of columns to blocks.


_NAMED = ("model", "question", "sample", "seed", "group", "task", "metric", "filter")


def _build(
    pieces: Iterable[Mapping[str, Any]],
    source: str,
    label: str,
    found: TableRoles,
    options: LogOptions,
    notes: Sequence[str] = (),
) -> list[Block]:
    """Make blocks of the pieces of a table: one, or one for each metric in a column of metrics."""
    roles, metrics = found
    column_of = {role: roles[role] for role in _NAMED if role in roles}
    coders = {role: Coder() for role in column_of}
    parts: dict[str, list[FloatArray]] = {metric: [] for metric in metrics}
    unusable: dict[str, str] = {}
    lengths: list[Codes] = []  # of lists of marks, or of counts: samples of each row
    folded = counted = False
    for piece in pieces:
        for role, column in column_of.items():
            _add_cells(coders[role], piece[column], f"column {brief(column)} of {source}")
        for metric in metrics:
            values = _metric_cells(piece[metric])
            lists = isinstance(values, str) and len(metrics) == 1 and values == "holds lists"
            if lists:
                values = _unfolded(piece[metric], lengths)
            if isinstance(values, str):
                if parts[metric]:
                    raise UnreadError(f"column {brief(metric)} of {source} {values}: correct the cells.", "unknown")
                unusable[metric] = values
                continue
            if not lists and "count" in roles and len(metrics) == 1:
                counted = True
                values = _counted(values, piece[roles["count"]], lengths, roles, source)
            elif not lists:
                lengths.append(np.ones(len(values), dtype=np.int32))
            folded = folded or lists or counted
            parts[metric].append(values)
    scores = {m: np.concatenate(v) for m, v in parts.items() if m not in unusable}
    scores = {m: v for m, v in scores.items() if not np.isnan(v).all()}
    if not scores:
        why = "; ".join(f"column {brief(metric)} {what}" for metric, what in unusable.items())
        kind: Literal["unknown", "log"] = "unknown" if why else "log"
        raise UnreadError(f"{source} holds no score{f': {why}' if why else ', all cells are empty'}.", kind)
    names = {role: coder.finish() for role, coder in coders.items()}
    if folded:
        count = np.concatenate(lengths)
        if counted and options.columns.get("count") is None:
            _check_counts(next(iter(scores.values())), count, roles, metrics[0], source)
        names = {role: n._replace(codes=np.repeat(n.codes, count)) for role, n in names.items()}
        # Samples are numbered within the row that held them.
        place = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
        names["sample"] = Names(place.astype(np.int32), tuple(map(str, range(int(count.max(initial=0))))))
    rows = len(names["question"].codes)
    if "seed" in names and "sample" not in names and "seed" not in options.columns:
        model = names.get("model", one_name("", rows))
        _check_seeds(names["seed"].codes, model.codes, column_of["seed"], source)
    for role in ("model", "question", "task"):
        # A column of tasks may be empty, though not in part.
        if role in names and (role != "task" or len(names[role].names) > 1):
            _check_named(names[role], role, column_of[role], source)
    shown = {
        role: n._replace(names=tuple(map(id_of, n.names))) for role, n in names.items() if role in ("question", "group")
    }
    notes = [roles.note(left_out=False), *notes]
    if "score" not in roles and not options.wide:
        notes.append(f"score from {list_names(metrics)}")
    if shown["question"].names != names["question"].names:
        notes.append(f"question ids are hashes of the texts in column {brief(column_of['question'])}")
    if options.wide:
        left = [name for name in roles.rest if name not in metrics]
        notes.append(f"a column for each model{f'; left out: {list_names(left)}' if left else ''}")
    block = Block(
        source,
        "table",
        model=names.get("model", one_name(label, rows)),
        task=names.get("task", one_name("", rows)),
        question=shown["question"],
        scores=scores,
        sample=names.get("sample"),
        seed=names.get("seed"),
        group=shown.get("group"),
        filter=names.get("filter"),
        higher=dict.fromkeys((m for m in scores if normal(m) in _SCORES), True),
        unusable=unusable,
        called_by=None if "model" in names else Path(source),
        notes=("; ".join(filter(None, notes)),),
    )
    if options.wide:
        return _by_column(block, metrics)
    if "metric" not in names:
        return [block]
    (only,), (codes, called) = scores, names["metric"]
    rows_of = [(name, block.keep(codes == i)) for i, name in enumerate(called)]
    return [replace(part, scores={name: part.scores[only]}) for name, part in rows_of if len(part)]


def _by_column(block: Block, columns: Sequence[str]) -> list[Block]:
    """Make a block for each model of a table with a column for each."""
    lost = [name for name in columns if name not in block.scores]
    if lost:
        why = block.unusable.get(lost[0], "is empty")
        raise InputError(f"column {brief(lost[0])} of {block.source} {why}: each column must hold scores of a model.")
    return [
        replace(block, model=one_name(name, len(block)), called_by=None, scores={"score": values})
        for name, values in block.scores.items()
    ]


def _add_cells(coder: Coder, cells: Any, where: str) -> None:
    try:
        if isinstance(cells, _Coded):
            coder.add(cells.cells)
            coder.parts[-1] = coder.parts[-1][cells.codes]
        else:
            coder.add(cells.tolist() if isinstance(cells, np.ndarray) else cells)
    except TypeError as error:
        raise InputError(f"{where} holds lists or objects, where a name was expected.") from error


def _metric_cells(cells: Any) -> FloatArray | str:
    if isinstance(cells, _Coded):
        values = grade_cells(cells.cells)
        return values if isinstance(values, str) else values[cells.codes]
    return grade_cells(cells)


def _unfolded(cells: Sequence[Any], lengths: list[Codes]) -> FloatArray | str:
    """Make a row of each mark in the lists of a column."""
    # An empty list is a question without a score.
    lists = [(cell or [None]) if isinstance(cell, list) else [cell] for cell in cells]
    flat = [grade(value) for given in lists for value in given]
    if None in flat:
        return "holds lists of other things than numbers"
    lengths.append(np.array([len(given) for given in lists], dtype=np.int32))
    return np.array(flat, dtype=np.float64)


def _counted(values: FloatArray, cells: Any, lengths: list[Codes], roles: ColumnRoles, source: str) -> FloatArray:
    """Make ones and zeros of the number of right answers in each row."""
    tried = _metric_cells(cells)
    column = roles["count"]
    if isinstance(tried, str):
        raise InputError(f"column {brief(column)} of {source} should hold numbers of attempts, and {tried}.")
    try:
        given = expand_counts(values, tried, source)
    except InputError as error:
        raise InputError(
            f"{error} Column {brief(column)} is read as the number of attempts of which so many were right: correct "
            f"it, or pass {ask('count', None)} if it is something else."
        ) from error
    lengths.append(np.array(list(map(len, given)), dtype=np.int32))
    return np.concatenate(given)


def _check_counts(marks: FloatArray, count: Codes, roles: ColumnRoles, metric: str, source: str) -> None:
    """Ask what a column means that is called as the number of attempts, where each score may be a single mark."""
    right = np.add.reduceat(np.nan_to_num(marks), np.cumsum(count) - count)
    if normal(metric) in _COUNTED or right.max() > 1 or count.max() == 1:
        return
    column = roles["count"]
    raise InputError(
        f"column {brief(metric)} of {source} holds 0 and 1 only, and column {brief(column)} numbers up to "
        f"{count.max():,}: pass {ask('count', column)} if so many attempts were made at each question, of which 0 or 1 "
        f"was right; or {ask('count', None)} if the score is a mark."
    )


def _check_seeds(seed: Codes, model: Codes, column: str, source: str) -> None:
    """Ask whether seeds are those of trainings or of samples, where a model has several and nothing says it."""
    pairs = np.unique(np.stack([model, seed]), axis=1)
    if normal(column) in SEED and len(np.unique(pairs[0])) < pairs.shape[1]:
        raise InputError(
            f"column {brief(column)} of {source} has several seeds of one model: pass {ask('seed', column)} if each is "
            f"another training of it, {ask('sample', column)} if each is another sample of its answers, or "
            f"{ask('seed', None)} if neither."
        )


def _check_named(names: Names, role: str, column: str, source: str) -> None:
    if "" in names.names:
        empty = np.flatnonzero(names.codes == names.names.index(""))
        if len(empty):
            raise InputError(
                f"column {brief(column)} of {source} names no {role} in row {empty[0] + 1}"
                f"{f' and {len(empty) - 1:,} more' if len(empty) > 1 else ''}: fill the cells or remove the rows."
            )
