"""Data by way of other packages: datasets of torchvision, and texts as tokens by a Hugging Face tokenizer.

Opened where they lie: nothing is downloaded, and no code that comes with them is run.
"""

from __future__ import annotations

import importlib
import inspect
import os
import pickle
from collections.abc import Sequence
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import Message, MissingDependencyError, arg, importing
from curvewise.nn.training import misfit

PICKLED = ("LSUN", "LSUNClass")
"""Datasets whose folder holds a pickle that torchvision loads without a check."""

SEGMENT = 2**20
"""Added to the tokens of the second text of a pair, so that one array holds tokens and segments."""

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
        The training part, or the test part.

    Returns
    -------
    object
        Gives a picture and its class for each position; None where there is no such part.
    """
    asked = arg("torchvision", name)
    package = foreign_library("torchvision.datasets", asked)
    if name in PICKLED:
        problem = "keeps a pickle in its folder, which can run code and is never read."
        remedy = "Save its pictures into a folder for each class, and give that as path."
        raise misfit("data.torchvision", name, problem, remedy)
    maker = getattr(package, name, None)
    if not isinstance(maker, type) or not hasattr(maker, "__getitem__"):
        raise misfit("data.torchvision", name, "torchvision.datasets has no dataset of that name.")
    # Datasets differ in how a part is asked for, train= or split=; some have no parts.
    accepted = inspect.signature(maker).parameters
    offline = {"download": False} if "download" in accepted else {}
    # Have torch.load refuse code in old caches, such as MNIST's processed/training.pt.
    key = "TORCH_FORCE_WEIGHTS_ONLY_LOAD"
    before = os.environ.get(key)
    os.environ[key] = "1"
    try:
        if "train" in accepted:
            return maker(root=str(Path(root)), train=train, **offline)
        if "split" not in accepted:
            return maker(root=str(Path(root)), **offline) if train else None
        *usual, last = SPLITS[train]
        for split in usual:
            with suppress(ValueError):  # it has no split of that name
                return maker(root=str(Path(root)), split=split, **offline)
        return maker(root=str(Path(root)), split=last, **offline)
    except (RuntimeError, OSError, ValueError, TypeError, pickle.UnpicklingError) as error:
        problem = f"cannot be opened in {str(root)!r} ({error})."
        raise misfit("data.torchvision", name, problem, "Download it there first, with download=True.") from error
    finally:
        del os.environ[key]
        if before is not None:
            os.environ[key] = before


def foreign_library(module: str, asked: str) -> Any:
    """Import a library of networks or data that is no extra of ours, for what a user has asked for."""
    try:
        return importlib.import_module(module)
    except (ImportError, RuntimeError) as error:  # the latter where it was built for another torch
        name = module.partition(".")[0]
        remedy = f"Install the one that was built for this torch: pip install {name}."
        raise MissingDependencyError(
            Message(f"{asked} needs {name}: importing it failed ({error}). {remedy}")
        ) from error


def load_tokenizer(folder: str | PathLike[str]) -> Any:
    """Load a tokenizer from its folder; nothing is downloaded and no code of its own is run.

    Parameters
    ----------
    folder : path
        With ``tokenizer.json`` or the files that stand for it.
    """
    path = Path(folder)
    if not path.is_dir():
        raise misfit("tokenizer", str(path), "there is no such folder.")
    with importing("Texts need {}", "text"):
        from transformers import AutoTokenizer
    try:
        return AutoTokenizer.from_pretrained(str(path), local_files_only=True, trust_remote_code=False)
    except Exception as error:  # what is raised for a missing file depends on the version
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        remedy = "Give a folder that tokenizer.save_pretrained wrote."
        raise misfit("tokenizer", str(path), f"cannot be loaded ({reason}).", remedy) from error


def padding_of(tokenizer: Any, folder: str | PathLike[str]) -> int:
    """Return the token that fills short texts up."""
    if tokenizer.pad_token_id is None:
        problem = "has no padding token: set tokenizer.pad_token and save it again."
        raise misfit("tokenizer", str(folder), problem)
    return int(tokenizer.pad_token_id)


def tokenise(
    tokenizer: Any, texts: Sequence[str], pairs: Sequence[str] | None = None, *, length: int, segments: bool = False
) -> tuple[NDArray[np.int32], int]:
    """Encode texts, or pairs of texts, as tokens, all of one length.

    Parameters
    ----------
    tokenizer : object
        As :func:`load_tokenizer` gives it.
    texts, pairs : sequence of str
        Texts to encode; the second texts where two belong together.
    length : int
        Longer ones are cut, shorter ones padded.
    segments : bool
        Whether to say which token belongs to the second text of a pair.

    Returns
    -------
    ids : ndarray of int32, shape (examples, length)
        The tokens, padded on the tokenizer's side; with segments, :data:`SEGMENT` times the segment is
        added to each.
    cut : int
        Number of texts that were too long.
    """
    texts, pairs = list(texts), None if pairs is None else list(pairs)
    ids = np.empty((len(texts), length), dtype=np.int32)
    cut = 0
    for first in range(0, len(texts), 4096):
        here = slice(first, first + 4096)
        seconds = None if pairs is None else pairs[here]
        # Once without a limit, only to count the texts that are too long.
        whole = tokenizer(texts[here], seconds, truncation=False, verbose=False)["input_ids"]
        cut += sum(len(tokens) > length for tokens in whole)
        fixed: dict[str, Any] = {"truncation": True, "padding": "max_length", "max_length": length}
        padded = tokenizer(texts[here], seconds, return_token_type_ids=segments, **fixed)
        ids[here] = np.asarray(padded["input_ids"], dtype=np.int32)
        if segments:
            which = np.asarray(padded["token_type_ids"], dtype=np.int32)
            if not which.any() or ids[here].max() >= SEGMENT:
                problem = "puts both texts of a pair into one segment" if not which.any() else "has too many tokens"
                raise misfit("segments", True, f"the tokenizer {problem}: leave it out, or use one such as BERT's.")
            ids[here] += SEGMENT * which
    return ids, cut


def has_segments(tokenizer: Any) -> bool:
    """Return whether a tokenizer tells the two texts of a pair apart."""
    return any(tokenizer("a", "a", return_token_type_ids=True).get("token_type_ids") or ())
