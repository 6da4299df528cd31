"""The example of evaluation logs: the made logs are what their generator writes, and the script runs on both kinds."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import curvewise as cw

FOLDER = Path(__file__).parents[2] / "examples" / "evals"


def test_made_logs_are_those_of_the_generator(tmp_path) -> None:
    runpy.run_path(str(FOLDER / "make_logs.py"))["main"](tmp_path)
    for part, shape in (("math", (4, 150, 1)), ("agents", (2, 40, 8))):
        written, kept = cw.load_evals(tmp_path / part), cw.load_evals(FOLDER / "logs" / part)
        assert kept.shape == shape
        assert written.models == kept.models
        assert np.array_equal(written.scores, kept.scores)
        assert not kept.warnings


@pytest.mark.parametrize("kind", ["made", "real"])
def test_the_script_runs(kind, tmp_path, data_dir) -> None:
    place = os.environ | {"MPLBACKEND": "agg", "OMP_NUM_THREADS": "1"}
    place.pop("CURVEWISE_DATA", None)
    if kind == "real":
        if not (data_dir / "evals" / "cruxeval").is_dir():
            pytest.skip("no evaluation logs among the data")
        place["CURVEWISE_DATA"] = str(Path(data_dir).resolve())
    done = subprocess.run(
        [sys.executable, str(FOLDER / "compare_models.py")], cwd=tmp_path, env=place, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Made logs" if kind == "made" else "Real logs")
    assert (tmp_path / "leaderboard.png").stat().st_size > 10_000
    if kind == "real":
        assert "pass^k" in done.stdout
        assert "42% [32, 53] with k = 1" in done.stdout
