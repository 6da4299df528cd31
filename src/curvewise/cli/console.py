"""Options in, results on stdout and messages on stderr, and nothing that a terminal would obey."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
import tempfile
import tomllib
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from fnmatch import fnmatchcase
from glob import glob
from importlib.util import find_spec
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Literal,
    TypeAlias,
    TypeVar,
    dataclass_transform,
    get_type_hints,
)

from cyclopts import Group, Parameter, Token
from cyclopts.validators import Number

from curvewise.errors import (
    UNSET,
    CurvewiseError,
    CurvewiseWarning,
    InputError,
    Message,
    MissingDependencyError,
    list_names,
)
from curvewise.text import format_interval, one_line

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from curvewise.study.data.dataset import Dataset
    from curvewise.types.results import Result


Columns: TypeAlias = "Mapping[str, Sequence[Any] | NDArray[Any]]"

DONE, FAILED, USAGE, GATE = 0, 1, 2, 3
INTERRUPTED, TERMINATED = 130, 143
"""As shells count: 128 and the number of the signal."""

MOST_WARNINGS = 3
"""Warnings that are shown without --verbose; the rest is counted."""

WIDEST = 40
"""Letters of a column of texts in the terminal: names of models have more than 30."""

MOST_NAMES = 4
"""Names to which the same warning applies that are listed."""

_DIGITS = re.compile(r"\d[\d.,]*")
_USUAL = re.compile(r"(\w+) from '\1'|(values|label|run|example) from '\w+'|sizes taken as given")


class UsageError(CurvewiseError):
    """The command was called in a way that cannot work: exit status 2."""


def check_file(option: str, path: Path | None, endings: Sequence[str] = ()) -> None:
    """Refuse a file that cannot be written, before any work is done: of another kind, or in a folder that is not there.

    Without ``endings`` a file of any name will do.
    """
    if path is None:
        return
    if endings and path.suffix.lower() not in endings:
        raise UsageError(f"{option} {path} must end in {', '.join(endings)}.")
    if not path.parent.is_dir():
        raise UsageError(f"{option} {path}: there is no folder {path.parent}. Make it first.")
    if path.is_dir():
        raise UsageError(f"{option} {path} is a folder: name a file.")


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
    unusual = [part for part in parts if _VERBOSE or not _USUAL.fullmatch(part)]
    if unusual:
        note((f"{file}: " if file else "") + "; ".join(unusual))


def note_table(table: Any, file: str = "") -> None:
    """Note on stderr what a file holds, by the repr of the table that was read, and how it was understood."""
    note_reading([repr(table).partition("(")[2].removesuffix(")"), *table.notes], file)


def warn_each(messages: Sequence[str], *, every: bool = False) -> None:
    """Print the first few warnings, those of several names that differ in numbers at most as one; or every one.

    The names follow the first warning, those with the same text apart from those with other numbers.
    """
    if _VERBOSE or every:
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
        same = [name for name, _, other in parts if other == text]
        unlike = [name for name, _, other in parts if other != text]
        more = f" (The same holds for {list_names(same, MOST_NAMES, quoted=False)}.)" if same else ""
        if unlike:
            listed = list_names(unlike, MOST_NAMES, quoted=False)
            more += f" (The same with other numbers for {listed}: see --verbose.)"
        warn(Message(getattr(first, "marked", first) + more) if more else first)
    if (left := sum(map(len, list(alike.values())[MOST_WARNINGS:]))) > 0:
        warn(f"and {left} more: --verbose shows all of them.")


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
    plot : path or None
        File for the picture of the result.
    all_warnings : bool
        Print every warning.
    """

    as_json: bool = False
    markup: str | None = None
    document: dict[str, Any] = field(default_factory=dict)
    verbose: bool = False
    plot: Path | None = None
    all_warnings: bool = False
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

    def table(self, title: str, columns: Columns) -> None:
        """Print columns of text, numbers and intervals."""
        if self.as_json:
            return
        if self.markup is None:
            from rich.text import Text

            to = console()
            self._space(to)
            table = rich_table(columns)
            to.print(Text(one_line(title), style="bold"))
            # Numbers are never cut: a table too wide for the terminal runs over its edge.
            to.width = max(to.width, width_of(table)[0])  # print(width=) takes no more than this
            to.print(table, crop=False)
            return
        from curvewise.text import format_table

        text = format_table(columns, self.markup, note=title)
        self._space(console())
        sys.stdout.write(text + "\n")

    def result(self, result: Result, title: str) -> None:
        """Print the table of a result; in a markup it is the one of ``result.table``, as Python gives it."""
        if self.markup is None or self.as_json:
            table_in_parts(self, title, result.readable())
            return
        self._space(console())
        sys.stdout.write(in_options(result.table(self.markup)) + "\n")

    def answer(
        self,
        result: Result,
        title: str,
        *,
        columns: Columns | None = None,
        further: Mapping[str, Columns] | None = None,
        document: Mapping[str, Any] | None = None,
        text: str = "",
        style: str = "",
        warnings: Sequence[str] = (),
        known: Sequence[str] = (),
        draw: Callable[[], Any] | None = None,
        status: int = DONE,
    ) -> int:
        """Print the tables, the sentences and the warnings of a result, draw it, and return the exit status.

        Parameters
        ----------
        result, title
            The result, and the title of its table.
        columns
            The table, if not the readable one of the result.
        further
            More tables by their titles.
        document
            What ``--json`` prints beside the result.
        text, style
            Sentences, if not those of the result, and their style.
        warnings, known
            Warnings before those of the result, and those that are not to be printed, as they were already.
        draw
            Draws the picture, if not ``result.plot``.
        status
            The exit status.
        """
        every = list(dict.fromkeys([*warnings, *result.all_warnings]))
        self.document |= {**result.to_dict(), "warnings": every, **(document or {})}
        if columns is None:
            self.result(result, title)
        else:
            table_in_parts(self, title, columns)
        for name, table in (further or {}).items():
            table_in_parts(self, name, table)
        self.say(in_options(text or result.sentences()), style=style)
        warn_each([text for text in every if text not in known], every=self.all_warnings)
        save_plot(self.plot, draw or result.plot)
        return self.close(status)

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


def rich_table(columns: Columns) -> Table:
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
            lines = [line for v in values for line in _cell(v).plain.splitlines()]
            least = max((Text(part).cell_len for part in [*lines, *one_line(name).split()]), default=1)
            table.add_column(Text(one_line(name)), justify="right", min_width=least)
    for row in zip(*columns.values(), strict=True):
        table.add_row(*map(_cell, row))
    return table


def width_of(table: Table) -> tuple[int, int]:
    """Return the least and the natural width of a table, in characters."""
    to = console()
    found = to.measure(table, options=to.options.update(width=10_000))
    return found.minimum, found.maximum


def _cell(value: Any) -> Text:
    from rich.text import Text

    from curvewise.text import Cell
    from curvewise.types.results import Interval

    if isinstance(value, Cell):
        style = "bold" if value.bold else "underline" if value.underlined else ""
        return Text.assemble((one_line(value.text), style), (one_line(value.after + value.signs), "dim"))
    if not isinstance(value, Interval):
        return Text(_write(value))
    return Text(format_interval(value))


def _write(value: Any) -> str:
    from curvewise.text import write_cell

    if value is None or value != value:
        return "–"
    if isinstance(value, int) and abs(value) >= 10**18:  # which may be beyond all floats
        from decimal import Decimal

        return f"{Decimal(value):.3e}"
    return write_cell(value)


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


# Tables with more columns than a terminal has room for.


def table_in_parts(page: Page, title: str, columns: Columns) -> None:
    """Print a table; in a terminal that is too narrow, one below the other with as many columns.

    The first column names the rows and begins every part.
    """
    if page.as_json or page.markup is not None:
        page.table(title, columns)
        return
    for i, part in enumerate(parts_of(columns, console().width)):
        page.table(title if i == 0 else f"{title}, continued", part)


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
        if len(parts[-1]) > 1 and width_of(rich_table(longer))[1] > width:
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

_Options = TypeVar("_Options", bound=type)


@dataclass_transform(kw_only_default=True, frozen_default=True)
def options(group: Group | None = None) -> Callable[[_Options], _Options]:
    """Make a class a group of options: a frozen dataclass with a field for each of them."""

    def make(cls: _Options) -> _Options:
        shared = {name for base in cls.__mro__[1:] for name in getattr(base, "__dataclass_fields__", ())}
        made: Any = dataclass(frozen=True, kw_only=True)(cls)
        # cyclopts lists fields in this order: the options of a command before those that it shares with others.
        fields = sorted(made.__dataclass_fields__.items(), key=lambda item: item[0] in shared)
        made.__dataclass_fields__ = dict(fields)
        # cyclopts evaluates the annotations in the module of the class, which need not know the types it inherits.
        hints = get_type_hints(made, include_extras=True)
        made.__init__.__annotations__ = {name: hints[name] for name, _ in fields}
        as_options: Callable[[_Options], _Options] = Parameter(name="*", group=group) if group else Parameter(name="*")
        return as_options(made)

    return make


def expand_patterns(_: Any, tokens: Sequence[Token]) -> list[str]:
    """Replace patterns that no shell has expanded, such as a quoted ``'runs/*.csv'``, by the files they match.

    NAME=PATTERN stays as it is: its files together have the name.
    """
    from curvewise.reading.table import expand_files

    files: list[str] = []
    for token in tokens:
        plain = token.value == STDIN or not any(sign in token.value for sign in "*?[")
        try:
            files += [token.value] if plain or split_name(token.value)[0] else map(str, expand_files(token.value))
        except InputError:
            raise ValueError(f"{token.value} matches no file.") from None
    return files


def _split(kind: Callable[[str], Any]) -> Parameter:
    """Make an option that reads ``800,1600`` as two values."""

    def values(_: Any, tokens: Sequence[Token]) -> list[Any]:
        return [kind(part.strip()) for token in tokens for part in token.value.split(",") if part.strip()]

    return Parameter(converter=values, n_tokens=1, negative="", show_default=False)


def _count(text: str) -> int:
    if not (text.isdecimal() and int(text) > 0):
        raise ValueError(f"{text!r} must be a whole number from 1 on, or several with commas: 1,2,4.")
    return int(text)


File = Annotated[str, Parameter(name="FILE")]
Files = Annotated[list[str], Parameter(name="FILE...", negative="", converter=expand_patterns)]
OptionalFiles = Annotated[Files, Parameter(show_default=False)]
Numbers = Annotated[list[float], _split(float)]
Counts = Annotated[list[int], _split(_count)]
Words = Annotated[list[str], _split(str)]
Flag = Annotated[bool, Parameter(negative="", show_default=False)]
Texts = Annotated[list[str], Parameter(negative="", show_default=False)]
"""An option that may be repeated."""

Size = Annotated[float | None, Parameter(validator=Number(gt=0, lt=float("inf")))]


def _check_share(_: Any, value: float) -> None:
    if not 0 < value < 1:
        remedy = f": {value / 100:g} for {value:g}%" if 1 < value < 100 else ", such as 0.95"
        raise ValueError(f"Must be between 0 and 1{remedy}.")


Level = Annotated[float, Parameter(validator=_check_share)]
"""A coverage, a power, or another share between 0 and 1."""
AtLeast0 = Annotated[int, Parameter(validator=Number(gte=0))]
AtLeast1 = Annotated[int, Parameter(validator=Number(gte=1))]
Higher = Annotated[bool | None, Parameter(name=("--higher-is-better", "--accuracy"), negative="--lower-is-better")]
Unit4 = Literal["fraction", "percent", "loss", "score"]
Form = Literal["power", "sqrt", "power2", "sqrt2", "auto", "constrained", "last"]

PLOT_ENDINGS = (".png", ".svg", ".pdf")


@options(READING)
class TableReading:
    """Options for reading a table.

    Parameters
    ----------
    column
        Which column has a role, as ROLE=COLUMN; ROLE= leaves a role out. May be repeated.
    where
        Only rows with this, as COLUMN=VALUE; may be repeated, for several values of a column, too.
    allow_large
        Read a compressed file whatever it unpacks to.
    """

    column: Texts = field(default_factory=list)
    where: Texts = field(default_factory=list)
    allow_large: Flag = False
    own_options: ClassVar[Sequence[str]] = ()
    """Roles with an option of their own, such as ``--n-column``."""
    example: ClassVar[str] = "fold=split"

    @property
    def columns(self) -> dict[str, Any] | None:
        """Map each role to its column or columns, None for a role that is left out; None where no role is named."""
        named: dict[str, list[str]] = {}
        for role in self.own_options:
            value = getattr(self, f"{role}_column")
            if value is not None and value != []:
                named[role] = [name for name in ([value] if isinstance(value, str) else value) if name]
        for role, name in read_columns(self.column, self.example):
            columns = named.setdefault(role, [])
            columns += [name] if name and name not in columns else []
        return {role: names[0] if len(names) == 1 else (names or None) for role, names in named.items()} or None


def read_columns(pairs: Sequence[str], example: str) -> list[tuple[str, str]]:
    """Split the values of --column, ROLE=COLUMN.

    >>> read_columns(["question=prompt no", "task="], "question=prompt_no")
    [('question', 'prompt no'), ('task', '')]
    """
    return list(_pairs(pairs, f"--column {{}} must read ROLE=COLUMN, such as {example}."))


@contextmanager
def readable_file(file: str) -> Iterator[str]:
    """Give a file that can be read more than once, which stdin cannot, with the ending that fits its content."""
    if file != STDIN:
        yield file
        return
    data = sys.stdin.buffer.read()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"stdin{ending_of(data)}"
        path.write_bytes(data)
        yield str(path)


def ending_of(data: bytes) -> str:
    r"""Return the file ending that fits a content.

    >>> ending_of(b"method,n"), ending_of(b"[{}]"), ending_of(b'{"n": 1}\n{"n": 2}\n')
    ('.csv', '.json', '.jsonl')
    """
    if data.startswith(b"PAR1"):
        return ".parquet"
    if data.startswith(b"\x1f\x8b"):
        return ".csv.gz"
    text = data.lstrip(b"\xef\xbb\xbf \t\r\n")
    if not text.startswith((b"[", b"{")):
        return ".csv"
    first, _, rest = text.partition(b"\n")
    each = first.rstrip().endswith(b"}") and rest.lstrip().startswith(b"{")
    return ".jsonl" if each else ".json"


@options(DATA)
class DatasetReading:
    """Options for reading examples.

    Parameters
    ----------
    data
        Examples with their classes: an .npz file, a table, a folder of IDX files, of CIFAR's
        binary files or of images with a subfolder for each class; or a name, such as digits,
        fashion-mnist or cifar10.
    part
        Training or test examples.
    data_option
        How to read them, as KEY=VALUE, such as size=32 for a folder of images, or x=images for an
        .npz file; may be repeated.
    """

    data: str | None = None
    part: Literal["train", "test"] = "train"
    data_option: Texts = field(default_factory=list)

    def read(self, load_dataset: Callable[[Any], Dataset]) -> tuple[Dataset, Any, Any]:
        """Return the data, and the examples and labels of the part; note how the data were understood."""
        assert self.data is not None
        source: str | dict[str, Any] = self.data
        if self.data_option:
            key = "hf" if self.data.startswith("hf:") else "path" if Path(self.data).exists() else "name"
            source = {key: self.data.removeprefix("hf:"), **read_options(self.data_option)}
        dataset = load_dataset(source)
        for text in dataset.notes:
            note(text)
        test = self.part == "test"
        x, y = (dataset.test_x, dataset.test_y) if test else (dataset.x, dataset.y)
        if x is None or y is None:
            raise UsageError(f"--part test: {dataset.name} has training examples only.")
        return dataset, x, y


@options(NETWORK)
class NetworkOptions:
    """Options for loading and running networks.

    Parameters
    ----------
    factory
        What makes the network for a file of weights: module:function, called with shape, classes
        and options (installed, or a file in the current folder), or a name such as cnn
        or resnet18.
    factory_option
        An option of the factory, as KEY=VALUE; may be repeated.
    device
        Where to run it, such as cpu, cuda or cuda:1. By default a GPU if there is one.
    batch
        Examples at a time; by default what is quick.
    """

    factory: str | None = None
    factory_option: Annotated[Texts, Parameter(name=("--factory-option", "--factory-options"))] = field(
        default_factory=list
    )
    device: str | None = None
    batch: AtLeast1 | None = None


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


@options(SHOWING)
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

    def __post_init__(self) -> None:
        """Refuse two forms at once."""
        if self.json and self.table:
            raise UsageError(f"--json prints one document, and --table {self.table} only tables: give one of them.")

    def page(self) -> Page:
        """Start the output."""
        global _VERBOSE  # what is read and warned of later is worded by functions that know no page
        _VERBOSE = self.verbose
        return Page(as_json=self.json, markup=self.table, verbose=self.verbose)


@options(SHOWING)
class Drawing(Showing):
    """Form of the output, with a picture.

    Parameters
    ----------
    plot
        Draw the result into this .png, .svg or .pdf file.
    """

    plot: Path | None = None

    def __post_init__(self) -> None:
        """Refuse a file that cannot be drawn before anything is fitted."""
        super().__post_init__()
        check_file("--plot", self.plot, PLOT_ENDINGS)

    def page(self) -> Page:
        """Start the output."""
        page = super().page()
        page.plot = self.plot
        return page


VERDICTS = {"a better": "better", "b better": "worse", "not significant": "undecided"}
"""Verdicts of comparisons, and the conditions of --fail-if that they meet; others go by their own name."""


def check_gates(fail_if: Sequence[str], margin: float | None) -> None:
    """Refuse to wait for equivalence where no margin says what that is."""
    if "equivalent" in fail_if and margin is None:
        raise UsageError("--fail-if equivalent never holds without a margin: give --margin, such as --margin 0.005.")


def gate_status(fail_if: Sequence[str], conditions: Sequence[str], place: str = "") -> int:
    """Return the exit status: whether a condition of --fail-if is among those that hold, which is then warned of."""
    met = [gate for gate in fail_if if gate in conditions]
    if met:
        warn(f"--fail-if {met[0]} holds{place}: exit status {GATE}.")
    return GATE if met else DONE


def conditions_of(comparison: Any) -> list[str]:
    """Return the conditions of --fail-if that hold for a comparison with a margin."""
    signs = {"worse": comparison.worse, "better": comparison.better, "maybe-worse": comparison.maybe_worse}
    return [comparison.verdict, *(name for name, holds in signs.items() if holds)]


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
    if twice := [word for i, word in enumerate(words) if word in words[:i]]:
        raise UsageError(f"{twice[0]} is given twice: give each file once.")
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

    Names of models have slashes, as paths have: such a name is one where a file, or a pattern that matches one, follows
    and the whole word is none.

    >>> split_name("wide=runs.npy"), split_name("runs.npy"), split_name("lr/rate=0.1/runs.npy")
    (('wide', 'runs.npy'), ('', 'runs.npy'), ('', 'lr/rate=0.1/runs.npy'))
    """
    name, equals, file = word.partition("=")
    named = equals and name.strip() and file and not Path(word).exists()
    if named and {"/", os.sep} & set(name) and not Path(file).exists() and not glob(file):
        named = False
    return (name.strip(), file) if named else ("", word)


MOST_CHOICES = 12
"""Names that a message lists where one has to be chosen."""


def choose(option: str, wanted: str | None, names: Sequence[str], noun: str = "learner") -> str:
    """Find the name that an option gives, itself or by a pattern; where there is only one name, none need be given."""
    if wanted is None and len(names) == 1:
        return names[0]
    if wanted in names:
        return str(wanted)
    choices = list_names(names, MOST_CHOICES)
    if wanted is None:
        raise UsageError(f"Which {noun}? Name it with {option}. There are {choices}.")
    matches = [name for name in names if fnmatchcase(name, wanted)]
    if len(matches) > 1:
        raise UsageError(f"{option} {wanted} stands for {len(matches)} {noun}s: {list_names(matches, MOST_CHOICES)}.")
    if matches:
        return matches[0]
    lower = {name.lower(): name for name in names}
    near = [name for name in names if wanted and wanted.lower() in name.lower()]
    near += [lower[key] for key in get_close_matches(wanted.lower(), lower, n=1, cutoff=0.5)]
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise UsageError(f"{option} {wanted!r} is not among the {noun}s.{hint} There are {choices}.")


def choose_pair(a: str | None, b: str | None, names: Sequence[str], noun: str = "learner") -> tuple[str, str]:
    """Find the two names that --a and --b give; of two names, the one that is not given is the other."""
    one, two = (None if name is None else choose(f"--{side}", name, names, noun) for side, name in (("a", a), ("b", b)))
    if len(names) == 2 and one != two:
        one = one or next(name for name in names if name != two)
        two = two or next(name for name in names if name != one)
    elif len(names) == 2 and one is None:
        one, two = names
    if one is None or two is None:
        choices = list_names(names, MOST_CHOICES)
        if len(names) == 1:
            raise UsageError(f"There is one {noun}, {choices}: a comparison needs two {noun}s.")
        raise UsageError(f"There are {len(names)} {noun}s: name two with --a and --b, of {choices}.")
    if one == two:
        raise UsageError(f"Both are {one!r}: a comparison needs two {noun}s.")
    return one, two


def write_csv(path: Path, rows: Iterator[Sequence[Any]] | Sequence[Sequence[Any]], what: str) -> None:
    """Write rows, the head first, with an empty cell for NaN; note what was written."""
    import csv

    from curvewise.text import csv_cell

    with open(path, "w", encoding="utf-8", newline="") as stream:
        for row in rows:
            csv.writer(stream, lineterminator="\n").writerow(["" if v != v else csv_cell(v) for v in row])
    note(f"{what} written to {path}")


def save_plot(path: Path | None, draw: Callable[[], Any]) -> None:
    """Let ``draw`` make Axes without a display and save their figure."""
    if path is None:
        return
    from curvewise.drawing.picture import save_picture

    save_picture(draw, path)
    note(f"drawn into {path}")
