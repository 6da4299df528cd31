"""A section for any result, and reports of results and of evaluations of models."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from curvewise.errors import CurvewiseError, InputError, quietly
from curvewise.report.charts import figures_of
from curvewise.report.content import Report, ReportTable, Reproduce, Section, split_sentences
from curvewise.text import format_count, format_level
from curvewise.types.measurements import Measurements
from curvewise.types.results import Result

if TYPE_CHECKING:
    from curvewise.evals.compare import EvalComparison
    from curvewise.evals.evals import Evals
    from curvewise.evals.rank import ModelRanking

Made = TypeVar("Made")

SETTINGS = (
    *("form", "weights", "weight", "interval", "kind", "level", "seeds", "paired", "mode"),
    *("perturbation", "layer", "by", "loss", "per", "average", "rule", "method"),
)
"""Fields of results that say how something was computed."""

SETTING_WORDS = {"paired": "runs are paired:", "seeds": "seeds of one subset:", "by": "ranked by", "per": "for each"}
"""Settings whose names do not say what they are."""

FEW = 3
"""Sentences of the answer on the first screen."""

MOST_PAIRS = 28
"""Pairs of models, those of eight, up to which all are listed."""

MOST_QUESTIONS = 20
"""Questions that do not tell models apart that are listed, by their ids."""


def results_report(
    results: Result | Sequence[Result] | Mapping[str, Result],
    *,
    title: str | None = None,
    question: str | None = None,
    code: str | None = None,
) -> Report:
    """Make the report of results: the first of them is the answer.

    Parameters
    ----------
    results : Result, or sequence or dict of them
        The keys of a dict are titles of sections.
    title, question : str, optional
        Of the report; by default what the first result's lens asks.
    code : str, optional
        Text of the script that made the results and the report.
    """
    if isinstance(results, Mapping):
        named: list[tuple[str | None, Any]] = [(str(k), v) for k, v in results.items()]
    else:
        several = isinstance(results, Sequence) and not isinstance(results, str | Result)
        every: Any = results if several else [results]
        named = [(None, v) for v in every]
    if not named:
        raise InputError("is empty: give at least one.", argument="results")
    for _, one in named:
        if not isinstance(one, Result):
            raise InputError(f"holds {one!r:.60}: give what an analysis returned.", argument="results")
    sections = tuple(section_of(result, name) for name, result in named)
    first = named[0][1]
    return Report(
        title=title or "curvewise report",
        question=question or question_of(first),
        answer=(*no_interval(first), *verdict_on_transfer(first), *first_sentences(first.sentences())),
        figure=next((f for s in sections for f in s.figures), None),
        warnings=tuple(dict.fromkeys(w for s in sections for w in s.warnings)),
        sections=sections,
        reproduce=_script(code),
    )


def attempt(act: Callable[[], Made]) -> tuple[Made | None, str]:
    """Do what not every source allows; return its result, or None and the reason."""
    try:
        with quietly():
            return act(), ""
    except CurvewiseError as error:
        return None, str(error)


def evals_report(e: Evals, *, title: str | None = None, question: str | None = None, code: str | None = None) -> Report:
    """Make the report of evaluations: a leaderboard (one model: its score), the two best, reliability and a plan.

    Questions are named by their ids, never by their texts.
    """
    # Imported only now, as lenses are.
    from curvewise.evals.plan import plan_evals
    from curvewise.evals.rank import rank_models
    from curvewise.evals.score import measure_passes, score_evals

    found: dict[str, Result] = {}
    tables: list[ReportTable] = []
    several, samples = len(e.models) > 1, int(e.samples.min())
    with quietly():
        if several:
            ranking = rank_models(e)
            found["Which model is best?"] = ranking
            tables = _ranking_tables(ranking)
            comparison = _compare_best(e, ranking)
            found[f"Is {ranking.models[0]} better than {ranking.models[1]}?"] = comparison
        else:
            found["How well does the model score?"] = score_evals(e)
        if e.binary and samples > 1:
            # 1, 2, 4, 8 and so on up to the number of samples: more columns do not fit a page.
            few = [*(2**i for i in range(samples.bit_length()) if 2**i < samples), samples]
            if (passes := attempt(lambda: measure_passes(e, k=few))[0]) is not None:
                found["How reliable are the models?"] = passes
        # Where the two best do not differ on any question, nothing can be planned on them.
        if several and (plan := attempt(lambda: plan_evals(pilot=comparison))[0]) is not None:
            found["Which difference do these questions show?"] = plan
    report = results_report(found, title=title or "Evaluation of models", question=question, code=code)
    first, *others = report.sections
    sections = (replace(first, tables=(*first.tables, *tables)), *others)
    return replace(report, sections=sections, warnings=tuple(dict.fromkeys([*e.warnings, *report.warnings])))


def _compare_best(e: Evals, ranking: ModelRanking) -> EvalComparison:
    """Compare the two best models; where the adjustment for all pairs decides otherwise, at the level that it asks."""
    from curvewise.evals.compare import compare_evals

    first, second = ranking.models[:2]
    found = compare_evals(e, first, second)
    adjusted = float(ranking.pair_columns()["pvalue_holm"][0])
    if found.pvalue >= 1 - found.level or adjusted < 1 - found.level:
        return found
    level = 1 - (1 - found.level) * found.pvalue / adjusted
    note = (
        f"{first} and {second} are the two best of {len(ranking.models)} models: the verdict on them and its interval"
        f" are at {format_level(level)}, which Holm's adjustment for all pairs asks for."
    )
    found = compare_evals(e, first, second, level=level)
    return replace(found, warnings=(*found.warnings, note))


def _ranking_tables(ranking: ModelRanking) -> list[ReportTable]:
    """Make the tables of all pairs, and of the questions that tell good models from bad ones least."""
    pairs = {name: values.tolist() for name, values in ranking.pair_columns().items()}
    title = "Differences of all pairs"
    if len(pairs["a"]) > MOST_PAIRS:
        place = {name: i for i, name in enumerate(ranking.models)}
        near = [i for i, (a, b) in enumerate(zip(pairs["a"], pairs["b"], strict=True)) if place[b] - place[a] == 1]
        pairs = {name: [values[i] for i in near] for name, values in pairs.items()}
        title = "Differences of neighbours, with p-values adjusted for all pairs"
    tables = [ReportTable("pairs", title, pairs, ranking.unit)]
    known = np.flatnonzero(np.isfinite(ranking.discrimination))
    order = known[np.argsort(ranking.discrimination[known], kind="stable")][:MOST_QUESTIONS]
    if len(order) and len(ranking.models) > 3:
        rows = {name: [list(values)[i] for i in order] for name, values in ranking.question_columns().items()}
        tables.append(
            ReportTable("questions", "Questions that tell good models from bad ones least", rows, ranking.unit)
        )
    return tables


def no_interval(result: Result) -> tuple[str, ...]:
    """Say why learning curves have no interval and what to do about it; nothing where they have one."""
    curves: list[Any] = []
    if lens_of(result) == "learning":
        from curvewise.learning.curve import Curve
        from curvewise.learning.fit import LearningCurves

        curves = [*result] if isinstance(result, LearningCurves) else [result] if isinstance(result, Curve) else []
    if not curves or any(c._data.replicated for c in curves):
        return ()
    return ("One run per size: the spread between runs is unknown. Train at least two models per size.",)


def verdict_on_transfer(result: Result) -> tuple[str, ...]:
    """Answer whether pretraining is better than training from scratch; nothing for other results."""
    if type(result).__name__ != "TransferResult":
        return ()
    rows = [r for r in result.improvements if not math.isnan(r.pvalue)]  # type: ignore[attr-defined]
    if not rows:
        return ()
    scratch = result.scratch  # type: ignore[attr-defined]
    tried = Counter(r.method for r in rows)
    better = Counter(r.method for r in rows if r.significant and r.cci.estimate > 0)
    if not better:
        return (f"No method is significantly better than {scratch}.",)
    if len(better) > FEW:
        few = f"{len(better)} of {len(tried)} methods are significantly better than {scratch} on at least one task"
        return (f"Yes: {few}.",)
    named = [f"{name} on {count} of {format_count(tried[name], 'task')}" for name, count in better.most_common()]
    alone = len({r.task for r in rows}) == 1
    return (f"Yes: significantly better than {scratch}: {', '.join(better if alone else named)}.",)


def _script(code: str | None) -> Reproduce:
    """Say how to make a report of results again: the script, if it was given, and what it ran on."""
    from importlib.metadata import PackageNotFoundError, version
    from platform import python_version

    from curvewise import __version__

    packages = []
    for name in ("numpy", "scipy", "scikit-learn", "torch"):
        with suppress(PackageNotFoundError):
            packages.append(f"{name} {version(name)}")
    facts = {"Made with": f"curvewise {__version__}", "Python": python_version(), "Packages": ", ".join(packages)}
    if code is None:
        steps = "This report was written from Python: run the script or notebook again that calls cw.write_report."
        return Reproduce(steps, facts=facts)
    steps = "Save the script below and run it where its data are."
    return Reproduce(steps, "python report.py", code, "report.py", facts)


def section_of(
    result: Result, title: str | None = None, runs: Measurements | None = None, *, alive: bool = True
) -> Section:
    """Make the section of one result: sentences, picture (for a browser alive), table and method.

    Parameters
    ----------
    result : Result
        Of any lens.
    title : str, optional
        By default what its lens asks.
    runs : Measurements, optional
        Of learning curves: the points of the chart, with fold and seed.
    alive : bool
        Give the chart that a browser can play with, too.
    """
    from curvewise.drawing.picture import picture_of

    lens = lens_of(result)
    name = file_name(title or type(result).__name__) or "result"
    heading = title or question_of(result)
    warnings = result.all_warnings
    if lens == "learning":  # imported only now, so that a page on other results does not load this lens
        from curvewise.learning.fit import LearningCurves

        if isinstance(result, LearningCurves):
            # Each one's, not the first and how many there are.
            warnings = tuple(dict.fromkeys([*result.general_warnings, *result.curve_warnings]))
    figures = figures_of(result, name, heading, runs, alive=alive) if picture_of(type(result)) else ()
    columns = {k: list(v) for k, v in result.display_columns().items()}
    table = ReportTable(name, result.table_note() or "Estimates", columns, written=result.readable())
    values = {f.name: getattr(result, f.name) for f in fields(result) if f.name in SETTINGS}  # type: ignore[arg-type]
    values = {k: v for k, v in values.items() if not isinstance(v, tuple)}  # a number for each model is no setting
    if isinstance(values.get("level"), float):
        values["level"] = format_level(values["level"])
    return Section(
        title=heading,
        text=(result.sentences(),),
        warnings=warnings,
        figures=figures,
        tables=(table,) if len(table) else (),
        method=method_of(result),
        settings={
            SETTING_WORDS.get(k, k): {True: "yes", False: "no"}[v] if isinstance(v, bool) else str(v)
            for k, v in values.items()
            if v is not None
        },
    )


def first_sentences(text: str, few: int = FEW) -> tuple[str, ...]:
    """Return the first sentences of a text.

    >>> first_sentences("A is 1.5 [1, 2]. B is 2. C. D. E.", 2)
    ('A is 1.5 [1, 2].', 'B is 2.')
    >>> first_sentences("digits: A is best. letters: B is.", 1)
    ('digits: A is best.', 'letters: B is.')
    """
    # Sentences on several tasks, each of which begins with the task's name in lower case, count as one.
    parts = re.split(r"(?<=[.?!])\s+(?=[^a-z])", text.strip())
    kept = parts if len(parts) == few + 1 else parts[:few]  # a single sentence is not left for later
    return tuple(line for part in kept for line in split_sentences(part))


def file_name(label: str) -> str:
    """Turn a label into part of the name of a file.

    >>> file_name("net, rate=0.1/2")
    'net-rate-0.1-2'
    """
    return re.sub(r"[^A-Za-z0-9_.]+", "-", label).strip("-.")[:80]


QUESTIONS = {
    "learning": "How does error fall with data?",
    "variance": "How much do runs differ, and how much of it is real?",
    "response": "How does accuracy fall when the input is perturbed?",
    "transfer": "Does pretraining beat simple controls?",
    "ranking": "Which checkpoint should be fine-tuned?",
    "evals": "Which model is better, and on how many questions?",
    "scaling": "How large a model on how much data for this compute?",
    "study": "How far is the study?",
}

KINDS = {
    "LearnerRanking": "Which learner is best?",
    "LearnerComparison": "Which learner is better?",
    "CurveComparison": "Which learner is better?",
    "SamplesToReach": "How many samples does the target take?",
    "RunComparison": "Which training is better?",
    "TrainingComparison": "Which training is best?",
    "VarianceComparison": "Which training varies more between runs?",
    "SeedLuck": "Are lucky runs also better on other data?",
    "TestSetComparison": "Do runs differ more on other data?",
    "SourceShares": "What makes runs differ?",
    "TwinDisagreement": "How far do twins grow apart?",
    "Calibration": "Are the predicted probabilities calibrated?",
    "Disagreement": "How often do runs disagree?",
    "Ensemble": "What does an ensemble of the runs gain?",
    "RunPlan": "How many runs are needed?",
    "ResponseComparison": "Which network is more robust?",
    "MeasureJudgement": "Which measure predicts generalization?",
    "MeasureComparison": "Which measure predicts generalization better?",
    "TransferComparison": "Which method transfers better?",
    "ScalingLaw": "How does loss fall with parameters and data?",
    "Backtest": "Does the law predict the largest runs?",
    "Sensitivity": "Does the answer depend on which runs are fitted?",
    "ScalingPlan": "Which runs should be trained next?",
    "ScalingComparison": "Which family of models needs less compute?",
    "DownstreamPrediction": "What accuracy will a larger model reach?",
    "ExpectedBest": "What does tuning bring?",
    "TunedComparison": "Which learner is better for the same tuning?",
    "RankingJudgement": "Which measure ranks checkpoints best?",
    "RankingAgreement": "How well does the measure rank checkpoints?",
    "RankingComparisons": "Which measure ranks checkpoints better?",
    "ModelScores": "How well do the models score?",
    "ModelRanking": "Which model is best?",
    "EvalComparison": "Which of the two models is better?",
    "PassCurve": "How reliable are the models?",
    "EvalPlan": "How many questions are needed?",
    "LookPlan": "When may the evaluation stop?",
    "LookCheck": "May the evaluation stop?",
    "JudgeCorrection": "How well do the models score, corrected by human labels?",
}
"""Questions that results answer, where that is not the question of its lens."""


def question_of(result: Result) -> str:
    """Return what a result answers."""
    kind = type(result).__name__
    return KINDS.get(kind, QUESTIONS.get(lens_of(result), kind))


METHODS = {
    "learning": (
        "Learning curves: the extended power law e(n) = α + ηn^γ is fitted to the runs by weighted least squares "
        "with a prior on γ (Hoiem et al. 2021). Confidence intervals come from the profile likelihood and "
        "assume that form; prediction intervals were calibrated on real learning curves.",
    ),
    "variance": (
        "Variance between runs: it is divided into what independent errors on a finite test set would give, "
        "and the rest, which would be seen on new data too (Jordan 2023).",
    ),
    "response": (
        "Response to perturbations: the examples are perturbed with growing magnitude. The Gi-score summarizes "
        "the loss of accuracy from 0 (none) to 1; the Pal-score compares high with low magnitudes "
        "(Schiff et al. 2021).",
    ),
    "transfer": (
        "Transfer: risks are put on the scale between maximal supervision (0) and a blind guess (1). The "
        "area between a method and training from scratch, weighted by what scratch learns, is the calibrated "
        "cumulative improvement, CCI (Atanov et al. 2022). Intervals are over runs.",
    ),
    "ranking": (
        "Ranking of checkpoints: features of labelled examples are scored without any training "
        "(Li et al. 2021). Intervals of ranks come from scoring random parts of the examples again.",
    ),
    "evals": (
        "Evaluations: questions are a sample of their kind, and models are compared question by question. One right or "
        "wrong answer to each has Wilson's interval, and two models are compared by McNemar's exact test; several "
        "samples, graded scores and groups of questions by t, groups with CR2 variances. pass@k and pass^k are "
        "unbiased. All pairs of a ranking are adjusted by Holm's method.",
    ),
    "scaling": (
        "Scaling laws: loss is fitted as a function of parameters N and tokens D, by default E + A/N^α + B/D^β with "
        "Huber's function of log residuals (Hoffmann et al. 2022). Confidence intervals are profile intervals and "
        "assume that form; prediction bands were calibrated on published runs whose largest were held out.",
    ),
}

TUNING_METHOD = (
    "Tuning: the expected best of k trials of a random search is the mean of the best over all subsets of k trials "
    "(Dodge et al. 2019). Intervals come from drawing the ranks of the scores.",
)
"""Method of results on searches for hyperparameters."""


ENSEMBLE_METHOD = (
    "Learning curves: power laws and other forms (Morgan-Mercer-Flodin, M4, a power law with one break, the last "
    "measured value) are fitted to the runs and averaged, weighted by how well each predicted the later sizes from the "
    "earlier ones. Prediction intervals were calibrated on real learning curves.",
)
"""Method of learning curves of form "auto"."""


def method_of(result: Result) -> tuple[str, ...]:
    """Describe how a result was computed; curves of form "auto" are no power laws."""
    lens = lens_of(result)
    if lens == "learning":
        from curvewise.learning.fit import LearningCurves

        curves: Any = result if isinstance(result, LearningCurves) else getattr(result, "_curves", (result,))
        if any(getattr(curve, "form", None) == "auto" for curve in curves):
            return ENSEMBLE_METHOD
    if type(result).__name__ in ("ExpectedBest", "TunedComparison"):
        return TUNING_METHOD
    return METHODS.get(lens, ())


def lens_of(result: Result) -> str:
    """Return the lens that made a result: the folder of its class.

    >>> from curvewise.learning import LearningCurves
    >>> lens_of(LearningCurves.__new__(LearningCurves))
    'learning'
    """
    parts = type(result).__module__.split(".")
    return parts[1] if len(parts) > 1 and parts[0] == "curvewise" else ""
