"""Files of lm-eval-harness (``samples_*.jsonl``) and lighteval (``details_*.parquet``)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from curvewise.errors import InputError, format_path
from curvewise.evals.logs.block import (
    SAMPLES_OF_HARNESS,
    Block,
    Coder,
    LogOptions,
    block_of_model,
    code_cells,
    hidden_cells,
    json_beside,
    json_lines,
    one_name,
    records_only,
    scores_of,
)
from curvewise.reading.table import LARGEST_ARRAYS, check_unpacked

_SAMPLES = re.compile(r"samples_(?P<task>.+)_(?P<date>\d{4}-\d\d-\d\dT[\d.-]+)\.jsonl(\.gz)?")
_ROW = ("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics", "schema")
_HASHES = ("doc_hash", "prompt_hash", "target_hash")


def is_harness_row(row: Mapping[str, Any]) -> bool:
    """Return whether a JSON line is a sample of lm-eval-harness."""
    return "doc_id" in row and ("filtered_resps" in row or "resps" in row or "doc_hash" in row)


def read_harness(path: Path, options: LogOptions) -> Block:
    """Read the samples of one task, and what the results file beside them says of the model and the task."""
    name = _SAMPLES.fullmatch(path.name)
    results = json_beside(path.with_name(f"results_{name['date']}.json")) if name else {}
    block = _block(json_lines(path), name["task"] if name else "", results, path, options)
    if _model(results):
        return block
    called, place = _name_by_place(path)
    return replace(block, model=one_name(called, len(block)), called_by=place)


def _name_by_place(path: Path) -> tuple[str, Path]:
    """Return what a model without a results file is called, and the folder or file that says so.

    lm-eval writes MODEL/samples_TASK_DATE.jsonl, with two underscores for a slash. A folder without them may also hold
    runs of several models: where its files have several dates, each is called by its own name.
    """
    folder = path.resolve().parent
    if _SAMPLES.fullmatch(path.name) and folder.name:
        dates = {found["date"] for file in folder.iterdir() if (found := _SAMPLES.fullmatch(file.name))}
        if "__" in folder.name or len(dates) == 1:
            return folder.name.replace("__", "/"), folder
    return path.name.removesuffix(".gz").removesuffix(".jsonl"), path


def read_inline(data: Mapping[str, Any], path: Path, options: LogOptions) -> list[Block]:
    """Read the samples that a results document holds itself, as ``simple_evaluate`` returns it."""
    blocks = [_block([rows], str(task), data, path, options) for task, rows in data["samples"].items() if rows]
    if _model(data):
        return blocks
    return [replace(b, model=one_name(path.stem, len(b)), called_by=path) for b in blocks]


def _block(
    batches: Iterable[Sequence[Any]], task: str, results: Mapping[str, Any], path: Path, options: LogOptions
) -> Block:
    coders = {key: Coder() for key in ("question", "filter", "group", "doc_hash", "prompt_hash")}
    cells: dict[str, list[Any]] = {}
    rows = 0
    for batch in batches:
        for row in records_only(batch, path):
            if "doc_id" not in row:
                raise InputError(f"{format_path(path)} has a line without doc_id, the question: it cannot be aligned.")
            # Older versions do not list the metrics of a row: what is not a field of every row is one.
            listed = row.get("metrics")
            metrics = listed if isinstance(listed, list) else [k for k in row if k not in (*_ROW, *_HASHES)]
            for metric in metrics:
                if metric not in cells:
                    cells[metric] = [None] * rows
                cells[metric].append(row.get(metric))
            rows += 1
            for column in cells.values():
                if len(column) < rows:
                    column.append(None)
        coders["question"].add(hidden_cells(row["doc_id"] for row in batch))
        coders["filter"].add(row.get("filter") or "none" for row in batch)
        for key in ("doc_hash", "prompt_hash"):
            coders[key].add(row.get(key) or "" for row in batch)
        if options.group is not None:
            docs = (row.get("doc") for row in batch)
            coders["group"].add(hidden_cells(d.get(options.group) if isinstance(d, dict) else None for d in docs))
    scores, unusable = scores_of(cells, path)
    group = coders["group"].finish()
    direction = (results.get("higher_is_better") or {}).get(task) or {}
    return Block(
        format_path(path),
        SAMPLES_OF_HARNESS,
        model=one_name(_model(results), rows),
        task=one_name(task, rows),
        question=coders["question"].finish(),
        scores=scores,
        group=group if any(group.names) else None,
        filter=coders["filter"].finish(),
        hashes={key: coders[key].finish() for key in ("doc_hash", "prompt_hash")},
        settings=_settings(results, task),
        higher={metric: value for metric, value in direction.items() if isinstance(value, bool)},
        unusable=unusable,
        warnings=_incomplete(results, task, len(coders["question"].places), path),
    )


def _model(results: Mapping[str, Any]) -> str:
    """Return the model that a results file names, in its arguments where it has no field for it."""
    if results.get("model_name"):
        return str(results["model_name"])
    given = (results.get("config") or {}).get("model_args") or ""
    if isinstance(given, dict):
        return str(given.get("pretrained") or given.get("model") or "")
    found = re.search(r"(?:^|,)(?:pretrained|model)=([^,]+)", str(given))
    return found[1] if found else ""


def _settings(results: Mapping[str, Any], task: str) -> dict[str, str]:
    found = {
        "task version": (results.get("versions") or {}).get(task),
        "shots": (results.get("n-shot") or {}).get(task),
    }
    return {name: str(value) for name, value in found.items() if value is not None}


def _incomplete(results: Mapping[str, Any], task: str, questions: int, path: Path) -> tuple[str, ...]:
    """Warn of samples that are fewer than the results file counts: the file was cut at the end of a line."""
    count = ((results.get("n-samples") or {}).get(task) or {}).get("effective")
    if not isinstance(count, int) or questions >= count:
        return ()
    return (f"{format_path(path)} holds {questions:,} of the {count:,} questions that its results file counts.",)


def is_harness_results(data: Mapping[str, Any]) -> bool:
    """Return whether a JSON document holds the overall results of lm-eval-harness or lighteval."""
    return "results" in data and ("config" in data or "config_general" in data or "configs" in data)


# lighteval: a Parquet file for each task.

_DETAILS = re.compile(r"details_(?P<task>.+)_(?P<date>\d{4}-\d\d-\d\dT[\d.-]+)\.parquet")


def is_details(columns: Sequence[str]) -> bool:
    """Return whether the columns of a Parquet file are those of lighteval's details."""
    return {"doc", "metric"} <= set(columns) or {"metrics", "full_prompt"} <= set(columns)


def read_details(file: Any, path: Path) -> Block:
    """Read lighteval's details out of an open Parquet file."""
    name = _DETAILS.fullmatch(path.name)
    columns = file.schema_arrow.names
    new = "doc" in columns
    wanted = (
        ["doc.id", "doc.query", "metric"] if new else ["metrics", "example" if "example" in columns else "full_prompt"]
    )
    size = sum(file.metadata.row_group(i).total_byte_size for i in range(file.metadata.num_row_groups))
    check_unpacked(path, size, LARGEST_ARRAYS)
    rows = file.read(columns=wanted).to_pylist()
    marks = [_metrics(row["metric" if new else "metrics"], path) for row in rows]
    names = dict.fromkeys(metric for row in marks for metric in row)
    scores, unusable = scores_of({metric: [row.get(metric) for row in marks] for metric in names}, path)
    asked = [row["doc"].get("query") if new else row[wanted[1]] for row in rows]
    ids = [row["doc"].get("id") or None for row in rows] if new else [None] * len(rows)
    # Older files have no ids: a hash of the question takes their place.
    questions = asked if None in ids else ids
    return block_of_model(
        path,
        "lighteval details",
        _folder_model(path) or path.stem,
        name["task"] if name else "",
        questions,
        scores,
        hashes={"question text": code_cells(hidden_cells([q] for q in asked))},
        unusable=unusable,
        called_by=None if _folder_model(path) else path,
        notes=("question ids are hashes of the questions",) if None in ids else (),
    )


def _metrics(value: Any, path: Path) -> dict[str, Any]:
    """Return the metrics of a row, which older versions wrote as the text of a dict."""
    if isinstance(value, str) and len(value) < 100_000:
        try:
            value = ast.literal_eval(value)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            value = None
    if not isinstance(value, dict):
        raise InputError(f"{format_path(path)} should hold metrics by name in each row, and does not.")
    return value


def _folder_model(path: Path) -> str:
    """Return the model that the folders name: details/MODEL/DATE/file, where MODEL may be two folders."""
    parts = path.resolve().parts[:-2]
    for i in range(len(parts) - 1, -1, -1):
        if parts[i] == "details":
            return "/".join(parts[i + 1 :])
        if parts[i].startswith("details_"):  # a repository on the Hub
            return parts[i].removeprefix("details_").replace("__", "/")
    return ""
