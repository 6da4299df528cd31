"""Marks of several attempts at each question: lists or counts by question id, and the simulations of tau2-bench."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from curvewise.errors import InputError
from curvewise.evals.logs.block import Block, UnreadError, code_cells, hidden_cells, id_of, one_name, usable_scores
from curvewise.text import brief, format_path
from curvewise.types.units import FloatArray

_LISTS = "raw_scored_generations"
_RIGHT = ("correct", "num_correct", "passed", "passes", "c")
_MOST = 1_000_000
"""Attempts at one question; each takes a number in memory."""
_TRIED = ("count", "total", "num_samples", "n")


def is_passes(data: Mapping[str, Any]) -> bool:
    """Return whether a JSON document maps question ids to lists of marks or to counts."""
    marks = data.get(_LISTS, data)
    return isinstance(marks, dict) and bool(marks) and all(_is_list(v) or _is_count(v) for v in marks.values())


def _is_list(value: Any) -> bool:
    # Other lists of numbers, such as losses by epoch, are no marks.
    return isinstance(value, list) and all(isinstance(v, bool | int | float) and v in (0, 1) for v in value)


def _is_count(value: Any) -> bool:
    return isinstance(value, dict) and any(k in value for k in _RIGHT) and any(k in value for k in _TRIED)


def read_passes(data: Mapping[str, Any], path: Path) -> Block:
    """Read lists of marks, as CRUXEval writes them, or numbers of right answers and of attempts."""
    source = format_path(path)
    questions: list[str] = []
    marks: list[Any] = []
    samples: list[int] = []
    for question, value in data.get(_LISTS, data).items():
        if isinstance(value, dict):
            right, tried = (next(value[k] for k in keys if k in value) for keys in (_RIGHT, _TRIED))
            try:
                given: Any = expand_counts(np.array([right], float), np.array([tried], float), source)[0]
            except (TypeError, ValueError) as error:
                if isinstance(error, InputError):
                    raise
                raise InputError(f"{brief(id_of(question))} in {source} has counts that are no numbers.") from error
        else:
            given = value or [None]  # an empty list is a question without a score
        questions += [question] * len(given)
        marks += list(given)
        samples += range(len(given))
    scores, _ = usable_scores({"pass": marks})
    if not scores:
        raise UnreadError(f"{source} holds no marks: all of its lists are empty.")
    return Block(
        source,
        "lists of marks",
        model=one_name(path.stem, len(marks)),
        called_by=path,
        task=one_name("", len(marks)),
        question=code_cells(hidden_cells(questions)),
        scores=scores,
        sample=code_cells(samples),
    )


def expand_counts(right: FloatArray, tried: FloatArray, source: str) -> list[FloatArray]:
    """Make ones and zeros of the number of right answers among so many attempts.

    >>> expand_counts(np.array([2.0, 0.0]), np.array([3.0, 1.0]), "runs.csv")
    [array([1., 1., 0.]), array([0.])]
    """
    known = np.isfinite(right) & np.isfinite(tried)
    for bad, why in (
        (known & (right > tried), "more right answers than attempts: {} of {}"),
        (known & ((right < 0) | (tried < 0)), "a negative count: {} of {}"),
        (known & ((right % 1 != 0) | (tried % 1 != 0)), "counts that are not whole: {} of {}"),
        (known & (tried > _MOST), "more attempts than anyone makes: {1}"),
    ):
        if bad.any():
            row = int(np.flatnonzero(bad)[0])
            said = why.format(f"{right[row]:g}", f"{tried[row]:g}")
            raise InputError(f"{source} has {said} in row {row + 1}.")
    return [
        np.repeat([1.0, 0.0], [int(c), int(n - c)]) if ok else np.array([np.nan])
        for c, n, ok in zip(right, tried, known & (tried > 0), strict=True)
    ]


def is_simulations(data: Mapping[str, Any]) -> bool:
    """Return whether a JSON document holds simulations of tau2-bench."""
    rows = data.get("simulations")
    return isinstance(rows, list) and bool(rows) and all(isinstance(r, dict) and "task_id" in r for r in rows)


def read_simulations(data: Mapping[str, Any], path: Path) -> Block:
    """Read the reward of each simulation; trials are samples."""
    about = data.get("info") or {}
    rows = data["simulations"]
    scores, unusable = usable_scores({"reward": [(row.get("reward_info") or {}).get("reward") for row in rows]})
    if not scores:
        raise UnreadError(f"{format_path(path)} holds no rewards{f': reward {unusable}' if unusable else ''}.")
    model = (about.get("agent_info") or {}).get("llm") or path.stem
    domain = (about.get("environment_info") or {}).get("domain_name") or ""
    return Block(
        format_path(path),
        "tau2-bench simulations",
        model=one_name(str(model), len(rows)),
        task=one_name(str(domain), len(rows)),
        question=code_cells(hidden_cells(row["task_id"] for row in rows)),
        scores=scores,
        sample=code_cells(row.get("trial", 0) for row in rows),
    )
