"""What a measured transfer says, task by task: which method, how sure, and its worth in data."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from curvewise.cli._console import console, rich_table, width_of

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
    known = [r for r in rows if not math.isnan(r.cci.estimate)]
    if not known:
        alone = f"there is no method beside {result.scratch}, which transfer tasks looks at"
        return f"{task}: no CCI; {'it needs two sizes' if rows else alone}."
    best = known[0]
    said = [f"{task}: {short(best.method)} has CCI {_interval(best.cci)}{_second(result, known)}."]
    if best.data_equivalence:
        said.append(_worth_said(best.data_equivalence[0], result.scratch))
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


def _worth_said(first: Equivalence, scratch: str) -> str:
    """How much data scratch needs to be as good as the method at its smallest size."""
    low, high, estimate = first.factor.low, first.factor.high, first.factor.estimate
    if math.isnan(estimate) or first.beyond == "below":
        return ""
    needs = f"To match its n = {size(first.n)}, {scratch} needs"
    if first.beyond == "above":
        return f"{needs} more than {times(low)} times as much data." if low > 1 else ""
    bounds = ""
    if low == low and high == high:
        lowest = times(low) if low > 0 else "0"
        bounds = f" [{lowest}, {times(high) if high < math.inf else '∞'}]"
    return f"{needs} {times(estimate)} times as much data{bounds}."


def _counts(result: TransferResult, told: Sequence[Improvement]) -> str:
    """How many methods are better and worse than scratch, all tests together."""
    from curvewise.stats import holm

    share = 1 - result.level
    sure = holm([r.pvalue for r in told]) <= share
    up = sum(bool(s) and r.cci.estimate > 0 for s, r in zip(sure, told, strict=True))
    down = int(sure.sum()) - up
    worse = f", {down} worse" if down else ""
    text = f"{up} of {len(told)} methods are better than {result.scratch}{worse}"
    return f"{text} at {100 * share:.3g}%, all tests together."


def details(result: TransferResult, rows: Sequence[Improvement]) -> dict[str, list[Any]]:
    """A row for each method, the best first: what matters, and what else the terminal has room for.

    ``--json`` has all of it.
    """
    order = by_cci(rows)
    found: dict[str, list[Any]] = {
        "method": [short(r.method) for r in order],
        "CCI": decimals(r.cci.estimate for r in order),
        f"{100 * result.level:.4g}% interval": [ends(r.cci) for r in order],
        "gain": [_gains(r) for r in order],
        "sure": [_sure(r) for r in order],
        "data ×": [_worth(r) for r in order],
    }
    more: dict[str, list[Any]] = {
        "p": [chance(r.pvalue) for r in order],
        "n": [_span(r.n) for r in order],
        "runs": [_runs(result, r) for r in order],
    }
    room = console().width
    for name, values in more.items():
        if width_of(rich_table({**found, name: values}, None))[1] <= room:
            found[name] = values
    return found


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
    sizes = row.n.tolist()
    if len(end.sure_at) == len(sizes):
        return "all n"
    if list(end.sure_at) == sizes[: len(end.sure_at)]:
        return f"to {size(end.n_last_sure)}"
    return f"{len(end.sure_at)} of {len(sizes)} n"


def _worth(row: Improvement) -> str:
    """How many times the data scratch needs at the smallest size; a bound where it is beyond."""
    if not row.data_equivalence:
        return "–"
    first = row.data_equivalence[0]
    low, high, estimate = first.factor.low, first.factor.high, first.factor.estimate
    if estimate != estimate:
        return "–"
    if first.beyond == "above":
        return f"≥ {times(low)}" if low == low and low > 0 else "∞"
    if first.beyond == "below":
        return f"≤ {times(high)}" if high < math.inf else "–"
    return times(estimate)


def size(n: float) -> str:
    """A training size in few characters.

    >>> size(100.0), size(31250.0), size(1.26e6)
    ('100', '31.2K', '1.26M')
    """
    for top, letter in ((1e6, "M"), (1e3, "K")):
        if n >= top:
            return f"{n / top:.3g}{letter}"
    return f"{n:g}"


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
