"""``curvewise evals``: show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter

from curvewise.cli.console import (
    READING,
    STDIN,
    Files,
    Flag,
    Numbers,
    Page,
    Showing,
    Texts,
    UsageError,
    Words,
    in_options,
    note_reading,
    table_in_parts,
    usage_panel,
    warn_each,
)
from curvewise.errors import quietly
from curvewise.text import format_count, prefix

if TYPE_CHECKING:
    from curvewise.evals.evals import Evals
    from curvewise.evals.load import EvalsSurvey

evals = App(
    name="evals",
    help="Is this language model or agent better, and on how many questions?\n\n"
    "FILE is an evaluation log, a folder of logs, or a table: .eval or .json of Inspect, samples_*.jsonl of "
    "lm-eval, details_*.parquet of lighteval, runs of HELM, Every Eval Ever records, or CSV, JSON lines or "
    "Parquet with a row for each model, question and sample.",
    error_formatter=usage_panel,
)

OPTIONS = {"models": "model", "paths": ""}
"""Arguments of Python that have an option of another name; files are given without one."""


@Parameter(name="*", group=READING)
@dataclass
class EvalsReading:
    """Options for reading evaluation logs.

    Parameters
    ----------
    metric
        Which score to read, where there are several; for several tasks one for each.
    filter
        Which variant of the score: a filter of lm-eval, a split of HELM.
    missing
        Pairs of model and question without a score: refuse them, count them as wrong, or drop the
        questions that not all models have.
    task
        Only this task; * stands for any letters.
    model
        Only this model, by its name or that of its file, or NAME=MODEL for a new name; * stands
        for any letters. Several logs under one name are trainings with different seeds. May be
        repeated.
    repeats
        Meaning of several logs or rows of the same model and question: further samples, or
        trainings with different seeds.
    range
        Lowest and highest possible score, such as 1,10; by default 0,1.
    higher_is_better
        High scores are good. By default the log or the name of the metric says so.
    column
        Which column of a table has a role, as ROLE=COLUMN: model, question, score, sample, seed,
        group, task, count, metric, filter; ROLE= leaves a role out. May be repeated.
    unfinished
        Read logs that were cancelled or ended with an error, too.
    allow_large
        Read a compressed file whatever it unpacks to.
    """

    metric: Words = field(default_factory=list)
    filter: Annotated[list[str], Parameter(negative="", show_default=False)] = field(default_factory=list)
    missing: Literal["refuse", "wrong", "drop"] = "refuse"
    task: Texts = field(default_factory=list)
    model: Texts = field(default_factory=list)
    repeats: Literal["samples", "seeds"] | None = None
    range: Numbers = field(default_factory=list)
    higher_is_better: Annotated[bool | None, Parameter(negative="--lower-is-better")] = None
    column: Texts = field(default_factory=list)
    unfinished: Flag = False
    allow_large: Flag = False

    def options(self, files: Sequence[str]) -> dict[str, Any]:
        """Return the arguments of :func:`load_evals`."""
        if STDIN in files:
            raise UsageError("Evaluations are read from files and folders, not from stdin.")
        columns: dict[str, str | None] = {}
        for pair in self.column:
            role, equals, name = pair.partition("=")
            if not equals or not role.strip():
                raise UsageError(f"--column {pair!r} must read ROLE=COLUMN, such as question=prompt_no.")
            columns[role.strip()] = name or None
        if self.range and len(self.range) != 2:
            raise UsageError("--range takes the lowest and the highest possible score, such as --range 1,10.")
        return {
            "paths": list(files),
            "metric": self.metric or None,
            "filter": self.filter or None,
            "missing": self.missing,
            "task": self.task or None,
            "models": self._models(),
            "repeats": self.repeats,
            "range": tuple(self.range) or None,
            "higher_is_better": self.higher_is_better,
            "columns": columns or None,
            "unfinished": self.unfinished,
            "allow_large": self.allow_large,
        }

    def _models(self) -> Any:
        """Return names, or new names with what they stand for; a name that stays stands for itself."""
        if not any("=" in text for text in self.model):
            return self.model or None
        found: dict[str, list[str]] = {}
        for text in self.model:
            new, equals, old = text.partition("=")
            found.setdefault(new, []).append(old if equals else new)
        return found

    def load(self, files: Sequence[str]) -> Evals:
        """Read logs, noting on stderr how they were interpreted and what deserves a look."""
        from curvewise.evals.load import load_evals

        with quietly():
            found = load_evals(**self.options(files))
        note_reading([repr(found)[6:-1], *found.notes])
        warn_each(found.warnings)
        return found


@evals.command
def show(files: Files, /, *, reading: EvalsReading | None = None, showing: Showing | None = None) -> int:
    """Show what logs hold: tasks, models, questions, samples, metrics, filters and missing scores.

    Example: `curvewise evals show logs/`

    Example: `curvewise evals show logs/ --metric exact_match --filter strict-match`

    Parameters
    ----------
    files
        Logs, folders of logs, or tables.
    """
    page = (showing or Showing()).page()
    from curvewise.evals.load import survey_evals

    with quietly():
        found = survey_evals(**(reading or EvalsReading()).options(files))
    page.document = found.to_dict()
    note_reading(found.notes)
    _show_table(page, found)
    page.say(in_options(found.sentences() if found.evals else prefix("A choice is needed: ", found.problem)))
    warn_each(found.warnings)
    return page.close()


def _show_table(page: Page, found: EvalsSurvey) -> None:
    """Print a row for each task and the models that are alike on it; with --verbose one for each model."""
    columns: dict[str, list[Any]] = found.columns()
    if not page.verbose and page.markup is None:
        columns["metrics"] = [
            ", ".join(m[:3]) + (f" and {len(m) - 3} more" if len(m) > 3 else "") for m in found.metrics
        ]
    keys = list(zip(*(columns[name] for name in columns if name != "model"), strict=True))
    if not page.verbose and page.markup is None:
        alike: dict[Any, list[str]] = {}
        for key, model in zip(keys, found.model, strict=True):
            alike.setdefault(key, []).append(model)
        names = [
            n[0] if len(n) == 1 else f"{len(n):,} models: {n[0]}, {n[1]}{', …' * (len(n) > 2)}" for n in alike.values()
        ]
        others = [name for name in columns if name != "model"]
        columns = dict(zip(others, map(list, zip(*alike, strict=True)), strict=True))
        columns = {"task": columns.pop("task"), "model": names, **columns}
    if page.markup is None:  # tasks, filters and missing scores are columns only where there are some
        columns = {name: cells for name, cells in columns.items() if any(cells)}
    title = f"{format_count(len(set(found.model)), 'model')}, {format_count(len(set(found.task)), 'task')}"
    table_in_parts(page, title, columns)
