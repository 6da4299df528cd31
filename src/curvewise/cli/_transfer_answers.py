"""What a measured transfer says, task by task: which method, how sure, and its worth in data."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from curvewise.cli._console import console, rich_table, width_of
from curvewise.tables import number

if TYPE_CHECKING:
    from curvewise.transfer.equivalence import Equivalence
    from curvewise.transfer.transfer_result import Improvement, TransferResult
    from curvewise.types import FloatArray, Interval


def answers(result: TransferResult) -> list[str]:
    """What it is about, then a few sentences for each task."""
    head = (
        f"{_many(len(result.methods), 'method')} against {result.scratch} on "
        f"{_many(len(result.tasks), 'task')}. CCI: 0 is no better than {result.scratch}, 1 as good "
        "as maximal supervision at every size."
    )
    return [head, *(_answer(result, task) for task in result.tasks)]


def led(result: TransferResult, task: str) -> str:
    """The task as a sentence about it begins, or nothing where the table has no tasks."""
    from curvewise.types.risks import ONE_TASK  # brings numpy, which --help does without

    return "" if result.tasks == (ONE_TASK,) else f"{short(task)}: "


def short(name: str) -> str:
    """A name without its middle, if it is very long.

    >>> short("swav"), len(short("x" * 500))
    ('swav', 49)
    """
    return name if len(name) <= 49 else f"{name[:32]}…{name[-16:]}"


def _many(count: int, what: str) -> str:
    return f"{count} {what}" + ("" if count == 1 else "s")


def by_cci(rows: Iterable[Improvement]) -> list[Improvement]:
    """Methods from the highest CCI down; those without one at the end."""
    return sorted(rows, key=lambda r: -r.cci.estimate if not math.isnan(r.cci.estimate) else 9e9)


def _answer(result: TransferResult, task: str) -> str:
    rows = by_cci(r for r in result.improvements if r.task == task)
    lead = led(result, task)
    known = [r for r in rows if not math.isnan(r.cci.estimate)]
    if not known:
        alone = f"there is no method beside {result.scratch}, which transfer tasks looks at"
        return f"{lead}{'no' if lead else 'No'} CCI; {'it needs two sizes' if rows else alone}."
    best = known[0]
    said = [f"{lead}{short(best.method)} has CCI {_interval(best.cci)}{_second(result, known)}."]
    if best.data_equivalence:
        said.append(_worth_said(best.data_equivalence[0], result.scratch, _reach(result, task)))
    told = [r for r in known if not math.isnan(r.pvalue)]
    if best.gain_ends is not None and told:
        said.append(best.gain_ends.text)
    if len(told) > 1:
        said.append(_counts(result, told))
    if (control := result.maximal[task]).assumed:
        said.append(f"Maximal supervision is assumed: {control.source}.")
    return " ".join(filter(None, said))


def _interval(cci: Interval) -> str:
    value = decimals([cci.estimate])[0]
    if math.isnan(cci.low):
        return f"{value} (no interval)"
    return f"{value} {ends(cci)}" + ("" if cci.low > 0 or cci.high < 0 else ", 0 not excluded")


def _second(result: TransferResult, known: Sequence[Improvement]) -> str:
    """Whether the best is ahead of the next."""
    if len(known) < 2:
        return ""
    best, next_ = known[0], known[1]
    text = f", the highest; next is {short(next_.method)}, {decimals([next_.cci.estimate])[0]}"
    rows = result.compare(best.method, next_.method, best.task).rows
    low = rows[0].difference.low if rows else math.nan
    if math.isnan(low):
        return text
    return text + (", shown to be lower" if low > 0 else ", not shown to be lower")


def _reach(result: TransferResult, task: str) -> tuple[float, float]:
    """The smallest and the largest size of scratch: what it is worth is not known beyond."""
    n = result.curve(task, result.scratch).n
    return float(n[0]), float(n[-1])


def _worth_said(first: Equivalence, scratch: str, reach: tuple[float, float]) -> str:
    """How much data scratch needs to be as good as the method at its smallest size."""
    low, high, estimate = first.factor.low, first.factor.high, first.factor.estimate
    if math.isnan(estimate) or first.beyond == "below":
        return ""
    needs = f"To match its n = {number(first.n)}, {scratch} needs"
    if first.beyond == "above":
        most = reach[1] / first.n
        sure = f" (surely more than {times(low)})" if 1 < low < 0.95 * most else ""
        return f"{needs} more than the {times(most)} times as much data that it was given{sure}."
    bounds = ""
    if low == low and high == high:
        lowest = times(low) if low > 0 else "0"
        bounds = f" [{lowest}, {times(high) if high < math.inf else '∞'}]"
    return f"{needs} {times(estimate)} times as much data{bounds}."


def _counts(result: TransferResult, told: Sequence[Improvement]) -> str:
    """How many methods are better and worse than scratch, corrected for their number."""
    from curvewise.stats import holm

    share = 1 - result.level
    sure = holm([r.pvalue for r in told]) <= share
    up = sum(bool(s) and r.cci.estimate > 0 for s, r in zip(sure, told, strict=True))
    down = int(sure.sum()) - up
    worse = f", {down} worse" if down else ""
    text = f"{up} of {len(told)} methods are better than {result.scratch}{worse}"
    return f"{text} at {100 * share:.3g}%, after Holm's correction for {len(told)} tests."


def details(result: TransferResult, rows: Sequence[Improvement]) -> dict[str, list[Any]]:
    """A row for each method, the best first; p, sizes and runs if the terminal has room for all."""
    order = by_cci(rows)
    found: dict[str, list[Any]] = {
        "method": [short(r.method) for r in order],
        "CCI": decimals(r.cci.estimate for r in order),
        f"{100 * result.level:.4g}% interval": [ends(r.cci) for r in order],
        "gain": [_gains(r) for r in order],
        "sure": [_sure(r) for r in order],
        "data ×": [_worth(r, _reach(result, r.task)) for r in order],
    }
    more: dict[str, list[Any]] = {
        "p": [chance(r.pvalue) for r in order],
        "n": [_span(r.n) for r in order],
        "runs": [_runs(result, r) for r in order],
    }
    both = {**found, **more}
    return both if width_of(rich_table(both, None))[1] <= console().width else found


def _runs(result: TransferResult, row: Improvement) -> str:
    """Runs of the method at the sizes that count."""
    curve = result.curve(row.task, row.method)
    return str(sum(int(k) for n, k in zip(curve.n, curve.runs, strict=True) if n in row.n))


def ends(interval: Interval) -> str:
    """The ends of an interval.

    >>> from curvewise.types import Interval
    >>> ends(Interval(0.1, -0.05, 0.25)), ends(Interval(0.1, float("nan"), float("nan")))
    ('[−0.050, 0.250]', '–')
    """
    if math.isnan(interval.low) and math.isnan(interval.high):
        return "–"
    return "[{}, {}]".format(*decimals((interval.low, interval.high)))


def _gains(row: Improvement) -> str:
    """The gain at the smallest and at the largest size."""
    at = (row.gain[0], row.gain[-1]) if len(row.gain) > 1 else (row.gain[0],)
    return " … ".join(decimals(at, 2))


def _span(n: FloatArray) -> str:
    return f"{len(n)}: {size(n[0])}–{size(n[-1])}" if len(n) > 1 else f"1: {size(n[0])}"


def _sure(row: Improvement) -> str:
    """At which sizes the interval of the gain is above 0."""
    end = row.gain_ends
    if end is None or not end.sure_at:
        return "–"
    return "all n" if len(end.sure_at) == len(row.n) else spans(row.n.tolist(), end.sure_at)


def spans(sizes: Sequence[float], chosen: Sequence[float]) -> str:
    """Some of the sizes, those that follow one another as the first and the last.

    >>> spans([10, 20, 50, 100, 1000], [20, 50, 100]), spans([10, 20, 50, 100], [10, 20, 100])
    ('20–100', '10, 20, 100')
    """
    runs: list[list[float]] = []
    before = None
    for place, n in enumerate(sizes):
        if n not in chosen:
            continue
        if before is not None and place == before + 1:
            runs[-1].append(n)
        else:
            runs.append([n])
        before = place
    parts = [
        f"{size(run[0])}–{size(run[-1])}" if len(run) > 2 else ", ".join(map(size, run))
        for run in runs
    ]
    return ", ".join(parts)


def _worth(row: Improvement, reach: tuple[float, float]) -> str:
    """How many times the data scratch needs at the smallest size; a bound where it is beyond."""
    if not row.data_equivalence:
        return "–"
    first = row.data_equivalence[0]
    if first.factor.estimate != first.factor.estimate:
        return "–"
    if first.beyond is not None:
        above = first.beyond == "above"
        return f"{'>' if above else '<'} {times(reach[above] / first.n)}"
    return times(first.factor.estimate)


def size(n: float) -> str:
    """A training size in few characters, and no fewer than tell it exactly.

    >>> size(100.0), size(1024.0), size(15000.0), size(31250.0), size(1.26e6)
    ('100', '1024', '15K', '31,250', '1.26M')
    """
    for top, letter in ((1e6, "M"), (1e3, "K")):
        if n >= top and float(f"{n / top:.3g}") * top == n:
            return f"{n / top:.3g}{letter}"
    return number(n)


def times(factor: float) -> str:
    """A factor in two digits.

    >>> times(3.92), times(1234.0)
    ('3.9', '1,234')
    """
    return f"{factor:.1f}" if factor < 10 else f"{factor:,.0f}"


def decimals(values: Iterable[float], digits: int = 3) -> list[str]:
    """Numbers with so many decimals.

    >>> decimals([0.5, -0.0001, float("nan")])
    ['0.500', '0.000', '–']
    """
    return ["–" if v != v else f"{v:z.{digits}f}".replace("-", "−") for v in values]


def chance(p: float) -> str:
    """A p-value in two digits."""
    return "–" if p != p else "<1e-12" if p < 1e-12 else f"{p:.2g}"
