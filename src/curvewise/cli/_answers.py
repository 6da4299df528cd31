"""Tables and sentences of the learning commands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from curvewise.cli._console import (
    Page,
    UsageError,
    console,
    digits_of,
    rich_table,
    sentences,
    shown_as,
    warn,
    warn_each,
    width_of,
)
from curvewise.tables import whole

if TYPE_CHECKING:
    from curvewise.cli._console import Columns
    from curvewise.cli._options import Fitting
    from curvewise.learning import LearningCurves, LeaveOneSizeOut
    from curvewise.learning.base import Curve
    from curvewise.types import Measurements

MOST_SUMMARIES = 6
"""With more learners than this the table stands without sentences."""


def show_curves(
    page: Page,
    curves: LearningCurves,
    fitting: Fitting,
    interval: str | None,
    legend: str | None = None,
) -> None:
    """Print e_N, β_N and γ of each learner, sentences or a legend, and what to beware of."""
    every = list(curves)
    rows = [c.interval_at(fitting.at, level=fitting.level, interval=interval) for c in every]
    gammas = [
        c.gamma_interval(fitting.level) if hasattr(c, "gamma_interval") else None for c in every
    ]
    columns: dict[str, Sequence[Any]] = {
        "learner": [c.learner for c in every],
        "N": [whole(r.n) for r in rows],
        "e_N": [r.error for r in rows],
        "β_N": [r.data_reliance for r in rows],
    }
    if any(g is not None for g in gammas):
        columns["γ"] = gammas
    page.document["table"] = [
        {"learner": c.learner, "values": r, "gamma": g}
        for c, r, g in zip(every, rows, gammas, strict=True)
    ]
    unit = every[0].unit
    kind = rows[0].error.kind
    other = rows[0].data_reliance.kind
    apart = f"; β_N: {other}, by the power law" if other != kind else ""
    page.table(
        f"{_word(every[0]).capitalize()} and data-reliance at N"
        f"{' in %' if unit.suffix else ''} ({fitting.level:.0%} {kind} intervals{apart})",
        columns,
        digits_of(unit),
    )
    if legend is not None:
        page.say(legend, style="dim")
    elif len(every) <= MOST_SUMMARIES:
        for curve in every:
            page.say(sentences(curve))
    warn_each([f"{c.learner}: {w}" for c in every for w in c.all_warnings])
    warn_each([f"{name} could not be fitted: {why}" for name, why in curves.failures.items()])


def check_reach(reach: float | None, measurements: Measurements) -> None:
    """Refuse an error that no learner can have, before anything is fitted."""
    if reach is None:
        return
    unit = measurements.unit
    bad = not 0 <= reach <= unit.top if unit.bounded else not abs(reach) < float("inf")
    if bad:
        what = f"an error from 0 to {unit.top:g}" if unit.bounded else f"a finite {unit.name}"
        raise UsageError(f"--reach {reach:g} must be {what}, in the unit of the file.")


def ask_curves(
    page: Page,
    curves: LearningCurves,
    level: float,
    interval: str | None,
    predict: Sequence[float],
    reach: float | None,
    price: float | None,
) -> None:
    """Print the answers asked for: predictions, samples to reach an error, a budget."""
    if predict:
        _predictions(page, curves, level, interval, predict)
    if reach is not None:
        _reach(page, curves, level, reach)
    if price is not None:
        _budget(page, curves, level, predict, price)


def _predictions(
    page: Page, curves: LearningCurves, level: float, interval: str | None, sizes: Sequence[float]
) -> None:
    import numpy as np

    n = np.asarray(sizes, dtype=np.float64)
    bands = {c.learner: c.band(n, interval, level=level) for c in curves}
    first = next(iter(curves))
    records = [
        {"learner": name, "n": whole(size), _word(first): b["error"][i], "low": b["low"][i]}
        | {"high": b["high"][i]}
        for name, b in bands.items()
        for i, size in enumerate(n.tolist())
    ]
    page.document["predictions"] = records
    kind = interval or first.default_interval
    what = f"{kind} intervals{' for one new run' if kind == 'prediction' else ''}"
    page.table(f"Predicted ({level:.0%} {what})", _columns(records), digits_of(first.unit))
    limit = min(4 * c.largest_n for c in curves)
    if max(sizes) > limit:
        warn(f"n = {max(sizes):g} is beyond four times the largest size measured.")


def _reach(page: Page, curves: LearningCurves, level: float, error: float) -> None:
    answers = [c.samples_to_reach(error, level=level) for c in curves]
    page.document["samples_to_reach"] = answers
    columns: dict[str, Sequence[Any]] = {
        "learner": [a.learner for a in answers],
        "n": [_samples(a.estimate) for a in answers],
        "low": [_samples(a.low) for a in answers],
        "high": [_samples(a.high) for a in answers],
        "chance of never": [shown_as(a.probability_never, ".0%") for a in answers],
    }
    title = f"Samples to reach {answers[0].error:g}{answers[0].unit.suffix} ({level:.0%} intervals)"
    page.table(title, columns, None)
    warn_each([f"{a.learner}: {w}" for a in answers for w in a.warnings])


def _budget(
    page: Page, curves: LearningCurves, level: float, sizes: Sequence[float], price: float
) -> None:
    records = []
    for curve in curves:
        n = [s for s in sizes if s > curve.largest_n] or [2 * curve.largest_n, 4 * curve.largest_n]
        frame = curve.budget(n, cost_per_sample=price, level=level)
        for row in frame.to_dict("records"):
            named = {str(k): v for k, v in row.items()}
            counts = {k: whole(named[k]) for k in ("n", "added")}
            records.append({"learner": curve.learner, **named, **counts})
    page.document["budget"] = records
    shown = [{k: r[k] for k in r if k not in ("low", "high")} for r in records]
    columns = _columns(shown)
    columns["cost"] = [shown_as(c, ",.2f") for c in columns["cost"]]
    columns["gain per cost"] = [shown_as(v, ".3g") for v in columns.pop("gain_per_cost")]
    title = f"What more data costs and brings, at {price:g} per sample"
    page.table(title, columns, digits_of(next(iter(curves)).unit))


def show_validation(
    page: Page, measurements: Measurements, forms: Sequence[str]
) -> LeaveOneSizeOut:
    """Print the leave-one-size-out table of all learners together, and give the result."""
    from curvewise.learning import leave_one_size_out

    unit = measurements.unit
    result = leave_one_size_out(
        measurements.n,
        measurements.error,
        learner=measurements.learner,
        forms=list(forms) or None,
        unit=unit.name,
        higher_is_better=unit.higher_is_better,
        runs=measurements.runs,
        variance=measurements.variance if measurements.runs is not None else None,
    )
    page.document = result.to_dict()
    page.say(sentences(result))
    page.table("RMSE at sizes left out", _fitting_columns(page, result), digits_of(unit))
    warn_each(result.warnings)
    return result


def _fitting_columns(page: Page, result: LeaveOneSizeOut) -> Columns:
    """All columns if the terminal is wide enough; else without the single sizes."""
    columns = dict(result.columns())
    columns["R²"] = [shown_as(v, ".3f") for v in columns.pop("R2")]
    columns["p"] = [v if v != v else f"{v:.3f}" for v in columns.pop("p_value")]
    if page.markup is not None:
        return columns
    if width_of(rich_table(columns, digits_of(result.unit)))[1] <= console().width:
        return columns
    return {k: columns[k] for k in ("form", "weights", "average", "R²", "p")}


def _columns(records: Sequence[dict[str, Any]]) -> dict[str, list[Any]]:
    return {key: [r[key] for r in records] for key in records[0]}


def _samples(n: float) -> int | str:
    return round(n) if abs(n) < float("inf") else shown_as(n, "g")


def _word(curve: Curve) -> str:
    return curve.unit.name if curve.unit.name in ("loss", "score") else "error"
