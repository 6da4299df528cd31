"""Evaluations of models through every question that they can answer: scores, ranks, reliability, a plan."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from curvewise.errors import quietly
from curvewise.evals.compare import EvalComparison, compare_evals
from curvewise.evals.evals import Evals
from curvewise.evals.passes import measure_passes
from curvewise.evals.plan import plan_evals
from curvewise.evals.rank import ModelRanking, rank_models
from curvewise.evals.score import score_evals
from curvewise.report.content import Report, ReportTable
from curvewise.report.lenses import attempt
from curvewise.report.results import results_report
from curvewise.types.results import Result

MOST_PAIRS = 28
"""Pairs, those of eight models, up to which all are listed."""
MOST_QUESTIONS = 20
"""Questions that do not tell models apart that are listed, by their ids."""


def evals_report(e: Evals, *, title: str | None = None, question: str | None = None, code: str | None = None) -> Report:
    """Make the report of evaluations: a leaderboard (one model: its score), the two best, reliability and a plan.

    Questions are named by their ids, never by their texts.
    """
    found: dict[str, Result] = {}
    with quietly():
        if len(e.models) == 1:
            found["How well does the model score?"] = score_evals(e)
        else:
            ranking = rank_models(e)
            found["Which model is best?"] = ranking
            first, second = ranking.models[:2]
            comparison = _compare_best(e, ranking)
            found[f"Is {first} better than {second}?"] = comparison
        if e.binary and int(e.samples.min()) > 1:
            passes, _ = attempt(lambda: measure_passes(e, k=_few(int(e.samples.min()))))
            if passes is not None:
                found["How reliable are the models?"] = passes
        if len(e.models) > 1:
            # Where the two best do not differ on any question, nothing can be planned on them.
            plan, _ = attempt(lambda: plan_evals(pilot=comparison))
            if plan is not None:
                found["Which difference do these questions show?"] = plan
    report = results_report(found, title=title or "Evaluation of models", question=question, code=code)
    if len(e.models) == 1:
        return replace(report, warnings=tuple(dict.fromkeys([*e.warnings, *report.warnings])))
    tables = _ranking_tables(ranking)
    sections = (replace(report.sections[0], tables=(*report.sections[0].tables, *tables)), *report.sections[1:])
    return replace(report, sections=sections, warnings=tuple(dict.fromkeys([*e.warnings, *report.warnings])))


def _compare_best(e: Evals, ranking: ModelRanking) -> EvalComparison:
    """Compare the two best models; where the adjustment for all pairs decides otherwise, at the level that it asks."""
    first, second = ranking.models[:2]
    found = compare_evals(e, first, second)
    adjusted = float(ranking.pair_columns()["pvalue_holm"][0])
    if found.pvalue >= 1 - found.level or adjusted < 1 - found.level:
        return found
    level = 1 - (1 - found.level) * found.pvalue / adjusted
    note = (
        f"{first} and {second} are the two best of {len(ranking.models)} models: the verdict on them and its interval"
        f" are at {level:.1%}, which Holm's adjustment for all pairs asks for."
    )
    found = compare_evals(e, first, second, level=level)
    return replace(found, warnings=(*found.warnings, note))


def _few(most: int) -> list[int]:
    """Return 1, 2, 4, 8 and so on up to the last number of samples: more columns do not fit a page."""
    return [*(2**i for i in range(most.bit_length()) if 2**i < most), most]


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
    told = np.flatnonzero(np.isfinite(ranking.discrimination))
    order = told[np.argsort(ranking.discrimination[told], kind="stable")][:MOST_QUESTIONS]
    if len(order) and len(ranking.models) > 3:
        rows = {name: [list(values)[i] for i in order] for name, values in ranking.question_columns().items()}
        tables.append(
            ReportTable("questions", "Questions that tell good models from bad ones least", rows, ranking.unit)
        )
    return tables
