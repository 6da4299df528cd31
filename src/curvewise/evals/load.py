"""Read evaluation logs of language models and agents, aligned by question."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Number
from typing import Any, Literal, TypedDict, Unpack

import numpy as np

from curvewise.errors import InputError, Message, suggest, warn_all
from curvewise.evals.evals import Evals
from curvewise.evals.logs.align import align, align_questions
from curvewise.evals.logs.block import LogOptions
from curvewise.evals.logs.choice import EvalChoice, Selection, code_of, select_blocks, used
from curvewise.evals.logs.collect import collect
from curvewise.reading.roles import ColumnMap, column_map
from curvewise.reading.table import large_files
from curvewise.types.results import Result

Missing = Literal["refuse", "wrong", "drop"]
Repeats = Literal["samples", "seeds"]


def load_evals(
    paths: Any,
    metric: str | Sequence[str] | None = None,
    filter: str | Sequence[str] | None = None,
    missing: Missing = "refuse",
    *,
    task: str | Sequence[str] | None = None,
    models: str | Sequence[str] | Mapping[str, str | Sequence[str]] | None = None,
    repeats: Repeats | None = None,
    range: tuple[float, float] | None = None,
    higher_is_better: bool | None = None,
    **reading: Unpack[LogReading],
) -> Evals:
    """Read scores of models on questions out of evaluation logs or tables.

    Questions are aligned by their ids, whatever the order of files and rows. Where two readings are possible, as with
    two metrics, two filters or the same model twice, it is an error that says how to choose. ``notes`` and
    ``warnings`` of the result record how the logs were interpreted. Transcripts and texts of questions are not kept.

    Parameters
    ----------
    paths : path, list of paths, DataFrame, dict or list of records
        A file, a folder, a pattern such as ``logs/*.eval``, or a list of these; or a dict that names the model of
        each, ``{"new": "logs/a", "old": "logs/b.csv"}`` or ``{"new": frame, "old": another}``. The formats are

        - Inspect ``.eval`` and ``.json``; epochs are samples;
        - lm-eval-harness ``samples_*.jsonl``; the ``results_*.json`` of the same date beside it names the model,
          else the folder does: ``org__name`` is org/name;
        - lighteval ``details_*.parquet``, HELM ``per_instance_stats.json`` with ``run_spec.json``, OpenCompass
          ``details``, Every Eval Ever records, tau2-bench simulations;
        - JSON that maps question ids to lists of marks (CRUXEval) or to counts;
        - CSV, TSV, JSON, JSON lines, Parquet, and any DataFrame, with a row for each sample: model, question, score,
          and perhaps sample, seed, group, task, metric, filter and count (see Notes).

        A file that names no model is one model, called by the name of the file.
    metric : str or sequence of str, optional
        Which score to read, where there are several; for several tasks one name for each. In a table the name of a
        column.
    filter : str or sequence of str, optional
        Which variant of the score: a filter of lm-eval, a split of HELM.
    missing : {"refuse", "wrong", "drop"}
        Treatment of pairs of model and question without a score, and of samples without one: an error; the worst
        possible score; or leave the sample out, and the question where a model is left with no sample of it.
    task : str or sequence of str, optional
        Only these tasks; ``*`` stands for any letters.
    models : str, sequence of str or dict, optional
        Only these models, by the name in the log, else the name of the file; ``*`` stands for any letters. A dict gives
        new names: ``{"base": "base-seed*"}``. Several logs under one new name are trainings of that model with
        different seeds, unless ``repeats`` says otherwise.
    repeats : {"samples", "seeds"}, optional
        Meaning of several logs, or rows, of the same model and question: further samples of the one model, or
        trainings of it with different seeds. By default they are an error.
    range : tuple of float, optional
        Lowest and highest possible score. By default (0, 1), or what the log says; needed for scores beyond that,
        such as those of a judge from 1 to 10.
    higher_is_better : bool, optional
        By default the log says so, or the name of the metric; True where neither does.
    columns : dict, optional
        Which column of a table has a role: ``{"question": "prompt_no", "score": "preference"}``.
        ``{"group": "subject"}`` also names a field of the questions in the logs of tools: of the metadata in Inspect
        and Every Eval Ever, of the document in lm-eval.
    wide : {"models"}, optional
        A table with a row for each question and a column for each model, called by it.
    unfinished : bool
        Read logs that were cancelled or ended with an error, too.
    allow_large : bool
        Read a compressed file even if it unpacks to more than 256 MiB of text or 1 GiB of arrays.

    Returns
    -------
    Evals
        Models and questions in natural order.

    Warns
    -----
    CurvewiseWarning
        If logs are left out, if task versions or prompts differ between models, or if names of models differ only by
        a date.

    Raises
    ------
    InputError
        If a file cannot be read, or could be read in two ways.
    MissingDependencyError
        For Parquet, or a ``.eval`` file with zstd, without the package that reads it.

    Notes
    -----
    C, I, P and N are 1, 0, ½ and 0; true and false are 1 and 0. In a table, ``doc_id`` and ``sample_id`` are the
    question, ``epoch`` and ``trial`` the sample, ``training_seed`` the seed of a training; several values of
    ``seed`` are asked about, because they may also be those of samples. With a column ``count``, the score is the
    number of right answers among so many samples (if it is 0 or 1 in all rows, name the column: ``columns={"count":
    "attempts"}``); a cell of the score may also hold a list of marks. An id that reads like a sentence is replaced by a
    short hash.

    AlpacaEval's preferences, from 1 (the baseline's answer) to 2 (the model's), are read with
    ``load_evals("preferences.csv", metric="preference", range=(1, 2))``; its win rate is 100 · (score − 1).

    Examples
    --------
    >>> rows = {"model": ["a", "a", "b", "b"], "question": ["q2", "q1", "q1", "q2"], "score": [1, 0, 1, 1]}
    >>> e = load_evals(rows)
    >>> e
    Evals(2 models × 2 questions × 1 sample)
    >>> e.scores[:, :, 0].tolist()
    [[0.0, 1.0], [1.0, 1.0]]
    """
    found = _read_logs(
        paths,
        metric=metric,
        filter=filter,
        missing=missing,
        task=task,
        models=models,
        repeats=repeats,
        range=range,
        higher_is_better=higher_is_better,
        **reading,
    )
    evals = align(*found)
    warn_all(evals.warnings)
    return evals


def as_evals(e: Any, argument: str = "e") -> Evals:
    """Return evaluations as they are, and read whatever else :func:`load_evals` reads."""
    if isinstance(e, Evals):
        return e
    if e is None or isinstance(e, Result | Number | bytes):
        raise InputError(
            f"is of type {type(e).__name__}, which holds no scores of questions.",
            argument=argument,
            remedy="Pass Evals, or what load_evals reads: a path, a list of paths, a DataFrame, a dict or records.",
        )
    return load_evals(e)


class LogReading(TypedDict, total=False):
    """Keywords of :func:`load_evals` that say how files and tables are read."""

    columns: ColumnMap | None
    wide: Literal["models"] | None
    unfinished: bool
    allow_large: bool


class SurveyOptions(LogReading, total=False):
    """Keywords of :func:`survey_evals`."""

    task: str | Sequence[str] | None
    models: str | Sequence[str] | Mapping[str, str | Sequence[str]] | None
    repeats: Repeats | None
    range: tuple[float, float] | None
    higher_is_better: bool | None


def _read_logs(
    paths: Any,
    columns: ColumnMap | None = None,
    wide: str | None = None,
    unfinished: bool = False,
    allow_large: bool = False,
    **choice: Any,
) -> tuple[Selection, EvalChoice]:
    """Read the logs, and select the models and tasks that the user chose."""
    check_keywords("load_evals", choice, EvalChoice.__dataclass_fields__)
    chosen = EvalChoice.of(**choice)
    if wide not in (None, "models"):
        raise InputError("is not known: use 'models'.", argument="wide", value=wide)
    with large_files(allow_large):
        found = collect(paths, LogOptions(column_map(columns), chosen.metric, unfinished, wide == "models"))
    return select_blocks(found, chosen), chosen


def check_keywords(function: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Refuse keywords that a function does not know, with the nearest one that it does."""
    if unknown := sorted({*given} - {*known}):
        nearest = suggest(unknown[0], known)
        raise TypeError(f"{function}() got an unexpected keyword argument {unknown[0]!r}.{nearest}")


@dataclass(frozen=True, repr=False)
class EvalsSurvey(Result):
    """Contents of logs, a row for each task and model: the result of :func:`survey_evals`.

    Attributes
    ----------
    task, model : tuple of str
        An empty task where the logs name none.
    questions, samples, missing : tuple of int
        Questions with a score, the largest number of samples of one, and questions of the task that
        other models have and this one has not.
    metrics, filters : tuple of tuple of str
        Those to choose from.
    evals : Evals or None
        What :func:`load_evals` returns.
    problem : str
        Why it returns nothing, and what to do.
    notes, warnings : tuple of str
        How the logs were interpreted, and what deserves a look.
    """

    task: tuple[str, ...]
    model: tuple[str, ...]
    questions: tuple[int, ...]
    samples: tuple[int, ...]
    missing: tuple[int, ...]
    metrics: tuple[tuple[str, ...], ...]
    filters: tuple[tuple[str, ...], ...]
    problem: str = ""
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    evals: Evals | None = None

    def columns(self) -> dict[str, list[Any]]:
        """Return a row for each task and model."""
        table: dict[str, list[Any]] = {"task": list(self.task), "model": list(self.model)}
        table |= {name: list(getattr(self, name)) for name in ("questions", "samples", "missing")}
        return table | {name: [", ".join(v) for v in getattr(self, name)] for name in ("metrics", "filters")}

    def sentences(self) -> str:
        """Return the size of what is read, or why it cannot be read."""
        if self.evals is None:
            return self.problem
        return f"{repr(self.evals)[6:-1]}, of the metric {self.evals.metric}."

    def to_dict(self) -> dict[str, Any]:
        """Return all but the scores as plain values."""
        found = replace(self, evals=None)
        shape = None
        if self.evals is not None:
            shape = dict(zip(("models", "questions", "samples"), self.evals.shape, strict=True))
        return super(EvalsSurvey, found).to_dict() | {"evals": shape, "summary": self.summary()}


def survey_evals(
    paths: Any,
    metric: str | Sequence[str] | None = None,
    filter: str | Sequence[str] | None = None,
    missing: Missing = "refuse",
    **options: Unpack[SurveyOptions],
) -> EvalsSurvey:
    """Look at what logs hold: tasks, models, questions, samples, metrics and filters to choose from, missing cells.

    Parameters, also those in ``options``, are those of :func:`load_evals`. Where that raises an error because something
    has to be chosen, the error is in ``problem`` of the result.

    Examples
    --------
    >>> rows = [{"model": "a", "question": "q1", "f1": 0.5, "exact_match": 0}]
    >>> found = survey_evals(rows)
    >>> found.metrics, found.evals
    ((('f1', 'exact_match'),), None)
    >>> print(found.problem)
    the list of records has 2 metrics: 'f1', 'exact_match'. Choose one with metric='f1'.
    """
    selection, chosen = _read_logs(paths, metric=metric, filter=filter, missing=missing, **options)
    evals, problem = None, Message("")
    try:
        evals = align(selection, chosen)
    except InputError as error:
        problem = error.message
    notes, warnings = (selection.notes, selection.warnings) if evals is None else (evals.notes, evals.warnings)
    return EvalsSurvey(
        **_cells(selection), problem=problem, notes=notes, warnings=tuple(map(Message, warnings)), evals=evals
    )


def _cells(selection: Selection) -> dict[str, tuple[Any, ...]]:
    """Count questions and samples of each task and model."""
    tasks, questions, columns = align_questions(selection.blocks)
    of_task = np.array([tasks.index(task) for task, _ in questions])
    counts = np.zeros((len(selection.order), len(questions)), dtype=np.int64)
    metrics: dict[tuple[str, str], dict[str, None]] = {}
    filters: dict[tuple[str, str], dict[str, None]] = {}
    for block, where in zip(selection.blocks, columns, strict=True):
        scored = np.zeros(len(block), dtype=np.bool_)
        for values in block.scores.values():
            scored |= ~np.isnan(values)
        # Variants of a score are not further samples.
        variants = 1 if block.filter is None else max(1, len(used(block.filter)))
        lookup = np.array([code_of(selection.order, name) for name in block.model.names])
        cell = lookup[block.model.codes].astype(np.int64) * len(questions) + where
        here = np.bincount(cell[scored], minlength=counts.size).reshape(counts.shape)
        counts += -(-here // variants)
        for name in used(block.model):
            for task in used(block.task):
                metrics.setdefault((task, name), {}).update(dict.fromkeys(block.scores))
                filters.setdefault((task, name), {}).update(dict.fromkeys(used(block.filter) if block.filter else []))
    keys = [(task, name) for task in tasks for name in selection.order if (task, name) in metrics]
    mine = [counts[selection.order.index(name)][of_task == tasks.index(task)] for task, name in keys]
    return {
        "task": tuple(task for task, _ in keys),
        "model": tuple(name for _, name in keys),
        "questions": tuple(int((c > 0).sum()) for c in mine),
        "samples": tuple(int(c.max()) for c in mine),
        "missing": tuple(int((c == 0).sum()) for c in mine),
        "metrics": tuple(tuple(metrics[key]) for key in keys),
        "filters": tuple(tuple(n for n in filters[key] if n != "none" or len(filters[key]) > 1) for key in keys),
    }
