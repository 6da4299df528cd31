"""``curvewise variance``: decompose, examine, compare, plan, sweep, twins, test-sets."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter
from cyclopts.validators import Number

from curvewise.cli.console import (
    READING,
    STDIN,
    AtLeast0,
    AtLeast1,
    Drawing,
    File,
    Files,
    Flag,
    Higher,
    Level,
    OptionalFiles,
    Page,
    Size,
    TableReading,
    Texts,
    Unit4,
    UsageError,
    Words,
    check_gates,
    choose_pair,
    conditions_of,
    gate_status,
    in_options,
    named_files,
    note,
    note_table,
    options,
    read_where,
    save_plot,
    split_name,
    use_options,
    warn,
    warn_each,
)
from curvewise.errors import InputError, list_names, quietly
from curvewise.text import format_level

if TYPE_CHECKING:
    from curvewise.types.predictions import Predictions
    from curvewise.types.results import FloatArray


variance = App(
    name="variance",
    help="Which differences between runs are real, and which come from the test set?\n\n"
    "FILE holds what every run predicted for every test example: .npy, .npz, .safetensors, a "
    "folder with one file per run, or a CSV or Parquet table with a row for each run and example.",
)

Gate = Literal["worse", "better", "equivalent", "undecided", "maybe-worse"]
Question = Literal["accuracy", "luck", "calibration", "disagreement", "ensemble", "pairs", "bipartitions"]
EXAMINED = {
    "accuracy": "measure_accuracy_distribution",
    "luck": "measure_seed_luck",
    "calibration": "measure_calibration",
    "disagreement": "measure_disagreement",
    "ensemble": "measure_ensemble",
    "pairs": "measure_dependent_pairs",
    "bipartitions": "measure_bipartitions",
}
"""Questions about the runs of one training, and the function that answers each."""
OF_ERRORS = ("accuracy", "luck", "pairs")
"""Questions that can be answered without knowing which class was predicted."""

OPTIONS = {
    "value": "value_column",
    "accuracies": "accuracy",
    "predictions": "",
    "first": "",
    "pilot": "",
    "pairs": "pair",
}
"""Options that stand for an argument of another name; files are given without one."""

MOST_PAIRS = 30
"""Pairs of trainings that are shown; --json has all of them."""

Kind = Literal["labels", "errors", "correct", "losses", "scores", "probabilities"]


@options(READING)
class PredictionReading(TableReading):
    """Options for reading predictions.

    Parameters
    ----------
    labels
        File with the true class of each example, where the predictions do not bring them.
    kind
        Kind of the values, if names do not say it.
    axes
        Order of the axes, if the shape does not say it: runs,examples or examples,runs, with
        repeats or classes as a third.
    groups
        File that says which examples belong together.
    key
        The array or column that holds the values.
    column
        Which column has a role, as ROLE=COLUMN: run, example, prediction, error, label, …
    learner
        Whose runs to take where a table or a store holds those of several.
    where
        Which runs of a store, as NAME=VALUE: n=300. May be repeated.
    """

    labels: Path | None = None
    kind: Kind | None = None
    axes: Words = field(default_factory=list)
    groups: Path | None = None
    key: str | None = None
    learner: str | None = None
    example = "run=seed"

    def load(
        self, file: str, *, alone: bool = True, learner: str | None = None, directed: bool = False, **more: Any
    ) -> Predictions:
        """Read a file or folder, noting on stderr how it was interpreted.

        With ``directed``, refuse values of which nothing says whether a high one is good. ``more`` are arguments of
        :func:`load_predictions` in place of the options.
        """
        from curvewise.types.predictions import as_predictions
        from curvewise.variance.load import load_predictions

        file = split_name(file)[1]  # where one file is read, its name has no use, and does no harm
        if file == STDIN:
            raise UsageError("Predictions are read from a file or a folder, not from stdin.")
        # Each option is an argument of the same name.
        chosen: dict[str, Any] = {**vars(self), "axes": self.axes or None, "columns": self.columns}
        chosen |= {"where": read_where(self.where), "learner": learner or self.learner, **more}
        del chosen["column"]
        # Checked here, where the message can name the file and the option.
        found = as_predictions(load_predictions(file, **chosen), argument=file, directed=directed)
        note_table(found, "" if alone else file)
        return found

    def check_none(self) -> None:
        """Refuse options of predictions where scores are read, which would be taken for a choice of rows."""
        if given := [name for name, value in vars(self).items() if value and name != "allow_large"]:
            raise UsageError(
                f"--{given[0]} is for predictions, and the files of --scores hold none: leave it out. Of a table keep"
                " the rows that you mean; --value-column and --by name its columns."
            )


@options(READING)
class ScoreReading:
    """Options for reading one score per run.

    Parameters
    ----------
    scores
        The files hold one score per run and no predictions: only this test set can be judged.
    value_column
        Column of scores, for --scores.
    by
        Column that names the training of a run, for --scores; repeat it to join several.
    unit
        Unit of the scores; by default percent if the column's name says so, else fractions.
    higher_is_better
        Scores are accuracies. By default the column's name says so.
    """

    scores: Flag = False
    value_column: str | None = None
    by: Texts = field(default_factory=list)
    unit: Unit4 | None = None
    higher_is_better: Higher = None

    def __post_init__(self) -> None:
        """Refuse options of scores without scores."""
        given = self.value_column or self.by or self.unit or self.higher_is_better is not None
        if given and not self.scores:
            raise UsageError("--value-column, --by, --unit and --higher-is-better are for --scores.")

    @property
    def comparing(self) -> dict[str, Any]:
        """Options for the comparison: accuracies have become errors when they were read."""
        unit = self.unit or "fraction"
        return {"unit": unit, "higher_is_better": unit == "score"}

    def load(self, files: Sequence[str], reading: PredictionReading) -> dict[str, FloatArray]:
        """Read the scores of every training in the files."""
        from curvewise.variance.scores import load_scores

        reading.check_none()
        found: dict[str, FloatArray] = {}
        chosen: dict[str, Any] = {"value": self.value_column, "by": self.by or None, "unit": self.unit}
        chosen |= {"higher_is_better": self.higher_is_better, "allow_large": reading.allow_large}
        for word in files:
            called, file = split_name(word)
            read = load_scores(file, **chosen)
            # Without a column that names trainings, a file is one, and called as the user calls it.
            for name, values in ({called: next(iter(read.values()))} if called and not self.by else read).items():
                if name in found:
                    raise UsageError(f"The training {name!r} is in more than one of the files.")
                found[name] = values
        return found


@variance.command
def decompose(
    file: File,
    /,
    *,
    counts: Path | None = None,
    counts_column: str | None = None,
    interval: Literal["auto", "F", "bootstrap", "robust"] = "auto",
    level: Level = 0.95,
    seed: AtLeast0 = 0,
    reading: PredictionReading = PredictionReading(),
    scores: ScoreReading = ScoreReading(),
    drawing: Drawing = Drawing(),
) -> int:
    """Split the variance between runs into what remains on new data and what the test set adds.

    Example: `curvewise variance decompose runs.npz --plot runs.png`

    Parameters
    ----------
    file
        Predictions of many runs; with --scores and --counts, a table with one accuracy or error
        per run.
    counts
        File with the number of runs that got each example wrong (right, for accuracies), where
        the predictions themselves are gone.
    counts_column
        Its column.
    interval
        Interval of the distribution-wise standard deviation: by default F, or one that holds if runs have
        heavy tails or differ in few examples.
    level
        Coverage of the intervals.
    seed
        Determines the bootstrap.
    """
    page = drawing.page()
    from curvewise.variance.decompose import decompose_totals, decompose_variance

    if scores.scores and counts is None:
        raise UsageError(
            "One score per run cannot be decomposed: add --counts with the number of runs that got"
            " each example wrong, or see `curvewise variance compare --scores`."
        )
    if counts is not None:
        if interval != "auto":
            raise UsageError(f"--interval {interval} needs the predictions, which --counts replaces: leave it out.")
        totals = _totals(file, counts, counts_column, scores, reading)
        with quietly():
            result = decompose_totals(*totals, level=level)
    else:
        predictions = reading.load(file)
        with quietly():
            result = decompose_variance(predictions, interval=interval, level=level, rng=seed)
    return page.answer(result, f"{result.runs:,} runs, {result.examples:,} examples")


def _totals(
    file: str, counts: Path, column: str | None, scores: ScoreReading, reading: PredictionReading
) -> tuple[Any, Any]:
    """Read errors of runs, as fractions, and how many of the runs got each example wrong."""
    import numpy as np

    from curvewise.variance.scores import load_scores

    if not scores.scores or scores.unit not in (None, "fraction", "percent"):
        raise UsageError("--counts goes with --scores: FILE then holds one accuracy per run.")
    runs = scores.load([file], reading)
    if len(runs) != 1:
        raise UsageError(f"{file} holds {len(runs)} trainings: --counts is for one.")
    errors = next(iter(runs.values())) / (100 if scores.unit == "percent" else 1)
    use_options(OPTIONS | {"value": "counts_column", "source": "counts"})
    try:
        chosen: dict[str, Any] = {"unit": "loss", "higher_is_better": False, "allow_large": reading.allow_large}
        found = load_scores(str(counts), value=column, **chosen)
    except InputError as error:
        raise UsageError(error.message) from None
    use_options(OPTIONS)
    wrong = np.concatenate(list(found.values()))
    right = len(errors) - wrong
    # Accuracies were made errors when read; counts may be of right or of wrong answers.
    fits, flipped = (abs(x.mean() / len(errors) - errors.mean()) for x in (wrong, right))
    if flipped < 1e-3 < fits:
        note(f"{counts.name} counts right answers: their mean is the accuracy of the runs.")
        return errors, right
    return errors, wrong


@variance.command
def examine(
    file: File,
    /,
    *,
    what: Annotated[list[Question], Parameter(negative="", show_default=False)] = [],
    pair: Words = [],
    level: Level = 0.95,
    reading: PredictionReading = PredictionReading(),
    drawing: Drawing = Drawing(),
) -> int:
    """Examine the runs of one training: luck, calibration, disagreement, ensembles, pairs.

    accuracy: do test errors vary as independent errors would? luck: do lucky seeds stay lucky on
    other examples? calibration: do err/2n and its like predict the variance here? disagreement:
    is it as large as the error? ensemble: what does a vote of the runs gain? pairs: which examples
    fail together? bipartitions: the same formulas on all two-class tasks.

    Example: `curvewise variance examine runs.npz --what luck --plot luck.png`

    Example: `curvewise variance examine runs.npz --what pairs --pair 776,796`

    Parameters
    ----------
    file
        Predictions of many runs.
    what
        Which of these to look at; repeat for several. By default all that the predictions allow
        except bipartitions.
    pair
        Two examples, by index or id: pairs looks at these only.
    level
        Coverage of the intervals.
    """
    import curvewise.variance

    page = drawing.page()
    directed = not what or not {"accuracy", "luck"}.isdisjoint(what)
    predictions = reading.load(file, directed=directed)
    questions: list[str] = list(what)
    if not questions:  # all that these predictions allow, without what takes long
        quick = [q for q in EXAMINED if q != "bipartitions" and (predictions.has_classes or q in OF_ERRORS)]
        questions = quick if predictions.binary else ["luck"]
    if page.plot and len(questions) > 1:
        raise UsageError(f"--plot draws one picture: choose with --what, of {', '.join(questions)}.")
    if pair and "pairs" not in questions:
        raise UsageError(f"--pair {','.join(pair)} goes with --what pairs.")
    by_index = predictions.example_ids is None or predictions.example_ids.dtype.kind in "iu"
    named = {"pairs": [[int(p) if by_index and p.isdigit() else p for p in pair]]} if pair else {}
    results = {}
    for name in questions:
        with quietly():
            more = named if name == "pairs" else {}
            results[name] = getattr(curvewise.variance, EXAMINED[name])(predictions, level=level, **more)
        if page.markup or page.verbose:
            page.table(name.capitalize(), results[name].readable())
        else:
            page.say(name.capitalize(), style="bold")
        page.say(in_options(results[name].sentences()), close=not page.verbose)
        warn_each(results[name].all_warnings)
    page.document = {name: result.to_dict() for name, result in results.items()}
    save_plot(page.plot, results[questions[0]].plot)
    return page.close()


@variance.command
def compare(
    files: Files,
    /,
    *,
    a: str | None = None,
    b: str | None = None,
    baseline: str | None = None,
    margin: Size = None,
    fail_if: Annotated[list[Gate], Parameter(negative="", show_default=False)] = [],
    paired: Annotated[bool, Parameter(negative="--unpaired", show_default=False)] = False,
    distribution_std: Annotated[float | None, Parameter(validator=Number(gte=0), show_default=False)] = None,
    multiplicity: Literal["holm", "bh"] = "holm",
    min_runs: AtLeast1 = 1,
    level: Level = 0.95,
    seed: AtLeast0 = 0,
    reading: PredictionReading = PredictionReading(),
    scores: ScoreReading = ScoreReading(),
    drawing: Drawing = Drawing(),
) -> int:
    """Test whether training a is better than training b, on this test set and on new data.

    Give one file for each training, as FILE or NAME=FILE; with more than two, all pairs are compared. With
    --scores one table may hold them all.

    Example: `curvewise variance compare new=a.npy old=b.npy --labels labels.npy`

    Example: `curvewise variance compare new.npz old.npz --margin 0.005 --fail-if worse`

    Parameters
    ----------
    files
        Predictions of runs, a file or folder for each training; the first is a, the second b.
        NAME=FILE names a training, 'NAME=runs/*.npy' one with a file for each run.
    a
        Which training to judge, by its name (or as --by names it).
    b
        Which to judge it against.
    baseline
        Of more than two: compare each with this one only.
    margin
        The largest difference of errors that does not matter: asks for equivalence.
    fail_if
        Exit with status 3 if a is shown to be worse than b (by more than the margin, if there is
        one), better, equivalent, if nothing is shown, or if it may be worse. May be repeated.
    paired
        Runs of a and b come in pairs that share a fold or another source of randomness: matched by
        the seeds of a store, else by their names, else by place.
    distribution_std
        With one run of a training: the standard deviation of true error between runs, if it is
        known; 0 if they do not differ. Without it one run gives no verdict.
    multiplicity
        Of more than two: keep the chance of any false finding, or the share of false ones.
    min_runs
        Leave out trainings with fewer runs, and say which.
    level
        Coverage of the intervals.
    seed
        Determines the permutations.
    """
    page = drawing.page()
    trainings = read_trainings(files, reading, scores, a, b)
    # Two of many were named: the others play no part, and must not be counted as many.
    if a in trainings and b in trainings:
        trainings = {str(name): trainings[str(name)] for name in (a, b)}
    trainings = with_runs(trainings, min_runs)
    # A gate is about one pair; of many there is no single verdict to gate on.
    many = len(trainings) > 2 and a is None and b is None
    if many or baseline is not None:
        if fail_if or margin is not None:
            raise UsageError("--margin and --fail-if compare two trainings: name them --a and --b.")
        chosen: dict[str, Any] = {"paired": paired, "distribution_std": distribution_std, "level": level}
        return compare_many(page, trainings, scores, baseline=baseline, multiplicity=multiplicity, **chosen)
    check_gates(fail_if, margin)
    one, two = choose_pair(a, b, list(trainings), "training")
    chosen = scores.comparing if scores.scores else {"distribution_std": distribution_std}
    chosen |= {"paired": paired, "margin": margin, "level": level, "rng": seed}

    from curvewise.variance.compare import compare_runs

    with quietly():
        result = compare_runs(trainings[one], trainings[two], names=(one, two), **chosen)
    status = gate_status(fail_if, conditions_of(result))
    return page.answer(result, result.table_note(), style="bold", status=status)


@variance.command
def plan(
    files: OptionalFiles = [],
    /,
    *,
    difference: Size = None,
    distribution_std: Size = None,
    a: str | None = None,
    b: str | None = None,
    test_set_std: Size = None,
    independent_std: Size = None,
    examples: Annotated[int | None, Parameter(validator=Number(gte=2))] = None,
    disagreement: Size = None,
    power: Level = 0.8,
    paired: Flag = False,
    target: Literal["distribution", "test set"] = "distribution",
    level: Level = 0.95,
    reading: PredictionReading = PredictionReading(),
    drawing: Drawing = Drawing(),
) -> int:
    """Plan how many runs to train: to detect a difference, or to show that runs really differ.

    What is known of the variance comes from a pilot (files of runs that exist) or from numbers.
    Without --difference, the plan says which difference as many runs as the pilot has detect.

    Example: `curvewise variance plan new.npz old.npz --difference 0.002`

    Example: `curvewise variance plan --difference 0.002 --test-set-std 0.002 --target "test set"`

    Parameters
    ----------
    files
        A pilot: predictions of a few runs of one training, or of both.
    difference
        The difference of errors that should be seen: 0.002 for 0.2 points.
    distribution_std
        Instead: the standard deviation of true error that should be told from 0.
    a
        One training of a store of runs, or of a table with several.
    b
        The other one.
    test_set_std
        Without a pilot: the standard deviation of test error between runs.
    independent_std
        Without a pilot: what of it independent errors would give.
    examples
        Size of the test set; a pilot knows it.
    disagreement
        Share of examples that one training usually gets right and the other wrong.
    power
        Chance of seeing what is there.
    paired
        Runs of both trainings come in pairs that share seeds.
    target
        Show it for new examples, or for this test set only.
    level
        Coverage of the interval that goes with the test.
    """
    page = drawing.page()
    from curvewise.variance.plan import plan_runs

    if len(files) > 2:
        raise UsageError("A pilot is of one training or of two: give one file or two.")
    if (a is None) != (b is None) or (a is not None and len(files) != 1):
        raise UsageError("--a and --b name two trainings of one store or table: give both, and one file.")
    if a is not None and b is not None:
        read = [reading.load(files[0], alone=False, learner=name) for name in (a, b)]
    else:
        if len(files) == 1 and reading.learner is None:
            _check_store_pair(files[0], reading)
        read = [reading.load(file, alone=len(files) == 1) for file in files]
    effect: dict[str, Any] = {"difference": difference, "distribution_std": distribution_std}
    known: dict[str, Any] = {"test_set_std": test_set_std, "independent_std": independent_std}
    known |= {"examples": examples, "disagreement": disagreement, "paired": paired}
    known |= dict(zip(("a", "b"), read, strict=False))
    with quietly():
        result = plan_runs(**effect, target=target, power=power, level=level, **known)
    return page.answer(result, "Power and precision by number of runs")


@variance.command
def sweep(
    files: Files,
    /,
    *,
    by: str | None = None,
    name: str | None = None,
    what: Literal["std", "error", "runs"] = "std",
    level: Level = 0.95,
    seed: AtLeast0 = 0,
    reading: PredictionReading = PredictionReading(),
    drawing: Drawing = Drawing(),
) -> int:
    """Decompose the variance between runs at each value of a hyperparameter, or length of training.

    Give a file of runs for each value, as VALUE=FILE; or the store of a study and --by.

    Example: `curvewise variance sweep 0.25=slow.npz 0.5=usual.npz 1=fast.npz --plot sweep.png`

    Example: `curvewise variance sweep study-runs --by epochs --what runs --plot lengths.png`

    Parameters
    ----------
    files
        VALUE=FILE for each value; or a store.
    by
        Coordinate of the runs in a store whose values are swept: rate, epochs, …
    name
        What the hyperparameter is called, such as 'learning rate'; by default as --by says.
    what
        What --plot draws: standard deviations, mean errors, or the errors of the runs at each value.
    level
        Coverage of the intervals.
    seed
        Determines bootstrap intervals, where there are any.
    """
    page = drawing.page()
    from curvewise.variance.variances import measure_sweep

    found = named_runs(files, reading, by, "0.5=usual.npz")
    if odd := [text for text in found if not _is_number(text)]:
        raise UsageError(f"{odd[0]!r} is no number: a sweep is along the values of a hyperparameter.")
    values = _by_number(found)
    with quietly():
        result = measure_sweep(values, name=name or by or "hyperparameter", level=level, rng=seed)
    title = f"{len(values)} values of the {result.name}"
    return page.answer(result, title, draw=partial(result.plot, what=what))


@variance.command
def twins(
    files: Files,
    /,
    *,
    reseeded: str | None = None,
    level: Level = 0.95,
    reading: PredictionReading = PredictionReading(),
    drawing: Drawing = Drawing(),
) -> int:
    """Measure how often runs disagree with twins in which a single weight was changed.

    Give the store of a study, whose runs are joined by their seeds; or a file of runs that were
    left alone, and one for each set of twins as WHEN=FILE.

    Example: `curvewise variance twins study-runs --where epochs=64 --plot twins.png`

    Example: `curvewise variance twins alone.npz 0=poked.npz 4=later.npz`

    Parameters
    ----------
    files
        A store; or the reference, then its twins. A twin has the name of its run, or its place.
    reseeded
        File of as many runs with other seeds, to be compared with the reference. By default the runs
        of the reference are compared among themselves.
    level
        Coverage of the intervals.
    """
    page = drawing.page()
    from curvewise.store.tables import read_twins, store_folder
    from curvewise.variance.load import read_labels
    from curvewise.variance.sources import measure_twins

    if len(files) == 1:
        if (folder := store_folder(files[0])) is None:
            raise UsageError(f"{files[0]} is no store of runs: give its twins as well, such as 0=poked.npz.")
        raw, others = read_twins(folder, reading.learner, read_where(reading.where), reading.key)
        given: dict[str, Any] = {"labels": read_labels(reading.labels), "groups": read_labels(reading.groups, "group")}
        given |= {"kind": reading.kind, "axes": reading.axes or None}
        base: Any = raw.checked(**given)
        note("; ".join(map(in_options, base.notes)))
        poked: dict[Any, Any] = {when: each.checked(**given) for when, each in others.items()}
    else:
        base = reading.load(files[0], alone=False)
        poked = named_runs(files[1:], reading, None, "0=poked.npz")
        poked = _by_number(poked) if all(map(_is_number, poked)) else poked
    other = None if reseeded is None else reading.load(reseeded, alone=False)
    with quietly():
        result = measure_twins(base, poked, reseeded=other, level=level)
    return page.answer(result, f"{result.runs:,} runs with their twins")


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _by_number(found: Mapping[str, Predictions]) -> dict[float, Predictions]:
    """Return runs by the numbers that their names are, each of which may be there once."""
    first: dict[float, str] = {}
    for text in found:
        if (other := first.setdefault(float(text), text)) != text:
            raise UsageError(f"{other!r} and {text!r} are the same number: give the runs of each value once.")
    return {float(text): runs for text, runs in found.items()}


@variance.command(name="test-sets")
def compare_sets(
    files: Files,
    /,
    *,
    pair: Words = [],
    level: Level = 0.95,
    seed: AtLeast0 = 0,
    reading: PredictionReading = PredictionReading(),
    drawing: Drawing = Drawing(),
) -> int:
    """Compare the variance of the same runs on several test sets, such as shifted data.

    Give a file for each test set, as NAME=FILE; or the store of a study with evaluation sets.

    Example: `curvewise variance test-sets plain.npz sketch=sketches.npz --plot sets.png`

    Parameters
    ----------
    files
        The same runs on each test set; or a store.
    pair
        Two of the test sets: --plot draws each run on both, in place of the correlations.
    level
        Coverage of the intervals.
    seed
        Determines bootstrap intervals, where there are any.
    """
    page = drawing.page()
    from curvewise.store.tables import evaluations_in_store, store_folder
    from curvewise.variance.luck import compare_test_sets

    if len(files) == 1 and (folder := store_folder(files[0])):
        sets = evaluations_in_store(folder, read_where(reading.where))
        found = {name: reading.load(files[0], directed=True, key=key) for name, key in sets.items()}
        found = _with_shared_examples(found)
    else:
        found = named_runs(files, reading, None)
    if len(found) < 2:
        raise UsageError(f"There is one test set, {next(iter(found))!r}: give the runs on another, as NAME=FILE.")
    if pair and (len(pair) != 2 or not set(pair) <= set(found)):
        raise UsageError(f"--pair {','.join(pair)}: name two test sets, such as --pair {','.join(list(found)[:2])}.")
    with quietly():
        result = compare_test_sets(found, level=level, rng=seed)
    draw = partial(result.plot, pair=tuple(pair)) if pair else None
    return page.answer(result, f"{result.runs:,} runs on {len(found)} test sets", draw=draw)


def _with_shared_examples(found: Mapping[str, Predictions]) -> dict[str, Predictions]:
    """Name examples alike on test sets of a store with the same labels: perturbed copies of one another."""
    import numpy as np

    named: dict[str, Predictions] = {}
    for name, each in found.items():
        truth: Any = each.labels
        same = (
            k for k, other in named.items() if truth is not None and np.array_equal(truth, np.asarray(other.labels))
        )
        first = next(same, name)
        ids = np.array([f"{first} {i}" for i in range(each.examples)])
        named[name] = each if each.example_ids is not None else replace(each, example_ids=ids)
    return named


def named_runs(
    files: Sequence[str], reading: PredictionReading, by: str | None, example: str | None = None
) -> dict[str, Predictions]:
    """Read the runs of each NAME=FILE; with ``by``, those of a store at each value of a coordinate.

    A file without a name is called by its own, unless there is an ``example`` of what has to be given.
    """
    if by is not None:
        from curvewise.store.tables import store_folder, values_in_store

        folder = store_folder(files[0]) if len(files) == 1 else None
        if folder is None:
            raise UsageError("--by goes with one store of runs, such as study-runs; give other files as VALUE=FILE.")
        where = read_where(reading.where) or {}
        values = values_in_store(folder, by, where | ({"learner": reading.learner} if reading.learner else {}))
        return {str(v): reading.load(files[0], directed=True, where=where | {by: v}) for v in values}
    names = named_files(files)
    if example is not None and (plain := [file for file in files if not split_name(file)[0]]):
        from curvewise.store.tables import store_folder

        if len(files) == 1 and store_folder(plain[0]) is not None:
            raise UsageError(f"{plain[0]} is a store of runs: say along which coordinate, such as --by rate.")
        raise UsageError(f"{plain[0]} does not say which: give it with its value, such as {example}.")
    return {name: reading.load(file, alone=False, directed=True) for name, file in names.items()}


def read_trainings(
    files: list[str], reading: PredictionReading, scores: ScoreReading, a: str | None = None, b: str | None = None
) -> dict[str, Any]:
    """Read predictions or scores of each training, by name."""
    if scores.scores:
        found: dict[str, Any] = dict(scores.load(files, reading))
    elif len(files) == 1 and a is not None and b is not None:
        found = {name: reading.load(files[0], learner=name, directed=True) for name in (a, b)}
    else:
        if len(files) == 1:
            _check_store_pair(files[0], reading)
        found = {name: reading.load(file, alone=False, directed=True) for name, file in named_files(files).items()}
    if len(found) < 2:
        raise UsageError(
            f"There is one training, {next(iter(found))!r}: a comparison needs two. Give a file for"
            " each, or name two trainings of one table with --a and --b; of a table of scores, --by"
            " names the column that tells them apart."
        )
    return found


def _check_store_pair(file: str, reading: PredictionReading) -> None:
    """Say how to name two trainings of a store with several learners."""
    from curvewise.store.tables import store_folder, trainings_in_store

    folder = store_folder(file)
    if folder is None:
        return
    learners, apart = trainings_in_store(folder, read_where(reading.where))
    if len(learners) > 1:
        options = ["--a", learners[0], "--b", learners[1]]
        for chosen in (*reading.where, *(f"{name}={value}" for name, value in apart.items())):
            options += ["--where", chosen]
        raise UsageError(
            f"{file} holds runs of {len(learners)} learners ({list_names(learners)}): name two trainings, such as "
            f"{shlex.join(options)}."
        )


def with_runs(trainings: dict[str, Any], fewest: int) -> dict[str, Any]:
    """Leave out trainings with too few runs, and say which."""
    runs = {name: getattr(t, "runs", None) or len(t) for name, t in trainings.items()}
    few = [name for name, count in runs.items() if count < fewest]
    alone = [name for name, t in trainings.items() if not hasattr(t, "runs") and runs[name] < 2]
    if len(runs) - len(alone) < 2 <= len(alone):
        raise UsageError(
            f"{len(alone)} of {len(runs)} trainings have one score each, such as {alone[0]!r}, and one score per"
            " training cannot be compared: nothing says how much it varies between runs. Give a row for each of several"
            " runs of a training, or files of what each training answered to every example, without --scores."
        )
    if alone and fewest < 2 and len(runs) > 2:
        raise UsageError(
            f"{len(alone)} training(s) have one score, such as {alone[0]!r}: --min-runs 2 leaves them out."
        )
    if few:
        shown = ", ".join(map(repr, few[:5])) + (" …" if len(few) > 5 else "")
        warn(f"{len(few)} training(s) have fewer than {fewest} runs and are left out: {shown}.")
    kept = {name: t for name, t in trainings.items() if name not in few}
    if len(kept) < 2:
        raise UsageError(f"--min-runs {fewest} leaves {len(kept)} training(s) to compare.")
    return kept


def compare_many(page: Page, trainings: dict[str, Any], scores: ScoreReading, **chosen: Any) -> int:
    """Compare all pairs of trainings and show the clearest."""
    from curvewise.variance.compare import compare_trainings

    trainings, shared = without_shared_path(trainings)
    if shared and (baseline := chosen.get("baseline")) is not None:
        chosen["baseline"] = str(baseline).removeprefix(shared)
    with quietly():
        result = compare_trainings(trainings, **chosen, **(scores.comparing if scores.scores else {}))
    order = sorted(range(len(result.pairs)), key=lambda i: result.adjusted[i])[:MOST_PAIRS]
    rows = {name: [column[i] for i in order] for name, column in result.readable().items()}
    if page.markup is None:
        # A name that leaves room for numbers: its end tells more than its beginning.
        rows |= {key: [n if len(n) <= 20 else f"{n[:5]}…{n[-14:]}" for n in rows[key]] for key in ("a", "b")}
    count = len(result.pairs)
    which = f"{count} pairs" if len(order) == count else f"The {len(order)} clearest of {count:,} pairs"
    title = f"{which} (a minus b, intervals hold together at {format_level(result.level)})"
    return page.answer(result, title, columns=rows)


def without_shared_path(trainings: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Strip the folders that all names start with; return them as well."""
    parts = [name.split("/")[:-1] for name in trainings]
    common = 0
    while all(len(p) > common and p[common] == parts[0][common] for p in parts):
        common += 1
    shared = "".join(f"{part}/" for part in parts[0][:common])
    if shared:
        note(f"names without {shared}, with which all of them start")
    return {name.removeprefix(shared): t for name, t in trainings.items()}, shared
