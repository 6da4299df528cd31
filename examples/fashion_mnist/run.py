"""Learning curves and seeds on Fashion-MNIST: run both studies, then analyse them.

    python examples/fashion_mnist/run.py --device cuda     # both studies: minutes on one GPU
    python examples/fashion_mnist/run.py --device cuda --only seeds

Trained models are stored beside this file; a second call continues where the first stopped. The results are two small
files, errors.csv and seeds.npz, from which analyse.py draws the figures.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import curvewise as cw

HERE = Path(__file__).parent


def run_learning(out: Path, device: str | None, data: str | None) -> None:
    """Train on growing subsets and write the errors as a table."""
    study = _study("learning.toml", data)
    print(study.run(device=device).summary())
    table = study.measurements().frame()
    table["train_error"] = study.measurements("train_error").frame()["error"]
    table.to_csv(out / "errors.csv", index=False)


def run_seeds(out: Path, device: str | None, data: str | None) -> None:
    """Train with many seeds and write which test images each run got wrong."""
    study = _study("seeds.toml", data)
    print(study.run(device=device).summary())
    packed = {}
    for epochs in study.design.grid["epochs"]:
        found = study.predictions(epochs=epochs)
        packed[f"errors_{epochs}"] = np.packbits(np.asarray(found.errors(), dtype=bool), axis=1)
    np.savez_compressed(out / "seeds.npz", examples=found.examples, **packed)


def _study(name: str, data: str | None) -> cw.Study:
    study = cw.load_study(HERE / name)
    if data is None:
        return study
    from dataclasses import replace

    return replace(study, data={"name": "fashion-mnist", "path": str(Path(data).resolve())})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", help="cpu, cuda or cuda:0; by default a GPU if there is one")
    parser.add_argument("--data", help="folder with the IDX files, where they are not found by name")
    parser.add_argument("--out", default=HERE, type=Path, help="folder for the two small files")
    parser.add_argument("--only", choices=["learning", "seeds"])
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    if asked.only != "seeds":
        run_learning(asked.out, asked.device, asked.data)
    if asked.only != "learning":
        run_seeds(asked.out, asked.device, asked.data)
