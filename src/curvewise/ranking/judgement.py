"""What judging ranking measures on checkpoints with known accuracies gives."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from curvewise.errors import InputError
from curvewise.ranking._pools import Pool
from curvewise.ranking._tables import write_judgement, write_references
from curvewise.ranking.comparing import RankingComparisons, check_value, compare_pairs
from curvewise.tables import number
from curvewise.types import Interval, Result
from curvewise.types.scores import UNION

AVERAGE = "average"


@dataclass(frozen=True, eq=False)
class Judged:
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
        Mean cost of the score of a checkpoint apart from the forward pass; NaN where unknown.
    baseline : bool
        Whether it is a plain baseline.
    intervals : dict of str to Interval
        Of every number, by name: "recall@1", "rel@1", …, "pearson", "kendall",
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
        """One of the numbers by its name, such as "kendall" or "rel@1"."""
        if name == "gflops":
            return self.gflops
        if name not in self.intervals:
            raise InputError(f"value={name!r}: use one of {', '.join(map(repr, self.intervals))}.")
        return self.intervals[name].estimate


@dataclass(frozen=True, eq=False)
class Referred:
    """A reference, such as training from scratch, beside the checkpoints of a group.

    Attributes
    ----------
    reference, group, task : str
    accuracy : float
        Of the reference.
    below, n : int
        How many checkpoints of how many fine-tune to a lower accuracy.
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
    """How well measures rank checkpoints before they are fine-tuned.

    Attributes
    ----------
    rows : tuple of Judged
        Measures within tasks within groups; after the tasks of a group the averages over them.
    measures, groups, tasks : tuple of str
        ``groups`` ends with "union" if there are several.
    baselines : tuple of str
        Those of the measures that are plain baselines.
    k : tuple of int
        How many checkpoints can be tried.
    level : float
        Coverage of the intervals.
    references : tuple of Referred
        Training from scratch and the like beside the checkpoints.
    against_baseline : RankingComparisons, optional
        Each measure against the best baseline of a group.
    """

    rows: tuple[Judged, ...]
    measures: tuple[str, ...]
    groups: tuple[str, ...]
    tasks: tuple[str, ...]
    baselines: tuple[str, ...]
    k: tuple[int, ...]
    level: float
    references: tuple[Referred, ...] = ()
    against_baseline: RankingComparisons | None = None
    warnings: tuple[str, ...] = ()
    _pools: Mapping[str, Pool] = field(default_factory=dict, repr=False)
    _permutations: int = field(default=9999, repr=False)

    def row(self, measure: str, task: str | None = None, *, group: str | None = None) -> Judged:
        """One measure on one task or on average over tasks; ``group`` is the last by default."""
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
            raise InputError(f"group={group!r} is none of {list(self.groups)!r}.")
        return group

    @property
    def values(self) -> tuple[str, ...]:
        """Names of the numbers, in the order of the paper's tables."""
        each = [name for k in self.k for name in (f"recall@{k}", f"rel@{k}")]
        return (*each, "pearson", "kendall", "weighted_kendall")

    def columns(self) -> dict[str, Any]:
        """A row for each measure, group and task, and for the average over tasks."""
        return {
            "group": [r.group for r in self.rows],
            "task": [r.task for r in self.rows],
            "measure": [r.measure for r in self.rows],
            "baseline": [r.baseline for r in self.rows],
            "n": [r.n for r in self.rows],
            **{name: [r.value(name) for r in self.rows] for name in self.values},
            "kendall_low": [r.kendall.low for r in self.rows],
            "kendall_high": [r.kendall.high for r in self.rows],
            "gflops": [r.gflops for r in self.rows],
        }

    def table(
        self,
        format: str = "markdown",
        digits: int = 2,
        *,
        group: str | None = None,
        task: str | None = None,
    ) -> str:
        """Measures by metrics × 100, as in tables 1 to 3 of Li et al. 2021.

        The best of each column is bold, the second best underlined; in plain text they are marked
        with * and +. Baselines are marked by name.

        Parameters
        ----------
        format : {"markdown", "latex", "text"}
            Markup of the table.
        digits : int
            Decimals.
        group : str, optional
            The last by default, which is the union where there are several.
        task : str, optional
            One task; the average over them by default.
        """
        rows = [self.row(name, task, group=group) for name in self.measures]
        return write_judgement(rows, self.values, format, digits)

    def reference_table(self, format: str = "markdown", digits: int = 2) -> str:
        """References beside the best checkpoint of each group and task, in per cent."""
        return write_references(self.references, format, digits)

    def comparisons(
        self,
        measures: Sequence[str] | None = None,
        *,
        group: str | None = None,
        value: str = "kendall",
    ) -> RankingComparisons:
        """Every pair of measures compared on the same checkpoints and tasks.

        Parameters
        ----------
        measures : sequence of str, optional
            Which; all by default.
        group : str, optional
            Whose checkpoints; the last group by default.
        value : str
            What to compare: "kendall", "pearson", "weighted_kendall", "rel@1", …

        Notes
        -----
        A difference is for other checkpoints and other tasks like these. Tasks share their
        checkpoints, so that counting tasks alone would find differences where there are none;
        ``task_pvalue`` does so, for those who will rank the very same checkpoints.
        """
        if isinstance(measures, str):
            raise InputError(
                f"measures={measures!r} must be a list of two or more measures. What to compare is "
                "value=, such as value='kendall'."
            )
        chosen = self.measures if measures is None else tuple(measures)
        for name in chosen:
            self.row(name, group=group)
        check_value(value, self.values)
        pool, pairs = self._pools[self._group(group)], list(combinations(chosen, 2))
        return compare_pairs(pool, pairs, value, self.level, self._permutations, 0)

    def summary(self) -> str:
        """A few sentences."""
        many = f"{len(self.measures)} measure{'' if len(self.measures) == 1 else 's'}"
        tasks = f"{len(self.tasks)} task{'' if len(self.tasks) == 1 else 's'}"
        text = f"{many} judged on {tasks}"
        own = [group for group in self.groups if group != UNION]
        if len(own) > 1:
            text += f" and {len(own)} groups of checkpoints"
        shown = [UNION] if UNION in self.groups else own
        return text + "." + "".join(map(self._said_of, shown))

    def _said_of(self, group: str) -> str:
        where = f" In {group}:" if len(self.groups) > 1 else ""
        rows = [self.row(name, group=group) for name in self.measures]
        known = [r for r in rows if not math.isnan(r.kendall.estimate)]
        if not known:
            return f"{where} None can be judged."
        best = max(known, key=lambda r: r.kendall.estimate)
        text = f"{where} Best is {best.measure}{' (a baseline)' if best.baseline else ''}: Kendall "
        text += f"{best.kendall}" + "".join(f", Rel@{k} {number(v)}" for k, v in best.rel.items())
        return text + "." + self._said_of_baselines(group) + self._said_of_references(group)

    def _said_of_baselines(self, group: str) -> str:
        if self.against_baseline is None:
            return ""
        rows = [r for r in self.against_baseline.rows if r.group == group]
        if not rows:
            return ""
        share = 1 - self.level
        better = [r.one for r in rows if r.adjusted <= share and r.difference.estimate > 0]
        said = ", ".join(better) or "none"
        return (
            f" Better than the best baseline ({rows[0].two}) at {share:.0%}, all comparisons "
            f"together: {said}."
        )

    def _said_of_references(self, group: str) -> str:
        parts = [
            f" {r.below} of {r.n} checkpoints lie below {r.reference} for {r.task}."
            for r in self.references
            if r.group == group and r.below
        ]
        return "".join(parts)
