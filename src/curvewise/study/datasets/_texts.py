"""Texts as tokens, by a tokenizer in a folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError, MissingDependencyError
from curvewise.io._table import brief
from curvewise.study.datasets._request import Request
from curvewise.study.datasets._source import Part, Rows

LENGTH = 128


@dataclass(frozen=True, eq=False)
class Encoding:
    """How texts become tokens.

    Attributes
    ----------
    columns : list of str
        The text, or the two that belong together.
    tokenizer : object
        As :func:`curvewise.nn.tokens.load_tokenizer` gives it.
    padding : int
        The token that stands for nothing.
    length : int
        Tokens per example; longer texts are cut, shorter ones padded.
    """

    columns: list[str]
    tokenizer: Any
    padding: int
    length: int


def encoding_of(request: Request) -> Encoding:
    """Read ``text``, ``tokenizer`` and ``length``."""
    columns, folder = request.texts("text") or [], request.path("tokenizer")
    length = request.count("length", least=2) or LENGTH
    if len(columns) > 2:
        raise InputError(f"data.text has {len(columns)} columns: give one, or two for pairs.")
    if folder is None:
        raise InputError(
            "data.text needs data.tokenizer: the folder of a Hugging Face tokenizer, such as that "
            "of the encoder to train."
        )
    tokens = _tokens()
    tokenizer = tokens.load_tokenizer(folder)
    return Encoding(columns, tokenizer, tokens.padding_of(tokenizer, folder), length)


def text_part(
    columns: Sequence[Sequence[Any]],
    labels: NDArray[Any],
    encoding: Encoding,
    source: str,
    notes: list[str],
) -> Part:
    """Examples whose texts are turned into tokens when they are read."""
    for name, column in zip(encoding.columns, columns, strict=True):
        if wrong := [v for v in column if not isinstance(v, str)]:
            raise InputError(
                f"column {brief(name)} of {source} holds {len(wrong)} cells that are no text, such "
                f"as {brief(wrong[0])}: drop or fill these rows."
            )

    def read(rows: Rows | None) -> NDArray[np.int32]:
        wanted = range(len(labels)) if rows is None else rows
        texts = [[column[i] for i in wanted] for column in columns]
        ids, cut = _tokens().tokenise(encoding.tokenizer, *texts, length=encoding.length)
        if cut:
            notes.append(
                f"{cut:,} of {len(ids):,} texts of {source} are longer than {encoding.length} "
                "tokens and were cut."
            )
        found: NDArray[np.int32] = ids
        return found

    return Part(labels, read)


def _tokens() -> Any:
    try:
        from curvewise.nn import tokens
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            f'Texts need {error.name}, which is not installed: pip install "curvewise[text]".'
        ) from error
    return tokens
