"""Checkpoints, examples and labels in: what ``curvewise ranking rank`` reads."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from curvewise.cli._console import UsageError, note
from curvewise.cli._options import Texts
from curvewise.cli._ranking_found import Found, there
from curvewise.cli._ranking_words import worded
from curvewise.cli._response_inputs import DATA, NETWORK
from curvewise.cli._response_options import read_options
from curvewise.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from curvewise.study.dataset import Dataset

_LABELS = ("labels", "label", "y", "targets", "target", "classes")
_WHOLE = re.compile(r"[+-]?[0-9]+")


@Parameter(name="*", group=DATA)
@dataclass
class TargetReading:
    """What to rank for.

    Parameters
    ----------
    data
        Examples with their classes: an .npz file, a table, a folder of IDX files, of CIFAR's
        binary files or of images with a subfolder for each class; or a name, such as digits,
        fashion-mnist or cifar10. Not needed where all checkpoints are files of features.
    labels
        File with the label of each example, for files of features: .npy, .npz, or text with one
        in each line. A class, several of 0 and 1, or a number; whole numbers in text are classes.
    part
        Training or test examples.
    data_option
        How to read them, as KEY=VALUE, such as size=32 for a folder of images, or x=images for an
        .npz file; may be repeated.
    examples
        How many to take at random, at most.
    """

    data: str | None = None
    labels: Path | None = None
    part: Literal["train", "test"] = "train"
    data_option: Texts = field(default_factory=list)
    examples: Annotated[int | None, Parameter(validator=Number(gte=4))] = None

    def check(self, found: Sequence[Found]) -> None:
        """Refuse what cannot be ranked."""
        network = next((one for one in found if not one.is_array), None)
        if self.data is None and network is not None:
            raise UsageError(
                f"--data is missing: {network.path} is a network, which needs examples."
            )
        if self.data is None and self.labels is None:
            raise UsageError("--labels is missing: give the label of each example.")
        if self.data is not None and self.labels is not None:
            raise UsageError("--data brings its labels: leave --labels out, or --data.")

    def told(self) -> dict[str, str]:
        """What is ranked for, in words."""
        what = {"data": f"{self.data} ({self.part})"} if self.data else {"labels": str(self.labels)}
        many = {} if self.examples is None else {"examples": f"at most {self.examples:,}"}
        return {**what, **many}

    def load(self) -> tuple[Any, NDArray[Any], str]:
        """Examples (None for features alone), labels, and what to call them."""
        if self.data is None:
            assert self.labels is not None
            return None, read_labels(self.labels), self.labels.name
        from curvewise.study.datasets import load_dataset

        with worded():
            dataset = load_dataset(self._spec())
        for text in dataset.notes:
            note(text)
        x, y = self._part(dataset)
        note(f"{dataset.name}: {len(y):,} examples of {len(dataset.classes)} classes")
        return x, y, dataset.name

    def _part(self, dataset: Dataset) -> tuple[Any, NDArray[Any]]:
        if self.part == "train":
            return dataset.x, dataset.y
        if dataset.test_x is None or dataset.test_y is None:
            raise UsageError(f"--part test: {dataset.name} has training examples only.")
        return dataset.test_x, dataset.test_y

    def _spec(self) -> str | dict[str, Any]:
        assert self.data is not None
        if not self.data_option:
            return self.data
        options = read_options(self.data_option)
        if self.data.startswith("hf:"):
            return {"hf": self.data.removeprefix("hf:"), **options}
        return {"path" if Path(self.data).exists() else "name": self.data, **options}


@Parameter(name="*", group=NETWORK)
@dataclass
class FeatureReading:
    """How to get features out of checkpoints.

    Parameters
    ----------
    layer
        Where features are taken: a submodule, or a tensor of ONNX and TFLite. By default what the
        last linear layer is given.
    preprocess
        What is done to images where a file does not say it, as KEY=VALUE: size=224, crop=224,
        mean=[0.5,0.5,0.5], std=…, interpolation=bicubic, channels=grey; may be repeated. What a
        .toml file says of a checkpoint comes first.
    cache
        Folder for features, which are found again there.
    factory
        What makes the network for a file of weights: module:function, called with shape, classes
        and options (installed, or a file in the current folder), or a name such as cnn
        or resnet18.
    factory_option
        An option of the factory, as KEY=VALUE; may be repeated.
    device
        Where to run networks, such as cpu, cuda or cuda:1. By default a GPU if there is one.
    batch
        Examples at a time; by default what is quick.
    precision
        Of the arithmetic.
    """

    layer: str | None = None
    preprocess: Texts = field(default_factory=list)
    cache: Path | None = None
    factory: str | None = None
    factory_option: Texts = field(default_factory=list)
    device: str | None = None
    batch: Annotated[int | None, Parameter(validator=Number(gte=1))] = None
    precision: Literal["float32", "bfloat16", "float16"] = "float32"

    @property
    def making(self) -> dict[str, Any]:
        """What holds for every checkpoint of which nothing else is said."""
        given = {
            "factory": self.factory,
            "options": read_options(self.factory_option) or None,
            "layer": self.layer,
        }
        return {key: value for key, value in given.items() if value is not None}

    @property
    def running(self) -> dict[str, Any]:
        """How networks are run."""
        return {
            "batch": self.batch,
            "device": self.device,
            "precision": self.precision,
            "cache": self.cache,
            "preprocessing": read_options(self.preprocess) or None,
        }


def read_labels(path: Path) -> NDArray[Any]:
    """Labels out of .npy, .npz or lines of text."""
    import numpy as np

    there(path)
    from curvewise.io._arrays import map_npy
    from curvewise.io._files import read_text

    try:
        if path.suffix.lower() == ".npy":
            return np.asarray(map_npy(path))
        if path.suffix.lower() == ".npz":
            return _one_array(path)
        lines = [line.strip() for line in read_text(path).splitlines()]
    except InputError as error:
        raise UsageError(f"--labels {path} cannot be read: {error}") from error
    lines = [line for line in lines if line]
    if lines and lines[0].strip('"').lower() in _LABELS:
        lines = lines[1:]
    if not lines or any("," in line for line in lines):
        raise UsageError(f"--labels {path}: give one label in each line, or an .npy file.")
    try:
        if all(_WHOLE.fullmatch(line) for line in lines):
            return np.array([int(line) for line in lines], dtype=np.int64)
        return np.array([float(line) for line in lines])
    except (ValueError, OverflowError):
        return np.array(lines)


def _one_array(path: Path) -> NDArray[Any]:
    import numpy as np

    from curvewise.io._arrays import named_arrays

    every, get = named_arrays(path)
    names = [name for name in _LABELS if name in every] or every
    if len(names) != 1 and (not names or names[0] not in _LABELS):
        raise UsageError(f"--labels {path} holds {', '.join(names)}: call one of them labels.")
    return np.asarray(get(names[0]))
