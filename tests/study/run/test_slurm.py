"""Scripts for Slurm, executed as Slurm does it: by a shell, with the number of the job in the environment."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curvewise.errors import InputError
from curvewise.study.run.slurm import slurm_script
from curvewise.study.study import load_study

STUDY = """
data = "data.npz"

[learners.own]
estimator = "slow_model:Slow"

[design]
sizes = [20]
folds = 1
seeds = {seeds}
"""
MODEL = """
import time
import numpy as np

class Slow:
    def __init__(self, random_state=0):
        self.random_state = random_state

    def get_params(self, deep=True):
        return {"random_state": self.random_state}

    def set_params(self, random_state=0):
        self.random_state = random_state
        return self

    def fit(self, x, y):
        time.sleep(0.3)

    def predict(self, x):
        return np.zeros(len(x), dtype=np.int64)
"""


def made(folder: Path, seeds: int) -> Path:
    folder.mkdir()
    (folder / "slow_model.py").write_text(MODEL)
    file = folder / "study.toml"
    np.savez(folder / "data.npz", x=np.zeros((60, 2)), y=np.arange(60) % 2)
    file.write_text(STUDY.format(seeds=seeds))
    return file


def start(script: Path, job: int) -> subprocess.Popen[str]:
    environment = os.environ | {"SLURM_ARRAY_TASK_ID": str(job)}
    return subprocess.Popen(["bash", str(script)], env=environment, cwd="/", stderr=subprocess.PIPE, text=True)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no bash")
def test_a_job_makes_its_shard_and_stops_when_it_is_told_to(tmp_path: Path) -> None:
    file = made(tmp_path / "my study's", seeds=30)  # a folder that a shell would take apart
    script = tmp_path / "study.sbatch"
    script.write_text(slurm_script(file, 5))
    study = load_study(file)
    shards = [{j.id for j in study.jobs if int(j.id, 16) % 5 == k} for k in range(5)]
    largest, least = (shards.index(choose(shards, key=len)) for choose in (max, min))

    def stored() -> set[str]:
        return {j.id for j in study.jobs if (study.runs_folder / j.id / "record.json").exists()}

    with start(script, largest + 1) as job:
        while job.poll() is None and not stored():
            time.sleep(0.02)
        # To the process of the batch alone, as --signal=B: does.
        job.send_signal(signal.SIGTERM)
        said = job.communicate(timeout=300)[1]
    assert job.returncode == 143
    assert "Run the study again to continue" in said
    assert not [c for c in (study.runs_folder / ".claims").iterdir() if c.name[0] != "."]
    before = stored()
    assert before < shards[largest]
    with start(script, least + 1) as job:
        job.communicate(timeout=300)
    assert job.returncode == 0
    assert stored() == before | shards[least]


def test_what_jobs_ask_for(tmp_path: Path) -> None:
    asked: dict[str, Any] = {"cpus": 4, "memory": "1.5GiB", "time": "2-12", "sbatch": ["partition=gpu", "exclusive"]}
    script = slurm_script(tmp_path / "a b.toml", 8, at_once=3, **asked)
    assert re.findall(r"^#SBATCH --(.*)$", script, flags=re.MULTILINE) == [
        "job-name=a-b",
        "array=1-8%3",
        "nodes=1",
        "ntasks=1",
        "cpus-per-task=4",
        "mem=1536M",
        "time=2-12",
        "signal=B:TERM@60",
        "partition=gpu",
        "exclusive",
    ]
    assert script.endswith('--shard "$SLURM_ARRAY_TASK_ID/8" --workers 4\n')
    assert script.splitlines()[0] == "#!/bin/bash"
    assert "--device cuda" in slurm_script("study.toml", 8, gpus=2)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"shards": 0}, "shards=0: give a whole number from 1 on"),
        ({"cpus": 0.5}, "cpus=0.5: give a whole number from 1 on"),
        ({"gpus": -1}, "gpus=-1: give a whole number from 0 on"),
        ({"time": "4h"}, "time='4h': write it as Slurm does"),
        ({"time": "04:00:00\nrm"}, "write it as Slurm does"),
        ({"memory": "lots"}, "memory='lots': give bytes"),
        ({"sbatch": ["partition=gpu\n#SBATCH --x"]}, "write NAME=VALUE without spaces"),
        ({"sbatch": ["--partition=gpu"]}, "write NAME=VALUE without spaces"),
        ({"sbatch": ["array=1-3"]}, "the script has a --array of its own"),
    ],
)
def test_what_jobs_cannot_ask_for(options: dict[str, Any], text: str) -> None:
    with pytest.raises(InputError, match=re.escape(text)):
        slurm_script("study.toml", **{"shards": 2, **options})
