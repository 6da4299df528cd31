"""Tables of risks in: options that say what is what, for the commands of ``curvewise transfer``."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from curvewise.cli._console import UsageError, note
from curvewise.cli._files import STDIN, quietly
from curvewise.cli._options import READING, Texts, read_where
from curvewise.cli._transfer_words import as_options, worded
from curvewise.errors import InputError

if TYPE_CHECKING:
    from curvewise.types import TransferRisks

_ROLES = ("task", "method", "n", "risk", "seed", "fold")


@Parameter(name="*", group=READING)
@dataclass
class RiskReading:
    """How to read risks and their controls.

    Parameters
    ----------
    task_column
        Column that names the task. Columns with usual names are found by themselves; an empty
        name means none.
    method_column
        Column that names the method, such as the pretraining.
    n_column
        Column of training sizes.
    risk_column
        Column of test losses, errors or accuracies; of a study, loss or error.
    seed_column
        Column of seeds.
    fold_column
        Column that names the training subset.
    scratch
        The method that starts from nothing; by default the one called so.
    blind
        The blind guess: a method of the table, or a number as the table has them, so an accuracy
        among accuracies; for one task, TASK=NAME or TASK=NUMBER, which may be repeated.
    maximal
        Maximal supervision, as --blind. Without any, the best observed risk stands for it.
    unit
        What the values are. By default accuracies above 1 are percentages.
    higher_is_better
        The values are accuracies or scores. By default the column's name says so.
    where
        Only rows with this, as COLUMN=VALUE; may be repeated, for several values of a column, too.
    drop_failed
        Leave out failed runs, and say how many.
    trust
        Of a study, call the function that makes the data, if one does; otherwise the copy that
        `curvewise study run` kept is read.
    allow_large
        Read a compressed file whatever it unpacks to.
    """

    task_column: str | None = None
    method_column: str | None = None
    n_column: str | None = None
    risk_column: str | None = None
    seed_column: str | None = None
    fold_column: str | None = None
    scratch: str | None = None
    blind: Texts = field(default_factory=list)
    maximal: Texts = field(default_factory=list)
    unit: Literal["fraction", "percent", "loss", "score"] | None = None
    higher_is_better: Annotated[
        bool | None,
        Parameter(name=("--higher-is-better", "--accuracy"), negative="--lower-is-better"),
    ] = None
    where: Texts = field(default_factory=list)
    drop_failed: Annotated[bool, Parameter(negative="", show_default=False)] = False
    trust: Annotated[bool, Parameter(negative="", show_default=False)] = False
    allow_large: Annotated[bool, Parameter(negative="", show_default=False)] = False

    def load(self, source: str) -> TransferRisks:
        """Read the table or the study; says on stderr what was taken for what."""
        if Path(source).suffix.lower() == ".toml":
            found = self._study(Path(source))
        elif source == STDIN:
            with tempfile.TemporaryDirectory() as folder:
                data = sys.stdin.buffer.read()
                path = Path(folder) / f"stdin{ending_of(data)}"
                path.write_bytes(data)
                found = self._load(path)
        else:
            found = self._load(Path(source))
        note(as_options("; ".join([repr(found), *found.notes])))
        return found

    def _study(self, path: Path) -> TransferRisks:
        """The runs of a study; --risk-column names what was measured."""
        asked = {"--where": self.where, "--unit": self.unit, "--drop-failed": self.drop_failed}
        asked |= {f"--{r}-column": getattr(self, f"{r}_column") for r in _ROLES if r != "risk"}
        if odd := [option for option, value in asked.items() if value]:
            raise UsageError(f"{odd[0]} is for tables, and {path.name} is a study.")
        from curvewise.study import load_study, transfer_risks

        with quietly(), worded():
            return transfer_risks(
                load_study(path, trust=self.trust),
                metric=self.risk_column,
                scratch=self.scratch,
                blind=_control("--blind", self.blind),
                maximal=_control("--maximal", self.maximal),
            )

    def _load(self, path: Path) -> TransferRisks:
        from curvewise.io.risks import load_risks

        columns: dict[str, Any] = {role: getattr(self, f"{role}_column") for role in _ROLES}
        columns |= {role: False for role in _ROLES if columns[role] == ""}
        for role in ("method", "n", "risk"):
            if columns[role] is False:
                raise UsageError(f"--{role}-column must name a column.")
        with worded():
            return load_risks(
                path,
                **columns,
                scratch=self.scratch,
                blind=_control("--blind", self.blind),
                maximal=_control("--maximal", self.maximal),
                unit=self.unit,
                higher_is_better=self.higher_is_better,
                where=read_where(self.where),
                drop_failed=self.drop_failed,
                allow_large=self.allow_large,
            )


def ending_of(data: bytes) -> str:
    r"""What a file with this content is called at its end.

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


def _control(option: str, words: Sequence[str]) -> Any:
    """A number or a name, or a dict of these by task."""
    if not words:
        return None
    if len(words) == 1 and ("=" not in words[0]):
        return _number(words[0])
    found = {}
    for word in words:
        task, equals, value = word.rpartition("=")
        if not equals or not task.strip():
            raise UsageError(
                f"{option} {word!r}: give one name or number, or TASK=NAME or TASK=NUMBER for each "
                "task."
            )
        found[task.strip()] = _number(value)
    return found


def _number(word: str) -> float | str:
    try:
        return float(word)
    except ValueError:
        return word


def read_sizes(words: Sequence[str]) -> Any:
    """Training sizes, or a dict of them by task; None for all.

    >>> read_sizes(["100,1k"]), read_sizes(["depth=100", "normal=10,20"])
    ([100, 1000], {'depth': [100], 'normal': [10, 20]})
    """
    from curvewise.io._risk_sizes import header_size
    from curvewise.tables import whole

    found: dict[str, list[float]] = {}
    for word in words:
        task, _, listed = word.rpartition("=")
        sizes = [header_size(part) for part in listed.split(",") if part.strip()]
        if not sizes or None in sizes:
            raise UsageError(f"--sizes {word!r}: give numbers, such as 100,1000 or TASK=100,1000.")
        found.setdefault(task.strip(), []).extend(whole(n) for n in sizes if n is not None)
    if "" in found and len(found) > 1:
        raise UsageError("--sizes: give sizes for all tasks, or TASK=… for each.")
    return found.get("", found) or None


def split_names(words: Sequence[str], known: Sequence[str]) -> list[str]:
    """Names that were given one by one or with commas between them.

    >>> split_names(["a,b", "c,d"], ["a", "b", "c,d"])
    ['a', 'b', 'c,d']
    """
    found = [
        part
        for word in words
        for part in ([word] if word in known else [p.strip() for p in word.split(",")])
        if part
    ]
    return list(dict.fromkeys(found))


@contextmanager
def about_sizes(risks: TransferRisks, sizes: Sequence[str]) -> Iterator[None]:
    """Say how to choose sizes of one task, where those of all went wrong."""
    try:
        yield
    except InputError as error:
        several = len(risks.task_names) > 1 and not any("=" in word for word in sizes)
        if not (sizes and several and str(error).startswith("sizes")):
            raise
        task = risks.task_names[0]
        raise InputError(
            f"{error} For one task, such as {task!r}: --sizes TASK≡100,1000."
        ) from error


def check_blind(risks: TransferRisks, tasks: Sequence[str], cci: bool) -> None:
    """Raise where there is no blind guess, and say what to do; CCI does not depend on it."""
    asked = [task for task in risks.task_names if not tasks or task in tasks]
    lost = [task for task in asked if task not in risks.blind]
    if not lost:
        return
    turned = any("turned into" in text for text in risks.notes)
    worst = 0.0 if turned and "−" not in risks.unit[:1] else None
    way = "pass what the best constant guess scores, in numbers like those of the table"
    way += " (an accuracy among accuracies)" if turned else ""
    text = (
        f"--blind is missing for task {lost[0]!r}: {way}, or the name of the method whose rows "
        "hold it. `curvewise transfer blind` computes it for error, cross-entropy, l1, l2, binary "
        "labels and directions; for other scores, measure a constant prediction as any other."
    )
    if cci and worst is not None:
        text += " If only CCI is of interest, which does not depend on it, --blind 0 will do."
    elif cci:
        text += (
            " If only CCI is of interest, which does not depend on it, any number worse than every "
            "risk will do."
        )
    raise InputError(text)
