"""Train hundreds of networks on CIFAR-10 and write which test images each got wrong.

    python examples/cifar10_seeds/run.py --data cifar10_jpeg.npz --epochs 8 --seeds 360    # 9 minutes on one H200
    python examples/cifar10_seeds/run.py --data cifar10_jpeg.npz --epochs 1 --seeds 200
    python examples/cifar10_seeds/run.py --data cifar10_jpeg.npz --epochs 32 --seeds 50

Runs are stored beside this file; a second call continues where the first stopped, and --seeds 36 makes a tenth of them.
The result is a small file for each length, seeds_EPOCHS.npz. Finished runs of an interrupted call are saved, too.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

import curvewise as cw

HERE = Path(__file__).parent
SEEN = ("test", "averaged")  # each test image once, and averaged over mirrored and shifted views


def main() -> None:
    """Run one length after the other, and write the errors of its finished runs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", help="CIFAR-10 as a folder or file, where it is not found by name")
    parser.add_argument("--out", default=HERE, type=Path, help="folder for the small files")
    parser.add_argument("--epochs", type=int, nargs="+", help="only these lengths of training")
    parser.add_argument("--seeds", type=int, help="number of networks of each length")
    parser.add_argument("--precision", help="float32 on a CPU")
    options = parser.parse_args()
    study = cw.load_study(HERE / "seeds.toml")
    if options.data:
        study = replace(study, data={"name": "cifar10", "path": str(Path(options.data).resolve())})
    if options.precision:
        training = replace(study.learners["speednet"].training, precision=options.precision)
        study = replace(study, learners={"speednet": replace(study.learners["speednet"], training=training)})
    options.out.mkdir(parents=True, exist_ok=True)
    for epochs in options.epochs or study.design.grid["epochs"]:
        seeds = options.seeds or study.design.seeds
        part = replace(study, design=replace(study.design, seeds=seeds, grid={"epochs": [epochs]}))
        start = time.perf_counter()
        try:
            print(part.run().summary())
        finally:
            print(f"{epochs} epochs: {time.perf_counter() - start:.0f} s, loading and evaluation included")
            save_errors(part, epochs, options.out / f"seeds_{epochs}.npz")


def save_errors(study: cw.Study, epochs: int, path: Path) -> None:
    """Write which test images each run got wrong, as packed bits."""
    found = {name: study.predictions(epochs=epochs, evaluation=name) for name in SEEN}
    packed = {name: np.packbits(np.asarray(p.errors(), dtype=bool), axis=1) for name, p in found.items()}
    np.savez_compressed(path, examples=found["test"].examples, **packed)


def load_errors(epochs: int, seen: str = "test", folder: Path = HERE) -> cw.Predictions:
    """Load which test images each run of one length got wrong."""
    with np.load(folder / f"seeds_{epochs}.npz") as file:
        wrong = np.unpackbits(file[seen], axis=1, count=int(file["examples"]))
    return cw.load_predictions(wrong, kind="errors", axes=("runs", "examples"))


if __name__ == "__main__":
    main()
