"""Measured transfer out: tables on stdout, warnings on stderr, and gates."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from curvewise.cli._console import (
    MOST_WARNINGS,
    Page,
    UsageError,
    console,
    rich_table,
    sentences,
    warn,
    width_of,
)
from curvewise.cli._ranking_tables import table_in_parts
from curvewise.cli._transfer_answers import (
    answers,
    chance,
    decimals,
    details,
    led,
    size,
    times,
)
from curvewise.cli._transfer_words import as_options
from curvewise.errors import InputError
from curvewise.tables import number

if TYPE_CHECKING:
    from curvewise.transfer._task_curve import TaskNeeds
    from curvewise.transfer.comparison import ComparedMethods, TransferComparison
    from curvewise.transfer.tasks import TaskRanking
    from curvewise.transfer.transfer_result import Improvement, TransferResult
    from curvewise.types import Control, Interval, Result

Gate = Literal["worse", "undecided"]
Gates = Annotated[list[Gate], Parameter(negative="", show_default=False)]
Flag = Annotated[bool, Parameter(negative="", show_default=False)]
Kind = Literal["curves", "area", "cci", "ranks", "equivalence", "tasks", "spread"]
LEGEND = (
    "gain: calibrated risk of {scratch} (1 blind guess, 0 maximal supervision) less that of the "
    "method, at the smallest … largest n. sure: the n at which the interval of the gain is above "
    "0. data ×: how many times the data {scratch} needs to match the method at the smallest n; "
    "after > or < it is more or less than was measured."
)
NARROW = " A wider terminal adds p, sizes and runs; --json has them."
MOST_PAIRS = 20
"""Comparisons that are shown in a terminal; the title says where all of them are."""


def tell(messages: Sequence[str], every: bool = False) -> None:
    """Warn of the first few, in words of the command line, or of every one."""
    said = [as_options(text) for text in messages]
    shown = said if every else said[:MOST_WARNINGS]
    for text in shown:
        warn(text)
    if left := len(said) - len(shown):
        warn(f"and {left} more; --all-warnings shows them.")


def document_of(result: Result, more: Sequence[str] = ()) -> dict[str, Any]:
    """What ``--json`` prints of a result, with warnings in words of the command line."""
    found = result.to_dict()
    found["warnings"] = [as_options(text) for text in (*more, *result.all_warnings)]
    return found


def show_transfer(page: Page, result: TransferResult, every: bool = False) -> None:
    """Print CCI, gains and what they are worth for each task."""
    page.document = document_of(result)
    for i, text in enumerate(() if page.as_json else answers(result)):
        page.say(text, close=i > 0)
    if page.markup is not None and not page.as_json:
        sys.stdout.write(result.table(page.markup) + "\n")
    elif not page.as_json:
        narrow = False
        for task in result.tasks:
            if rows := [r for r in result.improvements if r.task == task]:
                columns = details(result, rows)
                narrow = narrow or "p" not in columns
                table_in_parts(page, _title(result, rows), columns)
        if result.improvements:
            legend = LEGEND.format(scratch=result.scratch)
            page.say(legend + NARROW * narrow, style="dim")
    tell(result.all_warnings, every)


def _title(result: TransferResult, rows: Sequence[Improvement]) -> str:
    """The task, its controls, and the sizes where all methods have the same."""
    task = rows[0].task
    blind, maximal = (_control(c[task]) for c in (result.blind, result.maximal))
    spans = {tuple(r.n.tolist()) for r in rows}
    n = max(spans, key=len)
    alike = f", {len(n)} sizes from {size(n[0])} to {size(n[-1])}"
    lead = led(result, task) or "Controls: "
    text = f"{lead}blind guess {blind}, maximal supervision {maximal}"
    return text + (alike if len(spans) == 1 and len(n) > 1 else "")


def _control(control: Control) -> str:
    return f"{control.risk:.3g}" + (" (assumed)" if control.assumed else "")


def compared_methods(
    result: TransferResult, compare: list[str], pairs: bool
) -> TransferComparison | None:
    """Two methods, or all pairs; None if neither was asked for."""
    if result.scratch in compare:
        raise InputError(
            f"--compare {','.join(compare)}: the CCI of a method is what it gains on "
            f"{result.scratch}, so that there is nothing to compare. Name two other methods."
        )
    for name in compare:
        if name not in result.methods:
            from curvewise.io._table import listed, suggest

            there = f"{suggest(name, result.methods)} There are {listed(result.methods)}."
            raise InputError(f"--compare {','.join(compare)}: {name!r} is no method.{there}")
    if compare:
        return result.compare(*compare)
    return result.comparisons() if pairs else None


def draw_transfer(result: TransferResult, kind: Kind, highlight: list[str]) -> Any:
    """Draw one kind of picture."""
    if kind == "tasks":
        from curvewise.transfer.tasks import rank_tasks

        return rank_tasks(result).plot()
    if kind == "spread":
        from curvewise.transfer.spread import measure_spread

        return measure_spread(result).plot()
    return result.plot(kind=kind, highlight=highlight or None)


def show_comparison(
    page: Page, result: TransferResult, compared: TransferComparison, every: bool = False
) -> None:
    """Print differences of CCI, those that are clearest."""
    page.document["comparison"] = document_of(compared)
    rows = sorted(compared.rows, key=lambda r: r.pvalue if r.pvalue == r.pvalue else 2.0)
    kept = rows if page.markup is not None else rows[:MOST_PAIRS]
    what = "Differences" if len(kept) == len(rows) else f"The {len(kept)} clearest differences"
    title = f"{what} of CCI ({100 * result.level:.4g}% intervals; p adjusted by Holm)"
    if len(kept) < len(rows):
        title += f"; --table text prints all {len(rows)}"
    numbers: dict[str, list[Any]] = {
        "low": decimals(r.difference.low for r in kept),
        "high": decimals(r.difference.high for r in kept),
        "p": [chance(r.pvalue) for r in kept],
        "adjusted": [chance(r.adjusted) for r in kept],
    }
    by = decimals(r.difference.estimate for r in kept)
    columns: dict[str, list[Any]] = {
        "task": [r.task for r in kept],
        "CCI of": [r.one for r in kept],
        "less that of": [r.two for r in kept],
        "difference": by,
        **numbers,
    }
    if page.markup is None and width_of(rich_table(columns, None))[1] > console().width:
        columns = {"difference": [_said(r) for r in kept], "CCI": by, **numbers}
    table_in_parts(page, title, columns)
    tell(compared.all_warnings, every)


def show_tasks(
    page: Page, result: TaskRanking, measured: TransferResult, every: bool = False
) -> None:
    """Print which size reaches each level of calibrated risk."""
    more = [
        f"{task}: maximal supervision was not measured: {number(control.risk)} stands for it "
        f"({control.source}), and calibrated risks are too low if more can be reached. Pass "
        "maximal= with the risk that all the data gives."
        for task, control in measured.maximal.items()
        if control.assumed
    ]
    page.document = document_of(result, more)
    page.say(sentences(result))
    if page.markup is not None and not page.as_json:
        sys.stdout.write(result.table(page.markup) + "\n")
    else:
        columns: dict[str, list[Any]] = {"task": [row.task for row in result.rows]}
        for level in result.levels:
            columns[f"n at {level:g}"] = [str(row.at(level)) for row in result.rows]
        columns["mean risk"] = decimals(row.mean.estimate for row in result.rows)
        columns["data × to halve"] = [_halving(row) for row in result.rows]
        what = f"Training size at which {measured.scratch} comes down to a calibrated risk"
        table_in_parts(page, f"{what} ({100 * result.level:.4g}% intervals)", columns)
    tell([*more, *result.all_warnings], every)


def _halving(row: TaskNeeds) -> str:
    factor = row.halving.estimate
    if factor != factor:
        return "–"
    return f"> {number(row.spanned, 3)}" if factor == float("inf") else times(factor)


_HEADINGS = {
    "std": "standard error",
    "pvalue": "p",
    "win_rate": "win rate",
    "scratch_runs": "runs of the other",
}


def show_plain(page: Page, result: Result, title: str) -> None:
    """Print the sentences, the table and the warnings of a result."""
    page.document = document_of(result)
    page.say(sentences(result))
    columns = {_HEADINGS.get(k, k): _cells(v) for k, v in result.columns().items()}
    table_in_parts(page, title, columns)
    tell(result.all_warnings, every=True)


def _cells(values: Iterable[Any]) -> list[Any]:
    """Texts and whole numbers as they are, other numbers in four digits."""
    found: list[Any] = []
    for value in values:
        if value is None or value != value:
            found.append("–")
        elif isinstance(value, str | bool):
            found.append(str(value))
        else:
            found.append(number(float(value)))
    return found


def met_gates(
    result: TransferResult, compared: TransferComparison | None, gates: Sequence[Gate]
) -> list[str]:
    """Gates that hold, with what met them: for two methods if they are compared, else scratch."""
    found = []
    for gate in gates:
        if compared is not None:
            met = [_said(r) for r in compared.rows if _holds(r.difference, gate)]
        else:
            met = [f"{r.method} on {r.task}" for r in result.improvements if _holds(r.cci, gate)]
        if met:
            more = f" and {len(met) - 3} more" if len(met) > 3 else ""
            found.append(f"--fail-if {gate} holds for {', '.join(met[:3])}{more}")
    return found


def _said(row: ComparedMethods) -> str:
    return f"{row.one} − {row.two} on {row.task}"


def _holds(interval: Interval, gate: Gate) -> bool:
    """Whether a difference is shown to be below 0, or to be neither below nor above."""
    if gate == "worse":
        return interval.high < 0
    return not (interval.high < 0 or interval.low > 0)


def check_gates(result: TransferResult, gates: Sequence[Gate], compared: object) -> None:
    """A gate needs something to judge."""
    if gates and compared is None and not result.improvements:
        raise UsageError("--fail-if needs a method beside scratch: there is none.")
