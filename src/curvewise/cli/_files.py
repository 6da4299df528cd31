"""Files in, measurements and fitted curves out; figures into files."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from curvewise.cli._console import UsageError, note
from curvewise.errors import CurvewiseWarning

STDIN = "/dev/stdin"
"""What ``-`` stands for, here on every system."""


def names_of(files: Sequence[str]) -> dict[str, str]:
    """Shortest names that tell the files apart."""
    files = list(dict.fromkeys(files))
    stems = [Path(f).stem for f in files]
    return dict(zip(files, stems if len(set(stems)) == len(stems) else files, strict=True))


@contextmanager
def quietly() -> Iterator[None]:
    """Keep warnings back that are on the result, from where they are shown."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CurvewiseWarning)
        yield


def choose(option: str, wanted: str | None, names: Sequence[str]) -> str:
    """Find the learner that an option names; with only one learner none need be named."""
    if wanted is None and len(names) == 1:
        return names[0]
    if wanted in names:
        return str(wanted)
    there = ", ".join(map(repr, names[:20])) + (" …" if len(names) > 20 else "")
    if wanted is None:
        raise UsageError(f"Which learner? Name it with {option}. There are {there}.")
    lower = {name.lower(): name for name in names}
    close = get_close_matches(wanted.lower(), lower, n=1, cutoff=0.5)
    hint = f" Did you mean {lower[close[0]]!r}?" if close else ""
    raise UsageError(f"{option} {wanted!r} is not among the learners.{hint} There are {there}.")


def save_plot(path: Path | None, draw: Callable[[], Any], *, quiet: bool = False) -> None:
    """Let ``draw`` make Axes without a display and save their figure."""
    if path is None:
        return
    from curvewise.plot import save_picture

    save_picture(draw, path)
    if not quiet:
        note(f"drawn into {path}")
