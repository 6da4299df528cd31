"""``curvewise demo``: a study of two networks on digits, looked at through every lens."""

from __future__ import annotations

import os
import re
import shlex
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import curvewise as cw
from curvewise.cli.console import FAILED, Flag, Page, UsageError, warn_each
from curvewise.errors import CurvewiseError, MissingDependencyError, quietly
from curvewise.text import format_interval, format_size

if TYPE_CHECKING:
    from curvewise.report.content import Section

STUDY, TURNED_STUDY = "study.toml", "turned.toml"
A, B = "CNN", "MLP"
"""The two networks, the one with more to gain from data first."""

FULL = {"sizes": [62, 125, 250, 500, 1000], "folds": [8, 8, 4, 2, 1], "seeds": 16, "epochs": 25}
FAST = {"sizes": [60, 100, 160, 250, 400], "folds": [4, 4, 2, 2, 1], "seeds": 6, "epochs": 20}

TARGET = 0.05
MOVED, BY = "shift-x", [-0.25, -0.125, 0, 0.125, 0.25]
MEASURES, EXAMPLES = ["nleep", "logme", "knn"], 800
LEGEND = (
    "e_N: error after training on N digits. β_N: how much it would rise with a quarter of them. γ: how fast it falls."
)


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
    needed = {"torch": "torch", "scikit-learn": "sklearn", "jinja2": "jinja2"}
    if missing := [name for name, module in needed.items() if find_spec(module) is None]:
        raise MissingDependencyError(
            f"The demo trains networks on scikit-learn's digits and writes a report, and {' and '.join(missing)} "
            f'{"are" if len(missing) > 1 else "is"} not installed: pip install "curvewise[demo]".'
        )
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
    for lens in LENSES:
        lens(tour, study)
    page.document["in_short"] = tour.in_short
    page.say("In short", style="bold")
    for line in tour.in_short:
        page.say(f"• {line}", close=True)
    for title, lines in {"in Python": tour.python, "on the command line": tour.commands}.items():
        page.say(f"The same {title}", style="bold")
        page.code("\n".join(lines))
    page.document["files"] = [str(tour.file(STUDY)), *_write_report(tour, study, status), *tour.files]
    page.say("Written", style="bold")
    page.code("\n".join(page.document["files"]))
    return page.close()


def _say_plan(page: Page, text: str, out: Path) -> int:
    """Print what would be trained; needs neither torch nor the data."""
    from curvewise.study.study import study_from_document

    study = study_from_document(tomllib.loads(text), out)
    design, names = study.design, list(study.learners)
    sizes = [int(n) for n in design.sizes or ()]
    folds = [int(k) for k in (design.folds if isinstance(design.folds, tuple) else ())]
    runs = [len(names) * k * design.most_seeds for k in folds]
    page.document = {"type": "DemoPlan", "learners": names, "sizes": sizes, "folds": folds, "seeds": design.seeds}
    page.document |= {"runs": sum(runs), "seed": study.seed, "out": str(out)}
    page.say(
        f"Would train {sum(runs)} networks on the digits data, {' and '.join(names)} on the same "
        f"subsets with {design.seeds} seeds each, look at them through every lens, and write the "
        f"study, its runs, tables and figures into {out}. Nothing was done."
    )
    page.table("Networks to train", {"training size": sizes, "subsets": folds, "networks": runs}, None)
    return page.close()


def _write_study(path: Path, text: str) -> cw.Study:
    """Write the study file, unless it was edited since."""
    if path.exists():
        there = path.read_text(encoding="utf-8")
        seed = re.search(r"^seed = (\d{1,20})$", there, re.MULTILINE)
        if there not in [demo_text(int(seed[1]) if seed else 0, fast=fast) for fast in (False, True)]:
            raise UsageError(
                f"{path} is not the study of the demo any more: name another folder with --out, or run "
                f"yours with `curvewise study run {shlex.quote(str(path))}`."
            )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")
    return cw.load_study(path)


def demo_text(seed: int = 0, *, fast: bool = False) -> str:
    """Return the demo's study file: a text, not an object, for people to read and to change.

    >>> "seeds = 6 " in demo_text(fast=True)
    True
    """
    return _asset(STUDY).format(seed=seed, **(FAST if fast else FULL))


def _asset(name: str) -> str:
    return (files("curvewise.cli") / "assets" / name).read_text(encoding="utf-8")


def _write_report(tour: Tour, study: cw.Study, status: Any) -> list[str]:
    """Write the report as a page and as text with figures: the first answers, then all in short, then each in full."""
    from curvewise.drawing.picture import use_no_display
    from curvewise.report.content import Report, Section
    from curvewise.report.export import exported_files
    from curvewise.report.study import reproduction, runs_of
    from curvewise.study.status import planned_runs

    planned = planned_runs(study)
    sections = (Section("In short", text=tuple(tour.in_short)), *tour.sections)
    report = Report(
        title="Two networks on handwritten digits",
        question="Which network is better with how much data, and how sure is that?",
        answer=tuple(tour.in_short[:3]),
        figure=next(f for s in sections for f in s.figures),
        warnings=tuple(dict.fromkeys(w for s in sections for w in s.warnings)),
        sections=sections,
        runs=runs_of(study, planned, status),
        reproduce=reproduction(study, planned, tour.file(STUDY)),
    )
    use_no_display()
    page = cw.write_report(report, tour.file("report.html"))
    cw.export_report(report, tour.folder, [], ["png"], index="summary.md")
    return [str(page), *(str(tour.file(name)) for name in exported_files(report, [], ["png"], "summary.md"))]


@dataclass
class Tour:
    """The demo so far.

    Attributes
    ----------
    page : Page
        Where it is shown.
    folder : Path
        Where files are written.
    sections : list of Section
        For the report.
    in_short : list of str
        The answer to each question, a sentence or two.
    python, commands : list of str
        Lines that do the same in Python and in a shell.
    files : list of str
        What was written beside the report.
    """

    page: Page
    folder: Path
    sections: list[Section] = field(default_factory=list)
    in_short: list[str] = field(default_factory=list)
    python: list[str] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        file = str(self.file(STUDY))
        self.python = ["import curvewise as cw", f"study = cw.load_study({file!r})"]
        self.commands = [f"curvewise study run {shlex.quote(file)}"]

    def file(self, name: str) -> Path:
        """Return the path of a file of the demo."""
        return self.folder / name

    def ask(
        self,
        question: str,
        *answers: Any,
        names: Sequence[str] = (),
        first: Sequence[str] = (),
        last: Sequence[str] = (),
        figures: Mapping[str, Callable[[], Any]] | None = None,
        short: str | None = None,
    ) -> None:
        """Put a question, its answers and their pictures on the page and into the report.

        ``names`` says whom each is about, where the answers do not say it themselves; ``first`` and ``last`` are what
        to know before and after them. In short it is the first sentence of the last answer, or ``short``.
        """
        from curvewise.report.content import Figure, Section
        from curvewise.report.lenses import prefix_each
        from curvewise.report.results import METHODS, first_sentences, lens_of

        text: list[str] = [*first]
        warnings: list[str] = []
        for answer, name in zip(answers, names or [""] * len(answers), strict=True):
            text.append(f"{name}: {answer.sentences()}" if name else answer.sentences())
            about = name or getattr(answer, "learner", "")
            warnings += prefix_each(answer.all_warnings, about) if about else answer.all_warnings
        text += last
        self.page.say(question, style="bold")
        for sentence in text:
            self.page.say(sentence, close=True)
        warn_each(warnings)
        drawn = tuple(Figure(name, question, draw) for name, draw in (figures or {}).items())
        method = METHODS.get(lens_of(answers[0]), ())
        self.sections.append(Section(question, tuple(text), tuple(warnings), drawn, method=method))
        self.in_short.append(short or " ".join(first_sentences(answers[-1].sentences(), 1)))


# One function for each lens. The same networks serve all of them, so that the demo trains only once.


def show_learning(tour: Tour, study: cw.Study) -> None:
    """Show how error falls with data, and which network is better with how much."""
    from curvewise.report.lenses import name_parts, prefix_each
    from curvewise.report.results import first_sentences, section_of

    # One row per subset: runs that share one are not independent, so their seeds are averaged.
    table = tour.file("errors.csv")
    rows = study.measurements(seeds="mean").frame()
    rows[["learner", "n", "fold", "error"]].to_csv(table, index=False, lineterminator="\n")
    tour.files.append(str(table))
    measurements = cw.load_measurements(table)
    with quietly():
        curves: Any = cw.fit_learning_curves(measurements)  # a power law of each, which has a γ
        extrapolated = cw.fit_learning_curves(measurements, form="auto")
    numbers = [{"learner": c.learner, "values": c.interval_at(), "gamma": c.gamma_interval()} for c in curves]
    columns: dict[str, list[Any]] = {
        "learner": [row["learner"] for row in numbers],
        "N": [int(row["values"].n) for row in numbers],
        "e_N": [row["values"].error for row in numbers],
        "β_N": [row["values"].data_reliance for row in numbers],
        "γ": [row["gamma"] for row in numbers],
    }
    tour.page.table("Error and data-reliance at N (95% confidence intervals)", columns, 4)
    tour.page.say(LEGEND, style="dim")
    section = section_of(curves, "How does error fall with data?", runs=measurements)
    warnings = tuple(w for c in curves for w in prefix_each(c.all_warnings, c.learner))
    warn_each(warnings)
    section = name_parts(section, "curves", "Error e_N and data-reliance β_N")
    tour.sections.append(replace(section, text=tuple(c.sentences() for c in curves), warnings=warnings))
    smallest, largest = float(measurements.n.min()), float(measurements.n.max())
    few, many = (cw.compare_learning_curves(curves[A], curves[B], at=n) for n in (smallest, largest))
    reach = [curve.samples_to_reach(TARGET) for curve in curves]
    ranking = cw.rank_learners(extrapolated, at=4 * largest)
    tour.page.document |= {"curves": curves, "table": numbers, "comparison": many}
    tour.page.document |= {"samples_to_reach": reach, "ranking": ranking}
    sizes, targets = (" ".join(first_sentences(r.sentences(), 1)[0] for r in both) for both in ((few, many), reach))
    question = f"Which is better with {largest:,.0f} digits to learn from?"
    tour.ask(question, many, figures={"comparison": many.plot}, short=sizes)
    tour.ask(f"How many digits does an error of {TARGET:.0%} take?", *reach, short=targets)
    tour.ask("Which will be better with four times the data?", ranking)
    tour.python += [
        'errors = study.measurements(seeds="mean")',
        "print(cw.compare_learning_curves(*cw.fit_learning_curves(errors)))",
    ]
    file = shlex.quote(str(table))
    tour.commands += [
        f"curvewise learning compare {file}",
        f"curvewise learning fit {file} --reach {TARGET:g}",
        f"curvewise learning rank {file} --at {ranking.at:.0f} --form auto",
    ]


def show_variance(tour: Tour, study: cw.Study) -> None:
    """Show how much of a difference is due to seeds and the finite test set."""
    import numpy as np

    n = max(study.partition.sizes)
    runs = {name: study.predictions(name, n=n) for name in (A, B)}
    paths = []
    for name, found in runs.items():  # files that other tools can read; the store has the same, run by run
        paths.append(str(tour.file(f"{name.lower()}.npz")))
        labels = np.asarray(found.labels, dtype=np.uint8)
        np.savez_compressed(paths[-1], preds=np.asarray(found.values).astype(np.uint8), labels=labels)
    tour.files += paths
    with quietly():
        spread = {name: cw.decompose_variance(found) for name, found in runs.items()}
        better = cw.compare_runs(runs[A], runs[B], names=(A, B), paired=False)
    tour.page.document |= {"seeds": spread, "better": better}
    shares = " and ".join(
        f"{one.distribution_share:.0%} ({one.share_interval.low:.0%} to {one.share_interval.high:.0%}) for the {name}"
        for name, one in spread.items()
    )
    question = f"How much of the difference between {runs[A].runs} seeds is real?"
    short = f"Of the variance between seeds, about {shares} would be there again on new digits."
    figures = {"spread": spread[A].plot}
    tour.ask(question, *spread.values(), names=list(spread), figures=figures, short=short)
    tour.ask(f"Is the {A} better than the {B} on new digits, too?", better, figures={"seeds": better.plot})
    tour.python += [
        f'cnn, mlp = (study.predictions(k, n={n}) for k in ("{A}", "{B}"))',
        "print(cw.decompose_variance(cnn))",
        f'print(cw.compare_runs(cnn, mlp, names=("{A}", "{B}"), paired=False))',
    ]
    a, b = map(shlex.quote, paths)
    tour.commands += [f"curvewise variance decompose {a}", f"curvewise variance compare {a} {b} --fail-if worse"]


def show_response(tour: Tour, study: cw.Study) -> None:
    """Show which network holds up when the digits it has learned move."""
    n = max(study.partition.sizes)
    found = {name: study.network(name, n=n) for name in (A, B)}
    networks = {name: one.network for name, one in found.items()}
    examples = found[A].examples
    with quietly():
        curves = cw.measure_responses(networks, examples, MOVED, magnitudes=BY, progress=False)
        better = cw.response.compare_responses(curves[A], curves[B])
    tour.page.document |= {"responses": curves, "response": better}
    figures = {
        "responses": lambda: cw.response.plot_responses(curves),
        "moved": lambda: cw.response.plot_perturbed(examples, MOVED, BY),
    }
    question = "Which holds up when the digits it has learned move?"
    tour.ask(question, *curves.values(), better, figures=figures)
    tour.python += [
        f'nets = {{k: study.network(k, n={n}) for k in ("{A}", "{B}")}}',
        f'data = nets["{A}"].examples',
        f'moved = cw.measure_responses({{k: v.network for k, v in nets.items()}}, data, "{MOVED}", magnitudes={BY})',
        f'print(cw.response.compare_responses(moved["{A}"], moved["{B}"]))',
    ]
    tour.commands += ["curvewise response perturbations", "curvewise response measures"]


def show_ranking(tour: Tour, study: cw.Study) -> None:
    """Show which network is the best start for digits that lie on their side."""
    import numpy as np

    found = {f"{name}, {n} digits": study.network(name, n=n) for name in (A, B) for n in study.partition.sizes}
    networks = {name: one.network for name, one in found.items()}
    seen = next(iter(found.values())).examples
    scale = cw.ranking.Preprocessing(mean=seen.mean or 0, std=seen.std or 1, channels="grey")
    data = (np.rot90(study.dataset.x, axes=(-2, -1)).copy(), study.dataset.y)
    with quietly():
        ranking = cw.rank_checkpoints(networks, data, MEASURES, preprocessing=scale, examples=EXAMPLES, progress=False)
    tour.page.document["checkpoints"] = ranking
    question = "Which network to start from, if digits come lying on their side?"
    tour.ask(question, ranking, figures={"checkpoints": ranking.plot})
    tour.python += [
        "import numpy as np",
        "turned = np.rot90(study.dataset.x, axes=(-2, -1)).copy()",
        'scale = cw.ranking.Preprocessing(mean=data.mean, std=data.std, channels="grey")',
        f'starts = [(k, n) for k in ("{A}", "{B}") for n in study.partition.sizes]',
        'pool = {f"{k}, {n} digits": study.network(k, n=n).network for k, n in starts}',
        f"print(cw.rank_checkpoints(pool, (turned, study.dataset.y), {MEASURES}, "
        f"preprocessing=scale, examples={EXAMPLES}))",
    ]
    tour.commands.append("curvewise ranking measures")


def show_transfer(tour: Tour, study: cw.Study) -> None:
    """Show what upright digits are worth to a network that learns them lying on their side."""
    import numpy as np

    # Digits that the first study held out, turned, and a study of them that starts from its weights or from none.
    held_out, most = study.test_examples(), max(study.partition.sizes)
    data, file = tour.file("turned.npz"), tour.file(TURNED_STUDY)
    np.savez_compressed(data, x=np.rot90(held_out.x, axes=(-2, -1)).copy(), y=held_out.y)
    weights = next(iter(cw.study.checkpoint_files(study, A, n=most).values()))
    training = study.learners[A].training
    assert training is not None
    place = os.path.relpath(weights, tour.folder.resolve()).replace(os.sep, "/")
    text = _asset(TURNED_STUDY).format(seed=study.seed, epochs=f"{training.epochs:g}", weights=place)
    file.write_text(text, encoding="utf-8", newline="\n")
    tour.files += [str(data), str(file)]
    turned = cw.load_study(file)
    turned.run(device="cpu")
    maximal = round(float(np.mean(study.measurements(n=most).of(A).error)), 4)
    with quietly():
        found = cw.measure_transfer(cw.study.transfer_risks(turned, metric="error", maximal=maximal))
    tour.page.document["transfer"] = found
    about = [
        f"The ranking above chose among networks. This asks whether to start from one at all: "
        f"'upright' is the {A} of the first study, which has learned {most:,} upright digits, and "
        "'scratch' the same network with random weights; both are trained on a few digits that lie "
        "on their side.",
        "CCI (calibrated cumulative improvement) is how far the start closes the gap between "
        "scratch and maximal supervision over all training sizes: 0 is no better than scratch, 1 "
        f"as good as maximal supervision. That is the error of {maximal:.1%} which the {A} has on "
        f"upright digits after {most:,} of them; the blind guess is the most frequent digit.",
    ]
    one = found.improvement(found.tasks[0], "upright")
    first, worth = one.data_equivalence[0], one.data_equivalence[0].equivalent
    if first.beyond == "above":
        value = f"better than scratch with {found.curve(found.tasks[0], found.scratch).n[-1]:,.0f}"
    elif first.beyond == "below":
        value = "no better than scratch with as many"
    else:
        known = format_interval(worth, write=format_size) if worth.low == worth.low else format_size(worth.estimate)
        value = f"as good as scratch with about {known}"
    last = [f"With {one.n[0]:.0f} digits it is {value}."]
    cci = format_interval(one.cci, write="{:.2f}".format)
    verdict = "a better" if one.cci.low > 0 else "a worse" if one.cci.high < 0 else "not significantly a better"
    short = f"Digits that lie on their side: a {A} that knows upright ones is {verdict} start than none (CCI {cci})."
    question = "Is a network that knows upright digits a better start than none?"
    tour.ask(question, found, first=about, last=last, figures={"transfer": found.plot}, short=short)
    tour.python += [
        f"turned = cw.load_study({str(file)!r})",
        f'risks = cw.study.transfer_risks(turned, metric="error", maximal={maximal})',
        "print(cw.measure_transfer(risks))",
    ]
    command = f"curvewise transfer measure {shlex.quote(str(file))} --risk-column error --maximal {maximal}"
    tour.commands.append(command)


LENSES = (show_learning, show_variance, show_response, show_ranking, show_transfer)
"""Every lens there is, in the order of the demo."""
