"""Train a corpus of models, compute every measure of each, and write a table with one row per model.

    python examples/corpus/run.py generalization --data PATH --device cuda    # CIFAR-10 is in PATH
    python examples/corpus/run.py invariance                                  # digits, on a CPU
    python examples/corpus/run.py vgg --data PATH --device cuda               # invariance on CIFAR-10
    python examples/corpus/run.py resnet --data PATH --device cuda

Trained models are stored beside this file; a second call continues where the first stopped. The tables hold the
hyperparameters, the generalization gap and every measure of each model: cifar10.csv; rotation.csv, shift-x.csv and
shift-y.csv for measures of invariance on digits; cifar10-vgg.csv and cifar10-resnet.csv for the same on CIFAR-10.
"""

from __future__ import annotations

import argparse
import csv
import time
from pathlib import Path

import numpy as np

import curvewise as cw

HERE = Path(__file__).parent
IMAGES, IMAGES_OF_INVARIANCE = 3_000, 2_000
# As in section 4.2 of the paper, with fewer hyperparameters, narrower networks and fewer images.
FAMILIES = {
    "vgg": {"architecture": ["vgg11", "vgg16"], "batch_norm": [False, True], "batch": [100, 400]},
    "resnet": {"architecture": ["resnet18"], "batch": [100, 400], "rate": [5e-4, 2e-3]},
}
RANGES = {"rotation": [-180, 179], "shift-x": [-0.5, 0.5], "shift-y": [-0.5, 0.5]}


def prepare(data: str, images: int, tests: int | None = None) -> None:
    """Write the first images of the training set, and of the test set, to one file."""
    whole = cw.load_dataset({"name": "cifar10", "path": data})
    np.savez_compressed(
        HERE / f"cifar10-{images}.npz",
        x=whole.x[:images],
        y=whole.y[:images],
        test_x=whole.test_x[:tests],
        test_y=whole.test_y[:tests],
        classes=np.array(whole.classes),
    )


def measure_generalization(out: Path, device: str | None, workers: int) -> None:
    """Train the corpus and write every measure of each network with its generalization gap."""
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


def measure_images(family: str, out: Path, device: str | None, workers: int, epochs: int, width: int) -> None:
    """Train a family on CIFAR-10 with none, half and all of three perturbations, and measure responses to them."""
    shares = [[f"{name}:{-share * low:g}"] for name, (low, _) in RANGES.items() for share in (0.5, 1.0)]
    usual = {"rate": 1e-3, "schedule": "cosine", "epochs": epochs}
    usual["precision"] = "float32" if device == "cpu" else "bfloat16"
    study = cw.study_recipe(
        "response",
        str(HERE / f"cifar10-{IMAGES_OF_INVARIANCE}.npz"),
        family=family,
        learners={family: {**usual, "width": width}},
        sizes=[IMAGES_OF_INVARIANCE],
        grid={**FAMILIES[family], "augmentation": [[], *shares]},
        evaluate={name: {"perturbation": name, "magnitude": reach} for name, reach in RANGES.items()},
        store=HERE / f"{family}-runs",
    )
    start = time.monotonic()
    print(study.run(device=device, workers=workers, compile=False).summary(), flush=True)
    print(f"{family}: trained after {time.monotonic() - start:.0f} s", flush=True)
    with open(out / f"cifar10-{family}.csv", "w", encoding="utf-8", newline="") as stream:
        rows = csv.writer(stream, lineterminator="\n")
        for name in RANGES:
            corpus = cw.study.measure_invariance(study, name, device=device)
            columns = corpus.columns()
            if stream.tell() == 0:
                rows.writerow(["perturbation", *columns])
            rows.writerows([name, *row] for row in zip(*(list(c) for c in columns.values()), strict=True))
            print(f"{family}: {name} measured after {time.monotonic() - start:.0f} s", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["generalization", "invariance", *FAMILIES])
    parser.add_argument("--data", help="path of CIFAR-10; needed by the first call only")
    parser.add_argument("--device", help="cpu, cuda or cuda:0; by default a GPU if there is one")
    parser.add_argument("--workers", default=2, type=int, help="number of processes")
    parser.add_argument("--out", default=HERE, type=Path, help="folder for the tables")
    parser.add_argument("--epochs", default=80, type=int, help="of vgg and resnet")
    parser.add_argument("--width", default=32, type=int, help="of vgg and resnet")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    if asked.what == "invariance":
        measure_invariance(asked.out, asked.device, asked.workers)
    elif asked.what in FAMILIES:
        if not (HERE / f"cifar10-{IMAGES_OF_INVARIANCE}.npz").is_file():
            prepare(asked.data, IMAGES_OF_INVARIANCE, tests=5_000)
        measure_images(asked.what, asked.out, asked.device, asked.workers, asked.epochs, asked.width)
    else:
        if not (HERE / f"cifar10-{IMAGES}.npz").is_file():
            prepare(asked.data, IMAGES)
        measure_generalization(asked.out, asked.device, asked.workers)
