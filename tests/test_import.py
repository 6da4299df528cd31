"""The cost of importing, and the public surface."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import curvewise as cw

HEAVY = {"pandas", "matplotlib", "torch", "sklearn", "scipy.stats", "rich", "cyclopts", "narwhals"}


@pytest.mark.parametrize(
    "code",
    ["import curvewise", "import curvewise as cw; cw.fit_learning_curve([1, 2, 4, 8], [.5, .4, .3, .25]).summary()"],
)
def test_nothing_heavy_is_loaded(code):
    script = f"import sys, warnings; warnings.simplefilter('ignore'); {code}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert HEAVY.isdisjoint(done.stdout.split())


HEADLINES = """
    load_measurements load_predictions write_run fit_learning_curve fit_learning_curves compare_learning_curves
    leave_one_size_out decompose_variance compare_runs compare_variances plan_runs gi_score pal_score measure_response
    cmi_score calibrated_risk measure_transfer leep nleep logme rank_checkpoints ranking_agreement load_study Interval
    Measurements Predictions Study Design Learner Training InputError CurvewiseError CurvewiseWarning load_dataset
    study_recipe write_report export_report Evals score_evals compare_evals rank_models plan_evals
"""
PACKAGES = (
    "learning",
    "variance",
    "response",
    "transfer",
    "ranking",
    "evals",
    "types",
    "stats",
    "drawing",
    "nn",
    "store",
    "study",
    "report",
)


def test_the_headlines_are_few_and_there():
    pytest.importorskip("pandas")
    pytest.importorskip("torch")
    assert set(HEADLINES.split()) <= set(cw.__all__)
    assert 45 <= len(cw.__all__) <= 75  # about ten of each lens
    assert all(getattr(cw, name) is not None for name in cw.__all__)


@pytest.mark.parametrize("package", PACKAGES)
def test_the_public_names_of_a_package_are_there(package: str):
    pytest.importorskip("pandas")
    pytest.importorskip("torch")
    found = import_module(f"curvewise.{package}")
    folder = Path(found.__file__).parent
    for name in found.__all__:
        assert getattr(found, name) is not None
        # A module of the same name would hide the function as soon as anything imports it.
        assert not (folder / f"{name}.py").exists()
        assert not (folder / name).exists()


def test_a_name_that_is_no_headline_is_found_in_its_lens():
    with pytest.raises(AttributeError, match=r"curvewise.measure_twins is reached as curvewise.variance.measure_twins"):
        cw.measure_twins  # noqa: B018
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        cw.nothing  # noqa: B018
    assert "variance" in dir(cw)
    assert callable(cw.variance.measure_twins)


def test_a_picture_loads_its_own_lens_only():
    pytest.importorskip("matplotlib")
    code = (
        "import sys, warnings; warnings.simplefilter('ignore'); import curvewise as cw; "
        "cw.fit_learning_curve([1, 2, 4, 8], [.5, .4, .3, .25]).plot(); print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    others = ("variance", "response", "transfer", "ranking", "nn", "study", "store", "report")
    assert not [m for m in done.stdout.split() if m.startswith(tuple(f"curvewise.{name}" for name in others))]


def test_version_is_that_of_the_package():
    from importlib.metadata import version

    assert cw.__version__ == version("curvewise")
