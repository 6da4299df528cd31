"""``curvewise demo``: a study of two networks on digits, looked at through every lens."""

from __future__ import annotations

import math
import shlex
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from curvewise.cli.console import FAILED, Page, UsageError, warn_each
from curvewise.errors import CurvewiseError, MissingDependencyError, quietly
from curvewise.learning.commands import Fitting, fit_files, show_curves
from curvewise.text import format_size

if TYPE_CHECKING:
    from curvewise.learning.comparison import CurveComparison, LearnerRanking
    from curvewise.learning.curve import SamplesToReach
    from curvewise.learning.fit import LearningCurves
    from curvewise.ranking.rank import CheckpointRanking
    from curvewise.report.content import Report, Section
    from curvewise.response.comparison import ResponseComparison
    from curvewise.response.curve import ResponseCurve
    from curvewise.study.status import Status
    from curvewise.study.study import Study
    from curvewise.transfer.result import TransferResult
    from curvewise.types.measurements import Measurements
    from curvewise.types.predictions import Predictions
    from curvewise.types.results import Result
    from curvewise.variance.compare import RunComparison
    from curvewise.variance.decompose import VarianceDecomposition


STUDY = "study.toml"
Flag = Annotated[bool, Parameter(negative="", show_default=False)]


def demo(
    *, out: Path = Path("curvewise-demo"), seed: int = 0, fast: Flag = False, dry_run: Flag = False, json: Flag = False
) -> int:
    """See it work: a study of two networks on handwritten digits, through every lens.

    Trains a CNN and an MLP on growing subsets of scikit-learn's digits, each with many seeds. Then
    asks which is better with how much data, how much data an error of 5% takes, which will be
    better with four times the data, and what of the spread between seeds is real. Takes one or two
    minutes on two cores. What was trained is kept: a demo that was stopped goes on where it was.

    Parameters
    ----------
    out
        Folder for the study, its runs, tables and figures.
    seed
        Decides the test set, the subsets and the seeds of all runs.
    fast
        Smaller subsets and fewer seeds: less than half a minute.
    dry_run
        Only say what would be trained and written.
    json
        Print one JSON document with everything.
    """
    if seed < 0:
        raise UsageError(f"--seed {seed}: give a whole number from 0 on.")
    page = Page(as_json=json)
    text = demo_text(seed, fast=fast)
    if dry_run:
        return _say_plan(page, text, out)
    _check_packages()
    study = _write_study(out / STUDY, text)
    try:
        status = study.run(device="cpu")
    except KeyboardInterrupt:  # the executor has said how to go on
        return FAILED
    if status.done < status.planned:
        raise CurvewiseError(
            f"{status.planned - status.done} of {status.planned} runs are not there: "
            f"`curvewise study status {out / STUDY}` says why."
        )
    page.document = {"type": "Demo", "seed": seed, "status": status}
    tour = Tour(page, out)
    answers = [lens(tour, study) for lens in LENSES]
    _say_in_short(page, answers)
    _say_how(page, out, answers)
    _say_files(tour, _report(tour, study, status))
    return page.close()


def _say_plan(page: Page, text: str, out: Path) -> int:
    """Print what would be trained; needs neither torch nor the data."""
    from curvewise.study.study import study_from_document

    study = study_from_document(tomllib.loads(text), out)
    design, names = study.design, list(study.learners)
    sizes = [int(n) for n in design.sizes or ()]
    folds = [int(k) for k in (design.folds if isinstance(design.folds, tuple) else ())]
    runs = [len(names) * k * design.seeds for k in folds]
    page.document = {
        "type": "DemoPlan",
        "learners": names,
        "sizes": sizes,
        "folds": folds,
        "seeds": design.seeds,
        "runs": sum(runs),
        "seed": study.seed,
        "out": str(out),
    }
    page.say(
        f"Would train {sum(runs)} networks on the digits data, {' and '.join(names)} on the same "
        f"subsets with {design.seeds} seeds each, look at them through every lens, and write the "
        f"study, its runs, tables and figures into {out}. Nothing was done."
    )
    columns: dict[str, Any] = {"training size": sizes, "subsets": folds, "networks": runs}
    page.table("Networks to train", columns, None)
    return page.close()


def _check_packages() -> None:
    missing = [k for k, m in {"torch": "torch", "scikit-learn": "sklearn"}.items() if not _has(m)]
    if missing:
        raise MissingDependencyError(
            f"The demo trains networks on scikit-learn's digits, and {' and '.join(missing)} "
            f'{"are" if len(missing) > 1 else "is"} not installed: pip install "curvewise[demo]".'
        )


def _has(module: str) -> bool:
    return find_spec(module) is not None


def _write_study(path: Path, text: str) -> Study:
    """Write the study file, unless it was edited since."""
    from curvewise.study.study import load_study

    if path.exists() and not is_demo_text(path.read_text(encoding="utf-8")):
        raise UsageError(
            f"{path} is not the study of the demo any more: name another folder with --out, or run "
            f"yours with `curvewise study run {shlex.quote(str(path))}`."
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")
    return load_study(path)


def _say_in_short(page: Page, answers: list[LensAnswers]) -> None:
    lines = [line for part in answers for line in part.in_short]
    page.document["in_short"] = lines
    page.say("In short", style="bold")
    for line in lines:
        page.say(f"• {line}", close=True)


def _report(tour: Tour, study: Study, status: Status) -> Report:
    """Make the report: the first answers, then all in short, then each in full."""
    from curvewise.report.content import Report, Section
    from curvewise.report.study import reproduction, runs_of
    from curvewise.study.status import planned_runs

    in_short, planned = tour.page.document["in_short"], planned_runs(study)
    sections = (Section("In short", text=tuple(in_short)), *tour.sections)
    return Report(
        title="Two networks on handwritten digits",
        question="Which network is better with how much data, and how sure is that?",
        answer=tuple(in_short[:3]),
        figure=next(f for s in sections for f in s.figures),
        warnings=tuple(dict.fromkeys(w for s in sections for w in s.warnings)),
        sections=sections,
        runs=runs_of(study, planned, status),
        reproduce=reproduction(study, planned, tour.folder / STUDY),
    )


def _say_how(page: Page, out: Path, answers: list[LensAnswers]) -> None:
    file = str(out / STUDY)
    page.say("The same in Python", style="bold")
    load = ["import curvewise as cw", f"study = cw.load_study({file!r})"]
    page.code("\n".join([*load, *(line for part in answers for line in part.python)]))
    page.say("The same on the command line", style="bold")
    run = [f"curvewise study run {shlex.quote(file)}"]
    page.code("\n".join([*run, *(line for part in answers for line in part.commands)]))


def _say_files(tour: Tour, report: Report) -> None:
    """Write the report as a page and as text with figures, and name all files."""
    from curvewise.study.commands import write_files

    written = write_files(report, tour.folder, index="summary.md")
    files = [str(tour.folder / STUDY), *written, *tour.files]
    tour.page.document["files"] = files
    tour.page.say("Written", style="bold")
    tour.page.code("\n".join(files))


# One function for each lens. The same networks serve all of them, so that the demo trains only once.

TARGET = 0.05
MOVED, BY = "shift-x", [-0.25, -0.125, 0, 0.125, 0.25]
TURNED, EXAMPLES = ("nleep", "logme", "knn"), 800
TURNED_STUDY = "turned.toml"
LEGEND = (
    "e_N: error after training on N digits. β_N: how much it would rise with a quarter of them. γ: how fast it falls."
)


@dataclass
class LensAnswers:
    """Answers of a lens for the end of the demo.

    Attributes
    ----------
    in_short : list of str
        Its answers in plain words, a sentence or two for each.
    python, commands : list of str
        Lines that do the same, after ``study = cw.load_study(…)``, and in a shell.
    """

    in_short: list[str] = field(default_factory=list)
    python: list[str] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)


def show_learning(tour: Tour, study: Study) -> LensAnswers:
    """Show how error falls with data, and which network is better with how much."""
    table = tour.folder / "errors.csv"
    measurements = _write_errors(tour, study, table)
    curves = fit_files(measurements, Fitting())
    tour.page.document["curves"] = curves
    show_curves(tour.page, curves, Fitting(), None, LEGEND)
    tour.sections.append(curves_section(curves, measurements))
    in_short, four_times = _decide(tour, measurements, curves)
    file = shlex.quote(str(table))
    return LensAnswers(
        in_short,
        [
            'errors = study.measurements(seeds="mean")',
            "print(cw.compare_learning_curves(*cw.fit_learning_curves(errors)))",
        ],
        [
            f"curvewise learning compare {file}",
            f"curvewise learning fit {file} --reach {TARGET:g}",
            f"curvewise learning rank {file} --at {four_times:.0f} --form auto",
        ],
    )


def _write_errors(tour: Tour, study: Study, path: Path) -> Measurements:
    """Write one row per subset: runs that share one are not independent, so their seeds are averaged."""
    from curvewise.learning.load import load_measurements

    rows = study.measurements(seeds="mean").frame()
    rows[["learner", "n", "fold", "error"]].to_csv(path, index=False, lineterminator="\n")
    tour.files.append(str(path))
    return load_measurements(path)


def _decide(tour: Tour, measurements: Measurements, curves: LearningCurves) -> tuple[list[str], float]:
    """Compare, ask for a target error, rank at four times the data; give that size, too."""
    from curvewise.learning.comparison import compare_learning_curves, rank_learners

    a, b = curves[A], curves[B]
    smallest, largest = float(measurements.n.min()), float(measurements.n.max())
    few, many = (compare_learning_curves(a, b, at=n) for n in (smallest, largest))
    reach = [curve.samples_to_reach(TARGET) for curve in curves]
    ranking = rank_learners(fit_files(measurements, Fitting(form="auto")), at=4 * largest)
    tour.page.document |= {"comparison": many, "samples_to_reach": reach, "ranking": ranking}
    ask(tour, f"Which is better with {largest:,.0f} digits to learn from?", many, figures={"comparison": many.plot})
    ask(tour, f"How many digits does an error of {TARGET:.0%} take?", *reach)
    ask(tour, "Which will be better with four times the data?", ranking)
    return [crossing_sentence(few, many, curves), reach_sentence(reach), ranking_sentence(ranking)], ranking.at


def show_variance(tour: Tour, study: Study) -> LensAnswers:
    """Show how much of a difference is due to seeds and the finite test set."""
    from curvewise.variance.compare import compare_runs
    from curvewise.variance.decompose import decompose_variance

    n = max(study.partition.sizes)
    runs = {name: study.predictions(name, n=n) for name in (A, B)}
    files = {name: _write_predictions(tour, name, found) for name, found in runs.items()}
    with quietly():
        spread = {name: decompose_variance(found) for name, found in runs.items()}
        better = compare_runs(runs[A], runs[B], names=(A, B), paired=False)
    tour.page.document |= {"seeds": spread, "better": better}
    question = f"How much of the difference between {runs[A].runs} seeds is real?"
    ask(tour, question, *spread.values(), names=list(spread), figures={"spread": spread[A].plot})
    ask(tour, f"Is the {A} better than the {B} on new digits, too?", better, figures={"seeds": better.plot})
    a, b = (shlex.quote(files[name]) for name in (A, B))
    return LensAnswers(
        [spread_sentence(spread), real_sentence(better, n)],
        [
            f'cnn, mlp = (study.predictions(k, n={n}) for k in ("{A}", "{B}"))',
            "print(cw.decompose_variance(cnn))",
            f'print(cw.compare_runs(cnn, mlp, names=("{A}", "{B}"), paired=False))',
        ],
        [f"curvewise variance decompose {a}", f"curvewise variance compare {a} {b} --fail-if worse"],
    )


def _write_predictions(tour: Tour, name: str, found: Predictions) -> str:
    """Write a file that other tools can read; the store has the same, run by run."""
    import numpy as np

    path = tour.folder / f"{name.lower()}.npz"
    classes = np.asarray(found.values).astype(np.uint8)
    np.savez_compressed(path, preds=classes, labels=np.asarray(found.labels, dtype=np.uint8))
    tour.files.append(str(path))
    return str(path)


def show_response(tour: Tour, study: Study) -> LensAnswers:
    """Show which network holds up when the digits it has learned move."""
    from curvewise.response.comparison import compare_responses
    from curvewise.response.networks.measurement import measure_responses
    from curvewise.response.plot.curves import plot_responses
    from curvewise.response.plot.sheet import plot_perturbed

    n = max(study.partition.sizes)
    found = {name: study.network(name, n=n) for name in (A, B)}
    networks = {name: one.network for name, one in found.items()}
    examples = found[A].examples
    with quietly():
        curves = measure_responses(networks, examples, MOVED, magnitudes=BY, progress=False)
        better = compare_responses(curves[A], curves[B])
    tour.page.document |= {"responses": curves, "response": better}
    ask(
        tour,
        "Which holds up when the digits it has learned move?",
        *curves.values(),
        better,
        figures={"responses": lambda: plot_responses(curves), "moved": lambda: plot_perturbed(examples, MOVED, BY)},
    )
    return LensAnswers(
        [response_sentence(better, curves, "up to two pixels")],
        [
            f'nets = {{k: study.network(k, n={n}) for k in ("{A}", "{B}")}}',
            f'data = nets["{A}"].examples',
            "moved = cw.measure_responses("
            f'{{k: v.network for k, v in nets.items()}}, data, "{MOVED}", magnitudes={BY})',
            f'print(cw.response.compare_responses(moved["{A}"], moved["{B}"]))',
        ],
        ["curvewise response perturbations", "curvewise response measures"],
    )


def show_ranking(tour: Tour, study: Study) -> LensAnswers:
    """Show which network is the best start for digits that lie on their side."""
    import numpy as np

    from curvewise.ranking.networks.preprocessing import Preprocessing
    from curvewise.ranking.networks.rank import rank_checkpoints

    found = {f"{name}, {n} digits": study.network(name, n=n) for name in (A, B) for n in study.partition.sizes}
    seen = next(iter(found.values())).examples
    turned = np.rot90(study.dataset.x, axes=(-2, -1)).copy()
    with quietly():
        ranking = rank_checkpoints(
            {name: one.network for name, one in found.items()},
            (turned, study.dataset.y),
            TURNED,
            preprocessing=Preprocessing(mean=seen.mean or 0, std=seen.std or 1, channels="grey"),
            examples=EXAMPLES,
            progress=False,
        )
    tour.page.document["checkpoints"] = ranking
    question = "Which network to start from, if digits come lying on their side?"
    ask(tour, question, ranking, figures={"checkpoints": ranking.plot})
    return LensAnswers(
        [checkpoints_sentence(ranking)],
        [
            "import numpy as np",
            "turned = np.rot90(study.dataset.x, axes=(-2, -1)).copy()",
            'scale = cw.ranking.Preprocessing(mean=data.mean, std=data.std, channels="grey")',
            f'starts = [(k, n) for k in ("{A}", "{B}") for n in study.partition.sizes]',
            'pool = {f"{k}, {n} digits": study.network(k, n=n).network for k, n in starts}',
            f"print(cw.rank_checkpoints(pool, (turned, study.dataset.y), {list(TURNED)}, "
            f"preprocessing=scale, examples={EXAMPLES}))",
        ],
        ["curvewise ranking measures"],
    )


def show_transfer(tour: Tour, study: Study) -> LensAnswers:
    """Show what upright digits are worth to a network that learns them lying on their side."""
    import numpy as np

    from curvewise.study.lenses import transfer_risks
    from curvewise.transfer.measure import measure_transfer

    turned = _turned_study(tour, study)
    turned.run(device="cpu")
    most = max(study.partition.sizes)
    maximal = round(float(np.mean(study.measurements(n=most).of(A).error)), 4)
    with quietly():
        found = measure_transfer(transfer_risks(turned, metric="error", maximal=maximal))
    tour.page.document["transfer"] = found
    question = "Is a network that knows upright digits a better start than none?"
    before = about_transfer(most, "upright", maximal)
    after = [worth_sentence(found, "upright")]
    figures = {"transfer": found.plot}
    ask(tour, question, found, first=before, last=after, figures=figures)
    file = tour.folder / TURNED_STUDY
    return LensAnswers(
        [transfer_sentence(found, "upright")],
        [
            f"turned = cw.load_study({str(file)!r})",
            f'risks = cw.study.transfer_risks(turned, metric="error", maximal={maximal})',
            "print(cw.measure_transfer(risks))",
        ],
        [f"curvewise transfer measure {shlex.quote(str(file))} --risk-column error --maximal {maximal}"],
    )


def _turned_study(tour: Tour, study: Study) -> Study:
    """Write digits that the first study held out, turned, and a study of them."""
    import os

    import numpy as np

    from curvewise.study.lenses import checkpoint_files
    from curvewise.study.study import load_study

    held_out = study.test_examples()
    turned = np.rot90(held_out.x, axes=(-2, -1)).copy()
    np.savez_compressed(tour.folder / "turned.npz", x=turned, y=held_out.y)
    weights = next(iter(checkpoint_files(study, A, n=max(study.partition.sizes)).values()))
    training = study.learners[A].training
    assert training is not None
    place = os.path.relpath(weights, tour.folder.resolve()).replace(os.sep, "/")
    path = tour.folder / TURNED_STUDY
    text = turned_text(study.seed, training.epochs, place)
    path.write_text(text, encoding="utf-8", newline="\n")
    tour.files += [str(tour.folder / "turned.npz"), str(path)]
    return load_study(path)


LENSES = (show_learning, show_variance, show_response, show_ranking, show_transfer)
"""Every lens there is, in the order of the demo."""


# The study is a text, not an object: the file that the demo writes is one to read and to change.

A, B = "CNN", "MLP"
"""The two networks, the one with more to gain from data first."""

HEAD = """\
# Two networks on handwritten digits: which is better with how much data, what do seeds do, and
# what happens when the digits move?
#   curvewise study plan study.toml      what it would train, and how long that takes
#   curvewise study run study.toml       train what is not there yet
#   curvewise study status study.toml    how far it is
"""

TEXT = """\
name = "digits"
seed = {seed}

[data]
name = "digits"

[learners.{A}]
architecture = "cnn"
width = 8
rate = 0.03
batch = 25
epochs = {epochs}

[learners.{B}]
architecture = "mlp"
width = 64
depth = 1
rate = 0.1
batch = 25
epochs = {epochs}

[design]
test = 797    # digits held out; up to 1,000 are left to train on
sizes = {sizes}
folds = {folds}    # disjoint subsets of each size
seeds = {seeds}    # networks on each subset

[keep]
checkpoints = "end"    # the weights
"""

FULL = {"sizes": [62, 125, 250, 500, 1000], "folds": [8, 8, 4, 2, 1], "seeds": 16, "epochs": 25}
FAST = {"sizes": [60, 100, 160, 250, 400], "folds": [4, 4, 2, 2, 1], "seeds": 6, "epochs": 20}


def demo_text(seed: int = 0, *, fast: bool = False) -> str:
    """Return the demo's study file.

    >>> "seeds = 6 " in demo_text(fast=True)
    True
    """
    return HEAD + "\n" + TEXT.format(seed=seed, A=A, B=B, **(FAST if fast else FULL))


TURNED_TEXT = """\
# The same digits, lying on their side: is a network that knows them upright a better start than
# none? Trained on digits that the first study held out.
name = "turned digits"
seed = {seed}

[data]
path = "turned.npz"

[learners.scratch]
architecture = "cnn"
width = 8
rate = 0.03
batch = 25
epochs = {epochs}

[learners.upright]
architecture = "cnn"
width = 8
weights = "{weights}"
rate = 0.03
batch = 25
epochs = {epochs}

[design]
test = 197
sizes = [25, 50, 100, 200]
folds = 3
"""


def turned_text(seed: int, epochs: float, weights: str) -> str:
    """Return the second study file, on digits that lie on their side.

    >>> 'weights = "a.safetensors"' in turned_text(0, 20, "a.safetensors")
    True
    """
    return TURNED_TEXT.format(seed=seed, epochs=f"{epochs:g}", weights=weights)


def is_demo_text(text: str) -> bool:
    """Tell if a study file is as the demo writes it, for any seed.

    >>> is_demo_text(demo_text(7)), is_demo_text(demo_text(7) + "# mine")
    (True, False)
    """
    found = [line.removeprefix("seed = ") for line in text.splitlines() if "seed = " in line]
    seed = int(found[0]) if found and found[0].isdecimal() else 0
    return any(text == demo_text(seed, fast=fast) for fast in (False, True))


@dataclass
class Tour:
    """The demo so far: its page, the sections of its report and the files written.

    Attributes
    ----------
    page : Page
        Where it is shown.
    folder : Path
        Where files are written.
    sections : list of Section
        For the report.
    files : list of str
        What was written.
    """

    page: Page
    folder: Path
    sections: list[Section] = field(default_factory=list)
    files: list[str] = field(default_factory=list)


def curves_section(curves: LearningCurves, measurements: Measurements) -> Section:
    """Make the section of the learning curves, whose numbers the page shows as a table."""
    from curvewise.report.lenses import name_parts, prefix_each
    from curvewise.report.results import section_of

    section = name_parts(
        section_of(curves, "How does error fall with data?", runs=measurements),
        "curves",
        "Error e_N and data-reliance β_N",
    )
    return replace(
        section,
        text=tuple(c.sentences() for c in curves),
        warnings=tuple(w for c in curves for w in prefix_each(c.all_warnings, c.learner)),
    )


def ask(
    tour: Tour,
    question: str,
    *answers: Result,
    names: Sequence[str] = (),
    first: Sequence[str] = (),
    last: Sequence[str] = (),
    figures: Mapping[str, Callable[[], Any]] | None = None,
) -> None:
    """Put a question, its answers and their pictures on the page and into the report.

    ``names`` says whom each is about, where the answers do not say it themselves; ``first`` and
    ``last`` are what to know before and after them.
    """
    from curvewise.report.content import Figure, Section
    from curvewise.report.lenses import prefix_each
    from curvewise.report.results import METHODS, lens_of
    from curvewise.study.commands import show_section

    text: list[str] = []
    found: list[str] = []
    for answer, name in zip(answers, names or [""] * len(answers), strict=True):
        text.append(f"{name}: {answer.sentences()}" if name else answer.sentences())
        about = name or getattr(answer, "learner", "")
        found += prefix_each(answer.all_warnings, about) if about else answer.all_warnings
    section = Section(
        question,
        text=(*first, *text, *last),
        warnings=tuple(found),
        figures=tuple(Figure(k, question, draw) for k, draw in (figures or {}).items()),
        method=METHODS.get(lens_of(answers[0]), ()),
    )
    show_section(tour.page, section)
    warn_each(found)
    tour.sections.append(section)


# One sentence for each question, for the summary at the end.

CLOSE = 0.8
"""Chance of being best above which a ranking names a winner."""


def crossing_sentence(few: CurveComparison, many: CurveComparison, curves: LearningCurves) -> str:
    """Compare the fitted curves with little and with much data."""
    first, errors = _leader(few, curves)
    second, others = _leader(many, curves)
    again = "still " if first == second else ""
    text = (
        f"With {few.at:,.0f} digits the {first} {_verdict(few)} ({errors}); with {many.at:,.0f} the "
        f"{second} {_verdict(many, again)} ({others})."
    )
    crossing = many.crossing.estimate
    if few.at < crossing < many.at:
        text += f" The curves cross near {format_size(crossing)}."
    return text


def _leader(found: CurveComparison, curves: LearningCurves) -> tuple[str, str]:
    """Return the learner with the lower curve, and the errors of both."""
    errors = {name: float(curves[name].error_at(found.at)) for name in (found.a, found.b)}
    better, worse = sorted(errors, key=lambda name: errors[name])
    return better, f"{errors[better]:.1%} wrong against {errors[worse]:.1%}"


def _verdict(found: CurveComparison, again: str = "") -> str:
    return f"{again}leads, but not significantly" if found.verdict == "undecided" else f"is {again}better"


def response_sentence(found: ResponseComparison, curves: Mapping[str, ResponseCurve], at: str) -> str:
    """Compare the networks when their own digits are moved."""
    better, worse = sorted(curves, key=lambda name: curves[name].gi)
    parts = [f"the {name} is right on {curves[name].accuracy.min():.0%}" for name in (better, worse)]
    sure = "" if found.verdict != "undecided" else ", which may be chance"
    return f"With the digits it learned moved by {at}, {parts[0]} at worst, {parts[1]}{sure}."


def about_transfer(most: int, method: str, maximal: float) -> list[str]:
    """Explain the comparison and its measure, before the answer."""
    return [
        f"The ranking above chose among networks. This asks whether to start from one at all: "
        f"{method!r} is the {A} of the first study, which has learned {most:,} upright digits, and "
        "'scratch' the same network with random weights; both are trained on a few digits that lie "
        "on their side.",
        "CCI (calibrated cumulative improvement) is how far the start closes the gap between "
        "scratch and maximal supervision over all training sizes: 0 is no better than scratch, 1 "
        f"as good as maximal supervision. That is the error of {maximal:.1%} which the {A} has on "
        f"upright digits after {most:,} of them; the blind guess is the most frequent digit.",
    ]


def worth_sentence(found: TransferResult, method: str) -> str:
    """Express the fewest digits of a start in digits without one."""
    one = found.improvement(found.tasks[0], method)
    first, n = one.data_equivalence[0], one.n[0]
    lead = f"With {n:.0f} digits it is"
    if first.beyond == "above":
        most = found.curve(found.tasks[0], found.scratch).n[-1]
        return f"{lead} better than scratch with {most:,.0f}."
    worth = first.equivalent
    if first.beyond == "below":
        return f"{lead} no better than scratch with as many."
    ends = f" [{_digits(worth.low)}, {_digits(worth.high)}]" if worth.low == worth.low else ""
    return f"{lead} as good as scratch with about {_digits(worth.estimate)}{ends}."


def _digits(n: float) -> str:
    return f"{round(float(f'{n:.3g}')):,}" if math.isfinite(n) else "∞"


def transfer_sentence(found: TransferResult, method: str) -> str:
    """Compare a start with none."""
    one = found.improvement(found.tasks[0], method)
    cci = one.cci
    start = f"Digits that lie on their side: a {A} that knows {method} ones is"
    sure = f"(CCI {cci.estimate:.2f} [{cci.low:.2f}, {cci.high:.2f}])"
    if cci.high < 0:
        return f"{start} a worse start than none {sure}."
    if not cci.low > 0:
        return f"{start} no better a start than none, as far as can be told {sure}."
    return f"{start} a better start than none {sure}. {worth_sentence(found, method)}"


def checkpoints_sentence(ranking: CheckpointRanking) -> str:
    """Name the best start for another task."""
    first = ranking.checkpoints[0]
    tied = int((ranking.rank_low == 1).sum()) - 1
    text = f"For digits that lie on their side, {first} is the network to start from"
    return text + (f", though {tied} others may be as good." if tied else ".")


def reach_sentence(answers: Sequence[SamplesToReach]) -> str:
    """State the data that a target error takes."""
    parts = [
        f"the {a.learner} about {format_size(a.estimate)} digits"
        if math.isfinite(a.estimate)
        else f"the {a.learner} more than there will ever be"
        for a in answers
    ]
    return f"An error of {answers[0].error:.0%} takes {' and '.join(parts)}."


def ranking_sentence(ranking: LearnerRanking) -> str:
    """Name the learner that leads with more data than there is."""
    best = int(ranking.probability_best.argmax())
    name, chance = ranking.learners[best], float(ranking.probability_best[best])
    if chance > CLOSE:
        return f"With {ranking.at:,.0f} digits the {name} would probably be better (chance {chance:.0%})."
    return f"Who would be better with {ranking.at:,.0f} digits is open: the {name} has a chance of {chance:.0%}."


def spread_sentence(spread: Mapping[str, VarianceDecomposition]) -> str:
    """State the share of the variance between seeds that would remain on new digits."""
    parts = [
        f"for the {name} about {found.distribution_share:.0%} "
        f"({found.share_interval.low:.0%} to {found.share_interval.high:.0%})"
        for name, found in spread.items()
    ]
    text = f"Of the variance between seeds, {' and '.join(parts)} is real"
    if all(found.distribution_share < 0.5 for found in spread.values()):
        return f"{text}; the rest is which digits are in the test set. The seed that looks best is mostly the luckiest."
    return f"{text}: it would be there again on new digits."


def real_sentence(found: RunComparison, n: int) -> str:
    """State if the difference at the largest size holds beyond this test set."""
    points = f"{100 * abs(found.difference.estimate):.1f} points"
    if found.verdict == "undecided":
        return (
            f"Trained on these {n:,} digits, the {found.a} and the {found.b} differ by {points}: "
            "no more than seeds and the choice of test digits can explain."
        )
    pair = (found.a, found.b) if found.verdict == "a better" else (found.b, found.a)
    return (
        f"Trained on these {n:,} digits, the {pair[0]} beats the {pair[1]} on new ones, too, by "
        f"about {points}: more than seeds and the choice of test digits explain."
    )
