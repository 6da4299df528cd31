"""Judge which measures rank checkpoints as fine-tuning does, and test their differences."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

from curvewise.errors import InputError, arg, list_names, suggest
from curvewise.ranking.agreement import (
    CORRELATIONS,
    FEWEST,
    MeanError,
    accuracy_alarms,
    agree,
    as_counts,
    known_mean,
    metric_of_tasks,
    metric_title,
    resampled,
    score_alarms,
    two_way,
)
from curvewise.ranking.load import UNION, CheckpointScores
from curvewise.ranking.measure import check_known, grouped, warn
from curvewise.ranking.rank import CheckpointRanking
from curvewise.stats.tests import holm, sign_flip_pvalue
from curvewise.text import format_count, format_pvalue, format_table, mark_best, pvalue_text
from curvewise.types.results import FloatArray, Interval, Result, check_level, check_whole

# Measures that a sentence names.
NAMED = 5
# Stands for the task in rows that are means over tasks.
AVERAGE = "average"


def judge_rankings(
    table: CheckpointScores,
    measures: Sequence[str] | None = None,
    *,
    k: int | Sequence[int] = (1, 3),
    union: bool = True,
    level: float = 0.95,
    permutations: int = 9999,
    rng: int = 0,
) -> RankingJudgement:
    """Judge how well measures rank checkpoints, by group and task and on average over tasks.

    Parameters
    ----------
    table : CheckpointScores
        Checkpoints by task with accuracies and scores; see :func:`load_checkpoint_scores`.
    measures : sequence of str, optional
        Measures to judge; all by default.
    k : int or sequence of int
        Numbers of checkpoints that can be tried.
    union : bool
        Judge all groups as one, too, if there are several.
    level : float
        Coverage of the intervals.
    permutations : int
        Maximum number of random signs, where there are too many tasks to try all.
    rng : int
        Decides the draws behind intervals and tests.

    Returns
    -------
    RankingJudgement
        For each measure, group and task, and for the mean over tasks: Recall@k, Rel@k, Pearson's
        correlation, Kendall's τ-b and its weighted form, with intervals as of
        :func:`ranking_agreement`; each measure against the best baseline; references beside the
        checkpoints, which are never ranked.

    Warns
    -----
    CurvewiseWarning
        If scores or accuracies are missing, or all scores of a measure are equal.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> accuracy = rng.uniform(0.6, 0.9, (4, 12))
    >>> table = CheckpointScores(
    ...     checkpoints=[f"net {i}" for i in range(12)] * 4,
    ...     accuracy=accuracy.ravel(),
    ...     scores={
    ...         "nleep": (accuracy + rng.normal(0, 0.05, (4, 12))).ravel(),
    ...         "parameters": np.tile(rng.random(12), 4),
    ...     },
    ...     tasks=np.repeat(["pets", "cars", "birds", "flowers"], 12),
    ...     baselines=("parameters",),
    ... )
    >>> judged = judge_rankings(table, k=1)
    >>> print(judged.table("text", digits=1))
    Measure                Recall@1  Rel@1  Pearson  Kendall  Weighted  GFLOPs
    nleep                  75.0*     98.8*  85.7*    62.9*    71.7*     –
    parameters (baseline)  25.0+     90.9+  16.1+    15.9+    21.4+     –
    >>> judged.against_baseline.rows[0].pvalue < 0.05
    True
    """
    if not isinstance(table, CheckpointScores):
        raise InputError(
            f"is a {type(table).__name__}: pass CheckpointScores, which "
            "load_checkpoint_scores reads from a file or a DataFrame.",
            argument="table",
        )
    if isinstance(measures, str):
        raise InputError("give a list of names.", argument="measures", value=measures)
    chosen = list(table.measures if measures is None else dict.fromkeys(measures))
    for name in chosen:
        if name not in table.scores:
            problem = f"not among {list(table.measures)[:20]!r}.{suggest(name, table.measures)}"
            raise InputError(problem, argument="measures", value=name)
    if not chosen:
        raise InputError("has no scores: add some with table.with_scores({…}).", argument="table")
    counts, permutations = as_counts(k), check_whole(permutations, "permutations", 1)
    check_level(level)
    if AVERAGE in table.task_names:
        raise InputError(f"holds {AVERAGE!r}, which the mean over tasks is called: rename it.", argument="tasks")
    pools = pools_of(table, union)
    rows = [r for p in pools.values() for r in _rows(p, table, chosen, counts, level, rng)]
    alarms = [text for pool in pools.values() for text in _alarms(pool, chosen)]
    notes = [
        f"{p.group}: {p.uneven} of {len(p.tasks)} tasks lack some checkpoints of the group; "
        "each ranks those that it has."
        for p in pools.values()
        if p.uneven
    ]
    for pool in pools.values():
        known = (~np.isnan(pool.accuracy)).sum(axis=1)
        for count in counts:
            if whole := int(((known <= count) & (known > 1)).sum()):
                notes.append(
                    f"{pool.group}: {whole} of {format_count(len(known), 'task')} with {count} checkpoints or fewer, "
                    f"all of which k = {count} tries: Recall@{count} and Rel@{count} say nothing of a measure there."
                )
    warn(*alarms)
    return RankingJudgement(
        rows=tuple(rows),
        measures=tuple(chosen),
        groups=tuple(pools),
        tasks=table.select(table.ranked).task_names,
        baselines=tuple(name for name in chosen if name in table.baselines),
        k=counts,
        level=level,
        references=tuple(_references(table, pools)),
        against_baseline=_against(rows, pools, level, permutations, rng),
        warnings=(*alarms, *notes),
        _pools=pools,
        _permutations=permutations,
    )


def _rows(
    pool: Pool, table: CheckpointScores, measures: Sequence[str], k: tuple[int, ...], level: float, rng: int
) -> list[JudgementRow]:
    """Return a row for every measure on every task, then on average.

    Each has draws of its own, the same for all, so that other measures and tasks play no part.
    """
    same, rows = ("recall", "rel", "pearson", "weighted_kendall", "intervals"), []
    for t, task in [*enumerate(pool.tasks), (None, AVERAGE)]:
        some = slice(None) if t is None else slice(t, t + 1)
        for name in measures:
            found = agree(pool.scores[name][some], pool.accuracy[some], k, level, np.random.default_rng(rng))
            rows.append(
                JudgementRow(
                    measure=name,
                    group=pool.group,
                    task=task,
                    n=sum(found.n),
                    kendall=found.intervals["kendall"],
                    gflops=pool.cost(name, t),
                    baseline=name in table.baselines,
                    **{part: getattr(found, part) for part in same},
                )
            )
    return rows


def _alarms(pool: Pool, measures: Sequence[str]) -> list[str]:
    """Return warnings about accuracies and scores; those about scores of a union came with its groups."""
    texts = accuracy_alarms(pool.accuracy, pool.tasks, pool.failed)
    found = [f"{pool.group}: {text}" for text in texts]
    alike = []  # warnings with the measure
    for name in () if pool.group == UNION else measures:
        if np.isnan(pool.scores[name]).all():
            found.append(f"{pool.group}: {name} has no score for any checkpoint.")
        else:
            alike += [(text, name) for text in score_alarms(pool.scores[name], pool.accuracy, pool.tasks)]
    return found + [f"{pool.group}, {', '.join(names)}: {text}" for text, names in grouped(alike).items()]


def _references(table: CheckpointScores, pools: dict[str, Pool]) -> list[ReferenceRow]:
    """Return each reference beside the checkpoints of every group that it is in."""
    found = []
    parts = {**table.by_group(), **({UNION: table.union()} if UNION in pools else {})}
    for group, pool in pools.items():
        part = parts[group]
        for row in np.flatnonzero(~part.ranked):
            name, task = str(part.checkpoints[row]), str(part.tasks[row])
            if task not in pool.tasks:
                continue
            others = pool.accuracy[pool.tasks.index(task)]
            known = others[~np.isnan(others)]
            own = float(part.accuracy[row])
            best = float(known.max()) if len(known) else math.nan
            below = int((known < own).sum())
            found.append(ReferenceRow(name, group, task, own, below, len(known), best))
    return found


def _against(
    rows: Sequence[JudgementRow], pools: dict[str, Pool], level: float, permutations: int, rng: int
) -> RankingComparisons | None:
    """Compare each measure with the baseline of the highest Kendall, in every group."""
    compared: list[ComparisonRow] = []
    for group, pool in pools.items():
        means = [r for r in rows if r.group == group and r.task == AVERAGE]
        plain = [r for r in means if r.baseline and not math.isnan(r.kendall.estimate)]
        if not plain:
            continue
        best = max(plain, key=lambda r: r.kendall.estimate).measure
        pairs = [(r.measure, best) for r in means if not r.baseline]
        compared += compare_pairs(pool, pairs, "kendall", level, permutations, rng).rows
    return RankingComparisons(tuple(compared)) if compared else None


def add_rankings(
    table: CheckpointScores, rankings: Mapping[str, CheckpointRanking] | CheckpointRanking
) -> CheckpointScores:
    """Put the scores of rankings beside accuracies of the same checkpoints, to judge measures.

    Parameters
    ----------
    table : CheckpointScores
        With accuracies by checkpoint and task.
    rankings : dict of str to CheckpointRanking, or CheckpointRanking
        By task; a single one if there is one task.

    Returns
    -------
    CheckpointScores
        With the scores and costs of every measure; NaN where a checkpoint or a task was not
        ranked, or a measure failed.

    Raises
    ------
    InputError
        If a ranking is of a task or of a checkpoint that the table does not know.

    Examples
    --------
    >>> from curvewise.ranking.rank import rank_features
    >>> rng, labels = np.random.default_rng(0), np.repeat([0, 1], 50)
    >>> pool = {name: labels[:, None] * s + rng.normal(size=(100, 3)) for name, s in
    ...         {"weak": 0.5, "strong": 3.0}.items()}
    >>> def separation(features, labels):
    ...     return abs(features[labels == 1].mean() - features[labels == 0].mean())
    >>> ranking = rank_features(pool, labels, separation, reliability=0.8)
    >>> table = CheckpointScores(["weak", "strong"], [0.7, 0.9])
    >>> add_rankings(table, ranking).scores["separation"].round(1).tolist()
    [0.3, 2.9]
    """
    tasks = table.task_names
    if isinstance(rankings, CheckpointRanking):
        if len(tasks) > 1:
            raise InputError(
                f"is a single one, and the table has {len(tasks)} tasks: give a dict by task, {{{tasks[0]!r}: …}}.",
                argument="rankings",
            )
        rankings = {tasks[0]: rankings}
    for task, ranking in rankings.items():
        if task not in tasks:
            raise InputError(f"has task {task!r}, which is none of {list(tasks)!r}.", argument="rankings")
        if lost := [c for c in ranking.checkpoints if c not in table.checkpoints]:
            raise InputError(
                f"rankings[{task!r}] holds checkpoint {lost[0]!r}, which the table does not: name "
                "checkpoints alike in both."
            )
    measures = list(dict.fromkeys(m for r in rankings.values() for m in r.measures))
    if not measures:
        raise InputError("is empty: give at least one.", argument="rankings")
    return table.with_scores(
        {name: _in_rows(table, rankings, name, "scores") for name in measures},
        {name: _in_rows(table, rankings, name, "gflops") for name in measures},
    )


def _in_rows(table: CheckpointScores, rankings: Mapping[str, CheckpointRanking], measure: str, part: str) -> FloatArray:
    """Return scores or costs of a measure in the rows of the table."""
    known = {
        (task, name): value
        for task, ranking in rankings.items()
        if measure in getattr(ranking, part)
        for name, value in zip(ranking.checkpoints, getattr(ranking, part)[measure].tolist(), strict=True)
    }
    keys = zip(table.tasks.tolist(), table.checkpoints.tolist(), strict=True)
    return np.array([known.get(key, np.nan) for key in keys])


@dataclass(frozen=True, eq=False)
class JudgementRow:
    """One measure on the checkpoints of one group, for one task or on average over tasks.

    Attributes
    ----------
    measure, group, task : str
        ``task`` is "average" for the mean over tasks.
    n : int
        Checkpoints that have the score and an accuracy; in an average, of all tasks together.
    recall, rel : dict of int to float
        Recall@k and Rel@k.
    pearson, weighted_kendall : float
        Correlation of scores with accuracies.
    kendall : Interval
        Kendall's τ-b.
    gflops : float
        Mean cost of the score of a checkpoint without the forward pass; NaN where unknown.
    baseline : bool
        True for a plain baseline.
    intervals : dict of str to Interval
        Of every number, by name: "recall_at_1", "rel_at_1", …, "pearson", "kendall",
        "weighted_kendall".
    """

    measure: str
    group: str
    task: str
    n: int
    recall: Mapping[int, float]
    rel: Mapping[int, float]
    pearson: float
    kendall: Interval
    weighted_kendall: float
    gflops: float = math.nan
    baseline: bool = False
    intervals: Mapping[str, Interval] = field(default_factory=dict, repr=False)

    def value(self, name: str) -> float:
        """Return one of the numbers by its name, such as "kendall" or "rel_at_1"."""
        if name == "gflops":
            return self.gflops
        check_known(name, "value", [*self.intervals])
        return self.intervals[name].estimate


@dataclass(frozen=True, eq=False)
class ReferenceRow:
    """A reference, such as training from scratch, beside the checkpoints of a group.

    Attributes
    ----------
    reference, group, task : str
    accuracy : float
        Of the reference.
    below, n : int
        Number of checkpoints that fine-tune to a lower accuracy, and of all.
    best : float
        Accuracy of the best checkpoint.
    """

    reference: str
    group: str
    task: str
    accuracy: float
    below: int
    n: int
    best: float


@dataclass(frozen=True, eq=False)
class RankingJudgement(Result):
    """Agreement of measures with accuracies after fine-tuning, by group and task.

    Attributes
    ----------
    rows : tuple of JudgementRow
        Measures within tasks within groups; after the tasks of a group the averages over them.
    measures, groups, tasks : tuple of str
        ``groups`` ends with "union" if there are several.
    baselines : tuple of str
        Those of the measures that are plain baselines.
    k : tuple of int
        Numbers of checkpoints that can be tried.
    level : float
        Coverage of the intervals.
    references : tuple of ReferenceRow
        Training from scratch and the like beside the checkpoints.
    against_baseline : RankingComparisons, optional
        Each measure against the best baseline of a group.
    """

    rows: tuple[JudgementRow, ...]
    measures: tuple[str, ...]
    groups: tuple[str, ...]
    tasks: tuple[str, ...]
    baselines: tuple[str, ...]
    k: tuple[int, ...]
    level: float
    references: tuple[ReferenceRow, ...] = ()
    against_baseline: RankingComparisons | None = None
    warnings: tuple[str, ...] = ()
    _pools: Mapping[str, Pool] = field(default_factory=dict, repr=False)
    _permutations: int = field(default=9999, repr=False)
    _compared: dict[str, RankingComparisons] = field(default_factory=dict, init=False, repr=False)
    """Comparisons of every pair by Kendall, by group, once :meth:`sentences` needs them."""

    def row(self, measure: str, task: str | None = None, *, group: str | None = None) -> JudgementRow:
        """Return the row of a measure on one task or on average over tasks; ``group`` is the last by default."""
        wanted = (measure, self._group(group), task or AVERAGE)
        for row in self.rows:
            if (row.measure, row.group, row.task) == wanted:
                return row
        raise InputError(
            f"measure={measure!r}, task={task!r}, group={group!r}: there is no such row. Measures "
            f"are {list(self.measures)!r}, tasks {[*self.tasks, AVERAGE]!r}."
        )

    def _group(self, group: str | None) -> str:
        if group is None:
            return self.groups[-1]
        if group not in self.groups:
            raise InputError(f"not among {list(self.groups)!r}.", argument="group", value=group)
        return group

    @property
    def values(self) -> tuple[str, ...]:
        """Names of the numbers, in the order of the paper's tables."""
        each = [name for k in self.k for name in (f"recall_at_{k}", f"rel_at_{k}")]
        return (*each, "pearson", "kendall", "weighted_kendall")

    def columns(self) -> dict[str, Any]:
        """Return a row for each measure, group and task, and for the average over tasks."""
        return {
            **{name: [getattr(r, name) for r in self.rows] for name in ("group", "task", "measure", "baseline", "n")},
            **{name: [r.value(name) for r in self.rows] for name in self.values},
            "kendall_low": [r.kendall.low for r in self.rows],
            "kendall_high": [r.kendall.high for r in self.rows],
            "gflops": [r.gflops for r in self.rows],
        }

    def readable(self) -> Mapping[str, Sequence[Any]]:
        """Return a row for each measure: the averages over tasks first, the last group first, the best of it first."""
        table = super().readable()
        places = {group: -i for i, group in enumerate(self.groups)}

        def place(i: int) -> tuple[bool, int, int, float]:
            row = self.rows[i]
            task = -1 if row.task == AVERAGE else self.tasks.index(row.task)
            kendall = row.kendall.estimate
            return row.task != AVERAGE, places[row.group], task, math.inf if math.isnan(kendall) else -kendall

        order = sorted(range(len(self.rows)), key=place)
        # What is judged by stands first, where a phone shows it.
        names = {"measure": "measure", "task": "task", "group": "group", "kendall": metric_title("kendall")}
        names |= {value.replace("_", " "): metric_title(value) for value in self.values}
        names |= {"baseline": "baseline", "n": "pairs", "gflops": "GFLOPs"}
        empty = {"gflops"} if all(math.isnan(r.gflops) for r in self.rows) else set()
        empty |= {"group"} if len(self.groups) == 1 else set()
        return {head: [table[name][i] for i in order] for name, head in names.items() if name not in empty}

    def table(
        self, format: str = "markdown", digits: int | None = None, *, group: str | None = None, task: str | None = None
    ) -> str:
        """Write measures by metrics × 100, as in tables 1 to 3 of Li et al. 2021.

        The best of each column is bold, the second best underlined; in plain text they are marked
        with * and +. Baselines are marked by name.

        Parameters
        ----------
        format : {"markdown", "latex", "text"}
            Markup of the table.
        digits : int, optional
            Decimals, 2 by default.
        group : str, optional
            The last by default, which is the union where there are several.
        task : str, optional
            One task; the average over them by default.
        """
        digits = 2 if digits is None else digits
        rows = [self.row(name, task, group=group) for name in self.measures]
        columns: dict[str, Sequence[Any]] = {
            "Measure": [f"{r.measure} (baseline)" if r.baseline else r.measure for r in rows]
        }
        for value in self.values:
            head = "Weighted" if value == "weighted_kendall" else metric_title(value)
            columns[head] = mark_best([100 * r.value(value) for r in rows], digits, second=True)
        costs = [r.gflops for r in rows]
        columns["GFLOPs"] = [
            "–" if math.isnan(v) else f"{v:.2E}" if v >= 1e4 or 0 < v < 0.01 else f"{v:.2f}" for v in costs
        ]
        return format_table(columns, format, digits, names=1)

    @property
    def in_percent(self) -> bool:
        """True where accuracies are fractions, which tables show in per cent, and no other score."""
        known = [v for r in self.references for v in (r.accuracy, r.best) if not math.isnan(v)]
        return all(0 <= v <= 1 for v in known)

    def reference_table(self, format: str = "markdown", digits: int = 2) -> str:
        """Write references beside the best checkpoint of each group and task, fractions in per cent."""
        return format_table(self.reference_columns(digits), format, digits, names=3)

    def reference_columns(self, digits: int = 2) -> dict[str, list[str]]:
        """Return the same table as columns of texts."""
        rows, scale = self.references, 100 if self.in_percent else 1
        columns = {name.capitalize(): [getattr(r, name) for r in rows] for name in ("group", "task", "reference")}
        for head, name in (("Accuracy", "accuracy"), ("Best checkpoint", "best")):
            values = [getattr(r, name) for r in rows]
            columns[head] = ["–" if math.isnan(v) else f"{scale * v:.{digits}f}" for v in values]
        return {**columns, "Below": [f"{r.below} of {r.n}" for r in rows]}

    def comparisons(
        self, measures: Sequence[str] | None = None, *, group: str | None = None, value: str = "kendall"
    ) -> RankingComparisons:
        """Compare every pair of measures on the same checkpoints and tasks.

        Parameters
        ----------
        measures : sequence of str, optional
            Measures to compare; all by default.
        group : str, optional
            Group of the checkpoints; the last by default.
        value : str
            Metric to compare: "kendall", "pearson", "weighted_kendall", "rel_at_1", …

        Notes
        -----
        A difference is for other checkpoints and other tasks like these. Tasks share their
        checkpoints, so that counting tasks alone would find differences where there are none;
        ``task_pvalue`` does so, for users who will rank these same checkpoints.
        """
        if isinstance(measures, str):
            raise InputError(
                f"give a list of two or more measures. The metric to compare is {arg('value', 'kendall')}, say.",
                argument="measures",
                value=measures,
            )
        chosen = self.measures if measures is None else tuple(measures)
        for name in chosen:
            self.row(name, group=group)
        check_known(value, "value", self.values)
        pool, pairs = self._pools[self._group(group)], list(combinations(chosen, 2))
        return compare_pairs(pool, pairs, value, self.level, self._permutations, 0)

    def sentences(self) -> str:
        """Return a few sentences on the best measure of each group."""
        text = f"{format_count(len(self.measures), 'measure')} judged on {format_count(len(self.tasks), 'task')}"
        own = [group for group in self.groups if group != UNION]
        if len(own) > 1:
            text += f" and {len(own)} groups of checkpoints"
        groups = [UNION] if UNION in self.groups else own
        return text + "." + "".join(map(self._sentence_on, groups))

    def _sentence_on(self, group: str) -> str:
        where = f" In {group}:" if len(self.groups) > 1 else ""
        rows = [self.row(name, group=group) for name in self.measures]
        known = [r for r in rows if not math.isnan(r.kendall.estimate)]
        if not known:
            return f"{where} None can be judged."
        best = max(known, key=lambda r: r.kendall.estimate)
        first = "Best is" if best.kendall.estimate >= 0 else "None orders checkpoints as accuracies do; the highest is"
        text = f"{where} {first} {best.measure}{' (a baseline)' if best.baseline else ''}: Kendall "
        text += f"{best.kendall}" + "".join(f", Rel@{k} {v:.3f}" for k, v in best.rel.items())
        text += self._shown_better(best.measure, known, group)
        others: dict[str, list[str]] = {}
        for value in self.values:
            found = {r.measure: r.value(value) for r in known if not math.isnan(r.value(value))}
            top = max(found, key=lambda name: found[name], default=best.measure)
            if found and found[top] > found.get(best.measure, -math.inf):
                others.setdefault(top, []).append(metric_title(value))
        if others:
            named = "; ".join(f"{' and '.join(values)} {name}" for name, values in others.items())
            text += f". By other criteria the best is another: {named}"
        if reverse := [r.measure for r in known if r.kendall.high < 0]:
            text += f". Significantly in reverse: {', '.join(reverse)} (change the sign if less of it is better)"
        share, against = 1 - self.level, self.against_baseline
        if compared := [] if against is None else [r for r in against.rows if r.group == group]:
            better = [r.one for r in compared if r.adjusted <= share and r.difference.estimate > 0]
            text += f". Significantly better than the best baseline ({compared[0].two}), at {share:.2g} by Holm: "
            text += ", ".join(better) or "none"
        for r in self.references:
            if r.group == group and r.below:
                verb = "lies" if r.below == 1 else "lie"
                text += f". {r.below} of {r.n} checkpoints {verb} below {r.reference} for {r.task}"
        return f"{text}."

    def _shown_better(self, best: str, rows: Sequence[JudgementRow], group: str) -> str:
        """Say which measures the best is significantly better than, and which not, the highest of them first.

        All pairs count, as in :meth:`comparisons`: which one is the best is seen in the same data.
        """
        against = [] if self.against_baseline is None else self.against_baseline.rows
        told = {best, *(r.two for r in against if r.group == group)}  # the best baseline has a sentence of its own
        ordered = sorted(rows, key=lambda r: -r.kendall.estimate)
        others = [r.measure for r in ordered if r.measure not in told]
        if not others:
            return ""
        share = 1 - self.level
        if group not in self._compared:
            self._compared[group] = self.comparisons(group=group)
        sure = [r for r in self._compared[group].rows if r.adjusted <= share]
        behind = {r.two if r.difference.estimate > 0 else r.one for r in sure if best in (r.one, r.two)}
        better = [name for name in others if name in behind]
        rest = [name for name in others if name not in better]
        parts = [f"significantly better than {list_names(better, NAMED, quoted=False)}"] if better else []
        if rest:
            parts.append(f"not {'' if better else 'significantly better '}than {list_names(rest, NAMED, quoted=False)}")
        return f"; {', but '.join(parts)} (at {share:.2g} by Holm for all pairs)"


# Tasks below which no arrangement of signs is rarer than 5%.
ENOUGH_TASKS = 6


@dataclass(frozen=True, eq=False)
class ComparisonRow:
    """Difference between two measures in how well they rank.

    Attributes
    ----------
    one, two : str
        The measures.
    group : str
        Group of the checkpoints.
    value : str
        Metric that is compared: "kendall", "pearson", …
    difference : Interval
        Mean over the tasks of the value of ``one`` less that of ``two``.
    pvalue : float
        Two-sided, of no difference for other checkpoints and tasks like these. NaN for Recall@k and
        Rel@k of one task.
    adjusted : float
        The same adjusted by Holm's method for all comparisons made together.
    task_pvalue : float
        Of no difference for these checkpoints and other tasks: the share of random signs with which
        differences are as large. NaN with fewer than six tasks.
    tasks, checkpoints : int
        Numbers of both.
    test : str
        Method behind ``pvalue``.
    """

    one: str
    two: str
    group: str
    value: str
    difference: Interval
    pvalue: float
    adjusted: float
    task_pvalue: float
    tasks: int
    checkpoints: int
    test: str


@dataclass(frozen=True, eq=False)
class RankingComparisons(Result):
    """Differences between pairs of measures.

    Attributes
    ----------
    rows : tuple of ComparisonRow
        A row for each pair and group.
    """

    rows: tuple[ComparisonRow, ...]
    warnings: tuple[str, ...] = ()

    def columns(self) -> dict[str, list[Any]]:
        """Return a row for each pair of measures and group."""
        return {
            **{name: [getattr(r, name) for r in self.rows] for name in ("group", "one", "two", "value")},
            "difference": [r.difference.estimate for r in self.rows],
            "low": [r.difference.low for r in self.rows],
            "high": [r.difference.high for r in self.rows],
            **{name: [getattr(r, name) for r in self.rows] for name in ("pvalue", "adjusted", "task_pvalue")},
            **{name: [getattr(r, name) for r in self.rows] for name in ("tasks", "checkpoints", "test")},
        }

    def sentences(self) -> str:
        """Return a sentence for each pair."""
        return "\n".join(
            f"{r.group}: {r.value} of {r.one} less that of {r.two}: {r.difference}, "
            f"{format_pvalue(r.pvalue)} ({pvalue_text(r.adjusted)} for all comparisons together)."
            for r in self.rows
        )


def compare_pairs(
    pool: Pool, pairs: Sequence[tuple[str, str]], value: str, level: float, permutations: int, rng: int
) -> RankingComparisons:
    """Compare pairs of measures on the checkpoints of a pool that have both.

    Differences of correlations have Student's t with the variance over tasks and the jackknife's
    over checkpoints; those of Recall@k and Rel@k, for which there is no jackknife, with the
    variance of a bootstrap over tasks and checkpoints.
    """
    # The same draws for every pair, so that other pairs play no part.
    rows = [_pair(pool, one, two, value, level, permutations, np.random.default_rng(rng)) for one, two in pairs]
    known = np.array([i for i, r in enumerate(rows) if not math.isnan(r.pvalue)], dtype=np.intp)
    adjusted = np.full(len(rows), np.nan)
    adjusted[known] = holm([rows[i].pvalue for i in known])
    found = tuple(replace(r, adjusted=float(p)) for r, p in zip(rows, adjusted, strict=True))
    return RankingComparisons(found)


def _pair(
    pool: Pool, one: str, two: str, value: str, level: float, permutations: int, rng: np.random.Generator
) -> ComparisonRow:
    # Only checkpoints that have both scores: otherwise the pools would differ, not the measures.
    both = ~np.isnan(pool.scores[one]) & ~np.isnan(pool.scores[two])
    scores = [np.where(both, pool.scores[m], np.nan) for m in (one, two)]
    (first, first_without), (second, second_without) = (metric_of_tasks(s, pool.accuracy, value) for s in scores)
    known = ~np.isnan(first) & ~np.isnan(second)
    difference = first[known] - second[known]
    usable = (both & ~np.isnan(pool.accuracy))[known]
    count = int(usable.any(axis=0).sum())
    most = int(usable.sum(axis=1).max(initial=0))
    flipped = math.nan
    if len(difference) >= ENOUGH_TASKS:
        flipped = sign_flip_pvalue(difference, draws=permutations, rng=rng)
    where = "checkpoints and tasks" if len(difference) > 1 else "checkpoints"
    interval, pvalue, by = Interval(known_mean(difference), math.nan, math.nan, level), math.nan, "bootstrap"
    if value in CORRELATIONS:
        by = "jackknife"
        if most >= FEWEST:
            spread = two_way(difference, (first_without - second_without)[known])
            # Where every pair of checkpoints says the same, half as many as checkpoints are independent of each other.
            interval, pvalue = _difference_test(difference, spread, 2.0, most // 2, level)
        elif len(difference):
            interval = replace(interval, low=-2.0, high=2.0)
    elif len(difference) > 1 and most >= FEWEST:
        # The same draws of tasks and checkpoints for both measures.
        seed, k = int(rng.integers(2**32)), (int(value.partition("_at_")[2]),)
        drawn = np.subtract(
            *(resampled(s[known], pool.accuracy[known], k, np.random.default_rng(seed))[value] for s in scores)
        )
        spread = MeanError(float(np.nanstd(drawn, ddof=1)), min(len(difference), most) - 1.0)
        # The same in every task and draw: only the signs of the tasks are left.
        interval, pvalue = _difference_test(difference, spread, 1.0, len(difference), level)
    # Adjusted once all pairs are known.
    parts = interval, pvalue, math.nan, flipped, len(difference), count, f"{by} over {where}"
    return ComparisonRow(one, two, pool.group, value, *parts)


def _difference_test(
    difference: FloatArray, spread: MeanError, far: float, signs: int, level: float
) -> tuple[Interval, float]:
    """Test a mean difference by Student's t; without any spread, by the chance that so many signs are all equal.

    No difference is further from 0 than ``far``, unless those of the tasks are: accuracies may be negative scores.
    """
    mean = float(difference.mean())
    if not spread.error:
        far = far if mean else 0.0
        return Interval(mean, -far, far, level), 2.0 ** (1 - signs) if mean else 1.0
    half, far = spread.half(level), far if abs(difference).max() <= far else math.inf
    interval = Interval(mean, max(-far, mean - half), min(far, mean + half), level)
    return interval, 2 * float(stdtr(spread.degrees, -abs(mean) / spread.error))


@dataclass(frozen=True, eq=False)
class Pool:
    """Checkpoints that are ranked against each other, without references.

    Attributes
    ----------
    group : str
    tasks, checkpoints : tuple of str
    accuracy : ndarray, shape (tasks, checkpoints)
        NaN where a checkpoint was not fine-tuned, or that failed.
    failed : ndarray of bool
        Where the table has a row without an accuracy.
    scores, gflops : dict of str to ndarray
        By measure, in the same shape.
    """

    group: str
    tasks: tuple[str, ...]
    checkpoints: tuple[str, ...]
    accuracy: FloatArray
    failed: NDArray[np.bool_]
    scores: Mapping[str, FloatArray]
    gflops: Mapping[str, FloatArray]

    @property
    def uneven(self) -> int:
        """Number of tasks for which not all checkpoints of the group were tried."""
        return int((np.isnan(self.accuracy) & ~self.failed).any(axis=1).sum())

    def cost(self, measure: str, task: int | None = None) -> float:
        """Return the mean cost of a score; NaN where it is unknown."""
        values = self.gflops.get(measure, np.full_like(self.accuracy, np.nan))
        return known_mean(values if task is None else values[task])


def pools_of(table: CheckpointScores, union: bool) -> dict[str, Pool]:
    """Return the pool of each group, and at the end their union if there are several."""
    parts = table.by_group()
    if union and len(parts) > 1:
        if UNION in parts:
            raise InputError(
                f"holds {UNION!r}, the name of all groups together: rename it, or pass {arg('union', False)}.",
                argument="groups",
            )
        _check_union(table)
        parts[UNION] = table.union()
    return {name: _pool(name, part) for name, part in parts.items()}


def _pool(group: str, table: CheckpointScores) -> Pool:
    """Arrange the rows of a group as matrices of tasks by checkpoints."""
    if not table.ranked.any():
        raise InputError(f"group {group!r} holds references only: there is nothing to rank.")
    table = table.select(table.ranked)
    tasks = table.task_names
    names = tuple(dict.fromkeys(table.checkpoints.tolist()))
    row = {task: i for i, task in enumerate(tasks)}
    column = {name: i for i, name in enumerate(names)}
    rows = np.array([row[t] for t in table.tasks.tolist()])
    columns = np.array([column[c] for c in table.checkpoints.tolist()])

    def matrix(values: NDArray[np.float64]) -> FloatArray:
        found = np.full((len(tasks), len(names)), np.nan)
        found[rows, columns] = values
        return found

    return Pool(
        group,
        tasks,
        names,
        matrix(table.accuracy),
        matrix(np.isnan(table.accuracy).astype(np.float64)) == 1,
        {name: matrix(values) for name, values in table.scores.items()},
        {name: matrix(values) for name, values in table.gflops.items()},
    )


def _check_union(table: CheckpointScores) -> None:
    """Raise unless a name in two groups is one checkpoint, with one accuracy and one score of a measure."""
    before = table.first_rows()
    kinds = {"accuracies": table.accuracy, **{f"scores of {k}": v for k, v in table.scores.items()}}
    for kind, values in kinds.items():
        other = ~np.isclose(values, values[before], rtol=1e-9, atol=0, equal_nan=True)
        if other.any():
            row = int(np.flatnonzero(other)[0])
            raise InputError(
                f"checkpoint {str(table.checkpoints[row])!r} is in several groups with different {kind} for "
                f"{str(table.tasks[row])!r} ({values[before[row]]:g} and {values[row]:g}): name them apart, or pass "
                f"{arg('union', False)}."
            )
