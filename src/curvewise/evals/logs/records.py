"""Records of Every Eval Ever: JSON lines with a row for each question, and the JSON document that describes them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from curvewise.errors import InputError
from curvewise.evals.logs.block import (
    Block,
    Coder,
    LogOptions,
    UnreadError,
    hidden_cells,
    json_lines,
    records_only,
    usable_scores,
)
from curvewise.text import format_count, format_path


def is_record_row(row: Mapping[str, Any]) -> bool:
    """Return whether a JSON line is the record of one question."""
    return {"evaluation_id", "model_id", "sample_id", "evaluation"} <= set(row)


def is_record(data: Mapping[str, Any]) -> bool:
    """Return whether a JSON document describes an evaluation, with overall scores."""
    return "schema_version" in data and "evaluation_results" in data


def refuse_record(data: Mapping[str, Any], path: Path) -> UnreadError:
    """Make the error for a document with overall scores only."""
    detailed = data.get("detailed_evaluation_results")
    if isinstance(detailed, dict):
        there = Path(str(detailed.get("file_path"))).name
        return UnreadError(
            f"{format_path(path)} describes an evaluation; the scores of its questions are in {format_path(there)}.",
            "side",
        )
    count = format_count(len(data["evaluation_results"] or ()), "overall score")
    return UnreadError(f"{format_path(path)} holds {count} and no scores of single questions.")


def read_eval_records(path: Path, options: LogOptions) -> list[Block]:
    """Read records of single questions, a block for each metric."""
    about = _about(path)
    columns = ("model", "task", "metric", "question", "group", "hash")
    coders = {key: Coder() for key in columns}
    values: list[Any] = []
    for batch in json_lines(path):
        rows = records_only(batch, path)
        if not all(map(is_record_row, rows)):
            raise InputError(
                f"{format_path(path)} has a line without model_id, sample_id or evaluation: it is damaged."
            )
        configs = [about.get(row.get("evaluation_result_id") or row["evaluation_name"], {}) for row in rows]
        cells: dict[str, Any] = {
            "model": (row["model_id"] for row in rows),
            "task": (row.get("evaluation_name") or "" for row in rows),
            "metric": (_metric(config) for config in configs),
            "question": hidden_cells(row["sample_id"] for row in rows),
            "group": hidden_cells((row.get("metadata") or {}).get(options.group) for row in rows),
            "hash": (row.get("sample_hash") or "" for row in rows),
        }
        for key in columns:
            coders[key].add(cells[key])
        for row, config in zip(rows, configs, strict=True):
            score = (row["evaluation"] or {}).get("score")
            values.append(None if score == -1 and config.get("has_unknown_level") else score)
    names = {key: coder.finish() for key, coder in coders.items()}
    scores, _ = usable_scores({"score": values})
    if not scores:
        raise UnreadError(f"{format_path(path)} holds no score of single questions.")
    by_name = {_metric(config): config for config in about.values()}
    blocks = []
    for code, metric in enumerate(names["metric"].names):
        config = by_name.get(metric, {})
        block = Block(
            format_path(path),
            "Every Eval Ever records",
            model=names["model"],
            task=names["task"],
            question=names["question"],
            scores={metric: scores["score"]},
            group=names["group"] if any(names["group"].names) else None,
            hashes={"sample_hash": names["hash"]},
            ranges=_range(config, metric),
            higher={metric: not config["lower_is_better"]} if "lower_is_better" in config else {},
            warnings=_count_warning(about, len(values), path) if code == 0 else (),
        )
        blocks.append(block.keep(names["metric"].codes == np.int32(code)))
    return blocks


def _about(path: Path) -> dict[str, dict[str, Any]]:
    """Return the description of each metric, out of the document beside the records."""
    beside = path.with_name(path.name.replace("_samples.jsonl", ".json"))
    if beside == path or not beside.is_file():
        return {}
    try:
        data = json.loads(beside.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{format_path(beside)} is not whole JSON: it was cut short.") from error
    if not isinstance(data, dict) or not is_record(data):
        return {}
    found: dict[str, dict[str, Any]] = {}
    rows = (data.get("detailed_evaluation_results") or {}).get("total_rows")
    for result in data["evaluation_results"] or ():
        config = dict(result.get("metric_config") or {}) | {"_rows": rows}
        found |= {key: config for key in (result.get("evaluation_result_id"), result.get("evaluation_name")) if key}
    return found


def _metric(config: Mapping[str, Any]) -> str:
    return str(config.get("metric_name") or config.get("metric_id") or "score")


def _range(config: Mapping[str, Any], metric: str) -> dict[str, tuple[float, float]]:
    """Return the range of a metric, where both ends are given; an end may be the text "Infinity"."""
    try:
        low, high = float(config["min_score"]), float(config["max_score"])
    except (KeyError, TypeError, ValueError):
        return {}
    return {metric: (low, high)} if low < high and not math.isnan(low + (high if math.isfinite(high) else 0)) else {}


def _count_warning(about: Mapping[str, Mapping[str, Any]], rows: int, path: Path) -> tuple[str, ...]:
    said = {config["_rows"] for config in about.values() if isinstance(config.get("_rows"), int)}
    if not said or rows in said:
        return ()
    return (f"{format_path(path)} has {rows:,} rows, and the document beside it says {min(said):,}: is it whole?",)
