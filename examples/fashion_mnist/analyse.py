"""Draw figures of the two studies on Fashion-MNIST and print their results, from errors.csv and seeds.npz.

    python examples/fashion_mnist/analyse.py          # seconds; nothing is trained

run.py trains the models and writes the two files.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import curvewise as cw
from curvewise.learning import LearningCurve

HERE = Path(__file__).parent
NETWORKS = ("MLP", "CNN", "ResNet-9")


def load_seeds(path: Path = HERE / "seeds.npz") -> dict[int, cw.Predictions]:
    """Load which test images each of 200 runs got wrong, for each number of epochs."""
    found = {}
    with np.load(path) as file:
        for name in file.files:
            if name.startswith("errors_"):
                wrong = np.unpackbits(file[name], axis=1, count=int(file["examples"]))
                found[int(name.removeprefix("errors_"))] = cw.load_predictions(
                    wrong, kind="errors", axes=("runs", "examples")
                )
    return found


def load_errors(path: Path = HERE / "errors.csv") -> cw.Measurements:
    """Load the test error of each run, with its learner and training size."""
    columns = {"learner": "learner", "n": "n", "value": "error"}
    return cw.load_measurements(path, columns=columns)


def plot_seeds(runs: Mapping[int, cw.Predictions]) -> Figure:
    """Draw, above, whether a lucky run is lucky twice; below, the accuracies and those of independent errors."""
    figure, axes = plt.subplots(2, len(runs), figsize=(4 * len(runs), 7.4), layout="constrained")
    for (epochs, predictions), (above, below) in zip(runs.items(), axes.T, strict=True):
        luck = cw.measure_seed_luck(predictions)
        luck.plot(ax=above)
        cw.variance.measure_accuracy_distribution(predictions).plot(ax=below)
        many = "1 epoch" if epochs == 1 else f"{epochs} epochs"
        above.set_title(f"{many}: correlation {luck.correlation.estimate:.2f}")
        below.set_title(many)
    return figure


def plot_curves(measurements: cw.Measurements) -> Figure:
    """Draw learning curves with and without augmentation, one panel per network."""
    figure, axes = plt.subplots(1, 3, figsize=(12, 4), sharey=True, layout="constrained")
    curves = cw.fit_learning_curves(measurements)
    for name, ax in zip(NETWORKS, axes, strict=True):
        for learner, colour in ((name, "#0072B2"), (f"{name}, augmented", "#D55E00")):
            _draw(ax, measurements.of(learner), curves[learner], colour)
        ax.set(title=name, xscale="log", yscale="log", xlabel="training images")
        ax.set_xticks(sizes := np.unique(measurements.n), [f"{n:.0f}" for n in sizes])
        ax.minorticks_off()
        ax.legend(frameon=False)
    axes[0].set_yticks(ticks := [0.15, 0.2, 0.3, 0.4], [f"{t:.0%}" for t in ticks])
    axes[0].set_ylabel("test error")
    return figure


def _draw(ax: Axes, own: cw.Measurements, curve: LearningCurve, colour: str) -> None:
    """Draw every run, and the fitted curve with its 95% confidence band."""
    line = curve.predict(np.geomspace(own.n.min(), own.n.max(), 60))
    kind = "augmented" if "augmented" in curve.learner else "plain"
    label = f"{kind}: e_N {curve.error_at():.3f}, β_N {curve.data_reliance_at():.3f}"
    ax.plot(own.n, own.error, "o", color=colour, alpha=0.35, markersize=4)
    ax.plot(line["n"], line["error"], color=colour, label=label)
    ax.fill_between(line["n"], line["low"], line["high"], color=colour, alpha=0.2, linewidth=0)


def compare_augmentation(measurements: cw.Measurements, at: float | None = None) -> dict[str, Any]:
    """Compare each network with and without augmentation at one size."""
    curves = cw.fit_learning_curves(measurements)
    return {name: cw.compare_learning_curves(curves[f"{name}, augmented"], curves[name], at=at) for name in NETWORKS}


def compare_networks(measurements: cw.Measurements, at: float | None = None) -> dict[str, Any]:
    """Compare the deepest network with the others at one size, without augmentation."""
    curves = cw.fit_learning_curves(measurements)
    return {name: cw.compare_learning_curves(curves["ResNet-9"], curves[name], at=at) for name in NETWORKS[:2]}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default=HERE, type=Path, help="folder for the figures")
    asked = parser.parse_args()
    mpl.use("agg")
    warnings.simplefilter("ignore", cw.CurvewiseWarning)  # the results show them
    asked.out.mkdir(parents=True, exist_ok=True)
    runs = load_seeds()
    for epochs, predictions in runs.items():
        print(f"{epochs} epochs. {cw.decompose_variance(predictions)}\n")
    plot_seeds(runs).savefig(asked.out / "seeds.png", dpi=120)
    measurements = load_errors()
    for name, comparison in compare_augmentation(measurements).items():
        print(f"{name}. {comparison}\n")
    plot_curves(measurements).savefig(asked.out / "curves.png", dpi=120)
