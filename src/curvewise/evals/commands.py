"""``curvewise evals``: show, score, compare, rank, plan."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Group, Parameter
from cyclopts.validators import Number

from curvewise.cli.console import (
    GATE,
    READING,
    STDIN,
    Drawing,
    Files,
    Flag,
    Level,
    Numbers,
    Page,
    Showing,
    Texts,
    UsageError,
    Words,
    expand_patterns,
    in_options,
    note_reading,
    save_plot,
    split_name,
    table_in_parts,
    usage_panel,
    use_options,
    warn,
    warn_each,
)
from curvewise.errors import InputError, list_names, prefix, quietly
from curvewise.text import format_chance, format_count, format_size

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
    error_formatter=usage_panel,
)

OPTIONS = {"models": "model", "paths": ""}
"""Arguments of Python that have an option of another name; files are given without one."""

ANSWERING = OPTIONS | {"metric": "", "pilot": ""}
"""The same once logs are read: from then on a metric is pass@k or pass^k, which the options spell out."""

SCORING = Group("How to score", sort_key=3)
PASS = re.compile(r"pass([@^])(\d+)")
MOST_NAMES = 8
"""Models that a message lists."""
MOST_PAIRS = 30
"""Pairs, or questions, that a table in the terminal has without --verbose."""

Gate = Literal["worse", "better", "equivalent", "undecided", "maybe-worse"]
OptionalFiles = Annotated[
    list[str], Parameter(name="FILE...", negative="", show_default=False, converter=expand_patterns)
]
Positive = Annotated[float | None, Parameter(validator=Number(gt=0))]


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
    wide
        models: a table with a row for each question and a column for each model.
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
    wide: Literal["models"] | None = None
    unfinished: Flag = False
    allow_large: Flag = False

    def options(self, files: Sequence[str]) -> dict[str, Any]:
        """Return the arguments of :func:`load_evals`."""
        if STDIN in files:
            raise UsageError("Evaluations are read from files and folders, not from stdin.")
        paths: dict[str, list[str]] = {}
        for name, file in map(split_name, files):
            paths.setdefault(name, []).append(file)
        columns: dict[str, str | None] = {}
        for pair in self.column:
            role, equals, name = pair.partition("=")
            if not equals or not role.strip():
                raise UsageError(f"--column {pair!r} must read ROLE=COLUMN, such as question=prompt_no.")
            columns[role.strip()] = name or None
        if self.range and len(self.range) != 2:
            raise UsageError("--range takes the lowest and the highest possible score, such as --range 1,10.")
        return {
            "paths": paths if any(paths) else list(files),
            "metric": self.metric or None,
            "filter": self.filter or None,
            "missing": self.missing,
            "task": self.task or None,
            "models": self._models(),
            "repeats": self.repeats,
            "range": tuple(self.range) or None,
            "higher_is_better": self.higher_is_better,
            "columns": columns or None,
            "wide": self.wide,
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

        try:
            with quietly():
                found = load_evals(**self.options(files))
        except InputError as error:
            passes = [match for name in self.metric if (match := PASS.fullmatch(name))]
            if not passes:
                raise
            option = f"--pass-{'at' if passes[0][1] == '@' else 'hat'} {passes[0][2]}"
            text = f"{in_options(error.message)} --metric names a score in the logs; {passes[0][0]} of it is {option}."
            raise InputError(text) from None
        note_reading([repr(found)[6:-1], *found.notes])
        warn_each(found.warnings)
        use_options(ANSWERING)
        return found


Counts = Annotated[list[int], Parameter(converter=lambda _, tokens: _counts(tokens), n_tokens=1, negative="")]


def _counts(tokens: Sequence[Any]) -> list[int]:
    """Read ``1,2,4`` as whole numbers from 1 on."""
    words = [part.strip() for token in tokens for part in token.value.split(",") if part.strip()]
    if not words or not all(word.isdecimal() and int(word) > 0 for word in words):
        raise ValueError(f"{','.join(words)!r} must be a whole number from 1 on, or several with commas: 1,2,4.")
    return list(map(int, words))


@Parameter(name="*", group=SCORING)
@dataclass
class Scoring:
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

    pass_at: Annotated[Counts, Parameter(show_default=False)] = field(default_factory=list)
    pass_hat: Annotated[Counts, Parameter(show_default=False)] = field(default_factory=list)
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
        asked = self.pass_at or self.pass_hat
        return asked if len(asked) > 1 else []

    def options(self) -> dict[str, Any]:
        """Return the metric and the average, as arguments of :func:`score_evals`."""
        if self.several:
            raise UsageError(f"One number of samples only here: {self.kind}k for several is `curvewise evals score`.")
        k = (self.pass_at or self.pass_hat or [0])[0]
        return {"metric": f"{self.kind}{k}" if k else None, "average": self.average}


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
    scoring: Scoring | None = None,
    reading: EvalsReading | None = None,
    drawing: Drawing | None = None,
    showing: Showing | None = None,
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
    page = (showing or Showing()).page()
    from curvewise.evals.score import measure_passes, score_evals

    how = scoring or Scoring()
    given = (reading or EvalsReading()).load(files)
    result: Result
    with quietly():
        if how.several:
            result = measure_passes(given, how.kind, how.several, average=how.average, level=level)
        else:
            result = score_evals(given, **how.options(), level=level)
    title = f"{format_count(len(given.models), 'model')}, {_size(given)} ({level:.0%} intervals)"
    kept = dict(result.readable())
    if page.markup is None:  # the title of a table in the terminal says how many there are
        kept = {k: v for k, v in kept.items() if k != "questions" and (k != "samples" or len(set(v)) > 1)}
    return _answer(page, given, result, title, drawing, columns=kept)


@evals.command
def compare(
    files: Files,
    /,
    *,
    a: str | None = None,
    b: str | None = None,
    margin: Positive = None,
    fail_if: Annotated[list[Gate], Parameter(negative="", show_default=False)] = [],  # noqa: B006
    paired_seeds: Flag = False,
    what: Literal["questions", "difference"] = "questions",
    level: Level = 0.95,
    scoring: Scoring | None = None,
    reading: EvalsReading | None = None,
    drawing: Drawing | None = None,
    showing: Showing | None = None,
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
    page = (showing or Showing()).page()
    from curvewise.evals.compare import compare_evals

    if {*fail_if} & {"worse", "better", "maybe-worse"} and a is None and b is None:
        raise UsageError(f"--fail-if {fail_if[0]} is about a model: name it with --a, and the other one with --b.")
    given = (reading or EvalsReading()).load(files)
    one, two = _two_models(given, a, b)
    options: dict[str, Any] = (scoring or Scoring()).options() | {"margin": margin, "paired_seeds": paired_seeds}
    with quietly():
        result = compare_evals(given, one, two, level=level, **options)
    held = {gate: result.verdict == gate for gate in ("equivalent", "undecided")}
    held |= {"worse": result.worse, "better": result.better, "maybe-worse": result.maybe_worse}
    met = [gate for gate in fail_if if held[gate]]
    if met:
        warn(f"--fail-if {met[0]} holds: exit status {GATE}.")
    title = f"{one} minus {two} ({level:.0%} interval)"
    # The title of a table in the terminal names the two models, which are often long.
    kept = {k: v for k, v in result.readable().items() if page.markup is not None or k not in ("a", "b")}
    options = {"draw": lambda: result.plot(what=what), "style": "bold", "status": GATE if met else 0}
    return _answer(page, given, result, title, drawing, columns=kept, **options)


@evals.command
def rank(
    files: Files,
    /,
    *,
    pairs: Flag = False,
    questions: Flag = False,
    what: Literal["leaderboard", "pairs", "questions"] = "leaderboard",
    level: Level = 0.95,
    scoring: Scoring | None = None,
    reading: EvalsReading | None = None,
    drawing: Drawing | None = None,
    showing: Showing | None = None,
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
    page = (showing or Showing()).page()
    from curvewise.evals.rank import rank_models
    from curvewise.text import readable_columns

    given = (reading or EvalsReading()).load(files)
    with quietly():
        result = rank_models(given, **(scoring or Scoring()).options(), level=level)
    title = f"{format_count(len(result.models), 'model')}, {_size(given)} ({level:.0%} intervals)"
    more: dict[str, dict[str, Any]] = {}
    if pairs:
        table = result.pair_columns()
        rows = _first_rows(page, table, table["pvalue_holm"], table["pvalue"])
        if page.markup is None:  # two long names share a column
            both = [f"{x} − {y}" for x, y in zip(rows.pop("a"), rows.pop("b"), strict=True)]
            rows = {"pair": both} | {name: rows[name] for name in ("difference", "low", "high", "pvalue_holm")}
        more["pairs, the clearest differences first"] = rows
    if questions:
        table = result.question_columns()
        # The least useful questions first: these are the ones to look at.
        more["questions, the least telling first"] = _first_rows(page, table, table["discrimination"])
    extra = {name: readable_columns(columns, result.unit) for name, columns in more.items()}
    return _answer(page, given, result, title, drawing, draw=lambda: result.plot(what=what), more=extra)


@evals.command
def plan(
    files: OptionalFiles = [],  # noqa: B006
    /,
    *,
    difference: Positive = None,
    a: str | None = None,
    b: str | None = None,
    question_variance: Annotated[float | None, Parameter(validator=Number(gte=0))] = None,
    sampling_variance: Numbers = [],  # noqa: B006
    samples: Annotated[Counts, Parameter(show_default=False)] = [],  # noqa: B006
    questions: Annotated[int | None, Parameter(validator=Number(gte=2))] = None,
    design_effect: Positive = None,
    power: Annotated[float, Parameter(validator=Number(gt=0, lt=1))] = 0.8,
    level: Level = 0.95,
    question_cost: Annotated[float, Parameter(validator=Number(gte=0))] = 0.0,
    sample_cost: Annotated[float, Parameter(validator=Number(gt=0))] = 1.0,
    budget: Positive = None,
    looks: Annotated[int | None, Parameter(validator=Number(gte=2, lte=50))] = None,
    seed: int = 0,
    what: Literal["frontier", "power"] | None = None,
    scoring: Scoring | None = None,
    reading: EvalsReading | None = None,
    drawing: Drawing | None = None,
    showing: Showing | None = None,
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
    power
        Chance of finding the difference.
    level
        Coverage of the interval of the difference: 0.95 tests at 0.05.
    question_cost
        Cost of a question: to write it and to grade it.
    sample_cost
        Cost of one sample by one model.
    budget
        The most that the evaluation may cost: what does it afford?
    looks
        Plan so many looks at equal steps, each of which may stop the evaluation.
    seed
        Determines the simulation behind --looks.
    what
        Picture that --plot draws: questions against samples, or power against questions.
    """
    page = (showing or Showing()).page()
    from curvewise.evals.compare import compare_evals
    from curvewise.evals.plan import plan_evals

    how = (scoring or Scoring()).options()
    pilot, given = None, None
    use_options(ANSWERING)
    if files:
        given = (reading or EvalsReading()).load(files)
        one, two = _two_models(given, a, b)
        with quietly():
            pilot = compare_evals(given, one, two, **how)
        warn_each(pilot.warnings)
    elif how["metric"] or a or b:
        raise UsageError("--pass-at, --pass-hat, --a and --b are about a pilot: give its logs.")
    elif question_variance is None:
        raise UsageError(
            "How much do questions vary? Give the logs of a pilot with two models; or --question-variance, the"
            " variance between questions of the true difference, and --sampling-variance, that of a sample around the"
            " mean of its question."
        )
    for name, values in (("--samples", samples), ("--sampling-variance", sampling_variance)):
        if len(values) > 2:
            raise UsageError(f"{name} takes one number, or one for each of the two models.")
    with quietly():
        result = plan_evals(
            difference,
            pilot=pilot,
            question_variance=question_variance,
            sampling_variance=tuple(sampling_variance) or None,  # type: ignore[arg-type]
            samples=tuple(samples) or None,  # type: ignore[arg-type]
            questions=questions,
            design_effect=design_effect,
            power=power,
            level=level,
            question_cost=question_cost,
            sample_cost=sample_cost,
            budget=budget,
            looks=looks,
            rng=seed,
        )
    title = "Questions and samples" if budget is None else f"What a cost of {budget:g} affords"
    more = {} if result.looks is None else {"looks": _look_columns(result)}
    return _answer(page, given, result, title, drawing, draw=lambda: result.plot(what=what), more=more)


def _look_columns(result: EvalPlan) -> dict[str, Any]:
    """Make the table of what planned looks find: nothing, the difference of the plan, and twice that."""
    looks, sign = result.looks, "%" if result.unit == "fraction" else ""
    assert looks is not None
    times = (100 if sign else 1) * (result.difference or 0.0) / looks.effects[1]
    return {
        "true difference": [f"{times * effect:.3g}{sign}" for effect in looks.effects],
        "found": [format_chance(chance) for chance in looks.chance_found],
        "questions on average": [format_size(n) for n in looks.expected_questions],
        f"found by one look at {looks.looks[-1]:,}": [format_chance(chance) for chance in looks.fixed_chance],
    }


def _two_models(given: Evals, a: str | None, b: str | None) -> tuple[str, str]:
    """Find the two models to compare: those named, or the only two."""
    names = given.models
    if len(names) < 2:
        raise UsageError(
            f"There is one model, {names[0]!r}: a comparison needs two. Give the logs of another one, too."
        )
    one, two = (None if name is None else _one_model(f"--{side}", name, names) for side, name in (("a", a), ("b", b)))
    if len(names) == 2 and (one is None or two is None):
        # Of two, the one that is not named is the other.
        one = one or next(name for name in names if name != two)
        two = two or next(name for name in names if name != one)
    if one is None or two is None:
        raise UsageError(
            f"There are {len(names)} models: name two with --a and --b, of {list_names(names, MOST_NAMES)}; `curvewise"
            " evals rank` compares all of them."
        )
    if one == two:
        raise UsageError(f"Both are {one!r}: a comparison needs two models.")
    return one, two


def _one_model(option: str, wanted: str, names: Sequence[str]) -> str:
    """Find the model that an option names, by its name or a pattern of it."""
    from fnmatch import fnmatchcase

    if wanted in names:
        return wanted
    found = [name for name in names if fnmatchcase(name, wanted)]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(f"{option} {wanted} stands for {len(found)} models: {list_names(found, MOST_NAMES)}.")
    lower = {name.lower(): name for name in names}
    close = get_close_matches(wanted.lower(), lower, n=1, cutoff=0.4)
    part = [name for name in names if wanted.lower() in name.lower()]
    near = part[0] if part else lower[close[0]] if close else ""
    hint = f" Did you mean {near!r}?" if near else ""
    raise UsageError(f"{option} {wanted!r} is not among the models.{hint} There are {list_names(names, MOST_NAMES)}.")


def _size(given: Evals) -> str:
    """Write how many questions and samples there are."""
    _, questions, most = given.shape
    least = int(given.samples.min())
    samples = f" × {least} to {most} samples" if least < most else f" × {most} samples" if most > 1 else ""
    return format_count(questions, "question") + samples


def _first_rows(page: Page, table: dict[str, Any], *keys: Any) -> dict[str, Any]:
    """Sort a table by the first key, then the others; in a terminal without --verbose only so many rows."""
    import numpy as np

    order = np.lexsort(keys[::-1])
    if not page.verbose and page.markup is None:
        order = order[:MOST_PAIRS]
    return {name: [np.asarray(values)[i] for i in order] for name, values in table.items()}


def _answer(
    page: Page,
    given: Evals | None,
    result: Result,
    title: str,
    drawing: Drawing | None,
    *,
    columns: dict[str, Any] | None = None,
    more: dict[str, Any] | None = None,
    draw: Callable[[], Any] | None = None,
    style: str = "",
    status: int = 0,
) -> int:
    """Print the tables, the sentences and the warnings of a result, draw it, and return the exit status."""
    page.document = result.to_dict()
    page.result(result, title, columns)
    for name, further in (more or {}).items():
        table_in_parts(page, name[0].upper() + name[1:], further)
    page.say(in_options(result.sentences()), style=style)
    # What the reader of the logs warned of was printed when they were read.
    known = () if given is None else given.warnings
    warn_each([text for text in result.all_warnings if text not in known])
    save_plot(drawing.plot if drawing else None, draw or result.plot)
    return page.close(status)
