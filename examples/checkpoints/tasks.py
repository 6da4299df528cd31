"""The three tasks: a few thousand images of each, in small files that are easy to copy."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import curvewise as cw

TASKS = ("cifar10", "fashion-mnist", "mnist")
TRAIN, TEST = 2_000, 2_000


def prepare_tasks(folder: Path, places: dict[str, str]) -> None:
    """Write the first images of each training and test set to a file of its own.

    Parameters
    ----------
    folder : Path
        Folder to write to.
    places : dict of str to str
        Path of a task's images, where curvewise does not find them by name.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name in TASKS:
        where = {"path": places[name]} if places.get(name) else {}
        whole = cw.load_dataset({"name": name, **where})
        assert whole.test_x is not None
        assert whole.test_y is not None
        arrays = {
            "x": whole.x[:TRAIN],
            "y": whole.y[:TRAIN],
            "test_x": whole.test_x[:TEST],
            "test_y": whole.test_y[:TEST],
            "classes": np.array(whole.classes),
        }
        np.savez_compressed(folder / f"{name}.npz", **arrays)
        print(f"{name}: {len(arrays['x'])} + {len(arrays['test_x'])} images", flush=True)


def read_task(folder: Path, name: str, train: int, test: int) -> tuple[np.ndarray, ...]:
    """Return the first training images and classes, and the first test images and classes."""
    with np.load(folder / f"{name}.npz") as stored:
        x, y = stored["x"][:train], stored["y"][:train]
        return x, y, stored["test_x"][:test], stored["test_y"][:test]
