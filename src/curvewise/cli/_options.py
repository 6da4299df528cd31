"""Options that several commands share."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from shlex import quote
from typing import Annotated, Any, Literal

from cyclopts import CycloptsError, Group, Parameter, Token, UnusedCliTokensError
from cyclopts.validators import Number

from curvewise.cli._console import Page, UsageError, check_folder

READING = Group("How to read the file", sort_key=2)
FITTING = Group("How to fit", sort_key=3)
SHOWING = Group("What to show", sort_key=4)

Form = Literal["power", "sqrt", "power2", "sqrt2", "auto", "constrained", "last"]
Files = Annotated[list[str], Parameter(name="FILE...", negative="")]
PLOT_ENDINGS = (".png", ".svg", ".pdf")


def split_numbers(_: Any, tokens: Sequence[Token]) -> list[float]:
    """Read ``800,1600`` as two numbers."""
    return [float(part) for token in tokens for part in token.value.split(",") if part.strip()]


Numbers = Annotated[
    list[float], Parameter(converter=split_numbers, n_tokens=1, negative="", show_default=False)
]


def _check_sizes(_: Any, sizes: Sequence[float]) -> None:
    for n in sizes:
        if not 0 < n < math.inf:
            raise ValueError(f"{n:g} is no training size: give positive numbers, such as 800,1600.")


Sizes = Annotated[Numbers, Parameter(validator=_check_sizes)]
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


def told(error: CycloptsError) -> Any:
    """What to print of words that were not understood; of a value too many, how to pass it."""
    from cyclopts import CycloptsPanel

    again = _repeated(error) if isinstance(error, UnusedCliTokensError) else ""
    return CycloptsPanel(f"One value for each option: write {again}." if again else error)


def _repeated(error: UnusedCliTokensError) -> str:
    """The option before values too many, once for each of them; nothing if it may not be."""
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


@Parameter(name="*", group=READING)
@dataclass
class Reading:
    """How to read measurements.

    Parameters
    ----------
    unit
        What the values are; by default percent if the column's name says so, else fractions.
    higher_is_better
        The values are accuracies or scores. By default the column's name says so.
    n_column
        Column of training sizes. Columns with usual names are found by themselves.
    value_column
        Column of errors, accuracies, losses or scores.
    learner_column
        Column that names the learner; repeat it to join several columns.
    runs_column
        Over how many runs a row is the mean.
    variance_column
        Variance of those runs.
    column
        Any other role, as ROLE=COLUMN: fold, seed, split, metric, std; ignore=COLUMN does not
        read it. ROLE= leaves a role out.
    wide
        Each column of numbers is a run, a learner or a size.
    per_class
        Number of classes, if sizes count examples of each class.
    metric
        Which rows to take where a column names metrics.
    split
        Which rows to take where a column names splits, such as test.
    where
        Only rows with this, as COLUMN=VALUE; may be repeated, for several values of a column, too.
    drop_failed
        Leave out rows without a finite value, and say which.
    same_name
        A learner that is in several files: pool its runs, or keep the files separate.
    allow_large
        Read a compressed file whatever it unpacks to.
    """

    unit: Literal["fraction", "percent", "loss", "score"] | None = None
    higher_is_better: Annotated[
        bool | None,
        Parameter(name=("--higher-is-better", "--accuracy"), negative="--lower-is-better"),
    ] = None
    n_column: str | None = None
    value_column: str | None = None
    learner_column: Annotated[list[str], Parameter(negative="", show_default=False)] = field(
        default_factory=list
    )
    runs_column: str | None = None
    variance_column: str | None = None
    column: Annotated[list[str], Parameter(negative="", show_default=False)] = field(
        default_factory=list
    )
    wide: Literal["runs", "learners", "sizes"] | None = None
    per_class: Annotated[int | None, Parameter(validator=Number(gte=1))] = None
    metric: str | None = None
    split: str | None = None
    where: Texts = field(default_factory=list)
    drop_failed: Annotated[bool, Parameter(negative="", show_default=False)] = False
    same_name: Literal["pool", "separate"] | None = None
    allow_large: Annotated[bool, Parameter(negative="", show_default=False)] = False

    def rows(self) -> dict[str, Any] | None:
        """Which rows to take, for ``load_measurements``."""
        return read_where(self.where)

    def columns(self) -> dict[str, Any] | None:
        """Which column plays which role, for ``load_measurements``."""
        named: dict[str, list[str]] = {
            role: [name]
            for role, name in (
                ("n", self.n_column),
                ("value", self.value_column),
                ("runs", self.runs_column),
                ("variance", self.variance_column),
            )
            if name is not None
        }
        if self.learner_column:
            named["learner"] = list(self.learner_column)
        for pair in self.column:
            role, equals, name = pair.partition("=")
            if not equals or not role.strip():
                raise UsageError(f"--column {pair!r} must read ROLE=COLUMN, such as fold=split.")
            named.setdefault(role.strip(), []).extend([name] if name else [])
        one_or_many = {r: v[0] if len(v) == 1 else (v or None) for r, v in named.items()}
        return one_or_many or None


@Parameter(name="*", group=FITTING)
@dataclass
class Fitting:
    """How to fit the curves.

    Parameters
    ----------
    form
        power (α + η n^γ) describes and compares; auto predicts best beyond the sizes measured;
        sqrt fixes γ at −½.
    weights
        Weigh sizes alike, runs alike by their variance, or not at all.
    chance
        Error of a blind guess, in the unit of the table: intervals of curves still near it allow
        them to fall.
    at
        Training size N at which to judge; by default the largest measured, and of several learners
        that are compared or ranked the smallest of their largest sizes.
    level
        Coverage of the intervals.
    """

    form: Form = "power"
    weights: Literal["size", "run", "none"] = "size"
    chance: float | None = None
    at: Size = None
    level: Annotated[float, Parameter(validator=Number(gt=0, lt=1))] = 0.95


@Parameter(name="*", group=SHOWING)
@dataclass
class Showing:
    """How to show the result.

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
    """Whether to draw.

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


@Parameter(name="*", group=SHOWING)
@dataclass
class CurveDrawing(Drawing):
    """Whether and how to draw curves.

    Parameters
    ----------
    plot
        Draw the curves into this .png, .svg or .pdf file.
    x
        Horizontal axis: n^−½, on which most curves are straight, or log n. By default sqrt, and
        log to compare.
    """

    x: Literal["sqrt", "log"] | None = None

    @property
    def options(self) -> dict[str, Any]:
        """What to pass to a function that draws."""
        return {} if self.x is None else {"x": self.x}


def given(
    reading: Reading | None, fitting: Fitting | None, showing: Showing | None
) -> tuple[Reading, Fitting, Showing]:
    """Give the defaults in place of groups of options of which none was set."""
    return reading or Reading(), fitting or Fitting(), showing or Showing()
