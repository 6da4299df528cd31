"""``curvewise evals``: show, score, compare, rank, plan."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Group, Parameter
from cyclopts.validators import Number

from curvewise.cli.console import (
    MOST_CHOICES,
    READING,
    STDIN,
    AtLeast0,
    Counts,
    Drawing,
    Files,
    Flag,
    Level,
    Numbers,
    OptionalFiles,
    Page,
    Showing,
    Size,
    Texts,
    UsageError,
    Words,
    check_gates,
    choose_pair,
    conditions_of,
    gate_status,
    in_options,
    note_reading,
    note_table,
    options,
    read_columns,
    split_name,
    table_in_parts,
    use_options,
    warn_each,
)
from curvewise.errors import InputError, list_names, prefix, quietly
from curvewise.text import format_chance, format_count, format_level, format_size

if TYPE_CHECKING:
    from curvewise.evals.evals import Evals
    from curvewise.evals.load import EvalsSurvey
    from curvewise.evals.plan import EvalPlan
    from curvewise.types.results import Result

evals = App(
    name="evals",
    help="Is this language model or agent better, and on how many questions?\n\n"
    "FILE is an evaluation log, a folder of logs, or a table: .eval or .json of Inspect, `samples_*.jsonl` of "
    "lm-eval, `details_*.parquet` of lighteval, runs of HELM, Every Eval Ever records, or CSV, JSON lines or "
    "Parquet with a row for each model, question and sample. NAME=FILE names the model of a file or folder.",
)

OPTIONS = {"models": "model", "paths": ""}
"""Arguments of Python that have an option of another name; files are given without one."""

ANSWERING = OPTIONS | {"metric": "", "pilot": ""}
"""The same once logs are read: from then on a metric is pass@k or pass^k, which the options spell out."""

SCORING = Group("How to score", sort_key=3)
PASS = re.compile(r"pass([@^])(\d+)")
MOST_PAIRS = 30
"""Pairs, or questions, that a table in the terminal has without --verbose."""

Gate = Literal["worse", "better", "equivalent", "undecided", "maybe-worse"]


@options(READING)
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
        Only this model, by its name, else that of its file, or NAME=MODEL for a new name; * stands
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
    wide
        models: a table with a row for each question and a column for each model.
    unfinished
        Read logs that were cancelled or ended with an error, too.
    allow_large
        Read a compressed file whatever it unpacks to.
    """

    metric: Words = field(default_factory=list)
    filter: Texts = field(default_factory=list)
    missing: Literal["refuse", "wrong", "drop"] = "refuse"
    task: Texts = field(default_factory=list)
    model: Texts = field(default_factory=list)
    repeats: Literal["samples", "seeds"] | None = None
    range: Numbers = field(default_factory=list)
    higher_is_better: Annotated[bool | None, Parameter(negative="--lower-is-better")] = None
    column: Texts = field(default_factory=list)
    wide: Literal["models"] | None = None
    unfinished: Flag = False
    allow_large: Flag = False

    def arguments(self, files: Sequence[str]) -> dict[str, Any]:
        """Return the arguments of :func:`load_evals`."""
        if STDIN in files:
            raise UsageError("Evaluations are read from files and folders, not from stdin.")
        paths: dict[str, list[str]] = {}
        for name, file in map(split_name, files):
            paths.setdefault(name, []).append(file)
        if self.range and not (len(self.range) == 2 and self.range[0] < self.range[1]):
            raise UsageError("--range takes the lowest and the highest possible score, such as --range 1,10.")
        columns = {role: name or None for role, name in read_columns(self.column, "question=prompt_no")}
        # The other options are arguments of the same name; one that may be repeated is absent where it is empty.
        same = {name: None if value == [] else value for name, value in vars(self).items()}
        del same["column"], same["model"]
        chosen = {"paths": paths if any(paths) else list(files), "models": self._models(), "columns": columns or None}
        return {**same, **chosen, "range": tuple(self.range) or None}

    def _models(self) -> Any:
        """Return names, or new names with what they stand for; a name that stays stands for itself."""
        if not any("=" in text for text in self.model):
            return self.model or None
        found: dict[str, list[str]] = {}
        for text in self.model:
            new, equals, old = text.partition("=")
            if equals and not (new and old):
                raise UsageError(f"--model {text!r} must read NAME=MODEL.")
            found.setdefault(new, []).append(old if equals else new)
        return found

    def load(self, files: Sequence[str]) -> Evals:
        """Read logs, noting on stderr how they were interpreted and what deserves a look."""
        from curvewise.evals.load import load_evals

        try:
            with quietly():
                found = load_evals(**self.arguments(files))
        except InputError as error:
            passes = [match for name in self.metric if (match := PASS.fullmatch(name))]
            if not passes:
                raise
            option = f"--pass-{'at' if passes[0][1] == '@' else 'hat'} {passes[0][2]}"
            text = f"{in_options(error.message)} --metric names a score in the logs; {passes[0][0]} of it is {option}."
            raise InputError(text) from None
        note_table(found)
        warn_each(found.warnings)
        use_options(ANSWERING)
        return found


@options(SCORING)
class QuestionScoring:
    """Score of a question from its samples, and average over questions.

    Parameters
    ----------
    pass_at
        pass@k, the chance that at least one of k samples is right, in place of the mean.
    pass_hat
        pass^k, the chance that all k samples are right, in place of the mean.
    average
        Each question counts alike, or each task does.
    """

    pass_at: Counts = field(default_factory=list)
    pass_hat: Counts = field(default_factory=list)
    average: Literal["questions", "tasks"] = "questions"

    def __post_init__(self) -> None:
        """Refuse two scores at once."""
        if self.pass_at and self.pass_hat:
            raise UsageError("--pass-at and --pass-hat are two different scores: ask for one of them.")

    @property
    def kind(self) -> str:
        """The kind of score other than the mean, or nothing."""
        return "pass@" if self.pass_at else "pass^" if self.pass_hat else ""

    @property
    def several(self) -> list[int]:
        """Numbers of samples, where pass@k is asked for more than one."""
        numbers = self.pass_at or self.pass_hat
        return numbers if len(numbers) > 1 else []

    def arguments(self) -> dict[str, Any]:
        """Return the metric and the average, as arguments of :func:`score_evals`."""
        if self.several:
            raise UsageError(f"One number of samples only here: {self.kind}k for several is `curvewise evals score`.")
        k = (self.pass_at or self.pass_hat or [0])[0]
        return {"metric": f"{self.kind}{k}" if k else None, "average": self.average}


@evals.command
def show(files: Files, /, *, reading: EvalsReading = EvalsReading(), showing: Showing = Showing()) -> int:
    """Show what logs hold: tasks, models, questions, samples, metrics, filters and missing scores.

    Example: `curvewise evals show logs/`

    Example: `curvewise evals show logs/ --metric exact_match --filter strict-match`

    Parameters
    ----------
    files
        Logs, folders of logs, or tables.
    """
    page = showing.page()
    from curvewise.evals.load import survey_evals

    with quietly():
        found = survey_evals(**reading.arguments(files))
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
        columns["metrics"] = [list_names(metrics, 3, quoted=False) for metrics in found.metrics]
        others = [name for name in columns if name != "model"]
        alike: dict[Any, list[str]] = {}
        for *key, model in zip(*(columns[name] for name in others), found.model, strict=True):
            alike.setdefault(tuple(key), []).append(model)
        names = [
            n[0] if len(n) == 1 else f"{len(n):,} models: {n[0]}, {n[1]}{', …' * (len(n) > 2)}" for n in alike.values()
        ]
        columns = dict(zip(others, map(list, zip(*alike, strict=True)), strict=True))
        columns = {"task": columns.pop("task"), "model": names, **columns}
    if page.markup is None:  # tasks, filters and missing scores are columns only where there are some
        columns = {name: cells for name, cells in columns.items() if any(cells)}
    title = f"{format_count(len(set(found.model)), 'model')}, {format_count(len(set(found.task)), 'task')}"
    table_in_parts(page, title, columns)


@evals.command
def score(
    files: Files,
    /,
    *,
    level: Level = 0.95,
    scoring: QuestionScoring = QuestionScoring(),
    reading: EvalsReading = EvalsReading(),
    drawing: Drawing = Drawing(),
) -> int:
    """Score each model, with an interval for new questions of the same kind.

    Example: `curvewise evals score logs/ --plot scores.png`

    Example: `curvewise evals score trials.json --pass-hat 1,2,3,4`

    Parameters
    ----------
    files
        Logs, folders of logs, or tables.
    level
        Coverage of the intervals.
    """
    page = drawing.page()
    from curvewise.evals.score import measure_passes, score_evals

    logs = reading.load(files)
    result: Result
    with quietly():
        if scoring.several:
            kind, average = scoring.kind, scoring.average
            result = measure_passes(logs, kind, scoring.several, average=average, level=level)
        else:
            result = score_evals(logs, **scoring.arguments(), level=level)
    title = f"{format_count(len(logs.models), 'model')}, {_size(logs)} ({format_level(level)} intervals)"
    columns = None
    if page.markup is None:  # the title of a table in the terminal says how many there are
        readable = result.readable().items()
        columns = {k: v for k, v in readable if k != "questions" and (k != "samples" or len(set(v)) > 1)}
    return page.answer(result, title, columns=columns, known=logs.warnings)


@evals.command
def compare(
    files: Files,
    /,
    *,
    a: str | None = None,
    b: str | None = None,
    margin: Size = None,
    fail_if: Annotated[list[Gate], Parameter(negative="", show_default=False)] = [],
    paired_seeds: Flag = False,
    what: Literal["questions", "difference"] = "questions",
    level: Level = 0.95,
    scoring: QuestionScoring = QuestionScoring(),
    reading: EvalsReading = EvalsReading(),
    drawing: Drawing = Drawing(),
) -> int:
    """Test whether model a is better than model b on the questions that both were asked.

    Example: `curvewise evals compare logs/ --a new --b old`

    Example: `curvewise evals compare logs/ --a new --b old --margin 0.01 --fail-if worse`

    Parameters
    ----------
    files
        Logs, folders of logs, or tables that hold both models.
    a
        The model to judge, by its name; * stands for any letters.
    b
        The model to judge it against.
    margin
        The largest difference of scores that does not matter, such as 0.01: asks for equivalence.
    fail_if
        Exit with status 3 if a is shown to be worse than b (by more than the margin, if there is
        one), better, equivalent, if nothing is shown, or if it may be worse. May be repeated.
    paired_seeds
        Training seed s of a and of b share their randomness, such as the order of the data.
    what
        Picture that --plot draws: the scores of both models on each question, or the difference.
    level
        Coverage of the interval.
    """
    page = drawing.page()
    from curvewise.evals.compare import compare_evals

    if {*fail_if} & {"worse", "better", "maybe-worse"} and a is None and b is None:
        raise UsageError(f"--fail-if {fail_if[0]} is about a model: name it with --a, and the other one with --b.")
    check_gates(fail_if, margin)
    logs = reading.load(files)
    one, two = _two_models(logs, a, b)
    with quietly():
        how = {**scoring.arguments(), "margin": margin, "paired_seeds": paired_seeds}
        result = compare_evals(logs, one, two, level=level, **how)
    status = gate_status(fail_if, conditions_of(result))
    columns = None
    if page.markup is None:  # the title of a table in the terminal names the two models, which are often long
        columns = {k: v for k, v in result.readable().items() if k not in ("a", "b")}
    title = f"{one} minus {two} ({format_level(level)} interval)"
    draw = partial(result.plot, what=what)
    return page.answer(result, title, columns=columns, style="bold", known=logs.warnings, draw=draw, status=status)


@evals.command
def rank(
    files: Files,
    /,
    *,
    pairs: Flag = False,
    questions: Flag = False,
    what: Literal["leaderboard", "pairs", "questions"] = "leaderboard",
    level: Level = 0.95,
    scoring: QuestionScoring = QuestionScoring(),
    reading: EvalsReading = EvalsReading(),
    drawing: Drawing = Drawing(),
) -> int:
    """Rank models, with intervals of scores and ranks and the groups that do not differ significantly.

    Example: `curvewise evals rank logs/ --plot leaderboard.png`

    Example: `curvewise evals rank logs/ --table markdown --pairs`

    Parameters
    ----------
    files
        Logs, folders of logs, or tables of two or more models.
    pairs
        Print the differences of all pairs, too, with p-values adjusted by Holm's method.
    questions
        Print the questions, too: the mean score over models, and how well each tells good models
        from bad ones.
    what
        Picture that --plot draws: the leaderboard, the differences of pairs, or the questions.
    level
        Coverage of the intervals of scores (each) and of ranks (together).
    """
    page = drawing.page()
    from curvewise.evals.rank import rank_models
    from curvewise.text import readable_columns

    logs = reading.load(files)
    with quietly():
        result = rank_models(logs, **scoring.arguments(), level=level)
    title = f"{format_count(len(result.models), 'model')}, {_size(logs)} ({format_level(level)} intervals)"
    more: dict[str, dict[str, Any]] = {}
    if pairs:
        table = result.pair_columns()
        rows = _first_rows(page, table, table["pvalue_holm"], table["pvalue"])
        if page.markup is None:  # two long names share a column
            both = [f"{x} − {y}" for x, y in zip(rows.pop("a"), rows.pop("b"), strict=True)]
            rows = {"pair": both} | {name: rows[name] for name in ("difference", "low", "high", "pvalue_holm")}
        more["Pairs, the clearest differences first"] = rows
    if questions:
        table = result.question_columns()
        # The least useful questions first: these are the ones to look at.
        more["Questions, the least telling first"] = _first_rows(page, table, table["discrimination"])
    further = {name: readable_columns(columns, result.unit) for name, columns in more.items()}
    draw = partial(result.plot, what=what)
    return page.answer(result, title, further=further, known=logs.warnings, draw=draw)


@options()
class Variation:
    """Numbers that a pilot would give.

    Parameters
    ----------
    question_variance
        Without a pilot: the variance between questions of the true difference of the two models.
    sampling_variance
        Without a pilot: the variance of one sample around the mean of its question, of both models
        or of each, such as 0.15 or 0.15,0.1.
    samples
        Samples of each question by a and by b, such as 5 or 5,1; by default those of the pilot.
    questions
        Number of questions that there are: asks which difference they detect.
    design_effect
        Factor by which groups of questions raise the variance; a pilot knows it.
    """

    question_variance: Annotated[float | None, Parameter(validator=Number(gte=0))] = None
    sampling_variance: Numbers = field(default_factory=list)
    samples: Counts = field(default_factory=list)
    questions: Annotated[int | None, Parameter(validator=Number(gte=2))] = None
    design_effect: Size = None

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of :func:`plan_evals`."""
        for name in ("samples", "sampling_variance"):
            if len(getattr(self, name)) > 2:
                option = name.replace("_", "-")
                raise UsageError(f"--{option} takes one number, or one for each of the two models.")
        return {name: (tuple(v) or None) if isinstance(v, list) else v for name, v in vars(self).items()}


@options()
class Spending:
    """Costs of an evaluation, and their limits.

    Parameters
    ----------
    question_cost
        Cost of a question: to write it and to grade it.
    sample_cost
        Cost of one sample by one model.
    budget
        The most that the evaluation may cost: what does it afford?
    looks
        Plan so many looks at equal steps, each of which may stop the evaluation.
    """

    question_cost: Annotated[float, Parameter(validator=Number(gte=0))] = 0.0
    sample_cost: Annotated[float, Parameter(validator=Number(gt=0))] = 1.0
    budget: Size = None
    looks: Annotated[int | None, Parameter(validator=Number(gte=2, lte=50))] = None


@evals.command
def plan(
    files: OptionalFiles = [],
    /,
    *,
    difference: Size = None,
    a: str | None = None,
    b: str | None = None,
    known: Variation = Variation(),
    power: Level = 0.8,
    level: Level = 0.95,
    spending: Spending = Spending(),
    seed: AtLeast0 = 0,
    what: Literal["frontier", "power"] | None = None,
    scoring: QuestionScoring = QuestionScoring(),
    reading: EvalsReading = EvalsReading(),
    drawing: Drawing = Drawing(),
) -> int:
    """Plan how many questions, and samples of each, show a difference between two models.

    Variances come from a pilot (logs of two models that exist) or from numbers. Without
    --difference, the plan says which difference the questions of the pilot, or --questions, detect.

    Example: `curvewise evals plan logs/ --a new --b old --difference 0.03 --plot frontier.png`

    Example: `curvewise evals plan --difference 0.03 --question-variance 0.05 --sampling-variance 0.15`

    Parameters
    ----------
    files
        A pilot: logs of two models on the same questions.
    difference
        The difference of scores that should be found: 0.03 for three points.
    a
        One model of the pilot, where it holds more than two.
    b
        The other one.
    power
        Chance of finding the difference.
    level
        Coverage of the interval of the difference: 0.95 tests at 0.05.
    seed
        Determines the simulation behind --looks.
    what
        Picture that --plot draws: questions against samples, or power against questions.
    """
    page = drawing.page()
    from curvewise.evals.compare import compare_evals
    from curvewise.evals.plan import plan_evals

    how = scoring.arguments()
    variation = known.arguments()
    pilot: Any = None
    printed: Sequence[str] = ()
    use_options(ANSWERING)
    if files:
        logs = reading.load(files)
        one, two = _two_models(logs, a, b)
        with quietly():
            pilot = compare_evals(logs, one, two, **how)
        warn_each(pilot.warnings)
        printed = logs.warnings
    elif how["metric"] or a or b:
        raise UsageError("--pass-at, --pass-hat, --a and --b are about a pilot: give its logs.")
    elif known.question_variance is None:
        raise UsageError(
            "How much do questions vary? Give the logs of a pilot with two models; or --question-variance, the"
            " variance between questions of the true difference, and --sampling-variance, that of a sample around the"
            " mean of its question."
        )
    with quietly():
        result = plan_evals(difference, pilot=pilot, **variation, **vars(spending), power=power, level=level, rng=seed)
    title = "Questions and samples" if spending.budget is None else f"What a cost of {spending.budget:g} affords"
    further = {} if result.looks is None else {"Looks": _look_columns(result)}
    return page.answer(result, title, further=further, known=printed, draw=partial(result.plot, what=what))


def _look_columns(result: EvalPlan) -> dict[str, Any]:
    """Make the table of what planned looks find: nothing, the difference of the plan, and twice that."""
    looks, sign = result.looks, "%" if result.unit == "fraction" else ""
    assert looks is not None
    gap = (100 if sign else 1) * (result.difference or 0.0)
    return {
        "true difference": [f"{times * gap:.3g}{sign}" for times in (0, 1, 2)],
        "found": [format_chance(chance) for chance in looks.chance_found],
        "questions on average": [format_size(n) for n in looks.expected_questions],
        f"found by one look at {looks.looks[-1]:,}": [format_chance(chance) for chance in looks.fixed_chance],
    }


def _two_models(logs: Evals, a: str | None, b: str | None) -> tuple[str, str]:
    """Find the two models to compare: those named, or the only two."""
    names = logs.models
    if len(names) < 2:
        raise UsageError(
            f"There is one model, {names[0]!r}: a comparison needs two. Give the logs of another one, too."
        )
    if len(names) > 2 and (a is None or b is None):
        raise UsageError(
            f"There are {len(names)} models: name two with --a and --b, of {list_names(names, MOST_CHOICES)};"
            " `curvewise evals rank` compares all of them."
        )
    return choose_pair(a, b, names, "model")


def _size(logs: Evals) -> str:
    """Write how many questions and samples there are."""
    _, questions, most = logs.shape
    least = int(logs.samples.min())
    samples = f" × {least} to {most} samples" if least < most else f" × {most} samples" if most > 1 else ""
    return format_count(questions, "question") + samples


def _first_rows(page: Page, table: dict[str, Any], *keys: Any) -> dict[str, Any]:
    """Sort a table by the first key, then the others; in a terminal without --verbose only so many rows."""
    import numpy as np

    order = np.lexsort(keys[::-1])
    if not page.verbose and page.markup is None:
        order = order[:MOST_PAIRS]
    return {name: [np.asarray(values)[i] for i in order] for name, values in table.items()}
