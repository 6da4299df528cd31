"""Arrays of targets and of losses in, for ``curvewise transfer blind`` and ``wins``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from curvewise.cli._console import UsageError, note
from curvewise.cli._files import STDIN
from curvewise.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from curvewise.transfer.blind import BlindGuess


def read_array(
    file: str | Path, keys: Sequence[str] = (), several: Literal["outputs", "runs"] = "outputs"
) -> NDArray[Any]:
    """Read the array of a file; of several the one that ``keys`` names, or several together.

    Parameters
    ----------
    file : path
        ``.npy``, ``.npz``, ``.safetensors``, ``.csv``, ``.txt`` or ``.json``.
    keys : sequence of str
        Arrays or columns.
    several : {"outputs", "runs"}
        What more than one are: outputs of each example, or runs on the same examples.
    """
    import numpy as np

    from curvewise.io._files import as_path
    from curvewise.io._table import listed, suggest
    from curvewise.io._vectors import read_named

    if str(file) == STDIN:
        raise UsageError("Arrays are read from a file, not from stdin.")
    path = as_path(file)
    names, get = read_named(path)
    for key in keys:
        if key not in names:
            raise UsageError(
                f"--key {key!r} is not in {path.name}.{suggest(key, names)} It has {listed(names)}."
            )
    chosen = list(keys) or list(names)
    what = "runs" if several == "runs" else "the outputs of each example"
    if len(chosen) > 1 and not keys:
        raise UsageError(
            f"{path.name} holds {listed(names)}: choose with --key; several, such as --key "
            f"{','.join(names[:2])}, are {what}."
        )
    arrays = [get(name) for name in chosen]
    if any(array.shape != arrays[0].shape for array in arrays):
        raise UsageError(f"--key {','.join(keys)}: these differ in shape.")
    found: NDArray[Any] = (
        arrays[0] if len(arrays) == 1 else np.stack(arrays, axis=several == "outputs")
    )
    name = f" ({', '.join(chosen)})" if any(chosen) else ""
    note(f"{path.name}{name}: {' × '.join(map(str, found.shape))} {found.dtype.name}")
    return found


def ignored(word: str | None) -> Any:
    """What marks an element without target: a number, NaN, or a text."""
    if word is None:
        return None
    try:
        value = float(word)
    except ValueError:
        return word
    return int(value) if value.is_integer() else value


def names_of_files(method: str, scratch: str) -> tuple[str, str]:
    """What to call the two sides: their files without endings, with folders if these are alike.

    >>> names_of_files("runs/swav.npy", "scratch.npy"), names_of_files("a/loss.npy", "b/loss.npy")
    (('swav', 'scratch'), ('a/loss', 'b/loss'))
    """
    paths = [Path(file).with_suffix("") for file in (method, scratch)]
    names = [path.name for path in paths]
    if names[0] == names[1]:
        names = [path.as_posix() for path in paths]
    if names[0] == names[1]:
        names = [method, scratch]
    return (names[0], names[1]) if names[0] != names[1] else ("the first", "the second")


@contextmanager
def named_files(method: str, scratch: str) -> Iterator[None]:
    """Say with the names of files what an error says with the names of arguments."""
    try:
        yield
    except InputError as error:
        text = re.sub(r"\bscratch_losses\b", lambda _: Path(scratch).name, str(error))
        text = re.sub(r"\blosses(?= (?:has|holds|is)\b)", lambda _: Path(method).name, text)
        raise InputError(text) from error


def to_paste(guess: BlindGuess) -> str:
    """The option that takes a blind guess to ``transfer measure``, whatever its table holds."""
    risk = guess.risk.estimate
    text = f"For curvewise transfer measure: --blind {risk:.6g}"
    if guess.loss not in ("error", "binary-error"):
        return f"{text}, for a table of {guess.unit}."
    return (
        f"{text} for a table of errors, {100 * risk:.6g} if they are percentages; for one of "
        f"accuracies --blind {1 - risk:.6g} or {100 * (1 - risk):.6g}."
    )
