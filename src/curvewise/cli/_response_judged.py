"""Corpora of models in, judgements of measures out: what is behind ``curvewise response judge``."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from curvewise.cli._console import Page, note, sentences, warn_each
from curvewise.cli._options import READING
from curvewise.cli._response_options import worded

if TYPE_CHECKING:
    from curvewise.response import MeasureJudgement
    from curvewise.types import ModelCorpus

VALUES = {
    "corrected": ("cmi", "CMI × 100"),
    "pgdl": ("pgdl", "CMI × 100 as in the competition"),
    "kendall": ("kendall", "Kendall's τ"),
    "granulated": ("granulated", "granulated Kendall's τ"),
    "pearson": ("pearson", "Pearson's r"),
    "spearman": ("spearman", "Spearman's ρ"),
}
"""What can be shown: its name in a judgement, and in words."""

SCATTERED = 6
"""Measures that are drawn against the gap."""


@Parameter(name="*", group=READING)
@dataclass
class CorpusReading:
    """How to read a corpus.

    Parameters
    ----------
    gap
        Column with training accuracy minus test accuracy. By default one that is called so, or
        the difference of accuracies or errors.
    hyperparameter
        Column with something that was varied; may be repeated. By default told by names and
        values.
    task
        Column that says to which task a model belongs.
    train_accuracy
        Column of training accuracies.
    unit
        Of gaps, accuracies and errors; by default percent where a column's name says so, else
        fractions.
    predictions
        Folder with further measures in the competition's layout.
    allow_large
        Read a compressed file whatever it unpacks to.
    """

    gap: str | None = None
    hyperparameter: Annotated[list[str] | None, Parameter(negative="", show_default=False)] = None
    task: str | None = None
    train_accuracy: str | None = None
    unit: Literal["fraction", "percent"] | None = None
    predictions: Path | None = None
    allow_large: Annotated[bool, Parameter(negative="", show_default=False)] = False

    def load(self, source: str, signs: dict[str, int | None], shelf: bool) -> ModelCorpus:
        """Read the models; ``signs`` has the measures asked for, and their orientations."""
        from curvewise.io import load_corpus

        # The competition's layout says itself which measures there are.
        laid_out = Path(source).is_dir() or Path(source).suffix == ".json"
        with worded():
            usual = _on_shelf(source) if shelf else {}
            corpus = load_corpus(
                source,
                gap=self.gap,
                hyperparameters=self.hyperparameter or None,
                measures=None if laid_out else list(signs) or None,
                orientation={k: v for k, v in usual.items() if not signs or k in signs},
                task=self.task,
                train_accuracy=self.train_accuracy,
                unit=self.unit,
                predictions=self.predictions,
                allow_large=self.allow_large,
            )
            known = {name: sign for name, sign in signs.items() if sign is not None}
            usual = _usual(corpus) if shelf else {}
            if shelf and not usual:
                note(
                    "--shelf: no column is called as a measure of curvewise response measures, "
                    "so no direction is taken from there"
                )
            told = {
                name: sign for name, sign in {**usual, **known}.items() if name in corpus.measures
            }
            values = {name: corpus.measures[name] for name in told}
            corpus = corpus.with_measures(values, {**corpus.orientation, **told})
        note("; ".join(corpus.notes))
        return corpus


def read_measures(words: Sequence[str]) -> dict[str, int | None]:
    """Measures by name, with 1 or -1 where the direction is told.

    >>> read_measures(["gi:+", "pal:-", "norm"])
    {'gi': 1, 'pal': -1, 'norm': None}
    """
    signs = {":+": 1, ":-": -1}
    return {w.removesuffix(w[-2:]) if w[-2:] in signs else w: signs.get(w[-2:]) for w in words}


def _on_shelf(source: str) -> dict[str, int]:
    """Orientations of a table's columns that are called as measures on the shelf."""
    from curvewise.io.measurements import read_source
    from curvewise.nn.measures import MEASURES

    if Path(source).is_dir() or Path(source).suffix == ".json":
        return {}
    columns = read_source(Path(source)).columns
    return {name: MEASURES[name].orientation for name in columns if name in MEASURES}


def _usual(corpus: ModelCorpus) -> dict[str, int]:
    """Orientations of measures that are called as those on the shelf."""
    from curvewise.nn.measures import MEASURES

    return {name: MEASURES[name].orientation for name in corpus.measures if name in MEASURES}


def show_judgement(page: Page, result: MeasureJudgement, mode: str) -> None:
    """Print how well each measure tells the gap."""
    value, words = VALUES[mode]
    page.document = result.to_dict()
    page.say(sentences(result))
    if page.markup is not None and not page.as_json:
        sys.stdout.write(result.table(page.markup, value=value) + "\n")
    elif len(result.tasks) > 1:
        page.table(f"{words}, by task (models: {_models(result)})", _by_task(result, value), None)
    if page.markup is None:
        whole = "on average over the tasks" if len(result.tasks) > 1 else "of " + result.tasks[0]
        title = (
            f"Measures {whole}, {result.models:,} models (CMI × 100, {result.level:.0%} intervals)"
        )
        page.table(title, _details(result, value), None)
        if any(row.directed for row in result.rows):
            page.say("Correlations are in the direction that a measure is held to.")
        if not all(row.directed for row in result.rows):
            page.say("± is judged in either direction: --measure NAME:+ or NAME:- says which.")
    warn_each(result.all_warnings)


def ordered(result: MeasureJudgement, value: str) -> list[str]:
    """Names of the measures, the best first."""
    scores = {name: result.row(name).value(value) for name in result.measures}
    return sorted(scores, key=lambda name: -scores[name] if scores[name] == scores[name] else 2.0)


def draw_judgement(result: MeasureJudgement) -> Any:
    """Every measure with its interval, the best on top."""
    from curvewise.plot.response_judge import plot_judgement

    return plot_judgement(result)


def draw_scatter(corpus: ModelCorpus, result: MeasureJudgement, least: float | None) -> Any:
    """The best measures against the gap, a panel for each task."""
    from curvewise.plot.response_scatter import plot_measures

    best = ordered(result, "cmi")[:SCATTERED]
    return plot_measures(corpus, best, judgement=result, least_train_accuracy=least)


def _models(result: MeasureJudgement) -> str:
    counts = {t: max(r.n for r in result.rows if r.task == t) for t in result.tasks}
    return ", ".join(f"{task} {count}" for task, count in counts.items())


def _by_task(result: MeasureJudgement, value: str) -> dict[str, list[Any]]:
    names = ordered(result, value)
    columns: dict[str, list[Any]] = {"measure": names}
    for task in result.shown_tasks:
        columns[task] = _shown(value, (result.row(name, task).value(value) for name in names))
    return columns


def _details(result: MeasureJudgement, value: str) -> dict[str, list[Any]]:
    rows = [result.row(name) for name in ordered(result, value)]
    other = (
        "kendall" if value in ("cmi", "pearson") else value
    )  # as many as a terminal has room for
    return {
        "measure": [r.measure if r.directed else f"{r.measure} ±" for r in rows],
        "CMI": _shown("cmi", (r.cmi.estimate for r in rows), 1),
        "low": _shown("cmi", (r.cmi.low for r in rows), 1),
        "high": _shown("cmi", (r.cmi.high for r in rows), 1),
        "null": _shown("cmi", (r.null_mean for r in rows), 1),
        "p": [f"{r.pvalue:.2g}" if r.pvalue == r.pvalue else "–" for r in rows],
        other: _shown(other, (r.value(other) for r in rows)),
        "pearson": _shown("pearson", (r.pearson for r in rows)),
    }


def _shown(value: str, scores: Iterable[float], digits: int = 2) -> list[str]:
    """Information times 100, as the competition has it; correlations as they are."""
    factor = 100 if value in ("cmi", "pgdl") else 1
    return [f"{factor * score:.{digits}f}" if score == score else "–" for score in scores]
