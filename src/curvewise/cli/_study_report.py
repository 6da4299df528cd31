"""Reports on the terminal and in a folder."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from curvewise.cli._console import Page, UsageError, note, warn_each
from curvewise.errors import CurvewiseError, MissingDependencyError, os_reason

if TYPE_CHECKING:
    from curvewise.report.content import Report, Section
    from curvewise.study import Study

Format = Literal["html", "markdown", "latex", "all"]
USUAL = ("html", "markdown")
SHOWN = ("errors", "ranking")
"""Tables for the terminal; what the others have, sentences have said."""


def report_study(
    page: Page, study: Study, file: Path, folder: Path, *, form: str, format: Format | None
) -> None:
    """Look at a study through every lens, show the text, and write the report into a folder."""
    from curvewise.report.study import study_report

    make_folder(folder)
    report = study_report(study, form=form, file=file)
    show_report(page, report)
    try:
        files = write_files(report, folder, format)
    except CurvewiseError:
        raise
    except OSError as error:
        reason = os_reason(error, place=False)
        raise CurvewiseError(f"The report cannot be written to {folder}: {reason}.") from error
    warnings = list(report.warnings)
    page.document = {"type": "StudyReport", **report.found, "files": files, "warnings": warnings}
    warn_each(warnings)
    note(f"written to {', '.join(files[:2])}")


def show_report(page: Page, report: Report) -> None:
    """Print a report: the answer, then what every section says."""
    page.say(report.question, style="bold")
    for text in report.answer:
        page.say(text, close=True)
    for section in report.sections:
        show_section(page, section)
    if report.runs is not None:
        page.say("Runs", style="bold")
        for text in report.runs.text:
            page.say(text, close=True)


def show_section(page: Page, section: Section) -> None:
    """Print the title, the sentences and the tables of a section."""
    page.say(section.title, style="bold")
    for text in section.text:
        page.say(text, close=True)
    for table in section.tables:
        if table.name.split("-")[0] in SHOWN:
            page.table(table.title, table.columns, table.digits)


def write_files(
    report: Report, folder: Path, format: Format | None = None, index: str = "report.md"
) -> list[str]:
    """Write a report in the formats asked for, and say which files that made.

    Without a format, HTML and Markdown, the first only where its package is installed.
    """
    from curvewise.plot.save import use_no_display
    from curvewise.report import export_report, write_report
    from curvewise.report.export import exported_files

    wanted = (
        USUAL if format is None else ("html", "markdown", "latex") if format == "all" else (format,)
    )
    use_no_display()
    files: list[Path] = []
    if "html" in wanted:
        try:
            files.append(write_report(report, folder / "report.html"))
        except MissingDependencyError as error:
            if format is not None:
                raise
            note(str(error))
    tables = [kind for kind in ("latex",) if kind in wanted]
    figures = [e for e, kind in {"png": "markdown", "pdf": "latex"}.items() if kind in wanted]
    if tables or figures:
        export_report(report, folder, tables, figures, index=index)
        files += [folder / name for name in exported_files(report, tables, figures, index)]
    return [str(path) for path in files]


def make_folder(folder: Path) -> None:
    """Make the folder, and see that it can be written to before any work is done."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UsageError(
            f"The report cannot be written to {folder} ({error.strerror}): name another folder "
            "with --out."
        ) from error
