"""Load data by name, from files, tables, Hugging Face or a function, and keep a copy of what a function made."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import json
import os
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import (
    CurvewiseError,
    InputError,
    StoreError,
    arg,
    brief,
    format_path,
    importing,
    list_names,
    os_reason,
    suggest,
)
from curvewise.nn.own_code import failure, find_function, importable
from curvewise.reading.table import check_file, check_names, is_missing, large_files, parquet_frame
from curvewise.store.read import COPY_ARRAYS, COPY_FIELDS, DATA, read_about, read_copy, unreadable_data
from curvewise.store.write import write_file
from curvewise.study.data import arrays as npz
from curvewise.study.data.arrays import (
    is_cifar_name,
    is_idx_name,
    is_svhn_name,
    load_cifar,
    load_idx,
    load_npz,
    load_svhn,
)
from curvewise.study.data.dataset import (
    TARGETS,
    DataPart,
    Dataset,
    DataSource,
    Request,
    RowIndices,
    array_part,
    check_precision,
    make_dataset,
)
from curvewise.study.data.images import (
    decode,
    file_part,
    image_reading,
    load_image_folder,
    load_torchvision,
    picture_part,
)

if TYPE_CHECKING:
    import pandas as pd


PACKAGED_NAMES = ("digits", "iris", "wine", "breast-cancer")
"""Small data sets that come with scikit-learn."""

Loader = Callable[[Path, Request], DataSource]

PLACED: dict[str, tuple[Loader, tuple[str, ...]]] = {
    "mnist": (load_idx, ("mnist", "MNIST/raw")),
    "fashion-mnist": (load_idx, ("fashion-mnist", "FashionMNIST/raw", "/usr/share/datasets/fashion-mnist")),
    "cifar10": (load_cifar, ("cifar10", "cifar-10-batches-bin", "cifar10_jpeg.npz")),
    "cifar100": (load_cifar, ("cifar100", "cifar-100-binary")),
    "svhn": (load_svhn, ("svhn", "SVHN")),
}
"""Data that must be fetched first: who reads it, and where it is looked for."""

REMEDIES = {
    "mnist": "fetch its four IDX files",
    "fashion-mnist": "apt-get install dataset-fashion-mnist, or fetch its four IDX files",
    "cifar10": "fetch its binary version (cifar-10-binary.tar.gz) and unpack it",
    "cifar100": "fetch its binary version (cifar-100-binary.tar.gz) and unpack it",
    "svhn": "fetch train_32x32.mat and test_32x32.mat",
}

OWN = re.compile(r"[\w.]{2,}:\w+")  # module:function; no drive of Windows

NAMES = (*PACKAGED_NAMES, *PLACED)
"""Data that can be asked for by name."""


def load_dataset(
    spec: str | os.PathLike[str] | Mapping[str, Any], *, folder: str | os.PathLike[str] = Path()
) -> Dataset:
    """Load the examples of a classification problem, or with numbers to predict.

    Parameters
    ----------
    spec : str, path or dict
        A name (``"digits"``, ``"iris"``, ``"wine"``, ``"breast-cancer"``, ``"mnist"``,
        ``"fashion-mnist"``, ``"cifar10"``, ``"cifar100"``, ``"svhn"``); a path; ``"hf:PATH"``; or a dict, as
        the table of data in a study file. The file type decides how a path is read:

        - ``.npz``: arrays; ``x``, ``y``, ``test_x``, ``test_y`` say which, ``axes`` ("NCHW",
          "NHWC") and ``kind`` ("features", "tokens") what they are where that is in doubt; or an
          archive of JPEG images.
        - ``.csv``, ``.tsv``, ``.parquet``: a table; ``label`` names the column of classes,
          ``features`` those to learn from, ``test`` a second file with test examples. With
          ``image``, a column of image files, in the table's folder or in ``root``; a column
          ``split`` says "train" or "test".
        - a folder with IDX files, gzipped or not; with CIFAR's binary files (``labels``: "fine" or
          "coarse"); with SVHN's ``train_32x32.mat`` and ``test_32x32.mat``; with images in a
          subfolder for each class, perhaps below ``train`` and ``test`` (``test`` names another
          folder, ``on_error``: "raise" or "skip"); or with a Hugging Face dataset saved to disk.

        Image files take ``size`` (the shorter side is scaled, the middle cut out), ``channels`` (1
        or 3) and ``cache``, a folder in which the decoded images are kept: the next time they are
        mapped into memory, however many there are.

        ``{"hf": PATH_OR_NAME}`` reads a Hugging Face dataset without the network
        (``image``, ``text``, ``label``, ``features``: columns), ``{"torchvision": "CIFAR10",
        "root": FOLDER}`` one of torchvision. Texts, in a table or a Hugging Face dataset, take
        ``text`` (the column, or two), ``tokenizer`` (a folder) and ``length`` (128). Of two columns
        ``segments=True`` also keeps which text a token belongs to, for ``hf:`` networks such as BERT.

        ``targets="numbers"`` takes the labels, of a ``.npz`` file or a table, for numbers to
        predict: (examples,), (examples, k) or images, whose axes are those of the inputs;
        ``standardise=True`` lets a study standardise them.

        ``"MODULE:FUNCTION"``, or ``{"function": …}`` with its options, calls a function of your
        own, which gives a :class:`Dataset`.

        ``examples`` and ``test_examples`` take at most that many, drawn class by class (numbers:
        from all) with a fixed seed. ``classes`` groups the classes, see :meth:`Dataset.grouped`.
        ``name`` beside ``path`` only says what to call the data.
        ``allow_large=True`` reads compressed files that unpack to more than 1 GiB.
    folder : path
        Where relative paths start.

    Returns
    -------
    Dataset
        Labels become classes from 0 on: texts, and numbers that are not 0 to k - 1, in sorted
        order, with their names kept.

    Raises
    ------
    InputError
        If something is missing, damaged or in doubt; the message says what to do.
    MissingDependencyError
        If the data needs a package that is not installed.

    Examples
    --------
    >>> load_dataset("digits")
    Dataset('digits': 1,797 examples, 10 classes, inputs (1, 8, 8) uint8)
    >>> load_dataset({"name": "digits", "examples": 200}).notes[-1]
    'examples: 200 of 1,797, drawn class by class with seed 0.'
    """
    request = Request(_options(spec, Path(folder)), Path(folder))
    if "function" in request:
        return make_own(request)
    limits = request.count("examples"), request.count("test_examples")
    targets = request.one_of("targets", TARGETS, "classes")
    standardise = request.one_of("standardise", (True, False), False)
    groups = request.take("classes")
    large = request.one_of("allow_large", (True, False), False)
    with large_files(True) if large else nullcontext():
        source = _source(request)
        request.finish()
        if standardise and targets != "numbers":
            raise InputError(
                f"{arg('data.standardise', True)} is for {arg('data.targets', 'numbers')}, and these are classes."
            )
        found = make_dataset(source, *limits, targets=targets, standardise=standardise)
        return found if groups is None else found.grouped(groups)


def made_by(spec: Any, folder: Path) -> dict[str, Any] | None:
    """Give the function that makes the data, with its options; None for data that is read.

    >>> made_by("nets:clouds", Path()), made_by("digits", Path())
    ({'function': 'nets:clouds'}, None)
    """
    options = {} if isinstance(spec, Dataset) else _options(spec, folder)
    return options if isinstance(options.get("function"), str) else None


def _options(spec: Any, folder: Path) -> dict[str, Any]:
    """The short forms, written out."""
    if isinstance(spec, Mapping):
        return {str(key): value for key, value in spec.items()}
    if isinstance(spec, os.PathLike):
        return {"path": spec}
    if not isinstance(spec, str) or not spec:
        raise InputError("give a name, a path, or a table with either.", argument="data", value=spec)
    if spec.startswith("hf:"):
        return {"hf": spec.removeprefix("hf:")}
    if OWN.fullmatch(spec) and not (folder / spec).exists():
        return {"function": spec}
    mistyped = re.fullmatch(r"[\w-]+", spec) and not (folder / spec).exists()
    return {"name" if spec.lower() in NAMES or mistyped else "path": spec}


def _source(request: Request) -> DataSource:
    kinds = [key for key in ("hf", "torchvision", "path") if key in request]
    if len(kinds) > 1:
        raise InputError(f"data has {' and '.join(kinds)}: give one of them.")
    readers: dict[str, Callable[[Request], DataSource]]
    readers = {"hf": load_hub, "torchvision": load_torchvision, "path": _from_path}
    return readers.get("".join(kinds), _from_name)(request)


def _from_name(request: Request) -> DataSource:
    name = request.text("name")
    if name is None:
        raise InputError("data has neither name, path, hf, torchvision nor function: give one of them.")
    known = name.lower()
    if known in PACKAGED_NAMES:
        return load_packaged(known)
    if known not in PLACED:
        raise InputError(
            f"{arg('data', name)} is not known: use a path, 'module:function', or one of "
            f"{list_names(NAMES)}.{suggest(name, NAMES)}"
        )
    load, places = PLACED[known]
    roots = [Path(root).expanduser() for root in [os.environ.get("CURVEWISE_DATA")] if root]
    tried = [root / place for root in [request.folder, *roots] for place in places]
    for path in dict.fromkeys(tried):
        if path.exists():
            return load(path, request)
    raise InputError(
        f"{arg('data', name)} is not on this machine: {REMEDIES[known]}, and give its path. Looked "
        f"for {', '.join(dict.fromkeys(map(str, tried)))}; the environment variable CURVEWISE_DATA "
        "can name a further folder."
    )


def _from_path(request: Request) -> DataSource:
    path = request.path("path")
    assert path is not None
    if path.is_dir():
        return _from_folder(path, request)
    suffix = path.suffix.lower()
    if suffix == ".npz":
        return load_npz(path, request)
    if suffix in SUFFIXES:
        return load_image_table(path, request) if "image" in request else load_table(path, request)
    if is_svhn_name(path.name):
        return load_svhn(path.parent, request)
    if is_idx_name(path.name):
        raise InputError(f"{format_path(path)} is one of several IDX files: give their folder.")
    raise InputError(
        f"{format_path(path)}: files that end in {suffix or 'nothing'} are not read. Give .npz, "
        f"{', '.join(SUFFIXES)}, or a folder of IDX files, CIFAR files or images."
    )


def _from_folder(path: Path, request: Request) -> DataSource:
    names = [entry.name for entry in path.iterdir()]
    if not names:
        raise InputError(f"The folder {format_path(path)} is empty.")
    called = request.text("name")
    if called is not None and called.lower() in PLACED:
        return PLACED[called.lower()][0](path, request)
    if any(is_idx_name(name) for name in names):
        return load_idx(path, request)
    if any(is_cifar_name(name) for name in names):
        return load_cifar(path, request)
    if any(is_svhn_name(name) for name in names):
        return load_svhn(path, request)
    if is_hub_folder(names):
        return load_hub(request, path)
    return load_image_folder(path, request)


# Data that a function of the user's makes, and the copy of it that a store keeps.
#
# A study that is not trusted does not call the function. It reads the copy that ``run`` left.


def make_own(request: Request) -> Dataset:
    """Call ``function``, as ``"module:function"``, with all other options by name.

    The module is one that is installed, or a file in the study's folder. The function must give
    the same :class:`~curvewise.study.Dataset` every time, in every process: runs are named by what
    is in it, and each worker calls it for itself.
    """
    name = request.text("function")
    assert name is not None
    asked = arg("data.function", name)
    if not all(name.partition(":")[::2]):
        raise InputError(f"{asked}: give 'module:function'.")
    options = request.rest()
    called = find_function("data.function", name, request.folder)
    _check_options(asked, called, options)
    try:
        with importable(request.folder):  # files beside it, which it may import only now
            found = called(**options)
    except InputError as error:  # of a Dataset that cannot be, say
        raise InputError(f"{asked}: {error}") from error
    except CurvewiseError:
        raise
    except (Exception, SystemExit) as error:
        raise InputError(f"{asked} {failure(error, request.folder)}") from error
    if not isinstance(found, Dataset):
        raise InputError(
            f"{asked} gives {type(found).__name__}: let it return cw.study.Dataset(x, y), with "
            "test_x and test_y if there are any, and targets='numbers' for numbers."
        )
    return found


def _check_options(asked: str, function: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Refuse options that the function does not take, and name those that it does."""
    try:
        takes = inspect.signature(function)
    except (TypeError, ValueError):  # some that are written in C do not say
        return
    try:
        takes.bind(**options)
    except TypeError as error:
        names = ", ".join(takes.parameters) or "no options"
        raise InputError(f"{asked}: {error}; it takes {names}.") from error


@dataclass(frozen=True, eq=False)
class DataCopy:
    """A copy, in a store, of the data that a function made.

    Attributes
    ----------
    options : dict
        The function and its options; another function or other options have another file.
    store : Path
        Where it is kept.
    folder : Path
        Of the study.
    """

    options: Mapping[str, Any]
    store: Path
    folder: Path

    @cached_property
    def path(self) -> Path:
        """An ``.npz`` file: the arrays of a Dataset, and ``about``, the rest of it as JSON."""
        key = json.dumps(dict(self.options), sort_keys=True, default=str)
        return self.store / DATA / f"made-{hashlib.sha256(key.encode()).hexdigest()[:32]}.npz"

    @property
    def is_there(self) -> bool:
        """True if something has its name, be it a copy or not."""
        return os.path.lexists(self.path)

    def write(self, data: Dataset) -> None:
        """Write the copy, unless it is there and the same."""
        about = {
            "function": self.options["function"],
            "module": self._module_hash(),
            "digest": data.digest,
            "made": time.strftime("%Y-%m-%d %H:%M"),
            **{name: getattr(data, name) for name in COPY_FIELDS},
        }
        with suppress(StoreError):  # one that is missing or damaged is written anew
            known = read_about(self.path)
            if all(known.get(k) == about[k] for k in ("module", "digest")):
                return
        arrays = {name: getattr(data, name) for name in COPY_ARRAYS}
        arrays = {name: value for name, value in arrays.items() if value is not None}
        arrays["about"] = np.array(json.dumps(about))
        try:
            write_file(self.store, DATA, self.path.name, lambda file: np.savez(file, **arrays))
        except StoreError:
            raise
        except OSError as error:
            raise StoreError(
                f"The data that {self.options['function']} made cannot be kept in {self.path.parent}: "
                f"{os_reason(error, place=False)}. Fix that and run the study again."
            ) from error

    def read(self) -> Dataset:
        """Read the copy as the Dataset that the function gave."""
        arrays, about = read_copy(self.path, self._what)
        plain: dict[str, Any] = {name: about[name] for name in COPY_FIELDS}
        with unreadable_data(self.path, self._what):
            lists = {name: tuple(plain[name]) for name in ("classes", "notes")}
            return Dataset(**{**arrays, **plain, **lists})

    def assumption(self) -> str:
        """Say what a reader of the copy takes for granted."""
        about, name = read_about(self.path, self._what), self.options["function"]
        text = (
            f"{name} was not called, and is assumed to give the same data as for the run of "
            f"{about.get('made')}: pass --trust (in Python trust=True) to call it."
        )
        if about.get("module") != self._module_hash():
            text += " Its file has changed since: if the data changed too, `run` will repeat all runs."
        return text

    @property
    def _what(self) -> str:
        return f"the data that {self.options['function']} made"

    def _module_hash(self) -> str | None:
        """Hash of the file that the function is in, where it lies in the study's folder."""
        module = str(self.options["function"]).partition(":")[0]
        path = self.folder / (module.replace(".", "/") + ".py")
        return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None


# Small data sets that come with scikit-learn.


def load_packaged(name: str) -> DataSource:
    """Load one of scikit-learn's sets; the digits as images, the others as features."""
    with importing(f"{arg('data', name)} comes with scikit-learn", "sklearn"):
        package = importlib.import_module("sklearn.datasets")
    found = _read_packaged(getattr(package, f"load_{name.replace('-', '_')}"))
    classes = tuple(str(c) for c in found.target_names)
    if name == "digits":  # sixteen levels of grey and none
        x = np.round(found.images * (255 / 16)).astype(np.uint8)[:, None]
    else:
        x = found.data.astype(np.float32)
    return DataSource([array_part(x, found.target.copy(), "data", "target")], classes, name)


@cache
def _read_packaged(load: Callable[[], Any]) -> Any:
    """Read a set once: the digits are text in a compressed file, and every load of a study asks for them."""
    return load()


# Tables in CSV or Parquet files: a column of classes, and numbers or a text to learn from.


SUFFIXES = (".csv", ".tsv", ".parquet")
LABELS = ("label", "labels", "target", "class", "y")


def load_table(path: Path, request: Request) -> DataSource:
    """Load a table; a second file may hold the test examples."""
    name = request.text("name") or path.stem
    test_path = request.path("test")
    asked_label, asked_features = request.text("label"), request.texts("features")
    encoding = encoding_of(request) if "text" in request else None
    notes: list[str] = []
    frames = [_read(p) for p in (path, test_path) if p is not None]
    label = label_column(list(frames[0].columns), asked_label, format_path(path))
    features = asked_features or []
    if encoding is None and asked_features is None:  # every column but the label and a nameless index
        index = [c for c in frames[0].columns if c == "" or c.startswith("Unnamed: ")]
        notes += [f"Columns left out, an index without a name: {list_names(index)}."] if index else []
        features = [c for c in frames[0].columns if c != label and c not in index]
    parts = []
    for frame, file in zip(frames, filter(None, (path, test_path)), strict=True):
        source = format_path(file)
        _check_columns(frame.columns, [label, *features, *(encoding.columns if encoding else [])], source)
        labels = label_values(frame[label], label)
        if encoding is not None:
            texts = [frame[name].tolist() for name in encoding.columns]
            parts.append(text_part(texts, labels, encoding, source, notes))
        elif features:
            parts.append(array_part(_numbers(frame, features, source), labels, source, brief(label)))
        else:
            raise InputError(f"{source} has no columns beside {brief(label)}: nothing to learn from.")
    return DataSource(parts, None, name, encoding.padding if encoding else None, notes)


def load_image_table(path: Path, request: Request) -> DataSource:
    """Load images that a table names: a column of files and one of classes; perhaps one that says train or test."""
    name, image, split = request.text("name") or path.stem, request.text("image") or "", request.text("split")
    test_path, root = request.path("test"), request.path("root") or path.parent
    asked_label, reading = request.text("label"), image_reading(request, root)
    if split is not None and test_path is not None:
        raise InputError(f"{arg('data.split', split)} and {arg('data.test')} both name the test part: give one.")
    frames = [(_read(p), format_path(p)) for p in (path, test_path) if p is not None]
    if split is not None:
        frame, source = frames[0]
        _check_columns(frame.columns, [split], source)
        kinds = frame[split].astype(str).str.strip().str.lower()
        if set(kinds) != {"train", "test"}:
            problem = (
                f"column {brief(split)} of {source} holds {list_names(sorted(set(kinds)), 5)}: write train or test."
            )
            raise InputError(problem, argument="data.split", value=split)
        frames = [(frame[(kinds == kind).to_numpy()], source) for kind in ("train", "test")]
    parts = []
    for frame, source in frames:
        label = label_column(list(frame.columns), asked_label, source)
        _check_columns(frame.columns, [image], source)
        files = [root / str(file).lstrip("/") for file in frame[image]]
        if lacking := [file for file in files if not file.is_file()]:
            problem = f"{source} names {len(lacking):,} of {len(files):,} images that are not in {format_path(root)}"
            raise InputError(f"{problem}, such as {lacking[0]}.", argument="data.root", value=str(root))
        parts.append((files, label_values(frame[label], label)))
    every = [(file, "") for files, _ in parts for file in files]
    reading = reading.settled(every)
    made = [DataPart(labels, file_part([(f, "") for f in files], reading).read) for files, labels in parts]
    return DataSource(made, None, name)


def label_column(names: list[str], asked: str | None, source: str) -> str:
    """The column of classes: as asked for, else by its usual names."""
    if asked is not None and asked in names:
        return asked
    if asked is not None:
        raise InputError(
            f"{arg('data.label', asked)} is not a column of {source}, which has {list_names(names)}."
            f"{suggest(asked, names)}"
        )
    found = [name for name in names if name.strip().lower() in LABELS]
    if len(found) != 1:
        raise InputError(
            f"{source} has the columns {list_names(names)}: say which one holds the classes, with {arg('data.label')}"
        )
    return found[0]


def label_values(column: Any, name: str) -> NDArray[Any]:
    """Labels as an array of numbers or of texts; missing ones are an error."""
    cells = column.tolist() if hasattr(column, "tolist") else list(column)
    missing = sum(not isinstance(c, str) and is_missing(c) for c in cells)
    if missing:
        raise InputError(f"{brief(name)} lacks {missing} of {len(cells)} labels: drop these rows.")
    if any(isinstance(c, str) for c in cells):
        return np.array([str(c) for c in cells])
    values = np.asarray(cells)
    return values if values.dtype.kind != "O" else np.array([str(c) for c in cells])


def _read(path: Path) -> pd.DataFrame:
    import pandas as pd

    check_file(path)
    try:
        if path.suffix.lower() == ".parquet":
            frame: pd.DataFrame = parquet_frame(path.read_bytes(), path).to_pandas()
        else:
            sep = "\t" if path.suffix.lower() == ".tsv" else ","
            # pandas would call a second column "label" label.1, from which the class could then be learned.
            header = pd.read_csv(path, sep=sep, header=None, nrows=1, dtype=str).iloc[0].dropna()
            check_names(header.tolist(), format_path(path))
            frame = pd.read_csv(path, sep=sep)
    except CurvewiseError:
        raise
    except (ValueError, OSError, OverflowError, MemoryError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"{format_path(path)} cannot be read as a table: {reason}") from error
    check_names([str(c) for c in frame.columns], format_path(path))
    if not len(frame):
        raise InputError(f"{format_path(path)} has columns ({list_names(frame.columns)}) but no rows.")
    return frame.set_axis([str(c) for c in frame.columns], axis=1)


def _check_columns(there: Iterable[str], names: list[str], source: str) -> None:
    there = list(there)
    if lacking := [name for name in names if name not in there]:
        close = suggest(lacking[0], there)
        raise InputError(f"{source} has no column {list_names(lacking)}, but {list_names(there)}.{close}")


def _numbers(frame: pd.DataFrame, features: list[str], source: str) -> NDArray[np.float32]:
    out = np.empty((len(frame), len(features)), dtype=np.float32)
    for i, name in enumerate(features):
        column = frame[name]
        if column.dtype.kind not in "fiub":
            raise InputError(
                f"column {brief(name)} of {source} holds {brief(column.iloc[0])}, no numbers: turn "
                f"it into numbers, or leave it out with {arg('data.features')}."
            )
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
        if bad := int(np.sum(~np.isfinite(values))):
            raise InputError(
                f"column {brief(name)} of {source} has {bad} missing or infinite values: fill or "
                f"drop these rows, or leave the column out with {arg('data.features')}."
            )
        with np.errstate(over="ignore"):  # refused with the whole array
            out[:, i] = values
        if np.isfinite(out[:, i]).all():
            check_precision(values, out[:, i : i + 1], f"column {brief(name)} of {source}")
    return out


# Hugging Face datasets, saved to disk or in the cache; nothing is downloaded.

TEST = ("test", "validation", "val", "dev")


@dataclass(frozen=True, eq=False)
class TextEncoding:
    """The way texts become tokens.

    Attributes
    ----------
    columns : list of str
        The text, or the two that belong together.
    tokenizer : object
        As :func:`curvewise.nn.files.datasets.load_tokenizer` gives it.
    padding : int
        The token that stands for nothing.
    length : int
        Tokens per example; longer texts are cut, shorter ones padded.
    segments : bool
        Whether tokens say which of two texts they belong to.
    """

    columns: list[str]
    tokenizer: Any
    padding: int
    length: int
    segments: bool = False


@dataclass(frozen=True, eq=False)
class HubColumns:
    """Columns of inputs: pictures (with channels), texts (with an encoding), or numbers."""

    names: list[str]
    channels: int | None = None
    size: tuple[int, int] | None = None
    encoding: TextEncoding | None = None
    kind: str | None = None


def is_hub_folder(names: Sequence[str]) -> bool:
    """Return whether a folder with such files is a dataset that was saved to disk."""
    return "dataset_dict.json" in names or {"dataset_info.json", "state.json"} <= set(names)


def load_hub(request: Request, path: Path | None = None) -> DataSource:
    """Load a Hugging Face dataset: images, texts or numbers, whichever columns are asked for."""
    place = str(path) if path is not None else request.text("hf") or ""
    name, config = request.text("name") or Path(place).name, request.text("config")
    asked = request.text("train"), request.text("test")
    label_name = request.text("label")
    found = _open(place, config, request.folder)
    splits = dict(found) if hasattr(found, "keys") else {"train": found}
    if not splits or not all(hasattr(part, "column_names") for part in splits.values()):
        raise InputError(f"{arg('data.hf', place)} holds no table of examples.")
    which = asked[0] or ("train" if "train" in splits else next(iter(splits)) if len(splits) == 1 else None)
    if which not in splits:
        raise InputError(
            f"{brief(place)} has the parts {list_names(splits)}: say which one to train on, with "
            f"{arg('data.train')}{suggest(which, splits)}"
        )
    train = splits[which]
    label = label_column(list(train.column_names), label_name, brief(place))
    test = _test(splits, asked, label)
    notes: list[str] = []
    columns = _columns(train, label, request)
    made = [_hub_part(p, label, columns, place, notes) for p in (train, test) if p is not None]
    names = getattr(train.features[label], "names", None)
    padding = columns.encoding.padding if columns.encoding else None
    return DataSource(made, None if names is None else tuple(names), name, padding, notes)


def _open(place: str, config: str | None, folder: Path) -> Any:
    """A dataset in a folder, or one in the cache by its name."""
    with importing(f"{arg('data.hf', place)} needs datasets", "text"):
        package = importlib.import_module("datasets")
        hub_constants = importlib.import_module("huggingface_hub.constants")
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
        return package.load_dataset(str(local) if local.exists() else place, config, trust_remote_code=False)
    except Exception as error:  # the library raises its own, and those of everything below it
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise InputError(
            f"{arg('data.hf', place)} cannot be loaded without the network ({reason}): give "
            "the folder that save_to_disk wrote, or load it once with datasets.load_dataset."
        ) from error
    finally:
        for (holder, key), value in zip(switches, before, strict=True):
            setattr(holder, key, value)


def _test(splits: dict[str, Any], asked: tuple[str | None, str | None], label: str) -> Any:
    """The part to test on; one whose labels are withheld (-1) does not do."""
    train, test = asked
    if test is not None and test not in splits:
        problem = f"there are the parts {list_names(splits)}.{suggest(test, splits)}"
        raise InputError(problem, argument="data.test", value=test)
    for name in TEST if test is None else (test,):
        if name in splits and name != train and label in splits[name].column_names:
            labels = np.asarray(splits[name][label])
            if test is not None or labels.dtype.kind not in "iu" or not np.all(labels == -1):
                return splits[name]
    return None


def _columns(train: Any, label: str, request: Request) -> HubColumns:
    """The columns to learn from: as asked for, else what there is beside the label."""
    kinds = {name: kind for name, kind in train.features.items() if name != label}
    image, features = request.text("image"), request.texts("features")
    if "text" in request:
        encoding = encoding_of(request)
        return HubColumns(encoding.columns, encoding=encoding)
    pictures = [name for name, kind in kinds.items() if type(kind).__name__ == "Image"]
    if image is None and features is None and len(pictures) == 1:
        image = pictures[0]
    if image is not None:
        channels = request.one_of("channels", (1, 3), 3)
        return HubColumns([image], channels=channels, size=request.size("size"))
    texts = [name for name, kind in kinds.items() if getattr(kind, "dtype", "") == "string"]
    if features is None and texts:
        raise InputError(
            f"There are columns of text, {list_names(texts)}: say which to learn from, with "
            f"{arg('data.text')} and {arg('data.tokenizer')}, or name the numbers in {arg('data.features')}."
        )
    kind = request.one_of("kind", ("features", "tokens"))
    return HubColumns(features or list(kinds), kind=kind)


def _hub_part(part: Any, label: str, columns: HubColumns, place: str, notes: list[str]) -> DataPart:
    _check_columns(part.column_names, columns.names, brief(place))
    labels = label_values(part[label][:], label)
    if columns.encoding is not None:
        texts = [part[name][:] for name in columns.names]
        return text_part(texts, labels, columns.encoding, brief(place), notes)
    if columns.channels is not None:
        name, channels = columns.names[0], columns.channels
        cells = part.cast_column(name, importlib.import_module("datasets").Image(decode=False))

        def one(i: int) -> NDArray[np.uint8]:
            cell = cells[i][name]
            return decode(Path(cell["path"]) if cell["bytes"] is None else cell["bytes"], columns.size, channels)

        return picture_part(labels, one, lambda i: f"{brief(name)} of example {i}")
    return array_part(_hub_numbers(part, columns, notes), labels, brief(place), brief(label))


def _hub_numbers(part: Any, columns: HubColumns, notes: list[str]) -> NDArray[Any]:
    """One column of vectors, or several columns of numbers beside each other."""
    try:
        found = [np.asarray(part[name][:]) for name in columns.names]
        x = found[0] if len(found) == 1 and found[0].ndim > 1 else np.column_stack(found)
    except ValueError as error:
        raise InputError(
            f"{list_names(columns.names)} do not form a table ({error}): they must be numbers, or "
            "vectors of one length."
        ) from error
    kind = columns.kind or ("features" if len(found) > 1 else None)
    return npz.as_inputs(x, list_names(columns.names, 3), None, kind, notes)


# Texts as tokens, by a tokenizer in a folder.

LENGTH = 128


def encoding_of(request: Request) -> TextEncoding:
    """Read ``text``, ``tokenizer`` and ``length``."""
    columns, folder = request.texts("text") or [], request.path("tokenizer")
    length = request.count("length", least=2) or LENGTH
    if len(columns) > 2:
        raise InputError(f"{arg('data.text', columns)} has {len(columns)} columns: give one, or two for pairs.")
    if folder is None:
        raise InputError(
            f"{arg('data.text', columns)} needs {arg('data.tokenizer')}: the folder of a Hugging Face tokenizer, such "
            "as that of the encoder to train."
        )
    segments = request.one_of("segments", (True, False), False)
    if segments and len(columns) < 2:
        problem = f"tells two texts apart, and {arg('data.text', columns)} is one: name both columns."
        raise InputError(problem, argument="data.segments", value=True)
    tokens = _tokens()
    tokenizer = tokens.load_tokenizer(folder)
    return TextEncoding(columns, tokenizer, tokens.padding_of(tokenizer, folder), length, segments)


def text_part(
    columns: Sequence[Sequence[Any]], labels: NDArray[Any], encoding: TextEncoding, source: str, notes: list[str]
) -> DataPart:
    """Examples whose texts are turned into tokens when they are read."""
    for name, column in zip(encoding.columns, columns, strict=True):
        if wrong := [v for v in column if not isinstance(v, str)]:
            raise InputError(
                f"column {brief(name)} of {source} holds {len(wrong)} cells that are no text, such "
                f"as {brief(wrong[0])}: drop or fill these rows."
            )

    if len(columns) > 1 and not encoding.segments and _tokens().has_segments(encoding.tokenizer):
        notes.append(
            f"the tokens of {source} do not say which text they belong to, as a BERT is used to: say segments = true."
        )

    def read(rows: RowIndices | None) -> NDArray[np.int32]:
        wanted = range(len(labels)) if rows is None else rows
        texts = [[column[i] for i in wanted] for column in columns]
        how = {"length": encoding.length, "segments": encoding.segments}
        ids, cut = _tokens().tokenise(encoding.tokenizer, *texts, **how)
        if cut:
            notes.append(
                f"{cut:,} of {len(ids):,} texts of {source} are longer than {encoding.length} tokens and were cut."
            )
        found: NDArray[np.int32] = ids
        return found

    return DataPart(labels, read)


def _tokens() -> Any:
    with importing("Texts need {}", "text"):
        from curvewise.nn.files import datasets as tokens
    return tokens
