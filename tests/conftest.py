"""Shared fixtures, and what keeps the outcome of a test independent of where and when it runs."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("CURVEWISE_DATA", ROOT.parent / "shared" / "data"))

# The same examples everywhere, and as long as it takes. Others are tried, as many as each test asks
# for, with --hypothesis-profile=default; "few" is for other versions of the packages, where a search is not repeated.
hypothesis.settings.register_profile(
    "steady", deadline=None, derandomize=True, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.register_profile("few", hypothesis.settings.get_profile("steady"), max_examples=15)
hypothesis.settings.load_profile("steady")

# What a user may have set for terminals and clusters.
for name in ("COLUMNS", "LINES", "FORCE_COLOR", "NO_COLOR", "CLICOLOR_FORCE", "RAY_ADDRESS"):
    os.environ.pop(name, None)

# A shell starts background jobs with Ctrl-C ignored, which every process they start would inherit. The tests send it.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The mathematics of the lenses is tested where only numpy and scipy are installed. What reads files, draws, trains
# or prints is tested where all is there.
if find_spec("pandas") is None:
    kinds = (
        "plot",
        "plot/*",
        "test_plot*",
        "networks",
        "networks/*",
        "test_commands*",
        "test_load*",
        "test_published*",
    )
    collect_ignore_glob = [f"*/{kind}" for kind in kinds]

# Errors simulated once from a power law, so that the tests have a curve where no data is mounted.
SIZES = np.repeat([25, 50, 100, 200, 400], [16, 8, 4, 2, 1]).astype(float)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Spare later garbage collections, some of which our own code asks for, all that is loaded by now."""
    gc.collect()
    gc.freeze()


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


@pytest.fixture(autouse=True)
def _closed_figures() -> Iterator[None]:
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


FEWER_SIZES = np.repeat([25.0, 50.0, 100.0, 200.0, 400.0], [6, 5, 4, 2, 1])


@pytest.fixture
def fit() -> Callable[..., Any]:
    """Fit α + η n^γ with a little noise, quietly."""

    from curvewise.errors import CurvewiseWarning
    from curvewise.learning import fit_learning_curve

    def make(
        learner: str = "plain",
        alpha: float = 10.0,
        eta: float = 200.0,
        gamma: float = -0.5,
        seed: int = 0,
        noise: float = 0.3,
        n: Any = FEWER_SIZES,
        **options: Any,
    ) -> Any:
        sizes = np.asarray(n, dtype=float)
        scatter = np.random.default_rng(seed).normal(0.0, noise, len(sizes))
        error = alpha + eta * sizes**gamma + scatter
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CurvewiseWarning)
            return fit_learning_curve(sizes, error, **{"unit": "percent", "learner": learner, **options})

    return make


@dataclass
class Outcome:
    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """Strict JSON: NaN and Infinity are refused."""

        def refuse(token: str) -> None:
            raise AssertionError(f"{token} is not JSON")

        return json.loads(self.out, parse_constant=refuse)


@pytest.fixture
def errors() -> Path:
    """Measurements of bagged trees and naive Bayes, 94 rows."""
    return ROOT / "examples" / "errors.csv"


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Outcome]:
    """Call the command line in this process."""
    pytest.importorskip("cyclopts")
    from curvewise.cli import main

    monkeypatch.setenv("COLUMNS", "80")

    def run(*arguments: object) -> Outcome:
        capsys.readouterr()
        code = main([str(a) for a in arguments])
        return Outcome(code, *capsys.readouterr())

    return run


@pytest.fixture
def start() -> Callable[..., Outcome]:
    """Start the command line as a user would, in a process of its own."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "80"}

    def run(*arguments: object, python: bool = False, **options: Any) -> Outcome:
        head = [sys.executable] + ([] if python else ["-m", "curvewise.cli"])
        done = subprocess.run(
            [*head, *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=1800,
            env=environment,
            check=False,
            **options,
        )
        return Outcome(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def table(tmp_path: Path) -> Callable[..., Path]:
    """Write a CSV of curves that fall as a + b/√n."""

    def write(name: str, learners: dict[str, tuple[float, float]], column: bool = True) -> Path:
        path = tmp_path / name
        lines = ["learner,n,error" if column else "n,error"]
        for learner, (a, b) in learners.items():
            for n in (100, 200, 400, 800):
                for wiggle in (-0.004, 0.001, 0.003):
                    head = f'"{learner}",' if column else ""
                    lines.append(f"{head}{n},{a + b * n**-0.5 + wiggle:.5f}")
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    return write
