"""``curvewise demo``: two classifiers, their learning curves, and what follows from them."""

from __future__ import annotations

import csv
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from curvewise.cli._answers import show_curves
from curvewise.cli._console import Page, note, sentences, warn_each
from curvewise.cli._demo_seeds import RUNS, TREES, show_seeds
from curvewise.cli._files import fit_files, save_plot
from curvewise.cli._options import Fitting
from curvewise.errors import MissingDependencyError

if TYPE_CHECKING:
    from curvewise.learning import LearningCurves
    from curvewise.types import Measurements, Result

A, B = "bagged trees", "naive Bayes"
TARGET = 0.05

LEGEND = (
    "e_N: error after training on N examples. β_N: how much it would rise with a quarter of them. "
    "γ: how fast it falls."
)
PYTHON = """\
import curvewise as cw
m = cw.load_measurements({path!r}); curves = cw.fit_learning_curves(m)
print(cw.compare_learning_curves(*curves))
print(cw.decompose_variance(cw.load_predictions({predictions!r})))"""


@dataclass(frozen=True)
class Schedule:
    """Training sizes, and how many subsets of each."""

    sizes: tuple[int, ...]
    folds: tuple[int, ...]

    @property
    def runs(self) -> int:
        """How many models are trained, both learners together."""
        return 2 * sum(self.folds)


FULL = Schedule((44, 89, 179, 359, 718, 1437), (16, 16, 8, 4, 2, 1))
FAST = Schedule((89, 179, 359, 718), (8, 8, 4, 2))


def demo(
    *,
    out: Path = Path("curvewise-demo"),
    seed: int = 0,
    fast: Annotated[bool, Parameter(negative="", show_default=False)] = False,
    dry_run: Annotated[bool, Parameter(negative="", show_default=False)] = False,
    json: Annotated[bool, Parameter(negative="", show_default=False)] = False,
) -> int:
    """See it work on scikit-learn's handwritten digits: learning curves, and many seeds.

    Trains bagged trees and naive Bayes on growing subsets, fits and compares their curves, asks
    how much data an error of 5% takes and which will be better with four times the data. Then
    trains the trees with many seeds, and asks what of the spread between them is real. Takes
    about twenty seconds. What was trained is kept: a demo that was stopped goes on where it was.

    Parameters
    ----------
    out
        Folder for measurements, figures and runs.
    seed
        Decides the test set, the subsets and the models' seeds.
    fast
        Fewer and smaller subsets.
    dry_run
        Only say what would be trained and written.
    json
        Print one JSON document with everything.
    """
    page = Page(as_json=json)
    schedule = FAST if fast else FULL
    if dry_run:
        return _say_plan(page, schedule, out, seed)
    measurements = _measure(schedule, out, seed)
    curves = fit_files(measurements, Fitting())
    page.document = {"type": "Demo", "curves": curves, "seed": seed}
    show_curves(page, curves, Fitting(), None, LEGEND)
    four_times = _decide(page, measurements, curves)
    files = [_write_csv(out / "errors.csv", measurements), *_draw(out, curves)]
    files += show_seeds(page, out, seed, fast)
    page.document["files"] = files
    _say_how(page, files, four_times)
    return page.close()


def _say_plan(page: Page, schedule: Schedule, out: Path, seed: int) -> int:
    page.document = {
        "type": "DemoPlan",
        "learners": [A, B],
        "sizes": schedule.sizes,
        "folds": schedule.folds,
        "runs": schedule.runs,
        "seed": seed,
        "out": str(out),
    }
    page.say(
        f"Would train {schedule.runs} models, {A} and {B} on the same subsets of the digits data, "
        f"then {A} of {TREES[0]} and {TREES[1]} with up to {RUNS} seeds each, all from seed "
        f"{seed}, and write measurements, figures and runs into {out}. Nothing was done."
    )
    columns: dict[str, Sequence[Any]] = {
        "training size": schedule.sizes,
        "subsets": schedule.folds,
        "models": [2 * k for k in schedule.folds],
    }
    page.table("Models to train", columns, None)
    return page.close()


def _measure(schedule: Schedule, out: Path, seed: int) -> Measurements:
    try:
        from sklearn.datasets import load_digits
        from sklearn.ensemble import BaggingClassifier
        from sklearn.naive_bayes import GaussianNB
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            'The demo trains scikit-learn models: pip install "curvewise[demo]".'
        ) from error
    from curvewise.study import measure_learning_curve

    note(f"training {schedule.runs} models, kept in {out / 'runs'}")
    X, y = load_digits(return_X_y=True)
    return measure_learning_curve(
        {A: BaggingClassifier(n_estimators=10), B: GaussianNB(var_smoothing=0.001)},
        X,
        y,
        sizes=schedule.sizes,
        folds=schedule.folds,
        rng=seed,
        store=out / "runs",
    )


def _decide(page: Page, measurements: Measurements, curves: LearningCurves) -> float:
    """Compare, ask for a target error, rank at four times the data; give that size."""
    from curvewise.learning import compare_learning_curves, rank_learners

    comparison = compare_learning_curves(curves[A], curves[B])
    reach = [curve.samples_to_reach(TARGET) for curve in curves]
    far = fit_files(measurements, Fitting(form="auto"))
    ranking = rank_learners(far, at=4 * max(c.largest_n for c in curves))
    page.document |= {"comparison": comparison, "samples_to_reach": reach, "ranking": ranking}
    questions: dict[str, Sequence[Result]] = {
        "Which is better with the data at hand?": [comparison],
        f"How many samples does an error of {TARGET:g} take?": reach,
        "Which will be better with four times the data?": [ranking],
    }
    for question, answers in questions.items():
        page.say(question, style="bold")
        for answer in answers:
            page.say(sentences(answer), close=True)
        warn_each([_named(answer, w) for answer in answers for w in answer.warnings])
    return ranking.at


def _named(answer: Result, warning: str) -> str:
    """Say whose warning it is where the answer is about one learner."""
    learner = getattr(answer, "learner", None)
    return warning if learner is None else f"{learner}: {warning}"


def _write_csv(path: Path, measurements: Measurements) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = zip(
        measurements.learner.tolist(),
        measurements.n.astype(int).tolist(),
        measurements.labels["fold"].tolist(),
        measurements.error.tolist(),
        strict=True,
    )
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["learner", "n", "fold", "error"])
        writer.writerows((k, n, fold, round(error, 6)) for k, n, fold, error in rows)
    return str(path)


def _draw(out: Path, curves: LearningCurves) -> list[str]:
    from curvewise.learning import compare_learning_curves
    from curvewise.plot import plot_learning_curves

    comparison = compare_learning_curves(curves[A], curves[B])
    figures = {
        out / "curves.png": lambda: plot_learning_curves(curves),
        out / "comparison.png": comparison.plot,
    }
    for path, draw in figures.items():
        save_plot(path, draw, quiet=True)
    return [str(path) for path in figures]


def _say_how(page: Page, files: Sequence[str], four_times: float) -> None:
    page.say("The same in Python", style="bold")
    page.say(
        "From training to figures: python examples/digits_learning_curves.py, in the source of "
        "curvewise. From the measurements just written:",
        close=True,
    )
    predictions = next(f for f in files if f.endswith(".npz"))
    page.code(PYTHON.format(path=files[0], predictions=predictions))
    page.say("The same on the command line", style="bold")
    table = shlex.quote(files[0])
    few, more = (shlex.quote(f) for f in files if f.endswith(".npz"))
    page.code(
        f"curvewise learning compare {table}\n"
        f"curvewise learning fit {table} --reach {TARGET:g}\n"
        f"curvewise learning rank {table} --at {four_times:.0f}\n"
        f"curvewise variance decompose {few}\n"
        f"curvewise variance compare {more} {few} --margin 0.01 --fail-if worse"
    )
    page.say("Written", style="bold")
    page.code("\n".join(files))
