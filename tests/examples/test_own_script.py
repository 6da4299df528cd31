"""The study whose learner is a script of its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from curvewise.study.run.programs import write_data
from curvewise.study.study import load_study

EXAMPLE = Path(__file__).parents[2] / "examples" / "own_script"


def test_the_study_is_run_and_its_script_gives_the_same_by_hand(tmp_path, monkeypatch):
    pytest.importorskip("sklearn", reason="the digits and the forest are scikit-learn's")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    shutil.copytree(EXAMPLE, tmp_path / "own", ignore=shutil.ignore_patterns("*-runs"))
    study = load_study(tmp_path / "own" / "study.toml")
    study.run(workers=1, progress=False)
    frame = study.frame()
    assert frame["status"].tolist() == ["done"] * 24
    means = study.measurements().frame().groupby(["learner", "n"])["error"].mean()
    for learner in ("regression", "forest"):
        assert means[learner, 400] < 0.6 * means[learner, 50]  # it learns, and more from more
    assert set(frame["train_loss"].isna()[frame["learner"] == "forest"]) == {False}

    job = next(j for j in study.jobs if j.name == "regression" and j.n == 100)
    np.save(tmp_path / "rows.npy", study.rows_of(job.n, job.fold))
    (tmp_path / "out").mkdir()
    given = {
        "--data": write_data(study),
        "--rows": tmp_path / "rows.npy",
        "--seed": job.seeds["init"],
        "--rate": 0.5,
        "--out": tmp_path / "out",
    }
    words = [str(word) for pair in given.items() for word in pair]
    subprocess.run([sys.executable, str(EXAMPLE / "train.py"), *words], check=True)
    by_hand = np.load(tmp_path / "out" / "probabilities.npy").argmax(axis=1)
    row = frame[frame["run"] == job.id].iloc[0]
    assert row["error"] == pytest.approx(np.mean(by_hand != study.evaluation_sets["test"].y))
