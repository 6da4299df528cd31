"""Load examples by name or from a path; the kind of file decides how."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from curvewise.errors import InputError
from curvewise.io._files import large_files
from curvewise.io._table import brief, listed, shown, suggest
from curvewise.study.dataset import TARGETS, Dataset
from curvewise.study.datasets import (
    cifar,
    hub,
    idx,
    image_folders,
    npz,
    own,
    packaged,
    tables,
    vision,
)
from curvewise.study.datasets._request import Request
from curvewise.study.datasets._source import Source, make_dataset, make_number_dataset

Loader = Callable[[Path, Request], Source]

PLACED: dict[str, tuple[Loader, tuple[str, ...]]] = {
    "mnist": (idx.load_idx, ("mnist", "MNIST/raw")),
    "fashion-mnist": (
        idx.load_idx,
        ("fashion-mnist", "FashionMNIST/raw", "/usr/share/datasets/fashion-mnist"),
    ),
    "cifar10": (
        cifar.load_cifar,
        ("cifar10", "cifar-10-batches-bin", "cifar10_jpeg.npz"),
    ),
    "cifar100": (cifar.load_cifar, ("cifar100", "cifar-100-binary")),
}
"""Data that must be fetched first: who reads it, and where it is looked for."""

REMEDIES = {
    "mnist": "fetch its four IDX files",
    "fashion-mnist": "apt-get install dataset-fashion-mnist, or fetch its four IDX files",
    "cifar10": "fetch its binary version (cifar-10-binary.tar.gz) and unpack it",
    "cifar100": "fetch its binary version (cifar-100-binary.tar.gz) and unpack it",
}

OWN = re.compile(r"[\w.]{2,}:\w+")  # module:function; no drive of Windows

NAMES = (*packaged.NAMES, *PLACED)
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
        return own.make_own(request)
    limits = request.count("examples"), request.count("test_examples")
    targets = request.one_of("targets", TARGETS, "classes")
    standardise = request.one_of("standardise", (True, False), False)
    with large_files(request.one_of("allow_large", (True, False), False)):
        source = _source(request)
        request.finish()
        if targets == "numbers":
            return make_number_dataset(source, *limits, standardise=standardise)
        if standardise:
            raise InputError("data.standardise is for targets='numbers', and these are classes.")
        return make_dataset(source, *limits)


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
        raise InputError(f"data={brief(spec)}: give a name, a path, or a table with either.")
    if spec.startswith("hf:"):
        return {"hf": spec.removeprefix("hf:")}
    if OWN.fullmatch(spec) and not (folder / spec).exists():
        return {"function": spec}
    mistyped = re.fullmatch(r"[\w-]+", spec) and not (folder / spec).exists()
    return {"name" if spec.lower() in NAMES or mistyped else "path": spec}


def _source(request: Request) -> Source:
    kinds = [key for key in ("hf", "torchvision", "path") if key in request]
    if len(kinds) > 1:
        raise InputError(f"data has {' and '.join(kinds)}: give one of them.")
    if kinds == ["hf"]:
        return hub.load_hub(request)
    if kinds == ["torchvision"]:
        return vision.load_torchvision(request)
    if kinds == ["path"]:
        return _from_path(request)
    return _from_name(request)


def _from_name(request: Request) -> Source:
    name = request.text("name")
    if name is None:
        raise InputError(
            "data has neither name, path, hf, torchvision nor function: give one of them."
        )
    known = name.lower()
    if known in packaged.NAMES:
        return packaged.load_packaged(known)
    if known not in PLACED:
        raise InputError(
            f"data={brief(name)} is not known: use a path, 'module:function', or one of "
            f"{listed(NAMES)}.{suggest(name, NAMES)}"
        )
    load, places = PLACED[known]
    roots = [Path(root).expanduser() for root in [os.environ.get("CURVEWISE_DATA")] if root]
    tried = [root / place for root in [request.folder, *roots] for place in places]
    for path in dict.fromkeys(tried):
        if path.exists():
            return load(path, request)
    raise InputError(
        f"data={brief(name)} is not on this machine: {REMEDIES[known]}, and give its path. Looked "
        f"for {', '.join(dict.fromkeys(map(str, tried)))}; the environment variable CURVEWISE_DATA "
        "can name a further folder."
    )


def _from_path(request: Request) -> Source:
    path = request.path("path")
    assert path is not None
    if path.is_dir():
        return _from_folder(path, request)
    suffix = path.suffix.lower()
    if suffix == ".npz":
        return npz.load_npz(path, request)
    if suffix in tables.SUFFIXES:
        return tables.load_table(path, request)
    if idx.is_idx_name(path.name):
        raise InputError(f"{shown(path)} is one of several IDX files: give their folder.")
    raise InputError(
        f"{shown(path)}: files that end in {suffix or 'nothing'} are not read. Give .npz, "
        f"{', '.join(tables.SUFFIXES)}, or a folder of IDX files, CIFAR files or images."
    )


def _from_folder(path: Path, request: Request) -> Source:
    names = [entry.name for entry in path.iterdir()]
    if not names:
        raise InputError(f"The folder {shown(path)} is empty: there is nothing to load.")
    called = request.text("name")
    if called is not None and called.lower() in PLACED:
        return PLACED[called.lower()][0](path, request)
    if any(idx.is_idx_name(name) for name in names):
        return idx.load_idx(path, request)
    if any(cifar.is_cifar_name(name) for name in names):
        return cifar.load_cifar(path, request)
    if hub.is_hub_folder(names):
        return hub.load_hub(request, path)
    return image_folders.load_image_folder(path, request)
