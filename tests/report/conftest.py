from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import curvewise as cw
from curvewise.report.study import StudyReport, study_report
from curvewise.study import Study, load_study

ROOT = Path(__file__).parents[2]

SMALL = """
name = "tiny"
data = "digits"

[learners.bayes]
estimator = "sklearn.naive_bayes:GaussianNB"

[learners.tree]
estimator = "sklearn.tree:DecisionTreeClassifier"
max_features = 8

[design]
sizes = [50, 100, 200]
folds = 1
seeds = 5
"""


@pytest.fixture(scope="session")
def curves() -> cw.learning.LearningCurves:
    """Real curves, some of them flagged."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cw.CurvewiseWarning)
        return cw.fit_learning_curves(cw.load_measurements(ROOT / "examples" / "errors.csv"))


@pytest.fixture(scope="session")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """File of a small study whose 30 runs are done."""
    file = tmp_path_factory.mktemp("study") / "study.toml"
    file.write_text(SMALL)
    assert load_study(file).run(workers=0, progress=False).done == 30
    return file


@pytest.fixture(scope="session")
def ran_report(ran: Path) -> StudyReport:
    """The report of that study, for tests that only read it."""
    return study_report(load_study(ran), file=ran)


@pytest.fixture
def copied(ran: Path, tmp_path: Path) -> Callable[..., Study]:
    """A copy of the study, with its text changed and some of its runs gone."""

    def make(change: tuple[str, str] = ("", ""), keep: int = 30) -> Study:
        folder = tmp_path / "copy"
        shutil.copytree(ran.parent, folder)
        file = folder / "study.toml"
        file.write_text(SMALL.replace(*change))
        study = load_study(file)
        for job in study.jobs[keep:]:
            shutil.rmtree(study.runs_folder / job.id, ignore_errors=True)
        return study

    return make


PATIENCE = 60_000  # milliseconds: what is waited for on a busy machine, not what it should take


def found_chromium() -> str | None:
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)


@pytest.fixture(scope="module")  # while it runs, nothing else in the process can use asyncio
def browser() -> Iterator[Any]:
    """The system's Chromium, one for all tests of a file in a process."""
    playwright = pytest.importorskip("playwright.sync_api")
    program = found_chromium()
    if program is None:
        pytest.skip("no chromium here, and `make chromium` could not install Debian's")
    with playwright.sync_playwright() as started:
        running = started.chromium.launch(executable_path=program, args=["--no-sandbox"], timeout=PATIENCE)
        yield running
        running.close()


@pytest.fixture
def opened(browser: Any) -> Iterator[Callable[..., Any]]:
    """Open a page; when the test is done, it must have had no error and asked for nothing."""
    contexts, complaints, asked = [], [], []

    def open_page(place: Path, **options: Any) -> Any:
        context = browser.new_context(**({"viewport": {"width": 1440, "height": 900}} | options))
        contexts.append(context)
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        page.on("console", lambda m: complaints.append(m.text) if m.type != "log" else None)
        page.on("pageerror", lambda e: complaints.append(str(e)))
        page.on("request", lambda r: asked.append(r.url))
        page.goto(place.as_uri(), timeout=PATIENCE)
        page.wait_for_selector("body[data-ready]", timeout=PATIENCE)
        assert asked == [place.as_uri()]
        page.eval_on_selector_all("#runs details", "all => all.forEach((d) => d.setAttribute('open', ''))")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []
    assert len(asked) == len(contexts)
