"""``curvewise scaling fit``, ``optimal``, ``isoflops``, ``backtest`` and ``plan``: one law."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from curvewise.cli.console import Drawing, Flag, Level, Showing, in_options
from curvewise.errors import quietly
from curvewise.scaling.commands.options import (
    Amount,
    Amounts,
    Counts,
    File,
    LawFitting,
    ScalingReading,
    Sizes,
    answer,
    scaling,
)
from curvewise.text import format_count

SYMBOLS = {
    "E": "E, irreducible loss",
    "A": "A",
    "B": "B",
    "alpha": "α, of parameters",
    "beta": "β, of tokens",
    "exponent": "a: N* grows as C^a",
}
"""Parameters of every law, with what they mean."""
FURTHER = {"g": "g, coupling", "R_D": "R_D, of repeated tokens", "R_N": "R_N, of excess parameters"}
"""Parameters of some forms."""


@scaling.command
def fit(
    file: File,
    /,
    *,
    at: Sizes = [],  # noqa: B006
    what: Literal["contours", "residuals"] = "contours",
    level: Level = 0.95,
    fitting: LawFitting | None = None,
    reading: ScalingReading | None = None,
    drawing: Drawing | None = None,
    showing: Showing | None = None,
) -> int:
    """Fit loss as a function of parameters and tokens.

    Example: `curvewise scaling fit runs.csv --plot law.png`

    Example: `curvewise scaling fit runs.csv --form auto --at 70B,1.4T`

    Parameters
    ----------
    file
        Table of runs.
    at
        Predict the loss of a model, as PARAMS,TOKENS such as 70B,1.4T; may be repeated.
    what
        Picture that --plot draws: contours of equal loss with the runs and the compute-optimal
        path, or residuals.
    level
        Coverage of the intervals.
    """
    page = (showing or Showing()).page()
    from curvewise.progress import waiting
    from curvewise.types.results import plain

    law = (fitting or LawFitting()).fit((reading or ScalingReading()).load(file))
    more: dict[str, Mapping[str, Any]] = {}
    document: dict[str, Any] = {}
    if at:
        params, tokens = zip(*at, strict=True)
        bands = {k: law.prediction(params, tokens, interval=k, level=level) for k in ("confidence", "prediction")}
        document["predictions"] = {
            k: [dict(zip(table, map(float, row), strict=True)) for row in zip(*table.values(), strict=True)]
            for k, table in bands.items()
        }
        more["Predicted losses"] = _prediction_columns(bands)
        document["warnings"] = [*law.warnings, *law.extrapolation(params, tokens)]
    with quietly(), waiting("computing intervals"):
        found = {name: law.interval(name, level=level) for name in (*SYMBOLS, *law.further)}
        said, warnings = law.sentences(level), law.all_warnings
    document["intervals"] = {name: plain(interval) for name, interval in found.items()}
    document["summary"] = " ".join([said, *(f"Warning: {in_options(text)}" for text in warnings)])
    table = {"parameter": [(SYMBOLS | FURTHER)[name] for name in found], "estimate": list(found.values())}
    return answer(
        page,
        law,
        f"{law.name}: {format_count(law.count, 'run')} ({level:.0%} intervals)",
        drawing,
        columns=table,
        more=more,
        draw=lambda: law.plot(what=what, level=level),
        document=document,
        said=said,
    )


def _prediction_columns(bands: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    from curvewise.scaling.optimum import short
    from curvewise.types.results import Interval

    table = bands["prediction"]
    columns: dict[str, list[Any]] = {k: [short(float(v)) for v in table[k]] for k in ("params", "tokens")}
    names = {"confidence": "expected loss", "prediction": "loss of one new run"}
    for kind, name in names.items():
        ends = zip(*(bands[kind][k] for k in ("loss", "low", "high")), strict=True)
        columns[name] = [Interval(float(e), float(low), float(high)) for e, low, high in ends]
    return columns


@scaling.command
def optimal(
    file: File,
    /,
    *,
    budget: Annotated[Amounts, Parameter(required=True)],
    unique_tokens: Amount = None,
    sensitivity: Flag = False,
    drop: Counts = [],  # noqa: B006
    what: Literal["contours", "sizes", "sensitivity"] = "contours",
    level: Level = 0.95,
    fitting: LawFitting | None = None,
    reading: ScalingReading | None = None,
    drawing: Drawing | None = None,
    showing: Showing | None = None,
) -> int:
    """Find the model size and the number of tokens that make the best of a compute budget.

    Example: `curvewise scaling optimal runs.csv --budget 5.76e23 --sensitivity`

    Example: `curvewise scaling optimal runs.csv --budget 1e22,1e23,1e24 --plot optimum.png`

    Parameters
    ----------
    file
        Table of runs.
    budget
        Compute in FLOP, C = 6 N D; several with commas.
    unique_tokens
        Distinct tokens at hand, for --form repeated.
    sensitivity
        Print, too, how the answer for the largest budget moves as the highest losses are dropped.
    drop
        How many of the highest losses to drop, such as 5,20,40, in place of about 2, 8 and 16% of
        the rows.
    what
        Picture that --plot draws: contours of equal loss with the budgets; the loss by model size
        at each budget; or tokens per parameter as the fitting window moves.
    level
        Coverage of the intervals.
    """
    page = (showing or Showing()).page()
    from curvewise.progress import waiting

    law = (fitting or LawFitting()).fit((reading or ScalingReading()).load(file))
    with quietly(), waiting("computing intervals"):
        result = law.compute_optimal(budget if len(budget) > 1 else budget[0], level=level, unique_tokens=unique_tokens)
        asked = sensitivity or drop or what == "sensitivity"
        windows: Any = _windows(law, max(budget), drop, level) if asked else None
        # The windows that were asked for say the same as the usual ones, for this budget.
        warnings = law.all_warnings if windows is None else (*law.warnings, *windows.warnings)
    return answer(
        page,
        result,
        f"{law.name}: {law.form} law ({level:.0%} intervals)",
        drawing,
        more={} if windows is None else {windows.table_note(): windows.readable()},
        draw=lambda: windows.plot() if what == "sensitivity" else law.plot(what=what, budget=budget, level=level),
        document={} if windows is None else {"sensitivity": windows.to_dict()},
        warnings=warnings,
    )


@scaling.command
def isoflops(
    file: File,
    /,
    *,
    budget: Amounts = [],  # noqa: B006
    nominal: Amounts = [],  # noqa: B006
    weighted: Flag = False,
    sensitivity: Flag = False,
    drop: Counts = [],  # noqa: B006
    what: Literal["parabolas", "sensitivity"] = "parabolas",
    level: Level = 0.95,
    reading: ScalingReading | None = None,
    drawing: Drawing | None = None,
    showing: Showing | None = None,
) -> int:
    """Fit a parabola of loss in model size at each compute budget, then power laws of the minima.

    Example: `curvewise scaling isoflops runs.csv --budget 3.8e25 --plot parabolas.png`

    Parameters
    ----------
    file
        Table of runs at a few budgets, with several model sizes at each.
    budget
        Compute in FLOP for which to give the optimal size; several with commas.
    nominal
        Budgets that the runs were meant for; each run belongs to the nearest. By default runs are
        grouped where their compute has gaps.
    weighted
        Weigh minima by the inverse square of their standard errors.
    sensitivity
        Print, too, how the answer moves as the highest losses, or the flagged rows, are dropped.
    drop
        How many of the highest losses to drop, such as 5,20,40, in place of about 2, 8 and 16% of
        the rows.
    what
        Picture that --plot draws: the parabolas, or tokens per parameter as the fitting window
        moves.
    level
        Coverage of the intervals.
    """
    page = (showing or Showing()).page()
    from curvewise.scaling.isoflops import fit_isoflops

    runs = (reading or ScalingReading()).load(file)
    with quietly():
        result = fit_isoflops(runs, budgets=nominal or None, weighted=weighted, level=level)
    more, document, warnings = {}, {}, ()
    if budget:
        with quietly():
            found = result.compute_optimal(budget if len(budget) > 1 else budget[0], level=level)
        warnings = found.warnings
        document["optimal"] = found.to_dict()
        table = {k: v for k, v in found.readable().items() if k != "loss"}
        more[f"Compute-optimal size ({level:.0%} intervals)"] = table
    windows = None
    if sensitivity or drop or what == "sensitivity":
        windows = _windows(result, max(budget, default=None), drop, level)
        document["sensitivity"] = windows.to_dict()
        more |= {windows.table_note(): windows.readable()}
    return answer(
        page,
        result,
        f"{result.name}: minima of {format_count(len(result.budget), 'budget')}",
        drawing,
        more=more,
        draw=result.plot if windows is None or what == "parabolas" else windows.plot,
        document=document,
        warnings=warnings,
    )


def _windows(fitted: Any, budget: float | None, drop: Sequence[int], level: float) -> Any:
    with quietly():
        return fitted.sensitivity(budget, drop=drop or None, level=level)


@scaling.command
def backtest(
    file: File,
    /,
    *,
    hold_out: Amounts = [16.0],  # noqa: B006
    level: Level = 0.95,
    fitting: LawFitting | None = None,
    reading: ScalingReading | None = None,
    drawing: Drawing | None = None,
    showing: Showing | None = None,
) -> int:
    """Hold out the largest runs, predict them from the rest, and compare with what was measured.

    Example: `curvewise scaling backtest runs.csv --form auto --hold-out 4,16,64 --plot backtest.png`

    Parameters
    ----------
    file
        Table of runs.
    hold_out
        Hold out the runs within this factor of the largest compute; several with commas. The
        picture is that of the last.
    level
        Coverage of the prediction bands.
    """
    page = (showing or Showing()).page()
    from curvewise.progress import waiting

    law = (fitting or LawFitting()).fit((reading or ScalingReading()).load(file))
    with quietly(), waiting("fitting without the largest runs"):
        found = [law.backtest(factor, level=level) for factor in hold_out]
    columns = {
        "held out": [f"top {b.hold_out:g}×" for b in found],
        "runs fitted": [b.fitted for b in found],
        "rows held out": [len(b.loss) for b in found],
        "error": [f"{b.error:.2%}" for b in found],
        "published method": [f"{b.published_error:.2%}" for b in found],
        f"in {level:.0%} band": [f"{b.coverage:.0%}" for b in found],
    }
    more = {}
    if page.verbose or page.as_json:
        for b in found:
            more[f"Rows of the top {b.hold_out:g}×"] = b.readable()
    last = found[-1]
    document = {"backtests": [b.to_dict() for b in found]} if len(found) > 1 else {}
    return answer(
        page,
        last,
        f"{law.name}: {law.form} law, geometric mean of |Δ log loss|",
        drawing,
        columns=columns,
        more=more,
        document=document,
        warnings=[*law.warnings, *(w for b in found for w in b.warnings)],
    )


@scaling.command
def plan(
    file: File,
    /,
    *,
    budget: Annotated[Amount, Parameter(required=True)],
    quantity: Literal["params", "loss", "exponent", "alpha", "beta", "E"] = "params",
    factor: Annotated[float, Parameter(validator=Number(gt=0, lt=1))] = 0.5,
    largest: Amount = None,
    most: Annotated[int, Parameter(validator=Number(gte=1))] = 16,
    seed: int = 0,
    level: Level = 0.95,
    fitting: LawFitting | None = None,
    reading: ScalingReading | None = None,
    drawing: Drawing | None = None,
    showing: Showing | None = None,
) -> int:
    """Plan which runs to train next to narrow an interval of a law, and what they cost.

    Example: `curvewise scaling plan runs.csv --budget 1e24 --plot plan.png`

    Example: `curvewise scaling plan runs.csv --budget 1e24 --quantity loss --largest 1e22`

    Parameters
    ----------
    file
        Table of the runs at hand.
    budget
        Compute in FLOP of the model that the law is for.
    quantity
        Interval to narrow: of the optimal size, of the loss there, or of a parameter of the law.
    factor
        Width to reach over the present one.
    largest
        Most compute of a single new run; by default that of the largest run so far.
    most
        Most runs to plan.
    seed
        Determines the simulated outcomes.
    level
        Coverage of the interval.
    """
    page = (showing or Showing()).page()
    from curvewise.progress import waiting
    from curvewise.scaling.plan import plan_scaling_runs

    assert budget is not None  # required: for the type checker
    law = (fitting or LawFitting()).fit((reading or ScalingReading()).load(file))
    with quietly(), waiting("simulating further runs"):
        result = plan_scaling_runs(
            law, budget, quantity=quantity, factor=factor, largest=largest, most=most, level=level, rng=seed
        )
    return answer(
        page,
        result,
        f"{format_count(len(result.params), 'further run')} of {result.cost:.2g} FLOP",
        drawing,
        draw=lambda: result.plot(law=law),
        warnings=law.warnings,
    )
