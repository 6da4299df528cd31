"""``curvewise transfer``: measure, tasks, blind, wins."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import App, Parameter

from curvewise.cli._console import GATE, UsageError, warn
from curvewise.cli._files import quietly, save_plot
from curvewise.cli._options import Drawing, Numbers, Showing, told
from curvewise.cli._predictions import Level, Words
from curvewise.cli._transfer_files import blind, wins
from curvewise.cli._transfer_inputs import (
    RiskReading,
    about_sizes,
    check_blind,
    read_sizes,
    split_names,
)
from curvewise.cli._transfer_shown import (
    Flag,
    Gates,
    Kind,
    check_gates,
    compared_methods,
    draw_transfer,
    met_gates,
    show_comparison,
    show_tasks,
    show_transfer,
)
from curvewise.cli._transfer_words import worded

transfer = App(
    name="transfer",
    help="Does pretraining beat simple controls?\n\n"
    "TABLE (CSV, TSV, JSON, Parquet, a folder of stored runs, or the .toml file of a study that "
    "was run) has a row for each run: method, "
    "training size and test loss, and task, seed and fold where there are several. The controls "
    "are methods of it, training from scratch, a blind guess and maximal supervision, or numbers.",
    error_formatter=told,
)

Table = Annotated[str, Parameter(name="TABLE")]
Names = Annotated[list[str], Parameter(negative="", show_default=False)]


@transfer.command
def measure(
    table: Table,
    /,
    *,
    method: Names = [],  # noqa: B006
    task: Names = [],  # noqa: B006
    sizes: Names = [],  # noqa: B006
    weight: Literal["scratch", "uniform", "log"] = "scratch",
    seeds: Literal["mean", "pooled"] = "mean",
    compare: Words = [],  # noqa: B006
    pairs: Flag = False,
    fail_if: Gates = [],  # noqa: B006
    level: Level = 0.95,
    kind: Kind | None = None,
    highlight: Words = [],  # noqa: B006
    all_warnings: Flag = False,
    reading: RiskReading | None = None,
    drawing: Drawing | None = None,
    showing: Showing | None = None,
) -> int:
    """Measure how much each method improves on training from scratch.

    For each task and method the calibrated cumulative improvement (CCI): 0 is no better than
    scratch, 1 maximal supervision at every size; with its interval, the gain at the least and the
    most data, up to which size it is sure, and how many times the data scratch needs to match.

    Example: `curvewise transfer measure losses.csv --plot curves.png`

    Example: `curvewise transfer measure losses.csv --seeds pooled --table latex`

    Example: `curvewise transfer measure llm.csv --scratch few-shot --blind zero-shot
    --maximal 0.12`

    Example: `curvewise transfer measure losses.csv --compare new,old --fail-if worse`

    Parameters
    ----------
    table
        Risks by method and training size.
    method
        Only this one, or several such as new,old; may be repeated.
    task
        Only this one, or several such as a,b; may be repeated.
    sizes
        Only these training sizes, such as 100,1000,10000; of one task TASK=100,1000, which may be
        repeated.
    weight
        What the area between curves is integrated over: the risk of scratch as in the paper, the
        size, or its logarithm.
    seeds
        Average the runs of each size, or take each as a point as the paper's authors do.
    compare
        Two methods, such as new,old: the CCI of the first less that of the second.
    pairs
        Compare all pairs of methods on each task.
    fail_if
        Exit with status 3 if a method is shown to be worse than scratch (or, with --compare, the
        first than the second), or if neither better nor worse is shown, each by its own interval,
        without a correction for their number. May be repeated.
    level
        Coverage of the intervals.
    kind
        What --plot draws: calibrated risks by size (the default), the area that the CCI counts,
        CCIs with their intervals, how ranks change with the size, what a size is worth in data of
        scratch, tasks by their scratch curves, or the spread over runs.
    highlight
        Methods that --plot draws in colour, such as new,old; the others are grey.
    all_warnings
        Show every warning; by default the first few.
    """
    page = (showing or Showing()).page()
    if compare and (len(compare) != 2 or compare[0] == compare[1]):
        raise UsageError(f"--compare {','.join(compare)}: name two methods, such as new,old.")
    plot = drawing.plot if drawing else None
    if plot is None and (kind or highlight):
        option = f"--kind {kind}" if kind else "--highlight"
        raise UsageError(f"{option} is about what --plot draws: add --plot FILE, or leave it out.")
    risks = (reading or RiskReading()).load(table)
    method, task = split_names(method, risks.method_names), split_names(task, risks.task_names)
    check_blind(risks, task, cci=True)
    from curvewise.transfer.measure import measure_transfer

    with quietly(), worded(), about_sizes(risks, sizes):
        result = measure_transfer(
            risks,
            weight=weight,
            seeds=seeds,
            sizes=read_sizes(sizes),
            methods=list(dict.fromkeys((*method, *(compare if method else ())))) or None,
            tasks=list(task) or None,
            level=level,
        )
        compared = compared_methods(result, compare, pairs)
    check_gates(result, fail_if, compared)
    show_transfer(page, result, all_warnings)
    if compared is not None:
        show_comparison(page, result, compared, all_warnings)
    with worded():
        save_plot(plot, lambda: draw_transfer(result, kind or "curves", highlight))
    met = met_gates(result, compared if compare else None, fail_if)
    for text in met:
        warn(f"{text}: exit status {GATE}.")
    return page.close(GATE if met else 0)


@transfer.command
def tasks(
    table: Table,
    /,
    *,
    task: Names = [],  # noqa: B006
    levels: Numbers = [],  # noqa: B006
    level: Level = 0.95,
    all_warnings: Flag = False,
    reading: RiskReading | None = None,
    drawing: Drawing | None = None,
    showing: Showing | None = None,
) -> int:
    """Characterise tasks by how much data training from scratch needs.

    Tasks are ordered by the training size at which the calibrated risk of scratch has come down
    to each level: 1 is a blind guess, 0 maximal supervision.

    Example: `curvewise transfer tasks losses.csv --levels 0.5,0.25 --plot tasks.png`

    Parameters
    ----------
    table
        Risks by method and training size; only those of scratch are looked at.
    task
        Only this one, or several such as a,b; may be repeated.
    levels
        Calibrated risks to reach; 0.75,0.5,0.25,0.1 by default.
    level
        Coverage of the intervals.
    all_warnings
        Show every warning; by default the first few.
    """
    page = (showing or Showing()).page()
    risks = (reading or RiskReading()).load(table)
    task = split_names(task, risks.task_names)
    check_blind(risks, task, cci=False)
    from curvewise.transfer.measure import measure_transfer
    from curvewise.transfer.tasks import rank_tasks

    with quietly(), worded():
        measured = measure_transfer(risks, tasks=list(task) or None, level=level)
        chosen = {"levels": tuple(levels)} if levels else {}
        result = rank_tasks(measured, **chosen, level=level)
    show_tasks(page, result, measured, all_warnings)
    save_plot(drawing.plot if drawing else None, result.plot)
    return page.close()


transfer.command(blind)
transfer.command(wins)
