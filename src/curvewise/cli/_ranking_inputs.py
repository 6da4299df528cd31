"""Checkpoints, examples and labels in: what ``curvewise ranking rank`` reads."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from curvewise.cli._console import UsageError, note
from curvewise.cli._files import names_of
from curvewise.cli._ranking_words import worded
from curvewise.cli._response_inputs import DATA, NETWORK
from curvewise.cli._response_options import read_options

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from curvewise.study.dataset import Dataset

ARRAYS = (".npy", ".npz")
"""Endings of files that hold features."""

ENDINGS = (".pt2", ".pt", ".pth", ".onnx", ".tflite", ".safetensors", *ARRAYS)
"""Endings of the files that a folder of checkpoints is searched for."""

KEYS = (
    *("path", "layer", "factory", "options", "preprocessing", "pool", "tokenizer", "length"),
    *("shape", "classes", "source_accuracy"),
)
"""What a .toml file may say of a checkpoint."""

_LABELS = ("labels", "label", "y", "targets", "target", "classes")
_Texts = Annotated[list[str], Parameter(negative="", show_default=False)]


@dataclass(frozen=True)
class Found:
    """A checkpoint by its name, its file, and what is said of it."""

    name: str
    path: Path
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_array(self) -> bool:
        """Whether it is a file of features."""
        return self.path.suffix.lower() in ARRAYS


def find_checkpoints(words: Sequence[str], labels: Path | None = None) -> list[Found]:
    """Checkpoints out of files, folders, NAME=FILE, and .toml files that list them.

    A file of labels in one of the folders is none of them.
    """
    named: list[Found] = []
    plain: list[str] = []
    for word in words:
        name, equals, path = word.partition("=")
        if equals and not Path(word).exists():
            named.append(Found(name.strip(), _there(Path(path))))
        elif Path(word).suffix.lower() == ".toml":
            named += _listed(_there(Path(word)))
        else:
            plain += _files(_there(Path(word)), labels)
    found = [Found(name, Path(file)) for file, name in names_of(plain).items()] + named
    for one in found:
        if not one.name or sum(other.name == one.name for other in found) > 1:
            raise UsageError(
                f"{one.path}: {one.name!r} names another checkpoint, too. Name it with "
                f"NAME={one.path}."
            )
    return found


def _there(path: Path) -> Path:
    if not path.exists():
        raise UsageError(f"{path}: there is no such file or folder.")
    return path


def _files(path: Path, labels: Path | None) -> list[str]:
    """The file itself; of a folder what is in it, unless it is one checkpoint."""
    if not path.is_dir() or (path / "config.json").exists():
        return [str(path)]
    inside = [p for p in sorted(path.iterdir()) if labels is None or not _same(p, labels)]
    found = [
        str(p)
        for p in inside
        if p.suffix.lower() in ENDINGS or (p.is_dir() and (p / "config.json").exists())
    ]
    if not found:
        raise UsageError(f"{path}: no checkpoint is in this folder ({', '.join(ENDINGS)}).")
    left = [p.name for p in inside if str(p) not in found and not p.name.startswith(".")]
    if left:
        note(f"{path}: left out {', '.join(left[:5])}{' …' if len(left) > 5 else ''}")
    return found


def _same(one: Path, other: Path) -> bool:
    return other.exists() and one.samefile(other)


def _listed(path: Path) -> list[Found]:
    """Checkpoints of a .toml file: a table for each, named by its key."""
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is no TOML file: {error}.") from error
    found = []
    for name, table in tables.items():
        if not isinstance(table, dict) or "path" not in table:
            raise UsageError(
                f"{path}: {name} must be a table with the file of a checkpoint, such as "
                f'[{name}] path = "net.onnx".'
            )
        if odd := set(table) - set(KEYS):
            raise UsageError(f"{path}: {name} has {min(odd)!r}: use {', '.join(KEYS)}.")
        about = {key: value for key, value in table.items() if key != "path"}
        found.append(Found(name, _there(path.parent / table["path"]), about))
    return found


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
        in each line. A class, several of 0 and 1, or a number.
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
    data_option: _Texts = field(default_factory=list)
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
        mean=[0.5,0.5,0.5], std=…, interpolation=bicubic, channels=grey; may be repeated. A .toml
        file of checkpoints says it of each.
    cache
        Folder for features, which are found again there.
    factory
        What makes the network for a file of weights: module:function, called with shape, classes
        and options (the module is looked for in the current folder first), or a name such as cnn
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
    preprocess: _Texts = field(default_factory=list)
    cache: Path | None = None
    factory: str | None = None
    factory_option: _Texts = field(default_factory=list)
    device: str | None = None
    batch: Annotated[int | None, Parameter(validator=Number(gte=1))] = None
    precision: Literal["float32", "bfloat16", "float16"] = "float32"

    @property
    def making(self) -> dict[str, Any]:
        """What holds for every checkpoint of which nothing else is said."""
        given = {
            "factory": self.factory,
            "options": read_options(self.factory_option) or None,
            "preprocessing": read_options(self.preprocess) or None,
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
        }


def read_labels(path: Path) -> NDArray[Any]:
    """Labels out of .npy, .npz or lines of text."""
    import numpy as np

    _there(path)
    try:
        if path.suffix.lower() == ".npy":
            return np.asarray(np.load(path, allow_pickle=False))
        if path.suffix.lower() == ".npz":
            return _one_array(path)
    except (ValueError, OSError) as error:
        raise UsageError(f"--labels {path} cannot be read: {error}") from error
    lines = [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines()]
    lines = [line for line in lines if line]
    if lines and lines[0].strip('"').lower() in _LABELS:
        lines = lines[1:]
    if not lines or any("," in line for line in lines):
        raise UsageError(f"--labels {path}: give one label in each line, or an .npy file.")
    try:
        return np.array([float(line) for line in lines])
    except ValueError:
        return np.array(lines)


def _one_array(path: Path) -> NDArray[Any]:
    import numpy as np

    with np.load(path, allow_pickle=False) as arrays:
        names = [name for name in _LABELS if name in arrays] or list(arrays)
        if len(names) > 1 and names[0] not in _LABELS:
            raise UsageError(f"--labels {path} holds {', '.join(names)}: call one of them labels.")
        return np.asarray(arrays[names[0]])
