"""``curvewise demo``: a study of two networks on digits, looked at through every lens."""

from __future__ import annotations

import shlex
import tomllib
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from curvewise.cli._console import FAILED, Page, UsageError
from curvewise.cli._demo_lenses import LENSES, Shown
from curvewise.cli._demo_study import demo_text, is_demo_text
from curvewise.cli._demo_told import Told
from curvewise.errors import CurvewiseError, MissingDependencyError

if TYPE_CHECKING:
    from curvewise.report.content import Report
    from curvewise.study import Status, Study

STUDY = "study.toml"
Flag = Annotated[bool, Parameter(negative="", show_default=False)]


def demo(
    *,
    out: Path = Path("curvewise-demo"),
    seed: int = 0,
    fast: Flag = False,
    dry_run: Flag = False,
    json: Flag = False,
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
    study = _written(out / STUDY, text)
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
    told = Told(page, out)
    shown = [lens(told, study) for lens in LENSES]
    _say_in_short(page, shown)
    _say_how(page, out, shown)
    _say_files(told, _report(told, study, status))
    return page.close()


def _say_plan(page: Page, text: str, out: Path) -> int:
    """Say what would be trained; needs neither torch nor the data."""
    from curvewise.study.document import study_from_document

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


def _written(path: Path, text: str) -> Study:
    """Write the study file, unless somebody made it another."""
    from curvewise.study import load_study

    if path.exists() and not is_demo_text(path.read_text(encoding="utf-8")):
        raise UsageError(
            f"{path} is not the study of the demo any more: name another folder with --out, or run "
            f"yours with `curvewise study run {shlex.quote(str(path))}`."
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")
    return load_study(path)


def _say_in_short(page: Page, shown: list[Shown]) -> None:
    lines = [line for part in shown for line in part.in_short]
    page.document["in_short"] = lines
    page.say("In short", style="bold")
    for line in lines:
        page.say(f"• {line}", close=True)


def _report(told: Told, study: Study, status: Status) -> Report:
    """What the demo has told, as a report: the first answers, then all in short, then each."""
    from curvewise.report.content import Report, Section
    from curvewise.report.runs import reproduction, runs_of
    from curvewise.study.standings import planned_runs

    in_short, planned = told.page.document["in_short"], planned_runs(study)
    sections = (Section("In short", text=tuple(in_short)), *told.sections)
    return Report(
        title="Two networks on handwritten digits",
        question="Which network is better with how much data, and how sure is that?",
        answer=tuple(in_short[:3]),
        figure=next(f for s in sections for f in s.figures),
        warnings=tuple(dict.fromkeys(w for s in sections for w in s.warnings)),
        sections=sections,
        runs=runs_of(study, planned, status),
        reproduce=reproduction(study, planned, told.folder / STUDY),
    )


def _say_how(page: Page, out: Path, shown: list[Shown]) -> None:
    file = str(out / STUDY)
    page.say("The same in Python", style="bold")
    load = ["import curvewise as cw", f"study = cw.load_study({file!r})"]
    page.code("\n".join([*load, *(line for part in shown for line in part.python)]))
    page.say("The same on the command line", style="bold")
    run = [f"curvewise study run {shlex.quote(file)}"]
    page.code("\n".join([*run, *(line for part in shown for line in part.commands)]))


def _say_files(told: Told, report: Report) -> None:
    """Write the report as a page and as text with figures, and name all files."""
    from curvewise.cli._study_report import write_files

    written = write_files(report, told.folder, index="summary.md")
    files = [str(told.folder / STUDY), *written, *told.files]
    told.page.document["files"] = files
    told.page.say("Written", style="bold")
    told.page.code("\n".join(files))
