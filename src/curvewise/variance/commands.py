"""``curvewise variance``: decompose, examine, compare, plan, sweep, twins, test-sets."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter
from cyclopts.validators import Number

from curvewise.cli.console import (
    GATE,
    READING,
    STDIN,
    Drawing,
    Files,
    Level,
    Page,
    Showing,
    Texts,
    UsageError,
    Words,
    choose,
    expand_patterns,
    in_options,
    named_files,
    note,
    note_reading,
    read_where,
    save_plot,
    split_name,
    use_options,
    warn,
    warn_each,
)
from curvewise.errors import InputError, list_names, quietly

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

File = Annotated[str, Parameter(name="FILE")]
OptionalFiles = Annotated[
    list[str], Parameter(name="FILE...", negative="", show_default=False, converter=expand_patterns)
]
Positive = Annotated[float | None, Parameter(validator=Number(gt=0))]
Flag = Annotated[bool, Parameter(negative="", show_default=False)]

OPTIONS = {"value": "value_column", "accuracies": "accuracy", "predictions": "", "first": "", "pilot": ""}
"""Options that stand for an argument of another name; files are given without one."""

MOST_PAIRS = 30
"""Pairs of trainings that are shown; --json has all of them."""

Kind = Literal["labels", "errors", "correct", "losses", "scores", "probabilities"]


@Parameter(name="*", group=READING)
@dataclass
class PredictionReading:
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
        Which column plays a part, as PART=COLUMN: run, example, prediction, error, label, …
    learner
        Whose runs to take where a table or a store holds those of several.
    where
        Which runs of a store, as NAME=VALUE: n=300. May be repeated.
    allow_large
        Read a compressed file whatever it unpacks to.
    """

    labels: Path | None = None
    kind: Kind | None = None
    axes: Words = field(default_factory=list)
    groups: Path | None = None
    key: str | None = None
    column: Texts = field(default_factory=list)
    learner: str | None = None
    where: Texts = field(default_factory=list)
    allow_large: Flag = False

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
        columns: dict[str, str | None] = {}
        for pair in self.column:
            part, equals, name = pair.partition("=")
            if not equals or not part.strip():
                raise UsageError(f"--column {pair!r} must read PART=COLUMN, such as run=seed.")
            columns[part.strip()] = name or None
        # The other options are arguments of the same name.
        options: dict[str, Any] = {name: value for name, value in vars(self).items() if name != "column"}
        options |= {"axes": self.axes or None, "columns": columns or None, "where": read_where(self.where)}
        found = load_predictions(file, **options | {"learner": learner or self.learner} | more)
        # Asked here, where the message can name the file and the option.
        found = as_predictions(found, argument=file, directed=directed)
        about = repr(found).partition("(")[2].removesuffix(")")
        note_reading([about, *found.notes], "" if alone else file)
        return found


@Parameter(name="*", group=READING)
@dataclass
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
    unit: Literal["fraction", "percent", "loss", "score"] | None = None
    higher_is_better: Annotated[
        bool | None, Parameter(name=("--higher-is-better", "--accuracy"), negative="--lower-is-better")
    ] = None

    def __post_init__(self) -> None:
        """Refuse options of scores without scores."""
        asked = self.value_column or self.by or self.unit or self.higher_is_better is not None
        if asked and not self.scores:
            raise UsageError("--value-column, --by, --unit and --higher-is-better are for --scores.")

    @property
    def options(self) -> dict[str, Any]:
        """Options for the comparison: accuracies have become errors when they were read."""
        unit = self.unit or "fraction"
        return {"unit": unit, "higher_is_better": unit == "score"}

    def load(self, files: Sequence[str], allow_large: bool = False) -> dict[str, FloatArray]:
        """Read the scores of every training in the files."""
        from curvewise.variance.load import load_scores

        found: dict[str, FloatArray] = {}
        options: dict[str, Any] = {"value": self.value_column, "by": self.by or None, "unit": self.unit}
        options |= {"higher_is_better": self.higher_is_better, "allow_large": allow_large}
        for word in files:
            called, file = split_name(word)
            read = load_scores(file, **options)
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
    seed: int = 0,
    reading: PredictionReading | None = None,
    scores: ScoreReading | None = None,
    drawing: Drawing | None = None,
    showing: Showing | None = None,
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
    page = (showing or Showing()).page()
    from curvewise.variance.decompose import decompose_totals, decompose_variance

    if scores is not None and scores.scores and counts is None:
        raise UsageError(
            "One score per run cannot be decomposed: add --counts with the number of runs that got"
            " each example wrong, or see `curvewise variance compare --scores`."
        )
    if counts is not None:
        large = reading is not None and reading.allow_large
        totals = _totals(file, counts, counts_column, scores or ScoreReading(), large)
        with quietly():
            result = decompose_totals(*totals, level=level)
    else:
        given = (reading or PredictionReading()).load(file)
        with quietly():
            result = decompose_variance(given, interval=interval, level=level, rng=seed)
    return show_result(page, result, f"{result.runs:,} runs, {result.examples:,} examples", drawing)


def _totals(file: str, counts: Path, column: str | None, reading: ScoreReading, large: bool) -> tuple[Any, Any]:
    """Read errors of runs, as fractions, and how many of the runs got each example wrong."""
    import numpy as np

    from curvewise.variance.load import load_scores

    if not reading.scores or reading.unit not in (None, "fraction", "percent"):
        raise UsageError("--counts goes with --scores: FILE then holds one accuracy per run.")
    runs = reading.load([file], large)
    if len(runs) != 1:
        raise UsageError(f"{file} holds {len(runs)} trainings: --counts is for one.")
    errors = next(iter(runs.values())) / (100 if reading.unit == "percent" else 1)
    use_options(OPTIONS | {"value": "counts_column", "source": "counts"})
    try:
        found = load_scores(str(counts), value=column, unit="loss", higher_is_better=False, allow_large=large)
    except InputError as error:
        raise UsageError(error.message) from None
    use_options(OPTIONS)
    wrong = np.concatenate(list(found.values()))
    right = len(errors) - wrong
    # Accuracies were turned into errors when read; counts may be of right or of wrong answers.
    fits, turned = (abs(x.mean() / len(errors) - errors.mean()) for x in (wrong, right))
    if turned < 1e-3 < fits:
        note(f"{counts.name} counts right answers: their mean is the accuracy of the runs.")
        return errors, right
    return errors, wrong


@variance.command
def examine(
    file: File,
    /,
    *,
    what: Annotated[list[Question], Parameter(negative="", show_default=False)] = [],  # noqa: B006
    pair: Words = [],  # noqa: B006
    level: Level = 0.95,
    reading: PredictionReading | None = None,
    drawing: Drawing | None = None,
    showing: Showing | None = None,
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

    page = (showing or Showing()).page()
    directed = not what or not {"accuracy", "luck"}.isdisjoint(what)
    given = (reading or PredictionReading()).load(file, directed=directed)
    asked: list[str] = list(what)
    if not asked:  # all that these predictions allow, without what takes long
        quick = [q for q in EXAMINED if q != "bipartitions" and (given.has_classes or q in OF_ERRORS)]
        asked = quick if given.binary else ["luck"]
    if drawing and drawing.plot and len(asked) > 1:
        raise UsageError(f"--plot draws one picture: choose with --what, of {', '.join(asked)}.")
    if pair and "pairs" not in asked:
        raise UsageError(f"--pair {','.join(pair)} goes with --what pairs.")
    by_index = given.example_ids is None or given.example_ids.dtype.kind in "iu"
    named = {"pairs": [[int(p) if by_index and p.isdigit() else p for p in pair]]} if pair else {}
    results = {}
    for name in asked:
        with quietly():
            more = named if name == "pairs" else {}
            results[name] = getattr(curvewise.variance, EXAMINED[name])(given, level=level, **more)
        if page.markup or page.verbose:
            page.table(name.capitalize(), results[name].readable(), None)
        else:
            page.say(name.capitalize(), style="bold")
        page.say(in_options(results[name].sentences()), close=not page.verbose)
        warn_each(results[name].all_warnings)
    page.document = {name: result.to_dict() for name, result in results.items()}
    save_plot(drawing.plot if drawing else None, results[asked[0]].plot)
    return page.close()


@variance.command
def compare(
    files: Files,
    /,
    *,
    a: str | None = None,
    b: str | None = None,
    baseline: str | None = None,
    margin: Positive = None,
    fail_if: Annotated[list[Gate], Parameter(negative="", show_default=False)] = [],  # noqa: B006
    paired: Annotated[bool, Parameter(negative="--unpaired", show_default=False)] = False,
    distribution_std: Annotated[float | None, Parameter(validator=Number(gte=0), show_default=False)] = None,
    multiplicity: Literal["holm", "bh"] = "holm",
    min_runs: Annotated[int, Parameter(validator=Number(gte=1))] = 1,
    level: Level = 0.95,
    seed: int = 0,
    reading: PredictionReading | None = None,
    scores: ScoreReading | None = None,
    drawing: Drawing | None = None,
    showing: Showing | None = None,
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
    page = (showing or Showing()).page()
    by_score = scores or ScoreReading()
    trainings = read_trainings(files, reading or PredictionReading(), by_score, a, b)
    # Two of many were named: the others play no part, and must not be counted as many.
    if a in trainings and b in trainings:
        trainings = {str(name): trainings[str(name)] for name in (a, b)}
    trainings = with_runs(trainings, min_runs)
    # A gate is about one pair; of many there is no single verdict to gate on.
    many = len(trainings) > 2 and a is None and b is None
    if many or baseline is not None:
        if fail_if or margin is not None:
            raise UsageError("--margin and --fail-if compare two trainings: name them --a and --b.")
        options: dict[str, Any] = {"paired": paired, "distribution_std": distribution_std, "level": level}
        return compare_many(page, trainings, by_score, drawing, baseline=baseline, multiplicity=multiplicity, **options)
    names = list(trainings)
    if a is None and b is None:
        a, b = names
    one, two = choose("--a", a, names), choose("--b", b, names)
    if one == two:
        raise UsageError(f"Both are {one!r}: a comparison needs two trainings.")
    options = by_score.options if by_score.scores else {"distribution_std": distribution_std}
    options |= {"paired": paired, "margin": margin, "level": level, "rng": seed}

    from curvewise.variance.compare import compare_runs

    with quietly():
        result = compare_runs(trainings[one], trainings[two], names=(one, two), **options)
    held = {gate: result.verdict == gate for gate in ("equivalent", "undecided")}
    held |= {"worse": result.worse, "better": result.better, "maybe-worse": result.maybe_worse}
    met = [gate for gate in fail_if if held[gate]]
    if met:
        warn(f"--fail-if {met[0]} holds: exit status {GATE}.")
    return show_result(page, result, result.table_note(), drawing, style="bold", status=GATE if met else 0)


@variance.command
def plan(
    files: OptionalFiles = [],  # noqa: B006
    /,
    *,
    difference: Positive = None,
    distribution_std: Positive = None,
    a: str | None = None,
    b: str | None = None,
    test_set_std: Positive = None,
    independent_std: Positive = None,
    examples: Annotated[int | None, Parameter(validator=Number(gte=2))] = None,
    disagreement: Positive = None,
    power: Annotated[float, Parameter(validator=Number(gt=0, lt=1))] = 0.8,
    paired: Flag = False,
    target: Literal["distribution", "test set"] = "distribution",
    level: Level = 0.95,
    reading: PredictionReading | None = None,
    drawing: Drawing | None = None,
    showing: Showing | None = None,
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
    page = (showing or Showing()).page()
    from curvewise.variance.decompose import decompose_variance
    from curvewise.variance.plan import plan_runs

    if len(files) > 2:
        raise UsageError("A pilot is of one training or of two: give one file or two.")
    how = reading or PredictionReading()
    if (a is None) != (b is None) or (a is not None and len(files) != 1):
        raise UsageError("--a and --b name two trainings of one store or table: give both, and one file.")
    if a is not None and b is not None:
        read = [how.load(files[0], alone=False, learner=name) for name in (a, b)]
    else:
        if len(files) == 1 and how.learner is None:
            _check_store_pair(files[0], how)
        read = [how.load(file, alone=len(files) == 1) for file in files]
    with quietly():
        pilots = tuple(decompose_variance(given, level=level) for given in read)
        effect: dict[str, Any] = {"difference": difference, "distribution_std": distribution_std}
        known: dict[str, Any] = {"test_set_std": test_set_std, "independent_std": independent_std}
        known |= {"pilot": pilots[0] if len(pilots) == 1 else pilots or None}
        known |= {"examples": examples, "disagreement": disagreement, "paired": paired}
        result = plan_runs(**effect, target=target, power=power, level=level, **known)
    return show_result(page, result, "Power and precision by number of runs", drawing)


@variance.command
def sweep(
    files: Files,
    /,
    *,
    by: str | None = None,
    name: str | None = None,
    what: Literal["std", "error", "runs"] = "std",
    level: Level = 0.95,
    seed: int = 0,
    reading: PredictionReading | None = None,
    drawing: Drawing | None = None,
    showing: Showing | None = None,
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
    page = (showing or Showing()).page()
    from curvewise.variance.variances import measure_sweep

    found = named_runs(files, reading or PredictionReading(), by, "0.5=usual.npz")
    values: dict[float, Any] = {}
    for text, runs in found.items():
        try:
            values[float(text)] = runs
        except ValueError:
            raise UsageError(f"{text!r} is no number: a sweep is along the values of a hyperparameter.") from None
    with quietly():
        result = measure_sweep(values, name=name or by or "hyperparameter", level=level, rng=seed)
    title = f"{len(values)} values of the {result.name}"
    return show_result(page, result, title, drawing, draw=lambda: result.plot(what=what))


@variance.command
def twins(
    files: Files,
    /,
    *,
    reseeded: str | None = None,
    level: Level = 0.95,
    reading: PredictionReading | None = None,
    drawing: Drawing | None = None,
    showing: Showing | None = None,
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
    page = (showing or Showing()).page()
    from curvewise.store.tables import read_twins, store_folder
    from curvewise.variance.sources import measure_twins

    asked = reading or PredictionReading()
    if len(files) == 1:
        if (folder := store_folder(files[0])) is None:
            raise UsageError(f"{files[0]} is no store of runs: give its twins as well, such as 0=poked.npz.")
        raw, others = read_twins(folder, asked.learner, read_where(asked.where), asked.key)
        base: Any = raw.checked()
        note("; ".join(map(in_options, base.notes)))
        poked: dict[Any, Any] = {when: each.checked() for when, each in others.items()}
    else:
        base = asked.load(files[0], alone=False)
        poked = named_runs(files[1:], asked, None, "0=poked.npz")
        if all(text.replace(".", "", 1).isdigit() for text in poked):
            poked = {float(text): runs for text, runs in poked.items()}
    other = None if reseeded is None else asked.load(reseeded, alone=False)
    with quietly():
        result = measure_twins(base, poked, reseeded=other, level=level)
    return show_result(page, result, f"{result.runs:,} runs with their twins", drawing)


@variance.command(name="test-sets")
def compare_sets(
    files: Files,
    /,
    *,
    pair: Words = [],  # noqa: B006
    level: Level = 0.95,
    seed: int = 0,
    reading: PredictionReading | None = None,
    drawing: Drawing | None = None,
    showing: Showing | None = None,
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
    page = (showing or Showing()).page()
    from curvewise.store.tables import evaluations_in_store, store_folder
    from curvewise.variance.luck import compare_test_sets

    asked = reading or PredictionReading()
    if len(files) == 1 and (folder := store_folder(files[0])):
        sets = evaluations_in_store(folder, read_where(asked.where))
        found = {name: asked.load(files[0], directed=True, key=key) for name, key in sets.items()}
        found = _with_shared_examples(found)
    else:
        found = named_runs(files, asked, None)
    if len(found) < 2:
        raise UsageError(f"There is one test set, {next(iter(found))!r}: give the runs on another, as NAME=FILE.")
    if pair and len(pair) != 2:
        raise UsageError(f"--pair {','.join(pair)}: name two test sets, such as --pair {','.join(list(found)[:2])}.")
    with quietly():
        result = compare_test_sets(found, level=level, rng=seed)
    draw = (lambda: result.plot(pair=tuple(pair))) if pair else None
    return show_result(page, result, f"{result.runs:,} runs on {len(found)} test sets", drawing, draw=draw)


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
        found: dict[str, Any] = dict(scores.load(files, reading.allow_large))
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


def compare_many(
    page: Page, trainings: dict[str, Any], scores: ScoreReading, drawing: Drawing | None, **options: Any
) -> int:
    """Compare all pairs of trainings and show the clearest."""
    from curvewise.variance.compare import compare_trainings

    trainings, shared = without_shared_path(trainings)
    if shared and (baseline := options.get("baseline")) is not None:
        options["baseline"] = str(baseline).removeprefix(shared)
    with quietly():
        result = compare_trainings(trainings, **options, **(scores.options if scores.scores else {}))
    order = sorted(range(len(result.pairs)), key=lambda i: result.adjusted[i])[:MOST_PAIRS]
    rows = {name: [column[i] for i in order] for name, column in result.readable().items()}
    if page.markup is None:
        # A name that leaves room for numbers: its end tells more than its beginning.
        rows |= {key: [n if len(n) <= 20 else f"{n[:5]}…{n[-14:]}" for n in rows[key]] for key in ("a", "b")}
    count = len(result.pairs)
    which = f"{count} pairs" if len(order) == count else f"The {len(order)} clearest of {count:,} pairs"
    title = f"{which} (a minus b, intervals hold together at {result.level:.0%})"
    return show_result(page, result, title, drawing, columns=rows)


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


def show_result(
    page: Page,
    result: Any,
    title: str,
    drawing: Drawing | None,
    *,
    columns: dict[str, Any] | None = None,
    style: str = "",
    status: int = 0,
    draw: Callable[[], Any] | None = None,
) -> int:
    """Print the table, the sentences and the warnings of a result, draw it, and return the exit status."""
    page.document = result.to_dict()
    if columns is None:
        page.result(result, title)
    else:
        page.table(title, columns, None)
    page.say(in_options(result.sentences()), style=style)
    warn_each(result.all_warnings)
    save_plot(drawing.plot if drawing else None, draw or result.plot)
    return page.close(status)
