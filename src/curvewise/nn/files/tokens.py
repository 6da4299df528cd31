"""Texts as tokens, by a Hugging Face tokenizer that lies in a folder."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from transformers import AutoTokenizer

from curvewise.errors import InputError


def load_tokenizer(folder: str | PathLike[str]) -> Any:
    """Load a tokenizer from its folder; nothing is downloaded and no code of its own is run.

    Parameters
    ----------
    folder : path
        With ``tokenizer.json`` or the files that stand for it.
    """
    path = Path(folder)
    if not path.is_dir():
        raise InputError(f"tokenizer={str(path)!r}: there is no such folder.")
    try:
        return AutoTokenizer.from_pretrained(str(path), local_files_only=True, trust_remote_code=False)
    except Exception as error:  # what is raised for a missing file depends on the version
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise InputError(
            f"tokenizer={str(path)!r} cannot be loaded ({reason}): give a folder that tokenizer.save_pretrained wrote."
        ) from error


def padding_of(tokenizer: Any, folder: str | PathLike[str]) -> int:
    """The token that fills short texts up."""
    if tokenizer.pad_token_id is None:
        raise InputError(
            f"The tokenizer in {str(folder)!r} has no padding token: set tokenizer.pad_token and save it again."
        )
    return int(tokenizer.pad_token_id)


def tokenise(
    tokenizer: Any, texts: Sequence[str], pairs: Sequence[str] | None = None, *, length: int
) -> tuple[NDArray[np.int32], int]:
    """Tokens of texts, or of pairs of texts, all of one length.

    Parameters
    ----------
    tokenizer : object
        As :func:`load_tokenizer` gives it.
    texts, pairs : sequence of str
        What to encode; the second texts where two belong together.
    length : int
        Longer ones are cut, shorter ones padded.

    Returns
    -------
    ids : ndarray of int32, shape (examples, length)
        The tokens, padded on the tokenizer's side.
    cut : int
        How many were too long.
    """
    texts, pairs = list(texts), None if pairs is None else list(pairs)
    ids = np.empty((len(texts), length), dtype=np.int32)
    cut = 0
    for first in range(0, len(texts), 4096):
        here = slice(first, first + 4096)
        seconds = None if pairs is None else pairs[here]
        whole = tokenizer(texts[here], seconds, truncation=False, verbose=False)["input_ids"]
        cut += sum(len(tokens) > length for tokens in whole)
        padded = tokenizer(texts[here], seconds, truncation=True, padding="max_length", max_length=length)["input_ids"]
        ids[here] = np.asarray(padded, dtype=np.int32)
    return ids, cut
