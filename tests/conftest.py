"""Shared fixtures, and what keeps the outcome of a test independent of where and when it runs."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import hypothesis
import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("CURVEWISE_DATA", ROOT.parent / "shared" / "data"))

# The same examples everywhere, and as long as it takes. Others are tried, as many as each test asks
# for, with --hypothesis-profile=default.
hypothesis.settings.register_profile(
    "steady", deadline=None, derandomize=True, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("steady")

# What a user may have set for terminals and clusters.
for name in ("COLUMNS", "LINES", "FORCE_COLOR", "NO_COLOR", "CLICOLOR_FORCE", "RAY_ADDRESS"):
    os.environ.pop(name, None)

# Errors simulated once from a power law, so that the tests have a curve where no data is mounted.
SIZES = np.repeat([25, 50, 100, 200, 400], [16, 8, 4, 2, 1]).astype(float)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Begin every test with the same random numbers, whichever tests came before it."""
    np.random.seed(0)  # noqa: NPY002
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(0)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real data, or a skip that says why."""
    if not DATA.is_dir():
        pytest.skip(f"no real data at {DATA}; set CURVEWISE_DATA to its folder")
    return DATA


@pytest.fixture(scope="session")
def golden(data_dir: Path) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """The four published curves: name → (n, error in percent)."""
    curves = {}
    for name in ("no_pretr_linear", "no_pretr_ft", "pretr_linear", "pretr_ft"):
        rows = json.loads((data_dir / "learning_curves" / f"{name}.json").read_text())
        n = np.concatenate([[r["num_train_samples"]] * len(r["test_errors"]) for r in rows])
        error = np.concatenate([r["test_errors"] for r in rows])
        curves[name] = (n.astype(float), error)
    return curves


@pytest.fixture
def simulated() -> tuple[np.ndarray, np.ndarray]:
    """A well-behaved curve in percent: 8 + 150 n^-0.5 with σ² = .02 + 40/n."""
    rng = np.random.default_rng(7)
    noise = rng.standard_normal(len(SIZES)) * np.sqrt(0.02 + 40 / SIZES)
    return SIZES.copy(), 8 + 150 * SIZES**-0.5 + noise
