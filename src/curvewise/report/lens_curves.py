"""Learning curves of a study, and which learner is best by them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from curvewise.errors import CurvewiseError
from curvewise.report.content import Section, Table
from curvewise.report.looking import Looking, attempted, drawn, named, quietly
from curvewise.report.results import section_of, sentences
from curvewise.tables import number

if TYPE_CHECKING:
    from curvewise.learning.base import Curve
    from curvewise.types import Measurements

FEWEST_SIZES = 3
MOST_TOLD = 12
"""Curves that are told one by one; the table has all."""


def look_at_curves(looking: Looking) -> None:
    """Learning curves of the learners with enough sizes, and which learner is best."""
    from curvewise.learning import fit_learning_curves

    assert looking.runs is not None
    means = looking.runs.subset_means()
    kept = _chosen(means, np.isfinite(means.error))
    sizes: dict[str, set[float]] = {}
    for learner, n in zip(kept.learner.tolist(), kept.n.tolist(), strict=True):
        sizes.setdefault(learner, set()).add(n)
    curved = [k for k, found in sizes.items() if len(found) >= FEWEST_SIZES]
    if not curved:
        return
    left = {k: len(sizes.get(k, ())) for k in looking.runs.learners if k not in curved}
    looking.left_out += [*_without_curve(left), *_ahead(looking, left)]
    title = f"How does the {looking.word} fall with data?"
    try:
        with quietly():
            curves = fit_learning_curves(
                _chosen(kept, np.isin(kept.learner, curved)), form=looking.form
            )
    except CurvewiseError as error:
        looking.sections.append(Section(title, (f"No curves of form {looking.form}: {error}",)))
        return
    looking.found["curves"] = curves
    points, table = _points(looking.runs), f"{looking.word.capitalize()} e_N and data-reliance β_N"
    found, notes = attempted(
        lambda: drawn(section_of(curves, title, runs=points), "curves", table),
        f"picture of curves of form {looking.form}",
    )
    every = list(curves)
    told = [sentences(c) for c in every[:MOST_TOLD]]
    if len(every) > MOST_TOLD:
        told.append(f"The table has the other {len(every) - MOST_TOLD} learners.")
    looking.sections.append(
        replace(
            found or Section(title),
            text=(*_before_curves(looking), *told, *_unfitted(curves.failures), *notes),
            warnings=tuple(w for c in every for w in named(c.all_warnings, c.learner)),
        )
    )
    _best(looking, every)


def _before_curves(looking: Looking) -> list[str]:
    """What the curves leave out and what they count as a run."""
    runs = looking.runs
    assert runs is not None
    text = list(looking.left_out)
    if lost := int((~np.isfinite(runs.error)).sum()):
        text.append(f"{_counted(lost, 'failed run')} left out of the curves.")
    if runs.shared_subsets:
        text.append(
            "What the fits count as a run is the mean over the seeds of one training subset, "
            "because runs on the same examples are not independent: they count fewer than the "
            f"table of {'losses' if looking.word == 'loss' else 'errors'}."
        )
    return text


def _without_curve(sizes: Mapping[str, int]) -> list[str]:
    """Name the learners without a curve, and why they have none.

    >>> _without_curve({"net": 2, "tree": 1})
    ['There is no curve of net (runs at 2 sizes) or tree (runs at 1 size): one takes 3 sizes.']
    """
    if not sizes:
        return []
    why = {0: "no run that ended well", 1: "runs at 1 size"}
    every = [f"{k} ({why.get(many, f'runs at {many} sizes')})" for k, many in sizes.items()]
    named_ones = every[:MOST_TOLD]
    if len(every) > MOST_TOLD:
        named_ones.append(f"{len(every) - MOST_TOLD} more, which the table of errors has")
    said = " or ".join(filter(None, [", ".join(named_ones[:-1]), named_ones[-1]]))
    return [f"There is no curve of {said}: one takes {FEWEST_SIZES} sizes."]


def _ahead(looking: Looking, left: Iterable[str]) -> list[str]:
    """Say so if a learner without a curve has the lowest mean at the largest size."""
    columns = looking.found["errors"]
    rows = zip(columns["n"], columns[looking.word], columns["learner"], strict=True)
    known = [row for row in rows if row[1] is not None]
    n, value, learner = min(known, key=lambda row: (-row[0], row[1]))
    if learner not in left:
        return []
    return [f"Yet {learner} has the lowest mean {looking.word} at n = {n:,}: {number(value)}."]


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what} is" if count == 1 else f"{count:,} {what}s are"


def _unfitted(failures: Mapping[str, str]) -> list[str]:
    return [f"{name} could not be fitted: {why}" for name, why in failures.items()]


def _best(looking: Looking, curves: Sequence[Curve]) -> None:
    """Compare two learners by their curves, or order more of them."""
    from curvewise.learning import compare_learning_curves, rank_learners
    from curvewise.study.reading import mixed_losses

    if len(curves) < 2:
        return
    title = "Which learner is better?" if len(curves) == 2 else "Which learner is best?"
    if mixed_losses(looking.study):
        text = "The curves are not compared: the learners are judged by different losses."
        looking.sections.append(Section(title, (text,)))
        return
    two = len(curves) == 2
    name, what = ("comparison", "comparison of") if two else ("ranking", "ranking by")

    def compared() -> Section:
        result = compare_learning_curves(*curves) if two else rank_learners(curves)
        section = drawn(section_of(result, title), name, "Differences with their intervals")
        looking.found[name] = result
        return section if two else replace(section, tables=(_ranking_table(result),))

    found, notes = attempted(compared, f"{what} curves of form {looking.form}")
    looking.sections.append(found or Section(title, tuple(notes)))


def _ranking_table(ranking: Any) -> Table:
    columns = {k: list(v) for k, v in ranking.columns().items()}
    columns["chance best"] = [f"{p:.0%}" for p in columns.pop("probability_best")]
    what = f"{ranking.level:.0%} {ranking.kind} intervals"
    return Table("ranking", f"Ranking at n = {ranking.at:,.0f} ({what})", columns)


def _points(runs: Measurements) -> Measurements:
    """The runs as points of a picture, with what tells them apart."""
    labels = {"fold": runs.labels["fold"], "seed": runs.labels["init_seed"]}
    return replace(runs, labels=labels)


def _chosen(m: Measurements, rows: Any) -> Measurements:
    return replace(
        m,
        learner=m.learner[rows],
        n=m.n[rows],
        error=m.error[rows],
        labels={k: v[rows] for k, v in m.labels.items()},
    )
