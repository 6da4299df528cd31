"""Data of torchvision, opened where it lies; nothing is downloaded."""

from __future__ import annotations

import importlib
import inspect
import os
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

from curvewise.errors import InputError, MissingDependencyError

PICKLED = ("LSUN", "LSUNClass")
"""Datasets whose folder holds a pickle that torchvision loads unseen."""

SPLITS = {True: ("train",), False: ("test", "val")}


def open_torchvision(name: str, root: str | PathLike[str], *, train: bool) -> Any:
    """Open the training or the test part of a dataset of torchvision.

    Parameters
    ----------
    name : str
        Its class, such as ``"CIFAR10"``.
    root : path
        Folder it was downloaded to.
    train : bool
        Which part.

    Returns
    -------
    object
        Gives a picture and its class for each position; None where there is no such part.
    """
    try:
        package = importlib.import_module("torchvision.datasets")
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            f"torchvision={name!r} needs torchvision, which is not installed: pip install torchvision."
        ) from error
    except (ImportError, RuntimeError) as error:  # RuntimeError: built for another torch
        raise MissingDependencyError(
            f"torchvision={name!r}: the torchvision that is installed cannot be imported "
            f"({error}): install the one that was built for this torch."
        ) from error
    if name in PICKLED:
        raise InputError(
            f"torchvision={name!r} keeps a pickle in its folder, which can run code and is never "
            "read: save its pictures into a folder for each class, and give that as path."
        )
    maker = getattr(package, name, None)
    if not isinstance(maker, type) or not hasattr(maker, "__getitem__"):
        raise InputError(f"torchvision={name!r}: torchvision.datasets has no dataset of that name.")
    accepted = inspect.signature(maker).parameters
    offline = {"download": False} if "download" in accepted else {}
    try:
        with _weights_only():
            if "train" in accepted:
                return maker(root=str(Path(root)), train=train, **offline)
            if "split" in accepted:
                return _split(maker, str(Path(root)), SPLITS[train], offline)
            return maker(root=str(Path(root)), **offline) if train else None
    except (RuntimeError, OSError, ValueError, TypeError, pickle.UnpicklingError) as error:
        raise InputError(
            f"torchvision={name!r} cannot be opened in {str(root)!r} ({error}): download it there "
            "first, with download=True."
        ) from error


@contextmanager
def _weights_only() -> Iterator[None]:
    """Have torch.load refuse code in old caches, such as MNIST's processed/training.pt."""
    key = "TORCH_FORCE_WEIGHTS_ONLY_LOAD"
    before = os.environ.get(key)
    os.environ[key] = "1"
    try:
        yield
    finally:
        del os.environ[key]
        if before is not None:
            os.environ[key] = before


def _split(maker: Any, root: str, names: tuple[str, ...], offline: dict[str, bool]) -> Any:
    """The first split of these names that the dataset knows."""
    for name in names[:-1]:
        try:
            return maker(root=root, split=name, **offline)
        except ValueError:  # it has no split of that name
            continue
    return maker(root=root, split=names[-1], **offline)
