"""``curvewise study``: new, plan, run, submit, status, report."""

from __future__ import annotations

import inspect
import json as json_library
import re
import tempfile
import tomllib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import field, fields, replace
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Group, Parameter
from cyclopts.validators import Number

from curvewise.cli.console import (
    DONE,
    FAILED,
    AtLeast0,
    AtLeast1,
    Flag,
    Form,
    Page,
    Showing,
    Texts,
    UsageError,
    check_file,
    in_options,
    note,
    options,
    warn_each,
)
from curvewise.errors import CurvewiseError, InputError, MissingDependencyError, os_reason
from curvewise.nn.training import Training
from curvewise.progress import waiting

if TYPE_CHECKING:
    from curvewise.report.content import Report, Section
    from curvewise.study.plan import Plan
    from curvewise.study.status import Status
    from curvewise.study.study import Study


OPTIONS = dict.fromkeys([*(field.name for field in fields(Training)), "data"])
"""Settings of a study file: no option has their name."""

study = App(
    name="study",
    help="Train many models from one file, with an estimate before and a report after.\n\n"
    "FILE is a study file (TOML): data, learners, sizes × folds × seeds. `curvewise study new` "
    "writes one to start from. An interrupted study continues where it stopped.",
)

MOST_ROWS = 20
"""Of a plan in the terminal; one with more has a row for each learner instead of one for each size."""

File = Annotated[Path, Parameter(name="FILE")]
MAKING = Group("How to make the runs", sort_key=3)
ON_RAY = Group("On a Ray cluster", sort_key=4)
WATCHING = Group("Watch it run", sort_key=5)


@study.command
def new(file: File, /, *, recipe: str | None = None) -> int:
    """Write a study file to start from; an existing file is not changed.

    Example: `curvewise study new --recipe variance study.toml`

    Parameters
    ----------
    file
        The file to write.
    recipe
        Protocol of a paper: learning, variance, variance-sources, variance-binary, variance-rates,
        variance-augmentation, variance-imagenet, variance-fast, variance-linear, variance-text,
        response, transfer, transfer-eurosat, transfer-imagenet, transfer-dense, ranking,
        ranking-checkpoints. By default two small learners on the digits data.
    """
    text = starter_text(recipe)
    check_file("FILE", file)
    try:
        with file.open("x", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
    except FileExistsError:
        raise UsageError(f"{file} already exists: choose another name, or remove it.") from None
    note(f"written to {file}. Next: curvewise study plan {file}")
    return DONE


@study.command
def plan(
    file: File,
    /,
    *,
    measure: Annotated[bool, Parameter(show_default=False)] = True,
    device: Annotated[str | None, Parameter(group=MAKING)] = None,
    trust: Flag = False,
    showing: Showing = Showing(),
) -> int:
    """Show which runs a study will make, how long they take, and what to watch out for. Stores nothing.

    Exit status 1 if a learner cannot be trained as described.

    Example: `curvewise study plan study.toml --trust`

    Parameters
    ----------
    file
        The study.
    measure
        Time a few training steps of networks, and a fit of estimators at their smallest sizes,
        of which no run is stored.
    device
        Plan for this device, such as cpu, cuda or cuda:1.
    trust
        Import code that the study names, as `run` does: networks and estimators of your own. Without
        it, their options are not checked and their time is unknown.
    """
    page = showing.page()
    with waiting("reading the data and timing a few training steps" if measure else "reading the data"):
        found = _load(file, trust).plan(measure=measure, device=device)
    show_plan(page, found)
    return page.close(FAILED if found.impossible else DONE)


@options(MAKING)
class Making:
    """Options for making runs.

    Parameters
    ----------
    on
        Where: local, ray (a cluster started here), auto (the cluster of this machine), or the
        address of a Ray cluster.
    device
        Device for the networks: cpu, cuda (all GPUs) or cuda:1. By default GPUs if there are some.
    workers
        Processes; by default one for each GPU or core. 0 works in this process.
    in_flight
        Networks that a worker trains at once; by default as many as are quickest.
    no_compile
        Do not compile kernels on a GPU: quicker for many architectures with a few short runs each.
    stream
        Leave images in the memory of this machine, and copy them to the device batch by batch; results stay the same.
        Without it, where they take more than half of the device's free memory.
    shard
        Only this share of the runs, such as 3/16; each of the 16 may run at the same time.
    retry_failed
        Repeat failed runs, always or never; by default until they have failed three times.
    fresh
        Move the stored runs of the study aside, and train all of them again.
    """

    on: str = "local"
    device: str | None = None
    workers: AtLeast0 | None = None
    in_flight: AtLeast1 | None = None
    no_compile: Flag = False
    stream: Flag = False
    shard: str | None = None
    retry_failed: Annotated[bool | None, Parameter(show_default=False)] = None
    fresh: Flag = False


@options(ON_RAY)
class RayWorkers:
    """The workers of a Ray cluster.

    Parameters
    ----------
    cpus
        Cores for each worker; by default 1.
    gpus
        GPUs for each worker; 0.5 puts two workers on one. By default none.
    memory
        Memory for each worker, such as 8GiB.
    resources
        NAME=AMOUNT of a custom resource for each worker; may be repeated.
    runtime_env
        File (JSON or TOML) with the environment of the workers, as Ray takes it.
    logs
        Show what workers print, on stderr.
    """

    cpus: Annotated[float | None, Parameter(validator=Number(gte=0))] = None
    gpus: Annotated[float | None, Parameter(validator=Number(gte=0))] = None
    memory: str | None = None
    resources: Texts = field(default_factory=list)
    runtime_env: Path | None = None
    logs: Flag = False

    def given(self) -> dict[str, Any]:
        """Return the arguments that were given."""
        environment = None if self.runtime_env is None else _table(self.runtime_env)
        found = {**vars(self), "resources": _amounts(self.resources), "runtime_env": environment}
        return {name: value for name, value in found.items() if value is not None and value is not False}


@study.command
def run(
    file: File,
    /,
    *,
    making: Making = Making(),
    ray: RayWorkers = RayWorkers(),
    dry_run: Flag = False,
    trust: Flag = False,
    showing: Showing = Showing(),
) -> int:
    """Train the remaining runs. Exit status 1 if any run failed.

    This imports the code that the study names, and starts its commands: of a study that is not
    yours, read both first.

    Stop it with Ctrl-C at any time (exit status 130); run it again to continue. Short runs go first.

    Example: `curvewise study run study.toml`, or in a Slurm array
    `curvewise study run study.toml --shard $SLURM_ARRAY_TASK_ID/16`

    Parameters
    ----------
    file
        The study.
    dry_run
        Only print the plan.
    trust
        Import code that the study names even for --dry-run.
    """
    page = showing.page()
    loaded = _load(file, trust)
    if dry_run:
        show_plan(page, loaded.plan(measure=False, device=making.device))
        page.say("Dry run: nothing was trained.")
        return page.close()
    names = ("workers", "in_flight", "fresh", "shard", "retry_failed")
    chosen = {"compile": not making.no_compile, **{name: getattr(making, name) for name in names}}
    chosen |= {"stream": True} if making.stream else {}
    local = making.on == "local"
    if not local and making.device is not None:
        raise UsageError("--device is for --on local: workers of Ray take the devices they are given.")
    if local and ray.gpus is not None:
        raise UsageError("--gpus is for --on ray: on this machine, choose with --device.")
    workers = ray.given()
    if local and workers:
        raise UsageError(f"--{next(iter(workers)).replace('_', '-')} is for --on ray.")
    chosen |= {"device": making.device} if local else workers
    status = loaded.run(making.on, **chosen)
    show_status(page, status)
    return page.close(FAILED if status.failed else DONE)


@study.command
def submit(
    file: File,
    /,
    *,
    shards: AtLeast1,
    on: Literal["slurm"] = "slurm",
    at_once: AtLeast1 | None = None,
    cpus: AtLeast1 = 1,
    gpus: AtLeast0 = 0,
    memory: str | None = None,
    time: str | None = None,
    sbatch: Texts = [],
    out: Path | None = None,
) -> int:
    """Write a script that makes the runs of a study as an array of Slurm jobs; submit it with sbatch.

    Each job makes a share of the runs, with the Python of this command. Submit the script again to
    continue after the time was over. An existing file is not changed.

    Example: `curvewise study submit study.toml --shards 16 --gpus 1 --time 04:00:00 --sbatch partition=gpu`

    Parameters
    ----------
    file
        The study, in a folder that all nodes see.
    shards
        Jobs of the array.
    on
        The scheduler.
    at_once
        Jobs that may run at the same time.
    cpus
        Cores of each job.
    gpus
        GPUs of each job.
    memory
        Memory of each job, such as 16GiB.
    time
        Limit for each job, such as 04:00:00 or 2-12 (days-hours).
    sbatch
        Another option of sbatch without its dashes, such as partition=gpu; may be repeated.
    out
        The script; by default NAME.sbatch beside the study.
    """
    from curvewise.study.run.slurm import slurm_script

    _load(file, trust=False)  # a mistake in it is cheaper here than in sixteen jobs
    jobs: dict[str, Any] = {"at_once": at_once, "cpus": cpus, "gpus": gpus, "memory": memory, "time": time}
    text = slurm_script(file, shards, **jobs, sbatch=sbatch)
    place = out or file.with_suffix(".sbatch")
    try:
        with place.open("x", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
    except FileExistsError:
        raise UsageError(f"{place} already exists: choose another name with --out, or remove it.") from None
    except OSError as error:
        raise UsageError(f"{place} cannot be written: {os_reason(error, place=False)}.") from error
    note(f"written to {place}. Next: sbatch {place}")
    return DONE


def _amounts(texts: Sequence[str]) -> dict[str, float] | None:
    """Read NAME=AMOUNT; a name may have a colon in it."""
    found = {}
    for text in texts:
        name, equals, amount = text.rpartition("=")
        try:
            found[name] = float(amount)
        except ValueError:
            equals = ""
        if not equals or not name:
            raise UsageError(f"--resources {text}: write NAME=AMOUNT, such as accelerator_type:A100=0.01.")
    return found or None


def _table(file: Path) -> dict[str, Any]:
    """Read a table from a file of JSON or TOML."""
    try:
        text = file.read_text(encoding="utf-8")
        found = tomllib.loads(text) if file.suffix == ".toml" else json_library.loads(text)
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {os_reason(error)}.") from error
    except ValueError as error:  # of either kind
        raise UsageError(f"{file} is neither JSON nor, ending in .toml, TOML: {error}") from error
    if not isinstance(found, dict):
        raise UsageError(f'{file} must hold one table, such as {{"pip": ["torch"]}}.')
    return found


@study.command
def status(file: File, /, *, trust: Flag = False, showing: Showing = Showing()) -> int:
    """Show the progress of a study: finished, failed and remaining runs, and why runs failed.

    Example: `curvewise study status study.toml`

    Parameters
    ----------
    file
        The study.
    trust
        Call the function that makes the data, if one does; otherwise the copy that `run` kept is
        read.
    """
    page = showing.page()
    show_status(page, _load(file, trust).status())
    return page.close()


Format = Literal["html", "markdown", "latex", "all"]


@options(WATCHING)
class Watching:
    """A page that shows the progress.

    Parameters
    ----------
    watch
        Write nothing; show a page with the progress of the study on this machine, until Ctrl-C.
    port
        Of that page; by default one that is free.
    open_browser
        Open it in a browser.
    """

    watch: Flag = False
    port: Annotated[int, Parameter(validator=Number(gte=0, lte=65535))] = 0
    open_browser: Annotated[bool, Parameter(name="--open", negative="", show_default=False)] = False


@study.command
def report(
    file: File,
    /,
    *,
    out: Path | None = None,
    format: Format | None = None,
    form: Form = "power",
    json: Flag = False,
    verbose: Flag = False,
    trust: Flag = False,
    watching: Watching = Watching(),
) -> int:
    """Write a report of the runs: one page with answers, tables and figures.

    The study need not be finished: the report says what is missing.

    Example: `curvewise study report study.toml`, or while it runs elsewhere
    `curvewise study report study.toml --watch --open`

    Parameters
    ----------
    file
        The study.
    out
        Folder for the report; by default NAME-report beside the study file.
    format
        html: one page that needs nothing else. markdown: text with pictures beside it. latex:
        tables for papers, and pictures as PDF. By default the first two.
    form
        Of the learning curves; auto averages several, and predicts best beyond the data.
    json
        Print one JSON document with everything.
    verbose
        Print the text of every section, too.
    trust
        Call the function that makes the data, if one does; otherwise the copy that `run` kept is
        read.
    """
    loaded = _load(file, trust)
    if watching.watch:
        if json or format is not None or out is not None:
            raise UsageError("--watch writes no report: leave --out, --format and --json out.")
        return _watch(loaded, watching.port, watching.open_browser)
    if watching.port or watching.open_browser:
        raise UsageError("--port and --open are for --watch.")
    page = Page(as_json=json)
    # Named as the store is, see ``Study.runs_folder``.
    folder = out or loaded.folder / f"{re.sub(r'[^A-Za-z0-9_.-]+', '-', loaded.name)}-report"
    from curvewise.report.study import study_report

    try:  # before any work is done
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UsageError(
            f"The report cannot be written to {folder} ({error.strerror}): name another folder with --out."
        ) from error
    found = study_report(loaded, form=form, file=file)
    page.say(found.question, style="bold")
    if verbose:
        for text in found.answer:
            page.say(text, close=True)
    for section in found.without_repeats().sections:
        show_section(page, section, verbose)
    if not verbose:  # the page has the rest
        page.say(" ".join(found.answer))
    elif found.runs is not None:
        page.say("Runs", style="bold")
        for text in found.runs.text:
            page.say(text, close=True)
    try:
        files = write_files(found, folder, format)
    except CurvewiseError:
        raise
    except OSError as error:
        reason = os_reason(error, place=False)
        raise CurvewiseError(f"The report cannot be written to {folder}: {reason}.") from error
    page.document = {"type": "StudyReport", **found.found, "files": files, "warnings": list(found.warnings)}
    warn_each(list(found.warnings))
    note(f"written to {', '.join(files[:2])}")
    return page.close()


def _watch(loaded: Study, port: int, open_browser: bool) -> int:
    from curvewise.report.live import LivePage

    try:
        page = LivePage(loaded, port)
    except OSError as error:
        raise UsageError(f"--port {port} cannot be used ({error.strerror}): try another.") from None
    with page, suppress(KeyboardInterrupt):
        note(f"{loaded.name} is shown at {page.url} (stop with Ctrl-C).")
        if open_browser:
            import webbrowser

            webbrowser.open(page.url)
        page.serve()
    return DONE


def show_plan(page: Page, found: Plan) -> None:
    """Print a plan: a table, sentences, warnings."""
    from curvewise.study.status import duration

    page.document = found.to_dict()
    fields = ("learner", "n", "runs", "done", "failed", "to_do", "seconds")
    rows = [list(row) for row in zip(*(getattr(found, name) for name in fields), strict=True)]
    if len(rows) > MOST_ROWS and page.markup is None:  # one row for each learner
        joined: dict[str, list[list[Any]]] = {}
        for row in rows:
            joined.setdefault(row[0], []).append(row)
        rows = [
            [
                name,
                f"{min(r[1] for r in some):,} … {max(r[1] for r in some):,}",
                *map(sum, list(zip(*some, strict=True))[2:]),
            ]
            for name, some in joined.items()
        ]
    names = ("learner", "n", "runs", "finished", "failed", "remaining", "total time")
    values = dict(zip(names, zip(*rows, strict=True), strict=True))
    pairs = zip(values["total time"], values["remaining"], strict=True)
    columns: dict[str, Any] = values | {"total time": [duration(s) if k else "–" for s, k in pairs]}
    if not any((*values["finished"], *values["failed"])):
        columns = {k: v for k, v in columns.items() if k not in ("finished", "remaining")}
    columns = {k: list(v) for k, v in columns.items() if k != "failed" or any(v)}
    page.table(f"Study {found.name}: runs in {found.store}", columns)
    page.say(in_options(found.sentences()))
    warn_each(found.warnings)


def show_status(page: Page, found: Status) -> None:
    """Print how far a study is: counts, reasons of failures, who is at work."""
    from curvewise.study.status import duration

    page.document = found.to_dict()
    columns: dict[str, list[Any]] = {"learner": list(found.learners)}
    columns |= {k: [row[k] for row in found.learners.values()] for k in ("runs", "finished", "failed", "remaining")}
    columns["time"] = [duration(row["seconds"]) if row["seconds"] else "–" for row in found.learners.values()]
    if not found.failed:
        del columns["failed"]
    page.table(f"Study {found.name}: runs in {found.store}", columns)
    if found.failures:
        rows = [(f.count, ", ".join(f.learners), f.message, f.example) for f in found.failures]
        names = ("failed", "learners", "reason", "example")
        page.table("Why runs failed", {k: list(v) for k, v in zip(names, zip(*rows, strict=True), strict=True)})
    page.say(replace(found, failures=()).sentences())  # the failures have a table
    warn_each([*found.warnings, *found.problems[1:]])


def _load(file: Path, trust: bool) -> Study:
    from curvewise.study.study import load_study

    if not file.exists():
        raise UsageError(f"There is no file {file}: `curvewise study new {file}` writes one.")
    return load_study(file, trust=trust)


USUAL = ("html", "markdown")
SHOWN = ("errors", "ranking")
"""Tables for the terminal; what the others have, sentences have said."""


def show_section(page: Page, section: Section, verbose: bool = True) -> None:
    """Print the title, the sentences and the tables of a section; only the tables unless ``verbose``."""
    tables = [table for table in section.tables if table.name.split("-")[0] in SHOWN]
    if verbose and (section.text or tables):
        page.say(section.heading, style="bold")
        for text in section.text:
            page.say(text, close=True)
    for table in tables:
        page.table(table.title, table.readable())


def write_files(report: Report, folder: Path, format: Format | None = None) -> list[str]:
    """Write a report in the formats asked for, and say which files that made.

    Without a format, HTML and Markdown, the first only where its package is installed.
    """
    from curvewise.drawing.picture import use_no_display
    from curvewise.report.export import export_report, exported_files
    from curvewise.report.page import write_report

    wanted = USUAL if format is None else ("html", "markdown", "latex") if format == "all" else (format,)
    use_no_display()
    files: list[Path] = []
    if "html" in wanted:
        try:
            files.append(write_report(report, folder / "report.html"))
        except MissingDependencyError as error:
            if format is not None:
                raise
            note(str(error))
    tables = ["latex"] if "latex" in wanted else []
    figures = [e for e, kind in {"png": "markdown", "pdf": "latex"}.items() if kind in wanted]
    if tables or figures:
        export_report(report, folder, tables, figures, index="report.md")
        files += [folder / name for name in exported_files(report, tables, figures, "report.md")]
    return [str(path) for path in files]


# ---- Study files to begin with

# Recipes that cannot be written without a choice.
_CHOICES = {"variance-text": {"model": "models/encoder"}}


def starter_text(recipe: str | None = None) -> str:
    """Text of a study file to begin with, by the protocol of a paper if one is named.

    >>> "batch = 500" in starter_text("variance")
    True
    """
    if recipe is None:
        return (files("curvewise.study") / "assets" / "starter.toml").read_text(encoding="utf-8")
    from curvewise.study.spec.document import toml_text
    from curvewise.study.spec.recipes import RECIPES, recipe_document

    asked = {"name": recipe, **_CHOICES.get(recipe, {})}
    document = recipe_document(asked)
    document.pop("training")
    words = inspect.getdoc(RECIPES[recipe]) or ""
    said = words.split("\nParameters\n")[0].strip()
    head = [f"# {line}".rstrip() for line in f"Recipe {recipe}. {said}".splitlines()]
    tables = toml_text({"name": recipe, "seed": 0, "data": {"name": "digits"}, **document})
    if not document["learners"]:
        raise InputError(f"recipe={recipe!r} names no learner.")
    return "\n".join([*head, "", tables])
