"""Content of a report, before it is a page: sections with text, figures and tables."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Self

import numpy as np

from curvewise.text import format_interval, format_number
from curvewise.types.results import plain


@dataclass(frozen=True, eq=False)
class Figure:
    """A picture.

    Attributes
    ----------
    name : str
        Of its file when it is exported.
    title : str
        What it shows, for those who cannot see it too.
    draw : callable
        Draws it with matplotlib and returns the Axes.
    chart : dict, optional
        The same for the browser, where it can be played with; see :mod:`curvewise.report.results`.
    """

    name: str
    title: str
    draw: Callable[[], Any]
    chart: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class ShownCell:
    """A cell for people: its text, the interval behind it, and the value by which it is sorted."""

    text: str
    value: Any = None
    interval: str = ""


@dataclass(frozen=True)
class ShownColumn:
    """A column for people; numbers stand to the right."""

    name: str
    cells: tuple[ShownCell, ...]
    is_number: bool


@dataclass(frozen=True, eq=False)
class ReportTable:
    """Columns of equal length with a title.

    Attributes
    ----------
    name, title : str
        Of its file when it is exported; what it shows.
    columns : mapping
        Numbers in full precision, and words.
    percent : mapping of str to float
        Columns, and rows of a column "quantity", that people read as percentages, with the factor to them.
    """

    name: str
    title: str
    columns: Mapping[str, Sequence[Any]]
    percent: Mapping[str, float] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def shown(self, most: int | None = None) -> list[ShownColumn]:
        """Return the columns for people: limits behind what they belong to, in the digits that they support.

        Parameters
        ----------
        most : int, optional
            The number of rows to return; all by default.

        Examples
        --------
        >>> columns = {"e_N": [0.2], "e_N_low": [0.1], "e_N_high": [0.35]}
        >>> (column,) = ReportTable("t", "Errors", columns, percent={"e_N": 100.0}).shown()
        >>> column.name, column.cells[0].text, column.cells[0].interval
        ('e_N (%)', '20', '[10, 35]')
        """
        given = {k: list(v)[:most] for k, v in self.columns.items()}
        ends = _ends(given)
        limits = {name for pair in ends.values() for name in pair}
        # In a table with a row for each quantity, each row has a unit of its own.
        by_row = [self.percent.get(str(name), 1.0) for name in given.get("quantity", ())]
        found = []
        for name, values in given.items():
            if name in limits:
                continue
            if name == "quantity":
                words = [f"{quantity(str(v))}{' (%)' if v in self.percent else ''}" for v in values]
                found.append(ShownColumn("quantity", tuple(map(ShownCell, words)), False))
                continue
            # p-values and the like have no unit, whatever the row is of.
            own = by_row if name == "estimate" and by_row else [1.0] * len(values)
            scales = [self.percent[name]] * len(values) if name in self.percent else own
            if name in ends:
                low, high = (given[k] for k in ends[name])
                cells = [_with_limits(*row) for row in zip(values, low, high, scales, strict=True)]
            else:
                cells = _without_limits(name, values, scales)
            unit = " (%)" if name in self.percent else ""
            found.append(ShownColumn(heading(name) + unit, tuple(cells), any(map(is_number, values))))
        return found


def _ends(columns: Mapping[str, Sequence[Any]]) -> dict[str, tuple[str, str]]:
    """Columns with an interval, and those with its limits: named after them, or right behind."""
    names = list(columns)
    found = {}
    for name, after in pairwise([*names, ""]):
        pairs = [(f"{name}_low", f"{name}_high")]
        pairs += [("low", "high")] if after == "low" else []
        both = next((p for p in pairs if p[0] in columns and p[1] in columns), None)
        if both and all(v is None or is_number(v) for k in (name, *both) for v in columns[k]):
            found[name] = both
    return found


def _with_limits(value: Any, low: Any, high: Any, scale: float) -> ShownCell:
    # Ranks have no decimals, and neither have their limits.
    whole = all(
        isinstance(v, int | np.integer) or (v is not None and float(v).is_integer()) for v in (value, low, high)
    )
    numbers = [math.nan if v is None else scale * float(v) for v in (value, low, high)]
    if any(map(math.isnan, numbers)) or (whole and scale == 1):
        text, *ends = ("–" if math.isnan(v) else format_number(v, 3) for v in numbers)
        return ShownCell(text, _sorted_by(value), "" if ends == ["–", "–"] else f"[{', '.join(ends)}]")
    text, _, limits = format_interval((numbers[0], numbers[1], numbers[2])).partition(" ")
    return ShownCell(text, _sorted_by(value), limits)


def _without_limits(name: str, values: Sequence[Any], scales: Sequence[float]) -> list[ShownCell]:
    """Write a column with the same decimals in all rows: at most three digits of the largest number."""
    known = [abs(s * float(v)) for v, s in zip(values, scales, strict=True) if is_number(v) and math.isfinite(v) and v]
    whole = all(k.is_integer() for k in known)
    # Probabilities and scores that differ by orders of magnitude have significant digits instead.
    fixed = bool(known) and not whole and max(known) < 1000 * min(known) and "pvalue" not in name
    most = min(max(2 - math.floor(math.log10(max(known))), 0), 6) if fixed else 0
    decimals = next(d for d in range(most + 1) if all(round(k, d) == round(k, most) for k in known) or d == most)

    def cell(value: Any, scale: float) -> ShownCell:
        if not is_number(value):
            return ShownCell("–" if value is None else str(value))
        number = scale * float(value)
        if math.isnan(number):
            return ShownCell("–", "")
        if fixed and math.isfinite(number):
            return ShownCell(f"{number + 0.0:.{decimals}f}", plain(float(value)))
        return ShownCell(format_number(number, 2 if "pvalue" in name else 3), plain(float(value)))

    return [cell(v, s) for v, s in zip(values, scales, strict=True)]


def _sorted_by(value: Any) -> Any:
    """Return the value by which a browser sorts a cell, infinities as JavaScript reads them."""
    return "" if value is None or math.isnan(value) else plain(float(value))


def is_number(value: Any) -> bool:
    """Return True for a number, and not for True and False."""
    return isinstance(value, int | float | np.number) and not isinstance(value, bool | np.bool_)


GREEK = {"alpha": "α", "beta": "β", "gamma": "γ", "eta": "η"}

HEADINGS = {
    "pvalue": "p",
    "adjusted_pvalue": "adjusted p",
    "adjusted": "adjusted p",
    "cci": "CCI",
    "probability_best": "chance of being best",
}

QUANTITIES = {
    "difference": "difference on new data",
    "test_set_difference": "difference on this test set",
    "probability_better": "chance of a lower error, this test set",
    "distribution_probability": "chance of a lower error, new data",
    "test_set_std": "std on this test set",
    "independent_std": "std if errors were independent",
    "distribution_std": "std on new data",
    "distribution_std_robust": "std on new data, robust",
    "distribution_share": "share of the variance on new data",
    "gi": "Gi-score",
    "pal": "Pal-score",
}
"""Quantities that name rows, where that is not their identifier with blanks."""


def quantity(name: str) -> str:
    """Return the name of a quantity for people.

    >>> quantity("test_set_std"), quantity("mean_accuracy"), quantity("beta_N difference")
    ('std on this test set', 'mean accuracy', 'β_N difference')
    """
    return QUANTITIES.get(name) or heading(name)


def heading(name: str) -> str:
    """Return the name of a column for people; indices stay.

    >>> heading("chance_top"), heading("beta_N"), heading("n_at_0_5"), heading("e_N")
    ('chance top', 'β_N', 'n at 0.5', 'e_N')
    """
    if name in HEADINGS:
        return HEADINGS[name]
    greek = re.sub(r"^[a-z]+(?=_N(_std)?\b|_std\b|$)", lambda found: GREEK.get(found[0], found[0]), name)
    levels = re.sub(r"(?<=\d)_(?=\d)", ".", greek.replace("_at_", " at "))  # n_at_0_5 is the size that reaches 0.5
    return re.sub(r"(?<=\w\w)_|_(?=std\b)", " ", levels)


@dataclass(frozen=True, eq=False)
class Section:
    """The part of one question, or of one result.

    Attributes
    ----------
    title : str
        A question. Sections with the same title stand together under it.
    label : str
        What this section answers it for, such as one learner; empty if for all.
    text, warnings : tuple of str
        Its answer in sentences, and what to beware of.
    figures, tables : tuple
        Pictures and tables.
    method : tuple of str
        How it was computed, in words.
    settings : dict of str to str
        With which settings.
    """

    title: str
    text: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    figures: tuple[Figure, ...] = ()
    tables: tuple[ReportTable, ...] = ()
    method: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    label: str = ""

    @property
    def heading(self) -> str:
        """The question and what it is asked of."""
        return f"{self.title} {self.label}" if self.label else self.title


@dataclass(frozen=True, eq=False)
class Runs:
    """The runs behind a report.

    Attributes
    ----------
    text : tuple of str
        Counts, time, environments.
    columns : dict of str to sequence
        A row for each run.
    failures : tuple
        Reasons for which runs failed, with ``count``, ``learners``, ``message`` and the id of one,
        ``example``.
    """

    text: tuple[str, ...]
    columns: Mapping[str, Sequence[Any]]
    failures: tuple[Any, ...] = ()

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def failure_table(self) -> ReportTable | None:
        """Reasons for which runs failed, as a table; None where none did."""
        if not self.failures:
            return None
        columns = {
            "runs": [f.count for f in self.failures],
            "learners": [", ".join(f.learners) for f in self.failures],
            "reason": [f.message for f in self.failures],
            "example": [f.example for f in self.failures],
        }
        return ReportTable("failures", "Why runs failed", columns)


@dataclass(frozen=True)
class Reproduce:
    """How to make a report again.

    Attributes
    ----------
    steps : str
        A sentence on what to do with the command and the file.
    command : str
        Lines for a terminal.
    file : str
        Text of the study file or the script.
    file_name : str
        Its name.
    facts : dict of str to str
        Versions, data, seeds.
    """

    steps: str = ""
    command: str = ""
    file: str = ""
    file_name: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Report:
    """A report.

    Attributes
    ----------
    title, question : str
        Its name, and what it answers.
    answer : tuple of str
        Two or three sentences with numbers and their intervals.
    figure : Figure, optional
        The one picture that shows it.
    warnings : tuple of str
        All of them, each once.
    sections : tuple of Section
        One for each result or question.
    runs : Runs, optional
        Of a study.
    reproduce : Reproduce, optional
        How to make it again.
    """

    title: str
    question: str
    answer: tuple[str, ...]
    figure: Figure | None = None
    warnings: tuple[str, ...] = ()
    sections: tuple[Section, ...] = ()
    runs: Runs | None = None
    reproduce: Reproduce | None = None

    def without_repeats(self) -> Self:
        """Return the report with no sentence twice: what the answer says is left out of the sections.

        >>> section = Section("Why?", ("A is 1. B is 2. C is 3.", "D."))
        >>> report = Report("T", "Q?", ("A is 1.", "B is 2.", "D."), sections=(section,))
        >>> report.without_repeats().sections[0].text
        ('C is 3.',)
        """
        answer = list(self.answer)
        runs = self.runs
        if runs is not None:
            runs = replace(runs, text=tuple(t for t in runs.text if t not in answer))
        stated = {*answer, " ".join(answer)}
        sections = []
        for section in self.sections:
            kept = []
            for text in section.text:
                parts = split_sentences(text)
                # Only sentences at the beginning: later ones may be about something else than those of the answer.
                same = next((i for i, (a, b) in enumerate(zip(parts, answer, strict=False)) if a != b), None)
                same = min(len(parts), len(answer)) if same is None else same
                rest = " ".join(parts[same:])
                if rest and rest not in stated:
                    kept.append(rest)
                stated |= {text, rest}
            sections.append(replace(section, text=tuple(kept)))
        return replace(self, sections=tuple(sections), runs=runs)


def split_sentences(text: str) -> list[str]:
    """Split a text into sentences.

    >>> split_sentences("A is 1.5 [1, 2]. B is 2.")
    ['A is 1.5 [1, 2].', 'B is 2.']
    >>> split_sentences("digits: A is best. letters: B is.")
    ['digits: A is best.', 'letters: B is.']
    """
    # A result on several tasks begins each sentence with the task's name, which may be in lower case.
    return re.split(r"(?<=[.?!])\s+(?=[^a-z]|[^\s.:]+: )", text.strip())


def group_warnings(warnings: Sequence[str]) -> list[str]:
    """Join warnings that say the same of several learners.

    >>> group_warnings(["a: few runs.", "b: few runs.", "c: lost.", "Old."])
    ['a, b: few runs.', 'c: lost.', 'Old.']
    """
    heads: dict[str, list[str]] = {}
    for warning in warnings:
        head, colon, rest = warning.partition(": ")
        heads.setdefault(rest if colon else head, []).append(head if colon else "")
    return [f"{', '.join(filter(None, names))}: {rest}" if any(names) else rest for rest, names in heads.items()]
