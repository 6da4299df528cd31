"""Hugging Face datasets, saved to disk or in the cache; nothing is downloaded."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError, MissingDependencyError
from curvewise.io._table import brief, listed, suggest
from curvewise.study.datasets import npz
from curvewise.study.datasets._pictures import decode, decode_all
from curvewise.study.datasets._request import Request
from curvewise.study.datasets._source import Part, Rows, Source, array_part
from curvewise.study.datasets._texts import Encoding, encoding_of, text_part
from curvewise.study.datasets.tables import label_column, label_values

TEST = ("test", "validation", "val", "dev")


@dataclass(frozen=True, eq=False)
class Columns:
    """What to learn from: pictures (with channels), texts (with an encoding), or numbers."""

    names: list[str]
    channels: int | None = None
    size: tuple[int, int] | None = None
    encoding: Encoding | None = None
    kind: str | None = None


def is_hub_folder(names: Sequence[str]) -> bool:
    """Whether a folder with such files is a dataset that was saved to disk."""
    return "dataset_dict.json" in names or {"dataset_info.json", "state.json"} <= set(names)


def load_hub(request: Request, path: Path | None = None) -> Source:
    """Load a Hugging Face dataset: images, texts or numbers, whichever columns are asked for."""
    place = str(path) if path is not None else request.text("hf") or ""
    name, config = request.text("name") or Path(place).name, request.text("config")
    asked = request.text("train"), request.text("test")
    label_name = request.text("label")
    splits = _splits(_open(place, config, request.folder), place)
    train = _train(splits, asked[0], place)
    label = label_column(list(train.column_names), label_name, brief(place))
    test = _test(splits, asked, label)
    notes: list[str] = []
    columns = _columns(train, label, request)
    made = [_part(p, label, columns, place, notes) for p in (train, test) if p is not None]
    names = getattr(train.features[label], "names", None)
    return Source(
        made[0],
        made[1] if len(made) > 1 else None,
        None if names is None else tuple(names),
        name,
        columns.encoding.padding if columns.encoding else None,
        notes,
    )


def _open(place: str, config: str | None, folder: Path) -> Any:
    """A dataset in a folder, or one in the cache by its name."""
    try:
        package = importlib.import_module("datasets")
        hub_constants = importlib.import_module("huggingface_hub.constants")
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            f"data.hf={brief(place)} needs datasets, which is not installed: pip install "
            '"curvewise[text]".'
        ) from error
    local = folder / Path(place).expanduser()
    saved = local.is_dir() and is_hub_folder([p.name for p in local.iterdir()])
    switches = [(package.config, "HF_HUB_OFFLINE"), (hub_constants, "HF_HUB_OFFLINE")]
    before = [getattr(holder, key, False) for holder, key in switches]
    try:
        for holder, key in switches:  # the environment variable is only looked at on import
            setattr(holder, key, True)
        if saved:
            return package.load_from_disk(str(local))
        # Older versions run a script that lies in the folder, and ask on the terminal before.
        return package.load_dataset(
            str(local) if local.exists() else place, config, trust_remote_code=False
        )
    except Exception as error:  # the library raises its own, and those of everything below it
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise InputError(
            f"data.hf={brief(place, 200)} cannot be loaded without the network ({reason}): give "
            "the folder that save_to_disk wrote, or load it once with datasets.load_dataset."
        ) from error
    finally:
        for (holder, key), value in zip(switches, before, strict=True):
            setattr(holder, key, value)


def _splits(found: Any, place: str) -> dict[str, Any]:
    splits = dict(found) if hasattr(found, "keys") else {"train": found}
    if not splits or not all(hasattr(part, "column_names") for part in splits.values()):
        raise InputError(f"data.hf={brief(place)} holds no table of examples.")
    return splits


def _train(splits: dict[str, Any], asked: str | None, place: str) -> Any:
    name = asked or ("train" if "train" in splits else None)
    if name is None and len(splits) == 1:
        name = next(iter(splits))
    if name not in splits:
        raise InputError(
            f"{brief(place)} has the parts {listed(splits)}: say which one to train on, with "
            f"data.train=…{suggest(name, splits)}"
        )
    return splits[name]


def _test(splits: dict[str, Any], asked: tuple[str | None, str | None], label: str) -> Any:
    """The part to test on; one whose labels are withheld (-1) does not do."""
    train, test = asked
    if test is not None and test not in splits:
        raise InputError(
            f"data.test={brief(test)}: there are the parts {listed(splits)}.{suggest(test, splits)}"
        )
    for name in TEST if test is None else (test,):
        if name in splits and name != train and label in splits[name].column_names:
            labels = np.asarray(splits[name][label])
            if test is not None or labels.dtype.kind not in "iu" or not np.all(labels == -1):
                return splits[name]
    return None


def _columns(train: Any, label: str, request: Request) -> Columns:
    """The columns to learn from: as asked for, else what there is beside the label."""
    kinds = {name: kind for name, kind in train.features.items() if name != label}
    image, features = request.text("image"), request.texts("features")
    if "text" in request:
        encoding = encoding_of(request)
        return Columns(encoding.columns, encoding=encoding)
    pictures = [name for name, kind in kinds.items() if type(kind).__name__ == "Image"]
    if image is None and features is None and len(pictures) == 1:
        image = pictures[0]
    if image is not None:
        channels = request.one_of("channels", (1, 3), 3)
        return Columns([image], channels=channels, size=request.size("size"))
    texts = [name for name, kind in kinds.items() if getattr(kind, "dtype", "") == "string"]
    if features is None and texts:
        raise InputError(
            f"There are columns of text, {listed(texts)}: say which to learn from, with "
            "data.text=… and data.tokenizer=…, or name the numbers in data.features=[…]."
        )
    kind = request.one_of("kind", ("features", "tokens"))
    return Columns(features or list(kinds), kind=kind)


def _part(part: Any, label: str, columns: Columns, place: str, notes: list[str]) -> Part:
    for name in columns.names:
        if name not in part.column_names:
            raise InputError(
                f"{brief(place)} has no column {brief(name)}, but {listed(part.column_names)}."
                f"{suggest(name, part.column_names)}"
            )
    labels = label_values(part[label][:], label)
    if columns.encoding is not None:
        texts = [part[name][:] for name in columns.names]
        return text_part(texts, labels, columns.encoding, brief(place), notes)
    if columns.channels is not None:
        return Part(labels, partial(_pictures, part, columns))
    return array_part(_numbers(part, columns, notes), labels, brief(place), brief(label))


def _pictures(part: Any, columns: Columns, rows: Rows | None) -> NDArray[np.uint8]:
    name, channels = columns.names[0], columns.channels or 3
    undecoded = importlib.import_module("datasets").Image(decode=False)
    cells = part.cast_column(name, undecoded)
    wanted = list(range(len(cells)) if rows is None else map(int, rows))

    def one(i: int) -> NDArray[np.uint8]:
        cell = cells[i][name]
        source = cell["bytes"] if cell["bytes"] is not None else Path(cell["path"])
        return decode(source, columns.size, channels)

    return decode_all(wanted, one, lambda i: f"{brief(name)} of example {wanted[i]}")


def _numbers(part: Any, columns: Columns, notes: list[str]) -> NDArray[Any]:
    """One column of vectors, or several columns of numbers beside each other."""
    try:
        found = [np.asarray(part[name][:]) for name in columns.names]
        x = found[0] if len(found) == 1 and found[0].ndim > 1 else np.column_stack(found)
    except ValueError as error:
        raise InputError(
            f"{listed(columns.names)} do not form a table ({error}): they must be numbers, or "
            "vectors of one length."
        ) from error
    kind = columns.kind or ("features" if len(found) > 1 else None)
    return npz.as_inputs(x, listed(columns.names, 3), None, kind, notes)
