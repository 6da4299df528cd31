"""What stands for a checkpoint, its name, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch import nn

from curvewise.errors import InputError
from curvewise.ranking.measure import CheckpointFeatures
from curvewise.ranking.networks.checkpoints import Checkpoint, as_checkpoint, as_checkpoints


def test_names_come_from_files_classes_and_functions(tmp_path: Path) -> None:
    (tmp_path / "bert.base").mkdir()

    def pixels(x: Any) -> Any:
        return x

    found = as_checkpoints([tmp_path / "bert.base", "a/vgg.v2.onnx", nn.Linear(2, 2), pixels, np.zeros((2, 2))])
    assert [c.name for c in found] == ["bert.base", "vgg.v2", "Linear", "pixels", "ndarray"]


def test_a_mapping_names_and_repeated_names_are_numbered() -> None:
    one = Checkpoint("one", nn.Linear(2, 2), source_accuracy=0.5)
    assert [c.name for c in as_checkpoints({"a": one, "b": "x.onnx"})] == ["a", "b"]
    assert as_checkpoint(one, "a").source_accuracy == 0.5
    assert [c.name for c in as_checkpoints([one, one, "one.pt2"])] == ["one", "one (2)", "one (3)"]
    assert [c.name for c in as_checkpoints("alone.pt2")] == ["alone"]


def test_features_keep_what_is_known_of_their_checkpoint() -> None:
    kept = CheckpointFeatures("kept", np.zeros((3, 2)), source_accuracy=0.7)
    assert as_checkpoint(kept).source_accuracy == 0.7
    assert repr(Checkpoint("a", "b/c.onnx")) == f"Checkpoint('a', {Path('b/c.onnx')})"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (lambda: Checkpoint("", None), "give each checkpoint a name"),
        (lambda: Checkpoint("a", None, pool="max"), "use one of auto, mean, first"),
        (lambda: Checkpoint("a", None, source_accuracy=76.1), "fraction from 0 to 1"),
        (lambda: Checkpoint("a", None, source_accuracy="high"), "fraction from 0 to 1"),
        (lambda: Checkpoint("a", None, layer=3), "a name, as text"),  # type: ignore[arg-type]
        (lambda: as_checkpoint(3), "checkpoint is a int"),
        (lambda: as_checkpoints(3), "checkpoints is a int"),
        (lambda: as_checkpoints([]), "checkpoints is empty"),
    ],
    ids=["name", "pool", "accuracy", "text", "layer", "one", "many", "none"],
)
def test_what_is_no_checkpoint_is_told(given: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        given()


def test_no_two_checkpoints_have_one_name() -> None:
    one = nn.Linear(4, 2)
    given = [Checkpoint(name, one) for name in ("a", "a", "a (2)", "a")]
    names = [c.name for c in as_checkpoints(given)]
    assert names == ["a", "a (2)", "a (2) (2)", "a (3)"]
    assert [c.name for c in as_checkpoints({1: one, "1": one})] == ["1", "1 (2)"]
    with pytest.raises(InputError, match="is empty"):
        as_checkpoints({})
