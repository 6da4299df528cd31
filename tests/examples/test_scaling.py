"""The example of scaling laws: the tables are what their generator writes, the script runs, and finds the truth."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import curvewise as cw

FOLDER = Path(__file__).parents[2] / "examples" / "scaling"


def test_tables_are_those_of_the_generator(tmp_path) -> None:
    runpy.run_path(str(FOLDER / "make_runs.py"))["main"](tmp_path)
    for name in ("runs.csv", "trials.csv"):
        assert (tmp_path / name).read_text() == (FOLDER / name).read_text()


def test_intervals_hold_what_the_generator_put_in() -> None:
    known = runpy.run_path(str(FOLDER / "make_runs.py"))
    base, new = (
        cw.load_scaling_runs(FOLDER / "runs.csv", where={"family": name}, name=name) for name in ("base", "new")
    )
    law = cw.fit_scaling_law(base)
    for name, value in known["LAW"].items():
        assert value in law.interval(name), name
    truth = known["FAMILIES"]["new"] ** (1 / known["LAW"]["alpha"] + 1 / known["LAW"]["beta"])
    assert truth in cw.compare_scaling_laws(base, new).efficiency
    assert truth == pytest.approx(0.56, abs=0.005)


def test_the_script_runs(tmp_path) -> None:
    place = os.environ | {"MPLBACKEND": "agg", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, str(FOLDER / "how_large.py")], cwd=tmp_path, env=place, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Simulated runs")
    assert "new needs 0.55" in done.stdout
    assert (tmp_path / "law.png").stat().st_size > 10_000
