"""Make the tables of this folder: training runs and trials that are simulated. No model was trained.

    python examples/scaling/make_runs.py

The losses of ``runs.csv`` follow a known law, so that answers can be compared with the truth: E = 1.80, A = 480,
B = 2,000, α = 0.35, β = 0.37 for the family "base"; "new" has the same law with A and B times 0.9, hence needs
0.9^(1/α + 1/β) = 0.56 times the compute. Each loss is off by a random 0.3%. Accuracy on a quiz of four answers rises
from chance as the loss falls. ``trials.csv`` holds random searches of two learners: one that is good with any setting,
and one that is better with some settings and useless with others.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
LAW = {"E": 1.8, "A": 480.0, "B": 2000.0, "alpha": 0.35, "beta": 0.37}
FAMILIES = {"base": 1.0, "new": 0.9}
BUDGETS = (1e18, 3e18, 1e19, 3e19, 1e20, 3e20, 1e21)
OFF = (0.25, 0.5, 0.8, 1.25, 2.0, 4.0)


def main(folder: Path = HERE) -> None:
    """Write both tables."""
    rng = np.random.default_rng(0)
    with (folder / "runs.csv").open("w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["family", "params", "tokens", "loss", "quiz_accuracy"])
        for family, times in FAMILIES.items():
            for c in BUDGETS:
                for off in OFF:
                    n = float(f"{off * np.sqrt(c / 120):.3g}")
                    d = float(f"{c / 6 / n:.3g}")
                    mean = LAW["E"] + times * (LAW["A"] / n ** LAW["alpha"] + LAW["B"] / d ** LAW["beta"])
                    loss = mean * np.exp(0.003 * rng.standard_normal())
                    right = 0.25 + 0.75 / (1 + np.exp(4 * (loss - 2.5))) + 0.01 * rng.standard_normal()
                    out.writerow([family, f"{n:.3g}", f"{d:.3g}", f"{loss:.4f}", f"{right:.3f}"])
    with (folder / "trials.csv").open("w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["model", "rate", "f1"])
        for model, count in (("baseline", 60), ("ours", 80)):
            for _ in range(count):
                rate = 10 ** rng.uniform(-4, -1)
                wide = 0.06 if model == "baseline" else 1.2
                best = 0.80 if model == "baseline" else 0.84
                score = best - wide * (np.log10(rate) + 2.5) ** 2 / 2 - abs(0.01 * rng.standard_normal())
                out.writerow([model, f"{rate:.3g}", f"{max(score, 0.05):.4f}"])


if __name__ == "__main__":
    main()
