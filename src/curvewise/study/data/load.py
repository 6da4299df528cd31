"""Load examples by name or from a path; the kind of file decides how."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import json
import os
import re
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from curvewise.errors import CurvewiseError, InputError, MissingDependencyError, StoreError, os_reason
from curvewise.nn.own_code import failure, find_function, importable
from curvewise.reading.files import large_files
from curvewise.store.read import COPY_ARRAYS, COPY_FIELDS, DATA, read_about, read_copy, unreadable_data
from curvewise.store.write import write_file
from curvewise.study.data.arrays import is_cifar_name, is_idx_name, load_cifar, load_idx, load_npz
from curvewise.study.data.dataset import TARGETS, Dataset
from curvewise.study.data.images import load_image_folder, load_torchvision
from curvewise.study.data.source import DataSource, Request, array_part, make_dataset
from curvewise.study.data.tables import SUFFIXES, is_hub_folder, load_hub, load_table
from curvewise.text import arg, format_path, list_names, suggest

PACKAGED_NAMES = ("digits", "iris", "wine", "breast-cancer")
"""Small data sets that come with scikit-learn."""

Loader = Callable[[Path, Request], DataSource]

PLACED: dict[str, tuple[Loader, tuple[str, ...]]] = {
    "mnist": (load_idx, ("mnist", "MNIST/raw")),
    "fashion-mnist": (load_idx, ("fashion-mnist", "FashionMNIST/raw", "/usr/share/datasets/fashion-mnist")),
    "cifar10": (load_cifar, ("cifar10", "cifar-10-batches-bin", "cifar10_jpeg.npz")),
    "cifar100": (load_cifar, ("cifar100", "cifar-100-binary")),
}
"""Data that must be fetched first: who reads it, and where it is looked for."""

REMEDIES = {
    "mnist": "fetch its four IDX files",
    "fashion-mnist": "apt-get install dataset-fashion-mnist, or fetch its four IDX files",
    "cifar10": "fetch its binary version (cifar-10-binary.tar.gz) and unpack it",
    "cifar100": "fetch its binary version (cifar-100-binary.tar.gz) and unpack it",
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
        ``"fashion-mnist"``, ``"cifar10"``, ``"cifar100"``); a path; ``"hf:PATH"``; or a dict, as
        the table of data in a study file. The file type decides how a path is read:

        - ``.npz``: arrays; ``x``, ``y``, ``test_x``, ``test_y`` say which, ``axes`` ("NCHW",
          "NHWC") and ``kind`` ("features", "tokens") what they are where that is in doubt; or an
          archive of JPEG images.
        - ``.csv``, ``.tsv``, ``.parquet``: a table; ``label`` names the column of classes,
          ``features`` those to learn from, ``test`` a second file with test examples.
        - a folder with IDX files, gzipped or not; with CIFAR's binary files (``labels``: "fine" or
          "coarse"); with images in a subfolder for each class, perhaps below ``train`` and
          ``test`` (``size``, ``channels``: 1 or 3, ``on_error``: "raise" or "skip"); or with a
          Hugging Face dataset saved to disk.

        ``{"hf": PATH_OR_NAME}`` reads a Hugging Face dataset without the network
        (``image``, ``text``, ``label``, ``features``: columns), ``{"torchvision": "CIFAR10",
        "root": FOLDER}`` one of torchvision. Texts, in a table or a Hugging Face dataset, take
        ``text`` (the column, or two), ``tokenizer`` (a folder) and ``length`` (128).

        ``targets="numbers"`` takes the labels, of a ``.npz`` file or a table, for numbers to
        predict: (examples,), (examples, k) or images, whose axes are those of the inputs;
        ``standardise=True`` lets a study standardise them.

        ``"MODULE:FUNCTION"``, or ``{"function": …}`` with its options, calls a function of your
        own, which gives a :class:`Dataset`.

        ``examples`` and ``test_examples`` take at most that many, drawn class by class (numbers:
        from all) with a fixed seed. ``name`` beside ``path`` only says what to call the data.
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
    large = request.one_of("allow_large", (True, False), False)
    with large_files(True) if large else nullcontext():
        source = _source(request)
        request.finish()
        if standardise and targets != "numbers":
            raise InputError(
                f"{arg('data.standardise', True)} is for {arg('data.targets', 'numbers')}, and these are classes."
            )
        return make_dataset(source, *limits, targets=targets, standardise=standardise)


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
        raise InputError(f"{arg('data', spec)}: give a name, a path, or a table with either.")
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
    if kinds == ["hf"]:
        return load_hub(request)
    if kinds == ["torchvision"]:
        return load_torchvision(request)
    if kinds == ["path"]:
        return _from_path(request)
    return _from_name(request)


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
        return load_table(path, request)
    if is_idx_name(path.name):
        raise InputError(f"{format_path(path)} is one of several IDX files: give their folder.")
    raise InputError(
        f"{format_path(path)}: files that end in {suffix or 'nothing'} are not read. Give .npz, "
        f"{', '.join(SUFFIXES)}, or a folder of IDX files, CIFAR files or images."
    )


def _from_folder(path: Path, request: Request) -> DataSource:
    names = [entry.name for entry in path.iterdir()]
    if not names:
        raise InputError(f"The folder {format_path(path)} is empty: there is nothing to load.")
    called = request.text("name")
    if called is not None and called.lower() in PLACED:
        return PLACED[called.lower()][0](path, request)
    if any(is_idx_name(name) for name in names):
        return load_idx(path, request)
    if any(is_cifar_name(name) for name in names):
        return load_cifar(path, request)
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
    path : Path
        An ``.npz`` file: the arrays of a Dataset, and ``about``, the rest of it as JSON.
    options : dict
        The function and its options; another function or other options have another file.
    folder : Path
        Of the study.
    """

    path: Path
    options: Mapping[str, Any]
    folder: Path

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
        store, folder = self.path.parent.parent, self.path.parent.name
        try:
            write_file(store, folder, self.path.name, lambda file: np.savez(file, **arrays))
        except StoreError:
            raise
        except OSError as error:
            raise StoreError(
                f"The data that {self.options['function']} made cannot be kept in {self.path.parent}: "
                f"{os_reason(error, place=False)}. Mend that, and run the study again."
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
            text += " Its file has changed since: if the data did too, run makes all runs anew."
        return text

    @property
    def _what(self) -> str:
        return f"the data that {self.options['function']} made"

    def _module_hash(self) -> str | None:
        """Hash of the file that the function is in, where it lies in the study's folder."""
        module = str(self.options["function"]).partition(":")[0]
        path = self.folder / (module.replace(".", "/") + ".py")
        return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None


def data_copy(options: Mapping[str, Any], store: Path, folder: Path) -> DataCopy:
    """Name the copy, in a store, of what a function makes with these options."""
    key = json.dumps(dict(options), sort_keys=True, default=str)
    digest = hashlib.sha256(key.encode()).hexdigest()[:32]
    return DataCopy(store / DATA / f"made-{digest}.npz", options, folder)


# Small data sets that come with scikit-learn.


def load_packaged(name: str) -> DataSource:
    """Load one of scikit-learn's sets; the digits as images, the others as features."""
    try:
        package = importlib.import_module("sklearn.datasets")
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            f'{arg("data", name)} comes with scikit-learn, which is not installed: pip install "curvewise[sklearn]".'
        ) from error
    found: Any = getattr(package, f"load_{name.replace('-', '_')}")()
    classes = tuple(str(c) for c in found.target_names)
    if name == "digits":  # sixteen levels of grey and none
        x = np.round(found.images * (255 / 16)).astype(np.uint8)[:, None]
    else:
        x = found.data.astype(np.float32)
    return DataSource(array_part(x, found.target, "data", "target"), classes=classes, name=name)
