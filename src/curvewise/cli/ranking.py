"""``curvewise ranking``: rank, judge, measures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter
from cyclopts.validators import Number

from curvewise.cli._console import DONE, FAILED, UsageError
from curvewise.cli._files import quietly, save_plot
from curvewise.cli._options import Drawing, Numbers, Showing
from curvewise.cli._predictions import Level, Words
from curvewise.cli._ranking_found import find_checkpoints, refuse_own_code
from curvewise.cli._ranking_inputs import FeatureReading, TargetReading
from curvewise.cli._ranking_judged import (
    PoolReading,
    best_first,
    check_bars_alone,
    drawn_groups,
    show_judgement,
)
from curvewise.cli._ranking_measured import (
    as_told,
    find_wanted,
    listed_measures,
    plan_rows,
    rank_found,
)
from curvewise.cli._ranking_shown import (
    check_scores,
    save_scores,
    show_plan,
    show_ranking,
    show_shelf,
)
from curvewise.cli._ranking_words import worded
from curvewise.cli._response_options import check_picture

if TYPE_CHECKING:
    from curvewise.types.scores import CheckpointScores

ranking = App(
    name="ranking",
    help="Which checkpoint should I fine-tune?\n\n"
    "CHECKPOINT is a file of a network (.pt2, TorchScript, ONNX, TFLite, or weights with "
    "--factory), a folder of Hugging Face, an array of features (.npy, .npz), a folder of such "
    "files, NAME=FILE, or a .toml file that lists them.",
)

SCATTERED = 6
"""Measures that are drawn against accuracies, the best ones."""

Checkpoints = Annotated[list[str], Parameter(name="CHECKPOINT...", negative="")]
Share = Annotated[float, Parameter(validator=Number(gte=0, lt=1))]
Seed = Annotated[int, Parameter(validator=Number(gte=0))]


@ranking.command
def rank(
    checkpoints: Checkpoints,
    /,
    *,
    reading: TargetReading | None = None,
    measures: Words = [],  # noqa: B006
    by: str | None = None,
    k: Annotated[int, Parameter(validator=Number(gte=1))] = 3,
    test: Share = 0.2,
    resamples: Annotated[int, Parameter(validator=Number(gte=0))] = 50,
    reliability: str | None = None,
    level: Level = 0.95,
    seed: Seed = 0,
    extracting: FeatureReading | None = None,
    dry_run: Annotated[bool, Parameter(negative="", show_default=False)] = False,
    trust: Annotated[bool, Parameter(negative="", show_default=False)] = False,
    save: Path | None = None,
    drawing: Drawing | None = None,
    showing: Showing | None = None,
) -> int:
    """Rank checkpoints for a task before any of them is fine-tuned.

    Each is run over the examples once; measures of its features say how promising it is. One
    that fails is reported, the others are ranked, and the exit status is 1.

    Example: `curvewise ranking rank nets/ --data fashion-mnist --examples 2000 --cache features`

    Example: `curvewise ranking rank a=a.npy b=b.npy --labels labels.npy --measures nleep,logme`

    Example: `curvewise ranking rank pool.toml --data photos/ --trust`, where pool.toml has a table
    for each checkpoint and paths begin at its folder:

    ```
    [mine]
    path = "mine.pth"
    factory = "nets:make"
    options = {width = 64}
    preprocessing = {size = 256, crop = 224, mean = 0.5, std = 0.5}

    [other]
    path = "other.onnx"
    ```

    Parameters
    ----------
    checkpoints
        Files, folders, or NAME=FILE.
    measures
        What to compute, such as nleep,logme,knn; see `curvewise ranking measures`.
    by
        The measure that ranks; the first by default.
    k
        How many can be tried.
    test
        Share of the examples that measures which are fitted are scored on; 0 for those that they
        were fitted on.
    resamples
        Halves of the examples that are drawn for intervals; 0 for none.
    reliability
        Correlation of the measure's scores with accuracies, where you know it, or the measure
        whose reference to take; from published benchmarks by default.
    level
        Coverage of the intervals.
    seed
        Decides the examples, the split, the halves, and what is random in measures.
    dry_run
        Only say what would be done.
    trust
        Import code that a .toml file names as the factory of a checkpoint.
    save
        Write the scores into this .csv file, which `curvewise ranking judge` reads.
    """
    page = (showing or Showing()).page()
    target = reading or TargetReading()
    check_scores(save)
    found = find_checkpoints(checkpoints, target.labels)
    target.check(found)
    wanted = find_wanted(measures)
    names = [measure.name for measure in wanted]
    if by is not None and by not in names:
        raise UsageError(f"--by {by} is none of the measures {', '.join(names)}: add it.")
    if dry_run:
        show_plan(page, plan_rows(found), {"measures": ", ".join(names), **target.told()})
        return page.close()
    if not trust:
        refuse_own_code(found)
    scoring: dict[str, Any] = {
        "test": test or None,
        "by": by,
        "resamples": resamples,
        "level": level,
        "k": k,
        "reliability": as_told(reliability),
        "rng": seed,
    }
    result = rank_found(found, target, wanted, extracting or FeatureReading(), scoring)
    show_ranking(page, result)
    if save is not None:
        save_scores(save, result)
    save_plot(drawing.plot if drawing else None, lambda: result.plot())
    lost = result.failures or result.missing.get(result.by)
    return page.close(FAILED if lost else DONE)


@ranking.command
def judge(
    table: Annotated[str, Parameter(name="TABLE")],
    /,
    *,
    measures: Words = [],  # noqa: B006
    k: Numbers = [],  # noqa: B006
    union: bool = True,
    value: str = "kendall",
    by_task: Annotated[bool, Parameter(negative="", show_default=False)] = False,
    level: Level = 0.95,
    permutations: Annotated[int, Parameter(validator=Number(gte=0))] = 9999,
    seed: Seed = 0,
    reading: PoolReading | None = None,
    heat: Path | None = None,
    cost: Path | None = None,
    scatter: Path | None = None,
    bars: Path | None = None,
    drawing: Drawing | None = None,
    showing: Showing | None = None,
) -> int:
    """Judge which measures rank checkpoints as fine-tuning does.

    TABLE (CSV, TSV, JSON or Parquet) has a row for each checkpoint and task: the accuracy after
    fine-tuning and a column for each measure; or a row for each score. For each measure, within
    each group and in their union: Recall@k, Rel@k, Pearson and Kendall on average over tasks.

    Example: `curvewise ranking judge pool.csv --unit percent --reference From-Scratch`

    Example: `curvewise ranking judge scores.csv --accuracy tuned.csv --measures nleep,logme`

    Parameters
    ----------
    table
        The checkpoints.
    measures
        Only these, such as nleep,logme.
    k
        How many checkpoints can be tried, such as 1,3 (the default).
    union
        Judge all groups as one, too.
    value
        What pairs of measures are compared by, and tasks shown by: kendall, weighted_kendall,
        pearson, recall@1, rel@1, …
    by_task
        Show the tasks one by one.
    level
        Coverage of the intervals.
    permutations
        Draws of the paired tests, at most.
    seed
        Decides the draws.
    heat
        Draw measures × tasks into this .png, .svg or .pdf file.
    cost
        Draw the cost of measures against their Kendall into this file.
    scatter
        Draw scores against accuracies into this file.
    bars
        Draw accuracies less their mean into this file; no scores are needed for it alone.
    """
    page = (showing or Showing()).page()
    outputs = {"--heat": heat, "--cost": cost, "--scatter": scatter, "--bars": bars}
    for option, path in outputs.items():
        check_picture(option, path)
    pool = (reading or PoolReading()).load(table, measures)
    plot = drawing.plot if drawing else None
    if not pool.scores:
        check_bars_alone(table, bars, [plot, heat, cost, scatter])
        page.document = {"type": "CheckpointScores", **pool.columns()}
        _draw_pool(pool, [], None, bars)
        return page.close()
    if cost is not None and not pool.gflops:
        raise UsageError(f"--cost {cost}: {table} has no costs, such as a column nleep_gflops.")
    from curvewise.ranking.judge import judge_rankings

    with quietly(), worded():
        result = judge_rankings(
            pool,
            list(measures) or None,
            **({"k": _counts(k)} if k else {}),
            union=union,
            level=level,
            permutations=permutations,
            rng=seed,
        )
    if value not in result.values:
        raise UsageError(f"--value {value}: use one of {', '.join(result.values)}.")
    with worded():
        show_judgement(page, result, value, by_task)
    whose = drawn_groups(result) if plot or heat or cost else []
    with worded():
        save_plot(plot, lambda: result.plot(score=value, group=whose))
        save_plot(heat, lambda: result.plot(kind="heat", score=value, group=whose))
        save_plot(cost, lambda: result.plot(kind="cost", score=value, group=whose))
    _draw_pool(pool, best_first(result)[:SCATTERED], scatter, bars)
    return page.close()


def _draw_pool(
    pool: CheckpointScores, measures: list[str], scatter: Path | None, bars: Path | None
) -> None:
    """Scores against accuracies, and accuracies alone."""

    def dots() -> Any:
        from curvewise.plot import plot_checkpoint_scores

        return plot_checkpoint_scores(pool, measures)

    def accuracies() -> Any:
        from curvewise.plot import plot_fine_tuning

        return plot_fine_tuning(pool)

    save_plot(scatter, dots)
    save_plot(bars, accuracies)


def _counts(k: Numbers) -> tuple[int, ...]:
    for number in k:
        if number != int(number) or number < 1:
            raise UsageError(f"--k {number:g}: give whole numbers from 1 on, such as 1,3.")
    return tuple(int(number) for number in k)


@ranking.command
def measures(*, showing: Showing | None = None) -> int:
    """List the measures, what they need and cost, and when they fail.

    Example: `curvewise ranking measures --table markdown`
    """
    page = (showing or Showing()).page()
    show_shelf(page, listed_measures())
    return page.close()
