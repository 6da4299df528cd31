"""A study as an array of Slurm jobs, each of which makes a share of the runs."""

from __future__ import annotations

import math
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from curvewise.errors import InputError
from curvewise.study.run.ray import parse_bytes

LAST_SECONDS = 60
"""Between the signal to stop and the end of a job: workers store what is finished and give claims back."""
TIME = r"\d+(:\d{1,2}){0,2}|\d+-\d{1,2}(:\d{1,2}){0,2}"
"""Minutes, minutes:seconds, hours:minutes:seconds, days-hours, days-hours:minutes and days-hours:minutes:seconds."""
OURS = ("array", "signal", "a")
"""Options of sbatch on which the script relies."""


def slurm_script(
    file: str | Path,
    shards: int,
    *,
    at_once: int | None = None,
    cpus: int = 1,
    gpus: int = 0,
    memory: float | str | None = None,
    time: str | None = None,
    sbatch: Sequence[str] = (),
    python: str = sys.executable,
) -> str:
    r"""Return a script for ``sbatch`` that makes a study's runs in an array of jobs.

    Each job makes the runs of one shard (see ``shard`` of
    :func:`~curvewise.study.run.drive.run_local`) and is asked to stop a minute before its time is
    over. Submit the script again to continue: finished runs stay. Nothing here calls Slurm.

    Parameters
    ----------
    file : path
        The study, in a folder that all nodes see under the same path.
    shards : int
        Jobs of the array.
    at_once : int, optional
        Jobs that may run at the same time.
    cpus, gpus : int
        Cores and GPUs of each job; without a GPU, there is a process for each core.
    memory : float or str, optional
        Memory of each job, in bytes or as ``"8GiB"``.
    time : str, optional
        Limit for each job as Slurm takes it, such as ``"04:00:00"`` or ``"2-12"``.
    sbatch : sequence of str
        Further options, such as ``"partition=gpu"`` or ``"exclusive"``.
    python : str
        The interpreter, in an environment that all nodes see.

    Examples
    --------
    >>> script = slurm_script("/shared/study.toml", 16, gpus=1, time="04:00:00")
    >>> print(*(line for line in script.splitlines() if "SBATCH" in line), sep="\n")
    #SBATCH --job-name=study
    #SBATCH --array=1-16
    #SBATCH --nodes=1
    #SBATCH --ntasks=1
    #SBATCH --cpus-per-task=1
    #SBATCH --gres=gpu:1
    #SBATCH --time=04:00:00
    #SBATCH --signal=B:TERM@60
    """
    for name, value, least in (("shards", shards, 1), ("at_once", at_once, 1), ("cpus", cpus, 1), ("gpus", gpus, 0)):
        if value is not None and (type(value) is not int or value < least):
            raise InputError(f"give a whole number from {least} on.", argument=name, value=value)
    if time is not None and not re.fullmatch(TIME, time):
        problem = "write it as Slurm does, such as 04:00:00 (hours, minutes, seconds) or 2-12 (days, hours)."
        raise InputError(problem, argument="time", value=time)
    for option in sbatch:
        name = option.partition("=")[0]
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9-]*(=[^\s#\"']+)?", option):
            problem = "write NAME=VALUE without spaces or quotes, such as partition=gpu."
            raise InputError(problem, argument="sbatch", value=option)
        if name in OURS:
            raise InputError(f"the script has a --{name} of its own: leave it out.", argument="sbatch", value=option)
    place = Path(file).resolve()
    lines = [
        f"job-name={re.sub(r'[^A-Za-z0-9_.-]+', '-', place.stem)}",
        f"array=1-{shards}" + ("" if at_once is None else f"%{at_once}"),
        "nodes=1",
        "ntasks=1",
        f"cpus-per-task={cpus}",
        *([f"gres=gpu:{gpus}"] if gpus else []),
        *([] if memory is None else [f"mem={math.ceil(parse_bytes(memory) / 2**20)}M"]),
        *([] if time is None else [f"time={time}"]),
        # B: only the shell of the batch gets the signal, so that the command must take its place.
        f"signal=B:TERM@{LAST_SECONDS}",
        *sbatch,
    ]
    command = shlex.join([python, "-P", "-m", "curvewise.cli", "study", "run", str(place)])
    # Not all clusters bind a job to its cores, and a missing GPU should be an error.
    how = "--device cuda" if gpus else f"--workers {cpus}"
    return "\n".join(
        [
            "#!/bin/bash",
            *(f"#SBATCH --{line}" for line in lines),
            "",
            "# Submit it again to continue: finished runs stay.",
            f"cd {shlex.quote(str(place.parent))}",
            "# In the place of the shell, which is the only process that gets the signal.",
            f'exec {command} --shard "$SLURM_ARRAY_TASK_ID/{shards}" {how}',
            "",
        ]
    )
