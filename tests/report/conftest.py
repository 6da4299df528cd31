from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable
from pathlib import Path

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
