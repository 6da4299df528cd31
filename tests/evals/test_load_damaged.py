"""Damaged logs, as bytes and in their structure: read, or refused in a sentence."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from damaging import damaged, survives

import curvewise as cw
from curvewise.errors import quietly

JUNK: tuple[Any, ...] = (None, [], {}, "x", "", 3, -1.5, True, [1, "a"], {"a": 1}, [[]], 10**30, float("nan"))

INSPECT = {
    "version": 2,
    "status": "success",
    "eval": {"task": "t", "task_version": 0, "model": "m", "task_args_passed": {}},
    "results": {"total_samples": 2, "scores": [{"name": "match"}]},
    "samples": [
        {"id": i, "epoch": 1, "input": [{"role": "user", "content": "?"}], "metadata": {"subject": "s"}}
        | {"scores": {"match": {"value": "C"}}}
        for i in (1, 2)
    ],
}
HELM = [
    {
        "instance_id": i,
        "train_trial_index": 0,
        "stats": [{"name": {"name": "em", "split": "test"}, "count": 1, "mean": 1}],
    }
    for i in ("a", "b")
]
DOCUMENTS: dict[str, Any] = {
    "inspect.json": INSPECT,
    "per_instance_stats.json": HELM,
    "compass.json": {"score": 1, "details": [{"example_abbr": "a_0", "correct": [True, False]}, {"correct": [False]}]},
    "tau2.json": {
        "info": {"agent_info": {"llm": "m"}, "environment_info": {"domain_name": "d"}},
        "simulations": [{"task_id": "1", "trial": 0, "reward_info": {"reward": 1.0}}],
    },
    "counts.json": {"a": {"correct": 1, "total": 2}, "b": {"correct": 0, "total": 2}},
    "inline.json": {
        "results": {},
        "config": {"model_args": "pretrained=a"},
        "samples": {"t": [{"doc_id": 0, "filter": "none", "metrics": ["acc"], "acc": 1, "doc": {"subject": "s"}}]},
    },
    "table.json": [{"model": "a", "question": i, "score": 1, "sample": 0, "group": "g", "seed": 1} for i in (1, 2)],
    "samples.jsonl": [
        {
            "doc_id": i,
            "doc": {"subject": "s"},
            "filter": "none",
            "metrics": ["acc"],
            "acc": 1,
            "resps": [],
            "doc_hash": "h",
        }
        for i in (1, 2)
    ],
    "records.jsonl": [
        {"evaluation_id": "e", "model_id": "m", "evaluation_name": "n", "sample_id": i, "sample_hash": "h"}
        | {"evaluation": {"score": 1}, "metadata": {"subject": "s"}}
        for i in (1, 2)
    ],
}


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield from places(value[key], (*path, key))


def changed(value: Any, random: random.Random) -> Any:
    """Replace or remove one part of a document."""
    made = copy.deepcopy(value)
    path = random.choice(list(places(made))[1:])
    inner = made
    for key in path[:-1]:
        inner = inner[key]
    if random.random() < 0.3:
        del inner[path[-1]]
    else:
        inner[path[-1]] = copy.deepcopy(random.choice(JUNK))
    return made


def write(path: Path, value: Any) -> Path:
    rows = value if path.suffix == ".jsonl" else [value]
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_changed_structure_is_read_or_refused(name, tmp_path) -> None:
    path, rng = tmp_path / name, random.Random(name)
    options = {"missing": "drop", "columns": {"group": "subject"}, "unfinished": True, "range": (-1e99, 1e99)}
    with quietly():
        assert survives(cw.load_evals, write(path, DOCUMENTS[name]))
        for _ in range(60):
            write(path, changed(DOCUMENTS[name], rng))
            survives(cw.load_evals, path)
            survives(lambda p: cw.load_evals(p, **options), path)


@pytest.mark.parametrize("name", ["sums_a.eval", "inspect.json", "samples.jsonl", "records.jsonl"])
def test_damaged_bytes_are_read_or_refused(name, tmp_path) -> None:
    path = tmp_path / name
    source = Path(__file__).parent / "logs" / name
    data = source.read_bytes() if source.exists() else write(path, DOCUMENTS[name]).read_bytes()
    with quietly():
        for content in damaged(data, 80):
            path.write_bytes(content)
            survives(cw.load_evals, path)
