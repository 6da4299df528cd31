"""Runs of HELM: ``per_instance_stats.json``, with ``run_spec.json`` beside it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from curvewise.errors import InputError
from curvewise.evals.logs.block import Block, UnreadError, code_cells, hash_of, hidden_cells, one_name, usable_scores
from curvewise.text import format_path

_ACCOUNTING = re.compile(
    r"num_.*|.*_cost|.*_runtime.*|inference_.*|training_.*|batch_size|finish_reason_.*|prompt_truncated|max_prob|logprob"
)
"""Statistics of the run that are no scores of the answer; they can still be asked for by name."""
_SIDE = ("run_spec.json", "stats.json", "scenario.json", "scenario_state.json", "instances.json")


def is_side_file(path: Path) -> bool:
    """Return whether a file lies beside the scores of a run of HELM."""
    beside = path.name in _SIDE or path.name.startswith("display_")
    return beside and path.with_name("per_instance_stats.json").exists()


def is_helm(data: Any) -> bool:
    """Return whether a JSON document holds statistics of single instances."""
    return (
        isinstance(data, list) and bool(data) and isinstance(data[0], dict) and {"instance_id", "stats"} <= set(data[0])
    )


def read_helm(data: Sequence[Any], path: Path, metrics: Sequence[str]) -> Block:
    """Read the statistics of each instance; splits and perturbations are the variants to choose from."""
    spec = _spec(path.with_name("run_spec.json"))
    adapter = spec.get("adapter_spec") or {}
    name = str(spec.get("name") or path.resolve().parent.name)
    rows = [row for row in data if isinstance(row, dict) and "instance_id" in row]
    found: list[dict[str, Any]] = [{} for _ in rows]
    variants = []
    for values, row in zip(found, rows, strict=True):
        split = ""
        for stat in row.get("stats") or ():
            about = stat.get("name") or {}
            metric = str(about.get("name"))
            split = about.get("split") or split
            if stat.get("count") and (metric in metrics or not _ACCOUNTING.fullmatch(metric)):
                values[metric] = stat["mean"] if stat.get("mean") is not None else stat["sum"] / stat["count"]
        change = (row.get("perturbation") or {}).get("name")
        variants.append(", ".join(filter(None, (split, change))) or "none")
    names = dict.fromkeys(metric for values in found for metric in values)
    scores, unusable = usable_scores({metric: [values.get(metric) for values in found] for metric in names})
    if not scores:
        raise UnreadError(f"{format_path(path)} holds no score of single questions.")
    # The name of a run holds the model, which must not make each model a task of its own.
    model = re.search(r"(?:^|[:,])model=([^,]+)", name)
    task = re.sub(r"(,model(?:_deployment)?=[^,]+)|(?<=:)model(?:_deployment)?=[^,]+,?", "", name).rstrip(":,")
    return Block(
        format_path(path),
        "HELM run",
        model=one_name(str(adapter.get("model") or (model[1] if model else path.resolve().parent.name)), len(rows)),
        task=one_name(task, len(rows)),
        question=code_cells(hidden_cells(row["instance_id"] for row in rows)),
        scores=scores,
        sample=code_cells(row.get("train_trial_index", 0) for row in rows),
        filter=code_cells(variants),
        settings=_settings(adapter),
        unusable=unusable,
    )


def _spec(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{format_path(path)} of {format_path(path.parent)} is not whole JSON.") from error
    return found if isinstance(found, dict) else {}


_PROMPT = ("instructions", "_prefix", "_suffix")


def _settings(adapter: Mapping[str, Any]) -> dict[str, str]:
    """Return what shapes the prompt: shots and method as they are, texts as a hash."""
    plain = {"shots": adapter.get("max_train_instances"), "method": adapter.get("method")}
    found = {name: str(value) for name, value in plain.items() if value is not None}
    wording = {name: value for name, value in adapter.items() if name.endswith(_PROMPT)}
    return found | ({"prompt hash": hash_of(wording)} if wording else {})
