"""Scores as they stand in one file: a row for each sample, with names as codes; cells into scores and ids."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError, brief, format_path
from curvewise.reading.roles import ColumnMap
from curvewise.reading.table import LARGEST_TEXT, check_file, check_names, check_unpacked, is_missing, parse, texts
from curvewise.types.results import FloatArray

Codes = NDArray[np.int32]


class Names(NamedTuple):
    """A column of names: the place of each row's name in a list of distinct ones."""

    codes: Codes
    names: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Block:
    """Scores out of one file, a row for each sample of a question.

    Attributes
    ----------
    source : str
        The file, for messages.
    kind : str
        Its format, as people call it.
    model, task, question : Names
        An empty task where the file names none.
    scores : dict of str to ndarray
        By metric; NaN where a sample has none.
    sample, seed, group, filter : Names, optional
        Number of the sample, training seed of the model, cluster of the question, variant of the score.
    hashes : dict of str to Names
        Hashes of the question, by what was hashed; an empty name where a row has none.
    settings : dict of str to str
        Task version and the like, which should agree between models.
    ranges, higher : dict
        Possible range and direction of a metric, where the file says so.
    unusable : dict of str to str
        Metrics that are no numbers, and what they are.
    called_by : Path, optional
        The file or folder that the model is called by, where the log does not name it.
    notes, warnings : tuple of str
        How the file was interpreted, and what deserves a look.
    """

    source: str
    kind: str
    model: Names
    task: Names
    question: Names
    scores: Mapping[str, FloatArray]
    sample: Names | None = None
    seed: Names | None = None
    group: Names | None = None
    filter: Names | None = None
    hashes: Mapping[str, Names] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    higher: Mapping[str, bool] = field(default_factory=dict)
    unusable: Mapping[str, str] = field(default_factory=dict)
    called_by: Path | None = None
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.question.codes)

    def keep(self, rows: NDArray[np.bool_]) -> Block:
        """Keep some of the rows; the lists of names stay as they are."""
        if rows.all():
            return self

        def take(names: Names | None) -> Any:
            return None if names is None else names._replace(codes=names.codes[rows])

        columns = {name: take(getattr(self, name)) for name in COLUMNS}
        scores = {metric: values[rows] for metric, values in self.scores.items()}
        return replace(self, **columns, scores=scores, hashes={k: take(v) for k, v in self.hashes.items()})


SAMPLES_OF_HARNESS = "lm-eval samples"
"""The kind of blocks whose model is named in a file beside them."""
COLUMNS = ("model", "task", "question", "sample", "seed", "group", "filter")
"""Fields of a block that hold names."""


@dataclass(frozen=True)
class LogOptions:
    """Options that readers of single files need."""

    columns: ColumnMap = field(default_factory=dict)
    metrics: tuple[str, ...] = ()
    unfinished: bool = False
    wide: bool = False

    @property
    def group(self) -> str | None:
        """The field of a question, in the logs of tools, that names its cluster."""
        found = self.columns.get("group")
        return found if isinstance(found, str) else None


class UnreadError(InputError):
    """A file without scores of single questions.

    ``kind`` is "side" for a file that belongs to a log, "log" for a log without usable scores, and "unknown" for one
    that is no log at all.
    """

    def __init__(self, problem: str, kind: Literal["side", "log", "unknown"] = "log") -> None:
        super().__init__(problem)
        self.kind = kind


class Coder:
    """Codes for the cells of a column that comes in pieces."""

    def __init__(self) -> None:
        self.places: defaultdict[Any, int] = defaultdict()
        self.places.default_factory = self.places.__len__
        self.parts: list[Codes] = []

    def add(self, cells: Iterable[Any]) -> None:
        """Append cells; those of a list or a dict raise TypeError."""
        places = self.places
        self.parts.append(np.array([places[cell] for cell in cells], dtype=np.int32))

    def finish(self) -> Names:
        """Return the names; cells with the same text, as 3 and 3.0 have, share one."""
        names: dict[str, int] = {}
        words = (word.strip() for word in texts(list(self.places)))
        same = np.array([names.setdefault(word, len(names)) for word in words], dtype=np.int32)
        codes = np.concatenate(self.parts) if self.parts else np.zeros(0, dtype=np.int32)
        return Names(codes if len(names) == len(same) else same[codes], tuple(names))


def code_cells(cells: Iterable[Any]) -> Names:
    """Make codes of cells.

    >>> code_cells(["b", 3, 3.0, "b"])
    Names(codes=array([0, 1, 1, 0], dtype=int32), names=('b', '3'))
    """
    coder = Coder()
    coder.add(cells)
    return coder.finish()


def one_name(name: str, rows: int) -> Names:
    """Return a column with the same name in all rows."""
    return Names(np.broadcast_to(np.int32(0), rows), (name,))


# Scores: numbers, truth values, and the letters of Inspect.

GRADES = {
    **dict.fromkeys(("c", "correct", "true", "yes", "pass", "passed"), 1.0),
    **dict.fromkeys(("i", "incorrect", "false", "no", "fail", "failed"), 0.0),
    **dict.fromkeys(("p", "partial"), 0.5),
    **dict.fromkeys(("n", "noanswer"), 0.0),
}
"""Scores of words: C, I, P and N are correct, incorrect, partial and no answer."""


def grade(value: Any) -> float | None:
    """Return a score as a number, NaN where there is none, and None for what is no score.

    >>> [grade(v) for v in ("C", "I", "P", "N", True, "0.25", 7)]
    [1.0, 0.0, 0.5, 0.0, 1.0, 0.25, 7.0]
    >>> grade(None), grade("B"), grade([1, 0])
    (nan, None, None)
    """
    if isinstance(value, str):
        found = GRADES.get(value.strip().lower())
        return parse(value) if found is None else found
    if isinstance(value, bool | np.bool_):
        return float(value)
    return parse(value) if value is None or np.isscalar(value) else None


def grade_cells(cells: Sequence[Any]) -> FloatArray | str:
    """Return the scores in a column, or what else it holds.

    >>> grade_cells(["C", "I", None])
    array([ 1.,  0., nan])
    >>> grade_cells(["A", "C"]), grade_cells([[1, 0], [1]])
    ("holds the text 'A'", 'holds lists')
    """
    if isinstance(cells, np.ndarray) and cells.dtype.kind in "biuf":
        return cells.astype(np.float64)
    try:
        found = {cell: grade(cell) for cell in set(cells)}
    except TypeError:
        return f"holds {'lists' if any(isinstance(c, list | tuple) for c in cells) else 'objects'}"
    bad = sorted((cell for cell, value in found.items() if value is None), key=str)
    if bad:
        # An answer or an explanation may be long, and may repeat the question.
        shown = brief(bad[0], 24) if len(str(bad[0])) <= 20 else f"of {len(str(bad[0])):,} characters"
        return f"holds the text {shown}"
    return np.array([found[cell] for cell in cells], dtype=np.float64)


def usable_scores(columns: Mapping[str, Sequence[Any]]) -> tuple[dict[str, FloatArray], dict[str, str]]:
    """Split metrics into those with at least one score, and the others with what they hold."""
    graded = {metric: grade_cells(cells) for metric, cells in columns.items()}
    scores = {metric: v for metric, v in graded.items() if not isinstance(v, str) and not np.isnan(v).all()}
    return scores, {metric: v for metric, v in graded.items() if isinstance(v, str)}


def scores_of(columns: Mapping[str, Sequence[Any]], path: Path) -> tuple[dict[str, FloatArray], dict[str, str]]:
    """As :func:`usable_scores`, of a file that must hold a score."""
    scores, unusable = usable_scores(columns)
    if not scores:
        why = "; ".join(f"{metric} {what}" for metric, what in unusable.items())
        raise UnreadError(f"{format_path(path)} holds no score of single questions{f': {why}' if why else ''}.")
    return scores, unusable


def block_of_model(
    path: Path,
    kind: str,
    model: str,
    task: str,
    questions: Sequence[Any],
    scores: Mapping[str, FloatArray],
    **more: Any,
) -> Block:
    """Make a block of a file with one model and one task; ``more`` are further fields."""
    rows = len(questions)
    ids = code_cells(hidden_cells(questions))
    return Block(format_path(path), kind, one_name(model, rows), one_name(task, rows), ids, scores, **more)


# Ids: a text of some length is a question itself, which is never shown.

_LONGEST_ID = 80
_MOST_WORDS = 4


def id_of(text: str) -> str:
    """Return an id as it is, and of a text that reads like a question a short hash.

    >>> id_of("gsm8k/17"), id_of("What is 2 + 2?")
    ('gsm8k/17', '38d46ad3618826cf')
    """
    if len(text) <= _LONGEST_ID and not re.search(r"[?\n]", text) and len(text.split()) <= _MOST_WORDS:
        return text
    return hash_of(text)


def hash_of(value: Any) -> str:
    """Return a short hash of a text or of anything that JSON can write."""
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def hidden_cells(cells: Iterable[Any]) -> Iterator[str]:
    """Yield cells as ids; lists and dicts, as answers may be, as hashes."""
    for cell in cells:
        yield "" if is_missing(cell) else id_of(str(cell)) if np.isscalar(cell) else hash_of(cell)


# JSON lines, a piece at a time: the rows of a log may hold megabytes of text beside their score.

_LINES, _CHARACTERS = 1000, 1 << 20


def json_lines(path: Path, *, unique: bool = False) -> Iterator[list[Any]]:
    """Yield the records of a JSON-lines file, up to a thousand at a time.

    With ``unique``, a name that is twice in a record is an error.
    """

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        record = dict(found)
        if len(record) < len(found):
            check_names([name for name, _ in found], f"An object in {format_path(path)}")
        return record

    decode = json.JSONDecoder(object_pairs_hook=pairs if unique else None).decode
    lines: dict[int, str] = {}
    length = 0
    for number, line in enumerate(_text_lines(path), 1):
        if line.isspace():
            continue
        lines[number] = line
        length += len(line)
        if len(lines) == _LINES or length > _CHARACTERS:
            yield _parse_lines(lines, decode, path)
            lines, length = {}, 0
    if lines:
        yield _parse_lines(lines, decode, path)


def _text_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a text, unpacking gzip up to the usual limit."""
    check_file(path)
    total, packed = 0, path.suffix.lower() == ".gz"
    try:
        with (gzip.open if packed else open)(path, "rt", encoding="utf-8-sig", newline="\n") as stream:
            for line in stream:
                total += len(line)
                if packed:
                    check_unpacked(path, total, LARGEST_TEXT)
                yield line
    except UnicodeDecodeError as error:
        raise InputError(f"{format_path(path)} is not UTF-8 text: save it as UTF-8, or it is a binary file.") from error
    except (EOFError, gzip.BadGzipFile) as error:
        raise InputError(f"{format_path(path)} is not a whole gzip file ({error}): it was cut short.") from error


def _parse_lines(lines: Mapping[int, str], decode: Any, path: Path) -> list[Any]:
    # One call for all lines takes half the time of a call for each; where it fails, the line is looked for.
    try:
        records = decode(f"[{','.join(lines.values())}]")
        if len(records) == len(lines):
            return list(records)
    except InputError:
        raise
    except (ValueError, RecursionError):
        pass
    records = []
    for number, line in lines.items():
        try:
            records.append(decode(line))
        except InputError:
            raise
        except (ValueError, RecursionError) as error:
            end = "" if line.endswith("\n") else " It is the last line, and the file seems to be cut short there."
            why = error.msg if isinstance(error, json.JSONDecodeError) else "it is too deep or too long"
            raise InputError(f"line {number:,} of {format_path(path)} is not whole JSON ({why}).{end}") from error
    return records


def json_beside(path: Path) -> dict[str, Any]:
    """Read a JSON object that lies beside a log; empty where there is none."""
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{format_path(path)} is not whole JSON: it was cut short.") from error
    return found if isinstance(found, dict) else {}


def records_only(records: Sequence[Any], path: Path) -> list[dict[str, Any]]:
    """Refuse JSON lines that are no objects."""
    for record in records:
        if not isinstance(record, dict):
            raise UnreadError(
                f"{format_path(path)} should hold an object in each line; one of them is a {type(record).__name__}.",
                "unknown",
            )
    return list(records)
