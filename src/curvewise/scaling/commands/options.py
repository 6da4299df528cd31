"""The command group, its options for reading and fitting, and the printing of answers."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter, Token

from curvewise.cli.console import (
    FITTING,
    READING,
    STDIN,
    Drawing,
    Flag,
    Page,
    Texts,
    UsageError,
    in_options,
    note_reading,
    read_where,
    save_plot,
    table_in_parts,
    usage_panel,
    warn_each,
)
from curvewise.errors import quietly

if TYPE_CHECKING:
    from curvewise.scaling.law import ScalingLaw
    from curvewise.scaling.runs import ScalingRuns
    from curvewise.types.results import Result

scaling = App(
    name="scaling",
    help="How large a model on how much data for this compute, and what loss will it reach?\n\n"
    "FILE is a CSV, TSV, JSON, JSON lines or Parquet table with a row for each training run (or checkpoint): "
    "parameters, tokens or FLOP, and loss. Columns with usual names are found by themselves. `-` reads CSV from "
    "stdin.",
    error_formatter=usage_panel,
)

OPTIONS = {"runs": "", "law": "", "budgets": "nominal", "params": "", "tokens": "", "flops": "", "loss": ""}
"""Arguments of Python that have an option of another name; files and their columns are given without one."""

File = Annotated[str, Parameter(name="FILE")]

_LETTERS = {"k": 1e3, "m": 1e6, "b": 1e9, "g": 1e9, "t": 1e12}


def _number(text: str) -> float:
    """Read 5.76e23, 70B, 1.4T or 190M."""
    plain = text.strip().replace("_", "")
    times = _LETTERS.get(plain[-1:].lower(), 1.0)
    try:
        value = float(plain[:-1] if times > 1 else plain) * times
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise ValueError(f"{text!r} is no number above 0, such as 5.76e23 or 70B.")
    return value


def _numbers(_: Any, tokens: Sequence[Token]) -> list[float]:
    return [_number(part) for token in tokens for part in token.value.split(",") if part.strip()]


def _counts(_: Any, tokens: Sequence[Token]) -> list[int]:
    """Read 1,5,20 as whole numbers from 1 on."""
    words = [part.strip() for token in tokens for part in token.value.split(",") if part.strip()]
    if not words or not all(word.isdecimal() and int(word) > 0 for word in words):
        raise ValueError(f"{','.join(words)!r} must be a whole number from 1 on, or several with commas: 1,5,20.")
    return list(map(int, words))


def _sizes(_: Any, tokens: Sequence[Token]) -> list[tuple[float, float]]:
    """Read PARAMS,TOKENS such as 7B,4T, once or more."""
    found = []
    for token in tokens:
        parts = token.value.split(",")
        if len(parts) != 2:
            raise ValueError(f"{token.value!r} must be parameters and tokens, such as 7B,4T.")
        found.append((_number(parts[0]), _number(parts[1])))
    return found


Amount = Annotated[float | None, Parameter(converter=lambda _, tokens: _number(tokens[0].value))]
Amounts = Annotated[list[float], Parameter(converter=_numbers, n_tokens=1, negative="", show_default=False)]
Counts = Annotated[list[int], Parameter(converter=_counts, n_tokens=1, negative="", show_default=False)]
Sizes = Annotated[list[tuple[float, float]], Parameter(converter=_sizes, n_tokens=1, negative="", show_default=False)]


@Parameter(name="*", group=READING)
@dataclass
class ScalingReading:
    """Options for reading runs.

    Parameters
    ----------
    column
        Which column has a role, as ROLE=COLUMN: params, tokens, flops, loss, run, unique_tokens,
        step, source, flagged, status; ROLE= leaves a role out. May be repeated.
    where
        Only rows with this, as COLUMN=VALUE; may be repeated, for several values of a column, too.
    unit
        What the values are; by default a loss, unless the column is called perplexity.
    tracker
        The tracker that exported the table.
    allow_large
        Read a compressed file whatever it unpacks to.
    """

    column: Texts = field(default_factory=list)
    where: Texts = field(default_factory=list)
    unit: Literal["loss", "perplexity"] | None = None
    tracker: Literal["mlflow", "wandb", "optuna"] | None = None
    allow_large: Flag = False

    def load(self, file: str, name: str | None = None, *, said: str = "") -> ScalingRuns:
        """Read runs, noting on stderr how columns were interpreted and what deserves a look."""
        from curvewise.scaling.load import load_scaling_runs

        columns: dict[str, str | None] = {}
        for pair in self.column:
            role, equals, column = pair.partition("=")
            if not equals or not role.strip():
                raise UsageError(f"--column {pair!r} must read ROLE=COLUMN, such as params=n_params.")
            columns[role.strip()] = column or None
        with _readable(file) as path, quietly():
            found = load_scaling_runs(
                path,
                columns=columns or None,
                where=read_where(self.where),
                unit=self.unit,
                tracker=self.tracker,
                name=name or ("stdin" if file == STDIN else None),
                allow_large=self.allow_large,
            )
        note_reading([repr(found)[12:-1], *found.notes], said)
        return found


@contextmanager
def _readable(file: str) -> Iterator[str | Path]:
    """Give a file that can be looked at more than once, which a pipe cannot."""
    if file != STDIN:
        yield file
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "stdin.csv"
        path.write_bytes(sys.stdin.buffer.read())
        yield path


@Parameter(name="*", group=FITTING)
@dataclass
class LawFitting:
    """Options for fitting a law.

    Parameters
    ----------
    form
        additive is E + A/N^α + B/D^β; tied has one exponent; coupled joins the two terms; repeated
        counts repeated tokens for less; auto weighs forms by how well they predict the largest runs
        from the smaller ones, and is meant for extrapolation.
    loss
        Huber's function of log residuals, which outliers hardly move; squares of log residuals; or
        linear, squares of the loss itself.
    """

    form: Literal["additive", "tied", "coupled", "repeated", "auto"] = "additive"
    loss: Literal["huber", "squares", "linear"] = "huber"

    def fit(self, runs: ScalingRuns) -> ScalingLaw:
        """Fit a law to runs."""
        from curvewise.progress import waiting
        from curvewise.scaling.law import fit_scaling_law

        with quietly(), waiting("fitting"):
            return fit_scaling_law(runs, form=self.form, loss=self.loss)


def answer(
    page: Page,
    result: Result,
    title: str,
    drawing: Drawing | None,
    *,
    columns: Mapping[str, Any] | None = None,
    more: Mapping[str, Mapping[str, Any]] | None = None,
    draw: Callable[[], Any] | None = None,
    document: dict[str, Any] | None = None,
    warnings: Sequence[str] | None = None,
    said: str = "",
    style: str = "",
    status: int = 0,
) -> int:
    """Print the tables, the sentences and the warnings of a result, draw it, and return the exit status."""
    page.document = result.to_dict() | (document or {})
    if columns is None:
        page.result(result, title)
    else:
        table_in_parts(page, title, columns)
    for name, further in (more or {}).items():
        table_in_parts(page, name, further)
    page.say(in_options(said or result.sentences()), style=style)
    warn_each([*dict.fromkeys([*(warnings or ()), *result.all_warnings])])
    save_plot(drawing.plot if drawing else None, draw or result.plot)
    return page.close(status)
