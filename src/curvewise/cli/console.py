"""Options in, results on stdout and messages on stderr, and nothing that a terminal would obey."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
import tomllib
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib.util import find_spec
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from cyclopts import CycloptsError, Group, Parameter, Token, UnusedCliTokensError
from cyclopts.validators import Number

from curvewise.errors import UNSET, CurvewiseError, CurvewiseWarning, InputError, Message, MissingDependencyError
from curvewise.text import format_interval, one_line

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from curvewise.types.results import Result, Unit


Columns: TypeAlias = "Mapping[str, Sequence[Any] | NDArray[Any]]"

DONE, FAILED, USAGE, GATE = 0, 1, 2, 3
INTERRUPTED, TERMINATED = 130, 143
"""As shells count: 128 and the number of the signal."""

MOST_WARNINGS = 3
"""Warnings that are shown without --verbose; the rest is counted."""

FEWER = {"γ": 2}
"""Columns that are in no unit, and their decimals in the terminal."""

WIDEST = 40
"""Letters of a column of texts in the terminal: names of models have more than 30."""

MOST_NAMES = 4
"""Names to which the same warning applies that are listed."""

_DIGITS = re.compile(r"\d[\d.,]*")
_USUAL = re.compile(r"(\w+) from '\1'|(values|label|run|example) from '\w+'|sizes taken as given")


class UsageError(CurvewiseError):
    """The command was called in a way that cannot work: exit status 2."""


def check_folder(option: str, path: Path) -> None:
    """Refuse a file to write, before any work is done, if its folder does not exist."""
    if not path.parent.is_dir():
        raise UsageError(f"{option} {path}: there is no folder {path.parent}. Make it first.")


def note(message: str) -> None:
    """Print on stderr how something was understood or where it was written."""
    _message("note: ", "dim", message)


def fail(message: str) -> None:
    """Print on stderr why a command failed."""
    _message("curvewise: ", "bold red", message)


def warn(message: str) -> None:
    """Warn on stderr, once."""
    warnings.warn(message, CurvewiseWarning, stacklevel=2)


def note_reading(notes: Sequence[str], file: str = "") -> None:
    """Note on stderr how a file was understood; a column that has the usual name only with --verbose."""
    parts = [part for n in notes if n for part in in_options(n).split("; ")]
    said = [part for part in parts if _VERBOSE or not _USUAL.fullmatch(part)]
    if said:
        note((f"{file}: " if file else "") + "; ".join(said))


def warn_each(messages: Sequence[str]) -> None:
    """Print the first few warnings, those of several names that differ in numbers at most as one; --verbose prints all.

    The names follow the first warning, those with the same text apart from those with other numbers.
    """
    if _VERBOSE:
        for message in messages:
            warn(message)
        return
    alike: dict[str, list[str]] = {}
    for message in dict.fromkeys(messages):
        _, colon, text = in_options(message).partition(": ")
        # Without a name before it, a warning stands by itself.
        alike.setdefault(_DIGITS.sub("#", text) if colon else in_options(message), []).append(message)
    for first, *others in list(alike.values())[:MOST_WARNINGS]:
        text = in_options(first).partition(": ")[2]
        parts = [in_options(other).partition(": ") for other in others]
        same = [name for name, _, said in parts if said == text]
        unlike = [name for name, _, said in parts if said != text]
        more = f" (The same holds for {_first_names(same)}.)" if same else ""
        more += f" (The same with other numbers for {_first_names(unlike)}: see --verbose.)" if unlike else ""
        warn(Message(getattr(first, "marked", first) + more) if more else first)
    if (left := sum(map(len, list(alike.values())[MOST_WARNINGS:]))) > 0:
        warn(f"and {left} more: --verbose shows all of them.")


def _first_names(names: Sequence[str]) -> str:
    return ", ".join(names[:MOST_NAMES]) + (f" and {len(names) - MOST_NAMES} more" if names[MOST_NAMES:] else "")


def hear_warnings() -> None:
    """Print Python warnings as ``warning: …``, each text once; undone by ``catch_warnings``."""
    seen: set[str] = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        if str(message) not in seen:
            seen.add(str(message))
            _message("warning: ", "yellow", text_of(message))

    warnings.simplefilter("always", CurvewiseWarning)
    warnings.showwarning = show


_OPTIONS: dict[str, str | None] = {}
"""Names of arguments and of the options that stand for them in the command that runs."""


_VERBOSE = False
"""True while a command runs that was asked for details."""


def use_options(options: Mapping[str, str | None]) -> None:
    """Word the messages that follow with these options for the arguments of the same meaning.

    An argument that is not named there has an option of its own name; an empty name stands for a value that is given
    without an option, and None for a setting of a study file, which is named as it is written there. ``"columns.n"``
    names the option for one key of an argument that is a dict, and ``"data.*"`` one that takes all other keys as
    ``KEY=VALUE``.
    """
    global _VERBOSE
    _VERBOSE = False
    _OPTIONS.clear()
    _OPTIONS.update({"columns": "column", "rng": "seed", "source": ""} | dict(options))


def text_of(error: BaseException | str) -> str:
    """Return the text of an error or a warning, as a :class:`Message` if it is one."""
    if isinstance(error, str):
        return error
    first = error.args[0] if error.args else ""
    return first if isinstance(first, Message) else str(error)


def in_options(text: str) -> str:
    """Word a message with the options of the command that runs.

    >>> from curvewise.errors import arg
    >>> use_options({})
    >>> in_options(Message(f"Pass {arg('unit', 'percent')}, {arg('columns', {'n': 'size'})} or {arg('paired', True)}."))
    'Pass --unit percent, --column n=size or --paired.'
    """
    return text.worded(_option_of) if isinstance(text, Message) else text


def _option_of(name: str, value: Any) -> str:
    table, _, key = name.partition(".")
    if key and name not in _OPTIONS and (option := _OPTIONS.get(f"{table}.*")):
        text = "…" if value is UNSET else value if isinstance(value, str) else json.dumps(value, default=str)
        return f"--{option} {_quoted(f'{key}={text}')}"
    option = _OPTIONS.get(name, None if "." in name else name)
    if option is None:  # a setting in a table of a study file, such as data.function
        return f"{name}=…" if value is UNSET else f"{name}={value!r}"
    option = option.replace("_", "-")
    flag = f"--{option}" if option else ""
    if value is UNSET or value is True:
        return flag or name  # what is given without an option goes by its name
    if value is False:
        return "--lower-is-better" if name == "higher_is_better" else f"--no-{option}"
    if value is None:
        return f"{flag}="
    if isinstance(value, dict):
        pairs = [(k, v) for k, vs in value.items() for v in (vs if isinstance(vs, list | tuple) else [vs])]
        # A key may have an option of its own: columns={'n': 'size'} is --n-column size where OPTIONS has "columns.n".
        own = {k: f"{name}.{k}" for k, _ in pairs if f"{name}.{k}" in _OPTIONS}
        return " ".join(
            _option_of(own[k], v) if k in own else f"{flag} {_quoted(f'{k}=' if v is None else f'{k}={v}')}".strip()
            for k, v in pairs
        )
    if isinstance(value, list | tuple | set):
        value = ",".join(map(str, value))
    return f"{flag} {_quoted(str(value))}".strip()


def _quoted(value: str) -> str:
    # shlex would quote the dots of an ellipsis and percent signs, which no shell minds.
    return value if value and not re.search(r"[^\w…=/@%+:,.-]", value) else shlex.quote(value)


def console(*, stderr: bool = False) -> Console:
    """Make a rich console that interprets nothing in what it prints."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, markup=False, emoji=False)


def _message(head: str, style: str, message: str) -> None:
    from rich.text import Text

    sys.stdout.flush()  # so that it follows what it belongs to, where both go into one pipe
    to = console(stderr=True)
    text = Text.assemble((head, style), one_line(in_options(message)))
    to.print(text, soft_wrap=not to.is_terminal)


@dataclass
class Page:
    """The output of a command: a terminal, a markup table or one JSON document.

    Attributes
    ----------
    as_json : bool
        Print ``document`` at the end and nothing else.
    markup : str or None
        "markdown", "latex" or "text": only tables go to stdout, sentences to stderr.
    document : dict
        What ``--json`` prints.
    verbose : bool
        Print details that are worth having now and then.
    """

    as_json: bool = False
    markup: str | None = None
    document: dict[str, Any] = field(default_factory=dict)
    verbose: bool = False
    _started: bool = False

    def say(self, text: str, style: str = "", *, close: bool = False) -> None:
        """Print a paragraph, ``close`` to the one before or after an empty line."""
        if self.as_json:
            return
        from rich.text import Text

        to = console(stderr=self.markup is not None)
        if not close:
            self._space(to)
        to.print(Text(one_line(text), style=style), soft_wrap=not to.is_terminal)

    def table(self, title: str, columns: Columns, digits: int | None) -> None:
        """Print columns of text, numbers and intervals; ``digits`` as in :func:`digits_of`."""
        if self.as_json:
            return
        if self.markup is None:
            from rich.text import Text

            to = console()
            self._space(to)
            table = rich_table(columns, digits)
            to.print(Text(one_line(title), style="bold"))
            # Numbers are never cut: a table too wide for the terminal runs over its edge.
            to.width = max(to.width, width_of(table)[0])  # print(width=) takes no more than this
            to.print(table, crop=False)
            return
        from curvewise.text import format_table

        text = format_table(columns, self.markup, digits, note=title)
        self._space(console())
        sys.stdout.write(text + "\n")

    def result(self, result: Result, title: str, columns: Columns | None = None) -> None:
        """Print the table of a result; in a markup it is the one of ``result.table``, as Python gives it."""
        if self.markup is None or self.as_json:
            table_in_parts(self, title, result.readable() if columns is None else columns)
            return
        self._space(console())
        sys.stdout.write(in_options(result.table(self.markup)) + "\n")

    def code(self, lines: str) -> None:
        """Print lines to copy, indented, as they are."""
        if not self.as_json:
            sys.stdout.write("".join(f"  {one_line(line)}\n" for line in lines.splitlines()))

    def close(self, code: int = DONE) -> int:
        """Print the JSON document if that was asked for, and return the exit status."""
        if self.as_json:
            from curvewise.types.results import plain

            json.dump(_in_options_all(plain(self.document)), sys.stdout, indent=2, allow_nan=False)
            sys.stdout.write("\n")
        return code

    def _space(self, to: Console) -> None:
        if self._started and not to.stderr:
            sys.stdout.write("\n")
        self._started = self._started or not to.stderr


def _in_options_all(value: Any) -> Any:
    """Word every message of a JSON document with options."""
    if isinstance(value, dict):
        return {k: _in_options_all(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_in_options_all(v) for v in value]
    return in_options(value) if isinstance(value, Message) else value


def rich_table(columns: Columns, digits: int | None) -> Table:
    """Make a table for the terminal."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from curvewise.text import NUMBER

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name, values in columns.items():
        if any(isinstance(v, str) and not NUMBER.fullmatch(v) for v in values):
            table.add_column(Text(one_line(name)), overflow="fold", max_width=WIDEST)
        else:
            # As wide as its numbers, which are never cut; a head may take several lines.
            lines = [line for v in values for line in _cell(v, FEWER.get(name, digits)).plain.splitlines()]
            least = max((Text(part).cell_len for part in [*lines, *one_line(name).split()]), default=1)
            table.add_column(Text(one_line(name)), justify="right", min_width=least)
    for row in zip(*columns.values(), strict=True):
        table.add_row(*(_cell(v, FEWER.get(k, digits)) for k, v in zip(columns, row, strict=True)))
    return table


def width_of(table: Table) -> tuple[int, int]:
    """Return the least and the natural width of a table, in characters."""
    to = console()
    found = to.measure(table, options=to.options.update(width=10_000))
    return found.minimum, found.maximum


def _cell(value: Any, digits: int | None) -> Text:
    from rich.text import Text

    from curvewise.text import Cell
    from curvewise.types.results import Interval

    if isinstance(value, Cell):
        style = "bold" if value.bold else "underline" if value.underlined else ""
        return Text.assemble((one_line(value.text), style), (one_line(value.after + value.signs), "dim"))
    if not isinstance(value, Interval):
        return Text(_write(value, digits))
    return Text(format_interval(value))


def _write(value: Any, digits: int | None) -> str:
    from curvewise.text import format_number

    if value is None or value != value:
        return "–"
    if isinstance(value, str):
        return one_line(value)
    if isinstance(value, int):  # which may be beyond all floats
        from decimal import Decimal

        return f"{value:,}" if abs(value) < 10**18 else f"{Decimal(value):.3e}"
    if digits is None or abs(value) == float("inf"):
        return format_number(float(value))
    return f"{value:,.{digits}f}"


def shown_as(value: float, form: str) -> str:
    """Format a number: a dash for NaN, the sign ∞ for infinity.

    >>> shown_as(0.25, ".0%"), shown_as(float("nan"), ".0%"), shown_as(float("inf"), ".2f")
    ('25%', '–', '∞')
    """
    if value != value:
        return "–"
    if abs(value) == float("inf"):
        return "∞" if value > 0 else "−∞"
    return format(value, form)


def digits_of(unit: Unit) -> int | None:
    """Return the decimals for values of a unit; None for four significant digits."""
    return {"percent": 2, "fraction": 4}.get(unit.name)


# Tables with more columns than a terminal has room for.


def table_in_parts(page: Page, title: str, columns: Columns) -> None:
    """Print a table; in a terminal that is too narrow, one below the other with as many columns.

    The first column names the rows and begins every part.
    """
    if page.as_json or page.markup is not None:
        page.table(title, columns, None)
        return
    for i, part in enumerate(parts_of(columns, console().width)):
        page.table(title if i == 0 else f"{title}, continued", part, None)


def parts_of(columns: Columns, width: int) -> list[dict[str, Any]]:
    """Split columns so that each part fits, if a part of two columns does.

    >>> columns = {"name": ["a", "b"], "first": [1, 2], "second": [3, 4], "third": [5, 6]}
    >>> [list(part) for part in parts_of(columns, 24)]
    [['name', 'first', 'second'], ['name', 'third']]
    """
    (key, names), *rest = columns.items()
    parts: list[dict[str, Any]] = [{key: names}]
    for name, values in rest:
        longer = {**parts[-1], name: values}
        if len(parts[-1]) > 1 and width_of(rich_table(longer, None))[1] > width:
            longer = {key: names, name: values}
            parts.append(longer)
        parts[-1] = longer
    return parts


# Options that several commands share. cyclopts reads their types and docstrings.

READING = Group("How to read the file", sort_key=2)
FITTING = Group("How to fit", sort_key=3)
SHOWING = Group("What to show", sort_key=4)
DATA = Group("The examples", sort_key=2)
NETWORK = Group("The network", sort_key=3)

Form = Literal["power", "sqrt", "power2", "sqrt2", "auto", "constrained", "last"]


def expand_patterns(_: Any, tokens: Sequence[Token]) -> list[str]:
    """Replace patterns that no shell has expanded, such as a quoted ``'runs/*.csv'``, by the files they match.

    NAME=PATTERN stays as it is: its files together have the name.
    """
    from curvewise.reading.table import expand_files

    found: list[str] = []
    for token in tokens:
        plain = token.value == STDIN or not any(sign in token.value for sign in "*?[")
        try:
            found += [token.value] if plain or split_name(token.value)[0] else map(str, expand_files(token.value))
        except InputError:
            raise ValueError(f"{token.value} matches no file.") from None
    return found


Files = Annotated[list[str], Parameter(name="FILE...", negative="", converter=expand_patterns)]
PLOT_ENDINGS = (".png", ".svg", ".pdf")


def _split(kind: Callable[[str], Any]) -> Parameter:
    """Make an option that reads ``800,1600`` as two values."""

    def values(_: Any, tokens: Sequence[Token]) -> list[Any]:
        return [kind(part.strip()) for token in tokens for part in token.value.split(",") if part.strip()]

    return Parameter(converter=values, n_tokens=1, negative="", show_default=False)


Numbers = Annotated[list[float], _split(float)]
Words = Annotated[list[str], _split(str)]
Flag = Annotated[bool, Parameter(negative="", show_default=False)]
Texts = Annotated[list[str], Parameter(negative="", show_default=False)]
"""An option that may be repeated."""

Size = Annotated[float | None, Parameter(validator=Number(gt=0))]


def read_where(pairs: Sequence[str]) -> dict[str, Any] | None:
    """Read COLUMN=VALUE; several values of one column are any of them.

    >>> read_where(["epoch=10", "epoch=20", "split=test"])
    {'epoch': [10, 20], 'split': 'test'}
    """
    found: dict[str, list[Any]] = {}
    for name, value in _pairs(pairs, "--where {} must read COLUMN=VALUE, such as split=test."):
        try:
            read = json.loads(value)  # numbers, true, null; else a text
        except ValueError:
            read = value
        found.setdefault(name, []).append(read)
    return {name: v[0] if len(v) == 1 else v for name, v in found.items()} or None


def _pairs(texts: Sequence[str], problem: str) -> Iterator[tuple[str, str]]:
    """Split ``name=value`` at the first equals sign."""
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise UsageError(problem.format(repr(text)))
        yield name.strip(), value


def usage_panel(error: CycloptsError) -> Any:
    """Show words that were not understood; for one value too many, how to pass it; for an option, one that is near."""
    from cyclopts import CycloptsPanel
    from cyclopts.exceptions import UnknownOptionError

    if isinstance(error, UnknownOptionError) and (option := error.token.keyword or error.token.value).startswith("--"):
        names = [name for argument in error.argument_collection if argument.parse for name in argument.names]
        return CycloptsPanel(f"Unknown option: {option}.{_near_option(option, names)}")
    again = _repeated(error) if isinstance(error, UnusedCliTokensError) else ""
    return CycloptsPanel(f"One value for each option: write {again}." if again else error)


SYNONYMS = {
    "learner": ("model", "models", "method", "network", "algorithm", "name"),
    "plot": ("out", "output", "save", "figure", "picture", "image", "png", "savefig"),
    "table": ("format", "latex", "markdown", "md"),
    "level": ("alpha", "confidence", "ci", "coverage"),
    "reach": ("target", "goal"),
    "at": ("n", "size"),
    "where": ("filter", "query"),
}
"""Options, and what other programs call them."""


def _near_option(option: str, names: Sequence[str]) -> str:
    """Suggest an option of the same meaning, else one that is spelled much alike; nothing where none is.

    >>> _near_option("--model", ["--learner", "--wide"]), _near_option("--lerner", ["--learner"])
    (' Did you mean --learner?', ' Did you mean --learner?')
    >>> _near_option("--colour", ["--column", "--wide"])
    ''
    """
    plain = {name.removeprefix("--"): name for name in names if name.startswith("--")}
    word = option.removeprefix("--").partition("=")[0]
    same = [meant for meant, words in SYNONYMS.items() if word in words and meant in plain]
    # At 0.6, the default of difflib, --model is like --wide.
    close = same or get_close_matches(word, plain, n=1, cutoff=0.75)
    return f" Did you mean {plain[close[0]]}?" if close else ""


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
    return " ".join(f"{before[0]} {shlex.quote(value)}" for value in values)


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
    verbose
        Print more: how every column was read, all warnings, further tables.
    """

    table: Literal["markdown", "latex", "text"] | None = None
    json: Flag = False
    verbose: Flag = False

    def page(self) -> Page:
        """Start the output."""
        global _VERBOSE  # what is read and warned of later is worded by functions that know no page
        _VERBOSE = self.verbose
        return Page(as_json=self.json, markup=self.table, verbose=self.verbose)


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
        check_picture("--plot", self.plot)


Level = Annotated[float, Parameter(validator=Number(gt=0, lt=1))]


def read_options(pairs: Sequence[str]) -> dict[str, Any]:
    """Read KEY=VALUE; values that look like numbers, booleans or lists are taken as such.

    >>> read_options(["width=64", "norm=true", "size=[8, 8]", "name=relu"])
    {'width': 64, 'norm': True, 'size': [8, 8], 'name': 'relu'}
    """
    found: dict[str, Any] = {}
    for key, value in _pairs(pairs, "{} must read KEY=VALUE, such as width=64."):
        try:
            found[key] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            found[key] = value
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


# Files in, measurements and fitted curves out; figures into files.

STDIN = "/dev/stdin"
"""The file that ``-`` stands for, on every system."""


def named_files(words: Sequence[str]) -> dict[str, str]:
    """Return the file of each name: as NAME=FILE says, else under the shortest name that tells the files apart.

    A file whose own name holds an equals sign is a file; so is a word with a folder before the sign.

    >>> named_files(["wide=runs/64.npy", "runs/8.npy"]), named_files(["a/runs.npy", "b/runs.npy"])
    ({'wide': 'runs/64.npy', '8': 'runs/8.npy'}, {'a/runs.npy': 'a/runs.npy', 'b/runs.npy': 'b/runs.npy'})
    """
    split = {word: split_name(word) for word in words}
    stems = [name or Path(file).stem for name, file in split.values()]
    # Full paths tell files of one name apart; names that were given are kept.
    plain = stems if len(set(stems)) == len(stems) else [name or file for name, file in split.values()]
    found: dict[str, str] = {}
    for name, (_, file) in zip(plain, split.values(), strict=True):
        if name in found:
            raise UsageError(f"{name!r} is given twice: name each file, as NAME=FILE.")
        found[name] = file
    return found


def split_name(word: str) -> tuple[str, str]:
    """Split NAME=FILE; the name is empty where the word is a file.

    >>> split_name("wide=runs.npy"), split_name("runs.npy"), split_name("lr/rate=0.1/runs.npy")
    (('wide', 'runs.npy'), ('', 'runs.npy'), ('', 'lr/rate=0.1/runs.npy'))
    """
    name, equals, file = word.partition("=")
    named = equals and name.strip() and file and not {"/", os.sep} & set(name) and not Path(word).exists()
    return (name.strip(), file) if named else ("", word)


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
