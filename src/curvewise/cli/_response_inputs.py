"""Networks and examples in: what the commands of ``curvewise response`` share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from curvewise.cli._console import UsageError, note
from curvewise.cli._files import names_of
from curvewise.cli._options import DATA, NETWORK, Numbers, Texts
from curvewise.cli._response_options import read_options, worded

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from curvewise.nn import Examples
    from curvewise.nn.model_files import ModelFile
    from curvewise.study.dataset import Dataset


TRIED = 16
"""Examples that a network is tried on before it is measured."""


@Parameter(name="*", group=DATA)
@dataclass
class DataReading:
    """How to read the examples.

    Parameters
    ----------
    data
        Examples with their classes: an .npz file, a table, a folder of IDX files, of CIFAR's
        binary files or of images with a subfolder for each class; or a name, such as digits,
        fashion-mnist or cifar10.
    part
        Training or test examples. The scores are meant for those that the network was trained on.
    data_option
        How to read them, as KEY=VALUE, such as size=32 for a folder of images, or x=images for an
        .npz file; may be repeated.
    mean
        What was subtracted from pixels (from 0 to 1) when the network was trained: one number for
        each channel, such as 0.49,0.48,0.45. By default nothing.
    std
        What they were then divided by.
    normalise
        Take mean and std of the training examples, as networks of `curvewise study` do.
    """

    data: str
    part: Literal["train", "test"] = "train"
    data_option: Texts = field(default_factory=list)
    mean: Numbers = field(default_factory=list)
    std: Numbers = field(default_factory=list)
    normalise: Annotated[bool, Parameter(negative="", show_default=False)] = False

    def load(self) -> tuple[Dataset, Examples]:
        """The data, and the examples of the part asked for; says on stderr what was done."""
        from curvewise.nn import Examples
        from curvewise.study.datasets import load_dataset

        if bool(self.mean) != bool(self.std):
            raise UsageError("--mean and --std belong together: give both or neither.")
        if self.mean and self.normalise:
            raise UsageError("--normalise computes what --mean and --std say: give one of them.")
        with worded():
            dataset = load_dataset(self._spec())
        for text in dataset.notes:
            note(text)
        if self.part == "test" and dataset.test_x is None:
            raise UsageError(f"--part test: {dataset.name} has training examples only.")
        test = self.part == "test"
        x, y = (dataset.test_x, dataset.test_y) if test else (dataset.x, dataset.y)
        assert x is not None
        assert y is not None
        mean, std = self._scale(dataset)
        examples = Examples(x, y, len(dataset.classes), mean, std, dataset.padding)
        note(self._said(dataset, examples))
        return dataset, examples

    def _spec(self) -> str | dict[str, Any]:
        if not self.data_option:
            return self.data
        key = "path" if Path(self.data).exists() else "name"
        if self.data.startswith("hf:"):
            return {"hf": self.data.removeprefix("hf:"), **read_options(self.data_option)}
        return {key: self.data, **read_options(self.data_option)}

    def _scale(self, dataset: Dataset) -> tuple[tuple[float, ...] | None, tuple[float, ...] | None]:
        if self.normalise and dataset.padding is not None:
            raise UsageError("--normalise is for images and features, not for tokens.")
        if self.normalise:
            return _statistics(dataset.x)
        wanted = dataset.x.shape[1]
        for option, values in (("--mean", self.mean), ("--std", self.std)):
            if values and len(values) != wanted:
                what = "channels" if dataset.is_image else "features"
                raise UsageError(
                    f"{option} has {len(values)} number(s), and the data {wanted} {what}: give one "
                    "for each."
                )
        if self.std and min(self.std) <= 0:
            raise UsageError(f"--std {_numbers(self.std)}: give numbers above 0.")
        return tuple(self.mean) or None, tuple(self.std) or None

    def _said(self, dataset: Dataset, examples: Examples) -> str:
        shape = " × ".join(map(str, examples.shape))
        kind = "test" if self.part == "test" else "training"
        kept = f"{dataset.name}: {len(examples.y):,} {kind} examples of {examples.classes} classes"
        if examples.mean is not None and examples.std is not None:
            return (
                f"{kept}, {shape}; normalised with mean {_numbers(examples.mean)} and std "
                f"{_numbers(examples.std)}"
            )
        if not dataset.is_image:
            return f"{kept}, {shape}; taken as they are"
        return (
            f"{kept}, {shape}; the network is given pixels from 0 to 1, not normalised (--mean and "
            "--std, or --normalise, if it was trained so)"
        )


@Parameter(name="*", group=NETWORK)
@dataclass
class NetworkReading:
    """How to load networks.

    Parameters
    ----------
    factory
        What makes the network for a file of weights: module:function, called with shape, classes
        and options (installed, or a file in the current folder), or a name such as cnn
        or resnet18.
    factory_option
        An option of the factory, as KEY=VALUE; may be repeated.
    device
        Where to run it, such as cpu, cuda or cuda:1. By default a GPU if there is one.
    batch
        Examples at a time; by default what is quick.
    """

    factory: str | None = None
    factory_option: Annotated[
        list[str],
        Parameter(name=("--factory-option", "--factory-options"), negative="", show_default=False),
    ] = field(default_factory=list)
    device: str | None = None
    batch: Annotated[int | None, Parameter(validator=Number(gte=1))] = None

    @property
    def place(self) -> str | None:
        """The device asked for, or the first GPU; None for the CPU."""
        from curvewise.nn.devices import list_gpus

        return self.device or next(iter(list_gpus()), None)

    def load(
        self, files: Sequence[str], examples: Examples, layer: str | int | None = None
    ) -> dict[str, ModelFile]:
        """Each network under its name, tried on a few examples."""
        from curvewise.nn.model_files import check_answers, load_model
        from curvewise.nn.resident import find_device
        from curvewise.nn.sample import draw_sample

        options = read_options(self.factory_option)
        if self.device is not None:
            with worded():
                find_device(self.device)
        tried = draw_sample(examples, examples=TRIED)
        found = {}
        for file, name in names_of(files).items():
            with worded():
                loaded = load_model(
                    file,
                    shape=examples.shape,
                    classes=examples.classes,
                    factory=self.factory,
                    options=options,
                    layer=layer,
                    device=self.place,
                    folder=Path(),
                )
                check_answers(loaded, tried.given(tried.x))
            note("; ".join([f"{file}: {loaded.kind}", *loaded.notes]))
            found[name] = loaded
        return found


def _numbers(values: Sequence[float]) -> str:
    shown = ",".join(f"{value:.4g}" for value in values[:6])
    return shown + (",…" if len(values) > 6 else "")


def _statistics(x: NDArray[Any]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and spread of each feature, or of each channel from 0 to 1; 1 where nothing varies."""
    import numpy as np

    if x.ndim == 2:
        values = x.astype(np.float64)
        mean, std = values.mean(axis=0), values.std(axis=0)
    else:
        counts = [np.bincount(x[:, c].ravel(), minlength=256) for c in range(x.shape[1])]
        share = np.stack(counts) / counts[0].sum()
        levels = np.arange(256) / 255
        mean = share @ levels
        std = np.sqrt(np.maximum(share @ levels**2 - mean**2, 0))
    return tuple(mean.tolist()), tuple(np.where(std > 0, std, 1.0).tolist())
