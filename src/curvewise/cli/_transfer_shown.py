"""Measured transfer out: tables on stdout, warnings on stderr, and gates."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from curvewise.cli._console import Page, UsageError, sentences, warn_each
from curvewise.cli._ranking_tables import table_in_parts
from curvewise.cli._transfer_words import as_options
from curvewise.tables import number

if TYPE_CHECKING:
    from curvewise.transfer.comparison import ComparedMethods, TransferComparison
    from curvewise.transfer.tasks import TaskRanking
    from curvewise.transfer.transfer_result import Improvement, TransferResult
    from curvewise.types import Control, FloatArray, Interval, Result

Gate = Literal["worse", "undecided"]
Kind = Literal["curves", "area", "cci", "ranks", "equivalence", "tasks", "spread"]
LEGEND = (
    "CCI: share of the area below the calibrated risk of scratch that a method saves, with p that "
    "it is 0. gain: calibrated risk of scratch less that of the method, at the smallest and at the "
    "largest n. sure to: the largest n at which the interval of the gain is above 0. data ×: how "
    "many times the smallest n scratch needs to be as good."
)
MOST_PAIRS = 20
"""Comparisons that are shown; --json has all of them."""


def show_transfer(page: Page, result: TransferResult, told: Sequence[str]) -> None:
    """Print CCI, gains and what they are worth for each task; ``told`` was said before."""
    page.document = result.to_dict()
    page.say(sentences(result))
    if page.markup is not None and not page.as_json:
        sys.stdout.write(result.table(page.markup) + "\n")
    else:
        for task in result.tasks:
            rows = [r for r in result.improvements if r.task == task]
            if rows:
                table_in_parts(page, _title(result, task), _details(result, rows))
        page.say(LEGEND, style="dim")
    warn_each([as_options(text) for text in result.all_warnings if text not in told])


def _title(result: TransferResult, task: str) -> str:
    blind, maximal = (_control(c[task]) for c in (result.blind, result.maximal))
    return (
        f"{task} ({result.level:.0%} intervals; blind guess {blind}, maximal supervision {maximal})"
    )


def _control(control: Control) -> str:
    return f"{control.risk:.3g}" + (" assumed" if control.assumed else "")


def _details(result: TransferResult, rows: Sequence[Improvement]) -> dict[str, list[Any]]:
    """A row for each method, the best first."""
    order = sorted(rows, key=lambda r: -r.cci.estimate if r.cci.estimate == r.cci.estimate else 9e9)
    return {
        "method": [r.method for r in order],
        "CCI": _decimals(r.cci.estimate for r in order),
        "low": _decimals(r.cci.low for r in order),
        "high": _decimals(r.cci.high for r in order),
        "p": [_chance(r.pvalue) for r in order],
        "n": [_span(r.n) for r in order],
        "runs": [str(int(result.curve(r.task, r.method).runs.sum())) for r in order],
        "gain": [_gains(r) for r in order],
        "sure to": [_until(r) for r in order],
        "data ×": [_worth(r) for r in order],
    }


def _gains(row: Improvement) -> str:
    """The gain at the smallest and at the largest size."""
    ends = (row.gain[0], row.gain[-1]) if len(row.gain) > 1 else (row.gain[0],)
    return " … ".join(_decimals(ends, 2))


def _span(n: FloatArray) -> str:
    return f"{len(n)}: {_size(n[0])}–{_size(n[-1])}" if len(n) > 1 else f"1: {_size(n[0])}"


def _size(n: float) -> str:
    """A training size in few characters.

    >>> _size(100.0), _size(31250.0), _size(1.26e6)
    ('100', '31.2K', '1.26M')
    """
    for top, letter in ((1e6, "M"), (1e3, "K")):
        if n >= top:
            return f"{n / top:.3g}{letter}"
    return f"{n:g}"


def _until(row: Improvement) -> str:
    """The last size at which the gain is sure."""
    end = row.gain_ends
    if end is None or end.n_last_sure != end.n_last_sure:
        return "–"
    return _size(end.n_last_sure)


def _worth(row: Improvement) -> str:
    """How many times the data scratch needs at the smallest size; a bound where it is beyond."""
    if not row.data_equivalence:
        return "–"
    first = row.data_equivalence[0]
    low, high, estimate = first.factor.low, first.factor.high, first.factor.estimate
    if estimate != estimate:
        return "–"
    if first.beyond == "above":
        return f"≥ {_times(low)}" if low == low and low > 0 else "∞"
    if first.beyond == "below":
        return f"≤ {_times(high)}" if high < float("inf") else "–"
    return _times(estimate)


def _times(factor: float) -> str:
    """A factor in two digits.

    >>> _times(3.92), _times(1234.0)
    ('3.9', '1,234')
    """
    return f"{factor:.1f}" if factor < 10 else f"{factor:,.0f}"


def compared_methods(
    result: TransferResult, compare: list[str], pairs: bool
) -> TransferComparison | None:
    """Two methods, or all pairs; None if neither was asked for."""
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


def show_comparison(page: Page, result: TransferResult, compared: TransferComparison) -> None:
    """Print differences of CCI, those that are clearest."""
    page.document["comparison"] = compared.to_dict()
    rows = sorted(compared.rows, key=lambda r: r.pvalue if r.pvalue == r.pvalue else 2.0)
    kept = rows if page.markup is not None else rows[:MOST_PAIRS]
    what = "Differences" if len(kept) == len(rows) else f"The {len(kept)} clearest differences"
    title = f"{what} of CCI ({result.level:.0%} intervals; p adjusted by Holm)"
    columns = {
        "task": [r.task for r in kept],
        "CCI of": [r.one for r in kept],
        "less that of": [r.two for r in kept],
        "difference": _decimals(r.difference.estimate for r in kept),
        "low": _decimals(r.difference.low for r in kept),
        "high": _decimals(r.difference.high for r in kept),
        "p": [_chance(r.pvalue) for r in kept],
        "adjusted": [_chance(r.adjusted) for r in kept],
    }
    page.table(title, columns, None)
    warn_each([as_options(text) for text in compared.all_warnings])


def show_tasks(page: Page, result: TaskRanking, scratch: str, told: Sequence[str]) -> None:
    """Print which size reaches each level of calibrated risk; ``told`` was said before."""
    page.document = result.to_dict()
    page.say(sentences(result))
    if page.markup is not None and not page.as_json:
        sys.stdout.write(result.table(page.markup) + "\n")
    else:
        columns: dict[str, list[Any]] = {"task": [row.task for row in result.rows]}
        for level in result.levels:
            columns[f"n at {level:g}"] = [str(row.at(level)) for row in result.rows]
        columns["mean risk"] = _decimals(row.mean.estimate for row in result.rows)
        columns["data × to halve"] = [_halving(row.halving.estimate) for row in result.rows]
        what = f"Training sizes at which the calibrated risk of {scratch} reaches a level"
        table_in_parts(page, f"{what} ({result.level:.0%} intervals)", columns)
    warn_each([as_options(text) for text in result.all_warnings if text not in told])


def _halving(factor: float) -> str:
    return "–" if factor != factor else number(factor) if factor == float("inf") else _times(factor)


def show_plain(page: Page, result: Result, title: str) -> None:
    """Print the sentences, the table and the warnings of a result."""
    page.document = result.to_dict()
    page.say(sentences(result))
    table_in_parts(page, title, {k: _cells(v) for k, v in result.columns().items()})
    warn_each([as_options(text) for text in result.all_warnings])


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


def _decimals(values: Iterable[float], digits: int = 3) -> list[str]:
    return ["–" if v != v else f"{v:.{digits}f}".replace("-", "−") for v in values]


def _chance(p: float) -> str:
    return "–" if p != p else "<1e-12" if p < 1e-12 else f"{p:.2g}"
