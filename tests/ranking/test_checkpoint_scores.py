"""The table that ranking measures are judged on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from curvewise.errors import InputError
from curvewise.ranking.load import CheckpointScores


def made(**options: Any) -> CheckpointScores:
    given: dict[str, Any] = {
        "checkpoints": ["a", "b", "scratch", "c", "scratch"],
        "accuracy": [0.8, 0.9, 0.5, 0.7, 0.5],
        "scores": {"m": [1, 2, np.nan, 3, np.nan]},
        "tasks": ["t"] * 5,
        "groups": ["x", "x", "x", "y", "y"],
        "reference": ("scratch",),
        "gflops": {"m": [1.0] * 5},
    }
    return CheckpointScores(**(given | options))


def test_parts() -> None:
    table = made()
    assert repr(table) == "CheckpointScores(3 checkpoints, 1 task, 2 groups, 1 measure)"
    assert table.ranked.tolist() == [True, True, False, True, False]
    assert {k: len(v) for k, v in table.by_group().items()} == {"x": 3, "y": 2}
    assert list(table.by_task()) == ["t"]
    assert table.by_group()["y"].gflops["m"].tolist() == [1.0, 1.0]


def test_union_keeps_what_groups_share_once() -> None:
    union = made().union()
    assert union.checkpoints.tolist() == ["a", "b", "scratch", "c"]
    assert union.group_names == ("union",)
    assert union.scores["m"].tolist()[3] == 3


def test_without_tasks_and_groups_there_is_one_of_each() -> None:
    table = CheckpointScores(["a", "b"], [0.1, 0.2])
    assert table.task_names == ("one task",)
    assert table.group_names == ("all checkpoints",)
    assert table.measures == ()


def test_further_scores() -> None:
    table = made().with_scores({"n": [5, 4, 3, 2, 1]}, {"n": [2.0] * 5})
    assert table.measures == ("m", "n")
    assert table.gflops["n"].tolist() == [2.0] * 5
    assert made().measures == ("m",)


def test_select_by_mask_and_by_position() -> None:
    table = made()
    assert table.select(table.groups == "y").checkpoints.tolist() == ["c", "scratch"]
    assert table.select([3, 0]).checkpoints.tolist() == ["c", "a"]
    with pytest.raises(InputError, match="mask selects none of the rows"):
        table.select(np.zeros(5, dtype=bool))
    with pytest.raises(InputError, match="mask has shape"):
        table.select(np.zeros(4, dtype=bool))


def test_frame() -> None:
    pytest.importorskip("pandas")
    frame = made().frame()
    assert list(frame) == ["group", "task", "checkpoint", "reference", "accuracy", "m"]
    assert frame["reference"].tolist() == [False, False, True, False, True]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"checkpoints": []}, "checkpoints is empty"),
        ({"accuracy": [0.5]}, "accuracy has shape"),
        ({"accuracy": [0.5, np.inf, 0.1, 0.1, 0.1]}, "infinite"),
        ({"tasks": ["t"]}, "tasks has shape"),
        ({"checkpoints": ["a", "a", "scratch", "c", "scratch"]}, "'a' 2 times for task 't'"),
        ({"scores": {"m": [1.0]}}, "has shape"),
        ({"scores": {"m": [1.0] * 5, "task": [1.0] * 5}}, "name of another column"),
        ({"baselines": ("z",)}, "baselines='z': none of the scores"),
        ({"gflops": {"z": [1.0] * 5}}, "gflops='z': none of the scores"),
        ({"accuracy": ["x"] * 5}, "must hold numbers"),
    ],
)
def test_bad_tables(change: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        made(**change)


def test_names_that_differ_in_blanks_only_are_refused() -> None:
    with pytest.raises(InputError, match="differ only in blanks"):
        CheckpointScores(["a", "a "], [0.1, 0.2])
    assert CheckpointScores([" a", "b"], [0.1, 0.2], reference=("a ",)).ranked.tolist() == [False, True]
