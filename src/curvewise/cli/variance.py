"""``curvewise variance``: decompose, examine, compare, plan."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter
from cyclopts.validators import Number

from curvewise.cli._console import (
    GATE,
    UsageError,
    as_options,
    keeping_user_text,
    note,
    sentences,
    warn,
    warn_each,
)
from curvewise.cli._files import quietly, save_plot
from curvewise.cli._options import Drawing, Files, Showing
from curvewise.cli._predictions import Level, PredictionReading, ScoreReading
from curvewise.cli._trainings import (
    choose_two,
    compare_many,
    gate_holds,
    read_trainings,
    show_result,
    with_runs,
    worded_columns,
)
from curvewise.errors import InputError

variance = App(
    name="variance",
    help="Which differences between runs are real, and which are the finite test set?\n\n"
    "FILE holds what every run predicted for every test example: .npy, .npz, .safetensors, a "
    "folder with one file per run, or a CSV or Parquet table with a row for each run and example.",
)

Gate = Literal["worse", "better", "equivalent", "undecided", "maybe-worse"]
Question = Literal[
    "accuracy", "luck", "calibration", "disagreement", "ensemble", "pairs", "bipartitions"
]
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
"""What can be answered without knowing which class was predicted."""
QUICK = tuple(name for name in EXAMINED if name != "bipartitions")

File = Annotated[str, Parameter(name="FILE")]
OptionalFiles = Annotated[list[str], Parameter(name="FILE...", negative="", show_default=False)]
Positive = Annotated[float | None, Parameter(validator=Number(gt=0))]


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
    """Split the variance between runs of one training into what is real and what is the test set.

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
        Of the distribution-wise standard deviation: by default F, or what holds where runs have
        heavy tails or differ in few examples.
    level
        Coverage of the intervals.
    seed
        Determines the bootstrap.
    """
    page = (showing or Showing()).page()
    from curvewise.variance import decompose_totals, decompose_variance

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
    said = as_options(sentences(result))  # which name nothing of the user's
    show_result(page, result, f"{result.runs:,} runs, {result.examples:,} examples", said=said)
    save_plot(drawing.plot if drawing else None, result.plot)
    return page.close()


def _totals(
    file: str, counts: Path, column: str | None, reading: ScoreReading, large: bool
) -> tuple[Any, Any]:
    """Errors of runs, as fractions, and how many of the runs got each example wrong."""
    import numpy as np

    from curvewise.io import load_scores

    if not reading.scores or reading.unit not in (None, "fraction", "percent"):
        raise UsageError("--counts goes with --scores: FILE then holds one accuracy per run.")
    runs = reading.load([file], large)
    if len(runs) != 1:
        raise UsageError(f"{file} holds {len(runs)} trainings: --counts is for one.")
    errors = next(iter(runs.values())) / (100 if reading.unit == "percent" else 1)
    try:
        found = load_scores(
            str(counts), value=column, unit="loss", higher_is_better=False, allow_large=large
        )
    except InputError as error:
        to_option = keeping_user_text(lambda text: text.replace("value=", "--counts-column "))
        raise UsageError(to_option(str(error))) from None
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
    level: Level = 0.95,
    reading: PredictionReading | None = None,
    drawing: Drawing | None = None,
    showing: Showing | None = None,
) -> int:
    """Look at the runs of one training from other sides.

    accuracy: do test errors vary as independent errors would? luck: do lucky seeds stay lucky on
    other examples? calibration: do err/2n and its like predict the variance here? disagreement:
    is it as large as the error? ensemble: what does a vote of the runs gain? pairs: which examples
    fail together? bipartitions: the same formulas on all two-class tasks.

    Example: `curvewise variance examine runs.npz --what luck --plot luck.png`

    Parameters
    ----------
    file
        Predictions of many runs.
    what
        Which of these to look at; repeat for several. By default all that the predictions allow
        except bipartitions.
    level
        Coverage of the intervals.
    """
    page = (showing or Showing()).page()
    directed = not what or not {"accuracy", "luck"}.isdisjoint(what)
    given = (reading or PredictionReading()).load(file, directed=directed)
    asked: list[str] = list(what) or _answerable(given)
    if drawing and drawing.plot and len(asked) > 1:
        raise UsageError(f"--plot draws one picture: choose with --what, of {', '.join(asked)}.")
    results = {}
    for name in asked:
        with quietly():
            results[name] = _examine(name, given, level)
        page.say(sentences(results[name]))
        if page.markup:
            page.table(name, worded_columns(results[name]), None)
        warn_each(results[name].all_warnings)
    page.document = {name: result.to_dict() for name, result in results.items()}
    save_plot(drawing.plot if drawing else None, results[asked[0]].plot)
    return page.close()


def _answerable(given: Any) -> list[str]:
    """What can be asked of these predictions, without what takes long."""
    if not given.binary:
        return ["luck"]
    return [q for q in QUICK if given.has_classes or q in OF_ERRORS]


def _examine(name: str, given: Any, level: float) -> Any:
    import curvewise.variance

    return getattr(curvewise.variance, EXAMINED[name])(given, level=level)


@variance.command
def compare(
    files: Files,
    /,
    *,
    a: str | None = None,
    b: str | None = None,
    baseline: str | None = None,
    margin: Annotated[float | None, Parameter(validator=Number(gt=0))] = None,
    fail_if: Annotated[list[Gate], Parameter(negative="", show_default=False)] = [],  # noqa: B006
    paired: Annotated[bool | None, Parameter(negative="--unpaired", show_default=False)] = None,
    distribution_std: Annotated[
        float | None, Parameter(validator=Number(gte=0), show_default=False)
    ] = None,
    multiplicity: Literal["holm", "bh"] = "holm",
    min_runs: Annotated[int, Parameter(validator=Number(gte=1))] = 1,
    level: Level = 0.95,
    seed: int = 0,
    reading: PredictionReading | None = None,
    scores: ScoreReading | None = None,
    drawing: Drawing | None = None,
    showing: Showing | None = None,
) -> int:
    """Tell whether training a is better than training b, on this test set and beyond it.

    Give one file for each training; with more than two, all pairs are compared. With --scores one
    table may hold them all.

    Example: `curvewise variance compare new.npz old.npz --margin 0.005 --fail-if worse`

    Parameters
    ----------
    files
        Predictions of runs, a file or folder for each training; the first is a, the second b.
    a
        Which training to judge, by the name of its file (or as --by names it).
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
        Whether run r of a and of b share a seed. By default only if runs have the same names.
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
    if a in trainings and b in trainings:
        trainings = {str(name): trainings[str(name)] for name in (a, b)}
    trainings = with_runs(trainings, min_runs)
    many = len(trainings) > 2 and a is None and b is None
    if many or baseline is not None:
        if fail_if or margin is not None:
            raise UsageError("--margin and --fail-if compare two trainings: name them --a and --b.")
        return compare_many(
            page,
            trainings,
            by_score,
            drawing,
            baseline=baseline,
            paired=paired,
            multiplicity=multiplicity,
            distribution_std=distribution_std,
            level=level,
        )
    one, two = choose_two(trainings, a, b)
    options = by_score.options if by_score.scores else {"distribution_std": distribution_std}

    from curvewise.variance import compare_runs

    with quietly():
        result = compare_runs(
            trainings[one],
            trainings[two],
            names=(one, two),
            paired=paired,
            margin=margin,
            level=level,
            rng=seed,
            **options,
        )
    show_result(page, result, f"{one} minus {two} ({level:.0%} intervals)", style="bold")
    save_plot(drawing.plot if drawing else None, result.plot)
    met = [gate for gate in fail_if if gate_holds(result, gate)]
    if met:
        warn(f"--fail-if {met[0]} holds: exit status {GATE}.")
    return page.close(GATE if met else 0)


@variance.command
def plan(
    files: OptionalFiles = [],  # noqa: B006
    /,
    *,
    difference: Positive = None,
    distribution_std: Positive = None,
    test_set_std: Positive = None,
    independent_std: Positive = None,
    examples: Annotated[int | None, Parameter(validator=Number(gte=2))] = None,
    disagreement: Positive = None,
    power: Annotated[float, Parameter(validator=Number(gt=0, lt=1))] = 0.8,
    paired: Annotated[bool, Parameter(negative="", show_default=False)] = False,
    target: Literal["distribution", "test set"] = "distribution",
    level: Level = 0.95,
    reading: PredictionReading | None = None,
    drawing: Drawing | None = None,
    showing: Showing | None = None,
) -> int:
    """Say how many runs to train: to see a difference, or to see that runs really differ.

    What is known of the variance comes from a pilot (files of runs that exist) or from numbers.

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
    from curvewise.variance import decompose_variance, plan_runs

    if len(files) > 2:
        raise UsageError("A pilot is of one training or of two: give one file or two.")
    read = [(reading or PredictionReading()).load(file, alone=len(files) == 1) for file in files]
    with quietly():
        pilots = tuple(decompose_variance(given, level=level) for given in read)
        result = plan_runs(
            difference=difference,
            distribution_std=distribution_std,
            pilot=pilots if len(pilots) == 2 else pilots[0] if pilots else None,
            test_set_std=test_set_std,
            independent_std=independent_std,
            examples=examples,
            disagreement=disagreement,
            power=power,
            level=level,
            paired=paired,
            target=target,
        )
    show_result(page, result, "What runs buy")
    save_plot(drawing.plot if drawing else None, result.plot)
    return page.close()
