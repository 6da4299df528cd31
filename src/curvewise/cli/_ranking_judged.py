"""Tables of checkpoints in, judged measures out: what is behind ``curvewise ranking judge``."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from curvewise.cli._console import Page, UsageError, note, sentences, warn_each
from curvewise.cli._options import READING, Texts, read_where
from curvewise.cli._ranking_tables import table_in_parts
from curvewise.cli._ranking_words import as_options, worded

if TYPE_CHECKING:
    from curvewise.ranking.comparing import Compared
    from curvewise.ranking.judgement import Judged, RankingJudgement
    from curvewise.types.scores import CheckpointScores

MOST_PAIRS = 20
"""Comparisons that are shown; --json has all of them."""

MOST_PANELS = 6
"""Groups that are drawn in one picture."""

HEADS = {"pearson": "Pearson", "kendall": "Kendall", "weighted_kendall": "weighted"}


@Parameter(name="*", group=READING)
@dataclass
class PoolReading:
    """How to read checkpoints with accuracies and scores.

    Parameters
    ----------
    accuracy
        Second file, with the accuracies; checkpoints (and tasks and groups) are matched by name.
    checkpoint
        Column that names the checkpoint. Columns with usual names are found by themselves.
    task
        Column that names the task that was fine-tuned for.
    group
        Column that names the group in which checkpoints are ranked.
    accuracy_column
        Column of accuracies after fine-tuning.
    measure
        Column that names the measure, where scores are in one column.
    score
        Column of scores, where they are in one.
    reference
        A checkpoint that is shown and never ranked, such as training from scratch; may be
        repeated.
    baseline
        A measure that is a plain baseline; may be repeated. By default those that are called like
        a number of parameters or a source accuracy.
    unit
        Of the accuracies; by default percent if the column's name says so, else fractions. A
        score is any number of which more is better.
    wide
        Each column of numbers is a checkpoint and holds its accuracies.
    repeats
        What to take of several rows of a checkpoint and task: the best accuracy, as over
        hyperparameters, or the mean, as over seeds.
    where
        Only rows with this, as COLUMN=VALUE; may be repeated.
    allow_large
        Read a compressed file whatever it unpacks to.
    """

    accuracy: Path | None = None
    checkpoint: str | None = None
    task: str | None = None
    group: str | None = None
    accuracy_column: str | None = None
    measure: str | None = None
    score: str | None = None
    reference: Texts = field(default_factory=list)
    baseline: Texts = field(default_factory=list)
    unit: Literal["fraction", "percent", "score"] | None = None
    wide: Literal["checkpoints"] | None = None
    repeats: Literal["best", "mean"] | None = None
    where: Texts = field(default_factory=list)
    allow_large: Annotated[bool, Parameter(negative="", show_default=False)] = False

    def load(self, source: str, measures: Sequence[str]) -> CheckpointScores:
        """Read the table; says on stderr what was taken for what."""
        from curvewise.io.checkpoint_scores import load_checkpoint_scores

        with worded():
            found = load_checkpoint_scores(
                source,
                accuracies=self.accuracy,
                checkpoint=self.checkpoint,
                task=self.task,
                group=self.group,
                accuracy=self.accuracy_column,
                measures=list(measures) or None,
                measure=self.measure,
                score=self.score,
                wide=self.wide,
                unit=self.unit,
                reference=tuple(self.reference),
                baselines=tuple(self.baseline) or None,
                where=read_where(self.where),
                repeats=self.repeats,
                allow_large=self.allow_large,
            )
        note("; ".join([repr(found), *found.notes]))
        return found


def check_bars_alone(source: str, bars: Path | None, others: Sequence[Path | None]) -> None:
    """Refuse a table without scores, unless accuracies alone are to be drawn."""
    if bars is None or any(others):
        raise UsageError(
            f"{source} has no scores of measures: name their columns with --measures (or, where "
            "each row is one score, with --measure COLUMN --score COLUMN), or pass the table that "
            "has them as TABLE and this one as --accuracy. --bars alone needs none."
        )
    note(f"{source} has no scores of measures: accuracies are drawn, nothing is judged")


def drawn_groups(result: RankingJudgement) -> list[str]:
    """Groups that get a panel of a picture: all, or of many the first few and their union."""
    groups = list(result.groups)
    if len(groups) <= MOST_PANELS:
        return groups
    chosen = [*groups[: MOST_PANELS - 1], groups[-1]]
    note(
        f"{len(chosen)} of {len(groups)} groups are drawn: {', '.join(chosen)}; --where "
        "COLUMN=NAME chooses another"
    )
    return chosen


def show_judgement(page: Page, result: RankingJudgement, value: str, by_task: bool) -> None:
    """Print the columns of the paper's tables for each group, comparisons and references."""
    page.document = result.to_dict()
    page.say(sentences(result))
    for group in result.groups:
        _show_group(page, result, group)
        if by_task and page.markup is None and len(result.tasks) > 1:
            _show_tasks(page, result, group, value)
    pairs = result.comparisons(value=value) if len(result.measures) > 1 else None
    page.document["comparisons"] = None if pairs is None else pairs.to_dict()
    if page.markup is None:
        if pairs is not None:
            _show_pairs(page, result, pairs.rows, value)
        _show_references(page, result)
    elif result.references and not page.as_json:
        sys.stdout.write("\n" + result.reference_table(page.markup) + "\n")
    warn_each([as_options(text) for text in result.all_warnings])


def best_first(result: RankingJudgement, group: str | None = None) -> list[str]:
    """Measures by their Kendall in a group, the last by default."""
    found = {name: result.row(name, group=group).kendall.estimate for name in result.measures}
    return sorted(found, key=lambda name: -found[name] if found[name] == found[name] else 2.0)


def _show_group(page: Page, result: RankingJudgement, group: str) -> None:
    if page.markup is not None and not page.as_json:
        sys.stdout.write(f"{'' if group == result.groups[0] else chr(10)}")
        page.say(f"{group}:")
        sys.stdout.write(result.table(page.markup, group=group) + "\n")
        return
    rows = [result.row(name, group=group) for name in best_first(result, group)]
    tasks = len({r.task for r in result.rows if r.group == group}) - 1
    where = f"{group}, {tasks} task{'' if tasks == 1 else 's'}"
    title = f"{where} (× 100, {result.level:.0%} interval of Kendall)"
    table_in_parts(page, title, _details(result, rows))


def _details(result: RankingJudgement, rows: Sequence[Judged]) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {
        "measure": [f"{r.measure} (baseline)" if r.baseline else r.measure for r in rows]
    }
    for value in result.values:
        columns[HEADS.get(value, value.capitalize())] = _hundredfold(r.value(value) for r in rows)
        if value == "kendall":
            columns["low"] = _hundredfold(r.kendall.low for r in rows)
            columns["high"] = _hundredfold(r.kendall.high for r in rows)
    if any(r.gflops == r.gflops for r in rows):
        columns["GFLOPs"] = [_cost(r.gflops) for r in rows]
    return columns


def _show_tasks(page: Page, result: RankingJudgement, group: str, value: str) -> None:
    rows = {(r.measure, r.task): r for r in result.rows if r.group == group}
    tasks = list(dict.fromkeys(task for _, task in rows))
    columns: dict[str, list[Any]] = {"task": tasks}
    for name in result.measures:
        columns[name] = _hundredfold(rows[name, task].value(value) for task in tasks)
    table_in_parts(page, f"{group}: {HEADS.get(value, value)} by task (× 100)", columns)


def _show_pairs(page: Page, result: RankingJudgement, rows: Sequence[Compared], value: str) -> None:
    order = sorted(rows, key=lambda r: r.pvalue if r.pvalue == r.pvalue else 2.0)[:MOST_PAIRS]
    columns = {
        "measures": [f"{r.one} − {r.two}" for r in order],
        "difference": _hundredfold(r.difference.estimate for r in order),
        "low": _hundredfold(r.difference.low for r in order),
        "high": _hundredfold(r.difference.high for r in order),
        "p": [_chance(r.pvalue) for r in order],
        "adjusted": [_chance(r.adjusted) for r in order],
    }
    what = "Differences" if len(order) == len(rows) else f"The {len(order)} clearest differences"
    title = f"{what} of {HEADS.get(value, value)}, {result.groups[-1]} (× 100, p by Holm adjusted)"
    page.table(title, columns, None)


def _show_references(page: Page, result: RankingJudgement) -> None:
    if not result.references:
        return
    rows = result.references
    columns: dict[str, list[Any]] = {"reference": [r.reference for r in rows]}
    if len(result.groups) > 1:
        columns["group"] = [r.group for r in rows]
    columns |= {
        "task": [r.task for r in rows],
        "accuracy": _hundredfold((r.accuracy for r in rows), 2),
        "best checkpoint": _hundredfold((r.best for r in rows), 2),
        "below it": [f"{r.below} of {r.n}" for r in rows],
    }
    page.table("References, which are never ranked (× 100)", columns, None)


def _hundredfold(values: Iterable[float], digits: int = 1) -> list[str]:
    return [f"{100 * v:.{digits}f}" if v == v else "–" for v in values]


def _cost(value: float) -> str:
    from curvewise.tables import number

    return "–" if value != value else number(value, 3)


def _chance(p: float) -> str:
    return "–" if p != p else "<1e-12" if p < 1e-12 else f"{p:.2g}"
