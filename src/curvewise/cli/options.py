"""Options that several commands share."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.util import find_spec
from itertools import takewhile
from pathlib import Path
from shlex import quote
from typing import Annotated, Any, Literal

from cyclopts import CycloptsError, Group, Parameter, Token, UnusedCliTokensError
from cyclopts.validators import Number

from curvewise.cli.console import Page, UsageError, check_folder, note
from curvewise.errors import MissingDependencyError

READING = Group("How to read the file", sort_key=2)
FITTING = Group("How to fit", sort_key=3)
SHOWING = Group("What to show", sort_key=4)

Form = Literal["power", "sqrt", "power2", "sqrt2", "auto", "constrained", "last"]
Files = Annotated[list[str], Parameter(name="FILE...", negative="")]
PLOT_ENDINGS = (".png", ".svg", ".pdf")


def split_numbers(_: Any, tokens: Sequence[Token]) -> list[float]:
    """Read ``800,1600`` as two numbers."""
    return [float(part) for token in tokens for part in token.value.split(",") if part.strip()]


Numbers = Annotated[list[float], Parameter(converter=split_numbers, n_tokens=1, negative="", show_default=False)]


Texts = Annotated[list[str], Parameter(negative="", show_default=False)]
"""An option that may be repeated."""

Size = Annotated[float | None, Parameter(validator=Number(gt=0))]


def read_where(pairs: Sequence[str]) -> dict[str, Any] | None:
    """Read COLUMN=VALUE; several values of one column are any of them.

    >>> read_where(["epoch=10", "epoch=20", "split=test"])
    {'epoch': [10, 20], 'split': 'test'}
    """
    found: dict[str, list[Any]] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"--where {pair!r} must read COLUMN=VALUE, such as split=test.")
        try:
            read = json.loads(value)  # numbers, true, null; else a text
        except ValueError:
            read = value
        found.setdefault(name.strip(), []).append(read)
    return {name: v[0] if len(v) == 1 else v for name, v in found.items()} or None


def usage_panel(error: CycloptsError) -> Any:
    """Show words that were not understood; for one value too many, how to pass it."""
    from cyclopts import CycloptsPanel

    again = _repeated(error) if isinstance(error, UnusedCliTokensError) else ""
    return CycloptsPanel(f"One value for each option: write {again}." if again else error)


def _repeated(error: UnusedCliTokensError) -> str:
    """Write the option before surplus values once for each of them; nothing if it may not be repeated."""
    words, lost = error.root_input_tokens or [], error.unused_tokens or []
    place = words.index(lost[0]) if lost and lost[0] in words else 0
    before = words[max(place - 2, 0) : place]
    if before and before[-1].startswith("--"):  # --option=value is one word
        before = before[-1].split("=", 1)
    known = error.app.assemble_argument_collection() if error.app and len(before) == 2 else ()
    if not any(before[0] in argument.names and argument.token_count()[1] for argument in known):
        return ""
    values = [before[1], *takewhile(lambda word: word in lost, words[place:])]
    return " ".join(f"{before[0]} {quote(value)}" for value in values)


@Parameter(name="*", group=SHOWING)
@dataclass
class Showing:
    """Form of the output.

    Parameters
    ----------
    table
        Print only the tables, in this markup, for a paper or a README.
    json
        Print one JSON document with everything.
    """

    table: Literal["markdown", "latex", "text"] | None = None
    json: Annotated[bool, Parameter(negative="", show_default=False)] = False

    def page(self) -> Page:
        """Start the output."""
        return Page(as_json=self.json, markup=self.table)


@Parameter(name="*", group=SHOWING)
@dataclass
class Drawing:
    """Picture of the result.

    Parameters
    ----------
    plot
        Draw the result into this .png, .svg or .pdf file.
    """

    plot: Path | None = None

    def __post_init__(self) -> None:
        """Refuse a file that cannot be drawn before anything is fitted."""
        if self.plot is None:
            return
        if self.plot.suffix.lower() not in PLOT_ENDINGS:
            raise UsageError(f"--plot {self.plot} must end in {', '.join(PLOT_ENDINGS)}.")
        check_folder("--plot", self.plot)


Level = Annotated[float, Parameter(validator=Number(gt=0, lt=1))]


def split_words(_: Any, tokens: Sequence[Token]) -> list[str]:
    """Read ``runs,examples`` as two words."""
    return [part.strip() for token in tokens for part in token.value.split(",") if part.strip()]


Words = Annotated[list[str], Parameter(converter=split_words, n_tokens=1, negative="", show_default=False)]


def read_options(pairs: Sequence[str]) -> dict[str, Any]:
    """Read KEY=VALUE; values that look like numbers, booleans or lists are taken as such.

    >>> read_options(["width=64", "norm=true", "size=[8, 8]", "name=relu"])
    {'width': 64, 'norm': True, 'size': [8, 8], 'name': 'relu'}
    """
    found: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"{pair!r} must read KEY=VALUE, such as width=64.")
        try:
            found[key.strip()] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            found[key.strip()] = value
    return found


def check_picture(option: str, path: Path | None) -> None:
    """Refuse a picture that cannot be written."""
    if path is None:
        return
    if path.suffix.lower() not in PLOT_ENDINGS:
        raise UsageError(f"{option} {path} must end in {', '.join(PLOT_ENDINGS)}.")
    check_folder(option, path)


def need_torch() -> None:
    """Say what to install where there is no torch."""
    if find_spec("torch") is None:
        raise MissingDependencyError('Networks need torch, which is not installed: pip install "curvewise[torch]".')


DATA = Group("The examples", sort_key=2)


NETWORK = Group("The network", sort_key=3)


# Files in, measurements and fitted curves out; figures into files.

STDIN = "/dev/stdin"
"""What ``-`` stands for, here on every system."""


def names_of(files: Sequence[str]) -> dict[str, str]:
    """Shortest names that tell the files apart."""
    files = list(dict.fromkeys(files))
    stems = [Path(f).stem for f in files]
    return dict(zip(files, stems if len(set(stems)) == len(stems) else files, strict=True))


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
    from curvewise.drawing.picture import save_picture

    save_picture(draw, path)
    if not quiet:
        note(f"drawn into {path}")
