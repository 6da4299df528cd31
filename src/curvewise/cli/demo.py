"""``curvewise demo``: two networks on handwritten digits, eight questions and their answers."""

from __future__ import annotations

import math
import os
import re
import shlex
import sys
import textwrap
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from importlib.util import find_spec
from itertools import starmap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import curvewise as cw
from curvewise.cli.console import Flag, Page, UsageError, console, warn_each
from curvewise.errors import CurvewiseError, MissingDependencyError, quietly
from curvewise.progress import Advance, progress_bar, say
from curvewise.text import format_count, format_interval, format_size
from curvewise.types.results import Interval

if TYPE_CHECKING:
    from rich.text import Text

    from curvewise.report.content import Section

FOLDER = "curvewise-demo"
STUDY, PRETRAINING, NEW_WRITERS = "study.toml", "pretraining.toml", "new_writers.toml"
A, B = "CNN", "MLP"
"""The two networks, the one with more to gain from data first."""

FULL: dict[str, Any] = {"sizes": [62, 125, 250, 500, 1000], "folds": [8, 8, 4, 2, 1], "seeds": 12, "epochs": 16}
FULL_STARTS: dict[str, Any] = {
    "known": [50, 100, 300, 1000],
    "sizes": [10, 20, 40, 80, 160],
    "folds": [8, 8, 8, 4, 2],
    "epochs": 60,
}
FAST: dict[str, Any] = {"sizes": [25, 50, 100, 200, 400], "folds": [4, 4, 2, 1, 1], "seeds": 5, "epochs": 12}
FAST_STARTS: dict[str, Any] = {"known": [100, 400], "sizes": [10, 20, 40, 80], "folds": [4, 4, 4, 2], "epochs": 30}

TARGET = 0.05
FURTHER = 4
"""Curves are extrapolated to so many times the data."""
MOVED, BY = "shift-x", [-0.25, -0.125, 0, 0.125, 0.25]
KNOWN = 1287
"""The digits come in the order of the forms that 13 people filled in. Here a form begins, and the last four follow."""
# The deciding measure first. LogME does with little data; NLEEP, whose mixture of Gaussians is fitted to 160 digits
# here, gives all starts the same rank within its intervals.
MEASURES = ["logme", "knn"]
TESTED = 190
"""Digits of the new writers to test on; 320, or 32 of each class, are left to learn from."""
COLOURS = {A: "bold cyan", B: "bold yellow"}


def demo(
    *,
    out: Path = Path(FOLDER),
    seed: int = 0,
    fast: Flag = False,
    verbose: Flag = False,
    dry_run: Flag = False,
    json: Flag = False,
) -> int:
    """Train small networks on handwritten digits and answer eight questions about them.

    Trains a CNN and an MLP on growing parts of scikit-learn's digits, each with many seeds, and
    prints which one is better with how much data, what more data would bring, how much of the
    difference between seeds is real, how both respond to shifted digits, and whether to start from
    a pretrained network. Takes about two minutes on two cores, and needs no download. A demo that
    was stopped continues where it was.

    Parameters
    ----------
    out
        Folder for the studies, their runs, tables and the report.
    seed
        Determines the test set, the training subsets and the seeds of all runs.
    fast
        Use fewer and smaller trainings: about 20 seconds, and wider intervals.
    verbose
        Print each answer in full, with its warnings, the same in Python and as commands, and all files.
    dry_run
        Show what would be trained and written, and do nothing.
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
    size = FAST if fast else FULL
    runs = 2 * size["seeds"] * sum(size["folds"])
    say(
        f"Training {runs} small networks on handwritten digits: about {'20 s' if fast else 'two minutes'} on two cores",
        None,
    )
    try:
        with progress_bar("starting", 1.0) as bar:
            tour = Tour(page, out, bar if sys.stderr.isatty() else MilestoneLines(), fast=fast)
            study = _write_study(out / STUDY, text)
            status = tour.run(study, f"{runs} networks", 0.66, workers=0 if fast else None)
            page.document = {"type": "Demo", "seed": seed, "status": status}
            for lens in LENSES:
                lens(tour, study)
            tour.advance(0.1, "report")
            report = write_report(tour, study, status, ["--seed", str(seed), *["--fast"] * fast])
            tour.advance(0.02, "finished")
    except KeyboardInterrupt as stop:
        stop.add_note("Finished runs are kept: the same command continues from there.")
        raise
    page.document["in_short"] = list(starmap(_sentence, tour.bullets))
    page.document["files"] = [str(report), str(tour.file(STUDY)), *tour.files]
    if not json:
        show_demo(tour, verbose=verbose, files=page.document["files"])
    return page.close()


def show_demo(tour: Tour, *, verbose: bool, files: Sequence[str]) -> None:
    """Print the chart and the answers in short, or everything."""
    from rich.text import Text

    to = console()
    width = min(to.width, 100)
    if verbose:
        for section in tour.sections:
            tour.page.say(section.title, style="bold")
            for sentence in section.text:
                tour.page.say(sentence, close=True)
            warn_each(section.warnings)
        tour.page.say("In short", style="bold")
    for line in tour.chart(width) if to.encoding.lower().startswith("utf") else ():
        to.print(line, no_wrap=True, crop=False)
    for label, text in tour.bullets:
        wrapped = Text("\n".join(textwrap.wrap(f"• {_sentence(label, text)}", width - 1, subsequent_indent="  ")))
        wrapped.stylize("bold", 2, 2 + len(label))
        to.print(wrapped)
    if verbose:
        for title, lines in {"in Python": tour.python, "on the command line": tour.commands}.items():
            tour.page.say(f"The same {title}", style="bold")
            tour.page.code("\n".join(lines))
        tour.page.say("Written", style="bold")
        tour.page.code("\n".join(files))
        return
    alarms = sum(len(section.warnings) for section in tour.sections)
    more = f"; {format_count(alarms, 'warning')} there and with --verbose" if alarms else ""
    to.print()
    to.print(f"In brackets: 95% intervals. Figures and details: {files[0]}{more}", soft_wrap=True)
    to.print("More here: curvewise demo --verbose. Commands for your own data: curvewise", soft_wrap=True)


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
        f"subsets with {design.seeds} seeds each, then a few that start from pretrained weights, and write the "
        f"studies, their runs, tables and a report into {out}. Dry run: nothing was trained."
    )
    page.table("Networks to train", {"training size": sizes, "subsets": folds, "networks": runs})
    return page.close()


def _write_study(path: Path, text: str) -> cw.Study:
    """Write the study file, unless it was edited since."""
    if path.exists():
        there = path.read_text(encoding="utf-8")
        seed = re.search(r"^seed = (\d{1,20})$", there, re.MULTILINE)
        if there not in [demo_text(int(seed[1]) if seed else 0, fast=fast) for fast in (False, True)]:
            raise UsageError(
                f"{path} is no longer the study of the demo: name another folder with --out, or run "
                f"yours with `curvewise study run {shlex.quote(str(path))}`."
            )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")
    return cw.load_study(path)


def demo_text(seed: int = 0, *, fast: bool = False) -> str:
    """Return the demo's study file: a text, not an object, for people to read and to change.

    >>> "seeds = 5 " in demo_text(fast=True)
    True
    """
    return _asset(STUDY).format(seed=seed, **(FAST if fast else FULL))


def _asset(name: str) -> str:
    return (files("curvewise.cli") / "assets" / name).read_text(encoding="utf-8")


def write_report(tour: Tour, study: cw.Study, status: Any, options: Sequence[str]) -> Path:
    """Write the report: the first answers at the top, then each question in full."""
    from curvewise.drawing.picture import use_no_display
    from curvewise.report.content import Report
    from curvewise.report.study import reproduction, runs_of
    from curvewise.study.status import planned_runs

    planned = planned_runs(study)
    folder = tour.folder.resolve().name
    named = [] if folder == FOLDER else ["--out", folder]
    again = replace(
        reproduction(study, planned, tour.file(STUDY)),
        steps=f"Run this command in the folder that contains {folder}. Finished runs are not trained again.",
        command=shlex.join(["curvewise", "demo", *options, *named]),
    )
    report = Report(
        title="Two networks on handwritten digits",
        question="Which network is better with how much data, and how certain is that?",
        answer=tuple(_sentence(label, text) for label, text in tour.bullets[:HEADLINE]),
        figure=next(f for s in tour.sections for f in s.figures),
        warnings=tuple(dict.fromkeys(w for s in tour.sections for w in s.warnings)),
        sections=tuple(tour.sections),
        runs=runs_of(study, planned, status),
        reproduce=again,
    )
    use_no_display()
    return Path(cw.write_report(report, tour.file("report.html")))


def _sentence(label: str, text: str) -> str:
    """Write an answer in short as a sentence of its own."""
    return f"{label}: {text}"


class MilestoneLines:
    """Progress where there is no terminal: a line with the first results and at each third of the work."""

    def __init__(self) -> None:
        self.began, self.done, self.left = time.monotonic(), 0.0, [0.01, 0.33, 0.66]

    def __call__(self, amount: float, text: str | None = None) -> None:
        """Move on; print a line where the next share of the work is reached."""
        self.done += amount
        if self.left and self.done >= self.left[0]:
            self.left = [share for share in self.left if share > self.done]
            elapsed = time.monotonic() - self.began
            say(f"{self.done:.0%} after {elapsed:.0f} s{f': {text}' if text else ''}", None)


HEIGHT = 9
"""Lines of the chart."""
BRAILLE = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""Bits of the two by four dots of a character, by row and column; that without dots is U+2800."""
HEADLINE = 3
"""Answers at the top of the report; the others begin their own sections."""


@dataclass
class Tour:
    """The demo so far.

    Attributes
    ----------
    page : Page
        Where it is shown.
    folder : Path
        Where files are written.
    advance : callable
        Moves the progress bar on by what the stage before took, and names the next; the whole demo is 1.
    fast : bool
        Whether fewer networks are trained.
    sections : list of Section
        For the report.
    bullets : list of (str, str)
        The answer to each question: what it is about, and a sentence or two.
    curves : LearningCurves
        For the chart.
    python, commands : list of str
        Lines that do the same in Python and in a shell.
    files : list of str
        What was written beside the report.
    """

    page: Page
    folder: Path
    advance: Advance
    fast: bool = False
    sections: list[Section] = field(default_factory=list)
    bullets: list[tuple[str, str]] = field(default_factory=list)
    curves: Any = None
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

    def run(self, study: cw.Study, what: str, share: float, **options: Any) -> Any:
        """Make the runs of a study, which take this share of the demo."""
        cost = {job.id: job.cost for job in study.jobs}
        whole, moved, done = sum(cost.values()), 0.0, 0

        def hear(event: Any) -> None:
            nonlocal moved, done
            if event.kind in ("done", "failed"):
                step = share * cost[event.id] / whole
                moved, done = moved + step, done + 1
                # The share done is of the expected work, of which small trainings are little.
                self.advance(step, f"{what}, the smallest first: {done} trained")

        self.advance(0.0, f"{what}, the smallest first")
        status = study.run(device="cpu", progress=False, tell=hear, **options)
        self.advance(share - moved, what)
        if status.done < status.planned:
            file = self.file(STUDY if study.name == "digits" else study.name)
            raise CurvewiseError(
                f"{status.planned - status.done} of {status.planned} runs failed: "
                f"`curvewise study status {shlex.quote(str(file))}` shows why."
            )
        return status

    def ask(
        self,
        question: str,
        *answers: Any,
        bullets: Mapping[str, str],
        names: Sequence[str] = (),
        first: Sequence[str] = (),
        figures: Mapping[str, Callable[[], Any]] | None = None,
    ) -> None:
        """Put a question, its answers and their pictures into the report.

        ``names`` says which network each answer is about, where the answers do not say it themselves; ``first`` is
        what to know before them; ``bullets`` are the answers in short.
        """
        from curvewise.report.content import Figure, Section
        from curvewise.report.lenses import prefix_each
        from curvewise.report.results import method_of

        # What the top of the report says is not repeated.
        text = [*(starmap(_sentence, bullets.items()) if len(self.bullets) >= HEADLINE else ()), *first]
        warnings: list[str] = []
        for answer, name in zip(answers, names or [""] * len(answers), strict=True):
            text.append(f"{name}: {answer.sentences()}" if name else answer.sentences())
            about = name or getattr(answer, "learner", "")
            warnings += prefix_each(answer.all_warnings, about) if about else answer.all_warnings
        drawn = tuple(Figure(name, question, draw) for name, draw in (figures or {}).items())
        method = method_of(answers[0])
        self.sections.append(Section(question, tuple(text), tuple(dict.fromkeys(warnings)), drawn, method=method))
        self.bullets += bullets.items()

    def chart(self, width: int) -> list[Text]:
        """Draw the learning curves with characters: error against training size, both on logarithmic axes."""
        import numpy as np
        from rich.text import Text

        curves = [self.curves[name] for name in (A, B)]
        sizes = [float(n) for n in curves[0].n]
        far, room = FURTHER * sizes[-1], 6
        ends = {curve.learner: float(curve.error_at(far)) for curve in curves}
        low, high = 0.85 * min(ends.values()), 1.1 * max(float(max(curve.mean)) for curve in curves)
        columns = width - 2 * room

        def dot_row(error: Any) -> Any:
            """Return the rows of dots, four of which are one of characters; errors beyond the axis are at its end."""
            share = np.log(high / np.maximum(error, 1e-9)) / np.log(high / max(low, 1e-3))
            return np.clip(np.rint(share * (4 * HEIGHT - 1)), 0, 4 * HEIGHT - 1).astype(int)

        def column_of(n: float) -> int:
            return round(math.log(n / sizes[0]) / math.log(far / sizes[0]) * (2 * columns - 1)) // 2

        signs, styles = np.zeros((HEIGHT, columns), dtype=int), np.full((HEIGHT, columns), "", dtype=object)
        marks: dict[tuple[int, int], str] = {}
        n_at = np.geomspace(sizes[0], far, 2 * columns)
        for curve, sign in zip(curves, "●○", strict=True):
            for column, (n, row) in enumerate(zip(n_at, dot_row(curve.errors_at(n_at)), strict=True)):
                if n <= sizes[-1] or column % 4 < 2:  # dashed where nothing was trained
                    place = (row // 4, column // 2)
                    signs[place] |= BRAILLE[row % 4][column % 2]
                    styles[place] = styles[place] or COLOURS[curve.learner]
            for n, mean in zip(curve.n, curve.mean, strict=True):
                place = (dot_row(mean) // 4, column_of(n))
                marks.setdefault(place, sign)
                styles[place] = COLOURS[curve.learner]
        names: dict[int, str] = {}
        for name in sorted(ends, key=lambda name: ends[name]):  # the better one lowest, two names in two rows
            row = min(dot_row(ends[name]) // 4, *(above - 1 for above in names), HEIGHT - 1)
            names[row] = name
        ticks = {dot_row(e) // 4: f"{e:.0%}" for e in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5) if low < e < high}
        legend = Text.assemble(("● ", COLOURS[A]), A, ("  ○ ", COLOURS[B]), B)
        lines = [legend.append("   error after training on n digits; lines: fits, dashed: predicted")]
        for row in range(HEIGHT):
            line = Text(f"{ticks[row]:>4} ┤" if row in ticks else "     │")
            for column in range(columns):
                dots = chr(0x2800 + signs[row, column]) if signs[row, column] else " "
                line.append(marks.get((row, column), dots), styles[row, column])
            if row in names:
                line.append(f" {names[row]}", COLOURS[names[row]])
            lines.append(line)
        axis = [" "] * (columns + room)
        for n in (*sizes, far):
            label = f"{n:,.0f}"
            start = max(0, min(column_of(n) - len(label) // 2, columns + room - len(label)))
            axis[start : start + len(label)] = label
        lines += [Text("     └" + "─" * columns + " n"), Text("      " + "".join(axis).rstrip())]
        return lines


# One function for each group of questions. The same networks serve all but the last two.


def _points(interval: Interval) -> str:
    """Write a difference of errors in percentage points.

    >>> _points(Interval(0.0167, -0.005, 0.0361))
    '1.7 points [-0.5, 3.6]'
    """
    return format_interval(interval, "fraction").replace("%", " points")


def _lead(difference: Interval) -> tuple[str, str, bool]:
    """Return which network has the lower error, by how much, and whether that is significant."""
    ahead = A if difference.estimate < 0 else B
    d = difference
    gap = Interval(-d.estimate, -d.high, -d.low, d.level, d.kind) if ahead == A else d
    return ahead, _points(gap), gap.low > 0


def show_learning(tour: Tour, study: cw.Study) -> None:
    """Show how error falls with data, and which network is better with how much."""
    from curvewise.report.lenses import name_parts, prefix_each
    from curvewise.report.results import section_of

    # One row per subset: runs that share one are not independent, so their seeds are averaged.
    tour.advance(0.0, "learning curves")
    table = tour.file("errors.csv")
    rows = study.measurements(seeds="mean").frame()
    rows[["learner", "n", "fold", "error"]].to_csv(table, index=False, lineterminator="\n")
    tour.files.append(str(table))
    measurements = cw.load_measurements(table)
    n, largest = (int(f(measurements.n)) for f in (min, max))
    runs = {name: study.predictions(name, n=largest) for name in (A, B)}
    with quietly():
        # The form that predicts best beyond the sizes measured, for all questions, so that each error is one number.
        curves: Any = cw.fit_learning_curves(measurements, form="auto")
        powers: Any = cw.fit_learning_curves(measurements)
        few, many = (cw.compare_learning_curves(curves[A], curves[B], at=at) for at in (n, largest))
        better = cw.compare_runs(runs[A], runs[B], names=(A, B), paired=False)
    reach = [curve.samples_to_reach(TARGET) for curve in curves]
    ranking = cw.rank_learners(curves, at=FURTHER * largest)
    numbers = [
        {"learner": c.learner, "values": c.interval_at(), "gamma": powers[c.learner].gamma_interval()} for c in curves
    ]
    tour.curves = curves
    tour.page.document |= {"curves": curves, "table": numbers, "comparison": many, "better": better}
    tour.page.document |= {"samples_to_reach": reach, "ranking": ranking}

    section = name_parts(
        section_of(curves, "How does error fall with data?", runs=measurements),
        "curves",
        "Error e_N and data-reliance β_N",
    )
    warnings = tuple(w for c in curves for w in prefix_each(c.all_warnings, c.learner))
    sets = len(measurements) // 2
    counted = (
        f"Each of the {sets} training sets counts as one run, the mean of its {study.design.seeds} seeds, because runs "
        f"on one training set are not independent: {len(study.jobs)} networks in all."
    )
    tour.sections.append(replace(section, text=(counted, *(c.sentences() for c in curves)), warnings=warnings))

    question = f"Which is better, with {n} digits to learn from and with {largest:,}?"
    about = (
        f"Two comparisons at n = {largest:,} answer two questions, with two estimates of the difference. That of the "
        f"curves asks what {largest:,} other training digits would give on this test set, and uses all sizes. That of "
        f"the runs uses those with {largest:,} digits: it keeps these and asks what other seeds would give on new test "
        "digits."
    )
    figures = {"comparison": many.plot, "seeds": better.plot}
    bullets = {"Little data": _few(few, curves), f"{largest:,} digits": side_by_side(many, better)}
    tour.ask(question, few, many, better, first=[about], figures=figures, bullets=bullets)
    best = dict(zip(ranking.learners, zip(ranking.error, ranking.low, ranking.high, strict=True), strict=True))
    leader, other = ranking.learners
    text = (
        f"with {ranking.at:,.0f} digits the {leader} is predicted to reach an error of "
        f"{format_interval(best[leader], 'fraction')}, the {other} {format_interval(best[other], 'fraction')}. The "
        f"{leader} is then better with a probability of {ranking.probability_best[0]:.0%}."
    )
    tour.ask("Which will be better with four times the data?", ranking, bullets={"More data": text})
    sizes = [f"the {r.learner} about {format_interval((r.estimate, r.low, r.high), write=format_size)}" for r in reach]
    text = f"{' and '.join(sizes)} training digits."
    tour.ask(
        f"How many digits does an error of {TARGET:.0%} take?", *reach, bullets={f"{TARGET:.0%} error takes": text}
    )
    tour.python += [
        'errors = study.measurements(seeds="mean")',
        'print(cw.compare_learning_curves(*cw.fit_learning_curves(errors, form="auto")))',
        f'cnn, mlp = (study.predictions(k, n={largest}) for k in ("{A}", "{B}"))',
        f'print(cw.compare_runs(cnn, mlp, names=("{A}", "{B}"), paired=False))',
    ]
    file = shlex.quote(str(table))
    tour.commands += [
        f"curvewise learning compare {file} --form auto",
        f"curvewise learning fit {file} --reach {TARGET:g} --form auto",
        f"curvewise learning rank {file} --at {ranking.at:.0f} --form auto",
    ]


def _few(found: Any, curves: Any) -> str:
    ahead, gap, significant = _lead(found.error_difference)
    errors = {name: f"{float(curves[name].error_at(found.at)):.1%}" for name in (A, B)}
    behind = B if ahead == A else A
    verb = "is significantly better" if significant else "leads, but not significantly"
    against = f"an error of {errors[ahead]} against {errors[behind]}, lower by {gap}"
    return f"with {found.at:.0f} digits the {ahead} {verb}: {against}."


def side_by_side(curves: Any, runs: Any) -> str:
    """Answer two questions about one size side by side."""
    both = [_lead(runs.difference), _lead(curves.error_difference)]
    one = both[0][0] == both[1][0]
    by = [
        "" if one and any(significant for _, _, significant in both) else f"the {ahead} leads by "
        for ahead, _, _ in both
    ]
    if not any(significant for _, _, significant in both):
        head = "neither network is significantly better"
    else:
        head = f"the {both[0][0]} leads" if one else "which network leads depends on the question"
    gaps = [
        f"{who}{gap}, {'significant' if significant else 'not significant'}"
        for who, (_, gap, significant) in zip(by, both, strict=True)
    ]
    return (
        f"{head}. For these training digits and new test digits: {gaps[0]}. For other training digits and these test "
        f"digits: {gaps[1]}."
    )


def show_variance(tour: Tour, study: cw.Study) -> None:
    """Show how much of the difference between seeds is due to the finite test set."""
    import numpy as np

    tour.advance(0.04, "seeds")
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
    tour.page.document["seeds"] = spread
    fitted = " and ".join(f"{tour.curves[name].error_at(n):.1%} ({name})" for name in (A, B))
    about = (
        f"The mean error here is that of the {runs[A].runs} runs on {n:,} digits. The fitted curves, which also go by "
        f"the smaller training sets, are at {fitted} there."
    )
    shares = {name: format_interval(one.share_interval, "fraction") for name, one in spread.items()}
    text = (
        f"of the variance between {runs[A].runs} seeds, {shares[A]} ({A}) and {shares[B]} ({B}) would remain on new "
        "digits; the rest comes from this test set."
    )
    question = f"How much of the difference between {runs[A].runs} seeds is real?"
    figures = {"spread": spread[A].plot}
    tour.ask(question, *spread.values(), names=list(spread), first=[about], figures=figures, bullets={"Seeds": text})
    tour.python.append("print(cw.decompose_variance(cnn))")
    a, b = map(shlex.quote, paths)
    tour.commands += [f"curvewise variance decompose {a}", f"curvewise variance compare {a} {b} --fail-if worse"]


def show_response(tour: Tour, study: cw.Study) -> None:
    """Show which network recognises the digits it has learned when they move."""
    tour.advance(0.01, "shifted digits")
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
    gap = better.differences["mean_accuracy"]
    kept = {name: f"{curve.mean_accuracy:.1%}" for name, curve in curves.items()}
    firm = "significant" if gap.low > 0 or gap.high < 0 else "not significant"
    text = (
        f"by up to two pixels, the {A} still knows {kept[A]} of its training digits, the {B} {kept[B]}: {_points(gap)} "
        f"apart, {firm}."
    )
    question = "Which network recognises the digits it has learned when they move?"
    tour.ask(question, *curves.values(), better, figures=figures, bullets={"Shifted digits": text})
    tour.python += [
        f'nets = {{k: study.network(k, n={n}) for k in ("{A}", "{B}")}}',
        f'data = nets["{A}"].examples',
        f'moved = cw.measure_responses({{k: v.network for k, v in nets.items()}}, data, "{MOVED}", magnitudes={BY})',
        f'print(cw.response.compare_responses(moved["{A}"], moved["{B}"]))',
    ]
    tour.commands += ["curvewise response perturbations", "curvewise response measures"]


def show_starts(tour: Tour, study: cw.Study) -> None:
    """Show which pretrained network is the best start for the digits of new writers, and whether it pays."""
    import numpy as np

    settings = FAST_STARTS if tour.fast else FULL_STARTS
    # The last forms of the data set are the digits of new writers; no network of the pretraining has seen them.
    x, y = study.dataset.x, study.dataset.y
    new = KNOWN + np.random.default_rng(study.seed).permutation(len(y) - KNOWN)
    train, test = new[TESTED:], new[:TESTED]
    known_data, new_data = (tour.file(file).with_suffix(".npz") for file in (PRETRAINING, NEW_WRITERS))
    np.savez_compressed(known_data, x=x[:KNOWN], y=y[:KNOWN])
    np.savez_compressed(new_data, x=x[train], y=y[train], test_x=x[test], test_y=y[test])
    training = study.learners[A].training
    assert training is not None
    text = _asset(PRETRAINING).format(seed=study.seed, sizes=settings["known"], epochs=f"{training.epochs:g}")
    tour.file(PRETRAINING).write_text(text, encoding="utf-8", newline="\n")
    pretraining = cw.load_study(tour.file(PRETRAINING))
    tour.run(pretraining, "pretraining", 0.05, workers=0)

    tour.advance(0.0, "ranking")
    starts = {f"{name}, {n:,} digits": (name, n) for name in (A, B) for n in pretraining.partition.sizes}
    found = {start: pretraining.network(name, n=n) for start, (name, n) in starts.items()}
    networks = {start: one.network for start, one in found.items()}
    seen = next(iter(found.values())).examples
    scale = cw.ranking.Preprocessing(mean=seen.mean or 0, std=seen.std or 1, channels="grey")
    with quietly():
        ranking = cw.rank_checkpoints(networks, (x[train], y[train]), MEASURES, preprocessing=scale, progress=False)
    tour.page.document["checkpoints"] = ranking
    chosen = ranking.checkpoints[0]
    learner, n = starts[chosen]
    named = f"{learner} pretrained on {n:,} digits"
    story = (
        f"The data set lists its digits in the order of the forms that 13 people filled in. The {KNOWN:,} digits of "
        f"the first forms are there for pretraining; the {len(y) - KNOWN} of the last four forms stand for new "
        f"writers, {len(train)} of them to learn from and {len(test)} to test on."
    )
    others = [name for name, winner in ranking.winners.items() if winner != chosen]
    apart = f" ({' and '.join(others)} {'another' if len(others) == 1 else 'others'})" if others else ""
    text = (
        f"of {ranking.ranked} networks pretrained on other people's digits, LogME puts the {named} first{apart}. The "
        f"best start is among its first {len(ranking.top)} with a probability of {ranking.best_certainty:.0%}."
    )
    question = "Which pretrained network to start from, for the digits of new writers?"
    figures = {"checkpoints": ranking.plot}
    tour.ask(question, ranking, first=[story], figures=figures, bullets={"New writers": text})

    weights = next(iter(cw.study.checkpoint_files(pretraining, learner, n=n).values()))
    place = os.path.relpath(weights, tour.folder.resolve()).replace(os.sep, "/")
    lines = re.search(rf"\[learners\.{learner}\]\n(.*?)epochs", demo_text(), re.DOTALL)
    assert lines is not None
    values = {"seed": study.seed, "weights": place, "network": lines[1].strip(), "known": n, **settings}
    tour.file(NEW_WRITERS).write_text(_asset(NEW_WRITERS).format(**values), encoding="utf-8", newline="\n")
    writers = cw.load_study(tour.file(NEW_WRITERS))
    tour.files += [str(tour.file(PRETRAINING)), str(known_data), str(tour.file(NEW_WRITERS)), str(new_data)]
    tour.run(writers, "new writers", 0.12, workers=0 if tour.fast else None)
    most = max(study.partition.sizes)
    maximal = round(float(np.mean(study.measurements(n=most).of(learner).error)), 4)
    with quietly():
        transfer = cw.measure_transfer(cw.study.transfer_risks(writers, metric="error", maximal=maximal))
    tour.page.document["transfer"] = transfer
    about = (
        f"'pretrained' starts from the {named}, 'scratch' from random weights; both then learn from the same few "
        "digits of the new writers. CCI (calibrated cumulative improvement) is the part of the gap between scratch and "
        "maximal supervision that the start closes, over all training sizes: 0 is no better than scratch, 1 as good as "
        f"maximal supervision. That is here the {learner} of the first study, trained on {most:,} digits of all "
        "writers: "
        f"an error of {maximal:.1%}."
    )
    question = "Does it pay to start from the pretrained network?"
    bullets = {"Pretraining": _worth(transfer, named)}
    tour.ask(question, transfer, first=[about], figures={"transfer": transfer.plot}, bullets=bullets)
    tour.python += [
        f"pretraining = cw.load_study({str(tour.file(PRETRAINING))!r})",
        f"starts = {{f'{{k}}, {{n:,}} digits': (k, n) for k in ('{A}', '{B}') for n in pretraining.partition.sizes}}",
        "pool = {start: pretraining.network(k, n=n) for start, (k, n) in starts.items()}",
        "seen = next(iter(pool.values())).examples",
        'scale = cw.ranking.Preprocessing(mean=seen.mean, std=seen.std, channels="grey")',
        f"new = cw.load_dataset({str(new_data)!r})",
        "networks = {start: one.network for start, one in pool.items()}",
        f"print(cw.rank_checkpoints(networks, (new.x, new.y), {MEASURES}, preprocessing=scale))",
        f"writers = cw.load_study({str(tour.file(NEW_WRITERS))!r})",
        f'risks = cw.study.transfer_risks(writers, metric="error", maximal={maximal})',
        "print(cw.measure_transfer(risks))",
    ]
    file = shlex.quote(str(tour.file(NEW_WRITERS)))
    tour.commands += [
        "curvewise ranking measures",
        f"curvewise transfer measure {file} --risk-column error --maximal {maximal}",
    ]


def _worth(transfer: Any, start: str) -> str:
    """Answer whether a start pays, and what it is worth in data."""
    (task,), (method,) = transfer.tasks, transfer.methods
    one, ours, scratch = (
        transfer.improvement(task, method),
        *(transfer.curve(task, k) for k in (method, transfer.scratch)),
    )
    n, risk = f"{ours.n[0]:.0f}", [f"{k.risk[0]:.1%}" for k in (ours, scratch)]
    cci = f"CCI {format_interval(one.cci, write='{:.2f}'.format)}"
    if one.cci.high < 0:
        return f"starting from the {start} is worse than starting from scratch ({cci}; 0 is no gain)."
    if one.cci.low <= 0:
        return f"starting from the {start} is not significantly better than from scratch ({cci}; 0 is no gain)."
    worth = one.data_equivalence[0]
    if worth.beyond == "above":
        value = f"even {scratch.n[-1]:.0f} digits leave it at {scratch.risk[-1]:.1%}"
    else:
        value = f"about {format_size(worth.equivalent.estimate)} digits are needed to match {risk[0]}"
    return (
        f"it pays. With {n} digits of the new writers, the {start} reaches an error of {risk[0]}. From scratch it is "
        f"{risk[1]}, and {value}."
    )


LENSES = (show_learning, show_variance, show_response, show_starts)
"""Every question, in the order of the demo."""
