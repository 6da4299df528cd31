"""Corpora of models: train them, measure them, and write a row for each.

    python examples/corpus/run.py generalization --data PATH --device cuda    # CIFAR-10 is in PATH
    python examples/corpus/run.py invariance                                  # digits, on a CPU

What was trained is kept beside this file, and a second call goes on where the first was stopped.
Small files come out of it, with the hyperparameters, the gap and every measure of each model:
cifar10.csv; and rotation.csv, shift-x.csv and shift-y.csv for measures of invariance.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import curvewise as cw

HERE = Path(__file__).parent
IMAGES = 3_000


def prepare(data: str) -> None:
    """Write the first images of the training set, and the whole test set, to one file."""
    whole = cw.load_dataset({"name": "cifar10", "path": data})
    np.savez_compressed(
        HERE / "cifar10-3000.npz",
        x=whole.x[:IMAGES],
        y=whole.y[:IMAGES],
        test_x=whole.test_x,
        test_y=whole.test_y,
        classes=np.array(whole.classes),
    )


def measure_generalization(out: Path, device: str | None, workers: int) -> None:
    """Train the corpus, and put every measure of each network beside its gap."""
    study = cw.load_study(HERE / "cifar10.toml")
    print(study.run(device=device, workers=workers, compile=False).summary(), flush=True)
    corpus = cw.study.measure_corpus(study, seeds="first", device=device, workers=workers)
    corpus.frame().to_csv(out / "cifar10.csv", index=False)


def measure_invariance(out: Path, device: str | None, workers: int) -> None:
    """Train with none, half and all of three perturbations, and measure responses to them."""
    study = cw.load_study(HERE / "invariance.toml")
    print(study.run(device=device, workers=workers).summary(), flush=True)
    for name in study.evaluate:
        corpus = cw.study.measure_invariance(study, name, device=device, workers=workers)
        corpus.frame().to_csv(out / f"{name}.csv", index=False)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["generalization", "invariance"])
    parser.add_argument("--data", help="CIFAR-10, unless cifar10-3000.npz is there")
    parser.add_argument("--device", help="cpu, cuda or cuda:0; by default what there is")
    parser.add_argument("--workers", default=2, type=int, help="processes side by side")
    parser.add_argument("--out", default=HERE, type=Path, help="folder for the small files")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    if asked.what == "invariance":
        measure_invariance(asked.out, asked.device, asked.workers)
    else:
        if not (HERE / "cifar10-3000.npz").is_file():
            prepare(asked.data)
        measure_generalization(asked.out, asked.device, asked.workers)
