"""Ground truth: fine-tune every trainable network of the pool on every task."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pool import POOL, Member
from tasks import TASKS, read_task

import curvewise as cw
from curvewise.study import Design, Learner, Study
from curvewise.study.data.dataset import Dataset

HERE = Path(__file__).parent
SCRATCH = "MobileNetV2 from scratch"
USUAL = {"optimiser": "adamw", "weight_decay": 0.01, "batch": 64}
RATES = (0.0001, 0.0003, 0.001)
EPOCHS, IMAGES, TESTED = 6, 2_000, 2_000


def pack_weights(folder: Path) -> None:
    """Write the trainable weights to small files: in half precision, without last layers."""
    from safetensors.torch import save_file
    from weights import load_body

    folder.mkdir(parents=True, exist_ok=True)
    for member in (m for m in POOL if m.body):
        stored = {
            # values per channel stay exact
            f"body.{name}": value.half() if value.ndim > 1 else value
            for name, value in load_body(member).state_dict().items()
            if not name.endswith("num_batches_tracked")
        }
        save_file(stored, folder / packed_name(member))
        print(f"{member.name}: {(folder / packed_name(member)).stat().st_size / 2**20:.1f} MiB")


def packed_name(member: Member) -> str:
    """Return the file name of a checkpoint's packed weights."""
    return re.sub(r"[^a-z0-9.]+", "-", member.name.lower()).strip("-") + ".safetensors"


def make_study(
    task: str,
    folder: Path,
    *,
    members: Sequence[Member],
    rates: Sequence[float] = RATES,
    epochs: int = EPOCHS,
    images: int = IMAGES,
    tested: int = TESTED,
    precision: str = "bfloat16",
    scratch: bool = True,
) -> Study:
    """Make the study of one task: each checkpoint, and one network from scratch, at each rate."""
    x, y, test_x, test_y = read_task(folder / "tasks", task, images, tested)
    share = x / np.float32(255)
    given = [[float(v) for v in share.mean((0, 2, 3))], [float(v) for v in share.std((0, 2, 3))]]
    how = {**USUAL, "schedule": "cosine", "warmup": 0.1, "epochs": epochs, "precision": precision}
    learners = {
        m.name: Learner(cw.nn.Training("networks:finetuned", _options(m, given), _file(m, folder), **how))
        for m in members
    }
    if scratch:
        body = next(m for m in POOL if m.body == "mobilenet-v2" and not m.options)
        learners[SCRATCH] = Learner(cw.nn.Training("networks:finetuned", _options(body, given), **how))
    data = Dataset(x, y, test_x, test_y, name=task)
    grid = {"rate": list(rates)}
    store = folder / f"finetune-{task}"
    return Study(data, learners, Design(grid=grid), name=task, folder=HERE, store=store)


def _file(member: Member, folder: Path) -> str:
    """Return the path of the packed weights relative to this folder, so that runs are identical on every machine."""
    return os.path.relpath(folder / "packs" / packed_name(member), HERE)


def _options(member: Member, given: list[list[float]]) -> dict[str, Any]:
    wanted = [list(v) for v in member.scale]
    size = {"size": member.size, "given": given, "wanted": wanted}
    return {"body": member.body, **size, **member.options}


def finetune(
    folder: Path, out: Path, *, tasks: Sequence[str] = TASKS, device: str | None = None, workers: int = 2, **how: Any
) -> None:
    """Run the studies and write the test accuracy of every network at every rate.

    Rows of other tasks stay in the file.
    """
    tables = []
    for task in tasks:
        study = make_study(task, folder, **how)
        print(study.run(device=device, workers=workers, compile=False).summary(), flush=True)
        wanted = ("learner", "rate", "error", "train_error", "seconds", "reason")
        found = study.frame().reindex(columns=wanted)  # no metrics where all runs failed
        tables.append(
            pd.DataFrame(
                {
                    "task": task,
                    "checkpoint": found["learner"],
                    "rate": found["rate"],
                    "accuracy": 1 - found["error"],
                    "train_accuracy": 1 - found["train_error"],
                    "seconds": found["seconds"],
                    "reason": found["reason"],
                }
            )
        )
    if out.is_file():
        kept = pd.read_csv(out)
        tables.append(kept[~kept["task"].isin(tasks)])
    whole = pd.concat(tables).sort_values("task", kind="stable")
    whole.to_csv(out, index=False, float_format="%.5g")
