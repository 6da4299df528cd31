"""``curvewise transfer``: measure, tasks, blind, wins."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter
from cyclopts.validators import Number

from curvewise.cli._console import GATE, UsageError, warn
from curvewise.cli._files import quietly, save_plot
from curvewise.cli._options import Drawing, Numbers, Showing
from curvewise.cli._predictions import Level, Words
from curvewise.cli._transfer_arrays import (
    ignored,
    named_files,
    names_of_files,
    read_array,
    to_paste,
)
from curvewise.cli._transfer_inputs import (
    RiskReading,
    about_sizes,
    check_blind,
    read_sizes,
    split_names,
)
from curvewise.cli._transfer_shown import (
    Gate,
    Kind,
    check_gates,
    compared_methods,
    draw_transfer,
    met_gates,
    show_comparison,
    show_plain,
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
)

Table = Annotated[str, Parameter(name="TABLE")]
Names = Annotated[list[str], Parameter(negative="", show_default=False)]
Gates = Annotated[list[Gate], Parameter(negative="", show_default=False)]
Flag = Annotated[bool, Parameter(negative="", show_default=False)]


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
        What --plot draws, curves by default: calibrated risks by size, the area that the CCI counts, CCIs with their
        intervals, how ranks change with the size, what a size is worth in data of scratch, tasks
        by their scratch curves, or the spread over runs.
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
    from curvewise.transfer.tasks import LEVELS, rank_tasks

    with quietly(), worded():
        measured = measure_transfer(risks, tasks=list(task) or None, level=level)
        result = rank_tasks(measured, levels=tuple(levels) or LEVELS, level=level)
    show_tasks(page, result, measured, all_warnings)
    save_plot(drawing.plot if drawing else None, result.plot)
    return page.close()


@transfer.command
def blind(
    targets: Annotated[str, Parameter(name="TARGETS")],
    /,
    *,
    loss: str,
    test: Path | None = None,
    key: Words = [],  # noqa: B006
    per: Literal["output", "pixel", "all"] = "output",
    axis: int | None = None,
    ignore: str | None = None,
    average: Literal["example", "pixel"] = "example",
    groups: Path | None = None,
    classes: Annotated[int | None, Parameter(validator=Number(gte=1))] = None,
    smoothing: Annotated[float, Parameter(validator=Number(gte=0))] = 0.0,
    level: Level = 0.95,
    drawing: Drawing | None = None,
    showing: Showing | None = None,
) -> int:
    """Find the blind guess: the best constant prediction for a loss, and its risk.

    Example: `curvewise transfer blind depth.npy --loss l1 --per pixel --test test_depth.npy`

    Example: `curvewise transfer blind labels.csv --key label --loss cross-entropy`

    Parameters
    ----------
    targets
        What is to be predicted, a row for each training example: .npy, .npz, .csv, .txt, .json.
    loss
        error, cross-entropy, l1, l2, binary, binary-error, angular or cosine.
    test
        File with the targets that the risk is measured on; without it, those of training.
    key
        The array or column; several, such as x,y, are the outputs of each example.
    per
        What has a constant of its own: an output, each element of an example, or nothing.
    axis
        Which axis holds channels, or the components of vectors.
    ignore
        The value that marks an element without target, such as 255 or nan.
    average
        What counts the same in the risk.
    groups
        File that says which measured examples belong together.
    classes
        How many classes, numbered from 0.
    smoothing
        Examples added to each class before frequencies are taken.
    level
        Coverage of the interval.
    """
    page = (showing or Showing()).page()
    from curvewise.transfer.blind import blind_guess

    with quietly(), worded():
        result = blind_guess(
            read_array(targets, key),
            loss,
            test_targets=None if test is None else read_array(test, key),
            per=per,
            axis=axis,
            ignore=ignored(ignore),
            average=average,
            groups=None if groups is None else read_array(groups),
            classes=classes,
            smoothing=smoothing,
            level=level,
        )
    show_plain(page, result, f"Blind guess for {result.loss} ({100 * level:.4g}% interval)")
    page.say(to_paste(result), style="dim")
    save_plot(drawing.plot if drawing else None, result.plot)
    return page.close()


@transfer.command
def wins(
    method: Annotated[str, Parameter(name="METHOD")],
    scratch: Annotated[str, Parameter(name="SCRATCH")],
    /,
    *,
    key: Words = [],  # noqa: B006
    groups: Path | None = None,
    paired: Flag = False,
    fail_if: Gates = [],  # noqa: B006
    level: Level = 0.95,
    drawing: Drawing | None = None,
    showing: Showing | None = None,
) -> int:
    """Count the test examples on which a method has a lower loss than scratch.

    Each file holds the losses of the same test examples: one for each, or runs × examples. Ties
    count half.

    Example: `curvewise transfer wins pretrained.npy scratch.npy --groups patients.npy`

    Parameters
    ----------
    method
        Losses of the method: .npy, .npz, .csv, .txt, .json.
    scratch
        Losses of training from scratch, or of any other to compare with.
    key
        The array or column, where a file has several; several, such as seed1,seed2, are runs.
    groups
        File that says which examples belong together.
    paired
        Run r of both belong together: they share a seed or a training subset.
    fail_if
        Exit with status 3 if the method is shown to win on fewer than half of the examples, or if
        neither more nor fewer is shown. May be repeated.
    level
        Coverage of the interval.
    """
    page = (showing or Showing()).page()
    names = names_of_files(method, scratch)
    from curvewise.transfer.wins import win_rate

    with quietly(), worded(), named_files(method, scratch):
        result = win_rate(
            read_array(method, key, "runs"),
            read_array(scratch, key, "runs"),
            groups=None if groups is None else read_array(groups),
            paired=paired,
            names=names,
            level=level,
        )
    title = f"Examples on which {names[0]} beats {names[1]} ({100 * level:.4g}% interval)"
    show_plain(page, result, title)
    save_plot(drawing.plot if drawing else None, result.plot)
    rate = result.rate
    holds = {"worse": rate.high < 0.5, "undecided": not (rate.high < 0.5 or rate.low > 0.5)}
    met = [gate for gate in fail_if if holds[gate]]
    for gate in met:
        warn(f"--fail-if {gate} holds: exit status {GATE}.")
    return page.close(GATE if met else 0)
