"""What importing costs, and that the public surface is whole."""

from __future__ import annotations

import subprocess
import sys

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


def test_public_names_exist():
    if "pandas" not in sys.modules:
        pytest.importorskip("pandas")
    assert all(getattr(cw, name) is not None for name in cw.__all__)


def test_version_is_that_of_the_package():
    from importlib.metadata import version

    assert cw.__version__ == version("curvewise")
