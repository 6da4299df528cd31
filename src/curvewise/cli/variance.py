"""``curvewise variance``: decompose, compare, plan."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter
from cyclopts.validators import Number

from curvewise.cli._console import GATE, Page, UsageError, sentences, warn, warn_each
from curvewise.cli._files import choose, names_of, quietly, save_plot
from curvewise.cli._options import Drawing, Files, Showing
from curvewise.cli._predictions import Level, PredictionReading, ScoreReading

variance = App(
    name="variance",
    help="Which differences between runs are real, and which are the finite test set?\n\n"
    "FILE holds what every run predicted for every test example: .npy, .npz, .safetensors, a "
    "folder with one file per run, or a CSV or Parquet table with a row for each run and example.",
)

MOST_PAIRS = 30
"""Pairs of trainings that are shown; --json has all of them."""

ERRORS = (
    "estimate",
    "difference",
    "low",
    "high",
    "detectable difference",
    "detectable std",
    "standard error",
    "half-width",
)
"""Columns that hold errors or standard deviations of errors, which are shown in percent."""

Gate = Literal["worse", "better", "equivalent", "undecided", "maybe-worse"]
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
    interval: Literal["auto", "F", "bootstrap"] = "auto",
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
        Predictions of many runs; with --counts, a table with one accuracy or error per run.
    counts
        File with the number of runs that got each example wrong (right, for accuracies), where
        the predictions themselves are gone.
    counts_column
        Its column.
    interval
        Of the distribution-wise standard deviation: by default F, or the bootstrap where runs
        have heavy tails.
    level
        Coverage of the intervals.
    seed
        Determines the bootstrap.
    """
    page = (showing or Showing()).page()
    from curvewise.variance import decompose_totals, decompose_variance

    if counts is not None:
        totals = _totals(file, counts, counts_column, scores or ScoreReading())
        with quietly():
            result = decompose_totals(*totals, level=level)
    else:
        given = (reading or PredictionReading()).load(file)
        with quietly():
            result = decompose_variance(given, interval=interval, level=level, rng=seed)
    _show(page, result, f"{result.runs:,} runs, {result.examples:,} examples")
    save_plot(drawing.plot if drawing else None, result.plot)
    return page.close()


def _totals(file: str, counts: Path, column: str | None, reading: ScoreReading) -> tuple[Any, Any]:
    """Errors of runs, as fractions, and how many of the runs got each example wrong."""
    import numpy as np

    from curvewise.io import load_scores

    if not reading.scores or reading.unit not in (None, "fraction", "percent"):
        raise UsageError("--counts goes with --scores: FILE then holds one accuracy per run.")
    runs = reading.load([file])
    if len(runs) != 1:
        raise UsageError(f"{file} holds {len(runs)} trainings: --counts is for one.")
    errors = next(iter(runs.values())) / (100 if reading.unit == "percent" else 1)
    found = load_scores(str(counts), value=column, unit="loss", higher_is_better=False)
    right = np.concatenate(list(found.values()))
    return errors, len(errors) - right if reading.higher_is_better else right


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
    distribution_std: Annotated[float, Parameter(validator=Number(gte=0))] = 0.0,
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
        With one run of a training: the standard deviation of true error, if it is known.
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
    trainings = _trainings(files, reading or PredictionReading(), by_score)
    trainings = _with_runs(trainings, min_runs)
    many = len(trainings) > 2 and a is None and b is None
    if many or baseline is not None:
        if fail_if or margin is not None:
            raise UsageError("--margin and --fail-if compare two trainings: name them --a and --b.")
        return _compare_many(
            page,
            trainings,
            by_score,
            drawing,
            baseline=baseline,
            paired=paired,
            multiplicity=multiplicity,
            level=level,
        )
    one, two = _two(trainings, a, b)
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
    _show(page, result, f"{one} minus {two} ({level:.0%} intervals)", style="bold")
    save_plot(drawing.plot if drawing else None, result.plot)
    met = [gate for gate in fail_if if _holds(result, gate)]
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
    _show(page, result, "What runs buy")
    save_plot(drawing.plot if drawing else None, result.plot)
    return page.close()


def _trainings(
    files: list[str], reading: PredictionReading, scores: ScoreReading
) -> dict[str, Any]:
    if scores.scores:
        found: dict[str, Any] = dict(scores.load(files))
    else:
        names = names_of(files)
        found = {names[file]: reading.load(file, alone=False) for file in names}
    if len(found) < 2:
        raise UsageError(
            f"There is one training, {next(iter(found))!r}: a comparison needs two. Give a file for"
            " each; of a table of scores, --by names the column that tells trainings apart."
        )
    return found


def _with_runs(trainings: dict[str, Any], fewest: int) -> dict[str, Any]:
    few = [
        name for name, t in trainings.items() if (t.runs if hasattr(t, "runs") else len(t)) < fewest
    ]
    if few:
        shown = ", ".join(map(repr, few[:5])) + (" …" if len(few) > 5 else "")
        warn(f"{len(few)} training(s) have fewer than {fewest} runs and are left out: {shown}.")
    kept = {name: t for name, t in trainings.items() if name not in few}
    if len(kept) < 2:
        raise UsageError(f"--min-runs {fewest} leaves {len(kept)} training(s) to compare.")
    return kept


def _two(trainings: dict[str, Any], a: str | None, b: str | None) -> tuple[str, str]:
    names = list(trainings)
    if a is None and b is None:
        a, b = names
    one, two = choose("--a", a, names), choose("--b", b, names)
    if one == two:
        raise UsageError(f"Both are {one!r}: a comparison needs two trainings.")
    return one, two


def _compare_many(
    page: Page,
    trainings: dict[str, Any],
    scores: ScoreReading,
    drawing: Drawing | None,
    **options: Any,
) -> int:
    from curvewise.variance import compare_trainings

    with quietly():
        result = compare_trainings(
            trainings, **options, **(scores.options if scores.scores else {})
        )
    page.document = result.to_dict()
    page.say(sentences(result))
    order = sorted(range(len(result.pairs)), key=lambda i: result.adjusted[i])[:MOST_PAIRS]
    rows = {name: [column[i] for i in order] for name, column in _worded(result).items()}
    shown = f"The {len(order)} clearest of {len(result.pairs):,} pairs"
    page.table(f"{shown} (intervals hold together at {result.level:.0%})", rows, None)
    warn_each(result.all_warnings)
    save_plot(drawing.plot if drawing else None, result.plot)
    return page.close()


def _holds(result: Any, gate: str) -> bool:
    if gate in ("equivalent", "undecided"):
        return bool(result.verdict == gate)
    return bool(getattr(result, gate.replace("-", "_")))


def _show(page: Page, result: Any, title: str, style: str = "") -> None:
    page.document = result.to_dict()
    page.say(sentences(result), style=style)
    page.table(title, _worded(result), None)
    warn_each(result.all_warnings)


def _worded(result: Any) -> dict[str, Any]:
    """The table with errors as percentages; shares, chances and p-values stay as they are."""
    from curvewise.variance.wording import said

    columns = dict(result.columns())
    if result.unit != "fraction":
        return columns
    rows = columns.get("quantity", [""] * len(next(iter(columns.values()))))
    free = [str(name).startswith(("chance", "distribution share")) for name in rows]
    for key in ("power", "one more run"):
        if key in columns:
            columns[key] = [f"{value:.1%}" for value in columns[key]]
    for key in ERRORS:
        if key in columns:
            columns[key] = [
                value if value != value else f"{value:.3f}" if is_free else said(value, "fraction")
                for value, is_free in zip(columns[key], free, strict=True)
            ]
    return columns
