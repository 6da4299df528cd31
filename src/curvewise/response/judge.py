"""Judge measures of generalization on a corpus of trained models."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.response import _pgdl
from curvewise.response._engine import Scored, clipped, prepare, score_measures, tail
from curvewise.response._settings import shuffled_gaps, varied
from curvewise.response.agreement import granulated
from curvewise.response.judgement import AVERAGE, Judged, MeasureJudgement
from curvewise.stats.correlation import kendall, pearson, spearman
from curvewise.types import FloatArray, ModelCorpus, check_level

AT_ONCE = 2**23  # measures times pairs of models that are scored together


def judge_measures(
    corpus: ModelCorpus,
    measures: Sequence[str] | None = None,
    *,
    least_train_accuracy: float | None = None,
    given: int = 2,
    permutations: int = 999,
    level: float = 0.95,
    rng: int | np.random.Generator = 0,
) -> MeasureJudgement:
    """Judge how well measures tell the generalization gap, task by task and on average.

    Parameters
    ----------
    corpus : ModelCorpus
        Models with hyperparameters, gaps and measures.
    measures : sequence of str, optional
        Which to judge; all by default.
    least_train_accuracy : float, optional
        Leave out models with a lower training accuracy; Schiff et al. 2021 take 0.8.
    given : int
        How many hyperparameters are held at a time in the conditional mutual information.
    permutations : int
        Draws of its null; 0 for none.
    level : float
        Coverage of its interval.
    rng : int or Generator
        Decides the draws.

    Returns
    -------
    MeasureJudgement
        For each measure and task the conditional mutual information with its interval and null,
        the competition's version of it, and rank and linear correlations. A measure with a
        declared orientation is held to it; one without is as good in either direction.

    Warns
    -----
    CurvewiseWarning
        If models are left out because they failed, or hyperparameters leave little to tell.

    Notes
    -----
    The interval is for the score that a very large corpus over the same hyperparameters would
    give: the score, give or take Student's t times the jackknife's standard error over models.
    The null deals what hyperparameters leave unexplained of the gap anew: its p-value is for
    "this measure tells nothing that all hyperparameters together do not".

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> gap = rng.random(36) / 5
    >>> corpus = ModelCorpus(
    ...     models=tuple(f"net {i}" for i in range(36)),
    ...     hyperparameters={"depth": np.tile([2, 4, 6], 12), "norm": np.repeat([True, False], 18)},
    ...     gap=gap,
    ...     measures={"good": gap + rng.normal(size=36) / 50, "poor": rng.random(36)},
    ...     orientation={"good": 1, "poor": 1},
    ... )
    >>> print(judge_measures(corpus).table())
    | measure   | all models |
    |:----------|-----------:|
    | cmi × 100 | n = 36     |
    | good      | **56.06**  |
    | poor      | -0.30      |
    """
    if not isinstance(corpus, ModelCorpus):
        raise InputError(
            f"corpus is a {type(corpus).__name__}: pass a ModelCorpus, which load_corpus reads "
            "from a file or a DataFrame."
        )
    check_level(level)
    chosen = _chosen(corpus, measures)
    corpus, notes = _trained(corpus, least_train_accuracy)
    generator = np.random.default_rng(rng)
    rows: list[Judged] = []
    alarms: list[str] = []
    for task, part in corpus.by_task().items():
        judge = _TaskJudge(task, part, given, permutations, level, generator)
        judge.run(chosen)
        rows += [judge.rows[name] for name in chosen]
        alarms += judge.alarms
        notes += judge.notes
    for text in dict.fromkeys(alarms):
        warnings.warn(text, CurvewiseWarning, stacklevel=2)
    tasks = corpus.task_names
    if len(tasks) > 1:
        by_name = {name: [row for row in rows if row.measure == name] for name in chosen}
        rows += [_average(own, level) for own in by_name.values()]
    return MeasureJudgement(
        rows=tuple(rows),
        measures=tuple(chosen),
        tasks=tasks,
        models=len(corpus),
        level=level,
        permutations=permutations,
        warnings=tuple(dict.fromkeys([*alarms, *notes])),
    )


def _chosen(corpus: ModelCorpus, measures: Sequence[str] | None) -> list[str]:
    if isinstance(measures, str):
        raise InputError(f"measures={measures!r} is one text: give a list of names.")
    chosen = list(corpus.measures if measures is None else dict.fromkeys(measures))
    for name in chosen:
        if name not in corpus.measures:
            raise InputError(
                f"measures holds {name!r}, which is none of {list(corpus.measures)[:20]!r}."
            )
    if not chosen:
        raise InputError("corpus has no measures: add some with corpus.with_measures({…}).")
    return chosen


def _trained(corpus: ModelCorpus, least: float | None) -> tuple[ModelCorpus, list[str]]:
    """The models that are trained well enough."""
    if least is None:
        return corpus, []
    if not 0 <= least <= 1:
        raise InputError(f"least_train_accuracy={least!r}: give a fraction from 0 to 1, like 0.8.")
    if corpus.train_accuracy is None:
        raise InputError(
            f"least_train_accuracy={least!r}: the corpus has no training accuracies to hold it to."
        )
    keep = corpus.train_accuracy >= least
    if not keep.any():
        raise InputError(f"least_train_accuracy={least!r}: no model of {len(corpus)} reaches it.")
    if keep.all():
        return corpus, [f"All {len(corpus)} models reach a training accuracy of {least:.0%}."]
    note = (
        f"{int((~keep).sum())} of {len(corpus)} models left out: training accuracy below "
        f"{least:.0%} or unknown; n = {int(keep.sum())}."
    )
    return corpus.select(keep), [note]


class _TaskJudge:
    """Judges measures on the models of one task, those with the same failures together."""

    def __init__(
        self,
        task: str,
        corpus: ModelCorpus,
        given: int,
        permutations: int,
        level: float,
        rng: np.random.Generator,
    ) -> None:
        self.task, self.corpus = task, corpus
        self.given, self.permutations, self.level, self.rng = given, permutations, level, rng
        self.rows: dict[str, Judged] = {}
        self.alarms: list[str] = []
        self.notes: list[str] = []

    def run(self, names: Sequence[str]) -> None:
        """Judge every measure."""
        lost = ~np.isfinite(self.corpus.gap)
        if lost.any():
            self._say(f"{self._models(lost)} have no gap and are left out.")
        batches: dict[bytes, list[str]] = {}
        for name in names:
            whole = ~lost & np.isfinite(self.corpus.measures[name])
            batches.setdefault(whole.tobytes(), []).append(name)
        for mask, batch in batches.items():
            whole = np.frombuffer(mask, dtype=np.bool_)
            if failed := int((~lost & ~whole).sum()):
                said = ", ".join(map(repr, batch[:5])) + (" …" if len(batch) > 5 else "")
                self._say(
                    f"{self._models(~lost & ~whole)} have no {said}: "
                    f"{'it is' if failed == 1 else 'they are'} left out there."
                )
            self._judge(batch, whole)

    def _judge(self, names: list[str], whole: NDArray[np.bool_]) -> None:
        count = int(whole.sum())
        if count < 2:
            self._say(f"{count} model(s) with {names[0]!r}: it takes two to compare.")
            self.rows |= {
                name: Judged.unknown(name, self.task, count, self.level) for name in names
            }
            return
        part = self.corpus.select(whole)
        settings = varied(part.hyperparameters)
        prepared = prepare(part.gap, settings.codes, self.given)
        dealt, null = shuffled_gaps(part.gap, settings.codes, self.permutations, self.rng)
        for text in (*settings.alarms(), *prepared.alarms()):
            self._say(text)
        if dealt is None:
            self._say("Hyperparameters explain every gap, so that there is no null to test.")
        self.notes += [f"{self.task}: {text}" for text in (*settings.notes(), *prepared.notes())]
        at_once = max(1, AT_ONCE // (count * count))
        for start in range(0, len(names), at_once):
            some = names[start : start + at_once]
            signs = [part.orientation.get(name) for name in some]
            table = np.stack(
                [part.measures[n] * (s or 1) for n, s in zip(some, signs, strict=True)]
            )
            directed = np.array([s is not None for s in signs])
            scored = score_measures(prepared, table, directed, dealt, self.rng)
            told = _pgdl.lowest(_pgdl.pgdl_scores(table, part.gap, part.hyperparameters), len(some))
            others = {
                "pgdl": told,
                "kendall": kendall(table, part.gap),
                "granulated": granulated(table, part.gap, settings.codes),
                "pearson": pearson(table, part.gap),
                "spearman": spearman(table, part.gap),
            }
            self._write(some, scored, others, whole, null)

    def _write(
        self,
        names: list[str],
        scored: Scored,
        others: dict[str, FloatArray],
        whole: NDArray[np.bool_],
        null: str,
    ) -> None:
        for m, name in enumerate(names):
            self.rows[name] = Judged(
                measure=name,
                task=self.task,
                n=int(whole.sum()),
                cmi=scored.interval(m, self.level),
                null_mean=scored.null_mean(m),
                pvalue=scored.pvalue(m),
                null=null,
                directed=bool(scored.directed[m]),
                **{key: float(values[m]) for key, values in others.items()},
                _centre=scored.centre(m),
                _error=scored.error(m),
                _dealt=None if scored.dealt is None else scored.dealt[m],
                _left_out=None if scored.left_out is None else scored.left_out[m],
                _models=tuple(np.flatnonzero(whole).tolist()),
            )

    def _models(self, lost: NDArray[np.bool_]) -> str:
        which = [self.corpus.models[i] for i in np.flatnonzero(lost)[:3]]
        more = " …" if lost.sum() > 3 else ""
        return f"{int(lost.sum())} of {len(lost)} models ({', '.join(map(repr, which))}{more})"

    def _say(self, text: str) -> None:
        self.alarms.append(f"{self.task}: {text}")


def _average(rows: list[Judged], level: float) -> Judged:
    """The mean over the tasks, which are independent of each other."""
    count = len(rows)

    def mean(name: str) -> float:
        return math.fsum(getattr(row, name) for row in rows) / count

    score = math.fsum(row.cmi.estimate for row in rows) / count
    error = math.sqrt(math.fsum(row._error**2 for row in rows)) / count
    half = float(ndtri(0.5 + level / 2)) * error
    directed = rows[0].directed
    known = [row._dealt for row in rows if row._dealt is not None]
    dealt = np.mean(known, axis=0) if len(known) == count else None
    return replace(
        rows[0],
        task=AVERAGE,
        n=sum(row.n for row in rows),
        cmi=clipped(score, mean("_centre") - half, score + half, level, -1.0 if directed else 0.0),
        null_mean=mean("null_mean"),
        pvalue=math.nan if dealt is None else tail(dealt, score),
        pgdl=mean("pgdl"),
        kendall=mean("kendall"),
        granulated=mean("granulated"),
        pearson=mean("pearson"),
        spearman=mean("spearman"),
        _error=error,
        _dealt=dealt,
        _left_out=None,
    )
